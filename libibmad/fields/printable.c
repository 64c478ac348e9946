/* SPDX-License-Identifier: BSD-2-Clause */

/* Makes text from the fabric safe for a terminal or a log. */

#include "base/export.h"

#include <infiniband/mad_fields.h>

#include <stdbool.h>
#include <stdint.h>

/* Decodes the first code point, and sets its length; 0 bytes if invalid UTF-8. */
static uint32_t take_code_point(const char *text, unsigned *bytes)
{
	/* overlong forms are invalid */
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	uint8_t first = (uint8_t)text[0];
	unsigned count = first < 0x80       ? 1
			 : first >> 5 == 6  ? 2
			 : first >> 4 == 14 ? 3
			 : first >> 3 == 30 ? 4
					    : 0;
	uint32_t code = count < 2 ? first : first & (0x7fu >> count);

	for (unsigned i = 1; i < count; i++) {
		/* the terminating NUL fails here, too */
		if (((uint8_t)text[i] & 0xc0) != 0x80) {
			*bytes = 0;
			return 0;
		}
		code = code << 6 | ((uint8_t)text[i] & 0x3f);
	}
	*bytes = code < least[count] ? 0 : count;
	return code;
}

/* Excludes control characters, and those that change text direction or break lines. */
static bool is_printable(uint32_t code)
{
	if (code < 0x20 || (code >= 0x7f && code < 0xa0))
		return false;
	if (code == 0x61c || code == 0x200e || code == 0x200f || code == 0xfeff)
		return false;
	if ((code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069))
		return false;
	return !(code >= 0xd800 && code < 0xe000) && code <= 0x10ffff &&
	       (code & 0xfffe) != 0xfffe;
}

EXPORT char *mad_printable_text(const char *text, char *buf, size_t size)
{
	char *at = buf;
	unsigned bytes;

	if (!buf || !size)
		return buf;
	while (text && *text) {
		uint32_t code = take_code_point(text, &bytes);
		bool keep = bytes && is_printable(code);
		unsigned length = keep ? bytes : 1;

		if (size - (size_t)(at - buf) <= length)
			break;
		/* bytewise: text may be buf */
		for (unsigned i = 0; i < length; i++)
			*at++ = (char)(keep ? text[i] : '?');
		text += bytes ? bytes : 1;
	}
	*at = '\0';
	return buf;
}
