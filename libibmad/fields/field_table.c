/* SPDX-License-Identifier: BSD-2-Clause */

#include "fields/field_table.h"

const char *const attribute_names[ATTRIBUTE_COUNT] = {
#define ATTRIBUTE(attribute, name) [ATTR_##attribute] = name,
#include "fields/attributes.def"
#undef ATTRIBUTE
};

/*
 * The number of the bit from the most significant bit of the word: rows count from the least
 * significant one.
 */
#define FROM_TOP(offset, bits) (32 - (offset) % 32 - (bits) % 32)

/* A word as it lies in an image, in an initializer: htobe32() need not be constant. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BE32(word) __builtin_bswap32(word)
#else
#define BE32(word) (word)
#endif

/* The lowest bits of a word. */
#define LOW_BITS(bits) ((uint32_t)((UINT64_C(1) << (bits) % 64) - 1))

#define FIELD(attr, id, offset_bits, width, text, printer)                              \
	[id] = {                                                                        \
		.mask = (width) > 32 ? 0 : BE32(LOW_BITS(width) << (offset_bits) % 32), \
		.offset = (width) > 32 ? (offset_bits) / 8 : (offset_bits) / 32 * 4,    \
		.shift = (width) > 32 ? 0 : (offset_bits) % 32,                         \
		.wide = (width) == 64,                                                  \
	},

const struct position field_positions[IB_FIELD_LAST_] = {
#include "fields/fields.def"
};
#undef FIELD

#define FIELD(attr, id, offset_bits, width, text, printer)                                   \
	[id] = {                                                                             \
		.label = (text),                                                             \
		.constant = #id,                                                             \
		.dump = mad_dump_##printer,                                                  \
		.bits = (width),                                                             \
		.byte = (width) >= 32                                                        \
				? (offset_bits) / 8                                          \
				: (offset_bits) / 32 * 4 + FROM_TOP(offset_bits, width) / 8, \
		.label_length = sizeof(text) - 1,                                            \
		.attribute = ATTR_##attr,                                                    \
	},

const struct field field_table[IB_FIELD_LAST_] = {
#include "fields/fields.def"
};
#undef FIELD

/*
 * Errors of a row: a field across two words, a label that does not fit into the buffer of
 * programs.
 */
#define FIELD(attr, id, offset, bits, label, printer)                     \
	_Static_assert((bits) > 32 ? (offset) % 8 == 0 && (bits) % 8 == 0 \
				   : (offset) % 32 + (bits) <= 32,        \
		       #id " does not lie as it should");                 \
	_Static_assert((bits) <= 8 * VALUE_SIZE_MAX, #id " is too long"); \
	_Static_assert(sizeof(label) <= IB_FIELD_NAME_LEN, #id "'s label is too long");
#include "fields/fields.def"
#undef FIELD

/* The constants that are no field: IB_NO_FIELD, IB_SM_DATA_F, and the ends of runs. */
#define NO_FIELDS 49
enum {
	ROWS = 0
#define FIELD(attr, id, offset, bits, label, printer) +1
#include "fields/fields.def"
#undef FIELD
};
_Static_assert(ROWS == IB_FIELD_LAST_ - NO_FIELDS, "every field has its row");
