/* SPDX-License-Identifier: BSD-2-Clause */

/* Where general management packets go when the caller leaves it open (IBA 13.5.1). */
#ifndef LIBIBMAD_GMP_H
#define LIBIBMAD_GMP_H

#include <infiniband/mad.h>

/* To QP1, with the Q_Key that it has unless another one is given. */
static inline void address_qp1(ib_portid_t *portid)
{
	portid->qp = 1;
	if (!portid->qkey)
		portid->qkey = IB_DEFAULT_QP1_QKEY;
}

/*
 * A GMP goes to QP1, and with the well-known Q_Key, unless the address says otherwise. Packets
 * of SMPs ignore both members.
 */
static inline void complete_address(ib_portid_t *portid)
{
	uint32_t qp = portid->qp;

	address_qp1(portid);
	if (qp)
		portid->qp = qp;
}

/* Whether the method has a response: that to a Trap is TrapRepress (IBA 13.4.9). */
static inline int has_response(unsigned method)
{
	return method == IB_MAD_METHOD_GET || method == IB_MAD_METHOD_SET ||
	       method == IB_MAD_METHOD_TRAP;
}

#endif
