/* SPDX-License-Identifier: BSD-2-Clause */

/* Single messages: mad_receive_via(), mad_respond_via() and mad_send_via(). */

#include "base/export.h"
#include "base/report.h"
#include "mad/debug.h"
#include "mad/layout.h"
#include "engine/port.h"

#include <errno.h>
#include <stdlib.h>

/* The messages that are kept at most, in bytes: about 200,000 MADs. */
#define BYTES_MAX (64u << 20)
/* The IDs that are expected at most, a power of two, and the places at which one ID may be. */
#define EXPECTED  65536
#define PLACES    8

struct message {
	struct message *next;
	int length; /* of the MAD */
	uint8_t umad[];
};

/* --- the inbox ------------------------------------------------------------------ */

void inbox_init(struct inbox *inbox)
{
	*inbox = (struct inbox){.last = &inbox->first};
}

/* Takes the first message out; the caller frees it. NULL: there is none. */
static struct message *inbox_take(struct inbox *inbox)
{
	struct message *message = inbox->first;

	if (!message)
		return NULL;
	inbox->first = message->next;
	if (!inbox->first)
		inbox->last = &inbox->first;
	inbox->bytes -= umad_size() + (size_t)message->length;
	return message;
}

void inbox_free(struct inbox *inbox)
{
	struct message *message;

	while ((message = inbox_take(inbox)))
		free(message);
	free(inbox->expected);
	inbox_init(inbox);
}

/* What is stored for the requests of a class with an ID: never 0, which is an empty place. */
static uint64_t content_of(uint32_t tid, uint8_t mgmt_class)
{
	return (uint64_t)tid << 32 | 1u << 8 | mgmt_class;
}

/* IDs are consecutive, so that an ID is usually at its first place. */
static uint64_t *place_of(struct inbox *inbox, uint32_t tid, uint64_t content)
{
	for (unsigned i = 0; inbox->expected && i < PLACES; i++)
		if (inbox->expected[(tid + i) % EXPECTED] == content)
			return &inbox->expected[(tid + i) % EXPECTED];
	return NULL;
}

/* A response with this ID and class is to be kept. On OOM it is dropped. If all places are
 * taken, a new ID replaces another.
 */
static void inbox_expect(struct inbox *inbox, uint32_t tid, uint8_t mgmt_class)
{
	uint64_t *place;

	if (!inbox->expected)
		inbox->expected = calloc(EXPECTED, sizeof(*inbox->expected));
	if (!inbox->expected)
		return;
	place = place_of(inbox, tid, 0);
	if (!place)
		place = &inbox->expected[tid % EXPECTED];
	*place = content_of(tid, mgmt_class);
}

/* Whether this is the first response with an expected ID. */
static bool is_expected(struct inbox *inbox, uint32_t tid, uint8_t mgmt_class)
{
	uint64_t *place = place_of(inbox, tid, content_of(tid, mgmt_class));

	if (place)
		*place = 0;
	return place != NULL;
}

static bool is_wanted(struct inbox *inbox, const uint8_t *umad, int length)
{
	const struct ib_user_mad *header = (const struct ib_user_mad *)(const void *)umad;
	const uint8_t *mad = packet_mad(umad);

	if (length < 24)
		return false;
	return (!header->status && !is_response(mad)) ||
	       is_expected(inbox, get32(mad, TID_OFFS), mad[1]);
}

bool inbox_add(struct inbox *inbox, const uint8_t *umad, int length)
{
	size_t size = umad_size() + (size_t)length;
	struct message *message;

	if (!is_wanted(inbox, umad, length) || inbox->bytes + size > BYTES_MAX)
		return false;
	message = malloc(sizeof(*message) + size);
	if (!message)
		return false;
	message->next = NULL;
	message->length = length;
	memcpy(message->umad, umad, size);
	*inbox->last = message;
	inbox->last = &message->next;
	inbox->bytes += size;
	return true;
}

/* --- buffers -------------------------------------------------------------------- */

EXPORT void *mad_alloc(void)
{
	void *umad = umad_alloc(1, umad_size() + IB_MAD_SIZE);

	if (!umad)
		failure_refuse_call(MAD_FAILURE_OTHER, 0, ENOMEM);
	return umad;
}

EXPORT void mad_free(void *umad)
{
	umad_free(umad);
}

/* --- receiving ------------------------------------------------------------------ */

/*
 * Moves the first message to the caller's buffer; if *umad is NULL, to a new one, which *umad
 * becomes. 0, or an errno.
 */
static int take_message(struct ibmad_port *port, void **umad)
{
	struct message *message = port->inbox.first;
	size_t size = umad_size() + (size_t)message->length;
	uint8_t *buffer = *umad;

	if (buffer && message->length > IB_MAD_SIZE) {
		/* the message stays, for a call without a buffer */
		port_wake_receiver(port);
		return EMSGSIZE;
	}
	if (!buffer) {
		*umad = buffer = calloc(1, size > PACKET_SIZE ? size : PACKET_SIZE);
		if (!buffer)
			return ENOMEM;
	}
	memcpy(buffer, message->umad, size);
	if (size < umad_size() + IB_MAD_SIZE)
		memset(buffer + size, 0, umad_size() + IB_MAD_SIZE - size);
	free(inbox_take(&port->inbox));
	return 0;
}

/* Waits for a message; 0, or an errno. */
static int wait_unlocking(struct ibmad_port *port, int timeout)
{
	int64_t end = timeout < 0 ? NEVER : clock_us() + timeout * INT64_C(1000);
	struct waiter waiter;
	bool waited = false; /* even if the timeout is 0, messages are read */
	int error = 0;

	waiter_begin(port, &waiter, WAIT_FOR_MESSAGE);
	while (!port->inbox.first && !error) {
		if (port->error)
			error = port->error;
		else if (waited && clock_us() >= end)
			error = timeout ? ETIMEDOUT : EAGAIN;
		else
			/* programs leave their receive loops by a signal */
			error = -port_wait_unlocking(port, &waiter, end);
		waited = true;
	}
	waiter_end(port, &waiter);
	return port->inbox.first ? 0 : error;
}

/* Waits for a message, and takes it. 0, or an errno. */
static int receive_message(struct ibmad_port *port, void **umad, int timeout)
{
	int cancel_state, error;

	if (!port)
		return EINVAL;
	if (port_enter(port, &cancel_state))
		return ECANCELED;
	error = wait_unlocking(port, timeout);
	if (!error)
		error = take_message(port, umad);
	port_leave(port, cancel_state);
	return error;
}

EXPORT void *mad_receive_via(void *umad, int timeout, struct ibmad_port *srcport)
{
	int saved_errno = errno, error = receive_message(srcport, &umad, timeout);

	if (error) {
		failure_refuse_call(MAD_FAILURE_OTHER, 0, error);
		return NULL;
	}
	debug_received("mad_receive_via", umad, umad_get_mad(umad));
	errno = saved_errno;
	return umad;
}

/* --- responding ----------------------------------------------------------------- */

/* Stores why a response is not sent, and returns -1 with errno. */
static int not_responded(int mgmt_class, int error)
{
	failure_refuse_call(MAD_FAILURE_OTHER, mgmt_class, error);
	return -1;
}

EXPORT int mad_respond_via(void *umad, ib_portid_t *portid, uint32_t rstatus,
			   struct ibmad_port *srcport)
{
	int agent, cancel_state, ret, error;
	uint8_t *mad;

	if (!umad || !srcport)
		return not_responded(0, EINVAL);
	mad = umad_get_mad(umad);
	agent = handle_agent(&srcport->handle, mad[1]);
	if (agent < 0)
		return not_responded(mad[1], EINVAL);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	response_write_header(mad, (uint16_t)rstatus);
	if (portid)
		address_gmp(umad, portid, umad_get_mad_addr(umad)->gid_index);
	else
		response_address(umad, mad);
	debug_sent("mad_respond_via", umad, mad);
	report_packet("respond\n", mad, IB_MAD_SIZE);
	ret = umad_send(srcport->handle.fd, agent, umad, IB_MAD_SIZE, 0, 0);
	error = errno;
	pthread_setcancelstate(cancel_state, NULL);
	return ret < 0 ? not_responded(mad[1], error) : 0;
}

/* --- sending -------------------------------------------------------------------- */

/* Reports and stores a failure, and returns -1 with errno. */
static int not_sent(const ib_rpc_t *rpc, int error)
{
	report("mad_send_via", "the MAD cannot be sent: %s", strerror(error));
	failure_refuse(rpc->mgtclass, error);
	return -1;
}

/* Stores EPROTONOSUPPORT as the failure; errno is EINVAL as in rdma-core. */
static int not_registered(const ib_rpc_t *rpc)
{
	report_class_debug("mad_send_via", rpc->mgtclass);
	not_sent(rpc, EINVAL);
	failure_refuse(rpc->mgtclass, EPROTONOSUPPORT);
	errno = EINVAL;
	return -1;
}

/* 0, or -1 with errno. mad_receive_via() may return the response. */
static int send_packet(const ib_rpc_t *rpc, struct ibmad_port *port, uint8_t *umad, int agent)
{
	struct ib_user_mad *header = (struct ib_user_mad *)(void *)umad;
	uint32_t tid = (uint32_t)rpc->trid;
	int cancel_state, ret, error;

	if (header->addr.grh_present)
		header->addr.gid_index = (uint8_t)port->options.gid_index;
	if (port_enter(port, &cancel_state))
		return not_sent(rpc, ECANCELED);
	inbox_expect(&port->inbox, tid, (uint8_t)rpc->mgtclass);
	if (!trid_is_ours(tid))
		tids_rest(&port->requests.tids, tid, clock_us());
	port_unlock(port);
	debug_sent("mad_send_via", umad, umad_get_mad(umad));
	report_packet("send\n", umad_get_mad(umad), IB_MAD_SIZE);
	ret = umad_send(port->handle.fd, agent, umad, IB_MAD_SIZE,
			mad_get_timeout(port, rpc->timeout), 0);
	if (ret < 0)
		ret = not_sent(rpc, errno);
	error = errno;
	port_lock(port);
	port_leave(port, cancel_state);
	errno = error;
	return ret;
}

static int send_uncancelled(ib_rpc_t *rpc, ib_portid_t *dport, ib_rmpp_hdr_t *rmpp, void *data,
			    struct ibmad_port *port)
{
	_Alignas(8) uint8_t umad[PACKET_SIZE] = {0};
	int agent = handle_agent(&port->handle, rpc->mgtclass & 0xff);

	if (agent < 0)
		return not_registered(rpc);
	if (mad_build_pkt(umad, rpc, dport, rmpp, data) < 0) {
		failure_refuse(rpc->mgtclass, errno);
		return -1;
	}
	return send_packet(rpc, port, umad, agent);
}

/* The thread is not cancelled in a report either. */
EXPORT int mad_send_via(ib_rpc_t *rpc, ib_portid_t *dport, ib_rmpp_hdr_t *rmpp, void *data,
			struct ibmad_port *srcport)
{
	int cancel_state, ret;

	if (!rpc || !srcport) {
		failure_refuse(rpc ? rpc->mgtclass : 0, EINVAL);
		return -1;
	}
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	ret = send_uncancelled(rpc, dport, rmpp, data, srcport);
	pthread_setcancelstate(cancel_state, NULL);
	return ret;
}
