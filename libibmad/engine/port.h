/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A port, shared by all its threads and engines: lock, state, requests, and waiting threads.
 * port.c creates it and has its options; io.c sends, reads and waits.
 *
 * The lock guards everything except the handle and the options. It is never held while writing,
 * reading, waiting or calling back; functions that temporarily release it end in _unlocking.
 */
#ifndef LIBIBMAD_PORT_H
#define LIBIBMAD_PORT_H

#include "engine/queue.h"
#include "mad/layout.h"

#include <infiniband/mad.h>
#include <infiniband/umad.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#define MGMT_CLASSES 256

/* At most this much of each kind of work before a thread checks on its own. */
#define BATCH 64

struct mad_async;

/* libibumad's open port and its agents. Needs no lock. */
struct handle {
	int fd;
	unsigned header_size; /* of the umad header */
	char *ca_name;        /* as passed to the open call; NULL: any */
	int portnum;
	atomic_int agents[MGMT_CLASSES]; /* by class; -1: none */
	atomic_bool rmpp[MGMT_CLASSES];  /* whether the agent uses RMPP */
};

/* Returns -1 if there is none. */
static inline int handle_agent(const struct handle *handle, int mgmt_class)
{
	return mgmt_class >= 0 && mgmt_class < MGMT_CLASSES ? handle->agents[mgmt_class] : -1;
}

/* Options for later requests; atomic, so no lock is needed. */
struct options {
	atomic_int timeout_ms; /* per attempt; 0: the process's */
	atomic_int retries;    /* number of attempts; 0 or less: the process's */
	_Atomic uint64_t m_key;
	_Atomic uint64_t sa_key;
	atomic_uint gid_index;
	atomic_size_t max_reply;
	/* as set by mad_port_set(): windows, destination limit, rate */
	atomic_uint limits[MAD_PORT_RATE + 1];
};

/* What a thread waits for. */
enum wait_kind {
	WAIT_FOR_REQUEST, /* a blocking request completes */
	WAIT_FOR_MESSAGE, /* something is in the inbox */
	WAIT_FOR_ENGINE,  /* in mad_async_wait() */
};

enum waiter_state {
	WAITER_RUNNING, /* or leading */
	WAITER_SLEEPING,
	WAITER_WOKEN, /* it is done, must lead, or has work */
};

/*
 * A thread waiting on a port. One of them, the leader, polls the handle and does the port's
 * work: reads messages, runs timers, sends. The others sleep, each on its own condition. A
 * leader that is done, or is about to call back or send (which may take long), passes the lead
 * on.
 */
struct waiter {
	struct list all; /* in the port's */
	enum wait_kind kind;
	enum waiter_state state;
	pthread_cond_t awake; /* SLEEPING */
};

/* A blocking call: a request and its waiting thread. */
struct blocking_request {
	struct waiter waiter;
	struct request request;
};

/* What the leader is doing. */
enum lead {
	LEAD_WORKING,       /* anything but poll(2); or there is no leader */
	LEAD_POLLING,       /* other threads may read meanwhile */
	LEAD_POLLING_ALONE, /* a simulator's handle: nobody may read until poll(2) returns */
	LEAD_WOKEN,         /* in poll(2), but its eventfd is readable */
};

enum port_state {
	PORT_OPEN,
	PORT_INHERITED, /* open, but in a fork()ed child: the agents are the parent's */
	PORT_GONE,      /* the device is gone */
	PORT_CLOSING,   /* mad_rpc_close_port() waits for calls in progress */
	PORT_CLOSED,    /* kept only for its engines and servers */
	PORT_LOST,      /* in a fork()ed child: a thread of the parent was changing it */
};

/* Messages for mad_receive_via() (receive.c). */
struct inbox {
	struct list messages;
	size_t bytes;
	uint64_t *expected; /* TIDs and classes sent by mad_send_via(); NULL: none so far */
};

struct ibmad_port {
	pthread_mutex_t lock;
	_Atomic enum port_state state;
	int error;           /* 0, or the errno with which all requests fail */
	atomic_uint forks;   /* port_forks when the port was last used */
	unsigned users;      /* calls in progress */
	pthread_cond_t idle; /* PORT_CLOSING: no users left */
	struct handle handle;
	bool has_descriptor; /* pollable by poll(2) and epoll, i.e. not a simulator's */
	struct options options;

	/* requests */
	struct requests requests;
	struct queue queue;
	struct timers timers;   /* all requests' */
	struct source blocking; /* blocking calls */
	unsigned open;          /* engines' requests not called back yet */
	struct list engines;
	struct list loops;   /* engines with an event-loop descriptor */
	struct list retired; /* freed engines, reused for new ones */
	struct list servers;
	struct inbox inbox;

	/* threads that wait */
	struct list waiters;
	struct waiter *leader; /* polls or reads; NULL: none */
	enum lead lead;
	int64_t polls_until; /* LEAD_POLLING: poll timeout */
	atomic_int wake_fd;  /* eventfd that wakes the leader; -1: none */
	atomic_bool alerted; /* port_alert() was called */

	/* reading */
	bool reading;          /* a thread is reading and owns the buffer */
	int64_t read_until;    /* all messages that arrived before this were handled */
	int64_t reading_since; /* when the first message after that was read */
	unsigned read_since;   /* messages read since then */
	int64_t blocked_until; /* OOM for the next message: retry then; 0: no */
	_Alignas(8) uint8_t buffer[PACKET_SIZE];

	uint64_t dropped;    /* messages dropped */
	uint64_t mismatched; /* responses with a request's TID that did not match it */
	unsigned lmc;        /* the local port's, valid until lmc_until */
	int64_t lmc_until;
	unsigned traced_sizes[FLOW_WINDOWS]; /* window sizes as last traced */
	ib_portid_t sa;                      /* the SA's address; lid 0: unknown */
	int64_t sa_read_at;
};

static inline void port_lock(struct ibmad_port *port)
{
	pthread_mutex_lock(&port->lock);
}

static inline void port_unlock(struct ibmad_port *port)
{
	pthread_mutex_unlock(&port->lock);
}

/* --- port.c: life ----------------------------------------------------------------- */

/* A port without a handle; NULL on OOM. */
struct ibmad_port *port_new(const char *ca_name, int portnum);
/* Called once port->handle.fd is set. */
void port_begin(struct ibmad_port *port);
void port_free(struct ibmad_port *port);
/* Opens the eventfd that wakes the leader, unless it is open. */
void port_open_wake_fd(struct ibmad_port *port);
void port_close_wake_fd(struct ibmad_port *port);

/* Bracket every public call: in between, the thread cannot be cancelled (pthread_cancel(3)). */
void call_begin(void);
void call_end(void);

/*
 * Every call that waits on or changes a port is bracketed by port_enter() and port_leave(),
 * which include call_begin() and call_end(). In between, the lock is held and
 * mad_rpc_close_port() waits.
 *
 * In a fork()ed child, the first port_enter() cancels all requests. If another thread of the
 * parent was in a call, the port is lost and port_enter() returns -ECANCELED from then on. On
 * error the lock is not held: don't call port_leave().
 */
int port_enter(struct ibmad_port *port);
/* May free the port, if this was its last engine or server. */
void port_leave(struct ibmad_port *port);
/* Frees memory left over from a burst of requests. */
void port_shrink(struct ibmad_port *port);

/* Public blocking calls take a const port. */
static inline struct ibmad_port *port_of(const struct ibmad_port *port)
{
	union {
		const struct ibmad_port *theirs;
		struct ibmad_port *ours;
	} cast = {.theirs = port};

	return cast.ours;
}

/* --- fork.c ----------------------------------------------------------------------- */

/* Number of fork()s from the first port's process to this one. */
extern atomic_uint port_forks;
void port_watch_forks(void);
/* First call in a fork()ed child for a port that the parent opened. */
void port_inherit(struct ibmad_port *port);

/* --- port.c: options -------------------------------------------------------------- */

/* SM_Key for SA requests, M_Key for SMPs; 0 without a port. */
uint64_t options_sa_key(const struct ibmad_port *port);
uint64_t options_m_key(const struct ibmad_port *port);
/* Settings for a request. The caller may then set by_rmpp. */
struct request_settings options_for_request(const struct ibmad_port *port, int mgmt_class);

/* --- io.c: the lock is held in each call ------------------------------------------ */

extern __attribute__((visibility("hidden"))) const char *const public_call_names[PUBLIC_CALLS];

/* Sends or queues a new request; urgent: ahead of all others. */
void port_submit_unlocking(struct ibmad_port *port, struct request *request, bool urgent);
/* Completes a request with this errno. */
void port_cancel(struct ibmad_port *port, struct request *request, int error);
/* Completes every request with this errno. */
void port_cancel_all(struct ibmad_port *port, int error);
/* As port_cancel_all(); also fails later requests, and wakes all threads and event loops. */
void port_fail(struct ibmad_port *port, enum port_state state, int error);

/* Returns when a timer is due or a request may be sent; NEVER. */
int64_t port_next(const struct ibmad_port *port);
/* Reads, runs timers and sends without waiting, at most BATCH of each. */
void port_work_unlocking(struct ibmad_port *port);
/* Sends at most "most" queued requests. */
void port_send_unlocking(struct ibmad_port *port, unsigned most);
/* Traces windows that changed size. */
void port_trace_windows(struct ibmad_port *port);

void waiter_begin(struct ibmad_port *port, struct waiter *waiter, enum wait_kind kind);
void waiter_end(struct ibmad_port *port, struct waiter *waiter);
void waiter_wake(struct ibmad_port *port, struct waiter *waiter);
/*
 * Waits until the waiter is woken, something has happened, or "until": the caller checks its
 * condition and calls again. With "until" in the past, reads queued messages. Returns 0, or
 * -EINTR on a signal while leading.
 */
int port_wait_unlocking(struct ibmad_port *port, struct waiter *waiter, int64_t until);
/* If there is no leader, makes a sleeping thread lead, because this one won't wait soon. */
void port_pass_lead(struct ibmad_port *port);
/* Notifies the leader and event loops of changes. port_leave() does this, too. */
void port_tell(struct ibmad_port *port);
/* Async-signal-safe, no lock needed: makes a waiting thread check the engines. */
void port_alert(struct ibmad_port *port);
void port_wake_receiver(struct ibmad_port *port);
/* Whether event loops are woken for messages. */
void port_watch(struct ibmad_port *port, bool watch);

/* With ibdebug: prints a line for a completed request. Must be called without the lock. */
void request_debug(const struct request *request);

/* --- io.c: without the lock ------------------------------------------------------- */

/*
 * Writes the response in umad for the agent in its header. by_rmpp: acknowledged by the
 * receiver, even a single segment. Returns 0 or an errno; ENODEV: device gone.
 */
int handle_respond(const struct handle *handle, uint8_t *umad, int length, bool by_rmpp);

/* --- open.c ----------------------------------------------------------------------- */

/* As umad_register(). Registers for requests of these methods; NULL: only for responses. */
int handle_register(const struct handle *handle, int mgmt_class, uint8_t rmpp_version,
		    long *methods, uint32_t oui);

/* --- server.c ---------------------------------------------------------------------- */

/*
 * Offers a message that belongs to no request. Returns whether a server took it, so that it is
 * not for the inbox.
 */
bool servers_receive(struct ibmad_port *port, const uint8_t *umad, int length);
/* Ends all servers; their last callback gets the error. */
void servers_end(struct ibmad_port *port, int error);
/* In a fork()ed child: ends the servers without touching the parent's agents. */
void servers_inherit(struct ibmad_port *port);
/* Unregisters the servers' agents when the port is closed. */
void servers_unregister(struct ibmad_port *port);

/* --- receive.c: the inbox --------------------------------------------------------- */

void inbox_init(struct inbox *inbox);
void inbox_free(struct inbox *inbox);
/*
 * Returns whether the message was kept: not on OOM, if the inbox is full, or for an unexpected
 * response.
 */
bool inbox_add(struct inbox *inbox, const uint8_t *umad, int length);

#endif
