/* SPDX-License-Identifier: BSD-2-Clause */

/* Packets: a umad header of either layout, and a MAD. */
#ifndef LIBIBMAD_PACKET_H
#define LIBIBMAD_PACKET_H

#include "base/export.h"
#include "mad/layout.h"

#include <infiniband/mad.h>
#include <infiniband/umad.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#define PACKET_SIZE (64 + IB_MAD_SIZE)

/* --- packets of requests --------------------------------------------------------- */

/* Writes the part of the header for a directed route (IBA 14.2.1.2). 0, or -1: no route. */
int packet_put_route(uint8_t *mad, const ib_rpc_t *rpc, const ib_dr_path_t *path);
/* Writes the address of a GMP into the umad header; rmpp may be NULL. */
void packet_address_gmp(void *umad, uint8_t *mad, const ib_portid_t *dport,
			const ib_rmpp_hdr_t *rmpp);

/* Writes the version of the class, and its header, which is behind the common header. */
static INLINE int packet_put_class_header(uint8_t *mad, const ib_rpc_t *rpc, int mgmt_class,
					  const ib_dr_path_t *path)
{
	switch (mgmt_class) {
	case IB_SA_CLASS:
		mad[2] = class_version(IB_SA_CLASS);
		put64(mad, 36, rpc->mkey); /* SM_Key */
		put64(mad, 48, rpc->mask);
		return 0;
	case IB_CC_CLASS:
		mad[2] = class_version(IB_CC_CLASS);
		put64(mad, 24, ((const ib_rpc_cc_t *)rpc)->cckey);
		return 0;
	}
	mad[2] = class_version(mgmt_class);
	put64(mad, 24, rpc->mkey);
	if (mgmt_class == IB_SMI_DIRECT_CLASS)
		return packet_put_route(mad, rpc, path);
	if (mad_is_vendor_range2(mgmt_class))
		put32(mad, 36, (rpc->oui & 0xffffff) | (uint32_t)mad[36] << 24);
	return 0;
}

/* Writes all but the data. mgmt_class is that of the rpc. 0, or -1 without a route. */
static INLINE int packet_put_headers(uint8_t *mad, const ib_rpc_t *rpc, int mgmt_class,
				     uint64_t trid, const ib_dr_path_t *path)
{
	mad[0] = 1; /* the base version */
	mad[1] = (uint8_t)mgmt_class;
	mad[3] = (uint8_t)rpc->method;
	put16(mad, STATUS_OFFS, (uint16_t)rpc->rstatus);
	put64(mad, 8, trid);
	put16(mad, ATTRIBUTE_OFFS, (uint16_t)rpc->attr.id);
	put32(mad, MODIFIER_OFFS, rpc->attr.mod);
	return packet_put_class_header(mad, rpc, mgmt_class, path);
}

/* SMPs have QP0. A directed route begins at this port, unless it begins with a LID part. */
static inline void packet_address_smp(struct ib_user_mad *umad, const uint8_t *mad,
				      int mgmt_class, const ib_portid_t *dport)
{
	int lid = dport->lid;

	if (mgmt_class == IB_SMI_DIRECT_CLASS &&
	    (lid <= 0 || dport->drpath.drslid == PERMISSIVE_LID))
		lid = PERMISSIVE_LID;
	umad->addr.qpn = 0;
	umad->addr.qkey = 0;
	umad->addr.lid = htobe16((uint16_t)lid);
	umad->addr.sl = 0;
	umad->addr.grh_present = 0;
	/* the header of old kernels has no index */
	if (mad == umad->data)
		umad->addr.pkey_index = 0;
}

/* Writes the address of a request into the umad header. */
static inline void packet_put_address(void *umad, uint8_t *mad, int mgmt_class,
				      const ib_portid_t *dport, const ib_rmpp_hdr_t *rmpp)
{
	if (is_smp_class(mgmt_class))
		packet_address_smp(umad, mad, mgmt_class, dport);
	else
		packet_address_gmp(umad, mad, dport, rmpp);
}

/* mad_build_pkt() without data, with this transaction ID. 0 or -EINVAL. */
static INLINE int packet_build(void *umad, uint8_t *mad, const ib_rpc_t *rpc, int mgmt_class,
			       uint64_t trid, const ib_portid_t *dport,
			       const ib_rmpp_hdr_t *rmpp)
{
	if (packet_put_headers(mad, rpc, mgmt_class, trid, &dport->drpath))
		return -EINVAL;
	packet_put_address(umad, mad, mgmt_class, dport, rmpp);
	return 0;
}

/* --- others ----------------------------------------------------------------------- */

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
