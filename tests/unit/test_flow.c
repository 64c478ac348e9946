/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Windows and limits that a program sets, the rate, and the cost of queued requests. Which
 * request is sent next is in test_order.c.
 */

#define MANY 300
#include "async_fixture.h"
#include "test.h"
#include "../heap_in_use.h"

FIXTURE(async_setup, async_teardown);

/* The engine's clock, which a test may stop; the linker wraps it. */
int64_t __real_clock_us(void);
int64_t __wrap_clock_us(void);

static int64_t stopped_at; /* 0: it runs */

int64_t __wrap_clock_us(void)
{
	return stopped_at ? stopped_at : __real_clock_us();
}

/* So many requests, each to another LID, or all to one. */
static void submit_many(ib_rpc_t rpc, int count, bool one_lid)
{
	for (int i = 0; i < count; i++)
		submit(async, rpc, one_lid ? 1 : i + 1, &outcomes[i], NULL);
}

/* Responds to the n-th packet, and processes the response. */
static void respond(unsigned n)
{
	device_respond(device_packet(n), 0, 0, NULL, 0);
	assert_int_equal(mad_async_process(async), 1);
}

/* --- windows -------------------------------------------------------------------- */

TEST(a_round_trip_within_a_microsecond_counts_as_one)
{
	assert_int_equal(stats_of(async).gmp.rtt_smoothed_us, 0);
	stopped_at = __real_clock_us();
	submit(async, set_request(), 1, &outcomes[0], NULL);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	assert_int_equal(mad_async_process(async), 1);
	stopped_at = 0;
	assert_int_equal(stats_of(async).gmp.rtt_smoothed_us, 1);
	assert_int_equal(stats_of(async).gmp.rtt_shortest_us, 1);
}

TEST(a_window_can_be_fixed_and_left_to_itself_again)
{
	assert_int_equal(mad_port_set(port, MAD_PORT_SMP_WINDOW, 5), 0);
	assert_int_equal(stats_of(async).smp.window, 5);
	device_on_write(echo, NULL);
	for (int i = 0; i < 10; i++) {
		memset(outcomes, 0, sizeof(outcomes));
		submit_many(get_request(), MANY, false);
		assert_int_equal(mad_async_wait(async, -1), MANY);
	}
	assert_int_equal(stats_of(async).smp.window, 5);
	assert_int_equal(mad_port_set(port, MAD_PORT_SMP_WINDOW, 0), 0);
	assert_true(stats_of(async).smp.window > 5);
	memset(outcomes, 0, sizeof(outcomes));
	submit_many(get_request(), MANY, false);
	assert_int_equal(mad_async_wait(async, -1), MANY);
	expect_all(MANY, 0);
	assert_int_equal(mad_port_set(NULL, MAD_PORT_SMP_WINDOW, 5), -EINVAL);
}

/* --- destinations --------------------------------------------------------------- */

/* A request with a place at its destination may be cancelled before it is sent. */
TEST(a_place_that_is_given_up_is_another_one_s)
{
	uint64_t ids[4];

	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 1);
	mad_port_set(port, MAD_PORT_GMP_WINDOW, 2);
	submit(async, set_request(), 1, &outcomes[0], &ids[0]);
	submit(async, set_request(), 1, &outcomes[1], &ids[1]);
	submit(async, set_request(), 1, &outcomes[2], &ids[2]);
	submit(async, set_request(), 2, &outcomes[3], &ids[3]);
	/* the first is cancelled, the second has the place, but has not been sent yet */
	assert_int_equal(mad_async_cancel(async, ids[0]), 0);
	assert_int_equal(mad_async_cancel(async, ids[1]), 0);
	assert_int_equal(mad_async_process(async), 2);
	assert_int_equal(device_written(), 3);
	respond(1);
	respond(2);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(outcomes[i].calls, 1);
		assert_int_equal(outcomes[i].error, i < 2 ? -ECANCELED : 0);
	}
}

TEST(without_memory_for_a_destination_there_is_no_limit)
{
	int written = 0;

	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 1);
	submit_many(set_request(), 2, true);
	for (unsigned n = 1; n < 4; n++) {
		device_fail_malloc(n);
		submit(async, set_request(), 50 + (int)n, &outcomes[2 + n], NULL);
		device_fail_malloc(0);
		written++;
	}
	assert_int_equal(device_written(), 1 + written);
	device_on_write(echo, NULL);
	for (int i = 0; i < 4; i++)
		device_respond(device_packet((unsigned)i), 0, 0, NULL, 0);
	assert_int_equal(mad_async_wait(async, -1), 5);
}

static int echo_directed(const struct device_packet *packet, void *arg)
{
	/* identified by the first hop */
	if (packet->mad[128 + 1] != *(int *)arg)
		device_respond(packet, 0, 0, NULL, 0);
	return 0;
}

TEST(destinations_of_directed_routes_are_kept_apart)
{
	ib_rpc_t rpc = get_request();
	int dead = 1;

	device_on_write(echo_directed, &dead);
	mad_port_set(port, MAD_PORT_SMP_WINDOW, 100);
	rpc.mgtclass = IB_SMI_DIRECT_CLASS;
	for (int i = 0; i < 60; i++) {
		ib_portid_t to = {.drpath = {.cnt = 2, .p = {0, (uint8_t)(1 + i % 3), 7}}};

		assert_int_equal(
			mad_async_submit(async, &rpc, &to, NULL, 0, note, &outcomes[i], NULL),
			0);
	}
	while (stats_of(async).completed < 40)
		assert_true(mad_async_process(async) >= 0);
	for (int i = 0; i < 60; i++)
		assert_int_equal(outcomes[i].calls, i % 3 != 0);
	assert_int_equal(stats_of(async).queued, 4);
}

/* --- the rate ------------------------------------------------------------------- */

TEST(the_rate_of_all_mads_may_be_limited)
{
	int64_t start = now_ms();

	device_on_write(echo, NULL);
	assert_int_equal(mad_port_set(port, MAD_PORT_RATE, 1000), 0);
	submit_many(set_request(), 30, false);
	assert_int_equal(mad_async_wait(async, -1), 30);
	/* the first two may be sent at once */
	assert_true(now_ms() - start >= 27);
	assert_int_equal(mad_port_set(port, MAD_PORT_RATE, 1), 0);
	for (int i = 30; i < 100; i++)
		submit(async, set_request(), i, &outcomes[i], NULL);
	assert_true(stats_of(async).queued > 0);
	/* the queued requests are sent at once */
	assert_int_equal(mad_port_set(port, MAD_PORT_RATE, 0), 0);
	assert_int_equal(mad_async_wait(async, -1), 70);
	expect_all(100, 0);
	assert_int_equal(mad_port_set(NULL, MAD_PORT_RATE, 1), -EINVAL);
}

/* --- cancelling ----------------------------------------------------------------- */

TEST(requests_can_be_cancelled_in_every_state)
{
	uint64_t ids[MANY];

	mad_port_set(port, MAD_PORT_GMP_WINDOW, 2);
	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 1);
	for (int i = 0; i < 6; i++)
		submit(async, set_request(), 1 + i / 2, &outcomes[i], &ids[i]);
	assert_int_equal(device_written(), 2);
	device_respond(device_packet(1), 0, 0, NULL, 0);

	assert_int_equal(mad_async_cancel(async, ids[0]), 0); /* in flight */
	assert_int_equal(mad_async_cancel(async, ids[0]), -ENOENT);
	assert_int_equal(mad_async_cancel(async, ids[3]), 0); /* queued for its destination */
	assert_int_equal(mad_async_cancel(async, ids[5]), 0); /* queued for the window */
	assert_int_equal(outcomes[0].calls, 0);               /* no callback in this call */
	stats_of(async);
	assert_int_equal(mad_async_process(async), 4);
	stats_of(async);
	assert_int_equal(mad_async_cancel(async, ids[0]), -ENOENT);
	assert_int_equal(mad_async_cancel(async, ids[2]), -ENOENT); /* complete */
	assert_int_equal(mad_async_cancel(async, 0xffffffffffff), -ENOENT);
	assert_int_equal(mad_async_cancel(NULL, ids[0]), -EINVAL);

	device_on_write(echo, NULL);
	device_respond(device_packet(0), 0, 0, NULL, 0); /* the cancel comes too late */
	device_respond(device_packet(2), 0, 0, NULL, 0);
	device_respond(device_packet(3), 0, 0, NULL, 0);
	assert_int_equal(mad_async_wait(async, -1), 2);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(outcomes[i].calls, 1);
		assert_int_equal(outcomes[i].error,
				 i == 0 || i == 3 || i == 5 ? -ECANCELED : 0);
	}
	assert_int_equal(stats_of(async).dropped, 1);
}

TEST(an_id_is_not_another_request_s)
{
	uint64_t first, second;

	device_on_write(echo, NULL);
	submit(async, get_request(), 1, &outcomes[0], &first);
	assert_int_equal(mad_async_wait(async, -1), 1);
	submit(async, get_request(), 1, &outcomes[1], &second);
	assert_int_not_equal(first, second);
	assert_int_equal(mad_async_cancel(async, first), -ENOENT);
	assert_int_equal(mad_async_cancel(async, second), 0);
	assert_int_equal(mad_async_wait(async, -1), 1);
	assert_int_equal(outcomes[1].error, -ECANCELED);
}

TEST(all_can_be_cancelled_in_any_order)
{
	uint64_t ids[MANY];

	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 2);
	for (int i = 0; i < MANY; i++)
		submit(async, i & 1 ? set_request() : get_request(), 1 + i % 7, &outcomes[i],
		       &ids[i]);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(mad_async_cancel(async, ids[i * 7 % MANY]), 0);
		if (i % 50 == 0)
			mad_async_process(async);
		stats_of(async);
	}
	mad_async_wait(async, -1);
	expect_all(MANY, -ECANCELED);
	assert_int_equal(stats_of(async).completed, MANY);
}

/* --- memory --------------------------------------------------------------------- */

TEST(smps_wait_for_the_rate_too)
{
	device_on_write(echo, NULL);
	assert_int_equal(mad_port_set(port, MAD_PORT_RATE, 1000), 0);
	submit_many(get_request(), 10, false);
	assert_true(stats_of(async).queued > 0);
	assert_int_equal(mad_async_wait(async, LONG_MS), 10);
}

TEST(a_waiting_request_costs_640_bytes_at_most)
{
	const int count = 10000;
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(1);
	size_t before, after;

	before = heap_in_use();
	if (!before)
		skip(); /* an allocator that does not report its memory */
	for (int i = 0; i < count; i++) {
		to.lid = i + 1;
		assert_int_equal(
			mad_async_submit(async, &rpc, &to, NULL, 0, note, outcomes, NULL), 0);
	}
	after = heap_in_use();
	print_message("%zu bytes a request\n", (after - before) / (size_t)count);
	assert_in_range((after - before) / (size_t)count, 1, 640);
}
