/* SPDX-License-Identifier: BSD-2-Clause */

/* The clock, and a heap of timers without allocations. */
#ifndef LIBIBMAD_TIMERS_H
#define LIBIBMAD_TIMERS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NEVER INT64_MAX

/* CLOCK_MONOTONIC in microseconds. */
int64_t clock_us(void);

/* Milliseconds from now to then for poll(), rounded up, at most "most". */
int ms_until(int64_t then, int64_t now, int most);

/* A condition variable on the same clock. NEVER: no limit. */
void clock_cond_init(pthread_cond_t *cond);
void clock_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until);

/* Embedded in its owner. Zeroed: not set. */
struct timer {
	int64_t at;
	struct timer *child; /* first of the later timers below it */
	struct timer *next;  /* next sibling */
	struct timer **link; /* what points to this timer; NULL: not set */
};

/* Pairing heap: the root is due first. */
struct timers {
	struct timer *first;
};

/* Returns when the next timer is due, or NEVER. */
static inline int64_t timers_next(const struct timers *timers)
{
	return timers->first ? timers->first->at : NEVER;
}

/* Sets or moves a timer to timer->at. */
void timer_start(struct timers *timers, struct timer *timer);
/* No-op if not set. */
void timer_stop(struct timers *timers, struct timer *timer);

#endif
