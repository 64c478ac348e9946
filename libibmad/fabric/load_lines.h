/* SPDX-License-Identifier: BSD-2-Clause */

/* The lines of ibnetdiscover's format: nodes, their ports, and what each port claims to lead
 * to. */
#ifndef LIBIBMAD_LOAD_LINES_H
#define LIBIBMAD_LOAD_LINES_H

#include "fabric/graph.h"
#include "fabric/text_line.h"

/* Of nodes with the GUID of a claim, so many are looked at. */
#define MAX_SAME_GUID 16

/* What a line says is at the other end of a port. */
struct claim {
	uint64_t guid;
	unsigned line; /* 0: nothing is said of the port */
	uint8_t type;
	uint8_t number;
};

/* The lines before a node's own, and the node then. */
struct block {
	uint64_t system_guid;
	uint64_t guid;      /* of switchguid=, caguid=, rtguid= */
	uint64_t port_guid; /* of a switch's port 0 */
	unsigned vendor_id;
	unsigned device_id;
	uint8_t type; /* of which guid is; 0: there was no such line */
	struct mad_fabric_node *node;
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
