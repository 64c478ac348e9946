/* SPDX-License-Identifier: BSD-2-Clause */

/* Parts that send requests: with an engine, and with blocking calls. */
#include "soak.h"

#include <errno.h>
#include <poll.h>

#define SLICE_MS         50
#define MOST_OUTSTANDING 200
#define BLOCKING_THREADS 3

/* Engines have this share of the rate; blocking threads together have the other half. */
#define ENGINE_RATE (options.rate / 2)

/* --- an engine ------------------------------------------------------------------ */

struct client {
	struct ibmad_port *port;
	struct mad_async *async;
	unsigned open;
	uint64_t last_id, last_sa_id;
	bool event_loop;
	struct request request;
};

/* The argument of a request's callback. */
struct waiting {
	struct client *client;
	token_t token;
};

static void completed(struct waiting *waiting, int error, const uint8_t *data, size_t size,
		      unsigned elapsed)
{
	record_end(waiting->token, error, data, size, elapsed);
	waiting->client->open--;
	free(waiting);
}

static void called_back(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	(void)async;
	completed(arg, reply->error, reply->error ? NULL : reply->data, reply->data_size,
		  reply->elapsed_ms);
}

static void called_back_by_sa(struct mad_async *async, const struct mad_sa_response *response,
			      void *arg)
{
	(void)async;
	mad_sa_table_free(response->table);
	completed(arg, response->error, NULL, 0, response->reply->elapsed_ms);
}

/* False: the device is removed. */
static bool submit(struct client *client, uint64_t *random)
{
	struct request *request = &client->request;
	struct waiting *waiting;
	token_t token;
	int error;

	request_make(request, random);
	token = record_begin(request);
	if (!token)
		return true;
	waiting = malloc(sizeof(*waiting));
	if (!waiting)
		abort();
	*waiting = (struct waiting){client, token};
	client->open++;
	if (request->kind == REQUEST_PATHS || request->kind == REQUEST_NODES)
		error = mad_sa_submit(client->async, &request->query, called_back_by_sa,
				      waiting, &client->last_sa_id);
	else
		error = mad_async_submit(client->async, &request->rpc, &request->to,
					 request->size ? request->data : NULL, request->size,
					 called_back, waiting, &client->last_id);
	if (!error)
		return true;
	record_refused(token, error);
	client->open--;
	free(waiting);
	return error != -ENODEV;
}

/* In a child of clients the requests of the engine are this thread's alone. */
static void process(struct client *client, int ms)
{
	struct pollfd pollfd = {.fd = -1, .events = POLLIN};
	uint64_t until = now_ms() + (uint64_t)ms;
	uint64_t now;

	if (client->event_loop)
		pollfd.fd = mad_async_poll_fd(client->async);
	if (pollfd.fd < 0) {
		mad_async_wait(client->async, ms);
		return;
	}
	while (client->open && (now = now_ms()) < until) {
		poll(&pollfd, 1, (int)(until - now));
		if (mad_async_process(client->async) < 0)
			return;
	}
}

static bool open_client(struct part *part)
{
	struct client *client = calloc(1, sizeof(*client));

	if (!client)
		abort();
	client->port = open_port();
	client->async = client->port ? mad_async_create(client->port) : NULL;
	if (!client->async) {
		mad_rpc_close_port(client->port);
		free(client);
		return false;
	}
	client->event_loop = random_below(&part->random, 2);
	part->state = client;
	return true;
}

static void cancel_some(struct client *client, uint64_t *random)
{
	unsigned die = random_below(random, 100);

	if (die < 20)
		mad_async_cancel(client->async, client->last_id);
	else if (die < 30)
		mad_async_cancel(client->async, client->last_sa_id);
	else if (die == 30)
		mad_async_cancel(client->async, MAD_ASYNC_ALL);
}

static bool work_client(struct part *part, unsigned ms)
{
	struct client *client = part->state;
	uint64_t until = now_ms() + ms, next = now_ms();
	uint64_t due = 0; /* in thousandths of requests */
	bool there = true;

	while (there && !stopping() && now_ms() < until) {
		for (due += (uint64_t)ENGINE_RATE * SLICE_MS; there && due >= 1000; due -= 1000)
			if (client->open < MOST_OUTSTANDING)
				there = submit(client, &part->random);
		cancel_some(client, &part->random);
		process(client, SLICE_MS);
		next += SLICE_MS;
		if (next > now_ms())
			sleep_ms((unsigned)(next - now_ms()));
		else
			next = now_ms();
	}
	return there;
}

static void drain_client(struct part *part)
{
	struct client *client = part->state;

	mad_async_wait(client->async, -1);
}

/* The engine ends at one of several moments. */
static void close_client(struct part *part)
{
	struct client *client = part->state;
	unsigned die = random_below(&part->random, 4);

	if (die == 0)
		drain_client(part);
	if (die == 1) {
		mad_rpc_close_port(client->port);
		client->port = NULL;
	}
	mad_async_free(client->async);
	mad_rpc_close_port(client->port);
	if (client->open)
		record_wrong("an engine has ended with %u requests", client->open);
	free(client);
}

const struct part_kind engine_part = {"engine", open_client, work_client, drain_client,
				      close_client};

/* --- blocking ------------------------------------------------------------------- */

struct caller {
	struct ibmad_port *port;
	uint64_t random;
	uint64_t until;
	pthread_t thread;
	bool gone;
	struct request request;
};

struct callers {
	struct ibmad_port *port;
	struct caller callers[BLOCKING_THREADS];
};

static int ask_sa(struct caller *caller)
{
	struct request *request = &caller->request;

	return mad_sa_request(caller->port, &request->query, NULL);
}

/* A negative errno; otherwise the response is in the message. */
static int ask_message(struct caller *caller, struct mad_message *message)
{
	struct request *request = &caller->request;

	return mad_rpc_message(caller->port, &request->rpc, &request->to,
			       request->size ? request->data : NULL, request->size, message);
}

static void ask(struct caller *caller)
{
	struct request *request = &caller->request;
	uint8_t data[IB_MAD_SIZE] = {0};
	struct mad_message message = {0};
	const uint8_t *response = NULL;
	uint64_t begun = now_ms();
	size_t size = 0;
	token_t token;
	int error = 0;

	request_make(request, &caller->random);
	token = record_begin(request);
	if (!token)
		return;
	if (request->kind == REQUEST_PATHS || request->kind == REQUEST_NODES) {
		error = ask_sa(caller);
	} else if (request->kind == REQUEST_LONG || random_below(&caller->random, 2)) {
		error = ask_message(caller, &message);
		if (!error && message.status)
			error = -EIO;
		if (!error && message.length > (size_t)request->rpc.dataoffs) {
			response = message.mad + request->rpc.dataoffs;
			size = message.length - (size_t)request->rpc.dataoffs;
		}
	} else {
		memcpy(data, request->data, request->size);
		if (!request->to.qp && request->rpc.mgtclass != IB_SMI_CLASS &&
		    request->rpc.mgtclass != IB_SMI_DIRECT_CLASS) {
			request->to.qp = 1;
			request->to.qkey = IB_DEFAULT_QP1_QKEY;
		}
		errno = 0;
		if (mad_rpc(caller->port, &request->rpc, &request->to, data, data)) {
			response = data;
			size = (size_t)request->rpc.datasz;
		} else {
			error = errno ? -errno : -EIO;
		}
	}
	record_end(token, error, response, size, (unsigned)(now_ms() - begun));
	mad_message_free(&message);
	caller->gone = error == -ENODEV;
}

static void *call(void *arg)
{
	struct caller *caller = arg;
	unsigned pause = options.rate ? 2000 * BLOCKING_THREADS / options.rate : 1000;

	while (!caller->gone && !stopping() && now_ms() < caller->until) {
		ask(caller);
		sleep_ms(pause / 2 + random_below(&caller->random, pause + 1));
	}
	return NULL;
}

static bool open_callers(struct part *part)
{
	struct callers *callers = calloc(1, sizeof(*callers));

	if (!callers)
		abort();
	callers->port = open_port();
	if (!callers->port) {
		free(callers);
		return false;
	}
	part->state = callers;
	return true;
}

static bool work_callers(struct part *part, unsigned ms)
{
	struct callers *callers = part->state;
	bool gone = false;

	for (int i = 0; i < BLOCKING_THREADS; i++) {
		struct caller *caller = &callers->callers[i];

		caller->port = callers->port;
		caller->random = random_next(&part->random);
		caller->until = now_ms() + ms;
		caller->gone = false;
		if (pthread_create(&caller->thread, NULL, call, caller))
			abort();
	}
	for (int i = 0; i < BLOCKING_THREADS; i++) {
		pthread_join(callers->callers[i].thread, NULL);
		gone |= callers->callers[i].gone;
	}
	return !gone;
}

static void drain_callers(struct part *part)
{
	(void)part; /* all calls have returned */
}

static void close_callers(struct part *part)
{
	struct callers *callers = part->state;

	mad_rpc_close_port(callers->port);
	free(callers);
}

const struct part_kind blocking_part = {"blocking", open_callers, work_callers, drain_callers,
					close_callers};
