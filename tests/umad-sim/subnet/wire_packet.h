/* SPDX-License-Identifier: BSD-2-Clause */

/* A MAD with its addresses. */
#ifndef FABRIC_WIRE_PACKET_H
#define FABRIC_WIRE_PACKET_H

#include "mad_header.h"

struct packet {
	uint8_t mad[MAD_BYTES];
	uint64_t number; /* number of the packet since the start, for the trace */
	uint32_t from;   /* the sending end port (by index) */
	uint32_t source_qp;
	uint32_t qp;
	uint32_t qkey;
	uint32_t flow_label;
	uint16_t slid; /* host order */
	uint16_t dlid;
	uint16_t pkey;
	uint8_t sl;
	bool grh;
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t sgid[16];
	uint8_t dgid[16];
};

#define WELL_KNOWN_QKEY 0x80010000 /* of QP1 (IBA 10.2.5) */

#endif
