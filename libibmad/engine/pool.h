/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Memory for structures of one type that are often made and freed. Each structure has a number,
 * which no later structure of the pool has, until 2^32 more were made. When no structure is in
 * use, all memory but that of a few is freed.
 */
#ifndef LIBIBMAD_POOL_H
#define LIBIBMAD_POOL_H

#include <stddef.h>
#include <stdint.h>

/* The first member of a structure in a pool. */
struct pool_entry {
	uint32_t place;  /* in the pool; not in use: the next free place */
	uint32_t serial; /* 0: not in use */
};

struct pool {
	size_t size;      /* of a structure */
	uint8_t **blocks; /* each has the same number of structures */
	uint32_t block_count;
	uint32_t in_use;
	uint32_t first_free; /* a place; POOL_NONE: none is free */
	uint32_t last_serial;
};

#define POOL_NONE UINT32_MAX

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
