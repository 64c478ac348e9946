/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Deadlines: the next one is correct after any sequence of set, move and clear. TEST_SEED is
 * the seed.
 */

#include "engine/deadline.h"
#include "fake_device.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
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
		deadline_clear(&deadlines, due); /* not an error */
		count++;
	}
	assert_int_equal(count, COUNT);
	assert_int_equal(deadlines_next(&deadlines), NEVER);
	assert_null(deadlines_due(&deadlines, INT64_MAX - 1));
}

static void one_is_due_at_its_time_and_the_next_one_follows(void **state)
{
	(void)state;
	for (int i = 1; i <= 3; i++)
		deadline_set(&deadlines, &entries[i], i);
	for (int i = 1; i <= 3; i++) {
		assert_null(deadlines_due(&deadlines, i - 1));
		assert_ptr_equal(deadlines_due(&deadlines, i), &entries[i]);
		deadline_clear(&deadlines, &entries[i]);
	}
}

static void without_memory_no_room_is_promised(void **state)
{
	struct deadlines none = {0};

	(void)state;
	device_fail_malloc(1);
	assert_int_equal(deadlines_reserve(&none, 1), -ENOMEM);
	device_fail_malloc(0);
	assert_int_equal(none.room, 0);
}

static void room_grows_and_keeps_what_is_there(void **state)
{
	(void)state;
	deadline_set(&deadlines, &entries[3], 5);
	assert_int_equal(deadlines_reserve(&deadlines, 100000), 0);
	assert_true(deadlines.room > 100000);
	assert_int_equal(deadlines_next(&deadlines), 5);
}

/* The first place of the heap is not used. */
static void there_is_room_for_one_more_than_was_asked_for(void **state)
{
	struct deadlines some = {0};

	(void)state;
	for (unsigned count = 0; count < 200; count++) {
		assert_int_equal(deadlines_reserve(&some, count), 0);
		assert_true(some.room > count);
	}
	deadlines_free(&some);
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

static int64_t monotonic_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void the_clock_is_the_monotonic_one_in_microseconds(void **state)
{
	int64_t before = monotonic_us(), now = clock_us(), after = monotonic_us();

	(void)state;
	assert_true(before <= now);
	assert_true(now <= after);
}

static clockid_t waited_by;
static struct timespec waited_until;

/* These two replace the C library's functions. */
int pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attributes)
{
	*cond = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	return pthread_condattr_getclock(attributes, &waited_by);
}

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
			   const struct timespec *until)
{
	(void)cond;
	(void)lock;
	waited_until = *until;
	return ETIMEDOUT;
}

static void a_wait_ends_at_its_time_to_the_microsecond(void **state)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t cond;

	(void)state;
	clock_cond_init(&cond);
	assert_int_equal(waited_by, CLOCK_MONOTONIC);
	pthread_mutex_lock(&lock);
	clock_cond_wait(&cond, &lock, 7 * INT64_C(1000000) + 3);
	assert_int_equal(waited_until.tv_sec, 7);
	assert_int_equal(waited_until.tv_nsec, 3000);
	clock_cond_wait(&cond, &lock, 8 * INT64_C(1000000) - 1);
	assert_int_equal(waited_until.tv_sec, 7);
	assert_int_equal(waited_until.tv_nsec, 999999000);
	pthread_mutex_unlock(&lock);
	pthread_cond_destroy(&cond);
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
		DEADLINE_TEST(one_is_due_at_its_time_and_the_next_one_follows),
		DEADLINE_TEST(without_memory_no_room_is_promised),
		DEADLINE_TEST(room_grows_and_keeps_what_is_there),
		DEADLINE_TEST(there_is_room_for_one_more_than_was_asked_for),
		DEADLINE_TEST(milliseconds_are_rounded_up_and_limited),
		DEADLINE_TEST(the_clock_is_the_monotonic_one_in_microseconds),
		DEADLINE_TEST(a_wait_ends_at_its_time_to_the_microsecond),
		DEADLINE_TEST(the_clock_goes_forward),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
