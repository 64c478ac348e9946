/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * flow_judge: the flow control of libibmad, measured in virtual time. The program has the
 * library, a umad device, a model of a fabric and a clock in one process. A seed gives the same
 * run each time. See usage().
 *
 * The columns of a fabric: the ratio of the times until 99 % of the responses are there and
 * until all are complete to the best fixed setting (with 10 round trips and 1 ms added to it),
 * the MADs dropped, percentage points more than the best setting, and transmissions that nobody
 * needed.
 */

#include "judge.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SEEDS   200
#define LONGEST 120 /* seconds of a job; after that, the library does not end a loop */

/* --- jobs ----------------------------------------------------------------------- */

static void start_job(unsigned job, void *result, job_fn *work)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0) {
		perror("fork");
		exit(2);
	}
	if (pid)
		return;
	alarm(LONGEST);
	work(job, result);
	_exit(0);
}

void *run_jobs(unsigned jobs, size_t size, job_fn *work)
{
	char *results = mmap(NULL, jobs * size, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	long processors = sysconf(_SC_NPROCESSORS_ONLN), running = 0;
	int status;

	if (results == MAP_FAILED)
		abort();
	for (unsigned next = 0; next < jobs || running;) {
		if (next < jobs && (!running || running < processors)) {
			start_job(next, results + next * size, work);
			next++;
			running++;
		} else if (wait(&status) > 0) {
			running--;
			if (status)
				printf("a job ends with status 0x%x%s\n", (unsigned)status,
				       status == SIGALRM ? ", after too long" : "");
		}
	}
	return results;
}

/* --- the program ---------------------------------------------------------------- */

static int usage(void)
{
	fputs("usage: flow_judge [OPTION ...]\n"
	      "  --random, --named  only the random fabrics, or only the named scenarios\n"
	      "  --scenario NAME    only the scenarios whose names begin so\n"
	      "  --seed S           the first seed of the random fabrics, instead of the\n"
	      "                     seeds 1 to 200 and a random seed\n"
	      "  --count N          random fabrics from that seed on; of one, its line\n"
	      "  --fixed-cache FILE the results of fixed settings are read from FILE, or\n"
	      "                     written to it\n"
	      "Exits with 1 if a bound is exceeded.\n",
	      stderr);
	return 2;
}

static uint64_t random_seed(void)
{
	struct timespec now;
	uint64_t state;

	clock_gettime(CLOCK_REALTIME, &now);
	state = (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 30;
	return 1000 + random_next(&state) % 1000000000;
}

int main(int argc, char **argv)
{
	static const struct option known[] = {
		{"seed", required_argument, NULL, 's'},
		{"count", required_argument, NULL, 'c'},
		{"random", no_argument, NULL, 'r'},
		{"named", no_argument, NULL, 'n'},
		{"scenario", required_argument, NULL, 'S'},
		{"fixed-cache", required_argument, NULL, 'C'},
		{NULL, 0, NULL, 0},
	};
	const char *scenario = NULL, *cache = NULL;
	bool random = true, named = true;
	uint64_t seed = random_seed();
	unsigned fixed = SEEDS, count = SEEDS, failed = 0;
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1)
		switch (option) {
		case 's':
			seed = strtoull(optarg, NULL, 0);
			fixed = 0;
			break;
		case 'c':
			count = (unsigned)strtoul(optarg, NULL, 0);
			break;
		case 'r':
			named = false;
			break;
		case 'S':
			scenario = optarg;
			random = false;
			break;
		case 'n':
			random = false;
			break;
		case 'C':
			cache = optarg;
			break;
		default:
			return usage();
		}
	if (optind < argc)
		return usage();
	if (random)
		failed += judge_random(1, fixed, false, NULL) +
			  judge_random(seed, count, true, cache);
	if (named)
		failed += judge_scenarios(scenario);
	if (failed)
		printf("%u beyond a bound\n", failed);
	return failed ? 1 : 0;
}
