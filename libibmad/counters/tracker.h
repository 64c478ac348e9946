/* SPDX-License-Identifier: BSD-2-Clause */

/* A tracker's state, which fabric_counters.c packs. */
#ifndef LIBIBMAD_TRACKER_H
#define LIBIBMAD_TRACKER_H

#include <infiniband/mad_counters.h>

/* A counter across the readings with a possible value. */
struct history {
	uint64_t latest;
	uint64_t highest; /* exceeds the latest value after a drop that was no reset */
	uint64_t begun;   /* part of the total from before the first reading */
	uint64_t first_us, latest_us;
	uint64_t grown, grown_us; /* since the reading before the latest */
	uint64_t odd, odd_us;     /* the latest reading's impossible value */
};

/* Only 64-bit words and structures of them: fabric_counters.c packs it. */
struct mad_counters_tracker {
	struct mad_counters_totals totals;
	uint64_t seen;        /* counters in any reading */
	uint64_t known;       /* counters with a history */
	uint64_t stale;       /* of these, another node's or port's */
	uint64_t extended;    /* of these, those from PortCountersExtended */
	uint64_t at_maximum;  /* likewise */
	uint64_t odd;         /* impossible growth in the latest reading */
	uint64_t rates;       /* current rate is known */
	uint64_t from_device; /* 1: totals start at the device's value; else 0 */
	struct history counters[MAD_COUNTER_COUNT];
};

void tracker_init(struct mad_counters_tracker *tracker, bool from_device);
/* mad_counters_tracker_add() for a reading with all members. */
int tracker_add(struct mad_counters_tracker *tracker, const struct mad_counters *reading);

#endif
