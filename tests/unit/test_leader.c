/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The thread that polls the port for all threads (the leader): it does not stop others from
 * reading, is woken at once, hands over the lead in time, and cannot be cancelled while it
 * leads.
 */

#include "event_loop.h"
#include "gate.h"
#include "test.h"

#define MANY 8
#include "async_fixture.h"
#include "port_state.h"

#include <infiniband/umad_ext.h>
#include <limits.h>
#include <signal.h>

FIXTURE(async_gate_setup, async_gate_teardown);

static int high_gate_setup(void)
{
	gate_init();
	return async_high_setup();
}

#define HIGH_TEST(name) TEST_WITH(name, high_gate_setup, async_gate_teardown)

/* --- threads that wait --------------------------------------------------------------- */

enum kind {
	ASK,     /* mad_rpc() */
	RECEIVE, /* mad_receive_via() */
	RUN,     /* mad_async_wait() */
	KINDS,
};

struct thread {
	pthread_t thread;
	enum kind kind;
	struct mad_async *async; /* RUN */
	uint8_t *buffer;         /* RECEIVE */
	int lid;                 /* ASK */
	atomic_bool ended;       /* the call has returned, */
	intptr_t result;         /* and that is its result */
	int error;
};

static intptr_t call(struct thread *thread)
{
	uint8_t data[IB_MAD_SIZE] = {0};
	ib_portid_t to = to_lid(thread->lid);
	ib_rpc_t rpc = set_request();
	void *umad;

	switch (thread->kind) {
	case ASK:
		return mad_rpc(port, &rpc, &to, data, data) != NULL;
	case RECEIVE:
		umad = mad_receive_via(thread->buffer, -1, port);
		if (umad != thread->buffer)
			mad_free(umad);
		return umad != NULL;
	default:
		return mad_async_wait(thread->async, -1);
	}
}

static void *wait_in_call(void *arg)
{
	struct thread *thread = arg;

	thread->result = call(thread);
	thread->error = errno;
	thread->ended = true;
	pthread_testcancel();
	return NULL;
}

/* The number of threads that sleep, or poll, until a message comes. */
static unsigned waiting(void)
{
	return threads_waiting(port);
}

/* Starts a thread and waits until it waits: the first one leads. */
static void start(struct thread *thread)
{
	unsigned before = waiting();

	thread->thread = start_thread(wait_in_call, thread);
	while (waiting() == before)
		sleep_ms(1);
}

static void join(struct thread *thread)
{
	assert_int_equal(pthread_join(thread->thread, NULL), 0);
}

/* The leader polls: it has called poll so many times. */
static void expect_polls(unsigned count)
{
	while (device_calls(DEVICE_POLL) < count)
		sleep_ms(1);
	assert_int_equal(device_calls(DEVICE_POLL), count);
}

static void send_request(size_t length)
{
	struct ib_user_mad header = {.agent_id = 0};
	uint8_t mad[1000] = {1, IB_SMI_CLASS, 1, IB_MAD_METHOD_GET};

	device_queue(device_fd(), &header, mad, length);
}

static void end_receiver(struct thread *receiver)
{
	send_request(IB_MAD_SIZE);
	join(receiver);
	assert_int_equal(receiver->result, 1);
}

/* --- the leader polls ---------------------------------------------------------------- */

TEST(others_read_while_the_leader_polls)
{
	struct thread receiver = {.kind = RECEIVE};

	start(&receiver);
	expect_polls(1);
	device_hold_polls(true);
	submit(async, set_request(), 1, &outcomes[0], NULL);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	assert_true(loop_wakes(async));
	assert_int_equal(mad_async_process(async), 1);
	assert_false(loop_is_awake(async));
	device_hold_polls(false);
	end_receiver(&receiver);
}

TEST(the_leader_polls_once_for_as_long_as_it_takes)
{
	struct thread receiver = {.kind = RECEIVE};

	start(&receiver);
	expect_polls(1);
	assert_true(device_poll_timeout() >= LONG_MS);
	sleep_ms(150);
	assert_int_equal(device_calls(DEVICE_POLL), 1);
	end_receiver(&receiver);
	assert_int_equal(device_calls(DEVICE_POLL), 1);
}

/* The responses are queued before the thread returns from its poll. */
TEST(a_run_that_leads_reads_all_responses_after_one_poll)
{
	struct thread runner = {.kind = RUN, .async = async};

	for (int i = 0; i < 8; i++)
		submit(async, set_request(), 1 + i, &outcomes[i], NULL);
	start(&runner);
	expect_polls(1);
	device_hold_polls(true);
	for (unsigned i = 0; i < 8; i++)
		device_respond(device_packet(i), 0, 0, NULL, 0);
	device_hold_polls(false);
	join(&runner);
	assert_int_equal(runner.result, 8);
	assert_int_equal(device_calls(DEVICE_POLL), 1);
}

TEST(cancelling_a_request_wakes_the_leader)
{
	struct thread runner = {.kind = RUN, .async = async};
	uint64_t id;

	submit(async, set_request(), 1, &outcomes[0], &id);
	start(&runner);
	expect_polls(1);
	assert_true(device_poll_timeout() > LONG_MS / 2);
	assert_int_equal(mad_async_cancel(async, id), 0);
	join(&runner);
	assert_int_equal(runner.result, 1);
	assert_int_equal(outcomes[0].error, -ECANCELED);
	assert_int_equal(device_calls(DEVICE_POLL), 1);
}

PORT_TEST(closing_the_port_wakes_the_leader)
{
	for (int kind = 0; kind < KINDS; kind++) {
		struct thread thread = {.kind = (enum kind)kind, .lid = 1};
		struct outcome outcome = {0};

		thread.async = mad_async_create(port);
		if (kind == RUN)
			submit(thread.async, set_request(), 1, &outcome, NULL);
		start(&thread);
		expect_polls(1);
		assert_true(device_poll_timeout() > LONG_MS / 2);
		mad_rpc_close_port(port);
		join(&thread);
		if (kind == RUN)
			assert_int_equal(outcome.error, -ECANCELED);
		else
			assert_int_equal(thread.error, ECANCELED);
		assert_int_equal(device_calls(DEVICE_POLL), 1);
		mad_async_free(thread.async);
		assert_int_equal(device_teardown(), 0);
		assert_int_equal(port_setup(), 0);
	}
}

TEST(an_earlier_timer_of_another_thread_s_request_wakes_the_leader)
{
	struct thread runner = {.kind = RUN, .async = async};
	ib_rpc_t rpc = get_request();
	uint64_t id;

	mad_rpc_set_retries(port, 1);
	submit(async, set_request(), 1, &outcomes[0], &id);
	start(&runner);
	expect_polls(1);
	assert_true(device_poll_timeout() > LONG_MS / 2);
	rpc.timeout = 20;
	submit(async, rpc, 2, &outcomes[1], NULL);
	while (!outcomes[1].calls)
		sleep_ms(1);
	assert_int_equal(outcomes[1].error, -ETIMEDOUT);
	mad_async_cancel(async, id);
	join(&runner);
	assert_int_equal(runner.result, 2);
	/* until the timers of one, the other, and the first one again */
	assert_in_range(device_calls(DEVICE_POLL), 2, 10);
}

static int hold_up_at_gate(const struct device_packet *packet, void *arg)
{
	(void)packet;
	(void)arg;
	sem_post(&gate.entered);
	wait_for(&gate.leave);
	return 0;
}

static void *submit_to_lid_1(void *arg)
{
	static struct outcome outcome;
	ib_rpc_t rpc = set_request();

	rpc.timeout = 20;
	submit(arg, rpc, 1, &outcome, NULL);
	return NULL;
}

/*
 * A thread waits, because its request is queued after a request of another engine, which has no
 * timer yet: it is being written. No thread runs the other engine.
 */
TEST(the_timer_of_a_request_wakes_the_thread_of_the_next_request)
{
	static const enum kind kinds[] = {ASK, RUN};

	mad_rpc_set_retries(port, 1);
	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 1);
	for (int i = 0; i < 2; i++) {
		struct thread behind = {.kind = kinds[i], .lid = 1};
		struct mad_async *first = mad_async_create(port);
		unsigned written = device_written();
		struct outcome outcome = {0};
		pthread_t submitter;

		behind.async = mad_async_create(port);
		device_on_write(hold_up_at_gate, NULL);
		pthread_create(&submitter, NULL, submit_to_lid_1, first);
		wait_for(&gate.entered);
		if (kinds[i] == RUN)
			submit(behind.async, set_request(), 1, &outcome, NULL);
		start(&behind);
		device_on_write(NULL, NULL);
		sem_post(&gate.leave);
		pthread_join(submitter, NULL);
		assert_true(device_wait_written(written + 2, LONG_MS));
		device_respond(device_packet(written + 1), 0, 0, NULL, 0);
		join(&behind);
		assert_int_equal(behind.result, 1);
		mad_async_free(behind.async);
		mad_async_free(first);
	}
}

TEST(a_later_timer_of_another_thread_s_request_leaves_the_leader_alone)
{
	struct thread runner = {.kind = RUN, .async = async};

	submit(async, set_request(), 1, &outcomes[0], NULL);
	start(&runner);
	expect_polls(1);
	submit(async, set_request(), 2, &outcomes[1], NULL);
	sleep_ms(20);
	assert_int_equal(device_calls(DEVICE_POLL), 1);
	assert_int_equal(mad_async_cancel(async, MAD_ASYNC_ALL), 0);
	join(&runner);
	assert_int_equal(runner.result, 2);
}

/*
 * Two calls to one node. The first request is late, and gives its place to the second one half
 * a second before the rate permits another request.
 */
TEST(a_request_that_gets_a_place_is_sent_when_the_rate_permits_it)
{
	struct thread askers[2] = {{.kind = ASK, .lid = 5}, {.kind = ASK, .lid = 5}};
	ib_portid_t other = to_lid(7);
	ib_rpc_t rpc = set_request();
	uint8_t data[IB_MAD_SIZE] = {0};

	set_late_after(2500000);
	/* one request to a node that has never responded */
	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 0);
	start(&askers[0]);
	assert_true(device_wait_written(1, LONG_MS));
	start(&askers[1]);
	assert_int_equal(device_written(), 1);
	assert_int_equal(mad_port_set(port, MAD_PORT_RATE, 1), 0);
	device_on_write(echo, NULL);
	for (int i = 0; i < 3; i++)
		assert_non_null(mad_rpc(port, &rpc, &other, data, data));
	device_on_write(NULL, NULL);
	assert_true(device_wait_written(5, LONG_MS / 2));
	device_respond(device_packet(0), 0, 0, NULL, 0);
	device_respond(device_packet(4), 0, 0, NULL, 0);
	join(&askers[0]);
	join(&askers[1]);
}

/* --- handing over the lead -------------------------------------------------------------- */

/* Meanwhile others wait, and do not know that no thread polls. */
TEST(a_leader_that_calls_back_leaves_its_place)
{
	struct thread runner = {.kind = RUN, .async = async};
	struct thread asker = {.kind = ASK, .lid = 2};

	submit_with(async, set_request(), 1, call_back_at_gate, &outcomes[0]);
	start(&runner);
	start(&asker);
	assert_true(device_wait_written(2, LONG_MS));
	device_respond(device_packet(0), 0, 0, NULL, 0);
	wait_for(&gate.entered);
	device_respond(device_packet(1), 0, 0, NULL, 0);
	join(&asker);
	assert_int_equal(asker.result, 1);
	sem_post(&gate.leave);
	join(&runner);
}

/* The leader is in the write of the third packet: another thread gets its response meanwhile.
 */
static void expect_response_while_held_up(struct thread *asker)
{
	wait_for(&gate.entered);
	device_respond(device_packet(1), 0, 0, NULL, 0);
	join(asker);
	assert_int_equal(asker->result, 1);
	device_on_write(NULL, NULL);
	sem_post(&gate.leave);
	device_respond(device_packet(2), 0, 0, NULL, 0);
}

/* The leader's second request may be sent after the response to the first one. */
TEST(a_leader_that_sends_leaves_its_place)
{
	struct thread runner = {.kind = RUN, .async = async};
	struct thread asker = {.kind = ASK, .lid = 2};

	mad_port_set(port, MAD_PORT_SMP_WINDOW, 1);
	submit(async, get_request(), 1, &outcomes[0], NULL);
	submit(async, get_request(), 1, &outcomes[1], NULL);
	start(&runner);
	start(&asker);
	assert_true(device_wait_written(2, LONG_MS));
	device_on_write(hold_up_at_gate, NULL);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	expect_response_while_held_up(&asker);
	join(&runner);
	assert_int_equal(runner.result, 2);
}

/* A blocking call's next attempt is being written, which takes long. */
TEST(a_leader_that_sends_its_next_attempt_leaves_its_place)
{
	struct thread leader = {.kind = ASK, .lid = 1}, asker = {.kind = ASK, .lid = 2};

	start(&leader);
	start(&asker);
	assert_true(device_wait_written(2, LONG_MS));
	device_on_write(hold_up_at_gate, NULL);
	device_time_out(device_packet(0));
	expect_response_while_held_up(&asker);
	join(&leader);
	assert_int_equal(leader.result, 1);
}

/* The same for a follower that is woken to lead, and has other work. */
TEST(a_follower_that_calls_back_leaves_the_lead_to_others)
{
	struct thread leader = {.kind = ASK, .lid = 1}, asker = {.kind = ASK, .lid = 2};
	struct thread runner = {.kind = RUN, .async = async};

	start(&leader);
	start(&asker);
	submit_with(async, set_request(), 3, call_back_at_gate, &outcomes[0]);
	start(&runner);
	assert_true(device_wait_written(3, LONG_MS));
	device_hold_polls(true);
	device_respond(device_packet(2), 0, 0, NULL, 0);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	device_hold_polls(false);
	join(&leader);
	wait_for(&gate.entered);
	device_respond(device_packet(1), 0, 0, NULL, 0);
	join(&asker);
	assert_int_equal(leader.result + asker.result, 2);
	sem_post(&gate.leave);
	join(&runner);
}

/* The leader waits for requests in mad_receive_via(), and sends nothing. */
TEST(a_follower_whose_attempt_timed_out_sends_the_next_one)
{
	struct thread receiver = {.kind = RECEIVE}, asker = {.kind = ASK, .lid = 1};

	start(&receiver);
	start(&asker);
	device_time_out(device_packet(0));
	assert_true(device_wait_written(2, LONG_MS));
	device_respond(device_packet(1), 0, 0, NULL, 0);
	join(&asker);
	assert_int_equal(asker.result, 1);
	end_receiver(&receiver);
}

/* The response to another thread's request opens the window. */
TEST(a_receiver_that_leads_lets_others_send)
{
	struct thread receiver = {.kind = RECEIVE}, asker = {.kind = ASK, .lid = 2};

	mad_port_set(port, MAD_PORT_GMP_WINDOW, 1);
	start(&receiver);
	submit(async, set_request(), 1, &outcomes[0], NULL);
	start(&asker);
	assert_int_equal(device_written(), 1);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	assert_true(device_wait_written(2, LONG_MS));
	device_respond(device_packet(1), 0, 0, NULL, 0);
	join(&asker);
	assert_int_equal(asker.result, 1);
	end_receiver(&receiver);
	assert_int_equal(mad_async_wait(async, -1), 1);
}

/* The thread that is woken first has too small a buffer. */
TEST(a_long_request_is_for_another_receiver)
{
	struct thread asker = {.kind = ASK, .lid = 1}, large = {.kind = RECEIVE};
	struct thread small = {.kind = RECEIVE, .buffer = mad_alloc()};

	start(&asker);
	start(&large);
	start(&small);
	send_request(1000);
	join(&large);
	assert_int_equal(large.result, 1);
	send_request(IB_MAD_SIZE);
	join(&small);
	assert_true(small.result || small.error == EMSGSIZE);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	join(&asker);
	mad_free(small.buffer);
}

/* --- waiting for another thread --------------------------------------------------------- */

/* The processor time that a thread has used. */
static int64_t cpu_us(const struct thread *thread)
{
	struct timespec time;
	clockid_t id;

	assert_int_equal(pthread_getcpuclockid(thread->thread, &id), 0);
	assert_int_equal(clock_gettime(id, &time), 0);
	return time.tv_sec * INT64_C(1000000) + time.tv_nsec / 1000;
}

/* A waiting thread uses less than a sixth of a processor's time. */
static void expect_to_sleep(const struct thread *thread)
{
	int64_t begin, spent;

	sleep_ms(50);
	begin = now_ms();
	spent = cpu_us(thread);
	sleep_ms(300);
	spent = cpu_us(thread) - spent;
	assert_true(spent < (now_ms() - begin) * 1000 / 6);
}

static void *wait_with_a_limit(void *arg)
{
	struct thread *thread = arg;

	thread->result = mad_async_wait(thread->async, 2 * LONG_MS);
	return NULL;
}

/* The runner calls back and stays in the callback. The waiter waits for the same engine. */
static void start_both(struct thread *runner, struct thread *waiter, struct outcome *outcome)
{
	device_on_write(echo, NULL);
	submit_with(runner->async, set_request(), 1, call_back_at_gate, outcome);
	runner->thread = start_thread(wait_in_call, runner);
	wait_for(&gate.entered);
	waiter->thread = start_thread(wait_with_a_limit, waiter);
}

TEST(a_thread_sleeps_while_another_one_calls_back)
{
	struct thread runner = {.kind = RUN, .async = async}, waiter = {.async = async};

	start_both(&runner, &waiter, &outcomes[0]);
	expect_to_sleep(&waiter);
	sem_post(&gate.leave);
	join(&runner);
	join(&waiter);
	assert_int_equal(waiter.result, 0);
}

static void *destroy(void *arg)
{
	mad_async_free(arg);
	return NULL;
}

/* mad_async_free() waits for the callback; mad_async_wait() of another thread does not. */
TEST(a_wait_ends_when_the_engine_is_being_destroyed)
{
	struct thread runner = {.kind = RUN, .async = async}, waiter = {.async = async};
	pthread_t destroyer;

	start_both(&runner, &waiter, &outcomes[0]);
	while (calls_in_progress(port) < 2)
		sleep_ms(1);
	sleep_ms(10); /* probably the waiter waits */
	destroyer = start_thread(destroy, async);
	join(&waiter);
	assert_int_equal(waiter.result, 0);
	sem_post(&gate.leave);
	join(&runner);
	join_thread(destroyer);
	async = NULL;
}

/* Timers are due, but are not processed while another thread may have unread messages. */
TEST(a_thread_sleeps_while_another_one_reads)
{
	struct thread thread = {.lid = 1, .async = async};

	mad_rpc_set_timeout(port, 1);
	mad_rpc_set_retries(port, INT_MAX);
	for (int i = 0; i < 2; i++) {
		thread.kind = i ? RUN : ASK;
		if (i)
			submit(async, set_request(), 1, &outcomes[0], NULL);
		hold_reading(port, true);
		thread.thread = start_thread(wait_in_call, &thread);
		expect_to_sleep(&thread);
		hold_reading(port, false);
		device_on_write(echo, NULL);
		join(&thread);
		device_on_write(NULL, NULL);
	}
}

/* --- threads cannot be cancelled in a call ---------------------------------------------- */

static void join_cancelled(struct thread *thread)
{
	void *result;

	assert_int_equal(pthread_join(thread->thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	/* but the call has returned first */
	assert_true(thread->ended);
	assert_int_equal(thread->result, 1);
}

static void end_call(struct thread *thread, unsigned packet)
{
	if (thread->kind == RECEIVE)
		send_request(IB_MAD_SIZE);
	else
		device_respond(device_packet(packet), 0, 0, NULL, 0);
}

static void cancel(enum kind kind, bool follows)
{
	struct thread thread = {.kind = kind, .lid = 1}, leader = {.kind = ASK, .lid = 2};
	struct outcome outcome = {0};
	unsigned packet;

	if (follows)
		start(&leader);
	packet = device_written();
	thread.async = mad_async_create(port);
	if (kind == RUN)
		submit(thread.async, set_request(), 1, &outcome, NULL);
	start(&thread);
	assert_int_equal(pthread_cancel(thread.thread), 0);
	sleep_ms(10);
	assert_false(thread.ended);
	end_call(&thread, packet);
	join_cancelled(&thread);
	mad_async_free(thread.async);
	if (follows) {
		device_respond(device_packet(packet - 1), 0, 0, NULL, 0);
		join(&leader);
		assert_int_equal(leader.result, 1);
	}
}

TEST(a_thread_is_cancelled_after_its_call)
{
	struct thread asker = {.kind = ASK, .lid = 3};

	for (int kind = 0; kind < KINDS; kind++) {
		cancel((enum kind)kind, false);
		cancel((enum kind)kind, true);
	}
	/* the port still works */
	device_on_write(echo, NULL);
	assert_int_equal(call(&asker), 1);
}

static void *process(void *arg)
{
	struct thread *thread = arg;

	thread->result = mad_async_process(thread->async);
	thread->ended = true;
	pthread_testcancel();
	return NULL;
}

TEST(a_thread_that_calls_back_is_cancelled_after_its_call)
{
	struct thread thread = {.async = async};

	submit_with(async, set_request(), 1, call_back_at_gate, &outcomes[0]);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	thread.thread = start_thread(process, &thread);
	wait_for(&gate.entered);
	assert_int_equal(pthread_cancel(thread.thread), 0);
	sleep_ms(10);
	assert_false(thread.ended);
	sem_post(&gate.leave);
	join_cancelled(&thread);
	submit(async, set_request(), 1, &outcomes[0], NULL);
	device_respond(device_packet(1), 0, 0, NULL, 0);
	assert_int_equal(mad_async_wait(async, -1), 1);
}

/* A call disables cancellation for its duration only, and never enables it. */
TEST(a_call_leaves_whether_a_thread_can_be_cancelled_as_it_is)
{
	const int states[] = {PTHREAD_CANCEL_DISABLE, PTHREAD_CANCEL_ENABLE};
	struct thread thread = {.kind = ASK, .lid = 1, .async = async};
	int before;

	device_on_write(echo, NULL);
	for (int i = 0; i < 2; i++) {
		pthread_setcancelstate(states[i], &before);
		assert_int_equal(call(&thread), 1);
		pthread_setcancelstate(states[i], &before);
		assert_int_equal(before, states[i]);
		submit(async, set_request(), 1, &outcomes[0], NULL);
		pthread_setcancelstate(states[i], &before);
		assert_int_equal(before, states[i]);
		assert_int_equal(mad_async_process(async), 1);
		pthread_setcancelstate(states[i], &before);
		assert_int_equal(before, states[i]);
	}
}

/* --- signals ------------------------------------------------------------------------------ */

static atomic_uint signals;

static void count_signal(int number)
{
	(void)number;
	signals++;
}

static void send_signal(struct thread *thread)
{
	unsigned before = signals;

	assert_int_equal(pthread_kill(thread->thread, SIGUSR1), 0);
	while (signals == before)
		sleep_ms(1);
}

TEST(a_signal_ends_mad_receive_via_in_the_leader_alone)
{
	struct thread leader = {.kind = RECEIVE}, follower = {.kind = RECEIVE};
	struct thread asker = {.kind = ASK, .lid = 1};
	struct thread runner = {.kind = RUN, .async = async};
	struct sigaction action = {.sa_handler = count_signal}, before;

	sigaction(SIGUSR1, &action, &before);
	start(&leader);
	expect_polls(1);
	start(&follower);
	start(&asker);
	submit(async, set_request(), 2, &outcomes[0], NULL);
	start(&runner);
	send_signal(&follower);
	send_signal(&asker);
	send_signal(&runner);
	/* the leader may not have called poll yet */
	while (!leader.ended) {
		send_signal(&leader);
		sleep_ms(1);
	}
	join(&leader);
	assert_int_equal(leader.result, 0);
	assert_int_equal(leader.error, EINTR);
	assert_false(asker.ended || runner.ended);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	device_respond(device_packet(1), 0, 0, NULL, 0);
	join(&asker);
	join(&runner);
	assert_int_equal(asker.result, 1);
	assert_int_equal(runner.result, 1);
	end_receiver(&follower);
	sigaction(SIGUSR1, &before, NULL);
}

/* --- handles of simulators -----------------------------------------------------------------
 */

#define THREADS 4

/* It checks periodically, because it cannot be woken. */
HIGH_TEST(the_leader_on_a_simulator_s_handle_looks_up)
{
	struct thread runner = {.kind = RUN, .async = async};
	uint64_t id;

	submit(async, set_request(), 1, &outcomes[0], &id);
	start(&runner);
	while (device_calls(DEVICE_POLL) < 3)
		sleep_ms(1);
	assert_in_range(device_poll_timeout(), 1, 100);
	assert_int_equal(mad_async_cancel(async, id), 0);
	join(&runner);
	assert_int_equal(outcomes[0].error, -ECANCELED);
}

/* Only one thread at a time may use the simulator's state for a handle. */
HIGH_TEST(on_a_simulator_s_handle_nobody_reads_beside_the_leader)
{
	struct thread receiver = {.kind = RECEIVE};
	unsigned reads;

	start(&receiver);
	wait_for_poll(0);
	device_hold_polls(true);
	/* earlier calls have returned, or wait */
	sleep_ms(1);
	submit(async, set_request(), 1, &outcomes[0], NULL);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	reads = device_calls(DEVICE_READ);
	assert_int_equal(mad_async_process(async), 0);
	assert_int_equal(device_calls(DEVICE_READ), reads);
	device_hold_polls(false);
	while (!outcomes[0].calls) {
		sched_yield();
		mad_async_process(async);
	}
	end_receiver(&receiver);
}

/* The leader returns from its poll long after the follower's timeout. */
HIGH_TEST(on_a_simulator_s_handle_a_follower_times_out_beside_the_leader)
{
	struct thread receiver = {.kind = RECEIVE};
	uint8_t data[IB_PC_DATA_SZ] = {0};
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(1);

	start(&receiver);
	wait_for_poll(0);
	device_hold_polls(true);
	mad_rpc_set_retries(port, 1);
	rpc.timeout = 20;
	assert_fails_null(mad_rpc(port, &rpc, &to, data, data), ETIMEDOUT);
	device_hold_polls(false);
	end_receiver(&receiver);
}

static atomic_bool hold_reader;

static void hold_reader_up(enum umad_log_level level, const char *text, void *arg)
{
	(void)level;
	(void)arg;
	if (hold_reader && strstr(text, "receives")) {
		hold_reader = false;
		sem_post(&gate.entered);
		wait_for(&gate.leave);
	}
}

/* False if this machine was too slow: at some point, timers do not wait for messages. */
static bool try_reader_that_is_slow(void)
{
	struct outcome outcome = {0};
	ib_rpc_t rpc = get_request();
	int64_t begin = now_ms();
	bool in_time;

	rpc.timeout = 5;
	hold_reader = true;
	submit(async, rpc, 1, &outcome, NULL);
	device_respond(device_packet(device_written() - 1), 0, 0, NULL, 0);
	wait_for(&gate.entered);
	sleep_ms(6);
	mad_async_process(async);
	sem_post(&gate.leave);
	while (!outcome.calls)
		mad_async_process(async);
	in_time = now_ms() - begin < 100;
	if (in_time)
		assert_int_equal(outcome.error, 0);
	return in_time;
}

/* A response that the leader has read, but not handled, is in time. */
HIGH_TEST(timers_wait_for_a_leader_that_reads)
{
	struct thread receiver = {.kind = RECEIVE};
	int attempts = 100;

	mad_rpc_set_retries(port, 1);
	umad_set_log_hook(hold_reader_up, NULL);
	umad_debug(UMAD_LOG_DEBUG);
	start(&receiver);
	while (--attempts && !try_reader_that_is_slow())
		;
	umad_debug(0);
	umad_set_log_hook(NULL, NULL);
	end_receiver(&receiver);
	if (!attempts) {
		print_message("this machine is too slow to tell\n");
		skip();
	}
}

HIGH_TEST(threads_on_a_simulator_s_handle_get_their_responses)
{
	struct thread askers[THREADS], receivers[2] = {{.kind = RECEIVE}, {.kind = RECEIVE}};
	struct thread runner = {.kind = RUN, .async = async};

	start(&receivers[0]);
	for (int i = 0; i < THREADS; i++) {
		askers[i] = (struct thread){.kind = ASK, .lid = 1 + i};
		start(&askers[i]);
		submit(async, get_request(), 1 + i, &outcomes[i], NULL);
	}
	start(&runner);
	start(&receivers[1]);
	for (unsigned i = 2 * THREADS; i-- > 0;)
		device_respond(device_packet(i), 0, 0, NULL, 0);
	for (int i = 0; i < THREADS; i++) {
		join(&askers[i]);
		assert_int_equal(askers[i].result, 1);
	}
	join(&runner);
	assert_int_equal(runner.result, THREADS);
	mad_rpc_close_port(port);
	for (int i = 0; i < 2; i++) {
		join(&receivers[i]);
		assert_int_equal(receivers[i].error, ECANCELED);
	}
	port = NULL;
}
