/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * What two fabrics prove. A node or link that a fabric does not have may exist all the same: a
 * discovery does not find the nodes behind a port that is up and has no peer.
 */
#ifndef LIBIBMAD_CERTAIN_H
#define LIBIBMAD_CERTAIN_H

#include <infiniband/mad_fabric.h>

/* One of the two fabrics of a comparison. */
struct compared {
	const struct mad_fabric *fabric;
	const struct compared *other; /* the other fabric of the comparison */
	bool *doubtful;      /* by index of a node: its NodeGUID may be that of two nodes */
	bool *doubtful_port; /* by index of a port: its peer may be another one */
	/* by index of a node that the other fabric does not have: it may exist there */
	bool *hidden;
	bool all_hidden;     /* all nodes that the other fabric does not have may exist there */
	bool unknown_hidden; /* the nodes with a port that leads to an unknown node are hidden
			      */
	const struct mad_fabric_node **queue; /* hidden nodes */
	size_t queued;
};

/* Prepares both. 0 or -ENOMEM. certain_end() frees the memory in both cases. */
int certain_begin(struct compared *one, struct compared *other);
void certain_end(struct compared *one, struct compared *other);

/* The port of the same node with the same number in the other fabric; or NULL. */
const struct mad_fabric_port *certain_same_port(const struct mad_fabric *fabric,
						const struct mad_fabric_port *port);

/* Whether the NodeGUID of a node is that of one node only. */
bool certain_is_one(const struct compared *compared, const struct mad_fabric_node *node);

/* Whether a node of this fabric is certainly not in the other one. */
bool certain_node_is_absent(const struct compared *compared,
			    const struct mad_fabric_node *node);

/* Whether the link of a port is certainly not in the other fabric, which does not have it. */
bool certain_link_is_absent(const struct compared *compared,
			    const struct mad_fabric_port *port);

#endif
