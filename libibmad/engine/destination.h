/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The destinations of requests: how many requests are in flight to each, how many may be, and
 * how long its responses take. A node has a processor for SMPs and one for GMPs, so each is a
 * destination of its own.
 *
 * A node handles one request after the other, and may have room for one more only. So at first
 * one request is in flight to it. There may be more while responses come, none is lost, and
 * the shortest round trip does not grow: as long as at most one request waits there.
 *
 * A destination whose responses do not come gets its requests at growing intervals.
 */
#ifndef LIBIBMAD_DESTINATION_H
#define LIBIBMAD_DESTINATION_H

#include "engine/list.h"
#include "engine/rtt.h"

#include <stdbool.h>
#include <stdint.h>

struct destination {
	struct destination *next; /* in its bucket */
	uint64_t key;
	struct list lanes; /* for scheduler.h: requests beyond the limit */
	struct list idle;  /* among those without users */
	struct rtt rtt;
	uint32_t shortest_us; /* the shortest round trip of all, */
	uint32_t present_us;  /* and the one since the limit was last judged */
	uint16_t responses;   /* since then */
	uint32_t served;      /* for scheduler.h: when a request was sent to it */
	uint16_t in_flight;
	unsigned users;  /* requests that point here */
	uint8_t limit;   /* how many may be in flight */
	uint8_t most;    /* the limit does not grow beyond this: more were lost once */
	uint8_t silence; /* MADs that were late since the last response */
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

/* How long to wait for a response; of others of its kind, "kind" is known. */
uint32_t destination_timeout(const struct destination *destination, const struct rtt *kind);

/* A response came; "full": requests are queued for the destination. rtt_us 0: not known. */
void destination_response(struct destination *destination, uint32_t rtt_us, bool full);
/* A MAD was lost there, or the node said BUSY. */
void destination_overrun(struct destination *destination);
/* A response is late. */
void destination_late(struct destination *destination);

#endif
