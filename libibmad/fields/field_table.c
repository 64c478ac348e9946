/* SPDX-License-Identifier: BSD-2-Clause */

#include "fields/field_table.h"

#define ATTRIBUTE(attribute, name) static const char name_of_##attribute[] = name;
#include "fields/attributes.def"
#undef ATTRIBUTE

/* Rows count bits from the least significant one; this counts from the most significant one. */
#define FROM_TOP(offset, bits) (32 - (offset) % 32 - (bits) % 32)

/* A constant htobe32() for initializers. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BE32(word) __builtin_bswap32(word)
#else
#define BE32(word) (word)
#endif

#define LOW_BITS(bits) ((uint32_t)((UINT64_C(1) << (bits) % 64) - 1))

/* Each pass over the rows defines ROW(). #id must stand here: our own constants are macros. */
#define FIELD(attr, id, ...)                 ROW(attr, id, #id, __VA_ARGS__)
#define FIELD_OVERLAPS(other, attr, id, ...) ROW(attr, id, #id, __VA_ARGS__)

#define ROW(attr, id, name, offset_bits, width, text, printer)                          \
	[id] = {                                                                        \
		.mask = (width) > 32 ? 0 : BE32(LOW_BITS(width) << (offset_bits) % 32), \
		.offset = (width) > 32 ? (offset_bits) / 8 : (offset_bits) / 32 * 4,    \
		.shift = (width) > 32 ? 0 : (offset_bits) % 32,                         \
		.wide = (width) == 64,                                                  \
	},

const struct position field_positions[FIELD_NUMBERS] = {
#include "fields/fields.def"
};
#undef ROW

#define ROW(attr, id, name, offset_bits, width, text, printer)                               \
	[id] = {                                                                             \
		.info = {.constant = (name),                                                 \
			 .label = (text),                                                    \
			 .attribute = name_of_##attr,                                        \
			 .bits = (width)},                                                   \
		.dump = mad_dump_##printer,                                                  \
		.byte = (width) >= 32                                                        \
				? (offset_bits) / 8                                          \
				: (offset_bits) / 32 * 4 + FROM_TOP(offset_bits, width) / 8, \
	},

const struct field field_table[FIELD_NUMBERS] = {
#include "fields/fields.def"
};
#undef ROW

#define MAD_BITS (8 * VALUE_SIZE_MAX)

/* Rejects fields that cross a word, and labels too long for programs' buffers. */
#define ROW(attr, id, name, offset, bits, label, printer)                       \
	_Static_assert((bits) > 32 ? (offset) % 8 == 0 && (bits) % 8 == 0       \
				   : (offset) % 32 + (bits) <= 32,              \
		       name " crosses a word, or is no whole bytes");           \
	_Static_assert((offset) + (bits) <= MAD_BITS, name " is not in a MAD"); \
	_Static_assert(sizeof(label) <= IB_FIELD_NAME_LEN,                      \
		       name " has a label that is too long");
#include "fields/fields.def"
#undef ROW

/* Constants that are not fields: IB_NO_FIELD, IB_SM_DATA_F, ends of runs. */
#define NO_FIELDS 49
_Static_assert(ROWS == IB_FIELD_LAST_ - NO_FIELDS, "every field has its row");
_Static_assert(IB_FIELD_LAST_ <= MAD_OWN_FIELD_FIRST, "own numbers are above rdma-core's");
/* in C++, an enum whose largest constant is IB_FIELD_LAST_ only holds values up to 1023 */
_Static_assert(FIELD_NUMBERS <= 1024, "own numbers are values of the enumeration");

#undef FIELD
#undef FIELD_OVERLAPS

/* A field's first and last bit in wire order. */
#define FIRST_BIT(offset, bits) \
	((bits) < 32 ? (offset) / 32 * 32 + FROM_TOP(offset, bits) : (offset))
#define LAST_BIT(offset, bits) (FIRST_BIT(offset, bits) + (bits)-1)

/* One case label per bit: overlapping rows do not compile. */
#define BIT(attr, number) (ATTR_##attr * MAD_BITS + (number))
#define FIELD(attr, id, offset, bits, label, printer) \
	case BIT(attr, FIRST_BIT(offset, bits))... BIT(attr, LAST_BIT(offset, bits)):
#define FIELD_OVERLAPS(...)
static inline __attribute__((unused)) void fields_of_one_attribute_overlap(unsigned bit)
{
	switch (bit) {
#include "fields/fields.def"
	default:
		break;
	}
}
#undef FIELD
#undef FIELD_OVERLAPS

/* Rows meant to overlap must do so exactly. */
#define RANGE(attr, first, last, offset, bits) \
	first = BIT(attr, FIRST_BIT(offset, bits)), last = BIT(attr, LAST_BIT(offset, bits)),
#define FIELD(attr, id, offset, bits, label, printer) \
	RANGE(attr, FIRST_OF_##id, LAST_OF_##id, offset, bits)
#define FIELD_OVERLAPS(other, attr, id, offset, bits, label, printer) \
	RANGE(attr, FIRST_OF_##id, LAST_OF_##id, offset, bits)
enum {
#include "fields/fields.def"
};
#undef FIELD
#undef FIELD_OVERLAPS

#define FIELD(...)
#define FIELD_OVERLAPS(other, attr, id, ...)                                                 \
	_Static_assert(FIRST_OF_##id <= LAST_OF_##other && FIRST_OF_##other <= LAST_OF_##id, \
		       #id " does not overlap " #other);
#include "fields/fields.def"
#undef FIELD
#undef FIELD_OVERLAPS
