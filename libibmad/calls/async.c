/* SPDX-License-Identifier: BSD-2-Clause */

/* Asynchronous requests: engines are created and destroyed, requests submitted and cancelled.
 */

#include "calls/async.h"

#include "base/export.h"
#include "calls/request_server.h"
#include "engine/request.h"
#include "mad/layout.h"

#include <errno.h>
#include <stdlib.h>

/* --- life ----------------------------------------------------------------------- */

EXPORT struct mad_async *mad_async_create(struct ibmad_port *port)
{
	struct mad_async *engine;
	int cancel_state;

	if (!port) {
		errno = EINVAL;
		return NULL;
	}
	cancel_state = port_enter(port);
	engine = engine_reuse(port);
	if (!engine)
		engine = malloc(sizeof(*engine));
	if (engine)
		engine_init(engine, port);
	port_leave(port, cancel_state);
	return engine;
}

/* Whether the request was to be cancelled: it is neither complete nor free. */
static bool cancel_request(struct mad_async *engine, struct async_request *request)
{
	if (!request->callback || request->transaction.state == TRANSACTION_DONE)
		return false;
	core_cancel(&engine->port->core, &request->transaction, ECANCELED);
	return true;
}

/* Returns how many requests were cancelled. */
static int cancel_all(struct mad_async *engine)
{
	struct async_request *request;
	uint32_t place = 0;
	int count = 0;

	if (engine->sa)
		count = engine->sa->cancel_all(engine->sa, engine);
	while ((request = pool_next(&engine->pool, &place)))
		count += cancel_request(engine, request);
	return count;
}

/* Waits until no other thread is in a call for the engine, and all requests are called back. */
static void wait_for_all(struct mad_async *engine)
{
	struct core *core = &engine->port->core;

	engine->ending = true;
	pthread_cond_broadcast(&engine->changed);
	cancel_all(engine);
	/* with servers it waits although no request is open */
	if (engine->running)
		reader_wake(&engine->port->reader, &engine->runner);
	while (engine->processing)
		pthread_cond_wait(&engine->changed, &core->lock);
	engine_begin_processing(engine);
	/* another thread may be writing a request just now, or be about to notice the end */
	while (engine->open || engine->users > 1)
		if (!engine_call_back(engine, BATCH))
			pthread_cond_wait(&engine->changed, &core->lock);
}

EXPORT void mad_async_destroy(struct mad_async *async)
{
	struct ibmad_port *port;
	int cancel_state;

	if (!async)
		return;
	port = async->port;
	cancel_state = engine_enter(async);
	if (engine_is_processor(async)) {
		engine_leave(async, cancel_state); /* a callback still needs the engine */
		return;
	}
	wait_for_all(async);
	engine_end_timers(async);
	servers_end(async);
	alarm_close(&async->alarm);
	pool_free(&async->pool);
	if (async->sa)
		async->sa->free(async->sa);
	list_move_last(&port->retired, &async->client.all);
	/* what the engine held up can go on */
	port_leave_last(port, cancel_state);
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
	complete_address(&destination);
	return request_init(&request->transaction, &engine->port->core.link,
			    &engine->port->core.options, (ib_rpc_t *)(void *)&copy,
			    &destination, NULL, request_is_by_rmpp(rpc), payload, size);
}

int async_submit(struct mad_async *engine, const ib_rpc_t *rpc, const ib_portid_t *dport,
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
	request->arg = arg;
	/* last: a child of fork() calls back each request that has a callback */
	__atomic_store_n(&request->callback, callback, __ATOMIC_RELEASE);
	if (id)
		*id = pool_id(&request->entry);
	engine->open++;
	engine->queued++;
	engine->stats.submitted++;
	scheduler->open++;
	scheduler_submit(scheduler, &request->transaction);
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
	cancel_state = engine_enter(async);
	ret = async_submit(async, rpc, dport, payload, size, callback, arg, id);
	engine_leave(async, cancel_state);
	if (ret == -EPROTONOSUPPORT)
		report_class("mad_async_submit", rpc->mgtclass);
	return ret;
}

int async_cancel(struct mad_async *engine, uint64_t id)
{
	struct async_request *request = pool_find(&engine->pool, id);

	return request && cancel_request(engine, request) ? 0 : -ENOENT;
}

EXPORT int mad_async_cancel(struct mad_async *async, uint64_t id)
{
	int cancel_state, ret;

	if (!async)
		return -EINVAL;
	cancel_state = engine_enter(async);
	ret = async_cancel(async, id);
	engine_leave(async, cancel_state);
	return ret;
}

EXPORT int mad_async_cancel_all(struct mad_async *async)
{
	int cancel_state, count;

	if (!async)
		return -EINVAL;
	cancel_state = engine_enter(async);
	count = cancel_all(async);
	engine_leave(async, cancel_state);
	return count;
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
	struct mad_async_stats now;
	struct core *core;
	int cancel_state;

	if (!async || !stats)
		return -EINVAL;
	core = &async->port->core;
	cancel_state = engine_enter(async);
	now = async->stats;
	now.dropped = core->dropped - async->dropped_before;
	now.queued = async->queued;
	now.in_flight = (uint32_t)(now.submitted - now.completed) - async->queued;
	if (async->rtt_count)
		now.rtt_mean_us = (uint32_t)(async->rtt_sum_us / async->rtt_count);
	fill_flow(&now.smp, &core->transactions.flow.windows[MAD_WINDOW_SMP]);
	fill_flow(&now.gmp, &core->transactions.flow.windows[MAD_WINDOW_GMP]);
	now.smp_window = now.smp.window;
	now.gmp_window = now.gmp.window;
	engine_leave(async, cancel_state);
	memset(stats, 0, size);
	memcpy(stats, &now, size < sizeof(now) ? size : sizeof(now));
	return 0;
}
