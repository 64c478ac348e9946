/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/timers.h"

#include <time.h>

int64_t clock_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000) + (uint32_t)now.tv_nsec / 1000;
}

int ms_until(int64_t then, int64_t now, int most)
{
	if (then <= now)
		return 0;
	if (then - now > most * INT64_C(1000))
		return most;
	return (int)((then - now + 999) / 1000);
}

void clock_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

void clock_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until)
{
	struct timespec then = {
		.tv_sec = (time_t)(until / 1000000),
		.tv_nsec = (long)(until % 1000000 * 1000),
	};

	if (until == NEVER)
		pthread_cond_wait(cond, lock);
	else
		pthread_cond_timedwait(cond, lock, &then);
}

/* --- the heap ------------------------------------------------------------------- */

/* Puts the later of two timers below the other, and returns that; either may be NULL. */
static struct timer *meld(struct timer *a, struct timer *b)
{
	struct timer *first, *later;

	if (!a || !b)
		return a ? a : b;
	first = b->at < a->at ? b : a;
	later = first == a ? b : a;
	later->next = first->child;
	if (later->next)
		later->next->link = &later->next;
	later->link = &first->child;
	first->child = later;
	first->next = NULL;
	return first;
}

/*
 * Melds a list of timers in pairs, then the pairs from last to first. The last timer was set
 * first, and stays ahead of others with the same time.
 */
static struct timer *meld_all(struct timer *timer)
{
	struct timer *pairs = NULL, *next, *pair;

	while (timer) {
		struct timer *other = timer->next;

		next = other ? other->next : NULL;
		pair = meld(other, timer);
		pair->next = pairs;
		pairs = pair;
		timer = next;
	}
	while (pairs) {
		next = pairs->next;
		timer = meld(timer, pairs);
		pairs = next;
	}
	return timer;
}

static void set_first(struct timers *timers, struct timer *first)
{
	timers->first = first;
	if (first) {
		first->next = NULL;
		first->link = &timers->first;
	}
}

void timer_stop(struct timers *timers, struct timer *timer)
{
	if (!timer->link)
		return;
	*timer->link = timer->next;
	if (timer->next)
		timer->next->link = timer->link;
	timer->link = NULL;
	set_first(timers, meld(timers->first, meld_all(timer->child)));
	timer->child = timer->next = NULL;
}

void timer_start(struct timers *timers, struct timer *timer)
{
	timer_stop(timers, timer);
	set_first(timers, meld(timers->first, timer));
}
