/* SPDX-License-Identifier: BSD-2-Clause */

/* The parts of the client of the SA: tables, requests, and the address of the SA. */
#ifndef LIBIBMAD_SA_H
#define LIBIBMAD_SA_H

#include "engine/port.h"

#include <infiniband/mad.h>
#include <infiniband/mad_async.h>
#include <infiniband/mad_sa.h>
#include <stdbool.h>

/* The bytes of an attribute without padding; 0 if it is not known (sa_attributes.c). */
size_t sa_record_size(unsigned attribute);

/* --- sa_table.c ------------------------------------------------------------------- */

/*
 * Makes a table of the records of a response: of all records, or of one. Each record has
 * "least" bytes at least. reply NULL: an empty table. 0, -EBADMSG, -EPROTO, -ENOMEM.
 */
int sa_table_make(const struct mad_reply *reply, bool for_table, size_t least,
		  struct mad_sa_table **table);

/* --- sa_query.c ------------------------------------------------------------------- */

/* ERR_NO_RECORDS (IBA 15.2.3) in the status field. */
#define SA_NO_RECORDS (UMAD_SA_STATUS_NO_RECORDS << 8)

/* Whether the query, which may be NULL, can be sent. */
bool sa_query_is_valid(const struct mad_sa_query *query);

int sa_query_method(const struct mad_sa_query *query);

/* Whether the response to the method is a table. */
bool sa_query_is_for_table(int method);

/* The GID in the record that stands for that of the port, because it is 0; NULL: none. */
uint8_t *sa_query_own_gid(const struct mad_sa_query *query, uint8_t *record);

/* The header of the request, without an address. */
void sa_query_rpc(const struct ibmad_port *port, const struct mad_sa_query *query,
		  ib_rpc_t *rpc);

/* Stores the failure of a call that has sent no request. Returns the error. */
int sa_query_fail(const struct mad_sa_query *query, int error);

/* The minimum length of a record in the response. */
size_t sa_query_least(const struct mad_sa_query *query);

/* --- sa_address.c ----------------------------------------------------------------- */

/*
 * The address of the SA of a port is the address of the SM, from the PortInfo of the port. It
 * is valid for a second. Then the PortInfo is read again, because another SM may have become
 * the master. The read does not leave the port.
 */

/* The maximum number of times that a request is sent to a new address of the SA. */
#define SA_MOVES_MOST 3

/* The address, if it was read within the last second; false otherwise. */
bool sa_address_known(const struct ibmad_port *port, ib_portid_t *sa);

/* Reads the address from a PortInfo, and stores it. 0, or -ENXIO if it has no valid LID. */
int sa_address_learn(const struct ibmad_port *port, const uint8_t *port_info, ib_portid_t *sa);

/*
 * Reads the PortInfo, and waits for it. 0 or a negative errno, which mad_last_failure() also
 * has.
 */
int sa_address_read(const struct ibmad_port *port, int timeout_ms, ib_portid_t *sa);

/*
 * Whether the SA may have another address, because the request had no response, or the response
 * of a kernel without an agent for the class.
 */
bool sa_address_is_doubtful(int error, unsigned status);

#endif
