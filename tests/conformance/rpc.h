/* SPDX-License-Identifier: BSD-2-Clause */

/* Requests of the checks' own class through libibmad, and servers for them. */
#ifndef CONFORMANCE_RPC_H
#define CONFORMANCE_RPC_H

#include "world.h"

#include <infiniband/mad.h>

/* A port with a client of CLASS that can do RMPP. */
struct ibmad_port *open_mad_port(const struct port *port);

/* That port's QP1. */
ib_portid_t address_of(const struct port *to);

/* A request of CLASS with that attribute. */
ib_rpc_t request_of(int method, unsigned attribute, int timeout_ms);

/*
 * A process that serves CLASS on the other port, by libibmad, and answers as the attribute
 * says. Killed by stop_server().
 */
enum attribute {
	ECHO = 0x10,   /* what came goes back, */
	COUNT = 0x11,  /* with the number of requests so far in its first 4 bytes, */
	REFUSE = 0x12, /* with a status, */
	IGNORE = 0x13, /* not at all, */
	LENGTH = 0x14, /* with the length of the request's data in its first 4 bytes, */
	SENDER = 0x15, /* with the address that it came from: LID, QP, GRH, GID, */
	TWICE = 0x16   /* when it comes for the second time: the first request, as it came */
};

#define REFUSED 0x001c /* the status */

int start_server(void);
void stop_server(int child);

#endif
