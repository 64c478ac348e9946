/* SPDX-License-Identifier: BSD-2-Clause */

/* Links that go down and come up, and the states of their ports (IBA 5.7, 7.2.7). */
#ifndef FABRIC_LINKS_H
#define FABRIC_LINKS_H

#include "fabric.h"

/* A subnet manager disabled a port, or restarted its training. */
void link_disable(struct fabric *fabric, uint32_t port);
void link_train(struct fabric *fabric, uint32_t port);

/*
 * Retrains the link of a port if enabled values or rules changed so that training would now
 * have another result. In a fabric that has not run yet (fabric->now is 0), only sets the
 * values: its links have trained just once.
 */
void link_follow(struct fabric *fabric, uint32_t port);

/* Sets the values to which a port's link first trains. */
void link_start(struct fabric *fabric, uint32_t port);

/* A subnet manager set a port to Armed or Active. */
void link_set_state(struct fabric *fabric, uint32_t port, enum port_state state);

/* The cable of a port is unplugged or plugged in. */
void link_cut(struct fabric *fabric, uint32_t port, bool cut);

/* Powers a node off for this many nanoseconds; everything a subnet manager set is lost. */
void node_reboot(struct fabric *fabric, uint32_t node, uint64_t duration);

/* Plugs in all cables. */
void links_restore(struct fabric *fabric);

/* A port changed: updates the files that show its state (fabric->port_changed). */
void port_changed(struct fabric *fabric, uint32_t port);

#endif
