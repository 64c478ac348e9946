/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Compares two discoveries. A node or link missing in one of them may still exist, so only
 * those that are certainly gone or new are reported as removed or added.
 *
 * Nodes that a discovery missed are behind ports that are up but have no peer. Such a port is
 * silent or unexplored:
 *
 * - Silent: a node did not respond. Its cables are assumed to be those in the other fabric, so
 *   only the nodes behind it are hidden. If the other fabric has another cable at this port, or
 *   none, any node may be behind it.
 * - Unexplored: the discovery stopped (max_hops, 63 hops, max_nodes), or the response was
 *   unusable. Any node may be behind the port.
 */

#include "base/export.h"
#include "base/report.h"
#include "fabric/graph.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct compared {
	const struct mad_fabric *fabric;
	const struct compared *other; /* the other fabric of the comparison */
	bool *doubtful;               /* by node index: two nodes may share the NodeGUID */
	bool *doubtful_port;          /* by port index: may have a different peer */
	bool *hidden; /* by index of a node missing in the other fabric: it may exist there */
	bool all_hidden;     /* any node missing in the other fabric may exist there */
	bool unknown_hidden; /* nodes with a port leading to an unknown node are hidden */
	const struct mad_fabric_node **queue; /* hidden nodes */
	size_t queued;
};

struct comparison {
	struct compared before, after;
	mad_fabric_change_fn *changed;
	void *arg;
	int count;
	int ended; /* nonzero result of changed() */
};

/* --- the same in the other fabric ----------------------------------------------------- */

static bool has_node(const struct compared *compared, const struct mad_fabric_node *node)
{
	return graph_find_node(compared->fabric, node->guid);
}

/* Returns the same port in the other fabric, or NULL. */
static const struct mad_fabric_port *find_same_port(const struct mad_fabric *fabric,
						    const struct mad_fabric_port *port)
{
	return mad_fabric_get_port(graph_find_node(fabric, port->node->guid), port->number);
}

/* Returns the same port if its link is in that fabric, otherwise NULL. */
static const struct mad_fabric_port *find_same_link(const struct mad_fabric *fabric,
						    const struct mad_fabric_port *port)
{
	const struct mad_fabric_port *same = find_same_port(fabric, port);
	bool linked = same && same->peer && same->peer == find_same_port(fabric, port->peer);

	return linked ? same : NULL;
}

/* Of nodes sharing a GUID, only the first counts. */
static bool node_counts(const struct mad_fabric *fabric, const struct mad_fabric_node *node)
{
	return graph_find_node(fabric, node->guid) == node;
}

/* Whether the port is the first end of a link between nodes that count. */
static bool begins_link(const struct mad_fabric *fabric, const struct mad_fabric_port *port)
{
	return port->peer && port->peer->peer == port && port->peer->index >= port->index &&
	       node_counts(fabric, port->node) && node_counts(fabric, port->peer->node);
}

/* --- ports and nodes that prove nothing --------------------------------------------- */

static bool is_switch(const struct mad_fabric_node *node)
{
	return node->type == IB_NODE_SWITCH;
}

static bool is_silent(const struct mad_fabric_port *port)
{
	return port->error || port->peer_error;
}

/*
 * Whether a cable may lead to a node missing in the fabric. A loaded fabric lacks PortInfo but
 * has all links.
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

/* --- hidden nodes ------------------------------------------------------------------ */

static void hide_node(struct compared *compared, const struct mad_fabric_node *node)
{
	if (compared->hidden[node->index] || has_node(compared->other, node))
		return;
	compared->hidden[node->index] = true;
	compared->queue[compared->queued++] = node;
}

/* An unknown node may connect every node that has a cable to an unknown node. */
static void hide_unknown(struct compared *compared)
{
	const struct mad_fabric_port *port = NULL;

	if (compared->unknown_hidden)
		return;
	compared->unknown_hidden = true;
	while ((port = mad_fabric_next_port(compared->fabric, port)))
		if (leads_to_unknown(port))
			hide_node(compared, port->node);
}

static void hide_neighbours(struct compared *compared, const struct mad_fabric_node *node)
{
	for (unsigned number = 1; number <= node->port_count; number++) {
		const struct mad_fabric_port *port = mad_fabric_get_port(node, number);

		if (port->peer)
			hide_node(compared, port->peer->node);
		else if (leads_to_unknown(port))
			hide_unknown(compared);
	}
}

/* Hides what may be behind a port of the other fabric. */
static void hide_behind(struct compared *compared, const struct mad_fabric_port *port)
{
	const struct mad_fabric_port *same =
		is_silent(port) ? find_same_port(compared->fabric, port) : NULL;

	if (same && same->peer && !has_node(compared->other, same->peer->node))
		hide_node(compared, same->peer->node);
	else if (same && leads_to_unknown(same))
		hide_unknown(compared);
	else
		compared->all_hidden = true;
}

/* Whether the other fabric has the PortGUID under another NodeGUID. */
static bool is_renamed(const struct compared *compared, const struct mad_fabric_port *port)
{
	const struct mad_fabric *other = compared->other->fabric;
	const struct mad_fabric_port *same = find_same_port(other, port);
	const struct mad_fabric_port *found;

	if (!port->guid || (same && same->guid == port->guid))
		return false;
	found = mad_fabric_find_port_guid(other, port->guid);
	return found && found->node->guid != port->node->guid;
}

static void doubt_port(struct compared *compared, const struct mad_fabric_port *port)
{
	if (port)
		compared->doubtful_port[port->index] = true;
}

/* Finds nodes and ports that prove nothing. */
static void find_doubtful(struct compared *compared)
{
	const struct mad_fabric *fabric = compared->fabric;
	const struct mad_fabric_port *port = NULL;

	for (size_t i = 0; i < fabric->node_count; i++) {
		const struct mad_fabric_node *node = graph_node(fabric, i);
		const struct mad_fabric_node *first = graph_find_node(fabric, node->guid);

		if (graph_node_of(node)->shares_guid)
			compared->doubtful[i] = true;
		if (first != node)
			compared->doubtful[i] = compared->doubtful[first->index] = true;
	}
	while ((port = mad_fabric_next_port(fabric, port))) {
		/* another node has this NodeGUID, or the link went down during discovery */
		if (port->peer && port->info && port->physical_state != MAD_PHYSICAL_LINK_UP)
			compared->doubtful[port->node->index] = true;
		/* a switch's ports share one PortGUID */
		if ((is_switch(port->node) && port->number) || !is_renamed(compared, port))
			continue;
		compared->doubtful[port->node->index] = true;
		hide_node(compared, port->node);
	}
	for (size_t i = 0; i < fabric->problem_count; i++) {
		const struct mad_fabric_problem *problem = graph_problem(fabric, i);

		if (problem->kind != MAD_FABRIC_PROBLEM_PEER)
			continue;
		doubt_port(compared, problem->port);
		doubt_port(compared, problem->port ? problem->port->peer : NULL);
		doubt_port(compared, problem->other_port);
		doubt_port(compared, problem->other_port ? problem->other_port->peer : NULL);
	}
}

static void find_hidden(struct compared *compared)
{
	const struct compared *other = compared->other;
	const struct mad_fabric_port *port = NULL;

	/* CAs and routers don't forward, so nothing is reachable only through them */
	while ((port = mad_fabric_next_port(other->fabric, port)))
		if (leads_to_unknown(port) &&
		    (is_switch(port->node) || port == other->fabric->origin))
			hide_behind(compared, port);
	/* if two switches share a NodeGUID, one's ports are unknown */
	for (size_t i = 0; i < other->fabric->node_count; i++)
		if (other->doubtful[i] && is_switch(graph_node(other->fabric, i)))
			compared->all_hidden = true;
	for (size_t i = 0; i < compared->queued; i++)
		if (is_switch(compared->queue[i]))
			hide_neighbours(compared, compared->queue[i]);
}

/* --- what is certain ------------------------------------------------------------------ */

/* Whether only one node has this NodeGUID. */
static bool is_one_node(const struct compared *compared, const struct mad_fabric_node *node)
{
	return !compared->doubtful[node->index];
}

/* Whether a node is certainly missing in the other fabric. */
static bool node_is_absent(const struct compared *compared, const struct mad_fabric_node *node)
{
	return !compared->all_hidden && !compared->hidden[node->index] &&
	       !has_node(compared->other, node);
}

/* Whether one end of a link proves that the other fabric lacks it. */
static bool end_is_absent(const struct compared *compared, const struct mad_fabric_port *port)
{
	const struct compared *other = compared->other;
	const struct mad_fabric_node *node = graph_find_node(other->fabric, port->node->guid);
	const struct mad_fabric_port *same;

	if (!node)
		return node_is_absent(compared, port->node);
	if (!is_one_node(other, node))
		return false;
	same = mad_fabric_get_port(node, port->number);
	if (!same)
		return true;
	if (other->doubtful_port[same->index])
		return false;
	if (same->peer)
		return is_one_node(other, same->peer->node);
	return !leads_to_unknown(same);
}

/* Whether a link missing in the other fabric is certainly gone. */
static bool link_is_absent(const struct compared *compared, const struct mad_fabric_port *port)
{
	const struct mad_fabric_port *peer = port->peer;

	if (compared->doubtful_port[port->index])
		return false;
	if (!is_one_node(compared, port->node) || !is_one_node(compared, peer->node))
		return node_is_absent(compared, port->node) ||
		       node_is_absent(compared, peer->node);
	return end_is_absent(compared, port) || end_is_absent(compared, peer);
}

/* --- what differs --------------------------------------------------------------------- */

/* 0: not read */
static bool values_differ(uint64_t before, uint64_t after)
{
	return before && after && before != after;
}

static bool states_differ(const struct mad_fabric_port *before,
			  const struct mad_fabric_port *after)
{
	return values_differ(before->state, after->state) ||
	       values_differ(before->physical_state, after->physical_state) ||
	       values_differ(before->width, after->width) ||
	       values_differ(before->speed, after->speed) ||
	       values_differ(before->mtu, after->mtu);
}

/* LID 0: none, if PortInfo was read */
static bool lids_differ(const struct mad_fabric_port *before,
			const struct mad_fabric_port *after)
{
	if (before->info && after->info)
		return before->lid != after->lid || before->lmc != after->lmc;
	return values_differ(before->lid, after->lid) || values_differ(before->lmc, after->lmc);
}

static bool nodes_differ(const struct mad_fabric_node *before,
			 const struct mad_fabric_node *after)
{
	const struct mad_fabric_port *port = graph_lid_port(before);
	const struct mad_fabric_port *other =
		port ? mad_fabric_get_port(after, port->number) : NULL;

	return before->type != after->type || before->port_count != after->port_count ||
	       values_differ(before->system_guid, after->system_guid) ||
	       (before->description[0] && after->description[0] &&
		strcmp(before->description, after->description) != 0) ||
	       (other && lids_differ(port, other));
}

static bool ports_differ(const struct mad_fabric_port *before,
			 const struct mad_fabric_port *after)
{
	if (values_differ(before->guid, after->guid))
		return true;
	/* otherwise a node change */
	if (graph_lid_port(before->node) != before && lids_differ(before, after))
		return true;
	/* otherwise a link change */
	return !before->peer && !after->peer && states_differ(before, after);
}

/* --- going through -------------------------------------------------------------------- */

static void report_change(struct comparison *comparison, enum mad_fabric_change change,
			  const struct mad_fabric_node *before_node,
			  const struct mad_fabric_node *after_node,
			  const struct mad_fabric_port *before_port,
			  const struct mad_fabric_port *after_port)
{
	const struct mad_fabric_difference difference = {change, before_node, after_node,
							 before_port, after_port};

	if (comparison->ended)
		return;
	if (comparison->count < INT_MAX)
		comparison->count++;
	if (comparison->changed)
		comparison->ended = comparison->changed(&difference, comparison->arg);
}

static void report_removed(struct comparison *comparison)
{
	const struct compared *before = &comparison->before;
	const struct mad_fabric_port *port = NULL;

	for (size_t i = 0; i < before->fabric->node_count; i++) {
		const struct mad_fabric_node *node = graph_node(before->fabric, i);

		if (node_counts(before->fabric, node) && node_is_absent(before, node))
			report_change(comparison, MAD_FABRIC_NODE_REMOVED, node, NULL, NULL,
				      NULL);
	}
	while ((port = mad_fabric_next_port(before->fabric, port)))
		if (begins_link(before->fabric, port) &&
		    !find_same_link(comparison->after.fabric, port) &&
		    link_is_absent(before, port))
			report_change(comparison, MAD_FABRIC_LINK_REMOVED, port->node, NULL,
				      port, NULL);
}

/* Whether the node in after and the one with its GUID in before are the same. */
static bool are_comparable(const struct comparison *comparison,
			   const struct mad_fabric_node *before,
			   const struct mad_fabric_node *after)
{
	return before && is_one_node(&comparison->before, before) &&
	       is_one_node(&comparison->after, after);
}

static void compare_link(struct comparison *comparison, const struct mad_fabric_port *port)
{
	const struct mad_fabric_port *before = find_same_link(comparison->before.fabric, port);

	if (!before) {
		if (link_is_absent(&comparison->after, port))
			report_change(comparison, MAD_FABRIC_LINK_ADDED, NULL, port->node, NULL,
				      port);
		return;
	}
	if (are_comparable(comparison, before->node, port->node) &&
	    are_comparable(comparison, before->peer->node, port->peer->node) &&
	    (states_differ(before, port) || states_differ(before->peer, port->peer)))
		report_change(comparison, MAD_FABRIC_LINK_CHANGED, before->node, port->node,
			      before, port);
}

static void compare_node(struct comparison *comparison, const struct mad_fabric_node *node)
{
	const struct mad_fabric_node *before =
		graph_find_node(comparison->before.fabric, node->guid);
	bool comparable = are_comparable(comparison, before, node);

	if (node_is_absent(&comparison->after, node))
		report_change(comparison, MAD_FABRIC_NODE_ADDED, NULL, node, NULL, NULL);
	else if (comparable && nodes_differ(before, node))
		report_change(comparison, MAD_FABRIC_NODE_CHANGED, before, node, NULL, NULL);
	for (unsigned number = 0; number <= node->port_count; number++) {
		const struct mad_fabric_port *port = mad_fabric_get_port(node, number);
		const struct mad_fabric_port *same = mad_fabric_get_port(before, number);

		if (!port)
			continue;
		if (same && comparable && ports_differ(same, port))
			report_change(comparison, MAD_FABRIC_PORT_CHANGED, before, node, same,
				      port);
		if (begins_link(comparison->after.fabric, port))
			compare_link(comparison, port);
	}
}

static int compared_allocate(struct compared *compared)
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

static int compare_fabrics(struct comparison *comparison)
{
	struct compared *before = &comparison->before, *after = &comparison->after;

	if (compared_allocate(before) || compared_allocate(after))
		return failure_of_call(0, -ENOMEM);
	find_doubtful(before);
	find_doubtful(after);
	find_hidden(before);
	find_hidden(after);
	report_removed(comparison);
	for (size_t i = 0; !comparison->ended && i < after->fabric->node_count; i++) {
		const struct mad_fabric_node *node = graph_node(after->fabric, i);

		if (node_counts(after->fabric, node))
			compare_node(comparison, node);
	}
	return comparison->ended ? comparison->ended : comparison->count;
}

EXPORT int mad_fabric_compare(const struct mad_fabric *before, const struct mad_fabric *after,
			      mad_fabric_change_fn *changed, void *arg)
{
	struct comparison comparison = {
		.before = {.fabric = before, .other = &comparison.after},
		.after = {.fabric = after, .other = &comparison.before},
		.changed = changed,
		.arg = arg,
	};
	int ret;

	if (!before || !after)
		return failure_of_call(0, -EINVAL);
	ret = compare_fabrics(&comparison);
	free(comparison.before.queue);
	free(comparison.before.doubtful);
	free(comparison.after.queue);
	free(comparison.after.doubtful);
	return ret;
}
