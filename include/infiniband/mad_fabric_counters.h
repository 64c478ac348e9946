/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_fabric_counters.h - the counters of all ports of a fabric, over any number of
 * discoveries.
 *
 *   mad_fabric_counters_set_fabric(counters, fabric);
 *   if (mad_fabric_counters_read(port, counters, NULL) == 0)
 *           while ((each = mad_fabric_counters_next(counters, each)))
 *                   if (each->totals)
 *                           printf("%u %" PRIu64 "\n", each->number,
 *                                  each->totals->total.xmit_bytes);
 *
 * Totals, rates and events (mad_counters.h) belong to a NodeGUID and port number, wherever the
 * node moves. Counters are requested by LID: see check_guid in case the SM gives a LID to
 * another node.
 *
 * The port needs IB_PERFORMANCE_CLASS. Results belong to the object and are valid until the
 * next call with it. One thread at a time may use an object; while a reading on an engine is in
 * flight, that is the thread that processes the engine. Calls return 0 or more, or a negative
 * errno (mad_errors.h). See mad_fabric_counters_read(3).
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

/** The visible part of an object; members may be added. */
struct mad_fabric_counters {
	/** the reading that began last; all 0 before the first */
	const struct mad_fabric_counters_summary *latest;
};

struct mad_fabric_counters_settings {
	/** enum mad_counters_tracker_flags */
	unsigned flags;
	/** seconds to keep nodes that left the fabric; 0: a day, UINT_MAX: no limit */
	unsigned keep_s;
	uint64_t reserved[4];
};

/** settings may be NULL. NULL with errno EINVAL or ENOMEM. */
struct mad_fabric_counters *mad_fabric_counters_create(
	const struct mad_fabric_counters_settings *settings);

/** Cancels a reading in flight. NULL is a no-op. */
void mad_fabric_counters_free(struct mad_fabric_counters *counters);

/** Sets the fabric to read, or NULL. It must stay valid until the next call. Keeps totals. */
int mad_fabric_counters_set_fabric(struct mad_fabric_counters *counters,
				   const struct mad_fabric *fabric);

/** Forgets a node. -ENOENT if there is none, -EBUSY while a reading is in flight. */
int mad_fabric_counters_forget(struct mad_fabric_counters *counters, uint64_t guid);

/** By default, linked ports and all switch ports (port 0 if enhanced) are read, except: */
enum mad_fabric_counters_leave_out {
	MAD_FABRIC_COUNTERS_NO_SWITCHES = 1,
	MAD_FABRIC_COUNTERS_NO_OTHERS = 2, /**< CAs and routers */
	MAD_FABRIC_COUNTERS_NO_DOWN = 4,
	MAD_FABRIC_COUNTERS_NO_PORT0 = 8 /**< of switches */
};

/** Whether to read a port. */
typedef bool mad_fabric_counters_filter_fn(const struct mad_fabric_port *port, void *arg);

struct mad_fabric_counters_options {
	/** as in mad_counters_options */
	uint64_t counters;
	int timeout_ms; /**< of an attempt; 0: the port's */
	/** milliseconds until -ETIME; 0: no limit */
	unsigned time_limit_ms;
	/** for mad_fabric_counters_read() only, see mad_cancel_set() */
	const struct mad_cancel *cancel;
	unsigned leave_out; /**< enum mad_fabric_counters_leave_out */
	/** as in mad_counters_options */
	bool basic;
	/** Checks NodeGUIDs before counters (-ESTALE if changed). Needs IB_SMI_CLASS. */
	bool check_guid;
	/** M_Key of SMPs, in host order; 0: the port's */
	uint64_t m_key;
	/** NULL: all ports; may be called several times for a port */
	mad_fabric_counters_filter_fn *filter;
	void *filter_arg;
	uint64_t reserved[4];
};

/** Statistics of a reading; members may be added. */
struct mad_fabric_counters_summary {
	size_t wanted; /**< ports, so far */
	size_t read;   /**< ports without an error */
	size_t failed; /**< ports with an error, requested or not */
	size_t requests;
	uint64_t begin_us; /**< CLOCK_MONOTONIC */
	uint64_t end_us;   /**< 0: in flight */
	int error;
};

/**
 * Reads all ports, many nodes at once. Fails only if the reading ends early (-ETIME,
 * -ECANCELED, -ENETDOWN: the local link is down, ...); otherwise each port has its own error.
 * options may be NULL.
 */
int mad_fabric_counters_read(struct ibmad_port *port, struct mad_fabric_counters *counters,
			     const struct mad_fabric_counters_options *options);

/** Called once per reading, with its error. */
typedef void mad_fabric_counters_fn(struct mad_async *async, int error,
				    struct mad_fabric_counters *counters, void *arg);

/** The same on an engine; *id is for mad_async_cancel(), so options->cancel must be NULL. */
int mad_fabric_counters_submit(struct mad_async *async, struct mad_fabric_counters *counters,
			       const struct mad_fabric_counters_options *options,
			       mad_fabric_counters_fn *done, void *arg, uint64_t *id);

/* --- results ---------------------------------------------------------------------- */

/** A port. Valid, like what it points to (except port), until the next call with the object. */
struct mad_fabric_counters_port {
	uint64_t guid;
	/** in the latest fabric, or NULL */
	const struct mad_fabric_port *port;
	/** the latest with counters, or NULL; requests, status and odd are 0 */
	const struct mad_counters *reading;
	const struct mad_counters_totals *totals; /**< NULL: no reading had counters */
	/** for mad_counters_tracker_rate(), or NULL */
	const struct mad_counters_tracker *tracker;
	/** when the port was last read, successfully or not (CLOCK_MONOTONIC); 0: never */
	uint64_t time_us;
	/** of that attempt; -ESTALE: see check_guid; "reading" may then be older */
	int error;
	unsigned status; /**< MAD status, for -EIO */
	unsigned events;
	uint8_t number;
	/** the latest reading included this port */
	bool is_latest;
};

/** Iterates over the ports, node by node: pass NULL to start; returns NULL at the end. */
const struct mad_fabric_counters_port *mad_fabric_counters_next(
	struct mad_fabric_counters *counters, const struct mad_fabric_counters_port *previous);

/** Returns a port or NULL. mad_fabric_counters_next() can continue from it. */
const struct mad_fabric_counters_port *mad_fabric_counters_find(
	struct mad_fabric_counters *counters, uint64_t guid, unsigned number);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_FABRIC_COUNTERS_H */
