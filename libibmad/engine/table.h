/* SPDX-License-Identifier: BSD-2-Clause */

/* What is under way, by transaction id. */
#ifndef LIBIBMAD_TABLE_H
#define LIBIBMAD_TABLE_H

#include <stdint.h>

/* Enough for blocking calls: they allocate nothing. */
#define TABLE_FIRST_BUCKETS 16

/* One sending of a request, as long as its answer is taken. */
struct attempt {
	struct attempt *next; /* in its bucket */
	uint32_t tid;         /* the ID's lower half; 0: not chosen yet */
	uint32_t sent : 30;   /* when, in microseconds, as far as that goes */
	uint32_t slot : 2;    /* which of its transaction's it is */
};

struct table {
	struct attempt **buckets; /* NULL: the first ones */
	struct attempt *first_buckets[TABLE_FIRST_BUCKETS];
	unsigned bucket_count; /* a power of two */
	unsigned count;
};

void table_init(struct table *table);
void table_free(struct table *table);

/* Grows for so many attempts, as far as memory is there. */
void table_reserve(struct table *table, unsigned count);

void table_add(struct table *table, struct attempt *attempt, uint32_t tid);
void table_remove(struct table *table, struct attempt *attempt);
struct attempt *table_find(struct table *table, uint32_t tid);
/* Another one with its id: callers may give the same to requests of several classes. */
struct attempt *table_find_next(const struct attempt *attempt);
/* Any; NULL when it is empty. */
struct attempt *table_any(const struct table *table);

#endif
