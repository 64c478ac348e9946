/* SPDX-License-Identifier: BSD-2-Clause */

/* Reading what is asked for of a node that was found. */
#ifndef LIBIBMAD_VISIT_H
#define LIBIBMAD_VISIT_H

#include "fabric/requests.h"

/*
 * Reads a node: description, SwitchInfo, PortInfo of each port. discovery->follow() is called
 * for each port with a link. A node that does not respond is given up.
 */
void visit_node(struct mad_fabric_discovery *discovery, struct mad_fabric_node *node);

#endif
