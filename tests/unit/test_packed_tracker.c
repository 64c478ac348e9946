/* SPDX-License-Identifier: BSD-2-Clause */

/* A tracker that is stored in few bytes, and read again, is the same tracker. */

#include "counters/counter_table.h"
#include "counters/packed_tracker.h"
#include "test.h"

#include <limits.h>

#define ROUNDS 300
#define STEPS  60

/* One tracker has never been packed, the other one is packed after each reading. */
static struct mad_counters_tracker plain, unpacked;
static struct mad_counters reading, latest;
static uint8_t bytes[PACKED_MAX];
static struct packed_base base;
static size_t largest;

static long roll(long sides)
{
	return random() % sides;
}

static void begin(bool from_device)
{
	tracker_init(&plain, from_device);
	memset(&reading, 0, sizeof(reading));
	reading.size = sizeof(reading);
	unpacked = plain;
	base = (struct packed_base){.time_us = 1000000, .port = 7, .from_device = from_device};
	reading.port = 7;
	reading.time_us = 2000000;
}

/* The values of "odd" are those of the latest reading only. */
static void forget_old_values(struct mad_counters_tracker *tracker)
{
	for (unsigned i = 0; i < MAD_COUNTER_COUNT; i++)
		if (!(tracker->odd & MAD_COUNTER_BIT(i)))
			tracker->counters[i].odd = tracker->counters[i].odd_us = 0;
}

/* Tracks the reading with both trackers, and packs the one. Returns the size. */
static size_t track(void)
{
	struct mad_counters kept = reading;
	size_t size;
	int events = mad_counters_tracker_add(&plain, &reading);

	assert_true(events >= 0);
	assert_int_equal(mad_counters_tracker_add(&unpacked, &reading), events);
	size = tracker_pack(&unpacked, &kept, &base, bytes);
	assert_in_range(size, 1, PACKED_MAX);
	memset(&unpacked, 0xff, sizeof(unpacked));
	memset(&latest, 0xff, sizeof(latest));
	tracker_unpack(&unpacked, &latest, &base, bytes);
	forget_old_values(&plain);
	assert_memory_equal(&unpacked, &plain, sizeof(plain));
	kept = reading;
	kept.requests = kept.status = kept.odd = 0;
	assert_memory_equal(&latest, &kept, sizeof(kept));
	if (size > largest)
		largest = size;
	return size;
}

/* --- random readings -------------------------------------------------------------- */

/* A number of any size. */
static uint64_t any_number(void)
{
	uint64_t number =
		(uint64_t)random() << 33 ^ (uint64_t)random() << 11 ^ (uint64_t)random();

	return number >> roll(64);
}

/* A counter stays, grows, falls a little, is reset, jumps, or has an impossible value. */
static void change_counter(unsigned counter)
{
	uint64_t *value = counter_in(&reading, counter);

	switch (roll(10)) {
	case 0:
	case 1:
	case 2:
		*value = add_counts(*value, (uint64_t)roll(1000000));
		break;
	case 3:
		*value -= *value / 100;
		break;
	case 4:
		*value = 0;
		break;
	case 5:
		*value = any_number();
		break;
	case 6:
		reading.odd_values |= MAD_COUNTER_BIT(counter);
		*value = UINT64_MAX;
		break;
	case 7:
		reading.at_maximum |= MAD_COUNTER_BIT(counter);
		break;
	default:
		break;
	}
}

static void change_reading(void)
{
	reading.present = roll(2) ? MAD_COUNTERS_DEFAULT : any_number() & MAD_COUNTERS_ALL;
	reading.present |= MAD_COUNTER_BIT(roll(MAD_COUNTER_COUNT));
	if (!roll(5))
		reading.extended = any_number();
	reading.extended &= reading.present;
	reading.at_maximum = reading.odd_values = 0;
	for (unsigned i = 0; i < MAD_COUNTER_COUNT; i++) {
		if (!(reading.present & MAD_COUNTER_BIT(i)))
			*counter_in(&reading, i) = 0;
		else if (!roll(3))
			change_counter(i);
		else if (*counter_in(&reading, i) == UINT64_MAX)
			*counter_in(&reading, i) = 5;
	}
	if (!roll(10))
		reading.capability_mask = (uint32_t)any_number();
	if (!roll(10))
		reading.capability_mask2 = (uint32_t)any_number();
	reading.requests = (uint32_t)roll(5);
	reading.odd = (uint32_t)roll(8);
	reading.time_us += 1000 + any_number() % 1000000000;
	for (unsigned i = 0; i < COUNTER_SOURCES; i++)
		reading.response_us[i] = roll(2) ? reading.time_us - (uint64_t)roll(1000) : 0;
}

TEST(a_packed_tracker_is_the_same_after_random_readings)
{
	srandom(test_seed());
	for (int round = 0; round < ROUNDS; round++) {
		begin(roll(2));
		for (int step = 0; step < STEPS; step++) {
			change_reading();
			track();
			if (!roll(20)) {
				mad_counters_tracker_replace(&plain);
				mad_counters_tracker_replace(&unpacked);
			}
		}
	}
	print_message("%zu bytes at most\n", largest);
}

/* --- extremes --------------------------------------------------------------------- */

TEST(the_largest_numbers_have_room)
{
	begin(false);
	memset(&unpacked, 0xaa, sizeof(unpacked));
	memset(&reading, 0xaa, sizeof(reading));
	unpacked.from_device = false;
	unpacked.known = unpacked.odd = unpacked.seen = MAD_COUNTERS_ALL;
	for (unsigned i = 0; i < MAD_COUNTER_COUNT; i++) {
		struct history *history = &unpacked.counters[i];

		history->highest = history->latest ^ UINT64_MAX;
		history->first_us = i % 2 ? 1 : UINT64_MAX / 2;
		history->latest_us = i % 2 ? 1 : UINT64_MAX / 2;
		history->grown_us = i % 2 ? 1 : UINT64_MAX / 2;
	}
	assert_in_range(tracker_pack(&unpacked, &reading, &base, bytes), 1, PACKED_MAX);
}

TEST(counters_of_0_take_few_bytes)
{
	begin(false);
	reading.present = MAD_COUNTERS_ERRORS;
	reading.response_us[SOURCE_BASIC] = reading.time_us;
	reading.requests = 1;
	assert_in_range(track(), 1, 24);
	for (int i = 0; i < 100; i++) {
		reading.time_us += 30000000;
		reading.response_us[SOURCE_BASIC] = reading.time_us;
		assert_in_range(track(), 1, 48);
	}
}
