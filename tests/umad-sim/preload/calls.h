/* SPDX-License-Identifier: BSD-2-Clause */

/* Calls that the C library has under several names. They differ in names and types only. */
#ifndef UMAD_SIM_CALLS_H
#define UMAD_SIM_CALLS_H

#include <fcntl.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "preload.h"

#define UMAD_MAJOR 231
#define ISSM_MINOR 64

/* The argument of fcntl(), if it has one, fits a pointer. */
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

/* A device is a regular file in the view; stat() reports the character device instead. */
#define SHOW_DEVICE(redirected, status)                                                  \
	do {                                                                             \
		unsigned int number;                                                     \
		enum device_kind kind = device_of_path(redirected, &number);             \
                                                                                         \
		if (kind == DEVICE_NONE)                                                 \
			break;                                                           \
		(status)->st_mode = S_IFCHR | 0600;                                      \
		(status)->st_rdev = makedev(                                             \
			UMAD_MAJOR, kind == DEVICE_UMAD ? number : ISSM_MINOR + number); \
	} while (0)

#define STAT(name, folder, parameters, ...)                                   \
	EXPORT int name parameters                                            \
	{                                                                     \
		char buffer[PATH_BYTES];                                      \
		const char *instead = redirect_path_at(folder, path, buffer); \
		int result = REAL(name)(__VA_ARGS__);                         \
                                                                              \
		if (result == 0 && instead != path)                           \
			SHOW_DEVICE(instead, status);                         \
		return result;                                                \
	}

#define POLL(name, parameters, ...)                      \
	EXPORT int name parameters                       \
	{                                                \
		int ready = REAL(name)(__VA_ARGS__);     \
                                                         \
		if (ready > 0)                           \
			device_correct_poll(fds, count); \
		return ready;                            \
	}

#endif
