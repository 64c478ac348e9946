/* SPDX-License-Identifier: BSD-2-Clause */

/* Forwarding, by the tables that a subnet manager set or else by shortest paths, computed on
 * first use (IBA 14.2.5.10, 14.2.5.12, 18.2.4). */
#ifndef FABRIC_ROUTES_H
#define FABRIC_ROUTES_H

#include "fabric.h"

/* Prepares computed routes. Returns 0 or -ENOMEM. */
int routes_init(struct fabric *fabric, bool computed);
void routes_free(struct fabric *fabric);

/*
 * What the SM knows: whether a port's link is up (initially all are), and which switches to use
 * only for destinations that no other switch leads to (initially none). Returns whether that
 * changed; call routes_forget() to apply it.
 */
bool routes_set_link(struct fabric *fabric, uint32_t port, bool up);
bool routes_link(const struct fabric *fabric, uint32_t port);
bool routes_set_avoided(struct fabric *fabric, uint32_t switch_node, bool avoided);
void routes_forget(struct fabric *fabric);

/*
 * The port number by which a switch forwards to a LID; 0 if the LID is its own; NO_ROUTE if it
 * does not forward, as for LIDs above its LinearFDBTop. Computed routes use the links that
 * routes_set_link() reported as up, whatever their state now.
 */
uint8_t route_port(struct fabric *fabric, uint32_t switch_node, uint16_t lid);

/* The port by which a switch forwards to another, as computed; 0 if they are the same, or
 * NO_ROUTE. */
uint8_t route_to_switch(struct fabric *fabric, uint32_t switch_node, uint32_t destination);

/* Get and set a block of 64 entries of the linear table. set: returns 0 or -ENOMEM. */
void route_block(struct fabric *fabric, uint32_t switch_node, unsigned int block,
		 uint8_t out[64]);
int route_set_block(struct fabric *fabric, uint32_t switch_node, unsigned int block,
		    const uint8_t in[64]);

/* 32 entries (each 16 port bits, in network order) of the multicast table at a position (of 16
 * ports). */
void route_multicast_block(const struct fabric *fabric, uint32_t switch_node,
			   unsigned int block, unsigned int position, uint8_t out[64]);
int route_set_multicast_block(struct fabric *fabric, uint32_t switch_node, unsigned int block,
			      unsigned int position, const uint8_t in[64]);

/* A multicast LID in these tables: whether a switch forwards it by a port; add a port (a no-op
 * on OOM); remove the LID from all switches. */
bool route_multicast_has(const struct fabric *fabric, uint32_t switch_node, uint16_t mlid,
			 unsigned int number);
void route_multicast_add(struct fabric *fabric, uint32_t switch_node, uint16_t mlid,
			 unsigned int number);
void route_multicast_clear(struct fabric *fabric, uint16_t mlid);

void switch_tables_free(struct switch_tables *tables);

/*
 * Stores the ports by which a packet from an end port to a LID leaves on its way, at most
 * `room` of them, in order. Returns how many there are, 0 if the LID is the port's own, or
 * -EHOSTUNREACH without a route.
 */
int route_trace(struct fabric *fabric, uint32_t from, uint16_t lid, uint32_t *hops, int room);

#endif
