/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_counters.h - the counters of a port as numbers (IBA 16.1), and their totals.
 *
 *   ib_portid_t node = {.lid = 7};
 *   struct mad_counters counters;
 *
 *   if (mad_counters_read(port, &node, 3, NULL, &counters, sizeof(counters)) == 0)
 *           printf("%" PRIu64 " bytes, %" PRIu64 " packets\n", counters.rcv_bytes,
 *                  counters.rcv_packets);
 *
 * The port must have IB_PERFORMANCE_CLASS registered. The library reads the attributes that
 * have the wanted counters, as far as the node supports them, and returns host order numbers.
 *
 * Counters stop at their maximum; they do not wrap (IBA 16.1.3.5). Reading does not reset
 * them. A struct mad_counters_tracker adds up readings, so that a program needs no reset, which
 * would disturb other programs. mad_fabric_counters.h does both for all ports of a fabric.
 *
 * Memory. mad_counters_node_free() and mad_counters_tracker_free() free a node and a tracker.
 * The totals of a tracker are valid until the next call for the tracker. The counters that a
 * callback gets are freed when the callback returns.
 *
 * Threads. Any number of threads may read at once, also with one struct mad_counters_node. Two
 * threads must not use one tracker at the same time. A child of fork() must not use the nodes
 * of its parent, and creates other ones.
 *
 * Calls return 0 or more, or a negative errno, and store their failure (mad_errors.h).
 * mad_counters_read(3) and mad_counters_tracker_create(3) have the details.
 */
#ifndef INFINIBAND_MAD_COUNTERS_H
#define INFINIBAND_MAD_COUNTERS_H

#include <infiniband/mad_async.h>
#include <stdbool.h>
#include <stddef.h>

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
 * packets, not of flow control. Members may be added at the end: calls get the size.
 */
struct mad_counters {
	/** Bytes that the library filled in. mad_counters_value() and
	 * mad_counters_tracker_add() read no more. */
	uint32_t size;
	uint8_t port;
	uint8_t reserved[3];
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

	uint64_t present;         /**< the counters that were read */
	uint64_t at_maximum;      /**< counters at their maximum: they may have missed events */
	uint64_t odd_values;      /**< counters with an impossible value */
	uint64_t extended;        /**< counters of 64 bits, from PortCountersExtended */
	uint64_t time_us;         /**< of the last response with counters, by CLOCK_MONOTONIC */
	uint64_t response_us[8];  /**< of each response; 0: time_us; see mad_counters_value() */
	uint32_t capability_mask; /**< enum mad_pma_capability */
	uint32_t capability_mask2;
	uint32_t status;   /**< the MAD status of the request that failed with -EIO; or 0 */
	uint32_t odd;      /**< enum mad_counters_odd */
	uint32_t requests; /**< the number of requests, without retransmissions */
	uint32_t reserved2;
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
/**
 * A counter by its number; 0 if the reading does not have it. *time_us, unless it is NULL,
 * becomes the CLOCK_MONOTONIC time of the response that had the counter, or 0: a reading of
 * several requests has several times.
 */
uint64_t mad_counters_value(const struct mad_counters *counters, unsigned counter,
			    uint64_t *time_us);

/* --- counters by lane and by VL, and the tick -------------------------------------- */

/** Groups of numbers that struct mad_counters does not have. Each takes a request. */
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

/** Members may be added at the end: mad_counters_options:details_size. */
struct mad_counters_details {
	uint32_t present; /**< enum mad_counters_detail: the groups that were read */
	uint8_t port;
	uint8_t tick; /**< MAD_COUNTERS_TICK: as on the wire, see mad_counters_tick_ns() */
	uint8_t reserved[2];
	uint64_t time_us; /**< of the last response with details, by CLOCK_MONOTONIC; or 0 */
	struct mad_lane_counters lanes[MAD_COUNTERS_LANE_COUNT];
	struct mad_vl_counters vls[MAD_COUNTERS_VL_COUNT];
};

/**
 * The nanoseconds of a tick of PortXmitWait on a link of a speed, enum mad_link_speed
 * (mad_link.h): (tick + 1) times the time of a symbol of 10 bits. NAN for other speeds than
 * SDR, DDR and QDR, whose links have no such symbols.
 */
double mad_counters_tick_ns(unsigned tick, unsigned speed);

/* --- reading --------------------------------------------------------------------- */

/**
 * Remembers a node's ClassPortInfo, and the attributes that the node refused. A program creates
 * one for each node (or LID), and passes it to all readings of the node's ports: then they
 * request ClassPortInfo only once.
 */
struct mad_counters_node;

/** NULL with errno ENOMEM. */
struct mad_counters_node *mad_counters_node_create(void);
/** Readings in flight continue, and the memory is freed after them. NULL is a no-op. */
void mad_counters_node_free(struct mad_counters_node *node);

/** A member that is 0 has its default. */
struct mad_counters_options {
	/** The wanted counters; 0: MAD_COUNTERS_DEFAULT, or none if "details" is set. Bits
	 * outside of MAD_COUNTERS_ALL are ignored. */
	uint64_t counters;
	struct mad_counters_node *node; /**< NULL: each reading requests ClassPortInfo */
	int timeout_ms;                 /**< of an attempt; 0: the port's */
	/**
	 * Reads PortCounters, which each node has, instead of PortCountersExtended: a reading
	 * is one request, without ClassPortInfo. The counters have up to 32 bits. PortXmitWait
	 * and QP1Dropped are read only if the node is known.
	 */
	bool basic;
	unsigned details; /**< enum mad_counters_detail: groups to be read after the counters */
	/** Filled in before the call returns, or before the callback. */
	struct mad_counters_details *details_to;
	size_t details_size;  /**< sizeof(*details_to) */
	uint64_t reserved[4]; /**< 0 */
};

/** All ports of a node together, if it has MAD_PMA_ALL_PORT_SELECT. */
#define MAD_COUNTERS_ALL_PORTS 255

/**
 * Reads the counters of a port of the node at dport, which has a LID; port 0 is the management
 * port of a switch. options may be NULL, and counters, too, if "details" is set. *counters is
 * always filled in: if the call fails later, "present" has what was read before. Succeeds if
 * the node has any of what is wanted; -EOPNOTSUPP if it has nothing of it.
 */
int mad_counters_read(struct ibmad_port *port, const ib_portid_t *dport, unsigned port_number,
		      const struct mad_counters_options *options, struct mad_counters *counters,
		      size_t size);

/** Called once. error is 0 or an error of mad_counters_read(). The counters are the library's,
 * and freed when the callback returns. */
typedef void mad_counters_fn(struct mad_async *async, int error,
			     const struct mad_counters *counters, void *arg);

/**
 * The same on an engine, from any thread. dport and options are copied; details_to must stay
 * valid until the callback. If the call fails, the callback is not called. id may be NULL;
 * otherwise *id is for mad_async_cancel(), which ends the reading with -ECANCELED, even if the
 * counters have come meanwhile. Other readings of the node go on.
 */
int mad_counters_submit(struct mad_async *async, const ib_portid_t *dport, unsigned port_number,
			const struct mad_counters_options *options, mad_counters_fn *callback,
			void *arg, uint64_t *id);

/**
 * Sets the counters to 0 that a reading with the same options reads (not the details). Other
 * programs that read these counters see the reset, too.
 */
int mad_counters_reset(struct ibmad_port *port, const ib_portid_t *dport, unsigned port_number,
		       const struct mad_counters_options *options);

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

/** The sum of the readings. The library allocates it; new members take the place of "reserved",
 * or follow in "total". */
struct mad_counters_totals {
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
	uint64_t reserved[4];
	/**
	 * Events since the first reading, or, with MAD_COUNTERS_FROM_DEVICE, since the counters
	 * were 0. A total is known if its bit is in "present": the counter was in two readings,
	 * or, with the flag, in one. "at_maximum" has the counters that stood at their maximum
	 * in a reading, "odd_values" those that had an impossible value. "extended" is 0,
	 * "time_us" is the time of the latest reading.
	 */
	struct mad_counters total;
};

/** Flags of a tracker. */
enum mad_counters_tracker_flags {
	/** A total begins at the value of the first reading, not at 0. */
	MAD_COUNTERS_FROM_DEVICE = 1
};

/** A tracker with a mask of enum mad_counters_tracker_flags. NULL with errno EINVAL or ENOMEM.
 */
struct mad_counters_tracker *mad_counters_tracker_create(unsigned flags);
/** NULL is a no-op. */
void mad_counters_tracker_free(struct mad_counters_tracker *tracker);

/**
 * Adds a reading to the totals. Returns a mask of enum mad_counters_event; or -EINVAL, and
 * changes nothing, if the reading has no counters, or a response that is older than the
 * previous reading's.
 */
int mad_counters_tracker_add(struct mad_counters_tracker *tracker,
			     const struct mad_counters *reading);

/**
 * The next reading is that of another node or port: the counters begin again, and the totals
 * continue. Call it if the NodeGUID behind the LID has changed. NULL is a no-op.
 */
void mad_counters_tracker_replace(struct mad_counters_tracker *tracker);

/** The totals, valid until the next call for the tracker. NULL for NULL. */
const struct mad_counters_totals *mad_counters_tracker_totals(
	const struct mad_counters_tracker *tracker);

enum mad_rate {
	MAD_RATE_LATEST, /**< between the latest two readings */
	MAD_RATE_MEAN    /**< from the first to the latest reading */
};

/**
 * The rate of a counter per second, by the times of the responses. NAN (math.h) if it is not
 * known, for example after one reading, or MAD_RATE_LATEST after a reset. The mean is too low
 * if mad_counters_totals:incomplete has the counter.
 */
double mad_counters_tracker_rate(const struct mad_counters_tracker *tracker, unsigned counter,
				 enum mad_rate rate);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_COUNTERS_H */
