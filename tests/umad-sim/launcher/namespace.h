/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Hides the machine's InfiniBand devices from a program: a mount namespace, in which empty
 * folders cover /dev/infiniband, /sys/class/infiniband* and the folders of the devices. The
 * kernel does this for every program, however the program is linked and whatever calls it uses.
 */
#ifndef UMAD_SIM_NAMESPACE_H
#define UMAD_SIM_NAMESPACE_H

#include <stdbool.h>

#define NAMESPACE_TEXT 256

/* Whether the machine has InfiniBand devices that this process sees. */
bool namespace_is_needed(void);

/*
 * Hides the devices from this process, which has one thread, and from the programs that it
 * executes and their children. They cannot undo it. Returns 0, or a negative errno with the
 * call that failed and its error as text; then the process must not run a program.
 */
int namespace_enter(char why[NAMESPACE_TEXT]);

#endif
