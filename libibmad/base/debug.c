/* SPDX-License-Identifier: BSD-2-Clause */

/* The level of messages, and the printing of bytes. */

#include "base/export.h"

#include <infiniband/mad.h>

EXPORT int ibdebug;

static void put_byte(FILE *file, uint8_t byte)
{
	static const char digits[] = "0123456789abcdef";

	fputc(digits[byte >> 4], file);
	fputc(digits[byte & 0xf], file);
}

/* Pairs of bytes, eight pairs a line. */
EXPORT void xdump(FILE *file, const char *msg, void *p, int size)
{
	const uint8_t *bytes = p;
	int i;

	if (msg)
		fputs(msg, file);
	for (i = 0; i < size; i++) {
		put_byte(file, bytes[i]);
		if (i % 16 == 15)
			fputc('\n', file);
		else if (i % 2)
			fputc(' ', file);
	}
	if (size > 0 && size % 16)
		fputc('\n', file);
}
