/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Where fabrics live: a private folder of the user's, and in it a folder for each fabric with
 * its socket, its views and a lock that its process holds. What a killed fabric left behind is
 * known by its lock, which nobody holds, and is cleared when the next one starts.
 */
#ifndef UMAD_SIM_FOLDER_H
#define UMAD_SIM_FOLDER_H

#include <stddef.h>

#define FOLDER_BYTES 80 /* a socket's address has room for 108 */

/*
 * Makes the folder of a new fabric, and locks it: the descriptor that holds the lock is
 * returned, or a negative errno (-EADDRINUSE: there is a fabric of that name). `why` has 256
 * bytes.
 */
int folder_create(const char *name, char folder[FOLDER_BYTES], char *why);

/* The folder of a running fabric. 0 or a negative errno. */
int folder_find(const char *name, char folder[FOLDER_BYTES], char *why);

void folder_remove(const char *folder);

#endif
