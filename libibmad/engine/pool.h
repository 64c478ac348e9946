/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Memory for structures of one type that are often made and freed. Each structure has a number,
 * which no later structure of the pool has, until 2^32 more were made. A block of structures is
 * freed when none of them is in use, unless it is the only such block.
 */
#ifndef LIBIBMAD_POOL_H
#define LIBIBMAD_POOL_H

#include "base/list.h"

#include <stdint.h>

/* The first member of a structure in a pool. */
struct pool_entry {
	uint32_t place;  /* in the pool, counted from 0 */
	uint32_t serial; /* 0: not in use */
};

struct pool_block;

struct pool {
	size_t size;                /* of a structure */
	struct pool_block **blocks; /* NULL: a block that was freed */
	uint32_t block_count;
	uint32_t block_room;
	uint32_t first_hole;  /* no block before this one was freed */
	uint32_t idle_blocks; /* the blocks of which no structure is in use */
	uint32_t last_serial;
	struct list partial; /* blocks that have free structures */
};

void pool_init(struct pool *pool, size_t size);
void pool_free(struct pool *pool);

/* Makes a structure, of which the entry alone has a value; NULL: no memory. */
void *pool_get(struct pool *pool);
void pool_put(struct pool *pool, void *structure);

/* The number of a structure, never 0. */
uint64_t pool_id(const struct pool_entry *entry);
/* The structure that has this number; NULL if it was freed. */
void *pool_find(const struct pool *pool, uint64_t id);

/*
 * The first structure in use at *place or after it; NULL: none. *place becomes the place after
 * that structure.
 */
void *pool_next(const struct pool *pool, uint32_t *place);

#endif
