/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_async.h - many requests at once on one port: submit, go on, be called back.
 *
 *   struct mad_async *async = mad_async_create(port);
 *   for each node:
 *           mad_async_submit(async, &rpc, &node->address, NULL, 0, node_info_came, node, NULL);
 *   mad_async_run(async);
 *   mad_async_destroy(async);
 *
 * How many are under way is the library's concern: a window for SMPs and one for GMPs,
 * that open while answers come back and close when MADs get lost, and a limit for each
 * destination, so that a slow node holds up itself alone. What is submitted beyond them
 * waits its turn.
 *
 * Threads. Any number may use a port, and an engine on it, at once, together with the
 * blocking calls of mad.h. Callbacks run in the threads that call mad_async_process(),
 * mad_async_run() and mad_async_destroy(), one at a time for an engine, with no lock held: they
 * may submit, cancel and make blocking calls, but not destroy their engine or close its port.
 *
 * Cancellation. While a thread is in a call that waits, sends or calls back, it cannot be
 * cancelled (pthread_cancel(3)): the call ends first. Use mad_async_cancel(), or close the
 * port, to end the wait of another thread.
 *
 * Signals do not end mad_async_run() or mad_rpc(). mad_receive_via() returns with EINTR only if
 * its thread was the one that polled the port, which is not so while another thread waits, too.
 *
 * fork(). A child may go on with the port, as its parent may; both read from one device, so
 * one of them had better have a port of its own. What was under way is the parent's: in the
 * child it is called back with -ECANCELED. Of a child that is forked in a callback nothing
 * can be expected but an exec.
 *
 * Calls return 0 or more, or a negative errno.
 */
#ifndef INFINIBAND_MAD_ASYNC_H
#define INFINIBAND_MAD_ASYNC_H

#include <errno.h>
#include <infiniband/mad.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- requests ------------------------------------------------------------------- */

struct mad_async;

/** What became of a request. What it points to is gone when the callback returns. */
struct mad_reply {
	/**
	 * 0: an answer with status 0. -EIO: an answer with another status. Otherwise there is
	 * no answer: -ETIMEDOUT none came; -ECANCELED mad_async_cancel() or
	 * mad_async_destroy(), or the process has forked; -ENODEV the device has gone;
	 * -EMSGSIZE it is larger than mad_port_set_max_reply() allows; -ELOOP it was redirected
	 * too often, -EHOSTUNREACH to where there is no path, -EOPNOTSUPP and was more than
	 * one MAD; -ENOMEM; and what umad_send() gives.
	 */
	int error;
	unsigned status;     /**< the MAD's status (IBA 13.4.7), without the direction bit */
	const uint8_t *mad;  /**< the whole answer, as on the wire; NULL without */
	size_t length;       /**< its bytes: 256, or what RMPP put together */
	const uint8_t *data; /**< what lies at the request's dataoffs; NULL without */
	size_t data_size;    /**< and how many bytes */
	unsigned rtt_us;     /**< from the last transmission with the response's ID */
	unsigned attempts;   /**< how often the request was sent */
};

/** An answer that belongs to the caller of mad_rpc_message(). */
struct mad_message {
	uint8_t *mad;
	size_t length;
	unsigned status;
};

/** Called once for each request. */
typedef void mad_async_fn(struct mad_async *async, const struct mad_reply *reply, void *arg);

/**
 * An engine on an open port. When the port is closed first, what is under way is called
 * back with -ECANCELED. NULL with errno: EINVAL, ENOMEM.
 */
struct mad_async *mad_async_create(struct ibmad_port *port);

/**
 * Ends it: what is under way is called back with -ECANCELED first, and mad_async_run() in
 * another thread returns. NULL is fine.
 */
void mad_async_destroy(struct mad_async *async);

/**
 * Submits a request and returns at once. rpc and dport say what and where as for
 * mad_rpc(), and are copied; of class IB_CC_CLASS it is an ib_rpc_cc_t. payload is copied
 * to rpc->dataoffs, size bytes of it; it may be NULL. What does not fit into one MAD goes
 * by RMPP, on a class that was registered with it. rpc->timeout is what one attempt may
 * take, 0 the port's; the port's retries are the number of attempts. rpc->trid is not
 * looked at: the engine chooses a transaction ID, which is the same in all attempts.
 *
 * A GMP, that is, a request of a class other than IB_SMI_CLASS and IB_SMI_DIRECT_CLASS, goes
 * to QP 1 if dport->qp is 0, and with the Q_Key IB_DEFAULT_QP1_QKEY if dport->qkey is 0.
 *
 * *id, unless NULL, names the request for mad_async_cancel(). It is not 0.
 *
 * -EINVAL arguments that make no sense, or a class that is not registered on the port;
 * -EMSGSIZE a payload that neither a MAD nor RMPP can carry; -ENOMEM; -ENODEV; -ECANCELED
 * the port is closed, or the engine is being destroyed. The callback is not called then.
 */
int mad_async_submit(struct mad_async *async, const ib_rpc_t *rpc, const ib_portid_t *dport,
		     const void *payload, size_t size, mad_async_fn *callback, void *arg,
		     uint64_t *id);

/**
 * Gives a request up: it is called back with -ECANCELED in the next mad_async_process().
 * -ENOENT when it is complete, or never was.
 */
int mad_async_cancel(struct mad_async *async, uint64_t id);

/* --- event loops ---------------------------------------------------------------- */

/*
 * An event loop polls mad_async_poll_fd() for reading, and calls mad_async_process() whenever
 * the descriptor is readable, until mad_async_process() returns an error:
 *
 *   struct pollfd pollfd = {.fd = mad_async_poll_fd(async), .events = POLLIN};
 *   do
 *           poll(&pollfd, 1, -1);
 *   while (mad_async_process(async) >= 0);
 *
 * If mad_async_poll_fd() fails with -EOPNOTSUPP, the loop polls mad_async_fd() and
 * mad_async_wake_fd() for at most mad_async_timeout() milliseconds instead. A program of one
 * thread can do without mad_async_wake_fd().
 *
 * Any number of threads may do so for one engine, and call everything else meanwhile. When the
 * device is gone or the port is closed, the descriptors are readable, the open requests are
 * called back, and then mad_async_process() and mad_async_timeout() return -ENODEV or
 * -ECANCELED.
 */

/**
 * The single descriptor of an event loop: it is readable when mad_async_process() has something
 * to do. It belongs to the engine, which closes it; a child of fork() asks for one of its own.
 *
 * -EOPNOTSUPP if the port handle is not a descriptor of the kernel, but a number of 1024 or
 * more, as simulators have them that are preloaded. -EINVAL, -EMFILE, -ENFILE, -ENOMEM,
 * -ENODEV, -ECANCELED.
 */
int mad_async_poll_fd(struct mad_async *async);

/** The port's handle, as mad_rpc_portid(): readable when a message has come. -EINVAL. */
int mad_async_fd(const struct mad_async *async);

/**
 * A descriptor that is readable when mad_async_process() has something to do for another reason
 * than a message: a timer is due, or another thread has received a response or changed
 * something. It belongs to the engine as mad_async_poll_fd(). The errors are the same but for
 * -EOPNOTSUPP.
 */
int mad_async_wake_fd(struct mad_async *async);

/**
 * Milliseconds until mad_async_process() has something to do, unless a descriptor becomes
 * readable before; 0 at once, -1 never. -EINVAL, -ENODEV, -ECANCELED.
 */
int mad_async_timeout(struct mad_async *async);

/**
 * Does what can be done without waiting, but not more than a part of it: it reads 64 messages,
 * handles 64 timers, sends 64 requests and calls back 64 requests at most. If there is more to
 * do, the descriptors stay readable, and mad_async_timeout() returns 0.
 *
 * Returns how many requests it called back. It calls back none while another thread calls back
 * requests of the engine, or if it is called from a callback. -EINVAL. -ENODEV the device is
 * gone, or -ECANCELED the port is closed, and no request is open; -ECANCELED the engine is
 * being destroyed.
 */
int mad_async_process(struct mad_async *async);

/**
 * Waits and processes until nothing is under way. Returns how many it completed. -EDEADLK
 * from a callback.
 */
int mad_async_run(struct mad_async *async);

/** Counts since the engine was created; under_way, waiting and the windows are now's. */
struct mad_async_stats {
	uint64_t submitted;
	uint64_t completed; /**< of those, in whatever way */
	uint64_t sent;      /**< MADs, again and again included */
	uint64_t retried;   /**< of those, the second and later of a request */
	uint64_t timed_out; /**< requests without an answer */
	uint64_t dropped;   /**< answers on this port that came late, twice or unasked for */
	uint64_t busy;      /**< answers that said BUSY */
	uint32_t under_way; /**< sent, and not called back yet */
	uint32_t waiting;   /**< for their turn */
	uint32_t rtt_min_us;
	uint32_t rtt_mean_us;
	uint32_t rtt_max_us;
	uint32_t smp_window; /**< how many may be under way on the port */
	uint32_t gmp_window;
};

/** size is sizeof(*stats), so that members can be added. -EINVAL. */
int mad_async_get_stats(struct mad_async *async, struct mad_async_stats *stats, size_t size);

/* --- one request of any size, and its answer ------------------------------------ */

/**
 * As mad_rpc(), with a payload of size bytes (by RMPP if one MAD does not hold it) and an
 * answer of any length. 0, and then message->mad is the caller's, to be freed by
 * mad_message_free(); or the negative errno of mad_reply:error, -EINVAL as
 * mad_async_submit(). rpc->rstatus is the answer's status, dport where a redirection led.
 * QP and Q_Key of a GMP may be 0 as for mad_async_submit().
 */
int mad_rpc_message(const struct ibmad_port *port, ib_rpc_t *rpc, ib_portid_t *dport,
		    const void *payload, size_t size, struct mad_message *message);
void mad_message_free(struct mad_message *message);

/* --- options of a port ---------------------------------------------------------- */

/* All return 0 or -EINVAL. Limits and windows hold at once, the others for later requests. */

/** Milliseconds an attempt may take; 0: the process's (madrpc_set_timeout()). */
int mad_port_set_timeout(struct ibmad_port *port, int timeout_ms);
/** Attempts; 0: the process's (madrpc_set_retries()). */
int mad_port_set_retries(struct ibmad_port *port, int retries);
/** The SM_Key of SA requests, as sa_key_set() of mad_sa.h. */
int mad_port_set_sa_key(struct ibmad_port *port, uint64_t sa_key);
/** The entry of the GID table that is the source of requests with a GRH; 0 by default. */
int mad_port_set_gid_index(struct ibmad_port *port, unsigned gid_index);
/** The longest answer that is taken, in bytes, 256 at least; 64 MiB by default. */
int mad_port_set_max_reply(struct ibmad_port *port, size_t bytes);

/** The two kinds of MADs that have a window: by QP0, and by QP1. */
enum mad_window {
	MAD_WINDOW_SMP,
	MAD_WINDOW_GMP
};

/** How many may be under way; 0, the default: as many as the fabric takes without loss. */
int mad_port_set_window(struct ibmad_port *port, enum mad_window window, unsigned requests);
/** How many of them to one destination; 16 by default. */
int mad_port_set_destination_limit(struct ibmad_port *port, unsigned requests);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_ASYNC_H */
