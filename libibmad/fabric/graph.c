/* SPDX-License-Identifier: BSD-2-Clause */

/* Creates, fills and frees the graph of a fabric. */

#include "fabric/graph.h"

#include "base/export.h"
#include "fabric/graph_memory.h"

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

/* Zeroed memory that lives as long as the graph. */
static void *allocate(struct mad_fabric *fabric, size_t size)
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

/* Doubles the buckets when there are as many nodes as buckets. */
static int grow_guids(struct graph *graph)
{
	size_t wanted = graph->guid_buckets ? graph->guid_buckets * 2 : 64;
	struct graph_node **buckets;

	if (graph->fabric.node_count < graph->guid_buckets)
		return 0;
	buckets = calloc(wanted, sizeof(struct graph_node *));
	if (!buckets)
		return -ENOMEM;
	/* backwards: the first node of a GUID is the first of its bucket */
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

	if (same) /* the first node of the GUID stays before it */
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
	node = allocate(fabric, sizeof(*node) + ports * sizeof(node->ports[0]));
	if (!node)
		return NULL;
	node->node = shape;
	node->node.guid = guid;
	node->node.index = (uint32_t)fabric->node_count;
	node->first_port = (uint32_t)fabric->port_count;
	for (unsigned i = 0; i < ports; i++) {
		struct mad_fabric_port *port = &node->ports[i];

		port->node = &node->node;
		port->number = (uint8_t)(graph_first_number(&shape) + i);
		port->index = node->first_port + i;
	}
	enter_guid(graph, node);
	graph->nodes[fabric->node_count++] = node;
	fabric->port_count += ports;
	return &node->node;
}

struct mad_fabric_node *graph_node(const struct mad_fabric *fabric, size_t index)
{
	return index < fabric->node_count ? &graph_of(fabric)->nodes[index]->node : NULL;
}

struct mad_fabric_node *graph_find_node(const struct mad_fabric *fabric, uint64_t guid)
{
	const struct graph *graph = graph_of(fabric);
	struct graph_node *node;

	if (!graph->guid_buckets)
		return NULL;
	node = graph->guids[graph_bucket(graph, guid, graph->guid_buckets)];
	while (node && node->node.guid != guid)
		node = node->next_guid;
	return node ? &node->node : NULL;
}

void graph_share_guid(struct mad_fabric_node *node)
{
	graph_node_of(node)->shares_guid = true;
}

void graph_link(struct mad_fabric_port *one, struct mad_fabric_port *other)
{
	one->peer = other;
	other->peer = one;
}

void graph_set_origin(struct mad_fabric *fabric, const struct mad_fabric_port *port)
{
	fabric->origin = port;
}

const uint8_t *graph_store(struct mad_fabric *fabric, const void *attribute)
{
	uint8_t *image = allocate(fabric, IB_SMP_DATA_SIZE);

	return image ? memcpy(image, attribute, IB_SMP_DATA_SIZE) : NULL;
}

const char *graph_store_text(struct mad_fabric *fabric, const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = allocate(fabric, size);

	return copy ? memcpy(copy, text, size) : NULL;
}

/* Notes that the problem with this index is behind the port. */
static int note_silent_port(struct graph *graph, size_t index,
			    const struct mad_fabric_port *port)
{
	const struct mad_fabric_problem *problem = &graph->problems[index];
	struct graph_silent_port *ports;

	graph_port(port->node, port->number)->peer_error = problem->error;
	if (!problem->guid)
		return 0;
	ports = array_reserve(graph->silent_ports, graph->silent_port_count + 1,
			      &graph->silent_port_size, sizeof(*ports));
	if (!ports)
		return -ENOMEM;
	graph->silent_ports = ports;
	ports[graph->silent_port_count++] = (struct graph_silent_port){port, index};
	return 0;
}

int graph_add_failure_behind(struct mad_fabric *fabric, size_t index,
			     const struct mad_fabric_port *port)
{
	struct mad_fabric_problem *problem = &graph_of(fabric)->problems[index];

	/* the order of timeouts is random */
	if (port->index < problem->port->index) {
		problem->port = port;
		problem->node = port->node;
	}
	graph_count_failures(fabric, index, 1);
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

int graph_add_oddity(struct mad_fabric *fabric, enum mad_fabric_problem_kind kind,
		     const struct mad_fabric_port *port, const struct mad_fabric_port *other,
		     uint64_t guid)
{
	const struct mad_fabric_problem problem = {
		.kind = kind, .port = port, .other_port = other, .guid = guid};

	return graph_add_problem(fabric, &problem, NULL);
}

void graph_count_failures(struct mad_fabric *fabric, size_t index, unsigned count)
{
	graph_of(fabric)->problems[index].count += count;
}

void graph_note_timeout(struct mad_fabric *fabric, size_t index, unsigned attribute,
			unsigned modifier)
{
	struct mad_fabric_problem *problem = &graph_of(fabric)->problems[index];

	if (problem->error == -ETIMEDOUT)
		return;
	problem->error = -ETIMEDOUT;
	problem->attribute = attribute;
	problem->modifier = modifier;
	problem->status = 0;
	problem->port = graph_port_of_request(problem->node, attribute, modifier);
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
	free(graph->silent_ports);
	free(graph->port_guids);
	free(graph->lids);
	free(graph);
}
