/* SPDX-License-Identifier: BSD-2-Clause */

/* Engines: created and destroyed; requests cancelled; statistics. */

#include "base/export.h"
#include "base/report.h"
#include "calls/engine.h"
#include "calls/options.h"
#include "mad/layout.h"

#include <errno.h>
#include <stdlib.h>

/* --- requests ------------------------------------------------------------------- */

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

/*
 * Memory for an engine: that of a destroyed engine, if there is one. It is not freed before the
 * port, because another thread may still be in engine_enter() for the destroyed engine.
 */
static struct mad_async *new_engine(struct ibmad_port *port)
{
	struct list *retired = list_pop(&port->retired);

	return retired ? (struct mad_async *)(void *)retired : malloc(sizeof(struct mad_async));
}

static RARE struct mad_async *not_created(int error)
{
	failure_refuse_call(MAD_FAILURE_OTHER, 0, error);
	return NULL;
}

EXPORT struct mad_async *mad_async_create(struct ibmad_port *port)
{
	struct mad_async *engine;
	int cancel_state;

	if (!port)
		return not_created(EINVAL);
	if (port_enter(port, &cancel_state))
		return not_created(ECANCELED);
	engine = new_engine(port);
	if (engine)
		engine_init(engine, port);
	port_leave(port, cancel_state);
	return engine ? engine : not_created(ENOMEM);
}

/* Waits until no other thread is in a call for the engine, and all requests are called back. */
static void finish_unlocking(struct mad_async *engine)
{
	struct ibmad_port *port = engine->port;

	engine->ending = true;
	pthread_cond_broadcast(&engine->changed);
	engine_cancel_all(engine);
	/* with servers the thread waits although no request is open */
	if (engine->listener.waiting)
		waiter_wake(&port->waiters, &engine->listener.waiter);
	while (engine->listener.processing)
		pthread_cond_wait(&engine->changed, &port->lock);
	engine_begin_processing(engine);
	/* another thread may be writing a request, or may not have seen "ending" yet */
	while (engine->listener.open || engine->listener.calls || engine->users > 1) {
		if (engine->listener.calls)
			engine_run_operations_unlocking(engine, BATCH);
		else if (!engine_call_back_unlocking(engine, BATCH))
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
	if (engine_is_processor(async) || (!async->listener.processing && async->calling)) {
		engine_leave(async, cancel_state); /* a callback still needs the engine */
		return;
	}
	finish_unlocking(async);
	engine_end_timers_unlocking(async);
	servers_end_unlocking(async);
	if (port->watcher == &async->listener)
		port_set_watcher(port, NULL);
	listener_close(&async->listener);
	pool_free(&async->pool);
	pool_free(&async->numbers);
	free(async->sa);
	list_move_last(&port->retired, &async->listener.all);
	/* requests of other engines may have a place now: port_leave_last() tells others */
	port_leave_last(port, cancel_state);
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
