/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A port: its state, its lock, and the functions that carry out what requests ask for. A
 * function that releases the lock for a time has a name that ends with _unlocking.
 */
#ifndef LIBIBMAD_PORT_H
#define LIBIBMAD_PORT_H

#include "base/export.h"
#include "mad/probe.h"
#include "port/handle.h"
#include "port/inbox.h"
#include "port/loop_fds.h"
#include "port/queue.h"
#include "port/server.h"
#include "port/waiters.h"

#include <errno.h>

/* The calls to the owner of a request. The lock is held in each call. */
struct owner_ops {
	/* The request is complete: no event will come any more, and it is in no queue. */
	void (*completed)(struct ibmad_port *port, struct port_request *request);
	/* The request has a new timer, or is queued again. */
	void (*changed)(struct ibmad_port *port, struct port_request *request);
	/* A packet of the request is about to be written; may be NULL. */
	void (*sent)(struct ibmad_port *port, struct port_request *request);
};

/* Options for later requests. Threads may read and set them without the lock. */
struct options {
	atomic_int timeout_ms; /* of an attempt; 0: that of the process */
	atomic_int retries;    /* the number of attempts; 0 or less: that of the process */
	_Atomic uint64_t m_key;
	_Atomic uint64_t sa_key;
	atomic_uint gid_index;
	atomic_size_t max_reply;
	/* windows, destination limit and rate, as mad_port_set() has set them */
	atomic_uint limits[MAD_PORT_RATE + 1];
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
	struct listener *watcher; /* its event loop watches the handle; NULL: none does */
	struct list retired;      /* destroyed engines, whose memory is used for new ones */
	unsigned open;            /* requests of all engines that were not called back */

	/* reading */
	int64_t emptied;       /* all messages that came before this time were handled */
	int64_t reading_since; /* see count_message() in reader.c */
	unsigned read_since;   /* the messages that were read after reading_since */
	int64_t blocked_until; /* no memory for the next message: read it again then; 0 */
	/* of the thread that reads: a message, and the length of its MAD */
	_Alignas(8) uint8_t buffer[PACKET_SIZE];
	int length;

	int gone;            /* 0, or the errno with which all later requests fail */
	uint64_t dropped;    /* the number of messages that were dropped */
	uint64_t mismatched; /* responses with the ID of a request that were not for it */
	unsigned lmc;        /* of the local port, valid until lmc_until: see reader.c */
	int64_t lmc_until;
	unsigned traced_sizes[FLOW_WINDOWS]; /* of the windows, as last traced */
	_Atomic uint64_t sa_address;         /* see sa/sa_address.c */

	/* life */
	atomic_uint forks;     /* port_forks at the latest use of the port */
	bool inherited;        /* in a child of fork(): the agents are the parent's */
	bool lost;             /* in a child: a thread of the parent was changing the port */
	unsigned users;        /* calls that have not returned */
	pthread_cond_t unused; /* no user is left */
	bool closing;
	bool closed;
};

/* A port without a handle; NULL: no memory. */
struct ibmad_port *port_new(const char *ca_name, int portnum);
/* Prepares the port for its handle, port->handle.fd. */
void port_begin(struct ibmad_port *port);
void port_free(struct ibmad_port *port);

/* --- fork.c --------------------------------------------------------------------- */

/* The forks that led to this process, since the first port was made. */
extern atomic_uint port_forks;
/* Counts forks from now on. */
void port_watch_forks(void);
/* In a child of fork(): the first call for a port that the parent opened. */
void port_inherit(struct ibmad_port *port);

/* --- port.c --------------------------------------------------------------------- */

/* port_leave(), for the end of an engine, a server or a request: see port_release(). */
void port_leave_last(struct ibmad_port *port, int cancel_state);
/* Releases the lock; frees the port if it is closed and has no engine and no server. */
void port_release(struct ibmad_port *port);

/* Callable in signal handlers, without the lock: a waiting thread looks at the engines soon. */
void port_alert(struct ibmad_port *port);

static inline void port_lock(struct ibmad_port *port)
{
	pthread_mutex_lock(&port->lock);
}

static inline void port_unlock(struct ibmad_port *port)
{
	pthread_mutex_unlock(&port->lock);
}

/* The lock is held in each call below, up to the next heading. */

/* Writes the line of port_request_debug(). */
void port_request_write_result(const struct port_request *request);

/* Sends a request that is in no queue. */
void port_transmit_unlocking(struct ibmad_port *port, struct port_request *request);

/* Sends a new request, or queues it. */
static INLINE void port_submit_unlocking(struct ibmad_port *port, struct port_request *request)
{
	probe_request_submitted(&request->request, request_buffer(&request->request),
				request_mad(&request->request), request->request.timeout_ms,
				request->request.attempts_left);
	if (queue_submit(&port->queue, request))
		port_transmit_unlocking(port, request);
}

/* With ibdebug: a line about a request that is complete. The lock is not held. */
static inline void port_request_debug(const struct port_request *request)
{
	if (__builtin_expect(ibdebug, 0))
		port_request_write_result(request);
}

/* Sends queued requests that may be sent, "most" at most. */
void port_send_queued_unlocking(struct ibmad_port *port, unsigned most);

/* The same, without a call if none may be sent. */
static inline void port_send_unlocking(struct ibmad_port *port, unsigned most)
{
	if (queue_is_ready(&port->queue))
		port_send_queued_unlocking(port, most);
}

/* Handles the timers that are due, "most" at most. */
void port_expire(struct ibmad_port *port, int64_t now, unsigned most);
/* The request is to be sent again: ACTION_QUEUE, or ACTION_READDRESS. */
RARE void port_send_again(struct ibmad_port *port, struct port_request *request,
			  bool readdressed);

/* Carries out the action of an event, except ACTION_WRITE and ACTION_ASK_PATH. */
static INLINE void port_carry_out(struct ibmad_port *port, struct port_request *request,
				  enum request_action action)
{
	switch (action) {
	case ACTION_SET_TIMER:
		if (request->request.phase == REQUEST_PAUSED)
			queue_pause(&port->queue, request);
		request->owner->ops->changed(port, request);
		break;
	case ACTION_QUEUE:
	case ACTION_READDRESS:
		port_send_again(port, request, action == ACTION_READDRESS);
		break;
	case ACTION_COMPLETE:
		timer_stop(&port->timers, &request->timer);
		queue_remove(&port->queue, request);
		queue_leave(&port->queue, request);
		request->owner->ops->completed(port, request);
		return;
	default:
		break;
	}
	queue_update(&port->queue, request);
}

/* Handles an event of a request, TIMER or CANCEL, and carries out its action. */
void port_handle(struct ibmad_port *port, struct port_request *request,
		 enum request_event_kind kind, int error, int64_t now);
/* When the next timer of an engine's request is due, or a request may be sent; NEVER. */
int64_t port_next(const struct ibmad_port *port);
/* The present work of the port, for listeners. */
struct port_work port_work(const struct ibmad_port *port);
/* Completes every request with this errno. */
void port_cancel_all(struct ibmad_port *port, int error);
/* The same; later requests fail, too, and waiting threads and event loops are told. */
void port_fail(struct ibmad_port *port, int error);
/* Frees memory that remains after many requests. */
void port_shrink(struct ibmad_port *port);

/* Traces the windows whose sizes have changed. */
void port_trace_windows(struct ibmad_port *port);

/* Wakes other threads and event loops if there is work that this thread may not do soon. */
void port_tell_others(struct ibmad_port *port);

/* The same, without a call if there are none. */
static inline void port_tell(struct ibmad_port *port)
{
	if (port->watcher || !list_is_empty(&port->waiters.all))
		port_tell_others(port);
}

/* port_tell_engine() for all engines, without "due". */
void port_tell_all_engines(struct ibmad_port *port);
/* The state of an engine has changed. "due": see listener_update(). */
void port_update_alarm(struct ibmad_port *port, struct listener *listener, bool due);

/* The same for an engine that may have no event loop. */
static inline void port_tell_engine(struct ibmad_port *port, struct listener *listener,
				    bool due)
{
	if (listener_has_alarm(listener))
		port_update_alarm(port, listener, due);
	else if (listener->waiting && !listener->waiter.woken)
		listener_wake(listener, &port->waiters, port->gone);
}

/* Another event loop watches the handle. NULL: any other one with a poll_fd. */
void port_set_watcher(struct ibmad_port *port, struct listener *listener);

/* --- entering and leaving ------------------------------------------------------- */

/* port_enter(), for a thread that has already disabled its cancellation. */
static inline int port_enter_uncancelled(struct ibmad_port *port)
{
	if (port->forks != port_forks)
		port_inherit(port);
	if (port->lost)
		return -ECANCELED;
	port_lock(port);
	port->users++;
	return 0;
}

/*
 * Each call that waits on a port or changes it calls port_enter() first and port_leave() last.
 * mad_rpc_close_port() waits for port_leave(). In between the lock is held, and the thread
 * cannot be cancelled (pthread_setcancelstate()): *cancel_state is for port_leave().
 *
 * In a child of fork() the first port_enter() cancels all requests. If a thread of the parent
 * was in a call for the port, the port is lost: port_enter() returns -ECANCELED from then on.
 * After an error the lock is not held, and port_leave() must not be called.
 */
static inline int port_enter(struct ibmad_port *port, int *cancel_state)
{
	int ret;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, cancel_state);
	ret = port_enter_uncancelled(port);
	if (ret)
		pthread_setcancelstate(*cancel_state, NULL);
	return ret;
}

/* port_leave() without releasing the lock. */
static inline void port_end_use(struct ibmad_port *port)
{
	port_tell(port);
	port->users--;
	if (port->closing && !port->users)
		pthread_cond_broadcast(&port->unused);
}

static inline void port_leave_uncancelled(struct ibmad_port *port)
{
	port_end_use(port);
	port_unlock(port);
}

static inline void port_leave(struct ibmad_port *port, int cancel_state)
{
	port_leave_uncancelled(port);
	pthread_setcancelstate(cancel_state, NULL);
}

/* Public blocking calls have a const port in their prototypes. */
static inline struct ibmad_port *port_of(const struct ibmad_port *port)
{
	union {
		const struct ibmad_port *theirs;
		struct ibmad_port *ours;
	} cast = {.theirs = port};

	return cast.ours;
}

#endif
