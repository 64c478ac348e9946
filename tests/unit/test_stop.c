/* SPDX-License-Identifier: BSD-2-Clause */

/* mad_async_wait(), mad_async_stop() and mad_async_cancel(). */

#include "event_loop.h"
#include "test.h"

#include <signal.h>
#include <sys/time.h>

#define MANY 200
#include "port_state.h"
#include "async_fixture.h"

FIXTURE(async_setup, async_teardown);

#define ROUNDS  200
#define THREADS 4

static void submit_some(int count)
{
	for (int i = 0; i < count; i++)
		submit(async, set_request(), 1 + i, &outcomes[i], NULL);
}

/* The device responds from now on, also to the packets so far. */
static void respond(void)
{
	unsigned written = device_written();

	device_on_write(echo, NULL);
	for (unsigned i = 0; i < written; i++)
		device_respond(device_packet(i), 0, 0, NULL, 0);
}

/* A thread that runs the engine and polls the device. */
static pthread_t start_leading(void)
{
	unsigned polls = device_calls(DEVICE_POLL);
	pthread_t thread = start_running(async);

	wait_for_poll(polls);
	return thread;
}

/* --- a wait with a limit -------------------------------------------------------- */

TEST(a_wait_returns_the_count_when_no_request_is_open)
{
	static const int timeouts[] = {-1, 0, LONG_MS};

	for (int i = 0; i < 3; i++)
		assert_int_equal(mad_async_wait(async, timeouts[i]), 0);
	device_on_write(echo, NULL);
	for (int i = 0; i < 3; i++) {
		memset(outcomes, 0, sizeof(outcomes));
		submit_some(8);
		assert_int_equal(mad_async_wait(async, timeouts[i]), 8);
		expect_all(8, 0);
	}
}

TEST(a_wait_returns_when_its_time_is_over_and_leaves_requests_open)
{
	int64_t begin = now_ms();

	submit_some(8);
	assert_int_equal(mad_async_wait(async, 30), -ETIMEDOUT);
	assert_true(now_ms() - begin >= 30);
	for (int i = 0; i < 8; i++)
		assert_int_equal(outcomes[i].calls, 0);
	assert_int_equal(stats_of(async).in_flight, 8);
}

TEST(a_wait_of_0_does_not_wait)
{
	unsigned polls;

	submit_some(8);
	polls = device_calls(DEVICE_POLL);
	assert_int_equal(mad_async_wait(async, 0), -ETIMEDOUT);
	assert_int_equal(device_calls(DEVICE_POLL), polls);
	for (unsigned i = 0; i < 3; i++)
		device_respond(device_packet(i), 0, 0, NULL, 0);
	assert_int_equal(mad_async_wait(async, 0), -ETIMEDOUT);
	expect_all(3, 0);
	assert_int_equal(outcomes[3].calls, 0);
	assert_int_equal(stats_of(async).completed, 3);
}

static void *wait_long(void *arg)
{
	return (void *)(intptr_t)mad_async_wait(arg, LONG_MS);
}

TEST(a_wait_polls_no_longer_than_its_time)
{
	unsigned polls = device_calls(DEVICE_POLL);
	pthread_t waiter;

	/* no timer of the request comes before */
	mad_rpc_set_timeout(port, 2 * LONG_MS);
	set_late_after(2 * LONG_MS * 1000);
	submit_some(1);
	waiter = start_thread(wait_long, async);
	wait_for_poll(polls);
	assert_in_range(device_poll_timeout(), LONG_MS / 2, LONG_MS);
	mad_async_stop(async);
	assert_int_equal(joined_count(waiter), -EINTR);
}

TEST(a_later_wait_goes_on)
{
	submit_some(8);
	assert_int_equal(mad_async_wait(async, 1), -ETIMEDOUT);
	respond();
	assert_int_equal(mad_async_wait(async, LONG_MS), 8);
	expect_all(8, 0);
}

TEST(a_wait_for_another_thread_s_run_ends_in_time)
{
	pthread_t runner;

	submit_some(1);
	runner = start_leading();
	assert_int_equal(mad_async_wait(async, 0), -ETIMEDOUT);
	assert_int_equal(mad_async_wait(async, 20), -ETIMEDOUT);
	respond();
	assert_int_equal(joined_count(runner), 1);
}

TEST(a_wait_ends_in_time_while_another_thread_polls)
{
	struct mad_async *other = mad_async_create(port);
	unsigned polls = device_calls(DEVICE_POLL);
	pthread_t runner;

	submit(other, set_request(), 1, &outcomes[0], NULL);
	runner = start_running(other);
	wait_for_poll(polls);
	submit(async, set_request(), 2, &outcomes[1], NULL);
	assert_int_equal(mad_async_wait(async, 20), -ETIMEDOUT);
	respond();
	assert_int_equal(mad_async_wait(async, -1), 1);
	assert_int_equal(joined_count(runner), 1);
	mad_async_free(other);
}

static int wait_result;

static void wait_in_callback(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	(void)reply;
	(void)arg;
	wait_result = mad_async_wait(engine, 0);
}

TEST(wrong_arguments_are_refused)
{
	assert_int_equal(mad_async_wait(NULL, 0), -EINVAL);
	assert_int_equal(mad_async_cancel(NULL, MAD_ASYNC_ALL), -EINVAL);
	mad_async_stop(NULL);
	device_on_write(echo, NULL);
	submit_with(async, set_request(), 1, wait_in_callback, NULL);
	assert_int_equal(mad_async_wait(async, -1), 1);
	assert_int_equal(wait_result, -EDEADLK);
}

/* --- stop ----------------------------------------------------------------------- */

TEST(a_stop_before_a_run_ends_that_run_alone)
{
	device_on_write(echo, NULL);
	submit_some(8);
	mad_async_stop(async);
	mad_async_stop(async);
	assert_int_equal(mad_async_wait(async, -1), -EINTR);
	assert_int_equal(outcomes[0].calls, 0);
	assert_int_equal(mad_async_wait(async, -1), 8);
	expect_all(8, 0);

	mad_async_stop(async);
	assert_int_equal(mad_async_wait(async, LONG_MS), -EINTR); /* with no request open */
	assert_int_equal(mad_async_wait(async, LONG_MS), 0);
}

TEST(a_stop_leaves_an_event_loop_alone)
{
	device_on_write(echo, NULL);
	assert_int_equal(mad_async_wait(async, -1), 0);
	submit_some(8);
	mad_async_stop(async);
	assert_int_equal(mad_async_process(async), 8);
	assert_int_equal(mad_async_wait(async, -1), -EINTR);
}

TEST(a_stop_ends_the_run_of_another_thread)
{
	pthread_t runner;

	submit_some(8);
	for (int i = 0; i < ROUNDS; i++) {
		runner = i & 1 ? start_leading() : start_running(async);
		mad_async_stop(async);
		assert_int_equal(joined_count(runner), -EINTR);
	}
	assert_int_equal(outcomes[0].calls, 0);
	respond();
	assert_int_equal(mad_async_wait(async, -1), 8);
	expect_all(8, 0);
}

/*
 * The runner sleeps on a condition variable, which a signal handler cannot signal. A blocking
 * call does not process an engine.
 */
TEST(a_stop_ends_a_run_while_a_blocking_call_polls)
{
	unsigned polls = device_calls(DEVICE_POLL);
	pthread_t leader, runner;

	leader = start_call(1);
	wait_for_poll(polls);
	submit(async, set_request(), 2, &outcomes[1], NULL);
	for (int i = 0; i < ROUNDS; i++) {
		runner = start_running(async);
		if (i % 16 == 0)
			sleep_ms(2);
		mad_async_stop(async);
		assert_int_equal(joined_count(runner), -EINTR);
	}
	/* no message wakes the thread that polls */
	sleep_ms(10);
	polls = device_calls(DEVICE_POLL);
	sleep_ms(20);
	assert_int_equal(device_calls(DEVICE_POLL), polls);
	respond();
	assert_null(join_thread(leader));
	assert_int_equal(mad_async_wait(async, -1), 1);
}

TEST(a_stop_ends_the_runs_of_all_threads)
{
	pthread_t runners[THREADS];

	submit_some(8);
	for (int round = 0; round < ROUNDS / 10; round++) {
		runners[0] = start_leading();
		for (int i = 1; i < THREADS; i++)
			runners[i] = start_running(async);
		while (calls_in_progress(port) < THREADS)
			sched_yield();
		mad_async_stop(async);
		for (int i = 0; i < THREADS; i++)
			assert_int_equal(joined_count(runners[i]), -EINTR);
	}
	/* the stop was for all of them */
	respond();
	assert_int_equal(mad_async_wait(async, -1), 8);
}

static void stop_in_callback(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	note(engine, reply, arg);
	mad_async_stop(engine);
}

TEST(after_a_stop_no_callback_begins)
{
	for (int i = 0; i < 3; i++)
		submit_with(async, set_request(), 1, stop_in_callback, &outcomes[i]);
	respond();
	for (int i = 0; i < 3; i++) {
		assert_int_equal(mad_async_wait(async, -1), -EINTR);
		expect_all(i + 1, 0);
		assert_int_equal(outcomes[i + 1].calls, 0);
	}
	assert_int_equal(mad_async_wait(async, -1), 0);
}

TEST(a_stop_does_not_keep_an_engine_from_being_destroyed)
{
	submit_some(3);
	mad_async_stop(async);
	mad_async_free(async);
	expect_all(3, -ECANCELED);
	/* at the address of the first one */
	async = mad_async_create(port);
	assert_int_equal(mad_async_wait(async, -1), 0);
}

/* --- signal handlers ------------------------------------------------------------ */

static struct mad_async *_Atomic stopped_by_signal;
static atomic_uint signals;

static void stop_by_signal(int signal)
{
	int before = errno;

	(void)signal;
	mad_async_stop(stopped_by_signal);
	signals += errno == before;
}

static void handle(int signal)
{
	struct sigaction action = {.sa_handler = stop_by_signal};

	stopped_by_signal = async;
	signals = 0;
	assert_int_equal(sigaction(signal, &action, NULL), 0);
}

/* ThreadSanitizer delays a signal that arrives just before poll(2) until poll(2) returns. */
#ifndef NO_CHILDREN
TEST(a_signal_handler_may_stop_a_run)
{
	pthread_t runner;

	handle(SIGUSR1);
	submit_some(8);
	for (int i = 0; i < ROUNDS; i++) {
		runner = i & 1 ? start_leading() : start_running(async);
		pthread_kill(runner, SIGUSR1);
		assert_int_equal(joined_count(runner), -EINTR);
	}
	assert_int_equal(signals, ROUNDS);
	signal(SIGUSR1, SIG_DFL);
}
#endif

/* In any state of the thread. */
TEST(a_signal_handler_may_stop_at_any_time)
{
	struct itimerval often = {{0, 200}, {0, 200}}, never = {0};
	int completed = 0, stopped = 0, ret;

	handle(SIGALRM);
	device_on_write(echo, NULL);
	device_forget_packets();
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	while (signals < 100 || stopped < 10) {
		submit_some(8);
		while ((ret = mad_async_wait(async, -1)) == -EINTR)
			stopped++;
		assert_true(ret >= 0 && ret <= 8);
		completed += 8;
	}
	/* The handler stays: a last signal may arrive late. */
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	stopped_by_signal = NULL;
	assert_int_equal(stats_of(async).completed, completed);
	print_message("%u stops, %d runs ended by them\n", signals, stopped);
}

/* --- other handles, other processes --------------------------------------------- */

TEST_WITH(a_stop_ends_a_run_on_a_handle_that_is_no_descriptor, async_high_setup, async_teardown)
{
	pthread_t runner;

	submit_some(2);
	for (int i = 0; i < 3; i++) {
		runner = start_leading();
		mad_async_stop(async);
		assert_int_equal(joined_count(runner), -EINTR);
	}
}

#ifndef NO_CHILDREN
static int child_that_stops(void)
{
	mad_async_stop(async);
	/* a thread of the parent was in a call for the port */
	if (mad_async_wait(async, -1) != -ECANCELED || mad_async_process(async) != -ECANCELED)
		return __LINE__;
	return timeout_ms_of(async) == -ECANCELED ? 0 : __LINE__;
}

TEST(a_stop_in_a_child_leaves_the_parent_alone)
{
	pthread_t runner;

	submit_some(2);
	runner = start_leading();
	run_in_child(child_that_stops);
	respond();
	assert_int_equal(joined_count(runner), 2);
}
#endif

/* --- cancelling all ------------------------------------------------------------- */

TEST(requests_in_any_state_are_cancelled)
{
	fix_flow(4);
	submit_some(20); /* 4 are in flight, 16 queued */
	assert_int_equal(device_written(), 4);
	/* one waits for its retry, one is complete */
	device_respond(device_packet(0), IB_MAD_STS_BUSY, 0, NULL, 0);
	device_respond(device_packet(1), 0, 0, NULL, 0);
	read_messages(port, 2);
	assert_int_equal(mad_async_cancel(async, MAD_ASYNC_ALL), 0);
	assert_int_equal(mad_async_cancel(async, MAD_ASYNC_ALL), 0);
	assert_int_equal(mad_async_wait(async, 0), 20);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(outcomes[i].calls, 1);
		assert_int_equal(outcomes[i].error, i == 1 ? 0 : -ECANCELED);
	}
	assert_int_equal(stats_of(async).busy, 1);
	assert_int_equal(mad_async_cancel(async, MAD_ASYNC_ALL), 0);
	/* the engine continues to work */
	memset(outcomes, 0, sizeof(outcomes));
	respond();
	submit_some(8);
	assert_int_equal(mad_async_wait(async, -1), 8);
	expect_all(8, 0);
}

static int cancelled_in_callback;

static void cancel_in_callback(struct mad_async *engine, const struct mad_reply *reply,
			       void *arg)
{
	note(engine, reply, arg);
	cancelled_in_callback = mad_async_cancel(engine, MAD_ASYNC_ALL);
}

TEST(a_callback_may_cancel_all)
{
	submit_with(async, set_request(), 1, cancel_in_callback, &outcomes[50]);
	submit_some(40);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	assert_int_equal(mad_async_wait(async, -1), 41);
	assert_int_equal(cancelled_in_callback, 0);
	assert_int_equal(outcomes[50].error, 0);
	expect_all(40, -ECANCELED);
}

TEST(cancelling_all_ends_the_run_of_another_thread)
{
	pthread_t runner;

	submit_some(40);
	runner = start_leading();
	assert_int_equal(mad_async_cancel(async, MAD_ASYNC_ALL), 0);
	assert_int_equal(joined_count(runner), 40);
	expect_all(40, -ECANCELED);
}

TEST(cancelling_all_leaves_other_engines_alone)
{
	struct mad_async *other = mad_async_create(port);

	submit_some(4);
	submit(other, set_request(), 1, &outcomes[10], NULL);
	assert_int_equal(mad_async_cancel(async, MAD_ASYNC_ALL), 0);
	assert_int_equal(outcomes[10].calls, 0);
	respond();
	assert_int_equal(mad_async_wait(other, -1), 1);
	assert_int_equal(outcomes[10].error, 0);
	mad_async_free(other);
}
