/* SPDX-License-Identifier: BSD-2-Clause */

#include "test.h"

#include <infiniband/mad_fields.h>

/* Above every field, rdma-core's and own. */
#define NUMBERS 1024

static const enum MAD_FIELDS no_fields[] = {
	IB_NO_FIELD,
	IB_SM_DATA_F,
	IB_PORT_LAST_F,
	IB_NODE_LAST_F,
	IB_PC_EXT_LAST_F,
	IB_FIELD_LAST_,
	(enum MAD_FIELDS)671,
	(enum MAD_FIELDS)(MAD_OWN_FIELD_FIRST - 1),
	(enum MAD_FIELDS)(NUMBERS - 1),
	(enum MAD_FIELDS)NUMBERS,
	(enum MAD_FIELDS)10000,
	(enum MAD_FIELDS) - 1,
	(enum MAD_FIELDS)INT32_MIN,
	(enum MAD_FIELDS)INT32_MAX,
};

TEST(what_is_no_field_reads_0_and_writes_nothing)
{
	uint64_t image[64], before[64], value[64];
	uint8_t *buf = (uint8_t *)image;
	char text[64];

	memset(image, 0xa5, sizeof(image));
	memset(value, 0x5a, sizeof(value));
	memcpy(before, image, sizeof(image));
	for (size_t i = 0; i < sizeof(no_fields) / sizeof(*no_fields); i++) {
		assert_int_equal(mad_get_field(image, 0, no_fields[i]), 0);
		assert_true(mad_get_field64(image, 0, no_fields[i]) == 0);
		mad_set_field(image, 0, no_fields[i], 7);
		mad_set_field64(image, 0, no_fields[i], 7);
		mad_set_array(image, 0, no_fields[i], value);
		mad_encode_field(buf, no_fields[i], value);
		assert_memory_equal(image, before, sizeof(image));
		mad_get_array(image, 0, no_fields[i], value);
		mad_decode_field(buf, no_fields[i], value);
		assert_true(value[0] == 0x5a5a5a5a5a5a5a5a);
		assert_null(mad_field_info(no_fields[i]));
		assert_null(mad_dump_val(no_fields[i], text, sizeof(text), value));
		assert_null(mad_dump_field(no_fields[i], text, sizeof(text), value));
		assert_int_equal(mad_print_field(no_fields[i], NULL, value), -1);
	}
}

/* Programs compare the names of all numbers of a range, including its end marker. */
TEST(each_constant_has_a_name_which_is_empty_for_markers_that_read_0)
{
	uint64_t ones[64];

	memset(ones, 0xff, sizeof(ones));
	for (enum MAD_FIELDS field = IB_NO_FIELD; field <= NUMBERS; field++) {
		const char *name = mad_field_name(field);

		if (!mad_field_info(field))
			assert_int_equal(mad_get_field(ones, 0, field), 0);
		if (field < IB_FIELD_LAST_)
			assert_non_null(name);
		assert_int_equal(!name || !*name, !mad_field_info(field));
	}
	assert_string_equal(mad_field_name(IB_PC_LAST_F), "");
	assert_null(mad_field_name((enum MAD_FIELDS) - 1));
	assert_null(mad_field_name((enum MAD_FIELDS)INT32_MIN));
	assert_null(mad_field_name((enum MAD_FIELDS)INT32_MAX));
}

/* tests/vectors has fields at places that are multiples of 4. */
static void comes_back(enum MAD_FIELDS field, unsigned bits, int base)
{
	uint64_t image[64], value[64], back[64];

	memset(image, 0xa5, sizeof(image));
	if (bits <= 64) {
		const uint64_t number = UINT64_C(0x123456789abcdef0) >> (64 - bits);

		mad_set_field64(image, base, field, number);
		assert_true(mad_get_field64(image, base, field) == number);
		assert_true(mad_read_field(image, base, field) == number);
		mad_set_field(image, base, field, (uint32_t)number);
		assert_int_equal(mad_get_field(image, base, field), (uint32_t)number);
		return;
	}
	memset(value, 0x3c, sizeof(value));
	mad_set_array(image, base, field, value);
	mad_get_array(image, base, field, back);
	assert_memory_equal(value, back, bits / 8);
	memset(back, 0, sizeof(back));
	mad_read_array(image, base, field, back);
	assert_memory_equal(value, back, bits / 8);
	assert_int_equal(mad_get_field(image, base, field), 0);
}

TEST(every_field_comes_back_as_it_was_written)
{
	for (enum MAD_FIELDS field = IB_NO_FIELD; field < NUMBERS; field++) {
		const struct mad_field *info = mad_field_info(field);
		uint64_t image[64] = {0}, value[64], back[64] = {0};

		if (!info)
			continue;
		for (int base = 0; base < 9; base++)
			comes_back(field, info->bits, base);
		memset(value, 0x3c, sizeof(value));
		if (info->bits < 32)
			memcpy(value, &(uint32_t){0x5a5a5a5a & ((1u << info->bits) - 1)}, 4);
		mad_encode_field((uint8_t *)image, field, value);
		mad_decode_field((uint8_t *)image, field, back);
		assert_memory_equal(value, back, info->bits <= 32 ? 4 : info->bits / 8);
	}
}

/* Byte b of an image is at b ^ 3, counted from the least significant end of each word. */
TEST(a_field_may_lie_across_words_and_bits_beyond_it_are_left_out)
{
	static const uint32_t across[] = {0x14151617, 0x1b141516, 0x1a1b1415, 0x191a1b14,
					  0x18191a1b};
	uint8_t bytes[64];

	for (uint8_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = i;
	for (int base = 0; base < 5; base++)
		assert_int_equal(mad_get_field(bytes, base, IB_PORT_CAPMASK_F), across[base]);
	for (int base = 0; base < 2; base++) {
		memset(bytes, 0, sizeof(bytes));
		mad_set_field(bytes, base, IB_PORT_LMC_F, 0xffffffff);
		assert_int_equal(mad_get_field(bytes, base, IB_PORT_LMC_F), 7);
		assert_int_equal(mad_get_field(bytes, base, IB_PORT_MKEY_PROT_BITS_F), 0);
	}
}

TEST(fields_are_found_by_constant_label_and_attribute)
{
	static const struct {
		const char *name;
		enum MAD_FIELDS field;
	} rows[] = {
		{"IB_PORT_LID_F", IB_PORT_LID_F},
		{"Lid", IB_PORT_LID_F},
		{"GuidInfoRecord.Lid", IB_SA_GIR_LID_F},
		{"PortCounters.PortXmitData", IB_PC_XMT_BYTES_F},
		{"PortCountersExtended.PortXmitData", IB_PC_EXT_XMT_BYTES_F},
		{"PortInfo.IB_PORT_LID_F", IB_PORT_LID_F},
		{"NodeInfo.Lid", IB_NO_FIELD},
		{"PortInfo.", IB_NO_FIELD},
		{"", IB_NO_FIELD},
		{"lid", IB_NO_FIELD},
		{NULL, IB_NO_FIELD},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_int_equal(mad_field_by_name(rows[i].name), rows[i].field);
	assert_string_equal(mad_field_info(IB_PORT_FIRST_F)->constant, "IB_PORT_MKEY_F");
	assert_string_equal(mad_field_info(IB_PORT_LID_F)->attribute, "PortInfo");
	assert_string_equal(mad_field_info(IB_PORT_LID_F)->label, "Lid");
	assert_int_equal(mad_field_info(IB_PORT_LMC_F)->bits, 3);
}

/* Each field is met once in a loop over all fields, and in one over its attribute. */
TEST(all_fields_and_those_of_an_attribute_can_be_walked_through)
{
	static const enum MAD_FIELDS gid[] = {IB_GID_PREFIX_F, IB_GID_GUID_F, IB_NO_FIELD};
	enum MAD_FIELDS field = IB_NO_FIELD, last = IB_NO_FIELD, each;
	unsigned all = 0, of_attributes = 0;

	for (int i = 0; i < 3; i++) {
		field = mad_field_next("GID", field);
		assert_int_equal(field, gid[i]);
	}
	for (; (field = mad_field_next(NULL, last)) != IB_NO_FIELD; last = field, all++) {
		const char *attribute = mad_field_info(field)->attribute;

		while (++last < field)
			assert_null(mad_field_info(last));
		if (mad_field_next(attribute, IB_NO_FIELD) != field)
			continue;
		for (each = field; each != IB_NO_FIELD; each = mad_field_next(attribute, each))
			of_attributes++;
	}
	assert_int_equal(all, of_attributes);
	for (field = last + 1; field < NUMBERS; field++)
		assert_null(mad_field_info(field));
	assert_int_equal(mad_field_next(NULL, (enum MAD_FIELDS) - 1), IB_NO_FIELD);
	assert_int_equal(mad_field_next("NoSuchAttribute", IB_NO_FIELD), IB_NO_FIELD);
	assert_int_equal(mad_field_next("GID", (enum MAD_FIELDS) - 1), IB_NO_FIELD);
	assert_int_equal(mad_field_next("GID", IB_FIELD_LAST_), IB_NO_FIELD);
}

/* A row for each own field. Programs have the numbers compiled in: a row does not change. */
static const struct {
	enum MAD_FIELDS field;
	unsigned number, bits;
	const char *constant, *attribute;
} own_fields[] = {
	{MAD_SA_PR_PKEY_F, 896, 16, "MAD_SA_PR_PKEY_F", "PathRecord"},
	{MAD_SA_PR_MTU_F, 897, 6, "MAD_SA_PR_MTU_F", "PathRecord"},
	{MAD_SA_PR_RATE_F, 898, 6, "MAD_SA_PR_RATE_F", "PathRecord"},
	{MAD_SA_PR_LIFETIME_F, 899, 6, "MAD_SA_PR_LIFETIME_F", "PathRecord"},
};

TEST(own_fields_have_their_numbers_and_names)
{
	const size_t count = sizeof(own_fields) / sizeof(*own_fields);

	for (size_t i = 0; i < count; i++) {
		enum MAD_FIELDS field = own_fields[i].field;
		const struct mad_field *info = mad_field_info(field);

		assert_non_null(info);
		assert_int_equal(field, own_fields[i].number);
		assert_int_equal(info->bits, own_fields[i].bits);
		assert_string_equal(info->constant, own_fields[i].constant);
		assert_string_equal(info->attribute, own_fields[i].attribute);
		assert_int_equal(mad_field_by_name(own_fields[i].constant), field);
	}
	for (unsigned number = MAD_OWN_FIELD_FIRST; number < NUMBERS; number++)
		if ((number < MAD_OWN_FIELD_FIRST + count) !=
		    (mad_field_info((enum MAD_FIELDS)number) != NULL))
			fail_msg("field %u has no row in own_fields[], or the row has no field",
				 number);
}

TEST(own_fields_of_a_path_record_follow_its_others)
{
	uint8_t path[64] = {[50] = 0x92, [51] = 0x34, [54] = 0x84, [55] = 0x92, [56] = 0x91};
	char text[64];

	assert_int_equal(mad_get_field(path, 0, MAD_SA_PR_PKEY_F), 0x9234);
	assert_int_equal(mad_get_field(path, 0, MAD_SA_PR_RATE_F), 18);
	assert_int_equal(mad_get_field(path, 0, MAD_SA_PR_LIFETIME_F), 17);
	mad_dump_fields(text, sizeof(text), path, 0, MAD_SA_PR_MTU_F, MAD_SA_PR_RATE_F);
	assert_string_equal(text, "PathRecMTU:......................2048\n");
	assert_int_equal(mad_field_next("PathRecord", IB_SA_PR_SL_F), MAD_SA_PR_PKEY_F);
	assert_int_equal(mad_field_next("PathRecord", MAD_SA_PR_PKEY_F), MAD_SA_PR_MTU_F);
}

TEST(a_text_ends_with_its_nul_or_its_field_and_always_within_the_buffer)
{
	uint8_t image[80];
	char text[80];

	memset(image, 'x', sizeof(image));
	memset(text, '#', sizeof(text));
	assert_int_equal(mad_read_text(image, 3, IB_NODE_DESC_F, text, sizeof(text)), 64);
	assert_int_equal(strlen(text), 64);
	memcpy(image, "switch \xc3\xa9", 10);
	assert_int_equal(mad_read_text(image, 0, IB_NODE_DESC_F, text, sizeof(text)), 9);
	assert_string_equal(text, "switch \xc3\xa9");
	memset(text, '#', sizeof(text));
	assert_int_equal(mad_read_text(image, 0, IB_NODE_DESC_F, text, 4), 9);
	assert_memory_equal(text, "swi\0#", 5);
	assert_int_equal(mad_read_text(image, 0, IB_NODE_DESC_F, NULL, 0), 9);
	image[0] = 0;
	assert_int_equal(mad_read_text(image, 0, IB_NODE_DESC_F, text, 1), 0);
	assert_memory_equal(text, "\0wi", 3);
	text[0] = '#';
	assert_int_equal(mad_read_text(image, 0, IB_NODE_LAST_F, text, sizeof(text)), 0);
	assert_string_equal(text, "");
}
