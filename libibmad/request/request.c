/* SPDX-License-Identifier: BSD-2-Clause */

/* How a request is made and freed. */

#include "request/request.h"

#include "base/export.h"
#include "mad/layout.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

void requests_init(struct requests *requests)
{
	tids_init(&requests->tids);
	flow_init(&requests->flow);
}

/* Allocates the buffer of a request that RMPP carries. */
static RARE int allocate(struct request *request, const struct request_settings *settings,
			 size_t size)
{
	size_t length = request->dataoffs + size;
	uint8_t *umad;

	if (!settings->rmpp || size > INT_MAX - 2 * PACKET_SIZE)
		return -EMSGSIZE;
	request->length = (int)length;
	/* packet_build() writes a whole MAD */
	umad = calloc(1, request->header_size + (length < IB_MAD_SIZE ? IB_MAD_SIZE : length));
	if (!umad)
		return -ENOMEM;
	request->umad = umad;
	return 0;
}

/* Sets what depends on the class and on the settings. */
static inline void set_attempts(struct request *request,
				const struct request_settings *settings, int mgmt_class,
				int method, int timeout_ms)
{
	int attempts = settings->attempts < UINT16_MAX ? settings->attempts : UINT16_MAX;

	request->timeout_ms = timeout_ms ? timeout_ms : settings->timeout_ms;
	if (request->timeout_ms < 0)
		request->timeout_ms = INT_MAX / 2;
	request->attempts_left = (uint16_t)attempts;
	request->account.smp = is_smp_class(mgmt_class);
	request->account.sa = mgmt_class == IB_SA_CLASS;
	/* the Gets of these classes change nothing: a retransmission does no harm */
	request->repeatable = !request_is_large(request) && method == IB_MAD_METHOD_GET &&
			      (request->account.smp || request->account.sa ||
			       mgmt_class == IB_PERFORMANCE_CLASS || mgmt_class == IB_CC_CLASS);
	if (request->repeatable && attempts > 1)
		request->copies_left = (uint16_t)attempts;
}

int request_init(struct request *request, const struct request_settings *settings,
		 ib_rpc_t *rpc, const ib_portid_t *dport, const ib_rmpp_hdr_t *rmpp,
		 const void *payload, size_t size)
{
	size_t header_size = umad_size();
	struct ib_user_mad *header;
	uint8_t *mad;
	int ret;

	/* zeros: the bytes of the packet that are used, a header and a MAD */
	memset(request, 0, offsetof(struct request, packet) + header_size + IB_MAD_SIZE);
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
	if (settings->by_rmpp || size > (size_t)(IB_MAD_SIZE - rpc->dataoffs)) {
		ret = allocate(request, settings, size);
		if (ret)
			return ret;
	}
	if (!rpc->trid)
		rpc->trid = mad_trid();
	mad = request->umad + header_size;
	ret = packet_build(request->umad, mad, rpc, dport, rmpp);
	if (ret) {
		request_fini(request);
		return ret;
	}
	if (size)
		memcpy(mad + rpc->dataoffs, payload, size);
	if (request_is_large(request))
		rmpp_mark(mad);
	header = (struct ib_user_mad *)(void *)request->umad;
	header->agent_id = (uint32_t)settings->agent;
	if (header->addr.grh_present)
		header->addr.gid_index = (uint8_t)settings->gid_index;
	transmissions_init(&request->transmissions, get32(mad, TID_OFFS), mad[1]);
	request->transmissions.chosen = settings->chosen;
	set_attempts(request, settings, mad[1], mad[3], rpc->timeout);
	return 0;
}

/* --- the end -------------------------------------------------------------------- */

void request_drop_pending(struct request *request)
{
	free(request->pending.umad);
	request->pending = (struct pending_event){.kind = EVENT_NONE};
}

void request_free(struct request *request)
{
	request_drop_pending(request);
	free(request->redirect);
	request->redirect = NULL;
	if (request_is_large(request))
		free(request->umad);
	request->umad = request->packet;
}
