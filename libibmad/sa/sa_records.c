/* SPDX-License-Identifier: BSD-2-Clause */

/* Queries for paths, multicast groups and services (IBA 15.2.5.14 to 15.2.5.17). */

#include "base/export.h"
#include "sa/sa.h"

#include <infiniband/mad_sa.h>
#include <stddef.h>

/* The maximum of NumbPath. */
#define ALL_PATHS    127
#define DEFAULT_PKEY 0xffff
#define NO_END       UINT32_MAX /* of a lease */

static bool is_zero(const void *bytes, size_t size)
{
	const uint8_t *at = bytes;

	while (size && !*at) {
		at++;
		size--;
	}
	return !size;
}

static bool is_change(int method)
{
	return method == IB_MAD_METHOD_SET || method == IB_MAD_METHOD_DELETE;
}

EXPORT int mad_sa_path_records(struct ibmad_port *port, const ibmad_gid_t sgid,
			       const ibmad_gid_t dgid, struct mad_sa_table **table)
{
	struct mad_sa_path_record path = {.reversible_num = ALL_PATHS};
	const struct mad_sa_query query = {
		.attribute = IB_SA_ATTR_PATHRECORD,
		.component_mask = MAD_SA_PATH_NUMB_PATH | (sgid ? MAD_SA_PATH_SGID : 0) |
				  (dgid ? MAD_SA_PATH_DGID : 0),
		.record = &path,
		.record_size = sizeof(path),
	};

	if (sgid)
		memcpy(path.sgid, sgid, sizeof(path.sgid));
	if (dgid)
		memcpy(path.dgid, dgid, sizeof(path.dgid));
	return mad_sa_request(port, &query, table);
}

EXPORT void mad_sa_member_query(struct mad_sa_query *query, int method,
				struct umad_sa_mcmember_record *member, unsigned join_state)
{
	bool all = is_change(method);

	umad_sa_mcm_set_join_state(member, (uint8_t)join_state);
	if (all || !is_zero(member->mgid, sizeof(member->mgid)))
		query->component_mask |= UMAD_SA_MCM_COMP_MASK_MGID;
	if (all || !is_zero(member->portgid, sizeof(member->portgid)))
		query->component_mask |= UMAD_SA_MCM_COMP_MASK_PORT_GID;
	if (all || join_state)
		query->component_mask |= UMAD_SA_MCM_COMP_MASK_JOIN_STATE;
	query->method = method;
	query->attribute = IB_SA_ATTR_MCRECORD;
	query->modifier = 0;
	query->record = member;
	query->record_size = offsetof(struct umad_sa_mcmember_record, pad);
}

/* All data have a component each; zeros are data, too. */
static uint64_t service_data(void)
{
	uint64_t mask = 0;

	for (unsigned i = 0; i < 30; i++)
		mask |= MAD_SA_SERVICE_DATA8(i); /* and the next values */
	return mask;
}

EXPORT void mad_sa_service_query(struct mad_sa_query *query, int method,
				 struct mad_sa_service_record *service)
{
	uint64_t mask = 0;

	if (is_change(method) && !service->pkey)
		service->pkey = htobe16(DEFAULT_PKEY);
	if (method == IB_MAD_METHOD_SET && !service->lease)
		service->lease = htobe32(NO_END);
	mask |= service->id ? MAD_SA_SERVICE_ID : 0;
	mask |= service->pkey ? MAD_SA_SERVICE_PKEY : 0;
	mask |= is_zero(service->key, sizeof(service->key)) ? 0 : MAD_SA_SERVICE_KEY;
	mask |= service->name[0] ? MAD_SA_SERVICE_NAME : 0;
	if (is_change(method) || !is_zero(service->gid, sizeof(service->gid)))
		mask |= MAD_SA_SERVICE_GID;
	if (method != IB_MAD_METHOD_DELETE && service->lease)
		mask |= MAD_SA_SERVICE_LEASE;
	if (method == IB_MAD_METHOD_SET)
		mask |= service_data();
	query->method = method;
	query->attribute = IB_SA_ATTR_SERVICERECORD;
	query->modifier = 0;
	query->component_mask |= mask;
	query->record = service;
	query->record_size = sizeof(*service);
}
