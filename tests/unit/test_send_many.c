/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Many requests sent by mad_send_via() before the first response is received: the kernel queues
 * the responses, and mad_receive_via() returns all of them in their order.
 */

#include "engine_fixture.h"
#include "test.h"

FIXTURE(port_setup, port_teardown);

#define MANY 5000

static void send_many(int count)
{
	uint8_t data[IB_SMP_DATA_SIZE] = {0};
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(1);

	for (int i = 0; i < count; i++) {
		rpc.trid = (uint64_t)(i + 1);
		assert_int_equal(mad_send_via(&rpc, &to, NULL, data, port), 0);
	}
	assert_int_equal(device_written(), count);
}

/* All are queued: the wait ends if a response is missing. */
static void expect_responses(int expected)
{
	_Alignas(8) uint8_t umad[sizeof(struct ib_user_mad) + IB_MAD_SIZE];
	uint32_t id, last = 0;
	int count = 0;

	while (count < expected && mad_receive_via(umad, 1000, port)) {
		memcpy(&id, (uint8_t *)umad_get_mad(umad) + 12, sizeof(id));
		assert_true(be32toh(id) > last);
		last = be32toh(id);
		count++;
	}
	assert_int_equal(count, expected);
	assert_null(mad_receive_via(umad, 0, port));
}

TEST(all_responses_are_received)
{
	device_on_write(echo, NULL);
	send_many(MANY);
	expect_responses(MANY);
}

/* The responses come when all requests were sent. */
TEST(all_late_responses_are_received)
{
	send_many(MANY);
	for (unsigned i = 0; i < MANY; i++)
		device_respond(device_packet(i), 0, 0, NULL, 0);
	expect_responses(MANY);
}

/* The kernel reports a timeout as a message, too. */
TEST(all_timeouts_are_received)
{
	device_on_write(time_out, NULL);
	send_many(MANY);
	expect_responses(MANY);
}
