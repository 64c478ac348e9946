/* SPDX-License-Identifier: BSD-2-Clause */

#include "port_state.h"

#include "engine/async.h"
#include "engine/timers.h"

#include <limits.h>

int timeout_ms_of(struct mad_async *async)
{
	int ms;
	int64_t next;

	ms = engine_enter(async);
	if (ms)
		return ms;
	next = port_next(async->port);
	if (engine_timer_at(async) < next)
		next = engine_timer_at(async);
	if (engine_has_work(async))
		ms = 0;
	else if (async->port->error && engine_is_idle(async))
		ms = -async->port->error;
	else
		ms = next == NEVER ? -1 : ms_until(next, clock_us(), INT_MAX);
	engine_leave(async);
	return ms;
}
