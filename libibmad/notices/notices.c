/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * An engine's notices: an SA registration (sa/keeper.h), which subscribes by a Set of
 * InformInfo (IBA 13.4.8.3) per filter, and a server for the SA's Reports.
 *
 * No lock is needed in the processing thread. Public calls, from any thread, use only the
 * atomic members and, with the lock, the server and its last counts.
 */

#include "base/export.h"
#include "base/report.h"
#include "base/reserved.h"
#include "engine/timers.h"
#include "sa/keeper.h"

#include <infiniband/mad_notice.h>
#include <infiniband/mad_sa_records.h>
#include <stdlib.h>

#define INTERVAL_MAX_MS 86400000
#define FILTERS_MAX     REGISTRATION_REQUESTS
#define RECENT          16384 /* reports remembered */
/* For how long a report is remembered, in microseconds. */
#define RECENT_US       10000000
#define REPORT_SIZE     80 /* Notice and issuer GID */

/* A report already delivered. */
struct recent_report {
	int64_t at;
	uint64_t tid;
	uint64_t digest; /* of notice and sender */
};

struct mad_notices {
	struct registration subscription;
	struct mad_server *server;           /* NULL: ended */
	struct mad_server_stats last_server; /* counts when it ended */
	bool ended;                          /* the subscription has ended */
	struct mad_failure end;              /* the failure, or zeros */
	unsigned end_status;
	mad_notice_fn *callback;
	void *arg;
	atomic_ullong reports, confirmed, duplicates, malformed;
	struct inform_info {
		struct mad_sa_inform_info wire;
		uint64_t components; /* component mask */
	} filters[FILTERS_MAX];
	struct recent_report recent[RECENT]; /* by TID */
};

static struct mad_notices *notices_of(struct registration *registration)
{
	return list_entry(registration, struct mad_notices, subscription);
}

static void notices_tell(struct mad_notices *notices, const struct mad_notice *notice)
{
	notices->callback(notices, notice, notices->arg);
}

/* --- filters ------------------------------------------------------------------------ */

#define ALL           0xffff
#define ALL_PRODUCERS 0xffffff
#define QP1           1
/* Reports are confirmed within 4.096 us * 2^18, i.e. a second. */
#define RESPONSE_TIME 18
#define BY_ALL                                                              \
	(MAD_NOTICE_BY_TYPE | MAD_NOTICE_BY_TRAP | MAD_NOTICE_BY_PRODUCER | \
	 MAD_NOTICE_BY_LIDS | MAD_NOTICE_BY_GID)

/* Returns 0, or -EINVAL if a filter value does not fit InformInfo. */
static int make_inform_info(struct inform_info *info, const struct mad_notice_filter *filter)
{
	unsigned by = filter->by;
	unsigned type = by & MAD_NOTICE_BY_TYPE ? filter->type : ALL;
	unsigned trap = by & MAD_NOTICE_BY_TRAP ? filter->trap : ALL;
	unsigned producer = by & MAD_NOTICE_BY_PRODUCER ? filter->producer : ALL_PRODUCERS;
	unsigned begin = by & MAD_NOTICE_BY_LIDS ? filter->lid_begin : ALL;
	unsigned end = by & MAD_NOTICE_BY_LIDS ? filter->lid_end : 0;

	if (!is_reserved(filter->reserved) || by & ~(unsigned)BY_ALL || type > ALL ||
	    trap > ALL || producer > ALL_PRODUCERS || begin > ALL || end > ALL ||
	    (by & MAD_NOTICE_BY_LIDS && (!begin || begin > end)))
		return -EINVAL;
	info->wire = (struct mad_sa_inform_info){
		.lid_begin = htobe16((uint16_t)begin),
		.lid_end = htobe16((uint16_t)end),
		.is_generic = !filter->vendor,
		.type = htobe16((uint16_t)type),
		.trap_number = htobe16((uint16_t)trap),
		.qpn_resp_time = htobe32(QP1 << 8 | RESPONSE_TIME),
		.producer_type = htobe32(producer),
	};
	info->components = MAD_SA_INFORM_LID_BEGIN | MAD_SA_INFORM_IS_GENERIC |
			   MAD_SA_INFORM_SUBSCRIBE | MAD_SA_INFORM_TYPE |
			   MAD_SA_INFORM_TRAP_NUMBER | MAD_SA_INFORM_QPN |
			   MAD_SA_INFORM_RESP_TIME | MAD_SA_INFORM_PRODUCER_TYPE;
	if (by & MAD_NOTICE_BY_LIDS)
		info->components |= MAD_SA_INFORM_LID_END;
	if (by & MAD_NOTICE_BY_GID) {
		info->components |= MAD_SA_INFORM_GID;
		memcpy(info->wire.gid, filter->gid, sizeof(filter->gid));
	}
	return 0;
}

static int take_options(struct mad_notices *notices, const struct mad_notices_options *options)
{
	static const struct mad_notice_filter all;
	const struct mad_notice_filter *filters =
		options->filter_count ? options->filters : &all;
	struct registration *subscription = &notices->subscription;
	int ret = 0;

	subscription->count = options->filter_count ? options->filter_count : 1;
	if (!is_reserved(options->reserved) || options->check_ms > INTERVAL_MAX_MS ||
	    options->poll_ms > INTERVAL_MAX_MS || subscription->count > FILTERS_MAX || !filters)
		return -EINVAL;
	subscription->check_us =
		options->check_ms ? options->check_ms * INT64_C(1000) : KEEPER_CHECK_US;
	subscription->poll_us =
		options->poll_ms ? options->poll_ms * INT64_C(1000) : KEEPER_POLL_US;
	for (unsigned i = 0; i < subscription->count && !ret; i++)
		ret = make_inform_info(&notices->filters[i], &filters[i]);
	return ret;
}

/* --- the end ------------------------------------------------------------------------ */

/* Registration and server have ended: makes the last callback. */
static void notices_finish(struct mad_notices *notices)
{
	const struct mad_notice notice = {.kind = MAD_NOTICE_END,
					  .error = notices->end.error,
					  .status = notices->end_status};

	if (notice.error)
		failure_store(&notices->end);
	notices_tell(notices, &notice);
	free(notices);
}

static void subscription_end(struct registration *registration, int error, unsigned status)
{
	struct mad_notices *notices = notices_of(registration);

	if (error)
		notices->end = *mad_last_failure();
	notices->end_status = status;
	notices->ended = true;
	if (notices->server)
		mad_server_stop(notices->server);
	else
		notices_finish(notices);
}

/*
 * The server's last callback. Until it returns, the program may read the counts, in the
 * callback or other threads.
 */
static void server_ended(struct mad_notices *notices)
{
	struct mad_async *engine = notices->subscription.engine;

	engine_enter_again(engine);
	notices->last_server = server_stats(notices->server);
	notices->server = NULL;
	engine_leave(engine);
	if (notices->ended)
		notices_finish(notices);
}

/* --- the subscription ---------------------------------------------------------------- */

static const void *subscription_fill(struct registration *registration, unsigned index,
				     bool registers, ib_rpc_t *rpc)
{
	struct inform_info *info = &notices_of(registration)->filters[index];

	info->wire.subscribe = registers;
	rpc->method = IB_MAD_METHOD_SET;
	rpc->attr.id = IB_SA_ATTR_INFORMINFO;
	rpc->mask = info->components;
	rpc->datasz = sizeof(info->wire);
	return &info->wire;
}

/*
 * Whether an SA's InformInfo is this one. The SA may fill in QP and times, and does not see the
 * reserved bytes.
 */
static bool is_same(const struct mad_sa_inform_info *ours,
		    const struct mad_sa_inform_info *theirs)
{
	return !memcmp(ours->gid, theirs->gid, sizeof(ours->gid)) &&
	       ours->lid_begin == theirs->lid_begin && ours->is_generic == theirs->is_generic &&
	       ours->type == theirs->type && ours->trap_number == theirs->trap_number &&
	       (be32toh(ours->producer_type) & ALL_PRODUCERS) ==
		       (be32toh(theirs->producer_type) & ALL_PRODUCERS);
}

static int subscription_take(struct registration *registration, unsigned index,
			     const void *data, size_t size)
{
	const struct mad_sa_inform_info *ours = &notices_of(registration)->filters[index].wire;
	struct mad_sa_inform_info theirs;

	if (size < sizeof(theirs))
		return -EBADMSG;
	memcpy(&theirs, data, sizeof(theirs));
	return theirs.subscribe == ours->subscribe && is_same(ours, &theirs) ? 0 : -EBADMSG;
}

static bool subscription_is_record(struct registration *registration, unsigned index,
				   const void *record)
{
	const struct mad_sa_inform_info_record *theirs = record;

	return is_same(&notices_of(registration)->filters[index].wire, &theirs->info);
}

static void subscription_tell(struct registration *registration,
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

static void subscription_port_changed(struct registration *registration,
				      const struct mad_notice_port *before,
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
	.tell = subscription_tell,
	.port_changed = subscription_port_changed,
	.end = subscription_end,
};

/* --- reports: each is handed out once, although the SM may repeat it, and confirmed -- */

/* FNV-1a */
static uint64_t add_to_digest(uint64_t digest, const uint8_t *bytes, size_t size)
{
	while (size--)
		digest = (digest ^ *bytes++) * UINT64_C(0x100000001b3);
	return digest;
}

/*
 * Whether the report (at least REPORT_SIZE bytes) was already delivered; remembers it if not.
 */
static bool is_repeated(struct mad_notices *notices, const struct mad_request *request)
{
	const uint8_t lid[] = {(uint8_t)(request->from.lid >> 8), (uint8_t)request->from.lid};
	struct recent_report *recent = &notices->recent[request->tid % RECENT];
	struct recent_report now = {clock_us(), request->tid, UINT64_C(0xcbf29ce484222325)};

	now.digest = add_to_digest(now.digest, lid, sizeof(lid));
	now.digest = add_to_digest(now.digest, request->data, REPORT_SIZE);
	if (recent->at && now.at - recent->at < RECENT_US && recent->tid == now.tid &&
	    recent->digest == now.digest)
		return true;
	*recent = now;
	return false;
}

static void report_came(struct mad_server *server, struct mad_request *request, int error,
			void *arg)
{
	struct mad_notices *notices = arg;
	unsigned status = 0;
	struct mad_notice notice;

	(void)server;
	(void)error; /* the registration reports the same */
	if (!request) {
		server_ended(notices);
		return;
	}
	if (request->attribute != IB_SA_ATTR_NOTICE) {
		notices->malformed++;
		status = IB_MAD_STS_METHOD_ATTR_NOT_SUPPORTED;
	} else if (request->data_size < REPORT_SIZE) {
		notices->malformed++;
		mad_request_free(request);
		return;
	} else if (is_repeated(notices, request)) {
		notices->duplicates++;
	} else {
		notices->reports++;
		mad_notice_decode(request->data, REPORT_SIZE, &notice, sizeof(notice));
		notices_tell(notices, &notice);
	}
	if (mad_request_respond(request, status, NULL, 0))
		mad_request_free(request); /* the SM repeats the report */
	else
		notices->confirmed++;
}

/* --- calls --------------------------------------------------------------------------- */

/* A thread that frees the engine meanwhile waits until the registration exists. */
static int start_parts(struct mad_notices *notices, unsigned limit)
{
	const struct mad_server_options options = {
		.mgmt_class = IB_SA_CLASS,
		.methods = {MAD_SERVER_METHOD(IB_MAD_METHOD_REPORT)},
		.limit = limit,
	};
	struct mad_async *engine = notices->subscription.engine;
	int ret;

	ret = engine_enter(engine);
	if (ret)
		return failure_of_call(0, ret);
	ret = keeper_make_unlocking(engine, "mad_notices_start");
	if (!ret) {
		/* its callback may stop the notices before registration_add() */
		port_unlock(engine->port);
		ret = mad_server_start(engine, &options, report_came, notices,
				       &notices->server);
		port_lock(engine->port);
	}
	if (!ret)
		registration_add(&notices->subscription);
	engine_leave(engine);
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
	started->subscription.engine = async;
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
		registration_stop(&notices->subscription);
}

EXPORT int mad_notices_get_stats(struct mad_notices *notices, struct mad_notices_stats *stats,
				 size_t size)
{
	struct mad_server_stats server;
	struct mad_notices_stats now;

	if (!notices || !stats)
		return failure_of_call(0, -EINVAL);
	if (engine_enter(notices->subscription.engine))
		return failure_of_call(0, -ECANCELED);
	server = notices->server ? server_stats(notices->server) : notices->last_server;
	engine_leave(notices->subscription.engine);
	now = (struct mad_notices_stats){
		.reports = notices->reports,
		.confirmed = notices->confirmed,
		.duplicates = notices->duplicates + server.duplicates,
		.dropped = server.dropped,
		.malformed = notices->malformed,
		.subscriptions = notices->subscription.accepted,
		.failures = notices->subscription.failures,
	};
	memset(stats, 0, size);
	memcpy(stats, &now, size < sizeof(now) ? size : sizeof(now));
	return 0;
}
