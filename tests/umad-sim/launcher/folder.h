/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The folders of fabrics: a private folder of the user, with a folder for each fabric. A
 * fabric's folder has its socket, its views and a lock file that the fabric's process holds. A
 * folder whose lock nobody holds belonged to a killed fabric; the next fabric that starts
 * removes it.
 */
#ifndef UMAD_SIM_FOLDER_H
#define UMAD_SIM_FOLDER_H

#include <stddef.h>

#define FOLDER_BYTES 80 /* a socket's address has 108 */

/* Makes the folder of a new fabric and locks it. Returns the descriptor that holds the lock,
 * or a negative errno (-EADDRINUSE: a fabric of that name is running). `why` has 256 bytes. */
int folder_create(const char *name, char folder[FOLDER_BYTES], char *why);

/* The folder of a running fabric. 0 or a negative errno. */
int folder_find(const char *name, char folder[FOLDER_BYTES], char *why);

void folder_remove(const char *folder);

#endif
