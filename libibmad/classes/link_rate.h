/* SPDX-License-Identifier: BSD-2-Clause */

/* The best of a set of widths or speeds. */
#ifndef LIBIBMAD_LINK_RATE_H
#define LIBIBMAD_LINK_RATE_H

#include <infiniband/mad_link.h>

/* The largest number of lanes in a set of widths (enum mad_link_width); 0 for an empty set. */
unsigned link_widest(unsigned widths);
/* The highest speed in a set (bit n: the speed n); MAD_SPEED_NONE for an empty set. */
enum mad_link_speed link_fastest(unsigned speeds);

#endif
