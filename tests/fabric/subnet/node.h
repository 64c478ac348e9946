/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * What a node does with a MAD that reached it: its own agents answer what hardware answers; all
 * else goes to the programs (or the built-in manager) that run on it.
 */
#ifndef FABRIC_NODE_H
#define FABRIC_NODE_H

#include "wire.h"

/* The packet arrived by this port (by index; port 0 of a switch: from the node itself). */
void node_receive(struct fabric *fabric, uint32_t port, const struct packet *packet);

#endif
