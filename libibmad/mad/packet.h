/* SPDX-License-Identifier: BSD-2-Clause */

/* Packets: a umad header of either layout, and a MAD. */
#ifndef LIBIBMAD_PACKET_H
#define LIBIBMAD_PACKET_H

#include "mad/layout.h"

#include <infiniband/mad.h>
#include <infiniband/umad.h>
#include <stdbool.h>
#include <stdint.h>

#define PACKET_SIZE (64 + IB_MAD_SIZE)

/*
 * mad_build_pkt() without data, for this class and with this transaction ID. 0, or -EINVAL for
 * a wrong directed route.
 */
int packet_build(void *umad, uint8_t *mad, const ib_rpc_t *rpc, int mgmt_class, uint64_t trid,
		 const ib_portid_t *dport, const ib_rmpp_hdr_t *rmpp);

/* Whether mad_trid() has returned the lower half of a transaction ID. */
bool trid_is_ours(uint32_t tid);

/* The longest text of an address: a LID, a GID, and a route of 63 hops with its LIDs. */
#define ADDRESS_TEXT_MAX 512

/* portid2str() into a buffer of the caller. */
void address_print(const ib_portid_t *portid, char *buf, int size);

/* The MAD in a umad buffer; umad_get_mad() takes no const. */
static inline const uint8_t *packet_mad(const void *umad)
{
	return (const uint8_t *)umad + umad_size();
}

/* Marks a MAD for RMPP: the kernel cuts it into segments (IBA 13.6). */
void rmpp_mark(uint8_t *mad);
/*
 * Whether a message of an agent with RMPP is shorter than its first segment announced. A sender
 * may announce 0, if it does not know the length (IBA 13.6.2.1).
 */
bool rmpp_is_short(const uint8_t *mad, int length);

/* The header of a request in "mad" becomes the header of its response. */
void response_write_header(uint8_t *mad, uint16_t status);
/* To the sender of the request, on the same partition, with a GRH if the request had one. */
void response_address(void *umad, const uint8_t *mad);

#endif
