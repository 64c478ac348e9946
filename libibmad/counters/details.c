/* SPDX-License-Identifier: BSD-2-Clause */

/* The counters of lanes and VLs, and the tick of PortXmitWait. */

#include "base/export.h"
#include "counters/counter_table.h"

#include <infiniband/mad_fields.h>
#include <infiniband/mad_link.h>
#include <math.h>

#define DATA_UNIT 4 /* bytes of PortVLOpData */

static uint32_t read_nth(const uint8_t *data, enum MAD_FIELDS first, unsigned number)
{
	return (uint32_t)mad_read_field(data, 0, first + number);
}

static void read_lanes(const uint8_t *data, struct mad_counters_details *details)
{
	for (unsigned i = 0; i < MAD_COUNTERS_LANE_COUNT; i++)
		details->lanes[i] = (struct mad_lane_counters){
			.error_detections = read_nth(data, IB_PESC_ERR_DET_CTR_LANE0_F, i),
			.fec_corrected_blocks =
				read_nth(data, IB_PESC_FEC_CORR_BLOCK_CTR_LANE0_F, i),
			.fec_uncorrectable_blocks =
				read_nth(data, IB_PESC_FEC_UNCORR_BLOCK_CTR_LANE0_F, i),
		};
}

void details_read(enum counter_source source, const uint8_t *data,
		  struct mad_counters_details *details)
{
	details->present |= 1U << (source - COUNTER_SOURCES);
	if (source == SOURCE_LANES)
		read_lanes(data, details);
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

/* --- the tick --------------------------------------------------------------------- */

EXPORT double mad_counters_tick_ns(unsigned tick, unsigned speed)
{
	static const double symbol_ns[] = {
		[MAD_SPEED_SDR] = 4, [MAD_SPEED_DDR] = 2, [MAD_SPEED_QDR] = 1};

	if (speed >= sizeof(symbol_ns) / sizeof(*symbol_ns) || !(symbol_ns[speed] > 0))
		return (double)NAN;
	return (tick + 1) * symbol_ns[speed];
}
