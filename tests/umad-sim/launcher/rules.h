/* SPDX-License-Identifier: BSD-2-Clause */

/* The rules of --faults and --fault. */
#ifndef UMAD_SIM_RULES_H
#define UMAD_SIM_RULES_H

#include "options.h"

struct rules {
	bool all; /* to be set: prints each wrong rule, and reads the rules after it */
	unsigned int count; /* rules that are correct */
	char why[256];      /* the first error, with file and line */
};

/* Applies the rules: those of the file first. 0 or the first error, a negative errno. Prints
 * notes on rules. */
int rules_apply(struct fabric *fabric, const struct options *options, struct rules *rules);

#endif
