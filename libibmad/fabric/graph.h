/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A fabric's graph: nodes with ports, and links. A discovery or mad_fabric_load() adds nodes,
 * fills them and their ports in, and finally calls graph_finish().
 *
 * Nodes and their data are in large blocks, freed at once. Every step takes time proportional
 * to nodes and ports, whatever the GUIDs and LIDs.
 */
#ifndef LIBIBMAD_GRAPH_H
#define LIBIBMAD_GRAPH_H

#include <infiniband/mad_fabric.h>

#include <stddef.h>

/*
 * Grows an array with fewer than count entries; *size is the allocated number. New entries are
 * zeroed. On OOM, returns NULL and leaves the array unchanged.
 */
void *array_reserve(void *entries, size_t count, size_t *size, size_t entry_size);

struct graph_node {
	struct mad_fabric_node node;  /* must be first: graph_node_of() */
	struct graph_node *next_guid; /* in its bucket */
	bool shares_guid;             /* another node with its NodeGUID was left out */
	struct mad_fabric_port ports[];
};

struct graph_block;

struct graph {
	struct mad_fabric fabric;   /* must be first: graph_of() */
	struct graph_block *blocks; /* latest first */
	struct graph_node **nodes;
	size_t node_size;
	struct graph_node **guids; /* buckets */
	size_t guid_buckets;       /* 0 or a power of two */
	uint64_t seed;             /* keeps fabrics from choosing GUIDs that collide */
	struct mad_fabric_problem *problems;
	size_t problem_size;
	/*
	 * By index of a port behind which no node responded: index of its problem plus 1 if the
	 * node is known, else 0.
	 */
	size_t *behind;
	size_t behind_size;
	/* by graph_finish() */
	const struct mad_fabric_port **port_guids; /* open addressing; NULL: free */
	size_t port_guid_buckets;                  /* a power of two */
	const struct mad_fabric_port **lids;       /* 0 to lid_count - 1 */
	size_t lid_count;
};

/* A graph is writable; only its public structures point at each other as const. */
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

/* The public calls of these names, returning writable results. */
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

/* port_count, or one more (port 0). */
static inline unsigned graph_ports(const struct mad_fabric_node *node)
{
	return node->port_count + 1u - graph_first_number(node);
}

/* The port that has the node's LID; NULL if the port it was entered by is missing. */
static inline const struct mad_fabric_port *graph_lid_port(const struct mad_fabric_node *node)
{
	return mad_fabric_get_port(node, node->type == IB_NODE_SWITCH ? 0 : node->entry_port);
}

/* buckets must be a power of two. */
static inline size_t graph_bucket(const struct graph *graph, uint64_t number, size_t buckets)
{
	uint64_t hash = (number ^ graph->seed) * UINT64_C(0x9e3779b97f4a7c15);

	hash = (hash ^ hash >> 32 ^ graph->seed >> 7) * UINT64_C(0xd6e8feb86659fd93);
	return (size_t)(hash >> 32) & (buckets - 1);
}

/* --- graph.c ---------------------------------------------------------------------- */

/* Returns NULL on OOM. Free with mad_fabric_free(). */
struct mad_fabric *graph_create(void);

/*
 * Adds a node with ports up to port_count, from 0 for IB_NODE_SWITCH, else from 1. Sets guid,
 * type, port_count, node, number and index; the rest is 0. Duplicate GUIDs are allowed:
 * graph_find_node() finds the first. Returns NULL on OOM.
 */
struct mad_fabric_node *graph_add_node(struct mad_fabric *fabric, uint64_t guid, unsigned type,
				       unsigned port_count);

/* Copies size bytes; freed with the graph. NULL on OOM. */
const void *graph_copy(struct mad_fabric *fabric, const void *data, size_t size);

/*
 * Adds a problem, filling in its ports' nodes; sets *index unless NULL. A failure behind a port
 * also sets its peer_error. Returns 0 or -ENOMEM.
 */
int graph_add_problem(struct mad_fabric *fabric, const struct mad_fabric_problem *problem,
		      size_t *index);
/* Counts the same node's failure behind another port. Returns 0 or -ENOMEM. */
int graph_add_failure_behind(struct mad_fabric *fabric, size_t index,
			     const struct mad_fabric_port *port);

/* Returns the problem behind a port and its index, or NULL unless the GUID there is known. */
const struct mad_fabric_problem *graph_problem_behind(const struct mad_fabric *fabric,
						      const struct mad_fabric_port *port,
						      size_t *index);

/* --- graph_finish.c --------------------------------------------------------------- */

/*
 * Builds the PortGUID and LID tables; sets gmp_lid of all ports, and width_possible and
 * speed_possible of ports with info. Adds problems: duplicate GUIDs and LIDs, links whose ends
 * differ. Call once, at the end. Returns 0 or -ENOMEM.
 */
int graph_finish(struct mad_fabric *fabric);

#endif
