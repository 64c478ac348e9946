/* SPDX-License-Identifier: BSD-2-Clause */

/* The keeper of an engine (keeper.h): its timer, and the start and the end of registrations. */

#include "sa/keeper.h"

#include "base/report.h"

#include <errno.h>
#include <stdlib.h>

/* Retries of the registrations of an engine begin at this interval, or later. */
#define PACE_US INT64_C(1000000)

/* The port is not a member, or has no such subscription (IBA 15.2.3). */
#define NOT_REGISTERED (UMAD_SA_STATUS_REQ_INVALID << 8)

static struct sa_keeper *keeper_of(struct engine_timer *timer)
{
	return list_entry(timer, struct sa_keeper, timer);
}

static struct registration *registration_of(struct list *entry)
{
	return list_entry(entry, struct registration, all);
}

void keeper_set_timer(struct sa_keeper *keeper, int64_t at)
{
	int cancel_state = engine_enter_again(keeper->engine);

	/* another thread, or a callback, may have set it while this time was computed */
	if (at < keeper->timer.at)
		engine_timer_set(keeper->engine, &keeper->timer, at);
	engine_leave(keeper->engine, cancel_state);
}

void keeper_gid(const struct sa_keeper *keeper, uint8_t gid[16])
{
	mad_set_field64(gid, 0, IB_GID_PREFIX_F, keeper->port.gid_prefix);
	mad_set_field64(gid, 0, IB_GID_GUID_F, keeper->guid);
}

/* The error of a port that cannot send and receive any more; otherwise 0. */
static int port_error(const struct sa_keeper *keeper)
{
	struct ibmad_port *port = keeper->engine->port;
	int cancel_state = engine_enter_again(keeper->engine), error = 0;

	if (port->error)
		error = -port->error;
	else if (port->state == PORT_INHERITED)
		error = -ECANCELED;
	engine_leave(keeper->engine, cancel_state);
	return error;
}

/* --- the end of a registration ---------------------------------------------------- */

/* The registration is in no list. */
static void finish(struct registration *registration, const struct mad_failure *failure)
{
	struct mad_async *engine = registration->keeper->engine;
	int cancel_state;

	if (failure->error)
		failure_store(failure);
	registration->ops->end(registration, failure->error, registration_status(failure));
	/* until its last callback has returned, the engine is not idle */
	cancel_state = engine_enter_again(engine);
	engine->registrations--;
	engine_leave(engine, cancel_state);
}

static void end(struct registration *registration, int error)
{
	const struct mad_failure failure = registration_error(error);

	list_remove(&registration->all);
	finish(registration, &failure);
}

/* The SA has responded to the requests that end the registration, or to none. */
static void end_undone(struct registration *registration)
{
	struct mad_failure failure = registration->failure;

	/* the SA had forgotten it before: the status tells that */
	if (failure.error == -EIO && failure.status == NOT_REGISTERED)
		failure.error = 0;
	list_remove(&registration->all);
	finish(registration, &failure);
}

/* Stopping: cancels the requests in flight, ends the registration at the SA, and frees it. */
static void advance_to_end(struct registration *registration)
{
	if (!registration->undoing)
		registration_cancel(registration);
	if (registration->setting)
		return;
	if (registration->changed) /* it ends at the new SM, too */
		registration->undoing = registration->changed = false;
	if (!registration->undoing && registration->sent &&
	    own_port_is_usable(registration->keeper))
		registration_start_round(registration, false);
	if (registration->setting)
		return;
	if (!registration->sent) /* there was nothing to end */
		end(registration, 0);
	else if (!registration->undoing)
		end(registration, -ENETDOWN);
	else
		end_undone(registration);
}

/* --- the timer -------------------------------------------------------------------- */

/* The PortGUID is missing. */
static bool lacks_gid(const struct registration *registration)
{
	return registration->ops->needs_gid && !registration->keeper->guid;
}

/* Its rounds begin one after the other, at intervals. */
static bool is_paced(const struct registration *registration)
{
	return registration->retry_ms || registration->quiet;
}

static bool is_ready(const struct registration *registration, int64_t now)
{
	return !registration->setting && !registration->stopping &&
	       now >= registration->renew_at && !lacks_gid(registration);
}

/* Whose turn it is: of those that are paced, the one that has waited the longest; or NULL. */
static const struct registration *next_paced(const struct sa_keeper *keeper, int64_t now)
{
	const struct registration *found = NULL;

	if (now < keeper->paced_at)
		return NULL;
	list_for_each (entry, &keeper->registrations) {
		const struct registration *each = registration_of(entry);

		if (is_paced(each) && is_ready(each, now) &&
		    (!found || each->renew_at < found->renew_at))
			found = each;
	}
	return found;
}

/* Whether the round may begin. */
static bool may_begin(struct registration *registration, int64_t now,
		      const struct registration *turn)
{
	if (!is_ready(registration, now) || (is_paced(registration) && registration != turn))
		return false;
	if (is_paced(registration))
		registration->keeper->paced_at = now + registration->slot_count * PACE_US;
	return true;
}

static void advance_registration(struct registration *registration, int64_t now, int error,
				 const struct registration *turn)
{
	const struct mad_failure down = registration_error(-ENETDOWN);
	struct sa_keeper *keeper = registration->keeper;

	if (error) {
		if (!registration->setting)
			end(registration, error);
	} else if (registration->stopping) {
		advance_to_end(registration);
	} else if (keeper->read_failure.error && (!keeper->known || lacks_gid(registration))) {
		registration_tell(registration, &keeper->read_failure, false);
	} else if (keeper->known && !own_port_is_usable(keeper)) {
		registration_tell(registration, &down, false);
	} else if (keeper->known && may_begin(registration, now, turn)) {
		registration_start_round(registration, true);
	}
}

static void take_joining(struct sa_keeper *keeper)
{
	int cancel_state = engine_enter_again(keeper->engine);
	struct list *first;

	while ((first = list_pop(&keeper->joining))) {
		struct registration *registration = registration_of(first);
		bool only = list_is_empty(&keeper->registrations);

		list_add_last(&keeper->registrations, first);
		if (only || registration->poll_us < keeper->poll_us)
			keeper->poll_us = registration->poll_us;
		if (only || registration->check_us < keeper->check_us)
			keeper->check_us = registration->check_us;
	}
	engine_leave(keeper->engine, cancel_state);
}

/* The time of the next event that no response announces. */
static int64_t next_time(const struct sa_keeper *keeper)
{
	int64_t next = keeper->reading ? NEVER : keeper->poll_at;

	if (!own_port_is_usable(keeper))
		return next;
	if (!keeper->checking && keeper->check_at < next)
		next = keeper->check_at;
	list_for_each (entry, &keeper->registrations) {
		const struct registration *registration = registration_of(entry);
		int64_t at = registration->renew_at;

		if (registration->setting || lacks_gid(registration))
			continue;
		if (is_paced(registration) && at < keeper->paced_at)
			at = keeper->paced_at;
		if (at < next)
			next = at;
	}
	return next;
}

static void due(struct engine_timer *timer)
{
	struct sa_keeper *keeper = keeper_of(timer);
	int error = port_error(keeper);
	const struct registration *turn;
	struct list *entry, *next;
	int64_t now = clock_us();

	take_joining(keeper);
	if (!error && !list_is_empty(&keeper->registrations)) {
		if (!keeper->reading && now >= keeper->poll_at)
			own_port_read(keeper, now);
		if (own_port_is_usable(keeper) && !keeper->checking && now >= keeper->check_at)
			record_check_start(keeper, now);
	}
	turn = next_paced(keeper, now);
	/* a callback starts other registrations only in the list "joining" */
	for (entry = keeper->registrations.next; entry != &keeper->registrations;
	     entry = next) {
		next = entry->next;
		advance_registration(registration_of(entry), now, error, turn);
	}
	if (!list_is_empty(&keeper->registrations)) {
		if (!error) /* otherwise the timer would be due at once */
			keeper_set_timer(keeper, next_time(keeper));
		return;
	}
	keeper->known = false;
	keeper->poll_at = 0;
	keeper->check_at = 0;
}

/* The engine is being freed, and has already removed the timer. */
static void ended(struct engine_timer *timer)
{
	struct sa_keeper *keeper = keeper_of(timer);
	const int error = port_error(keeper);
	const struct mad_failure failure = registration_error(error ? error : -ECANCELED);
	struct list *first;

	take_joining(keeper);
	while ((first = list_pop(&keeper->registrations)))
		finish(registration_of(first), &failure);
	keeper->engine->keeper = NULL;
	free(keeper);
}

/* --- calls ------------------------------------------------------------------------ */

int keeper_make(struct mad_async *engine, int *missing)
{
	const struct handle *handle = &engine->port->handle;
	struct sa_keeper *keeper;

	*missing = 0;
	if (engine->port->error || engine->ending || engine->port->state == PORT_INHERITED)
		return engine->port->error ? -engine->port->error : -ECANCELED;
	if (handle_agent(handle, IB_SA_CLASS) < 0)
		*missing = IB_SA_CLASS;
	else if (handle_agent(handle, IB_SMI_DIRECT_CLASS) < 0)
		*missing = IB_SMI_DIRECT_CLASS;
	if (*missing)
		return -EPROTONOSUPPORT;
	if (engine->keeper)
		return 0;
	keeper = calloc(1, sizeof(*keeper));
	if (!keeper)
		return -ENOMEM;
	keeper->engine = engine;
	keeper->timer.due = due;
	keeper->timer.ended = ended;
	list_init(&keeper->joining);
	list_init(&keeper->registrations);
	engine_timer_add(engine, &keeper->timer);
	engine->keeper = keeper;
	return 0;
}

void keeper_add(struct mad_async *engine, struct registration *registration)
{
	struct sa_keeper *keeper = engine->keeper;

	registration->keeper = keeper;
	list_add_last(&keeper->joining, &registration->all);
	engine->registrations++;
	engine_timer_set(engine, &keeper->timer, 0);
}

void keeper_stop(struct registration *registration)
{
	struct sa_keeper *keeper = registration->keeper;
	struct mad_async *engine = keeper->engine;
	int cancel_state;

	if (engine_enter(engine, &cancel_state))
		return;
	registration->stopping = true;
	engine_timer_set(engine, &keeper->timer, 0);
	engine_leave(engine, cancel_state); /* it may have been freed from here on */
}
