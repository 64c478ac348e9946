/* SPDX-License-Identifier: BSD-2-Clause */

/* The server's side: requests come, responses go. */

#include "base/export.h"
#include "base/report.h"
#include "calls/port.h"
#include "calls/response.h"
#include "mad/layout.h"

#include <errno.h>

EXPORT void *mad_alloc(void)
{
	return umad_alloc(1, umad_size() + IB_MAD_SIZE);
}

EXPORT void mad_free(void *umad)
{
	umad_free(umad);
}

/* --- receiving ------------------------------------------------------------------ */

/* Moves the first message to the caller. */
static void *take(struct ibmad_port *port, void *umad)
{
	struct message *message = port->inbox.first;
	size_t size = umad_size() + (size_t)message->length;

	if (umad && message->length > IB_MAD_SIZE) {
		errno = EMSGSIZE; /* the message stays, for a call without a buffer */
		reader_wake_receiver(&port->reader);
		return NULL;
	}
	if (!umad) {
		umad = calloc(1, size > PACKET_SIZE ? size : PACKET_SIZE);
		if (!umad)
			return NULL;
	}
	memcpy(umad, message->umad, size);
	if (size < umad_size() + IB_MAD_SIZE)
		memset((uint8_t *)umad + size, 0, umad_size() + IB_MAD_SIZE - size);
	free(inbox_take(&port->inbox));
	return umad;
}

/* What the messages of others let be sent, others send. */
static void wait_once(struct ibmad_port *port, struct waiter *waiter, int64_t end, int64_t now)
{
	reader_wait(&port->reader, waiter, end, now);
	port_tell_all(port);
}

/* Waits for a message; 0, or an errno. */
static int wait_for_message(struct ibmad_port *port, int timeout)
{
	int64_t end = timeout < 0 ? NEVER : clock_us() + timeout * INT64_C(1000);
	struct waiter waiter;
	bool once = true; /* even if the timeout is 0, messages are read */
	int error = 0;
	int64_t now;

	reader_begin(&port->reader, &waiter);
	waiter.receiving = true;
	while (!port->inbox.first && !error) {
		now = clock_us();
		if (port->core.gone)
			error = port->core.gone;
		else if (waiter.interrupted)
			error = EINTR; /* programs leave their loops on a signal */
		else if (!once && now >= end)
			error = timeout ? ETIMEDOUT : EAGAIN;
		else
			wait_once(port, &waiter, end, now);
		once = false;
	}
	reader_end(&port->reader, &waiter);
	return error;
}

EXPORT void *mad_receive_via(void *umad, int timeout, struct ibmad_port *srcport)
{
	int cancel_state, error;

	if (!srcport) {
		errno = EINVAL;
		return NULL;
	}
	cancel_state = port_enter(srcport);
	error = wait_for_message(srcport, timeout);
	if (error)
		errno = error;
	umad = error ? NULL : take(srcport, umad);
	error = errno;
	port_leave(srcport, cancel_state);
	errno = error;
	return umad;
}

/* --- responding ----------------------------------------------------------------- */

EXPORT int mad_respond_via(void *umad, ib_portid_t *portid, uint32_t rstatus,
			   struct ibmad_port *srcport)
{
	uint8_t *mad;
	int agent;

	if (!umad || !srcport) {
		errno = EINVAL;
		return -1;
	}
	mad = umad_get_mad(umad);
	agent = link_agent(&srcport->core.link, mad[1]);
	if (agent < 0) {
		errno = EINVAL;
		return -1;
	}
	response_write_header(mad, (uint16_t)rstatus);
	if (portid)
		address_gmp(umad, portid, umad_get_mad_addr(umad)->gid_index);
	else
		response_address(umad, mad);
	report_packet("respond\n", mad, IB_MAD_SIZE);
	return umad_send(srcport->core.link.fd, agent, umad, IB_MAD_SIZE, 0, 0) < 0 ? -1 : 0;
}

/* --- sending -------------------------------------------------------------------- */

/* Its response, if one comes, is for mad_receive_via(). */
static void expect_response(struct ibmad_port *port, const ib_rpc_t *rpc)
{
	int cancel_state = port_enter(port);

	inbox_expect(&port->inbox, (uint32_t)rpc->trid);
	port_leave(port, cancel_state);
}

static int not_sent(const ib_rpc_t *rpc, int error)
{
	report("mad_send_via", "the MAD cannot be sent: %s", strerror(error));
	failure_refuse(rpc->mgtclass, error);
	return -1;
}

/* rdma-core's errno is EINVAL. */
static int not_registered(const ib_rpc_t *rpc)
{
	report_class_debug("mad_send_via", rpc->mgtclass);
	not_sent(rpc, EINVAL);
	failure_refuse(rpc->mgtclass, EPROTONOSUPPORT);
	errno = EINVAL;
	return -1;
}

EXPORT int mad_send_via(ib_rpc_t *rpc, ib_portid_t *dport, ib_rmpp_hdr_t *rmpp, void *data,
			struct ibmad_port *srcport)
{
	struct ib_user_mad *header;
	_Alignas(8) uint8_t umad[PACKET_SIZE] = {0};
	int agent;

	if (!rpc || !srcport) {
		failure_refuse(rpc ? rpc->mgtclass : 0, EINVAL);
		return -1;
	}
	agent = link_agent(&srcport->core.link, rpc->mgtclass & 0xff);
	if (agent < 0)
		return not_registered(rpc);
	if (mad_build_pkt(umad, rpc, dport, rmpp, data) < 0) {
		failure_refuse(rpc->mgtclass, errno);
		return -1;
	}
	header = (struct ib_user_mad *)(void *)umad;
	if (header->addr.grh_present)
		header->addr.gid_index = (uint8_t)srcport->core.options.gid_index;
	expect_response(srcport, rpc);
	report_packet("send\n", umad_get_mad(umad), IB_MAD_SIZE);
	if (umad_send(srcport->core.link.fd, agent, umad, IB_MAD_SIZE,
		      mad_get_timeout(srcport, rpc->timeout), 0) < 0)
		return not_sent(rpc, errno);
	return 0;
}
