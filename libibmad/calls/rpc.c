/* SPDX-License-Identifier: BSD-2-Clause */

/* Blocking requests: a transaction and a wait. */

#include "calls/rpc.h"

#include "base/export.h"
#include "base/report.h"
#include "calls/port.h"
#include "engine/request.h"
#include "mad/layout.h"

#include <errno.h>

/* A thread sends so many requests of others before it looks after its own. */
#define SENT_AT_ONCE 16

struct blocking_request {
	struct owner owner;
	struct waiter waiter;
	struct transaction transaction;
	bool completed;
};

/* --- the thread that waits owns the transaction --------------------------------- */

static struct blocking_request *request_of(struct transaction *transaction)
{
	return list_entry(transaction, struct blocking_request, transaction);
}

static void wake(struct core *core, struct transaction *transaction)
{
	reader_wake(&port_of_core(core)->reader, &request_of(transaction)->waiter);
}

static void complete(struct core *core, struct transaction *transaction)
{
	scheduler_leave(&port_of_core(core)->scheduler, transaction);
	request_of(transaction)->completed = true;
	wake(core, transaction);
}

static void send_again(struct core *core, struct transaction *transaction)
{
	scheduler_again(&port_of_core(core)->scheduler, transaction);
	wake(core, transaction);
}

static void withdraw(struct core *core, struct transaction *transaction)
{
	scheduler_withdraw(&port_of_core(core)->scheduler, transaction);
}

static const struct owner_ops ops = {
	.completed = complete,
	.again = send_again,
	.timer_changed = wake,
	.withdraw = withdraw,
};

/* When there is something to do about a request; NEVER: an event will tell. */
static int64_t due_at(const struct ibmad_port *port, const struct transaction *transaction)
{
	switch (transaction->state) {
	case TRANSACTION_READY:
		/* a request of an engine that is late makes room; no thread may serve the
		 * engine */
		return scheduler_next(&port->scheduler);
	case TRANSACTION_IN_FLIGHT:
		return transaction->timer.at;
	default: /* another thread is still writing it */
		return NEVER;
	}
}

/*
 * Waits for an event. If the timer is due, the response may lie unread, because this thread did
 * not run for a while. While this thread cannot read, it looks again every millisecond.
 */
static void wait_for_event(struct reader *reader, struct waiter *waiter, int64_t until,
			   int64_t now)
{
	if (until <= now && (reader->reading || reader->blocked_until > now))
		until = now + 1000;
	reader_wait(reader, waiter, until, now);
}

/* Sends a request and waits until it is complete. */
static void wait_for(struct ibmad_port *port, struct blocking_request *request)
{
	struct transaction *transaction = &request->transaction;
	struct scheduler *scheduler = &port->scheduler;
	struct waiter *waiter = &request->waiter;
	struct reader *reader = &port->reader;
	struct core *core = &port->core;
	int cancel_state = port_enter(port);
	int64_t now, due;

	reader_begin(reader, waiter);
	scheduler_submit(scheduler, transaction);
	while (!request->completed) {
		now = clock_us();
		due = due_at(port, transaction);
		waiter->sending = transaction->state == TRANSACTION_READY;
		if (core->gone && transaction->state != TRANSACTION_DONE) {
			core_cancel(core, transaction, core->gone);
		} else if (scheduler_can_send(scheduler)) {
			/* another thread leads meanwhile: sending may take its time */
			reader_pass(reader);
			scheduler_send(scheduler, SENT_AT_ONCE);
		} else if (reader_time(reader, now) < due) {
			wait_for_event(reader, waiter, due, now);
			port_tell_all(port);
		} else if (waiter->sending) {
			scheduler_expire(scheduler, reader_time(reader, now), SENT_AT_ONCE);
			port_tell_all(port);
		} else {
			core_timer(core, transaction, now);
			port_tell_all(port);
		}
	}
	reader_end(reader, waiter);
	port_leave(port, cancel_state);
}

/* --- requests ------------------------------------------------------------------- */

/* Whether mad_encode() has already reported that the route is wrong. */
static bool is_bad_route(const ib_rpc_t *rpc, const ib_portid_t *dport)
{
	return (rpc->mgtclass & 0xff) == IB_SMI_DIRECT_CLASS &&
	       (dport->drpath.cnt < 0 || dport->drpath.cnt >= IB_SUBNET_PATH_HOPS_MAX);
}

/* Called for each response to a blocking request; NULL: no one wants it. */
static response_fn *_Atomic response_hook;

void rpc_on_response(response_fn *hook)
{
	response_hook = hook;
}

static void offer_response(struct transaction *transaction)
{
	response_fn *hook = response_hook;

	if (hook)
		hook(transaction_mad(transaction), (size_t)transaction->length);
}

static void store_failure(const ib_rpc_t *rpc, const struct transaction *transaction, int error)
{
	const struct mad_failure failure = {
		.error = -error,
		.mgmt_class = rpc->mgtclass & 0xff,
		.method = (unsigned)rpc->method,
		.attribute = rpc->attr.id,
		.status = transaction->status,
		.transmissions = transaction->transmissions.count,
		.elapsed_ms = transaction->timed ? transaction->elapsed_ms : 0,
	};

	failure_store(&failure);
}

/*
 * A request that cannot be made: returns the errno of the call. For a class that is not
 * registered, the calls of rdma-core fail with EINVAL, and without ibdebug have no message of
 * it.
 */
static int not_made(const char *call, const struct transaction *transaction,
		    const ib_rpc_t *rpc, ib_portid_t *dport, int error)
{
	store_failure(rpc, transaction, error);
	if (!call && error == EPROTONOSUPPORT)
		report_class("mad_rpc_message", rpc->mgtclass);
	if (!call)
		return error;
	if (error == EPROTONOSUPPORT) {
		report_class_debug(call, rpc->mgtclass);
		error = EINVAL;
	}
	if (dport && !is_bad_route(rpc, dport))
		report_failure(call, portid2str(dport), error);
	return error;
}

/*
 * Sends a request and waits: 0, or an errno. The response is in request->transaction. Failures
 * are reported as those of the public function "call"; NULL reports none.
 */
static int request_response(const char *call, const struct ibmad_port *srcport,
			    struct blocking_request *request, ib_rpc_t *rpc, ib_portid_t *dport,
			    ib_rmpp_hdr_t *rmpp, const void *payload, size_t size)
{
	struct transaction *transaction = &request->transaction;
	struct ibmad_port *port = port_of(srcport);
	int ret = request_init(transaction, &port->core.link, &port->core.options, rpc, dport,
			       rmpp, !call && request_is_by_rmpp(rpc), payload, size);

	if (ret)
		return not_made(call, transaction, rpc, dport, -ret);
	request->owner = (struct owner){.ops = &ops, .source = &port->blocking};
	request->completed = false;
	transaction->owner = &request->owner;
	transaction->transmissions.chosen = true;
	wait_for(port, request);
	if (transaction->responded) {
		rpc->rstatus = transaction->status;
		offer_response(transaction);
	}
	redirect_report(transaction->detour, dport);
	if (call && transaction->error && transaction->status)
		report_status(call, portid2str(dport), transaction->status);
	else if (call && transaction->error)
		report_failure(call, portid2str(dport), transaction->error);
	if (transaction->error)
		store_failure(rpc, transaction, transaction->error);
	return transaction->error;
}

/* What every call ends with. */
static void *finish(ib_rpc_t *rpc, int error, void *data)
{
	if (rpc && (rpc->mgtclass & IB_MAD_RPC_VERSION_MASK) == IB_MAD_RPC_VERSION1)
		((ib_rpc_v1_t *)(void *)rpc)->error = error;
	errno = error;
	return error ? NULL : data;
}

/* An argument is wrong. */
static void *refuse(ib_rpc_t *rpc)
{
	failure_refuse(rpc ? rpc->mgtclass : 0, EINVAL);
	return finish(rpc, EINVAL, NULL);
}

/* The response's data, and zeros if the response is shorter than rpc->datasz. */
static void copy_data(struct transaction *transaction, const ib_rpc_t *rpc, void *data)
{
	const uint8_t *mad = umad_get_mad(transaction_buffer(transaction));
	int there = transaction->length - rpc->dataoffs;

	if (there < 0)
		there = 0;
	if (there > rpc->datasz)
		there = rpc->datasz;
	memcpy(data, mad + rpc->dataoffs, (size_t)there);
	memset((uint8_t *)data + there, 0, (size_t)(rpc->datasz - there));
}

EXPORT void *mad_rpc(const struct ibmad_port *srcport, ib_rpc_t *rpc, ib_portid_t *dport,
		     void *payload, void *rcvdata)
{
	struct blocking_request request;
	int error;

	if (!rpc || !srcport || rpc->datasz < 0)
		return refuse(rpc);
	error = request_response("mad_rpc", srcport, &request, rpc, dport, NULL, payload,
				 (size_t)rpc->datasz);
	if (!error && rcvdata)
		copy_data(&request.transaction, rpc, rcvdata);
	transaction_fini(&request.transaction);
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
	struct blocking_request request;
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
	error = request_response("mad_rpc_rmpp", srcport, &request, rpc, dport, rmpp, data,
				 size);
	if (!error) {
		mad = umad_get_mad(transaction_buffer(&request.transaction));
		if (rmpp)
			copy_rmpp_header(mad, rmpp);
		rpc->recsz = mad_get_field(mad, 0, IB_SA_ATTROFFS_F);
		if (data)
			copy_data(&request.transaction, rpc, data);
	}
	transaction_fini(&request.transaction);
	return finish(rpc, error, data);
}

/* The MAD of a umad buffer as an allocation of its own. */
static int take_message(struct transaction *transaction, struct mad_message *message)
{
	uint8_t *umad = transaction->heap;
	size_t length = (size_t)transaction->length;

	message->length = length;
	if (umad) {
		memmove(umad, umad_get_mad(umad), length);
		transaction->heap = NULL;
		message->mad = umad;
		return 0;
	}
	message->mad = malloc(length);
	if (!message->mad)
		return ENOMEM;
	memcpy(message->mad, umad_get_mad(transaction->packet), length);
	return 0;
}

EXPORT int mad_rpc_message(const struct ibmad_port *port, ib_rpc_t *rpc, ib_portid_t *dport,
			   const void *payload, size_t size, struct mad_message *message)
{
	struct blocking_request request;
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
	error = request_response(NULL, port, &request, rpc, &destination, NULL, payload, size);
	redirect_report(request.transaction.detour, dport);
	message->status = request.transaction.status;
	if (!error && (error = take_message(&request.transaction, message)))
		store_failure(rpc, &request.transaction, error);
	transaction_fini(&request.transaction);
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
