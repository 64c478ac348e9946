/* SPDX-License-Identifier: BSD-2-Clause */

/* Servers on an engine: calls from several threads, and in a child of fork(). */

#include "event_loop.h"
#include "gate.h"
#include "port_state.h"
#include "request_server_fixture.h"
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

static int gate_setup(void)
{
	gate_init();
	return server_setup();
}

static int wait_teardown(void)
{
	sem_post(&gate.leave); /* after a failure a thread may wait there */
	mad_async_destroy(async);
	return gate_teardown();
}

FIXTURE(gate_setup, wait_teardown);

static void stop_third(struct mad_server *from, struct mad_request *request, void *arg)
{
	assert_int_equal(mad_request_respond(request, 0, "x", 1), 0);
	if (++*(int *)arg == 3)
		mad_server_stop(from);
}

TEST(run_serves_until_the_server_is_stopped)
{
	int calls = 0;

	mad_server_stop(server);
	start(ping_options(), stop_third, &calls);
	come_many(1, 3);
	assert_int_equal(mad_async_run(async), 3);
	assert_int_equal(device_written(), 3);
}

static void stop_run(struct mad_server *from, struct mad_request *request, void *arg)
{
	(void)from;
	mad_request_drop(request);
	++*(int *)arg;
	mad_async_stop(async);
}

TEST(after_a_stop_no_callback_begins)
{
	int calls = 0;

	mad_server_stop(server);
	server = start(ping_options(), stop_run, &calls);
	come_many(1, 3);
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(mad_async_run(async), -EINTR);
		assert_int_equal(calls, i);
	}
	mad_server_stop(server);
	assert_int_equal(mad_async_run(async), 0);
}

#define RESPONDERS 4

static void *respond_all(void *arg)
{
	unsigned first = (unsigned)(uintptr_t)arg;

	for (unsigned i = first; i < 1000; i += RESPONDERS) {
		while (count <= i)
			sleep_ms(1);
		if (mad_request_respond(held[i], 0, "x", 1))
			return arg ? arg : (void *)1;
	}
	return NULL;
}

static void *serve(void *arg)
{
	atomic_bool *end = arg;

	while (!*end)
		if (!mad_async_process(async))
			sleep_ms(1);
	return NULL;
}

TEST(any_thread_may_respond)
{
	pthread_t responders[RESPONDERS], loop;
	atomic_bool end = false;
	void *result;

	assert_int_equal(pthread_create(&loop, NULL, serve, &end), 0);
	for (uintptr_t i = 0; i < RESPONDERS; i++)
		pthread_create(&responders[i], NULL, respond_all, (void *)i);
	come_many(1, 1000);
	for (unsigned i = 0; i < RESPONDERS; i++) {
		pthread_join(responders[i], &result);
		assert_null(result);
	}
	assert_int_equal(device_written(), 1000);
	mad_server_stop(server);
	end = true;
	pthread_join(loop, NULL);
}

static atomic_int in_callback;

static void linger(struct mad_server *from, struct mad_request *request, void *arg)
{
	(void)from;
	(void)arg;
	in_callback = 1;
	sleep_ms(50);
	mad_request_drop(request);
	in_callback = 2;
}

TEST(a_stop_waits_for_the_callback)
{
	atomic_bool end = false;
	pthread_t loop;

	in_callback = 0;
	mad_server_stop(server);
	server = start(ping_options(), linger, NULL);
	assert_int_equal(pthread_create(&loop, NULL, serve, &end), 0);
	come(ping_request(1));
	while (!in_callback)
		sleep_ms(1);
	mad_server_stop(server);
	assert_int_equal(in_callback, 2);
	end = true;
	pthread_join(loop, NULL);
}

static void hold_at_gate(struct mad_server *from, struct mad_request *request, void *arg)
{
	hold(from, request, arg);
	wait_at_gate();
}

static void *ask(void *arg)
{
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(1);
	uint8_t data[IB_SMP_DATA_SIZE] = {0};

	return mad_rpc(port, &rpc, &to, data, data) == data ? arg : NULL;
}

static void *stop_it(void *arg)
{
	mad_server_stop(arg);
	return NULL;
}

/* A thread in mad_async_run() that has handled one request. */
static pthread_t start_run(void)
{
	pthread_t runner = start_running(async);

	come(ping_request(1));
	while (!count)
		sleep_ms(1);
	sleep_ms(20); /* probably it waits for messages */
	return runner;
}

TEST(destroying_an_engine_ends_the_run_of_its_servers)
{
	pthread_t runner;

	runner = start_run();
	mad_async_destroy(async);
	async = NULL;
	assert_int_equal(joined_count(runner), 1);
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), -ECANCELED);
	mad_request_drop(held[0]);
}

TEST(the_run_of_another_thread_ends_with_the_last_server)
{
	pthread_t runner;

	runner = start_run();
	mad_server_stop(server);
	assert_int_equal(joined_count(runner), 1);
	mad_request_drop(held[0]);
}

/* After the callback, its thread continues with another server, and does not return. */
TEST(a_stop_ends_with_its_callback_although_run_goes_on)
{
	struct mad_server *second;
	pthread_t runner, stopper;

	second = start_second(hold_at_gate);
	runner = start_running(async);
	come_to_second(1);
	wait_for(&gate.entered);
	assert_int_equal(pthread_create(&stopper, NULL, stop_it, second), 0);
	while (device_agent(device_fd(), 7).registered)
		sleep_ms(1);
	sleep_ms(10); /* probably the stopper waits for the callback */
	sem_post(&gate.leave);
	pthread_join(stopper, NULL);
	come(ping_request(2));
	while (count < 2)
		sleep_ms(1);
	mad_server_stop(server);
	assert_int_equal(joined_count(runner), 2);
	mad_request_drop(held[0]);
	mad_request_drop(held[1]);
}

static void *destroy(void *arg)
{
	mad_async_destroy(arg);
	return NULL;
}

/* The threads that stop, destroy and run the engine end in any order. */
TEST(an_engine_may_be_destroyed_while_a_server_is_stopped)
{
	pthread_t runner, stopper, destroyer;

	for (unsigned i = 0; i < 20; i++) {
		mad_server_stop(server);
		start_second(hold);
		server = start(ping_options(), hold_at_gate, NULL);
		runner = start_running(async);
		come(ping_request(1));
		wait_for(&gate.entered);
		assert_int_equal(pthread_create(&stopper, NULL, stop_it, server), 0);
		while (device_agent(device_fd(), 7).registered)
			sleep_ms(1);
		assert_int_equal(pthread_create(&destroyer, NULL, destroy, async), 0);
		sleep_ms(1); /* probably the destroyer waits */
		sem_post(&gate.leave);
		pthread_join(runner, NULL);
		pthread_join(stopper, NULL);
		pthread_join(destroyer, NULL);
		mad_request_drop(held[0]);
		assert_false(port_has_servers(port));
		async = mad_async_create(port);
		server = start(ping_options(), hold, NULL);
		count = 0;
	}
}

/* During a callback, its thread does not poll: another thread leads. */
TEST(others_get_their_responses_during_a_callback)
{
	pthread_t runner, asker;
	void *result;

	start_second(hold_at_gate);
	runner = start_run(); /* probably it leads */
	assert_int_equal(pthread_create(&asker, NULL, ask, &count), 0);
	assert_true(device_wait_written(1, LONG_MS));
	sleep_ms(10); /* probably the asker follows */
	come_to_second(1);
	wait_for(&gate.entered);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	pthread_join(asker, &result);
	assert_non_null(result);
	sem_post(&gate.leave);
	mad_async_stop(async);
	pthread_join(runner, NULL);
	mad_request_drop(held[0]);
	mad_request_drop(held[1]);
}

/* --- children ------------------------------------------------------------------- */

#ifndef NO_CHILDREN

/* In a child, where cmocka's assertions would continue with the parent's test. */
#define CHECK(condition)                                                    \
	do {                                                                \
		if (!(condition)) {                                         \
			print_error("line %d: %s\n", __LINE__, #condition); \
			_exit(1);                                           \
		}                                                           \
	} while (0)

static void in_child(void (*check)(void))
{
	int status;
	pid_t child;

	child = fork();
	if (!child) {
		signal(SIGSEGV, SIG_DFL);
		signal(SIGABRT, SIG_DFL);
		alarm(LONG_MS / 1000);
		check();
		end_child();
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void end_all(void)
{
	mad_async_destroy(async);
	mad_rpc_close_port(port);
}

static void respond_in_child(void)
{
	CHECK(server_stats().held == 2);
	CHECK(server_stats().queued == 0);
	CHECK(mad_request_respond(held[0], 0, "x", 1) == -ECANCELED);
	mad_request_drop(held[0]);
	mad_request_drop(held[1]);
	mad_server_stop(server);
	end_all();
}

TEST(a_child_has_no_servers)
{
	come_many(1, 2);
	process();
	in_child(respond_in_child);
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), 0);
	mad_request_drop(held[1]);
}

/* Another engine of the port, whose thread reads the messages. */
static struct mad_async *reading;

static void expect_nothing_queued(void)
{
	struct mad_server_stats stats = server_stats();
	struct mad_server_options options = ping_options();
	struct mad_server *none = server;
	unsigned calls;

	CHECK(stats.queued == 0 && stats.held == 0);
	CHECK(stats.received == 3);
	options.oui = 0x123456;
	CHECK(mad_server_start(async, &options, hold, NULL, &none) == -ECANCELED);
	CHECK(!none);
	calls = device_calls(DEVICE_IOCTL);
	mad_server_stop(server);
	CHECK(device_calls(DEVICE_IOCTL) == calls); /* the agent is the parent's */
	CHECK(!port_has_servers(port));
	/* without a server, there is nothing to wait for */
	CHECK(mad_async_run(async) == 0);
	CHECK(count == 0);
	mad_async_destroy(reading);
	end_all();
}

TEST(a_child_has_no_queued_requests)
{
	reading = mad_async_create(port);
	queue_and_refuse(reading);
	in_child(expect_nothing_queued);
	/* the parent still has the agent and the queued requests */
	process();
	assert_int_equal(count, 3);
	assert_int_equal(device_written(), 2);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(mad_request_respond(held[i], 0, "x", 1), 0);
	mad_async_destroy(reading);
}

static void close_without_stop(void)
{
	unsigned calls = device_calls(DEVICE_IOCTL);

	CHECK(mad_async_process(async) == 0);
	mad_rpc_close_port(port);
	CHECK(device_calls(DEVICE_IOCTL) == calls); /* the agents are the parent's */
	CHECK(server_stats().held == 1);
	CHECK(mad_request_respond(held[0], 0, "x", 1) == -ECANCELED);
	mad_request_drop(held[0]);
	mad_async_destroy(async);
}

TEST(a_child_may_close_the_port_before_the_engine_ends)
{
	come(ping_request(1));
	process();
	in_child(close_without_stop);
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), 0);
}

static void drop_held(void)
{
	CHECK(mad_request_respond(held[0], 0, "x", 1) == -ECANCELED);
	mad_request_drop(held[0]);
	CHECK(!port_has_servers(port));
	end_all();
}

TEST(a_child_may_drop_requests_of_a_server_that_was_stopped)
{
	come(ping_request(1));
	process();
	mad_server_stop(server);
	in_child(drop_held);
	mad_request_drop(held[0]);
}

/* A thread of the parent was in a call for the port: all calls fail at once. */
static void call_in_vain(void)
{
	CHECK(mad_request_respond(held[0], 0, "x", 1) == -ECANCELED);
	mad_server_stop(server);
	mad_request_drop(held[0]);
	end_all();
}

/* The thread that calls back is not in the child. */
TEST(a_child_does_not_wait_for_a_callback_of_the_parent)
{
	pthread_t runner;

	mad_server_stop(server);
	server = start(ping_options(), hold_at_gate, NULL);
	runner = start_running(async);
	come(ping_request(1));
	wait_for(&gate.entered);
	in_child(call_in_vain);
	sem_post(&gate.leave);
	mad_server_stop(server);
	pthread_join(runner, NULL);
	mad_request_drop(held[0]);
}

static void *lock_at_gate(void *arg)
{
	lock_port(arg);
	wait_at_gate();
	unlock_port(arg);
	return NULL;
}

TEST(a_child_does_not_free_a_server_that_a_thread_was_changing)
{
	pthread_t thread;

	come(ping_request(1));
	process();
	assert_int_equal(pthread_create(&thread, NULL, lock_at_gate, port), 0);
	wait_for(&gate.entered);
	in_child(call_in_vain);
	sem_post(&gate.leave);
	pthread_join(thread, NULL);
	mad_request_drop(held[0]);
}

#endif
