/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The rounds of a registration. A round is a Set for each of its requests, or the requests that
 * end the registration.
 */

#include "sa/keeper.h"

#include "base/report.h"
#include "calls/options.h"

#include <errno.h>

/* The interval after a round that failed; it doubles after each further failure. */
#define RETRY_MIN_MS 1000
#define RETRY_MAX_MS 8000

void registration_store_failure(const struct registration *registration, int error)
{
	if (error && error == registration->set_error)
		failure_store(&registration->failure);
	else
		failure_of_call(IB_SA_CLASS, error);
}

void registration_tell(struct registration *registration, int error, unsigned status,
		       bool always)
{
	struct registration_result result = {.error = error, .status = status};

	if (!always && registration->told && registration->told_error == error &&
	    registration->told_status == status)
		return;
	if (!error && registration->certain) {
		result.gap_begin = registration->certain;
		result.gap_end = clock_us();
	}
	registration->told = true;
	registration->told_error = error;
	registration->told_status = status;
	registration_store_failure(registration, error);
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
	int error = registration->set_error;

	if (registration->undoing)
		return;
	registration->round_end = clock_us();
	registration->changed = false;
	if (!error) {
		registration->accepted++;
		registration->retry_ms = 0;
		if (!changed)
			registration->renew_at = NEVER;
		registration_tell(registration, 0, 0, !registration->quiet);
		registration->certain = registration->round_begin;
		return;
	}
	if (changed)
		return; /* another round follows at once */
	registration->failures++;
	plan_retry(registration);
	if (error != -ECANCELED) /* the registration is stopped, and ends */
		registration_tell(registration, error, registration->set_status, false);
}

static void note_error(struct registration *registration, int error, unsigned status)
{
	if (!error || registration->set_error)
		return;
	registration->set_error = error;
	registration->set_status = status;
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
	note_error(registration, error, error == -EIO ? reply->status : 0);
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
	registration->set_error = 0;
	registration->set_status = 0;
	registration->undoing = !registers;
	registration->round_begin = clock_us();
	registration->renew_at = NEVER;
	if (registers)
		registration->sent = true;
	for (unsigned i = 0; i < registration->slot_count; i++)
		note_error(registration, submit(registration, i, registers), 0);
	if (!registration->setting)
		end_round(registration);
}
