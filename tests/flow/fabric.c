/* SPDX-License-Identifier: BSD-2-Clause */

/* Draws fabrics and their nodes from seeds. */

#include "fabric.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_HOPS       6
#define SLOW_FACTOR    100
#define LEAST_REQUESTS 1000

/* --- drawing a fabric ----------------------------------------------------------- */

/* Between two bounds, logarithmically. */
static double draw(uint64_t *random, double least, double most)
{
	return least * pow(most / least, random_unit(random));
}

static unsigned draw_integer(uint64_t *random, unsigned least, unsigned most)
{
	unsigned value = (unsigned)draw(random, least, most + 1);

	return value > most ? most : value;
}

static bool chance(uint64_t *random, double share)
{
	return random_unit(random) < share;
}

static unsigned choose(uint64_t *random, unsigned count)
{
	return (unsigned)(random_next(random) % count);
}

static void draw_nodes(struct fabric *fabric, uint64_t *random)
{
	fabric->nodes = draw_integer(random, 100, 2000);
	fabric->layout = choose(random, 4);
	fabric->rtt_us = draw(random, 20, 3000);
	if (fabric->layout == NEAR_FAR) {
		fabric->near_share = chance(random, 0.5) ? 0 : draw(random, 0.001, 0.3);
		fabric->far = draw(random, 2, 30);
	}
	fabric->jitter = chance(random, 0.5) ? 0.05 : 0.4;
	fabric->service_us = draw(random, 2, 100);
	if (chance(random, 0.25)) {
		fabric->slow_share = draw(random, 0.002, 0.05);
		fabric->slow = SLOW_FACTOR;
	}
	fabric->buffer = chance(random, 0.5) ? draw_integer(random, 1, 8) : 0;
	if (chance(random, 0.3))
		fabric->dead_share = draw(random, 0.003, 0.05);
	if (chance(random, 0.15))
		fabric->stop_ms = draw(random, 5, 150);
}

static void draw_links(struct fabric *fabric, uint64_t *random)
{
	if (chance(random, 0.5)) {
		fabric->shared = chance(random, 0.5)   ? EVERY_NODE
				 : chance(random, 0.5) ? FIRST_HALF
						       : INTERLEAVED;
		fabric->places = draw_integer(random, 8, 256);
		fabric->queue_us = draw(random, 3, 40);
	}
	if (chance(random, 0.3))
		fabric->loss = draw(random, 0.0002, 0.03);
}

static void draw_trouble(struct trouble *trouble, uint64_t *random)
{
	if (!chance(random, 0.4))
		return;
	trouble->at_ms = draw(random, 5, 200);
	if (chance(random, 0.5)) {
		trouble->kind = LOSS;
		trouble->share = chance(random, 0.5) ? 1 : 0.25;
		trouble->ms = draw(random, 5, 300);
	} else {
		trouble->kind = STEP;
		trouble->factor = draw(random, 0.1, 20);
	}
}

void fabric_draw(struct fabric *fabric, uint64_t seed)
{
	static const unsigned each[] = {1, 4, 13};
	uint64_t random = seed * UINT64_C(0x2545f4914f6cdd1d);

	*fabric = (struct fabric){.seed = seed, .attempts = 3, .timeout_ms = 1000};
	draw_nodes(fabric, &random);
	draw_links(fabric, &random);
	draw_trouble(&fabric->troubles[0], &random);
	fabric->kind = chance(&random, 0.5) ? SMP : GMP;
	fabric->requests = fabric->nodes * each[choose(&random, 3)];
	if (fabric->requests < LEAST_REQUESTS)
		fabric->requests = LEAST_REQUESTS;
}

/* --- the nodes ------------------------------------------------------------------ */

static double draw_rtt(const struct fabric *fabric, unsigned node, uint64_t *random)
{
	bool is_near = fabric->near_share > 0 ? chance(random, fabric->near_share) : node == 0;

	switch (fabric->layout) {
	case HOPS:
		return fabric->rtt_us * (1 + choose(random, MAX_HOPS)) / 3.5;
	case NEAR_FAR:
		return is_near ? fabric->rtt_us : fabric->rtt_us * fabric->far;
	case VARIED:
		return draw(random, fabric->rtt_us / 4, fabric->rtt_us * 4);
	case ALIKE:
		break;
	}
	return fabric->rtt_us;
}

static bool is_shared(const struct fabric *fabric, unsigned node)
{
	switch (fabric->shared) {
	case EVERY_NODE:
		return true;
	case FIRST_HALF:
		return node < fabric->nodes / 2;
	case INTERLEAVED:
		return node % 2 == 0;
	case NOBODY:
		break;
	}
	return false;
}

struct node_facts fabric_node(const struct fabric *fabric, unsigned node)
{
	uint64_t random = fabric->seed * UINT64_C(0xd1342543de82ef95) + node;
	struct node_facts facts = {.shared = is_shared(fabric, node)};

	random_next(&random);
	facts.rtt_us = draw_rtt(fabric, node, &random);
	if (node < MOST_DELAYS)
		facts.rtt_us += 1000 * fabric->delay_ms[node];
	facts.service_us = fabric->service_us;
	if (chance(&random, fabric->slow_share))
		facts.service_us *= fabric->slow;
	facts.dead = chance(&random, fabric->dead_share) || node < fabric->dead_first;
	facts.busy = node < fabric->busy_first;
	facts.phase_ms = 1000 * random_unit(&random);
	for (unsigned i = 0; i < MOST_TROUBLES; i++)
		if (fabric->troubles[i].kind == DEATHS)
			facts.dies = chance(&random, fabric->troubles[i].share);
	return facts;
}

int compare_doubles(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;

	return one < other ? -1 : one > other;
}

double fabric_median_rtt_us(const struct fabric *fabric)
{
	double *all = malloc(fabric->nodes * sizeof(*all)), median;

	for (unsigned i = 0; i < fabric->nodes; i++) {
		struct node_facts facts = fabric_node(fabric, i);

		all[i] = facts.rtt_us + facts.service_us;
	}
	qsort(all, fabric->nodes, sizeof(*all), compare_doubles);
	median = all[fabric->nodes / 2];
	free(all);
	return median;
}

/* --- words ---------------------------------------------------------------------- */

void fabric_print(const struct fabric *f)
{
	static const char *const layouts[] = {"alike", "by hops", "near and far", "varied"};
	static const char *const parts[] = {"none", "all", "the first half", "every other one"};
	static const char *const troubles[] = {"", "lost", "round trips longer", "dead"};

	printf("%u nodes %s at %.0f us (far x%.0f, %.2g near) +-%.0f %%, service %.3g us (%.2g "
	       "x%.0f), buffer %u, %.2g dead, stop %.0f ms, queue of %u at %.3g us for %s, "
	       "path limit %u, loss %.2g",
	       f->nodes, layouts[f->layout], f->rtt_us, f->far, f->near_share, 100 * f->jitter,
	       f->service_us, f->slow_share, f->slow, f->buffer, f->dead_share, f->stop_ms,
	       f->places, f->queue_us, parts[f->shared], f->path_limit, f->loss);
	for (const struct trouble *trouble = f->troubles;
	     trouble < f->troubles + MOST_TROUBLES && trouble->kind; trouble++)
		printf(", after %.0f ms %s (%.2g, x%.2g) for %.0f ms", trouble->at_ms,
		       troubles[trouble->kind], trouble->share, trouble->factor, trouble->ms);
	printf("; %u requests\n", f->requests);
}
