/* SPDX-License-Identifier: BSD-2-Clause */

/* Tries fixed settings: the best of a grid of windows and destination limits. */

#include "judge.h"

#include <string.h>

#define POLITE 0.01 /* the share of the transmissions that a setting may drop */
/* More drops than that abort a run, however few MADs were sent. */
#define FEW    5

static const unsigned windows[] = {128, 512, 32, 2048, 8};
static const unsigned limits[] = {1, 4, 16};

double share_dropped(const struct result *result)
{
	return result->transmissions ? (double)result->dropped / result->transmissions : 0;
}

double ratio_to(const struct fabric *fabric, double time, double best)
{
	return time / (best + 10e-6 * fabric_median_rtt_us(fabric) + 0.001);
}

static void take_polite(struct best *best, const struct setting *setting,
			const struct result *result)
{
	bool first = !best->polite;

	best->polite = true;
	if (first || (result->t99 > 0 && result->t99 < best->t99)) {
		best->t99 = result->t99;
		best->for_99 = *setting;
		best->dropped = share_dropped(result);
	}
	if (first || (!result->aborted && result->tall < best->tall))
		best->tall = result->tall;
}

static void take_least(struct best *best, const struct setting *setting,
		       const struct result *result)
{
	if (best->for_99.window && share_dropped(result) >= best->dropped)
		return;
	*best = (struct best){
		.t99 = result->t99,
		.tall = result->tall,
		.for_99 = *setting,
		.dropped = share_dropped(result),
	};
}

static void try_setting(const struct fabric *fabric, const struct setting *setting,
			struct best *best)
{
	unsigned all = fabric->requests * host_count(fabric);
	struct run_options options = {
		.window = setting->window, .limit = setting->limit, .quick = true};
	struct result result;

	if (best->polite)
		options.abort_at = (int64_t)(best->tall * 1e9);
	if (best->polite)
		options.most_dropped = (unsigned)(POLITE * all) + FEW;
	else if (best->for_99.window)
		options.most_dropped = (unsigned)(2 * best->dropped * all) + FEW;
	run(fabric, &options, &result);
	if (*result.broken) {
		if (!*best->broken)
			memcpy(best->broken, result.broken, sizeof(best->broken));
		return;
	}
	if (share_dropped(&result) <= POLITE && (best->polite || !result.aborted))
		take_polite(best, setting, &result);
	else if (!best->polite && !result.aborted)
		take_least(best, setting, &result);
}

void best_find(const struct fabric *fabric, struct best *best)
{
	memset(best, 0, sizeof(*best));
	for (size_t limit = 0; limit < sizeof(limits) / sizeof(*limits); limit++) {
		if (limits[limit] > 1 && fabric->requests <= fabric->nodes)
			break;
		for (size_t window = 0; window < sizeof(windows) / sizeof(*windows); window++)
			if (windows[window] >= limits[limit])
				try_setting(fabric,
					    &(struct setting){windows[window], limits[limit]},
					    best);
	}
}
