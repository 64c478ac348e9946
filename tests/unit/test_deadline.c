/* SPDX-License-Identifier: BSD-2-Clause */

/* Deadlines: the next one is known, whatever was set, moved and cleared. TEST_SEED is the seed.
 */

#include "engine/deadline.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <setjmp.h>
#include <time.h>
#include <cmocka.h>

#define COUNT 500

static struct deadlines deadlines;
static struct deadline entries[COUNT];

static int setup(void **state)
{
	(void)state;
	deadlines = (struct deadlines){0};
	for (int i = 0; i < COUNT; i++)
		entries[i] = (struct deadline){0};
	return deadlines_reserve(&deadlines, COUNT);
}

static int teardown(void **state)
{
	(void)state;
	deadlines_free(&deadlines);
	return 0;
}

#define DEADLINE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static int64_t earliest(void)
{
	int64_t at = NEVER;

	for (int i = 0; i < COUNT; i++)
		if (entries[i].place && entries[i].at < at)
			at = entries[i].at;
	return at;
}

static void the_next_one_is_known_whatever_happens(void **state)
{
	const char *seed = getenv("TEST_SEED");
	unsigned value = seed ? (unsigned)strtoul(seed, NULL, 0) : (unsigned)time(NULL),
		 count = 0;

	(void)state;
	print_message("TEST_SEED=%u\n", value);
	srandom(value);
	for (int i = 0; i < 20000; i++) {
		struct deadline *entry = &entries[random() % COUNT];

		count -= entry->place != 0;
		if (random() % 3)
			deadline_set(&deadlines, entry, random() % 1000);
		else
			deadline_clear(&deadlines, entry);
		count += entry->place != 0;
		assert_int_equal(deadlines.count, count);
		assert_int_equal(deadlines_next(&deadlines), earliest());
	}
}

static void they_come_in_their_order(void **state)
{
	struct deadline *due;
	int64_t last = -1;
	int count = 0;

	(void)state;
	for (int i = 0; i < COUNT; i++)
		deadline_set(&deadlines, &entries[i], i * 7919 % COUNT);
	assert_null(deadlines_due(&deadlines, -1));
	while ((due = deadlines_due(&deadlines, COUNT))) {
		assert_true(due->at >= last);
		last = due->at;
		deadline_clear(&deadlines, due);
		deadline_clear(&deadlines, due); /* that is no mistake */
		count++;
	}
	assert_int_equal(count, COUNT);
	assert_int_equal(deadlines_next(&deadlines), NEVER);
	assert_null(deadlines_due(&deadlines, INT64_MAX - 1));
}

static void room_grows_and_keeps_what_is_there(void **state)
{
	(void)state;
	deadline_set(&deadlines, &entries[3], 5);
	assert_int_equal(deadlines_reserve(&deadlines, 100000), 0);
	assert_true(deadlines.room > 100000);
	assert_int_equal(deadlines_next(&deadlines), 5);
}

static void milliseconds_are_rounded_up_and_limited(void **state)
{
	(void)state;
	assert_int_equal(ms_until(1000, 0, 100), 1);
	assert_int_equal(ms_until(1001, 0, 100), 2);
	assert_int_equal(ms_until(1, 0, 100), 1);
	assert_int_equal(ms_until(0, 0, 100), 0);
	assert_int_equal(ms_until(0, 5000, 100), 0);
	assert_int_equal(ms_until(INT64_MIN + 10, 5, 100), 0);
	assert_int_equal(ms_until(100000, 0, 100), 100);
	assert_int_equal(ms_until(100001, 0, 100), 100);
	assert_int_equal(ms_until(NEVER, 5, INT_MAX), INT_MAX);
	assert_int_equal(ms_until(5000, 0, 0), 0);
}

static void the_clock_goes_forward(void **state)
{
	int64_t before = clock_us();

	(void)state;
	for (int i = 0; i < 1000; i++) {
		int64_t now = clock_us();

		assert_true(now >= before);
		before = now;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DEADLINE_TEST(the_next_one_is_known_whatever_happens),
		DEADLINE_TEST(they_come_in_their_order),
		DEADLINE_TEST(room_grows_and_keeps_what_is_there),
		DEADLINE_TEST(milliseconds_are_rounded_up_and_limited),
		DEADLINE_TEST(the_clock_goes_forward),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
