/* SPDX-License-Identifier: BSD-2-Clause */

/* Reads a text file line by line. */
#ifndef LIBIBMAD_TEXT_LINE_H
#define LIBIBMAD_TEXT_LINE_H

#include <errno.h>
#include <stdio.h>

#define TEXT_LINE_LENGTH 4000

struct text_line {
	FILE *file;
	unsigned number; /* of the line in text, from 1 */
	char text[TEXT_LINE_LENGTH + 1];
};

/*
 * Reads the next line without its newline. Returns 1, 0 at EOF, -EBADMSG (too long, or contains
 * a NUL) or another negative errno.
 */
static inline int text_line_read(struct text_line *line)
{
	size_t length = 0;
	int byte;

	errno = 0;
	byte = getc(line->file);
	if (byte != EOF)
		line->number++;
	for (; byte != EOF && byte != '\n'; byte = getc(line->file)) {
		if (!byte || length == TEXT_LINE_LENGTH)
			return -EBADMSG;
		line->text[length++] = (char)byte;
	}
	if (byte == EOF && ferror(line->file))
		return errno ? -errno : -EIO;
	if (byte == EOF && !length)
		return 0;
	if (length && line->text[length - 1] == '\r')
		length--;
	line->text[length] = '\0';
	return 1;
}

#endif
