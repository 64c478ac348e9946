/* SPDX-License-Identifier: BSD-2-Clause */

#include "flow/window.h"

#define START       16
#define SMALLEST    2
/* The kernel posts this many receives per queue pair, and drops responses that find none. */
#define LARGEST     512
#define SAMPLE_MIN  16 /* minimum MADs per sample */
/* Growth adds this and a quarter, but at most doubles the window. */
#define STEP        32
/* The rate must rise by this part of the growth. */
#define GAIN_MIN    (FLOW_ONE / 4)
/* Round trips until the next growth after one without a gain; the time after losses. */
#define HOLD        12
#define HOLD_MAX_US 200000
/* A judgement does not wait for the sample's last tenth of results, except after a cut. */
#define SPARE       10
/* Round trips to wait for results before a growth is in doubt. */
#define DOUBT       2
/* Tolerated losses: up to this number, or this share. */
#define LOST_MIN    3
#define LOST_SHARE  (FLOW_ONE / 50)
/*
 * Losses in a cut's sample if the share stays as before the cut. They go on if the share
 * exceeds a third of it (GOES_ON).
 */
#define EXPECTED    10
#define GOES_ON     3
/* During a cut: fraction of the sample in flight, and tenths of the window. */
#define CUT_SAMPLE  2
#define CUT         4
/* Tenths of the window kept when a queue was full. */
#define AFTER_FULL  6

static unsigned greater(unsigned a, unsigned b)
{
	return a > b ? a : b;
}

static uint32_t lesser(uint64_t a, uint32_t b)
{
	return a < b ? (uint32_t)a : b;
}

/* begins: when the next sample starts. */
static void begin_sample(struct flow_window *window, int64_t begins)
{
	unsigned planned = greater(window->size, SAMPLE_MIN), spare = planned / SPARE;

	if (window->phase == FLOW_CUT) {
		planned = greater(planned, EXPECTED * FLOW_ONE / window->share_before);
		spare = 0;
	}
	window->sample = (struct flow_sample){
		.number = window->sample.number == UINT32_MAX ? 1 : window->sample.number + 1,
		.begins = begins,
		.planned = planned,
		.enough = planned - spare,
	};
	window->shortest_before_us = window->shortest_us;
	window->shortest_us = 0;
}

void window_init(struct flow_window *window)
{
	*window = (struct flow_window){
		.size = START,
		.in_flight = window->in_flight,
		.usual_us = window->usual_us,
		.queue_losses = window->queue_losses,
		.link_losses = window->link_losses,
		.newest = INT64_MIN,
		.responded = INT64_MIN,
		.sample.number = window->sample.number,
	};
	begin_sample(window, INT64_MIN);
}

static void begin_phase(struct flow_window *window, enum flow_phase phase, unsigned size,
			int64_t begins)
{
	window->phase = phase;
	window->size = greater(size, SMALLEST);
	begin_sample(window, begins);
}

/* --- growth --------------------------------------------------------------------- */

static void grow_window(struct flow_window *window, int64_t now)
{
	unsigned size = window->size, quarter = size / 4 + 1;
	unsigned more = lesser(size, STEP + quarter);

	window->before = size;
	window->rate_before = window->rate;
	window->grown = lesser(size + more, LARGEST);
	begin_phase(window, size < window->grown ? FLOW_GROWN : FLOW_STEADY, window->grown,
		    now);
}

static bool rate_has_grown(const struct flow_window *window)
{
	uint64_t grown = window->grown - window->before;
	uint64_t wanted = window->rate_before * (FLOW_ONE + grown * GAIN_MIN / window->before);

	return (uint64_t)window->rate * FLOW_ONE >= wanted;
}

static void judge_growth(struct flow_window *window, int64_t now)
{
	if (!rate_has_grown(window)) {
		window->grows_at = now + lesser(HOLD * (uint64_t)window->usual_us, HOLD_MAX_US);
		begin_phase(window, FLOW_STEADY, window->before, now);
		return;
	}
	window->size = window->grown;
	grow_window(window, now);
}

/* --- losses --------------------------------------------------------------------- */

/* Whether losses exceed what links lose. */
static bool is_losing(const struct flow_window *window)
{
	const struct flow_sample *sample = &window->sample;
	uint64_t usual = (uint64_t)sample->ended * (LOST_SHARE + window->link_share) / FLOW_ONE;

	return sample->lost >= LOST_MIN && sample->lost > usual;
}

static void cut_window(struct flow_window *window, uint32_t share, int64_t now)
{
	if (window->phase == FLOW_STEADY) {
		window->grown = window->size;
		window->before = window->size * AFTER_FULL / 10;
	}
	window->share_before = share;
	begin_phase(window, FLOW_CUT,
		    lesser(EXPECTED * FLOW_ONE / share / CUT_SAMPLE, window->grown * CUT / 10),
		    now);
}

/*
 * If losses persist with far fewer requests in flight, links lose MADs or other hosts fill the
 * queue; otherwise, this port filled a queue.
 */
static void judge_cut(struct flow_window *window, uint32_t share, int64_t now)
{
	if (share > window->share_before / GOES_ON) {
		window->link_losses += window->sample.lost;
		window->link_share = share;
		begin_phase(window, FLOW_STEADY, window->grown, now);
	} else {
		window->queue_losses += window->sample.lost;
		window->grows_at = now + HOLD_MAX_US;
		begin_phase(window, FLOW_STEADY, window->before, now);
	}
}

/* Links lose less than before; MADs without a result may be lost. */
static void forget_losses(struct flow_window *window)
{
	const struct flow_sample *sample = &window->sample;
	uint64_t most = (uint64_t)sample->lost + sample->planned - sample->ended;
	uint32_t share = (uint32_t)(most * FLOW_ONE / sample->planned);

	if (share < window->link_share)
		window->link_share -= (window->link_share - share) / 4;
}

/* --- the judgement -------------------------------------------------------------- */

/* Little's law: rate = requests in flight / time in flight. */
static void measure_rate(struct flow_window *window)
{
	const struct flow_sample *sample = &window->sample;
	unsigned size = window->phase == FLOW_DOUBT ? window->grown : window->size;

	if (sample->held_us)
		window->rate =
			lesser((uint64_t)sample->responses * size * 1000000 / sample->held_us,
			       UINT32_MAX);
}

static void judge_sample(struct flow_window *window, int64_t now)
{
	struct flow_sample *sample = &window->sample;
	uint32_t share = (uint32_t)((uint64_t)sample->lost * FLOW_ONE / sample->ended);
	bool steady = window->phase == FLOW_STEADY;

	measure_rate(window);
	if (window->phase == FLOW_CUT) {
		judge_cut(window, share, now);
		return;
	}
	if (is_losing(window)) {
		cut_window(window, share, now);
		return;
	}
	forget_losses(window);
	if (sample->full && !steady)
		judge_growth(window, now);
	else if (sample->full && now >= window->grows_at)
		grow_window(window, now);
	else
		begin_phase(window, FLOW_STEADY, steady ? window->size : window->grown, now);
}

void window_restart(struct flow_window *window, int64_t now)
{
	if (!window->fixed)
		begin_phase(window, FLOW_STEADY,
			    window->phase == FLOW_CUT ? window->before : window->size, now);
}

void window_judge_sample(struct flow_window *window, int64_t now)
{
	const struct flow_sample *sample = &window->sample;

	if (window->fixed)
		return;
	if (sample->ended >= sample->enough) {
		judge_sample(window, now);
	} else if (window->phase == FLOW_GROWN && sample->sent == sample->planned &&
		   now - sample->sent_at > DOUBT * (int64_t)window->usual_us) {
		window->phase = FLOW_DOUBT;
		window->size = window->before;
	}
}
