/* SPDX-License-Identifier: BSD-2-Clause */

/* Frequent requests for tables of the SA. */

#include "base/export.h"
#include "sa/sa.h"

#include <infiniband/mad_sa.h>
#include <errno.h>
#include <stddef.h>

/* The maximum of NumbPath. */
#define ALL_PATHS 127

static int get_table(const struct ibmad_port *port, unsigned attribute, uint64_t mask,
		     const void *record, size_t size, struct mad_sa_table **table)
{
	struct mad_sa_query query = {
		.attribute = attribute,
		.component_mask = mask,
		.record = record,
		.record_size = size,
	};

	return mad_sa_get_table(port, &query, table);
}

/* mad_set_array() only reads it. */
static void set_gid(void *record, enum MAD_FIELDS field, const ibmad_gid_t gid)
{
	ibmad_gid_t copy;

	memcpy(copy, gid, sizeof(copy));
	mad_set_array(record, 0, field, copy);
}

EXPORT int mad_sa_path_records(const struct ibmad_port *port, const ibmad_gid_t sgid,
			       const ibmad_gid_t dgid, struct mad_sa_table **table)
{
	uint8_t path[IB_SA_PR_RECSZ] = {0};
	uint64_t mask = MAD_SA_PATH_NUMB_PATH;

	if (sgid) {
		set_gid(path, IB_SA_PR_SGID_F, sgid);
		mask |= MAD_SA_PATH_SGID;
	}
	if (dgid) {
		set_gid(path, IB_SA_PR_DGID_F, dgid);
		mask |= MAD_SA_PATH_DGID;
	}
	mad_set_field(path, 0, IB_SA_PR_NPATH_F, ALL_PATHS);
	return get_table(port, IB_SA_ATTR_PATHRECORD, mask, path, sizeof(path), table);
}

EXPORT int mad_sa_node_records(const struct ibmad_port *port, uint16_t lid,
			       struct mad_sa_table **table)
{
	uint8_t node[IB_SA_NR_RECSZ] = {0};

	mad_set_field(node, 0, IB_SA_NR_LID_F, lid);
	return get_table(port, IB_SA_ATTR_NODERECORD, lid ? MAD_SA_NODE_LID : 0, node,
			 sizeof(node), table);
}

EXPORT int mad_sa_port_info_records(const struct ibmad_port *port, uint16_t lid,
				    struct mad_sa_table **table)
{
	struct mad_sa_port_info_record record = {.lid = htobe16(lid)};

	return get_table(port, IB_SA_ATTR_PORTINFORECORD, lid ? MAD_SA_PORT_INFO_LID : 0,
			 &record, offsetof(struct mad_sa_port_info_record, pad), table);
}

EXPORT int mad_sa_link_records(const struct ibmad_port *port, uint16_t from_lid,
			       struct mad_sa_table **table)
{
	struct mad_sa_link_record record = {.from_lid = htobe16(from_lid)};

	return get_table(port, IB_SA_ATTR_LINKRECORD, from_lid ? MAD_SA_LINK_FROM_LID : 0,
			 &record, offsetof(struct mad_sa_link_record, pad), table);
}

EXPORT int mad_sa_mc_member_records(const struct ibmad_port *port, const ibmad_gid_t mgid,
				    struct mad_sa_table **table)
{
	struct umad_sa_mcmember_record record = {0};

	if (mgid)
		memcpy(record.mgid, mgid, sizeof(record.mgid));
	return get_table(port, IB_SA_ATTR_MCRECORD, mgid ? UMAD_SA_MCM_COMP_MASK_MGID : 0,
			 &record, offsetof(struct umad_sa_mcmember_record, pad), table);
}

EXPORT int mad_sa_service_records(const struct ibmad_port *port, const char *name,
				  struct mad_sa_table **table)
{
	struct mad_sa_service_record record = {0};

	if (name) {
		if (strlen(name) > sizeof(record.name)) {
			if (table)
				*table = NULL;
			return sa_query_fail(NULL, IB_MAD_METHOD_GET_TABLE, -EINVAL);
		}
		memcpy(record.name, name, strlen(name));
	}
	return get_table(port, IB_SA_ATTR_SERVICERECORD, name ? MAD_SA_SERVICE_NAME : 0,
			 &record, sizeof(record), table);
}

EXPORT int mad_sa_inform_info_records(const struct ibmad_port *port,
				      const ibmad_gid_t subscriber, struct mad_sa_table **table)
{
	struct mad_sa_inform_info_record record = {0};

	if (subscriber)
		memcpy(record.subscriber_gid, subscriber, sizeof(record.subscriber_gid));
	return get_table(port, IB_SA_ATTR_INFORMINFORECORD,
			 subscriber ? MAD_SA_INFORM_RECORD_SUBSCRIBER_GID : 0, &record,
			 offsetof(struct mad_sa_inform_info_record, pad), table);
}
