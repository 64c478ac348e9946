/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Discoveries of fabrics of every shape, compared with the simulator's graph; nodes that are
 * silent or respond oddly; limits, cancel, several discoveries at once.
 */

#include "fabrics.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#define LONG_MS 60000

FIXTURE(setup_two_switches, teardown_fabrics);

/* --- the fabric is the simulator's ---------------------------------------------------- */

/* The port that was found; NULL: it was not. */
static const struct mad_fabric_port *found_port(uint32_t index)
{
	if (index == NONE)
		return NULL;
	return mad_fabric_get_port(
		mad_fabric_find_guid(fabric, truth.nodes[truth.ports[index].node].guid),
		truth.ports[index].number);
}

static void expect_true_port(const struct mad_fabric_port *each, const struct graph_port *real)
{
	bool of_switch = each->node->type == IB_NODE_SWITCH;
	const struct mad_fabric_port *peer = found_port(real->peer);

	assert_int_equal(each->error, 0);
	assert_non_null(each->info);
	assert_ptr_equal(each->peer, peer);
	if (peer) {
		assert_int_equal(each->width, real->width);
		assert_int_equal(each->state, MAD_PORT_ACTIVE);
		assert_true(each->rate_gbps > 0);
	} else if (real->peer == NONE && real->number) {
		assert_int_equal(each->state, MAD_PORT_DOWN);
		assert_int_equal(each->width, 0);
	} else { /* CAs and routers lead nowhere */
		assert_true(!real->number || (!of_switch && each != fabric->origin));
	}
	/* of a port without a link in the subnet, nothing tells the GUID */
	if (of_switch)
		real = &truth.ports[truth.nodes[real->node].first_port];
	if (of_switch || each->guid || peer)
		assert_int_equal(each->guid, real->guid);
}

/* All but "hidden" nodes are found. */
static void expect_truth(size_t hidden)
{
	assert_int_equal(fabric->node_count, truth.node_count - hidden);
	for (size_t i = 0; i < fabric->node_count; i++) {
		const struct mad_fabric_node *node = mad_fabric_get_node(fabric, i);
		const struct graph_node *real =
			&truth.nodes[graph_find_guid(&truth, node->guid)];

		assert_int_equal(node->guid, real->guid);
		assert_int_equal(node->type, real->type);
		assert_int_equal(node->port_count, real->port_count);
		assert_int_equal(node->system_guid, real->system_guid);
		assert_int_equal(node->vendor_id, real->vendor_id);
		assert_int_equal(node->device_id, real->device_id);
		assert_string_equal(node->description, real->name);
		assert_int_equal(node->enhanced_port0, real->enhanced_port0);
		assert_int_equal(node->switch_info != NULL, node->type == IB_NODE_SWITCH);
		for (unsigned n = node->type != IB_NODE_SWITCH; n <= real->port_count; n++)
			expect_true_port(mad_fabric_get_port(node, n),
					 &truth.ports[real->first_port + n]);
	}
}

/* No attribute is read twice; NodeInfo once for each end of a link at most. */
static void expect_few_requests(void)
{
	const struct mad_fabric_port *each = NULL;
	size_t links = 0, switches = 0;

	while ((each = mad_fabric_next_port(fabric, each))) {
		links += each->peer != NULL;
		switches += each->number == 0;
	}
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
	size_t hidden; /* nodes */
} topologies[] = {
	{"a_fat_tree_of_three_levels", "fat-tree:4,3", "host-1", 0},
	{"a_node_alone", ALONE, "host", 2},
	{"an_origin_that_is_a_switch", TWO_SWITCHES, "left", 0},
	{"a_second_subnet_of_the_own_ca_is_not_entered",
	 "Ca 2 \"host\"\n[1] \"s\"[1]\n[2] \"t\"[1]\nSwitch 2 \"s\"\n[2] \"a\"\nCa 1 \"a\"\n"
	 "Switch 2 \"t\"\n[2] \"b\"\nCa 1 \"b\"\n",
	 "host", 2},
	{"a_router_or_ca_leads_nowhere",
	 TWO_SWITCHES "Rt 2 \"r\"\n[1] \"left\"[4]\n[2] \"t\"[1]\nSwitch 2 \"t\"\n"
		      "Ca 2 \"c\"\n[1] \"left\"[5]\n[2] \"t\"[2]\n",
	 "host", 1},
	{"a_switch_of_254_ports", "Ca 1 \"a\"\n[1] \"s\"[254]\nSwitch 254 \"s\"\n", "a", 0},
	{"links_of_other_rates",
	 "vendid=0x2c9\ndevid=0xd2f0\nsysimgguid=0x77\nSwitch 4 \"s\" # \"leaf 1\" enhanced "
	 "port 0 lid 9 lmc 0\n[1] \"host\" # \"\" 4xEDR\n[2] \"b\" # \"\" 1xQDR\n"
	 "[3] \"c\" # \"\" 12xXDR\n[4] \"d\" # \"\" 8xFDR\n"
	 "Ca 1 \"host\"\nCa 1 \"b\"\nCa 1 \"c\"\nCa 1 \"d\"\n",
	 "host", 0},
};

static void discover_topology(const void *row)
{
	const struct topology *topology = row;

	stop();
	start_at(topology->topology, topology->at);
	discover(NULL);
	expect_problems("");
	expect_truth(topology->hidden);
	expect_few_requests();
	assert_int_equal(fabric->origin->node->guid, guid_of(topology->at));
}

TEST_ROWS(discover_topology, topologies);

/* Slow nodes, and lost packets, change nothing. */
TEST(random_topologies)
{
	srandom(test_seed());
	for (int i = 0; i < 10; i++) {
		size_t alone = 0;

		draw_fabric();
		for (unsigned node = 0; node < DRAWN_NODES; node++)
			alone += !drawn.used[node];
		start_drawn();
		machine_rule("slow %uus", draw(200));
		discover(NULL);
		expect_truth(alone);
		expect_few_requests();
		expect_problems("");
		machine_rule("loss 1%%");
		mad_rpc_set_retries(port, 12);
		discover(DISCOVERY(.timeout_ms = 20));
		expect_truth(alone);
		expect_problems("");
	}
}

TEST(nodes_and_ports_are_described)
{
	const struct mad_fabric_port *far, *left;

	machine_rule("width 1x on left/2");
	set_field("far", IB_ATTR_PORT_INFO, IB_PORT_LID_F, 8);
	set_field("far", IB_ATTR_PORT_INFO, IB_PORT_LMC_F, 2);
	discover(NULL);
	expect_problems("");
	far = port_of("far", 1);
	assert_ptr_equal(mad_fabric_find_lid(fabric, 11), far);
	assert_null(mad_fabric_find_lid(fabric, 12));
	assert_ptr_equal(mad_fabric_find_port_guid(fabric, machine_guid("far")), far);
	assert_int_equal(far->sm_lid, machine_lid("far"));
	assert_int_equal(far->node->lid, 8);
	assert_int_equal(far->node->lmc, 2);
	assert_int_equal(far->node->route.cnt, 3);
	assert_memory_equal(far->node->route.p, ((uint8_t[]){0, 1, 2, 1}), 4);
	left = port_of("left", 2);
	assert_ptr_equal(mad_fabric_find_lid(fabric, machine_lid("left")), port_of("left", 0));
	assert_int_equal(left->physical_state, MAD_PHYSICAL_LINK_UP);
	assert_int_equal(left->width, 1);
	assert_int_equal(left->width_possible, 4);
	assert_int_equal(left->speed, MAD_SPEED_SDR);
	assert_int_equal(left->speed_possible, MAD_SPEED_SDR);
	assert_true(left->rate_gbps == 2.5);
	assert_int_equal(left->mtu, 4096);
	assert_int_equal(left->guid, guid_of("left"));
	assert_int_equal(left->lid, 0);
	assert_int_equal(left->gmp_lid, machine_lid("left"));
}

#define INVALID "invalid value in the attribute or its modifier"

/* --- what is requested ------------------------------------------------------------ */

TEST(nodes_alone_can_be_read)
{
	assert_int_equal(discover(DISCOVERY(.read = MAD_FABRIC_READ_NODES, .timeout_ms = 10)),
			 4);
	assert_ptr_equal(port_of("left", 3)->peer, port_of("right", 3));
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
	assert_int_equal(mad_fabric_get_problem(fabric, 3)->kind, MAD_FABRIC_PROBLEM_BEHIND);
}

#define ENDS_DIFFER "the ends of the link differ in state, width, speed or MTU"
#define FDR10_SWITCH                                                  \
	"vendid=0x2c9\nSwitch 4 \"s\"\n[1] \"host\" # \"\" 4xFDR10\n" \
	"[2] \"b\" # \"\" 4xQDR\n[3] \"c\" # \"\" 4xEDR\n"            \
	"vendid=0x2c9\nCa 1 \"host\"\nCa 1 \"b\"\nvendid=0x2c9\nCa 1 \"c\"\n"

TEST(extended_port_infos_of_mellanox_are_read_on_demand)
{
	restart(FDR10_SWITCH);
	discover(DISCOVERY(.read = MAD_FABRIC_READ_MLNX_EXT_PORTS));
	/* of ports with a link that may be FDR10; the vendor of "b" refuses it */
	expect_problems("");
	assert_int_equal(asked("s", IB_ATTR_MLNX_EXT_PORT_INFO), 2);
	assert_int_equal(asked("b", IB_ATTR_MLNX_EXT_PORT_INFO), 1);
	assert_int_equal(asked("c", IB_ATTR_MLNX_EXT_PORT_INFO), 0);
	assert_int_equal(port_of("s", 1)->speed, MAD_SPEED_FDR10);
	assert_int_equal(port_of("s", 2)->speed, MAD_SPEED_QDR);
	assert_int_equal(port_of("s", 3)->speed, MAD_SPEED_EDR);
	assert_non_null(port_of("s", 1)->mlnx_ext_info);
	assert_non_null(port_of("host", 1)->mlnx_ext_info);
	assert_null(port_of("b", 1)->mlnx_ext_info);
	assert_string_equal(find("s")->description, "");
	/* a node that drops it is not given up; the link has other speeds at its two ends */
	add_oddity((struct oddity){
		.node = "s", .attribute = IB_ATTR_MLNX_EXT_PORT_INFO, .drop = true});
	discover(DISCOVERY(.read = MAD_FABRIC_READ_MLNX_EXT_PORTS));
	expect_problems("(0x0000000000200000) port 1: ExtendedPortInfo: no response, 2 "
			"requests in all; "
			"(0x0000000000100000) port 1 and port 1: " ENDS_DIFFER);
	for (unsigned n = 0; n <= 4; n++)
		assert_int_equal(port_of("s", n)->error, 0);
}

/* The capabilities of a switch are in PortInfo of port 0. */
TEST(a_speed_is_not_known_if_port_0_would_say_whether_it_is_valid)
{
	restart(FDR10_SWITCH);
	add_oddity((struct oddity){
		.node = "s", .attribute = IB_ATTR_PORT_INFO, .only_0 = true, .status = 0x1c});
	discover(NULL);
	expect_problems("s port 0: PortInfo: " INVALID);
	assert_int_equal(port_of("c", 1)->speed, MAD_SPEED_EDR);
	assert_int_equal(port_of("s", 3)->speed, MAD_SPEED_NONE);
	assert_int_equal(port_of("s", 3)->speed_possible, MAD_SPEED_NONE);
	assert_true(port_of("s", 3)->rate_gbps == 0);
	assert_int_equal(port_of("s", 3)->width, 4);
	/* QDR is valid whatever port 0 says */
	assert_int_equal(port_of("s", 2)->speed, MAD_SPEED_QDR);
}

TEST(smps_have_the_m_key)
{
	mad_rpc_set_timeout(port, 20);
	add_oddity((struct oddity){.m_key = UINT64_C(0x8877665544332211)});
	smp_mkey_set(port, UINT64_C(0x8877665544332211));
	assert_int_equal(discover(NULL), 4);
	/* that of the options has priority */
	smp_mkey_set(port, 5);
	assert_int_equal(discover(DISCOVERY(.m_key = UINT64_C(0x8877665544332211))), 4);
	expect_problems("");
	assert_int_equal(smp_mkey_get(port), 5);
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
	assert_null(port_of("left", 1)->peer);
	/* the CA of another node forwards nothing (IBA 14.2.2) */
	from.drpath = (ib_dr_path_t){.cnt = 3, .p = {0, 1, 2, 1}};
	options.max_hops = 0;
	assert_int_equal(discover(&options), 1);
	expect_problems("");
	/* by LID, and by a directed route from there */
	from = (ib_portid_t){.lid = machine_lid("left"),
			     .drpath = {.drslid = machine_lid("host")}};
	assert_int_equal(discover(&options), 4);
	assert_ptr_equal(mad_fabric_get_node(fabric, 0), find("left"));
}

/* --- nodes that do not respond ---------------------------------------------------- */

TEST(silent_nodes)
{
	mad_async_wait(NULL, 0);
	machine_rule("silent on far");
	assert_int_equal(discover(NULL), 3);
	expect_problems("the node behind right port 1: no response");
	/* the discovery succeeds, and leaves the last failure */
	assert_int_equal(mad_last_failure()->error, -EINVAL);
	machine_rule("silent on host");
	assert_int_equal(try_discovery(NULL), -ETIMEDOUT);
	assert_null(fabric);
}

TEST(a_node_that_falls_silent_is_given_up)
{
	for (unsigned passes = 1; passes <= 10; passes += 9) {
		restart("Ca 1 \"host\"\n[1] \"s\"[1]\nSwitch 200 \"s\"\n");
		mad_rpc_set_retries(port, 1);
		add_oddity((struct oddity){.node = "s", .passes = passes, .drop = true});
		assert_int_equal(discover(NULL), 2);
		expect_problems(
			passes == 1 ? "(0x0000000000200000): NodeDescription: no response, "
				      "203 requests in all"
				    : "s port 7: PortInfo: no response, 194 requests in all");
		assert_int_equal(mad_fabric_get_problem(fabric, 0)->guid, guid_of("s"));
		assert_in_range(asked("s", IB_ATTR_PORT_INFO), 1, 50);
		assert_int_equal(port_of("s", 200)->error, -ETIMEDOUT);
		assert_int_equal(port_of("s", 0)->error, passes == 1 ? -ETIMEDOUT : 0);
		assert_ptr_equal(port_of("host", 1)->peer, port_of("s", 1));
	}
}

TEST(a_port_that_is_refused_is_a_failure_of_that_port)
{
	add_oddity((struct oddity){PORT_INFO("left", 4), .status = 0x1c});
	discover(NULL);
	expect_problems("left port 4: PortInfo: " INVALID);
	assert_int_equal(port_of("left", 4)->error, -EIO);
	assert_null(port_of("left", 4)->info);
	assert_non_null(port_of("left", 3)->info);
	/* a timeout after the error is the node's error */
	add_oddity((struct oddity){PORT_INFO("left", 5), .drop = true});
	discover(NULL);
	expect_problems("left port 5: PortInfo: no response, 2 requests in all");
	assert_int_equal(mad_fabric_get_problem(fabric, 0)->status, 0);
	assert_int_equal(port_of("left", 4)->error, -EIO);
}

/* An error of the local device says nothing about the node. */
TEST(a_request_that_cannot_be_sent_is_no_response_of_the_node)
{
	const struct mad_fabric_options *options =
		DISCOVERY(.read = MAD_FABRIC_READ_DEFAULT | MAD_FABRIC_READ_MLNX_EXT_PORTS);
	unsigned requests;

	restart(FDR10_SWITCH);
	discover(options);
	requests = net.asked_count;
	for (unsigned n = 1; n <= requests; n++) {
		const struct mad_fabric_problem *problem;
		char text[MAD_FABRIC_PROBLEM_TEXT_SIZE];

		machine_fail(MACHINE_WRITE, n, EIO);
		assert_int_equal(try_discovery(options), n == 1 ? -EIO : 0);
		if (n == 1)
			continue;
		problem = mad_fabric_get_problem(fabric, 0);
		assert_non_null(problem);
		assert_int_equal(problem->error, -EIO);
		assert_int_equal(problem->status, 0);
		assert_non_null(strstr(mad_fabric_problem_text(problem, text, sizeof(text)),
				       ": Input/output error"));
	}
}

/* --- use of an earlier discovery ---------------------------------------------------- */

/* "right" is behind two ports of "left". */
static void expect_right_to_be_one_failure(void)
{
	assert_int_equal(fabric->node_count, 2);
	expect_problems("right behind left port 2 and 1 more: no response");
	assert_int_equal(mad_fabric_get_problem(fabric, 0)->guid, guid_of("right"));
	assert_int_equal(port_of("left", 1)->peer_error, 0);
	assert_int_equal(port_of("left", 2)->peer_error, -ETIMEDOUT);
	assert_int_equal(port_of("left", 3)->peer_error, -ETIMEDOUT);
	assert_int_equal(mad_fabric_compare(previous, fabric, NULL, NULL), 0);
}

TEST(the_name_of_a_silent_switch_is_handed_on)
{
	FILE *file = tmpfile();

	machine_rule("silent on right");
	discover(NULL);
	discover_again();
	/* it was never known: a failure for each cable */
	expect_problems("the node behind left port 2: no response; "
			"the node behind left port 3: no response");
	machine_rule("clear");
	discover_again();
	expect_problems("");
	machine_rule("silent on right");
	for (unsigned i = 0; i < 3; i++) {
		discover_again();
		expect_right_to_be_one_failure();
	}
	machine_rule("clear");
	assert_int_equal(discover_again(), 4);
	expect_problems("");
	/* also by a fabric that was loaded */
	assert_int_equal(mad_fabric_store(fabric, file, NULL), 0);
	rewind(file);
	mad_fabric_free(fabric);
	assert_int_equal(mad_fabric_load(file, &fabric, NULL), 0);
	fclose(file);
	machine_rule("silent on right");
	discover_again();
	expect_right_to_be_one_failure();
}

TEST(failures_of_several_nodes_and_of_new_ones)
{
	restart(TWO_SWITCHES "Ca 1 \"x\"\n[1] \"left\"[4]\n");
	discover(NULL);
	machine_rule("silent on right");
	machine_rule("silent on x");
	discover_again();
	expect_problems("right behind left port 2 and 1 more: no response; "
			"x behind left port 4: no response");
	/* a silent node behind a new switch has no name */
	restart(TWO_SWITCHES);
	discover(NULL);
	restart(TWO_SWITCHES "Switch 2 \"new\"\n[1] \"left\"[4]\n[2] \"x\"[1]\nCa 1 \"x\"\n");
	machine_rule("silent on x");
	assert_int_equal(discover_again(), 5);
	expect_problems("the node behind new port 2: no response");
	/* a silent node in another's place has the name of the one that was there */
	restart(TWO_SWITCHES);
	discover(NULL);
	restart("Ca 1 \"host\"\n[1] \"left\"[1]\nSwitch 5 \"left\"\n[2] \"right\"[2]\n"
		"[3] \"x\"\nSwitch 5 \"right\"\n[1] \"far\"[1]\nCa 1 \"far\"\nCa 1 \"x\"\n");
	machine_rule("silent on x");
	discover_again();
	assert_int_equal(discover_again(), 4);
	expect_problems("right behind left port 3: no response");
}

TEST(a_node_that_responds_with_an_error_may_be_another_one)
{
	discover(NULL);
	add_oddity((struct oddity){
		.node = "right", .attribute = IB_ATTR_NODE_INFO, .status = 0x1c});
	discover_again();
	expect_problems("the node behind left port 2: " INVALID "; "
			"the node behind left port 3: " INVALID);
	assert_int_equal(port_of("left", 2)->peer_error, -EIO);
	assert_int_equal(mad_fabric_compare(previous, fabric, NULL, NULL), 0);
}

/* --- inconsistent nodes --------------------------------------------------------------- */

#define WITH_TWIN TWO_SWITCHES "sysimgguid=0x100000\nCa 1 \"twin\"\n[1] \"left\"[4]\n"
#define WITH_TWIN_SWITCH \
	TWO_SWITCHES "sysimgguid=0x200001\nSwitch 5 \"twin\"\n[4] \"left\"[4]\n"
#define WITH_UNLIKE_TWIN TWO_SWITCHES "Ca 2 \"twin\"\n[2] \"left\"[4]\n"
#define WITH_LOOP        TWO_SWITCHES "Switch 3 \"s\"\n[1] \"left\"[4]\n[2] \"s\"[3]\n"

#define TWICE    "one GUID twice: 0x0000000000"
#define NO_PORTS "impossible number of ports"

static const struct contradiction {
	const char *behaviour, *topology;
	const char *odd;       /* a node, or without a field a rule */
	enum MAD_FIELDS field; /* of NodeInfo or PortInfo */
	uint64_t value;
	unsigned linked; /* ports */
	const char *problems;
} contradictions[] = {
	{"a_cable_from_a_switch_to_itself", WITH_LOOP, NULL, 0, 0, 12,
	 "s port 2 and s port 3: cable from the node to itself"},
	{"two_nodes_with_one_guid", WITH_TWIN, "clone far on twin", 0, 0, 8,
	 "behind right port 1 and behind left port 4: " TWICE "100002"},
	{"a_twin_of_the_local_node", WITH_TWIN, "clone host on twin", 0, 0, 8,
	 "behind left port 4 and behind left port 1: " TWICE "100000"},
	{"two_unlike_nodes_with_one_guid", WITH_UNLIKE_TWIN, "clone far on twin", 0, 0, 8,
	 "behind right port 1 and twin port 2: " TWICE "100002"},
	{"a_port_with_two_port_guids", WITH_TWIN_SWITCH, "twin", IB_NODE_GUID_F, 0x200001, 10,
	 "behind left port 4 and right port 4: " TWICE "200001; "
	 "left port 4 and right port 4: " ENDS_DIFFER},
	{"a_node_guid_twice_with_other_port_guids", WITH_TWIN, "twin", IB_NODE_GUID_F, 0x100000,
	 8, "behind left port 4 and behind left port 1: " TWICE "100000"},
	{"one_lid_twice", TWO_SWITCHES, "far", IB_PORT_LID_F, 2, 8,
	 "far port 1 and left port 0: one LID twice: 2"},
	{"a_node_without_ports", TWO_SWITCHES, "far", IB_NODE_NPORTS_F, 0, 6,
	 "far, behind right port 1: " NO_PORTS "; far, behind right port 1: " NO_PORTS},
	{"a_first_node_without_ports", TWO_SWITCHES, "host", IB_NODE_NPORTS_F, 0, 0,
	 "host: " NO_PORTS},
	{"a_local_port_beyond_the_count", TWO_SWITCHES, "far", IB_NODE_LOCAL_PORT_F, 9, 6,
	 "far, behind right port 1: " NO_PORTS},
	{"a_first_local_port_beyond_the_count", TWO_SWITCHES, "host", IB_NODE_LOCAL_PORT_F, 9,
	 0, "host: " NO_PORTS},
	{"an_unknown_type", TWO_SWITCHES, "far", IB_NODE_TYPE_F, 200, 8,
	 "far, behind right port 1: neither CA, switch nor router"},
	{"ends_that_differ", TWO_SWITCHES, "far", IB_PORT_NEIGHBOR_MTU_F, 2, 8,
	 "right port 1 and far port 1: " ENDS_DIFFER},
	/* two cables to port 3 of "right" */
	{"peers_that_disagree", TWO_SWITCHES, "right", IB_NODE_LOCAL_PORT_F, 3, 6,
	 "behind left port 3 and behind left port 2: " TWICE "200001; "
	 "behind right port 2 and behind right port 3: " TWICE "200000"},
};

static void discover_contradiction(const void *test_row)
{
	const struct contradiction *row = test_row;
	bool of_port = row->field == IB_PORT_LID_F || row->field == IB_PORT_NEIGHBOR_MTU_F;
	const struct mad_fabric_port *each = NULL;
	unsigned linked = 0;

	restart(row->topology);
	if (row->field)
		set_field(row->odd, of_port ? IB_ATTR_PORT_INFO : IB_ATTR_NODE_INFO, row->field,
			  row->value);
	else if (row->odd)
		machine_rule("%s", row->odd);
	discover(NULL);
	expect_problems(row->problems);
	while ((each = mad_fabric_next_port(fabric, each)))
		linked += each->peer && each->peer->peer == each;
	assert_int_equal(linked, row->linked);
	/* a twin changes no PortGUID of the first one */
	if (linked)
		assert_int_equal(fabric->origin->guid, machine_guid("host"));
	else
		assert_null(fabric->origin);
}

TEST_ROWS(discover_contradiction, contradictions);

TEST(a_chain_is_followed_for_63_hops)
{
	append("Ca 1 \"host\"\n[1] \"s0\"[1]\nSwitch 2 \"s70\"\n");
	for (unsigned i = 0; i < 70; i++)
		append("Switch 2 \"s%u\"\n[2] \"s%u\"[1]\n", i, i + 1);
	restart(drafted());
	assert_int_equal(discover(NULL), 64);
	expect_problems("s62 port 2: the fabric goes on, beyond 63 hops");
}

/* Each NodeInfo of two switches has another GUID. */
TEST(a_fabric_without_end_is_bounded)
{
	for (unsigned links = 2; links <= 254; links += 252) {
		struct oddity lie = {.attribute = IB_ATTR_NODE_INFO,
				     .field = IB_NODE_GUID_F,
				     .value = 0xa00000,
				     .counts = true};

		append("Switch %u \"left\"\nSwitch %u \"right\"\n", links, links);
		for (unsigned n = 1; n <= links; n++)
			append("[%u] \"left\"[%u]\n", n, n);
		stop();
		start_at(drafted(), "left");
		add_oddity(lie);
		discover(DISCOVERY(.max_nodes = links == 2 ? 100 : 300));
		if (links == 2)
			assert_int_equal(fabric->node_count, 100);
		else
			assert_in_range(fabric->port_count, 65536 - 254, 65536 + 16 * 300);
		/* which is told once */
		assert_int_equal(mad_fabric_get_problem(fabric, 0)->kind,
				 MAD_FABRIC_PROBLEM_TOO_MANY);
		for (size_t i = 1; i < fabric->problem_count; i++)
			assert_int_not_equal(mad_fabric_get_problem(fabric, i)->kind,
					     MAD_FABRIC_PROBLEM_TOO_MANY);
	}
}

/* --- on an engine -------------------------------------------------------------------- */

static struct mad_async *engine;
static uint64_t id;
static struct {
	int calls, error;
	struct mad_failure failure;
} result;

static void note(struct mad_async *async, int error, struct mad_fabric *found, void *arg)
{
	(void)async;
	assert_ptr_equal(arg, &result);
	result.calls++;
	result.error = error;
	mad_fabric_free(fabric);
	fabric = found;
	if (error)
		result.failure = *mad_last_failure();
}

static void submit(const struct mad_fabric_options *options)
{
	memset(&result, 0, sizeof(result));
	engine = mad_async_create(port);
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

static void note_truth(struct mad_async *async, int error, struct mad_fabric *found, void *arg)
{
	note(async, error, found, arg);
	expect_truth(0);
}

TEST(discoveries_on_an_engine_call_back_once)
{
	submit(NULL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(mad_fabric_submit(engine, NULL, note_truth, &result, NULL), 0);
	mad_async_wait(engine, -1);
	assert_int_equal(result.calls, 4);
	mad_async_free(engine);
	add_oddity((struct oddity){
		.node = "host", .attribute = IB_ATTR_NODE_INFO, .status = 0x1c});
	submit(NULL);
	finish(-EIO);
	assert_null(fabric);
	assert_int_equal(result.failure.error, -EIO);
	assert_int_equal(result.failure.status, 0x1c);
	assert_int_equal(result.failure.attribute, IB_ATTR_NODE_INFO);
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
	/* before anything was sent */
	submit(NULL);
	assert_int_equal(mad_async_cancel(engine, id), 0);
	assert_int_equal(mad_async_cancel(engine, id), -ENOENT);
	finish(-ECANCELED);
	assert_int_equal(result.failure.error, -ECANCELED);
	assert_int_equal(net.asked_count, 0);
	/* with requests in flight */
	machine_rule("slow 1s");
	submit(NULL);
	mad_async_process(engine);
	assert_int_equal(mad_async_cancel(engine, MAD_ASYNC_ALL), 0);
	finish(-ECANCELED);
	/* in its progress */
	submit(DISCOVERY(.progress = cancel_it));
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
	for (unsigned number = 1; number <= 4; number++)
		assert_int_equal(port_of("left", number)->peer_error,
				 number == 2 || number == 3 ? error : 0);
	assert_int_equal(fabric->problem_count, 2);
	assert_int_equal(mad_fabric_get_problem(fabric, 0)->error, error);
	assert_ptr_equal(mad_fabric_get_problem(fabric, 0)->port, port_of("left", 2));
}

static void be_patient(void)
{
	machine_rule("silent on right");
	mad_rpc_set_timeout(port, LONG_MS);
}

static struct mad_cancel cancel;

static void *cancel_soon(void *arg)
{
	machine_pass(60000);
	if (arg == &cancel)
		mad_cancel_set(&cancel);
	else if (mad_async_cancel(engine, id) || mad_async_cancel(engine, id) != -ENOENT)
		return NULL;
	return arg;
}

TEST(another_thread_cancels_a_discovery_by_its_number)
{
	pthread_t thread;
	void *ok;

	be_patient();
	submit(DISCOVERY(.partial = true));
	assert_int_equal(pthread_create(&thread, NULL, cancel_soon, &result), 0);
	finish(-ECANCELED);
	pthread_join(thread, &ok);
	assert_non_null(ok);
	assert_true(machine_us() < LONG_MS * 500);
	expect_part(-ECANCELED);
}

static struct other {
	uint64_t id;
	int error;
} others[2];

/* Cancels the other one, which has reached its time limit, too, but was not called back. */
static void cancel_other(struct mad_async *async, int error, struct mad_fabric *found,
			 void *arg)
{
	struct other *this = arg, *other = &others[this == others];

	mad_fabric_free(found);
	this->error = error;
	if (!other->error)
		assert_int_equal(mad_async_cancel(async, other->id), 0);
}

TEST(a_cancel_that_succeeds_is_the_error_also_after_the_time_limit)
{
	be_patient();
	engine = mad_async_create(port);
	for (struct other *each = others; each < others + 2; each++)
		assert_int_equal(mad_fabric_submit(engine, DISCOVERY(.time_limit_ms = 100),
						   cancel_other, each, &each->id),
				 0);
	mad_async_wait(engine, -1);
	assert_int_equal(others[0].error + others[1].error, -ETIME + -ECANCELED);
	mad_async_free(engine);
}

#define SUBMITTERS 4

static atomic_int unfinished;

static void count_end(struct mad_async *async, int error, struct mad_fabric *found, void *arg)
{
	(void)async, (void)error, (void)arg;
	mad_fabric_free(found);
	unfinished--;
}

static void *submit_until_refused(void *arg)
{
	for (int i = 0; i < 10 && !mad_fabric_submit(engine, NULL, count_end, NULL, NULL);
	     i++) {
		unfinished++;
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
		assert_int_equal(unfinished, 0);
	}
}

/* --- progress ------------------------------------------------------------------------ */

static struct mad_fabric_progress last_progress;
static unsigned progress_calls;
static int64_t progress_us, found_us;

/* Ten times a second at most, but at the end. */
static void keep_progress(const struct mad_fabric_progress *progress, void *arg)
{
	assert_ptr_equal(arg, &last_progress);
	if (progress_calls++ && progress->in_flight)
		assert_true(machine_us() - progress_us >= 100000);
	progress_us = machine_us();
	if (progress->nodes == 2 && !found_us)
		found_us = machine_us();
	last_progress = *progress;
}

TEST(progress_is_told_ten_times_a_second_at_most)
{
	struct mad_fabric_options options = {.progress = keep_progress,
					     .progress_arg = &last_progress};

	add_oddity((struct oddity){PORT_INFO("left", 4), .status = 0x1c});
	machine_rule("slow 40ms");
	discover(&options);
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
	progress_calls = 0;
	found_us = 0;
	options.time_limit_ms = 2000;
	assert_int_equal(try_discovery(&options), -ETIME);
	assert_true(found_us && machine_us() - found_us > 1000000);
}

/* --- time limit, cancel, and the local port ------------------------------------------- */

static void end_early(const struct mad_fabric_options *options, int error, const char *text)
{
	char failure[MAD_ERROR_TEXT_SIZE];
	int64_t begin = machine_us();

	be_patient();
	assert_int_equal(try_discovery(options), error);
	assert_true(machine_us() - begin < LONG_MS * 500);
	assert_string_equal(mad_failure_text(NULL, failure, sizeof(failure)), text);
}

TEST(a_discovery_has_a_time_limit)
{
	const struct mad_fabric_options *part =
		DISCOVERY(.time_limit_ms = 1000, .partial = true);

	end_early(part, -ETIME, "the time limit is over");
	assert_in_range(machine_us(), 1000000, 1100000);
	expect_part(-ETIME);
	end_early(DISCOVERY(.time_limit_ms = 1000), -ETIME, "the time limit is over");
	assert_null(fabric);
	/* a local port that does not respond to a second PortInfo holds nothing up */
	add_oddity((struct oddity){
		.node = "host", .attribute = IB_ATTR_PORT_INFO, .passes = 1, .drop = true});
	end_early(part, -ETIME, "the time limit is over");
	expect_part(-ETIME);
	/* without a first node there is no part */
	machine_rule("silent on host");
	end_early(part, -ETIME, "the time limit is over");
	assert_null(fabric);
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

	assert_int_equal(pthread_create(&thread, NULL, cancel_soon, &cancel), 0);
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
	stop();
	start_at(TWO_SWITCHES, "left");
	set_field("left", IB_ATTR_PORT_INFO, IB_PORT_PHYS_STATE_F, MAD_PHYSICAL_POLLING);
	net.oddities[0].only_0 = true;
	end_early(DISCOVERY(.time_limit_ms = 1500), -ETIME, "the time limit is over");
}

TEST(a_node_alone_that_is_slow_or_silent)
{
	restart(ALONE);
	mad_rpc_set_timeout(port, LONG_MS);
	machine_rule("slow 150ms");
	assert_int_equal(discover(NULL), 1);
	assert_int_equal(fabric->origin->state, MAD_PORT_DOWN);
	add_oddity((struct oddity){.attribute = IB_ATTR_NODE_INFO, .drop = true});
	assert_int_equal(try_discovery(DISCOVERY(.time_limit_ms = 600)), -ETIME);
}

TEST(a_device_that_goes_ends_a_discovery)
{
	machine_rule("slow 1ms");
	machine_rule("after 2500us remove on host");
	end_early(DISCOVERY(.partial = true), -ENODEV, "the device is gone");
	assert_int_equal(find("host")->index, 0);
	/* and no other one begins */
	assert_int_equal(try_discovery(NULL), -ENODEV);
	assert_int_equal(mad_last_failure()->error, -ENODEV);
}

/* Of the changes from the whole fabric to a part of it, others would be wrong. */
static int is_certain(const struct mad_fabric_difference *difference, void *arg)
{
	(void)arg;
	assert_true(difference->before_node && difference->after_node);
	return 0;
}

/* Wherever the discovery ends, what is missing has an error. */
static void expect_parts(const char *topology, unsigned read)
{
	const struct mad_fabric_options options = {.read = read, .partial = true};
	int error = -ENETDOWN;
	unsigned parts = 0;

	restart(topology);
	discover(&options);
	keep_fabric();
	for (unsigned n = 1; error; n++) {
		const struct mad_fabric_port *each = NULL;

		machine_fail(MACHINE_WRITE, n, ENETUNREACH);
		error = try_discovery(&options);
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
	const ib_portid_t from[] = {{.drpath = {.cnt = 64}},
				    {.drpath = {.cnt = -1}},
				    {.lid = 5},
				    {.lid = 5, .drpath = {.drslid = 0xffff}},
				    {.lid = 0xc000, .drpath = {.drslid = 1}},
				    {.lid = -1, .drpath = {.drslid = 1}}};
	const struct mad_cancel odd = {.reserved = {[2] = 1}}, unset = {0};
	const struct mad_fabric_options wrong[] = {
		{.read = 32},       {.timeout_ms = -1}, {.reserved = {[3] = 1}},
		{.cancel = &odd},   {.from = &from[0]}, {.from = &from[1]},
		{.from = &from[2]}, {.from = &from[3]}, {.from = &from[4]},
		{.from = &from[5]}, {.cancel = &unset}};
	int classes[] = {IB_PERFORMANCE_CLASS};
	struct ibmad_port *other = mad_rpc_open_port(NULL, 0, classes, 1);

	engine = mad_async_create(port);
	/* mad_async_cancel() cancels a discovery on an engine */
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		if (mad_fabric_submit(engine, &wrong[i], note, NULL, NULL) != -EINVAL ||
		    (!wrong[i].cancel && try_discovery(&wrong[i]) != -EINVAL))
			fail_msg("options %zu are not refused", i);
	assert_int_equal(mad_last_failure()->error, -EINVAL);
	assert_int_equal(try_discovery(&wrong[3]), -EINVAL);
	assert_int_equal(mad_fabric_submit(NULL, NULL, note, NULL, NULL), -EINVAL);
	assert_int_equal(mad_fabric_submit(engine, NULL, NULL, NULL, NULL), -EINVAL);
	assert_int_equal(mad_fabric_discover(port, NULL, NULL), -EINVAL);
	assert_int_equal(mad_fabric_discover(NULL, NULL, &fabric), -EINVAL);
	assert_int_equal(mad_fabric_discover(other, NULL, &fabric), -EPROTONOSUPPORT);
	mad_rpc_close_port(other);
	mad_async_free(engine);
	assert_int_equal(net.asked_count, 0);
}

/* Returns the number of discoveries that failed. */
static unsigned fail_each_allocation(const struct mad_fabric_options *options)
{
	unsigned n = 0;
	int error;

	do {
		machine_fail(MACHINE_MALLOC, ++n, ENOMEM);
		error = try_discovery(options);
		assert_true(error == 0 || error == -ENOMEM);
		assert_int_equal(!error, fabric != NULL);
	} while (error);
	machine_fail(MACHINE_MALLOC, 0, 0);
	return n - 1;
}

TEST(each_allocation_of_a_discovery_may_fail)
{
	unsigned parts = 0;

	/* the discovery, its graph, blocks, tables, requests */
	assert_true(fail_each_allocation(NULL) >= 5);
	assert_int_equal(fabric->node_count, 4);
	keep_fabric();
	mad_rpc_set_timeout(port, 5);
	machine_rule("silent on right");
	fail_each_allocation(DISCOVERY(.previous = previous));
	expect_right_to_be_one_failure();
	/* without memory there is no part */
	machine_pass(1000000);
	machine_rule("clear");
	for (unsigned m = 0; m < 640; m++) {
		int error;

		machine_fail(MACHINE_WRITE, 2 + m % 16, ENETUNREACH);
		machine_fail(MACHINE_MALLOC, 1 + m / 16, ENOMEM);
		error = try_discovery(DISCOVERY(.partial = true));
		machine_fail(MACHINE_MALLOC, 0, 0);
		machine_fail(MACHINE_WRITE, 0, 0);
		assert_true(error == -ENOMEM || error == -ENETDOWN);
		assert_true(error != -ENOMEM || !fabric);
		parts += fabric != NULL;
	}
	assert_true(parts > 0);
}
