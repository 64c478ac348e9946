/* SPDX-License-Identifier: BSD-2-Clause */

/* Tables of the SA (IBA 15.2). */

#include "sa/sa.h"

#include "base/export.h"
#include "mad/layout.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* In the header (IBA 13.6.2.1, 15.2.1.1). */
#define ATTRIBUTE_OFFSET_OFFS 44
#define ATTRIBUTE_OFFSET_UNIT 8

struct sa_table {
	struct mad_sa_table table; /* first */
	uint8_t *mad;
	size_t length;
};

/* Whether the response came by RMPP. Otherwise the end of the data is not known. */
static bool is_table(const uint8_t *mad, size_t length)
{
	return length >= IB_SA_DATA_OFFS && mad[RMPP_TYPE_OFFS] == IB_RMPP_TYPE_DATA &&
	       mad[RMPP_FLAGS_OFFS] & IB_RMPP_FLAG_ACTIVE;
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
	while (size && !bytes[size - 1])
		size--;
	return !size;
}

/*
 * Checks the bytes behind the last whole record: padding, or a record without its padding,
 * which is added. Any other bytes are a record that was cut.
 */
static int take_rest(struct sa_table *table, size_t least)
{
	size_t record_size = table->table.record_size;
	size_t at = IB_SA_DATA_OFFS + table->table.count * record_size;
	size_t rest = table->length - at;

	if (is_zero(table->mad + at, rest))
		return 0;
	if (rest < least || record_size - rest >= ATTRIBUTE_OFFSET_UNIT)
		return -EPROTO;
	table->table.count++; /* the memory behind the message is zero */
	return 0;
}

static int find_records(struct sa_table *table, size_t least)
{
	size_t data, record_size;

	if (!is_table(table->mad, table->length))
		return -EBADMSG;
	data = table->length - IB_SA_DATA_OFFS;
	if (!data)
		return 0; /* the AttributeOffset has no meaning then */
	record_size = (size_t)get16(table->mad, ATTRIBUTE_OFFSET_OFFS) * ATTRIBUTE_OFFSET_UNIT;
	if (!record_size || record_size < least)
		return -EPROTO;
	table->table.record_size = record_size;
	table->table.count = data / record_size;
	return take_rest(table, least);
}

static int find_record(struct sa_table *table, size_t least)
{
	size_t data;

	if (table->length < IB_SA_DATA_OFFS + least || table->length <= IB_SA_DATA_OFFS)
		return -EBADMSG;
	data = table->length - IB_SA_DATA_OFFS;
	table->table.count = 1;
	table->table.record_size = data + -data % ATTRIBUTE_OFFSET_UNIT;
	return 0;
}

/* A copy, because the engine frees the reply, with zeros for the padding of the last record. */
static int take_message(struct sa_table *table, const struct mad_reply *reply, bool for_table,
			size_t least)
{
	table->mad = calloc(1, reply->length + ATTRIBUTE_OFFSET_UNIT);
	if (!table->mad)
		return -ENOMEM;
	memcpy(table->mad, reply->mad, reply->length);
	table->length = reply->length;
	return for_table ? find_records(table, least) : find_record(table, least);
}

int sa_table_make(const struct mad_reply *reply, bool for_table, size_t least,
		  struct mad_sa_table **table)
{
	struct sa_table *made = calloc(1, sizeof(*made));
	int error;

	if (!made)
		return -ENOMEM;
	error = reply ? take_message(made, reply, for_table, least) : 0;
	if (error) {
		mad_sa_table_free(&made->table);
		return error;
	}
	*table = &made->table;
	return 0;
}

EXPORT void *mad_sa_table_record(const struct mad_sa_table *table, size_t index)
{
	const struct sa_table *whole = (const struct sa_table *)(const void *)table;

	if (!table || index >= table->count)
		return NULL;
	return whole->mad + IB_SA_DATA_OFFS + index * table->record_size;
}

EXPORT void mad_sa_table_free(struct mad_sa_table *table)
{
	struct sa_table *whole = (struct sa_table *)(void *)table;

	if (whole)
		free(whole->mad);
	free(whole);
}
