/* SPDX-License-Identifier: BSD-2-Clause */

/* A request MAD at a node, to be replaced by the response. All agents of a node (sma.h, pma.h,
 * congestion.h, baseboard.h, vendor.h) take a query. */
#ifndef FABRIC_QUERY_H
#define FABRIC_QUERY_H

#include <string.h>

#include <infiniband/mad.h>

#include "fabric.h"
#include "mad_header.h"

struct query {
	struct fabric *fabric;
	uint32_t node;
	uint8_t in_port; /* number of the port at which it arrived; 0: a switch's own */
	uint8_t *mad;    /* MAD_BYTES: the request, then the response */
};

#endif
