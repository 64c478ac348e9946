/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/pool.h"

#include <stdlib.h>

/* The structures of a block: the bits of "free". */
#define BLOCK        32u
#define FIRST_BLOCKS 8

struct pool_block {
	struct list partial; /* in the pool's, while a structure is free */
	uint32_t number;
	uint32_t free; /* bit i: structure i is free */
	_Alignas(8) uint8_t structures[];
};

#define ALL_FREE UINT32_MAX

void pool_init(struct pool *pool, size_t size)
{
	*pool = (struct pool){.size = (size + 7) / 8 * 8};
	list_init(&pool->partial);
}

void pool_free(struct pool *pool)
{
	for (uint32_t i = 0; i < pool->block_count; i++)
		free(pool->blocks[i]);
	free(pool->blocks);
	pool_init(pool, pool->size);
}

static struct pool_entry *entry_at(const struct pool *pool, struct pool_block *block,
				   unsigned index)
{
	return (struct pool_entry *)(void *)(block->structures + index * pool->size);
}

static int make_room(struct pool *pool)
{
	uint32_t room = pool->block_room ? 2 * pool->block_room : FIRST_BLOCKS;
	struct pool_block **blocks = realloc(pool->blocks, room * sizeof(*blocks));

	if (!blocks)
		return -1;
	pool->blocks = blocks;
	pool->block_room = room;
	return 0;
}

/* Makes pool->first_hole the place for a new block. 0, or -1 without memory. */
static int find_hole(struct pool *pool)
{
	while (pool->first_hole < pool->block_count && pool->blocks[pool->first_hole])
		pool->first_hole++;
	if (pool->first_hole < pool->block_count)
		return 0;
	if (pool->block_count >= UINT32_MAX / BLOCK - 1)
		return -1;
	return pool->block_count == pool->block_room ? make_room(pool) : 0;
}

static struct pool_block *add_block(struct pool *pool)
{
	struct pool_block *block;

	if (find_hole(pool))
		return NULL;
	block = calloc(1, sizeof(*block) + BLOCK * pool->size);
	if (!block)
		return NULL;
	block->number = pool->first_hole;
	block->free = ALL_FREE;
	pool->blocks[block->number] = block;
	if (block->number == pool->block_count)
		pool->block_count++;
	pool->idle_blocks++;
	list_add_first(&pool->partial, &block->partial);
	return block;
}

static void remove_block(struct pool *pool, struct pool_block *block)
{
	pool->blocks[block->number] = NULL;
	if (block->number < pool->first_hole)
		pool->first_hole = block->number;
	pool->idle_blocks--;
	list_remove(&block->partial);
	free(block);
}

/* A block that has a free structure; NULL without memory. */
static struct pool_block *first_partial(struct pool *pool)
{
	if (list_is_empty(&pool->partial))
		return add_block(pool);
	return list_entry(pool->partial.next, struct pool_block, partial);
}

void *pool_get(struct pool *pool)
{
	struct pool_block *block = first_partial(pool);
	struct pool_entry *entry;
	unsigned index;

	if (!block)
		return NULL;
	pool->idle_blocks -= block->free == ALL_FREE;
	index = (unsigned)__builtin_ctz(block->free);
	block->free &= block->free - 1;
	if (!block->free)
		list_remove(&block->partial);
	entry = entry_at(pool, block, index);
	entry->place = block->number * BLOCK + index;
	if (!++pool->last_serial)
		pool->last_serial = 1;
	entry->serial = pool->last_serial;
	return entry;
}

void pool_put(struct pool *pool, void *structure)
{
	struct pool_entry *entry = structure;
	struct pool_block *block = pool->blocks[entry->place / BLOCK];

	entry->serial = 0;
	if (!block->free)
		list_add_first(&pool->partial, &block->partial);
	block->free |= 1u << entry->place % BLOCK;
	if (block->free != ALL_FREE)
		return;
	pool->idle_blocks++;
	if (pool->idle_blocks > 1)
		remove_block(pool, block);
}

uint64_t pool_id(const struct pool_entry *entry)
{
	return (uint64_t)entry->serial << 32 | entry->place;
}

/* The structure at a place; NULL if it is not in use. */
static struct pool_entry *at(const struct pool *pool, uint32_t place)
{
	struct pool_entry *entry;

	if (place / BLOCK >= pool->block_count || !pool->blocks[place / BLOCK])
		return NULL;
	entry = entry_at(pool, pool->blocks[place / BLOCK], place % BLOCK);
	return entry->serial ? entry : NULL;
}

void *pool_find(const struct pool *pool, uint64_t id)
{
	struct pool_entry *entry = at(pool, (uint32_t)id);

	return entry && entry->serial == id >> 32 ? entry : NULL;
}

void *pool_next(const struct pool *pool, uint32_t *place)
{
	struct pool_entry *entry;

	while (*place / BLOCK < pool->block_count)
		if ((entry = at(pool, (*place)++)))
			return entry;
	return NULL;
}
