/* SPDX-License-Identifier: BSD-2-Clause */

#include "port_state.h"

#include "calls/engine.h"
#include "port/reader.h"
#include "port/timers.h"

#include <limits.h>

unsigned calls_in_progress(struct ibmad_port *of)
{
	unsigned users;

	port_lock(of);
	users = of->users;
	port_unlock(of);
	return users;
}

static unsigned threads_asleep(struct ibmad_port *of)
{
	unsigned count = 0;

	port_lock(of);
	list_for_each (entry, &of->waiters.all)
		count += list_entry(entry, struct waiter, all)->following;
	port_unlock(of);
	return count;
}

unsigned threads_waiting(struct ibmad_port *of)
{
	unsigned asleep = threads_asleep(of);
	bool leads;

	port_lock(of);
	leads = of->waiters.leader != NULL;
	port_unlock(of);
	return asleep + leads;
}

bool responses_expected(struct ibmad_port *of)
{
	bool expected;

	port_lock(of);
	expected = of->requests.tids.count > 0;
	port_unlock(of);
	return expected;
}

void hold_reading(struct ibmad_port *of, bool reading)
{
	of->waiters.reading = reading;
}

void read_messages(struct ibmad_port *of, unsigned most)
{
	port_lock(of);
	port_read_unlocking(of, most, clock_us());
	port_unlock(of);
}

void fix_window_only(struct ibmad_port *of, enum mad_window window, unsigned size)
{
	port_lock(of);
	flow_fix_window(&of->requests.flow, window, size);
	port_unlock(of);
}

unsigned new_smps(const struct mad_async *async)
{
	const struct list *fresh = &async->source.flows[FLOW_SMP].lists[LIST_FRESH];
	unsigned count = 0;

	list_for_each (entry, fresh)
		count++;
	return count;
}

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
