/* SPDX-License-Identifier: BSD-2-Clause */

/* The destinations and requests of the engine's benchmark. */
#ifndef ENGINE_ROUTES_H
#define ENGINE_ROUTES_H

#include <infiniband/mad.h>

#define NODES 1000

/*
 * A route from host-1 up to a core switch and down to one of the 1,024 hosts of fat-tree:16,3.
 * Each route has six links. A leaf's ports 1 to 8 lead to its hosts, ports 9 to 16 up; so do
 * those of the switches above, in each of 16 pods. A core switch's port leads to the pod of
 * that number.
 */
static inline ib_portid_t route_to(unsigned host)
{
	ib_portid_t to = {.drpath = {.cnt = 6}};

	host %= NODES;
	to.drpath.p[1] = 1;
	to.drpath.p[2] = 9;
	to.drpath.p[3] = 9;
	to.drpath.p[4] = (uint8_t)(host / 64 + 1);
	to.drpath.p[5] = (uint8_t)(host / 8 % 8 + 1);
	to.drpath.p[6] = (uint8_t)(host % 8 + 1);
	return to;
}

static inline ib_rpc_t node_info_request(void)
{
	return (ib_rpc_t){
		.mgtclass = IB_SMI_DIRECT_CLASS,
		.method = IB_MAD_METHOD_GET,
		.attr = {.id = IB_ATTR_NODE_INFO},
		.dataoffs = IB_SMP_DATA_OFFS,
		.datasz = IB_SMP_DATA_SIZE,
	};
}

#endif
