/* SPDX-License-Identifier: BSD-2-Clause */

/* Requests: the packet that a transaction sends. */
#ifndef LIBIBMAD_REQUEST_H
#define LIBIBMAD_REQUEST_H

#include "engine/options.h"
#include "engine/transaction.h"

/*
 * Makes a transaction that is READY, with size bytes of payload at rpc->dataoffs; rmpp may be
 * NULL. by_rmpp: RMPP carries the request, however short. rpc gets a transaction ID if it has
 * none. 0, -EINVAL, -EPROTONOSUPPORT, -EMSGSIZE, -ENOMEM.
 */
int request_init(struct transaction *transaction, const struct link *link,
		 const struct options *options, ib_rpc_t *rpc, ib_portid_t *dport,
		 ib_rmpp_hdr_t *rmpp, bool by_rmpp, const void *payload, size_t size);

/*
 * by_rmpp, for calls that rdma-core does not have: SubnAdmGetMulti is an RMPP transfer in both
 * directions (IBA 15.4.7), and an SA refuses a request without RMPP.
 */
static inline bool request_is_by_rmpp(const ib_rpc_t *rpc)
{
	return (rpc->mgtclass & 0xff) == IB_SA_CLASS && rpc->method == IB_MAD_METHOD_GETMULTI;
}

#endif
