/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Each call that writes a text into a buffer of the caller, with each size of the buffer. The
 * printers of attributes are in test_dump.c.
 */

#include "test.h"

#include <infiniband/mad_errors.h>
#include <infiniband/mad_fields.h>
#include <infiniband/mad_notice.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST 600

/* Writes the text into a buffer of "size" bytes. */
typedef void write_fn(const struct mad_notice *notice, char *buf, size_t size);

static const struct mad_notice port_notice = {
	.kind = MAD_NOTICE_PORT,
	.before = {.state = 4, .lid = 7, .gid_prefix = 1, .speed = 1},
	.after = {.state = 1, .lid = 9, .gid_prefix = 2, .speed = 2},
};
static const struct mad_notice unchanged_notice = {.kind = MAD_NOTICE_PORT};
static const struct mad_notice m_key_notice = {
	.kind = MAD_NOTICE_TRAP, .generic = true, .trap = 256, .path_length = 3};
static const struct mad_notice q_key_notice = {
	.kind = MAD_NOTICE_TRAP, .generic = true, .trap = 258, .lid = 1};
static const struct mad_notice vendor_notice = {.kind = MAD_NOTICE_TRAP, .producer = 0x2c9};
static const struct mad_notice subscription_notice = {
	.kind = MAD_NOTICE_SUBSCRIPTION, .error = -EIO, .status = 0x700};
static const struct mad_notice end_notice = {.kind = MAD_NOTICE_END, .error = -ENETDOWN};

static void notice_text(const struct mad_notice *notice, char *buf, size_t size)
{
	assert_ptr_equal(mad_notice_text(notice, buf, size), buf);
}

/* Without a byte for it, the text is "", which is not in the buffer. */
static void expect_text(const char *returned, const char *buf, size_t size)
{
	if (size)
		assert_ptr_equal(returned, buf);
	else
		assert_string_equal(returned, "");
}

static void status(const struct mad_notice *none, char *buf, size_t size)
{
	(void)none;
	expect_text(mad_status_text(IB_DEVICE_MGMT_CLASS, 0x871f, buf, size), buf, size);
}

static void no_status(const struct mad_notice *none, char *buf, size_t size)
{
	(void)none;
	expect_text(mad_status_text(IB_SA_CLASS, 0, buf, size), buf, size);
}

static void failure(const struct mad_notice *none, char *buf, size_t size)
{
	const struct mad_failure timeout = {
		.error = -ETIMEDOUT, .transmissions = 3, .elapsed_ms = 3000};

	(void)none;
	expect_text(mad_failure_text(&timeout, buf, size), buf, size);
}

static void last_failure(const struct mad_notice *none, char *buf, size_t size)
{
	(void)none;
	expect_text(mad_failure_text(NULL, buf, size), buf, size);
}

static void route(const struct mad_notice *none, char *buf, size_t size)
{
	ib_dr_path_t path = {.cnt = IB_SUBNET_PATH_HOPS_MAX - 1};

	(void)none;
	memset(path.p, 254, sizeof(path.p));
	assert_ptr_equal(drpath2str(&path, buf, size), buf);
}

static void field_text(const struct mad_notice *none, char *buf, size_t size)
{
	uint8_t description[IB_SMP_DATA_SIZE];

	(void)none;
	memset(description, ',', sizeof(description));
	assert_int_equal(mad_read_text(description, 0, IB_NODE_DESC_F, buf, size), 64);
}

static void printable(const struct mad_notice *none, char *buf, size_t size)
{
	(void)none;
	assert_ptr_equal(mad_printable_text("a,b\tc\x1b[31m,,", buf, size), buf);
}

static const struct text_row {
	const char *behaviour;
	write_fn *write;
	const struct mad_notice *notice;
} rows[] = {
	{"a_notice_of_a_port", notice_text, &port_notice},
	{"a_notice_of_a_port_without_a_change", notice_text, &unchanged_notice},
	{"a_notice_of_a_bad_m_key", notice_text, &m_key_notice},
	{"a_notice_of_a_bad_q_key", notice_text, &q_key_notice},
	{"a_notice_of_a_vendor", notice_text, &vendor_notice},
	{"a_notice_of_a_subscription", notice_text, &subscription_notice},
	{"a_notice_of_an_end", notice_text, &end_notice},
	{"no_notice", notice_text, NULL},
	{"a_status", status, NULL},
	{"success", no_status, NULL},
	{"a_failure", failure, NULL},
	{"the_last_failure", last_failure, NULL},
	{"a_route", route, NULL},
	{"a_text_of_an_attribute", field_text, NULL},
	{"a_printable_text", printable, NULL},
};

/*
 * A text is the begin of the whole text. Only the last comma of a list may be absent from a
 * text that was cut. Each byte outside is a comma, which a text ends with nowhere.
 */
static void check_size(const struct text_row *row, const char *whole, size_t size)
{
	char bytes[LONGEST + 64], *buf = bytes + 32, *exact;
	size_t length;

	memset(bytes, ',', sizeof(bytes));
	row->write(row->notice, buf, size);
	for (size_t i = 0; i < sizeof(bytes); i++)
		if ((i < 32 || i >= 32 + size) && bytes[i] != ',')
			fail_msg("size %zu: byte %zd is written", size, (ssize_t)i - 32);
	if (!size)
		return;
	length = strnlen(buf, size);
	assert_true(length < size);
	assert_memory_equal(buf, whole, length);
	assert_true(length + 2 >= size || length == strlen(whole));
	/* a buffer of the heap, for the sanitizer */
	exact = malloc(size);
	assert_non_null(exact);
	row->write(row->notice, exact, size);
	assert_string_equal(exact, buf);
	free(exact);
}

static void each_size_is_kept(const struct text_row *row)
{
	char whole[LONGEST];

	row->write(row->notice, whole, sizeof(whole));
	assert_true(strlen(whole) < sizeof(whole) - 1);
	for (size_t size = 0; size <= strlen(whole) + 2; size++)
		check_size(row, whole, size);
}

TEST_ROWS(each_size_is_kept, rows);

TEST(no_buffer_is_no_text)
{
	assert_null(mad_notice_text(&port_notice, NULL, 0));
	assert_string_equal(mad_status_text(IB_SA_CLASS, 0x700, NULL, 0), "");
	assert_string_equal(mad_failure_text(NULL, NULL, 0), "");
}

/* --- what is printable -------------------------------------------------------------- */

static void expect_printable(const char *text, const char *expected)
{
	char buf[100];

	assert_string_equal(mad_printable_text(text, buf, sizeof(buf)), expected);
	snprintf(buf, sizeof(buf), "%s", text);
	assert_string_equal(mad_printable_text(buf, buf, sizeof(buf)), expected);
}

TEST(what_is_neither_utf_8_nor_printable_is_replaced)
{
	static const char *const texts[][2] = {
		{"", ""},
		{"host-1 ~", "host-1 ~"},
		{"\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80",
		 "\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80"},
		{"\x1b[31m\t\r\n\x7f", "?[31m????"},
		{"\xc2\x9b+", "?+"},     /* U+009B, CSI */
		{"\xe2\x80\xae+", "?+"}, /* U+202E, right to left */
		{"\xe2\x80\xa8+", "?+"}, /* U+2028, a line separator */
		{"\xff+\xc3", "?+?"},
		{"\xe6\x97", "??"},
		{"\xe6\x97+", "??+"},
		{"\xc0\x8a", "??"}, /* a longer form of a new line */
		{"\xe0\x80\x8a", "???"},
		{"\xed\xa0\x80", "?"},     /* a surrogate */
		{"\xf4\x90\x80\x80", "?"}, /* beyond U+10FFFF */
		{"\xf8\x88\x80\x80\x80", "?????"},
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		expect_printable(texts[i][0], texts[i][1]);
}

TEST(a_printable_text_is_cut_between_characters)
{
	char buf[6];

	assert_string_equal(mad_printable_text("ab\xc3\xa9\xc3\xa9", buf, sizeof(buf)),
			    "ab\xc3\xa9");
	assert_string_equal(mad_printable_text("ab\xe6\x97\xa5", buf, 5), "ab");
	assert_string_equal(mad_printable_text(NULL, buf, sizeof(buf)), "");
	assert_null(mad_printable_text("a", NULL, 0));
}

/* A second call changes nothing, and no control byte is left. */
TEST(a_random_text_becomes_printable)
{
	unsigned state = test_seed();

	for (unsigned round = 0; round < 100000; round++) {
		char text[65], buf[65], again[65];
		size_t length = round % 65, size = 1 + round % sizeof(buf);

		for (size_t i = 0; i < length; i++) {
			state = state * 1103515245u + 12345u;
			text[i] = (char)(1 + (state >> 16) % 255);
		}
		text[length] = '\0';
		mad_printable_text(text, buf, size);
		assert_true(strlen(buf) < size && strlen(buf) <= length);
		for (const char *at = buf; *at; at++)
			assert_true((uint8_t)*at >= 0x20 && *at != 0x7f);
		assert_string_equal(mad_printable_text(buf, again, sizeof(again)), buf);
	}
}
