/* SPDX-License-Identifier: BSD-2-Clause */

/* Round trip times, and the timeout computed from them. */

#include "engine/rtt.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#define FLOOR   4000
#define INITIAL 100000

static void at_first_it_is_the_initial_one(void **state)
{
	struct rtt rtt = {.floor_us = FLOOR, .initial_us = INITIAL};

	(void)state;
	assert_int_equal(rtt_timeout(&rtt), INITIAL);
}

static void the_first_sample_counts_three_times(void **state)
{
	struct rtt rtt = {.floor_us = FLOOR, .initial_us = INITIAL};

	(void)state;
	rtt_sample(&rtt, 10000);
	assert_int_equal(rtt_timeout(&rtt), 30000); /* RFC 6298: SRTT + 4 * RTTVAR */
}

/* SRTT changes by an eighth of the difference, RTTVAR by a quarter of its own difference. */
static void each_later_sample_counts_as_rfc_6298_says(void **state)
{
	static const struct {
		uint32_t us, timeout;
	} seconds[] = {
		{10000, 10000 + 4 * 3750},
		{12000, 10250 + 4 * 4250},
		{2000, 9000 + 4 * 5750},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(seconds) / sizeof(*seconds); i++) {
		struct rtt rtt = {0};

		rtt_sample(&rtt, 10000);
		rtt_sample(&rtt, seconds[i].us);
		assert_int_equal(rtt_timeout(&rtt), seconds[i].timeout);
	}
}

static void no_time_counts_as_a_microsecond(void **state)
{
	struct rtt rtt = {.initial_us = INITIAL};

	(void)state;
	rtt_sample(&rtt, 0);
	assert_int_equal(rtt_timeout(&rtt), 3);
}

static void it_comes_near_to_a_steady_time_and_no_nearer_than_the_floor(void **state)
{
	struct rtt rtt = {.floor_us = FLOOR, .initial_us = INITIAL};

	(void)state;
	for (int i = 0; i < 200; i++)
		rtt_sample(&rtt, 20000);
	assert_in_range(rtt_timeout(&rtt), 20000, 20100);
	for (int i = 0; i < 200; i++)
		rtt_sample(&rtt, 10);
	assert_int_equal(rtt_timeout(&rtt), FLOOR);
}

static void what_varies_has_more_time(void **state)
{
	struct rtt steady = {.floor_us = 1}, varying = {.floor_us = 1};

	(void)state;
	for (uint32_t i = 0; i < 500; i++) {
		rtt_sample(&steady, 20000);
		rtt_sample(&varying, i & 1 ? 10000 : 30000);
	}
	assert_true(rtt_timeout(&varying) > rtt_timeout(&steady) + 10000);
	assert_true(rtt_timeout(&varying) > 30000);
}

static void no_sample_makes_it_overflow(void **state)
{
	const uint32_t samples[] = {0, UINT32_MAX, 1, UINT32_MAX, 0, 0, 5, INT32_MAX};
	struct rtt rtt = {.floor_us = FLOOR, .initial_us = INITIAL};

	(void)state;
	for (int i = 0; i < 1000; i++) {
		rtt_sample(&rtt, samples[i % 8]);
		/* longer times count as ten seconds */
		assert_in_range(rtt_timeout(&rtt), FLOOR, 5 * 10000000);
	}
	for (int i = 0; i < 1000; i++)
		rtt_sample(&rtt, 0);
	assert_int_equal(rtt_timeout(&rtt), FLOOR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(at_first_it_is_the_initial_one),
		cmocka_unit_test(the_first_sample_counts_three_times),
		cmocka_unit_test(each_later_sample_counts_as_rfc_6298_says),
		cmocka_unit_test(no_time_counts_as_a_microsecond),
		cmocka_unit_test(it_comes_near_to_a_steady_time_and_no_nearer_than_the_floor),
		cmocka_unit_test(what_varies_has_more_time),
		cmocka_unit_test(no_sample_makes_it_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
