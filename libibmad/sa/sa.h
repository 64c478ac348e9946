/* SPDX-License-Identifier: BSD-2-Clause */

/* What is needed to parse an SA response. */
#ifndef LIBIBMAD_SA_H
#define LIBIBMAD_SA_H

#include <infiniband/mad_async.h>
#include <infiniband/mad_sa.h>
#include <stdbool.h>

/* Attribute size in bytes, unpadded; 0 if unknown (sa_attributes.c). */
size_t sa_record_size(unsigned attribute);

/*
 * Makes a table of a response's records: all, or one. Records must have at least "least" bytes.
 * reply NULL: empty table. Returns 0, -EBADMSG, -EPROTO or -ENOMEM (sa_table.c).
 */
int sa_table_make(const struct mad_reply *reply, bool for_table, size_t least,
		  struct mad_sa_table **table);

#endif
