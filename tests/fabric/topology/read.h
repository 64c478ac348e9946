/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Between the parts of topology_read(): read.c has the files and attributes, lines.c the nodes
 * and ports, and cables.c puts the cables in once all nodes are known.
 */
#ifndef FABRIC_READ_H
#define FABRIC_READ_H

#include "scan.h"
#include "topology.h"

struct place {
	uint32_t file; /* of the reader's */
	uint32_t line;
};

/* What a node's line says beyond what the graph keeps. */
struct record {
	struct text id;
	struct place place;
};

/* A port's line: a cable as one of its ends tells of it. Zeros: not told. */
struct end {
	struct text peer; /* the id of the node at the other end */
	struct place place;
	uint64_t guid; /* of the port itself */
	uint64_t peer_guid;
	uint32_t port; /* the port itself, its number in the graph */
	uint16_t peer_lid;
	uint16_t peer_number;
	uint16_t speeds; /* a bit for each enum link_speed that the port can do */
	uint8_t widths;  /* PortInfo's bits (IBA 14.2.5.6, LinkWidthEnabled) */
};

struct source {
	char *name;
	char *text; /* of an included file */
};

struct composed; /* ids that stand nowhere in a file as they are */

struct reader {
	struct graph *graph;
	struct topology_error *error;
	struct source *sources;
	struct record *records; /* beside graph->nodes */
	struct end *ends;
	struct composed *composed;
	struct place place; /* of the line being read */
	struct text module;
	size_t included;        /* bytes */
	uint64_t next_guid[4];  /* by enum node_type: what a node gets if its file gives none */
	uint64_t system_guid;   /* of the next node, as are: */
	uint64_t own_port_guid; /* a switch's port 0's */
	uint64_t vendor_id;
	uint64_t device_id;
	/* of links whose lines say nothing: as ibsim's w=, s= and e= */
	uint64_t widths;
	uint64_t speeds;
	uint64_t extended_speeds;
	uint32_t node; /* whose lines are being read, or NONE */
	uint32_t source_count;
	uint32_t record_room;
	uint32_t end_count;
	uint32_t end_room;
	unsigned int depth;       /* of included files */
	bool told[MAX_PORTS + 1]; /* of which ports of the node there has been a line */
};

/* Says where and why, and returns ret. */
int read_fail(struct reader *reader, struct place place, int ret, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* How printf() shows a text: at most as much as a name can have. */
#define SHOW        "\"%.*s\""
#define SHOWN(text) (int)((text).length < MAX_NAME ? (text).length : MAX_NAME), (text).bytes

/* A node's header behind its first word, and a port's line. */
int read_header(struct reader *reader, enum node_type type, struct text *rest);
int read_port(struct reader *reader, struct text *rest);
void read_forget(struct reader *reader);

/* Cables the graph's ports as the ends say, and judges what can only be judged as a whole. */
int cables_join(struct reader *reader);

#endif
