/* SPDX-License-Identifier: BSD-2-Clause */

/* The frames of a packet that a program sent or received. */
#ifndef UMAD_CAPTURE_PACKET_FRAME_H
#define UMAD_CAPTURE_PACKET_FRAME_H

#include <infiniband/umad.h>

#include "frame.h"
#include "ring.h"

struct ib_user_mad record_umad(const struct packet_record *record);

/* The kernel's status of a MAD that was received: not 0, the MAD is the program's own. */
unsigned int record_status(const struct packet_record *record);

/* The MAD's first bytes, with zeros behind a shorter one. */
void record_beginning(const struct packet_record *record, uint8_t mad[MAD_BYTES]);

/* The addresses in the headers, as far as they are known; the others are 0. */
struct frame_address packet_address(const struct packet_record *record);

#endif
