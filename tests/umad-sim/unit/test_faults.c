/* SPDX-License-Identifier: BSD-2-Clause */

/* Fault rules: their effect on nodes and links, where and when they apply. */
#include "subnet_fixture.h"

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

static void a_slow_node_takes_its_time_for_each_response(void **state)
{
	struct subnet *subnet = *state;

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

static void smp_time_is_one_after_the_other(void **state)
{
	struct subnet *subnet = *state;

	rule(subnet, "smp-time 10us on gamma");
	burst(subnet, GAMMA, 3);
	pass(&subnet->fabric, 10 * MICROSECOND);
	assert_int_equal(subnet->smps.count, 1);
	pass(&subnet->fabric, 10 * MICROSECOND - 1);
	assert_int_equal(subnet->smps.count, 1);
	pass(&subnet->fabric, 1);
	assert_int_equal(subnet->smps.count, 2);
	pass(&subnet->fabric, 10 * MICROSECOND);
	assert_int_equal(subnet->smps.count, 3);
}

static void smp_time_is_not_for_general_services(void **state)
{
	struct subnet *subnet = *state;

	rule(subnet, "smp-time 10us on gamma");
	assert_true(responds_to_gmp(subnet, GAMMA));
	assert_false(responds(subnet, GAMMA));
}

static void a_queue_for_smps_that_is_full_drops_more(void **state)
{
	struct subnet *subnet = *state;

	start_trace(subnet);
	rule(subnet, "smp-time 10us");
	rule(subnet, "smp-queue 2 on gamma");
	burst(subnet, GAMMA, 5);
	assert_true(traced(subnet, "dropped: buffer full at gamma/1"));
	pass(&subnet->fabric, SECOND);
	assert_int_equal(subnet->smps.count, 3); /* one is processed, two wait */
	burst(subnet, BETA, 5);
	pass(&subnet->fabric, SECOND);
	assert_int_equal(subnet->smps.count, 5);
}

static void a_queue_that_drained_takes_more(void **state)
{
	struct subnet *subnet = *state;

	rule(subnet, "smp-time 10us");
	rule(subnet, "smp-queue 1");
	burst(subnet, GAMMA, 2);
	pass(&subnet->fabric, 10 * MICROSECOND);
	ask_node(subnet, GAMMA, CLASS_SMP);
	assert_int_equal(send_by(subnet, &subnet->smps, UINT32_MAX), 0);
	pass(&subnet->fabric, SECOND);
	assert_int_equal(subnet->smps.count, 3);
}

static void a_queue_without_smp_time_never_fills(void **state)
{
	struct subnet *subnet = *state;

	rule(subnet, "smp-queue 1");
	burst(subnet, GAMMA, 5);
	assert_int_equal(subnet->smps.count, 5);
}

static void a_silent_node_does_not_respond_but_receives_responses(void **state)
{
	struct subnet *subnet = *state;

	rule(subnet, "silent on gamma");
	assert_false(responds(subnet, GAMMA));
	assert_false(responds_to_gmp(subnet, GAMMA));
	assert_true(responds(subnet, BETA));
	rule(subnet, "silent on alpha");
	assert_true(responds(subnet, BETA));
}

static void a_busy_node_says_so(void **state)
{
	struct subnet *subnet = *state;

	rule(subnet, "busy 100% on gamma");
	assert_true(responds(subnet, GAMMA));
	assert_int_equal(status_of_response(subnet), STATUS_BUSY);
	assert_int_equal(subnet->response->data[3], METHOD_GET | METHOD_RESPONSE);
	assert_true(responds_to_gmp(subnet, GAMMA));
	assert_int_equal(status_of_response(subnet), STATUS_BUSY);
	assert_true(responds(subnet, BETA));
	assert_int_equal(status_of_response(subnet), 0);
}

static void a_node_may_be_busy_now_and_then(void **state)
{
	struct subnet *subnet = *state;
	unsigned int busy = 0;

	rule(subnet, "busy 50%");
	for (unsigned int i = 0; i < 200; i++) {
		assert_true(responds(subnet, GAMMA));
		busy += status_of_response(subnet) == STATUS_BUSY;
	}
	assert_in_range(busy, 60, 140);
}

static void a_redirection_says_where_to_ask(void **state)
{
	struct subnet *subnet = *state;
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
}

static void smps_are_not_redirected(void **state)
{
	struct subnet *subnet = *state;

	rule(subnet, "redirect beta on gamma");
	assert_true(responds(subnet, GAMMA));
	assert_int_equal(status_of_response(subnet), 0);
}

static void to_be_redirected_to_a_switch_leads_to_its_port_0(void **state)
{
	struct subnet *subnet = *state;

	rule(subnet, "redirect far on gamma");
	assert_true(responds_to_gmp(subnet, GAMMA));
	assert_int_equal(get16(data_of_response(subnet) + 28), lid_of(subnet, FAR));
}

/* --- events --------------------------------------------------------------------- */

static void a_node_that_reboots_is_gone_for_so_long(void **state)
{
	struct subnet *subnet = *state;

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

static void a_reboot_resets_the_settings_of_ports(void **state)
{
	struct subnet *subnet = *state;
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

static void a_reboot_resets_values_set_by_gmps(void **state)
{
	struct subnet *subnet = *state;
	struct gmp_place place = {.node = GAMMA, .attribute = 0x20, .class = VENDOR_CLASS};
	uint8_t bytes[4] = {1, 2, 3, 4};

	assert_int_equal(gmp_keep(&subnet->fabric, &place, bytes, 4), 0);
	rule(subnet, "reboot 1ms on gamma");
	assert_false(gmp_recall(&subnet->fabric, &place, bytes, 4));
}

static void a_bare_switch_that_reboots_forgets_lids_and_tables(void **state)
{
	struct subnet *subnet = *state;
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

static void a_link_goes_down_and_up_at_both_ends(void **state)
{
	struct subnet *subnet = *state;

	rule(subnet, "link down on far/1");
	assert_int_equal(state_of(subnet, FAR, 1)->state, PORT_DOWN);
	assert_int_equal(state_of(subnet, GAMMA, 1)->state, PORT_DOWN);
	assert_int_equal(state_of(subnet, GAMMA, 1)->phys_state, PHYS_POLLING);
	assert_false(responds(subnet, GAMMA));
	rule(subnet, "link up on gamma/1"); /* the other end of the link */
	assert_int_equal(state_of(subnet, FAR, 1)->state, PORT_ACTIVE);
	assert_true(responds(subnet, GAMMA));
}

static void all_links_of_a_node_go_down(void **state)
{
	struct subnet *subnet = *state;

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

static void devices_are_removed_and_added(void **state)
{
	struct subnet *subnet = *state;

	subnet->fabric.device_changed = note_change;
	changed_node = NONE;
	rule(subnet, "remove on beta");
	assert_int_equal(changed_node, BETA);
	assert_false(changed_to);
	rule(subnet, "add on beta");
	assert_true(changed_to);
}

/* --- where ---------------------------------------------------------------------- */

static void without_on_a_rule_is_for_all(void **state)
{
	struct subnet *subnet = *state;

	rule(subnet, "busy 100%");
	for (uint32_t node = NEAR; node <= GAMMA; node++) {
		assert_true(responds(subnet, node));
		assert_int_equal(status_of_response(subnet), STATUS_BUSY);
	}
}

static void the_later_rule_wins(void **state)
{
	struct subnet *subnet = *state;

	rule(subnet, "loss 100%");
	rule(subnet, "loss 0% on near");
	assert_true(responds(subnet, BETA)); /* all links of BETA are at near */
	assert_false(responds(subnet, GAMMA));
	rule(subnet, "loss 100%");
	assert_false(responds(subnet, BETA));
}

static void rules_that_later_ones_replace_are_not_kept(void **state)
{
	struct subnet *subnet = *state;

	for (int i = 0; i < 100; i++) {
		rule(subnet, "loss 1%");
		rule(subnet, "slow 1ms on beta");
		rule(subnet, "slow 2ms on gamma");
		rule(subnet, "loss 0% on near/2");
		rule(subnet, "loss 2% on near");
	}
	assert_int_equal(subnet->fabric.faults->count, 5);
}

static void the_later_rule_wins_whichever_end_it_names(void **state)
{
	struct subnet *subnet = *state;

	rule(subnet, "loss 100% on beta/1");
	rule(subnet, "loss 0% on near/2");
	assert_true(responds(subnet, BETA));
	rule(subnet, "loss 100% on beta/1");
	assert_false(responds(subnet, BETA));
}

static void a_rule_for_a_link_holds_in_both_directions(void **state)
{
	struct subnet *subnet = *state;

	start_trace(subnet);
	rule(subnet, "loss 100% on beta/1");
	assert_false(responds(subnet, BETA));
	assert_true(traced(subnet, "1 lost at near/2"));
	assert_false(traced(subnet, "lost at beta/1"));
	rule(subnet, "clear");
	rule(subnet, "loss 100% on near/2");
	wire_send(&subnet->fabric, &(struct packet){.from = port_of(subnet, BETA, 1),
						    .mad = {1, CLASS_SMP, 1, METHOD_GET},
						    .slid = lid_of(subnet, BETA),
						    .dlid = lid_of(subnet, ALPHA)});
	assert_true(traced(subnet, "lost at beta/1"));
}

static void a_rule_for_a_port_is_not_for_the_others(void **state)
{
	struct subnet *subnet = *state;

	rule(subnet, "loss 100% on near/2");
	assert_false(responds(subnet, BETA));
	assert_true(responds(subnet, GAMMA));
}

/* --- when ----------------------------------------------------------------------- */

static void after_a_time_a_rule_comes_into_force(void **state)
{
	struct subnet *subnet = *state;

	rule(subnet, "after 2s silent on gamma");
	rule(subnet, "after 3s clear");
	pass(&subnet->fabric, 2 * SECOND - 1);
	assert_true(responds(subnet, GAMMA));
	pass(&subnet->fabric, 1);
	assert_false(responds(subnet, GAMMA));
	pass(&subnet->fabric, SECOND);
	assert_true(responds(subnet, GAMMA));
}

static void held_rules_wait_until_the_program_begins(void **state)
{
	struct subnet *subnet = *state;

	fault_hold(&subnet->fabric);
	rule(subnet, "after 2s silent on beta");
	rule(subnet, "after 2s slow 1s on gamma");
	rule(subnet, "after 2s slow 0s on gamma");
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

static void a_held_rule_goes_with_the_fabric(void **state)
{
	struct subnet *subnet = *state;

	fault_hold(&subnet->fabric);
	rule(subnet, "after 2s silent on gamma");
}

static void a_rule_that_still_waits_goes_with_the_fabric(void **state)
{
	struct subnet *subnet = *state;

	rule(subnet, "after 2s silent on gamma");
	rule(subnet, "reboot 1s on gamma");
}

/* A rule whose time has come, but whose timer did not run yet. */
static void a_rule_that_is_due_goes_with_the_fabric(void **state)
{
	struct subnet *subnet = *state;

	rule(subnet, "after 0s silent on gamma");
}

static void cleared_all_is_well_again(void **state)
{
	struct subnet *subnet = *state;

	rule(subnet, "loss 100%");
	rule(subnet, "silent on gamma");
	rule(subnet, "busy 100%");
	rule(subnet, "link down on near/2");
	rule(subnet, "clear");
	for (uint32_t node = NEAR; node <= GAMMA; node++) {
		assert_true(responds(subnet, node));
		assert_int_equal(status_of_response(subnet), 0);
	}
	assert_int_equal(state_of(subnet, NEAR, 2)->state, PORT_ACTIVE);
}

static void clear_ends_the_rules_of_nodes_and_pending_rules(void **state)
{
	struct subnet *subnet = *state;

	subnet->fabric.device_changed = note_change;
	rule(subnet, "reboot 100s on gamma");
	rule(subnet, "remove on beta");
	rule(subnet, "after 1s silent on alpha");
	assert_false(responds(subnet, GAMMA));
	changed_node = NONE;
	rule(subnet, "clear");
	assert_int_equal(changed_node, BETA);
	assert_true(changed_to);
	assert_true(responds(subnet, GAMMA));
	pass(&subnet->fabric, 2 * SECOND);
	assert_true(responds(subnet, ALPHA));
}

static void a_reboot_lasts_as_long_as_the_longest_that_was_asked_for(void **state)
{
	struct subnet *subnet = *state;

	rule(subnet, "reboot 1s on gamma");
	rule(subnet, "clear");
	rule(subnet, "reboot 3s on gamma");
	rule(subnet, "reboot 2s on gamma");
	pass(&subnet->fabric, 3 * SECOND - 1);
	assert_false(responds(subnet, GAMMA));
	pass(&subnet->fabric, 1);
	assert_true(responds(subnet, GAMMA));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define BARE(name) cmocka_unit_test_setup_teardown(name, set_up_bare, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_slow_node_takes_its_time_for_each_response),
		TEST(smp_time_is_one_after_the_other),
		TEST(smp_time_is_not_for_general_services),
		TEST(a_queue_for_smps_that_is_full_drops_more),
		TEST(a_queue_that_drained_takes_more),
		TEST(a_queue_without_smp_time_never_fills),
		TEST(a_silent_node_does_not_respond_but_receives_responses),
		TEST(a_busy_node_says_so),
		TEST(a_node_may_be_busy_now_and_then),
		TEST(a_redirection_says_where_to_ask),
		TEST(smps_are_not_redirected),
		TEST(to_be_redirected_to_a_switch_leads_to_its_port_0),
		TEST(a_node_that_reboots_is_gone_for_so_long),
		TEST(a_reboot_resets_the_settings_of_ports),
		TEST(a_reboot_resets_values_set_by_gmps),
		BARE(a_bare_switch_that_reboots_forgets_lids_and_tables),
		TEST(a_link_goes_down_and_up_at_both_ends),
		TEST(all_links_of_a_node_go_down),
		TEST(devices_are_removed_and_added),
		TEST(without_on_a_rule_is_for_all),
		TEST(the_later_rule_wins),
		TEST(rules_that_later_ones_replace_are_not_kept),
		TEST(the_later_rule_wins_whichever_end_it_names),
		TEST(a_rule_for_a_link_holds_in_both_directions),
		TEST(a_rule_for_a_port_is_not_for_the_others),
		TEST(after_a_time_a_rule_comes_into_force),
		TEST(held_rules_wait_until_the_program_begins),
		TEST(a_held_rule_goes_with_the_fabric),
		TEST(a_rule_that_still_waits_goes_with_the_fabric),
		TEST(cleared_all_is_well_again),
		TEST(clear_ends_the_rules_of_nodes_and_pending_rules),
		TEST(a_reboot_lasts_as_long_as_the_longest_that_was_asked_for),
		TEST(a_rule_that_is_due_goes_with_the_fabric),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
