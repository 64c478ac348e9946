/* SPDX-License-Identifier: BSD-2-Clause */

/* A port: the layers of the engine, and the engines and calls that use it. */
#ifndef LIBIBMAD_PORT_H
#define LIBIBMAD_PORT_H

#include "base/report.h"
#include "engine/inbox.h"
#include "engine/reader.h"
#include "engine/scheduler.h"

struct port_client;

/* What an asynchronous engine does about its port. The core is locked in each call. */
struct port_client_ops {
	/* Requests were sent, completed, or queued: there may be something to do. */
	void (*changed)(struct port_client *client);
	/* This is a child of fork(): what was in flight is the parent's. */
	void (*forked)(struct port_client *client);
	/* Frees it: the port does not exist any more. */
	void (*free)(struct port_client *client);
};

struct port_client {
	const struct port_client_ops *ops;
	struct list all; /* in a list of the port's */
};

struct port_server;

/* What a server of a class does about its port. The core is locked in each call. */
struct port_server_ops {
	/* A message for the server's agent. Returns whether it is the server's. */
	bool (*received)(struct port_server *server, const uint8_t *umad, int length);
	/* The port has failed: no message will come any more. */
	void (*failed)(struct port_server *server);
	/*
	 * This is a child of fork(): the agent is the parent's. "intact": no thread of the
	 * parent was changing the port.
	 */
	void (*forked)(struct port_server *server, bool intact);
};

struct port_server {
	const struct port_server_ops *ops;
	struct list all; /* in the port's */
	int agent;       /* -1: none any more */
};

struct ibmad_port {
	struct core core;
	struct reader reader;
	struct scheduler scheduler;
	struct source blocking; /* of the blocking calls */
	struct inbox inbox;

	atomic_uint forks;     /* of the process, as of its last use here */
	bool inherited;        /* the agents are the parent's */
	unsigned users;        /* calls that have not returned */
	pthread_cond_t unused; /* no user is left */
	bool closing;
	bool closed;
	_Atomic uint64_t sa_address; /* sa/sa_address.c */
	struct list clients;         /* engines */
	struct list servers;         /* of engines */
	struct list retired; /* engines that were destroyed: their memory is used again */
};

/* mad_rpc_open_port() for the public function "call". Reports a failure by "tell". */
struct ibmad_port *port_open(const char *call, report_fn *tell, const char *ca_name,
			     int portnum, const int *classes, int count);
/* The same, for a port that carries SMPs if "smi". */
struct ibmad_port *port_open_any(const char *call, report_fn *tell, const char *ca_name,
				 int portnum, bool smi, const int *classes, int count);

/* The name in messages; NULL: any. */
const char *port_name(const char *ca_name);

/*
 * Each call that waits on a port or changes it enters and leaves: that keeps the port from
 * being closed. The core is locked between. The thread cannot be cancelled between
 * (pthread_setcancelstate()): port_enter() returns the state that port_leave() restores.
 */
int port_enter(struct ibmad_port *port);
void port_leave(struct ibmad_port *port, int cancel_state);

/* Any thread or signal handler: each client's changed() is called soon in a thread that waits.
 */
void port_alert(struct ibmad_port *port);

/* Locked: other threads may have something to do now, and this thread may not do it soon. */
void port_tell_all(struct ibmad_port *port);

/* Locked, as the last use of the port: unlocks it, and frees it if it is closed and unused. */
void port_release(struct ibmad_port *port);
/* As port_leave(), for a thread that may have freed the last user of a closed port. */
void port_leave_last(struct ibmad_port *port, int cancel_state);

static inline struct ibmad_port *port_of_core(struct core *core)
{
	return list_entry(core, struct ibmad_port, core);
}

/* Blocking calls take a const port, as their callers have it. */
static inline struct ibmad_port *port_of(const struct ibmad_port *port)
{
	union {
		const struct ibmad_port *theirs;
		struct ibmad_port *ours;
	} cast = {.theirs = port};

	return cast.ours;
}

#endif
