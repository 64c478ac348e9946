/* SPDX-License-Identifier: BSD-2-Clause */

/* The differences of two fabrics. */

#include "fake_device.h"
#include "test.h"

#include "fabric/graph.h"

#define MANY 50

static struct mad_fabric *before, *after;
static struct mad_fabric_difference seen[MANY];
static int seen_count, stop_after;

enum {
	SWITCH = 1,
	HOST = 2,
	OTHER = 3
};

static void add(struct mad_fabric *fabric, uint64_t guid, unsigned type, unsigned ports)
{
	struct mad_fabric_node *node = graph_add_node(fabric, guid, type, ports);

	assert_non_null(node);
	node->entry_port = 1;
	snprintf(node->description, sizeof(node->description), "node-%u", (unsigned)guid);
	for (unsigned i = 0; i <= ports; i++)
		if (graph_port(node, i))
			graph_port(node, i)->state = MAD_PORT_ACTIVE;
}

static struct mad_fabric_port *end(struct mad_fabric *fabric, uint64_t guid, unsigned number)
{
	return graph_port(graph_find_node(fabric, guid), number);
}

/* A switch with two hosts. */
static void fill(struct mad_fabric *fabric)
{
	add(fabric, SWITCH, IB_NODE_SWITCH, 4);
	add(fabric, HOST, IB_NODE_CA, 1);
	add(fabric, OTHER, IB_NODE_CA, 1);
	graph_link(end(fabric, SWITCH, 1), end(fabric, HOST, 1));
	graph_link(end(fabric, SWITCH, 2), end(fabric, OTHER, 1));
	end(fabric, SWITCH, 1)->width = end(fabric, HOST, 1)->width = 4;
}

static int setup(void)
{
	seen_count = stop_after = 0;
	before = graph_create();
	after = graph_create();
	if (!before || !after)
		return -1;
	fill(before);
	return 0;
}

static int teardown(void)
{
	mad_fabric_free(before);
	mad_fabric_free(after);
	return 0;
}

FIXTURE(setup, teardown);

static int note(const struct mad_fabric_difference *difference, void *arg)
{
	assert_ptr_equal(arg, seen);
	assert_true(seen_count < MANY);
	seen[seen_count++] = *difference;
	return seen_count == stop_after ? -42 : 0;
}

static void expect(int count)
{
	assert_int_equal(mad_fabric_compare(before, after, note, seen), count);
	assert_int_equal(seen_count, count);
}

TEST(the_same_fabric_has_not_changed)
{
	fill(after);
	expect(0);
	assert_int_equal(mad_fabric_compare(before, before, NULL, NULL), 0);
}

TEST(the_order_in_which_nodes_are_found_is_no_change)
{
	add(after, OTHER, IB_NODE_CA, 1);
	add(after, HOST, IB_NODE_CA, 1);
	add(after, SWITCH, IB_NODE_SWITCH, 4);
	graph_link(end(after, SWITCH, 1), end(after, HOST, 1));
	graph_link(end(after, SWITCH, 2), end(after, OTHER, 1));
	expect(0);
}

TEST(a_node_comes_with_its_link)
{
	fill(after);
	add(after, 4, IB_NODE_CA, 1);
	graph_link(end(after, SWITCH, 3), end(after, 4, 1));
	expect(2);
	assert_int_equal(seen[0].change, MAD_FABRIC_LINK_ADDED);
	assert_ptr_equal(seen[0].after_port, end(after, SWITCH, 3));
	assert_null(seen[0].before_port);
	assert_int_equal(seen[1].change, MAD_FABRIC_NODE_ADDED);
	assert_int_equal(seen[1].after_node->guid, 4);
	assert_null(seen[1].before_node);
}

TEST(a_node_goes_with_its_link)
{
	fill(after);
	add(before, 4, IB_NODE_CA, 1);
	graph_link(end(before, SWITCH, 3), end(before, 4, 1));
	expect(2);
	assert_int_equal(seen[0].change, MAD_FABRIC_NODE_REMOVED);
	assert_int_equal(seen[0].before_node->guid, 4);
	assert_int_equal(seen[1].change, MAD_FABRIC_LINK_REMOVED);
	assert_ptr_equal(seen[1].before_port, end(before, SWITCH, 3));
}

TEST(a_cable_that_is_moved_is_a_link_less_and_one_more)
{
	add(after, SWITCH, IB_NODE_SWITCH, 4);
	add(after, HOST, IB_NODE_CA, 1);
	add(after, OTHER, IB_NODE_CA, 1);
	graph_link(end(after, SWITCH, 4), end(after, HOST, 1));
	graph_link(end(after, SWITCH, 2), end(after, OTHER, 1));
	expect(2);
	assert_int_equal(seen[0].change, MAD_FABRIC_LINK_REMOVED);
	assert_int_equal(seen[0].before_port->number, 1);
	assert_int_equal(seen[1].change, MAD_FABRIC_LINK_ADDED);
	assert_int_equal(seen[1].after_port->number, 4);
}

TEST(a_link_that_is_narrower_has_changed_once)
{
	fill(after);
	end(after, SWITCH, 1)->width = end(after, HOST, 1)->width = 1;
	expect(1);
	assert_int_equal(seen[0].change, MAD_FABRIC_LINK_CHANGED);
	assert_int_equal(seen[0].before_port->width, 4);
	assert_int_equal(seen[0].after_port->width, 1);
}

TEST(a_link_whose_far_end_changes_has_changed)
{
	fill(after);
	end(after, HOST, 1)->state = MAD_PORT_ARMED;
	expect(1);
	assert_int_equal(seen[0].change, MAD_FABRIC_LINK_CHANGED);
}

TEST(a_node_with_another_name_or_lid_has_changed)
{
	fill(after);
	strcpy(graph_find_node(after, HOST)->description, "renamed");
	end(before, SWITCH, 0)->lid = 3;
	end(after, SWITCH, 0)->lid = 4;
	expect(2);
	assert_int_equal(seen[0].change, MAD_FABRIC_NODE_CHANGED);
	assert_int_equal(seen[0].after_node->guid, SWITCH);
	assert_int_equal(seen[1].change, MAD_FABRIC_NODE_CHANGED);
	assert_string_equal(seen[1].before_node->description, "node-2");
	assert_string_equal(seen[1].after_node->description, "renamed");
}

TEST(a_port_without_a_link_can_change)
{
	fill(after);
	end(after, SWITCH, 4)->state = MAD_PORT_DOWN;
	expect(1);
	assert_int_equal(seen[0].change, MAD_FABRIC_PORT_CHANGED);
	assert_ptr_equal(seen[0].before_port, end(before, SWITCH, 4));
	assert_ptr_equal(seen[0].after_port, end(after, SWITCH, 4));
}

TEST(what_was_not_read_is_not_compared)
{
	fill(after);
	graph_find_node(after, HOST)->description[0] = 0;
	end(after, SWITCH, 1)->width = 0;
	end(after, SWITCH, 4)->state = 0;
	end(after, SWITCH, 0)->lid = 7;
	expect(0);
}

/* A switch with a host behind it, in place of the node OTHER. */
static void add_switch_behind(struct mad_fabric *fabric)
{
	add(fabric, 4, IB_NODE_SWITCH, 2);
	add(fabric, 5, IB_NODE_CA, 1);
	graph_link(end(fabric, SWITCH, 3), end(fabric, 4, 1));
	graph_link(end(fabric, 4, 2), end(fabric, 5, 1));
}

TEST(a_node_that_did_not_respond_is_not_removed_nor_what_is_behind_it)
{
	struct mad_fabric_problem problem = {
		.kind = MAD_FABRIC_PROBLEM_BEHIND, .error = -ETIMEDOUT, .count = 1};

	fill(after);
	add_switch_behind(before);
	problem.port = end(after, SWITCH, 3);
	assert_int_equal(graph_add_problem(after, &problem, NULL), 0);
	expect(0);
}

TEST(a_link_at_a_port_that_was_not_read_is_not_removed)
{
	fill(after);
	add_switch_behind(before);
	end(after, SWITCH, 3)->error = -ETIMEDOUT;
	expect(0);
}

TEST(a_link_whose_cable_leads_elsewhere_is_removed_whatever_failed)
{
	fill(after);
	add_switch_behind(before);
	add_switch_behind(after);
	end(before, HOST, 1)->peer = end(before, SWITCH, 1)->peer = NULL;
	graph_link(end(before, SWITCH, 4), end(before, HOST, 1));
	end(after, SWITCH, 4)->error = -EIO;
	expect(2);
	assert_int_equal(seen[0].change, MAD_FABRIC_LINK_REMOVED);
	assert_int_equal(seen[1].change, MAD_FABRIC_LINK_ADDED);
}

TEST(a_link_that_is_down_at_one_end_is_removed_whatever_failed)
{
	static const uint8_t info[IB_SMP_DATA_SIZE];

	add(after, SWITCH, IB_NODE_SWITCH, 4);
	add(after, HOST, IB_NODE_CA, 1);
	add(after, OTHER, IB_NODE_CA, 1);
	graph_link(end(after, SWITCH, 2), end(after, OTHER, 1));
	end(after, HOST, 1)->error = -ETIMEDOUT;
	end(after, SWITCH, 1)->info = info;
	end(after, SWITCH, 1)->physical_state = MAD_PHYSICAL_POLLING;
	expect(1);
	assert_int_equal(seen[0].change, MAD_FABRIC_LINK_REMOVED);
}

/* A second node with the GUID of HOST, at port 3. */
static void add_twin(struct mad_fabric *fabric)
{
	struct mad_fabric_node *twin = graph_add_node(fabric, HOST, IB_NODE_CA, 1);

	assert_non_null(twin);
	graph_link(end(fabric, SWITCH, 3), graph_port(twin, 1));
}

TEST(of_nodes_with_one_guid_the_first_one_is_compared)
{
	fill(after);
	add_twin(before);
	assert_int_equal(mad_fabric_compare(before, before, note, seen), 0);
	expect(0);
	assert_int_equal(mad_fabric_compare(after, before, note, seen), 0);
}

TEST(a_removed_node_with_a_twin_is_removed_once)
{
	add_twin(before);
	add(after, SWITCH, IB_NODE_SWITCH, 4);
	add(after, OTHER, IB_NODE_CA, 1);
	graph_link(end(after, SWITCH, 2), end(after, OTHER, 1));
	expect(2);
	assert_int_equal(seen[0].change, MAD_FABRIC_NODE_REMOVED);
	assert_int_equal(seen[1].change, MAD_FABRIC_LINK_REMOVED);
}

TEST(a_comparison_without_memory_fails)
{
	fill(after);
	for (unsigned n = 1; n <= 4; n++) {
		device_fail_malloc(n);
		assert_int_equal(mad_fabric_compare(before, after, note, seen), -ENOMEM);
		device_fail_malloc(0);
	}
	expect(0);
}

TEST(the_callee_can_end_a_comparison)
{
	stop_after = 2;
	assert_int_equal(mad_fabric_compare(before, after, note, seen), -42);
	assert_int_equal(seen_count, 2);
}

TEST(no_fabric_cannot_be_compared)
{
	assert_int_equal(mad_fabric_compare(NULL, after, note, seen), -EINVAL);
	assert_int_equal(mad_fabric_compare(before, NULL, note, seen), -EINVAL);
}
