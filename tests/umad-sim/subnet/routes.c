/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Forwarding tables. Computed ones are stored as one row per destination switch: for each
 * switch, the port by which it forwards towards the destination, found by a breadth-first
 * search from there. All end ports of a switch share its row, so a fabric of 5,000 switches
 * needs at most 25 MB.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mad_header.h"
#include "routes.h"

#define BLOCKS           (LID_COUNT / 64)
#define MULTICAST_BLOCKS 32 /* of 32 MLIDs each: SwitchInfo's MulticastFDBCap is 1,024 */
#define POSITIONS        16

struct switch_tables {
	uint8_t *linear[BLOCKS];
	uint8_t *multicast[MULTICAST_BLOCKS][POSITIONS];
};

struct routes {
	bool computed;
	uint32_t *switches; /* the switches, as nodes */
	uint32_t count;
	uint8_t **rows;  /* by rank of the destination; NULL: not needed yet */
	uint32_t *queue; /* for the search */
	uint32_t *next;  /* by port: far_end(), with the link as the SM knows it */
	bool *down;      /* by port: whether the SM knows its link as down */
	bool *avoided;   /* by rank: only used if no other switch leads to the destination */
	uint32_t avoided_count;
};

/*
 * The search reads one word per port of a switch: the rank of the switch at the other end and,
 * in the lowest 8 bits, the port number there. If there is no switch, the rank is the number of
 * switches, whose row entry is never NO_ROUTE, so the search skips it.
 */
static uint32_t far_end(const struct fabric *fabric, uint32_t port, bool up)
{
	const struct routes *routes = fabric->routes;
	uint32_t peer = cable(fabric, port)->peer;
	uint32_t rank = peer == NONE ? NONE : fabric->nodes[cable(fabric, peer)->node].rank;

	_Static_assert(MAX_NODES < 1 << 24, "a rank has 24 bits");
	return rank == NONE || !up ? routes->count << 8
				   : rank << 8 | cable(fabric, peer)->number;
}

int routes_init(struct fabric *fabric, bool computed)
{
	const struct graph *graph = &fabric->graph;
	struct routes *routes = calloc(1, sizeof(*routes));

	if (!routes)
		return -ENOMEM;
	fabric->routes = routes;
	routes->computed = computed;
	routes->switches = malloc((graph->node_count + 1UL) * sizeof(*routes->switches));
	if (!routes->switches)
		return -ENOMEM;
	for (uint32_t node = 0; node < graph->node_count; node++) {
		fabric->nodes[node].rank = NONE;
		if (graph->nodes[node].type == NODE_SWITCH) {
			fabric->nodes[node].rank = routes->count;
			routes->switches[routes->count++] = node;
		}
	}
	routes->rows = calloc(routes->count + 1UL, sizeof(*routes->rows));
	routes->queue = malloc((routes->count + 1UL) * sizeof(*routes->queue));
	routes->next = malloc((graph->port_count + 1UL) * sizeof(*routes->next));
	routes->down = calloc(graph->port_count + 1UL, sizeof(*routes->down));
	routes->avoided = calloc(routes->count + 1UL, sizeof(*routes->avoided));
	if (!routes->rows || !routes->queue || !routes->next || !routes->down ||
	    !routes->avoided)
		return -ENOMEM;
	for (uint32_t port = 0; port < graph->port_count; port++)
		routes->next[port] = far_end(fabric, port, true);
	return 0;
}

bool routes_set_link(struct fabric *fabric, uint32_t port, bool up)
{
	uint32_t peer = cable(fabric, port)->peer;

	if (fabric->routes->down[port] != up)
		return false;
	fabric->routes->down[port] = !up;
	if (peer != NONE)
		fabric->routes->next[peer] = far_end(fabric, peer, up);
	return true;
}

bool routes_link(const struct fabric *fabric, uint32_t port)
{
	return !fabric->routes->down[port];
}

bool routes_set_avoided(struct fabric *fabric, uint32_t switch_node, bool avoided)
{
	struct routes *routes = fabric->routes;
	bool *known = &routes->avoided[fabric->nodes[switch_node].rank];

	if (*known == avoided)
		return false;
	*known = avoided;
	if (avoided)
		routes->avoided_count++;
	else
		routes->avoided_count--;
	return true;
}

void routes_forget(struct fabric *fabric)
{
	struct routes *routes = fabric->routes;

	for (uint32_t i = 0; routes->rows && i < routes->count; i++) {
		free(routes->rows[i]);
		routes->rows[i] = NULL;
	}
}

void routes_free(struct fabric *fabric)
{
	struct routes *routes = fabric->routes;

	if (!routes)
		return;
	routes_forget(fabric);
	free(routes->rows);
	free(routes->queue);
	free(routes->next);
	free(routes->down);
	free(routes->avoided);
	free(routes->switches);
	free(routes);
	fabric->routes = NULL;
}

/* Chooses between equally good ports: to balance the load, each switch begins its search at a
 * different port for each destination. */
static uint32_t expand(const struct fabric *fabric, uint32_t destination, uint32_t at,
		       uint8_t *row, uint32_t tail)
{
	const struct routes *routes = fabric->routes;
	const struct graph_node *node = hardware(fabric, at);
	const uint32_t *next = routes->next + node->first_port + 1;
	unsigned int count = node->port_count;
	unsigned int first = 0;

	while (first < count && row[next[first] >> 8] != NO_ROUTE)
		first++;
	if (first == count)
		return tail; /* most switches lead to none that is still to be found */
	first = (unsigned int)fabric_hash(fabric, 'r', destination, at) % count;
	for (unsigned int i = 0; i < count; i++) {
		uint32_t far = next[(first + i) % count];

		if (row[far >> 8] != NO_ROUTE)
			continue;
		row[far >> 8] = (uint8_t)far;
		routes->queue[tail++] = routes->switches[far >> 8];
	}
	return tail;
}

/* An avoided switch is only used for destinations that no other switch leads to. The search
 * ends when all switches are found. */
static void walk(const struct fabric *fabric, uint32_t destination, uint8_t *row)
{
	const struct routes *routes = fabric->routes;
	uint32_t tail = 0;

	memset(row, NO_ROUTE, routes->count);
	row[routes->count] = 0;
	row[fabric->nodes[destination].rank] = 0;
	routes->queue[tail++] = destination;
	for (uint32_t head = 0; head < tail && tail < routes->count; head++) {
		uint32_t at = routes->queue[head];

		if (at == destination || !routes->avoided[fabric->nodes[at].rank])
			tail = expand(fabric, destination, at, row, tail);
	}
	if (!routes->avoided_count)
		return;
	for (uint32_t head = 0; head < tail && tail < routes->count; head++)
		tail = expand(fabric, destination, routes->queue[head], row, tail);
}

static const uint8_t *row_to(struct fabric *fabric, uint32_t destination)
{
	struct routes *routes = fabric->routes;
	uint32_t rank = fabric->nodes[destination].rank;

	if (!routes->rows[rank]) {
		routes->rows[rank] = malloc(routes->count + 1UL);
		if (routes->rows[rank])
			walk(fabric, destination, routes->rows[rank]);
	}
	return routes->rows[rank];
}

uint8_t route_to_switch(struct fabric *fabric, uint32_t switch_node, uint32_t destination)
{
	const uint8_t *row = row_to(fabric, destination);

	return row ? row[fabric->nodes[switch_node].rank] : NO_ROUTE;
}

static uint8_t compute_port(struct fabric *fabric, uint32_t switch_node, uint16_t lid)
{
	uint32_t owner = lid_owner(fabric, lid);
	uint32_t destination;

	if (!fabric->routes || !fabric->routes->computed || owner == NONE)
		return NO_ROUTE;
	destination = cable(fabric, owner)->node;
	if (hardware(fabric, destination)->type != NODE_SWITCH) {
		uint32_t leaf = cable(fabric, owner)->peer;

		if (leaf == NONE || fabric->routes->down[leaf])
			return NO_ROUTE;
		destination = cable(fabric, leaf)->node;
		if (destination == switch_node)
			return cable(fabric, leaf)->number;
		if (hardware(fabric, destination)->type != NODE_SWITCH)
			return NO_ROUTE;
	}
	return route_to_switch(fabric, switch_node, destination);
}

/* A table's entry: the one that was set, or else computed. */
static uint8_t entry(struct fabric *fabric, uint32_t switch_node, uint16_t lid)
{
	const struct switch_tables *tables = fabric->nodes[switch_node].tables;

	if (tables && tables->linear[lid / 64])
		return tables->linear[lid / 64][lid % 64];
	return compute_port(fabric, switch_node, lid);
}

uint8_t route_port(struct fabric *fabric, uint32_t switch_node, uint16_t lid)
{
	if (lid >= LID_COUNT || lid > fabric->nodes[switch_node].linear_top)
		return NO_ROUTE;
	return entry(fabric, switch_node, lid);
}

void route_block(struct fabric *fabric, uint32_t switch_node, unsigned int block,
		 uint8_t out[64])
{
	for (unsigned int i = 0; i < 64; i++)
		out[i] = block < BLOCKS ? entry(fabric, switch_node, (uint16_t)(block * 64 + i))
					: NO_ROUTE;
}

static struct switch_tables *tables_of(struct fabric *fabric, uint32_t node)
{
	if (!fabric->nodes[node].tables)
		fabric->nodes[node].tables = calloc(1, sizeof(struct switch_tables));
	return fabric->nodes[node].tables;
}

/* Stores 64 bytes in a block, allocated on first use. */
static int set_block(uint8_t **block, const uint8_t in[64])
{
	if (!*block)
		*block = malloc(64);
	if (!*block)
		return -ENOMEM;
	memcpy(*block, in, 64);
	return 0;
}

int route_set_block(struct fabric *fabric, uint32_t switch_node, unsigned int block,
		    const uint8_t in[64])
{
	struct switch_tables *tables = tables_of(fabric, switch_node);

	return tables && block < BLOCKS ? set_block(&tables->linear[block], in) : -ENOMEM;
}

void route_multicast_block(const struct fabric *fabric, uint32_t switch_node,
			   unsigned int block, unsigned int position, uint8_t out[64])
{
	const struct switch_tables *tables = fabric->nodes[switch_node].tables;

	memset(out, 0, 64);
	if (tables && block < MULTICAST_BLOCKS && position < POSITIONS &&
	    tables->multicast[block][position])
		memcpy(out, tables->multicast[block][position], 64);
}

int route_set_multicast_block(struct fabric *fabric, uint32_t switch_node, unsigned int block,
			      unsigned int position, const uint8_t in[64])
{
	struct switch_tables *tables = tables_of(fabric, switch_node);

	if (!tables || block >= MULTICAST_BLOCKS || position >= POSITIONS)
		return -ENOMEM;
	return set_block(&tables->multicast[block][position], in);
}

/* The bits of 16 ports in a multicast LID's entry, in the block at a position. */
static uint8_t *multicast_entry(const struct switch_tables *tables, uint16_t mlid,
				unsigned int number)
{
	unsigned int place = mlid - MLID_FIRST;
	uint8_t *block = tables ? tables->multicast[place / 32][number / 16] : NULL;

	return block ? block + 2UL * (place % 32) : NULL;
}

bool route_multicast_has(const struct fabric *fabric, uint32_t switch_node, uint16_t mlid,
			 unsigned int number)
{
	const uint8_t *ports = multicast_entry(fabric->nodes[switch_node].tables, mlid, number);

	return ports && get16(ports) >> number % 16 & 1;
}

void route_multicast_add(struct fabric *fabric, uint32_t switch_node, uint16_t mlid,
			 unsigned int number)
{
	static const uint8_t none[64];
	struct switch_tables *tables = tables_of(fabric, switch_node);
	unsigned int block = (mlid - (unsigned int)MLID_FIRST) / 32;
	uint8_t *ports;

	if (tables && !tables->multicast[block][number / 16])
		set_block(&tables->multicast[block][number / 16], none);
	ports = multicast_entry(tables, mlid, number);
	if (ports)
		put16(ports, get16(ports) | 1U << number % 16);
}

void route_multicast_clear(struct fabric *fabric, uint16_t mlid)
{
	for (uint32_t i = 0; i < fabric->routes->count; i++) {
		const struct switch_tables *tables =
			fabric->nodes[fabric->routes->switches[i]].tables;

		for (unsigned int position = 0; tables && position < POSITIONS; position++) {
			uint8_t *ports = multicast_entry(tables, mlid, position * 16);

			if (ports)
				put16(ports, 0);
		}
	}
}

void switch_tables_free(struct switch_tables *tables)
{
	if (!tables)
		return;
	for (unsigned int i = 0; i < BLOCKS; i++)
		free(tables->linear[i]);
	for (unsigned int i = 0; i < MULTICAST_BLOCKS; i++)
		for (unsigned int position = 0; position < POSITIONS; position++)
			free(tables->multicast[i][position]);
	free(tables);
}

int route_trace(struct fabric *fabric, uint32_t from, uint16_t lid, uint32_t *hops, int room)
{
	uint32_t owner = lid_owner(fabric, lid);
	uint32_t at = from;
	int count = 0;

	if (owner == NONE)
		return -EHOSTUNREACH;
	while (end_port(fabric, at) != owner) {
		const struct graph_node *node = hardware(fabric, cable(fabric, at)->node);
		uint32_t out = at;

		if (node->type == NODE_SWITCH) {
			uint8_t number = route_port(fabric, cable(fabric, at)->node, lid);

			if (number == 0 || number > node->port_count)
				return -EHOSTUNREACH;
			out = node->first_port + number;
		} else if (at != from) {
			return -EHOSTUNREACH;
		}
		if (count == room || cable(fabric, out)->peer == NONE)
			return -EHOSTUNREACH;
		hops[count++] = out;
		at = cable(fabric, out)->peer;
	}
	return count;
}
