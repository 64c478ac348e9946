/* SPDX-License-Identifier: BSD-2-Clause */

/* Fault rules: their effect on nodes and links, where and when they apply. */
#include "subnet_fixture.h"
#include "test.h"

#include "gmp_agents.h"

static void ask_node(struct subnet *subnet, uint32_t node, uint8_t class)
{
	begin(subnet, class, METHOD_GET, class == CLASS_SMP ? IB_ATTR_NODE_INFO : 1, 0);
	subnet->dlid = lid_of(subnet, node);
}

/* Whether a node responds to an SMP at once, and with which status. */
static bool responds(struct subnet *subnet, uint32_t node)
{
	ask_node(subnet, node, CLASS_SMP);
	return asked(subnet);
}

/* Whether a node responds to a vendor's MAD at once. */
static bool responds_to_gmp(struct subnet *subnet, uint32_t node)
{
	ask_node(subnet, node, VENDOR_CLASS);
	return asked(subnet);
}

/* Sends SMPs to a node at the same time; the responses come later. */
static void burst(struct subnet *subnet, uint32_t node, unsigned int count)
{
	empty(&subnet->smps);
	subnet->smps.count = 0;
	while (count-- > 0) {
		ask_node(subnet, node, CLASS_SMP);
		assert_int_equal(send_by(subnet, &subnet->smps, UINT32_MAX), 0);
	}
	settle(&subnet->fabric);
}

/* --- nodes ---------------------------------------------------------------------- */

SUBNET_TEST(a_slow_node_takes_its_time_for_each_response)
{
	rule(subnet, "slow 5ms on gamma");
	assert_true(responds(subnet, BETA));
	burst(subnet, GAMMA, 10);
	pass(&subnet->fabric, 5 * MILLISECOND - 1);
	assert_int_equal(subnet->smps.count, 0);
	pass(&subnet->fabric, 1);
	assert_int_equal(subnet->smps.count, 10); /* at once */
	assert_false(responds_to_gmp(subnet, GAMMA));
	pass(&subnet->fabric, 5 * MILLISECOND);
	assert_int_equal(subnet->gmps.count, 1);
}

SUBNET_TEST(a_trace_has_no_control_characters_of_names)
{
	start_trace(subnet);
	rules(subnet, "smp-time 10us", "smp-queue 1 on gamma");
	subnet->fabric.graph.nodes[GAMMA].name[0] = '\x1b';
	burst(subnet, GAMMA, 5);
	assert_true(traced(subnet, "dropped: buffer full at ?amma/1"));
}

SUBNET_TEST(a_silent_node_does_not_respond_but_receives_responses)
{
	rule(subnet, "silent on gamma");
	assert_false(responds(subnet, GAMMA));
	assert_false(responds_to_gmp(subnet, GAMMA));
	assert_true(responds(subnet, BETA));
	rule(subnet, "silent on alpha");
	assert_true(responds(subnet, BETA));
}

SUBNET_TEST(a_busy_node_says_so)
{
	rule(subnet, "busy 100% on gamma");
	assert_true(responds(subnet, GAMMA));
	assert_int_equal(status_of_response(subnet), STATUS_BUSY);
	assert_int_equal(subnet->response->data[3], METHOD_GET | METHOD_RESPONSE);
	assert_true(responds_to_gmp(subnet, GAMMA));
	assert_int_equal(status_of_response(subnet), STATUS_BUSY);
	assert_true(responds(subnet, BETA));
	assert_int_equal(status_of_response(subnet), 0);
}

SUBNET_TEST(a_redirection_says_where_to_ask)
{
	const uint8_t *data;
	uint8_t gid[16];

	rule(subnet, "redirect beta on gamma");
	assert_true(responds_to_gmp(subnet, GAMMA));
	assert_int_equal(status_of_response(subnet), STATUS_REDIRECT);
	data = data_of_response(subnet);
	port_gid(&subnet->fabric, port_of(subnet, BETA, 1), gid);
	assert_memory_equal(data + 8, gid, 16);
	assert_int_equal(get16(data + 28), lid_of(subnet, BETA));
	assert_int_equal(get16(data + 30), DEFAULT_PKEY);
	assert_int_equal(get32(data + 32) & 0xffffff, 1);
	assert_true(get32(data + 36) == WELL_KNOWN_QKEY);
	assert_true(responds(subnet, GAMMA)); /* SMPs are not redirected */
	assert_int_equal(status_of_response(subnet), 0);
}

SUBNET_TEST(to_be_redirected_to_a_switch_leads_to_its_port_0)
{
	rule(subnet, "redirect far on gamma");
	assert_true(responds_to_gmp(subnet, GAMMA));
	assert_int_equal(get16(data_of_response(subnet) + 28), lid_of(subnet, FAR));
}

/* --- events --------------------------------------------------------------------- */

SUBNET_TEST(a_node_that_reboots_is_gone_for_so_long)
{
	rule(subnet, "reboot 200ms on far");
	assert_int_equal(state_of(subnet, NEAR, 4)->state, PORT_DOWN);
	assert_int_equal(state_of(subnet, GAMMA, 1)->state, PORT_DOWN);
	pass(&subnet->fabric, 200 * MILLISECOND - 1);
	assert_false(responds(subnet, FAR));
	assert_false(responds(subnet, GAMMA));
	pass(&subnet->fabric, 1);
	assert_true(responds(subnet, GAMMA));
	assert_int_equal(state_of(subnet, NEAR, 4)->phys_state, PHYS_LINK_UP);
}

SUBNET_TEST(a_reboot_resets_the_settings_of_ports)
{
	struct port_settings *settings =
		settings_of(&subnet->fabric, port_of(subnet, GAMMA, 1));

	assert_non_null(settings);
	settings->mkey = 1;
	settings->pkeys[5] = 0x1234;
	counter_set(&subnet->fabric, port_of(subnet, GAMMA, 1), COUNT_SYMBOL_ERRORS, 17);
	rule(subnet, "reboot 1ms on gamma");
	pass(&subnet->fabric, SECOND);
	assert_true(responds(subnet, GAMMA));
	assert_int_equal(pkey_at(&subnet->fabric, port_of(subnet, GAMMA, 1), 5), 0);
	assert_true(counter_get(&subnet->fabric, port_of(subnet, GAMMA, 1),
				COUNT_SYMBOL_ERRORS) == 0);
}

SUBNET_TEST(a_reboot_resets_values_set_by_gmps)
{
	struct gmp_place place = {.node = GAMMA, .attribute = 0x20, .class = VENDOR_CLASS};
	uint8_t bytes[4] = {1, 2, 3, 4};

	assert_int_equal(gmp_keep(&subnet->fabric, &place, bytes, 4), 0);
	rule(subnet, "reboot 1ms on gamma");
	assert_false(gmp_recall(&subnet->fabric, &place, bytes, 4));
}

BARE_TEST(a_bare_switch_that_reboots_forgets_lids_and_tables)
{
	uint8_t block[64] = {1, 2, 3};

	set_lid(&subnet->fabric, port_of(subnet, NEAR, 0), 7, 0);
	assert_int_equal(route_set_block(&subnet->fabric, NEAR, 0, block), 0);
	state_of(subnet, NEAR, 0)->sm_lid = 9;
	subnet->fabric.nodes[NEAR].linear_top = 12;
	rule(subnet, "reboot 1ms on near");
	pass(&subnet->fabric, SECOND);
	assert_int_equal(lid_of(subnet, NEAR), 0);
	assert_int_equal(lid_owner(&subnet->fabric, 7), NONE);
	assert_int_equal(state_of(subnet, NEAR, 1)->state, PORT_INIT);
	assert_int_equal(route_port(&subnet->fabric, NEAR, 2), NO_ROUTE);
	assert_int_equal(subnet->fabric.nodes[NEAR].linear_top, 0);
	assert_int_equal(state_of(subnet, NEAR, 0)->sm_lid, 0);
}

SUBNET_TEST(a_link_goes_down_and_up_at_both_ends)
{
	rule(subnet, "link down on far/1");
	assert_int_equal(state_of(subnet, FAR, 1)->state, PORT_DOWN);
	assert_int_equal(state_of(subnet, GAMMA, 1)->state, PORT_DOWN);
	assert_int_equal(state_of(subnet, GAMMA, 1)->phys_state, PHYS_POLLING);
	assert_false(responds(subnet, GAMMA));
	rule(subnet, "link up on gamma/1"); /* the other end of the link */
	assert_int_equal(state_of(subnet, FAR, 1)->state, PORT_ACTIVE);
	assert_true(responds(subnet, GAMMA));
}

SUBNET_TEST(all_links_of_a_node_go_down)
{
	rule(subnet, "link down on far");
	for (unsigned int i = 1; i <= 6; i++)
		assert_int_equal(state_of(subnet, FAR, i)->state, PORT_DOWN);
	rule(subnet, "link up on far");
	for (unsigned int i = 1; i <= 4; i++)
		assert_int_equal(state_of(subnet, FAR, i)->state, PORT_ACTIVE);
	assert_int_equal(state_of(subnet, FAR, 5)->state, PORT_DOWN); /* no cable */
}

static uint32_t changed_node;
static bool changed_to;

static void note_change(struct fabric *fabric, uint32_t node, bool present)
{
	(void)fabric;
	changed_node = node;
	changed_to = present;
}

SUBNET_TEST(devices_are_removed_and_added)
{
	subnet->fabric.device_changed = note_change;
	changed_node = NONE;
	rule(subnet, "remove on beta");
	assert_int_equal(changed_node, BETA);
	assert_false(changed_to);
	rule(subnet, "add on beta");
	assert_true(changed_to);
}

/* --- where ---------------------------------------------------------------------- */

SUBNET_TEST(the_later_rule_wins)
{
	rules(subnet, "loss 100%", "loss 0% on near");
	assert_true(responds(subnet, BETA)); /* all links of BETA are at near */
	assert_false(responds(subnet, GAMMA));
	rule(subnet, "loss 100%");
	assert_false(responds(subnet, BETA));
}

SUBNET_TEST(rules_that_later_ones_replace_are_not_kept)
{
	for (int i = 0; i < 100; i++) {
		rules(subnet, "loss 1%", "slow 1ms on beta", "slow 2ms on gamma",
		      "loss 0% on near/2", "loss 2% on near");
	}
	assert_int_equal(subnet->fabric.faults->count, 5);
}

SUBNET_TEST(the_later_rule_wins_whichever_end_it_names)
{
	rules(subnet, "loss 100% on beta/1", "loss 0% on near/2");
	assert_true(responds(subnet, BETA));
	rule(subnet, "loss 100% on beta/1");
	assert_false(responds(subnet, BETA));
}

SUBNET_TEST(a_rule_for_a_link_holds_in_both_directions)
{
	start_trace(subnet);
	rule(subnet, "loss 100% on beta/1");
	assert_false(responds(subnet, BETA));
	assert_true(traced(subnet, "1 lost at near/2"));
	assert_false(traced(subnet, "lost at beta/1"));
	rules(subnet, "clear", "loss 100% on near/2");
	wire_send(&subnet->fabric, &(struct packet){.from = port_of(subnet, BETA, 1),
						    .mad = {1, CLASS_SMP, 1, METHOD_GET},
						    .slid = lid_of(subnet, BETA),
						    .dlid = lid_of(subnet, ALPHA)});
	assert_true(traced(subnet, "lost at beta/1"));
}

/* --- when ----------------------------------------------------------------------- */

SUBNET_TEST(after_a_time_a_rule_comes_into_force)
{
	rules(subnet, "after 2s silent on gamma", "after 3s clear");
	pass(&subnet->fabric, 2 * SECOND - 1);
	assert_true(responds(subnet, GAMMA));
	pass(&subnet->fabric, 1);
	assert_false(responds(subnet, GAMMA));
	pass(&subnet->fabric, SECOND);
	assert_true(responds(subnet, GAMMA));
}

SUBNET_TEST(held_rules_wait_until_the_program_begins)
{
	fault_hold(&subnet->fabric);
	rules(subnet, "after 2s silent on beta", "after 2s slow 1s on gamma",
	      "after 2s slow 0s on gamma");
	pass(&subnet->fabric, 5 * SECOND);
	assert_true(responds(subnet, BETA));
	assert_int_equal(fault_begin(&subnet->fabric), 0);
	pass(&subnet->fabric, SECOND);
	assert_int_equal(fault_begin(&subnet->fabric), 0); /* of another program */
	pass(&subnet->fabric, SECOND - 1);
	assert_true(responds(subnet, BETA));
	pass(&subnet->fabric, 1);
	assert_true(responds(subnet, GAMMA)); /* in the order in which they were given */
	assert_false(responds(subnet, BETA));
}

SUBNET_TEST(a_held_rule_goes_with_the_fabric)
{
	fault_hold(&subnet->fabric);
	rule(subnet, "after 2s silent on gamma");
}

SUBNET_TEST(a_rule_that_still_waits_goes_with_the_fabric)
{
	rules(subnet, "after 2s silent on gamma", "reboot 1s on gamma");
}

/* A rule whose time has come, but whose timer did not run yet. */
SUBNET_TEST(a_rule_that_is_due_goes_with_the_fabric)
{
	rule(subnet, "after 0s silent on gamma");
}

SUBNET_TEST(cleared_all_is_well_again)
{
	rules(subnet, "loss 100%", "silent on gamma", "busy 100%", "link down on near/2",
	      "clear");
	for (uint32_t node = NEAR; node <= GAMMA; node++) {
		assert_true(responds(subnet, node));
		assert_int_equal(status_of_response(subnet), 0);
	}
	assert_int_equal(state_of(subnet, NEAR, 2)->state, PORT_ACTIVE);
}

static unsigned int forgotten;

static void note_forgotten(struct fabric *fabric)
{
	(void)fabric;
	forgotten++;
}

SUBNET_TEST(the_sa_forgets_once_for_each_rule_that_says_so)
{
	rule(subnet, "forget"); /* a fabric without an SA */
	subnet->fabric.sa_forgets = note_forgotten;
	forgotten = 0;
	rules(subnet, "forget", "after 2s forget");
	assert_int_equal(forgotten, 1);
	pass(&subnet->fabric, 3 * SECOND);
	assert_int_equal(forgotten, 2);
}

SUBNET_TEST(clear_ends_the_rules_of_nodes_and_pending_rules)
{
	subnet->fabric.device_changed = note_change;
	rules(subnet, "reboot 100s on gamma", "remove on beta", "after 1s silent on alpha");
	assert_false(responds(subnet, GAMMA));
	changed_node = NONE;
	rule(subnet, "clear");
	assert_int_equal(changed_node, BETA);
	assert_true(changed_to);
	assert_true(responds(subnet, GAMMA));
	pass(&subnet->fabric, 2 * SECOND);
	assert_true(responds(subnet, ALPHA));
}

SUBNET_TEST(a_reboot_lasts_as_long_as_the_longest_that_was_asked_for)
{
	rules(subnet, "reboot 1s on gamma", "clear", "reboot 3s on gamma",
	      "reboot 2s on gamma");
	pass(&subnet->fabric, 3 * SECOND - 1);
	assert_false(responds(subnet, GAMMA));
	pass(&subnet->fabric, 1);
	assert_true(responds(subnet, GAMMA));
}
