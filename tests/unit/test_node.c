/* SPDX-License-Identifier: BSD-2-Clause */

#include "fake.h"
#include "sysfs.h"
#include "test.h"

#include <limits.h>

FIXTURE(fake_setup, fake_teardown);

#define CA "/sys/class/infiniband/mlx5_0"

static bool ports[NODE_PORTS_MAX];

TEST(a_name_is_one_short_path_component)
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

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(node_name_valid(bad[i]));
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		assert_true(node_name_valid(good[i]));
}

TEST(only_cas_switches_and_routers_are_infiniband)
{
	static const struct {
		const char *content;
		int type;
	} rows[] = {
		{"1: CA\n", NODE_CA},
		{"2: switch\n", NODE_SWITCH},
		{"3: router\n", NODE_ROUTER},
		{"4: RNIC\n", -ENODEV},
		{"0: ?\n", -ENODEV},
		{"", -ENODEV},
		{"rubbish\n", -ENODEV},
		{"4294967297\n", -ENODEV}, /* no int has this number */
		{"4294967295\n", -ENODEV},
	};

	assert_int_equal(node_type("mlx5_0"), -ENODEV);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		fake_file(CA "/node_type", "%s", rows[i].content);
		assert_int_equal(node_type("mlx5_0"), rows[i].type);
	}
	assert_int_equal(node_type("../infiniband/mlx5_0"), -ENODEV);
	fake_file(CA "/node_type", "4: RNIC\n");
	assert_int_equal(node_any_type("mlx5_0"), 4);
	fake_file(CA "/node_type", "rubbish\n");
	assert_int_equal(node_any_type("mlx5_0"), -ENODEV);
}

TEST(ports_are_marked_by_number)
{
	fake_dir(CA "/ports/1");
	fake_dir(CA "/ports/4");
	assert_int_equal(node_ports("mlx5_0", ports), 4);
	assert_true(ports[1] && ports[4]);
	assert_false(ports[0] || ports[2] || ports[3] || ports[5]);
}

TEST(a_switch_has_port_0_only)
{
	fake_dir(CA "/ports/0");
	assert_int_equal(node_ports("mlx5_0", ports), 0);
	assert_true(ports[0]);
	assert_false(ports[1]);
}

TEST(names_that_are_no_port_numbers_are_passed_over)
{
	static const char *const names[] = {"a", "1x", "-1", "01", "+2", "power", "0x3"};
	char path[128];

	fake_dir(CA "/ports/1");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), CA "/ports/%s", names[i]);
		fake_dir(path);
	}
	assert_int_equal(node_ports("mlx5_0", ports), 1);
	assert_false(ports[0] || ports[2] || ports[3]);
}

TEST(a_port_number_that_does_not_fit_is_an_error)
{
	static const char *const names[] = {"256", "1000", "4294967296",
					    "99999999999999999999"};
	char path[128];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), CA "/ports/%s", names[i]);
		fake_dir(path);
		assert_int_equal(node_ports("mlx5_0", ports), -EIO);
		fake_remove(path);
	}
	fake_dir(CA "/ports/255");
	assert_int_equal(node_ports("mlx5_0", ports), 255);
	assert_true(ports[255]);
}

TEST(paths_are_those_of_the_class)
{
	char path[SYSFS_PATH_MAX];

	node_path(path, "mlx5_0");
	assert_string_equal(path, CA);
	node_port_path(path, "mlx5_0", 1);
	assert_string_equal(path, CA "/ports/1");
	node_port_path(path, "a_name_of_19_letter", INT_MAX);
	assert_string_equal(path, "/sys/class/infiniband/a_name_of_19_letter/ports/2147483647");
}

TEST(a_node_type_that_cannot_be_read_is_no_device)
{
	fake_dir(CA "/node_type");
	assert_int_equal(node_type("mlx5_0"), -ENODEV);
	fake_remove(CA "/node_type");
	fake_link(CA "/node_type", "nowhere");
	assert_int_equal(node_type("mlx5_0"), -ENODEV);
	fake_remove(CA "/node_type");
	fake_file(CA "/node_type", "1");
	for (unsigned n = 1; n <= 2; n++) {
		fake_fail_call(n, EIO);
		assert_int_equal(node_type("mlx5_0"), -ENODEV);
		assert_true(fake_failed());
	}
	assert_int_equal(node_type("mlx5_0"), NODE_CA);
}

TEST(a_bad_name_is_not_looked_for)
{
	unsigned before = fake_calls();

	assert_int_equal(node_type(""), -ENODEV);
	assert_int_equal(node_type(".."), -ENODEV);
	assert_int_equal(node_type("a/b"), -ENODEV);
	assert_int_equal(node_type("a_name_of_20_letters"), -ENODEV);
	assert_int_equal(fake_calls(), before);
}

TEST(marks_from_before_are_cleared)
{
	for (int i = 0; i < NODE_PORTS_MAX; i++)
		ports[i] = true;
	fake_dir(CA "/ports/1");
	assert_int_equal(node_ports("mlx5_0", ports), 1);
	for (int i = 0; i < NODE_PORTS_MAX; i++)
		assert_int_equal(ports[i], i == 1);
}

TEST(a_device_may_have_no_ports)
{
	fake_dir(CA "/ports");
	assert_int_equal(node_ports("mlx5_0", ports), 0);
	assert_false(ports[0]);
}

TEST(a_ports_folder_that_cannot_be_listed_gives_the_errno)
{
	char name[SYSFS_PATH_MAX];

	assert_int_equal(node_ports("mlx5_0", ports), -ENOENT);
	fake_dir(CA "/ports/1");
	fake_fail_call(1, EACCES);
	assert_int_equal(node_ports("mlx5_0", ports), -EACCES);
	fake_remove(CA "/ports");
	fake_file(CA "/ports", "1\n");
	assert_int_equal(node_ports("mlx5_0", ports), -ENOTDIR);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(node_ports(name, ports), -ENAMETOOLONG);
}
