/* SPDX-License-Identifier: BSD-2-Clause */

/* Calls that the C library has under several names, which differ only in name and types. */
#ifndef UMAD_SIM_CALLS_H
#define UMAD_SIM_CALLS_H

#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include "preload.h"

/* fcntl()'s argument, if there is one, fits into a pointer. */
#define FCNTL(name)                                                                    \
	EXPORT int name(int fd, int command, ...)                                      \
	{                                                                              \
		va_list arguments;                                                     \
		void *argument;                                                        \
		int result;                                                            \
                                                                                       \
		va_start(arguments, command);                                          \
		argument = va_arg(arguments, void *);                                  \
		va_end(arguments);                                                     \
		result = REAL(name)(fd, command, argument);                            \
		if (result >= 0 && (command == F_DUPFD || command == F_DUPFD_CLOEXEC)) \
			device_share(fd, result);                                      \
		if (result >= 0 && command == F_GETFL)                                 \
			return device_flags(fd, result);                               \
		return result;                                                         \
	}

#define IOCTL(name)                                                             \
	EXPORT int name(int fd, unsigned long code, ...)                        \
	{                                                                       \
		struct device *device;                                          \
		va_list arguments;                                              \
		void *argument;                                                 \
		int result;                                                     \
                                                                                \
		va_start(arguments, code);                                      \
		argument = va_arg(arguments, void *);                           \
		va_end(arguments);                                              \
		device = code == FIONBIO || code == FIOCLEX || code == FIONCLEX \
				 ? NULL                                         \
				 : device_get(fd);                              \
		if (!device)                                                    \
			return REAL(name)(fd, code, argument);                  \
		result = device_ioctl(device, code, argument);                  \
		device_put(device);                                             \
		return result;                                                  \
	}

/* A sysfs file of the view, by path or descriptor: as the kernel shows it. */
#define SHOW_SYSFS_FILE(status)                                                  \
	do {                                                                     \
		if (!is_sysfs_file((status)->st_mode, major((status)->st_dev),   \
				   minor((status)->st_dev)))                     \
			break;                                                   \
		(status)->st_mode &= (__typeof__((status)->st_mode))~SYSFS_FILE; \
		(status)->st_size = SYSFS_FILE_BYTES;                            \
		(status)->st_blocks = 0;                                         \
	} while (0)

/* A device is a regular file in the view; stat() must report a character device. Folders and
 * links in sysfs have no size. */
#define SHOW_FILE(redirected, status)                                                    \
	do {                                                                             \
		unsigned int number;                                                     \
		enum device_kind kind = device_of_path(redirected, &number);             \
                                                                                         \
		SHOW_SYSFS_FILE(status);                                                 \
		if (leads_into_view(redirected) && !S_ISREG((status)->st_mode))          \
			(status)->st_size = (status)->st_blocks = 0;                     \
		if (kind == DEVICE_NONE)                                                 \
			break;                                                           \
		(status)->st_mode = S_IFCHR | 0600;                                      \
		(status)->st_rdev = makedev(                                             \
			UMAD_MAJOR, kind == DEVICE_UMAD ? number : ISSM_MINOR + number); \
	} while (0)

/* A handle is a socket; fstat() reports its device file. */
#define SHOW_HANDLE(fd, status)                                                               \
	do {                                                                                  \
		struct device *shown = device_get_any(fd);                                    \
		const struct statx *seen = shown ? &shown->file : NULL;                       \
                                                                                              \
		if (!shown)                                                                   \
			SHOW_SYSFS_FILE(status);                                              \
		if (!shown)                                                                   \
			break;                                                                \
		if (shown->kind != DEVICE_UEVENTS) {                                          \
			(status)->st_dev = makedev(seen->stx_dev_major, seen->stx_dev_minor); \
			(status)->st_ino = (__typeof__((status)->st_ino))seen->stx_ino;       \
			(status)->st_mode = seen->stx_mode;                                   \
			(status)->st_nlink = seen->stx_nlink;                                 \
			(status)->st_uid = seen->stx_uid;                                     \
			(status)->st_gid = seen->stx_gid;                                     \
			(status)->st_rdev =                                                   \
				makedev(seen->stx_rdev_major, seen->stx_rdev_minor);          \
			(status)->st_size = 0;                                                \
			(status)->st_blksize =                                                \
				(__typeof__((status)->st_blksize))seen->stx_blksize;          \
			(status)->st_blocks = 0;                                              \
			SHOW_TIME((status)->st_atim, seen->stx_atime);                        \
			SHOW_TIME((status)->st_mtim, seen->stx_mtime);                        \
			SHOW_TIME((status)->st_ctim, seen->stx_ctime);                        \
		}                                                                             \
		device_put(shown);                                                            \
	} while (0)

#define SHOW_TIME(time, from)                                                \
	do {                                                                 \
		(time).tv_sec = (__typeof__((time).tv_sec))(from).tv_sec;    \
		(time).tv_nsec = (__typeof__((time).tv_nsec))(from).tv_nsec; \
	} while (0)

/* stat() and similar calls of a path */
#define STAT(name, parameters, ...)                   \
	EXPORT int name parameters                    \
	{                                             \
		const char *instead = REDIRECT(path); \
		int result = REAL(name)(__VA_ARGS__); \
                                                      \
		if (result == 0)                      \
			SHOW_FILE(instead, status);   \
		return result;                        \
	}

/* fstatat(): a path below a folder; an empty path means the folder's descriptor itself */
#define STAT_AT(name, parameters, ...)                           \
	EXPORT int name parameters                               \
	{                                                        \
		const char *instead = REDIRECT_AT(folder, path); \
		int result = REAL(name)(__VA_ARGS__);            \
                                                                 \
		if (result == 0 && is_empty(path))               \
			SHOW_HANDLE(folder, status);             \
		else if (result == 0)                            \
			SHOW_FILE(instead, status);              \
		return result;                                   \
	}

#define FSTAT(name, parameters, ...)                  \
	EXPORT int name parameters                    \
	{                                             \
		int result = REAL(name)(__VA_ARGS__); \
                                                      \
		if (result == 0)                      \
			SHOW_HANDLE(fd, status);      \
		return result;                        \
	}

#define POLL(name, parameters, ...)                               \
	EXPORT int name parameters                                \
	{                                                         \
		int ready = REAL(name)(__VA_ARGS__);              \
                                                                  \
		if (ready > 0)                                    \
			ready -= device_correct_poll(fds, count); \
		return ready;                                     \
	}

#endif
