/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * How many requests may be in flight at once. MADs have no flow control, and switches drop MADs
 * that they cannot queue. So the window grows while responses come: at first it doubles each
 * round trip. It is halved when many requests are lost. A few lost requests do not change it:
 * they may have been sent to a dead node, or over a bad link.
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
	unsigned responses;
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

/* A response came; or it came only after a retransmission. */
void window_response(struct window *window);
void window_lost(struct window *window);

#endif
