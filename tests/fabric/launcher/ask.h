/* SPDX-License-Identifier: BSD-2-Clause */

/* What the launcher asks a fabric over its socket (protocol.h). */
#ifndef UMAD_SIM_ASK_H
#define UMAD_SIM_ASK_H

#include "protocol.h"

/*
 * Sends a request and waits for its reply. The connection is stored, or closed where it is
 * NULL. `text` (LONGEST_TEXT + 1 bytes) gets the reply's. 0 or a negative errno, the reply's
 * own among them.
 */
int ask(const char *folder, enum request_kind kind, const char *question, struct reply *reply,
	char *text, int *connection);

/*
 * Gives a rule or a question. The answer is `text` (as above), and the file of what is too long
 * for it; -1: there is none. 0 or a negative errno.
 */
int ask_command(const char *folder, const char *command, char *text, int *file);

#endif
