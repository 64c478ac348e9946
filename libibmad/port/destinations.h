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
	struct list lanes; /* for queue.h: requests beyond the limit */
	struct list idle;  /* among those without users */
	uint32_t served;   /* for queue.h: when a request was sent to it */
	unsigned users;    /* requests that point here */
};

struct destinations {
	struct destination **buckets;
	unsigned bucket_count; /* 0 or a power of two */
	unsigned count;
	struct list idle; /* those without users, the longest unused first */
	unsigned idle_count;
};

void destinations_init(struct destinations *destinations);
void destinations_free(struct destinations *destinations);
/* Frees those without users, but for so many. */
void destinations_shrink(struct destinations *destinations, unsigned kept);

/*
 * A hash of the address of a umad packet, and whether it is an SMP. Two addresses have the same
 * one by a rare accident.
 */
uint64_t destination_key(const void *umad);

/* The entry of a key for one more user; it is made if there is none. NULL without memory. */
struct destination *destination_get(struct destinations *destinations, uint64_t key);
/* One user less. An entry without users is kept for a while, as far as there is room. */
void destination_put(struct destinations *destinations, struct destination *destination);

/* Calls visit for each entry. It may remove that entry, but no other one, and adds none. */
void destinations_visit(struct destinations *destinations,
			void (*visit)(struct destination *destination, void *arg), void *arg);

#endif
