/* SPDX-License-Identifier: BSD-2-Clause */

/* Servers on an engine: which requests a server keeps, refuses with BUSY, and drops. */

#include "event_loop.h"
#include "port_state.h"
#include "request_server_fixture.h"
#include "test.h"

FIXTURE(server_setup, async_teardown);

TEST(a_thousand_requests_are_held_at_once)
{
	come_many(1, 1000);
	process();
	assert_int_equal(count, 1000);
	assert_int_equal(server_stats().held, 1000);
	/* in any order */
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(mad_request_respond(held[i * 7 % 1000], 0, "x", 1), 0);
	assert_int_equal(device_written(), 1000);
	assert_int_equal(server_stats().held, 0);
}

TEST(requests_beyond_the_limit_get_busy)
{
	restart_with_limit(10);
	come_many(1, 30);
	process();
	assert_int_equal(count, 10);
	assert_int_equal(device_written(), 20);
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(device_packet(i)->mad[3], IB_MAD_METHOD_GET_RESPONSE);
		assert_int_equal(device_packet(i)->mad[5], IB_MAD_STS_BUSY);
		assert_int_equal(device_packet(i)->mad[15], 11 + i);
		assert_int_equal(device_packet(i)->header.timeout_ms, 0);
		assert_int_equal(device_packet(i)->header.retries, 0);
		assert_int_equal(device_packet(i)->header.addr.qkey,
				 htobe32(IB_DEFAULT_QP1_QKEY));
		expect_no_rmpp_header(device_packet(i)->mad);
	}
	assert_int_equal(server_stats().busy, 20);
	mad_request_free(held[0]);
	come(ping_request(50));
	process();
	assert_int_equal(count, 11);
	for (unsigned i = 1; i < 11; i++)
		mad_request_free(held[i]);
}

/* The thread that reads is another engine's, and sends no BUSY for this engine's server. */
TEST(a_loop_is_woken_to_send_busy)
{
	struct mad_async *other = mad_async_create(port);

	restart_with_limit(1);
	come(ping_request(1));
	process();
	assert_false(loop_is_awake(async));
	come(ping_request(2));
	while (mad_async_process(other) || device_calls(DEVICE_READ) < 3)
		;
	assert_int_equal(device_written(), 0);
	assert_true(loop_wakes(async));
	assert_int_equal(mad_async_process(async), 0);
	assert_int_equal(last_written()[5], IB_MAD_STS_BUSY);
	assert_false(loop_is_awake(async));
	mad_request_free(held[0]);
	mad_async_free(other);
}

/* Polls and processes until the requests were called back or got BUSY; it may wake in vain. */
static void loop_until_done(unsigned calls, unsigned busy)
{
	struct pollfd wake = {.fd = mad_async_poll_fd(async), .events = POLLIN};

	while (count < calls || server_stats().busy < busy) {
		assert_int_equal(poll(&wake, 1, LONG_MS), 1);
		assert_true(mad_async_process(async) >= 0);
	}
	assert_int_equal(count, calls);
	assert_int_equal(server_stats().busy, busy);
}

/* The thread that reads waits for its own response. */
TEST(a_loop_is_woken_when_a_blocking_call_reads_its_requests)
{
	pthread_t asker;

	restart_with_limit(1);
	mad_rpc_set_retries(port, 1);
	asker = start_call(5);
	assert_true(device_wait_written(1, LONG_MS));
	wait_for_poll(0);
	come(ping_request(1));
	loop_until_done(1, 0);
	/* also by a request that gets BUSY */
	come(ping_request(2));
	loop_until_done(1, 1);
	assert_int_equal(last_written()[5], IB_MAD_STS_BUSY);
	device_time_out(device_packet(0));
	pthread_join(asker, NULL);
	mad_request_free(held[0]);
}

/* A thread in mad_receive_via() leads, and does not send BUSY. */
TEST(a_run_is_woken_to_send_busy)
{
	struct ib_user_mad header = {.agent_id = 0};
	uint8_t mad[IB_MAD_SIZE] = {1, IB_SMI_CLASS, 1, IB_MAD_METHOD_GET};
	pthread_t receiver, runner;

	restart_with_limit(1);
	come(ping_request(1));
	process();
	receiver = start_receiver();
	runner = start_running(async);
	while (!threads_asleep(port))
		sleep_ms(1);
	come(ping_request(2));
	assert_true(device_wait_written(1, LONG_MS));
	assert_int_equal(last_written()[5], IB_MAD_STS_BUSY);
	device_queue(device_fd(), &header, mad, sizeof(mad));
	join_thread(receiver);
	mad_server_stop(server);
	assert_int_equal(joined_count(runner), 1); /* the last callback */
	mad_request_free(held[0]);
}

TEST(busy_leaves_the_data_of_a_class_without_rmpp)
{
	struct coming coming = request_of(IB_PERFORMANCE_CLASS, IB_MAD_METHOD_GET);
	const uint8_t sent[] = {0x99, 0x99, 0x99, 0x99, 0x99};
	struct mad_server_options options = ping_options();

	options.mgmt_class = IB_PERFORMANCE_CLASS;
	options.oui = 0;
	options.rmpp_version = 0;
	options.limit = 1;
	start(options, hold, NULL);
	come(coming);
	coming.tid++;
	come(coming);
	process();
	assert_int_equal(count, 1);
	assert_int_equal(last_written()[5], IB_MAD_STS_BUSY);
	assert_memory_equal(last_written() + 32, sent, sizeof(sent));
	mad_request_free(held[0]);
}

/* BUSY would confirm a report; a Send has no response. */
TEST(sends_and_reports_beyond_the_limit_are_dropped)
{
	struct coming coming = ping_request(2);

	restart_with_limit(1);
	come(ping_request(1));
	coming.method = IB_MAD_METHOD_SEND;
	come(coming);
	coming.method = IB_MAD_METHOD_REPORT;
	come(coming);
	process();
	assert_int_equal(device_written(), 0);
	assert_int_equal(server_stats().dropped, 2);
	mad_request_free(held[0]);
}

/* No thread processes the engine: another engine's thread reads. */
TEST(a_storm_takes_a_bounded_amount_of_memory)
{
	struct mad_async *other = mad_async_create(port);
	unsigned before;

	come_many(1, 1024);
	for (unsigned i = 0; i < 100; i++)
		mad_async_process(other);
	assert_int_equal(server_stats().queued, 1024);
	come_many(5000, 200);
	for (unsigned i = 0; i < 20; i++)
		mad_async_process(other);
	assert_int_equal(server_stats().dropped, 200 - 64);
	come_many(9000, 100);
	before = device_allocations();
	for (unsigned i = 0; i < 20; i++)
		mad_async_process(other);
	assert_int_equal(device_allocations(), before);
	mad_async_free(other);
	process();
	assert_int_equal(count, 1024);
	assert_int_equal(server_stats().busy, 64);
	for (unsigned i = 0; i < count; i++)
		mad_request_free(held[i]);
}

/* The limit of 64 MiB is for all requests that a server keeps together. */
TEST(a_server_keeps_64_mib_of_requests)
{
	struct coming coming = ping_request(1);

	coming.length = (64u << 20) - IB_MAD_SIZE;
	come(coming);
	process();
	come(ping_request(2));
	process();
	assert_int_equal(count, 2);
	come(ping_request(3));
	coming.length = 5000;
	coming.tid = 4;
	come(coming);
	process();
	assert_int_equal(count, 2);
	assert_int_equal(device_written(), 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(device_packet(i)->mad[5], IB_MAD_STS_BUSY);
		assert_int_equal(device_packet(i)->length, IB_MAD_SIZE);
	}
	mad_request_free(held[1]);
	coming.length = IB_MAD_SIZE + 1;
	come(coming);
	process();
	assert_int_equal(count, 2);
	mad_request_free(held[0]);
	come(coming);
	process();
	assert_int_equal(count, 3);
	mad_request_free(held[2]);
}

/* Also with two servers, each with its own limit. */
TEST(a_round_hands_out_and_refuses_a_part_of_the_requests)
{
	struct mad_async *other = mad_async_create(port);
	struct mad_server_options options = ping_options();
	struct coming coming = ping_request(0);

	come_many(1, 100);
	for (unsigned i = 0; i < 10; i++)
		mad_async_process(other);
	assert_int_equal(server_stats().queued, 100);
	assert_int_equal(mad_async_process(async), 64);
	assert_int_equal(count, 64);
	assert_int_equal(mad_async_process(async), 36);
	assert_int_equal(mad_async_process(async), 0);
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(held[i]->tid, i + 1); /* in their order */
		mad_request_free(held[i]);
	}
	end_server();

	options.limit = 1;
	server = start(options, hold, NULL);
	options.oui = 0x123456;
	start(options, hold, NULL);
	for (coming.tid = 1; coming.tid <= 51; coming.tid++) {
		coming.oui = PING_OUI;
		come(coming);
		coming.oui = 0x123456;
		come(coming);
	}
	for (unsigned i = 0; i < 10; i++)
		mad_async_process(other);
	assert_int_equal(mad_async_process(async), 2);
	assert_int_equal(device_written(), 64);
	assert_int_equal(mad_async_process(async), 0);
	assert_int_equal(device_written(), 100);
	assert_int_equal(server_stats().busy, 50);
	mad_request_free(held[100]);
	mad_request_free(held[101]);
	mad_async_free(other);
}

/* After the responses BUSY are sent, 64 more requests may wait. */
TEST(sixty_four_requests_may_wait_for_busy)
{
	struct mad_async *other = mad_async_create(port);

	restart_with_limit(1);
	for (unsigned round = 1; round <= 2; round++) {
		come_many(round * 1000, 66);
		for (unsigned i = 0; i < 10; i++)
			mad_async_process(other);
		/* the first request is kept; then its retransmission is refused like others */
		assert_int_equal(server_stats().dropped, round == 1 ? 1 : 3);
		process();
		assert_int_equal(server_stats().busy, 64 * round);
	}
	assert_int_equal(count, 1);
	mad_request_free(held[0]);
	mad_async_free(other);
}

TEST(a_request_that_comes_again_is_handed_out_once)
{
	struct coming coming = ping_request(7);

	come(coming);
	come(coming);
	process();
	come(coming);
	process();
	assert_int_equal(count, 1);
	assert_int_equal(server_stats().duplicates, 2);
	coming.lid = 10; /* another sender's */
	come(coming);
	process();
	assert_int_equal(count, 2);
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), 0);
	come(ping_request(7)); /* the response was lost */
	process();
	assert_int_equal(count, 3);
	mad_request_free(held[1]);
	mad_request_free(held[2]);
}

/* Even if all but the sender is the same. */
TEST(a_request_of_another_sender_is_another_one)
{
	const ib_mad_addr_t senders[] = {
		{.lid = htobe16(9), .qpn = htobe32(1)},
		{.lid = htobe16(10), .qpn = htobe32(1)},
		{.lid = htobe16(9), .qpn = htobe32(2)},
		{.lid = htobe16(9), .qpn = htobe32(1), .grh_present = 1, .gid = {1}},
		{.lid = htobe16(9), .qpn = htobe32(1), .grh_present = 1, .gid = {2}},
		{.lid = htobe16(9), .qpn = htobe32(1), .grh_present = 1, .gid = {1, [15] = 1}},
		/* the first sender: without a GRH the GID does not count, nor does the SL */
		{.lid = htobe16(9), .qpn = htobe32(1), .sl = 1, .gid = {1}},
	};
	struct coming coming = ping_request(7);

	for (unsigned i = 0; i < 6; i++) {
		coming.from = &senders[i];
		come(coming);
		process();
		assert_int_equal(count, i + 1);
	}
	for (unsigned i = 0; i < 7; i++) {
		coming.from = &senders[i];
		come(coming);
		process();
		assert_int_equal(server_stats().duplicates, i + 1);
	}
	for (unsigned i = 0; i < 6; i++)
		mad_request_free(held[i]);
}

/* The method, the TID, the attribute and its modifier distinguish requests of a sender. */
TEST(a_request_that_differs_in_its_header_is_another_one)
{
	const unsigned different[] = {8, 11, 16, 17, 20, 23}, same[] = {4, 24, 39, 64};
	struct coming coming = ping_request(7);

	come(coming);
	coming.method = IB_MAD_METHOD_SET;
	come(coming);
	coming.method = IB_MAD_METHOD_GET;
	for (unsigned i = 0; i < 6; i++) {
		coming.changed = different[i];
		come(coming);
	}
	process();
	assert_int_equal(count, 8);
	assert_int_equal(server_stats().duplicates, 0);
	for (unsigned i = 0; i < 4; i++) {
		coming.changed = same[i];
		come(coming);
	}
	process();
	assert_int_equal(server_stats().duplicates, 4);
	for (unsigned i = 0; i < 8; i++)
		mad_request_free(held[i]);
}

/* It has at least the 24 bytes of the common header. */
TEST(a_response_is_not_for_a_server)
{
	struct coming coming = ping_request(7);

	coming.method |= IB_MAD_RESPONSE;
	coming.length = 24;
	come(coming);
	process();
	assert_int_equal(server_stats().dropped, 0);
	assert_int_equal(stats_of(async).dropped, 1); /* a response to no request */
	coming.length = 23;
	come(coming);
	process();
	assert_int_equal(server_stats().dropped, 1);
	assert_int_equal(stats_of(async).dropped, 1);
	assert_int_equal(count, 0);
}

/* A message with a status is one that the kernel could not send: a response of the server. */
TEST(a_message_that_the_kernel_returns_is_no_request)
{
	struct coming coming = ping_request(7);

	coming.status = ETIMEDOUT;
	come(coming);
	process();
	assert_int_equal(server_stats().dropped, 1);
	coming.method |= IB_MAD_RESPONSE;
	coming.length = 24;
	come(coming);
	process();
	assert_int_equal(server_stats().failed, 1);
	coming.length = 23; /* too short to say that it is a response */
	come(coming);
	process();
	assert_int_equal(server_stats().failed, 1);
	assert_int_equal(server_stats().dropped, 2);
	assert_int_equal(count, 0);
}

TEST(malformed_messages_and_lack_of_memory_are_counted)
{
	struct coming coming = ping_request(7);

	coming.length = 20;
	come(coming);
	coming.length = 30;
	come(coming);
	process();
	come(ping_request(8));
	device_fail_malloc(1);
	process();
	assert_int_equal(count, 0);
	assert_int_equal(server_stats().dropped, 3);
	coming.length = IB_VENDOR_RANGE2_DATA_OFFS; /* no data */
	come(coming);
	process();
	assert_null(held[0]->data);
	assert_int_equal(held[0]->data_size, 0);
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), 0);
}
