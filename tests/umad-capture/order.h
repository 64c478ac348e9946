/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Sorts packets by time. A thread puts a packet into the ring after it has sent or received
 * the packet, so a response may come before its request. Each packet is held for a moment, and
 * packets that arrive later but have an earlier time go before it.
 */
#ifndef UMAD_CAPTURE_ORDER_H
#define UMAD_CAPTURE_ORDER_H

#include "ring.h"

struct ordered_packet {
	struct packet_record *record;
	int64_t time;    /* the record's time, in ns; a copy, so that a comparison does not
			  * read the record */
	int64_t arrived; /* ms, CLOCK_MONOTONIC */
};

/*
 * The held packets, the earliest first. Nearly all of them arrive in the order of their times.
 */
struct order {
	struct ordered_packet *queue;
	size_t first, count, room; /* capacity; `first`: index of the earliest */
	size_t bytes;              /* of the packets held */
};

/* Takes over the packet. 0 or -ENOMEM. */
int order_put(struct order *order, struct packet_record *record, int64_t now);

/* The earliest packet if it arrived at `until` or before, to be freed by the caller. NULL:
 * none. */
struct packet_record *order_take(struct order *order, int64_t until);

void order_free(struct order *order);

#endif
