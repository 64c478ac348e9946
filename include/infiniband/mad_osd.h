/* SPDX-License-Identifier: BSD-2-Clause */

/** mad_osd.h - what programs that include mad.h have always found with it. */
#ifndef INFINIBAND_MAD_OSD_H
#define INFINIBAND_MAD_OSD_H

#include <byteswap.h>
#include <endian.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>

#ifndef MAD_EXPORT
#define MAD_EXPORT extern
#endif
#ifndef DEPRECATED
#define DEPRECATED __attribute__((deprecated))
#endif

#endif /* INFINIBAND_MAD_OSD_H */
