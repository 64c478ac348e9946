/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Sequences of public calls on ports whose requests have random responses. An input is a list
 * of steps: ports are opened and closed, engines created, run, stopped and destroyed, requests
 * submitted, cancelled and made blocking, servers started and stopped, messages of any kind
 * arrive, system calls and allocations fail, threads make calls in parallel, the process forks.
 * Callbacks make calls, too. Each request that an engine accepted is called back once, and
 * nothing is left at the end.
 */
#include "fuzz_machine.h"

#include <errno.h>
#include <infiniband/mad_server.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#define PORTS    2
#define ENGINES  2  /* of a port */
#define SERVERS  2  /* of an engine */
#define HELD     16 /* requests of clients */
#define REQUESTS 400
#define THREADS  2
#define STEPS    150
/* Forks are slow, and a child does nothing that this process does not do. */
#define FORKS    2

struct engine {
	struct mad_async *async;
	struct ibmad_port *port;             /* NULL: the engine has outlived it */
	struct mad_server *servers[SERVERS]; /* NULL: none, or it has ended */
	_Atomic uint64_t ids[8];             /* of the latest requests */
	atomic_uint latest;
};

static struct {
	struct ibmad_port *ports[PORTS];
	struct engine engines[PORTS][ENGINES];
	struct {
		struct engine *engine;
		atomic_uint ends;
	} requests[REQUESTS];
	atomic_uint submitted;
	struct mad_request *held[HELD];
	struct {
		pthread_t thread;
		struct engine *engine; /* NULL: no thread runs */
		struct ibmad_port *port;
		struct input input;
	} threads[THREADS];
	unsigned forks;
	unsigned responses; /* of the fabric */
	uint32_t seed;      /* the input's first bytes */
} run;

/* --- the fabric ------------------------------------------------------------------ */

static uint32_t shuffle(uint32_t number)
{
	number = number * 2654435761u + run.seed;
	return number ^ number >> 15;
}

/* Any thread sends: the response depends only on the number of the request. */
static enum machine_verdict respond_somehow(struct machine_mad *request, void *arg)
{
	struct ib_user_mad header = {.addr.lid = htobe16(request->dlid)};
	uint8_t *mad = begin_response(request);
	uint32_t die;

	(void)arg;
	if (request->bytes[3] & IB_MAD_RESPONSE)
		return MACHINE_PASS;
	die = shuffle(run.responses++);
	switch (die & 15) {
	case 0:
	case 1:
		break;
	case 2: /* the kernel reports a timeout */
		machine_deliver(request, NULL, 0, 0);
		break;
	case 3:
		return machine_reply(request, (uint16_t)(die >> 16), 0, NULL, 0);
	case 4: /* twice */
		header.agent_id = die >> 8 & 3;
		machine_deliver(request, mad, IB_MAD_SIZE, 0);
		machine_receive(&header, mad, IB_MAD_SIZE);
		break;
	case 5: /* a wrong response */
		mad[die >> 8 & 63] ^= (uint8_t)(die >> 16);
		machine_deliver(request, mad, die >> 24 ? IB_MAD_SIZE : die >> 20, 0);
		break;
	default:
		return machine_reply(request, 0, 0, NULL, 0);
	}
	return MACHINE_DROP;
}

/* --- requests -------------------------------------------------------------------- */

static void submit(struct engine *engine, uint32_t choice);

static void ended(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	uint32_t n = (uint32_t)(uintptr_t)arg, die = shuffle(n);

	run.requests[n].ends++;
	check(reply->error <= 0);
	if (reply->mad)
		read_all(reply->mad, reply->length);
	die = die >> 4 & 15;
	if (die == 0)
		submit(run.requests[n].engine, n);
	else if (die == 1)
		mad_async_cancel(engine, MAD_ASYNC_ALL);
	else if (die == 2)
		mad_async_stop(engine);
	else if (die == 3)
		check(mad_async_wait(engine, 0) == -EDEADLK);
	else if (die == 4)
		mad_async_process(engine);
}

static void submit(struct engine *engine, uint32_t choice)
{
	static const uint8_t payload[600] = {3};
	ib_rpc_t rpc = make_rpc(choice);
	ib_portid_t to = to_leaf(1 + (choice >> 2 & 7));
	unsigned n = run.submitted++;
	size_t size = (size_t)rpc.datasz;
	uint64_t id = 0;

	if (n >= REQUESTS)
		return;
	if (rpc.mgtclass == IB_SA_CLASS && choice & 32)
		size = sizeof(payload);
	rpc.timeout = choice & 64 ? 1 : 20;
	run.requests[n].engine = engine;
	if (!mad_async_submit(engine->async, &rpc, &to, payload, size, ended,
			      (void *)(uintptr_t)n, &id))
		engine->ids[engine->latest++ % 8] = id;
	else /* the request has the state of a completed one */
		check(run.requests[n].ends++ == 0);
}

static void block(struct ibmad_port *on, uint32_t choice)
{
	ib_rpc_t rpc = make_rpc(choice);
	ib_portid_t to = to_leaf(1 + (choice >> 2 & 7));
	uint8_t data[IB_MAD_SIZE] = {0};
	struct mad_message message;

	rpc.timeout = 1;
	if (!(choice & 32))
		mad_rpc(on, &rpc, &to, data, data);
	else if (!mad_rpc_message(on, &rpc, &to, data, 8, &message))
		mad_message_free(&message);
}

/* --- servers --------------------------------------------------------------------- */

/*
 * The threads that process engines call back: guards the servers and their requests. No thread
 * has it at a fork.
 */
static pthread_mutex_t servers_lock = PTHREAD_MUTEX_INITIALIZER;

static bool hold(struct mad_request *request)
{
	int i;

	pthread_mutex_lock(&servers_lock);
	for (i = 0; i < HELD && run.held[i]; i++)
		;
	if (i < HELD)
		run.held[i] = request;
	pthread_mutex_unlock(&servers_lock);
	return i < HELD;
}

static void take_request(struct mad_server *server, struct mad_request *request, int error,
			 void *arg)
{
	struct mad_server **holder = arg;
	uint32_t die;

	if (!request) { /* the last callback; the holder may have another server */
		pthread_mutex_lock(&servers_lock);
		if (*holder == server)
			*holder = NULL;
		pthread_mutex_unlock(&servers_lock);
		return;
	}
	check(!error && request->server == server);
	die = shuffle((uint32_t)request->tid);
	read_all(request->mad, request->length);
	if (die & 1 && hold(request))
		return;
	if (die & 2 || mad_request_respond(request, die & 4, "data", die >> 8 & 3))
		mad_request_free(request);
}

/* The server or the engine of a request may have ended. */
static void return_requests(void)
{
	pthread_mutex_lock(&servers_lock);
	for (int i = 0; i < HELD; i++)
		if (run.held[i]) {
			if (i & 1 || mad_request_respond(run.held[i], 0, NULL, 0))
				mad_request_free(run.held[i]);
			run.held[i] = NULL;
		}
	pthread_mutex_unlock(&servers_lock);
}

static void change_server(struct engine *engine, uint32_t choice)
{
	struct mad_server **holder = &engine->servers[choice % SERVERS];
	struct mad_server_options options = {
		.mgmt_class = IB_VENDOR_RANGE1_START_CLASS + 1 + (int)(choice >> 2 & 1),
		.methods = {MAD_SERVER_METHOD(IB_MAD_METHOD_GET) |
			    MAD_SERVER_METHOD(IB_MAD_METHOD_SET)},
		.rmpp_version = choice >> 3 & 1,
		.limit = choice >> 4 & 3,
	};
	bool stops;

	pthread_mutex_lock(&servers_lock);
	stops = *holder;
	/* it exists: its last callback would wait for the lock */
	mad_server_stop(*holder);
	*holder = NULL;
	if (!stops && !(choice & 64) &&
	    mad_server_start(engine->async, &options, take_request, holder, holder))
		*holder = NULL;
	pthread_mutex_unlock(&servers_lock);
	if (choice & 64)
		return_requests();
}

/* --- calls, of the main thread and of others ------------------------------------- */

static void call_engine(struct engine *engine, struct input *input)
{
	uint8_t choice = (uint8_t)take(input, 1);
	struct mad_async_stats stats;

	switch (choice % 9) {
	case 0:
	case 1:
		submit(engine, (uint32_t)take(input, 1));
		break;
	case 2:
		mad_async_process(engine->async);
		break;
	case 3:
		mad_async_cancel(engine->async,
				 choice & 128 ? MAD_ASYNC_ALL : engine->ids[choice / 9 % 8]);
		break;
	case 4:
		mad_async_wait(engine->async, choice / 9 % 4);
		break;
	case 5:
		mad_async_stop(engine->async);
		break;
	case 6:
		change_server(engine, (uint32_t)take(input, 1));
		break;
	case 7:
		mad_async_poll_fd(engine->async);
		break;
	default:
		mad_async_get_stats(engine->async, &stats, sizeof(stats));
		check(stats.submitted == stats.completed + stats.in_flight + stats.queued);
	}
}

static void call_port(struct ibmad_port *on, struct input *input)
{
	static const struct {
		enum mad_port_option option;
		unsigned count, unit, least;
	} options[] = {
		{MAD_PORT_GMP_WINDOW, 4, 1, 0},
		{MAD_PORT_DESTINATION_LIMIT, 4, 1, 0},
		{MAD_PORT_RATE, 32, 1000, 0},
		{MAD_PORT_MAX_RESPONSE, 32, 16, 256},
	};
	uint8_t choice = (uint8_t)take(input, 1);
	unsigned i = choice % 8;

	if (i < 2)
		block(on, (uint32_t)take(input, 1));
	else if (i < 6)
		mad_port_set(on, options[i - 2].option,
			     options[i - 2].least +
				     choice / 8 % options[i - 2].count * options[i - 2].unit);
	else
		mad_free(mad_receive_via(NULL, 1, on));
}

static void *call_meanwhile(void *arg)
{
	unsigned n = (unsigned)(uintptr_t)arg;

	while (run.threads[n].input.size)
		if (take(&run.threads[n].input, 1) & 3)
			call_engine(run.threads[n].engine, &run.threads[n].input);
		else
			call_port(run.threads[n].port, &run.threads[n].input);
	return NULL;
}

/* The thread gets the next bytes of the input. */
static void start_thread(struct engine *engine, struct input *input)
{
	unsigned n = (unsigned)take(input, 1), size = n / THREADS % 32;

	n %= THREADS;
	if (run.threads[n].engine || !engine->port || size > input->size)
		return;
	run.threads[n].port = engine->port;
	run.threads[n].engine = engine;
	run.threads[n].input = (struct input){input->data, size};
	input->data += size;
	input->size -= size;
	if (pthread_create(&run.threads[n].thread, NULL, call_meanwhile, (void *)(uintptr_t)n))
		run.threads[n].engine = NULL;
}

/* The threads that use a port or an engine, before its end; NULL: all. */
static void join_threads(const void *used)
{
	for (unsigned n = 0; n < THREADS; n++)
		if (run.threads[n].engine &&
		    (!used || run.threads[n].port == used || run.threads[n].engine == used)) {
			pthread_join(run.threads[n].thread, NULL);
			run.threads[n].engine = NULL;
		}
}

/*
 * A child inherits the ports: the parent's requests are gone, and the child can submit others.
 */
static void fork_child(unsigned choice)
{
	struct engine *engine = &run.engines[choice % PORTS][0];
	int status;
	pid_t child;

	if (run.forks++ >= FORKS)
		return;
	join_threads(NULL);
	machine_fail(MACHINE_MALLOC, 0, 0);
	child = fork();
	if (!child) {
		/* the child hangs */
		signal(SIGALRM, SIG_DFL);
		alarm(60);
		if (engine->async) {
			mad_async_process(engine->async);
			submit(engine, choice);
			mad_async_wait(engine->async, 5);
		}
		if (choice & 16) {
			mad_async_free(engine->async);
			mad_rpc_close_port(run.ports[choice % PORTS]);
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

static void open_port(int i, uint8_t mask)
{
	static const int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS, IB_SA_CLASS,
				      IB_PERFORMANCE_CLASS, IB_VENDOR_RANGE1_START_CLASS};
	int some[5], count = 0;

	for (int k = 0; k < 5; k++)
		if (k == 3 || !(mask >> k & 1))
			some[count++] = classes[k];
	run.ports[i] = mad_rpc_open_port(NULL, 0, some, count);
	if (run.ports[i]) {
		mad_rpc_set_retries(run.ports[i], 1 + (mask >> 5 & 3));
		mad_rpc_set_timeout(run.ports[i], 2);
	}
}

static void destroy_engine(struct engine *engine)
{
	if (!engine->async)
		return;
	join_threads(engine);
	/* this ends its servers; the program's requests stay valid */
	mad_async_free(engine->async);
	engine->async = NULL;
	for (int i = 0; i < SERVERS; i++)
		check(!engine->servers[i]);
	if (run.responses & 1)
		return_requests();
}

static void close_port(int i)
{
	if (!run.ports[i])
		return;
	/* threads may still be in calls, and begin none afterwards */
	join_threads(run.ports[i]);
	mad_rpc_close_port(run.ports[i]);
	run.ports[i] = NULL;
	for (int j = 0; j < ENGINES; j++)
		run.engines[i][j].port = NULL;
}

/* A message of any content; often a request for a server. */
static void come(struct input *input)
{
	uint8_t mad[400] = {1, IB_VENDOR_RANGE1_START_CLASS + 1, 1, IB_MAD_METHOD_GET};
	struct ib_user_mad header = {.addr = {.qpn = htobe32(1), .lid = htobe16(11)}};
	uint8_t shape = (uint8_t)take(input, 1);
	size_t length = shape & 1 ? IB_MAD_SIZE : take(input, 2) % sizeof(mad);

	mad[1] += shape >> 1 & 1;
	mad[3] += shape >> 2 & 1; /* a Set */
	mad[15] = shape >> 4;
	if (shape & 8)
		take_bytes(input, mad, 36);
	header.agent_id = (uint32_t)take(input, 1) % 12;
	machine_receive(&header, mad, length);
}

static void cause_a_fault(uint8_t choice)
{
	static const int errors[] = {EIO, ENOMEM, EINVAL, EAGAIN};

	if (choice & 1)
		machine_fail(MACHINE_MALLOC, 1 + choice / 2 % 16, ENOMEM);
	else if (choice == 254)
		machine_rule("remove on host");
	else
		machine_fail((enum machine_call)(choice / 2 % MACHINE_CALLS),
			     1 + choice / 16 % 4, errors[choice / 64]);
}

static void step(struct input *input)
{
	uint8_t kind = (uint8_t)take(input, 1);
	int i = kind >> 4 & 1;
	struct engine *engine = &run.engines[i][kind >> 5 & 1];

	let_arrive();
	switch (kind & 15) {
	case 0:
		close_port(i);
		break;
	case 1:
		destroy_engine(engine);
		break;
	case 2:
	case 3:
		come(input);
		break;
	case 4:
		cause_a_fault((uint8_t)take(input, 1));
		break;
	case 5:
		if (kind & 128)
			fork_child(kind >> 4);
		break;
	case 6:
	case 7:
		if (run.ports[i])
			call_port(run.ports[i], input);
		break;
	case 8:
		if (engine->async)
			start_thread(engine, input);
		break;
	default:
		/* an engine may live longer than its port */
		if (engine->async)
			call_engine(engine, input);
		else if (!run.ports[i])
			open_port(i, (uint8_t)take(input, 1));
		else if ((engine->async = mad_async_create(run.ports[i])))
			engine->port = run.ports[i];
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};

	memset(&run, 0, sizeof(run));
	run.seed = (uint32_t)take(&input, 2);
	machine_start("star:8", NULL);
	machine_on_arrival(respond_somehow, NULL);
	for (int steps = 0; input.size && steps < STEPS; steps++)
		step(&input);
	join_threads(NULL);
	machine_fail(MACHINE_MALLOC, 0, 0);
	for (int i = 0; i < PORTS; i++) {
		if (run.seed & 1)
			close_port(i);
		for (int j = 0; j < ENGINES; j++)
			destroy_engine(&run.engines[i][j]);
		close_port(i);
	}
	return_requests();
	for (unsigned n = 0; n < run.submitted && n < REQUESTS; n++)
		check(run.requests[n].ends == 1);
	machine_stop();
	return 0;
}
