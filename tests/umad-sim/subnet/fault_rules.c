/* SPDX-License-Identifier: BSD-2-Clause */

/* Reads a rule and applies it. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counters.h"
#include "fault_rules.h"
#include "faults.h"
#include "links.h"

/* What follows a rule's first word. */
enum {
	WITH_CHANCE = 1,
	WITH_TIME = 2,
	WITH_NUMBER = 4,
	WITH_NODE = 8,
	MUST_SAY_WHERE = 16,
	MAY_NAME_PORT = 32,
	EVERYWHERE = 64
};

static const struct form {
	const char *word;
	enum rule_kind kind;
	unsigned int parts;
	const char *example; /* for --help; NULL: another word for the rule above */
	const char *meaning;
} forms[] = {
	{"loss", RULE_LOSS, WITH_CHANCE | MAY_NAME_PORT, "loss 1%",
	 "one packet in a hundred is lost on each link"},
	{"duplicate", RULE_DUPLICATE, WITH_CHANCE | MAY_NAME_PORT, "duplicate 1%",
	 "one packet in a hundred is delivered twice"},
	{"corrupt", RULE_CORRUPT, WITH_CHANCE | MAY_NAME_PORT, "corrupt 1%",
	 "some bits of one byte change in one packet in a hundred"},
	{"reorder", RULE_REORDER, WITH_CHANCE | WITH_TIME | MAY_NAME_PORT, "reorder 1% 2ms",
	 "one packet in a hundred is delayed, others overtake it"},
	{"hop-latency", RULE_HOP_LATENCY, WITH_TIME | MAY_NAME_PORT, "hop-latency 500ns",
	 "the time that each link takes"},
	{"slow", RULE_SLOW, WITH_TIME, "slow 5ms", "the time before a node sends a response"},
	{"smp-time", RULE_SMP_TIME, WITH_TIME, "smp-time 10us", "service for SMPs only"},
	{"smp-queue", RULE_SMP_QUEUE, WITH_NUMBER, "smp-queue 16", "buffer for SMPs only"},
	{"service", RULE_SERVICE, WITH_TIME, "service 20us",
	 "the time that a node's processor takes for each request"},
	{"buffer", RULE_BUFFER, WITH_NUMBER, "buffer 4",
	 "requests that wait for the processor; more are dropped"},
	{"counters", RULE_COUNTERS, WITH_NUMBER, "counters 32",
	 "an older PMA: PortCounters only; 64: those without errors"},
	{"errors", RULE_ERRORS, WITH_NUMBER | MAY_NAME_PORT, "errors 5",
	 "symbol errors a second on each link"},
	{"fec", RULE_FEC, WITH_NUMBER | MAY_NAME_PORT, "fec 1000",
	 "blocks a second that FEC corrects on each link"},
	{"path-limit", RULE_PATH_LIMIT, WITH_NUMBER, "path-limit 64",
	 "requests of a host in flight; more are dropped"},
	{"silent", RULE_SILENT, MUST_SAY_WHERE, "silent on NODE",
	 "the node does not respond, but forwards packets"},
	{"reroute never", RULE_REROUTE_NEVER, EVERYWHERE, "reroute never",
	 "the subnet manager keeps the routes when links go down"},
	{"reroute", RULE_REROUTE, WITH_TIME | EVERYWHERE, "reroute 50ms",
	 "the time until the subnet manager has new routes"},
	{"busy", RULE_BUSY, WITH_CHANCE, "busy 50%", "the node responds with status BUSY"},
	{"redirect", RULE_REDIRECT, WITH_NODE | MUST_SAY_WHERE, "redirect NODE on NODE",
	 "the second node redirects GMPs to the first one"},
	{"clone", RULE_CLONE, WITH_NODE | MUST_SAY_WHERE, "clone NODE on NODE",
	 "the second node has the GUIDs of the first one"},
	{"reboot", RULE_REBOOT, WITH_TIME | MUST_SAY_WHERE, "reboot 200ms on NODE",
	 "the node has no power for this time"},
	{"link down", RULE_LINK_DOWN, MUST_SAY_WHERE | MAY_NAME_PORT, "link down on NODE/PORT",
	 "removes a cable; without a port, all of the node"},
	{"link up", RULE_LINK_UP, MUST_SAY_WHERE | MAY_NAME_PORT, "link up on NODE/PORT",
	 "connects the cable again"},
	{"remove", RULE_REMOVE, MUST_SAY_WHERE, "remove on NODE",
	 "removes the device of a node from its programs"},
	{"return", RULE_ADD, MUST_SAY_WHERE, "return on NODE", "adds the device again"},
	{"add", RULE_ADD, MUST_SAY_WHERE, NULL, NULL}, /* another word for "return" */
	{"clear", RULE_CLEAR, 0, "clear", "ends all rules"},
};

struct reader {
	const struct fabric *fabric;
	const char *rest;
	struct rule_error *error;
};

static int refuse(struct reader *reader, const char *why, const char *what)
{
	snprintf(reader->error->text, sizeof(reader->error->text), "%s: \"%.100s\"", why, what);
	return -EINVAL;
}

static void skip_space(struct reader *reader)
{
	while (isspace((unsigned char)*reader->rest))
		reader->rest++;
}

/* Whether the next words are these; if so, removes them. */
static bool take(struct reader *reader, const char *words)
{
	size_t length = strlen(words);

	skip_space(reader);
	if (strncmp(reader->rest, words, length) != 0 ||
	    (reader->rest[length] && !isspace((unsigned char)reader->rest[length])))
		return false;
	reader->rest += length;
	return true;
}

/* A number that is not negative, and the text after it up to the next space. */
static int read_quantity(struct reader *reader, double *number, char *unit, size_t size)
{
	const char *start;
	char *end;
	size_t length = 0;

	skip_space(reader);
	start = reader->rest;
	*number = isdigit((unsigned char)*start) || *start == '.' ? strtod(start, &end) : -1;
	if (!(*number >= 0 && *number <= 1e15))
		return refuse(reader, "a number is expected", start);
	while (end[length] && !isspace((unsigned char)end[length]))
		length++;
	if (length >= size)
		return refuse(reader, "an unknown unit", start);
	memcpy(unit, end, length);
	unit[length] = '\0';
	reader->rest = end + length;
	return 0;
}

static int read_chance(struct reader *reader, double *chance)
{
	const char *start = reader->rest;
	char unit[8];
	int error = read_quantity(reader, chance, unit, sizeof(unit));

	if (error)
		return error;
	if (strcmp(unit, "%") == 0)
		*chance /= 100;
	else if (unit[0])
		return refuse(reader, "a chance is a number with %", start);
	return *chance <= 1 ? 0 : refuse(reader, "a chance of more than 100%", start);
}

static int read_time(struct reader *reader, uint64_t *time)
{
	static const struct {
		const char *name;
		uint64_t length;
	} units[] = {
		{"ns", NANOSECOND}, {"us", MICROSECOND}, {"ms", MILLISECOND}, {"s", SECOND}};
	const char *start = reader->rest;
	char unit[8];
	double number;
	int error = read_quantity(reader, &number, unit, sizeof(unit));

	if (error)
		return error;
	for (unsigned int i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(unit, units[i].name) == 0 &&
		    number * (double)units[i].length < 1e18) {
			*time = (uint64_t)(number * (double)units[i].length);
			return 0;
		}
	return refuse(reader, "a time has one of the units ns, us, ms, s", start);
}

static int read_number(struct reader *reader, uint32_t *number)
{
	const char *start = reader->rest;
	char unit[8];
	double value;
	int error = read_quantity(reader, &value, unit, sizeof(unit));

	if (error)
		return error;
	if (unit[0] || value > 1e9 || value != (double)(uint32_t)value)
		return refuse(reader, "a whole number is expected", start);
	*number = (uint32_t)value;
	return 0;
}

/* A node's name of `length` bytes; the name may hold spaces. */
static uint32_t find_node(struct reader *reader, const char *name, size_t length)
{
	char copy[MAX_NAME + 1];

	if (length == 0 || length > MAX_NAME)
		return NONE;
	memcpy(copy, name, length);
	copy[length] = '\0';
	return graph_find(&reader->fabric->graph, copy);
}

/* "NODE on": the node that redirected requests are sent to, or whose GUIDs a clone reports. */
static int read_other_node(struct reader *reader, struct standing_rule *rule)
{
	const char *on = NULL;
	uint32_t node;
	uint32_t port;

	skip_space(reader);
	for (const char *next = strstr(reader->rest, " on "); next;
	     next = strstr(next + 1, " on "))
		on = next;
	node = on ? find_node(reader, reader->rest, (size_t)(on - reader->rest)) : NONE;
	if (node == NONE)
		return refuse(reader,
			      rule->kind == RULE_CLONE ? "no such node to clone"
						       : "no such node to redirect to",
			      reader->rest);
	port = hardware(reader->fabric, node)->type == NODE_SWITCH ? 0 : 1;
	rule->number = rule->kind == RULE_CLONE
			       ? node
			       : hardware(reader->fabric, node)->first_port + port;
	reader->rest = on;
	return 0;
}

/* A port that can have a link, by its number on its node. */
static uint32_t find_port(struct reader *reader, uint32_t node, const char *text)
{
	unsigned long number;
	char *end;

	if (!isdigit((unsigned char)*text))
		return NONE;
	number = strtoul(text, &end, 10);
	while (isspace((unsigned char)*end))
		end++;
	if (*end || number < 1 || number > MAX_PORTS)
		return NONE;
	return graph_port(&reader->fabric->graph, node, (unsigned int)number);
}

/* "on NODE" or "on NODE/PORT", to the end of the line. */
static int read_place(struct reader *reader, const struct form *form,
		      struct standing_rule *rule)
{
	const char *slash;
	size_t length;

	if (!take(reader, "on"))
		return form->parts & MUST_SAY_WHERE
			       ? refuse(reader, "on which node?", reader->rest)
			       : 0;
	skip_space(reader);
	length = strlen(reader->rest);
	while (length && isspace((unsigned char)reader->rest[length - 1]))
		length--;
	rule->node = find_node(reader, reader->rest, length);
	slash = strrchr(reader->rest, '/');
	if (rule->node == NONE && slash && form->parts & MAY_NAME_PORT) {
		rule->node = find_node(reader, reader->rest, (size_t)(slash - reader->rest));
		if (rule->node != NONE)
			rule->port = find_port(reader, rule->node, slash + 1);
		if (rule->port == NONE)
			return refuse(reader, "no such port", reader->rest);
	}
	if (rule->node == NONE)
		return refuse(reader, "no such node", reader->rest);
	reader->rest += strlen(reader->rest);
	return 0;
}

static int read_rule(struct reader *reader, struct standing_rule *rule)
{
	const struct form *form = NULL;
	const char *text = reader->rest;
	int error = 0;

	*rule = (struct standing_rule){.node = NONE, .port = NONE, .chance = 1};
	for (unsigned int i = 0; i < sizeof(forms) / sizeof(forms[0]) && !form; i++)
		if (take(reader, forms[i].word))
			form = &forms[i];
	if (!form)
		return refuse(reader, "an unknown rule", reader->rest);
	rule->kind = form->kind;
	if (form->parts & WITH_CHANCE)
		error = read_chance(reader, &rule->chance);
	if (!error && form->parts & WITH_TIME)
		error = read_time(reader, &rule->time);
	if (!error && form->parts & WITH_NUMBER)
		error = read_number(reader, &rule->number);
	if (!error && rule->kind == RULE_COUNTERS && rule->number != 32 && rule->number != 64)
		error = refuse(reader, "counters have 32 or 64 bits", text);
	if (!error && form->parts & WITH_NODE)
		error = read_other_node(reader, rule);
	if (!error && !(form->parts & EVERYWHERE))
		error = read_place(reader, form, rule);
	skip_space(reader);
	if (!error && *reader->rest)
		error = refuse(reader, "this is too much", reader->rest);
	return error;
}

static void run_pending(struct fabric *fabric, struct timer *timer)
{
	struct pending_rule *pending = (struct pending_rule *)timer;
	struct pending_rule **link = &fabric->faults->pending;
	struct rule_error ignored;

	while (*link != pending)
		link = &(*link)->next;
	*link = pending->next;
	fault_apply(fabric, pending->text,
		    &ignored); /* the rule was checked when it was given */
	free(pending);
}

/* "after TIME RULE": the rule is checked now and applied then. */
static int postpone(struct fabric *fabric, struct reader *reader)
{
	struct pending_rule **end = &fabric->faults->pending;
	struct pending_rule *pending;
	struct standing_rule rule;
	const char *text;
	uint64_t delay;
	int error = read_time(reader, &delay);

	text = reader->rest;
	if (!error)
		error = read_rule(reader, &rule);
	if (error)
		return error;
	pending = calloc(1, sizeof(*pending) + strlen(text) + 1);
	if (!pending)
		return -ENOMEM;
	pending->timer.run = run_pending; /* faults_free() frees the rules that are pending
					   * then */
	strcpy(pending->text, text);
	pending->delay = delay;
	while (*end)
		end = &(*end)->next;
	*end = pending;
	return fabric->faults->held ? 0
				    : timer_set(fabric, &pending->timer, fabric->now + delay);
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

/*
 * A later rule of the same kind for the same place replaces the earlier one, which would not
 * apply again. Otherwise, a fabric that gets rules for days would search through more and more
 * of them.
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

/* Such a rule changes counters of the links that it is for. */
static bool is_for_counters(enum rule_kind kind)
{
	return kind == RULE_ERRORS || kind == RULE_FEC;
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

/* The timers of pending rules still run, and find no rule. */
static void drop_pending(struct fabric *fabric)
{
	for (struct pending_rule *pending = fabric->faults->pending; pending;
	     pending = pending->next)
		strcpy(pending->text, "");
}

static bool is_for(const struct fabric *fabric, const struct standing_rule *rule, uint32_t port)
{
	return (rule->node == NONE || rule->node == cable(fabric, port)->node) &&
	       (rule->port == NONE || rule->port == port);
}

/* Before the symbol errors or corrected blocks of the links that a rule is for change. */
static void settle_errors(struct fabric *fabric, const struct standing_rule *rule)
{
	for (uint32_t port = 0; port < fabric->graph.port_count; port++) {
		uint32_t peer = cable(fabric, port)->peer;

		if (peer != NONE && (is_for(fabric, rule, port) || is_for(fabric, rule, peer)))
			counters_settle(fabric, port);
	}
}

static void clear(struct fabric *fabric)
{
	for (size_t i = 0; i < fabric->faults->count; i++)
		if (is_for_counters(fabric->faults->standing[i].kind))
			settle_errors(fabric, &fabric->faults->standing[i]);
	fabric->faults->count = 0;
	fabric->faults->on_links = false;
	fabric->faults->on_nodes = false;
	fabric->faults->on_errors = false;
	drop_pending(fabric);
	links_restore(fabric);
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
	default:
		clear(fabric);
	}
}

void fault_print_rules(FILE *out)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (forms[i].example)
			fprintf(out, "  %-23s %s\n", forms[i].example, forms[i].meaning);
	fprintf(out, "  %-23s %s\n", "after 2s RULE", "the rule, two seconds later");
}

int fault_apply(struct fabric *fabric, const char *text, struct rule_error *error)
{
	struct reader reader = {.fabric = fabric, .rest = text, .error = error};
	struct standing_rule rule;
	int failed;

	error->text[0] = '\0';
	skip_space(&reader);
	if (*reader.rest == '\0' || *reader.rest == '#')
		return 0;
	if (take(&reader, "after"))
		return postpone(fabric, &reader);
	failed = read_rule(&reader, &rule);
	if (failed)
		return failed;
	if (is_for_counters(rule.kind))
		settle_errors(fabric, &rule);
	if (rule.kind <= RULE_REROUTE_NEVER)
		return stand(fabric->faults, &rule);
	act(fabric, &rule);
	return 0;
}
