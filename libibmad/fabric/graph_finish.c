/* SPDX-License-Identifier: BSD-2-Clause */

/* Completes a fabric's graph: tables, and contradictions between ports. */

#include "fabric/graph.h"
#include "classes/link_rate.h"

#include <infiniband/mad_fields.h>

#include <errno.h>
#include <stdlib.h>

static int add_contradiction(struct graph *graph, enum mad_fabric_problem_kind kind,
			     const struct mad_fabric_port *port,
			     const struct mad_fabric_port *other, uint64_t guid)
{
	const struct mad_fabric_problem problem = {
		.kind = kind, .port = port, .other_port = other, .guid = guid};

	return graph_add_problem(&graph->fabric, &problem, NULL);
}

/* --- port GUIDs ------------------------------------------------------------------- */

/* A switch's ports all have port 0's GUID. */
static bool has_guid_of_its_own(const struct mad_fabric_port *port)
{
	return port->guid && (port->node->type != IB_NODE_SWITCH || !port->number);
}

static int enter_port_guid(struct graph *graph, const struct mad_fabric_port *port)
{
	size_t at = graph_bucket(graph, port->guid, graph->port_guid_buckets);
	const struct mad_fabric_port *other;

	while (graph->port_guids[at] && graph->port_guids[at]->guid != port->guid)
		at = (at + 1) & (graph->port_guid_buckets - 1);
	other = graph->port_guids[at];
	if (!other) {
		graph->port_guids[at] = port;
		return 0;
	}
	/* duplicate NodeGUIDs were noted when found */
	if (port->node != other->node && port->node->guid == other->node->guid)
		return 0;
	return add_contradiction(graph, MAD_FABRIC_PROBLEM_GUID, port, other, port->guid);
}

static int enter_port_guids(struct graph *graph)
{
	const struct mad_fabric_port *port = NULL;
	size_t count = 0;
	int err = 0;

	while ((port = mad_fabric_next_port(&graph->fabric, port)))
		count += has_guid_of_its_own(port);
	/* at most half full */
	graph->port_guid_buckets = 16;
	while (graph->port_guid_buckets < count * 2)
		graph->port_guid_buckets *= 2;
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

/*
 * Whether the port's own LID is of this subnet: a CA port without a link may have another
 * subnet's.
 */
static bool has_lid_here(const struct mad_fabric *fabric, const struct mad_fabric_port *port)
{
	if (!IB_LID_VALID(port->lid))
		return false;
	if (port->node->type == IB_NODE_SWITCH)
		return !port->number;
	return port->peer || port == fabric->origin;
}

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
	return other ? add_contradiction(graph, MAD_FABRIC_PROBLEM_LID, port, other, 0) : 0;
}

static int enter_lids(struct graph *graph)
{
	const struct mad_fabric_port *port = NULL;
	size_t count = 0;
	int err = 0;

	while ((port = mad_fabric_next_port(&graph->fabric, port)))
		if (has_lid_here(&graph->fabric, port) && last_lid(port) >= count)
			count = last_lid(port) + 1;
	if (!count)
		return 0;
	graph->lids = calloc(count, sizeof(const struct mad_fabric_port *));
	if (!graph->lids)
		return -ENOMEM;
	graph->lid_count = count;
	while (!err && (port = mad_fabric_next_port(&graph->fabric, port)))
		if (has_lid_here(&graph->fabric, port))
			err = enter_lid(graph, port);
	return err;
}

/* GMPs about a switch port go to port 0. */
static void set_gmp_lids(struct mad_fabric *fabric)
{
	struct mad_fabric_port *port = NULL;

	while ((port = graph_next_port(fabric, port))) {
		bool of_switch = port->node->type == IB_NODE_SWITCH;
		const struct mad_fabric_port *addressed =
			of_switch ? mad_fabric_get_port(port->node, 0) : port;

		if (has_lid_here(fabric, addressed))
			port->gmp_lid = addressed->lid;
	}
}

/* --- links -------------------------------------------------------------------------- */

/*
 * Sets a port's width, speed and rate. A switch's capabilities are in port 0's PortInfo:
 * without that, the other ports' extended speeds may be invalid.
 */
static struct mad_link decode_port(struct mad_fabric_port *port)
{
	const struct mad_fabric_port *port0 = mad_fabric_get_port(port->node, 0);
	const uint8_t *info = port->info;
	struct mad_link link;

	mad_link_decode(&link, sizeof(link), info, port0 ? port0->info : NULL,
			port->mlnx_ext_info);
	if (port0 && !port0->info) {
		if (mad_read_field(info, 0, IB_PORT_LINK_SPEED_EXT_ACTIVE_F) ||
		    mad_read_field(info, 0, IB_PORT_LINK_SPEED_EXT_ACTIVE_2_F)) {
			link.speed = MAD_SPEED_NONE;
			link.rate_gbps = 0;
		}
		if (mad_read_field(info, 0, IB_PORT_LINK_SPEED_EXT_SUPPORTED_F) ||
		    mad_read_field(info, 0, IB_PORT_LINK_SPEED_EXT_SUPPORTED_2_F))
			link.speeds_supported = 0;
	}
	port->width = link.width;
	port->speed = link.speed;
	port->rate_gbps = link.rate_gbps;
	return link;
}

static bool ends_differ(const struct mad_fabric_port *one, const struct mad_fabric_port *other)
{
	return one->state != other->state || one->physical_state != other->physical_state ||
	       one->width != other->width ||
	       (one->speed && other->speed && one->speed != other->speed) ||
	       (one->mtu && other->mtu && one->mtu != other->mtu);
}

/* Sets what depends on both ends' PortInfo. */
static int finish_link(struct graph *graph, struct mad_fabric_port *port,
		       struct mad_fabric_port *peer)
{
	const struct mad_link link = decode_port(port), other = decode_port(peer);

	port->width_possible = peer->width_possible =
		(uint8_t)link_widest(link.widths_supported & other.widths_supported);
	port->speed_possible = peer->speed_possible =
		(uint8_t)link_fastest(link.speeds_supported & other.speeds_supported);
	return ends_differ(port, peer)
		       ? add_contradiction(graph, MAD_FABRIC_PROBLEM_LINK, port, peer, 0)
		       : 0;
}

static int finish_ports(struct graph *graph)
{
	struct mad_fabric_port *port = NULL;
	int err = 0;

	while (!err && (port = graph_next_port(&graph->fabric, port))) {
		const struct mad_fabric_port *peer = port->peer;

		if (!port->info)
			continue;
		if (!peer || !peer->info)
			decode_port(port);
		else if (peer->index >= port->index || peer->peer != port)
			err = finish_link(graph, port, graph_writable(peer));
	}
	return err;
}

int graph_finish(struct mad_fabric *fabric)
{
	struct graph *graph = graph_of(fabric);
	int err = enter_port_guids(graph);

	set_gmp_lids(fabric);
	if (!err)
		err = enter_lids(graph);
	return err ? err : finish_ports(graph);
}
