/* SPDX-License-Identifier: BSD-2-Clause */

/* The umad device: requests in flight, responses, timeouts, and what is read. */
#include "device_fixture.h"
#include "test.h"

/* Registers a client on ALPHA that writes a request; timeout -1: waits forever. */
static void request(struct machines *machines, uint8_t class, unsigned int method, uint16_t lid,
		    uint32_t timeout, uint32_t retries)
{
	struct destination to = {
		.lid = lid, .timeout = timeout, .retries = retries, .smp = class == CLASS_SMP};
	uint8_t mad[MAD_BYTES];

	if (!atomic_load(&machines->alpha->shared.agents[0]))
		assert_int_equal(agent(machines->alpha, class, 0, 0), 0);
	make_mad(mad, MAD_BYTES, class, method, 17);
	if (class == CLASS_SMP)
		mad[17] = IB_ATTR_NODE_INFO;
	assert_int_equal(write_mad(machines->alpha, &to, mad, MAD_BYTES), 0);
	settle(fabric_of(machines));
}

static uint16_t gamma_lid(const struct machines *machines)
{
	return lid_of(machines->subnet, GAMMA);
}

/* The time until a message can be read: milliseconds, 0 .. 100,000. */
static uint64_t wait_for_message(struct machines *machines)
{
	uint64_t start = fabric_of(machines)->now;

	while (!machines->alpha->readable &&
	       fabric_of(machines)->now - start < 100000 * MILLISECOND)
		pass(fabric_of(machines), MILLISECOND);
	return (fabric_of(machines)->now - start) / MILLISECOND;
}

static unsigned int times_sent(const struct machines *machines)
{
	const char *at = machines->subnet->text;
	unsigned int count = 0;

	while (at && (at = strstr(at, " sent at alpha/1")) != NULL) {
		count++;
		at++;
	}
	return count;
}

/* --- responses ------------------------------------------------------------------ */

MACHINES_TEST(a_response_has_the_header_of_who_sent_it)
{
	struct message *message;

	request(machines, VENDOR_CLASS, METHOD_GET, gamma_lid(machines), 1000, 3);
	message = receive(machines->alpha);
	assert_int_equal(message->header.id, 0);
	assert_int_equal(message->header.status, 0);
	assert_int_equal(message->header.length, OLD_HEADER_BYTES + MAD_BYTES);
	assert_int_equal(message->header.timeout_ms, 0);
	assert_int_equal(message->header.retries, 0);
	assert_int_equal(message->header.qkey, 0);
	assert_int_equal(be32toh(message->header.qpn), 1);
	assert_int_equal(be16toh(message->header.lid), gamma_lid(machines));
	assert_int_equal(message->header.grh_present, 0);
	assert_int_equal(message->length, MAD_BYTES);
	free(message);
}

MACHINES_TEST(the_length_counts_the_header_that_the_descriptor_has)
{
	struct message *message;

	assert_int_equal(enable_pkey(machines->alpha), 0);
	request(machines, VENDOR_CLASS, METHOD_GET, gamma_lid(machines), 1000, 0);
	message = receive(machines->alpha);
	assert_int_equal(message->header.length, HEADER_BYTES + MAD_BYTES);
	free(message);
}

MACHINES_TEST(a_response_to_a_request_with_a_grh_has_the_sender_s_gid)
{
	struct ib_user_mad_hdr header = {.timeout_ms = 1000,
					 .qpn = htobe32(1),
					 .qkey = htobe32(WELL_KNOWN_QKEY),
					 .lid = htobe16(gamma_lid(machines)),
					 .grh_present = 1,
					 .hop_limit = 64,
					 .flow_label = htobe32(0x12345)};
	uint8_t bytes[OLD_HEADER_BYTES + MAD_BYTES];
	struct message *message;
	uint8_t gid[16];

	port_gid(fabric_of(machines), port_of(machines->subnet, GAMMA, 1), gid);
	memcpy(header.gid, gid, 16);
	memcpy(bytes, &header, OLD_HEADER_BYTES);
	make_mad(bytes + OLD_HEADER_BYTES, MAD_BYTES, VENDOR_CLASS, METHOD_GET, 1);
	assert_int_equal(agent(machines->alpha, VENDOR_CLASS, 0, 0), 0);
	assert_int_equal(handle_write(machines->alpha->handle, bytes, sizeof(bytes)), 0);
	settle(fabric_of(machines));
	message = receive(machines->alpha);
	assert_int_equal(message->header.grh_present, 1);
	assert_memory_equal(message->header.gid, gid, 16);
	assert_int_equal(message->header.flow_label, htobe32(0x12345));
	free(message);
}

MACHINES_TEST(a_short_mad_arrives_with_zeros_up_to_256_bytes)
{
	struct destination to = {.lid = lid_of(machines->subnet, ALPHA)};
	struct message *message;
	uint8_t mad[MAD_BYTES];

	assert_int_equal(agent(machines->alpha, VENDOR_CLASS, 0, METHOD_SEND), 0);
	make_mad(mad, MAD_BYTES, VENDOR_CLASS, METHOD_SEND, 1);
	memset(mad + 24, 0xaa, MAD_BYTES - 24);
	assert_int_equal(agent(machines->gamma, VENDOR_CLASS, 0, 0), 0);
	assert_int_equal(write_mad(machines->gamma, &to, mad, 100), 0);
	settle(fabric_of(machines));
	message = receive(machines->alpha);
	assert_int_equal(message->length, MAD_BYTES);
	assert_int_equal(message->data[99], 0xaa);
	assert_int_equal(message->data[100], 0);
	assert_int_equal(message->data[255], 0);
	free(message);
}

/* What the kernel's SMI does not send. */
MACHINES_TEST(a_directed_request_begins_at_its_port_and_has_63_hops)
{
	static const struct {
		uint8_t pointer, count, first;
		int result;
	} rows[] = {
		{0, 0, 0, 0},       {0, 1, 1, 0},        {0, 63, 1, 0},      {0, 1, 2, -EINVAL},
		{0, 1, 0, -EINVAL}, {0, 64, 1, -EINVAL}, {1, 2, 1, -EINVAL}, {3, 1, 1, -EINVAL},
	};
	struct destination to = {.lid = PERMISSIVE_LID, .smp = true};
	uint8_t mad[MAD_BYTES];

	assert_int_equal(agent(machines->alpha, CLASS_DIRECTED_SMP, 0, 0), 0);
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		make_mad(mad, MAD_BYTES, CLASS_DIRECTED_SMP, METHOD_GET, (uint32_t)i + 1);
		mad[6] = rows[i].pointer;
		mad[7] = rows[i].count;
		memset(mad + 32, 0xff, 4);
		mad[128 + 1] = rows[i].first;
		assert_int_equal(write_mad(machines->alpha, &to, mad, MAD_BYTES),
				 rows[i].result);
	}
	mad[4] = 0x80; /* a response */
	assert_int_equal(write_mad(machines->alpha, &to, mad, MAD_BYTES), 0);
}

MACHINES_TEST(the_upper_half_of_a_transaction_id_is_the_agent_s)
{
	struct destination to = {.lid = gamma_lid(machines), .timeout = 1000};
	uint32_t upper[2];
	uint8_t mad[MAD_BYTES];

	for (uint32_t id = 0; id < 2; id++) {
		struct message *message;

		assert_int_equal(agent(machines->alpha, VENDOR_CLASS, 0, 0), id);
		make_mad(mad, MAD_BYTES, VENDOR_CLASS, METHOD_GET, 0xfedcba98);
		put32(mad + 8, 0x55555555);
		to.id = id;
		assert_int_equal(write_mad(machines->alpha, &to, mad, MAD_BYTES), 0);
		settle(fabric_of(machines));
		message = receive(machines->alpha);
		assert_int_equal(message->header.id, id);
		upper[id] = get32(message->data + 8);
		assert_int_equal(get32(message->data + 12), 0xfedcba98);
		free(message);
	}
	assert_int_not_equal(upper[0], upper[1]);
	assert_int_not_equal(upper[0], 0x55555555);
}

MACHINES_TEST(a_server_s_response_carries_the_request_s_transaction_id)
{
	struct destination to = {.lid = lid_of(machines->subnet, ALPHA)};
	struct message *message;

	assert_int_equal(agent(machines->gamma, PING_CLASS, 0, METHOD_GET), 0);
	request(machines, PING_CLASS, METHOD_GET, gamma_lid(machines), 1000, 0);
	message = receive(machines->gamma);
	assert_int_equal(be16toh(message->header.lid), to.lid);
	assert_null(read_message(machines->alpha));
	message->data[3] |= METHOD_RESPONSE;
	message->data[200] = 0x77;
	assert_int_equal(write_mad(machines->gamma, &to, message->data, MAD_BYTES), 0);
	free(message);
	settle(fabric_of(machines));
	message = receive(machines->alpha);
	assert_int_equal(get32(message->data + 12), 17);
	assert_int_equal(message->data[200], 0x77);
	free(message);
}

MACHINES_TEST(messages_are_read_in_the_order_of_completion)
{
	struct message *message;

	rule(machines->subnet, "slow 10ms on gamma");
	request(machines, VENDOR_CLASS, METHOD_GET, gamma_lid(machines), 1000, 0);
	request(machines, VENDOR_CLASS, METHOD_GET, lid_of(machines->subnet, BETA), 1000, 0);
	pass(fabric_of(machines), SECOND);
	message = receive(machines->alpha);
	assert_int_equal(be16toh(message->header.lid), lid_of(machines->subnet, BETA));
	free(message);
	message = receive(machines->alpha);
	assert_int_equal(be16toh(message->header.lid), gamma_lid(machines));
	free(message);
}

MACHINES_TEST(a_response_that_is_queued_outlives_its_agent)
{
	struct message *message;

	request(machines, VENDOR_CLASS, METHOD_GET, gamma_lid(machines), 1000, 0);
	assert_int_equal(unregister(machines->alpha, 0), 0);
	message = receive(machines->alpha);
	assert_int_equal(message->header.id, 0);
	free(message);
}

/* --- timeouts ------------------------------------------------------------------- */

MACHINES_TEST(a_timeout_hands_back_the_header_and_24_bytes)
{
	struct message *message;

	request(machines, VENDOR_CLASS, METHOD_GET, 0x1234, 50, 1);
	wait_for_message(machines);
	message = receive(machines->alpha);
	assert_int_equal(message->header.status, 110);
	assert_int_equal(message->header.length, MAD_BYTES); /* as it was written */
	assert_int_equal(message->header.timeout_ms, 50);
	assert_int_equal(message->header.retries, 1);
	assert_int_equal(be32toh(message->header.qkey), WELL_KNOWN_QKEY);
	assert_int_equal(be16toh(message->header.lid), 0x1234);
	assert_int_equal(message->length, 24);
	assert_int_equal(message->data[3], METHOD_GET);
	assert_int_equal(get32(message->data + 12), 17);
	assert_null(read_message(machines->alpha));
	free(message);
}

/*
 * As measured on a kernel: a program that polls for exactly the timeout has given up before.
 */
MACHINES_TEST(timeouts_are_late_but_not_by_much)
{
	static const struct {
		uint32_t timeout, retries;
		uint64_t least, most;
	} times[] = {
		{50, 0, 54, 64}, {200, 0, 208, 214}, {1000, 0, 1027, 1032}, {100, 3, 424, 440}};

	for (unsigned int i = 0; i < COUNT_OF(times); i++) {
		machines->alpha->readable = 0;
		pass(fabric_of(machines), 333 * MICROSECOND);
		request(machines, VENDOR_CLASS, METHOD_GET, 0x1234, times[i].timeout,
			times[i].retries);
		assert_in_range(wait_for_message(machines), times[i].least, times[i].most);
	}
}

MACHINES_TEST(a_request_is_sent_once_more_than_it_has_retries)
{
	start_trace(machines->subnet);
	request(machines, VENDOR_CLASS, METHOD_GET, 0x1234, 100, 3);
	pass(fabric_of(machines), 10 * SECOND);
	assert_int_equal(times_sent(machines), 4);
	assert_int_equal(machines->alpha->readable, 1);
}

MACHINES_TEST(the_response_to_a_retry_ends_it)
{
	struct message *message;

	start_trace(machines->subnet);
	rules(machines->subnet, "loss 100%", "after 150ms clear");
	request(machines, VENDOR_CLASS, METHOD_GET, gamma_lid(machines), 100, 9);
	pass(fabric_of(machines), 10 * SECOND);
	assert_int_equal(times_sent(machines), 3);
	message = receive(machines->alpha);
	assert_int_equal(message->header.status, 0);
	free(message);
	assert_int_equal(machines->alpha->readable, 1);
}

MACHINES_TEST(a_late_response_is_dropped)
{
	struct message *message;

	rule(machines->subnet, "slow 500ms on gamma");
	request(machines, VENDOR_CLASS, METHOD_GET, gamma_lid(machines), 100, 0);
	pass(fabric_of(machines), 10 * SECOND);
	assert_int_equal(machines->alpha->readable, 1);
	message = receive(machines->alpha);
	assert_int_equal(message->header.status, 110);
	free(message);
}

MACHINES_TEST(a_second_response_is_dropped)
{
	rule(machines->subnet, "duplicate 100%");
	request(machines, VENDOR_CLASS, METHOD_GET, gamma_lid(machines), 100, 0);
	pass(fabric_of(machines), SECOND);
	assert_int_equal(machines->alpha->readable, 1);
}

MACHINES_TEST(with_a_timeout_of_0_the_response_is_dropped)
{
	start_trace(machines->subnet);
	request(machines, VENDOR_CLASS, METHOD_GET, gamma_lid(machines), 0, 0);
	pass(fabric_of(machines), 100 * SECOND);
	assert_true(traced(machines->subnet, "nobody waits at alpha/1"));
	assert_int_equal(machines->alpha->readable, 0);
}

MACHINES_TEST(with_a_timeout_of_minus_1_a_request_waits_forever)
{
	rule(machines->subnet, "slow 100000s on gamma");
	request(machines, VENDOR_CLASS, METHOD_GET, gamma_lid(machines), UINT32_MAX, 0);
	pass(fabric_of(machines), 100000 * SECOND - 1);
	assert_int_equal(machines->alpha->readable, 0);
	pass(fabric_of(machines), 1);
	assert_int_equal(machines->alpha->readable, 1);
}

MACHINES_TEST(requests_of_an_unregistered_agent_end_without_a_report)
{
	request(machines, VENDOR_CLASS, METHOD_GET, 0x1234, 100, 3);
	assert_int_equal(unregister(machines->alpha, 0), 0);
	pass(fabric_of(machines), SECOND);
	assert_int_equal(machines->alpha->readable, 0);
}

MACHINES_TEST(a_closed_descriptor_leaves_nothing_behind)
{
	struct device *other = open_device(machines->subnet, ALPHA);
	struct destination to = {.lid = gamma_lid(machines), .timeout = 1000, .retries = 5};
	uint8_t mad[MAD_BYTES];

	rule(machines->subnet, "slow 50ms");
	assert_int_equal(agent(other, VENDOR_CLASS, 0, 0), 0);
	make_mad(mad, MAD_BYTES, VENDOR_CLASS, METHOD_GET, 17);
	assert_int_equal(write_mad(other, &to, mad, MAD_BYTES), 0);
	close_device(other);
	pass(fabric_of(machines), 10 * SECOND);
	assert_int_equal(timers_next(fabric_of(machines)), UINT64_MAX);
}

/* --- transactions --------------------------------------------------------------- */

static bool is_in_flight(const struct machines *machines)
{
	uint64_t key = transaction_key(0, VENDOR_CLASS, 17);
	bool entered = transaction_enter(&machines->alpha->shared, key);

	if (entered)
		transaction_leave(&machines->alpha->shared, key);
	return !entered;
}

static void begin_transaction(struct machines *machines, uint16_t lid, uint32_t timeout)
{
	assert_true(transaction_enter(&machines->alpha->shared,
				      transaction_key(0, VENDOR_CLASS, 17)));
	request(machines, VENDOR_CLASS, METHOD_GET, lid, timeout, 0);
}

MACHINES_TEST(a_transaction_ends_with_its_response_its_timeout_or_its_agent)
{
	rule(machines->subnet, "slow 10ms");
	begin_transaction(machines, gamma_lid(machines), 1000);
	assert_true(is_in_flight(machines));
	pass(fabric_of(machines), 10 * MILLISECOND);
	assert_false(is_in_flight(machines));
	begin_transaction(machines, gamma_lid(machines), 0); /* it awaits nothing */
	assert_false(is_in_flight(machines));
	begin_transaction(machines, 0x1234, 100);
	assert_true(is_in_flight(machines));
	pass(fabric_of(machines), SECOND);
	assert_false(is_in_flight(machines));
	begin_transaction(machines, 0x1234, 1000);
	assert_int_equal(unregister(machines->alpha, 0), 0);
	assert_false(is_in_flight(machines));
}

/* --- requests without a server -------------------------------------------------- */

MACHINES_TEST(a_get_or_set_that_no_program_serves_gets_the_kernel_s_response)
{
	static const uint8_t classes[] = {0x03, 0x06, 0x07, 0x08, 0x10};

	for (unsigned int i = 0; i < 2 * sizeof(classes); i++) {
		struct message *message;

		request(machines, classes[i / 2], i % 2 ? METHOD_SET : METHOD_GET,
			gamma_lid(machines), 1000, 0);
		message = receive(machines->alpha);
		assert_int_equal(get16(message->data + 4), 0x000c);
		assert_int_equal(message->data[3], METHOD_GET | METHOD_RESPONSE);
		assert_int_equal(message->header.status, 0);
		free(message);
	}
}

static void assert_no_response(struct machines *machines, uint8_t class, unsigned int method)
{
	request(machines, class, method, gamma_lid(machines), 100, 0);
	assert_int_equal(machines->alpha->readable, 0);
}

MACHINES_TEST(other_methods_without_a_server_time_out)
{
	assert_no_response(machines, CLASS_SA, METHOD_GET_TABLE);
	assert_no_response(machines, 0x06, METHOD_SEND);
	assert_no_response(machines, PING_CLASS, METHOD_GET_TABLE);
	assert_no_response(machines, PING_CLASS, METHOD_SEND);
}

/* --- response and timeout ------------------------------------------------------- */

/* A busy process finds both a response and a later timeout, both due. */
MACHINES_TEST(a_response_that_is_due_before_the_timeout_wins)
{
	struct message *message;

	rule(machines->subnet, "hop-latency 10ms");
	request(machines, VENDOR_CLASS, METHOD_GET, gamma_lid(machines), 100, 0);
	pass(fabric_of(machines), 50 * MILLISECOND); /* the response is in flight */
	fabric_of(machines)->now += SECOND;
	settle(fabric_of(machines));
	assert_int_equal(machines->alpha->readable, 1);
	message = receive(machines->alpha);
	assert_int_equal(message->header.status, 0);
	free(message);
}
