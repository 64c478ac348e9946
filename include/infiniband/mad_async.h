/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_async.h - many requests at once on one port, with a callback for each.
 *
 *   static void show(struct mad_async *async, const struct mad_reply *reply, void *arg)
 *   {
 *           if (!reply->error)
 *                   printf("%s\n", (const char *)reply->data);
 *   }
 *   ...
 *   for (node.lid = 1; node.lid <= 1000; node.lid++)
 *           mad_async_get(async, &node, MAD_NODE_DESCRIPTION, 0, show, NULL, NULL);
 *   mad_async_wait(async, -1);
 *
 * The library limits how many requests are in flight, so that no queue of the fabric overflows,
 * and queues the others (docs/flow-control.md).
 *
 * Any number of threads may use an engine. Callbacks run in mad_async_process(),
 * mad_async_wait() and mad_async_free(), one at a time per engine, with no lock held; they may
 * make any call except to free their engine or close its port. Calls return 0 or more, or a
 * negative errno (mad_errors.h). Signals, pthread_cancel(3) and fork(2): see
 * mad_async_create(3).
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

/** The result of a request, valid during the callback. Members may be added. */
struct mad_reply {
	/**
	 * 0, or -EIO (see status), -ETIMEDOUT, -ECANCELED, -ENODEV, -EMSGSIZE
	 * (MAD_PORT_MAX_RESPONSE), -EBADMSG (RMPP response too short), -ENOMEM, an error of
	 * umad_send(), or, after a redirection, -ELOOP, -EHOSTUNREACH, -EOPNOTSUPP, -EMFILE or
	 * -ENFILE
	 */
	int error;
	unsigned status;     /**< MAD status (IBA 13.4.7) without direction bit */
	const uint8_t *mad;  /**< the whole response as on the wire, or NULL */
	size_t length;       /**< of mad; 256 unless RMPP */
	const uint8_t *data; /**< mad + dataoffs of the request, or NULL */
	size_t data_size;
	unsigned rtt_us; /**< since the last transmission; UINT32_MAX: longer */
	unsigned transmissions;
	unsigned elapsed_ms; /**< from first transmission to completion */
};

/** Called once per request. */
typedef void mad_async_fn(struct mad_async *async, const struct mad_reply *reply, void *arg);

/** Creates an engine on a port. NULL with errno EINVAL, ENOMEM or ECANCELED. */
struct mad_async *mad_async_create(struct ibmad_port *port);

/** Cancels everything, makes the last callbacks and frees the engine. NULL is a no-op. */
void mad_async_free(struct mad_async *async);

/** Attributes for mad_async_get(), with their class (IBA 14.2.5, 16.1.3, 16.1.4). */
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
 * Submits a Get of a standard attribute, or another MAD_ATTRIBUTE() of these two classes.
 * modifier is the AttributeModifier of an SMP (for PortInfo the port) or the PortSelect of a
 * performance attribute; dport is as for smp_query_via() and pma_query_via(). reply->data has
 * 64 bytes of an SMP, 192 of a performance attribute. The rest is as for mad_async_submit().
 */
int mad_async_get(struct mad_async *async, const ib_portid_t *dport, unsigned attribute,
		  unsigned modifier, mad_async_fn *callback, void *arg, uint64_t *id);

/**
 * Submits any request without waiting; rpc, dport and payload (or NULL) are copied. rpc and
 * dport are as for mad_rpc(), but rpc->trid is ignored. payload goes to rpc->dataoffs, by RMPP
 * if long. *id, unless NULL, is for mad_async_cancel(), never 0. If the call fails, there is no
 * callback.
 */
int mad_async_submit(struct mad_async *async, const ib_rpc_t *rpc, const ib_portid_t *dport,
		     const void *payload, size_t size, mad_async_fn *callback, void *arg,
		     uint64_t *id);

/** For mad_async_cancel(): everything in flight on an engine. */
#define MAD_ASYNC_ALL UINT64_MAX

/** Cancels by id: the callback comes later, with -ECANCELED. -ENOENT if id is not in flight. */
int mad_async_cancel(struct mad_async *async, uint64_t id);

/* --- event loops and statistics ---------------------------------------------------- */

/**
 * Returns the engine's descriptor for event loops, readable when mad_async_process() has work.
 *
 *   struct pollfd pollfd = {.fd = mad_async_poll_fd(async), .events = POLLIN};
 *   do
 *           poll(&pollfd, 1, -1);
 *   while (mad_async_process(async) >= 0);
 *
 * Threads and engines may share a port. A child of fork(2) must call this again.
 */
int mad_async_poll_fd(struct mad_async *async);

/** Does not wait. Returns the number of callbacks, or at the end -ENODEV or -ECANCELED. */
int mad_async_process(struct mad_async *async);

/**
 * Processes until nothing is in flight and no server, membership or notices are left, or for
 * timeout_ms (-1: no limit). Returns the number of callbacks, -ETIMEDOUT, -EINTR after
 * mad_async_stop(), or -EDEADLK in a callback. Signals do not interrupt it.
 */
int mad_async_wait(struct mad_async *async, int timeout_ms);

/** Makes mad_async_wait(), current or else next, return -EINTR. Async-signal-safe. */
void mad_async_stop(struct mad_async *async);

/** Flow control of a port's SMPs or GMPs. */
struct mad_flow_stats {
	uint32_t window;          /**< requests that may be in flight */
	uint32_t in_flight;       /**< without late ones */
	uint32_t rtt_shortest_us; /**< recent minimum; 0: none */
	uint32_t rtt_smoothed_us; /**< third quartile; 0: none */
	uint32_t delivery_rate;   /**< recent responses per second */
	uint32_t link_loss_ppm;   /**< recent MADs per million lost on links */
	uint32_t silent;          /**< 1: nothing responds, only probing */
	uint32_t reserved;
	uint64_t queue_losses; /**< lost MADs attributed to a full queue */
	uint64_t link_losses;  /**< lost MADs attributed to links */
};

/** Counts since the engine was created, except in_flight, queued and the windows. */
struct mad_async_stats {
	uint64_t submitted;
	uint64_t completed; /**< called back */
	/** MADs; one that the kernel refused and that was sent with another TID counts once */
	uint64_t sent;
	uint64_t retried;   /**< MADs other than a request's first */
	uint64_t timed_out; /**< requests without a response */
	uint64_t dropped;   /**< responses on the port: late, duplicate or unexpected */
	uint64_t busy;      /**< responses with status BUSY */
	uint32_t in_flight;
	uint32_t queued; /**< requests not sent yet */
	uint32_t rtt_min_us;
	uint32_t rtt_mean_us;
	uint32_t rtt_max_us;
	struct mad_flow_stats smp; /**< flow control of the port */
	struct mad_flow_stats gmp;
	/** dropped: TID matched, but not attribute, method, path or sender */
	uint64_t mismatched;
};

/** size is sizeof(*stats). */
int mad_async_get_stats(struct mad_async *async, struct mad_async_stats *stats, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_ASYNC_H */
