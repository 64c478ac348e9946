/* SPDX-License-Identifier: BSD-2-Clause */

/* Reads, writes and looks up fields in the table. */

#include "base/export.h"
#include "fields/field_table.h"

#include <infiniband/mad_fields.h>
#include <stdbool.h>

/*
 * A field of up to 32 bits whose base is not a multiple of 4. Bytes count, like bits, from the
 * least significant end of each word: byte b is at b ^ 3.
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

/* Unknown IDs map to IB_NO_FIELD, which has no mask. */
static const struct position *find_position(enum MAD_FIELDS id)
{
	return &field_positions[(unsigned)id < FIELD_NUMBERS ? id : IB_NO_FIELD];
}

static uint64_t get_number(const uint8_t *buf, int base, enum MAD_FIELDS id)
{
	const struct position *at = find_position(id);
	uint64_t wide;
	__be32 word;

	if (at->wide) {
		memcpy(&wide, buf + base + at->offset, sizeof(wide));
		return be64toh(wide);
	}
	if (!at->mask)
		return 0;
	if (base & 3)
		return get_unaligned(buf, base, at);
	memcpy(&word, buf + base + at->offset, sizeof(word));
	return be32toh(word & at->mask) >> at->shift;
}

static void set_number(uint8_t *buf, int base, enum MAD_FIELDS id, uint64_t value)
{
	const struct position *at = find_position(id);
	__be32 word;

	if (at->wide) {
		value = htobe64(value);
		memcpy(buf + base + at->offset, &value, sizeof(value));
	} else if (at->mask && base & 3) {
		set_unaligned(buf, base, at, (uint32_t)value);
	} else if (at->mask) {
		memcpy(&word, buf + base + at->offset, sizeof(word));
		word ^= (word ^ htobe32((uint32_t)value << at->shift)) & at->mask;
		memcpy(buf + base + at->offset, &word, sizeof(word));
	}
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
	set_number(buf, base_offs, id, value);
}

EXPORT void mad_set_field(void *buf, int base_offs, enum MAD_FIELDS id, uint32_t value)
{
	set_number(buf, base_offs, id, value);
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

/* memcpy(): the caller's value may have any type and alignment. */
EXPORT void mad_decode_field(uint8_t *buf, enum MAD_FIELDS id, void *value)
{
	const struct position *at = find_position(id);
	uint64_t number = get_number(buf, 0, id);
	uint32_t lower = (uint32_t)number;

	if (at->wide)
		memcpy(value, &number, sizeof(number));
	else if (at->mask)
		memcpy(value, &lower, sizeof(lower));
	else
		mad_get_array(buf, 0, id, value);
}

EXPORT void mad_encode_field(uint8_t *buf, enum MAD_FIELDS id, void *value)
{
	const struct position *at = find_position(id);
	uint64_t number;
	uint32_t lower;

	if (at->wide) {
		memcpy(&number, value, sizeof(number));
		set_number(buf, 0, id, number);
	} else if (at->mask) {
		memcpy(&lower, value, sizeof(lower));
		set_number(buf, 0, id, lower);
	} else {
		mad_set_array(buf, 0, id, value);
	}
}

EXPORT const char *mad_field_name(enum MAD_FIELDS id)
{
	const struct field *field = find_field(id);

	if (field)
		return field->info.label;
	/* programs compare names over a range of IDs, whose end may be a marker */
	return (unsigned)id < IB_FIELD_LAST_ ? "" : NULL;
}

EXPORT const struct mad_field *mad_field_info(enum MAD_FIELDS id)
{
	const struct field *field = find_field(id);

	return field ? &field->info : NULL;
}

/* Whether "name" is the field's constant, label or attribute.label. */
static bool has_name(const struct mad_field *field, const char *name)
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
		if (find_field(id) && has_name(&field_table[id].info, name))
			return id;
	return IB_NO_FIELD;
}

EXPORT enum MAD_FIELDS mad_field_next(const char *attribute, enum MAD_FIELDS id)
{
	/* IDs may have gaps */
	unsigned next = (unsigned)id;

	if (next >= FIELD_NUMBERS)
		return IB_NO_FIELD;
	while (++next < FIELD_NUMBERS)
		if (find_field((enum MAD_FIELDS)next) &&
		    (!attribute || !strcmp(field_table[next].info.attribute, attribute)))
			return (enum MAD_FIELDS)next;
	return IB_NO_FIELD;
}
