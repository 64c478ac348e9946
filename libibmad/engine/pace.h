/* SPDX-License-Identifier: BSD-2-Clause */

/* So many MADs a second and no more. They may come in bursts of a millisecond. */
#ifndef LIBIBMAD_PACE_H
#define LIBIBMAD_PACE_H

#include <stdint.h>

#define PACE_BURST_NS 1000000

struct pace {
	unsigned rate;   /* a second; 0: no limit */
	int64_t next_ns; /* when the next one would be due if all came at equal intervals */
};

/* The time in microseconds before which no MAD may be sent. */
static inline int64_t pace_opens(const struct pace *pace)
{
	return pace->rate ? (pace->next_ns - PACE_BURST_NS + 999) / 1000 : 0;
}

/* A MAD is sent. */
static inline void pace_sent(struct pace *pace, int64_t now)
{
	if (!pace->rate)
		return;
	if (pace->next_ns < now * 1000)
		pace->next_ns = now * 1000;
	/* rounded up: no more, not even a little */
	pace->next_ns += (1000000000 + INT64_C(1) * pace->rate - 1) / pace->rate;
}

#endif
