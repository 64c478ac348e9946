/* SPDX-License-Identifier: BSD-2-Clause */

#include "fake.h"
#include "select.h"

#include <errno.h>
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

/* Asserts what is chosen: a name and a port, or an errno. */
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

static void a_port_named_in_full_is_taken_as_it_is(void **state)
{
	(void)state;
	chooses("mlx5_0", 1, "mlx5_0", 1);
	chooses("mlx5_0", 300, "mlx5_0", 300);
	fake_ca("mlx5_0");
	port_is("mlx5_0", 1, DISABLED);
	chooses("mlx5_0", 1, "mlx5_0", 1);
}

static void of_a_devices_ports_the_active_one_is_taken(void **state)
{
	(void)state;
	fake_ca("mlx5_0");
	port_is("mlx5_0", 1, LINKED);
	port_is("mlx5_0", 2, ACTIVE_PORT);
	port_is("mlx5_0", 3, ACTIVE_PORT);
	chooses("mlx5_0", 0, "mlx5_0", 2);
}

static void without_an_active_port_the_one_whose_link_is_up_is_taken(void **state)
{
	(void)state;
	fake_ca("mlx5_0");
	port_is("mlx5_0", 1, POLLING);
	port_is("mlx5_0", 2, LINKED);
	port_is("mlx5_0", 3, LINKED);
	chooses("mlx5_0", 0, "mlx5_0", 2);
}

static void without_a_link_the_first_that_is_not_disabled_is_taken(void **state)
{
	(void)state;
	fake_ca("mlx5_0");
	port_is("mlx5_0", 1, DISABLED);
	port_is("mlx5_0", 2, POLLING);
	port_is("mlx5_0", 3, POLLING);
	chooses("mlx5_0", 0, "mlx5_0", 2);
}

static void disabled_ports_are_not_usable(void **state)
{
	(void)state;
	fake_ca("mlx5_0");
	chooses("mlx5_0", 0, NULL, -ENODEV);
	port_is("mlx5_0", 1, DISABLED);
	chooses("mlx5_0", 0, NULL, -ENODEV);
	chooses(NULL, 0, NULL, -ENODEV);
}

static void an_ethernet_port_counts_only_as_not_disabled(void **state)
{
	(void)state;
	fake_ca("rxe0");
	port_is("rxe0", 1, ACTIVE_PORT);
	set("rxe0", 1, "link_layer", "Ethernet");
	port_is("rxe0", 2, LINKED);
	chooses("rxe0", 0, "rxe0", 2);
	fake_remove("/sys/class/infiniband/rxe0/ports/2");
	chooses("rxe0", 0, "rxe0", 1);
	/* a linked Ethernet port is no better than a polling InfiniBand one before it */
	set("rxe0", 1, "state", "2: INIT");
	chooses(NULL, 0, "rxe0", 1);
}

static void a_port_without_link_layer_is_infiniband(void **state)
{
	(void)state;
	fake_ca("ibsim0");
	port_is("ibsim0", 1, POLLING);
	port_is("ibsim0", 2, ACTIVE_PORT);
	fake_remove("/sys/class/infiniband/ibsim0/ports/2/link_layer");
	chooses("ibsim0", 0, "ibsim0", 2);
	set("ibsim0", 2, "link_layer", "IB");
	chooses("ibsim0", 0, "ibsim0", 2);
}

static void the_first_device_with_an_active_port_wins(void **state)
{
	(void)state;
	fake_ca("mlx5_0");
	port_is("mlx5_0", 1, LINKED);
	fake_ca("mlx5_1");
	port_is("mlx5_1", 1, POLLING);
	port_is("mlx5_1", 2, ACTIVE_PORT);
	fake_ca("mlx5_2");
	port_is("mlx5_2", 1, ACTIVE_PORT);
	chooses(NULL, 0, "mlx5_1", 2);
}

static void without_any_active_port_the_first_usable_device_wins(void **state)
{
	(void)state;
	fake_ca("mlx5_0");
	port_is("mlx5_0", 1, DISABLED);
	fake_ca("mlx5_1");
	port_is("mlx5_1", 1, POLLING);
	fake_ca("mlx5_2");
	port_is("mlx5_2", 1, LINKED);
	chooses(NULL, 0, "mlx5_1", 1);
}

static void a_port_number_restricts_the_choice(void **state)
{
	(void)state;
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

static void a_restricting_number_wants_an_infiniband_port_that_is_not_disabled(void **state)
{
	(void)state;
	fake_ca("rxe0");
	port_is("rxe0", 1, ACTIVE_PORT);
	set("rxe0", 1, "link_layer", "Ethernet");
	chooses(NULL, 1, NULL, -ENODEV);
	port_is("rxe0", 1, DISABLED);
	chooses(NULL, 1, NULL, -ENODEV);
	port_is("rxe0", 1, POLLING);
	chooses(NULL, 1, "rxe0", 1);
}

static void a_switch_is_its_port_0(void **state)
{
	(void)state;
	fake_ca("sw0");
	fake_file("/sys/class/infiniband/sw0/node_type", "2: switch\n");
	port_is("sw0", 0, POLLING);
	chooses("sw0", 0, "sw0", 0);
	chooses(NULL, 0, "sw0", 0);
	chooses(NULL, 1, "sw0", 0);
	fake_file("/sys/class/infiniband/sw0/ports/0/cap_mask", "0x400\n");
	chooses_for("sw0", 0, true, NULL, -ENODEV);
}

static void smi_ports_must_let_a_subnet_manager_be(void **state)
{
	(void)state;
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

static void what_cannot_be_read_is_not_chosen(void **state)
{
	(void)state;
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
	/* more ports than a device can have: which it has is not known */
	fake_dir("/sys/class/infiniband/mlx5_0/ports/12");
	chooses("mlx5_0", 0, NULL, -ENODEV);
}

static void names_that_cannot_be_devices_are_no_device(void **state)
{
	static const char *const names[] = {"", "..", "../x", "a/b",
					    "a_name_that_is_far_too_long"};
	struct port_choice choice;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		chooses(names[i], 1, NULL, -ENODEV);
		assert_int_equal(select_ca(names[i], &choice), -ENODEV);
		assert_int_equal(umad_open_port(names[i], 1), -EOPNOTSUPP);
	}
	fake_umad(0, "mlx5_0", 1);
	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_int_equal(umad_open_port(names[i], 1), -ENODEV);
	/* nothing but the ABI version was looked at: an opening that fails, then open, read,
	 * close */
	assert_int_equal(fake_calls(), i + 3 * i);
}

static void a_negative_port_is_refused(void **state)
{
	(void)state;
	chooses("mlx5_0", -1, NULL, -EINVAL);
	chooses(NULL, -1, NULL, -EINVAL);
}

static void a_device_alone_is_chosen_likewise(void **state)
{
	struct port_choice choice;

	(void)state;
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

static void a_failure_to_list_the_devices_is_told(void **state)
{
	(void)state;
	fake_ca("mlx5_0");
	fake_fail_call(1, EACCES);
	chooses(NULL, 0, NULL, -EACCES);
	fake_fail_malloc(1);
	chooses(NULL, 0, NULL, -ENOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_port_named_in_full_is_taken_as_it_is),
		TEST(of_a_devices_ports_the_active_one_is_taken),
		TEST(without_an_active_port_the_one_whose_link_is_up_is_taken),
		TEST(without_a_link_the_first_that_is_not_disabled_is_taken),
		TEST(disabled_ports_are_not_usable),
		TEST(an_ethernet_port_counts_only_as_not_disabled),
		TEST(a_port_without_link_layer_is_infiniband),
		TEST(the_first_device_with_an_active_port_wins),
		TEST(without_any_active_port_the_first_usable_device_wins),
		TEST(a_port_number_restricts_the_choice),
		TEST(a_restricting_number_wants_an_infiniband_port_that_is_not_disabled),
		TEST(a_switch_is_its_port_0),
		TEST(smi_ports_must_let_a_subnet_manager_be),
		TEST(what_cannot_be_read_is_not_chosen),
		TEST(names_that_cannot_be_devices_are_no_device),
		TEST(a_negative_port_is_refused),
		TEST(a_device_alone_is_chosen_likewise),
		TEST(a_failure_to_list_the_devices_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
