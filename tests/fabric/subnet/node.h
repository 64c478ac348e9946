/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * What a node does with a MAD that reached it: its own agents answer what hardware answers; all
 * else goes to the programs (or the built-in manager) that run on it.
 */
#ifndef FABRIC_NODE_H
#define FABRIC_NODE_H

#include "fabric.h"
#include "wire_packet.h"

/* fabric->arrived */
void node_receive(struct fabric *fabric, uint32_t port, const struct packet *packet);

#endif
