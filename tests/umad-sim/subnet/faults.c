/* SPDX-License-Identifier: BSD-2-Clause */

/* Which faults are active and what they apply to. fault_text.c reads the text of rules. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "faults.h"

int faults_init(struct fabric *fabric)
{
	fabric->faults = calloc(1, sizeof(*fabric->faults));
	if (!fabric->faults)
		return -ENOMEM;
	fabric->faults->hits = calloc(fabric->graph.port_count + 1UL, sizeof(uint32_t));
	return fabric->faults->hits ? 0 : -ENOMEM;
}

void faults_free(struct fabric *fabric)
{
	struct faults *faults = fabric->faults;

	if (!faults)
		return;
	while (faults->pending) {
		struct pending_rule *next = faults->pending->next;

		timer_cancel(fabric, &faults->pending->timer);
		free(faults->pending);
		faults->pending = next;
	}
	free(faults->standing);
	free(faults->hits);
	free(faults);
	fabric->faults = NULL;
}

/* Returns the latest rule of a kind for this place, or NULL. */
static const struct standing_rule *in_force(const struct fabric *fabric, enum rule_kind kind,
					    uint32_t node, uint32_t port)
{
	const struct faults *faults = fabric->faults;

	for (size_t i = faults->count; i-- > 0;) {
		const struct standing_rule *rule = &faults->standing[i];

		if (rule->kind == kind && (rule->node == NONE || rule->node == node) &&
		    (rule->port == NONE || rule->port == port))
			return rule;
	}
	return NULL;
}

static uint64_t duration(const struct standing_rule *rule)
{
	return rule ? rule->time : 0;
}

/*
 * Whether a fault hits the current packet here. Each kind of fault has its own random numbers.
 */
static bool comes_true(const struct fabric *fabric, const struct standing_rule *rule,
		       uint32_t place, uint32_t nth)
{
	if (!rule || rule->chance == 0)
		return false;
	return (double)(fabric_hash(fabric, (uint64_t)rule->kind, place, nth) >> 11) * 0x1p-53 <
	       rule->chance;
}

/* A rule for a link may name either of its ends. */
static const struct standing_rule *on_link(const struct fabric *fabric, enum rule_kind kind,
					   uint32_t port)
{
	uint32_t peer = cable(fabric, port)->peer;
	const struct standing_rule *near =
		in_force(fabric, kind, cable(fabric, port)->node, port);
	const struct standing_rule *far =
		in_force(fabric, kind, cable(fabric, peer)->node, peer);

	if (!near || !far)
		return near ? near : far;
	return near > far ? near : far;
}

bool faults_on_link(struct fabric *fabric, uint32_t port, struct crossing *crossing)
{
	struct faults *faults = fabric->faults;
	const struct standing_rule *reorder;
	uint64_t drawn;
	uint32_t nth;

	if (!faults || !faults->on_links)
		return false;
	nth = faults->hits[port]++;
	crossing->delay = duration(on_link(fabric, RULE_HOP_LATENCY, port));
	crossing->lost = comes_true(fabric, on_link(fabric, RULE_LOSS, port), port, nth);
	crossing->duplicated =
		comes_true(fabric, on_link(fabric, RULE_DUPLICATE, port), port, nth);
	crossing->corrupted =
		comes_true(fabric, on_link(fabric, RULE_CORRUPT, port), port, nth);
	reorder = on_link(fabric, RULE_REORDER, port);
	crossing->reordered = comes_true(fabric, reorder, port, nth);
	if (crossing->reordered)
		crossing->delay += reorder->time;
	if (crossing->corrupted) {
		drawn = fabric_hash(fabric, 'c', port, nth);
		crossing->byte = (uint8_t)drawn;
		crossing->bits = (uint8_t)(1 + (drawn >> 8) % 255);
	}
	return crossing->lost || crossing->duplicated || crossing->corrupted ||
	       crossing->reordered;
}

uint32_t faults_errors(const struct fabric *fabric, uint32_t port)
{
	const struct standing_rule *rule = NULL;

	if (fabric->faults && fabric->faults->on_errors)
		rule = on_link(fabric, RULE_ERRORS, port);
	return rule ? rule->number : NO_LIMIT;
}

uint32_t faults_fec(const struct fabric *fabric, uint32_t port)
{
	const struct standing_rule *rule = NULL;

	if (fabric->faults && fabric->faults->on_errors)
		rule = on_link(fabric, RULE_FEC, port);
	return rule ? rule->number : 0;
}

uint32_t faults_fec_mode(const struct fabric *fabric, uint32_t port)
{
	const struct standing_rule *rule = NULL;

	if (fabric->faults)
		rule = in_force(fabric, RULE_FEC_MODE, cable(fabric, port)->node, port);
	return rule ? rule->number : NO_LIMIT;
}

/* Returns the rule of a kind for the training of a port's link, or NULL. */
static const struct standing_rule *on_training(const struct fabric *fabric, enum rule_kind kind,
					       uint32_t port)
{
	return fabric->faults && fabric->faults->on_training ? on_link(fabric, kind, port)
							     : NULL;
}

uint32_t faults_width(const struct fabric *fabric, uint32_t port)
{
	const struct standing_rule *rule = on_training(fabric, RULE_WIDTH, port);
	uint32_t most = cable(fabric, port)->most_width;

	return rule ? rule->number : most ? most : NO_LIMIT;
}

uint32_t faults_speed(const struct fabric *fabric, uint32_t port)
{
	const struct standing_rule *rule = on_training(fabric, RULE_SPEED, port);
	const struct graph_port *end = cable(fabric, port);

	return rule ? rule->number : end->most_width ? end->most_speed : NO_LIMIT;
}

/* Returns the later of the rules of two kinds for a node, or NULL. */
static const struct standing_rule *either(const struct fabric *fabric, enum rule_kind one,
					  enum rule_kind other, uint32_t node)
{
	const struct standing_rule *first = in_force(fabric, one, node, NONE);
	const struct standing_rule *second = in_force(fabric, other, node, NONE);

	if (!first || !second)
		return first ? first : second;
	return first > second ? first : second;
}

/* How long a request takes its processor, and how many may wait for it. */
static void judge_service(const struct fabric *fabric, uint32_t node, bool smp,
			  struct treatment *treatment)
{
	enum rule_kind time = smp ? RULE_SMP_TIME : RULE_SERVICE;
	enum rule_kind room = smp ? RULE_SMP_QUEUE : RULE_BUFFER;
	const struct standing_rule *buffer = either(fabric, room, RULE_BUFFER, node);

	treatment->service = duration(either(fabric, time, RULE_SERVICE, node));
	if (buffer)
		treatment->buffer = buffer->number;
}

void faults_on_node(struct fabric *fabric, uint32_t node, bool smp, struct treatment *treatment)
{
	struct faults *faults = fabric->faults;
	const struct standing_rule *redirect;
	uint32_t place = hardware(fabric, node)->first_port;

	*treatment = (struct treatment){.reaction = REACT_ANSWER, .buffer = NO_LIMIT};
	if (!faults || !faults->on_nodes)
		return;
	treatment->delay = duration(in_force(fabric, RULE_SLOW, node, NONE));
	if (in_force(fabric, RULE_SILENT, node, NONE)) {
		treatment->reaction = REACT_IGNORE;
		return;
	}
	judge_service(fabric, node, smp, treatment);
	redirect = smp ? NULL : in_force(fabric, RULE_REDIRECT, node, NONE);
	if (comes_true(fabric, in_force(fabric, RULE_BUSY, node, NONE), place,
		       faults->hits[place]++)) {
		treatment->reaction = REACT_BUSY;
	} else if (redirect) {
		treatment->reaction = REACT_REDIRECT;
		treatment->redirect_to = redirect->number;
	}
}

/* The number in a rule for a node; NO_LIMIT without a rule. */
static uint32_t limit_of(const struct fabric *fabric, enum rule_kind kind, uint32_t node)
{
	const struct standing_rule *limit = NULL;

	if (fabric->faults && fabric->faults->on_nodes)
		limit = in_force(fabric, kind, node, NONE);
	return limit ? limit->number : NO_LIMIT;
}

uint32_t faults_counters(const struct fabric *fabric, uint32_t node)
{
	return limit_of(fabric, RULE_COUNTERS, node);
}

uint32_t faults_original(const struct fabric *fabric, enum rule_kind kind, uint32_t node)
{
	uint32_t original = limit_of(fabric, kind, node);

	return original == NO_LIMIT ? node : original;
}

uint32_t faults_path_limit(const struct fabric *fabric, uint32_t node)
{
	return limit_of(fabric, RULE_PATH_LIMIT, node);
}

bool faults_master(const struct fabric *fabric, uint32_t node)
{
	return limit_of(fabric, RULE_MASTER, node) != NO_LIMIT;
}

bool faults_silent(const struct fabric *fabric, uint32_t node)
{
	return fabric->faults && fabric->faults->on_nodes &&
	       in_force(fabric, RULE_SILENT, node, NONE);
}

uint64_t faults_reroute(const struct fabric *fabric)
{
	const struct standing_rule *rule = NULL;

	if (fabric->faults && fabric->faults->on_nodes)
		rule = either(fabric, RULE_REROUTE, RULE_REROUTE_NEVER, NONE);
	if (!rule)
		return REROUTE_TIME;
	return rule->kind == RULE_REROUTE ? rule->time : NO_REROUTES;
}
