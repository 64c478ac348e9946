/* SPDX-License-Identifier: BSD-2-Clause */

/* Notices: starting and stopping, the local port, and the Reports of the SA. */

#include "base/export.h"
#include "base/report.h"
#include "calls/request_server.h"
#include "mad/layout.h"
#include "notices/local_port.h"
#include "notices/subscription.h"

#include <infiniband/mad_fields.h>
#include <infiniband/mad_link.h>
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

/* Why the port cannot send and receive any more; 0: it can. */
static int port_error(const struct mad_notices *notices)
{
	struct ibmad_port *port = notices->engine->port;
	int cancel_state = engine_enter(notices->engine), error = 0;

	if (port->core.gone)
		error = -port->core.gone;
	else if (port->inherited)
		error = -ECANCELED;
	engine_leave(notices->engine, cancel_state);
	return error;
}

/* --- the end -------------------------------------------------------------------- */

/* Until the callback returns, it and other threads may read the counts. */
static void stop_server(struct mad_notices *notices)
{
	struct mad_server *server = notices->server;
	int cancel_state = engine_enter(notices->engine);

	server_count(server, &notices->last_server);
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
	int cancel_state = engine_enter(notices->engine);

	engine_timer_remove(&notices->timer);
	engine_leave(notices->engine, cancel_state);
	finish(notices, error, status);
}

/* --- the port ------------------------------------------------------------------- */

static bool is_usable(const struct mad_notices *notices)
{
	return notices->port.state == MAD_PORT_ACTIVE && notices->port.sm_lid &&
	       notices->port.lid;
}

static void take_port(struct mad_notices *notices, const struct mad_notice_port *port)
{
	struct mad_notice notice = {
		.kind = MAD_NOTICE_PORT, .before = notices->port, .after = *port};
	bool first = !notices->known;

	if (!first && local_port_is_same(&notices->port, port))
		return;
	notices->port = *port;
	notices->known = true;
	if (first || local_port_needs_subscription(&notice.before, port)) {
		notices->changed = notices->setting > 0;
		subscription_cancel(notices); /* the SM of these requests may be gone */
		notices->retry_ms = 0;
		notices->renew_at = 0;
	}
	if (!first)
		notices_tell(notices, &notice);
}

static void read_came(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	struct mad_notices *notices = arg;
	struct mad_notice_port port;

	(void)async;
	notices->reading = false;
	notices->read_id = 0;
	if (!reply->error && reply->data_size >= IB_SMP_DATA_SIZE && !notices->stopping) {
		local_port_decode(reply->data, &port);
		take_port(notices, &port);
	}
	notices_set_timer(notices, 0);
}

static void read_port(struct mad_notices *notices, int64_t now)
{
	const ib_rpc_t rpc = {
		.mgtclass = IB_SMI_DIRECT_CLASS,
		.method = IB_MAD_METHOD_GET,
		.attr = {.id = IB_ATTR_PORT_INFO},
		.dataoffs = IB_SMP_DATA_OFFS,
		.mkey = smp_mkey_get(notices->engine->port),
		.timeout = POLL_MS,
	};
	const ib_portid_t self = {0};

	notices->poll_at = now + notices->poll_us;
	notices->reading = !mad_async_submit(notices->engine, &rpc, &self, NULL, 0, read_came,
					     notices, &notices->read_id);
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
	if (!notices->undoing && notices->subscribed && is_usable(notices))
		subscription_start_round(notices, false);
	if (notices->setting)
		return;
	if (!notices->counts.subscriptions) /* there was nothing to undo */
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
		read_port(notices, now);
	if (notices->known && !is_usable(notices))
		subscription_tell(notices, -ENETDOWN, 0, 0);
	else if (notices->known && !notices->setting && now >= notices->renew_at)
		subscription_start_round(notices, true);
	next = notices->poll_at;
	if (is_usable(notices) && !notices->setting && notices->renew_at < next)
		next = notices->renew_at;
	notices_set_timer(notices, next);
}

static void due(struct engine_timer *timer)
{
	advance(notices_of(timer));
}

/* --- reports -------------------------------------------------------------------- */

static void confirm(struct mad_notices *notices, struct mad_request *request, unsigned status)
{
	if (mad_request_respond(request, status, NULL, 0))
		mad_request_drop(request); /* the SM repeats the report */
	else
		notices->counts.confirmed++;
}

static void report_came(struct mad_server *server, struct mad_request *request, void *arg)
{
	struct mad_notices *notices = arg;
	struct mad_notice notice;

	(void)server;
	if (request->attribute != IB_SA_ATTR_NOTICE) {
		notices->counts.malformed++;
		confirm(notices, request, IB_MAD_STS_METHOD_ATTR_NOT_SUPPORTED);
		return;
	}
	if (request->data_size < REPORT_SIZE) {
		notices->counts.malformed++;
		mad_request_drop(request);
		return;
	}
	if (recent_reports_have(&notices->recent, request)) {
		notices->counts.duplicates++;
	} else {
		notices->counts.reports++;
		mad_notice_decode(request->data, REPORT_SIZE, &notice);
		notices_tell(notices, &notice);
	}
	confirm(notices, request, 0);
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
	int cancel_state = engine_enter(engine);

	engine_timer_add(engine, &notices->timer);
	engine_timer_set(engine, &notices->timer, 0);
	engine_leave(engine, cancel_state);
}

/* A thread that destroys the engine meanwhile waits until the timer exists. */
static int start_parts(struct mad_notices *notices, unsigned limit)
{
	struct mad_async *engine = notices->engine;
	int cancel_state = engine_enter(engine), ret = -EPROTONOSUPPORT;
	const struct link *link = &engine->port->core.link;
	int missing = 0;

	if (link_agent(link, IB_SA_CLASS) < 0)
		missing = IB_SA_CLASS;
	else if (link_agent(link, IB_SMI_DIRECT_CLASS) < 0)
		missing = IB_SMI_DIRECT_CLASS;
	core_unlock(&engine->port->core);
	if (missing)
		report_class("mad_notices_start", missing);
	else
		ret = start_server(notices, limit);
	if (!ret)
		start_timer(notices);
	core_lock(&engine->port->core);
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
	cancel_state = engine_enter(engine);
	notices->stopping = true;
	engine_timer_set(engine, &notices->timer, 0);
	engine_leave(engine, cancel_state); /* from here on they may have ended */
}

EXPORT int mad_notices_get_stats(struct mad_notices *notices, struct mad_notices_stats *stats,
				 size_t size)
{
	struct mad_server_stats server;
	struct mad_notices_stats now;
	int cancel_state;

	if (!notices || !stats)
		return -EINVAL;
	cancel_state = engine_enter(notices->engine);
	server = notices->last_server;
	if (notices->server)
		server_count(notices->server, &server);
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
