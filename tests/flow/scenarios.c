/* SPDX-License-Identifier: BSD-2-Clause */

/* Measures the named scenarios. */

#include "scenarios.h"

#include "best.h"
#include "workers.h"

#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND    (1000 * MS)
#define LINE      200
#define MOST_ROWS 128

struct outcome {
	bool done, beyond;
	double known; /* the figure is beyond its bound, but at most this; 0: it is not */
	char text[LINE];
	char broken[SENTENCE];
	/* the best setting, to be saved */
	bool has_best;
	struct best best;
};

static const struct run_options defaults;

static void note_broken(struct outcome *outcome, const char *broken)
{
	if (*broken && !*outcome->broken)
		snprintf(outcome->broken, sizeof(outcome->broken), "%s", broken);
}

/* Judges a figure. */
static void compare(struct outcome *outcome, double figure, double bound, double known)
{
	if (figure <= bound)
		return;
	if (figure > known)
		outcome->beyond = true;
	else
		outcome->known = known;
}

/* --- beside the best fixed setting ---------------------------------------------- */

static void beside_best(const struct scenario *scenario, struct outcome *outcome)
{
	const struct fabric *fabric = &scenario->fabric;
	struct best *best = &outcome->best;
	double ratio_99, ratio_all, dropped;
	struct result result;

	if (!best_cached(fabric, best))
		best_find(fabric, best);
	outcome->has_best = true;
	run(fabric, &defaults, &result);
	ratio_99 = ratio_to(fabric, result.t99, best->t99);
	ratio_all = ratio_to(fabric, result.tall, best->tall);
	dropped = 100 * share_dropped(&result);
	compare(outcome, ratio_99, scenario->bound, scenario->known);
	compare(outcome, ratio_all, scenario->bound, scenario->known);
	compare(outcome, dropped, scenario->most_dropped, scenario->known_dropped);
	snprintf(outcome->text, sizeof(outcome->text),
		 "%7.4f /%7.4f =%6.2f %8.4f /%8.4f =%6.2f %5.2f%% (%.2f%%) %5.3f  %u,%u",
		 result.t99, best->t99, ratio_99, result.tall, best->tall, ratio_all, dropped,
		 100 * best->dropped, (double)result.transmissions / result.requests,
		 best->for_99.window, best->for_99.limit);
	note_broken(outcome, result.broken);
	note_broken(outcome, best->broken);
}

/* --- recovery ------------------------------------------------------------------- */

#define LEAST_RECOVERY SECOND
#define ROUND_TRIPS    50

/* The end of the last trouble. */
static int64_t end_of_troubles(const struct fabric *fabric)
{
	double end = 0;

	for (unsigned i = 0; i < MOST_TROUBLES; i++)
		if (fabric->troubles[i].at_ms + fabric->troubles[i].ms > end)
			end = fabric->troubles[i].at_ms + fabric->troubles[i].ms;
	return (int64_t)(end * MS);
}

/* The fabric after its troubles, from the start on. */
static struct fabric fabric_afterwards(struct fabric fabric)
{
	for (unsigned i = 0; i < MOST_TROUBLES; i++)
		if (fabric.troubles[i].kind == STEP)
			fabric.troubles[i].at_ms = 0;
		else
			fabric.troubles[i] = (struct trouble){0};
	return fabric;
}

static double factor_of(const struct fabric *fabric)
{
	double factor = 1;

	for (unsigned i = 0; i < MOST_TROUBLES; i++)
		if (fabric->troubles[i].kind == STEP)
			factor *= fabric->troubles[i].factor;
	return factor;
}

/* Responses a second from a time on, for some time. */
static double rate(int64_t from, int64_t ns)
{
	unsigned responses = 0;

	for (int64_t at = from; at < from + ns; at += INTERVAL)
		responses += account_responses((unsigned)(at / INTERVAL));
	return responses * ((double)SECOND / (double)ns);
}

static void start_chains(const struct fabric *fabric)
{
	run_start(fabric, &defaults);
	run_submit(fabric->open);
	run_until(NO_TIME);
}

/* Seconds after the troubles until four fifths of a rate are reached, for 100 ms; or -1. */
static double reached_after(int64_t after, double fresh)
{
	for (int64_t at = after; at < after + 10 * SECOND; at += INTERVAL)
		if (rate(at, SECOND / 10) >= 0.8 * fresh)
			return (double)(at - after) / SECOND;
	return -1;
}

static void recovery(const struct scenario *scenario, struct outcome *outcome)
{
	const struct fabric *fabric = &scenario->fabric;
	struct fabric afterwards = fabric_afterwards(*fabric);
	int64_t end = end_of_troubles(fabric), wait = LEAST_RECOVERY, round_trips;
	double fresh, recovered, after;
	struct result result;

	round_trips =
		(int64_t)(ROUND_TRIPS * fabric_median_rtt_us(fabric) * factor_of(fabric) * US);
	if (round_trips > wait)
		wait = round_trips;
	start_chains(&afterwards);
	fresh = rate(wait, SECOND);
	run_end(&result);
	note_broken(outcome, result.broken);
	start_chains(fabric);
	recovered = rate(end + wait, SECOND);
	after = reached_after(end, fresh);
	run_end(&result);
	note_broken(outcome, result.broken);
	outcome->beyond = recovered * scenario->bound < fresh;
	snprintf(outcome->text, sizeof(outcome->text),
		 "%.0f a second %.2f s afterwards, fresh %.0f: %.2f; 80 %% %s %.2f s",
		 recovered, (double)wait / SECOND, fresh, recovered / fresh,
		 after < 0 ? "never:" : "after", after);
}

/* --- a window that is seldom used ----------------------------------------------- */

static void idle(const struct scenario *scenario, struct outcome *outcome)
{
	struct fabric fabric = scenario->fabric;
	unsigned before, after, few = 300;
	struct result result;

	fabric.requests += few;
	run_start(&fabric, &defaults);
	run_submit(scenario->fabric.requests);
	run_until(NO_TIME);
	before = run_window();
	for (unsigned i = 0; i < few; i++) {
		run_submit(1);
		run_until(model_now() + SECOND / 10);
	}
	after = run_window();
	run_end(&result);
	note_broken(outcome, result.broken);
	outcome->beyond = before > scenario->bound * after;
	snprintf(outcome->text, sizeof(outcome->text), "window %u before, %u after", before,
		 after);
}

/* --- dead nodes ----------------------------------------------------------------- */

static void whole_time(const struct scenario *scenario, struct outcome *outcome)
{
	struct result result;

	run(&scenario->fabric, &defaults, &result);
	note_broken(outcome, result.broken);
	outcome->beyond = result.end > scenario->bound;
	snprintf(outcome->text, sizeof(outcome->text),
		 "%.3f s (bound %.1f), %.4f s for 99 %% of the living", result.end,
		 scenario->bound, result.t99);
}

#define LIVING_SEEDS 20

static void living(const struct scenario *scenario, struct outcome *outcome)
{
	struct fabric fabric = scenario->fabric;
	struct result result;
	double worst = 0;

	for (unsigned i = 0; i < LIVING_SEEDS; i++) {
		fabric.seed = i + 1;
		run(&fabric, &defaults, &result);
		note_broken(outcome, result.broken);
		if (result.tall > worst)
			worst = result.tall;
	}
	compare(outcome, worst, scenario->bound, scenario->known);
	snprintf(outcome->text, sizeof(outcome->text), "%.3f s (bound %.2f)", worst,
		 scenario->bound);
}

#define MOST_PROBES  200 /* MADs a second */
#define BEFORE_PROBE (SECOND / 10)

/* The most MADs that were written in any second after the beginning. */
static unsigned most_written(void)
{
	const unsigned first = (unsigned)(BEFORE_PROBE / INTERVAL), second = SECOND / INTERVAL;
	unsigned most = 0, sum = 0;

	for (unsigned i = first; i < INTERVALS; i++) {
		sum += account_written_in(i);
		if (i >= first + second)
			sum -= account_written_in(i - second);
		if (sum > most)
			most = sum;
	}
	return most;
}

static void probing(const struct scenario *scenario, struct outcome *outcome)
{
	struct result result;
	unsigned most;

	run_start(&scenario->fabric, &defaults);
	run_submit(scenario->fabric.requests);
	run_until(NO_TIME);
	most = most_written();
	run_end(&result);
	note_broken(outcome, result.broken);
	outcome->beyond = result.end > scenario->bound || most > MOST_PROBES;
	snprintf(outcome->text, sizeof(outcome->text),
		 "%.1f s (bound %.0f), at most %u MADs a second (bound %u), %u in all",
		 result.end, scenario->bound, most, MOST_PROBES, result.transmissions);
}

/* --- the other measures --------------------------------------------------------- */

static int compare_doubles(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;

	return one < other ? -1 : one > other;
}

/*
 * Which host finds the queue full, and when, is chance: one seed says little.
 */
#define HOST_SEEDS 9
#define END_SEEDS  100

/* The slowest host to the median. */
static double slowest_host(const struct fabric *fabric, struct result *result)
{
	unsigned count = fabric->hosts;

	run(fabric, &defaults, result);
	qsort(result->host_tall, count, sizeof(*result->host_tall), compare_doubles);
	return result->host_tall[count - 1] * 2 /
	       (result->host_tall[(count - 1) / 2] + result->host_tall[count / 2]);
}

static void hosts(const struct scenario *scenario, struct outcome *outcome)
{
	struct fabric fabric = scenario->fabric;
	double ratios[HOST_SEEDS], dropped = 0;
	struct result result;

	for (unsigned i = 0; i < HOST_SEEDS; i++) {
		fabric.seed = i + 1;
		ratios[i] = slowest_host(&fabric, &result);
		dropped += 100 * share_dropped(&result) / HOST_SEEDS;
		note_broken(outcome, result.broken);
	}
	qsort(ratios, HOST_SEEDS, sizeof(*ratios), compare_doubles);
	compare(outcome, ratios[HOST_SEEDS / 2], scenario->bound, scenario->known);
	snprintf(outcome->text, sizeof(outcome->text),
		 "the slowest to the median: %.2f, worst of %u seeds %.2f; %.2f %% dropped",
		 ratios[HOST_SEEDS / 2], HOST_SEEDS, ratios[HOST_SEEDS - 1], dropped);
}

static void one_each(const struct scenario *scenario, struct outcome *outcome)
{
	const struct run_options one = {.limit = 1};
	struct result result;

	run(&scenario->fabric, &one, &result);
	note_broken(outcome, result.broken);
	outcome->beyond = result.crowded > scenario->bound;
	snprintf(outcome->text, sizeof(outcome->text),
		 "%u requests were sent to a node that had one; %.3f s", result.crowded,
		 result.end);
}

/*
 * Random fabrics, half of which are dead, with attempts of random length and number. The
 * account says whether a request ended late.
 */
static void ends(const struct scenario *scenario, struct outcome *outcome)
{
	struct result result;
	struct fabric fabric;

	for (unsigned i = 0; i < END_SEEDS; i++) {
		uint64_t random = scenario->fabric.seed + i;

		fabric_draw(&fabric, random);
		fabric.attempts = 1 + (unsigned)(random_next(&random) % 5);
		fabric.timeout_ms = 20 + (unsigned)(random_next(&random) % 300);
		fabric.requests = scenario->fabric.requests;
		if (random_next(&random) % 2)
			fabric.dead_share = 1;
		run(&fabric, &defaults, &result);
		note_broken(outcome, result.broken);
	}
	snprintf(outcome->text, sizeof(outcome->text), "%u random fabrics", END_SEEDS);
}

static void calls(const struct scenario *scenario, struct outcome *outcome)
{
	const struct fabric *fabric = &scenario->fabric;
	struct result result;
	double usual;

	run(fabric, &defaults, &result);
	note_broken(outcome, result.broken);
	usual = fabric->requests * fabric_median_rtt_us(fabric) * 1e-6;
	outcome->beyond = result.end > scenario->bound * usual || result.failed;
	snprintf(outcome->text, sizeof(outcome->text), "%.3f s, round trips %.3f s: %.2f",
		 result.end, usual, result.end / usual);
}

static void seconds(const struct scenario *scenario, struct outcome *outcome)
{
	struct result result;

	run(&scenario->fabric, &defaults, &result);
	note_broken(outcome, result.broken);
	snprintf(outcome->text, sizeof(outcome->text), "%.3f s for 99 %%, %.3f s for all",
		 result.t99, result.tall);
}

static double processor_us(const struct fabric *fabric)
{
	struct timespec from, to;
	struct result result;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	run(fabric, &defaults, &result);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	return ((double)(to.tv_sec - from.tv_sec) * 1e6 +
		(double)(to.tv_nsec - from.tv_nsec) / 1e3) /
	       fabric->requests;
}

/* Never a failure: it depends on the machine. */
static void processor(const struct scenario *scenario, struct outcome *outcome)
{
	struct fabric few = scenario->fabric;
	double us_of_few, us;

	few.requests = 10000;
	/* the memory of the first run is not returned to the system */
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
	mallopt(M_MMAP_THRESHOLD, INT_MAX);
	processor_us(&scenario->fabric);
	us = processor_us(&scenario->fabric);
	us_of_few = processor_us(&few);
	snprintf(outcome->text, sizeof(outcome->text),
		 "%.2f us a request, with 10,000 %.2f us: %.2f (should be below %.1f)", us,
		 us_of_few, us / us_of_few, scenario->bound);
}

/* --- all scenarios -------------------------------------------------------------- */

static const struct scenario *chosen[MOST_ROWS];

static void measure(unsigned job, void *result)
{
	static void (*const measures[])(const struct scenario *, struct outcome *) = {
		[BESIDE_BEST] = beside_best,
		[RECOVERY] = recovery,
		[IDLE] = idle,
		[LIVING] = living,
		[WHOLE_TIME] = whole_time,
		[PROBING] = probing,
		[HOSTS] = hosts,
		[ONE_EACH] = one_each,
		[ENDS] = ends,
		[CALLS] = calls,
		[SECONDS] = seconds,
		[PROCESSOR] = processor,
	};
	struct outcome *outcome = result;

	measures[chosen[job]->measure](chosen[job], outcome);
	outcome->done = true;
}

static void tell_crash(unsigned job, const char *why)
{
	printf("%s: the run %s\n", chosen[job]->name, why);
}

static unsigned print_outcome(const struct scenario *scenario, const struct outcome *outcome)
{
	bool failed = !outcome->done || outcome->beyond || *outcome->broken;

	if (outcome->has_best)
		best_save(&scenario->fabric, &outcome->best);
	printf("%-33s %s", scenario->name, outcome->text);
	if (failed)
		printf("  BEYOND");
	else if (outcome->known > 0)
		printf("  beyond, known: at most %.1f", outcome->known);
	printf("\n");
	if (*outcome->broken)
		printf("    VIOLATED: %s\n", outcome->broken);
	return failed;
}

void scenarios_list(void)
{
	char words[400];

	for (unsigned i = 0; i < scenario_count; i++) {
		fabric_words(&scenarios[i].fabric, words, sizeof(words));
		printf("%-33s %s\n", scenarios[i].name, words);
	}
}

static bool has_name(const struct scenario *scenario, const char *name)
{
	return !name || !strncmp(scenario->name, name, strlen(name));
}

const struct fabric *scenario_fabric(const char *name)
{
	for (unsigned i = 0; i < scenario_count; i++)
		if (has_name(&scenarios[i], name))
			return &scenarios[i].fabric;
	return NULL;
}

unsigned judge_scenarios(const char *name, unsigned processes)
{
	struct outcome *outcomes;
	unsigned count = 0, failed = 0;

	for (unsigned i = scenario_count; i-- && count < MOST_ROWS;)
		if (has_name(&scenarios[i], name))
			chosen[count++] = &scenarios[i];
	if (!count) {
		fprintf(stderr, "flow_judge: no scenario has this name\n");
		return 1;
	}
	/* the longest ones are the last in the table, and begin first */
	outcomes = workers_run(count, processes, sizeof(*outcomes), measure, tell_crash);
	printf("%-33s %-25s %-26s %s\n", "scenario: defaults / best fixed", "99 %, seconds",
	       "all, seconds", "dropped (best) MADs a request, window,limit");
	for (unsigned i = count; i--;)
		failed += print_outcome(chosen[i], &outcomes[i]);
	workers_free(outcomes, count, sizeof(*outcomes));
	return failed;
}
