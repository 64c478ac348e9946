/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Text written piece by piece into a buffer of a fixed size: what does not fit is left
 * out, and the text is terminated where it ends. No snprintf: numbers are most of what is
 * printed.
 */
#ifndef LIBIBMAD_TEXT_H
#define LIBIBMAD_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct text {
	char *at;
	char *end; /* where the NUL goes at the latest; NULL in a buffer without room */
};

/* Begins a text in a buffer of bufsz bytes, which may be too few even for a NUL. */
struct text text_begin(char *buf, int bufsz);
void text_end(struct text *text);

/* How many characters there is still room for. */
static inline size_t text_room(const struct text *text)
{
	return (size_t)(text->end - text->at);
}

void text_char(struct text *text, char c);
void text_bytes(struct text *text, const char *bytes, size_t length);
void text_string(struct text *text, const char *string);
void text_uint(struct text *text, uint64_t number);
void text_int(struct text *text, int64_t number);
/* At least so many digits, zeros before; digits of 0 to 9 and a to f. */
void text_hex(struct text *text, uint64_t number, int least);

#endif
