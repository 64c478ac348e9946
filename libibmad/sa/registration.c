/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The rounds of a registration. A round is a Set for each of its requests, or the requests that
 * end the registration.
 */

#include "sa/keeper.h"

#include "base/report.h"
#include "engine/port.h"

#include <errno.h>

/* The interval after a round that failed; it doubles after each further failure. */
#define RETRY_MIN_MS 1000
#define RETRY_MAX_MS 8000

struct mad_failure registration_error(int error)
{
	return (struct mad_failure){.error = error, .mgmt_class = IB_SA_CLASS};
}

unsigned registration_status(const struct mad_failure *failure)
{
	bool is_status = !failure->error || failure->error == -EIO;

	return is_status && failure->mgmt_class == IB_SA_CLASS ? failure->status : 0;
}

void registration_tell(struct registration *registration, const struct mad_failure *failure,
		       bool always)
{
	struct registration_result result = {.error = failure->error,
					     .status = registration_status(failure)};

	if (registration->stopping) /* only the end is told */
		return;
	if (!always && registration->told && registration->told_error == result.error &&
	    registration->told_status == result.status)
		return;
	if (!result.error && registration->certain) {
		result.gap_begin = registration->certain;
		result.gap_end = clock_us();
	}
	registration->told = true;
	registration->told_error = result.error;
	registration->told_status = result.status;
	if (result.error)
		failure_store(failure);
	registration->ops->tell(registration, &result);
}

void registration_renew(struct registration *registration)
{
	registration->retry_ms = 0;
	registration->renew_at = 0;
	registration->quiet = false;
}

static void plan_retry(struct registration *registration)
{
	unsigned *retry = &registration->retry_ms;

	*retry = *retry ? *retry * 2 : RETRY_MIN_MS;
	if (*retry > RETRY_MAX_MS)
		*retry = RETRY_MAX_MS;
	registration->renew_at = registration->round_end + *retry * INT64_C(1000);
}

/* All requests have their response, or have failed. */
static void end_round(struct registration *registration)
{
	bool changed = registration->changed;
	int error = registration->failure.error;

	if (registration->undoing)
		return;
	registration->round_end = clock_us();
	registration->changed = false;
	if (!error) {
		registration->accepted++;
		registration->retry_ms = 0;
		if (!changed)
			registration->renew_at = NEVER;
		registration_tell(registration, &registration->failure, !registration->quiet);
		registration->certain = registration->round_begin;
		return;
	}
	if (changed)
		return; /* another round follows at once */
	registration->failures++;
	plan_retry(registration);
	if (error != -ECANCELED) /* the registration is stopped, and ends */
		registration_tell(registration, &registration->failure, false);
}

/* The thread has just stored the failure of the error, which may be 0. */
static void note_failure(struct registration *registration, int error)
{
	if (error && !registration->failure.error)
		registration->failure = *mad_last_failure();
}

static void response_came(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	struct registration_slot *slot = arg;
	struct registration *registration = slot->registration;
	unsigned index = (unsigned)(slot - registration->slots);
	int error = reply->error;

	(void)async;
	slot->id = 0;
	if (!error && !registration->undoing)
		error = failure_of_call(IB_SA_CLASS,
					registration->ops->take(registration, index,
								reply->data, reply->data_size));
	note_failure(registration, error);
	if (!--registration->setting)
		end_round(registration);
	keeper_set_timer(registration->keeper, 0);
}

static int submit(struct registration *registration, unsigned index, bool registers)
{
	struct sa_keeper *keeper = registration->keeper;
	struct registration_slot *slot = &registration->slots[index];
	const ib_portid_t sa = {.lid = (int)keeper->port.sm_lid,
				.sl = (uint8_t)keeper->port.sm_sl};
	struct registration_request request = {0};
	ib_rpc_t rpc = {
		.mgtclass = IB_SA_CLASS,
		.dataoffs = IB_SA_DATA_OFFS,
		.mkey = options_sa_key(keeper->engine->port),
	};
	int ret;

	registration->ops->fill(registration, index, registers, &request);
	rpc.method = request.method;
	rpc.attr.id = request.attribute;
	rpc.mask = request.mask;
	slot->registration = registration;
	ret = mad_async_submit(keeper->engine, &rpc, &sa, request.data, request.size,
			       response_came, slot, &slot->id);
	if (ret < 0)
		slot->id = 0;
	else
		registration->setting++;
	return ret;
}

void registration_cancel(struct registration *registration)
{
	for (unsigned i = 0; i < registration->slot_count; i++)
		if (registration->slots[i].id)
			mad_async_cancel(registration->keeper->engine,
					 registration->slots[i].id);
}

void registration_start_round(struct registration *registration, bool registers)
{
	registration->failure = registration_error(0);
	registration->undoing = !registers;
	registration->round_begin = clock_us();
	registration->renew_at = NEVER;
	if (registers)
		registration->sent = true;
	for (unsigned i = 0; i < registration->slot_count; i++)
		note_failure(registration, submit(registration, i, registers));
	if (!registration->setting)
		end_round(registration);
}
