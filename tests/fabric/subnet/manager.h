/* SPDX-License-Identifier: BSD-2-Clause */

/* The built-in subnet manager: it configures the subnet once, before anybody looks. */
#ifndef FABRIC_MANAGER_H
#define FABRIC_MANAGER_H

#include "fabric.h"

/*
 * Gives LIDs to switches and end ports (those of the topology file first), makes links Active,
 * and settles on an end port as the manager's. How many end ports got no LID, since there are
 * only 49,151, is returned: they stay in state Init.
 */
uint32_t bring_up(struct fabric *fabric, uint32_t sm_port);

#endif
