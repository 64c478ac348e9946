/* SPDX-License-Identifier: BSD-2-Clause */

/* Subnet management packets (IBA 14.2). */

#include "base/export.h"
#include "base/report.h"
#include "engine/port.h"
#include "mad/layout.h"

#include <infiniband/mad.h>
#include <errno.h>
#include <stdbool.h>

static uint8_t *smp_rpc(int method, void *data, ib_portid_t *portid, unsigned attrid,
			unsigned mod, unsigned timeout, int *rstatus,
			const struct ibmad_port *srcport)
{
	ib_rpc_t rpc = {
		.mgtclass = IB_SMI_CLASS,
		.method = method,
		.attr = {.id = attrid, .mod = mod},
		.dataoffs = IB_SMP_DATA_OFFS,
		.datasz = IB_SMP_DATA_SIZE,
		.mkey = options_m_key(srcport),
		.timeout = (int)timeout,
	};
	uint8_t *response;

	if (!portid) {
		failure_refuse(IB_SMI_CLASS, EINVAL);
		return NULL;
	}
	rpc.mgtclass = smp_class_of(portid);
	/* SMPs use QP0 and VL15, the SL is irrelevant (IBA 14.2.1) */
	portid->sl = 0;
	portid->qp = 0;
	response = mad_rpc(srcport, &rpc, portid, data, data);
	if (rstatus)
		*rstatus = (int)rpc.rstatus;
	return response;
}

EXPORT uint8_t *smp_query_status_via(void *rcvbuf, ib_portid_t *portid, unsigned attrid,
				     unsigned mod, unsigned timeout, int *rstatus,
				     const struct ibmad_port *srcport)
{
	return smp_rpc(IB_MAD_METHOD_GET, rcvbuf, portid, attrid, mod, timeout, rstatus,
		       srcport);
}

EXPORT uint8_t *smp_set_status_via(void *data, ib_portid_t *portid, unsigned attrid,
				   unsigned mod, unsigned timeout, int *rstatus,
				   const struct ibmad_port *srcport)
{
	return smp_rpc(IB_MAD_METHOD_SET, data, portid, attrid, mod, timeout, rstatus, srcport);
}

EXPORT uint8_t *smp_query_via(void *buf, ib_portid_t *id, unsigned attrid, unsigned mod,
			      unsigned timeout, const struct ibmad_port *srcport)
{
	return smp_query_status_via(buf, id, attrid, mod, timeout, NULL, srcport);
}

EXPORT uint8_t *smp_set_via(void *buf, ib_portid_t *id, unsigned attrid, unsigned mod,
			    unsigned timeout, const struct ibmad_port *srcport)
{
	return smp_set_status_via(buf, id, attrid, mod, timeout, NULL, srcport);
}
