/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Adds the cables once all nodes are known: finds the nodes that the lines name, and checks
 * that both ends of a cable agree and that names and GUIDs are unique. Sorts instead of
 * hashing, so that no input is slow.
 */

#include "read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct name {
	struct text id;
	uint32_t node;
};

/* Who has a GUID: a port, or a node (port is NONE). */
struct owner {
	uint64_t guid;
	uint32_t node;
	uint32_t port;
};

struct joining {
	struct reader *reader;
	struct name *names;   /* sorted */
	struct owner *owners; /* of GUIDs, sorted */
	uint32_t *end_of;     /* the index of a port's own line, or NONE */
	uint32_t owner_count;
};

static int compare_texts(const struct text *a, const struct text *b)
{
	size_t shorter = a->length < b->length ? a->length : b->length;
	int order = memcmp(a->bytes, b->bytes, shorter);

	return order ? order : (a->length > b->length) - (a->length < b->length);
}

static int compare_ids(const void *key, const void *member)
{
	return compare_texts(&((const struct name *)key)->id,
			     &((const struct name *)member)->id);
}

static int compare_names(const void *first, const void *second)
{
	const struct name *a = first, *b = second;
	int order = compare_texts(&a->id, &b->id);

	return order ? order : (a->node > b->node) - (a->node < b->node);
}

static int sort_names(struct joining *joining)
{
	struct reader *reader = joining->reader;
	uint32_t i, count = reader->graph->node_count;

	for (i = 0; i < count; i++)
		joining->names[i] = (struct name){reader->records[i].id, i};
	qsort(joining->names, count, sizeof(*joining->names), compare_names);
	for (i = 1; i < count; i++) {
		const struct name *name = &joining->names[i];

		if (!compare_texts(&name[-1].id, &name->id))
			return read_fail(reader, reader->records[name->node].place, -EINVAL,
					 SHOW " is already a node, in line %u", SHOWN(name->id),
					 reader->records[name[-1].node].place.line);
	}
	return 0;
}

static uint32_t find_node(const struct joining *joining, struct text id)
{
	struct name key = {id, NONE};
	const struct name *found =
		bsearch(&key, joining->names, joining->reader->graph->node_count, sizeof(key),
			compare_ids);

	return found ? found->node : NONE;
}

static int find_peer(const struct joining *joining, const struct end *end, uint32_t *peer)
{
	uint32_t node = find_node(joining, end->peer);
	struct reader *reader = joining->reader;

	if (node == NONE)
		return read_fail(reader, end->place, -EINVAL, "no node " SHOW,
				 SHOWN(end->peer));
	*peer = graph_port(reader->graph, node, end->peer_number);
	if (*peer == NONE || !end->peer_number)
		return read_fail(reader, end->place, -EINVAL,
				 "no port %u on " SHOW ", which has %u", end->peer_number,
				 SHOWN(end->peer), reader->graph->nodes[node].port_count);
	return 0;
}

/* Widths or speeds that both ends support; if only one end has a value, that one. */
static unsigned int common(unsigned int a, unsigned int b)
{
	return a && b ? a & b : a | b;
}

static unsigned int best_width(unsigned int widths)
{
	static const struct {
		unsigned int bit, lanes;
	} order[] = {{8, 12}, {4, 8}, {2, 4}, {16, 2}, {1, 1}};
	size_t i;

	for (i = 0; i < sizeof(order) / sizeof(*order); i++) {
		if (widths & order[i].bit)
			return order[i].lanes;
	}
	return 4;
}

static enum link_speed best_speed(unsigned int speeds)
{
	unsigned int speed = SPEED_COUNT - 1;

	while (speed && !(speeds & 1U << speed))
		speed--;
	return (enum link_speed)speed;
}

/* Whether both ends support the link's values in the comment. */
static bool both_support(const struct graph *graph, const struct graph_port *port,
			 unsigned int width, unsigned int speed)
{
	return graph_supports(port, width, (enum link_speed)speed) &&
	       graph_supports(&graph->ports[port->peer], width, (enum link_speed)speed);
}

static int plug_in(const struct joining *joining, const struct end *end, uint32_t peer)
{
	static const struct end silent;
	struct reader *reader = joining->reader;
	uint32_t other_end = joining->end_of[peer];
	const struct end *other = other_end == NONE ? &silent : &reader->ends[other_end];
	unsigned int widths = common(end->widths, other->widths);
	unsigned int speeds = common(end->speeds, other->speeds);
	const struct graph_port *port;
	int ret;

	if (end->port == peer)
		return read_fail(reader, end->place, -EINVAL, "a cable from a port to itself");
	if ((end->widths || other->widths) && !widths)
		return read_fail(reader, end->place, -EINVAL,
				 "the width differs from that of the other end, line %u",
				 other->place.line);
	if ((end->speeds || other->speeds) && !speeds)
		return read_fail(reader, end->place, -EINVAL,
				 "the speed differs from that of the other end, line %u",
				 other->place.line);
	ret = graph_cable(reader->graph, end->port, peer, best_width(widths),
			  best_speed(speeds));
	port = &reader->graph->ports[end->port];
	if (!ret && !both_support(reader->graph, port, port->width, port->speed))
		return read_fail(reader, end->place, -EINVAL,
				 "w=, s= or e= of an end excludes a link of %ux%s", port->width,
				 link_speed_name((enum link_speed)port->speed));
	return ret;
}

/* Reports which of the two ports is already cabled, and to which port. */
static int taken(const struct joining *joining, const struct end *end, uint32_t peer)
{
	const struct graph *graph = joining->reader->graph;
	uint32_t port = graph->ports[peer].peer == NONE ? end->port : peer;
	const struct graph_port *far = &graph->ports[graph->ports[port].peer];

	return read_fail(joining->reader, end->place, -EINVAL,
			 "port %u of \"%s\" is already cabled to port %u of \"%s\"",
			 graph->ports[port].number, graph->nodes[graph->ports[port].node].name,
			 far->number, graph->nodes[far->node].name);
}

/* A line's values for the port at the other end count only if that port's own line has none. */
static int heed_peer_guid(const struct joining *joining, const struct end *end, uint32_t peer)
{
	struct reader *reader = joining->reader;
	struct graph_port *port = &reader->graph->ports[peer];
	uint32_t own = joining->end_of[peer];

	if (!end->peer_guid || reader->graph->nodes[port->node].type == NODE_SWITCH)
		return 0;
	if (own != NONE && reader->ends[own].guid && reader->ends[own].guid != end->peer_guid)
		return read_fail(reader, end->place, -EINVAL,
				 "port GUID %" PRIx64 ", but line %u says %" PRIx64,
				 end->peer_guid, reader->ends[own].place.line, port->guid);
	port->guid = end->peer_guid;
	return 0;
}

static int heed_peer_lid(const struct joining *joining, const struct end *end, uint32_t peer)
{
	struct graph *graph = joining->reader->graph;
	const struct graph_node *node = &graph->nodes[graph->ports[peer].node];
	struct graph_port *port =
		&graph->ports[node->type == NODE_SWITCH ? node->first_port : peer];

	if (!end->peer_lid)
		return 0;
	if (port->lid && port->lid != end->peer_lid)
		return read_fail(joining->reader, end->place, -EINVAL,
				 "LID %u of \"%s\", but %u in another line", end->peer_lid,
				 node->name, port->lid);
	port->lid = end->peer_lid;
	return 0;
}

/* Both ends of a degraded link may say so, with the same values. */
static int heed_active(const struct joining *joining, const struct end *end)
{
	struct reader *reader = joining->reader;
	const struct graph_port *port = &reader->graph->ports[end->port];

	if (!end->active_width)
		return 0;
	if (port->most_width &&
	    (port->most_width != end->active_width || port->most_speed != end->active_speed))
		return read_fail(
			reader, end->place, -EINVAL,
			"active=%ux%s, but the other end says active=%ux%s", end->active_width,
			link_speed_name((enum link_speed)end->active_speed), port->most_width,
			link_speed_name((enum link_speed)port->most_speed));
	if (graph_degrade(reader->graph, end->port, end->active_width,
			  (enum link_speed)end->active_speed))
		return read_fail(reader, end->place, -EINVAL,
				 "active=%ux%s exceeds the link's %ux%s", end->active_width,
				 link_speed_name((enum link_speed)end->active_speed),
				 port->width, link_speed_name((enum link_speed)port->speed));
	if (!both_support(reader->graph, port, end->active_width, end->active_speed))
		return read_fail(reader, end->place, -EINVAL,
				 "w=, s= or e= of an end excludes active=%ux%s",
				 end->active_width,
				 link_speed_name((enum link_speed)end->active_speed));
	return 0;
}

static int join_end(const struct joining *joining, const struct end *end)
{
	const struct graph_port *ports = joining->reader->graph->ports;
	uint32_t peer = NONE;
	int ret = find_peer(joining, end, &peer);

	if (ret)
		return ret;
	if (ports[end->port].peer == NONE && ports[peer].peer == NONE)
		ret = plug_in(joining, end, peer);
	else if (ports[end->port].peer != peer)
		ret = taken(joining, end, peer);
	if (!ret)
		ret = heed_active(joining, end);
	if (!ret)
		ret = heed_peer_guid(joining, end, peer);
	return ret ? ret : heed_peer_lid(joining, end, peer);
}

static int join_ends(struct joining *joining)
{
	const struct reader *reader = joining->reader;
	uint32_t i;
	int ret = 0;

	for (i = 0; i < reader->graph->port_count; i++)
		joining->end_of[i] = NONE;
	for (i = 0; i < reader->end_count; i++)
		joining->end_of[reader->ends[i].port] = i;
	for (i = 0; i < reader->end_count && !ret; i++)
		ret = join_end(joining, &reader->ends[i]);
	return ret;
}

static int compare_owners(const void *first, const void *second)
{
	const struct owner *a = first, *b = second;

	if (a->guid != b->guid)
		return a->guid > b->guid ? 1 : -1;
	if (a->node != b->node)
		return a->node > b->node ? 1 : -1;
	return (a->port > b->port) - (a->port < b->port);
}

static void own(struct joining *joining, uint64_t guid, uint32_t node, uint32_t port)
{
	joining->owners[joining->owner_count++] = (struct owner){guid, node, port};
}

/* The files have no GUIDs for ports without a cable; ours are guesses and may not be unique. */
static void list_owners(struct joining *joining)
{
	const struct graph *graph = joining->reader->graph;
	uint32_t i;

	for (i = 0; i < graph->node_count; i++)
		own(joining, graph->nodes[i].guid, i, NONE);
	for (i = 0; i < graph->port_count; i++) {
		const struct graph_port *port = &graph->ports[i];

		if (port->guid && (port->peer != NONE || !port->number))
			own(joining, port->guid, port->node, i);
	}
	qsort(joining->owners, joining->owner_count, sizeof(*joining->owners), compare_owners);
}

/* All GUIDs must be unique, except that a node may share one with one of its ports. */
static int judge_guids(struct joining *joining)
{
	struct reader *reader = joining->reader;
	uint32_t i;

	list_owners(joining);
	for (i = 1; i < joining->owner_count; i++) {
		const struct owner *owner = &joining->owners[i];
		uint32_t end = owner->port == NONE ? NONE : joining->end_of[owner->port];

		if (owner->guid != owner[-1].guid ||
		    (owner->node == owner[-1].node && owner->port == NONE))
			continue;
		return read_fail(reader,
				 end == NONE ? reader->records[owner->node].place
					     : reader->ends[end].place,
				 -EINVAL, "GUID 0x%" PRIx64 " is already that of \"%s\"",
				 owner->guid, reader->graph->nodes[owner[-1].node].name);
	}
	return 0;
}

int cables_join(struct reader *reader)
{
	uint32_t nodes = reader->graph->node_count, ports = reader->graph->port_count;
	struct joining joining = {.reader = reader};
	int ret = -ENOMEM;

	if (!nodes)
		return 0;
	joining.names = malloc(nodes * sizeof(*joining.names));
	joining.end_of = malloc(ports * sizeof(*joining.end_of));
	if (joining.names && joining.end_of)
		ret = sort_names(&joining);
	if (!ret)
		ret = join_ends(&joining);
	free(joining.names);
	if (!ret) {
		/* every line adds a cable to two ports */
		joining.owners = malloc((2 * (size_t)nodes + 2 * (size_t)reader->end_count) *
					sizeof(*joining.owners));
		ret = joining.owners ? judge_guids(&joining) : -ENOMEM;
	}
	free(joining.owners);
	free(joining.end_of);
	return ret;
}
