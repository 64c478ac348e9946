/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Counters of a port: the requests of a reading, the results from the responses, the details;
 * readings on an engine, which share ClassPortInfo and are cancelled.
 */

#include "children.h"
#include "machine.h"
#include "test.h"

#include <infiniband/mad.h>
#include <infiniband/mad_counters.h>
#include <infiniband/mad_errors.h>
#include <infiniband/mad_fields.h>
#include <infiniband/mad_link.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#define NODE  "n1"
#define PORT  3
#define PORTS 64

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
#define ALL_DETAILS    31

/* The agent of the node: its capabilities, the attributes that it rejects, its counters. */
static struct {
	unsigned capabilities, capabilities2;
	uint16_t status[256]; /* by attribute */
	uint8_t data[256][IB_PC_DATA_SZ];
	uint8_t other_port;           /* the PortSelect of responses, if it is not 0 */
	unsigned silent;              /* the attribute without a response; or 0 */
	unsigned count[256], written; /* requests by attribute, and all */
	uint8_t latest[MACHINE_MAD];
} node;

struct result {
	int calls, error;
	bool is_cancelled;
	struct mad_counters counters;
};

static struct ibmad_port *port;
static ib_portid_t to;
static struct mad_counters counters;
static struct mad_counters_details details;
static struct mad_counters_options options;
static struct mad_async *async;
static struct result results[PORTS];
static uint64_t readings[PORTS];

static enum machine_verdict pma_arrived(struct machine_mad *mad, void *arg)
{
	uint8_t data[IB_PC_DATA_SZ], attribute = mad->bytes[17];

	(void)arg;
	if (mad->at_host || mad->bytes[1] != IB_PERFORMANCE_CLASS)
		return MACHINE_PASS;
	memcpy(node.latest, mad->bytes, MACHINE_MAD);
	node.written++;
	node.count[attribute]++;
	if (attribute == node.silent && node.silent)
		return MACHINE_DROP;
	memcpy(data, node.data[attribute], sizeof(data));
	if (attribute == CLASS_PORT_INFO) {
		mad_set_field(data, 0, IB_CPI_CAPMASK_F, node.capabilities);
		mad_set_field(data, 0, IB_CPI_CAPMASK2_F, node.capabilities2);
	} else {
		data[1] = node.other_port ? node.other_port : mad->bytes[65];
	}
	return machine_reply(mad, node.status[attribute], IB_PC_DATA_OFFS, data, sizeof(data));
}

static void put(unsigned attribute, enum MAD_FIELDS field, uint64_t value)
{
	if (mad_field_info(field)->bits > 32)
		mad_set_field64(node.data[attribute], 0, field, value);
	else
		mad_set_field(node.data[attribute], 0, field, (uint32_t)value);
}

/* Options, which have a new node if they share one. */
static void use(struct mad_counters_options wanted)
{
	mad_counters_node_free(options.node);
	options = wanted;
	options.details_to = &details;
	options.details_size = sizeof(details);
}

static void share_node(void)
{
	use((struct mad_counters_options){.node = mad_counters_node_create()});
}

static int setup(void)
{
	int classes[] = {IB_PERFORMANCE_CLASS};

	memset(&node, 0, sizeof(node));
	memset(results, 0, sizeof(results));
	use((struct mad_counters_options){0});
	machine_setup();
	machine_on_arrival(pma_arrived, NULL);
	to = (ib_portid_t){.lid = machine_lid(NODE)};
	port = mad_rpc_open_port(NULL, 0, classes, 1);
	mad_rpc_set_retries(port, 1);
	async = mad_async_create(port);
	return async ? 0 : -1;
}

static int teardown(void)
{
	machine_fail(MACHINE_MALLOC, 0, 0);
	mad_async_free(async);
	use((struct mad_counters_options){0});
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

/* --- what is requested, and the numbers ------------------------------------------- */

#define WIDE (MAD_PMA_EXTENDED_WIDTH | MAD_PMA_XMIT_WAIT | MAD_PMA_QP1_DROPPED)

/* Requests of a reading, and the last one of a reset. */
static const struct selection {
	const char *behaviour;
	uint64_t counters;
	unsigned capabilities, capabilities2;
	unsigned requests, attribute; /* the last one of these */
	uint64_t present, extended;
	/* CounterSelect, and CounterSelect2 or the one of 64 bits, of a reset */
	uint64_t select, select2;
	size_t select2_at, select2_size;
} selections[] = {
	{"plain", 0, 0, 0, 2, BASIC, BASIC_COUNTERS, 0, 0xffff, 0, 82, 1},
	{"extended", 0, WIDE, 0, 3, BASIC, MAD_COUNTERS_DEFAULT, 0xff, 0x0fff, 3, 82, 1},
	{"extended_without_unicast", 0, MAD_PMA_EXTENDED_WIDTH_NO_IETF, 0, 3, BASIC,
	 BASIC_COUNTERS, 0x0f, 0x0fff, 0, 82, 1},
	{"all_extended", 0, WIDE, MAD_PMA2_ADDITIONAL_EXTENDED, 2, EXTENDED,
	 MAD_COUNTERS_DEFAULT, MAD_COUNTERS_DEFAULT, 0x00ff, 0x3fff, 70, 2},
	{"one_extended", BIT(RCV_PACKETS), WIDE, 0, 2, EXTENDED, BIT(RCV_PACKETS),
	 BIT(RCV_PACKETS), 0x0008, 0, 70, 2},
	{"xmit_details", MAD_COUNTERS_XMIT_DISCARD_DETAILS, 0, 0, 2, XMIT_DETAILS,
	 MAD_COUNTERS_XMIT_DISCARD_DETAILS, 0, 0x000f, 0, 0, 0},
	{"rcv_details", MAD_COUNTERS_RCV_ERROR_DETAILS, 0, 0, 2, RCV_DETAILS,
	 MAD_COUNTERS_RCV_ERROR_DETAILS, 0, 0x003f, 0, 0, 0},
	{"lanes", MAD_COUNTERS_EXTENDED_SPEEDS, MAD_PMA_RSFEC_COUNTERS, 0, 2, SPEEDS,
	 MAD_COUNTERS_EXTENDED_SPEEDS, 0, 0, 0x1ffffffffff, 72, 8},
	{"error_detections", BIT(ERROR_DETECTIONS), 0, 0, 2, SPEEDS, BIT(ERROR_DETECTIONS), 0,
	 0, 0x3ffc, 72, 8},
	{"everything", MAD_COUNTERS_ALL, WIDE, 0, 6, SPEEDS,
	 MAD_COUNTERS_ALL & ~BIT(FEC_CORRECTED_SYMBOLS), 0xff, 0, 0xffffffffff, 72, 8},
};

/* The port's counters of Reed-Solomon FEC, which are 0 unless it is active. */
static const enum MAD_FIELDS rsfec_fields[] = {IB_PESC_PORT_FEC_CORR_BLOCK_CTR_F,
					       IB_PESC_PORT_FEC_UNCORR_BLOCK_CTR_F,
					       IB_PESC_PORT_FEC_CORR_SYMBOL_CTR_F};

static bool has_rsfec(void)
{
	for (unsigned i = 0; i < 3; i++)
		if (mad_read_field(node.data[SPEEDS], 0, rsfec_fields[i]))
			return true;
	return false;
}

/* Attributes of random bytes, many of them with all bits. */
static void fill_attributes(void)
{
	uint8_t *bytes = node.data[0];

	for (size_t i = 0; i < sizeof(node.data); i++)
		bytes[i] = random() % 4 ? 0xff : (uint8_t)random();
	for (unsigned i = 0; i < 3; i++)
		if (random() % 4)
			put(SPEEDS, rsfec_fields[i], 0);
}

/* Reads a counter by the names of its fields. */
static void expect_counter(struct mad_counters *expected, unsigned counter, bool extended)
{
	const struct mad_counter_info *info = mad_counters_info(counter);
	unsigned bits = extended ? info->extended_bits : info->bits;
	unsigned lanes = extended ? 1 : info->fields;
	uint64_t bit = MAD_COUNTER_BIT(counter), *sum = &expected->xmit_bytes + counter;
	unsigned attribute = extended                                  ? EXTENDED
			     : bit & MAD_COUNTERS_RCV_ERROR_DETAILS    ? RCV_DETAILS
			     : bit & MAD_COUNTERS_XMIT_DISCARD_DETAILS ? XMIT_DETAILS
			     : bit & MAD_COUNTERS_EXTENDED_SPEEDS      ? SPEEDS
								       : BASIC;
	const uint8_t *data = node.data[attribute];
	enum MAD_FIELDS field;
	char name[100];

	snprintf(name, sizeof(name), "%s.%s",
		 extended ? "PortCountersExtended" : info->attribute, info->field);
	field = mad_field_by_name(name);
	assert_int_equal(mad_field_info(field)->bits, bits);
	if (lanes > 1 && bits == 32 && has_rsfec()) { /* the lanes count symbols then */
		field = rsfec_fields[counter - MAD_COUNTER_FEC_CORRECTED_BLOCKS];
		lanes = 1;
	}
	for (unsigned lane = 0; lane < lanes; lane++) {
		uint64_t number = mad_read_field(data, 0, field + lane);

		if (field == IB_PC_QP1_DROP_F) /* rdma-core gives it the place of VL15Dropped */
			number = (uint64_t)data[20] << 8 | data[21];
		*sum += number;
		if (number == UINT64_MAX >> (64 - bits))
			expected->at_maximum |= bit;
	}
	/* all ones, or more bytes than 64 bits have room for */
	if (extended && (*sum == UINT64_MAX || *sum > UINT64_MAX / info->multiplier)) {
		expected->odd_values |= bit;
		*sum = UINT64_MAX;
	} else {
		*sum *= info->multiplier;
	}
}

static void read_random_numbers(const struct selection *selection)
{
	struct mad_counters expected = {0};

	fill_attributes();
	for (unsigned i = 0; i < MAD_COUNTER_COUNT; i++)
		if (selection->present >> i & 1)
			expect_counter(&expected, i, selection->extended >> i & 1);
	read_with(selection->requests);
	assert_memory_equal(&counters.xmit_bytes, &expected.xmit_bytes,
			    MAD_COUNTER_COUNT * sizeof(uint64_t));
	assert_true(counters.present == selection->present);
	assert_true(counters.extended == selection->extended);
	assert_true(counters.at_maximum == expected.at_maximum);
	assert_true(counters.odd_values == expected.odd_values);
	assert_int_equal(counters.odd, expected.odd_values ? MAD_COUNTERS_ODD_VALUE : 0);
	assert_int_equal(counters.capability_mask, selection->capabilities);
	assert_int_equal(counters.capability_mask2, selection->capabilities2);
}

static uint64_t field_of_latest(size_t offset, size_t bytes)
{
	uint64_t value = 0;

	while (bytes--)
		value = value << 8 | node.latest[offset++];
	return value;
}

static void select_counters(const void *row)
{
	const struct selection *selection = row;

	srandom(test_seed());
	node.capabilities = selection->capabilities;
	node.capabilities2 = selection->capabilities2;
	options.counters = selection->counters;
	for (int i = 0; i < 50; i++)
		read_random_numbers(selection);
	assert_int_equal(field_of_latest(0, 4), 0x01040101);
	assert_int_equal(field_of_latest(64, 2), PORT);
	assert_int_equal(node.latest[17], selection->attribute);
	assert_int_equal(mad_counters_reset(port, &to, PORT, &options), 0);
	assert_int_equal(field_of_latest(0, 4), 0x01040102);
	assert_int_equal(node.latest[17], selection->attribute);
	assert_int_equal(node.latest[65], PORT);
	assert_true(field_of_latest(66, 2) == selection->select);
	assert_true(field_of_latest(selection->select2_at, selection->select2_size) ==
		    selection->select2);
}

TEST_ROWS(select_counters, selections);

TEST(what_a_node_refuses_is_asked_for_once)
{
	share_node();
	options.counters = MAD_COUNTERS_ALL;
	node.capabilities = MAD_PMA_EXTENDED_WIDTH;
	node.status[EXTENDED] = node.status[SPEEDS] = 0x000c;
	node.status[RCV_DETAILS] = 0x0008;
	for (unsigned i = 0; i < 2; i++) {
		read_with(i ? 2 : 6);
		assert_int_equal(counters.odd, MAD_COUNTERS_ODD_CAPABILITY);
		assert_true(counters.present ==
			    (BASIC_COUNTERS | MAD_COUNTERS_XMIT_DISCARD_DETAILS));
	}
	assert_int_equal(node.count[CLASS_PORT_INFO], 1);
	/* without a node nothing is stored; without ClassPortInfo there are PortCounters */
	use((struct mad_counters_options){0});
	node.status[EXTENDED] = 0;
	read_with(3);
	read_with(3);
	node.status[CLASS_PORT_INFO] = 0x000c;
	read_with(2);
	assert_true(counters.present == BASIC_COUNTERS);
	node.other_port = 4;
	read_with(2);
	assert_int_equal(counters.odd, MAD_COUNTERS_ODD_PORT);
}

TEST(basic_counters_take_one_request)
{
	share_node();
	options.basic = true;
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
	share_node();
	node.capabilities = MAD_PMA_ALL_PORT_SELECT;
	assert_int_equal(read_port(MAD_COUNTERS_ALL_PORTS), 0);
	assert_int_equal(node.latest[65], 0xff);
	assert_int_equal(counters.port, 255);
}

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
	assert_int_equal(stored(mad_counters_reset(port, &to, PORT, &options)), -EOPNOTSUPP);
	node.status[RCV_DETAILS] = 0x001c;
	assert_int_equal(stored(mad_counters_reset(port, &to, PORT, &options)), -EIO);
	node.silent = CLASS_PORT_INFO;
	assert_int_equal(read_port(PORT), -ETIMEDOUT);
	assert_int_equal(counters.present, 0);
}

/* --- the structures, and the table ------------------------------------------------ */

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
	assert_int_equal(mad_counters_value(NULL, 0, &first), 0);
	assert_true(first == 0);
}

/* As in a program that was compiled with fewer members, or with more. */
TEST(a_structure_of_another_size_is_filled_in_as_far_as_it_goes)
{
	struct {
		struct mad_counters counters;
		struct mad_counters_details details;
		uint64_t later[2];
	} read;
	uint64_t time;

	put(BASIC, IB_PC_ERR_SYM_F, 3);
	put(BASIC, IB_PC_RCV_PKTS_F, 5);
	put(SPEEDS, IB_PESC_ERR_DET_CTR_LANE0_F, 7);
	options.counters = MAD_COUNTERS_DEFAULT;
	options.details = MAD_COUNTERS_LANES;
	options.details_to = &read.details;
	options.details_size = offsetof(struct mad_counters_details, lanes);
	memset(&read, 0xff, sizeof(read));
	assert_int_equal(mad_counters_read(port, &to, PORT, &options, &read.counters,
					   offsetof(struct mad_counters, symbol_errors)),
			 0);
	assert_int_equal(read.counters.size, offsetof(struct mad_counters, symbol_errors));
	assert_true(read.counters.symbol_errors == UINT64_MAX);
	assert_int_equal(mad_counters_value(&read.counters, MAD_COUNTER_RCV_PACKETS, &time), 5);
	assert_true(time == 0);
	assert_int_equal(mad_counters_value(&read.counters, MAD_COUNTER_SYMBOL_ERRORS, NULL),
			 0);
	assert_int_equal(read.details.port, PORT);
	assert_true(read.details.lanes[0].error_detections == UINT32_MAX);
	options.details_size = sizeof(read.details) + sizeof(read.later[0]);
	assert_int_equal(mad_counters_read(port, &to, PORT, &options, &read.counters,
					   sizeof(read.counters)),
			 0);
	assert_int_equal(read.details.lanes[0].error_detections, 7);
	assert_true(read.later[0] == 0 && read.later[1] == UINT64_MAX);
	options.details = 0;
	assert_int_equal(
		mad_counters_read(port, &to, PORT, &options, &read.counters, sizeof(read)), 0);
	assert_int_equal(read.counters.size, sizeof(read.counters));
	assert_int_equal(read.counters.symbol_errors, 3);
	assert_true(read.later[1] == 0);
}

PLAIN_TEST(the_table_describes_each_member)
{
	const struct mad_counter_info *info;
	unsigned i;

	for (i = 0; (info = mad_counters_info(i)); i++) {
		assert_true(info->multiplier == (strcmp(info->unit, "bytes") ? 1 : 4));
		assert_non_null(
			strstr("bytes packets ticks blocks symbols events", info->unit));
		assert_true(info->name[0] && info->description[0]);
	}
	assert_int_equal(i, MAD_COUNTER_COUNT);
	assert_int_equal(mad_counters_value(&counters, MAD_COUNTER_COUNT, NULL), 0);
}

/* --- details --------------------------------------------------------------------- */

static int read_details(unsigned groups)
{
	options.details = groups;
	memset(&details, 0xff, sizeof(details));
	node.written = 0;
	return stored(mad_counters_read(port, &to, PORT, &options, NULL, 0));
}

static void expect_nth(unsigned attribute, enum MAD_FIELDS first, unsigned number,
		       uint64_t value)
{
	assert_true(mad_read_field(node.data[attribute], 0, first + number) == value);
}

TEST(lanes_and_virtual_lanes_are_apart)
{
	machine_pass(1000);
	srandom(test_seed());
	fill_attributes();
	assert_int_equal(read_details(ALL_DETAILS), 0);
	assert_int_equal(node.written, 5);
	assert_int_equal(details.present, ALL_DETAILS);
	assert_int_equal(details.port, PORT);
	assert_true(details.time_us > 0);
	assert_int_equal(details.tick, node.data[TICK][2]);
	for (unsigned i = 0; i < MAD_COUNTERS_LANE_COUNT; i++) {
		const struct mad_lane_counters *lane = &details.lanes[i];

		expect_nth(SPEEDS, IB_PESC_ERR_DET_CTR_LANE0_F, i, lane->error_detections);
		expect_nth(SPEEDS, IB_PESC_FEC_CORR_BLOCK_CTR_LANE0_F, i,
			   lane->fec_corrected_blocks);
		expect_nth(SPEEDS, IB_PESC_FEC_UNCORR_BLOCK_CTR_LANE0_F, i,
			   lane->fec_uncorrectable_blocks);
	}
	for (unsigned i = 0; i < MAD_COUNTERS_VL_COUNT; i++) {
		const struct mad_vl_counters *vl = &details.vls[i];

		expect_nth(VL_PACKETS, IB_PC_PORT_VL_OP_PACKETS0_F, i, vl->rcv_packets);
		expect_nth(VL_DATA, IB_PC_PORT_VL_OP_DATA0_F, i, vl->rcv_bytes / 4);
		expect_nth(VL_WAIT, IB_PC_PORT_VL_XMIT_WAIT0_F, i, vl->xmit_wait_ticks);
	}
	/* a group that a node lacks is left out */
	node.status[VL_DATA] = 0x000c;
	assert_int_equal(read_details(MAD_COUNTERS_VL_DATA | MAD_COUNTERS_TICK), 0);
	assert_int_equal(details.present, MAD_COUNTERS_TICK);
	assert_int_equal(read_details(MAD_COUNTERS_VL_DATA), -EOPNOTSUPP);
	assert_int_equal(details.present, 0);
	/* what was read before an error */
	node.status[VL_DATA] = 0x001c;
	assert_int_equal(read_details(ALL_DETAILS), -EIO);
	assert_int_equal(mad_last_failure()->status, 0x1c);
	assert_int_equal(details.present, MAD_COUNTERS_LANES | MAD_COUNTERS_VL_PACKETS);
}

TEST(counters_and_details_are_one_reading)
{
	put(BASIC, IB_PC_RCV_PKTS_F, 5);
	node.data[TICK][2] = 3;
	options.details = MAD_COUNTERS_TICK;
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

/* The first ports of a switch at once. */
static void submit(unsigned count)
{
	memset(results, 0, sizeof(results));
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(mad_counters_submit(async, &to, i + 1, &options, came,
						     &results[i], &readings[i]),
				 0);
}

static void expect(unsigned count, int error)
{
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(results[i].calls, 1);
		assert_int_equal(results[i].error, error);
	}
}

static void read_all(int error)
{
	submit(PORTS);
	mad_async_wait(async, -1);
	expect(PORTS, error);
}

/* A little time passes, so that packets arrive. */
static void step(void)
{
	machine_pass(1);
	assert_true(mad_async_process(async) >= 0);
}

TEST(a_switch_of_64_ports_takes_65_requests)
{
	share_node();
	node.capabilities = MAD_PMA_EXTENDED_WIDTH | MAD_PMA_XMIT_WAIT;
	node.capabilities2 = MAD_PMA2_ADDITIONAL_EXTENDED;
	put(EXTENDED, IB_PC_EXT_RCV_PKTS_F, 5);
	submit(PORTS);
	/* the creator may free the node while readings use it */
	use((struct mad_counters_options){0});
	assert_int_equal(mad_async_wait(async, -1), 1 + PORTS);
	assert_int_equal(node.written, 1 + PORTS);
	expect(PORTS, 0);
	for (unsigned i = 0; i < PORTS; i++) {
		assert_int_equal(results[i].counters.rcv_packets, 5);
		assert_int_equal(results[i].counters.port, i + 1);
		assert_int_equal(results[i].counters.odd, 0);
		assert_int_equal(results[i].counters.requests, i ? 1 : 2);
	}
	/* without a node, each reading asks for ClassPortInfo */
	node.written = 0;
	read_all(0);
	assert_int_equal(node.written, 2 * PORTS);
}

TEST(a_silent_switch_costs_one_request_for_all_ports)
{
	share_node();
	machine_rule("hop-latency 100us");
	node.silent = CLASS_PORT_INFO;
	read_all(-ETIMEDOUT);
	assert_int_equal(node.written, 1);
	/* the request goes on if the reading that began it is cancelled */
	node.silent = 0;
	submit(PORTS);
	while (node.written < 2)
		step();
	mad_async_cancel(async, readings[0]);
	mad_async_wait(async, -1);
	assert_int_equal(results[0].error, -ECANCELED);
	for (unsigned i = 1; i < PORTS; i++)
		assert_int_equal(results[i].error, 0);
	assert_int_equal(node.count[CLASS_PORT_INFO], 2);
	/* the end of an engine ends readings that wait, and the node serves the next engine */
	share_node();
	submit(PORTS);
	mad_async_free(async);
	expect(PORTS, -ECANCELED);
	async = mad_async_create(port);
	read_all(0);
}

TEST(a_reading_is_cancelled_between_any_two_of_its_responses)
{
	static const struct {
		unsigned silent, present, details;
	} stages[] = {{CLASS_PORT_INFO, 0, 0},
		      {EXTENDED, 0, 0},
		      {BASIC, 0xff, 0},
		      {VL_PACKETS, 0xff | BASIC_COUNTERS, MAD_COUNTERS_LANES}};

	node.capabilities = MAD_PMA_EXTENDED_WIDTH;
	options.counters = MAD_COUNTERS_DEFAULT;
	options.details = ALL_DETAILS;
	for (unsigned i = 0; i < 4; i++) {
		node.silent = stages[i].silent;
		node.count[node.silent] = 0;
		submit(1);
		while (!node.count[node.silent])
			step();
		assert_int_equal(mad_async_cancel(async, readings[0]), 0);
		assert_int_equal(mad_async_cancel(async, readings[0]), -ENOENT);
		assert_int_equal(results[0].calls, 0);
		assert_int_equal(mad_async_wait(async, -1), 1);
		expect(1, -ECANCELED);
		assert_true(results[0].counters.present == stages[i].present);
		assert_int_equal(details.present, stages[i].details);
	}
	node.silent = 0;
	read_all(0);
	assert_int_equal(results[0].counters.requests, 8);
	assert_int_equal(details.present, ALL_DETAILS);
}

static unsigned submitted;

/* Of a reading that has ended, only -ENOENT; of another, the cancel is its error. */
static void cancel(unsigned reading)
{
	struct result *result = &results[reading];
	int expected = result->calls || result->is_cancelled ? -ENOENT : 0;

	result->is_cancelled |= !expected;
	assert_int_equal(mad_async_cancel(async, readings[reading]), expected);
}

static void cancel_all(void)
{
	for (unsigned i = 0; i < submitted; i++)
		results[i].is_cancelled |= !results[i].calls;
	assert_int_equal(mad_async_cancel(async, MAD_ASYNC_ALL), 0);
}

/* A callback cancels some of the others. */
static void came_and_cancels(struct mad_async *engine, int error,
			     const struct mad_counters *read, void *arg)
{
	came(engine, error, read, arg);
	if (random() % 4)
		return;
	for (unsigned i = 0; i < submitted; i++)
		if (random() % 2)
			cancel(i);
}

static void submit_another(void)
{
	struct result *result = &results[submitted];
	int error;

	if (submitted == PORTS)
		return;
	*result = (struct result){0};
	error = mad_counters_submit(async, &to, submitted + 1, &options, came_and_cancels,
				    result, &readings[submitted]);
	assert_true(!error || error == -ENOMEM);
	submitted += !error;
}

/*
 * Readings of one node begin, wait for the ClassPortInfo of another, are cancelled, and have no
 * memory. Each ends once: cancelled if a cancel succeeded, otherwise as the node responds.
 */
TEST(readings_that_are_cancelled_at_random_end_once)
{
	srandom(test_seed());
	machine_rule("hop-latency 100us");
	for (int round = 0; round < 500; round++) {
		bool lacks_memory = random() % 2, is_refused = !(random() % 4);

		share_node();
		mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, random() % 2 ? 1 : 8);
		node.status[CLASS_PORT_INFO] = is_refused ? 0x1c : 0;
		submitted = 0;
		for (long steps = random() % 40; steps; steps--) {
			if (lacks_memory && random() % 2)
				machine_fail(MACHINE_MALLOC, 1 + (unsigned)random() % 2,
					     ENOMEM);
			switch (random() % 9) {
			case 0:
				cancel_all();
				break;
			case 1:
			case 2:
				if (submitted)
					cancel((unsigned)random() % submitted);
				break;
			case 3:
				machine_pass(random() % 500);
				break;
			case 4:
				mad_async_process(async);
				break;
			default:
				submit_another();
			}
			machine_fail(MACHINE_MALLOC, 0, 0);
		}
		mad_async_wait(async, -1);
		for (unsigned i = 0; i < submitted; i++) {
			int error = results[i].is_cancelled ? -ECANCELED
				    : is_refused            ? -EIO
							    : 0;

			assert_int_equal(results[i].calls, 1);
			if (!lacks_memory || results[i].error != -ENOMEM)
				assert_int_equal(results[i].error, error);
			assert_int_equal(results[i].counters.status,
					 results[i].error == -EIO ? 0x1c : 0);
		}
	}
}

#define THREADS 4

/* Reads on an engine of its own, on the shared one, some of these cancelled, and blocking. */
static void *read_often(void *arg)
{
	struct mad_async *own = mad_async_create(port);
	struct result *result = arg;
	struct mad_counters read;
	uint64_t id;

	for (int i = 0; i < 30; i++) {
		mad_counters_submit(own, &to, 1, &options, came, &result[0], NULL);
		mad_counters_submit(own, &to, 2, &options, came, &result[1], NULL);
		mad_counters_submit(async, &to, 3, &options, came, &result[2], &id);
		if (mad_counters_read(port, &to, PORT, &options, &read, sizeof(read)))
			return NULL;
		if (i % 2)
			mad_async_cancel(async, i % 3 ? id : MAD_ASYNC_ALL);
		mad_async_wait(own, -1);
	}
	mad_async_free(own);
	return arg;
}

TEST(threads_share_an_engine_and_a_node)
{
	pthread_t threads[THREADS];
	void *ok;

	machine_rule("hop-latency 1us");
	for (int round = 0; round < 10; round++) {
		share_node();
		node.capabilities = MAD_PMA_EXTENDED_WIDTH;
		memset(results, 0, sizeof(results));
		for (unsigned i = 0; i < THREADS; i++)
			assert_int_equal(
				pthread_create(&threads[i], NULL, read_often, &results[3 * i]),
				0);
		mad_async_wait(async, -1);
		for (unsigned i = 0; i < THREADS; i++) {
			pthread_join(threads[i], &ok);
			assert_non_null(ok);
		}
		mad_async_wait(async, -1);
		for (unsigned i = 0; i < 3 * THREADS; i++) {
			assert_int_equal(results[i].calls, 30);
			assert_true(!results[i].error ||
				    (i % 3 == 2 && results[i].error == -ECANCELED));
		}
	}
}

static void read_again(struct mad_async *engine, int error, const struct mad_counters *read,
		       void *arg)
{
	came(engine, error, read, arg);
	assert_true(mad_counters_submit(engine, &to, 1, &options, came, arg, NULL) < 0);
}

/* Also readings that wait for the ClassPortInfo of another. */
TEST(a_reading_on_a_closed_port_is_refused)
{
	share_node();
	for (unsigned i = 0; i < 3; i++)
		mad_counters_submit(async, &to, 1, &options, read_again, &results[i], NULL);
	mad_rpc_close_port(port);
	port = NULL;
	mad_async_process(async);
	expect(3, -ECANCELED);
}

/* --- arguments ------------------------------------------------------------------- */

/* The calls with an argument that none of them takes. */
static void expect_refused(const ib_portid_t *destination, unsigned number,
			   const struct mad_counters_options *wrong)
{
	assert_int_equal(stored(mad_counters_read(port, destination, number, wrong, &counters,
						  sizeof(counters))),
			 -EINVAL);
	assert_int_equal(stored(mad_counters_reset(port, destination, number, wrong)), -EINVAL);
	assert_int_equal(stored(mad_counters_submit(async, destination, number, wrong, came,
						    &results[0], NULL)),
			 -EINVAL);
}

TEST(what_cannot_be_begun_is_refused_and_not_called_back)
{
	const struct mad_counters_options wrong[] = {
		{.reserved = {1}},  {.reserved = {0, 0, 0, 1}},
		{.timeout_ms = -1}, {.counters = BIT(COUNT)},
		{.details = 1},     {.details = 32, .details_to = &details},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		expect_refused(&to, 1, &wrong[i]);
	expect_refused(NULL, 1, NULL);
	expect_refused(&(ib_portid_t){.lid = 0}, 1, NULL);
	expect_refused(&(ib_portid_t){.lid = -1}, 1, NULL);
	expect_refused(&to, 256, NULL);
	assert_int_equal(mad_counters_read(NULL, &to, 1, NULL, &counters, sizeof(counters)),
			 -EINVAL);
	assert_int_equal(stored(mad_counters_read(port, &to, 1, NULL, NULL, 0)), -EINVAL);
	assert_int_equal(mad_counters_reset(NULL, &to, 1, NULL), -EINVAL);
	assert_int_equal(mad_counters_submit(NULL, &to, 1, NULL, came, NULL, NULL), -EINVAL);
	assert_int_equal(mad_counters_submit(async, &to, 1, NULL, NULL, NULL, NULL), -EINVAL);
	assert_int_equal(node.written, 0);
	share_node();
	read_with(2);
	assert_int_equal(mad_counters_submit(async, &to, MAD_COUNTERS_ALL_PORTS, &options, came,
					     &results[0], NULL),
			 -EOPNOTSUPP);
	assert_int_equal(results[0].calls, 0);
}

TEST(readings_without_memory)
{
	int error = -ENOMEM;

	machine_fail(MACHINE_MALLOC, 1, ENOMEM);
	assert_null(mad_counters_node_create());
	share_node();
	for (unsigned n = 1; error; n++) {
		machine_fail(MACHINE_MALLOC, n, ENOMEM);
		options.details = n % 2;
		options.counters = MAD_COUNTERS_DEFAULT;
		error = mad_counters_submit(async, &to, 1, &options, came, &results[0], NULL);
		assert_true(!error || error == -ENOMEM);
	}
	/* readings do not wait for a request that was not submitted */
	machine_fail(MACHINE_MALLOC, 0, 0);
	mad_async_wait(async, -1);
	expect(1, 0);
}

/* ThreadSanitizer supports no threads in a child. */
#ifndef __SANITIZE_THREAD__

static atomic_bool stopped;

/* Uses the node all the time, by an engine that does not accept the reading. */
static void *use_node(void *engine)
{
	while (!stopped)
		mad_counters_submit(engine, &to, 1, &options, came, &results[1], NULL);
	return NULL;
}

static int child_that_frees_the_engine(void)
{
	mad_async_free(async);
	EXPECT(results[0].calls == 1 && results[0].error == -ECANCELED);
	return 0;
}

TEST(a_child_ends_readings_of_a_node_that_other_threads_use)
{
	struct ibmad_port *other = mad_rpc_open_port(NULL, 0, NULL, 0);
	struct mad_async *engine = mad_async_create(other);
	pthread_t thread;

	share_node();
	assert_int_equal(mad_counters_submit(async, &to, 1, &options, came, &results[0], NULL),
			 0);
	stopped = false;
	assert_int_equal(pthread_create(&thread, NULL, use_node, engine), 0);
	for (int i = 0; i < 20; i++)
		run_in_child(child_that_frees_the_engine);
	stopped = true;
	assert_int_equal(pthread_join(thread, NULL), 0);
	mad_async_free(engine);
	mad_rpc_close_port(other);
}

#endif
