/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_counters.h - the counters of a port as numbers (IBA 16.1).
 *
 *   ib_portid_t node = {.lid = 7};
 *   struct mad_counters counters;
 *
 *   if (mad_counters_read(port, &node, 3, NULL, &counters) == 0)
 *           printf("%" PRIu64 " bytes, %" PRIu64 " packets\n", counters.rcv_bytes,
 *                  counters.rcv_packets);
 *
 * A reading has each counter that the node has. The counters come from PortCountersExtended if
 * the node has it. Counters that PortCountersExtended does not have come from PortCounters. If
 * the program wants the details of errors, they come from PortRcvErrorDetails and
 * PortXmitDiscardDetails, and those of forward error correction from
 * PortExtendedSpeedsCounters. The node's ClassPortInfo tells which attributes the node has. A
 * struct mad_counters_node remembers ClassPortInfo, so that it is read only once.
 *
 * The port must have IB_PERFORMANCE_CLASS registered. The numbers are in host order.
 *
 * Counters stop at their maximum; they do not begin again at 0 (IBA 16.1.3.5). Reading does not
 * reset counters. struct mad_counters_tracker adds up readings, so that a program needs no
 * reset, which would disturb other programs.
 *
 * mad_fabric_counters.h reads and adds up the counters of all ports of a fabric.
 *
 * Memory. mad_counters_node_free() and mad_counters_tracker_free() free a node and a tracker.
 * The totals of a tracker are valid until the next call for the tracker. The counters that a
 * callback gets are freed when the callback returns.
 *
 * Threads. Any number of threads may read at once, also with one struct mad_counters_node. Two
 * threads must not use one tracker at the same time. A child of fork() must not use the nodes
 * of its parent, and creates other ones.
 *
 * Calls return 0 or more, or a negative errno.
 */
#ifndef INFINIBAND_MAD_COUNTERS_H
#define INFINIBAND_MAD_COUNTERS_H

#include <infiniband/mad_async.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- capabilities of performance management agents ------------------------------- */

/** ClassPortInfo:CapabilityMask (IBA 16.1.3.1): IB_CPI_CAPMASK_F. */
enum mad_pma_capability {
	MAD_PMA_ALL_PORT_SELECT = 0x0100, /**< port 255 is all ports together */
	MAD_PMA_EXTENDED_WIDTH = 0x0200,  /**< PortCountersExtended */
	/** PortCountersExtended without unicast and multicast packets */
	MAD_PMA_EXTENDED_WIDTH_NO_IETF = 0x0400,
	MAD_PMA_SAMPLES_ONLY = 0x0800,
	MAD_PMA_XMIT_WAIT = 0x1000, /**< PortXmitWait */
	MAD_PMA_INHIBIT_LIMITED_PKEY = 0x2000,
	MAD_PMA_RSFEC_COUNTERS = 0x4000, /**< of PortExtendedSpeedsCounters */
	MAD_PMA_QP1_DROPPED = 0x8000     /**< QP1Dropped */
};

/** ClassPortInfo:CapabilityMask2: IB_CPI_CAPMASK2_F. */
enum mad_pma_capability2 {
	MAD_PMA2_PM_KEY = 0x1,
	/** PortCountersExtended has the errors and PortXmitWait, too */
	MAD_PMA2_ADDITIONAL_EXTENDED = 0x2
};

/* --- counters -------------------------------------------------------------------- */

/** The counters, by number: bits of masks, and indices of mad_counters_info(). */
enum mad_counter {
	/* traffic */
	MAD_COUNTER_XMIT_BYTES,
	MAD_COUNTER_RCV_BYTES,
	MAD_COUNTER_XMIT_PACKETS,
	MAD_COUNTER_RCV_PACKETS,
	MAD_COUNTER_XMIT_UNICAST_PACKETS,
	MAD_COUNTER_RCV_UNICAST_PACKETS,
	MAD_COUNTER_XMIT_MULTICAST_PACKETS,
	MAD_COUNTER_RCV_MULTICAST_PACKETS,
	MAD_COUNTER_XMIT_WAIT_TICKS,
	/* errors */
	MAD_COUNTER_SYMBOL_ERRORS,
	MAD_COUNTER_LINK_RECOVERIES,
	MAD_COUNTER_LINK_DOWNED,
	MAD_COUNTER_RCV_ERRORS,
	MAD_COUNTER_RCV_REMOTE_PHYSICAL_ERRORS,
	MAD_COUNTER_RCV_SWITCH_RELAY_ERRORS,
	MAD_COUNTER_XMIT_DISCARDS,
	MAD_COUNTER_XMIT_CONSTRAINT_ERRORS,
	MAD_COUNTER_RCV_CONSTRAINT_ERRORS,
	MAD_COUNTER_LOCAL_LINK_INTEGRITY_ERRORS,
	MAD_COUNTER_EXCESSIVE_BUFFER_OVERRUN_ERRORS,
	MAD_COUNTER_VL15_DROPPED,
	MAD_COUNTER_QP1_DROPPED,
	/* the parts of rcv_errors */
	MAD_COUNTER_LOCAL_PHYSICAL_ERRORS,
	MAD_COUNTER_MALFORMED_PACKET_ERRORS,
	MAD_COUNTER_BUFFER_OVERRUN_ERRORS,
	MAD_COUNTER_DLID_MAPPING_ERRORS,
	MAD_COUNTER_VL_MAPPING_ERRORS,
	MAD_COUNTER_LOOPING_ERRORS,
	/* the parts of xmit_discards */
	MAD_COUNTER_INACTIVE_DISCARDS,
	MAD_COUNTER_NEIGHBOR_MTU_DISCARDS,
	MAD_COUNTER_SW_LIFETIME_LIMIT_DISCARDS,
	MAD_COUNTER_SW_HOQ_LIFETIME_LIMIT_DISCARDS,
	/* links of FDR and faster, with forward error correction */
	MAD_COUNTER_SYNC_HEADER_ERRORS,
	MAD_COUNTER_UNKNOWN_BLOCKS,
	MAD_COUNTER_ERROR_DETECTIONS,
	MAD_COUNTER_FEC_CORRECTED_BLOCKS,
	MAD_COUNTER_FEC_UNCORRECTABLE_BLOCKS,
	MAD_COUNTER_FEC_CORRECTED_SYMBOLS,
	MAD_COUNTER_COUNT
};

/** The bit of a counter in a mask. */
#define MAD_COUNTER_BIT(counter) (UINT64_C(1) << (counter))

/** Masks of counters. */
#define MAD_COUNTERS_TRAFFIC              UINT64_C(0x000001ff)
#define MAD_COUNTERS_ERRORS               UINT64_C(0x003ffe00)
#define MAD_COUNTERS_RCV_ERROR_DETAILS    UINT64_C(0x0fc00000)
#define MAD_COUNTERS_XMIT_DISCARD_DETAILS UINT64_C(0xf0000000)
#define MAD_COUNTERS_EXTENDED_SPEEDS      UINT64_C(0x3f00000000)
#define MAD_COUNTERS_ALL                  UINT64_C(0x3fffffffff)
/** Without the details and PortExtendedSpeedsCounters, which need one more request each. */
#define MAD_COUNTERS_DEFAULT              (MAD_COUNTERS_TRAFFIC | MAD_COUNTERS_ERRORS)

/** Contradictions in the responses of a node: bits of struct mad_counters:odd. */
enum mad_counters_odd {
	/** the port number in a response is another one than in the request */
	MAD_COUNTERS_ODD_PORT = 1,
	/** ClassPortInfo promises PortCountersExtended, and the node does not have it */
	MAD_COUNTERS_ODD_CAPABILITY = 2,
	/** an impossible value: "odd_values". 64 bits that are all 1, or a number of bytes that
	 * does not fit into 64 bits, for which the member is UINT64_MAX. */
	MAD_COUNTERS_ODD_VALUE = 4
};

/**
 * A reading. A counter is 0 if it is not in "present". Packets and bytes are those of data
 * packets, not of flow control.
 */
struct mad_counters {
	/** from the first byte of the LRH to the ICRC: 4 times PortXmitData, whose unit is 4
	 * bytes */
	uint64_t xmit_bytes;
	uint64_t rcv_bytes; /**< 4 times PortRcvData */
	uint64_t xmit_packets;
	uint64_t rcv_packets;
	uint64_t xmit_unicast_packets;
	uint64_t rcv_unicast_packets;
	uint64_t xmit_multicast_packets;
	uint64_t rcv_multicast_packets;
	uint64_t xmit_wait_ticks; /**< ticks (mad_counters_tick_ns()) in which a packet waited,
				       and no packet was sent */
	uint64_t symbol_errors;
	uint64_t link_recoveries; /**< error recoveries that succeeded */
	uint64_t link_downed;     /**< error recoveries that failed: the link went down */
	uint64_t rcv_errors;      /**< packets with an error */
	uint64_t rcv_remote_physical_errors; /**< packets marked bad by another port (EBP) */
	uint64_t rcv_switch_relay_errors;    /**< packets that the switch could not forward */
	uint64_t xmit_discards;
	uint64_t xmit_constraint_errors;
	uint64_t rcv_constraint_errors;
	uint64_t local_link_integrity_errors;     /**< times that errors reached a threshold */
	uint64_t excessive_buffer_overrun_errors; /**< times that overruns lasted too long */
	uint64_t vl15_dropped;                    /**< packets */
	uint64_t qp1_dropped;                     /**< packets */

	uint64_t local_physical_errors; /**< PortRcvErrorDetails: packets */
	uint64_t malformed_packet_errors;
	uint64_t buffer_overrun_errors;
	uint64_t dlid_mapping_errors;
	uint64_t vl_mapping_errors;
	uint64_t looping_errors;

	uint64_t inactive_discards; /**< PortXmitDiscardDetails: packets */
	uint64_t neighbor_mtu_discards;
	uint64_t sw_lifetime_limit_discards;
	uint64_t sw_hoq_lifetime_limit_discards;

	/*
	 * PortExtendedSpeedsCounters: the lanes are added up. While Reed-Solomon FEC is active,
	 * its counters of the port are read instead of those of the lanes.
	 */
	uint64_t sync_header_errors;
	uint64_t unknown_blocks;
	uint64_t error_detections;
	uint64_t fec_corrected_blocks;
	uint64_t fec_uncorrectable_blocks;
	uint64_t fec_corrected_symbols; /**< of Reed-Solomon FEC: MAD_PMA_RSFEC_COUNTERS */

	uint64_t reserved[2]; /**< for counters to come; 0 */

	uint64_t present;         /**< the counters that were read */
	uint64_t at_maximum;      /**< counters at their maximum: they may have missed events */
	uint64_t odd_values;      /**< counters with an impossible value */
	uint64_t extended;        /**< counters of 64 bits, from PortCountersExtended */
	uint64_t time_us;         /**< of the last response with counters, by CLOCK_MONOTONIC */
	uint64_t response_us[8];  /**< of each response; 0: time_us; mad_counters_time_us() */
	uint32_t capability_mask; /**< enum mad_pma_capability */
	uint32_t capability_mask2;
	uint32_t status;   /**< the MAD status of the request that failed with -EIO; or 0 */
	uint32_t odd;      /**< enum mad_counters_odd */
	uint32_t requests; /**< the number of requests, without retransmissions */
	uint8_t port;
	uint8_t reserved2[3];
};

/** A counter, for programs that export all counters. */
struct mad_counter_info {
	const char *name;  /**< of the member: "xmit_bytes" */
	const char *unit;  /**< "bytes", "packets", "ticks", "blocks", "symbols" or "events" */
	const char *field; /**< as the specification names it: "PortXmitData" */
	const char *attribute; /**< that of "bits"; PortCountersExtended if "bits" is 0 */
	unsigned bits;         /**< its width in "attribute"; 0: the attribute lacks it */
	unsigned fields; /**< how many fields of this width are added up: 1, or the lanes */
	unsigned extended_bits;  /**< its width in PortCountersExtended, which lacks it if 0 */
	unsigned multiplier;     /**< units in one unit on the wire: 4 for bytes */
	const char *description; /**< a sentence without its full stop */
};

/** Describes a counter, from 0 to MAD_COUNTER_COUNT - 1; NULL for another number. */
const struct mad_counter_info *mad_counters_info(unsigned counter);
/** The value of a counter by its number; 0 for another number. */
uint64_t mad_counters_value(const struct mad_counters *counters, unsigned counter);
/**
 * The time at which the response with the counter came, in microseconds by CLOCK_MONOTONIC. A
 * reading with several requests has several times. 0 if the reading does not have the counter.
 */
uint64_t mad_counters_time_us(const struct mad_counters *counters, unsigned counter);

/* --- reading --------------------------------------------------------------------- */

/**
 * The memory of a node's ClassPortInfo, and of the attributes that the node refused. A program
 * creates one for each node (or LID), and uses it in all readings of the node's ports. If
 * several readings of an engine begin at once, the first one requests ClassPortInfo, and the
 * others wait for the response. If this request fails, all of them fail, so that a dead node
 * costs one request. Until ClassPortInfo is known, each engine and each blocking call requests
 * it.
 */
struct mad_counters_node;

/** NULL with errno ENOMEM. */
struct mad_counters_node *mad_counters_node_create(void);
/** Readings that have begun continue, and the memory is freed after them. NULL is allowed. */
void mad_counters_node_free(struct mad_counters_node *node);

/** A member that is 0 has its default. */
struct mad_counters_options {
	/** The wanted counters; 0: MAD_COUNTERS_DEFAULT. Bits outside of MAD_COUNTERS_ALL are
	 * ignored. */
	uint64_t counters;
	struct mad_counters_node *node; /**< NULL: each reading requests ClassPortInfo */
	int timeout_ms;                 /**< of an attempt; 0: the port's */
	/**
	 * Reads PortCounters, which each node has, instead of PortCountersExtended: a reading
	 * is one request, without ClassPortInfo. The counters have up to 32 bits. PortXmitWait
	 * and QP1Dropped are read only if the node is known.
	 */
	bool basic;
	uint64_t reserved[4]; /**< 0 */
};

/** All ports of a node together, if it has MAD_PMA_ALL_PORT_SELECT. */
#define MAD_COUNTERS_ALL_PORTS 255

/**
 * Reads the counters of a port of the node at dport, which has a LID. Port 0 is the management
 * port of a switch. options may be NULL. The library sends only the requests that the wanted
 * counters need.
 *
 * *counters is always filled in. If the call fails after some counters were read, "present" has
 * their bits. If the node has only some of the wanted counters, the call succeeds.
 *
 * -EINVAL      a pointer is NULL, the LID is not unicast, or the port is greater than 255
 * -EINVAL      the timeout is negative, a reserved member is not 0, or all bits of
 *              options->counters are unknown
 * -EPROTONOSUPPORT  IB_PERFORMANCE_CLASS is not registered on the port
 * -EIO         a response with a status other than 0: counters->status
 * -ETIMEDOUT   no response came
 * -EOPNOTSUPP  the node has none of the wanted counters
 * -EOPNOTSUPP  the port is MAD_COUNTERS_ALL_PORTS, and the node does not support it
 * -EBADMSG     a response is too short
 * -ENOMEM      out of memory
 * -ENODEV      the device is gone
 * -ECANCELED   the reading was cancelled, the port closed, or the engine destroyed
 * and the other errors of struct mad_reply
 */
int mad_counters_read(const struct ibmad_port *port, const ib_portid_t *dport,
		      unsigned port_number, const struct mad_counters_options *options,
		      struct mad_counters *counters);

/**
 * Called once for each reading on an engine. error is 0 or an error of mad_counters_read(). The
 * counters are freed when the callback returns.
 */
typedef void mad_counters_fn(struct mad_async *async, int error,
			     const struct mad_counters *counters, void *arg);

/** A reading on an engine that is not complete. */
struct mad_counters_reading;

/**
 * Begins a reading on an engine. dport and options are copied. If the call fails, the callback
 * is not called:
 * -EINVAL      as for mad_counters_read()
 * -ENOMEM      out of memory
 * -EOPNOTSUPP  as for mad_counters_read(), if ClassPortInfo is known or "basic" is set
 * and the errors of mad_async_submit()
 *
 * If reading is not NULL, *reading becomes a pointer for mad_counters_cancel(). The pointer
 * is valid until the callback is called.
 */
int mad_counters_submit(struct mad_async *async, const ib_portid_t *dport, unsigned port_number,
			const struct mad_counters_options *options, mad_counters_fn *callback,
			void *arg, struct mad_counters_reading **reading);

/**
 * Cancels a reading: its callback is called with -ECANCELED by the next calls of
 * mad_async_process(), even if the counters have come meanwhile. Other readings of the node go
 * on. NULL is allowed. Call it from a callback of the engine, or from the only thread that
 * processes the engine. mad_async_cancel() and mad_async_free() cancel all readings.
 */
void mad_counters_cancel(struct mad_counters_reading *reading);

/**
 * Sets the counters to 0 that a reading with the same options reads. Other programs that read
 * these counters see the reset, too. The errors are those of mad_counters_read().
 */
int mad_counters_reset(const struct ibmad_port *port, const ib_portid_t *dport,
		       unsigned port_number, const struct mad_counters_options *options);

/* --- counters by lane and by VL, and the tick -------------------------------------- */

/** Groups of numbers that struct mad_counters does not have: bits. Each takes a request. */
enum mad_counters_detail {
	MAD_COUNTERS_LANES = 1,        /**< PortExtendedSpeedsCounters, by lane */
	MAD_COUNTERS_VL_PACKETS = 2,   /**< PortVLOpPackets */
	MAD_COUNTERS_VL_DATA = 4,      /**< PortVLOpData */
	MAD_COUNTERS_VL_XMIT_WAIT = 8, /**< PortVLXmitWaitCounters */
	MAD_COUNTERS_TICK = 16         /**< PortSamplesControl:Tick */
};

#define MAD_COUNTERS_LANE_COUNT 12
#define MAD_COUNTERS_VL_COUNT   16

/** MAD_COUNTERS_LANES. All are 0 while Reed-Solomon FEC is active. */
struct mad_lane_counters {
	uint32_t error_detections; /**< up to 0xffff */
	uint32_t fec_corrected_blocks;
	uint32_t fec_uncorrectable_blocks;
	uint32_t reserved; /**< 0 */
};

/** A counter is 0 if its group was not read. */
struct mad_vl_counters {
	uint64_t rcv_bytes;       /**< MAD_COUNTERS_VL_DATA: 4 times PortVLOpData */
	uint32_t rcv_packets;     /**< MAD_COUNTERS_VL_PACKETS: up to 0xffff */
	uint32_t xmit_wait_ticks; /**< MAD_COUNTERS_VL_XMIT_WAIT: up to 0xffff */
};

/** Members may be added in place of "reserved". Counters stop at their maximum. */
struct mad_counters_details {
	uint32_t present;  /**< enum mad_counters_detail: the groups that were read */
	uint32_t status;   /**< the MAD status of the request that failed with -EIO; or 0 */
	uint32_t requests; /**< without retransmissions */
	uint8_t port;
	uint8_t tick; /**< MAD_COUNTERS_TICK: as on the wire, see mad_counters_tick_ns() */
	uint8_t reserved[2];
	uint64_t time_us; /**< of the last response, by CLOCK_MONOTONIC; 0: none */
	struct mad_lane_counters lanes[MAD_COUNTERS_LANE_COUNT];
	struct mad_vl_counters vls[MAD_COUNTERS_VL_COUNT];
	uint64_t reserved2[4]; /**< 0 */
};

/**
 * Reads groups of numbers of a port, "wanted" by enum mad_counters_detail. dport and
 * port_number are as for mad_counters_read(). timeout_ms is that of an attempt; 0: the port's.
 * A group that the node does not have is left out. *details is always filled in; if the call
 * fails, "present" has what was read before. The call succeeds if the node has one of the
 * groups. The errors are those of mad_counters_read(); -EINVAL, too, if "wanted" has no bit or
 * an unknown one. mad_last_failure_text() returns the error in words.
 */
int mad_counters_read_details(struct ibmad_port *port, const ib_portid_t *dport,
			      unsigned port_number, unsigned wanted, int timeout_ms,
			      struct mad_counters_details *details);

/** Called once. error is an error of mad_counters_read_details(), or 0. The details are freed
 * when the callback returns. */
typedef void mad_counters_details_fn(struct mad_async *async, int error,
				     const struct mad_counters_details *details, void *arg);

/**
 * Does the same on an engine. If the call fails, the callback is not called. The errors are
 * those of mad_counters_submit(). mad_async_cancel() and mad_async_free() cancel it.
 */
int mad_counters_submit_details(struct mad_async *async, const ib_portid_t *dport,
				unsigned port_number, unsigned wanted, int timeout_ms,
				mad_counters_details_fn *callback, void *arg);

/**
 * The nanoseconds of a tick of PortXmitWait on a port with a link of a speed, enum
 * mad_link_speed (mad_link.h): (tick + 1) times the time of a symbol of 10 bits. tick is
 * mad_counters_details:tick. NAN (math.h) for other speeds than SDR, DDR and QDR, whose links
 * have no such symbols.
 */
double mad_counters_tick_ns(unsigned tick, unsigned speed);

/* --- adding up readings ---------------------------------------------------------- */

/** Adds up readings of one port. */
struct mad_counters_tracker;

/** Events between two readings: bits that mad_counters_tracker_add() returns. */
enum mad_counters_event {
	/** Some counters, but not all, fell by a sixteenth or more: another program reset them.
	 */
	MAD_COUNTERS_RESET = 1,
	/**
	 * Each counter that was not 0 fell by a sixteenth or more: the node restarted, or
	 * another program reset all counters at once. The tracker cannot distinguish these.
	 */
	MAD_COUNTERS_RESTARTED = 2,
	/** A counter fell by less than a sixteenth, without a reset: it runs backwards. */
	MAD_COUNTERS_BACKWARDS = 4,
	/** A counter has reached its maximum, so that its total is too low from now on. */
	MAD_COUNTERS_STUCK = 8,
	/** The reading has other counters than before, or counters from another attribute. */
	MAD_COUNTERS_CHANGED = 16,
	/**
	 * Counters have impossible values: they are in "odd_values", or differ from the
	 * previous reading by more than a link can count in the time, 10^12 a second. The
	 * tracker ignores these values, and continues with the next reading.
	 */
	MAD_COUNTERS_IMPOSSIBLE = 32,
	/**
	 * The counters are those of another node or port: mad_counters_tracker_replace() was
	 * called, the port number or the capabilities are others, or the values agree with the
	 * impossible ones before. Nothing is added, and the counters begin again.
	 */
	MAD_COUNTERS_REPLACED = 64,
	/**
	 * Bytes or packets of PortCounters, of 32 bits, have passed their maximum instead of
	 * stopping there. The tracker distinguishes this from a reset: packets grow with bytes.
	 */
	MAD_COUNTERS_WRAPPED = 128
};

/** The sum of the readings. Members may be added at the end: the library allocates it. */
struct mad_counters_totals {
	/**
	 * Events since the first reading, or, with MAD_COUNTERS_FROM_DEVICE, since the counters
	 * were 0. A total is known if its bit is in "present": the counter was in two readings,
	 * or, with the flag, in one. "at_maximum" has the counters that stood at their maximum
	 * in a reading, "odd_values" those that had an impossible value. "extended" is 0,
	 * "time_us" is the time of the latest reading.
	 */
	struct mad_counters total;
	uint64_t first_us; /**< the time of the first reading */
	uint64_t readings;
	uint64_t resets;     /**< readings with MAD_COUNTERS_RESET */
	uint64_t restarts;   /**< readings with MAD_COUNTERS_RESTARTED */
	uint64_t backwards;  /**< counters that ran backwards, in all readings */
	uint64_t stuck;      /**< counters that reached their maximum, in all readings */
	uint64_t impossible; /**< values that were ignored, in all readings */
	uint64_t replaced;   /**< readings with MAD_COUNTERS_REPLACED */
	uint64_t wraps;      /**< counters that passed their maximum, in all readings */
	/**
	 * Counters whose total may be too low: they fell, reached their maximum, or began
	 * again, so that events are missing; or another counter of their attribute was reset.
	 * A restart concerns all counters.
	 */
	uint64_t incomplete;
};

/** Flags of a tracker. */
enum mad_counters_tracker_flags {
	/** A total begins at the value of the first reading, not at 0. */
	MAD_COUNTERS_FROM_DEVICE = 1
};

/**
 * A tracker with a mask of enum mad_counters_tracker_flags. NULL with errno:
 * EINVAL  a flag is unknown
 * ENOMEM  out of memory
 */
struct mad_counters_tracker *mad_counters_tracker_create(unsigned flags);
void mad_counters_tracker_free(struct mad_counters_tracker *tracker);

/**
 * Adds a reading to the totals. If a counter was reset, the tracker adds its present value: the
 * events between the previous reading and the reset are not known. A counter that was reset,
 * and is not lower in the next reading, looks like a counter that has grown: its total is too
 * low. "incomplete" has it if another counter of its attribute is lower. If a counter ran
 * backwards, the tracker adds nothing until the counter exceeds its previous value. A total
 * stops at UINT64_MAX.
 *
 * Returns a mask of enum mad_counters_event, or
 * -EINVAL  an argument is NULL
 * -EINVAL  the reading has no counters, because it failed
 * -EINVAL  a response of the reading is older than one of the previous reading
 * A reading with an error changes nothing.
 */
int mad_counters_tracker_add(struct mad_counters_tracker *tracker,
			     const struct mad_counters *reading);

/**
 * The next reading is that of another node or port: the counters begin again, and the totals
 * continue. A program calls this if the NodeGUID behind the LID has changed. NULL is allowed.
 */
void mad_counters_tracker_replace(struct mad_counters_tracker *tracker);

/** The totals, valid until the next call for the tracker. NULL for NULL. */
const struct mad_counters_totals *mad_counters_tracker_totals(
	const struct mad_counters_tracker *tracker);
/**
 * The rate of a counter per second between the latest two readings that have it, by the times
 * of the responses. NAN (math.h) if it is not known:
 * - the latest reading lacks the counter, has an impossible value, or is the first one
 * - the counter fell, or is not higher than before its fall
 * - another counter of its attribute was reset, or the node restarted
 * - the counter is at its maximum
 * - the time is 0, or an argument is not valid
 */
double mad_counters_tracker_rate(const struct mad_counters_tracker *tracker, unsigned counter);
/**
 * The rate of a counter per second, from the first to the latest reading that has it. It is too
 * low if "incomplete" has the counter. NAN after one reading, or if an argument is not valid.
 */
double mad_counters_tracker_mean_rate(const struct mad_counters_tracker *tracker,
				      unsigned counter);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_COUNTERS_H */
