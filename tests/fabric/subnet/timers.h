/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * What happens later. A timer is part of whoever waits for it; one that is due already runs at
 * the next timers_run(), after all that were due before it, never from within timer_set(): so
 * packets that travel without latency do not nest calls.
 */
#ifndef FABRIC_TIMERS_H
#define FABRIC_TIMERS_H

#include "fabric.h"

struct timer {
	uint64_t at;
	uint64_t order; /* among those of the same time */
	void (*run)(struct fabric *fabric, struct timer *timer);
	/* called instead when the fabric goes before the time has come; NULL: nothing to do
	 * then */
	void (*drop)(struct timer *timer);
	struct timer *next; /* of those that are due */
	struct timer *previous;
	bool due;
	uint32_t place; /* in the heap, from 1 on; 0: not in it */
};

int timers_init(struct fabric *fabric); /* 0 or -ENOMEM */
void timers_free(struct fabric *fabric);

/*
 * Has timer->run called at that time (nanoseconds, as fabric->now). A timer that waits already
 * is moved. One that is due (at <= now) can no longer be moved or cancelled. 0 or -ENOMEM.
 */
int timer_set(struct fabric *fabric, struct timer *timer, uint64_t at);
void timer_cancel(struct fabric *fabric, struct timer *timer);

/* Runs what is due, until nothing is or `limit` timers ran; whether something is still due. */
bool timers_run(struct fabric *fabric, unsigned int limit);

/*
 * The time that the timer which runs now was set for, fabric->now outside of timers. Timers run
 * late: a machine wakes a process late, and has other work. What a packet or a processor of the
 * fabric takes is counted from here, so that lateness does not make bursts of what was apart.
 */
uint64_t timers_moment(const struct fabric *fabric);

/* When the next one is due: 0 at once, UINT64_MAX never. */
uint64_t timers_next(const struct fabric *fabric);

#endif
