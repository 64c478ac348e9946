/* SPDX-License-Identifier: BSD-2-Clause */

/* Messages quote files and command lines, which must not send control characters to a terminal.
 */
#ifndef UMAD_SIM_PRINTABLE_H
#define UMAD_SIM_PRINTABLE_H

#include <stdbool.h>

/* Replaces each byte of a control character with '?': those of ASCII, and U+0080 to U+009F in
 * UTF-8. */
static inline void make_printable(char *text)
{
	bool second = false; /* second byte of a control character */

	for (; *text; text++) {
		unsigned char byte = (unsigned char)text[0];
		unsigned char next = (unsigned char)text[1];
		bool first = byte == 0xc2 && next >= 0x80 && next < 0xa0;

		if (byte < ' ' || byte == 0x7f || first || second)
			*text = '?';
		second = first;
	}
}

#endif
