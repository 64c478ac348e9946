/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_async.h - many requests at once on one port: submit requests, be called back for each.
 *
 *   struct mad_async *async = mad_async_create(port);
 *   for each node:
 *           mad_async_submit(async, &rpc, &node->address, NULL, 0, node_info_came, node, NULL);
 *   mad_async_run(async);
 *   mad_async_destroy(async);
 *
 * The library decides how many requests are in flight. A window for SMPs and one for GMPs grow
 * as long as round trips stay short and no queue of the fabric overflows. One request is in
 * flight to a node, or more while its round trips show that no more than one waits there.
 * Requests beyond these limits are queued, those of blocking calls, too. Engines, blocking
 * calls, classes and nodes take turns. docs/flow-control.md tells how this works.
 *
 * Threads. Any number of threads may use a port, and an engine on it, at once, together with
 * the blocking calls of mad.h. Callbacks run in the threads that call mad_async_process(),
 * mad_async_run(), mad_async_wait() and mad_async_destroy(), one at a time for an engine, with
 * no lock held. They may submit, cancel and make blocking calls. They cannot destroy their
 * engine, and must not close its port.
 *
 * Cancellation. While a thread is in a call that waits, sends or calls back, it cannot be
 * cancelled (pthread_cancel(3)): the call ends first. To end the wait of another thread, use
 * mad_async_stop() or mad_async_cancel_all(), or close the port.
 *
 * Signals do not end mad_async_run() or mad_rpc(). A signal handler ends mad_async_run() by
 * mad_async_stop(). One of the threads that wait polls the port for all. mad_receive_via()
 * returns with EINTR only if its thread is that one, which is certain only if no other thread
 * waits.
 *
 * fork(). The child may use the port as its parent may. Both read from one device, so one of
 * them should open a port of its own. Requests of the parent complete in the child with
 * -ECANCELED. A child that is forked in a callback can only exec.
 *
 * Servers (mad_server.h) and notices (mad_notice.h) run on an engine, too. mad_async_process()
 * hands out their requests, and counts them with those that it calls back.
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

/** How a request completed; mad_reply_text() tells it in words. What its pointers point to is
 * freed when the callback returns. */
struct mad_reply {
	/**
	 * 0            a response with status 0
	 * -EIO         a response with another status
	 * -ETIMEDOUT   no response came
	 * -ECANCELED   mad_async_cancel() or mad_async_destroy() was called, the port was
	 *              closed, or the process has forked
	 * -ENODEV      the device is gone
	 * -EMSGSIZE    the response is longer than mad_port_set_max_reply() allows
	 * -ELOOP       the request was redirected too often
	 * -EHOSTUNREACH  the request was redirected to a port to which there is no path
	 * -EOPNOTSUPP  a request of more than one MAD was redirected
	 * -ENOMEM      out of memory
	 * and the errors of umad_send()
	 */
	int error;
	unsigned status;    /**< the MAD's status (IBA 13.4.7), without the direction bit */
	const uint8_t *mad; /**< the whole response, as on the wire; NULL without one */
	size_t length;      /**< of mad, in bytes: 256, or the length of an RMPP message */
	const uint8_t
		*data;    /**< the response's bytes from the request's dataoffs on, or NULL */
	size_t data_size; /**< of data, in bytes */
	unsigned rtt_us;  /**< from the last transmission with the response's ID */
	unsigned transmissions; /**< how often the request was sent */
	unsigned elapsed_ms;    /**< from the first transmission to the completion */
};

/** A response that belongs to the caller of mad_rpc_message(). */
struct mad_message {
	uint8_t *mad;
	size_t length;
	unsigned status;
};

/** Called once for each request. */
typedef void mad_async_fn(struct mad_async *async, const struct mad_reply *reply, void *arg);

/**
 * Creates an engine on an open port. When the port is closed before the engine is destroyed,
 * the open requests complete with -ECANCELED. NULL with errno EINVAL or ENOMEM.
 */
struct mad_async *mad_async_create(struct ibmad_port *port);

/**
 * Destroys an engine. Its open requests are called back with -ECANCELED first. Calls of other
 * threads for the engine return first: mad_async_run() and mad_async_wait() end,
 * mad_async_submit() and mad_async_process() fail with -ECANCELED. The engine's descriptors are
 * closed: no thread may still poll them. NULL is allowed.
 */
void mad_async_destroy(struct mad_async *async);

/**
 * Submits a request, and returns without waiting for the response.
 *
 * rpc and dport are as for mad_rpc(), and are copied; if the class is IB_CC_CLASS, rpc is an
 * ib_rpc_cc_t. size bytes of payload are copied to rpc->dataoffs; payload may be NULL. A
 * payload that does not fit into one MAD is sent by RMPP, if the class was registered with
 * RMPP, and so is every GetMulti of the SA (IBA 15.4.7). rpc->timeout is the time of one
 * attempt in milliseconds, 0 for the port's; the port's retries are the number of attempts.
 * Within an attempt the kernel sends segments of RMPP again that are lost; it waits 2 s before
 * it does.
 * rpc->trid is ignored: the engine chooses a transaction ID, which is the same in all attempts.
 *
 * A GMP, that is, a request of a class other than IB_SMI_CLASS and IB_SMI_DIRECT_CLASS, goes
 * to QP 1 if dport->qp is 0, and with the Q_Key IB_DEFAULT_QP1_QKEY if dport->qkey is 0.
 *
 * *id, unless NULL, identifies the request for mad_async_cancel(). It is not 0, and no later
 * request of the engine has it.
 *
 * If the call fails, the callback is not called:
 * -EINVAL     an argument is wrong
 * -EPROTONOSUPPORT  the class is not registered on the port
 * -EMSGSIZE   neither a MAD nor RMPP can carry the payload
 * -ENOMEM     out of memory
 * -ENODEV     the device is gone
 * -ECANCELED  the port is closed, or the engine is being destroyed
 */
int mad_async_submit(struct mad_async *async, const ib_rpc_t *rpc, const ib_portid_t *dport,
		     const void *payload, size_t size, mad_async_fn *callback, void *arg,
		     uint64_t *id);

/**
 * Cancels a request: it completes with -ECANCELED, and is called back in the next
 * mad_async_process(). -EINVAL. -ENOENT if the request is complete, or never was.
 */
int mad_async_cancel(struct mad_async *async, uint64_t id);

/**
 * Cancels every request that is not complete, as mad_async_cancel() and mad_sa_cancel() do.
 * Requests that are complete are called back with their result. Returns how many requests it
 * cancelled, or -EINVAL.
 */
int mad_async_cancel_all(struct mad_async *async);

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
 * do, the next poll of the event loop returns at once: mad_async_poll_fd() stays readable;
 * mad_async_fd() does if more messages have come; otherwise mad_async_wake_fd() does, and
 * mad_async_timeout() returns 0.
 *
 * Returns how many requests it called back. It calls back none while another thread calls back
 * requests of the engine or is in mad_async_wait(), or if it is called from a callback.
 *
 * -EINVAL. -ENODEV the device is gone, or -ECANCELED the port is closed, and no request is
 * open. -ECANCELED the engine is being destroyed.
 */
int mad_async_process(struct mad_async *async);

/**
 * Waits and processes until no request of the engine is open and the engine has no server
 * (mad_server.h) and no notices (mad_notice.h), but at most timeout_ms milliseconds. If
 * timeout_ms is 0, the call does what can be done without waiting; -1 is no limit. If a
 * callback takes longer, the call returns after the callback.
 *
 * Returns how many callbacks it made; otherwise
 * -ETIMEDOUT  the time is over
 * -EINTR      mad_async_stop() was called
 * -EINVAL     async is NULL
 * -EDEADLK    it was called from a callback
 *
 * After -ETIMEDOUT and -EINTR the open requests stay open, and a later call goes on with them;
 * mad_async_get_stats() tells how many were called back.
 */
int mad_async_wait(struct mad_async *async, int timeout_ms);

/** mad_async_wait() without a limit. */
int mad_async_run(struct mad_async *async);

/**
 * Makes mad_async_run() and mad_async_wait() return -EINTR: the calls that threads are in, or,
 * if there is none, the next call. So a stop between a check of the caller and its call is not
 * lost. After a stop no callback begins; one that runs ends first. Several stops before such a
 * call returns are one. mad_async_process() takes no notice of it.
 *
 * Async-signal-safe, and for any thread. The call returns at once, or, if the port handle is a
 * number of 1024 or more (see mad_async_poll_fd()), within 100 ms. The engine must not be
 * destroyed before mad_async_stop() has returned. NULL is allowed.
 */
void mad_async_stop(struct mad_async *async);

/** What the flow control of a port does, of all its requests by one queue pair. */
struct mad_flow_stats {
	uint32_t window;          /**< how many requests may be in flight */
	uint32_t in_flight;       /**< requests whose response is neither there nor late */
	uint32_t rtt_shortest_us; /**< the shortest round trip of the last 5 to 10 s; 0: none */
	uint32_t rtt_smoothed_us; /**< the smoothed round trip; 0: none */
	uint32_t delivery_rate;   /**< responses a second, in the latest round */
	uint32_t link_loss_ppm;   /**< MADs in a million that are late whatever the window is */
	uint32_t silent;          /**< 1: nothing responds, and few MADs are sent to probe */
	uint32_t reserved;
	uint64_t queue_losses; /**< late MADs that were judged lost by a full queue */
	uint64_t link_losses;  /**< late MADs that were judged lost by links, or sent to nodes
				  that are slow or dead */
};

/** Counts since the engine was created; in_flight, queued and the windows are the present
 * state. */
struct mad_async_stats {
	uint64_t submitted; /**< requests */
	uint64_t completed; /**< requests that were called back */
	uint64_t sent;      /**< MADs */
	uint64_t retried;   /**< MADs that were not the first of their request */
	uint64_t timed_out; /**< requests without a response */
	uint64_t dropped; /**< messages on this port: late, repeated or unexpected responses */
	uint64_t busy;    /**< responses with status BUSY */
	uint32_t in_flight;  /**< requests that were sent, and not called back */
	uint32_t queued;     /**< requests that are queued */
	uint32_t rtt_min_us; /**< round-trip times */
	uint32_t rtt_mean_us;
	uint32_t rtt_max_us;
	uint32_t smp_window; /**< how many requests may be in flight on the port */
	uint32_t gmp_window;
	struct mad_flow_stats smp; /**< flow control of SMPs, on the port */
	struct mad_flow_stats gmp; /**< flow control of GMPs, on the port */
};

/** size is sizeof(*stats), so that members can be added. -EINVAL. */
int mad_async_get_stats(struct mad_async *async, struct mad_async_stats *stats, size_t size);

/* --- one request of any size, and its response ---------------------------------- */

/**
 * As mad_rpc(), with a payload of size bytes (sent by RMPP if one MAD does not hold it) and a
 * response of any length. QP and Q_Key of a GMP may be 0 as for mad_async_submit().
 *
 * Returns 0, and the caller frees the message by mad_message_free(); or -EINVAL,
 * -EPROTONOSUPPORT if the class is not registered on the port, or a negative errno of
 * mad_reply:error. rpc->rstatus becomes the response's status, dport the port that the
 * request was redirected to.
 */
int mad_rpc_message(const struct ibmad_port *port, ib_rpc_t *rpc, ib_portid_t *dport,
		    const void *payload, size_t size, struct mad_message *message);
void mad_message_free(struct mad_message *message);

/* --- options of a port ---------------------------------------------------------- */

/*
 * All return 0 or -EINVAL. Windows and limits hold at once, for queued requests, too; the other
 * options hold for later requests.
 */

/** Milliseconds that an attempt may take; 0: the process's (madrpc_set_timeout()). */
int mad_port_set_timeout(struct ibmad_port *port, int timeout_ms);
/** The number of attempts; 0: the process's (madrpc_set_retries()). */
int mad_port_set_retries(struct ibmad_port *port, int retries);
/** The SM_Key of SA requests, as sa_key_set() of mad_sa.h. */
int mad_port_set_sa_key(struct ibmad_port *port, uint64_t sa_key);
/** The entry of the GID table that is the source of requests with a GRH; 0 by default. */
int mad_port_set_gid_index(struct ibmad_port *port, unsigned gid_index);
/** The longest response that is accepted, in bytes, 256 at least; 64 MiB by default. */
int mad_port_set_max_reply(struct ibmad_port *port, size_t bytes);

/** The two kinds of MADs that have a window: SMPs, by QP0, and GMPs, by QP1. */
enum mad_window {
	MAD_WINDOW_SMP,
	MAD_WINDOW_GMP
};

/**
 * How many requests may be in flight, those of blocking calls included; 0, the default: as many
 * as the fabric takes. A request whose response is late is not counted.
 */
int mad_port_set_window(struct ibmad_port *port, enum mad_window window, unsigned requests);
/**
 * How many requests may be in flight to one node, SMPs and GMPs each; 0, the default: one, or
 * more while its round trips show that it takes more.
 */
int mad_port_set_destination_limit(struct ibmad_port *port, unsigned requests);
/**
 * How many requests are sent a second at most, retransmissions and blocking calls included, in
 * bursts of a millisecond; 0, the default: no limit.
 */
int mad_port_set_rate(struct ibmad_port *port, unsigned requests);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_ASYNC_H */
