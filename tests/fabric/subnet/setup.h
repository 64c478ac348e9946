/* SPDX-License-Identifier: BSD-2-Clause */

/* Makes a fabric of a topology, with nodes that packets arrive at, and frees it with all that
 * its parts keep about nodes and ports. */
#ifndef FABRIC_SETUP_H
#define FABRIC_SETUP_H

#include "fabric.h"

/*
 * Takes the graph over (it is freed with the fabric). Links are up, ports in state Init;
 * bring_up() (manager.h) makes a configured subnet of them. 0 or -ENOMEM.
 */
int fabric_init(struct fabric *fabric, struct graph *graph, uint64_t seed);
void fabric_free(struct fabric *fabric);

#endif
