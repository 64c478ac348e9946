/* SPDX-License-Identifier: BSD-2-Clause */

/* A response: BUSY, a redirection, or the result of the request; and how a request completes.
 */

#include "request/handlers.h"

#include "base/export.h"
#include "mad/layout.h"
#include "mad/probe.h"

#include <errno.h>
#include <stdlib.h>

/* The pause after the first BUSY response. Each further one doubles it, 12 times at most. */
#define BUSY_PAUSE_US    10000
#define BUSY_PAUSES_GROW 12

/* --- the end -------------------------------------------------------------------- */

/* The request is complete, except that the program that traces is not told. */
static INLINE void finish(struct requests *all, struct request *request, int error, int64_t now)
{
	transmissions_forget(&all->tids, &request->transmissions);
	request->phase = REQUEST_DONE;
	request->error = (uint16_t)error;
	request->elapsed_ms = request->transmissions.count
				      ? (uint32_t)((uint64_t)(now - request->first_sent) / 1000)
				      : 0;
}

static INLINE void trace_completed(const struct request *request)
{
	probe_request_completed(request, request_buffer(request), request_mad(request),
				request->error, request->transmissions.count);
}

enum request_action request_finish(struct requests *all, struct request *request, int error,
				   int64_t now)
{
	flow_ended(&all->flow, &request->account);
	finish(all, request, error, now);
	trace_completed(request);
	return ACTION_COMPLETE;
}

/* --- BUSY ----------------------------------------------------------------------- */

/*
 * The pause after a BUSY response. Up to half of the pause is added, a different part for each
 * request: requests that were sent at once should not be retransmitted at once.
 */
static int64_t next_pause(struct request *request)
{
	int64_t pause = (int64_t)BUSY_PAUSE_US << request->pauses;

	if (request->pauses < BUSY_PAUSES_GROW)
		request->pauses++;
	return pause + pause * (int64_t)(mad_trid() % 16) / 32;
}

/*
 * When the last pause must have ended: at the end of the attempts, or earlier if the node has
 * been BUSY for as long as all attempts take. So requests to a node that stays BUSY fail
 * together, not one after the other.
 */
static int64_t pauses_end(struct request *request, int64_t now)
{
	struct flow_path *path = request->account.path;
	int64_t ends = attempts_end(request);

	if (!path)
		return ends;
	if (!path->busy_since)
		path->busy_since = now;
	return earlier(ends, path->busy_since + ends - request->first_sent);
}

/*
 * Pauses after a BUSY response, or returns ACTION_NONE if the pause would last longer than
 * pauses_end() permits. BUSY says that nothing was done (IBA 13.4.7): a request of any method
 * may be retransmitted. During the pause the request is not in flight.
 */
static RARE enum request_action pause_after_busy(struct requests *all, struct request *request,
						 int64_t now)
{
	int64_t at = now + next_pause(request);

	if (at >= pauses_end(request, now))
		return ACTION_NONE;
	transmissions_renew(&all->tids, &request->transmissions);
	request->interval_us = 0;
	return request_set_timer(request, REQUEST_PAUSED, at);
}

enum request_action pause_end(struct requests *all, struct request *request,
			      struct request_event *event)
{
	if (event->now < request->attempt_end)
		return request_queue(request);
	attempts_skip(request, event->now);
	return attempt_next(all, request, event->now);
}

/* --- responses ------------------------------------------------------------------ */

static uint16_t status_of(const uint8_t *mad)
{
	uint16_t status = get16(mad, STATUS_OFFS);

	return mad[1] == IB_SMI_DIRECT_CLASS ? (uint16_t)(status & ~DIRECTION) : status;
}

/* A message that lost segments has no error in its header, but is no response to use. */
static inline bool is_short(const struct request *request, const uint8_t *mad, int length)
{
	return request->rmpp && rmpp_is_short(mad, length);
}

/* SMPs have no such status (IBA 14.2.1). */
static bool is_redirection(const uint8_t *mad, uint16_t status)
{
	return status == IB_MAD_STS_REDIRECT && !is_smp_class(mad[1]);
}

/* Follows a response that redirects, or that has the path for a redirection. */
static RARE enum request_action follow(struct requests *all, struct request *request,
				       const struct request_event *event)
{
	int64_t now = event->now;
	int ret = -EOPNOTSUPP;

	transmissions_renew(&all->tids, &request->transmissions);
	if (!request_is_large(request))
		ret = redirect(&request->redirect, request->packet,
			       &request->transmissions.live[0].tid,
			       event->umad + request->header_size, event->length);
	if (ret < 0)
		return request_finish(all, request, -ret, now);
	request->interval_us = 0;
	if (!request->repeatable) {
		request->in_attempt = false;
	} else if (now >= request->attempt_end) {
		attempts_skip(request, now);
		if (attempt_next(all, request, now) == ACTION_COMPLETE)
			return ACTION_COMPLETE;
	}
	request->ends_ms = 0;
	request_queue(request);
	return ACTION_READDRESS;
}

/* The buffer has the response from now on. */
static void take_response(struct request *request, struct request_event *event)
{
	size_t size = request->header_size + (size_t)event->length;

	if (request_is_large(request))
		free(request->umad);
	request->umad = event->allocated ? event->umad : request->packet;
	if (!event->allocated) {
		memcpy(request->packet, event->umad, size);
		if (event->length < IB_MAD_SIZE)
			memset(request->packet + size, 0, PACKET_SIZE - size);
	}
	event->allocated = false;
	request->length = event->length;
}

/*
 * A response that has a status, or the path for a redirection. ACTION_NONE: the response is the
 * result of the request.
 */
static NOINLINE enum request_action handle_status(struct requests *all, struct request *request,
						  struct request_event *event, uint16_t status)
{
	enum request_action action = ACTION_NONE;

	if (status & IB_MAD_STS_BUSY)
		action = pause_after_busy(all, request, event->now);
	if (action == ACTION_NONE &&
	    (is_redirection(event->umad + request->header_size, status) ||
	     redirect_awaits_path(request->redirect)))
		action = follow(all, request, event);
	return action;
}

enum request_action response_handle(struct requests *all, struct request *request,
				    struct request_event *event)
{
	struct transmission *transmission = event->transmission;
	const uint8_t *mad = event->umad + request->header_size;
	uint16_t status = status_of(mad);
	int64_t now = event->now, rtt = now - transmission->sent;
	uint32_t rtt_us = rtt < UINT32_MAX ? (uint32_t)rtt : UINT32_MAX;
	bool lost = request->account.copies && !transmission_is_own(transmission);
	enum request_action action;

	transmission_forget(&all->tids, transmission);
	if (!request->in_attempt) {
		/* a response to an earlier attempt: the next one begins now */
		request->in_attempt = true;
		request->attempt_end = attempt_end_after(request, now);
	}
	request->rtt_us = rtt_us;
	if (!transmission_is_certain(transmission))
		rtt_us = 0;
	else if (rtt_us < 1)
		rtt_us = 1;
	probe_response_received(event->umad, mad, status, rtt_us);
	flow_response(&all->flow, &request->account, rtt_us, lost, now);
	if (request->account.path && !(status & IB_MAD_STS_BUSY))
		request->account.path->busy_since = 0;
	if (status || redirect_awaits_path(request->redirect)) {
		action = handle_status(all, request, event, status);
		if (action != ACTION_NONE)
			return action;
	}
	request->status = status;
	finish(all, request,
	       status                                  ? EIO
	       : is_short(request, mad, event->length) ? EBADMSG
						       : 0,
	       now);
	take_response(request, event);
	trace_completed(request);
	return ACTION_COMPLETE;
}
