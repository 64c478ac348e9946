/* SPDX-License-Identifier: BSD-2-Clause */

/* Parts of a line. Each function takes one part off the beginning of the text. It returns false
 * if the part is not there, possibly after taking something. */
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

/* If false, nothing is taken. */
bool take_prefix(struct text *rest, const char *prefix);

/* A word ends at a blank or the end of the text; the blanks are taken, too. If false, nothing
 * is taken. */
bool take_word(struct text *rest, const char *word);

/* Takes all characters that the function (isalnum() or similar) accepts; there may be none. */
struct text take_while(struct text *rest, int (*belongs)(int));

/* Base 0: hexadecimal after 0x, else decimal. False for a number above the maximum. */
bool take_number(struct text *rest, unsigned int base, uint64_t most, uint64_t *number);

/* "[7]", "(2c903000a0b11)" */
bool take_enclosed(struct text *rest, const char *marks, unsigned int base, uint64_t most,
		   uint64_t *number);

/* A name in quotes. With `last`, it ends at the last quote of the line: a NodeDescription may
 * have quotes. */
bool take_quoted(struct text *rest, bool last, struct text *quoted);

/* The end of the line, or the start of a comment, whose text remains. */
bool at_end(struct text *rest);

#endif
