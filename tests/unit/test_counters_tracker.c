/* SPDX-License-Identifier: BSD-2-Clause */

/* The sum of a port's readings: after a reset, at the maximum, or if a counter decreases. */

#include "counters/counter_table.h"
#include "counters/tracker.h"
#include "fake_memory.h"
#include "test.h"

#include <inttypes.h>
#include <math.h>

static struct mad_counters_tracker *tracker;
static struct mad_counters reading;

static void begin(unsigned flags)
{
	mad_counters_tracker_free(tracker);
	tracker = mad_counters_tracker_create(flags);
	assert_non_null(tracker);
	reading = (struct mad_counters){
		.size = sizeof(reading), .present = MAD_COUNTERS_DEFAULT, .time_us = 1000000};
}

static int setup(void)
{
	begin(0);
	return 0;
}

static int teardown(void)
{
	mad_counters_tracker_free(tracker);
	tracker = NULL;
	return 0;
}

FIXTURE(setup, teardown);

static const struct mad_counters_totals *totals(void)
{
	return mad_counters_tracker_totals(tracker);
}

/* Adds the reading. Returns the events, or a negative errno. */
static int track(void)
{
	const struct mad_counters_tracker before = *tracker;
	const struct mad_counters_totals *was = &before.totals, *now = totals();
	int events = mad_counters_tracker_add(tracker, &reading);

	if (events < 0) {
		assert_memory_equal(tracker, &before, sizeof(before));
		return events;
	}
	assert_int_equal(now->readings, was->readings + 1);
	assert_true(now->first_us == (was->readings ? was->first_us : reading.time_us));
	assert_true(now->total.time_us == reading.time_us);
	assert_int_equal(now->resets - was->resets, (events & MAD_COUNTERS_RESET) != 0);
	assert_int_equal(now->restarts - was->restarts, (events & MAD_COUNTERS_RESTARTED) != 0);
	assert_int_equal(now->replaced - was->replaced, (events & MAD_COUNTERS_REPLACED) != 0);
	assert_int_equal(now->wraps > was->wraps, (events & MAD_COUNTERS_WRAPPED) != 0);
	assert_int_equal(now->stuck > was->stuck, (events & MAD_COUNTERS_STUCK) != 0);
	assert_int_equal(now->backwards > was->backwards,
			 (events & MAD_COUNTERS_BACKWARDS) != 0);
	assert_int_equal(now->impossible > was->impossible,
			 (events & MAD_COUNTERS_IMPOSSIBLE) != 0);
	return events;
}

/* --- histories in words ---------------------------------------------------------- */

/*
 * A line is a reading, a second after the one before. It has what differs from the reading
 * before, and after "->" the tracker's events and what it says. Counters have their names:
 *
 *	rcv_bytes=5	the value; +5: more than before; 5!: the maximum; none: the reading
 *			lacks it; odd: an impossible value
 *	extended, basic	the attribute that has traffic
 *	from_device	first of all: the tracker has this flag
 *	replace		mad_counters_tracker_replace() is called before
 *	us=5		the microseconds since the reading before
 *	extended_us, basic_us, port, mask, mask2	members of the reading
 *
 *	-> RESET	the events of this reading; REFUSED: -EINVAL
 *	rcv_bytes=5	the total; unknown: it has none
 *	rcv_bytes/s=5	the latest rate; rcv_bytes/mean=5
 *	rcv_bytes/incomplete	it is in this mask of the totals
 *	wraps=5		likewise the number of wraps
 */
static const struct history_row {
	const char *behaviour;
	const char *lines[14];
} histories[] = {
	{"totals_may_begin_at_the_value_of_the_device",
	 {"from_device symbol_errors=none rcv_bytes=100000",
	  "-> rcv_bytes=100000 symbol_errors=unknown rcv_bytes/mean=0",
	  "rcv_bytes=101000 symbol_errors=7 -> CHANGED rcv_bytes=101000 symbol_errors=7 "
	  "rcv_bytes/mean=500 symbol_errors/mean=unknown",
	  /* after a restart, and from another attribute, it is not added twice */
	  "rcv_bytes=300 symbol_errors=0 -> RESTARTED rcv_bytes=101300",
	  "extended rcv_bytes=4000 -> CHANGED rcv_bytes=101300"}},
	{"a_total_stops_at_its_maximum",
	 {"", "rcv_bytes=0xfffffffffffffffe us=35000000000000", "rcv_bytes=0 -> RESTARTED",
	  "rcv_bytes=0xfffffffffffffffe us=35000000000000 -> rcv_bytes=0xffffffffffffffff"}},

	{"rates_are_of_the_latest_interval_and_of_all",
	 {"-> rcv_bytes/s=unknown rcv_bytes/mean=unknown", "rcv_bytes=5000",
	  "rcv_bytes=6000 us=2000000 -> rcv_bytes/s=500 rcv_bytes/mean=2000",
	  "rcv_bytes=9000 us=0 -> rcv_bytes/s=unknown",
	  /* a reading without the counter: it increases within two seconds */
	  "rcv_bytes=none -> CHANGED rcv_bytes/s=unknown rcv_bytes/mean=3000",
	  "rcv_bytes=12000 -> rcv_bytes/s=1500"}},
	{"a_rate_is_by_the_times_of_the_counters_responses",
	 {"extended extended_us=1000000 basic_us=1700000",
	  "rcv_bytes=4000007 symbol_errors=34 extended_us=5000007 basic_us=5100000 -> "
	  "rcv_bytes/s=1000000 rcv_bytes/mean=1000000 symbol_errors/s=10",
	  /* this one was overtaken */
	  "extended_us=5000006 basic_us=5200000 -> REFUSED"}},
	{"a_rate_that_is_0_is_not_one_that_is_unknown",
	 {"extended rcv_bytes=1000 symbol_errors=50 -> symbol_errors/s=unknown",
	  "-> symbol_errors/s=0 symbol_errors/mean=0",
	  /* how many events came before the reset is not known */
	  "symbol_errors=3 -> RESET symbol_errors/s=unknown rcv_errors/s=unknown rcv_bytes/s=0",
	  "-> symbol_errors/s=0 rcv_errors/s=0",
	  /* nor how many a counter at its maximum misses */
	  "symbol_errors=65535! -> STUCK symbol_errors/s=unknown",
	  "-> symbol_errors/s=unknown rcv_errors/s=0"}},

	{"a_reset_that_one_counter_tells_of_is_one_of_its_attribute",
	 {"extended rcv_bytes=100000 rcv_errors=50 symbol_errors=2",
	  /* symbol errors are above their former value, link_downed was 0 */
	  "rcv_bytes=101000 rcv_errors=1 symbol_errors=7 -> RESET symbol_errors=5 "
	  "symbol_errors/incomplete symbol_errors/s=unknown link_downed/incomplete "
	  "rcv_bytes/complete rcv_bytes/s=1000"}},
	{"a_reset_concerns_counters_that_the_reading_lacks",
	 {"extended rcv_bytes=5 rcv_errors=50 symbol_errors=2",
	  "rcv_errors=1 symbol_errors=none -> RESET CHANGED symbol_errors/incomplete"}},
	{"a_restart_concerns_all_attributes_and_impossible_values",
	 {"extended rcv_bytes=100000",
	  "rcv_bytes=300 rcv_errors=3 symbol_errors=odd -> RESTARTED IMPOSSIBLE rcv_bytes=300 "
	  "rcv_errors/incomplete symbol_errors/incomplete"}},
	{"a_total_that_may_be_too_low_is_incomplete",
	 {"extended rcv_bytes=100000 xmit_bytes=100000 rcv_errors=50",
	  "-> xmit_bytes/complete symbol_errors/complete",
	  "xmit_bytes=99000 symbol_errors=65535! -> BACKWARDS STUCK xmit_bytes/incomplete "
	  "symbol_errors/incomplete rcv_bytes/complete rcv_errors/complete",
	  "rcv_errors=2 -> RESET rcv_errors/incomplete link_downed/incomplete "
	  "rcv_bytes/complete xmit_packets/complete",
	  "basic -> CHANGED rcv_bytes/incomplete"}},

	{"a_counter_that_runs_backwards_adds_nothing",
	 {"rcv_bytes=100000 xmit_bytes=50000",
	  "rcv_bytes=99000 xmit_bytes=50100 -> BACKWARDS rcv_bytes=0 xmit_bytes=100 "
	  "rcv_bytes/s=unknown",
	  "rcv_bytes=100010 -> rcv_bytes=10 rcv_bytes/s=unknown backwards=1",
	  "rcv_bytes=100030 -> rcv_bytes/s=20"}},
	{"a_counter_that_counts_down_never_looks_reset",
	 {"rcv_bytes=100000", "rcv_bytes=95000 -> BACKWARDS", "rcv_bytes=90000 -> BACKWARDS",
	  "rcv_bytes=85000 -> BACKWARDS rcv_bytes=0 backwards=3",
	  /* it increases to the earlier value without an event */
	  "", "rcv_bytes=99999 -> rcv_bytes=0", "rcv_bytes=100007 -> rcv_bytes=7",
	  "rcv_bytes=99000 -> BACKWARDS", "rcv_bytes=300 -> RESTARTED rcv_bytes=307"}},
	{"a_small_fall_of_all_that_was_not_reset_is_no_restart",
	 {"xmit_bytes=1000000000000 symbol_errors=100",
	  "xmit_bytes=999999999996 symbol_errors=0 -> RESET BACKWARDS xmit_bytes=0"}},

	{"a_counter_at_its_maximum_is_named_and_stays_so",
	 {"symbol_errors=65000", "symbol_errors=65535! -> STUCK", "",
	  /* a reading without the counter does not change it */
	  "symbol_errors=none -> CHANGED",
	  "symbol_errors=65535! -> symbol_errors=535 symbol_errors/at_maximum",
	  /* another program resets it; lost counts are lost */
	  "symbol_errors=5 -> RESTARTED symbol_errors=540 symbol_errors/at_maximum stuck=1"}},

	{"an_odd_value_changes_nothing_and_the_next_reading_continues",
	 {"rcv_bytes=1000",
	  "rcv_bytes=odd symbol_errors=5 -> IMPOSSIBLE rcv_bytes=unknown symbol_errors=5 "
	  "rcv_bytes/odd",
	  "rcv_bytes=5000 -> rcv_bytes=4000 rcv_bytes/s=2000 impossible=1"}},
	{"a_growth_that_no_link_can_count_is_ignored",
	 {"rcv_bytes=0x1000000000000000",
	  /* higher, and lower, but too high for a reset */
	  "rcv_bytes=0x2000000000000000 -> IMPOSSIBLE",
	  "rcv_bytes=0x0800000000000000 -> IMPOSSIBLE rcv_bytes=unknown",
	  "rcv_bytes=0x1000000000000bb8 -> rcv_bytes=3000 rcv_bytes/s=1000",
	  /* as much as a link may count in a second and the slack */
	  "rcv_bytes=+2000000999999", "rcv_bytes=+2000001000000 -> IMPOSSIBLE impossible=3"}},
	{"impossible_values_that_continue_are_of_another_port",
	 {"rcv_bytes=1000", "rcv_bytes=0x1000000000000000 -> IMPOSSIBLE",
	  "rcv_bytes=0x2000000000000000 -> IMPOSSIBLE",
	  "rcv_bytes=+500 -> REPLACED rcv_bytes=unknown",
	  "rcv_bytes=+70 -> rcv_bytes=70 rcv_bytes/s=70"}},
	{"another_node_or_port_begins_again",
	 {"rcv_bytes=100 mask=1",
	  "replace rcv_bytes=+1000 -> REPLACED rcv_bytes=unknown rcv_bytes/s=unknown "
	  "rcv_bytes/incomplete",
	  "rcv_bytes=+50 -> rcv_bytes=50",
	  "port=4 rcv_bytes=+1000 -> REPLACED rcv_bytes=50 rcv_bytes/s=unknown",
	  "rcv_bytes=+50 -> rcv_bytes=100", "mask=3 rcv_bytes=+1000 -> REPLACED rcv_bytes=100",
	  "mask2=2 rcv_bytes=+1000 -> REPLACED rcv_bytes=100",
	  /* a reading without ClassPortInfo is of the same node, and so is the next one */
	  "mask=0 mask2=0 rcv_bytes=+50 -> rcv_bytes=150", "mask=3 mask2=2",
	  /* it does not hide that the next one is of another */
	  "mask=0 mask2=0", "mask=1 rcv_bytes=+1000 -> REPLACED rcv_bytes=150"}},
	{"a_counter_that_the_first_reading_of_another_lacks_begins_later",
	 {"rcv_bytes=100", "replace rcv_bytes=none -> REPLACED CHANGED",
	  "rcv_bytes=5000 -> REPLACED rcv_bytes=unknown", "rcv_bytes=5300 -> rcv_bytes=300"}},

	/* the bytes are 4,000,000 before their maximum */
	{"bytes_that_wrap_are_no_reset",
	 {"rcv_bytes=17175869184 rcv_packets=5000 symbol_errors=3",
	  "rcv_bytes=96000 rcv_packets=7000 -> WRAPPED rcv_bytes=4096000 rcv_packets=2000 "
	  "rcv_bytes/s=4096000 rcv_bytes/complete wraps=1",
	  "rcv_bytes=+500 -> rcv_bytes=4096500"}},
	{"packets_of_an_earlier_response_do_not_tell_of_a_wrap",
	 {"rcv_bytes=17175869184 rcv_packets=5000 symbol_errors=3",
	  "rcv_bytes=none rcv_packets=100 -> RESET CHANGED",
	  "rcv_bytes=96000 rcv_packets=2100 -> RESET rcv_bytes=96000"}},
	{"64_bits_do_not_wrap",
	 {"extended rcv_bytes=17175869184 rcv_packets=5000 symbol_errors=3",
	  "rcv_bytes=96000 rcv_packets=7000 -> RESET"}},
	{"a_counter_that_stood_at_its_maximum_does_not_wrap",
	 {"rcv_bytes=17179869180! rcv_packets=5000 -> STUCK",
	  "rcv_bytes=96000 rcv_packets=5100 -> RESET rcv_bytes=96000"}},
};

/* The counter that a word begins with, and what follows; MAD_COUNTER_COUNT: none. */
static unsigned counter_of(const char *word, const char **rest)
{
	unsigned i;

	for (i = 0; i < MAD_COUNTER_COUNT; i++) {
		size_t length = strlen(mad_counters_info(i)->name);

		*rest = word + length;
		if (!strncmp(word, mad_counters_info(i)->name, length) &&
		    (**rest == '=' || **rest == '/'))
			break;
	}
	return i;
}

static void set_counter(unsigned counter, const char *value)
{
	uint64_t bit = MAD_COUNTER_BIT(counter), *member = counter_in(&reading, counter);
	uint64_t before = *value == '+' ? *member : 0;
	char *end;

	*member = before + strtoull(value, &end, 0);
	reading.present |= bit;
	reading.at_maximum &= ~bit;
	reading.odd_values &= ~bit;
	if (*end == '!')
		reading.at_maximum |= bit;
	if (!strcmp(value, "none"))
		reading.present &= ~bit;
	if (strcmp(value, "odd") != 0)
		return;
	*member = UINT64_MAX;
	reading.odd_values |= bit;
}

static void set(const char *word)
{
	const char *rest;
	unsigned counter = counter_of(word, &rest);
	char name[16] = "";
	uint64_t number = 0;

	if (counter < MAD_COUNTER_COUNT) {
		set_counter(counter, rest + 1);
		return;
	}
	sscanf(word, "%15[^=]=%" SCNu64, name, &number);
	if (!strcmp(name, "from_device"))
		begin(MAD_COUNTERS_FROM_DEVICE);
	else if (!strcmp(name, "replace"))
		mad_counters_tracker_replace(tracker);
	else if (!strcmp(name, "extended") || !strcmp(name, "basic"))
		reading.extended = *name == 'e' ? MAD_COUNTERS_TRAFFIC : 0;
	else if (!strcmp(name, "us"))
		reading.time_us += number - 1000000;
	else if (!strcmp(name, "extended_us"))
		reading.response_us[SOURCE_EXTENDED] = number;
	else if (!strcmp(name, "basic_us"))
		reading.response_us[SOURCE_BASIC] = reading.time_us = number;
	else if (!strcmp(name, "port"))
		reading.port = (uint8_t)number;
	else if (!strcmp(name, "mask"))
		reading.capability_mask = (uint32_t)number;
	else if (!strcmp(name, "mask2"))
		reading.capability_mask2 = (uint32_t)number;
	else
		fail_msg("unknown word %s", word);
}

static double rate_of(unsigned counter, enum mad_rate rate)
{
	return mad_counters_tracker_rate(tracker, counter, rate);
}

static bool is_true_of(unsigned counter, const char *said)
{
	const struct mad_counters *total = &totals()->total;
	const char *value = strchr(said, '=');
	bool unknown = value && !strcmp(value, "=unknown");
	double rate;

	if (!strcmp(said, "/incomplete") || !strcmp(said, "/complete"))
		return (totals()->incomplete >> counter & 1) == (said[1] == 'i');
	if (!strcmp(said, "/at_maximum"))
		return total->at_maximum >> counter & 1;
	if (!strcmp(said, "/odd"))
		return total->odd_values >> counter & 1;
	assert_non_null(value);
	if (value == said)
		return unknown ? !(total->present >> counter & 1)
			       : total->present >> counter & 1 &&
					 counter_value(total, counter) ==
						 strtoull(value + 1, NULL, 0);
	rate = rate_of(counter, said[1] == 's' ? MAD_RATE_LATEST : MAD_RATE_MEAN);
	return unknown ? isnan(rate) : rate == strtod(value + 1, NULL);
}

static bool is_true(const char *word)
{
	const char *rest;
	unsigned counter = counter_of(word, &rest);
	char counts[120], padded[40];

	snprintf(counts, sizeof(counts),
		 " backwards=%" PRIu64 " stuck=%" PRIu64 " impossible=%" PRIu64
		 " wraps=%" PRIu64 " ",
		 totals()->backwards, totals()->stuck, totals()->impossible, totals()->wraps);
	snprintf(padded, sizeof(padded), " %s ", word);
	return counter < MAD_COUNTER_COUNT ? is_true_of(counter, rest)
					   : strstr(counts, padded) != NULL;
}

/* The event that a word names; 0: none. */
static int event_of(const char *word)
{
	static const char *const events[] = {"RESET",   "RESTARTED",  "BACKWARDS", "STUCK",
					     "CHANGED", "IMPOSSIBLE", "REPLACED",  "WRAPPED"};

	for (unsigned i = 0; i < sizeof(events) / sizeof(*events); i++)
		if (!strcmp(word, events[i]))
			return 1 << i;
	return strcmp(word, "REFUSED") ? 0 : -EINVAL;
}

static void follow(const char *line)
{
	char words[200], *rest = words, *word;
	int events = 0, expected = 0;
	bool is_tracked = false;

	snprintf(words, sizeof(words), "%s ->", line);
	reading.time_us += 1000000;
	while ((word = strtok_r(rest, " ", &rest))) {
		if (!strcmp(word, "->")) {
			events = is_tracked ? events : track();
			is_tracked = true;
		} else if (!is_tracked) {
			set(word);
		} else if (event_of(word)) {
			expected |= event_of(word);
		} else if (!is_true(word)) {
			fail_msg("%s: %s is not true", line, word);
		}
	}
	if (events != expected)
		fail_msg("%s: events %d instead of %d", line, events, expected);
}

static void follow_history(const void *row)
{
	const struct history_row *history = row;

	for (const char *const *line = history->lines; *line; line++)
		follow(*line);
}

TEST_ROWS(follow_history, histories);

#define RANGE (UINT64_C(1) << 32) /* of packets, and of bytes divided by 4 */

TEST(a_fall_is_a_wrap_if_bytes_and_packets_agree)
{
	static const struct {
		uint64_t bytes, packets, more_bytes, more_packets;
		int events;
	} falls[] = {
		{4000, RANGE - 100, 1000 * 24, 1000, MAD_COUNTERS_WRAPPED},
		{4000, RANGE - 100, 1000 * 24 - 1, 1000, MAD_COUNTERS_RESET},
		{4000, RANGE - 100, 1001 * 4224 - 1, 1000, MAD_COUNTERS_WRAPPED},
		{4000, RANGE - 100, 1001 * 4224, 1000, MAD_COUNTERS_RESET},
		/* too few packets for the bytes, or too many; none */
		{4 * (RANGE - 1000000), 5000, 4096000, 968, MAD_COUNTERS_RESET},
		{4 * (RANGE - 1000000), 5000, 4096000, 969, MAD_COUNTERS_WRAPPED},
		{4 * (RANGE - 1000000), 5000, 4096000, 170666, MAD_COUNTERS_WRAPPED},
		{4 * (RANGE - 1000000), 5000, 4096000, 170667, MAD_COUNTERS_RESET},
		{4 * (RANGE - 100), 5000, 800, 0, MAD_COUNTERS_RESET},
		/* by more than half of the range; the packets fall, too */
		{4 * (RANGE - 1000000), 5000, 2 * RANGE + 4000000, 3000000, MAD_COUNTERS_RESET},
		{4 * (RANGE - 1000000), 5000, 4096000, RANGE - 3000, MAD_COUNTERS_RESET},
	};

	for (size_t i = 0; i < sizeof(falls) / sizeof(*falls); i++) {
		begin(0);
		reading.symbol_errors = 3; /* a restart would reset them */
		reading.rcv_bytes = reading.xmit_bytes = falls[i].bytes;
		reading.rcv_packets = reading.xmit_packets = falls[i].packets;
		track();
		reading.time_us += 1000000;
		reading.rcv_bytes = reading.xmit_bytes =
			(falls[i].bytes + falls[i].more_bytes) % (4 * RANGE);
		reading.rcv_packets = reading.xmit_packets =
			(falls[i].packets + falls[i].more_packets) % RANGE;
		assert_int_equal(track(), falls[i].events);
	}
}

/* --- a model of a port, with random events --------------------------------------- */

/* Traffic, of 64 bits or of 32 bits that wrap, and errors that stop at their maximum. */
static const enum mad_counter modelled[] = {MAD_COUNTER_RCV_BYTES, MAD_COUNTER_RCV_PACKETS,
					    MAD_COUNTER_SYMBOL_ERRORS, MAD_COUNTER_LINK_DOWNED};
#define BYTES    0
#define PACKETS  1
#define SYMBOLS  2
#define DOWNED   3
#define MODELLED 4

static struct {
	bool from_device, wraps;
	uint64_t packet_size;
	uint32_t mask;
	uint64_t time_us;   /* of the former reading */
	bool has_restarted; /* all counters fell at once, of any attribute */
	struct model {
		uint64_t maximum;
		uint64_t device; /* what the node has in its counter */
		uint64_t truth;  /* what its total should be, once it has begun */
		uint64_t total;
		uint64_t latest; /* the value of the latest reading that has it */
		bool was_reset;  /* since then */
		bool is_untold;  /* a reset, and no counter of the attribute told of it */
		bool is_lossy;   /* a reset, or the maximum: events may be lost */
		bool has_begun;  /* in a reading */
		bool is_wild;    /* the latest value was far off: two might agree */
		bool is_read;    /* the reading has it, and no odd value */
	} counters[MODELLED];
} model;

static uint64_t below(uint64_t limit)
{
	return ((uint64_t)random() << 31 ^ (uint64_t)random()) % limit;
}

static void model_begin(void)
{
	struct model *counters = model.counters;

	memset(&model, 0, sizeof(model));
	model.from_device = below(2);
	model.wraps = below(2);
	model.packet_size = 32 + below(4000);
	model.mask = (uint32_t)below(UINT32_MAX);
	begin(model.from_device ? MAD_COUNTERS_FROM_DEVICE : 0);
	reading.extended = model.wraps ? 0 : MAD_COUNTERS_TRAFFIC;
	counters[BYTES].maximum = model.wraps ? 4 * RANGE - 1 : UINT64_MAX;
	counters[PACKETS].maximum = model.wraps ? RANGE - 1 : UINT64_MAX;
	counters[SYMBOLS].maximum = UINT16_MAX;
	counters[DOWNED].maximum = UINT8_MAX;
	for (unsigned i = BYTES; i < MODELLED; i++)
		counters[i].device =
			below(2) * below(counters[i].maximum / (model.wraps ? 1 : 8));
	counters[PACKETS].device = counters[BYTES].device / model.packet_size;
	counters[BYTES].device = counters[PACKETS].device * model.packet_size;
}

/* Time passes, and events come: none, a few, or many, but fewer than are possible. */
static void model_grow(void)
{
	uint64_t us = 1 + below(below(2) ? 10000 : 10000000);
	uint64_t most = (model.wraps ? RANGE / 4 : us * 300000) / model.packet_size + 1;
	uint64_t packets = below(2) ? below(below(3) ? most / 1000 + 1 : most) : 0;

	reading.time_us += us;
	for (unsigned i = 0; i < MODELLED; i++) {
		struct model *each = &model.counters[i];
		uint64_t room = each->maximum - each->device;
		uint64_t events = i == BYTES     ? packets * model.packet_size
				  : i == PACKETS ? packets
						 : below(3) * below(40);

		each->truth += events;
		if (i <= PACKETS && model.wraps) {
			each->device = (each->device + events) & each->maximum;
			continue;
		}
		each->device += events < room ? events : room;
		each->is_lossy |= events >= room;
	}
}

/* Another program resets all counters or the errors, or the node restarts. */
static void model_reset(void)
{
	for (unsigned i = below(2) ? BYTES : SYMBOLS; i < MODELLED; i++) {
		model.counters[i].device = 0;
		model.counters[i].is_lossy = true;
		model.counters[i].was_reset = model.counters[i].is_untold = true;
	}
}

/* A counter that is much lower tells of a reset of all counters of its attribute. */
static void model_tell(unsigned counter)
{
	struct model *each = &model.counters[counter];
	uint64_t now = each->device, before = each->latest;

	if (each->was_reset && now < before && before - now >= before / 16)
		for (unsigned i = 0; i < MODELLED; i++)
			if (model.wraps || (i <= PACKETS) == (counter <= PACKETS))
				model.counters[i].is_untold = false;
	each->latest = now;
	each->was_reset = false;
}

/* The reading lacks the counter, or has an odd or impossible value, or what the device has. */
static void model_read(unsigned counter)
{
	struct model *each = &model.counters[counter];
	uint64_t bit = MAD_COUNTER_BIT(modelled[counter]);
	uint64_t *value = counter_in(&reading, modelled[counter]);
	bool was_wild = each->is_wild;

	each->is_wild = each->is_read = false;
	*value = 0;
	if (!below(10))
		return;
	*value = each->device;
	reading.present |= bit;
	if (*value == each->maximum)
		reading.at_maximum |= bit;
	if (!below(20)) {
		*value = UINT64_MAX;
		reading.odd_values |= bit;
	} else if (each->has_begun && !was_wild && !below(20)) {
		/* higher or lower by more than is possible in hours */
		*value = *value >> 50 && below(2) ? *value / 4 : *value + (UINT64_C(1) << 62);
		each->is_wild = true;
	} else {
		each->is_read = true;
	}
}

/* What does not concern these counters: others, their responses, contradictions. */
static void model_vary(void)
{
	uint64_t elapsed = reading.time_us - model.time_us;
	uint64_t response = reading.time_us - below(elapsed < 1000 ? elapsed : 1000);
	bool is_known = below(3);

	reading.requests = (uint32_t)below(5);
	reading.odd = (uint32_t)below(8);
	reading.capability_mask = is_known ? model.mask : 0;
	reading.capability_mask2 = is_known ? model.mask / 3 : 0;
	for (unsigned i = 0; i < COUNTER_SOURCES; i++)
		reading.response_us[i] = below(2) ? response : 0;
	for (unsigned i = MAD_COUNTER_LOCAL_PHYSICAL_ERRORS; i < MAD_COUNTER_COUNT; i++) {
		bool is_present = below(2);

		*counter_in(&reading, i) = is_present * below(UINT64_C(1) << below(16));
		reading.present |= (uint64_t)is_present << i;
	}
	model.time_us = reading.time_us;
}

static void model_judge(unsigned counter)
{
	struct model *each = &model.counters[counter];
	uint64_t now = counter_value(&totals()->total, modelled[counter]);
	bool is_incomplete = totals()->incomplete >> modelled[counter] & 1;

	if (each->is_read && !each->has_begun) {
		each->truth = model.from_device ? each->device : 0;
		each->total = now;
	}
	each->has_begun |= each->is_read;
	/* only a wrap of a counter whose other one was not read looks like a reset */
	assert_true(model.wraps || each->is_lossy || model.has_restarted || !is_incomplete);
	assert_true(now >= each->total);
	if (each->has_begun)
		assert_true(now <= each->truth);
	if (!each->is_read) {
		assert_true(now == each->total);
		assert_true(isnan(rate_of(modelled[counter], MAD_RATE_LATEST)));
	} else if (!is_incomplete) {
		assert_true(now == each->truth || each->is_untold);
	}
	each->total = now;
}

TEST(totals_are_never_more_than_what_happened_nor_less_without_a_mark)
{
	uint64_t wraps = 0;

	srandom(test_seed());
	for (int round = 0; round < 200; round++) {
		model_begin();
		for (int step = 0; step < 300; step++) {
			int events;

			model_grow();
			if (!below(15))
				model_reset();
			reading.present = reading.odd_values = reading.at_maximum = 0;
			model_vary();
			for (unsigned i = 0; i < MODELLED; i++)
				model_read(i);
			events = track();
			assert_int_equal(events < 0, !reading.present);
			if (events < 0)
				continue;
			model.has_restarted |= (events & MAD_COUNTERS_RESTARTED) != 0;
			for (unsigned i = 0; i < MODELLED; i++)
				if (model.counters[i].is_read)
					model_tell(i);
			for (unsigned i = 0; i < MODELLED; i++)
				model_judge(i);
		}
		wraps += totals()->wraps;
	}
	assert_true(wraps > 0);
}

/* --- arguments -------------------------------------------------------------------- */

TEST(what_cannot_be_added_is_refused)
{
	/* a program that was compiled with fewer members has none beyond them */
	struct mad_counters *small = malloc(offsetof(struct mad_counters, present));

	assert_non_null(small);
	small->size = offsetof(struct mad_counters, present);
	assert_int_equal(mad_counters_tracker_add(tracker, small), -EINVAL);
	free(small);
	/* a reading that failed */
	reading = (struct mad_counters){.size = sizeof(reading), .port = 7, .odd = 1};
	assert_int_equal(track(), -EINVAL);
	begin(0);
	assert_int_equal(track(), 0);
	reading.rcv_bytes = 50;
	reading.time_us -= 1;
	assert_int_equal(track(), -EINVAL);
	assert_int_equal(mad_counters_tracker_add(NULL, &reading), -EINVAL);
	assert_int_equal(mad_counters_tracker_add(tracker, NULL), -EINVAL);
	assert_null(mad_counters_tracker_totals(NULL));
	for (enum mad_rate rate = MAD_RATE_LATEST; rate <= MAD_RATE_MEAN; rate++) {
		assert_true(isnan(mad_counters_tracker_rate(NULL, 0, rate)));
		assert_true(isnan(rate_of(MAD_COUNTER_COUNT, rate)));
	}
	mad_counters_tracker_replace(NULL);
	mad_counters_tracker_free(NULL);
	assert_fails_null(mad_counters_tracker_create(2), EINVAL);
	fake_fail_malloc(1);
	assert_null(mad_counters_tracker_create(0));
	fake_fail_malloc(0);
}
