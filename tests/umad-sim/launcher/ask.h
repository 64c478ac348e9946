/* SPDX-License-Identifier: BSD-2-Clause */

/* Requests from the launcher to a fabric, over its socket (protocol.h). */
#ifndef UMAD_SIM_ASK_H
#define UMAD_SIM_ASK_H

#include "protocol.h"

/*
 * Sends a request and waits for its reply. Stores the connection in `connection`, or closes it
 * if that is NULL. `text` (LONGEST_TEXT + 1 bytes) receives the reply's text. Returns 0 or a
 * negative errno, possibly the reply's.
 */
int ask(const char *folder, enum request_kind kind, const char *request_text,
	struct reply *reply, char *text, int *connection);

/* Sends a rule or a query. The reply goes to `text` (as above) or, if it is too long, to a file
 * whose descriptor is stored (-1: no file). Returns 0 or a negative errno. */
int ask_command(const char *folder, const char *command, char *text, int *file);

#endif
