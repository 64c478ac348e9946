/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Writes text into a fixed-size buffer, truncating, always terminated. Avoids snprintf()
 * because most of the output is numbers.
 */
#ifndef LIBIBMAD_TEXT_H
#define LIBIBMAD_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct text {
	char *at;
	char *end; /* last byte, reserved for the NUL; NULL if the buffer is empty */
};

/* bufsz may be 0. */
struct text text_begin(char *buf, int bufsz);
void text_end(struct text *text);

static inline size_t text_room(const struct text *text)
{
	return (size_t)(text->end - text->at);
}

void text_char(struct text *text, char c);
void text_bytes(struct text *text, const char *bytes, size_t length);
void text_string(struct text *text, const char *string);
void text_uint(struct text *text, uint64_t number);
void text_int(struct text *text, int64_t number);
/* Lower-case hex, zero-padded to "least" digits. */
void text_hex(struct text *text, uint64_t number, int least);

#endif
