/* SPDX-License-Identifier: BSD-2-Clause */

/* The subnet in memory: made from a topology, LIDs kept, small questions answered. */
#include <errno.h>
#include <stdlib.h>

#include "counters.h"
#include "gmp_agents.h"
#include "link.h"
#include "routes.h"
#include "settings.h"

/* PortInfo's CapabilityMask (IBA 14.2.5.6), by bit. */
enum {
	HAS_TRAP = 1 << 3,
	HAS_AUTOMATIC_MIGRATION = 1 << 5,
	HAS_SL_MAPPING = 1 << 6,
	HAS_SYSTEM_IMAGE_GUID = 1 << 11,
	HAS_EXTENDED_SPEEDS = 1 << 14,
	HAS_COMMUNICATION_MANAGEMENT = 1 << 16,
	HAS_VENDOR_CLASS = 1 << 20,
	HAS_CAPABILITY_MASK_TRAP = 1 << 22,
	HAS_CLIENT_REREGISTRATION = 1 << 25
};

static void init_port(struct fabric *fabric, uint32_t index)
{
	const struct graph_port *end = cable(fabric, index);
	const struct graph_node *node = hardware(fabric, end->node);
	struct port *port = &fabric->ports[index];
	bool own = node->type == NODE_SWITCH && end->number == 0;
	bool up = own || end->peer != NONE;

	port->state = own ? PORT_ACTIVE : up ? PORT_INIT : PORT_DOWN;
	port->phys_state = up ? PHYS_LINK_UP : PHYS_POLLING;
	port->mtu = DEFAULT_MTU;
	port->operational_vls = OPERATIONAL_VLS;
	if (node->type != NODE_SWITCH)
		port->capability_mask = HAS_TRAP | HAS_AUTOMATIC_MIGRATION | HAS_SL_MAPPING |
					HAS_SYSTEM_IMAGE_GUID | HAS_COMMUNICATION_MANAGEMENT |
					HAS_VENDOR_CLASS | HAS_CAPABILITY_MASK_TRAP |
					HAS_CLIENT_REREGISTRATION | HAS_EXTENDED_SPEEDS;
	else if (own) /* what a switch's ports can do stands in its port 0 */
		port->capability_mask = HAS_TRAP | HAS_SL_MAPPING | HAS_SYSTEM_IMAGE_GUID |
					HAS_VENDOR_CLASS | HAS_CAPABILITY_MASK_TRAP |
					HAS_EXTENDED_SPEEDS;
}

int fabric_init(struct fabric *fabric, struct graph *graph, uint64_t seed)
{
	*fabric = (struct fabric){.graph = *graph, .seed = seed, .sm_port = NONE};
	graph_init(graph);
	fabric->ports = calloc(fabric->graph.port_count + 1UL, sizeof(*fabric->ports));
	fabric->nodes = calloc(fabric->graph.node_count + 1UL, sizeof(*fabric->nodes));
	fabric->lids = malloc(LID_COUNT * sizeof(*fabric->lids));
	if (!fabric->ports || !fabric->nodes || !fabric->lids) {
		fabric_free(fabric);
		return -ENOMEM;
	}
	for (uint32_t lid = 0; lid < LID_COUNT; lid++)
		fabric->lids[lid] = NONE;
	for (uint32_t i = 0; i < fabric->graph.port_count; i++)
		init_port(fabric, i);
	return 0;
}

void fabric_free(struct fabric *fabric)
{
	for (uint32_t i = 0; fabric->ports && i < fabric->graph.port_count; i++) {
		settings_free(fabric->ports[i].settings);
		counters_free(fabric->ports[i].counters);
	}
	for (uint32_t i = 0; fabric->nodes && i < fabric->graph.node_count; i++)
		switch_tables_free(fabric->nodes[i].tables);
	routes_free(fabric);
	gmp_memory_free(fabric->gmp_memory);
	free(fabric->ports);
	free(fabric->nodes);
	free(fabric->lids);
	graph_free(&fabric->graph);
	*fabric = (struct fabric){.sm_port = NONE};
}

uint32_t end_port(const struct fabric *fabric, uint32_t port)
{
	const struct graph_node *node = hardware(fabric, cable(fabric, port)->node);

	return node->type == NODE_SWITCH ? node->first_port : port;
}

uint32_t lid_owner(const struct fabric *fabric, uint16_t lid)
{
	return lid < LID_COUNT ? fabric->lids[lid] : NONE;
}

void set_lid(struct fabric *fabric, uint32_t port, uint16_t lid, uint8_t lmc)
{
	struct port *state = &fabric->ports[port];

	for (uint32_t i = state->lid; state->lid && i < state->lid + (1U << state->lmc); i++)
		if (i < LID_COUNT && fabric->lids[i] == port)
			fabric->lids[i] = NONE;
	state->lid = lid;
	state->lmc = lmc;
	for (uint32_t i = lid; lid && i < lid + (1U << lmc) && i < LID_COUNT; i++)
		fabric->lids[i] = port;
}

uint64_t gid_prefix(const struct fabric *fabric, uint32_t port)
{
	const struct port_settings *settings = fabric->ports[port].settings;

	return settings ? settings->gid_prefix : DEFAULT_PREFIX;
}

uint16_t pkey_at(const struct fabric *fabric, uint32_t port, unsigned int index)
{
	const struct port_settings *settings = fabric->ports[port].settings;

	if (index >= PKEY_COUNT)
		return 0;
	if (settings)
		return settings->pkeys[index];
	return index == 0 ? DEFAULT_PKEY : 0;
}

bool link_is_up(const struct fabric *fabric, uint32_t port)
{
	return fabric->ports[port].phys_state == PHYS_LINK_UP;
}

/* splitmix64's finalizer: every bit of the input reaches every bit of the result. */
static uint64_t mix(uint64_t value)
{
	value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
	value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
	return value ^ (value >> 31);
}

uint64_t fabric_hash(const struct fabric *fabric, uint64_t what, uint64_t a, uint64_t b)
{
	uint64_t value = mix(fabric->seed + 0x9e3779b97f4a7c15ULL);

	value = mix(value ^ what);
	value = mix(value + a * 0x9e3779b97f4a7c15ULL);
	return mix(value + b * 0xd1342543de82ef95ULL);
}
