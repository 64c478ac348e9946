/* SPDX-License-Identifier: BSD-2-Clause */

/* Runs a program on the fabric. A program that cannot be on the fabric is not started. */
#ifndef UMAD_SIM_PROGRAM_H
#define UMAD_SIM_PROGRAM_H

#include <stdint.h>

#include "child.h"

/*
 * Runs the program with a view of the fabric in that folder. Returns its exit status, as a
 * shell reports it; STATUS_FAILED, with the reason on stderr, for a program that cannot be on
 * the fabric; 126 or 127 for a program that cannot be executed.
 */
int program_run(char **arguments, const char *folder, uint32_t view);

#endif
