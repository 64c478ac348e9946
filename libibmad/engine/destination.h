/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * How many asynchronous requests are in flight to each destination. Requests beyond a limit are
 * queued for their destination, so that a slow node does not delay the requests to others.
 */
#ifndef LIBIBMAD_DESTINATION_H
#define LIBIBMAD_DESTINATION_H

#include "engine/list.h"

#include <stdint.h>

struct destination {
	struct destination *next; /* in its bucket */
	uint64_t key;
	unsigned in_flight;
	struct list queue; /* of requests beyond the limit */
};

struct destinations {
	struct destination **buckets;
	unsigned bucket_count; /* 0 or a power of two */
	unsigned count;
};

void destinations_free(struct destinations *destinations);

/* A hash of the address of a umad packet. Two addresses have the same one by a rare accident.
 */
uint64_t destination_key(const void *umad);

/* The entry of a key, which is made if there is none; NULL without memory. */
struct destination *destination_get(struct destinations *destinations, uint64_t key);
/* Removes an entry if no request is in flight to it or queued for it. */
void destination_put(struct destinations *destinations, struct destination *destination);

/* Calls visit for each entry. It may remove that entry, but no other one, and adds none. */
void destinations_visit(struct destinations *destinations,
			void (*visit)(struct destination *destination, void *arg), void *arg);

#endif
