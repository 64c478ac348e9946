/* SPDX-License-Identifier: BSD-2-Clause */

/* Notices: starting and stopping, and what the subscription tells. */

#include "base/export.h"
#include "base/report.h"
#include "base/reserved.h"
#include "engine/async.h"
#include "notices/notices_state.h"

#include <infiniband/mad_sa.h>
#include <infiniband/mad_server.h>
#include <stdlib.h>

#define INTERVAL_MAX_MS 86400000

/* --- the end -------------------------------------------------------------------- */

/* The registration and the server have ended: the last callback. */
static void finish(struct mad_notices *notices)
{
	const struct mad_notice notice = {.kind = MAD_NOTICE_END,
					  .error = notices->end.error,
					  .status = notices->end_status};

	if (notice.error)
		failure_store(&notices->end);
	notices_tell(notices, &notice);
	free(notices);
}

static void end(struct registration *registration, int error, unsigned status)
{
	struct mad_notices *notices = notices_of(registration);

	if (error)
		notices->end = *mad_last_failure();
	notices->end_status = status;
	notices->ended = true;
	if (notices->server)
		mad_server_stop(notices->server);
	else
		finish(notices);
}

/*
 * The program, in the callback or in other threads, may read the counts until the callback
 * returns.
 */
void notices_server_ended(struct mad_notices *notices)
{
	int cancel_state = engine_enter_again(notices->engine);

	notices->last_server = server_stats(notices->server);
	notices->server = NULL;
	engine_leave(notices->engine, cancel_state);
	if (notices->ended)
		finish(notices);
}

/* --- the subscription ----------------------------------------------------------- */

static void tell_subscription(struct registration *registration,
			      const struct registration_result *result)
{
	const struct mad_notice notice = {
		.kind = MAD_NOTICE_SUBSCRIPTION,
		.error = result->error,
		.status = result->status,
		.gap_begin_us = (uint64_t)result->gap_begin,
		.gap_end_us = (uint64_t)result->gap_end,
	};

	notices_tell(notices_of(registration), &notice);
}

static void tell_port(struct registration *registration, const struct mad_notice_port *before,
		      const struct mad_notice_port *after)
{
	const struct mad_notice notice = {
		.kind = MAD_NOTICE_PORT, .before = *before, .after = *after};

	if (!registration->stopping)
		notices_tell(notices_of(registration), &notice);
}

static const struct registration_ops subscription_ops = {
	.kind = SUBSCRIPTION,
	.fill = subscription_fill,
	.take = subscription_take,
	.is_record = subscription_is_record,
	.tell = tell_subscription,
	.port_changed = tell_port,
	.end = end,
};

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
	notices->subscription.slot_count = count;
	return ret;
}

static int take_options(struct mad_notices *notices, const struct mad_notices_options *options)
{
	struct registration *subscription = &notices->subscription;

	if (!is_reserved(options->reserved))
		return -EINVAL;
	if (options->check_ms > INTERVAL_MAX_MS || options->poll_ms > INTERVAL_MAX_MS)
		return -EINVAL;
	subscription->check_us =
		options->check_ms ? options->check_ms * INT64_C(1000) : KEEPER_CHECK_US;
	subscription->poll_us =
		options->poll_ms ? options->poll_ms * INT64_C(1000) : KEEPER_POLL_US;
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

/* A thread that frees the engine meanwhile waits until the registration exists. */
static int start_parts(struct mad_notices *notices, unsigned limit)
{
	struct mad_async *engine = notices->engine;
	int missing = 0, cancel_state, ret;

	ret = engine_enter(engine, &cancel_state);
	if (ret)
		return failure_of_call(0, ret);
	ret = keeper_make(engine, &missing);
	/* a callback of the server may stop the notices before keeper_add() */
	notices->subscription.keeper = engine->keeper;
	failure_of_call(missing, ret);
	port_unlock(engine->port);
	if (missing)
		report_class("mad_notices_start", missing);
	if (!ret)
		ret = start_server(notices, limit);
	port_lock(engine->port);
	if (!ret)
		keeper_add(engine, &notices->subscription);
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
		return failure_of_call(0, -EINVAL);
	if (!options)
		options = &defaults;
	started = calloc(1, sizeof(*started));
	if (!started)
		return failure_of_call(0, -ENOMEM);
	started->subscription.ops = &subscription_ops;
	started->subscription.slots = started->slots;
	started->engine = async;
	started->callback = callback;
	started->arg = arg;
	*notices = started; /* before the first callback */
	ret = failure_of_call(0, take_options(started, options));
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
	if (notices)
		keeper_stop(&notices->subscription);
}

EXPORT int mad_notices_get_stats(struct mad_notices *notices, struct mad_notices_stats *stats,
				 size_t size)
{
	struct mad_server_stats server;
	struct mad_notices_stats now;
	int cancel_state;

	if (!notices || !stats)
		return failure_of_call(0, -EINVAL);
	if (engine_enter(notices->engine, &cancel_state))
		return failure_of_call(0, -ECANCELED);
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
		.subscriptions = notices->subscription.accepted,
		.failures = notices->subscription.failures,
	};
	memset(stats, 0, size);
	memcpy(stats, &now, size < sizeof(now) ? size : sizeof(now));
	return 0;
}
