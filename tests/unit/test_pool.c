/* SPDX-License-Identifier: BSD-2-Clause */

/* Structures that are allocated and freed all the time, and their numbers. */

#include "engine/pool.h"
#include "fake_memory.h"
#include "test.h"

/* More than a few blocks of 32, and not a multiple of one. */
#define COUNT 1000

struct thing {
	struct pool_entry entry;
	int number;
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

static bool make(int i)
{
	things[i] = pool_get(&pool);
	if (!things[i])
		return false;
	assert_int_equal((uintptr_t)things[i] % 8, 0);
	things[i]->number = i;
	ids[i] = pool_id(&things[i]->entry);
	assert_true(things[i]->entry.serial != 0);
	return true;
}

static void put_away(int i)
{
	pool_put(&pool, things[i]);
	things[i] = NULL;
}

/* Those in use, and no others, in the order of their places. */
static void expect_all_things(void)
{
	struct thing *thing;
	unsigned made = 0, count = 0;
	uint32_t place = 0, before = 0;

	for (int i = 0; i < COUNT; i++) {
		if (ids[i])
			assert_ptr_equal(pool_find(&pool, ids[i]), things[i]);
		if (things[i])
			assert_int_equal(things[i]->number, i);
		made += things[i] != NULL;
	}
	for (; (thing = pool_next(&pool, &place)); before = place, count++) {
		assert_true(place > before);
		assert_ptr_equal(things[thing->number], thing);
	}
	assert_int_equal(count, made);
}

/* Without memory, too. There are many at first, then few, then many again. */
TEST(each_structure_is_its_user_s_alone_in_any_order)
{
	static uint64_t former[COUNT];
	unsigned seed = 1, failed = 0;
	struct thing *thing;
	uint32_t place = 0;

	for (int step = 0; step < 40000; step++) {
		int i = rand_r(&seed) % COUNT, few = step / 10000 == 2 ? 50 : COUNT;

		if (things[i]) {
			former[i] = ids[i];
			put_away(i);
		} else if (i < few) {
			fake_fail_malloc((unsigned)rand_r(&seed) % 3);
			failed += !make(i);
			fake_fail_malloc(0);
		}
		if (former[i])
			assert_null(pool_find(&pool, former[i]));
		if (step % 1000 == 999)
			expect_all_things();
	}
	assert_true(failed > 5);
	for (int i = 0; i < COUNT; i++)
		if (!things[i])
			assert_true(make(i));
	expect_all_things();
	/* free places are used again */
	while ((thing = pool_next(&pool, &place)))
		assert_in_range(thing->entry.place, 0, (COUNT + 31) / 32 * 32 - 1);
}

TEST(numbers_that_were_never_given_name_nothing)
{
	static const uint64_t numbers[] = {
		0, 1, UINT32_MAX, UINT64_MAX, UINT64_C(1) << 32, (UINT64_C(1) << 32) + 31};

	for (int with = 0; with < 2; with++) {
		for (unsigned i = 0; i < 6; i++)
			if (!with || numbers[i] != ids[0])
				assert_null(pool_find(&pool, numbers[i]));
		make(0);
	}
	pool_free(&pool);
	things[0] = NULL;
	expect_all_things();
}

/* The number zero belongs to no structure. */
TEST(numbers_go_on_after_the_last_one)
{
	pool.last_serial = UINT32_MAX - 2;
	for (int i = 0; i < 5; i++)
		make(i);
	expect_all_things();
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

TEST(blocks_are_freed_but_one)
{
	const int blocks = (COUNT + 31) / 32;

	/* and the array of blocks grows */
	assert_in_range(allocations_of(COUNT), blocks, blocks + 6);
	for (int i = 0; i < 3; i++)
		assert_in_range(allocations_of(COUNT), blocks - 1, blocks + 4);
	assert_int_equal(allocations_of(1), 0);
}

/*
 * Its number has 32 bits. The members are those of a pool whose memory no test has: the number
 * of blocks.
 */
TEST(there_are_no_more_blocks_than_places_have_numbers)
{
	unsigned before = fake_allocations();

	pool.block_count = UINT32_MAX / 32;
	assert_null(pool_get(&pool));
	assert_int_equal(fake_allocations(), before);
	pool_init(&pool, sizeof(struct thing));
}
