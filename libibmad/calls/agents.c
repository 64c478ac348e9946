/* SPDX-License-Identifier: BSD-2-Clause */

/* Registers the agents of a port. */

#include "base/export.h"
#include "calls/port.h"
#include "mad/layout.h"

#include <errno.h>

static int keep_agent(struct ibmad_port *port, int mgmt_class, uint8_t rmpp_version, int agent)
{
	if (agent < 0)
		return -1;
	port->core.link.rmpp[mgmt_class] = rmpp_version != 0;
	port->core.link.agents[mgmt_class] = agent;
	return agent;
}

EXPORT int mad_register_client_via(int mgmt, uint8_t rmpp_version, struct ibmad_port *srcport)
{
	int agent;

	if (!srcport || !is_known_class(mgmt)) {
		errno = EINVAL;
		return -1;
	}
	agent = umad_register(srcport->core.link.fd, mgmt, class_version(mgmt), rmpp_version,
			      NULL);
	return keep_agent(srcport, mgmt, rmpp_version, agent) < 0 ? -1 : 0;
}

EXPORT int mad_register_server_via(int mgmt, uint8_t rmpp_version,
				   long method_mask[16 / sizeof(long)], uint32_t class_oui,
				   struct ibmad_port *srcport)
{
	uint8_t oui[3] = {(uint8_t)(class_oui >> 16), (uint8_t)(class_oui >> 8),
			  (uint8_t)class_oui};
	long mask[16 / sizeof(long)];
	int agent;

	if (!srcport || mgmt < 0 || mgmt >= MGMT_CLASSES) {
		errno = EINVAL;
		return -1;
	}
	if (method_mask)
		memcpy(mask, method_mask, sizeof(mask));
	else
		memset(mask, 0xff, sizeof(mask));
	if (mad_is_vendor_range2(mgmt))
		agent = umad_register_oui(srcport->core.link.fd, mgmt, rmpp_version, oui, mask);
	else
		agent = umad_register(srcport->core.link.fd, mgmt, class_version(mgmt),
				      rmpp_version, mask);
	return keep_agent(srcport, mgmt, rmpp_version, agent);
}

EXPORT int mad_rpc_class_agent(struct ibmad_port *srcport, int cls)
{
	return srcport ? link_agent(&srcport->core.link, cls) : -1;
}
