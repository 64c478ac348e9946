/* SPDX-License-Identifier: BSD-2-Clause */

/* SA attributes: sizes and codes (IBA 15.2.5). */

#include "base/export.h"
#include "sa/sa.h"

#include <stddef.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Unpadded sizes; checked by tests/machine/sa_layouts.h. */
static const uint8_t record_sizes[IB_SA_ATTR_LAST] = {
	[IB_SA_ATTR_NODERECORD] = offsetof(struct mad_sa_node_record, pad),
	[IB_SA_ATTR_PORTINFORECORD] = offsetof(struct mad_sa_port_info_record, pad),
	[IB_SA_ATTR_SL2VLTABLERECORD] = sizeof(struct mad_sa_sl_to_vl_record),
	[IB_SA_ATTR_SWITCHINFORECORD] = sizeof(struct mad_sa_switch_info_record),
	[IB_SA_ATTR_LFTRECORD] = sizeof(struct mad_sa_linear_table_record),
	[IB_SA_ATTR_MFTRECORD] = sizeof(struct mad_sa_multicast_table_record),
	[IB_SA_ATTR_SMINFORECORD] = offsetof(struct mad_sa_sm_info_record, pad),
	[IB_SA_ATTR_LINKRECORD] = offsetof(struct mad_sa_link_record, pad),
	[IB_SA_ATTR_GUIDINFORECORD] = sizeof(struct mad_sa_guid_info_record),
	[IB_SA_ATTR_SERVICERECORD] = sizeof(struct mad_sa_service_record),
	[IB_SA_ATTR_PKEYTABLERECORD] = sizeof(struct mad_sa_pkey_table_record),
	[IB_SA_ATTR_PATHRECORD] = sizeof(struct mad_sa_path_record),
	[IB_SA_ATTR_VLARBTABLERECORD] = sizeof(struct mad_sa_vl_arbitration_record),
	[IB_SA_ATTR_MCRECORD] = offsetof(struct umad_sa_mcmember_record, pad),
	[IB_SA_ATTR_MULTIPATH] = sizeof(struct mad_sa_multi_path_record),
	[IB_SA_ATTR_INFORMINFO] = sizeof(struct mad_sa_inform_info),
	[IB_SA_ATTR_INFORMINFORECORD] = offsetof(struct mad_sa_inform_info_record, pad),
};

size_t sa_record_size(unsigned attribute)
{
	return attribute < COUNT(record_sizes) ? record_sizes[attribute] : 0;
}

/* --- codes ---------------------------------------------------------------------- */

EXPORT double mad_sa_rate_gbps(uint8_t rate)
{
	static const double rates[] = {
		[2] = 2.5,  [3] = 10,   [4] = 30,   [5] = 5,    [6] = 20,    [7] = 40,
		[8] = 60,   [9] = 80,   [10] = 120, [11] = 14,  [12] = 56,   [13] = 112,
		[14] = 168, [15] = 25,  [16] = 100, [17] = 200, [18] = 300,  [19] = 28,
		[20] = 50,  [21] = 400, [22] = 600, [23] = 800, [24] = 1200,
	};
	unsigned code = umad_sa_get_rate_mtu_or_life(rate);

	return code < COUNT(rates) ? rates[code] : 0;
}

EXPORT double mad_sa_lifetime_us(uint8_t pkt_life)
{
	return 4.096 * (double)(UINT64_C(1) << umad_sa_get_rate_mtu_or_life(pkt_life));
}
