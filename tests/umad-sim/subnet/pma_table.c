/* SPDX-License-Identifier: BSD-2-Clause */

/* Which counter is in which field of which attribute (IBA 16.1.3, 16.1.4, A10.4.4, A13.6). */
#include "pma_table.h"

#define LEVELS 16 /* SLs, VLs */
#define LANES  MOST_LANES

/* One flow control packet and one marked packet per 2^n data packets. */
enum {
	FLOW_CONTROL = 4,
	FECN = 6,
	BECN = 7,
	CONGESTED = 12
};

static const struct pma_row port_counters[] = {
	{IB_PC_ERR_SYM_F, 1, 0, WHOLE, 0, COUNT_SYMBOL_ERRORS},
	{IB_PC_LINK_RECOVERS_F, 1, 1, WHOLE, 0, COUNT_LINK_RECOVERIES},
	{IB_PC_LINK_DOWNED_F, 1, 2, WHOLE, 0, COUNT_LINK_DOWNED},
	{IB_PC_ERR_RCV_F, 1, 3, WHOLE, 0, COUNT_RCV_ERRORS},
	{IB_PC_ERR_PHYSRCV_F, 1, 4, WHOLE, 0, COUNT_RCV_REMOTE_PHYSICAL_ERRORS},
	{IB_PC_ERR_SWITCH_REL_F, 1, 5, WHOLE, 0, COUNT_RCV_SWITCH_RELAY_ERRORS},
	{IB_PC_XMT_DISCARDS_F, 1, 6, WHOLE, 0, COUNT_XMIT_DISCARDS},
	{IB_PC_ERR_XMTCONSTR_F, 1, 7, WHOLE, 0, COUNT_XMIT_CONSTRAINT_ERRORS},
	{IB_PC_ERR_RCVCONSTR_F, 1, 8, WHOLE, 0, COUNT_RCV_CONSTRAINT_ERRORS},
	{IB_PC_ERR_LOCALINTEG_F, 1, 9, WHOLE, 0, COUNT_LOCAL_LINK_INTEGRITY_ERRORS},
	{IB_PC_ERR_EXCESS_OVR_F, 1, 10, WHOLE, 0, COUNT_BUFFER_OVERRUN_ERRORS},
	{IB_PC_VL15_DROPPED_F, 1, 11, WHOLE, 0, COUNT_VL15_DROPPED},
	{IB_PC_XMT_BYTES_F, 1, 12, WHOLE, 0, COUNT_XMIT_DATA},
	{IB_PC_RCV_BYTES_F, 1, 13, WHOLE, 0, COUNT_RCV_DATA},
	{IB_PC_XMT_PKTS_F, 1, 14, WHOLE, 0, COUNT_XMIT_PACKETS},
	{IB_PC_RCV_PKTS_F, 1, 15, WHOLE, 0, COUNT_RCV_PACKETS},
	{IB_PC_XMT_WAIT_F, 1, 16, WHOLE, 0, COUNT_XMIT_WAIT},
	{IB_PC_QP1_DROP_F, 1, 17, WHOLE, 0, COUNT_QP1_DROPPED},
};

static const struct pma_row port_counters_extended[] = {
	{IB_PC_EXT_XMT_BYTES_F, 1, 0, WHOLE, 0, COUNT_XMIT_DATA},
	{IB_PC_EXT_RCV_BYTES_F, 1, 1, WHOLE, 0, COUNT_RCV_DATA},
	{IB_PC_EXT_XMT_PKTS_F, 1, 2, WHOLE, 0, COUNT_XMIT_PACKETS},
	{IB_PC_EXT_RCV_PKTS_F, 1, 3, WHOLE, 0, COUNT_RCV_PACKETS},
	{IB_PC_EXT_XMT_UPKTS_F, 1, 4, WHOLE, 0, COUNT_XMIT_UNICAST},
	{IB_PC_EXT_RCV_UPKTS_F, 1, 5, WHOLE, 0, COUNT_RCV_UNICAST},
	{IB_PC_EXT_XMT_MPKTS_F, 1, 6, WHOLE, 0, COUNT_XMIT_MULTICAST},
	{IB_PC_EXT_RCV_MPKTS_F, 1, 7, WHOLE, 0, COUNT_RCV_MULTICAST},
	{IB_PC_EXT_ERR_SYM_F, 1, 16, WHOLE, 0, COUNT_SYMBOL_ERRORS},
	{IB_PC_EXT_LINK_RECOVERS_F, 1, 17, WHOLE, 0, COUNT_LINK_RECOVERIES},
	{IB_PC_EXT_LINK_DOWNED_F, 1, 18, WHOLE, 0, COUNT_LINK_DOWNED},
	{IB_PC_EXT_ERR_RCV_F, 1, 19, WHOLE, 0, COUNT_RCV_ERRORS},
	{IB_PC_EXT_ERR_PHYSRCV_F, 1, 20, WHOLE, 0, COUNT_RCV_REMOTE_PHYSICAL_ERRORS},
	{IB_PC_EXT_ERR_SWITCH_REL_F, 1, 21, WHOLE, 0, COUNT_RCV_SWITCH_RELAY_ERRORS},
	{IB_PC_EXT_XMT_DISCARDS_F, 1, 22, WHOLE, 0, COUNT_XMIT_DISCARDS},
	{IB_PC_EXT_ERR_XMTCONSTR_F, 1, 23, WHOLE, 0, COUNT_XMIT_CONSTRAINT_ERRORS},
	{IB_PC_EXT_ERR_RCVCONSTR_F, 1, 24, WHOLE, 0, COUNT_RCV_CONSTRAINT_ERRORS},
	{IB_PC_EXT_ERR_LOCALINTEG_F, 1, 25, WHOLE, 0, COUNT_LOCAL_LINK_INTEGRITY_ERRORS},
	{IB_PC_EXT_ERR_EXCESS_OVR_F, 1, 26, WHOLE, 0, COUNT_BUFFER_OVERRUN_ERRORS},
	{IB_PC_EXT_VL15_DROPPED_F, 1, 27, WHOLE, 0, COUNT_VL15_DROPPED},
	{IB_PC_EXT_XMT_WAIT_F, 1, 28, WHOLE, 0, COUNT_XMIT_WAIT},
	{IB_PC_EXT_QP1_DROP_F, 1, 29, WHOLE, 0, COUNT_QP1_DROPPED},
};

/* Lost packets count as received with errors, packets that cannot be sent as discarded because
 * the port is inactive. */
static const struct pma_row rcv_error_details[] = {
	{IB_PC_RCV_LOCAL_PHY_ERR_F, 1, 0, WHOLE, 0, COUNT_RCV_ERRORS},
	{IB_PC_RCV_MALFORMED_PKT_ERR_F, 1, 1, WHOLE, 0, COUNTER_COUNT},
	{IB_PC_RCV_BUF_OVR_ERR_F, 1, 2, WHOLE, 0, COUNTER_COUNT},
	{IB_PC_RCV_DLID_MAP_ERR_F, 1, 3, WHOLE, 0, COUNT_RCV_SWITCH_RELAY_ERRORS},
	{IB_PC_RCV_VL_MAP_ERR_F, 1, 4, WHOLE, 0, COUNTER_COUNT},
	{IB_PC_RCV_LOOPING_ERR_F, 1, 5, WHOLE, 0, COUNTER_COUNT},
};

static const struct pma_row xmit_discard_details[] = {
	{IB_PC_XMT_INACT_DISC_F, 1, 0, WHOLE, 0, COUNT_XMIT_DISCARDS},
	{IB_PC_XMT_NEIGH_MTU_DISC_F, 1, 1, WHOLE, 0, COUNTER_COUNT},
	{IB_PC_XMT_SW_LIFE_DISC_F, 1, 2, WHOLE, 0, COUNTER_COUNT},
	{IB_PC_XMT_SW_HOL_DISC_F, 1, 3, WHOLE, 0, COUNTER_COUNT},
};

/* All packets of the model have the requested OpCode. */
static const struct pma_row op_rcv[] = {
	{IB_PC_PORT_OP_RCV_PKTS_F, 1, 0, WHOLE, 0, COUNT_RCV_PACKETS},
	{IB_PC_PORT_OP_RCV_DATA_F, 1, 1, WHOLE, 0, COUNT_RCV_DATA},
};

static const struct pma_row flow_ctl[] = {
	{IB_PC_PORT_XMIT_FLOW_PKTS_F, 1, 0, WHOLE, FLOW_CONTROL, COUNT_RCV_PACKETS},
	{IB_PC_PORT_RCV_FLOW_PKTS_F, 1, 1, WHOLE, FLOW_CONTROL, COUNT_XMIT_PACKETS},
};

static const struct pma_row vl_op_packets[] = {
	{IB_PC_PORT_VL_OP_PACKETS0_F, LEVELS, 0, BY_VL, 0, COUNT_RCV_PACKETS},
};

static const struct pma_row vl_op_data[] = {
	{IB_PC_PORT_VL_OP_DATA0_F, LEVELS, 0, BY_VL, 0, COUNT_RCV_DATA},
};

static const struct pma_row vl_update_errors[] = {
	{IB_PC_PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS0_F, LEVELS, 0, BY_VL, 0, COUNTER_COUNT},
};

static const struct pma_row vl_xmit_wait[] = {
	{IB_PC_PORT_VL_XMIT_WAIT0_F, LEVELS, 0, BY_VL, 0, COUNT_XMIT_WAIT},
};

static const struct pma_row vl_congestion[] = {
	{IB_PC_SW_PORT_VL_CONGESTION0_F, LEVELS, 0, BY_VL, CONGESTED, COUNT_XMIT_WAIT},
};

static const struct pma_row rcv_con_ctrl[] = {
	{IB_PC_RCV_CON_CTRL_PKT_RCV_FECN_F, 1, 0, WHOLE, FECN, COUNT_RCV_PACKETS},
	{IB_PC_RCV_CON_CTRL_PKT_RCV_BECN_F, 1, 1, WHOLE, BECN, COUNT_RCV_PACKETS},
};

static const struct pma_row sl_fecn[] = {
	{IB_PC_SL_RCV_FECN0_F, LEVELS, 0, BY_SL, FECN, COUNT_RCV_PACKETS},
};

static const struct pma_row sl_becn[] = {
	{IB_PC_SL_RCV_BECN0_F, LEVELS, 0, BY_SL, BECN, COUNT_RCV_PACKETS},
};

static const struct pma_row xmit_con_ctrl[] = {
	{IB_PC_XMIT_CON_CTRL_TIME_CONG_F, 1, 0, WHOLE, 0, COUNT_XMIT_WAIT},
};

/* VL15 has no congestion, and no field. */
static const struct pma_row vl_time_cong[] = {
	{IB_PC_VL_XMIT_TIME_CONG0_F, LEVELS - 1, 0, BY_VL, 0, COUNT_XMIT_WAIT},
};

static const struct pma_row xmit_data_sl[] = {
	{IB_PC_XMT_DATA_SL0_F, LEVELS, 0, BY_SL, 0, COUNT_XMIT_DATA},
};

static const struct pma_row rcv_data_sl[] = {
	{IB_PC_RCV_DATA_SL0_F, LEVELS, 0, BY_SL, 0, COUNT_RCV_DATA},
};

static const struct pma_row extended_speeds[] = {
	{IB_PESC_SYNC_HDR_ERR_CTR_F, 1, 0, WHOLE, 0, COUNTER_COUNT},
	{IB_PESC_UNK_BLOCK_CTR_F, 1, 1, WHOLE, 0, COUNTER_COUNT},
	{IB_PESC_ERR_DET_CTR_LANE0_F, LANES, 2, WHOLE, 0, COUNTER_COUNT},
	{IB_PESC_FEC_CORR_BLOCK_CTR_LANE0_F, LANES, 2 + LANES, BY_LANE, 0,
	 COUNT_CORRECTED_BLOCKS},
	{IB_PESC_FEC_UNCORR_BLOCK_CTR_LANE0_F, LANES, 2 + 2 * LANES, WHOLE, 0, COUNTER_COUNT},
};

#define ROWS(table) sizeof(table) / sizeof((table)[0]), table
#define OWN(id, switch_only, table)                                                     \
	{                                                                               \
		id, switch_only, true, IB_PC_COUNTER_SELECT_F, IB_NO_FIELD, ROWS(table) \
	}

static const struct pma_attribute attributes[] = {
	{IB_GSI_PORT_COUNTERS, false, false, IB_PC_COUNTER_SELECT_F, IB_PC_COUNTER_SELECT2_F,
	 ROWS(port_counters)},
	{IB_GSI_PORT_COUNTERS_EXT, false, false, IB_PC_EXT_COUNTER_SELECT_F,
	 IB_PC_EXT_COUNTER_SELECT2_F, ROWS(port_counters_extended)},
	{IB_GSI_PORT_EXT_SPEEDS_COUNTERS, false, true, IB_PESC_COUNTER_SELECT_F, IB_NO_FIELD,
	 ROWS(extended_speeds)},
	OWN(IB_GSI_PORT_RCV_ERROR_DETAILS, false, rcv_error_details),
	OWN(IB_GSI_PORT_XMIT_DISCARD_DETAILS, false, xmit_discard_details),
	OWN(IB_GSI_PORT_PORT_OP_RCV_COUNTERS, false, op_rcv),
	OWN(IB_GSI_PORT_PORT_FLOW_CTL_COUNTERS, false, flow_ctl),
	OWN(IB_GSI_PORT_PORT_VL_OP_PACKETS, false, vl_op_packets),
	OWN(IB_GSI_PORT_PORT_VL_OP_DATA, false, vl_op_data),
	OWN(IB_GSI_PORT_PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS, false, vl_update_errors),
	OWN(IB_GSI_PORT_PORT_VL_XMIT_WAIT_COUNTERS, false, vl_xmit_wait),
	OWN(IB_GSI_SW_PORT_VL_CONGESTION, true, vl_congestion),
	OWN(IB_GSI_PORT_RCV_CON_CTRL, false, rcv_con_ctrl),
	OWN(IB_GSI_PORT_SL_RCV_FECN, false, sl_fecn),
	OWN(IB_GSI_PORT_SL_RCV_BECN, false, sl_becn),
	OWN(IB_GSI_PORT_XMIT_CON_CTRL, false, xmit_con_ctrl),
	OWN(IB_GSI_PORT_VL_XMIT_TIME_CONG, false, vl_time_cong),
	OWN(IB_GSI_PORT_XMIT_DATA_SL, false, xmit_data_sl),
	OWN(IB_GSI_PORT_RCV_DATA_SL, false, rcv_data_sl),
};

const struct pma_attribute *pma_attribute(unsigned int id)
{
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (attributes[i].id == id)
			return &attributes[i];
	return NULL;
}
