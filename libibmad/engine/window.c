/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/window.h"

#define SMALLEST     2
/* So long may requests be queued on their way, or as long as the shortest round trip. */
#define TARGET       500
/* The shortest round trip is measured anew in this time. */
#define RENEWED      INT64_C(5000000)
/* A round is over when one request in so many is open. */
#define OPEN         8
/* Once it has been too large, it grows by one part in so many. */
#define STEP         16
/* It then waits for so many responses for each request that may be in flight, */
#define CAUTION      1
/* after a queue was full for so many, and for more each time. */
#define CAUTION_LOSS 48
#define CAUTION_MAX  512
/* At first it grows by one part in so many, and by a smaller part from a size on. */
#define STEP_SMALL   3
#define STEP_LARGE   6
#define MANY         32
/* A window of this size fills no queue. */
#define SMALL        4
/* With fewer responses, the shortest round trip of a round may be a long one by chance. */
#define ENOUGH       8
/* The intervals between MADs in silence. */
#define INTERVAL     4000
#define INTERVAL_MAX 16000

/* --- life ----------------------------------------------------------------------- */

void window_init(struct window *window, unsigned start, unsigned largest)
{
	*window = (struct window){
		.size = start,
		.start = start,
		.smallest = SMALLEST,
		.largest = largest,
		.starting = true,
		.caution = CAUTION,
		.shortest = {.present_us = UINT32_MAX, .previous_us = UINT32_MAX},
		.newest = INT64_MIN,
		.losses_in_a_row = 1,
	};
	losses_init(&window->losses);
}

void window_fix(struct window *window, unsigned size, unsigned largest)
{
	unsigned in_flight = window->in_flight;

	window_init(window, window->start, largest);
	window->in_flight = in_flight;
	if (size)
		window->size = window->smallest = window->largest = size;
}

void window_reset(struct window *window)
{
	window->in_flight = 0;
	window->round.planned = 0;
	losses_restart(&window->losses);
}

static void resize(struct window *window, uint64_t size)
{
	if (size < window->smallest)
		size = window->smallest;
	if (size > window->largest)
		size = window->largest;
	window->size = (unsigned)size;
}

/* --- what is measured ----------------------------------------------------------- */

static void measure(struct shortest_rtt *shortest, uint32_t us, int64_t now)
{
	if (now - shortest->since > RENEWED) {
		shortest->previous_us = shortest->present_us;
		shortest->present_us = UINT32_MAX;
		shortest->since = now;
	}
	if (us < shortest->present_us)
		shortest->present_us = us;
}

static uint32_t lesser(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

uint32_t window_shortest_rtt(const struct window *window)
{
	uint32_t us = lesser(window->shortest.present_us, window->shortest.previous_us);

	return us == UINT32_MAX ? 0 : us;
}

static uint32_t target(const struct window *window)
{
	uint32_t us = window_shortest_rtt(window);

	return us > TARGET ? us : TARGET;
}

/* --- size ----------------------------------------------------------------------- */

/* It was too large: growth begins anew, with small steps. */
static void hold(struct window *window)
{
	window->starting = false;
	window->credit = 0;
	window->wait = window->caution * window->size;
}

/* A window that has never been too large grows by one part in so many. */
static unsigned first_step(const struct window *window)
{
	return window->size < MANY ? STEP_SMALL : STEP_LARGE;
}

static void grow(struct window *window, unsigned responses)
{
	window->credit += responses;
	if (window->starting) {
		resize(window, window->size + window->size / first_step(window) + 1);
		return;
	}
	if (window->credit < window->wait)
		return;
	resize(window, (uint64_t)window->size +
			       window->size / (window->caution > CAUTION ? STEP : STEP / 4) +
			       1);
	if (window->caution > CAUTION)
		window->caution -= (window->caution + 3) / 4;
	hold(window);
}

/* Requests are queued on their way. */
static void shrink(struct window *window)
{
	uint64_t us = window_shortest_rtt(window) + (uint64_t)target(window);
	uint64_t size = window->rate * us / 1000000;

	if (size < window->size - window->size / 4)
		size = window->size - window->size / 4;
	if (size >= window->size)
		size = window->size - 1;
	resize(window, size);
	hold(window);
}

/* A queue was full with the size before the trial: of that, what was not late, and less. */
static void reduce(struct window *window, uint32_t late_share)
{
	uint64_t size = window->size_before;
	uint64_t passed = size * (LOSS_ONE - late_share) / LOSS_ONE;

	window->queue_share = late_share;
	window->size_undone = window->size_before;
	window->caution_undone = window->caution;
	window->caution = window->caution < CAUTION_LOSS ? CAUTION_LOSS : 2 * window->caution;
	if (window->caution > CAUTION_MAX)
		window->caution = CAUTION_MAX;
	resize(window,
	       passed - passed / 8 < size - size / 4 ? passed - passed / 8 : size - size / 4);
	hold(window);
}

/* If links lose what an earlier verdict was given for, no queue was full: it may grow at once.
 */
static void trust(struct window *window, uint32_t link_share)
{
	if (window->caution == CAUTION || link_share < window->queue_share / 2)
		return;
	window->caution = CAUTION;
	hold(window);
}

static void follow(struct window *window, enum loss_verdict verdict)
{
	if (verdict == LOSS_NOTHING)
		return;
	/* what was sent before tells nothing about the new size */
	window->round.planned = 0;
	window->verdict = verdict;
	if (verdict == LOSS_LINK) {
		resize(window, window->size_before);
		trust(window, window->losses.link_share);
	} else if (verdict == LOSS_QUEUE) {
		reduce(window, window->losses.share_before);
	} else {
		window->size_before = window->size;
		if (window->size > SMALL)
			resize(window, window->size / 2);
	}
}

/* Takes a size back; in silence, when that ends. */
static void restore(struct window *window, unsigned size)
{
	if (window->silent)
		window->size_awake = size;
	else
		resize(window, size);
}

void window_undo(struct window *window)
{
	if (!window->size_undone)
		return;
	window->caution = window->caution_undone;
	hold(window);
	window->round.planned = 0;
	if (window->silent || window->size < window->size_undone)
		restore(window, window->size_undone);
	window->size_undone = 0;
}

bool window_found(struct window *window, uint8_t period)
{
	bool trial = window->losses.trial;

	if (!losses_found(&window->losses, period))
		return false;
	window->verdict = LOSS_NOTHING;
	if (!trial)
		return true;
	window->round.planned = 0;
	restore(window, window->size_before);
	return false;
}

void window_hush(struct window *window)
{
	window->hushed = true;
	losses_restart(&window->losses);
	window->round.planned = 0;
	window->size_before = window->silent ? window->size_awake : window->size;
	if (!window->silent && window->size > SMALL)
		resize(window, window->size / 2);
}

void window_unhush(struct window *window, const struct window *other)
{
	window->hushed = false;
	window->round.planned = 0;
	window->size_awake = window->size_before;
	if (window->silent)
		return;
	if (other->verdict == LOSS_QUEUE) {
		reduce(window, other->losses.share_before);
		return;
	}
	resize(window, window->size_before);
	if (other->verdict == LOSS_LINK)
		trust(window, other->losses.link_share);
}

/* --- rounds --------------------------------------------------------------------- */

static void begin_round(struct window *window, int64_t now)
{
	window->round = (struct window_round){
		.planned = window->size,
		.rtt_us = UINT32_MAX,
		.begun = now,
		.delivered = window->delivered,
		.id = (uint8_t)(window->round.id % UINT8_MAX + 1),
	};
}

/* How many of a round have a response if only the links lose some. */
static unsigned expected(const struct window *window)
{
	uint64_t kept = LOSS_ONE - window->losses.link_share;

	return (unsigned)((window->round.planned - window->round.planned / OPEN) * kept /
			  LOSS_ONE);
}

static void judge_round(struct window *window, int64_t now)
{
	struct window_round *round = &window->round;
	uint32_t shortest = window_shortest_rtt(window), queued = 0;
	int64_t time = now - round->begun;

	if (round->rtt_us != UINT32_MAX)
		queued = round->rtt_us - shortest;
	if (time > 0)
		window->rate = (uint32_t)((window->delivered - round->delivered) * 1000000 /
					  (uint64_t)time);
	if (queued > target(window) && round->responses >= ENOUGH) {
		/* in one round, it may be that this process or another one did not run */
		if (window->delayed)
			shrink(window);
		window->delayed = !window->delayed;
	} else if (round->full && !window->losses.trial && !window->hushed &&
		   queued <= target(window) / 2 && round->responses >= expected(window)) {
		grow(window, round->responses);
	}
	if (queued <= target(window))
		window->delayed = false;
	round->planned = 0;
}

static void end_in_round(struct window *window, int64_t now)
{
	struct window_round *round = &window->round;
	unsigned ended = round->responses + round->late;

	if (round->planned && ended >= round->planned - round->planned / OPEN)
		judge_round(window, now);
}

static bool is_of_round(const struct window *window, struct window_mark mark)
{
	return window->round.planned && mark.round == window->round.id;
}

/* --- events --------------------------------------------------------------------- */

void window_sent(struct window *window, struct window_mark *mark, int64_t now)
{
	struct window_round *round = &window->round;

	window->in_flight++;
	window->latest = now;
	*mark = (struct window_mark){0};
	if (window->silent) {
		window->opens = now + window->interval;
		window->interval = lesser(2 * window->interval, INTERVAL_MAX);
		return;
	}
	mark->period = window->hushed ? 0 : losses_sent(&window->losses);
	if (!round->planned)
		begin_round(window, now);
	if (round->sent < round->planned) {
		round->sent++;
		mark->round = round->id;
	}
	if (!window_has_room(window))
		round->full = true;
}

static void fall_silent(struct window *window, int64_t now)
{
	window->silent = true;
	window->silent_since = now;
	window->silent_late = 0;
	window->round.planned = 0;
	window->size_awake = window->size;
	resize(window, window->smallest);
	window->opens = now;
	window->interval = INTERVAL;
}

/* A response to a MAD that was sent at that time ends the silence. */
static void end_silence(struct window *window, int64_t sent)
{
	uint8_t period = window->losses.period;
	bool lost = sent >= window->silent_since;
	/* single MADs were lost, which fill no queue */
	bool outage = lost && window->interval > 2 * INTERVAL;

	window->silent = false;
	window->opens = 0;
	/* otherwise a process did not run, or the fabric stood still */
	resize(window, lost ? window->size_awake / 2 : window->size_awake);
	if (outage) {
		window->losses.link += window->silent_late;
		hold(window);
		return;
	}
	while (window->silent_late-- && period == window->losses.period)
		follow(window, losses_ended(&window->losses, period, lost));
}

void window_late(struct window *window, struct window_mark mark, int64_t sent, int64_t now)
{
	window->in_flight--;
	if (!window_overtook(window, sent) &&
	    ++window->late_in_a_row >= window->losses_in_a_row && !window->silent)
		fall_silent(window, now);
	if (is_of_round(window, mark)) {
		window->round.late++;
		end_in_round(window, now);
	}
	if (window->silent)
		window->silent_late += mark.period == window->losses.period;
	else
		follow(window, losses_ended(&window->losses, mark.period, true));
}

void window_ended(struct window *window, struct window_mark mark, int64_t now)
{
	window->in_flight--;
	if (is_of_round(window, mark)) {
		window->round.responses++;
		end_in_round(window, now);
	}
	follow(window, losses_ended(&window->losses, mark.period, false));
}

void window_response(struct window *window, struct window_mark mark, uint32_t rtt_us,
		     bool in_flight, bool lost, int64_t now)
{
	window->delivered++;
	window->late_in_a_row = 0;
	losses_count(&window->losses, lost);
	if (rtt_us) {
		if (now - rtt_us > window->newest)
			window->newest = now - rtt_us;
		measure(&window->shortest, rtt_us, now);
	}
	if (window->silent)
		end_silence(window, now - rtt_us);
	if (!in_flight)
		return;
	if (rtt_us && is_of_round(window, mark))
		window->round.rtt_us = lesser(window->round.rtt_us, rtt_us);
	window_ended(window, mark, now);
}
