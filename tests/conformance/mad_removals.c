/* SPDX-License-Identifier: BSD-2-Clause */

/* A device that is removed at any time, and comes back, while a program uses libibmad. */
#include "check.h"
#include "removal_cases.h"
#include "rpc.h"

#include <infiniband/mad_fabric_counters.h>
#include <infiniband/mad_notice.h>
#include <infiniband/mad_sa.h>
#include <infiniband/mad_server.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define MOST_REQUESTS 2000
#define LONG_MS       20000

/* --- blocking calls and the engine ------------------------------------------------ */

static void request_until_gone(struct ibmad_port *port, const struct port *other)
{
	ib_portid_t to = address_of(other);
	uint8_t data[SEGMENT] = {0};
	ib_rpc_t rpc;

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

static void make_blocking_requests(void)
{
	struct ibmad_port *port = open_mad_port(&there);

	remove_soon();
	request_until_gone(port, &here);
}

static unsigned completed[MOST_REQUESTS];

static void complete(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	(void)async;
	completed[(uintptr_t)arg]++;
	if (reply->error && reply->error != -ECANCELED)
		expect_gone(-reply->error);
}

/* No kernel responds to METHOD_ANY: it ends with the device, or when it is cancelled. */
static int submit(struct mad_async *async, int method, unsigned number, uint64_t *id)
{
	ib_rpc_t rpc = request_of(method, ECHO, LONG_MS);
	ib_portid_t to = address_of(&here);
	uint8_t data[SEGMENT] = {0};

	return mad_async_submit(async, &rpc, &to, data, sizeof(data), complete,
				(void *)(uintptr_t)number, id);
}

/* The event loop of mad_async.h. If the device is gone already, there is no descriptor. */
static void process_until_gone(struct mad_async *async)
{
	struct pollfd pollfd = {.fd = mad_async_poll_fd(async), .events = POLLIN};
	int err;

	do {
		if (pollfd.fd >= 0)
			expect_equal(poll(&pollfd, 1, -1), 1);
		err = mad_async_process(async);
	} while (err >= 0);
	if (err != -ECANCELED)
		expect_equal(err, -ENODEV);
}

static void have_requests_in_flight(unsigned requests)
{
	struct ibmad_port *port = open_mad_port(&there);
	struct mad_async *async = mad_async_create(port);
	bool before = rand() % 2;
	unsigned submitted = 0;
	uint64_t id;
	int err = 0;

	expect(async);
	expect_equal(mad_port_set(port, MAD_PORT_GMP_WINDOW, requests), 0);
	expect_equal(mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, requests), 0);
	if (before)
		remove_soon();
	memset(completed, 0, sizeof(completed));
	while (submitted < requests && !err) {
		err = submit(async, submitted % 4 ? METHOD_ANY : METHOD_GET, submitted, &id);
		if (!err && submitted++ % 16 == 0)
			mad_async_cancel(async, id);
	}
	if (err)
		expect_equal(err, -ENODEV);
	if (!before)
		remove_soon();
	process_until_gone(async);
	mad_async_free(async);
	for (unsigned i = 0; i < requests; i++)
		expect_equal(completed[i], i < submitted);
	mad_rpc_close_port(port);
}

static void have_300_requests_in_flight(void)
{
	have_requests_in_flight(300);
}

static void have_2000_requests_in_flight(void)
{
	have_requests_in_flight(MOST_REQUESTS);
}

static atomic_bool returned;

static void *make_a_request(void *port)
{
	ib_rpc_t rpc = request_of(METHOD_ANY, ECHO, LONG_MS);
	ib_portid_t to = address_of(&here);
	uint8_t data[SEGMENT] = {0};

	expect(!mad_rpc(port, &rpc, &to, data, data));
	if (errno != ECANCELED)
		expect_gone(errno);
	atomic_store(&returned, true);
	return NULL;
}

static void *process(void *async)
{
	process_until_gone(async);
	return NULL;
}

/* A thread must not begin a call for a port that is closed: the port is closed when the request
 * of the other thread is in flight. */
static void close_the_port(void)
{
	struct ibmad_port *port = open_mad_port(&there);
	struct mad_async *async = mad_async_create(port);
	struct mad_async_stats stats;
	pthread_t blocking, processing;
	bool submitted;

	expect(async);
	remove_soon();
	atomic_store(&returned, false);
	completed[0] = 0;
	expect_equal(pthread_create(&blocking, NULL, make_a_request, port), 0);
	do {
		pause_ms(1);
		expect_equal(mad_async_get_stats(async, &stats, sizeof(stats)), 0);
	} while (!stats.gmp.in_flight && !atomic_load(&returned));
	submitted = !submit(async, METHOD_ANY, 0, NULL);
	expect_equal(pthread_create(&processing, NULL, process, async), 0);
	pause_ms((unsigned)rand() % 200);
	mad_rpc_close_port(port);
	expect_equal(pthread_join(blocking, NULL), 0);
	expect_equal(pthread_join(processing, NULL), 0);
	expect_equal(completed[0], submitted);
	mad_async_free(async);
}

/* --- servers ------------------------------------------------------------------------ */

/* A process at the other port that sends requests. It has a copy of the port. */
struct client {
	struct ibmad_port *port;
	int child;
};

static void request_from_here(void *port)
{
	request_until_gone(port, &there);
}

static struct client start_client(void)
{
	struct client client = {.port = open_mad_port(&here)};

	client.child = start_child(request_from_here, client.port);
	return client;
}

static void stop_client(struct client client)
{
	expect_equal(kill(client.child, SIGKILL), 0);
	expect_equal(waitpid(client.child, &(int){0}, 0), client.child);
	mad_rpc_close_port(client.port);
}

static struct ibmad_port *open_to_serve(void)
{
	struct ibmad_port *port = mad_rpc_open_port(there.ca_name, there.portnum, NULL, 0);

	expect(port);
	return port;
}

/* EINVAL: the client has sent the request again, and the kernel has not sent the first response
 * yet (docs/kernel-contract.md). */
static void expect_no_response(int error)
{
	if (error != EINVAL)
		expect_gone(error);
}

/* The program keeps the first request until the end. */
static void respond(struct mad_server *server, struct mad_request *request, int error,
		    void *arg)
{
	struct mad_request **kept = arg;
	int err;

	(void)server;
	if (!request) {
		expect_equal(error, -ENODEV);
		return;
	}
	if (!*kept) {
		*kept = request;
		return;
	}
	err = mad_request_respond(request, 0, NULL, 0);
	if (!err)
		return;
	expect_no_response(-err);
	mad_request_free(request);
}

static void serve_with_an_engine(void)
{
	struct mad_server_options options = {
		.mgmt_class = CLASS,
		.oui = OUI,
		.methods = {MAD_SERVER_METHOD(METHOD_GET)},
		.rmpp_version = 1,
	};
	struct mad_request *kept = NULL;
	struct mad_server *server;
	struct client client = start_client();
	struct ibmad_port *port = open_to_serve();
	struct mad_async *async = mad_async_create(port);
	int err;

	expect(async);
	remove_soon();
	err = mad_server_start(async, &options, respond, &kept, &server);
	if (err)
		expect_equal(err, -ENODEV);
	process_until_gone(async);
	if (kept)
		expect_equal(mad_request_respond(kept, 0, NULL, 0), -ENODEV);
	mad_async_free(async);
	mad_rpc_close_port(port);
	mad_request_free(kept);
	stop_client(client);
}

static void serve_with_calls(void)
{
	struct client client = start_client();
	struct ibmad_port *port = open_to_serve();
	void *request;

	expect(mad_register_server_via(CLASS, 1, NULL, OUI, port) >= 0);
	remove_soon();
	while ((request = mad_receive_via(NULL, -1, port))) {
		if (mad_respond_via(request, NULL, 0, port))
			expect_no_response(errno);
		mad_free(request);
	}
	expect_equal(errno, ENODEV);
	mad_rpc_close_port(port);
	stop_client(client);
}

/* --- classes: an InfiniBand port alone has a subnet manager ------------------------- */

static struct ibmad_port *open_for_classes(void)
{
	int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS, IB_SA_CLASS, IB_PERFORMANCE_CLASS};
	struct ibmad_port *port = mad_rpc_open_port(there.ca_name, there.portnum, classes, 4);

	expect(port);
	return port;
}

/* Makes calls until the device is gone, and closes the port. */
static void repeat_on(struct ibmad_port *port, int (*call)(struct ibmad_port *port))
{
	int err;

	remove_soon();
	do {
		err = call(port);
		if (err)
			expect_gone(-err);
	} while (err != -ENODEV);
	mad_rpc_close_port(port);
}

static void repeat(int (*call)(struct ibmad_port *port))
{
	if (!there.ethernet)
		repeat_on(open_for_classes(), call);
}

/* While a device is being removed, a real kernel refuses an SMP to the own node with EINVAL
 * (docs/kernel-contract.md). */
static int discover_once(struct ibmad_port *port)
{
	struct mad_fabric *fabric;
	int err = mad_fabric_discover(port, NULL, &fabric);

	if (!err)
		mad_fabric_free(fabric);
	return err == -EINVAL ? 0 : err;
}

static void discover(void)
{
	repeat(discover_once);
}

static int read_tables_once(struct ibmad_port *port)
{
	const struct mad_sa_query query = {.attribute = IB_SA_ATTR_NODERECORD};

	return mad_sa_request(port, &query, NULL);
}

static void read_tables(void)
{
	repeat(read_tables_once);
}

static int read_paths_once(struct ibmad_port *port)
{
	return mad_sa_path_records(port, there.gid, here.gid, NULL);
}

static void read_paths(void)
{
	repeat(read_paths_once);
}

static int read_counters_once(struct ibmad_port *port)
{
	ib_portid_t node = address_of(&here);
	struct mad_counters counters;

	return mad_counters_read(port, &node, (unsigned)here.portnum, NULL, &counters,
				 sizeof(counters));
}

static void read_counters(void)
{
	repeat(read_counters_once);
}

static struct mad_fabric_counters *fabric_counters;

static int read_fabric_counters_once(struct ibmad_port *port)
{
	return mad_fabric_counters_read(port, fabric_counters, NULL);
}

static void read_counters_of_the_fabric(void)
{
	struct mad_fabric *fabric;
	struct ibmad_port *port;

	if (there.ethernet)
		return;
	port = open_for_classes();
	expect_equal(mad_fabric_discover(port, NULL, &fabric), 0);
	fabric_counters = mad_fabric_counters_create(NULL);
	expect(fabric_counters);
	expect_equal(mad_fabric_counters_set_fabric(fabric_counters, fabric), 0);
	repeat_on(port, read_fabric_counters_once);
	mad_fabric_counters_free(fabric_counters);
	mad_fabric_free(fabric);
}

static void note_the_end(struct mad_notices *notices, const struct mad_notice *notice,
			 void *arg)
{
	(void)notices;
	if (notice->kind != MAD_NOTICE_END)
		return;
	expect_equal(notice->error, -ENODEV);
	++*(unsigned *)arg;
}

static void subscribe_to_notices(void)
{
	struct mad_notices_options options = {.check_ms = 10, .poll_ms = 10};
	struct mad_notices *notices;
	struct ibmad_port *port;
	struct mad_async *async;
	unsigned ends = 0;
	int err;

	if (there.ethernet)
		return;
	port = open_for_classes();
	async = mad_async_create(port);
	expect(async);
	remove_soon();
	err = mad_notices_start(async, &options, note_the_end, &ends, &notices);
	if (err)
		expect_equal(err, -ENODEV);
	process_until_gone(async);
	expect_equal(ends, !err);
	mad_async_free(async);
	mad_rpc_close_port(port);
}

int main(int argc, char **argv)
{
	static const struct phase phases[] = {
		PHASE(make_blocking_requests),
		PHASE(have_300_requests_in_flight),
		PHASE(have_2000_requests_in_flight),
		PHASE(close_the_port),
		PHASE(serve_with_an_engine),
		PHASE(serve_with_calls),
		PHASE(discover),
		PHASE(read_tables),
		PHASE(read_paths),
		PHASE(read_counters),
		PHASE(read_counters_of_the_fabric),
		PHASE(subscribe_to_notices),
	};

	return run_removals(argc, argv, phases, sizeof(phases) / sizeof(phases[0]));
}
