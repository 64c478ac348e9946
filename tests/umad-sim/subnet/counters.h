/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The counters of a port. A value follows from the traffic model and the time, plus events at
 * the port, minus the value at the last clear. A port without events whose counters were never
 * cleared stores nothing.
 *
 * The model assumes that a port's link has not changed since its counters were last settled, so
 * settle them before a link or the traffic changes.
 */
#ifndef FABRIC_COUNTERS_H
#define FABRIC_COUNTERS_H

#include "fabric.h"

#define MOST_LANES 12

enum counter {
	COUNT_XMIT_DATA, /* in units of 4 bytes */
	COUNT_RCV_DATA,
	COUNT_XMIT_PACKETS,
	COUNT_RCV_PACKETS,
	COUNT_XMIT_UNICAST,
	COUNT_RCV_UNICAST,
	COUNT_XMIT_MULTICAST,
	COUNT_RCV_MULTICAST,
	COUNT_XMIT_WAIT,
	COUNT_SYMBOL_ERRORS,
	COUNT_CORRECTED_BLOCKS, /* by forward error correction: the symbol errors and others */
	COUNT_LINK_RECOVERIES,
	COUNT_LINK_DOWNED,
	COUNT_RCV_ERRORS,
	COUNT_RCV_REMOTE_PHYSICAL_ERRORS,
	COUNT_RCV_SWITCH_RELAY_ERRORS,
	COUNT_XMIT_DISCARDS,
	COUNT_XMIT_CONSTRAINT_ERRORS,
	COUNT_RCV_CONSTRAINT_ERRORS,
	COUNT_LOCAL_LINK_INTEGRITY_ERRORS,
	COUNT_BUFFER_OVERRUN_ERRORS,
	COUNT_VL15_DROPPED,
	COUNT_QP1_DROPPED,
	COUNTER_COUNT
};

/* The value of a counter of a port (by index) since it was cleared. */
uint64_t counter_get(const struct fabric *fabric, uint32_t port, enum counter counter);

/* The value since the start, ignoring clears: never decreases. */
uint64_t counter_total(const struct fabric *fabric, uint32_t port, enum counter counter);

/* The part of COUNT_CORRECTED_BLOCKS of one lane. Links slower than FDR have no such blocks. */
uint64_t counter_of_lane(const struct fabric *fabric, uint32_t port, unsigned int lane);

/*
 * Settles counters, including those of the lanes; call before a port's width or speed changes.
 */
void counters_settle_lanes(struct fabric *fabric, uint32_t port);

/* What the traffic adds between two times, with the link as it is now. */
uint64_t counter_growth(const struct fabric *fabric, uint32_t port, enum counter counter,
			uint64_t from, uint64_t to);

/* Sets a counter (0 to clear it). On OOM, the counter is unchanged. */
void counter_set(struct fabric *fabric, uint32_t port, enum counter counter, uint64_t value);

/* Adds an event of `more` units to a counter of the port. */
void counter_add(struct fabric *fabric, uint32_t port, enum counter counter, uint64_t more);

/* Settles (stores) the values of counters: a port's before its link goes up or down, all ports'
 * before the fabric's load or errors change. */
void counters_settle(struct fabric *fabric, uint32_t port);

/* Resets all counters of a port to 0, as a power cycle does. */
void counters_restart(struct fabric *fabric, uint32_t port);

void counters_free(struct counters *counters);

#endif
