/* SPDX-License-Identifier: BSD-2-Clause */

/* Subnet management agents: tables, who may change them (M_Key), and traps. */
#include "subnet_fixture.h"
#include "test.h"

#include "traps.h"

#define MKEY  0x1122334455667788ULL
#define WRONG 0x8877665544332211ULL

/* Sets an attribute to 64 consecutive values, from `first` on. */
static unsigned int set(struct subnet *subnet, uint32_t node, unsigned int attribute,
			uint32_t modifier, uint8_t first)
{
	begin(subnet, CLASS_SMP, METHOD_SET, attribute, modifier);
	for (unsigned int i = 0; i < SMP_DATA; i++)
		subnet->mad[SMP_DATA + i] = (uint8_t)(first + i);
	return status_of(subnet, node);
}

/* Whether a Get returns the values of set(). */
static bool holds(struct subnet *subnet, uint32_t node, unsigned int attribute,
		  uint32_t modifier, uint8_t first, unsigned int length)
{
	unsigned int same = 0;

	assert_int_equal(get(subnet, node, attribute, modifier), 0);
	while (same < length && data_of_response(subnet)[same] == (uint8_t)(first + same))
		same++;
	return same == length;
}

/* --- tables --------------------------------------------------------------------- */

SUBNET_TEST(guid_info_begins_with_the_port_s_guid_which_cannot_be_set)
{
	assert_int_equal(set(subnet, GAMMA, IB_ATTR_GUID_INFO, 0, 1), 0);
	assert_true(get64(data_of_response(subnet)) == 0x3001);
	assert_true(get64(data_of_response(subnet) + 8) == 0x090a0b0c0d0e0f10);
	assert_int_equal(get(subnet, GAMMA, IB_ATTR_GUID_INFO, 1), STATUS_BAD_VALUE);
	assert_int_equal(set(subnet, GAMMA, IB_ATTR_GUID_INFO, 1, 1), STATUS_BAD_VALUE);
}

SUBNET_TEST(the_p_key_table_has_the_default_key_and_set_keys)
{
	assert_int_equal(get(subnet, GAMMA, IB_ATTR_PKEY_TBL, 0), 0);
	assert_int_equal(get16(data_of_response(subnet)), 0xffff);
	assert_int_equal(get16(data_of_response(subnet) + 2), 0);
	assert_int_equal(set(subnet, GAMMA, IB_ATTR_PKEY_TBL, 3, 0x40), 0);
	assert_true(holds(subnet, GAMMA, IB_ATTR_PKEY_TBL, 3, 0x40, 64));
	assert_int_equal(pkey_at(&subnet->fabric, port_of(subnet, GAMMA, 1), 96), 0x4041);
	assert_int_equal(get(subnet, GAMMA, IB_ATTR_PKEY_TBL, 4), STATUS_BAD_VALUE);
	assert_int_equal(set(subnet, GAMMA, IB_ATTR_PKEY_TBL, 4, 0), STATUS_BAD_VALUE);
}

SUBNET_TEST(a_switch_has_a_p_key_table_a_port)
{
	assert_int_equal(set(subnet, NEAR, IB_ATTR_PKEY_TBL, 3U << 16 | 1, 9), 0);
	assert_true(holds(subnet, NEAR, IB_ATTR_PKEY_TBL, 3U << 16 | 1, 9, 64));
	assert_false(holds(subnet, NEAR, IB_ATTR_PKEY_TBL, 4U << 16 | 1, 9, 64));
	assert_int_equal(get(subnet, NEAR, IB_ATTR_PKEY_TBL, 7U << 16), STATUS_BAD_VALUE);
}

SUBNET_TEST(sl_to_vl_maps_are_by_input_and_output_port)
{
	assert_int_equal(get(subnet, NEAR, IB_ATTR_SLVL_TABLE, 1U << 8 | 2), 0);
	assert_int_equal(data_of_response(subnet)[0], 0x01);
	assert_int_equal(set(subnet, NEAR, IB_ATTR_SLVL_TABLE, 1U << 8 | 2, 0x70), 0);
	assert_int_equal(set(subnet, NEAR, IB_ATTR_SLVL_TABLE, 3U << 8 | 2, 0x10), 0);
	assert_true(holds(subnet, NEAR, IB_ATTR_SLVL_TABLE, 1U << 8 | 2, 0x70, 8));
	assert_true(holds(subnet, NEAR, IB_ATTR_SLVL_TABLE, 3U << 8 | 2, 0x10, 8));
	assert_false(holds(subnet, NEAR, IB_ATTR_SLVL_TABLE, 2U << 8 | 2, 0x70, 8));
	assert_false(holds(subnet, NEAR, IB_ATTR_SLVL_TABLE, 1U << 8 | 3, 0x70, 8));
	assert_int_equal(get(subnet, NEAR, IB_ATTR_SLVL_TABLE, 1U << 8 | 7), STATUS_BAD_VALUE);
}

SUBNET_TEST(a_ca_s_port_has_one_sl_to_vl_map)
{
	assert_int_equal(set(subnet, GAMMA, IB_ATTR_SLVL_TABLE, 0, 0x20), 0);
	assert_true(holds(subnet, GAMMA, IB_ATTR_SLVL_TABLE, 0, 0x20, 8));
}

SUBNET_TEST(vl_arbitration_has_blocks_1_to_4)
{
	for (uint32_t block = 1; block <= 4; block++)
		assert_int_equal(set(subnet, NEAR, IB_ATTR_VL_ARBITRATION, block << 16 | 2,
				     (uint8_t)(block * 16)),
				 0);
	for (uint32_t block = 1; block <= 4; block++)
		assert_true(holds(subnet, NEAR, IB_ATTR_VL_ARBITRATION, block << 16 | 2,
				  (uint8_t)(block * 16), 64));
	assert_int_equal(get(subnet, NEAR, IB_ATTR_VL_ARBITRATION, 2), STATUS_BAD_VALUE);
	assert_int_equal(set(subnet, NEAR, IB_ATTR_VL_ARBITRATION, 5U << 16 | 2, 0),
			 STATUS_BAD_VALUE);
	assert_int_equal(get(subnet, NEAR, IB_ATTR_VL_ARBITRATION, 1U << 16 | 3), 0);
	assert_int_equal(data_of_response(subnet)[5], 0);
}

SUBNET_TEST(the_linear_table_has_768_blocks_of_a_switch)
{
	assert_int_equal(get(subnet, NEAR, IB_ATTR_LINEARFORWTBL, 0), 0);
	assert_int_equal(data_of_response(subnet)[lid_of(subnet, NEAR)], 0);
	assert_int_equal(data_of_response(subnet)[lid_of(subnet, ALPHA)], 1);
	assert_int_equal(data_of_response(subnet)[0], NO_ROUTE);
	assert_int_equal(set(subnet, NEAR, IB_ATTR_LINEARFORWTBL, 767, 5), 0);
	assert_true(holds(subnet, NEAR, IB_ATTR_LINEARFORWTBL, 767, 5, 64));
	assert_int_equal(get(subnet, NEAR, IB_ATTR_LINEARFORWTBL, 768), STATUS_BAD_VALUE);
	assert_int_equal(set(subnet, NEAR, IB_ATTR_LINEARFORWTBL, 768, 5), STATUS_BAD_VALUE);
	assert_int_equal(get(subnet, BETA, IB_ATTR_LINEARFORWTBL, 0), STATUS_BAD_ATTRIBUTE);
	assert_int_equal(set(subnet, BETA, IB_ATTR_LINEARFORWTBL, 0, 1), STATUS_BAD_ATTRIBUTE);
}

SUBNET_TEST(the_multicast_table_is_by_block_and_position)
{
	uint32_t modifier = 15U << 28 | 31;

	assert_int_equal(set(subnet, NEAR, IB_ATTR_MULTICASTFORWTBL, modifier, 5), 0);
	assert_true(holds(subnet, NEAR, IB_ATTR_MULTICASTFORWTBL, modifier, 5, 64));
	assert_false(holds(subnet, NEAR, IB_ATTR_MULTICASTFORWTBL, 31, 5, 64));
	assert_false(holds(subnet, NEAR, IB_ATTR_MULTICASTFORWTBL, 15U << 28, 5, 64));
	assert_int_equal(get(subnet, NEAR, IB_ATTR_MULTICASTFORWTBL, 32), STATUS_BAD_VALUE);
	assert_int_equal(set(subnet, NEAR, IB_ATTR_MULTICASTFORWTBL, 32, 5), STATUS_BAD_VALUE);
	assert_int_equal(get(subnet, BETA, IB_ATTR_MULTICASTFORWTBL, 0), STATUS_BAD_ATTRIBUTE);
}

SUBNET_TEST(sm_info_is_the_manager_s)
{
	struct rule_error error;
	uint32_t count;

	assert_int_equal(get(subnet, ALPHA, IB_ATTR_SMINFO, 0), 0);
	assert_true(mad_get_field64(data_of_response(subnet), 0, IB_SMINFO_GUID_F) == 0x1001);
	assert_int_equal(FIELD(IB_SMINFO_PRIO_F), SM_PRIORITY);
	assert_int_equal(FIELD(IB_SMINFO_STATE_F), SM_STATE_MASTER);
	count = FIELD(IB_SMINFO_ACT_F);
	pass(&subnet->fabric, 60 * SECOND);
	assert_int_equal(get(subnet, ALPHA, IB_ATTR_SMINFO, 0), 0);
	assert_true(FIELD(IB_SMINFO_ACT_F) > count);
	assert_int_equal(get(subnet, BETA, IB_ATTR_SMINFO, 0), STATUS_BAD_ATTRIBUTE);
	assert_int_equal(fault_apply(&subnet->fabric, "master on beta", &error), 0);
	assert_int_equal(get(subnet, BETA, IB_ATTR_SMINFO, 0), 0);
	assert_true(mad_get_field64(data_of_response(subnet), 0, IB_SMINFO_GUID_F) != 0x1001);
	assert_int_equal(FIELD(IB_SMINFO_STATE_F), SM_STATE_MASTER);
	assert_int_equal(get(subnet, BETA, IB_ATTR_PORT_INFO, 0), 0);
	assert_true(FIELD(IB_PORT_CAPMASK_F) & IS_SM);
}

SUBNET_TEST(the_vendor_s_port_info_is_on_the_vendor_s_nodes)
{
	assert_int_equal(get(subnet, GAMMA, 0xff90, 1), STATUS_BAD_ATTRIBUTE);
	subnet->fabric.graph.nodes[GAMMA].vendor_id = 0x02c9;
	assert_int_equal(get(subnet, GAMMA, 0xff90, 1), 0);
	assert_int_equal(FIELD(IB_MLNX_EXT_PORT_LINK_SPEED_SUPPORTED_F), 1);
	assert_int_equal(FIELD(IB_MLNX_EXT_PORT_LINK_SPEED_ACTIVE_F), 0);
	begin(subnet, CLASS_SMP, METHOD_SET, 0xff90, 1);
	mad_set_field(subnet->mad, SMP_DATA, IB_MLNX_EXT_PORT_LINK_SPEED_ENABLED_F, 1);
	assert_int_equal(status_of(subnet, GAMMA), 0);
	assert_int_equal(get(subnet, GAMMA, 0xff90, 1), 0);
	assert_int_equal(FIELD(IB_MLNX_EXT_PORT_LINK_SPEED_ENABLED_F), 1);
}

/* --- M_Key ---------------------------------------------------------------------- */

static void set_mkey(struct subnet *subnet, uint8_t protect, uint16_t lease)
{
	struct port_settings *settings =
		settings_of(&subnet->fabric, port_of(subnet, GAMMA, 1));

	assert_non_null(settings);
	settings->mkey = MKEY;
	settings->mkey_protect = protect;
	settings->mkey_lease = lease;
}

static bool gets_response(struct subnet *subnet, unsigned int method, uint64_t key)
{
	begin(subnet, CLASS_SMP, method, IB_ATTR_PORT_INFO, 1);
	mad_set_field(subnet->mad, SMP_DATA, IB_PORT_LID_F, lid_of(subnet, GAMMA));
	mad_set_field64(subnet->mad, SMP_DATA, IB_PORT_MKEY_F, MKEY);
	mad_set_field(subnet->mad, SMP_DATA, IB_PORT_MKEY_PROT_BITS_F,
		      settings_of(&subnet->fabric, port_of(subnet, GAMMA, 1))->mkey_protect);
	mad_set_field(subnet->mad, SMP_DATA, IB_PORT_MKEY_LEASE_F,
		      settings_of(&subnet->fabric, port_of(subnet, GAMMA, 1))->mkey_lease);
	put64(subnet->mad + 24, key);
	return status_of(subnet, GAMMA) != 0xffff;
}

static uint64_t key_shown(struct subnet *subnet, uint64_t key)
{
	assert_true(gets_response(subnet, METHOD_GET, key));
	return mad_get_field64(data_of_response(subnet), 0, IB_PORT_MKEY_F);
}

SUBNET_TEST(a_set_needs_the_m_key_at_every_level)
{
	for (uint8_t level = 0; level <= 3; level++) {
		set_mkey(subnet, level, 0);
		assert_false(gets_response(subnet, METHOD_SET, WRONG));
		assert_false(gets_response(subnet, METHOD_SET, 0));
		assert_true(gets_response(subnet, METHOD_SET, MKEY));
	}
}

SUBNET_TEST(the_level_says_what_is_read_without_the_key)
{
	set_mkey(subnet, 0, 0);
	assert_true(key_shown(subnet, WRONG) == MKEY);
	set_mkey(subnet, 1, 0);
	assert_true(key_shown(subnet, WRONG) == 0);
	for (uint8_t level = 2; level <= 3; level++) {
		set_mkey(subnet, level, 0);
		assert_false(gets_response(subnet, METHOD_GET, WRONG));
	}
	for (uint8_t level = 1; level <= 3; level++) {
		set_mkey(subnet, level, 0);
		assert_true(key_shown(subnet, MKEY) == MKEY);
	}
}

/* A subnet manager takes the M_Key of its next requests from this response. */
SUBNET_TEST(the_response_to_a_set_shows_the_key_that_it_set)
{
	for (uint8_t level = 1; level <= 3; level++) {
		set_mkey(subnet, level, 0);
		settings_of(&subnet->fabric, port_of(subnet, GAMMA, 1))->mkey = WRONG;
		assert_true(gets_response(subnet, METHOD_SET, WRONG));
		assert_true(mad_get_field64(data_of_response(subnet), 0, IB_PORT_MKEY_F) ==
			    MKEY);
		assert_int_equal(FIELD(IB_PORT_MKEY_PROT_BITS_F), level);
	}
}

SUBNET_TEST(wrong_keys_are_counted)
{
	set_mkey(subnet, 2, 0);
	assert_false(gets_response(subnet, METHOD_GET, WRONG));
	assert_false(gets_response(subnet, METHOD_SET, WRONG));
	assert_true(gets_response(subnet, METHOD_GET, MKEY));
	assert_int_equal(FIELD(IB_PORT_MKEY_VIOL_F), 2);
}

SUBNET_TEST(when_the_lease_runs_out_the_protection_falls)
{
	set_mkey(subnet, 2, 10);
	assert_false(gets_response(subnet, METHOD_GET, WRONG));
	pass(&subnet->fabric, 10 * SECOND - 1);
	assert_false(gets_response(subnet, METHOD_GET, WRONG));
	pass(&subnet->fabric, 1);
	assert_true(key_shown(subnet, WRONG) == MKEY);
	assert_int_equal(FIELD(IB_PORT_MKEY_PROT_BITS_F), 0);
}

SUBNET_TEST(a_manager_that_lives_keeps_the_lease)
{
	set_mkey(subnet, 2, 10);
	assert_false(gets_response(subnet, METHOD_GET, WRONG));
	pass(&subnet->fabric, 9 * SECOND);
	assert_true(gets_response(subnet, METHOD_GET, MKEY));
	pass(&subnet->fabric, 9 * SECOND);
	assert_false(gets_response(subnet, METHOD_GET, WRONG));
}

SUBNET_TEST(without_a_lease_the_protection_stays)
{
	set_mkey(subnet, 2, 0);
	assert_false(gets_response(subnet, METHOD_GET, WRONG));
	pass(&subnet->fabric, 100000 * SECOND);
	assert_false(gets_response(subnet, METHOD_GET, WRONG));
}

/* --- traps ---------------------------------------------------------------------- */

static void listen_for_traps(struct subnet *subnet)
{
	hear_at(subnet, port_of(subnet, ALPHA, 1), CLASS_SMP, METHOD_TRAP);
}

static uint32_t of_notice(const struct subnet *subnet, enum MAD_FIELDS field)
{
	assert_non_null(subnet->heard.first);
	return mad_get_field(subnet->heard.first->data, SMP_DATA, field);
}

SUBNET_TEST(a_switch_tells_its_manager_that_a_link_changed)
{
	listen_for_traps(subnet);
	rule(subnet, "link down on beta/2");
	settle(&subnet->fabric);
	assert_int_equal(subnet->heard.count, 1);
	assert_int_equal(be16toh(subnet->heard.first->header.lid), lid_of(subnet, FAR));
	assert_int_equal(of_notice(subnet, IB_NOTICE_IS_GENERIC_F), 1);
	assert_int_equal(of_notice(subnet, IB_NOTICE_PRODUCER_F), NODE_SWITCH);
	assert_int_equal(of_notice(subnet, IB_NOTICE_TRAP_NUMBER_F), 128);
	assert_int_equal(of_notice(subnet, IB_NOTICE_ISSUER_LID_F), lid_of(subnet, FAR));
	assert_int_equal(of_notice(subnet, IB_NOTICE_DATA_LID_F), lid_of(subnet, FAR));
}

SUBNET_TEST(a_port_tells_its_manager_that_its_capabilities_changed)
{
	listen_for_traps(subnet);
	state_of(subnet, GAMMA, 1)->capability_mask |= IS_SM;
	trap_capability(&subnet->fabric, port_of(subnet, GAMMA, 1));
	settle(&subnet->fabric);
	assert_int_equal(subnet->heard.count, 1);
	assert_int_equal(of_notice(subnet, IB_NOTICE_PRODUCER_F), NODE_CA);
	assert_int_equal(of_notice(subnet, IB_NOTICE_TRAP_NUMBER_F), 144);
	assert_int_equal(of_notice(subnet, IB_NOTICE_DATA_144_LID_F), lid_of(subnet, GAMMA));
	assert_int_equal(of_notice(subnet, IB_NOTICE_DATA_144_CAPMASK_F),
			 state_of(subnet, GAMMA, 1)->capability_mask);
}

SUBNET_TEST(a_capability_that_changes_again_is_told_again)
{
	uint32_t told = 0;

	listen_for_traps(subnet);
	state_of(subnet, GAMMA, 1)->capability_mask |= IS_SM;
	trap_capability(&subnet->fabric, port_of(subnet, GAMMA, 1));
	settle(&subnet->fabric);
	state_of(subnet, GAMMA, 1)->capability_mask &= ~(uint32_t)IS_SM;
	trap_capability(&subnet->fabric, port_of(subnet, GAMMA, 1));
	pass(&subnet->fabric, 20 * SECOND);
	for (; subnet->heard.first; free(take(&subnet->heard)))
		told = of_notice(subnet, IB_NOTICE_DATA_144_CAPMASK_F);
	assert_int_equal(told, state_of(subnet, GAMMA, 1)->capability_mask);
}

SUBNET_TEST(a_wrong_m_key_is_told_to_the_manager)
{
	listen_for_traps(subnet);
	set_mkey(subnet, 2, 0);
	assert_false(gets_response(subnet, METHOD_SET, WRONG));
	assert_int_equal(subnet->heard.count, 1);
	assert_int_equal(of_notice(subnet, IB_NOTICE_TRAP_NUMBER_F), 256);
	assert_int_equal(subnet->heard.first->data[SMP_DATA + 16], METHOD_SET);
	assert_int_equal(get16(subnet->heard.first->data + SMP_DATA + 18), IB_ATTR_PORT_INFO);
	assert_int_equal(get32(subnet->heard.first->data + SMP_DATA + 20), 1);
	assert_true(get64(subnet->heard.first->data + SMP_DATA + 24) == WRONG);
}

SUBNET_TEST(a_trap_is_repeated_every_second)
{
	listen_for_traps(subnet);
	trap_link_state(&subnet->fabric, FAR);
	settle(&subnet->fabric);
	pass(&subnet->fabric, SECOND - 1);
	assert_int_equal(subnet->heard.count, 1);
	pass(&subnet->fabric, 1);
	assert_int_equal(subnet->heard.count, 2);
	pass(&subnet->fabric, 98 * SECOND);
	assert_int_equal(subnet->heard.count, 100);
}

/* Represses the first trap that arrived, which FAR sent. */
static void repress_first(struct subnet *subnet)
{
	memcpy(subnet->mad, subnet->heard.first->data, MAD_BYTES);
	subnet->mad[3] = METHOD_TRAP_REPRESS;
	subnet->dlid = lid_of(subnet, FAR);
	assert_int_equal(send_by(subnet, &subnet->smps, 0), 0);
}

SUBNET_TEST(a_trap_that_is_repressed_is_not_repeated)
{
	listen_for_traps(subnet);
	trap_link_state(&subnet->fabric, FAR);
	settle(&subnet->fabric);
	assert_int_equal(subnet->heard.count, 1);
	repress_first(subnet);
	pass(&subnet->fabric, 100 * SECOND);
	assert_int_equal(subnet->heard.count, 1);
}

SUBNET_TEST(a_repress_of_another_trap_changes_nothing)
{
	listen_for_traps(subnet);
	trap_link_state(&subnet->fabric, FAR);
	begin(subnet, CLASS_SMP, METHOD_TRAP_REPRESS, IB_SA_ATTR_NOTICE, 0);
	put64(subnet->mad + 8, 0x99);
	subnet->dlid = lid_of(subnet, FAR);
	assert_int_equal(send_by(subnet, &subnet->smps, 0), 0);
	pass(&subnet->fabric, 99 * SECOND);
	assert_int_equal(subnet->heard.count, 100);
}

SUBNET_TEST(a_link_that_changes_again_before_the_repress_is_told_again)
{
	listen_for_traps(subnet);
	trap_link_state(&subnet->fabric, FAR);
	settle(&subnet->fabric);
	assert_int_equal(subnet->heard.count, 1);
	trap_link_state(&subnet->fabric, FAR);
	repress_first(subnet);
	pass(&subnet->fabric, SECOND);
	assert_int_equal(subnet->heard.count, 2);
}
