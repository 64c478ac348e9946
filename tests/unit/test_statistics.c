/* SPDX-License-Identifier: BSD-2-Clause */

/* mad_async_get_stats() and the numbers of a reply. The test controls the clock. */

#define MANY 4

#include "async_fixture.h"
#include "test.h"

#define SECOND INT64_C(1000000)

int64_t __wrap_clock_us(void);

static _Atomic int64_t clock_now;

int64_t __wrap_clock_us(void)
{
	return clock_now;
}

static int setup(void)
{
	clock_now = SECOND;
	return async_setup();
}

FIXTURE(setup, async_teardown);

/* stats_of() also checks the sum, of which the tests below say nothing. */
static struct mad_async_stats statistics(void)
{
	struct mad_async_stats stats;

	assert_int_equal(mad_async_get_stats(async, &stats, sizeof(stats)), 0);
	return stats;
}

/* --- round trips ---------------------------------------------------------------- */

/* A request whose response comes after so many seconds, in its only attempt. */
static void respond_after(unsigned seconds)
{
	mad_rpc_set_timeout(port, 2000 * 1000);
	mad_rpc_set_retries(port, 1);
	submit(async, set_request(), 1, &outcomes[0], NULL);
	clock_now += seconds * SECOND;
	device_respond(device_packet(0), 0, 0, NULL, 0);
	assert_int_equal(mad_async_process(async), 1);
	expect_all(1, 0);
}

TEST(a_reply_has_a_round_trip_of_1000_seconds)
{
	respond_after(1000);
	assert_int_equal(outcomes[0].rtt_us, 1000 * SECOND);
}

/* 2^30 microseconds are 1,074 seconds. */
TEST(a_reply_has_a_round_trip_of_1100_seconds)
{
	respond_after(1100);
	assert_int_equal(outcomes[0].rtt_us, 1100 * SECOND);
}

TEST(statistics_have_a_round_trip_of_1100_seconds)
{
	respond_after(1100);
	assert_int_equal(statistics().rtt_min_us, 1100 * SECOND);
	assert_int_equal(statistics().rtt_mean_us, 1100 * SECOND);
	assert_int_equal(statistics().rtt_max_us, 1100 * SECOND);
}

/* --- requests in flight ---------------------------------------------------------- */

TEST(a_request_cancelled_before_it_was_sent_is_not_in_flight)
{
	uint64_t id;

	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 1);
	submit(async, set_request(), 1, &outcomes[0], NULL);
	submit(async, set_request(), 1, &outcomes[1], &id);
	assert_int_equal(device_written(), 1);
	assert_int_equal(statistics().in_flight, 1);
	assert_int_equal(statistics().queued, 1);
	assert_int_equal(mad_async_cancel(async, id), 0);
	assert_int_equal(statistics().in_flight, 1);
	assert_int_equal(mad_async_process(async), 1);
	assert_int_equal(statistics().in_flight, 1);
	assert_int_equal(statistics().queued, 0);
}

TEST(a_request_cancelled_after_it_was_sent_is_in_flight_until_called_back)
{
	uint64_t id;

	submit(async, set_request(), 1, &outcomes[0], &id);
	assert_int_equal(mad_async_cancel(async, id), 0);
	assert_int_equal(statistics().in_flight, 1);
	assert_int_equal(mad_async_process(async), 1);
	assert_int_equal(statistics().in_flight, 0);
}

/* --- retransmissions ------------------------------------------------------------- */

/* The kernel holds the ID of the first one: the request is sent with another ID. */
TEST(a_transmission_whose_id_the_kernel_refuses_is_no_retransmission)
{
	device_on_write(echo, NULL);
	device_fail(DEVICE_WRITE, 1, EINVAL);
	submit(async, set_request(), 1, &outcomes[0], NULL);
	assert_int_equal(mad_async_process(async), 1);
	expect_all(1, 0);
	assert_int_equal(device_written(), 1);
	assert_int_equal(statistics().retried, 0);
}
