/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Sequences of public calls on ports whose device responds at random. An input is a list of
 * steps: ports are opened and closed, engines created, run, stopped and destroyed, requests
 * submitted, cancelled and made blocking, servers started and stopped, messages of any kind
 * arrive, system calls and allocations fail, threads make calls in parallel, the process forks.
 * Callbacks make calls, too. Each request that an engine accepted is called back once, and
 * nothing is left at the end.
 */
#include "fuzz_device.h"

#include <errno.h>
#include <infiniband/mad_server.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#define PORTS    2
#define ENGINES  2 /* of a port */
#define SERVERS  2 /* of an engine */
#define HELD     8 /* requests of clients, by server */
#define REQUESTS 400
#define THREADS  2
#define STEPS    150
/* Forks are slow, and a child does nothing that this process does not do. */
#define FORKS    2

static const int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS, IB_SA_CLASS,
			      IB_PERFORMANCE_CLASS, IB_VENDOR_RANGE1_START_CLASS};

static const ib_rpc_t kinds[] = {
	{.mgtclass = IB_SMI_CLASS, .method = IB_MAD_METHOD_GET, .dataoffs = 64, .datasz = 64},
	{.mgtclass = IB_PERFORMANCE_CLASS,
	 .method = IB_MAD_METHOD_SET,
	 .dataoffs = 64,
	 .datasz = 192},
	{.mgtclass = IB_PERFORMANCE_CLASS,
	 .method = IB_MAD_METHOD_GET,
	 .dataoffs = 64,
	 .datasz = 192},
	{.mgtclass = IB_SA_CLASS,
	 .method = IB_MAD_METHOD_GET_TABLE,
	 .dataoffs = 56,
	 .datasz = 200},
};

struct server {
	struct mad_server *server; /* NULL: none, or it has ended */
	struct mad_request *held[HELD];
};

struct engine {
	struct mad_async *async;
	struct server servers[SERVERS];
	_Atomic uint64_t ids[8]; /* of the latest requests */
	atomic_uint latest;
};

static struct {
	struct {
		struct ibmad_port *port;
		struct engine engines[ENGINES];
	} ports[PORTS];
	atomic_uint submitted;
	atomic_uint ends[REQUESTS];
	struct input *input; /* of the main thread */
	struct {
		pthread_t thread;
		bool runs;
		struct mad_async *async;
		struct ibmad_port *port;
		uint32_t random;
	} threads[THREADS];
	unsigned forks;
	atomic_uint responses; /* of the device, from the input's first bytes */
	uint32_t seed;
} run;

/* --- the device ------------------------------------------------------------------ */

static uint32_t shuffle(uint32_t number)
{
	number = number * 2654435761u + run.seed;
	return number ^ number >> 15;
}

/* Any thread writes: the device's response depends only on the number of the packet. */
static int respond_somehow(const struct device_packet *packet, void *arg)
{
	uint32_t die = shuffle(run.responses++);
	uint8_t mad[IB_MAD_SIZE];

	(void)arg;
	if (packet->mad[3] & IB_MAD_RESPONSE)
		return 0;
	switch (die & 15) {
	case 0:
	case 1: /* silence */
		return 0;
	case 2:
		device_time_out(packet);
		return 0;
	case 3:
		device_respond(packet, (uint16_t)(die >> 16), 0, NULL, 0);
		return 0;
	case 4: /* twice */
		device_respond(packet, 0, 0, NULL, 0);
		device_respond(packet, 0, 0, NULL, 0);
		return 0;
	case 5: /* a wrong response */
		device_copy_mad(packet, mad);
		mad[3] |= IB_MAD_RESPONSE;
		mad[die >> 8 & 63] ^= (uint8_t)(die >> 16);
		device_reply(packet, mad, die >> 24 ? IB_MAD_SIZE : die >> 20);
		return 0;
	case 6:
		return die & 16 ? -ENOMEM : -EINVAL;
	default:
		device_respond(packet, 0, 0, NULL, 0);
		return 0;
	}
}

/* --- requests -------------------------------------------------------------------- */

static struct engine *engine_of(const struct mad_async *async)
{
	for (int i = 0; i < PORTS; i++)
		for (int j = 0; j < ENGINES; j++)
			if (run.ports[i].engines[j].async == async)
				return &run.ports[i].engines[j];
	return NULL;
}

static void submit(struct mad_async *async, uint32_t choice);

static void ended(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	uint32_t die = shuffle((uint32_t)(uintptr_t)arg);
	volatile uint8_t seen = 0;

	run.ends[(uintptr_t)arg]++;
	check(reply->error <= 0);
	if (reply->mad)
		seen = sum(reply->mad, reply->length);
	(void)seen;
	switch (die >> 4 & 15) {
	case 0:
		submit(async, die >> 8);
		break;
	case 1:
		mad_async_cancel(async, MAD_ASYNC_ALL);
		break;
	case 2:
		mad_async_stop(async);
		break;
	case 3:
		check(mad_async_wait(async, 0) == -EDEADLK);
		break;
	case 4:
		mad_async_process(async);
		break;
	default:
		break;
	}
}

static void submit(struct mad_async *async, uint32_t choice)
{
	static const uint8_t payload[600] = {3};
	ib_rpc_t rpc = kinds[choice % 4];
	ib_portid_t to = {.lid = 1 + (int)(choice >> 2 & 7), .qp = 1};
	unsigned n = run.submitted++;
	size_t size = (size_t)rpc.datasz;
	struct engine *engine;
	uint64_t id = 0;

	if (n >= REQUESTS)
		return;
	if (rpc.mgtclass == IB_SA_CLASS && choice & 32)
		size = sizeof(payload);
	rpc.timeout = choice & 64 ? 1 : 20;
	if (mad_async_submit(async, &rpc, &to, payload, size, ended, (void *)(uintptr_t)n,
			     &id)) {
		/* the request has the state of a completed one */
		check(run.ends[n]++ == 0);
		return;
	}
	engine = engine_of(async);
	if (engine)
		engine->ids[engine->latest++ % 8] = id;
}

static void block(struct ibmad_port *port, uint32_t choice)
{
	ib_rpc_t rpc = kinds[choice % 4];
	ib_portid_t to = {.lid = 1 + (int)(choice >> 2 & 7), .qp = 1};
	uint8_t data[IB_MAD_SIZE] = {0};
	struct mad_message message;

	rpc.timeout = 1;
	if (choice & 32) {
		if (!mad_rpc_message(port, &rpc, &to, data, 8, &message))
			mad_message_free(&message);
	} else {
		mad_rpc(port, &rpc, &to, data, data);
	}
}

/* --- servers --------------------------------------------------------------------- */

/* The threads that process engines call back: guards the servers. No thread has it at a fork.
 */
static pthread_mutex_t servers_lock = PTHREAD_MUTEX_INITIALIZER;

/* The last callback of a server; the holder may have another one. */
static void end_server(struct server *holder, const struct mad_server *server)
{
	pthread_mutex_lock(&servers_lock);
	if (holder->server == server)
		holder->server = NULL;
	pthread_mutex_unlock(&servers_lock);
}

static bool keep_request(struct server *holder, struct mad_request *request)
{
	int i;

	pthread_mutex_lock(&servers_lock);
	for (i = 0; i < HELD && holder->held[i]; i++)
		;
	if (i < HELD)
		holder->held[i] = request;
	pthread_mutex_unlock(&servers_lock);
	return i < HELD;
}

static void take_request(struct mad_server *server, struct mad_request *request, int error,
			 void *arg)
{
	volatile uint8_t seen;
	uint32_t die;

	if (!request) {
		end_server(arg, server);
		return;
	}
	check(!error);
	die = shuffle((uint32_t)request->tid);
	seen = sum(request->mad, request->length);
	(void)seen;
	check(request->server == server);
	if (die & 1 && keep_request(arg, request))
		return;
	if (die & 2 || mad_request_respond(request, die & 4, "data", die >> 8 & 3))
		mad_request_free(request);
}

static void return_requests(struct server *holder)
{
	pthread_mutex_lock(&servers_lock);
	for (int i = 0; i < HELD; i++)
		if (holder->held[i]) {
			if (i & 1 || mad_request_respond(holder->held[i], 0, NULL, 0))
				mad_request_free(holder->held[i]);
			holder->held[i] = NULL;
		}
	pthread_mutex_unlock(&servers_lock);
}

/* false: the holder has no server. */
static bool stop_server(struct server *holder)
{
	struct mad_server *server;

	pthread_mutex_lock(&servers_lock);
	server = holder->server;
	mad_server_stop(server); /* it exists: its last callback would wait for the lock */
	holder->server = NULL;
	pthread_mutex_unlock(&servers_lock);
	return server;
}

static void change_server(struct engine *engine, uint32_t choice)
{
	struct server *holder = &engine->servers[choice % SERVERS];
	struct mad_server_options options = {
		.mgmt_class = IB_VENDOR_RANGE1_START_CLASS + 1 + (int)(choice >> 2 & 1),
		.methods = {MAD_SERVER_METHOD(IB_MAD_METHOD_GET) |
			    MAD_SERVER_METHOD(IB_MAD_METHOD_SET)},
		.rmpp_version = choice >> 3 & 1,
		.limit = choice >> 4 & 3,
	};

	if (choice & 64 || stop_server(holder)) {
		return_requests(holder);
		return;
	}
	pthread_mutex_lock(&servers_lock);
	if (mad_server_start(engine->async, &options, take_request, holder, &holder->server))
		holder->server = NULL;
	pthread_mutex_unlock(&servers_lock);
}

/* --- threads and children -------------------------------------------------------- */

static void *call_meanwhile(void *arg)
{
	struct mad_async *async = run.threads[(uintptr_t)arg].async;
	struct ibmad_port *port = run.threads[(uintptr_t)arg].port;
	uint32_t random = run.threads[(uintptr_t)arg].random;
	struct mad_async_stats stats;

	for (int i = 0; i < 8; i++) {
		random = shuffle(random);
		switch (random % 8) {
		case 0:
		case 1:
			submit(async, random >> 8);
			break;
		case 2:
			mad_async_process(async);
			break;
		case 3:
			mad_async_wait(async, 1);
			break;
		case 4:
			mad_async_stop(async);
			break;
		case 5:
			mad_async_get_stats(async, &stats, sizeof(stats));
			break;
		case 6:
			mad_async_cancel(async, MAD_ASYNC_ALL);
			break;
		default:
			block(port, random >> 8);
		}
	}
	return NULL;
}

static void start_thread(unsigned n, struct ibmad_port *port, struct mad_async *async)
{
	if (run.threads[n].runs || !port || !async)
		return;
	run.threads[n].port = port;
	run.threads[n].async = async;
	run.threads[n].random = shuffle(n + (uint32_t)take(run.input, 1));
	run.threads[n].runs = !pthread_create(&run.threads[n].thread, NULL, call_meanwhile,
					      (void *)(uintptr_t)n);
}

/* The threads that use a port, before it is closed; NULL: all. */
static void join_threads(const struct ibmad_port *port)
{
	for (unsigned n = 0; n < THREADS; n++)
		if (run.threads[n].runs && (!port || run.threads[n].port == port)) {
			pthread_join(run.threads[n].thread, NULL);
			run.threads[n].runs = false;
		}
}

/*
 * A child inherits the ports: the parent's requests are gone, and the child can submit others.
 */
static void fork_child(unsigned choice)
{
	struct ibmad_port *port = run.ports[choice % PORTS].port;
	struct mad_async *async = run.ports[choice % PORTS].engines[0].async;
	int status;
	pid_t child;

	if (run.forks++ == FORKS)
		return;
	join_threads(NULL);
	device_fail_malloc(0);
	child = fork();
	if (!child) {
		/* the child hangs */
		signal(SIGALRM, SIG_DFL);
		alarm(60);
		if (async) {
			mad_async_process(async);
			submit(async, choice);
			mad_async_wait(async, 5);
		}
		if (choice & 16) {
			mad_async_free(async);
			mad_rpc_close_port(port);
		}
		_exit(0);
	}
	check(child > 0);
	/* libFuzzer's timer sends a signal, which ends the wait */
	while (waitpid(child, &status, 0) < 0)
		check(errno == EINTR);
	check(!status);
}

/* --- steps ----------------------------------------------------------------------- */

static void open_port(int i)
{
	int some[5], count = 0;
	uint8_t mask = (uint8_t)take(run.input, 1);

	for (int k = 0; k < 5; k++)
		if (k == 3 || !(mask >> k & 1))
			some[count++] = classes[k];
	run.ports[i].port = mad_rpc_open_port(NULL, 0, some, count);
	if (run.ports[i].port) {
		mad_rpc_set_retries(run.ports[i].port, 1 + (mask >> 5 & 3));
		mad_rpc_set_timeout(run.ports[i].port, 2);
	}
}

static void destroy_engine(struct engine *engine)
{
	struct mad_async *async = engine->async;

	for (unsigned n = 0; n < THREADS; n++)
		if (run.threads[n].runs && run.threads[n].async == async) {
			pthread_join(run.threads[n].thread, NULL);
			run.threads[n].runs = false;
		}
	for (int i = 0; i < SERVERS; i++)
		if (run.responses & 1)
			stop_server(&engine->servers[i]);
	mad_async_free(async);
	engine->async = NULL;
	/* this ends the other servers; the program's requests stay valid */
	for (int i = 0; i < SERVERS; i++) {
		check(!engine->servers[i].server);
		return_requests(&engine->servers[i]);
	}
}

static void close_port(int i)
{
	struct ibmad_port *port = run.ports[i].port;

	/* threads may still be in calls, and begin none afterwards */
	join_threads(port);
	mad_rpc_close_port(port);
	run.ports[i].port = NULL;
}

/* A message of any content; often a request for a server. */
static void come(void)
{
	static uint8_t mad[400];
	struct ib_user_mad header = {0};
	uint8_t shape = (uint8_t)take(run.input, 1);
	size_t length = shape & 1 ? IB_MAD_SIZE : take(run.input, 2) % sizeof(mad);

	if (device_fd() < 0)
		return;
	memset(mad, 0, sizeof(mad));
	mad[0] = 1;
	mad[1] = IB_VENDOR_RANGE1_START_CLASS + 1 + (shape >> 1 & 1);
	mad[2] = 1;
	mad[3] = shape & 4 ? IB_MAD_METHOD_SET : IB_MAD_METHOD_GET;
	mad[15] = shape >> 4;
	if (shape & 8)
		take_bytes(run.input, mad, 36);
	header.agent_id = (uint32_t)take(run.input, 1) % 12;
	header.addr.lid = htobe16(7);
	header.addr.qpn = htobe32(1);
	device_queue(device_fd(), &header, mad, length);
}

static void cause_a_fault(uint8_t choice)
{
	static const int errors[] = {EIO, ENOMEM, EINVAL, EAGAIN};

	if (choice & 1)
		device_fail_malloc(1 + choice / 2 % 16);
	else if (choice == 254)
		device_remove();
	else
		device_fail((enum device_call)(choice / 2 % DEVICE_CALLS), 1 + choice / 16 % 4,
			    errors[choice / 64]);
}

static void call_engine(int i, struct engine *engine, uint8_t choice)
{
	struct mad_async_stats stats;

	switch (choice % 10) {
	case 0:
	case 1:
		submit(engine->async, (uint32_t)take(run.input, 1));
		break;
	case 2:
		mad_async_process(engine->async);
		break;
	case 3:
		mad_async_cancel(engine->async, engine->ids[choice / 10 % 8]);
		break;
	case 4:
		mad_async_wait(engine->async, choice / 10 % 4);
		break;
	case 5:
		mad_async_stop(engine->async);
		break;
	case 6:
		change_server(engine, (uint32_t)take(run.input, 1));
		break;
	case 7:
		mad_async_poll_fd(engine->async);
		break;
	case 8:
		mad_async_get_stats(engine->async, &stats, sizeof(stats));
		check(stats.submitted == stats.completed + stats.in_flight + stats.queued);
		break;
	default:
		start_thread(choice / 10 % THREADS, run.ports[i].port, engine->async);
	}
}

static void call_port(struct ibmad_port *port, uint8_t choice)
{
	switch (choice % 8) {
	case 0:
	case 1:
		block(port, (uint32_t)take(run.input, 1));
		break;
	case 2:
		mad_port_set(port, MAD_PORT_GMP_WINDOW, choice / 8 % 4);
		break;
	case 3:
		mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, choice / 8 % 4);
		break;
	case 4:
		mad_port_set(port, MAD_PORT_RATE, choice / 8 * 1000);
		break;
	case 5:
		mad_port_set(port, MAD_PORT_MAX_RESPONSE, 256 + choice / 8 * 16);
		break;
	default:
		mad_free(mad_receive_via(NULL, 1, port));
	}
}

static void step(void)
{
	uint8_t kind = (uint8_t)take(run.input, 1), choice = (uint8_t)take(run.input, 1);
	int i = kind >> 4 & 1;
	struct engine *engine = &run.ports[i].engines[kind >> 5 & 1];

	switch (kind & 15) {
	case 0:
		if (run.ports[i].port)
			close_port(i);
		break;
	case 1:
		if (engine->async)
			destroy_engine(engine);
		break;
	case 2:
	case 3:
		come();
		break;
	case 4:
		cause_a_fault(choice);
		break;
	case 5:
		if (choice < 8)
			fork_child(choice + (kind >> 4));
		break;
	case 6:
	case 7:
		if (run.ports[i].port)
			call_port(run.ports[i].port, choice);
		break;
	default:
		/* an engine may live longer than its port */
		if (!engine->async && !run.ports[i].port)
			open_port(i);
		else if (!engine->async)
			engine->async = mad_async_create(run.ports[i].port);
		else
			call_engine(i, engine, choice);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};

	memset(&run, 0, sizeof(run));
	run.input = &input;
	run.seed = (uint32_t)take(&input, 2);
	device_setup();
	device_on_write(respond_somehow, NULL);
	for (int steps = 0; input.size && steps < STEPS; steps++)
		step();
	join_threads(NULL);
	device_fail_malloc(0);
	for (int i = 0; i < PORTS; i++) {
		if (run.ports[i].port && run.seed & 1)
			close_port(i);
		for (int j = 0; j < ENGINES; j++)
			if (run.ports[i].engines[j].async)
				destroy_engine(&run.ports[i].engines[j]);
		if (run.ports[i].port)
			close_port(i);
	}
	for (unsigned n = 0; n < run.submitted && n < REQUESTS; n++)
		check(run.ends[n] == 1);
	check(!device_teardown());
	return 0;
}
