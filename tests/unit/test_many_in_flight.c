/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Very many requests in flight when the port is closed, the device is removed, or all are
 * cancelled: each is called back once, with the error. tests/bench/instructions counts what it
 * costs.
 */

#include "engine_fixture.h"
#include "test.h"

#define MANY 100000

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
	mad_async_free(async);
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
	mad_async_cancel(async, MAD_ASYNC_ALL);
}

static void expect_end(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	(void)engine;
	assert_int_equal(reply->error, expected_error);
	(*(int *)arg)++;
}

static void expect_all(void (*end)(void), int error, bool one_node)
{
	int calls = 0;

	expected_error = error;
	for (int i = 0; i < MANY; i++)
		submit_with(async, set_request(), one_node ? 1 : i % 0xbfff + 1, expect_end,
			    &calls);
	end();
	while (calls < MANY)
		mad_async_process(async);
	assert_true(mad_async_process(async) <= 0);
	assert_int_equal(calls, MANY);
}

TEST(a_port_that_is_closed_ends_all_requests)
{
	expect_all(end_by_close, -ECANCELED, false);
}

TEST(a_port_that_is_closed_ends_all_requests_to_one_node)
{
	expect_all(end_by_close, -ECANCELED, true);
}

TEST(a_removal_ends_all_requests)
{
	expect_all(end_by_removal, -ENODEV, false);
}

TEST(all_requests_are_cancelled)
{
	expect_all(end_by_cancel_all, -ECANCELED, false);
}
