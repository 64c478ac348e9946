/* SPDX-License-Identifier: BSD-2-Clause */

/* Compares two discoveries. */

#include "base/export.h"
#include "base/report.h"
#include "fabric/certain.h"
#include "fabric/graph.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

struct comparison {
	struct compared before, after;
	mad_fabric_change_fn *changed;
	void *arg;
	int count;
	int ended; /* what changed() returned, if it is not 0 */
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

/* Whether the port is the first of the two ends of a link between nodes that count. */
static bool begins_link(const struct mad_fabric *fabric, const struct mad_fabric_port *port)
{
	return port->peer && port->peer->peer == port && port->peer->index >= port->index &&
	       counts(fabric, port->node) && counts(fabric, port->peer->node);
}

/* Returns the same port of another fabric, if the port's link is in that fabric; otherwise
 * NULL. */
static const struct mad_fabric_port *linked_there(const struct mad_fabric *fabric,
						  const struct mad_fabric_port *port)
{
	const struct mad_fabric_port *same = certain_same_port(fabric, port);
	bool linked = same && same->peer && same->peer == certain_same_port(fabric, port->peer);

	return linked ? same : NULL;
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
		other = mad_fabric_get_port(after, port->number);
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
	const struct compared *before = &comparison->before;
	const struct mad_fabric *after = comparison->after.fabric;
	const struct mad_fabric_port *port = NULL;

	for (size_t i = 0; i < before->fabric->node_count; i++) {
		const struct mad_fabric_node *node = mad_fabric_get_node(before->fabric, i);

		if (counts(before->fabric, node) && certain_node_is_absent(before, node))
			tell(comparison,
			     (struct mad_fabric_difference){.change = MAD_FABRIC_NODE_REMOVED,
							    .before_node = node});
	}
	while ((port = mad_fabric_next_port(before->fabric, port)))
		if (begins_link(before->fabric, port) && !linked_there(after, port) &&
		    certain_link_is_absent(before, port))
			tell(comparison,
			     (struct mad_fabric_difference){.change = MAD_FABRIC_LINK_REMOVED,
							    .before_node = port->node,
							    .before_port = port});
}

/* Whether a node of after and the node with the same GUID in before are one node. */
static bool are_comparable(const struct comparison *comparison,
			   const struct mad_fabric_node *before,
			   const struct mad_fabric_node *after)
{
	return before && certain_is_one(&comparison->before, before) &&
	       certain_is_one(&comparison->after, after);
}

static void compare_link(struct comparison *comparison, const struct mad_fabric_port *port)
{
	const struct mad_fabric_port *before = linked_there(comparison->before.fabric, port);

	if (!before) {
		if (certain_link_is_absent(&comparison->after, port))
			tell(comparison,
			     (struct mad_fabric_difference){.change = MAD_FABRIC_LINK_ADDED,
							    .after_node = port->node,
							    .after_port = port});
		return;
	}
	if (!are_comparable(comparison, before->node, port->node) ||
	    !are_comparable(comparison, before->peer->node, port->peer->node))
		return;
	if (states_differ(before, port) || states_differ(before->peer, port->peer))
		tell(comparison,
		     (struct mad_fabric_difference){.change = MAD_FABRIC_LINK_CHANGED,
						    .before_node = before->node,
						    .before_port = before,
						    .after_node = port->node,
						    .after_port = port});
}

static void compare_port(struct comparison *comparison, const struct mad_fabric_port *port)
{
	const struct mad_fabric_port *before =
		certain_same_port(comparison->before.fabric, port);

	if (before && are_comparable(comparison, before->node, port->node) &&
	    ports_differ(before, port))
		tell(comparison,
		     (struct mad_fabric_difference){.change = MAD_FABRIC_PORT_CHANGED,
						    .before_node = before->node,
						    .before_port = before,
						    .after_node = port->node,
						    .after_port = port});
	if (begins_link(comparison->after.fabric, port))
		compare_link(comparison, port);
}

static void compare_node(struct comparison *comparison, const struct mad_fabric_node *node)
{
	const struct mad_fabric_node *before =
		graph_find_node(comparison->before.fabric, node->guid);

	if (certain_node_is_absent(&comparison->after, node))
		tell(comparison, (struct mad_fabric_difference){.change = MAD_FABRIC_NODE_ADDED,
								.after_node = node});
	else if (are_comparable(comparison, before, node) && nodes_differ(before, node))
		tell(comparison,
		     (struct mad_fabric_difference){.change = MAD_FABRIC_NODE_CHANGED,
						    .before_node = before,
						    .after_node = node});
	for (unsigned number = 0; number <= node->port_count; number++)
		if (mad_fabric_get_port(node, number))
			compare_port(comparison, mad_fabric_get_port(node, number));
}

static void compare(struct comparison *comparison)
{
	const struct mad_fabric *after = comparison->after.fabric;

	tell_removed(comparison);
	for (size_t i = 0; !comparison->ended && i < after->node_count; i++)
		if (counts(after, mad_fabric_get_node(after, i)))
			compare_node(comparison, mad_fabric_get_node(after, i));
}

EXPORT int mad_fabric_compare(const struct mad_fabric *before, const struct mad_fabric *after,
			      mad_fabric_change_fn *changed, void *arg)
{
	struct comparison comparison = {
		.before.fabric = before, .after.fabric = after, .changed = changed, .arg = arg};

	if (!before || !after)
		return failure_of_call(0, -EINVAL);
	comparison.ended =
		failure_of_call(0, certain_begin(&comparison.before, &comparison.after));
	if (!comparison.ended)
		compare(&comparison);
	certain_end(&comparison.before, &comparison.after);
	return comparison.ended ? comparison.ended : comparison.count;
}
