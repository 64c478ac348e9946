/* SPDX-License-Identifier: BSD-2-Clause */

/* What guarded.c and guard.c share. */
#ifndef SITE_GUARDED_H
#define SITE_GUARDED_H

#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define GUARDED_FOLDER  "/dev/infiniband"
#define GUARDED_COVERED "SITE_COVERED" /* the folder is covered, and the guard uncovers it */

/* Appends a line to the file SITE_SENT, in one write(2): programs may run at the same time. */
static inline bool __attribute__((format(printf, 1, 2))) guard_report(const char *format, ...)
{
	const char *path = getenv("SITE_SENT");
	int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
	char line[80];
	bool written;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(line, sizeof(line) - 1, format, arguments);
	va_end(arguments);
	line[length++] = '\n';
	written = fd >= 0 && write(fd, line, (size_t)length) == length;
	if (fd >= 0)
		close(fd);
	return written;
}

#endif
