/* SPDX-License-Identifier: BSD-2-Clause */

/* Engines: what event loops call, and mad_async_wait(). */

#include "base/export.h"
#include "base/report.h"
#include "calls/engine.h"
#include "port/reader.h"

#include <errno.h>

/* --- processing ----------------------------------------------------------------- */

/* Whether no callback is to come. */
static bool is_idle(const struct mad_async *engine)
{
	if (engine->ending)
		return !engine->listener.open && !engine->listener.calls;
	return listener_is_empty(&engine->listener) && !engine->registrations;
}

/* Whether messages are to be read before the next timer is judged. */
static bool is_behind(const struct ibmad_port *port, int64_t now)
{
	int64_t next = port_next(port);

	return next <= now && port_time(port, now) < next;
}

/*
 * Does the work of the port. Messages are read before timers are judged: a response may
 * have come before the timer was due, and be unread. Returns how many messages were read.
 */
static unsigned serve_unlocking(struct mad_async *engine, bool read)
{
	struct ibmad_port *port = engine->port;
	int64_t now = clock_us();
	unsigned count = 0;

	engine->listener.serving++;
	if ((read || is_behind(port, now)) && !port->gone)
		count = port_read_unlocking(port, BATCH, now);
	port_expire(port, port_time(port, now), BATCH);
	/* sending may take long: another thread leads meanwhile */
	if (queue_is_ready(&port->queue))
		waiters_pass(&port->waiters);
	port_send_unlocking(port, BATCH);
	servers_refuse_unlocking(engine, BATCH);
	engine->listener.serving--;
	/* callbacks may follow, which may take long: other threads do the rest */
	port_tell(port);
	return count;
}

/*
 * One event loop watches the handle, and wakes the others. If another event loop finds
 * messages, the first one is busy: then the other event loop watches the handle from now on.
 */
static void serve_for_loop_unlocking(struct mad_async *engine)
{
	struct listener *listener = &engine->listener;
	bool serves = listener_serves_port(listener);
	unsigned count = serve_unlocking(engine, serves || list_is_empty(&listener->completed));

	if (!serves && count)
		port_set_watcher(engine->port, listener);
	listener_begin(listener);
}

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
	} else if (!async->listener.processing) {
		engine_begin_processing(async);
		serve_for_loop_unlocking(async);
		count = engine_call_back_unlocking(async, BATCH);
		count += servers_call_unlocking(async, BATCH);
		engine_run_timers_unlocking(async);
		engine_run_operations_unlocking(async, BATCH);
		engine_end_processing(async);
	} else if (!engine_is_processor(async)) {
		/* another thread may be in a callback: the port does not wait for it */
		serve_for_loop_unlocking(async);
	}
	if (!count && async->port->gone && is_idle(async))
		count = -async->port->gone;
	port_tell_engine(async->port, &async->listener, true);
	engine_leave(async, cancel_state);
	return failure_of_call(0, count);
}

/* --- waiting -------------------------------------------------------------------- */

/* Whether there is work that no timer and no message announces. */
static bool has_work(const struct mad_async *engine)
{
	const struct listener *listener = &engine->listener;

	return listener_has_own_work(listener, engine->port->gone) ||
	       queue_is_ready(&engine->port->queue) || listener_is_stopped(listener);
}

/*
 * Waits until no other thread processes, and returns 0; or -EINTR or -ETIMEDOUT. A stop wakes
 * the other thread only: it wakes this thread when it ends processing.
 */
static int wait_for_processing_unlocking(struct mad_async *engine, unsigned stops, int64_t end)
{
	while (engine->listener.processing && !engine->ending) {
		if (engine->listener.stops != stops)
			return -EINTR;
		if (clock_us() >= end)
			return -ETIMEDOUT;
		clock_cond_wait(&engine->changed, &engine->port->lock, end);
	}
	return 0;
}

/*
 * Waits for messages, for the next timer, and until the time "end" at the longest; 1 ms if a
 * timer is due that could not be handled yet.
 */
static void wait_for_next_unlocking(struct mad_async *engine, int64_t end)
{
	struct ibmad_port *port = engine->port;
	int64_t next = port_next(port), own = engine->listener.timer_at, now = clock_us();

	if (own < next)
		next = own;
	if (next <= now || (port->gone && own != NEVER))
		next = now + 1000;
	port_wait_unlocking(port, &engine->listener.waiter, next < end ? next : end, now);
}

/* Processes and waits until is_idle(); the number of callbacks, or a negative errno. */
static int run_unlocking(struct mad_async *engine, int64_t end)
{
	struct waiter *waiter = &engine->listener.waiter;
	bool read = true;
	int count = 0;

	while (!listener_is_stopped(&engine->listener)) {
		serve_unlocking(engine, read);
		/* in a callback the thread sends nothing, whoever wakes it */
		waiter->sending = false;
		count += engine_call_back_unlocking(engine, BATCH);
		count += servers_call_unlocking(engine, BATCH);
		engine_run_timers_unlocking(engine);
		engine_run_operations_unlocking(engine, BATCH);
		waiter->sending = true;
		if (listener_is_stopped(&engine->listener))
			break;
		if (is_idle(engine))
			return count;
		if (end != NEVER && clock_us() >= end)
			return -ETIMEDOUT;
		read = has_work(engine);
		if (!read)
			wait_for_next_unlocking(engine, end);
	}
	return -EINTR;
}

static int run_alone_unlocking(struct mad_async *engine, unsigned stops, int64_t end)
{
	struct waiters *waiters = &engine->port->waiters;
	struct listener *listener = &engine->listener;
	int ret;

	engine_begin_processing(engine);
	waiter_begin(waiters, &listener->waiter);
	listener->stops_before = stops;
	listener->waiting = true;
	listener->waiter.patient = listener->waiter.sending = true;
	ret = run_unlocking(engine, end);
	listener->waiting = false;
	waiter_end(waiters, &listener->waiter);
	engine_end_processing(engine);
	return ret;
}

static int wait_unlocking(struct mad_async *engine, int64_t end)
{
	/* read before waiting: a stop ends the waits of all threads */
	unsigned stops = engine->stops_heeded;
	int ret = wait_for_processing_unlocking(engine, stops, end);

	if (!ret && !engine->ending)
		ret = run_alone_unlocking(engine, stops, end);
	if (ret == -EINTR)
		engine->stops_heeded = engine->listener.stops;
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
	async->listener.stops++;
	port_alert(async->port);
}

/* --- the descriptor ------------------------------------------------------------- */

/* The first event loop with a descriptor watches the handle. */
static int open_poll_fd(struct mad_async *engine)
{
	struct ibmad_port *port = engine->port;
	int fd = listener_poll_fd(&engine->listener);

	if (fd < 0)
		return fd;
	engine->listener.blind = !port->has_descriptor;
	if (!port->watcher)
		port_set_watcher(port, &engine->listener);
	listener_begin(&engine->listener);
	return fd;
}

EXPORT int mad_async_poll_fd(struct mad_async *async)
{
	int cancel_state, fd;

	if (!async)
		return failure_of_call(0, -EINVAL);
	fd = engine_enter(async, &cancel_state);
	if (fd)
		return failure_of_call(0, fd);
	fd = async->port->gone == ECANCELED || async->ending ? -ECANCELED : open_poll_fd(async);
	/* updates what the loop polls, which may have just been opened */
	engine_leave(async, cancel_state);
	return failure_of_call(0, fd);
}
