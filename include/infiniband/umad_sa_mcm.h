/* SPDX-License-Identifier: BSD-2-Clause */

/** umad_sa_mcm.h - MCMemberRecord: multicast group membership (IBA 15.2.5.17). */
#ifndef INFINIBAND_UMAD_SA_MCM_H
#define INFINIBAND_UMAD_SA_MCM_H

#include <infiniband/umad_sa.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Component mask, in host order. */
enum {
	UMAD_SA_MCM_COMP_MASK_MGID = 1 << 0,
	UMAD_SA_MCM_COMP_MASK_PORT_GID = 1 << 1,
	UMAD_SA_MCM_COMP_MASK_QKEY = 1 << 2,
	UMAD_SA_MCM_COMP_MASK_MLID = 1 << 3,
	UMAD_SA_MCM_COMP_MASK_MTU_SEL = 1 << 4,
	UMAD_SA_MCM_COMP_MASK_MTU = 1 << 5,
	UMAD_SA_MCM_COMP_MASK_TCLASS = 1 << 6,
	UMAD_SA_MCM_COMP_MASK_PKEY = 1 << 7,
	UMAD_SA_MCM_COMP_MASK_RATE_SEL = 1 << 8,
	UMAD_SA_MCM_COMP_MASK_RATE = 1 << 9,
	UMAD_SA_MCM_COMP_MASK_LIFE_TIME_SEL = 1 << 10,
	UMAD_SA_MCM_COMP_MASK_LIFE_TIME = 1 << 11,
	UMAD_SA_MCM_COMP_MASK_SL = 1 << 12,
	UMAD_SA_MCM_COMP_MASK_FLOW_LABEL = 1 << 13,
	UMAD_SA_MCM_COMP_MASK_HOP_LIMIT = 1 << 14,
	UMAD_SA_MCM_COMP_MASK_SCOPE = 1 << 15,
	UMAD_SA_MCM_COMP_MASK_JOIN_STATE = 1 << 16,
	UMAD_SA_MCM_COMP_MASK_PROXY_JOIN = 1 << 17
};

/** JoinState. */
enum {
	UMAD_SA_MCM_JOIN_STATE_FULL_MEMBER = 1 << 0,
	UMAD_SA_MCM_JOIN_STATE_NON_MEMBER = 1 << 1,
	UMAD_SA_MCM_JOIN_STATE_SEND_ONLY_NON_MEMBER = 1 << 2,
	UMAD_SA_MCM_JOIN_STATE_SEND_ONLY_FULL_MEMBER = 1 << 3
};

/** Scope of a multicast GID (IBA 4.1.1). */
enum {
	UMAD_SA_MCM_ADDR_SCOPE_LINK_LOCAL = 0x2,
	UMAD_SA_MCM_ADDR_SCOPE_SITE_LOCAL = 0x5,
	UMAD_SA_MCM_ADDR_SCOPE_ORG_LOCAL = 0x8,
	UMAD_SA_MCM_ADDR_SCOPE_GLOBAL = 0xe
};

/** MCMemberRecord, padded to a multiple of 8 bytes as in an SA response. */
struct umad_sa_mcmember_record {
	uint8_t mgid[16];
	uint8_t portgid[16];
	__be32 qkey;
	__be16 mlid;
	uint8_t mtu; /**< with selector, as are rate and pkt_life; see umad_sa.h */
	uint8_t tclass;
	__be16 pkey;
	uint8_t rate;
	uint8_t pkt_life;
	__be32 sl_flow_hop;
	uint8_t scope_state;
	uint8_t proxy_join;
	uint8_t reserved[2];
	uint8_t pad[4];
};

/** Splits into SL (4 bits), flow label (20) and hop limit (8). Pointers may be NULL. */
static inline void umad_sa_mcm_get_sl_flow_hop(__be32 sl_flow_hop, uint8_t *const p_sl,
					       uint32_t *const p_flow_lbl, uint8_t *const p_hop)
{
	uint32_t host = ntohl(sl_flow_hop);

	if (p_sl)
		*p_sl = (uint8_t)(host >> 28);
	if (p_flow_lbl)
		*p_flow_lbl = host >> 8 & 0xfffff;
	if (p_hop)
		*p_hop = (uint8_t)host;
}

static inline __be32 umad_sa_mcm_set_sl_flow_hop(uint8_t sl, uint32_t flow_label,
						 uint8_t hop_limit)
{
	return htonl((uint32_t)sl << 28 | (flow_label & 0xfffff) << 8 | hop_limit);
}

/** Splits into scope (upper 4 bits) and JoinState. Pointers may be NULL. */
static inline void umad_sa_mcm_get_scope_state(const uint8_t scope_state,
					       uint8_t *const p_scope, uint8_t *const p_state)
{
	if (p_scope)
		*p_scope = (uint8_t)(scope_state >> 4);
	if (p_state)
		*p_state = scope_state & 0xf;
}

static inline uint8_t umad_sa_mcm_set_scope_state(const uint8_t scope, const uint8_t state)
{
	return (uint8_t)(scope << 4 | (state & 0xf));
}

/** Sets JoinState, keeping the scope. */
static inline void umad_sa_mcm_set_join_state(struct umad_sa_mcmember_record *p_mc_rec,
					      const uint8_t state)
{
	p_mc_rec->scope_state = (uint8_t)((p_mc_rec->scope_state & 0xf0) | (state & 0xf));
}

/** Returns 0 or 1. */
static inline int umad_sa_mcm_get_proxy_join(struct umad_sa_mcmember_record *p_mc_rec)
{
	return p_mc_rec->proxy_join >> 7;
}

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_UMAD_SA_MCM_H */
