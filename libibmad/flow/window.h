/* SPDX-License-Identifier: BSD-2-Clause */

/* One window: how many requests may be in flight. It is judged by samples of its MADs. */
#ifndef LIBIBMAD_FLOW_WINDOW_H
#define LIBIBMAD_FLOW_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#define FLOW_ONE 65536 /* shares are parts of it */

enum flow_phase {
	FLOW_STEADY, /* the window may grow, or be cut, after the next judgement */
	FLOW_GROWN,  /* the next judgement is about a growth */
	FLOW_DOUBT,  /* as before; the growth is taken back until then */
	FLOW_CUT,    /* the next judgement is about a cut */
};

/* The MADs of which the next judgement is made. */
struct flow_sample {
	uint32_t number;    /* not 0 */
	int64_t begins;     /* earlier MADs do not belong to it */
	unsigned planned;   /* MADs in all; */
	unsigned enough;    /* for a judgement, when their results are known; */
	unsigned sent;      /* sent so far; */
	unsigned ended;     /* of which it is known whether they were lost; */
	unsigned responses; /* with a response in time; */
	unsigned lost;      /* lost */
	uint64_t held_us;   /* the sum of the times for which they counted as in flight */
	int64_t sent_at;    /* when the latest was sent */
	bool full;          /* the window was the limit */
};

struct flow_window {
	unsigned size; /* the number of requests that may be in flight */
	unsigned in_flight;
	bool fixed;           /* the size does not change */
	uint32_t usual_us;    /* three in four round trips are shorter; 0: none is known */
	uint32_t shortest_us; /* of the sample, and of the one before; 0: none */
	uint32_t shortest_before_us;
	int64_t newest;    /* the latest time of sending that has a response */
	int64_t responded; /* when the latest response came */
	/* judgements */
	enum flow_phase phase;
	struct flow_sample sample;
	uint32_t rate;         /* responses a second */
	unsigned before;       /* the size before the latest growth or cut, */
	unsigned grown;        /* the size after the latest growth, */
	uint32_t rate_before;  /* and the rate before */
	uint32_t share_before; /* the share of MADs that were lost before the cut */
	uint32_t link_share;   /* the share that links lose */
	int64_t grows_at;      /* no growth before this time */
	/* silence */
	bool silent;
	bool skip;         /* the next request is one further on in the queue */
	unsigned late;     /* late MADs since the latest response that count for a silence */
	unsigned late_any; /* all late MADs since the latest response, or since skip was set */
	int64_t opens;     /* no MAD before this time */
	uint32_t interval; /* between MADs */
	/* statistics */
	uint64_t queue_losses, link_losses;
};

/* Makes the window adaptive. Requests in flight stay in flight. */
void window_init(struct flow_window *window);
/* A silence is over: its losses are not judged. */
void window_restart(struct flow_window *window, int64_t now);
/* The sample has enough results, or those of a growth may take too long: judges the window. */
void window_judge_sample(struct flow_window *window, int64_t now);

/* The first transmission of a request: the number of its sample, or 0. */
static inline uint32_t window_join_sample(struct flow_window *window, int64_t now)
{
	struct flow_sample *sample = &window->sample;

	if (now < sample->begins || sample->sent == sample->planned)
		return 0;
	sample->sent++;
	sample->sent_at = now;
	return sample->number;
}

/* A first transmission was in flight for a time, until its response came or was late. */
static inline void window_held(struct flow_window *window, uint32_t sample, int64_t us,
			       bool response)
{
	if (sample != window->sample.number)
		return;
	window->sample.responses += response;
	window->sample.held_us += (uint64_t)us;
}

/* It is known whether a MAD of a request was lost, or it will never be known. */
static inline void window_leave_sample(struct flow_window *window, uint32_t sample, bool lost)
{
	if (sample != window->sample.number)
		return;
	window->sample.ended++;
	window->sample.lost += lost;
}

#endif
