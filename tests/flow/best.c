/* SPDX-License-Identifier: BSD-2-Clause */

/* Tries fixed settings, and keeps the results in a file on request. */

#include "best.h"

#include <inttypes.h>
#include <stdlib.h>
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

/* --- the grid ------------------------------------------------------------------- */

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
	if (first || (!result->aborted && result->tall < best->tall)) {
		best->tall = result->tall;
		best->for_all = *setting;
	}
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
		.for_all = *setting,
		.dropped = share_dropped(result),
	};
}

static void try_setting(const struct fabric *fabric, const struct setting *setting,
			struct best *best)
{
	unsigned all = fabric->requests * (fabric->hosts ? fabric->hosts : 1);
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

/* --- the file ------------------------------------------------------------------- */

#define MOST_CACHED 20000

static struct {
	const char *path;
	FILE *added;
	struct line {
		uint64_t key;
		struct best best;
	} * lines;
	unsigned count;
} cache;

/* FNV-1a of the words, and of the seed: the same fabric has the same key. */
static uint64_t key_of(const struct fabric *fabric)
{
	uint64_t key = UINT64_C(0xcbf29ce484222325) ^ fabric->seed;
	char words[512] = "";

	fabric_words(fabric, words, sizeof(words));
	for (const char *at = words; *at; at++)
		key = (key ^ (uint8_t)*at) * UINT64_C(0x100000001b3);
	return key;
}

static bool read_line(FILE *file, struct line *line)
{
	struct best *best = &line->best;
	unsigned polite;

	memset(line, 0, sizeof(*line));
	if (fscanf(file, "%" SCNx64 " %u %lf %lf %u %u %u %u %lf", &line->key, &polite,
		   &best->t99, &best->tall, &best->for_99.window, &best->for_99.limit,
		   &best->for_all.window, &best->for_all.limit, &best->dropped) != 9)
		return false;
	best->polite = polite;
	return true;
}

void best_open_cache(const char *path)
{
	FILE *file = fopen(path, "r");

	cache.path = path;
	cache.lines = calloc(MOST_CACHED, sizeof(*cache.lines));
	while (file && cache.lines && cache.count < MOST_CACHED &&
	       read_line(file, &cache.lines[cache.count]))
		cache.count++;
	if (file)
		fclose(file);
	cache.added = fopen(path, "a");
	if (!cache.added)
		perror(path);
}

bool best_cached(const struct fabric *fabric, struct best *best)
{
	uint64_t key = cache.count ? key_of(fabric) : 0;

	for (unsigned i = 0; i < cache.count; i++)
		if (cache.lines[i].key == key) {
			*best = cache.lines[i].best;
			return true;
		}
	return false;
}

void best_save(const struct fabric *fabric, const struct best *best)
{
	struct best known;

	if (cache.added && !*best->broken && !best_cached(fabric, &known))
		fprintf(cache.added, "%" PRIx64 " %u %.9g %.9g %u %u %u %u %.9g\n",
			key_of(fabric), best->polite, best->t99, best->tall,
			best->for_99.window, best->for_99.limit, best->for_all.window,
			best->for_all.limit, best->dropped);
}

void best_close_cache(void)
{
	if (cache.added)
		fclose(cache.added);
	free(cache.lines);
	memset(&cache, 0, sizeof(cache));
}
