/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * How many requests may be under way at once. MADs have no flow control, and switches drop
 * what they cannot queue: the window opens while answers come, doubling each round trip at
 * first, and halves when a good part of the requests gets no answer. A few that are lost
 * say nothing of the fabric: a node may be dead, a link bad.
 */
#ifndef LIBIBMAD_WINDOW_H
#define LIBIBMAD_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

struct window {
	unsigned size;
	unsigned in_flight;
	unsigned smallest, largest; /* between which it adapts; equal: it does not */
	unsigned start;
	/* since it was last judged */
	unsigned answered;
	unsigned lost;
	bool doubling;
};

/* An adapting window. */
void window_init(struct window *window, unsigned start, unsigned largest);
/* A window of a fixed size; 0: adapting again. */
void window_fix(struct window *window, unsigned size, unsigned largest);

static inline bool window_open(const struct window *window)
{
	return window->in_flight < window->size;
}

/* A request was answered, or had to be repeated first. */
void window_answered(struct window *window);
void window_lost(struct window *window);

#endif
