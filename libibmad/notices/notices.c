/* SPDX-License-Identifier: BSD-2-Clause */

/* Notices: starting and stopping, and the timer that advances them. */

#include "base/export.h"
#include "base/report.h"
#include "calls/engine.h"
#include "notices/notices_state.h"

#include <infiniband/mad_sa.h>
#include <infiniband/mad_server.h>
#include <stdlib.h>

#define RENEW_MS        60000
#define POLL_MS         1000
#define INTERVAL_MAX_MS 86400000

static struct mad_notices *notices_of(struct engine_timer *timer)
{
	return list_entry(timer, struct mad_notices, timer);
}

/* The error of a port that cannot send and receive any more; otherwise 0. */
static int port_error(const struct mad_notices *notices)
{
	struct ibmad_port *port = notices->engine->port;
	int cancel_state = engine_reenter(notices->engine), error = 0;

	if (port->gone)
		error = -port->gone;
	else if (port->inherited)
		error = -ECANCELED;
	engine_leave(notices->engine, cancel_state);
	return error;
}

/* --- the end -------------------------------------------------------------------- */

/*
 * The program, in the callback or in other threads, may read the counts until the callback
 * returns.
 */
static void stop_server(struct mad_notices *notices)
{
	struct mad_server *server = notices->server;
	int cancel_state = engine_reenter(notices->engine);

	notices->last_server = server_stats(server);
	notices->server = NULL;
	engine_leave(notices->engine, cancel_state);
	mad_server_stop(server);
}

static void finish(struct mad_notices *notices, int error, unsigned status)
{
	const struct mad_notice notice = {
		.kind = MAD_NOTICE_END, .error = error, .status = status};

	stop_server(notices);
	notices_tell(notices, &notice);
	free(notices);
}

/* The engine is being destroyed, and has already removed the timer. */
static void ended(struct engine_timer *timer)
{
	struct mad_notices *notices = notices_of(timer);
	int error = port_error(notices);

	finish(notices, error ? error : -ECANCELED, 0);
}

static void leave_engine(struct mad_notices *notices, int error, unsigned status)
{
	int cancel_state = engine_reenter(notices->engine);

	engine_timer_remove(notices->engine, &notices->timer);
	engine_leave(notices->engine, cancel_state);
	finish(notices, error, status);
}

/* --- what is to be done --------------------------------------------------------- */

/* Stopping: cancels the requests in flight, ends the subscription at the SA, and frees all. */
static void advance_to_end(struct mad_notices *notices)
{
	if (notices->reading)
		mad_async_cancel(notices->engine, notices->read_id);
	if (!notices->undoing)
		subscription_cancel(notices);
	if (notices->reading || notices->setting)
		return;
	if (!notices->undoing && notices->subscribed && local_port_is_usable(notices))
		subscription_start_round(notices, false);
	if (notices->setting)
		return;
	if (!notices->counts.subscriptions) /* there was no subscription */
		leave_engine(notices, 0, 0);
	else if (!notices->undoing)
		leave_engine(notices, -ENETDOWN, 0);
	else
		leave_engine(notices, notices->set_error, notices->set_status);
}

static void advance(struct mad_notices *notices)
{
	int64_t now = clock_us(), next;
	int error = port_error(notices);

	if (error) {
		if (!notices->reading && !notices->setting)
			leave_engine(notices, error, 0);
		return;
	}
	if (notices->stopping) {
		advance_to_end(notices);
		return;
	}
	if (!notices->reading && now >= notices->poll_at)
		local_port_read(notices, now);
	if (notices->known && !local_port_is_usable(notices))
		subscription_tell(notices, -ENETDOWN, 0, 0);
	else if (notices->known && !notices->setting && now >= notices->renew_at)
		subscription_start_round(notices, true);
	next = notices->poll_at;
	if (local_port_is_usable(notices) && !notices->setting && notices->renew_at < next)
		next = notices->renew_at;
	notices_set_timer(notices, next);
}

static void due(struct engine_timer *timer)
{
	advance(notices_of(timer));
}

/* --- starting and stopping ------------------------------------------------------ */

static int take_filters(struct mad_notices *notices, const struct mad_notices_options *options)
{
	static const struct mad_notice_filter all;
	const struct mad_notice_filter *filters = options->filters;
	unsigned count = options->filter_count;
	int ret = 0;

	if (!count) {
		filters = &all;
		count = 1;
	}
	if (count > FILTERS_MAX || !filters)
		return -EINVAL;
	for (unsigned i = 0; i < count && !ret; i++)
		ret = inform_info_init(&notices->filters[i], &filters[i]);
	notices->filter_count = count;
	return ret;
}

static int take_options(struct mad_notices *notices, const struct mad_notices_options *options)
{
	unsigned renew_ms = options->renew_ms ? options->renew_ms : RENEW_MS;
	unsigned poll_ms = options->poll_ms ? options->poll_ms : POLL_MS;

	for (unsigned i = 0; i < sizeof(options->reserved) / sizeof(*options->reserved); i++)
		if (options->reserved[i])
			return -EINVAL;
	if (renew_ms > INTERVAL_MAX_MS || poll_ms > INTERVAL_MAX_MS)
		return -EINVAL;
	notices->renew_us = renew_ms * INT64_C(1000);
	notices->poll_us = poll_ms * INT64_C(1000);
	return take_filters(notices, options);
}

static int start_server(struct mad_notices *notices, unsigned limit)
{
	const struct mad_server_options options = {
		.mgmt_class = IB_SA_CLASS,
		.methods = {MAD_SERVER_METHOD(IB_MAD_METHOD_REPORT)},
		.limit = limit,
	};

	return mad_server_start(notices->engine, &options, report_came, notices,
				&notices->server);
}

static void start_timer(struct mad_notices *notices)
{
	struct mad_async *engine = notices->engine;
	int cancel_state = engine_reenter(engine);

	engine_timer_add(engine, &notices->timer);
	engine_timer_set(engine, &notices->timer, 0);
	engine_leave(engine, cancel_state);
}

/* A thread that destroys the engine meanwhile waits until the timer exists. */
static int start_parts(struct mad_notices *notices, unsigned limit)
{
	struct mad_async *engine = notices->engine;
	const struct handle *handle = &engine->port->handle;
	int missing = 0, cancel_state, ret;

	ret = engine_enter(engine, &cancel_state);
	if (ret)
		return ret;
	ret = -EPROTONOSUPPORT;
	if (handle_agent(handle, IB_SA_CLASS) < 0)
		missing = IB_SA_CLASS;
	else if (handle_agent(handle, IB_SMI_DIRECT_CLASS) < 0)
		missing = IB_SMI_DIRECT_CLASS;
	port_unlock(engine->port);
	if (missing)
		report_class("mad_notices_start", missing);
	else
		ret = start_server(notices, limit);
	if (!ret)
		start_timer(notices);
	port_lock(engine->port);
	engine_leave(engine, cancel_state);
	return ret;
}

EXPORT int mad_notices_start(struct mad_async *async, const struct mad_notices_options *options,
			     mad_notice_fn *callback, void *arg, struct mad_notices **notices)
{
	static const struct mad_notices_options defaults;
	struct mad_notices *started;
	int ret;

	if (!async || !callback || !notices)
		return -EINVAL;
	if (!options)
		options = &defaults;
	started = calloc(1, sizeof(*started));
	if (!started)
		return -ENOMEM;
	started->timer.due = due;
	started->timer.ended = ended;
	started->engine = async;
	started->callback = callback;
	started->arg = arg;
	*notices = started; /* before the first callback */
	ret = take_options(started, options);
	if (!ret)
		ret = start_parts(started, options->limit);
	if (ret) {
		*notices = NULL;
		free(started);
	}
	return ret;
}

EXPORT void mad_notices_stop(struct mad_notices *notices)
{
	struct mad_async *engine;
	int cancel_state;

	if (!notices)
		return;
	engine = notices->engine;
	if (engine_enter(engine, &cancel_state))
		return;
	notices->stopping = true;
	engine_timer_set(engine, &notices->timer, 0);
	engine_leave(engine, cancel_state); /* the notices may have been freed from here on */
}

EXPORT int mad_notices_get_stats(struct mad_notices *notices, struct mad_notices_stats *stats,
				 size_t size)
{
	struct mad_server_stats server;
	struct mad_notices_stats now;
	int cancel_state;

	if (!notices || !stats)
		return -EINVAL;
	if (engine_enter(notices->engine, &cancel_state))
		return -ECANCELED;
	server = notices->last_server;
	if (notices->server)
		server = server_stats(notices->server);
	engine_leave(notices->engine, cancel_state);
	now = (struct mad_notices_stats){
		.reports = notices->counts.reports,
		.confirmed = notices->counts.confirmed,
		.duplicates = notices->counts.duplicates + server.duplicates,
		.dropped = server.dropped,
		.malformed = notices->counts.malformed,
		.subscriptions = notices->counts.subscriptions,
		.failures = notices->counts.failures,
	};
	memset(stats, 0, size);
	memcpy(stats, &now, size < sizeof(now) ? size : sizeof(now));
	return 0;
}
