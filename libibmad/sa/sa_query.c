/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * rdma-core's queries, and those for paths, multicast groups and services (IBA 15.2.5.14 to
 * 15.2.5.17).
 */

#include "base/export.h"
#include "base/report.h"
#include "base/reserved.h"
#include "engine/port.h"

#include <infiniband/mad_sa.h>
#include <errno.h>
#include <stddef.h>

/* --- calls of rdma-core, whose response is one MAD -------------------------------- */

EXPORT uint8_t *sa_rpc_call(const struct ibmad_port *srcport, void *rcvbuf, ib_portid_t *portid,
			    ib_sa_call_t *sa, unsigned timeout)
{
	ib_rpc_t rpc = {
		.mgtclass = IB_SA_CLASS,
		.dataoffs = IB_SA_DATA_OFFS,
		.datasz = IB_SA_DATA_SIZE,
		.mkey = options_sa_key(srcport),
		.timeout = (int)timeout,
	};
	uint8_t *response;

	if (!portid || portid->lid <= 0 || !sa) {
		report("sa_rpc_call", "the subnet administrator needs a LID");
		failure_refuse(IB_SA_CLASS, EINVAL);
		return NULL;
	}
	rpc.method = (int)sa->method;
	rpc.attr.id = sa->attrid;
	rpc.attr.mod = sa->mod;
	rpc.mask = sa->mask;
	rpc.trid = sa->trid;
	address_qp1(portid);
	response = mad_rpc_rmpp(srcport, &rpc, portid, NULL, rcvbuf);
	sa->recsz = rpc.recsz;
	return response;
}

EXPORT int ib_path_query_via(const struct ibmad_port *srcport, ibmad_gid_t srcgid,
			     ibmad_gid_t destgid, ib_portid_t *sm_id, void *buf)
{
	ib_sa_call_t sa = {
		.method = IB_MAD_METHOD_GET,
		.attrid = IB_SA_ATTR_PATHRECORD,
		.mask = MAD_SA_PATH_DGID | MAD_SA_PATH_SGID,
	};

	if (!srcgid || !destgid || !buf) {
		failure_refuse(IB_SA_CLASS, EINVAL);
		return -1;
	}
	memset(buf, 0, IB_SA_PR_RECSZ);
	mad_encode_field(buf, IB_SA_PR_DGID_F, destgid);
	mad_encode_field(buf, IB_SA_PR_SGID_F, srcgid);
	if (!sa_rpc_call(srcport, buf, sm_id, &sa, 0)) {
		report("ib_path_query_via", "the query for a path record failed");
		return -1;
	}
	return (int)mad_get_field(buf, 0, IB_SA_PR_DLID_F);
}

EXPORT int ib_node_query_via(const struct ibmad_port *srcport, uint64_t guid,
			     ib_portid_t *sm_id, void *buf)
{
	ib_sa_call_t sa = {
		.method = IB_MAD_METHOD_GET,
		.attrid = IB_SA_ATTR_NODERECORD,
		.mask = MAD_SA_NODE_PORT_GUID,
	};

	if (!buf) {
		failure_refuse(IB_SA_CLASS, EINVAL);
		return -1;
	}
	memset(buf, 0, IB_SA_NR_RECSZ);
	mad_encode_field(buf, IB_SA_NR_PORT_GUID_F, &guid);
	if (!sa_rpc_call(srcport, buf, sm_id, &sa, 0)) {
		report("ib_node_query_via", "the query for a node record failed");
		return -1;
	}
	return 0;
}

/* --- paths, groups and services --------------------------------------------------- */

/* NumbPath's maximum. */
#define ALL_PATHS    127
#define DEFAULT_PKEY 0xffff
#define NO_END       UINT32_MAX /* lease without end */
/* Data components: 16, 8, 4 and 2. */
#define SERVICE_DATA (((UINT64_C(1) << 30) - 1) * MAD_SA_SERVICE_DATA8(0))

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
	if (all || !bytes_are_zero(member->mgid, sizeof(member->mgid)))
		query->component_mask |= UMAD_SA_MCM_COMP_MASK_MGID;
	if (all || !bytes_are_zero(member->portgid, sizeof(member->portgid)))
		query->component_mask |= UMAD_SA_MCM_COMP_MASK_PORT_GID;
	if (all || join_state)
		query->component_mask |= UMAD_SA_MCM_COMP_MASK_JOIN_STATE;
	query->method = method;
	query->attribute = IB_SA_ATTR_MCRECORD;
	query->modifier = 0;
	query->record = member;
	query->record_size = offsetof(struct umad_sa_mcmember_record, pad);
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
	mask |= bytes_are_zero(service->key, sizeof(service->key)) ? 0 : MAD_SA_SERVICE_KEY;
	mask |= service->name[0] ? MAD_SA_SERVICE_NAME : 0;
	if (is_change(method) || !bytes_are_zero(service->gid, sizeof(service->gid)))
		mask |= MAD_SA_SERVICE_GID;
	if (method != IB_MAD_METHOD_DELETE && service->lease)
		mask |= MAD_SA_SERVICE_LEASE;
	if (method == IB_MAD_METHOD_SET) /* zeros count as data, too */
		mask |= SERVICE_DATA;
	query->method = method;
	query->attribute = IB_SA_ATTR_SERVICERECORD;
	query->modifier = 0;
	query->component_mask |= mask;
	query->record = service;
	query->record_size = sizeof(*service);
}
