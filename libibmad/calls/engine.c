/* SPDX-License-Identifier: BSD-2-Clause */

/* The state of an engine: its requests, its timers, and their callbacks. */

#include "calls/engine.h"

#include "base/export.h"
#include "base/report.h"
#include "calls/options.h"
#include "mad/layout.h"

#include <errno.h>
#include <stdlib.h>

/* The requests that an engine sends before others have their turn. */
#define TURN 4

struct async_request {
	struct pool_entry entry;
	mad_async_fn *callback; /* NULL: the request is being called back */
	void *arg;
	struct port_request request;
};

static struct mad_async *engine_of(const struct port_request *request)
{
	return list_entry(request->owner, struct mad_async, owner);
}

static struct async_request *async_request_of(struct port_request *request)
{
	return list_entry(request, struct async_request, request);
}

/* --- entering and leaving ------------------------------------------------------- */

static void cancel_operations(struct mad_async *engine);

/*
 * In a child of fork(), after the port has cancelled its requests. The fork may have been in a
 * callback: this thread does not process any more.
 */
static void become_inherited(struct mad_async *engine)
{
	engine->forks = engine->port->forks;
	engine->listener.processing = false;
	cancel_operations(engine);
}

static INLINE int enter(struct mad_async *engine, int *cancel_state)
{
	int ret = port_enter(engine->port, cancel_state);

	if (ret)
		return ret;
	engine->users++;
	if (engine->forks != engine->port->forks)
		become_inherited(engine);
	return 0;
}

/* Why nothing begins on the engine any more: -ECANCELED, or the error of its port; or 0. */
static INLINE int why_ended(const struct mad_async *engine)
{
	if (engine->port->gone)
		return -engine->port->gone;
	return engine->ending ? -ECANCELED : 0;
}

int engine_enter(struct mad_async *engine, int *cancel_state)
{
	return enter(engine, cancel_state);
}

int engine_reenter(struct mad_async *engine)
{
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	port_lock(engine->port);
	engine->port->users++;
	engine->users++;
	return cancel_state;
}

static INLINE void leave(struct mad_async *engine, int cancel_state)
{
	engine->users--;
	if (engine->ending)
		pthread_cond_broadcast(&engine->changed);
	port_tell_engine(engine->port, &engine->listener, false);
	port_leave(engine->port, cancel_state);
}

void engine_leave(struct mad_async *engine, int cancel_state)
{
	leave(engine, cancel_state);
}

/* The lock is released, because a log hook may call the library. */
void engine_report_class_unlocking(struct mad_async *engine, const char *call, int mgmt_class)
{
	port_unlock(engine->port);
	report_class(call, mgmt_class);
	port_lock(engine->port);
}

/* --- timers --------------------------------------------------------------------- */

static void find_next_timer(struct mad_async *engine)
{
	int64_t next = NEVER;

	list_for_each (entry, &engine->timers) {
		int64_t at = list_entry(entry, struct engine_timer, all)->at;

		if (at < next)
			next = at;
	}
	engine->listener.timer_at = next;
}

void engine_timer_add(struct mad_async *engine, struct engine_timer *timer)
{
	list_add_last(&engine->timers, &timer->all);
	timer->at = NEVER;
}

void engine_timer_remove(struct mad_async *engine, struct engine_timer *timer)
{
	list_remove(&timer->all);
	find_next_timer(engine);
}

void engine_timer_set(struct mad_async *engine, struct engine_timer *timer, int64_t at)
{
	timer->at = at;
	find_next_timer(engine);
	/* the thread sleeps until the timer that was the next one before this call */
	if (engine->listener.waiting && at != NEVER)
		waiter_wake(&engine->port->waiters, &engine->listener.waiter);
}

/* If the port has failed, every timer that is set is due. */
static struct engine_timer *due_timer(const struct mad_async *engine, int64_t now)
{
	list_for_each (entry, &engine->timers) {
		struct engine_timer *timer = list_entry(entry, struct engine_timer, all);

		if (timer->at <= now || (engine->port->gone && timer->at != NEVER))
			return timer;
	}
	return NULL;
}

void engine_run_timers_unlocking(struct mad_async *engine)
{
	struct ibmad_port *port = engine->port;
	struct engine_timer *timer;
	int64_t now;

	if (list_is_empty(&engine->timers))
		return;
	now = clock_us();
	for (unsigned i = 0;
	     i < BATCH && engine_may_call(engine) && (timer = due_timer(engine, now)); i++) {
		engine_timer_set(engine, timer, NEVER);
		engine->calling++;
		port_unlock(port);
		timer->due(timer);
		port_lock(port);
		engine->calling--;
	}
}

void engine_end_timers_unlocking(struct mad_async *engine)
{
	struct ibmad_port *port = engine->port;
	struct list *first;

	while ((first = list_pop(&engine->timers))) {
		struct engine_timer *timer = list_entry(first, struct engine_timer, all);

		port_unlock(port);
		timer->ended(timer);
		port_lock(port);
	}
}

/* --- operations ----------------------------------------------------------------- */

/* In the number of an operation; no pool has so many places that a request's has it. */
#define OPERATION (UINT64_C(1) << 31)

struct number {
	struct pool_entry entry;
	struct engine_operation *operation;
};

int operation_begin(struct mad_async *engine, struct engine_operation *operation, uint64_t *id)
{
	struct number *number;
	int error = why_ended(engine);

	if (error)
		return error;
	number = pool_get(&engine->numbers);
	if (!number)
		return -ENOMEM;
	number->operation = operation;
	operation->id = pool_id(&number->entry) | OPERATION;
	operation->cancelled = false;
	operation->later = NULL;
	list_init(&operation->call);
	list_add_last(&engine->operations, &operation->all);
	if (id)
		*id = operation->id;
	return 0;
}

bool operation_end(struct mad_async *engine, struct engine_operation *operation)
{
	pool_put(&engine->numbers, pool_find(&engine->numbers, operation->id & ~OPERATION));
	list_remove(&operation->all);
	list_leave(&operation->call);
	if (engine->ending)
		pthread_cond_broadcast(&engine->changed);
	return operation->cancelled;
}

/* The thread that processes the engine calls a function of the operation. */
static void add_call(struct mad_async *engine, struct engine_operation *operation)
{
	if (list_is_empty(&operation->call))
		list_add_last(&engine->calls, &operation->call);
	engine->listener.calls = true;
	if (engine->ending)
		pthread_cond_broadcast(&engine->changed);
	port_tell_engine(engine->port, &engine->listener, false);
}

void operation_later(struct mad_async *engine, struct engine_operation *operation,
		     void (*later)(struct engine_operation *operation))
{
	operation->later = later;
	add_call(engine, operation);
}

bool engine_operation_end(struct mad_async *engine, struct engine_operation *operation)
{
	int cancel_state = engine_reenter(engine);
	bool cancelled = operation_end(engine, operation);

	engine_leave(engine, cancel_state);
	return cancelled;
}

bool engine_operation_is_cancelled(struct mad_async *engine,
				   const struct engine_operation *operation)
{
	int cancel_state = engine_reenter(engine);
	bool cancelled = operation->cancelled;

	engine_leave(engine, cancel_state);
	return cancelled;
}

static bool cancel_operation(struct mad_async *engine, struct engine_operation *operation)
{
	if (operation->cancelled)
		return false;
	operation->cancelled = true;
	add_call(engine, operation);
	return true;
}

static void cancel_operations(struct mad_async *engine)
{
	list_for_each (entry, &engine->operations)
		cancel_operation(engine, list_entry(entry, struct engine_operation, all));
}

/* A cancelled operation ends by its function "later" if it has one, otherwise by "cancel". */
void engine_run_operations_unlocking(struct mad_async *engine, unsigned most)
{
	struct ibmad_port *port = engine->port;
	struct engine_operation *operation;
	void (*function)(struct engine_operation * operation);
	struct list *first;

	while (most-- && engine_may_call(engine) && (first = list_pop(&engine->calls))) {
		operation = list_entry(first, struct engine_operation, call);
		list_init(&operation->call);
		function = operation->later ? operation->later : operation->cancel;
		operation->later = NULL;
		engine->calling++;
		port_unlock(port);
		function(operation);
		port_lock(port);
		engine->calling--;
	}
	engine->listener.calls = !list_is_empty(&engine->calls);
}

/* --- the engine owns its requests ----------------------------------------------- */

static void sent(struct ibmad_port *port, struct port_request *request)
{
	struct mad_async *engine = engine_of(request);

	(void)port;
	engine->stats.sent++;
	if (request->request.transmissions.count > 1)
		engine->stats.retried++;
	else
		engine->queued--;
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

static void changed(struct ibmad_port *port, struct port_request *request)
{
	int64_t at = request->request.timer_at;

	if (request->request.phase == REQUEST_PAUSED)
		engine_of(request)->stats.busy++;
	timer_start(&port->timers, &request->timer, at);
	/*
	 * Waiting threads sleep until the timer that was the next one before. Threads of other
	 * engines and of blocking calls are woken, too: this engine may have no thread.
	 */
	if (request->timer.place == 1)
		waiters_wake_for(&port->waiters, at);
}

/* The request is called back in the next mad_async_process(). */
static void completed(struct ibmad_port *port, struct port_request *request)
{
	struct mad_async *engine = engine_of(request);

	if (request_has_response(&request->request))
		count_rtt(engine, request->request.rtt_us);
	else if (request->request.error == ETIMEDOUT)
		engine->stats.timed_out++;
	if (request->request.status & IB_MAD_STS_BUSY)
		engine->stats.busy++;
	list_add_last(&engine->listener.completed, &request->entry);
	if (engine->ending)
		pthread_cond_broadcast(&engine->changed);
	port_tell_engine(port, &engine->listener, false);
}

static const struct owner_ops owner_ops = {
	.completed = completed,
	.changed = changed,
	.sent = sent,
};

/* --- callbacks ------------------------------------------------------------------ */

static void call_back(struct mad_async *engine, struct async_request *async,
		      mad_async_fn *callback)
{
	struct request *request = &async->request.request;
	struct mad_reply reply = {
		.error = -request->error,
		.status = request->status,
		.rtt_us = request->rtt_us,
		.transmissions = request->transmissions.count,
		.elapsed_ms = request->elapsed_ms,
	};

	if (request_has_response(request)) {
		reply.mad = request_mad(request);
		reply.length = (size_t)request->length;
		if (reply.length > request->dataoffs) {
			reply.data = reply.mad + request->dataoffs;
			reply.data_size = reply.length - request->dataoffs;
		}
	}
	port_request_debug(&async->request);
	if (reply.error)
		failure_of_reply(&reply, request_mad(request)[1], request->transmissions.method,
				 get16(request_mad(request), 16));
	callback(engine, &reply, async->arg);
	request_fini(request);
}

int engine_call_back_unlocking(struct mad_async *engine, unsigned most)
{
	struct list *list = &engine->listener.completed, *first;
	struct ibmad_port *port = engine->port;
	struct async_request *async;
	mad_async_fn *callback;
	int count = 0;

	/* a callback may take long: another thread leads meanwhile */
	if (!list_is_empty(list))
		waiters_pass(&port->waiters);
	while (most-- && engine_may_call(engine) && (first = list_pop(list))) {
		async = async_request_of(list_entry(first, struct port_request, entry));
		engine->stats.completed++;
		engine->queued -= !async->request.request.transmissions.count;
		callback = async->callback;
		async->callback = NULL;
		engine->calling++;
		port_unlock(port);
		call_back(engine, async, callback);
		port_lock(port);
		engine->calling--;
		pool_put(&engine->pool, async);
		engine->listener.open--;
		port->open--;
		count++;
	}
	if (count && !port->open)
		port_shrink(port);
	return count;
}

bool engine_is_processor(const struct mad_async *engine)
{
	return engine->listener.processing &&
	       pthread_equal(engine->listener.processor, pthread_self());
}

void engine_begin_processing(struct mad_async *engine)
{
	engine->listener.processing = true;
	engine->listener.processor = pthread_self();
}

void engine_end_processing(struct mad_async *engine)
{
	engine->listener.processing = false;
	pthread_cond_broadcast(&engine->changed);
}

/* --- requests ------------------------------------------------------------------- */

/* The caller's structures stay as they are. */
static INLINE int init_request(struct mad_async *engine, enum public_call call,
			       struct async_request *async, const ib_rpc_t *rpc,
			       const ib_portid_t *dport, const void *payload, size_t size)
{
	struct request_settings settings =
		options_for_request(engine->port, rpc->mgtclass & 0xff);
	ib_portid_t destination;

	if (!is_smp_class(rpc->mgtclass & 0xff)) {
		destination = *dport;
		complete_address(&destination);
		dport = &destination;
	}
	settings.by_rmpp = request_is_by_rmpp(rpc);
	port_request_init(&async->request, &engine->owner, call);
	return request_make(&async->request.request, &settings, rpc, mad_trid(), dport, NULL,
			    payload, size);
}

static INLINE int submit_unlocking(struct mad_async *engine, enum public_call call,
				   const ib_rpc_t *rpc, const ib_portid_t *dport,
				   const void *payload, size_t size, mad_async_fn *callback,
				   void *arg, uint64_t *id, bool urgent)
{
	struct ibmad_port *port = engine->port;
	struct async_request *async;
	int ret = why_ended(engine);

	if (ret)
		return ret;
	async = pool_get(&engine->pool);
	if (!async)
		return -ENOMEM;
	ret = timers_reserve(&port->timers, port->open + 1);
	if (!ret)
		ret = init_request(engine, call, async, rpc, dport, payload, size);
	if (ret) {
		pool_put(&engine->pool, async);
		return ret;
	}
	async->callback = callback;
	async->arg = arg;
	if (id)
		*id = pool_id(&async->entry);
	if (!engine->listener.open++)
		listener_begin(&engine->listener);
	engine->queued++;
	engine->stats.submitted++;
	port->open++;
	if (urgent) {
		queue_bypass(&port->queue, &async->request);
		port_transmit_unlocking(port, &async->request);
		return 0;
	}
	port_submit_unlocking(port, &async->request);
	port_send_unlocking(port, BATCH);
	return 0;
}

int engine_submit_unlocking(struct mad_async *engine, enum public_call call,
			    const ib_rpc_t *rpc, const ib_portid_t *dport, const void *payload,
			    size_t size, mad_async_fn *callback, void *arg, uint64_t *id)
{
	return submit_unlocking(engine, call, rpc, dport, payload, size, callback, arg, id,
				false);
}

int engine_submit_urgent_unlocking(struct mad_async *engine, const ib_rpc_t *rpc,
				   const ib_portid_t *dport, mad_async_fn *callback, void *arg,
				   uint64_t *id)
{
	return submit_unlocking(engine, CALL_ASYNC_SUBMIT, rpc, dport, NULL, 0, callback, arg,
				id, true);
}

/* Before the thread may be cancelled again. */
static RARE void report_refusal_unlocking(struct mad_async *engine, const char *call,
					  int mgmt_class, int error)
{
	port_unlock(engine->port);
	if (error == EPROTONOSUPPORT)
		report_class(call, mgmt_class);
	report_not_made(call, error);
	port_lock(engine->port);
}

EXPORT int mad_async_submit(struct mad_async *async, const ib_rpc_t *rpc,
			    const ib_portid_t *dport, const void *payload, size_t size,
			    mad_async_fn *callback, void *arg, uint64_t *id)
{
	int cancel_state, ret;

	if (!async || !rpc || !dport || !callback)
		return failure_of_call(rpc ? rpc->mgtclass : 0, -EINVAL);
	ret = enter(async, &cancel_state);
	if (ret)
		return failure_of_call(rpc->mgtclass, ret);
	ret = submit_unlocking(async, CALL_ASYNC_SUBMIT, rpc, dport, payload, size, callback,
			       arg, id, false);
	if (ret)
		report_refusal_unlocking(async, "mad_async_submit", rpc->mgtclass, -ret);
	leave(async, cancel_state);
	return failure_of_call(rpc->mgtclass, ret);
}

/* Cancels a request. false: it is already complete or cancelled. */
static bool cancel_request(struct mad_async *engine, struct async_request *async)
{
	if (!async->callback || request_is_ended(&async->request.request))
		return false;
	port_handle(engine->port, &async->request, EVENT_CANCEL, ECANCELED, clock_us());
	return true;
}

int engine_cancel(struct mad_async *engine, uint64_t id)
{
	struct async_request *async;

	if (id & OPERATION) {
		struct number *number = pool_find(&engine->numbers, id & ~OPERATION);

		return number && cancel_operation(engine, number->operation) ? 0 : -ENOENT;
	}
	async = pool_find(&engine->pool, id);

	return async && cancel_request(engine, async) ? 0 : -ENOENT;
}

int engine_cancel_all(struct mad_async *engine)
{
	struct async_request *async;
	uint32_t place = 0;
	int count = 0;

	cancel_operations(engine);
	while (engine->listener.open && (async = pool_next(&engine->pool, &place)))
		count += cancel_request(engine, async);
	return count;
}

/* --- life ----------------------------------------------------------------------- */

void engine_init(struct mad_async *engine, struct ibmad_port *port)
{
	*engine = (struct mad_async){
		.owner = {.ops = &owner_ops},
		.port = port,
		.forks = port->forks,
		.dropped_before = port->dropped,
		.mismatched_before = port->mismatched,
	};
	engine->owner.source = &engine->source;
	listener_init(&engine->listener);
	source_init(&engine->source, TURN);
	pool_init(&engine->pool, sizeof(struct async_request));
	pool_init(&engine->numbers, sizeof(struct number));
	list_init(&engine->operations);
	list_init(&engine->calls);
	list_init(&engine->timers);
	clock_cond_init(&engine->changed);
	list_add_last(&port->listeners, &engine->listener.all);
}
