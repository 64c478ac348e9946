/* SPDX-License-Identifier: BSD-2-Clause */

/* Classes: congestion control (IBA A10.4), baseboard management (16.2), vendors (16.5). */

#include "base/export.h"
#include "base/report.h"
#include "mad/layout.h"

#include <infiniband/mad.h>
#include <errno.h>
#include <stdbool.h>

/* --- congestion control ----------------------------------------------------------- */

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

/* --- baseboard management --------------------------------------------------------- */

EXPORT uint8_t *bm_call_via(void *data, ib_portid_t *portid, ib_bm_call_t *call,
			    struct ibmad_port *srcport)
{
	ib_rpc_t rpc = {
		.mgtclass = IB_BOARD_MGMT_CLASS,
		.dataoffs = IB_BM_DATA_OFFS,
		.datasz = IB_BM_DATA_SZ,
	};

	if (!portid || portid->lid <= 0 || !call) {
		report("bm_call_via", "baseboard management needs a LID");
		failure_refuse(IB_BOARD_MGMT_CLASS, EINVAL);
		return NULL;
	}
	rpc.method = (int)call->method;
	rpc.attr.id = call->attrid;
	rpc.attr.mod = call->mod;
	rpc.timeout = (int)call->timeout;
	rpc.mkey = call->bkey; /* the B_Key replaces the M_Key */
	address_qp1(portid);
	if (has_response(call->method))
		return mad_rpc(srcport, &rpc, portid, data, data);
	return mad_send_via(&rpc, portid, NULL, data, srcport) < 0 ? NULL : data;
}

/* --- vendor specific classes ------------------------------------------------------ */

/* Data starts after the common header, or after the OUI. */
static bool place_data(ib_rpc_t *rpc, unsigned mgmt_class)
{
	if (mgmt_class > UINT8_MAX)
		return false;
	rpc->mgtclass = (int)mgmt_class;
	if (mad_is_vendor_range1(rpc->mgtclass)) {
		rpc->dataoffs = IB_VENDOR_RANGE1_DATA_OFFS;
		rpc->datasz = IB_VENDOR_RANGE1_DATA_SIZE;
		return true;
	}
	rpc->dataoffs = IB_VENDOR_RANGE2_DATA_OFFS;
	rpc->datasz = IB_VENDOR_RANGE2_DATA_SIZE;
	return mad_is_vendor_range2(rpc->mgtclass);
}

EXPORT uint8_t *ib_vendor_call_via(void *data, ib_portid_t *portid, ib_vendor_call_t *call,
				   struct ibmad_port *srcport)
{
	ib_rpc_t rpc = {0};

	if (!portid || portid->lid <= 0 || !call || !place_data(&rpc, call->mgmt_class)) {
		failure_refuse(call ? (int)call->mgmt_class : 0, EINVAL);
		return NULL;
	}
	rpc.method = (int)call->method;
	rpc.attr.id = call->attrid;
	rpc.attr.mod = call->mod;
	rpc.timeout = (int)call->timeout;
	rpc.oui = call->oui;
	address_qp1(portid);
	if (has_response(call->method))
		return mad_rpc_rmpp(srcport, &rpc, portid, NULL, data);
	return mad_send_via(&rpc, portid, NULL, data, srcport) < 0 ? NULL : data;
}
