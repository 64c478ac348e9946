/* SPDX-License-Identifier: BSD-2-Clause */

/* The built-in subnet manager: it configures the subnet before anybody looks, and then computes
 * new routes when links go down and come back. */
#ifndef FABRIC_MANAGER_H
#define FABRIC_MANAGER_H

#include "fabric.h"
#include "mad_header.h"

#define SWEEP_INTERVAL (10 * SECOND)

/*
 * Gives LIDs to switches and end ports (those of the topology file first), makes links Active,
 * and settles on an end port as the manager's. How many end ports got no LID, since there are
 * only 49,151, is returned: they stay in state Init.
 */
uint32_t bring_up(struct fabric *fabric, uint32_t sm_port);

/*
 * From now on routes lead round links that are down and, where there is another way, round
 * switches that do not respond: from the start, from the time that a rule says after a trap
 * 128, and every SWEEP_INTERVAL. 0 or -ENOMEM.
 */
int manager_start(struct fabric *fabric);
void manager_stop(struct fabric *fabric);

/* A trap came to the manager. */
void manager_heard(struct fabric *fabric, const uint8_t mad[MAD_BYTES]);

/* Looks at all links and switches, and has routes computed anew if any changed. */
void manager_sweep(struct fabric *fabric);

#endif
