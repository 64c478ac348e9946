/* SPDX-License-Identifier: BSD-2-Clause */

/* The subnet management agent: checks the M_Key, and handles Get. */
#include "faults.h"
#include "link.h"
#include "links.h"
#include "routes.h"
#include "settings.h"
#include "sma.h"
#include "traps.h"
#include "trees.h"

#include <infiniband/mad_link.h>

#define VL_CAP            4 /* as encoded: VL0 - VL7 */
#define MULTICAST_FDB_CAP 1024
#define RESPONSE_TIME     16 /* 4.096 us * 2^16: 268 ms */
#define MELLANOX          0x02c9

uint32_t sma_port(const struct fabric *fabric, uint32_t node, unsigned int number,
		  uint8_t in_port)
{
	if (hardware(fabric, node)->type != NODE_SWITCH && number == 0)
		number = in_port;
	return graph_port(&fabric->graph, node, number);
}

static bool is_switch(const struct fabric *fabric, uint32_t node)
{
	return hardware(fabric, node)->type == NODE_SWITCH;
}

static void read_node_info(const struct fabric *fabric, uint32_t node, uint8_t in_port,
			   uint8_t *data)
{
	const struct graph_node *hw = hardware(fabric, node);
	const struct graph_node *original =
		hardware(fabric, faults_original(fabric, RULE_CLONE, node));
	uint32_t port = original->type == NODE_SWITCH ? 0 : in_port;

	mad_set_field(data, 0, IB_NODE_BASE_VERS_F, 1);
	mad_set_field(data, 0, IB_NODE_CLASS_VERS_F, 1);
	mad_set_field(data, 0, IB_NODE_TYPE_F, hw->type);
	mad_set_field(data, 0, IB_NODE_NPORTS_F, hw->port_count);
	mad_set_field64(data, 0, IB_NODE_SYSTEM_GUID_F, original->system_guid);
	mad_set_field64(data, 0, IB_NODE_GUID_F, original->guid);
	if (port <= original->port_count)
		mad_set_field64(data, 0, IB_NODE_PORT_GUID_F,
				cable(fabric, original->first_port + port)->guid);
	mad_set_field(data, 0, IB_NODE_PARTITION_CAP_F, PKEY_COUNT);
	mad_set_field(data, 0, IB_NODE_DEVID_F, hw->device_id);
	mad_set_field(data, 0, IB_NODE_REVISION_F, 0);
	mad_set_field(data, 0, IB_NODE_LOCAL_PORT_F, in_port);
	mad_set_field(data, 0, IB_NODE_VENDORID_F, hw->vendor_id);
}

static void read_switch_info(const struct fabric *fabric, uint32_t node, uint8_t *data)
{
	mad_set_field(data, 0, IB_SW_LINEAR_FDB_CAP_F, LID_COUNT - 1);
	mad_set_field(data, 0, IB_SW_MCAST_FDB_CAP_F, MULTICAST_FDB_CAP);
	mad_set_field(data, 0, IB_SW_LINEAR_FDB_TOP_F, fabric->nodes[node].linear_top);
	mad_set_field(data, 0, IB_SW_LIFE_TIME_F, fabric->nodes[node].life_time);
	mad_set_field(data, 0, IB_SW_STATE_CHANGE_F, fabric->nodes[node].state_change);
	mad_set_field(data, 0, IB_SW_PARTITION_ENFORCE_CAP_F, PKEY_COUNT);
	mad_set_field(data, 0, IB_SW_PARTITION_ENF_INB_F, 1);
	mad_set_field(data, 0, IB_SW_PARTITION_ENF_OUTB_F, 1);
	mad_set_field(data, 0, IB_SW_ENHANCED_PORT0_F, hardware(fabric, node)->enhanced_port0);
}

static uint16_t port_capabilities2(const struct fabric *fabric, uint32_t port)
{
	uint16_t bits = link_capabilities2(cable(fabric, port));

	if (faults_fec_mode(fabric, port) != NO_LIMIT)
		bits |= MAD_PORT_CAP2_PORT_INFO_EXTENDED;
	return bits;
}

/* A switch's capabilities are those of all its ports, at port 0. */
static uint16_t capabilities2(const struct fabric *fabric, uint32_t port)
{
	const struct graph_node *node = hardware(fabric, cable(fabric, port)->node);
	uint16_t bits = 0;

	if (node->type != NODE_SWITCH)
		return port_capabilities2(fabric, port);
	for (uint32_t i = 1; i <= node->port_count; i++)
		bits |= port_capabilities2(fabric, node->first_port + i);
	return bits;
}

/* Fields of the node's end port: a CA's port, a switch's port 0. */
static void read_end_port(const struct fabric *fabric, uint32_t port,
			  const struct port_settings *settings, uint8_t *data)
{
	const struct port *state = &fabric->ports[port];
	uint32_t node = cable(fabric, port)->node;
	const struct graph_node *original =
		hardware(fabric, faults_original(fabric, RULE_LID, node));
	uint32_t capabilities = state->capability_mask;
	uint16_t lid = state->lid;

	if (original != hardware(fabric, node))
		lid = fabric->ports[original->first_port + (original->type != NODE_SWITCH)].lid;
	if (faults_master(fabric, node))
		capabilities |= IS_SM;

	mad_set_field64(data, 0, IB_PORT_MKEY_F, settings->mkey);
	mad_set_field64(data, 0, IB_PORT_GID_PREFIX_F, settings->gid_prefix);
	mad_set_field(data, 0, IB_PORT_LID_F, lid);
	mad_set_field(data, 0, IB_PORT_SMLID_F, state->sm_lid);
	mad_set_field(data, 0, IB_PORT_CAPMASK_F, capabilities);
	mad_set_field(data, 0, IB_PORT_CAPMASK2_F, capabilities2(fabric, port));
	mad_set_field(data, 0, IB_PORT_MKEY_LEASE_F, settings->mkey_lease);
	mad_set_field(data, 0, IB_PORT_MKEY_PROT_BITS_F, settings->mkey_protect);
	mad_set_field(data, 0, IB_PORT_LMC_F, state->lmc);
	mad_set_field(data, 0, IB_PORT_SMSL_F, state->sm_sl);
	mad_set_field(data, 0, IB_PORT_MKEY_VIOL_F, settings->mkey_violations);
	mad_set_field(data, 0, IB_PORT_PKEY_VIOL_F, settings->pkey_violations);
	mad_set_field(data, 0, IB_PORT_QKEY_VIOL_F, settings->qkey_violations);
	mad_set_field(data, 0, IB_PORT_GUID_CAP_F, guid_capacity(fabric, port));
	mad_set_field(data, 0, IB_PORT_CLIENT_REREG_F, settings->client_reregister);
	mad_set_field(data, 0, IB_PORT_SUBN_TIMEOUT_F, settings->subnet_timeout);
	mad_set_field(data, 0, IB_PORT_RESP_TIME_VAL_F, RESPONSE_TIME);
}

static void read_speeds(const struct fabric *fabric, uint32_t port,
			const struct port_settings *settings, uint8_t *data)
{
	const struct graph_port *end = cable(fabric, port);
	bool linked = link_is_up(fabric, port) && end->peer != NONE;
	enum link_speed most = (enum link_speed)end->speed;
	enum link_speed speed = active_speed(fabric, port);

	mad_set_field(data, 0, IB_PORT_LINK_WIDTH_ENABLED_F, settings->width_enabled);
	mad_set_field(data, 0, IB_PORT_LINK_WIDTH_SUPPORTED_F, widths_supported(end));
	mad_set_field(data, 0, IB_PORT_LINK_WIDTH_ACTIVE_F,
		      width_bit(linked ? fabric->ports[port].width : end->width));
	mad_set_field(data, 0, IB_PORT_LINK_SPEED_SUPPORTED_F, speeds_supported(end));
	mad_set_field(data, 0, IB_PORT_LINK_SPEED_ENABLED_F, settings->speed_enabled);
	mad_set_field(data, 0, IB_PORT_LINK_SPEED_ACTIVE_F, speed_bit(linked ? speed : SDR));
	mad_set_field(data, 0, IB_PORT_LINK_SPEED_EXT_SUPPORTED_F, speeds_ext_supported(end));
	mad_set_field(data, 0, IB_PORT_LINK_SPEED_EXT_ENABLED_F, settings->speed_ext_enabled);
	mad_set_field(data, 0, IB_PORT_LINK_SPEED_EXT_ACTIVE_F,
		      linked ? speed_ext_bit(speed) : 0);
	mad_set_field(data, 0, IB_PORT_LINK_SPEED_EXT_SUPPORTED_2_F, speed_ext2_bit(most));
	mad_set_field(data, 0, IB_PORT_LINK_SPEED_EXT_ENABLED_2_F,
		      settings->speed_ext2_enabled);
	mad_set_field(data, 0, IB_PORT_LINK_SPEED_EXT_ACTIVE_2_F,
		      linked ? speed_ext2_bit(speed) : 0);
}

static void read_port_info(const struct fabric *fabric, uint32_t port, uint8_t in_port,
			   uint8_t *data)
{
	const struct port *state = &fabric->ports[port];
	struct port_settings defaults;
	const struct port_settings *settings = settings_read(fabric, port, &defaults);

	if (end_port(fabric, port) == port)
		read_end_port(fabric, port, settings, data);
	read_speeds(fabric, port, settings, data);
	mad_set_field(data, 0, IB_PORT_LOCAL_PORT_F, in_port);
	mad_set_field(data, 0, IB_PORT_STATE_F, state->state);
	mad_set_field(data, 0, IB_PORT_PHYS_STATE_F, state->phys_state);
	mad_set_field(data, 0, IB_PORT_LINK_DOWN_DEF_F, settings->link_down_default);
	mad_set_field(data, 0, IB_PORT_NEIGHBOR_MTU_F, state->mtu);
	mad_set_field(data, 0, IB_PORT_MTU_CAP_F, DEFAULT_MTU);
	mad_set_field(data, 0, IB_PORT_VL_CAP_F, VL_CAP);
	mad_set_field(data, 0, IB_PORT_OPER_VLS_F, state->operational_vls);
	mad_set_field(data, 0, IB_PORT_VL_HIGH_LIMIT_F, settings->high_limit);
	mad_set_field(data, 0, IB_PORT_VL_ARBITRATION_HIGH_CAP_F, 64);
	mad_set_field(data, 0, IB_PORT_VL_ARBITRATION_LOW_CAP_F, 64);
	mad_set_field(data, 0, IB_PORT_VL_STALL_COUNT_F, settings->stall_count);
	mad_set_field(data, 0, IB_PORT_HOQ_LIFE_F, settings->hoq_life);
	mad_set_field(data, 0, IB_PORT_PART_EN_INB_F, settings->enforcement >> 3 & 1);
	mad_set_field(data, 0, IB_PORT_PART_EN_OUTB_F, settings->enforcement >> 2 & 1);
	mad_set_field(data, 0, IB_PORT_FILTER_RAW_INB_F, settings->enforcement >> 1 & 1);
	mad_set_field(data, 0, IB_PORT_FILTER_RAW_OUTB_F, settings->enforcement & 1);
	mad_set_field(data, 0, IB_PORT_LOCAL_PHYS_ERR_F, settings->error_thresholds >> 4);
	mad_set_field(data, 0, IB_PORT_OVERRUN_ERR_F, settings->error_thresholds & 15);
}

static bool read_guid_info(const struct fabric *fabric, uint32_t port, uint32_t block,
			   uint8_t *data)
{
	struct port_settings defaults;
	const struct port_settings *settings = settings_read(fabric, port, &defaults);

	if (block != 0 || end_port(fabric, port) != port)
		return false;
	put64(data, cable(fabric, port)->guid);
	for (unsigned int i = 1; i < guid_capacity(fabric, port); i++)
		put64(data + 8UL * i, settings->guids[i]);
	return true;
}

static bool read_pkeys(const struct fabric *fabric, uint32_t port, uint32_t block,
		       uint8_t *data)
{
	if (port == NONE || block >= PKEY_COUNT / PKEYS_PER_BLOCK)
		return false;
	for (unsigned int i = 0; i < PKEYS_PER_BLOCK; i++)
		put16(data + 2UL * i, pkey_at(fabric, port, block * PKEYS_PER_BLOCK + i));
	return true;
}

/* The default mapping: SL n to VL n, for as many VLs as there are. */
static const uint8_t default_sl_to_vl[8] = {0x01, 0x23, 0x45, 0x67, 0x01, 0x23, 0x45, 0x67};

static bool read_sl_to_vl(const struct fabric *fabric, uint32_t port, uint8_t input,
			  uint8_t *data)
{
	struct port_settings defaults;
	const struct sl_to_vl *map;

	if (port == NONE)
		return false;
	map = settings_read(fabric, port, &defaults)->sl_to_vl;
	while (map && map->input != input)
		map = map->next;
	memcpy(data, map ? map->map : default_sl_to_vl, sizeof(default_sl_to_vl));
	return true;
}

static bool read_vl_arbitration(const struct fabric *fabric, uint32_t port, uint32_t block,
				uint8_t *data)
{
	struct port_settings defaults;
	const struct port_settings *settings;

	if (port == NONE || block < 1 || block > VL_ARB_BLOCKS)
		return false;
	settings = settings_read(fabric, port, &defaults);
	if (settings->vl_arbitration)
		memcpy(data, settings->vl_arbitration[block - 1], 64);
	return true;
}

static bool has_manager(const struct fabric *fabric, uint32_t port)
{
	return port != NONE &&
	       ((fabric->sm_port != NONE && end_port(fabric, port) == fabric->sm_port) ||
		faults_master(fabric, cable(fabric, port)->node));
}

static bool read_sm_info(const struct fabric *fabric, uint32_t port, uint8_t *data)
{
	if (!has_manager(fabric, port))
		return false;
	mad_set_field64(data, 0, IB_SMINFO_GUID_F, cable(fabric, end_port(fabric, port))->guid);
	mad_set_field(data, 0, IB_SMINFO_ACT_F, (uint32_t)(fabric->now / (10 * SECOND)) + 1);
	mad_set_field(data, 0, IB_SMINFO_PRIO_F, SM_PRIORITY);
	mad_set_field(data, 0, IB_SMINFO_STATE_F, SM_STATE_MASTER);
	return true;
}

static bool read_mlnx_port(const struct fabric *fabric, uint32_t port, uint8_t *data)
{
	struct port_settings defaults;

	if (port == NONE || hardware(fabric, cable(fabric, port)->node)->vendor_id != MELLANOX)
		return false;
	mad_set_field(data, 0, IB_MLNX_EXT_PORT_LINK_SPEED_SUPPORTED_F,
		      cable(fabric, port)->speed >= FDR10);
	mad_set_field(data, 0, IB_MLNX_EXT_PORT_LINK_SPEED_ENABLED_F,
		      settings_read(fabric, port, &defaults)->fdr10_enabled);
	mad_set_field(data, 0, IB_MLNX_EXT_PORT_LINK_SPEED_ACTIVE_F,
		      active_speed(fabric, port) == FDR10 && link_is_up(fabric, port));
	return true;
}

/* PortInfoExtended (IBA 14.2.5.19): each speed from FDR to NDR has the supported modes and the
 * enabled ones, 16 bits each. */
static bool read_fec_modes(const struct fabric *fabric, uint32_t port, uint8_t *data)
{
	uint32_t mode = port == NONE ? NO_LIMIT : faults_fec_mode(fabric, port);

	if (mode == NO_LIMIT)
		return false;
	mad_set_field(data, 0, IB_PORT_EXT_CAPMASK_F, 1);
	mad_set_field(data, 0, IB_PORT_EXT_FEC_MODE_ACTIVE_F, mode);
	for (unsigned int speed = 0; speed < 4; speed++) {
		data[4 * speed + 7] = 0xf;
		data[4 * speed + 9] = (uint8_t)(1U << (mode & 3));
	}
	return true;
}

static bool read_forwarding(struct fabric *fabric, uint32_t node, unsigned int attribute,
			    uint32_t modifier, uint8_t *data)
{
	if (attribute == IB_ATTR_LINEARFORWTBL) {
		if (modifier >= LID_COUNT / 64)
			return false;
		route_block(fabric, node, modifier, data);
		return true;
	}
	if ((modifier & 0x1ff) >= MULTICAST_FDB_CAP / 32)
		return false;
	trees_settle(fabric);
	route_multicast_block(fabric, node, modifier & 0x1ff, modifier >> 28, data);
	return true;
}

bool sma_read(struct fabric *fabric, uint32_t node, unsigned int attribute, uint32_t modifier,
	      uint8_t in_port, uint8_t data[SMP_DATA])
{
	bool of_switch = is_switch(fabric, node);
	uint32_t named = sma_port(fabric, node, modifier & 0xff, in_port);
	uint32_t own = sma_port(fabric, node, 0, in_port);
	const char *text;

	memset(data, 0, SMP_DATA);
	switch (attribute) {
	case IB_ATTR_NODE_DESC:
		node = faults_original(fabric, RULE_NAME, node);
		text = fabric->nodes[node].description;
		if (!text)
			text = hardware(fabric, node)->name;
		memcpy(data, text, strlen(text));
		return true;
	case IB_ATTR_NODE_INFO:
		read_node_info(fabric, node, in_port, data);
		return true;
	case IB_ATTR_SWITCH_INFO:
		if (of_switch)
			read_switch_info(fabric, node, data);
		return of_switch;
	case IB_ATTR_PORT_INFO:
		if (named != NONE)
			read_port_info(fabric, named, in_port, data);
		return named != NONE;
	case IB_ATTR_GUID_INFO:
		return own != NONE && read_guid_info(fabric, own, modifier, data);
	case IB_ATTR_PKEY_TBL:
		named = of_switch ? sma_port(fabric, node, modifier >> 16, in_port) : own;
		return read_pkeys(fabric, named, modifier & 0xffff, data);
	case IB_ATTR_SLVL_TABLE:
		return read_sl_to_vl(fabric, of_switch ? named : own,
				     of_switch ? (uint8_t)(modifier >> 8) : 0, data);
	case IB_ATTR_VL_ARBITRATION:
		return read_vl_arbitration(fabric, of_switch ? named : own, modifier >> 16,
					   data);
	case IB_ATTR_LINEARFORWTBL:
	case IB_ATTR_MULTICASTFORWTBL:
		return of_switch && read_forwarding(fabric, node, attribute, modifier, data);
	case IB_ATTR_SMINFO:
		return read_sm_info(fabric, own, data);
	case IB_ATTR_PORT_INFO_EXT:
		return read_fec_modes(fabric, named, data);
	case IB_ATTR_MLNX_EXT_PORT_INFO:
		return read_mlnx_port(fabric, named, data);
	default:
		return false;
	}
}

/*
 * Whether the M_Key allows the request (IBA 14.2.4): every Set needs the key, and from
 * protection level 2 on so does a Get. A violation starts the lease; the protection ends with
 * it.
 */
static bool key_fits(struct query *query, uint32_t port, bool set)
{
	struct port_settings *settings = query->fabric->ports[port].settings;

	if (!settings || !settings->mkey || settings->mkey == get64(query->mad + 24)) {
		if (settings)
			settings->lease_end = 0;
		return true;
	}
	if (settings->lease_end && query->fabric->now >= settings->lease_end) {
		settings->mkey_protect = 0;
		settings->lease_end = 0;
	}
	if (!set && settings->mkey_protect < 2)
		return true;
	if (settings->mkey_violations != 0xffff)
		settings->mkey_violations++;
	if (settings->mkey_lease && !settings->lease_end)
		settings->lease_end = query->fabric->now + settings->mkey_lease * SECOND;
	trap_mkey(query->fabric, port, query->mad);
	return false;
}

/* From protection level 1 on, the key can only be read with the key. A Set had the key, so its
 * response has the key that applies from now on. */
static void hide_key(const struct query *query, uint32_t port, unsigned int attribute)
{
	const struct port_settings *settings = query->fabric->ports[port].settings;

	if (attribute == IB_ATTR_PORT_INFO && mad_method(query->mad) == METHOD_GET &&
	    settings && settings->mkey_protect > 0 && settings->mkey != get64(query->mad + 24))
		mad_set_field64(query->mad, SMP_DATA, IB_PORT_MKEY_F, 0);
}

/* Whether the node supports the attribute, so that it was the modifier that was wrong. */
static bool is_known(unsigned int attribute, bool of_switch)
{
	switch (attribute) {
	case IB_ATTR_SWITCH_INFO:
	case IB_ATTR_LINEARFORWTBL:
	case IB_ATTR_MULTICASTFORWTBL:
		return of_switch;
	case IB_ATTR_NODE_DESC:
	case IB_ATTR_NODE_INFO:
	case IB_ATTR_PORT_INFO:
	case IB_ATTR_GUID_INFO:
	case IB_ATTR_PKEY_TBL:
	case IB_ATTR_SLVL_TABLE:
	case IB_ATTR_VL_ARBITRATION:
		return true;
	default:
		return false;
	}
}

bool sma_respond(struct query *query)
{
	struct fabric *fabric = query->fabric;
	uint8_t *mad = query->mad;
	unsigned int attribute = mad_attribute(mad);
	unsigned int method = mad_method(mad);
	uint32_t port = sma_port(fabric, query->node, 0, query->in_port);
	unsigned int status = STATUS_OK;

	if (mad_is_response(mad) || method == METHOD_TRAP || port == NONE)
		return false;
	if (mad[0] != 1 || mad_version(mad) != 1) {
		respond(mad, STATUS_BAD_VERSION);
		return true;
	}
	if (method != METHOD_GET && method != METHOD_SET) {
		respond(mad, STATUS_BAD_METHOD);
		return true;
	}
	if (!key_fits(query, port, method == METHOD_SET))
		return false;
	if (method == METHOD_SET)
		status = sma_write(fabric, query->node, attribute, mad_modifier(mad),
				   query->in_port, mad + SMP_DATA);
	if (status == STATUS_OK && !sma_read(fabric, query->node, attribute, mad_modifier(mad),
					     query->in_port, mad + SMP_DATA))
		status = is_known(attribute, is_switch(fabric, query->node))
				 ? STATUS_BAD_VALUE
				 : STATUS_BAD_ATTRIBUTE;
	hide_key(query, port, attribute);
	respond(mad, status);
	return true;
}
