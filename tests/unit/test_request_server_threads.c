/* SPDX-License-Identifier: BSD-2-Clause */

/* Servers on an engine: calls from several threads, and in a child of fork(). */

#include "event_loop.h"
#include "gate.h"
#include "port_state.h"
#include "request_server_fixture.h"
#include "test.h"

#include <pthread.h>

static int gate_setup(void)
{
	gate_init();
	return server_setup();
}

FIXTURE(gate_setup, async_gate_teardown);

static void stop_third(struct mad_server *from, struct mad_request *request, int error,
		       void *arg)
{
	if (!request)
		return;
	assert_int_equal(error, 0);
	assert_int_equal(mad_request_respond(request, 0, "x", 1), 0);
	if (++*(int *)arg == 3)
		mad_server_stop(from);
}

TEST(run_serves_until_the_server_is_stopped)
{
	int calls = 0;

	end_server();
	start(ping_options(), stop_third, &calls);
	come_many(1, 3);
	assert_int_equal(mad_async_wait(async, -1), 4); /* and the last callback */
	assert_int_equal(device_written(), 3);
}

static void stop_run(struct mad_server *from, struct mad_request *request, int error, void *arg)
{
	(void)from;
	(void)error;
	if (!request)
		return;
	mad_request_free(request);
	++*(int *)arg;
	mad_async_stop(async);
}

TEST(after_a_stop_no_callback_begins)
{
	int calls = 0;

	end_server();
	server = start(ping_options(), stop_run, &calls);
	come_many(1, 3);
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(mad_async_wait(async, -1), -EINTR);
		assert_int_equal(calls, i);
	}
	mad_server_stop(server);
	assert_int_equal(mad_async_wait(async, -1), 1);
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

	loop = start_thread(serve, &end);
	for (uintptr_t i = 0; i < RESPONDERS; i++)
		responders[i] = start_thread(respond_all, (void *)i);
	come_many(1, 1000);
	for (unsigned i = 0; i < RESPONDERS; i++)
		assert_null(join_thread(responders[i]));
	assert_int_equal(device_written(), 1000);
	mad_server_stop(server);
	end = true;
	pthread_join(loop, NULL);
}

static atomic_int in_callback, told_end;

static void linger(struct mad_server *from, struct mad_request *request, int error, void *arg)
{
	(void)from;
	(void)arg;
	assert_int_equal(error, 0);
	if (!request) {
		assert_int_equal(in_callback, 2); /* one at a time */
		told_end = 1;
		return;
	}
	in_callback = 1;
	wait_at_gate();
	mad_request_free(request);
	in_callback = 2;
}

TEST(a_stop_does_not_wait_for_the_callback)
{
	atomic_bool end = false;
	pthread_t loop;

	in_callback = told_end = 0;
	end_server();
	server = start(ping_options(), linger, NULL);
	loop = start_thread(serve, &end);
	come(ping_request(1));
	wait_for(&gate.entered);
	mad_server_stop(server);
	assert_int_equal(in_callback, 1);
	assert_int_equal(told_end, 0);
	sem_post(&gate.leave);
	while (!told_end)
		sleep_ms(1);
	end = true;
	pthread_join(loop, NULL);
}

static void hold_at_gate(struct mad_server *from, struct mad_request *request, int error,
			 void *arg)
{
	hold(from, request, error, arg);
	if (request)
		wait_at_gate();
}

static void *stop_it(void *arg)
{
	mad_server_stop(arg);
	return NULL;
}

/* A thread in mad_async_wait() that has handled one request. */
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
	mad_async_free(async);
	async = NULL;
	assert_int_equal(joined_count(runner), 1);
	assert_int_equal(ends, 1);
	assert_int_equal(end_error, -ECANCELED);
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), -ECANCELED);
	mad_request_free(held[0]);
}

TEST(the_run_of_another_thread_ends_with_the_last_server)
{
	pthread_t runner;

	runner = start_run();
	mad_server_stop(server);
	assert_int_equal(joined_count(runner), 2); /* the last callback, too */
	assert_int_equal(ends, 1);
	mad_request_free(held[0]);
}

TEST(the_run_continues_with_other_servers)
{
	struct mad_server *second;
	pthread_t runner;

	second = start_second(hold_at_gate);
	runner = start_running(async);
	come_to_second(1);
	wait_for(&gate.entered);
	mad_server_stop(second);
	sem_post(&gate.leave);
	while (ends < 1)
		sleep_ms(1);
	come(ping_request(2));
	while (count < 2)
		sleep_ms(1);
	mad_server_stop(server);
	assert_int_equal(joined_count(runner), 4);
	mad_request_free(held[0]);
	mad_request_free(held[1]);
}

static void *destroy(void *arg)
{
	mad_async_free(arg);
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
		stopper = start_thread(stop_it, server);
		while (device_agent(device_fd(), 7).registered)
			sleep_ms(1);
		destroyer = start_thread(destroy, async);
		sleep_ms(1); /* probably the destroyer waits */
		sem_post(&gate.leave);
		pthread_join(runner, NULL);
		pthread_join(stopper, NULL);
		pthread_join(destroyer, NULL);
		mad_request_free(held[0]);
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

	start_second(hold_at_gate);
	runner = start_run(); /* probably it leads */
	asker = start_call(1);
	assert_true(device_wait_written(1, LONG_MS));
	sleep_ms(10); /* probably the asker follows */
	come_to_second(1);
	wait_for(&gate.entered);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	assert_null(join_thread(asker));
	sem_post(&gate.leave);
	mad_async_stop(async);
	pthread_join(runner, NULL);
	mad_request_free(held[0]);
	mad_request_free(held[1]);
}

/* --- children ------------------------------------------------------------------- */

#ifndef NO_CHILDREN

static int end_all(void)
{
	mad_async_free(async);
	mad_rpc_close_port(port);
	return 0;
}

static int respond_in_child(void)
{
	EXPECT(server_stats().held == 2);
	EXPECT(server_stats().queued == 0);
	EXPECT(mad_request_respond(held[0], 0, "x", 1) == -ECANCELED);
	mad_request_free(held[0]);
	mad_request_free(held[1]);
	mad_server_stop(server);
	EXPECT(ends == 0);
	end_all();
	EXPECT(ends == 1 && end_error == -ECANCELED);
	return 0;
}

TEST(a_child_has_no_servers)
{
	come_many(1, 2);
	process();
	run_in_child(respond_in_child);
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), 0);
	mad_request_free(held[1]);
}

/* Another engine of the port, whose thread reads the messages. */
static struct mad_async *reading;

static int expect_nothing_queued(void)
{
	struct mad_server_stats stats = server_stats();
	struct mad_server_options options = ping_options();
	struct mad_server *none = server;
	unsigned calls;

	EXPECT(stats.queued == 0 && stats.held == 0);
	EXPECT(stats.received == 3);
	options.oui = 0x123456;
	EXPECT(mad_server_start(async, &options, hold, NULL, &none) == -ECANCELED);
	EXPECT(!none);
	calls = device_calls(DEVICE_IOCTL);
	mad_server_stop(server);
	EXPECT(device_calls(DEVICE_IOCTL) == calls); /* the agent is the parent's */
	EXPECT(mad_async_wait(async, -1) == 1);      /* the last callback */
	EXPECT(!port_has_servers(port));
	/* without a server, there is nothing to wait for */
	EXPECT(mad_async_wait(async, -1) == 0);
	EXPECT(count == 0);
	mad_async_free(reading);
	return end_all();
}

TEST(a_child_has_no_queued_requests)
{
	reading = mad_async_create(port);
	queue_and_refuse(reading);
	run_in_child(expect_nothing_queued);
	/* the parent still has the agent and the queued requests */
	process();
	assert_int_equal(count, 3);
	assert_int_equal(device_written(), 2);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(mad_request_respond(held[i], 0, "x", 1), 0);
	mad_async_free(reading);
}

static int close_without_stop(void)
{
	unsigned calls = device_calls(DEVICE_IOCTL);

	EXPECT(mad_async_process(async) == 1);
	EXPECT(ends == 1 && end_error == -ECANCELED);
	mad_rpc_close_port(port);
	EXPECT(device_calls(DEVICE_IOCTL) == calls); /* the agents are the parent's */
	EXPECT(mad_request_respond(held[0], 0, "x", 1) == -ECANCELED);
	mad_request_free(held[0]);
	mad_async_free(async);
	return 0;
}

TEST(a_child_may_close_the_port_before_the_engine_ends)
{
	come(ping_request(1));
	process();
	run_in_child(close_without_stop);
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), 0);
}

static int drop_held(void)
{
	EXPECT(mad_request_respond(held[0], 0, "x", 1) == -ECANCELED);
	mad_request_free(held[0]);
	EXPECT(!port_has_servers(port));
	return end_all();
}

TEST(a_child_may_drop_requests_of_a_server_that_was_stopped)
{
	come(ping_request(1));
	process();
	end_server();
	run_in_child(drop_held);
	mad_request_free(held[0]);
}

/* A thread of the parent was in a call for the port: all calls fail at once. */
static int call_in_vain(void)
{
	EXPECT(mad_request_respond(held[0], 0, "x", 1) == -ECANCELED);
	mad_server_stop(server);
	mad_request_free(held[0]);
	return end_all();
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
	run_in_child(call_in_vain);
	sem_post(&gate.leave);
	mad_server_stop(server);
	pthread_join(runner, NULL);
	mad_request_free(held[0]);
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
	thread = start_thread(lock_at_gate, port);
	wait_for(&gate.entered);
	run_in_child(call_in_vain);
	sem_post(&gate.leave);
	pthread_join(thread, NULL);
	mad_request_free(held[0]);
}

#endif
