/* SPDX-License-Identifier: BSD-2-Clause */

/* The structures of mad_sa_records.h have the layouts of IBA 15.2.5. */
#ifndef TESTS_SA_LAYOUTS_H
#define TESTS_SA_LAYOUTS_H

#include <infiniband/mad_sa_records.h>
#include <stddef.h>

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

#endif
