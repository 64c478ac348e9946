/* SPDX-License-Identifier: BSD-2-Clause */

#include "fake.h"
#include "sysfs.h"
#include "test.h"

#include <sys/stat.h>

FIXTURE(fake_setup, fake_teardown);

#define DIR  "/sys/class/infiniband/mlx5_0"
#define FILE DIR "/attribute"

TEST(a_number_is_what_the_attribute_begins_with)
{
	static const struct {
		const char *content;
		int ret;
		unsigned value;
	} rows[] = {
		{"4: ACTIVE\n", 0, 4},
		{"0x1\n", 0, 1},
		{"400 Gb/sec (4X NDR)\n", 0, 400},
		{"2.5 Gb/sec (1X)\n", 0, 2},
		{"0\n", 0, 0},
		{"7", 0, 7},
		{"0x00010000\n", 0, 0x10000},
		{"4294967295\n", 0, 4294967295u},
		{"4294967296\n", -EIO, 0},
		{"99999999999999999999999\n", -EIO, 0},
		{"-1\n", -EIO, 0},
		{"+1\n", -EIO, 0},
		{" 1\n", -EIO, 0},
		{"\n", -EIO, 0},
		{"", -EIO, 0},
		{"ACTIVE\n", -EIO, 0},
		{"\xff\xfe\n", -EIO, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		unsigned value = 77;

		fake_file(FILE, "%s", rows[i].content);
		assert_int_equal(sysfs_read_uint(DIR, "attribute", &value), rows[i].ret);
		assert_int_equal(value, rows[i].ret ? 77 : rows[i].value);
	}
}

TEST(a_huge_attribute_is_read_no_further_than_needed)
{
	static char huge[1 << 20];
	unsigned value;
	char text[8];

	memset(huge, '1', sizeof(huge));
	huge[2] = ' ';
	fake_file_bytes(FILE, huge, sizeof(huge));
	assert_int_equal(sysfs_read_uint(DIR, "attribute", &value), 0);
	assert_int_equal(value, 11);
	/* the rest of the line is unknown, except that it is longer than the buffer */
	assert_in_range(sysfs_read_text(DIR, "attribute", text, sizeof(text)), 8, 1 << 20);
	assert_string_equal(text, "11 1111");
}

TEST(a_text_is_the_first_line_without_its_end)
{
	static const struct {
		const char *content;
		size_t size, room; /* of the content, of the buffer */
		int length;        /* of the line */
		const char *text;
	} rows[] = {
		{"MT4123\nmore\n", 12, 16, 6, "MT4123"},
		{"unterminated", 12, 16, 12, "unterminated"},
		{"a\0b\n", 4, 16, 1, "a"},
		{"", 0, 16, 0, ""},
		{"123456\n", 7, 4, 6, "123"},
		{"123\n", 4, 4, 3, "123"},
		{"123\n", 4, 1, 3, ""},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char text[17];

		memset(text, 'x', sizeof(text));
		fake_file_bytes(FILE, rows[i].content, rows[i].size);
		assert_int_equal(sysfs_read_text(DIR, "attribute", text, rows[i].room),
				 rows[i].length);
		assert_string_equal(text, rows[i].text);
		assert_int_equal(text[rows[i].room], 'x');
	}
}

TEST(a_guid_is_four_groups_of_hex)
{
	static const struct {
		const char *content;
		int ret;
	} rows[] = {
		{"0002:c903:00a0:0b10\n", 0},     {"0002:c903:00a0:0b10", 0},
		{"2:c903:a0:b10\n", 0},           {"0002:C903:00a0:0B10", 0},
		{"0002:c903:00a0\n", -EIO},       {"0002:c903:00a0:0b10:0000\n", -EIO},
		{"0002:c903:00a0:0b10 \n", -EIO}, {"0002:c903:00a0:00b10\n", -EIO},
		{"0002:c903::0b10\n", -EIO},      {"0002:c903:00a0:\n", -EIO},
		{"0002:c903:00a0:-b10\n", -EIO},  {"0x02:c903:00a0:0b10\n", -EIO},
		{"0002c90300a00b10\n", -EIO},     {"", -EIO},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		__be64 guid = 7;

		fake_file(FILE, "%s", rows[i].content);
		assert_int_equal(sysfs_read_guid(DIR, "attribute", &guid), rows[i].ret);
		assert_true(guid == (rows[i].ret ? 7 : htobe64(0x0002c90300a00b10)));
	}
}

TEST(a_gid_is_eight_groups_of_hex)
{
	static const uint8_t wanted[] = {0xfe, 0x80, 0,    0, 0, 0, 0,    0,
					 0,    2,    0xc9, 3, 0, 0, 0x12, 0x34};
	union umad_gid gid;

	fake_file(FILE, "fe80:0000:0000:0000:0002:c903:0000:1234\n");
	assert_int_equal(sysfs_read_gid(DIR, "attribute", &gid), 0);
	assert_memory_equal(gid.raw, wanted, 16);
}

TEST(what_cannot_be_read_gives_its_errno)
{
	union umad_gid gid;
	unsigned value;
	__be64 guid;
	char text[8];

	assert_int_equal(sysfs_read_uint(DIR, "attribute", &value), -ENOENT);
	assert_int_equal(sysfs_read_text(DIR, "attribute", text, 8), -ENOENT);
	assert_int_equal(sysfs_read_guid(DIR, "attribute", &guid), -ENOENT);
	assert_int_equal(sysfs_read_gid(DIR, "attribute", &gid), -ENOENT);
	fake_link(FILE, "nowhere");
	assert_int_equal(sysfs_read_uint(DIR, "attribute", &value), -ENOENT);
	fake_remove(FILE);
	fake_dir(FILE);
	assert_int_equal(sysfs_read_uint(DIR, "attribute", &value), -EISDIR);
}

TEST(a_fifo_does_not_keep_us_waiting)
{
	unsigned value;

	fake_dir(DIR);
	assert_int_equal(mkfifo(fake_real_path(FILE), 0600), 0);
	assert_int_equal(sysfs_read_uint(DIR, "attribute", &value), -EIO);
}

TEST(a_failing_read_leaves_nothing_open)
{
	unsigned value;

	fake_file(FILE, "1\n");
	/* the kernel's "no value" is not reported as an invalid argument */
	fake_fail_call(2, EINVAL);
	assert_int_equal(sysfs_read_uint(DIR, "attribute", &value), -EIO);
}

TEST(a_path_that_is_too_long_is_refused)
{
	char name[SYSFS_PATH_MAX + 1], path[SYSFS_PATH_MAX];
	unsigned value;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(sysfs_path(path, "%s", name), -ENAMETOOLONG);
	assert_int_equal(sysfs_read_uint(DIR, name, &value), -ENAMETOOLONG);
	name[SYSFS_PATH_MAX - 1] = '\0';
	assert_int_equal(sysfs_path(path, "%s", name), 0);
	assert_string_equal(path, name);
}

TEST(a_number_in_binary_rubbish_ends_before_it)
{
	unsigned value;

	fake_file_bytes(FILE, "4\0\xff\xfe", 4);
	assert_int_equal(sysfs_read_uint(DIR, "attribute", &value), 0);
	assert_int_equal(value, 4);
	fake_file_bytes(FILE, "\0004", 2);
	assert_int_equal(sysfs_read_uint(DIR, "attribute", &value), -EIO);
}

TEST(a_line_without_end_is_cut_at_what_is_read_of_it)
{
	char text[1024], wanted[256];

	memset(wanted, 'x', 255);
	wanted[255] = '\0';
	fake_file(FILE, "%s", wanted);
	assert_int_equal(sysfs_read_text(DIR, "attribute", text, sizeof(text)), 255);
	assert_string_equal(text, wanted);
	memset(text, 'x', sizeof(text));
	fake_file_bytes(FILE, text, sizeof(text));
	assert_in_range(sysfs_read_text(DIR, "attribute", text, sizeof(text)), 255, 1024);
	assert_memory_equal(text, wanted, 255);
	assert_non_null(memchr(text, '\0', sizeof(text)));
}

TEST(a_gid_that_is_not_whole_is_refused_and_stored_nowhere)
{
	static const char *const contents[] = {
		"fe80::1234\n",
		"fe80:0000:0000:0000:0002:c903:0000\n",
		"fe80:0000:0000:0000:0002:c903:0000:1234:0000\n",
		"fe80:0000:0000:0000:0002:c903:0000:1234 \n",
		"fe80:0000:0000:0000:0002:c903:0000:12345\n",
		"fe80:0000:0000:0000:0002:c903:0000:\n",
		"\xff\xfe\n",
		"",
	};
	union umad_gid gid, before;

	memset(&gid, 0xa5, sizeof(gid));
	before = gid;
	for (size_t i = 0; i < sizeof(contents) / sizeof(*contents); i++) {
		fake_file(FILE, "%s", contents[i]);
		assert_int_equal(sysfs_read_gid(DIR, "attribute", &gid), -EIO);
		assert_memory_equal(&gid, &before, sizeof(gid));
	}
}

static void remove_it(const char *path)
{
	fake_remove(path);
}

TEST(an_attribute_may_vanish_just_before_it_is_opened)
{
	unsigned value = 77;

	fake_file(FILE, "1\n");
	fake_before_open(remove_it);
	assert_int_equal(sysfs_read_uint(DIR, "attribute", &value), -ENOENT);
	assert_int_equal(value, 77);
}

/* The four readers with one signature; their results are discarded. */
static int read_uint(void)
{
	unsigned value;

	return sysfs_read_uint(DIR, "attribute", &value);
}

static int read_text(void)
{
	char text[8];

	return sysfs_read_text(DIR, "attribute", text, sizeof(text));
}

static int read_guid(void)
{
	__be64 guid;

	return sysfs_read_guid(DIR, "attribute", &guid);
}

static int read_gid(void)
{
	union umad_gid gid;

	return sysfs_read_gid(DIR, "attribute", &gid);
}

TEST(every_call_may_fail_and_its_errno_comes_back)
{
	static const struct {
		int (*read)(void);
		const char *content;
	} rows[] = {
		{read_uint, "1\n"},
		{read_text, "text\n"},
		{read_guid, "0002:c903:00a0:0b10\n"},
		{read_gid, "fe80:0000:0000:0000:0002:c903:0000:1234\n"},
	};
	unsigned n;
	size_t i;
	int ret;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		fake_file(FILE, "%s", rows[i].content);
		for (n = 1;; n++) {
			fake_fail_call(n, EACCES);
			ret = rows[i].read();
			if (!fake_failed())
				break;
			assert_int_equal(ret, -EACCES);
		}
		fake_fail_call(0, 0);
		/* open and read */
		assert_int_equal(n, 3);
		assert_true(ret >= 0);
	}
}

TEST(the_longest_path_is_read_and_one_longer_is_not)
{
	char name[SYSFS_PATH_MAX] = "", path[SYSFS_PATH_MAX];
	unsigned value;

	memset(name, 'x', SYSFS_PATH_MAX - 1 - strlen(DIR "/"));
	assert_int_equal(sysfs_path(path, "%s/%s", DIR, name), 0);
	assert_int_equal(strlen(path), SYSFS_PATH_MAX - 1);
	fake_file(path, "5\n");
	assert_int_equal(sysfs_read_uint(DIR, name, &value), 0);
	assert_int_equal(value, 5);
	name[strlen(name)] = 'x';
	assert_int_equal(sysfs_read_uint(DIR, name, &value), -ENAMETOOLONG);
}
