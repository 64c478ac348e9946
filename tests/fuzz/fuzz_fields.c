/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Every function that reads or writes a field, at any offset of a buffer of exactly the needed
 * size.
 */

#include "fuzz.h"

#include <infiniband/mad_fields.h>

/* 0: the number is no field. */
static unsigned field_bits(enum MAD_FIELDS field)
{
	const struct mad_field *info = mad_field_info(field);

	return info ? info->bits : 0;
}

/* Any number, most often a field or a marker: in C++, 1023 is the largest of the enumeration.
 */
static enum MAD_FIELDS take_field(struct input *input)
{
	uint32_t number = (uint32_t)take(input, 4);

	return (enum MAD_FIELDS)(number >> 31 ? number : number % 1024);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	enum MAD_FIELDS field = take_field(&input);
	unsigned base = (unsigned)take(&input, 1);
	uint64_t number = take(&input, 8), value[64] = {0};
	/* no field is beyond the length of a MAD; whole words from a multiple of 4 */
	size_t length = (base + IB_MAD_SIZE + 3) & ~(size_t)3;
	uint8_t *buf = calloc(1, length);
	char name[64] = "", text[256];
	size_t room = base % (sizeof(text) + 1);

	take_bytes(&input, buf, length);
	take_bytes(&input, value, sizeof(value));
	take_bytes(&input, name, sizeof(name) - 1);

	if (field_bits(field) <= 64 && field_bits(field) > 0) {
		uint64_t mask = UINT64_MAX >> (64 - field_bits(field));

		mad_set_field64(buf, (int)base, field, number);
		check(mad_get_field64(buf, (int)base, field) == (number & mask));
		mad_set_field(buf, (int)base, field, (uint32_t)number);
		check(mad_get_field(buf, (int)base, field) == (uint32_t)(number & mask));
	}
	check(mad_read_field(buf, (int)base, field) == mad_get_field64(buf, (int)base, field));
	check(mad_read_field(buf, (int)base, field) == mad_get_field(buf, (int)base, field));
	mad_read_array(buf, (int)base, field, value);
	check(mad_read_text(buf, (int)base, field, text, room) <= field_bits(field) / 8);
	check(!room || strlen(text) < room);
	mad_set_array(buf, (int)base, field, value);
	mad_get_array(buf, (int)base, field, value);
	mad_encode_field(buf, field, value);
	mad_decode_field(buf, field, value);
	check(!mad_field_name(field) ==
	      ((unsigned)field >= IB_FIELD_LAST_ && !field_bits(field)));
	check(!mad_field_name(field) || !*mad_field_name(field) == !field_bits(field));
	check(field_bits(field) || !mad_get_field64(buf, (int)base, field));

	field = mad_field_by_name(name);
	check(!field || strstr(name, mad_field_name(field)) ||
	      strstr(name, mad_field_info(field)->constant));
	mad_field_next(name, field);
	mad_field_next(NULL, field);
	free(buf);
	return 0;
}
