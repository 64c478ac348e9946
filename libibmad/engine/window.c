/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/window.h"

#define SMALLEST       8
/* With fewer requests than this, a loss may be chance. */
#define LEAST_TO_JUDGE 64
/* One lost in so many stops growth... */
#define LOSS_TO_HOLD   6
/* ...or halves the window. */
#define LOSS_TO_HALVE  4

void window_init(struct window *window, unsigned start, unsigned largest)
{
	*window = (struct window){
		.size = start,
		.start = start,
		.smallest = SMALLEST,
		.largest = largest,
		.doubling = true,
	};
}

void window_fix(struct window *window, unsigned size, unsigned largest)
{
	unsigned in_flight = window->in_flight;

	window_init(window, window->start, largest);
	window->in_flight = in_flight;
	if (size)
		window->size = window->smallest = window->largest = size;
}

static void grow(struct window *window)
{
	unsigned step = window->doubling ? window->size : window->size / 8 + 1;

	window->size += step;
	if (window->size > window->largest)
		window->size = window->largest;
}

static void halve(struct window *window)
{
	window->doubling = false;
	window->size /= 2;
	if (window->size < window->smallest)
		window->size = window->smallest;
}

/* About once a round trip: when as many requests are complete as may be in flight. */
static void judge(struct window *window)
{
	unsigned ended = window->responses + window->lost;

	if (ended < window->size || (window->lost && ended < LEAST_TO_JUDGE))
		return;
	if (window->lost * LOSS_TO_HALVE > ended)
		halve(window);
	else if (window->lost * LOSS_TO_HOLD <= ended)
		grow(window);
	window->responses = window->lost = 0;
}

void window_response(struct window *window)
{
	window->responses++;
	judge(window);
}

void window_lost(struct window *window)
{
	window->lost++;
	judge(window);
}
