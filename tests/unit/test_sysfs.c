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

enum {
	UINT,
	GUID,
	GID,
	TEXT
};

static const struct {
	int (*read)(char text[64]);
	const char *valid, *untouched;
} readers[] = {
	[UINT] = {read_uint, "1\n", "77"},
	[GUID] = {read_guid, "0002:c903:00a0:0b10\n", "4d"},
	[GID] = {read_gid, "fe80:0000:0000:0000:0002:c903:0000:1234\n", "0:4d"},
	[TEXT] = {read_text, "text\n", NULL},
};

TEST(a_value_is_read_whole_or_stored_nowhere)
{
	static const struct {
		int (*read)(char text[64]);
		const char *content, *value;
	} rows[] = {
		/* a number is what the attribute begins with */
		{read_uint, "4: ACTIVE\n", "4"},
		{read_uint, "0x1\n", "1"},
		{read_uint, "400 Gb/sec (4X NDR)\n", "400"},
		{read_uint, "2.5 Gb/sec (1X)\n", "2"},
		{read_uint, "0\n", "0"},
		{read_uint, "7", "7"},
		{read_uint, "0x00010000\n", "65536"},
		{read_uint, "4294967295\n", "4294967295"},
		/* a GUID is four groups of one to four hex digits, a GID eight */
		{read_guid, "0002:c903:00a0:0b10\n", "2c90300a00b10"},
		{read_guid, "0002:c903:00a0:0b10", "2c90300a00b10"},
		{read_guid, "2:c903:a0:b10\n", "2c90300a00b10"},
		{read_guid, "0002:C903:00a0:0B10", "2c90300a00b10"},
		{read_gid, "fe80:0000:0000:0000:0002:c903:0000:1234\n",
		 "fe80000000000000:2c90300001234"},
	};
	static const char *const wrong[COUNT(readers)][11] = {
		[UINT] = {"4294967296\n", "99999999999999999999999\n", "-1\n", "+1\n", " 1\n",
			  "\n", "", "ACTIVE\n", "\xff\xfe\n"},
		[GUID] = {"0002:c903:00a0\n", "0002:c903:00a0:0b10:0000\n",
			  "0002:c903:00a0:0b10 \n", "0002:c903:00a0:00b10\n",
			  "0002:c903::0b10\n", "0002:c903:00a0:\n", "0002:c903:00a0:-b10\n",
			  "0x02:c903:00a0:0b10\n", "0002c90300a00b10\n", ""},
		[GID] = {"fe80::1234\n", "fe80:0000:0000:0000:0002:c903:0000\n",
			 "fe80:0000:0000:0000:0002:c903:0000:1234:0000\n",
			 "fe80:0000:0000:0000:0002:c903:0000:1234 \n",
			 "fe80:0000:0000:0000:0002:c903:0000:12345\n",
			 "fe80:0000:0000:0000:0002:c903:0000:\n", "\xff\xfe\n", ""},
	};
	char text[64];

	for (size_t i = 0; i < COUNT(rows); i++) {
		fake_file(FILE, "%s", rows[i].content);
		assert_int_equal(rows[i].read(text), 0);
		assert_string_equal(text, rows[i].value);
	}
	for (size_t i = 0; i < COUNT(readers); i++)
		for (size_t j = 0; wrong[i][j]; j++) {
			fake_file(FILE, "%s", wrong[i][j]);
			assert_int_equal(readers[i].read(text), -EIO);
			assert_string_equal(text, readers[i].untouched);
		}
}

TEST(a_number_in_binary_rubbish_ends_before_it_and_a_huge_attribute_is_cut)
{
	static char huge[1 << 20];
	char text[64];

	fake_file_bytes(FILE, "4\0\xff\xfe", 4);
	assert_int_equal(read_uint(text), 0);
	assert_string_equal(text, "4");
	fake_file_bytes(FILE, "\0004", 2);
	assert_int_equal(read_uint(text), -EIO);
	memset(huge, '1', sizeof(huge));
	huge[2] = ' ';
	fake_file_bytes(FILE, huge, sizeof(huge));
	assert_int_equal(read_uint(text), 0);
	assert_string_equal(text, "11");
	/* the rest of the line is unknown, except that it is longer than the buffer */
	assert_in_range(sysfs_read_text(DIR, "attribute", text, 8), 8, 1 << 20);
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
	char text[1024], wanted[256];

	for (size_t i = 0; i < COUNT(rows); i++) {
		memset(text, 'x', sizeof(text));
		fake_file_bytes(FILE, rows[i].content, rows[i].size);
		assert_int_equal(sysfs_read_text(DIR, "attribute", text, rows[i].room),
				 rows[i].length);
		assert_string_equal(text, rows[i].text);
		assert_int_equal(text[rows[i].room], 'x');
	}
	/* a line without end is cut at what is read of it */
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

static void remove_it(const char *path)
{
	fake_remove(path);
}

TEST(what_cannot_be_read_gives_its_errno)
{
	char text[64];

	for (size_t i = 0; i < COUNT(readers); i++) {
		fake_remove(FILE);
		assert_int_equal(readers[i].read(text), -ENOENT);
		fake_link(FILE, "nowhere");
		assert_int_equal(readers[i].read(text), -ENOENT);
		fake_remove(FILE);
		fake_dir(FILE);
		assert_int_equal(readers[i].read(text), -EISDIR);
		fake_remove(FILE);
		fake_file(FILE, "%s", readers[i].valid);
		/* open, then read */
		for (unsigned n = 1; n <= 3; n++) {
			fake_fail_call(n, EACCES);
			assert_int_equal(readers[i].read(text), n < 3 ? -EACCES : 0);
		}
		/* the kernel's "no value" is not reported as an invalid argument */
		fake_fail_call(2, EINVAL);
		assert_int_equal(readers[i].read(text), -EIO);
		fake_before_open(remove_it);
		assert_int_equal(readers[i].read(text), -ENOENT);
		fake_before_open(NULL);
		if (readers[i].untouched)
			assert_string_equal(text, readers[i].untouched);
	}
	/* a FIFO does not block the caller */
	assert_int_equal(mkfifo(fake_real_path(FILE), 0600), 0);
	assert_int_equal(read_uint(text), -EIO);
}

TEST(the_longest_path_is_read_and_one_longer_is_not)
{
	char name[SYSFS_PATH_MAX + 1] = "", path[SYSFS_PATH_MAX];
	unsigned value;

	memset(name, 'x', SYSFS_PATH_MAX - 1 - strlen(DIR "/"));
	assert_int_equal(sysfs_path(path, "%s/%s", DIR, name), 0);
	assert_int_equal(strlen(path), SYSFS_PATH_MAX - 1);
	fake_file(path, "5\n");
	assert_int_equal(sysfs_read_uint(DIR, name, &value), 0);
	assert_int_equal(value, 5);
	name[strlen(name)] = 'x';
	assert_int_equal(sysfs_read_uint(DIR, name, &value), -ENAMETOOLONG);
	memset(name, 'x', SYSFS_PATH_MAX);
	assert_int_equal(sysfs_path(path, "%s", name), -ENAMETOOLONG);
	name[SYSFS_PATH_MAX - 1] = '\0';
	assert_int_equal(sysfs_path(path, "%s", name), 0);
	assert_string_equal(path, name);
}

/* --- the folder of a device ------------------------------------------------------- */

static bool ports[NODE_PORTS_MAX];

TEST(a_name_is_one_short_path_component_and_a_bad_one_is_not_looked_for)
{
	static const char *const bad[] = {"",
					  ".",
					  "..",
					  "../mlx5_0",
					  "a/b",
					  "/",
					  ".x",
					  "mlx5_0/",
					  "a_name_of_20_letters",
					  "a_much_longer_name_than_fits"};
	static const char *const good[] = {"mlx5_0", "a", "a_name_of_19_letter", "rxe.0"};

	for (size_t i = 0; i < COUNT(bad); i++) {
		assert_false(node_name_valid(bad[i]));
		assert_int_equal(node_type(bad[i]), -ENODEV);
	}
	assert_int_equal(fake_calls(), 0);
	for (size_t i = 0; i < COUNT(good); i++)
		assert_true(node_name_valid(good[i]));
}

TEST(only_cas_switches_and_routers_are_infiniband)
{
	static const struct {
		const char *content;
		int type, any_type;
	} rows[] = {
		{"1: CA\n", NODE_CA, NODE_CA},
		{"2: switch\n", NODE_SWITCH, NODE_SWITCH},
		{"3: router\n", NODE_ROUTER, NODE_ROUTER},
		{"4: RNIC\n", -ENODEV, 4},
		{"0: ?\n", -ENODEV, 0},
		{"", -ENODEV, -ENODEV},
		{"rubbish\n", -ENODEV, -ENODEV},
		{"4294967297\n", -ENODEV, -ENODEV}, /* no int has this number */
		{"4294967295\n", -ENODEV, -ENODEV},
	};

	assert_int_equal(node_type("mlx5_0"), -ENODEV);
	for (size_t i = 0; i < COUNT(rows); i++) {
		fake_file(DIR "/node_type", "%s", rows[i].content);
		assert_int_equal(node_type("mlx5_0"), rows[i].type);
		assert_int_equal(node_any_type("mlx5_0"), rows[i].any_type);
	}
	fake_file(DIR "/node_type", "1");
	for (unsigned n = 1; n <= 3; n++) {
		fake_fail_call(n, EIO);
		assert_int_equal(node_type("mlx5_0"), n < 3 ? -ENODEV : NODE_CA);
	}
	fake_fail_call(0, 0);
	fake_remove(DIR "/node_type");
	fake_dir(DIR "/node_type");
	assert_int_equal(node_type("mlx5_0"), -ENODEV);
}

/* The ports of the folder are these, and the highest number is returned. */
static void has_ports(int highest, int one, int other)
{
	memset(ports, true, sizeof(ports));
	assert_int_equal(node_ports("mlx5_0", ports), highest);
	for (int i = 0; i < NODE_PORTS_MAX; i++)
		assert_int_equal(ports[i], i == one || i == other);
}

TEST(ports_are_marked_by_number_and_other_names_are_passed_over)
{
	static const char *const others[] = {"a", "1x", "-1", "01", "+2", "power", "0x3"};

	fake_dir(DIR "/ports");
	has_ports(0, -1, -1);
	fake_dir(DIR "/ports/0");
	has_ports(0, 0, -1);
	fake_remove(DIR "/ports/0");
	for (size_t i = 0; i < COUNT(others); i++)
		fake_dir(at(DIR "/ports/%s", others[i]));
	fake_dir(DIR "/ports/1");
	has_ports(1, 1, -1);
	fake_dir(DIR "/ports/4");
	has_ports(4, 1, 4);
	fake_remove(DIR "/ports/1");
	fake_dir(DIR "/ports/255");
	has_ports(255, 4, 255);
}

TEST(a_port_number_that_does_not_fit_is_an_error)
{
	static const char *const names[] = {"256", "1000", "4294967296",
					    "99999999999999999999"};

	for (size_t i = 0; i < COUNT(names); i++) {
		fake_dir(at(DIR "/ports/%s", names[i]));
		assert_int_equal(node_ports("mlx5_0", ports), -EIO);
		fake_remove(DIR "/ports");
	}
}

TEST(paths_are_those_of_the_class)
{
	char path[SYSFS_PATH_MAX];

	node_path(path, "mlx5_0");
	assert_string_equal(path, DIR);
	node_port_path(path, "mlx5_0", 1);
	assert_string_equal(path, DIR "/ports/1");
	node_port_path(path, "a_name_of_19_letter", INT_MAX);
	assert_string_equal(path, "/sys/class/infiniband/a_name_of_19_letter/ports/2147483647");
}

TEST(a_ports_folder_that_cannot_be_listed_gives_the_errno)
{
	char name[SYSFS_PATH_MAX];

	assert_int_equal(node_ports("mlx5_0", ports), -ENOENT);
	fake_dir(DIR "/ports/1");
	fake_fail_call(1, EACCES);
	assert_int_equal(node_ports("mlx5_0", ports), -EACCES);
	fake_remove(DIR "/ports");
	fake_file(DIR "/ports", "1\n");
	assert_int_equal(node_ports("mlx5_0", ports), -ENOTDIR);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(node_ports(name, ports), -ENAMETOOLONG);
}
