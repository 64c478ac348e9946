/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A device that is removed at any time, and comes back. The seed of a case draws what the
 * program does, when the device is removed, how often, and for how long. Each call ends, with a
 * documented error; each request completes once; no descriptor is left; a port that is opened
 * afterwards works. The environment variable SEED has the seed of the first case.
 */
#include "check.h"
#include "mads.h"
#include "rpc.h"

#include <infiniband/mad_async.h>
#include <infiniband/mad_fabric.h>
#include <infiniband/mad_sa.h>
#include <infiniband/umad_ext.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REQUESTS 300
#define MESSAGE  20000 /* bytes */

static int remover; /* a process; 0 if it has ended */

/* --- the removal ----------------------------------------------------------------- */

static struct removal {
	unsigned delay_ms, absent_ms, times;
} removal;

static void remove_and_add(void *arg)
{
	(void)arg;
	pause_ms(removal.delay_ms);
	for (unsigned i = 0; i < removal.times; i++) {
		expect(environment_asked("remove", there.ca_name));
		pause_ms(removal.absent_ms);
		expect(environment_asked("add", there.ca_name));
	}
}

/* A call that only the removal ends must begin before the device is back: each program calls
 * this when it has opened the device. */
static void remove_soon(void)
{
	remover = start_child(remove_and_add, NULL);
}

/* Whether the device was removed, and is back for good. */
static bool over(void)
{
	int status;

	if (remover && waitpid(remover, &status, WNOHANG) == remover) {
		expect_equal(status, 0);
		remover = 0;
	}
	return !remover;
}

/* An error that a call documents for a device that is gone, or for a peer that is. */
static void expect_gone(int error)
{
	if (error != ENODEV && error != ETIMEDOUT && error != EIO)
		expect_equal(error, ENODEV);
}

/* --- what the program does -------------------------------------------------------- */

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

static void make_blocking_requests(void)
{
	struct ibmad_port *port = open_mad_port(&there);
	ib_portid_t to = address_of(&here);
	uint8_t data[SEGMENT] = {0};
	ib_rpc_t rpc;

	remove_soon();
	do {
		rpc = request_of(METHOD_GET, ECHO, 200);
		errno = 0;
		if (mad_rpc(port, &rpc, &to, data, data))
			continue;
		if (!rpc.rstatus)
			expect_gone(errno);
	} while (errno != ENODEV);
	mad_rpc_close_port(port);
}

static unsigned completed[REQUESTS];

static void complete(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	(void)async;
	completed[(uintptr_t)arg]++;
	if (reply->error && reply->error != -ECANCELED && reply->error != -EREMOTEIO)
		expect_gone(-reply->error);
}

static void have_requests_in_flight(void)
{
	struct ibmad_port *port = open_mad_port(&there);
	struct mad_async *async = mad_async_create(port);
	ib_portid_t to = address_of(&here);
	uint8_t data[SEGMENT] = {0};
	unsigned submitted = 0;
	uint64_t id;
	ib_rpc_t rpc;
	int err = 0;

	expect(async);
	remove_soon();
	memset(completed, 0, sizeof(completed));
	while (submitted < REQUESTS && !err) {
		rpc = request_of(METHOD_GET, submitted % 2 ? IGNORE : ECHO, 20000);
		err = mad_async_submit(async, &rpc, &to, data, sizeof(data), complete,
				       (void *)(uintptr_t)submitted, &id);
		if (!err && submitted++ % 3 == 0)
			mad_async_cancel(async, id);
	}
	if (err)
		expect_gone(-err);
	while (err != -ENODEV) {
		err = mad_async_wait(async, 100);
		if (err >= 0 && over())
			err = -ENODEV; /* no request was in flight when the device was removed
					*/
	}
	mad_async_destroy(async);
	for (unsigned i = 0; i < REQUESTS; i++)
		expect_equal(completed[i], i < submitted);
	mad_rpc_close_port(port);
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
	int child, fd = open_port(&there), copy = dup(fd);

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
	expect_equal(umad_poll(to, 0) == -EIO, true);
	expect_equal(umad_close_port(to), 0);
}

static void read_a_monitor(void)
{
	struct umad_monitor *monitor;
	struct umad_event event;
	int err;

	expect_equal(umad_monitor_open(&monitor), 0);
	expect_equal(umad_monitor_watch_ports(monitor, 1), 0);
	remove_soon();
	do {
		err = umad_monitor_next_event(monitor, &event);
		if (err)
			expect_equal(err, -EAGAIN);
	} while (!over() || !err);
	umad_monitor_close(monitor);
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

static struct ibmad_port *open_for_sa(void)
{
	int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS, IB_SA_CLASS, IB_PERFORMANCE_CLASS};
	struct ibmad_port *port = mad_rpc_open_port(there.ca_name, there.portnum, classes, 4);

	expect(port);
	return port;
}

/* Makes calls until the device is gone. */
static void repeat(int (*call)(struct ibmad_port *port))
{
	struct ibmad_port *port;
	int err;

	if (there.ethernet)
		return;
	port = open_for_sa();
	remove_soon();
	do {
		err = call(port);
		if (err)
			expect_gone(-err);
	} while (err != -ENODEV);
	mad_rpc_close_port(port);
}

static int discover_once(struct ibmad_port *port)
{
	struct mad_fabric *fabric;
	int err = mad_fabric_discover(port, NULL, &fabric);

	if (!err)
		mad_fabric_free(fabric);
	return err == -EINVAL ? 0 : err; /* of an SMP to the own node, from the kernel */
}

static void discover(void)
{
	repeat(discover_once);
}

static int query_once(struct ibmad_port *port)
{
	struct mad_sa_query query = {.attribute = IB_SA_ATTR_NODERECORD};
	struct mad_sa_table *table;
	int err = mad_sa_get_table(port, &query, &table);

	if (!err)
		mad_sa_table_free(table);
	return err;
}

static void query_the_sa(void)
{
	repeat(query_once);
}

static void hold_issm(void)
{
	int fd, held = has_issm(&there) ? umad_open_issm(there.ca_name, there.portnum, 0) : -1;

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
}

static void (*const phases[])(void) = {
	open_and_register,
	make_blocking_requests,
	have_requests_in_flight,
	wait_for_messages,
	share_a_handle,
	send_long_messages,
	receive_long_messages,
	read_a_monitor,
	list_devices,
	discover,
	query_the_sa,
	hold_issm,
};
static const char *const names[] = {
	"open_and_register",
	"make_blocking_requests",
	"have_requests_in_flight",
	"wait_for_messages",
	"share_a_handle",
	"send_long_messages",
	"receive_long_messages",
	"read_a_monitor",
	"list_devices",
	"discover",
	"query_the_sa",
	"hold_issm",
};

#define PHASES ((unsigned)(sizeof(phases) / sizeof(phases[0])))

/* --- cases ----------------------------------------------------------------------- */

static void expect_a_working_device(void)
{
	int child = start_server();
	struct ibmad_port *port = open_mad_port(&here);
	ib_rpc_t rpc = request_of(METHOD_GET, ECHO, 20000);
	ib_portid_t to = address_of(&there);
	uint8_t data[SEGMENT] = {0};

	expect(mad_rpc(port, &rpc, &to, data, data));
	mad_rpc_close_port(port);
	stop_server(child);
}

static void run_case(unsigned seed, unsigned phase)
{
	unsigned before;

	srand(seed);
	removal.delay_ms = (unsigned)rand() % 100;
	removal.absent_ms = rand() % 2 ? 0 : (unsigned)rand() % 200;
	removal.times = rand() % 4 ? 1 : 2;
	note("SEED=%u: %s, after %u ms %u times for %u ms", seed, names[phase],
	     removal.delay_ms, removal.times, removal.absent_ms);
	find_ports();
	before = count_descriptors();
	phases[phase]();
	while (!over())
		pause_ms(1);
	expect_equal(count_descriptors(), before);
	find_ports();
	expect_a_working_device();
}

static void a_device_may_be_removed_at_any_time(void)
{
	const char *given = getenv("SEED");
	unsigned seed = given ? (unsigned)strtoul(given, NULL, 0) : (unsigned)time(NULL);
	unsigned cases = given ? 1 : environment_is_long() ? 4 * PHASES : PHASES;

	if (!environment_asked("uevents", ""))
		cannot("devices come and go without the kernel's uevents");
	seed -= given ? 0 : seed % PHASES; /* each phase as often as the others */
	for (unsigned i = 0; i < cases; i++) {
		run_case(seed + i, (seed + i) % PHASES);
		tell_progress();
	}
}

int main(int argc, char **argv)
{
	static const struct check checks[] = {
		CHECK(a_device_may_be_removed_at_any_time),
	};

	set_environment(argc, argv);
	find_ports();
	return run_checks(checks, sizeof(checks) / sizeof(checks[0]));
}
