/* SPDX-License-Identifier: BSD-2-Clause */

/* The initial state of a fabric's ports, and how their memory is freed. */
#include <errno.h>
#include <stdlib.h>

#include "counters.h"
#include "gmp_agents.h"
#include "links.h"
#include "node.h"
#include "routes.h"
#include "settings.h"
#include "setup.h"
#include "trees.h"
#include "workload.h"

/* PortInfo's CapabilityMask (IBA 14.2.5.6), by bit. */
enum {
	HAS_TRAP = 1 << 3,
	HAS_AUTOMATIC_MIGRATION = 1 << 5,
	HAS_SL_MAPPING = 1 << 6,
	HAS_SYSTEM_IMAGE_GUID = 1 << 11,
	HAS_EXTENDED_SPEEDS = 1 << 14,
	HAS_CAPABILITY_MASK2 = 1 << 15,
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
					HAS_CLIENT_REREGISTRATION | HAS_EXTENDED_SPEEDS |
					HAS_CAPABILITY_MASK2;
	else if (own) /* a switch's capabilities are at its port 0 */
		port->capability_mask = HAS_TRAP | HAS_SL_MAPPING | HAS_SYSTEM_IMAGE_GUID |
					HAS_VENDOR_CLASS | HAS_CAPABILITY_MASK_TRAP |
					HAS_EXTENDED_SPEEDS | HAS_CAPABILITY_MASK2;
}

int fabric_init(struct fabric *fabric, struct graph *graph, uint64_t seed)
{
	*fabric = (struct fabric){
		.graph = *graph, .seed = seed, .arrived = node_receive, .sm_port = NONE};
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
	for (uint32_t i = 0; i < fabric->graph.port_count; i++) {
		init_port(fabric, i);
		link_start(fabric, i);
	}
	return 0;
}

static void node_free(struct node *node)
{
	switch_tables_free(node->tables);
	workload_free(node->workload);
	free(node->description);
}

void fabric_free(struct fabric *fabric)
{
	for (uint32_t i = 0; fabric->ports && i < fabric->graph.port_count; i++) {
		settings_free(fabric->ports[i].settings);
		counters_free(fabric->ports[i].counters);
	}
	for (uint32_t i = 0; fabric->nodes && i < fabric->graph.node_count; i++)
		node_free(&fabric->nodes[i]);
	routes_free(fabric);
	trees_free(fabric);
	gmp_memory_free(fabric->gmp_memory);
	free(fabric->ports);
	free(fabric->nodes);
	free(fabric->lids);
	graph_free(&fabric->graph);
	*fabric = (struct fabric){.sm_port = NONE};
}
