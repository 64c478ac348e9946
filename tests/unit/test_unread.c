/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Responses that are unread when their timers expire, because no thread has read for a while:
 * no request is retransmitted. The test controls the clock.
 */

#include "port_state.h"
#include "engine_fixture.h"
#include "test.h"

#include <pthread.h>

#define MANY  2000
/* A long time after a timer was due. */
#define LATE  100000
/* A request to a node that has never responded is sent again after this time. */
#define EARLY (2 * QUICK)

int64_t __wrap_clock_us(void);

static _Atomic int64_t clock_now;

int64_t __wrap_clock_us(void)
{
	return clock_now;
}

static struct mad_async *async;
static struct outcome outcomes[MANY];
static pthread_t leader;
static bool leading;

static int setup(void)
{
	clock_now = 1000000;
	if (port_setup())
		return -1;
	memset(outcomes, 0, sizeof(outcomes));
	set_late_after(QUICK);
	mad_port_set(port, MAD_PORT_GMP_WINDOW, MANY);
	async = mad_async_create(port);
	return async ? 0 : -1;
}

static int teardown(void)
{
	if (leading) {
		leading = false;
		device_hold_polls(false);
		device_remove();
		pthread_join(leader, NULL);
	}
	mad_async_free(async);
	return port_teardown();
}

FIXTURE(setup, teardown);

/* Retransmitted as soon as its response is late. */
static ib_rpc_t counters_request(void)
{
	ib_rpc_t rpc = set_request();

	rpc.method = IB_MAD_METHOD_GET;
	return rpc;
}

/* So many responses are unread, and their timers expired 20 ms ago. */
static void leave_unread(void)
{
	device_on_write(echo, NULL);
	for (int i = 0; i < MANY; i++)
		submit(async, counters_request(), i + 1, &outcomes[i], NULL);
	assert_int_equal(device_written(), MANY);
	clock_now += QUICK + 20000;
}

static void expect_nothing_sent_again(void)
{
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(outcomes[i].calls, 1);
		assert_int_equal(outcomes[i].error, 0);
		assert_int_equal(outcomes[i].transmissions, 1);
	}
	assert_int_equal(stats_of(async).retried, 0);
	assert_int_equal(device_written(), MANY);
}

static void process_all(void)
{
	int count = 0, ret;

	while (count < MANY) {
		ret = mad_async_process(async);
		assert_true(ret >= 0);
		count += ret;
	}
}

TEST(process_reads_all_before_it_judges_timers)
{
	leave_unread();
	process_all();
	expect_nothing_sent_again();
}

TEST(run_reads_all_before_it_judges_timers)
{
	leave_unread();
	assert_int_equal(mad_async_wait(async, -1), MANY);
	expect_nothing_sent_again();
}

/* The time comes from the library; the loop does not wait that long. */
TEST(an_event_loop_reads_all_before_it_judges_timers)
{
	struct pollfd fds[] = {{.fd = mad_rpc_portid(port), .events = POLLIN},
			       {.fd = mad_async_poll_fd(async), .events = POLLIN}};
	int count = 0, ret;

	leave_unread();
	while (count < MANY) {
		assert_int_not_equal(poll(fds, 2, timeout_ms_of(async)), -1);
		ret = mad_async_process(async);
		assert_true(ret >= 0);
		count += ret;
	}
	expect_nothing_sent_again();
}

TEST(a_blocking_call_that_reads_for_others_sends_nothing_again)
{
	uint8_t data[IB_PC_DATA_SZ] = {0};
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(1);

	leave_unread();
	assert_non_null(mad_rpc(port, &rpc, &to, data, data));
	process_all();
	assert_int_equal(stats_of(async).retried, 0);
	assert_int_equal(device_written(), MANY + 1);
}

/* --- writes that take long ------------------------------------------------------- */

static int fail_slowly(const struct device_packet *packet, void *arg)
{
	(void)packet;
	(void)arg;
	clock_now += 2000000;
	return -ENOMEM;
}

static void note_elapsed(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	(void)engine;
	assert_int_equal(reply->error, -ENOMEM);
	*(unsigned *)arg = reply->elapsed_ms;
}

TEST(a_request_took_as_long_as_its_write_that_failed)
{
	uint8_t data[IB_PC_DATA_SZ] = {0};
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(1);
	unsigned elapsed = 0;

	device_on_write(fail_slowly, NULL);
	assert_int_equal(mad_async_submit(async, &rpc, &to, data, sizeof(data), note_elapsed,
					  &elapsed, NULL),
			 0);
	assert_int_equal(mad_async_wait(async, -1), 1);
	assert_int_equal(elapsed, 2000);
}

/* --- blocking calls ------------------------------------------------------------- */

/*
 * The response arrives after many messages of others, and the thread does not run for a while.
 */
static int echo_behind_others(const struct device_packet *packet, void *arg)
{
	struct ib_user_mad header = {.agent_id = packet->header.agent_id};
	uint8_t mad[IB_MAD_SIZE];

	device_copy_mad(packet, mad);
	mad[3] |= IB_MAD_RESPONSE;
	mad[12] ^= 0x40;
	for (int i = 0; i < *(int *)arg; i++)
		device_queue(packet->fd, &header, mad, sizeof(mad));
	clock_now += QUICK + 20000;
	return echo(packet, NULL);
}

static void expect_sent_once(int others)
{
	uint8_t data[IB_PC_DATA_SZ] = {0};
	ib_rpc_t rpc = counters_request();
	ib_portid_t to = to_lid(1);

	device_on_write(echo_behind_others, &others);
	assert_non_null(mad_rpc(port, &rpc, &to, data, data));
	assert_int_equal(device_written(), 1);
}

TEST(a_blocking_call_s_response_may_lie_behind_others)
{
	expect_sent_once(300);
}

/* --- another thread leads ------------------------------------------------------- */

/* A thread leads, and does not run. */
static void begin_to_lead(void)
{
	device_hold_polls(true);
	leader = start_receiver();
	leading = true;
}

TEST(process_reads_all_beside_a_leader_that_does_not_run)
{
	begin_to_lead();
	leave_unread();
	process_all();
	expect_nothing_sent_again();
}

TEST(run_reads_all_beside_a_leader_that_does_not_run)
{
	begin_to_lead();
	leave_unread();
	assert_int_equal(mad_async_wait(async, -1), MANY);
	expect_nothing_sent_again();
}

TEST(a_blocking_call_reads_beside_a_leader_that_does_not_run)
{
	begin_to_lead();
	expect_sent_once(0);
}

TEST(a_blocking_call_reads_all_beside_a_leader_that_does_not_run)
{
	begin_to_lead();
	expect_sent_once(300);
}

/* --- messages that never stop --------------------------------------------------- */

/* More messages than one call reads. */
static void queue_others(void)
{
	const struct device_packet *packet = device_packet(0);
	struct ib_user_mad header = {.agent_id = packet->header.agent_id};
	uint8_t mad[IB_MAD_SIZE];

	device_copy_mad(packet, mad);
	mad[3] |= IB_MAD_RESPONSE;
	mad[12] ^= 0x40;
	for (int i = 0; i < 200; i++)
		device_queue(packet->fd, &header, mad, sizeof(mad));
}

/* So many messages, or a few more, are read, and the queue is never empty. */
static unsigned read_others(unsigned count)
{
	const unsigned before = device_calls(DEVICE_READ);

	while (device_calls(DEVICE_READ) - before < count && device_written() == 1) {
		queue_others();
		for (int i = 0; i < 3; i++)
			assert_int_equal(mad_async_process(async), 0);
	}
	return device_calls(DEVICE_READ) - before;
}

/*
 * The kernel queues 200,001 messages at most: a response that came before the timer was due is
 * among so many that are read later.
 */
TEST(timers_are_judged_though_messages_never_stop)
{
	unsigned count;

	submit(async, counters_request(), 1, &outcomes[0], NULL);
	assert_int_equal(mad_async_process(async), 0);
	queue_others();
	clock_now += EARLY;
	count = read_others(190000);
	/* however long ago the timer was due */
	clock_now += 10 * LATE;
	count += read_others(9000);
	assert_int_equal(device_written(), 1);
	count += read_others(2000);
	assert_int_equal(device_written(), 2);
	assert_in_range(count, 200000, 201000);
}

/* The response is the last one of those that were queued in time. */
TEST(a_response_behind_many_messages_is_in_time)
{
	submit(async, counters_request(), 1, &outcomes[0], NULL);
	assert_int_equal(mad_async_process(async), 0);
	for (int i = 0; i < 100; i++)
		queue_others();
	device_respond(device_packet(0), 0, 0, NULL, 0);
	clock_now += 10 * LATE;
	while (!outcomes[0].calls)
		assert_true(mad_async_process(async) >= 0);
	assert_int_equal(outcomes[0].error, 0);
	assert_int_equal(device_written(), 1);
}

TEST(an_idle_port_s_timers_are_judged_at_once)
{
	device_on_write(NULL, NULL);
	submit(async, counters_request(), 1, &outcomes[0], NULL);
	clock_now += EARLY - 1;
	assert_int_equal(mad_async_process(async), 0);
	assert_int_equal(device_written(), 1);
	clock_now += 1;
	assert_int_equal(mad_async_process(async), 0);
	assert_int_equal(device_written(), 2);
}
