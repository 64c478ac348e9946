/* SPDX-License-Identifier: BSD-2-Clause */

#include "fake.h"
#include "test.h"

#include <infiniband/umad_ext.h>

#define CA    "/sys/class/infiniband/mlx5_0"
#define PORT1 CA "/ports/1"

static int setup(void)
{
	if (fake_setup())
		return -1;
	fake_ca("mlx5_0");
	fake_port("mlx5_0", 1, 0x00a00b11);
	return 0;
}

FIXTURE(setup, fake_teardown);

static umad_ca_t ca;
static umad_port_t port;

/* Of an attribute of the CA. */
static const char *path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), CA "/%s", name);
	return path;
}

TEST(a_device_is_read_whole)
{
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

TEST(a_port_is_read_whole)
{
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

TEST(the_default_device_and_port_are_chosen)
{
	__be64 guids[2];

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

/* Or there, but not readable, as the rate of a port without a transceiver. */
TEST(optional_attributes_may_be_missing)
{
	static const char *const names[] = {"fw_ver", "hw_rev", "hca_type", "ports/1/rate",
					    "ports/1/link_layer"};

	for (int unreadable = 0; unreadable < 2; unreadable++) {
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
			fake_remove(path_of(names[i]));
			if (unreadable)
				fake_dir(path_of(names[i]));
		}
		assert_int_equal(umad_get_ca("mlx5_0", &ca), 0);
		assert_string_equal(ca.fw_ver, "");
		assert_string_equal(ca.hw_ver, "");
		assert_string_equal(ca.ca_type, "");
		assert_int_equal(ca.ports[1]->rate, 0);
		assert_string_equal(ca.ports[1]->link_layer, "IB");
		umad_release_ca(&ca);
	}
}

TEST(required_attributes_may_not)
{
	static const char *const names[] = {
		"node_guid",      "sys_image_guid",         "ports",
		"ports/1/lid",    "ports/1/sm_lid",         "ports/1/sm_sl",
		"ports/1/state",  "ports/1/lid_mask_count", "ports/1/cap_mask",
		"ports/1/gids/0", "ports/1/phys_state",     "ports/1/pkeys",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		fake_remove(path_of(names[i]));
		assert_errno(assert_int_equal(umad_get_ca("mlx5_0", &ca), -EIO), ENOENT);
		assert_int_equal(fake_teardown(), 0);
		assert_int_equal(setup(), 0);
	}
}

TEST(attributes_that_make_no_sense_fail_the_call)
{
	static const char *const names[] = {"node_guid", "ports/1/lid", "ports/1/cap_mask",
					    "ports/1/gids/0", "ports/1/pkeys/1"};
	static const char *const contents[] = {"", "rubbish\n", "\xff\xff\xff", "-3\n",
					       "99999999999999999999999999999999\n"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		for (size_t j = 0; j < sizeof(contents) / sizeof(*contents); j++) {
			fake_file(path_of(names[i]), "%s", contents[j]);
			assert_fails(umad_get_ca("mlx5_0", &ca), EIO);
		}
		assert_int_equal(fake_teardown(), 0);
		assert_int_equal(setup(), 0);
	}
}

TEST(long_texts_are_cut_to_their_member)
{
	fake_file(CA "/fw_ver", "%0100d\n", 1);
	fake_file(CA "/hca_type", "%0100d\n", 1);
	fake_file(PORT1 "/link_layer", "%0100d\n", 1);
	assert_int_equal(umad_get_ca("mlx5_0", &ca), 0);
	assert_int_equal(strlen(ca.fw_ver), 19);
	assert_int_equal(strlen(ca.ca_type), 39);
	assert_int_equal(strlen(ca.ports[1]->link_layer), 19);
	umad_release_ca(&ca);
}

static char first_message[128];

static void note_first(enum umad_log_level level, const char *text, void *user)
{
	(void)user;
	if (!first_message[0])
		snprintf(first_message, sizeof(first_message), "%d %s", level, text);
}

/* ca.ports[] ends at port 9. */
TEST(ports_that_do_not_fit_fail_umad_get_ca_and_no_other_call)
{
	struct umad_ca_pair pair;
	__be64 guids[20];

	for (int i = 1; i <= 12; i++)
		fake_port("mlx5_0", i, (uint32_t)i);
	first_message[0] = '\0';
	umad_set_log_hook(note_first, NULL);
	assert_errno(assert_int_equal(umad_get_ca("mlx5_0", &ca), -EIO), EOVERFLOW);
	umad_set_log_hook(NULL, NULL);
	assert_string_equal(first_message, "0 mlx5_0: 12 ports; umad_get_ca() can hold 9");
	assert_int_equal(umad_get_ca_portguids("mlx5_0", guids, 20), 13);
	assert_true(be64toh(guids[12]) == 0x0002c9030000000c);
	fake_file(PORT1 "/state", "1: DOWN\n");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(umad_get_port(i ? NULL : "mlx5_0", 12, &port), 0);
		assert_int_equal(port.portnum, 12);
		umad_release_port(&port);
		assert_int_equal(umad_get_port(i ? NULL : "mlx5_0", 0, &port), 0);
		assert_int_equal(port.portnum, 2);
		umad_release_port(&port);
	}
	assert_int_equal(umad_get_smi_gsi_pairs(&pair, 1), 1);
	assert_int_equal(umad_get_smi_gsi_pair_by_ca_name("mlx5_0", 12, &pair, 1), 0);
	assert_int_equal(pair.gsi_preferred_port, 12);
	for (int i = 10; i <= 12; i++) {
		char path[64];

		snprintf(path, sizeof(path), CA "/ports/%d", i);
		fake_remove(path);
	}
	assert_int_equal(umad_get_ca("mlx5_0", &ca), 0);
	assert_int_equal(ca.numports, 9);
	umad_release_ca(&ca);
}

TEST(a_switch_has_port_0_only)
{
	__be64 guids[1];

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

TEST(pkeys_end_at_the_first_that_is_not_there)
{
	fake_file(PORT1 "/pkeys/5", "0x1\n");
	fake_file(PORT1 "/pkeys/70000", "0x1\n");
	fake_file(PORT1 "/pkeys/-1", "0x1\n");
	fake_file(PORT1 "/pkeys/rubbish", "0x1\n");
	assert_int_equal(umad_get_port("mlx5_0", 1, &port), 0);
	assert_int_equal(port.pkeys_size, 2);
	umad_release_port(&port);
	fake_remove(PORT1 "/pkeys/0");
	assert_errno(assert_int_equal(umad_get_port("mlx5_0", 1, &port), -EIO), ENOENT);
	assert_null(port.pkeys);
}

TEST(there_may_be_65535_pkeys_and_no_more)
{
	char path[128];

	for (int i = 0; i < 65537; i++) {
		snprintf(path, sizeof(path), PORT1 "/pkeys/%d", i);
		/* a link is faster to make than a file */
		if (i > 1)
			fake_link(path, "1");
	}
	assert_int_equal(umad_get_port("mlx5_0", 1, &port), 0);
	assert_int_equal(port.pkeys_size, 65535);
	assert_int_equal(port.pkeys[65534], 0x7fff);
	umad_release_port(&port);
}

TEST(port_guids_come_by_port_number)
{
	__be64 guids[4] = {1, 1, 1, 1};

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

TEST(what_is_not_there_is_no_device)
{
	static const char *const names[] = {"mlx5_9",  "",
					    "..",      "../infiniband/mlx5_0",
					    "mlx5_0/", "a_name_that_is_far_too_long"};
	__be64 guids[2];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		assert_fails(umad_get_ca(names[i], &ca), ENODEV);
		assert_int_equal(umad_get_port(names[i], 1, &port), -ENODEV);
		assert_int_equal(umad_get_port(names[i], 0, &port), -ENODEV);
		assert_int_equal(umad_get_ca_portguids(names[i], guids, 2), -ENODEV);
	}
	assert_errno(assert_int_equal(umad_get_port("mlx5_0", 2, &port), -EIO), ENOENT);
}

TEST(a_device_of_another_kind_is_found_only_by_its_name)
{
	static const char *const kinds[] = {"4: RNIC\n", "5: usNIC\n", "7: <unknown>\n"};
	__be64 guids[2];

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		fake_file(CA "/node_type", "%s", kinds[i]);
		assert_int_equal(umad_get_ca("mlx5_0", &ca), 0);
		assert_int_equal(ca.node_type, (unsigned)(kinds[i][0] - '0'));
		umad_release_ca(&ca);
		assert_int_equal(umad_get_port("mlx5_0", 1, &port), 0);
		umad_release_port(&port);
		assert_int_equal(umad_get_port("mlx5_0", 0, &port), 0);
		assert_int_equal(port.portnum, 1);
		umad_release_port(&port);
		assert_int_equal(umad_get_ca_portguids("mlx5_0", guids, 2), 2);
		assert_fails(umad_get_ca(NULL, &ca), ENODEV);
		assert_fails(umad_get_port(NULL, 1, &port), ENODEV);
		assert_fails(umad_get_ca_portguids(NULL, guids, 2), ENODEV);
	}
}

TEST(bad_arguments_are_refused)
{
	assert_int_equal(umad_get_ca("mlx5_0", NULL), -EINVAL);
	assert_int_equal(umad_get_port("mlx5_0", 1, NULL), -EINVAL);
	assert_fails(umad_get_port("mlx5_0", -1, &port), EINVAL);
	assert_int_equal(umad_release_ca(NULL), -ENODEV);
	assert_int_equal(umad_release_port(NULL), -ENODEV);
}

TEST(releasing_twice_or_nothing_does_no_harm)
{
	ca = (umad_ca_t){0};
	port = (umad_port_t){0};
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

static void refuse_message(enum umad_log_level level, const char *text, void *user)
{
	(void)level;
	(void)user;
	fail_msg("%s", text);
}

TEST(a_device_may_vanish_at_any_moment)
{
	unsigned n, complete = 0;
	int ret;

	/* a removed port has no P_Keys, and is no reason for a warning */
	umad_set_log_hook(refuse_message, NULL);
	fake_before_open(vanish);
	for (n = 1;; n++) {
		vanish_in = n;
		ret = umad_get_ca("mlx5_0", &ca);
		if (vanish_in)
			break;
		assert_true(ret == 0 || ret == -ENODEV || ret == -EIO);
		/* all P_Keys or an error: a removed port does not truncate the table */
		if (!ret)
			assert_int_equal(ca.ports[1]->pkeys_size, 2);
		complete += ret == 0;
		umad_release_ca(&ca);
		assert_int_equal(fake_teardown(), 0);
		assert_int_equal(setup(), 0);
		fake_before_open(vanish);
	}
	assert_int_equal(ret, 0);
	assert_true(n > 15);
	assert_int_equal(complete, 1);
	umad_set_log_hook(NULL, NULL);
	umad_release_ca(&ca);
}

TEST(a_pkey_that_16_bits_cannot_hold_fails_the_call)
{
	fake_file(PORT1 "/pkeys/1", "0x10000\n");
	assert_fails(umad_get_port("mlx5_0", 1, &port), EIO);
	assert_null(port.pkeys);
	assert_int_equal(port.pkeys_size, 0);
	fake_file(PORT1 "/pkeys/1", "0xffff\n");
	assert_int_equal(umad_get_port("mlx5_0", 1, &port), 0);
	assert_int_equal(port.pkeys[1], 0xffff);
	umad_release_port(&port);
}

TEST(attributes_may_end_without_a_newline)
{
	static const struct {
		const char *name, *content;
	} rows[] = {
		{"node_type", "1: CA"},
		{"node_guid", "0002:c903:00a0:0b10"},
		{"fw_ver", "1.2"},
		{"ports/1/lid", "0x2b"},
		{"ports/1/gids/0", "fe80:0000:0000:0000:0002:c903:00a0:0b11"},
		{"ports/1/pkeys/1", "0x7fff"},
		{"ports/1/link_layer", "Ethernet"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		fake_file(path_of(rows[i].name), "%s", rows[i].content);
	}
	assert_int_equal(umad_get_ca("mlx5_0", &ca), 0);
	assert_true(ca.node_guid == htobe64(0x0002c90300a00b10));
	assert_string_equal(ca.fw_ver, "1.2");
	assert_int_equal(ca.ports[1]->base_lid, 0x2b);
	assert_true(ca.ports[1]->port_guid == htobe64(0x0002c90300a00b11));
	assert_int_equal(ca.ports[1]->pkeys[1], 0x7fff);
	assert_string_equal(ca.ports[1]->link_layer, "Ethernet");
	umad_release_ca(&ca);
}

TEST(a_rate_is_its_whole_number_or_0)
{
	static const struct {
		const char *content;
		unsigned rate;
	} rows[] = {
		{"400 Gb/sec (4X NDR)\n", 400},
		{"2.5 Gb/sec (1X SDR)\n", 2},
		{"", 0},
		{"rubbish\n", 0},
		{"-1\n", 0},
		{"99999999999999999999\n", 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		fake_file(PORT1 "/rate", "%s", rows[i].content);
		assert_int_equal(umad_get_port("mlx5_0", 1, &port), 0);
		assert_int_equal(port.rate, rows[i].rate);
		umad_release_port(&port);
	}
}

TEST(a_soft_roce_device_is_read_whole)
{
	fake_remove(CA "/hw_rev");
	fake_remove(CA "/hca_type");
	fake_file(CA "/fw_ver", "\n");
	fake_file(PORT1 "/link_layer", "Ethernet\n");
	fake_file(PORT1 "/lid", "0x0\n");
	fake_file(PORT1 "/rate", "10 Gb/sec (1X FDR10)\n");
	fake_remove(PORT1 "/pkeys/1");
	assert_int_equal(umad_get_ca("mlx5_0", &ca), 0);
	assert_string_equal(ca.fw_ver, "");
	assert_int_equal(ca.ports[1]->base_lid, 0);
	assert_int_equal(ca.ports[1]->rate, 10);
	assert_int_equal(ca.ports[1]->pkeys_size, 1);
	assert_string_equal(ca.ports[1]->link_layer, "Ethernet");
	umad_release_ca(&ca);
}

TEST(a_device_may_have_no_ports)
{
	__be64 guids[2] = {1, 1};

	fake_remove(PORT1);
	assert_int_equal(umad_get_ca("mlx5_0", &ca), 0);
	assert_int_equal(ca.numports, 0);
	for (int i = 0; i < UMAD_CA_MAX_PORTS; i++)
		assert_null(ca.ports[i]);
	umad_release_ca(&ca);
	assert_int_equal(umad_get_ca_portguids("mlx5_0", guids, 2), 1);
	assert_true(guids[0] == 0);
	assert_true(guids[1] == 1);
}

TEST(port_guids_of_the_default_device)
{
	__be64 guids[2];

	assert_int_equal(umad_get_ca_portguids(NULL, guids, 2), 2);
	assert_true(guids[1] == htobe64(0x0002c90300a00b11));
	assert_int_equal(umad_get_ca_portguids(NULL, NULL, 0), 0);
	fake_remove(CA);
	assert_fails(umad_get_ca_portguids(NULL, guids, 2), ENODEV);
}

TEST(port_guids_stay_within_the_array)
{
	__be64 guids[3] = {7, 7, 7};

	assert_fails(umad_get_ca_portguids("mlx5_0", guids, 1), ENOMEM);
	assert_true(guids[1] == 7);
	assert_int_equal(umad_get_ca_portguids("mlx5_0", guids, 2), 2);
	assert_true(guids[2] == 7);
}

TEST(after_an_error_there_is_nothing_to_free)
{
	/* port 1 has been read when port 2 fails */
	fake_port("mlx5_0", 2, 2);
	fake_remove(CA "/ports/2/cap_mask");
	memset(&ca, 0xa5, sizeof(ca));
	assert_int_equal(umad_get_ca("mlx5_0", &ca), -EIO);
	for (int i = 0; i < UMAD_CA_MAX_PORTS; i++)
		assert_null(ca.ports[i]);
	assert_int_equal(umad_release_ca(&ca), 0);
	memset(&port, 0xa5, sizeof(port));
	assert_int_equal(umad_get_port("mlx5_0", 2, &port), -EIO);
	assert_null(port.pkeys);
	assert_int_equal(umad_release_port(&port), 0);
}

static unsigned messages;
static char last_message[256];

static void note(enum umad_log_level level, const char *text, void *user)
{
	(void)user;
	assert_int_equal(level, UMAD_LOG_INFO);
	snprintf(last_message, sizeof(last_message), "%s", text);
	messages++;
	errno = EBUSY;
}

TEST(why_a_call_failed_is_logged_when_wanted)
{
	messages = 0;
	umad_set_log_hook(note, NULL);
	for (int level = 0; level < 2; level++) {
		umad_debug(level);
		assert_fails(umad_get_ca("mlx5_9", &ca), ENODEV);
		assert_int_equal(messages, level);
	}
	assert_non_null(strstr(last_message, "mlx5_9"));
	assert_errno(assert_int_equal(umad_get_port("mlx5_0", 7, &port), -EIO), ENOENT);
	/* the file, then the port */
	assert_int_equal(messages, 3);
	assert_non_null(strstr(last_message, "mlx5_0"));
	assert_int_equal(umad_get_port("mlx5_9", 0, &port), -ENODEV);
	fake_remove(CA);
	assert_int_equal(umad_get_ca(NULL, &ca), -ENODEV);
	assert_int_equal(umad_get_port(NULL, 0, &port), -ENODEV);
	/* one for each call, and four of choice_log(): mlx5_9, and that no port is chosen */
	assert_int_equal(messages, 10);
	umad_debug(0);
	umad_set_log_hook(NULL, NULL);
}
