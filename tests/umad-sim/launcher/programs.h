/* SPDX-License-Identifier: BSD-2-Clause */

/* The end of the programs on a fabric. */
#ifndef UMAD_SIM_PROGRAMS_H
#define UMAD_SIM_PROGRAMS_H

/*
 * Ends all processes that run on the fabric with this folder: those that umad-sim started,
 * their children and daemons. They get SIGTERM, and after PROGRAMS_END_MS those that are left
 * get SIGKILL. Returns when none is left. A process is found by its environment in /proc, as it
 * was at exec().
 *
 * With a device that is removed, as with real hardware, a program may log errors without end:
 * opensm does.
 */
void programs_end(const char *folder);

/*
 * Starts a guard: a process that does this, and removes the folder, if the caller is killed.
 * Until then the guard holds the lock of the folder, which it inherits. `unused` is a
 * descriptor that it closes; -1: none. 0 or a negative errno.
 */
int guard_start(const char *folder, int unused);

/* Ends the guard: the caller has ended the programs itself. */
void guard_release(void);

#endif
