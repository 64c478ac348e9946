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
static struct attempt **bucket(struct table *table, uint32_t tid)
{
	struct attempt **buckets = table->buckets ? table->buckets : table->first_buckets;

	return &buckets[tid & (table->bucket_count - 1)];
}

static void chain(struct attempt **first, struct attempt *attempt)
{
	attempt->next = *first;
	*first = attempt;
}

void table_reserve(struct table *table, unsigned count)
{
	unsigned old_count = table->bucket_count, new_count = old_count;
	struct attempt **old = table->buckets ? table->buckets : table->first_buckets;
	struct attempt **buckets, *attempt, *next;

	while (new_count < count)
		new_count *= 2;
	if (new_count == old_count)
		return;
	buckets = calloc(new_count, sizeof(struct attempt *));
	if (!buckets)
		return; /* longer chains do, too */
	for (unsigned i = 0; i < old_count; i++)
		for (attempt = old[i]; attempt; attempt = next) {
			next = attempt->next;
			chain(&buckets[attempt->tid & (new_count - 1)], attempt);
		}
	free(table->buckets);
	table->buckets = buckets;
	table->bucket_count = new_count;
}

void table_add(struct table *table, struct attempt *attempt, uint32_t tid)
{
	attempt->tid = tid;
	chain(bucket(table, tid), attempt);
	table->count++;
}

void table_remove(struct table *table, struct attempt *attempt)
{
	struct attempt **at;

	for (at = bucket(table, attempt->tid); *at; at = &(*at)->next)
		if (*at == attempt) {
			*at = attempt->next;
			table->count--;
			return;
		}
}

/* The first of a chain that has it. */
static struct attempt *with_tid(struct attempt *attempt, uint32_t tid)
{
	while (attempt && attempt->tid != tid)
		attempt = attempt->next;
	return attempt;
}

struct attempt *table_find(struct table *table, uint32_t tid)
{
	return with_tid(*bucket(table, tid), tid);
}

struct attempt *table_find_next(const struct attempt *attempt)
{
	return with_tid(attempt->next, attempt->tid);
}

struct attempt *table_any(const struct table *table)
{
	struct attempt *const *buckets = table->buckets ? table->buckets : table->first_buckets;

	for (unsigned i = 0; table->count && i < table->bucket_count; i++)
		if (buckets[i])
			return buckets[i];
	return NULL;
}
