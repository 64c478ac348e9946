/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Requests of other nodes: they arrive, are stored, received, and get responses; and requests
 * that are sent without waiting.
 */

#include "captured_output.h"
#include "engine_fixture.h"
#include "test.h"

#include <pthread.h>

#define KEPT 20000

FIXTURE(port_setup, port_teardown);

/* A Get of another node, from LID 9 on partition 1. */
static void come(uint32_t tid, size_t length)
{
	struct ib_user_mad header = {.agent_id = 0};
	uint8_t *mad = calloc(1, length);
	const uint8_t start[] = {1, VENDOR_CLASS, 1, IB_MAD_METHOD_GET};

	memcpy(mad, start, sizeof(start));
	tid = htobe32(tid);
	memcpy(mad + 12, &tid, sizeof(tid));
	mad[length - 1] = 0x77;
	header.agent_id = (uint32_t)mad_rpc_class_agent(port, VENDOR_CLASS);
	header.addr.lid = htobe16(9);
	header.addr.qpn = htobe32(1);
	header.addr.sl = 4;
	header.addr.pkey_index = 1;
	device_queue(device_fd(), &header, mad, length);
	free(mad);
}

static uint32_t tid_of(void *umad)
{
	uint32_t tid;

	memcpy(&tid, (uint8_t *)umad_get_mad(umad) + 12, sizeof(tid));
	return be32toh(tid);
}

TEST(requests_are_received_in_their_order)
{
	uint8_t *umad;

	for (uint32_t i = 1; i <= 50; i++)
		come(i, IB_MAD_SIZE);
	for (uint32_t i = 1; i <= 50; i++) {
		umad = mad_receive_via(NULL, LONG_MS, port);
		assert_non_null(umad);
		assert_int_equal(tid_of(umad), i);
		assert_int_equal(((uint8_t *)umad_get_mad(umad))[255], 0x77);
		mad_free(umad);
	}
	assert_fails_null(mad_receive_via(NULL, 0, port), EAGAIN);
}

static int come_then_echo(const struct device_packet *packet, void *arg)
{
	uint32_t *tid = arg;

	come(++*tid, IB_MAD_SIZE);
	come(++*tid, IB_MAD_SIZE);
	return echo(packet, arg);
}

TEST(requests_that_arrive_while_others_wait_for_responses_are_kept)
{
	struct mad_async *async = mad_async_create(port);
	struct outcome outcome = {0};
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(3);
	uint32_t tid = 0;
	void *umad;

	device_on_write(come_then_echo, &tid);
	for (int i = 0; i < 10; i++) {
		assert_null(mad_rpc(port, &rpc, &to, NULL, NULL));
		assert_int_equal(errno, 0);
	}
	submit(async, get_request(), 3, &outcome, NULL);
	assert_int_equal(mad_async_wait(async, -1), 1);
	for (uint32_t i = 1; i <= 22; i++) {
		umad = mad_receive_via(NULL, 0, port);
		assert_non_null(umad);
		assert_int_equal(tid_of(umad), i);
		mad_free(umad);
	}
	assert_int_equal(stats_of(async).dropped, 0);
	mad_async_free(async);
}

/* The kernel keeps 200,000 messages for a handle, and the library 64 MiB of them. */
TEST(as_many_requests_are_kept_as_the_kernel_would)
{
	struct mad_async *async = mad_async_create(port);
	void *umad;

	for (uint32_t i = 1; i <= KEPT; i++)
		come(i, IB_MAD_SIZE);
	/* a call reads some of the queued messages */
	for (unsigned i = 0; i < KEPT; i++)
		assert_int_equal(mad_async_process(async), 0);
	assert_int_equal(stats_of(async).dropped, 0);
	for (uint32_t i = 1; i <= KEPT; i++) {
		umad = mad_receive_via(NULL, 0, port);
		assert_non_null(umad);
		assert_int_equal(tid_of(umad), i);
		mad_free(umad);
	}
	assert_null(mad_receive_via(NULL, 0, port));
	mad_async_free(async);
}

TEST(without_memory_a_request_is_dropped_and_counted)
{
	struct mad_async *async = mad_async_create(port);

	come(1, IB_MAD_SIZE);
	device_fail_malloc(1);
	assert_int_equal(mad_async_process(async), 0);
	assert_int_equal(stats_of(async).dropped, 1);
	come(2, IB_MAD_SIZE);
	assert_int_equal(mad_async_process(async), 0);
	device_fail_malloc(1);
	assert_fails_null(mad_receive_via(NULL, 0, port), ENOMEM);
	mad_free(mad_receive_via(NULL, 0, port)); /* it is still queued */
	mad_async_free(async);
}

TEST(a_long_request_needs_a_buffer_of_the_library_s)
{
	void *own = mad_alloc(), *umad;

	come(7, 5000);
	assert_fails_null(mad_receive_via(own, 0, port), EMSGSIZE);
	umad = mad_receive_via(NULL, 0, port);
	assert_non_null(umad);
	assert_int_equal(((uint8_t *)umad_get_mad(umad))[4999], 0x77);
	mad_free(umad);
	come(8, IB_MAD_SIZE);
	assert_ptr_equal(mad_receive_via(own, LONG_MS, port), own);
	assert_int_equal(tid_of(own), 8);
	mad_free(own);
}

TEST(a_wait_for_requests_ends_in_time)
{
	int64_t start = now_ms();

	assert_fails_null(mad_receive_via(NULL, 50, port), ETIMEDOUT);
	assert_true(now_ms() - start >= 50);
	assert_fails_null(mad_receive_via(NULL, 0, NULL), EINVAL);
}

TEST(a_response_goes_to_the_sender_of_the_request)
{
	const struct device_packet *response;
	void *umad;

	come(7, IB_MAD_SIZE);
	umad = mad_receive_via(NULL, LONG_MS, port);
	assert_int_equal(mad_respond_via(umad, NULL, 0x1c, port), 0);
	response = device_packet(0);
	assert_int_equal(response->mad[3], IB_MAD_METHOD_GET_RESPONSE);
	assert_int_equal(response->mad[5], 0x1c);
	assert_int_equal(response->mad[15], 7);
	assert_int_equal(response->mad[255], 0x77);
	assert_int_equal(be16toh(response->header.addr.lid), 9);
	assert_int_equal(response->header.addr.sl, 4);
	assert_int_equal(response->header.addr.pkey_index, 1);
	assert_int_equal(response->header.timeout_ms, 0);
	assert_int_equal(response->header.retries, 0);
	mad_free(umad);
}

/* The kernel counts agents from 0 on. */
TEST(a_response_is_sent_by_the_agent_of_its_class)
{
	const int classes[] = {IB_SMI_CLASS, VENDOR_CLASS};
	void *umad = mad_alloc();
	uint8_t *mad = umad_get_mad(umad);

	for (unsigned i = 0; i < 2; i++) {
		mad[1] = (uint8_t)classes[i];
		mad[3] = IB_MAD_METHOD_GET;
		assert_int_equal(mad_respond_via(umad, NULL, 0, port), 0);
		assert_int_equal(device_packet(i)->header.agent_id,
				 mad_rpc_class_agent(port, classes[i]));
	}
	assert_int_equal(device_packet(0)->header.agent_id, 0);
	mad_free(umad);
}

/* The response to Set is GetResp, to Trap TrapRepress, to Send a Send. */
TEST(each_method_has_its_response)
{
	const struct {
		uint8_t method, response;
	} methods[] = {{IB_MAD_METHOD_GET, IB_MAD_METHOD_GET_RESPONSE},
		       {IB_MAD_METHOD_SET, IB_MAD_METHOD_GET_RESPONSE},
		       {IB_MAD_METHOD_SEND, IB_MAD_METHOD_SEND},
		       {IB_MAD_METHOD_TRAP, IB_MAD_METHOD_TRAP_REPRESS},
		       {IB_MAD_METHOD_GET_TABLE, IB_MAD_METHOD_GET_TABLE_RESPONSE}};
	void *umad = mad_alloc();
	uint8_t *mad = umad_get_mad(umad);

	for (unsigned i = 0; i < 5; i++) {
		mad[1] = VENDOR_CLASS;
		mad[3] = methods[i].method;
		assert_int_equal(mad_respond_via(umad, NULL, 0, port), 0);
		assert_int_equal(device_packet(i)->mad[3], methods[i].response);
	}
	mad_free(umad);
}

TEST(a_response_can_be_sent_elsewhere)
{
	ib_portid_t to = {.lid = 33, .qp = 7, .qkey = 0x1234, .sl = 2, .pkey_idx = 1};
	const struct device_packet *response;
	void *umad;

	come(7, IB_MAD_SIZE);
	umad = mad_receive_via(NULL, LONG_MS, port);
	to.grh_present = 1;
	to.gid[15] = 9;
	assert_int_equal(mad_respond_via(umad, &to, 0, port), 0);
	response = device_packet(0);
	assert_int_equal(be16toh(response->header.addr.lid), 33);
	assert_int_equal(be32toh(response->header.addr.qpn), 7);
	assert_int_equal(be32toh(response->header.addr.qkey), 0x1234);
	assert_int_equal(response->header.addr.sl, 2);
	assert_int_equal(response->header.addr.grh_present, 1);
	assert_int_equal(response->header.addr.gid[15], 9);
	assert_int_equal(response->header.addr.pkey_index, 1);
	mad_free(umad);
}

/* With the GRH of the request. */
TEST(a_request_from_another_subnet_has_its_response_sent_there)
{
	struct ib_user_mad header = {.addr = {.grh_present = 1, .gid = {1, 2}, .gid_index = 3}};
	uint8_t mad[IB_MAD_SIZE] = {1, VENDOR_CLASS, 1, IB_MAD_METHOD_GET};
	void *umad;

	device_queue(device_fd(), &header, mad, sizeof(mad));
	umad = mad_receive_via(NULL, LONG_MS, port);
	assert_int_equal(mad_respond_via(umad, NULL, 0, port), 0);
	assert_int_equal(device_packet(0)->header.addr.grh_present, 1);
	assert_int_equal(device_packet(0)->header.addr.gid[1], 2);
	assert_int_equal(device_packet(0)->header.addr.gid_index, 3);
	assert_true(device_packet(0)->header.addr.hop_limit > 1);
	mad_free(umad);
}

TEST(requests_that_cannot_be_sent_or_have_no_response_are_rejected)
{
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(3);
	void *umad = mad_alloc();
	uint8_t *mad = umad_get_mad(umad);

	mad[1] = IB_DEVICE_MGMT_CLASS;
	assert_fails_minus_1(mad_respond_via(umad, NULL, 0, port), EINVAL);
	assert_fails_minus_1(mad_respond_via(NULL, NULL, 0, port), EINVAL);
	assert_fails_minus_1(mad_respond_via(umad, NULL, 0, NULL), EINVAL);
	mad[1] = VENDOR_CLASS;
	device_fail(DEVICE_WRITE, 1, ENOMEM);
	assert_fails_minus_1(mad_respond_via(umad, NULL, 0, port), ENOMEM);
	mad_free(umad);

	assert_int_equal(mad_send_via(NULL, &to, NULL, NULL, port), -1);
	assert_int_equal(mad_send_via(&rpc, NULL, NULL, NULL, port), -1);
	assert_int_equal(mad_send_via(&rpc, &to, NULL, NULL, NULL), -1);
	rpc.mgtclass = IB_DEVICE_MGMT_CLASS;
	assert_fails_minus_1(mad_send_via(&rpc, &to, NULL, NULL, port), EINVAL);
	assert_int_equal(device_written(), 0);
}

/* The kernel waits for the response, and retransmits nothing. */
TEST(a_request_sent_without_waiting_has_a_timeout)
{
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(3);

	mad_rpc_set_timeout(port, 321);
	assert_int_equal(mad_send_via(&rpc, &to, NULL, NULL, port), 0);
	assert_int_equal(device_packet(0)->header.timeout_ms, 321);
	assert_int_equal(device_packet(0)->header.retries, 0);
	assert_int_equal(device_packet(0)->length, IB_MAD_SIZE);
	rpc.timeout = 654;
	assert_int_equal(mad_send_via(&rpc, &to, NULL, NULL, port), 0);
	assert_int_equal(device_packet(1)->header.timeout_ms, 654);
}

/* What is sent is written to stderr, byte by byte. */
TEST(responses_and_requests_without_waiting_are_shown_with_ibdebug_2)
{
	const char *said, *respond, *send;
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(3);
	void *umad = mad_alloc();
	uint8_t *mad = umad_get_mad(umad);

	mad[1] = VENDOR_CLASS;
	mad[3] = IB_MAD_METHOD_GET;
	mad[252] = 0xab;
	capture_output(stderr);
	for (ibdebug = 1; ibdebug <= 2; ibdebug++) {
		mad_respond_via(umad, NULL, 0, port);
		mad_send_via(&rpc, &to, NULL, NULL, port);
		rpc.trid = 0;
	}
	ibdebug = 0;
	said = captured_output();
	respond = strstr(said, "respond\n");
	send = strstr(said, "send\n");
	assert_non_null(respond);
	assert_non_null(send);
	assert_true(respond < send);
	assert_null(strstr(respond + 1, "respond\n")); /* nothing at level 1 */
	assert_null(strstr(send + 1, "send\n"));
	assert_non_null(strstr(respond, "ab00"));
	mad_free(umad);
}

/* Its thread does not poll longer than the timeout. */
TEST(a_wait_for_requests_polls_for_its_timeout)
{
	device_fail(DEVICE_POLL, 1, EINTR); /* a signal */
	assert_fails_null(mad_receive_via(NULL, LONG_MS, port), EINTR);
	assert_in_range(device_poll_timeout(), 1, LONG_MS);
	device_fail(DEVICE_POLL, 1, EINTR);
	assert_fails_null(mad_receive_via(NULL, -1, port), EINTR);
	assert_true(device_poll_timeout() < 0 || device_poll_timeout() > LONG_MS);
}

TEST(a_request_sent_without_waiting_has_its_response_in_receive)
{
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(3);
	void *umad;

	assert_int_equal(mad_send_via(&rpc, &to, NULL, NULL, port), 0);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	device_respond(device_packet(0), 0, 0, NULL, 0); /* once is enough */
	umad = mad_receive_via(NULL, LONG_MS, port);
	assert_non_null(umad);
	assert_int_equal(((uint8_t *)umad_get_mad(umad))[3], IB_MAD_METHOD_GET_RESPONSE);
	mad_free(umad);
	assert_null(mad_receive_via(NULL, 0, port));

	rpc.trid = 0;
	assert_int_equal(mad_send_via(&rpc, &to, NULL, NULL, port), 0);
	device_time_out(device_packet(1));
	umad = mad_receive_via(NULL, LONG_MS, port);
	assert_non_null(umad);
	assert_int_equal(umad_status(umad), ETIMEDOUT);
	mad_free(umad);
}

TEST(requests_sent_without_waiting_may_have_responses)
{
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(3);
	void *umad;

	for (unsigned i = 0; i < 1000; i++) {
		rpc.trid = 0;
		assert_int_equal(mad_send_via(&rpc, &to, NULL, NULL, port), 0);
	}
	for (unsigned i = 0; i < 1000; i++) {
		device_respond(device_packet(i), 0, 0, NULL, 0);
		umad = mad_receive_via(NULL, LONG_MS, port);
		assert_non_null(umad);
		mad_free(umad);
	}
}

TEST(a_short_message_leaves_nothing_of_an_older_one)
{
	uint8_t *umad = mad_alloc(), *mad = umad_get_mad(umad);

	memset(mad, 0x99, IB_MAD_SIZE);
	come(3, 60);
	assert_ptr_equal(mad_receive_via(umad, LONG_MS, port), umad);
	assert_int_equal(mad[59], 0x77);
	for (int i = 60; i < IB_MAD_SIZE; i++)
		assert_int_equal(mad[i], 0);
	mad_free(umad);
}
