/* SPDX-License-Identifier: BSD-2-Clause */

/* One window: how many requests may be in flight, judged by samples of its MADs. */
#ifndef LIBIBMAD_FLOW_WINDOW_H
#define LIBIBMAD_FLOW_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#define FLOW_ONE 65536 /* 1.0 in fixed point */

enum flow_phase {
	FLOW_STEADY, /* the next judgement may grow or cut the window */
	FLOW_GROWN,  /* the next judgement is about a growth */
	FLOW_DOUBT,  /* as FLOW_GROWN, but the growth is undone meanwhile */
	FLOW_CUT,    /* the next judgement is about a cut */
};

/* The MADs that the next judgement is based on. */
struct flow_sample {
	uint32_t number;    /* never 0 */
	int64_t begins;     /* earlier MADs are not part of it */
	unsigned planned;   /* MADs in total */
	unsigned enough;    /* known results needed for a judgement */
	unsigned sent;      /* sent so far */
	unsigned ended;     /* known to be lost or not */
	unsigned responses; /* responses in time */
	unsigned lost;      /* lost */
	uint64_t held_us;   /* sum of the times in flight */
	int64_t sent_at;    /* time of the latest MAD */
	bool full;          /* the window was the bottleneck */
};

struct flow_window {
	unsigned size; /* how many requests may be in flight */
	unsigned in_flight;
	bool fixed;           /* the size does not change */
	uint32_t usual_us;    /* three in four round trips are shorter; 0: unknown */
	uint32_t shortest_us; /* of this sample and the previous one; 0: none */
	uint32_t shortest_before_us;
	int64_t newest;    /* send time of the newest MAD with a response */
	int64_t responded; /* time of the latest response */
	/* judgements */
	enum flow_phase phase;
	struct flow_sample sample;
	uint32_t rate;         /* responses per second */
	unsigned before;       /* size before the latest growth or cut */
	unsigned grown;        /* size after the latest growth */
	uint32_t rate_before;  /* rate before it */
	uint32_t share_before; /* share of MADs lost before the cut */
	uint32_t link_share;   /* share that links lose */
	int64_t grows_at;      /* no growth before this time */
	/* silence */
	bool silent;
	bool skip;         /* skip ahead in the queue */
	unsigned late;     /* late MADs that count for a silence, since the latest response */
	unsigned late_any; /* all late MADs since the latest response or skip */
	int64_t opens;     /* no MAD before this time */
	uint32_t interval; /* between MADs */
	/* statistics */
	uint64_t queue_losses, link_losses;
};

/* Makes the window adaptive. Requests stay in flight. */
void window_init(struct flow_window *window);
/* After a silence, whose losses are not judged. */
void window_restart(struct flow_window *window, int64_t now);
/* Judges the window if the sample has enough results, or a growth's take too long. */
void window_judge_sample(struct flow_window *window, int64_t now);

/* A request's first transmission. Returns its sample's number, or 0. */
static inline uint32_t window_join_sample(struct flow_window *window, int64_t now)
{
	struct flow_sample *sample = &window->sample;

	if (now < sample->begins || sample->sent == sample->planned)
		return 0;
	sample->sent++;
	sample->sent_at = now;
	return sample->number;
}

/* A first transmission was in flight until its response or until it was late. */
static inline void window_held(struct flow_window *window, uint32_t sample, int64_t us,
			       bool response)
{
	if (sample != window->sample.number)
		return;
	window->sample.responses += response;
	window->sample.held_us += (uint64_t)us;
}

/* Whether a request's MAD was lost is now known, or never will be. */
static inline void window_leave_sample(struct flow_window *window, uint32_t sample, bool lost)
{
	if (sample != window->sample.number)
		return;
	window->sample.ended++;
	window->sample.lost += lost;
}

#endif
