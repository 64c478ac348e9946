/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Where asynchronous requests are under way to, and how many: beyond a limit they wait
 * beside their destination, so that a node that is slow to answer holds up itself alone.
 */
#ifndef LIBIBMAD_DESTINATION_H
#define LIBIBMAD_DESTINATION_H

#include <stdint.h>

struct transaction;

struct destination {
	struct destination *next; /* in its bucket */
	uint64_t key;
	unsigned under_way;
	struct transaction *parked;
	struct transaction **last_parked;
};

struct destinations {
	struct destination **buckets;
	unsigned bucket_count; /* 0 or a power of two */
	unsigned count;
};

void destinations_free(struct destinations *destinations);

/* The address of a umad packet, as a number: nobody else has it, as good as. */
uint64_t destination_key(const void *umad);

/* The entry of a key, made where there is none; NULL without memory. */
struct destination *destination_get(struct destinations *destinations, uint64_t key);
/* Removes an entry that nothing goes to or waits for. */
void destination_put(struct destinations *destinations, struct destination *destination);

#endif
