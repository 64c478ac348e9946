/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Replaces the C library's calls on descriptors and those that open files, under all their
 * names: with 64-bit offsets, for _FORTIFY_SOURCE, and of older versions. For the calls with
 * 64-bit time on 32-bit machines see calls_time64.c.
 */
#undef _FILE_OFFSET_BITS /* each name is a function of its own */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "calls.h"

/* Functions that the C library exports but does not declare. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int folder, const char *path, int flags);
int __openat64_2(int folder, const char *path, int flags);
ssize_t __read_chk(int fd, void *buffer, size_t count, size_t size);
int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		const sigset_t *signals, size_t size);

/* glibc before 2.34 does not have these; programs built for it do not call them. */
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif
int close_range(unsigned int first, unsigned int last, int flags);
void closefrom(int first);

/* Counter files are written just before a program reads them. Before IsSM is read, the fabric
 * must have noticed that an issm device was closed. */
static void refresh(void)
{
	struct request request = {.kind = REQUEST_REFRESH, .view = view_number()};
	struct reply reply;

	ask_fabric(&request, &reply, NULL, NULL);
}

/* Whether a device of the machine, numbered beyond the first 64 umad devices, is a umad or issm
 * device. */
static bool __attribute__((noinline)) is_in_class(unsigned int major, unsigned int minor)
{
	char link[64] = "/sys/dev/char/", subsystem[128];
	char *end = append_number(link + strlen(link), major);
	ssize_t length;

	*end++ = ':';
	strcpy(append_number(end, minor), "/subsystem");
	length = REAL(readlink)(link, subsystem, sizeof(subsystem) - 1);
	subsystem[length < 0 ? 0 : length] = '\0';
	return strstr(subsystem, "/infiniband_mad") != NULL;
}

enum target {
	CHARACTER_DEVICE,
	FILE_OF_SYSFS, /* of the view */
	OTHER
};

/* What a path leads to, and the device's number. */
static enum target __attribute__((noinline))
find_target(int folder, const char *path, int flags, unsigned int *major, unsigned int *minor)
{
	struct statx status;

	if (REAL(statx)(folder, path, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0,
			STATX_TYPE | STATX_MODE, &status))
		return OTHER;
	*major = status.stx_rdev_major;
	*minor = status.stx_rdev_minor;
	if (S_ISCHR(status.stx_mode))
		return CHARACTER_DEVICE;
	return is_sysfs_file(status.stx_mode, status.stx_dev_major, status.stx_dev_minor)
		       ? FILE_OF_SYSFS
		       : OTHER;
}

/* Nobody, not even root, may create a file in sysfs, or write to one without the permission.
 * Sets errno to EACCES. */
static bool __attribute__((noinline)) may_write(int folder, const char *path, int flags)
{
	struct statx status;
	bool writes = (flags & O_ACCMODE) != O_RDONLY;

	if (flags & O_PATH || !(writes || flags & O_CREAT))
		return true;
	if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL) &&
	    REAL(faccessat)(folder, path, F_OK, 0) == 0)
		return true; /* EEXIST */
	if (REAL(statx)(folder, path, 0, STATX_TYPE | STATX_MODE, &status)
		    ? !(flags & O_CREAT)
		    : !writes || S_ISDIR(status.stx_mode) || status.stx_mode & 0200)
		return true;
	errno = EACCES;
	return false;
}

/*
 * Likewise for a path whose text does not lead into the view: it may lead there from a folder
 * or through a link. It must not lead to a umad or issm device of the real machine: sets errno
 * to ENODEV.
 */
static bool prepare_other(int folder, const char *path, int flags)
{
	unsigned int major = 0, minor = 0;
	int saved_errno = errno;
	enum target target;
	bool is_real;

	if (!fabric_folder() || !path)
		return true;
	target = find_target(folder, path, flags, &major, &minor);
	is_real =
		target == CHARACTER_DEVICE &&
		((major == UMAD_MAJOR && minor < 2 * ISSM_MINOR) || is_in_class(major, minor));
	errno = is_real ? ENODEV : saved_errno;
	if (target != FILE_OF_SYSFS)
		return !is_real;
	refresh();
	return may_write(folder, path, flags);
}

/* The first step of every open of a redirected path. False if it leads to a device of the real
 * machine, or must not be written. */
static bool prepare_open(int folder, const char *instead, int flags)
{
	if (!leads_into_view(instead))
		return prepare_other(folder, instead, flags);
	if (strstr(instead, "/counters/") || strstr(instead, "/cap_mask"))
		refresh();
	return !leads_into_sysfs(instead) || may_write(AT_FDCWD, instead, flags);
}

/* The open() flags of an fopen() mode, as far as may_write() needs them. */
static int flags_of(const char *mode)
{
	int flags = mode[0] == 'r' ? 0 : O_WRONLY | O_CREAT;

	if (strchr(mode, 'x'))
		flags |= O_EXCL;
	return strchr(mode, '+') ? flags | O_RDWR : flags;
}

/* Opens a device. -2: the redirected path is not a device, so the caller opens it. */
static int open_device(int folder, const char *instead, int flags)
{
	unsigned int number;
	enum device_kind kind;

	if (!prepare_open(folder, instead, flags))
		return -1;
	kind = device_of_path(instead, &number);
	return kind == DEVICE_NONE ? -2 : device_open(kind, number, flags, instead);
}

#define OPEN(name, parameters, folder, call_path_only, call_with_mode) \
	EXPORT int name parameters                                     \
	{                                                              \
		const char *instead = REDIRECT_AT(folder, path);       \
		mode_t mode = 0;                                       \
		va_list arguments;                                     \
		int fd = open_device(folder, instead, flags);          \
                                                                       \
		if (fd != -2)                                          \
			return fd;                                     \
		if (!(flags & (O_CREAT | __O_TMPFILE)))                \
			return call_path_only;                         \
		va_start(arguments, flags);                            \
		mode = va_arg(arguments, mode_t);                      \
		va_end(arguments);                                     \
		return call_with_mode;                                 \
	}

OPEN(open, (const char *path, int flags, ...), AT_FDCWD, REAL(open)(instead, flags),
     REAL(open)(instead, flags, mode))
OPEN(open64, (const char *path, int flags, ...), AT_FDCWD, REAL(open64)(instead, flags),
     REAL(open64)(instead, flags, mode))
OPEN(openat, (int folder, const char *path, int flags, ...), folder,
     REAL(openat)(folder, instead, flags), REAL(openat)(folder, instead, flags, mode))
OPEN(openat64, (int folder, const char *path, int flags, ...), folder,
     REAL(openat64)(folder, instead, flags), REAL(openat64)(folder, instead, flags, mode))

/* The hardened versions have no mode argument. */
#define OPEN_2(name, parameters, folder, call)                   \
	EXPORT int name parameters                               \
	{                                                        \
		const char *instead = REDIRECT_AT(folder, path); \
		int fd = open_device(folder, instead, flags);    \
                                                                 \
		return fd != -2 ? fd : call;                     \
	}

OPEN_2(__open_2, (const char *path, int flags), AT_FDCWD, REAL(open)(instead, flags, 0))
OPEN_2(__open64_2, (const char *path, int flags), AT_FDCWD, REAL(open64)(instead, flags, 0))
OPEN_2(__openat_2, (int folder, const char *path, int flags), folder,
       REAL(openat)(folder, instead, flags, 0))
OPEN_2(__openat64_2, (int folder, const char *path, int flags), folder,
       REAL(openat64)(folder, instead, flags, 0))

EXPORT int creat(const char *path, mode_t mode)
{
	return open(path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

EXPORT int creat64(const char *path, mode_t mode)
{
	return open64(path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

#define FOPEN(name)                                                   \
	EXPORT FILE *name(const char *path, const char *mode)         \
	{                                                             \
		const char *instead = REDIRECT(path);                 \
                                                                      \
		if (!prepare_open(AT_FDCWD, instead, flags_of(mode))) \
			return NULL;                                  \
		return REAL(name)(instead, mode);                     \
	}

FOPEN(fopen)
FOPEN(fopen64)

#define FREOPEN(name)                                                       \
	EXPORT FILE *name(const char *path, const char *mode, FILE *stream) \
	{                                                                   \
		const char *instead = REDIRECT(path);                       \
                                                                            \
		if (!prepare_open(AT_FDCWD, instead, flags_of(mode))) {     \
			int error = errno;                                  \
                                                                            \
			fclose(stream);                                     \
			errno = error;                                      \
			return NULL;                                        \
		}                                                           \
		return REAL(name)(instead, mode, stream);                   \
	}

FREOPEN(freopen)
FREOPEN(freopen64)

EXPORT int close(int fd)
{
	device_close(fd);
	return REAL(close)(fd);
}

EXPORT int close_range(unsigned int first, unsigned int last, int flags)
{
	int result = REAL(close_range)(first, last, flags);

	if (result == 0 && !(flags & (int)CLOSE_RANGE_CLOEXEC))
		device_close_range(first, last);
	return result;
}

EXPORT void closefrom(int first)
{
	REAL(closefrom)(first);
	device_close_range(first < 0 ? 0 : (unsigned int)first, UINT_MAX);
}

/* The C library does not call close() to close a stream's descriptor. */
EXPORT int fclose(FILE *stream)
{
	int before = errno;

	device_close(fileno(stream));
	errno = before;
	return REAL(fclose)(stream);
}

EXPORT int dup(int fd)
{
	int copy = REAL(dup)(fd);

	if (copy >= 0)
		device_share(fd, copy);
	return copy;
}

EXPORT int dup2(int fd, int copy)
{
	int result = REAL(dup2)(fd, copy);

	if (result >= 0 && fd != copy)
		device_share(fd, copy);
	return result;
}

EXPORT int dup3(int fd, int copy, int flags)
{
	int result = REAL(dup3)(fd, copy, flags);

	if (result >= 0)
		device_share(fd, copy);
	return result;
}

FCNTL(fcntl)
FCNTL(fcntl64)

EXPORT ssize_t read(int fd, void *buffer, size_t count)
{
	struct device *device = device_get(fd);
	ssize_t length;

	if (!device)
		return REAL(read)(fd, buffer, count);
	length = device_read(device, fd, buffer, count);
	device_put(device);
	return length;
}

EXPORT ssize_t __read_chk(int fd, void *buffer, size_t count, size_t size)
{
	return count <= size ? read(fd, buffer, count)
			     : REAL(__read_chk)(fd, buffer, count, size);
}

EXPORT ssize_t write(int fd, const void *buffer, size_t count)
{
	struct device *device = device_get(fd);
	ssize_t length;

	if (!device)
		return REAL(write)(fd, buffer, count);
	length = device_write(device, fd, buffer, count);
	device_put(device);
	return length;
}

#define TRANSFER(name, transfer, parameters, ...)                     \
	EXPORT ssize_t name parameters                                \
	{                                                             \
		struct device *device = device_get(fd);               \
		ssize_t length;                                       \
                                                                      \
		if (!device)                                          \
			return REAL(name)(__VA_ARGS__);               \
		length = device_##transfer(device, fd, parts, count); \
		device_put(device);                                   \
		return length;                                        \
	}

TRANSFER(readv, readv, (int fd, const struct iovec *parts, int count), fd, parts, count)
TRANSFER(writev, writev, (int fd, const struct iovec *parts, int count), fd, parts, count)

/* The size that a descriptor's file has in sysfs; 0 if it is not a sysfs file. */
static off64_t __attribute__((noinline)) sysfs_bytes(int fd)
{
	int saved_errno = errno;
	struct statx status;
	bool is_sysfs =
		!REAL(statx)(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_MODE, &status) &&
		is_sysfs_file(status.stx_mode, status.stx_dev_major, status.stx_dev_minor);

	errno = saved_errno;
	return is_sysfs ? SYSFS_FILE_BYTES : 0;
}

/* The position from the start of the file to which lseek() goes. The kernel finds no holes in
 * sysfs files. */
static off64_t position_of(off64_t offset, int whence, off64_t size)
{
	if (whence == SEEK_END)
		return offset + size;
	if (offset < 0 || offset >= size) {
		errno = ENXIO;
		return -1;
	}
	return whence == SEEK_DATA ? offset : size;
}

/* A value is shorter than the size in stat(): cp would take the rest for a hole. */
#define SEEK(name, offset)                                                               \
	EXPORT offset name(int fd, offset position, int whence)                          \
	{                                                                                \
		off64_t size =                                                           \
			whence >= SEEK_END && whence <= SEEK_HOLE ? sysfs_bytes(fd) : 0; \
		off64_t from_start = size ? position_of(position, whence, size) : -1;    \
                                                                                         \
		if (!size)                                                               \
			return REAL(name)(fd, position, whence);                         \
		if (from_start < 0 && whence != SEEK_END)                                \
			return -1;                                                       \
		return REAL(name)(fd, (offset)from_start, SEEK_SET);                     \
	}

SEEK(lseek, off_t)
SEEK(lseek64, off64_t)

/* A device has no position and takes none of the flags. */
static int refuse_position(off64_t position, int flags)
{
	if (position == -1 && !(flags & ~RWF_HIPRI))
		return 0;
	errno = position == -1 ? EOPNOTSUPP : ESPIPE;
	return -1;
}

#define TRANSFER_2(name, transfer, offset)                                                 \
	EXPORT ssize_t name(int fd, const struct iovec *parts, int count, offset position, \
			    int flags)                                                     \
	{                                                                                  \
		struct device *device = device_get(fd);                                    \
		ssize_t length;                                                            \
                                                                                           \
		if (!device)                                                               \
			return REAL(name)(fd, parts, count, position, flags);              \
		length = refuse_position(position, flags);                                 \
		if (!length)                                                               \
			length = device_##transfer(device, fd, parts, count);              \
		device_put(device);                                                        \
		return length;                                                             \
	}

TRANSFER_2(preadv2, readv, off_t)
TRANSFER_2(preadv64v2, readv, off64_t)
TRANSFER_2(pwritev2, writev, off_t)
TRANSFER_2(pwritev64v2, writev, off64_t)

IOCTL(ioctl)

POLL(poll, (struct pollfd * fds, nfds_t count, int timeout), fds, count, timeout)
POLL(__poll_chk, (struct pollfd * fds, nfds_t count, int timeout, size_t size), fds, count,
     timeout, size)
POLL(ppoll,
     (struct pollfd * fds, nfds_t count, const struct timespec *timeout,
      const sigset_t *signals),
     fds, count, timeout, signals)
POLL(__ppoll_chk,
     (struct pollfd * fds, nfds_t count, const struct timespec *timeout,
      const sigset_t *signals, size_t size),
     fds, count, timeout, signals, size)
