/* SPDX-License-Identifier: BSD-2-Clause */

/* Adds up the readings of a port, although its counters may be reset meanwhile. */

#include "base/export.h"
#include "counters/counter_table.h"

#include <errno.h>
#include <stdlib.h>

/* A counter that falls by less than this part of its value was not reset. */
#define BACKWARDS_PART 16

struct mad_counters_tracker {
	struct mad_counters_totals totals;
	struct mad_counters latest; /* the latest value of each counter */
	/* The sum: higher than the latest value after a counter has fallen. */
	uint64_t highest[MAD_COUNTER_COUNT];
	uint64_t first_us[MAD_COUNTER_COUNT];  /* when the counter was read first */
	uint64_t latest_us[MAD_COUNTER_COUNT]; /* when the counter was read last */
	uint64_t in_latest;                    /* the counters of the latest reading */
	/* the growth between the latest two readings, and the time between their responses */
	uint64_t grown[MAD_COUNTER_COUNT];
	uint64_t grown_us[MAD_COUNTER_COUNT];
};

EXPORT struct mad_counters_tracker *mad_counters_tracker_create(void)
{
	return calloc(1, sizeof(struct mad_counters_tracker));
}

EXPORT void mad_counters_tracker_free(struct mad_counters_tracker *tracker)
{
	free(tracker);
}

static unsigned count_bits(uint64_t mask)
{
	return (unsigned)__builtin_popcountll(mask);
}

/* Counters that are lower than before, and the reason. */
struct fall {
	uint64_t lower;
	uint64_t far; /* of these, counters that only a reset explains */
	bool all;     /* each counter that was not 0 is far lower */
};

static struct fall find_falls(const struct mad_counters_tracker *tracker,
			      const struct mad_counters *reading, uint64_t comparable)
{
	struct fall fall = {.all = true};

	for (unsigned i = 0; i < MAD_COUNTER_COUNT; i++) {
		uint64_t before = mad_counters_value(&tracker->latest, i);
		uint64_t now = mad_counters_value(reading, i);

		if (!(comparable & MAD_COUNTER_BIT(i)) || !before)
			continue;
		if (now < before)
			fall.lower |= MAD_COUNTER_BIT(i);
		if (now < before && before - now >= before / BACKWARDS_PART)
			fall.far |= MAD_COUNTER_BIT(i);
		else
			fall.all = false;
	}
	return fall;
}

/* Adds a counter that was read before. Returns the growth. */
static uint64_t growth(struct mad_counters_tracker *tracker, const struct mad_counters *reading,
		       unsigned counter, bool is_reset)
{
	uint64_t *before = counter_in(&tracker->latest, counter), grown = 0;
	uint64_t now = mad_counters_value(reading, counter);

	if (is_reset)
		tracker->highest[counter] = 0;
	*before = now;
	if (now > tracker->highest[counter]) {
		grown = now - tracker->highest[counter];
		tracker->highest[counter] = now;
	}
	return grown;
}

static void add(struct mad_counters_tracker *tracker, const struct mad_counters *reading,
		uint64_t comparable, uint64_t reset)
{
	struct mad_counters *total = &tracker->totals.total;

	for (unsigned i = 0; i < MAD_COUNTER_COUNT; i++) {
		uint64_t *sum = counter_in(total, i), grown;

		tracker->grown[i] = 0;
		if (!(comparable & MAD_COUNTER_BIT(i)))
			continue;
		grown = growth(tracker, reading, i, reset & MAD_COUNTER_BIT(i));
		*sum = add_counts(*sum, grown);
		/* otherwise the growth belongs to a longer time */
		if (!(tracker->in_latest & MAD_COUNTER_BIT(i)))
			continue;
		tracker->grown[i] = grown;
		tracker->grown_us[i] = mad_counters_time(reading, i) - tracker->latest_us[i];
	}
	total->present |= comparable;
}

/* Counters that cannot be compared with an earlier value begin with this reading. */
static void begin_again(struct mad_counters_tracker *tracker,
			const struct mad_counters *reading, uint64_t counters)
{
	for (unsigned i = 0; i < MAD_COUNTER_COUNT; i++)
		if (counters & MAD_COUNTER_BIT(i))
			*counter_in(&tracker->latest, i) = tracker->highest[i] =
				mad_counters_value(reading, i);
	tracker->latest.present |= counters;
	tracker->latest.extended &= ~counters;
	tracker->latest.extended |= counters & reading->extended;
}

/* Compares the reading with earlier values, and adds the growth. */
static int take_comparable(struct mad_counters_tracker *tracker,
			   const struct mad_counters *reading, uint64_t comparable)
{
	struct fall fall = find_falls(tracker, reading, comparable);
	struct mad_counters_totals *totals = &tracker->totals;
	uint64_t backwards = fall.lower & ~fall.far;
	int events = 0;

	if (fall.far && fall.all) {
		events = MAD_COUNTERS_RESTARTED;
		totals->restarts++;
	} else if (fall.far) {
		events = MAD_COUNTERS_RESET;
		totals->resets++;
	}
	if (backwards)
		events |= MAD_COUNTERS_BACKWARDS;
	totals->backwards += count_bits(backwards);
	add(tracker, reading, comparable, fall.far);
	return events;
}

static void note_times(struct mad_counters_tracker *tracker, const struct mad_counters *reading,
		       uint64_t known)
{
	for (unsigned i = 0; i < MAD_COUNTER_COUNT; i++) {
		if (!(reading->present & MAD_COUNTER_BIT(i)))
			continue;
		tracker->latest_us[i] = mad_counters_time(reading, i);
		if (!(known & MAD_COUNTER_BIT(i)))
			tracker->first_us[i] = tracker->latest_us[i];
	}
}

static int take(struct mad_counters_tracker *tracker, const struct mad_counters *reading)
{
	struct mad_counters_totals *totals = &tracker->totals;
	uint64_t known = tracker->latest.present & MAD_COUNTERS_ALL;
	uint64_t present = reading->present & MAD_COUNTERS_ALL;
	uint64_t same = ~(tracker->latest.extended ^ reading->extended);
	uint64_t comparable = known & present & same;
	uint64_t at_maximum = reading->at_maximum & present;
	uint64_t stuck = at_maximum & ~tracker->latest.at_maximum;
	int events = 0;

	if (totals->readings) {
		events = take_comparable(tracker, reading, comparable);
		if (known != present || comparable != known)
			events |= MAD_COUNTERS_CHANGED;
	}
	if (stuck)
		events |= MAD_COUNTERS_STUCK;
	totals->stuck += count_bits(stuck);
	totals->total.at_maximum |= at_maximum;
	/* a counter that was not read does not change */
	tracker->latest.at_maximum = at_maximum | (tracker->latest.at_maximum & ~present);
	note_times(tracker, reading, known);
	begin_again(tracker, reading, present & ~comparable);
	tracker->in_latest = present;
	return events;
}

/* Two readings that were under way at once may have their responses in another order. */
static bool is_older(const struct mad_counters_tracker *tracker,
		     const struct mad_counters *reading)
{
	uint64_t both = tracker->latest.present & reading->present & MAD_COUNTERS_ALL;

	if (tracker->totals.readings && reading->time_us < tracker->totals.total.time_us)
		return true;
	for (unsigned i = 0; i < MAD_COUNTER_COUNT; i++)
		if (both & MAD_COUNTER_BIT(i) &&
		    mad_counters_time(reading, i) < tracker->latest_us[i])
			return true;
	return false;
}

EXPORT int mad_counters_track(struct mad_counters_tracker *tracker,
			      const struct mad_counters *reading)
{
	struct mad_counters_totals *totals;
	int events;

	/* a reading that failed has no counters, and may have no time */
	if (!tracker || !reading || !(reading->present & MAD_COUNTERS_ALL))
		return -EINVAL;
	totals = &tracker->totals;
	if (is_older(tracker, reading))
		return -EINVAL;
	events = take(tracker, reading);
	if (!totals->readings)
		totals->first_us = reading->time_us;
	totals->total.time_us = reading->time_us;
	totals->total.port = reading->port;
	totals->total.capability_mask = reading->capability_mask;
	totals->total.capability_mask2 = reading->capability_mask2;
	totals->total.odd |= reading->odd;
	totals->total.requests += reading->requests;
	totals->readings++;
	return events;
}

EXPORT const struct mad_counters_totals *mad_counters_tracker_totals(
	const struct mad_counters_tracker *tracker)
{
	return tracker ? &tracker->totals : NULL;
}

static double per_second(uint64_t count, uint64_t us)
{
	return us ? (double)count * 1e6 / (double)us : 0;
}

EXPORT double mad_counters_tracker_rate(const struct mad_counters_tracker *tracker,
					unsigned counter)
{
	if (!tracker || counter >= MAD_COUNTER_COUNT)
		return 0;
	return per_second(tracker->grown[counter], tracker->grown_us[counter]);
}

EXPORT double mad_counters_tracker_mean_rate(const struct mad_counters_tracker *tracker,
					     unsigned counter)
{
	if (!tracker || counter >= MAD_COUNTER_COUNT)
		return 0;
	return per_second(mad_counters_value(&tracker->totals.total, counter),
			  tracker->latest_us[counter] - tracker->first_us[counter]);
}
