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

/* A word that is the beginning of another comes after that one. The last row has no word. */
extern const struct fault_form fault_forms[];

/* Prints a line per rule for --help: an example with NODE and PORT, and what the rule does. */
void fault_print_rules(FILE *out);

#endif
