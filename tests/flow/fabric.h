/* SPDX-License-Identifier: BSD-2-Clause */

/* The description of a fabric and of the work on it. A seed draws a description. */
#ifndef TESTS_FLOW_FABRIC_H
#define TESTS_FLOW_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MOST_TROUBLES 2
#define MOST_DELAYS   3
#define MS            INT64_C(1000000) /* in nanoseconds */
#define US            INT64_C(1000)

enum layout {
	ALIKE,    /* each node has the round trip rtt_us */
	HOPS,     /* 1 to 6 hops; rtt_us is the round trip of 3.5 hops */
	NEAR_FAR, /* some nodes have rtt_us, the others far times as much */
	VARIED    /* from a quarter of rtt_us to four times rtt_us */
};

enum part {
	NOBODY,
	EVERY_NODE,
	FIRST_HALF,  /* the first half of the LIDs */
	INTERLEAVED, /* each LID that is odd */
};

enum trouble_kind {
	NO_TROUBLE,
	LOSS,  /* links lose the share of the MADs */
	STEP,  /* all round trips are factor times as long, for good */
	DEATHS /* the share of the nodes does not respond */
};

/* A trouble begins at_ms after the start and lasts ms. */
struct trouble {
	enum trouble_kind kind;
	double at_ms, ms;
	double share, factor;
};

enum request_kind {
	SMP, /* Get NodeInfo by LID */
	GMP, /* Get PortCounters */
	SA   /* Get PathRecord */
};

enum work {
	AT_ONCE, /* all requests are submitted at the start */
	CHAINS,  /* open requests are submitted at the start; each completion submits one */
	BURSTS   /* open requests are submitted each every_ms */
};

struct fabric {
	uint64_t seed;
	unsigned nodes;
	enum layout layout;
	double rtt_us, far;
	double near_share; /* 0: only the first node is near */
	double jitter;
	double service_us;
	double slow_share; /* of the nodes: slow times the service time */
	double slow;
	unsigned buffer; /* requests that wait at a node; 0: no limit */
	double dead_share;
	unsigned dead_first;          /* so many nodes at the beginning are dead, too */
	unsigned busy_first;          /* so many respond with BUSY, always */
	double delay_ms[MOST_DELAYS]; /* the first nodes respond so much later */
	enum part shared;             /* the nodes behind the shared queue */
	unsigned places;
	double queue_us;
	unsigned path_limit; /* MADs of a host that are in the fabric; 0: no limit */
	double loss;         /* each way */
	double stop_ms;      /* each node stops for this time in each second */
	struct trouble troubles[MOST_TROUBLES];
	/* the work */
	enum request_kind kind;
	enum work work;
	unsigned requests;
	unsigned open;   /* for CHAINS and BURSTS */
	double every_ms; /* for BURSTS */
	double until_ms; /* CHAINS without end submit until then; 0: requests */
	unsigned attempts, timeout_ms;
	unsigned hosts; /* each has a port and sends all requests; 0 stands for 1 */
};

static inline unsigned host_count(const struct fabric *fabric)
{
	return fabric->hosts ? fabric->hosts : 1;
}

/* A fabric of the random ranges. */
void fabric_draw(struct fabric *fabric, uint64_t seed);
/* Prints a line. */
void fabric_print(const struct fabric *fabric);

/* What is drawn for a node; nodes count from 0. */
struct node_facts {
	double rtt_us, service_us;
	double phase_ms; /* when it stops in each second */
	bool dead, dies, shared, busy;
};
struct node_facts fabric_node(const struct fabric *fabric, unsigned node);
/* The median over the nodes of round trip and service time. */
double fabric_median_rtt_us(const struct fabric *fabric);
int compare_doubles(const void *a, const void *b);

/* splitmix64 */
static inline uint64_t random_next(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* From 0 up to 1, 1 excluded. */
static inline double random_unit(uint64_t *state)
{
	return (double)(random_next(state) >> 11) * 0x1p-53;
}

#endif
