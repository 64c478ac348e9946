/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * How a MAD gets from one node to another: hop by hop along a directed route (IBA 14.2.2) or by
 * LID through the forwarding tables, over links that are up and as slow and unreliable as the
 * faults say (faults.h).
 */
#ifndef FABRIC_WIRE_H
#define FABRIC_WIRE_H

#include "fabric.h"
#include "wire_packet.h"

/* Sends a copy of the packet. It arrives (fabric->arrived) later, once, more often or never. */
void wire_send(struct fabric *fabric, const struct packet *packet);

/* Sends an answer back to where the request came from; the request's MAD has become the answer.
 */
void wire_reply(struct fabric *fabric, uint32_t port, const struct packet *request);

/* A packet goes no further: a line of the trace says why, and fabric->lost hears of it. */
void packet_end(struct fabric *fabric, const struct packet *packet, uint32_t port,
		const char *why);

/* The GID of an end port. */
void port_gid(const struct fabric *fabric, uint32_t port, uint8_t gid[16]);

#endif
