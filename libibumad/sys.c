/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Simulators preload libraries that replace exactly these C library calls, so don't use open64,
 * openat, epoll, __read_chk and the like (see also this file's build flags).
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
 * Negative errno of a call that returned -1. A simulator may return -1 without setting errno,
 * and a stale EAGAIN would mislead: that is why each function clears errno first.
 */
static int failure(void)
{
	return errno ? -errno : -EIO;
}

/* Simulators may also return the negative errno itself. */
static ssize_t checked(ssize_t result)
{
	return result == -1 ? failure() : result;
}

/* Not converted to another type: analyzers would report the descriptor as leaked. */
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

/*
 * glibc's 32-bit readdir() fails if an entry's inode number or offset needs 64 bits. Simulators
 * don't replace readdir().
 */
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
