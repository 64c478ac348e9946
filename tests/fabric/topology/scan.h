/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The parts of a line: each function takes what it stands for off the front of the rest of the
 * line, and returns whether it was there. Where it was not, something may have been taken.
 */
#ifndef FABRIC_SCAN_H
#define FABRIC_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A part of a text, not terminated. */
struct text {
	const char *bytes;
	size_t length;
};

void drop(struct text *rest, size_t length);
void skip_blanks(struct text *rest);
bool at_digit(const struct text *rest);
bool take_char(struct text *rest, char wanted);

/* A word is what a blank or the end is behind; the blanks go, too. If not there, nothing goes.
 */
bool take_word(struct text *rest, const char *word);

/* All that belongs, as isalnum() and its like say; may be nothing. */
struct text take_while(struct text *rest, int (*belongs)(int));

/* Base 0: hexadecimal behind 0x, else decimal. Greater than the most: no number. */
bool take_number(struct text *rest, unsigned int base, uint64_t most, uint64_t *number);

/* "[7]", "(2c903000a0b11)" */
bool take_enclosed(struct text *rest, const char *marks, unsigned int base, uint64_t most,
		   uint64_t *number);

/* A name in quotes; with last, up to the line's last quote: a NodeDescription may have its own.
 */
bool take_quoted(struct text *rest, bool last, struct text *quoted);

/* Nothing, or a comment, whose text is what is left then. */
bool at_end(struct text *rest);

#endif
