/* SPDX-License-Identifier: BSD-2-Clause */

/* Runs of the library on a fabric, and their judges. */
#ifndef TESTS_FLOW_JUDGE_H
#define TESTS_FLOW_JUDGE_H

#include "model.h"

/* --- run.c ------------------------------------------------------------------------ */

struct run_options {
	unsigned window, limit; /* 0: adaptive */
	int64_t abort_at;       /* the run is aborted at this time; 0: never */
	unsigned most_dropped;  /* and if more MADs are dropped; 0: never */
	bool quick;             /* ends when the requests to living nodes are complete */
};
extern const struct run_options defaults;

/* The whole work of the fabric. */
void run(const struct fabric *fabric, const struct run_options *options, struct result *result);

/* The same in steps. */
void run_start(const struct fabric *fabric, const struct run_options *options);
/* Submits requests on each host, as far as there are some left. */
void run_submit(unsigned count);
/* Runs until nothing is open, or until that time. Waits for the time if it is not NO_TIME. */
void run_until(int64_t time);
/* The window of the requests that the fabric has. */
unsigned run_window(void);
void run_end(struct result *result);

/* For the device: each poll calls this; true: it returns as if another thread woke it. */
bool run_polled(void);
/* A poll that no event would ever end. */
void run_stuck(void);

/* --- best.c ----------------------------------------------------------------------- */

struct setting {
	unsigned window, limit;
};

/* The quickest settings that drop at most 1 %. If none does, the one that drops least. */
struct best {
	bool polite; /* one drops at most 1 % */
	double t99, tall;
	struct setting for_99;
	double dropped; /* by the setting for_99: its share of the transmissions */
	char broken[SENTENCE];
};

void best_find(const struct fabric *fabric, struct best *best);
double share_dropped(const struct result *result);
/* A time divided by the best time, 10 median round trips and 1 ms. */
double ratio_to(const struct fabric *fabric, double time, double best);

/* --- scenarios.c, scenario_table.c ------------------------------------------------ */

struct outcome {
	bool done, beyond;
	double known; /* the figure is beyond its bound, but at most this; 0: it is not */
	char text[200];
	char broken[SENTENCE];
};

struct scenario;
typedef void measure_fn(const struct scenario *scenario, struct outcome *outcome);

struct scenario {
	const char *name;
	measure_fn *measure;
	double bound;
	double most_dropped; /* in per cent, for beside_best() */
	/*
	 * Known shortfalls: a figure that is beyond its bound, but not beyond this value, is
	 * printed and is no failure. 0: none.
	 */
	double known, known_dropped;
	struct fabric fabric;
};

extern const struct scenario scenarios[];
extern const unsigned scenario_count;

measure_fn beside_best; /* t99 and tall, to those of the best fixed setting */
measure_fn recovery;    /* the rate of a fresh start to the rate after the troubles */
measure_fn idle;        /* the window before to the window after 30 s of few requests */
measure_fn living;     /* seconds until the living have responded; the worst of several seeds */
measure_fn whole_time; /* seconds until all requests are complete */
measure_fn probing;    /* the same, and MADs a second if nothing responds */
measure_fn hosts;      /* the slowest host to the median host; the median of several seeds */
measure_fn ends;       /* random fabrics and attempts: none ends late */

/*
 * Runs the scenarios whose names begin so (NULL: all). Returns the number of those that exceed
 * a bound and what is known.
 */
unsigned judge_scenarios(const char *name);

/* --- random.c --------------------------------------------------------------------- */

/*
 * Judges random fabrics of the seeds from first on by their figures, or by what is certain of
 * them. The results of the fixed settings are kept in the file cache, unless it is NULL.
 * Returns the number of failures.
 */
unsigned judge_random(uint64_t first, unsigned count, bool certain, const char *cache);

/* --- judge.c ---------------------------------------------------------------------- */

/* Writes the result of a job, counted from 0. */
typedef void job_fn(unsigned job, void *result);

/*
 * Runs each job in a process of its own, as many at a time as there are processors. Returns an
 * array of results of that size each, zeroed for jobs that did not end well.
 */
void *run_jobs(unsigned jobs, size_t size, job_fn *work);

#endif
