/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * What a port has counted: computed from the traffic model and the time, plus what happened to
 * it, minus what was there when it was last cleared. Ports that nobody cleared and nothing
 * happened to store nothing.
 *
 * The model supposes that a port's link was as it is now since the port's counters were last
 * settled: who changes a link or the traffic settles them first.
 */
#ifndef FABRIC_COUNTERS_H
#define FABRIC_COUNTERS_H

#include "fabric.h"

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

/* What a port (by index) has counted since it was cleared. */
uint64_t counter_get(const struct fabric *fabric, uint32_t port, enum counter counter);

/* What it has counted since the start, whatever was cleared: this never falls. */
uint64_t counter_total(const struct fabric *fabric, uint32_t port, enum counter counter);

/* What the traffic alone adds between two times, as the link is now. */
uint64_t counter_growth(const struct fabric *fabric, uint32_t port, enum counter counter,
			uint64_t from, uint64_t to);

/* Sets it (a clear sets 0). Without memory it stays what it was. */
void counter_set(struct fabric *fabric, uint32_t port, enum counter counter, uint64_t value);

/* Something happened to the port: `more` of the counter's unit. */
void counter_add(struct fabric *fabric, uint32_t port, enum counter counter, uint64_t more);

/*
 * Notes what has been counted up to now: before the port's link goes up or down, before the
 * fabric's load or errors change (on all ports then).
 */
void counters_settle(struct fabric *fabric, uint32_t port);

/* All of a port's counters begin again at 0, as after its node was without power. */
void counters_restart(struct fabric *fabric, uint32_t port);

void counters_free(struct counters *counters);

#endif
