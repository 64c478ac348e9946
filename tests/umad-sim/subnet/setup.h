/* SPDX-License-Identifier: BSD-2-Clause */

/* Creates a fabric from a topology, and frees it with all state of nodes and ports. */
#ifndef FABRIC_SETUP_H
#define FABRIC_SETUP_H

#include "fabric.h"

/* Takes over the graph, which is freed with the fabric. Links are up and ports in state Init;
 * bring_up() (manager.h) then configures the subnet. Returns 0 or -ENOMEM. */
int fabric_init(struct fabric *fabric, struct graph *graph, uint64_t seed);
void fabric_free(struct fabric *fabric);

#endif
