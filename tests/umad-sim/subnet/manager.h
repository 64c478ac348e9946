/* SPDX-License-Identifier: BSD-2-Clause */

/* The built-in SM: configures the subnet before programs start, and computes new routes when
 * links go down or come up. */
#ifndef FABRIC_MANAGER_H
#define FABRIC_MANAGER_H

#include "fabric.h"
#include "mad_header.h"

#define SWEEP_INTERVAL (10 * SECOND)

/*
 * Assigns LIDs to switches and end ports (those of the topology file first), makes links
 * Active, and chooses the SM's end port. Returns how many end ports have no LID because all
 * 49,151 are in use; they stay in state Init.
 */
uint32_t bring_up(struct fabric *fabric, uint32_t sm_port);

/*
 * From now on, routes avoid links that are down and, if possible, switches that do not respond.
 * The SM computes them at the start, after a trap 128 (with a delay set by a rule), and every
 * SWEEP_INTERVAL. Returns 0 or -ENOMEM.
 */
int manager_start(struct fabric *fabric);
void manager_stop(struct fabric *fabric);

/* The SM received a trap. */
void manager_heard(struct fabric *fabric, const uint8_t mad[MAD_BYTES]);

/* Checks all links and switches, and computes new routes if any changed. */
void manager_sweep(struct fabric *fabric);

#endif
