/* SPDX-License-Identifier: BSD-2-Clause */

/* The subnet management agent: Set, and the values it refuses (IBA 14.2.5). */
#include <stdlib.h>

#include "link.h"
#include "links.h"
#include "routes.h"
#include "settings.h"
#include "sma.h"
#include "trees.h"

enum {
	NO_MEMORY = STATUS_BUSY
}; /* try again later */

static unsigned int field(uint8_t *data, enum MAD_FIELDS id)
{
	return mad_get_field(data, 0, id);
}

/* An "enabled" field: 0 changes nothing, all ones means everything supported; any other value
 * must be a subset of that. */
static bool enable(uint8_t *enabled, unsigned int wanted, unsigned int supported,
		   unsigned int all_ones)
{
	if (wanted == 0)
		return true;
	if (wanted == all_ones)
		wanted = supported;
	if (wanted & ~supported)
		return false;
	*enabled = (uint8_t)wanted;
	return true;
}

/* Fields of the end port: addresses, keys, the manager. */
static unsigned int set_end_port(struct fabric *fabric, uint32_t port,
				 struct port_settings *settings, uint8_t *data)
{
	struct port *state = &fabric->ports[port];
	unsigned int lid = field(data, IB_PORT_LID_F);
	unsigned int lmc = field(data, IB_PORT_LMC_F);

	if (lid == 0 || lid + (1U << lmc) > LID_COUNT || lid & ((1U << lmc) - 1))
		return STATUS_BAD_VALUE;
	if (lid != state->lid || lmc != state->lmc)
		set_lid(fabric, port, (uint16_t)lid, (uint8_t)lmc);
	state->sm_lid = (uint16_t)field(data, IB_PORT_SMLID_F);
	state->sm_sl = (uint8_t)field(data, IB_PORT_SMSL_F);
	settings->mkey = mad_get_field64(data, 0, IB_PORT_MKEY_F);
	settings->gid_prefix = mad_get_field64(data, 0, IB_PORT_GID_PREFIX_F);
	settings->mkey_lease = (uint16_t)field(data, IB_PORT_MKEY_LEASE_F);
	settings->mkey_protect = (uint8_t)field(data, IB_PORT_MKEY_PROT_BITS_F);
	settings->mkey_violations = (uint16_t)field(data, IB_PORT_MKEY_VIOL_F);
	settings->pkey_violations = (uint16_t)field(data, IB_PORT_PKEY_VIOL_F);
	settings->qkey_violations = (uint16_t)field(data, IB_PORT_QKEY_VIOL_F);
	settings->subnet_timeout = (uint8_t)field(data, IB_PORT_SUBN_TIMEOUT_F);
	return STATUS_OK;
}

static unsigned int set_link(struct fabric *fabric, uint32_t port,
			     struct port_settings *settings, uint8_t *data)
{
	const struct graph_port *end = cable(fabric, port);
	unsigned int down_default = field(data, IB_PORT_LINK_DOWN_DEF_F);
	unsigned int extended = field(data, IB_PORT_LINK_SPEED_EXT_ENABLED_F);

	if (!enable(&settings->width_enabled, field(data, IB_PORT_LINK_WIDTH_ENABLED_F),
		    widths_supported(end), 255) ||
	    !enable(&settings->speed_enabled, field(data, IB_PORT_LINK_SPEED_ENABLED_F),
		    speeds_supported(end), 15) ||
	    down_default > 2)
		return STATUS_BAD_VALUE;
	/* managers that do not know these two fields ignore them */
	if (extended == NO_EXTENDED_SPEEDS)
		settings->speed_ext_enabled = NO_EXTENDED_SPEEDS;
	else
		enable(&settings->speed_ext_enabled, extended, speeds_ext_supported(end), 31);
	enable(&settings->speed_ext2_enabled, field(data, IB_PORT_LINK_SPEED_EXT_ENABLED_2_F),
	       speed_ext2_bit(end->speed), 7);
	if (down_default)
		settings->link_down_default = (uint8_t)down_default;
	return STATUS_OK;
}

static unsigned int set_lanes(struct fabric *fabric, uint32_t port,
			      struct port_settings *settings, uint8_t *data)
{
	struct port *state = &fabric->ports[port];
	unsigned int mtu = field(data, IB_PORT_NEIGHBOR_MTU_F);
	unsigned int vls = field(data, IB_PORT_OPER_VLS_F);

	if (mtu > DEFAULT_MTU || vls > 4)
		return STATUS_BAD_VALUE;
	if (mtu)
		state->mtu = (uint8_t)mtu;
	if (vls)
		state->operational_vls = (uint8_t)vls;
	settings->high_limit = (uint8_t)field(data, IB_PORT_VL_HIGH_LIMIT_F);
	settings->stall_count = (uint8_t)field(data, IB_PORT_VL_STALL_COUNT_F);
	settings->hoq_life = (uint8_t)field(data, IB_PORT_HOQ_LIFE_F);
	settings->enforcement = (uint8_t)(field(data, IB_PORT_PART_EN_INB_F) << 3 |
					  field(data, IB_PORT_PART_EN_OUTB_F) << 2 |
					  field(data, IB_PORT_FILTER_RAW_INB_F) << 1 |
					  field(data, IB_PORT_FILTER_RAW_OUTB_F));
	settings->error_thresholds = (uint8_t)(field(data, IB_PORT_LOCAL_PHYS_ERR_F) << 4 |
					       field(data, IB_PORT_OVERRUN_ERR_F));
	return STATUS_OK;
}

/* The port's state machine (IBA 7.2.7, 14.2.5.6). A 0 in either field changes nothing. */
static unsigned int set_state(struct fabric *fabric, uint32_t port, uint8_t *data)
{
	struct port *state = &fabric->ports[port];
	unsigned int wanted = field(data, IB_PORT_STATE_F);
	unsigned int phys = field(data, IB_PORT_PHYS_STATE_F);

	if (cable(fabric, port)->peer == NONE && end_port(fabric, port) == port)
		return STATUS_OK; /* a switch's port 0 has no link */
	if (phys > 3)
		return STATUS_BAD_VALUE;
	if (phys == PHYS_DISABLED) {
		link_disable(fabric, port);
		return STATUS_OK;
	}
	if (phys) {
		link_train(fabric, port);
		return STATUS_OK;
	}
	switch (wanted) {
	case 0:
		return STATUS_OK;
	case PORT_DOWN:
		link_train(fabric, port);
		return STATUS_OK;
	case PORT_ARMED:
	case PORT_ACTIVE:
		if (state->state < wanted - 1)
			return STATUS_BAD_VALUE;
		if (state->state < wanted)
			link_set_state(fabric, port, (enum port_state)wanted);
		return STATUS_OK;
	default:
		return STATUS_BAD_VALUE;
	}
}

static unsigned int set_port_info(struct fabric *fabric, uint32_t port, uint8_t *data)
{
	struct port_settings *settings = settings_of(fabric, port);
	struct port_settings settings_before;
	struct port before;
	unsigned int status = STATUS_OK;

	if (!settings)
		return NO_MEMORY;
	before = fabric->ports[port];
	settings_before = *settings;
	if (end_port(fabric, port) == port)
		status = set_end_port(fabric, port, settings, data);
	if (status == STATUS_OK)
		status = set_link(fabric, port, settings, data);
	if (status == STATUS_OK)
		status = set_lanes(fabric, port, settings, data);
	if (status == STATUS_OK)
		status = set_state(fabric, port, data);
	if (status != STATUS_OK) { /* a refused Set changes nothing */
		set_lid(fabric, port, before.lid, before.lmc);
		fabric->ports[port] = before;
		*settings = settings_before;
	}
	link_follow(fabric, port);
	port_changed(fabric, port);
	return status;
}

static unsigned int set_switch_info(struct fabric *fabric, uint32_t node, uint8_t *data)
{
	unsigned int top = field(data, IB_SW_LINEAR_FDB_TOP_F);

	if (top >= LID_COUNT)
		return STATUS_BAD_VALUE;
	fabric->nodes[node].linear_top = (uint16_t)top;
	fabric->nodes[node].life_time = (uint8_t)field(data, IB_SW_LIFE_TIME_F);
	if (field(data, IB_SW_STATE_CHANGE_F)) /* writing a one clears it */
		fabric->nodes[node].state_change = false;
	return STATUS_OK;
}

static unsigned int set_guids(struct fabric *fabric, uint32_t port, uint32_t block,
			      uint8_t *data)
{
	struct port_settings *settings = settings_of(fabric, port);

	if (block != 0)
		return STATUS_BAD_VALUE;
	if (!settings)
		return NO_MEMORY;
	for (unsigned int i = 1; i < guid_capacity(fabric, port);
	     i++) /* the first entry is read only */
		settings->guids[i] = get64(data + 8UL * i);
	port_changed(fabric, port);
	return STATUS_OK;
}

static unsigned int set_pkeys(struct fabric *fabric, uint32_t port, uint32_t block,
			      uint8_t *data)
{
	struct port_settings *settings;

	if (port == NONE || block >= PKEY_COUNT / PKEYS_PER_BLOCK)
		return STATUS_BAD_VALUE;
	settings = settings_of(fabric, port);
	if (!settings)
		return NO_MEMORY;
	for (unsigned int i = 0; i < PKEYS_PER_BLOCK; i++)
		settings->pkeys[block * PKEYS_PER_BLOCK + i] = (uint16_t)get16(data + 2UL * i);
	port_changed(fabric, port);
	return STATUS_OK;
}

static unsigned int set_sl_to_vl(struct fabric *fabric, uint32_t port, uint8_t input,
				 uint8_t *data)
{
	struct port_settings *settings;
	struct sl_to_vl *map;

	if (port == NONE)
		return STATUS_BAD_VALUE;
	settings = settings_of(fabric, port);
	if (!settings)
		return NO_MEMORY;
	for (map = settings->sl_to_vl; map && map->input != input; map = map->next)
		;
	if (!map) {
		map = malloc(sizeof(*map));
		if (!map)
			return NO_MEMORY;
		map->input = input;
		map->next = settings->sl_to_vl;
		settings->sl_to_vl = map;
	}
	memcpy(map->map, data, sizeof(map->map));
	return STATUS_OK;
}

static unsigned int set_vl_arbitration(struct fabric *fabric, uint32_t port, uint32_t block,
				       uint8_t *data)
{
	struct port_settings *settings;

	if (port == NONE || block < 1 || block > VL_ARB_BLOCKS)
		return STATUS_BAD_VALUE;
	settings = settings_of(fabric, port);
	if (settings && !settings->vl_arbitration)
		settings->vl_arbitration = calloc(VL_ARB_BLOCKS, 64);
	if (!settings || !settings->vl_arbitration)
		return NO_MEMORY;
	memcpy(settings->vl_arbitration[block - 1], data, 64);
	return STATUS_OK;
}

static unsigned int set_mlnx_port(struct fabric *fabric, uint32_t port, uint8_t *data)
{
	struct port_settings *settings = port == NONE ? NULL : settings_of(fabric, port);

	if (!settings)
		return port == NONE ? STATUS_BAD_VALUE : NO_MEMORY;
	settings->fdr10_enabled = (uint8_t)field(data, IB_MLNX_EXT_PORT_LINK_SPEED_ENABLED_F);
	link_follow(fabric, port);
	return STATUS_OK;
}

static unsigned int set_switch_table(struct fabric *fabric, uint32_t node,
				     unsigned int attribute, uint32_t modifier, uint8_t *data)
{
	int error;

	if (attribute == IB_ATTR_SWITCH_INFO)
		return set_switch_info(fabric, node, data);
	if (attribute == IB_ATTR_LINEARFORWTBL) {
		if (modifier >= LID_COUNT / 64)
			return STATUS_BAD_VALUE;
		error = route_set_block(fabric, node, modifier, data);
	} else {
		if ((modifier & 0x1ff) >= 32)
			return STATUS_BAD_VALUE;
		trees_settle(fabric); /* applies earlier joins now, so that they do not
					 overwrite this */
		error = route_set_multicast_block(fabric, node, modifier & 0x1ff,
						  modifier >> 28, data);
	}
	return error ? NO_MEMORY : STATUS_OK;
}

unsigned int sma_write(struct fabric *fabric, uint32_t node, unsigned int attribute,
		       uint32_t modifier, uint8_t in_port, uint8_t data[SMP_DATA])
{
	bool of_switch = hardware(fabric, node)->type == NODE_SWITCH;
	uint32_t port = sma_port(fabric, node, of_switch ? modifier & 0xff : 0, in_port);

	switch (attribute) {
	case IB_ATTR_PORT_INFO:
		port = sma_port(fabric, node, modifier & 0xff, in_port);
		return port == NONE ? STATUS_BAD_VALUE : set_port_info(fabric, port, data);
	case IB_ATTR_GUID_INFO:
		return set_guids(fabric, sma_port(fabric, node, 0, in_port), modifier, data);
	case IB_ATTR_PKEY_TBL:
		if (of_switch)
			port = sma_port(fabric, node, modifier >> 16, in_port);
		return set_pkeys(fabric, port, modifier & 0xffff, data);
	case IB_ATTR_SLVL_TABLE:
		return set_sl_to_vl(fabric, port, of_switch ? (uint8_t)(modifier >> 8) : 0,
				    data);
	case IB_ATTR_VL_ARBITRATION:
		return set_vl_arbitration(fabric, port, modifier >> 16, data);
	case IB_ATTR_SWITCH_INFO:
	case IB_ATTR_LINEARFORWTBL:
	case IB_ATTR_MULTICASTFORWTBL:
		if (of_switch)
			return set_switch_table(fabric, node, attribute, modifier, data);
		return STATUS_BAD_ATTRIBUTE;
	case IB_ATTR_MLNX_EXT_PORT_INFO:
		return set_mlnx_port(fabric, sma_port(fabric, node, modifier & 0xff, in_port),
				     data);
	case IB_ATTR_SMINFO: /* the built-in SM ignores the values and responds with its own */
		return STATUS_OK;
	default:
		return STATUS_BAD_ATTRIBUTE;
	}
}
