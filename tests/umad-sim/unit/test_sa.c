/* SPDX-License-Identifier: BSD-2-Clause */

/* Subnet administrator (SA): the form of requests, and records of the fabric's state. */
#include "sa_fixture.h"
#include "test.h"

#include <time.h>

SA_TEST(a_table_has_all_nodes_and_says_how_far_apart_they_are)
{
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_NODERECORD), 5);
	assert_int_equal(stride(subnet), 112);
	assert_int_equal(subnet->length, SA_HEADER + 5 * 112);
	assert_int_equal(subnet->response[24], 1);
	assert_int_equal(subnet->response[25], 1);
	assert_int_equal(subnet->response[26], 0x1f << 3 | 1);
	assert_int_equal(get16(record_at(subnet, 4)), LID_GAMMA);
	assert_int_equal(
		mad_get_field((void *)(uintptr_t)record_at(subnet, 4), 0, IB_SA_NR_TYPE_F),
		NODE_CA);
	assert_true(get64(record_at(subnet, 4) + 16) == 0x3000);
	assert_true(get64(record_at(subnet, 4) + 24) == 0x3001);
	assert_string_equal((const char *)record_at(subnet, 4) + 44, "gamma");
}

SA_TEST(a_get_returns_one_record_none_or_too_many)
{
	begin(subnet, METHOD_GET, IB_SA_ATTR_NODERECORD);
	assert_int_equal(ask(subnet), SA_TOO_MANY_RECORDS);
	assert_int_equal(subnet->length, MAD_BYTES);
	mask(subnet, COMPONENT(0));
	put16(subnet->record, LID_BETA);
	assert_int_equal(ask(subnet), 0);
	assert_int_equal(subnet->length, MAD_BYTES);
	assert_int_equal(subnet->response[3], METHOD_GET | METHOD_RESPONSE);
	assert_int_equal(subnet->response[26], 0);
	assert_int_equal(get16(subnet->response + SA_HEADER), LID_BETA);
	assert_true(get64(subnet->response + SA_HEADER + 16) == 0x2000);
	put16(subnet->record, 100);
	assert_int_equal(ask(subnet), SA_NO_RECORDS);
	assert_int_equal(subnet->length, MAD_BYTES);
}

SA_TEST(a_table_without_a_match_is_empty)
{
	begin_with(subnet, METHOD_GET_TABLE, IB_SA_ATTR_NODERECORD, COMPONENT(7));
	put64(subnet->record + 16, 0x9999);
	assert_int_equal(ask(subnet), 0);
	assert_int_equal(subnet->length, SA_HEADER);
	assert_int_equal(record_count(subnet), 0);
}

SA_TEST(all_masked_components_must_match_and_no_others)
{
	begin(subnet, METHOD_GET_TABLE, IB_SA_ATTR_NODERECORD);
	memset(subnet->record, 0x77, 108);
	assert_int_equal(records(subnet), 5);
	mask(subnet, COMPONENT(4));
	subnet->record[6] = NODE_CA;
	assert_int_equal(records(subnet), 3);
	mask(subnet, COMPONENT(5));
	subnet->record[7] = 2;
	assert_int_equal(records(subnet), 1);
	assert_int_equal(get16(record_at(subnet, 0)), LID_BETA);
	mask(subnet, COMPONENT(14));
	memset(subnet->record + 44, 0, 64);
	memcpy(subnet->record + 44, "beta", 4);
	assert_int_equal(records(subnet), 1);
	subnet->record[48] = 'x';
	assert_int_equal(records(subnet), 0);
}

SA_TEST(any_lid_of_a_port_names_it)
{
	begin_with(subnet, METHOD_GET, IB_SA_ATTR_NODERECORD, COMPONENT(0));
	put16(subnet->record, LID_GAMMA + 1);
	assert_int_equal(ask(subnet), 0);
	assert_int_equal(get16(subnet->response + SA_HEADER), LID_GAMMA);
}

SA_TEST(a_port_whose_link_is_down_is_no_longer_there)
{
	subnet->fabric.ports[subnet->beta].phys_state = PHYS_POLLING;
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_NODERECORD), 4);
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_LINKRECORD), 6);
	subnet->fabric.ports[subnet->beta].phys_state = PHYS_LINK_UP;
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_LINKRECORD), 8);
}

SA_TEST(port_records_are_of_all_a_switchs_ports_and_of_end_ports)
{
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_PORTINFORECORD), 5 + 21 + 3);
	assert_int_equal(stride(subnet), 72);
	begin_with(subnet, METHOD_GET_TABLE, IB_SA_ATTR_PORTINFORECORD, COMPONENT(0));
	put16(subnet->record, LID_NEAR);
	assert_int_equal(records(subnet), 5);
	assert_int_equal(record_at(subnet, 4)[2], 4);
	mask(subnet, COMPONENT(1) | COMPONENT(2));
	subnet->record[2] = 2;
	subnet->record[3] = 0x80;
	assert_int_equal(records(subnet), 1);
	assert_int_equal(record_at(subnet, 0)[2], 2);
	assert_int_equal(record_at(subnet, 0)[3], 0x80);
}

SA_TEST(components_lie_where_portinfo_has_its_fields)
{
	static const struct {
		unsigned int component;
		enum MAD_FIELDS field;
	} places[] = {
		{4, IB_PORT_GID_PREFIX_F},
		{5, IB_PORT_LID_F},
		{7, IB_PORT_CAPMASK_F},
		{10, IB_PORT_LOCAL_PORT_F},
		{13, IB_PORT_LINK_WIDTH_ACTIVE_F},
		{15, IB_PORT_STATE_F},
		{20, IB_PORT_LMC_F},
		{21, IB_PORT_LINK_SPEED_ACTIVE_F},
		{23, IB_PORT_NEIGHBOR_MTU_F},
		{31, IB_PORT_MTU_CAP_F},
		{34, IB_PORT_OPER_VLS_F},
		{42, IB_PORT_GUID_CAP_F},
		{44, IB_PORT_SUBN_TIMEOUT_F},
		{46, IB_PORT_RESP_TIME_VAL_F},
		{49, IB_PORT_MAX_CREDIT_HINT_F},
		{52, IB_PORT_CAPMASK2_F},
		{53, IB_PORT_LINK_SPEED_EXT_ACTIVE_F},
		{56, IB_PORT_LINK_SPEED_EXT_ENABLED_F},
	};
	uint8_t record[68];

	begin_with(subnet, METHOD_GET, IB_SA_ATTR_PORTINFORECORD, COMPONENT(0));
	put16(subnet->record, LID_GAMMA);
	assert_int_equal(ask(subnet), 0);
	memcpy(record, subnet->response + SA_HEADER, sizeof(record));
	for (size_t i = 0; i < COUNT(places); i++) {
		uint64_t value = mad_get_field64(record, 4, places[i].field);

		begin_with(subnet, METHOD_GET, IB_SA_ATTR_PORTINFORECORD,
			   COMPONENT(0) | COMPONENT(places[i].component));
		put16(subnet->record, LID_GAMMA);
		mad_set_field64(subnet->record, 4, places[i].field, value);
		assert_int_equal(ask(subnet), 0);
		mad_set_field64(subnet->record, 4, places[i].field, value ^ 1);
		assert_int_equal(ask(subnet), SA_NO_RECORDS);
	}
}

SA_TEST(ports_are_found_by_some_of_their_capabilities)
{
	subnet->fabric.ports[subnet->alpha].capability_mask |= IS_SM;
	begin_with(subnet, METHOD_GET_TABLE, IB_SA_ATTR_PORTINFORECORD, COMPONENT(7));
	put32(subnet->record + 24, IS_SM);
	assert_int_equal(records(subnet), 0);
	put32(subnet->mad + 20, 1U << 31);
	assert_int_equal(records(subnet), 1);
	assert_int_equal(get16(record_at(subnet, 0)), LID_ALPHA);
}

SA_TEST(an_mkey_is_only_for_who_is_trusted)
{
	settings_of(&subnet->fabric, subnet->beta)->mkey = 0x1122;
	begin_with(subnet, METHOD_GET, IB_SA_ATTR_PORTINFORECORD, COMPONENT(0));
	put16(subnet->record, LID_BETA);
	assert_int_equal(ask(subnet), 0);
	assert_true(get64(subnet->response + SA_HEADER + 4) == 0);
	trust(subnet);
	assert_int_equal(ask(subnet), 0);
	assert_true(get64(subnet->response + SA_HEADER + 4) == 0x1122);
	assert_true(get64(subnet->response + 36) == 0);
}

SA_TEST(switches_managers_and_links_have_records)
{
	const uint8_t *record;

	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_SWITCHINFORECORD), 2);
	assert_int_equal(stride(subnet), 24);
	assert_int_equal(get16(record_at(subnet, 1)), LID_FAR);
	assert_int_equal(get16(record_at(subnet, 1) + 4), LID_COUNT - 1);
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_SMINFORECORD), 1);
	assert_int_equal(stride(subnet), 32);
	record = record_at(subnet, 0);
	assert_int_equal(get16(record), LID_ALPHA);
	assert_true(get64(record + 4) == 0x1001);
	assert_int_equal(record[24], SM_PRIORITY << 4 | SM_STATE_MASTER);
	begin_with(subnet, METHOD_GET, IB_SA_ATTR_LINKRECORD, COMPONENT(0) | COMPONENT(3));
	put16(subnet->record, LID_FAR);
	put16(subnet->record + 4, LID_NEAR);
	assert_int_equal(ask(subnet), 0);
	assert_int_equal(get32(subnet->response + SA_HEADER), LID_FAR << 16 | 0x0404);
	mask(subnet, COMPONENT(1));
	subnet->record[2] = 1;
	assert_int_equal(ask(subnet), SA_NO_RECORDS);
	put16(subnet->record + 4, LID_GAMMA);
	assert_int_equal(ask(subnet), 0);
}

SA_TEST(tables_of_nodes_have_a_record_for_each_block)
{
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_GUIDINFORECORD), 5);
	assert_int_equal(stride(subnet), 72);
	assert_true(get64(record_at(subnet, 4) + 8) == 0x3001);
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_PKEYTABLERECORD), (5 + 21 + 3) * 4);
	assert_int_equal(get16(record_at(subnet, 0) + 8), DEFAULT_PKEY);
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_VLARBTABLERECORD), (5 + 21 + 3) * 4);
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_SL2VLTABLERECORD), 25 + 441 + 3);
	assert_int_equal(stride(subnet), 16);
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_LFTRECORD), 2);
	assert_int_equal(record_at(subnet, 0)[8 + LID_ALPHA], 1);
	assert_int_equal(record_at(subnet, 1)[8 + LID_ALPHA], 4);
	assert_int_equal(record_at(subnet, 0)[8 + 60], NO_ROUTE);
}

SA_TEST(a_block_is_found_by_its_number_and_port)
{
	uint8_t block[64] = {0};

	begin_with(subnet, METHOD_GET, IB_SA_ATTR_PKEYTABLERECORD,
		   COMPONENT(0) | COMPONENT(1) | COMPONENT(2));
	put16(subnet->record, LID_NEAR);
	put16(subnet->record + 2, 3);
	subnet->record[4] = 2;
	assert_int_equal(ask(subnet), 0);
	put16(subnet->record + 2, 4);
	assert_int_equal(ask(subnet), SA_NO_RECORDS);
	begin_with(subnet, METHOD_GET, IB_SA_ATTR_SL2VLTABLERECORD,
		   COMPONENT(0) | COMPONENT(1) | COMPONENT(2));
	put16(subnet->record, LID_NEAR);
	subnet->record[2] = 4;
	subnet->record[3] = 5;
	assert_int_equal(ask(subnet), SA_NO_RECORDS);
	subnet->record[3] = 4;
	assert_int_equal(ask(subnet), 0);
	begin_with(subnet, METHOD_GET, IB_SA_ATTR_LFTRECORD, COMPONENT(0) | COMPONENT(1));
	put16(subnet->record, LID_NEAR);
	assert_int_equal(ask(subnet), 0);
	put16(subnet->record + 2, 1);
	assert_int_equal(ask(subnet), SA_NO_RECORDS);
	begin_with(subnet, METHOD_GET, IB_SA_ATTR_MFTRECORD,
		   COMPONENT(0) | COMPONENT(1) | COMPONENT(3));
	put16(subnet->record, LID_FAR);
	put16(subnet->record + 2, 1 << 12 | 5);
	assert_int_equal(ask(subnet), 0);
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_MFTRECORD), 0);
	put16(block, 0x0002);
	assert_int_equal(route_set_multicast_block(&subnet->fabric, FAR, 5, 1, block), 0);
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_MFTRECORD), 1);
	assert_int_equal(get16(record_at(subnet, 0) + 2), 1 << 12 | 5);
	assert_int_equal(get16(record_at(subnet, 0) + 8), 2);
}

SA_TEST(class_port_info_has_the_sa_s_capabilities)
{
	begin(subnet, METHOD_GET, 1);
	assert_int_equal(ask(subnet), 0);
	assert_int_equal(subnet->response[SA_HEADER], 1);
	assert_int_equal(subnet->response[SA_HEADER + 1], 2);
	assert_int_equal(get16(subnet->response + SA_HEADER + 2), 0x2700);
}

SA_TEST(unsupported_requests_have_a_status)
{
	begin(subnet, METHOD_GET, IB_SA_ATTR_NODERECORD);
	subnet->mad[2] = 1;
	assert_int_equal(ask(subnet), STATUS_BAD_VERSION);
	begin(subnet, 0x42, IB_SA_ATTR_NODERECORD);
	assert_int_equal(ask(subnet), STATUS_BAD_METHOD);
	assert_int_equal(subnet->response[3], 0x42 | METHOD_RESPONSE);
	begin(subnet, METHOD_GET, 0x77);
	assert_int_equal(ask(subnet), STATUS_BAD_ATTRIBUTE);
	begin(subnet, METHOD_SET, IB_SA_ATTR_NODERECORD);
	assert_int_equal(ask(subnet), STATUS_BAD_ATTRIBUTE);
	assert_int_equal(subnet->response[3], METHOD_GET | METHOD_RESPONSE);
	begin(subnet, METHOD_DELETE, IB_SA_ATTR_NODERECORD);
	assert_int_equal(ask(subnet), STATUS_BAD_ATTRIBUTE);
	assert_int_equal(subnet->response[3], METHOD_DELETE | METHOD_RESPONSE);
	begin(subnet, 0x14, IB_SA_ATTR_PATHRECORD);
	assert_int_equal(ask(subnet), STATUS_BAD_ATTRIBUTE);
}

SA_TEST(responses_and_report_responses_are_swallowed)
{
	static const uint8_t methods[] = {0x81, 0x86, METHOD_SEND, METHOD_TRAP,
					  METHOD_TRAP_REPRESS};
	size_t length;

	for (size_t i = 0; i < sizeof(methods); i++) {
		begin(subnet, methods[i], 2);
		assert_null(sa_respond(subnet->sa, subnet->from, LID_ALPHA, subnet->mad,
				       MAD_BYTES, &length));
	}
}

SA_TEST(rubbish_of_any_length_gets_a_response_or_is_dropped)
{
	static const uint8_t attributes[] = {0x01, 0x03, 0x11, 0x12, 0x13, 0x14,
					     0x15, 0x17, 0x18, 0x20, 0x30, 0x31,
					     0x33, 0x35, 0x36, 0x38, 0xf3};
	static const uint8_t methods[] = {METHOD_GET, METHOD_SET, METHOD_GET_TABLE,
					  METHOD_DELETE};
	uint64_t number = 1;

	assert_null(sa_respond(subnet->sa, subnet->alpha, LID_ALPHA, NULL, 0, &subnet->length));
	for (size_t round = 0; round < 60000; round++) {
		size_t length = round % 3 ? MAD_BYTES : round % 257;
		uint8_t *exact = malloc(length + !length);
		uint8_t *response;

		for (unsigned int i = 0; i < MAD_BYTES; i += 8) {
			number = fabric_hash(&subnet->fabric, round, number, i);
			put64(subnet->mad + i, number);
		}
		subnet->mad[0] = 1;
		subnet->mad[1] = CLASS_SA;
		if (round % 100)
			subnet->mad[2] = 2;
		if (round % 50)
			subnet->mad[3] = methods[number % 4];
		put16(subnet->mad + 16, attributes[number / 4 % sizeof(attributes)]);
		if (round & 1) { /* valid LIDs and GIDs, few components */
			put16(subnet->record, subnet->record[0] & 15);
			put64(subnet->mad + 48,
			      1ULL << (number >> 8 & 63) | (number >> 20 & 7));
			put_gid(subnet->record + 8, 0x1001);
			put_gid(subnet->record + 24, 0x2001);
		}
		assert_non_null(exact);
		memcpy(exact, subnet->mad, length);
		response = sa_respond(subnet->sa, round & 2 ? subnet->alpha : subnet->beta,
				      LID_ALPHA, exact, length, &length);
		if (response) {
			assert_true(response[3] & METHOD_RESPONSE);
			assert_true(length >= SA_HEADER);
		}
		free(response);
		free(exact);
		subnet->fabric.now += SECOND;
	}
}

PLAIN_TEST(all_nodes_of_a_large_fabric_respond_at_once)
{
	struct subnet *subnet = calloc(1, sizeof(*subnet));
	clock_t start;
	struct graph graph;
	uint32_t node;

	assert_non_null(subnet);
	graph_init(&graph);
	for (uint32_t i = 0; i < 60000; i++)
		assert_int_equal(graph_add(&graph, NODE_SWITCH, 0x10000 + i, "s", 1, &node), 0);
	assert_int_equal(fabric_init(&subnet->fabric, &graph, 1), 0);
	assert_int_equal(routes_init(&subnet->fabric, true), 0);
	for (uint32_t i = 1; i < LID_COUNT; i++)
		set_lid(&subnet->fabric, port_of(subnet, i, 0), (uint16_t)i, 0);
	subnet->sa = sa_new(&subnet->fabric, note_report, subnet);
	subnet->from = port_of(subnet, 1, 0);
	subnet->record = subnet->mad + SA_HEADER;
	start = clock();
	assert_int_equal(ask_for_all(subnet, IB_SA_ATTR_NODERECORD), LID_COUNT - 1);
	assert_true(clock() - start < 2 * CLOCKS_PER_SEC);
	begin(subnet, METHOD_GET_TABLE, IB_SA_ATTR_PATHRECORD);
	assert_int_equal(ask(subnet), SA_NO_RESOURCES);
	begin_with(subnet, METHOD_GET, IB_SA_ATTR_PATHRECORD, 3 << 2);
	put_gid(subnet->record + 8, 0x10005);
	put_gid(subnet->record + 24, 0x10005);
	assert_int_equal(ask(subnet), 0);
	start = clock();
	for (unsigned int i = 0; i < 10000; i++)
		assert_int_equal(ask(subnet), 0);
	assert_true(clock() - start < 2 * CLOCKS_PER_SEC);
	tear_down(subnet);
}
