/* SPDX-License-Identifier: BSD-2-Clause */

/* Engines: their requests, operations and timers, and how they are made and freed. */

#include "base/export.h"
#include "base/report.h"
#include "engine/async.h"
#include "mad/layout.h"

#include <errno.h>
#include <stdlib.h>

/* The requests that an engine sends before others have their turn. */
#define TURN      4
/* In the number of an operation; no pool has so many places that a request's has it. */
#define OPERATION (UINT64_C(1) << 31)

/* The number of an operation, in a pool. */
struct number {
	struct pool_entry entry;
	struct engine_operation *operation;
};

/* --- state ---------------------------------------------------------------------- */

bool engine_is_processor(const struct mad_async *engine)
{
	return engine->thread != ENGINE_FREE &&
	       pthread_equal(engine->processor, pthread_self());
}

bool engine_has_called_back(const struct mad_async *engine)
{
	return !engine->open && !engine->called && list_is_empty(&engine->calls);
}

bool engine_is_empty(const struct mad_async *engine)
{
	return engine_has_called_back(engine) && !engine->servers;
}

bool engine_is_stopped(const struct mad_async *engine)
{
	return engine->thread == ENGINE_WAITED && engine->stops != engine->stops_before;
}

bool engine_has_work(const struct mad_async *engine)
{
	return !list_is_empty(&engine->completed) || !list_is_empty(&engine->arrived) ||
	       !list_is_empty(&engine->ended) || !list_is_empty(&engine->calls) ||
	       !list_is_empty(&engine->refused);
}

int engine_why_ended(const struct mad_async *engine)
{
	if (engine->port->error)
		return -engine->port->error;
	return engine->ending ? -ECANCELED : 0;
}

void engine_wake(struct mad_async *engine)
{
	if (engine->thread == ENGINE_WAITED)
		waiter_wake(engine->port, &engine->waiter);
	if (engine->ending)
		pthread_cond_broadcast(&engine->changed);
}

/* --- entering and leaving ------------------------------------------------------- */

static void cancel_operations(struct mad_async *engine);

int engine_enter(struct mad_async *engine, int *cancel_state)
{
	int ret = port_enter(engine->port, cancel_state);

	if (ret)
		return ret;
	engine->users++;
	if (engine->forks != engine->port->forks) {
		/*
		 * In a child of fork(), after the port has cancelled its requests. The fork may
		 * have been in a callback: this thread does not process any more.
		 */
		engine->forks = engine->port->forks;
		engine->thread = ENGINE_FREE;
		cancel_operations(engine);
	}
	return 0;
}

int engine_enter_again(struct mad_async *engine)
{
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	port_lock(engine->port);
	engine->port->users++;
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
	engine->timer_at = NEVER;
	list_for_each (entry, &engine->timers) {
		int64_t at = list_entry(entry, struct engine_timer, all)->at;

		if (at < engine->timer_at)
			engine->timer_at = at;
	}
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
	if (at != NEVER)
		engine_wake(engine);
}

/* If the port has failed, every timer that is set is due. */
static struct engine_timer *due_timer(const struct mad_async *engine, int64_t now)
{
	list_for_each (entry, &engine->timers) {
		struct engine_timer *timer = list_entry(entry, struct engine_timer, all);

		if (timer->at <= now || (engine->port->error && timer->at != NEVER))
			return timer;
	}
	return NULL;
}

static void run_timers_unlocking(struct mad_async *engine)
{
	struct engine_timer *timer;
	int64_t now;

	if (list_is_empty(&engine->timers))
		return;
	now = clock_us();
	for (unsigned i = 0;
	     i < BATCH && !engine_is_stopped(engine) && (timer = due_timer(engine, now)); i++) {
		engine_timer_set(engine, timer, NEVER);
		engine->calling++;
		port_unlock(engine->port);
		timer->due(timer);
		port_lock(engine->port);
		engine->calling--;
	}
}

/* Removes all timers of an engine that is freed. */
static void end_timers_unlocking(struct mad_async *engine)
{
	struct list *first;

	while ((first = list_pop(&engine->timers))) {
		struct engine_timer *timer = list_entry(first, struct engine_timer, all);

		port_unlock(engine->port);
		timer->ended(timer);
		port_lock(engine->port);
	}
}

/* --- operations ----------------------------------------------------------------- */

int operation_begin(struct mad_async *engine, struct engine_operation *operation, uint64_t *id)
{
	struct number *number;
	int error = engine_why_ended(engine);

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
	engine_wake(engine);
}

void operation_later(struct mad_async *engine, struct engine_operation *operation,
		     void (*later)(struct engine_operation *operation))
{
	operation->later = later;
	add_call(engine, operation);
}

bool engine_operation_end(struct mad_async *engine, struct engine_operation *operation)
{
	int cancel_state = engine_enter_again(engine);
	bool cancelled = operation_end(engine, operation);

	engine_leave(engine, cancel_state);
	return cancelled;
}

bool engine_operation_is_cancelled(struct mad_async *engine,
				   const struct engine_operation *operation)
{
	int cancel_state = engine_enter_again(engine);
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
static void run_operations_unlocking(struct mad_async *engine)
{
	struct engine_operation *operation;
	void (*function)(struct engine_operation * operation);
	struct list *first;

	for (unsigned i = 0; i < BATCH && !engine_is_stopped(engine); i++) {
		first = list_pop(&engine->calls);
		if (!first)
			break;
		operation = list_entry(first, struct engine_operation, call);
		list_init(&operation->call);
		function = operation->later ? operation->later : operation->cancel;
		operation->later = NULL;
		engine->called = true;
		engine->calling++;
		port_unlock(engine->port);
		function(operation);
		port_lock(engine->port);
		engine->calling--;
		engine->called = false;
	}
}

/* --- callbacks ------------------------------------------------------------------ */

static void call_back(struct mad_async *engine, struct request *request, mad_async_fn *callback)
{
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
	request_debug(request);
	if (reply.error)
		failure_of_reply(&reply, request_mad(request)[1], request->transmissions.method,
				 get16(request_mad(request), 16));
	callback(engine, &reply, request->arg);
	request_fini(request);
}

static int call_requests_unlocking(struct mad_async *engine)
{
	struct ibmad_port *port = engine->port;
	struct list *first;
	int count = 0;

	while (count < BATCH && !engine_is_stopped(engine) &&
	       (first = list_pop(&engine->completed))) {
		struct request *request = list_entry(first, struct request, queue);
		mad_async_fn *callback = request->callback;

		engine->stats.completed++;
		engine->queued -= !request->transmissions.count;
		request->callback = NULL;
		engine->calling++;
		port_unlock(port);
		call_back(engine, request, callback);
		port_lock(port);
		engine->calling--;
		pool_put(&engine->pool, request);
		engine->open--;
		port->open--;
		count++;
	}
	if (count && !port->open)
		port_shrink(port);
	return count;
}

int engine_call_back_unlocking(struct mad_async *engine)
{
	int count;

	/* a callback may take long: another thread leads meanwhile */
	if (engine_has_work(engine) || !list_is_empty(&engine->timers))
		port_pass_lead(engine->port);
	servers_refuse_unlocking(engine, BATCH);
	count = call_requests_unlocking(engine);
	count += servers_call_unlocking(engine, BATCH);
	run_timers_unlocking(engine);
	run_operations_unlocking(engine);
	return count;
}

void engine_begin_processing(struct mad_async *engine, enum engine_thread thread)
{
	engine->thread = thread;
	engine->processor = pthread_self();
}

void engine_end_processing(struct mad_async *engine)
{
	engine->thread = ENGINE_FREE;
	pthread_cond_broadcast(&engine->changed);
}

/* --- requests ------------------------------------------------------------------- */

/* The caller's structures stay as they are. */
static int make_request(struct mad_async *engine, struct request *request, const ib_rpc_t *rpc,
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
	return request_make(request, &settings, rpc, mad_trid(), dport, NULL, payload, size);
}

static int submit_unlocking(struct mad_async *engine, enum public_call call,
			    const ib_rpc_t *rpc, const ib_portid_t *dport, const void *payload,
			    size_t size, mad_async_fn *callback, void *arg, uint64_t *id,
			    bool urgent)
{
	struct ibmad_port *port = engine->port;
	struct request *request;
	int ret = engine_why_ended(engine);

	if (ret)
		return ret;
	request = pool_get(&engine->pool);
	if (!request)
		return -ENOMEM;
	request_init(request, &engine->source, call);
	ret = make_request(engine, request, rpc, dport, payload, size);
	if (ret) {
		pool_put(&engine->pool, request);
		return ret;
	}
	request->callback = callback;
	request->arg = arg;
	if (id)
		*id = pool_id(&request->entry);
	engine->open++;
	engine->queued++;
	engine->stats.submitted++;
	port->open++;
	port_submit_unlocking(port, request, urgent);
	if (!urgent && queue_is_ready(&port->queue))
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
static void report_refusal_unlocking(struct mad_async *engine, const char *call, int mgmt_class,
				     int error)
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
	ret = engine_enter(async, &cancel_state);
	if (ret)
		return failure_of_call(rpc->mgtclass, ret);
	ret = submit_unlocking(async, CALL_ASYNC_SUBMIT, rpc, dport, payload, size, callback,
			       arg, id, false);
	if (ret)
		report_refusal_unlocking(async, "mad_async_submit", rpc->mgtclass, -ret);
	engine_leave(async, cancel_state);
	return failure_of_call(rpc->mgtclass, ret);
}

/* Cancels a request. false: it is already complete or cancelled. */
static bool cancel_request(struct mad_async *engine, struct request *request)
{
	if (!request->callback || request_is_ended(request))
		return false;
	port_cancel(engine->port, request, ECANCELED);
	return true;
}

int engine_cancel(struct mad_async *engine, uint64_t id)
{
	struct request *request;

	if (id & OPERATION) {
		struct number *number = pool_find(&engine->numbers, id & ~OPERATION);

		return number && cancel_operation(engine, number->operation) ? 0 : -ENOENT;
	}
	request = pool_find(&engine->pool, id);
	return request && cancel_request(engine, request) ? 0 : -ENOENT;
}

void engine_cancel_all(struct mad_async *engine)
{
	struct request *request;
	uint32_t place = 0;

	cancel_operations(engine);
	while (engine->open && (request = pool_next(&engine->pool, &place)))
		cancel_request(engine, request);
}

EXPORT int mad_async_get(struct mad_async *async, const ib_portid_t *dport, unsigned attribute,
			 unsigned modifier, mad_async_fn *callback, void *arg, uint64_t *id)
{
	int mgmt_class = (int)(attribute >> 16);
	bool smp = mgmt_class == IB_SMI_CLASS;
	uint8_t select[IB_PC_DATA_SZ] = {0};
	ib_rpc_t rpc = {.mgtclass = mgmt_class,
			.method = IB_MAD_METHOD_GET,
			.attr = {.id = attribute & UINT16_MAX}};
	ib_portid_t to;

	if (!async || !dport ||
	    (!smp && (mgmt_class != IB_PERFORMANCE_CLASS || modifier > UINT8_MAX)))
		return failure_of_call(mgmt_class, -EINVAL);
	if (!smp) {
		rpc.dataoffs = IB_PC_DATA_OFFS;
		rpc.datasz = IB_PC_DATA_SZ;
		mad_set_field(select, 0, IB_PC_PORT_SELECT_F, modifier);
		return mad_async_submit(async, &rpc, dport, select, sizeof(select), callback,
					arg, id);
	}
	to = *dport;
	to.qp = to.sl = 0;
	rpc.mgtclass = smp_class_of(dport);
	rpc.attr.mod = modifier;
	rpc.dataoffs = IB_SMP_DATA_OFFS;
	rpc.datasz = IB_SMP_DATA_SIZE;
	rpc.mkey = options_m_key(async->port);
	return mad_async_submit(async, &rpc, &to, NULL, 0, callback, arg, id);
}

EXPORT int mad_async_cancel(struct mad_async *async, uint64_t id)
{
	int cancel_state, ret;

	if (!async)
		return failure_of_call(0, -EINVAL);
	ret = engine_enter(async, &cancel_state);
	if (ret)
		return failure_of_call(0, ret);
	if (id == MAD_ASYNC_ALL)
		engine_cancel_all(async);
	else
		ret = engine_cancel(async, id);
	engine_leave(async, cancel_state);
	return failure_of_call(0, ret);
}

/* --- life ----------------------------------------------------------------------- */

static void init_engine(struct mad_async *engine, struct ibmad_port *port)
{
	*engine = (struct mad_async){
		.port = port,
		.forks = port->forks,
		.timer_at = NEVER,
		.dropped_before = port->dropped,
		.mismatched_before = port->mismatched,
	};
	source_init(&engine->source, TURN);
	pool_init(&engine->pool, sizeof(struct request));
	pool_init(&engine->numbers, sizeof(struct number));
	list_init(&engine->operations);
	list_init(&engine->timers);
	list_init(&engine->completed);
	list_init(&engine->arrived);
	list_init(&engine->refused);
	list_init(&engine->ended);
	list_init(&engine->calls);
	clock_cond_init(&engine->changed);
	alarm_init(&engine->alarm);
	list_add_last(&port->engines, &engine->all);
}

EXPORT struct mad_async *mad_async_create(struct ibmad_port *port)
{
	struct mad_async *engine = NULL;
	int cancel_state, error = EINVAL;
	struct list *retired;

	if (port)
		error = -port_enter(port, &cancel_state);
	if (!error) {
		/*
		 * The memory of a freed engine is not freed before the port, because another
		 * thread may still be in engine_enter() for it.
		 */
		retired = list_pop(&port->retired);
		engine = retired ? list_entry(retired, struct mad_async, all)
				 : malloc(sizeof(struct mad_async));
		if (engine)
			init_engine(engine, port);
		else
			error = ENOMEM;
		port_leave(port, cancel_state);
	}
	if (error)
		failure_refuse_call(MAD_FAILURE_OTHER, 0, error);
	return engine;
}

/* Waits until no other thread is in a call for the engine, and all requests are called back. */
static void finish_unlocking(struct mad_async *engine)
{
	struct ibmad_port *port = engine->port;

	engine->ending = true;
	pthread_cond_broadcast(&engine->changed);
	engine_cancel_all(engine);
	/* with servers the thread waits although no request is open */
	engine_wake(engine);
	while (engine->thread != ENGINE_FREE)
		pthread_cond_wait(&engine->changed, &port->lock);
	engine_begin_processing(engine, ENGINE_PROCESSED);
	/* another thread may be writing a request, or may not have seen "ending" yet */
	while (engine->open || !list_is_empty(&engine->calls) || engine->users > 1) {
		if (!list_is_empty(&engine->calls))
			run_operations_unlocking(engine);
		else if (!call_requests_unlocking(engine))
			pthread_cond_wait(&engine->changed, &port->lock);
	}
}

EXPORT void mad_async_free(struct mad_async *async)
{
	struct ibmad_port *port;
	int cancel_state;

	if (!async)
		return;
	port = async->port;
	if (engine_enter(async, &cancel_state))
		return;
	/* after a fork in a callback, the child runs the callback, but no thread processes */
	if (engine_is_processor(async) || (async->thread == ENGINE_FREE && async->calling)) {
		engine_leave(async, cancel_state); /* a callback still needs the engine */
		return;
	}
	finish_unlocking(async);
	end_timers_unlocking(async);
	servers_end_unlocking(async);
	if (alarm_is_open(&async->alarm))
		list_remove(&async->loop);
	alarm_close(&async->alarm);
	pool_free(&async->pool);
	pool_free(&async->numbers);
	free(async->sa);
	list_move_last(&port->retired, &async->all);
	/* requests of other engines may have a place now: port_leave() tells others */
	port_leave(port, cancel_state);
}

/* --- statistics ----------------------------------------------------------------- */

static void fill_flow(struct mad_flow_stats *flow, const struct flow_window *window)
{
	*flow = (struct mad_flow_stats){
		.window = window->size,
		.in_flight = window->in_flight,
		.rtt_shortest_us = flow_shortest_us(window),
		.rtt_smoothed_us = window->usual_us,
		.delivery_rate = window->rate,
		.link_loss_ppm = (uint32_t)(window->link_share * UINT64_C(1000000) / FLOW_ONE),
		.silent = window->silent,
		.queue_losses = window->queue_losses,
		.link_losses = window->link_losses,
	};
}

EXPORT int mad_async_get_stats(struct mad_async *async, struct mad_async_stats *stats,
			       size_t size)
{
	const struct flow_window *windows;
	struct mad_async_stats now;
	int cancel_state, ret;

	if (!async || !stats)
		return failure_of_call(0, -EINVAL);
	ret = engine_enter(async, &cancel_state);
	if (ret)
		return failure_of_call(0, ret);
	windows = async->port->requests.flow.windows;
	now = async->stats;
	now.dropped = async->port->dropped - async->dropped_before;
	now.mismatched = async->port->mismatched - async->mismatched_before;
	now.queued = async->queued;
	now.in_flight = (uint32_t)(now.submitted - now.completed) - async->queued;
	if (async->rtt_count)
		now.rtt_mean_us = (uint32_t)(async->rtt_sum_us / async->rtt_count);
	fill_flow(&now.smp, &windows[MAD_WINDOW_SMP]);
	fill_flow(&now.gmp, &windows[MAD_WINDOW_GMP]);
	engine_leave(async, cancel_state);
	memset(stats, 0, size);
	memcpy(stats, &now, size < sizeof(now) ? size : sizeof(now));
	return 0;
}
