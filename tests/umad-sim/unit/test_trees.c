/* SPDX-License-Identifier: BSD-2-Clause */

/* The trees of multicast groups in the switches' tables, and packets to groups. */
#include "net_fixture.h"
#include "test.h"

#include "trees.h"

#define MLID    0xc005
#define IN_TIME (60 * MILLISECOND)

static const char *const topologies[] = {"fat-tree:4,2",    "fat-tree:8,3", "torus:4,4,1",
					 "torus:3,3,3",     "torus:5,1,1",  "dragonfly:4,3,2",
					 "fat-tree:36,2,60"};

/* Random hosts join, about one in four. Returns their number. */
static unsigned int join_some(struct fabric *fabric, uint64_t chance)
{
	unsigned int count = 0;

	for (uint32_t port = 0; port < fabric->graph.port_count; port++)
		if (is_host(fabric, port) && fabric_hash(fabric, 't', port, chance) % 4 == 0) {
			assert_int_equal(tree_join(fabric, MLID, port), 0);
			count++;
		}
	return count;
}

struct visits {
	unsigned int *of_port;   /* how often each end port was reached */
	unsigned int *of_switch; /* and each switch, by node */
};

/*
 * Follows the tables from a switch's port. A tree is not deeper than the number of switches.
 */
static void follow(struct fabric *fabric, uint32_t at, struct visits *visits)
{
	uint32_t node = cable(fabric, at)->node;
	uint32_t first = hardware(fabric, node)->first_port;

	if (visits->of_switch[node]++)
		return;
	for (unsigned int number = 0; number <= hardware(fabric, node)->port_count; number++) {
		uint32_t out = first + number;
		uint32_t peer = cable(fabric, out)->peer;

		if (out == at || !route_multicast_has(fabric, node, MLID, number))
			continue;
		if (number == 0) {
			visits->of_port[out]++;
			continue;
		}
		assert_int_not_equal(peer, NONE);
		assert_true(link_is_up(fabric, out));
		if (hardware(fabric, cable(fabric, peer)->node)->type == NODE_SWITCH)
			follow(fabric, peer, visits);
		else
			visits->of_port[peer]++;
	}
}

/* A packet from any member reaches each other member once, and no other port. */
static void check_tree(struct fabric *fabric, const bool *is_member)
{
	trees_settle(fabric);
	for (uint32_t from = 0; from < fabric->graph.port_count; from++) {
		struct visits visits = {
			calloc(fabric->graph.port_count + 1UL, sizeof(unsigned int)),
			calloc(fabric->graph.node_count + 1UL, sizeof(unsigned int))};

		assert_true(visits.of_port && visits.of_switch);
		if (is_member[from]) {
			follow(fabric,
			       cable(fabric, from)->number ? cable(fabric, from)->peer : from,
			       &visits);
			for (uint32_t to = 0; to < fabric->graph.port_count; to++)
				assert_int_equal(visits.of_port[to],
						 is_member[to] && to != from);
			for (uint32_t node = 0; node < fabric->graph.node_count; node++)
				assert_true(visits.of_switch[node] <= 1);
		}
		free(visits.of_port);
		free(visits.of_switch);
	}
}

static bool *some_members(struct fabric *fabric, uint64_t chance)
{
	bool *members = calloc(fabric->graph.port_count + 1UL, sizeof(*members));

	assert_non_null(members);
	for (uint32_t port = 0; port < fabric->graph.port_count; port++)
		members[port] = is_host(fabric, port) &&
				fabric_hash(fabric, 't', port, chance) % 4 == 0;
	return members;
}

TEST(each_member_is_reached_once_from_each_other)
{
	for (size_t i = 0; i < COUNT_OF(topologies); i++) {
		struct net *net = new_net(topologies[i], NULL);
		bool *members = some_members(&net->fabric, 1);

		if (join_some(&net->fabric, 1) > 1)
			check_tree(&net->fabric, members);
		free(members);
		free_net(net);
	}
}

TEST(a_switch_is_a_member_by_its_port_0)
{
	struct net *net = new_net("torus:4,4,1", NULL);
	struct fabric *fabric = &net->fabric;
	bool *members = some_members(fabric, 2);
	uint32_t node = graph_find(&fabric->graph, "switch-2-3-1");
	uint32_t port = hardware(fabric, node)->first_port;

	assert_true(join_some(fabric, 2) > 0);
	assert_int_equal(tree_join(fabric, MLID, port), 0);
	members[port] = true;
	check_tree(fabric, members);
	assert_true(route_multicast_has(fabric, node, MLID, 0));
	free(members);
	free_net(net);
}

/* All multicast tables. */
static uint8_t *all_tables(struct fabric *fabric)
{
	uint8_t *tables = calloc(fabric->graph.node_count, 64);

	assert_non_null(tables);
	trees_settle(fabric);
	for (uint32_t node = 0; node < fabric->graph.node_count; node++)
		if (hardware(fabric, node)->type == NODE_SWITCH)
			route_multicast_block(fabric, node, 0, 0, tables + 64UL * node);
	return tables;
}

static bool are_blank(const struct fabric *fabric, const uint8_t *tables)
{
	for (size_t i = 0; i < fabric->graph.node_count * 64UL; i++)
		if (tables[i])
			return false;
	return true;
}

TEST(a_single_member_needs_no_tree)
{
	struct net *net = new_net("fat-tree:4,2", NULL);
	struct fabric *fabric = &net->fabric;
	uint32_t host = graph_port(&fabric->graph, graph_find(&fabric->graph, "host-3"), 1);
	uint8_t *tables;

	assert_int_equal(tree_join(fabric, MLID, host), 0);
	tables = all_tables(fabric);
	assert_true(are_blank(fabric, tables));
	free(tables);
	assert_int_equal(tree_join(fabric, MLID, fabric->sm_port), 0);
	tables = all_tables(fabric);
	assert_false(are_blank(fabric, tables));
	free(tables);
	tree_leave(fabric, MLID, host);
	tables = all_tables(fabric);
	assert_true(are_blank(fabric, tables));
	free(tables);
	free_net(net);
}

TEST(a_tree_does_not_depend_on_the_order_of_joins_and_leaves)
{
	struct net *net = new_net("fat-tree:8,3", NULL);
	struct fabric *fabric = &net->fabric;
	bool *members = some_members(fabric, 3);
	uint8_t *forth, *back;

	assert_true(join_some(fabric, 3) > 1);
	forth = all_tables(fabric);
	for (uint32_t port = 0; port < fabric->graph.port_count; port++)
		if (members[port])
			tree_leave(fabric, MLID, port);
	for (uint32_t port = 0; port < fabric->graph.port_count; port++)
		if (is_host(fabric, port) && !members[port])
			assert_int_equal(tree_join(fabric, MLID, port), 0);
	back = all_tables(fabric);
	assert_memory_not_equal(forth, back, fabric->graph.node_count * 64UL);
	free(back);
	for (uint32_t port = fabric->graph.port_count; port-- > 0;) {
		if (members[port])
			assert_int_equal(tree_join(fabric, MLID, port), 0);
		else
			tree_leave(fabric, MLID, port); /* some have never joined */
	}
	back = all_tables(fabric);
	assert_memory_equal(forth, back, fabric->graph.node_count * 64UL);
	free(forth);
	free(back);
	free(members);
	free_net(net);
}

TEST(trees_lead_round_dead_links)
{
	struct net *net = new_net("fat-tree:8,3", NULL);
	struct fabric *fabric = &net->fabric;
	bool *members = some_members(fabric, 4);
	uint8_t *before, *after;

	assert_true(join_some(fabric, 4) > 1);
	before = all_tables(fabric);
	for (unsigned int i = 1; i <= 3; i++) {
		char text[32];

		snprintf(text, sizeof(text), "link down on core-%u", i);
		tell(net, text);
	}
	tell(net, "link down on leaf-1/5");
	pass(fabric, 2 * SECOND); /* lost traps are sent again */
	check_tree(fabric, members);
	tell(net, "clear");
	pass(fabric, 2 * SECOND);
	after = all_tables(fabric);
	assert_memory_equal(before, after, fabric->graph.node_count * 64UL);
	free(before);
	free(after);
	free(members);
	free_net(net);
}

TEST(a_member_without_a_link_is_left_out)
{
	struct net *net = new_net("fat-tree:4,2", NULL);
	struct fabric *fabric = &net->fabric;
	static const char *const names[] = {"host-1", "host-4", "host-7"};
	bool members[256] = {false};

	assert_true(fabric->graph.port_count <= COUNT_OF(members));
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		uint32_t port =
			graph_port(&fabric->graph, graph_find(&fabric->graph, names[i]), 1);

		assert_int_equal(tree_join(fabric, MLID, port), 0);
		members[port] = i != 1;
	}
	tell(net, "link down on host-4");
	pass(fabric, IN_TIME);
	check_tree(fabric, members);
	free_net(net);
}

/* --- packets -------------------------------------------------------------------- */

static unsigned int arrivals[1024]; /* by port */

static void note_arrival(struct fabric *fabric, uint32_t port, struct packet *packet)
{
	(void)fabric;
	assert_true(port < COUNT_OF(arrivals));
	if (packet->dlid == MLID)
		arrivals[port]++;
}

static void send_to_group(struct fabric *fabric, uint32_t from)
{
	struct packet packet = {.from = from,
				.slid = fabric->ports[from].lid,
				.dlid = MLID,
				.source_qp = 1,
				.qp = 0xffffff,
				.qkey = 0x0b1b};

	packet.mad[0] = 1;
	packet.mad[1] = VENDOR_CLASS;
	packet.mad[2] = 1;
	packet.mad[3] = METHOD_SEND;
	memset(arrivals, 0, sizeof(arrivals));
	wire_send(fabric, &packet);
	settle(fabric);
}

TEST(a_packet_to_a_group_reaches_each_other_member_once)
{
	for (size_t i = 0; i < COUNT_OF(topologies) - 1; i++) {
		struct net *net = new_net(topologies[i], NULL);
		struct fabric *fabric = &net->fabric;
		bool *members = some_members(fabric, 5);

		fabric->arrived = note_arrival;
		if (join_some(fabric, 5) < 2)
			fail_msg("%s: too few members", topologies[i]);
		for (uint32_t from = 0; from < fabric->graph.port_count; from++) {
			if (!members[from])
				continue;
			send_to_group(fabric, from);
			for (uint32_t to = 0; to < fabric->graph.port_count; to++)
				assert_int_equal(arrivals[to], members[to] && to != from);
		}
		free(members);
		free_net(net);
	}
}

TEST(tables_that_are_no_tree_do_not_multiply_packets_for_ever)
{
	struct net *net = new_net("torus:3,3,3", NULL);
	struct fabric *fabric = &net->fabric;
	uint64_t most = 0;
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	assert_non_null(out);
	assert_int_equal(trace_to(fabric, out), 0);
	fabric->arrived = note_arrival;
	for (uint32_t node = 0; node < fabric->graph.node_count; node++)
		for (unsigned int number = 0; number <= hardware(fabric, node)->port_count;
		     number++)
			if (hardware(fabric, node)->type == NODE_SWITCH)
				route_multicast_add(fabric, node, MLID, number);
	send_to_group(fabric, fabric->sm_port);
	for (size_t i = 0; i < COUNT_OF(arrivals); i++)
		most += arrivals[i];
	assert_true(most > 0);
	assert_true(most <= fabric->graph.port_count * 2UL);
	fflush(out);
	assert_non_null(strstr(text, "went in circles"));
	free_net(net);
	fclose(out);
	free(text);
}

TEST(packets_to_a_group_do_not_reach_qp0_and_qp1)
{
	struct net *net = new_net("fat-tree:4,2", NULL);
	struct fabric *fabric = &net->fabric;
	uint32_t from = graph_port(&fabric->graph, graph_find(&fabric->graph, "host-1"), 1);
	uint32_t to = graph_port(&fabric->graph, graph_find(&fabric->graph, "host-2"), 1);
	struct inbox inbox;
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	assert_non_null(out);
	assert_int_equal(trace_to(fabric, out), 0);
	listen_at(fabric, &inbox, to, VENDOR_CLASS, METHOD_SEND);
	assert_int_equal(tree_join(fabric, MLID, from), 0);
	assert_int_equal(tree_join(fabric, MLID, to), 0);
	send_to_group(fabric, from);
	fflush(out);
	assert_int_equal(inbox.count, 0);
	assert_non_null(strstr(text, "in no group at host-2/1"));
	free_net(net);
	fclose(out);
	free(text);
}
