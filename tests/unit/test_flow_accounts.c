/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The accounts of requests: where a request counts as in flight, when its response is late, and
 * how many may be in flight to a destination. Only the calls of flow.h and a clock of the test;
 * tests/flow judges the law of the windows.
 */

#include "flow/flow.h"
#include "test.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MS              INT64_C(1000)
#define SECOND          INT64_C(1000000)
#define RTT             (2 * MS)
/* A response is late after this time at least, and while no round trip is known; of the SA. */
#define LATE_LEAST      (1 * MS)
#define LATE_UNKNOWN    (100 * MS)
#define LATE_SA_LEAST   (50 * MS)
#define LATE_SA_UNKNOWN (500 * MS)

static struct flow_control flow;
static struct flow_path node;
static int64_t now;

static int setup(void)
{
	memset(&flow, 0xff, sizeof(flow));
	memset(&node, 0xff, sizeof(node));
	flow_init(&flow);
	flow_path_init(&node);
	now = 1000 * SECOND;
	return 0;
}

FIXTURE(setup, NULL);

static unsigned in_window(enum mad_window window)
{
	return flow.windows[window].in_flight;
}

/* Of GMPs, and at the node. */
static void assert_in_flight(unsigned window, unsigned at_node)
{
	assert_int_equal(in_window(MAD_WINDOW_GMP), window);
	assert_int_equal(in_window(MAD_WINDOW_SMP), 0);
	assert_int_equal(node.in_flight, at_node);
}

static void respond(struct flow_account *account, int64_t rtt_us)
{
	flow_response(&flow, account, (uint32_t)rtt_us, false, now);
}

/* A request to a path, with a response after this time. */
static void exchange_with(struct flow_path *path, int64_t rtt_us)
{
	struct flow_account account = {.path = path};

	flow_sent(&flow, &account, now);
	now += rtt_us;
	respond(&account, rtt_us);
	flow_ended(&flow, &account);
}

static void exchange(unsigned count, int64_t rtt_us)
{
	while (count--)
		exchange_with(&node, rtt_us);
}

/* --- accounts ------------------------------------------------------------------- */

TEST(a_late_request_without_copies_leaves_its_place)
{
	struct flow_account account = {.path = &node};

	flow_sent(&flow, &account, now);
	assert_false(flow_has_place(&flow, &node));
	flow_late(&flow, &account, now + SECOND);
	assert_in_flight(0, 0);
	assert_true(flow_has_place(&flow, &node));
}

TEST(with_a_fixed_limit_a_late_request_keeps_its_place_until_it_ends)
{
	struct flow_account account = {.path = &node};

	for (unsigned copies = 0; copies < 2; copies++) {
		account.may_copy = copies;
		flow.path_limit = 1;
		flow_sent(&flow, &account, now);
		for (unsigned i = 0; i < 10; i++) {
			flow_late(&flow, &account, now += SECOND);
			assert_in_flight(0, 1);
			assert_false(flow_has_place(&flow, &node));
			flow_sent(&flow, &account, now);
			assert_in_flight(1, 1);
		}
		flow_late(&flow, &account, now += SECOND);
		flow_ended(&flow, &account);
		assert_in_flight(0, 0);
		assert_true(flow_has_place(&flow, &node));
	}
}

TEST(after_a_reset_nothing_is_in_flight_and_the_rest_is_as_before)
{
	struct flow_account account = {.path = &node}, smp = {.smp = true};
	unsigned size;

	exchange(10, RTT);
	flow_fix_window(&flow, MAD_WINDOW_SMP, 77);
	flow_sent(&flow, &account, now);
	flow_sent(&flow, &smp, now);
	size = flow.windows[MAD_WINDOW_GMP].size;
	flow_reset(&flow);
	assert_int_equal(in_window(MAD_WINDOW_GMP), 0);
	assert_int_equal(in_window(MAD_WINDOW_SMP), 0);
	assert_int_equal(flow.windows[MAD_WINDOW_GMP].size, size);
	assert_int_equal(flow.windows[MAD_WINDOW_SMP].size, 77);
	flow_sent(&flow, &account, now);
	assert_int_equal(flow_opens(&flow, MAD_WINDOW_GMP), 0);
}

/* --- windows -------------------------------------------------------------------- */

TEST(a_fixed_window_has_room_for_so_many)
{
	const unsigned sizes[] = {1, 2, 7, 100, 5000};
	static struct flow_account accounts[5000];

	for (unsigned i = 0; i < 5; i++) {
		memset(accounts, 0, sizeof(accounts));
		flow_fix_window(&flow, MAD_WINDOW_GMP, sizes[i]);
		for (unsigned n = 0; n < sizes[i]; n++) {
			assert_true(flow_has_room(&flow, MAD_WINDOW_GMP));
			flow_sent(&flow, &accounts[n], now);
		}
		assert_false(flow_has_room(&flow, MAD_WINDOW_GMP));
		flow_late(&flow, &accounts[0], now + SECOND);
		assert_true(flow_has_room(&flow, MAD_WINDOW_GMP));
		for (unsigned n = 0; n < sizes[i]; n++)
			flow_ended(&flow, &accounts[n]);
		assert_in_flight(0, 0);
	}
}

/* Whatever happens. */
TEST(a_fixed_window_stays)
{
	flow_fix_window(&flow, MAD_WINDOW_GMP, 5);
	for (unsigned i = 0; i < 1000; i++) {
		struct flow_account accounts[5] = {0};

		for (unsigned n = 0; n < 5; n++)
			flow_sent(&flow, &accounts[n], now);
		now += RTT;
		for (unsigned n = 0; n < 5; n++)
			if (i % 3)
				flow_response(&flow, &accounts[n], RTT, i % 5 == 0, now);
			else
				flow_late(&flow, &accounts[n], now);
		for (unsigned n = 0; n < 5; n++)
			flow_ended(&flow, &accounts[n]);
		assert_int_equal(flow.windows[MAD_WINDOW_GMP].size, 5);
	}
}

TEST(those_in_flight_are_not_forgotten_when_a_window_is_fixed)
{
	struct flow_account accounts[3] = {{.path = &node}, {.path = &node}, {.path = &node}};

	for (unsigned i = 0; i < 3; i++)
		flow_sent(&flow, &accounts[i], now);
	flow_fix_window(&flow, MAD_WINDOW_GMP, 2);
	assert_in_flight(3, 3);
	assert_false(flow_has_room(&flow, MAD_WINDOW_GMP));
	flow_ended(&flow, &accounts[0]);
	assert_false(flow_has_room(&flow, MAD_WINDOW_GMP));
	flow_ended(&flow, &accounts[1]);
	assert_true(flow_has_room(&flow, MAD_WINDOW_GMP));
	flow_fix_window(&flow, MAD_WINDOW_GMP, 0);
	assert_in_flight(1, 1);
	flow_ended(&flow, &accounts[2]);
	assert_in_flight(0, 0);
}

/* --- the limit of a destination ------------------------------------------------- */

/* So many requests may be in flight to the node. */
static unsigned limit(void)
{
	struct flow_path path = node;

	for (path.in_flight = 0; flow_has_place(&flow, &path);)
		path.in_flight++;
	return path.in_flight;
}

TEST(an_unknown_node_may_have_one_request_and_one_that_responds_more)
{
	unsigned before;

	assert_int_equal(limit(), 1);
	exchange(20, RTT);
	before = limit();
	assert_in_range(before, 2, 16);
	exchange(1000, RTT);
	assert_in_range(limit(), before + 1, 16);
}

/* The round trip of each request, if the node handles so many at once. */
static void respond_serially(unsigned count, unsigned at_once)
{
	while (count--)
		exchange(1, limit() <= at_once ? RTT : RTT * limit() / at_once);
}

TEST(the_limit_does_not_grow_when_round_trips_do)
{
	for (unsigned at_once = 1; at_once < 5; at_once++) {
		setup();
		for (unsigned i = 0; i < 100; i++) {
			respond_serially(100, at_once);
			/* as many more may wait at the node, and some are tried */
			assert_in_range(limit(), 1, 2 * at_once + 4);
		}
	}
}

TEST(the_limit_falls_when_requests_wait_and_returns)
{
	unsigned before;

	exchange(1000, RTT);
	before = limit();
	respond_serially(1000, 1);
	assert_in_range(limit(), 1, 6);
	exchange(2000, RTT);
	assert_int_equal(limit(), before);
}

/* The path has become slower for good. */
TEST(a_limit_returns_though_the_round_trip_does_not)
{
	unsigned before;

	exchange(1000, RTT);
	before = limit();
	exchange(5000, 50 * RTT);
	assert_int_equal(limit(), before);
	/* so little slower that the limit was not lowered */
	exchange(5000, 55 * RTT);
	assert_int_equal(limit(), before);
}

TEST(a_round_trip_that_is_long_by_chance_changes_nothing)
{
	exchange(1000, RTT);
	for (unsigned i = 0; i < 1000; i++) {
		exchange(2, RTT);
		exchange(1, 10 * RTT);
		assert_int_equal(limit(), 16);
	}
}

TEST(a_response_of_an_unknown_time_is_no_evidence)
{
	struct flow_account account = {.path = &node};

	for (unsigned i = 0; i < 1000; i++) {
		flow_sent(&flow, &account, now);
		now += RTT;
		respond(&account, 0);
	}
	assert_int_equal(limit(), 1);
	assert_int_equal(flow_late_after(&flow, &account), LATE_UNKNOWN);
}

TEST(a_fixed_limit_is_the_limit_of_all)
{
	const unsigned limits[] = {1, 5, 16, 300, 60000};

	exchange(1000, RTT);
	for (unsigned i = 0; i < 5; i++) {
		flow.path_limit = limits[i];
		assert_int_equal(limit(), limits[i]);
	}
	flow.path_limit = 0;
	assert_in_range(limit(), 2, 16);
}

TEST(a_fixed_limit_may_be_very_large)
{
	enum {
		COUNT = 70000
	};
	static struct flow_account accounts[COUNT];

	memset(accounts, 0, sizeof(accounts));
	flow.path_limit = COUNT;
	for (unsigned i = 0; i < COUNT; i++) {
		accounts[i].path = &node;
		assert_true(flow_has_place(&flow, &node));
		flow_sent(&flow, &accounts[i], now);
	}
	assert_false(flow_has_place(&flow, &node));
	for (unsigned i = 0; i < COUNT; i++)
		flow_ended(&flow, &accounts[i]);
	assert_in_flight(0, 0);
}

/* --- when a response is late ---------------------------------------------------- */

static int64_t late_after(struct flow_path *path, bool sa)
{
	struct flow_account account = {.path = path, .sa = sa};

	return flow_late_after(&flow, &account);
}

TEST(at_first_a_response_has_long)
{
	assert_int_equal(late_after(&node, false), LATE_UNKNOWN);
	assert_int_equal(late_after(&node, true), LATE_SA_UNKNOWN);
	assert_int_equal(late_after(NULL, false), LATE_UNKNOWN);
	assert_int_equal(late_after(NULL, true), LATE_SA_UNKNOWN);
}

TEST(after_one_response_it_has_three_times_the_round_trip)
{
	for (int i = 0; i < 2; i++) {
		exchange(1, 20 * MS);
		assert_int_equal(late_after(&node, false), 60 * MS);
		assert_int_equal(late_after(NULL, false), 60 * MS);
	}
}

TEST(it_has_a_millisecond_at_least_and_the_sa_fifty)
{
	exchange(100, 10);
	assert_int_equal(late_after(&node, false), LATE_LEAST);
	assert_int_equal(late_after(NULL, false), LATE_LEAST);
	assert_int_equal(late_after(&node, true), LATE_SA_LEAST);
	assert_int_equal(late_after(NULL, true), LATE_SA_UNKNOWN);
}

TEST(the_sa_is_known_for_itself_alone)
{
	struct flow_account account = {.path = &node, .sa = true};

	flow_sent(&flow, &account, now);
	now += 200 * MS;
	respond(&account, 200 * MS);
	assert_int_equal(late_after(&node, true), 600 * MS);
	assert_int_equal(late_after(NULL, false), LATE_UNKNOWN);
}

TEST(a_node_that_is_slower_than_others_has_its_time)
{
	struct flow_path slow;

	flow_path_init(&slow);
	exchange(100, MS);
	exchange_with(&slow, 50 * MS);
	assert_int_equal(late_after(&slow, false), 150 * MS);
	/* it hardly changes the time of the others */
	assert_in_range(late_after(&node, false), 2 * MS, 6 * MS);
}

TEST(a_node_that_is_quicker_than_others_has_their_time)
{
	struct flow_path quick;

	flow_path_init(&quick);
	exchange_with(&quick, 2 * MS);
	exchange(100, 20 * MS);
	assert_in_range(late_after(&quick, false), 45 * MS, 75 * MS);
}

TEST(a_node_that_varies_has_more_time)
{
	exchange(100, 20 * MS);
	assert_in_range(late_after(&node, false), 45 * MS, 75 * MS);
	for (unsigned i = 0; i < 100; i++)
		exchange(1, i & 1 ? 30 * MS : 10 * MS);
	/* 20 ms and four times 10 ms, or three times a long one */
	assert_in_range(late_after(&node, false), 55 * MS, 120 * MS);
	exchange(100, 20 * MS);
	assert_in_range(late_after(&node, false), 45 * MS, 75 * MS);
}

TEST(a_step_of_the_round_trip_is_learned)
{
	exchange(1000, MS);
	exchange(40, 20 * MS);
	assert_true(late_after(&node, false) > 20 * MS);
	assert_true(late_after(NULL, false) > 20 * MS);
	exchange(200, MS);
	assert_true(late_after(&node, false) < 10 * MS);
}

TEST(no_time_overflows)
{
	const int64_t times[] = {UINT32_MAX, UINT32_MAX / 2, INT32_MAX, 100 * SECOND};

	for (unsigned i = 0; i < 4; i++) {
		setup();
		for (unsigned n = 0; n < 100; n++) {
			exchange(1, times[i]);
			assert_in_range(late_after(&node, false), 50 * SECOND, 1000 * SECOND);
			exchange(1, n & 1 ? 1 : times[i]);
		}
		exchange(500, 1);
		assert_int_equal(late_after(&node, false), LATE_LEAST);
	}
}

static bool looks_again(const struct flow_account *account)
{
	return flow_look_at(&flow, account, now) <
	       account->sent + flow_late_after(&flow, account);
}

TEST(the_time_may_become_shorter_while_none_is_known_and_others_are_in_flight)
{
	struct flow_account account = {.path = &node}, other = {0};

	flow_sent(&flow, &account, now);
	assert_false(looks_again(&account));
	flow_sent(&flow, &other, now);
	assert_true(looks_again(&account));
	now += RTT;
	respond(&other, RTT);
	assert_false(looks_again(&account));
	flow_sent(&flow, &other, now);
	assert_false(looks_again(&account));
}

/* No other response counts for the SA: nothing is to be looked at. */
TEST(the_time_of_a_node_that_is_known_does_not_become_shorter)
{
	struct flow_account account = {.path = &node, .sa = true}, other = account;

	flow_sent(&flow, &account, now);
	flow_sent(&flow, &other, now);
	assert_true(looks_again(&account));
	now += RTT;
	respond(&account, RTT);
	flow_sent(&flow, &account, now);
	assert_false(looks_again(&account));
	assert_false(looks_again(&other));
}

TEST(a_node_is_quick_if_it_takes_less_than_a_quarter_of_the_usual_time)
{
	struct flow_path quick, half;
	struct flow_account account = {.path = &quick};

	flow_path_init(&quick);
	flow_path_init(&half);
	assert_false(flow_is_quick(&flow, &account));
	exchange_with(&quick, 2 * MS);
	exchange_with(&half, 10 * MS);
	exchange(100, 20 * MS);
	assert_true(flow_is_quick(&flow, &account));
	account.path = &half;
	assert_false(flow_is_quick(&flow, &account));
	account.path = &node;
	assert_false(flow_is_quick(&flow, &account));
	account.path = NULL;
	assert_false(flow_is_quick(&flow, &account));
}

/* --- random events -------------------------------------------------------------- */

#define REQUESTS 300
#define PATHS    12
#define EVENTS   200000

/* A request, and where it counts as the test knows. */
static struct modelled {
	struct flow_account account;
	int64_t sent; /* its latest transmission; 0: none since it began */
	bool in_window, at_node;
	bool awaited; /* it was sent, and no response has come since */
} requests[REQUESTS];

static struct flow_path paths[PATHS];

static unsigned random_below(unsigned count)
{
	return (unsigned)random() % count;
}

static void assert_counts(void)
{
	unsigned windows[FLOW_WINDOWS] = {0}, places[PATHS] = {0};

	for (struct modelled *request = requests; request < requests + REQUESTS; request++) {
		windows[flow_window_of(&request->account)] += request->in_window;
		if (request->at_node)
			places[request->account.path - paths]++;
	}
	for (unsigned i = 0; i < FLOW_WINDOWS; i++)
		assert_int_equal(in_window((enum mad_window)i), windows[i]);
	for (unsigned i = 0; i < PATHS; i++)
		assert_int_equal(paths[i].in_flight, places[i]);
}

static void begin(struct modelled *request)
{
	unsigned path = random_below(PATHS + 1);

	*request = (struct modelled){
		.account.path = path < PATHS ? &paths[path] : NULL,
		.account.smp = random_below(3) == 0,
		.account.may_copy = random_below(2) == 0,
	};
	request->account.sa = !request->account.smp && random_below(5) == 0;
}

static void model_sent(struct modelled *request)
{
	flow_sent(&flow, &request->account, now);
	request->sent = now;
	request->in_window = request->awaited = true;
	request->at_node = request->account.path;
}

static void model_late(struct modelled *request)
{
	flow_late(&flow, &request->account, now);
	/* after a response, for example during a pause after BUSY, nothing can be late */
	if (!request->awaited)
		return;
	request->in_window = false;
	/*
	 * without a fixed limit the place is given up at once if no copy will come, with the
	 * last copy otherwise
	 */
	if (!flow.path_limit)
		request->at_node = request->account.may_copy && request->at_node &&
				   request->account.at_node;
}

/* The response may be one to a copy, to an earlier attempt, or of an unknown time. */
static void model_response(struct modelled *request)
{
	int64_t rtt_us = random_below(4) ? now - request->sent : 0;

	flow_response(&flow, &request->account, (uint32_t)(request->sent ? rtt_us : 0),
		      random_below(10) == 0, now);
	request->in_window = request->at_node = request->awaited = false;
}

static void model_ended(struct modelled *request)
{
	flow_ended(&flow, &request->account);
	request->in_window = request->at_node = request->awaited = false;
}

/* Changes of settings while requests are in flight. */
static void change_settings(void)
{
	if (random_below(2))
		flow_fix_window(&flow, (enum mad_window)random_below(FLOW_WINDOWS),
				random_below(2) ? random_below(100) : 0);
	else
		flow.path_limit = random_below(2) ? random_below(20) : 0;
}

static void random_event(void)
{
	struct modelled *request = &requests[random_below(REQUESTS)];

	now += random_below(random_below(100) ? 100 : 100000);
	switch (random_below(8)) {
	case 0:
	case 1:
	case 2:
		model_sent(request);
		break;
	case 3:
		model_late(request);
		break;
	case 4:
	case 5:
		model_response(request);
		break;
	case 6:
		model_ended(request);
		break;
	default:
		model_ended(request);
		if (random_below(2))
			model_ended(request);
		begin(request);
	}
}

/* The usual round trip is that which three in four are shorter than. */
TEST(a_longer_round_trip_moves_the_usual_one_by_fifteen_hundredths)
{
	exchange(1, SECOND);
	exchange(1, 2 * SECOND);
	assert_int_equal(flow.windows[MAD_WINDOW_GMP].usual_us, 1150001);
	exchange(1, SECOND);
	assert_int_equal(flow.windows[MAD_WINDOW_GMP].usual_us, 1150001 - 57500);
}

/* As many requests as the window permits. */
static unsigned fill_window(struct flow_account *accounts)
{
	unsigned count = 0;

	for (; flow_has_room(&flow, MAD_WINDOW_GMP); count++) {
		accounts[count] = (struct flow_account){0};
		flow_sent(&flow, &accounts[count], now);
	}
	return count;
}

/* The same, all with responses after the same time. */
static void exchange_window(struct flow_account *accounts)
{
	unsigned count = fill_window(accounts);

	now += RTT;
	for (unsigned i = 0; i < count; i++) {
		respond(&accounts[i], RTT);
		flow_ended(&flow, &accounts[i]);
	}
}

TEST(a_window_grows_by_a_quarter_and_32_and_doubles_at_most)
{
	static const unsigned sizes[] = {16, 32, 64, 113, 174};
	struct flow_account accounts[512];
	unsigned size, last = 0, count = 0;

	for (int i = 0; i < 100 && count < 5; i++) {
		size = flow.windows[MAD_WINDOW_GMP].size;
		if (size != last)
			assert_int_equal(size, sizes[count++]);
		last = size;
		exchange_window(accounts);
	}
	assert_int_equal(count, 5);
}

static unsigned window_size(void)
{
	return flow.windows[MAD_WINDOW_GMP].size;
}

TEST(a_growth_is_not_taken_back_before_its_responses_take_long)
{
	struct flow_account accounts[64];
	unsigned count, i;

	exchange_window(accounts);
	count = fill_window(accounts);
	assert_int_equal(count, 32);
	now += RTT;
	for (i = 0; i < 27; i++) {
		respond(&accounts[i], RTT);
		assert_int_equal(window_size(), 32);
	}
	now += 2 * RTT;
	respond(&accounts[i++], 3 * RTT);
	assert_int_equal(window_size(), 16);
	/* most responses were quick: the growth was worth it, and is continued */
	respond(&accounts[i], 3 * RTT);
	assert_int_equal(window_size(), 64);
}

/* Nodes respond at the same rate, however large the window is. */
TEST(a_growth_without_a_gain_is_repeated_after_a_time_that_doubles)
{
	struct flow_account accounts[64];
	int64_t taken_back, least = 16 * RTT;
	unsigned count;

	exchange_window(accounts);
	for (int i = 0; i < 3; i++, least *= 2) {
		count = fill_window(accounts);
		assert_int_equal(count, 32);
		now += 2 * RTT;
		while (count--)
			respond(&accounts[count], 2 * RTT);
		assert_int_equal(window_size(), 16);
		taken_back = now;
		while (window_size() == 16)
			exchange_window(accounts);
		assert_in_range(now - taken_back, least, 2 * least);
	}
}

TEST(the_limit_stays_for_a_while_after_it_was_lowered)
{
	unsigned lowered;

	exchange(1000, RTT);
	exchange(2000, RTT * 110 / 100); /* the limit is about to be measured again */
	assert_int_equal(limit(), 16);
	while (limit() == 16)
		exchange(1, RTT * 115 / 100);
	lowered = limit();
	for (unsigned i = 0; i < 1000; i++) {
		exchange(1, RTT * 110 / 100);
		assert_int_equal(limit(), lowered);
	}
}

TEST(the_limit_grows_by_a_half_after_two_responses_for_each_place)
{
	static const unsigned limits[] = {1, 2, 3, 5, 8, 12, 16};

	for (unsigned i = 0; i < 7; i++)
		for (unsigned n = 0; n < 2 * limits[i]; n++) {
			assert_int_equal(limit(), limits[i]);
			exchange(1, RTT);
		}
	assert_int_equal(limit(), 16);
}

/* As exchange_window(), but of all requests in flight so many had lost their first MAD. */
static void exchange_with_losses(unsigned lost)
{
	static struct flow_account accounts[512];
	unsigned count = fill_window(accounts);

	now += RTT;
	for (unsigned i = 0; i < count; i++)
		flow_response(&flow, &accounts[i], RTT, i < lost, now);
}

TEST(a_window_is_not_cut_for_a_fiftieth_of_its_mads)
{
	while (window_size() < 174)
		exchange_with_losses(0);
	exchange_with_losses(3);
	assert_in_range(window_size(), 174, 512);
	exchange_with_losses(window_size() / 20);
	assert_in_range(window_size(), 2, 173);
}

/* Those that are not judged may be lost, too. */
TEST(what_links_lose_is_forgotten_by_a_quarter_at_most)
{
	const uint32_t *share = &flow.windows[MAD_WINDOW_GMP].link_share;
	uint32_t before;

	while (!*share)
		exchange_with_losses(window_size() / 4);
	for (int i = 0; i < 20; i++) {
		before = *share;
		exchange_with_losses(0);
		assert_in_range(*share, before * 3 / 4, before);
	}
	assert_in_range(*share, FLOW_ONE / 100, FLOW_ONE / 10);
}

TEST(a_request_counts_once_in_the_judgement_of_a_window)
{
	struct flow_account accounts[16] = {{0}};

	for (unsigned i = 0; i < 16; i++) {
		accounts[i].path = &node;
		flow_sent(&flow, &accounts[i], now);
	}
	now += RTT;
	/* without the last tenth */
	for (unsigned i = 0; i < 15; i++) {
		assert_int_equal(window_size(), 16);
		respond(&accounts[i], RTT);
		flow_ended(&flow, &accounts[i]);
	}
	assert_int_equal(window_size(), 32);
}

/* Ten lost MADs would be in the sample if the share of losses were the same. */
TEST(after_a_cut_the_result_of_each_mad_is_awaited)
{
	unsigned size, count = 0;

	exchange_with_losses(4); /* of 15 */
	size = window_size();
	assert_in_range(size, 2, 8);
	for (; window_size() == size; count++)
		exchange(1, RTT);
	assert_int_equal(count, 10 * 15 / 4);
}

/* More responses at once than the kernel posts receives would be lost. */
TEST(a_window_grows_to_512)
{
	static struct flow_account accounts[512];

	for (unsigned window = 0; window < FLOW_WINDOWS; window++) {
		for (unsigned round = 0; round < 200; round++) {
			unsigned count = 0;

			for (; flow_has_room(&flow, window); count++) {
				accounts[count] = (struct flow_account){
					.smp = window == MAD_WINDOW_SMP,
				};
				flow_sent(&flow, &accounts[count], now);
			}
			now += RTT;
			while (count--)
				respond(&accounts[count], RTT);
		}
		assert_int_equal(flow.windows[window].size, 512);
	}
}

TEST(the_limit_stays_for_64_judgements_while_half_a_request_waits)
{
	exchange(22, RTT);
	assert_int_equal(limit(), 8);
	exchange(1000, RTT * 108 / 100);
	assert_int_equal(limit(), 8);
	/* it is measured again after 64 judgements */
	exchange(200, RTT * 108 / 100);
	assert_int_equal(limit(), 16);
}

TEST(a_silence_does_not_begin_if_a_later_mad_has_a_response)
{
	for (int later = 0; later < 2; later++) {
		struct flow_account accounts[12] = {{0}}, first = {0}, last = {0};
		struct flow_path known;

		setup();
		flow_path_init(&known);
		known.smoothed_us = RTT;
		flow_sent(&flow, &first, now);
		now += MS;
		for (unsigned i = 0; i < 12; i++) {
			accounts[i].path = &known;
			flow_sent(&flow, &accounts[i], now);
		}
		now += MS;
		flow_sent(&flow, &last, now);
		now += RTT;
		if (later)
			respond(&last, RTT);
		respond(&first, RTT + 2 * MS);
		for (unsigned i = 0; i < 12; i++)
			flow_late(&flow, &accounts[i], now);
		assert_int_equal(flow_opens(&flow, MAD_WINDOW_GMP) == 0, later);
	}
}

TEST(unknown_nodes_begin_a_silence_only_long_after_a_response)
{
	for (int later = 0; later < 2; later++) {
		struct flow_account accounts[12] = {{0}}, first = {0};

		setup();
		flow_sent(&flow, &first, now);
		now += RTT;
		respond(&first, RTT);
		now += later ? 200 * MS : 0;
		for (unsigned i = 0; i < 12; i++)
			flow_sent(&flow, &accounts[i], now);
		now += MS;
		for (unsigned i = 0; i < 12; i++)
			flow_late(&flow, &accounts[i], now);
		assert_int_equal(flow_opens(&flow, MAD_WINDOW_GMP) != 0, later);
	}
}

TEST(losses_count_after_a_time_without_a_full_window)
{
	exchange(100, RTT);
	assert_int_equal(window_size(), 16);
	for (int i = 0; i < 2; i++)
		exchange_with_losses(8);
	assert_in_range(window_size(), 2, 8);
}

TEST(a_cut_leaves_half_of_its_sample_in_flight)
{
	while (window_size() < 174)
		exchange_with_losses(0);
	exchange_with_losses(512); /* all: the sample has ten MADs */
	assert_int_equal(window_size(), 5);
}

/* TEST_SEED=... repeats a run. */
TEST(each_request_counts_once_and_leaves_once_in_any_order_of_events)
{
	srandom(test_seed());
	for (unsigned i = 0; i < PATHS; i++)
		flow_path_init(&paths[i]);
	for (unsigned i = 0; i < REQUESTS; i++)
		begin(&requests[i]);
	for (unsigned i = 0; i < EVENTS; i++) {
		if (random_below(1000) == 0)
			change_settings();
		random_event();
		if (i % 16 == 0)
			assert_counts();
	}
	for (unsigned i = 0; i < REQUESTS; i++) {
		model_ended(&requests[i]);
		assert_counts();
	}
	assert_int_equal(in_window(MAD_WINDOW_SMP) + in_window(MAD_WINDOW_GMP), 0);
	for (unsigned i = 0; i < PATHS; i++)
		assert_int_equal(paths[i].in_flight, 0);
}
