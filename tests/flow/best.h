/* SPDX-License-Identifier: BSD-2-Clause */

/* The best of a grid of fixed windows and destination limits for a fabric. */
#ifndef TESTS_FLOW_BEST_H
#define TESTS_FLOW_BEST_H

#include "run.h"

struct setting {
	unsigned window, limit;
};

/* The quickest settings that drop at most 1 %. If none does, the one that drops least. */
struct best {
	bool polite; /* one drops at most 1 % */
	double t99, tall;
	struct setting for_99, for_all;
	double dropped; /* by the setting for_99: its share of the transmissions */
	char broken[SENTENCE];
};

void best_find(const struct fabric *fabric, struct best *best);

double share_dropped(const struct result *result);
/* A time divided by the best time, 10 median round trips and 1 ms. */
double ratio_to(const struct fabric *fabric, double time, double best);

/* --- a file of results ---------------------------------------------------------- */

/* The results of best_find() are read from this file and added to it by best_save(). */
void best_open_cache(const char *path);
/* Whether the file has the result. */
bool best_cached(const struct fabric *fabric, struct best *best);
void best_save(const struct fabric *fabric, const struct best *best);
void best_close_cache(void);

#endif
