/* SPDX-License-Identifier: BSD-2-Clause */

/* Random fabrics: the defaults beside the best fixed setting. */
#ifndef TESTS_FLOW_RANDOM_H
#define TESTS_FLOW_RANDOM_H

#include "fabric.h"

struct random_options {
	uint64_t fixed_seeds; /* 1 to fixed_seeds */
	uint64_t seed, count; /* and so many from seed on */
	unsigned processes;
	bool verbose;
};

/* Prints figures and bounds. Returns the number of failures. */
unsigned judge_random(const struct random_options *options);

/* Prints all of one fabric. With samples, writes them to the file. */
unsigned judge_one(const struct fabric *fabric, unsigned window, unsigned limit,
		   const char *samples);

#endif
