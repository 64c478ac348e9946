/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Preloaded into each program that the check of a site runs (guarded.c). Before main() begins,
 * it appends the line "loaded PID" to the file SITE_SENT and uncovers the devices: without the
 * guard, the program has no device. The guard replaces libibumad's umad_send():
 *
 * - It sends Gets of SMPs, of the performance management and of the SA. All other MADs fail
 *   with EPERM, whatever the program does.
 * - With SITE_RATE it sends at most so many MADs a second. This limits tools without a rate
 *   option.
 * - When the program exits, it appends a line to SITE_SENT: "sent PID", how many MADs were
 *   sent, and how many failed.
 *
 * The guard does not see RMPP acknowledgements: the kernel sends them. They belong to responses
 * to GetTable and GetMulti, which the guard rejects.
 */
#define _GNU_SOURCE /* RTLD_NEXT */

#include <infiniband/umad.h>
#include <infiniband/umad_types.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

#include "guarded.h"

#define METHOD_GET 0x01
#define SECOND     1000000000ULL

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t sent, refused, next_ns;
static pid_t program; /* not a child of fork() */

static bool only_reads(const uint8_t *mad, int length)
{
	if (length < 24 || mad[3] != METHOD_GET)
		return false;
	switch (mad[1]) {
	case UMAD_CLASS_SUBN_LID_ROUTED:
	case UMAD_CLASS_SUBN_DIRECTED_ROUTE:
	case UMAD_CLASS_SUBN_ADM:
	case UMAD_CLASS_PERF_MGMT:
		return true;
	default:
		return false;
	}
}

/* The time at which this MAD may be sent; each MAD takes the next time. */
static uint64_t take_turn(uint64_t interval)
{
	struct timespec now;
	uint64_t turn;

	clock_gettime(CLOCK_MONOTONIC, &now);
	turn = (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
	pthread_mutex_lock(&lock);
	if (turn < next_ns)
		turn = next_ns;
	next_ns = turn + interval;
	pthread_mutex_unlock(&lock);
	return turn;
}

static void keep_rate(void)
{
	const char *text = getenv("SITE_RATE");
	uint64_t rate = text ? strtoull(text, NULL, 10) : 0, turn;
	struct timespec until;

	if (!rate)
		return;
	turn = take_turn(SECOND / rate);
	until.tv_sec = (time_t)(turn / SECOND);
	until.tv_nsec = (long)(turn % SECOND);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

void site_guard(void);

/* Not linked with libibumad: the program's libibumad is used. */
int umad_send(int portid, int agentid, void *umad, int length, int timeout_ms, int retries)
{
	static int (*next)(int, int, void *, int, int, int);
	static void *(*get_mad)(void *);
	bool allowed;

	pthread_mutex_lock(&lock);
	if (!next) {
		*(void **)&get_mad = dlsym(RTLD_NEXT, "umad_get_mad");
		*(void **)&next = dlsym(RTLD_NEXT, "umad_send");
	}
	allowed = get_mad && next && only_reads(get_mad(umad), length);
	sent += allowed;
	refused += !allowed;
	pthread_mutex_unlock(&lock);
	if (!allowed) {
		errno = EPERM;
		return -EIO;
	}
	keep_rate();
	return next(portid, agentid, umad, length, timeout_ms, retries);
}

/* A program that cannot be counted gets no device, and does not run. */
__attribute__((constructor)) static void begin(void)
{
	program = getpid();
	if (!guard_report("loaded %d", program)) {
		fputs("the guard: SITE_SENT cannot be written\n", stderr);
		_exit(2);
	}
	/* EINVAL: the program that executed this one has uncovered the folder */
	if (getenv(GUARDED_COVERED) && umount2(GUARDED_FOLDER, MNT_DETACH) && errno != EINVAL)
		perror("the guard: " GUARDED_FOLDER);
}

__attribute__((destructor)) static void end(void)
{
	if (getpid() == program)
		guard_report("sent %d %llu %llu", program, (unsigned long long)sent,
			     (unsigned long long)refused);
}

/* For programs that look for the guard in their own process. */
void site_guard(void)
{
}
