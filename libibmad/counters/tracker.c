/* SPDX-License-Identifier: BSD-2-Clause */

/* Totals of a port's readings, despite counter resets. */

#include "counters/tracker.h"

#include "base/export.h"
#include "counters/reading.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* A drop by less than this part of the value is not a reset. */
#define BACKWARDS_PART  16
/*
 * Faster growth is impossible: the fastest link, 12x XDR, carries 300,000 bytes per
 * microsecond. The slack allows for response delays.
 */
#define FASTEST_PER_US  1000000
#define SLACK_US        1000000
/* Data packets: LRH, BTH and ICRC; MTU, all headers and ICRC. */
#define SHORTEST_PACKET 24
#define LONGEST_PACKET  (4096 + 128)

void tracker_init(struct mad_counters_tracker *tracker, bool from_device)
{
	memset(tracker, 0, sizeof(*tracker));
	tracker->totals.total.size = sizeof(tracker->totals.total);
	tracker->from_device = from_device;
}

EXPORT struct mad_counters_tracker *mad_counters_tracker_create(unsigned flags)
{
	struct mad_counters_tracker *tracker;

	if (flags & ~(unsigned)MAD_COUNTERS_FROM_DEVICE) {
		errno = EINVAL;
		return NULL;
	}
	tracker = malloc(sizeof(*tracker));
	if (tracker)
		tracker_init(tracker, flags & MAD_COUNTERS_FROM_DEVICE);
	return tracker;
}

EXPORT void mad_counters_tracker_free(struct mad_counters_tracker *tracker)
{
	free(tracker);
}

static unsigned count_bits(uint64_t mask)
{
	return (unsigned)__builtin_popcountll(mask);
}

/* Whether a link can count this much between two responses. */
static bool is_possible(uint64_t growth, uint64_t us)
{
	return growth / FASTEST_PER_US <= add_counts(us, SLACK_US);
}

/* Whether only a reset explains the drop. */
static bool is_far_lower(uint64_t now, uint64_t before)
{
	return now < before && before - now >= before / BACKWARDS_PART;
}

/*
 * Finds counters that grew faster than a link can count, even from a reset: their values are
 * ignored. *other: those whose previous value was also impossible and agrees with this one,
 * i.e. they belong to another port.
 */
static uint64_t find_odd(struct mad_counters_tracker *tracker,
			 const struct mad_counters *reading, uint64_t comparable,
			 uint64_t *other)
{
	uint64_t odd = 0;

	*other = 0;
	for_each_counter (i, comparable) {
		struct history *history = &tracker->counters[i];
		uint64_t now = counter_value(reading, i), growth = 0;
		uint64_t time = counter_time_us(reading, i);

		if (is_far_lower(now, history->latest))
			growth = now;
		else if (now > history->highest)
			growth = now - history->highest;
		if (is_possible(growth, time - history->latest_us))
			continue;
		odd |= MAD_COUNTER_BIT(i);
		if (tracker->odd & MAD_COUNTER_BIT(i) && now >= history->odd &&
		    is_possible(now - history->odd, time - history->odd_us))
			*other |= MAD_COUNTER_BIT(i);
		history->odd = now;
		history->odd_us = time;
	}
	tracker->odd = odd & ~*other;
	return odd;
}

/* Range of a byte or packet counter in PortCounters. */
static uint64_t basic_range(unsigned counter)
{
	return (UINT64_C(1) << 32) * mad_counters_info(counter)->multiplier;
}

/*
 * 32-bit byte or packet counters that wrapped instead of stopping at the maximum. The other of
 * the two proves it: not reset, and grown accordingly.
 */
static uint64_t find_wraps(const struct mad_counters_tracker *tracker,
			   const struct mad_counters *reading, uint64_t comparable)
{
	static const struct {
		uint8_t counter, other;
		bool is_bytes;
	} rows[] = {
		{MAD_COUNTER_XMIT_BYTES, MAD_COUNTER_XMIT_PACKETS, true},
		{MAD_COUNTER_XMIT_PACKETS, MAD_COUNTER_XMIT_BYTES, false},
		{MAD_COUNTER_RCV_BYTES, MAD_COUNTER_RCV_PACKETS, true},
		{MAD_COUNTER_RCV_PACKETS, MAD_COUNTER_RCV_BYTES, false},
	};
	uint64_t wrapped = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		unsigned counter = rows[i].counter, other = rows[i].other;
		uint64_t both = MAD_COUNTER_BIT(counter) | MAD_COUNTER_BIT(other);
		const struct history *history = &tracker->counters[counter];
		const struct history *other_history = &tracker->counters[other];
		uint64_t range = basic_range(counter);
		uint64_t growth = range - history->highest + counter_value(reading, counter);
		uint64_t other_growth = counter_value(reading, other) - other_history->latest;
		uint64_t bytes = rows[i].is_bytes ? growth : other_growth;
		uint64_t packets = rows[i].is_bytes ? other_growth : growth;

		/* otherwise, one may have been reset after the other's response */
		if ((comparable & both) != both || reading->extended & both ||
		    history->latest_us != other_history->latest_us)
			continue;
		if (tracker->at_maximum & MAD_COUNTER_BIT(counter) || growth >= range / 2 ||
		    counter_value(reading, other) <= other_history->latest)
			continue;
		if (bytes / LONGEST_PACKET <= packets && bytes / SHORTEST_PACKET >= packets)
			wrapped |= MAD_COUNTER_BIT(counter);
	}
	return wrapped;
}

/* Adds the growth of counters comparable with their previous values. */
static int add_growth(struct mad_counters_tracker *tracker, const struct mad_counters *reading,
		      uint64_t comparable)
{
	struct mad_counters_totals *totals = &tracker->totals;
	uint64_t wrapped = find_wraps(tracker, reading, comparable);
	uint64_t lower = 0, reset = 0, unknown;
	uint64_t far = 0;        /* of the lower ones, those only a reset explains */
	bool all_are_far = true; /* every counter that was not 0 */
	unsigned far_sources = 0;
	int events = 0;

	for_each_counter (i, comparable & ~wrapped)
		if (counter_value(reading, i) < tracker->counters[i].latest)
			lower |= MAD_COUNTER_BIT(i);
	for_each_counter (i, comparable) {
		uint64_t before = tracker->counters[i].latest;

		if (lower >> i & 1 && is_far_lower(counter_value(reading, i), before)) {
			far |= MAD_COUNTER_BIT(i);
			far_sources |= 1U << counter_source_of(i, tracker->extended);
		} else if (before) {
			all_are_far = false;
		}
	}
	/*
	 * A reset affects all counters of an attribute, even those that have since passed their
	 * old value or are not read now.
	 */
	for_each_counter (i, far ? tracker->known : 0)
		if (all_are_far || far_sources >> counter_source_of(i, tracker->extended) & 1)
			reset |= MAD_COUNTER_BIT(i);

	unknown = lower | reset | reading->at_maximum;
	for_each_counter (i, comparable) {
		uint64_t *sum = counter_in(&totals->total, i);
		struct history *history = &tracker->counters[i];
		uint64_t now = counter_value(reading, i);
		uint64_t time = counter_time_us(reading, i);

		/* after a drop, only part of the growth counts */
		if (history->latest != history->highest)
			unknown |= MAD_COUNTER_BIT(i);
		if (far >> i & 1)
			history->highest = 0;
		history->grown = 0;
		if (wrapped >> i & 1) {
			history->grown = basic_range(i) - history->highest + now;
			history->highest = now;
		} else if (now > history->highest) {
			history->grown = now - history->highest;
			history->highest = now;
		}
		*sum = add_counts(*sum, history->grown);
		history->grown_us = time - history->latest_us;
		history->latest_us = time;
		history->latest = now;
	}
	tracker->rates = comparable & ~unknown;

	totals->total.present |= comparable;
	totals->incomplete |= reset | (comparable & (lower | reading->at_maximum));
	totals->wraps += count_bits(wrapped);
	totals->backwards += count_bits(lower & ~far);
	if (far && all_are_far) {
		events = MAD_COUNTERS_RESTARTED;
		totals->restarts++;
	} else if (far) {
		events = MAD_COUNTERS_RESET;
		totals->resets++;
	}
	if (lower & ~far)
		events |= MAD_COUNTERS_BACKWARDS;
	if (wrapped)
		events |= MAD_COUNTERS_WRAPPED;
	return events;
}

/* A counter without a comparable previous value starts with this reading. */
static void begin_counter(struct mad_counters_tracker *tracker,
			  const struct mad_counters *reading, unsigned counter)
{
	struct history *history = &tracker->counters[counter];
	uint64_t bit = MAD_COUNTER_BIT(counter);

	history->latest = history->highest = counter_value(reading, counter);
	history->latest_us = counter_time_us(reading, counter);
	if (!(tracker->known & bit)) {
		history->first_us = history->latest_us;
		if (tracker->from_device) {
			history->begun = history->latest;
			*counter_in(&tracker->totals.total, counter) = history->latest;
			tracker->totals.total.present |= bit;
		}
	}
	tracker->known |= bit;
	tracker->stale &= ~bit;
	tracker->extended = (tracker->extended & ~bit) | (reading->extended & bit);
}

EXPORT void mad_counters_tracker_replace(struct mad_counters_tracker *tracker)
{
	if (tracker)
		tracker->stale = tracker->known;
}

/* Whether the reading is another port's, or the node's capabilities changed. */
static bool is_of_another(const struct mad_counters_totals *totals,
			  const struct mad_counters *reading)
{
	const struct mad_counters *total = &totals->total;

	if (!totals->readings)
		return false;
	if (reading->port != total->port)
		return true;
	/* missing without ClassPortInfo */
	return total->capability_mask && reading->capability_mask &&
	       (reading->capability_mask != total->capability_mask ||
		reading->capability_mask2 != total->capability_mask2);
}

/* Readings in flight at once may complete out of order. */
static bool is_older(const struct mad_counters_tracker *tracker,
		     const struct mad_counters *reading)
{
	uint64_t both = tracker->known & reading->present & MAD_COUNTERS_ALL;

	if (tracker->totals.readings && reading->time_us < tracker->totals.total.time_us)
		return true;
	for_each_counter (i, both)
		if (counter_time_us(reading, i) < tracker->counters[i].latest_us)
			return true;
	return false;
}

int tracker_add(struct mad_counters_tracker *tracker, const struct mad_counters *reading)
{
	struct mad_counters_totals *totals = &tracker->totals;
	uint64_t read = reading->present & MAD_COUNTERS_ALL;
	uint64_t present = read & ~reading->odd_values;
	uint64_t common, comparable, odd, other, begins, ignored, at_maximum, stuck;
	int events = 0;

	/* failed readings have no counters and maybe no time */
	if (!read || is_older(tracker, reading))
		return -EINVAL;
	if (is_of_another(totals, reading))
		mad_counters_tracker_replace(tracker);

	common = tracker->known & present & ~tracker->stale;
	comparable = common & ~(tracker->extended ^ reading->extended);
	if (totals->readings && (tracker->seen != read || comparable != common))
		events |= MAD_COUNTERS_CHANGED;
	odd = find_odd(tracker, reading, comparable, &other);
	if (other | (tracker->stale & present)) {
		events |= MAD_COUNTERS_REPLACED;
		totals->replaced++;
	}
	events |= add_growth(tracker, reading, comparable & ~odd);

	ignored = (odd & ~other) | (read & ~present);
	if (ignored)
		events |= MAD_COUNTERS_IMPOSSIBLE;
	totals->impossible += count_bits(ignored);
	totals->total.odd_values |= ignored;

	/* counters not read stay unchanged */
	at_maximum = reading->at_maximum & read & ~ignored;
	stuck = at_maximum & ~tracker->at_maximum;
	if (stuck)
		events |= MAD_COUNTERS_STUCK;
	totals->stuck += count_bits(stuck);
	totals->total.at_maximum |= at_maximum;
	tracker->at_maximum = at_maximum | (tracker->at_maximum & ~(read & ~ignored));

	begins = (present & ~comparable) | other;
	totals->incomplete |= begins & (tracker->known | reading->at_maximum);
	for_each_counter (i, begins)
		begin_counter(tracker, reading, i);
	tracker->seen |= read;

	if (!totals->readings)
		totals->first_us = reading->time_us;
	totals->total.time_us = reading->time_us;
	totals->total.port = reading->port;
	if (reading->capability_mask) {
		totals->total.capability_mask = reading->capability_mask;
		totals->total.capability_mask2 = reading->capability_mask2;
	}
	totals->total.odd |= reading->odd;
	totals->total.requests += reading->requests;
	totals->readings++;
	return events;
}

/* The program's structure may be older, with fewer members. */
EXPORT int mad_counters_tracker_add(struct mad_counters_tracker *tracker,
				    const struct mad_counters *reading)
{
	struct mad_counters whole = {0};
	int events = -EINVAL;

	if (tracker && reading) {
		memcpy(&whole, reading,
		       reading->size < sizeof(whole) ? reading->size : sizeof(whole));
		events = tracker_add(tracker, &whole);
	}
	return counters_fail(events);
}

EXPORT const struct mad_counters_totals *mad_counters_tracker_totals(
	const struct mad_counters_tracker *tracker)
{
	return tracker ? &tracker->totals : NULL;
}

/* Returns the rate, unknown without a time. */
static double per_second(uint64_t count, uint64_t us)
{
	return us ? (double)count * 1e6 / (double)us : (double)NAN;
}

EXPORT double mad_counters_tracker_rate(const struct mad_counters_tracker *tracker,
					unsigned counter, enum mad_rate rate)
{
	const struct history *history;

	if (!tracker || counter >= MAD_COUNTER_COUNT)
		return (double)NAN;
	history = &tracker->counters[counter];
	if (rate == MAD_RATE_MEAN)
		return per_second(counter_value(&tracker->totals.total, counter) -
					  history->begun,
				  history->latest_us - history->first_us);
	if (rate != MAD_RATE_LATEST || !(tracker->rates & MAD_COUNTER_BIT(counter)))
		return (double)NAN;
	return per_second(history->grown, history->grown_us);
}
