/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The destinations of requests, and what flow control knows of each. A node has a processor for
 * SMPs and one for GMPs, so each is a destination of its own.
 */
#ifndef LIBIBMAD_DESTINATIONS_H
#define LIBIBMAD_DESTINATIONS_H

#include "base/list.h"
#include "flow/flow.h"
#include "mad/layout.h"

#include <infiniband/umad.h>
#include <stdbool.h>
#include <stdint.h>

struct destination {
	struct flow_path path;
	struct destination *next; /* in its bucket */
	uint64_t key;
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

/* A key with the GID and the directed route of a packet. */
uint64_t destination_route_key(uint64_t key, const struct ib_user_mad *umad,
			       const uint8_t *mad);

/*
 * A number for the address of a umad packet and for whether the packet is an SMP: the LID, or a
 * hash. Two addresses with the same hash share a destination. That is rare and does no harm.
 */
static inline uint64_t destination_key(const void *umad, const uint8_t *mad)
{
	const struct ib_user_mad *header = umad;
	uint64_t key = be16toh(header->addr.lid) | (uint64_t)is_smp_class(mad[1]) << 16;

	if (header->addr.grh_present || mad[1] == IB_SMI_DIRECT_CLASS)
		key = destination_route_key(key, header, mad);
	return key;
}

/* Makes a destination without users; NULL: no memory. */
struct destination *destination_make(struct destinations *destinations, uint64_t key);

/* Adds a user to the destination of a key, and makes it if there is none. NULL: no memory. */
static inline struct destination *destination_get(struct destinations *destinations,
						  uint64_t key)
{
	struct destination *destination = NULL;

	if (destinations->bucket_count)
		destination = destinations->buckets[key & (destinations->bucket_count - 1)];
	while (destination && destination->key != key)
		destination = destination->next;
	if (!destination && !(destination = destination_make(destinations, key)))
		return NULL;
	if (!destination->users++) {
		destination->path.busy_since = 0;
		list_remove(&destination->idle);
		destinations->idle_count--;
	}
	return destination;
}

/* Removes a user. The destination stays until destinations_shrink() or 4096 others are idle. */
static inline void destination_put(struct destinations *destinations,
				   struct destination *destination)
{
	if (--destination->users)
		return;
	list_add_last(&destinations->idle, &destination->idle);
	destinations->idle_count++;
}

/* Calls visit for each destination. visit may free this destination, and adds none. */
void destinations_visit(struct destinations *destinations,
			void (*visit)(struct destination *destination, void *arg), void *arg);

#endif
