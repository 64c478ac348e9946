/* SPDX-License-Identifier: BSD-2-Clause */

/* What the blocking and the asynchronous requests to the SA have in common. */
#ifndef LIBIBMAD_SA_QUERY_H
#define LIBIBMAD_SA_QUERY_H

#include "classes/sa_table.h"

#include <stdbool.h>

/* ERR_NO_RECORDS (IBA 15.2.3) in the status field. */
#define SA_NO_RECORDS (UMAD_SA_STATUS_NO_RECORDS << 8)

/* Whether the query can be sent with that method. */
bool sa_query_is_valid(const struct mad_sa_query *query, int method);

/* Whether the response to the method is a table. */
bool sa_query_is_for_table(int method);

/* The header of the request, without an address. */
void sa_query_rpc(const struct ibmad_port *port, const struct mad_sa_query *query, int method,
		  ib_rpc_t *rpc);

/* Stores why a call failed, unless a request has: mad_last_failure(). Returns the error. */
int sa_query_fail(const struct mad_sa_query *query, int method, int error);

/* The fewest bytes of a record in the table that comes as the response. */
size_t sa_query_least(const struct mad_sa_query *query, int method);

#endif
