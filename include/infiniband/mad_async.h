/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_async.h - many requests at once on one port: submit, and be called back for each.
 *
 *   static void show(struct mad_async *async, const struct mad_reply *reply, void *arg)
 *   {
 *           if (!reply->error)
 *                   printf("%s\n", (const char *)reply->data);
 *   }
 *
 *   struct mad_async *async = mad_async_create(port);
 *
 *   for (unsigned lid = 1; lid <= 1000; lid++) {
 *           ib_portid_t node = {.lid = lid};
 *
 *           mad_async_get(async, &node, MAD_NODE_DESCRIPTION, 0, show, NULL, NULL);
 *   }
 *   mad_async_wait(async, -1);
 *   mad_async_free(async);
 *
 * The library decides how many requests are in flight, so that no queue of the fabric overflows
 * (docs/flow-control.md); the others are queued.
 *
 * Threads: any number may use a port, its engines and the blocking calls at once. Callbacks run
 * in the threads that call mad_async_process(), mad_async_wait() or mad_async_free(), one at a
 * time for an engine, with no lock held. They may make any call but free their engine or close
 * its port. No call calls back before it returns, unless another thread processes the engine.
 * Signals, pthread_cancel(3) and fork(2): mad_async_create(3).
 *
 * Calls return 0 or more, or a negative errno, which mad_failure_text() puts in words.
 */
#ifndef INFINIBAND_MAD_ASYNC_H
#define INFINIBAND_MAD_ASYNC_H

#include <errno.h>
#include <infiniband/mad_port.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- requests --------------------------------------------------------------------- */

struct mad_async;

/** The result of a request; valid during the callback. Members may be added. */
struct mad_reply {
	/**
	 * 0            a response with status 0
	 * -EIO         a response with another status
	 * -ETIMEDOUT   no response
	 * -ECANCELED   cancelled, engine freed, port closed, or a child of fork(2)
	 * -ENODEV      the device is gone
	 * -EMSGSIZE    the response is longer than MAD_PORT_MAX_RESPONSE
	 * -EBADMSG     an RMPP response shorter than announced
	 * -ELOOP, -EHOSTUNREACH, -EOPNOTSUPP, -EMFILE, -ENFILE  a redirection failed
	 * -ENOMEM, and the errors of umad_send()
	 */
	int error;
	unsigned status;     /**< of the response (IBA 13.4.7), without the direction bit */
	const uint8_t *mad;  /**< the whole response, as on the wire; or NULL */
	size_t length;       /**< of mad: 256, or the length of an RMPP message */
	const uint8_t *data; /**< the attribute: mad from the request's dataoffs on; or NULL */
	size_t data_size;    /**< of data */
	unsigned rtt_us;     /**< from the last transmission; UINT32_MAX: more */
	unsigned transmissions;
	unsigned elapsed_ms; /**< from the first transmission to the completion */
};

/** Called once for each request. */
typedef void mad_async_fn(struct mad_async *async, const struct mad_reply *reply, void *arg);

/** Creates an engine on an open port. NULL with errno: EINVAL, ENOMEM, ECANCELED. */
struct mad_async *mad_async_create(struct ibmad_port *port);

/**
 * Cancels what is in flight, makes the last callbacks, and frees the engine; calls of other
 * threads for it return first. NULL is a no-op, as is a call from a callback of the engine.
 */
void mad_async_free(struct mad_async *async);

/** Attributes for mad_async_get(): the management class and the AttributeID (IBA 14.2.5,
 * 16.1.3, 16.1.4). */
#define MAD_ATTRIBUTE(mgmt_class, attribute) ((unsigned)(mgmt_class) << 16 | (attribute))
enum mad_attribute {
	MAD_NODE_DESCRIPTION = MAD_ATTRIBUTE(IB_SMI_CLASS, IB_ATTR_NODE_DESC),
	MAD_NODE_INFO = MAD_ATTRIBUTE(IB_SMI_CLASS, IB_ATTR_NODE_INFO),
	MAD_SWITCH_INFO = MAD_ATTRIBUTE(IB_SMI_CLASS, IB_ATTR_SWITCH_INFO),
	MAD_GUID_INFO = MAD_ATTRIBUTE(IB_SMI_CLASS, IB_ATTR_GUID_INFO),
	MAD_PORT_INFO = MAD_ATTRIBUTE(IB_SMI_CLASS, IB_ATTR_PORT_INFO),
	MAD_PKEY_TABLE = MAD_ATTRIBUTE(IB_SMI_CLASS, IB_ATTR_PKEY_TBL),
	MAD_SL_TO_VL_TABLE = MAD_ATTRIBUTE(IB_SMI_CLASS, IB_ATTR_SLVL_TABLE),
	MAD_VL_ARBITRATION_TABLE = MAD_ATTRIBUTE(IB_SMI_CLASS, IB_ATTR_VL_ARBITRATION),
	MAD_LINEAR_FORWARDING_TABLE = MAD_ATTRIBUTE(IB_SMI_CLASS, IB_ATTR_LINEARFORWTBL),
	MAD_MULTICAST_FORWARDING_TABLE = MAD_ATTRIBUTE(IB_SMI_CLASS, IB_ATTR_MULTICASTFORWTBL),
	MAD_SM_INFO = MAD_ATTRIBUTE(IB_SMI_CLASS, IB_ATTR_SMINFO),
	MAD_PORT_INFO_EXTENDED = MAD_ATTRIBUTE(IB_SMI_CLASS, IB_ATTR_PORT_INFO_EXT),
	MAD_MLNX_EXT_PORT_INFO = MAD_ATTRIBUTE(IB_SMI_CLASS, IB_ATTR_MLNX_EXT_PORT_INFO),
	MAD_PMA_CLASS_PORT_INFO = MAD_ATTRIBUTE(IB_PERFORMANCE_CLASS, CLASS_PORT_INFO),
	MAD_PORT_SAMPLES_CONTROL =
		MAD_ATTRIBUTE(IB_PERFORMANCE_CLASS, IB_GSI_PORT_SAMPLES_CONTROL),
	MAD_PORT_COUNTERS = MAD_ATTRIBUTE(IB_PERFORMANCE_CLASS, IB_GSI_PORT_COUNTERS),
	MAD_PORT_RCV_ERROR_DETAILS =
		MAD_ATTRIBUTE(IB_PERFORMANCE_CLASS, IB_GSI_PORT_RCV_ERROR_DETAILS),
	MAD_PORT_XMIT_DISCARD_DETAILS =
		MAD_ATTRIBUTE(IB_PERFORMANCE_CLASS, IB_GSI_PORT_XMIT_DISCARD_DETAILS),
	MAD_PORT_COUNTERS_EXTENDED =
		MAD_ATTRIBUTE(IB_PERFORMANCE_CLASS, IB_GSI_PORT_COUNTERS_EXT),
	MAD_PORT_EXTENDED_SPEEDS_COUNTERS =
		MAD_ATTRIBUTE(IB_PERFORMANCE_CLASS, IB_GSI_PORT_EXT_SPEEDS_COUNTERS)
};

/**
 * Submits a Get of a standard attribute: class, method, offset and size follow from it, and the
 * M_Key is that of the port. modifier is the AttributeModifier of an SMP (PortInfo: the port),
 * and PortSelect of a performance attribute. dport is as for smp_query_via() and
 * pma_query_via(); an attribute that is not listed is MAD_ATTRIBUTE(class, id) of these two
 * classes. reply->data has 64 bytes of an SMP, 192 of a performance attribute. The rest is as
 * for mad_async_submit().
 */
int mad_async_get(struct mad_async *async, const ib_portid_t *dport, unsigned attribute,
		  unsigned modifier, mad_async_fn *callback, void *arg, uint64_t *id);

/**
 * Submits any request, and does not wait. rpc and dport are as for mad_rpc() and are copied, as
 * are the size bytes of payload (NULL: none), which go to rpc->dataoffs; long ones go by RMPP.
 * rpc->timeout 0 is the port's, rpc->trid is ignored, QP and Q_Key 0 of a GMP have their
 * defaults. *id (unless NULL) becomes a number for mad_async_cancel(), never 0. Returns 0, or,
 * with no callback, -EINVAL, -EPROTONOSUPPORT (class not registered), -EMSGSIZE, -ENOMEM,
 * -ENODEV or -ECANCELED.
 */
int mad_async_submit(struct mad_async *async, const ib_rpc_t *rpc, const ib_portid_t *dport,
		     const void *payload, size_t size, mad_async_fn *callback, void *arg,
		     uint64_t *id);

/** The id of everything that is in flight on an engine. */
#define MAD_ASYNC_ALL UINT64_MAX

/**
 * Cancels a request, an SA request, a reading, a discovery: its callback comes once, later,
 * with -ECANCELED. Any thread and any callback may call it. -ENOENT: it is complete, cancelled,
 * or does not exist (not with MAD_ASYNC_ALL).
 */
int mad_async_cancel(struct mad_async *async, uint64_t id);

/* --- event loops ------------------------------------------------------------------ */

/**
 * The descriptor of an event loop: readable when mad_async_process() has something to do, also
 * after the device is gone or the port closed. It belongs to the engine.
 *
 *   struct pollfd pollfd = {.fd = mad_async_poll_fd(async), .events = POLLIN};
 *   do
 *           poll(&pollfd, 1, -1);
 *   while (mad_async_process(async) >= 0);
 *
 * Any number of threads and engines of a port may have such a loop. A child of fork(2) asks for
 * its own descriptor. -EMFILE, -ENFILE, -ENOMEM, -ECANCELED.
 */
int mad_async_poll_fd(struct mad_async *async);

/**
 * Does a limited part of the work (64 messages, timers, requests, callbacks each), and does not
 * wait; the descriptor stays readable if work is left. Returns the number of callbacks, or
 * -ENODEV or -ECANCELED when the device is gone or the port closed and all callbacks were made.
 */
int mad_async_process(struct mad_async *async);

/**
 * Processes until nothing is in flight and no server, membership or notices are left, for at
 * most timeout_ms milliseconds (-1: no limit). Returns the number of callbacks, -ETIMEDOUT,
 * -EINTR after mad_async_stop(), or -EDEADLK in a callback. Signals do not end it.
 */
int mad_async_wait(struct mad_async *async, int timeout_ms);

/**
 * Makes mad_async_wait() return -EINTR at once: in all threads that are in it, or the next call
 * if there is none. Cancels nothing. Async-signal-safe, for any thread.
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

/** Fills in size bytes, sizeof(*stats). */
int mad_async_get_stats(struct mad_async *async, struct mad_async_stats *stats, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_ASYNC_H */
