/* SPDX-License-Identifier: BSD-2-Clause */

/* Handles a MAD that reached a node. The node's agents respond to what hardware responds to;
 * other MADs go to the programs (or the built-in manager) of the node. */
#ifndef FABRIC_NODE_H
#define FABRIC_NODE_H

#include "fabric.h"
#include "wire_packet.h"

/* fabric->arrived */
void node_receive(struct fabric *fabric, uint32_t port, struct packet *packet);

/*
 * Whether a rule makes the node respond with BUSY or a redirection to a request of several
 * segments, whose last one is this packet. The response is sent.
 */
bool node_turns_away(struct fabric *fabric, uint32_t port, const struct packet *packet);

/*
 * A request that the kernel of an end port hands to the agents of its adapter (struct port,
 * of_kernel). The response replaces it; false: no response is due.
 */
bool node_respond(struct fabric *fabric, uint32_t port, uint8_t mad[MAD_BYTES]);

#endif
