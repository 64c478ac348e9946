/* SPDX-License-Identifier: BSD-2-Clause */

/* A server, and the requests that it keeps: for request_server.c, and for the responses. */
#ifndef LIBIBMAD_HELD_REQUEST_H
#define LIBIBMAD_HELD_REQUEST_H

#include "calls/engine.h"

#include <infiniband/mad_server.h>

struct mad_server {
	struct port_server base;
	struct ibmad_port *port;
	struct mad_async *engine; /* NULL: the server was stopped */
	bool inherited;           /* from the parent, whose agent it is */
	mad_server_fn *callback;
	void *arg;
	bool rmpp;
	unsigned data_offset;
	unsigned limit;
	unsigned open;    /* requests that are queued or held */
	unsigned refused; /* requests that wait for BUSY */
	unsigned users;   /* threads that use the server with the lock dropped */
	bool calling;     /* one of them is in the callback */
	size_t bytes;     /* of requests */
	struct mad_server_stats stats;
	unsigned bucket_count;
	struct list buckets[]; /* requests by transaction ID */
};

struct held_request {
	struct mad_request request; /* first */
	struct mad_server *server;
	struct list queue;  /* in the engine's */
	struct list bucket; /* in the server's */
	_Alignas(8) uint8_t umad[];
};

/* Both with the core locked. Frees a request that is neither queued nor held any more. */
void held_request_free(struct held_request *held);
/* As the last use of a server: frees it if it is stopped and unused. */
void server_release(struct mad_server *server);

#endif
