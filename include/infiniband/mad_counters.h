/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_counters.h - the counters of a port (IBA 16.1) as 64-bit numbers, and their totals.
 *
 *   ib_portid_t node = {.lid = 7};
 *   struct mad_counters counters;
 *
 *   if (mad_counters_read(port, &node, 3, NULL, &counters, sizeof(counters)) == 0)
 *           printf("%" PRIu64 " bytes\n", counters.rcv_bytes);
 *
 * Counters stop at their maximum (IBA 16.1.3.5), and reading does not reset them. Resets
 * disturb other programs: use a tracker, which adds up readings, or mad_fabric_counters.h for a
 * fabric.
 *
 * The port needs IB_PERFORMANCE_CLASS. Thread-safe, but only one thread at a time may use a
 * tracker, and a child of fork() needs its own nodes. Calls return 0 or more, or a negative
 * errno (mad_errors.h). See mad_counters_read(3) and mad_counters_tracker_create(3).
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

/** ClassPortInfo:CapabilityMask (IBA 16.1.3.1), IB_CPI_CAPMASK_F. */
enum mad_pma_capability {
	MAD_PMA_ALL_PORT_SELECT = 0x0100, /**< port 255 means all ports together */
	MAD_PMA_EXTENDED_WIDTH = 0x0200,
	/** PortCountersExtended without unicast and multicast packets */
	MAD_PMA_EXTENDED_WIDTH_NO_IETF = 0x0400,
	MAD_PMA_SAMPLES_ONLY = 0x0800,
	MAD_PMA_XMIT_WAIT = 0x1000,
	MAD_PMA_INHIBIT_LIMITED_PKEY = 0x2000,
	MAD_PMA_RSFEC_COUNTERS = 0x4000,
	MAD_PMA_QP1_DROPPED = 0x8000
};

/** ClassPortInfo:CapabilityMask2, IB_CPI_CAPMASK2_F. */
enum mad_pma_capability2 {
	MAD_PMA2_PM_KEY = 0x1,
	/** PortCountersExtended also has the errors and PortXmitWait */
	MAD_PMA2_ADDITIONAL_EXTENDED = 0x2
};

/* --- counters -------------------------------------------------------------------- */

/** Counter numbers, for masks and mad_counters_info(). */
enum mad_counter {
	MAD_COUNTER_XMIT_BYTES,
	MAD_COUNTER_RCV_BYTES,
	MAD_COUNTER_XMIT_PACKETS,
	MAD_COUNTER_RCV_PACKETS,
	MAD_COUNTER_XMIT_UNICAST_PACKETS,
	MAD_COUNTER_RCV_UNICAST_PACKETS,
	MAD_COUNTER_XMIT_MULTICAST_PACKETS,
	MAD_COUNTER_RCV_MULTICAST_PACKETS,
	MAD_COUNTER_XMIT_WAIT_TICKS,
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
	/* parts of rcv_errors */
	MAD_COUNTER_LOCAL_PHYSICAL_ERRORS,
	MAD_COUNTER_MALFORMED_PACKET_ERRORS,
	MAD_COUNTER_BUFFER_OVERRUN_ERRORS,
	MAD_COUNTER_DLID_MAPPING_ERRORS,
	MAD_COUNTER_VL_MAPPING_ERRORS,
	MAD_COUNTER_LOOPING_ERRORS,
	/* parts of xmit_discards */
	MAD_COUNTER_INACTIVE_DISCARDS,
	MAD_COUNTER_NEIGHBOR_MTU_DISCARDS,
	MAD_COUNTER_SW_LIFETIME_LIMIT_DISCARDS,
	MAD_COUNTER_SW_HOQ_LIFETIME_LIMIT_DISCARDS,
	/* FDR and faster links, with forward error correction */
	MAD_COUNTER_SYNC_HEADER_ERRORS,
	MAD_COUNTER_UNKNOWN_BLOCKS,
	MAD_COUNTER_ERROR_DETECTIONS,
	MAD_COUNTER_FEC_CORRECTED_BLOCKS,
	MAD_COUNTER_FEC_UNCORRECTABLE_BLOCKS,
	MAD_COUNTER_FEC_CORRECTED_SYMBOLS,
	MAD_COUNTER_COUNT
};

#define MAD_COUNTER_BIT(counter) (UINT64_C(1) << (counter))

#define MAD_COUNTERS_TRAFFIC              UINT64_C(0x000001ff)
#define MAD_COUNTERS_ERRORS               UINT64_C(0x003ffe00)
#define MAD_COUNTERS_RCV_ERROR_DETAILS    UINT64_C(0x0fc00000)
#define MAD_COUNTERS_XMIT_DISCARD_DETAILS UINT64_C(0xf0000000)
#define MAD_COUNTERS_EXTENDED_SPEEDS      UINT64_C(0x3f00000000)
#define MAD_COUNTERS_ALL                  UINT64_C(0x3fffffffff)
/** Traffic and errors. Each other group needs one more request. */
#define MAD_COUNTERS_DEFAULT              (MAD_COUNTERS_TRAFFIC | MAD_COUNTERS_ERRORS)

/** Contradictions in the responses of a node. */
enum mad_counters_odd {
	/** wrong port number in a response */
	MAD_COUNTERS_ODD_PORT = 1,
	/** PortCountersExtended promised by ClassPortInfo, but refused */
	MAD_COUNTERS_ODD_CAPABILITY = 2,
	/** see odd_values: all 64 bits are 1, or bytes exceed 64 bits (UINT64_MAX then) */
	MAD_COUNTERS_ODD_VALUE = 4
};

/** A reading. Counters not in "present" are 0; flow control packets do not count. May grow. */
struct mad_counters {
	/** bytes filled in by the library */
	uint32_t size;
	uint8_t port;
	uint8_t reserved[3];
	/** 4 times PortXmitData; from the LRH to the ICRC */
	uint64_t xmit_bytes;
	uint64_t rcv_bytes; /**< 4 times PortRcvData */
	uint64_t xmit_packets;
	uint64_t rcv_packets;
	uint64_t xmit_unicast_packets;
	uint64_t rcv_unicast_packets;
	uint64_t xmit_multicast_packets;
	uint64_t rcv_multicast_packets;
	uint64_t xmit_wait_ticks; /**< a packet waited and none was sent */
	uint64_t symbol_errors;
	uint64_t link_recoveries;            /**< successful error recoveries */
	uint64_t link_downed;                /**< failed error recoveries */
	uint64_t rcv_errors;                 /**< packets */
	uint64_t rcv_remote_physical_errors; /**< packets marked bad (EBP) */
	uint64_t rcv_switch_relay_errors;    /**< packets that could not be forwarded */
	uint64_t xmit_discards;
	uint64_t xmit_constraint_errors;
	uint64_t rcv_constraint_errors;
	uint64_t local_link_integrity_errors;     /**< events: error threshold reached */
	uint64_t excessive_buffer_overrun_errors; /**< events: overruns lasted too long */
	uint64_t vl15_dropped;
	uint64_t qp1_dropped;

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

	/* PortExtendedSpeedsCounters: all lanes, or the port's own with Reed-Solomon FEC */
	uint64_t sync_header_errors;
	uint64_t unknown_blocks;
	uint64_t error_detections;
	uint64_t fec_corrected_blocks;
	uint64_t fec_uncorrectable_blocks;
	uint64_t fec_corrected_symbols; /**< only with MAD_PMA_RSFEC_COUNTERS */

	uint64_t present;         /**< mask of counters that were read */
	uint64_t at_maximum;      /**< may have missed events */
	uint64_t odd_values;      /**< impossible values */
	uint64_t extended;        /**< read from PortCountersExtended */
	uint64_t time_us;         /**< last response with counters, CLOCK_MONOTONIC */
	uint64_t response_us[8];  /**< for mad_counters_value() */
	uint32_t capability_mask; /**< enum mad_pma_capability */
	uint32_t capability_mask2;
	uint32_t status;   /**< MAD status of the request that failed with -EIO */
	uint32_t odd;      /**< enum mad_counters_odd */
	uint32_t requests; /**< without retransmissions */
	uint32_t reserved2;
};

/** Describes a counter. */
struct mad_counter_info {
	const char *name;  /**< member name, "xmit_bytes" */
	const char *unit;  /**< "bytes", "packets", "ticks", "blocks", "symbols" or "events" */
	const char *field; /**< specification name, "PortXmitData" */
	const char *attribute;   /**< of bits; PortCountersExtended if bits is 0 */
	unsigned bits;           /**< width in attribute; 0: lacks it */
	unsigned fields;         /**< number of fields added up: 1, or the lanes */
	unsigned extended_bits;  /**< width in PortCountersExtended; 0: lacks it */
	unsigned multiplier;     /**< 4 for bytes, whose unit on the wire is 4 bytes */
	const char *description; /**< a sentence without full stop */
};

/** Returns the description of a counter; NULL beyond MAD_COUNTER_COUNT - 1. */
const struct mad_counter_info *mad_counters_info(unsigned counter);
/** Returns a counter and, in *time_us, when its response arrived; both 0 if it was not read. */
uint64_t mad_counters_value(const struct mad_counters *counters, unsigned counter,
			    uint64_t *time_us);

/* --- counters by lane and by VL, and the tick -------------------------------------- */

/** Numbers that struct mad_counters does not have. Each bit costs a request. */
enum mad_counters_detail {
	MAD_COUNTERS_LANES = 1,        /**< PortExtendedSpeedsCounters, by lane */
	MAD_COUNTERS_VL_PACKETS = 2,   /**< PortVLOpPackets */
	MAD_COUNTERS_VL_DATA = 4,      /**< PortVLOpData */
	MAD_COUNTERS_VL_XMIT_WAIT = 8, /**< PortVLXmitWaitCounters */
	MAD_COUNTERS_TICK = 16         /**< PortSamplesControl:Tick */
};

#define MAD_COUNTERS_LANE_COUNT 12
#define MAD_COUNTERS_VL_COUNT   16

/** All are 0 while Reed-Solomon FEC is active. */
struct mad_lane_counters {
	uint32_t error_detections; /**< up to 0xffff */
	uint32_t fec_corrected_blocks;
	uint32_t fec_uncorrectable_blocks;
	uint32_t reserved;
};

struct mad_vl_counters {
	uint64_t rcv_bytes;       /**< 4 times PortVLOpData */
	uint32_t rcv_packets;     /**< up to 0xffff */
	uint32_t xmit_wait_ticks; /**< up to 0xffff */
};

/** Members may be added at the end. */
struct mad_counters_details {
	uint32_t present;
	uint8_t port;
	uint8_t tick; /**< for mad_counters_tick_ns() */
	uint8_t reserved[2];
	uint64_t time_us; /**< last response with details, CLOCK_MONOTONIC; or 0 */
	struct mad_lane_counters lanes[MAD_COUNTERS_LANE_COUNT];
	struct mad_vl_counters vls[MAD_COUNTERS_VL_COUNT];
};

/** Returns the ns of a PortXmitWait tick. NAN for speeds other than SDR, DDR and QDR. */
double mad_counters_tick_ns(unsigned tick, unsigned speed);

/* --- reading --------------------------------------------------------------------- */

/** A node's ClassPortInfo, so that readings with the same object request it only once. */
struct mad_counters_node;

struct mad_counters_node *mad_counters_node_create(void);
/** May be called while readings are in flight. NULL is a no-op. */
void mad_counters_node_free(struct mad_counters_node *node);

/** 0 stands for the default of each member. */
struct mad_counters_options {
	/** mask; 0: MAD_COUNTERS_DEFAULT, or none with details */
	uint64_t counters;
	struct mad_counters_node *node; /**< NULL: read ClassPortInfo each time */
	int timeout_ms;                 /**< of an attempt; 0: the port's */
	/** read only PortCounters (32 bits), in one request without ClassPortInfo */
	bool basic;
	unsigned details; /**< enum mad_counters_detail */
	/** must stay valid until the callback */
	struct mad_counters_details *details_to;
	size_t details_size; /**< sizeof(*details_to) */
	uint64_t reserved[4];
};

/** All ports of a node together (MAD_PMA_ALL_PORT_SELECT). */
#define MAD_COUNTERS_ALL_PORTS 255

/**
 * Reads the counters of a port of the node with the LID in dport; port 0 is a switch's
 * management port. options may be NULL; so may counters if options->details is set. Fills in
 * *counters even on failure; "present" has the bits of what was read. -EOPNOTSUPP if the node
 * has none of the requested counters.
 */
int mad_counters_read(struct ibmad_port *port, const ib_portid_t *dport, unsigned port_number,
		      const struct mad_counters_options *options, struct mad_counters *counters,
		      size_t size);

/** Called once per reading, with its error. counters is freed afterwards. */
typedef void mad_counters_fn(struct mad_async *async, int error,
			     const struct mad_counters *counters, void *arg);

/** The same on an engine; *id is for mad_async_cancel(). No callback if the call fails. */
int mad_counters_submit(struct mad_async *async, const ib_portid_t *dport, unsigned port_number,
			const struct mad_counters_options *options, mad_counters_fn *callback,
			void *arg, uint64_t *id);

/** Resets the counters that a reading with these options reads, but not the details. */
int mad_counters_reset(struct ibmad_port *port, const ib_portid_t *dport, unsigned port_number,
		       const struct mad_counters_options *options);

/* --- adding up readings ---------------------------------------------------------- */

/** Adds up readings of one port. */
struct mad_counters_tracker;

/** Bits that mad_counters_tracker_add() returns. */
enum mad_counters_event {
	/** some counters fell by 1/16 or more: another program reset them */
	MAD_COUNTERS_RESET = 1,
	/** all counters that were not 0 fell by 1/16: restart, or reset by another program */
	MAD_COUNTERS_RESTARTED = 2,
	/** a counter fell by less than 1/16 */
	MAD_COUNTERS_BACKWARDS = 4,
	/** a counter reached its maximum: its total is too low from now on */
	MAD_COUNTERS_STUCK = 8,
	/** other counters than before, or from another attribute */
	MAD_COUNTERS_CHANGED = 16,
	/** odd_values, or growth beyond any link, 10^12 a second: values ignored */
	MAD_COUNTERS_IMPOSSIBLE = 32,
	/** another node or port: nothing is added, counting starts again */
	MAD_COUNTERS_REPLACED = 64,
	/** 32-bit bytes or packets passed their maximum; not a reset */
	MAD_COUNTERS_WRAPPED = 128
};

/** The sum of the readings. New members replace "reserved" or follow in "total". */
struct mad_counters_totals {
	uint64_t first_us;
	uint64_t readings;
	uint64_t resets; /**< readings, as for restarts and replaced */
	uint64_t restarts;
	uint64_t backwards; /**< single counters, as for stuck, impossible and wraps */
	uint64_t stuck;
	uint64_t impossible;
	uint64_t replaced;
	uint64_t wraps;
	/** mask of totals that may be too low, after resets, restarts or maxima */
	uint64_t incomplete;
	uint64_t reserved[4];
	/**
	 * Events since the first reading, or since 0 with MAD_COUNTERS_FROM_DEVICE. "present":
	 * totals that are known (two readings, or one with the flag). "at_maximum" and
	 * "odd_values" cover all readings, "time_us" is the latest reading's, "extended" is 0.
	 */
	struct mad_counters total;
};

enum mad_counters_tracker_flags {
	/** totals begin at the first reading's values, not at 0 */
	MAD_COUNTERS_FROM_DEVICE = 1
};

/** flags: enum mad_counters_tracker_flags. NULL with errno EINVAL or ENOMEM. */
struct mad_counters_tracker *mad_counters_tracker_create(unsigned flags);
void mad_counters_tracker_free(struct mad_counters_tracker *tracker);

/** Returns a mask of enum mad_counters_event; -EINVAL for an empty or out-of-order reading. */
int mad_counters_tracker_add(struct mad_counters_tracker *tracker,
			     const struct mad_counters *reading);

/** Call it when the LID belongs to another NodeGUID: counters start again, totals continue. */
void mad_counters_tracker_replace(struct mad_counters_tracker *tracker);

/** Valid until the next call with this tracker. NULL for NULL. */
const struct mad_counters_totals *mad_counters_tracker_totals(
	const struct mad_counters_tracker *tracker);

enum mad_rate {
	MAD_RATE_LATEST,
	MAD_RATE_MEAN /**< from the first reading on */
};

/** Returns the rate per second, or NAN (math.h) if unknown, for example after one reading. */
double mad_counters_tracker_rate(const struct mad_counters_tracker *tracker, unsigned counter,
				 enum mad_rate rate);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_COUNTERS_H */
