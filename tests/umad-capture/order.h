/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Sorts packets by time. A thread puts a packet into the ring only after sending or receiving
 * it, so a response may precede its request. Each packet is held for a moment, and packets that
 * arrive later with an earlier time go before it.
 */
#ifndef UMAD_CAPTURE_ORDER_H
#define UMAD_CAPTURE_ORDER_H

#include "ring.h"

struct ordered_packet {
	struct packet_record *record;
	int64_t time; /* the record's time in ns, so that comparing does not read the record */
	int64_t arrived; /* ms, CLOCK_MONOTONIC */
};

/* The held packets, earliest first. Nearly all arrive in order of time. */
struct order {
	struct ordered_packet *queue;
	size_t first, count, room; /* capacity; `first`: index of the earliest */
	size_t bytes;              /* of the packets held */
};

/* Takes over the packet. Returns 0 or -ENOMEM. */
int order_put(struct order *order, struct packet_record *record, int64_t now);

/* Takes the earliest packet if it arrived at `until` or before, else returns NULL. The caller
 * frees it. */
struct packet_record *order_take(struct order *order, int64_t until);

void order_free(struct order *order);

#endif
