/* SPDX-License-Identifier: BSD-2-Clause */

#include "port/timers.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

int64_t clock_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000) + (uint32_t)now.tv_nsec / 1000;
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

int timers_grow(struct timers *timers, unsigned count)
{
	unsigned room = timers->room ? timers->room : 32;
	struct timer **heap;

	while (room <= count)
		room *= 2;
	heap = realloc(timers->heap, room * sizeof(struct timer *));
	if (!heap)
		return -ENOMEM;
	timers->heap = heap;
	timers->room = room;
	return 0;
}

void timers_release(struct timers *timers)
{
	free(timers->heap);
	*timers = (struct timers){0};
}

struct timer *timers_due(const struct timers *timers, int64_t now)
{
	return timers_next(timers) <= now ? timers->heap[1] : NULL;
}

static void put(struct timers *timers, unsigned place, struct timer *timer)
{
	timers->heap[place] = timer;
	timer->place = place;
}

/* Puts a timer into the heap: at the free place, or further up. */
static void rise(struct timers *timers, unsigned place, struct timer *timer)
{
	struct timer **heap = timers->heap;

	for (; place > 1 && heap[place / 2]->at > timer->at; place /= 2)
		put(timers, place, heap[place / 2]);
	put(timers, place, timer);
}

/*
 * The same, or further down. The free place first moves to the bottom, because few timers are
 * due before those below.
 */
static void settle(struct timers *timers, unsigned place, struct timer *timer)
{
	struct timer **heap = timers->heap;
	unsigned child;

	while ((child = 2 * place) <= timers->count) {
		if (child < timers->count && heap[child + 1]->at < heap[child]->at)
			child++;
		put(timers, place, heap[child]);
		place = child;
	}
	rise(timers, place, timer);
}

void timer_start(struct timers *timers, struct timer *timer, int64_t at)
{
	timer->at = at;
	if (timer->place)
		settle(timers, timer->place, timer);
	else
		rise(timers, ++timers->count, timer);
}

void timer_remove(struct timers *timers, struct timer *timer)
{
	struct timer *last = timers->heap[timers->count--];
	unsigned place = timer->place;

	timer->place = 0;
	if (last != timer)
		settle(timers, place, last);
}
