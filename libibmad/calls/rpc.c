/* SPDX-License-Identifier: BSD-2-Clause */

/* Blocking requests: a transaction and a wait. */

#include "calls/async.h"
#include "base/export.h"
#include "mad/gmp.h"
#include "mad/mad_wire.h"
#include "compat/process_port.h"
#include "engine/redirect.h"
#include "base/report.h"
#include "engine/transaction.h"
#include "engine/wait.h"

#include <errno.h>

/* Sends a request and waits until it is done. */
static void wait_for(struct ibmad_port *port, struct transaction *transaction)
{
	struct waiter waiter;
	bool looked = false; /* for messages, since the timer is due */
	int64_t now;

	transaction->owner.waiter = &waiter;
	port_enter(port);
	wait_begin(port, &waiter);
	transaction_send(port, transaction);
	while (transaction->state != TRANSACTION_DONE) {
		now = clock_us();
		if (port->gone) {
			transaction_finish(port, transaction, port->gone);
		} else if (now < transaction->timer.at || !looked) {
			/* if this thread did not run for a while, the response waits unread */
			looked = now >= transaction->timer.at;
			wait_step(port, &waiter, transaction->timer.at, now);
		} else {
			looked = false;
			/* sending may take its time */
			wait_pass(port);
			transaction_expired(port, transaction, now);
			engines_wake_for_work(port);
		}
	}
	wait_end(port, &waiter);
	port_leave(port);
}

/* Whether mad_encode() has already reported that the route is wrong. */
static bool is_bad_route(const ib_rpc_t *rpc, const ib_portid_t *dport)
{
	return (rpc->mgtclass & 0xff) == IB_SMI_DIRECT_CLASS &&
	       (dport->drpath.cnt < 0 || dport->drpath.cnt >= IB_SUBNET_PATH_HOPS_MAX);
}

/*
 * Asks, and judges: 0, or the errno. The answer is in the transaction. Failures are reported as
 * those of the public function "call"; NULL reports none.
 */
static int ask(const char *call, const struct ibmad_port *srcport,
	       struct transaction *transaction, ib_rpc_t *rpc, ib_portid_t *dport,
	       ib_rmpp_hdr_t *rmpp, const void *payload, size_t size)
{
	int ret = transaction_init(transaction, port_of(srcport), rpc, dport, rmpp, payload,
				   size);

	if (ret) {
		if (call && dport && !is_bad_route(rpc, dport))
			report_failure(call, portid2str(dport), -ret);
		return -ret;
	}
	wait_for(port_of(srcport), transaction);
	if (transaction->answered) {
		rpc->rstatus = transaction->status;
		offer_answer(umad_get_mad(transaction_buffer(transaction)),
			     (size_t)transaction->length);
	}
	redirect_report(transaction, dport);
	if (call && transaction->error && transaction->status)
		report_status(call, portid2str(dport), transaction->status);
	else if (call && transaction->error)
		report_failure(call, portid2str(dport), transaction->error);
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

/* The answer's data; zeros where it is shorter than asked for. */
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
	struct transaction transaction;
	int error;

	if (!rpc || !srcport || rpc->datasz < 0)
		return finish(rpc, EINVAL, NULL);
	error = ask("mad_rpc", srcport, &transaction, rpc, dport, NULL, payload,
		    (size_t)rpc->datasz);
	if (!error && rcvdata)
		copy_data(&transaction, rpc, rcvdata);
	transaction_fini(&transaction);
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
	struct transaction transaction;
	uint8_t *mad;
	size_t size;
	int error;

	if (!rpc || !srcport || rpc->datasz < 0 || rpc->dataoffs < 0 ||
	    rpc->dataoffs > IB_MAD_SIZE)
		return finish(rpc, EINVAL, NULL);
	/* the buffer may be meant for a long answer; the request is one MAD all the same */
	size = (size_t)(IB_MAD_SIZE - rpc->dataoffs);
	if (size > (size_t)rpc->datasz)
		size = (size_t)rpc->datasz;
	error = ask("mad_rpc_rmpp", srcport, &transaction, rpc, dport, rmpp, data, size);
	if (!error) {
		mad = umad_get_mad(transaction_buffer(&transaction));
		if (rmpp)
			copy_rmpp_header(mad, rmpp);
		rpc->recsz = mad_get_field(mad, 0, IB_SA_ATTROFFS_F);
		if (data)
			copy_data(&transaction, rpc, data);
	}
	transaction_fini(&transaction);
	return finish(rpc, error, data);
}

/* The MAD of a umad buffer as an allocation of its own. */
static int take_message(struct transaction *transaction, struct mad_message *message)
{
	uint8_t *umad = transaction->heap;
	size_t length = (size_t)transaction->length;

	message->length = length;
	message->status = transaction->status;
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
	struct transaction transaction;
	ib_portid_t destination;
	int error;

	if (message)
		*message = (struct mad_message){0};
	if (!message || !port || !rpc || !dport) {
		finish(rpc, EINVAL, NULL);
		return -EINVAL;
	}
	destination = *dport;
	complete_address(&destination, rpc->mgtclass & 0xff);
	error = ask(NULL, port, &transaction, rpc, &destination, NULL, payload, size);
	redirect_report(&transaction, dport);
	message->status = transaction.status;
	if (!error)
		error = take_message(&transaction, message);
	transaction_fini(&transaction);
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
