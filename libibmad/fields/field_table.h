/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The field table by number: a row for each constant of enum MAD_FIELDS, then, from
 * MAD_OWN_FIELD_FIRST on, for each of our own in mad_fields.h.
 */
#ifndef LIBIBMAD_FIELD_TABLE_H
#define LIBIBMAD_FIELD_TABLE_H

#include <infiniband/mad_fields.h>
#include <linux/types.h>

enum attribute {
#define ATTRIBUTE(attribute, name) ATTR_##attribute,
#include "fields/attributes.def"
#undef ATTRIBUTE
	ATTRIBUTE_COUNT
};

#define FIELD(attr, id, ...)                 ROW(id)
#define FIELD_OVERLAPS(other, attr, id, ...) ROW(id)
enum {
#define ROW(id) +((id) < MAD_OWN_FIELD_FIRST)
	ROWS = 0
#include "fields/fields.def"
		,
#undef ROW
#define ROW(id) +((id) >= MAD_OWN_FIELD_FIRST)
	OWN_ROWS = 0
#include "fields/fields.def"
#undef ROW
};
#undef FIELD
#undef FIELD_OVERLAPS
#define FIELD_NUMBERS (MAD_OWN_FIELD_FIRST + OWN_ROWS)

/*
 * Where a field is, prepared for reading. Eight bytes, so that one load fetches it: discovery
 * spends most of its time reading fields.
 */
struct position {
	__be32 mask;     /* for values of up to 32 bits, within the word; else 0 */
	uint16_t offset; /* of its 32-bit word, or of a longer field's first byte */
	uint8_t shift;   /* for values of up to 32 bits, within the word */
	uint8_t wide;    /* a 64-bit number */
};

/* Longest field, in bytes. */
#define VALUE_SIZE_MAX 256

/* A field's other properties. Rows with 0 bits are not fields. */
struct field {
	struct mad_field info;
	ib_mad_dump_fn *dump;
	uint16_t byte; /* first byte on the wire */
};

/* hidden: saves loading the address from the GOT */
#pragma GCC visibility push(hidden)
extern const struct position field_positions[FIELD_NUMBERS];
extern const struct field field_table[FIELD_NUMBERS];
#pragma GCC visibility pop

/* Returns NULL if the number is not a field. */
static inline const struct field *find_field(enum MAD_FIELDS id)
{
	if ((unsigned)id >= FIELD_NUMBERS || !field_table[id].info.bits)
		return NULL;
	return &field_table[id];
}

#endif
