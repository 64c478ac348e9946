/* SPDX-License-Identifier: BSD-2-Clause */

/* A heap of events, ordered by time. Events of one time are in the order of their addition. */
#ifndef TESTS_FLOW_HEAP_H
#define TESTS_FLOW_HEAP_H

#include <stdint.h>
#include <stdlib.h>

struct packet;

struct event {
	int64_t at;
	uint32_t order;
	uint32_t serial; /* of the packet when the event was added */
	struct packet *packet;
};

struct heap {
	struct event *events; /* counted from 0 */
	unsigned count, room;
	uint32_t order;
};

static inline int64_t heap_next(const struct heap *heap)
{
	return heap->count ? heap->events[0].at : INT64_MAX;
}

static inline int event_is_before(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : (int32_t)(a->order - b->order) < 0;
}

static inline void heap_add(struct heap *heap, int64_t at, uint32_t serial,
			    struct packet *packet)
{
	struct event event = {at, heap->order++, serial, packet};
	unsigned place = heap->count++;

	if (place == heap->room) {
		heap->room = heap->room ? 2 * heap->room : 1024;
		heap->events = realloc(heap->events, heap->room * sizeof(*heap->events));
		if (!heap->events)
			abort();
	}
	while (place && event_is_before(&event, &heap->events[(place - 1) / 4])) {
		heap->events[place] = heap->events[(place - 1) / 4];
		place = (place - 1) / 4;
	}
	heap->events[place] = event;
}

/* The child of a place that is first. There is one. */
static inline unsigned heap_first_child(const struct heap *heap, unsigned place)
{
	unsigned first = 4 * place + 1, child = first;

	for (unsigned other = first + 1; other < first + 4 && other < heap->count; other++)
		if (event_is_before(&heap->events[other], &heap->events[child]))
			child = other;
	return child;
}

/* Removes the first event. There is one. */
static inline struct event heap_remove(struct heap *heap)
{
	struct event first = heap->events[0], last = heap->events[--heap->count];
	unsigned place = 0, child;

	while (4 * place + 1 < heap->count) {
		child = heap_first_child(heap, place);
		if (!event_is_before(&heap->events[child], &last))
			break;
		heap->events[place] = heap->events[child];
		place = child;
	}
	heap->events[place] = last;
	return first;
}

#endif
