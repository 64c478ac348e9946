/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A server on an engine, and the requests of others that came for its agent. A request waits in
 * the engine's list until the server's callback gets it, and is held until the program
 * responds. The lock of the port is held in each call.
 */
#ifndef LIBIBMAD_SERVER_H
#define LIBIBMAD_SERVER_H

#include "base/list.h"
#include "mad/packet.h"
#include "port/loop_fds.h"

#include <infiniband/mad_server.h>

struct mad_server {
	struct list all;           /* in the port's */
	int agent;                 /* -1: unregistered */
	struct listener *listener; /* of the engine; NULL: after the last callback */
	struct ibmad_port *port;
	struct mad_async *engine;
	struct list last; /* in the listener's, when the last callback is to come */
	bool ended;       /* no request comes any more */
	int error;        /* ended: 0, or a negative errno */
	mad_server_fn *callback;
	void *arg;
	bool rmpp;
	unsigned data_offset;
	unsigned limit;
	unsigned open;    /* requests that are queued or held */
	unsigned refused; /* requests that wait for BUSY */
	unsigned users;   /* threads that use the server with the lock released */
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

/* A server without an agent that holds "limit" requests at most; NULL: no memory. */
struct mad_server *server_new(unsigned limit);
/* After the caller's last use of a server: frees the server if it has ended and is unused. */
void server_release(struct mad_server *server);

/* The result of mad_server_get_stats(). */
static inline struct mad_server_stats server_stats(const struct mad_server *server)
{
	struct mad_server_stats stats = server->stats;

	stats.held = server->open - stats.queued;
	return stats;
}

/* The server of an agent; NULL: none. */
struct mad_server *server_find(const struct list *servers, uint32_t agent);
/* Takes a message for the server's agent. false: it is a response, and for the inbox. */
bool server_receive(struct mad_server *server, const uint8_t *umad, int length);

/* Drops the requests that no callback got. No others come. */
void server_close(struct mad_server *server);
/* The same; then the engine calls back for the last time, with the error. */
void server_end(struct mad_server *server, int error);
void servers_end(const struct list *servers, int error);
/* In a child of fork(): the servers end, their agents are the parent's. */
void servers_inherit(const struct list *servers);

/* Frees a request that is neither queued nor held any more. */
void held_request_free(struct held_request *held);

#endif
