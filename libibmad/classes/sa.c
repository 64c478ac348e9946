/* SPDX-License-Identifier: BSD-2-Clause */

/* The subnet administrator (IBA 15.2): requests whose response is one MAD. */

#include "base/export.h"
#include "base/report.h"
#include "mad/layout.h"

#include <infiniband/mad_sa.h>
#include <errno.h>

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
		.mkey = sa_key_get(srcport),
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
