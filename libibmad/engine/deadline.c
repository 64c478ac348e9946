/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/deadline.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

int64_t clock_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
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

int deadlines_reserve(struct deadlines *deadlines, unsigned count)
{
	unsigned room = deadlines->room ? deadlines->room : 32;
	struct deadline **heap;

	if (count < deadlines->room)
		return 0;
	while (room <= count)
		room *= 2;
	heap = realloc(deadlines->heap, room * sizeof(struct deadline *));
	if (!heap)
		return -ENOMEM;
	deadlines->heap = heap;
	deadlines->room = room;
	return 0;
}

void deadlines_free(struct deadlines *deadlines)
{
	free(deadlines->heap);
	*deadlines = (struct deadlines){0};
}

int64_t deadlines_next(const struct deadlines *deadlines)
{
	return deadlines->count ? deadlines->heap[1]->at : NEVER;
}

struct deadline *deadlines_due(const struct deadlines *deadlines, int64_t now)
{
	return deadlines_next(deadlines) <= now ? deadlines->heap[1] : NULL;
}

static void put(struct deadlines *deadlines, unsigned place, struct deadline *deadline)
{
	deadlines->heap[place] = deadline;
	deadline->place = place;
}

/* Finds the place of a deadline that may belong further up or down than the free one. */
static void settle(struct deadlines *deadlines, unsigned place, struct deadline *deadline)
{
	struct deadline **heap = deadlines->heap;
	unsigned child;

	for (; place > 1 && heap[place / 2]->at > deadline->at; place /= 2)
		put(deadlines, place, heap[place / 2]);
	while ((child = 2 * place) <= deadlines->count) {
		if (child < deadlines->count && heap[child + 1]->at < heap[child]->at)
			child++;
		if (heap[child]->at >= deadline->at)
			break;
		put(deadlines, place, heap[child]);
		place = child;
	}
	put(deadlines, place, deadline);
}

void deadline_set(struct deadlines *deadlines, struct deadline *deadline, int64_t at)
{
	deadline->at = at;
	settle(deadlines, deadline->place ? deadline->place : ++deadlines->count, deadline);
}

void deadline_clear(struct deadlines *deadlines, struct deadline *deadline)
{
	unsigned place = deadline->place;
	struct deadline *last;

	if (!place)
		return;
	last = deadlines->heap[deadlines->count--];
	deadline->place = 0;
	if (last != deadline)
		settle(deadlines, place, last);
}
