/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A topology: the nodes, and which ports a cable connects. Values that a subnet manager sets
 * or that change while the fabric runs are in fabric.h.
 *
 * Nodes and ports are numbered from 0, in the order in which they were added; this index of a
 * port is not its number on its node. Every node has ports 0 .. port_count, with consecutive
 * indexes from first_port on: port 0 is a switch's own port, and an unused entry in all other
 * nodes.
 */
#ifndef FABRIC_GRAPH_H
#define FABRIC_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NONE      UINT32_MAX /* no node, no port */
#define MAX_PORTS 254        /* of a node (IBA 14.2.5.3: NumPorts) */
#define MAX_NAME  64         /* bytes of a NodeDescription (IBA 14.2.5.2) */

#define MAX_NODES       200000     /* of a graph */
#define MAX_GRAPH_PORTS (1U << 24) /* includes ports 0: about 500 MB */

enum node_type { /* IBA 14.2.5.3 */
	NODE_CA = 1,
	NODE_SWITCH = 2,
	NODE_ROUTER = 3
};

enum link_speed {
	SDR,
	DDR,
	QDR,
	FDR10,
	FDR,
	EDR,
	HDR,
	NDR,
	XDR,
	SPEED_COUNT
};

struct graph_node {
	uint64_t guid;
	uint64_t system_guid;
	char *name; /* NodeDescription, at most MAX_NAME bytes and a terminating zero */
	uint32_t first_port;
	uint32_t vendor_id;
	uint16_t device_id;
	uint8_t type; /* enum node_type */
	uint8_t port_count;
	bool enhanced_port0; /* of a switch */
};

struct graph_port {
	uint64_t guid; /* of a CA's or router's port, or a switch's port 0; 0 for a switch's
			* other ports */
	uint32_t node;
	uint32_t peer; /* the port at the cable's other end, or NONE */
	uint16_t lid;  /* from the topology file; 0: to be assigned */
	uint8_t lmc;
	uint8_t number; /* on its node */
	uint8_t width;  /* lanes of the cable: 1, 2, 4, 8, 12 */
	uint8_t speed;  /* enum link_speed */
	/* a degraded link: the most it trains to; width 0: not degraded */
	uint8_t most_width;
	uint8_t most_speed;
	/* what the port supports, as in PortInfo (IBA 14.2.5.6: LinkWidthSupported,
	 * LinkSpeedSupported, LinkSpeedExtSupported); 0: all up to what the cable has */
	uint8_t widths;
	uint8_t speeds;
	uint8_t extended_speeds;
};

struct graph {
	struct graph_node *nodes;
	struct graph_port *ports;
	uint32_t node_count;
	uint32_t port_count;
	uint32_t node_room; /* allocated entries */
	uint32_t port_room;
};

/* Functions that return an int return 0 or a negative errno. */

void graph_init(struct graph *graph);
void graph_free(struct graph *graph);

/*
 * Adds a node with its ports, without cables, and stores its index. Port n of a CA gets the
 * GUID guid + n, port 0 of a switch the switch's own GUID. -EINVAL: wrong type, port count or
 * name length; -E2BIG: more nodes or ports than a graph can have.
 */
int graph_add(struct graph *graph, enum node_type type, uint64_t guid, const char *name,
	      unsigned int port_count, uint32_t *node);

/* Returns the index of a node's port; NONE if the node has no such port. */
uint32_t graph_port(const struct graph *graph, uint32_t node, unsigned int number);

/* Cables two ports (by index). -EBUSY: one of them already has a cable; -EINVAL: the same port
 * twice, a port 0, or a wrong width or speed. */
int graph_cable(struct graph *graph, uint32_t a, uint32_t b, unsigned int width,
		enum link_speed speed);

/* Whether a port supports the width and the speed. A port with QDR has FDR10; none has XDR. */
bool graph_supports(const struct graph_port *port, unsigned int width, enum link_speed speed);

/* Degrades the link of a port's cable, at both ends. -EINVAL: no cable, a width that does not
 * exist, or more than the cable has. */
int graph_degrade(struct graph *graph, uint32_t port, unsigned int width,
		  enum link_speed speed);

/* Finds a node by its name, else by GUID (0x...), else by number ("#17"); NONE if there is
 * none. */
uint32_t graph_find(const struct graph *graph, const char *spec);
uint32_t graph_find_guid(const struct graph *graph, uint64_t guid);

/* "SDR" .. "XDR" and back (SPEED_COUNT: unknown). */
const char *link_speed_name(enum link_speed speed);
enum link_speed link_speed_parse(const char *name, size_t length);

bool link_width_exists(unsigned int width);

/* LinkWidth's bit: 1x is 1, 4x 2, 8x 4, 12x 8, 2x 16. */
uint8_t width_bit(unsigned int lanes);

#endif
