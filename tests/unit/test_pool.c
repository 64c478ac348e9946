/* SPDX-License-Identifier: BSD-2-Clause */

/* Structures that are allocated and freed all the time, and their numbers. */

#include "engine/pool.h"
#include "fake_device.h"

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

static int setup(void **state)
{
	pool_init(&pool, sizeof(struct thing));
	memset(things, 0, sizeof(things));
	return device_setup(state);
}

static int teardown(void **state)
{
	pool_free(&pool);
	return device_teardown(state);
}

#define POOL_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* Allocates one that is all zeros except its entry, and writes to all of it. */
static void make(int i)
{
	static const uint8_t zeros[SIZE];

	things[i] = pool_get(&pool);
	assert_non_null(things[i]);
	assert_int_equal((uintptr_t)things[i] % 8, 0);
	assert_memory_equal(things[i]->bytes, zeros, SIZE);
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

static void each_structure_is_its_user_s_alone(void **state)
{
	(void)state;
	for (int i = 0; i < COUNT; i++)
		make(i);
	for (int i = 0; i < COUNT; i++)
		for (int j = 0; j < SIZE; j++)
			assert_int_equal(things[i]->bytes[j], (uint8_t)(i + 1));
	expect_each_to_be_found();
	assert_int_equal(count_all(), COUNT);
}

static void a_number_names_one_structure_for_ever(void **state)
{
	static uint64_t all[20 * COUNT];
	unsigned count = 0;

	(void)state;
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

static void numbers_that_were_never_given_name_nothing(void **state)
{
	const uint64_t numbers[] = {
		0, 1, UINT32_MAX, UINT64_MAX, UINT64_C(1) << 32, (UINT64_C(1) << 32) + 31};

	(void)state;
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
static void numbers_go_on_after_the_last_one(void **state)
{
	(void)state;
	pool.last_serial = UINT32_MAX - 2;
	for (int i = 0; i < 5; i++)
		make(i);
	for (int i = 0; i < 5; i++) {
		assert_true(things[i]->entry.serial != 0);
		assert_ptr_equal(pool_find(&pool, ids[i]), things[i]);
	}
}

static unsigned blocks_in_use(void)
{
	unsigned count = 0;

	for (uint32_t i = 0; i < pool.block_count; i++)
		count += pool.blocks[i] != NULL;
	return count;
}

static void blocks_are_freed_but_one(void **state)
{
	unsigned most;

	(void)state;
	for (int i = 0; i < COUNT; i++)
		make(i);
	most = blocks_in_use();
	assert_true(most > 20);
	for (int i = COUNT - 1; i >= 0; i--)
		put_away(i);
	assert_int_equal(blocks_in_use(), 1);
	assert_int_equal(pool.idle_blocks, 1);
	/* one structure, allocated repeatedly, allocates no memory */
	most = device_allocations();
	for (int i = 0; i < 100; i++) {
		make(0);
		put_away(0);
	}
	assert_int_equal(device_allocations(), most);
}

static void after_a_repair_what_is_in_use_stays_in_use(void **state)
{
	(void)state;
	for (int used = 1; used < 40; used++) {
		make(used - 1);
		pool_repair(&pool);
		make(used);
		for (int i = 0; i < used; i++)
			assert_ptr_not_equal(things[i], things[used]);
		put_away(used);
	}
}

/* Its number has 32 bits. */
static void there_are_no_more_blocks_than_places_have_numbers(void **state)
{
	const uint32_t most = UINT32_MAX / 32 - 1;
	unsigned before = device_allocations();

	(void)state;
	pool.block_count = pool.first_hole = most;
	pool.block_room = most + 1;
	assert_null(pool_get(&pool));
	assert_int_equal(device_allocations(), before);
	/* one less: only memory is missing */
	pool.block_count = pool.first_hole = most - 1;
	device_fail_malloc(1);
	assert_null(pool_get(&pool));
	assert_int_equal(device_allocations(), before + 1);
	device_fail_malloc(0);
	pool_init(&pool, sizeof(struct thing));
}

static void places_of_freed_blocks_are_used_again(void **state)
{
	uint32_t blocks;

	(void)state;
	for (int i = 0; i < COUNT; i++)
		make(i);
	blocks = pool.block_count;
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
	assert_int_equal(pool.block_count, blocks);
	assert_int_equal(count_all(), COUNT);
}

static void any_order_will_do(void **state)
{
	unsigned seed = 1;

	(void)state;
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
	assert_int_equal(blocks_in_use(), 1);
	assert_int_equal(count_all(), 0);
}

/* The array of blocks must grow for the ninth block. */
/*
 * The state that a child of fork() may find, if a thread of its parent was in a call for the
 * pool.
 */
static void a_repair_counts_the_blocks_that_are_free(void **state)
{
	(void)state;
	make(0);
	put_away(0);
	pool.idle_blocks = 1000;
	pool_repair(&pool);
	assert_int_equal(pool.idle_blocks, 1);
}

static void half_changed_lists_are_repaired(void **state)
{
	unsigned allocations;

	(void)state;
	for (int i = 0; i < COUNT; i++)
		make(i);
	for (int i = 0; i < COUNT; i += 2)
		put_away(i);
	allocations = device_allocations();
	list_init(&pool.partial);
	pool.idle_blocks = 1000;
	pool.first_hole = pool.block_count;
	pool_repair(&pool);
	expect_each_to_be_found();
	for (int i = 0; i < COUNT; i += 2)
		make(i);
	expect_each_to_be_found();
	/* the free slots were found again */
	assert_int_equal(device_allocations(), allocations);
	for (int i = 0; i < COUNT; i++)
		put_away(i);
	assert_int_equal(pool.idle_blocks, 1);
}

static void without_memory_nothing_is_made_and_nothing_lost(void **state)
{
	unsigned failed = 0;

	(void)state;
	for (int i = 0; i < COUNT; i++)
		for (unsigned n = 1; !things[i]; n++) {
			device_fail_malloc(n);
			things[i] = pool_get(&pool);
			device_fail_malloc(0);
			failed += !things[i];
			ids[i] = things[i] ? pool_id(&things[i]->entry) : 0;
		}
	assert_true(failed > COUNT / 32);
	expect_each_to_be_found();
	assert_int_equal(count_all(), COUNT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		POOL_TEST(each_structure_is_its_user_s_alone),
		POOL_TEST(a_number_names_one_structure_for_ever),
		POOL_TEST(numbers_that_were_never_given_name_nothing),
		POOL_TEST(numbers_go_on_after_the_last_one),
		POOL_TEST(blocks_are_freed_but_one),
		POOL_TEST(after_a_repair_what_is_in_use_stays_in_use),
		POOL_TEST(there_are_no_more_blocks_than_places_have_numbers),
		POOL_TEST(places_of_freed_blocks_are_used_again),
		POOL_TEST(any_order_will_do),
		POOL_TEST(half_changed_lists_are_repaired),
		POOL_TEST(a_repair_counts_the_blocks_that_are_free),
		POOL_TEST(without_memory_nothing_is_made_and_nothing_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
