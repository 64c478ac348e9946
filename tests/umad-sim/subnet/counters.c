/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The traffic model and its counters. Each direction of a link carries a constant share of the
 * link's rate, and the traffic up to a time depends on that time only. So the counters at both
 * ends of a cable agree, no matter when either was read or cleared.
 */
#include <stdlib.h>
#include <string.h>

#include "counters.h"
#include "faults.h"
#include "link.h"

#define UNITS_PER_MBIT   31250.0 /* of 4 bytes (IBA 16.1.3.5: PortXmitData) */
#define UNITS_PER_PACKET 256     /* 1024 bytes */
#define MULTICAST_EVERY  32      /* one packet in this many is multicast */
#define MOST_ERRORS      1e8     /* per second; keeps 64 bits from overflowing */
#define HASH_LOAD        0x6c6f6164

struct counters {
	uint64_t lanes[MOST_LANES];    /* corrected blocks before the link last trained to other
					  values */
	uint64_t divided;              /* how much of their total is in `lanes` */
	uint64_t settled;              /* when `grown` was last updated */
	uint64_t grown[COUNTER_COUNT]; /* from the start to `settled` */
	uint64_t cleared[COUNTER_COUNT]; /* how much of `grown` was cleared (modulo 2^64) */
};

/* The load of a direction, by the port that transmits: 0 .. 1. */
static double share(const struct fabric *fabric, uint32_t transmitter)
{
	double spread, busy;

	if (!(fabric->load > 0))
		return 0;
	spread = (double)(fabric_hash(fabric, HASH_LOAD, transmitter, 0) >> 11) / 0x1p53;
	busy = fabric->load * (0.5 + spread);
	return busy < 1 ? busy : 1;
}

/* Integer arithmetic, so that the sum over several intervals is exact. Rate times time may need
 * more than 64 bits, so both are split into whole seconds and the rest. */
static uint64_t at_rate(double per_second, uint64_t time)
{
	uint64_t rate = (uint64_t)per_second;
	uint64_t rest = rate % SECOND;

	return rate / SECOND * time + rest * (time / SECOND) + rest * (time % SECOND) / SECOND;
}

static double full_rate(const struct fabric *fabric, uint32_t port)
{
	return (double)link_mbits(fabric->ports[port].width, active_speed(fabric, port)) *
	       UNITS_PER_MBIT;
}

static uint64_t transmitted(const struct fabric *fabric, uint32_t port, uint64_t time)
{
	double busy = share(fabric, port);

	return busy > 0 ? at_rate(full_rate(fabric, port) * busy, time) : 0;
}

/* The more loaded a link is, the longer packets wait for credits. */
static uint64_t waited(const struct fabric *fabric, uint32_t port, uint64_t time)
{
	double busy = share(fabric, port);

	return busy > 0 ? at_rate(full_rate(fabric, port) * busy * busy * busy, time) : 0;
}

static uint64_t symbol_errors(const struct fabric *fabric, uint32_t port, uint64_t time)
{
	uint32_t of_link = faults_errors(fabric, port);
	double rate = of_link == NO_LIMIT ? fabric->errors : of_link;

	rate = rate < MOST_ERRORS ? rate : MOST_ERRORS;
	return rate > 0 ? (uint64_t)(rate * ((double)time / (double)SECOND)) : 0;
}

static uint64_t corrected_blocks(const struct fabric *fabric, uint32_t port, uint64_t time)
{
	return symbol_errors(fabric, port, time) + at_rate(faults_fec(fabric, port), time);
}

static uint64_t packets(uint64_t units)
{
	return units / UNITS_PER_PACKET;
}

static uint64_t multicasts(uint64_t units)
{
	return packets(units) / MULTICAST_EVERY;
}

/* The value of a counter of a link that was always up. */
static uint64_t model(const struct fabric *fabric, uint32_t port, enum counter counter,
		      uint64_t time)
{
	uint32_t peer = cable(fabric, port)->peer;

	switch (counter) {
	case COUNT_XMIT_DATA:
		return transmitted(fabric, port, time);
	case COUNT_XMIT_PACKETS:
		return packets(transmitted(fabric, port, time));
	case COUNT_XMIT_MULTICAST:
		return multicasts(transmitted(fabric, port, time));
	case COUNT_XMIT_UNICAST:
		return model(fabric, port, COUNT_XMIT_PACKETS, time) -
		       model(fabric, port, COUNT_XMIT_MULTICAST, time);
	case COUNT_RCV_DATA:
		return model(fabric, peer, COUNT_XMIT_DATA, time);
	case COUNT_RCV_PACKETS:
		return model(fabric, peer, COUNT_XMIT_PACKETS, time);
	case COUNT_RCV_MULTICAST:
		return model(fabric, peer, COUNT_XMIT_MULTICAST, time);
	case COUNT_RCV_UNICAST:
		return model(fabric, peer, COUNT_XMIT_UNICAST, time);
	case COUNT_XMIT_WAIT:
		return waited(fabric, port, time);
	case COUNT_SYMBOL_ERRORS:
		return symbol_errors(fabric, port, time);
	case COUNT_CORRECTED_BLOCKS:
		return corrected_blocks(fabric, port, time);
	default:
		return 0;
	}
}

uint64_t counter_growth(const struct fabric *fabric, uint32_t port, enum counter counter,
			uint64_t from, uint64_t to)
{
	/* only this end's state: the other end changes at the same time, but in another call */
	if (from >= to || cable(fabric, port)->peer == NONE || !link_is_up(fabric, port))
		return 0;
	return model(fabric, port, counter, to) -
	       (from ? model(fabric, port, counter, from) : 0);
}

uint64_t counter_total(const struct fabric *fabric, uint32_t port, enum counter counter)
{
	const struct counters *kept = fabric->ports[port].counters;

	if (!kept)
		return counter_growth(fabric, port, counter, 0, fabric->now);
	return kept->grown[counter] +
	       counter_growth(fabric, port, counter, kept->settled, fabric->now);
}

uint64_t counter_get(const struct fabric *fabric, uint32_t port, enum counter counter)
{
	const struct counters *kept = fabric->ports[port].counters;

	return counter_total(fabric, port, counter) - (kept ? kept->cleared[counter] : 0);
}

static struct counters *kept_of(struct fabric *fabric, uint32_t port)
{
	struct counters **kept = &fabric->ports[port].counters;

	if (!*kept)
		*kept = calloc(1, sizeof(**kept));
	return *kept;
}

void counter_set(struct fabric *fabric, uint32_t port, enum counter counter, uint64_t value)
{
	struct counters *kept = kept_of(fabric, port);

	if (kept)
		kept->cleared[counter] = counter_total(fabric, port, counter) - value;
}

void counters_settle(struct fabric *fabric, uint32_t port)
{
	struct counters *kept = kept_of(fabric, port);

	if (!kept)
		return;
	for (enum counter counter = 0; counter < COUNTER_COUNT; counter++)
		kept->grown[counter] = counter_total(fabric, port, counter);
	kept->settled = fabric->now;
}

uint64_t counter_of_lane(const struct fabric *fabric, uint32_t port, unsigned int lane)
{
	const struct port *end = &fabric->ports[port];
	const struct counters *kept = end->counters;
	uint64_t blocks = counter_total(fabric, port, COUNT_CORRECTED_BLOCKS);
	uint64_t earlier = 0;

	if (kept && lane < MOST_LANES) {
		blocks -= kept->divided;
		earlier = kept->lanes[lane];
	}
	if (end->speed < FDR || lane >= end->width)
		return earlier;
	return earlier + blocks / end->width + (lane < blocks % end->width);
}

void counters_settle_lanes(struct fabric *fabric, uint32_t port)
{
	struct counters *kept = kept_of(fabric, port);
	uint64_t lanes[MOST_LANES];

	if (!kept)
		return;
	counters_settle(fabric, port);
	for (unsigned int lane = 0; lane < MOST_LANES; lane++)
		lanes[lane] = counter_of_lane(fabric, port, lane);
	memcpy(kept->lanes, lanes, sizeof(lanes));
	kept->divided = counter_total(fabric, port, COUNT_CORRECTED_BLOCKS);
}

void counter_add(struct fabric *fabric, uint32_t port, enum counter counter, uint64_t more)
{
	counters_settle(fabric, port);
	if (fabric->ports[port].counters)
		fabric->ports[port].counters->grown[counter] += more;
}

void counters_restart(struct fabric *fabric, uint32_t port)
{
	counters_settle(fabric, port);
	for (enum counter counter = 0; counter < COUNTER_COUNT; counter++)
		counter_set(fabric, port, counter, 0);
}

void counters_free(struct counters *counters)
{
	free(counters);
}
