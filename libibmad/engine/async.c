/* SPDX-License-Identifier: BSD-2-Clause */

/* Engines: requests, operations, timers, creation and freeing. */

#include "base/export.h"
#include "base/report.h"
#include "engine/async.h"
#include "mad/layout.h"

#include <infiniband/mad_fields.h>
#include <infiniband/mad_link.h>
#include <errno.h>
#include <stdlib.h>

/* Requests that an engine sends per turn. */
#define TURN      4
/* Marks an operation's ID; no pool is large enough for a request's ID to have this bit. */
#define OPERATION (UINT64_C(1) << 31)
/* Limits are checked at this interval while the engine is processed. */
#define TICK_US   50000
/* How often a long operation reads the local port. */
#define READ_US   250000

/* --- state ---------------------------------------------------------------------- */

bool engine_is_processor(const struct mad_async *engine)
{
	return engine->thread != ENGINE_FREE &&
	       pthread_equal(engine->processor, pthread_self());
}

bool engine_is_idle(const struct mad_async *engine)
{
	if (engine_has_requests(engine) || engine->calling || !list_is_empty(&engine->calls))
		return false;
	return engine->ending || (!engine->servers && !engine->registrations);
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

/*
 * In a fork()ed child, after the port has cancelled its requests. The fork may have been in a
 * callback: this thread no longer processes.
 */
void engine_inherit(struct mad_async *engine)
{
	if (engine->forks == engine->port->forks)
		return;
	engine->forks = engine->port->forks;
	engine->thread = ENGINE_FREE;
	engine_cancel(engine, MAD_ASYNC_ALL);
}

int engine_enter(struct mad_async *engine)
{
	int ret = engine ? port_enter(engine->port) : -EINVAL;

	if (ret)
		return ret;
	engine->users++;
	engine_inherit(engine);
	return 0;
}

void engine_enter_again(struct mad_async *engine)
{
	call_begin();
	port_lock(engine->port);
	engine->port->users++;
	engine->users++;
}

void engine_leave(struct mad_async *engine)
{
	engine->users--;
	if (engine->ending)
		pthread_cond_broadcast(&engine->changed);
	port_leave(engine->port);
}

/* Releases the lock because a log hook may call the library. */
void engine_report_class_unlocking(struct mad_async *engine, const char *call, int mgmt_class)
{
	port_unlock(engine->port);
	report_class(call, mgmt_class);
	port_lock(engine->port);
}

/* --- timers --------------------------------------------------------------------- */

int64_t engine_timer_at(const struct mad_async *engine)
{
	int64_t next = NEVER;

	list_for_each (entry, &engine->timers) {
		int64_t at = list_entry(entry, struct engine_timer, all)->at;

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

void engine_timer_set(struct mad_async *engine, struct engine_timer *timer, int64_t at)
{
	timer->at = at;
	/* the sleeping thread only knows the timer that used to be first */
	if (at != NEVER)
		engine_wake(engine);
}

/* --- operations ----------------------------------------------------------------- */

int operation_begin(struct mad_async *engine, struct engine_operation *operation, uint64_t *id)
{
	int error = engine_why_ended(engine);

	if (error)
		return error;
	operation->id = (uint64_t)++engine->begun << 32 | OPERATION;
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
	list_remove(&operation->all);
	list_leave(&operation->call);
	if (engine->ending)
		pthread_cond_broadcast(&engine->changed);
	return operation->cancelled;
}

/* Has the processing thread call a function of the operation. */
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
	bool cancelled;

	engine_enter_again(engine);
	cancelled = operation_end(engine, operation);
	engine_leave(engine);
	return cancelled;
}

bool engine_operation_is_cancelled(struct mad_async *engine,
				   const struct engine_operation *operation)
{
	bool cancelled;

	engine_enter_again(engine);
	cancelled = operation->cancelled;
	engine_leave(engine);
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

/* --- requests ------------------------------------------------------------------- */

/* urgent: ahead of everything queued. */
static int submit_request_unlocking(struct mad_async *engine, enum public_call call,
				    const ib_rpc_t *rpc, const ib_portid_t *dport,
				    const void *payload, size_t size, mad_async_fn *callback,
				    void *arg, uint64_t *id, bool urgent)
{
	struct ibmad_port *port = engine->port;
	struct request_settings settings = options_for_request(port, rpc->mgtclass & 0xff);
	ib_portid_t destination = *dport; /* the caller's stays unchanged */
	struct request *request;
	int ret = engine_why_ended(engine);

	if (ret)
		return ret;
	request = pool_get(&engine->pool);
	if (!request)
		return -ENOMEM;
	request_init(request, &engine->source, call);
	if (!is_smp_class(rpc->mgtclass & 0xff))
		complete_address(&destination);
	settings.by_rmpp = request_is_by_rmpp(rpc);
	ret = request_make(request, &settings, rpc, mad_trid(), &destination, NULL, payload,
			   size);
	if (ret) {
		pool_put(&engine->pool, request);
		return ret;
	}
	request->callback = callback;
	request->arg = arg;
	if (id)
		*id = pool_id(&request->entry);
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
	return submit_request_unlocking(engine, call, rpc, dport, payload, size, callback, arg,
					id, false);
}

int engine_read_port_unlocking(struct mad_async *engine, enum public_call call,
			       unsigned attribute, uint64_t m_key, int timeout_ms,
			       mad_async_fn *callback, void *arg, uint64_t *id)
{
	const ib_rpc_t rpc = {
		.mgtclass = IB_SMI_DIRECT_CLASS,
		.method = IB_MAD_METHOD_GET,
		.attr = {.id = attribute},
		.dataoffs = IB_SMP_DATA_OFFS,
		.mkey = m_key,
		.timeout = timeout_ms,
	};
	const ib_portid_t self = {0};

	return submit_request_unlocking(engine, call, &rpc, &self, NULL, 0, callback, arg, id,
					true);
}

EXPORT int mad_async_submit(struct mad_async *async, const ib_rpc_t *rpc,
			    const ib_portid_t *dport, const void *payload, size_t size,
			    mad_async_fn *callback, void *arg, uint64_t *id)
{
	int ret;

	if (!async || !rpc || !dport || !callback)
		return failure_of_call(rpc ? rpc->mgtclass : 0, -EINVAL);
	ret = engine_enter(async);
	if (ret)
		return failure_of_call(rpc->mgtclass, ret);
	ret = submit_request_unlocking(async, CALL_ASYNC_SUBMIT, rpc, dport, payload, size,
				       callback, arg, id, false);
	if (ret) { /* report before the thread can be cancelled again */
		port_unlock(async->port);
		if (ret == -EPROTONOSUPPORT)
			report_class("mad_async_submit", rpc->mgtclass);
		report_not_made("mad_async_submit", -ret);
		port_lock(async->port);
	}
	engine_leave(async);
	return failure_of_call(rpc->mgtclass, ret);
}

/* Returns false if it is already complete or cancelled. */
static bool cancel_request(struct mad_async *engine, struct request *request)
{
	if (!request->callback || request_is_ended(request))
		return false;
	port_cancel(engine->port, request, ECANCELED);
	return true;
}

int engine_cancel(struct mad_async *engine, uint64_t id)
{
	bool all = id == MAD_ASYNC_ALL, cancelled = false;
	struct request *request;
	uint32_t place = 0;

	if (id & OPERATION) /* MAD_ASYNC_ALL has the bit, too */
		list_for_each (entry, &engine->operations) {
			struct engine_operation *operation =
				list_entry(entry, struct engine_operation, all);

			if (all || operation->id == id)
				cancelled |= cancel_operation(engine, operation);
		}
	if (all)
		while ((request = pool_next(&engine->pool, &place)))
			cancel_request(engine, request);
	else if ((request = pool_find(&engine->pool, id)))
		cancelled = cancel_request(engine, request);
	return all || cancelled ? 0 : -ENOENT;
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
	int ret;

	ret = engine_enter(async);
	if (ret)
		return failure_of_call(0, ret);
	ret = engine_cancel(async, id);
	engine_leave(async);
	return failure_of_call(0, ret);
}

/* --- limits of operations ------------------------------------------------------- */

EXPORT void mad_cancel_set(struct mad_cancel *cancel)
{
	if (cancel)
		__atomic_store_n(&cancel->is_set, 1, __ATOMIC_SEQ_CST);
}

static bool cancel_is_set(const struct mad_cancel *cancel)
{
	return cancel && __atomic_load_n(&cancel->is_set, __ATOMIC_SEQ_CST);
}

/* Port 0 of a switch has no link. */
static bool is_down(const uint8_t *port_info)
{
	return mad_read_field(port_info, 0, IB_PORT_LOCAL_PORT_F) &&
	       (mad_read_field(port_info, 0, IB_PORT_STATE_F) == MAD_PORT_DOWN ||
		mad_read_field(port_info, 0, IB_PORT_PHYS_STATE_F) != MAD_PHYSICAL_LINK_UP);
}

static void local_port_was_read(struct mad_async *engine, const struct mad_reply *reply,
				void *arg)
{
	struct limits *limits = arg;

	(void)engine;
	if (!limits) /* the callback called limits_end() */
		return;
	limits->read_id = 0;
	if (!limits->error && !reply->error && reply->data_size >= IB_SMP_DATA_SIZE &&
	    is_down(reply->data)) {
		limits->error = -ENETDOWN;
		limits->reached(limits, limits->error);
	}
}

static int64_t next_tick(const struct limits *limits, int64_t now)
{
	int64_t next = now + TICK_US;

	return !limits->error && limits->end < next ? limits->end : next;
}

static void check_limits(struct engine_timer *timer)
{
	struct limits *limits = list_entry(timer, struct limits, timer);
	int64_t now = clock_us();

	engine_enter_again(limits->engine);
	if (!limits->error && cancel_is_set(limits->cancel))
		limits->error = -ECANCELED;
	else if (!limits->error && now >= limits->end)
		limits->error = -ETIME;
	/* once the port is gone, requests complete at once: no limit needed */
	if (!limits->engine->port->error)
		engine_timer_set(limits->engine, timer, next_tick(limits, now));
	if (!limits->error && !limits->is_local && !limits->read_id && now >= limits->read_at) {
		limits->read_at = now + READ_US;
		engine_read_port_unlocking(limits->engine, CALL_ASYNC_SUBMIT, IB_ATTR_PORT_INFO,
					   limits->m_key, 0, local_port_was_read, limits,
					   &limits->read_id);
	}
	engine_leave(limits->engine);
	if (limits->error)
		limits->reached(limits, limits->error);
	else if (limits->tick)
		limits->tick(limits);
}

void limits_begin(struct limits *limits, struct mad_async *engine, unsigned time_limit_ms,
		  const struct mad_cancel *cancel, uint64_t m_key)
{
	int64_t now = clock_us();

	limits->engine = engine;
	limits->cancel = cancel;
	limits->m_key = m_key;
	limits->end = time_limit_ms ? now + time_limit_ms * INT64_C(1000) : NEVER;
	limits->read_at = handle_agent(&engine->port->handle, IB_SMI_DIRECT_CLASS) < 0
				  ? NEVER
				  : now + READ_US;
	limits->timer.due = check_limits;
	engine_timer_add(engine, &limits->timer);
	engine_timer_set(engine, &limits->timer,
			 cancel_is_set(cancel) ? now : next_tick(limits, now));
}

void limits_end(struct limits *limits)
{
	struct mad_async *engine = limits->engine;
	struct request *request;

	engine_enter_again(engine);
	request = pool_find(&engine->pool, limits->read_id);
	list_remove(&limits->timer.all);
	if (request) {
		request->arg = NULL;
		cancel_request(engine, request);
	}
	engine_leave(engine);
}

int limits_ends_all(int error)
{
	if (error == -ENETUNREACH || error == -ENETDOWN)
		return -ENETDOWN;
	return error == -ENODEV || error == -ECANCELED ? error : 0;
}

/* --- life ----------------------------------------------------------------------- */

EXPORT struct mad_async *mad_async_create(struct ibmad_port *port)
{
	struct mad_async *engine;
	int error;
	struct list *retired;

	error = port ? port_enter(port) : -EINVAL;
	if (error) {
		failure_refuse_call(MAD_FAILURE_OTHER, 0, -error);
		return NULL;
	}
	/*
	 * A freed engine's memory is kept until the port is freed: another thread may still be
	 * in engine_enter() for it.
	 */
	retired = list_pop(&port->retired);
	engine = retired ? list_entry(retired, struct mad_async, all)
			 : malloc(sizeof(struct mad_async));
	if (engine) {
		*engine = (struct mad_async){
			.port = port,
			.forks = port->forks,
			.dropped_before = port->dropped,
			.mismatched_before = port->mismatched,
		};
		source_init(&engine->source, TURN);
		pool_init(&engine->pool, sizeof(struct request));
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
	port_leave(port);
	if (!engine)
		failure_refuse_call(MAD_FAILURE_OTHER, 0, ENOMEM);
	return engine;
}

/* Waits until no other thread is in a call and all callbacks have been made. */
static void finish_engine_unlocking(struct mad_async *engine)
{
	struct ibmad_port *port = engine->port;

	engine->ending = true;
	pthread_cond_broadcast(&engine->changed);
	engine_cancel(engine, MAD_ASYNC_ALL);
	/* with servers, the thread waits even without open requests */
	engine_wake(engine);
	while (engine->thread != ENGINE_FREE)
		pthread_cond_wait(&engine->changed, &port->lock);
	engine_begin_processing(engine, ENGINE_PROCESSED);
	/* another thread may be writing a request, or not have seen "ending" yet */
	while (!engine_is_idle(engine) || engine->users > 1)
		if (!engine_call_operations_unlocking(engine) &&
		    !engine_call_requests_unlocking(engine))
			pthread_cond_wait(&engine->changed, &port->lock);
}

EXPORT void mad_async_free(struct mad_async *async)
{
	struct ibmad_port *port;
	struct list *first;

	if (engine_enter(async))
		return;
	port = async->port;
	/* in a child forked in a callback, the callback runs but no thread processes */
	if (engine_is_processor(async) || (async->thread == ENGINE_FREE && async->calling)) {
		engine_leave(async); /* a callback still needs the engine */
		return;
	}
	finish_engine_unlocking(async);
	while ((first = list_pop(&async->timers))) {
		struct engine_timer *timer = list_entry(first, struct engine_timer, all);

		port_unlock(port);
		if (timer->ended)
			timer->ended(timer);
		port_lock(port);
	}
	servers_end_unlocking(async);
	if (async->alarm.poll_fd >= 0)
		list_remove(&async->loop);
	alarm_close(&async->alarm);
	pool_free(&async->pool);
	free(async->sa);
	list_move_last(&port->retired, &async->all);
	/* this may have freed places for other engines' requests: port_leave() wakes them */
	port_leave(port);
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
	int ret;

	if (!async || !stats)
		return failure_of_call(0, -EINVAL);
	ret = engine_enter(async);
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
	engine_leave(async);
	memset(stats, 0, size);
	memcpy(stats, &now, size < sizeof(now) ? size : sizeof(now));
	return 0;
}
