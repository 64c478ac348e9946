/* SPDX-License-Identifier: BSD-2-Clause */

/* Blocking requests: a request and the thread waiting for it. */

#include "base/export.h"
#include "base/report.h"
#include "mad/layout.h"
#include "engine/port.h"

#include <errno.h>
#include <stdlib.h>

/* --- saving a response ---------------------------------------------------------- */

/* Where madrpc_save_mad() wants the next blocking response. */
static struct {
	pthread_mutex_t lock;
	void *_Atomic buffer; /* NULL: don't save */
	size_t size;
} saving = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void lock_saving(void)
{
	pthread_mutex_lock(&saving.lock);
}

static void unlock_saving(void)
{
	pthread_mutex_unlock(&saving.lock);
}

/* In a fork()ed child, nobody else can release the lock. */
static void watch_forks(void)
{
	pthread_atfork(lock_saving, unlock_saving, unlock_saving);
}

EXPORT void madrpc_save_mad(void *madbuf, int len)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
	lock_saving();
	saving.buffer = len > 0 ? madbuf : NULL;
	saving.size = len > 0 ? (size_t)len : 0;
	unlock_saving();
}

static void save_response(const uint8_t *mad, size_t length)
{
	void *buffer;

	if (!saving.buffer)
		return;
	lock_saving();
	/* another thread's response may have been first */
	buffer = saving.buffer;
	if (buffer)
		memcpy(buffer, mad, length < saving.size ? length : saving.size);
	saving.buffer = NULL;
	unlock_saving();
}

/* --- requests ------------------------------------------------------------------- */

/* Whether the route is invalid, which packet_build() has already reported. */
static bool is_bad_route(const ib_rpc_t *rpc, const ib_portid_t *dport)
{
	return (rpc->mgtclass & 0xff) == IB_SMI_DIRECT_CLASS &&
	       (dport->drpath.cnt < 0 || dport->drpath.cnt >= IB_SUBNET_PATH_HOPS_MAX);
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
 * Stores and reports why a request could not be made; returns the call's errno. For an
 * unregistered class, rdma-core's calls fail with EINVAL, reported only with ibdebug.
 */
static int not_made(const char *call, const struct request *request, const ib_rpc_t *rpc,
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

static void store_and_report(const char *call, const struct request *request,
			     const ib_rpc_t *rpc, ib_portid_t *dport)
{
	if (call && request->status)
		report_status(call, portid2str(dport), request->status);
	else if (call)
		report_failure(call, portid2str(dport), request->error);
	store_failure(rpc, request, request->error);
}

/* Returns 0 or -ECANCELED when the request is complete. */
static int send_and_wait(struct ibmad_port *port, struct blocking_request *blocking)
{
	if (port_enter(port))
		return -ECANCELED;
	waiter_begin(port, &blocking->waiter, WAIT_FOR_REQUEST);
	port_submit_unlocking(port, &blocking->request, false);
	while (blocking->request.phase != REQUEST_DONE)
		port_wait_unlocking(port, &blocking->waiter, NEVER);
	waiter_end(port, &blocking->waiter);
	port_leave(port);
	return 0;
}

/*
 * Sends a request and waits. Returns 0 or an errno; the response is in blocking->request.
 * Failures are reported in the public call's name.
 */
static int exchange(enum public_call call, const struct ibmad_port *srcport,
		    struct blocking_request *blocking, ib_rpc_t *rpc, ib_portid_t *dport,
		    ib_rmpp_hdr_t *rmpp, const void *payload, size_t size)
{
	struct request_settings settings = options_for_request(srcport, rpc->mgtclass & 0xff);
	struct request *request = &blocking->request;
	/* mad_rpc_message() returns failures without reporting them */
	const char *reported_as = call == CALL_RPC_MESSAGE ? NULL : public_call_names[call];
	struct ibmad_port *port = port_of(srcport);
	int error;

	/* a log hook must not end the thread either */
	call_begin();
	settings.by_rmpp = !reported_as && request_is_by_rmpp(rpc);
	request_init(request, &port->blocking, call);
	error = request_make_with_id(request, &settings, rpc, dport, rmpp, payload, size);
	if (!error)
		error = send_and_wait(port, blocking);
	if (error) {
		error = not_made(reported_as, request, rpc, dport, -error);
	} else {
		if (request_has_response(request)) {
			rpc->rstatus = request->status;
			save_response(request_mad(request), (size_t)request->length);
		}
		request_debug(request);
		redirect_report(request->redirect, dport);
		error = request->error;
		if (error)
			store_and_report(reported_as, request, rpc, dport);
	}
	call_end();
	return error;
}

/* Every call ends here: sets errno and rpc->error. */
static void *end_call(ib_rpc_t *rpc, int error, void *data)
{
	if (rpc && (rpc->mgtclass & IB_MAD_RPC_VERSION_MASK) == IB_MAD_RPC_VERSION1)
		((ib_rpc_v1_t *)(void *)rpc)->error = error;
	errno = error;
	return error ? NULL : data;
}

/* Fails with EINVAL. */
static void *refuse_call(ib_rpc_t *rpc)
{
	failure_refuse(rpc ? rpc->mgtclass : 0, EINVAL);
	return end_call(rpc, EINVAL, NULL);
}

/* Copies rpc->datasz bytes of data, zero-padded if the response is shorter. */
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
		return refuse_call(rpc);
	error = exchange(CALL_RPC, srcport, &blocking, rpc, dport, NULL, payload,
			 (size_t)rpc->datasz);
	if (!error && rcvdata)
		copy_data(&blocking.request, rpc, rcvdata);
	request_fini(&blocking.request);
	return end_call(rpc, error, rcvdata);
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
		return refuse_call(rpc);
	/* the buffer may be sized for a long response, but the request is one MAD */
	size = (size_t)(IB_MAD_SIZE - rpc->dataoffs);
	if (size > (size_t)rpc->datasz)
		size = (size_t)rpc->datasz;
	error = exchange(CALL_RPC_RMPP, srcport, &blocking, rpc, dport, rmpp, data, size);
	if (!error) {
		mad = request_mad(&blocking.request);
		if (rmpp)
			copy_rmpp_header(mad, rmpp);
		rpc->recsz = mad_get_field(mad, 0, IB_SA_ATTROFFS_F);
		if (data)
			copy_data(&blocking.request, rpc, data);
	}
	request_fini(&blocking.request);
	return end_call(rpc, error, data);
}

/*
 * Transfers the response to the caller, who frees it with mad_message_free(). Returns 0 or
 * ENOMEM.
 */
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
		refuse_call(rpc);
		return -EINVAL;
	}
	destination = *dport;
	complete_address(&destination);
	error = exchange(CALL_RPC_MESSAGE, port, &blocking, rpc, &destination, NULL, payload,
			 size);
	redirect_report(blocking.request.redirect, dport);
	message->status = blocking.request.status;
	if (!error && (error = take_message(&blocking.request, message)))
		store_failure(rpc, &blocking.request, error);
	request_fini(&blocking.request);
	end_call(rpc, error, NULL);
	return -error;
}

EXPORT void mad_message_free(struct mad_message *message)
{
	if (!message)
		return;
	free(message->mad);
	*message = (struct mad_message){0};
}
