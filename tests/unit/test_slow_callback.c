/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A callback that takes longer than all attempts of the other requests, while their responses
 * are queued: a request with a response does not time out, and is not sent again.
 */

#define MANY 1000

#include "async_fixture.h"
#include "test.h"

#define TIMEOUT_MS 100
#define ATTEMPTS   1
/* Longer than all attempts, by more than the library may judge a timer late. */
#define SLOW_MS    (TIMEOUT_MS * ATTEMPTS + 200)

static int setup(void)
{
	if (async_setup())
		return -1;
	mad_port_set(port, MAD_PORT_SMP_WINDOW, MANY);
	mad_port_set(port, MAD_PORT_GMP_WINDOW, MANY);
	mad_rpc_set_timeout(port, TIMEOUT_MS);
	mad_rpc_set_retries(port, ATTEMPTS);
	device_on_write(echo, NULL);
	return 0;
}

FIXTURE(setup, async_teardown);

static void note_slowly(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	note(engine, reply, arg);
	sleep_ms(SLOW_MS);
}

/* The first request has that callback. The responses to all are queued at once. */
static void submit_all_for(mad_async_fn *callback, ib_rpc_t rpc)
{
	uint8_t data[IB_SMP_DATA_SIZE] = {0};
	ib_portid_t to = to_lid(1);

	assert_int_equal(mad_async_submit(async, &rpc, &to, data, sizeof(data), callback,
					  &outcomes[0], NULL),
			 0);
	for (int i = 1; i < MANY; i++)
		submit(async, rpc, i + 1, &outcomes[i], NULL);
	assert_int_equal(device_written(), MANY);
}

static void submit_all(ib_rpc_t rpc)
{
	submit_all_for(note_slowly, rpc);
}

static void expect_responses(void)
{
	int failed = 0;

	for (int i = 0; i < MANY; i++)
		failed += outcomes[i].calls != 1 || outcomes[i].error;
	assert_int_equal(failed, 0);
	assert_int_equal(device_written(), MANY);
}

static void process_all(void)
{
	struct pollfd fd = {.fd = mad_async_poll_fd(async), .events = POLLIN};
	int count = 0, ret;

	while (count < MANY) {
		assert_int_equal(poll(&fd, 1, LONG_MS), 1);
		ret = mad_async_process(async);
		assert_true(ret >= 0);
		count += ret;
	}
}

TEST(no_get_of_run_times_out_while_its_response_is_queued)
{
	submit_all(get_request());
	assert_int_equal(mad_async_wait(async, -1), MANY);
	expect_responses();
}

TEST(no_get_of_an_event_loop_times_out_while_its_response_is_queued)
{
	submit_all(get_request());
	process_all();
	expect_responses();
}

TEST(no_set_times_out_while_its_response_is_queued)
{
	submit_all(set_request());
	assert_int_equal(mad_async_wait(async, -1), MANY);
	expect_responses();
}

/* A Get of more than one attempt is retransmitted as soon as its response is late. */
TEST(no_get_is_sent_again_while_its_response_is_queued)
{
	set_late_after(QUICK);
	mad_rpc_set_timeout(port, LONG_MS);
	mad_rpc_set_retries(port, 3);
	submit_all(get_request());
	assert_int_equal(mad_async_wait(async, -1), MANY);
	expect_responses();
}

/* The blocking call of the slow callback reads the messages for all. */
static void note_and_query(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	uint8_t data[IB_SMP_DATA_SIZE] = {0};
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(1);

	note_slowly(engine, reply, arg);
	assert_non_null(mad_rpc(port, &rpc, &to, data, data));
}

TEST(a_blocking_call_of_a_slow_callback_lets_no_request_time_out)
{
	mad_port_set(port, MAD_PORT_SMP_WINDOW, MANY + 1);
	submit_all_for(note_and_query, get_request());
	assert_int_equal(mad_async_wait(async, -1), MANY);
	expect_all(MANY, 0);
}

/* A blocking call does not begin before the callback has returned. */
TEST(a_blocking_call_after_a_slow_callback_lets_no_request_time_out)
{
	uint8_t data[IB_SMP_DATA_SIZE] = {0};
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(1);

	mad_port_set(port, MAD_PORT_SMP_WINDOW, MANY + 1);
	submit_all(rpc);
	assert_int_not_equal(mad_async_process(async), 0);
	assert_non_null(mad_rpc(port, &rpc, &to, data, data));
	assert_int_not_equal(mad_async_wait(async, -1), 0);
	expect_all(MANY, 0);
}
