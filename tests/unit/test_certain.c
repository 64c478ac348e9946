/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Comparisons of discoveries that did not find all nodes: what a discovery did not find is
 * neither removed nor added.
 */

#define FAKE_NODES 128
#include "fake_fabric.h"
#include "test.h"

#include <stdbool.h>

static struct ibmad_port *port;
static struct mad_fabric *before, *after;

static int setup(void)
{
	int classes[] = {IB_SMI_DIRECT_CLASS};

	if (device_setup())
		return -1;
	memset(&fake, 0, sizeof(fake));
	device_on_write(fake_response, NULL);
	port = mad_rpc_open_port(NULL, 0, classes, 1);
	if (!port)
		return -1;
	mad_rpc_set_timeout(port, 20);
	mad_rpc_set_retries(port, 1);
	return 0;
}

static int teardown(void)
{
	mad_fabric_free(before);
	mad_fabric_free(after);
	before = after = NULL;
	mad_rpc_close_port(port);
	return device_teardown();
}

FIXTURE(setup, teardown);

static void discover(struct mad_fabric **fabric, const struct mad_fabric_options *options)
{
	mad_fabric_free(*fabric);
	assert_int_equal(mad_fabric_discover(port, options, fabric), 0);
}

/* The changes by kind. */
static unsigned counts[MAD_FABRIC_PORT_CHANGED + 1];

static int count(const struct mad_fabric_difference *difference, void *arg)
{
	(void)arg;
	counts[difference->change]++;
	return 0;
}

static void compare(const struct mad_fabric *one, const struct mad_fabric *other)
{
	memset(counts, 0, sizeof(counts));
	assert_true(mad_fabric_compare(one, other, count, NULL) >= 0);
}

/* Nothing is removed or added, in both directions. */
static void expect_no_claim(void)
{
	for (unsigned turn = 0; turn < 2; turn++) {
		compare(turn ? after : before, turn ? before : after);
		assert_int_equal(counts[MAD_FABRIC_NODE_REMOVED], 0);
		assert_int_equal(counts[MAD_FABRIC_NODE_ADDED], 0);
		assert_int_equal(counts[MAD_FABRIC_LINK_REMOVED], 0);
		assert_int_equal(counts[MAD_FABRIC_LINK_ADDED], 0);
	}
}

static void cut(int node, unsigned number)
{
	struct fake_end *end = &fake.nodes[node].links[number];

	if (end->node < 0)
		return;
	fake.nodes[end->node].links[end->port].node = -1;
	end->node = -1;
}

/* --- what a discovery cannot know ---------------------------------------------------- */

/* Switches 1 to "switches" in a ring; the local node is at switch 1. */
static void make_ring(int switches)
{
	fake_add(IB_NODE_CA, 1);
	for (int i = 1; i <= switches; i++)
		fake_add(IB_NODE_SWITCH, 4);
	fake_cable(0, 1, 1, 1);
	for (int i = 1; i <= switches; i++)
		fake_cable(i, 2, i % switches + 1, 3);
}

TEST(nodes_of_a_cut_ring_beyond_63_hops_are_not_removed)
{
	make_ring(120);
	discover(&before, NULL);
	assert_int_equal(before->node_count, 121);
	cut(1, 3);
	discover(&after, NULL);
	assert_int_equal(after->node_count, 64);
	compare(before, after);
	assert_int_equal(counts[MAD_FABRIC_NODE_REMOVED], 0);
	assert_int_equal(counts[MAD_FABRIC_LINK_REMOVED], 1);
	compare(after, before);
	assert_int_equal(counts[MAD_FABRIC_NODE_ADDED], 0);
	assert_int_equal(counts[MAD_FABRIC_LINK_ADDED], 1);
}

/* A tree: the local node and a host at each of the switches 1 (the root), 3, 5, 7, 9. */
static void make_tree(void)
{
	fake_add(IB_NODE_CA, 1);
	fake_add(IB_NODE_SWITCH, 8);
	fake_cable(0, 1, 1, 1);
	fake_add(IB_NODE_CA, 1);
	fake_cable(2, 1, 1, 2);
	for (unsigned i = 0; i < 4; i++) {
		int leaf = fake_add(IB_NODE_SWITCH, 4), host = fake_add(IB_NODE_CA, 1);

		fake_cable(1, 3 + i, leaf, 1);
		fake_cable(leaf, 2, host, 1);
	}
}

TEST(nodes_beyond_max_nodes_are_neither_removed_nor_added)
{
	const struct mad_fabric_options few = {.max_nodes = 5};

	make_tree();
	discover(&before, NULL);
	discover(&after, &few);
	assert_int_equal(after->node_count, 5);
	expect_no_claim();
}

TEST(nodes_beyond_max_hops_are_neither_removed_nor_added)
{
	const struct mad_fabric_options near = {.max_hops = 2};
	const struct mad_fabric_options nodes = {.max_hops = 2, .read = MAD_FABRIC_READ_NODES};

	make_tree();
	discover(&before, NULL);
	discover(&after, &near);
	assert_int_equal(after->node_count, 7);
	expect_no_claim();
	discover(&after, &nodes);
	expect_no_claim();
}

/* Each of four switches gets the GUID of another one: either may be found first. */
TEST(hosts_of_a_switch_with_the_guid_of_another_are_not_removed)
{
	make_tree();
	discover(&before, NULL);
	for (int i = 3; i <= 9; i += 2) {
		int other = i == 9 ? 3 : i + 2;
		uint64_t guid = fake.nodes[i].guid;

		fake.nodes[i].guid = fake.nodes[other].guid;
		fake.nodes[i].switch_port_guid = guid;
		discover(&after, NULL);
		expect_no_claim();
		assert_true(after->problem_count > 0);
		fake.nodes[i].guid = guid;
		fake.nodes[i].switch_port_guid = 0;
	}
}

TEST(a_host_with_the_guid_of_another_is_not_removed)
{
	make_tree();
	discover(&before, NULL);
	fake.nodes[4].guid = fake.nodes[6].guid;
	discover(&after, NULL);
	expect_no_claim();
}

TEST(a_switch_without_responses_hides_what_is_behind_it)
{
	make_tree();
	discover(&before, NULL);
	fake.nodes[5].dead = true;
	discover(&after, NULL);
	assert_int_equal(after->node_count, 9);
	expect_no_claim();
}

/* --- what is certain all the same --------------------------------------------------- */

static void expect_removed(unsigned nodes, unsigned links)
{
	compare(before, after);
	assert_int_equal(counts[MAD_FABRIC_NODE_REMOVED], nodes);
	assert_int_equal(counts[MAD_FABRIC_LINK_REMOVED], links);
	compare(after, before);
	assert_int_equal(counts[MAD_FABRIC_NODE_ADDED], nodes);
	assert_int_equal(counts[MAD_FABRIC_LINK_ADDED], links);
}

TEST(a_host_is_removed_while_another_does_not_respond)
{
	make_tree();
	discover(&before, NULL);
	fake.nodes[4].dead = true;
	cut(6, 1);
	discover(&after, NULL);
	expect_removed(1, 1);
}

TEST(a_host_is_removed_while_another_never_responded)
{
	make_tree();
	fake.nodes[4].dead = true;
	discover(&before, NULL);
	cut(6, 1);
	discover(&after, NULL);
	expect_removed(1, 1);
}

TEST(a_link_is_removed_beyond_which_nothing_is_known)
{
	const struct mad_fabric_options near = {.max_hops = 2};

	make_tree();
	discover(&before, &near);
	cut(1, 4);
	discover(&after, &near);
	expect_removed(0, 1);
}

/* The second port of a host may be in another subnet. */
TEST(a_port_of_a_host_that_is_up_hides_nothing)
{
	int host, island;

	make_tree();
	host = fake_add(IB_NODE_CA, 2);
	island = fake_add(IB_NODE_SWITCH, 2);
	fake_cable(host, 1, 1, 7);
	fake_cable(host, 2, island, 1);
	discover(&before, NULL);
	assert_int_equal(before->node_count, 12);
	cut(6, 1);
	discover(&after, NULL);
	expect_removed(1, 1);
}

TEST(a_new_cable_to_a_silent_node_may_lead_to_each_node)
{
	make_tree();
	discover(&before, NULL);
	cut(6, 1);
	fake.nodes[6].dead = true;
	fake_cable(6, 1, 3, 3);
	discover(&after, NULL);
	assert_int_equal(after->node_count, 10);
	expect_removed(0, 1);
}

/* --- random fabrics, changes and limits ---------------------------------------------- */

#define ROUNDS   60
#define SWITCHES 8

/* The true fabrics of the two discoveries; a node has the same number in both. */
static struct truth {
	struct fake_node nodes[FAKE_NODES];
	bool exists[FAKE_NODES]; /* a route leads to the node */
} truths[2];

static unsigned state;

static unsigned draw(unsigned below)
{
	state = state * 1103515245u + 12345u;
	return (state >> 16) % below;
}

static void keep_truth(struct truth *truth)
{
	int queue[FAKE_NODES], queued = 1;

	memcpy(truth->nodes, fake.nodes, sizeof(truth->nodes));
	memset(truth->exists, 0, sizeof(truth->exists));
	queue[0] = 0;
	truth->exists[0] = true;
	for (int i = 0; i < queued; i++) {
		const struct fake_node *node = &fake.nodes[queue[i]];

		for (unsigned n = 1; n <= node->ports; n++) {
			int other = node->links[n].node;

			if (other < 0 || truth->exists[other] ||
			    (queue[i] && node->type != IB_NODE_SWITCH))
				continue;
			truth->exists[other] = true;
			queue[queued++] = other;
		}
	}
}

/* A port of a switch without a cable; 0: none. */
static unsigned free_port(int node)
{
	for (unsigned n = 1; n <= fake.nodes[node].ports; n++)
		if (fake.nodes[node].links[n].node < 0)
			return n;
	return 0;
}

static int draw_switch(void)
{
	return 1 + (int)draw(SWITCHES);
}

static void try_cable(int one, int other)
{
	unsigned at = free_port(one), other_at = free_port(other);

	if (one != other && at && other_at)
		fake_cable(one, at, other, other_at);
}

static void draw_fabric(void)
{
	memset(&fake, 0, sizeof(fake));
	fake_add(IB_NODE_CA, 1);
	for (unsigned i = 0; i < SWITCHES; i++)
		fake_add(IB_NODE_SWITCH, 8);
	try_cable(0, 1);
	for (unsigned i = 1; i < SWITCHES; i++)
		try_cable(1 + (int)i, 1 + (int)draw(i));
	for (unsigned i = draw(6); i > 0; i--)
		try_cable(draw_switch(), draw_switch());
	for (unsigned i = 4 + draw(8); i > 0; i--) {
		int host = fake_add(IB_NODE_CA, 1 + draw(2));

		try_cable(host, draw_switch());
		if (!draw(3))
			try_cable(host, draw_switch());
	}
}

static int draw_node(void)
{
	return 1 + (int)draw((unsigned)fake.count - 1);
}

static void cut_one(void)
{
	int node = draw_node();

	cut(node, 1 + draw(fake.nodes[node].ports));
}

static void remove_one(void)
{
	int node = draw_node();

	for (unsigned n = 1; n <= fake.nodes[node].ports; n++)
		cut(node, n);
}

/* Moves a cable to a port that had none in the first fabric. */
static void move_one(void)
{
	int node = draw_node(), target = draw_switch();
	unsigned number = 1 + draw(fake.nodes[node].ports), at = free_port(target);

	if (!at || node == target || truths[0].nodes[target].links[at].node >= 0)
		return;
	cut(node, number);
	fake_cable(node, number, target, at);
}

static void change_fabric(bool with_moves)
{
	for (unsigned i = draw(4); i > 0; i--) {
		switch (draw(with_moves ? 4 : 3)) {
		case 0:
			cut_one();
			break;
		case 1:
			remove_one();
			break;
		case 2:
			try_cable(fake_add(IB_NODE_CA, 1), draw_switch());
			break;
		default:
			move_one();
		}
	}
}

static void silence_some(void)
{
	for (unsigned i = draw(3); i > 0; i--)
		fake.nodes[draw_node()].dead ^= true;
}

/* A switch or a host gets the GUID of another one. */
static void share_a_guid(void)
{
	struct fake_node *one = &fake.nodes[draw_node()], *other = &fake.nodes[draw_node()];

	/* the GUID of a node without responses is not known */
	if (one == other || one->dead || other->dead || one->type != other->type ||
	    other->switch_port_guid ||
	    (one->type == IB_NODE_CA && one->ports + other->ports > 2))
		return;
	if (one->type == IB_NODE_SWITCH)
		one->switch_port_guid = one->guid;
	one->guid = other->guid;
}

static struct mad_fabric_options draw_limits(void)
{
	struct mad_fabric_options options = {0};

	if (!draw(3))
		options.max_hops = 1 + draw(5);
	if (!draw(3))
		options.max_nodes = 1 + draw(15);
	return options;
}

/* --- whether a claim is true --------------------------------------------------------- */

/* Whether a node with this GUID in the one fabric exists in the other one. */
static bool survives(const struct truth *one, const struct truth *other, uint64_t guid)
{
	for (int i = 0; i < fake.count; i++)
		if (one->nodes[i].guid == guid && one->exists[i] && other->exists[i])
			return true;
	return false;
}

static bool is_cable(const struct truth *truth, int node, unsigned number, struct fake_end end)
{
	const struct fake_end *link = &truth->nodes[node].links[number];

	return truth->exists[node] && truth->exists[end.node] && link->node == end.node &&
	       link->port == end.port;
}

static bool link_survives(const struct truth *one, const struct truth *other,
			  const struct mad_fabric_port *end)
{
	for (int i = 0; i < fake.count; i++) {
		struct fake_end far = one->nodes[i].links[end->number];

		if (one->nodes[i].guid == end->node->guid && far.node >= 0 &&
		    far.port == end->peer->number &&
		    one->nodes[far.node].guid == end->peer->node->guid &&
		    is_cable(one, i, end->number, far) && is_cable(other, i, end->number, far))
			return true;
	}
	return false;
}

static int check_claim(const struct mad_fabric_difference *difference, void *arg)
{
	const struct truth *old = &truths[0], *new = &truths[1];
	bool wrong = false;

	(void)arg;
	counts[difference->change]++;
	switch (difference->change) {
	case MAD_FABRIC_NODE_REMOVED:
		wrong = survives(old, new, difference->before_node->guid);
		break;
	case MAD_FABRIC_NODE_ADDED:
		wrong = survives(new, old, difference->after_node->guid);
		break;
	case MAD_FABRIC_LINK_REMOVED:
		wrong = link_survives(old, new, difference->before_port);
		break;
	case MAD_FABRIC_LINK_ADDED:
		wrong = link_survives(new, old, difference->after_port);
		break;
	default:
		break;
	}
	if (wrong)
		fail_msg("change %d of node 0x%llx exists in both fabrics", difference->change,
			 (unsigned long long)(difference->before_node
						      ? difference->before_node->guid
						      : difference->after_node->guid));
	return 0;
}

/* The numbers of true changes from one fabric to the other. */
static unsigned nodes_gone(const struct truth *one, const struct truth *other)
{
	unsigned gone = 0;

	for (int i = 0; i < fake.count; i++)
		gone += one->exists[i] && !other->exists[i];
	return gone;
}

static unsigned links_gone(const struct truth *one, const struct truth *other)
{
	unsigned gone = 0;

	for (int i = 0; i < fake.count; i++)
		for (unsigned n = 1; one->exists[i] && n <= one->nodes[i].ports; n++) {
			struct fake_end far = one->nodes[i].links[n];

			/* each cable once; not the cable to another subnet */
			if (far.node > i && one->exists[far.node] &&
			    !is_cable(other, i, n, far))
				gone++;
		}
	return gone;
}

static void one_round(void)
{
	bool silent = !draw(3), limited = !draw(2), shared = !draw(3);
	const struct mad_fabric_options none = {0};
	struct mad_fabric_options limits[2] = {limited ? draw_limits() : none,
					       limited ? draw_limits() : none};

	draw_fabric();
	if (silent)
		silence_some();
	if (shared && draw(2))
		share_a_guid();
	keep_truth(&truths[0]);
	discover(&before, &limits[0]);
	change_fabric(!silent);
	if (silent)
		silence_some();
	if (shared)
		share_a_guid();
	keep_truth(&truths[1]);
	discover(&after, &limits[1]);
	memset(counts, 0, sizeof(counts));
	assert_true(mad_fabric_compare(before, after, check_claim, NULL) >= 0);
	if (silent || limited || shared)
		return;
	/* all is known, and so are all changes */
	assert_int_equal(counts[MAD_FABRIC_NODE_REMOVED], nodes_gone(&truths[0], &truths[1]));
	assert_int_equal(counts[MAD_FABRIC_NODE_ADDED], nodes_gone(&truths[1], &truths[0]));
	assert_int_equal(counts[MAD_FABRIC_LINK_REMOVED], links_gone(&truths[0], &truths[1]));
	assert_int_equal(counts[MAD_FABRIC_LINK_ADDED], links_gone(&truths[1], &truths[0]));
}

TEST(nothing_that_exists_is_called_removed_or_added)
{
	unsigned seed = test_seed();

	for (unsigned i = 0; i < ROUNDS; i++) {
		state = seed + i;
		one_round();
	}
}
