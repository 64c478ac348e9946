/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/table.h"

#include <stdlib.h>

void table_init(struct table *table)
{
	*table = (struct table){.bucket_count = TABLE_FIRST_BUCKETS};
}

void table_free(struct table *table)
{
	free(table->buckets);
	table_init(table);
}

/* Ids follow one another: their lowest bits spread them. */
static struct transmission **bucket(struct table *table, uint32_t tid)
{
	struct transmission **buckets = table->buckets ? table->buckets : table->first_buckets;

	return &buckets[tid & (table->bucket_count - 1)];
}

static void chain(struct transmission **first, struct transmission *transmission)
{
	transmission->next = *first;
	*first = transmission;
}

void table_reserve(struct table *table, unsigned count)
{
	unsigned old_count = table->bucket_count, new_count = old_count;
	struct transmission **old = table->buckets ? table->buckets : table->first_buckets;
	struct transmission **buckets, *transmission, *next;

	while (new_count < count)
		new_count *= 2;
	if (new_count == old_count)
		return;
	buckets = calloc(new_count, sizeof(struct transmission *));
	if (!buckets)
		return; /* longer chains do, too */
	for (unsigned i = 0; i < old_count; i++)
		for (transmission = old[i]; transmission; transmission = next) {
			next = transmission->next;
			chain(&buckets[transmission->tid & (new_count - 1)], transmission);
		}
	free(table->buckets);
	table->buckets = buckets;
	table->bucket_count = new_count;
}

void table_add(struct table *table, struct transmission *transmission, uint32_t tid)
{
	transmission->tid = tid;
	chain(bucket(table, tid), transmission);
	table->count++;
}

void table_remove(struct table *table, struct transmission *transmission)
{
	struct transmission **at;

	for (at = bucket(table, transmission->tid); *at; at = &(*at)->next)
		if (*at == transmission) {
			*at = transmission->next;
			table->count--;
			return;
		}
}

/* The first of a chain that has it. */
static struct transmission *with_tid(struct transmission *transmission, uint32_t tid)
{
	while (transmission && transmission->tid != tid)
		transmission = transmission->next;
	return transmission;
}

struct transmission *table_find(struct table *table, uint32_t tid)
{
	return with_tid(*bucket(table, tid), tid);
}

struct transmission *table_find_next(const struct transmission *transmission)
{
	return with_tid(transmission->next, transmission->tid);
}

struct transmission *table_any(const struct table *table)
{
	struct transmission *const *buckets =
		table->buckets ? table->buckets : table->first_buckets;

	for (unsigned i = 0; table->count && i < table->bucket_count; i++)
		if (buckets[i])
			return buckets[i];
	return NULL;
}
