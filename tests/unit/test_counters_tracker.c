/* SPDX-License-Identifier: BSD-2-Clause */

/* The sum of a port's readings: after a reset, at the maximum, or if a counter decreases. */

#include "counters/counter_table.h"
#include "fake_memory.h"
#include "test.h"

#include <infiniband/mad_counters.h>
#include <math.h>

static struct mad_counters_tracker *tracker;
static struct mad_counters reading;

#define TRAFFIC_AND_ERRORS MAD_COUNTERS_DEFAULT

static int setup(void)
{
	tracker = mad_counters_tracker_create(0);
	reading = (struct mad_counters){
		.size = sizeof(reading), .present = TRAFFIC_AND_ERRORS, .time_us = 1000000};
	return tracker ? 0 : -1;
}

static int teardown(void)
{
	mad_counters_tracker_free(tracker);
	return 0;
}

FIXTURE(setup, teardown);

/* A second later. */
static int track(void)
{
	reading.time_us += 1000000;
	return mad_counters_tracker_add(tracker, &reading);
}

static const struct mad_counters *total(void)
{
	return &mad_counters_tracker_totals(tracker)->total;
}

TEST(totals_begin_with_the_first_reading)
{
	reading.rcv_bytes = 1000;
	assert_int_equal(track(), 0);
	assert_int_equal(total()->rcv_bytes, 0);
	assert_int_equal(total()->present, 0);
	reading.rcv_bytes = 5000;
	reading.symbol_errors = 3;
	assert_int_equal(track(), 0);
	reading.rcv_bytes = 5500;
	assert_int_equal(track(), 0);
	assert_int_equal(total()->rcv_bytes, 4500);
	assert_int_equal(total()->symbol_errors, 3);
	assert_true(total()->present == TRAFFIC_AND_ERRORS);
	assert_int_equal(mad_counters_tracker_totals(tracker)->readings, 3);
	assert_int_equal(mad_counters_tracker_totals(tracker)->first_us, 2000000);
	assert_int_equal(total()->time_us, 4000000);
}

TEST(rates_are_of_the_latest_interval_and_of_all)
{
	track();
	assert_true(isnan(
		mad_counters_tracker_rate(tracker, MAD_COUNTER_RCV_BYTES, MAD_RATE_LATEST)));
	assert_true(isnan(
		mad_counters_tracker_rate(tracker, MAD_COUNTER_RCV_BYTES, MAD_RATE_MEAN)));
	reading.rcv_bytes = 5000;
	track();
	reading.rcv_bytes = 6000;
	reading.time_us += 1000000;
	track();
	assert_true(mad_counters_tracker_rate(tracker, MAD_COUNTER_RCV_BYTES,
					      MAD_RATE_LATEST) == 500);
	assert_true(mad_counters_tracker_rate(tracker, MAD_COUNTER_RCV_BYTES, MAD_RATE_MEAN) ==
		    2000);
	assert_true(
		isnan(mad_counters_tracker_rate(tracker, MAD_COUNTER_COUNT, MAD_RATE_LATEST)));
	assert_true(
		isnan(mad_counters_tracker_rate(tracker, MAD_COUNTER_COUNT, MAD_RATE_MEAN)));
	/* two readings at one time */
	reading.rcv_bytes = 7000;
	assert_int_equal(mad_counters_tracker_add(tracker, &reading), 0);
	assert_true(isnan(
		mad_counters_tracker_rate(tracker, MAD_COUNTER_RCV_BYTES, MAD_RATE_LATEST)));
}

/* PortCountersExtended has the bytes, and PortCounters the errors. */
static void respond_at(uint64_t extended_us, uint64_t basic_us)
{
	reading.extended = MAD_COUNTERS_TRAFFIC;
	reading.response_us[SOURCE_EXTENDED] = extended_us;
	reading.response_us[SOURCE_BASIC] = reading.time_us = basic_us;
}

TEST(a_rate_is_by_the_times_of_the_counters_responses)
{
	respond_at(1000000, 1700000);
	mad_counters_tracker_add(tracker, &reading);
	reading.rcv_bytes = 4000007;
	reading.symbol_errors = 34;
	respond_at(5000007, 5100000);
	assert_int_equal(mad_counters_tracker_add(tracker, &reading), 0);
	assert_true(mad_counters_tracker_rate(tracker, MAD_COUNTER_RCV_BYTES,
					      MAD_RATE_LATEST) == 1000000);
	assert_true(mad_counters_tracker_rate(tracker, MAD_COUNTER_RCV_BYTES, MAD_RATE_MEAN) ==
		    1000000);
	assert_true(mad_counters_tracker_rate(tracker, MAD_COUNTER_SYMBOL_ERRORS,
					      MAD_RATE_LATEST) == 10);
}

TEST(a_reading_that_was_overtaken_is_refused)
{
	respond_at(1000000, 1700000);
	mad_counters_tracker_add(tracker, &reading);
	reading.rcv_bytes = 5000;
	respond_at(900000, 1800000);
	assert_int_equal(mad_counters_tracker_add(tracker, &reading), -EINVAL);
	assert_int_equal(mad_counters_tracker_totals(tracker)->readings, 1);
}

TEST(a_reset_of_some_counters_is_somebody_elses)
{
	reading.rcv_bytes = 100000;
	reading.symbol_errors = 50;
	track();
	reading.rcv_bytes = 101000;
	reading.symbol_errors = 2;
	assert_int_equal(track(), MAD_COUNTERS_RESET);
	assert_int_equal(total()->rcv_bytes, 1000);
	assert_int_equal(total()->symbol_errors, 2);
	assert_int_equal(mad_counters_tracker_totals(tracker)->resets, 1);
	assert_int_equal(mad_counters_tracker_totals(tracker)->restarts, 0);
}

TEST(a_restart_resets_all_counters)
{
	reading.rcv_bytes = 100000;
	reading.symbol_errors = 50;
	track();
	reading.rcv_bytes = 700;
	reading.symbol_errors = 0;
	reading.link_downed = 0;
	assert_int_equal(track(), MAD_COUNTERS_RESTARTED);
	assert_int_equal(total()->rcv_bytes, 700);
	assert_int_equal(total()->symbol_errors, 0);
	assert_int_equal(mad_counters_tracker_totals(tracker)->restarts, 1);
	reading.rcv_bytes = 900;
	assert_int_equal(track(), 0);
	assert_int_equal(total()->rcv_bytes, 900);
}

TEST(a_counter_that_runs_backwards_adds_nothing)
{
	reading.rcv_bytes = 100000;
	reading.xmit_bytes = 50000;
	track();
	reading.rcv_bytes = 99000;
	reading.xmit_bytes = 50100;
	assert_int_equal(track(), MAD_COUNTERS_BACKWARDS);
	assert_int_equal(total()->rcv_bytes, 0);
	assert_int_equal(total()->xmit_bytes, 100);
	assert_true(isnan(
		mad_counters_tracker_rate(tracker, MAD_COUNTER_RCV_BYTES, MAD_RATE_LATEST)));
	reading.rcv_bytes = 100010;
	assert_int_equal(track(), 0);
	assert_int_equal(total()->rcv_bytes, 10);
	assert_int_equal(mad_counters_tracker_totals(tracker)->backwards, 1);
	assert_int_equal(mad_counters_tracker_totals(tracker)->resets, 0);
}

TEST(a_counter_that_counts_down_never_looks_reset)
{
	reading.rcv_bytes = 100000;
	track();
	for (int i = 0; i < 50; i++) {
		reading.rcv_bytes -= 1000;
		assert_int_equal(track(), MAD_COUNTERS_BACKWARDS);
	}
	assert_int_equal(total()->rcv_bytes, 0);
	assert_int_equal(mad_counters_tracker_totals(tracker)->backwards, 50);
	/* it stays the same, then increases to the earlier value, without an event */
	assert_int_equal(track(), 0);
	reading.rcv_bytes = 99999;
	assert_int_equal(track(), 0);
	assert_int_equal(total()->rcv_bytes, 0);
	reading.rcv_bytes = 100007;
	assert_int_equal(track(), 0);
	assert_int_equal(total()->rcv_bytes, 7);
	/* a reset in between is an event */
	reading.rcv_bytes = 99000;
	track();
	reading.rcv_bytes = 300;
	assert_int_equal(track(), MAD_COUNTERS_RESTARTED);
	assert_int_equal(total()->rcv_bytes, 307);
}

TEST(a_small_fall_beside_a_reset_is_no_reset)
{
	reading.rcv_bytes = 100000;
	reading.symbol_errors = 50;
	reading.xmit_packets = 4;
	track();
	reading.rcv_bytes = 99000;
	reading.symbol_errors = 3;
	assert_int_equal(track(), MAD_COUNTERS_RESET | MAD_COUNTERS_BACKWARDS);
	assert_int_equal(total()->rcv_bytes, 0);
	assert_int_equal(total()->symbol_errors, 3);
	assert_int_equal(mad_counters_tracker_totals(tracker)->backwards, 1);
	reading.rcv_bytes = 100005;
	assert_int_equal(track(), 0);
	assert_int_equal(total()->rcv_bytes, 5);
}

TEST(a_small_fall_of_all_that_was_not_reset_is_no_restart)
{
	reading.xmit_bytes = UINT64_C(1000000000000);
	reading.symbol_errors = 100;
	track();
	reading.xmit_bytes -= 4;
	reading.symbol_errors = 0;
	assert_int_equal(track(), MAD_COUNTERS_RESET | MAD_COUNTERS_BACKWARDS);
	assert_true(total()->xmit_bytes == 0);
	assert_int_equal(mad_counters_tracker_totals(tracker)->restarts, 0);
}

TEST(a_reading_that_failed_changes_nothing)
{
	const struct mad_counters failed = {
		.size = sizeof(failed), .port = 7, .requests = 3, .odd = 1};

	assert_int_equal(mad_counters_tracker_add(tracker, &failed), -EINVAL);
	reading.rcv_bytes = 1000;
	assert_int_equal(track(), 0);
	assert_int_equal(mad_counters_tracker_totals(tracker)->first_us, 2000000);
	assert_int_equal(mad_counters_tracker_add(tracker, &failed), -EINVAL);
	reading.rcv_bytes = 4000;
	assert_int_equal(track(), 0);
	assert_int_equal(total()->rcv_bytes, 3000);
	assert_int_equal(total()->odd, 0);
	assert_int_equal(mad_counters_tracker_totals(tracker)->readings, 2);
	assert_true(mad_counters_tracker_rate(tracker, MAD_COUNTER_RCV_BYTES,
					      MAD_RATE_LATEST) == 3000);
}

TEST(the_mean_rate_of_a_counter_is_of_the_readings_that_have_it)
{
	reading.present &= ~MAD_COUNTER_BIT(MAD_COUNTER_RCV_BYTES);
	track();
	track();
	reading.present = TRAFFIC_AND_ERRORS;
	reading.rcv_bytes = 5000;
	track();
	assert_true(isnan(
		mad_counters_tracker_rate(tracker, MAD_COUNTER_RCV_BYTES, MAD_RATE_MEAN)));
	reading.rcv_bytes = 5800;
	track();
	assert_true(mad_counters_tracker_rate(tracker, MAD_COUNTER_RCV_BYTES, MAD_RATE_MEAN) ==
		    800);
	reading.present &= ~MAD_COUNTER_BIT(MAD_COUNTER_RCV_BYTES);
	track();
	assert_true(mad_counters_tracker_rate(tracker, MAD_COUNTER_RCV_BYTES, MAD_RATE_MEAN) ==
		    800);
}

TEST(a_counter_at_its_maximum_is_named_and_stays_so)
{
	reading.symbol_errors = 65000;
	track();
	reading.symbol_errors = 65535;
	reading.at_maximum = MAD_COUNTER_BIT(MAD_COUNTER_SYMBOL_ERRORS);
	assert_int_equal(track(), MAD_COUNTERS_STUCK);
	assert_int_equal(track(), 0);
	/* a reading without the counter does not change it */
	reading.present &= ~MAD_COUNTER_BIT(MAD_COUNTER_SYMBOL_ERRORS);
	assert_int_equal(track(), MAD_COUNTERS_CHANGED);
	reading.present = TRAFFIC_AND_ERRORS;
	assert_int_equal(track(), 0);
	assert_int_equal(total()->symbol_errors, 535);
	assert_true(total()->at_maximum == MAD_COUNTER_BIT(MAD_COUNTER_SYMBOL_ERRORS));
	/* another program resets it; lost counts are lost */
	reading.symbol_errors = 5;
	reading.at_maximum = 0;
	assert_int_equal(track(), MAD_COUNTERS_RESTARTED);
	assert_int_equal(total()->symbol_errors, 540);
	assert_true(total()->at_maximum == MAD_COUNTER_BIT(MAD_COUNTER_SYMBOL_ERRORS));
	assert_int_equal(mad_counters_tracker_totals(tracker)->stuck, 1);
}

TEST(a_reading_that_lacks_a_counter_leaves_it)
{
	reading.rcv_bytes = 1000;
	track();
	reading.present &= ~MAD_COUNTER_BIT(MAD_COUNTER_RCV_BYTES);
	reading.rcv_bytes = 0;
	assert_int_equal(track(), MAD_COUNTERS_CHANGED);
	reading.present = TRAFFIC_AND_ERRORS;
	reading.rcv_bytes = 4000;
	assert_int_equal(track(), 0);
	assert_int_equal(total()->rcv_bytes, 3000);
	/* it increased within two seconds */
	assert_true(mad_counters_tracker_rate(tracker, MAD_COUNTER_RCV_BYTES,
					      MAD_RATE_LATEST) == 1500);
}

TEST(a_counter_from_another_attribute_begins_again)
{
	reading.rcv_bytes = UINT64_C(1) << 40;
	reading.extended = MAD_COUNTER_BIT(MAD_COUNTER_RCV_BYTES);
	track();
	reading.rcv_bytes = 1000;
	reading.extended = 0;
	assert_int_equal(track(), MAD_COUNTERS_CHANGED);
	reading.rcv_bytes = 1500;
	assert_int_equal(track(), 0);
	assert_int_equal(total()->rcv_bytes, 500);
	assert_int_equal(mad_counters_tracker_totals(tracker)->resets, 0);
}

#define RCV_BYTES MAD_COUNTER_BIT(MAD_COUNTER_RCV_BYTES)

TEST(an_odd_value_changes_nothing_and_the_next_reading_continues)
{
	reading.rcv_bytes = 1000;
	track();
	reading.rcv_bytes = UINT64_MAX;
	reading.odd_values = RCV_BYTES;
	reading.odd = MAD_COUNTERS_ODD_VALUE;
	reading.symbol_errors = 5;
	assert_int_equal(track(), MAD_COUNTERS_IMPOSSIBLE);
	assert_int_equal(total()->rcv_bytes, 0);
	assert_int_equal(total()->symbol_errors, 5);
	assert_true(total()->odd_values == RCV_BYTES);
	reading.rcv_bytes = 5000;
	reading.odd_values = 0;
	assert_int_equal(track(), 0);
	assert_int_equal(total()->rcv_bytes, 4000);
	assert_true(mad_counters_tracker_rate(tracker, MAD_COUNTER_RCV_BYTES,
					      MAD_RATE_LATEST) == 2000);
	assert_int_equal(mad_counters_tracker_totals(tracker)->impossible, 1);
}

TEST(an_odd_value_does_not_begin_a_counter)
{
	reading.rcv_bytes = UINT64_MAX;
	reading.odd_values = RCV_BYTES;
	assert_int_equal(track(), MAD_COUNTERS_IMPOSSIBLE);
	reading.rcv_bytes = 100;
	reading.odd_values = 0;
	assert_int_equal(track(), 0);
	assert_int_equal(total()->rcv_bytes, 0);
	reading.rcv_bytes = 300;
	assert_int_equal(track(), 0);
	assert_int_equal(total()->rcv_bytes, 200);
}

TEST(a_growth_that_no_link_can_count_is_ignored)
{
	reading.rcv_bytes = UINT64_C(1) << 60;
	track();
	/* higher, and lower, but too high for a reset */
	reading.rcv_bytes = UINT64_C(1) << 61;
	assert_int_equal(track(), MAD_COUNTERS_IMPOSSIBLE);
	reading.rcv_bytes = UINT64_C(1) << 59;
	assert_int_equal(track(), MAD_COUNTERS_IMPOSSIBLE);
	assert_int_equal(total()->rcv_bytes, 0);
	reading.rcv_bytes = (UINT64_C(1) << 60) + 3000;
	assert_int_equal(track(), 0);
	assert_int_equal(total()->rcv_bytes, 3000);
	assert_true(mad_counters_tracker_rate(tracker, MAD_COUNTER_RCV_BYTES,
					      MAD_RATE_LATEST) == 1000);
	/* as much as a link may count in a second and the slack */
	reading.rcv_bytes += UINT64_C(2000000999999);
	assert_int_equal(track(), 0);
	reading.rcv_bytes += UINT64_C(2000001000000);
	assert_int_equal(track(), MAD_COUNTERS_IMPOSSIBLE);
	assert_int_equal(mad_counters_tracker_totals(tracker)->impossible, 3);
}

TEST(impossible_values_that_continue_are_of_another_port)
{
	reading.rcv_bytes = 1000;
	track();
	reading.rcv_bytes = UINT64_C(1) << 60;
	assert_int_equal(track(), MAD_COUNTERS_IMPOSSIBLE);
	reading.rcv_bytes += 500;
	assert_int_equal(track(), MAD_COUNTERS_REPLACED);
	assert_int_equal(total()->rcv_bytes, 0);
	reading.rcv_bytes += 70;
	assert_int_equal(track(), 0);
	assert_int_equal(total()->rcv_bytes, 70);
	assert_true(mad_counters_tracker_rate(tracker, MAD_COUNTER_RCV_BYTES,
					      MAD_RATE_LATEST) == 70);
}

/* --- a model of a port, with random events --------------------------------------- */

#define RANGE        (UINT64_C(1) << 32)
#define MODEL_ROUNDS 200
#define MODEL_STEPS  300

/* Traffic, of 64 bits or of 32 bits that wrap, and errors that stop at their maximum. */
static const enum mad_counter model_counters[] = {
	MAD_COUNTER_XMIT_BYTES,  MAD_COUNTER_RCV_BYTES,     MAD_COUNTER_XMIT_PACKETS,
	MAD_COUNTER_RCV_PACKETS, MAD_COUNTER_SYMBOL_ERRORS, MAD_COUNTER_LINK_DOWNED,
	MAD_COUNTER_RCV_ERRORS,
};
#define MODEL_COUNTERS (sizeof(model_counters) / sizeof(*model_counters))
#define MODEL_TRAFFIC  4 /* of these */
#define MODEL_PACKETS  2 /* the first of these that counts packets */

static struct model {
	struct {
		uint64_t device;     /* what the node has in its counter */
		uint64_t truth;      /* events since the beginning */
		uint64_t first_true; /* in the first reading */
		uint64_t first;      /* likewise, the device's value */
		uint64_t total;
		uint64_t latest; /* the value of the latest reading that has it */
		bool was_reset;  /* since then */
		bool is_untold;  /* a reset, and no counter of the attribute told of it */
		bool is_lossy;   /* a reset, or the maximum: events may be lost */
		bool has_begun;  /* in a reading */
		bool is_wild;    /* the latest value was far off: two might agree */
	} counters[MODEL_COUNTERS];
	bool has_restarted; /* all counters fell at once, of any attribute */
} model;

static bool model_from_device, model_wraps;
static uint64_t model_size; /* of each packet */

static uint64_t below(uint64_t limit)
{
	return ((uint64_t)random() << 31 ^ (uint64_t)random()) % limit;
}

static uint64_t maximum_of(size_t counter)
{
	return counter < MODEL_TRAFFIC
		       ? UINT64_MAX
		       : (UINT64_C(1) << mad_counters_info(model_counters[counter])->bits) - 1;
}

static void model_begin(void)
{
	mad_counters_tracker_free(tracker);
	model_from_device = below(2);
	tracker = mad_counters_tracker_create(model_from_device ? MAD_COUNTERS_FROM_DEVICE : 0);
	assert_non_null(tracker);
	memset(&model, 0, sizeof(model));
	reading = (struct mad_counters){.size = sizeof(reading), .time_us = 1};
	model_wraps = below(2);
	model_size = 32 + below(4000);
	reading.extended = model_wraps ? 0 : MAD_COUNTERS_TRAFFIC;
	for (size_t i = 0; i < MODEL_COUNTERS; i++)
		model.counters[i].device = below(2) ? below(maximum_of(i) / 8) : 0;
	for (size_t i = 0; model_wraps && i < MODEL_PACKETS; i++) {
		model.counters[i + MODEL_PACKETS].device = below(4 * RANGE / model_size);
		model.counters[i].device =
			model.counters[i + MODEL_PACKETS].device * model_size;
	}
}

/* Packets come, far less than a counter of 32 bits can count until the next reading. */
static void model_grow_until_wrap(void)
{
	for (size_t i = 0; i < MODEL_PACKETS; i++) {
		uint64_t packets = below(3) ? below(4 * RANGE / 64 / model_size) : 0;
		size_t other = i + MODEL_PACKETS;

		model.counters[i].truth += packets * model_size;
		model.counters[i].device += packets * model_size;
		model.counters[i].device %= 4 * RANGE;
		model.counters[other].truth += packets;
		model.counters[other].device += packets;
		model.counters[other].device %= RANGE;
	}
}

/* Time passes, and events come: none, a few, or many. */
static void model_grow(void)
{
	uint64_t us = 1 + below(below(2) ? 10000 : 10000000);

	reading.time_us += us;
	if (model_wraps)
		model_grow_until_wrap();
	for (size_t i = model_wraps ? MODEL_TRAFFIC : 0; i < MODEL_COUNTERS; i++) {
		uint64_t most = i < MODEL_TRAFFIC ? us * 300000 : 40, room;
		uint64_t events = below(3) ? below(below(3) ? most / 1000 + 1 : most) : 0;

		room = maximum_of(i) - model.counters[i].device;
		model.counters[i].truth += events;
		model.counters[i].device += events < room ? events : room;
		if (events >= room)
			model.counters[i].is_lossy = true;
	}
}

/* Another program resets all counters or the errors, or the node restarts. */
static void model_reset(void)
{
	for (size_t i = below(2) ? 0 : MODEL_TRAFFIC; i < MODEL_COUNTERS; i++) {
		model.counters[i].device = 0;
		model.counters[i].is_lossy = true;
		model.counters[i].was_reset = model.counters[i].is_untold = true;
	}
}

static bool is_of_one_attribute(size_t a, size_t b)
{
	return model_wraps || (a < MODEL_TRAFFIC) == (b < MODEL_TRAFFIC);
}

/* A counter that is much lower tells of a reset of all counters of its attribute. */
static void model_tell(size_t counter)
{
	uint64_t now = model.counters[counter].device, before = model.counters[counter].latest;

	if (model.counters[counter].was_reset && now < before && before - now >= before / 16)
		for (size_t i = 0; i < MODEL_COUNTERS; i++)
			if (is_of_one_attribute(i, counter))
				model.counters[i].is_untold = false;
	model.counters[counter].latest = now;
	model.counters[counter].was_reset = false;
}

/* Whether the reading has a value of the counter that is not odd. */
static bool model_read(size_t counter)
{
	enum mad_counter number = model_counters[counter];
	uint64_t *value = counter_in(&reading, number);
	bool was_wild = model.counters[counter].is_wild;

	model.counters[counter].is_wild = false;
	*value = model.counters[counter].device;
	if (!below(10))
		return false;
	reading.present |= MAD_COUNTER_BIT(number);
	if (*value == maximum_of(counter))
		reading.at_maximum |= MAD_COUNTER_BIT(number);
	if (!below(20)) {
		*value = below(2) ? UINT64_MAX : below(1000);
		reading.odd_values |= MAD_COUNTER_BIT(number);
		reading.odd = MAD_COUNTERS_ODD_VALUE;
	} else if (model.counters[counter].has_begun && !was_wild && !below(20)) {
		/* higher or lower by more than is possible in hours */
		*value = *value >> 50 && below(2) ? *value / 4 : *value + (UINT64_C(1) << 62);
		model.counters[counter].is_wild = true;
	} else {
		return true;
	}
	return false;
}

static void model_judge(size_t counter, bool is_read, bool has_begun)
{
	uint64_t now = mad_counters_value(total(), model_counters[counter], NULL);
	uint64_t before = model.counters[counter].total, most;
	bool is_incomplete =
		mad_counters_tracker_totals(tracker)->incomplete >> model_counters[counter] & 1;

	/* only a wrap of a counter whose other one was not read looks like a reset */
	assert_true(model_wraps || model.counters[counter].is_lossy || model.has_restarted ||
		    !is_incomplete);
	most = model.counters[counter].first + model.counters[counter].truth -
	       model.counters[counter].first_true;
	model.counters[counter].total = now;
	assert_true(now >= before);
	assert_true(now <= most);
	if (!is_read) {
		assert_true(now == before);
		assert_true(isnan(mad_counters_tracker_rate(tracker, model_counters[counter],
							    MAD_RATE_LATEST)));
	} else if (has_begun && !is_incomplete) {
		assert_true(now == most || model.counters[counter].is_untold);
	}
}

static void model_step(void)
{
	bool is_read[MODEL_COUNTERS], has_begun[MODEL_COUNTERS];
	int events;

	model_grow();
	if (!below(15))
		model_reset();
	reading.present = reading.odd_values = reading.at_maximum = reading.odd = 0;
	for (size_t i = 0; i < MODEL_COUNTERS; i++)
		is_read[i] = model_read(i);
	if (!reading.present) {
		assert_int_equal(mad_counters_tracker_add(tracker, &reading), -EINVAL);
		return;
	}
	events = mad_counters_tracker_add(tracker, &reading);
	assert_true(events >= 0);
	model.has_restarted |= events & MAD_COUNTERS_RESTARTED;
	for (size_t i = 0; i < MODEL_COUNTERS; i++)
		if (is_read[i])
			model_tell(i);
	for (size_t i = 0; i < MODEL_COUNTERS; i++) {
		has_begun[i] = model.counters[i].has_begun;
		if (is_read[i] && !has_begun[i]) {
			model.counters[i].first_true = model.counters[i].truth;
			if (model_from_device)
				model.counters[i].total = model.counters[i].first =
					model.counters[i].device;
			model.counters[i].has_begun = true;
		}
		model_judge(i, is_read[i], has_begun[i]);
	}
}

TEST(totals_are_never_more_than_what_happened_nor_less_without_a_mark)
{
	uint64_t wraps = 0;

	srandom(test_seed());
	for (int round = 0; round < MODEL_ROUNDS; round++) {
		model_begin();
		for (int step = 0; step < MODEL_STEPS; step++)
			model_step();
		wraps += mad_counters_tracker_totals(tracker)->wraps;
	}
	assert_true(wraps > 0);
}

/* --- wraps, and other nodes and ports --------------------------------------------- */

TEST(bytes_that_wrap_are_no_reset)
{
	reading.rcv_bytes = 4 * (RANGE - 1000000);
	reading.rcv_packets = 5000;
	reading.symbol_errors = 3;
	track();
	/* 2,000 packets of 2,048 bytes, and a little more than 4,000,000 bytes */
	reading.rcv_bytes = 96000;
	reading.rcv_packets = 7000;
	assert_int_equal(track(), MAD_COUNTERS_WRAPPED);
	assert_int_equal(total()->rcv_bytes, 4096000);
	assert_int_equal(total()->rcv_packets, 2000);
	assert_true(mad_counters_tracker_rate(tracker, MAD_COUNTER_RCV_BYTES,
					      MAD_RATE_LATEST) == 4096000);
	assert_int_equal(mad_counters_tracker_totals(tracker)->wraps, 1);
	assert_int_equal(mad_counters_tracker_totals(tracker)->resets, 0);
	assert_true(mad_counters_tracker_totals(tracker)->incomplete == 0);
	reading.rcv_bytes += 500;
	assert_int_equal(track(), 0);
	assert_int_equal(total()->rcv_bytes, 4096500);
}

TEST(packets_that_wrap_are_no_reset)
{
	reading.xmit_bytes = 1000000;
	reading.xmit_packets = RANGE - 100;
	track();
	reading.xmit_bytes = 2000000;
	reading.xmit_packets = 900;
	assert_int_equal(track(), MAD_COUNTERS_WRAPPED);
	assert_int_equal(total()->xmit_packets, 1000);
	assert_int_equal(total()->xmit_bytes, 1000000);
}

TEST(packets_that_fall_with_other_bytes_are_reset)
{
	static const struct {
		uint64_t bytes;
		int events;
	} cases[] = {
		{1000 * 24, MAD_COUNTERS_WRAPPED},
		{1000 * 24 - 1, MAD_COUNTERS_RESET},
		{UINT64_C(1001) * 4224 - 1, MAD_COUNTERS_WRAPPED},
		{UINT64_C(1001) * 4224, MAD_COUNTERS_RESET},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		reading.xmit_bytes += 4000;
		reading.xmit_packets = RANGE - 100;
		mad_counters_tracker_replace(tracker);
		track();
		reading.xmit_bytes += cases[i].bytes;
		reading.xmit_packets = 900;
		assert_int_equal(track(), cases[i].events);
	}
}

/* What the tracker says about bytes near the maximum that fall. */
static int fall_to(uint64_t bytes, uint64_t packets)
{
	mad_counters_tracker_free(tracker);
	tracker = mad_counters_tracker_create(0);
	reading.rcv_bytes = 4 * (RANGE - 1000000);
	reading.rcv_packets = 5000;
	reading.symbol_errors = 3;
	track();
	reading.rcv_bytes = bytes;
	reading.rcv_packets = packets;
	return track();
}

TEST(bytes_that_fall_otherwise_are_reset)
{
	/* the packets were reset, too; too few, none, or too many for the bytes */
	assert_int_equal(fall_to(96000, 2000), MAD_COUNTERS_RESET);
	assert_int_equal(fall_to(96000, 5000 + 968), MAD_COUNTERS_RESET);
	assert_int_equal(fall_to(96000, 5000 + 969), MAD_COUNTERS_WRAPPED);
	assert_int_equal(fall_to(96000, 5000), MAD_COUNTERS_RESET);
	assert_int_equal(fall_to(96000, 5000 + 170666), MAD_COUNTERS_WRAPPED);
	assert_int_equal(fall_to(96000, 5000 + 170667), MAD_COUNTERS_RESET);
	/* by more than half of the range */
	assert_int_equal(fall_to(4 * (RANGE / 2), 5000 + 3000000), MAD_COUNTERS_RESET);
	/* a few bytes without a packet */
	reading.rcv_bytes = 4 * (RANGE - 100);
	track();
	reading.rcv_bytes = 400;
	assert_int_equal(track(), MAD_COUNTERS_RESET);
	/* 64 bits do not wrap */
	reading.extended = MAD_COUNTERS_TRAFFIC;
	assert_int_equal(fall_to(96000, 7000), MAD_COUNTERS_RESET);
	reading.extended = 0;
	/* a node without a counter of packets tells nothing */
	reading.present &= ~MAD_COUNTER_BIT(MAD_COUNTER_RCV_PACKETS);
	assert_int_equal(fall_to(96000, 7000), MAD_COUNTERS_RESET);
}

TEST(packets_of_an_earlier_response_do_not_tell_of_a_wrap)
{
	reading.rcv_bytes = 4 * (RANGE - 1000000);
	reading.rcv_packets = 5000;
	reading.symbol_errors = 3;
	track();
	reading.present &= ~RCV_BYTES;
	reading.rcv_packets = 100;
	track();
	reading.present |= RCV_BYTES;
	reading.rcv_bytes = 96000;
	reading.rcv_packets = 2100;
	assert_int_equal(track(), MAD_COUNTERS_RESET);
	assert_int_equal(total()->rcv_bytes, 96000);
}

TEST(a_counter_that_stood_at_its_maximum_does_not_wrap)
{
	reading.rcv_bytes = 4 * (RANGE - 1);
	reading.rcv_packets = 5000;
	reading.at_maximum = RCV_BYTES;
	track();
	reading.rcv_bytes = 96000;
	reading.rcv_packets = 5100;
	reading.at_maximum = 0;
	assert_int_equal(track(), MAD_COUNTERS_RESET);
	assert_int_equal(total()->rcv_bytes, 96000);
}

static void expect_replaced(void)
{
	uint64_t before = total()->rcv_bytes;

	reading.rcv_bytes += 1000;
	assert_int_equal(track(), MAD_COUNTERS_REPLACED);
	assert_true(total()->rcv_bytes == before);
	assert_true(isnan(
		mad_counters_tracker_rate(tracker, MAD_COUNTER_RCV_BYTES, MAD_RATE_LATEST)));
	assert_true(mad_counters_tracker_totals(tracker)->incomplete & RCV_BYTES);
	reading.rcv_bytes += 50;
	assert_int_equal(track(), 0);
	assert_true(total()->rcv_bytes == before + 50);
}

TEST(another_node_or_port_begins_again)
{
	reading.rcv_bytes = 100;
	reading.capability_mask = MAD_PMA_XMIT_WAIT;
	track();
	mad_counters_tracker_replace(tracker);
	expect_replaced();
	reading.port = 4;
	expect_replaced();
	reading.capability_mask = MAD_PMA_XMIT_WAIT | MAD_PMA_QP1_DROPPED;
	expect_replaced();
	reading.capability_mask2 = MAD_PMA2_ADDITIONAL_EXTENDED;
	expect_replaced();
	assert_int_equal(mad_counters_tracker_totals(tracker)->replaced, 4);
	/* a reading without ClassPortInfo is of the same node, and so is the next one */
	reading.capability_mask = reading.capability_mask2 = 0;
	assert_int_equal(track(), 0);
	reading.capability_mask = MAD_PMA_XMIT_WAIT | MAD_PMA_QP1_DROPPED;
	reading.capability_mask2 = MAD_PMA2_ADDITIONAL_EXTENDED;
	assert_int_equal(track(), 0);
	/* it does not hide that the next one is of another */
	reading.capability_mask = reading.capability_mask2 = 0;
	assert_int_equal(track(), 0);
	reading.capability_mask = MAD_PMA_XMIT_WAIT;
	expect_replaced();
	mad_counters_tracker_replace(NULL);
}

TEST(a_counter_that_the_first_reading_of_another_lacks_begins_later)
{
	reading.rcv_bytes = 100;
	track();
	mad_counters_tracker_replace(tracker);
	reading.present &= ~RCV_BYTES;
	assert_int_equal(track(), MAD_COUNTERS_REPLACED | MAD_COUNTERS_CHANGED);
	reading.present |= RCV_BYTES;
	reading.rcv_bytes = 5000;
	track();
	assert_int_equal(total()->rcv_bytes, 0);
	reading.rcv_bytes = 5300;
	track();
	assert_int_equal(total()->rcv_bytes, 300);
}

/* --- known and unknown ----------------------------------------------------------- */

static double rate_of(unsigned counter)
{
	return mad_counters_tracker_rate(tracker, counter, MAD_RATE_LATEST);
}

TEST(a_rate_that_is_0_is_not_one_that_is_unknown)
{
	reading.extended = MAD_COUNTERS_TRAFFIC;
	reading.rcv_bytes = 1000;
	reading.symbol_errors = 50;
	track();
	assert_true(isnan(rate_of(MAD_COUNTER_SYMBOL_ERRORS)));
	track();
	assert_true(rate_of(MAD_COUNTER_SYMBOL_ERRORS) == 0);
	assert_true(mad_counters_tracker_rate(tracker, MAD_COUNTER_SYMBOL_ERRORS,
					      MAD_RATE_MEAN) == 0);
	/* how many events came before the reset is not known */
	reading.symbol_errors = 3;
	track();
	assert_true(isnan(rate_of(MAD_COUNTER_SYMBOL_ERRORS)));
	assert_true(isnan(rate_of(MAD_COUNTER_RCV_ERRORS)));
	assert_true(rate_of(MAD_COUNTER_RCV_BYTES) == 0);
	track();
	assert_true(rate_of(MAD_COUNTER_SYMBOL_ERRORS) == 0);
	assert_true(rate_of(MAD_COUNTER_RCV_ERRORS) == 0);
	/* nor how many a counter at its maximum misses */
	reading.symbol_errors = 65535;
	reading.at_maximum = MAD_COUNTER_BIT(MAD_COUNTER_SYMBOL_ERRORS);
	track();
	assert_true(isnan(rate_of(MAD_COUNTER_SYMBOL_ERRORS)));
	track();
	assert_true(isnan(rate_of(MAD_COUNTER_SYMBOL_ERRORS)));
	assert_true(rate_of(MAD_COUNTER_RCV_ERRORS) == 0);
}

TEST(the_rate_of_a_counter_that_fell_is_unknown_until_it_is_higher)
{
	reading.rcv_bytes = 100000;
	track();
	reading.rcv_bytes = 99000;
	track();
	assert_true(isnan(rate_of(MAD_COUNTER_RCV_BYTES)));
	reading.rcv_bytes = 100010;
	track();
	assert_true(isnan(rate_of(MAD_COUNTER_RCV_BYTES)));
	reading.rcv_bytes = 100030;
	track();
	assert_true(rate_of(MAD_COUNTER_RCV_BYTES) == 20);
}

TEST(a_total_that_may_be_too_low_is_incomplete)
{
	uint64_t incomplete = MAD_COUNTER_BIT(MAD_COUNTER_XMIT_BYTES) |
			      MAD_COUNTER_BIT(MAD_COUNTER_SYMBOL_ERRORS);

	reading.extended = MAD_COUNTERS_TRAFFIC;
	reading.rcv_bytes = 100000;
	reading.xmit_bytes = 100000;
	reading.rcv_errors = 50;
	track();
	track();
	assert_true(mad_counters_tracker_totals(tracker)->incomplete == 0);
	reading.xmit_bytes = 99000;
	reading.symbol_errors = 65535;
	reading.at_maximum = MAD_COUNTER_BIT(MAD_COUNTER_SYMBOL_ERRORS);
	track();
	assert_true(mad_counters_tracker_totals(tracker)->incomplete == incomplete);
	reading.rcv_errors = 2;
	track();
	incomplete |= TRAFFIC_AND_ERRORS & ~MAD_COUNTERS_TRAFFIC;
	assert_true(mad_counters_tracker_totals(tracker)->incomplete == incomplete);
	reading.extended &= ~RCV_BYTES;
	track();
	assert_true(mad_counters_tracker_totals(tracker)->incomplete & RCV_BYTES);
}

#define INCOMPLETE(counter) \
	(mad_counters_tracker_totals(tracker)->incomplete & MAD_COUNTER_BIT(counter))

TEST(a_reset_that_one_counter_tells_of_is_one_of_its_attribute)
{
	reading.extended = MAD_COUNTERS_TRAFFIC;
	reading.rcv_bytes = 100000;
	reading.rcv_errors = 50;
	reading.symbol_errors = 2;
	track();
	/* PortCounters was reset; symbol errors are above their former value */
	reading.rcv_bytes = 101000;
	reading.rcv_errors = 1;
	reading.symbol_errors = 7;
	assert_int_equal(track(), MAD_COUNTERS_RESET);
	assert_int_equal(total()->symbol_errors, 5);
	assert_true(INCOMPLETE(MAD_COUNTER_SYMBOL_ERRORS));
	assert_true(isnan(rate_of(MAD_COUNTER_SYMBOL_ERRORS)));
	/* likewise a counter that was 0 */
	assert_true(INCOMPLETE(MAD_COUNTER_LINK_DOWNED));
	/* PortCountersExtended was not reset */
	assert_false(INCOMPLETE(MAD_COUNTER_RCV_BYTES));
	assert_true(rate_of(MAD_COUNTER_RCV_BYTES) == 1000);
}

TEST(a_reset_concerns_counters_that_the_reading_lacks)
{
	const uint64_t symbols = MAD_COUNTER_BIT(MAD_COUNTER_SYMBOL_ERRORS);

	reading.rcv_errors = 50;
	reading.symbol_errors = 2;
	track();
	reading.rcv_errors = 1;
	reading.present &= ~symbols;
	track();
	assert_true(INCOMPLETE(MAD_COUNTER_SYMBOL_ERRORS));
	/* and those with an impossible value */
	mad_counters_tracker_free(tracker);
	tracker = mad_counters_tracker_create(0);
	reading.present |= symbols;
	reading.rcv_errors = 50;
	track();
	reading.rcv_errors = 1;
	reading.symbol_errors = UINT64_MAX;
	reading.odd_values = symbols;
	track();
	assert_true(INCOMPLETE(MAD_COUNTER_SYMBOL_ERRORS));
}

TEST(a_restart_concerns_all_attributes)
{
	reading.extended = MAD_COUNTERS_TRAFFIC;
	reading.rcv_bytes = 100000;
	track();
	reading.rcv_bytes = 300;
	reading.symbol_errors = 3;
	assert_int_equal(track(), MAD_COUNTERS_RESTARTED);
	assert_true(INCOMPLETE(MAD_COUNTER_SYMBOL_ERRORS));
}

TEST(totals_may_begin_at_the_value_of_the_device)
{
	mad_counters_tracker_free(tracker);
	tracker = mad_counters_tracker_create(MAD_COUNTERS_FROM_DEVICE);
	reading.present &= ~MAD_COUNTER_BIT(MAD_COUNTER_SYMBOL_ERRORS);
	reading.rcv_bytes = 100000;
	track();
	assert_int_equal(total()->rcv_bytes, 100000);
	assert_true(total()->present == reading.present);
	assert_true(isnan(
		mad_counters_tracker_rate(tracker, MAD_COUNTER_RCV_BYTES, MAD_RATE_MEAN)));
	reading.present = TRAFFIC_AND_ERRORS;
	reading.rcv_bytes = 100500;
	reading.symbol_errors = 7;
	track();
	assert_int_equal(total()->rcv_bytes, 100500);
	assert_int_equal(total()->symbol_errors, 7);
	assert_true(mad_counters_tracker_rate(tracker, MAD_COUNTER_RCV_BYTES, MAD_RATE_MEAN) ==
		    500);
	/* after a restart, and from another attribute, the value of the device is not added
	 * twice */
	reading.rcv_bytes = 300;
	reading.symbol_errors = 0;
	assert_int_equal(track(), MAD_COUNTERS_RESTARTED);
	assert_int_equal(total()->rcv_bytes, 100800);
	reading.extended = RCV_BYTES;
	reading.rcv_bytes = 4000;
	track();
	assert_int_equal(total()->rcv_bytes, 100800);
}

TEST(a_flag_of_a_tracker_that_is_unknown_is_refused)
{
	errno = 0;
	assert_null(mad_counters_tracker_create(2));
	assert_int_equal(errno, EINVAL);
}

TEST(a_total_stops_at_its_maximum)
{
	track();
	for (int i = 0; i < 3; i++) {
		reading.rcv_bytes = UINT64_MAX - 1;
		reading.time_us += UINT64_C(1) << 45; /* a year */
		track();
		reading.rcv_bytes = 0;
		track();
	}
	assert_true(total()->rcv_bytes == UINT64_MAX);
}

TEST(what_cannot_be_added_is_refused)
{
	track();
	reading.rcv_bytes = 50;
	reading.time_us -= 1;
	assert_int_equal(mad_counters_tracker_add(tracker, &reading), -EINVAL);
	assert_int_equal(mad_counters_tracker_add(NULL, &reading), -EINVAL);
	assert_int_equal(mad_counters_tracker_add(tracker, NULL), -EINVAL);
	assert_int_equal(mad_counters_tracker_totals(tracker)->readings, 1);
	assert_null(mad_counters_tracker_totals(NULL));
	assert_true(isnan(mad_counters_tracker_rate(NULL, 0, MAD_RATE_LATEST)));
	assert_true(isnan(mad_counters_tracker_rate(NULL, 0, MAD_RATE_MEAN)));
	mad_counters_tracker_free(NULL);
	fake_fail_malloc(1);
	assert_null(mad_counters_tracker_create(0));
	fake_fail_malloc(0);
}

/* A program that was compiled with fewer members has no counter beyond them. */
TEST(a_smaller_reading_is_not_read_beyond_its_size)
{
	struct mad_counters *small = malloc(offsetof(struct mad_counters, present));

	assert_non_null(small);
	small->size = offsetof(struct mad_counters, present);
	assert_int_equal(mad_counters_tracker_add(tracker, small), -EINVAL);
	free(small);
}
