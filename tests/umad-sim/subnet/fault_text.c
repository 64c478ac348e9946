/* SPDX-License-Identifier: BSD-2-Clause */

/* Reads the text of a rule. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "fault_forms.h"
#include "fault_text.h"

struct reader {
	const struct fabric *fabric;
	const char *rest;
	const struct fault_form *form; /* of the rule; NULL: not known yet */
	struct rule_error *error;
};

static int __attribute__((format(printf, 2, 3)))
refuse(struct reader *reader, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(reader->error->text, sizeof(reader->error->text), format, arguments);
	va_end(arguments);
	return -EINVAL;
}

/* The form of the rule, as far as known. */
static const char *form_of(const struct reader *reader)
{
	if (!reader->form)
		return "after 2s RULE";
	/* another word for the rule above */
	return reader->form->example ? reader->form->example : reader->form[-1].example;
}

/* Reports that something is missing or wrong at this text, with the right form. */
static int refuse_form(struct reader *reader, const char *why, const char *what)
{
	if (!*what)
		return refuse(reader, "%s; example: \"%s\"", why, form_of(reader));
	return refuse(reader, "%s: \"%.80s\"; example: \"%s\"", why, what, form_of(reader));
}

static void skip_space(struct reader *reader)
{
	while (isspace((unsigned char)*reader->rest))
		reader->rest++;
}

/* Takes these words if they come next; false otherwise. */
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

/* Returns the length of the next word; skips spaces before it. */
static int next_word(struct reader *reader)
{
	int length = 0;

	skip_space(reader);
	while (reader->rest[length] && !isspace((unsigned char)reader->rest[length]) &&
	       length < 80)
		length++;
	return length;
}

/* --- quantities ----------------------------------------------------------------- */

/* A number that is not negative, and the text that follows up to the next space. */
static int read_quantity(struct reader *reader, double *number, char *unit, size_t size)
{
	int word = next_word(reader);
	const char *start = reader->rest;
	char *end;
	size_t length = 0;

	*number = 0;
	if (!isdigit((unsigned char)*start) && *start != '.')
		return refuse_form(reader, "expected a number", start);
	*number = strtod(start, &end);
	if (!(*number >= 0 && *number <= 1e15))
		return refuse_form(reader, "expected a number", start);
	while (end[length] && !isspace((unsigned char)end[length]))
		length++;
	if (length >= size)
		return refuse(reader, "unknown unit: \"%.*s\"; example: \"%s\"", word, start,
			      form_of(reader));
	memcpy(unit, end, length);
	unit[length] = '\0';
	reader->rest = end + length;
	return 0;
}

static int read_chance(struct reader *reader, double *chance)
{
	int word = next_word(reader);
	const char *start = reader->rest;
	char unit[8];
	int error = read_quantity(reader, chance, unit, sizeof(unit));

	if (error)
		return error;
	if (strcmp(unit, "%") == 0)
		return (*chance /= 100) <= 1
			       ? 0
			       : refuse(reader, "a chance of more than 100%%: \"%.*s\"", word,
					start);
	if (unit[0])
		return refuse(reader, "a chance must be a number with %%: \"%.*s\"", word,
			      start);
	return *chance <= 1 ? 0
			    : refuse(reader,
				     "a chance without %% must be from 0 to 1: \"%.*s\"; in "
				     "percent, write \"%.*s%%\"",
				     word, start, word, start);
}

static int read_time(struct reader *reader, uint64_t *time)
{
	static const struct {
		const char *name;
		uint64_t length;
	} units[] = {
		{"ns", NANOSECOND}, {"us", MICROSECOND}, {"ms", MILLISECOND}, {"s", SECOND}};
	int word = next_word(reader);
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
	return refuse(reader,
		      "a time needs a unit (ns, us, ms or s), without a space: \"%.*s\"", word,
		      start);
}

static int read_number(struct reader *reader, uint32_t *number)
{
	int word = next_word(reader);
	const char *start = reader->rest;
	char unit[8];
	double value;
	int error = read_quantity(reader, &value, unit, sizeof(unit));

	if (error)
		return error;
	if (unit[0] || value > 1e9 || value != (double)(uint32_t)value)
		return refuse(reader, "expected a whole number: \"%.*s\"", word, start);
	*number = (uint32_t)value;
	return 0;
}

/* "1x" */
static int read_width(struct reader *reader, uint32_t *lanes)
{
	int word = next_word(reader);
	const char *start = reader->rest;
	unsigned long number = 0;
	char *end = NULL;

	if (!word)
		return refuse_form(reader, "expected a width", "");
	if (isdigit((unsigned char)*start))
		number = strtoul(start, &end, 10);
	if (!end || number > 12 || !link_width_exists((unsigned int)number) || *end != 'x' ||
	    end + 1 != start + word)
		return refuse(reader, "a width must be 1x, 2x, 4x, 8x or 12x: \"%.*s\"", word,
			      start);
	*lanes = (uint32_t)number;
	reader->rest += word;
	return 0;
}

/* "FDR" */
static int read_speed(struct reader *reader, uint32_t *number)
{
	int word = next_word(reader);
	enum link_speed speed = link_speed_parse(reader->rest, (size_t)word);

	if (!word)
		return refuse_form(reader, "expected a speed", "");
	if (speed == SPEED_COUNT)
		return refuse(
			reader,
			"a speed must be SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR or XDR: "
			"\"%.*s\"",
			word, reader->rest);
	*number = speed;
	reader->rest += word;
	return 0;
}

/* --- places --------------------------------------------------------------------- */

/* Finds a node by a name of `length` bytes, which may contain spaces. */
static uint32_t find_node(struct reader *reader, const char *name, size_t length)
{
	char copy[MAX_NAME + 1];

	if (length == 0 || length > MAX_NAME)
		return NONE;
	memcpy(copy, name, length);
	copy[length] = '\0';
	return graph_find(&reader->fabric->graph, copy);
}

/* Also shows some names of this fabric. */
static int no_such_node(struct reader *reader, const char *why, const char *name, size_t length)
{
	const struct graph *graph = &reader->fabric->graph;
	int shown = length < MAX_NAME ? (int)length : MAX_NAME;

	if (!length)
		return refuse_form(reader, "expected a node", "");
	return refuse(reader, "%s: \"%.*s\"; the %u nodes are \"%.30s\" .. \"%.30s\"", why,
		      shown, name, graph->node_count, graph->nodes[0].name,
		      graph->nodes[graph->node_count - 1].name);
}

/* "NODE on": where redirected requests go, or whose values are reported. */
static int read_other_node(struct reader *reader, struct standing_rule *rule)
{
	const char *on = NULL;
	uint32_t node;
	uint32_t port;

	skip_space(reader);
	for (const char *next = strstr(reader->rest, " on "); next;
	     next = strstr(next + 1, " on "))
		on = next;
	if (!on)
		return refuse_form(reader, "expected two nodes", reader->rest);
	node = find_node(reader, reader->rest, (size_t)(on - reader->rest));
	if (node == NONE)
		return no_such_node(reader,
				    rule->kind == RULE_REDIRECT ? "no such node to redirect to"
				    : rule->kind == RULE_CLONE  ? "no such node to clone"
								: "no such node",
				    reader->rest, (size_t)(on - reader->rest));
	port = hardware(reader->fabric, node)->type == NODE_SWITCH ? 0 : 1;
	rule->number = rule->kind == RULE_REDIRECT
			       ? hardware(reader->fabric, node)->first_port + port
			       : node;
	reader->rest = on;
	return 0;
}

/* A port with a link, by its number on its node. */
static int find_port(struct reader *reader, struct standing_rule *rule, const char *number)
{
	const struct graph_node *node = hardware(reader->fabric, rule->node);
	unsigned long value = 0;
	char *end = NULL;

	if (isdigit((unsigned char)*number))
		value = strtoul(number, &end, 10);
	while (end && isspace((unsigned char)*end))
		end++;
	if (!end || *end || value < 1 || value > node->port_count)
		return refuse(reader, "no such port: \"%.80s\"; the ports are 1 to %u",
			      reader->rest, node->port_count);
	rule->port = node->first_port + (uint32_t)value;
	if (cable(reader->fabric, rule->port)->peer == NONE)
		return refuse(reader, "the port has no cable: \"%.80s\"", reader->rest);
	return 0;
}

/* "NODE/PORT"; an error if the rule is only for nodes. */
static int read_port(struct reader *reader, struct standing_rule *rule)
{
	const char *slash = strrchr(reader->rest, '/');

	if (!slash)
		return 0;
	rule->node = find_node(reader, reader->rest, (size_t)(slash - reader->rest));
	if (rule->node == NONE)
		return 0;
	if (!(reader->form->parts & MAY_NAME_PORT))
		return refuse_form(reader, "this rule is for nodes, not ports", reader->rest);
	return find_port(reader, rule, slash + 1);
}

static bool has_cable(const struct fabric *fabric, uint32_t node)
{
	const struct graph_node *hw = hardware(fabric, node);

	for (uint32_t number = 1; number <= hw->port_count; number++)
		if (cable(fabric, hw->first_port + number)->peer != NONE)
			return true;
	return false;
}

/* "on NODE" or "on NODE/PORT", to the end of the line. */
static int read_place(struct reader *reader, struct standing_rule *rule)
{
	size_t length;
	int error = 0;

	if (!take(reader, "on"))
		return reader->form->parts & MUST_SAY_WHERE
			       ? refuse_form(reader, "expected \"on NODE\"", reader->rest)
			       : 0;
	skip_space(reader);
	length = strlen(reader->rest);
	while (length && isspace((unsigned char)reader->rest[length - 1]))
		length--;
	rule->node = find_node(reader, reader->rest, length);
	if (rule->node == NONE)
		error = read_port(reader, rule);
	if (!error && rule->node != NONE && reader->form->parts & MAY_NAME_PORT &&
	    !has_cable(reader->fabric, rule->node))
		error = refuse(reader, "the node has no cable: \"%.80s\"", reader->rest);
	if (!error && rule->node == NONE)
		error = no_such_node(reader, "no such node", reader->rest, length);
	reader->rest += strlen(reader->rest);
	return error;
}

/* --- rules ---------------------------------------------------------------------- */

/* Checks values that have a meaning for one rule only. */
static int judge(struct reader *reader, const struct standing_rule *rule)
{
	const struct graph_port *end;
	bool more;

	if (rule->kind == RULE_COUNTERS && rule->number != 32 && rule->number != 64)
		return refuse(reader, "counters have 32 or 64 bits, not %u", rule->number);
	if ((rule->kind != RULE_WIDTH && rule->kind != RULE_SPEED) || rule->port == NONE)
		return 0;
	end = cable(reader->fabric, rule->port);
	more = rule->number > (rule->kind == RULE_WIDTH ? end->width : end->speed);
	return more ? refuse(reader, "this port's link is only %ux%s", end->width,
			     link_speed_name((enum link_speed)end->speed))
		    : 0;
}

static int read_parts(struct reader *reader, struct standing_rule *rule)
{
	unsigned int parts = reader->form->parts;
	int error = 0;

	if (parts & WITH_CHANCE)
		error = read_chance(reader, &rule->chance);
	if (!error && parts & WITH_TIME)
		error = read_time(reader, &rule->time);
	if (!error && parts & WITH_NUMBER)
		error = read_number(reader, &rule->number);
	if (!error && parts & WITH_WIDTH)
		error = read_width(reader, &rule->number);
	if (!error && parts & WITH_SPEED)
		error = read_speed(reader, &rule->number);
	if (!error && parts & WITH_NODE)
		error = read_other_node(reader, rule);
	if (!error && !(parts & EVERYWHERE))
		error = read_place(reader, rule);
	return error ? error : judge(reader, rule);
}

static int read_rule(struct reader *reader, struct standing_rule *rule)
{
	int error;

	*rule = (struct standing_rule){.node = NONE, .port = NONE, .chance = 1};
	for (const struct fault_form *form = fault_forms; form->word && !reader->form; form++)
		if (take(reader, form->word))
			reader->form = form;
	if (!reader->form && !*reader->rest)
		return refuse_form(reader, "expected a rule", "");
	if (!reader->form)
		return refuse(reader, "unknown rule: \"%.100s\"; umad-sim --help lists them",
			      reader->rest);
	rule->kind = reader->form->kind;
	error = read_parts(reader, rule);
	skip_space(reader);
	if (!error && *reader->rest)
		error = refuse_form(reader,
				    reader->form->parts & EVERYWHERE
					    ? "unexpected after this rule"
					    : "expected \"on\"",
				    reader->rest);
	return error;
}

static int read_text(const struct fabric *fabric, const char *text, struct read_rule *result,
		     struct rule_error *error)
{
	struct reader reader = {.fabric = fabric, .rest = text, .error = error};
	int failed = 0;

	*result = (struct read_rule){0};
	error->text[0] = '\0';
	skip_space(&reader);
	result->empty = *reader.rest == '\0' || *reader.rest == '#';
	if (result->empty)
		return 0;
	result->later = take(&reader, "after");
	if (result->later)
		failed = read_time(&reader, &result->delay);
	return failed ? failed : read_rule(&reader, &result->rule);
}

/* Whether a node comes after these words, so that "#3" is a node's number. */
static bool expects_node(const char *text, size_t length)
{
	static const char *const words[] = {"on", "redirect", "clone", "name", "lid"};

	while (length && isspace((unsigned char)text[length - 1]))
		length--;
	for (unsigned int i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t word = strlen(words[i]);

		if (length >= word && memcmp(text + length - word, words[i], word) == 0 &&
		    (length == word || isspace((unsigned char)text[length - word - 1])))
			return true;
	}
	return false;
}

/* Cuts off the last comment of a text; false if there is none. */
static bool cut_comment(char *text)
{
	for (size_t at = strlen(text); at-- > 1;)
		if (text[at] == '#' && isspace((unsigned char)text[at - 1]) &&
		    !expects_node(text, at)) {
			text[at] = '\0';
			return true;
		}
	return false;
}

/* Names may contain " #", so a comment is cut off only if the text is wrong with it. */
int fault_read(const struct fabric *fabric, const char *text, struct read_rule *result,
	       struct rule_error *error)
{
	int failed = read_text(fabric, text, result, error);
	char *shorter;

	if (!failed)
		return 0;
	shorter = strdup(text);
	if (!shorter)
		return -ENOMEM;
	while (failed && cut_comment(shorter))
		failed = read_text(fabric, shorter, result, error);
	free(shorter);
	return failed;
}
