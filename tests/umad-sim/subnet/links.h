/* SPDX-License-Identifier: BSD-2-Clause */

/* Links that go down and come up, and the states of their ports (IBA 5.7, 7.2.7). */
#ifndef FABRIC_LINKS_H
#define FABRIC_LINKS_H

#include "fabric.h"

/* A subnet manager disabled a port, or made it train again. */
void link_disable(struct fabric *fabric, uint32_t port);
void link_train(struct fabric *fabric, uint32_t port);

/*
 * Makes the link of a port train again if training would now have another result: the values
 * that are enabled changed, or a rule. A fabric that has not run yet (fabric->now is 0) only
 * gets the values: its links have trained only once.
 */
void link_follow(struct fabric *fabric, uint32_t port);

/* The values with which the link of a port first trained. */
void link_start(struct fabric *fabric, uint32_t port);

/* A subnet manager set a port to Armed or Active. */
void link_set_state(struct fabric *fabric, uint32_t port, enum port_state state);

/* The cable of a port is unplugged or plugged in. */
void link_cut(struct fabric *fabric, uint32_t port, bool cut);

/*
 * A node is down for that many nanoseconds; afterwards all that a subnet manager set is lost.
 */
void node_reboot(struct fabric *fabric, uint32_t node, uint64_t duration);

/* Plugs in all cables. */
void links_restore(struct fabric *fabric);

/* A port changed, so files that show its state must change (fabric->port_changed). */
void port_changed(struct fabric *fabric, uint32_t port);

#endif
