/* SPDX-License-Identifier: BSD-2-Clause */

/* The state of a tracker, which fabric_counters.c stores in few bytes. */
#ifndef LIBIBMAD_TRACKER_H
#define LIBIBMAD_TRACKER_H

#include <infiniband/mad_counters.h>

/* A counter in the readings that have a possible value of it. */
struct history {
	uint64_t latest;
	uint64_t highest; /* above the latest value after a fall that was no reset */
	uint64_t begun;   /* the part of the total from before the first reading */
	uint64_t first_us, latest_us;
	uint64_t grown, grown_us; /* from the reading before the latest one */
	uint64_t odd, odd_us;     /* the impossible value of the latest reading */
};

/* All members are words of 64 bits, or structures of words, for fabric_counters.c. */
struct mad_counters_tracker {
	struct mad_counters_totals totals;
	uint64_t seen;        /* counters of all readings */
	uint64_t known;       /* counters with a history */
	uint64_t stale;       /* of these, counters of another node or port */
	uint64_t extended;    /* of these, from PortCountersExtended */
	uint64_t at_maximum;  /* likewise */
	uint64_t odd;         /* counters with an impossible growth in the latest reading */
	uint64_t rates;       /* counters whose present rate is known */
	uint64_t from_device; /* 1: totals begin at the value of the device; else 0 */
	struct history counters[MAD_COUNTER_COUNT];
};

void tracker_init(struct mad_counters_tracker *tracker, bool from_device);
/* mad_counters_tracker_add() with a reading that has all members. */
int tracker_add(struct mad_counters_tracker *tracker, const struct mad_counters *reading);

#endif
