/* SPDX-License-Identifier: BSD-2-Clause */

/* Timers: a binary heap of future timers, a list of due ones. */
#include <errno.h>
#include <stdlib.h>

#include "timers.h"

struct events {
	struct timer **heap; /* from 1 on */
	uint32_t count;
	uint32_t room;
	uint64_t order;
	struct timer *due; /* the list's first timer */
	struct timer *due_last;
	uint64_t moment; /* the time of the running timer */
	bool running;
};

int timers_init(struct fabric *fabric)
{
	struct events *events = calloc(1, sizeof(*events));

	if (!events)
		return -ENOMEM;
	fabric->events = events;
	return 0;
}

static bool before(const struct timer *a, const struct timer *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void place(struct events *events, struct timer *timer, uint32_t at)
{
	events->heap[at] = timer;
	timer->place = at;
}

static void sift_up(struct events *events, struct timer *timer, uint32_t at)
{
	while (at > 1 && before(timer, events->heap[at / 2])) {
		place(events, events->heap[at / 2], at);
		at /= 2;
	}
	place(events, timer, at);
}

static void sift_down(struct events *events, struct timer *timer, uint32_t at)
{
	for (uint32_t child = at * 2; child <= events->count; child = at * 2) {
		if (child < events->count &&
		    before(events->heap[child + 1], events->heap[child]))
			child++;
		if (!before(events->heap[child], timer))
			break;
		place(events, events->heap[child], at);
		at = child;
	}
	place(events, timer, at);
}

static void append_due(struct events *events, struct timer *timer)
{
	timer->next = NULL;
	timer->previous = events->due_last;
	timer->due = true;
	if (events->due_last)
		events->due_last->next = timer;
	else
		events->due = timer;
	events->due_last = timer;
}

static void remove_due(struct events *events, struct timer *timer)
{
	if (timer->previous)
		timer->previous->next = timer->next;
	else
		events->due = timer->next;
	if (timer->next)
		timer->next->previous = timer->previous;
	else
		events->due_last = timer->previous;
	timer->due = false;
}

void timer_cancel(struct fabric *fabric, struct timer *timer)
{
	struct events *events = fabric->events;
	uint32_t at = timer->place;
	struct timer *last;

	if (timer->due)
		remove_due(events, timer);
	if (!at)
		return;
	timer->place = 0;
	last = events->heap[events->count--];
	if (last == timer)
		return;
	if (at > 1 && before(last, events->heap[at / 2]))
		sift_up(events, last, at);
	else
		sift_down(events, last, at);
}

void timers_free(struct fabric *fabric)
{
	struct events *events = fabric->events;

	if (!events)
		return;
	while (events->count) {
		struct timer *timer = events->heap[1];

		timer_cancel(fabric, timer);
		append_due(events, timer);
	}
	while (events->due) {
		struct timer *timer = events->due;

		remove_due(events, timer);
		if (timer->drop)
			timer->drop(timer);
	}
	free(events->heap);
	free(events);
	fabric->events = NULL;
}

static int make_room(struct events *events)
{
	uint32_t room = events->room ? events->room * 2 : 1024;
	struct timer **heap;

	if (events->count + 1 < events->room)
		return 0;
	heap = realloc(events->heap, room * sizeof(struct timer *));
	if (!heap)
		return -ENOMEM;
	events->heap = heap;
	events->room = room;
	return 0;
}

int timer_set(struct fabric *fabric, struct timer *timer, uint64_t at)
{
	struct events *events = fabric->events;

	timer_cancel(fabric, timer);
	timer->at = at;
	timer->order = events->order++;
	if (at <= fabric->now) {
		append_due(events, timer);
		return 0;
	}
	if (make_room(events))
		return -ENOMEM;
	sift_up(events, timer, ++events->count);
	return 0;
}

bool timers_run(struct fabric *fabric, unsigned int limit)
{
	struct events *events = fabric->events;

	while (events->count && events->heap[1]->at <= fabric->now) {
		struct timer *timer = events->heap[1];

		timer_cancel(fabric, timer);
		append_due(events, timer);
	}
	while (events->due && limit-- > 0) {
		struct timer *timer = events->due;

		remove_due(events, timer);
		events->moment = timer->at;
		events->running = true;
		timer->run(fabric, timer);
	}
	events->running = false;
	return events->due != NULL;
}

uint64_t timers_moment(const struct fabric *fabric)
{
	return fabric->events->running ? fabric->events->moment : fabric->now;
}

uint64_t timers_next(const struct fabric *fabric)
{
	const struct events *events = fabric->events;

	if (events->due)
		return 0;
	return events->count ? events->heap[1]->at : UINT64_MAX;
}
