/* SPDX-License-Identifier: BSD-2-Clause */

#include "port_state.h"

#include "calls/engine.h"
#include "port/reader.h"
#include "port/timers.h"

#include <limits.h>

int timeout_ms_of(struct mad_async *async)
{
	struct port_work work;
	int cancel_state, ms;
	int64_t next;

	ms = engine_enter(async, &cancel_state);
	if (ms)
		return ms;
	work = port_work(async->port);
	next = listener_next(&async->listener, &work);
	if (work.gone && listener_is_empty(&async->listener))
		ms = -async->port->gone;
	else if (listener_has_work(&async->listener, &work))
		ms = 0;
	else
		ms = next == NEVER ? -1 : ms_until(next, clock_us(), INT_MAX);
	engine_leave(async, cancel_state);
	return ms;
}
