/* SPDX-License-Identifier: BSD-2-Clause */

/* From node to node: who is at the other end of a link. */
#ifndef LIBIBMAD_NEIGHBOURS_H
#define LIBIBMAD_NEIGHBOURS_H

#include "fabric/requests.h"

/* Asks the node where the discovery begins. False if the request cannot be submitted. */
bool neighbours_begin(struct mad_fabric_discovery *discovery);

/* Asks who is behind a port, if that is not known and the port leads on. */
void neighbours_follow(struct mad_fabric_discovery *discovery, struct mad_fabric_port *port);

#endif
