/* SPDX-License-Identifier: BSD-2-Clause */

/* Replaces the C library's calls that look at files without opening them, under all their names
 * (see calls.c). */
#undef _FILE_OFFSET_BITS /* each name is a function of its own */
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "calls.h"

/* Functions that the C library exports but does not declare. */
ssize_t __readlink_chk(const char *path, char *buffer, size_t count, size_t size);
ssize_t __readlinkat_chk(int folder, const char *path, char *buffer, size_t count, size_t size);
char *__realpath_chk(const char *path, char *resolved, size_t size);
int __xstat(int version, const char *path, struct stat *status);
int __lxstat(int version, const char *path, struct stat *status);
int __fxstat(int version, int fd, struct stat *status);
int __fxstatat(int version, int folder, const char *path, struct stat *status, int flags);
int __xstat64(int version, const char *path, struct stat64 *status);
int __lxstat64(int version, const char *path, struct stat64 *status);
int __fxstat64(int version, int fd, struct stat64 *status);
int __fxstatat64(int version, int folder, const char *path, struct stat64 *status, int flags);

STAT(stat, (const char *path, struct stat *status), instead, status)
STAT(lstat, (const char *path, struct stat *status), instead, status)
STAT(stat64, (const char *path, struct stat64 *status), instead, status)
STAT(lstat64, (const char *path, struct stat64 *status), instead, status)
STAT(__xstat, (int version, const char *path, struct stat *status), version, instead, status)
STAT(__lxstat, (int version, const char *path, struct stat *status), version, instead, status)
STAT(__xstat64, (int version, const char *path, struct stat64 *status), version, instead,
     status)
STAT(__lxstat64, (int version, const char *path, struct stat64 *status), version, instead,
     status)
STAT_AT(fstatat, (int folder, const char *path, struct stat *status, int flags), folder,
	instead, status, flags)
STAT_AT(fstatat64, (int folder, const char *path, struct stat64 *status, int flags), folder,
	instead, status, flags)

STAT_AT(__fxstatat, (int version, int folder, const char *path, struct stat *status, int flags),
	version, folder, instead, status, flags)
STAT_AT(__fxstatat64,
	(int version, int folder, const char *path, struct stat64 *status, int flags), version,
	folder, instead, status, flags)

FSTAT(fstat, (int fd, struct stat *status), fd, status)
FSTAT(fstat64, (int fd, struct stat64 *status), fd, status)
FSTAT(__fxstat, (int version, int fd, struct stat *status), version, fd, status)
FSTAT(__fxstat64, (int version, int fd, struct stat64 *status), version, fd, status)

/* statx() of a handle */
static void show_handle(int fd, struct statx *status)
{
	struct device *device = device_get_any(fd);

	if (device && device->kind != DEVICE_UEVENTS)
		*status = device->file;
	if (device)
		device_put(device);
}

/* As SHOW_FILE() does */
static void show_sysfs_file(const char *redirected, struct statx *status)
{
	if (is_sysfs_file(status->stx_mode, status->stx_dev_major, status->stx_dev_minor)) {
		status->stx_mode &= (uint16_t)~SYSFS_FILE;
		status->stx_size = SYSFS_FILE_BYTES;
		status->stx_blocks = 0;
	} else if (leads_into_view(redirected) && !S_ISREG(status->stx_mode)) {
		status->stx_size = status->stx_blocks = 0;
	}
}

EXPORT int statx(int folder, const char *path, int flags, unsigned int mask,
		 struct statx *status)
{
	unsigned int number;
	const char *instead = REDIRECT_AT(folder, path);
	enum device_kind kind = device_of_path(instead, &number);
	int result = REAL(statx)(folder, instead, flags, mask, status);

	if (result == 0)
		show_sysfs_file(instead, status);
	if (result == 0 && is_empty(path)) {
		show_handle(folder, status);
	} else if (result == 0 && kind != DEVICE_NONE) {
		status->stx_mode = S_IFCHR | 0600;
		status->stx_rdev_major = UMAD_MAJOR;
		status->stx_rdev_minor = kind == DEVICE_UMAD ? number : ISSM_MINOR + number;
	}
	return result;
}

EXPORT int access(const char *path, int mode)
{
	return REAL(access)(REDIRECT(path), mode);
}

EXPORT int faccessat(int folder, const char *path, int mode, int flags)
{
	return REAL(faccessat)(folder, REDIRECT_AT(folder, path), mode, flags);
}

EXPORT int eaccess(const char *path, int mode)
{
	return REAL(eaccess)(REDIRECT(path), mode);
}

EXPORT int euidaccess(const char *path, int mode)
{
	return REAL(euidaccess)(REDIRECT(path), mode);
}

EXPORT ssize_t readlink(const char *path, char *target, size_t size)
{
	return REAL(readlink)(REDIRECT(path), target, size);
}

EXPORT ssize_t __readlink_chk(const char *path, char *target, size_t count, size_t size)
{
	return REAL(__readlink_chk)(REDIRECT(path), target, count, size);
}

EXPORT ssize_t readlinkat(int folder, const char *path, char *target, size_t size)
{
	return REAL(readlinkat)(folder, REDIRECT_AT(folder, path), target, size);
}

EXPORT ssize_t __readlinkat_chk(int folder, const char *path, char *target, size_t count,
				size_t size)
{
	return REAL(__readlinkat_chk)(folder, REDIRECT_AT(folder, path), target, count, size);
}

EXPORT char *realpath(const char *path, char *resolved)
{
	const char *instead = REDIRECT(path);
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
	const char *instead = REDIRECT(path);
	char *result = REAL(__realpath_chk)(instead, resolved, size);

	if (result && instead != path)
		restore_path(result);
	return result;
}

EXPORT int chdir(const char *path)
{
	return REAL(chdir)(REDIRECT(path));
}

EXPORT ssize_t getxattr(const char *path, const char *name, void *value, size_t size)
{
	return REAL(getxattr)(REDIRECT(path), name, value, size);
}

EXPORT ssize_t lgetxattr(const char *path, const char *name, void *value, size_t size)
{
	return REAL(lgetxattr)(REDIRECT(path), name, value, size);
}
