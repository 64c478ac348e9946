/* SPDX-License-Identifier: BSD-2-Clause */

/* Request events: round trips, silence, paths and accounts. */

#include "flow/flow.h"

/* Minimum time until a response is late, and the time while no round trip is known. */
#define LATE_US       1000
#define UNKNOWN_US    100000
#define LATE_SA_US    50000
#define UNKNOWN_SA_US 500000
/* Cap on round trips, so that products don't overflow. */
#define LONGEST_US    100000000
/* How often lateness is recomputed while no round trip is known. */
#define LOOK_US       2000
/* Late MADs that begin a silence; intervals of probes during it. */
#define SILENT_LATE   4
#define PROBE_US      1000
#define PROBE_STEP_US 150
#define PROBE_MAX_US  8000
/* This many late MADs in a row, and half a window, are not losses: the nodes may be dead. */
#define SKIP_AFTER    16
/* For this long after a response, nodes that never responded don't count for a silence. */
#define RESPONSIVE_US 200000
/* Maximum limit of a path; responses per request in flight before the limit is judged. */
#define LIMIT_MAX     16
#define PATIENCE      2
/* A path without responses gets a higher limit once a request is this old. */
#define RAISE_US      10000
/* Judgements without a change before the limit is measured again. */
#define UNCHANGED_MAX 64
/* Copies without a response after which a node counts as dead. */
#define COPIES_DEAD   3

void flow_init(struct flow_control *flow)
{
	*flow = (struct flow_control){0};
	flow_fix_window(flow, MAD_WINDOW_SMP, 0);
	flow_fix_window(flow, MAD_WINDOW_GMP, 0);
}

void flow_reset(struct flow_control *flow)
{
	for (unsigned i = 0; i < FLOW_WINDOWS; i++) {
		flow->windows[i].late = 0;
		flow->windows[i].silent = false;
		window_restart(&flow->windows[i], INT64_MIN);
	}
}

void flow_fix_window(struct flow_control *flow, enum mad_window window, unsigned size)
{
	struct flow_window *w = &flow->windows[window];

	window_init(w);
	w->fixed = size != 0;
	if (size)
		w->size = size;
}

/* --- windows -------------------------------------------------------------------- */

static bool has_responded(const struct flow_account *account)
{
	return account->path && account->path->smoothed_us;
}

static struct flow_window *window_of(struct flow_control *flow,
				     const struct flow_account *account)
{
	return &flow->windows[flow_window_of(account)];
}

/* Longer round trips weigh three times as much as shorter ones. */
static void learn_usual(struct flow_window *window, uint32_t us)
{
	uint32_t usual = window->usual_us;

	if (!usual)
		window->usual_us = us;
	else if (us > usual)
		window->usual_us += usual * 15 / 100 + 1;
	else if (us < usual)
		window->usual_us -= usual * 5 / 100;
	if (!window->shortest_us || us < window->shortest_us)
		window->shortest_us = us;
}

static void leave_window(struct flow_window *window, struct flow_account *account,
			 bool response, int64_t now)
{
	if (!account->in_window)
		return;
	window->in_flight--;
	account->in_window = false;
	if (!account->copies)
		window_held(window, account->sample, now - account->first, response);
}

static void leave_sample(struct flow_window *window, struct flow_account *account, bool lost)
{
	window_leave_sample(window, account->sample, lost);
	account->sample = 0;
}

/*
 * Whether a late MAD counts for a silence: no later MAD has a response either. A node that
 * never responded may be dead, so only a request's first transmission counts, and only if no
 * other node has responded for RESPONSIVE_US.
 */
static bool is_sign_of_silence(const struct flow_window *window,
			       const struct flow_account *account, int64_t now)
{
	if (account->sent <= window->newest)
		return false;
	return has_responded(account) ||
	       (!account->copies && now - RESPONSIVE_US >= window->responded);
}

static void note_silence(struct flow_window *window, const struct flow_account *account,
			 int64_t now)
{
	if (++window->late_any >= SKIP_AFTER && window->late_any > window->size / 2) {
		window->skip = true;
		window->late_any = 0;
	}
	if (!is_sign_of_silence(window, account, now))
		return;
	if (++window->late < SILENT_LATE || window->late <= window->size / 2 || window->silent)
		return;
	window->silent = true;
	window->opens = now;
	window->interval = PROBE_US;
}

/* --- paths ---------------------------------------------------------------------- */

void flow_path_init(struct flow_path *path)
{
	*path = (struct flow_path){.limit = 1, .present_us = UINT32_MAX};
}

/*
 * The limit grows by half while less than half a request waits at the node. If two wait, it is
 * set to the number of requests that the path holds. With a limit of 1, nothing waits for
 * another request of this port, so the round trip is the empty path's. It is measured again
 * after UNCHANGED_MAX judgements.
 */
static void judge_limit(struct flow_path *path)
{
	uint32_t present = path->present_us;
	uint64_t waiting; /* in half requests */

	if (path->limit == 1 || !path->least_us || present < path->least_us)
		path->least_us = present;
	waiting = 2 * (uint64_t)(present - path->least_us) * path->limit / present;
	if (waiting < 1)
		path->limit = (uint8_t)(path->limit + (path->limit + 1) / 2);
	else if (waiting > 3)
		path->limit = (uint8_t)((uint64_t)path->limit * path->least_us / present + 1);
	else if (++path->unchanged >= UNCHANGED_MAX)
		path->limit = 1;
	if (waiting < 1 || waiting > 3)
		path->unchanged = 0;
	if (path->limit > LIMIT_MAX)
		path->limit = LIMIT_MAX;
	path->responses = 0;
	path->present_us = UINT32_MAX;
}

/* Records a round trip: smoothed as in RFC 6298, and used to judge the limit. */
static void learn_path(struct flow_path *path, uint32_t us)
{
	uint64_t smoothed = path->smoothed_us, deviation = path->deviation_us;
	uint64_t off = us > smoothed ? us - smoothed : smoothed - us;

	path->deviation_us = (uint32_t)(smoothed ? (3 * deviation + off) / 4 : us / 2);
	path->smoothed_us = smoothed ? (uint32_t)((7 * smoothed + us + 7) / 8) : us;
	/* a lowered limit has not taken effect yet */
	if (path->in_flight > path->limit)
		return;
	if (us < path->present_us)
		path->present_us = us;
	if (++path->responses >= PATIENCE * path->limit)
		judge_limit(path);
}

/*
 * A node that never responded may be slow rather than dead: once a request to it is RAISE_US
 * old, each further lateness doubles the limit.
 */
static void raise_limit(struct flow_path *path, const struct flow_account *account, int64_t now)
{
	unsigned limit = 2u * path->limit + 1;

	if (!path->smoothed_us && now - account->first >= RAISE_US)
		path->limit = (uint8_t)(limit < LIMIT_MAX ? limit : LIMIT_MAX);
}

static void leave_node(struct flow_account *account)
{
	if (account->path && account->at_node)
		account->path->in_flight--;
	account->at_node = false;
}

/* --- events --------------------------------------------------------------------- */

uint32_t flow_late_after(const struct flow_control *flow, const struct flow_account *account)
{
	const struct flow_window *window = flow_window(flow, account);
	const struct flow_path *path = account->path;
	uint64_t us = 3 * (uint64_t)window->usual_us, own = 0;

	if (path && path->smoothed_us)
		own = path->smoothed_us + 4 * (uint64_t)path->deviation_us;
	if (account->sa)
		us = own ? LATE_SA_US : UNKNOWN_SA_US;
	else if (!us && !own)
		us = UNKNOWN_US;
	if (us < own)
		us = own;
	if (us < LATE_US)
		us = LATE_US;
	return us < LONGEST_US ? (uint32_t)us : LONGEST_US;
}

int64_t flow_look_at(const struct flow_control *flow, const struct flow_account *account,
		     int64_t now)
{
	const struct flow_window *window = flow_window(flow, account);
	int64_t late = account->sent + flow_late_after(flow, account);
	bool unknown = !window->usual_us && !has_responded(account);

	/* another response may soon shorten flow_late_after() */
	return unknown && window->in_flight > 1 && now + LOOK_US < late ? now + LOOK_US : late;
}

int64_t flow_sent(struct flow_control *flow, struct flow_account *account, int64_t now)
{
	struct flow_window *window = window_of(flow, account);

	leave_window(window, account, false, now);
	if (account->first) {
		if (account->copies < UINT8_MAX)
			account->copies++;
	} else {
		account->first = now;
		account->copies = 0;
		if (!window->silent)
			account->sample = window_join_sample(window, now);
	}
	account->sent = now;
	account->in_window = true;
	if (++window->in_flight >= window->size)
		window->sample.full = true;
	if (account->path && !account->at_node) {
		account->path->in_flight++;
		account->at_node = true;
	}
	if (window->silent) {
		window->opens = now + window->interval;
		window->interval += window->interval < PROBE_MAX_US ? PROBE_STEP_US : 0;
	}
	return flow_look_at(flow, account, now);
}

void flow_late(struct flow_control *flow, struct flow_account *account, int64_t now)
{
	struct flow_window *window = window_of(flow, account);

	/* after a response, no more is expected until the next transmission */
	if (!account->first)
		return;
	if (account->in_window)
		note_silence(window, account, now);
	leave_window(window, account, false, now);
	/* dead or slow; if the node is known, two MADs were lost */
	if (account->copies || !account->may_copy)
		leave_sample(window, account, account->copies && has_responded(account));
	if (account->path)
		raise_limit(account->path, account, now);
	if (account->path && (account->copies >= COPIES_DEAD || !account->may_copy))
		account->path->dead = true;
	/* with a fixed limit, a request keeps its place until it completes */
	if (account->path && account->path->dead && !flow->path_limit)
		leave_node(account);
}

void flow_response(struct flow_control *flow, struct flow_account *account, uint32_t rtt_us,
		   bool lost, int64_t now)
{
	struct flow_window *window = window_of(flow, account);
	struct flow_path *path = account->path;

	if (window->silent) {
		window->silent = false;
		window_restart(window, now);
	}
	window->late = window->late_any = 0;
	window->responded = now;
	if (rtt_us && now - rtt_us > window->newest)
		window->newest = now - rtt_us;
	if (rtt_us > LONGEST_US)
		rtt_us = LONGEST_US;
	if (rtt_us && !account->sa)
		learn_usual(window, rtt_us);
	if (rtt_us && path)
		learn_path(path, rtt_us);
	if (path)
		path->dead = false;
	leave_node(account);
	leave_window(window, account, true, now);
	leave_sample(window, account, lost);
	/* after BUSY, the next transmission counts as a first one */
	account->first = 0;
	window_judge_sample(window, now);
}

void flow_ended(struct flow_control *flow, struct flow_account *account)
{
	struct flow_window *window = window_of(flow, account);

	if (!account->first)
		return;
	leave_window(window, account, false, account->first);
	leave_sample(window, account, false);
	leave_node(account);
	account->first = 0;
}
