/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A port, which all its threads and engines share: its lock, its state, its requests, and the
 * threads that wait. port.c has its life and its options; io.c sends, reads and waits.
 *
 * The lock guards all but the handle and the options. No thread holds it while it writes,
 * reads, waits or calls back. A function that releases the lock for a time has a name that ends
 * with _unlocking.
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

/* The most of each kind of work that a thread does before it looks at its own. */
#define BATCH 64

struct mad_async;

/* The open port of libibumad and its agents: no lock. */
struct handle {
	int fd;
	unsigned header_size; /* of the umad header */
	char *ca_name;        /* as the caller of the open call gave it; NULL: any */
	int portnum;
	atomic_int agents[MGMT_CLASSES]; /* by class; -1: none */
	atomic_bool rmpp[MGMT_CLASSES];  /* whether that agent has RMPP */
};

/* The agent of a class; -1 without one. */
static inline int handle_agent(const struct handle *handle, int mgmt_class)
{
	return mgmt_class >= 0 && mgmt_class < MGMT_CLASSES ? handle->agents[mgmt_class] : -1;
}

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

/* What a thread waits for. */
enum wait_kind {
	WAIT_FOR_REQUEST, /* that a blocking request is complete */
	WAIT_FOR_MESSAGE, /* in the inbox */
	WAIT_FOR_ENGINE,  /* in mad_async_wait() */
};

enum waiter_state {
	WAITER_RUNNING, /* or it leads */
	WAITER_SLEEPING,
	WAITER_WOKEN, /* it has what it waits for, or is to lead, or work has come */
};

/*
 * A thread that waits on a port. One of them, the leader, polls the handle and does the port's
 * work: it reads messages, judges timers, and sends what may be sent. The others sleep, each on
 * its own condition. A leader that has what it waits for, or that is to call back or to send,
 * which may take long, makes another thread the leader.
 */
struct waiter {
	struct list all; /* in the port's */
	enum wait_kind kind;
	enum waiter_state state;
	pthread_cond_t awake; /* SLEEPING */
};

/* A blocking call: a request, and the thread that waits for it. */
struct blocking_request {
	struct waiter waiter;
	struct request request;
};

/* What the leader is doing. */
enum lead {
	LEAD_WORKING,       /* all but poll(2); or no thread leads */
	LEAD_POLLING,       /* another thread may read meanwhile */
	LEAD_POLLING_ALONE, /* a simulator's handle: until poll(2) returns, no thread may read
			     */
	LEAD_WOKEN,         /* in poll(2), and the eventfd that ends it is readable */
};

enum port_state {
	PORT_OPEN,
	PORT_INHERITED, /* open, in a child of fork(): the agents are the parent's */
	PORT_GONE,      /* the device is gone */
	PORT_CLOSING,   /* mad_rpc_close_port() waits until no thread is in a call */
	PORT_CLOSED,    /* only engines and servers still have it */
	PORT_LOST,      /* in a child of fork(): a thread of the parent was changing it */
};

/* Messages for mad_receive_via(): see receive.c. */
struct inbox {
	struct list messages;
	size_t bytes;
	uint64_t *expected; /* IDs and classes of mad_send_via() calls; NULL: none so far */
};

struct ibmad_port {
	pthread_mutex_t lock;
	_Atomic enum port_state state;
	int error;           /* 0, or the errno with which all requests fail from now on */
	atomic_uint forks;   /* port_forks at the latest use of the port */
	unsigned users;      /* calls that have not returned */
	pthread_cond_t idle; /* PORT_CLOSING: no user is left */
	struct handle handle;
	bool has_descriptor; /* poll(2) and epoll know the handle; otherwise it is a simulator's
			      */
	struct options options;

	/* requests */
	struct requests requests;
	struct queue queue;
	struct timers timers;   /* of all requests */
	struct source blocking; /* of the blocking calls */
	unsigned open;          /* requests of all engines that were not called back */
	struct list engines;
	struct list loops;   /* engines with a descriptor for an event loop */
	struct list retired; /* freed engines, whose memory is used for new ones */
	struct list servers;
	struct inbox inbox;

	/* threads that wait */
	struct list waiters;
	struct waiter *leader; /* it polls or reads; NULL: no thread leads */
	enum lead lead;
	int64_t polls_until; /* LEAD_POLLING: at the longest */
	atomic_int wake_fd;  /* an eventfd that the leader polls, too; -1: none */
	atomic_bool alerted; /* port_alert() was called */

	/* reading */
	bool reading;          /* a thread reads messages, and has the buffer */
	int64_t read_until;    /* all messages that came before this time were handled */
	int64_t reading_since; /* when the first message after that was read */
	unsigned read_since;   /* messages since then */
	int64_t blocked_until; /* no memory for the next message: read it again then; 0 */
	_Alignas(8) uint8_t buffer[PACKET_SIZE];

	uint64_t dropped;    /* messages that were dropped */
	uint64_t mismatched; /* responses with the ID of a request that were not for it */
	unsigned lmc;        /* of the local port, valid until lmc_until */
	int64_t lmc_until;
	unsigned traced_sizes[FLOW_WINDOWS]; /* of the windows, as last traced */
	ib_portid_t sa;                      /* the address of the SA; lid 0: not known */
	int64_t sa_read_at;                  /* when it was read */
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

/* A port without a handle; NULL: no memory. */
struct ibmad_port *port_new(const char *ca_name, int portnum);
/* Prepares the port for its handle, port->handle.fd. */
void port_begin(struct ibmad_port *port);
void port_free(struct ibmad_port *port);
/* Opens the eventfd by which the leader is woken, unless it is open. */
void port_open_wake_fd(struct ibmad_port *port);
void port_close_wake_fd(struct ibmad_port *port);

/*
 * The border of the library: from call_begin() to call_end() the thread cannot be cancelled
 * (pthread_cancel(3)).
 */
void call_begin(void);
void call_end(void);

/*
 * Each call that waits on a port or changes it calls port_enter() first and port_leave() last,
 * which contain call_begin() and call_end(). In between the lock is held, and
 * mad_rpc_close_port() waits for port_leave().
 *
 * In a child of fork() the first port_enter() cancels all requests. If a thread of the parent
 * was in a call for the port, the port is lost: port_enter() returns -ECANCELED from then on.
 * After an error the lock is not held, and port_leave() must not be called.
 */
int port_enter(struct ibmad_port *port);
/* The port may be freed: the caller had its last engine, or its last server. */
void port_leave(struct ibmad_port *port);
/* Frees memory that remains after many requests. */
void port_shrink(struct ibmad_port *port);

/* Public blocking calls have a const port in their prototypes. */
static inline struct ibmad_port *port_of(const struct ibmad_port *port)
{
	union {
		const struct ibmad_port *theirs;
		struct ibmad_port *ours;
	} cast = {.theirs = port};

	return cast.ours;
}

/* --- fork.c ----------------------------------------------------------------------- */

/* The forks that led to this process, since the first port was made. */
extern atomic_uint port_forks;
/* Counts forks from now on. */
void port_watch_forks(void);
/* In a child of fork(): the first call for a port that the parent opened. */
void port_inherit(struct ibmad_port *port);

/* --- port.c: options -------------------------------------------------------------- */

/* The SM_Key of requests to the SA, and the M_Key of SMPs; 0 without a port. */
uint64_t options_sa_key(const struct ibmad_port *port);
uint64_t options_m_key(const struct ibmad_port *port);
/* The settings of a request on the port. The caller may then set by_rmpp. */
struct request_settings options_for_request(const struct ibmad_port *port, int mgmt_class);

/* --- io.c: the lock is held in each call ------------------------------------------ */

extern __attribute__((visibility("hidden"))) const char *const public_call_names[PUBLIC_CALLS];

/* Sends a new request, or queues it; urgent: before all others. */
void port_submit_unlocking(struct ibmad_port *port, struct request *request, bool urgent);
/* Completes a request with this errno. */
void port_cancel(struct ibmad_port *port, struct request *request, int error);
/* Completes every request with this errno. */
void port_cancel_all(struct ibmad_port *port, int error);
/* The same; later requests fail, too, and all threads and event loops are told. */
void port_fail(struct ibmad_port *port, enum port_state state, int error);

/* When a timer is due, or a request may be sent; NEVER. */
int64_t port_next(const struct ibmad_port *port);
/* Reads messages, judges timers and sends, without waiting: BATCH of each. */
void port_work_unlocking(struct ibmad_port *port);
/* Sends queued requests that may be sent, "most" at most. */
void port_send_unlocking(struct ibmad_port *port, unsigned most);
/* Traces the windows whose sizes have changed. */
void port_trace_windows(struct ibmad_port *port);

void waiter_begin(struct ibmad_port *port, struct waiter *waiter, enum wait_kind kind);
void waiter_end(struct ibmad_port *port, struct waiter *waiter);
/* Ends the present wait of a thread. */
void waiter_wake(struct ibmad_port *port, struct waiter *waiter);
/*
 * Waits until the waiter is woken, until something has happened, or until the time "until" at
 * the longest: the caller looks at what it waits for, and calls again. If "until" is over,
 * queued messages are read. 0, or -EINTR if a signal came while this thread led.
 */
int port_wait_unlocking(struct ibmad_port *port, struct waiter *waiter, int64_t until);
/* If no thread leads, makes one of those that sleep lead: this thread does not wait soon. */
void port_pass_lead(struct ibmad_port *port);
/* Tells the leader and the event loops what has changed. port_leave() does it, too. */
void port_tell(struct ibmad_port *port);
/* Callable in signal handlers, without the lock: a waiting thread looks at the engines soon. */
void port_alert(struct ibmad_port *port);
/* Wakes a thread that waits for the inbox. */
void port_wake_receiver(struct ibmad_port *port);
/* Whether event loops are told of messages. */
void port_watch(struct ibmad_port *port, bool watch);

/* With ibdebug: a line about a request that is complete. The lock is not held. */
void request_debug(const struct request *request);

/* --- io.c: without the lock ------------------------------------------------------- */

/*
 * Writes the response in a umad buffer for the agent that its header names. by_rmpp: the
 * receiver acknowledges it, even a single segment. 0 or an errno; ENODEV: the device is gone.
 */
int handle_respond(const struct handle *handle, uint8_t *umad, int length, bool by_rmpp);

/* --- open.c ----------------------------------------------------------------------- */

/* An agent for the requests of these methods, or NULL: for responses alone; as umad_register().
 */
int handle_register(const struct handle *handle, int mgmt_class, uint8_t rmpp_version,
		    long *methods, uint32_t oui);

/* --- server.c ---------------------------------------------------------------------- */

/* A message for no request: whether a server of the port takes it, and it is not for the inbox.
 */
bool servers_receive(struct ibmad_port *port, const uint8_t *umad, int length);
/* All servers end; their engines call back for the last time, with the error. */
void servers_end(struct ibmad_port *port, int error);
/* In a child of fork(): the servers end, their agents are the parent's. */
void servers_inherit(struct ibmad_port *port);
/* The port is closed: their agents are unregistered. */
void servers_unregister(struct ibmad_port *port);

/* --- receive.c: the inbox --------------------------------------------------------- */

void inbox_init(struct inbox *inbox);
void inbox_free(struct inbox *inbox);
/*
 * A message has come. Returns whether it was kept: not if it is a response that is not
 * expected, if the inbox is full, or without memory.
 */
bool inbox_add(struct inbox *inbox, const uint8_t *umad, int length);

#endif
