/* SPDX-License-Identifier: BSD-2-Clause */

/* Subnet administrator (SA): multicast groups. */
#include "sa_fixture.h"
#include "test.h"

#define MEMBER                                                         \
	(UMAD_SA_MCM_COMP_MASK_MGID | UMAD_SA_MCM_COMP_MASK_PORT_GID | \
	 UMAD_SA_MCM_COMP_MASK_JOIN_STATE)

enum {
	FULL = 1,
	NON = 2,
	SEND_ONLY = 4,
	SEND_ONLY_FULL = 8
};

static const uint8_t broadcast[16] = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0,    0,
				      0,    0,    0,    0,    0xff, 0xff, 0xff, 0xff};
static const uint8_t ours[16] = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0,
				 0,    0,    0,    0,    1,    2,    3, 4};

/* A request about a port's membership, from that port. */
static void about(struct subnet *subnet, unsigned int method, const uint8_t mgid[16],
		  uint32_t port, unsigned int state)
{
	subnet->from = port;
	begin_with(subnet, method, IB_SA_ATTR_MCRECORD, MEMBER);
	memcpy(subnet->record, mgid, 16);
	put_gid(subnet->record + MCM_AT_PORT_GID, cable(&subnet->fabric, port)->guid);
	subnet->record[MCM_AT_SCOPE_STATE] = (uint8_t)state;
}

static void about_new(struct subnet *subnet, const uint8_t mgid[16], uint32_t port,
		      unsigned int state)
{
	about(subnet, METHOD_SET, mgid, port, state);
	mask(subnet, TO_CREATE);
	put32(subnet->record + MCM_AT_QKEY, 0x1111);
	put16(subnet->record + MCM_AT_PKEY, DEFAULT_PKEY);
	subnet->record[MCM_AT_CLASS] = 7;
	put32(subnet->record + MCM_AT_SL_FLOW_HOP, 0x5000ab09);
}

/* A port joins a group, leaves it, or creates it. Each returns the status. */
static unsigned int join(struct subnet *subnet, const uint8_t mgid[16], uint32_t port,
			 unsigned int state)
{
	about(subnet, METHOD_SET, mgid, port, state);
	return ask(subnet);
}

static unsigned int leave(struct subnet *subnet, const uint8_t mgid[16], uint32_t port,
			  unsigned int state)
{
	about(subnet, METHOD_DELETE, mgid, port, state);
	return ask(subnet);
}

static unsigned int create(struct subnet *subnet, const uint8_t mgid[16], uint32_t port,
			   unsigned int state)
{
	about_new(subnet, mgid, port, state);
	return ask(subnet);
}

static const uint8_t *returned(const struct subnet *subnet)
{
	return subnet->response + SA_HEADER;
}

SA_TEST(the_broadcast_group_is_there_from_the_start)
{
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_MCRECORD), 1);
	assert_int_equal(stride(subnet), 56);
	assert_memory_equal(record_at(subnet, 0), broadcast, 16);
	assert_int_equal(get32(record_at(subnet, 0) + MCM_AT_QKEY), 0x0b1b);
	assert_int_equal(get16(record_at(subnet, 0) + MCM_AT_MLID), 0xc000);
	assert_int_equal(get16(record_at(subnet, 0) + MCM_AT_PKEY), DEFAULT_PKEY);
	assert_int_equal(record_at(subnet, 0)[MCM_AT_SCOPE_STATE], 0x20);
	assert_int_equal(join(subnet, broadcast, subnet->beta, FULL), 0);
	assert_int_equal(subnet->response[3], METHOD_GET | METHOD_RESPONSE);
	assert_int_equal(get16(returned(subnet) + MCM_AT_MLID), 0xc000);
	assert_int_equal(returned(subnet)[MCM_AT_SCOPE_STATE], 0x20 | FULL);
	assert_int_equal(leave(subnet, broadcast, subnet->beta, FULL), 0);
	assert_int_equal(subnet->response[3], METHOD_DELETE | METHOD_RESPONSE);
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_MCRECORD), 1);
}

SA_TEST(a_full_member_creates_a_group_and_the_last_one_ends_it)
{
	assert_int_equal(create(subnet, ours, subnet->alpha, FULL), 0);
	assert_int_equal(get16(returned(subnet) + MCM_AT_MLID), 0xc001);
	assert_int_equal(get32(returned(subnet) + MCM_AT_QKEY), 0x1111);
	assert_int_equal(returned(subnet)[MCM_AT_CLASS], 7);
	assert_int_equal(get32(returned(subnet) + MCM_AT_SL_FLOW_HOP), 0x5000ab00);
	assert_int_equal(returned(subnet)[MCM_AT_MTU], SELECT_EXACTLY | 5);
	assert_int_equal(returned(subnet)[MCM_AT_RATE], SELECT_EXACTLY | 16);
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_MCRECORD), 2);
	assert_int_equal(join(subnet, ours, subnet->gamma, NON), 0);
	assert_int_equal(leave(subnet, ours, subnet->alpha, FULL), 0);
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_MCRECORD), 1);
	assert_int_equal(leave(subnet, ours, subnet->gamma, NON), SA_INVALID);
	assert_int_equal(create(subnet, ours, subnet->gamma, SEND_ONLY_FULL), 0);
	assert_int_equal(get16(returned(subnet) + MCM_AT_MLID), 0xc001);
}

SA_TEST(a_group_is_created_only_with_all_that_it_takes)
{
	uint8_t mgid[16];

	assert_int_equal(join(subnet, ours, subnet->alpha, FULL), SA_INSUFFICIENT_COMPONENTS);
	assert_int_equal(create(subnet, ours, subnet->alpha, NON), SA_INVALID);
	assert_int_equal(create(subnet, ours, subnet->alpha, 0), SA_INVALID);
	about_new(subnet, ours, subnet->alpha, FULL);
	put16(subnet->record + MCM_AT_PKEY, 0x8123);
	assert_int_equal(ask(subnet), SA_INVALID);
	about_new(subnet, ours, subnet->alpha, FULL);
	put_gid(subnet->record + MCM_AT_PORT_GID, 0x7777);
	assert_int_equal(ask(subnet), SA_INVALID_GID);
	memcpy(mgid, ours, 16);
	mgid[0] = 0xfe;
	assert_int_equal(create(subnet, mgid, subnet->alpha, FULL), SA_INVALID);
	about_new(subnet, ours, subnet->alpha, FULL);
	mask(subnet, MCM_MTU);
	subnet->record[MCM_AT_MTU] = 0 << 6 | 5;
	assert_int_equal(ask(subnet), SA_INVALID);
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_MCRECORD), 1);
}

SA_TEST(a_group_without_an_mgid_gets_one)
{
	static const uint8_t none[16];
	uint8_t first[16];

	assert_int_equal(create(subnet, none, subnet->alpha, FULL), 0);
	memcpy(first, returned(subnet), 16);
	assert_int_equal(get32(first), 0xff12a01b);
	assert_int_equal(create(subnet, none, subnet->alpha, FULL), 0);
	assert_memory_not_equal(returned(subnet), first, 16);
	assert_int_equal(get16(returned(subnet) + MCM_AT_MLID), 0xc002);
}

SA_TEST(groups_end_with_their_mlids)
{
	static const uint8_t none[16];

	for (unsigned int i = 1; i < MLID_COUNT; i++) {
		assert_int_equal(create(subnet, none, subnet->alpha, FULL), 0);
	}
	assert_int_equal(get16(returned(subnet) + MCM_AT_MLID), 0xc3ff);
	assert_int_equal(create(subnet, none, subnet->alpha, FULL), SA_NO_RESOURCES);
}

SA_TEST(who_joins_must_be_fit_for_the_group)
{
	assert_int_equal(create(subnet, ours, subnet->alpha, FULL), 0);
	assert_int_equal(join(subnet, ours, subnet->beta, FULL),
			 SA_INVALID); /* slower than the group */
	about(subnet, METHOD_SET, ours, subnet->gamma, FULL);
	mask(subnet, UMAD_SA_MCM_COMP_MASK_QKEY);
	put32(subnet->record + MCM_AT_QKEY, 0x2222);
	assert_int_equal(ask(subnet), SA_INVALID);
	put32(subnet->record + MCM_AT_QKEY, 0x1111);
	mask(subnet, MCM_MTU | MCM_RATE);
	subnet->record[MCM_AT_MTU] = 0 << 6 | 4;
	subnet->record[MCM_AT_RATE] = 2 << 6 | 16;
	assert_int_equal(ask(subnet), 0);
	subnet->record[MCM_AT_RATE] = 1 << 6 | 16;
	assert_int_equal(ask(subnet), SA_INVALID);
	subnet->fabric.ports[subnet->gamma].mtu = 4;
	assert_int_equal(join(subnet, ours, subnet->gamma, SEND_ONLY), SA_INVALID);
}

SA_TEST(join_states_add_up_and_are_given_up_one_by_one)
{
	assert_int_equal(join(subnet, broadcast, subnet->alpha, FULL), 0);
	assert_int_equal(join(subnet, broadcast, subnet->alpha, SEND_ONLY), 0);
	assert_int_equal(returned(subnet)[MCM_AT_SCOPE_STATE], 0x20 | FULL | SEND_ONLY);
	assert_int_equal(leave(subnet, broadcast, subnet->alpha, NON), SA_INVALID);
	assert_int_equal(leave(subnet, broadcast, subnet->alpha, FULL), 0);
	assert_int_equal(leave(subnet, broadcast, subnet->alpha, FULL), SA_INVALID);
	assert_int_equal(leave(subnet, broadcast, subnet->alpha, SEND_ONLY), 0);
}

SA_TEST(others_remove_only_whom_they_made_join)
{
	assert_int_equal(join(subnet, broadcast, subnet->alpha, FULL), 0);
	assert_int_equal(returned(subnet)[MCM_AT_PROXY], 0);
	about(subnet, METHOD_DELETE, broadcast, subnet->alpha, FULL);
	subnet->from = subnet->beta;
	assert_int_equal(ask(subnet), SA_DENIED);
	about(subnet, METHOD_SET, broadcast, subnet->gamma, FULL);
	subnet->from = subnet->beta;
	assert_int_equal(ask(subnet), 0);
	assert_int_equal(returned(subnet)[MCM_AT_PROXY], PROXY);
	about(subnet, METHOD_DELETE, broadcast, subnet->gamma, FULL);
	subnet->from = subnet->alpha;
	assert_int_equal(ask(subnet), 0);
}

SA_TEST(members_are_shown_to_who_is_trusted)
{
	assert_int_equal(join(subnet, broadcast, subnet->alpha, FULL), 0);
	assert_int_equal(join(subnet, broadcast, subnet->beta, NON), 0);
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_MCRECORD), 1);
	assert_true(get64(record_at(subnet, 0) + MCM_AT_PORT_GID + 8) == 0);
	assert_int_equal(record_at(subnet, 0)[MCM_AT_SCOPE_STATE], 0x20);
	begin(subnet, METHOD_GET_TABLE, IB_SA_ATTR_MCRECORD);
	trust(subnet);
	assert_int_equal(records(subnet), 2);
	mask(subnet, UMAD_SA_MCM_COMP_MASK_JOIN_STATE);
	subnet->record[MCM_AT_SCOPE_STATE] = FULL | SEND_ONLY;
	assert_int_equal(records(subnet), 1);
	assert_true(get64(record_at(subnet, 0) + MCM_AT_PORT_GID + 8) == 0x1001);
	begin(subnet, METHOD_GET, IB_SA_ATTR_MCRECORD);
	trust(subnet);
	mask(subnet, UMAD_SA_MCM_COMP_MASK_PORT_GID);
	put_gid(subnet->record + MCM_AT_PORT_GID, 0x2001);
	assert_int_equal(ask(subnet), 0);
	assert_int_equal(returned(subnet)[MCM_AT_SCOPE_STATE], 0x20 | NON);
	put_gid(subnet->record + MCM_AT_PORT_GID, 0x3001);
	assert_int_equal(ask(subnet), SA_NO_RECORDS);
}

SA_TEST(groups_of_other_partitions_are_hidden)
{
	settings_of(&subnet->fabric, subnet->beta)->pkeys[0] = 0x8123;
	subnet->from = subnet->beta;
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_MCRECORD), 0);
	assert_int_equal(join(subnet, broadcast, subnet->beta, FULL), SA_INVALID);
}

/* The ports by which a switch forwards to the second group, whose MLID is 0xc001. */
static unsigned int ports_for_ours(struct subnet *subnet, uint16_t lid)
{
	begin_with(subnet, METHOD_GET, IB_SA_ATTR_MFTRECORD,
		   COMPONENT(0) | COMPONENT(1) | COMPONENT(3));
	put16(subnet->record, lid);
	assert_int_equal(ask(subnet), 0);
	return get16(returned(subnet) + 8 + 2);
}

SA_TEST(joins_are_in_the_switches_tables_until_the_ports_leave)
{
	assert_int_equal(create(subnet, ours, subnet->alpha, FULL), 0);
	assert_int_equal(ports_for_ours(subnet, LID_NEAR), 0); /* only one member */
	assert_int_equal(join(subnet, ours, subnet->gamma, NON), 0);
	assert_int_equal(ports_for_ours(subnet, LID_NEAR), 1 << 1 | 1 << 4);
	assert_int_equal(ports_for_ours(subnet, LID_FAR), 1 << 1 | 1 << 4);
	assert_int_equal(join(subnet, ours, port_of(subnet, NEAR, 0), SEND_ONLY), 0);
	assert_int_equal(ports_for_ours(subnet, LID_NEAR), 1 << 0 | 1 << 1 | 1 << 4);
	assert_int_equal(leave(subnet, ours, subnet->gamma, NON), 0);
	assert_int_equal(ports_for_ours(subnet, LID_NEAR), 1 << 0 | 1 << 1);
	assert_int_equal(ports_for_ours(subnet, LID_FAR), 0);
	assert_int_equal(leave(subnet, ours, subnet->alpha, FULL),
			 0); /* the last full member */
	assert_int_equal(ports_for_ours(subnet, LID_NEAR), 0);
}

SA_TEST(values_that_a_program_sets_in_multicast_tables_stay)
{
	uint8_t block[SMP_DATA] = {0};

	assert_int_equal(join(subnet, broadcast, subnet->alpha, FULL), 0);
	assert_int_equal(join(subnet, broadcast, subnet->gamma, FULL), 0);
	put16(block + 2, 1 << 3);
	assert_int_equal(
		sma_write(&subnet->fabric, NEAR, IB_ATTR_MULTICASTFORWTBL, 0, 1, block), 0);
	assert_int_equal(ports_for_ours(subnet, LID_NEAR), 1 << 3);
	assert_int_equal(leave(subnet, broadcast, subnet->gamma, FULL), 0);
	assert_int_equal(ports_for_ours(subnet, LID_NEAR), 1 << 3); /* not a group of the SA */
}

SA_TEST(groups_are_found_by_their_components)
{
	assert_int_equal(create(subnet, ours, subnet->alpha, FULL), 0);
	begin_with(subnet, METHOD_GET, IB_SA_ATTR_MCRECORD, UMAD_SA_MCM_COMP_MASK_MLID);
	put16(subnet->record + MCM_AT_MLID, 0xc001);
	assert_int_equal(ask(subnet), 0);
	assert_memory_equal(returned(subnet), ours, 16);
	begin_with(subnet, METHOD_GET, IB_SA_ATTR_MCRECORD,
		   UMAD_SA_MCM_COMP_MASK_SL | UMAD_SA_MCM_COMP_MASK_FLOW_LABEL |
			   UMAD_SA_MCM_COMP_MASK_SCOPE | MCM_RATE);
	put32(subnet->record + MCM_AT_SL_FLOW_HOP, 0x5000abff);
	subnet->record[MCM_AT_SCOPE_STATE] = 0x20;
	subnet->record[MCM_AT_RATE] = 0 << 6 | 3;
	assert_int_equal(ask(subnet), 0);
	subnet->record[MCM_AT_RATE] = 1 << 6 | 3;
	assert_int_equal(ask(subnet), SA_NO_RECORDS);
}
