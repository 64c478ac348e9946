/* SPDX-License-Identifier: BSD-2-Clause */

/* Servers on an engine: stopped servers, destroyed engines and removed devices. */

#include "port_state.h"
#include "request_server_fixture.h"
#include "test.h"

#include <infiniband/mad_errors.h>
#include <poll.h>

FIXTURE(server_setup, async_teardown);

TEST(a_stop_drops_what_is_queued_and_keeps_what_is_held)
{
	struct mad_async *other = mad_async_create(port);

	come(ping_request(1));
	process();
	come(ping_request(2));
	mad_async_process(other);
	assert_int_equal(server_stats().queued, 1);
	mad_server_stop(server);
	process();
	assert_int_equal(count, 1);
	assert_int_equal(ends, 1);
	assert_int_equal(end_error, 0);
	assert_int_equal(held[0]->tid, 1);
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), -ECANCELED);
	mad_request_free(held[0]);
	assert_int_equal(device_written(), 0);
	mad_server_stop(NULL);
	/* another server may have the method */
	server = start(ping_options(), hold, NULL);
	mad_async_free(other);
}

TEST(the_first_agent_of_a_port_may_be_a_server_s)
{
	struct ibmad_port *first = port;
	struct mad_async *first_engine = async;

	mad_server_stop(server);
	port = mad_rpc_open_port(NULL, 0, NULL, 0);
	assert_non_null(port);
	async = mad_async_create(port);
	server = start(ping_options(), hold, NULL);
	assert_int_equal(agent_of(PING_CLASS, PING_OUI, IB_MAD_METHOD_GET), 0);
	come(ping_request(1));
	process();
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), 0);
	assert_int_equal(device_packet(0)->header.agent_id, 0);
	mad_server_stop(server);
	assert_false(device_agent(device_fd(), 0).registered);
	server = start(ping_options(), hold, NULL);
	assert_true(device_agent(device_fd(), 0).registered);
	mad_async_free(async);
	assert_false(device_agent(device_fd(), 0).registered);
	mad_rpc_close_port(port);
	port = first;
	async = first_engine;
}

TEST(a_stop_leaves_the_requests_of_other_servers)
{
	struct mad_async *other = mad_async_create(port);

	start_second(hold);
	queue_and_refuse(other);
	for (uint32_t i = 1; i <= 1024 + 2; i++) {
		come_to_second(100 + i);
		mad_async_process(other);
	}
	come(ping_request(6));
	mad_async_process(other);
	mad_server_stop(server);
	process();
	assert_int_equal(count, 1024);
	for (unsigned i = 0; i < 1024; i++) {
		assert_int_equal(held[i]->tid, 101 + i);
		mad_request_free(held[i]);
	}
	assert_int_equal(device_written(), 2);
	assert_int_equal(device_packet(0)->mad[39], 0x56); /* the OUI of the second server */
	assert_int_equal(device_packet(1)->mad[39], 0x56);
	mad_async_free(other);
}

/* The port's list has the server until the server is freed. */
TEST(a_server_is_freed_when_it_is_stopped_and_has_no_request)
{
	come_many(1, 3);
	process();
	mad_request_free(held[0]);
	assert_true(port_has_servers(port));
	end_server();
	assert_true(port_has_servers(port));
	mad_request_free(held[1]);
	assert_true(port_has_servers(port));
	mad_request_free(held[2]);
	assert_false(port_has_servers(port));
	server = start(ping_options(), hold, NULL);
	mad_server_stop(server);
	assert_true(port_has_servers(port)); /* until its last callback */
	process();
	assert_false(port_has_servers(port));
}

/* The kernel may give the new server the agent of the old one. */
TEST(a_new_server_may_have_the_agent_of_a_stopped_one)
{
	struct mad_server *old = server;
	unsigned before;

	come(ping_request(1));
	process();
	mad_server_stop(old);
	server = start(ping_options(), hold, NULL);
	come(ping_request(2));
	process();
	assert_int_equal(count, 2);
	assert_ptr_equal(held[1]->server, server);
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), -ECANCELED);
	assert_int_equal(mad_request_respond(held[1], 0, "x", 1), 0);
	mad_server_stop(server);
	/* the agent is not unregistered again */
	before = device_calls(DEVICE_IOCTL);
	mad_async_free(async);
	async = NULL;
	mad_rpc_close_port(port);
	port = NULL;
	assert_int_equal(device_calls(DEVICE_IOCTL) - before, 6); /* the clients */
	mad_request_free(held[0]);
}

/* A hook for device_on_write(), in the thread that processes the engine. */
static int stop_while_writing(const struct device_packet *packet, void *arg)
{
	(void)packet;
	mad_server_stop(server);
	return *(int *)arg;
}

TEST(a_server_may_be_stopped_while_busy_is_sent)
{
	struct mad_async *other = mad_async_create(port);
	int error = 0;

	queue_and_refuse(other);
	device_on_write(stop_while_writing, &error);
	process();
	/* the second refused request was dropped, and those queued for the callback */
	assert_int_equal(device_written(), 1);
	assert_int_equal(count, 0);
	assert_false(port_has_servers(port));
	mad_async_free(other);
}

TEST(a_server_may_be_stopped_while_a_response_is_sent)
{
	int error = 0;

	come(ping_request(1));
	process();
	device_on_write(stop_while_writing, &error);
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), 0);
	process();
	assert_false(port_has_servers(port));

	server = start(ping_options(), hold, NULL);
	error = -ENOMEM;
	come(ping_request(2));
	process();
	assert_int_equal(mad_request_respond(held[1], 0, "x", 1), -ENOMEM);
	assert_int_equal(held[1]->tid, 2); /* the program still has the request */
	process();
	assert_true(port_has_servers(port));
	mad_request_free(held[1]);
	assert_false(port_has_servers(port));
}

static int drop_while_writing(const struct device_packet *packet, void *arg)
{
	(void)packet;
	mad_request_free(arg);
	return 0;
}

/* By a hook for the write, as another thread could do. */
TEST(another_request_may_be_dropped_while_a_response_is_sent)
{
	come_many(1, 2);
	process();
	device_on_write(drop_while_writing, held[1]);
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), 0);
	assert_int_equal(server_stats().responded, 1);
	assert_int_equal(server_stats().held, 0);
}

static void stop_and_respond(struct mad_server *from, struct mad_request *request, int error,
			     void *arg)
{
	if (!request) {
		assert_int_equal(error, 0);
		*(int *)arg += 10;
		return;
	}
	mad_server_stop(from);
	mad_server_stop(from);
	assert_int_equal(mad_request_respond(request, 0, "x", 1), -ECANCELED);
	mad_request_free(request);
	++*(int *)arg;
}

TEST(a_callback_may_stop_its_server)
{
	int calls = 0;

	mad_server_stop(server);
	start(ping_options(), stop_and_respond, &calls);
	come_many(1, 3);
	process();
	assert_int_equal(calls, 11);
}

/* The last callback of a server, which starts the next one. */
static void start_again(struct mad_server *from, struct mad_request *request, int error,
			void *arg)
{
	assert_null(request);
	assert_int_equal(error, 0);
	mad_server_stop(from); /* is a no-op */
	assert_int_equal(mad_async_wait(async, 0), -EDEADLK);
	*(struct mad_server **)arg = start(ping_options(), hold, NULL);
}

TEST(the_last_callback_may_start_a_server_for_the_same_methods)
{
	struct mad_server *next = NULL;

	end_server();
	server = start(ping_options(), start_again, &next);
	mad_server_stop(server);
	assert_null(next); /* no callback within the call */
	assert_int_equal(mad_async_wait(async, 0), -ETIMEDOUT);
	assert_non_null(next);
	server = next;
	come(ping_request(1));
	process();
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), 0);
}

/* Another thread, or an event loop, learns of the end as of a request. */
TEST(a_stop_makes_the_descriptor_readable)
{
	struct pollfd pollfd = {.fd = mad_async_poll_fd(async), .events = POLLIN};

	process();
	assert_int_equal(poll(&pollfd, 1, 0), 0);
	mad_server_stop(server);
	assert_int_equal(poll(&pollfd, 1, 0), 1);
	assert_int_equal(mad_async_process(async), 1);
	assert_int_equal(ends, 1);
	process();
	assert_int_equal(poll(&pollfd, 1, 0), 0);
}

static void keep_failure(struct mad_server *from, struct mad_request *request, int error,
			 void *arg)
{
	(void)from;
	assert_null(request);
	assert_int_equal(mad_last_failure()->error, error);
	mad_failure_text(NULL, arg, MAD_ERROR_TEXT_SIZE);
}

TEST(the_last_callback_has_its_failure_in_words)
{
	char text[MAD_ERROR_TEXT_SIZE] = "";

	end_server();
	start(ping_options(), keep_failure, text);
	device_remove();
	while (mad_async_process(async) >= 0)
		;
	assert_string_equal(text, "the device is gone");
}

TEST(a_server_that_is_not_started_says_why)
{
	struct mad_server_options options = ping_options();
	char text[MAD_ERROR_TEXT_SIZE];
	struct mad_server *none;

	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -EADDRINUSE);
	assert_string_equal(
		mad_failure_text(NULL, text, sizeof(text)),
		"vendor class 0x32: the class cannot be registered: another agent on "
		"the port has it");
	options.reserved[3] = 1;
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -EINVAL);
	assert_string_equal(mad_failure_text(NULL, text, sizeof(text)), "an argument is wrong");
}

TEST(an_engine_stops_its_own_servers_when_it_is_destroyed)
{
	struct mad_async *other = mad_async_create(port), *first = async;
	struct mad_server_options options = ping_options();

	start_second(hold);
	async = other;
	options.oui = 0x654321;
	server = start(options, hold, NULL);
	async = first;
	options.oui = 0x111111;
	start(options, hold, NULL);
	mad_async_free(async);
	async = other;
	for (unsigned id = 6; id < 10; id++)
		assert_int_equal(device_agent(device_fd(), id).registered, id == 8);
	options.oui = 0x654321;
	assert_int_equal(server_stats().received, 0);
	for (uint32_t i = 1; i <= 2; i++) {
		struct coming coming = ping_request(i);

		coming.oui = options.oui;
		come(coming);
	}
	process();
	assert_int_equal(count, 2);
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), 0);
	mad_request_free(held[1]);
}

static void start_at_the_end(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	struct mad_server_options options = ping_options();
	struct mad_server *none = server;

	options.oui = 0x123456;
	assert_int_equal(reply->error, -ECANCELED);
	*(int *)arg = mad_server_start(engine, &options, hold, NULL, &none);
	assert_null(none);
}

TEST(no_server_is_started_on_an_engine_that_is_being_destroyed)
{
	int ret = 0;

	submit_with(async, get_request(), 3, start_at_the_end, &ret);
	mad_async_free(async);
	async = NULL;
	assert_int_equal(ret, -ECANCELED);
}

TEST(held_requests_outlive_the_engine_and_the_port)
{
	come_many(1, 3);
	process();
	mad_async_free(async);
	async = NULL;
	assert_int_equal(ends, 1);
	assert_int_equal(end_error, -ECANCELED);
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), -ECANCELED);
	mad_request_free(held[0]);
	mad_rpc_close_port(port);
	port = NULL;
	assert_int_equal(mad_request_respond(held[1], 0, "x", 1), -ECANCELED);
	assert_int_equal(held[1]->tid, 2);
	mad_request_free(held[1]);
	mad_request_free(held[2]);
}

TEST(the_port_may_be_closed_before_the_engine_is_destroyed)
{
	struct mad_server_options options = ping_options();
	struct mad_server *none = server;

	come(ping_request(1));
	process();
	mad_rpc_close_port(port);
	port = NULL;
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), -ECANCELED);
	assert_int_equal(mad_async_process(async), 1);
	assert_int_equal(ends, 1);
	assert_int_equal(end_error, -ECANCELED);
	assert_int_equal(mad_async_process(async), -ECANCELED);
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -ECANCELED);
	assert_null(none);
	assert_int_equal(mad_async_wait(async, -1), 0);
	mad_async_free(async);
	async = NULL;
	mad_request_free(held[0]);
}

TEST(a_run_ends_when_the_device_is_gone)
{
	int ret;

	come(ping_request(1));
	process();
	device_remove();
	do
		ret = mad_async_process(async);
	while (ret >= 0);
	assert_int_equal(ret, -ENODEV);
	assert_int_equal(ends, 1);
	assert_int_equal(end_error, -ENODEV);
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), -ENODEV);
	mad_request_free(held[0]);
	assert_int_equal(mad_async_wait(async, -1), 0);
}

/* After a failed write, a poll with timeout 0 tells whether the device is gone. */
TEST(a_response_that_cannot_be_written_says_whether_the_device_is_gone)
{
	come_many(1, 3);
	process();
	device_fail(DEVICE_WRITE, 1, EIO);
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), -EIO);
	assert_int_equal(device_poll_timeout(), 0);
	assert_int_equal(mad_request_respond(held[1], 0, "x", 1), 0);
	device_remove();
	assert_int_equal(mad_request_respond(held[2], 0, "x", 1), -ENODEV);
	mad_request_free(held[0]);
	mad_request_free(held[2]);
}

/* The statistics count those as dropped that should get BUSY. */
TEST(a_device_that_is_gone_drops_what_is_queued)
{
	struct mad_async *other = mad_async_create(port);
	struct mad_server_stats stats;

	queue_and_refuse(other);
	mad_server_stop(start_second(hold));
	device_remove();
	while (mad_async_process(other) >= 0)
		;
	stats = server_stats();
	assert_int_equal(stats.queued, 0);
	assert_int_equal(stats.held, 0);
	assert_int_equal(stats.dropped, 2);
	assert_int_equal(stats.received, 3);
	assert_int_equal(mad_async_process(async), 2); /* both last callbacks */
	assert_int_equal(end_error, -ENODEV);
	assert_int_equal(mad_async_process(async), -ENODEV);
	assert_int_equal(count, 0);
	assert_false(port_has_servers(port));
	mad_async_free(other);
}
