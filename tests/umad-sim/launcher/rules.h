/* SPDX-License-Identifier: BSD-2-Clause */

/* The rules of --faults and --fault. */
#ifndef UMAD_SIM_RULES_H
#define UMAD_SIM_RULES_H

#include "options.h"

struct rules {
	bool all;           /* set by the caller: print each wrong rule and go on */
	unsigned int count; /* correct rules */
	char why[256];      /* the first error, with file and line */
};

/* Applies the rules, those of the file first, and prints notes on them. Returns 0 or the first
 * error, a negative errno. */
int rules_apply(struct fabric *fabric, const struct options *options, struct rules *rules);

#endif
