/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Codes of a link's speed and width in PortInfo and in path records (IBA 14.2.5.6, 15.2.5.16).
 */
#ifndef FABRIC_LINK_H
#define FABRIC_LINK_H

#include "fabric.h"

/* LinkWidthSupported of a port; 4x and less without a cable. */
uint8_t widths_supported(const struct graph_port *port);

/* The widest of these LinkWidth bits with at most this many lanes; 0: none. */
unsigned int widest(unsigned int bits, unsigned int most);

/* LinkSpeedSupported of a port; QDR without a cable. */
uint8_t speeds_supported(const struct graph_port *port);

#define NO_EXTENDED_SPEEDS 30 /* LinkSpeedExtEnabled: they are disabled */

/* LinkSpeedActive (1, 2, 4; from FDR10 on 4), LinkSpeedExtActive (FDR 1 .. NDR 8; else 0). */
uint8_t speed_bit(enum link_speed speed);
uint8_t speed_ext_bit(enum link_speed speed);

/* LinkSpeedExtSupported of a port. */
uint8_t speeds_ext_supported(const struct graph_port *port);

/* LinkSpeedExtActive2 (XDR: 1). */
uint8_t speed_ext2_bit(enum link_speed speed);

/* The bits of CapabilityMask2 for the widths and speeds that a port supports. */
uint16_t link_capabilities2(const struct graph_port *port);

/* The link's data rate in Mbit/s; its Rate code in path records (IBA 15.2.5.16: 2 is 2.5 Gb/s
 * ...). */
uint64_t link_mbits(unsigned int lanes, enum link_speed speed);
uint8_t rate_code(unsigned int lanes, enum link_speed speed);

/* The slower of two rate codes: the codes are not sorted by speed. */
uint8_t slower_rate(uint8_t a, uint8_t b);
int rate_compare(uint8_t a, uint8_t b);

#endif
