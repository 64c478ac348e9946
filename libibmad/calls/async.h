/* SPDX-License-Identifier: BSD-2-Clause */

/* Requests of an engine, for callers that have entered it (engine_enter()). */
#ifndef LIBIBMAD_ASYNC_H
#define LIBIBMAD_ASYNC_H

#include "calls/engine.h"

/*
 * mad_async_submit(). *id is written before the request is sent. The lock may be dropped
 * meanwhile, so that another thread may already have called the request back on return.
 */
int async_submit(struct mad_async *engine, const ib_rpc_t *rpc, const ib_portid_t *dport,
		 const void *payload, size_t size, mad_async_fn *callback, void *arg,
		 uint64_t *id);

/* mad_async_cancel(): 0 or -ENOENT. */
int async_cancel(struct mad_async *engine, uint64_t id);

#endif
