/* SPDX-License-Identifier: BSD-2-Clause */

/* Counters of lanes and VLs, and the tick. */

#include "counters_fixture.h"
#include "test.h"

#include <infiniband/mad_errors.h>
#include <infiniband/mad_link.h>
#include <math.h>

FIXTURE(setup, fixture_teardown);

#define ALL     31
#define TICK    IB_GSI_PORT_SAMPLES_CONTROL
#define PACKETS IB_GSI_PORT_PORT_VL_OP_PACKETS
#define DATA    IB_GSI_PORT_PORT_VL_OP_DATA
#define WAIT    IB_GSI_PORT_PORT_VL_XMIT_WAIT_COUNTERS

static struct mad_counters_details details;

static struct mad_counters_options wants(unsigned groups)
{
	return (struct mad_counters_options){
		.details = groups, .details_to = &details, .details_size = sizeof(details)};
}

static int read_details(unsigned groups)
{
	const struct mad_counters_options options = wants(groups);
	int error;

	memset(&details, 0xff, sizeof(details));
	error = mad_counters_read(fixture.port, &to, PORT, &options, NULL, 0);
	if (error)
		assert_int_equal(mad_last_failure()->error, error);
	return error;
}

TEST(each_group_takes_a_request)
{
	assert_int_equal(read_details(ALL), 0);
	assert_int_equal(details.present, ALL);
	assert_int_equal(device_written(), 5);
	assert_int_equal(details.port, PORT);
	assert_true(details.time_us > 0);
	expect_mad(0, "0:01040101 17:1f 65:03");
	expect_mad(1, "0:01040101 17:19 65:03");
	expect_mad(2, "0:01040101 17:1a 65:03");
	expect_mad(3, "0:01040101 17:1c 65:03");
	expect_mad(4, "0:01040101 17:10 65:03");
	assert_int_equal(read_details(MAD_COUNTERS_TICK), 0);
	assert_int_equal(details.present, MAD_COUNTERS_TICK);
	assert_int_equal(device_written(), 6);
}

TEST(lanes_are_apart)
{
	put(SPEEDS, IB_PESC_ERR_DET_CTR_LANE0_F, 0xffff);
	put(SPEEDS, IB_PESC_ERR_DET_CTR_LANE3_F, 7);
	put(SPEEDS, IB_PESC_FEC_CORR_BLOCK_CTR_LANE1_F, UINT32_MAX);
	put(SPEEDS, IB_PESC_FEC_CORR_BLOCK_CTR_LANE11_F, 5);
	put(SPEEDS, IB_PESC_FEC_UNCORR_BLOCK_CTR_LANE0_F, 3);
	put(SPEEDS, IB_PESC_FEC_UNCORR_BLOCK_CTR_LANE11_F, 9);
	assert_int_equal(read_details(MAD_COUNTERS_LANES), 0);
	assert_int_equal(details.lanes[0].error_detections, 0xffff);
	assert_int_equal(details.lanes[3].error_detections, 7);
	assert_int_equal(details.lanes[1].error_detections, 0);
	assert_int_equal(details.lanes[1].fec_corrected_blocks, UINT32_MAX);
	assert_int_equal(details.lanes[11].fec_corrected_blocks, 5);
	assert_int_equal(details.lanes[0].fec_uncorrectable_blocks, 3);
	assert_int_equal(details.lanes[11].fec_uncorrectable_blocks, 9);
}

TEST(virtual_lanes_are_apart)
{
	put(PACKETS, IB_PC_PORT_VL_OP_PACKETS0_F, 11);
	put(PACKETS, IB_PC_PORT_VL_OP_PACKETS15_F, 12);
	put(DATA, IB_PC_PORT_VL_OP_DATA1_F, UINT32_MAX);
	put(DATA, IB_PC_PORT_VL_OP_DATA15_F, 13);
	put(WAIT, IB_PC_PORT_VL_XMIT_WAIT0_F, 14);
	put(WAIT, IB_PC_PORT_VL_XMIT_WAIT15_F, 15);
	assert_int_equal(read_details(MAD_COUNTERS_VL_PACKETS | MAD_COUNTERS_VL_DATA |
				      MAD_COUNTERS_VL_XMIT_WAIT),
			 0);
	assert_int_equal(details.vls[0].rcv_packets, 11);
	assert_int_equal(details.vls[15].rcv_packets, 12);
	assert_int_equal(details.vls[1].rcv_packets, 0);
	assert_true(details.vls[1].rcv_bytes == UINT64_C(4) * UINT32_MAX);
	assert_int_equal(details.vls[15].rcv_bytes, 52);
	assert_int_equal(details.vls[0].xmit_wait_ticks, 14);
	assert_int_equal(details.vls[15].xmit_wait_ticks, 15);
}

TEST(a_group_that_a_node_lacks_is_left_out)
{
	node.status[DATA] = 0x000c;
	node.data[TICK][2] = 3;
	assert_int_equal(read_details(MAD_COUNTERS_VL_DATA | MAD_COUNTERS_TICK), 0);
	assert_int_equal(details.present, MAD_COUNTERS_TICK);
	assert_int_equal(details.tick, 3);
	assert_int_equal(read_details(MAD_COUNTERS_VL_DATA), -EOPNOTSUPP);
	assert_int_equal(details.present, 0);
}

TEST(a_reading_of_details_that_fails_has_what_was_read)
{
	put(PACKETS, IB_PC_PORT_VL_OP_PACKETS2_F, 5);
	node.status[WAIT] = 0x001c;
	assert_int_equal(read_details(ALL), -EIO);
	assert_int_equal(mad_last_failure()->status, 0x1c);
	assert_int_equal(details.present,
			 MAD_COUNTERS_LANES | MAD_COUNTERS_VL_PACKETS | MAD_COUNTERS_VL_DATA);
	assert_int_equal(details.vls[2].rcv_packets, 5);
	node.silent = PACKETS;
	mad_rpc_set_retries(fixture.port, 1);
	mad_rpc_set_timeout(fixture.port, 5);
	assert_int_equal(read_details(ALL), -ETIMEDOUT);
	assert_int_equal(details.present, MAD_COUNTERS_LANES);
	node.silent = 0;
	node.length = IB_MAD_SIZE - 1;
	assert_int_equal(read_details(ALL), -EBADMSG);
	assert_int_equal(details.present, 0);
}

TEST(counters_and_details_are_one_reading)
{
	struct mad_counters_options options = wants(MAD_COUNTERS_TICK);
	struct mad_counters counters;

	put(BASIC, IB_PC_RCV_PKTS_F, 5);
	node.data[TICK][2] = 3;
	options.basic = true;
	options.counters = MAD_COUNTERS_TRAFFIC;
	counters = read_with(&options, 2);
	assert_int_equal(counters.rcv_packets, 5);
	assert_int_equal(details.tick, 3);
	/* what was read before the details failed */
	node.status[TICK] = 0x001c;
	assert_int_equal(mad_counters_read(fixture.port, &to, PORT, &options, &counters,
					   sizeof(counters)),
			 -EIO);
	assert_int_equal(counters.rcv_packets, 5);
	assert_int_equal(counters.status, 0x1c);
	assert_int_equal(details.present, 0);
	/* a reading without a group of the wanted ones has its counters */
	node.status[TICK] = 0x000c;
	read_with(&options, 2);
	options.counters = 0;
	assert_int_equal(mad_counters_read(fixture.port, &to, PORT, &options, &counters,
					   sizeof(counters)),
			 -EOPNOTSUPP);
	assert_int_equal(counters.present, 0);
	/* a reset leaves details alone */
	assert_int_equal(mad_counters_reset(fixture.port, &to, PORT, &options), -EOPNOTSUPP);
}

TEST(details_fit_the_size_of_the_program)
{
	struct mad_counters_options options = wants(MAD_COUNTERS_LANES | MAD_COUNTERS_TICK);
	struct {
		struct mad_counters_details details;
		uint64_t later;
	} larger;

	put(SPEEDS, IB_PESC_ERR_DET_CTR_LANE0_F, 7);
	memset(&larger, 0xff, sizeof(larger));
	options.details_to = &larger.details;
	options.details_size = offsetof(struct mad_counters_details, lanes);
	assert_int_equal(mad_counters_read(fixture.port, &to, PORT, &options, NULL, 0), 0);
	assert_int_equal(larger.details.port, PORT);
	assert_true(larger.details.lanes[0].error_detections == UINT32_MAX);
	options.details_size = sizeof(larger);
	assert_int_equal(mad_counters_read(fixture.port, &to, PORT, &options, NULL, 0), 0);
	assert_int_equal(larger.details.lanes[0].error_detections, 7);
	assert_true(larger.later == 0);
}

static void note(struct mad_async *async, int error, const struct mad_counters *counters,
		 void *arg)
{
	/* the details are there before the callback */
	assert_int_equal(details.port, PORT);
	came(async, error, counters, arg);
}

TEST(details_are_read_on_an_engine)
{
	struct mad_async *async = mad_async_create(fixture.port);
	struct mad_counters_options options = wants(ALL);
	struct result result = {0};
	uint64_t id;

	assert_int_equal(mad_counters_submit(async, &to, PORT, &options, note, &result, NULL),
			 0);
	assert_int_equal(result.calls, 0);
	mad_async_wait(async, -1);
	assert_int_equal(result.calls, 1);
	assert_int_equal(result.error, 0);
	assert_int_equal(result.counters.present, 0);
	assert_int_equal(result.counters.requests, 5);
	assert_int_equal(details.present, ALL);
	node.silent = PACKETS;
	options.counters = MAD_COUNTERS_DEFAULT;
	assert_int_equal(mad_counters_submit(async, &to, PORT, &options, note, &result, &id),
			 0);
	while (!node.count[PACKETS] || node.count[PACKETS] < 2)
		assert_true(mad_async_process(async) >= 0);
	assert_int_equal(mad_async_cancel(async, id), 0);
	mad_async_wait(async, -1);
	assert_int_equal(result.calls, 2);
	assert_int_equal(result.error, -ECANCELED);
	assert_true(result.counters.present == BASIC_COUNTERS);
	assert_int_equal(details.present, MAD_COUNTERS_LANES);
	mad_async_free(async);
}

TEST(details_that_cannot_be_read_are_refused)
{
	struct mad_async *async = mad_async_create(fixture.port);
	struct mad_counters_options options = wants(32);
	struct result result = {0};

	assert_int_equal(read_details(32), -EINVAL);
	assert_int_equal(details.present, 0);
	assert_int_equal(mad_counters_submit(async, &to, 1, &options, came, &result, NULL),
			 -EINVAL);
	options = (struct mad_counters_options){.details = 1};
	assert_int_equal(mad_counters_read(fixture.port, &to, 1, &options, NULL, 0), -EINVAL);
	assert_int_equal(mad_counters_reset(fixture.port, &to, 1, &options), -EINVAL);
	options = wants(1);
	for (unsigned n = 1; n < 3; n++) {
		device_fail_malloc(n);
		assert_int_equal(
			mad_counters_submit(async, &to, 1, &options, came, &result, NULL),
			-ENOMEM);
	}
	device_fail_malloc(0);
	mad_async_free(async);
	assert_int_equal(result.calls, 0);
	assert_int_equal(device_written(), 0);
}

PLAIN_TEST(a_tick_is_a_number_of_symbols)
{
	assert_true(mad_counters_tick_ns(0, MAD_SPEED_SDR) == 4);
	assert_true(mad_counters_tick_ns(1, MAD_SPEED_DDR) == 4);
	assert_true(mad_counters_tick_ns(3, MAD_SPEED_QDR) == 4);
	assert_true(mad_counters_tick_ns(255, MAD_SPEED_SDR) == 1024);
	assert_true(isnan(mad_counters_tick_ns(0, MAD_SPEED_NONE)));
	assert_true(isnan(mad_counters_tick_ns(0, MAD_SPEED_FDR)));
	assert_true(isnan(mad_counters_tick_ns(0, 1000)));
}
