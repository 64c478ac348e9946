/* SPDX-License-Identifier: BSD-2-Clause */

/* Links that come and go, and what their ports' states do then (IBA 5.7, 7.2.7). */
#ifndef FABRIC_LINKS_H
#define FABRIC_LINKS_H

#include "fabric.h"

/* A manager disabled a port, or had it train again. */
void link_disable(struct fabric *fabric, uint32_t port);
void link_train(struct fabric *fabric, uint32_t port);

/* A manager armed or activated it. */
void link_set_state(struct fabric *fabric, uint32_t port, enum port_state state);

/* The cable of a port is pulled, or plugged in again. */
void link_cut(struct fabric *fabric, uint32_t port, bool cut);

/* A node is gone for that many nanoseconds; it comes back with what a manager set forgotten. */
void node_reboot(struct fabric *fabric, uint32_t node, uint64_t duration);

/* All cables are plugged in again. */
void links_restore(struct fabric *fabric);

/* Something of a port changed that others show (fabric->port_changed). */
void port_changed(struct fabric *fabric, uint32_t port);

#endif
