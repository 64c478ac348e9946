/* SPDX-License-Identifier: BSD-2-Clause */

/* The frames of packets that a program sent or received. */
#ifndef UMAD_CAPTURE_PACKET_FRAME_H
#define UMAD_CAPTURE_PACKET_FRAME_H

#include <infiniband/umad.h>

#include "frame.h"
#include "ring.h"

struct ib_user_mad record_umad(const struct packet_record *record);

/* The kernel's status of a received MAD; if not 0, the MAD is the program's own request,
 * returned. */
unsigned int record_status(const struct packet_record *record);

/* The first bytes of the MAD; a shorter one is padded with zeros. */
void record_beginning(const struct packet_record *record, uint8_t mad[MAD_BYTES]);

/* Fills in the addresses that are known and leaves the others 0. */
struct frame_address packet_address(const struct packet_record *record);

#endif
