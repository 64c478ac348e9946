/* SPDX-License-Identifier: BSD-2-Clause */

/* Subnet administrator (SA): services with leases, subscriptions and Reports. */
#include "sa_fixture.h"
#include "test.h"

enum {
	ID = 1 << 0,
	GID = 1 << 1,
	LEASE = 1 << 4,
	KEY = 1 << 5,
	NAME = 1 << 6,
	DATA8_2 = 1 << 9
};

#define INFORM_INFO 0x03

static void announce(struct subnet *subnet, uint64_t id, const char *name)
{
	begin_with(subnet, METHOD_SET, IB_SA_ATTR_SERVICERECORD, ID | NAME);
	put64(subnet->record, id);
	memcpy(subnet->record + 48, name, strlen(name));
	subnet->record[114] = 9;
}

static unsigned int announced(struct subnet *subnet, uint64_t id, const char *name)
{
	announce(subnet, id, name);
	return ask(subnet);
}

SA_TEST(a_service_is_announced_found_and_withdrawn)
{
	assert_int_equal(announced(subnet, 0x77, "store"), 0);
	assert_int_equal(announced(subnet, 0x78, "other"), 0);
	assert_int_equal(announced(subnet, 0x78, "other"), 0);
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_SERVICERECORD), 2);
	assert_int_equal(stride(subnet), 176);
	assert_true(get64(record_at(subnet, 0) + 16) == 0x1001);
	assert_int_equal(get16(record_at(subnet, 0) + 24), DEFAULT_PKEY);
	assert_int_equal(get32(record_at(subnet, 0) + 28), UINT32_MAX);
	begin_with(subnet, METHOD_GET, IB_SA_ATTR_SERVICERECORD, NAME | DATA8_2);
	memcpy(subnet->record + 48, "store", 5);
	subnet->record[114] = 9;
	assert_int_equal(ask(subnet), 0);
	assert_true(get64(subnet->response + SA_HEADER) == 0x77);
	begin_with(subnet, METHOD_DELETE, IB_SA_ATTR_SERVICERECORD, ID);
	put64(subnet->record, 0x77);
	assert_int_equal(ask(subnet), 0);
	assert_int_equal(ask(subnet), SA_NO_RECORDS);
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_SERVICERECORD), 1);
}

SA_TEST(a_service_goes_when_its_lease_ends)
{
	announce(subnet, 1, "short");
	mask(subnet, LEASE);
	put32(subnet->record + 28, 10);
	assert_int_equal(ask(subnet), 0);
	assert_int_equal(announced(subnet, 2, "for ever"), 0);
	subnet->fabric.now += 4 * SECOND;
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_SERVICERECORD), 2);
	assert_int_equal(get32(record_at(subnet, 0) + 28), 6);
	subnet->fabric.now += 6 * SECOND;
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_SERVICERECORD), 1);
	announce(subnet, 1, "again");
	mask(subnet, LEASE);
	put32(subnet->record + 28, 10);
	assert_int_equal(ask(subnet), 0);
	subnet->fabric.now += 9 * SECOND;
	assert_int_equal(ask(subnet), 0); /* the lease is renewed */
	subnet->fabric.now += 9 * SECOND;
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_SERVICERECORD), 2);
}

SA_TEST(a_service_with_a_key_is_changed_by_who_knows_it)
{
	announce(subnet, 1, "mine");
	mask(subnet, KEY);
	subnet->record[47] = 5;
	assert_int_equal(ask(subnet), 0);
	assert_int_equal(announced(subnet, 1, "not mine"), SA_DENIED);
	begin_with(subnet, METHOD_DELETE, IB_SA_ATTR_SERVICERECORD, ID);
	put64(subnet->record, 1);
	assert_int_equal(ask(subnet), SA_DENIED);
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_SERVICERECORD), 1);
	assert_int_equal(record_at(subnet, 0)[47], 0);
	begin(subnet, METHOD_GET_TABLE, IB_SA_ATTR_SERVICERECORD);
	trust(subnet);
	ask(subnet);
	assert_int_equal(record_at(subnet, 0)[47], 5);
	begin_with(subnet, METHOD_DELETE, IB_SA_ATTR_SERVICERECORD, ID | KEY);
	put64(subnet->record, 1);
	subnet->record[47] = 5;
	assert_int_equal(ask(subnet), 0);
}

SA_TEST(a_service_must_have_an_id_and_a_gid_that_exists)
{
	begin_with(subnet, METHOD_SET, IB_SA_ATTR_SERVICERECORD, NAME);
	assert_int_equal(ask(subnet), SA_INSUFFICIENT_COMPONENTS);
	announce(subnet, 1, "nowhere");
	mask(subnet, GID);
	put_gid(subnet->record + 8, 0x7777);
	assert_int_equal(ask(subnet), SA_INVALID_GID);
}

/* A subscription to generic notices of all LIDs. */
static void inform(struct subnet *subnet, unsigned int subscribe, unsigned int type,
		   unsigned int trap, uint32_t producer)
{
	begin(subnet, METHOD_SET, INFORM_INFO);
	put16(subnet->record + 16, 0xffff);
	subnet->record[22] = 1;
	subnet->record[23] = (uint8_t)subscribe;
	put16(subnet->record + 24, type);
	put16(subnet->record + 26, trap);
	put32(subnet->record + 28, 1 << 8 | 18);
	put32(subnet->record + 32, producer);
}

static unsigned int informed(struct subnet *subnet, unsigned int subscribe, unsigned int type,
			     unsigned int trap, uint32_t producer)
{
	inform(subnet, subscribe, type, trap, producer);
	return ask(subnet);
}

SA_TEST(who_subscribed_hears_of_ports_that_come_and_go)
{
	uint8_t gid[16];

	put_gid(gid, 0x3001);
	subnet->from = subnet->beta;
	assert_int_equal(informed(subnet, 1, 3, 64, 4), 0);
	assert_int_equal(subnet->response[3], METHOD_GET | METHOD_RESPONSE);
	sa_gid_event(subnet->sa, 65, gid);
	assert_int_equal(subnet->reports, 0);
	sa_gid_event(subnet->sa, 64, gid);
	assert_int_equal(subnet->reports, 1);
	assert_int_equal(subnet->report_lid, LID_BETA);
	assert_int_equal(get32(subnet->report), 1U << 24 | 3 << 16 | 2 << 8 | METHOD_REPORT);
	assert_int_equal(get16(subnet->report + 16), 2);
	assert_int_equal(get32(subnet->report + SA_HEADER), 0x83000004);
	assert_int_equal(get16(subnet->report + SA_HEADER + 4), 64);
	assert_int_equal(get16(subnet->report + SA_HEADER + 6), LID_ALPHA);
	assert_memory_equal(subnet->report + SA_HEADER + 16, gid, 16);
	assert_int_equal(informed(subnet, 0, 3, 64, 4), 0);
	assert_int_equal(ask(subnet), SA_INVALID);
	sa_gid_event(subnet->sa, 64, gid);
	assert_int_equal(subnet->reports, 1);
}

SA_TEST(subscribing_twice_makes_no_second_report)
{
	uint8_t gid[16] = {0};

	assert_int_equal(informed(subnet, 1, 0xffff, 0xffff, 0xffffff), 0);
	assert_int_equal(ask(subnet), 0);
	sa_gid_event(subnet->sa, 66, gid);
	assert_int_equal(subnet->reports, 1);
	assert_int_equal(informed(subnet, 2, 0xffff, 0xffff, 0xffffff), SA_INVALID);
}

SA_TEST(traps_are_forwarded_with_their_issuers_gid)
{
	uint8_t trap[MAD_BYTES] = {1, 1, 1, METHOD_TRAP};

	trap[64] = 0x81;
	trap[67] = NODE_SWITCH;
	put16(trap + 68, 128);
	put16(trap + 70, LID_FAR);
	put16(trap + 74, LID_FAR);
	assert_int_equal(informed(subnet, 1, 1, 128, NODE_SWITCH), 0);
	subnet->from = subnet->beta;
	assert_int_equal(informed(subnet, 1, 1, 128, NODE_CA), 0);
	inform(subnet, 1, 1, 128, NODE_SWITCH);
	put16(subnet->record + 16, 10); /* LIDs from 10 on */
	put16(subnet->record + 18, 20);
	assert_int_equal(ask(subnet), 0);
	sa_forward_trap(subnet->sa, trap);
	assert_int_equal(subnet->reports, 1);
	assert_int_equal(subnet->report_lid, LID_ALPHA);
	assert_memory_equal(subnet->report + SA_HEADER, trap + 64, 64);
	assert_true(get64(subnet->report + SA_HEADER + 72) == 0x200);
	inform(subnet, 1, 1, 128, NODE_SWITCH);
	put_gid(subnet->record, 0x200);
	assert_int_equal(ask(subnet), 0);
	sa_forward_trap(subnet->sa, trap);
	assert_int_equal(subnet->reports, 3);
}

SA_TEST(subscriptions_have_records)
{
	assert_int_equal(informed(subnet, 1, 3, 64, 4), 0);
	assert_int_equal(informed(subnet, 1, 3, 65, 4), 0);
	subnet->from = subnet->beta;
	assert_int_equal(informed(subnet, 1, 3, 65, 4), 0);
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_INFORMINFORECORD), 3);
	assert_int_equal(stride(subnet), 64);
	assert_true(get64(record_at(subnet, 2) + 8) == 0x2001);
	assert_int_equal(get16(record_at(subnet, 1) + 16), 1);
	assert_int_equal(get16(record_at(subnet, 1) + 24 + 26), 65);
	begin_with(subnet, METHOD_GET, IB_SA_ATTR_INFORMINFORECORD, 1 << 0 | 1 << 10);
	put_gid(subnet->record, 0x1001);
	put16(subnet->record + 24 + 26, 65);
	assert_int_equal(ask(subnet), 0);
	put_gid(subnet->record, 0x3001);
	assert_int_equal(ask(subnet), SA_NO_RECORDS);
}

SA_TEST(a_restarted_sa_has_no_subscription_and_only_the_first_group)
{
	static const uint8_t mgid[16] = {0xff, 0x15, 0x40, 0x1b, [15] = 9};

	assert_int_equal(informed(subnet, 1, 3, 64, 4), 0);
	put16(group_add(subnet->sa, mgid)->record + MCM_AT_PKEY, DEFAULT_PKEY);
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_MCRECORD), 2);
	sa_forget(subnet->sa);
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_MCRECORD), 1);
	assert_int_equal(get16(record_at(subnet, 0) + MCM_AT_MLID), 0xc000);
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_INFORMINFORECORD), 0);
	assert_int_equal(informed(subnet, 0, 3, 64, 4), SA_INVALID);
}

SA_TEST(groups_that_come_and_go_are_reported)
{
	static const uint8_t mgid[16] = {0xff, 0x15, 0x40, 0x1b, [15] = 9};

	assert_int_equal(informed(subnet, 1, 3, 0xffff, 4), 0);
	begin_with(subnet, METHOD_SET, IB_SA_ATTR_MCRECORD,
		   UMAD_SA_MCM_COMP_MASK_MGID | OF_MEMBER | TO_CREATE);
	memcpy(subnet->record, mgid, 16);
	put_gid(subnet->record + MCM_AT_PORT_GID, 0x1001);
	put16(subnet->record + MCM_AT_PKEY, DEFAULT_PKEY);
	subnet->record[MCM_AT_SCOPE_STATE] = 1;
	assert_int_equal(ask(subnet), 0);
	assert_int_equal(subnet->reports, 1);
	assert_int_equal(get16(subnet->report + SA_HEADER + 4), 66);
	assert_memory_equal(subnet->report + SA_HEADER + 16, mgid, 16);
	subnet->mad[3] = METHOD_DELETE;
	assert_int_equal(ask(subnet), 0);
	assert_int_equal(subnet->reports, 2);
	assert_int_equal(get16(subnet->report + SA_HEADER + 4), 67);
}
