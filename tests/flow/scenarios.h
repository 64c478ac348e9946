/* SPDX-License-Identifier: BSD-2-Clause */

/* Named scenarios, each with its own bound. */
#ifndef TESTS_FLOW_SCENARIOS_H
#define TESTS_FLOW_SCENARIOS_H

#include "fabric.h"

enum measure {
	BESIDE_BEST, /* t99 and tall, to those of the best fixed setting */
	RECOVERY,    /* the rate of a fresh start to the rate after the troubles */
	IDLE,        /* the window before to the window after 30 s of few requests */
	LIVING,      /* seconds until the living have responded; the worst of several seeds */
	WHOLE_TIME,  /* seconds until all requests are complete */
	PROBING,     /* the same, and MADs a second if nothing responds */
	HOSTS,       /* the slowest host to the median host; the median of several seeds */
	ONE_EACH,    /* with a destination limit of 1: requests that had company */
	ENDS,        /* random fabrics and attempts: requests that ended late; their number */
	CALLS,       /* blocking calls: their time to the sum of their round trips */
	SECONDS,     /* printed for tests/flow/compare; no bound */
	PROCESSOR    /* processor time per request, to that with 10,000 requests */
};

struct scenario {
	const char *name;
	enum measure measure;
	double bound;
	double most_dropped; /* in per cent, for BESIDE_BEST */
	/*
	 * Known shortfalls: a figure that is beyond its bound, but not beyond this value, is
	 * printed and is no failure. 0: none.
	 */
	double known, known_dropped;
	struct fabric fabric;
};

extern const struct scenario scenarios[];
extern const unsigned scenario_count;

void scenarios_list(void);
/* The fabric of the first scenario whose name begins so; NULL: there is none. */
const struct fabric *scenario_fabric(const char *name);
/*
 * Runs the scenarios whose names begin so (NULL: all). Returns the number of those that exceed
 * a bound and what is known.
 */
unsigned judge_scenarios(const char *name, unsigned processes);

#endif
