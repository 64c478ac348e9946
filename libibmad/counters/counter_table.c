/* SPDX-License-Identifier: BSD-2-Clause */

/* The public table of counters by number. */

#include "counters/counter_table.h"

#include "base/export.h"
#include "mad/layout.h"

#include <infiniband/mad_fields.h>
#include <infiniband/mad_link.h>
#include <assert.h>
#include <math.h>
#include <stddef.h>

/* rdma-core gives IB_PC_QP1_DROP_F VL15Dropped's offset. */
#define QP1_DROPPED_OFFS 20
#define LANES            12

struct row {
	struct mad_counter_info info;
	uint16_t offset; /* of the member */
	uint8_t source;  /* attribute; if there are two, that of "field" */
	/* CounterSelect bits of the fields below */
	uint8_t select, extended_select, rsfec_select;
	enum MAD_FIELDS field;    /* or one per lane; IB_NO_FIELD: none */
	enum MAD_FIELDS extended; /* in PortCountersExtended */
	enum MAD_FIELDS rsfec;    /* the port's, while Reed-Solomon FEC is active */
};

#define ROW(number, member, source_number, attribute_name, unit_name, iba_field, width, \
	    field_count, extended_width, factor, text, ...)                             \
	[MAD_COUNTER_##number] = {.info = {.name = #member,                             \
					   .unit = unit_name,                           \
					   .field = iba_field,                          \
					   .attribute = attribute_name,                 \
					   .bits = width,                               \
					   .fields = field_count,                       \
					   .extended_bits = extended_width,             \
					   .multiplier = factor,                        \
					   .description = text},                        \
				  .offset = offsetof(struct mad_counters, member),      \
				  .source = source_number,                              \
				  __VA_ARGS__}
/* In PortCounters and, under the same name, PortCountersExtended. */
#define BOTH(number, member, unit, iba, bits, factor, name, bit, extended_bit, text)      \
	ROW(number, member, SOURCE_BASIC, "PortCounters", unit, iba, bits, 1, 64, factor, \
	    text, .field = IB_PC_##name, .select = bit, .extended = IB_PC_EXT_##name,     \
	    .extended_select = extended_bit)
#define EXTENDED(number, member, iba, name, bit, text)                                         \
	ROW(number, member, SOURCE_EXTENDED, "PortCountersExtended", "packets", iba, 0, 1, 64, \
	    1, text, .extended = name, .extended_select = bit)
#define RCV_DETAIL(number, member, iba, name, bit, text)                                      \
	ROW(number, member, SOURCE_RCV_DETAILS, "PortRcvErrorDetails", "packets", iba, 16, 1, \
	    0, 1, text, .field = name, .select = bit)
#define XMIT_DETAIL(number, member, iba, name, bit, text)                                      \
	ROW(number, member, SOURCE_XMIT_DETAILS, "PortXmitDiscardDetails", "packets", iba, 16, \
	    1, 0, 1, text, .field = name, .select = bit)
#define SPEEDS(number, member, attribute, unit, iba, bits, lanes, first, first_bit,       \
	       rsfec_field, rsfec_bit, text)                                              \
	ROW(number, member, SOURCE_SPEEDS, attribute, unit, iba, bits, lanes, 0, 1, text, \
	    .field = first, .select = first_bit, .rsfec = rsfec_field,                    \
	    .rsfec_select = rsfec_bit)

static const struct row rows[] = {
	BOTH(XMIT_BYTES, xmit_bytes, "bytes", "PortXmitData", 32, 4, XMT_BYTES_F, 12, 0,
	     "Bytes of data packets sent"),
	BOTH(RCV_BYTES, rcv_bytes, "bytes", "PortRcvData", 32, 4, RCV_BYTES_F, 13, 1,
	     "Bytes of data packets received"),
	BOTH(XMIT_PACKETS, xmit_packets, "packets", "PortXmitPkts", 32, 1, XMT_PKTS_F, 14, 2,
	     "Data packets sent"),
	BOTH(RCV_PACKETS, rcv_packets, "packets", "PortRcvPkts", 32, 1, RCV_PKTS_F, 15, 3,
	     "Data packets received"),
	EXTENDED(XMIT_UNICAST_PACKETS, xmit_unicast_packets, "PortUnicastXmitPkts",
		 IB_PC_EXT_XMT_UPKTS_F, 4, "Unicast packets sent"),
	EXTENDED(RCV_UNICAST_PACKETS, rcv_unicast_packets, "PortUnicastRcvPkts",
		 IB_PC_EXT_RCV_UPKTS_F, 5, "Unicast packets received"),
	EXTENDED(XMIT_MULTICAST_PACKETS, xmit_multicast_packets, "PortMulticastXmitPkts",
		 IB_PC_EXT_XMT_MPKTS_F, 6, "Multicast packets sent"),
	EXTENDED(RCV_MULTICAST_PACKETS, rcv_multicast_packets, "PortMulticastRcvPkts",
		 IB_PC_EXT_RCV_MPKTS_F, 7, "Multicast packets received"),
	BOTH(XMIT_WAIT_TICKS, xmit_wait_ticks, "ticks", "PortXmitWait", 32, 1, XMT_WAIT_F, 16,
	     28, "Ticks in which data waited and none was sent"),
	BOTH(SYMBOL_ERRORS, symbol_errors, "events", "SymbolErrorCounter", 16, 1, ERR_SYM_F, 0,
	     16, "Minor link errors on one or more lanes"),
	BOTH(LINK_RECOVERIES, link_recoveries, "events", "LinkErrorRecoveryCounter", 8, 1,
	     LINK_RECOVERS_F, 1, 17, "Link error recoveries that succeeded"),
	BOTH(LINK_DOWNED, link_downed, "events", "LinkDownedCounter", 8, 1, LINK_DOWNED_F, 2,
	     18, "Times that the link went down"),
	BOTH(RCV_ERRORS, rcv_errors, "packets", "PortRcvErrors", 16, 1, ERR_RCV_F, 3, 19,
	     "Packets received with an error"),
	BOTH(RCV_REMOTE_PHYSICAL_ERRORS, rcv_remote_physical_errors, "packets",
	     "PortRcvRemotePhysicalErrors", 16, 1, ERR_PHYSRCV_F, 4, 20,
	     "Packets received that another port had marked as bad"),
	BOTH(RCV_SWITCH_RELAY_ERRORS, rcv_switch_relay_errors, "packets",
	     "PortRcvSwitchRelayErrors", 16, 1, ERR_SWITCH_REL_F, 5, 21,
	     "Packets received that the switch could not forward"),
	BOTH(XMIT_DISCARDS, xmit_discards, "packets", "PortXmitDiscards", 16, 1, XMT_DISCARDS_F,
	     6, 22, "Packets discarded instead of being sent"),
	BOTH(XMIT_CONSTRAINT_ERRORS, xmit_constraint_errors, "packets",
	     "PortXmitConstraintErrors", 8, 1, ERR_XMTCONSTR_F, 7, 23,
	     "Packets not sent because of P_Key or raw filters"),
	BOTH(RCV_CONSTRAINT_ERRORS, rcv_constraint_errors, "packets", "PortRcvConstraintErrors",
	     8, 1, ERR_RCVCONSTR_F, 8, 24,
	     "Packets discarded on receipt because of P_Key or raw filters"),
	BOTH(LOCAL_LINK_INTEGRITY_ERRORS, local_link_integrity_errors, "events",
	     "LocalLinkIntegrityErrors", 4, 1, ERR_LOCALINTEG_F, 9, 25,
	     "Times that local physical errors exceeded the threshold"),
	BOTH(EXCESSIVE_BUFFER_OVERRUN_ERRORS, excessive_buffer_overrun_errors, "events",
	     "ExcessiveBufferOverrunErrors", 4, 1, ERR_EXCESS_OVR_F, 10, 26,
	     "Times that buffers overran in too many periods in a row"),
	BOTH(VL15_DROPPED, vl15_dropped, "packets", "VL15Dropped", 16, 1, VL15_DROPPED_F, 11,
	     27, "Packets of VL15 dropped for want of room"),
	BOTH(QP1_DROPPED, qp1_dropped, "packets", "QP1Dropped", 16, 1, QP1_DROP_F, 17, 29,
	     "Packets of QP1 dropped for want of room"),
	RCV_DETAIL(LOCAL_PHYSICAL_ERRORS, local_physical_errors, "PortLocalPhysicalErrors",
		   IB_PC_RCV_LOCAL_PHY_ERR_F, 0, "Packets received with a CRC error"),
	RCV_DETAIL(MALFORMED_PACKET_ERRORS, malformed_packet_errors, "PortMalformedPktErrors",
		   IB_PC_RCV_MALFORMED_PKT_ERR_F, 1, "Malformed packets received"),
	RCV_DETAIL(BUFFER_OVERRUN_ERRORS, buffer_overrun_errors, "PortBufferOverrunErrors",
		   IB_PC_RCV_BUF_OVR_ERR_F, 2, "Packets dropped by a full buffer"),
	RCV_DETAIL(DLID_MAPPING_ERRORS, dlid_mapping_errors, "PortDLIDMappingErrors",
		   IB_PC_RCV_DLID_MAP_ERR_F, 3,
		   "Packets that the forwarding tables could not forward"),
	RCV_DETAIL(VL_MAPPING_ERRORS, vl_mapping_errors, "PortVLMappingErrors",
		   IB_PC_RCV_VL_MAP_ERR_F, 4,
		   "Packets that SL to VL mapping could not forward"),
	RCV_DETAIL(LOOPING_ERRORS, looping_errors, "PortLoopingErrors", IB_PC_RCV_LOOPING_ERR_F,
		   5, "Packets whose output port was their input port"),
	XMIT_DETAIL(INACTIVE_DISCARDS, inactive_discards, "PortInactiveDiscards",
		    IB_PC_XMT_INACT_DISC_F, 0,
		    "Packets discarded because the port was not active"),
	XMIT_DETAIL(NEIGHBOR_MTU_DISCARDS, neighbor_mtu_discards, "PortNeighborMTUDiscards",
		    IB_PC_XMT_NEIGH_MTU_DISC_F, 1,
		    "Packets discarded because they exceed the neighbor's MTU"),
	XMIT_DETAIL(SW_LIFETIME_LIMIT_DISCARDS, sw_lifetime_limit_discards,
		    "PortSwLifetimeLimitDiscards", IB_PC_XMT_SW_LIFE_DISC_F, 2,
		    "Packets discarded after the switch lifetime limit"),
	XMIT_DETAIL(SW_HOQ_LIFETIME_LIMIT_DISCARDS, sw_hoq_lifetime_limit_discards,
		    "PortSwHOQLifetimeLimitDiscards", IB_PC_XMT_SW_HOL_DISC_F, 3,
		    "Packets discarded after the head of queue lifetime limit"),
	SPEEDS(SYNC_HEADER_ERRORS, sync_header_errors, "PortExtendedSpeedsCounters", "events",
	       "SyncHeaderErrorCounter", 16, 1, IB_PESC_SYNC_HDR_ERR_CTR_F, 0, IB_NO_FIELD, 0,
	       "Blocks with an invalid sync header on one or more lanes"),
	SPEEDS(UNKNOWN_BLOCKS, unknown_blocks, "PortExtendedSpeedsCounters", "blocks",
	       "UnknownBlockCounter", 16, 1, IB_PESC_UNK_BLOCK_CTR_F, 1, IB_NO_FIELD, 0,
	       "Blocks of an unknown type on one or more lanes"),
	SPEEDS(ERROR_DETECTIONS, error_detections, "PortExtendedSpeedsCounters", "events",
	       "ErrorDetectionCounterLane0", 16, LANES, IB_PESC_ERR_DET_CTR_LANE0_F, 2,
	       IB_NO_FIELD, 0, "Errors that the error detection of the lanes found"),
	SPEEDS(FEC_CORRECTED_BLOCKS, fec_corrected_blocks, "PortExtendedSpeedsCounters",
	       "blocks", "FECCorrectableBlockCtrLane0", 32, LANES,
	       IB_PESC_FEC_CORR_BLOCK_CTR_LANE0_F, 2 + LANES, IB_PESC_PORT_FEC_CORR_BLOCK_CTR_F,
	       2 + 3 * LANES, "Blocks that forward error correction corrected"),
	SPEEDS(FEC_UNCORRECTABLE_BLOCKS, fec_uncorrectable_blocks, "PortExtendedSpeedsCounters",
	       "blocks", "FECUncorrectableBlockCtrLane0", 32, LANES,
	       IB_PESC_FEC_UNCORR_BLOCK_CTR_LANE0_F, 2 + 2 * LANES,
	       IB_PESC_PORT_FEC_UNCORR_BLOCK_CTR_F, 3 + 3 * LANES,
	       "Blocks that forward error correction could not correct"),
	SPEEDS(FEC_CORRECTED_SYMBOLS, fec_corrected_symbols, "PortExtendedSpeedsCountersRSFEC",
	       "symbols", "PortFECCorrectedSymbolCtr", 32, 1,
	       IB_PESC_PORT_FEC_CORR_SYMBOL_CTR_F, 4 + 3 * LANES, IB_NO_FIELD, 0,
	       "Symbols that Reed-Solomon FEC corrected"),
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

uint64_t counter_source_offers(enum counter_source source, uint32_t capability_mask,
			       uint32_t capability_mask2)
{
	/* those with their own capability bit, in either attribute */
	uint64_t errors_and_wait = MAD_COUNTERS_ERRORS & ~QP1_DROPPED, counters = 0;

	if (capability_mask & MAD_PMA_XMIT_WAIT)
		errors_and_wait |= WAIT;
	if (capability_mask & MAD_PMA_QP1_DROPPED)
		errors_and_wait |= QP1_DROPPED;
	switch (source) {
	case SOURCE_EXTENDED:
		if (capability_mask & (MAD_PMA_EXTENDED_WIDTH | MAD_PMA_EXTENDED_WIDTH_NO_IETF))
			counters = DATA;
		if (capability_mask & MAD_PMA_EXTENDED_WIDTH)
			counters |= UNICAST_AND_MULTICAST;
		if (counters && capability_mask2 & MAD_PMA2_ADDITIONAL_EXTENDED)
			counters |= errors_and_wait;
		return counters;
	case SOURCE_BASIC:
		return DATA | errors_and_wait;
	case SOURCE_RCV_DETAILS:
		return MAD_COUNTERS_RCV_ERROR_DETAILS;
	case SOURCE_XMIT_DETAILS:
		return MAD_COUNTERS_XMIT_DISCARD_DETAILS;
	default:
		/* no capability bit for the attribute itself: nodes without it refuse it */
		if (capability_mask & MAD_PMA_RSFEC_COUNTERS)
			return MAD_COUNTERS_EXTENDED_SPEEDS;
		return MAD_COUNTERS_EXTENDED_SPEEDS &
		       ~MAD_COUNTER_BIT(MAD_COUNTER_FEC_CORRECTED_SYMBOLS);
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

uint64_t counter_source_select(enum counter_source source, uint64_t counters)
{
	uint64_t select = 0;

	for_each_counter (i, counters) {
		const struct row *row = &rows[i];

		if (source == SOURCE_EXTENDED)
			select |= UINT64_C(1) << row->extended_select;
		else
			select |= ((UINT64_C(1) << row->info.fields) - 1) << row->select;
		if (row->rsfec)
			select |= UINT64_C(1) << row->rsfec_select;
	}
	return select;
}

uint64_t *counter_in(struct mad_counters *counters, unsigned counter)
{
	return (uint64_t *)(void *)((uint8_t *)counters + rows[counter].offset);
}

/* These are reserved (0) while another FEC is active. */
static bool has_rsfec(const uint8_t *data)
{
	return mad_read_field(data, 0, IB_PESC_PORT_FEC_CORR_BLOCK_CTR_F) ||
	       mad_read_field(data, 0, IB_PESC_PORT_FEC_UNCORR_BLOCK_CTR_F) ||
	       mad_read_field(data, 0, IB_PESC_PORT_FEC_CORR_SYMBOL_CTR_F);
}

void counter_source_read(enum counter_source source, const uint8_t *data, uint64_t counters,
			 struct mad_counters *reading)
{
	bool is_extended = source == SOURCE_EXTENDED;

	for_each_counter (i, counters) {
		const struct row *row = &rows[i];
		bool is_of_port = row->rsfec && has_rsfec(data);
		enum MAD_FIELDS first = is_of_port    ? row->rsfec
					: is_extended ? row->extended
						      : row->field;
		uint64_t maximum =
			is_extended ? UINT64_MAX : (UINT64_C(1) << row->info.bits) - 1;
		uint64_t *sum = counter_in(reading, i);

		for (unsigned lane = 0; lane < (is_of_port ? 1 : row->info.fields); lane++) {
			uint64_t value = first == IB_PC_QP1_DROP_F
						 ? get16(data, QP1_DROPPED_OFFS)
						 : mad_read_field(data, 0, first + lane);

			*sum += value;
			if (value == maximum)
				reading->at_maximum |= MAD_COUNTER_BIT(i);
		}
		/* no link can have counted this much */
		if (*sum == UINT64_MAX || *sum > UINT64_MAX / row->info.multiplier) {
			reading->odd |= MAD_COUNTERS_ODD_VALUE;
			reading->odd_values |= MAD_COUNTER_BIT(i);
			*sum = UINT64_MAX;
		} else {
			*sum *= row->info.multiplier;
		}
	}
	reading->present |= counters;
	if (is_extended)
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

/* --- lanes, VLs and the tick of PortXmitWait --------------------------------------- */

#define DATA_UNIT 4 /* bytes per unit of PortVLOpData */

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
