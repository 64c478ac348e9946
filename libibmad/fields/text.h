/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Writes text into a buffer of a fixed size. The part that does not fit is omitted, and the
 * text is terminated. The functions do not call snprintf(), because most of the output is
 * numbers.
 */
#ifndef LIBIBMAD_TEXT_H
#define LIBIBMAD_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct text {
	char *at;
	char *end; /* the last byte, for the NUL; NULL in a buffer without any byte */
};

/* Begins a text in a buffer of bufsz bytes, which may be 0. */
struct text text_begin(char *buf, int bufsz);
void text_end(struct text *text);

/* The number of characters that still fit. */
static inline size_t text_room(const struct text *text)
{
	return (size_t)(text->end - text->at);
}

void text_char(struct text *text, char c);
void text_bytes(struct text *text, const char *bytes, size_t length);
void text_string(struct text *text, const char *string);
void text_uint(struct text *text, uint64_t number);
void text_int(struct text *text, int64_t number);
/* Writes at least "least" digits, of 0 to 9 and a to f, with leading zeros. */
void text_hex(struct text *text, uint64_t number, int least);

#endif
