/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A topology: which nodes there are and which ports are cabled together. It says nothing that
 * a subnet manager decides or that changes while the fabric runs; that is fabric.h's.
 *
 * Nodes and ports are numbered from 0, in the order in which they were added; a port's number
 * here (its index) is not its number on its node. Every node has its ports 0 .. port_count in a
 * row from first_port on: port 0 is a switch's own and an unused entry of all others.
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
#define MAX_GRAPH_PORTS (1U << 24) /* ports 0 among them: some 400 MB */

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
};

struct graph_port {
	uint64_t guid; /* a CA's or router's port, a switch's port 0; 0 for a switch's others */
	uint32_t node;
	uint32_t peer; /* the port at the cable's other end, or NONE */
	uint16_t lid;  /* as the topology file has it; 0: to be assigned */
	uint8_t lmc;
	uint8_t number; /* on its node */
	uint8_t width;  /* lanes of the cable: 1, 2, 4, 8, 12 */
	uint8_t speed;  /* enum link_speed */
};

struct graph {
	struct graph_node *nodes;
	struct graph_port *ports;
	uint32_t node_count;
	uint32_t port_count;
	uint32_t node_room; /* entries allocated */
	uint32_t port_room;
};

/* All functions that return an int: 0 or a negative errno. */

void graph_init(struct graph *graph);
void graph_free(struct graph *graph);

/*
 * Adds a node with its ports, uncabled; the index is stored. A CA's port n gets the GUID
 * guid + n, a switch's port 0 the switch's own. -EINVAL: a type, port count or length of a name
 * that there is not; -E2BIG: more nodes or ports than a graph holds.
 */
int graph_add(struct graph *graph, enum node_type type, uint64_t guid, const char *name,
	      unsigned int port_count, uint32_t *node);

/* The index of a node's port; NONE where it has no such port. */
uint32_t graph_port(const struct graph *graph, uint32_t node, unsigned int number);

/*
 * Cables two ports (by index). -EBUSY: one of them is cabled already; -EINVAL: the same port
 * twice, a port 0, a width or speed that there is not.
 */
int graph_cable(struct graph *graph, uint32_t a, uint32_t b, unsigned int width,
		enum link_speed speed);

/*
 * The node that a person means: its name, else its GUID (0x...), else its number "#17".
 * NONE where there is no such node.
 */
uint32_t graph_find(const struct graph *graph, const char *spec);
uint32_t graph_find_guid(const struct graph *graph, uint64_t guid);

/* "SDR" .. "XDR" and back (SPEED_COUNT: unknown); GUIDs and names stay the graph's. */
const char *link_speed_name(enum link_speed speed);
enum link_speed link_speed_parse(const char *name, size_t length);

/* Whether a cable can have that many lanes. */
bool link_width_exists(unsigned int width);

#endif
