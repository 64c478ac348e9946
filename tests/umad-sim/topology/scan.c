/* SPDX-License-Identifier: BSD-2-Clause */

/* Parts of a line: words, numbers and names. */

#include "scan.h"

#include <ctype.h>
#include <string.h>

void drop(struct text *rest, size_t length)
{
	rest->bytes += length;
	rest->length -= length;
}

void skip_blanks(struct text *rest)
{
	while (rest->length && (*rest->bytes == ' ' || *rest->bytes == '\t'))
		drop(rest, 1);
}

bool at_digit(const struct text *rest)
{
	return rest->length && isdigit((unsigned char)*rest->bytes);
}

bool take_char(struct text *rest, char wanted)
{
	if (!rest->length || *rest->bytes != wanted)
		return false;
	drop(rest, 1);
	return true;
}

bool take_prefix(struct text *rest, const char *prefix)
{
	size_t length = strlen(prefix);

	if (rest->length < length || memcmp(rest->bytes, prefix, length))
		return false;
	drop(rest, length);
	return true;
}

bool take_word(struct text *rest, const char *word)
{
	struct text after = *rest;

	if (!take_prefix(&after, word) ||
	    (after.length && *after.bytes != ' ' && *after.bytes != '\t'))
		return false;
	*rest = after;
	skip_blanks(rest);
	return true;
}

struct text take_while(struct text *rest, int (*belongs)(int))
{
	struct text taken = {rest->bytes, 0};

	while (taken.length < rest->length && belongs((unsigned char)rest->bytes[taken.length]))
		taken.length++;
	drop(rest, taken.length);
	return taken;
}

bool take_number(struct text *rest, unsigned int base, uint64_t most, uint64_t *number)
{
	bool prefix = rest->length > 2 && rest->bytes[0] == '0' && rest->bytes[1] == 'x';
	struct text digits;
	size_t i;

	if (prefix && base != 10)
		drop(rest, 2);
	if (!base)
		base = prefix ? 16 : 10;
	digits = take_while(rest, base == 16 ? isxdigit : isdigit);
	*number = 0;
	for (i = 0; i < digits.length; i++) {
		int byte = tolower((unsigned char)digits.bytes[i]);
		uint64_t digit = (uint64_t)(isdigit(byte) ? byte - '0' : byte - 'a' + 10);

		if (*number > (most - digit) / base || digit > most)
			return false;
		*number = *number * base + digit;
	}
	return digits.length;
}

bool take_enclosed(struct text *rest, const char *marks, unsigned int base, uint64_t most,
		   uint64_t *number)
{
	return take_char(rest, marks[0]) && take_number(rest, base, most, number) &&
	       take_char(rest, marks[1]);
}

bool take_quoted(struct text *rest, bool last, struct text *quoted)
{
	const char *end;

	if (!take_char(rest, '"') || !rest->length)
		return false;
	end = last ? memrchr(rest->bytes, '"', rest->length)
		   : memchr(rest->bytes, '"', rest->length);
	if (!end)
		return false;
	*quoted = (struct text){rest->bytes, (size_t)(end - rest->bytes)};
	drop(rest, quoted->length + 1);
	return true;
}

bool at_end(struct text *rest)
{
	skip_blanks(rest);
	if (!rest->length)
		return true;
	if (!take_char(rest, '#'))
		return false;
	skip_blanks(rest);
	return true;
}
