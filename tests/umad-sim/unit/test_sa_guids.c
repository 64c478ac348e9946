/* SPDX-License-Identifier: BSD-2-Clause */

/* Subnet administrator (SA): additional GUIDs of ports. */
#include "sa_fixture.h"
#include "test.h"

#define OF_BLOCK  (COMPONENT(0) | COMPONENT(1))
#define GUID(i)   COMPONENT(4 + (i))
#define AT_GUIDS  8
#define FIRST_OWN 0x0014050000000001ULL /* assigned by the SA */

/* A request about the GUIDs of a block. */
static void about(struct subnet *subnet, unsigned int method, uint16_t lid, unsigned int block)
{
	begin_with(subnet, method, IB_SA_ATTR_GUIDINFORECORD, OF_BLOCK);
	put16(subnet->record, lid);
	subnet->record[2] = (uint8_t)block;
}

static void with_guid(struct subnet *subnet, unsigned int index, uint64_t guid)
{
	mask(subnet, GUID(index));
	put64(subnet->record + AT_GUIDS + 8UL * index, guid);
}

static unsigned int set_one(struct subnet *subnet, uint16_t lid, unsigned int index,
			    uint64_t guid)
{
	about(subnet, METHOD_SET, lid, 0);
	with_guid(subnet, index, guid);
	return ask(subnet);
}

static uint64_t returned(const struct subnet *subnet, unsigned int index)
{
	return get64(subnet->response + SA_HEADER + AT_GUIDS + 8UL * index);
}

SA_TEST(a_guid_is_set_and_deleted)
{
	assert_int_equal(set_one(subnet, LID_BETA, 3, 0x77), 0);
	assert_int_equal(subnet->response[3], METHOD_GET | METHOD_RESPONSE);
	assert_int_equal(returned(subnet, 0), 0x2001);
	assert_int_equal(returned(subnet, 3), 0x77);
	assert_int_equal(settings_of(&subnet->fabric, subnet->beta)->guids[3], 0x77);
	about(subnet, METHOD_GET, LID_BETA, 0);
	assert_int_equal(ask(subnet), 0);
	assert_int_equal(returned(subnet, 3), 0x77);
	about(subnet, METHOD_DELETE, LID_BETA, 0);
	mask(subnet, GUID(3));
	assert_int_equal(ask(subnet), 0);
	assert_int_equal(subnet->response[3], METHOD_DELETE | METHOD_RESPONSE);
	assert_int_equal(returned(subnet, 3), 0);
	assert_int_equal(settings_of(&subnet->fabric, subnet->beta)->guids[3], 0);
}

SA_TEST(the_sa_assigns_a_guid_for_0)
{
	assert_int_equal(set_one(subnet, LID_BETA, 1, 0), 0);
	assert_int_equal(returned(subnet, 1), FIRST_OWN);
	assert_int_equal(set_one(subnet, LID_BETA, 1, 0), 0); /* 0: the GUID does not change */
	assert_int_equal(returned(subnet, 1), FIRST_OWN);
	assert_int_equal(set_one(subnet, LID_BETA, 2, FIRST_OWN + 1), 0);
	assert_int_equal(set_one(subnet, LID_ALPHA, 1, 0), 0);
	assert_int_equal(returned(subnet, 1), FIRST_OWN + 2); /* the next number is in use */
}

SA_TEST(components_say_which_guids_are_meant)
{
	assert_int_equal(set_one(subnet, LID_BETA, 1, 0x71), 0);
	about(subnet, METHOD_SET, LID_BETA, 0);
	with_guid(subnet, 2, 0x72);
	with_guid(subnet, 7, 0x77);
	put64(subnet->record + AT_GUIDS + 8UL * 1, 0x99); /* not selected */
	assert_int_equal(ask(subnet), 0);
	assert_int_equal(returned(subnet, 1), 0x71);
	assert_int_equal(returned(subnet, 2), 0x72);
	assert_int_equal(returned(subnet, 7), 0x77);
	about(subnet, METHOD_DELETE, LID_BETA, 0);
	mask(subnet, GUID(1) | GUID(7));
	assert_int_equal(ask(subnet), 0);
	assert_int_equal(returned(subnet, 1), 0);
	assert_int_equal(returned(subnet, 2), 0x72);
	assert_int_equal(returned(subnet, 7), 0);
}

SA_TEST(a_guid_that_is_in_use_is_not_set)
{
	assert_int_equal(set_one(subnet, LID_BETA, 3, 0x77), 0);
	assert_int_equal(set_one(subnet, LID_BETA, 4, 0x77), 0);
	assert_int_equal(returned(subnet, 4), 0);
	assert_int_equal(set_one(subnet, LID_ALPHA, 1, 0x77), 0);
	assert_int_equal(returned(subnet, 1), 0);
	assert_int_equal(set_one(subnet, LID_ALPHA, 1, 0x2001), 0); /* the GUID of beta */
	assert_int_equal(returned(subnet, 1), 0);
	about(subnet, METHOD_DELETE, LID_BETA, 0);
	mask(subnet, GUID(3));
	assert_int_equal(ask(subnet), 0);
	assert_int_equal(set_one(subnet, LID_ALPHA, 1, 0x77), 0);
	assert_int_equal(returned(subnet, 1), 0x77);
}

SA_TEST(values_that_cannot_be_set_are_refused)
{
	static const unsigned int methods[] = {METHOD_SET, METHOD_DELETE};

	for (unsigned int i = 0; i < 2; i++) {
		about(subnet, methods[i], LID_BETA, 0);
		with_guid(subnet, 0, 0x77); /* the port's own */
		assert_int_equal(ask(subnet), SA_INVALID);
		about(subnet, methods[i], LID_BETA, 1); /* a port has only eight */
		with_guid(subnet, 1, 0x77);
		assert_int_equal(ask(subnet), SA_NO_RECORDS);
		about(subnet, methods[i], 77, 0); /* an unused LID */
		with_guid(subnet, 1, 0x77);
		assert_int_equal(ask(subnet), SA_NO_RECORDS);
		begin_with(subnet, methods[i], IB_SA_ATTR_GUIDINFORECORD, COMPONENT(0));
		put16(subnet->record, LID_BETA);
		with_guid(subnet, 1, 0x77);
		assert_int_equal(ask(subnet), SA_INSUFFICIENT_COMPONENTS);
	}
	assert_int_equal(set_one(subnet, LID_FAR, 1, 0x77), 0); /* a switch has only one */
	assert_int_equal(returned(subnet, 0), 0x200);
	assert_int_equal(returned(subnet, 1), 0);
}

static unsigned int changes;

static void note_change(struct fabric *fabric, uint32_t port)
{
	(void)fabric;
	(void)port;
	changes++;
}

SA_TEST(who_shows_gids_hears_of_the_change)
{
	changes = 0;
	subnet->fabric.port_changed = note_change;
	assert_int_equal(set_one(subnet, LID_BETA, 3, 0x77), 0);
	assert_int_equal(changes, 1);
	subnet->fabric.port_changed = NULL;
}

SA_TEST(a_path_leads_to_another_gid_of_a_port)
{
	assert_int_equal(set_one(subnet, LID_GAMMA, 3, 0x77), 0);
	assert_int_equal(set_one(subnet, LID_ALPHA, 1, 0x99), 0);
	begin_with(subnet, METHOD_GET, IB_SA_ATTR_PATHRECORD, COMPONENT(2) | COMPONENT(3));
	put_gid(subnet->record + 8, 0x77);
	put_gid(subnet->record + 24, 0x99);
	assert_int_equal(ask(subnet), 0);
	assert_int_equal(get64(subnet->response + SA_HEADER + 16), 0x77);
	assert_int_equal(get64(subnet->response + SA_HEADER + 32), 0x99);
	assert_int_equal(get16(subnet->response + SA_HEADER + 40), LID_GAMMA);
	assert_int_equal(get16(subnet->response + SA_HEADER + 42), LID_ALPHA);
	about(subnet, METHOD_DELETE, LID_GAMMA, 0);
	mask(subnet, GUID(3));
	assert_int_equal(ask(subnet), 0);
	begin_with(subnet, METHOD_GET, IB_SA_ATTR_PATHRECORD, COMPONENT(2) | COMPONENT(3));
	put_gid(subnet->record + 8, 0x77);
	put_gid(subnet->record + 24, 0x1001);
	assert_int_equal(ask(subnet), SA_INVALID_GID);
}

SA_TEST(a_port_joins_a_group_by_another_gid)
{
	static const uint8_t broadcast[16] = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0,    0,
					      0,    0,    0,    0,    0xff, 0xff, 0xff, 0xff};

	assert_int_equal(set_one(subnet, LID_ALPHA, 1, 0x99), 0);
	begin_with(subnet, METHOD_SET, IB_SA_ATTR_MCRECORD,
		   UMAD_SA_MCM_COMP_MASK_MGID | UMAD_SA_MCM_COMP_MASK_PORT_GID |
			   UMAD_SA_MCM_COMP_MASK_JOIN_STATE);
	memcpy(subnet->record, broadcast, 16);
	put_gid(subnet->record + MCM_AT_PORT_GID, 0x99);
	subnet->record[MCM_AT_SCOPE_STATE] = 1;
	assert_int_equal(ask(subnet), 0);
	assert_int_equal(get64(subnet->response + SA_HEADER + MCM_AT_PORT_GID + 8), 0x99);
}
