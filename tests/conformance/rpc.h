/* SPDX-License-Identifier: BSD-2-Clause */

/* Requests of the test class with libibmad, and servers for them. */
#ifndef CONFORMANCE_RPC_H
#define CONFORMANCE_RPC_H

#include "environment.h"

#include <infiniband/mad.h>

/* A port with a client of CLASS that can do RMPP. */
struct ibmad_port *open_mad_port(const struct port *port);

/* QP1 of that port. */
ib_portid_t address_of(const struct port *to);

/* A request of CLASS with that attribute. */
ib_rpc_t request_of(int method, unsigned attribute, int timeout_ms);

/*
 * A process that serves CLASS on the other port with libibmad. The attribute selects the
 * response. stop_server() kills it.
 */
enum attribute {
	ECHO = 0x10,   /* the response has the request's data */
	COUNT = 0x11,  /* its first 4 bytes have the number of requests so far */
	REFUSE = 0x12, /* it has an error status */
	IGNORE = 0x13, /* there is no response */
	LENGTH = 0x14, /* its first 4 bytes have the length of the request's data */
	SENDER = 0x15, /* it has the address of the sender: LID, QP, GRH, GID */
	TWICE = 0x16   /* on the second request: the response to the first one */
};

#define REFUSED 0x001c /* the status */

int start_server(void);
void stop_server(int child);

#endif
