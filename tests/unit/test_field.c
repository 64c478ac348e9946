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
TEST(each_constant_has_a_name_which_is_empty_for_markers)
{
	enum MAD_FIELDS field;

	for (field = IB_NO_FIELD; field < IB_FIELD_LAST_; field++) {
		assert_non_null(mad_field_name(field));
		assert_int_equal(!*mad_field_name(field), !mad_field_info(field));
	}
	assert_string_equal(mad_field_name(IB_PC_LAST_F), "");
	for (field = IB_FIELD_LAST_; field <= NUMBERS; field++)
		assert_int_equal(!mad_field_name(field), !mad_field_info(field));
	assert_null(mad_field_name((enum MAD_FIELDS) - 1));
	assert_null(mad_field_name((enum MAD_FIELDS)INT32_MIN));
	assert_null(mad_field_name((enum MAD_FIELDS)INT32_MAX));
}

TEST(every_field_comes_back_as_it_was_written)
{
	uint64_t image[64], value[64], back[64];
	enum MAD_FIELDS field;
	unsigned bits;

	for (field = IB_NO_FIELD; field < NUMBERS; field++) {
		bits = mad_field_info(field) ? mad_field_info(field)->bits : 0;
		for (unsigned base = 0; bits && base < 9; base++) {
			memset(image, 0xa5, sizeof(image));
			if (bits <= 64) {
				uint64_t number = UINT64_C(0x123456789abcdef0) >> (64 - bits);

				mad_set_field64(image, (int)base, field, number);
				assert_true(mad_get_field64(image, (int)base, field) == number);
				mad_set_field(image, (int)base, field, (uint32_t)number);
				assert_int_equal(mad_get_field(image, (int)base, field),
						 (uint32_t)number);
			} else {
				memset(value, 0x3c, sizeof(value));
				mad_set_array(image, (int)base, field, value);
				mad_get_array(image, (int)base, field, back);
				assert_memory_equal(value, back, bits / 8);
				assert_int_equal(mad_get_field(image, (int)base, field), 0);
				mad_set_field(image, (int)base, field, 1);
			}
		}
		memset(image, 0, sizeof(image));
		memset(value, 0x3c, sizeof(value));
		memset(back, 0, sizeof(back));
		if (!bits)
			continue;
		if (bits < 32) {
			uint32_t number = 0x5a5a5a5a & ((1u << bits) - 1);

			memcpy(value, &number, sizeof(number));
		}
		mad_encode_field((uint8_t *)image, field, value);
		mad_decode_field((uint8_t *)image, field, back);
		assert_memory_equal(value, back, bits <= 32 ? 4 : bits / 8);
	}
}

TEST(bits_beyond_the_field_are_left_out)
{
	uint8_t image[256] = {0};

	mad_set_field(image, 0, IB_PORT_LMC_F, 0xffffffff);
	assert_int_equal(mad_get_field(image, 0, IB_PORT_LMC_F), 7);
	assert_int_equal(mad_get_field(image, 0, IB_PORT_MKEY_PROT_BITS_F), 0);
	memset(image, 0, sizeof(image));
	mad_set_field(image, 1, IB_PORT_LMC_F, 0xffffffff);
	assert_int_equal(mad_get_field(image, 1, IB_PORT_LMC_F), 7);
	assert_int_equal(mad_get_field(image, 1, IB_PORT_MKEY_PROT_BITS_F), 0);
}

TEST(fields_are_found_by_constant_label_and_attribute)
{
	assert_int_equal(mad_field_by_name("IB_PORT_LID_F"), IB_PORT_LID_F);
	assert_int_equal(mad_field_by_name("Lid"), IB_PORT_LID_F);
	assert_int_equal(mad_field_by_name("GuidInfoRecord.Lid"), IB_SA_GIR_LID_F);
	assert_int_equal(mad_field_by_name("NodeRecord.Lid"), IB_SA_NR_LID_F);
	assert_int_equal(mad_field_by_name("PortCounters.PortXmitData"), IB_PC_XMT_BYTES_F);
	assert_int_equal(mad_field_by_name("PortCountersExtended.PortXmitData"),
			 IB_PC_EXT_XMT_BYTES_F);
	assert_int_equal(mad_field_by_name("PortInfo.IB_PORT_LID_F"), IB_PORT_LID_F);
	assert_int_equal(mad_field_by_name("NodeInfo.Lid"), IB_NO_FIELD);
	assert_int_equal(mad_field_by_name("PortInfo."), IB_NO_FIELD);
	assert_int_equal(mad_field_by_name(""), IB_NO_FIELD);
	assert_int_equal(mad_field_by_name("lid"), IB_NO_FIELD);
	assert_int_equal(mad_field_by_name(NULL), IB_NO_FIELD);
	assert_string_equal(mad_field_info(IB_PORT_FIRST_F)->constant, "IB_PORT_MKEY_F");
	assert_string_equal(mad_field_info(IB_PORT_LID_F)->attribute, "PortInfo");
	assert_string_equal(mad_field_info(IB_PORT_LID_F)->label, "Lid");
	assert_int_equal(mad_field_info(IB_PORT_LMC_F)->bits, 3);
}

TEST(an_attribute_can_be_walked_through)
{
	static const enum MAD_FIELDS wanted[] = {IB_GID_PREFIX_F, IB_GID_GUID_F, IB_NO_FIELD};
	enum MAD_FIELDS field = IB_NO_FIELD;
	int i, count = 0;

	for (i = 0; i < 3; i++) {
		field = mad_field_next("GID", field);
		assert_int_equal(field, wanted[i]);
	}
	while ((field = mad_field_next("PortInfo", field)) != IB_NO_FIELD)
		count++;
	assert_int_equal(count, 47 + 4 + 3);
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

TEST(every_field_is_met_once)
{
	unsigned char met[NUMBERS] = {0};
	enum MAD_FIELDS field = IB_NO_FIELD, last = IB_NO_FIELD;

	while ((field = mad_field_next(NULL, field)) != IB_NO_FIELD) {
		assert_true(field > last);
		met[last = field]++;
	}
	for (field = IB_NO_FIELD; field < NUMBERS; field++)
		assert_int_equal(met[field], mad_field_info(field) != NULL);
	assert_int_equal(mad_field_next(NULL, (enum MAD_FIELDS) - 1), IB_NO_FIELD);
}

/* A loop over all fields has each attribute, by which its fields can be had again. */
TEST(the_fields_of_each_attribute_are_all_fields)
{
	enum MAD_FIELDS field = IB_NO_FIELD, each;
	unsigned all = 0, of_attributes = 0;

	while ((field = mad_field_next(NULL, field)) != IB_NO_FIELD) {
		const char *attribute = mad_field_info(field)->attribute;

		all++;
		if (mad_field_next(attribute, IB_NO_FIELD) != field)
			continue;
		for (each = field; each != IB_NO_FIELD; each = mad_field_next(attribute, each))
			of_attributes++;
	}
	assert_int_equal(all, of_attributes);
}

TEST(a_constant_image_is_read_as_one_that_is_not)
{
	uint8_t image[320], one[256], other[256];
	enum MAD_FIELDS field;

	for (size_t i = 0; i < sizeof(image); i++)
		image[i] = (uint8_t)(i * 7 + 1);
	for (field = IB_NO_FIELD; field <= NUMBERS; field++)
		for (int base = 0; base < 2; base++) {
			const uint8_t *constant = image;

			assert_true(mad_read_field(constant, base, field) ==
				    mad_get_field64(image, base, field));
			memset(one, 0, sizeof(one));
			memset(other, 0, sizeof(other));
			mad_read_array(constant, base, field, one);
			mad_get_array(image, base, field, other);
			assert_memory_equal(one, other, sizeof(one));
		}
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

/* Byte b of an image is at b ^ 3, counted from the least significant end of each word. */
TEST(a_field_may_lie_across_words)
{
	uint8_t bytes[64];

	for (uint8_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = i;
	assert_int_equal(mad_get_field(bytes, 0, IB_PORT_CAPMASK_F), 0x14151617);
	assert_int_equal(mad_get_field(bytes, 1, IB_PORT_CAPMASK_F), 0x1b141516);
	assert_int_equal(mad_get_field(bytes, 2, IB_PORT_CAPMASK_F), 0x1a1b1415);
	assert_int_equal(mad_get_field(bytes, 3, IB_PORT_CAPMASK_F), 0x191a1b14);
	assert_int_equal(mad_get_field(bytes, 4, IB_PORT_CAPMASK_F), 0x18191a1b);
}
