/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The attempts of a request: transmissions, late responses and timeouts. For phases.c, whose
 * table has the functions that take an event.
 */
#ifndef LIBIBMAD_ATTEMPTS_H
#define LIBIBMAD_ATTEMPTS_H

#include "request/request.h"

static inline enum request_action request_set_timer(struct request *request,
						    enum request_phase phase, int64_t at)
{
	request->phase = phase;
	request->timer_at = at;
	return ACTION_SET_TIMER;
}

static inline enum request_action request_queue(struct request *request)
{
	request->phase = REQUEST_QUEUED;
	return ACTION_QUEUE;
}

static inline int64_t attempt_us(const struct request *request)
{
	return request->timeout_ms * INT64_C(1000);
}

/* When the last of the attempts is over. */
static inline int64_t attempts_end(const struct request *request)
{
	return request->attempt_end + (request->attempts_left - 1) * attempt_us(request);
}

/* The next attempt may begin, or the request fails. */
enum request_action attempt_next(struct requests *all, struct request *request, int64_t now);
/* Skips the attempts that are over already. */
void attempts_skip(struct request *request, int64_t now);
/* Whether the kernel's report of a transmission's timeout ends the attempt. */
bool attempt_ends_with(struct request *request, const struct request_event *event);

/* EVENT_SEND; and again after the kernel refused an ID. */
enum request_action attempt_send(struct requests *all, struct request *request,
				 struct request_event *event);
/* EVENT_ASKED */
enum request_action attempt_path_asked(struct requests *all, struct request *request,
				       struct request_event *event);
/* EVENT_TIMER, while a response may come, and while the kernel's report is to come. */
enum request_action attempt_look(struct requests *all, struct request *request,
				 struct request_event *event);
enum request_action attempt_without_report(struct requests *all, struct request *request,
					   struct request_event *event);
/* EVENT_REPORT, while the attempt lasts, and between attempts. */
enum request_action attempt_report(struct requests *all, struct request *request,
				   struct request_event *event);
enum request_action attempt_note_report(struct requests *all, struct request *request,
					struct request_event *event);

#endif
