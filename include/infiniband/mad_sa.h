/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_sa.h - a client of the subnet administrator (SA): requests for any attribute, tables of
 * records, multicast groups and services.
 *
 *   struct mad_sa_table *table;
 *   size_t i;
 *
 *   if (mad_sa_node_records(port, 0, &table) == 0) {
 *           for (i = 0; i < mad_sa_table_count(table); i++)
 *                   use(mad_get_field(mad_sa_table_record(table, i), 0, IB_SA_NR_LID_F));
 *           mad_sa_table_free(table);
 *   }
 *
 * The port must have IB_SA_CLASS registered, with RMPP as mad_rpc_open_port() registers it. If
 * query->sa is NULL, the port must also have IB_SMI_DIRECT_CLASS: the library finds the address
 * of the SA and the GID of the port by SMPs.
 *
 * The address of the SA. The library sends a request to query->sa, or to the subnet manager in
 * the PortInfo of the port. The library reads PortInfo again in these cases:
 *   - the last read was more than a second ago
 *   - the SA does not respond
 *   - a node responds that does not serve the SA's class
 * If the subnet manager has another LID then, the library sends the request to that LID, three
 * times at most. It also sends the other requests of the engine to that LID before they time
 * out. A read of the local PortInfo causes no traffic on the fabric.
 *
 * Time. An attempt ends after query->timeout_ms, also while the kernel receives a table,
 * because the kernel reports a table only when it is complete. So the timeout should be longer
 * than the time that the longest table takes.
 *
 * Byte order: records are in wire order, the members of struct mad_sa_query are in host order.
 * mad_sa_records.h has structures of records. mad_get_field() reads a record if mad.h has its
 * fields.
 *
 * Memory. mad_sa_table_free() frees a table, also one that a callback gets. Records belong to
 * their table, and are freed with it. mad_membership_stop() ends and frees a membership, and
 * mad_async_free() those of its engine.
 *
 * Threads. Any number of threads may use one port at once, and any number of threads may read
 * one table at once. Callbacks run as those of mad_async.h do, one at a time for an engine,
 * with no lock held.
 *
 * Calls return 0 or a negative errno:
 * -EIO        the response has a status other than 0, which is in query->status; the status is
 *             0x001 if the SA was BUSY in all attempts
 * -ETIMEDOUT  no response came
 * -ENXIO      the port has no subnet manager
 * -EMSGSIZE   the response is longer than mad_port_set_max_reply() allows
 * -EBADMSG    the response is an RMPP message that is shorter than it announced
 * -EINVAL     an argument is wrong
 * -EPROTONOSUPPORT  IB_SA_CLASS is not registered on the port
 * -EPROTONOSUPPORT  IB_SMI_DIRECT_CLASS is not registered on the port, and the call needs it
 * -ENOMEM     out of memory
 * -ENODEV     the device is gone
 * and the other errors of mad_rpc_message(), and those in the comment of the call.
 * mad_status_text() returns query->status in words, and mad_last_failure_text() returns the
 * reason why a blocking call failed (mad_errors.h). Chapters are those of the InfiniBand
 * Architecture Specification (IBA), volume 1.
 */
#ifndef INFINIBAND_MAD_SA_H
#define INFINIBAND_MAD_SA_H

#include <infiniband/mad_async.h>
#include <infiniband/mad_sa_records.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- any attribute -------------------------------------------------------------- */

/** A request. Members that are 0 have a default. */
struct mad_sa_query {
	unsigned attribute; /**< an SA_ATTR_ID */
	unsigned modifier;
	uint64_t component_mask; /**< components that the SA compares; 0: all records match */
	const void *record;      /**< the components; NULL: zeros */
	size_t record_size;      /**< of record in bytes: 200 at most, except for GetMulti */
	int timeout_ms;          /**< of an attempt; 0: the port's */
	const ib_portid_t *sa;   /**< the address of the SA; NULL: the port's subnet manager */
	unsigned status;         /**< a result: that of the response, 0 without a response */
};

/** Records, in the order of the response. */
struct mad_sa_table;

/**
 * SubnAdmGetTable (IBA 15.4.6): all records that match. If no record matches, the call succeeds
 * with an empty table.
 * -EBADMSG  the response is not a table
 * -EPROTO   the records are shorter than those of the attribute, or than query->record
 * -EPROTO   the last record is not complete
 */
int mad_sa_get_table(const struct ibmad_port *port, struct mad_sa_query *query,
		     struct mad_sa_table **table);

/**
 * SubnAdmGet (IBA 15.4.5): one record. size bytes of it, 200 at most, are copied to record. If
 * no record matches, the call fails with query->status 0x300. If several records match, the
 * call fails with query->status 0x400. -EBADMSG  the response is shorter than size
 */
int mad_sa_get(const struct ibmad_port *port, struct mad_sa_query *query, void *record,
	       size_t size);

/**
 * SubnAdmSet (IBA 15.4.3) and SubnAdmDelete (15.4.4). size bytes of the record of the response
 * are copied to record, which may be query->record. With size 0, record may be NULL. If a Set
 * or a Delete timed out, the SA may nevertheless have processed it.
 */
int mad_sa_set(const struct ibmad_port *port, struct mad_sa_query *query, void *record,
	       size_t size);
int mad_sa_delete(const struct ibmad_port *port, struct mad_sa_query *query, void *record,
		  size_t size);

/**
 * SubnAdmGetMulti (IBA 15.4.7): the PathRecords for a MultiPathRecord. query->record is a
 * struct mad_sa_multi_path_record and its GIDs. query->attribute is IB_SA_ATTR_MULTIPATH. An SA
 * without MultiPathRecord responds with status 0x00c or 0x008. The errors are those of
 * mad_sa_get_table().
 */
int mad_sa_get_multi(const struct ibmad_port *port, struct mad_sa_query *query,
		     struct mad_sa_table **table);

/** The limits of a blocking request. All members may be 0. */
struct mad_sa_limits {
	unsigned time_limit_ms;          /**< milliseconds of the whole call; 0: no limit */
	const struct mad_cancel *cancel; /**< cancels the call, see mad_cancel_set(); or NULL */
	uint64_t reserved[2];            /**< 0 */
};

/**
 * A blocking request with limits. It does the same as mad_sa_get(), mad_sa_set(),
 * mad_sa_delete(), mad_sa_get_table() or mad_sa_get_multi() with the method IB_MAD_METHOD_GET,
 * SET, DELETE, GET_TABLE or GETMULTI. GET_TABLE and GETMULTI need table, the others use record
 * and size. The errors are those of these calls, and
 * -ETIME      the time of limits->time_limit_ms is over
 * -ECANCELED  limits->cancel is set, or the port was closed
 * -ENETDOWN   the link of the local port is down: if IB_SMI_DIRECT_CLASS is registered, the
 *             library reads its PortInfo four times a second
 */
int mad_sa_request(const struct ibmad_port *port, int method, struct mad_sa_query *query,
		   const struct mad_sa_limits *limits, void *record, size_t size,
		   struct mad_sa_table **table);

/* --- on an engine --------------------------------------------------------------- */

/** The result of a request. Only table belongs to the callback. The memory that the other
 * pointers point to is freed when the callback returns. */
struct mad_sa_response {
	int error;       /**< 0, or an error of the blocking call or of struct mad_reply */
	unsigned status; /**< of the response, 0 without a response */
	const struct mad_reply *reply; /**< the last MAD of the request, with the error above,
					  for mad_reply_text(); never NULL */
	struct mad_sa_table *table;    /**< of GetTable and GetMulti; the callback frees it by
					  mad_sa_table_free(). NULL after an error */
	const void *record;            /**< of the other methods; NULL after an error */
	size_t record_size; /**< of record in bytes: not less than the attribute has */
};

/** Called once for each request, in the same threads as a mad_async_fn. */
typedef void mad_sa_fn(struct mad_async *async, const struct mad_sa_response *response,
		       void *arg);

/**
 * Submits a request with the method IB_MAD_METHOD_GET, SET, DELETE, GET_TABLE or GETMULTI, and
 * returns without waiting. *query, its record and its address are copied. The requests of an
 * engine that need the address of the SA share one read of the PortInfo.
 *
 * If id is not NULL, *id becomes a number for mad_sa_cancel(), not for mad_async_cancel(). The
 * errors are those of mad_async_submit().
 */
int mad_sa_submit(struct mad_async *async, int method, const struct mad_sa_query *query,
		  mad_sa_fn *done, void *arg, uint64_t *id);

/**
 * Cancels a request: a later mad_async_process() calls it back with -ECANCELED.
 *
 * -EINVAL     async is NULL
 * -ENOENT     the request is cancelled or complete, or does not exist
 * -ECANCELED  the port is lost in a child of fork() (mad_async.h)
 */
int mad_sa_cancel(struct mad_async *async, uint64_t id);

/* --- tables --------------------------------------------------------------------- */

size_t mad_sa_table_count(const struct mad_sa_table *table);
/** Bytes of each record: not less than the attribute's, rounded up to a multiple of 8. */
size_t mad_sa_table_record_size(const struct mad_sa_table *table);
/** A record, aligned to 8 bytes, which is a part of the table; NULL beyond the last one. */
void *mad_sa_table_record(const struct mad_sa_table *table, size_t index);
/** NULL is allowed. */
void mad_sa_table_free(struct mad_sa_table *table);

/* --- the usual tables ----------------------------------------------------------- */

/** PathRecords (IB_SA_PR_*_F) from one port to another. One GID may be NULL: all ports. */
int mad_sa_path_records(const struct ibmad_port *port, const ibmad_gid_t sgid,
			const ibmad_gid_t dgid, struct mad_sa_table **table);
/** NodeRecords (IB_SA_NR_*_F) of a LID; 0: of all. */
int mad_sa_node_records(const struct ibmad_port *port, uint16_t lid,
			struct mad_sa_table **table);
/** PortInfoRecords of a LID; 0: of all. */
int mad_sa_port_info_records(const struct ibmad_port *port, uint16_t lid,
			     struct mad_sa_table **table);
/** LinkRecords from a LID; 0: from all. */
int mad_sa_link_records(const struct ibmad_port *port, uint16_t from_lid,
			struct mad_sa_table **table);
/** MCMemberRecords (struct umad_sa_mcmember_record) of a group; NULL: of all. */
int mad_sa_mc_member_records(const struct ibmad_port *port, const ibmad_gid_t mgid,
			     struct mad_sa_table **table);
/** ServiceRecords (IB_SA_SR_*_F) of a name of up to 64 bytes; NULL: all. */
int mad_sa_service_records(const struct ibmad_port *port, const char *name,
			   struct mad_sa_table **table);
/** InformInfoRecords of a subscriber; NULL: of all. */
int mad_sa_inform_info_records(const struct ibmad_port *port, const ibmad_gid_t subscriber,
			       struct mad_sa_table **table);

/* --- multicast groups (IBA 15.2.5.17) ------------------------------------------- */

/**
 * Joins the multicast group member->mgid with a JoinState: UMAD_SA_MCM_JOIN_STATE_FULL_MEMBER,
 * UMAD_SA_MCM_JOIN_STATE_SEND_ONLY_NON_MEMBER, ... member becomes the record that the SA has
 * granted, with MLID, Q_Key, P_Key, MTU, rate and SL. A member->portgid of zeros stands for the
 * GID of the port.
 *
 * query may be NULL. Its component_mask selects the other components of member that the request
 * contains. If the group does not exist, the SA creates it if Q_Key, P_Key, traffic class, SL
 * and flow label are among them (IBA 15.2.5.17). timeout_ms, sa and status are as for
 * mad_sa_set(). The call sets the other members of query.
 */
int mad_sa_join(const struct ibmad_port *port, struct mad_sa_query *query,
		struct umad_sa_mcmember_record *member, unsigned join_state);

/**
 * Ends the membership in the group member->mgid with the bits of join_state. member becomes the
 * record of the response. The arguments are as for mad_sa_join(). If the port is not a member,
 * the call fails with query->status 0x200.
 */
int mad_sa_leave(const struct ibmad_port *port, struct mad_sa_query *query,
		 struct umad_sa_mcmember_record *member, unsigned join_state);

/**
 * Fills a query for mad_sa_submit() with method IB_MAD_METHOD_SET, to join, or
 * IB_MAD_METHOD_DELETE, to leave. member->mgid and member->portgid must be set. The query
 * points to member.
 */
void mad_sa_member_fill_query(struct mad_sa_query *query,
			      struct umad_sa_mcmember_record *member, unsigned join_state);

/* --- memberships that last ------------------------------------------------------ */

/**
 * A membership that the library keeps until the program ends it. mad_sa_join() joins once:
 * after a restart of the subnet manager, the SA may have forgotten the membership, and no call
 * reports that. For a membership on an engine, the library notices that the SA has forgotten
 * it, joins again, and calls back. The same holds for a subscription to notices (mad_notice.h).
 *
 * The checks. All memberships and subscriptions of an engine share these checks:
 *   - Once a second the library reads the PortInfo of the local port, by an SMP that does not
 *     leave the port. It joins again when the LID of the port, its GID prefix, or the LID or
 *     the SL of the SM has changed, and when the port has become Active.
 *   - Once in 5 s the library requests the SA's records of the local port, MCMemberRecords and
 *     InformInfoRecords in turn. If a record is missing, it joins again, and checks the
 *     records of the other kind after a second.
 *
 * A check is one MAD, and one in each further second in which the SA does not respond. The
 * kernel acknowledges the table by another MAD. The number of checks does not depend on the
 * number of memberships. If mad_notices_start() sets other intervals on the same engine, the
 * shortest ones count.
 *
 * The library joins again within 15 s after the SA can respond, if the timeout of the port is a
 * second or less (mad_rpc_set_timeout()).
 *
 * If a join fails, the library joins again, in intervals that grow from 1 s to 8 s. It begins
 * one such retry in a second.
 *
 * If an SM that is restarted still has the membership, and responds again before the next
 * check, the library does not notice the restart.
 *
 * Some SAs have no such tables, or do not list the members. Then the library joins again every
 * 10 s, one membership in a second, and the callback does not get a gap.
 */
struct mad_membership;

enum mad_membership_kind {
	MAD_MEMBERSHIP_JOINED, /**< the port is a member */
	MAD_MEMBERSHIP_FAILED, /**< the port may not be a member */
	MAD_MEMBERSHIP_END     /**< the last callback */
};

/** The state of a membership. It is valid only during the callback. */
struct mad_membership_state {
	enum mad_membership_kind kind;

	/**
	 * MAD_MEMBERSHIP_FAILED: the library joins as soon as it can.
	 * -EIO        the SA has responded with an error, which is in "status"
	 * -ETIMEDOUT  the SA does not respond
	 * -EBADMSG    the response is too short, or is about another group
	 * -ENETDOWN   the port is not Active, or has no SM
	 * or an error of struct mad_reply
	 *
	 * MAD_MEMBERSHIP_END:
	 * 0           mad_membership_stop() was called, and the port is not a member any more,
	 *             or no request to join was sent
	 *             If status is 0x200, the SA had forgotten the membership before.
	 * -ENETDOWN   the port is not Active, or has no SM: the SA was not told
	 * -ENODEV     the device is gone
	 * -ECANCELED  the port was closed, the engine destroyed, or the process has forked
	 * or an error of the request that ends the membership
	 */
	int error;
	unsigned status;

	/** The record that the SA has granted most recently; NULL: it has not granted any. */
	const struct umad_sa_mcmember_record *record;
	/** 1: the record differs from the previous one, in the MLID for example. */
	int changed;

	/**
	 * MAD_MEMBERSHIP_JOINED, if the port was a member before: between these times, it may
	 * not have been one, and packets may have been lost. Microseconds of CLOCK_MONOTONIC.
	 * At the first one, the SA had the membership for certain.
	 */
	uint64_t gap_begin_us, gap_end_us;
};

typedef void mad_membership_fn(struct mad_membership *membership,
			       const struct mad_membership_state *state, void *arg);

/**
 * Joins the group member->mgid with the GID of the port; member->portgid is not used. If
 * member->mgid is 0, the SA chooses the group, and later joins are to this group. *member is
 * copied. *membership is set before the first callback, which another thread may run before
 * the call returns. component_mask and join_state are as for mad_sa_join(). The call does not
 * wait for the SA: the callback gets the state, when it changes, in the thread that processes
 * the engine. mad_async_wait() does not return before the membership has ended.
 *
 * If the group does not exist after a restart of the subnet manager, the SA creates it only if
 * the request has the components that a new group needs.
 *
 * The port must have IB_SA_CLASS and IB_SMI_DIRECT_CLASS registered.
 *
 * -EINVAL           an argument is wrong
 * -EPROTONOSUPPORT  a class is not registered on the port
 * -ENOMEM           out of memory
 * -ENODEV           the device is gone
 * -ECANCELED        the port is closed, the engine is being destroyed, or the process has
 *                   forked
 */
int mad_membership_start(struct mad_async *async, const struct umad_sa_mcmember_record *member,
			 uint64_t component_mask, unsigned join_state,
			 mad_membership_fn *callback, void *arg,
			 struct mad_membership **membership);

/**
 * Ends a membership: the engine leaves the group, and calls back with MAD_MEMBERSHIP_END. The
 * call does not wait for this callback. Any thread and any callback may call it. NULL is
 * allowed.
 *
 * The callback with MAD_MEMBERSHIP_END comes exactly once, also without a stop: when the device
 * is gone, the port was closed or the engine is destroyed. Then the library does not leave the
 * group. After this callback the membership does not exist any more.
 *
 * The SA has one membership of a port in a group. If two programs on a port have joined the
 * group with the same join state, the first one that leaves ends both; the library then joins
 * again for the other one.
 */
void mad_membership_stop(struct mad_membership *membership);

/* --- services (IBA 15.2.5.14) --------------------------------------------------- */

/**
 * Registers a service, or changes it, until its lease ends. service->id and name must be set.
 * Other members that are 0 have a default: gid is the GID of the port, pkey is 0xffff, and the
 * lease does not end. service becomes the record of the response. query may be NULL. The call
 * uses its members timeout_ms and sa, and sets status. mad_sa_service_records() requests
 * services by name.
 */
int mad_sa_service_set(const struct ibmad_port *port, struct mad_sa_query *query,
		       struct mad_sa_service_record *service);

/**
 * Removes the service with the id, gid, pkey and key of service; a gid of zeros and a pkey of 0
 * are as above. If service->id is 0, the call removes all services of this gid with
 * service->name.
 *
 * -EIO with status 0x300  the service does not exist
 */
int mad_sa_service_delete(const struct ibmad_port *port, struct mad_sa_query *query,
			  struct mad_sa_service_record *service);

/**
 * Fills a query for mad_sa_submit() with method IB_MAD_METHOD_SET or IB_MAD_METHOD_DELETE. The
 * component mask has no bits for components that are 0, except for the data. The query points
 * to service.
 */
void mad_sa_service_fill_query(struct mad_sa_query *query,
			       const struct mad_sa_service_record *service);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_SA_H */
