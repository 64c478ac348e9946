/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A port: its state, its lock, and the functions that carry out what requests ask for. A
 * function that releases the lock for a time has a name that ends with _unlocking.
 */
#ifndef LIBIBMAD_PORT_H
#define LIBIBMAD_PORT_H

#include "port/handle.h"
#include "port/inbox.h"
#include "port/listener.h"
#include "port/queue.h"
#include "port/server.h"
#include "port/waiters.h"

/* What the owner of a request does about it. The lock is held in each call. */
struct owner_ops {
	/* The request is complete: no event will come any more, and it is in no queue. */
	void (*completed)(struct ibmad_port *port, struct port_request *request);
	/* The request has a new timer, or is queued again. */
	void (*changed)(struct ibmad_port *port, struct port_request *request);
	/* A packet of the request is written; NULL: no matter. */
	void (*sent)(struct ibmad_port *port, struct port_request *request);
};

/* The options of a port that hold for later requests. Threads may read and set them at once. */
struct options {
	atomic_int timeout_ms; /* of an attempt; 0: the process's */
	atomic_int retries;    /* the number of attempts; 0 and less: the process's */
	_Atomic uint64_t m_key;
	_Atomic uint64_t sa_key;
	atomic_uint gid_index;
	atomic_size_t max_reply;
};

/*
 * The lock guards all but the handle and the options. No thread holds the lock while it writes,
 * reads, waits or calls back.
 */
struct ibmad_port {
	pthread_mutex_t lock;
	struct handle handle;
	bool has_descriptor; /* poll(2) and epoll know the handle; otherwise it is a simulator's
			      */
	struct options options;
	struct requests requests;
	struct queue queue;
	struct timers timers;   /* of the requests of engines */
	struct source blocking; /* of the blocking calls */
	struct waiters waiters;
	struct inbox inbox;
	struct list servers;
	struct list listeners;    /* of all engines */
	struct list loops;        /* listeners whose event loops poll the handle themselves */
	struct listener *watcher; /* whose event loop is told of messages; NULL */
	struct list retired;      /* engines that were destroyed: their memory is used again */
	unsigned open;            /* requests of all engines that were not called back */

	/* reading */
	int64_t emptied;       /* all messages that came before this time were handled */
	int64_t reading_since; /* see port_time() */
	unsigned read_since;   /* messages read since then */
	int64_t blocked_until; /* no memory to read the next message away: then try again; 0 */
	_Alignas(8) uint8_t buffer[PACKET_SIZE]; /* of the thread that reads */

	int gone;                            /* 0, or the errno of all requests from now on */
	uint64_t dropped;                    /* messages that nobody waits for */
	unsigned traced_sizes[FLOW_WINDOWS]; /* of the windows, as the probe told them last */
	_Atomic uint64_t sa_address;         /* sa/sa_address.h */

	/* life */
	atomic_uint forks;     /* of the process, as of the last use of the port */
	bool inherited;        /* in a child of fork(): the agents are the parent's */
	bool lost;             /* in a child: a thread of the parent was changing the port */
	unsigned users;        /* calls that have not returned */
	pthread_cond_t unused; /* no user is left */
	bool closing;
	bool closed;
};

/* A port without a handle; NULL without memory. */
struct ibmad_port *port_new(const char *ca_name, int portnum);
/* The port has a handle. */
void port_begin(struct ibmad_port *port);
void port_free(struct ibmad_port *port);

/*
 * Each call that waits on a port or changes it enters and leaves: that keeps the port from
 * being closed. The lock is held between. The thread cannot be cancelled between
 * (pthread_setcancelstate()): *cancel_state is for port_leave().
 *
 * In a child of fork() the first port_enter() cancels all requests. If a thread of the parent
 * was in a call for the port, the port is lost: port_enter() returns -ECANCELED from then on,
 * and nothing is to be left.
 */
int port_enter(struct ibmad_port *port, int *cancel_state);
void port_leave(struct ibmad_port *port, int cancel_state);
/* The same for a thread that cannot be cancelled anyway. */
int port_enter_uncancelled(struct ibmad_port *port);
void port_leave_uncancelled(struct ibmad_port *port);
/* As port_leave(), and if the port is closed and unused, frees the port. */
void port_leave_last(struct ibmad_port *port, int cancel_state);
/* Locked, as the last use of the port: unlocks, and frees the port if it is closed and unused.
 */
void port_release(struct ibmad_port *port);

/* Any thread or signal handler: a thread that waits looks at the engines soon. */
void port_alert(struct ibmad_port *port);

/* All below: the lock is held. */

static inline void port_lock(struct ibmad_port *port)
{
	pthread_mutex_lock(&port->lock);
}

static inline void port_unlock(struct ibmad_port *port)
{
	pthread_mutex_unlock(&port->lock);
}

/* Sends a request, or queues it. */
void port_submit_unlocking(struct ibmad_port *port, struct port_request *request);
/* Sends the requests that may be sent, "most" at most. */
void port_send_unlocking(struct ibmad_port *port, unsigned most);
/* Handles the timers that are due, "most" at most. */
void port_expire(struct ibmad_port *port, int64_t now, unsigned most);
/* A request has an event: TIMER or CANCEL. */
void port_handle(struct ibmad_port *port, struct port_request *request,
		 enum request_event_kind kind, int error, int64_t now);
/* When the next timer of an engine's request is due, or a request may be sent; NEVER. */
int64_t port_next(const struct ibmad_port *port);
/* What there is to do for the port. */
struct port_work port_work(const struct ibmad_port *port);
/* Every request completes with this errno. */
void port_cancel_all(struct ibmad_port *port, int error);
/* The same, now and from now on. */
void port_fail(struct ibmad_port *port, int error);
/* Frees memory after many requests. */
void port_shrink(struct ibmad_port *port);

/*
 * A message has come: length bytes of MAD in umad. "allocated": the port may keep umad. Returns
 * whether it did.
 */
bool port_receive(struct ibmad_port *port, uint8_t *umad, int length, bool allocated);
/* Only the first MAD of a message could be read: its request completes with this errno. */
void port_receive_failed(struct ibmad_port *port, const uint8_t *umad, int error);

/* Windows may have other sizes: tells those who trace. Queue pair i has window i. */
void port_trace_windows(struct ibmad_port *port);

/* Other threads may have something to do now, and this thread may not do it soon. */
void port_tell_others(struct ibmad_port *port);

static inline void port_tell(struct ibmad_port *port)
{
	if (port->watcher || !list_is_empty(&port->loops) || !list_is_empty(&port->waiters.all))
		port_tell_others(port);
}

void port_tell_all_engines(struct ibmad_port *port);
/* The state of an engine has changed. "due": as in listener_update(). */
void port_update_alarm(struct ibmad_port *port, struct listener *listener, bool due);

static inline void port_tell_engine(struct ibmad_port *port, struct listener *listener,
				    bool due)
{
	if (listener_has_alarm(listener))
		port_update_alarm(port, listener, due);
	else if (listener->waiting)
		listener_wake(listener, &port->waiters, port->gone);
}

/* Another event loop is told of messages. NULL: any that wants to. */
void port_set_watcher(struct ibmad_port *port, struct listener *listener);

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
