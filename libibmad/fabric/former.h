/* SPDX-License-Identifier: BSD-2-Clause */

/* What an earlier discovery tells of a node that does not respond. */
#ifndef LIBIBMAD_FORMER_H
#define LIBIBMAD_FORMER_H

#include "fabric/requests.h"

/*
 * Adds the failure of a NodeInfo that timed out behind failure->behind. If options:previous
 * tells which node was there, the node has one failure, whichever ports lead to it. 0 or
 * -ENOMEM.
 */
int former_add_failure(struct mad_fabric_discovery *discovery,
		       struct mad_fabric_failure *failure);

#endif
