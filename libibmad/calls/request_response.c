/* SPDX-License-Identifier: BSD-2-Clause */

/* The responses to requests that a program holds. */

#include "base/export.h"
#include "calls/held_request.h"
#include "calls/response.h"
#include "mad/layout.h"

#include <limits.h>
#include <stdlib.h>

static struct held_request *held_of(struct mad_request *request)
{
	return list_entry(request, struct held_request, request);
}

static bool is_table(const struct mad_request *request)
{
	return request->mgmt_class == IB_SA_CLASS &&
	       (request->method == IB_MAD_METHOD_GET_TABLE ||
		request->method == IB_MAD_METHOD_GET_TRACE_TABLE ||
		request->method == IB_MAD_METHOD_GETMULTI);
}

/* What is to be written of a response: its MAD's length, and whether it goes by RMPP. */
struct outgoing {
	uint8_t *umad;
	size_t length;
	bool by_rmpp;
};

static int measure(struct outgoing *outgoing, const struct mad_request *request,
		   const void *data, size_t size)
{
	const struct mad_server *server = request->server;

	outgoing->by_rmpp = server->rmpp && data &&
			    (is_table(request) || size > IB_MAD_SIZE - server->data_offset);
	outgoing->length = outgoing->by_rmpp ? server->data_offset + size : IB_MAD_SIZE;
	if (size > INT_MAX - 2 * PACKET_SIZE ||
	    (data && size > outgoing->length - server->data_offset))
		return -EMSGSIZE;
	return 0;
}

static int write_response(const struct outgoing *outgoing, const struct held_request *held,
			  unsigned status, const void *data, size_t size, int agent)
{
	const struct mad_server *server = held->server;
	uint8_t *mad = umad_get_mad(outgoing->umad);
	size_t head = umad_size() + (data ? server->data_offset : IB_MAD_SIZE);

	memcpy(outgoing->umad, held->umad, head);
	if (server->rmpp)
		memset(mad + RMPP_VERSION_OFFS, 0, RMPP_HEADER_END - RMPP_VERSION_OFFS);
	response_write_header(mad, (uint16_t)status);
	/* last: the data may begin where the header of other MADs of the class has a key */
	if (size)
		memcpy(mad + server->data_offset, data, size);
	if (outgoing->by_rmpp) {
		mad[RMPP_VERSION_OFFS] = RMPP_VERSION;
		mad[RMPP_TYPE_OFFS] = IB_RMPP_TYPE_DATA;
		mad[RMPP_FLAGS_OFFS] = RMPP_RESP_TIME_NONE << 3 | IB_RMPP_FLAG_ACTIVE;
	}
	response_address(outgoing->umad, mad);
	((struct ib_user_mad *)(void *)outgoing->umad)->agent_id = (uint32_t)agent;
	return -link_respond(&server->port->core.link, outgoing->umad, (int)outgoing->length,
			     outgoing->by_rmpp);
}

/* Locked; the lock is dropped meanwhile. */
static int respond(const struct outgoing *outgoing, struct held_request *held, unsigned status,
		   const void *data, size_t size)
{
	struct mad_server *server = held->server;
	struct core *core = &server->port->core;
	int agent = server->base.agent, ret;

	if (!server->engine || server->inherited || core->gone)
		return core->gone ? -core->gone : -ECANCELED;
	server->users++;
	core_unlock(core);
	ret = write_response(outgoing, held, status, data, size, agent);
	core_lock(core);
	server->users--;
	server->stats.responded += !ret;
	server->stats.failed += ret != 0;
	return ret;
}

EXPORT int mad_request_respond(struct mad_request *request, unsigned status, const void *data,
			       size_t size)
{
	_Alignas(8) uint8_t packet[PACKET_SIZE] = {0};
	struct outgoing outgoing = {.umad = packet};
	struct ibmad_port *port;
	int cancel_state, ret;

	if (!request || status > UINT16_MAX || (size && !data) ||
	    request->method == IB_MAD_METHOD_SEND)
		return -EINVAL;
	port = request->server->port;
	ret = measure(&outgoing, request, data, size);
	if (ret)
		return ret;
	if (outgoing.length > IB_MAD_SIZE) {
		outgoing.umad = calloc(1, umad_size() + outgoing.length);
		if (!outgoing.umad)
			return -ENOMEM;
	}
	cancel_state = port_enter(port);
	ret = respond(&outgoing, held_of(request), status, data, size);
	if (!ret) {
		struct mad_server *server = request->server;

		held_request_free(held_of(request));
		server_release(server);
	}
	port_leave_last(port, cancel_state);
	if (outgoing.umad != packet)
		free(outgoing.umad);
	return ret;
}

EXPORT void mad_request_drop(struct mad_request *request)
{
	struct mad_server *server;
	struct ibmad_port *port;
	int cancel_state;

	if (!request)
		return;
	server = request->server;
	port = server->port;
	cancel_state = port_enter(port);
	held_request_free(held_of(request));
	server_release(server);
	port_leave_last(port, cancel_state);
}
