/* SPDX-License-Identifier: BSD-2-Clause */

/* The threads that process an engine: event loops, and mad_async_wait(). */

#include "engine/async.h"

#include "base/export.h"
#include "base/report.h"

#include <errno.h>

/* Whether no callback is to come. */
static bool is_idle(const struct mad_async *engine)
{
	if (engine->ending)
		return engine_has_called_back(engine);
	return engine_is_empty(engine) && !engine->registrations;
}

/* --- event loops ---------------------------------------------------------------- */

EXPORT int mad_async_process(struct mad_async *async)
{
	int cancel_state, count = 0, ret;

	if (!async)
		return failure_of_call(0, -EINVAL);
	ret = engine_enter(async, &cancel_state);
	if (ret)
		return failure_of_call(0, ret);
	if (async->ending) {
		count = -ECANCELED;
	} else if (async->thread == ENGINE_FREE) {
		engine_begin_processing(async, ENGINE_PROCESSED);
		port_work_unlocking(async->port);
		/* callbacks may take long: other threads do the rest */
		port_tell(async->port);
		count = engine_call_back_unlocking(async);
		engine_end_processing(async);
	} else if (!engine_is_processor(async)) {
		/* another thread may be in a callback: the port does not wait for it */
		port_work_unlocking(async->port);
	}
	if (!count && async->port->error && is_idle(async))
		count = -async->port->error;
	engine_leave(async, cancel_state);
	return failure_of_call(0, count);
}

EXPORT int mad_async_poll_fd(struct mad_async *async)
{
	struct ibmad_port *port;
	int cancel_state, fd;
	bool opened;

	if (!async)
		return failure_of_call(0, -EINVAL);
	fd = engine_enter(async, &cancel_state);
	if (fd)
		return failure_of_call(0, fd);
	port = async->port;
	opened = !alarm_is_open(&async->alarm);
	fd = port->error == ECANCELED || async->ending ? -ECANCELED : alarm_open(&async->alarm);
	if (opened && fd >= 0)
		list_add_last(&port->loops, &async->loop);
	if (fd >= 0 && port->has_descriptor && !port->error && !port->blocked_until)
		alarm_watch(&async->alarm, port->handle.fd, true);
	engine_leave(async, cancel_state);
	return failure_of_call(0, fd);
}

/* --- mad_async_wait() ----------------------------------------------------------- */

/*
 * Waits until no other thread processes, and returns 0; or -EINTR or -ETIMEDOUT. A stop wakes
 * the other thread only: it wakes this thread when it ends processing.
 */
static int wait_for_processing_unlocking(struct mad_async *engine, unsigned stops, int64_t end)
{
	while (engine->thread != ENGINE_FREE && !engine->ending) {
		if (engine->stops != stops)
			return -EINTR;
		if (clock_us() >= end)
			return -ETIMEDOUT;
		clock_cond_wait(&engine->changed, &engine->port->lock, end);
	}
	return 0;
}

/*
 * Waits for what the engine is to call back, until the time "end" at the longest; 1 ms if a
 * timer is due that could not be handled yet.
 */
static void wait_for_work_unlocking(struct mad_async *engine, int64_t end)
{
	int64_t next = engine->timer_at, now = clock_us();

	if (next <= now || (engine->port->error && next != NEVER))
		next = now + 1000;
	port_wait_unlocking(engine->port, &engine->waiter, next < end ? next : end);
}

/* Calls back and waits until is_idle(); the number of callbacks, or a negative errno. */
static int run_unlocking(struct mad_async *engine, int64_t end)
{
	bool waited = false;
	int count = 0;

	while (!engine_is_stopped(engine)) {
		count += engine_call_back_unlocking(engine);
		if (engine_is_stopped(engine))
			break;
		if (is_idle(engine))
			return count;
		if (waited && end != NEVER && clock_us() >= end)
			return -ETIMEDOUT;
		if (!engine_has_work(engine))
			wait_for_work_unlocking(engine, end);
		waited = true;
	}
	return -EINTR;
}

static int wait_unlocking(struct mad_async *engine, int64_t end)
{
	/* read before waiting: a stop ends the waits of all threads */
	unsigned stops = engine->stops_heeded;
	int ret = wait_for_processing_unlocking(engine, stops, end);

	if (!ret && !engine->ending) {
		engine_begin_processing(engine, ENGINE_WAITED);
		engine->stops_before = stops;
		waiter_begin(engine->port, &engine->waiter, WAIT_FOR_ENGINE);
		ret = run_unlocking(engine, end);
		waiter_end(engine->port, &engine->waiter);
		engine_end_processing(engine);
	}
	if (ret == -EINTR)
		engine->stops_heeded = engine->stops;
	return ret;
}

EXPORT int mad_async_wait(struct mad_async *async, int timeout_ms)
{
	int64_t end = timeout_ms < 0 ? NEVER : clock_us() + timeout_ms * INT64_C(1000);
	int cancel_state, ret;

	if (!async)
		return failure_of_call(0, -EINVAL);
	ret = engine_enter(async, &cancel_state);
	if (ret)
		return failure_of_call(0, ret);
	ret = engine_is_processor(async) ? -EDEADLK : wait_unlocking(async, end);
	engine_leave(async, cancel_state);
	return failure_of_call(0, ret);
}

EXPORT void mad_async_stop(struct mad_async *async)
{
	if (!async)
		return;
	async->stops++;
	port_alert(async->port);
}
