/* SPDX-License-Identifier: BSD-2-Clause */

/* Congestion control (IBA A10.4). */

#include "base/export.h"
#include "base/report.h"
#include "mad/layout.h"

#include <infiniband/mad.h>
#include <errno.h>

static void *cc_rpc(int method, void *payload, void *rcvbuf, ib_portid_t *portid,
		    unsigned attrid, unsigned mod, unsigned timeout, int *rstatus,
		    const struct ibmad_port *srcport, uint64_t cckey)
{
	ib_rpc_cc_t rpc = {
		.mgtclass = IB_CC_CLASS,
		.method = method,
		.attr = {.id = attrid, .mod = mod},
		.dataoffs = IB_CC_DATA_OFFS,
		.datasz = IB_CC_DATA_SZ,
		.timeout = (int)timeout,
		.cckey = cckey,
	};
	void *response;

	if (!portid) {
		failure_refuse(IB_CC_CLASS, EINVAL);
		return NULL;
	}
	if (attrid == IB_CC_ATTR_CONGESTION_LOG) {
		rpc.dataoffs = IB_CC_LOG_DATA_OFFS;
		rpc.datasz = IB_CC_LOG_DATA_SZ;
	}
	address_qp1(portid);
	response = mad_rpc(srcport, (ib_rpc_t *)&rpc, portid, payload, rcvbuf);
	if (rstatus)
		*rstatus = (int)rpc.rstatus;
	return response;
}

EXPORT void *cc_query_status_via(void *rcvbuf, ib_portid_t *portid, unsigned attrid,
				 unsigned mod, unsigned timeout, int *rstatus,
				 const struct ibmad_port *srcport, uint64_t cckey)
{
	return cc_rpc(IB_MAD_METHOD_GET, rcvbuf, rcvbuf, portid, attrid, mod, timeout, rstatus,
		      srcport, cckey);
}

EXPORT void *cc_config_status_via(void *payload, void *rcvbuf, ib_portid_t *portid,
				  unsigned attrid, unsigned mod, unsigned timeout, int *rstatus,
				  const struct ibmad_port *srcport, uint64_t cckey)
{
	return cc_rpc(IB_MAD_METHOD_SET, payload, rcvbuf, portid, attrid, mod, timeout, rstatus,
		      srcport, cckey);
}
