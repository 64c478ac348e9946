/* SPDX-License-Identifier: BSD-2-Clause */

/* Packets for the tests of umad-capture. */
#ifndef CAPTURE_FIXTURE_H
#define CAPTURE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <infiniband/umad.h>

#include "classes.h"
#include "packet_frame.h"
#include "ring.h"

#define OWN_LID   0x10
#define OTHER_LID 0x25

struct made_packet {
	struct packet_record record;
	uint8_t mad[512];
};

static inline void set_umad(struct made_packet *packet, const struct ib_user_mad *umad)
{
	memcpy(packet->record.header, umad, HEADER_BYTES);
}

/* A MAD that is sent to the other LID, or received from it. */
static inline struct made_packet make_packet(bool sent, uint8_t class, uint8_t method,
					     uint16_t attribute)
{
	struct ib_user_mad umad = {.addr = {.lid = htobe16(OTHER_LID)}};
	struct made_packet packet = {
		.record = {.length = MAD_BYTES,
			   .size = sizeof(struct packet_record) + MAD_BYTES,
			   .sent = sent,
			   .process = 7,
			   .portid = 3,
			   .lid = OWN_LID,
			   .pkey = 0xffff}};

	umad.addr.qpn = htobe32(class == CLASS_SMP || class == CLASS_DIRECTED_SMP ? 0 : 1);
	set_umad(&packet, &umad);
	packet.mad[0] = 1;
	packet.mad[1] = class;
	packet.mad[2] = 1;
	packet.mad[3] = method;
	put16(packet.mad + 16, attribute);
	return packet;
}

#endif
