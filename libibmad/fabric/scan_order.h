/* SPDX-License-Identifier: BSD-2-Clause */

/* The order in which ibnetdiscover finds the nodes of a fabric. */
#ifndef LIBIBMAD_SCAN_ORDER_H
#define LIBIBMAD_SCAN_ORDER_H

#include <infiniband/mad_fabric.h>

#include <stdint.h>

/*
 * The indexes of all nodes, mad_fabric_node_count() of them: first those that ibnetdiscover
 * would find, beginning at the origin, then the others. To be freed by free(). NULL without
 * memory, or without a node.
 */
uint32_t *scan_order(const struct mad_fabric *fabric);

#endif
