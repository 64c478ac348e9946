/* SPDX-License-Identifier: BSD-2-Clause */

/* Single messages: mad_receive_via(), mad_respond_via() and mad_send_via(). */

#include "base/export.h"
#include "base/report.h"
#include "mad/debug.h"
#include "mad/layout.h"
#include "engine/port.h"

#include <errno.h>
#include <stdlib.h>

/* Limit of kept messages in bytes: about 200,000 MADs. */
#define BYTES_MAX (64u << 20)
/* Capacity for expected TIDs (a power of two), and probe length. */
#define EXPECTED  65536
#define PLACES    8

struct message {
	struct list all; /* in the inbox */
	int length;      /* of the MAD */
	uint8_t umad[];
};

/* --- the inbox ------------------------------------------------------------------ */

void inbox_init(struct inbox *inbox)
{
	*inbox = (struct inbox){0};
	list_init(&inbox->messages);
}

void inbox_free(struct inbox *inbox)
{
	struct list *first;

	while ((first = list_pop(&inbox->messages)))
		free(list_entry(first, struct message, all));
	free(inbox->expected);
	inbox_init(inbox);
}

/* The stored form of a TID and class; never 0, which marks a free place. */
static uint64_t content_of(uint32_t tid, uint8_t mgmt_class)
{
	return (uint64_t)tid << 32 | 1u << 8 | mgmt_class;
}

/* TIDs are consecutive, so usually the first place matches. NULL: not found. */
static uint64_t *place_of(struct inbox *inbox, uint32_t tid, uint64_t content)
{
	for (unsigned i = 0; inbox->expected && i < PLACES; i++)
		if (inbox->expected[(tid + i) % EXPECTED] == content)
			return &inbox->expected[(tid + i) % EXPECTED];
	return NULL;
}

/*
 * Makes the inbox keep the next response with this TID and class. On OOM it will be dropped. If
 * all places are taken, the new TID replaces another.
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

bool inbox_add(struct inbox *inbox, const uint8_t *umad, int length)
{
	const struct ib_user_mad *header = (const struct ib_user_mad *)(const void *)umad;
	size_t size = umad_size() + (size_t)length;
	const uint8_t *mad = packet_mad(umad);
	struct message *message;

	if (length < 24)
		return false;
	if (header->status || is_response(mad)) {
		uint32_t tid = get32(mad, TID_OFFS);
		uint64_t *place = place_of(inbox, tid, content_of(tid, mad[1]));

		if (!place)
			return false;
		*place = 0;
	}
	if (inbox->bytes + size > BYTES_MAX)
		return false;
	message = malloc(sizeof(*message) + size);
	if (!message)
		return false;
	message->length = length;
	memcpy(message->umad, umad, size);
	list_add_last(&inbox->messages, &message->all);
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
 * Moves a message into the caller's buffer, or into a new one stored in *umad if that is NULL.
 * Returns 0 or an errno.
 */
static int take_message(struct ibmad_port *port, struct message *message, void **umad)
{
	size_t size = umad_size() + (size_t)message->length;
	uint8_t *buffer = *umad;

	if (buffer && message->length > IB_MAD_SIZE) {
		/* keep the message for a call without a buffer */
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
	list_remove(&message->all);
	port->inbox.bytes -= size;
	free(message);
	return 0;
}

/* Waits for a message. Returns 0 or an errno. */
static int receive_message(struct ibmad_port *port, void **umad, int timeout)
{
	int64_t end = timeout < 0 ? NEVER : clock_us() + timeout * INT64_C(1000);
	bool waited = false; /* read messages even if the timeout is 0 */
	struct list *first = NULL;
	int error = 0;
	struct waiter waiter;

	if (!port)
		return EINVAL;
	if (port_enter(port))
		return ECANCELED;
	waiter_begin(port, &waiter, WAIT_FOR_MESSAGE);
	while (!(first = list_first(&port->inbox.messages)) && !error) {
		if (port->error)
			error = port->error;
		else if (waited && clock_us() >= end)
			error = timeout ? ETIMEDOUT : EAGAIN;
		else
			/* programs leave their receive loops through a signal */
			error = -port_wait_unlocking(port, &waiter, end);
		waited = true;
	}
	waiter_end(port, &waiter);
	if (first)
		error = take_message(port, list_entry(first, struct message, all), umad);
	port_leave(port);
	return error;
}

EXPORT void *mad_receive_via(void *umad, int timeout, struct ibmad_port *srcport)
{
	int saved_errno = errno, error;

	call_begin();
	error = receive_message(srcport, &umad, timeout);
	if (!error)
		debug_received("mad_receive_via", umad, umad_get_mad(umad));
	call_end();
	errno = saved_errno;
	if (!error)
		return umad;
	failure_refuse_call(MAD_FAILURE_OTHER, 0, error);
	return NULL;
}

/* --- responding ----------------------------------------------------------------- */

EXPORT int mad_respond_via(void *umad, ib_portid_t *portid, uint32_t rstatus,
			   struct ibmad_port *srcport)
{
	uint8_t *mad = umad ? umad_get_mad(umad) : NULL;
	int mgmt_class = mad ? mad[1] : 0, error = EINVAL, agent = -1;

	if (mad && srcport)
		agent = handle_agent(&srcport->handle, mgmt_class);
	if (agent >= 0) {
		call_begin();
		response_write_header(mad, (uint16_t)rstatus);
		if (portid)
			address_gmp(umad, portid, umad_get_mad_addr(umad)->gid_index);
		else
			response_address(umad, mad);
		debug_sent("mad_respond_via", umad, mad);
		report_packet("respond\n", mad, IB_MAD_SIZE);
		error = umad_send(srcport->handle.fd, agent, umad, IB_MAD_SIZE, 0, 0) < 0
				? errno
				: 0;
		call_end();
	}
	if (error)
		failure_refuse_call(MAD_FAILURE_OTHER, srcport ? mgmt_class : 0, error);
	return error ? -1 : 0;
}

/* --- sending -------------------------------------------------------------------- */

/* Reports and returns the error. */
static int not_sent(int error)
{
	report("mad_send_via", "the MAD cannot be sent: %s", strerror(error));
	return error;
}

/* Returns 0 or an errno. The response may go to mad_receive_via(). */
static int send_packet(struct ibmad_port *port, const ib_rpc_t *rpc, uint8_t *umad, int agent)
{
	struct ib_user_mad *header = (struct ib_user_mad *)(void *)umad;
	uint32_t tid = (uint32_t)rpc->trid;
	int error = 0;

	if (header->addr.grh_present)
		header->addr.gid_index = (uint8_t)port->options.gid_index;
	if (port_enter(port))
		return not_sent(ECANCELED);
	inbox_expect(&port->inbox, tid, (uint8_t)rpc->mgtclass);
	if (!trid_is_ours(tid))
		tids_rest(&port->requests.tids, tid, clock_us());
	port_unlock(port);
	debug_sent("mad_send_via", umad, umad_get_mad(umad));
	report_packet("send\n", umad_get_mad(umad), IB_MAD_SIZE);
	if (umad_send(port->handle.fd, agent, umad, IB_MAD_SIZE,
		      mad_get_timeout(port, rpc->timeout), 0) < 0)
		error = errno;
	port_lock(port);
	port_leave(port);
	return error ? not_sent(error) : 0;
}

/* EINVAL if the class is not registered, as in rdma-core. */
EXPORT int mad_send_via(ib_rpc_t *rpc, ib_portid_t *dport, ib_rmpp_hdr_t *rmpp, void *data,
			struct ibmad_port *srcport)
{
	_Alignas(8) uint8_t umad[PACKET_SIZE] = {0};
	int saved_errno = errno, agent, error;

	if (!rpc || !srcport) {
		failure_refuse(rpc ? rpc->mgtclass : 0, EINVAL);
		return -1;
	}
	/* don't get cancelled in a log hook either */
	call_begin();
	agent = handle_agent(&srcport->handle, rpc->mgtclass & 0xff);
	if (agent < 0) {
		report_class_debug("mad_send_via", rpc->mgtclass);
		not_sent(EINVAL);
		error = EPROTONOSUPPORT;
	} else if (mad_build_pkt(umad, rpc, dport, rmpp, data) < 0) {
		error = errno;
	} else {
		error = send_packet(srcport, rpc, umad, agent);
	}
	if (error)
		failure_refuse(rpc->mgtclass, error);
	call_end();
	errno = agent < 0 ? EINVAL : error ? error : saved_errno;
	return error ? -1 : 0;
}
