/* SPDX-License-Identifier: BSD-2-Clause */

/* SA tables (IBA 15.2). */

#include "sa/sa.h"

#include "base/export.h"
#include "base/reserved.h"
#include "mad/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Offset in the header (IBA 13.6.2.1, 15.2.1.1). */
#define ATTRIBUTE_OFFSET_OFFS 44
#define ATTRIBUTE_OFFSET_UNIT 8

struct sa_table {
	struct mad_sa_table table; /* first */
	_Alignas(ATTRIBUTE_OFFSET_UNIT) uint8_t records[];
};

/* Finds the records in a response with this much data. */
static int find_records(const uint8_t *mad, size_t size, size_t least,
			struct mad_sa_table *found)
{
	size_t record_size, rest;

	/* without RMPP, the end of the data is unknown */
	if (mad[RMPP_TYPE_OFFS] != IB_RMPP_TYPE_DATA ||
	    !(mad[RMPP_FLAGS_OFFS] & IB_RMPP_FLAG_ACTIVE))
		return -EBADMSG;
	if (!size)
		return 0; /* AttributeOffset is meaningless then */
	record_size = (size_t)get16(mad, ATTRIBUTE_OFFSET_OFFS) * ATTRIBUTE_OFFSET_UNIT;
	if (!record_size || record_size < least)
		return -EPROTO;
	found->record_size = record_size;
	found->count = size / record_size;
	/*
	 * After the last whole record: padding, or an unpadded record. Anything else is a cut
	 * record.
	 */
	rest = size % record_size;
	if (bytes_are_zero(mad + IB_SA_DATA_OFFS + size - rest, rest))
		return 0;
	if (rest < least || record_size - rest >= ATTRIBUTE_OFFSET_UNIT)
		return -EPROTO;
	found->count++;
	return 0;
}

int sa_table_make(const struct mad_reply *reply, bool for_table, size_t least,
		  struct mad_sa_table **table)
{
	struct mad_sa_table found = {0};
	struct sa_table *made;
	size_t size = 0;
	int error = 0;

	if (reply && reply->length < IB_SA_DATA_OFFS)
		return -EBADMSG;
	if (reply)
		size = reply->length - IB_SA_DATA_OFFS;
	if (reply && for_table) {
		error = find_records(reply->mad, size, least, &found);
	} else if (reply) {
		error = !size || size < least ? -EBADMSG : 0;
		found.count = 1;
		found.record_size = size + -size % ATTRIBUTE_OFFSET_UNIT;
	}
	if (error)
		return error;
	/* zero-filled where the last record lacks padding */
	made = calloc(1, sizeof(*made) + found.count * found.record_size);
	if (!made)
		return -ENOMEM;
	made->table = found;
	if (size > found.count * found.record_size)
		size = found.count * found.record_size;
	if (size)
		memcpy(made->records, reply->mad + IB_SA_DATA_OFFS, size);
	*table = &made->table;
	return 0;
}

EXPORT void *mad_sa_table_record(const struct mad_sa_table *table, size_t index)
{
	union {
		const struct mad_sa_table *theirs;
		struct sa_table *ours;
	} cast = {.theirs = table};

	if (!table || index >= table->count)
		return NULL;
	return cast.ours->records + index * table->record_size;
}

EXPORT void mad_sa_table_free(struct mad_sa_table *table)
{
	free(table);
}
