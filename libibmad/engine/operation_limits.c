/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/operation_limits.h"

#include "base/export.h"
#include "engine/timers.h"

#include <infiniband/mad_fields.h>
#include <infiniband/mad_link.h>
#include <errno.h>

/* A limit is noticed after this time at the latest, if the engine is processed. */
#define TICK_US 50000
/* The local port is read when an operation has taken this time, and then after each such time.
 */
#define LOOK_US 250000

/* --- struct mad_cancel ---------------------------------------------------------- */

EXPORT void mad_cancel_set(struct mad_cancel *cancel)
{
	if (cancel)
		__atomic_store_n(&cancel->is_set, 1, __ATOMIC_SEQ_CST);
}

/* --- the local port ------------------------------------------------------------- */

/* Port 0 of a switch has no link. */
static bool is_down(const uint8_t *info)
{
	return mad_read_field(info, 0, IB_PORT_LOCAL_PORT_F) &&
	       (mad_read_field(info, 0, IB_PORT_STATE_F) == MAD_PORT_DOWN ||
		mad_read_field(info, 0, IB_PORT_PHYS_STATE_F) != MAD_PHYSICAL_LINK_UP);
}

static void reach(struct limits *limits, int error)
{
	limits->error = error;
	limits->reached(limits, error);
}

static void port_came(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	struct limits *limits = arg;

	(void)engine;
	limits->looking = false;
	if (limits->ended)
		limits->finished(limits);
	else if (!limits->error && !reply->error && reply->data_size >= IB_SMP_DATA_SIZE &&
		 is_down(reply->data))
		reach(limits, -ENETDOWN);
}

static void look(struct limits *limits, int64_t now)
{
	const ib_rpc_t rpc = {
		.mgtclass = IB_SMI_DIRECT_CLASS,
		.method = IB_MAD_METHOD_GET,
		.attr = {.id = IB_ATTR_PORT_INFO},
		.dataoffs = IB_SMP_DATA_OFFS,
		.mkey = limits->m_key,
	};
	const ib_portid_t self = {0};
	int cancel_state;

	if (limits->is_local || limits->looking || now < limits->look_at)
		return;
	limits->look_at = now + LOOK_US;
	cancel_state = engine_enter_again(limits->engine);
	/* without a link, the other requests fill the window */
	limits->looking = !engine_submit_urgent_unlocking(limits->engine, &rpc, &self,
							  port_came, limits, &limits->look_id);
	engine_leave(limits->engine, cancel_state);
}

/* --- ticks ---------------------------------------------------------------------- */

/* The requests of a port that is gone complete at once, so that no limit is needed. */
static void set_timer(struct limits *limits, int64_t now)
{
	int cancel_state = engine_enter_again(limits->engine);
	int64_t next = now + TICK_US;

	if (!limits->engine->port->error)
		engine_timer_set(limits->engine, &limits->timer,
				 !limits->error && limits->end < next ? limits->end : next);
	engine_leave(limits->engine, cancel_state);
}

static void tick(struct engine_timer *timer)
{
	struct limits *limits = list_entry(timer, struct limits, timer);
	int64_t now = clock_us();

	set_timer(limits, now);
	if (limits->error)
		limits->reached(limits, limits->error);
	else if (cancel_is_set(limits->cancel))
		reach(limits, -ECANCELED);
	else if (now >= limits->end)
		reach(limits, -ETIME);
	else
		look(limits, now);
	if (limits->tick && !limits->error)
		limits->tick(limits);
}

/* The operation ends with the last of its requests, before the engine removes its timers. */
static void engine_ended(struct engine_timer *timer)
{
	(void)timer;
}

void limits_begin(struct limits *limits, struct mad_async *engine, unsigned time_limit_ms,
		  const struct mad_cancel *cancel, uint64_t m_key)
{
	int64_t now = clock_us();

	limits->engine = engine;
	limits->cancel = cancel;
	limits->m_key = m_key;
	limits->end = time_limit_ms ? now + time_limit_ms * INT64_C(1000) : NEVER;
	limits->look_at = handle_agent(&engine->port->handle, IB_SMI_DIRECT_CLASS) < 0
				  ? NEVER
				  : now + LOOK_US;
	limits->timer.due = tick;
	limits->timer.ended = engine_ended;
	engine_timer_add(engine, &limits->timer);
	engine_timer_set(engine, &limits->timer,
			 cancel_is_set(cancel)         ? now
			 : limits->end < now + TICK_US ? limits->end
						       : now + TICK_US);
}

bool limits_end(struct limits *limits)
{
	int cancel_state = engine_enter_again(limits->engine);

	engine_timer_remove(limits->engine, &limits->timer);
	limits->ended = true;
	if (limits->looking)
		engine_cancel(limits->engine, limits->look_id);
	engine_leave(limits->engine, cancel_state);
	return !limits->looking;
}

int limits_ends_all(int error)
{
	if (error == -ENETUNREACH || error == -ENETDOWN)
		return -ENETDOWN;
	return error == -ENODEV || error == -ECANCELED ? error : 0;
}
