/* SPDX-License-Identifier: BSD-2-Clause */

/* Packets: a umad header of either layout, and a MAD. */
#ifndef LIBIBMAD_PACKET_H
#define LIBIBMAD_PACKET_H

#include <infiniband/mad.h>
#include <infiniband/umad.h>
#include <stdint.h>

#define PACKET_SIZE (64 + IB_MAD_SIZE)

/* mad_build_pkt() without data, for an rpc with a transaction ID. 0 or -EINVAL. */
int packet_build(void *umad, uint8_t *mad, const ib_rpc_t *rpc, const ib_portid_t *dport,
		 const ib_rmpp_hdr_t *rmpp);

/* The MAD in a umad buffer; umad_get_mad() takes no const. */
static inline const uint8_t *packet_mad(const void *umad)
{
	return (const uint8_t *)umad + umad_size();
}

/* Marks a MAD for RMPP: the kernel cuts it into segments (IBA 13.6). */
void rmpp_mark(uint8_t *mad);

/* The header of a request in "mad" becomes the header of its response. */
void response_write_header(uint8_t *mad, uint16_t status);
/* To the sender of the request, on the same partition, with a GRH if the request had one. */
void response_address(void *umad, const uint8_t *mad);

#endif
