/* SPDX-License-Identifier: BSD-2-Clause */

/* Asynchronous requests: transactions and callbacks. */

#include "calls/async.h"

#include "base/export.h"
#include "engine/flow.h"
#include "engine/pool.h"
#include "engine/receive.h"
#include "engine/wait.h"
#include "mad/gmp.h"

#include <errno.h>
#include <limits.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* So many answers are read before new requests follow them. */
#define BATCH 32

struct mad_async {
	struct ibmad_port *port;
	struct mad_async *next; /* of the port's */
	struct pool pool;
	struct queue done; /* to be called back */
	unsigned open;     /* requests that were not called back yet */
	bool processing;   /* some thread is, and calls back */
	unsigned waiting;  /* threads that are to process after it */
	bool ending;
	pthread_t processor;
	pthread_cond_t processed; /* no thread is any more; or, ending, something is done */
	struct waiter *runner;    /* it waits in mad_async_run() */
	int wake_fd;              /* -1: nobody asked for it */
	bool awake;               /* it is readable */
	int64_t told;             /* who waits for it looks again then, by himself */
	bool missed;              /* he was not told of an earlier one while it was processed */
	struct mad_async_stats stats;
	uint64_t rtt_sum_us;
	uint64_t rtt_count;
	uint64_t dropped_before;
};

/* --- what comes from below ------------------------------------------------------ */

/*
 * There is something to do for the engine. Who processes without waiting looks once more
 * when he is through.
 */
static void engine_wake(struct mad_async *engine)
{
	if (engine->processing) {
		waiter_wake(engine->runner);
		return;
	}
	if (engine->wake_fd < 0 || engine->awake)
		return;
	engine->awake = true;
	eventfd_write(engine->wake_fd, 1);
}

void engine_timer_set(struct mad_async *engine, int64_t at)
{
	if (at >= engine->told)
		return;
	engine->told = at;
	engine->missed = engine->processing;
	engine_wake(engine);
}

void engine_deliver(struct mad_async *engine, struct transaction *transaction)
{
	struct mad_async_stats *stats = &engine->stats;

	if (transaction->answered) {
		if (!engine->rtt_count || transaction->rtt < stats->rtt_min_us)
			stats->rtt_min_us = transaction->rtt;
		if (transaction->rtt > stats->rtt_max_us)
			stats->rtt_max_us = transaction->rtt;
		engine->rtt_sum_us += transaction->rtt;
		engine->rtt_count++;
	} else if (transaction->error == ETIMEDOUT) {
		stats->timed_out++;
	}
	transaction->next = NULL;
	*engine->done.last = transaction;
	engine->done.last = &transaction->next;
	if (engine->ending)
		pthread_cond_broadcast(&engine->processed);
	engine_wake(engine);
}

void engine_count_sent(struct mad_async *engine, const struct transaction *transaction)
{
	engine->stats.sent++;
	if (transaction->sendings)
		engine->stats.retried++;
}

void engine_count_busy(struct mad_async *engine)
{
	engine->stats.busy++;
}

void engines_wake_for_work(struct ibmad_port *port)
{
	if (!port->engines || !flow_can_send(port))
		return;
	for (struct mad_async *engine = port->engines; engine; engine = engine->next)
		if (engine->open)
			engine_wake(engine);
}

/*
 * The parent's requests are not this process's: they are given up, not answered. What a
 * thread of the parent calls back just now is that thread's.
 */
static void give_up(struct mad_async *engine)
{
	struct async_request *request;
	struct transaction *transaction;

	engine->done = (struct queue){.last = &engine->done.first};
	engine->processing = false;
	engine->waiting = 0;
	engine->ending = false;
	engine->runner = NULL;
	engine->open = 0;
	pthread_cond_init(&engine->processed, NULL);
	for (uint32_t i = 0; (request = pool_at(&engine->pool, i)); i++) {
		transaction = &request->transaction;
		if (!request->callback)
			continue;
		if (transaction->state != TRANSACTION_DONE) {
			transaction->state = TRANSACTION_DONE;
			transaction->error = ECANCELED;
			transaction->answered = false;
			transaction->sending = false;
			transaction->destination = NULL;
			transaction->timer.place = 0;
		}
		engine->open++;
		engine->port->requests_open++;
		engine_deliver(engine, transaction);
	}
}

void engines_after_fork(struct ibmad_port *port)
{
	for (struct mad_async *engine = port->engines; engine; engine = engine->next) {
		/* the parent's descriptor would wake the parent */
		engine->wake_fd = -1;
		give_up(engine);
	}
}

/* --- life ----------------------------------------------------------------------- */

EXPORT struct mad_async *mad_async_create(struct ibmad_port *port)
{
	struct mad_async *engine;

	if (!port) {
		errno = EINVAL;
		return NULL;
	}
	engine = calloc(1, sizeof(*engine));
	if (!engine)
		return NULL;
	engine->port = port;
	engine->done.last = &engine->done.first;
	engine->wake_fd = -1;
	engine->told = NEVER;
	pthread_cond_init(&engine->processed, NULL);
	port_enter(port);
	engine->dropped_before = port->dropped;
	engine->next = port->engines;
	port->engines = engine;
	port_leave(port);
	return engine;
}

static void call_back(struct mad_async *engine, struct async_request *request,
		      mad_async_fn *callback)
{
	struct transaction *transaction = &request->transaction;
	struct mad_reply reply = {
		.error = -transaction->error,
		.status = transaction->status,
		.rtt_us = transaction->rtt,
		.attempts = transaction->sendings,
	};

	if (transaction->answered) {
		reply.mad = umad_get_mad(transaction_buffer(transaction));
		reply.length = (size_t)transaction->length;
		if (reply.length > transaction->dataoffs) {
			reply.data = reply.mad + transaction->dataoffs;
			reply.data_size = reply.length - transaction->dataoffs;
		}
	}
	callback(engine, &reply, request->arg);
}

/* Calls back what is done; the lock is dropped meanwhile. Returns how many. */
static int call_back_all(struct mad_async *engine)
{
	struct async_request *request;
	mad_async_fn *callback;
	int count = 0;

	while ((request = (struct async_request *)(void *)engine->done.first)) {
		engine->done.first = request->transaction.next;
		if (!engine->done.first)
			engine->done.last = &engine->done.first;
		engine->stats.completed++;
		callback = request->callback;
		request->callback = NULL;
		port_unlock(engine->port);
		call_back(engine, request, callback);
		transaction_fini(&request->transaction);
		port_lock(engine->port);
		pool_put(&engine->pool, request);
		engine->open--;
		engine->port->requests_open--;
		count++;
	}
	return count;
}

static void cancel_request(struct ibmad_port *port, struct transaction *transaction)
{
	if (transaction->state == TRANSACTION_NEW)
		flow_cancel(port, transaction, ECANCELED);
	else
		transaction_finish(port, transaction, ECANCELED);
}

static void cancel_all(struct mad_async *engine)
{
	struct async_request *request;

	flow_cancel_engine(engine->port, engine, ECANCELED);
	for (uint32_t i = 0; (request = pool_at(&engine->pool, i)); i++)
		if (request->callback)
			transaction_finish(engine->port, &request->transaction, ECANCELED);
}

static bool is_processor(const struct mad_async *engine)
{
	return engine->processing && pthread_equal(engine->processor, pthread_self());
}

static void take_over(struct mad_async *engine)
{
	engine->processing = true;
	engine->processor = pthread_self();
}

/* Has this thread process; false when another does, and it need not be waited for. */
static bool begin_processing(struct mad_async *engine)
{
	if (engine->processing)
		return false;
	take_over(engine);
	return true;
}

/* Waits for its turn to process; false when the engine has come to its end meanwhile. */
static bool wait_for_processing(struct mad_async *engine)
{
	engine->waiting++;
	while (engine->processing && !engine->ending)
		pthread_cond_wait(&engine->processed, &engine->port->lock);
	engine->waiting--;
	if (!engine->ending)
		take_over(engine);
	else
		pthread_cond_broadcast(&engine->processed);
	return !engine->ending;
}

static void end_processing(struct mad_async *engine)
{
	engine->processing = false;
	pthread_cond_broadcast(&engine->processed);
}

EXPORT void mad_async_destroy(struct mad_async *async)
{
	struct mad_async **at;
	struct ibmad_port *port;

	if (!async)
		return;
	port = async->port;
	port_enter(port);
	if (is_processor(async)) {
		port_leave(port); /* from a callback: it would be gone when that returns */
		return;
	}
	async->ending = true;
	pthread_cond_broadcast(&async->processed);
	cancel_all(async);
	while (async->processing)
		pthread_cond_wait(&async->processed, &port->lock);
	take_over(async);
	/* another thread may be writing one just now, or be about to notice the end */
	while (async->open || async->waiting)
		if (!call_back_all(async))
			pthread_cond_wait(&async->processed, &port->lock);
	for (at = &port->engines; *at != async; at = &(*at)->next)
		;
	*at = async->next;
	if (async->wake_fd >= 0)
		close(async->wake_fd);
	pthread_cond_destroy(&async->processed);
	pool_free(&async->pool);
	free(async);
	engines_wake_for_work(port);
	port->users--;
	if (port->closing)
		pthread_cond_broadcast(&port->unused);
	port_release(port);
}

/* --- requests ------------------------------------------------------------------- */

/* The caller's structures stay as they are. */
static int init_request(struct mad_async *engine, struct async_request *request,
			const ib_rpc_t *rpc, const ib_portid_t *dport, const void *payload,
			size_t size)
{
	ib_portid_t destination = *dport;
	ib_rpc_cc_t copy = {0};

	if ((rpc->mgtclass & 0xff) == IB_CC_CLASS)
		copy = *(const ib_rpc_cc_t *)(const void *)rpc;
	else
		memcpy(&copy, rpc, sizeof(*rpc));
	copy.trid = 0;
	complete_address(&destination, rpc->mgtclass & 0xff);
	return transaction_init(&request->transaction, engine->port, (ib_rpc_t *)(void *)&copy,
				&destination, NULL, payload, size);
}

/* Locked. */
static int submit(struct mad_async *engine, const ib_rpc_t *rpc, const ib_portid_t *dport,
		  const void *payload, size_t size, mad_async_fn *callback, void *arg,
		  uint64_t *id)
{
	struct ibmad_port *port = engine->port;
	struct async_request *request;
	int ret;

	if (port->gone || engine->ending)
		return port->gone ? -port->gone : -ECANCELED;
	request = pool_get(&engine->pool);
	if (!request)
		return -ENOMEM;
	ret = deadlines_reserve(&port->deadlines, port->requests_open + 1);
	if (!ret)
		ret = init_request(engine, request, rpc, dport, payload, size);
	if (ret) {
		pool_put(&engine->pool, request);
		return ret;
	}
	request->transaction.asynchronous = true;
	request->transaction.owner.engine = engine;
	request->callback = callback;
	request->arg = arg;
	if (id)
		*id = pool_id(request);
	engine->open++;
	port->requests_open++;
	engine->stats.submitted++;
	flow_add(port, &request->transaction);
	flow_send(port);
	return 0;
}

EXPORT int mad_async_submit(struct mad_async *async, const ib_rpc_t *rpc,
			    const ib_portid_t *dport, const void *payload, size_t size,
			    mad_async_fn *callback, void *arg, uint64_t *id)
{
	struct ibmad_port *port;
	int ret;

	if (!async || !rpc || !dport || !callback)
		return -EINVAL;
	port = async->port;
	port_enter(port);
	ret = submit(async, rpc, dport, payload, size, callback, arg, id);
	port_leave(port);
	return ret;
}

EXPORT int mad_async_cancel(struct mad_async *async, uint64_t id)
{
	struct async_request *request;
	int ret = -ENOENT;

	if (!async)
		return -EINVAL;
	port_enter(async->port);
	request = pool_find(&async->pool, id);
	if (request && request->transaction.state != TRANSACTION_DONE) {
		cancel_request(async->port, &request->transaction);
		ret = 0;
	}
	port_leave(async->port);
	return ret;
}

/* --- processing ----------------------------------------------------------------- */

static void clear_wake_fd(struct mad_async *engine)
{
	eventfd_t count;

	if (!engine->awake)
		return;
	engine->awake = false;
	eventfd_read(engine->wake_fd, &count);
}

/* Reads some answers, if no other thread does. Returns whether there may be more. */
static bool read_batch(struct ibmad_port *port)
{
	int count = 0;

	if (port->being_read || port->gone)
		return false;
	port->being_read = true;
	while (count < BATCH && !port->gone && receive_message(port))
		count++;
	port->being_read = false;
	wait_pass(port);
	return count == BATCH;
}

/* What there is to do for a port; returns whether there may be more. */
static bool serve(struct ibmad_port *port)
{
	bool more = read_batch(port);

	flow_expire(port);
	flow_send(port);
	return more;
}

/* Locked, and it is this thread that processes. */
static int process(struct mad_async *engine)
{
	int count = 0;
	bool more;

	clear_wake_fd(engine);
	do {
		more = serve(engine->port);
		count += call_back_all(engine);
	} while (more || flow_can_send(engine->port));
	return count;
}

/* In the end: what others have brought meanwhile, and left to this thread. */
static void look_again(struct mad_async *engine)
{
	if (engine->missed || engine->done.first)
		engine_wake(engine);
	engine->missed = false;
}

EXPORT int mad_async_process(struct mad_async *async)
{
	int count = 0;

	if (!async)
		return -EINVAL;
	port_enter(async->port);
	if (begin_processing(async)) {
		count = process(async);
		end_processing(async);
		look_again(async);
	} else if (!is_processor(async)) {
		/* while another thread is busy with a callback, the port is not to wait */
		clear_wake_fd(async);
		while (serve(async->port))
			;
	}
	port_leave(async->port);
	return count;
}

EXPORT int mad_async_run(struct mad_async *async)
{
	struct ibmad_port *port;
	struct waiter waiter;
	int count = 0;

	if (!async)
		return -EINVAL;
	port = async->port;
	port_enter(port);
	if (is_processor(async))
		count = -EDEADLK;
	if (count || !wait_for_processing(async)) {
		port_leave(port);
		return count;
	}
	wait_begin(port, &waiter);
	async->runner = &waiter;
	count = process(async);
	while (async->open) {
		async->told = deadlines_next(&port->deadlines);
		wait_step(port, &waiter, async->told, clock_us());
		count += process(async);
	}
	async->runner = NULL;
	wait_end(port, &waiter);
	end_processing(async);
	port_leave(port);
	return count;
}

EXPORT int mad_async_fd(const struct mad_async *async)
{
	return async ? async->port->fd : -EINVAL;
}

EXPORT int mad_async_wake_fd(struct mad_async *async)
{
	int fd;

	if (!async)
		return -EINVAL;
	port_enter(async->port);
	if (async->wake_fd < 0) {
		async->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		async->awake = false;
		if (async->wake_fd >= 0 && async->done.first)
			engine_wake(async);
	}
	fd = async->wake_fd < 0 ? -errno : async->wake_fd;
	port_leave(async->port);
	return fd;
}

EXPORT int mad_async_timeout(struct mad_async *async)
{
	struct ibmad_port *port;
	int64_t next;
	int ms;

	if (!async)
		return -EINVAL;
	port = async->port;
	port_enter(port);
	next = deadlines_next(&port->deadlines);
	async->told = next;
	async->missed = false;
	if ((async->done.first && !async->processing) || flow_can_send(port))
		ms = 0;
	else
		ms = next == NEVER ? -1 : ms_until(next, clock_us(), INT_MAX);
	port_leave(port);
	return ms;
}

EXPORT int mad_async_get_stats(struct mad_async *async, struct mad_async_stats *stats,
			       size_t size)
{
	struct async_request *request;
	struct mad_async_stats now;
	struct ibmad_port *port;

	if (!async || !stats)
		return -EINVAL;
	port = async->port;
	port_enter(port);
	now = async->stats;
	now.dropped = port->dropped - async->dropped_before;
	now.waiting = 0;
	now.under_way = 0;
	for (uint32_t i = 0; (request = pool_at(&async->pool, i)); i++) {
		if (!request->callback)
			continue;
		if (request->transaction.state == TRANSACTION_NEW)
			now.waiting++;
		else
			now.under_way++;
	}
	if (async->rtt_count)
		now.rtt_mean_us = (uint32_t)(async->rtt_sum_us / async->rtt_count);
	now.smp_window = port->windows[MAD_WINDOW_SMP].size;
	now.gmp_window = port->windows[MAD_WINDOW_GMP].size;
	port_leave(port);
	memset(stats, 0, size);
	memcpy(stats, &now, size < sizeof(now) ? size : sizeof(now));
	return 0;
}
