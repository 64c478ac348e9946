/* SPDX-License-Identifier: BSD-2-Clause */

#include "port/destinations.h"

#include "base/export.h"
#include "mad/layout.h"

#include <infiniband/mad.h>
#include <stdlib.h>

#define FIRST_BUCKETS 64
/* Destinations without users that are kept. */
#define IDLE_MAX      4096

void destinations_init(struct destinations *destinations)
{
	*destinations = (struct destinations){0};
	list_init(&destinations->idle);
}

void destinations_free(struct destinations *destinations)
{
	struct destination *destination, *next;

	for (unsigned i = 0; i < destinations->bucket_count; i++)
		for (destination = destinations->buckets[i]; destination; destination = next) {
			next = destination->next;
			free(destination);
		}
	free(destinations->buckets);
	destinations_init(destinations);
}

/* A step of FNV-1a, 64 bits. */
static uint64_t hash(uint64_t start, uint64_t value)
{
	return (start ^ value) * 0x100000001b3;
}

static uint64_t hash_bytes(uint64_t start, const uint8_t *byte, size_t size)
{
	for (; size; size--)
		start = hash(start, *byte++);
	return start;
}

uint64_t destination_route_key(uint64_t key, const struct ib_user_mad *umad, const uint8_t *mad)
{
	key = hash(0xcbf29ce484222325, key);
	if (umad->addr.grh_present)
		key = hash_bytes(key, umad->addr.gid, sizeof(umad->addr.gid));
	if (mad[1] == IB_SMI_DIRECT_CLASS)
		key = hash_bytes(key, mad + INITIAL_PATH_OFFS + 1,
				 mad[HOP_COUNT_OFFS] % IB_SUBNET_PATH_HOPS_MAX);
	return key ^ key >> 32;
}

static RARE void grow(struct destinations *destinations)
{
	unsigned count =
		destinations->bucket_count ? 2 * destinations->bucket_count : FIRST_BUCKETS;
	struct destination **buckets = calloc(count, sizeof(struct destination *));
	struct destination *destination, *next;

	if (!buckets)
		return;
	for (unsigned i = 0; i < destinations->bucket_count; i++)
		for (destination = destinations->buckets[i]; destination; destination = next) {
			next = destination->next;
			destination->next = buckets[destination->key & (count - 1)];
			buckets[destination->key & (count - 1)] = destination;
		}
	free(destinations->buckets);
	destinations->buckets = buckets;
	destinations->bucket_count = count;
}

static struct destination **bucket(struct destinations *destinations, uint64_t key)
{
	return &destinations->buckets[key & (destinations->bucket_count - 1)];
}

RARE struct destination *destination_make(struct destinations *destinations, uint64_t key)
{
	struct destination *destination;

	if (destinations->count >= destinations->bucket_count)
		grow(destinations);
	destinations_shrink(destinations, IDLE_MAX);
	destination = destinations->bucket_count ? calloc(1, sizeof(*destination)) : NULL;
	if (!destination)
		return NULL;
	destination->key = key;
	flow_path_init(&destination->path);
	list_init(&destination->lanes);
	list_add_last(&destinations->idle, &destination->idle);
	destinations->idle_count++;
	destination->next = *bucket(destinations, key);
	*bucket(destinations, key) = destination;
	destinations->count++;
	return destination;
}

static void destroy(struct destinations *destinations, struct destination *destination)
{
	struct destination **at = bucket(destinations, destination->key);

	while (*at != destination)
		at = &(*at)->next;
	*at = destination->next;
	destinations->count--;
	free(destination);
}

void destinations_shrink(struct destinations *destinations, unsigned kept)
{
	struct list *oldest;

	while (destinations->idle_count > kept && (oldest = list_pop(&destinations->idle))) {
		destinations->idle_count--;
		destroy(destinations, list_entry(oldest, struct destination, idle));
	}
}

void destinations_visit(struct destinations *destinations,
			void (*visit)(struct destination *destination, void *arg), void *arg)
{
	struct destination *destination, *next;

	for (unsigned i = 0; i < destinations->bucket_count; i++)
		for (destination = destinations->buckets[i]; destination; destination = next) {
			next = destination->next;
			visit(destination, arg);
		}
}
