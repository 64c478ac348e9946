/* SPDX-License-Identifier: BSD-2-Clause */

/* The transmissions to which a response is expected, by transaction ID. */
#ifndef LIBIBMAD_TABLE_H
#define LIBIBMAD_TABLE_H

#include <stdint.h>

/* Enough for blocking calls, which allocate no memory. */
#define TABLE_FIRST_BUCKETS 16

/* One transmission of a request, for as long as a response to it is accepted. */
struct transmission {
	struct transmission *next; /* in its bucket */
	uint32_t tid;              /* the ID's lower half; 0: not chosen yet */
	uint32_t sent : 30;        /* when, in microseconds, as far as that goes */
	uint32_t slot : 2;         /* its index in its transaction */
};

struct table {
	struct transmission **buckets; /* NULL: the first ones */
	struct transmission *first_buckets[TABLE_FIRST_BUCKETS];
	unsigned bucket_count; /* a power of two */
	unsigned count;
};

void table_init(struct table *table);
void table_free(struct table *table);

/* Grows for so many transmissions, as far as memory is there. */
void table_reserve(struct table *table, unsigned count);

void table_add(struct table *table, struct transmission *transmission, uint32_t tid);
void table_remove(struct table *table, struct transmission *transmission);
struct transmission *table_find(struct table *table, uint32_t tid);
/* The next one with the same ID: requests of different classes may have the same ID. */
struct transmission *table_find_next(const struct transmission *transmission);
/* Any one; NULL if the table is empty. */
struct transmission *table_any(const struct table *table);

#endif
