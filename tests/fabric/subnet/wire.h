/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * How a MAD gets from one node to another: hop by hop along a directed route (IBA 14.2.2) or by
 * LID through the forwarding tables, over links that are up and as slow and unreliable as the
 * faults say (faults.h).
 */
#ifndef FABRIC_WIRE_H
#define FABRIC_WIRE_H

#include "query.h"

struct packet {
	uint8_t mad[MAD_BYTES];
	uint64_t number; /* of those sent since the start, for the trace */
	uint32_t from;   /* the end port (by index) that it was sent by */
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

/* The subnet management classes: LID routed and directed (IBA 14.2.1). */
#define CLASS_SMP          0x01
#define CLASS_DIRECTED_SMP 0x81

static inline bool is_smp(const uint8_t *mad)
{
	return mad_class_of(mad) == CLASS_SMP || mad_class_of(mad) == CLASS_DIRECTED_SMP;
}

/* Sends a copy of the packet. It arrives (node_receive(), node.h) later, once, more often or
 * never. */
void wire_send(struct fabric *fabric, const struct packet *packet);

/* Sends an answer back to where the request came from; the request's MAD has become the answer.
 */
void wire_reply(struct fabric *fabric, uint32_t port, const struct packet *request);

/* The GID of an end port. */
void port_gid(const struct fabric *fabric, uint32_t port, uint8_t gid[16]);

#endif
