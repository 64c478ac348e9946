/* SPDX-License-Identifier: BSD-2-Clause */

#include "notices/subscription.h"

#include "mad/layout.h"

#include <infiniband/mad_sa.h>
#include <stdlib.h>

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
	if (!reply->error && !inform_info_is_same(info, reply->data, reply->data_size))
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
