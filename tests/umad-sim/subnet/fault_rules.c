/* SPDX-License-Identifier: BSD-2-Clause */

/* Applies rules, at once or later. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counters.h"
#include "fault_rules.h"
#include "faults.h"
#include "links.h"
#include "printable.h"

/*
 * A later rule of the same kind for the same place replaces the earlier one, which would never
 * apply again. Otherwise a fabric that receives rules for days would search ever longer lists.
 */
static void drop_earlier(struct faults *faults, const struct standing_rule *rule)
{
	size_t kept = 0;

	for (size_t i = 0; i < faults->count; i++) {
		const struct standing_rule *earlier = &faults->standing[i];

		if (earlier->kind != rule->kind || earlier->node != rule->node ||
		    earlier->port != rule->port)
			faults->standing[kept++] = *earlier;
	}
	faults->count = kept;
}

/* Such a rule changes the counters of its links. */
static bool is_for_counters(enum rule_kind kind)
{
	return kind == RULE_ERRORS || kind == RULE_FEC;
}

/* Such a rule changes how its links train. */
static bool is_for_training(enum rule_kind kind)
{
	return kind == RULE_WIDTH || kind == RULE_SPEED;
}

static int stand(struct faults *faults, const struct standing_rule *rule)
{
	if (faults->count == faults->room) {
		size_t room = faults->room ? faults->room * 2 : 16;
		struct standing_rule *more = realloc(faults->standing, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		faults->standing = more;
		faults->room = room;
	}
	drop_earlier(faults, rule);
	faults->standing[faults->count++] = *rule;
	if (rule->kind <= RULE_HOP_LATENCY)
		faults->on_links = true;
	else if (is_for_counters(rule->kind))
		faults->on_errors = true;
	else if (is_for_training(rule->kind))
		faults->on_training = true;
	else
		faults->on_nodes = true;
	return 0;
}

static void set_removed(struct fabric *fabric, uint32_t node, bool removed)
{
	fabric->nodes[node].removed = removed;
	if (fabric->device_changed)
		fabric->device_changed(fabric, node, !removed);
}

/* Timers of pending rules still run, without effect. */
static void drop_pending(struct fabric *fabric)
{
	for (struct pending_rule *pending = fabric->faults->pending; pending;
	     pending = pending->next)
		pending->cleared = true;
}

static bool is_for(const struct fabric *fabric, const struct standing_rule *rule, uint32_t port)
{
	return (rule->node == NONE || rule->node == cable(fabric, port)->node) &&
	       (rule->port == NONE || rule->port == port);
}

/* Call before the symbol errors or corrected blocks of a rule's links change. */
static void settle_errors(struct fabric *fabric, const struct standing_rule *rule)
{
	for (uint32_t port = 0; port < fabric->graph.port_count; port++) {
		uint32_t peer = cable(fabric, port)->peer;

		if (peer != NONE && (is_for(fabric, rule, port) || is_for(fabric, rule, peer)))
			counters_settle(fabric, port);
	}
}

/* The rule's links train again if the result would now differ. */
static void retrain(struct fabric *fabric, const struct standing_rule *rule)
{
	for (uint32_t port = 0; port < fabric->graph.port_count; port++)
		if (cable(fabric, port)->peer != NONE && is_for(fabric, rule, port))
			link_follow(fabric, port);
}

static void clear(struct fabric *fabric)
{
	static const struct standing_rule all = {.node = NONE, .port = NONE};

	for (size_t i = 0; i < fabric->faults->count; i++)
		if (is_for_counters(fabric->faults->standing[i].kind))
			settle_errors(fabric, &fabric->faults->standing[i]);
	fabric->faults->count = 0;
	fabric->faults->on_links = false;
	fabric->faults->on_nodes = false;
	fabric->faults->on_errors = false;
	fabric->faults->on_training = false;
	drop_pending(fabric);
	links_restore(fabric);
	retrain(fabric, &all);
	for (uint32_t node = 0; node < fabric->graph.node_count; node++)
		if (fabric->nodes[node].removed)
			set_removed(fabric, node, false);
}

static void act(struct fabric *fabric, const struct standing_rule *rule)
{
	uint32_t port = rule->port;

	switch (rule->kind) {
	case RULE_REBOOT:
		node_reboot(fabric, rule->node, rule->time);
		break;
	case RULE_LINK_DOWN:
	case RULE_LINK_UP:
		for (unsigned int i = 1; i <= hardware(fabric, rule->node)->port_count; i++)
			if (port == NONE || cable(fabric, port)->number == i)
				link_cut(fabric, graph_port(&fabric->graph, rule->node, i),
					 rule->kind == RULE_LINK_DOWN);
		break;
	case RULE_REMOVE:
	case RULE_ADD:
		set_removed(fabric, rule->node, rule->kind == RULE_REMOVE);
		break;
	case RULE_FORGET:
		if (fabric->sa_forgets)
			fabric->sa_forgets(fabric);
		break;
	default:
		clear(fabric);
	}
}

static int apply(struct fabric *fabric, const struct standing_rule *rule)
{
	int error;

	if (rule->kind > RULE_REROUTE_NEVER) {
		act(fabric, rule);
		return 0;
	}
	if (is_for_counters(rule->kind))
		settle_errors(fabric, rule);
	error = stand(fabric->faults, rule);
	if (!error && is_for_training(rule->kind))
		retrain(fabric, rule);
	return error;
}

static void run_pending(struct fabric *fabric, struct timer *timer)
{
	struct pending_rule *pending = (struct pending_rule *)timer;
	struct pending_rule **link = &fabric->faults->pending;

	while (*link != pending)
		link = &(*link)->next;
	*link = pending->next;
	if (!pending->cleared)
		apply(fabric, &pending->rule);
	free(pending);
}

/* "after TIME RULE" */
static int postpone(struct fabric *fabric, const struct read_rule *read)
{
	struct pending_rule **end = &fabric->faults->pending;
	struct pending_rule *pending = calloc(1, sizeof(*pending));

	if (!pending)
		return -ENOMEM;
	/* faults_free() frees rules still pending */
	pending->timer.run = run_pending;
	pending->rule = read->rule;
	pending->delay = read->delay;
	while (*end)
		end = &(*end)->next;
	*end = pending;
	return fabric->faults->held
		       ? 0
		       : timer_set(fabric, &pending->timer, fabric->now + read->delay);
}

void fault_hold(struct fabric *fabric)
{
	fabric->faults->held = true;
}

int fault_begin(struct fabric *fabric)
{
	int error = 0;

	if (!fabric->faults->held)
		return 0;
	fabric->faults->held = false;
	for (struct pending_rule *pending = fabric->faults->pending; pending && !error;
	     pending = pending->next)
		error = timer_set(fabric, &pending->timer, fabric->now + pending->delay);
	return error;
}

/* Notes effects of a rule that are not obvious. */
static void note(const struct fabric *fabric, const struct standing_rule *rule,
		 struct rule_error *error)
{
	if (rule->kind == RULE_SILENT && fabric->sm_port != NONE &&
	    cable(fabric, fabric->sm_port)->node == rule->node)
		snprintf(error->text, sizeof(error->text),
			 "this silences the subnet manager and the SA, too: they are on "
			 "\"%.64s\"",
			 hardware(fabric, rule->node)->name);
}

int fault_command(struct fabric *fabric, const char *text, struct rule_error *error)
{
	struct read_rule read;

	if (!fault_read(fabric, text, &read, error) && read.empty) {
		snprintf(error->text, sizeof(error->text),
			 "expected a rule; umad-sim --help lists them");
		return -EINVAL;
	}
	return fault_apply(fabric, text, error);
}

int fault_apply(struct fabric *fabric, const char *text, struct rule_error *error)
{
	struct read_rule read;
	int failed = fault_read(fabric, text, &read, error);

	if (!failed && !read.empty)
		note(fabric, &read.rule, error);
	make_printable(error->text);
	if (failed || read.empty)
		return failed;
	return read.later ? postpone(fabric, &read) : apply(fabric, &read.rule);
}
