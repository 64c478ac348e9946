/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The order in which ibnetdiscover finds the nodes of a fabric. It was observed, with its
 * packets in order:
 *
 * - Requests wait in one queue. What a response leads to is put at its end.
 * - NodeInfo of a node that was not known leads to SwitchInfo if it is a switch, and to
 * PortInfo of the port where the scan begins. Other ports of CAs and routers lead nowhere.
 * - SwitchInfo leads to PortInfo of all ports from 1.
 * - PortInfo of a port with a link leads to NodeInfo of the node behind it. If the link may be
 * one of FDR10, Mellanox's ExtendedPortInfo is read in between, so that the node behind is
 * found later.
 */

#include "fabric/scan_order.h"

#include <stdbool.h>
#include <stdlib.h>

enum step {
	READ_NODE,
	READ_SWITCH,
	READ_PORT,
	READ_EXTENDED_PORT
};

struct item {
	const struct mad_fabric_port *port; /* of READ_PORT, READ_EXTENDED_PORT */
	const struct mad_fabric_node *node; /* of READ_NODE, READ_SWITCH */
	enum step step;
};

struct scan {
	struct item *items; /* the queue: nothing is ever removed */
	size_t first, end;
	bool *found; /* by the index of the node */
	uint32_t *order;
	size_t count; /* in order */
};

/* The devices that ibnetdiscover asks for ExtendedPortInfo; of any vendor. */
static bool has_extended_port_info(const struct mad_fabric_node *node)
{
	static const uint16_t devices[] = {0xa2d2, 0xc738, 0xc739, 0xc73a, 0xc73b,
					   0xc839, 0xcb20, 0xcf08, 0xcf09, 0xd2f0};
	static const uint16_t of_bull[] = {0x1b02, 0x1b33, 0x1b40, 0x1b41, 0x1b50, 0x1b60,
					   0x1b61, 0x1b73, 0x1b83, 0x1b93, 0x1b94, 0x1ba0,
					   0x1bb4, 0x1bb5, 0x1bc4, 0x1bc5, 0x1bc6, 0x1bd0,
					   0x1bd1, 0x1bd2, 0x1bd3, 0x1bd4, 0x1bd5, 0x1bf0};

	if (node->device_id >= 0x1003 && node->device_id <= 0x101b)
		return true;
	for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); i++)
		if (devices[i] == node->device_id)
			return true;
	for (size_t i = 0; node->vendor_id == 0x119f && i < sizeof(of_bull) / sizeof(*of_bull);
	     i++)
		if (of_bull[i] == node->device_id)
			return true;
	return false;
}

static void put(struct scan *scan, enum step step, const struct mad_fabric_node *node,
		const struct mad_fabric_port *port)
{
	scan->items[scan->end++] = (struct item){.step = step, .node = node, .port = port};
}

static void put_port(struct scan *scan, const struct mad_fabric_port *port)
{
	if (port && port->peer)
		put(scan, READ_PORT, NULL, port);
}

static void find(struct scan *scan, const struct mad_fabric_node *node)
{
	if (scan->found[node->index])
		return;
	scan->found[node->index] = true;
	scan->order[scan->count++] = node->index;
	if (node->type == IB_NODE_SWITCH)
		put(scan, READ_SWITCH, node, NULL);
}

static void read_port(struct scan *scan, const struct mad_fabric_port *port)
{
	/* FDR10 is QDR in PortInfo */
	if ((port->speed == MAD_SPEED_QDR || port->speed == MAD_SPEED_FDR10) &&
	    has_extended_port_info(port->node))
		put(scan, READ_EXTENDED_PORT, NULL, port);
	else
		put(scan, READ_NODE, port->peer->node, NULL);
}

static void respond(struct scan *scan, const struct item *item)
{
	switch (item->step) {
	case READ_NODE:
		find(scan, item->node);
		break;
	case READ_SWITCH:
		for (unsigned number = 1; number <= item->node->port_count; number++)
			put_port(scan, mad_fabric_port(item->node, number));
		break;
	case READ_PORT:
		read_port(scan, item->port);
		break;
	case READ_EXTENDED_PORT:
		put(scan, READ_NODE, item->port->peer->node, NULL);
		break;
	}
}

/* A switch is queued once for SwitchInfo; a port with a peer at most three times. */
static size_t most_items(const struct mad_fabric *fabric)
{
	const struct mad_fabric_port *port = NULL;
	size_t count = mad_fabric_node_count(fabric) + 1;

	while ((port = mad_fabric_next_port(fabric, port)))
		if (port->peer)
			count += 3;
	return count;
}

static void run(struct scan *scan, const struct mad_fabric *fabric)
{
	const struct mad_fabric_port *origin = mad_fabric_origin(fabric);
	size_t i;

	if (origin) {
		find(scan, origin->node);
		if (origin->node->type != IB_NODE_SWITCH)
			put_port(scan, origin);
	}
	while (scan->first < scan->end)
		respond(scan, &scan->items[scan->first++]);
	for (i = 0; i < mad_fabric_node_count(fabric); i++)
		if (!scan->found[i])
			scan->order[scan->count++] = (uint32_t)i;
}

uint32_t *scan_order(const struct mad_fabric *fabric)
{
	size_t nodes = mad_fabric_node_count(fabric);
	struct scan scan = {.items = NULL};

	if (!nodes)
		return NULL;
	scan.order = malloc(nodes * sizeof(uint32_t));
	scan.found = calloc(nodes, sizeof(bool));
	scan.items = malloc(most_items(fabric) * sizeof(struct item));
	if (scan.order && scan.found && scan.items) {
		run(&scan, fabric);
	} else {
		free(scan.order);
		scan.order = NULL;
	}
	free(scan.found);
	free(scan.items);
	return scan.order;
}
