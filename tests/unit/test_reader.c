/* SPDX-License-Identifier: BSD-2-Clause */

/* Threads that wait for messages of a port: which one leads, and when it is woken. */

#include "engine_fixture.h"

#include <fcntl.h>
#include <sys/eventfd.h>

static struct reader *reader;
static struct waiter waiters[2];

static int setup(void **state)
{
	if (port_setup(state))
		return -1;
	reader = &port->reader;
	memset(waiters, 0, sizeof(waiters));
	core_lock(&port->core);
	reader_begin(reader, &waiters[0]);
	reader_begin(reader, &waiters[1]);
	return 0;
}

static int teardown(void **state)
{
	list_init(&reader->waiters);
	core_unlock(&port->core);
	return port_teardown(state);
}

#define READER_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* The number of writes to the reader's descriptor. */
static unsigned wakes(void)
{
	eventfd_t count = 0;

	return eventfd_read(reader->wake_fd, &count) ? 0 : (unsigned)count;
}

static void the_descriptor_does_not_block_and_ends_at_exec(void **state)
{
	(void)state;
	assert_true(fcntl(reader->wake_fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(reader->wake_fd, F_GETFD) & FD_CLOEXEC);
}

static void a_leader_that_polls_is_woken_by_one_write(void **state)
{
	(void)state;
	reader->leader = &waiters[0];
	reader->polling = true;
	reader_wake(reader, &waiters[0]);
	reader_wake(reader, &waiters[0]);
	assert_true(waiters[0].woken);
	assert_int_equal(wakes(), 1);
}

static void one_follower_is_to_lead_next(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		clock_cond_init(&waiters[i].changed);
		waiters[i].following = true;
	}
	reader_pass(reader);
	assert_int_equal(waiters[0].woken + waiters[1].woken, 1);
	for (int i = 0; i < 2; i++)
		pthread_cond_destroy(&waiters[i].changed);
}

static void nobody_is_to_lead_while_another_thread_leads_or_reads(void **state)
{
	(void)state;
	clock_cond_init(&waiters[1].changed);
	waiters[1].following = true;
	reader->leader = &waiters[0];
	reader_pass(reader);
	reader->leader = NULL;
	reader->reading = true;
	reader_pass(reader);
	assert_false(waiters[1].woken);
	reader->reading = false;
	reader_pass(reader);
	assert_true(waiters[1].woken);
	pthread_cond_destroy(&waiters[1].changed);
}

static void one_sender_is_woken_at_a_time(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		clock_cond_init(&waiters[i].changed);
		waiters[i].following = true;
		waiters[i].sending = true;
	}
	reader_wake_sender(reader);
	reader_wake_sender(reader);
	assert_int_equal(waiters[0].woken + waiters[1].woken, 1);
	for (int i = 0; i < 2; i++)
		pthread_cond_destroy(&waiters[i].changed);
}

static void a_child_has_a_descriptor_of_its_own_and_no_alert(void **state)
{
	int before = reader->wake_fd;

	(void)state;
	reader_alert(reader);
	reader_reset(reader);
	assert_false(reader->alerted);
	/* the old one is closed, so that its number is the first free one */
	assert_int_equal(reader->wake_fd, before);
	assert_int_equal(wakes(), 0);
}

static void an_alert_is_told_once(void **state)
{
	int64_t now = clock_us();

	(void)state;
	reader_alert(reader);
	reader_wait(reader, &waiters[0], now, now);
	assert_false(reader->alerted);
	assert_int_equal(wakes(), 0);
}

/* The state of a process with a closed standard input. */
static void the_descriptor_may_have_number_0(void **state)
{
	int64_t now = clock_us();
	int copy = dup(0), old = reader->wake_fd;
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(1);
	uint8_t data[IB_PC_DATA_SZ] = {0};
	unsigned reads;

	(void)state;
	assert_int_equal(dup2(old, 0), 0);
	reader->wake_fd = 0;
	reader_alert(reader);
	/* the alert ends the poll before the timeout */
	reader_wait(reader, &waiters[0], now + 50000, now);
	assert_int_equal(reader->emptied, 0);
	assert_false(reader->reading);
	device_on_write(echo, NULL);
	core_unlock(&port->core);
	assert_int_equal(mad_send_via(&rpc, &to, NULL, data, port), 0);
	core_lock(&port->core);
	reads = device_calls(DEVICE_READ);
	reader_wait(reader, &waiters[0], now + 50000, now);
	assert_true(device_calls(DEVICE_READ) > reads);
	reader->wake_fd = old;
	dup2(copy, 0);
	close(copy);
}

static void a_queue_is_read_as_soon_as_it_is_not_blocked(void **state)
{
	unsigned before = device_calls(DEVICE_POLL);
	int64_t now = clock_us();

	(void)state;
	reader->blocked_until = now;
	reader_wait(reader, &waiters[0], now, now);
	assert_true(device_calls(DEVICE_POLL) > before);
}

/* Its response is read, and nothing else: the other request has none. */
static void a_blocking_call_reads_no_longer_than_until_its_response(void **state)
{
	struct mad_async *async = mad_async_create(port);
	struct outcome outcome = {0};
	uint8_t data[IB_PC_DATA_SZ] = {0};
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(1);

	(void)state;
	assert_non_null(async);
	submit(async, set_request(), 2, &outcome, NULL);
	device_on_write(echo, NULL);
	assert_non_null(mad_rpc(port, &rpc, &to, data, data));
	assert_int_equal(device_calls(DEVICE_READ), 1);
	mad_async_destroy(async);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		READER_TEST(the_descriptor_does_not_block_and_ends_at_exec),
		READER_TEST(a_leader_that_polls_is_woken_by_one_write),
		READER_TEST(one_follower_is_to_lead_next),
		READER_TEST(nobody_is_to_lead_while_another_thread_leads_or_reads),
		READER_TEST(one_sender_is_woken_at_a_time),
		READER_TEST(a_child_has_a_descriptor_of_its_own_and_no_alert),
		READER_TEST(an_alert_is_told_once),
		READER_TEST(the_descriptor_may_have_number_0),
		READER_TEST(a_queue_is_read_as_soon_as_it_is_not_blocked),
		cmocka_unit_test_setup_teardown(
			a_blocking_call_reads_no_longer_than_until_its_response, port_setup,
			port_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
