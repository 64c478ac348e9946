/* SPDX-License-Identifier: BSD-2-Clause */

/* What comes in and answers no transaction: requests, kept for mad_receive_via(). */
#ifndef LIBIBMAD_REQUESTS_H
#define LIBIBMAD_REQUESTS_H

#include "engine/port.h"

/*
 * Locked: as answer_receive(), for what answers none. A late answer, or one that
 * nobody asked for, is counted and dropped.
 */
void request_receive(struct ibmad_port *port, uint8_t *umad, int length);

void requests_init(struct requests *requests);
void requests_free(struct requests *requests);

#endif
