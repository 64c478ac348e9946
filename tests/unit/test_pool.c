/* SPDX-License-Identifier: BSD-2-Clause */

/* Structures that are allocated and freed all the time, and their numbers. */

#include "port/pool.h"
#include "fake_memory.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

#define COUNT 1000
/* More than a few blocks, and not a multiple of one. */
#define SIZE  13

struct thing {
	struct pool_entry entry;
	uint8_t bytes[SIZE];
};

static struct pool pool;
static struct thing *things[COUNT];
static uint64_t ids[COUNT];

static int setup(void)
{
	pool_init(&pool, sizeof(struct thing));
	memset(things, 0, sizeof(things));
	return 0;
}

static int teardown(void)
{
	pool_free(&pool);
	return 0;
}

FIXTURE(setup, teardown);

/* Allocates one, and writes to all of it. */
static void make(int i)
{
	things[i] = pool_get(&pool);
	assert_non_null(things[i]);
	assert_int_equal((uintptr_t)things[i] % 8, 0);
	memset(things[i]->bytes, i + 1, SIZE);
	ids[i] = pool_id(&things[i]->entry);
	assert_true(ids[i] != 0);
}

static void put_away(int i)
{
	pool_put(&pool, things[i]);
	things[i] = NULL;
}

static void expect_each_to_be_found(void)
{
	for (int i = 0; i < COUNT; i++)
		assert_ptr_equal(pool_find(&pool, ids[i]), things[i]);
}

static unsigned count_all(void)
{
	struct thing *thing;
	unsigned count = 0;
	uint32_t place = 0, before = 0;

	while ((thing = pool_next(&pool, &place))) {
		assert_true(place > before);
		before = place;
		assert_ptr_equal(pool_find(&pool, pool_id(&thing->entry)), thing);
		count++;
	}
	return count;
}

TEST(each_structure_is_its_user_s_alone)
{
	for (int i = 0; i < COUNT; i++)
		make(i);
	for (int i = 0; i < COUNT; i++)
		for (int j = 0; j < SIZE; j++)
			assert_int_equal(things[i]->bytes[j], (uint8_t)(i + 1));
	expect_each_to_be_found();
	assert_int_equal(count_all(), COUNT);
}

TEST(a_number_names_one_structure_for_ever)
{
	static uint64_t all[20 * COUNT];
	unsigned count = 0;

	for (unsigned round = 0; round < 20; round++) {
		for (int i = 0; i < COUNT; i++) {
			make(i);
			all[count++] = ids[i];
		}
		/*
		 * no number of an earlier round is found, although their slots are used again
		 */
		for (unsigned i = 0; i < round * COUNT; i++)
			assert_null(pool_find(&pool, all[i]));
		for (int i = 0; i < COUNT; i++)
			put_away((i * 7 + (int)round) % COUNT);
		expect_each_to_be_found();
		assert_int_equal(count_all(), 0);
	}
}

TEST(numbers_that_were_never_given_name_nothing)
{
	const uint64_t numbers[] = {
		0, 1, UINT32_MAX, UINT64_MAX, UINT64_C(1) << 32, (UINT64_C(1) << 32) + 31};

	for (int with = 0; with < 2; with++) {
		for (unsigned i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
			if (!with || numbers[i] != ids[0])
				assert_null(pool_find(&pool, numbers[i]));
		make(0);
	}
	/* the rest of the block was never used */
	for (uint32_t i = 1; i < 100; i++)
		assert_null(pool_find(&pool, i));
}

/* The number zero belongs to no structure. */
TEST(numbers_go_on_after_the_last_one)
{
	pool.last_serial = UINT32_MAX - 2;
	for (int i = 0; i < 5; i++)
		make(i);
	for (int i = 0; i < 5; i++) {
		assert_true(things[i]->entry.serial != 0);
		assert_ptr_equal(pool_find(&pool, ids[i]), things[i]);
	}
}

/* The number of allocations of so many structures that are made and freed. */
static unsigned allocations_of(int count)
{
	unsigned before = fake_allocations();

	for (int i = 0; i < count; i++)
		make(i);
	for (int i = 0; i < count; i++)
		put_away(i);
	return fake_allocations() - before;
}

/* A block has 32 structures. */
TEST(blocks_are_freed_but_one)
{
	const int blocks = (COUNT + 31) / 32;

	/* and the array of blocks grows */
	assert_in_range(allocations_of(COUNT), blocks, blocks + 5);
	for (int i = 0; i < 3; i++)
		assert_int_equal(allocations_of(COUNT), blocks - 1);
	/* one structure, allocated repeatedly, allocates no memory */
	for (int i = 0; i < 100; i++)
		assert_int_equal(allocations_of(1), 0);
}

TEST(a_pool_is_empty_after_it_was_freed)
{
	make(0);
	pool_free(&pool);
	assert_null(pool_find(&pool, ids[0]));
	assert_int_equal(count_all(), 0);
	make(0);
	assert_ptr_equal(pool_find(&pool, ids[0]), things[0]);
}

/*
 * Its number has 32 bits. The members are those of a pool whose memory no test has: the number
 * of blocks.
 */
TEST(there_are_no_more_blocks_than_places_have_numbers)
{
	const uint32_t most = UINT32_MAX / 32 - 1;
	unsigned before = fake_allocations();

	pool.block_count = pool.first_hole = most;
	pool.block_room = most + 1;
	assert_null(pool_get(&pool));
	assert_int_equal(fake_allocations(), before);
	/* one less: only memory is missing */
	pool.block_count = pool.first_hole = most - 1;
	fake_fail_malloc(1);
	assert_null(pool_get(&pool));
	assert_int_equal(fake_allocations(), before + 1);
	fake_fail_malloc(0);
	pool_init(&pool, sizeof(struct thing));
}

/* The place after the last one in use. */
static uint32_t places_in_use(void)
{
	uint32_t place = 0, last = 0;

	while (pool_next(&pool, &place))
		last = place;
	return last;
}

TEST(places_of_freed_blocks_are_used_again)
{
	for (int i = 0; i < COUNT; i++)
		make(i);
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < COUNT; i++)
			if (i % 100 < 90)
				put_away(i);
		assert_int_equal(count_all(), COUNT / 10);
		for (int i = 0; i < COUNT; i++)
			if (i % 100 < 90)
				make(i);
		expect_each_to_be_found();
	}
	/* no more than blocks of 32 structures have */
	assert_in_range(places_in_use(), COUNT, (COUNT + 31) / 32 * 32);
	assert_int_equal(count_all(), COUNT);
}

TEST(any_order_will_do)
{
	unsigned seed = 1;

	for (int step = 0; step < 20000; step++) {
		int i = (int)((seed = seed * 1103515245 + 12345) >> 16) % COUNT;

		/* there are many at first, then few */
		if (things[i])
			put_away(i);
		else if (step < 10000 || i < 50)
			make(i);
	}
	for (int i = 0; i < COUNT; i++)
		if (things[i])
			assert_int_equal(things[i]->bytes[SIZE - 1], (uint8_t)(i + 1));
	for (int i = 0; i < COUNT; i++)
		if (things[i])
			put_away(i);
	assert_int_equal(count_all(), 0);
}

/* The array of blocks must grow for the ninth block. */
TEST(without_memory_nothing_is_made_and_nothing_lost)
{
	unsigned failed = 0;

	for (int i = 0; i < COUNT; i++)
		for (unsigned n = 1; !things[i]; n++) {
			fake_fail_malloc(n);
			things[i] = pool_get(&pool);
			fake_fail_malloc(0);
			failed += !things[i];
			ids[i] = things[i] ? pool_id(&things[i]->entry) : 0;
		}
	assert_true(failed > COUNT / 32);
	expect_each_to_be_found();
	assert_int_equal(count_all(), COUNT);
}
