/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */

/* Differences between versions of Linux. */
#ifndef SIM_HCA_COMPAT_H
#define SIM_HCA_COMPAT_H

#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
#include <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
#define CREATE_CQ_LAST struct uverbs_attr_bundle *attrs
#else
#define CREATE_CQ_LAST struct ib_udata *udata
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
#define REG_USER_MR_LAST struct ib_dmah *dmah, struct ib_udata *udata
#else
#define REG_USER_MR_LAST struct ib_udata *udata
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
#define SPEED_XDR IB_SPEED_XDR
#else
#define SPEED_XDR IB_SPEED_NDR /* the fastest that the kernel knows */
#endif

#endif
