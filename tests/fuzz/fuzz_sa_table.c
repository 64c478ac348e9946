/* SPDX-License-Identifier: BSD-2-Clause */

/* Tables of any content; every byte of every record is read. */

#include "fuzz.h"

#include "../../libibmad/sa/sa.h"

#include <errno.h>

/* Reads all bytes of a record, so that a sanitizer finds one outside of the allocation. */
static size_t sum(const uint8_t *bytes, size_t size)
{
	size_t all = 0;

	while (size--)
		all += *bytes++;
	return all;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct mad_sa_table *table = calloc(1, sizeof(*table));
	size_t i, least = take(&input, 2), record_size;
	int err;

	/* an allocation of exactly this size */
	table->message.length = input.size;
	table->message.mad = malloc(input.size ? input.size : 1);
	if (input.size)
		memcpy(table->message.mad, input.data, input.size);

	err = sa_table_parse(table, least);
	check(err == 0 || err == -EBADMSG || err == -EPROTO || err == -ENOMEM);
	record_size = mad_sa_table_record_size(table);
	check(err || !mad_sa_table_count(table) || record_size >= least);
	check(err == 0 || !mad_sa_table_count(table));
	for (i = 0; i < mad_sa_table_count(table); i++)
		check(sum(mad_sa_table_record(table, i), record_size) <= 255 * record_size);
	check(!mad_sa_table_record(table, i));
	mad_sa_table_free(table);
	return 0;
}
