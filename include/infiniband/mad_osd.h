/* SPDX-License-Identifier: BSD-2-Clause */

/**
 * mad_osd.h - for programs that were written for libibmad before it was part of rdma-core.
 * mad.h does not include it, and new programs do not need it.
 */
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
