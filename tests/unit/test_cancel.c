/* SPDX-License-Identifier: BSD-2-Clause */

/* Very many requests: cancelling and counting them, and their memory. */

#include "engine_fixture.h"
#include "test.h"
#include "../heap_in_use.h"

#define MANY       200000
#define QUESTIONS  1000000
#define SLACK      (256 << 10)
#define FEW        1000
#define TO_ONE_LID true

static struct mad_async *async;
static struct outcome outcome; /* of all requests without their own outcome */
static uint64_t *ids;

static int setup(void)
{
	if (port_setup())
		return -1;
	memset(&outcome, 0, sizeof(outcome));
	ids = calloc(MANY, sizeof(*ids));
	async = mad_async_create(port);
	return async && ids ? 0 : -1;
}

static int teardown(void)
{
	free(ids);
	mad_async_free(async);
	return port_teardown();
}

FIXTURE(setup, teardown);

static void submit_many(int count, bool to_one_lid)
{
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(1);

	for (int i = 0; i < count; i++) {
		to.lid = to_one_lid ? 1 : 1 + i % 40000;
		assert_int_equal(
			mad_async_submit(async, &rpc, &to, NULL, 0, note, &outcome, &ids[i]),
			0);
	}
}

/* --- cancelling ----------------------------------------------------------------- */

/* The i-th request to cancel is i * step modulo MANY, counted from the last one. */
static void cancel_all(unsigned step)
{
	int64_t start = now_ms();

	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(
			mad_async_cancel(async, ids[(MANY - 1 - i) * (uint64_t)step % MANY]),
			0);
	print_message("%d requests cancelled in %d ms\n", MANY, (int)(now_ms() - start));
	outcome.calls = 0;
	assert_int_equal(mad_async_wait(async, -1), MANY);
	assert_int_equal(outcome.calls, MANY);
	assert_int_equal(outcome.error, -ECANCELED);
}

/* If cancelling took time for each queued request, these tests would exceed the time limit. */
TEST(requests_for_the_window_are_cancelled_in_any_order)
{
	mad_port_set(port, MAD_PORT_GMP_WINDOW, 1);
	submit_many(MANY, !TO_ONE_LID);
	cancel_all(1);
	submit_many(MANY, !TO_ONE_LID);
	cancel_all(77773);
	assert_int_equal(device_written(), 2);
}

TEST(requests_for_a_destination_are_cancelled_in_any_order)
{
	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 1);
	submit_many(MANY, TO_ONE_LID);
	cancel_all(1);
	submit_many(MANY, TO_ONE_LID);
	cancel_all(77773);
	assert_int_equal(device_written(), 2);
}

/* --- counting ------------------------------------------------------------------- */

/* The same: time for each request that ever existed would exceed the limit. */
TEST(statistics_are_counted_all_the_time)
{
	struct mad_async_stats stats;
	int64_t start;

	submit_many(MANY, !TO_ONE_LID);
	device_on_write(echo, NULL);
	for (unsigned i = device_written(); i-- > 0;)
		device_respond(device_packet(i), 0, 0, NULL, 0);
	device_forget_packets();
	assert_int_equal(mad_async_wait(async, -1), MANY);
	start = now_ms();
	for (int i = 0; i < QUESTIONS; i++)
		assert_int_equal(mad_async_get_stats(async, &stats, sizeof(stats)), 0);
	print_message("%d times statistics in %d ms\n", QUESTIONS, (int)(now_ms() - start));
	assert_int_equal(stats.completed, MANY);
}

static void expect_counts(unsigned waiting, unsigned in_flight, unsigned completed)
{
	struct mad_async_stats stats = stats_of(async);

	assert_int_equal(stats.queued, waiting);
	assert_int_equal(stats.in_flight, in_flight);
	assert_int_equal(stats.completed, completed);
}

TEST(each_state_of_a_request_is_counted_rightly)
{
	assert_int_equal(mad_port_set(port, MAD_PORT_GMP_WINDOW, 3), 0);
	assert_int_equal(mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 1), 0);
	submit_many(3, TO_ONE_LID); /* one is in flight, two are queued for the node */
	expect_counts(2, 1, 0);
	for (int i = 3; i < 7; i++) /* two are in flight, two are queued for the window */
		submit(async, set_request(), i, &outcome, &ids[i]);
	expect_counts(4, 3, 0);
	device_respond(device_packet(1), 0, 0, NULL, 0); /* the response is not read yet */
	expect_counts(4, 3, 0);

	/* cancelled: done, but not called back yet */
	assert_int_equal(mad_async_cancel(async, ids[1]), 0); /* for the node */
	expect_counts(4, 3, 0);
	assert_int_equal(mad_async_cancel(async, ids[5]), 0); /* for the window */
	expect_counts(4, 3, 0);
	assert_int_equal(mad_async_cancel(async, ids[4]), 0); /* in flight */
	expect_counts(4, 3, 0);

	/* now the unread response is handled, and the queued requests are sent */
	assert_int_equal(mad_async_process(async), 4);
	expect_counts(1, 2, 4);
	assert_int_equal(mad_async_cancel(async, ids[0]), 0);
	assert_int_equal(mad_async_process(async), 1);
	expect_counts(0, 2, 5);
	device_on_write(echo, NULL);
	for (unsigned i = 0; i < device_written(); i++)
		device_respond(device_packet(i), 0, 0, NULL, 0);
	assert_int_equal(mad_async_wait(async, -1), 2);
	expect_counts(0, 0, 7);
}

TEST(what_is_refused_or_times_out_is_counted_rightly)
{
	mad_rpc_set_retries(port, 1);
	/* after the second errno, the request is sent with another ID */
	for (int i = 0; i < 2; i++) {
		device_on_write(echo, NULL);
		device_fail(DEVICE_WRITE, 1, i ? EINVAL : ENOMEM);
		submit(async, set_request(), 1, &outcome, NULL);
		expect_counts(0, 1, (unsigned)i);
		assert_int_equal(mad_async_wait(async, -1), 1);
		assert_int_equal(outcome.error, i ? 0 : -ENOMEM);
		expect_counts(0, 0, (unsigned)i + 1);
	}
	device_on_write(time_out, NULL);
	submit(async, set_request(), 1, &outcome, NULL);
	expect_counts(0, 1, 2);
	assert_int_equal(mad_async_wait(async, -1), 1);
	assert_int_equal(outcome.error, -ETIMEDOUT);
	expect_counts(0, 0, 3);
}

/* --- memory --------------------------------------------------------------------- */

static void expect_memory_to_go_back(bool cancel)
{
	size_t before = heap_in_use(), most, after;

	if (!before)
		skip(); /* an allocator that does not report its memory */
	device_forget_packets();
	submit_many(MANY / 2, !TO_ONE_LID);
	most = heap_in_use();
	for (int i = 0; cancel && i < MANY / 2; i++)
		assert_int_equal(mad_async_cancel(async, ids[i]), 0);
	assert_int_equal(mad_async_wait(async, -1), MANY / 2);
	after = heap_in_use();
	print_message("%zu bytes more at most, %zu after\n", most - before, after - before);
	assert_true(most - before > MANY / 2 * IB_MAD_SIZE);
	assert_in_range(after, 0, before + SLACK);
}

TEST(memory_goes_back_after_a_burst)
{
	device_on_write(echo, NULL);
	expect_memory_to_go_back(false);
}

TEST(memory_goes_back_after_all_were_cancelled)
{
	device_on_write(keep_silent, NULL);
	mad_port_set(port, MAD_PORT_GMP_WINDOW, 1000);
	expect_memory_to_go_back(true);
}

/* --- IDs ------------------------------------------------------------------------ */

/* Freed memory is allocated again: a new request is at the address of an older one. */
TEST(an_id_of_freed_memory_is_not_a_later_request_s)
{
	uint64_t *first = ids, *second = ids + FEW;

	submit_many(FEW, !TO_ONE_LID);
	for (int i = 0; i < FEW; i++)
		assert_int_equal(mad_async_cancel(async, first[i]), 0);
	assert_int_equal(mad_async_wait(async, -1), FEW);
	ids = second;
	submit_many(FEW, !TO_ONE_LID);
	ids = first;
	for (int i = 0; i < FEW; i++) {
		assert_int_equal(mad_async_cancel(async, first[i]), -ENOENT);
		for (int j = 0; j < FEW; j++)
			assert_true(first[i] != second[j]);
	}
	expect_counts(stats_of(async).queued, FEW - stats_of(async).queued, FEW);
	for (int i = 0; i < FEW; i++)
		assert_int_equal(mad_async_cancel(async, second[i]), 0);
	assert_int_equal(mad_async_wait(async, -1), FEW);
}
