/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Hides the machine's InfiniBand devices from a program, with a mount namespace in which empty
 * folders cover /dev/infiniband, /sys/class/infiniband* and the folders of the devices. The
 * kernel enforces this for every program, however it is linked and whatever calls it uses.
 */
#ifndef UMAD_SIM_NAMESPACE_H
#define UMAD_SIM_NAMESPACE_H

#include <stdbool.h>

#define NAMESPACE_TEXT 256

/* Whether this process sees InfiniBand devices of the machine. */
bool namespace_is_needed(void);

/*
 * Hides the devices from this process, which must have a single thread, and from the programs
 * it executes and their children; they cannot undo it. Returns 0, or a negative errno with the
 * failed call and its error in `why`; the process must not run a program then.
 */
int namespace_enter(char why[NAMESPACE_TEXT]);

#endif
