/* SPDX-License-Identifier: BSD-2-Clause */

#include "fake.h"
#include "test.h"

#include <infiniband/umad_str.h>

/* The file with the results of the reference, in the source folder. */
static FILE *open_vectors(void)
{
	char path[1024];
	FILE *file;

	snprintf(path, sizeof(path), "%s", __FILE__);
	strcpy(strstr(path, "unit/test_names.c"), "vectors/strings.tsv");
	file = fopen(path, "r");
	assert_non_null(file);
	return file;
}

static const char *respond(const char *function, unsigned first, unsigned second)
{
	if (!strcmp(function, "umad_class_str"))
		return umad_class_str((uint8_t)first);
	if (!strcmp(function, "umad_method_str"))
		return umad_method_str((uint8_t)first, (uint8_t)second);
	if (!strcmp(function, "umad_attribute_str"))
		return umad_attribute_str((uint8_t)first, htobe16((uint16_t)second));
	if (!strcmp(function, "umad_common_mad_status_str"))
		return umad_common_mad_status_str(htobe16((uint16_t)first));
	assert_string_equal(function, "umad_sa_mad_status_str");
	return umad_sa_mad_status_str(htobe16((uint16_t)first));
}

TEST(names_are_those_of_the_reference)
{
	FILE *file = open_vectors();
	char line[256], *rest;
	int rows = 0;

	while (fgets(line, sizeof(line), file)) {
		const char *function, *arguments;
		unsigned first = 0, second = 0;

		if (line[0] == '#')
			continue;
		line[strcspn(line, "\n")] = '\0';
		rest = line;
		function = strsep(&rest, "\t");
		arguments = strsep(&rest, "\t");
		assert_true(sscanf(arguments, "%u %u", &first, &second) >= 1);
		assert_string_equal(respond(function, first, second), rest);
		rows++;
	}
	fclose(file);
	print_message("strings.tsv: %d rows\n", rows);
	assert_int_equal(rows, 3605);
}

TEST(what_has_no_name_is_unknown)
{
	assert_string_equal(umad_class_str(2), "<unknown>");
	assert_string_equal(umad_attribute_str(1, htobe16(0x9999)), "<unknown>");
	assert_string_equal(umad_attribute_str(4, htobe16(0x12)), "<unknown>");
	/* as the reference spells it */
	assert_string_equal(umad_method_str(1, 0x12), "<unknown");
	assert_string_equal(umad_sa_mad_status_str(htobe16(0xff00)), "Undefined Error");
}

TEST(every_number_has_a_text)
{
	for (unsigned mgmt_class = 0; mgmt_class < 256; mgmt_class++)
		for (unsigned i = 0; i < 65536; i += mgmt_class < 8 ? 1 : 251) {
			assert_non_null(umad_attribute_str((uint8_t)mgmt_class, (uint16_t)i));
			assert_non_null(umad_method_str((uint8_t)mgmt_class, (uint8_t)i));
		}
	for (unsigned i = 0; i < 65536; i++) {
		assert_non_null(umad_common_mad_status_str((uint16_t)i));
		assert_non_null(umad_sa_mad_status_str((uint16_t)i));
	}
}
