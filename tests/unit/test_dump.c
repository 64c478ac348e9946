/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * What is printed of sizes and numbers that no value has. tests/vectors has the texts of all
 * values, in buffers of every size.
 */

#include "captured_output.h"
#include "fields/text.h"
#include "kept_log.h"
#include "test.h"

#include <infiniband/mad_fields.h>

static uint64_t image[64];

TEST(a_run_of_fields_is_a_line_for_each_that_fits)
{
	static const int ends[] = {INT32_MIN, -1, 0, 1, 50, 600, IB_FIELD_LAST_, INT32_MAX};
	const size_t count = sizeof(ends) / sizeof(*ends);
	char text[600];

	mad_dump_fields(text, sizeof(text), image, 0, IB_NODE_TYPE_F, IB_NODE_SYSTEM_GUID_F);
	assert_string_equal(text, "NodeType:........................?(0)?\n"
				  "NumPorts:........................0\n");
	/* a number that is no field has no line */
	mad_dump_fields(text, sizeof(text), image, 0, IB_SM_DATA_F, IB_SM_DATA_F + 1);
	assert_string_equal(text, "");
	for (size_t i = 0; i < count * count; i++)
		for (int bufsz = 0; bufsz < (int)sizeof(text); bufsz += 7) {
			memset(text, 'x', sizeof(text));
			mad_dump_fields(text, bufsz, image, sizeof(image), ends[i / count],
					ends[i % count]);
			assert_true(!bufsz || strlen(text) < (size_t)bufsz);
			assert_int_equal(text[bufsz], 'x');
		}
}

TEST(a_node_description_need_not_be_terminated)
{
	char description[64], text[128];

	memset(description, 'n', sizeof(description));
	mad_dump_nodedesc(text, sizeof(text), description, 64);
	assert_int_equal(strlen(text), 64);
	mad_dump_string(text, sizeof(text), description, 64);
	assert_int_equal(strlen(text), 63);
}

TEST(what_has_no_size_of_a_value_prints_as_nothing)
{
	static ib_mad_dump_fn *const printers[] = {mad_dump_int, mad_dump_uint, mad_dump_hex,
						   mad_dump_rhex, mad_dump_string};
	static const int sizes[] = {-1, 0, 9, 64};
	char text[64];

	keep_log(0);
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < (sizes[i] > 0 ? 4 : 5); j++) {
			strcpy(text, "x");
			printers[j](text, sizeof(text), image, sizes[i]);
			assert_string_equal(text, "");
		}
	assert_non_null(strstr(kept.text, "a number cannot have 64 bytes"));
	end_log();
	mad_dump_nodedesc(text, sizeof(text), image, 0);
	assert_string_equal(text, "");
	printers[0](NULL, 0, image, 4);
	assert_null(mad_dump_field(IB_PORT_STATE_F, NULL, 100, image));
}

/* Bits above the bytes of a value are not printed. */
TEST(a_number_has_as_many_bytes_as_its_size_says)
{
	static const struct {
		ib_mad_dump_fn *print;
		uint64_t value;
		int size;
		const char *text;
	} rows[] = {
		{mad_dump_uint, UINT64_MAX, 1, "255"},
		{mad_dump_int, UINT64_MAX, 2, "65535"},
		{mad_dump_hex, UINT64_MAX, 1, "0xff"},
		{mad_dump_bitfield, UINT64_MAX, 4, "0xffffffff"},
		{mad_dump_rhex, UINT64_MAX, 3, "ffffff"},
	};
	int32_t negative = -5;
	char text[64];

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t value = rows[i].value;

		rows[i].print(text, sizeof(text), &value, rows[i].size);
		assert_string_equal(text, rows[i].text);
	}
	mad_dump_int(text, sizeof(text), &negative, 4);
	assert_string_equal(text, "-5");
}

TEST(a_size_beyond_the_last_address_ends_there)
{
	char *buf = (char *)(UINTPTR_MAX - 10);
	struct text text = text_begin(buf, 100);

	assert_ptr_equal(text.at, buf);
	assert_int_equal(text_room(&text), 9);
}

TEST(a_field_prints_a_line_and_tells_its_length)
{
	static const struct {
		enum MAD_FIELDS field;
		const char *name, *line;
	} rows[] = {
		{IB_PORT_LID_F, NULL, "Lid:.............................7\n"},
		{IB_PORT_LID_F, "Mine", "Mine:............................7\n"},
		{IB_PORT_LID_F, "a_name_that_is_longer_than_any_label",
		 "a_name_that_is_longer_than_any_label:7\n"},
		{IB_NO_FIELD, NULL, ""},
	};
	uint32_t lid = 7;
	int ret;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		capture_output(stdout);
		ret = mad_print_field(rows[i].field, rows[i].name, &lid);
		assert_string_equal(captured_output(), rows[i].line);
		assert_int_equal(ret, *rows[i].line ? (int)strlen(rows[i].line) : -1);
	}
}
