/* SPDX-License-Identifier: BSD-2-Clause */

#include "fake.h"

#include <errno.h>
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
