/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/rtt.h"

/* Longer ones tell about a node, not about the fabric; nor do they fit when multiplied. */
#define LONGEST_US 10000000

void rtt_sample(struct rtt *rtt, uint32_t us)
{
	uint32_t mean = rtt->mean_us / 8, off;

	if (us > LONGEST_US)
		us = LONGEST_US;
	if (us == 0)
		us = 1;
	if (!rtt->mean_us) {
		rtt->mean_us = us * 8;
		rtt->deviation_us = us * 2;
		return;
	}
	off = us > mean ? us - mean : mean - us;
	rtt->deviation_us += off - rtt->deviation_us / 4;
	rtt->mean_us += us - mean;
}

uint32_t rtt_timeout(const struct rtt *rtt)
{
	uint32_t us;

	if (!rtt->mean_us)
		return rtt->initial_us;
	us = rtt->mean_us / 8 + rtt->deviation_us;
	return us > rtt->floor_us ? us : rtt->floor_us;
}
