/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The kernel's user_mad ABI. umad.h has a structure and ioctls of the same names, which are
 * renamed or removed here before the header of the kernel is included.
 */
#ifndef LIBIBUMAD_KERNEL_ABI_H
#define LIBIBUMAD_KERNEL_ABI_H

#include <infiniband/umad.h>

#undef IB_IOCTL_MAGIC
#undef IB_USER_MAD_REGISTER_AGENT
#undef IB_USER_MAD_UNREGISTER_AGENT
#undef IB_USER_MAD_ENABLE_PKEY
#undef IB_USER_MAD_REGISTER_AGENT2
#define ib_user_mad kernel_user_mad
#include <rdma/ib_user_mad.h>
#undef ib_user_mad

_Static_assert(sizeof(struct ib_user_mad_hdr) == sizeof(struct ib_user_mad),
	       "umad.h's header is the kernel's");

#endif
