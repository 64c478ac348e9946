/* SPDX-License-Identifier: BSD-2-Clause */

/* The transactions of the stress test: what they ask, who does them, what became of them. */
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
/* Each came to an end once, as it may; gone: as on a device that is removed. */
void jobs_judge(unsigned first, unsigned count, bool gone);

/* A thread's part of them. */
struct share {
	struct ibmad_port *port;
	unsigned first, count;
};

/* Threads' functions, for a share. */
void *do_blocking(void *share);
void *do_running(void *share);
void *do_event_loop(void *share);

/* Ends the program where something is wrong. */
void must(bool holds, const char *text);

#endif
