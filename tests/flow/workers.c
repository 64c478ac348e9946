/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Processes that take jobs from a counter in shared memory, and write their results there. A
 * job may not take longer than LONGEST: then the library does not end a loop.
 */

#include "workers.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONGEST        120 /* seconds */
#define MOST_PROCESSES 64

struct shared {
	atomic_uint next;
	unsigned current[MOST_PROCESSES]; /* the job of each process, counted from 1 */
};

static void *map(size_t size)
{
	void *memory =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED) {
		perror("mmap");
		exit(2);
	}
	return memory;
}

static void work_on(struct shared *shared, unsigned process, unsigned jobs, char *results,
		    size_t size, worker_fn *work)
{
	unsigned job;

	while ((job = atomic_fetch_add(&shared->next, 1)) < jobs) {
		shared->current[process] = job + 1;
		alarm(LONGEST);
		work(job, results + job * size);
		shared->current[process] = 0;
	}
	fflush(NULL);
	_exit(0);
}

static void tell_crash(unsigned job, int status, crash_fn *crashed)
{
	char why[64];

	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		snprintf(why, sizeof(why), "does not end within %d s", LONGEST);
	else if (WIFSIGNALED(status))
		snprintf(why, sizeof(why), "ends by signal %d", WTERMSIG(status));
	else
		snprintf(why, sizeof(why), "exits with %d", WEXITSTATUS(status));
	crashed(job, why);
}

void *workers_run(unsigned jobs, unsigned processes, size_t size, worker_fn *work,
		  crash_fn *crashed)
{
	struct shared *shared = map(sizeof(*shared));
	char *results = map(jobs * size);
	pid_t pids[MOST_PROCESSES];
	unsigned running = 0, i;
	int status;
	pid_t pid;

	if (processes > MOST_PROCESSES)
		processes = MOST_PROCESSES;
	fflush(NULL);
	for (i = 0; i < processes; i++, running++) {
		pids[i] = fork();
		if (pids[i] == 0)
			work_on(shared, i, jobs, results, size, work);
	}
	while (running && (pid = wait(&status)) > 0) {
		for (i = 0; i < processes && pids[i] != pid; i++)
			;
		running--;
		if (i == processes || !status)
			continue;
		tell_crash(shared->current[i] - 1, status, crashed);
		/* another process does what is left */
		pids[i] = fork();
		if (pids[i] == 0)
			work_on(shared, i, jobs, results, size, work);
		running++;
	}
	munmap(shared, sizeof(*shared));
	return results;
}

void workers_free(void *results, unsigned jobs, size_t size)
{
	munmap(results, jobs * size);
}
