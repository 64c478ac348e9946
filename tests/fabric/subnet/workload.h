/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * What a node's agents had to do, and what its programs sent. A node has a processor for SMPs
 * and one for GMPs; each works on one request at a time, for as long as the faults say
 * (faults.h: none by default), and drops what comes while its buffer is full.
 */
#ifndef FABRIC_WORKLOAD_H
#define FABRIC_WORKLOAD_H

#include <stdio.h>

#include "fabric.h"

struct processor {
	uint64_t received; /* requests; those that a silent node ignores, too */
	uint64_t taken;    /* worked on, or to be */
	uint64_t dropped;
	uint64_t last;       /* when the last one came */
	uint64_t busy_until; /* with all that it has taken */
	uint64_t service;    /* for the one taken last */
	uint32_t longest;    /* how many waited at most, beside the one being worked on */
};

struct workload {
	struct processor processors[2]; /* by queue pair */
	uint64_t sent;                  /* requests of its programs, with retransmissions */
	uint64_t sent_in_vain;          /* those of them that the path's limit dropped */
	uint32_t in_flight;             /* as far as a limit counts them */
};

/* A node's, made when it is first asked for; NULL without memory. */
struct workload *workload_of(struct fabric *fabric, uint32_t node);
struct processor *processor_of(struct fabric *fabric, uint32_t node, bool smp);
void workload_free(struct workload *workload);

/*
 * A request comes that takes the processor `service` nanoseconds; `buffer` may wait beside the
 * one being worked on. False: it is dropped. Else the delay is what passes until it has been
 * worked on. While requests wait that were taken with another `service`, how many wait is
 * estimated by the newer one.
 */
bool processor_take(struct processor *processor, uint64_t now, uint64_t service,
		    uint32_t buffer, uint64_t *delay);

/*
 * A line with the names of the columns, a line for each node that received or sent something,
 * and one of totals, with tabs between the columns (docs/simulator.md).
 */
void workload_print(const struct fabric *fabric, FILE *out);

#endif
