/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The destinations of requests, and what flow control knows of each. A node has a processor for
 * SMPs and one for GMPs, so each is a destination of its own.
 */
#ifndef LIBIBMAD_DESTINATIONS_H
#define LIBIBMAD_DESTINATIONS_H

#include "base/list.h"
#include "flow/flow.h"

#include <stdbool.h>
#include <stdint.h>

struct destination {
	struct destination *next; /* in its bucket */
	uint64_t key;
	struct flow_path path;
	struct list lanes; /* for queue.h: the lanes of requests that wait for a place */
	struct list idle;  /* in the list of destinations without users */
	uint32_t served;   /* for queue.h: queue->numbered when a request was last sent to it */
	unsigned users;    /* requests that point here */
};

struct destinations {
	struct destination **buckets;
	unsigned bucket_count; /* 0 or a power of two */
	unsigned count;
	struct list idle; /* destinations without users, the longest unused first */
	unsigned idle_count;
};

void destinations_init(struct destinations *destinations);
void destinations_free(struct destinations *destinations);
/* Frees destinations without users until at most "kept" of them are left. */
void destinations_shrink(struct destinations *destinations, unsigned kept);

/*
 * A hash of the address of a umad packet and of whether the packet is an SMP. Two addresses
 * with the same hash share a destination. That is rare and does no harm.
 */
uint64_t destination_key(const void *umad);

/* Adds a user to the destination of a key, and makes it if there is none. NULL: no memory. */
struct destination *destination_get(struct destinations *destinations, uint64_t key);
/* Removes a user. The destination stays until destinations_shrink() or 4096 others are idle. */
void destination_put(struct destinations *destinations, struct destination *destination);

/* Calls visit for each destination. visit may free this destination, and adds none. */
void destinations_visit(struct destinations *destinations,
			void (*visit)(struct destination *destination, void *arg), void *arg);

#endif
