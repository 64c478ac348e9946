/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Timers: the next one is correct after any sequence of set, move and clear. TEST_SEED is the
 * seed.
 */

#include "port/timers.h"
#include "fake_device.h"
#include "test.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define COUNT 500

static struct timers timers;
static struct timer entries[COUNT];

static int setup(void)
{
	timers = (struct timers){0};
	for (int i = 0; i < COUNT; i++)
		entries[i] = (struct timer){0};
	return timers_reserve(&timers, COUNT);
}

static int teardown(void)
{
	timers_release(&timers);
	return 0;
}

FIXTURE(setup, teardown);

TEST(the_next_one_is_known_whatever_happens)
{
	int64_t at[COUNT], first;

	srandom(test_seed());
	for (int i = 0; i < COUNT; i++)
		at[i] = NEVER;
	for (int i = 0; i < 20000; i++) {
		long n = random() % COUNT;

		at[n] = random() % 3 ? random() % 1000 : NEVER;
		if (at[n] == NEVER)
			timer_stop(&timers, &entries[n]);
		else
			timer_start(&timers, &entries[n], at[n]);
		first = NEVER;
		for (int j = 0; j < COUNT; j++)
			if (at[j] < first)
				first = at[j];
		assert_int_equal(timers_next(&timers), first);
	}
}

TEST(they_come_in_their_order)
{
	struct timer *due;
	int64_t last = -1;
	int count = 0;

	for (int i = 0; i < COUNT; i++)
		timer_start(&timers, &entries[i], i * 7919 % COUNT);
	assert_null(timers_due(&timers, -1));
	while ((due = timers_due(&timers, COUNT))) {
		assert_true(due->at >= last);
		last = due->at;
		timer_stop(&timers, due);
		timer_stop(&timers, due); /* not an error */
		count++;
	}
	assert_int_equal(count, COUNT);
	assert_int_equal(timers_next(&timers), NEVER);
	assert_null(timers_due(&timers, INT64_MAX - 1));
}

TEST(one_is_due_at_its_time_and_the_next_one_follows)
{
	for (int i = 1; i <= 3; i++)
		timer_start(&timers, &entries[i], i);
	for (int i = 1; i <= 3; i++) {
		assert_null(timers_due(&timers, i - 1));
		assert_ptr_equal(timers_due(&timers, i), &entries[i]);
		timer_stop(&timers, &entries[i]);
	}
}

TEST(without_memory_no_room_is_promised)
{
	struct timers none = {0};

	device_fail_malloc(1);
	assert_int_equal(timers_reserve(&none, 1), -ENOMEM);
	device_fail_malloc(0);
	assert_int_equal(timers_reserve(&none, 1), 0);
	timer_start(&none, &entries[0], 7);
	assert_int_equal(timers_next(&none), 7);
	timers_release(&none);
}

TEST(room_grows_and_keeps_what_is_there)
{
	timer_start(&timers, &entries[3], 5);
	assert_int_equal(timers_reserve(&timers, 100000), 0);
	assert_int_equal(timers_next(&timers), 5);
	assert_ptr_equal(timers_due(&timers, 5), &entries[3]);
}

/* AddressSanitizer and valgrind check that there is room. */
TEST(room_is_for_as_many_as_were_asked_for)
{
	struct timers some = {0};

	for (unsigned count = 1; count <= COUNT; count++) {
		assert_int_equal(timers_reserve(&some, count), 0);
		timer_start(&some, &entries[count - 1], count);
	}
	assert_int_equal(timers_next(&some), 1);
	timers_release(&some);
}

TEST(milliseconds_are_rounded_up_and_limited)
{
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

TEST(the_clock_is_the_monotonic_one_in_microseconds)
{
	int64_t before = monotonic_us(), now = clock_us(), after = monotonic_us();

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

TEST(a_wait_ends_at_its_time_to_the_microsecond)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t cond;

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

TEST(the_clock_goes_forward)
{
	int64_t before = clock_us();

	for (int i = 0; i < 1000; i++) {
		int64_t now = clock_us();

		assert_true(now >= before);
		before = now;
	}
}
