/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Flow control: when a MAD may be sent, and when its response is late. docs/flow-control.md
 * explains each rule, with figures. Nothing here knows requests, ports or locks, or reads the
 * clock. All times are microseconds of one clock.
 *
 * A port has a window for SMPs and one for GMPs: how many requests may be in flight. A path's
 * limit is how many may be in flight to one destination. Each request has an account of where
 * it is counted.
 */
#ifndef LIBIBMAD_FLOW_H
#define LIBIBMAD_FLOW_H

#include "flow/window.h"

#include <infiniband/mad_async.h>

/* A port's windows: SMPs (QP0) and GMPs (QP1). */
enum mad_window {
	MAD_WINDOW_SMP,
	MAD_WINDOW_GMP
};

#define FLOW_WINDOWS (MAD_WINDOW_GMP + 1)

struct flow_control {
	struct flow_window windows[FLOW_WINDOWS];
	unsigned path_limit; /* per path; 0: adaptive */
};

/* Round trips and limit of a destination. */
struct flow_path {
	uint32_t smoothed_us;  /* smoothed round trip; 0: never responded */
	uint32_t deviation_us; /* smoothed deviation */
	uint32_t least_us;     /* shortest round trip on the empty path */
	uint32_t present_us;   /* shortest round trip since the last judgement */
	uint16_t responses;    /* since the last judgement */
	unsigned in_flight;
	int64_t busy_since; /* 0: the latest response was not BUSY */
	uint8_t limit;
	uint8_t unchanged; /* judgements since the limit last changed */
	bool dead;         /* no response to the latest request and its copies */
};

/* A request's account. A copy is any transmission after the first. */
struct flow_account {
	struct flow_path *path;  /* NULL: unknown */
	int64_t first, sent;     /* time of the first and latest transmission; 0: none */
	uint32_t sample;         /* number in the window; 0: none */
	uint8_t copies;          /* so far */
	bool may_copy;           /* copies are allowed within an attempt */
	bool smp, sa;            /* is an SMP; goes to the SA */
	bool in_window, at_node; /* counts as in flight in the window, on the path */
};

void flow_init(struct flow_control *flow);
/* After a pause: ends a silence and starts a new sample. Requests stay in flight. */
void flow_reset(struct flow_control *flow);
void flow_path_init(struct flow_path *path);
/* Fixed window size; 0: adaptive. */
void flow_fix_window(struct flow_control *flow, enum mad_window window, unsigned size);

static inline enum mad_window flow_window_of(const struct flow_account *account)
{
	return account->smp ? MAD_WINDOW_SMP : MAD_WINDOW_GMP;
}

/* Whether the window allows one more request, flow_opens() aside. */
static inline bool flow_has_room(const struct flow_control *flow, unsigned window)
{
	return flow->windows[window].in_flight < flow->windows[window].size;
}

/* No MAD may be sent before this time; 0: none. */
static inline int64_t flow_opens(const struct flow_control *flow, unsigned window)
{
	return flow->windows[window].silent ? flow->windows[window].opens : 0;
}

/* Whether the destination's limit allows one more request. */
static inline bool flow_has_place(const struct flow_control *flow, const struct flow_path *path)
{
	return path->in_flight < (flow->path_limit ? flow->path_limit : path->limit);
}

/*
 * Whether to skip ahead in the queue: in a silence, or (returned once) after many MADs without
 * a response.
 */
static inline bool flow_take_skip(struct flow_control *flow, unsigned window)
{
	bool skip = flow->windows[window].skip;

	flow->windows[window].skip = false;
	return skip || flow->windows[window].silent;
}

/* The window that counts a request. */
static inline const struct flow_window *flow_window(const struct flow_control *flow,
						    const struct flow_account *account)
{
	return &flow->windows[flow_window_of(account)];
}

/* Whether the destination responds far sooner than others. */
static inline bool flow_is_quick(const struct flow_control *flow,
				 const struct flow_account *account)
{
	uint32_t us = account->path ? account->path->smoothed_us : 0;

	return us && us < flow_window(flow, account)->usual_us / 4;
}

/* Shortest round trip of the latest two samples; 0: none. */
static inline uint32_t flow_shortest_us(const struct flow_window *window)
{
	uint32_t us = window->shortest_us, before = window->shortest_before_us;

	return !us || (before && before < us) ? before : us;
}

/* Time from the latest transmission until the response is late. */
uint32_t flow_late_after(const struct flow_control *flow, const struct flow_account *account);
/*
 * When the response to the latest transmission is late, or earlier if that may soon become
 * shorter because no round trip is known yet.
 */
int64_t flow_look_at(const struct flow_control *flow, const struct flow_account *account,
		     int64_t now);

/* Events of a request, first: a MAD is sent. Returns flow_look_at(). */
int64_t flow_sent(struct flow_control *flow, struct flow_account *account, int64_t now);
/* The response to the latest transmission is late. */
void flow_late(struct flow_control *flow, struct flow_account *account, int64_t now);
/*
 * A response to a transmission rtt_us ago (0: unknown) ends the request's time in flight.
 * "lost": an earlier transmission was lost.
 */
void flow_response(struct flow_control *flow, struct flow_account *account, uint32_t rtt_us,
		   bool lost, int64_t now);
/*
 * The request ended without a response, or its packet was not sent. No-op after a response or
 * an earlier end.
 */
void flow_ended(struct flow_control *flow, struct flow_account *account);

#endif
