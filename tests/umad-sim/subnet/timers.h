/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Timers. A timer is a member of the structure that waits for it. A timer that is due at once
 * runs in the next timers_run(), after all that were due earlier, and never inside timer_set():
 * packets without latency do not nest calls.
 */
#ifndef FABRIC_TIMERS_H
#define FABRIC_TIMERS_H

#include "fabric.h"

struct timer {
	uint64_t at;
	uint64_t order; /* among those with the same time */
	void (*run)(struct fabric *fabric, struct timer *timer);
	/* called instead of `run` if the fabric ends first; may be NULL */
	void (*drop)(struct timer *timer);
	struct timer *next; /* in the list of due timers */
	struct timer *previous;
	bool due;
	uint32_t place; /* in the heap, from 1 on; 0: not in it */
};

int timers_init(struct fabric *fabric); /* 0 or -ENOMEM */
void timers_free(struct fabric *fabric);

/* Makes timer->run be called at that time (nanoseconds, as fabric->now). Moves a waiting timer;
 * a due one (at <= now) can no longer be moved or cancelled. Returns 0 or -ENOMEM. */
int timer_set(struct fabric *fabric, struct timer *timer, uint64_t at);
void timer_cancel(struct fabric *fabric, struct timer *timer);

/* Runs due timers until none is due or `limit` have run. Returns whether any is still due. */
bool timers_run(struct fabric *fabric, unsigned int limit);

/*
 * The time for which the running timer was set; outside of timers, fabric->now. Timers run
 * late, because a machine wakes a process late and has other work. Delays of packets and
 * processors are added to this time, so that lateness does not turn a steady flow into bursts.
 */
uint64_t timers_moment(const struct fabric *fabric);

/* When the next timer is due. 0: now, UINT64_MAX: never. */
uint64_t timers_next(const struct fabric *fabric);

#endif
