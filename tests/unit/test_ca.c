/* SPDX-License-Identifier: BSD-2-Clause */

#include "fake.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CA    "/sys/class/infiniband/mlx5_0"
#define PORT1 CA "/ports/1"

static int setup(void **state)
{
	if (fake_setup(state))
		return -1;
	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 0x00a00b11);
	return 0;
}

static void a_device_is_read_whole(void **state)
{
	umad_ca_t ca;

	(void)state;
	fake_port("mlx5_0", 3, 0x00a00b13);
	assert_int_equal(umad_get_ca("mlx5_0", &ca), 0);
	assert_string_equal(ca.ca_name, "mlx5_0");
	assert_int_equal(ca.node_type, 1);
	assert_int_equal(ca.numports, 3);
	assert_string_equal(ca.fw_ver, "20.31.1014");
	assert_string_equal(ca.ca_type, "MT4123");
	assert_string_equal(ca.hw_ver, "0");
	assert_true(ca.node_guid == htobe64(0x0002c90300a00b10));
	assert_true(ca.system_guid == htobe64(0x0002c90300a00b13));
	assert_non_null(ca.ports[1]);
	assert_non_null(ca.ports[3]);
	assert_null(ca.ports[0]);
	assert_null(ca.ports[2]);
	assert_int_equal(ca.ports[3]->portnum, 3);
	assert_int_equal(umad_release_ca(&ca), 0);
}

static void a_port_is_read_whole(void **state)
{
	umad_port_t port;

	(void)state;
	assert_int_equal(umad_get_port("mlx5_0", 1, &port), 0);
	assert_string_equal(port.ca_name, "mlx5_0");
	assert_int_equal(port.portnum, 1);
	assert_int_equal(port.base_lid, 0x2b);
	assert_int_equal(port.lmc, 1);
	assert_int_equal(port.sm_lid, 1);
	assert_int_equal(port.sm_sl, 3);
	assert_int_equal(port.state, 4);
	assert_int_equal(port.phys_state, 5);
	assert_int_equal(port.rate, 100);
	assert_true(port.capmask == htobe32(0x2651e848));
	assert_true(port.gid_prefix == htobe64(0xfe80000000000000));
	assert_true(port.port_guid == htobe64(0x0002c90300a00b11));
	assert_string_equal(port.link_layer, "InfiniBand");
	assert_int_equal(port.pkeys_size, 2);
	assert_int_equal(port.pkeys[0], 0xffff);
	assert_int_equal(port.pkeys[1], 0x7fff);
	assert_int_equal(umad_release_port(&port), 0);
}

static void the_default_device_and_port_are_chosen(void **state)
{
	umad_port_t port;
	__be64 guids[2];
	umad_ca_t ca;

	(void)state;
	fake_ca("mlx5_1");
	fake_port("mlx5_1", 2, 7);
	fake_file(PORT1 "/state", "1: DOWN\n");
	assert_int_equal(umad_get_ca(NULL, &ca), 0);
	assert_string_equal(ca.ca_name, "mlx5_1");
	umad_release_ca(&ca);
	assert_int_equal(umad_get_port(NULL, 0, &port), 0);
	assert_string_equal(port.ca_name, "mlx5_1");
	assert_int_equal(port.portnum, 2);
	umad_release_port(&port);
	assert_int_equal(umad_get_ca_portguids(NULL, guids, 2), -ENOMEM);
}

static void optional_attributes_may_be_missing(void **state)
{
	static const char *const names[] = {"fw_ver", "hw_rev", "hca_type",
					    "ports/1/link_layer"};
	char path[128];
	umad_ca_t ca;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), CA "/%s", names[i]);
		fake_remove(path);
	}
	assert_int_equal(umad_get_ca("mlx5_0", &ca), 0);
	assert_string_equal(ca.fw_ver, "");
	assert_string_equal(ca.hw_ver, "");
	assert_string_equal(ca.ca_type, "");
	assert_string_equal(ca.ports[1]->link_layer, "IB");
	umad_release_ca(&ca);
}

static void required_attributes_may_not(void **state)
{
	static const char *const names[] = {
		"node_guid",      "sys_image_guid",         "ports",
		"ports/1/lid",    "ports/1/sm_lid",         "ports/1/sm_sl",
		"ports/1/state",  "ports/1/lid_mask_count", "ports/1/cap_mask",
		"ports/1/gids/0", "ports/1/phys_state",     "ports/1/pkeys",
	};
	char path[128];
	umad_ca_t ca;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), CA "/%s", names[i]);
		fake_remove(path);
		errno = 0;
		assert_int_equal(umad_get_ca("mlx5_0", &ca), -EIO);
		assert_int_equal(errno, ENOENT);
		assert_int_equal(fake_teardown(state), 0);
		assert_int_equal(setup(state), 0);
	}
}

static void attributes_that_make_no_sense_fail_the_call(void **state)
{
	static const char *const names[] = {"node_guid", "ports/1/lid", "ports/1/cap_mask",
					    "ports/1/gids/0", "ports/1/pkeys/1"};
	static const char *const contents[] = {"", "rubbish\n", "\xff\xff\xff", "-3\n",
					       "99999999999999999999999999999999\n"};
	char path[128];
	umad_ca_t ca;
	size_t i, j;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		for (j = 0; j < sizeof(contents) / sizeof(*contents); j++) {
			snprintf(path, sizeof(path), CA "/%s", names[i]);
			fake_file(path, "%s", contents[j]);
			assert_int_equal(umad_get_ca("mlx5_0", &ca), -EIO);
			assert_int_equal(errno, EIO);
		}
		assert_int_equal(fake_teardown(state), 0);
		assert_int_equal(setup(state), 0);
	}
}

static void an_unreadable_rate_is_0(void **state)
{
	umad_port_t port;

	(void)state;
	fake_remove(PORT1 "/rate");
	assert_int_equal(umad_get_port("mlx5_0", 1, &port), 0);
	assert_int_equal(port.rate, 0);
	umad_release_port(&port);
}

static void long_texts_are_cut_to_their_member(void **state)
{
	umad_ca_t ca;

	(void)state;
	fake_file(CA "/fw_ver", "%0100d\n", 1);
	fake_file(CA "/hca_type", "%0100d\n", 1);
	fake_file(PORT1 "/link_layer", "%0100d\n", 1);
	assert_int_equal(umad_get_ca("mlx5_0", &ca), 0);
	assert_int_equal(strlen(ca.fw_ver), 19);
	assert_int_equal(strlen(ca.ca_type), 39);
	assert_int_equal(strlen(ca.ports[1]->link_layer), 19);
	umad_release_ca(&ca);
}

static void ports_that_do_not_fit_fail_the_call(void **state)
{
	__be64 guids[20];
	umad_ca_t ca;

	(void)state;
	fake_port("mlx5_0", 10, 3);
	assert_int_equal(umad_get_ca("mlx5_0", &ca), -EIO);
	assert_int_equal(umad_get_ca_portguids("mlx5_0", guids, 20), -EIO);
	fake_remove(CA "/ports/10");
	fake_port("mlx5_0", 9, 3);
	assert_int_equal(umad_get_ca("mlx5_0", &ca), 0);
	assert_int_equal(ca.numports, 9);
	umad_release_ca(&ca);
}

static void a_switch_has_port_0_only(void **state)
{
	umad_port_t port;
	__be64 guids[1];
	umad_ca_t ca;

	(void)state;
	fake_file(CA "/node_type", "2: switch\n");
	fake_remove(CA "/ports");
	fake_port("mlx5_0", 0, 5);
	assert_int_equal(umad_get_ca("mlx5_0", &ca), 0);
	assert_int_equal(ca.numports, 0);
	assert_non_null(ca.ports[0]);
	umad_release_ca(&ca);
	assert_int_equal(umad_get_port("mlx5_0", 0, &port), 0);
	assert_int_equal(port.portnum, 0);
	umad_release_port(&port);
	assert_int_equal(umad_get_ca_portguids("mlx5_0", guids, 1), 1);
	assert_true(guids[0] == htobe64(0x0002c90300000005));
}

static void pkeys_end_at_the_first_that_is_not_there(void **state)
{
	umad_port_t port;

	(void)state;
	fake_file(PORT1 "/pkeys/5", "0x1\n");
	fake_file(PORT1 "/pkeys/70000", "0x1\n");
	fake_file(PORT1 "/pkeys/-1", "0x1\n");
	fake_file(PORT1 "/pkeys/rubbish", "0x1\n");
	assert_int_equal(umad_get_port("mlx5_0", 1, &port), 0);
	assert_int_equal(port.pkeys_size, 2);
	umad_release_port(&port);
	fake_remove(PORT1 "/pkeys/0");
	assert_int_equal(umad_get_port("mlx5_0", 1, &port), -EIO);
	assert_int_equal(errno, ENOENT);
	assert_null(port.pkeys);
}

static void there_may_be_65535_pkeys_and_no_more(void **state)
{
	umad_port_t port;
	char path[128];
	int i;

	(void)state;
	for (i = 0; i < 65537; i++) {
		snprintf(path, sizeof(path), PORT1 "/pkeys/%d", i);
		/* a link is quicker to make than a file */
		if (i > 1)
			fake_link(path, "1");
	}
	assert_int_equal(umad_get_port("mlx5_0", 1, &port), 0);
	assert_int_equal(port.pkeys_size, 65535);
	assert_int_equal(port.pkeys[65534], 0x7fff);
	umad_release_port(&port);
}

static void port_guids_come_by_port_number(void **state)
{
	__be64 guids[4] = {1, 1, 1, 1};

	(void)state;
	fake_port("mlx5_0", 3, 0x00a00b13);
	assert_int_equal(umad_get_ca_portguids("mlx5_0", guids, 4), 4);
	assert_true(guids[0] == 0);
	assert_true(guids[1] == htobe64(0x0002c90300a00b11));
	assert_true(guids[2] == 0);
	assert_true(guids[3] == htobe64(0x0002c90300a00b13));
	assert_int_equal(umad_get_ca_portguids("mlx5_0", guids, 3), -ENOMEM);
	assert_int_equal(umad_get_ca_portguids("mlx5_0", guids, 0), -ENOMEM);
	assert_int_equal(umad_get_ca_portguids("mlx5_0", guids, -1), -ENOMEM);
	assert_int_equal(umad_get_ca_portguids("mlx5_0", NULL, 0), 0);
	fake_remove(CA "/ports/3/gids/0");
	assert_int_equal(umad_get_ca_portguids("mlx5_0", guids, 4), -EIO);
}

static void what_is_not_there_is_no_device(void **state)
{
	static const char *const names[] = {"mlx5_9",  "",
					    "..",      "../infiniband/mlx5_0",
					    "mlx5_0/", "a_name_that_is_far_too_long"};
	umad_port_t port;
	__be64 guids[2];
	umad_ca_t ca;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		errno = 0;
		assert_int_equal(umad_get_ca(names[i], &ca), -ENODEV);
		assert_int_equal(errno, ENODEV);
		assert_int_equal(umad_get_port(names[i], 1, &port), -ENODEV);
		assert_int_equal(umad_get_port(names[i], 0, &port), -ENODEV);
		assert_int_equal(umad_get_ca_portguids(names[i], guids, 2), -ENODEV);
	}
	assert_int_equal(umad_get_port("mlx5_0", 2, &port), -EIO);
	assert_int_equal(errno, ENOENT);
}

static void an_rnic_is_no_device(void **state)
{
	umad_ca_t ca;

	(void)state;
	fake_file(CA "/node_type", "4: RNIC\n");
	assert_int_equal(umad_get_ca("mlx5_0", &ca), -ENODEV);
	assert_int_equal(umad_get_ca(NULL, &ca), -ENODEV);
}

static void bad_arguments_are_refused(void **state)
{
	umad_port_t port;

	(void)state;
	assert_int_equal(umad_get_ca("mlx5_0", NULL), -EINVAL);
	assert_int_equal(umad_get_port("mlx5_0", 1, NULL), -EINVAL);
	assert_int_equal(umad_get_port("mlx5_0", -1, &port), -EINVAL);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(umad_release_ca(NULL), -ENODEV);
	assert_int_equal(umad_release_port(NULL), -ENODEV);
}

static void releasing_twice_or_nothing_does_no_harm(void **state)
{
	umad_port_t port = {0};
	umad_ca_t ca = {0};

	(void)state;
	assert_int_equal(umad_release_ca(&ca), 0);
	assert_int_equal(umad_release_port(&port), 0);
	assert_int_equal(umad_get_ca("mlx5_0", &ca), 0);
	assert_int_equal(umad_release_ca(&ca), 0);
	assert_int_equal(umad_release_ca(&ca), 0);
	assert_int_equal(umad_get_port("mlx5_0", 1, &port), 0);
	assert_int_equal(umad_release_port(&port), 0);
	assert_int_equal(umad_release_port(&port), 0);
}

static unsigned vanish_in;

static void vanish(const char *path)
{
	(void)path;
	if (vanish_in && !--vanish_in)
		fake_remove(CA);
}

static void a_device_may_vanish_at_any_moment(void **state)
{
	unsigned n, complete = 0;
	umad_ca_t ca;
	int ret;

	fake_before_open(vanish);
	for (n = 1;; n++) {
		vanish_in = n;
		ret = umad_get_ca("mlx5_0", &ca);
		if (vanish_in)
			break;
		/* gone after the first P_Key, it has had one, or both: the table ends there */
		assert_true(ret == 0 || ret == -ENODEV || ret == -EIO);
		complete += ret == 0;
		umad_release_ca(&ca);
		assert_int_equal(fake_teardown(state), 0);
		assert_int_equal(setup(state), 0);
		fake_before_open(vanish);
	}
	assert_int_equal(ret, 0);
	assert_true(n > 15);
	assert_int_equal(complete, 2);
	umad_release_ca(&ca);
}

static void every_call_and_every_allocation_may_fail(void **state)
{
	unsigned n, failed = 0;
	umad_ca_t ca;
	int ret;

	(void)state;
	for (n = 1;; n++) {
		fake_fail_call(n, EIO);
		ret = umad_get_ca("mlx5_0", &ca);
		if (!fake_failed())
			break;
		failed += ret != 0;
		assert_true(ret == 0 || ret == -EIO || ret == -ENODEV);
		if (!ret)
			umad_release_ca(&ca);
	}
	fake_fail_call(0, 0);
	assert_int_equal(ret, 0);
	umad_release_ca(&ca);
	assert_true(failed > 20);
	for (n = 1;; n++) {
		fake_fail_malloc(n);
		ret = umad_get_ca("mlx5_0", &ca);
		if (!fake_failed())
			break;
		assert_int_equal(ret, -ENOMEM);
		assert_int_equal(errno, ENOMEM);
	}
	fake_fail_malloc(0);
	umad_release_ca(&ca);
	assert_true(n > 2);
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fake_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_device_is_read_whole),
		TEST(a_port_is_read_whole),
		TEST(the_default_device_and_port_are_chosen),
		TEST(optional_attributes_may_be_missing),
		TEST(required_attributes_may_not),
		TEST(attributes_that_make_no_sense_fail_the_call),
		TEST(an_unreadable_rate_is_0),
		TEST(long_texts_are_cut_to_their_member),
		TEST(ports_that_do_not_fit_fail_the_call),
		TEST(a_switch_has_port_0_only),
		TEST(pkeys_end_at_the_first_that_is_not_there),
		TEST(there_may_be_65535_pkeys_and_no_more),
		TEST(port_guids_come_by_port_number),
		TEST(what_is_not_there_is_no_device),
		TEST(an_rnic_is_no_device),
		TEST(bad_arguments_are_refused),
		TEST(releasing_twice_or_nothing_does_no_harm),
		TEST(a_device_may_vanish_at_any_moment),
		TEST(every_call_and_every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
