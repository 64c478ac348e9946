/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Messages that come: which one is the response to a request, which one is for the program, and
 * which one is dropped; and which timers are judged while messages lie unread.
 */

#define MANY 4
#include "async_fixture.h"
#include "test.h"

FIXTURE(async_setup, async_teardown);

/* --- responses ------------------------------------------------------------------ */

/* A message with the ID of the first request, from its node. */
struct message_row {
	uint8_t mgmt_class, method;
	uint8_t modifier;   /* the last byte of the attribute modifier */
	uint8_t tid_change; /* of the ID's last byte */
	uint32_t status;    /* that the kernel reports; 0: the message came from the wire */
	size_t length;
	bool completes;
};

static void receive(const struct message_row *row)
{
	uint8_t *mad = __real_calloc(1, row->length < IB_MAD_SIZE ? IB_MAD_SIZE : row->length);
	struct ib_user_mad header = device_packet(0)->header;

	device_copy_mad(device_packet(0), mad);
	mad[1] = row->mgmt_class;
	mad[3] = row->method;
	mad[15] ^= row->tid_change;
	mad[23] = row->modifier;
	header.status = row->status;
	header.length = (uint32_t)(row->length + umad_size());
	device_queue(device_fd(), &header, mad, row->length);
	free(mad);
	assert_true(mad_async_process(async) >= 0);
}

/* All rows but the last one leave the request open, and are dropped if they are no reports. */
static void expect_rows(ib_rpc_t rpc, const struct message_row *rows)
{
	const unsigned dropped = (unsigned)stats_of(async).dropped;
	unsigned expected = 0;

	submit(async, rpc, 1, &outcomes[0], NULL);
	for (int i = 0;; i++) {
		receive(&rows[i]);
		if (outcomes[0].calls != rows[i].completes)
			fail_msg("row %d: %d calls", i, outcomes[0].calls);
		if (rows[i].completes)
			break;
		expected += !rows[i].status;
		if (stats_of(async).dropped - dropped != expected)
			fail_msg("row %d: %u dropped", i,
				 (unsigned)stats_of(async).dropped - dropped);
	}
	assert_int_equal(outcomes[0].calls, 1);
}

TEST(a_response_has_the_class_the_id_the_bit_and_36_bytes)
{
	const uint8_t perf = IB_PERFORMANCE_CLASS, response = IB_MAD_METHOD_GET_RESPONSE;
	const struct message_row rows[] = {
		{perf, response, 0, 1, 0, 256, .completes = false},
		{IB_SA_CLASS, response, 0, 0, 0, 256, .completes = false},
		{perf, IB_MAD_METHOD_TRAP_REPRESS, 0, 1, 0, 256, .completes = false},
		{perf, response, 0, 0, 0, 35, .completes = false},
		{perf, response, 0, 0, 0, 24, .completes = false},
		{perf, response, 0, 0, 0, 23, .completes = false},
		/* the kernel gave up a response of this process */
		{perf, response, 0, 0, ETIMEDOUT, 256, .completes = false},
		{perf, response, 0, 0, 0, 36, .completes = true},
	};

	expect_rows(set_request(), rows);
	assert_int_equal(outcomes[0].length, 36);
	assert_int_equal(outcomes[0].error, 0);
}

TEST(a_trap_repress_is_the_response_to_a_trap)
{
	const struct message_row rows[] = {
		{IB_PERFORMANCE_CLASS, IB_MAD_METHOD_TRAP_REPRESS, 0, 0, 0, 256, true},
	};
	ib_rpc_t rpc = set_request();

	rpc.method = IB_MAD_METHOD_TRAP;
	expect_rows(rpc, rows);
}

/* IBA 16.2.2: bit 0 of the attribute modifier. */
TEST(a_board_management_send_tells_by_its_modifier_that_it_is_a_response)
{
	const struct message_row rows[] = {
		{IB_BOARD_MGMT_CLASS, IB_MAD_METHOD_SEND, 0x01, 0, 0, 256, true},
	};
	ib_rpc_t rpc = set_request();

	rpc.mgtclass = IB_BOARD_MGMT_CLASS;
	assert_int_equal(mad_register_client_via(IB_BOARD_MGMT_CLASS, 0, port), 0);
	expect_rows(rpc, rows);
}

/* Requests of others with the ID are for the program; so is a send that is no response. */
TEST(a_request_with_the_id_of_another_is_no_response)
{
	const struct message_row rows[] = {
		{IB_PERFORMANCE_CLASS, IB_MAD_METHOD_GET, 1, 0, 0, 256, false},
		{IB_PERFORMANCE_CLASS, IB_MAD_METHOD_SEND, 0xfe, 0, 0, 256, false},
		/* long messages: their memory is freed */
		{IB_PERFORMANCE_CLASS, IB_MAD_METHOD_GET, 1, 0, 0, 4000, false},
	};
	uint8_t *message;

	submit(async, set_request(), 1, &outcomes[0], NULL);
	for (unsigned i = 0; i < 3; i++) {
		receive(&rows[i]);
		message = mad_receive_via(NULL, 0, port);
		assert_non_null(message);
		assert_int_equal(((uint8_t *)umad_get_mad(message))[3], rows[i].method);
		mad_free(message);
	}
	assert_int_equal(outcomes[0].calls, 0);
	assert_int_equal(stats_of(async).dropped, 0);
}

/* A report has the request's MAD, of any length. */
TEST(the_kernel_s_report_ends_the_only_attempt)
{
	mad_rpc_set_retries(port, 1);
	for (int i = 0; i < 2; i++) {
		const struct message_row row = {IB_PERFORMANCE_CLASS,
						IB_MAD_METHOD_SET,
						0,
						0,
						ETIMEDOUT,
						i ? 4000 : 256,
						true};

		memset(&outcomes[0], 0, sizeof(outcomes[0]));
		expect_rows(set_request(), &row);
		assert_int_equal(outcomes[0].error, -ETIMEDOUT);
		async_teardown();
		async_setup();
		mad_rpc_set_retries(port, 1);
	}
}

TEST(a_message_that_is_too_long_ends_the_request_that_it_responds_to)
{
	const uint8_t perf = IB_PERFORMANCE_CLASS;
	const struct message_row rows[] = {
		{perf, IB_MAD_METHOD_GET_RESPONSE, 0, 1, 0, 1000, .completes = false},
		{perf, IB_MAD_METHOD_GET, 0, 0, 0, 1000, .completes = false},
		{perf, IB_MAD_METHOD_GET_RESPONSE, 0, 0, 0, 1000, .completes = true},
	};

	assert_int_equal(mad_port_set(port, MAD_PORT_MAX_RESPONSE, IB_MAD_SIZE), 0);
	expect_rows(set_request(), rows);
	assert_int_equal(outcomes[0].error, -EMSGSIZE);
}

/* It may be the response to either transmission. */
TEST(the_time_of_a_request_that_was_sent_twice_with_one_id_is_not_known)
{
	mad_rpc_set_retries(port, 2);
	submit(async, set_request(), 1, &outcomes[0], NULL);
	device_time_out(device_packet(0));
	assert_int_equal(mad_async_process(async), 0);
	assert_int_equal(device_written(), 2);
	assert_memory_equal(device_packet(0)->mad + 8, device_packet(1)->mad + 8, 8);
	device_respond(device_packet(1), 0, 0, NULL, 0);
	assert_int_equal(mad_async_process(async), 1);
	assert_int_equal(outcomes[0].error, 0);
	assert_int_equal(stats_of(async).gmp.rtt_smoothed_us, 0);
}

TEST(what_is_complete_cannot_be_cancelled)
{
	uint64_t id;

	submit(async, set_request(), 1, &outcomes[0], &id);
	assert_int_equal(mad_async_cancel(async, id), 0);
	assert_int_equal(mad_async_cancel(async, id), -ENOENT);
	assert_int_equal(mad_async_process(async), 1);
	assert_int_equal(outcomes[0].error, -ECANCELED);
	assert_int_equal(mad_async_cancel(async, id), -ENOENT);
}

/* --- the inbox ------------------------------------------------------------------ */

static void queue_requests(uint32_t from, uint32_t count)
{
	struct ib_user_mad header = {.agent_id = 0};
	uint8_t mad[IB_MAD_SIZE] = {1, IB_SMI_CLASS, 1, IB_MAD_METHOD_GET};

	for (uint32_t i = 0; i < count; i++) {
		uint32_t number = htobe32(from + i);

		memcpy(mad + 12, &number, sizeof(number));
		device_queue(device_fd(), &header, mad, sizeof(mad));
	}
}

/* An engine reads them, and no thread receives meanwhile: more than a thousand are kept. */
TEST(requests_of_others_are_kept_until_they_are_received)
{
	const uint32_t count = 20000;
	uint8_t umad[1024];

	for (uint32_t i = 0; i < count; i += 1000) {
		queue_requests(i, 1000);
		for (int round = 0; round < 20; round++)
			assert_int_equal(mad_async_process(async), 0);
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t number = htobe32(i);

		assert_ptr_equal(mad_receive_via(umad, 0, port), umad);
		assert_memory_equal((uint8_t *)umad_get_mad(umad) + 12, &number,
				    sizeof(number));
	}
	assert_fails_null(mad_receive_via(umad, 0, port), EAGAIN);
	assert_int_equal(stats_of(async).dropped, 0);
}

/* 64 MB, counted with their headers. */
TEST(what_the_inbox_has_no_place_for_is_dropped)
{
	const struct message_row row = {
		IB_PERFORMANCE_CLASS, IB_MAD_METHOD_GET, 1, 0, 0, 15 << 20, false};

	submit(async, set_request(), 1, &outcomes[0], NULL);
	for (int i = 0; i < 5; i++)
		receive(&row);
	assert_int_equal(stats_of(async).dropped, 1);
	mad_free(mad_receive_via(NULL, 0, port));
	receive(&row);
	assert_int_equal(stats_of(async).dropped, 1);
}
