/* SPDX-License-Identifier: BSD-2-Clause */

/* Reading, writing and finding fields, by the table. */

#include "export.h"
#include "field_table.h"

#include <infiniband/mad_fields.h>

/*
 * A field of up to 32 bits at an offset that is no multiple of 4. Bytes count, as bits
 * do, from the least significant end of each word: byte b of the image lies at b ^ 3.
 */
static uint32_t get_unaligned(const uint8_t *buf, int base, const struct field *field)
{
	int first = base + field->offset + field->shift / 8;
	int last = base + field->offset + (field->shift + field->bits - 1) / 8;
	uint64_t value = 0;
	int i;

	for (i = last; i >= first; i--)
		value = value << 8 | buf[i ^ 3];
	return (uint32_t)(value >> field->shift % 8) & field->mask;
}

static void set_unaligned(uint8_t *buf, int base, const struct field *field, uint32_t value)
{
	int first = base + field->offset + field->shift / 8;
	int last = base + field->offset + (field->shift + field->bits - 1) / 8;
	uint64_t mask = (uint64_t)field->mask << field->shift % 8;
	uint64_t bits = (uint64_t)value << field->shift % 8;
	int i;

	for (i = first; i <= last; i++) {
		buf[i ^ 3] = (uint8_t)((buf[i ^ 3] & ~mask) | (bits & mask));
		mask >>= 8;
		bits >>= 8;
	}
}

static uint32_t load32(const uint8_t *at)
{
	uint32_t word;

	memcpy(&word, at, sizeof(word));
	return be32toh(word);
}

static void store32(uint8_t *at, uint32_t word)
{
	word = htobe32(word);
	memcpy(at, &word, sizeof(word));
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

/* A field with a mask has up to 32 bits. */
static inline uint32_t get_short(const uint8_t *buf, int base, const struct field *field)
{
	if (__builtin_expect(base & 3, 0))
		return get_unaligned(buf, base, field);
	return load32(buf + base + field->offset) >> field->shift & field->mask;
}

static inline void set_short(uint8_t *buf, int base, const struct field *field, uint32_t value)
{
	uint8_t *at = buf + base + field->offset;
	uint32_t mask = field->mask << field->shift;

	if (__builtin_expect(base & 3, 0))
		set_unaligned(buf, base, field, value);
	else
		store32(at, (load32(at) & ~mask) | (value << field->shift & mask));
}

EXPORT uint64_t mad_get_field64(void *buf, int base_offs, enum MAD_FIELDS id)
{
	const struct field *field = find_field(id);

	if (!field)
		return 0;
	if (field->mask)
		return get_short(buf, base_offs, field);
	return field->bits == 64 ? get64((uint8_t *)buf + base_offs + field->offset) : 0;
}

EXPORT void mad_set_field64(void *buf, int base_offs, enum MAD_FIELDS id, uint64_t value)
{
	const struct field *field = find_field(id);

	if (!field)
		return;
	if (field->mask)
		set_short(buf, base_offs, field, (uint32_t)value);
	else if (field->bits == 64)
		set64((uint8_t *)buf + base_offs + field->offset, value);
}

EXPORT uint32_t mad_get_field(void *buf, int base_offs, enum MAD_FIELDS id)
{
	const struct field *field = find_field(id);

	if (field && field->mask)
		return get_short(buf, base_offs, field);
	return (uint32_t)mad_get_field64(buf, base_offs, id);
}

EXPORT void mad_set_field(void *buf, int base_offs, enum MAD_FIELDS id, uint32_t value)
{
	const struct field *field = find_field(id);

	if (field && field->mask)
		set_short(buf, base_offs, field, value);
	else
		mad_set_field64(buf, base_offs, id, value);
}

EXPORT void mad_get_array(void *buf, int base_offs, enum MAD_FIELDS id, void *value)
{
	const struct field *field = find_field(id);

	if (field)
		memcpy(value, (uint8_t *)buf + base_offs + field->byte, field->bits / 8);
}

EXPORT void mad_set_array(void *buf, int base_offs, enum MAD_FIELDS id, void *value)
{
	const struct field *field = find_field(id);

	if (field)
		memcpy((uint8_t *)buf + base_offs + field->byte, value, field->bits / 8);
}

EXPORT void mad_decode_field(uint8_t *buf, enum MAD_FIELDS id, void *value)
{
	const struct field *field = find_field(id);

	if (!field)
		return;
	if (field->mask)
		*(uint32_t *)value = get_short(buf, 0, field);
	else if (field->bits == 64)
		*(uint64_t *)value = get64(buf + field->offset);
	else
		memcpy(value, buf + field->byte, field->bits / 8);
}

EXPORT void mad_encode_field(uint8_t *buf, enum MAD_FIELDS id, void *value)
{
	const struct field *field = find_field(id);

	if (!field)
		return;
	if (field->mask)
		set_short(buf, 0, field, *(const uint32_t *)value);
	else if (field->bits == 64)
		set64(buf + field->offset, *(const uint64_t *)value);
	else
		memcpy(buf + field->byte, value, field->bits / 8);
}

EXPORT const char *mad_field_name(enum MAD_FIELDS id)
{
	const struct field *field = find_field(id);

	return field ? field->label : NULL;
}

EXPORT const char *mad_field_constant(enum MAD_FIELDS id)
{
	const struct field *field = find_field(id);

	return field ? field->constant : NULL;
}

EXPORT unsigned mad_field_bits(enum MAD_FIELDS id)
{
	const struct field *field = find_field(id);

	return field ? field->bits : 0;
}

EXPORT const char *mad_field_attribute(enum MAD_FIELDS id)
{
	const struct field *field = find_field(id);

	return field ? attribute_names[field->attribute] : NULL;
}

/* Whether a field goes by "constant", "label" or "attribute.label". */
static int goes_by(const struct field *field, const char *name)
{
	const char *attribute = attribute_names[field->attribute];
	size_t length = strlen(attribute);

	if (!strncmp(name, attribute, length) && name[length] == '.')
		name += length + 1;
	return !strcmp(name, field->label) || !strcmp(name, field->constant);
}

EXPORT enum MAD_FIELDS mad_field_by_name(const char *name)
{
	enum MAD_FIELDS id;

	for (id = IB_NO_FIELD; name && id < IB_FIELD_LAST_; id++)
		if (find_field(id) && goes_by(&field_table[id], name))
			return id;
	return IB_NO_FIELD;
}

EXPORT enum MAD_FIELDS mad_attribute_next_field(const char *attribute, enum MAD_FIELDS id)
{
	/* ids are not trusted to be ones */
	unsigned next = (unsigned)id;

	if (!attribute || next >= IB_FIELD_LAST_)
		return IB_NO_FIELD;
	while (++next < IB_FIELD_LAST_)
		if (find_field((enum MAD_FIELDS)next) &&
		    !strcmp(attribute_names[field_table[next].attribute], attribute))
			return (enum MAD_FIELDS)next;
	return IB_NO_FIELD;
}

EXPORT const char *mad_next_attribute(const char *attribute)
{
	unsigned i;

	if (!attribute)
		return attribute_names[0];
	for (i = 0; i + 1 < ATTRIBUTE_COUNT; i++)
		if (!strcmp(attribute_names[i], attribute))
			return attribute_names[i + 1];
	return NULL;
}
