/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_notice.h - notices: traps of the fabric, as the SA reports them, and changes of the local
 * port.
 *
 *   static void tell(struct mad_notices *notices, const struct mad_notice *notice, void *arg)
 *   {
 *           char line[MAD_NOTICE_TEXT_SIZE];
 *
 *           puts(mad_notice_text(notice, line, sizeof(line)));
 *   }
 *
 *   mad_notices_start(async, NULL, tell, NULL, &notices);
 *
 * The library subscribes to traps at the SA (InformInfo, IBA 13.4.8.3), confirms the Reports,
 * and subscribes again when the SA has forgotten the subscription. It needs IB_SA_CLASS and
 * IB_SMI_DIRECT_CLASS on the port. A port has one subscriber.
 *
 * Any thread may call these functions. Calls return 0 or a negative errno.
 */
#ifndef INFINIBAND_MAD_NOTICE_H
#define INFINIBAND_MAD_NOTICE_H

#include <infiniband/mad_async.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- a notice ------------------------------------------------------------------- */

enum mad_notice_kind {
	MAD_NOTICE_TRAP,         /**< a Report of the SA */
	MAD_NOTICE_PORT,         /**< the local port has changed */
	MAD_NOTICE_SUBSCRIPTION, /**< the result of a subscription */
	MAD_NOTICE_END           /**< the last callback */
};

/** Bits of mad_notice:details: the members that a trap has. */
enum mad_notice_detail {
	MAD_NOTICE_LID = 1 << 0,
	MAD_NOTICE_LID2 = 1 << 1,
	MAD_NOTICE_GID = 1 << 2,
	MAD_NOTICE_GID2 = 1 << 3,
	MAD_NOTICE_PORT_NUMBER = 1 << 4,
	MAD_NOTICE_QP = 1 << 5,  /**< qp and qp2 */
	MAD_NOTICE_KEY = 1 << 6, /**< an M_Key, a P_Key or a Q_Key, by the trap's number */
	MAD_NOTICE_SL = 1 << 7,
	MAD_NOTICE_CAPABILITIES = 1 << 8, /**< capability_mask, capability_mask2, changes */
	MAD_NOTICE_GUID = 1 << 9,         /**< a system image GUID */
	MAD_NOTICE_REQUEST = 1 << 10,     /**< method, attribute, modifier, dr_slid, path */
	MAD_NOTICE_SWITCH = 1 << 11       /**< switch_lid */
};

/** Bits of mad_notice:changes, other changes of the port (IBA 14.2.5.1, trap 144). */
#define MAD_NOTICE_NODE_DESCRIPTION   0x0001u
#define MAD_NOTICE_LINK_WIDTH_ENABLED 0x0002u
#define MAD_NOTICE_LINK_SPEED_ENABLED 0x0004u
#define MAD_NOTICE_SM_PRIORITY        0x0008u

/** The local port, from its PortInfo. */
struct mad_notice_port {
	unsigned state;          /**< MAD_PORT_DOWN and so on (mad_link.h) */
	unsigned physical_state; /**< MAD_PHYSICAL_... */
	unsigned lid;
	unsigned lmc;
	unsigned sm_lid;
	unsigned sm_sl;
	uint64_t gid_prefix;
	uint32_t capability_mask;
	unsigned mtu;   /**< as in PortInfo: 1 to 5 */
	unsigned width; /**< LinkWidthActive */
	unsigned speed; /**< LinkSpeedActive */
};

/** A notice. All numbers are in host order. Members that its kind does not have are 0. */
struct mad_notice {
	enum mad_notice_kind kind;

	/**
	 * MAD_NOTICE_SUBSCRIPTION: 0, the SA has the subscription; -EIO, the SA has responded
	 * with "status"; -ENETDOWN, the port is not Active or has no SM; or another error.
	 * MAD_NOTICE_END: 0 after mad_notices_stop() (status 0x200: the SA had forgotten the
	 * subscription before); -ENODEV; -ECANCELED; or why it could not be cancelled.
	 */
	int error;
	unsigned status;

	/** MAD_NOTICE_SUBSCRIPTION, error 0: between these times (CLOCK_MONOTONIC, in
	 * microseconds) reports may have been lost; 0: the SA never had the subscription. */
	uint64_t gap_begin_us, gap_end_us;

	/* MAD_NOTICE_TRAP */
	int generic;         /**< 1: of IBA; 0: of a vendor */
	unsigned type;       /**< 0 fatal, 1 urgent, 2 security, 3 SM, 4 informational */
	unsigned producer;   /**< 1 CA, 2 switch, 3 router, 4 class manager; or the vendor */
	unsigned trap;       /**< the trap's number; or the vendor's device */
	unsigned issuer_lid; /**< the port that the trap comes from */
	ibmad_gid_t issuer_gid;
	unsigned toggle, count;
	unsigned details; /**< bits for the members below that are valid: MAD_NOTICE_LID ... */
	unsigned lid, lid2;    /**< lid2: the destination of a packet with a bad key */
	ibmad_gid_t gid, gid2; /**< gid2: the destination of a packet with a bad key */
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
	unsigned dr_slid;     /**< of that request if it had a directed route */
	unsigned path_length; /**< of its return path */
	uint8_t path[30];
	unsigned switch_lid;
	uint8_t raw[80]; /**< the Notice as on the wire, with the issuer's GID behind it */

	/* MAD_NOTICE_PORT */
	struct mad_notice_port before, after;

	uint64_t reserved[4]; /**< 0 */
};

/**
 * Decodes a Notice as on the wire: 64 bytes in a trap, 80 in a Report. size is sizeof(*notice).
 * -EBADMSG: raw_size is less than 64.
 */
int mad_notice_decode(const void *raw, size_t raw_size, struct mad_notice *notice, size_t size);

/** Enough for each text of mad_notice_text(). */
#define MAD_NOTICE_TEXT_SIZE 512

/** Writes a notice as one line without a newline, cut if it does not fit. Returns buf. */
char *mad_notice_text(const struct mad_notice *notice, char *buf, size_t size);

/* --- subscriptions -------------------------------------------------------------- */

/** The members that a filter compares. */
enum mad_notice_filter_by {
	MAD_NOTICE_BY_TYPE = 1 << 0,
	MAD_NOTICE_BY_TRAP = 1 << 1,
	MAD_NOTICE_BY_PRODUCER = 1 << 2,
	MAD_NOTICE_BY_LIDS = 1 << 3, /**< the issuer's LID */
	MAD_NOTICE_BY_GID = 1 << 4   /**< the issuer's GID; then LIDs are not compared */
};

/** A filter: notices that match all members in "by". */
struct mad_notice_filter {
	int vendor; /**< 0: notices of IBA; 1: of vendors */
	unsigned by;
	unsigned type;
	unsigned trap;     /**< the number of the trap; with vendor 1: the device */
	unsigned producer; /**< as mad_notice:producer; with vendor 1: the vendor */
	unsigned lid_begin, lid_end;
	ibmad_gid_t gid;
	uint32_t reserved[4]; /**< 0 */
};

/** A member that is 0 has its default. The shortest intervals on an engine count. */
struct mad_notices_options {
	const struct mad_notice_filter *filters; /**< they are copied */
	unsigned filter_count; /**< 16 at most; 0: one filter, all notices of IBA */
	unsigned limit;        /**< of reports that wait for the callback; 0: 1024 */
	unsigned check_ms;     /**< the interval of checks at the SA; 0: 5 seconds */
	unsigned poll_ms;      /**< the interval of reading PortInfo; 0: a second */
	uint64_t reserved[4];  /**< 0 */
};

struct mad_notices;

/** The notice is valid only during the call. */
typedef void mad_notice_fn(struct mad_notices *notices, const struct mad_notice *notice,
			   void *arg);

/**
 * Starts notices; options may be NULL. The callback gets the result of the subscription.
 * -EADDRINUSE: another agent on the port, of any process, gets Reports. mad_async_wait() does
 * not return before the last callback.
 */
int mad_notices_start(struct mad_async *async, const struct mad_notices_options *options,
		      mad_notice_fn *callback, void *arg, struct mad_notices **notices);

/**
 * Cancels the subscription, and does not wait for the last callback, with MAD_NOTICE_END, which
 * comes once, also without a stop. When it returns, the notices do not exist any more. NULL is
 * a no-op. mad_async_free() ends notices at once, and leaves the subscription at the SA.
 */
void mad_notices_stop(struct mad_notices *notices);

/** Counts since mad_notices_start(). */
struct mad_notices_stats {
	uint64_t reports;       /**< reports that the callback got */
	uint64_t confirmed;     /**< ReportResp that were sent, to repeated reports, too */
	uint64_t duplicates;    /**< reports that the SM has repeated */
	uint64_t dropped;       /**< reports that the callback did not get: not confirmed */
	uint64_t malformed;     /**< reports of other attributes, or too short: not passed on */
	uint64_t subscriptions; /**< how often the SA has accepted the subscription */
	uint64_t failures;      /**< how often a subscription has failed */
};

/** Until the last callback returns. size is sizeof(*stats). */
int mad_notices_get_stats(struct mad_notices *notices, struct mad_notices_stats *stats,
			  size_t size);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_NOTICE_H */
