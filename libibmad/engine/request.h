/* SPDX-License-Identifier: BSD-2-Clause */

/* Requests: the packet that a transaction sends. */
#ifndef LIBIBMAD_REQUEST_H
#define LIBIBMAD_REQUEST_H

#include "engine/options.h"
#include "engine/transaction.h"

/*
 * Makes a transaction that is READY, with size bytes of payload at rpc->dataoffs; rmpp may be
 * NULL. rpc gets a transaction ID if it has none. 0, -EINVAL, -EMSGSIZE, -ENOMEM.
 */
int request_init(struct transaction *transaction, const struct link *link,
		 const struct options *options, ib_rpc_t *rpc, ib_portid_t *dport,
		 ib_rmpp_hdr_t *rmpp, const void *payload, size_t size);

#endif
