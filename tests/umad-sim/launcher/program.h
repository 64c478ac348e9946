/* SPDX-License-Identifier: BSD-2-Clause */

/* Runs a program on the fabric. */
#ifndef UMAD_SIM_PROGRAM_H
#define UMAD_SIM_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "child.h"

/*
 * Runs the program with a view of the fabric in that folder, and with the machine's devices
 * hidden (without_namespace: only the library hides them). Returns the program's exit status,
 * as a shell reports it; 126 or 127 if the program cannot be executed; STATUS_FAILED, with the
 * reason on stderr, if the devices cannot be hidden or the program ran without the library.
 */
int program_run(char **arguments, const char *folder, uint32_t view, bool without_namespace);

#endif
