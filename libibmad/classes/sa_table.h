/* SPDX-License-Identifier: BSD-2-Clause */

/* Taking an SA's table apart. */
#ifndef LIBIBMAD_SA_TABLE_H
#define LIBIBMAD_SA_TABLE_H

#include <infiniband/mad_async.h>
#include <infiniband/mad_sa.h>

/* Bytes of an attribute without padding; 0: it is not known. */
size_t sa_record_size(unsigned attribute);

struct mad_sa_table {
	struct mad_message message;
	size_t count;
	size_t record_size;
};

/*
 * Finds the records in table->message. Each record must have "least" bytes at least. 0,
 * -EBADMSG, -EPROTO, -ENOMEM. After an error, the table can only be freed.
 */
int sa_table_parse(struct mad_sa_table *table, size_t least);

#endif
