/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Discovery: of fabrics of every shape, of nodes without responses, and of nodes with wrong
 * responses.
 */

#include "fake_fabric.h"
#include "test.h"

#include <infiniband/mad_errors.h>
#include <infiniband/mad_fabric_text.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <time.h>

#define LONG_MS 60000

static struct ibmad_port *port;
static struct mad_fabric *fabric, *previous;
static const struct mad_fabric_problem *failure; /* the latest, of one_failure() */

/* What the callback got. */
static struct {
	int calls, error;
	struct mad_fabric *fabric;
	char text[MAD_ERROR_TEXT_SIZE]; /* of the failure */
} result;

static int setup_without_nodes(void)
{
	int classes[] = {IB_SMI_DIRECT_CLASS};

	if (device_setup())
		return -1;
	memset(&fake, 0, sizeof(fake));
	memset(&result, 0, sizeof(result));
	device_on_write(fake_response, NULL);
	port = mad_rpc_open_port(NULL, 0, classes, 1);
	if (!port)
		return -1;
	/* the responses of the fake fabric arrive before any timer is checked */
	mad_rpc_set_timeout(port, 20);
	mad_rpc_set_retries(port, 1);
	return 0;
}

/* Two switches with two links between them, and a host at each. */
enum {
	HOST,
	LEFT,
	RIGHT,
	FAR
};

static int setup(void)
{
	if (setup_without_nodes())
		return -1;
	fake_add(IB_NODE_CA, 1);
	fake_add(IB_NODE_SWITCH, 4);
	fake_add(IB_NODE_SWITCH, 4);
	fake_add(IB_NODE_CA, 1);
	fake_cable(HOST, 1, LEFT, 1);
	fake_cable(LEFT, 2, RIGHT, 2);
	fake_cable(LEFT, 3, RIGHT, 3);
	fake_cable(RIGHT, 1, FAR, 1);
	return 0;
}

static int teardown(void)
{
	device_fail_malloc(0);
	mad_fabric_free(fabric);
	mad_fabric_free(previous);
	mad_fabric_free(result.fabric);
	fabric = previous = NULL;
	mad_rpc_close_port(port);
	return device_teardown();
}

FIXTURE(setup, teardown);

/* Returns the number of nodes. */
static size_t discover(const struct mad_fabric_options *options)
{
	assert_int_equal(mad_fabric_discover(port, options, &fabric), 0);
	assert_non_null(fabric);
	return fabric->node_count;
}

static const struct mad_fabric_node *find(int node)
{
	return mad_fabric_find_guid(fabric, fake.nodes[node].guid);
}

static bool has(int node)
{
	return find(node) != NULL;
}

static const struct mad_fabric_port *port_of(int node, unsigned number)
{
	return mad_fabric_get_port(find(node), number);
}

static unsigned oddities(enum mad_fabric_problem_kind kind)
{
	unsigned count = 0;

	for (size_t i = 0; i < fabric->problem_count; i++)
		count += mad_fabric_get_problem(fabric, i)->kind == kind;
	return count;
}

static unsigned failures(void)
{
	return oddities(MAD_FABRIC_PROBLEM_BEHIND) + oddities(MAD_FABRIC_PROBLEM_NODE);
}

static void one_failure(void)
{
	assert_int_equal(failures(), 1);
	for (size_t i = 0; i < fabric->problem_count; i++) {
		failure = mad_fabric_get_problem(fabric, i);
		if (failure->error)
			break;
	}
}

static void expect_link(int one, unsigned one_port, int other, unsigned other_port)
{
	assert_non_null(port_of(one, one_port));
	assert_ptr_equal(port_of(one, one_port)->peer, port_of(other, other_port));
	assert_ptr_equal(port_of(other, other_port)->peer, port_of(one, one_port));
}

static void expect_nothing_wrong(void)
{
	assert_int_equal(fabric->problem_count, 0);
}

static unsigned node_infos(void)
{
	unsigned count = 0;

	for (int i = 0; i < fake.count; i++)
		count += fake.nodes[i].node_infos;
	return count;
}

/* --- what is discovered ------------------------------------------------------------- */

TEST_WITH(a_node_alone_is_a_fabric, setup_without_nodes, teardown)
{
	fake_add(IB_NODE_CA, 1);
	assert_int_equal(discover(NULL), 1);
	assert_int_equal(fabric->port_count, 1);
	assert_ptr_equal(fabric->origin, port_of(HOST, 1));
	assert_null(fabric->origin->peer);
	assert_int_equal(fabric->origin->state, MAD_PORT_DOWN);
	assert_true(fabric->origin->rate_gbps == 0);
	expect_nothing_wrong();
}

/* Longer than the discovery waits before it looks at the local port, which has no link. */
static int respond_slowly(const struct device_packet *packet, void *arg)
{
	usleep(150000);
	return fake_response(packet, arg);
}

TEST_WITH(a_node_alone_that_is_slow_is_a_fabric, setup_without_nodes, teardown)
{
	fake_add(IB_NODE_CA, 1);
	device_on_write(respond_slowly, NULL);
	assert_int_equal(discover(NULL), 1);
	expect_nothing_wrong();
}

static int keep_node_info(const struct device_packet *packet, void *arg)
{
	return packet->mad[17] == IB_ATTR_NODE_INFO ? 0 : fake_response(packet, arg);
}

TEST_WITH(a_node_alone_that_is_silent_has_the_time_limit, setup_without_nodes, teardown)
{
	const struct mad_fabric_options options = {.time_limit_ms = 600};

	fake_add(IB_NODE_CA, 1);
	device_on_write(keep_node_info, NULL);
	mad_rpc_set_timeout(port, LONG_MS);
	assert_int_equal(mad_fabric_discover(port, &options, &fabric), -ETIME);
}

TEST(a_discovery_that_succeeds_leaves_the_last_failure)
{
	fake.nodes[FAR].dead = true;
	mad_async_wait(NULL, 0);
	discover(NULL);
	assert_true(fabric->problem_count > 0);
	assert_int_equal(mad_last_failure()->error, -EINVAL);
}

TEST(all_nodes_and_links_are_found)
{
	assert_int_equal(discover(NULL), 4);
	expect_link(HOST, 1, LEFT, 1);
	expect_link(LEFT, 2, RIGHT, 2);
	expect_link(LEFT, 3, RIGHT, 3);
	expect_link(RIGHT, 1, FAR, 1);
	assert_null(port_of(LEFT, 4)->peer);
	expect_nothing_wrong();
}

TEST(nodes_are_described)
{
	const struct mad_fabric_node *node;

	fake.nodes[RIGHT].enhanced_port0 = true;
	discover(NULL);
	node = find(RIGHT);
	assert_int_equal(node->type, IB_NODE_SWITCH);
	assert_int_equal(node->port_count, 4);
	assert_int_equal(node->guid, 0x1200);
	assert_int_equal(node->system_guid, 0x12ff);
	assert_int_equal(node->vendor_id, 0x2c9);
	assert_int_equal(node->device_id, 0xd1);
	assert_int_equal(node->revision, 7);
	assert_int_equal(node->lid, 3);
	assert_true(node->enhanced_port0);
	assert_false(find(LEFT)->enhanced_port0);
	assert_string_equal(node->description, "node-2");
	assert_non_null(node->node_info);
	assert_non_null(node->switch_info);
	assert_null(find(FAR)->switch_info);
	assert_int_equal(find(FAR)->lid, 4);
	assert_int_equal(find(FAR)->route.cnt, 3);
	assert_int_equal(find(FAR)->route.p[1], 1);
	assert_int_equal(find(FAR)->route.p[3], 1);
	assert_string_equal(find(FAR)->description, "node-3");
	assert_ptr_equal(mad_fabric_find_lid(fabric, 4), port_of(FAR, 1));
	assert_ptr_equal(mad_fabric_find_lid(fabric, 3), port_of(RIGHT, 0));
	assert_ptr_equal(mad_fabric_find_port_guid(fabric, 0x1301), port_of(FAR, 1));
}

TEST(ports_are_described)
{
	const struct mad_fabric_port *end;

	discover(NULL);
	end = port_of(RIGHT, 2);
	assert_int_equal(end->state, MAD_PORT_ACTIVE);
	assert_int_equal(end->physical_state, MAD_PHYSICAL_LINK_UP);
	assert_int_equal(end->width, 4);
	assert_int_equal(end->width_possible, 4);
	/* an extended speed, which the capabilities of port 0 show */
	assert_int_equal(end->speed, MAD_SPEED_EDR);
	assert_int_equal(end->speed_possible, MAD_SPEED_EDR);
	assert_true(end->rate_gbps == 100);
	assert_int_equal(end->mtu, 4096);
	assert_int_equal(end->guid, 0x1200);
	assert_int_equal(end->lid, 0);
	assert_int_equal(end->error, 0);
	assert_non_null(end->info);
	assert_null(end->mlnx_ext_info);
	assert_int_equal(port_of(RIGHT, 0)->lid, 3);
	assert_int_equal(port_of(FAR, 1)->sm_lid, 1);
	assert_int_equal(port_of(FAR, 1)->guid, 0x1301);
	assert_int_equal(port_of(FAR, 1)->capability_mask, MAD_PORT_CAP_EXTENDED_SPEEDS);
	assert_int_equal(port_of(LEFT, 4)->width, 0);
}

TEST(a_ca_with_two_ports_in_the_subnet_has_two_links)
{
	fake.nodes[FAR].ports = 2;
	fake_cable(FAR, 2, LEFT, 4);
	discover(NULL);
	expect_link(RIGHT, 1, FAR, 1);
	expect_link(LEFT, 4, FAR, 2);
	assert_int_equal(port_of(FAR, 1)->guid, 0x1301);
	assert_int_equal(port_of(FAR, 2)->guid, 0x1302);
	assert_int_equal(fabric->node_count, 4);
}

/* The simulated port 2 is up, but SMPs of this port do not use it. */
TEST(the_second_subnet_of_the_own_ca_is_not_entered)
{
	fake.nodes[HOST].ports = 2;
	fake_cable(HOST, 2, fake_add(IB_NODE_CA, 1), 1);
	assert_int_equal(discover(NULL), 4);
	assert_int_equal(port_of(HOST, 2)->state, MAD_PORT_ACTIVE);
	assert_null(port_of(HOST, 2)->peer);
	expect_nothing_wrong();
}

TEST(a_router_is_a_node_that_leads_nowhere)
{
	fake.nodes[FAR].type = IB_NODE_ROUTER;
	fake.nodes[FAR].ports = 2;
	fake_cable(FAR, 2, fake_add(IB_NODE_SWITCH, 2), 1);
	discover(NULL);
	assert_int_equal(find(FAR)->type, IB_NODE_ROUTER);
	assert_int_equal(fabric->node_count, 4);
	expect_nothing_wrong();
}

TEST(a_node_with_an_lmc_has_several_lids)
{
	fake.nodes[FAR].lid = 8;
	fake.nodes[FAR].lmc = 2;
	discover(NULL);
	assert_int_equal(find(FAR)->lid, 8);
	assert_int_equal(find(FAR)->lmc, 2);
	assert_ptr_equal(mad_fabric_find_lid(fabric, 11), port_of(FAR, 1));
	assert_null(mad_fabric_find_lid(fabric, 12));
}

TEST_WITH(the_discovery_may_begin_at_a_switch_with_this_program, setup_without_nodes, teardown)
{
	int host;

	fake_add(IB_NODE_SWITCH, 3);
	fake.nodes[0].wrong_local_port = 0;
	host = fake_add(IB_NODE_CA, 1);
	fake_cable(0, 1, host, 1);
	assert_int_equal(discover(NULL), 2);
	expect_link(0, 1, host, 1);
}

/* --- the number of requests --------------------------------------------------------- */

TEST(nothing_is_asked_twice)
{
	unsigned ports = 0;

	discover(NULL);
	for (int i = 0; i < fake.count; i++) {
		const struct fake_node *node = &fake.nodes[i];

		assert_int_equal(node->descriptions, 1);
		assert_int_equal(node->switch_infos, node->type == IB_NODE_SWITCH);
		assert_int_equal(node->mlnx_infos, 0);
		for (unsigned number = 0; number < 256; number++) {
			assert_true(node->port_infos[number] <= 1);
			ports += node->port_infos[number];
		}
	}
	assert_int_equal(ports, fabric->port_count);
	/* one for the first node, at least one for each link, at most one for each end */
	assert_true(node_infos() >= 5 && node_infos() <= 1 + 4 + 2);
}

/* Attributes that are not requested stay unknown. */
TEST(nodes_alone_can_be_read)
{
	const struct mad_fabric_options options = {.read = MAD_FABRIC_READ_NODES};

	assert_int_equal(discover(&options), 4);
	expect_link(LEFT, 3, RIGHT, 3);
	for (int i = 0; i < fake.count; i++)
		assert_int_equal(fake.nodes[i].descriptions + fake.nodes[i].switch_infos +
					 fake.nodes[i].port_infos[1],
				 0);
	assert_string_equal(find(FAR)->description, "");
	assert_null(find(LEFT)->switch_info);
	assert_null(port_of(LEFT, 1)->info);
	assert_int_equal(port_of(LEFT, 1)->error, 0);
	assert_int_equal(port_of(LEFT, 1)->state, 0);
	/* a request through each port of each switch: two have no cable */
	assert_int_equal(fabric->problem_count, 2);
}

TEST(extended_port_infos_of_mellanox_are_read_on_demand)
{
	const struct mad_fabric_options options = {.read = MAD_FABRIC_READ_PORTS |
							   MAD_FABRIC_READ_MLNX_EXT_PORTS};

	fake.nodes[LEFT].may_be_fdr10 = fake.nodes[FAR].may_be_fdr10 = true;
	fake.nodes[FAR].no_mlnx = true;
	discover(&options);
	assert_int_equal(fake.nodes[LEFT].mlnx_infos, 3); /* the number of ports with a link */
	assert_non_null(port_of(LEFT, 1)->mlnx_ext_info);
	assert_null(port_of(LEFT, 0)->mlnx_ext_info);
	assert_null(port_of(LEFT, 4)->mlnx_ext_info);
	assert_int_equal(fake.nodes[FAR].mlnx_infos, 1);
	assert_null(port_of(FAR, 1)->mlnx_ext_info);
	/* a link with an extended speed is not FDR10 */
	assert_int_equal(fake.nodes[RIGHT].mlnx_infos, 0);
	assert_int_equal(failures(), 0);
}

/* PortInfo tells which ports have one. */
TEST(extended_port_infos_are_read_with_port_infos)
{
	const struct mad_fabric_options options = {.read = MAD_FABRIC_READ_MLNX_EXT_PORTS};

	fake.nodes[LEFT].may_be_fdr10 = true;
	discover(&options);
	assert_non_null(port_of(LEFT, 1)->info);
	assert_non_null(port_of(LEFT, 1)->mlnx_ext_info);
	assert_string_equal(find(LEFT)->description, "");
	/* no request to ports without a cable */
	assert_int_equal(failures(), 0);
}

TEST(a_node_that_drops_extended_port_infos_is_not_given_up)
{
	const struct mad_fabric_options options = {.read = MAD_FABRIC_READ_PORTS |
							   MAD_FABRIC_READ_MLNX_EXT_PORTS};

	fake.nodes[LEFT].may_be_fdr10 = fake.nodes[LEFT].drops_mlnx = true;
	fake.nodes[LEFT].ports = 24;
	for (unsigned number = 4; number <= 24; number++)
		fake_cable(LEFT, number, LEFT, number);
	discover(&options);
	for (unsigned number = 0; number <= 24; number++)
		assert_int_equal(port_of(LEFT, number)->error, 0);
	one_failure();
	assert_int_equal(failure->attribute, IB_ATTR_MLNX_EXT_PORT_INFO);
	assert_int_equal(failure->count, 24);
}

static void protect(int first, uint64_t m_key)
{
	for (int i = first; i < fake.count; i++)
		fake.nodes[i].m_key = m_key;
}

TEST(smps_have_the_m_key_of_the_port)
{
	protect(HOST, UINT64_C(0x1122334455667788));
	smp_mkey_set(port, UINT64_C(0x1122334455667788));
	discover(NULL);
	assert_int_equal(fabric->node_count, 4);
	expect_nothing_wrong();
}

TEST(the_options_may_have_another_m_key)
{
	const struct mad_fabric_options options = {.m_key = UINT64_C(0x8877665544332211),
						   .read = MAD_FABRIC_READ_DEFAULT |
							   MAD_FABRIC_READ_MLNX_EXT_PORTS};

	fake.nodes[RIGHT].may_be_fdr10 = true;
	protect(HOST, UINT64_C(0x8877665544332211));
	smp_mkey_set(port, 5);
	discover(&options);
	assert_int_equal(fabric->node_count, 4);
	assert_non_null(port_of(RIGHT, 1)->mlnx_ext_info);
	assert_int_equal(failures(), 0);
	assert_int_equal(smp_mkey_get(port), 5);
}

TEST(nodes_with_another_m_key_are_failures)
{
	protect(RIGHT, 7);
	smp_mkey_set(port, 5);
	discover(NULL);
	assert_int_equal(fabric->node_count, 2);
	assert_int_equal(fabric->problem_count, 2);
	assert_int_equal(port_of(LEFT, 2)->peer_error, -ETIMEDOUT);
}

TEST(hops_can_be_limited)
{
	struct mad_fabric_options options = {.max_hops = 1};

	assert_int_equal(discover(&options), 2);
	mad_fabric_free(fabric);
	options.max_hops = 2;
	assert_int_equal(discover(&options), 3);
	assert_null(port_of(RIGHT, 1)->peer);
}

TEST(a_discovery_can_begin_elsewhere)
{
	ib_portid_t from = {.drpath = {.cnt = 2, .p = {0, 1, 2}}};
	struct mad_fabric_options options = {.from = &from, .max_hops = 1};

	assert_int_equal(discover(&options), 3);
	assert_false(has(HOST));
	assert_ptr_equal(mad_fabric_get_node(fabric, 0), find(RIGHT));
	assert_ptr_equal(fabric->origin, port_of(RIGHT, 2));
	assert_int_equal(find(FAR)->route.cnt, 3);
	expect_link(LEFT, 2, RIGHT, 2);
	expect_link(LEFT, 3, RIGHT, 3);
}

/* The CA of another node forwards nothing (IBA 14.2.2). */
TEST(a_discovery_that_begins_at_a_host_ends_there)
{
	ib_portid_t from = {.drpath = {.cnt = 3, .p = {0, 1, 2, 1}}};
	struct mad_fabric_options options = {.from = &from};

	assert_int_equal(discover(&options), 1);
	assert_int_equal(fabric->problem_count, 0);
}

/* --- nodes that do not respond -------------------------------------------------------- */

TEST_WITH(a_first_node_that_does_not_respond_is_an_error, setup_without_nodes, teardown)
{
	fake_add(IB_NODE_CA, 1);
	fake.nodes[HOST].dead = true;
	assert_int_equal(mad_fabric_discover(port, NULL, &fabric), -ETIMEDOUT);
	assert_null(fabric);
}

TEST(a_dead_node_is_one_failure_with_its_neighbour)
{
	fake.nodes[FAR].dead = true;
	assert_int_equal(discover(NULL), 3);
	one_failure();
	assert_ptr_equal(failure->port, port_of(RIGHT, 1));
	assert_int_equal(failure->kind, MAD_FABRIC_PROBLEM_BEHIND);
	assert_int_equal(failure->attribute, IB_ATTR_NODE_INFO);
	assert_int_equal(failure->error, -ETIMEDOUT);
	assert_int_equal(failure->count, 1);
	assert_int_equal(fabric->problem_count, 1);
}

TEST(a_node_that_responds_once_is_not_asked_for_all_its_ports)
{
	unsigned asked = 0;

	fake.nodes[FAR].type = IB_NODE_SWITCH;
	fake.nodes[FAR].ports = 200;
	fake.nodes[FAR].responses = 1;
	assert_int_equal(discover(NULL), 4);
	one_failure();
	assert_ptr_equal(failure->node, find(FAR));
	assert_int_equal(failure->guid, fake.nodes[FAR].guid);
	assert_string_equal(failure->description, "");
	/* the first of several requests to time out is random */
	assert_int_not_equal(failure->attribute, IB_ATTR_NODE_INFO);
	assert_int_equal(failure->count, 1 + 1 + 201);
	assert_int_equal(failure->error, -ETIMEDOUT);
	for (unsigned number = 0; number < 256; number++)
		asked += fake.nodes[FAR].port_infos[number];
	assert_true(asked < 16);
	assert_int_equal(port_of(FAR, 0)->error, -ETIMEDOUT);
	assert_int_equal(port_of(FAR, 200)->error, -ETIMEDOUT);
	expect_link(RIGHT, 1, FAR, 1);
}

TEST(a_node_that_falls_silent_is_given_up)
{
	unsigned asked = 0;

	fake.nodes[FAR].type = IB_NODE_SWITCH;
	fake.nodes[FAR].ports = 200;
	fake.nodes[FAR].responses = 10;
	discover(NULL);
	one_failure();
	for (unsigned number = 0; number < 256; number++)
		asked += fake.nodes[FAR].port_infos[number];
	/* those in flight, others in the place of each that was late, and probes */
	assert_in_range(asked, 7, 50);
	assert_non_null(port_of(FAR, 1)->info);
	assert_int_equal(port_of(FAR, 200)->error, -ETIMEDOUT);
	assert_int_equal(failure->count, 201 - 7);
}

TEST(a_port_that_is_refused_is_a_failure_of_that_port)
{
	fake.nodes[LEFT].refused_port = 4;
	assert_int_equal(discover(NULL), 4);
	assert_int_equal(port_of(LEFT, 4)->error, -EIO);
	assert_null(port_of(LEFT, 4)->info);
	assert_non_null(port_of(LEFT, 3)->info);
	one_failure();
	assert_ptr_equal(failure->node, find(LEFT));
	assert_int_equal(failure->modifier, 4);
	assert_int_equal(failure->status, 0x1c);
	assert_int_equal(failure->count, 1);
}

TEST(a_node_that_falls_silent_after_an_error_is_a_timeout)
{
	fake.nodes[FAR].type = IB_NODE_SWITCH;
	fake.nodes[FAR].ports = 40;
	fake.nodes[FAR].refused_port = 4;
	fake.nodes[FAR].dead_from_port = 6;
	discover(NULL);
	assert_int_equal(port_of(FAR, 4)->error, -EIO);
	assert_int_equal(port_of(FAR, 40)->error, -ETIMEDOUT);
	one_failure();
	assert_int_equal(failure->error, -ETIMEDOUT);
	assert_true(failure->modifier >= 6); /* the first request to time out is random */
	assert_int_equal(failure->status, 0);
	assert_int_equal(failure->count, 1 + 35);
}

/* --- use of an earlier discovery -------------------------------------------------------- */

/* Discovers again; the fabric then becomes the previous one. */
static void discover_again(void)
{
	mad_fabric_free(previous);
	previous = fabric;
	fabric = NULL;
	discover(&(struct mad_fabric_options){.previous = previous});
}

/* RIGHT is behind two ports of LEFT. */
static void expect_right_to_be_one_failure(void)
{
	assert_int_equal(fabric->node_count, 2);
	one_failure();
	assert_int_equal(failure->guid, fake.nodes[RIGHT].guid);
	assert_string_equal(failure->description, "node-2");
	assert_int_equal(failure->count, 2);
	assert_int_equal(failure->error, -ETIMEDOUT);
	assert_int_equal(failure->attribute, IB_ATTR_NODE_INFO);
	assert_int_equal(failure->kind, MAD_FABRIC_PROBLEM_BEHIND);
	assert_ptr_equal(failure->port, port_of(LEFT, 2));
	assert_ptr_equal(failure->node, find(LEFT));
	assert_int_equal(port_of(LEFT, 1)->peer_error, 0);
	assert_int_equal(port_of(LEFT, 2)->peer_error, -ETIMEDOUT);
	assert_int_equal(port_of(LEFT, 3)->peer_error, -ETIMEDOUT);
	assert_int_equal(mad_fabric_compare(previous, fabric, NULL, NULL), 0);
}

TEST(a_dead_switch_that_was_never_known_is_a_failure_for_each_cable)
{
	fake.nodes[RIGHT].dead = true;
	discover(NULL);
	discover_again();
	assert_int_equal(fabric->problem_count, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(mad_fabric_get_problem(fabric, i)->guid, 0);
		assert_string_equal(mad_fabric_get_problem(fabric, i)->description, "");
		assert_int_equal(mad_fabric_get_problem(fabric, i)->count, 1);
	}
	assert_int_equal(port_of(LEFT, 3)->peer_error, -ETIMEDOUT);
}

TEST(the_name_of_a_dead_switch_is_handed_on)
{
	discover(NULL);
	fake.nodes[RIGHT].dead = true;
	for (unsigned i = 0; i < 3; i++) {
		discover_again();
		expect_right_to_be_one_failure();
	}
	fake.nodes[RIGHT].dead = false;
	discover_again();
	assert_int_equal(fabric->node_count, 4);
	expect_nothing_wrong();
}

TEST(a_fabric_that_was_loaded_tells_who_has_died)
{
	FILE *file = tmpfile();

	assert_non_null(file);
	discover(NULL);
	assert_int_equal(mad_fabric_store(fabric, file, NULL), 0);
	rewind(file);
	mad_fabric_free(fabric);
	assert_int_equal(mad_fabric_load(file, &fabric, NULL), 0);
	fclose(file);
	fake.nodes[RIGHT].dead = true;
	discover_again();
	expect_right_to_be_one_failure();
}

TEST(two_dead_nodes_are_two_failures)
{
	size_t first;

	fake_cable(LEFT, 4, fake_add(IB_NODE_CA, 1), 1);
	discover(NULL);
	fake.nodes[RIGHT].dead = fake.nodes[FAR + 1].dead = true;
	discover_again();
	assert_int_equal(fabric->problem_count, 2);
	/* the node whose requests time out first is random */
	first = mad_fabric_get_problem(fabric, 0)->guid == fake.nodes[RIGHT].guid ? 0 : 1;
	assert_int_equal(mad_fabric_get_problem(fabric, first)->guid, fake.nodes[RIGHT].guid);
	assert_int_equal(mad_fabric_get_problem(fabric, first)->count, 2);
	assert_int_equal(mad_fabric_get_problem(fabric, !first)->guid,
			 fake.nodes[FAR + 1].guid);
	assert_int_equal(mad_fabric_get_problem(fabric, !first)->count, 1);
}

TEST(a_failure_names_who_was_there_even_if_that_node_responds_elsewhere)
{
	discover(NULL);
	/* another node is there now, and does not respond */
	fake_cable(LEFT, 3, fake_add(IB_NODE_CA, 1), 1);
	fake.nodes[FAR + 1].dead = true;
	discover_again();
	discover_again();
	assert_int_equal(fabric->node_count, 4);
	one_failure();
	assert_int_equal(failure->guid, fake.nodes[RIGHT].guid);
	assert_ptr_equal(failure->port, port_of(LEFT, 3));
}

/* The earlier discovery does not know who was there. */
TEST(a_dead_node_behind_a_new_switch_has_no_name)
{
	int added, dead;

	discover(NULL);
	added = fake_add(IB_NODE_SWITCH, 2);
	dead = fake_add(IB_NODE_CA, 1);
	fake_cable(LEFT, 4, added, 1);
	fake_cable(added, 2, dead, 1);
	fake.nodes[dead].dead = true;
	discover_again();
	assert_int_equal(fabric->node_count, 5);
	one_failure();
	assert_ptr_equal(failure->port, port_of(added, 2));
	assert_int_equal(failure->guid, 0);
	assert_string_equal(failure->description, "");
}

TEST(a_node_that_responds_with_an_error_may_be_another_one)
{
	discover(NULL);
	fake.nodes[RIGHT].node_info_status = 0x1c;
	discover_again();
	assert_int_equal(fabric->problem_count, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(mad_fabric_get_problem(fabric, i)->error, -EIO);
		assert_int_equal(mad_fabric_get_problem(fabric, i)->guid, 0);
	}
	assert_int_equal(port_of(LEFT, 2)->peer_error, -EIO);
	assert_int_equal(mad_fabric_compare(previous, fabric, NULL, NULL), 0);
}

/* --- inconsistent nodes --------------------------------------------------------------- */

TEST(a_cable_from_a_node_to_itself_is_a_link)
{
	fake.nodes[FAR].type = IB_NODE_SWITCH;
	fake.nodes[FAR].ports = 5;
	fake_cable(FAR, 2, FAR, 3);
	fake_cable(FAR, 4, FAR, 4);
	assert_int_equal(discover(NULL), 4);
	expect_link(FAR, 2, FAR, 3);
	expect_link(FAR, 4, FAR, 4);
	assert_int_equal(oddities(MAD_FABRIC_PROBLEM_LOOP), 2);
	assert_int_equal(fabric->problem_count, 2);
}

/* A node with the GUID of another one, with a cable from its port to LEFT. */
static struct fake_node *add_twin(int of, unsigned type, unsigned ports, unsigned port_number)
{
	int twin = fake_add(type, ports);

	fake.nodes[twin].guid = fake.nodes[of].guid;
	fake_cable(LEFT, 4, twin, port_number);
	return &fake.nodes[twin];
}

TEST(two_nodes_with_one_guid_are_odd)
{
	const struct mad_fabric_problem *oddity;

	add_twin(FAR, IB_NODE_CA, 1, 1)->port_guid = fake.nodes[FAR].port_guid;
	assert_int_equal(discover(NULL), 4);
	assert_int_equal(oddities(MAD_FABRIC_PROBLEM_GUID), 1);
	oddity = mad_fabric_get_problem(fabric, 0);
	assert_true(
		(oddity->port == port_of(LEFT, 4) && oddity->other_port == port_of(RIGHT, 1)) ||
		(oddity->other_port == port_of(LEFT, 4) && oddity->port == port_of(RIGHT, 1)));
}

TEST(a_twin_does_not_change_the_port_guid_of_a_node)
{
	uint64_t guid = add_twin(HOST, IB_NODE_CA, 1, 1)->port_guid;

	discover(NULL);
	assert_int_equal(port_of(HOST, 1)->guid, fake.nodes[HOST].port_guid);
	assert_null(mad_fabric_find_port_guid(fabric, guid));
	assert_int_equal(oddities(MAD_FABRIC_PROBLEM_GUID), 1);
}

/* Port 4 of the twin; the node that was found first has this port free. */
TEST(a_port_with_two_port_guids_is_odd)
{
	add_twin(RIGHT, IB_NODE_SWITCH, 4, 4)->switch_port_guid = 0xbad;
	discover(NULL);
	assert_int_equal(oddities(MAD_FABRIC_PROBLEM_GUID), 1);
	assert_int_equal(port_of(RIGHT, 4)->guid, fake.nodes[RIGHT].guid);
}

TEST(two_unlike_nodes_with_one_guid_are_odd)
{
	add_twin(FAR, IB_NODE_CA, 2, 2);
	assert_int_equal(discover(NULL), 4);
	assert_int_equal(oddities(MAD_FABRIC_PROBLEM_GUID), 1);
}

TEST(one_lid_twice_is_odd)
{
	fake.nodes[FAR].lid = fake.nodes[LEFT].lid;
	discover(NULL);
	assert_int_equal(oddities(MAD_FABRIC_PROBLEM_LID), 1);
}

TEST(peers_that_disagree_are_odd)
{
	/* each port of RIGHT has local port number 3: of two cables to it, one counts */
	fake.nodes[RIGHT].wrong_local_port = 3;
	discover(NULL);
	assert_true(oddities(MAD_FABRIC_PROBLEM_GUID) + oddities(MAD_FABRIC_PROBLEM_PEER) >= 1);
	assert_int_equal(fabric->node_count, 4);
}

TEST(a_node_without_ports_is_odd)
{
	fake.nodes[FAR].ports = 0;
	discover(NULL);
	assert_int_equal(find(FAR)->port_count, 0);
	assert_null(port_of(FAR, 1));
	assert_null(port_of(RIGHT, 1)->peer);
	assert_true(oddities(MAD_FABRIC_PROBLEM_PORT_COUNT) >= 1);
}

TEST_WITH(a_first_node_without_ports_has_no_origin, setup_without_nodes, teardown)
{
	fake_add(IB_NODE_CA, 0);
	assert_int_equal(discover(NULL), 1);
	assert_null(fabric->origin);
	assert_int_equal(oddities(MAD_FABRIC_PROBLEM_PORT_COUNT), 1);
}

TEST(a_node_with_255_ports_is_read)
{
	fake.nodes[FAR].type = IB_NODE_SWITCH;
	fake.nodes[FAR].ports = 255;
	discover(NULL);
	assert_non_null(port_of(FAR, 255)->info);
	expect_nothing_wrong();
}

TEST(a_local_port_beyond_the_count_is_odd)
{
	fake.nodes[FAR].wrong_local_port = 9;
	discover(NULL);
	assert_int_equal(oddities(MAD_FABRIC_PROBLEM_PORT_COUNT), 1);
	assert_true(has(FAR));
	assert_null(port_of(RIGHT, 1)->peer);
}

TEST(a_local_port_of_the_first_node_beyond_the_count_is_odd)
{
	fake.nodes[HOST].wrong_local_port = 9;
	discover(NULL);
	assert_null(fabric->origin);
	assert_int_equal(fabric->problem_count, 1);
	assert_int_equal(mad_fabric_get_problem(fabric, 0)->kind,
			 MAD_FABRIC_PROBLEM_PORT_COUNT);
	assert_ptr_equal(mad_fabric_get_problem(fabric, 0)->node, find(HOST));
}

TEST(an_unknown_type_of_node_is_odd)
{
	fake.nodes[FAR].type = 200;
	discover(NULL);
	assert_int_equal(find(FAR)->type, 200);
	assert_int_equal(oddities(MAD_FABRIC_PROBLEM_NODE_TYPE), 1);
	expect_link(RIGHT, 1, FAR, 1);
}

TEST_WITH(a_chain_is_followed_for_63_hops, setup_without_nodes, teardown)
{
	int last = fake_add(IB_NODE_CA, 1);

	for (int i = 0; i < 70; i++) {
		int next = fake_add(IB_NODE_SWITCH, 2);

		fake_cable(last, i ? 2 : 1, next, 1);
		last = next;
	}
	assert_int_equal(discover(NULL), 64);
	assert_int_equal(oddities(MAD_FABRIC_PROBLEM_ROUTE_TOO_LONG), 1);
	assert_int_equal(fabric->problem_count, 1);
}

TEST(a_fabric_without_end_is_bounded)
{
	const struct mad_fabric_options options = {.max_nodes = 100};

	fake.liar = true;
	assert_int_equal(discover(&options), 100);
	assert_int_equal(oddities(MAD_FABRIC_PROBLEM_TOO_MANY), 1);
}

TEST(ports_without_end_are_bounded)
{
	const struct mad_fabric_options options = {.max_nodes = 300,
						   .read = MAD_FABRIC_READ_NODES};

	device_forget_packets();
	fake.nodes[LEFT].ports = fake.nodes[RIGHT].ports = 255;
	for (unsigned number = 2; number < 256; number++)
		fake_cable(LEFT, number, RIGHT, number);
	fake_cable(RIGHT, 1, LEFT, 1);
	fake_cable(LEFT, 1, HOST, 1);
	fake.liar = true;
	discover(&options);
	assert_true(fabric->port_count > 65536);
	assert_true(fabric->port_count <= 65536 + 16 * 300);
	assert_true(fabric->node_count < 300);
	assert_int_equal(oddities(MAD_FABRIC_PROBLEM_TOO_MANY), 1);
}

/* --- calls ------------------------------------------------------------------------------ */

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* HOST and LEFT are known; behind two ports of LEFT a node is not. */
static void expect_part(int error)
{
	assert_non_null(fabric);
	assert_int_equal(fabric->node_count, 2);
	expect_link(HOST, 1, LEFT, 1);
	for (unsigned number = 2; number <= 3; number++) {
		assert_null(port_of(LEFT, number)->peer);
		assert_int_equal(port_of(LEFT, number)->peer_error, error);
	}
	assert_int_equal(port_of(LEFT, 4)->peer_error, 0);
	assert_int_equal(fabric->problem_count, 2);
	assert_int_equal(mad_fabric_get_problem(fabric, 0)->error, error);
	assert_ptr_equal(mad_fabric_get_problem(fabric, 0)->port, port_of(LEFT, 2));
}

static void note(struct mad_async *async, int error, struct mad_fabric *found, void *arg)
{
	(void)async;
	assert_ptr_equal(arg, &result);
	result.calls++;
	result.error = error;
	result.fabric = found;
	if (error)
		mad_failure_text(NULL, result.text, sizeof(result.text));
}

static void expect_result(int error)
{
	assert_int_equal(result.calls, 1);
	assert_int_equal(result.error, error);
	assert_true(!error == (result.fabric != NULL));
}

TEST(a_discovery_on_an_engine_calls_back_once)
{
	struct mad_async *async = mad_async_create(port);

	assert_int_equal(mad_fabric_submit(async, NULL, note, &result, NULL), 0);
	assert_int_equal(result.calls, 0);
	mad_async_wait(async, -1);
	expect_result(0);
	assert_int_equal(result.fabric->node_count, 4);
	mad_async_free(async);
}

TEST(a_discovery_can_be_cancelled_before_anything_was_sent)
{
	struct mad_async *async = mad_async_create(port);
	uint64_t id;

	assert_int_equal(mad_fabric_submit(async, NULL, note, &result, &id), 0);
	assert_int_equal(mad_async_cancel(async, id), 0);
	assert_int_equal(mad_async_cancel(async, id), -ENOENT);
	assert_int_equal(result.calls, 0);
	mad_async_wait(async, -1);
	expect_result(-ECANCELED);
	assert_string_equal(result.text, "cancelled");
	assert_int_equal(fake.asked, 0);
	assert_int_equal(mad_async_cancel(async, id), -ENOENT);
	mad_async_free(async);
}

TEST(a_discovery_is_cancelled_with_all_that_is_in_flight)
{
	struct mad_async *async = mad_async_create(port);

	device_on_write(NULL, NULL);
	assert_int_equal(mad_fabric_submit(async, NULL, note, &result, NULL), 0);
	mad_async_process(async);
	mad_async_cancel(async, MAD_ASYNC_ALL);
	assert_int_equal(result.calls, 0);
	mad_async_wait(async, -1);
	expect_result(-ECANCELED);
	mad_async_free(async);
}

static struct mad_async *engine;
static uint64_t to_cancel;

static void cancel_it(const struct mad_fabric_progress *progress, void *arg)
{
	(void)arg;
	assert_true(progress->in_flight > 0);
	mad_async_cancel(engine, to_cancel);
	assert_int_equal(result.calls, 0);
}

static void *cancel_from_thread(void *arg)
{
	usleep(60000);
	assert_int_equal(mad_async_cancel(arg, to_cancel), 0);
	assert_int_equal(mad_async_cancel(arg, to_cancel), -ENOENT);
	return NULL;
}

TEST(another_thread_cancels_a_discovery_by_its_number)
{
	const struct mad_fabric_options options = {.partial = true};
	int64_t begin = now_ms();
	pthread_t thread;

	engine = mad_async_create(port);
	fake.nodes[RIGHT].dead = true;
	mad_rpc_set_timeout(port, LONG_MS);
	assert_int_equal(mad_fabric_submit(engine, &options, note, &result, &to_cancel), 0);
	assert_int_equal(pthread_create(&thread, NULL, cancel_from_thread, engine), 0);
	mad_async_wait(engine, -1);
	pthread_join(thread, NULL);
	assert_true(now_ms() - begin < LONG_MS / 2);
	assert_int_equal(result.calls, 1);
	assert_int_equal(result.error, -ECANCELED);
	fabric = result.fabric;
	result.fabric = NULL;
	expect_part(-ECANCELED);
	mad_async_free(engine);
}

/* The number is gone, and a new discovery may begin. */
static void cancel_and_begin_again(struct mad_async *async, int error, struct mad_fabric *found,
				   void *arg)
{
	assert_int_equal(mad_async_cancel(async, to_cancel), -ENOENT);
	note(async, error, found, arg);
	mad_fabric_free(found);
	result.fabric = NULL;
	assert_int_equal(mad_fabric_submit(async, NULL, note, &result, &to_cancel), 0);
	assert_int_equal(mad_async_cancel(async, to_cancel), 0);
	assert_int_equal(result.calls, 1);
}

TEST(a_callback_cancels_the_next_discovery)
{
	struct mad_async *async = mad_async_create(port);

	assert_int_equal(
		mad_fabric_submit(async, NULL, cancel_and_begin_again, &result, &to_cancel), 0);
	mad_async_wait(async, -1);
	assert_int_equal(result.calls, 2);
	assert_int_equal(result.error, -ECANCELED);
	mad_async_free(async);
}

TEST(a_callback_has_the_failure_in_words)
{
	struct mad_async *async = mad_async_create(port);

	fake.nodes[HOST].node_info_status = 0x1c;
	assert_int_equal(mad_fabric_submit(async, NULL, note, &result, NULL), 0);
	mad_async_wait(async, -1);
	expect_result(-EIO);
	assert_string_equal(result.text, "invalid value in the attribute or its modifier");
	assert_int_equal(mad_last_failure()->status, 0x1c);
	assert_int_equal(mad_last_failure()->attribute, IB_ATTR_NODE_INFO);
	mad_async_free(async);
}

TEST(a_device_that_is_gone_refuses_a_discovery)
{
	struct mad_async *async = mad_async_create(port);

	device_remove();
	mad_async_process(async);
	assert_int_equal(mad_fabric_submit(async, NULL, note, &result, NULL), -ENODEV);
	assert_int_equal(mad_last_failure()->error, -ENODEV);
	assert_int_equal(result.calls, 0);
	mad_async_free(async);
}

TEST(a_discovery_can_be_cancelled_in_its_progress)
{
	const struct mad_fabric_options options = {.progress = cancel_it};

	engine = mad_async_create(port);
	assert_int_equal(mad_fabric_submit(engine, &options, note, &result, &to_cancel), 0);
	mad_async_wait(engine, -1);
	expect_result(-ECANCELED);
	mad_async_free(engine);
}

TEST(destroying_the_engine_ends_a_discovery)
{
	struct mad_async *async = mad_async_create(port);

	device_on_write(NULL, NULL);
	assert_int_equal(mad_fabric_submit(async, NULL, note, &result, NULL), 0);
	mad_async_free(async);
	expect_result(-ECANCELED);
}

#define LONG_MS    60000
#define SUBMITTERS 4

static atomic_uint begun, ended;

static void count_end(struct mad_async *async, int error, struct mad_fabric *found, void *arg)
{
	(void)async, (void)error, (void)arg;
	mad_fabric_free(found);
	ended++;
}

static void *submit_until_refused(void *arg)
{
	for (int i = 0; i < 10 && !mad_fabric_submit(engine, NULL, count_end, NULL, NULL); i++)
		begun++;
	return arg;
}

/* Each discovery is refused, or called back once. */
TEST(discoveries_begin_while_another_thread_frees_the_engine)
{
	pthread_t threads[SUBMITTERS];

	for (int round = 0; round < 3000; round++) {
		begun = ended = 0;
		engine = mad_async_create(port);
		for (int i = 0; i < SUBMITTERS; i++)
			assert_int_equal(
				pthread_create(&threads[i], NULL, submit_until_refused, NULL),
				0);
		while (begun < (unsigned)round % 16)
			sched_yield();
		mad_async_free(engine);
		for (int i = 0; i < SUBMITTERS; i++)
			pthread_join(threads[i], NULL);
		assert_int_equal(ended, begun);
	}
}

static uint64_t others[2];
static int other_errors[2];

/* Cancels the other one, which has reached its time limit, too, but was not called back. */
static void cancel_other(struct mad_async *async, int error, struct mad_fabric *found,
			 void *arg)
{
	const uint64_t *id = arg;
	unsigned at = (unsigned)(id - others);

	mad_fabric_free(found);
	other_errors[at] = error;
	if (!other_errors[1 - at])
		assert_int_equal(mad_async_cancel(async, others[1 - at]), 0);
}

TEST(a_cancel_that_succeeds_is_the_error_also_after_the_time_limit)
{
	const struct mad_fabric_options options = {.time_limit_ms = 100};
	struct mad_async *async = mad_async_create(port);

	fake.nodes[RIGHT].dead = true;
	mad_rpc_set_timeout(port, LONG_MS);
	memset(other_errors, 0, sizeof(other_errors));
	for (int i = 0; i < 2; i++)
		assert_int_equal(mad_fabric_submit(async, &options, cancel_other, &others[i],
						   &others[i]),
				 0);
	mad_async_wait(async, -1);
	assert_int_equal(other_errors[0] + other_errors[1], -ETIME + -ECANCELED);
	mad_async_free(async);
}

static unsigned progress_calls;

static void count_progress(const struct mad_fabric_progress *progress, void *arg)
{
	assert_ptr_equal(arg, &progress_calls);
	assert_int_equal(progress->nodes, 1);
	assert_int_equal(progress->ports, 1);
	assert_true(progress->requests >= 1);
	progress_calls++;
}

TEST_WITH(progress_is_told_ten_times_a_second_at_most, setup_without_nodes, teardown)
{
	const struct mad_fabric_options options = {.progress = count_progress,
						   .progress_arg = &progress_calls};

	progress_calls = 0;
	fake_add(IB_NODE_CA, 1);
	discover(&options);
	assert_true(progress_calls >= 1 && progress_calls <= fake.asked);
}

static struct mad_fabric_progress last_progress;

static void keep_progress(const struct mad_fabric_progress *progress, void *arg)
{
	(void)arg;
	last_progress = *progress;
}

TEST(the_last_progress_has_the_final_numbers)
{
	const struct mad_fabric_options options = {.read = MAD_FABRIC_READ_PORTS |
							   MAD_FABRIC_READ_MLNX_EXT_PORTS,
						   .progress = keep_progress};

	fake.nodes[FAR].may_be_fdr10 = fake.nodes[FAR].no_mlnx = true;
	fake.nodes[LEFT].refused_port = 4;
	discover(&options);
	assert_int_equal(last_progress.nodes, 4);
	assert_int_equal(last_progress.switches, 2);
	assert_int_equal(last_progress.links, 4);
	assert_int_equal(last_progress.ports, fabric->port_count);
	assert_int_equal(last_progress.in_flight, 0);
	/* an unsupported ExtendedPortInfo is no problem */
	assert_int_equal(last_progress.problems, 1);
}

static int remove_device(const struct device_packet *packet, void *arg)
{
	if (fake.asked == 5) {
		device_remove();
		return -EIO;
	}
	return fake_response(packet, arg);
}

TEST(a_device_that_goes_ends_a_discovery)
{
	device_on_write(remove_device, NULL);
	assert_int_equal(mad_fabric_discover(port, NULL, &fabric), -ENODEV);
	assert_null(fabric);
}

/* --- deadline, cancel, and the local port -------------------------------------------- */

/* RIGHT does not respond for a minute: the discovery ends otherwise. */
static void expect_end(const struct mad_fabric_options *options, int error)
{
	int64_t begin = now_ms();

	fake.nodes[RIGHT].dead = true;
	mad_rpc_set_timeout(port, LONG_MS);
	assert_int_equal(mad_fabric_discover(port, options, &fabric), error);
	assert_true(now_ms() - begin < LONG_MS / 2);
}

static void expect_text(const char *expected)
{
	char text[MAD_ERROR_TEXT_SIZE];

	assert_string_equal(mad_failure_text(NULL, text, sizeof(text)), expected);
}

static int64_t found_at;

static void note_when_found(const struct mad_fabric_progress *progress, void *arg)
{
	(void)arg;
	if (progress->nodes == 2 && !found_at)
		found_at = now_ms();
}

/* What is found in the first milliseconds is told, although nothing comes after it. */
TEST(progress_is_told_while_all_wait)
{
	const struct mad_fabric_options options = {.progress = note_when_found,
						   .time_limit_ms = 2000};

	found_at = 0;
	expect_end(&options, -ETIME);
	assert_true(found_at && now_ms() - found_at > 1000);
}

TEST(a_discovery_has_a_time_limit)
{
	const struct mad_fabric_options options = {.time_limit_ms = 1000, .partial = true};
	int64_t begin = now_ms();

	expect_end(&options, -ETIME);
	assert_true(now_ms() - begin >= 1000);
	expect_part(-ETIME);
	expect_text("the time limit is over");
}

TEST(a_discovery_that_ends_in_time_has_no_error)
{
	const struct mad_fabric_options options = {.time_limit_ms = LONG_MS, .partial = true};

	discover(&options);
	assert_int_equal(fabric->node_count, 4);
	expect_nothing_wrong();
}

TEST(without_partial_a_discovery_that_ends_early_has_no_fabric)
{
	const struct mad_fabric_options options = {.time_limit_ms = 1};

	expect_end(&options, -ETIME);
	assert_null(fabric);
}

TEST(without_a_first_node_there_is_no_part)
{
	const struct mad_fabric_options options = {.time_limit_ms = 20, .partial = true};

	fake.nodes[HOST].dead = true;
	expect_end(&options, -ETIME);
	assert_null(fabric);
}

static struct mad_cancel cancel;

static void *cancel_soon(void *arg)
{
	(void)arg;
	usleep(60000);
	mad_cancel_set(&cancel);
	return NULL;
}

TEST(another_thread_cancels_a_discovery)
{
	const struct mad_fabric_options options = {.cancel = &cancel, .partial = true};
	pthread_t thread;

	cancel = (struct mad_cancel){0};
	assert_int_equal(cancel.is_set, 0);
	assert_int_equal(pthread_create(&thread, NULL, cancel_soon, NULL), 0);
	expect_end(&options, -ECANCELED);
	pthread_join(thread, NULL);
	assert_int_equal(cancel.is_set, 1);
	expect_part(-ECANCELED);
	expect_text("cancelled");
}

static void cancel_in_handler(int number)
{
	(void)number;
	mad_cancel_set(&cancel);
}

TEST(a_signal_handler_cancels_a_discovery)
{
	const struct mad_fabric_options options = {.cancel = &cancel, .partial = true};
	const struct itimerval soon = {.it_value = {.tv_usec = 60000}};
	struct sigaction action = {.sa_handler = cancel_in_handler, .sa_flags = SA_RESTART};
	struct sigaction before;

	cancel = (struct mad_cancel){0};
	sigaction(SIGALRM, &action, &before);
	setitimer(ITIMER_REAL, &soon, NULL);
	expect_end(&options, -ECANCELED);
	sigaction(SIGALRM, &before, NULL);
	expect_part(-ECANCELED);
}

TEST(a_discovery_that_is_cancelled_before_it_begins_ends_at_once)
{
	const struct mad_fabric_options options = {.cancel = &cancel, .partial = true};

	cancel = (struct mad_cancel){0};
	mad_cancel_set(NULL);
	mad_cancel_set(&cancel);
	expect_end(&options, -ECANCELED);
	/* until it is cleared */
	cancel = (struct mad_cancel){0};
	mad_fabric_free(fabric);
	fake.nodes[RIGHT].dead = false;
	discover(&options);
	assert_int_equal(fabric->node_count, 4);
}

/* The local port goes down while requests to RIGHT are in flight. */
static int cut_the_link(const struct device_packet *packet, void *arg)
{
	if (fake_walk(packet->mad).node == RIGHT)
		fake.nodes[HOST].links[1].node = -1;
	return fake_response(packet, arg);
}

TEST(a_discovery_ends_when_the_link_of_the_local_port_goes_down)
{
	const struct mad_fabric_options options = {.partial = true};

	device_on_write(cut_the_link, NULL);
	expect_end(&options, -ENETDOWN);
	expect_part(-ENETDOWN);
	expect_text("the link of the local port is down");
}

static int cut_the_link_and_wait(const struct device_packet *packet, void *arg)
{
	if (fake_walk(packet->mad).node == RIGHT)
		mad_port_set(port, MAD_PORT_RATE, 1);
	return cut_the_link(packet, arg);
}

TEST(the_local_port_is_read_while_other_requests_wait)
{
	device_on_write(cut_the_link_and_wait, NULL);
	expect_end(NULL, -ENETDOWN);
}

TEST(the_local_port_is_read_with_the_m_key)
{
	const struct mad_fabric_options options = {.m_key = 9};

	protect(HOST, 9);
	device_on_write(cut_the_link, NULL);
	expect_end(&options, -ENETDOWN);
}

/* Port 0 of a switch has no link, and looks as if it were down. */
TEST_WITH(port_0_of_the_local_switch_is_not_down, setup_without_nodes, teardown)
{
	const struct mad_fabric_options options = {.time_limit_ms = 700};

	fake_add(IB_NODE_SWITCH, 2);
	fake_add(IB_NODE_SWITCH, 2);
	fake_add(IB_NODE_SWITCH, 2);
	fake_cable(HOST, 2, RIGHT, 1);
	fake.nodes[HOST].port0_is_down = true;
	expect_end(&options, -ETIME);
	assert_true(fake.nodes[HOST].port_infos[0] >= 2);
}

TEST(a_kernel_that_does_not_send_without_a_link_ends_a_discovery)
{
	const struct mad_fabric_options options = {.partial = true};

	device_fail(DEVICE_WRITE, 5, ENETUNREACH);
	expect_end(&options, -ENETDOWN);
	assert_non_null(fabric);
}

TEST(a_device_that_goes_leaves_the_part_that_is_known)
{
	const struct mad_fabric_options options = {.partial = true};

	device_on_write(remove_device, NULL);
	expect_end(&options, -ENODEV);
	assert_non_null(fabric);
	assert_int_equal(find(HOST)->index, 0);
	expect_text("the device is gone");
}

/* A change from the whole fabric to a part of it that would be wrong. */
static int is_certain(const struct mad_fabric_difference *difference, void *arg)
{
	bool *certain = arg;

	*certain |= difference->change == MAD_FABRIC_NODE_REMOVED ||
		    difference->change == MAD_FABRIC_LINK_REMOVED ||
		    difference->change == MAD_FABRIC_NODE_ADDED ||
		    difference->change == MAD_FABRIC_LINK_ADDED;
	return 0;
}

/* Wherever the discovery ends, what is missing has an error. */
static void expect_parts(unsigned read)
{
	const struct mad_fabric_options whole = {.read = read},
					options = {.read = read, .partial = true};
	int error = -ENETDOWN;
	unsigned parts = 0;

	discover(&whole);
	previous = fabric;
	for (unsigned n = 1; error; n++) {
		bool certain = false;

		device_fail(DEVICE_WRITE, n, ENETUNREACH);
		error = mad_fabric_discover(port, &options, &fabric);
		device_fail(DEVICE_WRITE, 0, 0);
		assert_true(!error || error == -ENETDOWN);
		if (fabric) {
			assert_true(mad_fabric_compare(previous, fabric, is_certain,
						       &certain) >= 0);
			assert_false(certain);
			assert_true(!error == !failures());
			parts += error != 0;
		}
		for (size_t i = 0; fabric && i < fabric->node_count; i++)
			for (unsigned j = 1; j <= mad_fabric_get_node(fabric, i)->port_count;
			     j++) {
				const struct mad_fabric_port *end =
					mad_fabric_get_port(mad_fabric_get_node(fabric, i), j);

				assert_true(end->info || end->error || read == 16);
			}
		mad_fabric_free(fabric);
		fabric = NULL;
	}
	assert_true(parts > 5);
}

TEST(what_a_part_lacks_has_an_error)
{
	fake.nodes[LEFT].may_be_fdr10 = true;
	expect_parts(MAD_FABRIC_READ_DEFAULT | MAD_FABRIC_READ_MLNX_EXT_PORTS);
}

TEST(without_memory_there_is_no_part)
{
	const struct mad_fabric_options options = {.partial = true};
	int error = -ENETDOWN;

	for (unsigned n = 1; error == -ENETDOWN; n++) {
		int last = -ENOMEM;

		device_fail(DEVICE_WRITE, n, ENETUNREACH);
		for (unsigned m = 1; last == -ENOMEM || (last && !fabric && m < 100); m++) {
			mad_fabric_free(fabric);
			device_fail(DEVICE_WRITE, n, ENETUNREACH);
			device_fail_malloc(m);
			last = mad_fabric_discover(port, &options, &fabric);
			device_fail_malloc(0);
			assert_true(last == 0 || last == -ENOMEM || last == -ENETDOWN);
			assert_true(last != -ENOMEM || !fabric);
		}
		error = last;
		mad_fabric_free(fabric);
		fabric = NULL;
	}
	device_fail(DEVICE_WRITE, 0, 0);
}

/* On an engine of the program, with an event loop. */
TEST(a_discovery_on_an_engine_has_limits)
{
	const struct mad_fabric_options options = {.time_limit_ms = 1000, .partial = true};
	struct mad_async *async = mad_async_create(port);
	struct pollfd pollfd = {.fd = mad_async_poll_fd(async), .events = POLLIN};

	fake.nodes[RIGHT].dead = true;
	mad_rpc_set_timeout(port, LONG_MS);
	memset(&result, 0, sizeof(result));
	assert_int_equal(mad_fabric_submit(async, &options, note, &result, NULL), 0);
	while (!result.calls) {
		assert_int_equal(poll(&pollfd, 1, LONG_MS / 2), 1);
		assert_true(mad_async_process(async) >= 0);
	}
	assert_int_equal(result.calls, 1);
	assert_int_equal(result.error, -ETIME);
	fabric = result.fabric;
	result.fabric = NULL;
	expect_part(-ETIME);
	mad_async_free(async);
}

/* The end of the discovery waits for the state of the local port, which is cancelled. */
static int drop_local_port_info(const struct device_packet *packet, void *arg)
{
	if (!packet->mad[7] && packet->mad[23] == 0 && packet->mad[17] == IB_ATTR_PORT_INFO)
		return 0;
	return fake_response(packet, arg);
}

TEST(a_local_port_that_does_not_respond_holds_nothing_up)
{
	const struct mad_fabric_options options = {.time_limit_ms = 1500, .partial = true};

	device_on_write(drop_local_port_info, NULL);
	expect_end(&options, -ETIME);
	expect_part(-ETIME);
}

TEST(wrong_arguments_are_refused)
{
	struct mad_async *async = mad_async_create(port);
	const ib_portid_t from[] = {
		{.drpath = {.cnt = 64}},
		{.lid = 5},
		{.lid = 5, .drpath = {.drslid = 0xffff}},
		{.lid = 0xc000, .drpath = {.drslid = 1}},
		{.lid = -1, .drpath = {.drslid = 1}},
	};
	const struct mad_cancel odd = {.reserved = {[2] = 1}};
	const struct mad_fabric_options wrong[] = {
		{.read = 1u << 20}, {.timeout_ms = -1}, {.reserved = {[3] = 1}},
		{.cancel = &odd},   {.from = &from[0]}, {.from = &from[1]},
		{.from = &from[2]}, {.from = &from[3]}, {.from = &from[4]},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		if (mad_fabric_discover(port, &wrong[i], &fabric) != -EINVAL)
			fail_msg("options %zu are not refused", i);
	assert_int_equal(mad_fabric_discover(port, NULL, NULL), -EINVAL);
	assert_int_equal(mad_fabric_discover(NULL, NULL, &fabric), -EINVAL);
	assert_int_equal(mad_fabric_submit(NULL, NULL, note, NULL, NULL), -EINVAL);
	assert_int_equal(mad_fabric_submit(async, NULL, NULL, NULL, NULL), -EINVAL);
	/* mad_async_cancel() cancels a discovery on an engine */
	assert_int_equal(mad_fabric_submit(async,
					   &(struct mad_fabric_options){.cancel = &cancel},
					   note, &result, NULL),
			 -EINVAL);
	assert_int_equal(mad_last_failure()->error, -EINVAL);
	assert_int_equal(fake.asked, 0);
	mad_async_free(async);
}

TEST(a_port_without_the_class_is_refused)
{
	int classes[] = {IB_PERFORMANCE_CLASS};
	struct ibmad_port *other = mad_rpc_open_port(NULL, 0, classes, 1);

	assert_int_equal(mad_fabric_discover(other, NULL, &fabric), -EPROTONOSUPPORT);
	mad_rpc_close_port(other);
}

/* Returns the number of discoveries that failed. */
static unsigned fail_each_allocation(const struct mad_fabric_options *options)
{
	unsigned n = 0;
	int err;

	do {
		device_fail_malloc(++n);
		err = mad_fabric_discover(port, options, &fabric);
		device_fail_malloc(0);
		assert_true(err == 0 || err == -ENOMEM);
		assert_true(!err == (fabric != NULL));
	} while (err);
	return n - 1;
}

TEST(each_allocation_of_a_discovery_may_fail)
{
	/* the discovery, its graph, blocks, tables, requests */
	assert_true(fail_each_allocation(NULL) >= 6);
	assert_int_equal(fabric->node_count, 4);
}

TEST(each_allocation_of_a_later_discovery_may_fail)
{
	discover(NULL);
	previous = fabric;
	fake.nodes[RIGHT].dead = true;
	fail_each_allocation(&(struct mad_fabric_options){.previous = previous});
	expect_right_to_be_one_failure();
}
