/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The graph of a fabric: nodes with their ports, and links. Who fills a graph adds nodes and
 * links, sets the members of nodes and ports, and calls graph_finish() at the end.
 *
 * All of a graph lies in large blocks of memory, which are freed at once. No step takes longer
 * than the number of nodes and ports demands, whatever GUIDs and LIDs a fabric has.
 */
#ifndef LIBIBMAD_GRAPH_H
#define LIBIBMAD_GRAPH_H

#include <infiniband/mad_fabric.h>

#include <stddef.h>

/* NULL without memory. Freed by mad_fabric_free(). */
struct mad_fabric *graph_create(void);

/*
 * Adds a node with its ports, from 0 if the type is IB_NODE_SWITCH, otherwise from 1, to
 * port_count. All members are 0 but for guid, type, port_count, node, number and index. There
 * may be a node with this GUID already: graph_find_node() finds the first one. NULL without
 * memory.
 */
struct mad_fabric_node *graph_add_node(struct mad_fabric *fabric, uint64_t guid, unsigned type,
				       unsigned port_count);

/* A node by its index, or by its NodeGUID; NULL if there is none. */
struct mad_fabric_node *graph_node(const struct mad_fabric *fabric, size_t index);
struct mad_fabric_node *graph_find_node(const struct mad_fabric *fabric, uint64_t guid);

/* mad_fabric_port() to write to. */
static inline struct mad_fabric_port *graph_port(const struct mad_fabric_node *node,
						 unsigned number)
{
	union {
		const struct mad_fabric_port *read;
		struct mad_fabric_port *write;
	} port = {.read = mad_fabric_port(node, number)};

	return port.write;
}

/* The port whose LID is the node's; NULL if it was entered by a port that it does not have. */
static inline const struct mad_fabric_port *graph_lid_port(const struct mad_fabric_node *node)
{
	return mad_fabric_port(node, node->type == IB_NODE_SWITCH ? 0 : node->entry_port);
}

/* Makes two ports each other's peers. They may be the same port. */
void graph_link(struct mad_fabric_port *one, struct mad_fabric_port *other);

/* mad_fabric_origin() from now on. */
void graph_set_origin(struct mad_fabric *fabric, const struct mad_fabric_port *port);

/* A copy of the 64 bytes of an attribute, which lives as long as the graph. NULL without
 * memory. */
const uint8_t *graph_store(struct mad_fabric *fabric, const void *attribute);

/* A copy of a text, which lives as long as the graph. NULL without memory. */
const char *graph_store_text(struct mad_fabric *fabric, const char *text);

/*
 * Adds a failure, and sets *index, unless it is NULL, for graph_count_failures(), which counts
 * more of the same node, and for graph_add_failure_behind(), which counts one behind another
 * port. Both note the peer_error of a port. 0 or -ENOMEM.
 */
int graph_add_failure_behind(struct mad_fabric *fabric, size_t index,
			     const struct mad_fabric_port *port);
int graph_add_failure(struct mad_fabric *fabric, const struct mad_fabric_failure *failure,
		      size_t *index);
void graph_count_failures(struct mad_fabric *fabric, size_t index, unsigned count);

/* The failure becomes one of this request, which timed out, unless it is a timeout already. */
void graph_note_timeout(struct mad_fabric *fabric, size_t index, unsigned attribute,
			unsigned modifier);

/*
 * The failure behind a port, if its guid is known; or NULL. The graph is finished. *index
 * becomes the failure's.
 */
const struct mad_fabric_failure *graph_failure_behind(const struct mad_fabric *fabric,
						      const struct mad_fabric_port *port,
						      size_t *index);

/* The node is the port's if port is not NULL. 0 or -ENOMEM. */
int graph_add_oddity(struct mad_fabric *fabric, enum mad_fabric_oddity_kind kind,
		     const struct mad_fabric_node *node, const struct mad_fabric_port *port,
		     const struct mad_fabric_port *other);

/*
 * Makes the tables of PortGUIDs, LIDs and descriptions, and sets width_possible and
 * speed_possible of ports that have info. Notes what is odd: GUIDs and LIDs that two ports
 * have, links whose ends differ. To be called once, at the end. 0 or -ENOMEM.
 */
int graph_finish(struct mad_fabric *fabric);

#endif
