/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * What a call reads of a device and its ports (ca.c, sysfs.c), and the lists of devices
 * (devices.c).
 */

#include "at.h"
#include "fake.h"
#include "kept_log.h"
#include "sysfs.h"
#include "test.h"

#include <sys/stat.h>

#define CLASS "/sys/class/infiniband"
#define CA    CLASS "/mlx5_0"
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
static __be64 guids[256];

/* --- rows ----------------------------------------------------------------------- */

/*
 * Files of mlx5_0 are changed, as in "fw_ver=1.2; ports/1/rate-", which removes the second one,
 * or "rate/", which makes it a folder: it is there, but cannot be read. Then the device and its
 * port have these values.
 */
static const struct values_row {
	const char *behaviour, *changes, *values;
} rows[] = {
	{"a device and a port are read whole", "",
	 "type 1; ports 1; fw '20.31.1014'; hw '0'; hca 'MT4123'; node 2c90300a00b10; "
	 "system 2c90300a00b13; lid 2b; lmc 1; sm 1/3; state 4/5; rate 100; cap 2651e848; "
	 "link InfiniBand; gid fe80000000000000:2c90300a00b11; pkeys ffff 7fff"},
	{"optional attributes may be missing",
	 "fw_ver-; hw_rev-; hca_type-; ports/1/rate-; ports/1/link_layer-",
	 "fw ''; hw ''; hca ''; rate 0; link IB"},
	/* as the rate of a port without a transceiver */
	{"optional attributes may be unreadable",
	 "fw_ver/; hw_rev/; hca_type/; ports/1/rate/; ports/1/link_layer/",
	 "fw ''; hw ''; hca ''; rate 0; link IB"},
	{"attributes may end without a newline",
	 "node_type=2: switch; node_guid=0002:c903:00a0:0b11; fw_ver=1.2; ports/1/lid=0x2c; "
	 "ports/1/gids/0=fe80:0000:0000:0001:0002:c903:00a0:0b11; ports/1/pkeys/1=0x7ffe; "
	 "ports/1/link_layer=Ethernet",
	 "type 2; node 2c90300a00b11; fw '1.2'; lid 2c; gid fe80000000000001:2c90300a00b11; "
	 "pkeys ffff 7ffe; link Ethernet"},
	{"long texts are cut to their member",
	 "fw_ver=1234567890123456789012345\n; ports/1/link_layer=1234567890123456789012345\n; "
	 "hca_type=1234567890123456789012345678901234567890\n",
	 "fw '1234567890123456789'; hca '123456789012345678901234567890123456789'; "
	 "link 1234567890123456789"},
	{"a soft RoCE device is read whole",
	 "hw_rev-; hca_type-; fw_ver=\n; ports/1/link_layer=Ethernet\n; ports/1/lid=0x0\n; "
	 "ports/1/rate=10 Gb/sec (1X FDR10)\n; ports/1/pkeys/1-",
	 "fw ''; hw ''; hca ''; link Ethernet; lid 0; rate 10; pkeys ffff"},
	{"a number is what its file begins with",
	 "ports/1/rate=2.5 Gb/sec (1X SDR)\n; ports/1/lid=0x00000100\n; ports/1/sm_lid=0\n; "
	 "ports/1/cap_mask=4294967295\n; ports/1/lid_mask_count=7\xff\xfe",
	 "rate 2; lid 100; sm 0/3; cap ffffffff; lmc 7"},
	{"a rate that is no number is 0", "ports/1/rate=rubbish\n", "rate 0"},
	{"a GUID has groups of one to four hex digits", "node_guid=2:C903:a0:b10\n",
	 "node 2c90300a00b10"},
	{"a text is the first line",
	 "fw_ver=1.2\n3.4\n; hw_rev=\n; hca_type=", "fw '1.2'; hw ''; hca ''"},
	{"a port has a number as its name",
	 "ports/a/; ports/2x/; ports/-1/; ports/02/; ports/+2/; ports/0x3/", "ports 1"},
	{"P_Keys end at the first that is not there",
	 "ports/1/pkeys/5=1; ports/1/pkeys/70000=1; ports/1/pkeys/-1=1; ports/1/pkeys/a=1",
	 "pkeys ffff 7fff"},
};

/* Each value ends with a semicolon. */
static void describe_port(const umad_port_t *read, char *text)
{
	text += sprintf(text,
			"lid %x; lmc %u; sm %x/%u; state %u/%u; rate %u; cap %x; link %s; "
			"gid %llx:%llx; pkeys",
			read->base_lid, read->lmc, read->sm_lid, read->sm_sl, read->state,
			read->phys_state, read->rate, be32toh(read->capmask), read->link_layer,
			(unsigned long long)be64toh(read->gid_prefix),
			(unsigned long long)be64toh(read->port_guid));
	for (unsigned i = 0; i < read->pkeys_size; i++)
		text += sprintf(text, " %x", read->pkeys[i]);
	strcpy(text, ";");
	assert_string_equal(read->ca_name, "mlx5_0");
	assert_int_equal(read->portnum, 1);
}

static void run_row(const struct values_row *row)
{
	char copy[512], text[512], port_text[256], *rest = copy, *step, *end, kind;

	strcpy(copy, row->changes);
	while ((step = strsep(&rest, ";")) && *step) {
		step += strspn(step, " ");
		end = strchr(step, '=') ? strchr(step, '=') : step + strlen(step) - 1;
		kind = *end;
		*end = '\0';
		fake_remove(at(CA "/%s", step));
		if (kind == '=')
			fake_file(at(CA "/%s", step), "%s", end + 1);
		else if (kind == '/')
			fake_dir(at(CA "/%s", step));
	}
	assert_int_equal(umad_get_ca("mlx5_0", &ca), 0);
	assert_string_equal(ca.ca_name, "mlx5_0");
	describe_port(
		ca.ports[1],
		text + sprintf(text,
			       "type %u; ports %d; fw '%s'; hw '%s'; hca '%s'; node %llx; "
			       "system %llx; ",
			       ca.node_type, ca.numports, ca.fw_ver, ca.hw_ver, ca.ca_type,
			       (unsigned long long)be64toh(ca.node_guid),
			       (unsigned long long)be64toh(ca.system_guid)));
	strcpy(copy, row->values);
	for (rest = copy; (step = strsep(&rest, ";"));)
		if (!strstr(text, at("%s;", step + strspn(step, " "))))
			fail_msg("%s: no \"%s\" in \"%s\"", row->changes, step, text);
	assert_int_equal(umad_get_port("mlx5_0", 1, &port), 0);
	describe_port(&port, port_text);
	assert_string_equal(port_text, strstr(text, "lid"));
	assert_int_equal(umad_release_ca(&ca), 0);
	assert_int_equal(umad_release_port(&port), 0);
}

TEST_ROWS(run_row, rows);

/* --- a device and its ports ------------------------------------------------------- */

/* umad_get_ca() fails, and leaves nothing to free. */
static void cannot_be_read(int error)
{
	memset(&ca, 0xa5, sizeof(ca));
	assert_errno(assert_int_equal(umad_get_ca("mlx5_0", &ca), -EIO), error);
	for (int i = 0; i < UMAD_CA_MAX_PORTS; i++)
		assert_null(ca.ports[i]);
	assert_int_equal(umad_release_ca(&ca), 0);
}

/* A device with two ports; port 1 has been read when port 2 fails. */
TEST(required_attributes_may_not_be_missing_or_make_no_sense)
{
	static const char *const names[] = {
		"node_guid",      "sys_image_guid",         "ports/2/phys_state",
		"ports/1/lid",    "ports/1/sm_lid",         "ports/1/sm_sl",
		"ports/1/state",  "ports/1/lid_mask_count", "ports/1/cap_mask",
		"ports/1/gids/0", "ports/2/cap_mask",       "ports/1/pkeys/0"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		fake_ca("mlx5_0");
		fake_port("mlx5_0", 1, 1);
		fake_port("mlx5_0", 2, 2);
		for (int missing = 0; missing < 2; missing++) {
			if (missing)
				fake_remove(at(CA "/%s", names[i]));
			else
				fake_file(at(CA "/%s", names[i]), "rubbish\n");
			cannot_be_read(missing ? ENOENT : EIO);
			if (names[i][0] != 'p')
				continue;
			assert_errno(assert_int_equal(
					     umad_get_port("mlx5_0", names[i][6] - '0', &port),
					     -EIO),
				     missing ? ENOENT : EIO);
			assert_null(port.pkeys);
			assert_int_equal(umad_release_port(&port), 0);
		}
	}
	fake_port("mlx5_0", 1, 1);
	fake_remove(PORT1 "/pkeys");
	cannot_be_read(ENOENT);
	fake_remove(CA "/ports");
	cannot_be_read(ENOENT);
}

TEST(what_is_no_number_or_guid_fails_the_call)
{
	static const struct {
		const char *name, *contents; /* separated by "|" */
	} wrong[] = {
		{"ports/1/lid", "4294967296\n|99999999999999999999999\n|-1\n|+1\n| 1\n|\n||"
				"ACTIVE\n|\xff\xfe\n"},
		{"ports/1/pkeys/1", "0x10000\n|"},
		{"node_guid", "0002:c903:00a0\n|0002:c903:00a0:0b10:0000\n|"
			      "0002:c903:00a0:0b10 \n|0002:c903:00a0:00b10\n|"
			      "0002:c903::0b10\n|0002:c903:00a0:\n|0002:c903:00a0:-b10\n|"
			      "0x02:c903:00a0:0b10\n|0002c90300a00b10\n|"},
		{"ports/1/gids/0", "fe80::1234\n|fe80:0000:0000:0000:0002:c903:0000\n|"
				   "fe80:0000:0000:0000:0002:c903:0000:1234:0000\n|"},
	};
	char contents[512], *rest, *content;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		fake_ca("mlx5_0");
		fake_port("mlx5_0", 1, 1);
		for (rest = strcpy(contents, wrong[i].contents);
		     (content = strsep(&rest, "|"));) {
			fake_file(at(CA "/%s", wrong[i].name), "%s", content);
			cannot_be_read(EIO);
		}
	}
	fake_port("mlx5_0", 1, 1);
	/* the kernel's "no value" is not reported as an invalid argument */
	fake_fail_call(4, EINVAL); /* after node_type, lid is opened and read */
	assert_fails(umad_get_port("mlx5_0", 1, &port), EIO);
	/* a FIFO does not block the caller, and a line without end is not read whole */
	fake_remove(PORT1 "/rate");
	assert_int_equal(mkfifo(fake_real_path(PORT1 "/rate"), 0600), 0);
	fake_file(PORT1 "/lid", "%0299d1", 0);
	fake_file(PORT1 "/sm_lid", "%0254d1", 0);
	assert_int_equal(umad_get_port("mlx5_0", 1, &port), 0);
	assert_int_equal(port.rate, 0);
	assert_int_equal(port.base_lid, 0);
	assert_int_equal(port.sm_lid, 1);
	umad_release_port(&port);
}

TEST(the_longest_path_is_read_and_one_longer_is_not)
{
	char name[SYSFS_PATH_MAX + 1] = "", path[SYSFS_PATH_MAX];
	unsigned value;

	memset(name, 'x', SYSFS_PATH_MAX - 1 - strlen(CA "/"));
	assert_int_equal(sysfs_path(path, CA "/%s", name), 0);
	fake_file(path, "5\n");
	assert_int_equal(sysfs_read_uint(CA, name, &value), 0);
	assert_int_equal(value, 5);
	name[strlen(name)] = 'x';
	assert_int_equal(sysfs_read_uint(CA, name, &value), -ENAMETOOLONG);
	memset(name, 'x', SYSFS_PATH_MAX);
	assert_int_equal(node_ports(name, (bool[NODE_PORTS_MAX]){0}), -ENAMETOOLONG);
}

/* ca.ports[] ends at port 9, and numbers at 255. */
TEST(ports_that_do_not_fit_fail_umad_get_ca_and_no_other_call)
{
	for (int i = 1; i <= 12; i++)
		fake_port("mlx5_0", i, (uint32_t)i);
	keep_log(0);
	cannot_be_read(EOVERFLOW);
	end_log();
	assert_int_equal(kept.level, UMAD_LOG_WARNING);
	assert_string_equal(kept.text, "mlx5_0: 12 ports; umad_get_ca() can hold 9");
	assert_int_equal(umad_get_ca_portguids("mlx5_0", guids, 20), 13);
	assert_true(be64toh(guids[12]) == 0x0002c9030000000c);
	fake_file(PORT1 "/state", "1: DOWN\n");
	for (int i = 0; i < 4; i++) {
		assert_int_equal(umad_get_port(i % 2 ? NULL : "mlx5_0", i / 2 * 12, &port), 0);
		assert_int_equal(port.portnum, i / 2 ? 12 : 2);
		umad_release_port(&port);
	}
	fake_port("mlx5_0", 255, 255);
	assert_int_equal(umad_get_ca_portguids("mlx5_0", guids, 256), 256);
	fake_remove(CA "/ports/255");
	for (int i = 0; i < 2; i++) {
		fake_dir(at(CA "/ports/%s", i ? "99999999999999999999" : "256"));
		assert_errno(
			assert_int_equal(umad_get_ca_portguids("mlx5_0", guids, 256), -EIO),
			EIO);
		fake_remove(at(CA "/ports/%s", i ? "99999999999999999999" : "256"));
	}
	for (int i = 10; i <= 12; i++)
		fake_remove(at(CA "/ports/%d", i));
	assert_int_equal(umad_get_ca("mlx5_0", &ca), 0);
	assert_int_equal(ca.numports, 9);
	umad_release_ca(&ca);
}

TEST(there_may_be_65535_pkeys_and_no_more)
{
	/* a link is faster to make than a file */
	for (int i = 2; i < 65537; i++)
		fake_link(at(PORT1 "/pkeys/%d", i), "1");
	assert_int_equal(umad_get_port("mlx5_0", 1, &port), 0);
	assert_int_equal(port.pkeys_size, 65535);
	assert_int_equal(port.pkeys[65534], 0x7fff);
	umad_release_port(&port);
}

/* The ports that umad_get_ca() and umad_get_ca_portguids() find; port N has the GUID N. */
static void has_ports(const char *ca_name, const char *ports)
{
	const int count = (int)strlen(ports);

	assert_int_equal(umad_get_ca(ca_name, &ca), 0);
	assert_int_equal(ca.numports, count - 1);
	memset(guids, 7, sizeof(guids));
	assert_int_equal(umad_get_ca_portguids(ca_name, guids, count), count);
	for (int i = 0; i < UMAD_CA_MAX_PORTS; i++) {
		const bool has = i < count && ports[i] == '+';

		assert_true(has == (ca.ports[i] != NULL));
		if (has)
			assert_int_equal(ca.ports[i]->portnum, i);
		if (i < count)
			assert_true(guids[i] ==
				    (has ? htobe64(0x0002c90300000000 + (unsigned)i) : 0));
	}
	/* the array is not longer */
	assert_true(guids[count] == 0x0707070707070707);
	for (int max = -1; max < count; max++)
		assert_fails(umad_get_ca_portguids(ca_name, guids, max), ENOMEM);
	assert_int_equal(umad_get_ca_portguids(ca_name, NULL, 0), 0);
	umad_release_ca(&ca);
}

TEST(ports_come_by_their_number)
{
	fake_remove(PORT1);
	has_ports("mlx5_0", "-");
	fake_port("mlx5_0", 1, 1);
	has_ports("mlx5_0", "-+");
	fake_port("mlx5_0", 3, 3);
	has_ports("mlx5_0", "-+-+");
	has_ports(NULL, "-+-+");
	fake_remove(CA "/ports/3/gids/0");
	assert_int_equal(umad_get_ca_portguids("mlx5_0", guids, 4), -EIO);
	fake_ca("mlx5_1");
	fake_port("mlx5_1", 2, 2);
	fake_file(PORT1 "/state", "1: DOWN\n");
	has_ports(NULL, "--+");
	assert_string_equal(ca.ca_name, "mlx5_1");
	/* a switch */
	fake_file(CA "/node_type", "2: switch\n");
	fake_remove(CA "/ports");
	fake_port("mlx5_0", 0, 0);
	has_ports("mlx5_0", "+");
	assert_int_equal(umad_get_port("mlx5_0", 0, &port), 0);
	assert_int_equal(port.portnum, 0);
	umad_release_port(&port);
}

TEST(what_is_not_there_is_no_device)
{
	static const char *const no_types[] = {"", "rubbish\n", "4294967295\n", "4294967297\n"};
	static const char *const names[] = {"mlx5_9", "../infiniband/mlx5_0", NULL,
					    "a_name_that_is_far_too_long"};

	assert_errno(assert_int_equal(umad_get_port("mlx5_0", 2, &port), -EIO), ENOENT);
	fake_port("mlx5_0", 1, 1);
	for (size_t i = 0; i < sizeof(no_types) / sizeof(*no_types); i++) {
		fake_file(CA "/node_type", "%s", no_types[i]);
		assert_fails(umad_get_ca("mlx5_0", &ca), ENODEV);
	}
	/* a device of another kind is found only by its name */
	for (unsigned type = 0; type <= 4; type += 4) {
		fake_file(CA "/node_type", "%u: RNIC\n", type);
		has_ports("mlx5_0", "-+");
		assert_int_equal(ca.node_type, type);
		for (int portnum = 0; portnum < 2; portnum++) {
			assert_int_equal(umad_get_port("mlx5_0", portnum, &port), 0);
			umad_release_port(&port);
		}
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		assert_fails(umad_get_ca(names[i], &ca), ENODEV);
		assert_fails(umad_get_port(names[i], 1, &port), ENODEV);
		assert_fails(umad_get_port(names[i], 0, &port), ENODEV);
		assert_fails(umad_get_ca_portguids(names[i], guids, 2), ENODEV);
	}
}

TEST(bad_arguments_are_refused_and_releasing_twice_does_no_harm)
{
	assert_fails(umad_get_ca("mlx5_0", NULL), EINVAL);
	assert_fails(umad_get_port("mlx5_0", 1, NULL), EINVAL);
	assert_fails(umad_get_port("mlx5_0", -1, &port), EINVAL);
	assert_fails(umad_release_ca(NULL), ENODEV);
	assert_fails(umad_release_port(NULL), ENODEV);
	assert_int_equal(umad_get_ca("mlx5_0", &ca), 0);
	assert_int_equal(umad_get_port("mlx5_0", 1, &port), 0);
	for (int i = 0; i < 3; i++) {
		if (i == 2) {
			ca = (umad_ca_t){0};
			port = (umad_port_t){0};
		}
		assert_int_equal(umad_release_ca(&ca), 0);
		assert_int_equal(umad_release_port(&port), 0);
	}
}

static unsigned vanish_in;

static void vanish(const char *path)
{
	(void)path;
	if (vanish_in && !--vanish_in)
		fake_remove(CA);
}

/* All P_Keys or an error: a removed port does not truncate the table. */
TEST(a_device_may_vanish_at_any_moment)
{
	unsigned n = 0;
	int ret;

	/* a removed port has no P_Keys, and is no reason for a warning */
	keep_log(0);
	do {
		fake_ca("mlx5_0");
		fake_port("mlx5_0", 1, 1);
		vanish_in = ++n;
		fake_before_open(vanish);
		ret = umad_get_ca("mlx5_0", &ca);
		fake_before_open(NULL);
		assert_true(!ret || (!vanish_in && (ret == -ENODEV || ret == -EIO)));
		assert_true(ret || ca.ports[1]->pkeys_size == 2);
		umad_release_ca(&ca);
	} while (!vanish_in);
	end_log();
	assert_int_equal(kept.count, 0);
	assert_true(n > 15);
}

/* --- lists of devices ----------------------------------------------------------- */

#define LIST_TEST(name) TEST_WITH(name, fake_setup, fake_teardown)

static void make_device(const char *name, const char *type)
{
	fake_file(at(CLASS "/%s/node_type", name), "%s\n", type);
}

static void make_cas(int count)
{
	for (int i = 0; i < count; i++)
		fake_file(at(CLASS "/mlx5_%d/node_type", i), "1: CA\n");
}

/* The names of the list, each with a blank behind it. */
static const char *names_of(const struct umad_device_node *node)
{
	static char names[256];

	for (names[0] = '\0'; node; node = node->next)
		strcat(strcat(names, node->ca_name), " ");
	return names;
}

/* Both lists have these names. */
static void lists(const char *expected)
{
	struct umad_device_node *list, nodes[8];
	char names[8][UMAD_CA_NAME_LEN];
	int count = umad_get_cas_names(names, 8);

	for (int i = 0; i < count; i++)
		nodes[i] = (struct umad_device_node){i + 1 < count ? &nodes[i + 1] : NULL,
						     names[i]};
	assert_string_equal(names_of(count ? nodes : NULL), expected);
	errno = EBUSY;
	list = umad_get_ca_device_list();
	assert_int_equal(errno, 0);
	assert_string_equal(names_of(list), expected);
	/* it can be sorted again */
	assert_int_equal(umad_sort_ca_device_list(&list, 0), 0);
	assert_string_equal(names_of(list), expected);
	umad_free_ca_device_list(list);
}

/* Makes a device for the list, and removes it then. */
static void vanish_listed(const char *path)
{
	if (!strcmp(path, CLASS))
		make_device("mlx5_1", "1: CA");
	if (!strcmp(path, CLASS "/mlx5_1/node_type"))
		fake_remove(CLASS "/mlx5_1");
}

LIST_TEST(lists_are_sorted_and_have_infiniband_devices_alone)
{
	lists("");
	fake_dir(CLASS);
	lists("");
	make_device("iw0", "4: RNIC");
	make_device("a_name_of_20_letters", "1: CA");
	make_device(".hidden", "1: CA");
	/* names so long, and so many, that they would exceed any array of names */
	for (int i = 0; i < 40; i++)
		fake_file(at(CLASS "/%0180d/node_type", i), "1: CA\n");
	fake_dir(CLASS "/empty");
	fake_link(CLASS "/dangling", "../nowhere");
	lists("");
	make_cas(3);
	make_device("a_name_of_19_letter", "3: router");
	make_device("hfi1_0", "1: CA");
	lists("a_name_of_19_letter hfi1_0 mlx5_0 mlx5_1 mlx5_2 ");
	fake_before_open(vanish_listed);
	lists("a_name_of_19_letter hfi1_0 mlx5_0 mlx5_2 ");
}

LIST_TEST(no_more_names_are_stored_than_asked_for)
{
	char names[3][UMAD_CA_NAME_LEN] = {"", "", "untouched"};

	make_cas(3);
	assert_int_equal(umad_get_cas_names(names, 2), 2);
	assert_string_equal(names[1], "mlx5_1");
	assert_string_equal(names[2], "untouched");
	assert_int_equal(umad_get_cas_names(NULL, 0), 0);
	assert_fails(umad_get_cas_names(NULL, 1), EINVAL);
	assert_fails(umad_get_cas_names(names, -1), EINVAL);
	fake_remove(CLASS);
	fake_file(CLASS, "no folder\n");
	assert_errno(assert_int_equal(umad_get_cas_names(names, 1), -EIO), ENOTDIR);
	assert_fails_null(umad_get_ca_device_list(), ENOTDIR);
}

static int length_of(const struct umad_device_node *node)
{
	int count = 0;

	for (; node; node = node->next)
		count++;
	return count;
}

LIST_TEST(there_is_no_limit_to_devices_and_every_growth_may_fail)
{
	static char names[300][UMAD_CA_NAME_LEN];
	struct umad_device_node *list;
	unsigned n = 0;
	int ret;

	make_cas(300);
	do {
		fake_fail_malloc(++n);
		errno = 0;
		ret = umad_get_cas_names(names, 300);
		assert_int_equal(ret, fake_failed() ? -ENOMEM : 300);
		assert_int_equal(errno, fake_failed() ? ENOMEM : 0);
	} while (ret < 0);
	fake_fail_malloc(0);
	assert_true(n > 2);
	assert_string_equal(names[299], "mlx5_99");
	list = umad_get_ca_device_list();
	assert_int_equal(length_of(list), 300);
	umad_free_ca_device_list(list);
}

LIST_TEST(a_device_that_cannot_be_read_is_left_out_but_the_class_must_be)
{
	struct umad_device_node *list;

	make_cas(3);
	/* the list; open and read for each device */
	for (unsigned n = 1; n <= 8; n++) {
		fake_fail_call(n, EACCES);
		list = umad_get_ca_device_list();
		assert_int_equal(errno, n == 1 ? EACCES : 0);
		assert_int_equal(length_of(list), n == 1 ? 0 : n < 8 ? 2 : 3);
		umad_free_ca_device_list(list);
	}
}

static void cannot_be_sorted(struct umad_device_node **head, size_t length)
{
	assert_errno(assert_int_equal(umad_sort_ca_device_list(head, length), EINVAL), EINVAL);
}

LIST_TEST(a_list_of_any_length_is_sorted_unless_the_length_is_wrong)
{
	static char names[300][8];
	static struct umad_device_node nodes[300];
	struct umad_device_node *head, *node, *ring = &nodes[1];

	for (size_t length = 0; length <= 300; length += length < 7 ? 1 : 293)
		for (int counted = 0; counted < 2; counted++) {
			/* 7 has no factor in common with these: every number, out of order */
			for (size_t i = 0; i < length; i++) {
				snprintf(names[i], sizeof(names[i]), "ca%03zu",
					 (i + 1) * (length == 7 ? 3 : 7) % length);
				nodes[i].ca_name = names[i];
				nodes[i].next = i + 1 < length ? &nodes[i + 1] : NULL;
			}
			head = length ? nodes : NULL;
			cannot_be_sorted(&head, length + 1);
			if (length > 1)
				cannot_be_sorted(&head, length - 1);
			assert_int_equal(umad_sort_ca_device_list(&head, counted ? length : 0),
					 0);
			assert_int_equal(length_of(head), length);
			for (node = head; node && node->next; node = node->next)
				assert_true(strcmp(node->ca_name, node->next->ca_name) < 0);
		}
	/* a ring is not counted for ever */
	nodes[1].next = &nodes[0];
	nodes[0].next = &nodes[1];
	cannot_be_sorted(&ring, 1);
	cannot_be_sorted(&ring, 5);
	assert_true(ring == &nodes[1] && nodes[1].next == &nodes[0] &&
		    nodes[0].next == &nodes[1]);
	cannot_be_sorted(NULL, 0);
	umad_free_ca_device_list(NULL);
}
