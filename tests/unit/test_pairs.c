/* SPDX-License-Identifier: BSD-2-Clause */

#include "fake.h"
#include "test.h"

FIXTURE(fake_setup, fake_teardown);

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

static void put_pair(char *text, size_t size, const struct umad_ca_pair *pair)
{
	snprintf(text, size, "%s/%u=%s/%u", pair->smi_name, pair->smi_preferred_port,
		 pair->gsi_name, pair->gsi_preferred_port);
}

/* All pairs: the SMI side and the GSI side, each with its preferred port. */
static void expect_pairs(const char *expected)
{
	struct umad_ca_pair pairs[4];
	char text[512] = "";
	int count = umad_get_smi_gsi_pairs(pairs, 4);

	for (int i = 0; i < count; i++) {
		size_t length = strlen(text);

		if (i)
			text[length++] = ' ';
		put_pair(text + length, sizeof(text) - length, &pairs[i]);
	}
	assert_string_equal(text, expected);
	assert_true(count >= 0);
}

static void expect_pair(const char *name, uint8_t portnum, uint8_t enforce_smi,
			const char *expected)
{
	struct umad_ca_pair pair;
	char text[256];

	memset(&pair, 0x5a, sizeof(pair));
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name(name, portnum, &pair, enforce_smi),
			 0);
	put_pair(text, sizeof(text), &pair);
	assert_string_equal(text, expected);
}

TEST(a_usual_device_is_both_sides)
{
	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 1);
	fake_port("mlx5_0", 2, 2);
	fake_ca("mlx5_1");
	fake_port("mlx5_1", 1, 3);
	expect_pairs("mlx5_0/0=mlx5_0/0 mlx5_0/0=mlx5_0/0 mlx5_1/0=mlx5_1/0");
}

TEST(a_planarized_port_has_a_device_for_each_side)
{
	planarized_machine();
	expect_pairs("smi0/0=mlx5_0/0 smi1/0=mlx5_1/0");
}

TEST(a_device_without_subnet_management_has_no_smi_side)
{
	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 1);
	NO_SM("mlx5_0");
	expect_pairs("/0=mlx5_0/0");
}

TEST(no_more_pairs_are_stored_than_asked_for)
{
	struct umad_ca_pair pairs[2];

	assert_int_equal(umad_get_smi_gsi_pairs(pairs, 2), 0);
	planarized_machine();
	memset(pairs, 7, sizeof(pairs));
	assert_int_equal(umad_get_smi_gsi_pairs(pairs, 1), 1);
	assert_int_equal(pairs[1].smi_name[0], 7);
	assert_int_equal(umad_get_smi_gsi_pairs(NULL, 0), 0);
	assert_int_equal(umad_get_smi_gsi_pairs(NULL, 1), -EINVAL);
}

TEST(devices_that_cannot_be_read_are_left_out)
{
	planarized_machine();
	fake_remove("/sys/class/infiniband/smi0/ports/1/gids/0");
	fake_remove("/sys/class/infiniband/mlx5_1/ports/1/cap_mask");
	fake_file("/sys/class/infiniband/iw0/node_type", "4: RNIC\n");
	expect_pairs("/0=mlx5_0/0 smi1/0=smi1/0");
}

TEST(a_pair_is_found_by_either_name)
{
	planarized_machine();
	expect_pair("smi1", 0, 0, "smi1/1=mlx5_1/1");
	expect_pair("mlx5_1", 0, 1, "smi1/1=mlx5_1/1");
}

TEST(the_default_pair_is_the_default_devices)
{
	planarized_machine();
	fake_file("/sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
	expect_pair(NULL, 0, 0, "smi1/1=mlx5_1/1");
	expect_pair(NULL, 0, 1, "smi0/1=mlx5_0/1");
}

TEST(the_preferred_port_is_given_or_only_or_up)
{
	fake_ca("mlx5_0");
	fake_port("mlx5_0", 2, 1);
	fake_file("/sys/class/infiniband/mlx5_0/ports/2/state", "1: DOWN\n");
	expect_pair("mlx5_0", 0, 0, "mlx5_0/2=mlx5_0/2");
	fake_port("mlx5_0", 3, 2);
	fake_port("mlx5_0", 4, 3);
	expect_pair("mlx5_0", 0, 0, "mlx5_0/3=mlx5_0/3");
	expect_pair("mlx5_0", 4, 0, "mlx5_0/4=mlx5_0/4");
	fake_file("/sys/class/infiniband/mlx5_0/ports/3/state", "1: DOWN\n");
	fake_file("/sys/class/infiniband/mlx5_0/ports/4/state", "1: DOWN\n");
	expect_pair("mlx5_0", 0, 0, "mlx5_0/0=mlx5_0/0");
}

TEST(enforcing_smi_leaves_out_pairs_without)
{
	struct umad_ca_pair pair;

	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 1);
	NO_SM("mlx5_0");
	expect_pair("mlx5_0", 0, 0, "/0=mlx5_0/1");
	assert_fails(umad_get_smi_gsi_pair_by_ca_name("mlx5_0", 0, &pair, 1), ENODEV);
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name(NULL, 0, &pair, 1), -ENODEV);
}

TEST(no_such_pair_is_no_device)
{
	struct umad_ca_pair pair;

	planarized_machine();
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("mlx5_9", 0, &pair, 0), -ENODEV);
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("../mlx5_0", 0, &pair, 0), -ENODEV);
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("mlx5_0", 0, NULL, 0), -EINVAL);
}

/* Pairs of many devices: an array of fixed size in the library would be too small. */
TEST(there_is_no_limit_to_devices)
{
	static struct umad_ca_pair pairs[200];
	struct umad_ca_pair pair;
	char name[UMAD_CA_NAME_LEN];
	uint32_t i;

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

TEST(a_switch_is_a_pair_by_its_port_0)
{
	fake_ca("sw0");
	fake_file("/sys/class/infiniband/sw0/node_type", "2: switch\n");
	fake_port("sw0", 0, 1);
	expect_pairs("sw0/0=sw0/0");
	expect_pair("sw0", 0, 1, "sw0/0=sw0/0");
}

TEST(the_default_device_must_have_the_port_that_is_given)
{
	struct umad_ca_pair pair;

	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 1);
	fake_ca("mlx5_1");
	fake_port("mlx5_1", 2, 2);
	expect_pair(NULL, 2, 0, "mlx5_1/2=mlx5_1/2");
	assert_fails(umad_get_smi_gsi_pair_by_ca_name(NULL, 3, &pair, 0), ENODEV);
}

TEST(a_port_is_preferred_only_where_it_is_known_to_be_up)
{
	static const char *const contents[] = {"0: NOP\n", "1: DOWN\n", "", "up\n"};

	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 1);
	fake_port("mlx5_0", 2, 2);
	fake_file("/sys/class/infiniband/mlx5_0/ports/2/state", "2: INIT\n");
	for (size_t i = 0; i < sizeof(contents) / sizeof(*contents); i++) {
		fake_file("/sys/class/infiniband/mlx5_0/ports/1/state", "%s", contents[i]);
		expect_pair("mlx5_0", 0, 0, "mlx5_0/2=mlx5_0/2");
	}
	fake_remove("/sys/class/infiniband/mlx5_0/ports/1/state");
	expect_pair("mlx5_0", 0, 0, "mlx5_0/2=mlx5_0/2");
}

TEST(what_has_no_readable_port_is_no_pair)
{
	static const char *const names[] = {"iw0", "empty", "crowded", "garbled"};
	struct umad_ca_pair pairs[4];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		fake_ca(names[i]);
	fake_file("/sys/class/infiniband/iw0/node_type", "4: RNIC\n");
	fake_port("iw0", 1, 1);
	fake_port("crowded", 1, 2);
	fake_dir("/sys/class/infiniband/crowded/ports/10");
	fake_port("garbled", 1, 3);
	fake_file("/sys/class/infiniband/garbled/ports/1/gids/0", "fe80::1\n");
	assert_int_equal(umad_get_smi_gsi_pairs(pairs, 4), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		assert_fails(umad_get_smi_gsi_pair_by_ca_name(names[i], 0, pairs, 0), ENODEV);
	}
}

TEST(names_that_cannot_be_devices_are_refused_unread)
{
	static const char *const names[] = {
		"", ".", "..", "a/b", "../infiniband/mlx5_0", "a_name_that_is_far_too_long"};
	struct umad_ca_pair pair;

	planarized_machine();
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		assert_fails(umad_get_smi_gsi_pair_by_ca_name(names[i], 1, &pair, 0), ENODEV);
	}
	assert_int_equal(fake_calls(), 0);
	assert_fails(umad_get_smi_gsi_pair_by_ca_name(NULL, 0, NULL, 0), EINVAL);
	assert_fails(umad_get_smi_gsi_pairs(NULL, 1), EINVAL);
}

TEST(a_class_that_cannot_be_read_is_an_error)
{
	struct umad_ca_pair pairs[1];

	planarized_machine();
	fake_fail_call(1, EACCES);
	assert_errno(assert_int_equal(umad_get_smi_gsi_pairs(pairs, 1), -EIO), EACCES);
	fake_fail_call(1, EACCES);
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("mlx5_0", 0, pairs, 0), -EIO);
	assert_int_equal(errno, EACCES);
	fake_fail_call(1, EACCES);
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name(NULL, 0, pairs, 0), -EIO);
	assert_int_equal(errno, EACCES);
}

TEST(a_failing_call_leaves_out_a_port_and_no_more)
{
	struct umad_ca_pair pairs[4];
	unsigned n;
	int ret;

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

TEST(every_allocation_for_many_pairs_may_fail)
{
	static struct umad_ca_pair pairs[40];
	char name[UMAD_CA_NAME_LEN];
	uint32_t i;
	unsigned n;
	int ret;

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

TEST(a_device_that_vanishes_meanwhile_is_left_out)
{
	planarized_machine();
	fake_before_open(vanish);
	expect_pairs("/0=mlx5_0/0 smi1/0=mlx5_1/0");
}

TEST(of_several_pairs_with_a_device_the_first_is_meant)
{
	planarized_machine();
	fake_port("mlx5_0", 2, 11);
	fake_file("/sys/class/infiniband/mlx5_0/ports/2/cap_mask", "0x400\n");
	/* mlx5_0 is now the GSI side of both pairs */
	expect_pair("mlx5_0", 0, 0, "smi0/1=mlx5_0/1");
	expect_pair("smi1", 0, 0, "smi1/1=mlx5_0/1");
}
