/* SPDX-License-Identifier: BSD-2-Clause */

/* The clock, and a heap of timers. */
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
static inline int ms_until(int64_t then, int64_t now, int most)
{
	if (then <= now)
		return 0;
	if (then - now > most * INT64_C(1000))
		return most;
	return (int)((then - now + 999) / 1000);
}

/* A condition variable, and a wait for it until a time of this clock; NEVER: no limit. */
void clock_cond_init(pthread_cond_t *cond);
void clock_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until);

/* A member of the structure that has a timer. */
struct timer {
	int64_t at;
	unsigned place; /* in the heap, counted from 1: the next timer; 0: not in the heap */
};

struct timers {
	struct timer **heap; /* its first entry is not used */
	unsigned count;
	unsigned room;
};

/* Makes room for "count" timers. 0 or -ENOMEM. */
int timers_grow(struct timers *timers, unsigned count);

/* Room for "count" timers, so that timer_start() cannot fail. 0 or -ENOMEM. */
static inline int timers_reserve(struct timers *timers, unsigned count)
{
	return count < timers->room ? 0 : timers_grow(timers, count);
}

void timers_release(struct timers *timers);

/* When the next timer is due; NEVER: there is none. */
static inline int64_t timers_next(const struct timers *timers)
{
	return timers->count ? timers->heap[1]->at : NEVER;
}

/* The next timer, which stays in the heap; NULL: none is due. */
struct timer *timers_due(const struct timers *timers, int64_t now);

/* Puts a timer into the heap, or moves it. There must be room. */
void timer_start(struct timers *timers, struct timer *timer, int64_t at);
/* Takes a timer out of the heap. */
void timer_remove(struct timers *timers, struct timer *timer);

/* The same for a timer that may not be in the heap. */
static inline void timer_stop(struct timers *timers, struct timer *timer)
{
	if (timer->place)
		timer_remove(timers, timer);
}

#endif
