/* SPDX-License-Identifier: BSD-2-Clause */

/* The words of rules, and what follows each word. */
#ifndef FABRIC_FAULT_FORMS_H
#define FABRIC_FAULT_FORMS_H

#include <stdio.h>

#include "faults.h"

/* What follows a rule's first word. */
enum {
	WITH_CHANCE = 1,
	WITH_TIME = 2,
	WITH_NUMBER = 4,
	WITH_NODE = 8,
	MUST_SAY_WHERE = 16,
	MAY_NAME_PORT = 32,
	EVERYWHERE = 64,
	WITH_WIDTH = 128,
	WITH_SPEED = 256
};

struct fault_form {
	const char *word;
	enum rule_kind kind;
	unsigned int parts;
	const char *example; /* for --help; NULL: another word for the rule above */
	const char *meaning;
};

/* A word that begins another word comes after the other one. The last row has no word. */
extern const struct fault_form fault_forms[];

/* A line for each rule, as --help has them: an example, with NODE and PORT, and what it does.
 */
void fault_print_rules(FILE *out);

#endif
