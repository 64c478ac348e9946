/* SPDX-License-Identifier: BSD-2-Clause */

/* Addresses of packets in a umad buffer. */
#ifndef LIBIBMAD_PACKET_H
#define LIBIBMAD_PACKET_H

#include <infiniband/mad.h>

/* To a port by its LID, and through a GRH from that entry of the GID table if it wants one. */
void address_gmp(void *umad, const ib_portid_t *dport, uint8_t gid_index);

#endif
