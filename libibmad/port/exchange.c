/* SPDX-License-Identifier: BSD-2-Clause */

/* Sends requests, and carries out the actions that follow from events. */

#include "port/port.h"

#include "base/export.h"
#include "base/report.h"
#include "mad/debug.h"

#include <errno.h>
#include <limits.h>

/* queue_next() looks at this number of requests for each one that may be sent. */
#define LOOKS 16

const char *const public_call_names[] = {
	[CALL_RPC] = "mad_rpc",
	[CALL_RPC_RMPP] = "mad_rpc_rmpp",
	[CALL_RPC_MESSAGE] = "mad_rpc_message",
	[CALL_ASYNC_SUBMIT] = "mad_async_submit",
	[CALL_SA_SUBMIT] = "mad_sa_submit",
};

/* --- events of requests --------------------------------------------------------- */

void port_send_again(struct ibmad_port *port, struct port_request *request, bool readdressed)
{
	queue_again(&port->queue, request, readdressed);
	request->owner->ops->changed(port, request);
}

void port_handle(struct ibmad_port *port, struct port_request *request,
		 enum request_event_kind kind, int error, int64_t now)
{
	struct request_event event = {.kind = kind, .error = error, .now = now};

	port_carry_out(port, request,
		       request_handle(&port->requests, &request->request, &event));
}

/* Finds the SA and the local GID; 0 or an errno. The lock is not held: it reads sysfs. */
static int find_path_source(const struct ibmad_port *port, struct path_source *source)
{
	umad_port_t local;

	source->agent = handle_agent(&port->handle, IB_SA_CLASS);
	source->sa_key = port->options.sa_key;
	if (source->agent < 0)
		return EHOSTUNREACH;
	if (umad_get_port(port->handle.ca_name, port->handle.portnum, &local))
		return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? errno
									     : EHOSTUNREACH;
	ib_portid_set(&source->sa, (int)local.sm_lid, 1, (int)IB_DEFAULT_QP1_QKEY);
	source->sa.sl = (uint8_t)local.sm_sl;
	/* both are in the wire's order */
	memcpy(source->gid, &local.gid_prefix, 8);
	memcpy(source->gid + 8, &local.port_guid, 8);
	umad_release_port(&local);
	return source->sa.lid ? 0 : EHOSTUNREACH;
}

static RARE enum request_action ask_path_unlocking(struct ibmad_port *port,
						   struct port_request *request,
						   struct request_event *event)
{
	struct path_source source = {0};

	port_unlock(port);
	event->error = find_path_source(port, &source);
	if (!event->error)
		redirect_ask_path(request->request.redirect, request->request.packet, &source);
	port_lock(port);
	/* port_cancel_all() does not find a request without an ID */
	if (port->gone)
		event->error = port->gone;
	event->kind = EVENT_ASKED;
	event->now = clock_us();
	return request_handle(&port->requests, &request->request, event);
}

static enum request_action write_unlocking(struct ibmad_port *port,
					   struct port_request *request,
					   struct request_event *event)
{
	uint8_t *umad = request_buffer(&request->request);

	/* a renumbered packet was counted before the kernel refused its former ID */
	if (!request->request.transmissions.renumbered) {
		queue_sent(&port->queue, request, event->now);
		if (request->owner->ops->sent)
			request->owner->ops->sent(port, request);
	}
	port_unlock(port);
	if (event->attempts_left)
		report_retry(event->attempts_left, umad_get_mad(umad));
	if (request->request.transmissions.count == 1 &&
	    !request->request.transmissions.renumbered)
		debug_sent(public_call_names[request->call], umad,
			   request_mad(&request->request));
	event->error =
		handle_send(&port->handle, umad, request->request.length, event->kernel_ms);
	port_lock(port);
	event->kind = EVENT_WRITTEN;
	/* the kernel may have searched for a GID: the write may take about a second */
	if (event->error || request->request.pending.kind)
		event->now = clock_us();
	return request_written(&port->requests, &request->request, event);
}

void port_transmit_unlocking(struct ibmad_port *port, struct port_request *request)
{
	struct request_event event;
	enum request_action action;

	/* by assignments: for an initializer, compilers clear the structure first */
	event.kind = EVENT_SEND;
	event.now = clock_us();
	if (port->gone) {
		port_handle(port, request, EVENT_CANCEL, port->gone, event.now);
		return;
	}
	timer_stop(&port->timers, &request->timer);
	tids_reserve(&port->requests.tids, port->requests.tids.count + 1);
	action = request_send(&port->requests, &request->request, &event);
	if (action == ACTION_ASK_PATH)
		action = ask_path_unlocking(port, request, &event);
	while (action == ACTION_WRITE)
		action = write_unlocking(port, request, &event);
	port_carry_out(port, request, action);
}

void port_send_queued_unlocking(struct ibmad_port *port, unsigned most)
{
	struct queue *queue = &port->queue;
	struct port_request *request;
	unsigned turn = queue->turn, window, looks;

	for (unsigned i = 0; i < FLOW_WINDOWS && most; i++) {
		window = (turn + i) % FLOW_WINDOWS;
		looks = most < UINT_MAX / LOOKS ? LOOKS * most : UINT_MAX;
		while (most && (request = queue_next(queue, window, &looks))) {
			port_transmit_unlocking(port, request);
			most--;
		}
		/* next time the other window is first */
		if (!most)
			queue->turn = (window + 1) % FLOW_WINDOWS;
	}
}

int64_t port_next(const struct ibmad_port *port)
{
	int64_t next = timers_next(&port->timers), opens = queue_opens(&port->queue);

	return opens < next ? opens : next;
}

void port_expire(struct ibmad_port *port, int64_t now, unsigned most)
{
	struct timer *due;

	while (most-- && (due = timers_due(&port->timers, now)))
		port_handle(port, list_entry(due, struct port_request, timer), EVENT_TIMER, 0,
			    now);
}

RARE void port_request_write_result(const struct port_request *port_request)
{
	const struct request *request = &port_request->request;
	const struct debug_result result = {
		.error = request->error,
		.status = request->status,
		.transmissions = request->transmissions.count,
		.elapsed_ms = request->elapsed_ms,
	};

	debug_write_result(public_call_names[port_request->call], request_buffer(request),
			   request_mad(request), &result);
}

/* --- the end -------------------------------------------------------------------- */

/* Cancels requests that expect a response. One that a thread is writing completes later. */
static void cancel_sent(struct ibmad_port *port, int error, int64_t now)
{
	const struct tids *tids = &port->requests.tids;
	struct transmission *transmission;
	struct request *request;

	for (unsigned i = 0; tids->count && i < tids->bucket_count; i++) {
		transmission = tids->buckets[i];
		while (transmission) {
			request = request_of(transmission);
			transmission = transmission->next;
			if (request_is_ended(request))
				continue;
			port_handle(port, port_request_of(request), EVENT_CANCEL, error, now);
			/* port_handle() may have taken any transmission out of the bucket */
			transmission = tids->buckets[i];
		}
	}
}

RARE void port_cancel_all(struct ibmad_port *port, int error)
{
	int64_t now = clock_us();
	struct list queued, *first;

	queue_drain(&port->queue, &queued);
	while ((first = list_pop(&queued)))
		port_handle(port, list_entry(first, struct port_request, entry), EVENT_CANCEL,
			    error, now);
	cancel_sent(port, error, now);
	while (port->timers.count)
		port_handle(port, list_entry(port->timers.heap[1], struct port_request, timer),
			    EVENT_CANCEL, error, now);
}

void port_fail(struct ibmad_port *port, int error)
{
	if (!port->gone)
		port->gone = error;
	port_cancel_all(port, port->gone);
	servers_end(&port->servers, -port->gone);
	waiters_wake_all(&port->waiters);
	port_tell_all_engines(port);
}
