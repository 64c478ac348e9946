/* SPDX-License-Identifier: BSD-2-Clause */

/* Which faults are active, and what they do to packets, requests and links. fault_text.c reads
 * the text of rules. */
#ifndef FABRIC_FAULTS_H
#define FABRIC_FAULTS_H

#include <stddef.h>

#include "timers.h"

enum rule_kind {
	RULE_LOSS,
	RULE_DUPLICATE,
	RULE_CORRUPT,
	RULE_REORDER,
	RULE_HOP_LATENCY, /* the last kind for packets on links */
	RULE_SLOW,
	RULE_SMP_TIME,
	RULE_SMP_QUEUE,
	RULE_SILENT,
	RULE_BUSY,
	RULE_REDIRECT,
	RULE_SERVICE,
	RULE_BUFFER,
	RULE_COUNTERS,
	RULE_CLONE,
	RULE_NAME,
	RULE_LID,
	RULE_MASTER,
	RULE_PATH_LIMIT,
	RULE_ERRORS,
	RULE_FEC,
	RULE_FEC_MODE,
	RULE_WIDTH,
	RULE_SPEED,
	RULE_REROUTE,
	RULE_REROUTE_NEVER, /* the last kind that stays active until it is cleared */
	RULE_REBOOT,
	RULE_LINK_DOWN,
	RULE_LINK_UP,
	RULE_REMOVE,
	RULE_ADD,
	RULE_FORGET,
	RULE_CLEAR
};

struct standing_rule {
	enum rule_kind kind;
	uint32_t node;   /* NONE: all */
	uint32_t port;   /* by index; NONE: all ports of the node */
	uint32_t number; /* redirect: the end port; clone, name, lid: the node; speed: enum
			    link_speed; others: a count */
	uint64_t time;   /* nanoseconds */
	double chance;   /* 0 .. 1 */
};

struct pending_rule { /* "after": applies later */
	struct timer timer;
	struct pending_rule *next;
	uint64_t delay;
	struct standing_rule rule;
	bool cleared; /* no effect when its time comes */
};

struct faults {
	struct standing_rule *standing; /* in the order given */
	size_t count;
	size_t room;
	bool on_links;                /* whether any rule is for links */
	bool on_nodes;                /* whether any rule is for nodes */
	bool on_errors;               /* whether any rule is for symbol errors or FEC */
	uint32_t *hits;               /* by port: packets checked so far */
	bool on_training;             /* whether any rule is for the training of links */
	struct pending_rule *pending; /* in the order given */
	bool held;                    /* their times do not run yet */
};

int faults_init(struct fabric *fabric);
void faults_free(struct fabric *fabric);

struct crossing { /* what happens to a packet on one link */
	uint64_t delay;
	bool lost;
	bool duplicated;
	bool corrupted;
	bool reordered;
	uint8_t byte; /* corrupt: the byte */
	uint8_t bits; /* corrupt: bits of the byte */
};

/* Decides what happens to the next packet on a port's link; false: just the delay. */
bool faults_on_link(struct fabric *fabric, uint32_t port, struct crossing *crossing);

enum reaction {
	REACT_ANSWER,
	REACT_IGNORE,
	REACT_BUSY,
	REACT_REDIRECT
};

struct treatment { /* what a node does with a request */
	enum reaction reaction;
	uint64_t service;     /* processing time, nanoseconds */
	uint64_t delay;       /* from then to the response */
	uint32_t buffer;      /* requests that may wait for the processor */
	uint32_t redirect_to; /* an end port */
};

#define NO_LIMIT     UINT32_MAX
#define NO_REROUTES  UINT64_MAX
#define REROUTE_TIME (50 * MILLISECOND) /* by default */

/* Decides what happens to the next request at a node. */
void faults_on_node(struct fabric *fabric, uint32_t node, bool smp,
		    struct treatment *treatment);

/* Symbol errors a second on a port's link; NO_LIMIT: those of the fabric. */
uint32_t faults_errors(const struct fabric *fabric, uint32_t port);

/* Blocks a second that FEC corrects on a port's link, besides the symbol errors. */
uint32_t faults_fec(const struct fabric *fabric, uint32_t port);
/* FECModeActive of a port; NO_LIMIT: it has no PortInfoExtended. */
uint32_t faults_fec_mode(const struct fabric *fabric, uint32_t port);

/* The most lanes and the highest speed (enum link_speed) to which a port's link trains: those
 * of a rule for either end, else of the topology, else NO_LIMIT. */
uint32_t faults_width(const struct fabric *fabric, uint32_t port);
uint32_t faults_speed(const struct fabric *fabric, uint32_t port);

/* The size of a node's counters in bits: 32, 64, or NO_LIMIT. */
uint32_t faults_counters(const struct fabric *fabric, uint32_t node);

/*
 * The node whose values a node reports because of a rule of this kind: the GUIDs of NodeInfo
 * (RULE_CLONE), the description (RULE_NAME) or the LID (RULE_LID). Without a rule, the node
 * itself.
 */
uint32_t faults_original(const struct fabric *fabric, enum rule_kind kind, uint32_t node);

/* Whether a node claims to have a master SM. */
bool faults_master(const struct fabric *fabric, uint32_t node);

bool faults_silent(const struct fabric *fabric, uint32_t node);

/* The built-in SM's delay for new routes, in nanoseconds; NO_REROUTES: no new routes. */
uint64_t faults_reroute(const struct fabric *fabric);

/* How many requests a host may have in flight; NO_LIMIT: any number. */
uint32_t faults_path_limit(const struct fabric *fabric, uint32_t node);

#endif
