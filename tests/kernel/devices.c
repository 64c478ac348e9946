/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * devices: prints the events of the devices, a line each, until it is killed: "added mlx5_0",
 * "added mlx5_0 port 1 umad0", "removed ...", "overrun". With an interval in milliseconds as
 * its argument, it watches ports, and prints their new values: "changed mlx5_0 port 1 umad0:
 * state 4 phys 5 lid 0x3 sm 0x1 capabilities 0x02514868 P_Keys 0xffff", without empty P_Keys.
 */
#include <infiniband/umad_ext.h>

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_values(const struct umad_event *event)
{
	umad_port_t port;

	printf("changed %s port %d %s:", event->ca_name, event->portnum, event->node);
	if (umad_get_port(event->ca_name, event->portnum, &port)) {
		puts(" gone");
		return;
	}
	printf(" state %u phys %u lid 0x%x sm 0x%x capabilities 0x%08x P_Keys", port.state,
	       port.phys_state, port.base_lid, port.sm_lid, be32toh(port.capmask));
	for (unsigned i = 0; i < port.pkeys_size; i++)
		if (port.pkeys[i])
			printf(" 0x%04x", port.pkeys[i]);
	puts("");
	umad_release_port(&port);
}

static void print(const struct umad_event *event)
{
	bool added = event->type == UMAD_EVENT_CA_ADDED || event->type == UMAD_EVENT_PORT_ADDED;

	if (event->type == UMAD_EVENT_OVERRUN)
		puts("overrun");
	else if (event->type == UMAD_EVENT_PORT_CHANGED)
		print_values(event);
	else if (event->portnum)
		printf("%s %s port %d %s\n", added ? "added" : "removed", event->ca_name,
		       event->portnum, event->node);
	else
		printf("%s %s\n", added ? "added" : "removed", event->ca_name);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct umad_monitor *monitor;
	struct umad_event event;
	int error = umad_monitor_open(&monitor, argc > 1 ? atoi(argv[1]) : 0);

	while (!error) {
		struct pollfd pollfd = {.fd = umad_monitor_get_fd(monitor), .events = POLLIN};

		while (!(error = umad_monitor_next_event(monitor, &event, sizeof(event))))
			print(&event);
		if (error == -EAGAIN)
			error = poll(&pollfd, 1, -1) < 0 ? -errno : 0;
	}
	fprintf(stderr, "devices: %s\n", strerror(-error));
	return 1;
}
