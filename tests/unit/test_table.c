/* SPDX-License-Identifier: BSD-2-Clause */

/* The table of transmissions in flight, by ID. */

#include "fake_device.h"
#include "engine/table.h"

#include <infiniband/mad.h>
#include <string.h>

#define COUNT 1000

static struct table table;
static struct transmission transmissions[COUNT];

static int setup(void **state)
{
	memset(transmissions, 0, sizeof(transmissions));
	table_init(&table);
	return device_setup(state);
}

static int teardown(void **state)
{
	table_free(&table);
	return device_teardown(state);
}

#define TABLE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void each_is_found_by_its_id_alone(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < COUNT; i++) {
		table_reserve(&table, table.count + 1);
		table_add(&table, &transmissions[i], 1 + i * 16);
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_ptr_equal(table_find(&table, 1 + i * 16), &transmissions[i]);
		assert_null(table_find_next(&transmissions[i]));
		assert_null(table_find(&table, 2 + i * 16));
	}
	for (uint32_t i = 0; i < COUNT; i += 2)
		table_remove(&table, &transmissions[i]);
	table_remove(&table, &transmissions[0]); /* it is not in the table */
	assert_int_equal(table.count, COUNT / 2);
	for (uint32_t i = 0; i < COUNT; i++)
		assert_ptr_equal(table_find(&table, 1 + i * 16),
				 i & 1 ? &transmissions[i] : NULL);
}

static void those_with_one_id_are_found_one_after_another(void **state)
{
	struct transmission *first, *second;

	(void)state;
	for (int i = 0; i < 40; i++)
		table_add(&table, &transmissions[i], 3 + 16 * (uint32_t)(i % 20));
	for (uint32_t i = 0; i < 20; i++) {
		first = table_find(&table, 3 + 16 * i);
		assert_non_null(first);
		second = table_find_next(first);
		assert_non_null(second);
		assert_int_equal(second->tid, first->tid);
		assert_ptr_not_equal(first, second);
		assert_null(table_find_next(second));
	}
}

static void any_is_one_of_them_until_there_is_none(void **state)
{
	struct transmission *transmission;
	unsigned count = 0;

	(void)state;
	for (uint32_t i = 0; i < 100; i++)
		table_add(&table, &transmissions[i], 77 + i);
	while ((transmission = table_any(&table))) {
		table_remove(&table, transmission);
		count++;
	}
	assert_int_equal(count, 100);
	assert_int_equal(table.count, 0);
}

static void it_grows_to_the_next_power_of_two_and_only_if_it_is_too_small(void **state)
{
	unsigned allocations = device_allocations();

	(void)state;
	table_reserve(&table, TABLE_FIRST_BUCKETS);
	assert_int_equal(table.bucket_count, TABLE_FIRST_BUCKETS);
	assert_int_equal(device_allocations(), allocations);
	table_reserve(&table, TABLE_FIRST_BUCKETS + 1);
	assert_int_equal(table.bucket_count, 2 * TABLE_FIRST_BUCKETS);
	table_reserve(&table, 5 * TABLE_FIRST_BUCKETS);
	assert_int_equal(table.bucket_count, 8 * TABLE_FIRST_BUCKETS);
	assert_int_equal(device_allocations(), allocations + 2);
}

static void after_it_was_freed_it_is_as_new(void **state)
{
	(void)state;
	table_reserve(&table, COUNT);
	table_free(&table);
	assert_int_equal(table.bucket_count, TABLE_FIRST_BUCKETS);
	table_add(&table, &transmissions[0], TABLE_FIRST_BUCKETS - 1);
	assert_ptr_equal(table_any(&table), &transmissions[0]);
}

static void without_memory_it_goes_on_as_it_is(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		device_fail_malloc(1);
		table_reserve(&table, table.count + 1);
		table_add(&table, &transmissions[i], 1 + i);
	}
	device_fail_malloc(0);
	assert_int_equal(table.bucket_count, TABLE_FIRST_BUCKETS);
	for (uint32_t i = 0; i < 100; i++)
		assert_ptr_equal(table_find(&table, 1 + i), &transmissions[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TABLE_TEST(each_is_found_by_its_id_alone),
		TABLE_TEST(those_with_one_id_are_found_one_after_another),
		TABLE_TEST(any_is_one_of_them_until_there_is_none),
		TABLE_TEST(it_grows_to_the_next_power_of_two_and_only_if_it_is_too_small),
		TABLE_TEST(after_it_was_freed_it_is_as_new),
		TABLE_TEST(without_memory_it_goes_on_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
