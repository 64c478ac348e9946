/* SPDX-License-Identifier: BSD-2-Clause */

/* The program that umad-sim runs. It is on the fabric, or it is not started. */
#ifndef UMAD_SIM_PROGRAM_H
#define UMAD_SIM_PROGRAM_H

#include <stdint.h>

#include "child.h"

/*
 * Runs the program on a view of the fabric in that folder. Returns its exit status as a shell
 * has it; STATUS_FAILED, with the reason on stderr, for a program that cannot be on the fabric;
 * 126 or 127 for a program that cannot be executed.
 */
int program_run(char **arguments, const char *folder, uint32_t view);

#endif
