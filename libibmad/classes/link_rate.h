/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef LIBIBMAD_LINK_RATE_H
#define LIBIBMAD_LINK_RATE_H

#include <infiniband/mad_link.h>

/* Returns the most lanes in a set (enum mad_link_width); 0 if empty. */
unsigned link_widest(unsigned widths);
/* Returns the highest speed in a set (bit n: speed n); MAD_SPEED_NONE if empty. */
enum mad_link_speed link_fastest(unsigned speeds);

#endif
