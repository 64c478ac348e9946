/* SPDX-License-Identifier: BSD-2-Clause */

#include "calls/response.h"

#include "mad/layout.h"

#include <infiniband/umad.h>

static uint8_t response_method(uint8_t method)
{
	if (method == IB_MAD_METHOD_SET)
		method = IB_MAD_METHOD_GET;
	if (method == IB_MAD_METHOD_TRAP)
		return IB_MAD_METHOD_TRAP_REPRESS;
	return method == IB_MAD_METHOD_SEND ? method : method | IB_MAD_RESPONSE;
}

void response_write_header(uint8_t *mad, uint16_t status)
{
	int mgmt_class = mad[1];

	mad[3] = response_method(mad[3]);
	if (mgmt_class == IB_SMI_DIRECT_CLASS)
		status |= DIRECTION;
	put16(mad, STATUS_OFFS, status);
	/* no key goes back, and no RMPP header; vendor range 1 has its data there */
	if (!mad_is_vendor_range1(mgmt_class))
		memset(mad + RMPP_VERSION_OFFS, 0, 8);
	if (mgmt_class == IB_SA_CLASS)
		memset(mad + 48, 0, 8); /* nor a component mask */
}

void response_address(void *umad, const uint8_t *mad)
{
	const ib_mad_addr_t from = *umad_get_mad_addr(umad);

	umad_set_addr_net(umad, from.lid, from.qpn, from.sl,
			  is_smp_class(mad[1]) ? 0 : htobe32(IB_DEFAULT_QP1_QKEY));
	if (from.grh_present)
		umad_get_mad_addr(umad)->hop_limit = GRH_HOP_LIMIT;
}
