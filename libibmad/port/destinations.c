/* SPDX-License-Identifier: BSD-2-Clause */

#include "port/destinations.h"

#include "base/export.h"
#include "mad/layout.h"
#include "mad/packet.h"

#include <infiniband/mad.h>
#include <infiniband/umad.h>
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

uint64_t destination_key(const void *umad)
{
	const uint8_t *mad = packet_mad(umad);
	const struct ib_user_mad *header = umad;
	uint64_t key = hash(0xcbf29ce484222325, be16toh(header->addr.lid));

	key = hash(key, is_smp_class(mad[1]));
	if (header->addr.grh_present)
		key = hash_bytes(key, header->addr.gid, sizeof(header->addr.gid));
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

static RARE struct destination *make(struct destinations *destinations, uint64_t key)
{
	struct destination *destination = calloc(1, sizeof(*destination));

	if (!destination)
		return NULL;
	destination->key = key;
	flow_path_init(&destination->path);
	list_init(&destination->lanes);
	destination->next = *bucket(destinations, key);
	*bucket(destinations, key) = destination;
	destinations->count++;
	return destination;
}

struct destination *destination_get(struct destinations *destinations, uint64_t key)
{
	struct destination *destination;

	if (destinations->count >= destinations->bucket_count)
		grow(destinations);
	if (!destinations->bucket_count)
		return NULL;
	for (destination = *bucket(destinations, key); destination;
	     destination = destination->next)
		if (destination->key == key)
			break;
	if (!destination) {
		destinations_shrink(destinations, IDLE_MAX);
		destination = make(destinations, key);
	} else if (!destination->users) {
		list_remove(&destination->idle);
		destinations->idle_count--;
	}
	if (destination)
		destination->users++;
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

void destination_put(struct destinations *destinations, struct destination *destination)
{
	if (--destination->users)
		return;
	list_add_last(&destinations->idle, &destination->idle);
	destinations->idle_count++;
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
