/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A tracker and its latest reading in few bytes. Most counters are 0 or have not changed, and
 * most times of a reading are equal. So each number is stored as its difference from the number
 * that is expected in its place, and a difference of 0 takes a bit.
 */
#ifndef LIBIBMAD_PACKED_TRACKER_H
#define LIBIBMAD_PACKED_TRACKER_H

#include "counters/tracker.h"

#include <stddef.h>

/* The largest size: the numbers of each counter, 60 others, 10 bytes and a bit for each. */
#define PACKED_NUMBERS (10 * MAD_COUNTER_COUNT + 60)
#define PACKED_MAX     (10 * PACKED_NUMBERS + PACKED_NUMBERS / 8 + 1)

/* What is not stored, because the owner knows it. */
struct packed_base {
	uint64_t time_us; /* before all readings */
	uint8_t port;
	bool from_device;
};

/*
 * Stores a tracker that has tracked the reading. The numbers "requests", "status" and "odd" of
 * the reading are left out. Returns the size.
 */
size_t tracker_pack(struct mad_counters_tracker *tracker, struct mad_counters *reading,
		    const struct packed_base *base, uint8_t bytes[PACKED_MAX]);

/* The reverse. */
void tracker_unpack(struct mad_counters_tracker *tracker, struct mad_counters *reading,
		    const struct packed_base *base, uint8_t *bytes);

#endif
