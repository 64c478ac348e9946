/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Flow control: when a MAD may be sent, and when its response is late. docs/flow-control.md
 * has the law and the figures behind each rule. The functions know no request, no port and no
 * lock, and do not read the clock. All times are microseconds of one clock.
 *
 * A port has a window for SMPs and one for GMPs: the number of requests that may be in flight.
 * A path has a limit: the number of requests that may be in flight to one destination. Each
 * request has one account, which says where the request counts.
 */
#ifndef LIBIBMAD_FLOW_H
#define LIBIBMAD_FLOW_H

#include "flow/window.h"

#include <infiniband/mad_async.h>

/* The windows of a port: of SMPs, by QP0, and of GMPs, by QP1. */
enum mad_window {
	MAD_WINDOW_SMP,
	MAD_WINDOW_GMP
};

#define FLOW_WINDOWS (MAD_WINDOW_GMP + 1)

/* The flow control of a port. */
struct flow_control {
	struct flow_window windows[FLOW_WINDOWS];
	unsigned path_limit; /* of each path; 0: adaptive */
};

/* The round trips and the limit of a destination. */
struct flow_path {
	uint32_t smoothed_us;  /* the smoothed round trip; 0: the node has never responded */
	uint32_t deviation_us; /* the smoothed deviation of the round trip */
	uint32_t least_us;     /* the least round trip with an empty path, */
	uint32_t present_us;   /* and since the limit was judged */
	uint16_t responses;    /* since the limit was judged */
	unsigned in_flight;
	int64_t busy_since; /* 0: the latest response was not BUSY */
	uint8_t limit;
	uint8_t unchanged; /* judgements since the limit was changed */
	bool dead;         /* the node did not respond to the latest request and its copies */
};

/* The account of a request. A copy is a transmission after the first one. */
struct flow_account {
	struct flow_path *path;  /* NULL: not known */
	int64_t first, sent;     /* the first transmission and the latest; 0: none */
	uint32_t sample;         /* the number of the window's sample; 0: none */
	uint8_t copies;          /* so far */
	bool may_copy;           /* there may be a copy before the end of an attempt */
	bool smp, sa;            /* the request is an SMP, or is sent to the SA */
	bool in_window, at_node; /* in flight, for the window and for the path */
};

void flow_init(struct flow_control *flow);
/* After a pause: no silence, and a new sample. Requests in flight stay in flight. */
void flow_reset(struct flow_control *flow);
void flow_path_init(struct flow_path *path);
/* A window of a fixed size; 0: adaptive. */
void flow_fix_window(struct flow_control *flow, enum mad_window window, unsigned size);

static inline enum mad_window flow_window_of(const struct flow_account *account)
{
	return account->smp ? MAD_WINDOW_SMP : MAD_WINDOW_GMP;
}

/* Whether one more request may be in flight, unless it is before flow_opens(). */
static inline bool flow_has_room(const struct flow_control *flow, unsigned window)
{
	return flow->windows[window].in_flight < flow->windows[window].size;
}

/* The time before which no MAD may be sent; 0: none. */
static inline int64_t flow_opens(const struct flow_control *flow, unsigned window)
{
	return flow->windows[window].silent ? flow->windows[window].opens : 0;
}

/* Whether one more request may be in flight to a destination. */
static inline bool flow_has_place(const struct flow_control *flow, const struct flow_path *path)
{
	return path->in_flight < (flow->path_limit ? flow->path_limit : path->limit);
}

/*
 * Whether the next request is to be one further on in the queue: in a silence, and once after
 * many MADs without a response. Returns true once for the latter.
 */
static inline bool flow_take_skip(struct flow_control *flow, unsigned window)
{
	bool skip = flow->windows[window].skip;

	flow->windows[window].skip = false;
	return skip || flow->windows[window].silent;
}

/* The window in which a request counts. */
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

/* The shortest round trip of the latest two samples; 0: none. */
static inline uint32_t flow_shortest_us(const struct flow_window *window)
{
	uint32_t us = window->shortest_us, before = window->shortest_before_us;

	return !us || (before && before < us) ? before : us;
}

/* The time from the latest transmission until the response is late. */
uint32_t flow_late_after(const struct flow_control *flow, const struct flow_account *account);
/*
 * When the response to the latest transmission is late; or before, if that time may soon become
 * shorter, because no round trip is known yet.
 */
int64_t flow_look_at(const struct flow_control *flow, const struct flow_account *account,
		     int64_t now);

/* The events of a request. A MAD is sent. Returns flow_look_at(). */
int64_t flow_sent(struct flow_control *flow, struct flow_account *account, int64_t now);
/* The response to the latest transmission is late. */
void flow_late(struct flow_control *flow, struct flow_account *account, int64_t now);
/*
 * A response came to a transmission rtt_us ago; 0: not known. "lost": an earlier transmission
 * of the request was lost. The request is not in flight any more.
 */
void flow_response(struct flow_control *flow, struct flow_account *account, uint32_t rtt_us,
		   bool lost, int64_t now);
/*
 * The request ends without a response, or its packet was not sent. After a response or a former
 * end it counts nowhere, and nothing changes.
 */
void flow_ended(struct flow_control *flow, struct flow_account *account);

#endif
