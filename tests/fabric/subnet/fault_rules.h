/* SPDX-License-Identifier: BSD-2-Clause */

/* The rules of faults.h as they are kept. */
#ifndef FABRIC_FAULT_RULES_H
#define FABRIC_FAULT_RULES_H

#include <stddef.h>

#include "fabric.h"
#include "timers.h"

enum rule_kind {
	RULE_LOSS,
	RULE_DUPLICATE,
	RULE_CORRUPT,
	RULE_REORDER,
	RULE_HOP_LATENCY, /* up to here rules for links */
	RULE_SLOW,
	RULE_SMP_TIME,
	RULE_SMP_QUEUE,
	RULE_SILENT,
	RULE_BUSY,
	RULE_REDIRECT, /* up to here rules that stand until they are cleared */
	RULE_REBOOT,
	RULE_LINK_DOWN,
	RULE_LINK_UP,
	RULE_REMOVE,
	RULE_ADD,
	RULE_CLEAR
};

struct standing_rule {
	enum rule_kind kind;
	uint32_t node;   /* NONE: all */
	uint32_t port;   /* by index; NONE: all of the node's */
	uint32_t number; /* smp-queue: its length; redirect: the end port */
	uint64_t time;   /* nanoseconds */
	double chance;   /* 0 .. 1 */
};

struct pending_rule { /* "after": waits for its time */
	struct timer timer;
	struct pending_rule *next;
	char text[];
};

struct faults {
	struct standing_rule *standing; /* in the order given */
	size_t count;
	size_t room;
	bool on_links;  /* whether any rule is for links, */
	bool on_nodes;  /* or for nodes */
	uint32_t *hits; /* by port: how many packets were judged there */
	struct pending_rule *pending;
};

#endif
