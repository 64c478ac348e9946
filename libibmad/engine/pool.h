/* SPDX-License-Identifier: BSD-2-Clause */

/* An engine's requests: many of them, made and gone all the time, found by a number. */
#ifndef LIBIBMAD_POOL_H
#define LIBIBMAD_POOL_H

#include "engine/transaction.h"

struct async_request {
	struct transaction transaction;
	mad_async_fn *callback; /* NULL: nobody's */
	void *arg;
	uint32_t place;      /* in the pool */
	uint32_t generation; /* how many were here before */
};

struct pool {
	struct async_request **blocks;
	uint32_t block_count;
	uint32_t block_room;
	struct async_request *free; /* chained by transaction.next */
};

/* One that is nobody's, but for its place; NULL without memory. */
struct async_request *pool_get(struct pool *pool);
void pool_put(struct pool *pool, struct async_request *request);
void pool_free(struct pool *pool);

/* What names a request, never 0, and the request that it names; NULL when that has gone. */
uint64_t pool_id(const struct async_request *request);
struct async_request *pool_find(const struct pool *pool, uint64_t id);

/* The one in a place, NULL beyond the last. */
struct async_request *pool_at(const struct pool *pool, uint32_t place);

#endif
