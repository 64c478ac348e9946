/* SPDX-License-Identifier: BSD-2-Clause */

/* Counters of a port: the requests of a reading, and the results from the responses. */

#include "counters_fixture.h"
#include "port/timers.h"
#include "test.h"

#include <infiniband/mad_errors.h>
#include <unistd.h>

FIXTURE(setup, fixture_teardown);

static struct mad_counters counters;

/* A call that fails stores its error. */
static int stored(int error)
{
	if (error) {
		assert_int_equal(mad_last_failure()->error, error);
		assert_int_equal(mad_last_failure()->mgmt_class, IB_PERFORMANCE_CLASS);
	}
	return error;
}

static int read_port(unsigned port, const struct mad_counters_options *options)
{
	return stored(mad_counters_read(fixture.port, &to, port, options, &counters,
					sizeof(counters)));
}

static int reset_port(const struct mad_counters_options *options)
{
	return stored(mad_counters_reset(fixture.port, &to, PORT, options));
}

/* --- which requests are sent ----------------------------------------------------- */

TEST(a_plain_node_is_asked_for_port_counters)
{
	put(BASIC, IB_PC_XMT_BYTES_F, 1000);
	put(BASIC, IB_PC_RCV_BYTES_F, 2000);
	put(BASIC, IB_PC_RCV_PKTS_F, 7);
	put(BASIC, IB_PC_ERR_SYM_F, 9);
	put(BASIC, IB_PC_XMT_WAIT_F, 55);
	counters = read_with(NULL, 2);
	expect_mad(0, "0:01040101 17:01");
	expect_mad(1, "0:01040101 17:12 65:03");
	expect_address(1, 1, 0x80010000, LID, 0);
	assert_true(counters.present == BASIC_COUNTERS);
	assert_int_equal(counters.xmit_bytes, 4000);
	assert_int_equal(counters.rcv_bytes, 8000);
	assert_int_equal(counters.rcv_packets, 7);
	assert_int_equal(counters.symbol_errors, 9);
	/* counters that the node does not support are not read from its response */
	assert_int_equal(counters.xmit_wait_ticks, 0);
	assert_int_equal(counters.extended, 0);
	assert_int_equal(counters.odd, 0);
}

TEST(port_counters_fill_in_what_the_extended_ones_lack)
{
	node.capabilities = MAD_PMA_EXTENDED_WIDTH | MAD_PMA_XMIT_WAIT | MAD_PMA_QP1_DROPPED;
	put(BASIC, IB_PC_XMT_BYTES_F, UINT32_MAX);
	put(BASIC, IB_PC_ERR_RCV_F, 3);
	put(BASIC, IB_PC_XMT_WAIT_F, 44);
	put(BASIC, IB_PC_VL15_DROPPED_F, 0x11);
	node.data[BASIC][20] = 0x12;
	node.data[BASIC][21] = 0x34;
	put(EXTENDED, IB_PC_EXT_XMT_BYTES_F, UINT64_C(1) << 40);
	put(EXTENDED, IB_PC_EXT_RCV_UPKTS_F, 5);
	put(EXTENDED, IB_PC_EXT_ERR_RCV_F, 77);
	counters = read_with(NULL, 3);
	expect_mad(1, "0:01040101 17:1d 65:03");
	expect_mad(2, "0:01040101 17:12 65:03");
	assert_true(counters.present == MAD_COUNTERS_DEFAULT);
	assert_true(counters.extended == UINT64_C(0xff));
	assert_true(counters.xmit_bytes == UINT64_C(1) << 42);
	assert_int_equal(counters.rcv_unicast_packets, 5);
	assert_int_equal(counters.rcv_errors, 3);
	assert_int_equal(counters.xmit_wait_ticks, 44);
	assert_int_equal(counters.vl15_dropped, 0x11);
	assert_int_equal(counters.qp1_dropped, 0x1234);
	assert_int_equal(counters.at_maximum, 0);
	assert_int_equal(counters.capability_mask, node.capabilities);
}

TEST(a_node_with_all_in_the_extended_ones_is_asked_once)
{
	node.capabilities = MAD_PMA_EXTENDED_WIDTH | MAD_PMA_XMIT_WAIT | MAD_PMA_QP1_DROPPED;
	node.capabilities2 = MAD_PMA2_ADDITIONAL_EXTENDED;
	put(EXTENDED, IB_PC_EXT_ERR_LOCALINTEG_F, 1000000);
	put(EXTENDED, IB_PC_EXT_XMT_WAIT_F, UINT64_C(1) << 50);
	put(EXTENDED, IB_PC_EXT_QP1_DROP_F, 6);
	counters = read_with(NULL, 2);
	assert_true(counters.present == MAD_COUNTERS_DEFAULT);
	assert_true(counters.extended == MAD_COUNTERS_DEFAULT);
	assert_int_equal(counters.local_link_integrity_errors, 1000000);
	assert_true(counters.xmit_wait_ticks == UINT64_C(1) << 50);
	assert_int_equal(counters.qp1_dropped, 6);
	assert_int_equal(counters.capability_mask2, 2);
}

TEST(extended_counters_without_unicast_and_multicast)
{
	node.capabilities = MAD_PMA_EXTENDED_WIDTH_NO_IETF;
	put(EXTENDED, IB_PC_EXT_RCV_UPKTS_F, 5);
	counters = read_with(NULL, 3);
	assert_true(counters.present == BASIC_COUNTERS);
	assert_true(counters.extended == 0xf);
	assert_int_equal(counters.rcv_unicast_packets, 0);
}

TEST(only_what_is_wanted_is_asked_for)
{
	struct mad_counters_options options = {
		.counters = MAD_COUNTER_BIT(MAD_COUNTER_RCV_PACKETS)};

	node.capabilities = MAD_PMA_EXTENDED_WIDTH;
	put(EXTENDED, IB_PC_EXT_RCV_PKTS_F, 5);
	put(EXTENDED, IB_PC_EXT_XMT_PKTS_F, 6);
	assert_int_equal(read_with(&options, 2).present, options.counters);
	assert_int_equal(node.count[EXTENDED], 1);
	options.counters = MAD_COUNTERS_ERRORS;
	read_with(&options, 2);
	assert_int_equal(node.count[EXTENDED], 1);
	assert_int_equal(node.count[BASIC], 1);
}

TEST(details_are_read_on_demand)
{
	struct mad_counters_options options = {.counters = MAD_COUNTERS_ALL};

	put(RCV_DETAILS, IB_PC_RCV_LOCAL_PHY_ERR_F, 1);
	put(RCV_DETAILS, IB_PC_RCV_LOOPING_ERR_F, UINT16_MAX);
	put(XMIT_DETAILS, IB_PC_XMT_SW_HOL_DISC_F, 4);
	counters = read_with(&options, 5);
	assert_int_equal(counters.local_physical_errors, 1);
	assert_int_equal(counters.looping_errors, UINT16_MAX);
	assert_int_equal(counters.sw_hoq_lifetime_limit_discards, 4);
	assert_true(counters.at_maximum == MAD_COUNTER_BIT(MAD_COUNTER_LOOPING_ERRORS));
	assert_true((counters.present & ~MAD_COUNTERS_DEFAULT) ==
		    (MAD_COUNTERS_ALL & ~MAD_COUNTERS_DEFAULT &
		     ~MAD_COUNTER_BIT(MAD_COUNTER_FEC_CORRECTED_SYMBOLS)));
	options.counters = MAD_COUNTERS_XMIT_DISCARD_DETAILS;
	read_with(&options, 2);
}

TEST(lanes_are_added_up)
{
	struct mad_counters_options options = {.counters = MAD_COUNTERS_EXTENDED_SPEEDS};

	put(SPEEDS, IB_PESC_SYNC_HDR_ERR_CTR_F, 1);
	put(SPEEDS, IB_PESC_UNK_BLOCK_CTR_F, 2);
	for (unsigned lane = 0; lane < 12; lane++) {
		put(SPEEDS, IB_PESC_ERR_DET_CTR_LANE0_F + lane, 100 + lane);
		put(SPEEDS, IB_PESC_FEC_CORR_BLOCK_CTR_LANE0_F + lane, UINT32_MAX - 1);
		put(SPEEDS, IB_PESC_FEC_UNCORR_BLOCK_CTR_LANE0_F + lane, 1000 + lane);
	}
	counters = read_with(&options, 2);
	expect_mad(1, "0:01040101 17:1f 65:03");
	assert_int_equal(counters.sync_header_errors, 1);
	assert_int_equal(counters.unknown_blocks, 2);
	assert_int_equal(counters.error_detections, 1266);
	assert_true(counters.fec_corrected_blocks == UINT64_C(12) * (UINT32_MAX - 1));
	assert_int_equal(counters.fec_uncorrectable_blocks, 12066);
	assert_true(counters.present == (MAD_COUNTERS_EXTENDED_SPEEDS &
					 ~MAD_COUNTER_BIT(MAD_COUNTER_FEC_CORRECTED_SYMBOLS)));
	assert_int_equal(counters.at_maximum, 0);
	put(SPEEDS, IB_PESC_FEC_UNCORR_BLOCK_CTR_LANE11_F, UINT32_MAX);
	counters = read_with(&options, 2);
	assert_true(counters.at_maximum ==
		    MAD_COUNTER_BIT(MAD_COUNTER_FEC_UNCORRECTABLE_BLOCKS));
}

TEST(reed_solomon_fec_has_counters_of_the_port)
{
	struct mad_counters_options options = {.counters = MAD_COUNTERS_EXTENDED_SPEEDS};

	node.capabilities = MAD_PMA_RSFEC_COUNTERS;
	put(SPEEDS, IB_PESC_FEC_UNCORR_BLOCK_CTR_LANE0_F, 3);
	counters = read_with(&options, 2);
	assert_int_equal(counters.fec_uncorrectable_blocks, 3);
	assert_int_equal(counters.fec_corrected_symbols, 0);
	assert_true(counters.present == MAD_COUNTERS_EXTENDED_SPEEDS);
	/* the lanes count symbols */
	put(SPEEDS, IB_PESC_RSFEC_FEC_CORR_SYMBOL_CTR_LANE0_F, 70);
	put(SPEEDS, IB_PESC_PORT_FEC_CORR_SYMBOL_CTR_F, 70);
	counters = read_with(&options, 2);
	assert_int_equal(counters.fec_corrected_symbols, 70);
	assert_int_equal(counters.fec_corrected_blocks, 0);
	put(SPEEDS, IB_PESC_PORT_FEC_CORR_BLOCK_CTR_F, 20);
	put(SPEEDS, IB_PESC_PORT_FEC_UNCORR_BLOCK_CTR_F, UINT32_MAX);
	counters = read_with(&options, 2);
	assert_int_equal(counters.fec_corrected_blocks, 20);
	assert_true(counters.fec_uncorrectable_blocks == UINT32_MAX);
	assert_true(counters.at_maximum ==
		    MAD_COUNTER_BIT(MAD_COUNTER_FEC_UNCORRECTABLE_BLOCKS));
}

TEST(what_a_node_refuses_is_asked_for_once)
{
	struct mad_counters_options options = {.counters = MAD_COUNTERS_ALL,
					       .node = mad_counters_node_create()};

	node.capabilities = MAD_PMA_EXTENDED_WIDTH;
	node.status[EXTENDED] = 0x000c;
	node.status[RCV_DETAILS] = 0x0008;
	node.status[SPEEDS] = 0x000c;
	put(BASIC, IB_PC_RCV_PKTS_F, 5);
	counters = read_with(&options, 6);
	assert_int_equal(counters.rcv_packets, 5);
	assert_int_equal(counters.odd, MAD_COUNTERS_ODD_CAPABILITY);
	assert_true(counters.present == (BASIC_COUNTERS | MAD_COUNTERS_XMIT_DISCARD_DETAILS));
	counters = read_with(&options, 2);
	assert_int_equal(counters.odd, MAD_COUNTERS_ODD_CAPABILITY);
	assert_int_equal(node.count[CLASS_PORT_INFO], 1);
	mad_counters_node_free(options.node);
}

TEST(a_node_without_class_port_info_has_port_counters)
{
	node.status[CLASS_PORT_INFO] = 0x000c;
	node.capabilities = 0xffff;
	put(BASIC, IB_PC_RCV_PKTS_F, 5);
	assert_int_equal(read_with(NULL, 2).rcv_packets, 5);
}

TEST(a_node_that_is_known_is_not_asked_again)
{
	struct mad_counters_options options = {.node = mad_counters_node_create()};

	node.capabilities = MAD_PMA_EXTENDED_WIDTH;
	read_with(&options, 3);
	read_with(&options, 2);
	/* without a node nothing is stored */
	read_with(NULL, 3);
	mad_counters_node_free(options.node);
	mad_counters_node_free(NULL);
}

TEST(basic_counters_take_one_request)
{
	struct mad_counters_options options = {.node = mad_counters_node_create(),
					       .basic = true};
	struct mad_async *async = mad_async_create(fixture.port);
	struct result result = {0};

	node.capabilities = MAD_PMA_EXTENDED_WIDTH | MAD_PMA_XMIT_WAIT;
	put(BASIC, IB_PC_RCV_PKTS_F, 5);
	counters = read_with(&options, 1);
	assert_int_equal(counters.rcv_packets, 5);
	assert_true(counters.present == BASIC_COUNTERS);
	assert_int_equal(mad_counters_submit(async, &to, PORT, &options, came, &result, NULL),
			 0);
	assert_int_equal(mad_async_wait(async, -1), 1);
	assert_true(result.counters.present == BASIC_COUNTERS);
	mad_async_free(async);
	/* a rejected request tells nothing about the ClassPortInfo */
	node.status[RCV_DETAILS] = 0x000c;
	options.counters = MAD_COUNTERS_ALL;
	read_with(&options, 4);
	read_with(&options, 3);
	assert_int_equal(node.count[CLASS_PORT_INFO], 0);
	/* all ports together need a capability */
	assert_int_equal(read_port(MAD_COUNTERS_ALL_PORTS, &options), -EOPNOTSUPP);
	assert_int_equal(node.count[CLASS_PORT_INFO], 1);
	/* now the node is known */
	assert_true(read_with(&options, 3).present &
		    MAD_COUNTER_BIT(MAD_COUNTER_XMIT_WAIT_TICKS));
	assert_int_equal(node.count[EXTENDED], 0);
	mad_counters_node_free(options.node);
}

TEST(all_ports_together_are_read_where_the_node_has_them)
{
	assert_int_equal(read_port(MAD_COUNTERS_ALL_PORTS, NULL), -EOPNOTSUPP);
	assert_int_equal(device_written(), 1);
	node.capabilities = MAD_PMA_ALL_PORT_SELECT;
	assert_int_equal(read_port(MAD_COUNTERS_ALL_PORTS, NULL), 0);
	expect_mad(2, "0:01040101 17:12 65:ff");
	assert_int_equal(counters.port, 255);
}

/* --- numbers --------------------------------------------------------------------- */

TEST(counters_at_their_maximum_are_named)
{
	node.capabilities = MAD_PMA_XMIT_WAIT | MAD_PMA_QP1_DROPPED;
	memset(node.data[BASIC], 0xff, IB_PC_DATA_SZ);
	counters = read_with(NULL, 2);
	assert_true(counters.at_maximum == counters.present);
	assert_true(counters.xmit_bytes == UINT64_C(4) * UINT32_MAX);
	assert_true(counters.xmit_packets == UINT32_MAX);
	assert_int_equal(counters.symbol_errors, UINT16_MAX);
	assert_int_equal(counters.link_downed, UINT8_MAX);
	assert_int_equal(counters.local_link_integrity_errors, 15);
	assert_int_equal(counters.qp1_dropped, UINT16_MAX);
	assert_int_equal(counters.vl15_dropped, UINT16_MAX);
	put(BASIC, IB_PC_XMT_PKTS_F, UINT32_MAX - 1);
	assert_true(~read_with(NULL, 2).at_maximum & MAD_COUNTER_BIT(MAD_COUNTER_XMIT_PACKETS));
}

TEST(values_beyond_64_bits_or_of_ones_are_odd)
{
	node.capabilities = MAD_PMA_EXTENDED_WIDTH;
	put(EXTENDED, IB_PC_EXT_XMT_BYTES_F, UINT64_C(1) << 62);
	put(EXTENDED, IB_PC_EXT_RCV_BYTES_F, UINT64_MAX / 4);
	counters = read_with(NULL, 3);
	assert_true(counters.xmit_bytes == UINT64_MAX);
	assert_true(counters.rcv_bytes == UINT64_MAX - 3);
	assert_int_equal(counters.odd, MAD_COUNTERS_ODD_VALUE);
	assert_true(counters.odd_values == MAD_COUNTER_BIT(MAD_COUNTER_XMIT_BYTES));
	assert_int_equal(counters.at_maximum, 0);
	put(EXTENDED, IB_PC_EXT_XMT_BYTES_F, UINT64_MAX);
	counters = read_with(NULL, 3);
	assert_int_equal(counters.odd, MAD_COUNTERS_ODD_VALUE);
	assert_true(counters.odd_values == MAD_COUNTER_BIT(MAD_COUNTER_XMIT_BYTES));
	assert_true(counters.at_maximum == MAD_COUNTER_BIT(MAD_COUNTER_XMIT_BYTES));
	put(EXTENDED, IB_PC_EXT_XMT_BYTES_F, 0);
	put(EXTENDED, IB_PC_EXT_XMT_PKTS_F, UINT64_MAX);
	counters = read_with(NULL, 3);
	assert_true(counters.xmit_packets == UINT64_MAX);
	assert_true(counters.odd_values == MAD_COUNTER_BIT(MAD_COUNTER_XMIT_PACKETS));
}

static uint64_t basic_written_us;

static int respond_to_basic_late(const struct device_packet *packet, void *arg)
{
	(void)arg;
	if (packet->mad[17] == BASIC) {
		basic_written_us = (uint64_t)clock_us();
		usleep(3000);
	}
	respond(packet);
	return 0;
}

TEST(each_counter_has_the_time_of_its_response)
{
	uint64_t first, last;

	node.capabilities = MAD_PMA_EXTENDED_WIDTH;
	device_on_write(respond_to_basic_late, NULL);
	counters = read_with(NULL, 3);
	mad_counters_value(&counters, MAD_COUNTER_RCV_BYTES, &first);
	mad_counters_value(&counters, MAD_COUNTER_SYMBOL_ERRORS, &last);
	assert_true(first > 0 && first <= basic_written_us);
	assert_true(last >= basic_written_us + 3000);
	assert_true(last == counters.time_us);
	mad_counters_value(&counters, MAD_COUNTER_QP1_DROPPED, &first);
	mad_counters_value(&counters, MAD_COUNTER_COUNT, &last);
	assert_true(first == 0 && last == 0);
	mad_counters_value(NULL, 0, &basic_written_us);
	assert_true(basic_written_us == 0);
}

/* As in a program that was compiled with fewer members, or with more. */
TEST(a_structure_of_another_size_is_filled_in_as_far_as_it_goes)
{
	const size_t smaller = offsetof(struct mad_counters, symbol_errors);
	struct {
		struct mad_counters counters;
		uint64_t later[2];
	} larger;
	uint64_t time;

	put(BASIC, IB_PC_ERR_SYM_F, 3);
	put(BASIC, IB_PC_RCV_PKTS_F, 5);
	memset(&larger, 0xff, sizeof(larger));
	assert_int_equal(
		mad_counters_read(fixture.port, &to, PORT, NULL, &larger.counters, smaller), 0);
	assert_int_equal(larger.counters.size, smaller);
	assert_int_equal(larger.counters.rcv_packets, 5);
	assert_true(larger.counters.symbol_errors == UINT64_MAX);
	assert_int_equal(mad_counters_value(&larger.counters, MAD_COUNTER_RCV_PACKETS, &time),
			 5);
	assert_true(time == 0);
	assert_int_equal(mad_counters_value(&larger.counters, MAD_COUNTER_SYMBOL_ERRORS, NULL),
			 0);
	assert_int_equal(mad_counters_read(fixture.port, &to, PORT, NULL, &larger.counters,
					   sizeof(larger)),
			 0);
	assert_int_equal(larger.counters.size, sizeof(counters));
	assert_int_equal(larger.counters.symbol_errors, 3);
	assert_true(larger.later[0] == 0 && larger.later[1] == 0);
}

TEST(a_response_about_another_port_is_odd)
{
	node.other_port = 4;
	assert_int_equal(read_with(NULL, 2).odd, MAD_COUNTERS_ODD_PORT);
}

TEST(the_table_has_each_member_once)
{
	const struct mad_counter_info *info;
	unsigned i;

	for (i = 0; (info = mad_counters_info(i)); i++) {
		counters = (struct mad_counters){.size = sizeof(counters)};
		/* the members have the order of their numbers */
		memset(&counters.xmit_bytes + i, 0x01, sizeof(uint64_t));
		assert_true(mad_counters_value(&counters, i, NULL) ==
			    UINT64_C(0x0101010101010101));
		assert_true(info->bits || info->extended_bits);
		assert_true(info->multiplier == (strcmp(info->unit, "bytes") ? 1 : 4));
		assert_non_null(
			strstr("bytes packets ticks blocks symbols events", info->unit));
		assert_true(info->description[0] && info->field[0] && info->attribute[0]);
		for (unsigned k = 0; k < i; k++)
			assert_string_not_equal(info->name, mad_counters_info(k)->name);
	}
	assert_int_equal(i, MAD_COUNTER_COUNT);
	assert_int_equal(mad_counters_value(&counters, MAD_COUNTER_COUNT, NULL), 0);
	assert_int_equal(mad_counters_value(NULL, 0, NULL), 0);
	assert_string_equal(mad_counters_info(MAD_COUNTER_XMIT_WAIT_TICKS)->name,
			    "xmit_wait_ticks");
	assert_string_equal(mad_counters_info(MAD_COUNTER_XMIT_BYTES)->field, "PortXmitData");
}

static unsigned bits_of(const char *name)
{
	const struct mad_field *field = mad_field_info(mad_field_by_name(name));

	return field ? field->bits : 0;
}

TEST(the_table_agrees_with_the_fields)
{
	const struct mad_counter_info *info;

	for (unsigned i = 0; (info = mad_counters_info(i)); i++) {
		char name[128];

		snprintf(name, sizeof(name), "%s.%s", info->attribute, info->field);
		assert_true(bits_of(name) == (info->bits ? info->bits : info->extended_bits));
		snprintf(name, sizeof(name), "PortCountersExtended.%s", info->field);
		assert_true(bits_of(name) == info->extended_bits);
	}
}

/* --- failures -------------------------------------------------------------------- */

TEST(a_dead_node_costs_one_request)
{
	struct mad_counters_options options = {.timeout_ms = 5};

	node.silent = CLASS_PORT_INFO;
	mad_rpc_set_retries(fixture.port, 1);
	assert_int_equal(read_port(PORT, &options), -ETIMEDOUT);
	assert_int_equal(device_written(), 1);
	assert_int_equal(counters.present, 0);
}

TEST(a_reading_that_fails_has_what_was_read)
{
	node.capabilities = MAD_PMA_EXTENDED_WIDTH;
	node.status[BASIC] = 0x001c;
	put(EXTENDED, IB_PC_EXT_RCV_PKTS_F, 5);
	assert_int_equal(read_port(PORT, NULL), -EIO);
	assert_int_equal(counters.status, 0x1c);
	assert_int_equal(counters.present, 0xff);
	assert_int_equal(counters.rcv_packets, 5);
	/* each node has PortCounters: this is not a rejection */
	node.status[BASIC] = 0x000c;
	assert_int_equal(read_port(PORT, NULL), -EIO);
}

TEST(a_response_that_is_too_short_is_not_read)
{
	struct mad_counters_options options = {.node = mad_counters_node_create()};

	read_with(&options, 2);
	mad_rpc_set_retries(fixture.port, 1);
	node.length = IB_MAD_SIZE - 1;
	assert_int_equal(read_port(PORT, &options), -EBADMSG);
	assert_int_equal(counters.present, 0);
	/* the library drops messages that are not MADs */
	node.length = 30;
	options.timeout_ms = 5;
	assert_int_equal(read_port(PORT, &options), -ETIMEDOUT);
	assert_int_equal(counters.present, 0);
	mad_counters_node_free(options.node);
}

TEST(a_node_without_any_of_the_counters_is_told)
{
	struct mad_counters_options options = {
		.counters = MAD_COUNTER_BIT(MAD_COUNTER_RCV_UNICAST_PACKETS)};

	assert_int_equal(read_port(PORT, &options), -EOPNOTSUPP);
	assert_int_equal(device_written(), 1);
	options.counters = MAD_COUNTERS_RCV_ERROR_DETAILS;
	node.status[RCV_DETAILS] = 0x000c;
	assert_int_equal(read_port(PORT, &options), -EOPNOTSUPP);
}

TEST(what_cannot_be_read_is_refused)
{
	ib_portid_t nowhere = {.lid = 0}, route = {.lid = -1};
	struct mad_async *async = mad_async_create(fixture.port);

	assert_int_equal(mad_counters_read(NULL, &to, 1, NULL, &counters, sizeof(counters)),
			 -EINVAL);
	assert_int_equal(
		mad_counters_read(fixture.port, NULL, 1, NULL, &counters, sizeof(counters)),
		-EINVAL);
	assert_int_equal(
		mad_counters_read(fixture.port, &nowhere, 1, NULL, &counters, sizeof(counters)),
		-EINVAL);
	assert_int_equal(
		mad_counters_read(fixture.port, &route, 1, NULL, &counters, sizeof(counters)),
		-EINVAL);
	assert_int_equal(read_port(256, NULL), -EINVAL);
	assert_int_equal(stored(mad_counters_read(fixture.port, &to, 1, NULL, NULL, 0)),
			 -EINVAL);
	for (unsigned i = 0; i < 6; i++) {
		struct mad_counters_options options = {.timeout_ms = i == 4 ? -1 : 0};
		struct result result = {0};

		if (i < 4)
			options.reserved[i] = 1;
		else if (i == 5)
			options.counters = MAD_COUNTER_BIT(MAD_COUNTER_COUNT);
		assert_int_equal(read_port(1, &options), -EINVAL);
		assert_int_equal(mad_counters_reset(fixture.port, &to, 1, &options), -EINVAL);
		assert_int_equal(
			mad_counters_submit(async, &to, 1, &options, came, &result, NULL),
			-EINVAL);
	}
	mad_async_free(async);
	assert_int_equal(stored(mad_counters_reset(NULL, &to, 1, NULL)), -EINVAL);
	assert_int_equal(mad_counters_reset(fixture.port, &route, 1, NULL), -EINVAL);
	assert_int_equal(device_written(), 0);
}

/* --- reset ------------------------------------------------------------------------ */

TEST(a_reset_selects_what_a_reading_reads)
{
	struct mad_counters_options options = {.node = mad_counters_node_create()};

	assert_int_equal(reset_port(&options), 0);
	assert_int_equal(device_written(), 2);
	expect_mad(1, "0:01040102 17:12 65:03ffff");
	mad_counters_node_free(options.node);
	node.capabilities = MAD_PMA_EXTENDED_WIDTH | MAD_PMA_XMIT_WAIT;
	assert_int_equal(reset_port(NULL), 0);
	assert_int_equal(device_written(), 5);
	expect_mad(3, "0:01040102 17:1d 65:0300ff");
	expect_mad(4, "0:01040102 17:12 65:030fff 82:01");
	node.capabilities2 = MAD_PMA2_ADDITIONAL_EXTENDED;
	assert_int_equal(reset_port(NULL), 0);
	assert_int_equal(device_written(), 7);
	expect_mad(6, "0:01040102 17:1d 65:0300ff 70:1fff");
}

TEST(a_reset_selects_the_fields_of_all_lanes)
{
	struct mad_counters_options options = {.counters = MAD_COUNTERS_EXTENDED_SPEEDS};

	node.capabilities = MAD_PMA_RSFEC_COUNTERS;
	assert_int_equal(mad_counters_reset(fixture.port, &to, PORT, &options), 0);
	expect_mad(1, "0:01040102 17:1f 65:03 66:0000 72:000001ffffffffff");
	options.counters = MAD_COUNTER_BIT(MAD_COUNTER_ERROR_DETECTIONS);
	assert_int_equal(mad_counters_reset(fixture.port, &to, PORT, &options), 0);
	expect_mad(3, "0:01040102 17:1f 65:03 72:0000000000003ffc");
}

TEST(a_reset_of_details_and_of_what_is_refused)
{
	struct mad_counters_options options = {.counters = MAD_COUNTERS_XMIT_DISCARD_DETAILS};

	assert_int_equal(reset_port(&options), 0);
	expect_mad(1, "0:01040102 17:16 65:03000f");
	node.status[XMIT_DETAILS] = 0x000c;
	assert_int_equal(reset_port(&options), -EOPNOTSUPP);
	node.status[XMIT_DETAILS] = 0x001c;
	assert_int_equal(reset_port(&options), -EIO);
}
