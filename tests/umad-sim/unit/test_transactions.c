/* SPDX-License-Identifier: BSD-2-Clause */

/* The transactions in flight that a handle's two sides share. */

#include <stdlib.h>
#include <string.h>

#include "protocol.h"
#include "test.h"

#define SLOTS (BUCKETS * BUCKET_KEYS)

static struct shared *set_up(void)
{
	struct shared *shared = calloc(1, sizeof(*shared));

	assert_non_null(shared);
	return shared;
}

static void tear_down(struct shared *shared)
{
	free(shared);
}

#define SHARED_TEST(name) TEST_ON(name, struct shared *shared, set_up, tear_down)

static unsigned int used(struct shared *shared)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < SLOTS; i++)
		count += atomic_load(&shared->transactions[i]) != 0;
	return count;
}

/* Fills a bucket of a key with other keys. */
static void fill(struct shared *shared, uint64_t key, unsigned int choice)
{
	for (unsigned int i = 0; i < BUCKET_KEYS; i++)
		atomic_store(transaction_bucket(shared, key, choice) + i, 1000 + i);
}

TEST(a_key_tells_agent_class_and_transaction_apart)
{
	uint64_t key = transaction_key(1, 2, 3);

	assert_true(transaction_key(0, 0, 0) != 0); /* 0: a free entry */
	assert_true(key != transaction_key(2, 2, 3));
	assert_true(key != transaction_key(1, 3, 3));
	assert_true(key != transaction_key(1, 2, 4));
	assert_true(transaction_key(31, 0xff, UINT32_MAX) != transaction_key(31, 0xff, 0));
	assert_true(transaction_key(0, 1, 0) != transaction_key(1, 0, 0));
}

SHARED_TEST(a_transaction_is_entered_once_until_it_was_left)
{
	uint64_t key = transaction_key(0, 3, 17);

	assert_true(transaction_enter(shared, key));
	transaction_leave(shared, transaction_key(0, 3, 18)); /* an unknown one */
	assert_false(transaction_enter(shared, key));
	assert_int_equal(used(shared), 1);
	transaction_leave(shared, key);
	assert_int_equal(used(shared), 0);
	assert_true(transaction_enter(shared, key));
}

SHARED_TEST(a_transaction_whose_bucket_is_full_goes_into_the_other)
{
	uint64_t key = transaction_key(0, 3, 17);

	assert_ptr_not_equal(transaction_bucket(shared, key, 0),
			     transaction_bucket(shared, key, 1));
	fill(shared, key, 0);
	assert_true(transaction_enter(shared, key));
	assert_true(atomic_load(transaction_bucket(shared, key, 1)) == key);
}

SHARED_TEST(a_transaction_is_found_in_the_other_bucket)
{
	uint64_t key = transaction_key(0, 3, 17);

	fill(shared, key, 0);
	assert_true(transaction_enter(shared, key));
	atomic_store(transaction_bucket(shared, key, 0), 0); /* one entry is free again */
	assert_false(transaction_enter(shared, key));
	transaction_leave(shared, key);
	assert_true(atomic_load(transaction_bucket(shared, key, 1)) == 0);
}

SHARED_TEST(a_transaction_whose_buckets_are_full_is_not_refused)
{
	uint64_t key = transaction_key(0, 3, 17);

	fill(shared, key, 0);
	fill(shared, key, 1);
	assert_true(transaction_enter(shared, key));
	assert_int_equal(used(shared), 2 * BUCKET_KEYS);
	transaction_leave(shared, key);
	assert_int_equal(used(shared), 2 * BUCKET_KEYS);
	atomic_store(transaction_bucket(shared, key, 1) + BUCKET_KEYS - 1, 0);
	assert_true(transaction_enter(shared, key));
	assert_false(transaction_enter(shared, key));
}

/* More than there is room for. */
SHARED_TEST(no_number_of_transactions_is_refused)
{
	unsigned int count = 2 * BUCKETS * BUCKET_KEYS;

	for (unsigned int i = 0; i < count; i++)
		assert_true(transaction_enter(shared, transaction_key(0, 3, 1000 + i)));
	for (unsigned int i = 0; i < count; i++)
		transaction_leave(shared, transaction_key(0, 3, 1000 + i));
	assert_int_equal(used(shared), 0);
}

SHARED_TEST(tens_of_thousands_are_in_flight_at_once)
{
	unsigned int count = 20000;

	for (unsigned int i = 0; i < count; i++) /* consecutive numbers, as programs use them */
		assert_true(transaction_enter(shared, transaction_key(i % 2, 3, 1000 + i)));
	assert_int_equal(used(shared), count);
	for (unsigned int i = 0; i < count; i++)
		assert_false(transaction_enter(shared, transaction_key(i % 2, 3, 1000 + i)));
	for (unsigned int i = 0; i < count; i++)
		transaction_leave(shared, transaction_key(i % 2, 3, 1000 + i));
	assert_int_equal(used(shared), 0);
}

SHARED_TEST(random_transactions_spread_as_well)
{
	uint64_t number = 1;

	for (unsigned int i = 0; i < 20000; i++) {
		number = number * 6364136223846793005ULL + 1442695040888963407ULL;
		/* a few are equal */
		if (!transaction_enter(shared, transaction_key(0, 3, (uint32_t)(number >> 32))))
			assert_in_range(used(shared), i - 5, i);
	}
	assert_in_range(used(shared), 19990, 20000);
}
