/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Which nodes and links of one fabric are certainly not in another one.
 *
 * The nodes that a discovery did not find are behind ports that are up and have no peer. Such a
 * port is silent or unexplored:
 *
 * - Silent: a node did not respond. The cables of nodes that do not respond are taken to be as
 * they are in the other fabric, so that only the nodes behind such a node are hidden. If the
 * port has another cable in the other fabric, or none, each node may be behind the port.
 *
 * - Unexplored: the discovery did not go on (max_hops, 63 hops, max_nodes), or the response was
 * of no use. Each node may be behind the port.
 */

#include "fabric/certain.h"

#include "fabric/graph.h"

#include <errno.h>
#include <stdlib.h>

const struct mad_fabric_port *certain_same_port(const struct mad_fabric *fabric,
						const struct mad_fabric_port *port)
{
	return mad_fabric_get_port(graph_find_node(fabric, port->node->guid), port->number);
}

static bool has_node(const struct compared *compared, const struct mad_fabric_node *node)
{
	return graph_find_node(compared->fabric, node->guid);
}

static bool is_switch(const struct mad_fabric_node *node)
{
	return node && node->type == IB_NODE_SWITCH;
}

/* --- ports and nodes that prove nothing --------------------------------------------- */

static bool is_silent(const struct mad_fabric_port *port)
{
	return port->error || port->peer_error;
}

/*
 * Whether a cable may lead from the port to a node that the fabric does not have. A fabric that
 * was loaded has no PortInfo, but all links.
 */
static bool leads_to_unknown(const struct mad_fabric_port *port)
{
	if (port->peer || !port->number)
		return false;
	if (is_silent(port))
		return true;
	return port->info ? port->physical_state == MAD_PHYSICAL_LINK_UP
			  : port->node->node_info != NULL;
}

/* CAs and routers forward nothing, so that no node of the fabric is only behind them. */
static bool forwards(const struct compared *compared, const struct mad_fabric_port *port)
{
	return is_switch(port->node) || port == compared->fabric->origin;
}

static void doubt_port(struct compared *compared, const struct mad_fabric_port *port)
{
	if (port)
		compared->doubtful_port[port->index] = true;
}

static void doubt_link(struct compared *compared, const struct mad_fabric_port *port)
{
	doubt_port(compared, port);
	doubt_port(compared, port ? port->peer : NULL);
}

static void find_doubtful_nodes(struct compared *compared)
{
	const struct mad_fabric_port *port = NULL;

	for (size_t i = 0; i < compared->fabric->node_count; i++) {
		const struct mad_fabric_node *node = mad_fabric_get_node(compared->fabric, i);
		const struct mad_fabric_node *first =
			graph_find_node(compared->fabric, node->guid);

		if (graph_node_of(node)->shares_guid)
			compared->doubtful[i] = true;
		if (first != node)
			compared->doubtful[i] = compared->doubtful[first->index] = true;
	}
	/* another node has this NodeGUID, or the link went down during the discovery */
	while ((port = mad_fabric_next_port(compared->fabric, port)))
		if (port->peer && port->info && port->physical_state != MAD_PHYSICAL_LINK_UP)
			compared->doubtful[port->node->index] = true;
}

static void find_doubtful_ports(struct compared *compared)
{
	for (size_t i = 0; i < compared->fabric->problem_count; i++) {
		const struct mad_fabric_problem *problem =
			mad_fabric_get_problem(compared->fabric, i);

		if (problem->kind != MAD_FABRIC_PROBLEM_PEER)
			continue;
		doubt_link(compared, problem->port);
		doubt_link(compared, problem->other_port);
	}
}

/* --- hidden nodes ------------------------------------------------------------------ */

static void hide(struct compared *compared, const struct mad_fabric_node *node)
{
	if (compared->hidden[node->index] || has_node(compared->other, node))
		return;
	compared->hidden[node->index] = true;
	compared->queue[compared->queued++] = node;
}

/* An unknown node may connect all nodes that have a cable to an unknown node. */
static void hide_unknown(struct compared *compared)
{
	const struct mad_fabric_port *port = NULL;

	if (compared->unknown_hidden)
		return;
	compared->unknown_hidden = true;
	while ((port = mad_fabric_next_port(compared->fabric, port)))
		if (leads_to_unknown(port))
			hide(compared, port->node);
}

static void hide_neighbours(struct compared *compared, const struct mad_fabric_node *node)
{
	for (unsigned number = 1; number <= node->port_count; number++) {
		const struct mad_fabric_port *port = mad_fabric_get_port(node, number);

		if (port->peer)
			hide(compared, port->peer->node);
		else if (leads_to_unknown(port))
			hide_unknown(compared);
	}
}

/* Hides what may be behind a port of the other fabric. */
static void hide_behind(struct compared *compared, const struct mad_fabric_port *port)
{
	const struct mad_fabric_port *same =
		is_silent(port) ? certain_same_port(compared->fabric, port) : NULL;

	if (same && same->peer && !has_node(compared->other, same->peer->node))
		hide(compared, same->peer->node);
	else if (same && leads_to_unknown(same))
		hide_unknown(compared);
	else
		compared->all_hidden = true;
}

/* Whether the other fabric has the PortGUID at a node with another NodeGUID. */
static bool is_renamed(const struct compared *compared, const struct mad_fabric_port *port)
{
	const struct mad_fabric *other = compared->other->fabric;
	const struct mad_fabric_port *same = certain_same_port(other, port);
	const struct mad_fabric_port *found;

	if (!port->guid || (same && same->guid == port->guid))
		return false;
	found = mad_fabric_find_port_guid(other, port->guid);
	return found && found->node->guid != port->node->guid;
}

static void find_renamed(struct compared *compared)
{
	const struct mad_fabric_port *port = NULL;

	while ((port = mad_fabric_next_port(compared->fabric, port))) {
		/* all ports of a switch have one PortGUID */
		if (is_switch(port->node) && port->number)
			continue;
		if (!is_renamed(compared, port))
			continue;
		compared->doubtful[port->node->index] = true;
		hide(compared, port->node);
	}
}

static void find_hidden(struct compared *compared)
{
	const struct compared *other = compared->other;
	const struct mad_fabric_port *port = NULL;

	while ((port = mad_fabric_next_port(other->fabric, port)))
		if (leads_to_unknown(port) && forwards(other, port))
			hide_behind(compared, port);
	/* of two switches with one NodeGUID, the ports of one are not known */
	for (size_t i = 0; i < other->fabric->node_count; i++)
		if (other->doubtful[i] && is_switch(mad_fabric_get_node(other->fabric, i)))
			compared->all_hidden = true;
	for (size_t i = 0; i < compared->queued; i++)
		if (is_switch(compared->queue[i]))
			hide_neighbours(compared, compared->queue[i]);
}

/* --- both ------------------------------------------------------------------------------ */

static int allocate(struct compared *compared)
{
	/* calloc(0) may return NULL */
	size_t nodes = compared->fabric->node_count + 1;
	size_t ports = compared->fabric->port_count;

	compared->queue = calloc(nodes, sizeof(const struct mad_fabric_node *));
	compared->doubtful = calloc(2 * nodes + ports, sizeof(bool));
	if (!compared->queue || !compared->doubtful)
		return -ENOMEM;
	compared->hidden = compared->doubtful + nodes;
	compared->doubtful_port = compared->hidden + nodes;
	return 0;
}

int certain_begin(struct compared *one, struct compared *other)
{
	one->other = other;
	other->other = one;
	if (allocate(one) || allocate(other))
		return -ENOMEM;
	find_doubtful_nodes(one);
	find_doubtful_nodes(other);
	find_doubtful_ports(one);
	find_doubtful_ports(other);
	find_renamed(one);
	find_renamed(other);
	find_hidden(one);
	find_hidden(other);
	return 0;
}

void certain_end(struct compared *one, struct compared *other)
{
	free(one->queue);
	free(one->doubtful);
	free(other->queue);
	free(other->doubtful);
}

/* --- results ---------------------------------------------------------------------------- */

bool certain_is_one(const struct compared *compared, const struct mad_fabric_node *node)
{
	return !compared->doubtful[node->index];
}

bool certain_node_is_absent(const struct compared *compared, const struct mad_fabric_node *node)
{
	return !compared->all_hidden && !compared->hidden[node->index] &&
	       !has_node(compared->other, node);
}

/* Whether one end of a link proves that the other fabric does not have the link. */
static bool end_proves(const struct compared *compared, const struct mad_fabric_port *port)
{
	const struct compared *other = compared->other;
	const struct mad_fabric_node *node = graph_find_node(other->fabric, port->node->guid);
	const struct mad_fabric_port *same;

	if (!node)
		return certain_node_is_absent(compared, port->node);
	if (!certain_is_one(other, node))
		return false;
	same = mad_fabric_get_port(node, port->number);
	if (!same)
		return true;
	if (other->doubtful_port[same->index])
		return false;
	if (same->peer)
		return certain_is_one(other, same->peer->node);
	return !leads_to_unknown(same);
}

bool certain_link_is_absent(const struct compared *compared, const struct mad_fabric_port *port)
{
	const struct mad_fabric_port *peer = port->peer;

	if (compared->doubtful_port[port->index])
		return false;
	if (!certain_is_one(compared, port->node) || !certain_is_one(compared, peer->node))
		return certain_node_is_absent(compared, port->node) ||
		       certain_node_is_absent(compared, peer->node);
	return end_proves(compared, port) || end_proves(compared, peer);
}
