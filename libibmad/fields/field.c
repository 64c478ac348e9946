/* SPDX-License-Identifier: BSD-2-Clause */

/* Reads, writes and finds fields by the table. */

#include "base/export.h"
#include "fields/field_table.h"

#include <infiniband/mad_fields.h>
#include <stdbool.h>

/*
 * A field of up to 32 bits at an offset that is no multiple of 4. Bytes count, as bits do, from
 * the least significant end of each word: byte b of the image is at b ^ 3.
 */
static uint32_t get_unaligned(const uint8_t *buf, int base, const struct position *at)
{
	uint32_t mask = be32toh(at->mask), word = 0;
	int i;

	for (i = 0; i < 4; i++)
		if (mask >> 8 * i & 0xff)
			word |= (uint32_t)buf[(base + at->offset + i) ^ 3] << 8 * i;
	return (word & mask) >> at->shift;
}

static void set_unaligned(uint8_t *buf, int base, const struct position *at, uint32_t value)
{
	uint32_t mask = be32toh(at->mask), word = value << at->shift;
	uint8_t *byte;
	int i;

	for (i = 0; i < 4; i++, mask >>= 8, word >>= 8) {
		if (!(mask & 0xff))
			continue;
		byte = &buf[(base + at->offset + i) ^ 3];
		*byte = (uint8_t)((*byte & ~mask) | (word & mask));
	}
}

static uint64_t get64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return be64toh(value);
}

static void set64(uint8_t *at, uint64_t value)
{
	value = htobe64(value);
	memcpy(at, &value, sizeof(value));
}

/* The position of a field; if the ID is no field, a position without mask that is not wide. */
static inline const struct position *find_position(enum MAD_FIELDS id)
{
	if (__builtin_expect((unsigned)id < FIELD_NUMBERS, 1))
		return &field_positions[id];
	return &field_positions[IB_NO_FIELD];
}

/* A word of an image, with any alignment and any type. */
typedef __be32 __attribute__((aligned(1), may_alias)) word_t;

/* The position of a field that is in one word of the image, so that a mask is enough. */
static inline const struct position *find_in_word(enum MAD_FIELDS id, int base)
{
	if (__builtin_expect((unsigned)id < FIELD_NUMBERS, 1) && field_positions[id].mask &&
	    !(base & 3))
		return &field_positions[id];
	return NULL;
}

static inline uint32_t get_in_word(const uint8_t *buf, int base, const struct position *at)
{
	return be32toh(*(const word_t *)(buf + base + at->offset) & at->mask) >> at->shift;
}

static inline void set_in_word(uint8_t *buf, int base, const struct position *at,
			       uint32_t value)
{
	word_t *word = (word_t *)(buf + base + at->offset);

	*word ^= (*word ^ htobe32(value << at->shift)) & at->mask;
}

/*
 * The other fields, in functions of their own: numbers of 64 bits, fields across words, and
 * bytes.
 */
static RARE uint64_t get_other(const uint8_t *buf, int base, enum MAD_FIELDS id)
{
	const struct position *at = find_position(id);

	if (at->wide)
		return get64(buf + base + at->offset);
	return at->mask ? get_unaligned(buf, base, at) : 0;
}

static RARE void set_other(uint8_t *buf, int base, enum MAD_FIELDS id, uint64_t value)
{
	const struct position *at = find_position(id);

	if (at->wide)
		set64(buf + base + at->offset, value);
	else if (at->mask)
		set_unaligned(buf, base, at, (uint32_t)value);
}

static inline uint64_t get_number(const uint8_t *buf, int base_offs, enum MAD_FIELDS id)
{
	const struct position *at = find_in_word(id, base_offs);

	return at ? get_in_word(buf, base_offs, at) : get_other(buf, base_offs, id);
}

EXPORT uint64_t mad_get_field64(void *buf, int base_offs, enum MAD_FIELDS id)
{
	return get_number(buf, base_offs, id);
}

EXPORT uint64_t mad_read_field(const void *buf, int base_offs, enum MAD_FIELDS id)
{
	return get_number(buf, base_offs, id);
}

EXPORT uint32_t mad_get_field(void *buf, int base_offs, enum MAD_FIELDS id)
{
	return (uint32_t)get_number(buf, base_offs, id);
}

EXPORT void mad_set_field64(void *buf, int base_offs, enum MAD_FIELDS id, uint64_t value)
{
	const struct position *at = find_in_word(id, base_offs);

	if (at)
		set_in_word(buf, base_offs, at, (uint32_t)value);
	else
		set_other(buf, base_offs, id, value);
}

EXPORT void mad_set_field(void *buf, int base_offs, enum MAD_FIELDS id, uint32_t value)
{
	const struct position *at = find_in_word(id, base_offs);

	if (at)
		set_in_word(buf, base_offs, at, value);
	else
		set_other(buf, base_offs, id, value);
}

EXPORT void mad_read_array(const void *buf, int base_offs, enum MAD_FIELDS id, void *value)
{
	const struct field *field = find_field(id);

	if (field)
		memcpy(value, (const uint8_t *)buf + base_offs + field->byte,
		       field->info.bits / 8);
}

EXPORT void mad_get_array(void *buf, int base_offs, enum MAD_FIELDS id, void *value)
{
	mad_read_array(buf, base_offs, id, value);
}

EXPORT size_t mad_read_text(const void *buf, int base_offs, enum MAD_FIELDS id, char *text,
			    size_t size)
{
	const struct field *field = find_field(id);
	const char *bytes = NULL;
	size_t length = 0;

	if (field) {
		bytes = (const char *)buf + base_offs + field->byte;
		length = strnlen(bytes, field->info.bits / 8);
	}
	if (size) {
		size_t fits = length < size ? length : size - 1;

		if (fits)
			memcpy(text, bytes, fits);
		text[fits] = '\0';
	}
	return length;
}

EXPORT void mad_set_array(void *buf, int base_offs, enum MAD_FIELDS id, void *value)
{
	const struct field *field = find_field(id);

	if (field)
		memcpy((uint8_t *)buf + base_offs + field->byte, value, field->info.bits / 8);
}

/* The caller chooses the type of the value: memcpy() accepts any alignment and any type. */
EXPORT void mad_decode_field(uint8_t *buf, enum MAD_FIELDS id, void *value)
{
	const struct position *at = find_position(id);

	if (__builtin_expect(at->mask != 0, 1)) {
		uint32_t number = get_in_word(buf, 0, at);

		memcpy(value, &number, sizeof(number));
	} else if (at->wide) {
		uint64_t number = get64(buf + at->offset);

		memcpy(value, &number, sizeof(number));
	} else {
		mad_get_array(buf, 0, id, value);
	}
}

EXPORT void mad_encode_field(uint8_t *buf, enum MAD_FIELDS id, void *value)
{
	const struct position *at = find_position(id);

	if (__builtin_expect(at->mask != 0, 1)) {
		uint32_t number;

		memcpy(&number, value, sizeof(number));
		set_in_word(buf, 0, at, number);
	} else if (at->wide) {
		uint64_t number;

		memcpy(&number, value, sizeof(number));
		set64(buf + at->offset, number);
	} else {
		mad_set_array(buf, 0, id, value);
	}
}

EXPORT const char *mad_field_name(enum MAD_FIELDS id)
{
	const struct field *field = find_field(id);

	if (field)
		return field->info.label;
	/* programs compare the names of a range of ids, whose last one may be a marker */
	return (unsigned)id < IB_FIELD_LAST_ ? "" : NULL;
}

EXPORT const struct mad_field *mad_field_info(enum MAD_FIELDS id)
{
	const struct field *field = find_field(id);

	return field ? &field->info : NULL;
}

/* Whether a field has the name "constant", "label" or "attribute.label". */
static int goes_by(const struct mad_field *field, const char *name)
{
	size_t length = strlen(field->attribute);

	if (!strncmp(name, field->attribute, length) && name[length] == '.')
		name += length + 1;
	return !strcmp(name, field->label) || !strcmp(name, field->constant);
}

EXPORT enum MAD_FIELDS mad_field_by_name(const char *name)
{
	enum MAD_FIELDS id;

	for (id = IB_NO_FIELD; name && id < FIELD_NUMBERS; id++)
		if (find_field(id) && goes_by(&field_table[id].info, name))
			return id;
	return IB_NO_FIELD;
}

EXPORT enum MAD_FIELDS mad_field_next(const char *attribute, enum MAD_FIELDS id)
{
	/* the numbers may be no fields */
	unsigned next = (unsigned)id;

	if (next >= FIELD_NUMBERS)
		return IB_NO_FIELD;
	while (++next < FIELD_NUMBERS)
		if (find_field((enum MAD_FIELDS)next) &&
		    (!attribute || !strcmp(field_table[next].info.attribute, attribute)))
			return (enum MAD_FIELDS)next;
	return IB_NO_FIELD;
}
