/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * How often a request is sent, and the packets to nodes that are dead or slow, or to a silent
 * fabric. The test controls the clock.
 */

#define MANY 20000
#include "clocked_device.h"
#include "test.h"

#define ATTEMPT_US (ATTEMPT_MS * MS)

static struct outcome outcomes[MANY];

static int setup(void)
{
	memset(outcomes, 0, sizeof(outcomes));
	return clocked_setup();
}

FIXTURE(setup, clocked_teardown);

/* --- nodes and requests --------------------------------------------------------- */

/* LIDs from here on are dead. */
#define DEAD       40000
/* LIDs of nodes that respond quickly. */
#define QUICK_LIDS 1000

static int64_t some_dead(const struct device_packet *packet)
{
	return lid_of_packet(packet) >= DEAD ? NO_RESPONSE : ROUND_TRIP;
}

enum kind {
	GET_BY_SMP,
	GET_BY_GMP,
	GET_OF_SA,
	SET,
	GET_TABLE,
	KINDS,
};

static const char *const kind_names[KINDS] = {
	[GET_BY_SMP] = "Get of an SMA", [GET_BY_GMP] = "Get of a PMA",
	[GET_OF_SA] = "SA Get",         [SET] = "Set",
	[GET_TABLE] = "SA GetTable",
};

/* Whether a retransmission has no side effects. */
static bool is_get(enum kind kind)
{
	return kind == GET_BY_SMP || kind == GET_BY_GMP || kind == GET_OF_SA;
}

static ib_rpc_t request_of(enum kind kind)
{
	switch (kind) {
	case GET_BY_SMP:
		return get_request();
	case GET_BY_GMP:
		return counters_request();
	case GET_OF_SA:
		return path_request();
	case SET:
		return set_request();
	default:
		return table_request();
	}
}

/* So many exchanges of each kind with other nodes, which respond quickly. */
static void warm_up(unsigned count)
{
	for (int kind = 0; kind < KINDS; kind++)
		for (unsigned i = 0; i < count / KINDS; i++)
			submit_to(async, request_of((enum kind)kind), 1 + (int)(i % QUICK_LIDS),
				  &outcomes[MANY - 1]);
	finish_all(async);
	assert_int_equal(outcomes[MANY - 1].error, 0);
	outcomes[MANY - 1].calls = 0;
}

/* --- transmissions -------------------------------------------------------------- */

struct tally {
	unsigned sent;
	unsigned early; /* of these, before the end of an attempt */
	unsigned attempts;
	int64_t least_gap; /* the shortest time between two of them, in microseconds */
};

/* The packets to a LID after the first so many packets. */
static struct tally tally_of(int lid, unsigned since)
{
	struct tally tally = {.least_gap = FOREVER};
	int64_t attempt = 0, last = 0;

	for (unsigned i = since; i < nodes.count; i++) {
		const struct sent *sent = &nodes.sent[i];

		if (lid_of_packet(sent->packet) != lid)
			continue;
		if (tally.sent && sent->at - last < tally.least_gap)
			tally.least_gap = sent->at - last;
		last = sent->at;
		if (tally.sent++ && last < attempt + ATTEMPT_US) {
			tally.early++;
			continue;
		}
		attempt = last;
		tally.attempts++;
	}
	return tally;
}

/* The packets to a dead node at this LID, with so many attempts. */
static void expect_polite(enum kind kind, int lid, unsigned attempts)
{
	struct tally tally = tally_of(lid, 0);
	bool good = tally.attempts == attempts;

	if (attempts == 1 || !is_get(kind))
		good &= tally.early == 0;
	good &= tally.early <= attempts;
	if (!good)
		fail_msg("%s, %u attempts: %u transmissions in %u attempts, %u of them early",
			 kind_names[kind], attempts, tally.sent, tally.attempts, tally.early);
}

/* One request of each kind, each to another dead node. */
static void ask_the_dead(unsigned attempts)
{
	mad_rpc_set_retries(port, (int)attempts);
	for (int kind = 0; kind < KINDS; kind++)
		submit_to(async, request_of((enum kind)kind),
			  DEAD + (int)attempts * KINDS + kind, &outcomes[kind]);
	finish_all(async);
	for (int kind = 0; kind < KINDS; kind++) {
		assert_int_equal(outcomes[kind].error, -ETIMEDOUT);
		expect_polite((enum kind)kind, DEAD + (int)attempts * KINDS + kind, attempts);
	}
}

/* The same with blocking calls. */
static void call_the_dead(unsigned attempts)
{
	uint8_t data[IB_MAD_SIZE] = {0};

	mad_rpc_set_retries(port, (int)attempts);
	for (int kind = 0; kind < KINDS; kind++) {
		int lid = DEAD + (int)attempts * KINDS + kind;
		ib_portid_t to = to_lid(lid);
		ib_rpc_t rpc = request_of((enum kind)kind);

		assert_fails_null(mad_rpc(port, &rpc, &to, data, data), ETIMEDOUT);
		expect_polite((enum kind)kind, lid, attempts);
	}
}

static const unsigned numbers_of_attempts[] = {1, 2, 3, 5, 8};
#define NUMBERS (sizeof(numbers_of_attempts) / sizeof(numbers_of_attempts[0]))

TEST(only_gets_are_sent_early_and_once_an_attempt_at_most)
{
	nodes.node_us = some_dead;
	for (unsigned i = 0; i < NUMBERS; i++)
		ask_the_dead(numbers_of_attempts[i]);
}

TEST(only_gets_are_sent_early_and_once_an_attempt_at_most_where_others_respond_quickly)
{
	nodes.node_us = some_dead;
	warm_up(1000);
	for (unsigned i = 0; i < NUMBERS; i++)
		ask_the_dead(numbers_of_attempts[i]);
}

TEST(blocking_calls_send_early_once_an_attempt_at_most)
{
	nodes.node_us = some_dead;
	warm_up(1000);
	for (unsigned i = 0; i < NUMBERS; i++)
		call_the_dead(numbers_of_attempts[i]);
}

/* --- round trips ---------------------------------------------------------------- */

#define NODE 2000

static int64_t node_round_trip, node_deviation;
static unsigned node_packets, node_responses;

/*
 * The response time of the node alternates; the node stops responding after so many responses.
 */
static int64_t one_measured(const struct device_packet *packet)
{
	if (lid_of_packet(packet) != NODE)
		return ROUND_TRIP;
	if (node_packets >= node_responses)
		return NO_RESPONSE;
	return node_round_trip + (node_packets++ % 2 ? node_deviation : -node_deviation);
}

/*
 * After many exchanges with the node, and some with others: the shortest time between a
 * transmission and the next one.
 */
static int64_t gap_after(int64_t round_trip, int64_t deviation, enum kind kind, unsigned others)
{
	unsigned since;

	node_round_trip = round_trip;
	node_deviation = deviation;
	node_packets = 0;
	node_responses = UINT32_MAX;
	nodes.node_us = one_measured;
	for (int i = 0; i < 100; i++) {
		submit_to(async, request_of(kind), NODE, &outcomes[0]);
		finish_all(async);
	}
	warm_up(others);
	node_responses = 0;
	since = nodes.count;
	submit_to(async, request_of(kind), NODE, &outcomes[0]);
	finish_all(async);
	assert_int_equal(outcomes[0].error, -ETIMEDOUT);
	return tally_of(NODE, since).least_gap;
}

TEST(early_transmissions_come_after_the_measured_round_trip)
{
	for (int kind = 0; kind < KINDS; kind++)
		assert_true(gap_after(20 * MS, 0, (enum kind)kind, 0) >= 20 * MS);
}

/* Moving averages differ a little from the measured values. */
TEST(early_transmissions_come_after_the_deviation_too)
{
	for (int kind = 0; kind < KINDS; kind++)
		assert_true(gap_after(20 * MS, 10 * MS, (enum kind)kind, 0) >= 28 * MS);
}

TEST(others_round_trips_do_not_shorten_a_slow_node_s)
{
	for (int kind = 0; kind < KINDS; kind++)
		assert_true(gap_after(20 * MS, 0, (enum kind)kind, 1000) >= 20 * MS);
}

/* Sequential requests to a node with this response time; the first ones may be sent early. */
static void expect_learned(int64_t round_trip)
{
	node_round_trip = round_trip;
	node_deviation = 0;
	node_packets = 0;
	node_responses = UINT32_MAX;
	nodes.node_us = one_measured;
	for (int i = 0; i < 8; i++)
		for (int kind = 0; kind < KINDS; kind++) {
			struct outcome *outcome = &outcomes[i * KINDS + kind];

			submit_to(async, request_of((enum kind)kind), NODE, outcome);
			finish_all(async);
			assert_int_equal(outcome->error, 0);
			if (i >= 3 && outcome->transmissions != 1)
				fail_msg("%s, %d ms, request %d: %u transmissions",
					 kind_names[kind], (int)(round_trip / MS), i,
					 outcome->transmissions);
			/* the late responses have arrived */
			pass(async, 3 * ATTEMPT_US);
			warm_up(50);
		}
}

TEST(a_node_that_is_known_to_be_slow_is_sent_nothing_early)
{
	warm_up(1000);
	expect_learned(600 * MS);
}

TEST(a_node_that_is_known_to_be_a_little_slow_is_sent_nothing_early)
{
	warm_up(1000);
	expect_learned(10 * MS);
}

/* --- one slow response ---------------------------------------------------------- */

/* Of a request: early retransmissions are as many at most. */
#define ATTEMPTS 3

/* The nodes respond to each packet, after 600 of the 1,000 ms of an attempt. */
static int64_t slow_from_node_on(const struct device_packet *packet)
{
	return lid_of_packet(packet) >= NODE ? 600 * MS : ROUND_TRIP;
}

static void expect_sent_rarely(enum kind kind)
{
	unsigned sent = tally_of(NODE + (int)kind, 0).sent;

	if (sent > (is_get(kind) ? 1 + ATTEMPTS : 1))
		fail_msg("%s: %u transmissions", kind_names[kind], sent);
}

static void expect_one_response(void)
{
	nodes.node_us = slow_from_node_on;
	for (int kind = 0; kind < KINDS; kind++) {
		submit_to(async, request_of((enum kind)kind), NODE + kind, &outcomes[kind]);
		/* then responses to retransmissions have arrived, too */
		pass(async, 6 * ATTEMPT_US);
		assert_int_equal(outcomes[kind].calls, 1);
		assert_int_equal(outcomes[kind].error, 0);
		expect_sent_rarely((enum kind)kind);
	}
}

TEST(a_get_that_takes_long_is_sent_four_times_at_most)
{
	expect_one_response();
}

TEST(a_get_that_takes_long_is_sent_four_times_at_most_where_others_are_quick)
{
	warm_up(1000);
	expect_one_response();
}

TEST(a_blocking_get_that_takes_long_is_sent_four_times_at_most)
{
	uint8_t data[IB_MAD_SIZE] = {0};

	nodes.node_us = slow_from_node_on;
	warm_up(1000);
	for (int kind = 0; kind < KINDS; kind++) {
		ib_portid_t to = to_lid(NODE + kind);
		ib_rpc_t rpc = request_of((enum kind)kind);

		assert_non_null(mad_rpc(port, &rpc, &to, data, data));
		expect_sent_rarely((enum kind)kind);
	}
}

/* --- silence -------------------------------------------------------------------- */

#define SILENCE (100 * MS)
/* Probes in all that time. */
#define FEW     20

/* Quick exchanges that open the windows to the maximum. */
static void open_windows(ib_rpc_t rpc)
{
	for (int i = 0; i < 5000; i++)
		submit_to(async, rpc, 1 + i % QUICK_LIDS, &outcomes[0]);
	finish_all(async);
	assert_int_equal(outcomes[0].calls, 5000);
	outcomes[0].calls = 0;
}

static void queue_many(ib_rpc_t rpc)
{
	for (int i = 0; i < MANY; i++)
		submit_to(async, rpc, 1 + i % QUICK_LIDS, &outcomes[i]);
}

/* The requests that may be in flight according to the window, or that are in flight. */
static unsigned window_of(ib_rpc_t rpc)
{
	struct mad_async_stats stats = stats_of(async);
	unsigned window = rpc.mgtclass == IB_SMI_CLASS ? stats.smp.window : stats.gmp.window;

	return stats.in_flight > window ? stats.in_flight : window;
}

/*
 * The fabric is silent for a while. In its first half, so much is written at most, and probes;
 * in its second half, probes alone. Then all requests complete.
 */
static void expect_quiet(unsigned most, unsigned since)
{
	unsigned first, second;

	pass(async, SILENCE / 2);
	first = nodes.count - since;
	assert_true(stats_of(async).smp.silent || stats_of(async).gmp.silent);
	pass(async, SILENCE / 2);
	second = nodes.count - since - first;
	print_message("%u and %u MADs in 100 ms of silence\n", first, second);
	assert_in_range(first, 1, most + FEW);
	assert_in_range(second, 1, FEW);
	nodes.silent = false;
	finish_all(async);
	assert_false(stats_of(async).smp.silent || stats_of(async).gmp.silent);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(outcomes[i].calls, 1);
		assert_int_equal(outcomes[i].error, 0);
	}
}

static void fall_silent_amid(ib_rpc_t rpc)
{
	open_windows(rpc);
	queue_many(rpc);
	while (stats_of(async).completed < 5000 + 1000)
		assert_true(step(async, FOREVER));
	nodes.silent = true;
	/* the outstanding responses arrive, and the window may grow */
	pass(async, 5 * MS);
	expect_quiet(0, nodes.count);
}

TEST(little_is_written_to_a_fabric_that_falls_silent_amid_smps)
{
	fall_silent_amid(get_request());
}

TEST(little_is_written_to_a_fabric_that_falls_silent_amid_gmps)
{
	fall_silent_amid(counters_request());
}

static void fall_silent_before(ib_rpc_t rpc)
{
	unsigned window, since;

	open_windows(rpc);
	window = window_of(rpc);
	since = nodes.count;
	nodes.silent = true;
	queue_many(rpc);
	/* it is silent when more than half of the window is late; each of these gave its place
	 * up */
	expect_quiet(window + window / 2, since);
}

TEST(little_is_written_to_a_fabric_that_has_fallen_silent_before_smps)
{
	fall_silent_before(get_request());
}

TEST(little_is_written_to_a_fabric_that_has_fallen_silent_before_gmps)
{
	fall_silent_before(counters_request());
}

/* What nobody responds to tells nothing of what the fabric can carry. */
TEST(a_window_does_not_grow_in_a_silence)
{
	unsigned before;

	open_windows(counters_request());
	before = stats_of(async).gmp.window;
	nodes.silent = true;
	queue_many(counters_request());
	pass(async, SILENCE);
	assert_in_range(stats_of(async).gmp.window, 1, before);
	nodes.silent = false;
	finish_all(async);
}

/* --- a node that is busy --------------------------------------------------------- */

static int64_t busy_until;

static uint16_t busy_for_a_while(const struct device_packet *packet)
{
	(void)packet;
	return clock_now < busy_until ? IB_MAD_STS_BUSY : 0;
}

/* A node has many requests from one program, and says BUSY for a while. */
static void expect_few_to_a_busy_node(ib_rpc_t rpc, int count, unsigned most)
{
	unsigned since = nodes.count;

	nodes.node_status = busy_for_a_while;
	busy_until = clock_now + SILENCE;
	for (int i = 0; i < count; i++)
		submit_to(async, rpc, NODE, &outcomes[i]);
	pass(async, SILENCE);
	print_message("%u MADs to a node that says BUSY for 100 ms\n", nodes.count - since);
	assert_in_range(nodes.count - since, 1, most);
	finish_all(async);
	for (int i = 0; i < count; i++)
		assert_int_equal(outcomes[i].error, 0);
}

TEST(few_requests_are_sent_to_a_node_that_is_busy)
{
	expect_few_to_a_busy_node(counters_request(), 500, FEW);
	memset(outcomes, 0, sizeof(outcomes));
	/* by now more than one may be in flight to the node; each of them pauses */
	expect_few_to_a_busy_node(counters_request(), 500, 5 * FEW);
}

/* --- growth --------------------------------------------------------------------- */

/* The other window stays. */
TEST(a_window_opens_while_responses_come)
{
	struct mad_async_stats before = stats_of(async), after;

	open_windows(counters_request());
	after = stats_of(async);
	assert_true(after.gmp.window > 4 * before.gmp.window);
	assert_int_equal(after.smp.window, before.smp.window);
	open_windows(get_request());
	assert_true(stats_of(async).smp.window > 4 * before.smp.window);
}

TEST(windows_do_not_open_for_requests_one_at_a_time)
{
	struct mad_async_stats before = stats_of(async), after;

	for (int i = 0; i < 5000; i++) {
		submit_to(async, i % 2 ? get_request() : counters_request(), 1 + i % QUICK_LIDS,
			  &outcomes[0]);
		finish_all(async);
	}
	after = stats_of(async);
	assert_in_range(after.smp.window, 1, before.smp.window);
	assert_in_range(after.gmp.window, 1, before.gmp.window);
}

/* --- losses --------------------------------------------------------------------- */

/* A queue that all packets pass: a packet takes so long, and beyond so many they are dropped.
 */
#define SERVICE 5
#define PLACES  40

static struct {
	int64_t idle_at; /* when all packets have passed */
	unsigned packets, dropped;
} queue;

static int64_t behind_a_queue(const struct device_packet *packet)
{
	(void)packet;
	queue.packets++;
	if (queue.idle_at < clock_now)
		queue.idle_at = clock_now;
	if (queue.idle_at - clock_now >= PLACES * SERVICE) {
		queue.dropped++;
		return NO_RESPONSE;
	}
	queue.idle_at += SERVICE;
	return queue.idle_at - clock_now + ROUND_TRIP;
}

/* The queue appears when the window is large already. */
static void a_window_closes_if_a_queue_drops(ib_rpc_t rpc)
{
	unsigned before;

	open_windows(rpc);
	before = window_of(rpc);
	assert_true(before > 3 * PLACES);
	memset(&queue, 0, sizeof(queue));
	nodes.node_us = behind_a_queue;
	queue_many(rpc);
	finish_all(async);
	print_message("%u of %u dropped by a queue of %u, a window of %u, before %u\n",
		      queue.dropped, queue.packets, PLACES, window_of(rpc), before);
	assert_in_range(window_of(rpc), 1, before / 2);
	assert_in_range(queue.dropped, 1, MANY / 4);
}

TEST(a_window_of_smps_closes_if_a_queue_drops)
{
	a_window_closes_if_a_queue_drops(get_request());
}

TEST(a_window_of_gmps_closes_if_a_queue_drops)
{
	a_window_closes_if_a_queue_drops(counters_request());
}

/* Each tenth packet or so is lost, whatever the window is. */
static int64_t behind_bad_links(const struct device_packet *packet)
{
	static uint32_t random = 1;

	(void)packet;
	random = random * 1664525 + 1013904223;
	return random >> 16 < UINT16_MAX / 10 ? NO_RESPONSE : ROUND_TRIP;
}

/* In millionths, of the window that it concerns. */
TEST(statistics_tell_what_links_lose)
{
	nodes.node_us = behind_bad_links;
	queue_many(counters_request());
	finish_all(async);
	print_message("%u in a million lost by links, %u in flight allowed\n",
		      stats_of(async).gmp.link_loss_ppm, stats_of(async).gmp.window);
	assert_int_equal(stats_of(async).smp.link_loss_ppm, 0);
	assert_in_range(stats_of(async).gmp.link_loss_ppm, 30000, 300000);
}

/* --- dead nodes ----------------------------------------------------------------- */

#define ALL_NODES  1344
#define DEAD_NODES 20
#define EACH       3

static int64_t twenty_dead(const struct device_packet *packet)
{
	return lid_of_packet(packet) % (ALL_NODES / DEAD_NODES) == 0 ? NO_RESPONSE : ROUND_TRIP;
}

static struct {
	unsigned alive, dead;   /* called back */
	unsigned alive_at_dead; /* when the first of a dead node was */
	int64_t alive_at;       /* the time of the last callback of the others */
} ends;

static void note_end(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	(void)engine;
	(void)arg;
	if (!reply->error) {
		ends.alive++;
		ends.alive_at = clock_now;
	} else if (ends.dead++ == 0) {
		ends.alive_at_dead = ends.alive;
	}
}

static void ask_all_nodes(ib_rpc_t rpc)
{
	unsigned dead = ALL_NODES / (ALL_NODES / DEAD_NODES) * EACH;
	int64_t start = clock_now;

	memset(&ends, 0, sizeof(ends));
	for (int i = 0; i < ALL_NODES * EACH; i++)
		submit_with(async, rpc, 1 + i % ALL_NODES, note_end, NULL);
	finish_all(async);
	print_message("20 nodes dead: the others' requests took %d round trips\n",
		      (int)((ends.alive_at - start) / ROUND_TRIP));
	assert_int_equal(ends.dead, dead);
	assert_int_equal(ends.alive, ALL_NODES * EACH - dead);
	assert_int_equal(ends.alive_at_dead, ends.alive);
}

TEST(dead_nodes_hold_up_themselves_alone)
{
	mad_rpc_set_retries(port, 1);
	nodes.node_us = twenty_dead;
	ask_all_nodes(get_request());
	ask_all_nodes(counters_request());
}

TEST(dead_nodes_hold_up_themselves_alone_with_more_attempts)
{
	mad_rpc_set_retries(port, 3);
	nodes.node_us = twenty_dead;
	ask_all_nodes(get_request());
	ask_all_nodes(counters_request());
}
