/* SPDX-License-Identifier: BSD-2-Clause */

/* Runs a program on the fabric. */
#ifndef UMAD_SIM_PROGRAM_H
#define UMAD_SIM_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "child.h"

/*
 * Runs the program with a view of the fabric in that folder, and without a view of the devices
 * of the machine; without_namespace: the library alone keeps the program from them. Returns the
 * exit status of the program, as a shell reports it. Returns STATUS_FAILED, with the reason on
 * stderr, if the devices cannot be hidden, or if the program ran without the library; 126 or
 * 127 for a program that cannot be executed.
 */
int program_run(char **arguments, const char *folder, uint32_t view, bool without_namespace);

#endif
