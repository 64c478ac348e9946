/* SPDX-License-Identifier: BSD-2-Clause */

/* Compares two discoveries. */

#include "base/export.h"
#include "fabric/graph.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct comparison {
	const struct mad_fabric *before, *after;
	mad_fabric_change_fn *changed;
	void *arg;
	int count;
	int ended;    /* what changed() returned, if it is not 0 */
	bool *hidden; /* by the index of a node of before: it may still be in the fabric, where
			 no node responded */
	const struct mad_fabric_node **queue; /* hidden nodes */
	size_t queued;
};

static void tell(struct comparison *comparison, struct mad_fabric_difference difference)
{
	if (comparison->ended)
		return;
	if (comparison->count < INT_MAX)
		comparison->count++;
	if (comparison->changed)
		comparison->ended = comparison->changed(&difference, comparison->arg);
}

/* --- the same in the other fabric ----------------------------------------------------- */

/* Of several nodes with one GUID, the first one counts. */
static bool counts(const struct mad_fabric *fabric, const struct mad_fabric_node *node)
{
	return graph_find_node(fabric, node->guid) == node;
}

static const struct mad_fabric_port *same_port(const struct mad_fabric *fabric,
					       const struct mad_fabric_port *port)
{
	return mad_fabric_port(graph_find_node(fabric, port->node->guid), port->number);
}

/* Whether the port is the first of the two ends of a link between nodes that count. */
static bool begins_link(const struct mad_fabric *fabric, const struct mad_fabric_port *port)
{
	return port->peer && port->peer->peer == port && port->peer->index >= port->index &&
	       counts(fabric, port->node) && counts(fabric, port->peer->node);
}

/* Whether a port's link is in the other fabric, where the port is "same", or NULL. */
static bool is_linked_there(const struct mad_fabric *fabric, const struct mad_fabric_port *port,
			    const struct mad_fabric_port *same)
{
	return same && same->peer && same->peer == same_port(fabric, port->peer);
}

/* --- what may still be there ----------------------------------------------------------- */

/* Whether this port may be the reason why a link or a node was not found. */
static bool hides(const struct mad_fabric_port *port)
{
	return port && !port->peer && (port->error || port->peer_error);
}

static void hide(struct comparison *comparison, const struct mad_fabric_node *node)
{
	if (comparison->hidden[node->index] || graph_find_node(comparison->after, node->guid))
		return;
	comparison->hidden[node->index] = true;
	comparison->queue[comparison->queued++] = node;
}

static void hide_neighbours(struct comparison *comparison, const struct mad_fabric_node *node)
{
	for (unsigned number = 0; number <= node->port_count; number++) {
		const struct mad_fabric_port *port = mad_fabric_port(node, number);

		if (port && port->peer)
			hide(comparison, port->peer->node);
	}
}

/* Behind a node that did not respond, no node can respond. */
static void find_hidden(struct comparison *comparison)
{
	const struct mad_fabric_port *port = NULL;

	while ((port = mad_fabric_next_port(comparison->before, port)))
		if (port->peer && hides(same_port(comparison->after, port)))
			hide(comparison, port->peer->node);
	for (size_t i = 0; i < comparison->queued; i++)
		hide_neighbours(comparison, comparison->queue[i]);
}

static bool leads_elsewhere(const struct mad_fabric_port *port)
{
	return port && port->peer;
}

static bool is_down(const struct mad_fabric_port *port)
{
	return port && port->info && port->physical_state != MAD_PHYSICAL_LINK_UP;
}

/* Whether a link that was not found may still exist. */
static bool may_be_there(const struct comparison *comparison,
			 const struct mad_fabric_port *port)
{
	const struct mad_fabric_port *one = same_port(comparison->after, port);
	const struct mad_fabric_port *other = same_port(comparison->after, port->peer);

	if (leads_elsewhere(one) || leads_elsewhere(other) || is_down(one) || is_down(other))
		return false;
	return hides(one) || hides(other) || comparison->hidden[port->node->index] ||
	       comparison->hidden[port->peer->node->index];
}

/* --- what differs --------------------------------------------------------------------- */

/* 0: it was not read. */
static bool differ(unsigned before, unsigned after)
{
	return before && after && before != after;
}

static bool states_differ(const struct mad_fabric_port *before,
			  const struct mad_fabric_port *after)
{
	return differ(before->state, after->state) ||
	       differ(before->physical_state, after->physical_state) ||
	       differ(before->width, after->width) || differ(before->speed, after->speed) ||
	       differ(before->mtu, after->mtu);
}

/* LID 0: the port has no LID, if PortInfo was read. */
static bool lids_differ(const struct mad_fabric_port *before,
			const struct mad_fabric_port *after)
{
	if (before->info && after->info)
		return before->lid != after->lid || before->lmc != after->lmc;
	return differ(before->lid, after->lid) || differ(before->lmc, after->lmc);
}

static bool guids_differ(const struct mad_fabric_port *before,
			 const struct mad_fabric_port *after)
{
	return before->guid && after->guid && before->guid != after->guid;
}

static bool nodes_differ(const struct mad_fabric_node *before,
			 const struct mad_fabric_node *after)
{
	const struct mad_fabric_port *port = graph_lid_port(before), *other = NULL;

	if (port)
		other = mad_fabric_port(after, port->number);
	return before->type != after->type || before->port_count != after->port_count ||
	       (before->system_guid && after->system_guid &&
		before->system_guid != after->system_guid) ||
	       (before->description[0] && after->description[0] &&
		strcmp(before->description, after->description) != 0) ||
	       (port && other && lids_differ(port, other));
}

static bool ports_differ(const struct mad_fabric_port *before,
			 const struct mad_fabric_port *after)
{
	if (guids_differ(before, after))
		return true;
	/* otherwise the node has changed */
	if (graph_lid_port(before->node) != before && lids_differ(before, after))
		return true;
	/* otherwise the link has changed */
	return !before->peer && !after->peer && states_differ(before, after);
}

/* --- going through -------------------------------------------------------------------- */

static void tell_removed(struct comparison *comparison)
{
	const struct mad_fabric_port *port = NULL;

	for (size_t i = 0; i < mad_fabric_node_count(comparison->before); i++) {
		const struct mad_fabric_node *node = mad_fabric_node(comparison->before, i);

		if (counts(comparison->before, node) &&
		    !graph_find_node(comparison->after, node->guid) &&
		    !comparison->hidden[node->index])
			tell(comparison,
			     (struct mad_fabric_difference){.change = MAD_FABRIC_NODE_REMOVED,
							    .before_node = node});
	}
	while ((port = mad_fabric_next_port(comparison->before, port)))
		if (begins_link(comparison->before, port) &&
		    !is_linked_there(comparison->after, port,
				     same_port(comparison->after, port)) &&
		    !may_be_there(comparison, port))
			tell(comparison,
			     (struct mad_fabric_difference){.change = MAD_FABRIC_LINK_REMOVED,
							    .before_node = port->node,
							    .before_port = port});
}

static void compare_port(struct comparison *comparison, const struct mad_fabric_port *port)
{
	const struct mad_fabric_port *before = same_port(comparison->before, port);
	struct mad_fabric_difference difference = {.change = MAD_FABRIC_PORT_CHANGED,
						   .after_node = port->node,
						   .after_port = port,
						   .before_port = before};

	if (before) {
		difference.before_node = before->node;
		if (ports_differ(before, port))
			tell(comparison, difference);
	}
	if (!begins_link(comparison->after, port))
		return;
	if (!is_linked_there(comparison->before, port, before)) {
		tell(comparison, (struct mad_fabric_difference){.change = MAD_FABRIC_LINK_ADDED,
								.after_node = port->node,
								.after_port = port});
		return;
	}
	difference.change = MAD_FABRIC_LINK_CHANGED;
	if (states_differ(before, port) || states_differ(before->peer, port->peer))
		tell(comparison, difference);
}

static void compare_node(struct comparison *comparison, const struct mad_fabric_node *node)
{
	const struct mad_fabric_node *before = graph_find_node(comparison->before, node->guid);

	if (!before)
		tell(comparison, (struct mad_fabric_difference){.change = MAD_FABRIC_NODE_ADDED,
								.after_node = node});
	else if (nodes_differ(before, node))
		tell(comparison,
		     (struct mad_fabric_difference){.change = MAD_FABRIC_NODE_CHANGED,
						    .before_node = before,
						    .after_node = node});
	for (unsigned number = 0; number <= node->port_count; number++)
		if (mad_fabric_port(node, number))
			compare_port(comparison, mad_fabric_port(node, number));
}

static void compare(struct comparison *comparison)
{
	const struct mad_fabric *after = comparison->after;

	find_hidden(comparison);
	tell_removed(comparison);
	for (size_t i = 0; !comparison->ended && i < mad_fabric_node_count(after); i++)
		if (counts(after, mad_fabric_node(after, i)))
			compare_node(comparison, mad_fabric_node(after, i));
}

EXPORT int mad_fabric_compare(const struct mad_fabric *before, const struct mad_fabric *after,
			      mad_fabric_change_fn *changed, void *arg)
{
	struct comparison comparison = {
		.before = before, .after = after, .changed = changed, .arg = arg};
	size_t nodes = mad_fabric_node_count(before);

	if (!before || !after)
		return -EINVAL;
	comparison.hidden = calloc(nodes + 1, sizeof(bool)); /* calloc(0) may return NULL */
	comparison.queue = calloc(nodes + 1, sizeof(const struct mad_fabric_node *));
	if (comparison.hidden && comparison.queue)
		compare(&comparison);
	else
		comparison.ended = -ENOMEM;
	free(comparison.hidden);
	free(comparison.queue);
	return comparison.ended ? comparison.ended : comparison.count;
}
