/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A port: a umad handle, the agents on it, its options, and what is under way. Whatever
 * changes while threads use it is guarded by its one lock, which nobody holds while he
 * writes, reads, waits or calls back.
 */
#ifndef LIBIBMAD_PORT_H
#define LIBIBMAD_PORT_H

#include "engine/deadline.h"
#include "engine/destination.h"
#include "base/report.h"
#include "engine/rtt.h"
#include "engine/table.h"
#include "engine/window.h"

#include <infiniband/mad_async.h>
#include <infiniband/umad.h>
#include <pthread.h>
#include <stdatomic.h>

#define MGMT_CLASSES 256
/* Room for a umad header of either layout, and one MAD. */
#define PACKET_SIZE  (64 + IB_MAD_SIZE)

/* How far the windows open of themselves. */
#define SMP_WINDOW_MAX 256
#define GMP_WINDOW_MAX 2048

#define PORT_WINDOWS  2
#define SA_RTT        PORT_WINDOWS /* an administrator is not as quick as other nodes */
#define PORT_RTTS     (PORT_WINDOWS + 1)
#define SENT_REQUESTS 1024
#define GIVEN_UP      16

struct transaction;
struct waiter;

struct queue {
	struct transaction *first;
	struct transaction **last;
};

/* A request of somebody else's, or what answers mad_send_via(). */
struct request {
	struct request *next;
	int length; /* of the MAD */
	uint8_t umad[];
};

struct requests {
	struct request *first;
	struct request **last;
	unsigned count;
	size_t bytes;
};

struct ibmad_port {
	int fd;
	char *ca_name; /* as it was asked for; NULL: any */
	int portnum;
	atomic_int agents[MGMT_CLASSES]; /* by class; -1: none */
	atomic_bool rmpp[MGMT_CLASSES];  /* whether that agent has RMPP */

	/* options */
	atomic_int timeout_ms;
	atomic_int retries;
	_Atomic uint64_t m_key;
	_Atomic uint64_t sa_key;
	atomic_uint gid_index;
	atomic_size_t max_reply;

	pthread_mutex_t lock; /* of all below */
	atomic_uint forks;    /* of the process, as of its last use here */
	bool inherited;       /* the agents are the parent's */
	unsigned users;       /* blocking calls */
	bool closing;
	bool closed;
	pthread_cond_t unused; /* no user is left */
	int gone;              /* 0, or the errno of all that is asked of it */

	/* under way */
	struct table table;
	uint32_t given_up[GIVEN_UP]; /* IDs of blocking requests: late responses may come */
	unsigned next_given_up;
	struct deadlines deadlines; /* of asynchronous requests: others wait for themselves */
	struct window windows[PORT_WINDOWS];
	struct rtt rtts[PORT_RTTS];
	struct destinations destinations;
	unsigned destination_limit;
	struct queue ready[PORT_WINDOWS]; /* to be sent as the window allows */
	struct mad_async *engines;
	unsigned requests_open; /* of all engines */

	/* coming in */
	struct waiter *waiters;
	bool being_read;                         /* by one of them, or in mad_async_process() */
	_Alignas(8) uint8_t buffer[PACKET_SIZE]; /* his who reads */
	struct requests requests;
	uint32_t sent_requests[SENT_REQUESTS]; /* TIDs of mad_send_via() */
	unsigned next_sent_request;
	uint64_t dropped;
};

/* mad_rpc_open_port() for the public function "call". Reports a failure by "tell". */
struct ibmad_port *port_open(const char *call, report_fn *tell, const char *ca_name,
			     int portnum, const int *classes, int count);

/* For calls to take and give back: they keep the port from being closed under them. */
void port_enter(struct ibmad_port *port);
void port_leave(struct ibmad_port *port);

static inline void port_lock(struct ibmad_port *port)
{
	pthread_mutex_lock(&port->lock);
}

static inline void port_unlock(struct ibmad_port *port)
{
	pthread_mutex_unlock(&port->lock);
}

/* Locked, the last time: frees what nobody uses any more. */
void port_release(struct ibmad_port *port);

/* A class' agent; -1 without. */
int port_agent(const struct ibmad_port *port, int mgmt_class);

/* Locked: everything under way comes to an end with this errno, now and from now on. */
void port_fail(struct ibmad_port *port, int error);

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
