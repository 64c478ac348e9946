/* SPDX-License-Identifier: BSD-2-Clause */

/* Routes of the built-in manager while links go down and come up. */
#include "net_fixture.h"
#include "test.h"

#define IN_TIME (60 * MILLISECOND) /* the delay until routes change, and a little more */

/* The number of pairs of hosts without a route over links that are up; counts the hops of the
 * others. */
static unsigned int unconnected(struct fabric *fabric, unsigned int *hops)
{
	unsigned int count = 0;

	*hops = 0;
	for (uint32_t from = 0; from < fabric->graph.port_count; from++) {
		for (uint32_t to = 0; to < fabric->graph.port_count; to++) {
			uint32_t way[MOST_HOPS];
			int length;

			if (!is_host(fabric, from) || !is_host(fabric, to))
				continue;
			length = route_trace(fabric, from, fabric->ports[to].lid, way,
					     MOST_HOPS);
			for (int i = 0; i < length; i++)
				if (!link_is_up(fabric, way[i]))
					length = -1;
			if (length < 0)
				count++;
			else
				*hops += (unsigned int)length;
		}
	}
	return count;
}

/* All entries of all switches, to compare them. */
static uint8_t *all_routes(struct fabric *fabric, size_t *size)
{
	uint32_t lids = 0;
	uint8_t *routes;
	size_t at = 0;

	while (lids < LID_COUNT - 1 && fabric->lids[lids + 1] != NONE)
		lids++;
	routes = malloc((size_t)fabric->graph.node_count * lids);
	assert_non_null(routes);
	for (uint32_t node = 0; node < fabric->graph.node_count; node++)
		for (uint32_t lid = 1; lid <= lids; lid++)
			if (hardware(fabric, node)->type == NODE_SWITCH)
				routes[at++] = route_port(fabric, node, (uint16_t)lid);
	*size = at;
	return routes;
}

/* Routes avoid a link that is down, and are the same as before when it is up again. */
static void check_reroute(const char *topology, const char *down, const char *up)
{
	struct net *net = new_net(topology, NULL);
	struct fabric *fabric = &net->fabric;
	unsigned int hops, more, again;
	uint8_t *before, *after;
	size_t size, size_after;

	assert_int_equal(unconnected(fabric, &hops), 0);
	before = all_routes(fabric, &size);
	tell(net, down);
	settle(fabric);
	assert_true(unconnected(fabric, &more) > 0); /* routes change only after a delay */
	pass(fabric, IN_TIME);
	assert_int_equal(unconnected(fabric, &more), 0);
	tell(net, up);
	pass(fabric, IN_TIME);
	assert_int_equal(unconnected(fabric, &again), 0);
	assert_int_equal(again, hops);
	assert_true(more >= hops);
	after = all_routes(fabric, &size_after);
	assert_int_equal(size, size_after);
	assert_memory_equal(before, after, size);
	free(before);
	free(after);
	free_net(net);
}

TEST(routes_lead_round_a_dead_link_and_come_back)
{
	check_reroute("fat-tree:4,2", "link down on leaf-1/3", "link up on leaf-1/3");
	check_reroute("fat-tree:8,3", "link down on leaf-1/5", "link up on leaf-1/5");
	check_reroute("fat-tree:8,3", "link down on core-1", "link up on core-1");
	check_reroute("torus:4,4,1", "link down on switch-2-2-1/2",
		      "link up on switch-2-2-1/2");
	check_reroute("torus:3,3,3", "link down on switch-1-1-1/2",
		      "link up on switch-1-1-1/2");
}

TEST(a_longer_way_is_taken_if_there_is_no_other)
{
	struct net *net = new_net("torus:5,1,1", NULL); /* a ring */
	struct fabric *fabric = &net->fabric;
	uint32_t from = graph_port(&fabric->graph, graph_find(&fabric->graph, "host-1"), 1);
	uint32_t to = graph_port(&fabric->graph, graph_find(&fabric->graph, "host-2"), 1);
	uint16_t lid = fabric->ports[to].lid;
	uint32_t way[MOST_HOPS];
	char rule[64];

	assert_int_equal(route_trace(fabric, from, lid, way, MOST_HOPS), 3);
	snprintf(rule, sizeof(rule), "link down on %.20s/%u",
		 hardware(fabric, cable(fabric, way[1])->node)->name,
		 cable(fabric, way[1])->number);
	tell(net, rule);
	pass(fabric, IN_TIME);
	assert_int_equal(route_trace(fabric, from, lid, way, MOST_HOPS), 6);
	tell(net, "clear");
	pass(fabric, IN_TIME);
	assert_int_equal(route_trace(fabric, from, lid, way, MOST_HOPS), 3);
	free_net(net);
}

TEST(routes_that_do_not_use_the_dead_link_stay)
{
	struct net *net = new_net("fat-tree:8,3", NULL);
	struct fabric *fabric = &net->fabric;
	size_t size, size_after;
	uint8_t *before = all_routes(fabric, &size);
	uint8_t *after;
	unsigned int changed = 0;

	tell(net, "link down on leaf-1/5");
	pass(fabric, IN_TIME);
	after = all_routes(fabric, &size_after);
	for (size_t i = 0; i < size; i++)
		changed += before[i] != after[i];
	assert_true(changed > 0);
	assert_true(changed < size / 8);
	free(before);
	free(after);
	free_net(net);
}

TEST(a_switch_without_power_is_left_out)
{
	struct net *net = new_net("fat-tree:4,2", NULL);
	unsigned int hops;

	tell(net, "reboot 5s on spine-1");
	pass(&net->fabric, SECOND + IN_TIME); /* lost traps are sent again */
	assert_int_equal(unconnected(&net->fabric, &hops), 0);
	free_net(net);
}

/* How many of the routes between hosts go through a switch. */
static unsigned int ways_through(struct fabric *fabric, const char *name)
{
	uint32_t node = graph_find(&fabric->graph, name);
	unsigned int count = 0;

	for (uint32_t from = 0; from < fabric->graph.port_count; from++) {
		for (uint32_t to = 0; to < fabric->graph.port_count; to++) {
			uint32_t way[MOST_HOPS];
			int length = 0;

			if (is_host(fabric, from) && is_host(fabric, to))
				length = route_trace(fabric, from, fabric->ports[to].lid, way,
						     MOST_HOPS);
			for (int i = 0; i < length; i++)
				count += cable(fabric, way[i])->node == node;
		}
	}
	return count;
}

TEST(a_silent_switch_is_avoided_from_the_next_sweep_on)
{
	struct net *net = new_net("fat-tree:4,2", NULL);
	unsigned int hops;

	assert_true(ways_through(&net->fabric, "spine-1") > 0);
	tell(net, "silent on spine-1");
	pass(&net->fabric, SECOND);
	assert_true(ways_through(&net->fabric, "spine-1") > 0); /* no trap is sent */
	pass(&net->fabric, SWEEP_INTERVAL);
	assert_int_equal(ways_through(&net->fabric, "spine-1"), 0);
	tell(net, "silent on leaf-1"); /* its hosts have no other route */
	pass(&net->fabric, SWEEP_INTERVAL);
	assert_int_equal(unconnected(&net->fabric, &hops), 0);
	tell(net, "clear");
	pass(&net->fabric, SWEEP_INTERVAL);
	assert_true(ways_through(&net->fabric, "spine-1") > 0);
	free_net(net);
}

TEST(rules_of_the_start_are_known_from_the_start)
{
	struct net *net = new_net("fat-tree:4,2", "link down on leaf-1/3");
	unsigned int hops;

	assert_int_equal(unconnected(&net->fabric, &hops), 0);
	free_net(net);
}

TEST(a_host_without_a_link_has_no_route)
{
	struct net *net = new_net("fat-tree:4,2", NULL);
	struct fabric *fabric = &net->fabric;
	uint32_t host = graph_port(&fabric->graph, graph_find(&fabric->graph, "host-1"), 1);
	uint32_t leaf = graph_find(&fabric->graph, "leaf-1");
	uint16_t lid = fabric->ports[host].lid;

	assert_int_equal(route_port(fabric, leaf, lid), 1);
	tell(net, "link down on host-1");
	pass(fabric, IN_TIME);
	assert_int_equal(route_port(fabric, leaf, lid), NO_ROUTE);
	tell(net, "link up on host-1");
	pass(fabric, IN_TIME);
	assert_int_equal(route_port(fabric, leaf, lid), 1);
	free_net(net);
}

TEST(a_rule_says_how_long_new_routes_take)
{
	struct net *net = new_net("fat-tree:4,2", "reroute 3s");
	unsigned int hops;

	tell(net, "link down on leaf-1/3");
	pass(&net->fabric, 3 * SECOND - 1);
	assert_true(unconnected(&net->fabric, &hops) > 0);
	pass(&net->fabric, 1);
	assert_int_equal(unconnected(&net->fabric, &hops), 0);
	free_net(net);
}

TEST(a_rule_keeps_routes_as_they_are)
{
	struct net *net = new_net("fat-tree:4,2", "reroute never");
	unsigned int hops;

	tell(net, "link down on leaf-1/3");
	pass(&net->fabric, 2 * SWEEP_INTERVAL);
	assert_true(unconnected(&net->fabric, &hops) > 0);
	tell(net, "reroute 0s");
	pass(&net->fabric, SWEEP_INTERVAL);
	assert_int_equal(unconnected(&net->fabric, &hops), 0);
	free_net(net);
}

TEST(a_sweep_clears_port_state_change)
{
	struct net *net = new_net("fat-tree:4,2", NULL);
	uint32_t leaf = graph_find(&net->fabric.graph, "leaf-1");

	tell(net, "link down on leaf-1/3");
	assert_true(net->fabric.nodes[leaf].state_change);
	pass(&net->fabric, IN_TIME);
	assert_false(net->fabric.nodes[leaf].state_change);
	free_net(net);
}
