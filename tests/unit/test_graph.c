/* SPDX-License-Identifier: BSD-2-Clause */

/* The graph of a fabric: built by the test, read as programs read it. */

#include "fake_device.h"
#include "test.h"

#include "fabric/graph.h"

static struct mad_fabric *fabric;

static int setup(void)
{
	fabric = graph_create();
	return fabric ? 0 : -1;
}

static int teardown(void)
{
	device_fail_malloc(0);
	mad_fabric_free(fabric);
	fabric = NULL;
	return 0;
}

FIXTURE(setup, teardown);

static struct mad_fabric_node *add(uint64_t guid, unsigned type, unsigned ports)
{
	struct mad_fabric_node *node = graph_add_node(fabric, guid, type, ports);

	assert_non_null(node);
	return node;
}

static void set_lid(const struct mad_fabric_node *node, unsigned number, uint16_t lid,
		    uint8_t lmc)
{
	struct mad_fabric_port *port = graph_port(node, number);

	port->lid = lid;
	port->lmc = lmc;
}

static void link_ports(const struct mad_fabric_node *one, unsigned port,
		       const struct mad_fabric_node *other, unsigned other_port)
{
	graph_link(graph_port(one, port), graph_port(other, other_port));
}

static unsigned oddities(enum mad_fabric_problem_kind kind)
{
	unsigned count = 0;

	for (size_t i = 0; i < fabric->problem_count; i++)
		count += mad_fabric_get_problem(fabric, i)->kind == kind;
	return count;
}

/* --- nodes and ports ---------------------------------------------------------------- */

TEST(an_empty_graph_has_nothing)
{
	assert_int_equal(graph_finish(fabric), 0);
	assert_int_equal(fabric->node_count, 0);
	assert_int_equal(fabric->port_count, 0);
	assert_null(mad_fabric_get_node(fabric, 0));
	assert_null(mad_fabric_next_port(fabric, NULL));
	assert_null(fabric->origin);
	assert_null(mad_fabric_find_guid(fabric, 0));
	assert_null(mad_fabric_find_port_guid(fabric, 0));
	assert_null(mad_fabric_find_lid(fabric, 0));
	assert_null(mad_fabric_get_problem(fabric, 0));
	assert_int_equal(fabric->problem_count, 0);
}

TEST(no_fabric_has_nothing)
{
	assert_null(mad_fabric_get_node(NULL, 0));
	assert_null(mad_fabric_get_port(NULL, 0));
	assert_null(mad_fabric_next_port(NULL, NULL));
	assert_null(mad_fabric_find_guid(NULL, 1));
	assert_null(mad_fabric_find_port_guid(NULL, 1));
	assert_null(mad_fabric_find_lid(NULL, 1));
	assert_null(mad_fabric_get_problem(NULL, 0));
	mad_fabric_free(NULL);
}

TEST(a_switch_alone_has_a_port_0)
{
	struct mad_fabric_node *sw = add(1, IB_NODE_SWITCH, 2), *ca = add(2, IB_NODE_CA, 2);

	assert_int_equal(fabric->port_count, 5);
	for (unsigned i = 0; i <= 2; i++)
		assert_int_equal(mad_fabric_get_port(sw, i)->number, i);
	assert_null(mad_fabric_get_port(sw, 3));
	assert_null(mad_fabric_get_port(ca, 0));
	assert_int_equal(mad_fabric_get_port(ca, 1)->number, 1);
	assert_ptr_equal(mad_fabric_get_port(ca, 2)->node, ca);
	assert_null(mad_fabric_get_port(ca, 3));
	assert_null(mad_fabric_get_port(ca, 256));
}

TEST(ports_follow_each_other_past_nodes_without_ports)
{
	const struct mad_fabric_port *port = NULL;
	size_t count = 0;

	add(1, IB_NODE_CA, 0);
	add(2, IB_NODE_SWITCH, 0);
	add(3, IB_NODE_CA, 255);
	add(4, IB_NODE_ROUTER, 0);
	add(5, IB_NODE_SWITCH, 255);
	add(6, IB_NODE_CA, 0);
	while ((port = mad_fabric_next_port(fabric, port)))
		assert_int_equal(port->index, count++);
	assert_int_equal(count, 1 + 255 + 256);
	assert_int_equal(fabric->port_count, count);
}

/* --- searching ---------------------------------------------------------------------- */

TEST(each_of_many_nodes_is_found_by_its_guids)
{
	for (uint64_t i = 0; i < 5000; i++) {
		add(i << 8, IB_NODE_CA, 2);
		graph_port(graph_node(fabric, (size_t)i), 2)->guid = i << 8 | 2;
	}
	assert_int_equal(graph_finish(fabric), 0);
	for (uint64_t i = 0; i < 5000; i++) {
		const struct mad_fabric_node *node = mad_fabric_get_node(fabric, (size_t)i);

		assert_ptr_equal(mad_fabric_find_guid(fabric, i << 8), node);
		assert_null(mad_fabric_find_guid(fabric, i << 8 | 2));
		assert_ptr_equal(mad_fabric_find_port_guid(fabric, i << 8 | 2),
				 mad_fabric_get_port(node, 2));
		assert_null(mad_fabric_find_port_guid(fabric, i << 8 | 3));
	}
	assert_int_equal(fabric->problem_count, 0);
}

TEST(the_first_of_two_nodes_with_one_guid_is_found)
{
	struct mad_fabric_node *first = add(7, IB_NODE_CA, 1);

	add(7, IB_NODE_CA, 2);
	for (uint64_t i = 0; i < 1000; i++) {
		assert_ptr_equal(graph_find_node(fabric, 7), first);
		add(100 + i, IB_NODE_CA, 1);
	}
	assert_ptr_equal(mad_fabric_find_guid(fabric, 7), first);
}

TEST(a_lid_is_found_with_those_of_its_lmc)
{
	struct mad_fabric_node *sw = add(1, IB_NODE_SWITCH, 2), *ca = add(2, IB_NODE_CA, 1);

	link_ports(sw, 1, ca, 1);
	set_lid(sw, 0, 3, 0);
	set_lid(ca, 1, 8, 2);
	assert_int_equal(graph_finish(fabric), 0);
	assert_ptr_equal(mad_fabric_find_lid(fabric, 3), mad_fabric_get_port(sw, 0));
	for (unsigned lid = 8; lid < 12; lid++)
		assert_ptr_equal(mad_fabric_find_lid(fabric, lid), mad_fabric_get_port(ca, 1));
	assert_null(mad_fabric_find_lid(fabric, 0));
	assert_null(mad_fabric_find_lid(fabric, 7));
	assert_null(mad_fabric_find_lid(fabric, 12));
	assert_null(mad_fabric_find_lid(fabric, 1u << 31));
}

TEST(a_lid_of_another_subnet_is_not_found)
{
	struct mad_fabric_node *sw = add(1, IB_NODE_SWITCH, 2), *ca = add(2, IB_NODE_CA, 2);

	link_ports(sw, 1, ca, 1);
	set_lid(sw, 0, 3, 0);
	set_lid(ca, 2, 3, 0);
	assert_int_equal(graph_finish(fabric), 0);
	assert_ptr_equal(mad_fabric_find_lid(fabric, 3), mad_fabric_get_port(sw, 0));
	assert_int_equal(oddities(MAD_FABRIC_PROBLEM_LID), 0);
}

TEST(requests_about_a_port_go_to_a_lid_of_this_subnet)
{
	struct mad_fabric_node *sw = add(1, IB_NODE_SWITCH, 2), *ca = add(2, IB_NODE_CA, 2);
	struct mad_fabric_node *other = add(3, IB_NODE_SWITCH, 1),
			       *host = add(4, IB_NODE_CA, 1);

	link_ports(sw, 1, ca, 1);
	set_lid(sw, 0, 3, 0);
	set_lid(ca, 1, 4, 0);
	set_lid(ca, 2, 3, 0);
	set_lid(other, 0, 0xc000, 0);
	set_lid(host, 1, 5, 0);
	graph_set_origin(fabric, mad_fabric_get_port(host, 1));
	assert_int_equal(graph_finish(fabric), 0);
	for (unsigned number = 0; number <= 2; number++)
		assert_int_equal(mad_fabric_get_port(sw, number)->gmp_lid, 3);
	assert_int_equal(mad_fabric_get_port(ca, 1)->gmp_lid, 4);
	assert_int_equal(mad_fabric_get_port(ca, 2)->gmp_lid, 0);
	assert_int_equal(mad_fabric_get_port(host, 1)->gmp_lid, 5);
	assert_int_equal(mad_fabric_get_port(other, 1)->gmp_lid, 0);
}

TEST(lids_that_no_port_can_have_are_not_found)
{
	struct mad_fabric_node *one = add(1, IB_NODE_SWITCH, 1),
			       *two = add(2, IB_NODE_SWITCH, 1);

	set_lid(one, 0, 0xc001, 0);
	set_lid(two, 0, 0xbfff, 7);
	assert_int_equal(graph_finish(fabric), 0);
	assert_null(mad_fabric_find_lid(fabric, 0xc001));
	assert_null(mad_fabric_find_lid(fabric, 0xc000));
	assert_ptr_equal(mad_fabric_find_lid(fabric, 0xbfff), mad_fabric_get_port(two, 0));
}

/* --- links, and inconsistencies ------------------------------------------------------- */

TEST(linked_ports_are_peers)
{
	struct mad_fabric_node *sw = add(1, IB_NODE_SWITCH, 3), *ca = add(2, IB_NODE_CA, 1);

	link_ports(sw, 3, ca, 1);
	link_ports(sw, 2, sw, 2);
	graph_set_origin(fabric, graph_port(ca, 1));
	assert_ptr_equal(mad_fabric_get_port(sw, 3)->peer, mad_fabric_get_port(ca, 1));
	assert_ptr_equal(mad_fabric_get_port(ca, 1)->peer, mad_fabric_get_port(sw, 3));
	assert_ptr_equal(mad_fabric_get_port(sw, 2)->peer, mad_fabric_get_port(sw, 2));
	assert_null(mad_fabric_get_port(sw, 1)->peer);
	assert_ptr_equal(fabric->origin, mad_fabric_get_port(ca, 1));
}

TEST(one_lid_or_port_guid_twice_is_odd)
{
	struct mad_fabric_node *one = add(1, IB_NODE_SWITCH, 1), *ca = add(2, IB_NODE_CA, 2);
	const struct mad_fabric_problem *oddity;

	link_ports(one, 1, ca, 1);
	set_lid(one, 0, 9, 0);
	set_lid(ca, 1, 8, 1);
	graph_port(ca, 1)->guid = 77;
	graph_port(ca, 2)->guid = 77;
	graph_port(one, 0)->guid = graph_port(one, 1)->guid = 1;
	assert_int_equal(graph_finish(fabric), 0);
	assert_int_equal(fabric->problem_count, 2);
	assert_int_equal(oddities(MAD_FABRIC_PROBLEM_LID), 1);
	assert_int_equal(oddities(MAD_FABRIC_PROBLEM_GUID), 1);
	oddity = mad_fabric_get_problem(fabric, 0);
	assert_int_equal(oddity->kind, MAD_FABRIC_PROBLEM_GUID);
	assert_ptr_equal(oddity->node, ca);
	assert_ptr_equal(oddity->port, mad_fabric_get_port(ca, 2));
	assert_ptr_equal(oddity->other_port, mad_fabric_get_port(ca, 1));
	assert_ptr_equal(oddity->other_node, ca);
	assert_int_equal(oddity->guid, 77);
}

TEST(a_switch_is_found_by_the_port_guid_of_its_port_0)
{
	struct mad_fabric_node *sw = add(1, IB_NODE_SWITCH, 2);

	for (unsigned i = 0; i <= 2; i++)
		graph_port(sw, i)->guid = 77;
	assert_int_equal(graph_finish(fabric), 0);
	assert_ptr_equal(mad_fabric_find_port_guid(fabric, 77), graph_port(sw, 0));
	assert_int_equal(fabric->problem_count, 0);
}

/* PortInfo of a port that is up, with this width and speed. */
static const uint8_t *port_info(unsigned width, unsigned supported, unsigned speed)
{
	uint8_t info[IB_SMP_DATA_SIZE] = {0};

	mad_set_field(info, 0, IB_PORT_STATE_F, MAD_PORT_ACTIVE);
	mad_set_field(info, 0, IB_PORT_PHYS_STATE_F, MAD_PHYSICAL_LINK_UP);
	mad_set_field(info, 0, IB_PORT_LINK_WIDTH_ACTIVE_F, width);
	mad_set_field(info, 0, IB_PORT_LINK_WIDTH_SUPPORTED_F, supported);
	mad_set_field(info, 0, IB_PORT_LINK_SPEED_ACTIVE_F, speed);
	mad_set_field(info, 0, IB_PORT_LINK_SPEED_SUPPORTED_F, 7);
	return graph_store(fabric, info);
}

TEST(links_have_what_both_ends_support)
{
	struct mad_fabric_node *sw = add(1, IB_NODE_SWITCH, 2), *ca = add(2, IB_NODE_CA, 1);

	link_ports(sw, 1, ca, 1);
	graph_port(sw, 1)->info =
		port_info(MAD_WIDTH_1X, MAD_WIDTH_1X | MAD_WIDTH_4X | MAD_WIDTH_12X, 4);
	graph_port(ca, 1)->info = port_info(MAD_WIDTH_1X, MAD_WIDTH_1X | MAD_WIDTH_4X, 4);
	assert_int_equal(graph_finish(fabric), 0);
	assert_int_equal(mad_fabric_get_port(sw, 1)->width, 1);
	assert_int_equal(mad_fabric_get_port(sw, 1)->width_possible, 4);
	assert_int_equal(mad_fabric_get_port(sw, 1)->speed, MAD_SPEED_QDR);
	assert_int_equal(mad_fabric_get_port(sw, 1)->speed_possible, MAD_SPEED_QDR);
	assert_true(mad_fabric_get_port(ca, 1)->rate_gbps == 10);
	assert_int_equal(mad_fabric_get_port(ca, 1)->width_possible, 4);
	assert_int_equal(fabric->problem_count, 0);
}

TEST(a_link_whose_ends_differ_is_odd_once)
{
	struct mad_fabric_node *sw = add(1, IB_NODE_SWITCH, 2), *ca = add(2, IB_NODE_CA, 1);

	link_ports(sw, 1, ca, 1);
	graph_port(sw, 1)->info = port_info(MAD_WIDTH_1X, MAD_WIDTH_1X, 4);
	graph_port(ca, 1)->info = port_info(MAD_WIDTH_4X, MAD_WIDTH_4X, 4);
	assert_int_equal(graph_finish(fabric), 0);
	assert_int_equal(mad_fabric_get_port(sw, 1)->width_possible, 0);
	assert_int_equal(oddities(MAD_FABRIC_PROBLEM_LINK), 1);
	assert_int_equal(fabric->problem_count, 1);
}

TEST(a_speed_is_not_known_if_port_0_would_say_whether_it_is_valid)
{
	struct mad_fabric_node *sw = add(1, IB_NODE_SWITCH, 2), *ca = add(2, IB_NODE_CA, 1);
	uint8_t info[IB_SMP_DATA_SIZE];

	link_ports(sw, 1, ca, 1);
	memcpy(info, port_info(MAD_WIDTH_4X, MAD_WIDTH_4X, 4), sizeof(info));
	mad_set_field(info, 0, IB_PORT_LINK_SPEED_EXT_SUPPORTED_F, 3);
	mad_set_field(info, 0, IB_PORT_LINK_SPEED_EXT_ACTIVE_F, 2);
	graph_port(sw, 1)->info = graph_store(fabric, info);
	mad_set_field(info, 0, IB_PORT_CAPMASK_F, MAD_PORT_CAP_EXTENDED_SPEEDS);
	graph_port(ca, 1)->info = graph_store(fabric, info);
	mad_set_field(info, 0, IB_PORT_LINK_SPEED_EXT_ACTIVE_F, 0);
	graph_port(sw, 2)->info = graph_store(fabric, info);
	assert_int_equal(graph_finish(fabric), 0);
	assert_int_equal(mad_fabric_get_port(ca, 1)->speed, MAD_SPEED_EDR);
	assert_int_equal(mad_fabric_get_port(sw, 1)->speed, MAD_SPEED_NONE);
	assert_int_equal(mad_fabric_get_port(sw, 1)->speed_possible, MAD_SPEED_NONE);
	assert_true(mad_fabric_get_port(sw, 1)->rate_gbps == 0);
	assert_int_equal(mad_fabric_get_port(sw, 1)->width, 4);
	assert_int_equal(oddities(MAD_FABRIC_PROBLEM_LINK), 0);
	/* QDR is valid whatever port 0 says */
	assert_int_equal(mad_fabric_get_port(sw, 2)->speed, MAD_SPEED_QDR);
}

static void expect_text(const struct mad_fabric_problem *problem, const char *expected)
{
	char text[MAD_FABRIC_PROBLEM_TEXT_SIZE], cut[10];

	assert_ptr_equal(mad_fabric_problem_text(problem, text, sizeof(text)), text);
	assert_string_equal(text, expected);
	mad_fabric_problem_text(problem, cut, sizeof(cut));
	assert_int_equal(strlen(cut), sizeof(cut) - 1);
	assert_memory_equal(cut, expected, sizeof(cut) - 1);
	mad_fabric_problem_text(problem, cut, 0);
}

TEST(the_text_of_a_problem_has_both_places)
{
	struct mad_fabric_node *sw = add(1, IB_NODE_SWITCH, 2), *ca = add(2, IB_NODE_CA, 2);
	struct mad_fabric_problem problem = {.kind = MAD_FABRIC_PROBLEM_LINK,
					     .node = sw,
					     .port = graph_port(sw, 1),
					     .other_node = ca,
					     .other_port = graph_port(ca, 2)};

	strcpy(sw->description, "leaf\n1");
	expect_text(&problem,
		    "leaf?1 (0x0000000000000001) port 1 and (0x0000000000000002) port 2: "
		    "the ends of the link differ in state, width, speed or MTU");
	problem.kind = MAD_FABRIC_PROBLEM_LID;
	graph_port(ca, 2)->lid = 9;
	expect_text(&problem,
		    "leaf?1 (0x0000000000000001) port 1 and (0x0000000000000002) port 2: "
		    "one LID twice: 9");
	problem.kind = MAD_FABRIC_PROBLEM_GUID;
	problem.guid = 2;
	expect_text(&problem,
		    "behind leaf?1 (0x0000000000000001) port 1 and (0x0000000000000002) "
		    "port 2: one GUID twice: 0x0000000000000002");
	problem = (struct mad_fabric_problem){.kind = MAD_FABRIC_PROBLEM_NODE_TYPE,
					      .node = ca,
					      .other_node = sw,
					      .other_port = graph_port(sw, 2)};
	expect_text(&problem,
		    "(0x0000000000000002), behind leaf?1 (0x0000000000000001) port 2: "
		    "neither CA, switch nor router");
}

TEST(the_text_of_a_failure_has_what_failed)
{
	struct mad_fabric_node *sw = add(1, IB_NODE_SWITCH, 2);
	struct mad_fabric_problem problem = {.kind = MAD_FABRIC_PROBLEM_BEHIND,
					     .error = -ETIMEDOUT,
					     .node = sw,
					     .port = graph_port(sw, 2),
					     .attribute = IB_ATTR_NODE_INFO,
					     .description = "",
					     .count = 1};

	strcpy(sw->description, "leaf-1");
	expect_text(&problem,
		    "the node behind leaf-1 (0x0000000000000001) port 2: no response");
	problem.guid = 5;
	problem.description = "host-5";
	problem.count = 3;
	expect_text(&problem, "host-5 (0x0000000000000005) behind leaf-1 (0x0000000000000001) "
			      "port 2 and 2 more: no response");
	problem.kind = MAD_FABRIC_PROBLEM_NODE;
	problem.attribute = IB_ATTR_PORT_INFO;
	problem.error = -EIO;
	problem.status = 0x1c;
	expect_text(&problem,
		    "leaf-1 (0x0000000000000001) port 2: PortInfo: "
		    "invalid value in the attribute or its modifier, 3 requests in all");
	problem.error = -ENETDOWN;
	problem.count = 1;
	problem.port = NULL;
	problem.attribute = IB_ATTR_SWITCH_INFO;
	expect_text(&problem, "leaf-1 (0x0000000000000001): SwitchInfo: Network is down");
}

TEST(each_kind_of_problem_has_a_text_of_its_own)
{
	char texts[MAD_FABRIC_PROBLEM_LINK + 2][MAD_FABRIC_PROBLEM_TEXT_SIZE];
	struct mad_fabric_problem problem = {.node = add(1, IB_NODE_SWITCH, 2)};

	for (int i = MAD_FABRIC_PROBLEM_PEER; i <= MAD_FABRIC_PROBLEM_LINK + 1; i++) {
		problem.kind = (enum mad_fabric_problem_kind)i;
		mad_fabric_problem_text(&problem, texts[i], sizeof(texts[i]));
		for (int j = MAD_FABRIC_PROBLEM_PEER; j < i; j++)
			assert_string_not_equal(texts[i], texts[j]);
	}
	assert_string_equal(texts[MAD_FABRIC_PROBLEM_LINK + 1], "(0x0000000000000001): ?");
	assert_string_equal(mad_fabric_problem_text(NULL, texts[0], sizeof(texts[0])), "");
}

TEST(the_longest_text_fits_into_its_buffer)
{
	struct mad_fabric_node *sw = add(1, IB_NODE_SWITCH, 255);
	struct mad_fabric_problem problem = {.kind = MAD_FABRIC_PROBLEM_LINK,
					     .node = sw,
					     .port = graph_port(sw, 255),
					     .other_node = sw,
					     .other_port = graph_port(sw, 254)};
	char text[MAD_FABRIC_PROBLEM_TEXT_SIZE];

	memset(sw->description, 'x', IB_SMP_DATA_SIZE);
	mad_fabric_problem_text(&problem, text, sizeof(text));
	assert_string_equal(text + strlen(text) - 3, "MTU");
	problem = (struct mad_fabric_problem){.kind = MAD_FABRIC_PROBLEM_BEHIND,
					      .error = -EIO,
					      .status = 0x1c,
					      .node = sw,
					      .port = graph_port(sw, 255),
					      .guid = 1,
					      .description = sw->description,
					      .count = UINT32_MAX};
	mad_fabric_problem_text(&problem, text, sizeof(text));
	assert_string_equal(text + strlen(text) - 8, "modifier");
}

TEST(failures_are_counted_once_a_node)
{
	struct mad_fabric_problem problem = {.kind = MAD_FABRIC_PROBLEM_NODE,
					     .attribute = IB_ATTR_PORT_INFO,
					     .modifier = 3,
					     .count = 1,
					     .error = -EIO};
	size_t index;

	problem.node = add(1, IB_NODE_CA, 2);
	assert_int_equal(graph_add_problem(fabric, &problem, &index), 0);
	graph_count_failures(fabric, index, 2);
	assert_int_equal(fabric->problem_count, 1);
	assert_int_equal(mad_fabric_get_problem(fabric, 0)->count, 3);
	assert_int_equal(mad_fabric_get_problem(fabric, 0)->modifier, 3);
	graph_note_timeout(fabric, index, IB_ATTR_PORT_INFO, 2);
	assert_ptr_equal(mad_fabric_get_problem(fabric, 0)->port,
			 mad_fabric_get_port(problem.node, 2));
	for (int i = 0; i < 100; i++)
		assert_int_equal(graph_add_problem(fabric, &problem, NULL), 0);
	assert_int_equal(fabric->problem_count, 101);
	assert_null(mad_fabric_get_problem(fabric, 101));
}

/* --- memory ------------------------------------------------------------------------- */

/* -ENOMEM, or 0 if the graph is complete. */
static int fill(void)
{
	static const uint8_t image[IB_SMP_DATA_SIZE] = {1};
	const struct mad_fabric_problem problem = {.kind = MAD_FABRIC_PROBLEM_NODE, .count = 1};
	struct mad_fabric_port *port;

	for (uint64_t i = 0; i < 100; i++) {
		struct mad_fabric_node *node = graph_add_node(fabric, i, IB_NODE_SWITCH, 64);

		if (!node)
			return -ENOMEM;
		port = graph_port(node, 0);
		port->lid = 1;
		port->info = graph_store(fabric, image);
		if (!port->info || graph_add_problem(fabric, &problem, NULL) ||
		    graph_add_oddity(fabric, MAD_FABRIC_PROBLEM_LOOP, port, port, 0))
			return -ENOMEM;
	}
	return graph_finish(fabric);
}

TEST(each_allocation_may_fail)
{
	unsigned failed = 0;

	for (unsigned n = 1;; n++) {
		int err;

		mad_fabric_free(fabric);
		device_fail_malloc(n);
		fabric = graph_create();
		err = fabric ? fill() : -ENOMEM;
		device_fail_malloc(0);
		if (!err)
			break;
		assert_int_equal(err, -ENOMEM);
		failed++;
	}
	assert_true(failed > 10);
	assert_int_equal(fabric->node_count, 100);
}
