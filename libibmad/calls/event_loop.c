/* SPDX-License-Identifier: BSD-2-Clause */

/* Asynchronous requests: what event loops call, and mad_async_wait(). */

#include "base/export.h"
#include "calls/engine.h"
#include "calls/request_server.h"

#include <errno.h>
#include <limits.h>

/* --- processing ----------------------------------------------------------------- */

/*
 * Does what there is to do for the port. Messages are read before timers are judged: a response
 * may lie unread since before its timer was due.
 */
static void serve(struct mad_async *engine, bool read)
{
	struct ibmad_port *port = engine->port;
	int64_t now = clock_us();

	engine->serving++;
	if (reader_is_behind(&port->reader, scheduler_next(&port->scheduler), now))
		read = true;
	if (read && !port->core.gone)
		reader_read(&port->reader, BATCH, now);
	scheduler_expire(&port->scheduler, reader_time(&port->reader, now), BATCH);
	/* sending may take its time: another thread leads meanwhile */
	if (scheduler_can_send(&port->scheduler))
		reader_pass(&port->reader);
	scheduler_send(&port->scheduler, BATCH);
	servers_refuse(engine, BATCH);
	engine->serving--;
	/* callbacks may follow, which take their time: what is left is for other threads */
	port_tell_all(port);
}

EXPORT int mad_async_process(struct mad_async *async)
{
	int cancel_state, count = 0;

	if (!async)
		return -EINVAL;
	cancel_state = engine_enter(async);
	if (async->ending) {
		count = -ECANCELED;
	} else if (!async->processing) {
		engine_begin_processing(async);
		serve(async, true);
		count = engine_call_back(async, BATCH);
		count += servers_call(async, BATCH);
		engine_run_timers(async);
		engine_end_processing(async);
	} else if (!engine_is_processor(async)) {
		/* another thread may be in a callback: the port does not wait for that */
		serve(async, true);
	}
	if (!count && engine_is_over(async))
		count = -async->port->core.gone;
	engine_update(async, true);
	engine_leave(async, cancel_state);
	return count;
}

/* --- waiting -------------------------------------------------------------------- */

/*
 * Waits until no other thread processes, and returns 0; or -EINTR or -ETIMEDOUT. No stop wakes
 * this thread by itself: that the other thread heeds the stop does.
 */
static int wait_for_processing(struct mad_async *engine, unsigned stops, int64_t end)
{
	while (engine->processing && !engine->ending) {
		if (engine->stops != stops)
			return -EINTR;
		if (clock_us() >= end)
			return -ETIMEDOUT;
		clock_cond_wait(&engine->changed, &engine->port->core.lock, end);
	}
	return 0;
}

/*
 * Waits for messages, for the next timer, and for the time "end"; 1 ms for a timer that is due,
 * but not judged yet.
 */
static void wait_for_next(struct mad_async *engine, int64_t end)
{
	struct ibmad_port *port = engine->port;
	int64_t next = engine_next(engine), now = clock_us();

	if (next <= now)
		next = now + 1000;
	reader_wait(&port->reader, &engine->runner, next < end ? next : end, now);
}

/* Processes and waits until no request is open. */
static int run(struct mad_async *engine, int64_t end)
{
	bool read = true;
	int count = 0;

	while (!engine_is_stopped(engine)) {
		serve(engine, read);
		count += engine_call_back(engine, BATCH);
		count += servers_call(engine, BATCH);
		engine_run_timers(engine);
		if (engine_is_stopped(engine))
			break;
		if (engine_is_idle(engine))
			return count;
		if (end != NEVER && clock_us() >= end)
			return -ETIMEDOUT;
		read = engine_has_work(engine);
		if (!read)
			wait_for_next(engine, end);
	}
	return -EINTR;
}

static int run_alone(struct mad_async *engine, unsigned stops, int64_t end)
{
	struct reader *reader = &engine->port->reader;
	int ret;

	engine_begin_processing(engine);
	reader_begin(reader, &engine->runner);
	engine->stops_before = stops;
	engine->running = true;
	engine->runner.patient = true;
	ret = run(engine, end);
	engine->running = false;
	reader_end(reader, &engine->runner);
	engine_end_processing(engine);
	return ret;
}

static int wait_locked(struct mad_async *engine, int64_t end)
{
	/* not what is heeded later: a stop ends the waits of all threads */
	unsigned stops = engine->stops_heeded;
	int ret = wait_for_processing(engine, stops, end);

	if (!ret && !engine->ending)
		ret = run_alone(engine, stops, end);
	if (ret == -EINTR)
		engine->stops_heeded = engine->stops;
	return ret;
}

EXPORT int mad_async_wait(struct mad_async *async, int timeout_ms)
{
	int64_t end = timeout_ms < 0 ? NEVER : clock_us() + timeout_ms * INT64_C(1000);
	int cancel_state, ret = -EDEADLK;

	if (!async)
		return -EINVAL;
	cancel_state = engine_enter(async);
	if (!engine_is_processor(async))
		ret = wait_locked(async, end);
	engine_leave(async, cancel_state);
	return ret;
}

EXPORT int mad_async_run(struct mad_async *async)
{
	return mad_async_wait(async, -1);
}

EXPORT void mad_async_stop(struct mad_async *async)
{
	if (!async)
		return;
	async->stops++;
	port_alert(async->port);
}

/* --- descriptors ---------------------------------------------------------------- */

EXPORT int mad_async_fd(const struct mad_async *async)
{
	return async ? async->port->core.link.fd : -EINVAL;
}

/* Opens one of the alarm's descriptors, or returns it. */
static int alarm_fd(struct mad_async *engine, bool with_handle)
{
	struct core *core = &engine->port->core;
	int cancel_state = engine_enter(engine), fd;

	if (core->gone || engine->ending)
		fd = core->gone ? -core->gone : -ECANCELED;
	else if (with_handle && !reader_has_descriptor(&engine->port->reader))
		fd = -EOPNOTSUPP;
	else if (with_handle)
		fd = alarm_poll_fd(&engine->alarm, core->link.fd);
	else
		fd = alarm_wake_fd(&engine->alarm);
	/* updates the alarm, which may have just been opened */
	engine_leave(engine, cancel_state);
	return fd;
}

EXPORT int mad_async_wake_fd(struct mad_async *async)
{
	return async ? alarm_fd(async, false) : -EINVAL;
}

EXPORT int mad_async_poll_fd(struct mad_async *async)
{
	return async ? alarm_fd(async, true) : -EINVAL;
}

EXPORT int mad_async_timeout(struct mad_async *async)
{
	int cancel_state, ms;
	int64_t next;

	if (!async)
		return -EINVAL;
	cancel_state = engine_enter(async);
	next = engine_next(async);
	if (engine_is_over(async))
		ms = -async->port->core.gone;
	else if (engine_needs_thread(async))
		ms = 0;
	else
		ms = next == NEVER ? -1 : ms_until(next, clock_us(), INT_MAX);
	engine_leave(async, cancel_state);
	return ms;
}
