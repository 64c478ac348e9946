/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_fabric_counters.h - the counters of all ports of a fabric, over any number of
 * discoveries.
 *
 *   struct mad_fabric_counters *counters = mad_fabric_counters_create(NULL);
 *   const struct mad_fabric_counters_port *each = NULL;
 *
 *   mad_fabric_counters_set_fabric(counters, fabric);
 *   if (mad_fabric_counters_read(port, counters, NULL) == 0)
 *           while ((each = mad_fabric_counters_next(counters, each)))
 *                   if (each->totals)
 *                           printf("0x%016" PRIx64 "/%u %" PRIu64 "\n", each->guid,
 *                                  each->number, each->totals->total.xmit_bytes);
 *
 * The object knows a port by its NodeGUID and its number. For each port, it keeps what a
 * struct mad_counters_tracker keeps (mad_counters.h): totals, rates and events. For each node,
 * it keeps ClassPortInfo until the next fabric is set. A program gives each new fabric to the
 * object, and reads all ports or some of them as often as it wants. If a node refuses
 * PortCountersExtended, which its ClassPortInfo promised in an earlier reading, ClassPortInfo
 * is read again, and the port, too.
 *
 * The port must have IB_PERFORMANCE_CLASS registered.
 *
 * Nodes that change. A port of a node that moves to another place of the fabric, or gets
 * another LID, keeps its totals. A node with another NodeGUID at the same LID or at the same
 * cable has ports of its own. A node that is not in the latest fabric is kept for a time
 * (mad_fabric_counters_settings:keep_s), and continues with its totals when it is back. If its
 * counters are lower then, they were reset, as for each tracker.
 *
 * Requests for counters are sent to a LID, and the responses do not have the NodeGUID. If the
 * LID has been given to another node since the discovery, the response is the other node's.
 * The object detects this in two cases, and does not add the other node's counters:
 *   - the capabilities of the other node differ (MAD_COUNTERS_REPLACED), if the reading
 *     requests ClassPortInfo
 *   - a counter is higher than a link can count in the time (MAD_COUNTERS_IMPOSSIBLE, then
 *     MAD_COUNTERS_REPLACED)
 * Lower counters of the other node look like counters that were reset (MAD_COUNTERS_RESTARTED,
 * MAD_COUNTERS_RESET). The object cannot detect counters that are higher by no more than a link
 * can count.
 *
 * With mad_fabric_counters_options:check_guid, the NodeGUID of each node is read before its
 * counters, at the LID of its first wanted port. The check does not notice a LID that changes
 * its node within a few round trips, or that another LID of a CA with several ports has
 * changed.
 *
 * Memory. mad_fabric_counters_free() frees an object. The results of the calls belong to the
 * object, and are valid until the next call for it. The fabric belongs to the program, which
 * frees it after the next mad_fabric_counters_set_fabric() or after the object. A port takes
 * about 90 bytes while its counters are 0, and about 15 bytes more for each counter that
 * counts. A node takes about 120 bytes.
 *
 * Threads. One thread at a time may use an object. While a reading on an engine is not
 * complete, this is the thread that processes the engine.
 *
 * Calls return 0 or more, or a negative errno.
 */
#ifndef INFINIBAND_MAD_FABRIC_COUNTERS_H
#define INFINIBAND_MAD_FABRIC_COUNTERS_H

#include <infiniband/mad_counters.h>
#include <infiniband/mad_fabric.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- the object ------------------------------------------------------------------- */

struct mad_fabric_counters;

/** All members may be 0. */
struct mad_fabric_counters_settings {
	/**
	 * A mask of enum mad_counters_tracker_flags: with MAD_COUNTERS_FROM_DEVICE, a total
	 * begins at the value that the port has at its first reading, otherwise at 0.
	 */
	unsigned flags;
	/**
	 * The seconds for which a node is kept that is not in the latest fabric; 0: a day,
	 * UINT_MAX: until mad_fabric_counters_forget(). mad_fabric_counters_set_fabric() drops
	 * the nodes whose time is over.
	 */
	unsigned keep_s;
	uint64_t reserved[4]; /**< 0 */
};

/**
 * Creates an object without ports. settings may be NULL. NULL with errno:
 * EINVAL  a flag is unknown, or a reserved member is not 0
 * ENOMEM  out of memory
 */
struct mad_fabric_counters *mad_fabric_counters_create(
	const struct mad_fabric_counters_settings *settings);

/**
 * Frees the object. A reading that is not complete is cancelled, and the memory is freed after
 * its callback. NULL is allowed.
 */
void mad_fabric_counters_free(struct mad_fabric_counters *counters);

/**
 * Sets the fabric whose ports are read from now on. The program must not free the fabric before
 * the next call, or before the object. After a call with NULL, the program may free the former
 * fabric. Ports of nodes that the object knows keep their totals. If several nodes have one
 * NodeGUID, the first one is read. If the call fails, the object has the former fabric:
 * -EINVAL  counters is NULL
 * -EBUSY   a reading is not complete
 * -ENOMEM  out of memory
 */
int mad_fabric_counters_set_fabric(struct mad_fabric_counters *counters,
				   const struct mad_fabric *fabric);

/**
 * Forgets the ports of a node: totals, rates and ClassPortInfo. If the node is in the latest
 * fabric, its ports begin again; otherwise the object does not have them any more.
 * -EINVAL  counters is NULL
 * -EBUSY   a reading is not complete
 * -ENOENT  there is no such node
 */
int mad_fabric_counters_forget(struct mad_fabric_counters *counters, uint64_t guid);

/* --- reading ---------------------------------------------------------------------- */

/**
 * Bits of mad_fabric_counters_options:leave_out, for ports that a reading does not read.
 * Without a bit, it reads each port that has counters, and that a request reaches by a LID
 * (mad_fabric_port_lid()): the ports of switches, port 0 only if it is an enhanced one, and the
 * ports of other nodes that have a link.
 */
enum mad_fabric_counters_leave_out {
	MAD_FABRIC_COUNTERS_NO_SWITCHES = 1,
	MAD_FABRIC_COUNTERS_NO_OTHERS = 2, /**< no ports of CAs and routers */
	MAD_FABRIC_COUNTERS_NO_DOWN = 4,   /**< no ports whose state is MAD_PORT_DOWN */
	MAD_FABRIC_COUNTERS_NO_PORT0 = 8   /**< no port 0 of switches */
};

/** Whether a port of the latest fabric is to be read. */
typedef bool mad_fabric_counters_filter_fn(const struct mad_fabric_port *port, void *arg);

/** All members may be 0. */
struct mad_fabric_counters_options {
	/** The wanted counters; 0: MAD_COUNTERS_DEFAULT. As in mad_counters_options. */
	uint64_t counters;
	int timeout_ms; /**< of an attempt; 0: the port's */
	/** The milliseconds after which the reading ends with -ETIME; 0: no limit. */
	unsigned time_limit_ms;
	/** Cancels the reading, which ends with -ECANCELED, see mad_cancel_set(); or NULL. */
	const struct mad_cancel *cancel;
	unsigned leave_out; /**< bits of enum mad_fabric_counters_leave_out */
	/** As mad_counters_options:basic: one request a port, for counters of up to 32 bits. */
	bool basic;
	/**
	 * Reads NodeInfo of each node by LID before its counters. If the NodeGUID is another
	 * one, the node's ports have the error -ESTALE, and are not read: the program discovers
	 * the fabric again. The port must have IB_SMI_CLASS registered.
	 */
	bool check_guid;
	/**
	 * The M_Key of SMPs, in host order; 0: that of the port when the reading starts, see
	 * smp_mkey_set().
	 */
	uint64_t m_key;
	/**
	 * Called for each port that leave_out does not exclude; NULL: all of them are read. A
	 * reading may call it several times for a port.
	 */
	mad_fabric_counters_filter_fn *filter;
	void *filter_arg;
	uint64_t reserved[4]; /**< 0 */
};

/** A reading in numbers. Members may be added at the end: the library allocates it. */
struct mad_fabric_counters_summary {
	size_t wanted; /**< ports, so far */
	size_t read;   /**< of these, ports without an error */
	size_t failed; /**< of these, ports with an error, requested or not */
	size_t requests;
	uint64_t begin_us; /**< by CLOCK_MONOTONIC */
	uint64_t end_us;   /**< 0: the reading is not complete */
	int error;         /**< of the reading */
};

/**
 * Reads the counters of ports of the latest fabric, and returns when the reading is complete.
 * The ports of a node are read one after the other, and as many nodes at once as the fabric
 * accepts. If a node does not respond for its first port, or for two ports in succession, its
 * other ports are not requested, and have the same error. mad_port_set_rate() limits the number
 * of requests a second.
 *
 * The call succeeds if all wanted ports were requested: each port has an error of its own. If
 * the call fails, the ports that were read meanwhile have their counters, and the wanted ports
 * that were not read have the error of the call, except that with -ENOMEM some may have none.
 * options may be NULL.
 *
 * -EINVAL    an argument is wrong
 * -EBUSY     a reading is not complete
 * -EPROTONOSUPPORT  IB_PERFORMANCE_CLASS is not registered on the port, or IB_SMI_CLASS for
 *                   check_guid
 * -ENOMEM    out of memory
 * -ENODEV    the device is gone
 * -ENETDOWN  the link of the local port is down; the library reads its PortInfo four
 *            times a second if IB_SMI_DIRECT_CLASS is registered
 * -ETIME     the time of mad_fabric_counters_options:time_limit_ms is over
 * -ECANCELED mad_fabric_counters_options:cancel is set, or the port was closed; on an engine
 *            also: mad_fabric_counters_cancel() or mad_fabric_counters_free() was called, or
 *            the engine was destroyed
 * mad_last_failure_text() returns the error in words.
 */
int mad_fabric_counters_read(struct ibmad_port *port, struct mad_fabric_counters *counters,
			     const struct mad_fabric_counters_options *options);

/** Called once for each reading. error is 0 or an error of mad_fabric_counters_read(). */
typedef void mad_fabric_counters_fn(struct mad_async *async, int error,
				    struct mad_fabric_counters *counters, void *arg);

/**
 * Starts a reading on an engine. The options are copied; cancel and filter_arg must stay valid
 * until done is called. done is called from mad_async_process(), mad_async_wait() or
 * mad_async_free(), or before the call returns if there is nothing to request. Call it from
 * a callback of the engine, or from the only thread that processes the engine.
 *
 * If the call fails, done is not called:
 * -EINVAL  an argument is wrong
 * -EBUSY   a reading is not complete
 * -EPROTONOSUPPORT  as for mad_fabric_counters_read()
 * -ENOMEM  out of memory
 * and the errors of mad_async_submit()
 */
int mad_fabric_counters_submit(struct mad_async *async, struct mad_fabric_counters *counters,
			       const struct mad_fabric_counters_options *options,
			       mad_fabric_counters_fn *done, void *arg);

/**
 * Cancels the reading that is not complete: done is called with -ECANCELED by the next calls of
 * mad_async_process(). Without a reading, it does nothing. NULL is allowed.
 */
void mad_fabric_counters_cancel(struct mad_fabric_counters *counters);

/**
 * The summary of the reading that began last, which may not be complete. All members are 0
 * before the first reading. NULL if counters is NULL.
 */
const struct mad_fabric_counters_summary *mad_fabric_counters_latest(
	const struct mad_fabric_counters *counters);

/* --- results ---------------------------------------------------------------------- */

/**
 * A port. Members may be added at the end: the library allocates it. The structure, and the
 * memory that its pointers point to, except "port", are valid until the next call for the
 * object.
 */
struct mad_fabric_counters_port {
	uint64_t guid; /**< NodeGUID */
	/** The port in the latest fabric; NULL: the fabric does not have it. */
	const struct mad_fabric_port *port;
	/**
	 * The latest reading with counters; NULL: there is none. Its members requests, status
	 * and odd are 0.
	 */
	const struct mad_counters *reading;
	const struct mad_counters_totals *totals; /**< NULL: no reading had counters */
	/** For mad_counters_tracker_rate() and mad_counters_tracker_mean_rate(); or NULL. */
	const struct mad_counters_tracker *tracker;
	/**
	 * When the latest reading that wanted the port was complete for this port, by
	 * CLOCK_MONOTONIC; 0: no reading has wanted it.
	 */
	uint64_t time_us;
	/**
	 * Of that reading: 0, an error of mad_counters_read(), -ESTALE
	 * (mad_fabric_counters_options:check_guid), or the error with which the reading ended
	 * before the port was read. After an error, "reading" may be an earlier one, or have
	 * only some of the counters.
	 */
	int error;
	unsigned status; /**< the MAD status, if the error is -EIO */
	unsigned events; /**< enum mad_counters_event; 0 if the reading had no counters */
	uint8_t number;  /**< of the port */
	/** The latest reading has wanted the port (mad_fabric_counters_latest()). */
	bool is_latest;
};

/**
 * The port that follows a port; after NULL the first one; NULL after the last one. previous is
 * the result of the preceding call for the object. The object has all ports of the latest
 * fabric, and ports with readings of nodes that it keeps. The ports of a node follow each other
 * by number, and the nodes in the order in which the object got them. NULL if counters is NULL.
 */
const struct mad_fabric_counters_port *mad_fabric_counters_next(
	struct mad_fabric_counters *counters, const struct mad_fabric_counters_port *previous);

/**
 * A port by NodeGUID and number; NULL if there is none, or if counters is NULL.
 * mad_fabric_counters_next() continues from it.
 */
const struct mad_fabric_counters_port *mad_fabric_counters_find(
	struct mad_fabric_counters *counters, uint64_t guid, unsigned number);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_FABRIC_COUNTERS_H */
