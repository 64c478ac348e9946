/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The report of a port and its fabric, in parts. Names are written in quotation marks and
 * GUIDs as 0x and 16 digits, so that anonymous.c finds both.
 */
#ifndef SITE_REPORT_H
#define SITE_REPORT_H

#include <infiniband/mad_async.h>
#include <infiniband/umad.h>

#include <stdbool.h>

/* The port that is measured, and what a part needs of it. */
struct site {
	struct ibmad_port *port;
	struct mad_async *async;
	umad_port_t *local;
	unsigned rate;    /* MADs a second that leave the port; 0: no limit */
	ib_portid_t peer; /* by a directed route; of the node at the other end of the cable */
	bool has_peer;
	unsigned peer_type;  /* IB_NODE_SWITCH ... */
	unsigned peer_port;  /* the number of the port at the other end of the cable */
	unsigned peer_ports; /* of that node */
	int peer_lid;        /* 0: it has none */
};

/* A line of the verdict: what is not as it should be. The report goes on. */
void wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* "name: " in a column, and the rest of the line. */
void fact(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A new part. */
void part(const char *title);

/* Milliseconds of CLOCK_MONOTONIC. */
uint64_t clock_ms(void);

/* What the port's flow control did since the engine was created. */
void print_flow(struct site *site);

/* round_trips.c: the local port, its switch and the SA; many requests at once. */
void measure_local(struct site *site);
void measure_peer(struct site *site);
void measure_sa(struct site *site);
/* A RoCE port: its own general services. */
void measure_ethernet(struct site *site);

/* whole_fabric.c: discovery and all counters. The fabric is stored in a file, its names in
 * another. */
void measure_fabric(struct site *site, const char *store, const char *names);

#endif
