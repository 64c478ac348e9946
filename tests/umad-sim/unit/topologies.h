/* SPDX-License-Identifier: BSD-2-Clause */

/* Common functions of the tests of topologies: load, inspect and compare. */
#ifndef FABRIC_TOPOLOGIES_H
#define FABRIC_TOPOLOGIES_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "topology.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static inline void load(struct graph *graph, const char *spec)
{
	struct topology_error error = {""};

	graph_init(graph);
	if (topology_load(graph, spec, &error))
		fail_msg("%s", error.text);
}

static inline void read_bytes(struct graph *graph, const char *text, size_t length)
{
	struct topology_error error = {""};

	graph_init(graph);
	if (topology_read(graph, text, length, "test.net", &error))
		fail_msg("%s", error.text);
}

static inline void read_text(struct graph *graph, const char *text)
{
	read_bytes(graph, text, strlen(text));
}

static inline const struct graph_port *port(const struct graph *graph, const char *node,
					    unsigned int number)
{
	uint32_t found = graph_port(graph, graph_find(graph, node), number);

	assert_int_not_equal(found, NONE);
	return &graph->ports[found];
}

static inline void assert_cabled(const struct graph *graph, const char *a, unsigned int a_port,
				 const char *b, unsigned int b_port)
{
	assert_ptr_equal(&graph->ports[port(graph, a, a_port)->peer], port(graph, b, b_port));
	assert_ptr_equal(&graph->ports[port(graph, b, b_port)->peer], port(graph, a, a_port));
}

static inline void assert_same(const struct graph *a, const struct graph *b)
{
	uint32_t i;

	assert_int_equal(a->node_count, b->node_count);
	assert_int_equal(a->port_count, b->port_count);
	for (i = 0; i < a->node_count; i++) {
		assert_string_equal(a->nodes[i].name, b->nodes[i].name);
		assert_int_equal(a->nodes[i].guid, b->nodes[i].guid);
		assert_int_equal(a->nodes[i].system_guid, b->nodes[i].system_guid);
		assert_int_equal(a->nodes[i].vendor_id, b->nodes[i].vendor_id);
		assert_int_equal(a->nodes[i].device_id, b->nodes[i].device_id);
		assert_int_equal(a->nodes[i].type, b->nodes[i].type);
		assert_int_equal(a->nodes[i].port_count, b->nodes[i].port_count);
		assert_int_equal(a->nodes[i].enhanced_port0, b->nodes[i].enhanced_port0);
	}
	for (i = 0; i < a->port_count; i++) {
		assert_int_equal(a->ports[i].guid, b->ports[i].guid);
		assert_int_equal(a->ports[i].peer, b->ports[i].peer);
		assert_int_equal(a->ports[i].lid, b->ports[i].lid);
		assert_int_equal(a->ports[i].lmc, b->ports[i].lmc);
		assert_int_equal(a->ports[i].width, b->ports[i].width);
		assert_int_equal(a->ports[i].speed, b->ports[i].speed);
		assert_int_equal(a->ports[i].most_width, b->ports[i].most_width);
		assert_int_equal(a->ports[i].most_speed, b->ports[i].most_speed);
		assert_int_equal(a->ports[i].widths, b->ports[i].widths);
		assert_int_equal(a->ports[i].speeds, b->ports[i].speeds);
		assert_int_equal(a->ports[i].extended_speeds, b->ports[i].extended_speeds);
	}
}

static inline void print_and_read(const struct graph *graph, struct graph *again)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	assert_non_null(out);
	topology_print(graph, out);
	fclose(out);
	read_bytes(again, text, length);
	free(text);
}

#endif
