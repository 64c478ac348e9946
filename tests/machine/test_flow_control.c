/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Flow control through public calls: few transmissions to nodes that are dead or busy, and to a
 * silent fabric; windows; fair to destinations. docs/flow-control.md describes it. tests/flow
 * judges it at large, test_queue.c the turns and limits.
 */

#include "async.h"

#include "../heap_in_use.h"

#define LEAVES     200
#define MANY       20000
#define ROUND_TRIP 100 /* of nodes that are not slow, in microseconds */
#define ATTEMPT_MS 1000
#define PACKETS    400000

static struct outcome outcomes[MANY], one;

/* Requests that arrived at nodes. */
static struct packet {
	int64_t at;
	uint16_t lid;
	uint8_t mgmt_class;
} packets[PACKETS];
static unsigned packet_count;
static struct {
	unsigned now, most;
} in_flight;

/* What the nodes do; 0: nothing special. */
static struct {
	bool silent;        /* all of them */
	int64_t busy_until; /* all of them */
	unsigned burst;     /* of 400 MADs, so many in sequence are lost */
} nodes;

static enum machine_verdict observe(struct machine_mad *mad, void *arg)
{
	bool request = !(mad->bytes[3] & 0x80);

	(void)arg;
	/* the SA gets acknowledgements of its segments, too */
	request &= mad->bytes[1] != IB_SA_CLASS || mad->bytes[25] != 2;
	if (mad->at_host || !request) {
		in_flight.now -= mad->at_host && in_flight.now && !request;
		return MACHINE_PASS;
	}
	assert_true(packet_count < PACKETS);
	packets[packet_count++] = (struct packet){mad->us, mad->dlid, mad->bytes[1]};
	if (nodes.silent || packet_count % 400 < nodes.burst)
		return MACHINE_DROP;
	if (++in_flight.now > in_flight.most)
		in_flight.most = in_flight.now;
	if (mad->us < nodes.busy_until)
		return machine_reply(mad, IB_MAD_STS_BUSY, 0, NULL, 0);
	return MACHINE_PASS;
}

static int setup(void)
{
	memset(outcomes, 0, sizeof(outcomes));
	memset(&one, 0, sizeof(one));
	memset(&in_flight, 0, sizeof(in_flight));
	memset(&nodes, 0, sizeof(nodes));
	packet_count = 0;
	if (open_engine("star:200"))
		return -1;
	machine_rule("slow %dus", ROUND_TRIP);
	machine_on_arrival(observe, NULL);
	return 0;
}

FIXTURE(setup, close_engine);

static void finish(void)
{
	assert_true(mad_async_wait(async, -1) >= 0);
}

/* An event loop runs for this time. */
static void pass(int64_t us)
{
	struct pollfd fd = {.fd = mad_async_poll_fd(async), .events = POLLIN};
	int64_t end = machine_us() + us;

	while (machine_us() < end) {
		poll(&fd, 1, (int)((end - machine_us() + 999) / 1000));
		mad_async_process(async);
	}
}

/* Requests to the SA go to its own node. */
static const char *node_for(enum kind kind, unsigned number)
{
	static char name[16];

	snprintf(name, sizeof(name), "n%u", number);
	return kind == SA_GET || kind == SA_TABLE ? "sm" : name;
}

static unsigned lid_for(enum kind kind, unsigned number)
{
	return machine_lid(node_for(kind, number));
}

/* Quick exchanges with other nodes, some of each kind. */
static void warm_up(unsigned count)
{
	struct outcome warm = {0};

	for (unsigned i = 0; i < count; i++)
		submit((enum kind)(i % KINDS), lid_for((enum kind)(i % KINDS), 1 + i % 100),
		       &warm);
	finish();
	assert_int_equal(warm.error, 0);
	assert_int_equal(warm.calls, count);
}

static const char *const kind_names[KINDS] = {"Get of an SMA", "Get of a PMA", "SA Get",
					      "Set of an SMA", "Set of a PMA", "SA GetTable"};

/* Whether a retransmission has no side effects. */
static bool is_get(enum kind kind)
{
	return kind == SMP_GET || kind == PMA_GET || kind == SA_GET;
}

/* --- transmissions to dead and slow nodes ----------------------------------------- */

struct tally {
	unsigned sent, early, attempts;
	int64_t least_gap;
};

/* Of a LID, after the first so many packets. */
static struct tally tally_of(unsigned lid, unsigned since)
{
	struct tally tally = {.least_gap = INT64_MAX};
	int64_t attempt = 0, last = 0;

	for (unsigned i = since; i < packet_count; i++) {
		if (packets[i].lid != lid)
			continue;
		if (tally.sent && packets[i].at - last < tally.least_gap)
			tally.least_gap = packets[i].at - last;
		last = packets[i].at;
		if (tally.sent++ && last < attempt + ATTEMPT_MS * MS) {
			tally.early++;
			continue;
		}
		attempt = last;
		tally.attempts++;
	}
	return tally;
}

static void expect_polite(enum kind kind, unsigned lid, unsigned attempts, unsigned since)
{
	struct tally tally = tally_of(lid, since);
	unsigned most = attempts == 1 || !is_get(kind) ? 0 : attempts;

	if (tally.attempts != attempts || tally.early > most)
		fail_msg("%s, %u attempts: %u transmissions in %u attempts, %u of them early",
			 kind_names[kind], attempts, tally.sent, tally.attempts, tally.early);
}

static const struct dead_row {
	const char *behaviour;
	bool warm, blocking;
} dead_rows[] = {
	{"only_gets_are_sent_early_and_once_an_attempt_at_most", false, false},
	{"only_gets_are_sent_early_where_others_respond_quickly", true, false},
	{"blocking_calls_send_early_once_an_attempt_at_most", true, true},
};

/* Requests of all kinds, each to another dead node, by an engine or by blocking calls. */
static void ask_the_dead(const struct dead_row *row)
{
	static const unsigned attempts[] = {1, 2, 3, 5, 8};

	warm_up(row->warm ? 1000 : 0);
	mad_rpc_set_timeout(port, ATTEMPT_MS);
	for (unsigned i = 0; i < 5; i++) {
		unsigned since = packet_count, first = 101 + i * KINDS;

		mad_rpc_set_retries(port, (int)attempts[i]);
		for (unsigned kind = 0; kind < KINDS; kind++) {
			machine_rule("silent on n%u", first + kind);
			if (row->blocking)
				assert_int_equal(ask(rpc_of(kind), leaf(first + kind)),
						 -ETIMEDOUT);
			else
				submit(kind, leaf(first + kind), &outcomes[kind]);
		}
		finish();
		for (unsigned kind = 0; kind < KINDS; kind++) {
			if (!row->blocking)
				assert_int_equal(outcomes[kind].error, -ETIMEDOUT);
			expect_polite(kind, leaf(first + kind), attempts[i], since);
		}
	}
}

TEST_ROWS(ask_the_dead, dead_rows);

#define NODE 150

/* The time from the first transmission to the next one, of a node with known round trips. */
static int64_t gap_after(int deviation_ms, enum kind kind, unsigned others)
{
	unsigned since;

	machine_rule("clear");
	machine_rule("slow %dus", ROUND_TRIP);
	for (int i = 0; i < 60; i++) {
		machine_rule("slow %dms on %s", 20 + (i % 2 ? deviation_ms : -deviation_ms),
			     node_for(kind, NODE));
		submit(kind, lid_for(kind, NODE), &one);
		finish();
		assert_int_not_equal(one.error, -ETIMEDOUT);
	}
	warm_up(others);
	nodes.silent = true;
	since = packet_count;
	submit(kind, lid_for(kind, NODE), &one);
	finish();
	nodes.silent = false;
	assert_int_equal(one.error, -ETIMEDOUT);
	return tally_of(lid_for(kind, NODE), since).least_gap;
}

/* Moving averages differ a little from the measured values. */
TEST(early_transmissions_come_after_the_measured_round_trip_and_its_deviation)
{
	static const struct {
		int deviation_ms;
		unsigned others;
		int64_t least;
	} rows[] = {{0, 0, 20 * MS}, {10, 0, 28 * MS}, {0, 600, 20 * MS}};

	for (int kind = 0; kind < KINDS; kind++)
		for (int i = 0; i < 3; i++)
			if (gap_after(rows[i].deviation_ms, (enum kind)kind, rows[i].others) <
			    rows[i].least)
				fail_msg("%s, row %d", kind_names[kind], i);
}

/* Of several nodes, each with requests, the dead ones are last. */
TEST(dead_nodes_hold_up_themselves_alone)
{
	for (int i = 0; i < 10; i++)
		machine_rule("silent on n%d", 1 + i * LEAVES / 10);
	for (unsigned kind = 0; kind < 2; kind++) {
		int64_t before = machine_us();

		memset(outcomes, 0, sizeof(outcomes));
		for (unsigned i = 0; i < LEAVES * 5; i++)
			submit((enum kind)kind, leaf(1 + i % LEAVES), &outcomes[i]);
		finish();
		for (unsigned i = 0; i < LEAVES * 5; i++) {
			bool dead = i % LEAVES % (LEAVES / 10) == 0;

			assert_int_equal(outcomes[i].error, dead ? -ETIMEDOUT : 0);
			assert_true(dead || outcomes[i].at - before < 500 * MS);
		}
	}
}

TEST(a_blocking_call_takes_one_round_trip)
{
	int64_t before = machine_us();

	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(ask(rpc_of(SMP_GET), leaf(1 + i)), 0);
	assert_in_range(machine_us() - before, 100 * ROUND_TRIP, 110 * ROUND_TRIP);
}

/* --- silence and BUSY ------------------------------------------------------------- */

#define SILENCE (100 * MS)
#define FEW     20

/* Quick exchanges that open the window. */
static void open_window(enum kind kind)
{
	for (unsigned i = 0; i < 5000; i++)
		submit(kind, leaf(1 + i % LEAVES), &one);
	finish();
	assert_int_equal(one.error, 0);
}

static void queue_many(enum kind kind)
{
	for (unsigned i = 0; i < MANY; i++)
		submit(kind, leaf(1 + i % LEAVES), &outcomes[i]);
}

static void expect_success(unsigned requests)
{
	for (unsigned i = 0; i < requests; i++)
		expect_outcome(&outcomes[i], 0);
	memset(outcomes, 0, sizeof(outcomes));
}

static struct mad_flow_stats flow_of(enum kind kind)
{
	struct mad_async_stats stats = stats_of(async);

	return kind == SMP_GET ? stats.smp : stats.gmp;
}

static const struct silence_row {
	const char *behaviour;
	enum kind kind;
	bool amid; /* requests; or before them */
} silence_rows[] = {
	{"little_is_written_to_a_fabric_that_falls_silent_amid_smps", SMP_GET, true},
	{"little_is_written_to_a_fabric_that_falls_silent_amid_gmps", PMA_GET, true},
	{"little_is_written_to_a_fabric_that_has_fallen_silent_before_smps", SMP_GET, false},
	{"little_is_written_to_a_fabric_that_has_fallen_silent_before_gmps", PMA_GET, false},
};

/*
 * In the first half of a silence what the window holds and few probes are sent, in the second
 * half probes alone.
 */
static void be_silent(const struct silence_row *row)
{
	enum kind kind = row->kind;
	bool amid = row->amid;
	unsigned since, first, window, most = 0;

	open_window(kind);
	window = flow_of(kind).window;
	if (amid) {
		queue_many(kind);
		pass(2 * MS);
		nodes.silent = true;
		pass(5 * MS);
	} else {
		nodes.silent = true;
		most = window + window / 2;
	}
	since = packet_count;
	if (!amid)
		queue_many(kind);
	pass(SILENCE / 2);
	first = packet_count - since;
	assert_int_equal(flow_of(kind).silent, 1);
	assert_in_range(flow_of(kind).window, 1, amid ? 512 : window);
	pass(SILENCE / 2);
	assert_in_range(first, 1, most + most / 50 + FEW);
	assert_in_range(packet_count - since - first, 1, FEW);
	nodes.silent = false;
	finish();
	assert_int_equal(flow_of(kind).silent, 0);
	expect_success(MANY);
}

TEST_ROWS(be_silent, silence_rows);

TEST(few_requests_are_sent_to_a_node_that_is_busy)
{
	for (unsigned round = 0; round < 2; round++) {
		unsigned since = packet_count;

		nodes.busy_until = machine_us() + SILENCE;
		for (int i = 0; i < 500; i++)
			submit(PMA_GET, leaf(NODE), &outcomes[i]);
		pass(SILENCE);
		/* in the second round more than one may be in flight; each of them pauses */
		assert_in_range(packet_count - since, 1, round ? 5 * FEW : FEW);
		finish();
		expect_success(500);
	}
}

/* --- windows ----------------------------------------------------------------------- */

TEST(a_window_opens_while_responses_come_and_not_for_single_requests)
{
	struct mad_async_stats before = stats_of(async), after;

	for (unsigned i = 0; i < 3000; i++) {
		submit(i % 2 ? SMP_GET : PMA_GET, leaf(1 + i % LEAVES), &one);
		finish();
	}
	after = stats_of(async);
	assert_in_range(after.smp.window, 1, before.smp.window);
	assert_in_range(after.gmp.window, 1, before.gmp.window);
	assert_in_range(after.gmp.rtt_shortest_us, ROUND_TRIP, ROUND_TRIP + 50);
	assert_in_range(after.gmp.rtt_smoothed_us, ROUND_TRIP, ROUND_TRIP + 50);
	open_window(PMA_GET);
	after = stats_of(async);
	assert_true(after.gmp.window > 4 * before.gmp.window);
	assert_in_range(after.smp.window, 1, before.smp.window);
	open_window(SMP_GET);
	after = stats_of(async);
	assert_true(after.smp.window > 4 * before.smp.window);
	assert_true(after.smp.delivery_rate > 10000);
}

/* The queue appears when the window is large already. */
TEST(a_window_closes_if_a_queue_drops)
{
	enum {
		PLACES = 40
	};

	for (unsigned kind = 0; kind < 2; kind++) {
		unsigned before, since = packet_count;

		open_window((enum kind)kind);
		before = flow_of((enum kind)kind).window;
		assert_true(before > 3 * PLACES);
		machine_rule("path-limit %d on host", PLACES);
		queue_many((enum kind)kind);
		finish();
		machine_rule("path-limit 100000 on host");
		assert_in_range(flow_of((enum kind)kind).window, 1, before / 2);
		assert_in_range(packet_count - since, MANY, 5000 + MANY + MANY / 4);
	}
}

/* In millionths, of the window that it concerns. */
TEST(statistics_tell_what_links_lose)
{
	machine_rule("loss 3%%");
	queue_many(PMA_GET);
	finish();
	assert_int_equal(stats_of(async).smp.link_loss_ppm, 0);
	assert_in_range(stats_of(async).gmp.link_loss_ppm, 30000, 300000);
	assert_true(stats_of(async).gmp.link_losses > 0);
}

static void fix_windows(unsigned size)
{
	assert_int_equal(mad_port_set(port, MAD_PORT_GMP_WINDOW, size), 0);
	assert_int_equal(mad_port_set(port, MAD_PORT_SMP_WINDOW, size), 0);
}

TEST(a_window_can_be_fixed_and_left_to_itself_again)
{
	assert_int_equal(mad_port_set(port, MAD_PORT_SMP_WINDOW, 5), 0);
	assert_int_equal(stats_of(async).smp.window, 5);
	open_window(SMP_GET);
	assert_int_equal(stats_of(async).smp.window, 5);
	assert_in_range(in_flight.most, 1, 5);
	assert_int_equal(mad_port_set(port, MAD_PORT_SMP_WINDOW, 0), 0);
	open_window(SMP_GET);
	assert_true(stats_of(async).smp.window > 5);
}

/* Early ones, and those of later attempts. */
TEST(retransmissions_count_in_a_fixed_window)
{
	static const struct {
		enum kind kind;
		unsigned window;
		int attempt_ms;
	} rows[] = {{PMA_GET, 1, ATTEMPT_MS},
		    {SMP_GET, 16, ATTEMPT_MS},
		    {PMA_SET, 8, 20},
		    {SMP_GET, 16, 20}};

	mad_rpc_set_retries(port, 10);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t before = stats_of(async).retried;

		in_flight.most = in_flight.now = 0;
		nodes.burst = rows[i].window;
		mad_rpc_set_timeout(port, rows[i].attempt_ms);
		fix_windows(rows[i].window);
		for (unsigned j = 0; j < 5000; j++)
			submit(rows[i].kind, leaf(1 + j % 100), &outcomes[j]);
		while (stats_of(async).completed < stats_of(async).submitted) {
			assert_in_range(flow_of(rows[i].kind).in_flight, 0, rows[i].window);
			pass(MS);
		}
		expect_success(5000);
		assert_true(stats_of(async).retried > before);
		assert_in_range(in_flight.most, 1, rows[i].window);
	}
}

static void *call_often(void *arg)
{
	intptr_t good = 0;

	for (int i = 0; i < 50; i++)
		good += !ask(rpc_of(SMP_GET), leaf((unsigned)(uintptr_t)arg));
	return (void *)good;
}

TEST(calls_of_many_threads_and_an_engine_share_a_window)
{
	pthread_t callers[8];

	mad_port_set(port, MAD_PORT_SMP_WINDOW, 2);
	for (unsigned i = 0; i < 1000; i++)
		submit(SMP_GET, leaf(1 + i % 100), &outcomes[i]);
	for (uintptr_t i = 0; i < 8; i++)
		callers[i] = start(call_often, (void *)(i + 1));
	assert_int_equal(mad_async_wait(async, -1), 1000);
	for (int i = 0; i < 8; i++)
		assert_int_equal(join(callers[i]), 50);
	assert_int_equal(in_flight.most, 2);
}

/* --- fairness --------------------------------------------------------------------- */

/* Packets from "since" on up to the last of so many to a LID, or of a class. */
static unsigned packets_until(unsigned lid, uint8_t mgmt_class, unsigned matches,
			      unsigned since)
{
	for (unsigned i = since; i < packet_count; i++)
		if ((packets[i].lid == lid || packets[i].mgmt_class == mgmt_class) &&
		    --matches == 0)
			return i + 1 - since;
	fail_msg("%u packets are missing", matches);
	return 0;
}

/* Each request of another LID waits for one round of all LIDs at most. */
TEST(destinations_are_sent_to_in_turns)
{
	enum {
		LIDS = 40,
		EACH = 400
	};
	static const struct {
		enum kind kind;
		unsigned window, requests;
	} rows[] = {{PMA_GET, 8, 1}, {SMP_GET, 8, 1}, {SMP_GET, 0, 1}, {PMA_GET, 8, 20}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		unsigned count, since, n = rows[i].requests;

		fix_windows(rows[i].window);
		for (unsigned j = 0; j < LIDS * EACH; j++)
			submit(rows[i].kind, leaf(1 + j / EACH), &outcomes[0]);
		machine_pass(0);
		since = packet_count;
		for (unsigned j = 0; j < n; j++)
			submit(rows[i].kind, leaf(LIDS + 1), &one);
		finish();
		count = packets_until(leaf(LIDS + 1), 0, n, since);
		assert_in_range(count, n, n == 1 ? 100 : n * (LIDS + 1) + 100);
	}
}

/* Also to a LID that has many other requests, and in a blocking call. */
TEST(an_sa_get_is_next_behind_many_others)
{
	static const struct {
		unsigned window, lids;
		bool blocking;
	} rows[] = {{0, 200, false}, {8, 1, false}, {0, 200, true}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		unsigned since;

		fix_windows(rows[i].window);
		for (unsigned j = 0; j < 10000; j++)
			submit(PMA_GET, leaf(1 + j % rows[i].lids), &outcomes[0]);
		machine_pass(0);
		since = packet_count;
		if (rows[i].blocking)
			ask(rpc_of(SA_GET), leaf(1));
		else
			submit(SA_GET, leaf(1), &one);
		finish();
		assert_in_range(packets_until(0, IB_SA_CLASS, 1, since), 1, FEW);
	}
}

/* --- limits ------------------------------------------------------------------------ */

/* A dead one has a limit of its own; the fourth hop decides here. */
TEST(destinations_of_directed_routes_are_kept_apart)
{
	ib_rpc_t rpc = rpc_of(SMP_GET);

	rpc.mgtclass = IB_SMI_DIRECT_CLASS;
	mad_port_set(port, MAD_PORT_SMP_WINDOW, 100);
	machine_rule("silent on n1");
	for (unsigned i = 0; i < 60; i++) {
		/* the leaf n1 is at port 2 of the switch */
		ib_portid_t to = {.drpath = {.cnt = 2, .p = {0, 1, (uint8_t)(2 + i % 3)}}};

		assert_int_equal(
			mad_async_submit(async, &rpc, &to, NULL, 0, note, &outcomes[i], NULL),
			0);
	}
	pass(50 * MS);
	for (int i = 0; i < 60; i++)
		assert_int_equal(outcomes[i].calls, i % 3 != 0);
	assert_true(stats_of(async).queued > 0);
	finish();
}

TEST(without_memory_for_a_destination_there_is_no_limit)
{
	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 1);
	submit(PMA_SET, leaf(1), &outcomes[0]);
	submit(PMA_SET, leaf(1), &outcomes[1]);
	for (unsigned n = 1; n < 4; n++) {
		machine_fail(MACHINE_MALLOC, n, ENOMEM);
		submit(PMA_SET, leaf(50 + n), &outcomes[1 + n]);
		machine_fail(MACHINE_MALLOC, 0, 0);
	}
	assert_int_equal(stats_of(async).in_flight, 4);
	assert_int_equal(mad_async_wait(async, -1), 5);
}

TEST(a_waiting_request_costs_640_bytes_at_most)
{
	size_t before = heap_in_use(), each;

	if (!before)
		skip(); /* an allocator that does not report its memory */
	mad_port_set(port, MAD_PORT_SMP_WINDOW, 1);
	for (unsigned i = 0; i < 10000; i++)
		submit(SMP_GET, 1000 + i, &one);
	each = (heap_in_use() - before) / 10000;
	assert_in_range(each, 1, 640);
	mad_async_cancel(async, MAD_ASYNC_ALL);
}

/* --- at random --------------------------------------------------------------------- */

/* Whatever links and nodes do, requests to nodes that respond at last are complete. */
TEST(all_requests_complete_on_a_bad_fabric)
{
	uint32_t state = test_seed();

	mad_rpc_set_retries(port, 20);
	for (int round = 0; round < 10; round++) {
		unsigned since = packet_count;

		machine_rule("clear");
		machine_rule("slow %dus", ROUND_TRIP);
		machine_rule("loss %u%%", next_random(&state, 4));
		machine_rule("reorder 5%% 3ms");
		for (int i = 0; i < 10; i++)
			machine_rule("slow %ums on n%u", next_random(&state, 300),
				     1 + next_random(&state, LEAVES));
		machine_rule("service %uus on n7", next_random(&state, 500));
		machine_rule("buffer %u on n7", 2 + next_random(&state, 20));
		machine_rule("busy 30%% on n8");
		for (unsigned i = 0; i < 2000; i++)
			submit(i % 2 ? SMP_GET : PMA_GET, leaf(1 + next_random(&state, LEAVES)),
			       &outcomes[i]);
		finish();
		expect_success(2000);
		assert_in_range(packet_count - since, 1500, 2000 + 600);
		assert_in_range(flow_of(SMP_GET).in_flight + flow_of(PMA_GET).in_flight, 0, 0);
	}
}
