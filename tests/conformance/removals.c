/* SPDX-License-Identifier: BSD-2-Clause */

/* A device that is removed at any time, and comes back, while a program uses libibumad. */
#include "check.h"
#include "mads.h"
#include "removal_cases.h"

#include <infiniband/umad_ext.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/select.h>
#include <unistd.h>

#define MESSAGE 20000 /* bytes */

/* While the device is removed, sysfs and /dev have parts of it. */
static int try_to_open(void)
{
	int fd = umad_open_port(there.ca_name, there.portnum);

	if (fd == -EIO)
		expect(errno == ENOENT || errno == ENODEV || errno == ENXIO);
	else if (fd < 0)
		expect(fd == -ENODEV || fd == -EINVAL);
	return fd;
}

static void open_and_register(void)
{
	int agent, fd;

	remove_soon();
	while (!over()) {
		fd = try_to_open();
		if (fd < 0)
			continue;
		agent = umad_register(fd, CLASS, 1, 0, NULL);
		if (agent < 0)
			expect_equal(agent, -EPERM);
		else if (umad_unregister(fd, agent))
			expect_equal(errno, EINVAL);
		expect_equal(umad_close_port(fd), 0);
	}
}

static void wait_with_umad(int fd, int how)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};
	void *umad = new_umad(MAD);
	int length = MAD;
	fd_set set;

	switch (how) {
	case 0:
		expect_equal(umad_recv(fd, umad, &length, -1), -EIO);
		break;
	case 1:
		expect_equal(umad_poll(fd, -1), -EIO);
		break;
	case 2:
		expect_equal(poll(&pollfd, 1, -1), 1);
		expect_equal(pollfd.revents, POLLERR);
		break;
	default:
		FD_ZERO(&set);
		FD_SET(fd, &set);
		expect_equal(select(fd + 1, &set, NULL, NULL, NULL), 1);
	}
	free(umad);
}

static void wait_for_messages(void)
{
	int fd = open_port(&there);

	client(fd, 0);
	remove_soon();
	wait_with_umad(fd, rand() % 4);
	expect_equal(umad_close_port(fd), 0);
}

static void wait_in_a_child(void *arg)
{
	wait_with_umad(*(int *)arg, rand() % 4);
}

static void share_a_handle(void)
{
	int child, fd = open_port(&there), copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	expect(copy >= 0);
	remove_soon();
	child = start_child(wait_in_a_child, &copy);
	expect_equal(umad_close_port(fd), 0);
	expect_child(child);
	wait_with_umad(copy, 1);
	expect_equal(umad_close_port(copy), 0);
}

/* Messages of many segments; from is the port that sends. */
static void send_messages(const struct port *from, const struct port *to)
{
	int fd = open_port(from), agent = client(fd, 1), length, err = 0;
	void *umad = new_umad(MESSAGE);

	remove_soon();
	for (uint32_t tid = 1; !err && !over(); tid++) {
		set_mad(umad, METHOD_SEND, tid);
		set_rmpp(umad);
		set_destination(umad, to);
		err = umad_send(fd, agent, umad, MESSAGE, 100, 0);
		while (!err || err > 0) {
			length = MESSAGE;
			err = umad_recv(fd, umad, &length, 300);
			if (err >= 0)
				break;
		}
		if (err == -ETIMEDOUT || err >= 0)
			err = 0;
	}
	if (err)
		expect_equal(err, -EIO);
	free(umad);
	expect_equal(umad_close_port(fd), 0);
}

static void send_long_messages(void)
{
	send_messages(&there, &here);
}

static void receive_long_messages(void)
{
	int to = open_port(&there);

	server(to, METHOD_SEND, 1);
	send_messages(&here, &there);
	while (!over()) /* "here" may be removed first */
		pause_ms(1);
	expect_equal(umad_poll(to, 0), -EIO);
	expect_equal(umad_close_port(to), 0);
}

static void read_a_monitor(void)
{
	struct umad_monitor *monitor;
	struct umad_event event;
	int err;

	expect_equal(umad_monitor_open(&monitor, 1), 0);
	remove_soon();
	do {
		err = umad_monitor_next_event(monitor, &event, sizeof(event));
		if (err)
			expect_equal(err, -EAGAIN);
	} while (!over() || !err);
	umad_monitor_free(monitor);
}

static void list_devices(void)
{
	umad_ca_t ca;
	int err;

	remove_soon();
	while (!over()) {
		err = umad_get_ca(there.ca_name, &ca);
		if (!err)
			umad_release_ca(&ca);
		else if (err != -EIO)
			expect_equal(err, -ENODEV);
	}
}

static void wait_for_issm(void *unused)
{
	int fd = umad_open_issm(there.ca_name, there.portnum, 0);

	(void)unused;
	if (fd >= 0)
		expect_equal(umad_close_issm(fd), 0);
}

static void hold_issm(void)
{
	int fd, held = has_issm(&there) ? umad_open_issm(there.ca_name, there.portnum, 0) : -1;
	int waiting = start_child(wait_for_issm, NULL);

	remove_soon();
	while (!over()) {
		fd = has_issm(&there)
			     ? umad_open_issm(there.ca_name, there.portnum, UMAD_ISSM_NONBLOCK)
			     : -1;
		if (fd >= 0)
			expect_equal(umad_close_issm(fd), 0);
	}
	if (held >= 0)
		expect_equal(umad_close_issm(held), 0);
	expect_child(waiting);
}

int main(int argc, char **argv)
{
	static const struct phase phases[] = {
		PHASE(open_and_register),     PHASE(wait_for_messages),
		PHASE(share_a_handle),        PHASE(send_long_messages),
		PHASE(receive_long_messages), PHASE(read_a_monitor),
		PHASE(list_devices),          PHASE(hold_issm),
	};

	return run_removals(argc, argv, phases, sizeof(phases) / sizeof(phases[0]));
}
