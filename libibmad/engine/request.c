/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/request.h"

#include "mad/layout.h"
#include "mad/probe.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

/*
 * Upper bound for the delay of the kernel's timeout report. A kernel timer's
 * granularity is up to 8/63 of its period.
 */
#define KERNEL_LATE_MS(ms) (20 + (ms) / 7)
/*
 * Within an attempt, the kernel waits at least this long for the response to a retransmission.
 */
#define KERNEL_HOLDS_MS    100
/*
 * Retransmission intervals grow by this factor up to INTERVAL_US / INTERVAL_GROWS, then to
 * INTERVAL_US, and double from then on.
 */
#define INTERVAL_GROWS     10
#define INTERVAL_US        200000
/* Pause after the first BUSY; doubles up to 12 times. */
#define BUSY_PAUSE_US      10000
#define BUSY_PAUSES_GROW   12

/* Handles an event in a phase; returns request_handle()'s result. */
typedef bool handler(struct requests *all, struct request *request,
		     struct request_event *event);

/* --- making and freeing --------------------------------------------------------- */

void requests_init(struct requests *requests)
{
	tids_init(&requests->tids);
	flow_init(&requests->flow);
}

bool request_is_by_rmpp(const ib_rpc_t *rpc)
{
	return (rpc->mgtclass & 0xff) == IB_SA_CLASS && rpc->method == IB_MAD_METHOD_GETMULTI;
}

/* Allocates the buffer for RMPP requests. Returns 0, -EMSGSIZE or -ENOMEM. */
static int allocate_buffer(struct request *request, bool rmpp, size_t size)
{
	size_t length = request->dataoffs + size;

	if (!rmpp || size > INT_MAX - 2 * PACKET_SIZE)
		return -EMSGSIZE;
	/* packet_build() writes a whole MAD */
	request->umad =
		calloc(1, request->header_size + (length < IB_MAD_SIZE ? IB_MAD_SIZE : length));
	if (!request->umad) {
		request->umad = request->packet;
		return -ENOMEM;
	}
	request->length = (int)length;
	return 0;
}

static void set_attempts(struct request *request, const struct request_settings *settings,
			 const ib_rpc_t *rpc, bool large)
{
	int mgmt_class = rpc->mgtclass & 0xff;
	int attempts = settings->attempts < UINT16_MAX ? settings->attempts : UINT16_MAX;

	request->timeout_ms = rpc->timeout ? rpc->timeout : settings->timeout_ms;
	if (request->timeout_ms < 0)
		request->timeout_ms = INT_MAX / 2;
	request->attempts_left = (uint16_t)attempts;
	request->timer.at = NEVER;
	request->account.smp = is_smp_class(mgmt_class);
	request->account.sa = mgmt_class == IB_SA_CLASS;
	/* Gets of these classes have no side effects: safe to retransmit */
	request->repeatable = !large && (uint8_t)rpc->method == IB_MAD_METHOD_GET &&
			      (request->account.smp || request->account.sa ||
			       mgmt_class == IB_PERFORMANCE_CLASS || mgmt_class == IB_CC_CLASS);
	if (request->repeatable && attempts > 1)
		request->copies_left = (uint16_t)attempts;
}

int request_make(struct request *request, const struct request_settings *settings,
		 const ib_rpc_t *rpc, uint64_t trid, const ib_portid_t *dport,
		 const ib_rmpp_hdr_t *rmpp, const void *payload, size_t size)
{
	size_t header_size = umad_size(), begin = offsetof(struct request, pending);
	int mgmt_class = rpc->mgtclass & 0xff, ret;
	struct ib_user_mad *header;
	bool large;

	/* clear only the part of the packet in use: header and MAD */
	memset((uint8_t *)request + begin, 0,
	       offsetof(struct request, packet) + header_size + IB_MAD_SIZE - begin);
	request->phase = REQUEST_QUEUED;
	request->umad = request->packet;
	if (!dport || rpc->dataoffs < 0 || rpc->dataoffs > IB_MAD_SIZE)
		return -EINVAL;
	if (settings->agent < 0)
		return -EPROTONOSUPPORT;
	if (!payload)
		size = 0;
	request->header_size = (uint8_t)header_size;
	request->dataoffs = (uint16_t)rpc->dataoffs;
	request->length = IB_MAD_SIZE;
	request->rmpp = settings->rmpp;
	large = settings->by_rmpp || size > (size_t)(IB_MAD_SIZE - rpc->dataoffs);
	ret = large ? allocate_buffer(request, settings->rmpp, size) : 0;
	if (!ret)
		ret = packet_build(request->umad, request_mad(request), rpc, mgmt_class, trid,
				   dport, rmpp);
	if (ret) {
		request_fini(request);
		return ret;
	}
	header = (struct ib_user_mad *)(void *)request->umad;
	header->agent_id = (uint32_t)settings->agent;
	if (header->addr.grh_present)
		header->addr.gid_index = (uint8_t)settings->gid_index;
	transmissions_init(&request->transmissions, (uint32_t)trid, (uint8_t)mgmt_class);
	request->transmissions.method = (uint8_t)rpc->method;
	set_attempts(request, settings, rpc, large);
	if (size)
		memcpy(request_mad(request) + rpc->dataoffs, payload, size);
	if (large)
		rmpp_mark(request_mad(request));
	return 0;
}

int request_make_with_id(struct request *request, const struct request_settings *settings,
			 ib_rpc_t *rpc, const ib_portid_t *dport, const ib_rmpp_hdr_t *rmpp,
			 const void *payload, size_t size)
{
	bool chosen = rpc->trid && !trid_is_ours((uint32_t)rpc->trid);
	uint64_t trid = chosen ? rpc->trid : mad_trid();
	int ret;

	if (!rpc->trid)
		rpc->trid = trid;
	ret = request_make(request, settings, rpc, trid, dport, rmpp, payload, size);
	request->transmissions.chosen = chosen;
	return ret;
}

static void drop_pending(struct request *request)
{
	free(request->pending.umad);
	request->pending = (struct pending_event){.kind = EVENT_NONE};
}

void request_fini(struct request *request)
{
	drop_pending(request);
	free(request->redirect);
	request->redirect = NULL;
	if (request_is_large(request))
		free(request->umad);
	request->umad = request->packet;
}

/* --- phases --------------------------------------------------------------------- */

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Milliseconds until "then", rounded up, at most "most". */
static int ms_to(int64_t then, int64_t now, int most)
{
	return (int)earlier((then - now + 999) / 1000, most);
}

/* End of all attempts; NEVER: not started. */
static int64_t ends_at(const struct request *request)
{
	return request->ends_ms ? request->first_sent + request->ends_ms * INT64_C(1000)
				: NEVER;
}

static int64_t attempt_us(const struct request *request)
{
	return request->timeout_ms * INT64_C(1000);
}

static int64_t kernel_late_us(const struct request *request)
{
	return KERNEL_LATE_MS(request->timeout_ms) * INT64_C(1000);
}

static int64_t attempt_end_after(const struct request *request, int64_t begins)
{
	return earlier(begins + attempt_us(request), ends_at(request));
}

/* End of the last attempt, given that the present one has begun. */
static int64_t last_attempt_end(const struct request *request)
{
	return earlier(request->attempt_end +
			       (request->attempts_left - 1) * attempt_us(request),
		       ends_at(request));
}

static bool wait_in(struct request *request, enum request_phase phase, int64_t at)
{
	request->phase = phase;
	request->timer.at = at;
	return true;
}

static bool queue_again(struct request *request)
{
	return wait_in(request, REQUEST_QUEUED, ends_at(request));
}

static void trace_completed(const struct request *request)
{
	probe_request_completed(request, request->umad, request_mad(request), request->error,
				request->transmissions.count);
}

static void set_done(struct requests *all, struct request *request, int error, int64_t now)
{
	transmissions_forget(&all->tids, &request->transmissions);
	request->phase = REQUEST_DONE;
	request->timer.at = NEVER;
	request->error = (uint16_t)error;
	if (request->transmissions.count)
		request->elapsed_ms = (uint32_t)((uint64_t)(now - request->first_sent) / 1000);
}

/* Completes the request without a response. */
static bool end_with(struct requests *all, struct request *request, int error, int64_t now)
{
	flow_ended(&all->flow, &request->account);
	set_done(all, request, error, now);
	trace_completed(request);
	return true;
}

static bool cancel_request(struct requests *all, struct request *request,
			   struct request_event *event)
{
	return end_with(all, request, event->error, event->now);
}

/* --- attempts ------------------------------------------------------------------- */

/* Queues the request for its next attempt, or fails with ETIMEDOUT. */
static bool next_attempt(struct requests *all, struct request *request, int64_t now)
{
	request->attempt_end = 0;
	probe_attempt_timed_out(request, request->umad, request_mad(request),
				request->timeout_ms, request->attempts_left - 1U);
	if (request->attempts_left <= 1)
		return end_with(all, request, ETIMEDOUT, now);
	request->attempts_left--;
	request->next_attempt = true;
	return queue_again(request);
}

/* All attempts have timed out. */
static bool give_up(struct requests *all, struct request *request, int64_t now)
{
	request->attempts_left = 1;
	return next_attempt(all, request, now);
}

/* Skips attempts that are over, except for the last. */
static void skip_attempts(struct request *request, int64_t now)
{
	while (request->attempts_left > 1 &&
	       now >= request->attempt_end + attempt_us(request)) {
		request->attempt_end = attempt_end_after(request, request->attempt_end);
		request->attempts_left--;
	}
}

/*
 * An attempt timed out. The kernel rejects the TID until it has reported the timeout, so the
 * next attempt waits for the report (except after a Get's last one), at least 1 ms because the
 * report may be queued but unread.
 */
static bool end_attempt(struct requests *all, struct request *request, int64_t now)
{
	int64_t ends = ends_at(request);
	int64_t at = earlier(request->attempt_end + kernel_late_us(request), ends);

	flow_late(&all->flow, &request->account, now);
	if (now >= ends)
		return give_up(all, request, now);
	if (!transmissions_hold_own(&request->transmissions) ||
	    (request->attempts_left <= 1 && request->repeatable))
		return next_attempt(all, request, now);
	return wait_in(request, REQUEST_AWAITING_REPORT, at > now ? at : now + 1000);
}

/* A queued request's timer. */
static bool end_queued(struct requests *all, struct request *request,
		       struct request_event *event)
{
	return event->now >= ends_at(request) && give_up(all, request, event->now);
}

/* The report did not arrive in time. */
static bool end_awaiting(struct requests *all, struct request *request,
			 struct request_event *event)
{
	return next_attempt(all, request, event->now);
}

/* Whether the kernel's timeout report ends the attempt. */
static bool ends_attempt(const struct request *request, const struct request_event *event)
{
	if (request->repeatable)
		return transmission_is_own(event->transmission) && request->attempt_end &&
		       event->now >= request->attempt_end;
	return event->transmission->tid == get32(request_mad(request), TID_OFFS);
}

static bool note_report(struct requests *all, struct request *request,
			struct request_event *event)
{
	(void)request;
	transmission_timed_out(&all->tids, event->transmission);
	return false;
}

static bool handle_report(struct requests *all, struct request *request,
			  struct request_event *event)
{
	bool ends = ends_attempt(request, event);

	transmission_timed_out(&all->tids, event->transmission);
	if (!ends)
		return false;
	flow_late(&all->flow, &request->account, event->now);
	return next_attempt(all, request, event->now);
}

/* --- transmission --------------------------------------------------------------- */

/* Starts the clock for all attempts. Saturates at UINT32_MAX ms (49 days). */
static void begin_all_attempts(struct request *request, int64_t now)
{
	int64_t us = now - request->first_sent +
		     request->attempts_left * (attempt_us(request) + kernel_late_us(request));

	request->ends_ms = us / 1000 < UINT32_MAX ? (uint32_t)(us / 1000) : UINT32_MAX;
}

/* How long the kernel must wait for the response. Begins an attempt if necessary. */
static int begin_wait(struct request *request, const struct transmission *transmission,
		      int64_t now)
{
	int ms;

	if (!request->attempt_end) {
		request->attempt_end = attempt_end_after(request, now);
		ms = ms_to(request->attempt_end, now, request->timeout_ms);
		return ms > 1 ? ms : 1;
	}
	if (transmission_is_own(transmission))
		return ms_to(request->attempt_end, now, request->timeout_ms);
	ms = (int)(request->interval_us / 250) + 1;
	return ms_to(last_attempt_end(request), now,
		     ms > KERNEL_HOLDS_MS ? ms : KERNEL_HOLDS_MS);
}

static bool send_request(struct requests *all, struct request *request,
			 struct request_event *event)
{
	uint8_t *mad = request_mad(request);
	struct transmission *transmission;
	int64_t now = event->now;

	if (redirect_needs_path(request->redirect)) {
		request->phase = REQUEST_ASKING_PATH;
		return true;
	}
	if (request->attempt_end && now >= request->attempt_end)
		return end_attempt(all, request, now);
	if (now >= ends_at(request))
		return give_up(all, request, now);
	/*
	 * Kernels remember a received RMPP message for ten seconds, and drop another one with
	 * the same TID.
	 */
	if (request_is_large(request) && request->transmissions.count)
		transmissions_change_own(&all->tids, &request->transmissions);
	transmission = transmission_begin(&all->tids, &request->transmissions, mad, now);
	probe_request_transmitted(request, request->umad, mad, request->transmissions.count);
	if (request->transmissions.count == 1)
		request->first_sent = now;
	if (!request->ends_ms)
		begin_all_attempts(request, now);
	event->kernel_ms = begin_wait(request, transmission, now);
	event->attempts_left = request->next_attempt ? request->attempts_left : 0;
	request->next_attempt = false;
	if (!request->account.first)
		request->account.may_copy = request->copies_left > 0;
	return wait_in(
		request, REQUEST_WRITING,
		earlier(flow_sent(&all->flow, &request->account, now), request->attempt_end));
}

static bool path_asked(struct requests *all, struct request *request,
		       struct request_event *event)
{
	if (request->pending.kind == EVENT_CANCEL)
		return end_with(all, request, request->pending.error, event->now);
	if (event->error)
		return end_with(all, request, event->error, event->now);
	return send_request(all, request, event);
}

/* --- late responses ------------------------------------------------------------- */

/*
 * Delay before the next retransmission. Longer at first for a node that has never responded,
 * and it grows, because a slow node is more likely than a second loss.
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

/* Timer of a request waiting for its response, which may be late. */
static bool judge_late(struct requests *all, struct request *request,
		       struct request_event *event)
{
	int64_t now = event->now, at;
	uint32_t interval;

	if (now >= request->attempt_end)
		return end_attempt(all, request, now);
	/* round trips measured since may have changed when it counts as late */
	if (now < request->account.sent + flow_late_after(&all->flow, &request->account)) {
		at = flow_look_at(&all->flow, &request->account, now);
		return wait_in(request, REQUEST_WAITING, earlier(at, request->attempt_end));
	}
	flow_late(&all->flow, &request->account, now);
	if (!request->copies_left)
		return wait_in(request, REQUEST_WAITING, request->attempt_end);
	interval = next_interval(all, request);
	at = request->account.sent + interval;
	if (now < at)
		return wait_in(request, REQUEST_WAITING, earlier(at, request->attempt_end));
	request->copies_left--;
	request->interval_us = interval;
	return queue_again(request);
}

/* --- BUSY ----------------------------------------------------------------------- */

/*
 * The pause after BUSY, plus a per-request part of up to half, so that requests sent together
 * are not retransmitted together.
 */
static int64_t next_pause(struct request *request)
{
	int64_t pause = (int64_t)BUSY_PAUSE_US << request->pauses;

	if (request->pauses < BUSY_PAUSES_GROW)
		request->pauses++;
	return pause + pause * (int64_t)(mad_trid() % 16) / 32;
}

/*
 * Deadline for the last pause: the end of all attempts, or earlier if the node has already been
 * BUSY for that long, so that requests to a busy node fail together rather than one by one.
 */
static int64_t pauses_end(struct request *request, int64_t now)
{
	struct flow_path *path = request->account.path;
	int64_t ends = last_attempt_end(request);

	if (!path)
		return ends;
	if (!path->busy_since)
		path->busy_since = now;
	return earlier(ends, path->busy_since + ends - request->first_sent);
}

/*
 * Pauses after BUSY; returns false if pauses_end() would be exceeded. BUSY means that nothing
 * was done (IBA 13.4.7), so any method may be retransmitted. A pausing request is not in
 * flight.
 */
static bool pause_request(struct requests *all, struct request *request, int64_t now)
{
	int64_t at = now + next_pause(request);

	if (at >= pauses_end(request, now))
		return false;
	transmissions_renew(&all->tids, &request->transmissions);
	request->interval_us = 0;
	return wait_in(request, REQUEST_PAUSED, at);
}

static bool end_pause(struct requests *all, struct request *request,
		      struct request_event *event)
{
	if (event->now < request->attempt_end)
		return queue_again(request);
	skip_attempts(request, event->now);
	return next_attempt(all, request, event->now);
}

/* --- responses ------------------------------------------------------------------ */

static uint16_t status_of(const uint8_t *mad)
{
	uint16_t status = get16(mad, STATUS_OFFS);

	return mad[1] == IB_SMI_DIRECT_CLASS ? (uint16_t)(status & ~DIRECTION) : status;
}

/* Handles a redirecting response, or the path for a redirection. */
static bool follow_redirection(struct requests *all, struct request *request,
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
		return end_with(all, request, -ret, now);
	request->interval_us = 0;
	if (!request->repeatable) {
		request->attempt_end = 0;
	} else if (now >= request->attempt_end) {
		skip_attempts(request, now);
		next_attempt(all, request, now);
		if (request->phase == REQUEST_DONE)
			return true;
	}
	request->ends_ms = 0;
	return queue_again(request);
}

/* The buffer holds the response from now on. */
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

/* Updates flow control and attempts, whatever the response's status. */
static void note_response(struct requests *all, struct request *request,
			  const struct request_event *event, uint16_t status)
{
	struct transmission *transmission = event->transmission;
	int64_t now = event->now, rtt = now - transmission->sent;
	uint32_t rtt_us = rtt < UINT32_MAX ? (uint32_t)rtt : UINT32_MAX;
	bool lost = request->account.copies && !transmission_is_own(transmission);

	transmission_forget(&all->tids, transmission);
	/* this was a response to an earlier attempt: the next begins now */
	if (!request->attempt_end)
		request->attempt_end = attempt_end_after(request, now);
	request->rtt_us = rtt_us;
	if (!transmission_is_certain(transmission))
		rtt_us = 0;
	else if (rtt_us < 1)
		rtt_us = 1;
	probe_response_received(event->umad, event->umad + request->header_size, status,
				rtt_us);
	flow_response(&all->flow, &request->account, rtt_us, lost, now);
	if (request->account.path && !(status & IB_MAD_STS_BUSY))
		request->account.path->busy_since = 0;
}

static bool handle_response(struct requests *all, struct request *request,
			    struct request_event *event)
{
	const uint8_t *mad = event->umad + request->header_size;
	uint16_t status = status_of(mad);
	int error = 0;

	note_response(all, request, event, status);
	if (status & IB_MAD_STS_BUSY && pause_request(all, request, event->now))
		return true;
	/* SMPs have no such status (IBA 14.2.1) */
	if ((status == IB_MAD_STS_REDIRECT && !is_smp_class(mad[1])) ||
	    redirect_awaits_path(request->redirect))
		return follow_redirection(all, request, event);
	if (status)
		error = EIO;
	else if (request->rmpp && rmpp_is_short(mad, event->length))
		error = EBADMSG; /* a message that lost segments shows no error in its header */
	request->status = status;
	set_done(all, request, error, event->now);
	take_response(request, event);
	trace_completed(request);
	return true;
}

/* --- events while a thread writes ----------------------------------------------- */

static bool keep_cancel(struct requests *all, struct request *request,
			struct request_event *event)
{
	(void)all;
	drop_pending(request);
	request->pending.kind = EVENT_CANCEL;
	request->pending.error = (uint16_t)event->error;
	return false;
}

static bool keep_report(struct requests *all, struct request *request,
			struct request_event *event)
{
	bool ends = ends_attempt(request, event);

	transmission_timed_out(&all->tids, event->transmission);
	if (ends && request->pending.kind == EVENT_NONE) {
		request->pending.kind = EVENT_REPORT;
		request->pending.slot = event->transmission->slot;
	}
	return false;
}

/* On OOM the response is dropped. */
static bool keep_response(struct requests *all, struct request *request,
			  struct request_event *event)
{
	size_t size = request->header_size + (size_t)event->length;
	uint8_t *umad = event->umad;

	transmission_forget(&all->tids, event->transmission);
	if (request->pending.kind != EVENT_NONE && request->pending.kind != EVENT_REPORT)
		return false;
	if (!event->allocated) {
		umad = calloc(1, size > PACKET_SIZE ? size : PACKET_SIZE);
		if (!umad)
			return false;
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
	return false;
}

static bool handle_kept_response(struct requests *all, struct request *request)
{
	struct request_event event = {
		.kind = EVENT_RESPONSE,
		.now = request->pending.at,
		.transmission = &request->transmissions.live[request->pending.slot],
		.umad = request->pending.umad,
		.length = request->pending.length,
		.allocated = true,
	};

	request->pending = (struct pending_event){.kind = EVENT_NONE};
	handle_response(all, request, &event);
	if (event.allocated)
		free(event.umad);
	return true;
}

/* --- after writing -------------------------------------------------------------- */

/*
 * The kernel found no port with the GID: the attempt gets no response; the next may find
 * it. The search takes about a second, maybe longer than several attempts.
 */
static bool no_port_found(struct requests *all, struct request *request, int64_t now)
{
	flow_late(&all->flow, &request->account, now);
	request->copies_left = 0;
	skip_attempts(request, now);
	if (request->attempts_left <= 1)
		return next_attempt(all, request, now);
	return wait_in(request, REQUEST_WAITING, request->attempt_end);
}

/* The kernel may still hold a TID chosen by the caller: retries with a new one. */
static bool send_renumbered(struct requests *all, struct request *request,
			    struct request_event *event)
{
	flow_ended(&all->flow, &request->account);
	if (event->now < request->attempt_end) {
		request->transmissions.renumbered = true;
		request->transmissions.count--; /* it was not sent */
	}
	return send_request(all, request, event);
}

static bool handle_written(struct requests *all, struct request *request,
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
	/* the packet was not sent: a message with its TID is another request's */
	if (error && pending->kind != EVENT_CANCEL &&
	    pending->slot == request->transmissions.latest)
		drop_pending(request);
	if (error == EINVAL && pending->kind == EVENT_NONE &&
	    !request->transmissions.renumbered && transmission_is_own(transmission))
		return send_renumbered(all, request, event);
	request->transmissions.renumbered = false;
	request->phase = REQUEST_WAITING;
	if (pending->kind == EVENT_CANCEL)
		return end_with(all, request, pending->error, event->now);
	if (pending->kind == EVENT_RESPONSE)
		return handle_kept_response(all, request);
	/* an earlier transmission may still get a response */
	if (error == ENODEV || (error && !transmissions_expect(&request->transmissions)))
		return error == ETIMEDOUT ? no_port_found(all, request, event->now)
					  : end_with(all, request, error, event->now);
	if (pending->kind == EVENT_REPORT) {
		drop_pending(request);
		flow_late(&all->flow, &request->account, event->now);
		return next_attempt(all, request, event->now);
	}
	return true;
}

/* --- the table ------------------------------------------------------------------ */

static handler *const handlers[REQUEST_PHASES][REQUEST_EVENTS] = {
	[REQUEST_QUEUED] =
		{
			[EVENT_SEND] = send_request,
			[EVENT_TIMER] = end_queued,
			[EVENT_RESPONSE] = handle_response,
			[EVENT_REPORT] = note_report,
			[EVENT_CANCEL] = cancel_request,
		},
	[REQUEST_WRITING] =
		{
			[EVENT_WRITTEN] = handle_written,
			[EVENT_RESPONSE] = keep_response,
			[EVENT_REPORT] = keep_report,
			[EVENT_CANCEL] = keep_cancel,
		},
	[REQUEST_WAITING] =
		{
			[EVENT_TIMER] = judge_late,
			[EVENT_RESPONSE] = handle_response,
			[EVENT_REPORT] = handle_report,
			[EVENT_CANCEL] = cancel_request,
		},
	[REQUEST_PAUSED] =
		{
			[EVENT_TIMER] = end_pause,
			[EVENT_CANCEL] = cancel_request,
		},
	[REQUEST_AWAITING_REPORT] =
		{
			[EVENT_TIMER] = end_awaiting,
			[EVENT_RESPONSE] = handle_response,
			[EVENT_REPORT] = handle_report,
			[EVENT_CANCEL] = cancel_request,
		},
	[REQUEST_ASKING_PATH] =
		{
			[EVENT_ASKED] = path_asked,
			[EVENT_CANCEL] = keep_cancel,
		},
	[REQUEST_DONE] = {NULL},
};

bool request_handle(struct requests *all, struct request *request, struct request_event *event)
{
	handler *handle = handlers[request->phase][event->kind];

	return handle && handle(all, request, event);
}
