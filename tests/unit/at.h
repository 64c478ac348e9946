/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef TESTS_UNIT_AT_H
#define TESTS_UNIT_AT_H

#include <stdarg.h>
#include <stdio.h>

/* A path in sysfs, or another short text. Valid until the next call. */
__attribute__((format(printf, 1, 2))) static inline const char *at(const char *format, ...)
{
	static char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return text;
}

#endif
