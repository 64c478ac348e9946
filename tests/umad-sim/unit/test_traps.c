/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Trap 128, while links and switches fail at random: a switch with a route to the manager
 * reports each change of its links, and no other switch sends a trap that arrives.
 */
#include "net_fixture.h"
#include "test.h"

#include "link.h"
#include "wire_packet.h"

#define CASES       60
#define EVENTS      30
#define ROUTES      (2 * SWEEP_INTERVAL) /* in this time, the manager has new routes */
#define ON_THE_WIRE (500 * MILLISECOND)  /* 25 hops, each late by 20 ms */
#define NUMBER      (64 + 4)             /* offset in a Notice */
#define ISSUER      (64 + 6)
#define DETAILS_LID (64 + 10)
#define NODES_MOST  512
#define CHANCE_MAX  8

struct watched {
	bool changed;          /* at least once */
	bool connected;        /* there is a way to the manager over links that are up */
	bool mute;             /* silent, or without an SM LID */
	uint64_t cut_off;      /* since when it has no way */
	uint64_t traps_before; /* the number of all traps before the latest change */
	uint64_t latest;       /* transaction ID of the latest trap that arrived */
};

static struct watched watched[NODES_MOST];
static unsigned int arrivals;
static void (*receive)(struct fabric *fabric, uint32_t port, struct packet *packet);

static uint32_t below(uint32_t limit)
{
	return (uint32_t)rand() % limit;
}

static bool is_switch_node(const struct fabric *fabric, uint32_t node)
{
	return hardware(fabric, node)->type == NODE_SWITCH;
}

static bool carries(const struct fabric *fabric, uint32_t port)
{
	uint32_t peer = cable(fabric, port)->peer;

	return peer != NONE && link_is_up(fabric, port) && link_is_up(fabric, peer);
}

/* Marks the nodes that have a way to this one. */
static void mark(const struct fabric *fabric, uint32_t node, bool *reached)
{
	const struct graph_node *hw = hardware(fabric, node);

	reached[node] = true;
	if (!is_switch_node(fabric, node) && node != cable(fabric, fabric->sm_port)->node)
		return; /* a host forwards nothing */
	for (uint32_t number = 1; number <= hw->port_count; number++) {
		uint32_t port = hw->first_port + number;
		uint32_t next;

		if (!carries(fabric, port))
			continue;
		next = cable(fabric, cable(fabric, port)->peer)->node;
		if (!reached[next])
			mark(fabric, next, reached);
	}
}

static void note_connections(const struct fabric *fabric)
{
	bool reached[NODES_MOST] = {false};

	mark(fabric, cable(fabric, fabric->sm_port)->node, reached);
	for (uint32_t node = 0; node < fabric->graph.node_count; node++) {
		if (watched[node].connected && !reached[node])
			watched[node].cut_off = fabric->now;
		watched[node].connected = reached[node];
	}
}

/* The manager's port receives a trap. */
static void check_trap(const struct fabric *fabric, const struct packet *packet)
{
	uint32_t port = lid_owner(fabric, packet->slid);
	struct watched *from;

	assert_int_not_equal(port, NONE);
	from = &watched[cable(fabric, port)->node];
	assert_true(is_switch_node(fabric, cable(fabric, port)->node));
	assert_int_equal(get16(packet->mad + ISSUER), packet->slid);
	assert_int_equal(get16(packet->mad + DETAILS_LID), packet->slid);
	assert_true(from->changed);
	assert_false(from->mute);
	if (!from->connected)
		assert_true(fabric->now <= from->cut_off + ON_THE_WIRE);
	arrivals++;
	if (from->latest < get64(packet->mad + 8))
		from->latest = get64(packet->mad + 8);
}

static void note_arrival(struct fabric *fabric, uint32_t port, struct packet *packet)
{
	if (port == fabric->sm_port && mad_class_of(packet->mad) == CLASS_SMP &&
	    mad_method(packet->mad) == METHOD_TRAP && get16(packet->mad + NUMBER) == 128)
		check_trap(fabric, packet);
	receive(fabric, port, packet);
}

/* Applies a rule, and notes the switches whose links it changed. */
static void change(struct net *net, const char *rule)
{
	struct fabric *fabric = &net->fabric;
	uint64_t traps_before = fabric->trap_count;
	bool *before = calloc(fabric->graph.port_count, sizeof(bool));

	assert_non_null(before);
	for (uint32_t port = 0; port < fabric->graph.port_count; port++)
		before[port] = carries(fabric, port);
	tell(net, rule);
	for (uint32_t port = 0; port < fabric->graph.port_count; port++) {
		struct watched *node = &watched[cable(fabric, port)->node];

		if (before[port] == carries(fabric, port))
			continue;
		node->changed = true;
		node->traps_before = traps_before;
	}
	free(before);
	note_connections(fabric);
}

/* A link or a node goes down or comes up. */
static void change_something(struct net *net)
{
	struct fabric *fabric = &net->fabric;
	uint32_t port = below(fabric->graph.port_count);
	const struct graph_node *hw;
	char rule[128];

	while (cable(fabric, port)->peer == NONE)
		port = below(fabric->graph.port_count);
	hw = hardware(fabric, cable(fabric, port)->node);
	if (below(4))
		snprintf(rule, sizeof(rule), "link %s on %s/%u",
			 carries(fabric, port) ? "down" : "up", hw->name,
			 cable(fabric, port)->number);
	else
		snprintf(rule, sizeof(rule), "link %s on %s",
			 carries(fabric, port) ? "down" : "up", hw->name);
	change(net, rule);
}

/* Some switches never send a trap: they are silent, or know no manager. */
static void mute_some(struct net *net)
{
	struct fabric *fabric = &net->fabric;
	char rule[128];

	for (uint32_t node = 0; node < fabric->graph.node_count; node++) {
		if (!is_switch_node(fabric, node) || below(CHANCE_MAX))
			continue;
		watched[node].mute = true;
		if (below(2)) {
			fabric->ports[hardware(fabric, node)->first_port].sm_lid = 0;
			continue;
		}
		snprintf(rule, sizeof(rule), "silent on %s", hardware(fabric, node)->name);
		tell(net, rule);
	}
}

/* Each change of a switch with a way to the manager was reported, by a trap that is repressed.
 */
static void check_reports(struct net *net)
{
	const struct fabric *fabric = &net->fabric;
	unsigned int before;

	for (uint32_t node = 0; node < fabric->graph.node_count; node++) {
		const struct watched *from = &watched[node];

		if (!is_switch_node(fabric, node) || !from->changed || !from->connected ||
		    from->mute)
			continue;
		if (from->latest <= from->traps_before)
			fail_msg("%s has not reported its latest change",
				 hardware(fabric, node)->name);
	}
	before = arrivals;
	pass(&net->fabric, ROUTES);
	assert_int_equal(arrivals, before);
}

static void run_case(unsigned int seed)
{
	static const char *const topologies[] = {"fat-tree:4,2", "fat-tree:8,3",
						 "torus:4,4,1",  "torus:3,3,3",
						 "torus:5,1,1",  "dragonfly:4,3,2"};
	static const char *const rules[] = {NULL, "loss 10%", "reorder 30% 20ms",
					    "hop-latency 100us", "duplicate 20%"};
	static const uint64_t pauses[] = {0,      10000,     MILLISECOND, 30 * MILLISECOND,
					  SECOND, 3 * SECOND};
	const char *topology, *rule;
	struct net *net;

	srand(seed);
	topology = topologies[below(6)];
	rule = rules[below(5)];
	print_message("case %u: %s, %s\n", seed, topology, rule ? rule : "no rule");
	net = new_net(topology, rule);
	assert_in_range(net->fabric.graph.node_count, 1, NODES_MOST);
	memset(watched, 0, sizeof(watched));
	arrivals = 0;
	receive = net->fabric.arrived;
	net->fabric.arrived = note_arrival;
	mute_some(net);
	note_connections(&net->fabric);
	for (int i = 0; i < EVENTS; i++) {
		change_something(net);
		pass(&net->fabric, pauses[below(6)]);
	}
	pass(&net->fabric, ROUTES);
	if (rule && !strcmp(rule, "loss 10%")) { /* of a trap, or of its TrapRepress */
		tell(net, "loss 0%");
		pass(&net->fabric, ROUTES);
	}
	check_reports(net);
	free_net(net);
}

TEST(a_switch_with_a_route_reports_each_change_of_its_links)
{
	unsigned int seed = test_seed();

	for (unsigned int i = 0; i < CASES; i++)
		run_case(seed + i);
}
