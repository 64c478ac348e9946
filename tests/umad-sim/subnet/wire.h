/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Carries a MAD from one node to another: hop by hop on a directed route (IBA 14.2.2), or by
 * LID through the forwarding tables. Links must be up; faults (faults.h) delay or lose packets.
 */
#ifndef FABRIC_WIRE_H
#define FABRIC_WIRE_H

#include "fabric.h"
#include "wire_packet.h"

/*
 * Sends a copy of the packet. It arrives later (fabric->arrived), once, several times or never.
 */
void wire_send(struct fabric *fabric, const struct packet *packet);

/* Sends the requester a response, which has replaced the request's MAD. */
void wire_reply(struct fabric *fabric, uint32_t port, const struct packet *request);

/* Drops a packet: traces the reason and calls fabric->lost. */
void packet_end(struct fabric *fabric, const struct packet *packet, uint32_t port,
		const char *why);

void port_gid(const struct fabric *fabric, uint32_t port, uint8_t gid[16]);

#endif
