/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The graph of a fabric: nodes with their ports, and links. The user of a graph adds nodes and
 * links, sets the members of nodes and ports, and calls graph_finish() at the end.
 *
 * A graph is in large blocks of memory, which are freed at once. The time of a step is
 * proportional to the number of nodes and ports, for all GUIDs and LIDs.
 */
#ifndef LIBIBMAD_GRAPH_H
#define LIBIBMAD_GRAPH_H

#include <infiniband/mad_fabric.h>

#include <stddef.h>

/* NULL without memory. Freed by mad_fabric_free(). */
struct mad_fabric *graph_create(void);

/*
 * Adds a node with its ports, up to port_count, from 0 if the type is IB_NODE_SWITCH, otherwise
 * from 1. All members are 0, except guid, type, port_count, node, number and index. A node with
 * this GUID may exist: graph_find_node() finds the first one. NULL without memory.
 */
struct mad_fabric_node *graph_add_node(struct mad_fabric *fabric, uint64_t guid, unsigned type,
				       unsigned port_count);

/* A node by its index, or by its NodeGUID; NULL if there is none. */
struct mad_fabric_node *graph_node(const struct mad_fabric *fabric, size_t index);
struct mad_fabric_node *graph_find_node(const struct mad_fabric *fabric, uint64_t guid);

/* mad_fabric_get_port(), writable. */
static inline struct mad_fabric_port *graph_port(const struct mad_fabric_node *node,
						 unsigned number)
{
	union {
		const struct mad_fabric_port *read;
		struct mad_fabric_port *write;
	} port = {.read = mad_fabric_get_port(node, number)};

	return port.write;
}

/*
 * The port with the LID of the node; NULL if the node does not have the port by which it was
 * entered.
 */
static inline const struct mad_fabric_port *graph_lid_port(const struct mad_fabric_node *node)
{
	return mad_fabric_get_port(node, node->type == IB_NODE_SWITCH ? 0 : node->entry_port);
}

/* The port that a request to a node is about; NULL if it is about the node. */
static inline const struct mad_fabric_port *graph_port_of_request(
	const struct mad_fabric_node *node, unsigned attribute, unsigned modifier)
{
	return attribute == IB_ATTR_PORT_INFO || attribute == IB_ATTR_MLNX_EXT_PORT_INFO
		       ? mad_fabric_get_port(node, modifier)
		       : NULL;
}

/* Notes that another node, which is not in the graph, has the NodeGUID of this node. */
void graph_share_guid(struct mad_fabric_node *node);

/* Links two ports, which may be the same port. */
void graph_link(struct mad_fabric_port *one, struct mad_fabric_port *other);

/* Sets mad_fabric:origin. */
void graph_set_origin(struct mad_fabric *fabric, const struct mad_fabric_port *port);

/*
 * A copy of the 64 bytes of an attribute, which is freed with the graph. NULL without memory.
 */
const uint8_t *graph_store(struct mad_fabric *fabric, const void *attribute);

/* A copy of a text, which is freed with the graph. NULL without memory. */
const char *graph_store_text(struct mad_fabric *fabric, const char *text);

/*
 * Adds a problem, and sets *index, unless it is NULL. The nodes of its ports are filled in.
 * graph_count_failures() counts further failures of this node. graph_add_failure_behind()
 * counts a failure of this node behind another port. Failures behind a port set its peer_error.
 * 0 or -ENOMEM.
 */
int graph_add_problem(struct mad_fabric *fabric, const struct mad_fabric_problem *problem,
		      size_t *index);
int graph_add_failure_behind(struct mad_fabric *fabric, size_t index,
			     const struct mad_fabric_port *port);
void graph_count_failures(struct mad_fabric *fabric, size_t index, unsigned count);

/* A problem with two ports, which may be NULL, and a GUID, which may be 0. 0 or -ENOMEM. */
int graph_add_oddity(struct mad_fabric *fabric, enum mad_fabric_problem_kind kind,
		     const struct mad_fabric_port *port, const struct mad_fabric_port *other,
		     uint64_t guid);

/* The problem becomes that of this request, which timed out, unless it is a timeout already. */
void graph_note_timeout(struct mad_fabric *fabric, size_t index, unsigned attribute,
			unsigned modifier);

/*
 * The problem behind a port, if its guid is known; otherwise NULL. Sets *index to its index.
 * The graph is finished.
 */
const struct mad_fabric_problem *graph_problem_behind(const struct mad_fabric *fabric,
						      const struct mad_fabric_port *port,
						      size_t *index);

/*
 * Creates the tables of PortGUIDs and LIDs, and sets gmp_lid of all ports, width_possible and
 * speed_possible of ports that have info. Adds problems: GUIDs and LIDs that two ports have,
 * links whose ends differ. Called once, at the end. 0 or -ENOMEM.
 */
int graph_finish(struct mad_fabric *fabric);

#endif
