/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Trees for multicast. All switches of a tree forward to its root by their unicast routes, so
 * the links in use form a tree. The root is in the middle of the longest route examined between
 * members. Members are sorted by port, so that a tree does not depend on the order of joins.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "routes.h"
#include "trees.h"

struct tree {
	uint32_t *ports; /* members */
	uint32_t count;
	uint32_t room;
	bool expired;
};

struct trees {
	struct tree of[MLID_COUNT];
	bool expired; /* any of the trees */
};

struct leaf { /* where a member is connected to a switch */
	uint32_t node;
	uint8_t number; /* of the switch's port */
};

static struct tree *tree_of(struct fabric *fabric, uint16_t mlid)
{
	if (!fabric->trees)
		fabric->trees = calloc(1, sizeof(*fabric->trees));
	return fabric->trees ? &fabric->trees->of[mlid - MLID_FIRST] : NULL;
}

static void expire(struct fabric *fabric, struct tree *tree)
{
	tree->expired = true;
	fabric->trees->expired = true;
}

/* The position of the first member at this port or a later one. */
static uint32_t place_of(const struct tree *tree, uint32_t port)
{
	uint32_t low = 0;
	uint32_t high = tree->count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (tree->ports[middle] < port)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int tree_join(struct fabric *fabric, uint16_t mlid, uint32_t port)
{
	struct tree *tree = tree_of(fabric, mlid);
	uint32_t place;

	if (!tree)
		return -ENOMEM;
	if (tree->count == tree->room) {
		uint32_t room = tree->room ? tree->room * 2 : 8;
		uint32_t *more = realloc(tree->ports, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		tree->ports = more;
		tree->room = room;
	}
	place = place_of(tree, port);
	memmove(tree->ports + place + 1, tree->ports + place,
		(tree->count - place) * sizeof(*tree->ports));
	tree->ports[place] = port;
	tree->count++;
	expire(fabric, tree);
	return 0;
}

void tree_leave(struct fabric *fabric, uint16_t mlid, uint32_t port)
{
	struct tree *tree = tree_of(fabric, mlid);
	uint32_t place = tree ? place_of(tree, port) : 0;

	if (!tree || place == tree->count || tree->ports[place] != port)
		return;
	tree->count--;
	memmove(tree->ports + place, tree->ports + place + 1,
		(tree->count - place) * sizeof(*tree->ports));
	expire(fabric, tree);
}

/* False if no switch forwards to the member. */
static bool find_leaf(const struct fabric *fabric, uint32_t port, struct leaf *leaf)
{
	uint32_t at = port;

	if (hardware(fabric, cable(fabric, port)->node)->type != NODE_SWITCH)
		at = cable(fabric, port)->peer;
	if (at == NONE || (at != port && !routes_link(fabric, at)))
		return false;
	*leaf = (struct leaf){cable(fabric, at)->node, cable(fabric, at)->number};
	return hardware(fabric, leaf->node)->type == NODE_SWITCH;
}

/* The next switch towards another one; NONE if there is no route. */
static uint32_t next_switch(struct fabric *fabric, uint32_t at, uint32_t to)
{
	uint8_t number = route_to_switch(fabric, at, to);

	if (number == 0 || number == NO_ROUTE)
		return NONE;
	return cable(fabric, cable(fabric, hardware(fabric, at)->first_port + number)->peer)
		->node;
}

static unsigned int hops_between(struct fabric *fabric, uint32_t from, uint32_t to)
{
	unsigned int count = 0;

	for (; from != to && from != NONE; from = next_switch(fabric, from, to))
		count++;
	return from == NONE ? 0 : count;
}

/* The member's switch farthest from a switch; the first if there are several. */
static uint32_t farthest_from(struct fabric *fabric, const struct leaf *leaves, uint32_t count,
			      uint32_t from)
{
	unsigned int most = 0;
	uint32_t farthest = from;

	for (uint32_t i = 0; i < count; i++) {
		unsigned int hops = hops_between(fabric, leaves[i].node, from);

		if (hops > most) {
			most = hops;
			farthest = leaves[i].node;
		}
	}
	return farthest;
}

static uint32_t choose_root(struct fabric *fabric, const struct leaf *leaves, uint32_t count)
{
	uint32_t end = farthest_from(fabric, leaves, count, leaves[0].node);
	uint32_t at = farthest_from(fabric, leaves, count, end);
	unsigned int half = hops_between(fabric, at, end) / 2;

	while (half-- > 0)
		at = next_switch(fabric, at, end);
	return at;
}

/* Makes the switches between a member and the root forward to both. */
static void climb(struct fabric *fabric, uint16_t mlid, const struct leaf *leaf, uint32_t root)
{
	uint32_t at = leaf->node;

	if (at != root && next_switch(fabric, at, root) == NONE)
		return;
	route_multicast_add(fabric, at, mlid, leaf->number);
	while (at != root) {
		uint8_t number = route_to_switch(fabric, at, root);
		const struct graph_port *out =
			cable(fabric, hardware(fabric, at)->first_port + number);

		if (route_multicast_has(fabric, at, mlid, number))
			return; /* from here on, it is another member's route */
		route_multicast_add(fabric, at, mlid, number);
		at = cable(fabric, out->peer)->node;
		route_multicast_add(fabric, at, mlid, cable(fabric, out->peer)->number);
	}
}

static void compute(struct fabric *fabric, uint16_t mlid, const struct tree *tree)
{
	struct leaf *leaves = malloc((tree->count + 1UL) * sizeof(*leaves));
	uint32_t count = 0;
	uint32_t root;

	route_multicast_clear(fabric, mlid);
	for (uint32_t i = 0; leaves && i < tree->count; i++)
		if (find_leaf(fabric, tree->ports[i], &leaves[count]))
			count++;
	if (count >= 2) {
		root = choose_root(fabric, leaves, count);
		for (uint32_t i = 0; i < count; i++)
			climb(fabric, mlid, &leaves[i], root);
	}
	free(leaves);
}

void trees_expire(struct fabric *fabric)
{
	for (uint32_t i = 0; fabric->trees && i < MLID_COUNT; i++)
		if (fabric->trees->of[i].count)
			expire(fabric, &fabric->trees->of[i]);
}

void trees_settle(struct fabric *fabric)
{
	if (!fabric->trees || !fabric->trees->expired)
		return;
	for (uint16_t i = 0; i < MLID_COUNT; i++) {
		struct tree *tree = &fabric->trees->of[i];

		if (tree->expired)
			compute(fabric, (uint16_t)(MLID_FIRST + i), tree);
		tree->expired = false;
	}
	fabric->trees->expired = false;
}

void trees_free(struct fabric *fabric)
{
	for (uint32_t i = 0; fabric->trees && i < MLID_COUNT; i++)
		free(fabric->trees->of[i].ports);
	free(fabric->trees);
	fabric->trees = NULL;
}
