/* SPDX-License-Identifier: BSD-2-Clause */

/* Tables of any content; every byte of every record is read. */

#include "fuzz.h"

#include "../../libibmad/sa/sa.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	struct mad_reply reply = {.error = 0};
	struct mad_sa_table *table = NULL;
	size_t i, least = take(&input, 2);
	uint8_t *mad;
	int err;

	/* an allocation of exactly this size */
	mad = malloc(input.size ? input.size : 1);
	if (input.size)
		memcpy(mad, input.data, input.size);
	reply.mad = mad;
	reply.length = input.size;
	err = sa_table_make(&reply, !(least & 1), least, &table);
	free(mad);
	check(err == 0 || err == -EBADMSG || err == -EPROTO || err == -ENOMEM);
	check(!err == (table != NULL));
	if (!table)
		return 0;
	check(!table->count || table->record_size >= least);
	for (i = 0; i < table->count; i++)
		read_all(mad_sa_table_record(table, i), table->record_size);
	check(!mad_sa_table_record(table, i));
	mad_sa_table_free(table);
	return 0;
}
