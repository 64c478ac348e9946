/* SPDX-License-Identifier: BSD-2-Clause */

/* Threads that process an engine and call back: event loops and mad_async_wait(). */

#include "engine/async.h"

#include "base/export.h"
#include "base/report.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* --- what an event loop polls --------------------------------------------------- */

void alarm_init(struct alarm *alarm)
{
	*alarm = (struct alarm){.work_fd = -1, .timer_fd = -1, .poll_fd = -1, .armed = NEVER};
}

void alarm_close(struct alarm *alarm)
{
	const int fds[] = {alarm->poll_fd, alarm->timer_fd, alarm->work_fd};

	for (unsigned i = 0; i < 3; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	alarm_init(alarm);
}

static int add_to_epoll(int epoll, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

/* Returns poll_fd or a negative errno. */
static int alarm_open(struct alarm *alarm)
{
	int error;

	alarm->work_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (alarm->work_fd >= 0)
		alarm->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (alarm->timer_fd >= 0)
		alarm->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (alarm->poll_fd >= 0 && !add_to_epoll(alarm->poll_fd, alarm->work_fd) &&
	    !add_to_epoll(alarm->poll_fd, alarm->timer_fd))
		return alarm->poll_fd;
	error = errno;
	alarm_close(alarm);
	return -error;
}

void alarm_watch(struct alarm *alarm, int handle, bool watch)
{
	if (watch == alarm->watching)
		return;
	if (watch)
		alarm->watching = !add_to_epoll(alarm->poll_fd, handle);
	else
		alarm->watching = epoll_ctl(alarm->poll_fd, EPOLL_CTL_DEL, handle, NULL) != 0;
}

void alarm_set(struct alarm *alarm, bool work, int64_t next)
{
	struct itimerspec time = {0};
	eventfd_t count;

	if (work != alarm->signalled) {
		alarm->signalled = work;
		if (work)
			eventfd_write(alarm->work_fd, 1);
		else
			eventfd_read(alarm->work_fd, &count);
	}
	if (next == alarm->armed || (next > alarm->armed && alarm->armed > clock_us()))
		return;
	if (next != NEVER) {
		time.it_value.tv_sec = (time_t)(next / 1000000);
		time.it_value.tv_nsec = (long)(next % 1000000 * 1000);
		/* all zeros would disarm the timer */
		if (next <= 0)
			time.it_value.tv_nsec = 1;
	}
	timerfd_settime(alarm->timer_fd, TFD_TIMER_ABSTIME, &time, NULL);
	alarm->armed = next;
}

EXPORT int mad_async_poll_fd(struct mad_async *async)
{
	struct ibmad_port *port;
	int fd;

	fd = engine_enter(async);
	if (fd)
		return failure_of_call(0, fd);
	port = async->port;
	if (port->error == ECANCELED || async->ending) {
		fd = -ECANCELED;
	} else if (async->alarm.poll_fd >= 0) {
		fd = async->alarm.poll_fd;
	} else {
		fd = alarm_open(&async->alarm);
		if (fd >= 0)
			list_add_last(&port->loops, &async->loop);
	}
	if (fd >= 0 && port->has_descriptor && !port->error && !port->blocked_until)
		alarm_watch(&async->alarm, port->handle.fd, true);
	engine_leave(async);
	return failure_of_call(0, fd);
}

/* --- callbacks ------------------------------------------------------------------ */

void engine_callback_begin_unlocking(struct mad_async *engine)
{
	engine->calling++;
	port_unlock(engine->port);
}

void engine_callback_end(struct mad_async *engine)
{
	/* the callback may have forked */
	if (engine->port->forks != port_forks)
		port_inherit(engine->port);
	port_lock(engine->port);
	engine->calling--;
	engine_inherit(engine);
}

static void call_back_request(struct mad_async *engine, struct request *request,
			      mad_async_fn *callback)
{
	struct mad_reply reply = {
		.error = -request->error,
		.status = request->status,
		.rtt_us = request->rtt_us,
		.transmissions = request->transmissions.count,
		.elapsed_ms = request->elapsed_ms,
	};

	if (request_has_response(request)) {
		reply.mad = request_mad(request);
		reply.length = (size_t)request->length;
		if (reply.length > request->dataoffs) {
			reply.data = reply.mad + request->dataoffs;
			reply.data_size = reply.length - request->dataoffs;
		}
	}
	request_debug(request);
	if (reply.error)
		failure_of_reply(&reply, request_mad(request)[1], request->transmissions.method,
				 get16(request_mad(request), 16));
	callback(engine, &reply, request->arg);
	request_fini(request);
}

int engine_call_requests_unlocking(struct mad_async *engine)
{
	struct ibmad_port *port = engine->port;
	struct list *first;
	int count = 0;

	while (count < BATCH && !engine_is_stopped(engine) &&
	       (first = list_pop(&engine->completed))) {
		struct request *request = list_entry(first, struct request, queue);
		mad_async_fn *callback = request->callback;

		engine->stats.completed++;
		engine->queued -= !request->transmissions.count;
		request->callback = NULL;
		engine_callback_begin_unlocking(engine);
		call_back_request(engine, request, callback);
		engine_callback_end(engine);
		pool_put(&engine->pool, request);
		port->open--;
		count++;
	}
	if (count && !port->open)
		port_shrink(port);
	return count;
}

/* A cancelled operation ends through "later" if set, otherwise through "cancel". */
int engine_call_operations_unlocking(struct mad_async *engine)
{
	void (*function)(struct engine_operation * operation);
	struct engine_operation *operation;
	struct list *first;
	int count = 0;

	while (count < BATCH && !engine_is_stopped(engine) &&
	       (first = list_pop(&engine->calls))) {
		operation = list_entry(first, struct engine_operation, call);
		list_init(&operation->call);
		function = operation->later ? operation->later : operation->cancel;
		operation->later = NULL;
		engine_callback_begin_unlocking(engine);
		function(operation);
		engine_callback_end(engine);
		count++;
	}
	return count;
}

/* Once the port has failed, all timers that are set are due. */
static struct engine_timer *due_timer(const struct mad_async *engine, int64_t now)
{
	list_for_each (entry, &engine->timers) {
		struct engine_timer *timer = list_entry(entry, struct engine_timer, all);

		if (timer->at <= now || (engine->port->error && timer->at != NEVER))
			return timer;
	}
	return NULL;
}

static void call_timers_unlocking(struct mad_async *engine)
{
	struct engine_timer *timer;
	int64_t now;

	if (engine_timer_at(engine) == NEVER)
		return;
	now = clock_us();
	for (unsigned i = 0;
	     i < BATCH && !engine_is_stopped(engine) && (timer = due_timer(engine, now)); i++) {
		engine_timer_set(engine, timer, NEVER);
		engine_callback_begin_unlocking(engine);
		timer->due(timer);
		engine_callback_end(engine);
	}
}

/* Makes all callbacks. Returns the number of requests and server calls. */
static int call_back_unlocking(struct mad_async *engine)
{
	int count;

	/* a callback may take long: let another thread lead */
	if (engine_has_work(engine) || !list_is_empty(&engine->timers))
		port_pass_lead(engine->port);
	servers_refuse_unlocking(engine);
	count = engine_call_requests_unlocking(engine);
	count += servers_call_unlocking(engine);
	call_timers_unlocking(engine);
	engine_call_operations_unlocking(engine);
	return count;
}

void engine_begin_processing(struct mad_async *engine, enum engine_thread thread)
{
	engine->thread = thread;
	engine->processor = pthread_self();
}

void engine_end_processing(struct mad_async *engine)
{
	engine->thread = ENGINE_FREE;
	pthread_cond_broadcast(&engine->changed);
}

/* --- threads -------------------------------------------------------------------- */

EXPORT int mad_async_process(struct mad_async *async)
{
	int count = 0, ret;

	ret = engine_enter(async);
	if (ret)
		return failure_of_call(0, ret);
	if (async->ending) {
		count = -ECANCELED;
	} else if (async->thread == ENGINE_FREE) {
		engine_begin_processing(async, ENGINE_PROCESSED);
		port_work_unlocking(async->port);
		/* callbacks may take long: let other threads do the rest */
		port_tell(async->port);
		count = call_back_unlocking(async);
		engine_end_processing(async);
	} else if (!engine_is_processor(async)) {
		/* another thread may be in a callback: the port must not wait for it */
		port_work_unlocking(async->port);
	}
	if (!count && async->port->error && engine_is_idle(async))
		count = -async->port->error;
	engine_leave(async);
	return failure_of_call(0, count);
}

/* Processes until idle. Returns the number of callbacks, or an error. */
static int run_engine_unlocking(struct mad_async *engine, int64_t end)
{
	bool waited = false;
	int count = 0;

	while (!engine_is_stopped(engine)) {
		count += call_back_unlocking(engine);
		if (engine_is_stopped(engine))
			break;
		if (engine_is_idle(engine))
			return count;
		if (waited && end != NEVER && clock_us() >= end)
			return -ETIMEDOUT;
		if (!engine_has_work(engine)) {
			int64_t next = engine_timer_at(engine), now = clock_us();

			/* a due timer may not have been handled yet */
			if (next <= now || (engine->port->error && next != NEVER))
				next = now + 1000;
			port_wait_unlocking(engine->port, &engine->waiter,
					    next < end ? next : end);
		}
		waited = true;
	}
	return -EINTR;
}

static int wait_for_engine_unlocking(struct mad_async *engine, int64_t end)
{
	/* read before waiting: a stop ends all threads' waits */
	unsigned stops = engine->stops_heeded;
	int ret = 0;

	/* a stop wakes only the processing thread, which wakes this one when it is done */
	while (!ret && engine->thread != ENGINE_FREE && !engine->ending) {
		if (engine->stops != stops)
			ret = -EINTR;
		else if (clock_us() >= end)
			ret = -ETIMEDOUT;
		else
			clock_cond_wait(&engine->changed, &engine->port->lock, end);
	}
	if (!ret && !engine->ending) {
		engine_begin_processing(engine, ENGINE_WAITED);
		engine->stops_before = stops;
		waiter_begin(engine->port, &engine->waiter, WAIT_FOR_ENGINE);
		ret = run_engine_unlocking(engine, end);
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
	int ret;

	ret = engine_enter(async);
	if (ret)
		return failure_of_call(0, ret);
	ret = engine_is_processor(async) ? -EDEADLK : wait_for_engine_unlocking(async, end);
	engine_leave(async);
	return failure_of_call(0, ret);
}

EXPORT void mad_async_stop(struct mad_async *async)
{
	if (!async)
		return;
	async->stops++;
	port_alert(async->port);
}
