/* SPDX-License-Identifier: BSD-2-Clause */

/* How many requests may be under way: growth, losses, limits. */

#include "engine/window.h"

#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#define START   8
#define LARGEST 256

static struct window window;

static int setup(void **state)
{
	(void)state;
	window_init(&window, START, LARGEST);
	return 0;
}

#define WINDOW_TEST(name) cmocka_unit_test_setup(name, setup)

static void answer(unsigned count)
{
	while (count--)
		window_response(&window);
}

static void lose(unsigned count)
{
	while (count--)
		window_lost(&window);
}

static void it_doubles_each_round_trip_up_to_its_largest(void **state)
{
	(void)state;
	for (unsigned size = START; size < LARGEST; size *= 2) {
		assert_int_equal(window.size, size);
		answer(size - 1);
		assert_int_equal(window.size, size);
		answer(1);
	}
	assert_int_equal(window.size, LARGEST);
	answer(10000);
	assert_int_equal(window.size, LARGEST);
}

static void it_halves_when_a_good_part_gets_lost_and_no_further_than_its_smallest(void **state)
{
	unsigned size;

	(void)state;
	answer(START + 2 * START + 4 * START);
	size = window.size;
	assert_int_equal(size, 64);
	answer(32);
	lose(32);
	assert_int_equal(window.size, 32);
	for (int i = 0; i < 1000; i++)
		lose(1);
	assert_int_equal(window.size, window.smallest);
	assert_true(window.size > 0);
}

static void after_a_loss_it_grows_by_steps(void **state)
{
	unsigned size;

	(void)state;
	answer(START + 2 * START + 4 * START);
	answer(32);
	lose(32);
	size = window.size;
	answer(64);
	assert_true(window.size > size);
	assert_true(window.size < 2 * size);
	answer(100000);
	assert_int_equal(window.size, LARGEST);
}

static void a_few_losses_change_nothing(void **state)
{
	(void)state;
	lose(START);
	assert_int_equal(window.size, START);
	answer(64 - START);
	/* an eighth: it may grow */
	assert_true(window.size > START);
	setup(state);
	answer(52);
	window.size = 64;
	window.responses = 51;
	lose(13);
	assert_int_equal(window.size, 64); /* a fifth: it stays */
}

static void a_fixed_one_stays(void **state)
{
	const unsigned sizes[] = {1, 2, 3, 1000000, UINT_MAX};

	(void)state;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		window_fix(&window, sizes[i], LARGEST);
		answer(1000);
		assert_int_equal(window.size, sizes[i]);
		lose(1000);
		assert_int_equal(window.size, sizes[i]);
	}
	window_fix(&window, 0, LARGEST);
	assert_int_equal(window.size, START);
	answer(START);
	assert_int_equal(window.size, 2 * START);
}

static void it_is_open_while_fewer_are_in_flight(void **state)
{
	(void)state;
	window.in_flight = START - 1;
	assert_true(window_open(&window));
	window.in_flight = START;
	assert_false(window_open(&window));
	window_fix(&window, START + 1, LARGEST);
	assert_int_equal(window.in_flight, START); /* these are not forgotten */
	assert_true(window_open(&window));
	window_fix(&window, 1, LARGEST);
	assert_false(window_open(&window));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WINDOW_TEST(it_doubles_each_round_trip_up_to_its_largest),
		WINDOW_TEST(
			it_halves_when_a_good_part_gets_lost_and_no_further_than_its_smallest),
		WINDOW_TEST(after_a_loss_it_grows_by_steps),
		WINDOW_TEST(a_few_losses_change_nothing),
		WINDOW_TEST(a_fixed_one_stays),
		WINDOW_TEST(it_is_open_while_fewer_are_in_flight),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
