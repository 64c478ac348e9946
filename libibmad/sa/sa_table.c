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

/* Whether the response came by RMPP. Otherwise the end of the data is not known. */
static bool is_table(const struct mad_message *message)
{
	return message->length >= IB_SA_DATA_OFFS &&
	       message->mad[RMPP_TYPE_OFFS] == IB_RMPP_TYPE_DATA &&
	       message->mad[RMPP_FLAGS_OFFS] & IB_RMPP_FLAG_ACTIVE;
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
static int take_rest(struct mad_sa_table *table, size_t least)
{
	struct mad_message *message = &table->message;
	size_t at = IB_SA_DATA_OFFS + table->count * table->record_size;
	size_t rest = message->length - at;
	uint8_t *longer;

	if (is_zero(message->mad + at, rest))
		return 0;
	if (rest < least || table->record_size - rest >= ATTRIBUTE_OFFSET_UNIT)
		return -EPROTO;
	longer = realloc(message->mad, at + table->record_size);
	if (!longer)
		return -ENOMEM;
	message->mad = longer;
	memset(longer + message->length, 0, table->record_size - rest);
	table->count++;
	return 0;
}

int sa_table_parse(struct mad_sa_table *table, size_t least)
{
	const uint8_t *mad = table->message.mad;
	size_t data;
	int err;

	if (!is_table(&table->message))
		return -EBADMSG;
	data = table->message.length - IB_SA_DATA_OFFS;
	if (!data)
		return 0; /* the AttributeOffset has no meaning then */
	table->record_size = (size_t)get16(mad, ATTRIBUTE_OFFSET_OFFS) * ATTRIBUTE_OFFSET_UNIT;
	if (!table->record_size || table->record_size < least)
		return -EPROTO;
	table->count = data / table->record_size;
	err = take_rest(table, least);
	if (err)
		table->count = 0;
	return err;
}

EXPORT size_t mad_sa_table_count(const struct mad_sa_table *table)
{
	return table ? table->count : 0;
}

EXPORT size_t mad_sa_table_record_size(const struct mad_sa_table *table)
{
	return table ? table->record_size : 0;
}

EXPORT void *mad_sa_table_record(const struct mad_sa_table *table, size_t index)
{
	if (!table || index >= table->count)
		return NULL;
	return table->message.mad + IB_SA_DATA_OFFS + index * table->record_size;
}

EXPORT void mad_sa_table_free(struct mad_sa_table *table)
{
	if (!table)
		return;
	mad_message_free(&table->message);
	free(table);
}
