/* SPDX-License-Identifier: BSD-2-Clause */

/* The requests of the stress test: threads that make them, and what is said of the results. */
#ifndef TESTS_STRESS_JOBS_H
#define TESTS_STRESS_JOBS_H

#include <errno.h>
#include <infiniband/mad_async.h>
#include <infiniband/umad.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* What the seed draws. */
struct job_mix {
	unsigned nodes;      /* that are asked */
	unsigned attributes; /* likewise */
	bool has_vendor2;    /* a class of vendor range 2 is registered */
	/* Of 100 blocking requests: */
	unsigned reused; /* with an ib_rpc_t that was used before */
	unsigned chosen; /* with a transaction ID of the caller's, who has few */
	unsigned sent;   /* by mad_send_via() */
	/* Of 100 requests with the ID of one that mad_send_via() has sent just before. */
	unsigned doubled;
	unsigned timeout_ms;
};

/* A round of requests: its tickets are from 1 on. */
void jobs_begin(unsigned count, uint64_t seed, const struct job_mix *mix);
/* Each ended once, with a permitted result; gone: as on a device that is removed or a port
 * that is closed. */
void jobs_end(bool gone);
/* Prints what the responses were, of which there must be some. Returns how many were wrong. */
unsigned long jobs_report(unsigned long least);

/* A thread's share of the requests. */
struct share {
	struct ibmad_port *port;
	unsigned first, count;
	uint64_t seed;
};

/* Functions of threads, for a share. */
void *do_blocking(void *share);
void *do_running(void *share);
void *do_event_loop(void *share);
/* For a port, until the port is gone or jobs_stop_receiving() was called. */
void *do_receiving(void *port);
void jobs_stop_receiving(void);

/* Ends the program if a condition does not hold. */
void must(bool holds, const char *text);

#endif
