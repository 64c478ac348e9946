/* SPDX-License-Identifier: BSD-2-Clause */

/* A rate of MADs a second, with a separate clock. */

#include "engine/pace.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#define SECOND INT64_C(1000000)

static int64_t now = 5000 * SECOND;

/* Sends the MADs that the rate permits by then; returns how many. */
static unsigned send_until(struct pace *pace, int64_t until)
{
	unsigned count = 0;

	while (now < until) {
		if (pace_opens(pace) > now) {
			now = pace_opens(pace);
			continue;
		}
		pace_sent(pace, now);
		count++;
	}
	now = until;
	return count;
}

/* Sends the MADs that the rate permits at once. */
static unsigned burst(struct pace *pace)
{
	unsigned count;

	for (count = 0; pace_opens(pace) <= now; count++)
		pace_sent(pace, now);
	return count;
}

static void no_more_are_sent_than_the_rate_and_a_burst(void **state)
{
	const unsigned rates[] = {1, 7, 999, 1000, 1001, 30000, 123456, 1000000};

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		struct pace pace = {.rate = rates[i]};
		unsigned most = rates[i] + rates[i] / 1000 + 1;

		/* nor are they much fewer */
		assert_in_range(send_until(&pace, now + SECOND), rates[i] - rates[i] / 1000,
				most);
	}
}

static void a_burst_is_what_a_millisecond_allows(void **state)
{
	struct pace pace = {.rate = 100000};

	(void)state;
	assert_int_equal(burst(&pace), 101);
	now += 50;
	assert_int_equal(burst(&pace), 5);
}

static void what_was_not_used_is_lost_but_for_a_burst(void **state)
{
	struct pace pace = {.rate = 100000};

	(void)state;
	burst(&pace);
	now += 3600 * SECOND;
	assert_int_equal(burst(&pace), 101);
}

static void without_a_rate_there_is_no_limit(void **state)
{
	struct pace pace = {0};

	(void)state;
	for (int i = 0; i < 100000; i++) {
		assert_int_equal(pace_opens(&pace), 0);
		pace_sent(&pace, now);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_more_are_sent_than_the_rate_and_a_burst),
		cmocka_unit_test(a_burst_is_what_a_millisecond_allows),
		cmocka_unit_test(what_was_not_used_is_lost_but_for_a_burst),
		cmocka_unit_test(without_a_rate_there_is_no_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
