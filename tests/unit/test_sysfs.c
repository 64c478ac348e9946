/* SPDX-License-Identifier: BSD-2-Clause */

#include "at.h"
#include "fake.h"
#include "sysfs.h"
#include "test.h"

#include <inttypes.h>
#include <limits.h>
#include <sys/stat.h>

FIXTURE(fake_setup, fake_teardown);

#define DIR          "/sys/class/infiniband/mlx5_0"
#define FILE         DIR "/attribute"
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* --- attributes ----------------------------------------------------------------- */

/* The readers with one signature: they store the value as text. */

static int read_uint(char text[64])
{
	unsigned value = 77;
	int ret = sysfs_read_uint(DIR, "attribute", &value);

	snprintf(text, 64, "%u", value);
	return ret;
}

static int read_text(char text[64])
{
	int length = sysfs_read_text(DIR, "attribute", text, 64);

	return length < 0 ? length : 0;
}

static int read_guid(char text[64])
{
	__be64 guid = htobe64(77);
	int ret = sysfs_read_guid(DIR, "attribute", &guid);

	snprintf(text, 64, "%" PRIx64, be64toh(guid));
	return ret;
}

static int read_gid(char text[64])
{
	union umad_gid gid = {.global.interface_id = htobe64(77)};
	int ret = sysfs_read_gid(DIR, "attribute", &gid);

	snprintf(text, 64, "%" PRIx64 ":%" PRIx64, be64toh(gid.global.subnet_prefix),
		 be64toh(gid.global.interface_id));
	return ret;
}

/* Valid contents with their values, and invalid ones; words end with "|". */
static const struct reader {
	const char *behaviour;
	int (*read)(char text[64]);
	const char *untouched, *valid[9][2], *invalid;
} readers[] = {
	{"a number is what the attribute begins with",
	 read_uint,
	 "77",
	 {{"4: ACTIVE\n", "4"},
	  {"0x1\n", "1"},
	  {"2.5 Gb/sec (1X)\n", "2"},
	  {"0\n", "0"},
	  {"7", "7"},
	  {"0x00010000\n", "65536"},
	  {"4294967295\n", "4294967295"},
	  {"4\xff\xfe", "4"}},
	 "4294967296\n|99999999999999999999999\n|-1\n|+1\n| 1\n|\n||ACTIVE\n|\xff\xfe\n"},
	{"a GUID is four groups of one to four hex digits",
	 read_guid,
	 "4d",
	 {{"0002:c903:00a0:0b10\n", "2c90300a00b10"},
	  {"0002:C903:00a0:0B10", "2c90300a00b10"},
	  {"2:c903:a0:b10\n", "2c90300a00b10"}},
	 "0002:c903:00a0\n|0002:c903:00a0:0b10:0000\n|0002:c903:00a0:0b10 \n|"
	 "0002:c903:00a0:00b10\n|0002:c903::0b10\n|0002:c903:00a0:\n|"
	 "0002:c903:00a0:-b10\n|0x02:c903:00a0:0b10\n|0002c90300a00b10\n|"},
	{"a GID is eight groups",
	 read_gid,
	 "0:4d",
	 {{"fe80:0000:0000:0000:0002:c903:0000:1234\n", "fe80000000000000:2c90300001234"}},
	 "fe80::1234\n|fe80:0000:0000:0000:0002:c903:0000\n|\xff\xfe\n||"
	 "fe80:0000:0000:0000:0002:c903:0000:1234:0000\n"},
	{"a text is the first line", read_text, NULL, {{"text\nmore\n", "text"}}, NULL},
};

static void remove_it(const char *path)
{
	fake_remove(path);
}

static void run_reader(const struct reader *reader)
{
	char text[64], invalid[512], *rest = NULL, *content;

	if (reader->invalid)
		rest = strcpy(invalid, reader->invalid);
	while ((content = strsep(&rest, "|"))) {
		fake_file(FILE, "%s", content);
		assert_int_equal(reader->read(text), -EIO);
		assert_string_equal(text, reader->untouched);
	}
	for (int i = 0; reader->valid[i][0]; i++) {
		fake_file(FILE, "%s", reader->valid[i][0]);
		assert_int_equal(reader->read(text), 0);
		assert_string_equal(text, reader->valid[i][1]);
	}
	/* open, then read */
	for (unsigned n = 1; n <= 3; n++) {
		fake_fail_call(n, EACCES);
		assert_int_equal(reader->read(text), n < 3 ? -EACCES : 0);
	}
	/* the kernel's "no value" is not reported as an invalid argument */
	fake_fail_call(2, EINVAL);
	assert_int_equal(reader->read(text), -EIO);
	fake_before_open(remove_it);
	assert_int_equal(reader->read(text), -ENOENT);
	fake_before_open(NULL);
	fake_dir(FILE);
	assert_int_equal(reader->read(text), -EISDIR);
	if (reader->untouched)
		assert_string_equal(text, reader->untouched);
}

TEST_ROWS(run_reader, readers);

TEST(a_text_is_cut_to_its_buffer_and_has_its_whole_length)
{
	static const struct {
		const char *content;
		size_t size, room; /* of the content, of the buffer */
		int length;        /* of the line */
		const char *text;
	} rows[] = {
		{"unterminated", 12, 16, 12, "unterminated"},
		{"a\0b\n", 4, 16, 1, "a"},
		{"", 0, 16, 0, ""},
		{"123456\n", 7, 4, 6, "123"},
		{"123\n", 4, 4, 3, "123"},
		{"123\n", 4, 1, 3, ""},
	};
	static char huge[1 << 20], text[1024];

	for (size_t i = 0; i < COUNT(rows); i++) {
		memset(text, 'x', sizeof(text));
		fake_file_bytes(FILE, rows[i].content, rows[i].size);
		assert_int_equal(sysfs_read_text(DIR, "attribute", text, rows[i].room),
				 rows[i].length);
		assert_string_equal(text, rows[i].text);
		assert_int_equal(text[rows[i].room], 'x');
	}
	/* a line without end is cut at what is read of it */
	memset(huge, '1', sizeof(huge));
	huge[2] = ' ';
	for (size_t size = 255; size <= sizeof(huge); size += sizeof(huge) - 255) {
		fake_file_bytes(FILE, huge, size);
		assert_int_equal(sysfs_read_text(DIR, "attribute", text, sizeof(text)), 255);
		assert_int_equal(strlen(text), 255);
		assert_memory_equal(text, huge, 255);
		assert_int_equal(read_uint(text), 0);
		assert_string_equal(text, "11");
	}
	/* a FIFO does not block the caller */
	fake_remove(FILE);
	assert_int_equal(mkfifo(fake_real_path(FILE), 0600), 0);
	assert_int_equal(read_uint(text), -EIO);
}

TEST(the_longest_path_is_read_and_one_longer_is_not)
{
	char name[SYSFS_PATH_MAX + 1] = "", path[SYSFS_PATH_MAX];
	unsigned value;

	memset(name, 'x', SYSFS_PATH_MAX - 1 - strlen(DIR "/"));
	assert_int_equal(sysfs_path(path, "%s/%s", DIR, name), 0);
	fake_file(path, "5\n");
	assert_int_equal(sysfs_read_uint(DIR, name, &value), 0);
	assert_int_equal(value, 5);
	name[strlen(name)] = 'x';
	assert_int_equal(sysfs_read_uint(DIR, name, &value), -ENAMETOOLONG);
	memset(name, 'x', SYSFS_PATH_MAX);
	assert_int_equal(node_ports(name, (bool[NODE_PORTS_MAX]){0}), -ENAMETOOLONG);
	node_port_path(path, "a_name_of_19_letter", INT_MAX);
	assert_string_equal(path, "/sys/class/infiniband/a_name_of_19_letter/ports/2147483647");
}

/* --- the folder of a device ------------------------------------------------------- */

TEST(a_name_is_one_short_path_component_and_a_bad_one_is_not_looked_for)
{
	char bad[] = "|.|..|../mlx5_0|a/b|/|.x|mlx5_0/|a_name_of_20_letters", *rest = bad,
	     *name;

	while ((name = strsep(&rest, "|"))) {
		assert_false(node_name_valid(name));
		assert_int_equal(node_type(name), -ENODEV);
	}
	assert_int_equal(fake_calls(), 0);
	assert_true(node_name_valid("a") && node_name_valid("a_name_of_19_letter") &&
		    node_name_valid("rxe.0"));
}

TEST(only_cas_switches_and_routers_are_infiniband)
{
	static const struct {
		const char *content;
		int type, any_type;
	} rows[] = {
		{"2: switch\n", NODE_SWITCH, NODE_SWITCH},
		{"3: router\n", NODE_ROUTER, NODE_ROUTER},
		{"4: RNIC\n", -ENODEV, 4},
		{"0: ?\n", -ENODEV, 0},
		{"", -ENODEV, -ENODEV},
		{"4294967295\n", -ENODEV, -ENODEV}, /* no int has this number */
		{"1: CA\n", NODE_CA, NODE_CA},
	};

	assert_int_equal(node_type("mlx5_0"), -ENODEV);
	for (size_t i = 0; i < COUNT(rows); i++) {
		fake_file(DIR "/node_type", "%s", rows[i].content);
		assert_int_equal(node_type("mlx5_0"), rows[i].type);
		assert_int_equal(node_any_type("mlx5_0"), rows[i].any_type);
	}
	for (unsigned n = 1; n <= 3; n++) {
		fake_fail_call(n, EIO);
		assert_int_equal(node_type("mlx5_0"), n < 3 ? -ENODEV : NODE_CA);
	}
}

/* The folder has these ports alone; the higher one is returned. */
static void has_ports(int lower, int higher)
{
	bool ports[NODE_PORTS_MAX];

	memset(ports, true, sizeof(ports));
	assert_int_equal(node_ports("mlx5_0", ports), higher < 0 ? 0 : higher);
	for (int i = 0; i < NODE_PORTS_MAX; i++)
		assert_int_equal(ports[i], i == lower || i == higher);
}

TEST(ports_are_marked_by_number_and_other_names_are_passed_over)
{
	char others[] = "a|1x|-1|01|+2|power|0x3", too_high[] = "256|1000|99999999999999999999",
	     *rest = others, *name;
	bool ports[NODE_PORTS_MAX];

	assert_int_equal(node_ports("mlx5_0", ports), -ENOENT);
	while ((name = strsep(&rest, "|")))
		fake_dir(at(DIR "/ports/%s", name));
	has_ports(-1, -1);
	fake_dir(DIR "/ports/0");
	has_ports(0, 0);
	fake_dir(DIR "/ports/255");
	has_ports(0, 255);
	fake_fail_call(1, EACCES);
	assert_int_equal(node_ports("mlx5_0", ports), -EACCES);
	for (rest = too_high; (name = strsep(&rest, "|"));) {
		fake_dir(at(DIR "/ports/%s", name));
		assert_int_equal(node_ports("mlx5_0", ports), -EIO);
		fake_remove(at(DIR "/ports/%s", name));
	}
}
