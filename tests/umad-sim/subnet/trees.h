/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Multicast forwarding as the built-in SM sets it: a tree of links for each multicast LID that
 * two or more ports have joined (IBA 14.2.5.12, 18.2.4.3). After changes, a tree is computed
 * when a table is next read, so joins of many ports cost one computation.
 */
#ifndef FABRIC_TREES_H
#define FABRIC_TREES_H

#include "fabric.h"

/* An end port joined or left the group of a multicast LID. tree_join() returns 0 or -ENOMEM. */
int tree_join(struct fabric *fabric, uint16_t mlid, uint32_t port);
void tree_leave(struct fabric *fabric, uint16_t mlid, uint32_t port);

/* The routes changed. */
void trees_expire(struct fabric *fabric);

/* Updates the switches' multicast tables. */
void trees_settle(struct fabric *fabric);

void trees_free(struct fabric *fabric);

#endif
