/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The order of requests of several destinations, classes, engines and blocking calls, if there
 * are more requests than may be in flight; and that all of them count in the window. Tests
 * count packets. The test controls the clock.
 */

#define MANY 20000
#include "clocked_device.h"
#include "test.h"

#include <pthread.h>

static struct outcome outcomes[MANY], one;

static int setup(void)
{
	memset(outcomes, 0, sizeof(outcomes));
	memset(&one, 0, sizeof(one));
	return clocked_setup();
}

FIXTURE(setup, clocked_teardown);

/* --- sent packets --------------------------------------------------------------- */

/* The packet that a test looks for. */
typedef bool match_fn(const struct device_packet *packet);

static int wanted_lid;

static bool to_wanted_lid(const struct device_packet *packet)
{
	return lid_of_packet(packet) == wanted_lid;
}

static bool is_sa_request(const struct device_packet *packet)
{
	return packet->mad[1] == IB_SA_CLASS;
}

/* The requests of each engine or call have their own attribute modifier. */
#define MARK 0x5a

static bool is_marked(const struct device_packet *packet)
{
	return packet->mad[23] == MARK;
}

static ib_rpc_t marked(ib_rpc_t rpc)
{
	rpc.attr.mod = MARK;
	return rpc;
}

/* The number of packets from "since" on until so many matched, including the last one. */
static unsigned packets_until(match_fn *match, unsigned matches, unsigned since)
{
	unsigned i = since;

	for (;;) {
		while (i == nodes.count)
			assert_true(step(async, FOREVER));
		if (match(nodes.sent[i++].packet) && --matches == 0)
			return i - since;
	}
}

/* 0: the window adapts. */
static void fix_window(unsigned size)
{
	assert_int_equal(mad_port_set(port, MAD_PORT_GMP_WINDOW, size), 0);
	assert_int_equal(mad_port_set(port, MAD_PORT_SMP_WINDOW, size), 0);
}

/* So many requests to each of the LIDs from 1 on, LID by LID. */
static void queue_each(ib_rpc_t rpc, int lids, int each)
{
	for (int i = 0; i < lids * each; i++)
		submit_to(async, rpc, 1 + i / each, &outcomes[i]);
}

static void queue_in_turns(ib_rpc_t rpc, int lids, int each)
{
	for (int i = 0; i < lids * each; i++)
		submit_to(async, rpc, 1 + i % lids, &outcomes[i]);
}

/* --- destinations --------------------------------------------------------------- */

#define LIDS 40
#define EACH 400

/* The number of packets before the one to another LID, with a window of this size. */
static void expect_a_round(unsigned window, ib_rpc_t rpc, bool in_turns)
{
	unsigned count;

	memset(&one, 0, sizeof(one));
	fix_window(window);
	if (in_turns)
		queue_in_turns(rpc, LIDS, EACH);
	else
		queue_each(rpc, LIDS, EACH);
	wanted_lid = LIDS + 1;
	count = nodes.count;
	submit_to(async, rpc, wanted_lid, &one);
	count = packets_until(to_wanted_lid, 1, count);
	print_message("a window of %u: packet %u\n", window, count);
	assert_in_range(count, 1, 100);
	finish_all(async);
	assert_int_equal(one.calls, 1);
}

TEST(a_destination_is_next_within_a_round_of_all)
{
	expect_a_round(8, counters_request(), false);
	expect_a_round(8, get_request(), false);
}

TEST(a_destination_is_next_within_a_round_of_all_that_were_queued_in_turns)
{
	expect_a_round(8, counters_request(), true);
	expect_a_round(16, get_request(), true);
}

TEST(a_destination_is_next_within_a_round_with_a_window_that_is_not_fixed)
{
	expect_a_round(0, counters_request(), false);
	expect_a_round(0, get_request(), false);
}

/* Each of its requests waits at most for one round of all destinations. */
TEST(destinations_are_sent_to_in_turns)
{
	unsigned count;

	fix_window(8);
	queue_each(counters_request(), LIDS, EACH);
	wanted_lid = LIDS + 1;
	count = nodes.count;
	for (int i = 0; i < 20; i++)
		submit_to(async, counters_request(), wanted_lid, &one);
	count = packets_until(to_wanted_lid, 20, count);
	assert_in_range(count, 20, 20 * (LIDS + 1) + 100);
	finish_all(async);
	assert_int_equal(one.calls, 20);
}

/* --- classes -------------------------------------------------------------------- */

/* Behind other requests of the same queue pair. */
#define FEW 20

/* An SA Get behind PMA Gets to so many LIDs; one of the LIDs is the SA's. */
static void expect_sa_soon(unsigned window, int lids)
{
	unsigned count;

	memset(&one, 0, sizeof(one));
	fix_window(window);
	queue_in_turns(counters_request(), lids, MANY / lids);
	count = nodes.count;
	submit_to(async, path_request(), 1, &one);
	count = packets_until(is_sa_request, 1, count);
	print_message("a window of %u, %d LIDs: packet %u\n", window, lids, count);
	assert_in_range(count, 1, FEW);
	finish_all(async);
	assert_int_equal(one.calls, 1);
}

TEST(an_sa_get_is_next_behind_many_others_to_many_nodes)
{
	expect_sa_soon(0, 1000);
}

TEST(an_sa_get_is_next_behind_many_others_to_its_node)
{
	expect_sa_soon(0, 1);
}

TEST(an_sa_get_is_next_behind_many_others_in_a_fixed_window)
{
	expect_sa_soon(8, 1000);
	expect_sa_soon(8, 1);
}

/* --- engines -------------------------------------------------------------------- */

TEST(two_engines_take_turns)
{
	struct mad_async *other = mad_async_create(port);
	unsigned count, left = 20;

	fix_window(4);
	queue_in_turns(counters_request(), 20, 100);
	count = nodes.count;
	for (int i = 0; i < 20; i++)
		submit_to(other, marked(counters_request()), 1 + i, &one);
	for (unsigned i = count; left; i++) {
		while (i == nodes.count) {
			assert_true(step(async, FOREVER));
			assert_true(mad_async_process(other) >= 0);
		}
		left -= is_marked(nodes.sent[i].packet);
		if (!left)
			count = i + 1 - count;
	}
	print_message("20 of the other engine among %u\n", count);
	assert_in_range(count, 20, 2 * 20 + FEW);
	finish_all(async);
	finish_all(other);
	assert_int_equal(one.calls, 20);
	mad_async_free(other);
}

/* --- calls that block ----------------------------------------------------------- */

static void call_once(ib_rpc_t rpc, int lid)
{
	uint8_t data[IB_MAD_SIZE] = {0};
	ib_portid_t to = to_lid(lid);

	assert_non_null(mad_rpc(port, &rpc, &to, data, data));
}

/* Calls in parallel with an engine that fills the window. */
static void expect_turns(unsigned window, ib_rpc_t rpc)
{
	unsigned count;

	fix_window(window);
	queue_in_turns(rpc, 100, 10);
	for (int i = 0; i < 100; i++) {
		count = nodes.count;
		call_once(marked(rpc), 1 + i);
		count = packets_until(is_marked, 1, count);
		assert_in_range(count, 1, FEW);
		mad_async_process(async);
	}
	finish_all(async);
	print_message("a window of %u: %u in flight\n", window, nodes.most);
	assert_in_range(nodes.most, 1, window);
	nodes.most = 0;
}

TEST(a_call_that_blocks_waits_its_turn_for_a_full_window)
{
	expect_turns(1, counters_request());
	expect_turns(2, counters_request());
	expect_turns(1, get_request());
	expect_turns(2, get_request());
}

TEST(an_sa_call_that_blocks_is_next_behind_many_others)
{
	unsigned count;

	queue_in_turns(counters_request(), 1000, MANY / 1000);
	count = nodes.count;
	call_once(path_request(), 1);
	count = packets_until(is_sa_request, 1, count);
	assert_in_range(count, 1, FEW);
	finish_all(async);
}

/* --- threads -------------------------------------------------------------------- */

#define CALLERS 8
#define CALLS   50

/* A device for several threads, with the machine's clock. */
static atomic_int in_flight, most_in_flight;
static atomic_bool end_responder;

static int count_in_flight(const struct device_packet *packet, void *arg)
{
	int count = ++in_flight, most = most_in_flight;

	(void)packet;
	(void)arg;
	while (count > most && !atomic_compare_exchange_weak(&most_in_flight, &most, count))
		;
	return 0;
}

/* Responds to each packet in sequence, so slowly that others arrive meanwhile. */
static void *respond(void *arg)
{
	unsigned responded = 0;

	(void)arg;
	while (!end_responder) {
		if (!device_wait_written(responded + 1, 10))
			continue;
		nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
		in_flight--;
		device_respond(device_packet(responded++), 0, 0, NULL, 0);
	}
	return NULL;
}

static void *call_often(void *arg)
{
	uint8_t data[IB_MAD_SIZE] = {0};
	intptr_t good = 0;

	for (int i = 0; i < CALLS; i++) {
		ib_portid_t to = to_lid((int)(intptr_t)arg);
		ib_rpc_t rpc = set_request();

		good += mad_rpc(port, &rpc, &to, data, data) != NULL;
	}
	return (void *)good;
}

/* Sets are never retransmitted early, even on a slow machine. */
TEST(calls_of_many_threads_and_an_engine_share_a_window)
{
	pthread_t responder, callers[CALLERS];
	void *good;

	clock_is_real = true;
	in_flight = most_in_flight = 0;
	end_responder = false;
	mad_rpc_set_timeout(port, LONG_MS);
	/* a late request is no longer in flight */
	set_late_after(LONG_MS * 1000);
	device_on_write(count_in_flight, NULL);
	fix_window(2);
	queue_in_turns(set_request(), 100, 10);
	assert_int_equal(pthread_create(&responder, NULL, respond, NULL), 0);
	for (intptr_t i = 0; i < CALLERS; i++)
		assert_int_equal(pthread_create(&callers[i], NULL, call_often, (void *)(i + 1)),
				 0);
	assert_int_equal(mad_async_wait(async, -1), 1000);
	for (int i = 0; i < CALLERS; i++) {
		assert_int_equal(pthread_join(callers[i], &good), 0);
		assert_int_equal((intptr_t)good, CALLS);
	}
	end_responder = true;
	assert_int_equal(pthread_join(responder, NULL), 0);
	print_message("%d in flight in a window of 2\n", most_in_flight);
	assert_in_range(most_in_flight, 1, 2);
}

/* --- retransmissions ------------------------------------------------------------ */

static unsigned packets_seen, lost_at_once;

/* Consecutive packets are lost, so that they are late at the same time. */
static int64_t some_lost(const struct device_packet *packet)
{
	(void)packet;
	return packets_seen++ % 400 < lost_at_once ? NO_RESPONSE : ROUND_TRIP;
}

/* No response is late: each packet is lost, or its response arrives after one round trip. */
static void expect_no_more_than(unsigned window, ib_rpc_t rpc, int attempt_ms)
{
	uint64_t before = stats_of(async).retried;

	packets_seen = nodes.most = 0;
	lost_at_once = window;
	nodes.node_us = some_lost;
	mad_rpc_set_timeout(port, attempt_ms);
	mad_rpc_set_retries(port, 10);
	fix_window(window);
	queue_in_turns(rpc, 100, 100);
	finish_all(async);
	for (int i = 0; i < 100 * 100; i++)
		assert_int_equal(outcomes[i].error, 0);
	assert_true(stats_of(async).retried > before);
	print_message("a window of %u: %u in flight\n", window, nodes.most);
	assert_in_range(nodes.most, 1, window);
}

TEST(early_retransmissions_count_in_a_fixed_window)
{
	expect_no_more_than(1, counters_request(), ATTEMPT_MS);
	expect_no_more_than(8, counters_request(), ATTEMPT_MS);
	expect_no_more_than(16, get_request(), ATTEMPT_MS);
}

/* The attempts are short: at their end there is more to send. */
TEST(retransmissions_of_later_attempts_count_in_a_fixed_window)
{
	expect_no_more_than(1, set_request(), 20);
	expect_no_more_than(8, set_request(), 20);
	expect_no_more_than(16, set_request(), 20);
}
