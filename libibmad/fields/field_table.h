/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The table of fields by their numbers: a row for each constant of enum MAD_FIELDS, from
 * MAD_OWN_FIELD_FIRST on one for each own constant of mad_fields.h.
 */
#ifndef LIBIBMAD_FIELD_TABLE_H
#define LIBIBMAD_FIELD_TABLE_H

#include <infiniband/mad_fields.h>
#include <linux/types.h>

/* An attribute or header, by its entry in attributes.def. */
enum attribute {
#define ATTRIBUTE(attribute, name) ATTR_##attribute,
#include "fields/attributes.def"
#undef ATTRIBUTE
	ATTRIBUTE_COUNT
};

/* The rows of rdma-core's fields and of own fields, and the size of the tables. */
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
 * The position of a field, prepared for reading. It has eight bytes, which one load reads: a
 * discovery of a fabric spends most of its time in reading fields.
 */
struct position {
	__be32 mask;     /* of a value of up to 32 bits, in its word; otherwise 0 */
	uint16_t offset; /* of the 32-bit word that holds it, or of a longer one's first byte */
	uint8_t shift;   /* of a value of up to 32 bits, within its word */
	uint8_t wide;    /* a number of 64 bits */
};

/* The length of the longest field, in bytes. */
#define VALUE_SIZE_MAX 256

/* The other properties of a field. A row whose bits are 0 is no field. */
struct field {
	struct mad_field info;
	ib_mad_dump_fn *dump;
	uint16_t byte; /* the first byte on the wire */
};

/* hidden, so that the address is not loaded from the global offset table */
#pragma GCC visibility push(hidden)
extern const struct position field_positions[FIELD_NUMBERS];
extern const struct field field_table[FIELD_NUMBERS];
#pragma GCC visibility pop

/* The row of a number; NULL if the number is no field. */
static inline const struct field *find_field(enum MAD_FIELDS id)
{
	if ((unsigned)id >= FIELD_NUMBERS || !field_table[id].info.bits)
		return NULL;
	return &field_table[id];
}

#endif
