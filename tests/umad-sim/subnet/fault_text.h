/* SPDX-License-Identifier: BSD-2-Clause */

/* The text of a rule; for the forms see fault_rules.h. */
#ifndef FABRIC_FAULT_TEXT_H
#define FABRIC_FAULT_TEXT_H

#include "faults.h"

struct rule_error {
	char text[200];
};

struct read_rule {
	struct standing_rule rule;
	uint64_t delay; /* nanoseconds, of "after" */
	bool later;     /* the rule has "after" */
	bool empty;     /* the text is empty, or a comment */
};

/* Reads a rule. Returns 0, -EINVAL (the error has the reason) or -ENOMEM. */
int fault_read(const struct fabric *fabric, const char *text, struct read_rule *result,
	       struct rule_error *error);

#endif
