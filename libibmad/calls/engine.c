/* SPDX-License-Identifier: BSD-2-Clause */

#include "calls/engine.h"

#include <errno.h>
#include <stdlib.h>

static struct mad_async *engine_of(struct transaction *transaction)
{
	return list_entry(transaction->owner, struct mad_async, owner);
}

/* --- what there is to do -------------------------------------------------------- */

bool engine_is_over(const struct mad_async *engine)
{
	return engine->port->core.gone && !engine->open;
}

bool engine_has_work(const struct mad_async *engine)
{
	return !list_is_empty(&engine->completed) || !list_is_empty(&engine->arrived) ||
	       !list_is_empty(&engine->refused) ||
	       scheduler_can_send(&engine->port->scheduler) || engine_is_over(engine) ||
	       engine_is_stopped(engine);
}

bool engine_needs_thread(const struct mad_async *engine)
{
	return (!engine->processing &&
		(!list_is_empty(&engine->completed) || !list_is_empty(&engine->arrived))) ||
	       (!engine->serving && (scheduler_can_send(&engine->port->scheduler) ||
				     !list_is_empty(&engine->refused))) ||
	       engine_is_over(engine);
}

/* A thread that processes looks again before it returns. */
void engine_update(struct mad_async *engine, bool due)
{
	if (engine->running && engine_has_work(engine))
		reader_wake(&engine->port->reader, &engine->runner);
	if (alarm_is_open(&engine->alarm))
		alarm_set(&engine->alarm, engine_needs_thread(engine), engine_next(engine),
			  due);
}

static void port_changed(struct port_client *client)
{
	engine_update(list_entry(client, struct mad_async, client), false);
}

/* --- timers --------------------------------------------------------------------- */

static int64_t timer_at(const struct mad_async *engine, const struct engine_timer *timer)
{
	return engine->port->core.gone && timer->at != NEVER ? 0 : timer->at;
}

int64_t engine_next(const struct mad_async *engine)
{
	int64_t next = scheduler_next(&engine->port->scheduler), at;

	list_for_each (entry, &engine->timers) {
		at = timer_at(engine, list_entry(entry, struct engine_timer, all));
		if (at < next)
			next = at;
	}
	return next;
}

void engine_timer_add(struct mad_async *engine, struct engine_timer *timer)
{
	list_add_last(&engine->timers, &timer->all);
	timer->at = NEVER;
}

void engine_timer_remove(struct engine_timer *timer)
{
	list_remove(&timer->all);
}

void engine_timer_set(struct mad_async *engine, struct engine_timer *timer, int64_t at)
{
	timer->at = at;
	/* the thread sleeps until the timer that was the next one before */
	if (engine->running && at != NEVER)
		reader_wake(&engine->port->reader, &engine->runner);
}

static struct engine_timer *due_timer(const struct mad_async *engine, int64_t now)
{
	list_for_each (entry, &engine->timers) {
		struct engine_timer *timer = list_entry(entry, struct engine_timer, all);

		if (timer_at(engine, timer) <= now)
			return timer;
	}
	return NULL;
}

void engine_run_timers(struct mad_async *engine)
{
	struct core *core = &engine->port->core;
	struct engine_timer *timer;
	int64_t now;

	if (list_is_empty(&engine->timers))
		return;
	now = clock_us();
	for (unsigned i = 0;
	     i < BATCH && engine_may_call(engine) && (timer = due_timer(engine, now)); i++) {
		timer->at = NEVER;
		core_unlock(core);
		timer->due(timer);
		core_lock(core);
	}
}

void engine_end_timers(struct mad_async *engine)
{
	struct core *core = &engine->port->core;
	struct list *first;

	while ((first = list_pop(&engine->timers))) {
		struct engine_timer *timer = list_entry(first, struct engine_timer, all);

		core_unlock(core);
		timer->ended(timer);
		core_lock(core);
	}
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
	engine_update(engine, false);
}

static void complete(struct core *core, struct transaction *transaction)
{
	scheduler_leave(&port_of_core(core)->scheduler, transaction);
	add_completed(engine_of(transaction), transaction);
}

static void send_again(struct core *core, struct transaction *transaction)
{
	scheduler_again(&port_of_core(core)->scheduler, transaction);
	/* a blocking call may have sent the request: it updates no engine after that */
	engine_update(engine_of(transaction), false);
}

static void set_timer(struct core *core, struct transaction *transaction)
{
	struct scheduler *scheduler = &port_of_core(core)->scheduler;

	scheduler_set_timer(scheduler, transaction);
	/*
	 * Waiting threads sleep until the former next timer. Threads of other engines and of
	 * blocking calls are woken, too, because perhaps no thread runs this engine.
	 */
	if (scheduler_next(scheduler) == transaction->timer.at)
		reader_wake_for(&port_of_core(core)->reader, transaction->timer.at);
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
	transaction->destination = NULL;
	transaction->account = (struct flow_account){0};
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
	list_init(&engine->arrived);
	list_init(&engine->refused);
	engine->servers = 0;
	clock_cond_init(&engine->changed);
	engine->processing = false;
	engine->ending = false;
	engine->users = 0;
	engine->serving = 0;
	engine->running = false;
	engine->open = 0;
	engine->queued = 0;
	source_init(&engine->source, TURN);
	pool_repair(&engine->pool);
	if (engine->sa)
		engine->sa->forked(engine->sa);
	while ((request = pool_next(&engine->pool, &place)))
		if (request->callback)
			give_up(engine, request);
	engine->stats.completed = engine->stats.submitted - engine->open;
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

struct mad_async *engine_reuse(struct ibmad_port *port)
{
	struct list *retired = list_first(&port->retired);

	if (!retired)
		return NULL;
	list_remove(retired);
	return list_entry(retired, struct mad_async, client.all);
}

void engine_init(struct mad_async *engine, struct ibmad_port *port)
{
	*engine = (struct mad_async){
		.owner.ops = &owner_ops,
		.client.ops = &client_ops,
		.port = port,
		.dropped_before = port->core.dropped,
	};
	engine->owner.source = &engine->source;
	source_init(&engine->source, TURN);
	pool_init(&engine->pool, sizeof(struct async_request));
	list_init(&engine->completed);
	list_init(&engine->arrived);
	list_init(&engine->refused);
	list_init(&engine->timers);
	alarm_init(&engine->alarm);
	clock_cond_init(&engine->changed);
	list_add_last(&port->clients, &engine->client.all);
}

int engine_enter(struct mad_async *engine)
{
	int cancel_state = port_enter(engine->port);

	engine->users++;
	return cancel_state;
}

void engine_leave(struct mad_async *engine, int cancel_state)
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
		.transmissions = transaction->transmissions.count,
		.elapsed_ms = transaction->timed ? transaction->elapsed_ms : 0,
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

int engine_call_back(struct mad_async *engine, unsigned most)
{
	struct ibmad_port *port = engine->port;
	struct async_request *request;
	mad_async_fn *callback;
	struct list *first;
	int count = 0;

	/* a callback may take its time: another thread leads meanwhile */
	if (!list_is_empty(&engine->completed))
		reader_pass(&port->reader);
	while (most-- && engine_may_call(engine) && (first = list_first(&engine->completed))) {
		request = async_request_of(list_entry(first, struct transaction, queue));
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

bool engine_is_processor(const struct mad_async *engine)
{
	return engine->processing && pthread_equal(engine->processor, pthread_self());
}

void engine_begin_processing(struct mad_async *engine)
{
	engine->processing = true;
	engine->processor = pthread_self();
}

void engine_end_processing(struct mad_async *engine)
{
	engine->processing = false;
	pthread_cond_broadcast(&engine->changed);
}
