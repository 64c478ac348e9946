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

#endif
