/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The report of a port and its fabric, in parts. Names are in quotation marks and GUIDs are 0x
 * and 16 digits, so that anonymous.c finds both.
 */
#ifndef SITE_REPORT_H
#define SITE_REPORT_H

#include <infiniband/mad_async.h>
#include <infiniband/umad.h>

#include <stdbool.h>

/* The measured port, and data that the parts need. */
struct site {
	struct ibmad_port *port;
	struct mad_async *async;
	umad_port_t *local;
	unsigned rate;    /* MADs a second that leave the port; 0: no limit */
	ib_portid_t peer; /* directed route of the node at the other end of the cable */
	bool has_peer;
	unsigned peer_type;  /* IB_NODE_SWITCH ... */
	unsigned peer_port;  /* the number of the port at the other end of the cable */
	unsigned peer_ports; /* the number of ports of that node */
	int peer_lid;        /* 0: no LID */
};

/* A line of the verdict: a failure. The report continues. */
void wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* "name: " in a column, then the rest of the line. */
void fact(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A new part. */
void part(const char *title);

/* Milliseconds of CLOCK_MONOTONIC. */
uint64_t clock_ms(void);

/* Prints the flow control statistics of the port since the engine was created. */
void print_flow(struct site *site);

/* round_trips.c: the local port, its switch and the SA; many requests at once. */
void measure_local(struct site *site);
void measure_peer(struct site *site);
void measure_sa(struct site *site);
/* A RoCE port: its own GSA. */
void measure_ethernet(struct site *site);

/* whole_fabric.c: discovery and all counters. One file gets the fabric, another the names. */
void measure_fabric(struct site *site, const char *store, const char *names);

#endif
