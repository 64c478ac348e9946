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

/* The opposite of the order of names. */
static bool greater(const char *name, const char *other)
{
	return strcmp(name, other) > 0;
}

TEST(a_usual_device_is_both_sides)
{
	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 1);
	fake_port("mlx5_0", 2, 2);
	fake_ca("mlx5_1");
	fake_port("mlx5_1", 1, 3);
	expect_pairs("mlx5_0/0=mlx5_0/0 mlx5_1/0=mlx5_1/0");
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
	expect_pair(NULL, 0, 1, "smi1/1=mlx5_1/1");
	expect_pair("mlx5_0", 0, 1, "smi0/1=mlx5_0/1");
}

/* Not the Active one: rdma-core takes the first pair whose ports are up. */
TEST(the_default_pair_is_the_first_one_that_is_up)
{
	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 1);
	fake_file("/sys/class/infiniband/mlx5_0/ports/1/state", "2: INIT\n");
	fake_ca("mlx5_1");
	fake_port("mlx5_1", 1, 2);
	expect_pair(NULL, 0, 1, "mlx5_0/1=mlx5_0/1");
	fake_file("/sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
	expect_pair(NULL, 0, 1, "mlx5_1/1=mlx5_1/1");
	fake_file("/sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN\n");
	expect_pair(NULL, 0, 1, "mlx5_0/1=mlx5_0/1");
	fake_file("/sys/class/infiniband/mlx5_0/ports/1/phys_state", "3: Disabled\n");
	expect_pair(NULL, 0, 1, "mlx5_1/1=mlx5_1/1");
	expect_pair("mlx5_0", 0, 1, "mlx5_0/1=mlx5_0/1");
}

TEST(the_order_of_the_directory_does_not_matter)
{
	fake_ca("mlx5_10");
	fake_port("mlx5_10", 1, 1);
	fake_ca("mlx5_2");
	fake_port("mlx5_2", 1, 2);
	for (int i = 0; i < 2; i++) {
		expect_pair(NULL, 0, 1, "mlx5_10/1=mlx5_10/1");
		expect_pairs("mlx5_10/0=mlx5_10/0 mlx5_2/0=mlx5_2/0");
		fake_order(greater);
	}
	fake_order(NULL);
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
	expect_pair("mlx5_0", 0, 0, "mlx5_0/2=mlx5_0/2");
	fake_file("/sys/class/infiniband/mlx5_0/ports/2/phys_state", "3: Disabled\n");
	expect_pair("mlx5_0", 0, 0, "mlx5_0/3=mlx5_0/3");
	expect_pair("mlx5_0", 2, 0, "mlx5_0/2=mlx5_0/2");
}

TEST(a_port_that_does_not_exist_is_in_no_pair)
{
	struct umad_ca_pair pair;

	fake_ca("mlx5_1");
	fake_port("mlx5_1", 1, 1);
	fake_port("mlx5_1", 2, 2);
	assert_fails(umad_get_smi_gsi_pair_by_ca_name("mlx5_1", 7, &pair, 0), ENODEV);
	assert_fails(umad_get_smi_gsi_pair_by_ca_name("mlx5_1", 255, &pair, 0), ENODEV);
	assert_string_equal(pair.gsi_name, "");
	expect_pair("mlx5_1", 2, 0, "mlx5_1/2=mlx5_1/2");
}

/* The planes are ports of one device. */
TEST(a_plane_is_paired_with_the_only_port_of_the_device_that_programs_see)
{
	char path[64];
	struct umad_ca_pair pair;

	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 10);
	NO_SM("mlx5_0");
	fake_ca("smi1");
	for (int i = 1; i <= 4; i++)
		fake_port("smi1", i, 10);
	expect_pairs("smi1/0=mlx5_0/0");
	expect_pair("smi1", 2, 1, "smi1/2=mlx5_0/1");
	expect_pair("mlx5_0", 1, 1, "smi1/1=mlx5_0/1");
	expect_pair(NULL, 4, 1, "smi1/4=mlx5_0/1");
	assert_fails(umad_get_smi_gsi_pair_by_ca_name("mlx5_0", 2, &pair, 0), ENODEV);
	assert_fails(umad_get_smi_gsi_pair_by_ca_name("smi1", 5, &pair, 0), ENODEV);
	for (int i = 1; i <= 2; i++) {
		snprintf(path, sizeof(path), "/sys/class/infiniband/smi1/ports/%d/state", i);
		fake_file(path, "1: DOWN\n");
	}
	expect_pair(NULL, 0, 1, "smi1/3=mlx5_0/1");
	expect_pair("mlx5_0", 0, 1, "smi1/3=mlx5_0/1");
}

TEST(ethernet_ports_are_in_no_pair)
{
	struct umad_ca_pair pair;

	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 1);
	fake_file("/sys/class/infiniband/mlx5_0/ports/1/link_layer", "Ethernet\n");
	assert_int_equal(umad_get_smi_gsi_pairs(&pair, 1), 0);
	assert_fails(umad_get_smi_gsi_pair_by_ca_name(NULL, 1, &pair, 0), ENODEV);
	fake_ca("mlx5_1");
	fake_port("mlx5_1", 1, 2);
	expect_pairs("mlx5_1/0=mlx5_1/0");
	/* a card with both: the InfiniBand port stays the default */
	fake_port("mlx5_0", 2, 3);
	expect_pairs("mlx5_0/0=mlx5_0/0 mlx5_1/0=mlx5_1/0");
	expect_pair(NULL, 0, 1, "mlx5_0/2=mlx5_0/2");
	expect_pair("mlx5_0", 0, 1, "mlx5_0/2=mlx5_0/2");
	assert_fails(umad_get_smi_gsi_pair_by_ca_name("mlx5_0", 1, &pair, 0), ENODEV);
}

TEST(ports_without_a_guid_are_in_no_pair)
{
	struct umad_ca_pair pair;

	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 1);
	fake_ca("mlx5_1");
	fake_port("mlx5_1", 1, 2);
	NO_SM("mlx5_1");
	for (int i = 0; i < 2; i++) {
		char path[64];

		snprintf(path, sizeof(path), "/sys/class/infiniband/mlx5_%d/ports/1/gids/0", i);
		fake_file(path, "fe80:0000:0000:0000:0000:0000:0000:0000\n");
	}
	assert_int_equal(umad_get_smi_gsi_pairs(&pair, 1), 0);
	assert_fails(umad_get_smi_gsi_pair_by_ca_name("mlx5_0", 1, &pair, 0), ENODEV);
}

/* A GUID that two adapters have, by a fault: neither of them hides the other. */
TEST(devices_of_the_same_kind_with_one_guid_are_pairs_of_their_own)
{
	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 1);
	fake_ca("mlx5_1");
	fake_port("mlx5_1", 1, 1);
	expect_pairs("mlx5_0/0=mlx5_0/0 mlx5_1/0=mlx5_1/0");
	expect_pair("mlx5_1", 0, 1, "mlx5_1/1=mlx5_1/1");
	NO_SM("mlx5_0");
	NO_SM("mlx5_1");
	expect_pairs("/0=mlx5_0/0 /0=mlx5_1/0");
	fake_ca("smi0");
	fake_port("smi0", 1, 1);
	expect_pairs("smi0/0=mlx5_1/0");
}

/* Planes whose device for GMPs cannot be read: rdma-core takes a later pair, too. */
TEST(planes_without_a_device_for_gmps_come_last)
{
	struct umad_ca_pair pair;

	fake_ca("smi0");
	fake_port("smi0", 1, 10);
	fake_port("smi0", 2, 10);
	fake_ca("smi1");
	fake_port("smi1", 1, 11);
	expect_pair(NULL, 0, 0, "smi1/1=smi1/1");
	expect_pair(NULL, 0, 1, "smi1/1=smi1/1");
	expect_pair(NULL, 2, 0, "smi0/2=smi0/2");
	expect_pair("smi0", 0, 0, "smi0/1=smi0/1");
	/* a port that is up is better than one that is Down */
	fake_file("/sys/class/infiniband/smi1/ports/1/state", "1: DOWN\n");
	expect_pair(NULL, 0, 0, "smi0/1=smi0/1");
	fake_remove("/sys/class/infiniband/smi1");
	expect_pair(NULL, 0, 0, "smi0/1=smi0/1");
	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 10);
	NO_SM("mlx5_0");
	expect_pair(NULL, 0, 0, "smi0/1=mlx5_0/1");
	assert_fails(umad_get_smi_gsi_pair_by_ca_name(NULL, 3, &pair, 0), ENODEV);
}

/* rdma-core takes the device to have IsSMDisabled set for all its ports. */
TEST(enforcing_smi_prefers_devices_whose_first_port_sends_smps)
{
	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 1);
	NO_SM("mlx5_0");
	fake_port("mlx5_0", 2, 2);
	fake_ca("mlx5_1");
	fake_port("mlx5_1", 1, 3);
	expect_pair(NULL, 2, 1, "mlx5_0/2=mlx5_0/2");
	expect_pair(NULL, 0, 1, "mlx5_1/1=mlx5_1/1");
	expect_pair(NULL, 0, 0, "/0=mlx5_0/1");
	expect_pair("mlx5_0", 0, 1, "mlx5_0/2=mlx5_0/2");
	fake_file("/sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN\n");
	expect_pair(NULL, 0, 1, "mlx5_0/2=mlx5_0/2");
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

/* umad_get_ca() fails for it. */
TEST(a_device_that_cannot_be_read_as_a_whole_is_in_no_pair)
{
	static const char *const files[] = {"node_guid",       "ports/1/state", "ports/1/sm_sl",
					    "ports/1/pkeys",   "ports/1/gids",  "ports/1/rate",
					    "ports/1/cap_mask"};
	struct umad_ca_pair pair;
	char path[64];

	fake_ca("mlx5_1");
	fake_port("mlx5_1", 1, 3);
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		fake_ca("mlx5_0");
		fake_port("mlx5_0", 1, 1);
		fake_port("mlx5_0", 2, 2);
		expect_pair(NULL, 0, 0, "mlx5_0/1=mlx5_0/1");
		snprintf(path, sizeof(path), "/sys/class/infiniband/mlx5_0/%s", files[i]);
		fake_remove(path);
		expect_pairs("mlx5_1/0=mlx5_1/0");
		expect_pair(NULL, 0, 0, "mlx5_1/1=mlx5_1/1");
		assert_fails(umad_get_smi_gsi_pair_by_ca_name("mlx5_0", 2, &pair, 0), ENODEV);
	}
}

TEST(a_device_with_more_ports_than_umad_get_ca_can_hold_is_the_last_pair)
{
	fake_ca("mlx5_0");
	for (int i = 1; i <= 12; i++)
		fake_port("mlx5_0", i, (uint32_t)i);
	expect_pair(NULL, 0, 1, "mlx5_0/1=mlx5_0/1");
	expect_pair(NULL, 12, 1, "mlx5_0/12=mlx5_0/12");
	fake_ca("mlx5_1");
	fake_port("mlx5_1", 1, 13);
	expect_pairs("mlx5_1/0=mlx5_1/0 mlx5_0/0=mlx5_0/0");
	expect_pair(NULL, 0, 1, "mlx5_1/1=mlx5_1/1");
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
	fake_dir("/sys/class/infiniband/crowded/ports/256");
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
		/* a port without link_layer is InfiniBand */
		assert_true(n == 1 ? ret == -EIO : ret == 1 || ret == 2);
	}
	fake_fail_call(0, 0);
	assert_int_equal(ret, 2);
	/* the list; of each device its type, GUIDs and ports, and two times the port's
	 * attributes */
	assert_true(n > 1 + 2 * 30);
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

/* rdma-core pairs port 2 of mlx5_0 with smi0, which has another PortGUID. */
TEST(of_several_pairs_with_a_device_the_port_tells_which_is_meant)
{
	planarized_machine();
	fake_remove("/sys/class/infiniband/mlx5_1");
	fake_port("mlx5_0", 2, 11);
	fake_file("/sys/class/infiniband/mlx5_0/ports/2/cap_mask", "0x400\n");
	expect_pairs("smi0/0=mlx5_0/0 smi1/0=mlx5_0/0");
	expect_pair("mlx5_0", 0, 0, "smi0/1=mlx5_0/1");
	expect_pair("mlx5_0", 2, 0, "smi1/1=mlx5_0/2");
	expect_pair("smi1", 0, 0, "smi1/1=mlx5_0/2");
}
