/* SPDX-License-Identifier: BSD-2-Clause */

/* The lines of the format of ibnetdiscover: nodes, their ports, and the claims of ports. */
#ifndef LIBIBMAD_LOAD_LINES_H
#define LIBIBMAD_LOAD_LINES_H

#include "fabric/graph.h"
#include "fabric/text_line.h"

/* Nodes with the GUID of a claim that are compared with it. */
#define MAX_SAME_GUID 16

/* The other end of a port, as a line has it. */
struct claim {
	uint64_t guid;
	unsigned line; /* 0: the port has no line */
	uint8_t type;
	uint8_t number;
};

/* The lines before the line of a node, and the node. */
struct block {
	uint64_t system_guid;
	uint64_t guid;      /* of switchguid=, caguid=, rtguid= */
	uint64_t port_guid; /* of a switch's port 0 */
	unsigned vendor_id;
	unsigned device_id;
	uint8_t type; /* of the node with "guid"; 0: there was no such line */
	struct mad_fabric_node *node;
	char description[IB_SMP_DATA_SIZE + 1]; /* of a comment; "": there was none */
};

struct load {
	struct text_line line;
	struct mad_fabric *fabric;
	struct block block;
	struct claim *claims; /* by the index of the port */
	size_t claim_size;
	bool has_origin;
	uint64_t origin_guid, origin_port_guid;
};

/*
 * Reads all lines of load->line.file: adds nodes to the fabric, and makes claims. 0 or a
 * negative errno; load->line.number is the wrong line of -EBADMSG.
 */
int load_read_lines(struct load *load);

#endif
