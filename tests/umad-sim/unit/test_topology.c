/* SPDX-License-Identifier: BSD-2-Clause */

/* Graphs and generated topologies; the printed text can be read again. */

#include "topologies.h"
#include "test.h"

#include <errno.h>
#include <time.h>

static const char *const generated[] = {
	"pair",
	"pair@12xFDR10",
	"fat-tree:8,1",
	"fat-tree:7,1",
	"fat-tree:2,3",
	"fat-tree:8,2",
	"fat-tree:6,3@1xXDR",
	"fat-tree:4,4,21",
	"fat-tree:4,3,9",
	"fat-tree:8,3,3",
	"dragonfly:1,4,2",
	"dragonfly:2,1,1",
	"dragonfly:9,4,2",
	"dragonfly:10,4,3@2xNDR",
	"torus:1,1,1",
	"torus:2,1,1",
	"torus:2,2,2,3",
	"torus:3,3,3",
	"torus:5,4,2,2@8xEDR",
};

static void assert_cables_have_two_ends(const struct graph *graph)
{
	uint32_t i;

	for (i = 0; i < graph->port_count; i++) {
		const struct graph_port *end = &graph->ports[i];

		assert_int_equal(graph->nodes[end->node].first_port + end->number, i);
		if (end->peer == NONE)
			continue;
		assert_int_not_equal(end->peer, i);
		assert_int_equal(graph->ports[end->peer].peer, i);
		assert_int_equal(graph->ports[end->peer].speed, end->speed);
		assert_int_equal(graph->ports[end->peer].width, end->width);
	}
}

/* How many nodes are reachable from the first one. */
static uint32_t reachable(const struct graph *graph)
{
	uint32_t *queue = calloc(graph->node_count, sizeof(*queue)), count = 1, next;
	bool *seen = calloc(graph->node_count, sizeof(*seen));
	unsigned int number;

	assert_true(queue && seen);
	seen[0] = true;
	for (next = 0; next < count; next++) {
		const struct graph_node *node = &graph->nodes[queue[next]];

		for (number = 1; number <= node->port_count; number++) {
			uint32_t peer = graph->ports[node->first_port + number].peer;

			if (peer == NONE || seen[graph->ports[peer].node])
				continue;
			seen[graph->ports[peer].node] = true;
			queue[count++] = graph->ports[peer].node;
		}
	}
	free(queue);
	free(seen);
	return count;
}

static uint32_t count_type(const struct graph *graph, enum node_type type)
{
	uint32_t i, count = 0;

	for (i = 0; i < graph->node_count; i++)
		count += graph->nodes[i].type == type;
	return count;
}

static uint32_t count_cables(const struct graph *graph)
{
	uint32_t i, ends = 0;

	for (i = 0; i < graph->port_count; i++)
		ends += graph->ports[i].peer != NONE;
	return ends / 2;
}

static struct graph graph;

static int setup(void)
{
	graph_init(&graph);
	return 0;
}

static int teardown(void)
{
	graph_free(&graph);
	return 0;
}

FIXTURE(setup, teardown);

/* ---- the graph ---- */

TEST(a_node_is_found_by_name_guid_and_number)
{
	uint32_t node;

	assert_int_equal(graph_add(&graph, NODE_CA, 0x10, "alpha", 2, &node), 0);
	assert_int_equal(graph_add(&graph, NODE_SWITCH, 0x20, "#0", 3, &node), 0);
	assert_int_equal(node, 1);
	assert_int_equal(graph_find(&graph, "alpha"), 0);
	assert_int_equal(graph_find(&graph, "0x20"), 1);
	assert_int_equal(graph_find(&graph, "0X0020"), 1);
	assert_int_equal(graph_find(&graph, "#1"), 1);
	assert_int_equal(graph_find(&graph, "#0"), 1); /* names have priority */
	assert_int_equal(graph_find(&graph, "#2"), NONE);
	assert_int_equal(graph_find(&graph, "#-1"), NONE);
	assert_int_equal(graph_find(&graph, "# 1"), NONE);
	assert_int_equal(graph_find(&graph, "0x"), NONE);
	assert_int_equal(graph_find(&graph, "0x10000000000000020"), NONE);
	assert_int_equal(graph_find(&graph, "alph"), NONE);
	assert_int_equal(graph_find(&graph, ""), NONE);
}

TEST(ports_have_the_guids_that_their_node_gives_them)
{
	uint32_t node;

	assert_int_equal(graph_add(&graph, NODE_CA, 0x10, "a", 2, &node), 0);
	assert_int_equal(graph_add(&graph, NODE_SWITCH, 0x20, "s", 3, &node), 0);
	assert_int_equal(port(&graph, "a", 1)->guid, 0x11);
	assert_int_equal(port(&graph, "a", 2)->guid, 0x12);
	assert_int_equal(port(&graph, "s", 0)->guid, 0x20);
	assert_int_equal(port(&graph, "s", 3)->guid, 0);
	assert_int_equal(graph_port(&graph, 0, 0), NONE);
	assert_int_equal(graph_port(&graph, 0, 3), NONE);
	assert_int_equal(graph_port(&graph, 2, 1), NONE);
}

TEST(nodes_and_cables_that_cannot_be_are_refused)
{
	char name[MAX_NAME + 2];
	uint32_t node;

	memset(name, 'n', sizeof(name));
	name[MAX_NAME + 1] = 0;
	assert_int_equal(graph_add(&graph, (enum node_type)0, 1, "a", 1, &node), -EINVAL);
	assert_int_equal(graph_add(&graph, (enum node_type)4, 1, "a", 1, &node), -EINVAL);
	assert_int_equal(graph_add(&graph, NODE_CA, 1, "a", 0, &node), -EINVAL);
	assert_int_equal(graph_add(&graph, NODE_CA, 1, "a", 255, &node), -EINVAL);
	assert_int_equal(graph_add(&graph, NODE_CA, 1, name, 1, &node), -EINVAL);
	assert_int_equal(graph_add(&graph, NODE_SWITCH, 1, "a", 254, &node), 0);
	assert_int_equal(graph_cable(&graph, 1, 1, 4, HDR), -EINVAL);
	assert_int_equal(graph_cable(&graph, 0, 1, 4, HDR), -EINVAL);
	assert_int_equal(graph_cable(&graph, 1, 255, 4, HDR), -EINVAL);
	assert_int_equal(graph_cable(&graph, 1, NONE, 4, HDR), -EINVAL);
	assert_int_equal(graph_cable(&graph, 1, 2, 3, HDR), -EINVAL);
	assert_int_equal(graph_cable(&graph, 1, 2, 4, SPEED_COUNT), -EINVAL);
	assert_int_equal(graph_cable(&graph, 1, 2, 4, HDR), 0);
	assert_int_equal(graph_cable(&graph, 3, 2, 4, HDR), -EBUSY);
}

TEST(speeds_have_names)
{
	int speed;

	for (speed = SDR; speed < SPEED_COUNT; speed++) {
		const char *name = link_speed_name((enum link_speed)speed);

		assert_int_equal(link_speed_parse(name, strlen(name)), speed);
	}
	assert_int_equal(link_speed_parse("FDR10", 5), FDR10);
	assert_int_equal(link_speed_parse("FDR10", 3), FDR);
	assert_int_equal(link_speed_parse("FDR1", 4), SPEED_COUNT);
	assert_int_equal(link_speed_parse("", 0), SPEED_COUNT);
	assert_string_equal(link_speed_name(SPEED_COUNT), "?");
}

/* ---- generators ---- */

TEST(generated_topologies_have_the_nodes_and_cables_of_their_shape)
{
	static const struct {
		const char *spec;
		uint32_t hosts, switches, cables;
	} rows[] = {
		{"pair", 2, 0, 1},
		{"fat-tree:8,1", 8, 1, 8},
		{"fat-tree:7,1", 7, 1, 7},
		{"fat-tree:8,2", 32, 12, 64},
		{"fat-tree:6,3", 54, 45, 162},
		{"fat-tree:4,4", 32, 56, 128},
		{"fat-tree:8,3,3", 3, 1, 3},
		/* two leaves, one pod: no core switch is needed */
		{"fat-tree:8,3,5", 5, 2 + 4, 5 + 8},
		{"fat-tree:4,3,9", 9, 5 + 6 + 4, 9 + 10 + 12},
		{"dragonfly:1,4,2", 8, 4, 8 + 6},
		{"dragonfly:2,1,1", 2, 2, 2 + 1},
		{"dragonfly:9,4,2", 72, 36, 72 + 9 * 6 + 36},
		{"torus:1,1,1", 1, 1, 1},
		{"torus:2,1,1", 2, 2, 2 + 1},
		{"torus:2,2,2,3", 24, 8, 24 + 12},
		{"torus:3,3,3", 27, 27, 27 + 81},
		{"torus:5,4,2,2", 80, 40, 80 + 40 + 40 + 20},
	};
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		load(&graph, rows[i].spec);
		assert_int_equal(count_type(&graph, NODE_CA), rows[i].hosts);
		assert_int_equal(count_type(&graph, NODE_SWITCH), rows[i].switches);
		assert_int_equal(count_cables(&graph), rows[i].cables);
		graph_free(&graph);
	}
}

TEST(generated_topologies_are_connected_and_the_same_when_read_again)
{
	struct graph again;
	size_t i;

	for (i = 0; i < COUNT(generated); i++) {
		load(&graph, generated[i]);
		assert_cables_have_two_ends(&graph);
		assert_int_equal(reachable(&graph), graph.node_count);
		print_and_read(&graph, &again);
		assert_same(&graph, &again);
		graph_free(&graph);
		graph_free(&again);
	}
}

TEST(generated_nodes_are_named_in_order_hosts_first)
{
	load(&graph, "fat-tree:4,3");
	assert_int_equal(graph_find(&graph, "host-1"), 0);
	assert_int_equal(graph_find(&graph, "host-16"), 15);
	assert_int_equal(graph_find(&graph, "leaf-1"), 16);
	assert_int_equal(graph_find(&graph, "spine-1"), 24);
	assert_int_equal(graph_find(&graph, "core-4"), 35);
	assert_int_equal(graph.nodes[0].guid, 0x0002c90300100000);
	assert_int_equal(graph.nodes[1].guid, 0x0002c90300100010);
	assert_int_equal(graph.nodes[16].guid, 0x0002c90300f00000);
	assert_int_equal(graph.nodes[0].vendor_id, 0x2c9);
	assert_int_equal(graph.nodes[0].device_id, 0x101b);
	assert_int_equal(graph.nodes[16].device_id, 0xd2f0);
	assert_cabled(&graph, "host-4", 1, "leaf-2", 2);
	assert_cabled(&graph, "leaf-2", 3, "spine-1", 2);
	assert_cabled(&graph, "spine-2", 4, "core-4", 1);
	graph_free(&graph);
	load(&graph, "torus:3,2,1");
	assert_cabled(&graph, "switch-3-1-1", 3, "switch-1-1-1", 4);
	assert_cabled(&graph, "switch-1-1-1", 2, "switch-1-2-1", 2);
	graph_free(&graph);
	load(&graph, "dragonfly:3,2,1");
	assert_cabled(&graph, "switch-1-1", 3, "switch-2-2", 3);
}

TEST(links_have_the_width_and_speed_of_the_suffix)
{
	load(&graph, "pair");
	assert_int_equal(graph.ports[1].width, 4);
	assert_int_equal(graph.ports[1].speed, HDR);
	graph_free(&graph);
	load(&graph, "fat-tree:4,2@8xXDR");
	assert_int_equal(graph.ports[1].width, 8);
	assert_int_equal(graph.ports[1].speed, XDR);
}

TEST(a_large_tree_is_there_in_no_time)
{
	clock_t start = clock();

	load(&graph, "fat-tree:64,3");
	assert_int_equal(graph.node_count, 65536 + 2048 + 2048 + 1024);
	assert_int_equal(reachable(&graph), graph.node_count);
	graph_free(&graph);
	/* slow with sanitizers and valgrind */
	assert_true(clock() - start < 60 * CLOCKS_PER_SEC);
}

TEST(guids_do_not_meet_however_many_nodes_there_are)
{
	uint32_t i;

	load(&graph, "fat-tree:126,3,189000");
	for (i = 1; i < graph.node_count; i++)
		assert_true(graph.nodes[i].guid >= graph.nodes[i - 1].guid + 16);
	assert_in_range(graph.node_count, 190000, MAX_NODES);
}

TEST(nonsense_for_a_generator_is_refused_with_the_reason)
{
	static const struct {
		const char *spec, *reason;
	} rows[] = {
		{"pair:2", "expected pair[@WIDTHxSPEED]"},
		{"pair@", "expected a width and speed"},
		{"pair@4", "expected a width and speed"},
		{"pair@4x", "expected a width and speed"},
		{"pair@3xHDR", "expected a width and speed"},
		{"pair@4xhdr", "expected a width and speed"},
		{"pair@4xHDR ", "expected a width and speed"},
		{"fat-tree", "expected fat-tree:RADIX,LEVELS[,HOSTS]"},
		{"fat-tree:8", "expected fat-tree"},
		{"fat-tree:8,", "expected fat-tree"},
		{"fat-tree:8,2,3,4", "expected fat-tree"},
		{"fat-tree:8,2,3,4,5,6", "expected fat-tree"},
		{"fat-tree:8,-2", "expected fat-tree"},
		{"fat-tree:8,2x", "expected fat-tree"},
		{"fat-tree: 8,2", "expected fat-tree"},
		{"fat-tree:8,0", "numbers must not be 0"},
		{"fat-tree:0,2", "numbers must not be 0"},
		{"fat-tree:8,2,0", "numbers must not be 0"},
		{"fat-tree:9,2", "the radix must be even"},
		{"fat-tree:256,2", "more than 254 ports"},
		{"fat-tree:8,7", "more than 6 levels"},
		{"fat-tree:8,2,33", "at most 32 hosts"},
		{"fat-tree:254,6", "more than 200000 nodes"},
		{"fat-tree:64,4,190000", "more than 200000 nodes"},
		{"fat-tree:99999999999999999999,2", "more than 254 ports"},
		{"dragonfly:9,4", "expected dragonfly"},
		{"dragonfly:9,0,2", "numbers must not be 0"},
		{"dragonfly:9,200,100", "would need 300 ports"},
		{"dragonfly:200000,200000,200000", "ports"},
		{"dragonfly:1000,100,10", "more than 200000 nodes"},
		{"torus:4,4", "expected torus"},
		{"torus:4,4,0", "numbers must not be 0"},
		{"torus:4,4,4,250", "would need 256 ports"},
		{"torus:99999,99999,99999", "more than 200000 nodes"},
		{"torus:50,50,50,3", "more than 200000 nodes"},
	};
	struct topology_error error;
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		graph_init(&graph);
		assert_int_equal(topology_generate(&graph, rows[i].spec, &error), -EINVAL);
		if (!strstr(error.text, rows[i].reason) ||
		    strncmp(error.text, rows[i].spec, strlen(rows[i].spec)))
			fail_msg("%s", error.text);
		graph_free(&graph);
	}
}

TEST(a_word_that_is_no_topology_and_no_file_is_told_as_both)
{
	static const struct {
		const char *spec, *reason;
		int error;
	} rows[] = {
		{"fat-tre:4,2", "No such file or directory", -ENOENT},
		{"pairs@4xNDR", "No such file or directory", -ENOENT},
		{"/nowhere/pair", "No such file or directory", -ENOENT},
		{"nowhere.net", "No such file or directory", -ENOENT},
		{"", "No such file or directory", -ENOENT},
		{"/", "Is a directory", -EISDIR},
	};
	struct topology_error error;
	char expected[200];
	size_t i;

	for (i = 0; i < COUNT(rows); i++) {
		graph_init(&graph);
		assert_int_equal(topology_load(&graph, rows[i].spec, &error), rows[i].error);
		snprintf(expected, sizeof(expected),
			 "\"%s\" is neither a built-in topology (pair, fat-tree, dragonfly, "
			 "torus) nor a readable file: %s",
			 rows[i].spec, rows[i].reason);
		assert_string_equal(error.text, expected);
		graph_free(&graph);
	}
}
