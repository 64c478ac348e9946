/* SPDX-License-Identifier: BSD-2-Clause */

/* Adds up the readings of a port, although its counters may be reset meanwhile. */

#include "counters/tracker.h"

#include "base/export.h"
#include "counters/reading.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* A counter that falls by less than this part of its value was not reset. */
#define BACKWARDS_PART  16
/*
 * A counter that grows faster has an impossible value: the fastest link, 12x XDR, carries
 * 300,000 bytes in a microsecond. The slack is for the time of a response on its way.
 */
#define FASTEST_PER_US  1000000
#define SLACK_US        1000000
/* Of a data packet: LRH, BTH and ICRC; MTU, all headers and ICRC. */
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

/* Whether a link may count as much in the time between two responses. */
static bool is_possible(uint64_t growth, uint64_t us)
{
	return growth / FASTEST_PER_US <= add_counts(us, SLACK_US);
}

/* Whether a counter is so much lower that only a reset explains it. */
static bool is_far_lower(uint64_t now, uint64_t before)
{
	return now < before && before - now >= before / BACKWARDS_PART;
}

/* Counters that have neither grown as a link can count, nor been reset and grown since. */
static uint64_t find_odd(const struct mad_counters_tracker *tracker,
			 const struct mad_counters *reading, uint64_t comparable)
{
	uint64_t odd = 0;

	for_each_counter (i, comparable) {
		const struct history *history = &tracker->counters[i];
		uint64_t now = counter_value(reading, i), growth = 0;

		if (is_far_lower(now, history->latest))
			growth = now;
		else if (now > history->highest)
			growth = now - history->highest;
		if (!is_possible(growth, counter_time_us(reading, i) - history->latest_us))
			odd |= MAD_COUNTER_BIT(i);
	}
	return odd;
}

/* The range of a counter of bytes or packets in PortCounters. */
static uint64_t basic_range(unsigned counter)
{
	return (UINT64_C(1) << 32) * mad_counters_info(counter)->multiplier;
}

/* Growth of a counter of 32 bits that began again at 0, if its value was near the maximum. */
static bool is_near_wrap(const struct mad_counters_tracker *tracker,
			 const struct mad_counters *reading, unsigned counter, uint64_t *growth)
{
	uint64_t before = tracker->counters[counter].highest;
	uint64_t range = basic_range(counter);
	uint64_t now = counter_value(reading, counter);

	if (tracker->at_maximum & MAD_COUNTER_BIT(counter))
		return false;
	*growth = range - before + now;
	return *growth < range / 2;
}

/*
 * Whether a counter of bytes or packets began again after its maximum, although it should stop
 * there. The other one of the two tells: it was not reset, and has grown as much.
 */
static bool has_wrapped(const struct mad_counters_tracker *tracker,
			const struct mad_counters *reading, unsigned counter, unsigned other)
{
	uint64_t before = tracker->counters[other].latest, growth;
	uint64_t now = counter_value(reading, other);

	if (!is_near_wrap(tracker, reading, counter, &growth) || now <= before)
		return false;
	if (other == MAD_COUNTER_XMIT_PACKETS || other == MAD_COUNTER_RCV_PACKETS)
		return growth / LONGEST_PACKET <= now - before &&
		       growth / SHORTEST_PACKET >= now - before;
	return (now - before) / LONGEST_PACKET <= growth &&
	       (now - before) / SHORTEST_PACKET >= growth;
}

/* Counters that have begun again after their maximum. */
static uint64_t find_wraps(const struct mad_counters_tracker *tracker,
			   const struct mad_counters *reading, uint64_t comparable)
{
	static const uint8_t pairs[][2] = {
		{MAD_COUNTER_XMIT_BYTES, MAD_COUNTER_XMIT_PACKETS},
		{MAD_COUNTER_RCV_BYTES, MAD_COUNTER_RCV_PACKETS},
	};
	uint64_t wrapped = 0;

	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		uint64_t both = MAD_COUNTER_BIT(pairs[i][0]) | MAD_COUNTER_BIT(pairs[i][1]);

		if ((comparable & both) != both || reading->extended & both)
			continue;
		/* one may have been reset since the response that had only the other */
		if (tracker->counters[pairs[i][0]].latest_us !=
		    tracker->counters[pairs[i][1]].latest_us)
			continue;
		if (has_wrapped(tracker, reading, pairs[i][0], pairs[i][1]))
			wrapped |= MAD_COUNTER_BIT(pairs[i][0]);
		if (has_wrapped(tracker, reading, pairs[i][1], pairs[i][0]))
			wrapped |= MAD_COUNTER_BIT(pairs[i][1]);
	}
	return wrapped;
}

/* Counters that are lower than before, and the reason. */
struct fall {
	uint64_t lower;
	uint64_t far;     /* of these, counters that only a reset explains */
	uint64_t wrapped; /* counters that passed their maximum: not among the others */
	bool all;         /* each counter that was not 0 is far lower */
};

static struct fall find_falls(const struct mad_counters_tracker *tracker,
			      const struct mad_counters *reading, uint64_t comparable)
{
	struct fall fall = {.all = true};

	fall.wrapped = find_wraps(tracker, reading, comparable);

	for_each_counter (i, comparable) {
		uint64_t before = tracker->counters[i].latest;
		uint64_t now = counter_value(reading, i);

		if (!before)
			continue;
		if (now < before && !(fall.wrapped & MAD_COUNTER_BIT(i)))
			fall.lower |= MAD_COUNTER_BIT(i);
		if (is_far_lower(now, before) && fall.lower & MAD_COUNTER_BIT(i))
			fall.far |= MAD_COUNTER_BIT(i);
		else
			fall.all = false;
	}
	return fall;
}

/*
 * Counters that were reset, as far as the falls tell: a reset concerns all counters of an
 * attribute, also those that have risen past their former value since, or are not read now.
 */
static uint64_t find_resets(const struct mad_counters_tracker *tracker, const struct fall *fall)
{
	uint64_t reset = 0;
	unsigned sources = 0;

	if (fall->far && fall->all)
		return tracker->known;
	for_each_counter (i, fall->far)
		sources |= 1U << counter_source_of(i, tracker->extended);
	for_each_counter (i, tracker->known)
		if (sources >> counter_source_of(i, tracker->extended) & 1)
			reset |= MAD_COUNTER_BIT(i);
	return reset;
}

/* Adds a counter that was read before. */
static void add(struct mad_counters_tracker *tracker, const struct mad_counters *reading,
		unsigned counter, const struct fall *fall)
{
	uint64_t *sum = counter_in(&tracker->totals.total, counter);
	struct history *history = &tracker->counters[counter];
	uint64_t now = counter_value(reading, counter);
	uint64_t time = counter_time_us(reading, counter);

	history->grown = 0;
	if (fall->far & MAD_COUNTER_BIT(counter))
		history->highest = 0;
	if (fall->wrapped & MAD_COUNTER_BIT(counter)) {
		history->grown = basic_range(counter) - history->highest + now;
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

static void begin_total(struct mad_counters_tracker *tracker, unsigned counter)
{
	struct history *history = &tracker->counters[counter];

	history->first_us = history->latest_us;
	if (!tracker->from_device)
		return;
	*counter_in(&tracker->totals.total, counter) = history->begun = history->latest;
	tracker->totals.total.present |= MAD_COUNTER_BIT(counter);
}

/* A counter that cannot be compared with an earlier value begins with this reading. */
static void begin(struct mad_counters_tracker *tracker, const struct mad_counters *reading,
		  unsigned counter)
{
	struct history *history = &tracker->counters[counter];
	uint64_t bit = MAD_COUNTER_BIT(counter);

	history->latest = history->highest = counter_value(reading, counter);
	history->latest_us = counter_time_us(reading, counter);
	if (!(tracker->known & bit))
		begin_total(tracker, counter);
	tracker->known |= bit;
	tracker->stale &= ~bit;
	tracker->extended = (tracker->extended & ~bit) | (reading->extended & bit);
}

/*
 * Ignores impossible values. If the next reading agrees with such a value, the values are those
 * of another port, and begin again.
 */
static uint64_t take_odd(struct mad_counters_tracker *tracker,
			 const struct mad_counters *reading, uint64_t odd)
{
	uint64_t other = 0;

	for_each_counter (i, odd) {
		struct history *history = &tracker->counters[i];
		uint64_t now = counter_value(reading, i);
		uint64_t time = counter_time_us(reading, i);

		if (tracker->odd & MAD_COUNTER_BIT(i) && now >= history->odd &&
		    is_possible(now - history->odd, time - history->odd_us))
			other |= MAD_COUNTER_BIT(i);
		history->odd = now;
		history->odd_us = time;
	}
	tracker->odd = odd & ~other;
	return other;
}

/* Compares the reading with earlier values, and adds the growth. */
static int take_comparable(struct mad_counters_tracker *tracker,
			   const struct mad_counters *reading, uint64_t comparable)
{
	struct fall fall = find_falls(tracker, reading, comparable);
	struct mad_counters_totals *totals = &tracker->totals;
	uint64_t backwards = fall.lower & ~fall.far;
	uint64_t reset = find_resets(tracker, &fall);
	uint64_t unknown = fall.lower | reset | reading->at_maximum;
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
	if (fall.wrapped)
		events |= MAD_COUNTERS_WRAPPED;
	totals->wraps += count_bits(fall.wrapped);
	totals->backwards += count_bits(backwards);
	for_each_counter (i, comparable) {
		/* after a fall, only a part of the growth is added */
		if (tracker->counters[i].latest != tracker->counters[i].highest)
			unknown |= MAD_COUNTER_BIT(i);
		add(tracker, reading, i, &fall);
	}
	totals->total.present |= comparable;
	totals->incomplete |= reset | (comparable & (fall.lower | reading->at_maximum));
	tracker->rates = comparable & ~unknown;
	return events;
}

static int note_maximum(struct mad_counters_tracker *tracker,
			const struct mad_counters *reading, uint64_t present)
{
	uint64_t at_maximum = reading->at_maximum & present;
	uint64_t stuck = at_maximum & ~tracker->at_maximum;

	tracker->totals.stuck += count_bits(stuck);
	tracker->totals.total.at_maximum |= at_maximum;
	/* a counter that was not read does not change */
	tracker->at_maximum = at_maximum | (tracker->at_maximum & ~present);
	return stuck ? MAD_COUNTERS_STUCK : 0;
}

static int take(struct mad_counters_tracker *tracker, const struct mad_counters *reading)
{
	uint64_t read = reading->present & MAD_COUNTERS_ALL;
	uint64_t present = read & ~reading->odd_values;
	uint64_t common = tracker->known & present & ~tracker->stale;
	uint64_t comparable = common & ~(tracker->extended ^ reading->extended);
	uint64_t odd = find_odd(tracker, reading, comparable);
	uint64_t other = take_odd(tracker, reading, odd), ignored;
	uint64_t begins = (present & ~comparable) | other;
	int events = 0;

	if (tracker->totals.readings && (tracker->seen != read || comparable != common))
		events |= MAD_COUNTERS_CHANGED;
	if (other | (tracker->stale & present)) {
		events |= MAD_COUNTERS_REPLACED;
		tracker->totals.replaced++;
	}
	events |= take_comparable(tracker, reading, comparable & ~odd);
	ignored = (odd & ~other) | (read & ~present);
	if (ignored)
		events |= MAD_COUNTERS_IMPOSSIBLE;
	tracker->totals.impossible += count_bits(ignored);
	tracker->totals.total.odd_values |= ignored;
	events |= note_maximum(tracker, reading, read & ~ignored);
	tracker->totals.incomplete |= begins & (tracker->known | reading->at_maximum);
	for_each_counter (i, begins)
		begin(tracker, reading, i);
	tracker->seen |= read;
	return events;
}

EXPORT void mad_counters_tracker_replace(struct mad_counters_tracker *tracker)
{
	if (tracker)
		tracker->stale = tracker->known;
}

/* Whether the reading is of another port, or of a node with other capabilities. */
static bool is_of_another(const struct mad_counters_totals *totals,
			  const struct mad_counters *reading)
{
	const struct mad_counters *total = &totals->total;

	if (!totals->readings)
		return false;
	if (reading->port != total->port)
		return true;
	/* a reading without ClassPortInfo does not have them */
	return total->capability_mask && reading->capability_mask &&
	       (reading->capability_mask != total->capability_mask ||
		reading->capability_mask2 != total->capability_mask2);
}

/* Two readings that were under way at once may have their responses in another order. */
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
	int events;

	/* a reading that failed has no counters, and may have no time */
	if (!(reading->present & MAD_COUNTERS_ALL) || is_older(tracker, reading))
		return -EINVAL;
	if (is_of_another(totals, reading))
		mad_counters_tracker_replace(tracker);
	events = take(tracker, reading);
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

/* The program may have been compiled with fewer members. */
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

/* Without a time, the rate is not known. */
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
