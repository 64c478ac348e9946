/* SPDX-License-Identifier: BSD-2-Clause */

/* Traps: notices from a node to its SM (IBA 13.4.9, 14.2.5.1). A trap is sent once a second
 * until it is repressed. */
#ifndef FABRIC_TRAPS_H
#define FABRIC_TRAPS_H

#include "query.h"

/* 128: one of a switch's links changed state. */
void trap_link_state(struct fabric *fabric, uint32_t node);

/* 144: an end port's CapabilityMask changed. */
void trap_capability(struct fabric *fabric, uint32_t port);

/* 144: the NodeDescription of an end port's node changed. */
void trap_description(struct fabric *fabric, uint32_t port);

/* 256: an SMP with a wrong M_Key reached an end port. */
void trap_mkey(struct fabric *fabric, uint32_t port, const uint8_t mad[MAD_BYTES]);

/* A TrapRepress reached an end port. */
void trap_repress(struct fabric *fabric, uint32_t port, const uint8_t mad[MAD_BYTES]);

#endif
