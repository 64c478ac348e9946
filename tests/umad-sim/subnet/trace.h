/* SPDX-License-Identifier: BSD-2-Clause */

/* One line per event of a packet, without times and TIDs, so that two runs with the same seed
 * and the same requests write the same trace. */
#ifndef FABRIC_TRACE_H
#define FABRIC_TRACE_H

#include <stdio.h>

#include "fabric.h"
#include "wire_packet.h"

/* From now on, writes lines to the stream, which the caller closes; NULL stops it. Returns 0 or
 * -ENOMEM. */
int trace_to(struct fabric *fabric, FILE *out);
void trace_free(struct fabric *fabric);

/* Returns the number of the next packet, from 1 on. */
uint64_t trace_number(struct fabric *fabric);

void trace_packet(const struct fabric *fabric, const struct packet *packet, uint32_t port,
		  const char *what);

#endif
