/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/request.h"

#include "mad/layout.h"

#include <errno.h>
#include <limits.h>

/* The kernel cuts such a request into segments (IBA 13.6). */
static void mark_for_rmpp(uint8_t *mad)
{
	mad[RMPP_VERSION_OFFS] = RMPP_VERSION;
	mad[RMPP_TYPE_OFFS] = IB_RMPP_TYPE_DATA;
	mad[RMPP_FLAGS_OFFS] = RMPP_RESP_TIME_NONE << 3 | IB_RMPP_FLAG_ACTIVE;
}

/* Allocates the buffer of a request that RMPP carries. */
static int make_room(struct transaction *transaction, const struct link *link,
		     const ib_rpc_t *rpc, size_t size)
{
	size_t room = (size_t)rpc->dataoffs + size;

	if (room < IB_MAD_SIZE)
		room = IB_MAD_SIZE; /* mad_build_pkt() writes a whole MAD */
	if (!link->rmpp[rpc->mgtclass & 0xff] || size > INT_MAX - 2 * PACKET_SIZE)
		return -EMSGSIZE;
	transaction->length = rpc->dataoffs + (int)size;
	transaction->heap = calloc(1, umad_size() + room);
	return transaction->heap ? 0 : -ENOMEM;
}

static int write_request(struct transaction *transaction, ib_rpc_t *rpc, ib_portid_t *dport,
			 ib_rmpp_hdr_t *rmpp, const void *payload, size_t size)
{
	if (mad_build_pkt(transaction_buffer(transaction), rpc, dport, rmpp, NULL) < 0)
		return -errno;
	if (payload)
		memcpy(transaction_mad(transaction) + rpc->dataoffs, payload, size);
	if (transaction->heap)
		mark_for_rmpp(transaction_mad(transaction));
	return 0;
}

int request_init(struct transaction *transaction, const struct link *link,
		 const struct options *options, ib_rpc_t *rpc, ib_portid_t *dport,
		 ib_rmpp_hdr_t *rmpp, bool by_rmpp, const void *payload, size_t size)
{
	int agent = link_agent(link, rpc->mgtclass & 0xff), ret = 0;
	struct ib_user_mad *header;

	memset(transaction, 0, sizeof(*transaction));
	transaction->header_size = (uint8_t)umad_size();
	if (!dport || rpc->dataoffs < 0 || rpc->dataoffs > IB_MAD_SIZE)
		return -EINVAL;
	if (agent < 0)
		return -EPROTONOSUPPORT;
	if (!payload)
		size = 0;
	transaction->dataoffs = (uint16_t)rpc->dataoffs;
	transaction->length = IB_MAD_SIZE;
	if (by_rmpp || size > (size_t)(IB_MAD_SIZE - rpc->dataoffs))
		ret = make_room(transaction, link, rpc, size);
	if (!ret)
		ret = write_request(transaction, rpc, dport, rmpp, payload, size);
	if (ret) {
		transaction_fini(transaction);
		return ret;
	}
	header = (struct ib_user_mad *)(void *)transaction_buffer(transaction);
	header->agent_id = (uint32_t)agent;
	if (header->addr.grh_present)
		header->addr.gid_index = (uint8_t)options->gid_index;
	transaction_init(transaction, rpc->timeout ? rpc->timeout : options_timeout_ms(options),
			 options_attempts(options));
	return 0;
}
