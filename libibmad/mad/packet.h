/* SPDX-License-Identifier: BSD-2-Clause */

/* Packets: a umad header (either layout) and a MAD. */
#ifndef LIBIBMAD_PACKET_H
#define LIBIBMAD_PACKET_H

#include "mad/layout.h"

#include <infiniband/mad.h>
#include <infiniband/umad.h>
#include <stdbool.h>
#include <stdint.h>

#define PACKET_SIZE (64 + IB_MAD_SIZE)

/*
 * mad_build_pkt() without data, with this class and TID. Returns 0, or -EINVAL for an invalid
 * directed route.
 */
int packet_build(void *umad, uint8_t *mad, const ib_rpc_t *rpc, int mgmt_class, uint64_t trid,
		 const ib_portid_t *dport, const ib_rmpp_hdr_t *rmpp);

/* Whether mad_trid() has returned a TID with this lower half. */
bool trid_is_ours(uint32_t tid);

/* Longest address text: LID, GID, and a 63-hop route with its LIDs. */
#define ADDRESS_TEXT_MAX 512

/* portid2str() into the caller's buffer. */
void address_print(const ib_portid_t *portid, char *buf, int size);

/* Works around umad_get_mad()'s missing const. */
static inline const uint8_t *packet_mad(const void *umad)
{
	return (const uint8_t *)umad + umad_size();
}

/* Marks a MAD for RMPP: the kernel splits it into segments (IBA 13.6). */
void rmpp_mark(uint8_t *mad);
/*
 * Whether a message of an RMPP agent is shorter than its first segment announced. Senders may
 * announce 0 if they don't know the length (IBA 13.6.2.1).
 */
bool rmpp_is_short(const uint8_t *mad, int length);

/* Turns a request's header into that of its response. */
void response_write_header(uint8_t *mad, uint16_t status);
/* Addresses the request's sender: same partition, with a GRH if the request had one. */
void response_address(void *umad, const uint8_t *mad);

#endif
