/* SPDX-License-Identifier: BSD-2-Clause */

/* Reads a fabric: its nodes and ports by number, GUID, LID and description. */

#include "base/export.h"
#include "fabric/graph.h"
#include "fabric/graph_memory.h"

#include <stdlib.h>
#include <string.h>

EXPORT size_t mad_fabric_node_count(const struct mad_fabric *fabric)
{
	return fabric ? fabric->node_count : 0;
}

EXPORT const struct mad_fabric_node *mad_fabric_get_node(const struct mad_fabric *fabric,
							 size_t index)
{
	return fabric ? graph_node(fabric, index) : NULL;
}

EXPORT size_t mad_fabric_port_count(const struct mad_fabric *fabric)
{
	return fabric ? fabric->port_count : 0;
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
	for (; next < fabric->node_count; next++)
		if (graph_ports(&fabric->nodes[next]->node))
			return fabric->nodes[next]->ports;
	return NULL;
}

EXPORT const struct mad_fabric_port *mad_fabric_origin(const struct mad_fabric *fabric)
{
	return fabric ? fabric->origin : NULL;
}

EXPORT const struct mad_fabric_node *mad_fabric_find_guid(const struct mad_fabric *fabric,
							  uint64_t guid)
{
	return fabric ? graph_find_node(fabric, guid) : NULL;
}

EXPORT const struct mad_fabric_port *mad_fabric_find_port_guid(const struct mad_fabric *fabric,
							       uint64_t guid)
{
	size_t at;

	if (!fabric || !fabric->port_guids)
		return NULL;
	at = graph_bucket(fabric, guid, fabric->port_guid_buckets);
	while (fabric->port_guids[at] && fabric->port_guids[at]->guid != guid)
		at = (at + 1) & (fabric->port_guid_buckets - 1);
	return fabric->port_guids[at];
}

EXPORT const struct mad_fabric_port *mad_fabric_find_lid(const struct mad_fabric *fabric,
							 unsigned lid)
{
	return fabric && lid < fabric->lid_count ? fabric->lids[lid] : NULL;
}

EXPORT uint16_t mad_fabric_port_lid(const struct mad_fabric *fabric,
				    const struct mad_fabric_port *port)
{
	if (port && port->node->type == IB_NODE_SWITCH)
		port = mad_fabric_get_port(port->node, 0);
	return fabric && port && graph_has_lid(fabric, port) ? port->lid : 0;
}

EXPORT const struct mad_fabric_node *mad_fabric_find_description(
	const struct mad_fabric *fabric, const char *description,
	const struct mad_fabric_node *after)
{
	const struct graph_node *node;

	if (!fabric || !description || !fabric->descriptions)
		return NULL;
	if (after)
		node = graph_node_of(after)->next_description;
	else
		node = fabric->descriptions[graph_bucket(fabric,
							 graph_hash_text(fabric, description),
							 fabric->description_buckets)];
	while (node && strcmp(node->node.description, description) != 0)
		node = node->next_description;
	return node ? &node->node : NULL;
}

EXPORT size_t mad_fabric_failure_count(const struct mad_fabric *fabric)
{
	return fabric ? fabric->failure_count : 0;
}

EXPORT const struct mad_fabric_failure *mad_fabric_failure(const struct mad_fabric *fabric,
							   size_t index)
{
	return fabric && index < fabric->failure_count ? &fabric->failures[index] : NULL;
}

static int is_of_port(const void *key, const void *member)
{
	const struct mad_fabric_port *port = key;
	const struct graph_silent_port *silent = member;

	return (port->index > silent->port->index) - (port->index < silent->port->index);
}

const struct mad_fabric_failure *graph_failure_behind(const struct mad_fabric *fabric,
						      const struct mad_fabric_port *port,
						      size_t *index)
{
	const struct graph_silent_port *silent = NULL;

	if (fabric->silent_port_count)
		silent = bsearch(port, fabric->silent_ports, fabric->silent_port_count,
				 sizeof(*silent), is_of_port);
	if (!silent)
		return NULL;
	*index = silent->failure;
	return &fabric->failures[silent->failure];
}

EXPORT size_t mad_fabric_oddity_count(const struct mad_fabric *fabric)
{
	return fabric ? fabric->oddity_count : 0;
}

EXPORT const struct mad_fabric_oddity *mad_fabric_oddity(const struct mad_fabric *fabric,
							 size_t index)
{
	return fabric && index < fabric->oddity_count ? &fabric->oddities[index] : NULL;
}

EXPORT const char *mad_fabric_oddity_text(enum mad_fabric_oddity_kind kind)
{
	switch (kind) {
	case MAD_FABRIC_ODD_PEER:
		return "two ports disagree about their link";
	case MAD_FABRIC_ODD_GUID:
		return "one GUID twice";
	case MAD_FABRIC_ODD_PORT_COUNT:
		return "impossible number of ports";
	case MAD_FABRIC_ODD_NODE_TYPE:
		return "unknown type of node";
	case MAD_FABRIC_ODD_LOOP:
		return "cable from a node to itself";
	case MAD_FABRIC_ODD_LID:
		return "one LID twice";
	case MAD_FABRIC_ODD_ROUTE_TOO_LONG:
		return "more than 63 hops";
	case MAD_FABRIC_ODD_TOO_MANY:
		return "too many nodes or ports";
	case MAD_FABRIC_ODD_LINK:
		return "the ends of the link differ";
	}
	return "?";
}
