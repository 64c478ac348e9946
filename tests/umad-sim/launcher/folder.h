/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The folders of fabrics. A private folder of the user contains a folder for each fabric, with
 * its socket, its views and a lock file that the fabric's process holds. If nobody holds the
 * lock, the fabric was killed; the next fabric that starts removes the folder.
 */
#ifndef UMAD_SIM_FOLDER_H
#define UMAD_SIM_FOLDER_H

#include <stddef.h>

#define FOLDER_BYTES 80 /* a socket's path has at most 108 bytes */

/* Creates and locks the folder of a new fabric. Returns the descriptor that holds the lock, or
 * a negative errno (-EADDRINUSE: a fabric of that name is running). `why` has 256 bytes. */
int folder_create(const char *name, char folder[FOLDER_BYTES], char *why);

/* Finds the folder of a running fabric. Returns 0 or a negative errno. */
int folder_find(const char *name, char folder[FOLDER_BYTES], char *why);

void folder_remove(const char *folder);

#endif
