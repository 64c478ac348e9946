/* SPDX-License-Identifier: BSD-2-Clause */

/* A fabric's graph: creation, contents, lookup, freeing. */

#include "fabric/graph.h"

#include "base/export.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BLOCK_SIZE ((size_t)64 * 1024)
#define ALIGNMENT  8

void *array_reserve(void *entries, size_t count, size_t *size, size_t entry_size)
{
	size_t wanted = *size ? *size : 16;
	char *larger;

	if (count <= *size)
		return entries;
	while (wanted < count)
		wanted *= 2;
	larger = realloc(entries, wanted * entry_size);
	if (!larger)
		return NULL;
	memset(larger + *size * entry_size, 0, (wanted - *size) * entry_size);
	*size = wanted;
	return larger;
}

struct graph_block {
	struct graph_block *next;
	size_t used; /* bytes of data */
	size_t size;
	uint64_t data[];
};

/* Zeroed memory, freed with the graph. */
static void *graph_allocate(struct mad_fabric *fabric, size_t size)
{
	struct graph *graph = graph_of(fabric);
	struct graph_block *block = graph->blocks;
	size_t at;

	size = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	if (!block || block->size - block->used < size) {
		size_t room = size > BLOCK_SIZE ? size : BLOCK_SIZE;

		block = calloc(1, sizeof(*block) + room);
		if (!block)
			return NULL;
		block->size = room;
		block->next = graph->blocks;
		graph->blocks = block;
	}
	at = block->used;
	block->used += size;
	return (uint8_t *)block->data + at;
}

struct mad_fabric *graph_create(void)
{
	struct graph *graph = calloc(1, sizeof(*graph));
	struct timespec now;

	if (!graph)
		return NULL;
	clock_gettime(CLOCK_MONOTONIC, &now);
	graph->seed = (uint64_t)now.tv_nsec * UINT64_C(0x9e3779b97f4a7c15) ^
		      (uint64_t)now.tv_sec ^ (uint64_t)(uintptr_t)graph << 16;
	return &graph->fabric;
}

/* Doubles the buckets once there is a node per bucket. */
static int grow_guids(struct graph *graph)
{
	size_t wanted = graph->guid_buckets ? graph->guid_buckets * 2 : 64;
	struct graph_node **buckets;

	if (graph->fabric.node_count < graph->guid_buckets)
		return 0;
	buckets = calloc(wanted, sizeof(struct graph_node *));
	if (!buckets)
		return -ENOMEM;
	/* backwards, so that a GUID's first node is first in its bucket */
	for (size_t i = graph->fabric.node_count; i-- > 0;) {
		struct graph_node *node = graph->nodes[i];
		size_t bucket = graph_bucket(graph, node->node.guid, wanted);

		node->next_guid = buckets[bucket];
		buckets[bucket] = node;
	}
	free(graph->guids);
	graph->guids = buckets;
	graph->guid_buckets = wanted;
	return 0;
}

static void enter_guid(struct graph *graph, struct graph_node *node)
{
	struct mad_fabric_node *same = graph_find_node(&graph->fabric, node->node.guid);
	struct graph_node **bucket =
		&graph->guids[graph_bucket(graph, node->node.guid, graph->guid_buckets)];

	if (same) /* a GUID's first node stays first */
		bucket = &graph_node_of(same)->next_guid;
	node->next_guid = *bucket;
	*bucket = node;
}

struct mad_fabric_node *graph_add_node(struct mad_fabric *fabric, uint64_t guid, unsigned type,
				       unsigned port_count)
{
	const struct mad_fabric_node shape = {.type = (uint8_t)type,
					      .port_count = (uint8_t)port_count};
	unsigned ports = graph_ports(&shape);
	struct graph *graph = graph_of(fabric);
	struct graph_node *node, **nodes;

	nodes = array_reserve(graph->nodes, fabric->node_count + 1, &graph->node_size,
			      sizeof(struct graph_node *));
	if (!nodes)
		return NULL;
	graph->nodes = nodes;
	if (grow_guids(graph))
		return NULL;
	node = graph_allocate(fabric, sizeof(*node) + ports * sizeof(node->ports[0]));
	if (!node)
		return NULL;
	node->node = shape;
	node->node.guid = guid;
	node->node.index = (uint32_t)fabric->node_count;
	for (unsigned i = 0; i < ports; i++) {
		struct mad_fabric_port *port = &node->ports[i];

		port->node = &node->node;
		port->number = (uint8_t)(graph_first_number(&shape) + i);
		port->index = (uint32_t)fabric->port_count++;
	}
	enter_guid(graph, node);
	graph->nodes[fabric->node_count++] = node;
	return &node->node;
}

const void *graph_copy(struct mad_fabric *fabric, const void *data, size_t size)
{
	void *copy = graph_allocate(fabric, size);

	return copy ? memcpy(copy, data, size) : NULL;
}

/* Records that the problem is behind the port. */
static int note_silent_port(struct graph *graph, size_t index,
			    const struct mad_fabric_port *port)
{
	const struct mad_fabric_problem *problem = &graph->problems[index];
	struct mad_fabric_port *silent = graph_writable(port);
	size_t *behind;

	silent->peer_error = problem->error;
	if (!problem->guid)
		return 0;
	behind = array_reserve(graph->behind, port->index + (size_t)1, &graph->behind_size,
			       sizeof(*behind));
	if (!behind)
		return -ENOMEM;
	graph->behind = behind;
	behind[port->index] = index + 1;
	return 0;
}

int graph_add_failure_behind(struct mad_fabric *fabric, size_t index,
			     const struct mad_fabric_port *port)
{
	struct mad_fabric_problem *problem = &graph_of(fabric)->problems[index];

	/* timeouts arrive in random order */
	if (port->index < problem->port->index) {
		problem->port = port;
		problem->node = port->node;
	}
	problem->count++;
	return note_silent_port(graph_of(fabric), index, port);
}

int graph_add_problem(struct mad_fabric *fabric, const struct mad_fabric_problem *problem,
		      size_t *index)
{
	struct graph *graph = graph_of(fabric);
	size_t at = fabric->problem_count;
	struct mad_fabric_problem *added,
		*problems = array_reserve(graph->problems, at + 1, &graph->problem_size,
					  sizeof(*problems));

	if (!problems)
		return -ENOMEM;
	graph->problems = problems;
	added = &problems[at];
	*added = *problem;
	if (added->port)
		added->node = added->port->node;
	if (added->other_port)
		added->other_node = added->other_port->node;
	if (!added->description)
		added->description = "";
	fabric->problem_count++;
	if (index)
		*index = at;
	if (added->kind != MAD_FABRIC_PROBLEM_BEHIND || !added->port)
		return 0;
	return note_silent_port(graph, at, added->port);
}

/* --- reading ---------------------------------------------------------------------- */

EXPORT const struct mad_fabric_node *mad_fabric_get_node(const struct mad_fabric *fabric,
							 size_t index)
{
	return fabric && index < fabric->node_count ? &graph_of(fabric)->nodes[index]->node
						    : NULL;
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
	const struct graph *graph = graph_of(fabric);
	const struct graph_node *node;

	if (!graph || !graph->guid_buckets)
		return NULL;
	node = graph->guids[graph_bucket(graph, guid, graph->guid_buckets)];
	while (node && node->node.guid != guid)
		node = node->next_guid;
	return node ? &node->node : NULL;
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

const struct mad_fabric_problem *graph_problem_behind(const struct mad_fabric *fabric,
						      const struct mad_fabric_port *port,
						      size_t *index)
{
	const struct graph *graph = graph_of(fabric);

	if (port->index >= graph->behind_size || !graph->behind[port->index])
		return NULL;
	*index = graph->behind[port->index] - 1;
	return &graph->problems[*index];
}

EXPORT void mad_fabric_free(struct mad_fabric *fabric)
{
	struct graph *graph = graph_of(fabric);
	struct graph_block *block, *next;

	if (!fabric)
		return;
	for (block = graph->blocks; block; block = next) {
		next = block->next;
		free(block);
	}
	free(graph->nodes);
	free(graph->guids);
	free(graph->problems);
	free(graph->behind);
	free(graph->port_guids);
	free(graph->lids);
	free(graph);
}
