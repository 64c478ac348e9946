/* SPDX-License-Identifier: BSD-2-Clause */

/* Internal to topology_read(): read.c reads the files and attributes, lines.c the nodes and
 * ports, and cables.c adds the cables when all nodes are known. */
#ifndef FABRIC_READ_H
#define FABRIC_READ_H

#include "scan.h"
#include "topology.h"

struct place {
	uint32_t file; /* index of the file in the reader */
	uint32_t line;
};

/* What a node's line says but the graph does not store. */
struct record {
	struct text id;
	struct place place;
};

/* A port's line: a cable as described at one of its ends. Zero: not in the line. */
struct end {
	struct text peer; /* the id of the node at the other end */
	struct place place;
	uint64_t guid; /* of the port itself */
	uint64_t peer_guid;
	uint32_t port; /* the index of the port in the graph */
	uint16_t peer_lid;
	uint16_t peer_number;
	uint16_t speeds;      /* a bit for each enum link_speed that the port can do */
	uint8_t widths;       /* PortInfo's bits (IBA 14.2.5.6, LinkWidthEnabled) */
	uint8_t active_width; /* of a degraded link; 0: it is not degraded */
	uint8_t active_speed; /* enum link_speed */
};

struct source {
	char *name;
	char *text; /* of an included file */
};

struct composed; /* ids made of a module's and a node's name */

struct reader {
	struct graph *graph;
	struct topology_error *error;
	struct source *sources;
	struct record *records; /* parallel to graph->nodes */
	struct end *ends;
	struct composed *composed;
	struct place place; /* of the line being read */
	struct text module;
	size_t included;        /* bytes */
	uint64_t next_guid[4];  /* by enum node_type: the GUID of the next node without one in
				 * the file */
	bool guid_told[4];      /* the file gave the GUID of the next node of this type */
	bool system_guid_told;  /* likewise */
	bool vendor_told;       /* likewise */
	uint64_t system_guid;   /* of the next node, like the following members */
	uint64_t own_port_guid; /* a switch's port 0's */
	uint64_t vendor_id;
	uint64_t device_id;
	/* of links whose lines give none: ibsim's w=, s= and e= */
	uint64_t widths;
	uint64_t speeds;
	uint64_t extended_speeds;
	uint32_t node; /* the node of the lines that are being read, or NONE */
	uint32_t source_count;
	uint32_t record_room;
	uint32_t end_count;
	uint32_t end_room;
	unsigned int depth;       /* of included files */
	bool told[MAX_PORTS + 1]; /* ports of the node that had a line */
};

/* Reports an error with its place; returns ret. */
int read_fail(struct reader *reader, struct place place, int ret, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* printf() format of a text, limited to the length of a name. */
#define SHOW        "\"%.*s\""
#define SHOWN(text) (int)((text).length < MAX_NAME ? (text).length : MAX_NAME), (text).bytes

/* Read a node's header after its first word, and a port's line. */
int read_header(struct reader *reader, enum node_type type, struct text *rest);
int read_port(struct reader *reader, struct text *rest);
void read_forget(struct reader *reader);

/* Adds the cables that the lines describe, and makes the checks that need the whole graph. */
int cables_join(struct reader *reader);

#endif
