/* SPDX-License-Identifier: BSD-2-Clause */

/* Prints a topology as ibnetdiscover does. Sets of widths and speeds are in ibsim's words, a
 * degraded link in umad-sim's own. */

#include "topology.h"

#include <inttypes.h>

/* A node type in ibnetdiscover's output: the header line, the id, the key of the GUID. */
static const struct {
	const char *header;
	char letter;
	const char *key;
} types[] = {
	[NODE_CA] = {"Ca", 'H', "ca"},
	[NODE_SWITCH] = {"Switch", 'S', "switch"},
	[NODE_ROUTER] = {"Rt", 'R', "rt"},
};

/* A switch has one LID for all its ports. */
static const struct graph_port *lid_holder(const struct graph *graph,
					   const struct graph_port *port)
{
	const struct graph_node *node = &graph->nodes[port->node];

	return node->type == NODE_SWITCH ? &graph->ports[node->first_port] : port;
}

static void print_header(const struct graph *graph, const struct graph_node *node, FILE *out)
{
	const struct graph_port *own = &graph->ports[node->first_port];

	fprintf(out, "\nvendid=0x%" PRIx32 "\ndevid=0x%x\nsysimgguid=0x%" PRIx64 "\n",
		node->vendor_id, node->device_id, node->system_guid);
	fprintf(out, "%sguid=0x%" PRIx64, types[node->type].key, node->guid);
	if (node->type == NODE_SWITCH)
		fprintf(out, "(%" PRIx64 ")", own->guid);
	fprintf(out, "\n%s\t%u \"%c-%016" PRIx64 "\"\t\t# \"%s\"", types[node->type].header,
		node->port_count, types[node->type].letter, node->guid, node->name);
	if (node->type == NODE_SWITCH)
		fprintf(out, " %s port 0 lid %u lmc %u",
			node->enhanced_port0 ? "enhanced" : "base", own->lid, own->lmc);
	fputc('\n', out);
}

static void print_port(const struct graph *graph, const struct graph_port *port, FILE *out)
{
	const struct graph_port *peer = &graph->ports[port->peer];
	const struct graph_node *far = &graph->nodes[peer->node];
	bool on_switch = graph->nodes[port->node].type == NODE_SWITCH;

	fprintf(out, "[%u]", port->number);
	if (!on_switch)
		fprintf(out, "(%" PRIx64 ") ", port->guid);
	fprintf(out, "\t\"%c-%016" PRIx64 "\"[%u]", types[far->type].letter, far->guid,
		peer->number);
	if (far->type != NODE_SWITCH)
		fprintf(out, "(%" PRIx64 ") ", peer->guid);
	if (port->widths)
		fprintf(out, " w=%u", port->widths);
	if (port->speeds)
		fprintf(out, " s=%u", port->speeds);
	if (port->extended_speeds)
		fprintf(out, " e=%u", port->extended_speeds);
	if (port->most_width)
		fprintf(out, " active=%ux%s", port->most_width,
			link_speed_name((enum link_speed)port->most_speed));
	fputs("\t\t#", out);
	if (!on_switch)
		fprintf(out, " lid %u lmc %u", port->lid, port->lmc);
	fprintf(out, " \"%s\" lid %u %ux%s\n", far->name, lid_holder(graph, peer)->lid,
		port->width, link_speed_name((enum link_speed)port->speed));
}

void topology_print(const struct graph *graph, FILE *out)
{
	uint32_t i;
	unsigned int number;

	fputs("#\n# Topology file\n#\n", out);
	for (i = 0; i < graph->node_count; i++) {
		const struct graph_node *node = &graph->nodes[i];

		print_header(graph, node, out);
		for (number = 1; number <= node->port_count; number++) {
			const struct graph_port *port =
				&graph->ports[node->first_port + number];

			if (port->peer != NONE)
				print_port(graph, port, out);
		}
	}
}
