/* SPDX-License-Identifier: BSD-2-Clause */

/* Applies the rules of the command line and of a file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault_rules.h"
#include "printable.h"
#include "rules.h"
#include "topology.h"

#define RULES_LIMIT (1U << 24) /* bytes per file */

/* Whether the text is a rule, not empty or just a comment. */
static bool is_rule(const char *text)
{
	text += strspn(text, " \t\v\f\r\n");
	return *text && *text != '#';
}

static int apply_rule(struct fabric *fabric, const char *rule, const char *where,
		      struct rules *rules)
{
	struct rule_error error = {0};
	int failed = (*where ? fault_apply : fault_command)(fabric, rule, &error);
	char text[sizeof(rules->why)];

	snprintf(text, sizeof(text), "%.50s%s", where,
		 error.text[0] || !failed ? error.text : strerror(-failed));
	make_printable(text); /* where: the name of a file */
	if (failed && !rules->why[0])
		memcpy(rules->why, text, sizeof(text));
	if (error.text[0] && (!failed || rules->all))
		fprintf(stderr, "umad-sim: %s\n", text);
	rules->count += !failed && is_rule(rule);
	return failed;
}

/* Reports an error of the file itself, and returns it. */
static int refuse_file(const char *name, int error, const char *reason, struct rules *rules)
{
	snprintf(rules->why, sizeof(rules->why), "%.200s: %s", name, reason);
	make_printable(rules->why);
	if (rules->all)
		fprintf(stderr, "umad-sim: %s\n", rules->why);
	return error;
}

static int apply_file(struct fabric *fabric, const char *name, struct rules *rules)
{
	size_t length = strlen(name), size;
	/* the end of a long path says more than its start */
	const char *shown = length > 30 ? name + length - 30 : name;
	unsigned int number = 0;
	char *text, *next, *line;
	int error = topology_slurp(name, RULES_LIMIT, &text, &size);

	if (error)
		return refuse_file(name, error, strerror(-error), rules);
	if (memchr(text, 0, size)) {
		free(text);
		return refuse_file(name, -EINVAL, "not a text file: it contains a zero byte",
				   rules);
	}
	next = text;
	while ((!error || rules->all) && (line = strsep(&next, "\n"))) {
		char where[50];
		int failed;

		snprintf(where, sizeof(where), "%.30s:%u: ", shown, ++number);
		line[strcspn(line, "\r")] = '\0';
		failed = apply_rule(fabric, line, where, rules);
		error = error ? error : failed;
	}
	free(text);
	return error;
}

int rules_apply(struct fabric *fabric, const struct options *options, struct rules *rules)
{
	int error = 0;

	if (options->faults_file)
		error = apply_file(fabric, options->faults_file, rules);
	for (unsigned int i = 0; (!error || rules->all) && options->faults[i]; i++) {
		int failed = apply_rule(fabric, options->faults[i], "", rules);

		error = error ? error : failed;
	}
	return error;
}
