/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The phases and events of a request: the table is at the end. Before it are the functions for
 * events that come while a thread writes, and for the end of a write.
 */

#include "request/handlers.h"

#include "base/export.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static enum request_action cancel(struct requests *all, struct request *request,
				  struct request_event *event)
{
	return request_finish(all, request, event->error, event->now);
}

/* --- events while a thread writes ----------------------------------------------- */

static enum request_action keep_cancel(struct requests *all, struct request *request,
				       struct request_event *event)
{
	(void)all;
	request_drop_pending(request);
	request->pending.kind = EVENT_CANCEL;
	request->pending.error = (uint16_t)event->error;
	return ACTION_NONE;
}

static enum request_action keep_report(struct requests *all, struct request *request,
				       struct request_event *event)
{
	bool ends = attempt_ends_with(request, event);

	transmission_timed_out(&all->tids, event->transmission);
	if (ends && request->pending.kind == EVENT_NONE) {
		request->pending.kind = EVENT_REPORT;
		request->pending.slot = event->transmission->slot;
	}
	return ACTION_NONE;
}

/* Without memory the response is dropped. */
static enum request_action keep_response(struct requests *all, struct request *request,
					 struct request_event *event)
{
	size_t size = request->header_size + (size_t)event->length;
	uint8_t *umad = event->umad;

	transmission_forget(&all->tids, event->transmission);
	if (request->pending.kind != EVENT_NONE && request->pending.kind != EVENT_REPORT)
		return ACTION_NONE;
	if (!event->allocated) {
		umad = calloc(1, size > PACKET_SIZE ? size : PACKET_SIZE);
		if (!umad)
			return ACTION_NONE;
		memcpy(umad, event->umad, size);
	}
	event->allocated = false;
	request->pending = (struct pending_event){
		.kind = EVENT_RESPONSE,
		.at = event->now,
		.umad = umad,
		.length = event->length,
		.slot = event->transmission->slot,
	};
	return ACTION_NONE;
}

static RARE enum request_action handle_kept_response(struct requests *all,
						     struct request *request)
{
	struct request_event event = {
		.kind = EVENT_RESPONSE,
		.now = request->pending.at,
		.transmission = &request->transmissions.live[request->pending.slot],
		.umad = request->pending.umad,
		.length = request->pending.length,
		.allocated = true,
	};
	enum request_action action;

	request->pending = (struct pending_event){.kind = EVENT_NONE};
	action = response_handle(all, request, &event);
	if (event.allocated)
		free(event.umad);
	return action;
}

/* --- after writing -------------------------------------------------------------- */

/*
 * The kernel found no port that has the GID: the attempt is without a response. The port may be
 * found in the next attempt. The kernel searches for about a second, which may be longer than
 * several attempts.
 */
static RARE enum request_action no_port_found(struct requests *all, struct request *request,
					      int64_t now)
{
	flow_late(&all->flow, &request->account, now);
	request->copies_left = 0;
	attempts_skip(request, now);
	if (request->attempts_left <= 1)
		return attempt_next(all, request, now);
	return request_set_timer(request, REQUEST_WAITING, request->attempt_end);
}

/* The packet was not written, or another event came meanwhile. */
RARE enum request_action request_written_otherwise(struct requests *all,
						   struct request *request,
						   struct request_event *event)
{
	struct transmission *transmission =
		&request->transmissions.live[request->transmissions.latest];
	const struct pending_event *pending = &request->pending;
	int error = event->error;

	if (error == ETIMEDOUT)
		transmission_forget(&all->tids, transmission);
	else if (error)
		transmission_refused(&all->tids, transmission);
	/* a message with the ID of a packet that was not sent is for another request */
	if (error && pending->kind != EVENT_CANCEL &&
	    pending->slot == request->transmissions.latest)
		request_drop_pending(request);
	/* the kernel may still hold an ID that the caller chose, but not a new ID */
	if (error == EINVAL && pending->kind == EVENT_NONE &&
	    !request->transmissions.renumbered && transmission_is_own(transmission)) {
		flow_ended(&all->flow, &request->account);
		if (event->now < request->attempt_end) {
			request->transmissions.renumbered = true;
			request->transmissions.count--; /* the packet was not sent */
		}
		return request_send(all, request, event);
	}
	request->transmissions.renumbered = false;
	request->phase = REQUEST_WAITING;
	if (pending->kind == EVENT_CANCEL)
		return request_finish(all, request, pending->error, event->now);
	if (pending->kind == EVENT_RESPONSE)
		return handle_kept_response(all, request);
	/* a response to an earlier transmission may still come */
	if (error == ENODEV || (error && !transmissions_expect(&request->transmissions)))
		return error == ETIMEDOUT ? no_port_found(all, request, event->now)
					  : request_finish(all, request, error, event->now);
	if (pending->kind == EVENT_REPORT) {
		request_drop_pending(request);
		flow_late(&all->flow, &request->account, event->now);
		return attempt_next(all, request, event->now);
	}
	return ACTION_SET_TIMER;
}

/* --- the table ------------------------------------------------------------------ */

request_handler *const request_handlers[REQUEST_PHASES][REQUEST_EVENTS] = {
	[REQUEST_QUEUED] =
		{
			[EVENT_SEND] = request_send,
			[EVENT_TIMER] = attempts_over,
			[EVENT_RESPONSE] = response_handle,
			[EVENT_REPORT] = attempt_note_report,
			[EVENT_CANCEL] = cancel,
		},
	[REQUEST_WRITING] =
		{
			[EVENT_WRITTEN] = request_written,
			[EVENT_RESPONSE] = keep_response,
			[EVENT_REPORT] = keep_report,
			[EVENT_CANCEL] = keep_cancel,
		},
	[REQUEST_WAITING] =
		{
			[EVENT_TIMER] = attempt_look,
			[EVENT_RESPONSE] = response_handle,
			[EVENT_REPORT] = attempt_report,
			[EVENT_CANCEL] = cancel,
		},
	[REQUEST_PAUSED] =
		{
			[EVENT_TIMER] = pause_end,
			[EVENT_CANCEL] = cancel,
		},
	[REQUEST_AWAITING_REPORT] =
		{
			[EVENT_TIMER] = attempt_without_report,
			[EVENT_RESPONSE] = response_handle,
			[EVENT_REPORT] = attempt_report,
			[EVENT_CANCEL] = cancel,
		},
	[REQUEST_ASKING_PATH] =
		{
			[EVENT_ASKED] = attempt_path_asked,
			[EVENT_CANCEL] = keep_cancel,
		},
	[REQUEST_DONE] = {NULL},
};
