/* SPDX-License-Identifier: BSD-2-Clause */

/* Training: the width and speed of links, which rules and enabled values limit. */
#include "net_fixture.h"
#include "test.h"

#include "gmp_agents.h"
#include "link.h"
#include "links.h"
#include "sma.h"
#include "topologies.h"

/* The PortInfo of a port, which ALPHA requests. */
static uint8_t *port_info(struct subnet *subnet, uint32_t node, unsigned int number)
{
	begin(subnet, CLASS_SMP, METHOD_GET, IB_ATTR_PORT_INFO, number);
	subnet->dlid = lid_of(subnet, node);
	assert_true(asked(subnet));
	return data_of_response(subnet);
}

static unsigned int field(struct subnet *subnet, uint32_t node, unsigned int number,
			  enum MAD_FIELDS id)
{
	return mad_get_field(port_info(subnet, node, number), 0, id);
}

/* Sets one field of a PortInfo; the status. */
static unsigned int set(struct subnet *subnet, uint32_t node, unsigned int number,
			enum MAD_FIELDS id, unsigned int value)
{
	uint8_t data[SMP_DATA];

	memcpy(data, port_info(subnet, node, number), sizeof(data));
	mad_set_field(data, 0, IB_PORT_STATE_F, 0);
	mad_set_field(data, 0, IB_PORT_PHYS_STATE_F, 0);
	mad_set_field(data, 0, id, value);
	begin(subnet, CLASS_SMP, METHOD_SET, IB_ATTR_PORT_INFO, number);
	memcpy(subnet->mad + SMP_DATA, data, sizeof(data));
	subnet->dlid = lid_of(subnet, node);
	assert_true(asked(subnet));
	return status_of_response(subnet);
}

/* The link's values at both ends, and in PortInfo. */
static void assert_link(struct subnet *subnet, uint32_t node, unsigned int number,
			unsigned int width, enum link_speed speed)
{
	uint32_t port = port_of(subnet, node, number);
	const struct port *peer = &subnet->fabric.ports[cable(&subnet->fabric, port)->peer];

	assert_int_equal(subnet->fabric.ports[port].width, width);
	assert_int_equal(active_speed(&subnet->fabric, port), speed);
	assert_int_equal(peer->width, width);
	assert_int_equal(peer->speed, speed);
	assert_int_equal(field(subnet, node, number, IB_PORT_LINK_WIDTH_ACTIVE_F),
			 width_bit(width));
	assert_int_equal(field(subnet, node, number, IB_PORT_LINK_SPEED_ACTIVE_F),
			 speed_bit(speed));
	assert_int_equal(field(subnet, node, number, IB_PORT_LINK_SPEED_EXT_ACTIVE_F),
			 speed_ext_bit(speed));
}

static unsigned int downs(struct subnet *subnet, uint32_t node, unsigned int number)
{
	return (unsigned int)counter_get(&subnet->fabric, port_of(subnet, node, number),
					 COUNT_LINK_DOWNED);
}

SUBNET_TEST(rules_degrade_both_ends_and_support_stays)
{
	rules(subnet, "width 1x on near/3", "speed FDR on near/3");
	assert_link(subnet, NEAR, 3, 1, FDR);
	assert_link(subnet, FAR, 3, 1, FDR);
	assert_link(subnet, NEAR, 4, 4, EDR);
	for (uint32_t node = NEAR; node <= FAR; node++) {
		assert_int_equal(field(subnet, node, 3, IB_PORT_LINK_WIDTH_SUPPORTED_F), 3);
		assert_int_equal(field(subnet, node, 3, IB_PORT_LINK_WIDTH_ENABLED_F), 3);
		assert_int_equal(field(subnet, node, 3, IB_PORT_LINK_SPEED_EXT_SUPPORTED_F), 3);
		assert_int_equal(field(subnet, node, 3, IB_PORT_LINK_SPEED_EXT_ENABLED_F), 3);
	}
}

SUBNET_TEST(a_rule_before_the_start_is_no_event_and_later_the_link_goes_down)
{
	rule(subnet, "width 1x on near/3");
	assert_int_equal(downs(subnet, NEAR, 3), 0);
	pass(&subnet->fabric, SECOND);
	rule(subnet, "width 1x on far/3");
	assert_int_equal(downs(subnet, NEAR, 3), 0); /* it trained with that already */
	rule(subnet, "speed QDR on far/3");
	assert_link(subnet, NEAR, 3, 1, QDR);
	assert_int_equal(downs(subnet, NEAR, 3), 1);
	assert_int_equal(downs(subnet, FAR, 3), 1);
	assert_int_equal(state_of(subnet, NEAR, 3)->state, PORT_ACTIVE);
	assert_int_equal(downs(subnet, NEAR, 4), 0);
}

SUBNET_TEST(a_rule_without_a_port_is_for_all_links_of_its_place)
{
	rule(subnet, "width 1x on beta");
	assert_link(subnet, BETA, 1, 1, EDR);
	assert_link(subnet, FAR, 2, 1, EDR);
	assert_link(subnet, NEAR, 1, 4, EDR);
	rule(subnet, "speed DDR");
	assert_link(subnet, NEAR, 1, 4, DDR);
	assert_link(subnet, BETA, 1, 1, DDR);
}

SUBNET_TEST(the_later_rule_for_a_link_decides)
{
	rules(subnet, "width 1x", "width 4x on near/3");
	assert_link(subnet, FAR, 3, 4, EDR);
	assert_link(subnet, FAR, 4, 1, EDR);
	rule(subnet, "width 2x on far/3"); /* neither end supports 2x */
	assert_link(subnet, NEAR, 3, 1, EDR);
}

SUBNET_TEST(clear_heals_a_link)
{
	pass(&subnet->fabric, SECOND);
	rules(subnet, "width 1x on near/3", "after 1s speed SDR on near/4", "clear");
	assert_link(subnet, NEAR, 3, 4, EDR);
	assert_int_equal(downs(subnet, NEAR, 3), 2);
	pass(&subnet->fabric, 2 * SECOND);
	assert_link(subnet, NEAR, 4, 4, EDR);
	assert_int_equal(downs(subnet, NEAR, 4), 0);
}

SUBNET_TEST(a_rule_for_later_degrades_the_link_then)
{
	rule(subnet, "after 1s speed FDR on near/4");
	pass(&subnet->fabric, SECOND - 1);
	assert_link(subnet, NEAR, 4, 4, EDR);
	pass(&subnet->fabric, 1);
	assert_link(subnet, NEAR, 4, 4, FDR);
}

SUBNET_TEST(a_cable_that_is_plugged_in_trains_with_the_rules_of_then)
{
	rules(subnet, "link down on near/3", "width 1x on near/3");
	assert_int_equal(state_of(subnet, NEAR, 3)->phys_state, PHYS_POLLING);
	rule(subnet, "link up on near/3");
	assert_link(subnet, NEAR, 3, 1, EDR);
}

SUBNET_TEST(a_set_of_the_enabled_values_makes_the_link_train)
{
	pass(&subnet->fabric, SECOND);
	assert_int_equal(set(subnet, NEAR, 3, IB_PORT_LINK_WIDTH_ENABLED_F, 1), 0);
	assert_int_equal(
		mad_get_field(data_of_response(subnet), 0, IB_PORT_LINK_WIDTH_ACTIVE_F), 1);
	assert_link(subnet, FAR, 3, 1, EDR);
	assert_int_equal(set(subnet, FAR, 3, IB_PORT_LINK_SPEED_EXT_ENABLED_F, 1), 0);
	assert_link(subnet, NEAR, 3, 1, FDR);
	assert_int_equal(
		set(subnet, FAR, 3, IB_PORT_LINK_SPEED_EXT_ENABLED_F, NO_EXTENDED_SPEEDS), 0);
	assert_int_equal(field(subnet, FAR, 3, IB_PORT_LINK_SPEED_EXT_ENABLED_F),
			 NO_EXTENDED_SPEEDS);
	assert_link(subnet, NEAR, 3, 1, QDR);
	assert_int_equal(set(subnet, NEAR, 3, IB_PORT_LINK_SPEED_ENABLED_F, 2), 0);
	assert_link(subnet, NEAR, 3, 1, DDR);
	assert_int_equal(downs(subnet, NEAR, 3), 4);
	/* the same values again */
	assert_int_equal(set(subnet, NEAR, 3, IB_PORT_LINK_SPEED_ENABLED_F, 2), 0);
	assert_int_equal(downs(subnet, NEAR, 3), 4);
	/* all that is supported */
	assert_int_equal(set(subnet, NEAR, 3, IB_PORT_LINK_WIDTH_ENABLED_F, 255), 0);
	assert_int_equal(set(subnet, NEAR, 3, IB_PORT_LINK_SPEED_ENABLED_F, 15), 0);
	assert_int_equal(set(subnet, FAR, 3, IB_PORT_LINK_SPEED_EXT_ENABLED_F, 31), 0);
	assert_link(subnet, NEAR, 3, 4, EDR);
}

SUBNET_TEST(ends_without_a_common_value_do_not_train)
{
	assert_int_equal(set(subnet, FAR, 2, IB_PORT_LINK_WIDTH_ENABLED_F, 1), 0);
	assert_int_equal(set(subnet, BETA, 2, IB_PORT_LINK_WIDTH_ENABLED_F, 2), 0);
	assert_int_equal(state_of(subnet, FAR, 2)->phys_state, PHYS_POLLING);
	assert_int_equal(state_of(subnet, BETA, 2)->state, PORT_DOWN);
	assert_int_equal(set(subnet, FAR, 2, IB_PORT_LINK_WIDTH_ENABLED_F, 2), 0);
	assert_link(subnet, FAR, 2, 4, EDR);
	assert_int_equal(state_of(subnet, BETA, 2)->state, PORT_ACTIVE);
}

SUBNET_TEST(a_reset_trains_again_with_the_rule)
{
	rule(subnet, "width 1x on beta/2");
	assert_int_equal(set(subnet, BETA, 2, IB_PORT_PHYS_STATE_F, PHYS_DISABLED), 0);
	assert_int_equal(set(subnet, BETA, 2, IB_PORT_PHYS_STATE_F, PHYS_POLLING), 0);
	assert_link(subnet, BETA, 2, 1, EDR);
	assert_int_equal(downs(subnet, BETA, 2), 1);
}

SUBNET_TEST(a_refused_set_trains_no_link)
{
	assert_int_not_equal(set(subnet, NEAR, 3, IB_PORT_LINK_WIDTH_ENABLED_F, 4), 0);
	assert_link(subnet, NEAR, 3, 4, EDR);
	assert_int_equal(downs(subnet, NEAR, 3), 0);
}

SUBNET_TEST(a_narrow_link_carries_less)
{
	uint64_t wide, narrow;

	subnet->fabric.load = 0.5;
	rule(subnet, "width 1x on near/3");
	pass(&subnet->fabric, 10 * SECOND);
	narrow = counter_get(&subnet->fabric, port_of(subnet, NEAR, 3), COUNT_XMIT_DATA);
	rule(subnet, "clear");
	pass(&subnet->fabric, 10 * SECOND);
	wide = counter_get(&subnet->fabric, port_of(subnet, NEAR, 3), COUNT_XMIT_DATA) - narrow;
	assert_in_range(wide, narrow * 4 - 100, narrow * 4 + 100);
}

/* What a port's lane counted; without rules, all four lanes count equally. */
static uint64_t lane(struct subnet *subnet, unsigned int number)
{
	return counter_of_lane(&subnet->fabric, port_of(subnet, NEAR, 3), number);
}

SUBNET_TEST(a_lane_that_is_not_in_use_keeps_its_count)
{
	rule(subnet, "fec 400 on near/3");
	pass(&subnet->fabric, 10 * SECOND);
	assert_int_equal(lane(subnet, 0), 1000);
	assert_int_equal(lane(subnet, 3), 1000);
	rule(subnet, "width 1x on near/3");
	assert_int_equal(lane(subnet, 0), 1000);
	pass(&subnet->fabric, 10 * SECOND);
	assert_int_equal(lane(subnet, 0), 5000);
	assert_int_equal(lane(subnet, 3), 1000);
	rule(subnet, "speed QDR on near/3"); /* has no FEC */
	pass(&subnet->fabric, 10 * SECOND);
	assert_int_equal(lane(subnet, 0), 5000);
	rules(subnet, "clear", "fec 400 on near/3");
	pass(&subnet->fabric, 10 * SECOND);
	assert_int_equal(lane(subnet, 0), 6000);
	assert_int_equal(lane(subnet, 3), 2000);
	assert_int_equal(lane(subnet, 4), 0);
}

/* --- topologies ----------------------------------------------------------------- */

TEST(a_degraded_link_of_a_topology_is_so_from_the_start)
{
	struct subnet subnet = {0};
	struct fabric *fabric = &subnet.fabric;
	struct graph graph;
	uint32_t a, b, port;

	graph_init(&graph);
	assert_int_equal(graph_add(&graph, NODE_CA, 0x1000, "a", 1, &a), 0);
	assert_int_equal(graph_add(&graph, NODE_CA, 0x2000, "b", 1, &b), 0);
	port = graph_port(&graph, a, 1);
	assert_int_equal(graph_degrade(&graph, port, 1, SDR), -EINVAL); /* no cable */
	join_cable(&graph, a, 1, b, 1);
	assert_int_equal(graph_degrade(&graph, port, 8, SDR), -EINVAL);
	assert_int_equal(graph_degrade(&graph, port, 3, SDR), -EINVAL);
	assert_int_equal(graph_degrade(&graph, port, 1, HDR), -EINVAL);
	assert_int_equal(graph_degrade(&graph, port, 1, FDR), 0);
	start_fabric(fabric, &graph, 7, false);
	port = port_of(&subnet, b, 1);
	assert_int_equal(fabric->ports[port].width, 1);
	assert_int_equal(active_speed(fabric, port), FDR);
	/* a rule has priority */
	rule(&subnet, "width 4x on b/1");
	assert_int_equal(fabric->ports[port].width, 4);
	assert_int_equal(active_speed(fabric, port), FDR);
	rule(&subnet, "clear");
	assert_int_equal(fabric->ports[port].width, 1);
	stop_fabric(fabric);
}

/* --- capabilities ----------------------------------------------------------------------- */

/* CapabilityMask and CapabilityMask2 of a port. */
static void assert_capabilities2(struct net *net, const char *name, unsigned int number,
				 bool own, unsigned int capabilities2)
{
	uint32_t node = graph_find(&net->fabric.graph, name);
	uint8_t data[SMP_DATA];
	unsigned int mask;

	assert_true(sma_read(&net->fabric, node, IB_ATTR_PORT_INFO, number, 1, data));
	mask = mad_get_field(data, 0, IB_PORT_CAPMASK_F);
	assert_int_equal(mask >> 14 & 3, own ? 3 : 0); /* IsExtendedSpeeds, IsCapabilityMask2 */
	assert_int_equal(mad_get_field(data, 0, IB_PORT_CAPMASK2_F), capabilities2);
}

PLAIN_TEST(capability_mask2_has_the_widths_and_speeds_of_the_port)
{
	static const struct {
		const char *link;
		unsigned int capabilities2;
	} rows[] = {
		{"4xSDR", 0},      {"2xSDR", 0x10},   {"4xFDR10", 0},   {"12xEDR", 0},
		{"4xHDR", 0x20},   {"2xHDR", 0x30},   {"4xNDR", 0x420}, {"2xNDR", 0x430},
		{"4xXDR", 0x1c20}, {"2xXDR", 0x1c30},
	};
	char spec[64];

	for (unsigned int i = 0; i < COUNT_OF(rows); i++) {
		struct net *net;

		snprintf(spec, sizeof(spec), "pair@%s", rows[i].link);
		net = new_net(spec, NULL);
		assert_capabilities2(net, "host-1", 1, true, rows[i].capabilities2);
		free_net(net);
		snprintf(spec, sizeof(spec), "fat-tree:4,2@%s", rows[i].link);
		net = new_net(spec, NULL);
		assert_capabilities2(net, "leaf-1", 0, true, rows[i].capabilities2);
		assert_capabilities2(net, "leaf-1", 1, false,
				     0); /* a switch has them at port 0 */
		free_net(net);
	}
}

/* --- sets of widths and speeds ------------------------------------------------------------ */

/* The words w=, s= and e= of a port's line. */
struct sets {
	unsigned int widths, speeds, extended;
};

static struct sets random_sets(void)
{
	return (struct sets){1 + (unsigned int)rand() % 31, 1 + (unsigned int)rand() % 7,
			     (unsigned int)rand() % 16};
}

static unsigned int highest(unsigned int bits)
{
	unsigned int bit = 0;

	while (bits >> bit > 1)
		bit++;
	return bits ? 1U << bit : 0;
}

/* 2x, bit 16, is between 1x and 4x. */
static unsigned int widest_of(unsigned int bits)
{
	return bits & 14 ? highest(bits & 14) : bits & 16 ? 16 : bits;
}

static void assert_port_info(struct fabric *fabric, uint32_t node, struct sets sets,
			     struct sets both)
{
	unsigned int width = widest_of(both.widths), extended = highest(both.extended);
	const struct {
		enum MAD_FIELDS id;
		unsigned int value;
	} fields[] = {
		{IB_PORT_LINK_WIDTH_SUPPORTED_F, sets.widths},
		{IB_PORT_LINK_WIDTH_ENABLED_F, sets.widths},
		{IB_PORT_LINK_WIDTH_ACTIVE_F, width},
		{IB_PORT_LINK_SPEED_SUPPORTED_F, sets.speeds},
		{IB_PORT_LINK_SPEED_ENABLED_F, sets.speeds},
		{IB_PORT_LINK_SPEED_ACTIVE_F, extended ? 4 : highest(both.speeds)},
		{IB_PORT_LINK_SPEED_EXT_SUPPORTED_F, sets.extended},
		{IB_PORT_LINK_SPEED_EXT_ENABLED_F, sets.extended},
		{IB_PORT_LINK_SPEED_EXT_ACTIVE_F, extended},
		{IB_PORT_CAPMASK2_F, (sets.widths & 16 ? 0x10U : 0) |
					     (sets.extended & 4 ? 0x20U : 0) |
					     (sets.extended & 8 ? 0x400U : 0)},
	};
	uint8_t data[SMP_DATA] = {0};

	assert_true(sma_read(fabric, node, IB_ATTR_PORT_INFO, 1, 1, data));
	for (unsigned int i = 0; i < COUNT_OF(fields); i++)
		assert_int_equal(mad_get_field(data, 0, fields[i].id), fields[i].value);
}

/* Reads a cable whose ends have these sets, into a file and into a fabric. */
static void show(struct sets near, struct sets far)
{
	struct sets both = {near.widths & far.widths, near.speeds & far.speeds,
			    near.extended & far.extended};
	struct topology_error error;
	struct graph graph, again;
	struct fabric fabric;
	char text[256];
	int ret;

	snprintf(text, sizeof(text),
		 "Ca 1 \"a\"\n[1] \"b\" w=%u s=%u e=%u\nCa 1 \"b\"\n[1] \"a\" w=%u s=%u e=%u\n",
		 near.widths, near.speeds, near.extended, far.widths, far.speeds, far.extended);
	graph_init(&graph);
	ret = topology_read(&graph, text, strlen(text), "random.net", &error);
	if (!both.widths || !(both.speeds | both.extended)) {
		assert_int_equal(ret, -EINVAL);
		graph_free(&graph);
		return;
	}
	assert_int_equal(ret, 0);
	print_and_read(&graph, &again);
	assert_same(&graph, &again);
	graph_free(&again);
	memset(&fabric, 0, sizeof(fabric));
	start_fabric(&fabric, &graph, 7, true);
	assert_int_equal(bring_up(&fabric, graph_port(&fabric.graph, 0, 1)), 0);
	assert_port_info(&fabric, 0, near, both);
	assert_port_info(&fabric, 1, far, both);
	stop_fabric(&fabric);
}

PLAIN_TEST(port_info_has_exactly_the_sets_of_the_topology)
{
	srand(test_seed());
	for (unsigned int i = 0; i < 500; i++)
		show(random_sets(), random_sets());
}

/* The other end supports all up to what the link has. */
PLAIN_TEST(a_link_stays_down_if_a_rule_excludes_what_its_ends_support)
{
	struct subnet *subnet = set_up();
	uint32_t port = port_of(subnet, NEAR, 3);

	cable(&subnet->fabric, port)->widths = 2;
	assert_int_equal(field(subnet, NEAR, 3, IB_PORT_LINK_WIDTH_SUPPORTED_F), 2);
	assert_int_equal(field(subnet, FAR, 3, IB_PORT_LINK_WIDTH_SUPPORTED_F), 3);
	assert_int_equal(set(subnet, NEAR, 3, IB_PORT_LINK_WIDTH_ENABLED_F, 1),
			 STATUS_BAD_VALUE);
	rule(subnet, "width 1x on near/3");
	assert_false(link_is_up(&subnet->fabric, port));
	tear_down(subnet);
}
