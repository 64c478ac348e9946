/* SPDX-License-Identifier: BSD-2-Clause */

/** mad_osd.h - macros for programs older than rdma-core's libibmad. mad.h leaves it out. */
#ifndef INFINIBAND_MAD_OSD_H
#define INFINIBAND_MAD_OSD_H

#include <infiniband/mad.h>

#ifndef MAD_EXPORT
#define MAD_EXPORT extern
#endif
#ifndef DEPRECATED
#define DEPRECATED __attribute__((deprecated))
#endif

#endif /* INFINIBAND_MAD_OSD_H */
