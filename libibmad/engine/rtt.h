/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * How long responses take, and from that, how long to wait for a response before the request
 * is considered lost: smoothed mean and deviation, as in RFC 6298.
 */
#ifndef LIBIBMAD_RTT_H
#define LIBIBMAD_RTT_H

#include <stdint.h>

struct rtt {
	uint32_t floor_us;     /* wait no shorter */
	uint32_t initial_us;   /* wait so long as nothing is known */
	uint32_t mean_us;      /* times 8; 0: nothing is known */
	uint32_t deviation_us; /* times 4 */
};

/* A response took so long. */
void rtt_sample(struct rtt *rtt, uint32_t us);
/* After this time a response is late. */
uint32_t rtt_timeout(const struct rtt *rtt);

#endif
