/* SPDX-License-Identifier: BSD-2-Clause */

/* The memory of general services agents: a hash table that grows up to a limit. */
#include <errno.h>
#include <stdlib.h>

#include "gmp_agents.h"

#define FIRST_BUCKETS 64
#define HASH_PLACE    0x706c6163

struct entry {
	struct entry *next;
	struct gmp_place place;
	size_t length;
	uint8_t bytes[];
};

struct gmp_memory {
	struct entry **buckets;
	size_t bucket_count; /* a power of 2 */
	size_t entry_count;
	size_t size; /* bytes of all entries */
};

static size_t bucket_of(const struct fabric *fabric, const struct gmp_place *place)
{
	uint64_t name = (uint64_t)place->class << 48 | (uint64_t)place->attribute << 32;

	return (size_t)fabric_hash(fabric, HASH_PLACE, place->node, name | place->modifier) &
	       (fabric->gmp_memory->bucket_count - 1);
}

static bool is_at(const struct entry *entry, const struct gmp_place *place)
{
	return entry->place.node == place->node && entry->place.modifier == place->modifier &&
	       entry->place.attribute == place->attribute && entry->place.class == place->class;
}

/* Returns the pointer to the entry, or to the end of its list. */
static struct entry **find(const struct fabric *fabric, const struct gmp_place *place)
{
	struct entry **at = &fabric->gmp_memory->buckets[bucket_of(fabric, place)];

	while (*at && !is_at(*at, place))
		at = &(*at)->next;
	return at;
}

static void drop(struct gmp_memory *memory, struct entry **at)
{
	struct entry *entry = *at;

	*at = entry->next;
	memory->entry_count--;
	memory->size -= sizeof(*entry) + entry->length;
	free(entry);
}

static int create(struct fabric *fabric)
{
	struct gmp_memory *memory = calloc(1, sizeof(*memory));

	if (!memory)
		return -ENOMEM;
	memory->bucket_count = FIRST_BUCKETS;
	memory->buckets = calloc(memory->bucket_count, sizeof(struct entry *));
	if (!memory->buckets) {
		free(memory);
		return -ENOMEM;
	}
	fabric->gmp_memory = memory;
	return 0;
}

/* On OOM the lists just get longer: slower, but still correct. */
static void grow(struct fabric *fabric)
{
	struct gmp_memory *memory = fabric->gmp_memory;
	struct entry **old = memory->buckets;
	size_t count = memory->bucket_count;
	struct entry **buckets = calloc(count * 2, sizeof(struct entry *));

	if (!buckets)
		return;
	memory->buckets = buckets;
	memory->bucket_count = count * 2;
	for (size_t i = 0; i < count; i++) {
		while (old[i]) {
			struct entry *entry = old[i];
			size_t bucket = bucket_of(fabric, &entry->place);

			old[i] = entry->next;
			entry->next = buckets[bucket];
			buckets[bucket] = entry;
		}
	}
	free(old);
}

int gmp_keep(struct fabric *fabric, const struct gmp_place *place, const void *bytes,
	     size_t length)
{
	struct gmp_memory *memory = fabric->gmp_memory;
	struct entry *entry, **at;
	size_t size = sizeof(*entry) + length;

	if (!memory && create(fabric))
		return -ENOMEM;
	memory = fabric->gmp_memory;
	at = find(fabric, place);
	if (*at && (*at)->length == length) {
		memcpy((*at)->bytes, bytes, length);
		return 0;
	}
	if (size > GMP_MEMORY_LIMIT || memory->size > GMP_MEMORY_LIMIT - size)
		return -ENOSPC;
	entry = malloc(size);
	if (!entry)
		return -ENOMEM;
	if (*at)
		drop(memory, at);
	entry->place = *place;
	entry->length = length;
	memcpy(entry->bytes, bytes, length);
	entry->next = *at;
	*at = entry;
	memory->size += size;
	if (++memory->entry_count > memory->bucket_count)
		grow(fabric);
	return 0;
}

bool gmp_recall(const struct fabric *fabric, const struct gmp_place *place, void *bytes,
		size_t length)
{
	const struct entry *entry;

	if (!fabric->gmp_memory)
		return false;
	entry = *find(fabric, place);
	if (!entry || entry->length != length)
		return false;
	memcpy(bytes, entry->bytes, length);
	return true;
}

void gmp_forget(struct fabric *fabric, uint32_t node)
{
	struct gmp_memory *memory = fabric->gmp_memory;

	for (size_t i = 0; memory && i < memory->bucket_count; i++) {
		struct entry **at = &memory->buckets[i];

		while (*at) {
			if ((*at)->place.node == node)
				drop(memory, at);
			else
				at = &(*at)->next;
		}
	}
}

void gmp_memory_free(struct gmp_memory *memory)
{
	if (!memory)
		return;
	for (size_t i = 0; i < memory->bucket_count; i++)
		while (memory->buckets[i])
			drop(memory, &memory->buckets[i]);
	free(memory->buckets);
	free(memory);
}
