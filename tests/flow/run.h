/* SPDX-License-Identifier: BSD-2-Clause */

/* A run: the library sends the requests of a fabric's work. One run at a time in a process. */
#ifndef TESTS_FLOW_RUN_H
#define TESTS_FLOW_RUN_H

#include "account.h"

#include <infiniband/mad_async.h>
#include <stdio.h>

struct run_options {
	unsigned window, limit; /* 0: adaptive */
	int64_t abort_at;       /* the run is aborted at this time; 0: never */
	unsigned most_dropped;  /* and if more MADs are dropped; 0: never */
	FILE *samples;          /* a line each sample_every ns */
	int64_t sample_every;
	bool quick; /* ends when the requests to living nodes are complete */
};

/* The whole work of the fabric. */
void run(const struct fabric *fabric, const struct run_options *options, struct result *result);

/* The same in steps. */
void run_start(const struct fabric *fabric, const struct run_options *options);
/* Submits requests on each host, as far as there are some left. */
void run_submit(unsigned count);
/* Runs until nothing is open, or until that time. Waits for the time if it is not NO_TIME. */
void run_until(int64_t time);
struct mad_async_stats run_stats(unsigned host);
/* The window of the requests that the fabric has. */
unsigned run_window(void);
void run_end(struct result *result);

#endif
