/* SPDX-License-Identifier: BSD-2-Clause */

/* Subnet administrator (SA): PathRecords. */
#include "sa_fixture.h"
#include "test.h"

enum {
	DGID = 1 << 2,
	SGID = 1 << 3,
	DLID = 1 << 4,
	SLID = 1 << 5,
	RAW = 1 << 6,
	CLASS = 1 << 10,
	REVERSIBLE = 1 << 11,
	NUMBER = 1 << 12,
	PKEY = 1 << 13,
	SL = 1 << 15,
	WITH_MTU = 3 << 16,
	WITH_RATE = 3 << 18,
	WITH_LIFE = 3 << 20
};

enum {
	RATE_10 = 3,
	RATE_25 = 15,
	RATE_40 = 7,
	RATE_100 = 16
};

static void from_lid_to_lid(struct subnet *subnet, unsigned int slid, unsigned int dlid)
{
	begin_with(subnet, METHOD_GET, IB_SA_ATTR_PATHRECORD, SLID | DLID);
	put16(subnet->record + 40, dlid);
	put16(subnet->record + 42, slid);
}

static void from_gid_to_gid(struct subnet *subnet, uint64_t sgid, uint64_t dgid)
{
	begin_with(subnet, METHOD_GET, IB_SA_ATTR_PATHRECORD, SGID | DGID);
	put_gid(subnet->record + 8, dgid);
	put_gid(subnet->record + 24, sgid);
}

/* The same, with the request sent; the status. */
static unsigned int path_of_lids(struct subnet *subnet, unsigned int slid, unsigned int dlid)
{
	from_lid_to_lid(subnet, slid, dlid);
	return ask(subnet);
}

static unsigned int path_of_gids(struct subnet *subnet, uint64_t sgid, uint64_t dgid)
{
	from_gid_to_gid(subnet, sgid, dgid);
	return ask(subnet);
}

static const uint8_t *path(const struct subnet *subnet)
{
	return subnet->response + SA_HEADER;
}

SA_TEST(a_path_by_lids_tells_gids_and_the_other_way_round)
{
	uint8_t by_lid[64];

	assert_int_equal(path_of_lids(subnet, LID_ALPHA, LID_BETA), 0);
	assert_true(get64(path(subnet) + 8) == DEFAULT_PREFIX);
	assert_true(get64(path(subnet) + 16) == 0x2001);
	assert_true(get64(path(subnet) + 32) == 0x1001);
	assert_int_equal(path(subnet)[49], 0x80);
	assert_int_equal(get16(path(subnet) + 50), DEFAULT_PKEY);
	memcpy(by_lid, path(subnet), sizeof(by_lid));
	assert_int_equal(path_of_gids(subnet, 0x1001, 0x2001), 0);
	assert_memory_equal(path(subnet), by_lid, sizeof(by_lid));
	assert_int_equal(get16(path(subnet) + 40), LID_BETA);
	assert_int_equal(get16(path(subnet) + 42), LID_ALPHA);
}

SA_TEST(a_path_is_as_fast_as_its_slowest_link)
{
	assert_int_equal(path_of_lids(subnet, LID_ALPHA, LID_NEAR), 0);
	assert_int_equal(path(subnet)[55], SELECT_EXACTLY | RATE_100);
	assert_int_equal(path_of_lids(subnet, LID_ALPHA, LID_BETA), 0);
	assert_int_equal(path(subnet)[55], SELECT_EXACTLY | RATE_40);
	assert_int_equal(path_of_lids(subnet, LID_ALPHA, LID_GAMMA), 0);
	assert_int_equal(path(subnet)[54], SELECT_EXACTLY | 5);
	assert_int_equal(path(subnet)[55], SELECT_EXACTLY | RATE_25);
	subnet->fabric.ports[port_of(subnet, FAR, 4)].mtu = 2;
	assert_int_equal(ask(subnet), 0);
	assert_int_equal(path(subnet)[54], SELECT_EXACTLY | 2);
	assert_int_equal(path_of_lids(subnet, LID_ALPHA, LID_ALPHA), 0);
	assert_int_equal(path(subnet)[55], SELECT_EXACTLY | RATE_100);
}

SA_TEST(a_packets_lifetime_grows_with_its_switches)
{
	subnet->fabric.nodes[NEAR].life_time = 10;
	subnet->fabric.nodes[FAR].life_time = 10;
	assert_int_equal(path_of_lids(subnet, LID_ALPHA, LID_BETA), 0);
	assert_int_equal(path(subnet)[56], SELECT_EXACTLY | 10);
	assert_int_equal(path_of_lids(subnet, LID_ALPHA, LID_GAMMA), 0);
	assert_int_equal(path(subnet)[56], SELECT_EXACTLY | 11);
	assert_int_equal(path_of_lids(subnet, LID_ALPHA, LID_ALPHA), 0);
	assert_int_equal(path(subnet)[56], SELECT_EXACTLY | 0);
}

SA_TEST(there_is_no_path_over_a_link_that_is_down)
{
	subnet->fabric.ports[port_of(subnet, FAR, 4)].phys_state = PHYS_POLLING;
	assert_int_equal(path_of_lids(subnet, LID_ALPHA, LID_GAMMA), SA_NO_RECORDS);
	assert_int_equal(path_of_lids(subnet, LID_ALPHA, LID_BETA), 0);
}

SA_TEST(a_path_can_be_selected_and_used_below_its_best)
{
	static const struct {
		unsigned int at;
		uint8_t selected;
		uint8_t value; /* 0: no such path */
	} cases[] = {
		{54, 0 << 6 | 4, 5},       {54, 0 << 6 | 5, 0},
		{54, 1 << 6 | 5, 4},       {54, 1 << 6 | 1, 0},
		{54, 2 << 6 | 3, 3},       {54, 2 << 6 | 6, 0},
		{54, 3 << 6 | 1, 5},       {55, 0 << 6 | RATE_10, RATE_25},
		{55, 0 << 6 | RATE_25, 0}, {55, 1 << 6 | RATE_25, 6},
		{55, 1 << 6 | 2, 0},       {55, 2 << 6 | RATE_10, RATE_10},
		{55, 2 << 6 | RATE_40, 0}, {55, 2 << 6 | 1, 0},
		{55, 3 << 6, RATE_25},     {56, 0 << 6 | 5, 11},
		{56, 0 << 6 | 12, 13},     {56, 1 << 6 | 12, 11},
		{56, 1 << 6 | 11, 0},      {56, 2 << 6 | 12, 12},
		{56, 2 << 6 | 10, 0},      {56, 3 << 6, 11},
	};

	subnet->fabric.nodes[NEAR].life_time = 10;
	subnet->fabric.nodes[FAR].life_time = 10;
	for (size_t i = 0; i < COUNT(cases); i++) {
		from_lid_to_lid(subnet, LID_ALPHA, LID_GAMMA);
		mask(subnet, 3ULL << (16 + 2 * (cases[i].at - 54)));
		subnet->record[cases[i].at] = cases[i].selected;
		assert_int_equal(ask(subnet), cases[i].value ? 0 : SA_NO_RECORDS);
		if (cases[i].value)
			assert_int_equal(path(subnet)[cases[i].at],
					 SELECT_EXACTLY | cases[i].value);
	}
}

SA_TEST(a_port_that_there_is_not_has_no_path)
{
	assert_int_equal(path_of_gids(subnet, 0x1001, 0x7777), SA_INVALID_GID);
	from_gid_to_gid(subnet, 0x1001, 0x2001);
	put64(subnet->record + 8, 0xfec0000000000000ULL);
	assert_int_equal(ask(subnet), SA_INVALID_GID);
	assert_int_equal(path_of_gids(subnet, 0x1001, 0x2002),
			 SA_INVALID_GID); /* a port without a cable */
	assert_int_equal(path_of_lids(subnet, LID_ALPHA, 77), SA_NO_RECORDS);
	from_gid_to_gid(subnet, 0x1001, 0x2001);
	mask(subnet, DLID);
	put16(subnet->record + 40, LID_GAMMA);
	assert_int_equal(ask(subnet), SA_NO_RECORDS);
	put16(subnet->record + 40, LID_BETA);
	assert_int_equal(ask(subnet), 0);
}

SA_TEST(a_table_has_the_paths_between_all_ports)
{
	/* 4 x 4 pairs with one LID; 2 * 4 from and to gamma; gamma's LIDs with themselves */
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_PATHRECORD), 16 + 2 * 8 + 2);
	assert_int_equal(stride(subnet), 64);
	begin_with(subnet, METHOD_GET_TABLE, IB_SA_ATTR_PATHRECORD, SGID);
	put_gid(subnet->record + 24, 0x1001);
	assert_int_equal(records(subnet), 6);
	mask(subnet, NUMBER);
	subnet->record[49] = 1;
	assert_int_equal(records(subnet), 5);
	subnet->record[49] = 0;
	assert_int_equal(ask(subnet), SA_INVALID);
	begin(subnet, METHOD_GET, IB_SA_ATTR_PATHRECORD);
	assert_int_equal(ask(subnet), SA_TOO_MANY_RECORDS);
}

SA_TEST(a_get_returns_one_of_several_lids)
{
	assert_int_equal(path_of_gids(subnet, 0x1001, 0x3001), 0);
	assert_int_equal(get16(path(subnet) + 40), LID_GAMMA);
	mask(subnet, DLID);
	put16(subnet->record + 40, LID_GAMMA + 1);
	assert_int_equal(ask(subnet), 0);
	assert_int_equal(get16(path(subnet) + 40), LID_GAMMA + 1);
}

SA_TEST(the_ends_of_a_path_share_a_partition)
{
	uint16_t *of_alpha = settings_of(&subnet->fabric, subnet->alpha)->pkeys;
	uint16_t *of_beta = settings_of(&subnet->fabric, subnet->beta)->pkeys;

	of_alpha[5] = 0x8123;
	of_beta[7] = 0x0123;
	from_lid_to_lid(subnet, LID_ALPHA, LID_BETA);
	mask(subnet, PKEY);
	put16(subnet->record + 50, 0x8123);
	assert_int_equal(ask(subnet), 0);
	assert_int_equal(get16(path(subnet) + 50), 0x0123);
	put16(subnet->record + 50, 0);
	assert_int_equal(ask(subnet), SA_NO_RECORDS);
	put16(subnet->record + 50, 0x8000);
	assert_int_equal(ask(subnet), SA_NO_RECORDS);
	put16(subnet->record + 50, 0x8123);
	of_alpha[5] = 0x0123; /* two limited members */
	assert_int_equal(ask(subnet), SA_NO_RECORDS);
	of_alpha[5] = 0x8123;
	of_alpha[0] = 0;
	begin(subnet, METHOD_GET, IB_SA_ATTR_PATHRECORD);
	assert_int_equal(path_of_lids(subnet, LID_ALPHA, LID_BETA), 0);
	assert_int_equal(get16(path(subnet) + 50), 0x0123);
	of_beta[7] = 0;
	assert_int_equal(ask(subnet), SA_NO_RECORDS);
}

SA_TEST(the_requester_s_choices_are_in_the_response)
{
	from_lid_to_lid(subnet, LID_ALPHA, LID_BETA);
	mask(subnet, SL | CLASS | REVERSIBLE | NUMBER);
	subnet->record[48] = 0x42;
	subnet->record[49] = 0x80 | 5;
	subnet->record[53] = 3;
	assert_int_equal(ask(subnet), 0);
	assert_int_equal(path(subnet)[48], 0x42);
	assert_int_equal(path(subnet)[53], 3);
	mask(subnet, RAW);
	assert_int_equal(ask(subnet), 0);
	subnet->record[44] = 0x80;
	assert_int_equal(ask(subnet), SA_INVALID);
}

SA_TEST(the_path_to_a_group_is_the_groups)
{
	static const uint8_t broadcast[16] = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0,    0,
					      0,    0,    0,    0,    0xff, 0xff, 0xff, 0xff};

	from_gid_to_gid(subnet, 0x2001, 0);
	memcpy(subnet->record + 8, broadcast, 16);
	assert_int_equal(ask(subnet), 0);
	assert_memory_equal(path(subnet) + 8, broadcast, 16);
	assert_int_equal(get16(path(subnet) + 40), 0xc000);
	assert_int_equal(get16(path(subnet) + 42), LID_BETA);
	assert_int_equal(path(subnet)[54], SELECT_EXACTLY | 4);
	assert_int_equal(path(subnet)[55], SELECT_EXACTLY | RATE_10);
	subnet->record[20] = 0;
	assert_int_equal(ask(subnet), SA_NO_RECORDS);
	assert_int_equal(path_of_lids(subnet, LID_ALPHA, 0xc000), 0);
	assert_memory_equal(path(subnet) + 8, broadcast, 16);
	assert_int_equal(path_of_lids(subnet, LID_ALPHA, 0xc001), SA_NO_RECORDS);
}

/* --- MultiPathRecords ----------------------------------------------------------- */

static void ask_for_paths(struct subnet *subnet, unsigned int most)
{
	begin_with(subnet, 0x14, IB_SA_ATTR_MULTIPATH, 1 << 6 | 1 << 19 | 1 << 20);
	subnet->record[5] = (uint8_t)most;
	subnet->record[15] = 2;
	subnet->record[16] = 2;
	put_gid(subnet->record + 24, 0x1001);
	put_gid(subnet->record + 40, 0x2001);
	put_gid(subnet->record + 56, 0x3001);
	put_gid(subnet->record + 72, 0x2001);
}

SA_TEST(many_paths_lead_from_each_gid_to_each)
{
	static const uint64_t ends[][2] = {{0x1001, 0x3001}, {0x1001, 0x3001},
					   {0x1001, 0x2001}, {0x2001, 0x3001},
					   {0x2001, 0x3001}, {0x2001, 0x2001}};

	ask_for_paths(subnet, 127);
	assert_int_equal(ask(subnet), 0);
	assert_int_equal(subnet->response[3], 0x94);
	assert_int_equal(subnet->length, SA_HEADER + 6 * 64);
	for (unsigned int i = 0; i < 6; i++) {
		assert_true(get64(path(subnet) + i * 64UL + 32) == ends[i][0]);
		assert_true(get64(path(subnet) + i * 64UL + 16) == ends[i][1]);
	}
	ask_for_paths(subnet, 4);
	assert_int_equal(ask(subnet), 0);
	assert_int_equal(subnet->length, SA_HEADER + 4 * 64);
	/* requirements on the path */
	ask_for_paths(subnet, 127);
	mask(subnet, 3 << 12);
	subnet->record[11] = RATE_25;
	assert_int_equal(ask(subnet), 0);
	assert_int_equal(subnet->length, SA_HEADER + 2 * 64);
}

SA_TEST(many_paths_need_counts_and_gids)
{
	ask_for_paths(subnet, 127);
	put64(subnet->mad + 48, 1 << 19);
	assert_int_equal(ask(subnet), SA_INSUFFICIENT_COMPONENTS);
	ask_for_paths(subnet, 127);
	subnet->record[15] = 0;
	assert_int_equal(ask(subnet), SA_INVALID);
	ask_for_paths(subnet, 127);
	subnet->record[15] = 10; /* two more GIDs do not fit into a MAD */
	assert_int_equal(ask(subnet), SA_INVALID);
	ask_for_paths(subnet, 0);
	assert_int_equal(ask(subnet), SA_INVALID);
	ask_for_paths(subnet, 127);
	put_gid(subnet->record + 40, 0x7777);
	assert_int_equal(ask(subnet), SA_INVALID_GID);
}
