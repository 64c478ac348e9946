/* SPDX-License-Identifier: BSD-2-Clause */

/* The usual questions to subnet administration. Components are those of IBA 15.2.5. */

#include "base/export.h"
#include "classes/sa_table.h"

#include <infiniband/mad_sa.h>
#include <errno.h>
#include <stddef.h>

#define PATH_DGID             (UINT64_C(1) << 2)
#define PATH_SGID             (UINT64_C(1) << 3)
#define PATH_NUMB_PATH        (UINT64_C(1) << 12)
#define NODE_LID              (UINT64_C(1) << 0)
#define PORT_INFO_LID         (UINT64_C(1) << 0)
#define LINK_FROM_LID         (UINT64_C(1) << 0)
#define SERVICE_NAME          (UINT64_C(1) << 6)
#define INFORM_SUBSCRIBER_GID (UINT64_C(1) << 0)

/* As many paths as the field can ask for. */
#define ALL_PATHS         127
#define SERVICE_NAME_SIZE 64

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
	uint64_t mask = PATH_NUMB_PATH;

	if (sgid) {
		set_gid(path, IB_SA_PR_SGID_F, sgid);
		mask |= PATH_SGID;
	}
	if (dgid) {
		set_gid(path, IB_SA_PR_DGID_F, dgid);
		mask |= PATH_DGID;
	}
	mad_set_field(path, 0, IB_SA_PR_NPATH_F, ALL_PATHS);
	return get_table(port, IB_SA_ATTR_PATHRECORD, mask, path, sizeof(path), table);
}

EXPORT int mad_sa_node_records(const struct ibmad_port *port, uint16_t lid,
			       struct mad_sa_table **table)
{
	uint8_t node[IB_SA_NR_RECSZ] = {0};

	mad_set_field(node, 0, IB_SA_NR_LID_F, lid);
	return get_table(port, IB_SA_ATTR_NODERECORD, lid ? NODE_LID : 0, node, sizeof(node),
			 table);
}

EXPORT int mad_sa_port_info_records(const struct ibmad_port *port, uint16_t lid,
				    struct mad_sa_table **table)
{
	struct mad_sa_port_info_record record = {.lid = htobe16(lid)};

	return get_table(port, IB_SA_ATTR_PORTINFORECORD, lid ? PORT_INFO_LID : 0, &record,
			 offsetof(struct mad_sa_port_info_record, pad), table);
}

EXPORT int mad_sa_link_records(const struct ibmad_port *port, uint16_t from_lid,
			       struct mad_sa_table **table)
{
	struct mad_sa_link_record record = {.from_lid = htobe16(from_lid)};

	return get_table(port, IB_SA_ATTR_LINKRECORD, from_lid ? LINK_FROM_LID : 0, &record,
			 offsetof(struct mad_sa_link_record, pad), table);
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
	uint8_t service[SERVICE_RECORD_SIZE] = {0};
	uint8_t text[SERVICE_NAME_SIZE] = {0};

	if (name) {
		if (strlen(name) > sizeof(text)) {
			if (table)
				*table = NULL;
			return -EINVAL;
		}
		memcpy(text, name, strlen(name));
		mad_set_array(service, 0, IB_SA_SR_NAME_F, text);
	}
	return get_table(port, IB_SA_ATTR_SERVICERECORD, name ? SERVICE_NAME : 0, service,
			 sizeof(service), table);
}

EXPORT int mad_sa_inform_info_records(const struct ibmad_port *port,
				      const ibmad_gid_t subscriber, struct mad_sa_table **table)
{
	struct mad_sa_inform_info_record record = {0};

	if (subscriber)
		memcpy(record.subscriber_gid, subscriber, sizeof(record.subscriber_gid));
	return get_table(port, IB_SA_ATTR_INFORMINFORECORD,
			 subscriber ? INFORM_SUBSCRIBER_GID : 0, &record,
			 offsetof(struct mad_sa_inform_info_record, pad), table);
}
