/* SPDX-License-Identifier: BSD-2-Clause */

/* Reads a fabric: its nodes and ports by number, GUID and LID; its problems. */

#include "base/export.h"
#include "fabric/graph.h"
#include "fabric/graph_memory.h"

#include <stdlib.h>

EXPORT const struct mad_fabric_node *mad_fabric_get_node(const struct mad_fabric *fabric,
							 size_t index)
{
	return fabric ? graph_node(fabric, index) : NULL;
}

EXPORT const struct mad_fabric_port *mad_fabric_get_port(const struct mad_fabric_node *node,
							 unsigned number)
{
	unsigned first;

	if (!node)
		return NULL;
	first = graph_first_number(node);
	if (number < first || number > node->port_count)
		return NULL;
	return &graph_node_of(node)->ports[number - first];
}

EXPORT const struct mad_fabric_port *mad_fabric_next_port(const struct mad_fabric *fabric,
							  const struct mad_fabric_port *port)
{
	size_t next = 0;

	if (!fabric)
		return NULL;
	if (port) {
		if (port->number < port->node->port_count)
			return port + 1;
		next = port->node->index + (size_t)1;
	}
	for (; next < fabric->node_count; next++) {
		const struct graph_node *node = graph_of(fabric)->nodes[next];

		if (graph_ports(&node->node))
			return node->ports;
	}
	return NULL;
}

EXPORT const struct mad_fabric_node *mad_fabric_find_guid(const struct mad_fabric *fabric,
							  uint64_t guid)
{
	return fabric ? graph_find_node(fabric, guid) : NULL;
}

EXPORT const struct mad_fabric_port *mad_fabric_find_port_guid(const struct mad_fabric *fabric,
							       uint64_t guid)
{
	const struct graph *graph = graph_of(fabric);
	size_t at;

	if (!graph || !graph->port_guids)
		return NULL;
	at = graph_bucket(graph, guid, graph->port_guid_buckets);
	while (graph->port_guids[at] && graph->port_guids[at]->guid != guid)
		at = (at + 1) & (graph->port_guid_buckets - 1);
	return graph->port_guids[at];
}

EXPORT const struct mad_fabric_port *mad_fabric_find_lid(const struct mad_fabric *fabric,
							 unsigned lid)
{
	const struct graph *graph = graph_of(fabric);

	return graph && lid < graph->lid_count ? graph->lids[lid] : NULL;
}

EXPORT const struct mad_fabric_problem *mad_fabric_get_problem(const struct mad_fabric *fabric,
							       size_t index)
{
	return fabric && index < fabric->problem_count ? &graph_of(fabric)->problems[index]
						       : NULL;
}

static int is_of_port(const void *key, const void *member)
{
	const struct mad_fabric_port *port = key;
	const struct graph_silent_port *silent = member;

	return (port->index > silent->port->index) - (port->index < silent->port->index);
}

const struct mad_fabric_problem *graph_problem_behind(const struct mad_fabric *fabric,
						      const struct mad_fabric_port *port,
						      size_t *index)
{
	const struct graph *graph = graph_of(fabric);
	const struct graph_silent_port *silent = NULL;

	if (graph->silent_port_count)
		silent = bsearch(port, graph->silent_ports, graph->silent_port_count,
				 sizeof(*silent), is_of_port);
	if (!silent)
		return NULL;
	*index = silent->problem;
	return &graph->problems[silent->problem];
}
