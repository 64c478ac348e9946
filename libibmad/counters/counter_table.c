/* SPDX-License-Identifier: BSD-2-Clause */

/* The table of the counters by number, which programs can read. */

#include "counters/counter_table.h"

#include "base/export.h"
#include "mad/layout.h"

#include <infiniband/mad_fields.h>
#include <infiniband/mad_link.h>
#include <assert.h>
#include <math.h>
#include <stddef.h>

/* The place of IB_PC_QP1_DROP_F: rdma-core gives this field the place of VL15Dropped. */
#define QP1_DROPPED_OFFS 20
#define LANES            12

struct row {
	struct mad_counter_info info;
	enum MAD_FIELDS field;    /* in the basic attribute; IB_NO_FIELD: it is not there */
	enum MAD_FIELDS extended; /* in PortCountersExtended */
	uint8_t source;           /* the basic attribute */
	uint8_t select;           /* its bit in CounterSelect */
	uint8_t extended_select;
	uint8_t lanes;        /* fields from `field` on, and bits from `select` on */
	uint8_t rsfec_select; /* the bit of `rsfec` */
	uint16_t offset;      /* of the member */
	enum MAD_FIELDS
		rsfec; /* the port's, while Reed-Solomon FEC is active; or IB_NO_FIELD */
};

#define PLACE(member) .offset = offsetof(struct mad_counters, member)

/* In PortCounters and PortCountersExtended. */
#define BOTH(member, unit_name, name_in_iba, width, factor, basic_field, basic_select,    \
	     extended_field, extended_field_select, text)                                 \
	{                                                                                 \
		.info = {.name = #member,                                                 \
			 .unit = unit_name,                                               \
			 .field = name_in_iba,                                            \
			 .attribute = "PortCounters",                                     \
			 .bits = width,                                                   \
			 .fields = 1,                                                     \
			 .extended_bits = 64,                                             \
			 .multiplier = factor,                                            \
			 .description = text},                                            \
		.field = basic_field, .extended = extended_field, .source = SOURCE_BASIC, \
		.select = basic_select, .extended_select = extended_field_select,         \
		PLACE(member)                                                             \
	}

/* In PortCountersExtended alone. */
#define EXTENDED(member, name_in_iba, extended_field, extended_field_select, text) \
	{                                                                          \
		.info = {.name = #member,                                          \
			 .unit = "packets",                                        \
			 .field = name_in_iba,                                     \
			 .attribute = "PortCountersExtended",                      \
			 .extended_bits = 64,                                      \
			 .fields = 1,                                              \
			 .multiplier = 1,                                          \
			 .description = text},                                     \
		.extended = extended_field, .source = SOURCE_EXTENDED,             \
		.extended_select = extended_field_select, PLACE(member)            \
	}

#define DETAIL(member, attribute_name, source_number, name_in_iba, detail_field,         \
	       detail_select, text)                                                      \
	{                                                                                \
		.info = {.name = #member,                                                \
			 .unit = "packets",                                              \
			 .field = name_in_iba,                                           \
			 .attribute = attribute_name,                                    \
			 .bits = 16,                                                     \
			 .fields = 1,                                                    \
			 .multiplier = 1,                                                \
			 .description = text},                                           \
		.field = detail_field, .source = source_number, .select = detail_select, \
		PLACE(member)                                                            \
	}
#define RCV_DETAIL(member, name_in_iba, field, select, text)                                  \
	DETAIL(member, "PortRcvErrorDetails", SOURCE_RCV_DETAILS, name_in_iba, field, select, \
	       text)
#define XMIT_DETAIL(member, name_in_iba, field, select, text)                             \
	DETAIL(member, "PortXmitDiscardDetails", SOURCE_XMIT_DETAILS, name_in_iba, field, \
	       select, text)

/* In PortExtendedSpeedsCounters: a field, or one of each lane. */
#define SPEEDS(member, unit_name, name_in_iba, width, lane_count, first, first_select,         \
	       rsfec_field, rsfec_field_select, text)                                          \
	{                                                                                      \
		.info = {.name = #member,                                                      \
			 .unit = unit_name,                                                    \
			 .field = name_in_iba,                                                 \
			 .attribute = "PortExtendedSpeedsCounters",                            \
			 .bits = width,                                                        \
			 .fields = lane_count,                                                 \
			 .multiplier = 1,                                                      \
			 .description = text},                                                 \
		.field = first, .source = SOURCE_SPEEDS, .select = first_select,               \
		.lanes = lane_count, .rsfec = rsfec_field, .rsfec_select = rsfec_field_select, \
		PLACE(member)                                                                  \
	}

static const struct row rows[] = {
	[MAD_COUNTER_XMIT_BYTES] =
		BOTH(xmit_bytes, "bytes", "PortXmitData", 32, 4, IB_PC_XMT_BYTES_F, 12,
		     IB_PC_EXT_XMT_BYTES_F, 0, "Bytes of data packets sent"),
	[MAD_COUNTER_RCV_BYTES] =
		BOTH(rcv_bytes, "bytes", "PortRcvData", 32, 4, IB_PC_RCV_BYTES_F, 13,
		     IB_PC_EXT_RCV_BYTES_F, 1, "Bytes of data packets received"),
	[MAD_COUNTER_XMIT_PACKETS] =
		BOTH(xmit_packets, "packets", "PortXmitPkts", 32, 1, IB_PC_XMT_PKTS_F, 14,
		     IB_PC_EXT_XMT_PKTS_F, 2, "Data packets sent"),
	[MAD_COUNTER_RCV_PACKETS] =
		BOTH(rcv_packets, "packets", "PortRcvPkts", 32, 1, IB_PC_RCV_PKTS_F, 15,
		     IB_PC_EXT_RCV_PKTS_F, 3, "Data packets received"),
	[MAD_COUNTER_XMIT_UNICAST_PACKETS] =
		EXTENDED(xmit_unicast_packets, "PortUnicastXmitPkts", IB_PC_EXT_XMT_UPKTS_F, 4,
			 "Unicast packets sent"),
	[MAD_COUNTER_RCV_UNICAST_PACKETS] =
		EXTENDED(rcv_unicast_packets, "PortUnicastRcvPkts", IB_PC_EXT_RCV_UPKTS_F, 5,
			 "Unicast packets received"),
	[MAD_COUNTER_XMIT_MULTICAST_PACKETS] =
		EXTENDED(xmit_multicast_packets, "PortMulticastXmitPkts", IB_PC_EXT_XMT_MPKTS_F,
			 6, "Multicast packets sent"),
	[MAD_COUNTER_RCV_MULTICAST_PACKETS] =
		EXTENDED(rcv_multicast_packets, "PortMulticastRcvPkts", IB_PC_EXT_RCV_MPKTS_F,
			 7, "Multicast packets received"),
	[MAD_COUNTER_XMIT_WAIT_TICKS] =
		BOTH(xmit_wait_ticks, "ticks", "PortXmitWait", 32, 1, IB_PC_XMT_WAIT_F, 16,
		     IB_PC_EXT_XMT_WAIT_F, 28, "Ticks in which data waited and none was sent"),
	[MAD_COUNTER_SYMBOL_ERRORS] =
		BOTH(symbol_errors, "events", "SymbolErrorCounter", 16, 1, IB_PC_ERR_SYM_F, 0,
		     IB_PC_EXT_ERR_SYM_F, 16, "Minor link errors on one or more lanes"),
	[MAD_COUNTER_LINK_RECOVERIES] =
		BOTH(link_recoveries, "events", "LinkErrorRecoveryCounter", 8, 1,
		     IB_PC_LINK_RECOVERS_F, 1, IB_PC_EXT_LINK_RECOVERS_F, 17,
		     "Link error recoveries that succeeded"),
	[MAD_COUNTER_LINK_DOWNED] =
		BOTH(link_downed, "events", "LinkDownedCounter", 8, 1, IB_PC_LINK_DOWNED_F, 2,
		     IB_PC_EXT_LINK_DOWNED_F, 18, "Times that the link went down"),
	[MAD_COUNTER_RCV_ERRORS] =
		BOTH(rcv_errors, "packets", "PortRcvErrors", 16, 1, IB_PC_ERR_RCV_F, 3,
		     IB_PC_EXT_ERR_RCV_F, 19, "Packets received with an error"),
	[MAD_COUNTER_RCV_REMOTE_PHYSICAL_ERRORS] =
		BOTH(rcv_remote_physical_errors, "packets", "PortRcvRemotePhysicalErrors", 16,
		     1, IB_PC_ERR_PHYSRCV_F, 4, IB_PC_EXT_ERR_PHYSRCV_F, 20,
		     "Packets received that another port had marked as bad"),
	[MAD_COUNTER_RCV_SWITCH_RELAY_ERRORS] =
		BOTH(rcv_switch_relay_errors, "packets", "PortRcvSwitchRelayErrors", 16, 1,
		     IB_PC_ERR_SWITCH_REL_F, 5, IB_PC_EXT_ERR_SWITCH_REL_F, 21,
		     "Packets received that the switch could not forward"),
	[MAD_COUNTER_XMIT_DISCARDS] = BOTH(xmit_discards, "packets", "PortXmitDiscards", 16, 1,
					   IB_PC_XMT_DISCARDS_F, 6, IB_PC_EXT_XMT_DISCARDS_F,
					   22, "Packets discarded instead of being sent"),
	[MAD_COUNTER_XMIT_CONSTRAINT_ERRORS] =
		BOTH(xmit_constraint_errors, "packets", "PortXmitConstraintErrors", 8, 1,
		     IB_PC_ERR_XMTCONSTR_F, 7, IB_PC_EXT_ERR_XMTCONSTR_F, 23,
		     "Packets not sent because of P_Key or raw filters"),
	[MAD_COUNTER_RCV_CONSTRAINT_ERRORS] =
		BOTH(rcv_constraint_errors, "packets", "PortRcvConstraintErrors", 8, 1,
		     IB_PC_ERR_RCVCONSTR_F, 8, IB_PC_EXT_ERR_RCVCONSTR_F, 24,
		     "Packets discarded on receipt because of P_Key or raw filters"),
	[MAD_COUNTER_LOCAL_LINK_INTEGRITY_ERRORS] =
		BOTH(local_link_integrity_errors, "events", "LocalLinkIntegrityErrors", 4, 1,
		     IB_PC_ERR_LOCALINTEG_F, 9, IB_PC_EXT_ERR_LOCALINTEG_F, 25,
		     "Times that local physical errors exceeded the threshold"),
	[MAD_COUNTER_EXCESSIVE_BUFFER_OVERRUN_ERRORS] =
		BOTH(excessive_buffer_overrun_errors, "events", "ExcessiveBufferOverrunErrors",
		     4, 1, IB_PC_ERR_EXCESS_OVR_F, 10, IB_PC_EXT_ERR_EXCESS_OVR_F, 26,
		     "Times that buffers overran in too many periods in a row"),
	[MAD_COUNTER_VL15_DROPPED] =
		BOTH(vl15_dropped, "packets", "VL15Dropped", 16, 1, IB_PC_VL15_DROPPED_F, 11,
		     IB_PC_EXT_VL15_DROPPED_F, 27, "Packets of VL15 dropped for want of room"),
	[MAD_COUNTER_QP1_DROPPED] =
		BOTH(qp1_dropped, "packets", "QP1Dropped", 16, 1, IB_PC_QP1_DROP_F, 17,
		     IB_PC_EXT_QP1_DROP_F, 29, "Packets of QP1 dropped for want of room"),
	[MAD_COUNTER_LOCAL_PHYSICAL_ERRORS] =
		RCV_DETAIL(local_physical_errors, "PortLocalPhysicalErrors",
			   IB_PC_RCV_LOCAL_PHY_ERR_F, 0, "Packets received with a CRC error"),
	[MAD_COUNTER_MALFORMED_PACKET_ERRORS] =
		RCV_DETAIL(malformed_packet_errors, "PortMalformedPktErrors",
			   IB_PC_RCV_MALFORMED_PKT_ERR_F, 1, "Malformed packets received"),
	[MAD_COUNTER_BUFFER_OVERRUN_ERRORS] =
		RCV_DETAIL(buffer_overrun_errors, "PortBufferOverrunErrors",
			   IB_PC_RCV_BUF_OVR_ERR_F, 2, "Packets dropped by a full buffer"),
	[MAD_COUNTER_DLID_MAPPING_ERRORS] = RCV_DETAIL(
		dlid_mapping_errors, "PortDLIDMappingErrors", IB_PC_RCV_DLID_MAP_ERR_F, 3,
		"Packets that the forwarding tables could not forward"),
	[MAD_COUNTER_VL_MAPPING_ERRORS] =
		RCV_DETAIL(vl_mapping_errors, "PortVLMappingErrors", IB_PC_RCV_VL_MAP_ERR_F, 4,
			   "Packets that SL to VL mapping could not forward"),
	[MAD_COUNTER_LOOPING_ERRORS] =
		RCV_DETAIL(looping_errors, "PortLoopingErrors", IB_PC_RCV_LOOPING_ERR_F, 5,
			   "Packets whose output port was their input port"),
	[MAD_COUNTER_INACTIVE_DISCARDS] =
		XMIT_DETAIL(inactive_discards, "PortInactiveDiscards", IB_PC_XMT_INACT_DISC_F,
			    0, "Packets discarded because the port was not active"),
	[MAD_COUNTER_NEIGHBOR_MTU_DISCARDS] = XMIT_DETAIL(
		neighbor_mtu_discards, "PortNeighborMTUDiscards", IB_PC_XMT_NEIGH_MTU_DISC_F, 1,
		"Packets discarded because they exceed the neighbor's MTU"),
	[MAD_COUNTER_SW_LIFETIME_LIMIT_DISCARDS] =
		XMIT_DETAIL(sw_lifetime_limit_discards, "PortSwLifetimeLimitDiscards",
			    IB_PC_XMT_SW_LIFE_DISC_F, 2,
			    "Packets discarded after the switch lifetime limit"),
	[MAD_COUNTER_SW_HOQ_LIFETIME_LIMIT_DISCARDS] =
		XMIT_DETAIL(sw_hoq_lifetime_limit_discards, "PortSwHOQLifetimeLimitDiscards",
			    IB_PC_XMT_SW_HOL_DISC_F, 3,
			    "Packets discarded after the head of queue lifetime limit"),
	[MAD_COUNTER_SYNC_HEADER_ERRORS] =
		SPEEDS(sync_header_errors, "events", "SyncHeaderErrorCounter", 16, 1,
		       IB_PESC_SYNC_HDR_ERR_CTR_F, 0, IB_NO_FIELD, 0,
		       "Blocks with an invalid sync header on one or more lanes"),
	[MAD_COUNTER_UNKNOWN_BLOCKS] = SPEEDS(unknown_blocks, "blocks", "UnknownBlockCounter",
					      16, 1, IB_PESC_UNK_BLOCK_CTR_F, 1, IB_NO_FIELD, 0,
					      "Blocks of an unknown type on one or more lanes"),
	[MAD_COUNTER_ERROR_DETECTIONS] =
		SPEEDS(error_detections, "events", "ErrorDetectionCounterLane0", 16, LANES,
		       IB_PESC_ERR_DET_CTR_LANE0_F, 2, IB_NO_FIELD, 0,
		       "Errors that the error detection of the lanes found"),
	[MAD_COUNTER_FEC_CORRECTED_BLOCKS] =
		SPEEDS(fec_corrected_blocks, "blocks", "FECCorrectableBlockCtrLane0", 32, LANES,
		       IB_PESC_FEC_CORR_BLOCK_CTR_LANE0_F, 2 + LANES,
		       IB_PESC_PORT_FEC_CORR_BLOCK_CTR_F, 2 + 3 * LANES,
		       "Blocks that forward error correction corrected"),
	[MAD_COUNTER_FEC_UNCORRECTABLE_BLOCKS] =
		SPEEDS(fec_uncorrectable_blocks, "blocks", "FECUncorrectableBlockCtrLane0", 32,
		       LANES, IB_PESC_FEC_UNCORR_BLOCK_CTR_LANE0_F, 2 + 2 * LANES,
		       IB_PESC_PORT_FEC_UNCORR_BLOCK_CTR_F, 3 + 3 * LANES,
		       "Blocks that forward error correction could not correct"),
	[MAD_COUNTER_FEC_CORRECTED_SYMBOLS] =
		{.info = {.name = "fec_corrected_symbols",
			  .unit = "symbols",
			  .field = "PortFECCorrectedSymbolCtr",
			  .attribute = "PortExtendedSpeedsCountersRSFEC",
			  .bits = 32,
			  .fields = 1,
			  .multiplier = 1,
			  .description = "Symbols that Reed-Solomon FEC corrected"},
		 .field = IB_PESC_PORT_FEC_CORR_SYMBOL_CTR_F,
		 .source = SOURCE_SPEEDS,
		 .select = 4 + 3 * LANES,
		 .lanes = 1,
		 PLACE(fec_corrected_symbols)},
};
static_assert(sizeof(rows) / sizeof(*rows) == MAD_COUNTER_COUNT, "a counter has no row");
static_assert(MAD_COUNTERS_ALL == MAD_COUNTER_BIT(MAD_COUNTER_COUNT) - 1,
	      "MAD_COUNTERS_ALL has other counters");
static_assert(MAD_COUNTERS_ALL ==
		      (MAD_COUNTERS_DEFAULT | MAD_COUNTERS_RCV_ERROR_DETAILS |
		       MAD_COUNTERS_XMIT_DISCARD_DETAILS | MAD_COUNTERS_EXTENDED_SPEEDS),
	      "a counter is in none of the masks");

#define UNICAST_AND_MULTICAST                                  \
	(MAD_COUNTER_BIT(MAD_COUNTER_XMIT_UNICAST_PACKETS) |   \
	 MAD_COUNTER_BIT(MAD_COUNTER_RCV_UNICAST_PACKETS) |    \
	 MAD_COUNTER_BIT(MAD_COUNTER_XMIT_MULTICAST_PACKETS) | \
	 MAD_COUNTER_BIT(MAD_COUNTER_RCV_MULTICAST_PACKETS))
#define DATA                                                                                \
	(MAD_COUNTER_BIT(MAD_COUNTER_XMIT_BYTES) | MAD_COUNTER_BIT(MAD_COUNTER_RCV_BYTES) | \
	 MAD_COUNTER_BIT(MAD_COUNTER_XMIT_PACKETS) | MAD_COUNTER_BIT(MAD_COUNTER_RCV_PACKETS))
#define WAIT        MAD_COUNTER_BIT(MAD_COUNTER_XMIT_WAIT_TICKS)
#define QP1_DROPPED MAD_COUNTER_BIT(MAD_COUNTER_QP1_DROPPED)

/* Errors and PortXmitWait, of those that have a capability bit of their own what it says. */
static uint64_t basic_counters(uint32_t capability_mask)
{
	uint64_t counters = MAD_COUNTERS_ERRORS & ~QP1_DROPPED;

	if (capability_mask & MAD_PMA_XMIT_WAIT)
		counters |= WAIT;
	if (capability_mask & MAD_PMA_QP1_DROPPED)
		counters |= QP1_DROPPED;
	return counters;
}

static uint64_t extended_counters(uint32_t capability_mask, uint32_t capability_mask2)
{
	uint64_t counters = 0;

	if (!(capability_mask & (MAD_PMA_EXTENDED_WIDTH | MAD_PMA_EXTENDED_WIDTH_NO_IETF)))
		return 0;
	counters = DATA;
	if (capability_mask & MAD_PMA_EXTENDED_WIDTH)
		counters |= UNICAST_AND_MULTICAST;
	if (capability_mask2 & MAD_PMA2_ADDITIONAL_EXTENDED)
		counters |= basic_counters(capability_mask);
	return counters;
}

/* No capability tells of PortExtendedSpeedsCounters: a node without it refuses the request. */
static uint64_t speeds_counters(uint32_t capability_mask)
{
	if (capability_mask & MAD_PMA_RSFEC_COUNTERS)
		return MAD_COUNTERS_EXTENDED_SPEEDS;
	return MAD_COUNTERS_EXTENDED_SPEEDS &
	       ~MAD_COUNTER_BIT(MAD_COUNTER_FEC_CORRECTED_SYMBOLS);
}

uint64_t counter_source_offers(enum counter_source source, uint32_t capability_mask,
			       uint32_t capability_mask2)
{
	switch (source) {
	case SOURCE_EXTENDED:
		return extended_counters(capability_mask, capability_mask2);
	case SOURCE_BASIC:
		return basic_counters(capability_mask) | DATA;
	case SOURCE_RCV_DETAILS:
		return MAD_COUNTERS_RCV_ERROR_DETAILS;
	case SOURCE_XMIT_DETAILS:
		return MAD_COUNTERS_XMIT_DISCARD_DETAILS;
	default:
		return speeds_counters(capability_mask);
	}
}

unsigned counter_source_attribute(enum counter_source source)
{
	static const uint8_t attributes[] = {
		[SOURCE_EXTENDED] = IB_GSI_PORT_COUNTERS_EXT,
		[SOURCE_BASIC] = IB_GSI_PORT_COUNTERS,
		[SOURCE_RCV_DETAILS] = IB_GSI_PORT_RCV_ERROR_DETAILS,
		[SOURCE_XMIT_DETAILS] = IB_GSI_PORT_XMIT_DISCARD_DETAILS,
		[SOURCE_SPEEDS] = IB_GSI_PORT_EXT_SPEEDS_COUNTERS,
		[SOURCE_LANES] = IB_GSI_PORT_EXT_SPEEDS_COUNTERS,
		[SOURCE_VL_PACKETS] = IB_GSI_PORT_PORT_VL_OP_PACKETS,
		[SOURCE_VL_DATA] = IB_GSI_PORT_PORT_VL_OP_DATA,
		[SOURCE_VL_XMIT_WAIT] = IB_GSI_PORT_PORT_VL_XMIT_WAIT_COUNTERS,
		[SOURCE_TICK] = IB_GSI_PORT_SAMPLES_CONTROL,
		[SOURCE_CLASS_PORT_INFO] = CLASS_PORT_INFO,
	};

	return attributes[source];
}

static uint64_t select_bits(const struct row *row, enum counter_source source)
{
	uint64_t lanes = ((UINT64_C(1) << row->lanes) - 1) << row->select;

	if (source == SOURCE_EXTENDED)
		return UINT64_C(1) << row->extended_select;
	if (source != SOURCE_SPEEDS)
		return UINT64_C(1) << row->select;
	return row->rsfec ? lanes | UINT64_C(1) << row->rsfec_select : lanes;
}

uint64_t counter_source_select(enum counter_source source, uint64_t counters)
{
	uint64_t select = 0;

	for (unsigned i = 0; i < MAD_COUNTER_COUNT; i++)
		if (counters & MAD_COUNTER_BIT(i))
			select |= select_bits(&rows[i], source);
	return select;
}

uint64_t *counter_in(struct mad_counters *counters, unsigned counter)
{
	return (uint64_t *)(void *)((uint8_t *)counters + rows[counter].offset);
}

/* The number on the wire, and its highest value. */
static uint64_t read_number(const struct row *row, enum counter_source source,
			    const uint8_t *data, uint64_t *maximum)
{
	if (source == SOURCE_EXTENDED) {
		*maximum = UINT64_MAX;
		return mad_read_field(data, 0, row->extended);
	}
	*maximum = (UINT64_C(1) << row->info.bits) - 1;
	if (row->field == IB_PC_QP1_DROP_F)
		return get16(data, QP1_DROPPED_OFFS);
	return mad_read_field(data, 0, row->field);
}

static void read_counter(unsigned counter, enum counter_source source, const uint8_t *data,
			 struct mad_counters *reading)
{
	const struct row *row = &rows[counter];
	uint64_t *value = counter_in(reading, counter), maximum;

	*value = read_number(row, source, data, &maximum);
	if (*value == maximum)
		reading->at_maximum |= MAD_COUNTER_BIT(counter);
	/* no link can have sent as many, nor reached the maximum of 64 bits */
	if (*value == UINT64_MAX || *value > UINT64_MAX / row->info.multiplier) {
		reading->odd |= MAD_COUNTERS_ODD_VALUE;
		reading->odd_values |= MAD_COUNTER_BIT(counter);
		*value = UINT64_MAX;
		return;
	}
	*value *= row->info.multiplier;
}

/* These fields are reserved, and 0, while another FEC is active. */
static bool has_rsfec(const uint8_t *data)
{
	return mad_read_field(data, 0, IB_PESC_PORT_FEC_CORR_BLOCK_CTR_F) ||
	       mad_read_field(data, 0, IB_PESC_PORT_FEC_UNCORR_BLOCK_CTR_F) ||
	       mad_read_field(data, 0, IB_PESC_PORT_FEC_CORR_SYMBOL_CTR_F);
}

static void read_speeds_counter(unsigned counter, const uint8_t *data,
				struct mad_counters *reading)
{
	const struct row *row = &rows[counter];
	const uint64_t maximum = (UINT64_C(1) << row->info.bits) - 1;
	bool is_port = row->rsfec && has_rsfec(data);
	enum MAD_FIELDS first = is_port ? row->rsfec : row->field;
	uint64_t *sum = counter_in(reading, counter);

	for (unsigned lane = 0; lane < (is_port ? 1U : row->lanes); lane++) {
		uint64_t value = mad_read_field(data, 0, first + lane);

		*sum += value;
		if (value == maximum)
			reading->at_maximum |= MAD_COUNTER_BIT(counter);
	}
}

void counter_source_read(enum counter_source source, const uint8_t *data, uint64_t counters,
			 struct mad_counters *reading)
{
	for (unsigned i = 0; i < MAD_COUNTER_COUNT; i++) {
		if (!(counters & MAD_COUNTER_BIT(i)))
			continue;
		if (source == SOURCE_SPEEDS)
			read_speeds_counter(i, data, reading);
		else
			read_counter(i, source, data, reading);
	}
	reading->present |= counters;
	if (source == SOURCE_EXTENDED)
		reading->extended |= counters;
}

enum counter_source counter_source_of(unsigned counter, uint64_t extended)
{
	return extended >> counter & 1 ? SOURCE_EXTENDED : rows[counter].source;
}

static_assert(COUNTER_SOURCES <= 8, "struct mad_counters has no time for an attribute");

uint64_t counter_value(const struct mad_counters *counters, unsigned counter)
{
	uint64_t value;

	memcpy(&value, (const uint8_t *)counters + rows[counter].offset, sizeof(value));
	return value;
}

uint64_t counter_time_us(const struct mad_counters *counters, unsigned counter)
{
	uint64_t time;

	if (!(counters->present >> counter & 1))
		return 0;
	time = counters->response_us[counter_source_of(counter, counters->extended)];
	return time ? time : counters->time_us;
}

EXPORT const struct mad_counter_info *mad_counters_info(unsigned counter)
{
	return counter < MAD_COUNTER_COUNT ? &rows[counter].info : NULL;
}

EXPORT uint64_t mad_counters_value(const struct mad_counters *counters, unsigned counter,
				   uint64_t *time_us)
{
	bool has_time = counters && counters->size >= offsetof(struct mad_counters, status);

	if (time_us)
		*time_us = has_time && counter < MAD_COUNTER_COUNT
				   ? counter_time_us(counters, counter)
				   : 0;
	if (!counters || counter >= MAD_COUNTER_COUNT ||
	    counters->size < rows[counter].offset + sizeof(uint64_t))
		return 0;
	return counter_value(counters, counter);
}

/* --- lanes, VLs and the tick of PortXmitWait --- */

#define DATA_UNIT 4 /* bytes of PortVLOpData */

static uint32_t read_nth(const uint8_t *data, enum MAD_FIELDS first, unsigned number)
{
	return (uint32_t)mad_read_field(data, 0, first + number);
}

void details_read(enum counter_source source, const uint8_t *data,
		  struct mad_counters_details *details)
{
	details->present |= 1U << (source - COUNTER_SOURCES);
	for (unsigned i = 0; source == SOURCE_LANES && i < MAD_COUNTERS_LANE_COUNT; i++)
		details->lanes[i] = (struct mad_lane_counters){
			.error_detections = read_nth(data, IB_PESC_ERR_DET_CTR_LANE0_F, i),
			.fec_corrected_blocks =
				read_nth(data, IB_PESC_FEC_CORR_BLOCK_CTR_LANE0_F, i),
			.fec_uncorrectable_blocks =
				read_nth(data, IB_PESC_FEC_UNCORR_BLOCK_CTR_LANE0_F, i),
		};
	if (source == SOURCE_TICK)
		details->tick = (uint8_t)mad_read_field(data, 0, IB_PSC_TICK_F);
	for (unsigned i = 0; i < MAD_COUNTERS_VL_COUNT; i++) {
		struct mad_vl_counters *vl = &details->vls[i];

		if (source == SOURCE_VL_PACKETS)
			vl->rcv_packets = read_nth(data, IB_PC_PORT_VL_OP_PACKETS0_F, i);
		else if (source == SOURCE_VL_DATA)
			vl->rcv_bytes = (uint64_t)DATA_UNIT *
					read_nth(data, IB_PC_PORT_VL_OP_DATA0_F, i);
		else if (source == SOURCE_VL_XMIT_WAIT)
			vl->xmit_wait_ticks = read_nth(data, IB_PC_PORT_VL_XMIT_WAIT0_F, i);
	}
}

EXPORT double mad_counters_tick_ns(unsigned tick, unsigned speed)
{
	static const double symbol_ns[] = {
		[MAD_SPEED_SDR] = 4, [MAD_SPEED_DDR] = 2, [MAD_SPEED_QDR] = 1};

	if (speed >= sizeof(symbol_ns) / sizeof(*symbol_ns) || !(symbol_ns[speed] > 0))
		return (double)NAN;
	return (tick + 1) * symbol_ns[speed];
}
