/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Pool of same-sized structures. Each has an ID that is not reused until 2^32 more were
 * allocated. When none is in use, all but a little of the memory is freed.
 */
#ifndef LIBIBMAD_POOL_H
#define LIBIBMAD_POOL_H

#include <stddef.h>
#include <stdint.h>

/* Must be the first member of a pooled structure. */
struct pool_entry {
	uint32_t place;  /* in the pool; if free, the next free place */
	uint32_t serial; /* 0: not in use */
};

struct pool {
	size_t size;      /* of a structure */
	uint8_t **blocks; /* of equal size */
	uint32_t block_count;
	uint32_t in_use;
	uint32_t first_free; /* POOL_NONE: none */
	uint32_t last_serial;
};

#define POOL_NONE UINT32_MAX

void pool_init(struct pool *pool, size_t size);
void pool_free(struct pool *pool);

/* Only the entry is initialized. NULL on OOM. */
void *pool_get(struct pool *pool);
void pool_put(struct pool *pool, void *structure);

/* Never 0. */
uint64_t pool_id(const struct pool_entry *entry);
/* Returns NULL if it was freed. */
void *pool_find(const struct pool *pool, uint64_t id);

/*
 * Iterates: returns the first structure in use at or after *place and advances *place past it;
 * NULL: none.
 */
void *pool_next(const struct pool *pool, uint32_t *place);

#endif
