/* SPDX-License-Identifier: BSD-2-Clause */

#include "fields/text.h"

#include <string.h>

struct text text_begin(char *buf, int bufsz)
{
	if (!buf || bufsz <= 0)
		return (struct text){0};
	/* guards against pointer overflow on a wrong size */
	if ((uintptr_t)bufsz > UINTPTR_MAX - (uintptr_t)buf)
		bufsz = (int)(UINTPTR_MAX - (uintptr_t)buf);
	return (struct text){.at = buf, .end = buf + bufsz - 1};
}

void text_end(struct text *text)
{
	if (text->end)
		*text->at = '\0';
}

void text_char(struct text *text, char c)
{
	if (text->at < text->end)
		*text->at++ = c;
}

void text_bytes(struct text *text, const char *bytes, size_t length)
{
	if (length > text_room(text))
		length = text_room(text);
	if (length) {
		memcpy(text->at, bytes, length);
		text->at += length;
	}
}

void text_string(struct text *text, const char *string)
{
	text_bytes(text, string, strlen(string));
}

void text_uint(struct text *text, uint64_t number)
{
	/* two digits at a time, to halve the divisions, which dominate */
	static const char pairs[] = "00010203040506070809101112131415161718192021222324"
				    "25262728293031323334353637383940414243444546474849"
				    "50515253545556575859606162636465666768697071727374"
				    "75767778798081828384858687888990919293949596979899";
	char digits[20], *first = digits + sizeof(digits);

	for (uint64_t rest; number >= 100; number = rest) {
		rest = number / 100;
		first -= 2;
		memcpy(first, pairs + 2 * (number - 100 * rest), 2);
	}
	if (number >= 10) {
		first -= 2;
		memcpy(first, pairs + 2 * number, 2);
	} else {
		*--first = (char)('0' + number);
	}
	text_bytes(text, first, (size_t)(digits + sizeof(digits) - first));
}

void text_int(struct text *text, int64_t number)
{
	if (number < 0)
		text_char(text, '-');
	text_uint(text, number < 0 ? -(uint64_t)number : (uint64_t)number);
}

void text_hex(struct text *text, uint64_t number, int least)
{
	char digits[16], *first = digits + sizeof(digits);

	do {
		*--first = "0123456789abcdef"[number & 0xf];
		number >>= 4;
	} while (--least > 0 || number);
	text_bytes(text, first, (size_t)(digits + sizeof(digits) - first));
}
