/* SPDX-License-Identifier: BSD-2-Clause */

/* Queries of the SA (IBA 15.2, 15.4), and the calls of rdma-core for them. */

#include "sa/sa.h"

#include "base/export.h"
#include "base/report.h"
#include "base/reserved.h"
#include "engine/async.h"
#include "engine/port.h"
#include "mad/layout.h"

#include <errno.h>
#include <stddef.h>

int sa_query_method(const struct mad_sa_query *query)
{
	return query->method ? query->method : IB_MAD_METHOD_GET_TABLE;
}

bool sa_query_is_for_table(int method)
{
	return method == IB_MAD_METHOD_GET_TABLE || method == IB_MAD_METHOD_GETMULTI;
}

bool sa_query_is_valid(const struct mad_sa_query *query)
{
	if (!query)
		return false;
	switch (sa_query_method(query)) {
	case IB_MAD_METHOD_GETMULTI: /* RMPP can carry it */
		break;
	case IB_MAD_METHOD_GET:
	case IB_MAD_METHOD_SET:
	case IB_MAD_METHOD_GET_TABLE:
	case IB_MAD_METHOD_DELETE:
		if (query->record_size > IB_SA_DATA_SIZE)
			return false;
		break;
	default:
		return false;
	}
	return query->attribute <= UINT16_MAX && !query->record == !query->record_size &&
	       is_reserved(query->reserved) && is_cancel(query->cancel) &&
	       (!query->sa || (query->sa->lid > 0 && query->sa->lid <= UINT16_MAX));
}

static bool has_gid(const struct mad_sa_query *query, size_t at, uint64_t component)
{
	return query->component_mask & component && query->record_size >= at + 16;
}

uint8_t *sa_query_own_gid(const struct mad_sa_query *query, uint8_t *record)
{
	static const uint8_t zero[16];
	int method = sa_query_method(query);
	size_t at;

	if (method != IB_MAD_METHOD_SET && method != IB_MAD_METHOD_DELETE)
		return NULL;
	if (query->attribute == IB_SA_ATTR_MCRECORD &&
	    has_gid(query, offsetof(struct umad_sa_mcmember_record, portgid),
		    UMAD_SA_MCM_COMP_MASK_PORT_GID))
		at = offsetof(struct umad_sa_mcmember_record, portgid);
	else if (query->attribute == IB_SA_ATTR_SERVICERECORD &&
		 has_gid(query, offsetof(struct mad_sa_service_record, gid),
			 MAD_SA_SERVICE_GID))
		at = offsetof(struct mad_sa_service_record, gid);
	else
		return NULL;
	return memcmp(record + at, zero, sizeof(zero)) ? NULL : record + at;
}

void sa_query_rpc(const struct ibmad_port *port, const struct mad_sa_query *query,
		  ib_rpc_t *rpc)
{
	*rpc = (ib_rpc_t){
		.mgtclass = IB_SA_CLASS,
		.method = sa_query_method(query),
		.attr = {.id = query->attribute, .mod = query->modifier},
		.dataoffs = IB_SA_DATA_OFFS,
		.datasz = IB_SA_DATA_SIZE,
		.mkey = options_sa_key(port),
		.mask = query->component_mask,
		.timeout = query->timeout_ms,
	};
}

size_t sa_query_least(const struct mad_sa_query *query)
{
	size_t least = sa_record_size(query->attribute);

	/* the response to a MultiPathRecord has PathRecords */
	if (query->method == IB_MAD_METHOD_GETMULTI)
		return sizeof(struct mad_sa_path_record);
	if (sa_query_method(query) == IB_MAD_METHOD_GET_TABLE && query->record_size > least)
		return query->record_size;
	return least;
}

int sa_query_fail(const struct mad_sa_query *query, int error)
{
	struct mad_failure failure = {.error = error, .mgmt_class = IB_SA_CLASS};

	if (query) {
		failure.method = (unsigned)sa_query_method(query);
		failure.attribute = query->attribute;
	}
	failure_store(&failure);
	return error;
}

/* --- calls of rdma-core, whose response is one MAD -------------------------------- */

/* Components of a PathRecord (IBA 15.2.5.16) and of a NodeRecord (15.2.5.2). */
#define PATH_DGID      (1u << 2)
#define PATH_SGID      (1u << 3)
#define NODE_PORT_GUID (1u << 8)

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
		.mask = PATH_DGID | PATH_SGID,
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
		.mask = NODE_PORT_GUID,
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
