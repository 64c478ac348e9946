/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * flow_judge: the flow control of libibmad, measured in virtual time. The program has the
 * library, a umad device, a model of a fabric and a clock in one process. A seed gives the same
 * run each time. See usage().
 */

#include "best.h"
#include "random.h"
#include "scenarios.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define FIXED_SEEDS 200
#define NEW_SEEDS   200
#define WORDS       400

static struct {
	struct random_options random;
	bool random_only, named_only;
	const char *scenario, *samples, *cache;
	uint64_t one;
	unsigned window, limit;
} options;

static int usage(void)
{
	fprintf(stderr,
		"usage: flow_judge [--random | --named] [--seed S] [--count N] [--fixed N]\n"
		"                  [--jobs J] [--verbose] [--fixed-cache FILE]\n"
		"       flow_judge --scenario NAME | --list\n"
		"       flow_judge --one SEED | --scenario NAME --samples FILE\n"
		"                  [--window W --limit L]\n"
		"\n"
		"Without arguments: the random fabrics of the seeds 1 to 200, 200 more from a\n"
		"random seed, and the named scenarios.\n"
		"  --random, --named  only these\n"
		"  --seed S           the first seed of the random fabrics; seeds 1 to 200 "
		"are\n"
		"                     left out\n"
		"  --count N          random fabrics from that seed on\n"
		"  --fixed N          the fabrics of the seeds 1 to N\n"
		"  --jobs J           processes; one for each processor\n"
		"  --verbose          a line for each fabric\n"
		"  --fixed-cache FILE the results of fixed settings are read from FILE, and "
		"added\n"
		"  --scenario NAME    the named scenarios whose names begin so\n"
		"  --one SEED         the figures of one fabric\n"
		"  --samples FILE     time, window, in flight, queued and dropped of one "
		"run\n");
	return 2;
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t value = strtoull(text, &end, 0);

	if (!*text || *end) {
		fprintf(stderr, "flow_judge: %s is no number\n", text);
		exit(2);
	}
	return value;
}

enum known_option {
	SEED = 1,
	COUNT,
	FIXED,
	JOBS,
	VERBOSE,
	RANDOM,
	NAMED,
	SCENARIO,
	LIST,
	ONE,
	WINDOW,
	LIMIT,
	SAMPLES,
	CACHE
};

static bool take_option(int option)
{
	switch (option) {
	case SEED:
		options.random.seed = number(optarg);
		options.random.fixed_seeds = 0;
		return true;
	case COUNT:
		options.random.count = number(optarg);
		return true;
	case FIXED:
		options.random.fixed_seeds = number(optarg);
		return true;
	case JOBS:
		options.random.processes = (unsigned)number(optarg);
		return options.random.processes > 0;
	case VERBOSE:
		return options.random.verbose = true;
	case RANDOM:
		return options.random_only = true;
	case NAMED:
		return options.named_only = true;
	case SCENARIO:
		options.scenario = optarg;
		return options.named_only = true;
	case LIST:
		scenarios_list();
		exit(0);
	case ONE:
		options.one = number(optarg);
		return true;
	case WINDOW:
		options.window = (unsigned)number(optarg);
		return true;
	case LIMIT:
		options.limit = (unsigned)number(optarg);
		return true;
	case SAMPLES:
		options.samples = optarg;
		return true;
	case CACHE:
		options.cache = optarg;
		return true;
	}
	return false;
}

static uint64_t random_seed(void)
{
	struct timespec now;
	uint64_t state;

	clock_gettime(CLOCK_REALTIME, &now);
	state = (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 30;
	return 1000 + random_next(&state) % 1000000000;
}

/* The fabric of a seed, or of a scenario with samples. */
static bool choose_one(struct fabric *fabric)
{
	const struct fabric *named = NULL;
	char words[WORDS];

	if (options.one)
		fabric_draw(fabric, options.one);
	else if (options.scenario && options.samples)
		named = scenario_fabric(options.scenario);
	if (named)
		*fabric = *named;
	else if (!options.one)
		return false;
	fabric_words(fabric, words, sizeof(words));
	if (named)
		printf("%s: %s\n", options.scenario, words);
	else
		printf("seed %llu: %s\n", (unsigned long long)options.one, words);
	return true;
}

static int judge(void)
{
	unsigned exceeded = 0;
	struct fabric fabric;
	bool one = choose_one(&fabric);

	if (options.cache)
		best_open_cache(options.cache);
	if (one)
		exceeded = judge_one(&fabric, options.window, options.limit, options.samples);
	if (!one && !options.named_only)
		exceeded += judge_random(&options.random);
	if (!one && !options.random_only)
		exceeded += judge_scenarios(options.scenario, options.random.processes);
	best_close_cache();
	if (exceeded)
		printf("%u beyond a bound\n", exceeded);
	return exceeded ? 1 : 0;
}

int main(int argc, char **argv)
{
	static const struct option known[] = {
		{"seed", required_argument, NULL, SEED},
		{"count", required_argument, NULL, COUNT},
		{"fixed", required_argument, NULL, FIXED},
		{"jobs", required_argument, NULL, JOBS},
		{"verbose", no_argument, NULL, VERBOSE},
		{"random", no_argument, NULL, RANDOM},
		{"named", no_argument, NULL, NAMED},
		{"scenario", required_argument, NULL, SCENARIO},
		{"list", no_argument, NULL, LIST},
		{"one", required_argument, NULL, ONE},
		{"window", required_argument, NULL, WINDOW},
		{"limit", required_argument, NULL, LIMIT},
		{"samples", required_argument, NULL, SAMPLES},
		{"fixed-cache", required_argument, NULL, CACHE},
		{NULL, 0, NULL, 0},
	};
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	int option;

	options.random = (struct random_options){
		.fixed_seeds = FIXED_SEEDS,
		.seed = random_seed(),
		.count = NEW_SEEDS,
		.processes = processors > 0 ? (unsigned)processors : 1,
	};
	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1)
		if (!take_option(option))
			return usage();
	return optind < argc ? usage() : judge();
}
