/* SPDX-License-Identifier: BSD-2-Clause */

/* The attributes of the SA: their sizes and layouts, and the codes in them (IBA 15.2.5). */

#include "base/export.h"
#include "sa/sa.h"

#include <stddef.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Checks a structure: its size in a table, and the size of its record without padding. */
#define SIZES(name, padded, size)                                                 \
	_Static_assert(sizeof(struct name) == (padded), "padded size of " #name); \
	_Static_assert((padded) % 8 == 0 && (padded) - (size) < 8, "padding of " #name)
#define AT(name, member, offset) \
	_Static_assert(offsetof(struct name, member) == (offset), #name "." #member)

_Static_assert(sizeof(struct mad_sa_inform_info) == 36, "size of InformInfo");
AT(mad_sa_inform_info, lid_begin, 16);
AT(mad_sa_inform_info, is_generic, 22);
AT(mad_sa_inform_info, type, 24);
AT(mad_sa_inform_info, trap_number, 26);
AT(mad_sa_inform_info, qpn_resp_time, 28);
AT(mad_sa_inform_info, producer_type, 32);
SIZES(mad_sa_inform_info_record, 64, 60);
AT(mad_sa_inform_info_record, number, 16);
AT(mad_sa_inform_info_record, info, 24);
AT(mad_sa_inform_info_record, pad, 60);
SIZES(mad_sa_path_record, 64, 64);
AT(mad_sa_path_record, dgid, 8);
AT(mad_sa_path_record, sgid, 24);
AT(mad_sa_path_record, dlid, 40);
AT(mad_sa_path_record, slid, 42);
AT(mad_sa_path_record, flow_hop, 44);
AT(mad_sa_path_record, tclass, 48);
AT(mad_sa_path_record, reversible_num, 49);
AT(mad_sa_path_record, pkey, 50);
AT(mad_sa_path_record, qos_sl, 52);
AT(mad_sa_path_record, mtu, 54);
AT(mad_sa_path_record, pkt_life, 56);
AT(mad_sa_path_record, preference, 57);
SIZES(mad_sa_multi_path_record, 24, 24);
AT(mad_sa_multi_path_record, pkey, 6);
AT(mad_sa_multi_path_record, mtu, 10);
AT(mad_sa_multi_path_record, service_id_msb, 13);
AT(mad_sa_multi_path_record, sgid_count, 15);
AT(mad_sa_multi_path_record, service_id_lsb, 17);
SIZES(mad_sa_service_record, 176, 176);
AT(mad_sa_service_record, pkey, 24);
AT(mad_sa_service_record, lease, 28);
AT(mad_sa_service_record, key, 32);
AT(mad_sa_service_record, name, 48);
AT(mad_sa_service_record, data8, 112);
AT(mad_sa_service_record, data64, 160);
SIZES(mad_sa_node_record, 112, 108);
AT(mad_sa_node_record, node_info, 4);
AT(mad_sa_node_record, node_description, 44);
AT(mad_sa_node_record, pad, 108);
SIZES(mad_sa_port_info_record, 72, 68);
AT(mad_sa_port_info_record, port, 2);
AT(mad_sa_port_info_record, port_info, 4);
AT(mad_sa_port_info_record, pad, 68);
SIZES(mad_sa_sm_info_record, 32, 25);
AT(mad_sa_sm_info_record, sm_info, 4);
AT(mad_sa_sm_info_record, pad, 25);
SIZES(mad_sa_link_record, 8, 6);
AT(mad_sa_link_record, to_lid, 4);
SIZES(mad_sa_guid_info_record, 72, 72);
AT(mad_sa_guid_info_record, guids, 8);
SIZES(mad_sa_pkey_table_record, 72, 72);
AT(mad_sa_pkey_table_record, port, 4);
AT(mad_sa_pkey_table_record, pkeys, 8);
SIZES(mad_sa_sl_to_vl_record, 16, 16);
AT(mad_sa_sl_to_vl_record, vls, 8);
SIZES(mad_sa_vl_arbitration_record, 72, 72);
AT(mad_sa_vl_arbitration_record, block, 3);
AT(mad_sa_vl_arbitration_record, table, 8);
SIZES(mad_sa_switch_info_record, 24, 24);
AT(mad_sa_switch_info_record, switch_info, 4);
SIZES(mad_sa_linear_table_record, 72, 72);
AT(mad_sa_linear_table_record, ports, 8);
SIZES(mad_sa_multicast_table_record, 72, 72);
AT(mad_sa_multicast_table_record, position_block, 2);
AT(mad_sa_multicast_table_record, port_masks, 8);

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
