/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * An engine's keeper (keeper.h): notifications, rounds of requests, the local port, checks of
 * the SA's records, and the timer that drives them.
 */

#include "sa/keeper.h"

#include "base/report.h"

#include <infiniband/mad_fields.h>
#include <infiniband/mad_link.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

/* Per attempt to read the port or the SA's records; a later response also completes it. */
#define TIMEOUT_MS   1000
/* Interval after a failed round; doubles with each further one. */
#define RETRY_MIN_MS 1000
#define RETRY_MAX_MS 8000
/* Retries of an engine's registrations begin at this interval per request. */
#define PACE_US      INT64_C(1000000)
/* After finding a registration missing, the keeper checks the other kind after this time. */
#define SUSPICION_US INT64_C(1000000)
/* Renewal interval when the SA has no such table. */
#define BLIND_US     INT64_C(10000000)
/* An SA that accepts a registration this often but never lists it never will. */
#define MISSED_MOST  3
/* told_error before the program knows a state. */
#define NOTHING_TOLD 1

/* Not a member, or no such subscription (IBA 15.2.3). */
#define NOT_REGISTERED (UMAD_SA_STATUS_REQ_INVALID << 8)

struct sa_keeper {
	struct engine_timer timer;
	struct mad_async *engine;
	struct list joining; /* added but not seen yet */
	struct list registrations;

	/* the local port */
	int64_t poll_us;                 /* minimum of the registrations' */
	int64_t poll_at;                 /* next reading */
	bool reading;                    /* PortInfo or NodeInfo is in flight */
	struct mad_failure read_failure; /* of the latest reading, or 0 */
	bool known;                      /* read since there are registrations */
	struct mad_notice_port port;     /* as it was read */
	uint64_t guid;                   /* PortGUID; 0: unknown */

	/* the check of the SA's records */
	int64_t check_us;  /* minimum of the registrations' */
	int64_t check_at;  /* next check */
	uint64_t check_id; /* table request; 0: none */
	int64_t check_begin;
	enum registration_kind check_kind; /* kind of the present or latest check */

	int64_t paced_at; /* no other retry before this time */
};

static struct registration *registration_of(struct list *entry)
{
	return list_entry(entry, struct registration, all);
}

/* Due at this time or earlier; 0: now. */
static void keeper_set_timer(struct sa_keeper *keeper, int64_t at)
{
	engine_enter_again(keeper->engine);
	/* another thread or a callback may have set it while this was computed */
	if (at < keeper->timer.at)
		engine_timer_set(keeper->engine, &keeper->timer, at);
	engine_leave(keeper->engine);
}

/* --- notifying the program -------------------------------------------------------- */

/* A failure without a request. */
static struct mad_failure failure_of_none(int error)
{
	return (struct mad_failure){.error = error, .mgmt_class = IB_SA_CLASS};
}

/* Returns 0 if the failure is not an SA status. */
static unsigned sa_status(const struct mad_failure *failure)
{
	bool is_status = !failure->error || failure->error == -EIO;

	return is_status && failure->mgmt_class == IB_SA_CLASS ? failure->status : 0;
}

/*
 * Reports the registration's state if it changed, or always. failure->error 0: the SA has it.
 */
static void registration_tell(struct registration *registration,
			      const struct mad_failure *failure, bool always)
{
	struct registration_result result = {.error = failure->error,
					     .status = sa_status(failure)};

	if (registration->stopping) /* only the end is reported */
		return;
	if (!always && registration->told_error == result.error &&
	    registration->told_status == result.status)
		return;
	if (!result.error && registration->certain) {
		result.gap_begin = registration->certain;
		result.gap_end = clock_us();
	}
	registration->told_error = result.error;
	registration->told_status = result.status;
	if (result.error)
		failure_store(failure);
	registration->ops->tell(registration, &result);
}

/* failure: of the end; error 0 if the SA no longer has it. */
static void registration_end(struct registration *registration,
			     const struct mad_failure *failure)
{
	struct mad_async *engine = registration->engine;

	list_remove(&registration->all);
	if (failure->error)
		failure_store(failure);
	registration->ops->end(registration, failure->error, sa_status(failure));
	/* the engine is not idle until its last callback returns */
	engine_enter_again(engine);
	engine->registrations--;
	engine_leave(engine);
}

/* --- rounds: a request for each slot ---------------------------------------------- */

/* Makes a round due at once. */
static void registration_renew(struct registration *registration)
{
	registration->retry_ms = 0;
	registration->renew_at = 0;
	registration->blind = false;
}

/* Requests in flight complete with -ECANCELED. */
static void cancel_round(struct registration *registration)
{
	for (unsigned i = 0; i < registration->count; i++)
		if (registration->slots[i].id)
			mad_async_cancel(registration->engine, registration->slots[i].id);
}

/* All requests are complete. */
static void end_round(struct registration *registration)
{
	const struct mad_failure *failure = &registration->failure;

	if (registration->phase == REGISTRATION_ENDING) {
		registration->phase = REGISTRATION_ENDED;
		return;
	}
	registration->phase = REGISTRATION_SENT;
	if (!failure->error) {
		registration->accepted++;
		registration->retry_ms = 0;
		registration_tell(registration, failure, !registration->blind);
		registration->certain = registration->round_begin;
		return;
	}
	if (registration->renew_at != NEVER)
		return; /* the next round follows at once */
	registration->failures++;
	registration->retry_ms =
		registration->retry_ms ? registration->retry_ms * 2 : RETRY_MIN_MS;
	if (registration->retry_ms > RETRY_MAX_MS)
		registration->retry_ms = RETRY_MAX_MS;
	registration->renew_at = clock_us() + registration->retry_ms * INT64_C(1000);
	if (failure->error != -ECANCELED) /* stopped: it ends */
		registration_tell(registration, failure, false);
}

/* The calling thread has just stored this failure (error may be 0). */
static void note_failure(struct registration *registration, int error)
{
	if (error && !registration->failure.error)
		registration->failure = *mad_last_failure();
}

static void response_came(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	struct registration_slot *slot = arg;
	struct registration *registration = slot->registration;
	unsigned index = (unsigned)(slot - registration->slots);
	int error = reply->error;

	(void)engine;
	slot->id = 0;
	if (!error && registration->phase == REGISTRATION_SENDING)
		error = failure_of_call(IB_SA_CLASS,
					registration->ops->take(registration, index,
								reply->data, reply->data_size));
	note_failure(registration, error);
	if (!--registration->in_flight)
		end_round(registration);
	keeper_set_timer(registration->keeper, 0);
}

/* phase: REGISTRATION_SENDING or REGISTRATION_ENDING */
static void start_round(struct registration *registration, enum registration_phase phase)
{
	struct sa_keeper *keeper = registration->keeper;
	const ib_portid_t sa = {.lid = (int)keeper->port.sm_lid,
				.sl = (uint8_t)keeper->port.sm_sl};

	registration->phase = phase;
	registration->failure = failure_of_none(0);
	registration->round_begin = clock_us();
	registration->renew_at = NEVER;
	registration->in_check = false;
	for (unsigned i = 0; i < registration->count; i++) {
		struct registration_slot *slot = &registration->slots[i];
		ib_rpc_t rpc = {
			.mgtclass = IB_SA_CLASS,
			.dataoffs = IB_SA_DATA_OFFS,
			.mkey = options_sa_key(keeper->engine->port),
		};
		const void *data = registration->ops->fill(registration, i,
							   phase == REGISTRATION_SENDING, &rpc);
		int error;

		slot->registration = registration;
		error = mad_async_submit(keeper->engine, &rpc, &sa, data, (size_t)rpc.datasz,
					 response_came, slot, &slot->id);
		if (error)
			slot->id = 0;
		else
			registration->in_flight++;
		note_failure(registration, error);
	}
	if (!registration->in_flight)
		end_round(registration);
}

/* --- the local port --------------------------------------------------------------- */

void keeper_gid(const struct sa_keeper *keeper, uint8_t gid[16])
{
	mad_set_field64(gid, 0, IB_GID_PREFIX_F, keeper->port.gid_prefix);
	mad_set_field64(gid, 0, IB_GID_GUID_F, keeper->guid);
}

/* Whether the port is active, and has an SM and a LID. */
static bool port_is_usable(const struct sa_keeper *keeper)
{
	return keeper->known && keeper->port.state == MAD_PORT_ACTIVE && keeper->port.sm_lid &&
	       keeper->port.lid;
}

static void decode_port(const uint8_t *info, struct mad_notice_port *port)
{
	*port = (struct mad_notice_port){
		.state = (uint32_t)mad_read_field(info, 0, IB_PORT_STATE_F),
		.physical_state = (uint32_t)mad_read_field(info, 0, IB_PORT_PHYS_STATE_F),
		.lid = (uint32_t)mad_read_field(info, 0, IB_PORT_LID_F),
		.lmc = (uint32_t)mad_read_field(info, 0, IB_PORT_LMC_F),
		.sm_lid = (uint32_t)mad_read_field(info, 0, IB_PORT_SMLID_F),
		.sm_sl = (uint32_t)mad_read_field(info, 0, IB_PORT_SMSL_F),
		.gid_prefix = mad_read_field(info, 0, IB_PORT_GID_PREFIX_F),
		.capability_mask = (uint32_t)mad_read_field(info, 0, IB_PORT_CAPMASK_F),
		.mtu = (uint32_t)mad_read_field(info, 0, IB_PORT_NEIGHBOR_MTU_F),
		.width = (uint32_t)mad_read_field(info, 0, IB_PORT_LINK_WIDTH_ACTIVE_F),
		.speed = (uint32_t)mad_read_field(info, 0, IB_PORT_LINK_SPEED_ACTIVE_F),
	};
}

/*
 * The SA identifies the port by LID and GID, and a link that was down may have a new SM: on
 * such changes, all registrations start over.
 */
static void take_port(struct sa_keeper *keeper, const struct mad_notice_port *after)
{
	const struct mad_notice_port before = keeper->port;
	bool first = !keeper->known;
	bool renews = first || before.state != after->state || before.lid != after->lid ||
		      before.sm_lid != after->sm_lid || before.sm_sl != after->sm_sl ||
		      before.gid_prefix != after->gid_prefix;

	if (!renews && before.physical_state == after->physical_state &&
	    before.lmc == after->lmc && before.capability_mask == after->capability_mask &&
	    before.mtu == after->mtu && before.width == after->width &&
	    before.speed == after->speed)
		return;
	keeper->port = *after;
	keeper->known = true;
	if (renews) {
		keeper->guid = 0; /* a virtual function's may change */
		if (keeper->check_id)
			mad_async_cancel(keeper->engine, keeper->check_id);
		list_for_each (entry, &keeper->registrations) {
			struct registration *registration = registration_of(entry);

			registration->missed = 0;
			registration->in_check = false;
			/* their SM may be gone */
			cancel_round(registration);
			registration_renew(registration);
		}
	}
	list_for_each (entry, &keeper->registrations) {
		struct registration *registration = registration_of(entry);

		if (!first && registration->ops->port_changed)
			registration->ops->port_changed(registration, &before, after);
	}
}

static void read_port(struct sa_keeper *keeper, unsigned attribute, mad_async_fn *callback)
{
	struct mad_async *engine = keeper->engine;

	engine_enter_again(engine);
	keeper->reading = !engine_read_port_unlocking(engine, CALL_ASYNC_SUBMIT, attribute,
						      options_m_key(engine->port), TIMEOUT_MS,
						      callback, keeper, NULL);
	engine_leave(engine);
}

/* Whether the SMP's response has data. */
static bool port_was_read(struct sa_keeper *keeper, const struct mad_reply *reply)
{
	keeper->reading = false;
	keeper->read_failure = reply->error ? *mad_last_failure() : failure_of_none(0);
	return !reply->error && reply->data_size >= IB_SMP_DATA_SIZE;
}

static void node_info_came(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	struct sa_keeper *keeper = arg;

	(void)engine;
	if (port_was_read(keeper, reply))
		keeper->guid = mad_read_field(reply->data, 0, IB_NODE_PORT_GUID_F);
	keeper_set_timer(keeper, 0);
}

static void port_info_came(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	struct sa_keeper *keeper = arg;
	struct mad_notice_port port;

	(void)engine;
	if (port_was_read(keeper, reply)) {
		decode_port(reply->data, &port);
		take_port(keeper, &port);
	}
	if (!keeper->guid && port_is_usable(keeper))
		read_port(keeper, IB_ATTR_NODE_INFO, node_info_came);
	keeper_set_timer(keeper, 0);
}

/* --- the check: does the SA still have the registrations? ------------------------- */

/* Whether the SA should have it. */
static bool is_expected(const struct registration *registration)
{
	return registration->phase != REGISTRATION_NEW && !registration->stopping &&
	       registration->told_error <= 0 && registration->told_error != -EIO;
}

/* Whether every request has a record in the table. */
static bool is_in_table(struct registration *registration, const struct mad_sa_table *table)
{
	for (unsigned i = 0; i < registration->count; i++) {
		size_t at = 0;

		while (at < table->count &&
		       !registration->ops->is_record(registration, i,
						     mad_sa_table_record(table, at)))
			at++;
		if (at == table->count)
			return false;
	}
	return true;
}

static void check_came(struct mad_async *engine, const struct mad_sa_response *response,
		       void *arg)
{
	const struct mad_failure failure = *mad_last_failure(), none = failure_of_none(0);
	struct sa_keeper *keeper = arg;

	(void)engine;
	keeper->check_id = 0;
	list_for_each (entry, &keeper->registrations) {
		struct registration *registration = registration_of(entry);

		if (!registration->in_check || !is_expected(registration) ||
		    response->error == -ECANCELED)
			continue;
		if (response->error == -ETIMEDOUT) {
			registration->missed = 0; /* the SA may restart, and forget it */
			registration_tell(registration, &failure, false);
		} else if (registration->ops->kind != keeper->check_kind ||
			   response->error == -ENOMEM || response->status == IB_MAD_STS_BUSY) {
			continue;
		} else if (!response->error && registration->certain &&
			   is_in_table(registration, response->table)) {
			/* (before the first response to a Set, not all may be granted) */
			registration->missed = 0;
			registration->renew_at = NEVER;
			registration->retry_ms = 0;
			registration_tell(registration, &none, false);
			registration->certain = keeper->check_begin;
		} else if (!response->error && registration->missed < MISSED_MOST) {
			registration->missed++;
			registration_renew(registration);
			keeper->check_at = clock_us() + SUSPICION_US;
		} else if (!registration->told_error && registration->renew_at == NEVER) {
			/* the SA does not reveal whether it has it */
			registration->blind = true;
			registration->renew_at = registration->certain + BLIND_US;
		}
	}
	mad_sa_table_free(response->table);
	keeper_set_timer(keeper, 0);
}

/*
 * Requests the SA's records of this port if there is something to check, alternating
 * MCMemberRecords (IBA 15.2.5.17) and InformInfoRecords (15.2.5.12).
 */
static void start_check(struct sa_keeper *keeper, int64_t now)
{
	const ib_portid_t sa = {.lid = (int)keeper->port.sm_lid,
				.sl = (uint8_t)keeper->port.sm_sl};
	struct umad_sa_mcmember_record member = {.qkey = 0};
	struct mad_sa_inform_info_record inform = {.number = 0};
	struct mad_sa_query query = {.timeout_ms = TIMEOUT_MS, .sa = &sa};
	bool expects[REGISTRATION_KINDS] = {false};
	enum registration_kind other_kind;

	keeper->check_at = now + keeper->check_us;
	list_for_each (entry, &keeper->registrations) {
		struct registration *registration = registration_of(entry);

		if (is_expected(registration))
			expects[registration->ops->kind] = true;
		/* a round that ends later tells more than the table */
		registration->in_check = !registration->in_flight;
	}
	if (!keeper->guid || (!expects[MEMBERSHIP] && !expects[SUBSCRIPTION]))
		return;
	other_kind = keeper->check_kind == MEMBERSHIP ? SUBSCRIPTION : MEMBERSHIP;
	if (expects[other_kind])
		keeper->check_kind = other_kind;
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
	keeper->check_begin = now;
	if (mad_sa_submit(keeper->engine, &query, check_came, keeper, &keeper->check_id))
		keeper->check_id = 0;
}

/* --- the timer -------------------------------------------------------------------- */

/* The error of a port that can no longer communicate, or 0. */
static int port_error(const struct sa_keeper *keeper)
{
	struct ibmad_port *port = keeper->engine->port;
	int error = 0;

	engine_enter_again(keeper->engine);
	if (port->error)
		error = -port->error;
	else if (port->state == PORT_INHERITED)
		error = -ECANCELED;
	engine_leave(keeper->engine);
	return error;
}

static bool lacks_gid(const struct registration *registration)
{
	return registration->ops->needs_gid && !registration->keeper->guid;
}

/* Rounds are started one at a time, at intervals. */
static bool is_paced(const struct registration *registration)
{
	return registration->retry_ms || registration->blind;
}

/* Earliest start of the next round; NEVER: needs another event. */
static int64_t ready_at(const struct registration *registration)
{
	int64_t at = registration->renew_at;

	if (registration->in_flight || registration->stopping || lacks_gid(registration))
		return NEVER;
	if (is_paced(registration) && at < registration->keeper->paced_at)
		return registration->keeper->paced_at;
	return at;
}

/* The paced registration that has waited longest, or NULL. */
static const struct registration *next_paced(const struct sa_keeper *keeper, int64_t now)
{
	const struct registration *found = NULL;

	list_for_each (entry, &keeper->registrations) {
		const struct registration *each = registration_of(entry);

		if (is_paced(each) && now >= ready_at(each) &&
		    (!found || each->renew_at < found->renew_at))
			found = each;
	}
	return found;
}

/* Stopping: cancels requests in flight, deregisters at the SA, then frees it. */
static void advance_to_end(struct registration *registration)
{
	/* the port changed meanwhile: deregister at the new SM, too */
	bool ends_again =
		registration->phase == REGISTRATION_ENDED && registration->renew_at != NEVER;
	struct mad_failure failure;

	if (registration->phase == REGISTRATION_SENDING)
		cancel_round(registration);
	if (registration->in_flight)
		return;
	failure = failure_of_none(-ENETDOWN);
	if (registration->phase == REGISTRATION_SENT || ends_again) {
		if (!port_is_usable(registration->keeper)) {
			registration_end(registration, &failure);
			return;
		}
		start_round(registration, REGISTRATION_ENDING);
		if (registration->in_flight)
			return;
	}
	failure = registration->failure;
	/* the SA had already forgotten it, says the status */
	if (failure.error == -EIO && failure.status == NOT_REGISTERED)
		failure.error = 0;
	registration_end(registration, &failure);
}

static void advance_registration(struct registration *registration, int64_t now, int error,
				 const struct registration *turn)
{
	const struct mad_failure failure = failure_of_none(error ? error : -ENETDOWN);
	struct sa_keeper *keeper = registration->keeper;

	if (error) {
		if (!registration->in_flight)
			registration_end(registration, &failure);
	} else if (registration->stopping) {
		advance_to_end(registration);
	} else if (keeper->read_failure.error && (!keeper->known || lacks_gid(registration))) {
		registration_tell(registration, &keeper->read_failure, false);
	} else if (keeper->known && !port_is_usable(keeper)) {
		registration_tell(registration, &failure, false);
	} else if (keeper->known && now >= ready_at(registration) &&
		   (!is_paced(registration) || registration == turn)) {
		if (registration == turn)
			keeper->paced_at = now + registration->count * PACE_US;
		start_round(registration, REGISTRATION_SENDING);
	}
}

static void take_joining(struct sa_keeper *keeper)
{
	struct list *first;

	engine_enter_again(keeper->engine);
	while ((first = list_pop(&keeper->joining))) {
		struct registration *registration = registration_of(first);
		bool only = list_is_empty(&keeper->registrations);

		list_add_last(&keeper->registrations, first);
		if (only || registration->poll_us < keeper->poll_us)
			keeper->poll_us = registration->poll_us;
		if (only || registration->check_us < keeper->check_us)
			keeper->check_us = registration->check_us;
	}
	engine_leave(keeper->engine);
}

/* Next event that no response announces. */
static int64_t next_time(const struct sa_keeper *keeper)
{
	int64_t next = keeper->reading ? NEVER : keeper->poll_at;

	if (!port_is_usable(keeper))
		return next;
	if (!keeper->check_id && keeper->check_at < next)
		next = keeper->check_at;
	list_for_each (entry, &keeper->registrations) {
		int64_t at = ready_at(registration_of(entry));

		if (at < next)
			next = at;
	}
	return next;
}

static void keeper_due(struct engine_timer *timer)
{
	struct sa_keeper *keeper = list_entry(timer, struct sa_keeper, timer);
	int error = port_error(keeper);
	const struct registration *turn;
	struct list *entry, *next;
	int64_t now = clock_us();

	take_joining(keeper);
	if (!error && !list_is_empty(&keeper->registrations)) {
		if (!keeper->reading && now >= keeper->poll_at) {
			keeper->poll_at = now + keeper->poll_us;
			read_port(keeper, IB_ATTR_PORT_INFO, port_info_came);
		}
		if (port_is_usable(keeper) && !keeper->check_id && now >= keeper->check_at)
			start_check(keeper, now);
	}
	turn = next_paced(keeper, now);
	/* callbacks only start registrations on the "joining" list */
	for (entry = keeper->registrations.next; entry != &keeper->registrations;
	     entry = next) {
		next = entry->next;
		advance_registration(registration_of(entry), now, error, turn);
	}
	if (!list_is_empty(&keeper->registrations)) {
		if (!error) /* otherwise the timer would fire at once */
			keeper_set_timer(keeper, next_time(keeper));
		return;
	}
	keeper->known = false;
	keeper->poll_at = 0;
	keeper->check_at = 0;
}

/* The engine is being freed and has already dropped the timer. */
static void keeper_ended(struct engine_timer *timer)
{
	struct sa_keeper *keeper = list_entry(timer, struct sa_keeper, timer);
	const int error = port_error(keeper);
	const struct mad_failure failure = failure_of_none(error ? error : -ECANCELED);
	struct list *first;

	take_joining(keeper);
	while ((first = list_first(&keeper->registrations)))
		registration_end(registration_of(first), &failure);
	keeper->engine->keeper = NULL;
	free(keeper);
}

/* --- calls ------------------------------------------------------------------------ */

int keeper_make_unlocking(struct mad_async *engine, const char *call)
{
	const struct handle *handle = &engine->port->handle;
	struct sa_keeper *keeper;
	int missing = 0;

	if (engine->port->error || engine->ending || engine->port->state == PORT_INHERITED)
		return failure_of_call(0,
				       engine->port->error ? -engine->port->error : -ECANCELED);
	if (handle_agent(handle, IB_SA_CLASS) < 0)
		missing = IB_SA_CLASS;
	else if (handle_agent(handle, IB_SMI_DIRECT_CLASS) < 0)
		missing = IB_SMI_DIRECT_CLASS;
	if (missing) {
		engine_report_class_unlocking(engine, call, missing);
		return failure_of_call(missing, -EPROTONOSUPPORT);
	}
	if (engine->keeper)
		return 0;
	keeper = calloc(1, sizeof(*keeper));
	if (!keeper)
		return failure_of_call(0, -ENOMEM);
	keeper->engine = engine;
	keeper->timer.due = keeper_due;
	keeper->timer.ended = keeper_ended;
	list_init(&keeper->joining);
	list_init(&keeper->registrations);
	engine_timer_add(engine, &keeper->timer);
	engine->keeper = keeper;
	return 0;
}

void registration_add(struct registration *registration)
{
	struct mad_async *engine = registration->engine;
	struct sa_keeper *keeper = engine->keeper;

	registration->keeper = keeper;
	registration->told_error = NOTHING_TOLD;
	list_add_last(&keeper->joining, &registration->all);
	engine->registrations++;
	engine_timer_set(engine, &keeper->timer, 0);
}

void registration_stop(struct registration *registration)
{
	struct mad_async *engine = registration->engine;

	if (engine_enter(engine))
		return;
	registration->stopping = true;
	if (engine->keeper)
		engine_timer_set(engine, &engine->keeper->timer, 0);
	engine_leave(engine); /* the engine may have been freed */
}
