/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The load on a node's agents, and what its programs sent. A node has a processor for SMPs and
 * one for GMPs, each of which handles one request at a time. Faults (faults.h) set the
 * processing time, by default none. A request that arrives while the buffer is full is dropped.
 */
#ifndef FABRIC_WORKLOAD_H
#define FABRIC_WORKLOAD_H

#include <stdio.h>

#include "fabric.h"

struct processor {
	uint64_t received; /* requests, including those that a silent node ignores */
	uint64_t taken;    /* accepted for processing */
	uint64_t dropped;
	uint64_t last;       /* arrival of the last request */
	uint64_t busy_until; /* when all accepted requests are completed */
	uint64_t service;    /* time for the last accepted request */
	uint32_t longest; /* the most requests that waited, without the one being processed */
};

struct workload {
	struct processor processors[2]; /* by queue pair */
	uint64_t sent;                  /* requests of programs, with retransmissions */
	uint64_t sent_in_vain;          /* those dropped by the path limit */
	uint32_t in_flight;             /* counted only with a path limit */
};

/* A node's workload, allocated on first use; NULL on OOM. */
struct workload *workload_of(struct fabric *fabric, uint32_t node);
struct processor *processor_of(struct fabric *fabric, uint32_t node, bool smp);
void workload_free(struct workload *workload);

/*
 * A request arrives that takes the processor `service` nanoseconds; `buffer` requests may wait,
 * besides the one being processed. False: the request is dropped. Otherwise stores the delay
 * until it is processed. If waiting requests were accepted with another `service`, their number
 * is estimated from the new one.
 */
bool processor_take(struct processor *processor, uint64_t now, uint64_t service,
		    uint32_t buffer, uint64_t *delay);

/* Prints a line of column names, a line for each node that received or sent something, and
 * totals, tab-separated (umad-sim(1), Statistics). */
void workload_print(const struct fabric *fabric, FILE *out);

#endif
