/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_sa.h - a client of the subnet administrator (SA): requests for any attribute, memberships
 * in multicast groups, and services.
 *
 *   struct mad_sa_query query = {.attribute = IB_SA_ATTR_NODERECORD};
 *   struct mad_sa_table *nodes;
 *
 *   if (mad_sa_request(port, &query, &nodes) == 0) {
 *           for (size_t i = 0; i < nodes->count; i++)
 *                   use(mad_get_field(mad_sa_table_record(nodes, i), 0, IB_SA_NR_LID_F));
 *           mad_sa_table_free(nodes);
 *   }
 *
 * The port needs IB_SA_CLASS, and IB_SMI_DIRECT_CLASS to find the SA: mad_port_open() registers
 * both. Records are in wire order (mad_sa_records.h), all other members in host order. Any
 * number of threads may use one port and read one table. Calls return 0 or a negative errno,
 * which mad_failure_text() puts in words (mad_errors.h).
 */
#ifndef INFINIBAND_MAD_SA_H
#define INFINIBAND_MAD_SA_H

#include <infiniband/mad_async.h>
#include <infiniband/mad_sa_records.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- requests ------------------------------------------------------------------- */

/** A request. All zero is the default; the library does not change it. */
struct mad_sa_query {
	int method;         /**< IB_MAD_METHOD_GET_TABLE (also 0), GET, SET, DELETE, GETMULTI */
	unsigned attribute; /**< an SA_ATTR_ID */
	unsigned modifier;
	uint64_t component_mask; /**< components of record that the SA uses; 0: none */
	const void *record;      /**< the components; NULL: zeros */
	size_t record_size;      /**< of record, in bytes: at most 200, except with GETMULTI */
	int timeout_ms;          /**< of an attempt; 0: the port's */
	unsigned time_limit_ms;  /**< of mad_sa_request(), all attempts together; 0: no limit */
	const ib_portid_t *sa;   /**< address of the SA; NULL: the port's subnet manager */
	const struct mad_cancel *cancel; /**< cancels mad_sa_request(); NULL: nothing does */
	uint64_t reserved[4];            /**< 0 */
};

/** The records of a response, in its order. Read-only. */
struct mad_sa_table {
	size_t count;
	size_t record_size; /**< bytes of each record, at least the attribute's, padded to 8 */
};

/**
 * Sends a request, and waits for the response. Get, Set and Delete give a table of one record.
 * GetTable and GetMulti succeed with an empty table if no record matches; Get fails with -EIO
 * then. table may be NULL; free it with mad_sa_table_free(). mad_last_failure()->status has the
 * status of the response (-EIO). After a timeout, the SA may have processed a Set or Delete.
 *
 * In a Set or Delete of an MCMemberRecord or a ServiceRecord, a PortGID or ServiceGID of zeros
 * stands for the GID of the port.
 */
int mad_sa_request(struct ibmad_port *port, const struct mad_sa_query *query,
		   struct mad_sa_table **table);

/** The result of mad_sa_submit(). */
struct mad_sa_response {
	int error;                  /**< 0 or a negative errno, as of mad_sa_request() */
	unsigned status;            /**< of the response; 0 without a response */
	struct mad_sa_table *table; /**< the callback frees it; NULL after an error */
	/** The last MAD, freed when the callback returns; never NULL. */
	const struct mad_reply *reply;
};

/** Called once for each request, as a mad_async_fn. */
typedef void mad_sa_fn(struct mad_async *async, const struct mad_sa_response *response,
		       void *arg);

/**
 * As mad_sa_request(), without waiting. *query, its record and its address are copied. *id (id
 * may be NULL) is for mad_async_cancel(), so query->time_limit_ms and query->cancel must be 0
 * (-EINVAL).
 */
int mad_sa_submit(struct mad_async *async, const struct mad_sa_query *query, mad_sa_fn *done,
		  void *arg, uint64_t *id);

/** A record, aligned to 8 bytes, which lives as long as the table; NULL beyond the last one. */
void *mad_sa_table_record(const struct mad_sa_table *table, size_t index);
/** Frees a table; NULL is a no-op. */
void mad_sa_table_free(struct mad_sa_table *table);

/** Requests the PathRecords (IB_SA_PR_..._F) between two ports. One GID may be NULL: all. */
int mad_sa_path_records(struct ibmad_port *port, const ibmad_gid_t sgid, const ibmad_gid_t dgid,
			struct mad_sa_table **table);

/**
 * Fills method, attribute, modifier and record of a query for an MCMemberRecord, and adds to
 * its component_mask: to join the group member->mgid (SET), to leave it (DELETE), or to read
 * records (GET_TABLE: components that are not 0). Sets the JoinState of *member, which must
 * outlive the query. If the group does not exist, the SA creates it when component_mask also
 * has its Q_Key, P_Key, traffic class, SL and flow label (IBA 15.2.5.17).
 */
void mad_sa_member_query(struct mad_sa_query *query, int method,
			 struct umad_sa_mcmember_record *member, unsigned join_state);

/**
 * The same for a ServiceRecord: to register service->id and name (SET), to remove the service
 * (DELETE), or to read records (GET_TABLE: components that are not 0). With SET and DELETE a
 * P_Key of 0 becomes 0xffff, with SET a lease of 0 one that does not end.
 */
void mad_sa_service_query(struct mad_sa_query *query, int method,
			  struct mad_sa_service_record *service);

/* --- memberships that last ------------------------------------------------------ */

/**
 * A membership that the library keeps: when the SA has forgotten it, after a restart of the
 * subnet manager for example, the library joins again, within 15 s, and calls back. A join by
 * mad_sa_request() would be lost without notice.
 */
struct mad_membership;

/** The group to join. */
struct mad_membership_options {
	/** The group is mgid; 0: the SA chooses. portgid is not used: it is the port's GID. */
	const struct umad_sa_mcmember_record *member;
	uint64_t component_mask; /**< other components of member to send, as for a query */
	unsigned join_state;     /**< UMAD_SA_MCM_JOIN_STATE_...; at least one */
	uint64_t reserved[4];    /**< 0 */
};

enum mad_membership_kind {
	MAD_MEMBERSHIP_JOINED, /**< the port is a member */
	MAD_MEMBERSHIP_FAILED, /**< it may not be; the library joins as soon as it can */
	MAD_MEMBERSHIP_END     /**< the last callback: the membership does not exist any more */
};

/** The state of a membership, valid during the callback. */
struct mad_membership_state {
	enum mad_membership_kind kind;
	int error;       /**< of FAILED, and of END: 0 if the port is not a member any more */
	unsigned status; /**< of the SA's response */
	/** What the SA granted most recently; NULL: nothing yet. */
	const struct umad_sa_mcmember_record *record;
	int changed; /**< 1: record differs from the previous one, in its MLID for example */
	/** JOINED again: packets may have been lost in this time (us of CLOCK_MONOTONIC). */
	uint64_t gap_begin_us, gap_end_us;
};

typedef void mad_membership_fn(struct mad_membership *membership,
			       const struct mad_membership_state *state, void *arg);

/**
 * Joins a group and stays a member. Does not wait: the callback gets each change of the state,
 * and MAD_MEMBERSHIP_END exactly once. *membership is set before the first callback. Needs both
 * classes (-EPROTONOSUPPORT). mad_async_wait() returns only after the membership has ended.
 */
int mad_membership_start(struct mad_async *async, const struct mad_membership_options *options,
			 mad_membership_fn *callback, void *arg,
			 struct mad_membership **membership);

/**
 * Leaves the group, then MAD_MEMBERSHIP_END is called back. Does not wait. Any thread and any
 * callback may call it; NULL is a no-op.
 */
void mad_membership_stop(struct mad_membership *membership);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_SA_H */
