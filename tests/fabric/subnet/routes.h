/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Forwarding: by the tables that a subnet manager set, and where none did, by shortest paths
 * computed when they are first asked for (IBA 14.2.5.10, 14.2.5.12, 18.2.4).
 */
#ifndef FABRIC_ROUTES_H
#define FABRIC_ROUTES_H

#include "fabric.h"

/* Prepares computed routes. 0 or -ENOMEM. */
int routes_init(struct fabric *fabric, bool computed);
void routes_free(struct fabric *fabric);

/*
 * What the manager knows: whether the link of a port is up (at first all are), and which
 * switches are only for destinations that no other switch leads to (at first none is). Whether
 * this is news; the computed routes follow after routes_forget().
 */
bool routes_set_link(struct fabric *fabric, uint32_t port, bool up);
bool routes_link(const struct fabric *fabric, uint32_t port);
bool routes_set_avoided(struct fabric *fabric, uint32_t switch_node, bool avoided);
void routes_forget(struct fabric *fabric);

/*
 * The port number by which a switch forwards to a LID: 0 its own, NO_ROUTE nowhere, as for all
 * above its LinearFDBTop. The computed ones take the links that routes_set_link() told to be
 * up, whether or not they are up at the moment.
 */
uint8_t route_port(struct fabric *fabric, uint32_t switch_node, uint16_t lid);

/* The port by which a switch forwards to another one, as computed: 0 the switch is its own
 * destination, NO_ROUTE. */
uint8_t route_to_switch(struct fabric *fabric, uint32_t switch_node, uint32_t destination);

/* A block of 64 entries of the linear table, read and set. set: 0 or -ENOMEM. */
void route_block(struct fabric *fabric, uint32_t switch_node, unsigned int block,
		 uint8_t out[64]);
int route_set_block(struct fabric *fabric, uint32_t switch_node, unsigned int block,
		    const uint8_t in[64]);

/* 32 entries (16 port bits each, network order) of the multicast table at a position (of 16
 * ports). */
void route_multicast_block(const struct fabric *fabric, uint32_t switch_node,
			   unsigned int block, unsigned int position, uint8_t out[64]);
int route_set_multicast_block(struct fabric *fabric, uint32_t switch_node, unsigned int block,
			      unsigned int position, const uint8_t in[64]);

/*
 * A multicast LID in these tables: whether a switch forwards by a port, has it do so, and has
 * no switch forward. add: without memory it does nothing.
 */
bool route_multicast_has(const struct fabric *fabric, uint32_t switch_node, uint16_t mlid,
			 unsigned int number);
void route_multicast_add(struct fabric *fabric, uint32_t switch_node, uint16_t mlid,
			 unsigned int number);
void route_multicast_clear(struct fabric *fabric, uint16_t mlid);

void switch_tables_free(struct switch_tables *tables);

/*
 * The ports by which a packet leaves on its way from an end port to a LID: stored one after the
 * other, at most `room`; their count is returned, negative (-EHOSTUNREACH) where the way does
 * not lead there. 0: the LID is the port's own.
 */
int route_trace(struct fabric *fabric, uint32_t from, uint16_t lid, uint32_t *hops, int room);

#endif
