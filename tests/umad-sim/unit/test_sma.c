/* SPDX-License-Identifier: BSD-2-Clause */

/* Subnet management agents: reading and setting attributes, and which values are refused. */
#include "subnet_fixture.h"
#include "test.h"

#include <infiniband/mad_link.h>

/* Makes a Set with the current values, from the response to a Get. */
static uint8_t *change(struct subnet *subnet, uint32_t node, unsigned int attribute,
		       uint32_t modifier)
{
	uint8_t data[SMP_DATA];

	assert_int_equal(get(subnet, node, attribute, modifier), 0);
	memcpy(data, data_of_response(subnet), SMP_DATA);
	begin(subnet, CLASS_SMP, METHOD_SET, attribute, modifier);
	memcpy(subnet->mad + SMP_DATA, data, SMP_DATA);
	if (attribute == IB_ATTR_PORT_INFO) { /* 0: no change */
		mad_set_field(subnet->mad, SMP_DATA, IB_PORT_STATE_F, 0);
		mad_set_field(subnet->mad, SMP_DATA, IB_PORT_PHYS_STATE_F, 0);
	}
	return subnet->mad + SMP_DATA;
}

/* Changes one field of a PortInfo; the status. */
static unsigned int set_port(struct subnet *subnet, uint32_t node, uint32_t port,
			     enum MAD_FIELDS field, uint32_t value)
{
	mad_set_field(change(subnet, node, IB_ATTR_PORT_INFO, port), 0, field, value);
	return status_of(subnet, node);
}

/* --- attributes of a node ------------------------------------------------------- */

SUBNET_TEST(node_info_describes_a_node)
{
	assert_int_equal(get(subnet, BETA, IB_ATTR_NODE_INFO, 0), 0);
	assert_int_equal(FIELD(IB_NODE_TYPE_F), NODE_CA);
	assert_int_equal(FIELD(IB_NODE_NPORTS_F), 2);
	assert_int_equal(FIELD(IB_NODE_PARTITION_CAP_F), PKEY_COUNT);
	assert_true(mad_get_field64(data_of_response(subnet), 0, IB_NODE_GUID_F) == 0x2000);
	assert_true(mad_get_field64(data_of_response(subnet), 0, IB_NODE_PORT_GUID_F) ==
		    0x2001);
	assert_int_equal(get(subnet, FAR, IB_ATTR_NODE_INFO, 0), 0);
	assert_int_equal(FIELD(IB_NODE_TYPE_F), NODE_SWITCH);
	assert_int_equal(FIELD(IB_NODE_NPORTS_F), 6);
	assert_true(mad_get_field64(data_of_response(subnet), 0, IB_NODE_PORT_GUID_F) == 0x200);
}

SUBNET_TEST(a_clone_has_the_guids_of_another_node)
{
	struct rule_error error;

	assert_int_equal(fault_apply(&subnet->fabric, "clone beta on far", &error), 0);
	assert_int_equal(get(subnet, FAR, IB_ATTR_NODE_INFO, 0), 0);
	assert_int_equal(FIELD(IB_NODE_TYPE_F), NODE_SWITCH);
	assert_int_equal(FIELD(IB_NODE_NPORTS_F), 6);
	assert_true(mad_get_field64(data_of_response(subnet), 0, IB_NODE_GUID_F) == 0x2000);
	assert_int_equal(get(subnet, BETA, IB_ATTR_NODE_INFO, 0), 0);
	assert_true(mad_get_field64(data_of_response(subnet), 0, IB_NODE_GUID_F) == 0x2000);
	assert_int_equal(fault_apply(&subnet->fabric, "clear", &error), 0);
	assert_int_equal(fault_apply(&subnet->fabric, "clone far on beta", &error), 0);
	assert_int_equal(get(subnet, BETA, IB_ATTR_NODE_INFO, 0), 0);
	assert_int_equal(FIELD(IB_NODE_TYPE_F), NODE_CA);
	assert_true(mad_get_field64(data_of_response(subnet), 0, IB_NODE_PORT_GUID_F) == 0x200);
}

SUBNET_TEST(a_node_has_the_description_or_the_lid_of_another_node)
{
	struct rule_error error;
	uint32_t lid;

	assert_int_equal(fault_apply(&subnet->fabric, "name beta on far", &error), 0);
	assert_int_equal(get(subnet, FAR, IB_ATTR_NODE_DESC, 0), 0);
	assert_string_equal((char *)data_of_response(subnet), "beta");
	assert_int_equal(get(subnet, BETA, IB_ATTR_PORT_INFO, 0), 0);
	lid = FIELD(IB_PORT_LID_F);
	assert_int_equal(get(subnet, FAR, IB_ATTR_PORT_INFO, 0), 0);
	assert_int_not_equal(FIELD(IB_PORT_LID_F), lid);
	assert_int_equal(fault_apply(&subnet->fabric, "lid beta on far", &error), 0);
	assert_int_equal(get(subnet, FAR, IB_ATTR_PORT_INFO, 0), 0);
	assert_int_equal(FIELD(IB_PORT_LID_F), lid);
}

SUBNET_TEST(node_info_says_by_which_port_one_came)
{
	begin(subnet, CLASS_DIRECTED_SMP, METHOD_GET, IB_ATTR_NODE_INFO, 0);
	direct(subnet, (const uint8_t[]){1, 3, 2}, 3);
	assert_true(asked(subnet));
	assert_int_equal(FIELD(IB_NODE_LOCAL_PORT_F), 2);
	assert_true(mad_get_field64(data_of_response(subnet), 0, IB_NODE_PORT_GUID_F) ==
		    0x2002);
	assert_int_equal(get(subnet, NEAR, IB_ATTR_NODE_INFO, 0), 0);
	assert_int_equal(FIELD(IB_NODE_LOCAL_PORT_F), 1);
}

SUBNET_TEST(switch_info_is_a_switch_s)
{
	assert_int_equal(get(subnet, NEAR, IB_ATTR_SWITCH_INFO, 0), 0);
	assert_int_equal(FIELD(IB_SW_LINEAR_FDB_CAP_F), LID_COUNT - 1);
	assert_int_equal(FIELD(IB_SW_LINEAR_FDB_TOP_F), state_of(subnet, GAMMA, 1)->lid);
	assert_int_equal(FIELD(IB_SW_MCAST_FDB_CAP_F), 1024);
	assert_int_equal(get(subnet, BETA, IB_ATTR_SWITCH_INFO, 0), STATUS_BAD_ATTRIBUTE);
}

SUBNET_TEST(node_info_and_description_cannot_be_set)
{
	static const char name[SMP_DATA] = "beta";

	change(subnet, BETA, IB_ATTR_NODE_DESC, 0)[0] = 'B';
	assert_int_equal(status_of(subnet, BETA), STATUS_BAD_ATTRIBUTE);
	change(subnet, BETA, IB_ATTR_NODE_INFO, 0)[0] = 2;
	assert_int_equal(status_of(subnet, BETA), STATUS_BAD_ATTRIBUTE);
	assert_int_equal(get(subnet, BETA, IB_ATTR_NODE_DESC, 0), 0);
	assert_memory_equal(data_of_response(subnet), name, SMP_DATA);
}

SUBNET_TEST(an_unknown_attribute_is_unsupported)
{
	assert_int_equal(get(subnet, BETA, 0x00ff, 0), STATUS_BAD_ATTRIBUTE);
	begin(subnet, CLASS_SMP, METHOD_SET, 0x00ff, 0);
	assert_int_equal(status_of(subnet, BETA), STATUS_BAD_ATTRIBUTE);
}

SUBNET_TEST(another_version_is_a_bad_one)
{
	begin(subnet, CLASS_SMP, METHOD_GET, IB_ATTR_NODE_INFO, 0);
	subnet->mad[2] = 2;
	assert_int_equal(status_of(subnet, BETA), STATUS_BAD_VERSION);
	begin(subnet, CLASS_SMP, METHOD_GET, IB_ATTR_NODE_INFO, 0);
	subnet->mad[0] = 2;
	assert_int_equal(status_of(subnet, BETA), STATUS_BAD_VERSION);
}

SUBNET_TEST(another_method_is_unsupported)
{
	begin(subnet, CLASS_SMP, METHOD_GET_TABLE, IB_ATTR_NODE_INFO, 0);
	assert_int_equal(status_of(subnet, BETA), STATUS_BAD_METHOD);
	assert_int_equal(subnet->response->data[3], METHOD_GET | METHOD_RESPONSE);
}

SUBNET_TEST(a_trap_gets_no_response)
{
	begin(subnet, CLASS_SMP, METHOD_TRAP, IB_SA_ATTR_NOTICE, 0);
	assert_int_equal(status_of(subnet, BETA), 0xffff); /* IBA 13.4.9: no trap is due */
}

/* --- ports ---------------------------------------------------------------------- */

SUBNET_TEST(port_info_of_an_end_port_has_its_addresses)
{
	assert_int_equal(get(subnet, BETA, IB_ATTR_PORT_INFO, 1), 0);
	assert_int_equal(FIELD(IB_PORT_LID_F), lid_of(subnet, BETA));
	assert_int_equal(FIELD(IB_PORT_SMLID_F), lid_of(subnet, ALPHA));
	assert_true(mad_get_field64(data_of_response(subnet), 0, IB_PORT_GID_PREFIX_F) ==
		    DEFAULT_PREFIX);
	assert_int_equal(FIELD(IB_PORT_STATE_F), PORT_ACTIVE);
	assert_int_equal(FIELD(IB_PORT_PHYS_STATE_F), PHYS_LINK_UP);
	assert_int_equal(FIELD(IB_PORT_LINK_WIDTH_ACTIVE_F), 2);
	assert_int_equal(FIELD(IB_PORT_LINK_SPEED_ACTIVE_F), 4);
	assert_int_equal(FIELD(IB_PORT_LINK_SPEED_EXT_ACTIVE_F), 2);
	assert_int_equal(FIELD(IB_PORT_NEIGHBOR_MTU_F), 5);
	assert_int_equal(FIELD(IB_PORT_LOCAL_PORT_F), 1);
}

SUBNET_TEST(port_info_of_a_switch_s_cabled_port_has_no_addresses)
{
	assert_int_equal(get(subnet, NEAR, IB_ATTR_PORT_INFO, 3), 0);
	assert_int_equal(FIELD(IB_PORT_LID_F), 0);
	assert_int_equal(FIELD(IB_PORT_CAPMASK_F), 0);
	assert_int_equal(FIELD(IB_PORT_STATE_F), PORT_ACTIVE);
	assert_int_equal(get(subnet, NEAR, IB_ATTR_PORT_INFO, 0), 0);
	assert_int_equal(FIELD(IB_PORT_LID_F), lid_of(subnet, NEAR));
}

SUBNET_TEST(port_0_of_a_ca_is_the_port_one_came_by)
{
	begin(subnet, CLASS_DIRECTED_SMP, METHOD_GET, IB_ATTR_PORT_INFO, 0);
	direct(subnet, (const uint8_t[]){1, 3, 2}, 3);
	assert_true(asked(subnet));
	assert_int_equal(FIELD(IB_PORT_LID_F), state_of(subnet, BETA, 2)->lid);
	assert_int_equal(FIELD(IB_PORT_LOCAL_PORT_F), 2);
}

SUBNET_TEST(a_port_with_a_fec_mode_has_port_info_extended)
{
	assert_int_not_equal(get(subnet, NEAR, IB_ATTR_PORT_INFO_EXT, 3), 0);
	rule(subnet, "fec-mode 2 on near/3");
	assert_int_equal(get(subnet, NEAR, IB_ATTR_PORT_INFO_EXT, 3), 0);
	assert_int_equal(FIELD(IB_PORT_EXT_FEC_MODE_ACTIVE_F), 2);
	assert_int_equal(FIELD(IB_PORT_EXT_FDR_FEC_MODE_SUPPORTED_F), 0xf);
	assert_int_equal(FIELD(IB_PORT_EXT_FDR_FEC_MODE_ENABLED_F), 1 << 2);
	assert_int_equal(FIELD(IB_PORT_EXT_EDR_FEC_MODE_ENABLED_F), 1 << 2);
	assert_int_not_equal(get(subnet, NEAR, IB_ATTR_PORT_INFO_EXT, 2), 0);
	assert_int_equal(get(subnet, NEAR, IB_ATTR_PORT_INFO, 0), 0);
	assert_true(FIELD(IB_PORT_CAPMASK2_F) & MAD_PORT_CAP2_PORT_INFO_EXTENDED);
	assert_int_equal(get(subnet, FAR, IB_ATTR_PORT_INFO, 0), 0);
	assert_false(FIELD(IB_PORT_CAPMASK2_F) & MAD_PORT_CAP2_PORT_INFO_EXTENDED);
}

SUBNET_TEST(a_port_that_does_not_exist_is_a_bad_value)
{
	assert_int_equal(get(subnet, BETA, IB_ATTR_PORT_INFO, 3), STATUS_BAD_VALUE);
	begin(subnet, CLASS_SMP, METHOD_SET, IB_ATTR_PORT_INFO, 7);
	assert_int_equal(status_of(subnet, NEAR), STATUS_BAD_VALUE);
}

SUBNET_TEST(an_uncabled_port_claims_no_width_that_it_does_not_support)
{
	assert_int_equal(get(subnet, NEAR, IB_ATTR_PORT_INFO, 5), 0);
	assert_int_equal(FIELD(IB_PORT_STATE_F), PORT_DOWN);
	assert_int_equal(FIELD(IB_PORT_PHYS_STATE_F), PHYS_POLLING);
	assert_int_equal(
		FIELD(IB_PORT_LINK_WIDTH_ACTIVE_F) & ~FIELD(IB_PORT_LINK_WIDTH_SUPPORTED_F), 0);
}

SUBNET_TEST(a_new_lid_replaces_the_old_one)
{
	uint16_t old = lid_of(subnet, GAMMA);

	mad_set_field(change(subnet, GAMMA, IB_ATTR_PORT_INFO, 1), 0, IB_PORT_LID_F, 0x100);
	mad_set_field(subnet->mad, SMP_DATA, IB_PORT_LMC_F, 3);
	assert_int_equal(status_of(subnet, GAMMA), 0);
	assert_int_equal(lid_of(subnet, GAMMA), 0x100);
	assert_int_equal(lid_owner(&subnet->fabric, old), NONE);
	for (uint16_t lid = 0x100; lid < 0x108; lid++)
		assert_int_equal(lid_owner(&subnet->fabric, lid), port_of(subnet, GAMMA, 1));
	assert_int_equal(lid_owner(&subnet->fabric, 0x108), NONE);
}

SUBNET_TEST(lids_that_cannot_be_are_refused)
{
	uint16_t lid = lid_of(subnet, GAMMA);

	assert_int_equal(set_port(subnet, GAMMA, 1, IB_PORT_LID_F, 0), STATUS_BAD_VALUE);
	assert_int_equal(set_port(subnet, GAMMA, 1, IB_PORT_LID_F, 0xc000), STATUS_BAD_VALUE);
	assert_int_equal(set_port(subnet, GAMMA, 1, IB_PORT_LID_F, 0xffff), STATUS_BAD_VALUE);
	mad_set_field(change(subnet, GAMMA, IB_ATTR_PORT_INFO, 1), 0, IB_PORT_LMC_F, 2);
	mad_set_field(subnet->mad, SMP_DATA, IB_PORT_LID_F, 0x102);
	assert_int_equal(status_of(subnet, GAMMA), STATUS_BAD_VALUE);
	assert_int_equal(lid_of(subnet, GAMMA), lid);
}

SUBNET_TEST(values_that_a_manager_sets_stay)
{
	mad_set_field(change(subnet, BETA, IB_ATTR_PORT_INFO, 1), 0, IB_PORT_SMLID_F, 0x77);
	mad_set_field(subnet->mad, SMP_DATA, IB_PORT_SMSL_F, 3);
	mad_set_field(subnet->mad, SMP_DATA, IB_PORT_SUBN_TIMEOUT_F, 20);
	mad_set_field(subnet->mad, SMP_DATA, IB_PORT_NEIGHBOR_MTU_F, 4);
	mad_set_field(subnet->mad, SMP_DATA, IB_PORT_OPER_VLS_F, 2);
	mad_set_field(subnet->mad, SMP_DATA, IB_PORT_HOQ_LIFE_F, 9);
	mad_set_field(subnet->mad, SMP_DATA, IB_PORT_LINK_WIDTH_ENABLED_F, 1);
	mad_set_field64(subnet->mad, SMP_DATA, IB_PORT_GID_PREFIX_F, 0xfec0000000000000);
	assert_int_equal(status_of(subnet, BETA), 0);
	assert_int_equal(get(subnet, BETA, IB_ATTR_PORT_INFO, 1), 0);
	assert_int_equal(FIELD(IB_PORT_SMLID_F), 0x77);
	assert_int_equal(FIELD(IB_PORT_SMSL_F), 3);
	assert_int_equal(FIELD(IB_PORT_SUBN_TIMEOUT_F), 20);
	assert_int_equal(FIELD(IB_PORT_NEIGHBOR_MTU_F), 4);
	assert_int_equal(FIELD(IB_PORT_OPER_VLS_F), 2);
	assert_int_equal(FIELD(IB_PORT_HOQ_LIFE_F), 9);
	assert_int_equal(FIELD(IB_PORT_LINK_WIDTH_ENABLED_F), 1);
	assert_true(gid_prefix(&subnet->fabric, port_of(subnet, BETA, 1)) ==
		    0xfec0000000000000);
}

SUBNET_TEST(values_that_a_port_does_not_support_are_refused)
{
	static const struct {
		enum MAD_FIELDS field;
		uint32_t value;
	} bad[] = {
		{IB_PORT_LINK_WIDTH_ENABLED_F, 8},
		{IB_PORT_LINK_SPEED_ENABLED_F, 8},
		{IB_PORT_LINK_DOWN_DEF_F, 3},
		{IB_PORT_NEIGHBOR_MTU_F, 6},
		{IB_PORT_OPER_VLS_F, 5},
		{IB_PORT_PHYS_STATE_F, 4},
		{IB_PORT_STATE_F, 5},
		{IB_PORT_STATE_F, PORT_INIT},
	};

	for (unsigned int i = 0; i < COUNT_OF(bad); i++)
		assert_int_equal(set_port(subnet, NEAR, 2, bad[i].field, bad[i].value),
				 STATUS_BAD_VALUE);
}

SUBNET_TEST(all_ones_enable_all_that_is_supported)
{
	assert_int_equal(set_port(subnet, NEAR, 2, IB_PORT_LINK_WIDTH_ENABLED_F, 1), 0);
	assert_int_equal(set_port(subnet, NEAR, 2, IB_PORT_LINK_WIDTH_ENABLED_F, 255), 0);
	assert_int_equal(FIELD(IB_PORT_LINK_WIDTH_ENABLED_F), 3);
	assert_int_equal(set_port(subnet, NEAR, 2, IB_PORT_LINK_SPEED_ENABLED_F, 15), 0);
	assert_int_equal(FIELD(IB_PORT_LINK_SPEED_ENABLED_F), 7);
	assert_int_equal(set_port(subnet, NEAR, 2, IB_PORT_LINK_WIDTH_ENABLED_F, 0), 0);
	assert_int_equal(FIELD(IB_PORT_LINK_WIDTH_ENABLED_F), 3);
}

/* --- states of a link ----------------------------------------------------------- */

SUBNET_TEST(a_port_goes_from_init_to_armed_to_active)
{
	assert_int_equal(state_of(subnet, NEAR, 2)->state, PORT_ACTIVE);
	assert_int_equal(set_port(subnet, NEAR, 2, IB_PORT_STATE_F, PORT_DOWN), 0);
	state_of(subnet, NEAR, 2)->state = PORT_INIT; /* undo the built-in manager's work */
	assert_int_equal(set_port(subnet, NEAR, 2, IB_PORT_STATE_F, PORT_ARMED), 0);
	assert_int_equal(FIELD(IB_PORT_STATE_F), PORT_ARMED);
	assert_int_equal(set_port(subnet, NEAR, 2, IB_PORT_STATE_F, PORT_ACTIVE), 0);
	assert_int_equal(FIELD(IB_PORT_STATE_F), PORT_ACTIVE);
}

SUBNET_TEST(a_port_in_init_does_not_become_active_at_once)
{
	state_of(subnet, NEAR, 2)->state = PORT_INIT;
	assert_int_equal(set_port(subnet, NEAR, 2, IB_PORT_STATE_F, PORT_ACTIVE),
			 STATUS_BAD_VALUE);
	assert_int_equal(state_of(subnet, NEAR, 2)->state, PORT_INIT);
}

SUBNET_TEST(a_port_that_is_down_cannot_be_armed)
{
	assert_int_equal(set_port(subnet, NEAR, 5, IB_PORT_STATE_F, PORT_ARMED),
			 STATUS_BAD_VALUE);
	assert_int_equal(state_of(subnet, NEAR, 5)->state, PORT_DOWN);
}

SUBNET_TEST(down_has_both_ends_train_again)
{
	uint8_t expected = PORT_INIT;

	subnet->fabric.sm_port = NONE; /* no manager activates the link then */
	assert_int_equal(set_port(subnet, NEAR, 2, IB_PORT_STATE_F, PORT_DOWN), 0);
	assert_int_equal(FIELD(IB_PORT_STATE_F), expected);
	assert_int_equal(state_of(subnet, BETA, 1)->state, expected);
	assert_int_equal(state_of(subnet, BETA, 1)->phys_state, PHYS_LINK_UP);
	assert_true(counter_get(&subnet->fabric, port_of(subnet, BETA, 1), COUNT_LINK_DOWNED) ==
		    1);
}

SUBNET_TEST(the_built_in_manager_activates_trained_links)
{
	assert_int_equal(set_port(subnet, NEAR, 2, IB_PORT_STATE_F, PORT_DOWN), 0);
	assert_int_equal(FIELD(IB_PORT_STATE_F), PORT_ACTIVE);
	assert_int_equal(state_of(subnet, BETA, 1)->state, PORT_ACTIVE);
}

SUBNET_TEST(a_disabled_port_takes_its_peer_down_until_it_polls)
{
	assert_int_equal(set_port(subnet, NEAR, 2, IB_PORT_PHYS_STATE_F, PHYS_DISABLED), 0);
	assert_int_equal(FIELD(IB_PORT_STATE_F), PORT_DOWN);
	assert_int_equal(FIELD(IB_PORT_PHYS_STATE_F), PHYS_DISABLED);
	assert_int_equal(state_of(subnet, BETA, 1)->state, PORT_DOWN);
	assert_int_equal(state_of(subnet, BETA, 1)->phys_state, PHYS_POLLING);
	assert_int_equal(set_port(subnet, NEAR, 2, IB_PORT_PHYS_STATE_F, PHYS_POLLING), 0);
	assert_int_equal(FIELD(IB_PORT_PHYS_STATE_F), PHYS_LINK_UP);
	assert_int_equal(state_of(subnet, BETA, 1)->phys_state, PHYS_LINK_UP);
}

SUBNET_TEST(a_peer_that_polls_does_not_wake_a_disabled_port)
{
	assert_int_equal(set_port(subnet, NEAR, 4, IB_PORT_PHYS_STATE_F, PHYS_DISABLED), 0);
	rules(subnet, "link down on near/4", "link up on near/4");
	assert_int_equal(state_of(subnet, NEAR, 4)->phys_state, PHYS_DISABLED);
	assert_int_equal(state_of(subnet, FAR, 4)->phys_state, PHYS_POLLING);
}

SUBNET_TEST(a_change_of_a_link_is_noted_until_it_is_cleared)
{
	assert_int_equal(get(subnet, NEAR, IB_ATTR_SWITCH_INFO, 0), 0);
	assert_int_equal(FIELD(IB_SW_STATE_CHANGE_F), 0);
	rule(subnet, "link down on near/2");
	change(subnet, NEAR, IB_ATTR_SWITCH_INFO, 0);
	assert_int_equal(FIELD(IB_SW_STATE_CHANGE_F), 1);
	assert_int_equal(status_of(subnet, NEAR), 0);
	assert_int_equal(FIELD(IB_SW_STATE_CHANGE_F), 0);
}

SUBNET_TEST(linear_fdb_top_is_set_within_bounds)
{
	mad_set_field(change(subnet, NEAR, IB_ATTR_SWITCH_INFO, 0), 0, IB_SW_LINEAR_FDB_TOP_F,
		      0x123);
	assert_int_equal(status_of(subnet, NEAR), 0);
	assert_int_equal(FIELD(IB_SW_LINEAR_FDB_TOP_F), 0x123);
	mad_set_field(change(subnet, NEAR, IB_ATTR_SWITCH_INFO, 0), 0, IB_SW_LINEAR_FDB_TOP_F,
		      LID_COUNT);
	assert_int_equal(status_of(subnet, NEAR), STATUS_BAD_VALUE);
}
