/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/pool.h"

#include <stdlib.h>

#define BLOCK 32u /* structures */

static struct pool_entry *entry_at(const struct pool *pool, uint32_t place)
{
	return (struct pool_entry *)(void *)(pool->blocks[place / BLOCK] +
					     place % BLOCK * pool->size);
}

void pool_init(struct pool *pool, size_t size)
{
	*pool = (struct pool){.size = (size + 7) / 8 * 8, .first_free = POOL_NONE};
}

void pool_free(struct pool *pool)
{
	while (pool->block_count)
		free(pool->blocks[--pool->block_count]);
	free(pool->blocks);
	pool_init(pool, pool->size);
}

/* Puts a block's structures on the free list, the first one on top. */
static void free_block(struct pool *pool, uint32_t block)
{
	for (uint32_t place = (block + 1) * BLOCK; place-- > block * BLOCK;) {
		entry_at(pool, place)->place = pool->first_free;
		pool->first_free = place;
	}
}

/* Returns 0, or -1 on OOM. Doubles the array of blocks. */
static int add_block(struct pool *pool)
{
	uint32_t count = pool->block_count;
	uint8_t **blocks = pool->blocks;

	if (count >= POOL_NONE / BLOCK)
		return -1;
	if (!(count & (count - 1))) {
		blocks = realloc(blocks, (count ? 2 * (size_t)count : 1) * sizeof(*blocks));
		if (!blocks)
			return -1;
		pool->blocks = blocks;
	}
	blocks[count] = calloc(BLOCK, pool->size);
	if (!blocks[count])
		return -1;
	pool->block_count++;
	free_block(pool, count);
	return 0;
}

void *pool_get(struct pool *pool)
{
	struct pool_entry *entry;
	uint32_t place;

	if (pool->first_free == POOL_NONE && add_block(pool))
		return NULL;
	place = pool->first_free;
	entry = entry_at(pool, place);
	pool->first_free = entry->place;
	pool->in_use++;
	if (!++pool->last_serial)
		pool->last_serial = 1;
	*entry = (struct pool_entry){.place = place, .serial = pool->last_serial};
	return entry;
}

void pool_put(struct pool *pool, void *structure)
{
	struct pool_entry *entry = structure;
	uint32_t place = entry->place;

	*entry = (struct pool_entry){.place = pool->first_free};
	pool->first_free = place;
	if (--pool->in_use || pool->block_count <= 1)
		return;
	while (pool->block_count > 1)
		free(pool->blocks[--pool->block_count]);
	pool->first_free = POOL_NONE;
	free_block(pool, 0);
}

uint64_t pool_id(const struct pool_entry *entry)
{
	return (uint64_t)entry->serial << 32 | entry->place;
}

void *pool_find(const struct pool *pool, uint64_t id)
{
	uint32_t place = (uint32_t)id, serial = (uint32_t)(id >> 32);

	if (!serial || place / BLOCK >= pool->block_count ||
	    entry_at(pool, place)->serial != serial)
		return NULL;
	return entry_at(pool, place);
}

void *pool_next(const struct pool *pool, uint32_t *place)
{
	while (*place / BLOCK < pool->block_count) {
		struct pool_entry *entry = entry_at(pool, (*place)++);

		if (entry->serial)
			return entry;
	}
	return NULL;
}
