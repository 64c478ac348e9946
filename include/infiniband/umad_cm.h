/* SPDX-License-Identifier: BSD-2-Clause */

/** umad_cm.h - communication management (IBA 12.6). */
#ifndef INFINIBAND_UMAD_CM_H
#define INFINIBAND_UMAD_CM_H

#include <infiniband/umad_types.h>

/** Messages, by attribute (IBA 12.6.1). */
enum {
	UMAD_CM_ATTR_REQ = 0x0010,
	UMAD_CM_ATTR_MRA = 0x0011,
	UMAD_CM_ATTR_REJ = 0x0012,
	UMAD_CM_ATTR_REP = 0x0013,
	UMAD_CM_ATTR_RTU = 0x0014,
	UMAD_CM_ATTR_DREQ = 0x0015,
	UMAD_CM_ATTR_DREP = 0x0016,
	UMAD_CM_ATTR_SIDR_REQ = 0x0017,
	UMAD_CM_ATTR_SIDR_REP = 0x0018,
	UMAD_CM_ATTR_LAP = 0x0019,
	UMAD_CM_ATTR_APR = 0x001a,
	UMAD_CM_ATTR_SAP = 0x001b,
	UMAD_CM_ATTR_SPR = 0x001c
};

#endif /* INFINIBAND_UMAD_CM_H */
