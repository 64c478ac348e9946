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
 * The library subscribes to traps at the SA (Set(InformInfo), IBA 13.4.8.3). It calls back for
 * the Notice of each Report, and confirms the Report after the callback. The subscription lasts
 * until the program ends it: the library notices that the SA has forgotten it, as it does for
 * memberships in multicast groups (mad_sa.h), and subscribes again:
 *
 *   - It reads the PortInfo of the local port once a second, by an SMP that does not leave the
 *     port. It subscribes again when the port's LID, its GID prefix, or the LID or the SL of
 *     the SM has changed, and when the port has become Active.
 *   - It requests the SA's InformInfoRecords of the local port once in 5 s, in turn with the
 *     MCMemberRecords if the engine has memberships. If a record is missing, because the SM was
 *     restarted at the same LID for example, it subscribes again.
 *
 * With the default intervals, the library subscribes again within 15 s after the SA can
 * respond, if the timeout of the port is a second or less (mad_rpc_set_timeout()). After an
 * error, it tries again in intervals that grow from 1 s to 8 s. If the SA has no
 * InformInfoRecords, or does not list them, the library subscribes again every 10 s without a
 * notice of the kind MAD_NOTICE_SUBSCRIPTION.
 *
 * The library does not use verbs, so it does not receive the event of a client reregistration,
 * by which an SM requests new subscriptions.
 *
 * The library does not confirm a Report if the queue is full, so that the SM repeats the
 * Report. If the SM repeats a Report because the confirmation was lost, the library confirms
 * the Report again, and does not call back again. It recognizes a Report by the transaction ID,
 * the LID of the sender and the Notice. It stores a Report for 10 s, or until a Report comes
 * whose transaction ID has the same lowest 14 bits.
 *
 * The port must have IB_SA_CLASS and IB_SMI_DIRECT_CLASS registered. A port has one subscriber,
 * because the kernel delivers Reports to one agent.
 *
 * Memory. mad_notices_stop() ends and frees the notices, and mad_async_free() those of its
 * engine. A notice is valid until the callback returns.
 *
 * Threads. Any thread may call these functions. Callbacks run as those of mad_async.h do, one
 * at a time for an engine, with no lock held. In a child of fork() no reports come, and
 * mad_async_free() ends the notices, unless the port is lost (mad_async.h).
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
	 * MAD_NOTICE_SUBSCRIPTION, when the result differs from the previous one, and when the
	 * library has subscribed again because the port or the SM has changed, or because the
	 * SA had forgotten the subscription:
	 * 0           the SA has the subscription
	 * -EIO        the SA has responded with an error, which is in "status"
	 * -ETIMEDOUT  the SA does not respond
	 * -EBADMSG    the response is to another subscription
	 * -ENETDOWN   the port is not Active, or has no SM
	 * or an error of struct mad_reply
	 *
	 * MAD_NOTICE_END:
	 * 0           mad_notices_stop() was called, and the subscription is cancelled. If
	 *             status is 0x200, the SA had forgotten the subscription before.
	 * -ENODEV     the device is gone
	 * -ECANCELED  the port was closed, the engine destroyed, or the process has forked
	 * or an error of the request that cancels the subscription
	 */
	int error;
	unsigned status;

	/**
	 * MAD_NOTICE_SUBSCRIPTION with error 0, if the SA had the subscription before: between
	 * these times, reports may have been lost. Microseconds of CLOCK_MONOTONIC. At the
	 * first one, the SA had the subscription for certain.
	 */
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
};

/**
 * Decodes a Notice of size bytes: 64 in a trap, 80 in a Report. The call decodes the details of
 * the traps 64 to 67, 128 to 131, 144, 145 and 256 to 259 (IBA 14.2.5.1). The details of other
 * traps are only in "raw". DataValid of trap 259 (raw[10] and raw[11]) tells which details the
 * switch knows.
 *
 * -EINVAL   an argument is NULL
 * -EBADMSG  the Notice is shorter than 64 bytes
 */
int mad_notice_decode(const void *raw, size_t size, struct mad_notice *notice);

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
};

/**
 * A member that is 0 has its default. The memberships and subscriptions of an engine share
 * their checks: the shortest intervals count.
 */
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
 * Starts notices on an engine. The call does not wait for the SA: the callback gets the result
 * (MAD_NOTICE_SUBSCRIPTION). options may be NULL. mad_async_wait() does not return before the
 * notices have ended.
 *
 * -EADDRINUSE  another agent on the port gets Reports, of this process or of another one
 * -EINVAL      an argument is wrong
 * -EPROTONOSUPPORT  a class is not registered on the port
 * -ENOMEM      out of memory
 * -ENODEV      the device is gone
 * -ECANCELED   as mad_server_start()
 */
int mad_notices_start(struct mad_async *async, const struct mad_notices_options *options,
		      mad_notice_fn *callback, void *arg, struct mad_notices **notices);

/**
 * Ends notices: the engine cancels the subscription, and calls back with MAD_NOTICE_END. The
 * call does not wait for this callback. If the SA does not respond, the callback comes when the
 * requests have timed out: after about 3 s by default (mad_rpc_set_timeout(),
 * mad_rpc_set_retries()), and 7 s with 16 filters.
 *
 * Any thread and any callback may call mad_notices_stop(). NULL is allowed.
 *
 * The callback with MAD_NOTICE_END comes exactly once, also without a stop: when the device is
 * gone, the port was closed or the engine is destroyed. After it the notices do not exist any
 * more: mad_notices_stop() and mad_notices_get_stats() must not be called. In this callback,
 * mad_notices_get_stats() may be called.
 *
 * mad_async_free() ends notices at once, and does not cancel the subscription. The SA keeps
 * the subscription, and sends Reports, which nobody confirms, until it is restarted or detects
 * that the port is gone.
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

/**
 * size is sizeof(*stats), so that members can be added.
 * -EINVAL     notices or stats is NULL
 * -ECANCELED  the port is lost in a child of fork()
 */
int mad_notices_get_stats(struct mad_notices *notices, struct mad_notices_stats *stats,
			  size_t size);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_NOTICE_H */
