/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Replacements for the C library's calls that programs use on sysfs and on umad devices, under
 * all names that the C library has: with 64-bit offsets, for _FORTIFY_SOURCE, and of older
 * versions. The calls with 64-bit time on 32-bit machines are in calls_time64.c.
 */
#undef _FILE_OFFSET_BITS /* each name is a function of its own */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "calls.h"

/* Functions that the C library exports and its headers do not declare. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int folder, const char *path, int flags);
int __openat64_2(int folder, const char *path, int flags);
ssize_t __read_chk(int fd, void *buffer, size_t count, size_t size);
int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		const sigset_t *signals, size_t size);
ssize_t __readlink_chk(const char *path, char *buffer, size_t count, size_t size);
ssize_t __readlinkat_chk(int folder, const char *path, char *buffer, size_t count, size_t size);
int __fxstatat(int version, int folder, const char *path, struct stat *status, int flags);
int __fxstatat64(int version, int folder, const char *path, struct stat64 *status, int flags);
char *__realpath_chk(const char *path, char *resolved, size_t size);
int __xstat(int version, const char *path, struct stat *status);
int __lxstat(int version, const char *path, struct stat *status);
int __xstat64(int version, const char *path, struct stat64 *status);
int __lxstat64(int version, const char *path, struct stat64 *status);

/* glibc before 2.34 does not have these; programs built for it do not call them. */
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif
int close_range(unsigned int first, unsigned int last, int flags);
void closefrom(int first);

/* The files of counters are written just before a program reads them. Before IsSM is read, the
 * fabric must have received the close of an issm device. */
static void refresh(const char *path)
{
	struct request request = {.kind = REQUEST_REFRESH, .view = view_number()};
	struct reply reply;

	if (strstr(path, "/counters/") || strstr(path, "/cap_mask"))
		ask_fabric(&request, &reply, NULL, NULL);
}

/*
 * Whether a path leads to a umad or issm device of the real machine. Only paths into the view
 * should lead to devices, but a link or another folder may lead there, too. errno is ENODEV
 * then.
 */
static bool is_real_device(int folder, const char *path, int flags)
{
	char link[64], subsystem[256];
	struct statx status;
	int saved_errno = errno;
	ssize_t length;

	if (!fabric_folder() || !path)
		return false;
	if (REAL(statx)(folder, path, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0, STATX_TYPE,
			&status) ||
	    !S_ISCHR(status.stx_mode)) {
		errno = saved_errno;
		return false;
	}
	if (status.stx_rdev_major != UMAD_MAJOR || status.stx_rdev_minor >= 2 * ISSM_MINOR) {
		/* a device beyond the first 64 has another number */
		snprintf(link, sizeof(link), "/sys/dev/char/%u:%u/subsystem",
			 status.stx_rdev_major, status.stx_rdev_minor);
		length = REAL(readlink)(link, subsystem, sizeof(subsystem) - 1);
		subsystem[length < 0 ? 0 : length] = '\0';
		errno = saved_errno;
		if (!strstr(subsystem, "/infiniband_mad"))
			return false;
	}
	errno = ENODEV;
	return true;
}

/* The first step of every open: gets the path to use instead. False: the path leads to a
 * device of the real machine. */
static bool prepare_open(int folder, const char *path, int flags, char *buffer,
			 const char **instead)
{
	*instead = redirect_path_at(folder, path, buffer);
	if (!leads_into_view(*instead))
		return !is_real_device(folder, *instead, flags);
	refresh(*instead);
	return true;
}

/* Opens a device. -2: the path is no device; the caller opens the path in `buffer`. */
static int open_device(int folder, const char *path, int flags, char *buffer,
		       const char **instead)
{
	unsigned int number;
	enum device_kind kind;

	if (!prepare_open(folder, path, flags, buffer, instead))
		return -1;
	kind = device_of_path(*instead, &number);
	if (kind == DEVICE_NONE)
		return -2;
	if (REAL(access)(*instead, F_OK))
		return -1; /* the device was removed */
	return device_open(kind, number, flags);
}

#define OPEN(name, parameters, folder, call_path_only, call_with_mode)       \
	EXPORT int name parameters                                           \
	{                                                                    \
		char buffer[PATH_BYTES];                                     \
		const char *instead;                                         \
		mode_t mode = 0;                                             \
		va_list arguments;                                           \
		int fd = open_device(folder, path, flags, buffer, &instead); \
                                                                             \
		if (fd != -2)                                                \
			return fd;                                           \
		if (!(flags & (O_CREAT | __O_TMPFILE)))                      \
			return call_path_only;                               \
		va_start(arguments, flags);                                  \
		mode = va_arg(arguments, mode_t);                            \
		va_end(arguments);                                           \
		return call_with_mode;                                       \
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
#define OPEN_2(name, parameters, folder, call)                               \
	EXPORT int name parameters                                           \
	{                                                                    \
		char buffer[PATH_BYTES];                                     \
		const char *instead;                                         \
		int fd = open_device(folder, path, flags, buffer, &instead); \
                                                                             \
		return fd != -2 ? fd : call;                                 \
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

#define FOPEN(name)                                                     \
	EXPORT FILE *name(const char *path, const char *mode)           \
	{                                                               \
		char buffer[PATH_BYTES];                                \
		const char *instead;                                    \
                                                                        \
		if (!prepare_open(AT_FDCWD, path, 0, buffer, &instead)) \
			return NULL;                                    \
		return REAL(name)(instead, mode);                       \
	}

FOPEN(fopen)
FOPEN(fopen64)

#define FREOPEN(name)                                                       \
	EXPORT FILE *name(const char *path, const char *mode, FILE *stream) \
	{                                                                   \
		char buffer[PATH_BYTES];                                    \
		const char *instead;                                        \
                                                                            \
		if (!prepare_open(AT_FDCWD, path, 0, buffer, &instead)) {   \
			fclose(stream);                                     \
			errno = ENODEV;                                     \
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

EXPORT DIR *opendir(const char *path)
{
	char buffer[PATH_BYTES];

	return REAL(opendir)(redirect_path(path, buffer));
}

/* glob() calls internal functions of the C library, unless it is given others. */

static void *glob_open(const char *path)
{
	return opendir(path);
}

static void glob_close(void *folder)
{
	closedir(folder);
}

#define GLOB(name, glob_type, entry_type, status_type, readdir, stat, lstat)             \
	static entry_type *name##_read(void *folder)                                     \
	{                                                                                \
		return readdir(folder);                                                  \
	}                                                                                \
	static int name##_stat(const char *path, status_type *status)                    \
	{                                                                                \
		return stat(path, status);                                               \
	}                                                                                \
	static int name##_lstat(const char *path, status_type *status)                   \
	{                                                                                \
		return lstat(path, status);                                              \
	}                                                                                \
	EXPORT int name(const char *pattern, int flags,                                  \
			int (*on_error)(const char *path, int error), glob_type *result) \
	{                                                                                \
		glob_type callers = *result;                                             \
		int error;                                                               \
                                                                                         \
		if (flags & GLOB_ALTDIRFUNC)                                             \
			return REAL(name)(pattern, flags, on_error, result);             \
		result->gl_opendir = glob_open;                                          \
		result->gl_readdir = name##_read;                                        \
		result->gl_closedir = glob_close;                                        \
		result->gl_stat = name##_stat;                                           \
		result->gl_lstat = name##_lstat;                                         \
		error = REAL(name)(pattern, flags | GLOB_ALTDIRFUNC, on_error, result);  \
		result->gl_opendir = callers.gl_opendir;                                 \
		result->gl_readdir = callers.gl_readdir;                                 \
		result->gl_closedir = callers.gl_closedir;                               \
		result->gl_stat = callers.gl_stat;                                       \
		result->gl_lstat = callers.gl_lstat;                                     \
		result->gl_flags &= ~GLOB_ALTDIRFUNC;                                    \
		return error;                                                            \
	}

GLOB(glob, glob_t, struct dirent, struct stat, readdir, stat, lstat)
GLOB(glob64, glob64_t, struct dirent64, struct stat64, readdir64, stat64, lstat64)

EXPORT int scandir(const char *path, struct dirent ***list,
		   int (*filter)(const struct dirent *entry),
		   int (*compare)(const struct dirent **a, const struct dirent **b))
{
	char buffer[PATH_BYTES];

	return REAL(scandir)(redirect_path(path, buffer), list, filter, compare);
}

EXPORT int scandir64(const char *path, struct dirent64 ***list,
		     int (*filter)(const struct dirent64 *entry),
		     int (*compare)(const struct dirent64 **a, const struct dirent64 **b))
{
	char buffer[PATH_BYTES];

	return REAL(scandir64)(redirect_path(path, buffer), list, filter, compare);
}

STAT(stat, AT_FDCWD, (const char *path, struct stat *status), instead, status)
STAT(lstat, AT_FDCWD, (const char *path, struct stat *status), instead, status)
STAT(stat64, AT_FDCWD, (const char *path, struct stat64 *status), instead, status)
STAT(lstat64, AT_FDCWD, (const char *path, struct stat64 *status), instead, status)
STAT(__xstat, AT_FDCWD, (int version, const char *path, struct stat *status), version, instead,
     status)
STAT(__lxstat, AT_FDCWD, (int version, const char *path, struct stat *status), version, instead,
     status)
STAT(__xstat64, AT_FDCWD, (int version, const char *path, struct stat64 *status), version,
     instead, status)
STAT(__lxstat64, AT_FDCWD, (int version, const char *path, struct stat64 *status), version,
     instead, status)
STAT(fstatat, folder, (int folder, const char *path, struct stat *status, int flags), folder,
     instead, status, flags)
STAT(fstatat64, folder, (int folder, const char *path, struct stat64 *status, int flags),
     folder, instead, status, flags)

STAT(__fxstatat, folder,
     (int version, int folder, const char *path, struct stat *status, int flags), version,
     folder, instead, status, flags)
STAT(__fxstatat64, folder,
     (int version, int folder, const char *path, struct stat64 *status, int flags), version,
     folder, instead, status, flags)

EXPORT int statx(int folder, const char *path, int flags, unsigned int mask,
		 struct statx *status)
{
	char buffer[PATH_BYTES];
	unsigned int number;
	const char *instead = redirect_path_at(folder, path, buffer);
	enum device_kind kind = device_of_path(instead, &number);
	int result = REAL(statx)(folder, instead, flags, mask, status);

	if (result == 0 && kind != DEVICE_NONE) {
		status->stx_mode = S_IFCHR | 0600;
		status->stx_rdev_major = UMAD_MAJOR;
		status->stx_rdev_minor = kind == DEVICE_UMAD ? number : ISSM_MINOR + number;
	}
	return result;
}

EXPORT int access(const char *path, int mode)
{
	char buffer[PATH_BYTES];

	return REAL(access)(redirect_path(path, buffer), mode);
}

EXPORT int faccessat(int folder, const char *path, int mode, int flags)
{
	char buffer[PATH_BYTES];

	return REAL(faccessat)(folder, redirect_path_at(folder, path, buffer), mode, flags);
}

EXPORT int eaccess(const char *path, int mode)
{
	char buffer[PATH_BYTES];

	return REAL(eaccess)(redirect_path(path, buffer), mode);
}

EXPORT int euidaccess(const char *path, int mode)
{
	char buffer[PATH_BYTES];

	return REAL(euidaccess)(redirect_path(path, buffer), mode);
}

EXPORT ssize_t readlink(const char *path, char *target, size_t size)
{
	char buffer[PATH_BYTES];

	return REAL(readlink)(redirect_path(path, buffer), target, size);
}

EXPORT ssize_t __readlink_chk(const char *path, char *target, size_t count, size_t size)
{
	char buffer[PATH_BYTES];

	return REAL(__readlink_chk)(redirect_path(path, buffer), target, count, size);
}

EXPORT ssize_t readlinkat(int folder, const char *path, char *target, size_t size)
{
	char buffer[PATH_BYTES];

	return REAL(readlinkat)(folder, redirect_path_at(folder, path, buffer), target, size);
}

EXPORT ssize_t __readlinkat_chk(int folder, const char *path, char *target, size_t count,
				size_t size)
{
	char buffer[PATH_BYTES];

	return REAL(__readlinkat_chk)(folder, redirect_path_at(folder, path, buffer), target,
				      count, size);
}

EXPORT char *realpath(const char *path, char *resolved)
{
	char buffer[PATH_BYTES];
	const char *instead = redirect_path(path, buffer);
	char *result = REAL(realpath)(instead, resolved);

	if (result && instead != path)
		restore_path(result);
	return result;
}

EXPORT char *canonicalize_file_name(const char *path)
{
	return realpath(path, NULL);
}

EXPORT char *__realpath_chk(const char *path, char *resolved, size_t size)
{
	char buffer[PATH_BYTES];
	const char *instead = redirect_path(path, buffer);
	char *result = REAL(__realpath_chk)(instead, resolved, size);

	if (result && instead != path)
		restore_path(result);
	return result;
}

EXPORT int chdir(const char *path)
{
	char buffer[PATH_BYTES];

	return REAL(chdir)(redirect_path(path, buffer));
}

EXPORT ssize_t getxattr(const char *path, const char *name, void *value, size_t size)
{
	char buffer[PATH_BYTES];

	return REAL(getxattr)(redirect_path(path, buffer), name, value, size);
}

EXPORT ssize_t lgetxattr(const char *path, const char *name, void *value, size_t size)
{
	char buffer[PATH_BYTES];

	return REAL(lgetxattr)(redirect_path(path, buffer), name, value, size);
}
