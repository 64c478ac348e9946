/* SPDX-License-Identifier: BSD-2-Clause */

/* The transactions of the stress test: requests, threads and results. */
#ifndef TESTS_STRESS_JOBS_H
#define TESTS_STRESS_JOBS_H

#include <errno.h>
#include <infiniband/mad_async.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void jobs_start(unsigned count, uint64_t seed);
void jobs_end(void);
/* Each completed once, with a permitted result; gone: as on a device that is removed. */
void jobs_judge(unsigned first, unsigned count, bool gone);

/* A thread's share of them. */
struct share {
	struct ibmad_port *port;
	unsigned first, count;
};

/* Functions of threads, for a share. */
void *do_blocking(void *share);
void *do_running(void *share);
void *do_event_loop(void *share);

/* Ends the program if a condition does not hold. */
void must(bool holds, const char *text);

#endif
