/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A group of eight numbers begins with a byte that has a bit for each number: 1 if it is not
 * the expected number. The differences follow, seven bits in a byte, the lowest ones first. The
 * same functions store and read a tracker, so that both have the same order.
 */

#include "counters/packed_tracker.h"

#include "counters/counter_table.h"

#include <string.h>

struct coder {
	bool packs;    /* otherwise it unpacks */
	unsigned used; /* bits of the group */
	uint8_t *group;
	uint8_t *at;
};

/* The next bit of a group. */
static unsigned next_bit(struct coder *coder)
{
	if (!coder->group || coder->used == 8) {
		coder->group = coder->at++;
		coder->used = 0;
		if (coder->packs)
			*coder->group = 0;
	}
	return 1U << coder->used++;
}

static void put(struct coder *coder, uint64_t number)
{
	unsigned bit = next_bit(coder);

	if (!number)
		return;
	*coder->group |= (uint8_t)bit;
	for (; number > 0x7f; number >>= 7)
		*coder->at++ = (uint8_t)(number | 0x80);
	*coder->at++ = (uint8_t)number;
}

static uint64_t get(struct coder *coder)
{
	unsigned bit = next_bit(coder);
	uint64_t number = 0;

	if (!(*coder->group & bit))
		return 0;
	for (unsigned shift = 0; shift < 64; shift += 7) {
		number |= (uint64_t)(*coder->at & 0x7f) << shift;
		if (!(*coder->at++ & 0x80))
			break;
	}
	return number;
}

/* A difference may be negative: its sign becomes the lowest bit. */
static uint64_t fold(uint64_t difference)
{
	return difference << 1 ^ (difference >> 63 ? UINT64_MAX : 0);
}

static uint64_t unfold(uint64_t folded)
{
	return folded >> 1 ^ (folded & 1 ? UINT64_MAX : 0);
}

static void code(struct coder *coder, uint64_t *number, uint64_t expected)
{
	if (coder->packs)
		put(coder, fold(*number - expected));
	else
		*number = expected + unfold(get(coder));
}

static void code32(struct coder *coder, uint32_t *number, uint32_t expected)
{
	uint64_t wide = *number;

	code(coder, &wide, expected);
	*number = (uint32_t)wide;
}

/* --- what belongs to all counters ------------------------------------------------- */

static void code_masks(struct coder *coder, struct mad_counters_tracker *tracker,
		       struct mad_counters *reading)
{
	struct mad_counters_totals *totals = &tracker->totals;
	bool has_growth;

	code(coder, &totals->readings, 1);
	has_growth = totals->readings > 1;
	code(coder, &tracker->seen, 0);
	code(coder, &tracker->known, tracker->seen);
	code(coder, &reading->present, tracker->known);
	code(coder, &totals->total.present,
	     has_growth || tracker->from_device ? tracker->known : 0);
	code(coder, &tracker->rates, has_growth ? reading->present : 0);
	code(coder, &tracker->extended, 0);
	code(coder, &tracker->stale, 0);
	code(coder, &tracker->at_maximum, 0);
	code(coder, &tracker->odd, 0);
	code(coder, &reading->extended, tracker->extended & reading->present);
	code(coder, &reading->at_maximum, tracker->at_maximum & reading->present);
	code(coder, &reading->odd_values, 0);
	code(coder, &totals->total.at_maximum, tracker->at_maximum);
	code(coder, &totals->total.odd_values, 0);
	code(coder, &totals->incomplete, totals->total.at_maximum);
}

static void code_times(struct coder *coder, struct mad_counters_tracker *tracker,
		       struct mad_counters *reading, const struct packed_base *base)
{
	struct mad_counters_totals *totals = &tracker->totals;

	code(coder, &totals->total.time_us, base->time_us);
	code(coder, &totals->first_us, totals->total.time_us);
	reading->time_us = totals->total.time_us;
	for (unsigned i = 0; i < COUNTER_SOURCES; i++) {
		/* 0: the attribute was not read */
		uint64_t before = reading->response_us[i] && coder->packs
					  ? reading->time_us + 1 - reading->response_us[i]
					  : 0;

		code(coder, &before, 0);
		reading->response_us[i] = before ? reading->time_us + 1 - before : 0;
	}
}

static void code_counts(struct coder *coder, struct mad_counters_tracker *tracker,
			struct mad_counters *reading)
{
	struct mad_counters_totals *totals = &tracker->totals;
	uint64_t *counts[] = {&totals->resets,  &totals->restarts, &totals->backwards,
			      &totals->stuck,   &totals->wraps,    &totals->impossible,
			      &totals->replaced};

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		code(coder, counts[i], 0);
	code32(coder, &totals->total.odd, 0);
	code32(coder, &totals->total.requests, (uint32_t)totals->readings);
	code32(coder, &totals->total.capability_mask, 0);
	code32(coder, &totals->total.capability_mask2, 0);
	code32(coder, &reading->capability_mask, totals->total.capability_mask);
	code32(coder, &reading->capability_mask2, totals->total.capability_mask2);
}

/* --- one counter ------------------------------------------------------------------ */

/* The times of the counter before, which are expected again. */
struct times {
	uint64_t first_us, latest_us, grown_us;
};

static void code_counter(struct coder *coder, struct mad_counters_tracker *tracker,
			 unsigned counter, struct times *before)
{
	struct history *history = &tracker->counters[counter];

	code(coder, &history->latest, 0);
	code(coder, &history->highest, history->latest);
	code(coder, counter_in(&tracker->totals.total, counter),
	     tracker->from_device ? history->latest : 0);
	code(coder, &history->begun, 0);
	code(coder, &history->first_us, before->first_us);
	code(coder, &history->latest_us, before->latest_us);
	code(coder, &history->grown, 0);
	code(coder, &history->grown_us, before->grown_us);
	if (tracker->odd & MAD_COUNTER_BIT(counter)) {
		code(coder, &history->odd, history->latest);
		code(coder, &history->odd_us, tracker->totals.total.time_us);
	}
	*before = (struct times){history->first_us, history->latest_us, history->grown_us};
}

static struct times begin_times(const struct mad_counters_tracker *tracker)
{
	return (struct times){.first_us = tracker->totals.first_us,
			      .latest_us = tracker->totals.total.time_us};
}

/* Whether the numbers of the counter are 0, and its times as expected. */
static bool is_plain(const struct mad_counters_tracker *tracker, unsigned counter,
		     const struct times *expected)
{
	const struct history *history = &tracker->counters[counter];

	return !(history->latest | history->highest | history->begun | history->grown) &&
	       !counter_value(&tracker->totals.total, counter) &&
	       history->first_us == expected->first_us &&
	       history->latest_us == expected->latest_us &&
	       history->grown_us == expected->grown_us;
}

/* Plain counters are not stored. */
static uint64_t find_plain(const struct mad_counters_tracker *tracker)
{
	struct times expected = begin_times(tracker);
	uint64_t plain = 0;

	for_each_counter (i, tracker->known) {
		const struct history *history = &tracker->counters[i];

		if (!(tracker->odd & MAD_COUNTER_BIT(i)) && is_plain(tracker, i, &expected))
			plain |= MAD_COUNTER_BIT(i);
		expected = (struct times){history->first_us, history->latest_us,
					  history->grown_us};
	}
	return plain;
}

static void code_counters(struct coder *coder, struct mad_counters_tracker *tracker,
			  uint64_t plain)
{
	struct times before = begin_times(tracker);

	for_each_counter (i, tracker->known) {
		struct history *history = &tracker->counters[i];

		if (!(plain & MAD_COUNTER_BIT(i))) {
			code_counter(coder, tracker, i, &before);
		} else if (!coder->packs) {
			history->first_us = before.first_us;
			history->latest_us = before.latest_us;
			history->grown_us = before.grown_us;
		}
	}
}

static void code_all(struct coder *coder, struct mad_counters_tracker *tracker,
		     struct mad_counters *reading, const struct packed_base *base)
{
	uint64_t plain = 0;

	code_masks(coder, tracker, reading);
	code_times(coder, tracker, reading, base);
	code_counts(coder, tracker, reading);
	if (coder->packs)
		plain = find_plain(tracker);
	code(coder, &plain, tracker->known);
	code_counters(coder, tracker, plain);
}

size_t tracker_pack(struct mad_counters_tracker *tracker, struct mad_counters *reading,
		    const struct packed_base *base, uint8_t bytes[PACKED_MAX])
{
	struct coder coder = {.packs = true, .at = bytes};

	code_all(&coder, tracker, reading, base);
	return (size_t)(coder.at - bytes);
}

void tracker_unpack(struct mad_counters_tracker *tracker, struct mad_counters *reading,
		    const struct packed_base *base, uint8_t *bytes)
{
	struct coder coder = {.at = bytes};

	tracker_init(tracker, base->from_device);
	memset(reading, 0, sizeof(*reading));
	reading->size = sizeof(*reading);
	tracker->totals.total.port = reading->port = base->port;
	code_all(&coder, tracker, reading, base);
	for_each_counter (i, reading->present) {
		const struct history *history = &tracker->counters[i];

		*counter_in(reading, i) = reading->odd_values & MAD_COUNTER_BIT(i) ? UINT64_MAX
					  : tracker->odd & MAD_COUNTER_BIT(i) ? history->odd
									      : history->latest;
	}
}
