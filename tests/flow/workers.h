/* SPDX-License-Identifier: BSD-2-Clause */

/* Work that several processes share. */
#ifndef TESTS_FLOW_WORKERS_H
#define TESTS_FLOW_WORKERS_H

#include <stddef.h>

/* Writes the result of a job, counted from 0. */
typedef void worker_fn(unsigned job, void *result);
/* Says what became of a job whose process did not end well. */
typedef void crash_fn(unsigned job, const char *why);

/*
 * Runs the jobs in that many processes. Returns an array of results of that size each, zeroed
 * for jobs that did not end; free it by workers_free().
 */
void *workers_run(unsigned jobs, unsigned processes, size_t size, worker_fn *work,
		  crash_fn *crashed);
void workers_free(void *results, unsigned jobs, size_t size);

#endif
