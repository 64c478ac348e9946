/* SPDX-License-Identifier: BSD-2-Clause */

/* Stores the nodes, ports and cables of a topology, and finds nodes. */

#include "graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const speed_names[SPEED_COUNT] = {
	[SDR] = "SDR", [DDR] = "DDR", [QDR] = "QDR", [FDR10] = "FDR10", [FDR] = "FDR",
	[EDR] = "EDR", [HDR] = "HDR", [NDR] = "NDR", [XDR] = "XDR",
};

void graph_init(struct graph *graph)
{
	memset(graph, 0, sizeof(*graph));
}

void graph_free(struct graph *graph)
{
	uint32_t i;

	for (i = 0; i < graph->node_count; i++)
		free(graph->nodes[i].name);
	free(graph->nodes);
	free(graph->ports);
	graph_init(graph);
}

/* Doubles the size, so that adding takes constant time on average. */
static void *grow(void *array, uint32_t *room, uint32_t needed, size_t size)
{
	uint32_t more = *room ? *room : 16;
	void *grown;

	if (needed <= *room)
		return array;
	while (more < needed)
		more *= 2;
	grown = realloc(array, more * size);
	if (grown)
		*room = more;
	return grown;
}

static int make_room(struct graph *graph, uint32_t more_ports)
{
	struct graph_node *nodes;
	struct graph_port *ports;

	if (graph->node_count >= MAX_NODES || graph->port_count + more_ports > MAX_GRAPH_PORTS)
		return -E2BIG;
	nodes = grow(graph->nodes, &graph->node_room, graph->node_count + 1, sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	graph->nodes = nodes;
	ports = grow(graph->ports, &graph->port_room, graph->port_count + more_ports,
		     sizeof(*ports));
	if (!ports)
		return -ENOMEM;
	graph->ports = ports;
	return 0;
}

static uint64_t port_guid(enum node_type type, uint64_t guid, unsigned int number)
{
	if (type == NODE_SWITCH)
		return number ? 0 : guid;
	return number ? guid + number : 0;
}

int graph_add(struct graph *graph, enum node_type type, uint64_t guid, const char *name,
	      unsigned int port_count, uint32_t *node)
{
	struct graph_node *added;
	unsigned int number;
	char *copy;
	int ret;

	if (type < NODE_CA || type > NODE_ROUTER || !port_count || port_count > MAX_PORTS ||
	    strlen(name) > MAX_NAME)
		return -EINVAL;
	ret = make_room(graph, port_count + 1);
	if (ret)
		return ret;
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	added = &graph->nodes[graph->node_count];
	*added = (struct graph_node){
		.guid = guid,
		.system_guid = guid,
		.name = copy,
		.first_port = graph->port_count,
		.type = (uint8_t)type,
		.port_count = (uint8_t)port_count,
	};
	for (number = 0; number <= port_count; number++)
		graph->ports[graph->port_count++] = (struct graph_port){
			.guid = port_guid(type, guid, number),
			.node = graph->node_count,
			.peer = NONE,
			.number = (uint8_t)number,
		};
	*node = graph->node_count++;
	return 0;
}

uint32_t graph_port(const struct graph *graph, uint32_t node, unsigned int number)
{
	const struct graph_node *owner;

	if (node >= graph->node_count)
		return NONE;
	owner = &graph->nodes[node];
	if (number > owner->port_count || (!number && owner->type != NODE_SWITCH))
		return NONE;
	return owner->first_port + number;
}

bool link_width_exists(unsigned int width)
{
	return width == 1 || width == 2 || width == 4 || width == 8 || width == 12;
}

uint8_t width_bit(unsigned int lanes)
{
	switch (lanes) {
	case 1:
		return 1;
	case 2:
		return 16;
	case 0: /* no cable: the port supports 4x */
	case 4:
		return 2;
	case 8:
		return 4;
	default:
		return 8;
	}
}

bool graph_supports(const struct graph_port *port, unsigned int width, enum link_speed speed)
{
	unsigned int set = speed < FDR ? port->speeds : port->extended_speeds;
	unsigned int bit = speed < FDR ? (speed > QDR ? QDR : speed) : speed - FDR;

	return (!port->widths || port->widths & width_bit(width)) &&
	       (!set || speed == XDR || set & 1U << bit);
}

static void plug(struct graph_port *port, uint32_t peer, unsigned int width,
		 enum link_speed speed)
{
	port->peer = peer;
	port->width = (uint8_t)width;
	port->speed = (uint8_t)speed;
}

int graph_cable(struct graph *graph, uint32_t a, uint32_t b, unsigned int width,
		enum link_speed speed)
{
	struct graph_port *ports = graph->ports;

	if (a >= graph->port_count || b >= graph->port_count || a == b || !ports[a].number ||
	    !ports[b].number || !link_width_exists(width) || speed >= SPEED_COUNT)
		return -EINVAL;
	if (ports[a].peer != NONE || ports[b].peer != NONE)
		return -EBUSY;
	plug(&ports[a], b, width, speed);
	plug(&ports[b], a, width, speed);
	return 0;
}

int graph_degrade(struct graph *graph, uint32_t port, unsigned int width, enum link_speed speed)
{
	struct graph_port *ends[2] = {&graph->ports[port]};

	if (ends[0]->peer == NONE || !link_width_exists(width) || width > ends[0]->width ||
	    speed > ends[0]->speed)
		return -EINVAL;
	ends[1] = &graph->ports[ends[0]->peer];
	for (unsigned int i = 0; i < 2; i++) {
		ends[i]->most_width = (uint8_t)width;
		ends[i]->most_speed = (uint8_t)speed;
	}
	return 0;
}

uint32_t graph_find_guid(const struct graph *graph, uint64_t guid)
{
	uint32_t i;

	for (i = 0; i < graph->node_count; i++) {
		if (graph->nodes[i].guid == guid)
			return i;
	}
	return NONE;
}

static uint32_t find_name(const struct graph *graph, const char *name)
{
	uint32_t i;

	for (i = 0; i < graph->node_count; i++) {
		if (!strcmp(graph->nodes[i].name, name))
			return i;
	}
	return NONE;
}

/* Digits only: strtoull() also accepts signs and blanks. */
static bool parse_digits(const char *text, int base, uint64_t *number)
{
	const char *digits = base == 16 ? "0123456789abcdefABCDEF" : "0123456789";
	size_t length = strspn(text, digits);

	if (!length || text[length])
		return false;
	errno = 0;
	*number = strtoull(text, NULL, base);
	return !errno;
}

uint32_t graph_find(const struct graph *graph, const char *spec)
{
	uint32_t node = find_name(graph, spec);
	uint64_t number;

	if (node != NONE)
		return node;
	if (spec[0] == '0' && (spec[1] == 'x' || spec[1] == 'X'))
		return parse_digits(spec + 2, 16, &number) ? graph_find_guid(graph, number)
							   : NONE;
	if (spec[0] == '#' && parse_digits(spec + 1, 10, &number) && number < graph->node_count)
		return (uint32_t)number;
	return NONE;
}

const char *link_speed_name(enum link_speed speed)
{
	return speed < SPEED_COUNT ? speed_names[speed] : "?";
}

enum link_speed link_speed_parse(const char *name, size_t length)
{
	unsigned int i;

	for (i = 0; i < SPEED_COUNT; i++) {
		if (strlen(speed_names[i]) == length && !memcmp(speed_names[i], name, length))
			break;
	}
	return (enum link_speed)i;
}
