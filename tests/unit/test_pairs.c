/* SPDX-License-Identifier: BSD-2-Clause */

#include "fake.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NO_SM(ca) fake_file("/sys/class/infiniband/" ca "/ports/1/cap_mask", "0x400\n")

/* A planarized port: the planes smi0 and smi1 under the port GUIDs of mlx5_0 and mlx5_1. */
static void planarized_machine(void)
{
	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 10);
	NO_SM("mlx5_0");
	fake_ca("mlx5_1");
	fake_port("mlx5_1", 1, 11);
	NO_SM("mlx5_1");
	fake_ca("smi0");
	fake_port("smi0", 1, 10);
	fake_ca("smi1");
	fake_port("smi1", 1, 11);
}

static void a_usual_device_is_both_sides(void **state)
{
	struct umad_ca_pair pairs[4];

	(void)state;
	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 1);
	fake_port("mlx5_0", 2, 2);
	fake_ca("mlx5_1");
	fake_port("mlx5_1", 1, 3);
	assert_int_equal(umad_get_smi_gsi_pairs(pairs, 4), 3);
	assert_string_equal(pairs[0].smi_name, "mlx5_0");
	assert_string_equal(pairs[0].gsi_name, "mlx5_0");
	assert_int_equal(pairs[0].smi_preferred_port, 0);
	assert_string_equal(pairs[1].gsi_name, "mlx5_0");
	assert_string_equal(pairs[2].gsi_name, "mlx5_1");
}

static void a_planarized_port_has_a_device_for_each_side(void **state)
{
	struct umad_ca_pair pairs[4];

	(void)state;
	planarized_machine();
	assert_int_equal(umad_get_smi_gsi_pairs(pairs, 4), 2);
	assert_string_equal(pairs[0].smi_name, "smi0");
	assert_string_equal(pairs[0].gsi_name, "mlx5_0");
	assert_string_equal(pairs[1].smi_name, "smi1");
	assert_string_equal(pairs[1].gsi_name, "mlx5_1");
}

static void a_device_without_subnet_management_has_no_smi_side(void **state)
{
	struct umad_ca_pair pairs[1];

	(void)state;
	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 1);
	NO_SM("mlx5_0");
	assert_int_equal(umad_get_smi_gsi_pairs(pairs, 1), 1);
	assert_string_equal(pairs[0].smi_name, "");
	assert_string_equal(pairs[0].gsi_name, "mlx5_0");
}

static void no_more_pairs_are_stored_than_asked_for(void **state)
{
	struct umad_ca_pair pairs[2];

	(void)state;
	assert_int_equal(umad_get_smi_gsi_pairs(pairs, 2), 0);
	planarized_machine();
	memset(pairs, 7, sizeof(pairs));
	assert_int_equal(umad_get_smi_gsi_pairs(pairs, 1), 1);
	assert_int_equal(pairs[1].smi_name[0], 7);
	assert_int_equal(umad_get_smi_gsi_pairs(NULL, 0), 0);
	assert_int_equal(umad_get_smi_gsi_pairs(NULL, 1), -EINVAL);
}

static void devices_that_cannot_be_read_are_left_out(void **state)
{
	struct umad_ca_pair pairs[4];

	(void)state;
	planarized_machine();
	fake_remove("/sys/class/infiniband/smi0/ports/1/gids/0");
	fake_remove("/sys/class/infiniband/mlx5_1/ports/1/cap_mask");
	fake_file("/sys/class/infiniband/iw0/node_type", "4: RNIC\n");
	assert_int_equal(umad_get_smi_gsi_pairs(pairs, 4), 2);
	assert_string_equal(pairs[0].gsi_name, "mlx5_0");
	assert_string_equal(pairs[0].smi_name, "");
	assert_string_equal(pairs[1].gsi_name, "smi1");
}

static void a_pair_is_found_by_either_name(void **state)
{
	struct umad_ca_pair pair;

	(void)state;
	planarized_machine();
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("smi1", 0, &pair, 0), 0);
	assert_string_equal(pair.gsi_name, "mlx5_1");
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("mlx5_1", 0, &pair, 1), 0);
	assert_string_equal(pair.smi_name, "smi1");
	assert_int_equal(pair.smi_preferred_port, 1);
	assert_int_equal(pair.gsi_preferred_port, 1);
}

static void the_default_pair_is_the_default_devices(void **state)
{
	struct umad_ca_pair pair;

	(void)state;
	planarized_machine();
	fake_file("/sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name(NULL, 0, &pair, 0), 0);
	assert_string_equal(pair.gsi_name, "mlx5_1");
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name(NULL, 0, &pair, 1), 0);
	assert_string_equal(pair.smi_name, "smi0");
	assert_string_equal(pair.gsi_name, "mlx5_0");
}

static void the_preferred_port_is_given_or_only_or_up(void **state)
{
	struct umad_ca_pair pair;

	(void)state;
	fake_ca("mlx5_0");
	fake_port("mlx5_0", 2, 1);
	fake_file("/sys/class/infiniband/mlx5_0/ports/2/state", "1: DOWN\n");
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("mlx5_0", 0, &pair, 0), 0);
	assert_int_equal(pair.gsi_preferred_port, 2);
	fake_port("mlx5_0", 3, 2);
	fake_port("mlx5_0", 4, 3);
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("mlx5_0", 0, &pair, 0), 0);
	assert_int_equal(pair.smi_preferred_port, 3);
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("mlx5_0", 4, &pair, 0), 0);
	assert_int_equal(pair.smi_preferred_port, 4);
	assert_int_equal(pair.gsi_preferred_port, 4);
	fake_file("/sys/class/infiniband/mlx5_0/ports/3/state", "1: DOWN\n");
	fake_file("/sys/class/infiniband/mlx5_0/ports/4/state", "1: DOWN\n");
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("mlx5_0", 0, &pair, 0), 0);
	assert_int_equal(pair.gsi_preferred_port, 0);
}

static void enforcing_smi_leaves_out_pairs_without(void **state)
{
	struct umad_ca_pair pair;

	(void)state;
	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 1);
	NO_SM("mlx5_0");
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("mlx5_0", 0, &pair, 0), 0);
	assert_string_equal(pair.smi_name, "");
	assert_int_equal(pair.smi_preferred_port, 0);
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("mlx5_0", 0, &pair, 1), -ENODEV);
	assert_int_equal(errno, ENODEV);
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name(NULL, 0, &pair, 1), -ENODEV);
}

static void no_such_pair_is_no_device(void **state)
{
	struct umad_ca_pair pair;

	(void)state;
	planarized_machine();
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("mlx5_9", 0, &pair, 0), -ENODEV);
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("../mlx5_0", 0, &pair, 0), -ENODEV);
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("mlx5_0", 0, NULL, 0), -EINVAL);
}

static void every_call_and_every_allocation_may_fail(void **state)
{
	struct umad_ca_pair pair;
	unsigned n;
	int ret;

	(void)state;
	planarized_machine();
	for (n = 1;; n++) {
		fake_fail_malloc(n);
		ret = umad_get_smi_gsi_pair_by_ca_name("smi1", 0, &pair, 0);
		if (!fake_failed())
			break;
		assert_int_equal(ret, -ENOMEM);
	}
	assert_true(n > 2);
	fake_fail_malloc(1);
	assert_int_equal(umad_get_smi_gsi_pairs(&pair, 1), -ENOMEM);
	fake_fail_malloc(0);
	for (n = 1;; n++) {
		fake_fail_call(n, EIO);
		ret = umad_get_smi_gsi_pair_by_ca_name("smi1", 0, &pair, 0);
		if (!fake_failed())
			break;
		assert_true(ret == 0 || ret == -ENODEV || ret == -EIO);
	}
	assert_int_equal(ret, 0);
}

/* Pairs of many devices: an array of fixed size in the library would be too small. */
static void there_is_no_limit_to_devices(void **state)
{
	static struct umad_ca_pair pairs[200];
	struct umad_ca_pair pair;
	char name[UMAD_CA_NAME_LEN];
	uint32_t i;

	(void)state;
	for (i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "mlx5_%03u", i);
		fake_ca(name);
		fake_port(name, 1, i + 1);
	}
	assert_int_equal(umad_get_smi_gsi_pairs(pairs, 200), 200);
	for (i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "mlx5_%03u", i);
		assert_string_equal(pairs[i].gsi_name, name);
		assert_string_equal(pairs[i].smi_name, name);
	}
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("mlx5_199", 0, &pair, 1), 0);
	assert_string_equal(pair.gsi_name, "mlx5_199");
}

static void a_switch_is_a_pair_by_its_port_0(void **state)
{
	struct umad_ca_pair pairs[2];

	(void)state;
	fake_ca("sw0");
	fake_file("/sys/class/infiniband/sw0/node_type", "2: switch\n");
	fake_port("sw0", 0, 1);
	assert_int_equal(umad_get_smi_gsi_pairs(pairs, 2), 1);
	assert_string_equal(pairs[0].gsi_name, "sw0");
	assert_string_equal(pairs[0].smi_name, "sw0");
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("sw0", 0, pairs, 1), 0);
	assert_int_equal(pairs[0].smi_preferred_port, 0);
}

static void the_default_device_must_have_the_port_that_is_given(void **state)
{
	struct umad_ca_pair pair;

	(void)state;
	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 1);
	fake_ca("mlx5_1");
	fake_port("mlx5_1", 2, 2);
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name(NULL, 2, &pair, 0), 0);
	assert_string_equal(pair.gsi_name, "mlx5_1");
	assert_int_equal(pair.gsi_preferred_port, 2);
	assert_int_equal(pair.smi_preferred_port, 2);
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name(NULL, 3, &pair, 0), -ENODEV);
	assert_int_equal(errno, ENODEV);
}

static void a_port_is_preferred_only_where_it_is_known_to_be_up(void **state)
{
	static const char *const contents[] = {"0: NOP\n", "1: DOWN\n", "", "up\n"};
	struct umad_ca_pair pair;
	size_t i;

	(void)state;
	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 1);
	fake_port("mlx5_0", 2, 2);
	fake_file("/sys/class/infiniband/mlx5_0/ports/2/state", "2: INIT\n");
	for (i = 0; i < sizeof(contents) / sizeof(*contents); i++) {
		fake_file("/sys/class/infiniband/mlx5_0/ports/1/state", "%s", contents[i]);
		assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("mlx5_0", 0, &pair, 0), 0);
		assert_int_equal(pair.gsi_preferred_port, 2);
	}
	fake_remove("/sys/class/infiniband/mlx5_0/ports/1/state");
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("mlx5_0", 0, &pair, 0), 0);
	assert_int_equal(pair.gsi_preferred_port, 2);
}

static void what_has_no_readable_port_is_no_pair(void **state)
{
	static const char *const names[] = {"iw0", "empty", "crowded", "garbled"};
	struct umad_ca_pair pairs[4];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		fake_ca(names[i]);
	fake_file("/sys/class/infiniband/iw0/node_type", "4: RNIC\n");
	fake_port("iw0", 1, 1);
	fake_port("crowded", 1, 2);
	fake_dir("/sys/class/infiniband/crowded/ports/10");
	fake_port("garbled", 1, 3);
	fake_file("/sys/class/infiniband/garbled/ports/1/gids/0", "fe80::1\n");
	assert_int_equal(umad_get_smi_gsi_pairs(pairs, 4), 0);
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		errno = 0;
		assert_int_equal(umad_get_smi_gsi_pair_by_ca_name(names[i], 0, pairs, 0),
				 -ENODEV);
		assert_int_equal(errno, ENODEV);
	}
}

static void names_that_cannot_be_devices_are_refused_unread(void **state)
{
	static const char *const names[] = {
		"", ".", "..", "a/b", "../infiniband/mlx5_0", "a_name_that_is_far_too_long"};
	struct umad_ca_pair pair;
	size_t i;

	(void)state;
	planarized_machine();
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		errno = 0;
		assert_int_equal(umad_get_smi_gsi_pair_by_ca_name(names[i], 1, &pair, 0),
				 -ENODEV);
		assert_int_equal(errno, ENODEV);
	}
	assert_int_equal(fake_calls(), 0);
	errno = 0;
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name(NULL, 0, NULL, 0), -EINVAL);
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_int_equal(umad_get_smi_gsi_pairs(NULL, 1), -EINVAL);
	assert_int_equal(errno, EINVAL);
}

static void a_class_that_cannot_be_read_is_an_error(void **state)
{
	struct umad_ca_pair pairs[1];

	(void)state;
	planarized_machine();
	fake_fail_call(1, EACCES);
	assert_int_equal(umad_get_smi_gsi_pairs(pairs, 1), -EIO);
	assert_int_equal(errno, EACCES);
	fake_fail_call(1, EACCES);
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("mlx5_0", 0, pairs, 0), -EIO);
	assert_int_equal(errno, EACCES);
	fake_fail_call(1, EACCES);
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name(NULL, 0, pairs, 0), -EIO);
	assert_int_equal(errno, EACCES);
}

static void a_failing_call_leaves_out_a_port_and_no_more(void **state)
{
	struct umad_ca_pair pairs[4];
	unsigned n;
	int ret;

	(void)state;
	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 1);
	fake_ca("mlx5_1");
	fake_port("mlx5_1", 1, 2);
	for (n = 1;; n++) {
		fake_fail_call(n, EACCES);
		ret = umad_get_smi_gsi_pairs(pairs, 4);
		if (!fake_failed())
			break;
		assert_int_equal(ret, n == 1 ? -EIO : 1);
	}
	fake_fail_call(0, 0);
	assert_int_equal(ret, 2);
	/* the list; of each device its type, its ports, a GID and a capability mask */
	assert_int_equal(n, 1 + 2 * 7 + 1);
}

static void every_allocation_for_many_pairs_may_fail(void **state)
{
	static struct umad_ca_pair pairs[40];
	char name[UMAD_CA_NAME_LEN];
	uint32_t i;
	unsigned n;
	int ret;

	(void)state;
	for (i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "mlx5_%u", i);
		fake_ca(name);
		fake_port(name, 1, i + 1);
	}
	for (n = 1;; n++) {
		fake_fail_malloc(n);
		errno = 0;
		ret = umad_get_smi_gsi_pairs(pairs, 40);
		if (!fake_failed())
			break;
		assert_int_equal(ret, -ENOMEM);
		assert_int_equal(errno, ENOMEM);
	}
	fake_fail_malloc(0);
	assert_int_equal(ret, 40);
	/* names and pairs grow alternately */
	assert_true(n > 4);
}

static void vanish(const char *path)
{
	if (!strcmp(path, "/sys/class/infiniband/smi0/ports/1/gids/0"))
		fake_remove("/sys/class/infiniband/smi0");
}

static void a_device_that_vanishes_meanwhile_is_left_out(void **state)
{
	struct umad_ca_pair pairs[4];

	(void)state;
	planarized_machine();
	fake_before_open(vanish);
	assert_int_equal(umad_get_smi_gsi_pairs(pairs, 4), 2);
	assert_string_equal(pairs[0].gsi_name, "mlx5_0");
	assert_string_equal(pairs[0].smi_name, "");
	assert_string_equal(pairs[1].smi_name, "smi1");
}

static void of_several_pairs_with_a_device_the_first_is_meant(void **state)
{
	struct umad_ca_pair pair;

	(void)state;
	planarized_machine();
	fake_port("mlx5_0", 2, 11);
	fake_file("/sys/class/infiniband/mlx5_0/ports/2/cap_mask", "0x400\n");
	/* mlx5_0 is now the GSI side of both pairs */
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("mlx5_0", 0, &pair, 0), 0);
	assert_string_equal(pair.gsi_name, "mlx5_0");
	assert_string_equal(pair.smi_name, "smi0");
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("smi1", 0, &pair, 0), 0);
	assert_string_equal(pair.gsi_name, "mlx5_0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_usual_device_is_both_sides),
		TEST(a_planarized_port_has_a_device_for_each_side),
		TEST(a_device_without_subnet_management_has_no_smi_side),
		TEST(no_more_pairs_are_stored_than_asked_for),
		TEST(devices_that_cannot_be_read_are_left_out),
		TEST(a_pair_is_found_by_either_name),
		TEST(the_default_pair_is_the_default_devices),
		TEST(the_preferred_port_is_given_or_only_or_up),
		TEST(enforcing_smi_leaves_out_pairs_without),
		TEST(no_such_pair_is_no_device),
		TEST(every_call_and_every_allocation_may_fail),
		TEST(there_is_no_limit_to_devices),
		TEST(a_switch_is_a_pair_by_its_port_0),
		TEST(the_default_device_must_have_the_port_that_is_given),
		TEST(a_port_is_preferred_only_where_it_is_known_to_be_up),
		TEST(what_has_no_readable_port_is_no_pair),
		TEST(names_that_cannot_be_devices_are_refused_unread),
		TEST(a_class_that_cannot_be_read_is_an_error),
		TEST(a_failing_call_leaves_out_a_port_and_no_more),
		TEST(every_allocation_for_many_pairs_may_fail),
		TEST(a_device_that_vanishes_meanwhile_is_left_out),
		TEST(of_several_pairs_with_a_device_the_first_is_meant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
