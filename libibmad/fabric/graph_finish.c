/* SPDX-License-Identifier: BSD-2-Clause */

/* Completes the graph of a fabric: its tables, and contradictions between ports. */

#include "fabric/graph.h"
#include "fabric/graph_memory.h"
#include "classes/link_rate.h"

#include <infiniband/mad_fields.h>

#include <errno.h>
#include <stdlib.h>

/* The size of a table: a power of two, of which at most half is used. */
static size_t table_size(size_t entries)
{
	size_t size = 16;

	while (size < entries * 2)
		size *= 2;
	return size;
}

/* --- port GUIDs ------------------------------------------------------------------- */

/* All ports of a switch have the GUID of its port 0. */
static bool has_guid_of_its_own(const struct mad_fabric_port *port)
{
	return port->guid && (port->node->type != IB_NODE_SWITCH || !port->number);
}

/* Two nodes with one NodeGUID were noted when they were found. */
static bool are_twins(const struct mad_fabric_node *one, const struct mad_fabric_node *other)
{
	return one != other && one->guid == other->guid;
}

static int enter_port_guid(struct graph *graph, const struct mad_fabric_port *port)
{
	size_t at = graph_bucket(graph, port->guid, graph->port_guid_buckets);
	const struct mad_fabric_port *other;

	while (graph->port_guids[at] && graph->port_guids[at]->guid != port->guid)
		at = (at + 1) & (graph->port_guid_buckets - 1);
	other = graph->port_guids[at];
	if (other && are_twins(port->node, other->node))
		return 0;
	if (other)
		return graph_add_oddity(&graph->fabric, MAD_FABRIC_PROBLEM_GUID, port, other,
					port->guid);
	graph->port_guids[at] = port;
	return 0;
}

static int enter_port_guids(struct graph *graph)
{
	const struct mad_fabric_port *port = NULL;
	size_t count = 0;
	int err = 0;

	while ((port = mad_fabric_next_port(&graph->fabric, port)))
		count += has_guid_of_its_own(port);
	graph->port_guid_buckets = table_size(count);
	graph->port_guids =
		calloc(graph->port_guid_buckets, sizeof(const struct mad_fabric_port *));
	if (!graph->port_guids)
		return -ENOMEM;
	while (!err && (port = mad_fabric_next_port(&graph->fabric, port)))
		if (has_guid_of_its_own(port))
			err = enter_port_guid(graph, port);
	return err;
}

/* --- LIDs ------------------------------------------------------------------------- */

static size_t last_lid(const struct mad_fabric_port *port)
{
	size_t last = port->lid + ((size_t)1 << (port->lmc & 7)) - 1;

	return last < IB_MAX_UCAST_LID ? last : IB_MAX_UCAST_LID;
}

static int enter_lid(struct graph *graph, const struct mad_fabric_port *port)
{
	const struct mad_fabric_port *other = NULL;

	for (size_t lid = port->lid; lid <= last_lid(port); lid++) {
		if (!graph->lids[lid])
			graph->lids[lid] = port;
		else
			other = graph->lids[lid];
	}
	return other ? graph_add_oddity(&graph->fabric, MAD_FABRIC_PROBLEM_LID, port, other, 0)
		     : 0;
}

static int enter_lids(struct graph *graph)
{
	const struct mad_fabric_port *port = NULL;
	int err = 0;

	while ((port = mad_fabric_next_port(&graph->fabric, port)))
		if (graph_has_lid(&graph->fabric, port) && last_lid(port) >= graph->lid_count)
			graph->lid_count = last_lid(port) + 1;
	if (!graph->lid_count)
		return 0;
	graph->lids = calloc(graph->lid_count, sizeof(const struct mad_fabric_port *));
	if (!graph->lids) {
		graph->lid_count = 0;
		return -ENOMEM;
	}
	while (!err && (port = mad_fabric_next_port(&graph->fabric, port)))
		if (graph_has_lid(&graph->fabric, port))
			err = enter_lid(graph, port);
	return err;
}

/* Requests about a port of a switch go to port 0. */
static void set_gmp_lids(struct mad_fabric *fabric)
{
	for (size_t i = 0; i < fabric->node_count; i++) {
		struct graph_node *node = graph_of(fabric)->nodes[i];

		for (unsigned j = 0; j < graph_ports(&node->node); j++) {
			const struct mad_fabric_port *addressed =
				node->node.type == IB_NODE_SWITCH ? &node->ports[0]
								  : &node->ports[j];

			if (graph_has_lid(fabric, addressed))
				node->ports[j].gmp_lid = addressed->lid;
		}
	}
}

/* --- links -------------------------------------------------------------------------- */

/* Clears the speeds of a switch port that are valid only with a capability of port 0. */
static void forget_extended_speeds(struct mad_link *link, const uint8_t *info)
{
	if (mad_read_field(info, 0, IB_PORT_LINK_SPEED_EXT_ACTIVE_F) ||
	    mad_read_field(info, 0, IB_PORT_LINK_SPEED_EXT_ACTIVE_2_F)) {
		link->speed = MAD_SPEED_NONE;
		link->rate_gbps = 0;
	}
	if (mad_read_field(info, 0, IB_PORT_LINK_SPEED_EXT_SUPPORTED_F) ||
	    mad_read_field(info, 0, IB_PORT_LINK_SPEED_EXT_SUPPORTED_2_F))
		link->speeds_supported = 0;
}

static void decode(struct mad_link *link, const struct mad_fabric_port *port)
{
	const struct mad_fabric_port *port0 = graph_port(port->node, 0);

	mad_link_decode(link, sizeof(*link), port->info, port0 ? port0->info : NULL,
			port->mlnx_ext_info);
	if (port0 && !port0->info)
		forget_extended_speeds(link, port->info);
}

static bool ends_differ(const struct mad_fabric_port *one, const struct mad_fabric_port *other)
{
	return one->state != other->state || one->physical_state != other->physical_state ||
	       one->width != other->width ||
	       (one->speed && other->speed && one->speed != other->speed) ||
	       (one->mtu && other->mtu && one->mtu != other->mtu);
}

static void set_rate(struct mad_fabric_port *port, const struct mad_link *link)
{
	port->width = link->width;
	port->speed = link->speed;
	port->rate_gbps = link->rate_gbps;
}

/* Sets the members that depend on the PortInfo of both ends of a link. */
static int finish_link(struct mad_fabric *fabric, struct mad_fabric_port *port,
		       struct mad_fabric_port *peer)
{
	struct mad_link link, other;

	decode(&link, port);
	decode(&other, peer);
	set_rate(port, &link);
	set_rate(peer, &other);
	port->width_possible = peer->width_possible =
		(uint8_t)link_widest(link.widths_supported & other.widths_supported);
	port->speed_possible = peer->speed_possible =
		(uint8_t)link_fastest(link.speeds_supported & other.speeds_supported);
	if (ends_differ(port, peer))
		return graph_add_oddity(fabric, MAD_FABRIC_PROBLEM_LINK, port, peer, 0);
	return 0;
}

static int finish_port(struct mad_fabric *fabric, struct mad_fabric_port *port)
{
	struct mad_link link;

	if (!port->info)
		return 0;
	if (!port->peer || !port->peer->info) {
		decode(&link, port);
		set_rate(port, &link);
		return 0;
	}
	if (port->peer->index < port->index && port->peer->peer == port)
		return 0; /* at the other end */
	return finish_link(fabric, port, graph_port(port->peer->node, port->peer->number));
}

static int finish_links(struct mad_fabric *fabric)
{
	int err = 0;

	for (size_t i = 0; i < fabric->node_count; i++) {
		struct graph_node *node = graph_of(fabric)->nodes[i];

		for (unsigned j = 0; !err && j < graph_ports(&node->node); j++)
			err = finish_port(fabric, &node->ports[j]);
	}
	return err;
}

/* --- ports where no node responded ------------------------------------------------ */

static int by_port(const void *one, const void *other)
{
	const struct graph_silent_port *a = one, *b = other;

	return (a->port->index > b->port->index) - (a->port->index < b->port->index);
}

static void sort_silent_ports(const struct graph *graph)
{
	if (graph->silent_port_count) /* qsort() takes no NULL */
		qsort(graph->silent_ports, graph->silent_port_count,
		      sizeof(struct graph_silent_port), by_port);
}

int graph_finish(struct mad_fabric *fabric)
{
	struct graph *graph = graph_of(fabric);
	int err = enter_port_guids(graph);

	sort_silent_ports(graph);
	set_gmp_lids(fabric);
	if (!err)
		err = enter_lids(graph);
	return err ? err : finish_links(fabric);
}
