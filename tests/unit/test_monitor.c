/* SPDX-License-Identifier: BSD-2-Clause */

#include "fake.h"
#include "netlink.h"

#include <infiniband/umad_ext.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- the kernel's uevents, in place of netlink.c -------------------------------------- */

static struct {
	char text[512];
	int length; /* or a negative errno */
} uevents[64];
static int uevent_count, uevent_next;
static int open_error, opened;

int netlink_find_umad(const char *ca_name, int portnum, char *name, size_t size)
{
	(void)ca_name;
	(void)portnum;
	(void)name;
	(void)size;
	return -ENOENT;
}

int uevent_open(struct nl_sock **sock)
{
	if (open_error)
		return -open_error;
	*sock = NULL;
	opened++;
	return 0;
}

int uevent_fd(const struct nl_sock *sock)
{
	(void)sock;
	return 42;
}

void uevent_close(struct nl_sock *sock)
{
	(void)sock;
	opened--;
}

int uevent_receive(struct nl_sock *sock, char **text)
{
	int length;

	(void)sock;
	if (uevent_next == uevent_count)
		return -EAGAIN;
	length = uevents[uevent_next++].length;
	if (length > 0) {
		*text = malloc((size_t)length);
		if (!*text)
			return -ENOBUFS;
		memcpy(*text, uevents[uevent_next - 1].text, (size_t)length);
	}
	return length;
}

/* --- the machine ----------------------------------------------------------------------------
 */

static struct umad_monitor *monitor;

static int setup(void **state)
{
	uevent_count = uevent_next = 0;
	open_error = opened = 0;
	monitor = NULL;
	return fake_setup(state);
}

static int teardown(void **state)
{
	umad_monitor_close(monitor);
	return opened ? -1 : fake_teardown(state);
}

static void watch(void)
{
	assert_int_equal(umad_monitor_open(&monitor), 0);
}

/* Queues a message as the kernel sends it; devpath_old may be NULL. */
static void uevent(const char *action, const char *subsystem, const char *name,
		   const char *devpath_old)
{
	char *text = uevents[uevent_count].text;
	int length;

	length = sprintf(text, "%s@/devices/pci0/%s/%s", action, subsystem, name) + 1;
	length += sprintf(text + length, "ACTION=%s", action) + 1;
	length += sprintf(text + length, "DEVPATH=/devices/pci0/%s/%s", subsystem, name) + 1;
	length += sprintf(text + length, "SUBSYSTEM=%s", subsystem) + 1;
	if (devpath_old)
		length += sprintf(text + length, "DEVPATH_OLD=%s", devpath_old) + 1;
	length += sprintf(text + length, "SEQNUM=4711") + 1;
	uevents[uevent_count++].length = length;
}

static void uevent_error(int error)
{
	uevents[uevent_count++].length = -error;
}

/* Asserts the next event; ca_name NULL: there is none. */
static void tells(enum umad_event_type type, const char *ca_name, int portnum, const char *node)
{
	struct umad_event event;
	int ret = umad_monitor_next_event(monitor, &event);

	if (!ca_name) {
		assert_int_equal(ret, -EAGAIN);
		assert_int_equal(errno, EAGAIN);
		return;
	}
	assert_int_equal(ret, 0);
	assert_int_equal(event.type, type);
	assert_string_equal(event.ca_name, ca_name);
	assert_int_equal(event.portnum, portnum);
	assert_string_equal(event.node, node);
}

static void tells_nothing(void)
{
	tells(0, NULL, 0, NULL);
}

static void plug(const char *ca_name, int number)
{
	fake_ca(ca_name);
	fake_port(ca_name, 1, 1);
	fake_umad(number, ca_name, 1);
}

/* --- tests
 * ------------------------------------------------------------------------------------ */

static void a_device_appears_with_its_port(void **state)
{
	(void)state;
	watch();
	tells_nothing();
	plug("mlx5_0", 0);
	/* the order of kernels since 4.20: the clients' devices first */
	uevent("add", "infiniband_mad", "umad0", NULL);
	uevent("add", "infiniband_mad", "issm0", NULL);
	uevent("add", "infiniband", "mlx5_0", NULL);
	tells(UMAD_EVENT_PORT_ADDED, "mlx5_0", 1, "umad0");
	tells(UMAD_EVENT_CA_ADDED, "mlx5_0", 0, "");
	tells_nothing();
}

static void a_device_disappears_with_its_port(void **state)
{
	(void)state;
	plug("mlx5_0", 0);
	plug("mlx5_1", 1);
	watch();
	fake_remove("/sys/class/infiniband_mad/umad0");
	fake_remove("/sys/class/infiniband/mlx5_0");
	uevent("remove", "infiniband_mad", "umad0", NULL);
	uevent("remove", "infiniband_mad", "issm0", NULL);
	uevent("remove", "infiniband", "mlx5_0", NULL);
	tells(UMAD_EVENT_PORT_REMOVED, "mlx5_0", 1, "umad0");
	tells(UMAD_EVENT_CA_REMOVED, "mlx5_0", 0, "");
	tells_nothing();
}

static void a_device_that_goes_first_takes_its_ports_along(void **state)
{
	(void)state;
	plug("mlx5_0", 0);
	watch();
	uevent("remove", "infiniband", "mlx5_0", NULL);
	uevent("remove", "infiniband_mad", "umad0", NULL);
	tells(UMAD_EVENT_PORT_REMOVED, "mlx5_0", 1, "umad0");
	tells(UMAD_EVENT_CA_REMOVED, "mlx5_0", 0, "");
	tells_nothing();
}

static void the_module_may_be_loaded_late(void **state)
{
	(void)state;
	fake_ca("mlx5_0");
	watch();
	fake_umad(3, "mlx5_0", 1);
	uevent("add", "infiniband_mad", "umad3", NULL);
	tells(UMAD_EVENT_PORT_ADDED, "mlx5_0", 1, "umad3");
	tells_nothing();
}

static void a_renamed_device_goes_and_comes(void **state)
{
	(void)state;
	plug("mlx5_0", 0);
	watch();
	fake_remove("/sys/class/infiniband/mlx5_0");
	plug("ibp1s0", 0);
	uevent("move", "infiniband", "ibp1s0", "/devices/pci0/infiniband/mlx5_0");
	tells(UMAD_EVENT_PORT_REMOVED, "mlx5_0", 1, "umad0");
	tells(UMAD_EVENT_CA_REMOVED, "mlx5_0", 0, "");
	tells(UMAD_EVENT_CA_ADDED, "ibp1s0", 0, "");
	tells(UMAD_EVENT_PORT_ADDED, "ibp1s0", 1, "umad0");
	tells_nothing();
}

static void what_is_known_is_not_told_again(void **state)
{
	(void)state;
	plug("mlx5_0", 0);
	watch();
	uevent("add", "infiniband", "mlx5_0", NULL);
	uevent("add", "infiniband_mad", "umad0", NULL);
	tells_nothing();
}

static void a_replug_under_the_same_number_is_told(void **state)
{
	(void)state;
	plug("mlx5_0", 0);
	watch();
	uevent("remove", "infiniband_mad", "umad0", NULL);
	uevent("add", "infiniband_mad", "umad0", NULL);
	tells(UMAD_EVENT_PORT_REMOVED, "mlx5_0", 1, "umad0");
	tells(UMAD_EVENT_PORT_ADDED, "mlx5_0", 1, "umad0");
	tells_nothing();
}

static void what_came_and_went_meanwhile_is_not_told(void **state)
{
	(void)state;
	watch();
	uevent("add", "infiniband_mad", "umad0", NULL);
	uevent("add", "infiniband", "mlx5_0", NULL);
	uevent("remove", "infiniband_mad", "umad0", NULL);
	uevent("remove", "infiniband", "mlx5_0", NULL);
	tells_nothing();
}

static void others_devices_are_none_of_ours(void **state)
{
	(void)state;
	plug("mlx5_0", 0);
	watch();
	fake_file("/sys/class/infiniband/iw0/node_type", "4: RNIC\n");
	uevent("add", "infiniband", "iw0", NULL);
	uevent("add", "net", "umad0", NULL);
	uevent("remove", "net", "mlx5_0", NULL);
	uevent("remove", "infiniband_mad", "umadx", NULL);
	uevent("change", "infiniband", "mlx5_0", NULL);
	uevent("change", "infiniband_mad", "umad0", NULL);
	uevent("move", "infiniband", "mlx5_0", NULL);
	uevent("add", "infiniband", "../mlx5_0", NULL);
	uevent("add", "infiniband", "a_name_that_is_far_too_long", NULL);
	tells_nothing();
}

static void malformed_messages_are_passed_over(void **state)
{
	static const char *const texts[] = {
		"",
		"rubbish",
		"ACTION=remove",
		"SUBSYSTEM=infiniband",
		"ACTION=",
		"DEVPATH=",
		"add@/devices/infiniband/mlx5_0",
	};
	size_t i;

	(void)state;
	plug("mlx5_0", 0);
	watch();
	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		strcpy(uevents[uevent_count].text, texts[i]);
		uevents[uevent_count++].length = (int)strlen(texts[i]) + 1;
	}
	memcpy(uevents[uevent_count].text, "ACTION=remove\0SUBSYSTEM=infiniband\0DEVPATH=", 44);
	uevents[uevent_count++].length = 44;
	tells_nothing();
}

static void random_messages_do_no_harm(void **state)
{
	const char *seed_text = getenv("TEST_SEED");
	unsigned seed =
		seed_text ? (unsigned)strtoul(seed_text, NULL, 0) : (unsigned)time(NULL);
	struct umad_event event;
	int i, j, ret;

	(void)state;
	print_message("TEST_SEED=%u\n", seed);
	srand(seed);
	plug("mlx5_0", 0);
	watch();
	for (i = 0; i < 20000; i++) {
		uevent_count = uevent_next = 0;
		uevent(rand() % 2 ? "add" : "remove",
		       rand() % 2 ? "infiniband" : "infiniband_mad",
		       rand() % 2 ? "mlx5_0" : "umad0", rand() % 2 ? "/x/mlx5_1" : NULL);
		for (j = rand() % 6; j > 0; j--)
			uevents[0].text[rand() % uevents[0].length] = (char)rand();
		uevents[0].length = 1 + rand() % uevents[0].length;
		uevents[0].text[uevents[0].length - 1] = '\0';
		do {
			ret = umad_monitor_next_event(monitor, &event);
		} while (!ret);
		assert_int_equal(ret, -EAGAIN);
	}
}

static void lost_events_are_told_and_the_stock_is_taken_anew(void **state)
{
	(void)state;
	plug("mlx5_0", 0);
	watch();
	plug("mlx5_1", 1);
	fake_remove("/sys/class/infiniband/mlx5_0");
	fake_remove("/sys/class/infiniband_mad/umad0");
	uevent_error(ENOBUFS);
	uevent("add", "infiniband", "mlx5_1", NULL);
	uevent("remove", "infiniband", "mlx5_0", NULL);
	tells(UMAD_EVENT_OVERRUN, "", 0, "");
	/* the caller lists the devices anew, and has seen what these would tell */
	tells_nothing();
	uevent("remove", "infiniband_mad", "umad1", NULL);
	tells(UMAD_EVENT_PORT_REMOVED, "mlx5_1", 1, "umad1");
}

static void a_socket_that_fails_is_told(void **state)
{
	struct umad_event event;

	(void)state;
	watch();
	uevent_error(EIO);
	assert_int_equal(umad_monitor_next_event(monitor, &event), -EIO);
	assert_int_equal(errno, EIO);
	tells(UMAD_EVENT_OVERRUN, "", 0, "");
	tells_nothing();
}

static void nothing_is_lost_silently_for_want_of_memory(void **state)
{
	struct umad_event event;
	int ret, overruns = 0;
	unsigned n;

	for (n = 1;; n++) {
		bool overrun = false, added = false;

		watch();
		plug("mlx5_0", 0);
		uevent("add", "infiniband_mad", "umad0", NULL);
		uevent("add", "infiniband", "mlx5_0", NULL);
		fake_fail_malloc(n);
		while ((ret = umad_monitor_next_event(monitor, &event)) != -EAGAIN) {
			assert_true(ret == 0 || ret == -ENOMEM);
			overrun |= !ret && event.type == UMAD_EVENT_OVERRUN;
			added |= !ret && event.type == UMAD_EVENT_CA_ADDED;
		}
		if (!fake_failed())
			break;
		assert_true(overrun || added);
		overruns += overrun;
		assert_int_equal(teardown(state), 0);
		assert_int_equal(setup(state), 0);
	}
	fake_fail_malloc(0);
	assert_true(overruns > 0);
}

static void opening_fails_as_the_kernel_does(void **state)
{
	unsigned n;
	int ret;

	(void)state;
	open_error = EOPNOTSUPP;
	assert_int_equal(umad_monitor_open(&monitor), -EOPNOTSUPP);
	assert_int_equal(errno, EOPNOTSUPP);
	open_error = 0;
	assert_int_equal(umad_monitor_open(NULL), -EINVAL);
	plug("mlx5_0", 0);
	for (n = 1;; n++) {
		fake_fail_malloc(n);
		ret = umad_monitor_open(&monitor);
		if (!fake_failed())
			break;
		assert_int_equal(ret, -ENOMEM);
		assert_int_equal(opened, 0);
	}
	fake_fail_malloc(0);
	assert_int_equal(ret, 0);
	umad_monitor_close(monitor);
	monitor = NULL;
	fake_fail_call(1, EACCES);
	assert_int_equal(umad_monitor_open(&monitor), -EACCES);
	assert_int_equal(opened, 0);
}

static void a_monitor_has_a_descriptor_to_poll(void **state)
{
	struct umad_event event;

	(void)state;
	watch();
	assert_int_equal(umad_monitor_get_fd(monitor), 42);
	assert_int_equal(umad_monitor_get_fd(NULL), -EINVAL);
	assert_int_equal(umad_monitor_next_event(NULL, &event), -EINVAL);
	assert_int_equal(umad_monitor_next_event(monitor, NULL), -EINVAL);
	umad_monitor_close(NULL);
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_device_appears_with_its_port),
		TEST(a_device_disappears_with_its_port),
		TEST(a_device_that_goes_first_takes_its_ports_along),
		TEST(the_module_may_be_loaded_late),
		TEST(a_renamed_device_goes_and_comes),
		TEST(what_is_known_is_not_told_again),
		TEST(a_replug_under_the_same_number_is_told),
		TEST(what_came_and_went_meanwhile_is_not_told),
		TEST(others_devices_are_none_of_ours),
		TEST(malformed_messages_are_passed_over),
		TEST(random_messages_do_no_harm),
		TEST(lost_events_are_told_and_the_stock_is_taken_anew),
		TEST(a_socket_that_fails_is_told),
		TEST(nothing_is_lost_silently_for_want_of_memory),
		TEST(opening_fails_as_the_kernel_does),
		TEST(a_monitor_has_a_descriptor_to_poll),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
