/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A library to preload before ibsim's libumad2sim.so (with-ibsim does). A thread of
 * libumad2sim.so receives MADs. Two defects show when a MAD arrives late.
 *
 * At exit, libumad2sim.so holds a mutex while it cancels and joins the thread. The thread locks
 * the same mutex for each MAD, and waiting for a mutex is no cancellation point: the process
 * never ends. Here, waiting for a mutex is a cancellation point.
 *
 * After a handle is closed or an agent is unregistered, the thread still queues MADs there: it
 * locks a mutex in freed memory, or at an offset from NULL. Here, a handle and its agents stay
 * until exit. Then libumad2sim.so frees all of them, without the thread.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <rdma/ib_user_mad.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* How long a thread waits between two checks whether it is cancelled. */
#define STEP_NS 10000000L
#define SECOND  1000000000L

/* The numbers that libumad2sim.so gives to handles of umad devices. */
static int is_umad(int fd)
{
	return fd >= 1024 && fd < 2048;
}

EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	int ret = pthread_mutex_trylock(mutex);
	struct timespec until;

	while (ret == EBUSY || ret == ETIMEDOUT) {
		pthread_testcancel();
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += STEP_NS;
		if (until.tv_nsec >= SECOND) {
			until.tv_nsec -= SECOND;
			until.tv_sec++;
		}
		ret = pthread_mutex_timedlock(mutex, &until);
	}
	return ret;
}

EXPORT int close(int fd)
{
	int (*call)(int fd);

	if (is_umad(fd))
		return 0;
	*(void **)&call = dlsym(RTLD_NEXT, "close");
	return call(fd);
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	int (*call)(int fd, unsigned long request, void *argument);
	void *argument;
	va_list args;

	if (is_umad(fd) && request == IB_USER_MAD_UNREGISTER_AGENT)
		return 0;
	va_start(args, request);
	argument = va_arg(args, void *);
	va_end(args);
	*(void **)&call = dlsym(RTLD_NEXT, "ioctl");
	return call(fd, request, argument);
}
