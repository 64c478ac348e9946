/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A MAD that asks a node something, and the answer made in its place. A node's agents
 * (sma.h, pma.h, congestion.h, baseboard.h, vendor.h) all have this form.
 */
#ifndef FABRIC_QUERY_H
#define FABRIC_QUERY_H

#include <string.h>

#include <infiniband/mad.h>

#include "fabric.h"
#include "mad_header.h"

struct query {
	struct fabric *fabric;
	uint32_t node;
	uint8_t in_port; /* the number of the port it came in by; 0: a switch's own port */
	uint8_t *mad;    /* MAD_BYTES: the request; the answer in its place */
};

#endif
