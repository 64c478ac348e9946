/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_async.h - many requests at once on one port: submit requests, be called back for each.
 *
 *   struct mad_async *async = mad_async_create(port);
 *   for each node:
 *           mad_async_submit(async, &rpc, &node->address, NULL, 0, node_info_came, node, NULL);
 *   mad_async_wait(async, -1);
 *   mad_async_free(async);
 *
 * The library decides how many requests are in flight. A port has a window for SMPs and a
 * window for GMPs, which grow while that raises the rate of the responses and no queue of the
 * fabric overflows. One request is in flight to a node at first. More requests may be in flight
 * if the round trips show that at most one request waits at the node. Other requests are
 * queued, also those of blocking calls. Engines, blocking calls, classes and nodes take turns.
 * docs/flow-control.md describes the rules.
 *
 * Memory. mad_async_free() frees an engine and closes its descriptors. The engine copies a
 * request and its data when the request is submitted. A reply and its data are freed when the
 * callback returns. mad_message_free() frees the message of mad_rpc_message(). If the port is
 * closed before its engines are destroyed, their requests complete with -ECANCELED.
 *
 * Threads. Any number of threads may use a port at once, with several engines, with one engine,
 * and with the blocking calls of mad.h. Callbacks run in the threads that call
 * mad_async_process(), mad_async_wait(), mad_async_wait() and mad_async_free(), with no lock
 * held. An engine runs one callback at a time. A callback may submit and cancel requests, and
 * make blocking calls. A callback cannot destroy its engine, and must not close its port.
 *
 * Cancellation. A thread cannot be cancelled (pthread_cancel(3)) while it is in a call for a
 * port: the cancellation takes effect after the call has returned. To end the wait of another
 * thread, use mad_async_stop() or mad_async_cancel(), or close the port.
 *
 * Signals do not end mad_async_wait() or mad_rpc(). A signal handler ends mad_async_wait() by
 * mad_async_stop(). While several threads wait, one thread polls the port for all of them. A
 * signal ends mad_receive_via() with EINTR only in the thread that polls. So a signal certainly
 * ends mad_receive_via() only if no other thread waits.
 *
 * fork(). If another thread of the parent is in a call for a port, the port is lost in the
 * child: calls for the port and its engines fail at once with -ECANCELED (errno ECANCELED).
 * mad_async_free() does nothing, and mad_rpc_close_port() closes the device and frees no
 * memory. Otherwise the child may use the port as its parent may, and requests of the parent
 * complete in the child with -ECANCELED. Both read from one device, so the child should open
 * another port, which is never lost. A child that is forked in a callback continues the call
 * that called back.
 *
 * Servers (mad_server.h) and notices (mad_notice.h) run on an engine, too. mad_async_process()
 * calls their callbacks, and counts these calls in its result.
 *
 * Calls return 0 or more, or a negative errno.
 */
#ifndef INFINIBAND_MAD_ASYNC_H
#define INFINIBAND_MAD_ASYNC_H

#include <errno.h>
#include <infiniband/mad_port.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- requests ------------------------------------------------------------------- */

struct mad_async;

/** The result of a request; mad_reply_text() returns it in words. The memory that its pointers
 * point to is freed when the callback returns. */
struct mad_reply {
	/**
	 * 0            a response with status 0
	 * -EIO         a response with another status
	 * -ETIMEDOUT   no response came
	 * -ECANCELED   mad_async_cancel() or mad_async_free() was called, the port was
	 *              closed, or the process has forked
	 * -ENODEV      the device is gone
	 * -EMSGSIZE    the response is longer than mad_port_set_max_reply() allows
	 * -EBADMSG     the response is an RMPP message that is shorter than it announced
	 * -ELOOP       the request was redirected too often
	 * -EHOSTUNREACH  the request was redirected to a port, and the SA knows no path to it
	 * -EHOSTUNREACH  the request was redirected to a LID that is not unicast
	 * -EOPNOTSUPP  a request of more than one MAD was redirected
	 * -EMFILE, -ENFILE  the request was redirected to a GID, and no descriptor is free to
	 *              read the address of the SA
	 * -ENOMEM      out of memory
	 * and the errors of umad_send()
	 */
	int error;
	unsigned status;    /**< of the response (IBA 13.4.7), without the direction bit */
	const uint8_t *mad; /**< the whole response, as on the wire; NULL without a response */
	size_t length;      /**< of mad, in bytes: 256, or the length of an RMPP message */
	const uint8_t
		*data;    /**< the response's bytes from the request's dataoffs on, or NULL */
	size_t data_size; /**< of data, in bytes */
	/** Microseconds from the last transmission with the response's ID; UINT32_MAX: more. */
	unsigned rtt_us;
	unsigned transmissions; /**< of the request */
	unsigned elapsed_ms;    /**< from the first transmission to the completion */
};

/** Called once for each request. */
typedef void mad_async_fn(struct mad_async *async, const struct mad_reply *reply, void *arg);

/**
 * Creates an engine on an open port. If the port is closed before the engine is destroyed, the
 * engine's requests complete with -ECANCELED. If the call fails, it returns NULL with errno:
 * EINVAL     port is NULL
 * ENOMEM     out of memory
 * ECANCELED  the port is lost in a child of fork()
 */
struct mad_async *mad_async_create(struct ibmad_port *port);

/**
 * Destroys an engine. Before that, requests that are not complete are called back with
 * -ECANCELED, and calls of other threads for the engine return: mad_async_wait() and
 * mad_async_wait() end, mad_async_submit() and mad_async_process() fail with -ECANCELED. The
 * engine's descriptors are closed: no thread may poll them any more. NULL is allowed.
 */
void mad_async_free(struct mad_async *async);

/**
 * Submits a request, and returns without waiting for the response.
 *
 * rpc and dport are as for mad_rpc(), and are copied. If the class is IB_CC_CLASS, rpc is an
 * ib_rpc_cc_t. payload has size bytes, which are copied to rpc->dataoffs of the MAD; it may be
 * NULL. If the class was registered with RMPP, a payload that does not fit into one MAD is sent
 * by RMPP, and every GetMulti of the SA (IBA 15.4.7) is sent by RMPP. Within an attempt, the
 * kernel sends a lost segment again after 2 s.
 *
 * rpc->timeout is the time of one attempt in milliseconds; 0 stands for the timeout of the
 * port. The number of attempts is that of the port. rpc->trid is ignored: the engine chooses
 * the transaction ID. The first transmission of each attempt has the same ID, except if the
 * kernel still holds the ID.
 *
 * A request that is never answered fails with -ETIMEDOUT after its first transmission within
 * the number of attempts times the timeout, a seventh more, and 20 ms for each attempt (3 x 1
 * s: 3.49 s), also if the port is unplugged and 1,000 requests are open. If a retransmission
 * must wait for longer, the request is sent less often. A redirection begins this time again.
 *
 * A GMP is a request of a class other than IB_SMI_CLASS and IB_SMI_DIRECT_CLASS. If dport->qp
 * is 0, a GMP is sent to QP 1. If dport->qkey is 0, a GMP has the Q_Key IB_DEFAULT_QP1_QKEY.
 *
 * If id is not NULL, *id becomes the number of the request, for mad_async_cancel(). The number
 * is not 0, and no later request of the engine has the same number.
 *
 * If the call fails, the callback is not called:
 * -EINVAL     an argument is wrong
 * -EPROTONOSUPPORT  the class is not registered on the port
 * -EMSGSIZE   neither a MAD nor RMPP can carry the payload
 * -ENOMEM     out of memory
 * -ENODEV     the device is gone
 * -ECANCELED  the port is closed, the engine is being destroyed, or the port is lost in a child
 *             of fork()
 */
int mad_async_submit(struct mad_async *async, const ib_rpc_t *rpc, const ib_portid_t *dport,
		     const void *payload, size_t size, mad_async_fn *callback, void *arg,
		     uint64_t *id);

/** The id of everything that is in flight on an engine. */
#define MAD_ASYNC_ALL UINT64_MAX

/**
 * Cancels what has the number id, or everything in flight (MAD_ASYNC_ALL): its callback comes
 * once, later, with -ECANCELED. Any thread and any callback may call it.
 *
 * -EINVAL     async is NULL
 * -ENOENT     it is complete, or does not exist; not with MAD_ASYNC_ALL
 * -ECANCELED  the port is lost in a child of fork()
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
 * If mad_async_poll_fd() fails with -EOPNOTSUPP, the loop polls mad_async_port_fd() and
 * mad_async_wake_fd() for at most mad_async_timeout_ms() milliseconds instead. A program with
 * one thread does not need mad_async_wake_fd().
 *
 * Any number of threads may have such a loop for one engine, and make other calls meanwhile.
 * Several engines of a port may have loops, too. Then a message wakes one loop, whose
 * mad_async_process() wakes the loop of the engine that the message is for. So a loop calls
 * mad_async_process() whenever its descriptor is readable, even if its engine has no request.
 * While a loop is busy elsewhere, other loops with requests look for messages every 20 ms. A
 * loop that polls mad_async_port_fd() itself is woken by each message.
 *
 * When the device is gone or the port is closed, the descriptors are readable, and all requests
 * are called back. Then mad_async_process() and mad_async_timeout_ms() return -ENODEV or
 * -ECANCELED.
 */

/**
 * The single descriptor of an event loop: it is readable when mad_async_process() has something
 * to do. It belongs to the engine, which closes it. A child of fork() calls the function again,
 * and gets another descriptor.
 *
 * -EOPNOTSUPP  the port handle is not a descriptor of the kernel, but a number of a simulator
 *              that is preloaded
 * -EINVAL      async is NULL
 * -EMFILE      no descriptor is left in the process
 * -ENFILE      no descriptor is left in the system
 * -ENOMEM      out of memory
 * -ECANCELED   the port is closed, the engine is being destroyed, or the port is lost in a
 *              child of fork()
 */
int mad_async_poll_fd(struct mad_async *async);

/**
 * The port's handle, as mad_rpc_portid() returns it: readable when a message has come.
 * -EINVAL  async is NULL
 */
int mad_async_port_fd(const struct mad_async *async);

/**
 * A descriptor that is readable when mad_async_process() has something to do for another reason
 * than a message: a timer is due, or another thread has received a response or changed the
 * state of the engine. The descriptor belongs to the engine. The errors are those of
 * mad_async_poll_fd(), except -EOPNOTSUPP.
 */
int mad_async_wake_fd(struct mad_async *async);

/**
 * Milliseconds until mad_async_process() has something to do, unless a descriptor becomes
 * readable before; 0: at once, -1: never.
 *
 * -EINVAL     async is NULL
 * -ENODEV     the device is gone, and all requests were called back
 * -ECANCELED  the port is closed, and all requests were called back; or the port is lost in a
 *             child of fork()
 */
int mad_async_timeout_ms(struct mad_async *async);

/**
 * Does a limited part of the work, and does not wait: it reads 64 messages, handles 64 timers,
 * sends 64 requests and calls back 64 requests at most. If more work is left, the next poll of
 * the event loop returns at once: mad_async_poll_fd() stays readable. mad_async_port_fd() stays
 * readable if more messages have come. Otherwise mad_async_wake_fd() stays readable, and
 * mad_async_timeout_ms() returns 0.
 *
 * Returns the number of requests that it called back. The number is 0 in a callback, and while
 * another thread calls back requests of the engine or is in mad_async_wait().
 *
 * -EINVAL     async is NULL
 * -ENODEV     the device is gone, and all requests were called back
 * -ECANCELED  the port is closed, and all requests were called back; or the engine is being
 *             destroyed; or the port is lost in a child of fork()
 */
int mad_async_process(struct mad_async *async);

/**
 * Waits and processes until all requests of the engine are complete and the engine has no
 * server (mad_server.h) and no notices (mad_notice.h), but at most timeout_ms milliseconds. If
 * timeout_ms is 0, the call does not wait; -1 is no limit. If a callback takes longer, the call
 * returns after the callback.
 *
 * Returns the number of callbacks that it made, or
 * -ETIMEDOUT  the time is over
 * -EINTR      mad_async_stop() was called
 * -EINVAL     async is NULL
 * -EDEADLK    it was called from a callback
 * -ECANCELED  the port is lost in a child of fork()
 *
 * After -ETIMEDOUT and -EINTR no request is cancelled, and a later call continues with the
 * requests.
 * mad_async_get_stats() has the number of requests that were called back.
 */
int mad_async_wait(struct mad_async *async, int timeout_ms);

/**
 * Makes mad_async_wait() and mad_async_wait() return -EINTR. It stops the calls that threads
 * are in. If no thread is in such a call, it stops the next call, so that a stop immediately
 * before the call is not lost. After a stop no callback begins. A callback that runs ends
 * first. Several stops before such a call returns count as one. A stop has no effect on
 * mad_async_process().
 *
 * Async-signal-safe, and for any thread. The stopped call returns at once. If the port handle
 * is a number of a simulator (see mad_async_poll_fd()), it returns within 100 ms. The engine
 * must not be destroyed before mad_async_stop() has returned. NULL is allowed.
 */
void mad_async_stop(struct mad_async *async);

/* --- statistics ----------------------------------------------------------------- */

/** Statistics of the flow control, for all requests of a port by one queue pair. */
struct mad_flow_stats {
	uint32_t window;          /**< the number of requests that may be in flight */
	uint32_t in_flight;       /**< requests in flight, without those that are late */
	uint32_t rtt_shortest_us; /**< the shortest round trip of the latest MADs; 0: none */
	uint32_t rtt_smoothed_us; /**< the usual one: three in four are shorter; 0: none */
	uint32_t delivery_rate;   /**< responses per second, of the latest MADs */
	uint32_t link_loss_ppm;   /**< MADs in a million that are lost, not due to the window */
	uint32_t silent;          /**< 1: nothing responds, and few MADs are sent to probe */
	uint32_t reserved;
	uint64_t queue_losses; /**< lost MADs that were attributed to a full queue */
	uint64_t link_losses;  /**< lost MADs that were attributed to links */
};

/** Counts since the engine was created; in_flight, queued and the windows are the present
 * state. */
struct mad_async_stats {
	uint64_t submitted; /**< requests */
	uint64_t completed; /**< requests that were called back */
	/** MADs. A MAD that the kernel refused, and that was sent with another transaction ID,
	 * counts once. */
	uint64_t sent;
	uint64_t retried;   /**< MADs that were not the first of their request */
	uint64_t timed_out; /**< requests without a response */
	uint64_t dropped; /**< messages on this port: late, repeated or unexpected responses */
	uint64_t busy;    /**< responses with status BUSY */
	uint32_t in_flight;  /**< requests that were sent, and not called back */
	uint32_t queued;     /**< requests that were never sent, and not called back */
	uint32_t rtt_min_us; /**< round-trip times */
	uint32_t rtt_mean_us;
	uint32_t rtt_max_us;
	struct mad_flow_stats smp; /**< flow control of SMPs, on the port */
	struct mad_flow_stats gmp; /**< flow control of GMPs, on the port */
	/** messages that were dropped on this port: responses with the transaction ID of a
	 * request, but of another attribute, method, path or sender */
	uint64_t mismatched;
};

/**
 * size is sizeof(*stats), so that members can be added.
 *
 * -EINVAL     an argument is NULL
 * -ECANCELED  the port is lost in a child of fork()
 */
int mad_async_get_stats(struct mad_async *async, struct mad_async_stats *stats, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_ASYNC_H */
