/* SPDX-License-Identifier: BSD-2-Clause */

/* How many requests may be in flight: rounds, delay, losses, silence; with a separate clock. */

#include "engine/window.h"

#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#define START   8
#define LARGEST 256
#define RTT     100
#define LATE    4000
#define MS      INT64_C(1000)

/* A MAD in flight. */
struct mad {
	struct window_mark mark;
	int64_t sent;
};

static struct window window;
static struct mad in_flight[1024]; /* the oldest first */
static unsigned count;
static int64_t now;

static int setup(void **state)
{
	(void)state;
	window_init(&window, START, LARGEST);
	count = 0;
	now = 1000000000;
	return 0;
}

#define WINDOW_TEST(name) cmocka_unit_test_setup(name, setup)

static void send(void)
{
	in_flight[count].sent = now;
	window_sent(&window, &in_flight[count++].mark, now);
}

static bool is_open(void)
{
	return window_has_room(&window) && window.opens <= now;
}

/* Sends as many MADs as the window allows; returns how many. */
static unsigned fill(void)
{
	unsigned before = count;

	while (is_open())
		send();
	return count - before;
}

static struct mad take(unsigned n)
{
	struct mad mad = in_flight[n];

	count--;
	for (; n < count; n++)
		in_flight[n] = in_flight[n + 1];
	return mad;
}

static void respond(unsigned n)
{
	struct mad mad = take(n);

	window_response(&window, mad.mark, (uint32_t)(now - mad.sent), true, false, now);
}

static void be_late(unsigned n)
{
	struct mad mad = take(n);

	window_late(&window, mad.mark, mad.sent, now);
}

static void respond_to_all(void)
{
	while (count)
		respond(0);
}

/* A full window, with a response to each MAD after this time. */
static void go_round(int64_t rtt)
{
	fill();
	now += rtt;
	respond_to_all();
}

/* A full window: a queue drops the MADs beyond "room", and one MAD in "lossy" is lost. */
static void go_round_with(unsigned room, unsigned lossy)
{
	static unsigned dropped;
	unsigned sent, late = 0;

	while (is_open()) {
		send();
		now++;
	}
	sent = count;
	now += RTT;
	for (unsigned i = 0; i < sent; i++)
		if (i >= room || (lossy && dropped++ % lossy == 0))
			late++;
		else
			respond(late);
	now += LATE;
	while (count)
		be_late(0);
	/* a response to a later MAD ends a silence */
	if (window.silent) {
		fill();
		now += RTT;
		respond_to_all();
	}
}

static void go_rounds(unsigned rounds, int64_t rtt)
{
	while (rounds--)
		go_round(rtt);
}

/* --- growth --------------------------------------------------------------------- */

static void it_grows_by_a_third_each_round_and_later_by_a_sixth(void **state)
{
	const unsigned sizes[] = {11, 15, 21, 29, 39, 46, 54};

	(void)state;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		go_round(RTT);
		assert_int_equal(window.size, sizes[i]);
	}
	go_rounds(20, RTT);
	assert_int_equal(window.size, LARGEST);
}

static void from_a_size_of_32_on_a_window_grows_by_a_sixth(void **state)
{
	(void)state;
	window_init(&window, 31, LARGEST);
	go_round(RTT);
	assert_int_equal(window.size, 31 + 31 / 3 + 1);
	window_init(&window, 32, LARGEST);
	go_round(RTT);
	assert_int_equal(window.size, 32 + 32 / 6 + 1);
}

static void during_the_other_window_s_trial_it_is_halved_and_stays_so(void **state)
{
	struct window other;

	(void)state;
	window_init(&other, START, LARGEST);
	go_rounds(5, RTT);
	assert_int_equal(window.size, 39);
	window_hush(&window);
	assert_int_equal(window.size, 19);
	go_rounds(10, RTT);
	assert_int_equal(window.size, 19);
	window_unhush(&window, &other);
	assert_int_equal(window.size, 39);
	go_round(RTT);
	assert_true(window.size > 39);
}

static void a_round_of_the_other_window_s_trial_tells_nothing_after_it(void **state)
{
	struct window other;

	(void)state;
	window_init(&other, START, LARGEST);
	go_rounds(5, RTT);
	window_hush(&window);
	fill();
	now += RTT;
	window_unhush(&window, &other);
	respond_to_all();
	assert_int_equal(window.size, 39);
}

static void a_round_from_before_the_other_window_s_trial_tells_nothing_in_it(void **state)
{
	(void)state;
	go_rounds(5, RTT);
	assert_int_equal(window.size, 39);
	fill();
	now += 10 * MS;
	while (count > 19)
		respond(0);
	window_hush(&window);
	respond_to_all();
	/* so this is the first long round */
	go_round(10 * MS);
	assert_int_equal(window.size, 19);
	go_round(10 * MS);
	assert_true(window.size < 19);
}

static void in_the_other_window_s_trial_losses_do_not_count(void **state)
{
	(void)state;
	window_hush(&window);
	send();
	assert_int_equal(in_flight[0].mark.period, 0);
}

static void what_filled_a_queue_in_the_other_window_s_trial_filled_it_here(void **state)
{
	struct window other;

	(void)state;
	window_init(&other, START, LARGEST);
	other.verdict = LOSS_QUEUE;
	go_rounds(5, RTT);
	assert_int_equal(window.size, 39);
	window_hush(&window);
	window_unhush(&window, &other);
	assert_int_equal(window.size, 30); /* three quarters */
	go_round(RTT);
	assert_int_equal(window.size, 30);
}

static void each_full_queue_doubles_the_responses_until_a_window_grows(void **state)
{
	const unsigned cautions[] = {48, 96, 192, 384, 512, 512};
	struct window other;

	(void)state;
	window_init(&other, START, LARGEST);
	other.verdict = LOSS_QUEUE;
	for (unsigned i = 0; i < 6; i++) {
		window_hush(&window);
		window_unhush(&window, &other);
		assert_int_equal(window.caution, cautions[i]);
	}
}

static void after_a_full_queue_a_window_is_smaller_than_what_the_queue_let_through(void **state)
{
	/* of 39: seven eighths of what was not late, or three quarters of all */
	const unsigned percents[] = {50, 25, 15, 10}, sizes[] = {17, 26, 29, 30};
	struct window other;

	for (unsigned i = 0; i < 4; i++) {
		setup(state);
		window_init(&other, START, LARGEST);
		other.verdict = LOSS_QUEUE;
		other.losses.share_before = LOSS_ONE * percents[i] / 100;
		go_rounds(5, RTT);
		assert_int_equal(window.size, 39);
		window_hush(&window);
		window_unhush(&window, &other);
		assert_int_equal(window.size, sizes[i]);
	}
}

static void the_other_window_s_trial_does_not_halve_a_small_one(void **state)
{
	(void)state;
	window_init(&window, 4, LARGEST);
	window_hush(&window);
	assert_int_equal(window.size, 4);
}

static void what_was_late_before_the_other_window_s_trial_does_not_count_after_it(void **state)
{
	(void)state;
	while (is_open()) {
		send();
		now++;
	}
	now += LATE;
	respond(count - 1);
	be_late(0);
	assert_false(window.silent);
	assert_int_equal(window.losses.late, 1);
	window_hush(&window);
	assert_int_equal(window.losses.late, 0);
}

static void a_trial_of_the_other_window_that_ends_in_silence_leaves_the_size_as_it_was(
	void **state)
{
	struct window other;

	(void)state;
	window_init(&other, START, LARGEST);
	go_rounds(5, RTT);
	assert_int_equal(window.size, 39);
	window_hush(&window);
	fill();
	now += LATE;
	be_late(0);
	assert_true(window.silent);
	window_unhush(&window, &other);
	assert_int_equal(window.size, 2);
	respond_to_all();
	assert_false(window.silent);
	assert_int_equal(window.size, 39);
}

static void a_late_mad_that_has_a_response_after_all_was_not_lost(void **state)
{
	struct mad mad;

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		fill();
		now += LATE;
		mad = in_flight[0];
		respond(1);
		be_late(0);
		assert_false(window_found(&window, mad.mark.period));
		window_response(&window, mad.mark, LATE, false, false, now);
		respond_to_all();
	}
	assert_false(window.losses.trial);
	assert_int_equal(window.losses.link_share, 0);
	assert_int_equal(window.losses.queue, 0);
}

/* Requests are late, except the latest ones, until a trial begins. Returns their period. */
static uint8_t begin_trial(void)
{
	uint8_t period = window.losses.period;

	while (is_open()) {
		send();
		now++;
	}
	now += LATE;
	respond(count - 1);
	while (!window.losses.trial)
		be_late(0);
	respond_to_all();
	return period;
}

/* A trial, with the verdict that a queue was full. Returns the period that was judged. */
static uint8_t find_a_full_queue(void)
{
	uint8_t period = begin_trial();

	while (window.losses.trial)
		go_round(RTT);
	return period;
}

/* All late MADs have a response after all. Returns how often a response was unexpected. */
static unsigned find_all(uint8_t period)
{
	unsigned news = 0;

	for (unsigned i = 0; i < window.losses.late_before; i++)
		news += window_found(&window, period);
	return news;
}

static void a_verdict_that_did_not_hold_is_not_followed(void **state)
{
	struct window other;
	uint8_t period;

	(void)state;
	window_init(&other, START, LARGEST);
	go_rounds(5, RTT);
	period = find_a_full_queue();
	assert_int_equal(window.verdict, LOSS_QUEUE);
	assert_int_equal(find_all(period), 1);
	window_hush(&other);
	window_unhush(&other, &window);
	assert_int_equal(other.size, START);
}

static void a_trial_ends_if_what_was_late_has_a_response_after_all(void **state)
{
	unsigned size;
	uint8_t period;

	(void)state;
	go_rounds(5, RTT);
	size = window.size;
	period = begin_trial();
	assert_int_equal(window.size, size / 2);
	assert_int_equal(find_all(period), 0);
	assert_false(window.losses.trial);
	assert_int_equal(window.losses.ended, 0);
	assert_int_equal(window.size, size);
	go_rounds(2, RTT);
	assert_true(window.size > size);
}

static void round_trips_of_a_trial_without_a_reason_tell_nothing(void **state)
{
	unsigned size;
	uint8_t period;

	(void)state;
	go_rounds(5, RTT);
	size = window.size;
	period = begin_trial();
	fill();
	now += 10 * MS;
	assert_int_equal(find_all(period), 0);
	respond_to_all();
	/* so this is the first long round */
	go_round(10 * MS);
	assert_int_equal(window.size, size);
	go_round(10 * MS);
	assert_true(window.size < size);
}

static void a_round_from_before_a_trial_tells_nothing_in_it(void **state)
{
	(void)state;
	go_rounds(5, RTT);
	begin_trial();
	assert_int_equal(window.size, 39 / 2);
	/* so this is the first long round */
	go_round(10 * MS);
	assert_int_equal(window.size, 39 / 2);
}

static void a_trial_does_not_halve_a_small_window(void **state)
{
	(void)state;
	window_init(&window, 4, LARGEST);
	begin_trial();
	assert_int_equal(window.size, 4);
	window_init(&window, 5, LARGEST);
	begin_trial();
	assert_int_equal(window.size, 2);
}

static void a_reduction_is_undone_if_what_was_late_has_a_response_after_all(void **state)
{
	unsigned size, caution;
	uint8_t period;

	(void)state;
	go_rounds(5, RTT);
	size = window.size;
	caution = window.caution;
	period = find_a_full_queue();
	assert_true(window.size < size && window.caution > caution);
	assert_true(window.losses.queue > 0);
	assert_int_equal(find_all(period), 1);
	window_undo(&window);
	assert_int_equal(window.size, size);
	assert_int_equal(window.caution, caution);
	assert_int_equal(window.losses.queue, 0);
	go_round(RTT);
	assert_true(window.size > size);
	/* once: it grows on */
	size = window.size;
	go_round(RTT);
	window_undo(&window);
	assert_int_equal(window.size, size);
	go_round(RTT);
	assert_true(window.size > size);
}

static void round_trips_from_before_a_reduction_is_undone_tell_nothing(void **state)
{
	unsigned size;
	uint8_t period;

	(void)state;
	go_rounds(5, RTT);
	size = window.size;
	period = find_a_full_queue();
	fill();
	assert_int_equal(find_all(period), 1);
	window_undo(&window);
	now += 10 * MS;
	respond_to_all();
	/* so this is the first long round */
	go_round(10 * MS);
	assert_int_equal(window.size, size);
}

static void growth_after_a_full_queue_needs_a_quarter_fewer_responses_each_time(void **state)
{
	unsigned size;

	(void)state;
	go_rounds(5, RTT);
	find_a_full_queue();
	assert_int_equal(window.caution, 48);
	size = window.size;
	while (window.size == size)
		go_round(RTT);
	assert_int_equal(window.size, size + size / 16 + 1);
	assert_int_equal(window.caution, 36);
}

static void a_reduction_stays_if_some_of_it_was_lost(void **state)
{
	unsigned size;
	uint8_t period;

	(void)state;
	go_rounds(5, RTT);
	period = find_a_full_queue();
	size = window.size;
	for (unsigned i = 0; i < window.losses.late_before / 2; i++)
		assert_false(window_found(&window, period));
	assert_int_equal(window.size, size);
}

static void a_reduction_that_is_undone_in_silence_is_undone_after_it(void **state)
{
	unsigned size;
	uint8_t period;

	(void)state;
	go_rounds(5, RTT);
	size = window.size;
	period = find_a_full_queue();
	fill();
	now += LATE;
	be_late(0);
	assert_true(window.silent);
	assert_int_equal(find_all(period), 1);
	window_undo(&window);
	assert_true(window.size <= 2);
	respond_to_all();
	assert_false(window.silent);
	assert_int_equal(window.size, size);
}

static void without_a_reduction_there_is_nothing_to_undo(void **state)
{
	(void)state;
	go_rounds(2, RTT);
	assert_int_equal(window.size, 15);
	window_undo(&window);
	go_round(RTT);
	assert_int_equal(window.size, 21);
}

static void it_does_not_grow_while_nothing_uses_it(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 5000; i++) {
		send();
		now += RTT;
		respond_to_all();
	}
	assert_int_equal(window.size, START);
}

static void it_does_not_grow_while_a_part_of_a_round_is_open(void **state)
{
	(void)state;
	fill();
	now += RTT;
	for (unsigned i = 0; i < 100; i++) {
		/* two of the round stay open; the others are completed and replaced */
		while (count > 2)
			respond(2);
		fill();
		now += RTT;
	}
	assert_int_equal(window.size, START);
}

/* A round: two of eight MADs are late. */
static void lose_two(uint32_t link_share)
{
	setup(NULL);
	window.losses.link_share = link_share;
	while (is_open()) {
		send();
		now++;
	}
	now += RTT;
	respond(7);
	be_late(0);
	be_late(0);
	respond_to_all();
}

static void a_window_does_not_grow_if_more_is_late_than_links_lose(void **state)
{
	(void)state;
	lose_two(0);
	assert_int_equal(window.size, START);
	lose_two(LOSS_ONE / 4);
	assert_int_equal(window.size, 11);
}

static void a_window_knows_when_the_latest_mad_was_sent(void **state)
{
	(void)state;
	go_round(RTT);
	send();
	assert_int_equal(window.latest, now);
	now += RTT;
	respond(0);
	assert_int_equal(window.latest, now - RTT);
}

static void a_slow_node_holds_no_round_up(void **state)
{
	(void)state;
	fill();
	now += RTT;
	while (count > 1)
		respond(1);
	assert_true(window.size > START);
}

static void the_number_of_a_round_is_not_zero_and_returns_as_late_as_can_be(void **state)
{
	unsigned latest[UINT8_MAX + 1] = {0};
	uint8_t round;

	(void)state;
	for (unsigned i = 1; i <= 1000; i++) {
		fill();
		round = in_flight[0].mark.round;
		assert_int_not_equal(round, 0);
		if (i > UINT8_MAX)
			assert_int_equal(latest[round], i - UINT8_MAX);
		latest[round] = i;
		now += RTT;
		respond_to_all();
	}
}

static void a_round_without_a_duration_leaves_the_rate_as_it_was(void **state)
{
	uint32_t rate;

	(void)state;
	go_round(1);
	rate = window.rate;
	assert_int_equal(rate, (START - 1) * 1000000);
	go_round(0);
	assert_int_equal(window.rate, rate);
}

/* --- delay ---------------------------------------------------------------------- */

static void it_shrinks_to_what_is_delivered_when_all_round_trips_grow(void **state)
{
	unsigned before;

	(void)state;
	go_rounds(10, RTT);
	before = window.size;
	go_round(10 * MS);
	assert_int_equal(window.size, before); /* perhaps a process did not run */
	go_round(10 * MS);
	assert_int_equal(window.size, before - before / 4); /* at most a quarter */
	go_rounds(100, 10 * MS);
	assert_in_range(window.size, window.smallest, START);
	assert_int_equal(window_shortest_rtt(&window), RTT);
}

/* A round of 88 is judged at 77 responses; 40 ms are the shortest round trip and the target. */
static void it_shrinks_by_less_than_a_quarter_if_more_is_delivered(void **state)
{
	(void)state;
	go_rounds(10, 20 * MS);
	assert_int_equal(window.size, 88);
	go_rounds(2, 44 * MS);
	assert_int_equal(window.size, 77 * 40 / 44);
}

static void once_it_was_too_large_it_does_not_grow_in_the_next_round(void **state)
{
	unsigned size;

	(void)state;
	go_rounds(10, RTT);
	go_rounds(2, 10 * MS);
	size = window.size;
	go_round(RTT);
	assert_int_equal(window.size, size);
}

static void a_window_that_was_too_large_grows_by_a_quarter_after_as_many_responses(void **state)
{
	(void)state;
	go_round(RTT);
	assert_int_equal(window.size, 11);
	go_rounds(2, 10 * MS);
	assert_int_equal(window.size, 9);
	go_round(RTT); /* eight responses */
	assert_int_equal(window.size, 9);
	go_round(RTT);
	assert_int_equal(window.size, 9 + 9 / 4 + 1);
	go_round(RTT); /* eleven responses */
	assert_int_equal(window.size, 12);
	go_round(RTT);
	assert_int_equal(window.size, 12 + 12 / 4 + 1);
}

static void a_window_grows_after_exactly_the_responses_that_it_waits_for(void **state)
{
	(void)state;
	go_round(RTT);
	go_rounds(4, 10 * MS);
	assert_int_equal(window.size, 7);
	go_round(RTT); /* seven responses */
	assert_int_equal(window.size, 7 + 7 / 4 + 1);
}

static void while_requests_wait_for_the_target_the_size_stays(void **state)
{
	unsigned size;

	(void)state;
	go_rounds(3, RTT);
	size = window.size;
	go_rounds(10, RTT + 500);
	assert_int_equal(window.size, size);
	go_rounds(2, RTT + 501);
	assert_true(window.size < size);
}

static void while_requests_wait_for_half_of_the_target_the_window_grows(void **state)
{
	(void)state;
	go_round(RTT);
	assert_int_equal(window.size, 11);
	go_round(RTT + 251);
	assert_int_equal(window.size, 11);
	go_round(RTT + 250);
	assert_int_equal(window.size, 15);
}

static void a_single_round_that_takes_long_changes_nothing(void **state)
{
	unsigned before;

	(void)state;
	go_rounds(3, RTT);
	for (unsigned i = 0; i < 10; i++) {
		go_round(10 * MS);
		before = window.size;
		go_round(RTT);
		assert_true(window.size >= before);
	}
}

static void a_round_with_a_delay_of_the_target_is_between_two_that_take_long(void **state)
{
	unsigned size;

	(void)state;
	go_round(RTT);
	size = window.size;
	go_round(10 * MS);
	go_round(RTT + 500);
	go_round(10 * MS);
	assert_int_equal(window.size, size);
}

static void round_trips_may_be_twice_the_shortest(void **state)
{
	(void)state;
	window_init(&window, START, LARGEST);
	go_rounds(2, 20 * MS);
	for (unsigned i = 0; i < 20; i++) {
		unsigned before = window.size;

		go_round(39 * MS);
		assert_true(window.size >= before);
	}
}

static void the_shortest_round_trip_is_forgotten_after_ten_seconds(void **state)
{
	(void)state;
	go_round(RTT);
	for (unsigned i = 0; i < 20; i++) {
		if (i < 8 || i > 18)
			assert_int_equal(window_shortest_rtt(&window) == RTT, i < 8);
		go_round(600 * MS);
	}
	assert_int_equal(window_shortest_rtt(&window), 600 * MS);
}

/* A round trip of the first five seconds holds for the next five, too. */
static void the_shortest_round_trip_is_known_for_five_seconds_more(void **state)
{
	(void)state;
	go_round(RTT);
	now += 4500 * MS;
	go_round(2 * RTT);
	now += 1000 * MS;
	go_round(3 * RTT);
	assert_int_equal(window_shortest_rtt(&window), RTT);
	now += 4500 * MS;
	go_round(4 * RTT);
	assert_int_equal(window_shortest_rtt(&window), RTT);
	now += 1000 * MS;
	go_round(5 * RTT);
	assert_int_equal(window_shortest_rtt(&window), 3 * RTT);
}

static void at_first_no_round_trip_is_known(void **state)
{
	(void)state;
	assert_int_equal(window_shortest_rtt(&window), 0);
}

static void the_shortest_round_trip_is_kept_for_five_whole_seconds(void **state)
{
	int64_t first;

	(void)state;
	go_round(RTT);
	first = now;
	for (unsigned seconds = 5; seconds <= 10; seconds += 5) {
		now = first + seconds * 1000 * MS - 2 * RTT;
		go_round(2 * RTT);
		assert_int_equal(window_shortest_rtt(&window), RTT);
	}
}

static void the_rate_is_that_of_the_latest_round(void **state)
{
	(void)state;
	go_round(RTT);
	/* it is judged when one of eight is open */
	assert_int_equal(window.rate, (START - 1) * 1000000 / RTT);
}

static void responses_of_unknown_times_tell_of_no_delay(void **state)
{
	(void)state;
	go_round(RTT);
	assert_int_equal(window.size, 11);
	for (unsigned rounds = 0; rounds < 3; rounds++) {
		fill();
		now += RTT;
		while (count)
			window_response(&window, take(0).mark, 0, true, false, now);
	}
	assert_int_equal(window.size, 29);
}

/* Late MADs that get a response count as delivered, too. */
static void it_shrinks_by_one_at_least(void **state)
{
	(void)state;
	go_round(RTT);
	for (unsigned size = window.size; size > START; size--) {
		assert_int_equal(window.size, size);
		for (unsigned rounds = 0; rounds < 2; rounds++) {
			fill();
			now += 10 * MS;
			for (unsigned i = 0; i < 10000; i++)
				window_response(&window, (struct window_mark){0}, 0, false,
						false, now);
			respond_to_all();
		}
	}
	assert_int_equal(window.size, START);
}

/* 99 responses in 45 ms: 88 in the shortest round trip and the target, which are 40 ms. */
static void a_window_shrinks_by_one_if_its_size_is_delivered(void **state)
{
	(void)state;
	go_rounds(10, 20 * MS);
	assert_int_equal(window.size, 88);
	for (unsigned rounds = 0; rounds < 2; rounds++) {
		fill();
		now += 45 * MS;
		for (unsigned i = 0; i < 99 - 77; i++)
			window_response(&window, (struct window_mark){0}, 0, false, false, now);
		respond_to_all();
	}
	assert_int_equal(window.size, 87);
}

/* --- losses --------------------------------------------------------------------- */

static void it_finds_how_many_a_queue_takes(void **state)
{
	unsigned dropped = 0, sent = 0;

	(void)state;
	for (unsigned i = 0; i < 2000; i++) {
		sent += window.size;
		if (window.size > 64)
			dropped += window.size - 64;
		go_round_with(64, 0);
		if (i > 20)
			assert_in_range(window.size, 16, 64 + 64 / 4 + 1);
	}
	print_message("%u of %u dropped\n", dropped, sent);
	assert_true(dropped < sent / 200);
	assert_in_range(window.losses.link_share, 0, LOSS_ONE / 256);
	assert_true(window.losses.queue > 0);
}

static void what_links_lose_does_not_keep_it_small(void **state)
{
	const unsigned lossy[] = {3, 10, 50};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		setup(state);
		window.losses_in_a_row = 10; /* so that the fabric does not count as silent */
		for (unsigned rounds = 0; rounds < 300; rounds++)
			go_round_with(UINT_MAX, lossy[i]);
		assert_true(window.size > LARGEST / 2);
		assert_in_range(window.losses.link_share, LOSS_ONE / lossy[i] * 2 / 3,
				LOSS_ONE / lossy[i] * 3 / 2);
	}
}

static void a_queue_is_found_on_links_that_lose_packets(void **state)
{
	(void)state;
	window.losses_in_a_row = 10; /* so that the fabric does not count as silent */
	for (unsigned i = 0; i < 1000; i++) {
		go_round_with(64, 20);
		if (i > 100)
			assert_in_range(window.size, 8, 110);
	}
}

static void links_that_lose_as_much_refute_that_a_queue_was_full(void **state)
{
	struct window other;

	(void)state;
	go_rounds(5, RTT);
	find_a_full_queue();
	assert_int_equal(window.verdict, LOSS_QUEUE);
	assert_true(window.caution > 1);
	other = window;
	while (window.verdict != LOSS_LINK)
		go_round_with(UINT_MAX, 3);
	assert_int_equal(window.caution, 1);
	window_hush(&other);
	window_unhush(&other, &window);
	assert_int_equal(other.caution, 1);
	assert_int_equal(other.wait, other.size);
}

static void links_that_lose_half_as_much_refute_a_full_queue_of_the_other_window(void **state)
{
	struct window other;

	(void)state;
	window_init(&other, START, LARGEST);
	other.verdict = LOSS_QUEUE;
	other.losses.share_before = LOSS_ONE / 4;
	window_unhush(&window, &other);
	assert_int_equal(window.caution, 48);
	other.verdict = LOSS_LINK;
	other.losses.link_share = LOSS_ONE / 8 - 1;
	window_unhush(&window, &other);
	assert_int_equal(window.caution, 48);
	other.losses.link_share = LOSS_ONE / 8;
	window_unhush(&window, &other);
	assert_int_equal(window.caution, 1);
}

static void a_response_tells_whether_an_earlier_mad_was_lost(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(losses_in_a_row(&window.losses), 1);
		window_response(&window, (struct window_mark){0}, 0, false, true, now);
	}
	assert_true(losses_in_a_row(&window.losses) > 1);
}

static void a_dead_node_now_and_then_changes_nothing(void **state)
{
	(void)state;
	go_rounds(3, RTT);
	for (unsigned i = 0; i < 1000; i++) {
		unsigned before = window.size;

		fill();
		now += RTT;
		while (count > (i % 8 == 0))
			respond(i % 8 == 0);
		fill();
		now += LATE;
		if (i % 8 == 0)
			respond(1);
		if (i % 8 == 0)
			be_late(0);
		assert_true(window.size >= before);
		respond_to_all();
	}
}

/* --- silence -------------------------------------------------------------------- */

static void in_silence_it_lets_one_mad_through_at_growing_intervals(void **state)
{
	unsigned sent = 0;
	int64_t died;

	(void)state;
	go_rounds(20, RTT);
	fill();
	assert_int_equal(count, LARGEST);
	now += LATE;
	for (unsigned i = 0; i < LARGEST; i++)
		be_late(0);
	assert_true(window.silent);
	assert_int_equal(window.size, window.smallest);
	for (died = now; now < died + 100 * MS; now += MS) {
		sent += fill();
		while (count && now - in_flight[0].sent >= LATE)
			be_late(0);
	}
	assert_in_range(sent, 5, 12);
	send();
	now += RTT;
	respond(count - 1);
	assert_false(window.silent);
	assert_int_equal(window.opens, 0);
	/* single MADs were lost, too: this does not start a trial */
	assert_int_equal(window.size, LARGEST / 2);
	assert_false(window.losses.trial);
	assert_int_equal(window.losses.link, LARGEST);
	assert_int_equal(window.losses.queue, 0);
	respond_to_all();
	/* it waits for as many responses as its size */
	go_round(RTT);
	assert_int_equal(window.size, LARGEST / 2);
	go_rounds(10, RTT);
	assert_int_equal(window.size, LARGEST);
}

static void what_is_sent_in_silence_counts_neither_for_a_round_nor_for_losses(void **state)
{
	(void)state;
	fill();
	now += LATE;
	while (count)
		be_late(0);
	assert_true(window.silent);
	assert_int_equal(window.opens, now);
	send();
	assert_int_equal(in_flight[0].mark.period, 0);
	assert_int_equal(in_flight[0].mark.round, 0);
	assert_int_equal(window.round.planned, 0);
}

static void a_round_from_before_a_silence_does_not_end_in_it(void **state)
{
	(void)state;
	while (is_open()) {
		send();
		now++;
	}
	for (unsigned i = 0; i < 4; i++)
		respond(0);
	now += LATE;
	window.losses.link_share = LOSS_ONE / 2; /* so that four are enough */
	for (unsigned i = 0; i < 4; i++) {
		be_late(0);
		assert_true(window.silent);
		assert_int_equal(window.size, 2);
	}
}

static void after_a_short_silence_a_trial_begins(void **state)
{
	(void)state;
	go_rounds(20, RTT);
	fill();
	now += LATE;
	for (unsigned i = 0; i < LARGEST; i++)
		be_late(0);
	assert_true(window.silent);
	assert_int_equal(fill(), 1);
	now += RTT;
	respond(0);
	assert_false(window.silent);
	/* half of it, and half of that for a trial */
	assert_int_equal(window.size, LARGEST / 4);
	assert_true(window.losses.trial);
}

static void after_a_silence_in_which_nothing_was_lost_it_is_as_large_as_before(void **state)
{
	(void)state;
	go_rounds(20, RTT);
	fill();
	now += LATE;
	for (unsigned i = 0; i < 10; i++)
		be_late(0);
	assert_true(window.silent);
	now += LATE;
	respond_to_all();
	assert_false(window.silent);
	assert_int_equal(window.size, LARGEST);
	assert_false(window.losses.trial);
}

static void a_trial_is_begun_anew_after_a_silence_in_which_nothing_was_lost(void **state)
{
	(void)state;
	go_rounds(3, RTT);
	while (is_open()) {
		send();
		now++;
	}
	now += LATE;
	respond(count - 1);
	while (!window.losses.trial)
		be_late(0);
	now += RTT;
	respond_to_all();
	fill();
	now += LATE;
	be_late(0);
	assert_true(window.silent);
	respond_to_all();
	assert_false(window.silent);
	assert_true(window.losses.trial);
	go_rounds(2000, RTT);
	assert_false(window.losses.trial);
	assert_int_equal(window.size, LARGEST);
}

static void a_late_mad_that_was_overtaken_is_no_silence(void **state)
{
	(void)state;
	send();
	now++;
	send();
	now += LATE;
	respond(1);
	be_late(0);
	assert_false(window.silent);
}

static void a_response_to_an_older_mad_does_not_hide_that_a_later_one_overtook(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		send();
		now++;
	}
	now += LATE;
	respond(2);
	respond(0);
	be_late(0);
	assert_false(window.silent);
}

static void while_links_lose_packets_one_late_mad_is_no_silence(void **state)
{
	(void)state;
	window.losses_in_a_row = 3;
	for (unsigned i = 0; i < 3; i++) {
		assert_false(window.silent);
		send();
		now += LATE;
		be_late(0);
	}
	assert_true(window.silent);
}

static void mads_with_a_response_between_are_not_late_in_a_row(void **state)
{
	(void)state;
	window.losses_in_a_row = 3;
	for (unsigned i = 0; i < 5; i++) {
		assert_false(window.silent);
		send();
		now += i == 2 ? RTT : LATE;
		if (i == 2)
			respond(0);
		else
			be_late(0);
	}
	assert_false(window.silent);
}

/* --- fixed windows -------------------------------------------------------------- */

static void a_fixed_one_stays(void **state)
{
	const unsigned sizes[] = {1, 2, 3, 500};

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		window_fix(&window, sizes[i], LARGEST);
		go_rounds(10, RTT);
		go_rounds(10, 10 * MS);
		assert_int_equal(window.size, sizes[i]);
		for (unsigned rounds = 0; rounds < 100; rounds++)
			go_round_with(1, 0);
		assert_int_equal(window.size, sizes[i]);
	}
	window_fix(&window, UINT_MAX, LARGEST);
	assert_int_equal(window.size, UINT_MAX);
	window_fix(&window, 0, LARGEST);
	assert_int_equal(window.size, START);
	go_round(RTT);
	assert_true(window.size > START);
}

static void those_in_flight_are_not_forgotten_when_it_is_fixed(void **state)
{
	(void)state;
	fill();
	assert_false(window_has_room(&window));
	window_fix(&window, START + 1, LARGEST);
	assert_int_equal(window.in_flight, START);
	assert_true(window_has_room(&window));
	window_fix(&window, 1, LARGEST);
	assert_false(window_has_room(&window));
	respond_to_all();
	assert_int_equal(window.in_flight, 0);
}

static void an_open_round_is_forgotten_when_a_window_is_reset(void **state)
{
	(void)state;
	fill();
	window_reset(&window);
	assert_int_equal(window.in_flight, 0);
	count = 0;
	go_round(RTT);
	assert_int_equal(window.size, 11);
}

static void losses_are_forgotten_when_a_window_is_reset(void **state)
{
	(void)state;
	lose_two(0);
	assert_int_equal(window.losses.late, 2);
	window_reset(&window);
	assert_int_equal(window.losses.late, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WINDOW_TEST(it_grows_by_a_third_each_round_and_later_by_a_sixth),
		WINDOW_TEST(from_a_size_of_32_on_a_window_grows_by_a_sixth),
		WINDOW_TEST(during_the_other_window_s_trial_it_is_halved_and_stays_so),
		WINDOW_TEST(a_round_of_the_other_window_s_trial_tells_nothing_after_it),
		WINDOW_TEST(a_round_from_before_the_other_window_s_trial_tells_nothing_in_it),
		WINDOW_TEST(in_the_other_window_s_trial_losses_do_not_count),
		WINDOW_TEST(what_filled_a_queue_in_the_other_window_s_trial_filled_it_here),
		WINDOW_TEST(a_verdict_that_did_not_hold_is_not_followed),
		WINDOW_TEST(each_full_queue_doubles_the_responses_until_a_window_grows),
		WINDOW_TEST(
			after_a_full_queue_a_window_is_smaller_than_what_the_queue_let_through),
		WINDOW_TEST(the_other_window_s_trial_does_not_halve_a_small_one),
		WINDOW_TEST(
			what_was_late_before_the_other_window_s_trial_does_not_count_after_it),
		WINDOW_TEST(
			a_trial_of_the_other_window_that_ends_in_silence_leaves_the_size_as_it_was),
		WINDOW_TEST(a_late_mad_that_has_a_response_after_all_was_not_lost),
		WINDOW_TEST(a_trial_ends_if_what_was_late_has_a_response_after_all),
		WINDOW_TEST(round_trips_of_a_trial_without_a_reason_tell_nothing),
		WINDOW_TEST(a_round_from_before_a_trial_tells_nothing_in_it),
		WINDOW_TEST(a_trial_does_not_halve_a_small_window),
		WINDOW_TEST(a_reduction_is_undone_if_what_was_late_has_a_response_after_all),
		WINDOW_TEST(round_trips_from_before_a_reduction_is_undone_tell_nothing),
		WINDOW_TEST(
			growth_after_a_full_queue_needs_a_quarter_fewer_responses_each_time),
		WINDOW_TEST(a_reduction_stays_if_some_of_it_was_lost),
		WINDOW_TEST(a_reduction_that_is_undone_in_silence_is_undone_after_it),
		WINDOW_TEST(without_a_reduction_there_is_nothing_to_undo),
		WINDOW_TEST(it_does_not_grow_while_nothing_uses_it),
		WINDOW_TEST(it_does_not_grow_while_a_part_of_a_round_is_open),
		WINDOW_TEST(a_window_does_not_grow_if_more_is_late_than_links_lose),
		WINDOW_TEST(a_window_knows_when_the_latest_mad_was_sent),
		WINDOW_TEST(a_slow_node_holds_no_round_up),
		WINDOW_TEST(the_number_of_a_round_is_not_zero_and_returns_as_late_as_can_be),
		WINDOW_TEST(a_round_without_a_duration_leaves_the_rate_as_it_was),
		WINDOW_TEST(it_shrinks_to_what_is_delivered_when_all_round_trips_grow),
		WINDOW_TEST(it_shrinks_by_less_than_a_quarter_if_more_is_delivered),
		WINDOW_TEST(once_it_was_too_large_it_does_not_grow_in_the_next_round),
		WINDOW_TEST(
			a_window_that_was_too_large_grows_by_a_quarter_after_as_many_responses),
		WINDOW_TEST(a_window_grows_after_exactly_the_responses_that_it_waits_for),
		WINDOW_TEST(while_requests_wait_for_the_target_the_size_stays),
		WINDOW_TEST(while_requests_wait_for_half_of_the_target_the_window_grows),
		WINDOW_TEST(a_single_round_that_takes_long_changes_nothing),
		WINDOW_TEST(a_round_with_a_delay_of_the_target_is_between_two_that_take_long),
		WINDOW_TEST(round_trips_may_be_twice_the_shortest),
		WINDOW_TEST(the_shortest_round_trip_is_forgotten_after_ten_seconds),
		WINDOW_TEST(the_shortest_round_trip_is_known_for_five_seconds_more),
		WINDOW_TEST(at_first_no_round_trip_is_known),
		WINDOW_TEST(the_shortest_round_trip_is_kept_for_five_whole_seconds),
		WINDOW_TEST(the_rate_is_that_of_the_latest_round),
		WINDOW_TEST(responses_of_unknown_times_tell_of_no_delay),
		WINDOW_TEST(it_shrinks_by_one_at_least),
		WINDOW_TEST(a_window_shrinks_by_one_if_its_size_is_delivered),
		WINDOW_TEST(it_finds_how_many_a_queue_takes),
		WINDOW_TEST(what_links_lose_does_not_keep_it_small),
		WINDOW_TEST(a_queue_is_found_on_links_that_lose_packets),
		WINDOW_TEST(links_that_lose_as_much_refute_that_a_queue_was_full),
		WINDOW_TEST(
			links_that_lose_half_as_much_refute_a_full_queue_of_the_other_window),
		WINDOW_TEST(a_response_tells_whether_an_earlier_mad_was_lost),
		WINDOW_TEST(a_dead_node_now_and_then_changes_nothing),
		WINDOW_TEST(in_silence_it_lets_one_mad_through_at_growing_intervals),
		WINDOW_TEST(what_is_sent_in_silence_counts_neither_for_a_round_nor_for_losses),
		WINDOW_TEST(a_round_from_before_a_silence_does_not_end_in_it),
		WINDOW_TEST(after_a_short_silence_a_trial_begins),
		WINDOW_TEST(after_a_silence_in_which_nothing_was_lost_it_is_as_large_as_before),
		WINDOW_TEST(a_trial_is_begun_anew_after_a_silence_in_which_nothing_was_lost),
		WINDOW_TEST(a_late_mad_that_was_overtaken_is_no_silence),
		WINDOW_TEST(a_response_to_an_older_mad_does_not_hide_that_a_later_one_overtook),
		WINDOW_TEST(while_links_lose_packets_one_late_mad_is_no_silence),
		WINDOW_TEST(mads_with_a_response_between_are_not_late_in_a_row),
		WINDOW_TEST(an_open_round_is_forgotten_when_a_window_is_reset),
		WINDOW_TEST(losses_are_forgotten_when_a_window_is_reset),
		WINDOW_TEST(a_fixed_one_stays),
		WINDOW_TEST(those_in_flight_are_not_forgotten_when_it_is_fixed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
