/* SPDX-License-Identifier: BSD-2-Clause */

/* Threads that wait for messages of a port: which one leads, and when it is woken. */

#include "engine_fixture.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
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

static void a_thread_that_does_not_poll_is_woken_without_a_write(void **state)
{
	(void)state;
	reader->leader = &waiters[0];
	reader_wake(reader, &waiters[0]);
	reader->polling = true;
	reader_wake(reader, &waiters[1]);
	assert_true(waiters[0].woken && waiters[1].woken);
	assert_int_equal(wakes(), 0);
}

/* The port is closed just now: the alert of a signal handler comes too late. */
static void an_alert_that_cannot_be_written_leaves_errno_alone(void **state)
{
	int before = reader->wake_fd;

	(void)state;
	reader->wake_fd = INT_MAX;
	errno = EXDEV;
	reader_alert(reader);
	assert_int_equal(errno, EXDEV);
	reader->wake_fd = -1;
	reader_alert(reader);
	assert_int_equal(errno, EXDEV);
	reader->wake_fd = before;
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
	/* a thread of the parent polls, and another one reads */
	reader->leader = &waiters[0];
	reader->polling = true;
	reader->reading = true;
	reader->signalled = true;
	reader_alert(reader);
	reader_reset(reader);
	assert_false(reader->alerted);
	assert_false(reader->polling || reader->reading || reader->signalled);
	assert_null(reader->leader);
	assert_true(list_is_empty(&reader->waiters));
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

/* A receiver that was woken for one message is woken for the next one, too. */
static void a_receiver_is_woken_in_each_wait(void **state)
{
	int64_t now = clock_us();

	(void)state;
	waiters[0].receiving = true;
	reader_wake_receiver(reader);
	assert_true(waiters[0].woken);
	reader_wait(reader, &waiters[0], now, now);
	assert_false(waiters[0].woken);
	reader_wake_receiver(reader);
	assert_true(waiters[0].woken);
	/* the other thread waits for something else */
	assert_false(waiters[1].woken);
}

static void for_each_message_another_receiver_is_woken(void **state)
{
	(void)state;
	waiters[0].receiving = waiters[1].receiving = true;
	reader_wake_receiver(reader);
	assert_int_equal(waiters[0].woken + waiters[1].woken, 1);
	reader_wake_receiver(reader);
	assert_int_equal(waiters[0].woken + waiters[1].woken, 2);
}

/* Whatever the memory of the waiter had before. */
static void a_thread_begins_to_wait_for_nothing_yet(void **state)
{
	struct waiter waiter = {
		.following = true,
		.woken = true,
		.interrupted = true,
		.patient = true,
		.receiving = true,
		.sending = true,
	};

	(void)state;
	reader_begin(reader, &waiter);
	assert_false(waiter.following || waiter.woken);
	assert_false(waiter.interrupted || waiter.patient);
	assert_false(waiter.receiving || waiter.sending);
	reader_end(reader, &waiter);
}

static void a_poll_that_times_out_shows_that_nothing_is_queued(void **state)
{
	int64_t now = clock_us();

	(void)state;
	reader_wait(reader, &waiters[0], now + 3000, now);
	assert_int_equal(reader->emptied, now + 3000);
	assert_int_equal(device_poll_timeout(), 3);
	assert_int_equal(device_calls(DEVICE_READ), 0);
}

/* The response to a request that was sent at that time. */
static void respond_to(bool smp, int64_t sent, int64_t now)
{
	struct flow_control *flow = &port->core.transactions.flow;
	struct flow_account account = {.smp = smp};

	flow_sent(flow, &account, sent);
	flow_response(flow, &account, (uint32_t)(now - sent), false, now);
	flow_ended(flow, &account);
}

/* Of either window: all messages that came before the request are read before its response. */
static void a_response_shows_that_earlier_messages_are_read(void **state)
{
	struct flow_control *flow = &port->core.transactions.flow;
	int64_t now = clock_us();

	(void)state;
	assert_int_equal(reader_time(reader, now), now - 100000);
	for (int smp = 0; smp < 2; smp++) {
		respond_to(smp, now - 1000, now);
		assert_int_equal(reader_time(reader, now), now - 1000);
		respond_to(!smp, now - 2000, now);
		assert_int_equal(reader_time(reader, now), now - 1000);
		reader->emptied = now - 500;
		assert_int_equal(reader_time(reader, now), now - 500);
		reader->emptied = 0;
		flow_init(flow);
	}
}

/* A message from the kernel that no request is for. */
static void queue_message(void)
{
	struct ib_user_mad header = {.agent_id = 0};
	uint8_t mad[IB_MAD_SIZE] = {1, IB_SMI_CLASS, 1, IB_MAD_METHOD_GET};

	device_queue(device_fd(), &header, mad, sizeof(mad));
}

/* It may have been woken just when a message came. */
static void a_leader_that_reads_a_message_has_no_wake_left(void **state)
{
	int64_t now = clock_us();

	(void)state;
	queue_message();
	reader->signalled = true;
	eventfd_write(reader->wake_fd, 1);
	reader_wait(reader, &waiters[0], now + LONG_MS * INT64_C(1000), now);
	assert_int_equal(device_calls(DEVICE_READ), 2); /* the message, and none */
	assert_false(reader->signalled);
	assert_int_equal(wakes(), 0);
}

/* Reads from now on, as another thread, and a message comes. */
static void *begin_to_read(void *arg)
{
	while (device_calls(DEVICE_POLL) == *(unsigned *)arg)
		sleep_ms(1);
	reader->reading = true;
	queue_message();
	return NULL;
}

/* Also if the descriptor has number 0. */
static void a_leader_does_not_read_beside_another_thread(void **state)
{
	int copy = dup(0), old = reader->wake_fd;

	(void)state;
	assert_int_equal(dup2(old, 0), 0);
	for (int i = 0; i < 2; i++) {
		unsigned polls = device_calls(DEVICE_POLL);
		int64_t now = clock_us();
		pthread_t other;

		reader->wake_fd = i ? 0 : old;
		assert_int_equal(pthread_create(&other, NULL, begin_to_read, &polls), 0);
		reader_wait(reader, &waiters[0], now + LONG_MS * INT64_C(1000), now);
		pthread_join(other, NULL);
		assert_int_equal(device_calls(DEVICE_READ), 2 * i);
		assert_true(reader->reading);
		reader->reading = false;
		reader_read(reader, 2, now);
		assert_int_equal(device_calls(DEVICE_READ), 2 * i + 2);
	}
	reader->wake_fd = old;
	dup2(copy, 0);
	close(copy);
}

/* What ends a poll. */
enum event {
	ALERT,
	MESSAGE,
	LONG_MESSAGE,
	EVENTS
};

static struct {
	enum event event;
	unsigned polls; /* before the poll */
	atomic_bool unlocked;
} holder;

/* Takes the lock during a poll, ends the poll, and has the lock for a while. */
static void *hold_lock(void *arg)
{
	struct ib_user_mad header = {.agent_id = 0};
	uint8_t mad[1000] = {1, IB_SMI_CLASS, 1, IB_MAD_METHOD_GET};

	(void)arg;
	while (device_calls(DEVICE_POLL) == holder.polls)
		sleep_ms(1);
	core_lock(&port->core);
	if (holder.event == ALERT)
		reader_alert(reader);
	else
		device_queue(device_fd(), &header, mad,
			     holder.event == MESSAGE ? IB_MAD_SIZE : sizeof(mad));
	sleep_ms(20);
	holder.unlocked = true;
	core_unlock(&port->core);
	return NULL;
}

static void after_a_poll_the_leader_waits_for_the_lock(void **state)
{
	pthread_t thread;
	int64_t now;

	(void)state;
	for (int event = 0; event < EVENTS; event++) {
		holder.event = (enum event)event;
		holder.polls = device_calls(DEVICE_POLL);
		holder.unlocked = false;
		now = clock_us();
		assert_int_equal(pthread_create(&thread, NULL, hold_lock, NULL), 0);
		reader_wait(reader, &waiters[0], now + LONG_MS * INT64_C(1000), now);
		assert_true(holder.unlocked);
		pthread_join(thread, NULL);
	}
}

/* The leader polls, and does not run. */
static void a_thread_whose_time_is_over_reads_beside_the_leader(void **state)
{
	int64_t now = clock_us();
	unsigned reads;

	(void)state;
	reader->leader = &waiters[1];
	reader->polling = true;
	for (int late = 0; late < 2; late++) {
		queue_message();
		reads = device_calls(DEVICE_READ);
		reader_wait(reader, &waiters[0], now - late, now);
		assert_int_equal(device_calls(DEVICE_READ), reads + 2);
		assert_int_equal(reader->emptied, now);
	}
	/* but not while another thread reads */
	reads = device_calls(DEVICE_READ);
	reader->reading = true;
	reader_wait(reader, &waiters[0], now, now);
	assert_int_equal(device_calls(DEVICE_READ), reads);
	assert_false(waiters[0].following);
	assert_int_equal(device_calls(DEVICE_POLL), 0);
	reader->reading = false;
	reader->leader = NULL;
	reader->polling = false;
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
	/* others read beside the leader */
	reader->emptied = 0;
	reader->leader = &waiters[1];
	reader->polling = true;
	assert_true(reader_time(reader, now) < now);
	reads = device_calls(DEVICE_READ);
	reader_wait(reader, &waiters[0], now, now);
	assert_int_equal(device_calls(DEVICE_READ), reads + 1);
	/* and wake the leader */
	reader_wake(reader, &waiters[1]);
	assert_int_equal(wakes(), 1);
	reader->leader = NULL;
	reader->polling = false;
	reader_free(reader);
	assert_int_equal(fcntl(0, F_GETFD), -1);
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

/* It does not look again and again, and no longer than it has time. */
static void a_thread_sleeps_while_the_queue_is_blocked(void **state)
{
	const int64_t start = clock_us(), blocked = start + 20000;
	unsigned polls = device_calls(DEVICE_POLL), waits = 0;

	(void)state;
	reader->blocked_until = blocked;
	reader_wait(reader, &waiters[0], start, start);
	for (int64_t now; (now = clock_us()) < blocked; waits++)
		reader_wait(reader, &waiters[0], start + LONG_MS * INT64_C(1000), now);
	/* a condition variable may wake a thread without a reason */
	assert_in_range(waits, 0, 10);
	assert_int_equal(device_calls(DEVICE_POLL), polls);
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
		READER_TEST(a_thread_that_does_not_poll_is_woken_without_a_write),
		READER_TEST(an_alert_that_cannot_be_written_leaves_errno_alone),
		READER_TEST(one_follower_is_to_lead_next),
		READER_TEST(nobody_is_to_lead_while_another_thread_leads_or_reads),
		READER_TEST(one_sender_is_woken_at_a_time),
		READER_TEST(a_child_has_a_descriptor_of_its_own_and_no_alert),
		READER_TEST(an_alert_is_told_once),
		READER_TEST(a_receiver_is_woken_in_each_wait),
		READER_TEST(for_each_message_another_receiver_is_woken),
		READER_TEST(a_thread_begins_to_wait_for_nothing_yet),
		READER_TEST(a_poll_that_times_out_shows_that_nothing_is_queued),
		READER_TEST(a_response_shows_that_earlier_messages_are_read),
		READER_TEST(a_leader_that_reads_a_message_has_no_wake_left),
		READER_TEST(a_leader_does_not_read_beside_another_thread),
		READER_TEST(after_a_poll_the_leader_waits_for_the_lock),
		READER_TEST(a_thread_whose_time_is_over_reads_beside_the_leader),
		READER_TEST(the_descriptor_may_have_number_0),
		READER_TEST(a_queue_is_read_as_soon_as_it_is_not_blocked),
		READER_TEST(a_thread_sleeps_while_the_queue_is_blocked),
		cmocka_unit_test_setup_teardown(
			a_blocking_call_reads_no_longer_than_until_its_response, port_setup,
			port_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
