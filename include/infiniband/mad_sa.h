/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_sa.h - questions to subnet administration (SA), and tables of records as answers.
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
 * The port must have IB_SA_CLASS registered, as mad_rpc_open_port() does it, and
 * IB_SMI_DIRECT_CLASS for the SA's address to be found out.
 *
 * Byte order: records are as on the wire, the members of struct mad_sa_query in the host's
 * order. mad_get_field() reads records of which mad.h has fields; PortInfo's begin at byte
 * 4 of a PortInfoRecord.
 *
 * Threads: any number may ask on one port at once, and read one table.
 *
 * Calls return 0 or a negative errno: -EIO an answer with a status other than 0 (BUSY and
 * redirections are seen to), -ETIMEDOUT none, -ENXIO no SA on the subnet, -EMSGSIZE more
 * than mad_port_set_max_reply() allows, -EINVAL, -ENOMEM, -ENODEV, and what is said of
 * each. Chapters are those of the InfiniBand Architecture Specification (IBA), volume 1.
 */
#ifndef INFINIBAND_MAD_SA_H
#define INFINIBAND_MAD_SA_H

#include <infiniband/mad.h>
#include <infiniband/umad_sa_mcm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- the key -------------------------------------------------------------------- */

/**
 * Sets the SM_Key of a port's SA requests, in host order. The default is 0. The M_Key of SMPs
 * is another key: smp_mkey_set(). Does nothing if the port is NULL.
 */
void sa_key_set(struct ibmad_port *srcport, uint64_t sa_key);
/** The SM_Key of a port's SA requests, in host order; 0 for NULL. */
uint64_t sa_key_get(const struct ibmad_port *srcport);

/* --- any attribute -------------------------------------------------------------- */

/** A question. What is 0 is left to the library. */
struct mad_sa_query {
	unsigned attribute; /**< an SA_ATTR_ID */
	unsigned modifier;
	uint64_t component_mask; /**< the components of record that count; 0: all records */
	const void *record;      /**< what to look for; NULL: zeros */
	size_t record_size;      /**< its bytes, 200 at most */
	int timeout_ms;          /**< an attempt; 0: the port's */
	const ib_portid_t *sa;   /**< where to ask; NULL: the port's subnet manager */
	unsigned status;         /**< comes back: the answer's, 0 without an answer */
};

/** Records, in the order in which they came. */
struct mad_sa_table;

/**
 * Asks for all records that match (SubnAdmGetTable, IBA 15.4.6), however many. A status
 * that says there are none gives a table of none. -EBADMSG: what came is no table;
 * -EPROTO: its records are shorter than those of that attribute, or than record.
 */
int mad_sa_get_table(const struct ibmad_port *port, struct mad_sa_query *query,
		     struct mad_sa_table **table);

/**
 * Asks for the one record that matches (SubnAdmGet, IBA 15.4.5), of which size bytes, 200
 * at most, go to record. -EIO with query->status 0x300 there is none, 0x400 several;
 * -EBADMSG the answer is shorter than that.
 */
int mad_sa_get(const struct ibmad_port *port, struct mad_sa_query *query, void *record,
	       size_t size);

size_t mad_sa_table_count(const struct mad_sa_table *table);
/** Bytes of each record: not less than the attribute's, rounded up to a multiple of 8. */
size_t mad_sa_table_record_size(const struct mad_sa_table *table);
/** A record, aligned to 8 bytes, the table's; NULL beyond the last one. */
void *mad_sa_table_record(const struct mad_sa_table *table, size_t index);
/** NULL is fine. */
void mad_sa_table_free(struct mad_sa_table *table);

/* --- records that mad.h has no fields for --------------------------------------- */

/** LinkRecord (IBA 15.2.5.15). */
struct mad_sa_link_record {
	__be16 from_lid;
	uint8_t from_port;
	uint8_t to_port;
	__be16 to_lid;
	uint8_t pad[2];
};

/** PortInfoRecord (IBA 15.2.5.3). */
struct mad_sa_port_info_record {
	__be16 lid;
	uint8_t port;
	uint8_t options;
	uint8_t port_info[64];
	uint8_t pad[4];
};

/** InformInfoRecord (IBA 15.2.5.12): a subscription to notices. */
struct mad_sa_inform_info_record {
	uint8_t subscriber_gid[16];
	__be16 number; /**< of the subscriber's */
	uint8_t reserved[6];
	uint8_t gid[16]; /**< of whom notices are forwarded (InformInfo, IBA 13.4.8.3) */
	__be16 lid_begin;
	__be16 lid_end;
	__be16 reserved2;
	uint8_t is_generic;
	uint8_t subscribe;
	__be16 type;
	__be16 trap_number; /**< of vendors: the device */
	__be32 qpn_resp_time;
	__be32 producer_type; /**< or the vendor; its upper 8 bits are reserved */
	uint8_t pad[4];
};

/* --- the usual questions -------------------------------------------------------- */

/** PathRecords (IB_SA_PR_*_F) from one port to another; a GID may be NULL: from or to all. */
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

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_MAD_SA_H */
