/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef UMAD_SIM_CHECK_H
#define UMAD_SIM_CHECK_H

#include "options.h"

/* Reads a topology and rules. Prints their errors or, if there are none, a count of their
 * parts. Returns the exit status. */
int check(const struct options *options);

#endif
