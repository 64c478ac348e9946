/* SPDX-License-Identifier: BSD-2-Clause */

/* The built-in subnet manager: it configures the subnet before programs start, and then
 * computes new routes when links go down and come up. */
#ifndef FABRIC_MANAGER_H
#define FABRIC_MANAGER_H

#include "fabric.h"
#include "mad_header.h"

#define SWEEP_INTERVAL (10 * SECOND)

/*
 * Assigns LIDs to switches and end ports (first those of the topology file), makes links
 * Active, and chooses the manager's end port. Returns the number of end ports without a LID:
 * there are only 49,151 LIDs. Such ports stay in state Init.
 */
uint32_t bring_up(struct fabric *fabric, uint32_t sm_port);

/*
 * From now on, routes avoid links that are down and, if possible, switches that do not
 * respond. The manager computes them at the start, after a trap 128 (a rule gives the delay),
 * and every SWEEP_INTERVAL. 0 or -ENOMEM.
 */
int manager_start(struct fabric *fabric);
void manager_stop(struct fabric *fabric);

/* The manager received a trap. */
void manager_heard(struct fabric *fabric, const uint8_t mad[MAD_BYTES]);

/* Checks all links and switches; if any changed, computes new routes. */
void manager_sweep(struct fabric *fabric);

#endif
