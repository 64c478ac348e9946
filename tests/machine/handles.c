/* SPDX-License-Identifier: BSD-2-Clause */

/* System calls of the program: umad devices, sysfs, faults. */

#include "internal.h"
#include "virtual.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define DEV_DIR    "/dev/infiniband/"
#define MOST_FDS   4096
#define FIRST_HIGH 2048

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
/* The names with _FILE_OFFSET_BITS=64. */
FILE *__wrap_fopen64(const char *path, const char *mode) __attribute__((alias("__wrap_fopen")));
int __wrap_open64(const char *path, int flags, ...) __attribute__((alias("__wrap_open")));
DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);
int __real_close(int fd);
int __wrap_close(int fd);
ssize_t __real_read(int fd, void *buffer, size_t size);
/* Reading from a pipe waits by virtual time. */
static void wait_for_input(int fd)
{
	struct pollfd input = {.fd = fd, .events = POLLIN};

	if (virtual_sees_machine() && !(fcntl(fd, F_GETFL) & O_NONBLOCK))
		virtual_poll(&input, 1, -1);
}

ssize_t __wrap_read(int fd, void *buffer, size_t size);
ssize_t __real_write(int fd, const void *buffer, size_t size);
ssize_t __wrap_write(int fd, const void *buffer, size_t size);
int __real_ioctl(int fd, unsigned long request, void *argument);
int __wrap_ioctl(int fd, unsigned long request, void *argument);
int __real_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __real_eventfd(unsigned value, int flags);
int __wrap_eventfd(unsigned value, int flags);
int __real_timerfd_create(clockid_t clock, int flags);
int __wrap_timerfd_create(clockid_t clock, int flags);
int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags);
int __real_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);
void *__real_mmap(void *start, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *start, size_t size, int protection, int flags, int fd, off_t offset);
void *__real_mmap64(void *start, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *start, size_t size, int protection, int flags, int fd, off_t offset);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);

/* An open umad device. Its descriptor is an eventfd, readable while there are messages. */
struct open_device {
	struct handle *handle;
	struct shared *shared;
	int fd;
	bool readable;
};

/* All guarded by the lock of virtual.h. */
static struct open_device *devices[MOST_FDS]; /* by the number of the handle */
static int count;
static bool old_kernel, high;
static struct {
	size_t length; /* 0: the next message stays as it is */
	unsigned status;
} deformed;
static struct {
	unsigned calls, fail_in;
	int error;
	_Atomic int64_t slow_us;
} faults[MACHINE_CALLS];
static ssize_t next_read; /* 0: that of the message */
static _Alignas(8) uint8_t written_header[64];

/* Counts a call; the error that it is to fail with, or 0. */
static int begin(enum machine_call call)
{
	faults[call].calls++;
	if (faults[call].fail_in == MACHINE_ALL)
		return faults[call].error;
	if (!faults[call].fail_in || --faults[call].fail_in)
		return 0;
	return faults[call].error;
}

static bool begin_locked(enum machine_call call)
{
	int error;

	virtual_lock();
	error = begin(call);
	virtual_unlock();
	if (error)
		errno = error;
	return !error;
}

void machine_fail(enum machine_call call, unsigned n, int error)
{
	virtual_lock();
	faults[call].fail_in = n;
	faults[call].error = error;
	virtual_unlock();
}

void machine_slow_call(enum machine_call call, int64_t us)
{
	virtual_lock();
	faults[call].slow_us = us;
	virtual_unlock();
}

/* After a call, without the lock. */
static void be_slow(enum machine_call call)
{
	int64_t us = faults[call].slow_us;

	if (us)
		machine_pass(us);
}

void machine_read_result(ssize_t result)
{
	virtual_lock();
	next_read = result;
	virtual_unlock();
}

const void *machine_written(void)
{
	return written_header;
}

unsigned machine_calls(enum machine_call call)
{
	unsigned calls;

	virtual_lock();
	calls = faults[call].calls;
	virtual_unlock();
	return calls;
}

int machine_handles(void)
{
	return count;
}

void machine_deform(size_t length, unsigned status)
{
	virtual_lock();
	deformed.length = length;
	deformed.status = status;
	virtual_unlock();
}

void machine_old_kernel(void)
{
	old_kernel = true;
}

void machine_high_handles(void)
{
	high = true;
}

void machine_receive(const void *header, const void *bytes, size_t length)
{
	struct message *message = __real_calloc(1, sizeof(*message) + length);
	int number = MOST_FDS - 1;

	memcpy(&message->header, header, sizeof(message->header));
	message->length = length;
	if (length)
		memcpy(message->data, bytes, length);
	virtual_lock();
	while (number >= 0 && (!devices[number] || devices[number]->handle->gone))
		number--;
	if (number >= 0)
		handle_queue(devices[number]->handle, message);
	else
		free(message);
	virtual_unlock();
}

/* --- handles -------------------------------------------------------------------- */

static struct open_device *device_of(int fd)
{
	return fd >= 0 && fd < MOST_FDS ? devices[fd] : NULL;
}

/* The descriptor shows whether the handle is readable. */
static void show(struct open_device *device)
{
	bool readable = device->handle->queue || device->handle->gone;
	uint64_t value = 1;

	if (readable == device->readable)
		return;
	device->readable = readable;
	if (readable ? __real_write(device->fd, &value, sizeof(value)) < 0
		     : __real_read(device->fd, &value, sizeof(value)) < 0)
		abort();
}

static void shown(struct handle *handle)
{
	show(handle->owner);
}

short handles_revents(int fd)
{
	const struct open_device *device = device_of(fd);

	if (!device)
		return -1;
	if (device->handle->gone)
		return POLLERR;
	return (short)(POLLOUT | (device->handle->queue ? POLLIN : 0));
}

static int choose_number(int fd)
{
	int number = FIRST_HIGH;

	while (high && number < MOST_FDS && devices[number])
		number++;
	return high ? number : fd;
}

static int open_device(const char *name)
{
	struct host_port *host = fabric_device(name);
	struct open_device *device;
	int number;

	if (!host || !host->present)
		return host ? -ENXIO : -ENOENT;
	device = calloc(1, sizeof(*device));
	device->fd = __real_eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	number = device->fd < 0 ? MOST_FDS : choose_number(device->fd);
	if (number >= MOST_FDS) {
		if (device->fd >= 0)
			__real_close(device->fd);
		free(device);
		return -EMFILE;
	}
	device->shared = calloc(1, sizeof(*device->shared));
	atomic_store(&device->shared->smi_port, cable(fabric_of_machine(), host->port)->number);
	device->handle = handle_open(fabric_of_machine(), host);
	device->handle->shared = device->shared;
	device->handle->owner = device;
	device->handle->readable = shown;
	device->handle->removed = shown;
	devices[number] = device;
	count++;
	return number;
}

static void close_device(int number)
{
	struct open_device *device = devices[number];

	devices[number] = NULL;
	count--;
	handle_close(device->handle);
	__real_close(device->fd);
	free(device->shared);
	free(device);
}

/* What a child reads is still there for its parent. */
static void begin_child(void)
{
	for (int number = 0; number < MOST_FDS; number++) {
		struct open_device *device = devices[number];
		int own = device ? __real_eventfd(device->readable, EFD_NONBLOCK) : -1;

		if (own >= 0) {
			dup2(own, device->fd);
			__real_close(own);
		}
	}
}

void handles_begin(void)
{
	static bool forks;

	if (!forks)
		pthread_atfork(NULL, NULL, begin_child);
	forks = true;
	old_kernel = high = false;
	deformed.length = 0;
	memset(faults, 0, sizeof(faults));
	next_read = 0;
}

int handles_end(void)
{
	int left = count;

	for (int number = 0; number < MOST_FDS; number++)
		if (devices[number])
			close_device(number);
	return left;
}

/* Replaces the first message. */
static void deform(struct handle *handle)
{
	struct message *old = handle->queue;
	struct message *message = calloc(1, sizeof(*message) + deformed.length);

	memcpy(message, old,
	       sizeof(*old) + (old->length < deformed.length ? old->length : deformed.length));
	message->length = deformed.length;
	message->header.status = deformed.status;
	deformed.length = 0;
	handle->queue = message;
	if (!message->next)
		handle->queue_end = &message->next;
	free(old);
}

static ssize_t read_message(struct open_device *device, uint8_t *buffer, size_t size)
{
	size_t header =
		atomic_load(&device->shared->pkey_layout) ? HEADER_BYTES : OLD_HEADER_BYTES;
	const struct message *first;
	struct message *message;
	size_t length;

	if (size < header)
		return -EINVAL;
	if (device->handle->gone)
		return -EIO;
	if (!device->handle->queue)
		return -EAGAIN;
	if (deformed.length)
		deform(device->handle);
	first = device->handle->queue;
	length = first->length;
	if (size < header + length) {
		if (length <= MACHINE_MAD || size < header + MACHINE_MAD)
			return -EINVAL;
		memcpy(buffer, &first->header, header);
		length += header;
		memcpy(buffer + 16, &(uint32_t){(uint32_t)length}, sizeof(uint32_t));
		memcpy(buffer + header, first->data, MACHINE_MAD);
		return -ENOSPC;
	}
	message = handle_take(device->handle, &header);
	memcpy(buffer, &message->header, header);
	memcpy(buffer + header, message->data, length);
	free(message);
	show(device);
	return (ssize_t)(header + length);
}

static int control(struct open_device *device, unsigned long request, void *argument)
{
	uint8_t bytes[ARGUMENT_BYTES] = {0};
	size_t size = request == IB_USER_MAD_ENABLE_PKEY ? 0 : request >> 16 & 0x3fff;
	int error;

	if (old_kernel && request != IB_USER_MAD_REGISTER_AGENT &&
	    request != IB_USER_MAD_UNREGISTER_AGENT)
		return -ENOTTY;
	if (size > sizeof(bytes))
		return -ENOTTY;
	if (size)
		memcpy(bytes, argument, size);
	error = handle_ioctl(device->handle, (uint32_t)request, bytes);
	if (size)
		memcpy(argument, bytes, size);
	return error;
}

static ssize_t write_message(struct open_device *device, const void *buffer, size_t size)
{
	int error = check_write(device->shared, buffer, size);
	uint64_t key = error ? 0 : transaction_of(device->shared, buffer);

	if (key && !transaction_enter(device->shared, key))
		return -EINVAL;
	memcpy(written_header, buffer, size < 64 ? size : 64);
	if (!error)
		error = handle_write(device->handle, buffer, size);
	if (error && key)
		transaction_leave(device->shared, key);
	return error ? error : (ssize_t)size;
}

/* The C library's result. */
static ssize_t result_of(ssize_t result)
{
	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}

/* --- in place of the C library's ------------------------------------------------ */

int __wrap_open(const char *path, int flags, ...)
{
	char real[512];
	const char *found;
	mode_t mode = 0;
	va_list rest;
	int fd;

	if (flags & O_CREAT) {
		va_start(rest, flags);
		mode = va_arg(rest, mode_t);
		va_end(rest);
	}
	if (!virtual_sees_machine())
		return __real_open(path, flags, mode);
	if (!strncmp(path, DEV_DIR, strlen(DEV_DIR))) {
		virtual_lock();
		fd = -begin(MACHINE_OPEN);
		if (!fd)
			fd = open_device(path + strlen(DEV_DIR));
		virtual_unlock();
		return (int)result_of(fd);
	}
	found = fabric_path(path, real);
	if (!found)
		return __real_open(path, flags, mode);
	be_slow(MACHINE_FILES);
	return begin_locked(MACHINE_FILES) ? __real_open(found, flags, mode) : -1;
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	char real[512];
	const char *found = virtual_sees_machine() ? fabric_path(path, real) : NULL;

	return __real_fopen(found ? found : path, mode);
}

DIR *__wrap_opendir(const char *path)
{
	char real[512];
	const char *found = virtual_sees_machine() ? fabric_path(path, real) : NULL;

	if (!found)
		return __real_opendir(path);
	return begin_locked(MACHINE_FILES) ? __real_opendir(found) : NULL;
}

int __wrap_close(int fd)
{
	bool is_device;

	if (!virtual_sees_machine())
		return __real_close(fd);
	virtual_lock();
	is_device = device_of(fd) != NULL;
	if (is_device)
		close_device(fd);
	else
		virtual_forget_timer(fd);
	virtual_unlock();
	return is_device ? 0 : __real_close(fd);
}

/*
 * Whether the descriptor is a handle; then the lock is held, and *error is that of the call.
 * The call is a cancellation point, unless it is an ioctl.
 */
static struct open_device *enter(int fd, enum machine_call call, int *error)
{
	struct open_device *device;

	if (!virtual_sees_machine())
		return NULL;
	if (call != MACHINE_IOCTL)
		pthread_testcancel();
	virtual_lock();
	device = device_of(fd);
	if (device)
		*error = -begin(call);
	else
		virtual_unlock();
	return device;
}

ssize_t __wrap_read(int fd, void *buffer, size_t size)
{
	int error;
	struct open_device *device = enter(fd, MACHINE_READ, &error);
	ssize_t got;

	if (!device) {
		wait_for_input(fd);
		return __real_read(fd, buffer, size);
	}
	got = error ? error : read_message(device, buffer, size);
	if (next_read && got > 0) {
		got = next_read;
		next_read = 0;
	}
	virtual_unlock();
	return result_of(got);
}

ssize_t __wrap_write(int fd, const void *buffer, size_t size)
{
	int error;
	struct open_device *device = enter(fd, MACHINE_WRITE, &error);
	ssize_t written;

	if (!device)
		return __real_write(fd, buffer, size);
	written = error;
	if (!error || faults[MACHINE_WRITE].slow_us)
		written = write_message(device, buffer, size);
	virtual_unlock();
	if (error)
		written = error;
	be_slow(MACHINE_WRITE);
	return result_of(written);
}

int __wrap_ioctl(int fd, unsigned long request, void *argument)
{
	int error;
	struct open_device *device = enter(fd, MACHINE_IOCTL, &error);

	if (!device)
		return __real_ioctl(fd, request, argument);
	if (!error)
		error = control(device, request, argument);
	virtual_unlock();
	be_slow(MACHINE_IOCTL);
	return (int)result_of(error);
}

int __wrap_poll(struct pollfd *fds, nfds_t nfds, int timeout_ms)
{
	bool of_device = false;
	int ret = 0;

	if (!virtual_sees_machine())
		return __real_poll(fds, nfds, timeout_ms);
	pthread_testcancel();
	virtual_lock();
	for (nfds_t i = 0; i < nfds && !of_device; i++)
		if (device_of(fds[i].fd)) {
			ret = -begin(MACHINE_POLL);
			of_device = true;
		}
	virtual_unlock();
	if (!ret)
		ret = virtual_poll(fds, nfds, timeout_ms);
	if (of_device)
		be_slow(MACHINE_POLL);
	return (int)result_of(ret);
}

int __wrap_eventfd(unsigned value, int flags)
{
	if (virtual_sees_machine() && !begin_locked(MACHINE_EVENTFD))
		return -1;
	return __real_eventfd(value, flags);
}

int __wrap_timerfd_create(clockid_t clock, int flags)
{
	if (!virtual_sees_machine())
		return __real_timerfd_create(clock, flags);
	return begin_locked(MACHINE_TIMERFD) ? __real_eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)
					     : -1;
}

int __wrap_epoll_create1(int flags)
{
	if (virtual_sees_machine() && !begin_locked(MACHINE_EPOLL))
		return -1;
	return __real_epoll_create1(flags);
}

int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
	if (operation == EPOLL_CTL_ADD && virtual_sees_machine() &&
	    !begin_locked(MACHINE_EPOLL))
		return -1;
	return __real_epoll_ctl(epoll, operation, fd, event);
}

void *__wrap_mmap(void *start, size_t size, int protection, int flags, int fd, off_t offset)
{
	if (virtual_sees_machine() && !begin_locked(MACHINE_MMAP))
		return MAP_FAILED;
	return __real_mmap(start, size, protection, flags, fd, offset);
}

/* The name with _FILE_OFFSET_BITS=64. */
void *__wrap_mmap64(void *start, size_t size, int protection, int flags, int fd, off_t offset)
{
	if (virtual_sees_machine() && !begin_locked(MACHINE_MMAP))
		return MAP_FAILED;
	return __real_mmap64(start, size, protection, flags, fd, offset);
}

static bool may_allocate(void)
{
	return !virtual_sees_machine() || begin_locked(MACHINE_MALLOC);
}

void *__wrap_malloc(size_t size)
{
	return may_allocate() ? __real_malloc(size) : NULL;
}

void *__wrap_calloc(size_t members, size_t size)
{
	return may_allocate() ? __real_calloc(members, size) : NULL;
}

void *__wrap_realloc(void *memory, size_t size)
{
	return may_allocate() ? __real_realloc(memory, size) : NULL;
}
