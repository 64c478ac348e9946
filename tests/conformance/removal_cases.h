/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Cases of a device that is removed at any time, and comes back. The seed of a case draws what
 * the program does, how and when the device is removed, how often, and for how long.
 */
#ifndef CONFORMANCE_REMOVAL_CASES_H
#define CONFORMANCE_REMOVAL_CASES_H

#include <stdbool.h>

/* What a program does. Each call ends, with a documented error. */
struct phase {
	const char *name;
	void (*run)(void);
};

#define PHASE(function)             \
	{                           \
#function, function \
	}

/*
 * For main(): runs cases of each phase. After a case, no descriptor is left, and a port that is
 * opened then works. After the first case of each phase, the memory in use does not grow. The
 * environment variable SEED repeats one case.
 */
int run_removals(int argc, char **argv, const struct phase all[], unsigned count);

/* A call that only the removal ends must begin before the device is back: each phase calls this
 * when it has opened the device. */
void remove_soon(void);

/* Whether the device was removed, and is back for good. */
bool over(void);

/* An error that a call documents for a device that is gone, or for a peer that is. */
void expect_gone(int error);

#endif
