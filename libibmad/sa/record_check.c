/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Checks whether the SA still has the registrations, by a table of its records of the local
 * port: the MCMemberRecords (IBA 15.2.5.17) and the InformInfoRecords (15.2.5.12) in turn.
 */

#include "sa/keeper.h"
#include "sa/sa.h"

#include <errno.h>
#include <stddef.h>

/* Of an attempt; a later response completes the request, too. */
#define TIMEOUT_MS   1000
/* When the SA has forgotten one kind of registrations, the other one is checked after this
 * time. */
#define SUSPICION_US INT64_C(1000000)
/* If the SA has no such table, a registration is renewed when this time is over. */
#define BLIND_US     INT64_C(10000000)
/* An SA that has accepted a registration so many times, and does not list it, never lists it.
 */
#define MISSED_MOST  3

static struct registration *registration_of(struct list *entry)
{
	return list_entry(entry, struct registration, all);
}

/* --- the request ------------------------------------------------------------------ */

/* Whether the SA should have the registration. */
static bool is_checked(const struct registration *registration)
{
	return registration->sent && registration->told && !registration->stopping &&
	       registration->told_error != -EIO;
}

static bool has_kind(const struct sa_keeper *keeper, enum registration_kind kind)
{
	list_for_each (entry, &keeper->registrations) {
		const struct registration *registration = registration_of(entry);

		if (registration->ops->kind == kind && is_checked(registration))
			return true;
	}
	return false;
}

/* The next kind in turn that has registrations. */
static bool choose_kind(struct sa_keeper *keeper)
{
	for (unsigned i = 1; i <= REGISTRATION_KINDS; i++) {
		enum registration_kind kind =
			(enum registration_kind)((keeper->check_kind + i) % REGISTRATION_KINDS);

		if (has_kind(keeper, kind)) {
			keeper->check_kind = kind;
			return true;
		}
	}
	return false;
}

static void check_came(struct mad_async *async, const struct mad_sa_response *response,
		       void *arg);

static int submit(struct sa_keeper *keeper)
{
	const ib_portid_t sa = {.lid = (int)keeper->port.sm_lid,
				.sl = (uint8_t)keeper->port.sm_sl};
	struct umad_sa_mcmember_record member = {.qkey = 0};
	struct mad_sa_inform_info_record inform = {.number = 0};
	struct mad_sa_query query = {.timeout_ms = TIMEOUT_MS, .sa = &sa};

	if (keeper->check_kind == MEMBERSHIP) {
		keeper_gid(keeper, member.portgid);
		query.attribute = IB_SA_ATTR_MCRECORD;
		query.component_mask = UMAD_SA_MCM_COMP_MASK_PORT_GID;
		query.record = &member;
		query.record_size = offsetof(struct umad_sa_mcmember_record, pad);
	} else {
		keeper_gid(keeper, inform.subscriber_gid);
		query.attribute = IB_SA_ATTR_INFORMINFORECORD;
		query.component_mask = MAD_SA_INFORM_RECORD_SUBSCRIBER_GID;
		query.record = &inform;
		query.record_size = offsetof(struct mad_sa_inform_info_record, pad);
	}
	return mad_sa_submit(keeper->engine, &query, check_came, keeper, &keeper->check_id);
}

void record_check_start(struct sa_keeper *keeper, int64_t now)
{
	keeper->check_at = now + keeper->check_us;
	if (!keeper->guid || !choose_kind(keeper))
		return;
	keeper->check_begin = now;
	keeper->stale = false;
	keeper->checking = !submit(keeper);
}

void record_check_cancel(struct sa_keeper *keeper)
{
	keeper->stale = true;
	if (keeper->checking)
		mad_async_cancel(keeper->engine, keeper->check_id);
}

/* --- the response ----------------------------------------------------------------- */

static bool has_record(struct registration *registration, unsigned index,
		       const struct mad_sa_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		if (registration->ops->is_record(registration, index,
						 mad_sa_table_record(table, i)))
			return true;
	return false;
}

static bool has_all_records(struct registration *registration, const struct mad_sa_table *table)
{
	for (unsigned i = 0; i < registration->slot_count; i++)
		if (!has_record(registration, i, table))
			return false;
	return true;
}

/* The SA does not tell whether it has the registration. */
static void renew_blindly(struct registration *registration)
{
	if (registration->told_error || registration->renew_at != NEVER)
		return;
	registration->quiet = true;
	registration->renew_at = registration->certain + BLIND_US;
}

static void take_table(struct sa_keeper *keeper, struct registration *registration,
		       const struct mad_sa_table *table)
{
	const struct mad_failure none = registration_error(0);

	/* without a response to the Set, the SA may not have granted all that is requested */
	if (registration->certain && has_all_records(registration, table)) {
		registration->missed = 0;
		registration->renew_at = NEVER;
		registration->retry_ms = 0;
		registration_tell(registration, &none, false);
		registration->certain = keeper->check_begin;
	} else if (registration->missed < MISSED_MOST) {
		registration->missed++;
		registration_renew(registration);
		keeper->check_at = clock_us() + SUSPICION_US;
	} else {
		renew_blindly(registration);
	}
}

static void take_response(struct sa_keeper *keeper, struct registration *registration,
			  const struct mad_sa_response *response)
{
	bool same_kind = registration->ops->kind == keeper->check_kind;

	/* a round that ended later tells more than the table */
	if (!is_checked(registration) || registration->setting ||
	    registration->round_end > keeper->check_begin)
		return;
	if (response->error == -ETIMEDOUT) {
		registration->missed = 0; /* the SA may be restarted, and forget it for that */
		registration_tell(registration, &keeper->check_failure, false);
	} else if (!same_kind || response->error == -ENOMEM ||
		   response->status == IB_MAD_STS_BUSY) {
		return;
	} else if (response->error) {
		renew_blindly(registration);
	} else {
		take_table(keeper, registration, response->table);
	}
}

static void check_came(struct mad_async *async, const struct mad_sa_response *response,
		       void *arg)
{
	struct sa_keeper *keeper = arg;

	(void)async;
	keeper->checking = false;
	if (response->error)
		keeper->check_failure = *mad_last_failure();
	if (response->error != -ECANCELED && !keeper->stale)
		list_for_each (entry, &keeper->registrations)
			take_response(keeper, registration_of(entry), response);
	mad_sa_table_free(response->table);
	keeper_set_timer(keeper, 0);
}
