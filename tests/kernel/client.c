/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The client of two machines (see two-machines). Its nodes are the GIDs fd00::a:1 to N of the
 * first device of the other machine. fd00::b:1, of the other machine's second device, is the
 * node that takes over. The host does what a program cannot do: the client prints "@ ask WHAT",
 * and reads a line when this is done.
 */
#include "check.h"
#include "nodes.h"

#include <infiniband/mad_async.h>

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define DEVICE  "rxe0"
#define NODES   64
#define FEW     16 /* each of them may take a second or more */
#define THREADS 8
#define PATIENT 10000  /* attempts: more than a busy host needs */
#define REFUSED 0x000c /* the kernel's status if there is no server */
#define LIMIT   900    /* seconds of a check, in emulation on a busy host */

static struct ibmad_port *port;
static struct mad_async *async;
static ib_portid_t second;

static ib_portid_t address_of(unsigned network, unsigned number)
{
	ib_portid_t address;
	char text[64];

	ib_portid_set(&address, 0, 1, (int)IB_DEFAULT_QP1_QKEY);
	address.grh_present = 1;
	snprintf(text, sizeof(text), "fd00::%x:%x", network, number);
	expect_equal(inet_pton(AF_INET6, text, address.gid), 1);
	return address;
}

static ib_portid_t node(unsigned number)
{
	return address_of(0xa, number + 1);
}

/* The entry of the local GID table that is in the nodes' network. */
static unsigned own_gid(void)
{
	ib_portid_t own = address_of(0xc, 1);
	uint8_t gid[16];
	unsigned index = 0;

	do
		read_gid(DEVICE, index++, gid);
	while (index < 16 && memcmp(gid, own.gid, sizeof(gid)) != 0);
	expect_bytes(gid, own.gid, sizeof(gid));
	return index - 1;
}

static void opened(int timeout_ms, int attempts)
{
	char name[] = DEVICE;

	alarm(LIMIT);
	port = mad_rpc_open_port(name, 1, NULL, 0);
	expect(port);
	expect_equal(mad_register_client_via(CLASS, 1, port), 0);
	expect_equal(mad_port_set(port, MAD_PORT_GID_INDEX, own_gid()), 0);
	mad_rpc_set_timeout(port, timeout_ms);
	mad_rpc_set_retries(port, attempts);
	async = mad_async_create(port);
	expect(async);
	second = address_of(0xb, 1);
}

static void closed(void)
{
	mad_async_free(async);
	mad_rpc_close_port(port);
}

/* --- the host ------------------------------------------------------------------- */

static void tell_host(const char *what)
{
	printf("@ ask %s\n", what);
	fflush(stdout);
}

static bool host_is_done(int wait_ms)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	char line[64];
	size_t length = 0;

	if (poll(&input, 1, wait_ms) <= 0)
		return false;
	do
		expect_equal(read(STDIN_FILENO, &line[length], 1), 1);
	while (line[length] != '\n' && ++length < sizeof(line));
	return true;
}

static void ask_host(const char *what)
{
	tell_host(what);
	while (!host_is_done(-1))
		;
}

/* --- blocking calls ------------------------------------------------------------- */

static ib_rpc_t request_of(int method, unsigned attribute, size_t size)
{
	ib_rpc_t rpc = {
		.mgtclass = CLASS,
		.method = method,
		.attr = {.id = attribute, .mod = (unsigned)size},
		.dataoffs = DATA,
		.datasz = SEGMENT,
		.oui = OUI,
	};

	return rpc;
}

static void expect_name(const uint8_t *data, size_t data_size, const ib_portid_t *from,
			uint32_t number, size_t size)
{
	uint8_t *expected = allocate(size);

	write_name(expected, size, from->gid, number);
	expect(data_size >= size);
	expect_bytes(data, expected, size);
	free(expected);
}

/* How a request completed. */
struct outcome {
	int error;
	unsigned status;
	int64_t took_ms;
};

static uint32_t new_number(void)
{
	static _Atomic uint32_t number;

	return ++number;
}

/* One blocking call; a response must come from this node. */
static struct outcome call(int method, unsigned attribute, ib_portid_t to, size_t size)
{
	ib_rpc_t rpc = request_of(method, attribute, size);
	uint32_t number = new_number();
	struct mad_message message;
	int64_t started = now_ms();
	struct outcome outcome;
	uint8_t data[4];

	put32(data, number);
	outcome.error = -mad_rpc_message(port, &rpc, &to, data, sizeof(data), &message);
	outcome.took_ms = now_ms() - started;
	outcome.status = rpc.rstatus;
	if (!outcome.error) {
		expect(message.length >= DATA + size);
		expect_name(message.mad + DATA, message.length - DATA, &to, number, size);
		mad_message_free(&message);
	}
	return outcome;
}

static void note_outcome(const char *what, struct outcome outcome)
{
	note("%s: errno %d, status 0x%x, %lld ms", what, outcome.error, outcome.status,
	     (long long)outcome.took_ms);
}

/* A thread that calls one node until a call fails. */
struct caller {
	pthread_t thread;
	unsigned attribute, node;
	struct outcome outcome;
	unsigned calls;
};

static void *call_until_it_fails(void *arg)
{
	struct caller *caller = arg;

	do {
		caller->outcome = call(METHOD_GET, caller->attribute, node(caller->node), 100);
		caller->calls++;
	} while (!caller->outcome.error);
	return NULL;
}

static void start_caller(struct caller *caller)
{
	expect_equal(pthread_create(&caller->thread, NULL, call_until_it_fails, caller), 0);
}

static struct outcome end_of(struct caller *caller)
{
	expect_equal(pthread_join(caller->thread, NULL), 0);
	return caller->outcome;
}

/* --- requests of the engine ----------------------------------------------------- */

struct request {
	ib_portid_t to;
	uint32_t number;
	unsigned attribute, size;
	int method;
	unsigned submissions, completions;
};

/* The action after a response, and after an error. */
static enum course {
	ENDS,
	ASKS_AGAIN,    /* repeats the request until it fails */
	GOES_TO_SECOND /* the same; then sends it to the second server */
} course;

static struct {
	unsigned named, refused, timed_out;
	unsigned fewest_sent, most_sent; /* transmissions of requests that timed out */
	unsigned least_ms, most_ms;      /* and their time */
} tally;

static void completed(struct mad_async *engine, const struct mad_reply *reply, void *arg);

static void submit(struct request *request)
{
	ib_rpc_t rpc = request_of(request->method, request->attribute, request->size);
	uint8_t data[4];

	request->number = new_number();
	request->submissions++;
	put32(data, request->number);
	expect_equal(mad_async_submit(async, &rpc, &request->to, data, sizeof(data), completed,
				      request, NULL),
		     0);
}

static void count_timeout(const struct mad_reply *reply)
{
	if (!tally.timed_out++ || reply->transmissions < tally.fewest_sent)
		tally.fewest_sent = reply->transmissions;
	if (reply->transmissions > tally.most_sent)
		tally.most_sent = reply->transmissions;
	if (tally.timed_out == 1 || reply->elapsed_ms < tally.least_ms)
		tally.least_ms = reply->elapsed_ms;
	if (reply->elapsed_ms > tally.most_ms)
		tally.most_ms = reply->elapsed_ms;
}

static bool is_second(const struct request *request)
{
	return !memcmp(request->to.gid, second.gid, sizeof(second.gid));
}

static void completed(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	struct request *request = arg;

	(void)engine;
	expect_equal(++request->completions, request->submissions);
	if (!reply->error) {
		tally.named++;
		expect_name(reply->data, reply->data_size, &request->to, request->number,
			    request->size);
		if (course != ENDS && !is_second(request))
			submit(request);
		return;
	}
	if (reply->error == -ETIMEDOUT) {
		count_timeout(reply);
	} else {
		tally.refused++;
		expect_equal(reply->error, -EIO);
		expect_equal(reply->status, REFUSED);
	}
	if (course == GOES_TO_SECOND && !is_second(request)) {
		request->to = second;
		request->attribute = NAME;
		submit(request);
	}
}

static struct request requests[4 * NODES];
static unsigned submitted;

static void begin(enum course what)
{
	memset(&tally, 0, sizeof(tally));
	memset(requests, 0, sizeof(requests));
	submitted = 0;
	course = what;
}

static void ask_by(int method, ib_portid_t to, unsigned attribute, unsigned size)
{
	struct request *request = &requests[submitted++];

	request->to = to;
	request->method = method;
	request->attribute = attribute;
	request->size = size;
	submit(request);
}

static void ask_node(ib_portid_t to, unsigned attribute, unsigned size)
{
	ask_by(METHOD_GET, to, attribute, size);
}

/* Until all are complete: each submission has one completion. */
static void finish(void)
{
	expect(mad_async_wait(async, -1) >= 0);
	for (unsigned i = 0; i < submitted; i++)
		expect_equal(requests[i].completions, requests[i].submissions);
}

static void all_nodes_respond(void)
{
	begin(ENDS);
	for (unsigned i = 0; i < NODES; i++)
		ask_node(node(i), NAME, 100);
	finish();
	expect_equal(tally.named, NODES);
}

static void note_timeouts(void)
{
	note("engine: %u timed out after %u to %u ms and %u to %u transmissions",
	     tally.timed_out, tally.least_ms, tally.most_ms, tally.fewest_sent,
	     tally.most_sent);
}

/* --- checks --------------------------------------------------------------------- */

static void every_node_of_a_sweep_responds_with_its_own_data(void)
{
	static const unsigned lengths[] = {2000, 64 * SEGMENT, 64 * SEGMENT + 1, 50000};
	int64_t started;

	opened(2000, PATIENT);
	ask_host("start 0");
	ask_host("start 1");
	started = now_ms();
	all_nodes_respond();
	note("the first sweep took %lld ms: the kernel looks for each GID",
	     (long long)(now_ms() - started));
	started = now_ms();
	all_nodes_respond();
	note("the second one took %lld ms", (long long)(now_ms() - started));
	/* an attempt must be long enough for the longest response */
	mad_rpc_set_timeout(port, 60000);
	begin(ENDS);
	for (unsigned i = 0; i < NODES; i++) {
		ask_node(node(i), NAME, NAME_BYTES);
		ask_node(node(i), NAME, SEGMENT);
		ask_node(node(i), NAME, SEGMENT + 1);
		ask_node(node(i), NAME, lengths[i % 4]);
	}
	started = now_ms();
	finish();
	expect_equal(tally.named, 4 * NODES);
	note("%u responses of %u to %u bytes took %lld ms", tally.named, NAME_BYTES, lengths[3],
	     (long long)(now_ms() - started));
	closed();
}

static void *call_some_nodes(void *arg)
{
	for (unsigned i = (unsigned)(uintptr_t)arg; i < NODES; i += THREADS)
		expect_equal(call(METHOD_GET, NAME, node(i), i % 2 ? 1000 : 100).error, 0);
	return NULL;
}

static void threads_that_call_all_nodes_get_their_own_responses(void)
{
	pthread_t threads[THREADS];

	opened(60000, PATIENT);
	for (uintptr_t i = 0; i < THREADS; i++)
		expect_equal(pthread_create(&threads[i], NULL, call_some_nodes, (void *)i), 0);
	for (unsigned i = 0; i < THREADS; i++)
		expect_equal(pthread_join(threads[i], NULL), 0);
	closed();
}

static void requests_to_a_process_that_dies_go_to_the_second_server(void)
{
	struct caller get = {.attribute = NAME, .node = 0};
	struct caller waits = {.attribute = SILENCE, .node = 1};
	struct outcome outcome;

	opened(2000, PATIENT);
	start_caller(&get);
	start_caller(&waits);
	begin(GOES_TO_SECOND);
	for (unsigned i = 0; i < NODES; i++)
		ask_node(node(i), i % 8 ? NAME : SILENCE, 100);
	while (tally.named < NODES)
		mad_async_wait(async, 10);
	tell_host("kill 0");
	finish();
	while (!host_is_done(-1))
		;
	note("engine: %u responses, %u refused, %u timed out", tally.named, tally.refused,
	     tally.timed_out);
	expect_equal(tally.refused, NODES);
	expect_equal(tally.timed_out, 0);
	for (unsigned i = 0; i < NODES; i++)
		expect(is_second(&requests[i]));

	/* a request that was sent before gets the new path in its next attempt */
	note_outcome("Get, blocking", end_of(&get));
	note_outcome("Get that waited", end_of(&waits));
	expect_equal(get.outcome.error, EIO);
	expect_equal(get.outcome.status, REFUSED);
	expect_equal(waits.outcome.error, EIO);
	expect_equal(waits.outcome.status, REFUSED);
	/* the kernel does not respond to this method */
	mad_rpc_set_retries(port, 3);
	outcome = call(METHOD_ANY, NAME, node(2), 100);
	note_outcome("other method", outcome);
	expect_equal(outcome.error, ETIMEDOUT);
	expect(outcome.took_ms >= 4000);

	mad_rpc_set_retries(port, PATIENT);
	expect_equal(call(METHOD_GET, NAME, second, 100).error, 0);
	ask_host("start 0");
	outcome = call(METHOD_GET, NAME, node(0), 100);
	note_outcome("after its start", outcome);
	expect_equal(outcome.error, 0);
	all_nodes_respond();
	closed();
}

/* Whether the kernel has dropped the neighbour with the node's GID. */
static bool neighbour_is_gone(unsigned number)
{
	char command[80], line[160] = "";
	FILE *pipe;

	snprintf(command, sizeof(command), "/bin/ip -6 neigh show to fd00::a:%x", number + 1);
	pipe = popen(command, "r");
	expect(pipe);
	while (fgets(line, sizeof(line), pipe) && !strstr(line, "lladdr"))
		;
	pclose(pipe);
	return !strstr(line, "lladdr");
}

static void requests_with_attempts_left_outlive_a_pulled_cable(void)
{
	struct outcome outcome;
	int64_t started;

	opened(1000, PATIENT);
	begin(ASKS_AGAIN);
	ask_host("unplug servers");
	started = now_ms();
	for (unsigned i = 0; i < THREADS; i++)
		ask_node(node(i), NAME, 100);
	while (!neighbour_is_gone(0))
		mad_async_wait(async, 100);
	note("the neighbour was given up after %lld ms", (long long)(now_ms() - started));
	tally.named = 0;

	/* the cable of the second server's device works */
	outcome = call(METHOD_GET, NAME, second, 100);
	note_outcome("second server, blocking", outcome);
	expect_equal(outcome.error, 0);
	tell_host("plug servers");
	course = ENDS;
	finish();
	while (!host_is_done(-1))
		;
	expect_equal(tally.named, THREADS);
	expect_equal(tally.timed_out, 0);
	all_nodes_respond();
	closed();
}

static unsigned port_state(void)
{
	struct port own = {.ca_name = DEVICE, .portnum = 1};
	char text[32];

	read_port_file(&own, "state", text, sizeof(text));
	return (unsigned)atoi(text);
}

static void without_the_own_cable_requests_time_out(void)
{
	struct outcome outcome;

	opened(500, 3);
	ask_host("unplug client");
	while (port_state() == 4)
		pause_ms(20);
	outcome = call(METHOD_GET, NAME, node(0), 100);
	note_outcome("blocking", outcome);
	expect_equal(outcome.error, ETIMEDOUT);
	begin(ENDS);
	for (unsigned i = 0; i < 2; i++)
		ask_node(node(i), NAME, 100);
	finish();
	note_timeouts();
	expect_equal(tally.timed_out, 2);
	ask_host("plug client");
	while (port_state() != 4)
		pause_ms(20);
	mad_rpc_set_retries(port, PATIENT);
	outcome = call(METHOD_GET, NAME, node(0), 100);
	note_outcome("plugged again", outcome);
	expect_equal(outcome.error, 0);
	all_nodes_respond();
	closed();
}

static void requests_to_a_machine_that_dies_time_out_until_it_is_back(void)
{
	struct caller get = {.attribute = NAME, .node = 0};
	struct outcome outcome;
	unsigned calls = 0;
	int64_t started;

	opened(500, 3);
	start_caller(&get);
	begin(ASKS_AGAIN);
	for (unsigned i = 0; i < FEW; i++)
		ask_node(node(i), NAME, 100);
	while (tally.named < FEW)
		mad_async_wait(async, 10);
	tell_host("down");
	started = now_ms();
	finish();
	while (!host_is_done(-1))
		;
	note("in flight when it died:");
	note_outcome("blocking", end_of(&get));
	note_timeouts();
	note("all of that took %lld ms", (long long)(now_ms() - started));
	expect_equal(get.outcome.error, ETIMEDOUT);
	expect(get.outcome.took_ms >= 1000);
	expect_equal(tally.timed_out, FEW);
	expect_equal(tally.refused, 0);
	expect(tally.least_ms >= 1000);

	while (!neighbour_is_gone(0))
		note_outcome("blocking", call(METHOD_GET, NAME, node(0), 100));
	note("after the neighbour was given up (%lld ms):", (long long)(now_ms() - started));
	outcome = call(METHOD_GET, NAME, node(0), 100);
	note_outcome("blocking", outcome);
	expect_equal(outcome.error, ETIMEDOUT);
	expect(outcome.took_ms >= 1000);
	begin(ENDS);
	started = now_ms();
	for (unsigned i = 0; i < 4; i++)
		ask_node(node(i), NAME, 100);
	note("4 submissions took %lld ms", (long long)(now_ms() - started));
	finish();
	note_timeouts();
	note("4 nodes took %lld ms", (long long)(now_ms() - started));
	expect_equal(tally.timed_out, 4);
	expect(tally.least_ms >= 1000);

	/* a request with many attempts continues until the server is back */
	begin(ENDS);
	mad_rpc_set_retries(port, PATIENT);
	ask_by(METHOD_ANY, node(1), NAME, 100);
	mad_rpc_set_retries(port, 3);
	tell_host("up");
	started = now_ms();
	do {
		outcome = call(METHOD_GET, NAME, node(0), 100);
		mad_async_wait(async, 0);
		calls++;
	} while (outcome.error == ETIMEDOUT);
	note("%u calls timed out while it booted, %lld ms", calls - 1,
	     (long long)(now_ms() - started));
	while (!host_is_done(-1))
		;
	/* the machine runs, its server does not */
	note_outcome("then", outcome);
	expect_equal(outcome.error, EIO);
	expect_equal(outcome.status, REFUSED);
	ask_host("start 0");
	finish();
	expect_equal(tally.named, 1);
	mad_rpc_set_retries(port, PATIENT);
	all_nodes_respond();
	closed();
}

int main(void)
{
	static const struct check checks[] = {
		CHECK(every_node_of_a_sweep_responds_with_its_own_data),
		CHECK(threads_that_call_all_nodes_get_their_own_responses),
		CHECK(requests_to_a_process_that_dies_go_to_the_second_server),
		CHECK(requests_with_attempts_left_outlive_a_pulled_cable),
		CHECK(without_the_own_cable_requests_time_out),
		CHECK(requests_to_a_machine_that_dies_time_out_until_it_is_back),
	};

	return run_checks(checks, sizeof(checks) / sizeof(checks[0]));
}
