/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The functions that handle the events of a request, for the table in phases.c. Only files of
 * request/ include this header.
 */
#ifndef LIBIBMAD_HANDLERS_H
#define LIBIBMAD_HANDLERS_H

#include "request/request.h"

static inline enum request_action request_set_timer(struct request *request,
						    enum request_phase phase, int64_t at)
{
	request->phase = phase;
	request->timer_at = at;
	return ACTION_SET_TIMER;
}

static inline int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* When the time of all attempts is over; INT64_MAX: it has not begun. */
static inline int64_t request_ends_at(const struct request *request)
{
	return request->ends_ms ? request->first_sent + request->ends_ms * INT64_C(1000)
				: INT64_MAX;
}

static inline enum request_action request_queue(struct request *request)
{
	request->phase = REQUEST_QUEUED;
	request->timer_at = request_ends_at(request);
	return ACTION_QUEUE;
}

static inline int64_t attempt_us(const struct request *request)
{
	return request->timeout_ms * INT64_C(1000);
}

/* When an attempt that begins at a time ends. */
static inline int64_t attempt_end_after(const struct request *request, int64_t begins)
{
	return earlier(begins + attempt_us(request), request_ends_at(request));
}

/* When the last attempt ends; in_attempt. */
static inline int64_t attempts_end(const struct request *request)
{
	return earlier(request->attempt_end +
			       (request->attempts_left - 1) * attempt_us(request),
		       request_ends_at(request));
}

/* --- attempts.c: transmissions, late responses and timeouts --------------------- */

/* An attempt has ended: queues the request for the next one, or fails with ETIMEDOUT. */
enum request_action attempt_next(struct requests *all, struct request *request, int64_t now);
/* Skips attempts whose time is over, except the last one. */
void attempts_skip(struct request *request, int64_t now);
/* Whether the kernel's report of a transmission's timeout ends the attempt. */
bool attempt_ends_with(struct request *request, const struct request_event *event);

/* EVENT_ASKED */
request_handler attempt_path_asked;
/* EVENT_TIMER in WAITING. */
request_handler attempt_look;
/* EVENT_TIMER in QUEUED. */
request_handler attempts_over;
/* EVENT_TIMER in AWAITING_REPORT. */
request_handler attempt_without_report;
/* EVENT_REPORT in WAITING and AWAITING_REPORT. */
request_handler attempt_report;
/* EVENT_REPORT in QUEUED. */
request_handler attempt_note_report;

/* --- responses.c ---------------------------------------------------------------- */

/* EVENT_RESPONSE, unless a thread writes. */
request_handler response_handle;
/* EVENT_TIMER in PAUSED. */
request_handler pause_end;

#endif
