/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * How many requests of a queue pair may be in flight at once: a window whose size follows what
 * the fabric shows. All times are microseconds.
 *
 *   Delay. The shortest round trip of all is that of a fabric without queues. When even the
 *   shortest one of a round is longer by more than a target, requests are queued on their way:
 *   the window shrinks to what the fabric delivers within the shortest round trip and the
 *   target.
 *   Growth. The window grows by a third each round while it is full and nothing is late; from
 *   32 on by a sixth. When a queue was full once, it grows by a sixteenth, and waits for a
 *   number of responses before. Whenever a queue was full again, that number doubles.
 *   Loss. See loss.h. When it turns out that a queue was not full, the window forgets that.
 *   Silence. A response is late, and no later request has one either: the fabric may be dead.
 *   If links are known to lose packets, so many must be late that this can hardly be chance.
 *   The window shrinks to its smallest size, and lets one MAD through at a time, at growing
 *   intervals, until a response comes. What was lost meanwhile tells nothing about queues.
 *
 * A round is as many MADs as the window lets through at its beginning, and their responses. A
 * MAD whose response is late is not in flight any more: it may have been sent to a dead node.
 */
#ifndef LIBIBMAD_WINDOW_H
#define LIBIBMAD_WINDOW_H

#include "engine/loss.h"

/* The shortest of the latest round trips: of the last 5 to 10 seconds. */
struct shortest_rtt {
	uint32_t present_us, previous_us;
	int64_t since;
};

struct window_round {
	unsigned planned, sent, responses, late;
	uint32_t rtt_us; /* the shortest one */
	int64_t begun;
	uint64_t delivered; /* in all, at its beginning */
	uint8_t id;         /* not 0 */
	bool full;          /* the window was */
};

struct window {
	unsigned size;
	unsigned in_flight;
	unsigned smallest, largest; /* between which it adapts; equal: it does not */
	unsigned start;
	struct window_round round;
	/* growth */
	bool starting;    /* it has never been too large */
	bool delayed;     /* in the latest round, requests were queued on their way */
	unsigned wait;    /* responses until it grows, */
	unsigned credit;  /* of which so many have come */
	unsigned caution; /* so many for each one in flight */
	/* what it measures */
	struct shortest_rtt shortest;
	uint64_t delivered; /* responses */
	uint32_t rate;      /* of them, a second, in the latest round */
	int64_t newest;     /* when the latest request was sent that has a response */
	struct losses losses;
	enum loss_verdict verdict; /* the latest one */
	bool hushed;               /* it is halved during the other window's trial */
	int64_t latest;            /* when the latest MAD was sent */
	/* silence */
	bool silent;
	int64_t silent_since;
	unsigned silent_late;     /* MADs that were late by then, or since */
	unsigned late_in_a_row;   /* none of them overtaken, and no response between */
	unsigned losses_in_a_row; /* so many may be lost by the links */
	unsigned size_before;     /* the trial, its own or the other window's, */
	unsigned size_awake;      /* and the silence */
	unsigned size_undone;     /* before the latest reduction; 0: none to undo, */
	unsigned caution_undone;
	uint32_t queue_share; /* what was late before it */
	int64_t opens;        /* no MAD before this time */
	uint32_t interval;    /* between MADs */
};

/* What the window has to know of a MAD that was sent: 0 for one that never was. */
struct window_mark {
	uint8_t round;  /* 0: of none */
	uint8_t period; /* see loss.h */
};

/* An adapting window. */
void window_init(struct window *window, unsigned start, unsigned largest);
/* A window of a fixed size; 0: adapting again. */
void window_fix(struct window *window, unsigned size, unsigned largest);
/* Nothing is in flight any more. */
void window_reset(struct window *window);

/* Whether a MAD may be sent, unless it is before window->opens. */
static inline bool window_has_room(const struct window *window)
{
	return window->in_flight < window->size;
}

/* A MAD is sent: adds it to those in flight. */
void window_sent(struct window *window, struct window_mark *mark, int64_t now);

/* Whether a request that was sent later has a response already. */
static inline bool window_overtook(const struct window *window, int64_t sent)
{
	return window->newest > sent;
}

/* One of those in flight that was sent at that time has no response in time: it is out. */
void window_late(struct window *window, struct window_mark mark, int64_t sent, int64_t now);
/*
 * A MAD that was late has a response after all. Returns true if the latest verdict, that a
 * queue was full, does not hold: both windows undo what followed from it.
 */
bool window_found(struct window *window, uint8_t period);
/* The window becomes what it was before the latest verdict that a queue was full. */
void window_undo(struct window *window);
/* One of those in flight ends without one, for another reason. */
void window_ended(struct window *window, struct window_mark mark, int64_t now);

/*
 * A response has come to a MAD that was sent rtt_us ago; 0: not known. "in_flight": the request
 * is among those. "lost": an earlier MAD of the request was lost.
 */
void window_response(struct window *window, struct window_mark mark, uint32_t rtt_us,
		     bool in_flight, bool lost, int64_t now);

/*
 * The other window's requests go the same way: while it has a trial, this window is halved,
 * too, and does not change. Afterwards it follows the other window's verdict.
 */
void window_hush(struct window *window);
void window_unhush(struct window *window, const struct window *other);

/* The shortest round trip; 0: not known. */
uint32_t window_shortest_rtt(const struct window *window);

#endif
