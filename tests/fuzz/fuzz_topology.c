/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Any text as a topology: a valid one can be printed, and the printed text is the same
 * topology.
 */

#include "fuzz.h"
#include "topology.h"

#include <stdio.h>

/* A generated topology of 100,000 nodes tests no more than a small one. */
#define SMALL 3000

static void check_cables(const struct graph *graph)
{
	for (uint32_t i = 0; i < graph->port_count; i++) {
		const struct graph_port *port = &graph->ports[i];

		check(port->node < graph->node_count);
		check(graph->nodes[port->node].first_port + port->number == i);
		if (port->peer == NONE)
			continue;
		check(port->peer < graph->port_count && port->peer != i && port->number);
		check(graph->ports[port->peer].peer == i);
		check(link_width_exists(port->width) && port->speed < SPEED_COUNT);
		check(graph->ports[port->peer].width == port->width);
		check(graph->ports[port->peer].speed == port->speed);
	}
}

static void check_same(const struct graph *a, const struct graph *b)
{
	check(a->node_count == b->node_count && a->port_count == b->port_count);
	for (uint32_t i = 0; i < a->node_count; i++) {
		const struct graph_node *one = &a->nodes[i], *other = &b->nodes[i];

		check(one->guid == other->guid && one->system_guid == other->system_guid);
		check(one->type == other->type && !strcmp(one->name, other->name));
		check(one->vendor_id == other->vendor_id);
		check(one->device_id == other->device_id);
		check(one->enhanced_port0 == other->enhanced_port0);
	}
	for (uint32_t i = 0; i < a->port_count; i++) {
		const struct graph_port *one = &a->ports[i], *other = &b->ports[i];

		check(one->guid == other->guid && one->peer == other->peer);
		check(one->lid == other->lid && one->lmc == other->lmc);
		check(one->width == other->width && one->speed == other->speed);
	}
}

static void check_print(const struct graph *graph)
{
	struct topology_error error;
	struct graph again;
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	topology_print(graph, out);
	fclose(out);
	graph_init(&again);
	check(!topology_read(&again, text, length, "printed", &error));
	check_same(graph, &again);
	graph_free(&again);
	free(text);
}

static void check_result(struct graph *graph, int ret, const struct topology_error *error)
{
	check(ret <= 0);
	check(!ret || error->text[0]);
	check_cables(graph);
	if (!ret && graph->node_count <= SMALL)
		check_print(graph);
	graph_free(graph);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct topology_error error = {""};
	char *text = take_text(&(struct input){data, size});
	struct graph graph;

	graph_init(&graph);
	check_result(&graph, topology_generate(&graph, text, &error), &error);
	/* the files that it includes do not exist */
	check_result(&graph, topology_read(&graph, text, size, "/nowhere/fuzz.net", &error),
		     &error);
	free(text);
	return 0;
}
