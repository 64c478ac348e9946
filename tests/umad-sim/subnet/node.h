/* SPDX-License-Identifier: BSD-2-Clause */

/* Handles a MAD that reached a node. The node's agents respond as hardware does; all other MADs
 * go to the node's programs (or the built-in SM). */
#ifndef FABRIC_NODE_H
#define FABRIC_NODE_H

#include "fabric.h"
#include "wire_packet.h"

/* fabric->arrived */
void node_receive(struct fabric *fabric, uint32_t port, struct packet *packet);

/* Whether a rule makes the node respond with BUSY or a redirection to a request of several
 * segments, of which this packet is the last. Sends that response. */
bool node_turns_away(struct fabric *fabric, uint32_t port, const struct packet *packet);

/* Handles a request that an end port's kernel passes to the agents of its adapter (struct port,
 * of_kernel). The response replaces it; false if no response is due. */
bool node_respond(struct fabric *fabric, uint32_t port, uint8_t mad[MAD_BYTES]);

#endif
