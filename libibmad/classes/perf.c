/* SPDX-License-Identifier: BSD-2-Clause */

/* Performance management (IBA 16.1). */

#include "base/export.h"
#include "base/report.h"
#include "mad/layout.h"

#include <infiniband/mad.h>
#include <errno.h>
#include <stdbool.h>

static uint8_t *pma_rpc(int method, void *data, ib_portid_t *dest, unsigned timeout,
			unsigned id, const struct ibmad_port *srcport)
{
	ib_rpc_t rpc = {
		.mgtclass = IB_PERFORMANCE_CLASS,
		.method = method,
		.attr = {.id = id},
		.dataoffs = IB_PC_DATA_OFFS,
		.datasz = IB_PC_DATA_SZ,
		.timeout = (int)timeout,
	};

	/* the caller may set the QP of a redirection */
	complete_address(dest);
	return mad_rpc(srcport, &rpc, dest, data, data);
}

/* GMPs have no directed routes. */
static bool arguments_are_valid(const void *data, const ib_portid_t *dest)
{
	if (data && dest && dest->lid != -1)
		return true;
	failure_refuse(IB_PERFORMANCE_CLASS, EINVAL);
	return false;
}

EXPORT uint8_t *pma_query_via(void *rcvbuf, ib_portid_t *dest, int port, unsigned timeout,
			      unsigned id, const struct ibmad_port *srcport)
{
	if (!arguments_are_valid(rcvbuf, dest))
		return NULL;
	/* PortSelect is the second byte of every attribute */
	mad_set_field(rcvbuf, 0, IB_PC_PORT_SELECT_F, (uint32_t)port);
	return pma_rpc(IB_MAD_METHOD_GET, rcvbuf, dest, timeout, id, srcport);
}

EXPORT uint8_t *performance_reset_via(void *rcvbuf, ib_portid_t *dest, int port, unsigned mask,
				      unsigned timeout, unsigned id,
				      const struct ibmad_port *srcport)
{
	if (!arguments_are_valid(rcvbuf, dest))
		return NULL;
	if (!mask)
		mask = ~0u;
	memset(rcvbuf, 0, IB_PC_DATA_SZ);
	mad_set_field(rcvbuf, 0, IB_PC_PORT_SELECT_F, (uint32_t)port);
	mad_set_field(rcvbuf, 0, IB_PC_COUNTER_SELECT_F, mask);
	mad_set_field(rcvbuf, 0,
		      id == IB_GSI_PORT_COUNTERS_EXT ? IB_PC_EXT_COUNTER_SELECT2_F
						     : IB_PC_COUNTER_SELECT2_F,
		      mask >> 16);
	return pma_rpc(IB_MAD_METHOD_SET, rcvbuf, dest, timeout, id, srcport);
}
