/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * devices: prints the events of the devices, a line each, until it is killed: "added mlx5_0",
 * "added mlx5_0 port 1 umad0", "removed ...", "overrun".
 */
#include <infiniband/umad_ext.h>

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static void print(const struct umad_event *event)
{
	bool added = event->type == UMAD_EVENT_CA_ADDED || event->type == UMAD_EVENT_PORT_ADDED;

	if (event->type == UMAD_EVENT_OVERRUN)
		puts("overrun");
	else if (event->portnum)
		printf("%s %s port %d %s\n", added ? "added" : "removed", event->ca_name,
		       event->portnum, event->node);
	else
		printf("%s %s\n", added ? "added" : "removed", event->ca_name);
	fflush(stdout);
}

int main(void)
{
	struct umad_monitor *monitor;
	struct umad_event event;
	int error = umad_monitor_open(&monitor);

	while (!error) {
		struct pollfd pollfd = {.fd = umad_monitor_get_fd(monitor), .events = POLLIN};

		while (!(error = umad_monitor_next_event(monitor, &event)))
			print(&event);
		if (error == -EAGAIN)
			error = poll(&pollfd, 1, -1) < 0 ? -errno : 0;
	}
	fprintf(stderr, "devices: %s\n", strerror(-error));
	return 1;
}
