/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_notice.h - traps of the fabric, as the SA reports them, and changes of the local port.
 *
 *   static void tell(struct mad_notices *notices, const struct mad_notice *notice, void *arg)
 *   {
 *           puts(mad_notice_text(notice, arg, MAD_NOTICE_TEXT_SIZE));
 *   }
 *   ...
 *   mad_notices_start(async, NULL, tell, line, &notices);
 *
 * Subscribes at the SA (InformInfo, IBA 13.4.8.3), confirms Reports, and subscribes again when
 * the SA has lost the subscription. Needs IB_SA_CLASS and IB_SMI_DIRECT_CLASS. A port has one
 * subscriber. Thread-safe; calls return 0 or a negative errno. See mad_notices_start(3).
 */
#ifndef INFINIBAND_MAD_NOTICE_H
#define INFINIBAND_MAD_NOTICE_H

#include <infiniband/mad_async.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- a notice ------------------------------------------------------------------- */

enum mad_notice_kind {
	MAD_NOTICE_TRAP,         /**< a Report from the SA */
	MAD_NOTICE_PORT,         /**< the local port changed */
	MAD_NOTICE_SUBSCRIPTION, /**< result of a subscription */
	MAD_NOTICE_END           /**< the last callback */
};

/** Valid members of a trap. */
enum mad_notice_detail {
	MAD_NOTICE_LID = 1 << 0,
	MAD_NOTICE_LID2 = 1 << 1,
	MAD_NOTICE_GID = 1 << 2,
	MAD_NOTICE_GID2 = 1 << 3,
	MAD_NOTICE_PORT_NUMBER = 1 << 4,
	MAD_NOTICE_QP = 1 << 5,  /**< qp, qp2 */
	MAD_NOTICE_KEY = 1 << 6, /**< M_Key, P_Key or Q_Key, depending on the trap */
	MAD_NOTICE_SL = 1 << 7,
	MAD_NOTICE_CAPABILITIES = 1 << 8, /**< capability_mask, capability_mask2, changes */
	MAD_NOTICE_GUID = 1 << 9,
	MAD_NOTICE_REQUEST = 1 << 10,
	MAD_NOTICE_SWITCH = 1 << 11
};

/** mad_notice:changes (IBA 14.2.5.1, trap 144) */
#define MAD_NOTICE_NODE_DESCRIPTION   0x0001u
#define MAD_NOTICE_LINK_WIDTH_ENABLED 0x0002u
#define MAD_NOTICE_LINK_SPEED_ENABLED 0x0004u
#define MAD_NOTICE_SM_PRIORITY        0x0008u

/** The local port's PortInfo. */
struct mad_notice_port {
	unsigned state; /**< enum mad_port_state; mad_link.h */
	unsigned physical_state;
	unsigned lid;
	unsigned lmc;
	unsigned sm_lid;
	unsigned sm_sl;
	uint64_t gid_prefix;
	uint32_t capability_mask;
	unsigned mtu; /**< code, 1 to 5 */
	unsigned width;
	unsigned speed;
};

/** A notice, in host order. Members that the kind does not have are 0. */
struct mad_notice {
	enum mad_notice_kind kind;

	/** 0 or -EIO (see status), -ENETDOWN (port not Active, or no SM), -ENODEV, ... */
	int error;
	unsigned status;

	/** when reports may have been lost (CLOCK_MONOTONIC); 0: never subscribed before */
	uint64_t gap_begin_us, gap_end_us;

	/* MAD_NOTICE_TRAP */
	int generic;         /**< 0: vendor-specific */
	unsigned type;       /**< 0 fatal, 1 urgent, 2 security, 3 SM, 4 informational */
	unsigned producer;   /**< 1 CA, 2 switch, 3 router, 4 class manager; or the vendor */
	unsigned trap;       /**< number, or the vendor's device */
	unsigned issuer_lid; /**< source of the trap */
	ibmad_gid_t issuer_gid;
	unsigned toggle, count;
	unsigned details;   /**< mask of the valid members below */
	unsigned lid, lid2; /**< lid2, gid2: destination of a packet with a bad key */
	ibmad_gid_t gid, gid2;
	unsigned port;
	unsigned qp, qp2;
	uint64_t key;
	unsigned sl;
	uint32_t capability_mask;
	unsigned capability_mask2;
	unsigned changes;
	uint64_t guid;
	unsigned method, attribute; /**< of a request with a bad M_Key */
	uint32_t modifier;
	unsigned dr_slid; /**< if it had a directed route */
	unsigned path_length;
	uint8_t path[30];
	unsigned switch_lid;
	uint8_t raw[80]; /**< Notice and issuer's GID, as on the wire */

	/* MAD_NOTICE_PORT */
	struct mad_notice_port before, after;

	uint64_t reserved[4];
};

/** Decodes a Notice as on the wire, 64 or 80 bytes. -EBADMSG if it is shorter than 64. */
int mad_notice_decode(const void *raw, size_t raw_size, struct mad_notice *notice, size_t size);

/** Enough for every text of mad_notice_text(). */
#define MAD_NOTICE_TEXT_SIZE 512

/** Writes a notice in one line, truncated to size, without newline. Returns buf. */
char *mad_notice_text(const struct mad_notice *notice, char *buf, size_t size);

/* --- subscriptions -------------------------------------------------------------- */

/** What a filter compares. */
enum mad_notice_filter_by {
	MAD_NOTICE_BY_TYPE = 1 << 0,
	MAD_NOTICE_BY_TRAP = 1 << 1,
	MAD_NOTICE_BY_PRODUCER = 1 << 2,
	MAD_NOTICE_BY_LIDS = 1 << 3, /**< issuer's LID */
	MAD_NOTICE_BY_GID = 1 << 4   /**< issuer's GID, instead of LIDs */
};

/** Selects notices that match everything in "by". */
struct mad_notice_filter {
	int vendor; /**< 1: vendor-specific notices */
	unsigned by;
	unsigned type;
	unsigned trap;     /**< number, or the vendor's device */
	unsigned producer; /**< as mad_notice:producer */
	unsigned lid_begin, lid_end;
	ibmad_gid_t gid;
	uint32_t reserved[4];
};

/** 0 stands for the default. The shortest intervals on an engine are used. */
struct mad_notices_options {
	const struct mad_notice_filter *filters; /**< copied */
	unsigned filter_count;                   /**< up to 16; 0: all notices of IBA */
	unsigned limit;    /**< of reports that wait for the callback; 0: 1024 */
	unsigned check_ms; /**< between checks at the SA; 0: 5,000 */
	unsigned poll_ms;  /**< between readings of PortInfo; 0: 1,000 */
	uint64_t reserved[4];
};

struct mad_notices;

/** notice is only valid during the call. */
typedef void mad_notice_fn(struct mad_notices *notices, const struct mad_notice *notice,
			   void *arg);

/** Subscribes without waiting. -EADDRINUSE: another agent on the port receives Reports. */
int mad_notices_start(struct mad_async *async, const struct mad_notices_options *options,
		      mad_notice_fn *callback, void *arg, struct mad_notices **notices);

/**
 * Cancels the subscription without waiting. MAD_NOTICE_END comes exactly once, even without a
 * stop; notices is freed after it. mad_async_free() leaves the subscription at the SA. NULL is
 * a no-op.
 */
void mad_notices_stop(struct mad_notices *notices);

struct mad_notices_stats {
	uint64_t reports;
	uint64_t confirmed;  /**< ReportResps */
	uint64_t duplicates; /**< repeated by the SM */
	uint64_t dropped;    /**< not passed on, not confirmed */
	uint64_t malformed;  /**< wrong attribute or too short */
	uint64_t subscriptions;
	uint64_t failures;
};

/** Valid until the last callback returns. size is sizeof(*stats). */
int mad_notices_get_stats(struct mad_notices *notices, struct mad_notices_stats *stats,
			  size_t size);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_NOTICE_H */
