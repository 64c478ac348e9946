/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * MAD layout (IBA 13.4.3, 13.6.2, 14.2.1), byte order, properties of management classes, and
 * GMP addresses.
 */
#ifndef LIBIBMAD_LAYOUT_H
#define LIBIBMAD_LAYOUT_H

#include <endian.h>
#include <infiniband/mad.h>
#include <infiniband/umad.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define STATUS_OFFS       4
#define HOP_COUNT_OFFS    7
#define TID_OFFS          12 /* the lower half: the kernel owns the upper one */
#define ATTRIBUTE_OFFS    16
#define MODIFIER_OFFS     20
#define RMPP_VERSION_OFFS 24
#define RMPP_TYPE_OFFS    25
#define RMPP_FLAGS_OFFS   26 /* RRespTime is in the upper bits */
#define RMPP_STATUS_OFFS  27
#define RMPP_DATA1_OFFS   28
#define RMPP_DATA2_OFFS   32
#define RMPP_HEADER_END   36
#define INITIAL_PATH_OFFS 128
#define RETURN_PATH_OFFS  192

/* Direction bit of a directed-route SMP's status: the SMP is returning (IBA 14.2.1.2). */
#define DIRECTION           0x8000u
#define RMPP_VERSION        1
/* RRespTime (IBA 13.6.2.1) if the sender gives no time. */
#define RMPP_RESP_TIME_NONE 31
#define GRH_HOP_LIMIT       255
#define PERMISSIVE_LID      0xffff
/* A port has up to 2^LMC_MAX LIDs (IBA 4.1.3). */
#define LMC_MAX             7

static inline uint16_t get16(const uint8_t *mad, int offset)
{
	return (uint16_t)(mad[offset] << 8 | mad[offset + 1]);
}

static inline uint32_t get32(const uint8_t *mad, int offset)
{
	uint32_t value;

	memcpy(&value, mad + offset, sizeof(value));
	return be32toh(value);
}

static inline void put16(uint8_t *mad, int offset, uint16_t value)
{
	value = htobe16(value);
	memcpy(mad + offset, &value, sizeof(value));
}

static inline void put32(uint8_t *mad, int offset, uint32_t value)
{
	value = htobe32(value);
	memcpy(mad + offset, &value, sizeof(value));
}

static inline void put64(uint8_t *mad, int offset, uint64_t value)
{
	value = htobe64(value);
	memcpy(mad + offset, &value, sizeof(value));
}

/* SMPs use QP0 (IBA 14.2.1). */
static inline bool is_smp_class(int mgmt_class)
{
	return mgmt_class == IB_SMI_CLASS || mgmt_class == IB_SMI_DIRECT_CLASS;
}

/* Directed if the route starts at this port or ends at the destination. */
static inline int smp_class_of(const ib_portid_t *to)
{
	return to->lid <= 0 || to->drpath.drslid == PERMISSIVE_LID ||
			       to->drpath.drdlid == PERMISSIVE_LID
		       ? IB_SMI_DIRECT_CLASS
		       : IB_SMI_CLASS;
}

/* Whether the kernel accepts a client of this class without an OUI. */
static inline bool is_known_class(int mgmt_class)
{
	return (mgmt_class >= 0x01 && mgmt_class <= 0x4f) || mgmt_class == IB_SMI_DIRECT_CLASS;
}

static inline uint8_t class_version(int mgmt_class)
{
	return mgmt_class == IB_SA_CLASS || mgmt_class == IB_CC_CLASS ? 2 : 1;
}

/* Defaults to QP1 and its well-known Q_Key (IBA 13.5.1). */
static inline void complete_address(ib_portid_t *portid)
{
	if (!portid->qp)
		portid->qp = 1;
	if (!portid->qkey)
		portid->qkey = IB_DEFAULT_QP1_QKEY;
}

static inline void address_qp1(ib_portid_t *portid)
{
	portid->qp = 1;
	complete_address(portid);
}

/* Fills a umad buffer's address for a GMP. gid_index is the source GID of a GRH. */
static inline void address_gmp(void *umad, const ib_portid_t *dport, uint8_t gid_index)
{
	ib_mad_addr_t grh = {.hop_limit = GRH_HOP_LIMIT, .gid_index = gid_index};

	memcpy(grh.gid, dport->gid, sizeof(grh.gid));
	umad_set_addr(umad, dport->lid, (int)dport->qp, dport->sl, (int)dport->qkey);
	umad_set_grh(umad, dport->grh_present ? &grh : NULL);
	umad_set_pkey(umad, (int)dport->pkey_idx);
}

/* A BMMAD also marks responses in its attribute modifier (IBA 16.2.2). */
static inline bool is_response(const uint8_t *mad)
{
	return mad[3] & IB_MAD_RESPONSE || mad[3] == IB_MAD_METHOD_TRAP_REPRESS ||
	       (mad[1] == IB_BOARD_MGMT_CLASS && mad[23] & 1);
}

/* Trap's response is TrapRepress (IBA 13.4.9). */
static inline int has_response(unsigned method)
{
	return method == IB_MAD_METHOD_GET || method == IB_MAD_METHOD_SET ||
	       method == IB_MAD_METHOD_TRAP;
}

#endif
