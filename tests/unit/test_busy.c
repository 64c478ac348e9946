/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Responses with status BUSY: the request is sent again after a pause. A request that pauses
 * holds up no other request to the same node.
 */

#define MANY 2

#include "async_fixture.h"
#include "test.h"

FIXTURE(async_setup, async_teardown);

#define BUSY 0x0001

static ib_rpc_t vendor_request(void)
{
	return (ib_rpc_t){.mgtclass = VENDOR_CLASS,
			  .method = IB_MAD_METHOD_GET,
			  .dataoffs = IB_VENDOR_RANGE1_DATA_OFFS,
			  .datasz = IB_VENDOR_RANGE1_DATA_SIZE};
}

/* The node has no time for the first request. */
static int busy_once(const struct device_packet *packet, void *arg)
{
	(void)arg;
	device_respond(packet, device_written() == 1 ? BUSY : 0, 0, NULL, 0);
	return 0;
}

/* The node has no time for the vendor class, and does not respond to other requests. */
static int busy_or_silent(const struct device_packet *packet, void *arg)
{
	(void)arg;
	if (packet->mad[1] == VENDOR_CLASS)
		device_respond(packet, BUSY, 0, NULL, 0);
	return 0;
}

static int class_of_packet(unsigned n)
{
	return device_packet(n)->mad[1];
}

static struct outcome *const vendor = &outcomes[0], *const counters = &outcomes[1];

/*
 * The vendor request pauses. PortCounters of the same node, which was queued, is sent and has
 * its response before the vendor request is sent again.
 */
static void expect_counters_in_the_pause(void)
{
	device_on_write(busy_once, NULL);
	submit(async, vendor_request(), 1, vendor, NULL);
	submit(async, set_request(), 1, counters, NULL);
	assert_int_equal(device_written(), 1);
	assert_int_equal(mad_async_run(async), 2);
	expect_all(2, 0);
	assert_int_equal(device_written(), 3);
	assert_int_equal(class_of_packet(0), VENDOR_CLASS);
	assert_int_equal(class_of_packet(1), IB_PERFORMANCE_CLASS);
	assert_int_equal(class_of_packet(2), VENDOR_CLASS);
}

TEST(a_pause_holds_up_no_other_request_with_a_fixed_limit)
{
	mad_port_set_destination_limit(port, 1);
	expect_counters_in_the_pause();
}

/* The limit of a new destination is 1. */
TEST(a_pause_holds_up_no_other_request_with_an_adaptive_limit)
{
	mad_port_set_destination_limit(port, 0);
	expect_counters_in_the_pause();
}

TEST(a_pause_holds_up_no_later_request)
{
	mad_port_set_destination_limit(port, 1);
	device_on_write(busy_once, NULL);
	submit(async, vendor_request(), 1, vendor, NULL);
	assert_int_equal(mad_async_process(async), 0); /* reads BUSY */
	submit(async, set_request(), 1, counters, NULL);
	assert_int_equal(mad_async_run(async), 2);
	expect_all(2, 0);
	assert_int_equal(class_of_packet(1), IB_PERFORMANCE_CLASS);
}

TEST(a_pause_holds_up_no_blocking_call)
{
	uint8_t data[IB_PC_DATA_SZ] = {0};
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(1);

	mad_port_set_destination_limit(port, 1);
	device_on_write(busy_once, NULL);
	submit(async, vendor_request(), 1, vendor, NULL);
	assert_int_equal(mad_async_process(async), 0); /* reads BUSY */
	assert_non_null(mad_rpc(port, &rpc, &to, data, data));
	assert_int_equal(class_of_packet(1), IB_PERFORMANCE_CLASS);
}

TEST(a_pause_holds_up_no_blocking_call_that_is_queued)
{
	uint8_t data[IB_PC_DATA_SZ] = {0};
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(1);

	mad_port_set_destination_limit(port, 1);
	device_on_write(busy_once, NULL);
	submit(async, vendor_request(), 1, vendor, NULL);
	/* this thread reads BUSY: its own request was queued for the node */
	assert_non_null(mad_rpc(port, &rpc, &to, data, data));
	assert_int_equal(class_of_packet(1), IB_PERFORMANCE_CLASS);
}

/* The request that pauses has no place at the node when its pause is over. */
TEST(a_pause_that_is_over_does_not_exceed_the_limit)
{
	mad_port_set_destination_limit(port, 1);
	device_on_write(busy_or_silent, NULL);
	submit(async, vendor_request(), 1, vendor, NULL);
	submit(async, set_request(), 1, counters, NULL);
	assert_int_equal(mad_async_wait(async, 300), -ETIMEDOUT);
	/* PortCounters is in flight */
	assert_int_equal(class_of_packet(device_written() - 1), IB_PERFORMANCE_CLASS);
	assert_int_equal(counters->calls, 0);
}
