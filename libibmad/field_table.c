/* SPDX-License-Identifier: BSD-2-Clause */

#include "field_table.h"

const char *const attribute_names[ATTRIBUTE_COUNT] = {
#define ATTRIBUTE(attribute, name) [ATTR_##attribute] = name,
#include "attributes.def"
#undef ATTRIBUTE
};

/* Bits are counted from the least significant one of a word: from the most significant.
 */
#define FROM_TOP(offset, bits) (32 - (offset) % 32 - (bits) % 32)

#define FIELD(attr, id, offset_bits, width, text, printer)                                   \
	[id] = {                                                                             \
		.mask = (width) > 32 ? 0 : (uint32_t)((UINT64_C(1) << (width) % 64) - 1),    \
		.offset = (width) > 32 ? (offset_bits) / 8 : (offset_bits) / 32 * 4,         \
		.shift = (width) > 32 ? 0 : (offset_bits) % 32,                              \
		.attribute = ATTR_##attr,                                                    \
		.bits = (width),                                                             \
		.byte = (width) >= 32                                                        \
				? (offset_bits) / 8                                          \
				: (offset_bits) / 32 * 4 + FROM_TOP(offset_bits, width) / 8, \
		.label_length = sizeof(text) - 1,                                            \
		.label = (text),                                                             \
		.constant = #id,                                                             \
		.dump = mad_dump_##printer,                                                  \
	},

const struct field field_table[IB_FIELD_LAST_] = {
#include "fields.def"
};
#undef FIELD

/* What can be wrong with a row: a field across two words, a label that programs cannot
 * hold. */
#define FIELD(attr, id, offset, bits, label, printer)                     \
	_Static_assert((bits) > 32 ? (offset) % 8 == 0 && (bits) % 8 == 0 \
				   : (offset) % 32 + (bits) <= 32,        \
		       #id " does not lie as it should");                 \
	_Static_assert(sizeof(label) <= IB_FIELD_NAME_LEN, #id "'s label is too long");
#include "fields.def"
#undef FIELD

/* The constants that are no field: IB_NO_FIELD, IB_SM_DATA_F, and the ends of runs. */
#define NO_FIELDS 49
enum {
	ROWS = 0
#define FIELD(attr, id, offset, bits, label, printer) +1
#include "fields.def"
#undef FIELD
};
_Static_assert(ROWS == IB_FIELD_LAST_ - NO_FIELDS, "every field has its row");
