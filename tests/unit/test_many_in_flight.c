/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Very many requests in flight when the port is closed, the device is removed, or all are
 * cancelled: the processor time of each does not grow with their number.
 */

#include "engine_fixture.h"
#include "test.h"

#define MANY       100000
#define FEW        (MANY / 10)
/* Ten times as many take at most so many times as long; a quadratic end takes 100 times. */
#define COSTS_MORE 40
/* Other programs may cost a run processor time, because they use the caches. */
#define RUNS       3

static struct mad_async *async;
static struct outcome outcome;

static int setup(void)
{
	if (port_setup())
		return -1;
	outcome.calls = 0;
	device_on_write(keep_silent, NULL);
	device_forget_packets();
	fix_flow(MANY);
	async = mad_async_create(port);
	return async ? 0 : -1;
}

static int teardown(void)
{
	mad_async_destroy(async);
	return port_teardown();
}

FIXTURE(setup, teardown);

/* Of all requests. */
static int expected_error;

static void end_by_close(void)
{
	mad_rpc_close_port(port);
	port = NULL;
}

static void end_by_removal(void)
{
	device_remove();
	mad_async_process(async);
}

static void end_by_cancel_all(void)
{
	mad_async_cancel_all(async);
}

static int64_t processor_us(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return time.tv_sec * INT64_C(1000000) + time.tv_nsec / 1000;
}

static void expect_end(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	(void)engine;
	assert_int_equal(reply->error, expected_error);
	(*(int *)arg)++;
}

/* The processor time until so many requests in flight are complete and called back. */
static int64_t measure(void (*end)(void), bool one_node, int requests)
{
	int64_t before;
	int calls = 0;

	for (int i = 0; i < requests; i++)
		submit_with(async, set_request(), one_node ? 1 : i % 0xbfff + 1, expect_end,
			    &calls);
	before = processor_us();
	end();
	while (calls < requests)
		mad_async_process(async);
	return processor_us() - before;
}

static void set_up_again(void)
{
	assert_int_equal(teardown(), 0);
	assert_int_equal(setup(), 0);
}

static void expect_linear(void (*end)(void), int error, bool one_node)
{
	int64_t few, many = INT64_MAX;

	expected_error = error;
	few = measure(end, one_node, FEW);
	for (int i = 0; i < RUNS && many >= COSTS_MORE * few; i++) {
		set_up_again();
		many = measure(end, one_node, MANY);
		print_message("%d requests: %d us, %d: %d us\n", FEW, (int)few, MANY,
			      (int)many);
	}
	assert_true(many < COSTS_MORE * few);
}

TEST(a_port_is_closed_in_linear_time)
{
	expect_linear(end_by_close, -ECANCELED, false);
}

TEST(a_port_with_requests_to_one_node_is_closed_in_linear_time)
{
	expect_linear(end_by_close, -ECANCELED, true);
}

TEST(a_removal_takes_linear_time)
{
	expect_linear(end_by_removal, -ENODEV, false);
}

TEST(all_requests_are_cancelled_in_linear_time)
{
	expect_linear(end_by_cancel_all, -ECANCELED, false);
}
