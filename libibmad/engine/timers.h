/* SPDX-License-Identifier: BSD-2-Clause */

/* The clock, and a heap of timers that needs no memory of its own. */
#ifndef LIBIBMAD_TIMERS_H
#define LIBIBMAD_TIMERS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NEVER INT64_MAX

/* The time of CLOCK_MONOTONIC in microseconds. */
int64_t clock_us(void);

/* Milliseconds from now to then for poll(), rounded up; "most" at most. */
int ms_until(int64_t then, int64_t now, int most);

/* A condition variable, and a wait for it until a time of this clock; NEVER: no limit. */
void clock_cond_init(pthread_cond_t *cond);
void clock_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until);

/* A member of the structure that has a timer; zeros: the timer is not set. */
struct timer {
	int64_t at;
	struct timer *child; /* the first of those below it, which are due later */
	struct timer *next;  /* the next one below the same timer */
	struct timer **link; /* the pointer to this timer; NULL: not set */
};

/* A pairing heap: the first timer is due first. */
struct timers {
	struct timer *first;
};

/* When the next timer is due; NEVER: there is none. */
static inline int64_t timers_next(const struct timers *timers)
{
	return timers->first ? timers->first->at : NEVER;
}

/* Sets a timer to timer->at. It may be set already, to another time. */
void timer_start(struct timers *timers, struct timer *timer);
/* The timer may not be set. */
void timer_stop(struct timers *timers, struct timer *timer);

#endif
