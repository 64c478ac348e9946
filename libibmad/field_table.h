/* SPDX-License-Identifier: BSD-2-Clause */

/* The table of fields, one row for each constant of enum MAD_FIELDS, by its number. */
#ifndef LIBIBMAD_FIELD_TABLE_H
#define LIBIBMAD_FIELD_TABLE_H

#include <infiniband/mad.h>

/* An attribute or header, by its entry in attributes.def. */
enum attribute {
#define ATTRIBUTE(attribute, name) ATTR_##attribute,
#include "attributes.def"
#undef ATTRIBUTE
	ATTRIBUTE_COUNT
};

/* The specification's names of them. */
extern const char *const attribute_names[ATTRIBUTE_COUNT];

/*
 * A field, worked out for the ways it is read. A row whose bits are 0 is no field.
 */
struct field {
	uint32_t mask;   /* of a value of up to 32 bits; 0 for longer ones */
	uint16_t offset; /* of the 32-bit word that holds it, or of a longer one's first
			    byte */
	uint8_t shift;   /* of a value of up to 32 bits, within its word */
	uint8_t attribute;
	uint16_t bits;
	uint16_t byte; /* the first byte, as bytes come on the wire */
	uint8_t label_length;
	const char *label;
	const char *constant;
	ib_mad_dump_fn *dump;
};

extern const struct field field_table[IB_FIELD_LAST_];

/* The row of a number; NULL for what is no field. */
static inline const struct field *find_field(enum MAD_FIELDS id)
{
	if ((unsigned)id >= IB_FIELD_LAST_ || !field_table[id].bits)
		return NULL;
	return &field_table[id];
}

#endif
