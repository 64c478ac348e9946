/* SPDX-License-Identifier: BSD-2-Clause */

/* Asynchronous requests: transactions and callbacks. */

#include "base/export.h"
#include "calls/alarm.h"
#include "calls/port.h"
#include "engine/pool.h"
#include "engine/request.h"
#include "mad/gmp.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

/*
 * What one mad_async_process() does at most: so many messages are read, timers handled,
 * requests sent and callbacks called.
 */
#define BATCH 64

struct mad_async {
	struct owner owner;
	struct port_client client;
	struct ibmad_port *port;
	struct pool pool;      /* of its requests */
	struct list completed; /* requests that are to be called back */
	unsigned open;         /* requests that were not called back */
	unsigned queued;       /* of those, requests that were never sent */
	unsigned users;        /* calls that have not returned */
	unsigned serving;      /* of those, calls that send what can be sent */
	bool processing;       /* a thread calls back, or waits in mad_async_run() */
	bool ending;
	pthread_t processor;
	pthread_cond_t changed; /* processing, users, or, while ending, completed */
	bool running;           /* a thread is in mad_async_run(), */
	struct waiter runner;   /* and waits as this one */
	struct alarm alarm;
	struct mad_async_stats stats;
	uint64_t rtt_sum_us;
	uint64_t rtt_count;
	uint64_t dropped_before;
};

struct async_request {
	struct pool_entry entry;
	struct transaction transaction;
	mad_async_fn *callback;
	void *arg;
};

static struct async_request *request_of(struct transaction *transaction)
{
	return list_entry(transaction, struct async_request, transaction);
}

static struct mad_async *engine_of(struct transaction *transaction)
{
	return list_entry(transaction->owner, struct mad_async, owner);
}

/* --- what there is to do -------------------------------------------------------- */

/* Whether mad_async_process() would do something that no timer and no message announces. */
static bool has_work(const struct mad_async *engine)
{
	return !list_is_empty(&engine->completed) ||
	       scheduler_can_send(&engine->port->scheduler) ||
	       (engine->port->core.gone && !engine->open);
}

/* The same for one more thread. What other threads do need not be announced. */
static bool needs_thread(const struct mad_async *engine)
{
	return (!engine->processing && !list_is_empty(&engine->completed)) ||
	       (!engine->serving && scheduler_can_send(&engine->port->scheduler)) ||
	       (engine->port->core.gone && !engine->open);
}

/*
 * Keeps up with the state of the port: whoever polls the alarm's descriptors, or waits in
 * mad_async_run(), is woken. A thread that processes looks again before it returns.
 */
static void update(struct mad_async *engine, bool due)
{
	if (engine->running && has_work(engine))
		reader_wake(&engine->port->reader, &engine->runner);
	if (alarm_is_open(&engine->alarm))
		alarm_set(&engine->alarm, needs_thread(engine),
			  scheduler_next(&engine->port->scheduler), due);
}

static void port_changed(struct port_client *client)
{
	update(list_entry(client, struct mad_async, client), false);
}

/* --- the engine owns its transactions ------------------------------------------- */

static void count_news(struct core *core, struct transaction *transaction)
{
	struct mad_async *engine = engine_of(transaction);

	(void)core;
	if (transaction->news & NEWS_TRANSMITTED) {
		engine->stats.sent++;
		if (transaction->transmissions.count == 1)
			engine->queued--;
		else
			engine->stats.retried++;
	}
	if (transaction->news & NEWS_BUSY)
		engine->stats.busy++;
}

static void count_rtt(struct mad_async *engine, uint32_t rtt_us)
{
	struct mad_async_stats *stats = &engine->stats;

	if (!engine->rtt_count || rtt_us < stats->rtt_min_us)
		stats->rtt_min_us = rtt_us;
	if (rtt_us > stats->rtt_max_us)
		stats->rtt_max_us = rtt_us;
	engine->rtt_sum_us += rtt_us;
	engine->rtt_count++;
}

/* The request is called back in the next mad_async_process(). */
static void add_completed(struct mad_async *engine, struct transaction *transaction)
{
	if (!transaction->transmissions.count)
		engine->queued--;
	if (transaction->responded)
		count_rtt(engine, transaction->transmissions.rtt_us);
	else if (transaction->error == ETIMEDOUT)
		engine->stats.timed_out++;
	list_add_last(&engine->completed, &transaction->queue);
	if (engine->ending)
		pthread_cond_broadcast(&engine->changed);
	update(engine, false);
}

static void complete(struct core *core, struct transaction *transaction)
{
	scheduler_leave(&port_of_core(core)->scheduler, transaction);
	add_completed(engine_of(transaction), transaction);
}

static void send_again(struct core *core, struct transaction *transaction)
{
	scheduler_again(&port_of_core(core)->scheduler, transaction);
	update(engine_of(transaction), false);
}

static void set_timer(struct core *core, struct transaction *transaction)
{
	struct scheduler *scheduler = &port_of_core(core)->scheduler;
	struct mad_async *engine = engine_of(transaction);

	scheduler_set_timer(scheduler, transaction);
	/* it waits until what was the next timer before */
	if (engine->running && scheduler_next(scheduler) == transaction->timer.at)
		reader_wake(&engine->port->reader, &engine->runner);
}

static void withdraw(struct core *core, struct transaction *transaction)
{
	scheduler_withdraw(&port_of_core(core)->scheduler, transaction);
}

static const struct owner_ops owner_ops = {
	.completed = complete,
	.again = send_again,
	.timer_changed = set_timer,
	.withdraw = withdraw,
	.news = count_news,
};

/* --- forks ---------------------------------------------------------------------- */

/* A request of the parent is given up. */
static void give_up(struct mad_async *engine, struct async_request *request)
{
	struct transaction *transaction = &request->transaction;

	if (transaction->state != TRANSACTION_DONE) {
		transaction->state = TRANSACTION_DONE;
		transaction->error = ECANCELED;
		transaction->responded = false;
	}
	transaction->writing = false;
	transaction->destination = NULL;
	list_add_last(&engine->completed, &transaction->queue);
	engine->open++;
	engine->port->scheduler.open++;
}

/* A request that a thread of the parent is calling back just now is that thread's. */
static void forked(struct port_client *client)
{
	struct mad_async *engine = list_entry(client, struct mad_async, client);
	struct async_request *request;
	uint32_t place = 0;

	/* the parent's descriptors would wake the parent */
	alarm_close(&engine->alarm);
	list_init(&engine->completed);
	pthread_cond_init(&engine->changed, NULL);
	engine->processing = false;
	engine->ending = false;
	engine->users = 0;
	engine->serving = 0;
	engine->running = false;
	engine->open = 0;
	engine->queued = 0;
	while ((request = pool_next(&engine->pool, &place)))
		if (request->callback)
			give_up(engine, request);
}

/* --- life ----------------------------------------------------------------------- */

static void free_engine(struct port_client *client)
{
	struct mad_async *engine = list_entry(client, struct mad_async, client);

	pthread_cond_destroy(&engine->changed);
	free(engine);
}

static const struct port_client_ops client_ops = {
	.changed = port_changed,
	.forked = forked,
	.free = free_engine,
};

/* A thread may still be on its way into a call for an engine that was destroyed. */
static struct mad_async *reuse(struct ibmad_port *port)
{
	struct list *retired = list_first(&port->retired);

	if (!retired)
		return NULL;
	list_remove(retired);
	return list_entry(retired, struct mad_async, client.all);
}

/* Locked. */
static void init_engine(struct mad_async *engine, struct ibmad_port *port)
{
	*engine = (struct mad_async){
		.owner.ops = &owner_ops,
		.client.ops = &client_ops,
		.port = port,
		.dropped_before = port->core.dropped,
	};
	pool_init(&engine->pool, sizeof(struct async_request));
	list_init(&engine->completed);
	alarm_init(&engine->alarm);
	pthread_cond_init(&engine->changed, NULL);
	list_add_last(&port->clients, &engine->client.all);
}

EXPORT struct mad_async *mad_async_create(struct ibmad_port *port)
{
	struct mad_async *engine;
	int cancel_state;

	if (!port) {
		errno = EINVAL;
		return NULL;
	}
	cancel_state = port_enter(port);
	engine = reuse(port);
	if (!engine)
		engine = malloc(sizeof(*engine));
	if (engine)
		init_engine(engine, port);
	port_leave(port, cancel_state);
	return engine;
}

/* As port_enter() and port_leave(): the engine is not freed between. */
static int enter(struct mad_async *engine)
{
	int cancel_state = port_enter(engine->port);

	engine->users++;
	return cancel_state;
}

static void leave(struct mad_async *engine, int cancel_state)
{
	engine->users--;
	if (engine->ending)
		pthread_cond_broadcast(&engine->changed);
	port_leave(engine->port, cancel_state);
}

/* --- callbacks ------------------------------------------------------------------ */

static void call_back(struct mad_async *engine, struct async_request *request,
		      mad_async_fn *callback)
{
	struct transaction *transaction = &request->transaction;
	struct mad_reply reply = {
		.error = -transaction->error,
		.status = transaction->status,
		.rtt_us = transaction->transmissions.rtt_us,
		.attempts = transaction->transmissions.count,
	};

	if (transaction->responded) {
		reply.mad = transaction_mad(transaction);
		reply.length = (size_t)transaction->length;
		if (reply.length > transaction->dataoffs) {
			reply.data = reply.mad + transaction->dataoffs;
			reply.data_size = reply.length - transaction->dataoffs;
		}
	}
	callback(engine, &reply, request->arg);
}

/* Calls back completed requests, "most" at most; the lock is dropped meanwhile. Returns how
 * many. */
static int call_back_some(struct mad_async *engine, unsigned most)
{
	struct ibmad_port *port = engine->port;
	struct async_request *request;
	mad_async_fn *callback;
	struct list *first;
	int count = 0;

	/* a callback may take its time: another thread leads meanwhile */
	if (!list_is_empty(&engine->completed))
		reader_pass(&port->reader);
	while (most-- && (first = list_first(&engine->completed))) {
		request = request_of(list_entry(first, struct transaction, queue));
		list_remove(first);
		engine->stats.completed++;
		callback = request->callback;
		request->callback = NULL;
		core_unlock(&port->core);
		call_back(engine, request, callback);
		transaction_fini(&request->transaction);
		core_lock(&port->core);
		pool_put(&engine->pool, request);
		engine->open--;
		port->scheduler.open--;
		count++;
	}
	if (count)
		scheduler_shrink(&port->scheduler);
	return count;
}

static bool is_processor(const struct mad_async *engine)
{
	return engine->processing && pthread_equal(engine->processor, pthread_self());
}

static void begin_processing(struct mad_async *engine)
{
	engine->processing = true;
	engine->processor = pthread_self();
}

static void end_processing(struct mad_async *engine)
{
	engine->processing = false;
	pthread_cond_broadcast(&engine->changed);
}

static void cancel_all(struct mad_async *engine)
{
	struct async_request *request;
	uint32_t place = 0;

	while ((request = pool_next(&engine->pool, &place)))
		if (request->callback)
			core_cancel(&engine->port->core, &request->transaction, ECANCELED);
}

/* Waits until no other thread is in a call for the engine, and all requests are called back. */
static void wait_for_all(struct mad_async *engine)
{
	struct core *core = &engine->port->core;

	engine->ending = true;
	pthread_cond_broadcast(&engine->changed);
	cancel_all(engine);
	while (engine->processing)
		pthread_cond_wait(&engine->changed, &core->lock);
	begin_processing(engine);
	/* another thread may be writing a request just now, or be about to notice the end */
	while (engine->open || engine->users > 1)
		if (!call_back_some(engine, BATCH))
			pthread_cond_wait(&engine->changed, &core->lock);
}

EXPORT void mad_async_destroy(struct mad_async *async)
{
	struct ibmad_port *port;
	int cancel_state;

	if (!async)
		return;
	port = async->port;
	cancel_state = enter(async);
	if (is_processor(async)) {
		leave(async, cancel_state); /* a callback still needs the engine */
		return;
	}
	wait_for_all(async);
	alarm_close(&async->alarm);
	pool_free(&async->pool);
	list_remove(&async->client.all);
	list_add_last(&port->retired, &async->client.all);
	/* what the engine held up can go on */
	port->core.hooks->progress(&port->core);
	port->users--;
	if (port->closing)
		pthread_cond_broadcast(&port->unused);
	port_release(port);
	pthread_setcancelstate(cancel_state, NULL);
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
	return request_init(&request->transaction, &engine->port->core.link,
			    &engine->port->core.options, (ib_rpc_t *)(void *)&copy,
			    &destination, NULL, payload, size);
}

/* Locked. */
static int submit(struct mad_async *engine, const ib_rpc_t *rpc, const ib_portid_t *dport,
		  const void *payload, size_t size, mad_async_fn *callback, void *arg,
		  uint64_t *id)
{
	struct scheduler *scheduler = &engine->port->scheduler;
	struct async_request *request;
	int ret;

	if (engine->port->core.gone || engine->ending)
		return engine->port->core.gone ? -engine->port->core.gone : -ECANCELED;
	request = pool_get(&engine->pool);
	if (!request)
		return -ENOMEM;
	ret = scheduler_reserve(scheduler);
	if (!ret)
		ret = init_request(engine, request, rpc, dport, payload, size);
	if (ret) {
		pool_put(&engine->pool, request);
		return ret;
	}
	request->transaction.owner = &engine->owner;
	request->callback = callback;
	request->arg = arg;
	if (id)
		*id = pool_id(&request->entry);
	engine->open++;
	engine->queued++;
	engine->stats.submitted++;
	scheduler->open++;
	scheduler_add(scheduler, &request->transaction);
	scheduler_send(scheduler, BATCH);
	return 0;
}

EXPORT int mad_async_submit(struct mad_async *async, const ib_rpc_t *rpc,
			    const ib_portid_t *dport, const void *payload, size_t size,
			    mad_async_fn *callback, void *arg, uint64_t *id)
{
	int cancel_state, ret;

	if (!async || !rpc || !dport || !callback)
		return -EINVAL;
	cancel_state = enter(async);
	ret = submit(async, rpc, dport, payload, size, callback, arg, id);
	leave(async, cancel_state);
	return ret;
}

EXPORT int mad_async_cancel(struct mad_async *async, uint64_t id)
{
	struct async_request *request;
	int cancel_state, ret = -ENOENT;

	if (!async)
		return -EINVAL;
	cancel_state = enter(async);
	request = pool_find(&async->pool, id);
	if (request && request->callback && request->transaction.state != TRANSACTION_DONE) {
		core_cancel(&async->port->core, &request->transaction, ECANCELED);
		ret = 0;
	}
	leave(async, cancel_state);
	return ret;
}

/* --- processing ----------------------------------------------------------------- */

/*
 * Does what there is to do for the port. Messages are read before timers are judged: a response
 * may lie unread since before its timer was due.
 */
static void serve(struct mad_async *engine, bool read)
{
	struct ibmad_port *port = engine->port;
	int64_t now = clock_us();

	engine->serving++;
	if (reader_is_behind(&port->reader, scheduler_next(&port->scheduler), now))
		read = true;
	if (read && !port->core.gone)
		reader_read(&port->reader, BATCH, now);
	scheduler_expire(&port->scheduler, reader_time(&port->reader, now), BATCH);
	/* sending may take its time: another thread leads meanwhile */
	if (scheduler_can_send(&port->scheduler))
		reader_pass(&port->reader);
	scheduler_send(&port->scheduler, BATCH);
	engine->serving--;
	/* callbacks may follow, which take their time: what is left is for other threads */
	port->core.hooks->progress(&port->core);
}

EXPORT int mad_async_process(struct mad_async *async)
{
	int cancel_state, count = 0;

	if (!async)
		return -EINVAL;
	cancel_state = enter(async);
	if (async->ending) {
		count = -ECANCELED;
	} else if (!async->processing) {
		begin_processing(async);
		serve(async, true);
		count = call_back_some(async, BATCH);
		end_processing(async);
	} else if (!is_processor(async)) {
		/* another thread may be in a callback: the port does not wait for that */
		serve(async, true);
	}
	if (!count && !async->open && async->port->core.gone)
		count = -async->port->core.gone;
	update(async, true);
	leave(async, cancel_state);
	return count;
}

/* Waits until no other thread processes; false if the engine is destroyed meanwhile. */
static bool wait_for_processing(struct mad_async *engine)
{
	while (engine->processing && !engine->ending)
		pthread_cond_wait(&engine->changed, &engine->port->core.lock);
	return !engine->ending;
}

/* Waits for messages and for the next timer; 1 ms for one that is due, but not judged yet. */
static void wait_for_next(struct mad_async *engine)
{
	struct ibmad_port *port = engine->port;
	int64_t next = scheduler_next(&port->scheduler), now = clock_us();

	reader_wait(&port->reader, &engine->runner, next > now ? next : now + 1000, now);
}

/* Processes and waits until no request is open. Returns how many requests were called back. */
static int run(struct mad_async *engine)
{
	struct ibmad_port *port = engine->port;
	bool read = true;
	int count = 0;

	begin_processing(engine);
	reader_begin(&port->reader, &engine->runner);
	engine->running = true;
	for (;;) {
		serve(engine, read);
		count += call_back_some(engine, BATCH);
		if (!engine->open)
			break;
		read = has_work(engine);
		if (!read)
			wait_for_next(engine);
	}
	engine->running = false;
	reader_end(&port->reader, &engine->runner);
	end_processing(engine);
	return count;
}

EXPORT int mad_async_run(struct mad_async *async)
{
	int cancel_state, count = 0;

	if (!async)
		return -EINVAL;
	cancel_state = enter(async);
	if (is_processor(async))
		count = -EDEADLK;
	else if (wait_for_processing(async))
		count = run(async);
	leave(async, cancel_state);
	return count;
}

EXPORT int mad_async_fd(const struct mad_async *async)
{
	return async ? async->port->core.link.fd : -EINVAL;
}

/* Opens one of the alarm's descriptors, or returns it. */
static int alarm_fd(struct mad_async *engine, bool with_handle)
{
	struct core *core = &engine->port->core;
	int cancel_state = enter(engine), fd;

	if (core->gone || engine->ending)
		fd = core->gone ? -core->gone : -ECANCELED;
	else if (with_handle && !reader_has_descriptor(&engine->port->reader))
		fd = -EOPNOTSUPP;
	else if (with_handle)
		fd = alarm_poll_fd(&engine->alarm, core->link.fd);
	else
		fd = alarm_wake_fd(&engine->alarm);
	update(engine, true);
	leave(engine, cancel_state);
	return fd;
}

EXPORT int mad_async_wake_fd(struct mad_async *async)
{
	return async ? alarm_fd(async, false) : -EINVAL;
}

EXPORT int mad_async_poll_fd(struct mad_async *async)
{
	return async ? alarm_fd(async, true) : -EINVAL;
}

EXPORT int mad_async_timeout(struct mad_async *async)
{
	int cancel_state, ms;
	int64_t next;

	if (!async)
		return -EINVAL;
	cancel_state = enter(async);
	next = scheduler_next(&async->port->scheduler);
	if (async->port->core.gone && !async->open)
		ms = -async->port->core.gone;
	else if (needs_thread(async))
		ms = 0;
	else
		ms = next == NEVER ? -1 : ms_until(next, clock_us(), INT_MAX);
	leave(async, cancel_state);
	return ms;
}

EXPORT int mad_async_get_stats(struct mad_async *async, struct mad_async_stats *stats,
			       size_t size)
{
	struct mad_async_stats now;
	struct core *core;
	int cancel_state;

	if (!async || !stats)
		return -EINVAL;
	core = &async->port->core;
	cancel_state = enter(async);
	now = async->stats;
	now.dropped = core->dropped - async->dropped_before;
	now.waiting = async->queued;
	now.under_way = (uint32_t)(now.submitted - now.completed) - async->queued;
	if (async->rtt_count)
		now.rtt_mean_us = (uint32_t)(async->rtt_sum_us / async->rtt_count);
	now.smp_window = core->windows[MAD_WINDOW_SMP].size;
	now.gmp_window = core->windows[MAD_WINDOW_GMP].size;
	leave(async, cancel_state);
	memset(stats, 0, size);
	memcpy(stats, &now, size < sizeof(now) ? size : sizeof(now));
	return 0;
}
