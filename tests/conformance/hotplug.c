/* SPDX-License-Identifier: BSD-2-Clause */

/* The monitor reports devices that are removed and added. */
#include "check.h"
#include "environment.h"

#include <infiniband/umad_ext.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

static struct umad_monitor *monitor;

static void opened(int watch_interval_ms)
{
	if (!environment_asked("uevents", ""))
		cannot("devices come and go without the kernel's uevents");
	expect_equal(umad_monitor_open(&monitor, watch_interval_ms), 0);
}

/* Waits for an event of that type for the other port's device. */
static void expect_event(enum umad_event_type type, struct umad_event *event)
{
	struct pollfd pollfd = {.fd = umad_monitor_get_fd(monitor), .events = POLLIN};
	int err;

	for (;;) {
		err = umad_monitor_next_event(monitor, event, sizeof(*event));
		if (!err && event->type == type && !strcmp(event->ca_name, there.ca_name))
			return;
		if (err) {
			expect_equal(err, -EAGAIN);
			expect_equal(poll(&pollfd, 1, 20000), 1);
		}
	}
}

static void a_removed_device_is_told_with_its_port(void)
{
	struct umad_event event;
	char path[64];

	opened(0);
	device_path(&there, "umad", path);
	expect(environment_asked("remove", there.ca_name));
	expect_event(UMAD_EVENT_PORT_REMOVED, &event);
	expect_equal(event.portnum, there.portnum);
	expect(!strcmp(event.node, strrchr(path, '/') + 1));
	expect_event(UMAD_EVENT_CA_REMOVED, &event);
	expect_equal(event.portnum, 0);
	expect(environment_asked("add", there.ca_name));
	umad_monitor_free(monitor);
}

static void a_new_device_can_be_opened_when_it_is_told(void)
{
	struct umad_event event;
	int fd;

	opened(0);
	expect(environment_asked("remove", there.ca_name));
	expect(environment_asked("add", there.ca_name));
	expect_event(UMAD_EVENT_CA_REMOVED, &event);
	expect_event(UMAD_EVENT_PORT_ADDED, &event);
	fd = umad_open_port(event.ca_name, event.portnum);
	expect(fd >= 0);
	expect_equal(umad_close_port(fd), 0);
	umad_monitor_free(monitor);
}

static void with_nothing_going_on_there_is_nothing_to_tell(void)
{
	struct umad_event event;

	opened(0);
	while (umad_monitor_next_event(monitor, &event, sizeof(event)) == 0)
		expect(event.type != UMAD_EVENT_CA_REMOVED);
	expect_equal(umad_monitor_next_event(monitor, &event, sizeof(event)), -EAGAIN);
	umad_monitor_free(monitor);
}

/* Waits for an event for the other port, until the port is in that state. */
static void expect_state(unsigned lowest, unsigned highest)
{
	struct umad_event event;
	umad_port_t port;
	bool right;

	do {
		expect_event(UMAD_EVENT_PORT_CHANGED, &event);
		expect_equal(event.portnum, there.portnum);
		expect_equal(umad_get_port(event.ca_name, event.portnum, &port), 0);
		right = port.state >= lowest && port.state <= highest;
		umad_release_port(&port);
	} while (!right);
}

static void a_port_whose_cable_is_removed_is_told(void)
{
	opened(100);
	if (!environment_asked("disconnect", there.ca_name))
		cannot("no cable can be removed");
	expect_state(1, 1);
	expect(environment_asked("connect", there.ca_name));
	expect_state(4, 4);
	umad_monitor_free(monitor);
}

int main(int argc, char **argv)
{
	static const struct check checks[] = {
		CHECK(a_removed_device_is_told_with_its_port),
		CHECK(a_new_device_can_be_opened_when_it_is_told),
		CHECK(with_nothing_going_on_there_is_nothing_to_tell),
		CHECK(a_port_whose_cable_is_removed_is_told),
	};

	set_environment(argc, argv);
	find_ports();
	return run_checks(checks, sizeof(checks) / sizeof(checks[0]));
}
