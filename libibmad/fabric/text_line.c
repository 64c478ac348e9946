/* SPDX-License-Identifier: BSD-2-Clause */

/* Reads lines of a text file, and parts of a line. */

#include "fabric/text_line.h"

#include <errno.h>
#include <string.h>

static int read_error(FILE *file)
{
	return ferror(file) ? (errno ? -errno : -EIO) : 0;
}

int text_line_read(struct text_line *line)
{
	size_t length = 0;
	int byte;

	errno = 0;
	byte = getc(line->file);
	if (byte == EOF)
		return read_error(line->file);
	line->number++;
	for (; byte != EOF && byte != '\n'; byte = getc(line->file)) {
		if (!byte || length == TEXT_LINE_LENGTH)
			return -EBADMSG;
		line->text[length++] = (char)byte;
	}
	if (byte == EOF && ferror(line->file))
		return read_error(line->file);
	if (length && line->text[length - 1] == '\r')
		length--;
	line->text[length] = '\0';
	return 1;
}

void text_take_blanks(const char **at)
{
	*at += strspn(*at, " \t");
}

bool text_take_word(const char **at, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(*at, word, length) != 0)
		return false;
	*at += length;
	return true;
}

bool text_take_decimal(const char **at, unsigned most, unsigned *number)
{
	const char *begin = *at;
	unsigned value = 0;

	for (; **at >= '0' && **at <= '9'; ++*at) {
		value = value * 10 + (unsigned)(**at - '0');
		if (value > most)
			return false;
	}
	*number = value;
	return *at != begin;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool text_take_hex(const char **at, uint64_t *number)
{
	const char *begin = *at;
	uint64_t value = 0;
	int digit;

	for (; (digit = hex_digit(**at)) >= 0; ++*at) {
		if (value >> 60)
			return false;
		value = value << 4 | (unsigned)digit;
	}
	*number = value;
	return *at != begin;
}
