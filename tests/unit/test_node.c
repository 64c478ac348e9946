/* SPDX-License-Identifier: BSD-2-Clause */

#include "fake.h"
#include "sysfs.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define CA "/sys/class/infiniband/mlx5_0"

static void a_name_is_one_short_path_component(void **state)
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
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(node_name_valid(bad[i]));
	for (i = 0; i < sizeof(good) / sizeof(*good); i++)
		assert_true(node_name_valid(good[i]));
}

static void only_cas_switches_and_routers_are_infiniband(void **state)
{
	static const struct {
		const char *content;
		int type;
	} rows[] = {
		{"1: CA\n", NODE_CA},         {"2: switch\n", NODE_SWITCH},
		{"3: router\n", NODE_ROUTER}, {"4: RNIC\n", -ENODEV},
		{"0: ?\n", -ENODEV},          {"", -ENODEV},
		{"rubbish\n", -ENODEV},
	};
	size_t i;

	(void)state;
	assert_int_equal(node_type("mlx5_0"), -ENODEV);
	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		fake_file(CA "/node_type", "%s", rows[i].content);
		assert_int_equal(node_type("mlx5_0"), rows[i].type);
	}
	assert_int_equal(node_type("../infiniband/mlx5_0"), -ENODEV);
}

static void ports_are_marked_by_number(void **state)
{
	bool ports[UMAD_CA_MAX_PORTS];

	(void)state;
	fake_dir(CA "/ports/1");
	fake_dir(CA "/ports/4");
	assert_int_equal(node_ports("mlx5_0", ports), 4);
	assert_true(ports[1] && ports[4]);
	assert_false(ports[0] || ports[2] || ports[3] || ports[5]);
}

static void a_switch_has_port_0_only(void **state)
{
	bool ports[UMAD_CA_MAX_PORTS];

	(void)state;
	fake_dir(CA "/ports/0");
	assert_int_equal(node_ports("mlx5_0", ports), 0);
	assert_true(ports[0]);
	assert_false(ports[1]);
}

static void names_that_are_no_port_numbers_are_passed_over(void **state)
{
	static const char *const names[] = {"a", "1x", "-1", "01", "+2", "power", "0x3"};
	bool ports[UMAD_CA_MAX_PORTS];
	char path[128];
	size_t i;

	(void)state;
	fake_dir(CA "/ports/1");
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), CA "/ports/%s", names[i]);
		fake_dir(path);
	}
	assert_int_equal(node_ports("mlx5_0", ports), 1);
	assert_false(ports[0] || ports[2] || ports[3]);
}

static void a_port_number_that_does_not_fit_is_an_error(void **state)
{
	static const char *const names[] = {"10", "255", "4294967296", "99999999999999999999"};
	bool ports[UMAD_CA_MAX_PORTS];
	char path[128];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), CA "/ports/%s", names[i]);
		fake_dir(path);
		assert_int_equal(node_ports("mlx5_0", ports), -EIO);
		fake_remove(path);
	}
	fake_dir(CA "/ports/9");
	assert_int_equal(node_ports("mlx5_0", ports), 9);
}

static void a_device_without_ports_folder_gives_the_errno(void **state)
{
	bool ports[UMAD_CA_MAX_PORTS];

	(void)state;
	assert_int_equal(node_ports("mlx5_0", ports), -ENOENT);
}

static void paths_are_those_of_the_class(void **state)
{
	char path[SYSFS_PATH_MAX];

	(void)state;
	node_path(path, "mlx5_0");
	assert_string_equal(path, CA);
	node_port_path(path, "mlx5_0", 1);
	assert_string_equal(path, CA "/ports/1");
	node_port_path(path, "a_name_of_19_letter", INT_MAX);
	assert_string_equal(path, "/sys/class/infiniband/a_name_of_19_letter/ports/2147483647");
}

static void a_node_type_that_cannot_be_read_is_no_device(void **state)
{
	unsigned n;

	(void)state;
	fake_dir(CA "/node_type");
	assert_int_equal(node_type("mlx5_0"), -ENODEV);
	fake_remove(CA "/node_type");
	fake_link(CA "/node_type", "nowhere");
	assert_int_equal(node_type("mlx5_0"), -ENODEV);
	fake_remove(CA "/node_type");
	fake_file(CA "/node_type", "1");
	for (n = 1; n <= 2; n++) {
		fake_fail_call(n, EIO);
		assert_int_equal(node_type("mlx5_0"), -ENODEV);
		assert_true(fake_failed());
	}
	assert_int_equal(node_type("mlx5_0"), NODE_CA);
}

static void a_node_type_no_int_can_hold_is_no_device(void **state)
{
	(void)state;
	fake_file(CA "/node_type", "4294967297\n");
	assert_int_equal(node_type("mlx5_0"), -ENODEV);
	fake_file(CA "/node_type", "4294967295\n");
	assert_int_equal(node_type("mlx5_0"), -ENODEV);
}

static void a_bad_name_is_not_looked_for(void **state)
{
	unsigned before = fake_calls();

	(void)state;
	assert_int_equal(node_type(""), -ENODEV);
	assert_int_equal(node_type(".."), -ENODEV);
	assert_int_equal(node_type("a/b"), -ENODEV);
	assert_int_equal(node_type("a_name_of_20_letters"), -ENODEV);
	assert_int_equal(fake_calls(), before);
}

static void marks_from_before_are_cleared(void **state)
{
	bool ports[UMAD_CA_MAX_PORTS];
	int i;

	(void)state;
	for (i = 0; i < UMAD_CA_MAX_PORTS; i++)
		ports[i] = true;
	fake_dir(CA "/ports/1");
	assert_int_equal(node_ports("mlx5_0", ports), 1);
	for (i = 0; i < UMAD_CA_MAX_PORTS; i++)
		assert_int_equal(ports[i], i == 1);
}

static void a_device_may_have_no_ports(void **state)
{
	bool ports[UMAD_CA_MAX_PORTS];

	(void)state;
	fake_dir(CA "/ports");
	assert_int_equal(node_ports("mlx5_0", ports), 0);
	assert_false(ports[0]);
}

static void a_ports_folder_that_cannot_be_listed_gives_the_errno(void **state)
{
	bool ports[UMAD_CA_MAX_PORTS];
	char name[SYSFS_PATH_MAX];

	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_name_is_one_short_path_component),
		TEST(only_cas_switches_and_routers_are_infiniband),
		TEST(ports_are_marked_by_number),
		TEST(a_switch_has_port_0_only),
		TEST(names_that_are_no_port_numbers_are_passed_over),
		TEST(a_port_number_that_does_not_fit_is_an_error),
		TEST(a_device_without_ports_folder_gives_the_errno),
		TEST(paths_are_those_of_the_class),
		TEST(a_node_type_that_cannot_be_read_is_no_device),
		TEST(a_node_type_no_int_can_hold_is_no_device),
		TEST(a_bad_name_is_not_looked_for),
		TEST(marks_from_before_are_cleared),
		TEST(a_device_may_have_no_ports),
		TEST(a_ports_folder_that_cannot_be_listed_gives_the_errno),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
