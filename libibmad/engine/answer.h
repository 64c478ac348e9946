/* SPDX-License-Identifier: BSD-2-Clause */

/* What comes in: whose answer it is, and what becomes of it. */
#ifndef LIBIBMAD_ANSWER_H
#define LIBIBMAD_ANSWER_H

#include "engine/port.h"

/*
 * Locked: a message has come in: mad, length bytes behind its header, at the beginning of umad.
 * heap: umad was allocated, and whoever has use for it may keep it. Returns whether it did.
 */
bool answer_receive(struct ibmad_port *port, uint8_t *umad, int length, bool heap);
/* A message that cannot be received, but for its first MAD. */
void answer_failed(struct ibmad_port *port, const uint8_t *umad, int error);

#endif
