/* SPDX-License-Identifier: BSD-2-Clause */

/* Asynchronous requests: what event loops call, and mad_async_run(). */

#include "base/export.h"
#include "calls/engine.h"

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

/* Waits until no other thread processes; false if the engine is destroyed meanwhile. */
static bool wait_for_processing(struct mad_async *engine)
{
	while (engine->processing && !engine->ending)
		pthread_cond_wait(&engine->changed, &engine->port->core.lock);
	return !engine->ending;
}

/* Waits for messages and for the next timer; 1 ms for one that is due, but not judged yet. */
static void wait_for_next(struct mad_async *engine)
{
	struct ibmad_port *port = engine->port;
	int64_t next = scheduler_next(&port->scheduler), now = clock_us();

	reader_wait(&port->reader, &engine->runner, next > now ? next : now + 1000, now);
}

/* Processes and waits until no request is open. Returns how many requests were called back. */
static int run(struct mad_async *engine)
{
	struct ibmad_port *port = engine->port;
	bool read = true;
	int count = 0;

	engine_begin_processing(engine);
	reader_begin(&port->reader, &engine->runner);
	engine->running = true;
	engine->runner.patient = true;
	for (;;) {
		serve(engine, read);
		count += engine_call_back(engine, BATCH);
		if (!engine->open)
			break;
		read = engine_has_work(engine);
		if (!read)
			wait_for_next(engine);
	}
	engine->running = false;
	reader_end(&port->reader, &engine->runner);
	engine_end_processing(engine);
	return count;
}

EXPORT int mad_async_run(struct mad_async *async)
{
	int cancel_state, count = 0;

	if (!async)
		return -EINVAL;
	cancel_state = engine_enter(async);
	if (engine_is_processor(async))
		count = -EDEADLK;
	else if (wait_for_processing(async))
		count = run(async);
	engine_leave(async, cancel_state);
	return count;
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
	engine_update(engine, true);
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
	next = scheduler_next(&async->port->scheduler);
	if (engine_is_over(async))
		ms = -async->port->core.gone;
	else if (engine_needs_thread(async))
		ms = 0;
	else
		ms = next == NEVER ? -1 : ms_until(next, clock_us(), INT_MAX);
	engine_leave(async, cancel_state);
	return ms;
}
