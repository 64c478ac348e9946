/* SPDX-License-Identifier: BSD-2-Clause */

/* Received messages: of any length, with any header, and more than are expected. */

#include "engine_fixture.h"
#include "test.h"

#include <sys/resource.h>

#define PATTERN   0x5a
#define GOOD_MARK 0xc3
#define MEBIBYTE  (1u << 20)

static uint8_t data[IB_MAD_SIZE];

/* A correct response, with a mark. */
static void respond_well(const struct device_packet *packet)
{
	const uint8_t mark[] = {GOOD_MARK};
	size_t offset = packet->mad[1] == IB_SA_CLASS ? IB_SA_DATA_OFFS : IB_PC_DATA_OFFS;

	device_respond(packet, 0, offset, mark, sizeof(mark));
}

static int set(void)
{
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(5);

	memset(data, 0, sizeof(data));
	return mad_rpc(port, &rpc, &to, data, data) ? 0 : errno;
}

/* --- lengths -------------------------------------------------------------------- */

/* A response of so many bytes; then a correct one, in case the first is dropped. */
static int respond_of_length(const struct device_packet *packet, void *arg)
{
	size_t length = *(size_t *)arg;
	uint8_t mad[600];

	memset(mad, PATTERN, sizeof(mad));
	device_copy_mad(packet, mad);
	mad[3] |= IB_MAD_RESPONSE;
	memset(mad + IB_SA_DATA_OFFS, PATTERN, sizeof(mad) - IB_SA_DATA_OFFS);
	device_reply(packet, mad, length);
	respond_well(packet);
	return 0;
}

/* Whether there are so many bytes of this value, and zeros up to size. */
static void expect_bytes(const uint8_t *bytes, uint8_t value, size_t count, size_t size)
{
	for (size_t i = 0; i < size; i++)
		assert_int_equal(bytes[i], i < count ? value : 0);
}

PORT_TEST(a_response_may_have_any_length_from_a_header_up)
{
	uint8_t response[600];
	ib_portid_t to = to_lid(5);
	ib_rpc_t rpc;
	size_t length;

	device_on_write(respond_of_length, &length);
	for (length = 0; length <= 600; length++) {
		rpc = table_request();
		rpc.datasz = sizeof(response);
		memset(response, 0xff, sizeof(response));
		assert_non_null(mad_rpc_rmpp(port, &rpc, &to, NULL, response));
		if (length < 36)
			assert_int_equal(response[0], GOOD_MARK);
		else if (length <= IB_SA_DATA_OFFS)
			expect_bytes(response, 0, 0, sizeof(response));
		else
			expect_bytes(response, PATTERN, length - IB_SA_DATA_OFFS,
				     sizeof(response));
		/* missing bytes are not described */
		assert_int_equal(rpc.recsz, 0);
	}
}

PORT_TEST(a_message_has_the_length_that_came)
{
	struct mad_message message;
	ib_portid_t to = to_lid(5);
	ib_rpc_t rpc;
	size_t length;

	device_on_write(respond_of_length, &length);
	for (length = 36; length <= 600; length++) {
		rpc = table_request();
		assert_int_equal(mad_rpc_message(port, &rpc, &to, NULL, 0, &message), 0);
		assert_int_equal(message.length, length);
		if (length > IB_SA_DATA_OFFS)
			assert_int_equal(message.mad[length - 1], PATTERN);
		mad_message_free(&message);
	}
}

PORT_TEST(a_reply_has_the_data_that_came)
{
	struct mad_async *async = mad_async_create(port);
	struct outcome outcome;
	size_t length;

	device_on_write(respond_of_length, &length);
	for (length = 36; length <= 600; length++) {
		memset(&outcome, 0, sizeof(outcome));
		submit(async, table_request(), 5, &outcome, NULL);
		assert_int_equal(mad_async_wait(async, -1), 1);
		assert_int_equal(outcome.error, 0);
		assert_int_equal(outcome.length, length);
		assert_int_equal(outcome.data_size,
				 length > IB_SA_DATA_OFFS ? length - IB_SA_DATA_OFFS : 0);
		mad_async_process(async); /* the response that is too late */
	}
	mad_async_free(async);
}

/* --- headers -------------------------------------------------------------------- */

static struct {
	unsigned byte;
	uint8_t bits;
} flip;

/* A response with some bits of its header flipped, then a correct one. */
static int respond_corrupted(const struct device_packet *packet, void *arg)
{
	uint8_t mad[IB_MAD_SIZE];

	(void)arg;
	device_copy_mad(packet, mad);
	mad[3] = IB_MAD_METHOD_GET_RESPONSE;
	mad[IB_PC_DATA_OFFS] = PATTERN;
	mad[flip.byte] ^= flip.bits;
	device_reply(packet, mad, sizeof(mad));
	respond_well(packet);
	return 0;
}

/* The bytes that identify a response and its request. */
static bool is_matched(unsigned byte)
{
	return byte == 1 || byte == 3 || (byte >= 12 && byte <= 23 && (byte < 18 || byte > 19));
}

static void expect_judged(unsigned byte, uint8_t bits)
{
	int error;

	flip.byte = byte;
	flip.bits = bits;
	/* no time is left for the pause after BUSY */
	mad_rpc_set_retries(port, 1);
	mad_rpc_set_timeout(port, byte == 5 && bits & IB_MAD_STS_BUSY ? 1 : LONG_MS);
	error = set();
	if (byte == 4 || byte == 5) {
		assert_int_equal(error, EIO);
		return;
	}
	assert_int_equal(error, 0);
	assert_int_equal(data[0], is_matched(byte) ? GOOD_MARK : PATTERN);
}

PORT_TEST(every_byte_of_a_header_is_judged)
{
	device_on_write(respond_corrupted, NULL);
	for (unsigned byte = 0; byte < 36; byte++)
		expect_judged(byte, 0xff);
}

PORT_TEST(every_bit_of_a_header_is_judged)
{
	device_on_write(respond_corrupted, NULL);
	for (unsigned byte = 0; byte < 36; byte++)
		for (unsigned bit = 0; bit < 8; bit++)
			if (byte != 5 || bit != 1) /* the bit of a redirection */
				expect_judged(byte, (uint8_t)(1 << bit));
}

/* A response that the kernel could not send, and the timeout report of an unknown request. */
static int report_strangely(const struct device_packet *packet, void *arg)
{
	struct ib_user_mad header = packet->header;
	uint8_t mad[IB_MAD_SIZE];

	(void)arg;
	device_copy_mad(packet, mad);
	header.status = EINVAL;
	mad[3] |= IB_MAD_RESPONSE;
	device_queue(packet->fd, &header, mad, sizeof(mad));
	mad[3] &= 0x7f;
	mad[15] ^= 1;
	device_queue(packet->fd, &header, mad, 24);
	device_queue(packet->fd, &header, mad, 0);
	respond_well(packet);
	return 0;
}

PORT_TEST(the_kernel_s_messages_about_others_are_no_response)
{
	device_on_write(report_strangely, NULL);
	assert_int_equal(set(), 0);
	assert_int_equal(data[0], GOOD_MARK);
	assert_int_equal(device_written(), 1);
}

PORT_TEST(a_count_that_cannot_be_true_is_the_device_s_end)
{
	const long results[] = {1, 63, 10000000, -EINVAL};

	for (unsigned i = 0; i < 4; i++) {
		device_read_result(device_fd(), results[i]);
		assert_int_equal(set(), ENODEV);
		port_teardown();
		assert_int_equal(port_setup(), 0);
	}
}

/* --- more than one MAD ---------------------------------------------------------- */

static struct {
	size_t length;
	unsigned steal_at; /* the number of the read that finds the message gone */
} response;

static int respond_at_length(const struct device_packet *packet, void *arg)
{
	(void)arg;
	respond_long(packet, response.length, PATTERN);
	if (response.steal_at)
		device_fail(DEVICE_READ, response.steal_at, EAGAIN);
	return 0;
}

static int ask_for(size_t length, struct mad_message *message)
{
	ib_rpc_t rpc = table_request();
	ib_portid_t to = to_lid(1);

	response.length = length;
	return mad_rpc_message(port, &rpc, &to, NULL, 0, message);
}

static void expect_response(size_t length)
{
	struct mad_message message;

	assert_int_equal(ask_for(length, &message), 0);
	assert_int_equal(message.length, length);
	assert_int_equal(message.mad[length - 1], PATTERN);
	mad_message_free(&message);
}

static int long_setup(void)
{
	memset(&response, 0, sizeof(response));
	if (port_setup())
		return -1;
	device_on_write(respond_at_length, NULL);
	return 0;
}

FIXTURE(long_setup, port_teardown);

TEST(responses_are_taken_up_to_the_port_s_limit)
{
	struct mad_message message;

	assert_int_equal(mad_port_set(port, MAD_PORT_MAX_RESPONSE, 1000), 0);
	expect_response(257);
	expect_response(1000);
	assert_int_equal(ask_for(1001, &message), -EMSGSIZE);
	assert_null(message.mad);
	/* they are read and dropped, and do not block the queue */
	assert_int_equal(ask_for(MEBIBYTE - 64, &message), -EMSGSIZE);
	assert_int_equal(ask_for(MEBIBYTE, &message), -EMSGSIZE);
	assert_int_equal(ask_for(5 * MEBIBYTE, &message), -EMSGSIZE);
	expect_response(1000);
	expect_response(256);
}

TEST(without_a_descriptor_a_response_that_is_too_long_is_dropped)
{
	struct mad_message message;
	struct rlimit limit, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 3; /* which are open */
	assert_int_equal(mad_port_set(port, MAD_PORT_MAX_RESPONSE, 1000), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(ask_for(5 * MEBIBYTE, &message), -EMSGSIZE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	expect_response(1000);
}

TEST(the_limit_is_64_mebibytes_at_first)
{
	struct mad_message message;

	expect_response(64 * MEBIBYTE);
	assert_int_equal(ask_for(64 * MEBIBYTE + 1, &message), -EMSGSIZE);
	expect_response(300);
}

TEST(the_limit_holds_for_all_ways_to_ask)
{
	struct mad_async *async = mad_async_create(port);
	struct outcome outcome = {0};
	ib_rpc_t rpc = table_request();
	ib_portid_t to = to_lid(1);

	assert_int_equal(mad_port_set(port, MAD_PORT_MAX_RESPONSE, 256), 0);
	response.length = 1000;
	assert_fails_null(mad_rpc_rmpp(port, &rpc, &to, NULL, data), EMSGSIZE);
	submit(async, table_request(), 1, &outcome, NULL);
	assert_int_equal(mad_async_wait(async, -1), 1);
	assert_int_equal(outcome.error, -EMSGSIZE);
	assert_int_equal(outcome.length, 0);
	mad_async_free(async);
}

TEST(without_memory_a_long_response_is_dropped_and_the_next_one_arrives)
{
	struct mad_message message;

	expect_response(1000); /* the destination is known */
	device_fail_malloc(1);
	assert_int_equal(ask_for(1000, &message), -ENOMEM);
	expect_response(1000);
}

TEST(a_long_response_that_another_process_has_read_is_not_waited_for)
{
	struct mad_message message;
	ib_rpc_t rpc = table_request();
	ib_portid_t to = to_lid(1);

	response.length = 1000;
	response.steal_at = 2;
	mad_rpc_set_retries(port, 1);
	rpc.timeout = 50;
	/* here the message arrives after all; the port works as before */
	assert_int_equal(mad_rpc_message(port, &rpc, &to, NULL, 0, &message), 0);
	mad_message_free(&message);
	response.steal_at = 0;
	expect_response(1000);
}

TEST(signals_do_not_disturb_a_long_response)
{
	struct mad_message message;

	for (unsigned n = 1; n <= 2; n++) {
		device_fail(DEVICE_READ, n, EINTR);
		expect_response(1000);
	}
	assert_int_equal(mad_port_set(port, MAD_PORT_MAX_RESPONSE, 500), 0);
	device_fail(DEVICE_READ, 2, EINTR);
	assert_int_equal(ask_for(1000, &message), -EMSGSIZE);
	expect_response(400);
}

TEST(a_device_that_is_removed_during_a_long_response_is_gone)
{
	struct mad_message message;

	device_fail(DEVICE_READ, 2, EIO);
	assert_int_equal(ask_for(1000, &message), -ENODEV);
	assert_int_equal(ask_for(1000, &message), -ENODEV);
}

static int respond_at_length_to_no_request(const struct device_packet *packet, void *arg)
{
	uint8_t *mad = calloc(1, response.length);

	(void)arg;
	device_copy_mad(packet, mad);
	mad[3] |= IB_MAD_RESPONSE;
	mad[15] ^= 1;
	device_reply(packet, mad, response.length);
	free(mad);
	respond_well(packet);
	return 0;
}

TEST(long_responses_without_a_request_are_dropped)
{
	struct mad_async *async = mad_async_create(port);
	struct mad_message message;

	device_on_write(respond_at_length_to_no_request, NULL);
	assert_int_equal(mad_port_set(port, MAD_PORT_MAX_RESPONSE, 2000), 0);
	assert_int_equal(ask_for(1000, &message), 0);
	assert_int_equal(message.mad[IB_SA_DATA_OFFS], GOOD_MARK);
	mad_message_free(&message);
	assert_int_equal(ask_for(3000, &message), 0);
	mad_message_free(&message);
	assert_int_equal(stats_of(async).dropped, 2);
	mad_async_free(async);
}
