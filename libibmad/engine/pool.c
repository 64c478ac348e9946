/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/pool.h"

#define BLOCK        32
#define FIRST_BLOCKS 8

/* No realloc(): a child that another thread forks just now would find the old ones gone. */
static int make_room(struct pool *pool)
{
	uint32_t room = pool->block_room ? 2 * pool->block_room : FIRST_BLOCKS;
	struct async_request **old = pool->blocks, **blocks;

	blocks = calloc(room, sizeof(struct async_request *));
	if (!blocks)
		return -1;
	for (uint32_t i = 0; i < pool->block_count; i++)
		blocks[i] = old[i];
	pool->blocks = blocks;
	pool->block_room = room;
	free(old);
	return 0;
}

static int add_block(struct pool *pool)
{
	struct async_request *block;

	if (pool->block_count >= UINT32_MAX / BLOCK - 1)
		return -1;
	if (pool->block_count == pool->block_room && make_room(pool))
		return -1;
	block = calloc(BLOCK, sizeof(*block));
	if (!block)
		return -1;
	for (uint32_t i = BLOCK; i-- > 0;) {
		block[i].place = pool->block_count * BLOCK + i;
		block[i].transaction.next = (struct transaction *)pool->free;
		pool->free = &block[i];
	}
	pool->blocks[pool->block_count++] = block;
	return 0;
}

struct async_request *pool_get(struct pool *pool)
{
	struct async_request *request;

	if (!pool->free && add_block(pool))
		return NULL;
	request = pool->free;
	pool->free = (struct async_request *)(void *)request->transaction.next;
	return request;
}

void pool_put(struct pool *pool, struct async_request *request)
{
	request->callback = NULL;
	request->generation++;
	request->transaction.next = (struct transaction *)pool->free;
	pool->free = request;
}

void pool_free(struct pool *pool)
{
	for (uint32_t i = 0; i < pool->block_count; i++)
		free(pool->blocks[i]);
	free(pool->blocks);
	*pool = (struct pool){0};
}

uint64_t pool_id(const struct async_request *request)
{
	return (uint64_t)request->generation << 32 | (request->place + 1);
}

struct async_request *pool_at(const struct pool *pool, uint32_t place)
{
	if (place / BLOCK >= pool->block_count)
		return NULL;
	return &pool->blocks[place / BLOCK][place % BLOCK];
}

struct async_request *pool_find(const struct pool *pool, uint64_t id)
{
	struct async_request *request = pool_at(pool, (uint32_t)id - 1);

	return request && request->callback && pool_id(request) == id ? request : NULL;
}
