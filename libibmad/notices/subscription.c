/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The subscription at the SA. A round is a Set of InformInfo (IBA 13.4.8.3) for each filter.
 * The rounds are repeated, because a restarted SA, or another SA, does not know the
 * subscription.
 */

#include "mad/layout.h"
#include "notices/notices_state.h"

#include <infiniband/mad_sa.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- InformInfo ------------------------------------------------------------------- */

#define ALL           0xffff
#define ALL_PRODUCERS 0xffffff
#define QP1           1
/* Reports are confirmed within 4.096 us * 2^18, which is a second. */
#define RESPONSE_TIME 18
#define BY_ALL                                                              \
	(MAD_NOTICE_BY_TYPE | MAD_NOTICE_BY_TRAP | MAD_NOTICE_BY_PRODUCER | \
	 MAD_NOTICE_BY_LIDS | MAD_NOTICE_BY_GID)

static unsigned chosen(const struct mad_notice_filter *filter, unsigned bit, unsigned value,
		       unsigned all)
{
	return filter->by & bit ? value : all;
}

int inform_info_init(struct inform_info *info, const struct mad_notice_filter *filter)
{
	unsigned type = chosen(filter, MAD_NOTICE_BY_TYPE, filter->type, ALL);
	unsigned trap = chosen(filter, MAD_NOTICE_BY_TRAP, filter->trap, ALL);
	unsigned producer =
		chosen(filter, MAD_NOTICE_BY_PRODUCER, filter->producer, ALL_PRODUCERS);
	unsigned begin = chosen(filter, MAD_NOTICE_BY_LIDS, filter->lid_begin, ALL);
	unsigned end = chosen(filter, MAD_NOTICE_BY_LIDS, filter->lid_end, 0);

	if (filter->by & ~(unsigned)BY_ALL || type > ALL || trap > ALL ||
	    producer > ALL_PRODUCERS || begin > ALL || end > ALL ||
	    (filter->by & MAD_NOTICE_BY_LIDS && (!begin || begin > end)))
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
	if (filter->by & MAD_NOTICE_BY_LIDS)
		info->components |= MAD_SA_INFORM_LID_END;
	if (filter->by & MAD_NOTICE_BY_GID) {
		info->components |= MAD_SA_INFORM_GID;
		memcpy(info->wire.gid, filter->gid, sizeof(filter->gid));
	}
	return 0;
}

/*
 * Whether a response of size bytes is to this request. The SA may fill in the QP and the times,
 * and does not receive the reserved bytes.
 */
static bool is_same(const struct inform_info *info, const void *response, size_t size)
{
	const struct mad_sa_inform_info *ours = &info->wire;
	struct mad_sa_inform_info theirs;

	if (size < sizeof(theirs))
		return false;
	memcpy(&theirs, response, sizeof(theirs));
	return !memcmp(ours->gid, theirs.gid, sizeof(ours->gid)) &&
	       ours->lid_begin == theirs.lid_begin && ours->is_generic == theirs.is_generic &&
	       ours->subscribe == theirs.subscribe && ours->type == theirs.type &&
	       ours->trap_number == theirs.trap_number &&
	       (be32toh(ours->producer_type) & ALL_PRODUCERS) ==
		       (be32toh(theirs.producer_type) & ALL_PRODUCERS);
}

/* --- rounds ----------------------------------------------------------------------- */

/* The interval after a round that failed; it doubles after each further failure. */
#define RETRY_MIN_MS 1000
#define RETRY_MAX_MS 60000

/* The argument of a request's callback. */
struct subscription {
	struct mad_notices *notices;
	unsigned filter;
};

void subscription_tell(struct mad_notices *notices, int error, unsigned status, unsigned sm)
{
	const struct mad_notice notice = {
		.kind = MAD_NOTICE_SUBSCRIPTION, .error = error, .status = status};

	if (notices->told && notices->told_error == error && notices->told_status == status &&
	    (error || notices->told_sm == sm))
		return;
	notices->told = true;
	notices->told_error = error;
	notices->told_status = status;
	notices->told_sm = sm;
	notices_tell(notices, &notice);
}

static int64_t after_round(struct mad_notices *notices)
{
	unsigned *retry = &notices->retry_ms;

	if (notices->changed) {
		notices->changed = false;
		*retry = 0;
		return 0;
	}
	if (!notices->set_error) {
		*retry = 0;
		return clock_us() + notices->renew_us;
	}
	*retry = *retry ? *retry * 2 : RETRY_MIN_MS;
	if (*retry > RETRY_MAX_MS)
		*retry = RETRY_MAX_MS;
	return clock_us() + *retry * INT64_C(1000);
}

/* All filters have their response, or have failed. */
static void end_round(struct mad_notices *notices)
{
	if (notices->undoing)
		return;
	if (!notices->set_error)
		notices->counts.subscriptions++;
	else if (!notices->changed)
		notices->counts.failures++;
	notices->renew_at = after_round(notices);
	/* after a cancel, the notices end, or another round follows */
	if (notices->set_error != -ECANCELED)
		subscription_tell(notices, notices->set_error, notices->set_status,
				  notices->set_sm);
}

static void note_error(struct mad_notices *notices, int error, unsigned status)
{
	if (!error || notices->set_error)
		return;
	notices->set_error = error;
	notices->set_status = status;
}

static void set_came(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	struct subscription *subscription = arg;
	struct mad_notices *notices = subscription->notices;
	const struct inform_info *info = &notices->filters[subscription->filter];

	(void)async;
	notices->ids[subscription->filter] = 0;
	free(subscription);
	if (!reply->error && !is_same(info, reply->data, reply->data_size))
		note_error(notices, -EBADMSG, 0);
	else
		note_error(notices, reply->error, reply->error == -EIO ? reply->status : 0);
	if (!--notices->setting)
		end_round(notices);
	notices_set_timer(notices, 0);
}

static int submit_set(struct mad_notices *notices, unsigned filter, bool subscribe)
{
	struct inform_info *info = &notices->filters[filter];
	const ib_rpc_t rpc = {
		.mgtclass = IB_SA_CLASS,
		.method = IB_MAD_METHOD_SET,
		.attr = {.id = IB_SA_ATTR_INFORMINFO},
		.dataoffs = IB_SA_DATA_OFFS,
		.mkey = sa_key_get(notices->engine->port),
		.mask = info->components,
	};
	const ib_portid_t sa = {.lid = (int)notices->port.sm_lid,
				.sl = (uint8_t)notices->port.sm_sl};
	struct subscription *subscription = malloc(sizeof(*subscription));
	int ret;

	if (!subscription)
		return -ENOMEM;
	*subscription = (struct subscription){notices, filter};
	info->wire.subscribe = subscribe;
	ret = mad_async_submit(notices->engine, &rpc, &sa, &info->wire, sizeof(info->wire),
			       set_came, subscription, &notices->ids[filter]);
	if (ret < 0)
		free(subscription);
	else
		notices->setting++;
	return ret;
}

void subscription_cancel(struct mad_notices *notices)
{
	for (unsigned i = 0; i < notices->filter_count; i++)
		if (notices->ids[i])
			mad_async_cancel(notices->engine, notices->ids[i]);
}

void subscription_start_round(struct mad_notices *notices, bool subscribe)
{
	notices->set_error = 0;
	notices->set_status = 0;
	notices->set_sm = notices->port.sm_lid;
	notices->undoing = !subscribe;
	if (subscribe)
		notices->subscribed = true;
	for (unsigned i = 0; i < notices->filter_count; i++)
		note_error(notices, submit_set(notices, i, subscribe), 0);
	if (!notices->setting)
		end_round(notices);
}
