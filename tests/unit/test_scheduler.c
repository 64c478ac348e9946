/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Which request is sent next: windows and limits are fixed, and the tests check the order of
 * packets.
 */

#define MANY 200
#include "async_fixture.h"

#include "calls/engine.h"

#include <limits.h>
#include <pthread.h>
#include <sys/wait.h>

/* One request in each turn, so that the order shows the turns. */
static struct mad_async *make_engine(void)
{
	struct mad_async *engine = mad_async_create(port);

	if (engine)
		source_init(&engine->source, 1);
	return engine;
}

static int setup(void **state)
{
	if (async_setup(state))
		return -1;
	source_init(&async->source, 1);
	return 0;
}

#define SCHEDULER_TEST(name) cmocka_unit_test_setup_teardown(name, setup, async_teardown)

static ib_rpc_t request_of_class(int mgmt_class)
{
	ib_rpc_t rpc = set_request();

	rpc.mgtclass = mgmt_class;
	rpc.method = IB_MAD_METHOD_GET;
	return rpc;
}

static int lid_of(unsigned n)
{
	return be16toh(device_packet(n)->header.addr.lid);
}

/* Responds to the n-th packet, and processes the response. */
static void respond(unsigned n)
{
	device_respond(device_packet(n), 0, 0, NULL, 0);
	assert_int_equal(mad_async_process(async), 1);
}

/* One GMP in flight to a node of its own, so that the others are queued. */
static void fill_window(void)
{
	mad_port_set_window(port, MAD_WINDOW_GMP, 1);
	submit(async, set_request(), 100, &outcomes[MANY - 1], NULL);
	assert_int_equal(device_written(), 1);
}

/* Opens windows so that the threads that process send, not the call that opens them. */
static void open_windows(unsigned requests)
{
	int cancel_state = port_enter(port);

	flow_fix_window(&port->core.transactions.flow, MAD_WINDOW_SMP, requests);
	flow_fix_window(&port->core.transactions.flow, MAD_WINDOW_GMP, requests);
	port_leave(port, cancel_state);
}

/* --- turns ---------------------------------------------------------------------- */

static void flows_of_a_window_take_turns(void **state)
{
	const int classes[] = {IB_PERFORMANCE_CLASS, IB_SA_CLASS, VENDOR_CLASS};

	(void)state;
	fill_window();
	for (int i = 0; i < 30; i++)
		submit(async, request_of_class(classes[i / 10]), 1 + i, &outcomes[i], NULL);
	for (unsigned i = 0; i < 30; i++) {
		respond(i);
		assert_int_equal(device_written(), i + 2);
		assert_int_equal(device_packet(i + 1)->mad[1], classes[i % 3]);
		/* each in its own order */
		assert_int_equal(lid_of(i + 1), 1 + i / 3 + i % 3 * 10);
	}
}

static void a_request_waits_for_one_of_each_other_engine(void **state)
{
	struct mad_async *other = make_engine();

	(void)state;
	fill_window();
	for (int i = 0; i < 100; i++)
		submit(async, set_request(), 1 + i % 50, &outcomes[i], NULL);
	submit(other, set_request(), 60, &outcomes[100], NULL);
	submit(other, set_request(), 61, &outcomes[101], NULL);
	for (unsigned i = 0; i < 4; i++) {
		device_respond(device_packet(i), 0, 0, NULL, 0);
		mad_async_process(async);
		mad_async_process(other);
	}
	assert_int_equal(lid_of(1), 1);
	assert_int_equal(lid_of(2), 60);
	assert_int_equal(lid_of(3), 2);
	assert_int_equal(lid_of(4), 61);
	mad_async_destroy(other);
}

static void a_blocking_call_waits_for_one_request_of_an_engine(void **state)
{
	uint8_t data[IB_PC_DATA_SZ] = {0};
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(77);

	(void)state;
	fill_window();
	for (int i = 0; i < 50; i++)
		submit(async, set_request(), 1 + i, &outcomes[i], NULL);
	device_on_write(echo, NULL);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	assert_non_null(mad_rpc(port, &rpc, &to, data, data));
	assert_int_equal(lid_of(1), 1);
	assert_int_equal(lid_of(2), 77);
	assert_int_equal(mad_async_run(async), 51);
	expect_all(50, 0);
}

/* Also if there is a place in the window by then. */
static void a_new_request_is_sent_after_those_that_are_queued(void **state)
{
	(void)state;
	fill_window();
	for (int i = 0; i < 3; i++)
		submit(async, set_request(), 1 + i, &outcomes[i], NULL);
	open_windows(1000);
	submit(async, set_request(), 50, &outcomes[3], NULL);
	while (device_written() < 5)
		mad_async_process(async);
	assert_int_equal(lid_of(1), 1);
	assert_int_equal(lid_of(4), 50);
}

/* The engine's requests fill the window, and no thread processes the engine. */
static void a_blocking_call_needs_no_thread_of_the_engine(void **state)
{
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(2);
	uint8_t data[IB_PC_DATA_SZ] = {0};
	int dead = 1;

	(void)state;
	set_late_after(QUICK);
	device_on_write(echo_but_for, &dead);
	mad_port_set_window(port, MAD_WINDOW_GMP, 1);
	for (int i = 0; i < 5; i++)
		submit(async, set_request(), dead, &outcomes[i], NULL);
	assert_int_equal(device_written(), 1);
	assert_non_null(mad_rpc(port, &rpc, &to, data, data));
	assert_int_equal(outcomes[0].calls, 0);
}

static void both_windows_are_sent_in_turn(void **state)
{
	(void)state;
	mad_port_set_window(port, MAD_WINDOW_SMP, 1);
	fill_window();
	for (int i = 0; i < 4 * BATCH; i++)
		submit(async, i & 1 ? set_request() : get_request(), 1 + i % 100, outcomes,
		       NULL);
	assert_int_equal(device_written(), 2);
	mad_port_set_destination_limit(port, 1000);
	open_windows(1000);
	for (unsigned round = 0; round < 4; round++) {
		unsigned before = device_written(), smps = 0;

		assert_int_equal(mad_async_process(async), 0);
		for (unsigned i = before; i < device_written(); i++)
			smps += device_packet(i)->mad[1] == IB_SMI_CLASS;
		/* the first one counts as an SMP */
		assert_true(device_written() - before >= BATCH - 1);
		assert_in_range(smps, round & 1 ? 0 : BATCH - 1, round & 1 ? 1 : BATCH);
	}
}

static void an_engine_wakes_up_when_a_window_opens(void **state)
{
	(void)state;
	mad_port_set_window(port, MAD_WINDOW_SMP, 1);
	mad_port_set_rate(port, 1);
	assert_true(scheduler_next(&port->scheduler) == NEVER);
	submit(async, get_request(), 1, &outcomes[0], NULL);
	assert_int_equal(device_written(), 1);
	/* not for a window that is full */
	submit(async, get_request(), 2, &outcomes[1], NULL);
	assert_true(scheduler_next(&port->scheduler) > core_opens(&port->core, MAD_WINDOW_SMP));
	submit(async, set_request(), 3, &outcomes[2], NULL);
	assert_true(scheduler_next(&port->scheduler) ==
		    core_opens(&port->core, MAD_WINDOW_GMP));
	assert_int_equal(device_written(), 1);
}

/* --- destinations --------------------------------------------------------------- */

static void lanes_of_a_destination_take_turns(void **state)
{
	struct mad_async *other = make_engine();

	(void)state;
	mad_port_set_destination_limit(port, 1);
	for (int i = 0; i < 5; i++)
		submit(async, set_request(), 1, &outcomes[i], NULL);
	for (int i = 5; i < 10; i++)
		submit(other, set_request(), 1, &outcomes[i], NULL);
	for (unsigned i = 0; i < 9; i++) {
		assert_int_equal(device_written(), i + 1);
		device_respond(device_packet(i), 0, 0, NULL, 0);
		mad_async_process(async);
		mad_async_process(other);
		if (i > 0)
			assert_int_equal(outcomes[i & 1 ? i / 2 + 1 : 4 + i / 2].calls, 1);
	}
	device_respond(device_packet(9), 0, 0, NULL, 0);
	mad_async_process(async);
	mad_async_process(other);
	expect_all(10, 0);
	mad_async_destroy(other);
}

/*
 * Two are in flight, so many are queued for LID 1, and so many others were not scheduled yet.
 */
static void park_behind_lid_1(unsigned count)
{
	mad_port_set_destination_limit(port, 1);
	mad_port_set_window(port, MAD_WINDOW_GMP, 2);
	for (unsigned i = 0; i <= count; i++)
		submit(async, set_request(), 1, &outcomes[i], NULL);
	for (unsigned i = 0; i <= count; i++)
		submit(async, set_request(), 2 + (int)i, &outcomes[count + 1 + i], NULL);
	assert_int_equal(device_written(), 2);
}

/* The two that were written have their responses; then so many are complete. */
static void complete_parked(int count)
{
	device_on_write(echo, NULL);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	device_respond(device_packet(1), 0, 0, NULL, 0);
	assert_int_equal(mad_async_run(async), count);
	expect_all(count, 0);
}

static void resumed_requests_and_others_alternate(void **state)
{
	(void)state;
	park_behind_lid_1(20);
	mad_port_set_destination_limit(port, 100);
	assert_int_equal(device_written(), 2);
	for (unsigned i = 0; i < 40; i++) {
		respond(i);
		assert_int_equal(device_written(), i + 3);
		if (i > 0)
			assert_int_not_equal(lid_of(i + 2) == 1, lid_of(i + 1) == 1);
	}
	respond(40);
	respond(41);
	expect_all(42, 0);
}

/* A response of a node, after this time. */
static void measure(struct destination *destination, uint32_t rtt_us)
{
	struct flow_control *flow = &port->core.transactions.flow;
	struct flow_account account = {.path = &destination->path};
	int64_t now = clock_us();

	flow_sent(flow, &account, now - rtt_us);
	flow_response(flow, &account, rtt_us, false, now);
	flow_ended(flow, &account);
}

static void measure_the_usual_time(struct destination *destination, void *arg)
{
	if (destination != arg)
		measure(destination, 1000);
}

static void measure_all(struct destination *node, uint32_t rtt_us)
{
	destinations_visit(&port->scheduler.destinations, measure_the_usual_time, node);
	if (rtt_us)
		measure(node, rtt_us);
}

/* The destination of a packet; the test is no user of it. */
static struct destination *destination_of(const struct device_packet *packet)
{
	uint8_t umad[sizeof(struct ib_user_mad) + IB_MAD_SIZE] = {0};
	struct destinations *all = &port->scheduler.destinations;
	struct destination *destination;

	memcpy(umad, &packet->header, umad_size());
	memcpy(umad_get_mad(umad), packet->mad, IB_MAD_SIZE);
	destination = destination_get(all, destination_key(umad));
	destination_put(all, destination);
	return destination;
}

/*
 * So many of the first 12 requests that are sent again go to LID 1, which has this round trip,
 * or an unknown one. The others have one of 1000, and five requests wait for each of nine
 * nodes.
 */
static unsigned resumed_to_a_node(uint32_t rtt_us)
{
	struct destination *node;
	unsigned count = 0;

	mad_port_set_destination_limit(port, 1);
	mad_port_set_window(port, MAD_WINDOW_GMP, 100);
	for (int i = 0; i < 54; i++)
		submit(async, set_request(), 9 - i % 9, &outcomes[i], NULL);
	assert_int_equal(device_written(), 9);
	node = destination_of(device_packet(8));
	assert_int_equal(node->path.in_flight, 1);
	mad_port_set_window(port, MAD_WINDOW_GMP, 1);
	measure_all(node, rtt_us);
	mad_port_set_destination_limit(port, 100);
	assert_int_equal(device_written(), 9);
	/* a window of another size has forgotten the usual round trip */
	open_windows(100);
	measure_all(node, rtt_us);
	while (device_written() < 54)
		mad_async_process(async);
	for (unsigned i = 9; i < 9 + 12; i++)
		count += lid_of(i) == 1;
	return count;
}

static void a_quick_node_does_not_wait_for_each_of_the_others(void **state)
{
	(void)state;
	assert_int_equal(resumed_to_a_node(100), 5);
}

static void a_node_that_is_twice_as_quick_as_others_waits_for_them(void **state)
{
	(void)state;
	assert_in_range(resumed_to_a_node(500), 1, 2);
}

static void a_node_whose_round_trip_is_not_known_waits_for_the_others(void **state)
{
	(void)state;
	assert_in_range(resumed_to_a_node(0), 1, 2);
}

static void a_slow_node_delays_others_by_one_request_at_a_time(void **state)
{
	(void)state;
	park_behind_lid_1(20);
	/* the node of packet 0 does not respond */
	for (unsigned i = 1; i < 21; i++)
		respond(i);
	assert_int_equal(device_written(), 22);
	for (unsigned i = 1; i < 22; i++)
		assert_int_equal(lid_of(i), i + 1);
}

static void a_limit_that_falls_holds_for_those_that_are_not_sent_yet(void **state)
{
	(void)state;
	park_behind_lid_1(20);
	mad_port_set_destination_limit(port, 100);
	mad_port_set_destination_limit(port, 3);
	assert_int_equal(device_written(), 2);
	mad_port_set_window(port, MAD_WINDOW_GMP, 100);
	/* two more to LID 1, and all others */
	assert_int_equal(device_written(), 2 + 2 + 20);
	/* the order of the requests to LID 1 is unchanged */
	for (unsigned i = 0, next = 0; i < 42; i++) {
		respond(i);
		if (lid_of(i) == 1)
			assert_int_equal(outcomes[next++].calls, 1);
	}
	expect_all(42, 0);
}

static void a_limit_may_fall_and_rise_again(void **state)
{
	(void)state;
	park_behind_lid_1(20);
	for (unsigned limit = 1; limit < 30; limit++) {
		mad_port_set_destination_limit(port, 40 - limit);
		mad_port_set_destination_limit(port, limit);
		mad_port_set_destination_limit(port, 0);
	}
	complete_parked(42);
}

/* Processes for so many milliseconds. */
static void process_for(int ms)
{
	for (int64_t end = now_ms() + ms; now_ms() < end; sleep_ms(1))
		assert_true(mad_async_process(async) >= 0);
}

static void a_late_request_leaves_its_place_to_another_one(void **state)
{
	(void)state;
	fix_flow(0);
	set_late_after(QUICK);
	submit(async, set_request(), 1, &outcomes[0], NULL);
	submit(async, set_request(), 1, &outcomes[1], NULL);
	assert_int_equal(device_written(), 1);
	while (device_written() < 2) {
		sleep_ms(1);
		mad_async_process(async);
	}
	/* the first one is neither complete nor retransmitted */
	assert_int_equal(stats_of(async).in_flight, 2);
	assert_int_equal(stats_of(async).retried, 0);
}

/* So a limit of 1 never has two requests at one node. */
static void with_a_fixed_limit_a_late_request_keeps_its_place_until_it_ends(void **state)
{
	const ib_rpc_t requests[] = {set_request(), get_request()};
	uint64_t id;

	(void)state;
	mad_port_set_destination_limit(port, 1);
	mad_rpc_set_retries(port, 2);
	set_late_after(QUICK);
	for (int i = 0; i < 2; i++) {
		unsigned before = device_written();
		ib_rpc_t rpc = requests[i];

		rpc.attr.mod = 7;
		submit(async, rpc, 1, &outcomes[2 * i], &id);
		rpc.attr.mod = 8;
		submit(async, rpc, 1, &outcomes[2 * i + 1], NULL);
		process_for(50);
		/* the Get was sent again: there is nothing of the second one */
		assert_true(device_written() >= before + 1 + (unsigned)i);
		for (unsigned n = before; n < device_written(); n++)
			assert_int_equal(device_packet(n)->mad[23], 7);
		assert_int_equal(stats_of(async).queued, 1);
		mad_async_cancel(async, id);
		process_for(1);
		assert_int_equal(device_packet(device_written() - 1)->mad[23], 8);
		assert_int_equal(stats_of(async).queued, 0);
		device_respond(device_packet(device_written() - 1), 0, 0, NULL, 0);
		process_for(1);
		assert_int_equal(outcomes[2 * i + 1].calls, 1);
	}
}

/* It has given its place up, and another request has it. */
static void a_retransmission_waits_for_a_place_like_others(void **state)
{
	(void)state;
	fix_flow(0);
	set_late_after(QUICK);
	mad_rpc_set_retries(port, 2);
	for (int i = 0; i < 2; i++) {
		ib_rpc_t rpc = set_request();

		rpc.attr.mod = 7 + (uint32_t)i;
		rpc.timeout = i ? LONG_MS : 50;
		submit(async, rpc, 1, &outcomes[i], NULL);
	}
	while (device_written() < 2) {
		sleep_ms(1);
		mad_async_process(async);
	}
	/* no response to the second one is late from now on */
	set_late_after(LONG_MS * 1000);
	process_for(100);
	device_time_out(device_packet(0));
	process_for(20);
	assert_int_equal(device_written(), 2);
	assert_int_equal(stats_of(async).retried, 0);
	respond(1);
	assert_int_equal(device_written(), 3);
	assert_int_equal(device_packet(2)->mad[23], 7);
}

/* Its destination has a free place, and the other one was not sent since it was queued. */
static void a_request_waits_for_one_to_its_node_that_was_resumed(void **state)
{
	(void)state;
	mad_port_set_destination_limit(port, 1);
	mad_port_set_window(port, MAD_WINDOW_GMP, 2);
	submit(async, set_request(), 1, &outcomes[0], NULL);
	submit(async, set_request(), 1, &outcomes[1], NULL);
	submit(async, set_request(), 2, &outcomes[2], NULL);
	mad_port_set_destination_limit(port, 2);
	submit(async, set_request(), 1, &outcomes[3], NULL);
	assert_int_equal(device_written(), 2);
	for (unsigned i = 1; i < 3; i++)
		respond(i);
	assert_int_equal(outcomes[1].calls, 1);
	assert_int_equal(outcomes[3].calls, 0);
	respond(0);
	respond(3);
	expect_all(4, 0);
}

static void look_at_places(struct destination *destination, void *arg)
{
	*(unsigned *)arg = destination->path.in_flight;
}

static void a_request_that_is_sent_again_after_busy_has_one_place(void **state)
{
	unsigned places = 0;

	(void)state;
	submit(async, set_request(), 1, &outcomes[0], NULL);
	device_respond(device_packet(0), IB_MAD_STS_BUSY, 0, NULL, 0);
	while (device_written() < 2) {
		sleep_ms(1);
		assert_int_equal(mad_async_process(async), 0);
	}
	destinations_visit(&port->scheduler.destinations, look_at_places, &places);
	assert_int_equal(places, 1);
	respond(1);
	destinations_visit(&port->scheduler.destinations, look_at_places, &places);
	assert_int_equal(places, 0);
}

/* --- retransmissions ------------------------------------------------------------ */

/* The first four nodes have responded. */
static void warm_up(void)
{
	for (int i = 0; i < 4; i++)
		submit(async, get_request(), 1 + i, &outcomes[i], NULL);
	for (unsigned i = 0; i < 4; i++)
		respond(i);
}

static void retransmissions_come_first(void **state)
{
	(void)state;
	warm_up();
	mad_port_set_window(port, MAD_WINDOW_SMP, 1);
	set_late_after(QUICK);
	for (int i = 0; i < 10; i++)
		submit(async, get_request(), 1 + i, &outcomes[4 + i], NULL);
	assert_int_equal(device_written(), 5);
	while (device_written() < 6) {
		sleep_ms(1);
		mad_async_process(async);
	}
	assert_int_equal(lid_of(5), 1);
	assert_int_equal(stats_of(async).retried, 1);
}

/* One of their nodes may respond. */
static void in_a_silence_requests_that_were_never_sent_come_first(void **state)
{
	(void)state;
	warm_up();
	mad_port_set_window(port, MAD_WINDOW_SMP, 4);
	set_late_after(QUICK);
	for (int i = 0; i < 10; i++)
		submit(async, get_request(), 1 + i, &outcomes[4 + i], NULL);
	assert_int_equal(device_written(), 8);
	/* all of them are late at once */
	sleep_ms(2 * QUICK / 1000);
	while (device_written() < 14) {
		sleep_ms(1);
		mad_async_process(async);
		assert_true(stats_of(async).smp.silent);
	}
	for (unsigned i = 8; i < 14; i++)
		assert_int_equal(lid_of(i), i - 3);
}

static void a_retransmission_waits_for_the_window(void **state)
{
	(void)state;
	mad_port_set_window(port, MAD_WINDOW_SMP, 2);
	set_late_after(QUICK);
	submit(async, get_request(), 1, &outcomes[0], NULL);
	submit(async, get_request(), 2, &outcomes[1], NULL);
	mad_port_set_window(port, MAD_WINDOW_SMP, 1);
	/* both are late, but the window has one free place */
	while (stats_of(async).retried < 2) {
		sleep_ms(1);
		mad_async_process(async);
		if (stats_of(async).retried)
			assert_in_range(stats_of(async).smp.in_flight, 0, 1);
	}
}

/* No more packets are sent. */
static void close_windows(void)
{
	int cancel_state = port_enter(port);

	port->core.pace = (struct pace){.rate = 1, .next_ns = INT64_MAX / 2};
	port_leave(port, cancel_state);
}

/* A request whose response is late, and that cannot be retransmitted yet. */
static void queue_retransmission(void)
{
	set_late_after(QUICK);
	submit(async, get_request(), 1, &outcomes[0], NULL);
	close_windows();
	while (list_is_empty(&async->source.flows[FLOW_SMP].queues[QUEUE_AGAIN])) {
		sleep_ms(1);
		mad_async_process(async);
	}
}

static void a_response_completes_what_is_queued_to_be_sent_again(void **state)
{
	(void)state;
	queue_retransmission();
	respond(0);
	assert_int_equal(outcomes[0].error, 0);
	assert_int_equal(outcomes[0].transmissions, 1);
	assert_true(list_is_empty(&port->scheduler.rings[MAD_WINDOW_SMP]));
}

static void after_busy_what_was_queued_to_be_sent_again_pauses(void **state)
{
	(void)state;
	queue_retransmission();
	device_respond(device_packet(0), IB_MAD_STS_BUSY, 0, NULL, 0);
	assert_int_equal(mad_async_process(async), 0);
	assert_true(list_is_empty(&port->scheduler.rings[MAD_WINDOW_SMP]));
	assert_int_equal(port->scheduler.deadlines.count, 1);
}

static struct {
	struct mad_async *other;
	uint64_t id;
	uint32_t timers, timers_after;
} cancelling;

/* While the retransmission is being written, BUSY comes for the first packet. */
static int cancel_after_busy(const struct device_packet *packet, void *arg)
{
	(void)arg;
	if (device_written() != 2 || packet->mad[1] != IB_SMI_CLASS)
		return 0;
	device_respond(device_packet(0), IB_MAD_STS_BUSY, 0, NULL, 0);
	mad_async_process(cancelling.other);
	cancelling.timers = port->scheduler.deadlines.count;
	mad_async_cancel(async, cancelling.id);
	cancelling.timers_after = port->scheduler.deadlines.count;
	return 0;
}

static void a_request_that_is_cancelled_while_it_is_written_has_no_timer(void **state)
{
	(void)state;
	memset(&cancelling, 0, sizeof(cancelling));
	cancelling.other = make_engine();
	device_on_write(cancel_after_busy, NULL);
	set_late_after(QUICK);
	submit(async, get_request(), 1, &outcomes[0], &cancelling.id);
	assert_int_equal(mad_async_run(async), 1);
	assert_int_equal(outcomes[0].error, -ECANCELED);
	assert_int_equal(cancelling.timers, 1);
	assert_int_equal(cancelling.timers_after, 0);
	mad_async_destroy(cancelling.other);
}

static void a_packet_that_is_refused_leaves_the_window(void **state)
{
	(void)state;
	device_fail(DEVICE_WRITE, 1, EINVAL);
	submit(async, set_request(), 1, &outcomes[0], NULL);
	assert_int_equal(outcomes[0].calls, 0);
	assert_int_equal(stats_of(async).gmp.in_flight, 1);
	respond(0);
	assert_int_equal(stats_of(async).gmp.in_flight, 0);
}

/* --- blocking calls ------------------------------------------------------------- */

#define THREADS 8
#define CALLS   50

static void *call_one_node(void *arg)
{
	uint8_t data[IB_PC_DATA_SZ] = {0};
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(1);
	intptr_t count = 0;

	(void)arg;
	for (int i = 0; i < CALLS; i++)
		count += mad_rpc(port, &rpc, &to, data, data) != NULL;
	return (void *)count;
}

/* A call that gets a place at its destination is woken. */
static void blocking_calls_to_one_node_take_turns(void **state)
{
	pthread_t threads[THREADS];
	void *count;

	(void)state;
	device_on_write(echo, NULL);
	for (int adapting = 0; adapting < 2; adapting++) {
		fix_flow(adapting ? 0 : 1);
		for (int i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, call_one_node, NULL),
					 0);
		for (int i = 0; i < THREADS; i++) {
			assert_int_equal(pthread_join(threads[i], &count), 0);
			assert_int_equal((intptr_t)count, CALLS);
		}
	}
}

/* --- shortage ------------------------------------------------------------------- */

static void without_memory_to_queue_a_request_no_limit_holds(void **state)
{
	(void)state;
	mad_port_set_destination_limit(port, 1);
	submit(async, set_request(), 1, &outcomes[0], NULL);
	device_fail_malloc(1);
	submit(async, set_request(), 1, &outcomes[1], NULL);
	device_fail_malloc(0);
	assert_int_equal(device_written(), 2);
	submit(async, set_request(), 1, &outcomes[2], NULL);
	assert_int_equal(device_written(), 2);
	respond(1);
	assert_int_equal(device_written(), 2);
	respond(0);
	respond(2);
	expect_all(3, 0);
}

/* Of a burst of requests, one of a blocking call is in flight. */
static void memory_that_is_in_use_stays(void **state)
{
	struct table *table = &port->core.transactions.outstanding.table;
	struct transmission transmission = {0};
	int cancel_state = port_enter(port);

	(void)state;
	table_reserve(table, 2000);
	table_add(table, &transmission, 1);
	scheduler_shrink(&port->scheduler);
	assert_ptr_equal(table_find(table, 1), &transmission);
	table_remove(table, &transmission);
	scheduler_shrink(&port->scheduler);
	assert_int_equal(table->bucket_count, TABLE_FIRST_BUCKETS);
	/* a little memory stays for the next requests */
	table_reserve(table, 1000);
	scheduler_shrink(&port->scheduler);
	assert_int_equal(table->bucket_count, 1024);
	port_leave(port, cancel_state);
}

/* --- destroying the engine ------------------------------------------------------ */

/* In flight, resumed, not scheduled yet, and queued for a destination. */
static void queue_everywhere(void)
{
	park_behind_lid_1(20);
	mad_port_set_destination_limit(port, 10);
	assert_int_equal(device_written(), 2);
}

static void a_device_that_goes_completes_what_is_queued_anywhere(void **state)
{
	(void)state;
	queue_everywhere();
	device_remove();
	for (int count = 0; count < 42;)
		count += mad_async_process(async);
	expect_all(42, -ENODEV);
}

/* No transmission is in flight, but the request has a timer. */
static void a_device_that_goes_completes_what_pauses_after_busy(void **state)
{
	(void)state;
	submit(async, set_request(), 1, &outcomes[0], NULL);
	device_respond(device_packet(0), IB_MAD_STS_BUSY, 0, NULL, 0);
	assert_int_equal(mad_async_process(async), 0);
	assert_int_equal(stats_of(async).busy, 1);
	device_remove();
	while (!outcomes[0].calls)
		mad_async_process(async);
	assert_int_equal(outcomes[0].error, -ENODEV);
}

static void a_device_that_goes_completes_what_waits_for_a_node_that_is_busy(void **state)
{
	(void)state;
	mad_port_set_destination_limit(port, 1);
	for (int i = 0; i < 3; i++)
		submit(async, set_request(), 1, &outcomes[i], NULL);
	device_respond(device_packet(0), IB_MAD_STS_BUSY, 0, NULL, 0);
	assert_int_equal(mad_async_process(async), 0);
	assert_int_equal(device_written(), 1);
	close_windows();
	device_remove();
	assert_int_equal(mad_async_process(async), 3);
	expect_all(3, -ENODEV);
}

static void a_device_that_goes_completes_what_no_window_lets_through(void **state)
{
	(void)state;
	close_windows();
	submit(async, get_request(), 1, &outcomes[0], NULL);
	submit(async, set_request(), 2, &outcomes[1], NULL);
	assert_int_equal(device_written(), 0);
	device_remove();
	assert_int_equal(mad_async_process(async), 2);
	expect_all(2, -ENODEV);
}

static void an_engine_that_ends_leaves_another_one_s_requests_queued(void **state)
{
	struct mad_async *other = make_engine();

	(void)state;
	queue_everywhere();
	submit(other, set_request(), 1, &outcomes[42], NULL);
	submit(other, set_request(), 30, &outcomes[43], NULL);
	mad_async_destroy(async);
	expect_all(42, -ECANCELED);
	device_on_write(echo, NULL);
	assert_int_equal(mad_async_run(other), 2);
	assert_int_equal(outcomes[42].error, 0);
	mad_async_destroy(other);
	async = make_engine();
}

#ifndef NO_CHILDREN

static void what_is_queued_anywhere_is_not_queued_in_a_child(void **state)
{
	int status = -1;
	pid_t child;

	(void)state;
	queue_everywhere();
	child = fork();
	if (!child) {
		bool well = mad_async_process(async) == 42 && outcomes[41].calls == 1 &&
			    outcomes[41].error == -ECANCELED && !port->scheduler.open;

		device_on_write(echo, NULL);
		for (int i = 0; i < 42; i++)
			submit(async, set_request(), 1 + i / 20, &outcomes[i], NULL);
		if (mad_async_run(async) != 42 || !well)
			_exit(1);
		end_child();
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	complete_parked(42);
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCHEDULER_TEST(flows_of_a_window_take_turns),
		SCHEDULER_TEST(a_request_waits_for_one_of_each_other_engine),
		SCHEDULER_TEST(a_blocking_call_waits_for_one_request_of_an_engine),
		SCHEDULER_TEST(a_new_request_is_sent_after_those_that_are_queued),
		SCHEDULER_TEST(a_blocking_call_needs_no_thread_of_the_engine),
		SCHEDULER_TEST(both_windows_are_sent_in_turn),
		SCHEDULER_TEST(an_engine_wakes_up_when_a_window_opens),
		SCHEDULER_TEST(lanes_of_a_destination_take_turns),
		SCHEDULER_TEST(resumed_requests_and_others_alternate),
		SCHEDULER_TEST(a_quick_node_does_not_wait_for_each_of_the_others),
		SCHEDULER_TEST(a_node_that_is_twice_as_quick_as_others_waits_for_them),
		SCHEDULER_TEST(a_node_whose_round_trip_is_not_known_waits_for_the_others),
		SCHEDULER_TEST(a_slow_node_delays_others_by_one_request_at_a_time),
		SCHEDULER_TEST(a_limit_that_falls_holds_for_those_that_are_not_sent_yet),
		SCHEDULER_TEST(a_limit_may_fall_and_rise_again),
		SCHEDULER_TEST(a_late_request_leaves_its_place_to_another_one),
		SCHEDULER_TEST(with_a_fixed_limit_a_late_request_keeps_its_place_until_it_ends),
		SCHEDULER_TEST(a_retransmission_waits_for_a_place_like_others),
		SCHEDULER_TEST(a_request_waits_for_one_to_its_node_that_was_resumed),
		SCHEDULER_TEST(a_request_that_is_sent_again_after_busy_has_one_place),
		SCHEDULER_TEST(retransmissions_come_first),
		SCHEDULER_TEST(in_a_silence_requests_that_were_never_sent_come_first),
		SCHEDULER_TEST(a_retransmission_waits_for_the_window),
		SCHEDULER_TEST(a_response_completes_what_is_queued_to_be_sent_again),
		SCHEDULER_TEST(after_busy_what_was_queued_to_be_sent_again_pauses),
		SCHEDULER_TEST(a_request_that_is_cancelled_while_it_is_written_has_no_timer),
		SCHEDULER_TEST(a_packet_that_is_refused_leaves_the_window),
		SCHEDULER_TEST(blocking_calls_to_one_node_take_turns),
		SCHEDULER_TEST(without_memory_to_queue_a_request_no_limit_holds),
		SCHEDULER_TEST(memory_that_is_in_use_stays),
		SCHEDULER_TEST(a_device_that_goes_completes_what_is_queued_anywhere),
		SCHEDULER_TEST(a_device_that_goes_completes_what_pauses_after_busy),
		SCHEDULER_TEST(a_device_that_goes_completes_what_waits_for_a_node_that_is_busy),
		SCHEDULER_TEST(a_device_that_goes_completes_what_no_window_lets_through),
		SCHEDULER_TEST(an_engine_that_ends_leaves_another_one_s_requests_queued),
#ifndef NO_CHILDREN
		SCHEDULER_TEST(what_is_queued_anywhere_is_not_queued_in_a_child),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
