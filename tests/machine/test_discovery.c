/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Discoveries of fabrics of every shape, compared with the simulator's graph; nodes that are
 * silent or respond oddly; limits, cancel, several discoveries at once.
 */

#include "fabrics.h"

#include <pthread.h>
#include <signal.h>

#define LONG_MS 60000

FIXTURE(setup_two_switches, teardown_fabrics);

/* --- the fabric is the simulator's ---------------------------------------------------- */

static const struct mad_fabric_port *same_port(uint32_t index)
{
	const struct graph_port *real = &truth.ports[index];

	return mad_fabric_get_port(mad_fabric_find_guid(fabric, truth.nodes[real->node].guid),
				   real->number);
}

static void compare_port(const struct mad_fabric_node *node, const struct graph_port *real)
{
	const struct mad_fabric_port *each = mad_fabric_get_port(node, real->number);
	bool reaches_peer = real->peer != NONE && (same_port(real->peer) != NULL);

	assert_non_null(each);
	assert_int_equal(each->error, 0);
	assert_non_null(each->info);
	assert_ptr_equal(each->peer, reaches_peer ? same_port(real->peer) : NULL);
	if (real->peer != NONE && reaches_peer) {
		assert_int_equal(each->width, real->width);
		assert_int_equal(each->state, MAD_PORT_ACTIVE);
		assert_true(each->rate_gbps > 0);
	} else if (real->peer == NONE && real->number) {
		assert_int_equal(each->state, MAD_PORT_DOWN);
		assert_int_equal(each->width, 0);
	}
	/* of a port without a link in the subnet, nothing tells the GUID */
	if (node->type != IB_NODE_SWITCH && (each->guid || each->peer))
		assert_int_equal(each->guid, real->guid);
}

static void compare_node(const struct graph_node *real)
{
	const struct mad_fabric_node *node = mad_fabric_find_guid(fabric, real->guid);

	assert_non_null(node);
	assert_int_equal(node->type, real->type);
	assert_int_equal(node->port_count, real->port_count);
	assert_int_equal(node->system_guid, real->system_guid);
	assert_int_equal(node->vendor_id, real->vendor_id);
	assert_int_equal(node->device_id, real->device_id);
	assert_string_equal(node->description, real->name);
	assert_int_equal(node->enhanced_port0, real->enhanced_port0);
	assert_int_equal(node->switch_info != NULL, node->type == IB_NODE_SWITCH);
	for (unsigned n = node->type != IB_NODE_SWITCH; n <= real->port_count; n++)
		compare_port(node, &truth.ports[real->first_port + n]);
}

/* Marks the nodes to which a route leads from the first one; returns their number. */
static size_t mark_reachable(bool *reached)
{
	uint32_t *queue = calloc(truth.node_count, sizeof(*queue));
	size_t count = 1;

	assert_non_null(queue);
	queue[0] = graph_find_guid(&truth, mad_fabric_get_node(fabric, 0)->guid);
	reached[queue[0]] = true;
	for (size_t i = 0; i < count; i++) {
		const struct graph_node *node = &truth.nodes[queue[i]];

		for (unsigned n = 1; n <= node->port_count; n++) {
			uint32_t peer = truth.ports[node->first_port + n].peer;

			if (peer == NONE || reached[truth.ports[peer].node] ||
			    (i && node->type != NODE_SWITCH) ||
			    (!i && node->type != NODE_SWITCH && n != fabric->origin->number))
				continue;
			queue[count] = truth.ports[peer].node;
			reached[queue[count++]] = true;
		}
	}
	free(queue);
	return count;
}

static void expect_truth(void)
{
	bool *reached = calloc(truth.node_count, sizeof(*reached));

	assert_non_null(reached);
	assert_int_equal(fabric->node_count, mark_reachable(reached));
	for (uint32_t i = 0; i < truth.node_count; i++)
		if (reached[i])
			compare_node(&truth.nodes[i]);
	free(reached);
}

/* No attribute is read twice; NodeInfo once for each end of a link at most. */
static void expect_few_requests(void)
{
	size_t links = 0, switches = 0;

	for (const struct mad_fabric_port *each = NULL;
	     (each = mad_fabric_next_port(fabric, each));)
		links += each->peer != NULL;
	for (size_t i = 0; i < fabric->node_count; i++)
		switches += mad_fabric_get_node(fabric, i)->type == IB_NODE_SWITCH;
	assert_int_equal(asked(NULL, IB_ATTR_NODE_DESC), fabric->node_count);
	assert_int_equal(asked(NULL, IB_ATTR_SWITCH_INFO), switches);
	assert_int_equal(asked(NULL, IB_ATTR_PORT_INFO), fabric->port_count);
	assert_int_equal(asked(NULL, IB_ATTR_MLNX_EXT_PORT_INFO), 0);
	assert_in_range(asked(NULL, IB_ATTR_NODE_INFO), 1 + links / 2, 1 + links);
}

/* The simulated fabric has other nodes, with the subnet manager. */
#define ALONE "Ca 1 \"host\"\nCa 1 \"a\"\n[1] \"b\"\nCa 1 \"b\"\n"

static const struct topology {
	const char *behaviour, *topology, *at;
	size_t problems;
} topologies[] = {
	{"a_pair", "pair", "host-1", 0},
	{"a_fat_tree", "fat-tree:8,2", "host-3", 0},
	{"a_fat_tree_of_three_levels", "fat-tree:4,3", "host-1", 0},
	{"a_dragonfly", "dragonfly:5,4,2@4xNDR", "host-7", 0},
	{"a_torus", "torus:3,3,3", "host-1", 0},
	{"two_links_between_switches", TWO_SWITCHES, "host", 0},
	{"a_node_alone", ALONE, "host", 0},
	{"an_origin_that_is_a_switch", TWO_SWITCHES, "left", 0},
	{"a_ca_with_two_ports_in_the_subnet",
	 TWO_SWITCHES "Ca 2 \"two\"\n[1] \"left\"[4]\n[2] \"right\"[4]\n", "host", 0},
	{"a_second_subnet_of_the_own_ca_is_not_entered",
	 "Ca 2 \"host\"\n[1] \"s\"[1]\n[2] \"t\"[1]\nSwitch 2 \"s\"\n[2] \"a\"\nCa 1 \"a\"\n"
	 "Switch 2 \"t\"\n[2] \"b\"\nCa 1 \"b\"\n",
	 "host", 0},
	{"a_router_or_ca_leads_nowhere",
	 TWO_SWITCHES "Rt 2 \"r\"\n[1] \"left\"[4]\n[2] \"t\"[1]\nSwitch 2 \"t\"\n"
		      "Ca 2 \"c\"\n[1] \"left\"[5]\n[2] \"t\"[2]\n",
	 "host", 0},
	{"a_switch_of_254_ports", "Ca 1 \"host\"\n[1] \"s\"[254]\nSwitch 254 \"s\"\n", "host",
	 0},
	{"a_cable_from_a_switch_to_itself",
	 TWO_SWITCHES "Switch 3 \"s\"\n[1] \"left\"[4]\n[2] \"s\"[3]\n", "host", 1},
	{"links_of_other_rates",
	 "vendid=0x2c9\ndevid=0xd2f0\nsysimgguid=0x77\nSwitch 4 \"s\" # \"leaf 1\" enhanced "
	 "port 0 lid 9 lmc 0\n"
	 "[1] \"host\" # \"\" 4xEDR\n[2] \"b\" # \"\" 1xQDR\n[3] \"c\" # \"\" 12xXDR\n[4] "
	 "\"d\" # \"\" 8xFDR\n"
	 "Ca 1 \"host\"\nCa 1 \"b\"\nCa 1 \"c\"\nCa 1 \"d\"\n",
	 "host", 0},
};

static void discover_topology(const void *row)
{
	const struct topology *topology = row;

	stop();
	start_at(topology->topology, topology->at);
	discover(NULL);
	assert_int_equal(fabric->problem_count, topology->problems);
	assert_int_equal(problems(MAD_FABRIC_PROBLEM_LOOP), topology->problems);
	expect_truth();
	if (!topology->problems)
		expect_few_requests();
	assert_int_equal(fabric->origin->node->guid, guid_of(topology->at));
}

TEST_ROWS(discover_topology, topologies);

/* Lines of a random topology. */
static void draw_topology(char *text, size_t size)
{
	unsigned switches = 1 + (unsigned)random() % 8, hosts = (unsigned)random() % 10, n = 0;
	unsigned next[9] = {0};
	size_t at = (size_t)snprintf(text, size, "Ca 1 \"host\"\n[1] \"s0\"[1]\n");

	next[0] = 2;
	for (unsigned i = 0; i < switches; i++) {
		at += (size_t)snprintf(text + at, size - at, "Switch 32 \"s%u\"\n", i);
		if (!next[i])
			next[i] = 1;
		/* to former switches, which have their lines already: a tree, and more */
		for (unsigned k = 0; i && k < 1 + (unsigned)random() % 3; k++) {
			unsigned other = (unsigned)random() % i;

			at += (size_t)snprintf(text + at, size - at, "[%u] \"s%u\"[%u]\n",
					       next[i]++, other, next[other]++);
		}
	}
	for (unsigned i = 0; i < hosts; i++) {
		unsigned ports = 1 + (unsigned)random() % 2;

		at += (size_t)snprintf(text + at, size - at, "Ca %u \"h%u\"\n", ports, i);
		for (n = 1; n <= ports; n++) {
			unsigned other = (unsigned)random() % switches;

			if (random() % 4)
				at += (size_t)snprintf(text + at, size - at,
						       "[%u] \"s%u\"[%u]\n", n, other,
						       next[other]++);
		}
	}
	assert_true(at < size);
}

/* Slow nodes, and lost packets, change nothing. */
TEST(random_topologies)
{
	char text[4000];

	srandom(test_seed());
	for (int i = 0; i < 10; i++) {
		const struct mad_fabric_options fast = {.timeout_ms = 20};

		stop();
		draw_topology(text, sizeof(text));
		start(text);
		machine_rule("slow %ldus", random() % 200);
		discover(NULL);
		expect_truth();
		expect_few_requests();
		assert_int_equal(fabric->problem_count, 0);
		machine_rule("loss 5%%");
		mad_rpc_set_retries(port, 12);
		discover(&fast);
		expect_truth();
		assert_int_equal(fabric->problem_count, 0);
	}
}

TEST(nodes_and_ports_are_described)
{
	const struct mad_fabric_port *end;

	machine_rule("width 1x on left/2");
	discover(NULL);
	assert_ptr_equal(mad_fabric_find_lid(fabric, machine_lid("far")), port_of("far", 1));
	assert_ptr_equal(mad_fabric_find_lid(fabric, machine_lid("left")), port_of("left", 0));
	assert_ptr_equal(mad_fabric_find_port_guid(fabric, machine_guid("far")),
			 port_of("far", 1));
	assert_int_equal(find("far")->lid, machine_lid("far"));
	assert_int_equal(find("far")->route.cnt, 3);
	assert_int_equal(find("far")->route.p[1], 1);
	assert_int_equal(find("far")->route.p[3], 1);
	assert_int_equal(port_of("far", 1)->sm_lid, machine_lid("far"));
	end = port_of("left", 2);
	assert_int_equal(end->physical_state, MAD_PHYSICAL_LINK_UP);
	assert_int_equal(end->width, 1);
	assert_int_equal(end->width_possible, 4);
	assert_int_equal(end->speed, MAD_SPEED_SDR);
	assert_int_equal(end->speed_possible, MAD_SPEED_SDR);
	assert_true(end->rate_gbps == 2.5);
	assert_int_equal(end->mtu, 4096);
	assert_int_equal(end->guid, guid_of("left"));
	assert_int_equal(end->lid, 0);
	assert_int_equal(end->gmp_lid, machine_lid("left"));
	assert_null(end->mlnx_ext_info);
	assert_int_equal(fabric->problem_count, 0);
}

TEST(nodes_with_an_lmc_or_without_lids)
{
	set_field("far", IB_ATTR_PORT_INFO, IB_PORT_LID_F, 8);
	set_field("far", IB_ATTR_PORT_INFO, IB_PORT_LMC_F, 2);
	discover(NULL);
	assert_int_equal(find("far")->lmc, 2);
	assert_ptr_equal(mad_fabric_find_lid(fabric, 11), port_of("far", 1));
	assert_null(mad_fabric_find_lid(fabric, 12));
	forget_odd_nodes();
	set_field(NULL, IB_ATTR_PORT_INFO, IB_PORT_LID_F, 0);
	assert_int_equal(discover(NULL), 4);
	assert_int_equal(fabric->problem_count, 0);
	assert_int_equal(find("far")->lid, 0);
	assert_null(mad_fabric_find_lid(fabric, 0));
}

/* A node that moves and reboots between two discoveries. */
TEST(links_that_go_and_come)
{
	machine_rule("link down on left/2");
	discover(NULL);
	assert_null(port_of("left", 2)->peer);
	expect_link("left", 3, "right", 3);
	machine_rule("link down on left/3");
	assert_int_equal(discover(NULL), 2);
	assert_int_equal(fabric->problem_count, 0);
	machine_rule("link up on left/3");
	machine_rule("reboot 300ms on far");
	assert_int_equal(discover(NULL), 3);
	machine_pass(60000000);
	assert_int_equal(discover(NULL), 4);
}

/* --- what is requested ------------------------------------------------------------ */

TEST(nodes_alone_can_be_read)
{
	const struct mad_fabric_options options = {.read = MAD_FABRIC_READ_NODES,
						   .timeout_ms = 10};

	assert_int_equal(discover(&options), 4);
	expect_link("left", 3, "right", 3);
	/* but port 1 of the CAs, which tells whether the local link is up */
	assert_int_equal(asked(NULL, IB_ATTR_NODE_DESC) + asked(NULL, IB_ATTR_SWITCH_INFO) +
				 asked("left", IB_ATTR_PORT_INFO),
			 0);
	assert_string_equal(find("far")->description, "");
	assert_null(find("left")->switch_info);
	assert_null(port_of("left", 1)->info);
	assert_int_equal(port_of("left", 1)->state, 0);
	assert_int_equal(port_of("left", 1)->error, 0);
	/* a request through each port of each switch: four have no cable */
	assert_int_equal(fabric->problem_count, 4);
	assert_int_equal(problems(MAD_FABRIC_PROBLEM_BEHIND), 4);
}

#define FDR10_SWITCH                                                  \
	"vendid=0x2c9\nSwitch 4 \"s\"\n[1] \"host\" # \"\" 4xFDR10\n" \
	"[2] \"b\" # \"\" 4xQDR\n[3] \"c\" # \"\" 4xEDR\n"            \
	"vendid=0x2c9\nCa 1 \"host\"\nCa 1 \"b\"\nvendid=0x2c9\nCa 1 \"c\"\n"

TEST(extended_port_infos_of_mellanox_are_read_on_demand)
{
	const struct mad_fabric_options options = {.read = MAD_FABRIC_READ_MLNX_EXT_PORTS};

	stop();
	start(FDR10_SWITCH);
	discover(&options);
	assert_int_equal(fabric->problem_count, 0);
	assert_int_equal(port_of("s", 1)->speed, MAD_SPEED_FDR10);
	assert_int_equal(port_of("s", 2)->speed, MAD_SPEED_QDR);
	assert_int_equal(port_of("s", 3)->speed, MAD_SPEED_EDR);
	assert_non_null(port_of("s", 1)->mlnx_ext_info);
	assert_non_null(port_of("host", 1)->mlnx_ext_info);
	assert_null(port_of("s", 0)->mlnx_ext_info);
	assert_null(port_of("s", 3)->mlnx_ext_info);
	assert_string_equal(find("s")->description, "");
	/* ports with a link that may be FDR10; the host's vendor refuses it, which is no
	 * problem */
	assert_int_equal(asked("s", IB_ATTR_MLNX_EXT_PORT_INFO), 2);
	assert_int_equal(asked("b", IB_ATTR_MLNX_EXT_PORT_INFO), 1);
	assert_null(port_of("b", 1)->mlnx_ext_info);
	assert_int_equal(asked("c", IB_ATTR_MLNX_EXT_PORT_INFO), 0);
	/* a node that drops it is not given up */
	forget_odd_nodes();
	add_oddity((struct oddity){
		.node = "s", .attribute = IB_ATTR_MLNX_EXT_PORT_INFO, .drop = true});
	discover(&options);
	/* so the link seems to have FDR10 at one end, and QDR at the other one */
	assert_int_equal(fabric->problem_count, 2);
	assert_int_equal(problems(MAD_FABRIC_PROBLEM_LINK), 1);
	assert_int_equal(mad_fabric_get_problem(fabric, 0)->kind, MAD_FABRIC_PROBLEM_NODE);
	assert_int_equal(mad_fabric_get_problem(fabric, 0)->attribute,
			 IB_ATTR_MLNX_EXT_PORT_INFO);
	assert_int_equal(mad_fabric_get_problem(fabric, 0)->count, 2);
	for (unsigned n = 0; n <= 4; n++)
		assert_int_equal(port_of("s", n)->error, 0);
}

/* The capabilities of a switch are in PortInfo of port 0. */
TEST(a_speed_is_not_known_if_port_0_would_say_whether_it_is_valid)
{
	stop();
	start(FDR10_SWITCH);
	add_oddity((struct oddity){
		.node = "s", .attribute = IB_ATTR_PORT_INFO, .only_0 = true, .status = 0x1c});
	discover(NULL);
	assert_int_equal(port_of("c", 1)->speed, MAD_SPEED_EDR);
	assert_int_equal(port_of("s", 3)->speed, MAD_SPEED_NONE);
	assert_int_equal(port_of("s", 3)->speed_possible, MAD_SPEED_NONE);
	assert_true(port_of("s", 3)->rate_gbps == 0);
	assert_int_equal(port_of("s", 3)->width, 4);
	assert_int_equal(problems(MAD_FABRIC_PROBLEM_LINK), 0);
	/* QDR is valid whatever port 0 says */
	assert_int_equal(port_of("s", 2)->speed, MAD_SPEED_QDR);
}

TEST(smps_have_the_m_key)
{
	const struct mad_fabric_options options = {.m_key = UINT64_C(0x8877665544332211)};

	mad_rpc_set_timeout(port, 20);
	add_oddity((struct oddity){.m_key = options.m_key});
	smp_mkey_set(port, options.m_key);
	assert_int_equal(discover(NULL), 4);
	/* that of the options has priority */
	smp_mkey_set(port, 5);
	assert_int_equal(discover(&options), 4);
	assert_int_equal(fabric->problem_count, 0);
	assert_int_equal(smp_mkey_get(port), 5);
	/* nodes with another key are failures */
	forget_odd_nodes();
	add_oddity((struct oddity){.node = "right", .m_key = 7});
	assert_int_equal(discover(NULL), 2);
	assert_int_equal(fabric->problem_count, 2);
	assert_int_equal(port_of("left", 2)->peer_error, -ETIMEDOUT);
}

TEST(hops_can_be_limited)
{
	struct mad_fabric_options options = {.max_hops = 1};

	assert_int_equal(discover(&options), 2);
	options.max_hops = 2;
	assert_int_equal(discover(&options), 3);
	assert_null(port_of("right", 1)->peer);
	assert_int_equal(fabric->problem_count, 0);
}

TEST(a_discovery_can_begin_elsewhere)
{
	ib_portid_t from = {.drpath = {.cnt = 2, .p = {0, 1, 2}}};
	struct mad_fabric_options options = {.from = &from, .max_hops = 1};

	assert_int_equal(discover(&options), 3);
	assert_null(find("host"));
	assert_ptr_equal(mad_fabric_get_node(fabric, 0), find("right"));
	assert_ptr_equal(fabric->origin, port_of("right", 2));
	assert_int_equal(find("far")->route.cnt, 3);
	expect_link("left", 3, "right", 3);
	/* the CA of another node forwards nothing (IBA 14.2.2) */
	from.drpath = (ib_dr_path_t){.cnt = 3, .p = {0, 1, 2, 1}};
	options.max_hops = 0;
	assert_int_equal(discover(&options), 1);
	assert_int_equal(fabric->problem_count, 0);
	/* by LID, and by a directed route from there */
	from = (ib_portid_t){.lid = machine_lid("left"),
			     .drpath = {.drslid = machine_lid("host")}};
	assert_int_equal(discover(&options), 4);
	assert_ptr_equal(mad_fabric_get_node(fabric, 0), find("left"));
	expect_link("left", 3, "right", 3);
}

/* --- nodes that do not respond ---------------------------------------------------- */

static const struct mad_fabric_problem *only_problem(enum mad_fabric_problem_kind kind)
{
	assert_int_equal(fabric->problem_count, 1);
	assert_int_equal(mad_fabric_get_problem(fabric, 0)->kind, kind);
	return mad_fabric_get_problem(fabric, 0);
}

TEST(silent_nodes)
{
	const struct mad_fabric_problem *problem;

	mad_async_wait(NULL, 0);
	machine_rule("silent on far");
	assert_int_equal(discover(NULL), 3);
	problem = only_problem(MAD_FABRIC_PROBLEM_BEHIND);
	assert_ptr_equal(problem->port, port_of("right", 1));
	assert_int_equal(problem->attribute, IB_ATTR_NODE_INFO);
	assert_int_equal(problem->error, -ETIMEDOUT);
	assert_int_equal(problem->count, 1);
	/* the discovery succeeds, and leaves the last failure */
	assert_int_equal(mad_last_failure()->error, -EINVAL);
	machine_rule("silent on host");
	mad_fabric_free(fabric);
	assert_int_equal(mad_fabric_discover(port, NULL, &fabric), -ETIMEDOUT);
	assert_null(fabric);
}

#define BIG_SWITCH "Ca 1 \"host\"\n[1] \"s\"[1]\nSwitch 200 \"s\"\n"

TEST(a_node_that_falls_silent_is_given_up)
{
	for (unsigned passes = 1; passes <= 10; passes += 9) {
		const struct mad_fabric_problem *problem;
		unsigned ports = passes > 3 ? passes - 3 : 0;

		stop();
		start(BIG_SWITCH);
		mad_rpc_set_retries(port, 1);
		add_oddity((struct oddity){.node = "s", .passes = passes, .drop = true});
		assert_int_equal(discover(NULL), 2);
		problem = only_problem(MAD_FABRIC_PROBLEM_NODE);
		assert_ptr_equal(problem->node, find("s"));
		assert_int_equal(problem->guid, guid_of("s"));
		assert_int_equal(problem->error, -ETIMEDOUT);
		assert_int_equal(problem->count, passes == 1 ? 203 : 201 - ports);
		assert_string_equal(problem->description, passes == 1 ? "" : "s");
		assert_in_range(asked("s", IB_ATTR_PORT_INFO), 1, 50);
		assert_int_equal(port_of("s", 200)->error, -ETIMEDOUT);
		assert_int_equal(port_of("s", 0)->error, ports ? 0 : -ETIMEDOUT);
		expect_link("host", 1, "s", 1);
	}
}

TEST(a_port_that_is_refused_is_a_failure_of_that_port)
{
	const struct mad_fabric_problem *problem;

	add_oddity((struct oddity){.node = "left",
				   .attribute = IB_ATTR_PORT_INFO,
				   .first = 4,
				   .last = 4,
				   .status = 0x1c});
	assert_int_equal(discover(NULL), 4);
	assert_int_equal(port_of("left", 4)->error, -EIO);
	assert_null(port_of("left", 4)->info);
	assert_non_null(port_of("left", 3)->info);
	problem = only_problem(MAD_FABRIC_PROBLEM_NODE);
	assert_ptr_equal(problem->node, find("left"));
	assert_int_equal(problem->modifier, 4);
	assert_int_equal(problem->status, 0x1c);
	assert_int_equal(problem->count, 1);
	/* a timeout after the error is the node's error */
	add_oddity((struct oddity){.node = "left",
				   .attribute = IB_ATTR_PORT_INFO,
				   .first = 5,
				   .last = 5,
				   .drop = true});
	discover(NULL);
	problem = only_problem(MAD_FABRIC_PROBLEM_NODE);
	assert_int_equal(problem->error, -ETIMEDOUT);
	assert_int_equal(problem->modifier, 5);
	assert_int_equal(problem->status, 0);
	assert_int_equal(problem->count, 2);
	assert_int_equal(port_of("left", 4)->error, -EIO);
}

/* --- use of an earlier discovery ---------------------------------------------------- */

/* "right" is behind two ports of "left". */
static void expect_right_to_be_one_failure(void)
{
	const struct mad_fabric_problem *problem = only_problem(MAD_FABRIC_PROBLEM_BEHIND);

	assert_int_equal(fabric->node_count, 2);
	assert_int_equal(problem->guid, guid_of("right"));
	assert_string_equal(problem->description, "right");
	assert_int_equal(problem->count, 2);
	assert_int_equal(problem->error, -ETIMEDOUT);
	assert_int_equal(problem->attribute, IB_ATTR_NODE_INFO);
	assert_ptr_equal(problem->port, port_of("left", 2));
	assert_ptr_equal(problem->node, find("left"));
	assert_int_equal(port_of("left", 1)->peer_error, 0);
	assert_int_equal(port_of("left", 2)->peer_error, -ETIMEDOUT);
	assert_int_equal(port_of("left", 3)->peer_error, -ETIMEDOUT);
	assert_int_equal(mad_fabric_compare(previous, fabric, NULL, NULL), 0);
}

TEST(the_name_of_a_silent_switch_is_handed_on)
{
	machine_rule("silent on right");
	discover(NULL);
	discover_again();
	/* it was never known: a failure for each cable */
	assert_int_equal(fabric->problem_count, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(mad_fabric_get_problem(fabric, i)->guid, 0);
		assert_string_equal(mad_fabric_get_problem(fabric, i)->description, "");
	}
	machine_rule("clear");
	discover_again();
	assert_int_equal(fabric->problem_count, 0);
	machine_rule("silent on right");
	for (unsigned i = 0; i < 3; i++) {
		discover_again();
		expect_right_to_be_one_failure();
	}
	machine_rule("clear");
	discover_again();
	assert_int_equal(fabric->problem_count, 0);
	assert_int_equal(fabric->node_count, 4);
}

TEST(a_fabric_that_was_loaded_tells_who_is_silent)
{
	FILE *file = tmpfile();

	assert_non_null(file);
	discover(NULL);
	assert_int_equal(mad_fabric_store(fabric, file, NULL), 0);
	rewind(file);
	mad_fabric_free(fabric);
	assert_int_equal(mad_fabric_load(file, &fabric, NULL), 0);
	fclose(file);
	machine_rule("silent on right");
	discover_again();
	expect_right_to_be_one_failure();
}

/* The nodes of the former machine, which has the same GUIDs. */
static void rebuild(const char *topology)
{
	stop();
	start(topology);
}

TEST(failures_of_several_nodes_and_of_new_ones)
{
	size_t first;

	rebuild(TWO_SWITCHES "Ca 1 \"x\"\n[1] \"left\"[4]\n");
	discover(NULL);
	machine_rule("silent on right");
	machine_rule("silent on x");
	discover_again();
	assert_int_equal(fabric->problem_count, 2);
	first = mad_fabric_get_problem(fabric, 0)->guid == guid_of("right") ? 0 : 1;
	assert_int_equal(mad_fabric_get_problem(fabric, first)->count, 2);
	assert_int_equal(mad_fabric_get_problem(fabric, !first)->guid, guid_of("x"));
	/* a silent node behind a new switch has no name */
	rebuild(TWO_SWITCHES);
	discover(NULL);
	rebuild(TWO_SWITCHES "Switch 2 \"new\"\n[1] \"left\"[4]\n[2] \"x\"[1]\nCa 1 \"x\"\n");
	machine_rule("silent on x");
	discover_again();
	assert_int_equal(fabric->node_count, 5);
	assert_ptr_equal(only_problem(MAD_FABRIC_PROBLEM_BEHIND)->port, port_of("new", 2));
	assert_int_equal(mad_fabric_get_problem(fabric, 0)->guid, 0);
	/* a silent node in another's place has the name of the one that was there */
	rebuild(TWO_SWITCHES);
	discover(NULL);
	rebuild("Ca 1 \"host\"\n[1] \"left\"[1]\nSwitch 5 \"left\"\n[2] \"right\"[2]\n[3] "
		"\"x\"\n"
		"Switch 5 \"right\"\n[1] \"far\"[1]\nCa 1 \"far\"\nCa 1 \"x\"\n");
	machine_rule("silent on x");
	discover_again();
	discover_again();
	assert_int_equal(fabric->node_count, 4);
	assert_int_equal(only_problem(MAD_FABRIC_PROBLEM_BEHIND)->guid, guid_of("right"));
	assert_ptr_equal(mad_fabric_get_problem(fabric, 0)->port, port_of("left", 3));
}

TEST(a_node_that_responds_with_an_error_may_be_another_one)
{
	discover(NULL);
	add_oddity((struct oddity){
		.node = "right", .attribute = IB_ATTR_NODE_INFO, .status = 0x1c});
	discover_again();
	assert_int_equal(fabric->problem_count, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(mad_fabric_get_problem(fabric, i)->error, -EIO);
		assert_int_equal(mad_fabric_get_problem(fabric, i)->guid, 0);
	}
	assert_int_equal(port_of("left", 2)->peer_error, -EIO);
	assert_int_equal(mad_fabric_compare(previous, fabric, NULL, NULL), 0);
}

/* --- inconsistent nodes --------------------------------------------------------------- */

#define WITH_TWIN TWO_SWITCHES "sysimgguid=0x100000\nCa 1 \"twin\"\n[1] \"left\"[4]\n"
#define WITH_TWIN_SWITCH \
	TWO_SWITCHES "sysimgguid=0x200001\nSwitch 5 \"twin\"\n[4] \"left\"[4]\n"
#define WITH_UNLIKE_TWIN TWO_SWITCHES "Ca 2 \"twin\"\n[2] \"left\"[4]\n"

static const struct contradiction {
	const char *behaviour, *topology, *clone_of;
	struct oddity oddity;
	enum mad_fabric_problem_kind kind;
	unsigned nodes;
} contradictions[] = {
	{"two_nodes_with_one_guid", WITH_TWIN, "far", {0}, MAD_FABRIC_PROBLEM_GUID, 4},
	{"a_twin_of_the_local_node", WITH_TWIN, "host", {0}, MAD_FABRIC_PROBLEM_GUID, 4},
	{"a_port_with_two_port_guids",
	 WITH_TWIN_SWITCH,
	 NULL,
	 {"twin", IB_ATTR_NODE_INFO, .field = IB_NODE_GUID_F, .value = 0x200001},
	 MAD_FABRIC_PROBLEM_GUID,
	 4},
	{"two_unlike_nodes_with_one_guid",
	 WITH_UNLIKE_TWIN,
	 "far",
	 {0},
	 MAD_FABRIC_PROBLEM_GUID,
	 4},
	{"a_node_guid_twice_with_other_port_guids",
	 WITH_TWIN,
	 NULL,
	 {"twin", IB_ATTR_NODE_INFO, .field = IB_NODE_GUID_F, .value = 0x100000},
	 MAD_FABRIC_PROBLEM_GUID,
	 4},
	{"one_lid_twice",
	 TWO_SWITCHES,
	 NULL,
	 {"far", IB_ATTR_PORT_INFO, .field = IB_PORT_LID_F, .value = 2},
	 MAD_FABRIC_PROBLEM_LID,
	 4},
	{"a_node_without_ports",
	 TWO_SWITCHES,
	 NULL,
	 {"far", IB_ATTR_NODE_INFO, .field = IB_NODE_NPORTS_F},
	 MAD_FABRIC_PROBLEM_PORT_COUNT,
	 4},
	{"a_first_node_without_ports",
	 TWO_SWITCHES,
	 NULL,
	 {"host", IB_ATTR_NODE_INFO, .field = IB_NODE_NPORTS_F},
	 MAD_FABRIC_PROBLEM_PORT_COUNT,
	 1},
	{"a_local_port_beyond_the_count",
	 TWO_SWITCHES,
	 NULL,
	 {"far", IB_ATTR_NODE_INFO, .field = IB_NODE_LOCAL_PORT_F, .value = 9},
	 MAD_FABRIC_PROBLEM_PORT_COUNT,
	 4},
	{"a_first_local_port_beyond_the_count",
	 TWO_SWITCHES,
	 NULL,
	 {"host", IB_ATTR_NODE_INFO, .field = IB_NODE_LOCAL_PORT_F, .value = 9},
	 MAD_FABRIC_PROBLEM_PORT_COUNT,
	 0},
	{"an_unknown_type",
	 TWO_SWITCHES,
	 NULL,
	 {"far", IB_ATTR_NODE_INFO, .field = IB_NODE_TYPE_F, .value = 200},
	 MAD_FABRIC_PROBLEM_NODE_TYPE,
	 4},
	{"ends_that_differ",
	 TWO_SWITCHES,
	 NULL,
	 {"far", IB_ATTR_PORT_INFO, .field = IB_PORT_NEIGHBOR_MTU_F, .value = 2},
	 MAD_FABRIC_PROBLEM_LINK,
	 4},
};

static void discover_contradiction(const void *row)
{
	const struct contradiction *contradiction = row;

	rebuild(contradiction->topology);
	if (contradiction->clone_of)
		machine_rule("clone %s on twin", contradiction->clone_of);
	if (contradiction->oddity.node)
		add_oddity(contradiction->oddity);
	discover(NULL);
	if (contradiction->nodes)
		assert_int_equal(fabric->node_count, contradiction->nodes);
	assert_true(problems(contradiction->kind) >= 1);
	assert_in_range(fabric->problem_count, 1, 2);
	if (contradiction->kind == MAD_FABRIC_PROBLEM_GUID) {
		/* a twin changes no PortGUID of the first one */
		assert_ptr_equal(mad_fabric_find_port_guid(fabric, machine_guid("host")),
				 port_of("host", 1));
	} else if (!strcmp(contradiction->oddity.node, "host")) {
		assert_null(fabric->origin);
	} else {
		assert_int_equal(port_of("right", 1)->peer != NULL,
				 contradiction->kind != MAD_FABRIC_PROBLEM_PORT_COUNT);
	}
}

TEST_ROWS(discover_contradiction, contradictions);

TEST(a_problem_of_one_guid_has_both_places)
{
	const struct mad_fabric_problem *problem;

	rebuild(WITH_TWIN);
	machine_rule("clone far on twin");
	discover(NULL);
	problem = only_problem(MAD_FABRIC_PROBLEM_GUID);
	assert_true((problem->port == port_of("left", 4) &&
		     problem->other_port == port_of("right", 1)) ||
		    (problem->port == port_of("right", 1) &&
		     problem->other_port == port_of("left", 4)));
}

TEST(peers_that_disagree)
{
	/* each port of "right" has local port number 3: of two cables to it, one counts */
	set_field("right", IB_ATTR_NODE_INFO, IB_NODE_LOCAL_PORT_F, 3);
	assert_int_equal(discover(NULL), 4);
	assert_true(problems(MAD_FABRIC_PROBLEM_GUID) + problems(MAD_FABRIC_PROBLEM_PEER) >= 1);
}

TEST(a_chain_is_followed_for_63_hops)
{
	char text[6000];
	size_t at = (size_t)snprintf(text, sizeof(text), "Ca 1 \"host\"\n[1] \"s0\"[1]\n");

	for (unsigned i = 0; i < 70; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at,
				       "Switch 2 \"s%u\"\n[2] \"s%u\"[1]\n", i, i + 1);
	snprintf(text + at, sizeof(text) - at, "Switch 2 \"s70\"\n");
	rebuild(text);
	assert_int_equal(discover(NULL), 64);
	only_problem(MAD_FABRIC_PROBLEM_ROUTE_TOO_LONG);
}

/* Each NodeInfo has another GUID: a fabric without end. */
static void lie(const char *node, uint64_t first)
{
	add_oddity((struct oddity){.node = node,
				   .attribute = IB_ATTR_NODE_INFO,
				   .field = IB_NODE_GUID_F,
				   .value = first,
				   .counts = true});
}

TEST(a_fabric_without_end_is_bounded)
{
	const struct mad_fabric_options nodes = {.max_nodes = 100};
	const struct mad_fabric_options ports = {
		.max_nodes = 300, .read = MAD_FABRIC_READ_NODES, .timeout_ms = 5};
	char text[16000];
	size_t at;

	lie("left", 0xa00000);
	lie("right", 0xb00000);
	lie("far", 0xc00000);
	assert_int_equal(discover(&nodes), 100);
	assert_int_equal(problems(MAD_FABRIC_PROBLEM_TOO_MANY), 1);
	/* switches with 254 links to each other have too many ports before */
	at = (size_t)snprintf(text, sizeof(text),
			      "Ca 1 \"host\"\n[1] \"left\"[1]\nSwitch 254 \"left\"\n");
	for (unsigned n = 2; n < 255; n++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "[%u] \"right\"[%u]\n", n,
				       n);
	snprintf(text + at, sizeof(text) - at, "Switch 254 \"right\"\n");
	rebuild(text);
	lie("left", 0xa00000);
	lie("right", 0xb00000);
	discover(&ports);
	assert_in_range(fabric->port_count, 65536 - 254, 65536 + 16 * 300);
	assert_true(fabric->node_count < 300);
	assert_int_equal(problems(MAD_FABRIC_PROBLEM_TOO_MANY), 1);
}

/* --- on an engine -------------------------------------------------------------------- */

static struct mad_async *engine;
static uint64_t id;
static struct {
	int calls, error;
	struct mad_failure failure;
	char text[MAD_ERROR_TEXT_SIZE]; /* of the failure */
} result;

static void note(struct mad_async *async, int error, struct mad_fabric *found, void *arg)
{
	(void)async;
	assert_ptr_equal(arg, &result);
	result.calls++;
	result.error = error;
	mad_fabric_free(fabric);
	fabric = found;
	if (!error)
		return;
	result.failure = *mad_last_failure();
	mad_failure_text(NULL, result.text, sizeof(result.text));
}

static void submit(const struct mad_fabric_options *options)
{
	memset(&result, 0, sizeof(result));
	engine = mad_async_create(port);
	assert_non_null(engine);
	assert_int_equal(mad_fabric_submit(engine, options, note, &result, &id), 0);
	assert_int_equal(result.calls, 0);
}

static void finish(int error)
{
	mad_async_wait(engine, -1);
	assert_int_equal(result.calls, 1);
	assert_int_equal(result.error, error);
	assert_int_equal(mad_async_cancel(engine, id), -ENOENT);
	mad_async_free(engine);
}

TEST(a_discovery_on_an_engine_calls_back_once)
{
	submit(NULL);
	finish(0);
	assert_int_equal(fabric->node_count, 4);
	expect_truth();
	add_oddity((struct oddity){
		.node = "host", .attribute = IB_ATTR_NODE_INFO, .status = 0x1c});
	submit(NULL);
	finish(-EIO);
	assert_null(fabric);
	assert_string_equal(result.text, "invalid value in the attribute or its modifier");
	assert_int_equal(result.failure.status, 0x1c);
	assert_int_equal(result.failure.attribute, IB_ATTR_NODE_INFO);
}

TEST(several_discoveries_at_once_have_the_same_result)
{
	struct mad_fabric *found[4] = {NULL};

	engine = mad_async_create(port);
	for (int i = 0; i < 4; i++)
		assert_int_equal(mad_fabric_submit(engine, NULL, note, &result, NULL), 0);
	memset(&result, 0, sizeof(result));
	for (int i = 0; i < 4; i++) {
		while (result.calls == i)
			assert_true(mad_async_wait(engine, -1) >= 0);
		if (result.calls == i + 1) {
			found[i] = fabric;
			fabric = NULL;
			assert_int_equal(found[i]->node_count, 4);
		}
		if (i && found[i] && found[i - 1])
			assert_int_equal(mad_fabric_compare(found[i - 1], found[i], NULL, NULL),
					 0);
	}
	for (int i = 0; i < 4; i++)
		mad_fabric_free(found[i]);
	mad_async_free(engine);
}

static void cancel_it(const struct mad_fabric_progress *progress, void *arg)
{
	(void)arg;
	assert_true(progress->in_flight > 0);
	mad_async_cancel(engine, id);
	assert_int_equal(result.calls, 0);
}

TEST(a_discovery_can_be_cancelled)
{
	const struct mad_fabric_options options = {.progress = cancel_it};

	/* before anything was sent */
	submit(NULL);
	assert_int_equal(mad_async_cancel(engine, id), 0);
	assert_int_equal(mad_async_cancel(engine, id), -ENOENT);
	finish(-ECANCELED);
	assert_string_equal(result.text, "cancelled");
	assert_int_equal(net.asked_count, 0);
	/* with requests in flight */
	machine_rule("slow 1s");
	submit(NULL);
	mad_async_process(engine);
	assert_int_equal(mad_async_cancel(engine, MAD_ASYNC_ALL), 0);
	finish(-ECANCELED);
	/* in its progress */
	submit(&options);
	finish(-ECANCELED);
	/* by the end of the engine */
	submit(NULL);
	mad_async_free(engine);
	assert_int_equal(result.calls, 1);
	assert_int_equal(result.error, -ECANCELED);
	assert_null(fabric);
}

/* "host" and "left" are known; behind two ports of "left" a node is not. */
static void expect_part(int error)
{
	assert_non_null(fabric);
	assert_int_equal(fabric->node_count, 2);
	expect_link("host", 1, "left", 1);
	for (unsigned number = 2; number <= 3; number++) {
		assert_null(port_of("left", number)->peer);
		assert_int_equal(port_of("left", number)->peer_error, error);
	}
	assert_int_equal(port_of("left", 4)->peer_error, 0);
	assert_int_equal(fabric->problem_count, 2);
	assert_int_equal(mad_fabric_get_problem(fabric, 0)->error, error);
	assert_ptr_equal(mad_fabric_get_problem(fabric, 0)->port, port_of("left", 2));
}

static void be_patient(void)
{
	machine_rule("silent on right");
	mad_rpc_set_timeout(port, LONG_MS);
}

static void *cancel_from_thread(void *arg)
{
	machine_pass(60000);
	if (mad_async_cancel(engine, id) || mad_async_cancel(engine, id) != -ENOENT)
		return NULL;
	return arg;
}

TEST(another_thread_cancels_a_discovery_by_its_number)
{
	const struct mad_fabric_options options = {.partial = true};
	pthread_t thread;
	void *ok;

	be_patient();
	submit(&options);
	assert_int_equal(pthread_create(&thread, NULL, cancel_from_thread, &result), 0);
	finish(-ECANCELED);
	pthread_join(thread, &ok);
	assert_non_null(ok);
	assert_true(machine_us() < LONG_MS * 500);
	expect_part(-ECANCELED);
}

/* The number is gone, and a new discovery may begin. */
static void cancel_and_begin_again(struct mad_async *async, int error, struct mad_fabric *found,
				   void *arg)
{
	assert_int_equal(mad_async_cancel(async, id), -ENOENT);
	note(async, error, found, arg);
	assert_int_equal(mad_fabric_submit(async, NULL, note, &result, &id), 0);
	assert_int_equal(mad_async_cancel(async, id), 0);
	assert_int_equal(result.calls, 1);
}

TEST(a_callback_cancels_the_next_discovery)
{
	memset(&result, 0, sizeof(result));
	engine = mad_async_create(port);
	assert_int_equal(mad_fabric_submit(engine, NULL, cancel_and_begin_again, &result, &id),
			 0);
	mad_async_wait(engine, -1);
	assert_int_equal(result.calls, 2);
	assert_int_equal(result.error, -ECANCELED);
	mad_async_free(engine);
}

static uint64_t others[2];
static int other_errors[2];

/* Cancels the other one, which has reached its time limit, too, but was not called back. */
static void cancel_other(struct mad_async *async, int error, struct mad_fabric *found,
			 void *arg)
{
	unsigned at = (unsigned)((const uint64_t *)arg - others);

	mad_fabric_free(found);
	other_errors[at] = error;
	if (!other_errors[1 - at])
		assert_int_equal(mad_async_cancel(async, others[1 - at]), 0);
}

TEST(a_cancel_that_succeeds_is_the_error_also_after_the_time_limit)
{
	const struct mad_fabric_options options = {.time_limit_ms = 100};

	be_patient();
	memset(other_errors, 0, sizeof(other_errors));
	engine = mad_async_create(port);
	for (int i = 0; i < 2; i++)
		assert_int_equal(mad_fabric_submit(engine, &options, cancel_other, &others[i],
						   &others[i]),
				 0);
	mad_async_wait(engine, -1);
	assert_int_equal(other_errors[0] + other_errors[1], -ETIME + -ECANCELED);
	mad_async_free(engine);
}

#define SUBMITTERS 4

static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
static unsigned begun, ended;

static void count_end(struct mad_async *async, int error, struct mad_fabric *found, void *arg)
{
	(void)async, (void)error, (void)arg;
	mad_fabric_free(found);
	pthread_mutex_lock(&counting);
	ended++;
	pthread_mutex_unlock(&counting);
}

static void *submit_until_refused(void *arg)
{
	for (int i = 0; i < 10 && !mad_fabric_submit(engine, NULL, count_end, NULL, NULL);
	     i++) {
		pthread_mutex_lock(&counting);
		begun++;
		pthread_mutex_unlock(&counting);
		if (i == 5)
			machine_pass(1);
	}
	return arg;
}

/* Each discovery is refused, or called back once. */
TEST(discoveries_begin_while_another_thread_frees_the_engine)
{
	pthread_t threads[SUBMITTERS];

	for (int round = 0; round < 200; round++) {
		begun = ended = 0;
		engine = mad_async_create(port);
		for (int i = 0; i < SUBMITTERS; i++)
			assert_int_equal(
				pthread_create(&threads[i], NULL, submit_until_refused, NULL),
				0);
		if (round % 2)
			machine_pass(round % 4);
		mad_async_free(engine);
		for (int i = 0; i < SUBMITTERS; i++)
			pthread_join(threads[i], NULL);
		assert_int_equal(ended, begun);
	}
}

/* --- progress ------------------------------------------------------------------------ */

static struct mad_fabric_progress last_progress;
static unsigned progress_calls, early_progress;
static int64_t progress_us, found_us;

static void keep_progress(const struct mad_fabric_progress *progress, void *arg)
{
	assert_ptr_equal(arg, &last_progress);
	/* ten times a second at most, but at the end */
	if (progress_calls++ && progress->in_flight && machine_us() - progress_us < 100000)
		early_progress++;
	progress_us = machine_us();
	if (progress->nodes == 2 && !found_us)
		found_us = machine_us();
	last_progress = *progress;
}

TEST(progress_is_told_ten_times_a_second_at_most)
{
	struct mad_fabric_options options = {.progress = keep_progress,
					     .progress_arg = &last_progress};

	progress_calls = early_progress = 0;
	add_oddity((struct oddity){.node = "left",
				   .attribute = IB_ATTR_PORT_INFO,
				   .first = 4,
				   .last = 4,
				   .status = 0x1c});
	machine_rule("slow 40ms");
	discover(&options);
	assert_int_equal(early_progress, 0);
	assert_in_range(progress_calls, 2, 2 + machine_us() / 100000);
	assert_int_equal(last_progress.nodes, 4);
	assert_int_equal(last_progress.switches, 2);
	assert_int_equal(last_progress.links, 4);
	assert_int_equal(last_progress.ports, fabric->port_count);
	assert_int_equal(last_progress.in_flight, 0);
	assert_int_equal(last_progress.problems, 1);
	/* the local port is asked apart */
	assert_in_range(last_progress.requests, 20, net.asked_count);
	/* what is found first is told, although nothing comes after it */
	machine_rule("clear");
	be_patient();
	found_us = 0;
	options.time_limit_ms = 2000;
	mad_fabric_free(fabric);
	assert_int_equal(mad_fabric_discover(port, &options, &fabric), -ETIME);
	assert_true(found_us && machine_us() - found_us > 1000000);
}

/* --- time limit, cancel, and the local port ------------------------------------------- */

static struct mad_cancel cancel;

static void end_early(const struct mad_fabric_options *options, int error, const char *text)
{
	char failure[MAD_ERROR_TEXT_SIZE];
	int64_t begin = machine_us();

	be_patient();
	mad_fabric_free(fabric);
	fabric = NULL;
	assert_int_equal(mad_fabric_discover(port, options, &fabric), error);
	assert_true(machine_us() - begin < LONG_MS * 500);
	assert_string_equal(mad_failure_text(NULL, failure, sizeof(failure)), text);
}

TEST(a_discovery_has_a_time_limit)
{
	struct mad_fabric_options options = {.time_limit_ms = 1000, .partial = true};

	/* the local port does not respond meanwhile, which holds nothing up */
	end_early(&options, -ETIME, "the time limit is over");
	assert_in_range(machine_us(), 1000000, 1100000);
	expect_part(-ETIME);
	options.partial = false;
	end_early(&options, -ETIME, "the time limit is over");
	assert_null(fabric);
	/* without a first node there is no part */
	options.partial = true;
	machine_rule("silent on host");
	end_early(&options, -ETIME, "the time limit is over");
	assert_null(fabric);
	machine_rule("clear");
	assert_int_equal(discover(&options), 4);
	assert_int_equal(fabric->problem_count, 0);
}

TEST(a_silent_local_port_holds_nothing_up)
{
	const struct mad_fabric_options options = {.time_limit_ms = 1500, .partial = true};

	add_oddity((struct oddity){
		.node = "host", .attribute = IB_ATTR_PORT_INFO, .passes = 1, .drop = true});
	end_early(&options, -ETIME, "the time limit is over");
	expect_part(-ETIME);
}

static void *cancel_soon(void *arg)
{
	machine_pass(60000);
	mad_cancel_set(&cancel);
	return arg;
}

static void cancel_in_handler(int number)
{
	(void)number;
	mad_cancel_set(&cancel);
}

static void raise_alarm(const struct mad_fabric_progress *progress, void *arg)
{
	(void)arg;
	if (progress->nodes == 2)
		raise(SIGALRM);
}

TEST(a_thread_and_a_signal_handler_cancel_a_discovery)
{
	struct mad_fabric_options options = {.cancel = &cancel, .partial = true};
	struct sigaction action = {.sa_handler = cancel_in_handler, .sa_flags = SA_RESTART};
	struct sigaction before;
	pthread_t thread;

	cancel = (struct mad_cancel){0};
	assert_int_equal(pthread_create(&thread, NULL, cancel_soon, NULL), 0);
	end_early(&options, -ECANCELED, "cancelled");
	pthread_join(thread, NULL);
	assert_int_equal(cancel.is_set, 1);
	expect_part(-ECANCELED);
	/* it stays set until it is cleared */
	end_early(&options, -ECANCELED, "cancelled");
	assert_null(fabric);
	cancel = (struct mad_cancel){0};
	mad_cancel_set(NULL);
	sigaction(SIGALRM, &action, &before);
	options.progress = raise_alarm;
	end_early(&options, -ECANCELED, "cancelled");
	sigaction(SIGALRM, &before, NULL);
	expect_part(-ECANCELED);
}

TEST(a_discovery_ends_when_the_local_link_goes_down)
{
	const struct mad_fabric_options options = {.partial = true, .m_key = 9};

	/* the local port is read with the M_Key, and while other requests wait */
	add_oddity((struct oddity){.node = "host", .m_key = 9});
	mad_port_set(port, MAD_PORT_RATE, 20);
	machine_rule("after 1s link down on host");
	end_early(&options, -ENETDOWN, "the link of the local port is down");
	assert_non_null(fabric);
	assert_non_null(find("host"));
	/* a kernel that does not send without a link */
	machine_rule("link up on host");
	machine_pass(30000000);
	mad_port_set(port, MAD_PORT_RATE, 0);
	machine_fail(MACHINE_WRITE, 5, ENETUNREACH);
	end_early(&options, -ENETDOWN, "the link of the local port is down");
	assert_non_null(fabric);
}

/* Port 0 of a switch has no link. */
TEST(port_0_of_the_local_switch_is_not_down)
{
	const struct mad_fabric_options options = {.time_limit_ms = 1500};

	stop();
	start_at(TWO_SWITCHES, "left");
	set_field("left", IB_ATTR_PORT_INFO, IB_PORT_PHYS_STATE_F, MAD_PHYSICAL_POLLING);
	net.oddities[0].only_0 = true;
	end_early(&options, -ETIME, "the time limit is over");
}

TEST(a_node_alone_that_is_slow_or_silent)
{
	const struct mad_fabric_options options = {.time_limit_ms = 600};

	rebuild(ALONE);
	mad_rpc_set_timeout(port, LONG_MS);
	machine_rule("slow 150ms");
	assert_int_equal(discover(NULL), 1);
	assert_int_equal(fabric->problem_count, 0);
	assert_null(fabric->origin->peer);
	assert_int_equal(fabric->origin->state, MAD_PORT_DOWN);
	add_oddity((struct oddity){.attribute = IB_ATTR_NODE_INFO, .drop = true});
	mad_fabric_free(fabric);
	assert_int_equal(mad_fabric_discover(port, &options, &fabric), -ETIME);
}

TEST(a_device_that_goes_ends_a_discovery)
{
	const struct mad_fabric_options options = {.partial = true};

	machine_rule("slow 1ms");
	machine_rule("after 2500us remove on host");
	end_early(&options, -ENODEV, "the device is gone");
	assert_non_null(fabric);
	assert_int_equal(find("host")->index, 0);
	/* and no other one begins */
	engine = mad_async_create(port);
	if (engine) {
		while (!mad_async_process(engine))
			;
		assert_int_equal(mad_fabric_submit(engine, NULL, note, &result, NULL), -ENODEV);
		assert_int_equal(mad_last_failure()->error, -ENODEV);
	}
	mad_async_free(engine);
}

/* A change from the whole fabric to a part of it that would be wrong. */
static int is_certain(const struct mad_fabric_difference *difference, void *arg)
{
	(void)arg;
	assert_true(difference->change == MAD_FABRIC_NODE_CHANGED ||
		    difference->change >= MAD_FABRIC_LINK_CHANGED);
	return 0;
}

/* Wherever the discovery ends, what is missing has an error. */
static void expect_parts(const char *topology, unsigned read)
{
	const struct mad_fabric_options whole = {.read = read},
					options = {.read = read, .partial = true};
	int error = -ENETDOWN;
	unsigned parts = 0;

	rebuild(topology);
	discover(&whole);
	mad_fabric_free(previous);
	previous = fabric;
	fabric = NULL;
	for (unsigned n = 1; error; n++) {
		const struct mad_fabric_port *each = NULL;

		machine_fail(MACHINE_WRITE, n, ENETUNREACH);
		mad_fabric_free(fabric);
		error = mad_fabric_discover(port, &options, &fabric);
		machine_fail(MACHINE_WRITE, 0, 0);
		assert_true(!error || error == -ENETDOWN);
		if (!fabric)
			continue;
		assert_true(mad_fabric_compare(previous, fabric, is_certain, NULL) >= 0);
		assert_int_equal(!error, !fabric->problem_count);
		parts += error != 0;
		while ((each = mad_fabric_next_port(fabric, each)))
			assert_true(each->info || each->error);
	}
	assert_true(parts > 5);
}

TEST(what_a_part_lacks_has_an_error)
{
	expect_parts(TWO_SWITCHES, 0);
	expect_parts(FDR10_SWITCH, MAD_FABRIC_READ_DEFAULT | MAD_FABRIC_READ_MLNX_EXT_PORTS);
}

/* --- errors ---------------------------------------------------------------------------- */

TEST(wrong_arguments_are_refused)
{
	struct mad_async *async = mad_async_create(port);
	const ib_portid_t from[] = {
		{.drpath = {.cnt = 64}},
		{.drpath = {.cnt = -1}},
		{.lid = 5},
		{.lid = 5, .drpath = {.drslid = 0xffff}},
		{.lid = 0xc000, .drpath = {.drslid = 1}},
		{.lid = -1, .drpath = {.drslid = 1}},
	};
	const struct mad_cancel odd = {.reserved = {[2] = 1}};
	const struct mad_fabric_options wrong[] = {
		{.read = 32},       {.timeout_ms = -1}, {.reserved = {[3] = 1}},
		{.cancel = &odd},   {.from = &from[0]}, {.from = &from[1]},
		{.from = &from[2]}, {.from = &from[3]}, {.from = &from[4]},
		{.from = &from[5]},
	};
	int classes[] = {IB_PERFORMANCE_CLASS};
	struct ibmad_port *other = mad_rpc_open_port(NULL, 0, classes, 1);

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		if (mad_fabric_discover(port, &wrong[i], &fabric) != -EINVAL)
			fail_msg("options %zu are not refused", i);
	assert_int_equal(mad_fabric_discover(port, NULL, NULL), -EINVAL);
	assert_int_equal(mad_fabric_discover(NULL, NULL, &fabric), -EINVAL);
	assert_int_equal(mad_fabric_submit(NULL, NULL, note, NULL, NULL), -EINVAL);
	assert_int_equal(mad_fabric_submit(async, NULL, NULL, NULL, NULL), -EINVAL);
	/* mad_async_cancel() cancels a discovery on an engine */
	cancel = (struct mad_cancel){0};
	assert_int_equal(mad_fabric_submit(async,
					   &(struct mad_fabric_options){.cancel = &cancel},
					   note, &result, NULL),
			 -EINVAL);
	assert_int_equal(mad_last_failure()->error, -EINVAL);
	assert_int_equal(mad_fabric_discover(other, NULL, &fabric), -EPROTONOSUPPORT);
	assert_int_equal(net.asked_count, 0);
	mad_rpc_close_port(other);
	mad_async_free(async);
}

/* Returns the number of discoveries that failed. */
static unsigned fail_each_allocation(const struct mad_fabric_options *options)
{
	unsigned n = 0;
	int error;

	do {
		mad_fabric_free(fabric);
		machine_fail(MACHINE_MALLOC, ++n, ENOMEM);
		error = mad_fabric_discover(port, options, &fabric);
		machine_fail(MACHINE_MALLOC, 0, 0);
		assert_true(error == 0 || error == -ENOMEM);
		assert_int_equal(!error, fabric != NULL);
	} while (error);
	return n - 1;
}

TEST(each_allocation_of_a_discovery_may_fail)
{
	const struct mad_fabric_options partial = {.partial = true};
	unsigned parts = 0;

	/* the discovery, its graph, blocks, tables, requests */
	assert_true(fail_each_allocation(NULL) >= 6);
	assert_int_equal(fabric->node_count, 4);
	previous = fabric;
	fabric = NULL;
	mad_rpc_set_timeout(port, 5);
	machine_rule("silent on right");
	fail_each_allocation(&(struct mad_fabric_options){.previous = previous});
	expect_right_to_be_one_failure();
	/* without memory there is no part */
	machine_pass(1000000);
	machine_rule("clear");
	for (unsigned m = 0; m < 640; m++) {
		int error;

		machine_fail(MACHINE_WRITE, 2 + m % 16, ENETUNREACH);
		machine_fail(MACHINE_MALLOC, 1 + m / 16, ENOMEM);
		mad_fabric_free(fabric);
		error = mad_fabric_discover(port, &partial, &fabric);
		machine_fail(MACHINE_MALLOC, 0, 0);
		machine_fail(MACHINE_WRITE, 0, 0);
		assert_true(error == -ENOMEM || error == -ENETDOWN);
		assert_true(error != -ENOMEM || !fabric);
		parts += fabric != NULL;
	}
	assert_true(parts > 0);
}
