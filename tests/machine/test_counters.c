/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Counters of a port: the requests of a reading, the results from the responses, the details;
 * readings on an engine, which share ClassPortInfo and are cancelled.
 */

#include "machine.h"
#include "test.h"

#include <infiniband/mad.h>
#include <infiniband/mad_counters.h>
#include <infiniband/mad_errors.h>
#include <infiniband/mad_fields.h>
#include <infiniband/mad_link.h>
#include <math.h>
#include <pthread.h>

#define NODE  "n1"
#define PORT  3
#define PORTS 64
#define FEW   4
#define SEEN  256

#define BASIC        IB_GSI_PORT_COUNTERS
#define EXTENDED     IB_GSI_PORT_COUNTERS_EXT
#define RCV_DETAILS  IB_GSI_PORT_RCV_ERROR_DETAILS
#define XMIT_DETAILS IB_GSI_PORT_XMIT_DISCARD_DETAILS
#define SPEEDS       IB_GSI_PORT_EXT_SPEEDS_COUNTERS
#define TICK         IB_GSI_PORT_SAMPLES_CONTROL
#define VL_PACKETS   IB_GSI_PORT_PORT_VL_OP_PACKETS
#define VL_DATA      IB_GSI_PORT_PORT_VL_OP_DATA
#define VL_WAIT      IB_GSI_PORT_PORT_VL_XMIT_WAIT_COUNTERS

#define BIT(counter)   MAD_COUNTER_BIT(MAD_COUNTER_##counter)
#define BASIC_COUNTERS (UINT64_C(0xf) | (MAD_COUNTERS_ERRORS & ~BIT(QP1_DROPPED)))

/* The agent of the node: its capabilities, the attributes that it rejects, its counters. */
static struct {
	unsigned capabilities, capabilities2;
	uint16_t status[256]; /* by attribute */
	uint8_t data[256][IB_PC_DATA_SZ];
	uint8_t other_port;  /* the PortSelect of responses, if it is not 0 */
	unsigned silent;     /* the attribute without a response; or 0 */
	unsigned count[256]; /* requests by attribute */
	bool hold;           /* no response to ClassPortInfo before release_held() */
	uint8_t held[8][MACHINE_MAD], latest[MACHINE_MAD];
	unsigned held_count, written;
	uint64_t seen[SEEN]; /* TIDs of the latest requests */
} node;

static struct ibmad_port *port;
static ib_portid_t to;
static struct mad_counters counters;
static struct mad_counters_options options;

/* Whether the request is a retransmission, which has the TID of an earlier one. */
static bool was_seen(const uint8_t *mad)
{
	uint64_t tid = mad_get_field64((void *)(uintptr_t)mad, 0, IB_MAD_TRID_F);

	for (unsigned i = 0; i < SEEN; i++)
		if (node.seen[i] == tid)
			return true;
	node.seen[node.written % SEEN] = tid;
	return false;
}

static enum machine_verdict pma_arrived(struct machine_mad *mad, void *arg)
{
	uint8_t data[IB_PC_DATA_SZ], attribute = mad->bytes[17];

	(void)arg;
	if (mad->at_host || mad->bytes[1] != IB_PERFORMANCE_CLASS)
		return MACHINE_PASS;
	if (!was_seen(mad->bytes)) {
		memcpy(node.latest, mad->bytes, MACHINE_MAD);
		node.written++;
		node.count[attribute]++;
	}
	if (attribute == node.silent && node.silent)
		return MACHINE_DROP;
	memcpy(data, node.data[attribute], sizeof(data));
	if (attribute == CLASS_PORT_INFO) {
		mad_set_field(data, 0, IB_CPI_CAPMASK_F, node.capabilities);
		mad_set_field(data, 0, IB_CPI_CAPMASK2_F, node.capabilities2);
	} else {
		data[1] = node.other_port ? node.other_port : mad->bytes[65];
	}
	machine_reply(mad, node.status[attribute], IB_PC_DATA_OFFS, data, sizeof(data));
	if (attribute != CLASS_PORT_INFO || !node.hold)
		return MACHINE_REPLY;
	memcpy(node.held[node.held_count++ % 8], mad->bytes, MACHINE_MAD);
	return MACHINE_DROP;
}

static void release_held(void)
{
	node.hold = false;
	for (unsigned i = 0; i < node.held_count; i++)
		machine_send(NODE, node.held[i], 0);
	node.held_count = 0;
}

static void put(unsigned attribute, enum MAD_FIELDS field, uint64_t value)
{
	if (mad_field_info(field)->bits > 32)
		mad_set_field64(node.data[attribute], 0, field, value);
	else
		mad_set_field(node.data[attribute], 0, field, (uint32_t)value);
}

static int setup(void)
{
	int classes[] = {IB_PERFORMANCE_CLASS};

	memset(&node, 0, sizeof(node));
	memset(&options, 0, sizeof(options));
	machine_setup();
	machine_on_arrival(pma_arrived, NULL);
	to = (ib_portid_t){.lid = machine_lid(NODE)};
	port = mad_rpc_open_port(NULL, 0, classes, 1);
	return port ? 0 : -1;
}

static int teardown(void)
{
	machine_fail(MACHINE_MALLOC, 0, 0);
	mad_rpc_close_port(port);
	return machine_teardown();
}

FIXTURE(setup, teardown);

/* A call that fails stores its error. */
static int stored(int error)
{
	if (error) {
		assert_int_equal(mad_last_failure()->error, error);
		assert_int_equal(mad_last_failure()->mgmt_class, IB_PERFORMANCE_CLASS);
	}
	return error;
}

static int read_port(unsigned number)
{
	return stored(
		mad_counters_read(port, &to, number, &options, &counters, sizeof(counters)));
}

/* A reading that succeeds with so many requests. */
static void read_with(unsigned requests)
{
	const struct mad_failure failure = *mad_last_failure();
	unsigned before = node.written;

	memset(&counters, 0xff, sizeof(counters));
	assert_int_equal(
		mad_counters_read(port, &to, PORT, &options, &counters, sizeof(counters)), 0);
	/* a call that succeeds does not change it, although the node refused requests */
	assert_memory_equal(mad_last_failure(), &failure, sizeof(failure));
	assert_int_equal(node.written - before, requests);
	assert_int_equal(counters.requests, requests);
	assert_int_equal(counters.size, sizeof(counters));
	assert_int_equal(counters.port, PORT);
	assert_int_equal(counters.status, 0);
}

static uint64_t field_of_latest(size_t offset, unsigned bytes)
{
	uint64_t value = 0;

	while (bytes--)
		value = value << 8 | node.latest[offset++];
	return value;
}

/* --- which requests are sent ----------------------------------------------------- */

TEST(port_counters_fill_in_what_the_extended_ones_lack)
{
	put(BASIC, IB_PC_XMT_BYTES_F, 1000);
	put(BASIC, IB_PC_RCV_PKTS_F, 7);
	put(BASIC, IB_PC_ERR_SYM_F, 9);
	put(BASIC, IB_PC_XMT_WAIT_F, 55);
	read_with(2);
	assert_int_equal(field_of_latest(0, 4), 0x01040101);
	assert_int_equal(field_of_latest(64, 2), PORT);
	assert_true(counters.present == BASIC_COUNTERS);
	assert_int_equal(counters.xmit_bytes, 4000);
	assert_int_equal(counters.rcv_packets, 7);
	assert_int_equal(counters.symbol_errors, 9);
	/* counters that the node does not support are not read from its response */
	assert_int_equal(counters.xmit_wait_ticks, 0);
	assert_int_equal(counters.extended, 0);
	assert_int_equal(counters.odd, 0);
	node.capabilities = MAD_PMA_EXTENDED_WIDTH | MAD_PMA_XMIT_WAIT | MAD_PMA_QP1_DROPPED;
	put(BASIC, IB_PC_XMT_BYTES_F, UINT32_MAX);
	put(BASIC, IB_PC_ERR_RCV_F, 3);
	put(BASIC, IB_PC_VL15_DROPPED_F, 0x11);
	node.data[BASIC][20] = 0x12;
	node.data[BASIC][21] = 0x34;
	put(EXTENDED, IB_PC_EXT_XMT_BYTES_F, UINT64_C(1) << 40);
	put(EXTENDED, IB_PC_EXT_RCV_UPKTS_F, 5);
	put(EXTENDED, IB_PC_EXT_ERR_RCV_F, 77);
	read_with(3);
	assert_true(counters.present == MAD_COUNTERS_DEFAULT);
	assert_true(counters.extended == 0xff);
	assert_true(counters.xmit_bytes == UINT64_C(1) << 42);
	assert_int_equal(counters.rcv_unicast_packets, 5);
	assert_int_equal(counters.rcv_errors, 3);
	assert_int_equal(counters.xmit_wait_ticks, 55);
	assert_int_equal(counters.vl15_dropped, 0x11);
	assert_int_equal(counters.qp1_dropped, 0x1234);
	assert_int_equal(counters.at_maximum, 0);
	assert_int_equal(counters.capability_mask, node.capabilities);
	/* a node with all in the extended ones */
	node.capabilities2 = MAD_PMA2_ADDITIONAL_EXTENDED;
	put(EXTENDED, IB_PC_EXT_XMT_WAIT_F, UINT64_C(1) << 50);
	put(EXTENDED, IB_PC_EXT_QP1_DROP_F, 6);
	read_with(2);
	assert_true(counters.present == MAD_COUNTERS_DEFAULT);
	assert_true(counters.extended == MAD_COUNTERS_DEFAULT);
	assert_int_equal(counters.rcv_errors, 77);
	assert_true(counters.xmit_wait_ticks == UINT64_C(1) << 50);
	assert_int_equal(counters.qp1_dropped, 6);
	assert_int_equal(counters.capability_mask2, 2);
	/* extended counters without unicast and multicast packets */
	node.capabilities = MAD_PMA_EXTENDED_WIDTH_NO_IETF;
	node.capabilities2 = 0;
	read_with(3);
	assert_true(counters.present == BASIC_COUNTERS);
	assert_true(counters.extended == 0xf);
	assert_int_equal(counters.rcv_unicast_packets, 0);
}

/* Requests of a reading, or of a reset, and what it selects. */
static const struct selection {
	const char *behaviour;
	uint64_t counters;
	unsigned capabilities, capabilities2;
	unsigned attribute; /* of the last request */
	uint64_t select;    /* CounterSelect of a reset */
	uint64_t select2;   /* at select2_at */
	size_t select2_at;
} selections[] = {
	{"plain", 0, 0, 0, BASIC, 0xffff, 0, 0},
	{"extended", 0, MAD_PMA_EXTENDED_WIDTH | MAD_PMA_XMIT_WAIT, 0, BASIC, 0x0fff, 0x01, 82},
	{"all_extended", 0, MAD_PMA_EXTENDED_WIDTH | MAD_PMA_XMIT_WAIT,
	 MAD_PMA2_ADDITIONAL_EXTENDED, EXTENDED, 0x00ff, 0x1fff, 70},
	{"one_extended", BIT(RCV_PACKETS), MAD_PMA_EXTENDED_WIDTH, 0, EXTENDED, 0x0008, 0, 0},
	{"errors", MAD_COUNTERS_ERRORS, MAD_PMA_EXTENDED_WIDTH, 0, BASIC, 0x0fff, 0, 0},
	{"xmit_details", MAD_COUNTERS_XMIT_DISCARD_DETAILS, 0, 0, XMIT_DETAILS, 0x000f, 0, 0},
	{"rcv_details", MAD_COUNTERS_RCV_ERROR_DETAILS, 0, 0, RCV_DETAILS, 0x003f, 0, 0},
	{"lanes", MAD_COUNTERS_EXTENDED_SPEEDS, MAD_PMA_RSFEC_COUNTERS, 0, SPEEDS, 0,
	 UINT64_C(0x000001ffffffffff), 72},
	{"error_detections", BIT(ERROR_DETECTIONS), MAD_PMA_RSFEC_COUNTERS, 0, SPEEDS, 0,
	 0x3ffc, 72},
};

static void select_counters(const void *row)
{
	const struct selection *selection = row;

	node.capabilities = selection->capabilities;
	node.capabilities2 = selection->capabilities2;
	options.counters = selection->counters;
	assert_int_equal(read_port(PORT), 0);
	assert_int_equal(node.latest[17], selection->attribute);
	assert_int_equal(node.latest[3], IB_MAD_METHOD_GET);
	if (selection->counters)
		assert_true((counters.present & ~selection->counters) == 0);
	assert_int_equal(node.written,
			 selection->attribute == BASIC && node.count[EXTENDED] ? 3 : 2);
	assert_int_equal(mad_counters_reset(port, &to, PORT, &options), 0);
	assert_int_equal(field_of_latest(0, 4), 0x01040102);
	assert_int_equal(node.latest[17], selection->attribute);
	assert_int_equal(node.latest[65], PORT);
	assert_true(field_of_latest(66, 2) == selection->select);
	if (selection->select2_at)
		assert_true(field_of_latest(selection->select2_at,
					    selection->select2_at == 72 ? 8
					    : selection->select2_at == 70
						    ? 2
						    : 1) == selection->select2);
}

TEST_ROWS(select_counters, selections);

TEST(a_reset_of_what_is_refused_fails)
{
	options.counters = MAD_COUNTERS_XMIT_DISCARD_DETAILS;
	node.status[XMIT_DETAILS] = 0x000c;
	assert_int_equal(stored(mad_counters_reset(port, &to, PORT, &options)), -EOPNOTSUPP);
	node.status[XMIT_DETAILS] = 0x001c;
	assert_int_equal(stored(mad_counters_reset(port, &to, PORT, &options)), -EIO);
}

TEST(details_are_read_on_demand)
{
	options.counters = MAD_COUNTERS_ALL;
	put(RCV_DETAILS, IB_PC_RCV_LOCAL_PHY_ERR_F, 1);
	put(RCV_DETAILS, IB_PC_RCV_LOOPING_ERR_F, UINT16_MAX);
	put(XMIT_DETAILS, IB_PC_XMT_SW_HOL_DISC_F, 4);
	read_with(5);
	assert_int_equal(counters.local_physical_errors, 1);
	assert_int_equal(counters.looping_errors, UINT16_MAX);
	assert_int_equal(counters.sw_hoq_lifetime_limit_discards, 4);
	assert_true(counters.at_maximum == BIT(LOOPING_ERRORS));
	assert_true((counters.present & ~MAD_COUNTERS_DEFAULT) ==
		    (MAD_COUNTERS_ALL & ~MAD_COUNTERS_DEFAULT & ~BIT(FEC_CORRECTED_SYMBOLS)));
}

TEST(lanes_are_added_up)
{
	options.counters = MAD_COUNTERS_EXTENDED_SPEEDS;
	put(SPEEDS, IB_PESC_SYNC_HDR_ERR_CTR_F, 1);
	put(SPEEDS, IB_PESC_UNK_BLOCK_CTR_F, 2);
	for (unsigned lane = 0; lane < 12; lane++) {
		put(SPEEDS, IB_PESC_ERR_DET_CTR_LANE0_F + lane, 100 + lane);
		put(SPEEDS, IB_PESC_FEC_CORR_BLOCK_CTR_LANE0_F + lane, UINT32_MAX - 1);
		put(SPEEDS, IB_PESC_FEC_UNCORR_BLOCK_CTR_LANE0_F + lane, 1000 + lane);
	}
	read_with(2);
	assert_int_equal(counters.sync_header_errors, 1);
	assert_int_equal(counters.unknown_blocks, 2);
	assert_int_equal(counters.error_detections, 1266);
	assert_true(counters.fec_corrected_blocks == UINT64_C(12) * (UINT32_MAX - 1));
	assert_int_equal(counters.fec_uncorrectable_blocks, 12066);
	assert_true(counters.present ==
		    (MAD_COUNTERS_EXTENDED_SPEEDS & ~BIT(FEC_CORRECTED_SYMBOLS)));
	assert_int_equal(counters.at_maximum, 0);
	put(SPEEDS, IB_PESC_FEC_UNCORR_BLOCK_CTR_LANE11_F, UINT32_MAX);
	read_with(2);
	assert_true(counters.at_maximum == BIT(FEC_UNCORRECTABLE_BLOCKS));
	/* Reed-Solomon FEC has counters of the port; the lanes count symbols */
	memset(node.data[SPEEDS], 0, IB_PC_DATA_SZ);
	node.capabilities = MAD_PMA_RSFEC_COUNTERS;
	put(SPEEDS, IB_PESC_FEC_UNCORR_BLOCK_CTR_LANE0_F, 3);
	read_with(2);
	assert_int_equal(counters.fec_uncorrectable_blocks, 3);
	assert_int_equal(counters.fec_corrected_symbols, 0);
	assert_true(counters.present == MAD_COUNTERS_EXTENDED_SPEEDS);
	put(SPEEDS, IB_PESC_RSFEC_FEC_CORR_SYMBOL_CTR_LANE0_F, 70);
	put(SPEEDS, IB_PESC_PORT_FEC_CORR_SYMBOL_CTR_F, 70);
	read_with(2);
	assert_int_equal(counters.fec_corrected_symbols, 70);
	assert_int_equal(counters.fec_corrected_blocks, 0);
	put(SPEEDS, IB_PESC_PORT_FEC_CORR_BLOCK_CTR_F, 20);
	put(SPEEDS, IB_PESC_PORT_FEC_UNCORR_BLOCK_CTR_F, UINT32_MAX);
	read_with(2);
	assert_int_equal(counters.fec_corrected_blocks, 20);
	assert_true(counters.fec_uncorrectable_blocks == UINT32_MAX);
	assert_true(counters.at_maximum == BIT(FEC_UNCORRECTABLE_BLOCKS));
}

TEST(what_a_node_refuses_is_asked_for_once)
{
	options = (struct mad_counters_options){.counters = MAD_COUNTERS_ALL,
						.node = mad_counters_node_create()};
	node.capabilities = MAD_PMA_EXTENDED_WIDTH;
	node.status[EXTENDED] = node.status[SPEEDS] = 0x000c;
	node.status[RCV_DETAILS] = 0x0008;
	put(BASIC, IB_PC_RCV_PKTS_F, 5);
	for (unsigned i = 0; i < 2; i++) {
		read_with(i ? 2 : 6);
		assert_int_equal(counters.rcv_packets, 5);
		assert_int_equal(counters.odd, MAD_COUNTERS_ODD_CAPABILITY);
		assert_true(counters.present ==
			    (BASIC_COUNTERS | MAD_COUNTERS_XMIT_DISCARD_DETAILS));
	}
	assert_int_equal(node.count[CLASS_PORT_INFO], 1);
	mad_counters_node_free(options.node);
	mad_counters_node_free(NULL);
	/* without a node nothing is stored; without ClassPortInfo there are PortCounters */
	options = (struct mad_counters_options){0};
	node.status[EXTENDED] = 0;
	read_with(3);
	read_with(3);
	node.status[CLASS_PORT_INFO] = 0x000c;
	read_with(2);
	assert_int_equal(counters.rcv_packets, 5);
}

TEST(basic_counters_take_one_request)
{
	options = (struct mad_counters_options){.basic = true,
						.node = mad_counters_node_create()};
	node.capabilities = MAD_PMA_EXTENDED_WIDTH | MAD_PMA_XMIT_WAIT;
	read_with(1);
	assert_true(counters.present == BASIC_COUNTERS);
	/* a rejected request tells nothing about the ClassPortInfo */
	node.status[RCV_DETAILS] = 0x000c;
	options.counters = MAD_COUNTERS_ALL;
	read_with(4);
	read_with(3);
	assert_int_equal(node.count[CLASS_PORT_INFO], 0);
	/* all ports together need a capability */
	assert_int_equal(read_port(MAD_COUNTERS_ALL_PORTS), -EOPNOTSUPP);
	assert_int_equal(node.count[CLASS_PORT_INFO], 1);
	/* now the node is known */
	read_with(3);
	assert_true(counters.present & BIT(XMIT_WAIT_TICKS));
	assert_int_equal(node.count[EXTENDED], 0);
	mad_counters_node_free(options.node);
	options = (struct mad_counters_options){0};
	node.capabilities = MAD_PMA_ALL_PORT_SELECT;
	assert_int_equal(read_port(MAD_COUNTERS_ALL_PORTS), 0);
	assert_int_equal(node.latest[65], 0xff);
	assert_int_equal(counters.port, 255);
}

/* --- numbers --------------------------------------------------------------------- */

TEST(counters_at_their_maximum_and_odd_ones_are_named)
{
	node.capabilities = MAD_PMA_XMIT_WAIT | MAD_PMA_QP1_DROPPED;
	memset(node.data[BASIC], 0xff, IB_PC_DATA_SZ);
	read_with(2);
	assert_true(counters.at_maximum == counters.present);
	assert_true(counters.xmit_bytes == UINT64_C(4) * UINT32_MAX);
	assert_true(counters.xmit_packets == UINT32_MAX);
	assert_int_equal(counters.symbol_errors, UINT16_MAX);
	assert_int_equal(counters.link_downed, UINT8_MAX);
	assert_int_equal(counters.local_link_integrity_errors, 15);
	assert_int_equal(counters.qp1_dropped, UINT16_MAX);
	put(BASIC, IB_PC_XMT_PKTS_F, UINT32_MAX - 1);
	read_with(2);
	assert_false(counters.at_maximum & BIT(XMIT_PACKETS));
	/* values beyond 64 bits, or of ones */
	node.capabilities = MAD_PMA_EXTENDED_WIDTH;
	memset(node.data[BASIC], 0, IB_PC_DATA_SZ);
	put(EXTENDED, IB_PC_EXT_XMT_BYTES_F, UINT64_C(1) << 62);
	put(EXTENDED, IB_PC_EXT_RCV_BYTES_F, UINT64_MAX / 4);
	read_with(3);
	assert_true(counters.xmit_bytes == UINT64_MAX);
	assert_true(counters.rcv_bytes == UINT64_MAX - 3);
	assert_int_equal(counters.odd, MAD_COUNTERS_ODD_VALUE);
	assert_true(counters.odd_values == BIT(XMIT_BYTES));
	assert_int_equal(counters.at_maximum, 0);
	put(EXTENDED, IB_PC_EXT_XMT_BYTES_F, UINT64_MAX);
	read_with(3);
	assert_true(counters.odd_values == BIT(XMIT_BYTES));
	assert_true(counters.at_maximum == BIT(XMIT_BYTES));
	put(EXTENDED, IB_PC_EXT_XMT_BYTES_F, 0);
	put(EXTENDED, IB_PC_EXT_XMT_PKTS_F, UINT64_MAX);
	read_with(3);
	assert_true(counters.xmit_packets == UINT64_MAX);
	assert_true(counters.odd_values == BIT(XMIT_PACKETS));
	/* a response about another port */
	put(EXTENDED, IB_PC_EXT_XMT_PKTS_F, 0);
	node.other_port = 4;
	read_with(3);
	assert_int_equal(counters.odd, MAD_COUNTERS_ODD_PORT);
}

TEST(each_counter_has_the_time_of_its_response)
{
	uint64_t first, last;

	machine_pass(1000);
	machine_rule("hop-latency 1ms");
	node.capabilities = MAD_PMA_EXTENDED_WIDTH;
	read_with(3);
	mad_counters_value(&counters, MAD_COUNTER_RCV_BYTES, &first);
	mad_counters_value(&counters, MAD_COUNTER_SYMBOL_ERRORS, &last);
	assert_int_equal(last, counters.time_us);
	assert_int_equal(last - first, 4000);
	mad_counters_value(&counters, MAD_COUNTER_QP1_DROPPED, &first);
	mad_counters_value(&counters, MAD_COUNTER_COUNT, &last);
	assert_true(first == 0 && last == 0);
	first = 1;
	mad_counters_value(NULL, 0, &first);
	assert_true(first == 0);
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
	assert_int_equal(mad_counters_read(port, &to, PORT, NULL, &larger.counters, smaller),
			 0);
	assert_int_equal(larger.counters.size, smaller);
	assert_true(larger.counters.symbol_errors == UINT64_MAX);
	assert_int_equal(mad_counters_value(&larger.counters, MAD_COUNTER_RCV_PACKETS, &time),
			 5);
	assert_true(time == 0);
	assert_int_equal(mad_counters_value(&larger.counters, MAD_COUNTER_SYMBOL_ERRORS, NULL),
			 0);
	assert_int_equal(
		mad_counters_read(port, &to, PORT, NULL, &larger.counters, sizeof(larger)), 0);
	assert_int_equal(larger.counters.size, sizeof(counters));
	assert_int_equal(larger.counters.symbol_errors, 3);
	assert_true(larger.later[0] == 0 && larger.later[1] == 0);
}

static unsigned bits_of(const char *attribute, const char *name)
{
	char text[128];
	const struct mad_field *field;

	snprintf(text, sizeof(text), "%s.%s", attribute, name);
	field = mad_field_info(mad_field_by_name(text));
	return field ? field->bits : 0;
}

PLAIN_TEST(the_table_has_each_member_once)
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

PLAIN_TEST(the_table_agrees_with_the_fields)
{
	const struct mad_counter_info *info;

	for (unsigned i = 0; (info = mad_counters_info(i)); i++) {
		assert_int_equal(bits_of(info->attribute, info->field),
				 info->bits ? info->bits : info->extended_bits);
		assert_int_equal(bits_of("PortCountersExtended", info->field),
				 info->extended_bits);
	}
}

/* --- failures -------------------------------------------------------------------- */

TEST(readings_that_fail_have_what_was_read)
{
	node.capabilities = MAD_PMA_EXTENDED_WIDTH;
	node.status[BASIC] = 0x001c;
	put(EXTENDED, IB_PC_EXT_RCV_PKTS_F, 5);
	assert_int_equal(read_port(PORT), -EIO);
	assert_int_equal(counters.status, 0x1c);
	assert_int_equal(counters.present, 0xff);
	assert_int_equal(counters.rcv_packets, 5);
	/* each node has PortCounters: this is not a rejection */
	node.status[BASIC] = 0x000c;
	assert_int_equal(read_port(PORT), -EIO);
	/* a node without any of the counters */
	node.capabilities = 0;
	options.counters = BIT(RCV_UNICAST_PACKETS);
	assert_int_equal(read_port(PORT), -EOPNOTSUPP);
	options.counters = MAD_COUNTERS_RCV_ERROR_DETAILS;
	node.status[RCV_DETAILS] = 0x000c;
	assert_int_equal(read_port(PORT), -EOPNOTSUPP);
	/* a silent node costs one request */
	node.silent = CLASS_PORT_INFO;
	node.written = 0;
	mad_rpc_set_retries(port, 1);
	assert_int_equal(read_port(PORT), -ETIMEDOUT);
	assert_int_equal(node.written, 1);
	assert_int_equal(counters.present, 0);
}

/* --- details --------------------------------------------------------------------- */

#define ALL 31

static struct mad_counters_details details;

static struct mad_counters_options wants(unsigned groups)
{
	return (struct mad_counters_options){
		.details = groups, .details_to = &details, .details_size = sizeof(details)};
}

static int read_details(unsigned groups)
{
	const struct mad_counters_options wanted = wants(groups);

	memset(&details, 0xff, sizeof(details));
	node.written = 0;
	return stored(mad_counters_read(port, &to, PORT, &wanted, NULL, 0));
}

TEST(lanes_and_virtual_lanes_are_apart)
{
	machine_pass(1000);
	put(SPEEDS, IB_PESC_ERR_DET_CTR_LANE3_F, 7);
	put(SPEEDS, IB_PESC_FEC_CORR_BLOCK_CTR_LANE1_F, UINT32_MAX);
	put(SPEEDS, IB_PESC_FEC_CORR_BLOCK_CTR_LANE11_F, 5);
	put(SPEEDS, IB_PESC_FEC_UNCORR_BLOCK_CTR_LANE0_F, 3);
	put(VL_PACKETS, IB_PC_PORT_VL_OP_PACKETS0_F, 11);
	put(VL_PACKETS, IB_PC_PORT_VL_OP_PACKETS15_F, 12);
	put(VL_DATA, IB_PC_PORT_VL_OP_DATA1_F, UINT32_MAX);
	put(VL_DATA, IB_PC_PORT_VL_OP_DATA15_F, 13);
	put(VL_WAIT, IB_PC_PORT_VL_XMIT_WAIT0_F, 14);
	put(VL_WAIT, IB_PC_PORT_VL_XMIT_WAIT15_F, 15);
	node.data[TICK][2] = 3;
	assert_int_equal(read_details(ALL), 0);
	assert_int_equal(node.written, 5);
	assert_int_equal(details.present, ALL);
	assert_int_equal(details.port, PORT);
	assert_true(details.time_us > 0);
	assert_int_equal(details.lanes[3].error_detections, 7);
	assert_int_equal(details.lanes[1].error_detections, 0);
	assert_int_equal(details.lanes[1].fec_corrected_blocks, UINT32_MAX);
	assert_int_equal(details.lanes[11].fec_corrected_blocks, 5);
	assert_int_equal(details.lanes[0].fec_uncorrectable_blocks, 3);
	assert_int_equal(details.vls[0].rcv_packets, 11);
	assert_int_equal(details.vls[15].rcv_packets, 12);
	assert_int_equal(details.vls[1].rcv_packets, 0);
	assert_true(details.vls[1].rcv_bytes == UINT64_C(4) * UINT32_MAX);
	assert_int_equal(details.vls[15].rcv_bytes, 52);
	assert_int_equal(details.vls[0].xmit_wait_ticks, 14);
	assert_int_equal(details.vls[15].xmit_wait_ticks, 15);
	assert_int_equal(details.tick, 3);
	/* a group that a node lacks is left out */
	node.status[VL_DATA] = 0x000c;
	assert_int_equal(read_details(MAD_COUNTERS_VL_DATA | MAD_COUNTERS_TICK), 0);
	assert_int_equal(details.present, MAD_COUNTERS_TICK);
	assert_int_equal(read_details(MAD_COUNTERS_VL_DATA), -EOPNOTSUPP);
	assert_int_equal(details.present, 0);
	/* what was read before an error */
	node.status[VL_DATA] = 0;
	node.status[VL_WAIT] = 0x001c;
	assert_int_equal(read_details(ALL), -EIO);
	assert_int_equal(mad_last_failure()->status, 0x1c);
	assert_int_equal(details.present,
			 MAD_COUNTERS_LANES | MAD_COUNTERS_VL_PACKETS | MAD_COUNTERS_VL_DATA);
	node.silent = VL_PACKETS;
	assert_int_equal(read_details(ALL), -ETIMEDOUT);
	assert_int_equal(details.present, MAD_COUNTERS_LANES);
}

TEST(counters_and_details_are_one_reading)
{
	put(BASIC, IB_PC_RCV_PKTS_F, 5);
	node.data[TICK][2] = 3;
	options = wants(MAD_COUNTERS_TICK);
	options.basic = true;
	options.counters = MAD_COUNTERS_TRAFFIC;
	read_with(2);
	assert_int_equal(counters.rcv_packets, 5);
	assert_int_equal(details.tick, 3);
	/* what was read before the details failed */
	node.status[TICK] = 0x001c;
	assert_int_equal(read_port(PORT), -EIO);
	assert_int_equal(counters.rcv_packets, 5);
	assert_int_equal(counters.status, 0x1c);
	assert_int_equal(details.present, 0);
	/* a reading without a group of the wanted ones has its counters */
	node.status[TICK] = 0x000c;
	read_with(2);
	options.counters = 0;
	assert_int_equal(read_port(PORT), -EOPNOTSUPP);
	assert_int_equal(counters.present, 0);
	/* a reset leaves details alone */
	assert_int_equal(mad_counters_reset(port, &to, PORT, &options), -EOPNOTSUPP);
}

TEST(details_fit_the_size_of_the_program)
{
	struct {
		struct mad_counters_details details;
		uint64_t later;
	} larger;

	options = wants(MAD_COUNTERS_LANES | MAD_COUNTERS_TICK);
	put(SPEEDS, IB_PESC_ERR_DET_CTR_LANE0_F, 7);
	memset(&larger, 0xff, sizeof(larger));
	options.details_to = &larger.details;
	options.details_size = offsetof(struct mad_counters_details, lanes);
	assert_int_equal(mad_counters_read(port, &to, PORT, &options, NULL, 0), 0);
	assert_int_equal(larger.details.port, PORT);
	assert_true(larger.details.lanes[0].error_detections == UINT32_MAX);
	options.details_size = sizeof(larger);
	assert_int_equal(mad_counters_read(port, &to, PORT, &options, NULL, 0), 0);
	assert_int_equal(larger.details.lanes[0].error_detections, 7);
	assert_true(larger.later == 0);
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

/* --- on an engine ---------------------------------------------------------------- */

struct result {
	int calls, error;
	struct mad_counters counters;
};

static struct mad_async *async;
static struct result results[PORTS];
static uint64_t readings[PORTS];

static void came(struct mad_async *engine, int error, const struct mad_counters *read,
		 void *arg)
{
	struct result *result = arg;

	(void)engine;
	result->calls++;
	result->error = error;
	result->counters = *read;
	if (error)
		assert_int_equal(mad_last_failure()->error, error);
}

static void end(void)
{
	mad_async_free(async);
	mad_counters_node_free(options.node);
}

static void begin(void)
{
	options = (struct mad_counters_options){.node = mad_counters_node_create()};
	async = mad_async_create(port);
	memset(results, 0, sizeof(results));
}

static int async_setup(void)
{
	int error = setup();

	begin();
	return error;
}

static int async_teardown(void)
{
	machine_fail(MACHINE_MALLOC, 0, 0);
	end();
	return teardown();
}

#define ASYNC_TEST(name) TEST_WITH(name, async_setup, async_teardown)

static void without_node(void)
{
	mad_counters_node_free(options.node);
	options.node = NULL;
}

/* The first ports of a switch at once. */
static void submit(unsigned count)
{
	memset(results, 0, sizeof(results));
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(mad_counters_submit(async, &to, i + 1, &options, came,
						     &results[i], &readings[i]),
				 0);
}

static void expect(unsigned first, unsigned last, int error)
{
	for (; first <= last; first++) {
		assert_int_equal(results[first].calls, 1);
		assert_int_equal(results[first].error, error);
	}
}

static void read_all(int error)
{
	submit(PORTS);
	mad_async_wait(async, -1);
	expect(0, PORTS - 1, error);
}

/* A little time passes, so that packets arrive. */
static void step(void)
{
	machine_pass(1);
	assert_true(mad_async_process(async) >= 0);
}

ASYNC_TEST(a_switch_of_64_ports_takes_65_requests)
{
	node.capabilities = MAD_PMA_EXTENDED_WIDTH | MAD_PMA_XMIT_WAIT;
	node.capabilities2 = MAD_PMA2_ADDITIONAL_EXTENDED;
	put(EXTENDED, IB_PC_EXT_RCV_PKTS_F, 5);
	submit(PORTS);
	/* the creator may free the node while readings use it */
	without_node();
	assert_int_equal(mad_async_wait(async, -1), 1 + PORTS);
	assert_int_equal(node.written, 1 + PORTS);
	expect(0, PORTS - 1, 0);
	for (unsigned i = 0; i < PORTS; i++) {
		assert_int_equal(results[i].counters.rcv_packets, 5);
		assert_int_equal(results[i].counters.port, i + 1);
		assert_int_equal(results[i].counters.odd, 0);
		assert_int_equal(results[i].counters.requests, i ? 1 : 2);
	}
	/* without a node, each reading asks for ClassPortInfo */
	node.written = 0;
	node.capabilities = node.capabilities2 = 0;
	read_all(0);
	assert_int_equal(node.written, 2 * PORTS);
	assert_true(results[PORTS - 1].counters.present == BASIC_COUNTERS);
}

ASYNC_TEST(a_silent_switch_costs_one_request_for_all_ports)
{
	node.silent = CLASS_PORT_INFO;
	mad_rpc_set_retries(port, 1);
	read_all(-ETIMEDOUT);
	assert_int_equal(node.written, 1);
	/* the next reading sends a request again: all get the status */
	node.silent = 0;
	node.status[CLASS_PORT_INFO] = 0x001c;
	read_all(-EIO);
	assert_int_equal(node.written, 2);
	for (unsigned i = 0; i < PORTS; i++)
		assert_int_equal(results[i].counters.status, 0x1c);
	node.status[CLASS_PORT_INFO] = 0;
	read_all(0);
	assert_int_equal(node.written, 3 + PORTS);
}

ASYNC_TEST(what_was_refused_or_not_submitted_before)
{
	struct result refused = {0};
	int error = -ENOMEM;

	options.counters = MAD_COUNTERS_ALL;
	options.basic = true;
	node.status[RCV_DETAILS] = 0x000c;
	read_with(4);
	options.basic = false;
	read_all(0);
	assert_int_equal(node.count[CLASS_PORT_INFO], 1);
	assert_int_equal(node.count[RCV_DETAILS], 1);
	/* readings do not wait for a request that was not submitted */
	end();
	begin();
	node.written = 0;
	for (unsigned n = 1; error; n++) {
		machine_fail(MACHINE_MALLOC, n, ENOMEM);
		error = mad_counters_submit(async, &to, 1, &options, came, &refused, NULL);
		assert_true(!error || error == -ENOMEM);
	}
	machine_fail(MACHINE_MALLOC, 0, 0);
	read_all(0);
	assert_int_equal(node.written, 1 + 1 + PORTS);
	assert_int_equal(refused.calls, 1);
}

ASYNC_TEST(the_end_of_an_engine_ends_readings_that_wait)
{
	node.hold = true;
	submit(PORTS);
	mad_async_free(async);
	expect(0, PORTS - 1, -ECANCELED);
	/* and the node serves the next engine */
	node.hold = false;
	async = mad_async_create(port);
	read_all(0);
}

ASYNC_TEST(two_engines_and_a_blocking_call_share_a_node)
{
	struct mad_async *second = mad_async_create(port);

	node.hold = true;
	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 8);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(mad_counters_submit(i % 2 ? second : async, &to, i + 1,
						     &options, came, &results[i], NULL),
				 0);
	/* an engine does not wait for another engine, whose callbacks run in its own thread */
	while (node.held_count < 3)
		step();
	release_held();
	mad_async_wait(second, -1);
	assert_int_equal(results[1].calls, 1);
	assert_int_equal(results[3].calls, 1);
	read_with(1);
	mad_async_wait(async, -1);
	expect(0, 3, 0);
	mad_async_free(second);
}

#define THREADS 6
#define ROUNDS  30

/* Each thread has an engine, and makes blocking calls, too. */
static void *read_often(void *arg)
{
	struct mad_async *own = mad_async_create(port);
	struct result *four = arg;
	struct mad_counters read;

	for (int i = 0; i < ROUNDS; i++) {
		for (unsigned k = 0; k < 4; k++)
			mad_counters_submit(own, &to, k + 1, &options, came, &four[k], NULL);
		if (mad_counters_read(port, &to, PORT, &options, &read, sizeof(read)))
			four[0].error = -EPROTO;
		mad_async_wait(own, -1);
	}
	mad_async_free(own);
	for (unsigned k = 0; k < 4; k++)
		if (four[k].calls != ROUNDS || four[k].error)
			return NULL;
	return arg;
}

/* Submits readings on the shared engine. */
static void *submit_four(void *arg)
{
	struct result *four = arg;
	int error = 0;

	for (unsigned k = 0; k < 4; k++)
		error |= mad_counters_submit(async, &to, k + 1, &options, came, &four[k], NULL);
	return error ? NULL : arg;
}

static void in_threads(void *run(void *), unsigned count)
{
	pthread_t threads[THREADS];
	void *ok;

	for (unsigned i = 0; i < count; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run, &results[4 * i]), 0);
	if (run == submit_four)
		mad_async_wait(async, -1);
	for (unsigned i = 0; i < count; i++) {
		pthread_join(threads[i], &ok);
		assert_non_null(ok);
	}
	mad_async_wait(async, -1);
}

ASYNC_TEST(threads_share_an_engine_and_a_node)
{
	node.capabilities = MAD_PMA_EXTENDED_WIDTH;
	in_threads(read_often, THREADS);
	for (int round = 0; round < ROUNDS; round++) {
		end();
		begin();
		in_threads(submit_four, THREADS);
		expect(0, 4 * THREADS - 1, 0);
	}
}

/* A new node; the first reading asks for ClassPortInfo, the others wait. */
static void begin_few(void)
{
	end();
	begin();
	node.hold = true;
	node.held_count = 0;
	node.count[CLASS_PORT_INFO] = 0;
	submit(FEW);
	while (!node.count[CLASS_PORT_INFO])
		step();
	assert_int_equal(node.count[CLASS_PORT_INFO], 1);
}

static void process_until_called(unsigned reading)
{
	while (!results[reading].calls)
		step();
}

ASYNC_TEST(a_reading_can_be_cancelled)
{
	const unsigned silent[] = {CLASS_PORT_INFO, EXTENDED, BASIC};

	without_node();
	node.capabilities = MAD_PMA_EXTENDED_WIDTH;
	for (unsigned i = 0; i < 3; i++) {
		node.silent = silent[i];
		node.count[silent[i]] = 0;
		submit(1);
		while (!node.count[silent[i]])
			step();
		assert_int_equal(mad_async_cancel(async, readings[0]), 0);
		assert_int_equal(mad_async_cancel(async, readings[0]), -ENOENT);
		assert_int_equal(results[0].calls, 0);
		assert_int_equal(mad_async_wait(async, -1), 1);
		expect(0, 0, -ECANCELED);
		/* what was read before */
		assert_true(results[0].counters.present == (i == 2 ? 0xff : 0));
	}
	/* its response is there, but was not handled: no status */
	node.status[CLASS_PORT_INFO] = 0x001c;
	node.silent = 0;
	submit(1);
	machine_pass(1000);
	mad_async_cancel(async, readings[0]);
	mad_async_wait(async, -1);
	expect(0, 0, -ECANCELED);
	assert_int_equal(results[0].counters.status, 0);
}

ASYNC_TEST(details_are_read_and_cancelled_on_an_engine)
{
	without_node();
	options = wants(ALL);
	submit(1);
	mad_async_wait(async, -1);
	expect(0, 0, 0);
	assert_int_equal(results[0].counters.present, 0);
	assert_int_equal(results[0].counters.requests, 5);
	assert_int_equal(details.present, ALL);
	node.silent = VL_PACKETS;
	node.count[VL_PACKETS] = 0;
	options.counters = MAD_COUNTERS_DEFAULT;
	submit(1);
	while (!node.count[VL_PACKETS])
		step();
	assert_int_equal(mad_async_cancel(async, readings[0]), 0);
	mad_async_wait(async, -1);
	expect(0, 0, -ECANCELED);
	assert_true(results[0].counters.present == BASIC_COUNTERS);
	assert_int_equal(details.present, MAD_COUNTERS_LANES);
	options.node = NULL;
}

ASYNC_TEST(readings_that_wait_are_cancelled_alone)
{
	/* one that waits, and the one that asks: the next one asks for the others, too */
	for (unsigned cancelled = 0; cancelled < FEW; cancelled++) {
		begin_few();
		mad_async_cancel(async, readings[cancelled]);
		process_until_called(cancelled);
		for (unsigned i = 0; i < FEW; i++)
			assert_int_equal(results[i].calls, i == cancelled);
		release_held();
		mad_async_wait(async, -1);
		for (unsigned i = 0; i < FEW; i++)
			expect(i, i, i == cancelled ? -ECANCELED : 0);
		assert_int_equal(node.count[CLASS_PORT_INFO], cancelled ? 1 : 2);
	}
	begin_few();
	for (unsigned i = 0; i < FEW; i++)
		mad_async_cancel(async, readings[i]);
	mad_async_wait(async, -1);
	expect(0, FEW - 1, -ECANCELED);
	/* nothing waits for a request that was cancelled */
	begin_few();
	mad_async_cancel(async, readings[0]);
	mad_async_cancel(async, MAD_ASYNC_ALL);
	mad_async_wait(async, -1);
	expect(0, FEW - 1, -ECANCELED);
	node.hold = false;
	without_node();
	read_with(2);
}

/* The request that is cancelled is that of a reading that is, too, and others wait for it. */
ASYNC_TEST(a_reading_that_begins_after_all_were_cancelled_has_its_counters)
{
	begin_few();
	mad_async_cancel(async, MAD_ASYNC_ALL);
	node.hold = false;
	for (unsigned i = FEW; i < FEW + 2; i++)
		assert_int_equal(mad_counters_submit(async, &to, i + 1, &options, came,
						     &results[i], &readings[i]),
				 0);
	mad_async_wait(async, -1);
	expect(0, FEW - 1, -ECANCELED);
	expect(FEW, FEW + 1, 0);
	/* none for the readings that were cancelled */
	assert_int_equal(node.count[CLASS_PORT_INFO], 2);
}

static unsigned again, refusals;

static void read_again(struct mad_async *engine, int error, const struct mad_counters *read,
		       void *arg)
{
	(void)error, (void)read;
	if (again++ < 100 &&
	    mad_counters_submit(engine, &to, 1, &options, read_again, arg, NULL))
		refusals++;
}

ASYNC_TEST(a_reading_on_a_closed_port_is_refused)
{
	again = refusals = 0;
	node.hold = true;
	for (int i = 0; i < 3; i++)
		assert_int_equal(
			mad_counters_submit(async, &to, 1, &options, read_again, NULL, NULL),
			0);
	mad_rpc_close_port(port);
	port = NULL;
	mad_async_process(async);
	assert_int_equal(again, 3);
	assert_int_equal(refusals, 3);
}

static void cancel_others(struct mad_async *engine, int error, const struct mad_counters *read,
			  void *arg)
{
	came(engine, error, read, arg);
	for (unsigned i = 0; i < FEW; i++)
		if (arg != &results[i] && !results[i].calls)
			mad_async_cancel(engine, readings[i]);
}

/* Those that have the response, but were not called back, and the one that asked. */
ASYNC_TEST(a_callback_can_cancel_readings_that_waited)
{
	node.silent = CLASS_PORT_INFO;
	mad_rpc_set_retries(port, 1);
	for (unsigned i = 0; i < FEW; i++)
		assert_int_equal(mad_counters_submit(async, &to, i + 1, &options, cancel_others,
						     &results[i], &readings[i]),
				 0);
	mad_async_wait(async, -1);
	/* the first that waited */
	expect(1, 1, -ETIMEDOUT);
	expect(0, 0, -ECANCELED);
	expect(2, 3, -ECANCELED);
}

/* Submits readings until the next request needs memory, which it does not get. */
static void use_up_requests(struct result *result)
{
	const struct mad_counters_options basic = {.basic = true};
	int error;

	do {
		machine_fail(MACHINE_MALLOC, 2, ENOMEM);
		error = mad_counters_submit(async, &to, PORT, &basic, came, result, NULL);
	} while (!error);
	assert_int_equal(error, -ENOMEM);
	machine_fail(MACHINE_MALLOC, 1, ENOMEM);
}

/* Such a reading ends with the response that it waits for. */
ASYNC_TEST(a_reading_is_cancelled_without_memory)
{
	for (unsigned cancel = 0; cancel < 2; cancel++) {
		struct result result = {0};

		begin_few();
		use_up_requests(&result);
		mad_async_cancel(async, readings[cancel]);
		machine_fail(MACHINE_MALLOC, 0, 0);
		assert_int_equal(node.count[CLASS_PORT_INFO], 1);
		release_held();
		mad_async_wait(async, -1);
		for (unsigned i = 0; i < FEW; i++)
			expect(i, i, i == cancel ? -ECANCELED : 0);
		assert_true(result.calls > 0);
	}
}

static void *cancel_from_a_thread(void *arg)
{
	for (unsigned i = 0; i < FEW; i++)
		if (mad_async_cancel(async, readings[i]))
			return NULL;
	return arg;
}

/* The first reading asks, the others wait: no thread processes the engine meanwhile. */
ASYNC_TEST(another_thread_cancels_readings)
{
	pthread_t thread;
	void *ok;

	begin_few();
	assert_int_equal(pthread_create(&thread, NULL, cancel_from_a_thread, results), 0);
	pthread_join(thread, &ok);
	assert_non_null(ok);
	for (unsigned i = 0; i < FEW; i++)
		assert_int_equal(results[i].calls, 0);
	mad_async_wait(async, -1);
	expect(0, FEW - 1, -ECANCELED);
	for (unsigned i = 0; i < FEW; i++)
		assert_int_equal(mad_async_cancel(async, readings[i]), -ENOENT);
}

ASYNC_TEST(a_reading_is_cancelled_before_its_request_is_sent)
{
	without_node();
	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 1);
	node.hold = true;
	submit(2);
	step();
	assert_int_equal(node.written, 1);
	assert_int_equal(mad_async_cancel(async, readings[1]), 0);
	process_until_called(1);
	expect(1, 1, -ECANCELED);
	assert_int_equal(node.written, 1);
	release_held();
	mad_async_wait(async, -1);
	expect(0, 0, 0);
	assert_int_equal(node.count[CLASS_PORT_INFO], 1);
}

static void cancel_itself(struct mad_async *engine, int error, const struct mad_counters *read,
			  void *arg)
{
	came(engine, error, read, arg);
	assert_int_equal(mad_async_cancel(engine, readings[0]), -ENOENT);
}

ASYNC_TEST(a_reading_is_complete_in_its_callback)
{
	assert_int_equal(mad_counters_submit(async, &to, PORT, &options, cancel_itself,
					     &results[0], &readings[0]),
			 0);
	machine_pass(1000);
	/* no callback comes within the call */
	assert_int_equal(results[0].calls, 0);
	mad_async_wait(async, -1);
	expect(0, 0, 0);
}

static void *cancel_all_often(void *arg)
{
	for (int i = 0; i < 10 * ROUNDS; i++) {
		mad_async_cancel(async, MAD_ASYNC_ALL);
		machine_pass(i % 7);
	}
	return arg;
}

ASYNC_TEST(readings_begin_while_another_thread_cancels_all)
{
	pthread_t canceller;

	machine_rule("hop-latency 1us");
	assert_int_equal(pthread_create(&canceller, NULL, cancel_all_often, NULL), 0);
	for (int round = 0; round < ROUNDS; round++) {
		memset(results, 0, sizeof(results));
		in_threads(submit_four, 1);
		for (unsigned i = 0; i < 4; i++) {
			assert_int_equal(results[i].calls, 1);
			assert_true(!results[i].error || results[i].error == -ECANCELED);
		}
	}
	pthread_join(canceller, NULL);
}

/* --- arguments ------------------------------------------------------------------- */

ASYNC_TEST(what_cannot_be_begun_is_refused_and_not_called_back)
{
	struct mad_counters_options wrong[] = {
		{.reserved = {1}},       {.reserved = {0, 1}},
		{.reserved = {0, 0, 1}}, {.reserved = {0, 0, 0, 1}},
		{.timeout_ms = -1},      {.counters = BIT(COUNT)},
		{.details = 1},
	};
	ib_portid_t nowhere = {.lid = 0}, route = {.lid = -1};
	struct result result = {0};

	without_node();
	assert_int_equal(mad_counters_read(NULL, &to, 1, NULL, &counters, sizeof(counters)),
			 -EINVAL);
	assert_int_equal(mad_counters_read(port, NULL, 1, NULL, &counters, sizeof(counters)),
			 -EINVAL);
	assert_int_equal(
		mad_counters_read(port, &nowhere, 1, NULL, &counters, sizeof(counters)),
		-EINVAL);
	assert_int_equal(mad_counters_read(port, &route, 1, NULL, &counters, sizeof(counters)),
			 -EINVAL);
	assert_int_equal(read_port(256), -EINVAL);
	assert_int_equal(stored(mad_counters_read(port, &to, 1, NULL, NULL, 0)), -EINVAL);
	assert_int_equal(read_details(32), -EINVAL);
	assert_int_equal(details.present, 0);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		options = wrong[i];
		assert_int_equal(read_port(1), -EINVAL);
		assert_int_equal(mad_counters_reset(port, &to, 1, &options), -EINVAL);
		assert_int_equal(
			mad_counters_submit(async, &to, 1, &options, came, &result, NULL),
			-EINVAL);
	}
	assert_int_equal(stored(mad_counters_reset(NULL, &to, 1, NULL)), -EINVAL);
	assert_int_equal(mad_counters_reset(port, &route, 1, NULL), -EINVAL);
	assert_int_equal(mad_counters_submit(NULL, &to, 1, NULL, came, &result, NULL), -EINVAL);
	assert_int_equal(mad_counters_submit(async, &to, 1, NULL, NULL, &result, NULL),
			 -EINVAL);
	assert_int_equal(mad_counters_submit(async, NULL, 1, NULL, came, &result, NULL),
			 -EINVAL);
	assert_int_equal(mad_counters_submit(async, &to, 300, NULL, came, &result, NULL),
			 -EINVAL);
	assert_int_equal(node.written, 0);
	options = (struct mad_counters_options){.node = mad_counters_node_create()};
	read_with(2);
	assert_int_equal(mad_counters_submit(async, &to, MAD_COUNTERS_ALL_PORTS, &options, came,
					     &result, NULL),
			 -EOPNOTSUPP);
	assert_int_equal(result.calls, 0);
}

ASYNC_TEST(readings_without_memory)
{
	struct mad_counters_options wanted = wants(1);
	struct result result = {0};

	for (unsigned n = 1; n < 3; n++) {
		machine_fail(MACHINE_MALLOC, n, ENOMEM);
		assert_int_equal(mad_counters_submit(async, &to, 1, NULL, came, &result, NULL),
				 -ENOMEM);
		machine_fail(MACHINE_MALLOC, n, ENOMEM);
		assert_int_equal(
			mad_counters_submit(async, &to, 1, &wanted, came, &result, NULL),
			-ENOMEM);
	}
	machine_fail(MACHINE_MALLOC, 1, ENOMEM);
	assert_null(mad_counters_node_create());
	/* the counters of a second response need memory */
	node.capabilities = MAD_PMA_EXTENDED_WIDTH;
	assert_int_equal(mad_counters_submit(async, &to, 1, NULL, came, &result, NULL), 0);
	while (!node.count[EXTENDED]) {
		assert_true(mad_async_process(async) >= 0);
		machine_pass(1000);
	}
	machine_fail(MACHINE_MALLOC, 1, ENOMEM);
	mad_async_wait(async, -1);
	assert_int_equal(result.calls, 1);
	assert_int_equal(result.error, -ENOMEM);
	assert_true(result.counters.present == 0xff);
}
