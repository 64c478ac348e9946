/* SPDX-License-Identifier: BSD-2-Clause */

/* What a request to the SA needs to read its response. */
#ifndef LIBIBMAD_SA_H
#define LIBIBMAD_SA_H

#include <infiniband/mad_async.h>
#include <infiniband/mad_sa.h>
#include <stdbool.h>

/* The bytes of an attribute without padding; 0 if it is not known (sa_attributes.c). */
size_t sa_record_size(unsigned attribute);

/*
 * Makes a table of the records of a response: of all records, or of one. Each record has
 * "least" bytes at least. reply NULL: an empty table. 0, -EBADMSG, -EPROTO, -ENOMEM
 * (sa_table.c).
 */
int sa_table_make(const struct mad_reply *reply, bool for_table, size_t least,
		  struct mad_sa_table **table);

#endif
