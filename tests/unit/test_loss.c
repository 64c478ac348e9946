/* SPDX-License-Identifier: BSD-2-Clause */

/* Whether MADs are late because there are too many, and how many are lost in a row. */

#include "engine/loss.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#define MANY 100000

static struct losses losses;
static uint32_t debt; /* the fraction of a late MAD so far, in parts of LOSS_ONE */

static int setup(void **state)
{
	(void)state;
	losses_init(&losses);
	debt = 0;
	return 0;
}

#define LOSS_TEST(name) cmocka_unit_test_setup(name, setup)

static enum loss_verdict end(bool late)
{
	return losses_ended(&losses, losses_sent(&losses), late);
}

/* Of so many MADs that share is late, at equal distances. Returns the first verdict. */
static enum loss_verdict lose(unsigned count, uint32_t share)
{
	enum loss_verdict verdict = LOSS_NOTHING;

	while (count-- && verdict == LOSS_NOTHING) {
		debt += share;
		verdict = end(debt >= LOSS_ONE);
		debt %= LOSS_ONE;
	}
	return verdict;
}

#define PERCENT(n) (LOSS_ONE / 100 * (n))

/* --- trials --------------------------------------------------------------------- */

static void two_late_mads_are_no_reason_for_a_trial(void **state)
{
	(void)state;
	assert_int_equal(end(true), LOSS_NOTHING);
	assert_int_equal(end(true), LOSS_NOTHING);
	assert_int_equal(lose(MANY, 0), LOSS_NOTHING);
}

static void three_late_mads_are_a_reason_if_they_are_many_of_all(void **state)
{
	(void)state;
	assert_int_equal(lose(20, 0), LOSS_NOTHING);
	assert_int_equal(end(true), LOSS_NOTHING);
	assert_int_equal(end(true), LOSS_NOTHING);
	assert_int_equal(end(true), LOSS_TRY);
	assert_true(losses.trial);
	assert_int_equal(losses.share_before, 3 * LOSS_ONE / 23);
	assert_int_equal(losses.late_before, 3);
	assert_int_equal(losses.queue, 0); /* that is not known yet */
}

static void three_late_mads_are_no_reason_if_they_are_an_eighth_of_all(void **state)
{
	(void)state;
	assert_int_equal(lose(21, 0), LOSS_NOTHING);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(end(true), LOSS_NOTHING);
	assert_int_equal(end(true), LOSS_TRY);
}

static void five_late_mads_are_a_reason_if_they_are_few_of_all(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(lose(100, 0), LOSS_NOTHING);
		assert_int_equal(end(true), LOSS_NOTHING);
	}
	assert_int_equal(lose(100, 0), LOSS_NOTHING);
	assert_int_equal(end(true), LOSS_TRY);
}

static void one_in_three_hundred_is_no_reason(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		assert_int_equal(lose(299, 0), LOSS_NOTHING);
		assert_int_equal(end(true), LOSS_NOTHING);
	}
	assert_int_equal(losses.queue, 0);
	assert_in_range(losses.link, 900, 1000);
	assert_in_range(losses.link_share, LOSS_ONE / 400, LOSS_ONE / 250);
}

/* Begins a trial that watches so many MADs. */
static void begin_trial(uint32_t share, unsigned watched)
{
	assert_int_equal(lose(MANY, share), LOSS_TRY);
	assert_true(losses.trial);
	assert_int_equal(losses.planned, watched);
}

static void what_was_sent_before_a_trial_tells_nothing(void **state)
{
	uint8_t before = losses_sent(&losses);

	(void)state;
	begin_trial(LOSS_ONE, 16);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(losses_ended(&losses, before, true), LOSS_NOTHING);
	assert_int_equal(losses.ended, 0);
	assert_int_equal(losses_ended(&losses, 0, true), LOSS_NOTHING);
}

static void a_trial_watches_so_many_mads_and_no_more(void **state)
{
	uint8_t period;

	(void)state;
	begin_trial(LOSS_ONE, 16);
	period = losses_sent(&losses);
	assert_int_not_equal(period, 0);
	for (int i = 1; i < 16; i++)
		assert_int_equal(losses_sent(&losses), period);
	assert_int_equal(losses_sent(&losses), 0);
	for (int i = 0; i < 15; i++)
		assert_int_equal(losses_ended(&losses, period, i < 2), LOSS_NOTHING);
	assert_int_equal(losses_ended(&losses, period, false), LOSS_QUEUE);
	assert_false(losses.trial);
	assert_int_not_equal(losses_sent(&losses), 0);
}

static void the_fewer_are_late_the_more_are_watched(void **state)
{
	(void)state;
	begin_trial(LOSS_ONE / 2, 16);
	setup(state);
	begin_trial(LOSS_ONE / 16, 128);
	setup(state);
	begin_trial(LOSS_ONE / 200, 512);
}

static void if_as_many_are_late_in_the_trial_the_links_lose_them(void **state)
{
	uint64_t before, watched;

	(void)state;
	assert_int_equal(lose(MANY, PERCENT(10)), LOSS_TRY);
	before = losses.late_before;
	watched = losses.planned;
	assert_int_equal(lose(MANY, PERCENT(10)), LOSS_LINK);
	assert_false(losses.trial);
	assert_in_range(losses.link_share, PERCENT(8), PERCENT(12));
	assert_in_range(losses.link, before + watched / 12, before + watched / 8);
}

static void if_fewer_are_late_in_the_trial_a_queue_was_full(void **state)
{
	uint64_t before;

	(void)state;
	begin_trial(LOSS_ONE / 4, 32);
	before = losses.late_before;
	assert_int_equal(lose(MANY, LOSS_ONE / 10), LOSS_QUEUE);
	assert_int_equal(losses.queue, before + 3);
	assert_int_equal(losses.link, 0);
	assert_int_equal(losses.link_share, 0);
}

static void if_half_as_many_are_late_in_the_trial_the_links_lose_them(void **state)
{
	(void)state;
	for (unsigned late = 3; late <= 4; late++) {
		setup(state);
		begin_trial(LOSS_ONE / 4, 32);
		for (unsigned i = 0; i < late; i++)
			assert_int_equal(end(true), LOSS_NOTHING);
		assert_int_equal(lose(31 - late, 0), LOSS_NOTHING);
		assert_int_equal(end(false), late < 4 ? LOSS_QUEUE : LOSS_LINK);
	}
}

/* One in 150 was late: in the trial, three or four would be. */
static void two_late_mads_in_a_long_trial_are_enough(void **state)
{
	(void)state;
	begin_trial(LOSS_ONE / 150, 512);
	assert_int_equal(end(true), LOSS_NOTHING);
	assert_int_equal(end(true), LOSS_NOTHING);
	assert_int_equal(lose(509, 0), LOSS_NOTHING);
	assert_int_equal(end(false), LOSS_LINK);
}

static void one_late_mad_in_a_trial_is_chance(void **state)
{
	(void)state;
	begin_trial(LOSS_ONE / 4, 32);
	assert_int_equal(end(true), LOSS_NOTHING);
	assert_int_equal(lose(30, 0), LOSS_NOTHING);
	assert_int_equal(end(false), LOSS_QUEUE);
}

static void a_trial_can_be_begun_anew(void **state)
{
	uint8_t before;

	(void)state;
	begin_trial(LOSS_ONE / 4, 32);
	before = losses_sent(&losses);
	losses_restart(&losses);
	assert_true(losses.trial);
	assert_int_equal(losses_ended(&losses, before, true), LOSS_NOTHING);
	assert_int_equal(lose(31, 0), LOSS_NOTHING);
	assert_int_equal(end(false), LOSS_QUEUE);
}

/* --- what links lose ------------------------------------------------------------ */

static void become_lossy(uint32_t share)
{
	while (lose(MANY, share) != LOSS_LINK)
		assert_true(losses.trial);
}

/* For 1,024 MADs; then the share is checked again. */
static void what_links_lose_is_no_reason_for_another_trial_at_once(void **state)
{
	const unsigned percents[] = {1, 5, 20, 50};

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		setup(state);
		become_lossy(PERCENT(percents[i]));
		assert_int_equal(lose(1023, PERCENT(percents[i])), LOSS_NOTHING);
		assert_int_equal(lose(1, PERCENT(percents[i])), LOSS_TRY);
		assert_int_equal(lose(MANY, PERCENT(percents[i])), LOSS_LINK);
	}
}

static void what_is_far_more_is_a_reason(void **state)
{
	(void)state;
	become_lossy(PERCENT(5));
	assert_int_equal(lose(200, PERCENT(30)), LOSS_TRY);
	assert_int_equal(lose(MANY, PERCENT(5)), LOSS_QUEUE);
	/* the links are as they were */
	assert_int_equal(lose(1000, PERCENT(5)), LOSS_NOTHING);
}

static void on_links_that_lose_half_a_tenth_more_is_a_reason(void **state)
{
	(void)state;
	become_lossy(LOSS_ONE / 2);
	assert_int_equal(lose(200, PERCENT(60)), LOSS_TRY);
}

/* They lose a quarter: of 18 MADs, 4. */
static void on_links_that_lose_many_one_standard_deviation_is_no_reason(void **state)
{
	const unsigned good[] = {5, 0, 0, 3, 3, 0};

	(void)state;
	losses.link_share = LOSS_ONE / 4;
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(lose(good[i], 0), LOSS_NOTHING);
		assert_int_equal(end(true), LOSS_NOTHING);
	}
	assert_int_equal(losses.late, 4 + 2);
	assert_int_equal(end(true), LOSS_TRY);
}

/* Of 256 MADs, the links are expected to lose 4; of 320, they are expected to lose 5. */
static void more_than_three_standard_deviations_beyond_the_links_are_a_reason(void **state)
{
	const unsigned late[] = {4 + 6, 5 + 6};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		setup(state);
		losses.link_share = LOSS_ONE / 64;
		assert_int_equal(lose(i ? 312 : 248, 0), LOSS_NOTHING);
		for (unsigned j = 0; j < late[i]; j++)
			assert_int_equal(end(true), LOSS_NOTHING);
		assert_int_equal(end(true), LOSS_TRY);
	}
}

static void links_that_lose_no_more_are_good_again(void **state)
{
	(void)state;
	become_lossy(PERCENT(20));
	assert_int_equal(lose(20 * 4096, 0), LOSS_NOTHING);
	assert_in_range(losses.link_share, 0, 8);
}

static void the_number_of_a_period_is_not_zero_and_returns_as_late_as_can_be(void **state)
{
	unsigned latest[UINT8_MAX + 1] = {0};

	(void)state;
	for (unsigned i = 1; i <= 1000; i++) {
		losses_restart(&losses);
		assert_int_not_equal(losses.period, 0);
		if (i > UINT8_MAX)
			assert_int_equal(latest[losses.period], i - UINT8_MAX);
		latest[losses.period] = i;
	}
}

/* --- rows of losses ------------------------------------------------------------- */

static void respond(unsigned good, unsigned lost)
{
	while (good--)
		losses_count(&losses, false);
	while (lost--)
		losses_count(&losses, true);
}

static unsigned row_of(unsigned good, unsigned lost)
{
	setup(NULL);
	respond(good, lost);
	return losses_in_a_row(&losses);
}

static void one_loss_is_always_likely(void **state)
{
	(void)state;
	assert_int_equal(row_of(0, 0), 1);
	assert_int_equal(row_of(1000, 0), 1);
	assert_int_equal(row_of(0, 2), 1);
}

static void the_more_is_lost_the_longer_rows_are_likely(void **state)
{
	(void)state;
	assert_int_equal(row_of(990, 10), 3);
	assert_in_range(row_of(950, 50), 4, 5);
	assert_int_equal(row_of(500, 500), 16);
	assert_int_equal(row_of(0, 1000), 32);
}

static void what_links_lose_counts_for_rows_too(void **state)
{
	(void)state;
	become_lossy(PERCENT(50));
	respond(1000, 2);
	assert_int_equal(losses_in_a_row(&losses), 1);
	respond(0, 1);
	assert_in_range(losses_in_a_row(&losses), 12, 20);
}

static void after_two_thousand_responses_the_losses_count_half(void **state)
{
	(void)state;
	assert_true(row_of(2043, 4) > 1);
	respond(1, 0);
	assert_int_equal(losses.lost, 2);
	assert_int_equal(losses_in_a_row(&losses), 1);
}

static void losses_of_long_ago_are_forgotten(void **state)
{
	(void)state;
	respond(0, MANY);
	assert_int_equal(losses_in_a_row(&losses), 32);
	respond(1000, 0);
	assert_in_range(losses_in_a_row(&losses), 2, 31);
	respond(20000, 0);
	assert_int_equal(losses_in_a_row(&losses), 1);
}

/* --- late responses after all --------------------------------------------------- */

static void a_queue_was_not_full_if_most_late_mads_have_a_response_after_all(void **state)
{
	uint8_t blamed = losses.period;
	unsigned found = 1;

	(void)state;
	begin_trial(LOSS_ONE / 4, 32);
	assert_int_equal(lose(32, 0), LOSS_QUEUE);
	assert_int_equal(losses.queue, losses.late_before);
	while (found < 100 && !losses_found(&losses, blamed))
		found++;
	assert_int_equal(found, (3 * losses.late_before + 3) / 4);
	assert_int_equal(losses.queue, 0);
	/* once */
	assert_false(losses_found(&losses, blamed));
}

static void a_trial_is_undone_if_three_of_four_late_mads_have_responses(void **state)
{
	uint8_t blamed = losses.period;

	(void)state;
	assert_int_equal(lose(21, 0), LOSS_NOTHING);
	assert_int_equal(lose(4, LOSS_ONE), LOSS_TRY);
	assert_int_equal(losses.late_before, 4);
	assert_false(losses_found(&losses, blamed));
	assert_false(losses_found(&losses, blamed));
	assert_true(losses_found(&losses, blamed));
}

static void late_mads_with_a_response_count_for_their_own_trial(void **state)
{
	uint8_t blamed = losses.period;

	(void)state;
	begin_trial(LOSS_ONE / 4, 32);
	assert_int_equal(losses.late_before, 3);
	assert_false(losses_found(&losses, blamed));
	assert_int_equal(lose(32, 0), LOSS_QUEUE);
	blamed = losses.period;
	begin_trial(LOSS_ONE / 4, 32);
	assert_int_equal(losses.late_before, 3);
	assert_false(losses_found(&losses, blamed));
	assert_false(losses_found(&losses, blamed));
	assert_true(losses_found(&losses, blamed));
}

static void late_mads_with_a_response_do_not_change_what_the_links_lose(void **state)
{
	uint8_t blamed = losses.period;
	uint64_t link;

	(void)state;
	become_lossy(PERCENT(20));
	link = losses.link;
	for (unsigned i = 0; i < 100; i++)
		assert_false(losses_found(&losses, blamed));
	assert_int_equal(losses.link, link);
	assert_int_equal(losses.queue, 0);
}

static void a_response_to_a_mad_of_another_period_tells_nothing(void **state)
{
	uint8_t blamed = losses.period;

	(void)state;
	begin_trial(LOSS_ONE / 4, 32);
	assert_int_equal(lose(32, 0), LOSS_QUEUE);
	for (unsigned i = 0; i < 100; i++) {
		assert_false(losses_found(&losses, 0));
		assert_false(losses_found(&losses, (uint8_t)(blamed + 100)));
	}
	assert_true(losses.queue > 0);
}

static void a_late_mad_with_a_response_after_all_is_no_reason_for_a_trial(void **state)
{
	uint8_t period = losses_sent(&losses);

	(void)state;
	assert_int_equal(lose(15, 0), LOSS_NOTHING);
	assert_int_equal(end(true), LOSS_NOTHING);
	assert_int_equal(end(true), LOSS_NOTHING);
	assert_false(losses_found(&losses, period));
	assert_int_equal(end(true), LOSS_NOTHING);
	assert_int_equal(end(true), LOSS_TRY);
}

static void a_trial_without_a_reason_ends_and_what_was_watched_tells_nothing(void **state)
{
	uint8_t blamed = losses.period, watched;
	uint32_t needed;

	(void)state;
	begin_trial(LOSS_ONE / 4, 32);
	watched = losses_sent(&losses);
	assert_int_equal(losses_ended(&losses, watched, true), LOSS_NOTHING);
	needed = (3 * losses.late_before + 3) / 4;
	for (uint32_t i = 1; i < needed; i++) {
		assert_false(losses_found(&losses, blamed));
		assert_true(losses.trial);
	}
	assert_true(losses_found(&losses, blamed));
	assert_false(losses.trial);
	assert_int_equal(losses.late, 0);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(losses_ended(&losses, watched, true), LOSS_NOTHING);
	assert_int_equal(losses.queue, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOSS_TEST(two_late_mads_are_no_reason_for_a_trial),
		LOSS_TEST(three_late_mads_are_a_reason_if_they_are_many_of_all),
		LOSS_TEST(three_late_mads_are_no_reason_if_they_are_an_eighth_of_all),
		LOSS_TEST(five_late_mads_are_a_reason_if_they_are_few_of_all),
		LOSS_TEST(one_in_three_hundred_is_no_reason),
		LOSS_TEST(what_was_sent_before_a_trial_tells_nothing),
		LOSS_TEST(a_trial_watches_so_many_mads_and_no_more),
		LOSS_TEST(the_fewer_are_late_the_more_are_watched),
		LOSS_TEST(if_as_many_are_late_in_the_trial_the_links_lose_them),
		LOSS_TEST(if_fewer_are_late_in_the_trial_a_queue_was_full),
		LOSS_TEST(if_half_as_many_are_late_in_the_trial_the_links_lose_them),
		LOSS_TEST(two_late_mads_in_a_long_trial_are_enough),
		LOSS_TEST(one_late_mad_in_a_trial_is_chance),
		LOSS_TEST(a_trial_can_be_begun_anew),
		LOSS_TEST(what_links_lose_is_no_reason_for_another_trial_at_once),
		LOSS_TEST(what_is_far_more_is_a_reason),
		LOSS_TEST(on_links_that_lose_half_a_tenth_more_is_a_reason),
		LOSS_TEST(on_links_that_lose_many_one_standard_deviation_is_no_reason),
		LOSS_TEST(more_than_three_standard_deviations_beyond_the_links_are_a_reason),
		LOSS_TEST(links_that_lose_no_more_are_good_again),
		LOSS_TEST(the_number_of_a_period_is_not_zero_and_returns_as_late_as_can_be),
		LOSS_TEST(one_loss_is_always_likely),
		LOSS_TEST(the_more_is_lost_the_longer_rows_are_likely),
		LOSS_TEST(what_links_lose_counts_for_rows_too),
		LOSS_TEST(after_two_thousand_responses_the_losses_count_half),
		LOSS_TEST(losses_of_long_ago_are_forgotten),
		LOSS_TEST(a_queue_was_not_full_if_most_late_mads_have_a_response_after_all),
		LOSS_TEST(a_trial_is_undone_if_three_of_four_late_mads_have_responses),
		LOSS_TEST(late_mads_with_a_response_count_for_their_own_trial),
		LOSS_TEST(late_mads_with_a_response_do_not_change_what_the_links_lose),
		LOSS_TEST(a_response_to_a_mad_of_another_period_tells_nothing),
		LOSS_TEST(a_late_mad_with_a_response_after_all_is_no_reason_for_a_trial),
		LOSS_TEST(a_trial_without_a_reason_ends_and_what_was_watched_tells_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
