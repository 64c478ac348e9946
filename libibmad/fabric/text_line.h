/* SPDX-License-Identifier: BSD-2-Clause */

/* Lines of a text file. */
#ifndef LIBIBMAD_TEXT_LINE_H
#define LIBIBMAD_TEXT_LINE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define TEXT_LINE_LENGTH 4000

struct text_line {
	FILE *file;
	unsigned number; /* of the line in text, from 1 */
	char text[TEXT_LINE_LENGTH + 1];
};

/*
 * Reads the next line, without its end. 1: a line was read; 0: the end of the file; -EBADMSG:
 * the line is too long or has a zero byte; or another negative errno.
 */
int text_line_read(struct text_line *line);

/*
 * These functions parse the begin of a text, and move *at behind it. If they return false, *at
 * is undefined.
 */
void text_take_blanks(const char **at);
bool text_take_word(const char **at, const char *word);
bool text_take_decimal(const char **at, unsigned most, unsigned *number);
bool text_take_hex(const char **at, uint64_t *number);

#endif
