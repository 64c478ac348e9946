/* SPDX-License-Identifier: BSD-2-Clause */

#include "request/handlers.h"

#include "base/export.h"
#include "mad/layout.h"
#include "mad/probe.h"

#include <errno.h>

/*
 * The kernel reports a timeout at most this late. The granularity of a kernel timer is up to
 * 8/63 of its period.
 */
#define KERNEL_LATE_MS(ms) (20 + (ms) / 7)
/* The kernel waits for the response to a retransmission within an attempt at least this long.
 */
#define KERNEL_HOLDS_MS    100
/*
 * The interval between retransmissions grows by this factor up to INTERVAL_US / INTERVAL_GROWS,
 * then to INTERVAL_US, and then it doubles.
 */
#define INTERVAL_GROWS     10
#define INTERVAL_US        200000

/* Milliseconds from now to a later time, rounded up; "most" at most. */
static int ms_to(int64_t then, int64_t now, int most)
{
	return (int)earlier((then - now + 999) / 1000, most);
}

static int64_t kernel_late_us(const struct request *request)
{
	return KERNEL_LATE_MS(request->timeout_ms) * INT64_C(1000);
}

/* --- attempts ------------------------------------------------------------------- */

RARE enum request_action attempt_next(struct requests *all, struct request *request,
				      int64_t now)
{
	request->in_attempt = false;
	probe_attempt_timed_out(request, request_buffer(request), request_mad(request),
				request->timeout_ms, request->attempts_left - 1U);
	if (request->attempts_left <= 1)
		return request_finish(all, request, ETIMEDOUT, now);
	request->attempts_left--;
	request->next_attempt = true;
	return request_queue(request);
}

/* The time of all attempts is over. */
static enum request_action give_up(struct requests *all, struct request *request, int64_t now)
{
	request->attempts_left = 1;
	return attempt_next(all, request, now);
}

enum request_action attempts_over(struct requests *all, struct request *request,
				  struct request_event *event)
{
	return event->now < request_ends_at(request) ? ACTION_NONE
						     : give_up(all, request, event->now);
}

void attempts_skip(struct request *request, int64_t now)
{
	while (request->attempts_left > 1 &&
	       now >= request->attempt_end + attempt_us(request)) {
		request->attempt_end = attempt_end_after(request, request->attempt_end);
		request->attempts_left--;
	}
}

/*
 * An attempt is over without a response. The kernel refuses the request's ID until it has
 * reported the timeout, so the next attempt waits for the report. A Get does not wait after its
 * last attempt. The wait is 1 ms at least, because the report may be queued and not read yet.
 */
static RARE enum request_action end_attempt(struct requests *all, struct request *request,
					    int64_t now)
{
	int64_t ends = request_ends_at(request);
	int64_t at = earlier(request->attempt_end + kernel_late_us(request), ends);

	flow_late(&all->flow, &request->account, now);
	if (now >= ends)
		return give_up(all, request, now);
	if (!transmissions_hold_own(&request->transmissions) ||
	    (request->attempts_left <= 1 && request->repeatable))
		return attempt_next(all, request, now);
	return request_set_timer(request, REQUEST_AWAITING_REPORT, at > now ? at : now + 1000);
}

enum request_action attempt_without_report(struct requests *all, struct request *request,
					   struct request_event *event)
{
	return attempt_next(all, request, event->now);
}

bool attempt_ends_with(struct request *request, const struct request_event *event)
{
	if (request->repeatable)
		return transmission_is_own(event->transmission) && request->in_attempt &&
		       event->now >= request->attempt_end;
	return event->transmission->tid == get32(request_mad(request), TID_OFFS);
}

enum request_action attempt_note_report(struct requests *all, struct request *request,
					struct request_event *event)
{
	(void)request;
	transmission_timed_out(&all->tids, event->transmission);
	return ACTION_NONE;
}

enum request_action attempt_report(struct requests *all, struct request *request,
				   struct request_event *event)
{
	bool ends = attempt_ends_with(request, event);

	transmission_timed_out(&all->tids, event->transmission);
	if (!ends)
		return ACTION_NONE;
	flow_late(&all->flow, &request->account, event->now);
	return attempt_next(all, request, event->now);
}

/* --- transmission --------------------------------------------------------------- */

/* When the response to the latest transmission is late. Later round trips may change it. */
static int64_t late_at(struct requests *all, const struct request *request)
{
	return request->account.sent + flow_late_after(&all->flow, &request->account);
}

/* The time of all attempts begins. 49 days and more are UINT32_MAX. */
static void begin_all(struct request *request, int64_t now)
{
	int64_t us = now - request->first_sent +
		     request->attempts_left * (attempt_us(request) + kernel_late_us(request));

	request->ends_ms = us / 1000 < UINT32_MAX ? (uint32_t)(us / 1000) : UINT32_MAX;
}

/* How long the kernel is to wait for the response; begins the attempt if none has begun. */
static int begin_wait(struct request *request, const struct transmission *transmission,
		      int64_t now)
{
	int ms;

	if (!request->in_attempt) {
		request->in_attempt = true;
		request->attempt_end = attempt_end_after(request, now);
		ms = ms_to(request->attempt_end, now, request->timeout_ms);
		return ms > 1 ? ms : 1;
	}
	if (transmission_is_own(transmission))
		return ms_to(request->attempt_end, now, request->timeout_ms);
	ms = (int)(request->interval_us / 250) + 1;
	return ms_to(attempts_end(request), now, ms > KERNEL_HOLDS_MS ? ms : KERNEL_HOLDS_MS);
}

static RARE enum request_action ask_path(struct request *request)
{
	request->phase = REQUEST_ASKING_PATH;
	return ACTION_ASK_PATH;
}

enum request_action request_send(struct requests *all, struct request *request,
				 struct request_event *event)
{
	uint8_t *umad = request_buffer(request), *mad = umad + request->header_size;
	struct transmission *transmission;
	int64_t now = event->now;

	if (redirect_needs_path(request->redirect))
		return ask_path(request);
	if (request->in_attempt && now >= request->attempt_end)
		return end_attempt(all, request, now);
	if (now >= request_ends_at(request))
		return give_up(all, request, now);
	/*
	 * A kernel remembers an RMPP message that it has received for ten seconds, and does not
	 * deliver another one with the same ID.
	 */
	if (request_is_large(request) && request->transmissions.count)
		transmissions_change_own(&all->tids, &request->transmissions);
	transmission = transmission_begin(&all->tids, &request->transmissions, mad, now);
	probe_request_transmitted(request, umad, mad, request->transmissions.count);
	if (request->transmissions.count == 1)
		request->first_sent = now;
	if (!request->ends_ms)
		begin_all(request, now);
	event->kernel_ms = begin_wait(request, transmission, now);
	event->attempts_left = request->next_attempt ? request->attempts_left : 0;
	request->next_attempt = false;
	request->phase = REQUEST_WRITING;
	if (!request->account.first)
		request->account.may_copy = request->copies_left > 0;
	request->timer_at =
		earlier(flow_sent(&all->flow, &request->account, now), request->attempt_end);
	return ACTION_WRITE;
}

enum request_action attempt_path_asked(struct requests *all, struct request *request,
				       struct request_event *event)
{
	if (request->pending.kind == EVENT_CANCEL)
		return request_finish(all, request, request->pending.error, event->now);
	if (event->error)
		return request_finish(all, request, event->error, event->now);
	return request_send(all, request, event);
}

/* --- late responses ------------------------------------------------------------- */

/*
 * How long after the latest transmission the request is retransmitted. The first interval is
 * longer for a node that has never responded, because the node may be slow or dead. The next
 * intervals are longer, because a slow node is more likely than a second loss.
 */
static uint32_t next_interval(struct requests *all, const struct request *request)
{
	const struct flow_path *path = request->account.path;
	uint32_t us = request->interval_us;

	if (!us)
		return (path && path->smoothed_us ? 1 : 2) *
		       flow_late_after(&all->flow, &request->account);
	if (us <= INTERVAL_US / INTERVAL_GROWS)
		return us * INTERVAL_GROWS;
	return us <= INTERVAL_US / 2 ? INTERVAL_US : us < UINT32_MAX / 2 ? 2 * us : us;
}

/* The timer of a request that waits for a response is due. */
enum request_action attempt_look(struct requests *all, struct request *request,
				 struct request_event *event)
{
	int64_t now = event->now, due;
	uint32_t interval;

	if (now >= request->attempt_end)
		return end_attempt(all, request, now);
	if (now < late_at(all, request))
		return request_set_timer(
			request, REQUEST_WAITING,
			earlier(flow_look_at(&all->flow, &request->account, now),
				request->attempt_end));
	flow_late(&all->flow, &request->account, now);
	if (!request->copies_left)
		return request_set_timer(request, REQUEST_WAITING, request->attempt_end);
	interval = next_interval(all, request);
	due = request->account.sent + interval;
	if (now < due)
		return request_set_timer(request, REQUEST_WAITING,
					 earlier(due, request->attempt_end));
	request->copies_left--;
	request->interval_us = interval;
	return request_queue(request);
}
