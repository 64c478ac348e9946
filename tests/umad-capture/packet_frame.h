/* SPDX-License-Identifier: BSD-2-Clause */

/* The frames of a packet that a program sent or received. */
#ifndef UMAD_CAPTURE_PACKET_FRAME_H
#define UMAD_CAPTURE_PACKET_FRAME_H

#include <infiniband/umad.h>

#include "frame.h"
#include "ring.h"

struct ib_user_mad record_umad(const struct packet_record *record);

/*
 * The kernel's status of a received MAD. If it is not 0, the MAD is the program's own request.
 */
unsigned int record_status(const struct packet_record *record);

/* The first bytes of the MAD. Zeros follow a shorter MAD. */
void record_beginning(const struct packet_record *record, uint8_t mad[MAD_BYTES]);

/* Fills in the addresses that are known; the others are 0. */
struct frame_address packet_address(const struct packet_record *record);

#endif
