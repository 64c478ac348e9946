/* SPDX-License-Identifier: BSD-2-Clause */

/* The memory of a graph, and arrays that grow. */
#ifndef LIBIBMAD_GRAPH_MEMORY_H
#define LIBIBMAD_GRAPH_MEMORY_H

#include <infiniband/mad_fabric.h>

#include <stddef.h>

/*
 * Extends an array that has less than count entries. *size is the number of allocated entries.
 * New entries are zero. NULL without memory: the array does not change.
 */
void *array_reserve(void *entries, size_t count, size_t *size, size_t entry_size);

/* A node with its ports behind it. */
struct graph_node {
	struct mad_fabric_node node;  /* the first member: graph_node_of() depends on it */
	struct graph_node *next_guid; /* in its bucket */
	uint32_t first_port;          /* the index of its first port */
	bool shares_guid;             /* another node, which was left out, has its NodeGUID */
	struct mad_fabric_port ports[];
};

static inline struct graph_node *graph_node_of(const struct mad_fabric_node *node)
{
	union {
		const void *read;
		struct graph_node *write;
	} whole = {.read = node};

	return whole.write;
}

static inline unsigned graph_first_number(const struct mad_fabric_node *node)
{
	return node->type == IB_NODE_SWITCH ? 0 : 1;
}

/* The ports of a node, port_count or one more. */
static inline unsigned graph_ports(const struct mad_fabric_node *node)
{
	return node->port_count + 1u - graph_first_number(node);
}

/* A port behind which no node responded. */
struct graph_silent_port {
	const struct mad_fabric_port *port;
	size_t problem; /* the index of its problem, whose node is known */
};

struct graph_block;

struct graph {
	struct mad_fabric fabric;   /* the first member: graph_of() depends on it */
	struct graph_block *blocks; /* the latest one first */
	struct graph_node **nodes;
	size_t node_size;
	struct graph_node **guids; /* buckets */
	size_t guid_buckets;       /* 0 or a power of two */
	uint64_t seed;             /* so that no fabric can choose GUIDs of one bucket */
	struct mad_fabric_problem *problems;
	size_t problem_size;
	/* by the index of the port from graph_finish() on */
	struct graph_silent_port *silent_ports;
	size_t silent_port_count, silent_port_size;
	/* of graph_finish() */
	const struct mad_fabric_port **port_guids; /* open addressing; NULL: free */
	size_t port_guid_buckets;                  /* a power of two */
	const struct mad_fabric_port **lids;       /* from 0 to lid_count - 1 */
	size_t lid_count;
};

static inline struct graph *graph_of(const struct mad_fabric *fabric)
{
	union {
		const struct mad_fabric *read;
		struct graph *write;
	} whole = {.read = fabric};

	return whole.write;
}

/*
 * Whether the port itself has a LID of this subnet. If no link leads to the port of a CA, the
 * port may have a LID of another subnet.
 */
static inline bool graph_has_lid(const struct mad_fabric *fabric,
				 const struct mad_fabric_port *port)
{
	if (!IB_LID_VALID(port->lid))
		return false;
	if (port->node->type == IB_NODE_SWITCH)
		return !port->number;
	return port->peer || port == fabric->origin;
}

/* The bucket of a number. The number of buckets is a power of two. */
static inline size_t graph_bucket(const struct graph *graph, uint64_t number, size_t buckets)
{
	uint64_t hash = (number ^ graph->seed) * UINT64_C(0x9e3779b97f4a7c15);

	hash = (hash ^ hash >> 32 ^ graph->seed >> 7) * UINT64_C(0xd6e8feb86659fd93);
	return (size_t)(hash >> 32) & (buckets - 1);
}

#endif
