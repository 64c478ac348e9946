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
 * The object knows a port by its NodeGUID and its number, and keeps its totals, rates and
 * events (struct mad_counters_tracker), also when the node moves or gets another LID. Counters
 * are requested by LID, and responses have no NodeGUID: see "check_guid" for LIDs that the
 * subnet manager gives to another node. The port must have IB_PERFORMANCE_CLASS registered.
 *
 * Memory. mad_fabric_counters_free() frees an object. The results of the calls belong to the
 * object, and are valid until the next call for it. The fabric belongs to the program, which
 * frees it after the next mad_fabric_counters_set_fabric() or after the object. A port takes
 * about 150 bytes while its counters are 0, and about 20 bytes more for each counter that
 * counts. A node takes about 120 bytes.
 *
 * Threads. One thread at a time may use an object. While a reading on an engine is in flight,
 * this is the thread that processes the engine; any thread may cancel the reading.
 *
 * Calls return 0 or more, or a negative errno, and store their failure (mad_errors.h).
 * mad_fabric_counters_read(3) has the details.
 */
#ifndef INFINIBAND_MAD_FABRIC_COUNTERS_H
#define INFINIBAND_MAD_FABRIC_COUNTERS_H

#include <infiniband/mad_counters.h>
#include <infiniband/mad_fabric.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- the object ------------------------------------------------------------------- */

struct mad_fabric_counters_summary;

/** The visible part of an object. Members may be added: the library allocates it. */
struct mad_fabric_counters {
	/** The reading that began last, which may be in flight; all 0 before the first one. */
	const struct mad_fabric_counters_summary *latest;
};

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

/** Creates an object without ports. settings may be NULL. NULL with errno EINVAL or ENOMEM. */
struct mad_fabric_counters *mad_fabric_counters_create(
	const struct mad_fabric_counters_settings *settings);

/**
 * Frees the object. A reading in flight is cancelled, and the memory is freed after its
 * callback. NULL is a no-op.
 */
void mad_fabric_counters_free(struct mad_fabric_counters *counters);

/**
 * Sets the fabric whose ports are read from now on; ports of known nodes keep their totals. The
 * program frees the fabric after the next call (which may be with NULL), or after the object.
 * -EBUSY while a reading is in flight. If the call fails, the object has the former fabric.
 */
int mad_fabric_counters_set_fabric(struct mad_fabric_counters *counters,
				   const struct mad_fabric *fabric);

/**
 * Forgets totals, rates and ClassPortInfo of a node's ports. If the node is in the latest
 * fabric, its ports begin again. -ENOENT without such a node, -EBUSY while a reading is in
 * flight.
 */
int mad_fabric_counters_forget(struct mad_fabric_counters *counters, uint64_t guid);

/* --- reading ---------------------------------------------------------------------- */

/**
 * Bits of mad_fabric_counters_options:leave_out, for ports that a reading does not read.
 * Without a bit, it reads each port that has counters, and that a request reaches by a LID: the
 * ports of switches, port 0 only if it is an enhanced one, and the ports of other nodes that
 * have a link.
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
	/** Cancels mad_fabric_counters_read(), see mad_cancel_set(); NULL: nothing does. */
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
	uint64_t end_us;   /**< 0: the reading is in flight */
	int error;         /**< of the reading */
};

/**
 * Reads the counters of ports of the latest fabric, many nodes at once. Succeeds if all wanted
 * ports were requested: each port has an error of its own. If the call fails, the ports that
 * were read have their counters, and the others have the error of the call. options may be
 * NULL. -ETIME: time_limit_ms; -ECANCELED: "cancel"; -ENETDOWN: the local link is down.
 */
int mad_fabric_counters_read(struct ibmad_port *port, struct mad_fabric_counters *counters,
			     const struct mad_fabric_counters_options *options);

/** Called once for each reading. error is 0 or an error of mad_fabric_counters_read(). */
typedef void mad_fabric_counters_fn(struct mad_async *async, int error,
				    struct mad_fabric_counters *counters, void *arg);

/**
 * The same on an engine, from any thread. The options are copied; filter_arg must stay valid
 * until done is called. *id (id may be NULL) is for mad_async_cancel(), which ends the reading
 * with -ECANCELED, so options->cancel must be NULL. If the call fails, done is not called.
 */
int mad_fabric_counters_submit(struct mad_async *async, struct mad_fabric_counters *counters,
			       const struct mad_fabric_counters_options *options,
			       mad_fabric_counters_fn *done, void *arg, uint64_t *id);

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
	/** For mad_counters_tracker_rate(); or NULL. */
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
	/** The latest reading (mad_fabric_counters:latest) has wanted the port. */
	bool is_latest;
};

/**
 * Iterates over the ports: pass NULL to start, and then the result of the preceding call for
 * the object; returns NULL at the end. The object has all ports of the latest fabric, and the
 * ports with readings of nodes that it keeps. The ports of a node come together, by number.
 */
const struct mad_fabric_counters_port *mad_fabric_counters_next(
	struct mad_fabric_counters *counters, const struct mad_fabric_counters_port *previous);

/**
 * A port by NodeGUID and number; NULL if there is none. mad_fabric_counters_next() continues
 * from it.
 */
const struct mad_fabric_counters_port *mad_fabric_counters_find(
	struct mad_fabric_counters *counters, uint64_t guid, unsigned number);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_FABRIC_COUNTERS_H */
