/* SPDX-License-Identifier: BSD-2-Clause */

/* Ends the programs on a fabric. */
#ifndef UMAD_SIM_PROGRAMS_H
#define UMAD_SIM_PROGRAMS_H

/*
 * Ends all processes that run on the fabric with this folder: those that umad-sim started,
 * their children and daemons. Sends SIGTERM and, after PROGRAMS_END_MS, SIGKILL to those that
 * are left. Returns when none is left. Finds a process by its environment in /proc, as it was
 * at exec().
 *
 * A program whose device is removed may log errors forever, as on real hardware: opensm does.
 */
void programs_end(const char *folder);

/*
 * Starts a guard: a process that ends the programs and removes the folder if the caller is
 * killed. It inherits, and so holds, the folder's lock. It closes the descriptor `unused`,
 * unless that is -1. Returns 0 or a negative errno.
 */
int guard_start(const char *folder, int unused);

/* Dismisses the guard: the caller has ended the programs itself. */
void guard_release(void);

#endif
