/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_sa.h - a client of the subnet administrator (SA): requests for any attribute, multicast
 * memberships, services.
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
 * Needs IB_SA_CLASS, and IB_SMI_DIRECT_CLASS to find the SA; mad_port_open() registers both.
 * Records are in wire order (mad_sa_records.h). Any number of threads may use a port or read a
 * table. Calls return 0 or a negative errno (mad_errors.h).
 */
#ifndef INFINIBAND_MAD_SA_H
#define INFINIBAND_MAD_SA_H

#include <infiniband/mad_async.h>
#include <infiniband/mad_sa_records.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A request. 0 stands for the default of each member. */
struct mad_sa_query {
	int method; /**< IB_MAD_METHOD_GET_TABLE (0), GET, SET, DELETE, GETMULTI */
	unsigned attribute;
	unsigned modifier;
	uint64_t component_mask;         /**< components of record to match */
	const void *record;              /**< NULL: zeros */
	size_t record_size;              /**< at most 200, except with GETMULTI */
	int timeout_ms;                  /**< of an attempt; 0: the port's */
	unsigned time_limit_ms;          /**< of mad_sa_request() as a whole; 0: no limit */
	const ib_portid_t *sa;           /**< NULL: the port's subnet manager */
	const struct mad_cancel *cancel; /**< for mad_sa_request() only */
	uint64_t reserved[4];
};

/** Records in the order of the response. */
struct mad_sa_table {
	size_t count;
	size_t record_size; /**< padded to a multiple of 8 */
};

/**
 * Sends a request and waits. GetTable and GetMulti may return an empty table, other methods
 * return one record or fail with -EIO and mad_last_failure()->status. Free the table (may be
 * NULL) with mad_sa_table_free(). A Set or Delete that timed out may have been executed. In
 * MCMemberRecords and ServiceRecords to set or delete, a zero PortGID or ServiceGID stands for
 * the port's GID.
 */
int mad_sa_request(struct ibmad_port *port, const struct mad_sa_query *query,
		   struct mad_sa_table **table);

struct mad_sa_response {
	int error;
	unsigned status;            /**< MAD status; 0 without a response */
	struct mad_sa_table *table; /**< freed by the callback; NULL on error */
	/** the last MAD, valid during the callback; never NULL */
	const struct mad_reply *reply;
};

/** Called once per request. */
typedef void mad_sa_fn(struct mad_async *async, const struct mad_sa_response *response,
		       void *arg);

/** The same on an engine; time_limit_ms and cancel must be 0, *id is for mad_async_cancel(). */
int mad_sa_submit(struct mad_async *async, const struct mad_sa_query *query, mad_sa_fn *done,
		  void *arg, uint64_t *id);

/** Returns a record, 8-byte aligned and owned by the table; NULL beyond the last. */
void *mad_sa_table_record(const struct mad_sa_table *table, size_t index);
/** NULL is a no-op. */
void mad_sa_table_free(struct mad_sa_table *table);

/** Requests the PathRecords between two ports. One GID may be NULL for all ports. */
int mad_sa_path_records(struct ibmad_port *port, const ibmad_gid_t sgid, const ibmad_gid_t dgid,
			struct mad_sa_table **table);

/**
 * Makes an MCMemberRecord query to join (SET) or leave (DELETE) the group member->mgid, or to
 * read records by nonzero components (GET_TABLE). Sets the JoinState in *member, which must
 * stay valid. To create a group, add Q_Key, P_Key, traffic class, SL and flow label to
 * component_mask (IBA 15.2.5.17).
 */
void mad_sa_member_query(struct mad_sa_query *query, int method,
			 struct umad_sa_mcmember_record *member, unsigned join_state);

/** The same for a service by id and name. P_Key 0 becomes 0xffff, lease 0 unlimited. */
void mad_sa_service_query(struct mad_sa_query *query, int method,
			  struct mad_sa_service_record *service);

/** A membership that the library restores within 15 s when the SA has lost it. */
struct mad_membership;

struct mad_membership_options {
	/** mgid 0: the SA chooses a group; portgid is ignored */
	const struct umad_sa_mcmember_record *member;
	uint64_t component_mask; /**< other components of member to send */
	unsigned join_state;     /**< UMAD_SA_MCM_JOIN_STATE_... */
	uint64_t reserved[4];    /**< 0 */
};

enum mad_membership_kind {
	MAD_MEMBERSHIP_JOINED,
	MAD_MEMBERSHIP_FAILED, /**< may not be a member; retried */
	MAD_MEMBERSHIP_END     /**< the last callback */
};

/** Valid during the callback. */
struct mad_membership_state {
	enum mad_membership_kind kind;
	int error; /**< of FAILED and END (0: left the group) */
	unsigned status;
	/** what the SA last granted, or NULL */
	const struct umad_sa_mcmember_record *record;
	int changed; /**< record differs from the previous one, for example in its MLID */
	/** joined again: packets may have been lost in this time (CLOCK_MONOTONIC) */
	uint64_t gap_begin_us, gap_end_us;
};

typedef void mad_membership_fn(struct mad_membership *membership,
			       const struct mad_membership_state *state, void *arg);

/**
 * Joins a group and stays a member, without waiting: the callback gets each change, and
 * MAD_MEMBERSHIP_END exactly once. *membership is set before the first callback.
 * mad_async_wait() waits for the end.
 */
int mad_membership_start(struct mad_async *async, const struct mad_membership_options *options,
			 mad_membership_fn *callback, void *arg,
			 struct mad_membership **membership);

/** Leaves the group without waiting; MAD_MEMBERSHIP_END follows. NULL is a no-op. */
void mad_membership_stop(struct mad_membership *membership);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_SA_H */
