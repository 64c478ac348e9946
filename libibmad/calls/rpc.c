/* SPDX-License-Identifier: BSD-2-Clause */

/* Blocking requests: a request, and a thread that waits for it. */

#include "calls/rpc.h"

#include "base/export.h"
#include "base/report.h"
#include "calls/options.h"
#include "mad/layout.h"
#include "port/reader.h"

#include <errno.h>
#include <stdlib.h>

/* The requests of other threads that a thread sends before it looks at its own. */
#define SENT_AT_ONCE 16

struct blocking_request {
	struct owner owner;
	struct waiter waiter;
	struct port_request request;
};

/* --- the thread that waits owns the request ------------------------------------- */

static struct blocking_request *blocking_of(struct port_request *request)
{
	return list_entry(request, struct blocking_request, request);
}

static void wake(struct ibmad_port *port, struct port_request *request)
{
	waiter_wake(&port->waiters, &blocking_of(request)->waiter);
}

static const struct owner_ops ops = {
	.completed = wake,
	.changed = wake,
};

/*
 * When the thread has to act for its request; NEVER: an event comes before. A queued request
 * waits for the requests in flight, also of engines. An engine may have no thread, so this
 * thread handles the timers of the port.
 */
static int64_t due_at(const struct ibmad_port *port, const struct request *request)
{
	if (request->phase == REQUEST_QUEUED) {
		int64_t next = port_next(port);

		return request->timer_at < next ? request->timer_at : next;
	}
	if (request->phase == REQUEST_WRITING || request->phase == REQUEST_ASKING_PATH)
		return NEVER;
	return request->timer_at;
}

/*
 * Waits for an event. If the timer is due, the response may be unread, because this thread did
 * not run for a while. While this thread cannot read, it waits in steps of a millisecond.
 */
static void wait_unlocking(struct ibmad_port *port, struct waiter *waiter, int64_t until,
			   int64_t now)
{
	if (until <= now && (port->waiters.reading || port->blocked_until > now))
		until = now + 1000;
	port_wait_unlocking(port, waiter, until, now);
}

/* Whether the request is to fail, because the port has failed. */
static bool is_lost(const struct ibmad_port *port, const struct request *request)
{
	return port->gone && !request_is_ended(request);
}

/* Does what is due for the request, or sends queued requests. */
static NOINLINE void act_unlocking(struct ibmad_port *port, struct port_request *request,
				   int64_t now)
{
	bool queued = request->request.phase == REQUEST_QUEUED;
	/* the time of all attempts is over */
	bool over = queued && port_time(port, now) >= request->request.timer_at;

	if (is_lost(port, &request->request)) {
		port_handle(port, request, EVENT_CANCEL, port->gone, now);
	} else if (!over && queue_is_ready(&port->queue)) {
		/* sending may take long: another thread leads meanwhile */
		waiters_pass(&port->waiters);
		port_send_unlocking(port, SENT_AT_ONCE);
	} else if (queued && !over) {
		port_expire(port, port_time(port, now), SENT_AT_ONCE);
	} else {
		port_handle(port, request, EVENT_TIMER, 0, now);
	}
}

/* One step towards the completion of a request. */
static INLINE void advance_unlocking(struct ibmad_port *port, struct blocking_request *blocking)
{
	struct port_request *request = &blocking->request;
	int64_t now = clock_us(), due = due_at(port, &request->request);

	blocking->waiter.sending = request->request.phase == REQUEST_QUEUED;
	if ((now < due || port_time(port, now) < due) && !is_lost(port, &request->request) &&
	    !queue_is_ready(&port->queue))
		wait_unlocking(port, &blocking->waiter, due, now);
	else
		act_unlocking(port, request, now);
}

/* Sends a request and waits until it is complete. 0 or -ECANCELED. */
static INLINE int wait_for(struct ibmad_port *port, struct blocking_request *blocking)
{
	const struct request *request = &blocking->request.request;

	if (port_enter_uncancelled(port))
		return -ECANCELED;
	waiter_begin(&port->waiters, &blocking->waiter);
	port_submit_unlocking(port, &blocking->request);
	while (request->phase != REQUEST_DONE) {
		advance_unlocking(port, blocking);
		if (request->phase != REQUEST_DONE)
			port_tell(port);
	}
	waiter_end(&port->waiters, &blocking->waiter);
	port_leave_uncancelled(port);
	return 0;
}

/* --- requests ------------------------------------------------------------------- */

/* Whether the route is wrong, which packet_build() has already reported. */
static bool is_bad_route(const ib_rpc_t *rpc, const ib_portid_t *dport)
{
	return (rpc->mgtclass & 0xff) == IB_SMI_DIRECT_CLASS &&
	       (dport->drpath.cnt < 0 || dport->drpath.cnt >= IB_SUBNET_PATH_HOPS_MAX);
}

/* Called for each response to a blocking request; may be NULL. */
static response_fn *_Atomic response_hook;

void rpc_on_response(response_fn *hook)
{
	response_hook = hook;
}

static void offer_response(struct request *request)
{
	response_fn *hook = response_hook;

	if (hook)
		hook(request_mad(request), (size_t)request->length);
}

static void store_failure(const ib_rpc_t *rpc, const struct request *request, int error)
{
	const struct mad_failure failure = {
		.error = -error,
		.mgmt_class = rpc->mgtclass & 0xff,
		.method = (unsigned)rpc->method,
		.attribute = rpc->attr.id,
		.status = request->status,
		.transmissions = request->transmissions.count,
		.elapsed_ms = request->elapsed_ms,
	};

	failure_store(&failure);
}

/*
 * Stores and reports that a request could not be made, and returns the errno of the call. If
 * the class is not registered, the calls of rdma-core fail with EINVAL, and report that with
 * ibdebug only.
 */
static RARE int not_made(const char *call, const struct request *request, const ib_rpc_t *rpc,
			 ib_portid_t *dport, int error)
{
	store_failure(rpc, request, error);
	if (!call && error == EPROTONOSUPPORT)
		report_class("mad_rpc_message", rpc->mgtclass);
	if (!call) {
		report_not_made("mad_rpc_message", error);
		return error;
	}
	if (error == EPROTONOSUPPORT) {
		report_class_debug(call, rpc->mgtclass);
		error = EINVAL;
	}
	if (dport && !is_bad_route(rpc, dport))
		report_failure(call, portid2str(dport), error);
	return error;
}

/* Stores and reports the failure of a request. */
static RARE void failed(const char *call, const struct request *request, const ib_rpc_t *rpc,
			ib_portid_t *dport)
{
	if (call && request->status)
		report_status(call, portid2str(dport), request->status);
	else if (call)
		report_failure(call, portid2str(dport), request->error);
	store_failure(rpc, request, request->error);
}

/* exchange() while the thread cannot be cancelled. */
static INLINE int exchange_uncancelled(enum public_call call, struct ibmad_port *port,
				       struct blocking_request *blocking, ib_rpc_t *rpc,
				       ib_portid_t *dport, ib_rmpp_hdr_t *rmpp,
				       const void *payload, size_t size)
{
	struct request_settings settings = options_for_request(port, rpc->mgtclass & 0xff);
	struct request *request = &blocking->request.request;
	/* mad_rpc_message() returns its failures, and reports none */
	const char *reported_as = call == CALL_RPC_MESSAGE ? NULL : public_call_names[call];
	int ret;

	settings.by_rmpp = !reported_as && request_is_by_rmpp(rpc);
	blocking->owner = (struct owner){.ops = &ops, .source = &port->blocking};
	port_request_init(&blocking->request, &blocking->owner, call);
	ret = request_init(request, &settings, rpc, dport, rmpp, payload, size);
	if (!ret)
		ret = wait_for(port, blocking);
	if (ret)
		return not_made(reported_as, request, rpc, dport, -ret);
	if (request_has_response(request)) {
		rpc->rstatus = request->status;
		offer_response(request);
	}
	port_request_debug(&blocking->request);
	redirect_report(request->redirect, dport);
	if (request->error)
		failed(reported_as, request, rpc, dport);
	return request->error;
}

/*
 * Sends a request and waits: 0, or an errno. The response is in blocking->request. Failures are
 * reported as those of the public call.
 */
static INLINE int exchange(enum public_call call, const struct ibmad_port *srcport,
			   struct blocking_request *blocking, ib_rpc_t *rpc, ib_portid_t *dport,
			   ib_rmpp_hdr_t *rmpp, const void *payload, size_t size)
{
	int cancel_state, error;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	error = exchange_uncancelled(call, port_of(srcport), blocking, rpc, dport, rmpp,
				     payload, size);
	pthread_setcancelstate(cancel_state, NULL);
	return error;
}

/* The same, for calls that are not often called: the code of exchange() is not repeated. */
static NOINLINE int exchange_rare(enum public_call call, const struct ibmad_port *srcport,
				  struct blocking_request *blocking, ib_rpc_t *rpc,
				  ib_portid_t *dport, ib_rmpp_hdr_t *rmpp, const void *payload,
				  size_t size)
{
	return exchange(call, srcport, blocking, rpc, dport, rmpp, payload, size);
}

/* The end of every call: sets errno and rpc->error. */
static void *finish(ib_rpc_t *rpc, int error, void *data)
{
	if (rpc && (rpc->mgtclass & IB_MAD_RPC_VERSION_MASK) == IB_MAD_RPC_VERSION1)
		((ib_rpc_v1_t *)(void *)rpc)->error = error;
	errno = error;
	return error ? NULL : data;
}

/* Fails with EINVAL, because an argument is wrong. */
static RARE void *refuse(ib_rpc_t *rpc)
{
	failure_refuse(rpc ? rpc->mgtclass : 0, EINVAL);
	return finish(rpc, EINVAL, NULL);
}

/* Copies rpc->datasz bytes of the response's data, with zeros after a shorter response. */
static inline void copy_data(struct request *request, const ib_rpc_t *rpc, void *data)
{
	const uint8_t *mad = request_mad(request);
	int there = request->length - rpc->dataoffs;

	if (there < 0)
		there = 0;
	if (there > rpc->datasz)
		there = rpc->datasz;
	memcpy(data, mad + rpc->dataoffs, (size_t)there);
	if (there < rpc->datasz)
		memset((uint8_t *)data + there, 0, (size_t)(rpc->datasz - there));
}

EXPORT void *mad_rpc(const struct ibmad_port *srcport, ib_rpc_t *rpc, ib_portid_t *dport,
		     void *payload, void *rcvdata)
{
	struct blocking_request blocking;
	int error;

	if (!rpc || !srcport || rpc->datasz < 0)
		return refuse(rpc);
	error = exchange(CALL_RPC, srcport, &blocking, rpc, dport, NULL, payload,
			 (size_t)rpc->datasz);
	if (!error && rcvdata)
		copy_data(&blocking.request.request, rpc, rcvdata);
	request_fini(&blocking.request.request);
	return finish(rpc, error, rcvdata);
}

static void copy_rmpp_header(const uint8_t *mad, ib_rmpp_hdr_t *rmpp)
{
	rmpp->type = mad[RMPP_TYPE_OFFS];
	rmpp->flags = mad[RMPP_FLAGS_OFFS] & 7;
	rmpp->status = mad[RMPP_STATUS_OFFS];
	rmpp->d1.u = get32(mad, RMPP_DATA1_OFFS);
	rmpp->d2.u = get32(mad, RMPP_DATA2_OFFS);
}

EXPORT void *mad_rpc_rmpp(const struct ibmad_port *srcport, ib_rpc_t *rpc, ib_portid_t *dport,
			  ib_rmpp_hdr_t *rmpp, void *data)
{
	struct blocking_request blocking;
	uint8_t *mad;
	size_t size;
	int error;

	if (!rpc || !srcport || rpc->datasz < 0 || rpc->dataoffs < 0 ||
	    rpc->dataoffs > IB_MAD_SIZE)
		return refuse(rpc);
	/* the buffer may be meant for a long response; the request is one MAD all the same */
	size = (size_t)(IB_MAD_SIZE - rpc->dataoffs);
	if (size > (size_t)rpc->datasz)
		size = (size_t)rpc->datasz;
	error = exchange_rare(CALL_RPC_RMPP, srcport, &blocking, rpc, dport, rmpp, data, size);
	if (!error) {
		mad = request_mad(&blocking.request.request);
		if (rmpp)
			copy_rmpp_header(mad, rmpp);
		rpc->recsz = mad_get_field(mad, 0, IB_SA_ATTROFFS_F);
		if (data)
			copy_data(&blocking.request.request, rpc, data);
	}
	request_fini(&blocking.request.request);
	return finish(rpc, error, data);
}

/* Hands the response to the caller in memory that mad_message_free() frees. 0 or ENOMEM. */
static int take_message(struct request *request, struct mad_message *message)
{
	uint8_t *umad = request->umad;
	size_t length = (size_t)request->length;

	message->length = length;
	if (request_is_large(request)) {
		memmove(umad, umad_get_mad(umad), length);
		request->umad = request->packet;
		message->mad = umad;
		return 0;
	}
	message->mad = malloc(length);
	if (!message->mad)
		return ENOMEM;
	memcpy(message->mad, request_mad(request), length);
	return 0;
}

EXPORT int mad_rpc_message(struct ibmad_port *port, ib_rpc_t *rpc, ib_portid_t *dport,
			   const void *payload, size_t size, struct mad_message *message)
{
	struct blocking_request blocking;
	ib_portid_t destination;
	int error;

	if (message)
		*message = (struct mad_message){0};
	if (!message || !port || !rpc || !dport) {
		refuse(rpc);
		return -EINVAL;
	}
	destination = *dport;
	complete_address(&destination);
	error = exchange_rare(CALL_RPC_MESSAGE, port, &blocking, rpc, &destination, NULL,
			      payload, size);
	redirect_report(blocking.request.request.redirect, dport);
	message->status = blocking.request.request.status;
	if (!error && (error = take_message(&blocking.request.request, message)))
		store_failure(rpc, &blocking.request.request, error);
	request_fini(&blocking.request.request);
	finish(rpc, error, NULL);
	return -error;
}

EXPORT void mad_message_free(struct mad_message *message)
{
	if (!message)
		return;
	free(message->mad);
	*message = (struct mad_message){0};
}
