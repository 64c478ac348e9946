/* SPDX-License-Identifier: BSD-2-Clause */

/* Measures the named scenarios. */

#include "judge.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void note_broken(struct outcome *outcome, const char *broken)
{
	if (*broken && !*outcome->broken)
		memcpy(outcome->broken, broken, sizeof(outcome->broken));
}

static void run_and_note(const struct fabric *fabric, struct outcome *outcome,
			 struct result *result)
{
	run(fabric, &defaults, result);
	note_broken(outcome, result->broken);
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

static void __attribute__((format(printf, 2, 3)))
say(struct outcome *outcome, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(outcome->text, sizeof(outcome->text), format, arguments);
	va_end(arguments);
}

/* --- beside the best fixed setting ---------------------------------------------- */

void beside_best(const struct scenario *scenario, struct outcome *outcome)
{
	const struct fabric *fabric = &scenario->fabric;
	double ratio_99, ratio_all, dropped;
	struct result result;
	struct best best;

	best_find(fabric, &best);
	run_and_note(fabric, outcome, &result);
	note_broken(outcome, best.broken);
	ratio_99 = ratio_to(fabric, result.t99, best.t99);
	ratio_all = ratio_to(fabric, result.tall, best.tall);
	dropped = 100 * share_dropped(&result);
	compare(outcome, ratio_99, scenario->bound, scenario->known);
	compare(outcome, ratio_all, scenario->bound, scenario->known);
	compare(outcome, dropped, scenario->most_dropped, scenario->known_dropped);
	say(outcome, "%7.4f /%7.4f =%6.2f %8.4f /%8.4f =%6.2f %5.2f%% (%.2f%%) %5.3f  %u,%u",
	    result.t99, best.t99, ratio_99, result.tall, best.tall, ratio_all, dropped,
	    100 * best.dropped, (double)result.transmissions / result.requests,
	    best.for_99.window, best.for_99.limit);
}

/* --- recovery ------------------------------------------------------------------- */

#define LEAST_RECOVERY SECOND
#define ROUND_TRIPS    50

/* Responses a second from a time on, for some time. */
static double rate(int64_t from, int64_t ns)
{
	unsigned responses = 0;

	for (int64_t i = 0; i < ns / INTERVAL && from / INTERVAL + i < INTERVALS; i++)
		responses += tally.responses[from / INTERVAL + i];
	return responses * ((double)SECOND / (double)ns);
}

/* Seconds after the troubles until four fifths of a rate are reached, for 100 ms; or -1. */
static double reached_after(int64_t after, double fresh)
{
	for (int64_t at = after; at < after + 10 * SECOND; at += INTERVAL)
		if (rate(at, SECOND / 10) >= 0.8 * fresh)
			return (double)(at - after) / SECOND;
	return -1;
}

/* Runs requests, and does not close the account. */
static void run_open(const struct fabric *fabric, unsigned count)
{
	run_start(fabric, &defaults);
	run_submit(count);
	run_until(NO_TIME);
}

void recovery(const struct scenario *scenario, struct outcome *outcome)
{
	const struct fabric *fabric = &scenario->fabric;
	double fresh, recovered, after, end_ms = 0, factor = 1;
	struct fabric afterwards = *fabric; /* from the start on */
	int64_t wait = LEAST_RECOVERY, round_trips, end;
	struct result result;

	for (unsigned i = 0; i < MOST_TROUBLES; i++) {
		struct trouble *trouble = &afterwards.troubles[i];

		if (trouble->at_ms + trouble->ms > end_ms)
			end_ms = trouble->at_ms + trouble->ms;
		if (trouble->kind == STEP) {
			factor *= trouble->factor;
			trouble->at_ms = 0;
		} else {
			*trouble = (struct trouble){0};
		}
	}
	end = (int64_t)(end_ms * MS);
	round_trips = (int64_t)(ROUND_TRIPS * fabric_median_rtt_us(fabric) * factor * US);
	if (round_trips > wait)
		wait = round_trips;
	run_open(&afterwards, fabric->open);
	fresh = rate(wait, SECOND);
	run_end(&result);
	note_broken(outcome, result.broken);
	run_open(fabric, fabric->open);
	recovered = rate(end + wait, SECOND);
	after = reached_after(end, fresh);
	run_end(&result);
	note_broken(outcome, result.broken);
	outcome->beyond = recovered * scenario->bound < fresh;
	say(outcome, "%.0f a second %.2f s afterwards, fresh %.0f: %.2f; 80 %% %s %.2f s",
	    recovered, (double)wait / SECOND, fresh, recovered / fresh,
	    after < 0 ? "never:" : "after", after);
}

/* --- a window that is seldom used ----------------------------------------------- */

void idle(const struct scenario *scenario, struct outcome *outcome)
{
	struct fabric fabric = scenario->fabric;
	unsigned before, after, few = 300;
	struct result result;

	fabric.requests += few;
	run_open(&fabric, scenario->fabric.requests);
	before = run_window();
	for (unsigned i = 0; i < few; i++) {
		run_submit(1);
		run_until(model_now() + SECOND / 10);
	}
	after = run_window();
	run_end(&result);
	note_broken(outcome, result.broken);
	outcome->beyond = before > scenario->bound * after;
	say(outcome, "window %u before, %u after", before, after);
}

/* --- dead nodes ----------------------------------------------------------------- */

void whole_time(const struct scenario *scenario, struct outcome *outcome)
{
	struct result result;

	run_and_note(&scenario->fabric, outcome, &result);
	outcome->beyond = result.end > scenario->bound;
	say(outcome, "%.3f s (bound %.1f), %.4f s for 99 %% of the living", result.end,
	    scenario->bound, result.t99);
}

#define LIVING_SEEDS 20

void living(const struct scenario *scenario, struct outcome *outcome)
{
	struct fabric fabric = scenario->fabric;
	struct result result;
	double worst = 0;

	for (unsigned i = 0; i < LIVING_SEEDS; i++) {
		fabric.seed = i + 1;
		run_and_note(&fabric, outcome, &result);
		if (result.tall > worst)
			worst = result.tall;
	}
	compare(outcome, worst, scenario->bound, scenario->known);
	say(outcome, "%.3f s (bound %.2f)", worst, scenario->bound);
}

#define MOST_PROBES  200 /* MADs a second */
#define BEFORE_PROBE (SECOND / 10)

/* The most MADs that were written in any second after the beginning. */
static unsigned most_written(void)
{
	const unsigned first = (unsigned)(BEFORE_PROBE / INTERVAL), second = SECOND / INTERVAL;
	unsigned most = 0, sum = 0;

	for (unsigned i = first; i < INTERVALS; i++) {
		sum += tally.written[i];
		if (i >= first + second)
			sum -= tally.written[i - second];
		if (sum > most)
			most = sum;
	}
	return most;
}

void probing(const struct scenario *scenario, struct outcome *outcome)
{
	struct result result;
	unsigned most;

	run_open(&scenario->fabric, scenario->fabric.requests);
	most = most_written();
	run_end(&result);
	note_broken(outcome, result.broken);
	outcome->beyond = result.end > scenario->bound || most > MOST_PROBES;
	say(outcome, "%.1f s (bound %.0f), at most %u MADs a second (bound %u), %u in all",
	    result.end, scenario->bound, most, MOST_PROBES, result.transmissions);
}

/* --- the other measures --------------------------------------------------------- */

/* Which host finds the queue full, and when, is chance: one seed says little. */
#define HOST_SEEDS 9
#define END_SEEDS  100

void hosts(const struct scenario *scenario, struct outcome *outcome)
{
	struct fabric fabric = scenario->fabric;
	double ratios[HOST_SEEDS], dropped = 0, *times;
	struct result result;

	times = result.host_tall;
	for (unsigned i = 0; i < HOST_SEEDS; i++) {
		fabric.seed = i + 1;
		run_and_note(&fabric, outcome, &result);
		qsort(times, fabric.hosts, sizeof(*times), compare_doubles);
		ratios[i] = times[fabric.hosts - 1] * 2 /
			    (times[(fabric.hosts - 1) / 2] + times[fabric.hosts / 2]);
		dropped += 100 * share_dropped(&result) / HOST_SEEDS;
	}
	qsort(ratios, HOST_SEEDS, sizeof(*ratios), compare_doubles);
	compare(outcome, ratios[HOST_SEEDS / 2], scenario->bound, scenario->known);
	say(outcome, "the slowest to the median: %.2f, worst of %u seeds %.2f; %.2f %% dropped",
	    ratios[HOST_SEEDS / 2], HOST_SEEDS, ratios[HOST_SEEDS - 1], dropped);
}

/*
 * Random fabrics, half of which are dead, with attempts of random length and number. The
 * account says whether a request ended late.
 */
void ends(const struct scenario *scenario, struct outcome *outcome)
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
		run_and_note(&fabric, outcome, &result);
	}
	say(outcome, "%u random fabrics", END_SEEDS);
}

/* --- all scenarios -------------------------------------------------------------- */

/* The longest ones are the last in the table, and begin first. */
static const struct scenario *scenario_of(unsigned job)
{
	return &scenarios[scenario_count - 1 - job];
}

static const char *chosen;

static bool is_chosen(const struct scenario *scenario)
{
	return !chosen || !strncmp(scenario->name, chosen, strlen(chosen));
}

static void measure(unsigned job, void *result)
{
	struct outcome *outcome = result;

	if (is_chosen(scenario_of(job)))
		scenario_of(job)->measure(scenario_of(job), outcome);
	outcome->done = true;
}

static unsigned print_outcome(const struct scenario *scenario, const struct outcome *outcome)
{
	bool failed = !outcome->done || outcome->beyond || *outcome->broken;

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

unsigned judge_scenarios(const char *name)
{
	unsigned count = 0, failed = 0;
	struct outcome *outcomes;

	chosen = name;
	outcomes = run_jobs(scenario_count, sizeof(*outcomes), measure);
	printf("%-33s %-25s %-26s %s\n", "scenario: defaults / best fixed", "99 %, seconds",
	       "all, seconds", "dropped (best) MADs a request, window,limit");
	for (unsigned i = scenario_count; i--;)
		if (is_chosen(scenario_of(i))) {
			count++;
			failed += print_outcome(scenario_of(i), &outcomes[i]);
		}
	if (!count)
		fprintf(stderr, "flow_judge: no scenario has this name\n");
	return count ? failed : 1;
}
