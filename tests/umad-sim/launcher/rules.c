/* SPDX-License-Identifier: BSD-2-Clause */

/* Applies the rules of the command line and of a file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault_rules.h"
#include "printable.h"
#include "rules.h"

/* Whether the text is neither empty nor only a comment. */
static bool is_rule(const char *text)
{
	text += strspn(text, " \t\v\f\r\n");
	return *text && *text != '#';
}

static int apply_rule(struct fabric *fabric, const char *rule, const char *where,
		      struct rules *rules)
{
	struct rule_error error;
	int failed = fault_apply(fabric, rule, &error);
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

static int apply_file(struct fabric *fabric, const char *name, struct rules *rules)
{
	FILE *file = fopen(name, "re");
	size_t length = strlen(name);
	/* the end of a long path says more than its beginning */
	const char *shown = length > 30 ? name + length - 30 : name;
	char *line = NULL;
	size_t room = 0;
	unsigned int number = 0;
	int error = 0;

	while (file && (!error || rules->all) && getline(&line, &room, file) >= 0) {
		char where[50];
		int failed;

		snprintf(where, sizeof(where), "%.30s:%u: ", shown, ++number);
		line[strcspn(line, "\r\n")] = '\0';
		failed = apply_rule(fabric, line, where, rules);
		error = error ? error : failed;
	}
	free(line);
	if (!file || ferror(file)) {
		error = -errno;
		snprintf(rules->why, sizeof(rules->why), "%.200s: %s", name, strerror(-error));
		make_printable(rules->why);
		if (rules->all)
			fprintf(stderr, "umad-sim: %s\n", rules->why);
	}
	if (file)
		fclose(file);
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
