/* SPDX-License-Identifier: BSD-2-Clause */

/* What MADs of a class have in common, and what is the same in all of them. */
#ifndef LIBIBMAD_MGMT_CLASS_H
#define LIBIBMAD_MGMT_CLASS_H

#include <infiniband/mad.h>
#include <stdbool.h>

/* Of a directed route's status: the MAD is on its way back (IBA 14.2.1.2). */
#define DIRECTION 0x8000u

#define RMPP_VERSION        1
/* RRespTime (IBA 13.6.2.1) when the sender has nothing to say about it. */
#define RMPP_RESP_TIME_NONE 31
#define GRH_HOP_LIMIT       255

/* Whether its MADs are SMPs, which go by QP0 (IBA 14.2.1). */
static inline bool is_smp_class(int mgmt_class)
{
	return mgmt_class == IB_SMI_CLASS || mgmt_class == IB_SMI_DIRECT_CLASS;
}

/* Whether a client of the class can be registered by its number alone. */
static inline bool is_known_class(int mgmt_class)
{
	return (mgmt_class >= 0x01 && mgmt_class <= 0x4f) || mgmt_class == IB_SMI_DIRECT_CLASS;
}

static inline uint8_t class_version(int mgmt_class)
{
	return mgmt_class == IB_SA_CLASS || mgmt_class == IB_CC_CLASS ? 2 : 1;
}

#endif
