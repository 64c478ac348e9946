/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Simulators preload libraries that stand in for these C library calls, by these very
 * names: no open64, __read_chk and the like (see also this file's build flags), no
 * openat, no epoll.
 */
#undef _FILE_OFFSET_BITS
#undef _TIME_BITS
#define _LARGEFILE64_SOURCE

#include "sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/*
 * The negative errno of a call that returned -1. A simulator may return -1 and leave errno
 * alone, and an older errno may be EAGAIN. Only for this case, each function sets errno to 0
 * before the call.
 */
static int failure(void)
{
	return errno ? -errno : -EIO;
}

/* A call's result; simulators may return the negative errno itself, errno left alone. */
static ssize_t checked(ssize_t result)
{
	return result == -1 ? failure() : result;
}

/* The descriptor is never converted: analyzers report a converted descriptor as leaked. */
int sys_open(const char *path, int flags)
{
	int fd;

	errno = 0;
	fd = open(path, flags | O_CLOEXEC);
	return fd != -1 ? fd : failure();
}

int sys_close(int fd)
{
	errno = 0;
	return (int)checked(close(fd));
}

#ifdef __GLIBC__
typedef unsigned long ioctl_request;
#else
typedef int ioctl_request; /* POSIX's, and musl's */
#endif

int sys_ioctl(int fd, unsigned long request, void *arg)
{
	errno = 0;
	return (int)checked(ioctl(fd, (ioctl_request)request, arg));
}

ssize_t sys_read(int fd, void *buf, size_t size)
{
	errno = 0;
	return checked(read(fd, buf, size));
}

ssize_t sys_write(int fd, const void *buf, size_t size)
{
	errno = 0;
	return checked(write(fd, buf, size));
}

int sys_poll(int fd, int timeout_ms)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};
	int ready;

	errno = 0;
	ready = poll(&pollfd, 1, timeout_ms);
	return ready > 0 ? pollfd.revents : (int)checked(ready);
}

int sys_poll_both(int fd, int other, int timeout_ms, int *other_revents)
{
	struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.fd = other, .events = POLLIN}};
	int ready;

	errno = 0;
	ready = poll(fds, 2, timeout_ms);
	*other_revents = ready > 0 ? fds[1].revents : 0;
	return ready > 0 ? fds[0].revents : (int)checked(ready);
}

/* With 32 bits, glibc's readdir() fails if the number or the offset of an entry needs 64. No
 * simulator stands in for readdir(). */
#ifdef __GLIBC__
#define dirent  dirent64
#define readdir readdir64
#endif

int sys_list(const char *path, sys_visit_fn *visit, void *arg)
{
	struct dirent *entry;
	DIR *dir = opendir(path);
	int ret = 0;

	if (!dir)
		return -errno;
	while (!ret) {
		errno = 0;
		entry = readdir(dir);
		if (!entry) {
			ret = -errno;
			break;
		}
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			ret = visit(entry->d_name, arg);
	}
	closedir(dir);
	return ret;
}
