/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The graph of a fabric: nodes with their ports, and links. A discovery or mad_fabric_load()
 * adds the nodes, sets their members and those of their ports, and calls graph_finish() last.
 *
 * Nodes and what belongs to them are in large blocks of memory, which are freed at once. The
 * time of a step is proportional to the number of nodes and ports, for all GUIDs and LIDs.
 */
#ifndef LIBIBMAD_GRAPH_H
#define LIBIBMAD_GRAPH_H

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
	bool shares_guid;             /* another node, which was left out, has its NodeGUID */
	struct mad_fabric_port ports[];
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
	/*
	 * By the index of a port behind which no node responded: the index of its problem plus
	 * 1, if the node is known; otherwise 0.
	 */
	size_t *behind;
	size_t behind_size;
	/* of graph_finish() */
	const struct mad_fabric_port **port_guids; /* open addressing; NULL: free */
	size_t port_guid_buckets;                  /* a power of two */
	const struct mad_fabric_port **lids;       /* from 0 to lid_count - 1 */
	size_t lid_count;
};

/* All of a graph is writable, but its public structures refer to each other as const. */
static inline void *graph_writable(const void *part)
{
	union {
		const void *read;
		void *write;
	} pointer = {.read = part};

	return pointer.write;
}

static inline struct graph *graph_of(const struct mad_fabric *fabric)
{
	return graph_writable(fabric);
}

static inline struct graph_node *graph_node_of(const struct mad_fabric_node *node)
{
	return graph_writable(node);
}

/* The public calls of these names, with results that can be written. */
static inline struct mad_fabric_node *graph_node(const struct mad_fabric *fabric, size_t index)
{
	return graph_writable(mad_fabric_get_node(fabric, index));
}

static inline struct mad_fabric_node *graph_find_node(const struct mad_fabric *fabric,
						      uint64_t guid)
{
	return graph_writable(mad_fabric_find_guid(fabric, guid));
}

static inline struct mad_fabric_port *graph_next_port(const struct mad_fabric *fabric,
						      const struct mad_fabric_port *port)
{
	return graph_writable(mad_fabric_next_port(fabric, port));
}

static inline struct mad_fabric_problem *graph_problem(const struct mad_fabric *fabric,
						       size_t index)
{
	return graph_writable(mad_fabric_get_problem(fabric, index));
}

static inline struct mad_fabric_port *graph_port(const struct mad_fabric_node *node,
						 unsigned number)
{
	return graph_writable(mad_fabric_get_port(node, number));
}

static inline unsigned graph_first_number(const struct mad_fabric_node *node)
{
	return node->type == IB_NODE_SWITCH ? 0 : 1;
}

/* The number of ports of a node: port_count, or one more. */
static inline unsigned graph_ports(const struct mad_fabric_node *node)
{
	return node->port_count + 1u - graph_first_number(node);
}

/*
 * The port with the LID of the node; NULL if the node does not have the port by which it was
 * entered.
 */
static inline const struct mad_fabric_port *graph_lid_port(const struct mad_fabric_node *node)
{
	return mad_fabric_get_port(node, node->type == IB_NODE_SWITCH ? 0 : node->entry_port);
}

/* The bucket of a number. The number of buckets is a power of two. */
static inline size_t graph_bucket(const struct graph *graph, uint64_t number, size_t buckets)
{
	uint64_t hash = (number ^ graph->seed) * UINT64_C(0x9e3779b97f4a7c15);

	hash = (hash ^ hash >> 32 ^ graph->seed >> 7) * UINT64_C(0xd6e8feb86659fd93);
	return (size_t)(hash >> 32) & (buckets - 1);
}

/* --- graph.c ---------------------------------------------------------------------- */

/* NULL without memory. Freed by mad_fabric_free(). */
struct mad_fabric *graph_create(void);

/*
 * Adds a node with its ports, up to port_count, from 0 if the type is IB_NODE_SWITCH, otherwise
 * from 1. All members are 0, except guid, type, port_count, node, number and index. A node with
 * this GUID may exist: graph_find_node() finds the first one. NULL without memory.
 */
struct mad_fabric_node *graph_add_node(struct mad_fabric *fabric, uint64_t guid, unsigned type,
				       unsigned port_count);

/* A copy of size bytes, which is freed with the graph. NULL without memory. */
const void *graph_copy(struct mad_fabric *fabric, const void *data, size_t size);

/*
 * Adds a problem, and sets *index, unless it is NULL. The nodes of its ports are filled in. A
 * failure behind a port sets its peer_error. 0 or -ENOMEM.
 */
int graph_add_problem(struct mad_fabric *fabric, const struct mad_fabric_problem *problem,
		      size_t *index);
/* Counts a failure of the same node behind another port. 0 or -ENOMEM. */
int graph_add_failure_behind(struct mad_fabric *fabric, size_t index,
			     const struct mad_fabric_port *port);

/*
 * The problem behind a port, if its guid is known; otherwise NULL. Sets *index to its index.
 */
const struct mad_fabric_problem *graph_problem_behind(const struct mad_fabric *fabric,
						      const struct mad_fabric_port *port,
						      size_t *index);

/* --- graph_finish.c --------------------------------------------------------------- */

/*
 * Creates the tables of PortGUIDs and LIDs, and sets gmp_lid of all ports, width_possible and
 * speed_possible of ports that have info. Adds problems: GUIDs and LIDs that two ports have,
 * links whose ends differ. Called once, at the end. 0 or -ENOMEM.
 */
int graph_finish(struct mad_fabric *fabric);

#endif
