/* SPDX-License-Identifier: BSD-2-Clause */

/* A small fabric, and MADs to its nodes, to test the responses. */
#ifndef FABRIC_GMP_FIXTURE_H
#define FABRIC_GMP_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include "counters.h"
#include "fault_rules.h"
#include "faults.h"
#include "gmp_agents.h"
#include "pma.h"
#include "query.h"
#include "setup.h"
#include "test.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* The switch has cables from ports 1 and 2 to port 1 of each CA, and no others. */
enum {
	SWITCH,
	ALPHA,
	BETA
};

struct star {
	struct fabric fabric;
	uint8_t mad[MAD_BYTES];
};

static inline uint32_t port_of(const struct star *star, uint32_t node, unsigned int number)
{
	return graph_port(&star->fabric.graph, node, number);
}

static inline struct star *set_up(void)
{
	struct star *star = calloc(1, sizeof(*star));
	struct graph graph;
	uint32_t node;

	assert_non_null(star);
	graph_init(&graph);
	assert_int_equal(graph_add(&graph, NODE_SWITCH, 0x100, "switch", 4, &node), 0);
	assert_int_equal(graph_add(&graph, NODE_CA, 0x200, "alpha", 2, &node), 0);
	assert_int_equal(graph_add(&graph, NODE_CA, 0x300, "beta", 1, &node), 0);
	for (node = ALPHA; node <= BETA; node++)
		assert_int_equal(graph_cable(&graph, graph_port(&graph, SWITCH, node),
					     graph_port(&graph, node, 1), 4, EDR),
				 0);
	assert_int_equal(fabric_init(&star->fabric, &graph, 7), 0);
	return star;
}

static inline void tear_down(struct star *star)
{
	if (star->fabric.faults)
		faults_free(&star->fabric);
	fabric_free(&star->fabric);
	free(star);
}

#define STAR_TEST(name) TEST_ON(name, struct star *star, set_up, tear_down)

static inline void rule(struct star *star, const char *text)
{
	struct rule_error error;

	if (!star->fabric.faults)
		assert_int_equal(faults_init(&star->fabric), 0);
	if (fault_apply(&star->fabric, text, &error))
		fail_msg("%s: %s", text, error.text);
}

static inline void request(struct star *star, unsigned int class, unsigned int version,
			   unsigned int method, unsigned int attribute, uint32_t modifier)
{
	memset(star->mad, 0, MAD_BYTES);
	star->mad[0] = 1;
	star->mad[1] = (uint8_t) class;
	star->mad[2] = (uint8_t)version;
	star->mad[3] = (uint8_t)method;
	put64(star->mad + 8, 0x1234);
	put16(star->mad + 16, attribute);
	put32(star->mad + 20, modifier);
}

static inline struct query query_of(struct star *star, uint32_t node)
{
	return (struct query){.fabric = &star->fabric, .node = node, .mad = star->mad};
}

static inline unsigned int status_of_response(const struct star *star)
{
	return get16(star->mad + 4);
}

/* Sends the same random requests to every node: every response must have the form of one. */
static inline void ask_at_random(struct star *star, unsigned int class, unsigned int version,
				 bool (*agent)(struct query *query))
{
	uint64_t number = 1;

	for (uint64_t round = 0; round < 40000; round++) {
		struct query query = query_of(star, (uint32_t)(round % 3));

		for (unsigned int i = 0; i < MAD_BYTES; i += 8) {
			number = fabric_hash(&star->fabric, class, number, round);
			put64(star->mad + i, number);
		}
		star->mad[0] = 1;
		star->mad[1] = (uint8_t) class;
		star->mad[2] = (uint8_t)version;
		star->mad[3] &= 3; /* mostly methods that exist */
		put16(star->mad + 16, (unsigned int)(round >> 2) % 0x40); /* and existing
									   * attributes */
		if (round & 4)
			put32(star->mad + 20, star->mad[23] & 3);
		if (round & 8)
			star->mad[65] &= 3;
		star->fabric.now += number % SECOND;
		if (agent(&query))
			assert_true(mad_is_response(star->mad) || mad_modifier(star->mad) & 1);
	}
}

#endif
