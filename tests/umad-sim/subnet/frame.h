/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * MADs as frames of an InfiniBand link, for captures: LRH, GRH, BTH, DETH, MAD, ICRC and VCRC
 * (IBA 7.7, 7.8, 8.3, 9.2, 9.3). Numbers are in host order.
 *
 * Wireshark (4.0) does not read files of link type INFINIBAND (247), which contain bare frames.
 * It does read frames in records of link type ERF (197), the extensible record format of
 * hardware captures.
 */
#ifndef FABRIC_FRAME_H
#define FABRIC_FRAME_H

#include <stddef.h>

#include "mad_header.h"

#define LINKTYPE_ERF 197
#define ERF_HEADER   16 /* bytes before each frame */

#define FRAME_BYTES (8 + 40 + 12 + 8 + MAD_BYTES + 4 + 2) /* the longest frame */

struct frame_address {
	uint16_t slid, dlid;
	uint16_t pkey;
	uint8_t sl;
	uint8_t vl; /* 15 for SMPs */
	uint32_t source_qp, qp;
	uint32_t qkey;
	uint32_t psn; /* 24 bits */
	bool grh;     /* the members below are valid */
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint32_t flow_label;
	uint8_t sgid[16], dgid[16];
};

/* Writes a MAD's frame without its CRCs, but with the length it has with them. Returns the
 * number of bytes written. */
size_t frame_put(uint8_t *frame, const struct frame_address *address,
		 const uint8_t mad[MAD_BYTES]);

/* Parses a frame without CRCs. False if it is not the frame of a MAD. */
bool frame_parse(const uint8_t *frame, size_t length, struct frame_address *address,
		 uint8_t mad[MAD_BYTES]);

/* Writes a MAD's frame. Returns its length. */
size_t frame_build(uint8_t frame[FRAME_BYTES], const struct frame_address *address,
		   const uint8_t mad[MAD_BYTES]);

/* Writes the ERF header for a frame of that length and time. */
void frame_erf_header(uint8_t header[ERF_HEADER], size_t length, int64_t seconds,
		      uint32_t nanoseconds);

/* Appends the invariant CRC to the first `length` bytes of a frame, then the variant CRC, least
 * significant byte first. Returns the frame's length. */
size_t frame_put_crcs(uint8_t *frame, size_t length);

/*
 * RMPP messages (IBA 13.6) as programs write and read them, whole: the headers up to the
 * class's data, then the data of all segments.
 *
 * frame_segments() returns how many MADs carry the message, at least 1. frame_segment() builds
 * MAD `number`, counted from 1. A single-MAD message is padded with zeros; its RMPP header
 * stays as it is, unless the kernel completes it: `sent` says that a program wrote the message.
 */
unsigned int frame_segments(const uint8_t *message, size_t length);
void frame_segment(uint8_t mad[MAD_BYTES], const uint8_t *message, size_t length,
		   unsigned int number, bool sent);

#endif
