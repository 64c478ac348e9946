/* SPDX-License-Identifier: BSD-2-Clause */

/* Vendor specific classes (IBA 16.5). */

#include "base/export.h"
#include "base/report.h"
#include "mad/layout.h"

#include <infiniband/mad.h>
#include <errno.h>
#include <stdbool.h>

/* Where a class has its data: behind the common header, or an OUI besides. */
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
