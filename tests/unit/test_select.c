/* SPDX-License-Identifier: BSD-2-Clause */

#include "fake.h"
#include "devices.h"
#include "test.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Sets an attribute of a port that fake_port() made. */
static void set(const char *ca_name, int portnum, const char *attribute, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%d/%s", ca_name, portnum,
		 attribute);
	fake_file(path, "%s\n", text);
}

static void port_is(const char *ca_name, int portnum, const char *state, const char *phys)
{
	fake_port(ca_name, portnum, 1);
	set(ca_name, portnum, "state", state);
	set(ca_name, portnum, "phys_state", phys);
}

#define ACTIVE_PORT "4: ACTIVE", "5: LinkUp"
#define LINKED      "2: INIT", "5: LinkUp"
#define POLLING     "1: DOWN", "2: Polling"
#define DISABLED    "1: DOWN", "3: Disabled"

/* Asserts the choice: a name and a port, or an errno. */
static void chooses_for(const char *ca_name, int portnum, bool smi_only, const char *wanted_ca,
			int wanted)
{
	struct port_choice choice;
	int ret = select_port(ca_name, portnum, smi_only, &choice);

	if (!wanted_ca) {
		assert_int_equal(ret, wanted);
		return;
	}
	assert_int_equal(ret, 0);
	assert_string_equal(choice.ca_name, wanted_ca);
	assert_int_equal(choice.portnum, wanted);
}

static void chooses(const char *ca_name, int portnum, const char *wanted_ca, int wanted)
{
	chooses_for(ca_name, portnum, false, wanted_ca, wanted);
}

TEST(a_port_named_in_full_is_taken_as_it_is)
{
	chooses("mlx5_0", 1, "mlx5_0", 1);
	chooses("mlx5_0", 300, "mlx5_0", 300);
	fake_ca("mlx5_0");
	port_is("mlx5_0", 1, DISABLED);
	chooses("mlx5_0", 1, "mlx5_0", 1);
}

TEST(of_a_devices_ports_the_active_one_is_taken)
{
	fake_ca("mlx5_0");
	port_is("mlx5_0", 1, LINKED);
	port_is("mlx5_0", 2, ACTIVE_PORT);
	port_is("mlx5_0", 3, ACTIVE_PORT);
	chooses("mlx5_0", 0, "mlx5_0", 2);
}

TEST(without_an_active_port_the_one_whose_link_is_up_is_taken)
{
	fake_ca("mlx5_0");
	port_is("mlx5_0", 1, POLLING);
	port_is("mlx5_0", 2, LINKED);
	port_is("mlx5_0", 3, LINKED);
	chooses("mlx5_0", 0, "mlx5_0", 2);
}

TEST(without_a_link_the_first_that_is_not_disabled_is_taken)
{
	fake_ca("mlx5_0");
	port_is("mlx5_0", 1, DISABLED);
	port_is("mlx5_0", 2, POLLING);
	port_is("mlx5_0", 3, POLLING);
	chooses("mlx5_0", 0, "mlx5_0", 2);
}

TEST(disabled_ports_are_not_usable)
{
	fake_ca("mlx5_0");
	chooses("mlx5_0", 0, NULL, -ENODEV);
	port_is("mlx5_0", 1, DISABLED);
	chooses("mlx5_0", 0, NULL, -ENODEV);
	chooses(NULL, 0, NULL, -ENODEV);
}

TEST(an_ethernet_port_counts_only_as_not_disabled)
{
	fake_ca("rxe0");
	port_is("rxe0", 1, ACTIVE_PORT);
	set("rxe0", 1, "link_layer", "Ethernet");
	port_is("rxe0", 2, LINKED);
	chooses("rxe0", 0, "rxe0", 2);
	fake_remove("/sys/class/infiniband/rxe0/ports/2");
	chooses("rxe0", 0, "rxe0", 1);
	/* a linked Ethernet port has no priority over a polling InfiniBand port before it */
	set("rxe0", 1, "state", "2: INIT");
	chooses(NULL, 0, "rxe0", 1);
}

TEST(a_port_without_link_layer_is_infiniband)
{
	fake_ca("ibsim0");
	port_is("ibsim0", 1, POLLING);
	port_is("ibsim0", 2, ACTIVE_PORT);
	fake_remove("/sys/class/infiniband/ibsim0/ports/2/link_layer");
	chooses("ibsim0", 0, "ibsim0", 2);
	set("ibsim0", 2, "link_layer", "IB");
	chooses("ibsim0", 0, "ibsim0", 2);
}

TEST(the_first_device_with_an_active_port_wins)
{
	fake_ca("mlx5_0");
	port_is("mlx5_0", 1, LINKED);
	fake_ca("mlx5_1");
	port_is("mlx5_1", 1, POLLING);
	port_is("mlx5_1", 2, ACTIVE_PORT);
	fake_ca("mlx5_2");
	port_is("mlx5_2", 1, ACTIVE_PORT);
	chooses(NULL, 0, "mlx5_1", 2);
}

TEST(without_any_active_port_the_first_usable_device_wins)
{
	fake_ca("mlx5_0");
	port_is("mlx5_0", 1, DISABLED);
	fake_ca("mlx5_1");
	port_is("mlx5_1", 1, POLLING);
	fake_ca("mlx5_2");
	port_is("mlx5_2", 1, LINKED);
	chooses(NULL, 0, "mlx5_1", 1);
}

TEST(a_port_number_restricts_the_choice)
{
	fake_ca("mlx5_0");
	port_is("mlx5_0", 1, ACTIVE_PORT);
	fake_ca("mlx5_1");
	port_is("mlx5_1", 1, ACTIVE_PORT);
	port_is("mlx5_1", 2, POLLING);
	fake_ca("mlx5_2");
	port_is("mlx5_2", 2, ACTIVE_PORT);
	chooses(NULL, 2, "mlx5_2", 2);
	set("mlx5_2", 2, "state", "2: INIT");
	chooses(NULL, 2, "mlx5_1", 2);
	chooses(NULL, 3, NULL, -ENODEV);
}

TEST(a_restricting_number_wants_an_infiniband_port_that_is_not_disabled)
{
	fake_ca("rxe0");
	port_is("rxe0", 1, ACTIVE_PORT);
	set("rxe0", 1, "link_layer", "Ethernet");
	chooses(NULL, 1, NULL, -ENODEV);
	port_is("rxe0", 1, DISABLED);
	chooses(NULL, 1, NULL, -ENODEV);
	port_is("rxe0", 1, POLLING);
	chooses(NULL, 1, "rxe0", 1);
}

TEST(a_switch_is_its_port_0)
{
	fake_ca("sw0");
	fake_file("/sys/class/infiniband/sw0/node_type", "2: switch\n");
	port_is("sw0", 0, POLLING);
	chooses("sw0", 0, "sw0", 0);
	chooses(NULL, 0, "sw0", 0);
	chooses(NULL, 1, "sw0", 0);
	fake_file("/sys/class/infiniband/sw0/ports/0/cap_mask", "0x400\n");
	chooses_for("sw0", 0, true, NULL, -ENODEV);
}

TEST(smi_ports_must_let_a_subnet_manager_be)
{
	fake_ca("mlx5_0");
	port_is("mlx5_0", 1, ACTIVE_PORT);
	set("mlx5_0", 1, "cap_mask", "0x00000400");
	port_is("mlx5_0", 2, POLLING);
	chooses_for("mlx5_0", 0, true, "mlx5_0", 2);
	chooses_for(NULL, 0, true, "mlx5_0", 2);
	chooses_for(NULL, 1, true, NULL, -ENODEV);
	chooses_for("mlx5_0", 1, true, "mlx5_0", 1);
	chooses("mlx5_0", 0, "mlx5_0", 1);
}

TEST(what_cannot_be_read_is_not_chosen)
{
	fake_ca("mlx5_0");
	port_is("mlx5_0", 1, ACTIVE_PORT);
	fake_remove("/sys/class/infiniband/mlx5_0/ports/1/state");
	chooses("mlx5_0", 0, NULL, -ENODEV);
	port_is("mlx5_0", 1, POLLING);
	fake_remove("/sys/class/infiniband/mlx5_0/ports/1/phys_state");
	chooses("mlx5_0", 0, NULL, -ENODEV);
	port_is("mlx5_0", 1, POLLING);
	fake_remove("/sys/class/infiniband/mlx5_0/ports/1/cap_mask");
	chooses_for("mlx5_0", 0, true, NULL, -ENODEV);
	/* more ports than a device can have: the set of ports is unknown */
	fake_dir("/sys/class/infiniband/mlx5_0/ports/12");
	chooses("mlx5_0", 0, NULL, -ENODEV);
}

TEST(names_that_cannot_be_devices_are_no_device)
{
	static const char *const names[] = {"", "..", "../x", "a/b",
					    "a_name_that_is_far_too_long"};
	struct port_choice choice;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		chooses(names[i], 1, NULL, -ENODEV);
		assert_int_equal(select_ca(names[i], &choice), -ENODEV);
		assert_int_equal(umad_open_port(names[i], 1), -EOPNOTSUPP);
	}
	fake_umad(0, "mlx5_0", 1);
	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_int_equal(umad_open_port(names[i], 1), -ENODEV);
	/* only the ABI version was read: a failed open, then open, read, close */
	assert_int_equal(fake_calls(), i + 3 * i);
}

TEST(a_negative_port_is_refused)
{
	chooses("mlx5_0", -1, NULL, -EINVAL);
	chooses(NULL, -1, NULL, -EINVAL);
}

TEST(a_device_alone_is_chosen_likewise)
{
	struct port_choice choice;

	assert_int_equal(select_ca(NULL, &choice), -ENODEV);
	fake_ca("mlx5_0");
	port_is("mlx5_0", 1, POLLING);
	fake_ca("mlx5_1");
	port_is("mlx5_1", 1, ACTIVE_PORT);
	assert_int_equal(select_ca(NULL, &choice), 0);
	assert_string_equal(choice.ca_name, "mlx5_1");
	assert_int_equal(select_ca("mlx5_0", &choice), 0);
	assert_string_equal(choice.ca_name, "mlx5_0");
	assert_int_equal(choice.portnum, 0);
}

TEST(a_failure_to_list_the_devices_is_told)
{
	fake_ca("mlx5_0");
	fake_fail_call(1, EACCES);
	chooses(NULL, 0, NULL, -EACCES);
	fake_fail_malloc(1);
	chooses(NULL, 0, NULL, -ENOMEM);
}

/* --- through the public calls --------------------------------------------------- */

/* The ports that have_port() made: each with the umad device of its index. */
static struct port_choice owners[8];
static int owner_count;

/* A port, its device, and a umad device for it. */
static int have_port(const char *ca_name, int portnum, const char *state, const char *phys)
{
	struct port_choice *owner = &owners[owner_count];

	fake_ca(ca_name);
	port_is(ca_name, portnum, state, phys);
	snprintf(owner->ca_name, sizeof(owner->ca_name), "%s", ca_name);
	owner->portnum = portnum;
	fake_umad(owner_count, ca_name, portnum);
	return owner_count++;
}

/* The port that a call opened: the index of the umad device, or the result and errno. */
static int opened_by(int (*open_port)(const char *, int), const char *ca_name, int portnum)
{
	int i, found = -1, fd;
	char name[32];

	errno = 0;
	fd = open_port(ca_name, portnum);
	if (fd < 0) {
		assert_int_equal(errno, -fd);
		return fd;
	}
	for (i = 0; i < owner_count; i++) {
		snprintf(name, sizeof(name), "umad%d", i);
		if (!fake_device(name)->opened)
			continue;
		assert_int_equal(found, -1);
		found = i;
	}
	assert_int_equal(umad_close_port(fd), 0);
	assert_true(found >= 0);
	return found;
}

/* Asserts which port a name and a port number open or get: an index or an errno. */
static void opens(const char *ca_name, int portnum, int wanted)
{
	umad_port_t port;
	int ret;

	assert_int_equal(opened_by(umad_open_port, ca_name, portnum), wanted);
	errno = 0;
	ret = umad_get_port(ca_name, portnum, &port);
	assert_int_equal(ret, wanted < 0 ? wanted : 0);
	if (wanted < 0) {
		assert_int_equal(errno, -wanted);
		return;
	}
	assert_string_equal(port.ca_name, owners[wanted].ca_name);
	assert_int_equal(port.portnum, owners[wanted].portnum);
	umad_release_port(&port);
}

static void opens_for_smi(const char *ca_name, int portnum, int wanted)
{
	assert_int_equal(opened_by(umad_open_smi_port, ca_name, portnum), wanted);
}

TEST(opening_any_port_takes_the_first_active_one)
{
	int linked, active;

	linked = have_port("mlx5_0", 1, LINKED);
	have_port("mlx5_1", 1, POLLING);
	active = have_port("mlx5_1", 2, ACTIVE_PORT);
	have_port("mlx5_2", 1, ACTIVE_PORT);
	opens(NULL, 0, active);
	opens("mlx5_0", 0, linked);
	opens_for_smi(NULL, 0, active);
}

TEST(opening_a_device_takes_the_best_of_what_is_left)
{
	int first, second, third;

	first = have_port("mlx5_0", 1, POLLING);
	second = have_port("mlx5_0", 2, LINKED);
	third = have_port("mlx5_0", 3, ACTIVE_PORT);
	opens("mlx5_0", 0, third);
	port_is("mlx5_0", 3, DISABLED);
	opens("mlx5_0", 0, second);
	port_is("mlx5_0", 2, POLLING);
	opens("mlx5_0", 0, first);
	port_is("mlx5_0", 1, DISABLED);
	opens("mlx5_0", 0, second);
	port_is("mlx5_0", 2, DISABLED);
	opens("mlx5_0", 0, -ENODEV);
	opens(NULL, 0, -ENODEV);
	opens_for_smi(NULL, 0, -ENODEV);
}

TEST(opening_a_port_by_name_asks_nothing_of_it)
{
	int disabled, ethernet;

	disabled = have_port("mlx5_0", 1, DISABLED);
	ethernet = have_port("rxe0", 1, ACTIVE_PORT);
	set("rxe0", 1, "link_layer", "Ethernet");
	opens("mlx5_0", 1, disabled);
	opens("rxe0", 1, ethernet);
	set("mlx5_0", 1, "cap_mask", "0x400");
	opens_for_smi("mlx5_0", 1, disabled);
}

TEST(opening_by_number_wants_infiniband)
{
	int ethernet, polling;

	ethernet = have_port("a_roce", 1, ACTIVE_PORT);
	set("a_roce", 1, "link_layer", "Ethernet");
	polling = have_port("mlx5_0", 2, POLLING);
	opens(NULL, 1, -ENODEV);
	opens(NULL, 2, polling);
	opens("a_roce", 0, ethernet);
	have_port("mlx5_1", 1, DISABLED);
	opens(NULL, 1, -ENODEV);
}

TEST(opening_by_number_prefers_an_active_port)
{
	int polling, active;

	polling = have_port("mlx5_0", 2, POLLING);
	have_port("mlx5_1", 1, ACTIVE_PORT);
	active = have_port("mlx5_2", 2, ACTIVE_PORT);
	opens(NULL, 2, active);
	port_is("mlx5_2", 2, DISABLED);
	opens(NULL, 2, polling);
}

TEST(opening_for_smi_leaves_out_ports_without_subnet_management)
{
	int plain, next;

	plain = have_port("mlx5_0", 1, ACTIVE_PORT);
	set("mlx5_0", 1, "cap_mask", "0x2651ec48");
	next = have_port("mlx5_1", 1, LINKED);
	opens(NULL, 0, plain);
	opens_for_smi(NULL, 0, next);
	opens_for_smi(NULL, 1, next);
	opens_for_smi("mlx5_0", 0, -ENODEV);
	set("mlx5_0", 1, "cap_mask", "0x2651e848");
	opens_for_smi(NULL, 0, plain);
}

TEST(opening_a_switch_opens_its_port_0)
{
	int port;

	fake_ca("sw0");
	port = have_port("sw0", 0, ACTIVE_PORT);
	fake_file("/sys/class/infiniband/sw0/node_type", "2: switch\n");
	opens("sw0", 0, port);
	opens(NULL, 0, port);
	opens_for_smi("sw0", 0, port);
	set("sw0", 0, "cap_mask", "0x400");
	opens_for_smi("sw0", 0, -ENODEV);
	opens("sw0", 0, port);
}

TEST(opening_a_negative_port_is_refused)
{
	have_port("mlx5_0", 1, ACTIVE_PORT);
	opens("mlx5_0", -1, -EINVAL);
	opens(NULL, -1, -EINVAL);
	opens(NULL, INT_MIN, -EINVAL);
	opens_for_smi(NULL, -1, -EINVAL);
}

TEST(opening_without_any_device_is_no_device)
{
	fake_file("/sys/class/infiniband_mad/abi_version", "5\n");
	opens(NULL, 0, -ENODEV);
	opens(NULL, 1, -ENODEV);
	opens("mlx5_0", 0, -ENODEV);
	opens("mlx5_0", 1, -ENODEV);
	opens_for_smi(NULL, 0, -ENODEV);
}

/* --- more of the choice --------------------------------------------------------- */

TEST(a_router_is_judged_as_a_ca_is)
{
	fake_ca("mlx5_0");
	fake_file("/sys/class/infiniband/mlx5_0/node_type", "3: router\n");
	port_is("mlx5_0", 1, POLLING);
	port_is("mlx5_0", 2, ACTIVE_PORT);
	chooses("mlx5_0", 0, "mlx5_0", 2);
	chooses(NULL, 0, "mlx5_0", 2);
}

TEST(an_rnic_is_never_chosen)
{
	fake_ca("iw0");
	port_is("iw0", 1, ACTIVE_PORT);
	fake_file("/sys/class/infiniband/iw0/node_type", "4: RNIC\n");
	chooses("iw0", 0, NULL, -ENODEV);
	chooses(NULL, 0, NULL, -ENODEV);
	chooses(NULL, 1, NULL, -ENODEV);
	fake_ca("mlx5_0");
	port_is("mlx5_0", 1, POLLING);
	chooses(NULL, 0, "mlx5_0", 1);
}

TEST(only_infiniband_by_its_full_name_is_infiniband)
{
	static const char *const others[] = {"Ethernet",
					     "InfiniBandX",
					     "Infini",
					     "infiniband",
					     "InfiniBand and nineteen more letters",
					     "\xff\xfe"};
	size_t i;

	fake_ca("mlx5_0");
	port_is("mlx5_0", 1, ACTIVE_PORT);
	port_is("mlx5_0", 2, LINKED);
	for (i = 0; i < sizeof(others) / sizeof(*others); i++) {
		set("mlx5_0", 1, "link_layer", others[i]);
		chooses("mlx5_0", 0, "mlx5_0", 2);
	}
	set("mlx5_0", 1, "link_layer", "InfiniBand");
	chooses("mlx5_0", 0, "mlx5_0", 1);
}

TEST(a_state_that_makes_no_sense_is_not_chosen)
{
	static const char *const contents[] = {"", "ACTIVE", "-4", "\xff\xfe",
					       "99999999999999999999"};
	size_t i;

	fake_ca("mlx5_0");
	fake_ca("mlx5_1");
	port_is("mlx5_1", 1, POLLING);
	for (i = 0; i < sizeof(contents) / sizeof(*contents); i++) {
		port_is("mlx5_0", 1, ACTIVE_PORT);
		set("mlx5_0", 1, "state", contents[i]);
		chooses("mlx5_0", 0, NULL, -ENODEV);
		chooses(NULL, 0, "mlx5_1", 1);
		port_is("mlx5_0", 1, POLLING);
		set("mlx5_0", 1, "phys_state", contents[i]);
		chooses("mlx5_0", 0, NULL, -ENODEV);
		chooses(NULL, 0, "mlx5_1", 1);
	}
}

TEST(names_are_taken_in_the_order_of_their_bytes)
{
	static const char *const names[] = {"mlx5_2", "mlx5_10", "Z", "a"};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		fake_ca(names[i]);
		port_is(names[i], 1, ACTIVE_PORT);
	}
	chooses(NULL, 0, "Z", 1);
	fake_remove("/sys/class/infiniband/Z");
	chooses(NULL, 0, "a", 1);
	fake_remove("/sys/class/infiniband/a");
	chooses(NULL, 0, "mlx5_10", 1);
}

/* A device with only the files that the choice of a port needs. */
static void slim_ca(const char *ca_name, const char *state, const char *phys)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/node_type", ca_name);
	fake_file(path, "1: CA\n");
	set(ca_name, 1, "state", state);
	set(ca_name, 1, "phys_state", phys);
}

TEST(there_is_no_limit_to_the_devices_to_choose_from)
{
	char name[UMAD_CA_NAME_LEN];
	int i;

	for (i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "mlx5_%03d", i);
		slim_ca(name, DISABLED);
	}
	chooses(NULL, 0, NULL, -ENODEV);
	slim_ca("mlx5_198", POLLING);
	chooses(NULL, 0, "mlx5_198", 1);
	slim_ca("mlx5_199", ACTIVE_PORT);
	chooses(NULL, 0, "mlx5_199", 1);
	chooses(NULL, 1, "mlx5_199", 1);
}

static void vanish(const char *path)
{
	if (!strcmp(path, "/sys/class/infiniband/mlx5_0/ports/1/state"))
		fake_remove("/sys/class/infiniband/mlx5_0");
}

TEST(a_device_that_vanishes_meanwhile_is_not_chosen)
{
	fake_ca("mlx5_0");
	port_is("mlx5_0", 1, ACTIVE_PORT);
	fake_ca("mlx5_1");
	port_is("mlx5_1", 1, POLLING);
	fake_before_open(vanish);
	chooses(NULL, 0, "mlx5_1", 1);
	chooses("mlx5_0", 0, NULL, -ENODEV);
}

TEST(every_call_may_fail_and_the_next_best_is_chosen)
{
	struct port_choice choice;
	unsigned n;
	int ret;

	fake_ca("mlx5_0");
	port_is("mlx5_0", 1, ACTIVE_PORT);
	fake_ca("mlx5_1");
	port_is("mlx5_1", 1, ACTIVE_PORT);
	for (n = 1;; n++) {
		fake_fail_call(n, EACCES);
		ret = select_port(NULL, 0, true, &choice);
		if (!fake_failed())
			break;
		assert_int_equal(ret, n == 1 ? -EACCES : 0);
	}
	fake_fail_call(0, 0);
	assert_int_equal(ret, 0);
	assert_string_equal(choice.ca_name, "mlx5_0");
	/* the list; type, ports, state, capability mask and link layer of the first device */
	assert_int_equal(n, 1 + 9 + 1);
}

TEST(every_call_of_an_opening_may_fail)
{
	int fd, opened;
	unsigned n;

	opened = have_port("mlx5_0", 1, ACTIVE_PORT);
	for (n = 1;; n++) {
		fake_fail_call(n, EACCES);
		errno = 0;
		fd = umad_open_port(NULL, 0);
		if (!fake_failed())
			break;
		if (fd >= 0) {
			assert_int_equal(umad_close_port(fd), 0);
			continue;
		}
		assert_true(fd == -EOPNOTSUPP || fd == -ENODEV || fd == -EINVAL || fd == -EIO);
		assert_int_equal(errno, fd == -EIO ? EACCES : -fd);
	}
	fake_fail_call(0, 0);
	assert_true(n > 15);
	assert_int_equal(umad_close_port(fd), 0);
	opens(NULL, 0, opened);
}

TEST(every_allocation_of_an_opening_may_fail)
{
	unsigned n;
	int fd;

	have_port("mlx5_0", 1, ACTIVE_PORT);
	for (n = 1;; n++) {
		fake_fail_malloc(n);
		errno = 0;
		fd = umad_open_port(NULL, 0);
		if (!fake_failed())
			break;
		assert_int_equal(fd, -ENOMEM);
		assert_int_equal(errno, ENOMEM);
	}
	fake_fail_malloc(0);
	assert_true(n > 1);
	assert_int_equal(umad_close_port(fd), 0);
}

TEST(a_device_alone_needs_a_usable_port_only_when_it_is_not_named)
{
	struct port_choice choice;

	fake_ca("mlx5_0");
	port_is("mlx5_0", 1, DISABLED);
	assert_int_equal(select_ca(NULL, &choice), -ENODEV);
	assert_int_equal(select_ca("mlx5_0", &choice), 0);
	assert_string_equal(choice.ca_name, "mlx5_0");
	fake_fail_call(1, EACCES);
	assert_int_equal(select_ca(NULL, &choice), -EACCES);
	fake_fail_malloc(1);
	assert_int_equal(select_ca(NULL, &choice), -ENOMEM);
	fake_fail_malloc(0);
}

/* The machine begins without ports, and the list is empty. */
static int setup(void)
{
	owner_count = 0;
	return fake_setup();
}

FIXTURE(setup, fake_teardown);
