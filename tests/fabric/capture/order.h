/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Packets in the order of their times. Threads put packets into the ring as they are done with
 * them, a response before its request at times: a packet is held back for a moment, and goes
 * before those that are later.
 */
#ifndef UMAD_CAPTURE_ORDER_H
#define UMAD_CAPTURE_ORDER_H

#include "ring.h"

struct ordered_packet {
	struct packet_record *record;
	int64_t time;    /* of the record, in ns: a comparison does not read the record */
	int64_t arrived; /* ms, CLOCK_MONOTONIC */
};

/* The packets held, the earliest first. Nearly all of them come in the order of their times. */
struct order {
	struct ordered_packet *queue;
	size_t first, count,
		room; /* place of the earliest; a place behind the last is the first */
	size_t bytes; /* of the packets held */
};

/* Takes over the packet. 0 or -ENOMEM. */
int order_put(struct order *order, struct packet_record *record, int64_t now);

/* The earliest packet, for free(), if it arrived `until` or before. NULL: there is none. */
struct packet_record *order_take(struct order *order, int64_t until);

void order_free(struct order *order);

#endif
