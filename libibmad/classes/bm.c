/* SPDX-License-Identifier: BSD-2-Clause */

/* Baseboard management (IBA 16.2). */

#include "base/export.h"
#include "base/report.h"
#include "mad/layout.h"

#include <infiniband/mad.h>
#include <errno.h>

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
	rpc.mkey = call->bkey; /* the B_Key lies where SMPs have their M_Key */
	address_qp1(portid);
	if (has_response(call->method))
		return mad_rpc(srcport, &rpc, portid, data, data);
	return mad_send_via(&rpc, portid, NULL, data, srcport) < 0 ? NULL : data;
}
