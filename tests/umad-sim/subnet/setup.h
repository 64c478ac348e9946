/* SPDX-License-Identifier: BSD-2-Clause */

/* Makes a fabric of a topology, and frees it with all state of nodes and ports. */
#ifndef FABRIC_SETUP_H
#define FABRIC_SETUP_H

#include "fabric.h"

/* Takes the graph over (it is freed with the fabric). Links are up, and ports are in state
 * Init; bring_up() (manager.h) then configures the subnet. 0 or -ENOMEM. */
int fabric_init(struct fabric *fabric, struct graph *graph, uint64_t seed);
void fabric_free(struct fabric *fabric);

#endif
