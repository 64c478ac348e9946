/* SPDX-License-Identifier: BSD-2-Clause */

/* Routes of MADs: directed routes, routes by LID, and both in one packet. */
#include "subnet_fixture.h"
#include "test.h"

#include <errno.h>

static uint64_t guid_of_response(const struct subnet *subnet)
{
	assert_int_equal(status_of_response(subnet), 0);
	return mad_get_field64(data_of_response(subnet), 0, IB_NODE_GUID_F);
}

static void ask_for_guid(struct subnet *subnet, uint16_t lid)
{
	begin(subnet, CLASS_SMP, METHOD_GET, IB_ATTR_NODE_INFO, 0);
	subnet->dlid = lid;
}

static bool reaches(struct subnet *subnet, uint32_t node)
{
	ask_for_guid(subnet, lid_of(subnet, node));
	return asked(subnet) &&
	       guid_of_response(subnet) == hardware(&subnet->fabric, node)->guid;
}

/* --- directed routes ------------------------------------------------------------ */

SUBNET_TEST(a_directed_response_returns_by_the_same_path_with_hop_pointer_0)
{
	uint8_t expected[MAD_BYTES] = {1, CLASS_DIRECTED_SMP, 1, 0x81, 0x80, 0, 0, 3};

	assert_true(ask_along(subnet, PATH(1, 4, 1)));
	put32(expected + 8, subnet->smps.agent->tid_high);
	put32(expected + 12, subnet->tid);
	put16(expected + 16, IB_ATTR_NODE_INFO);
	put32(expected + 32, 0xffffffff);
	assert_true(
		sma_read(&subnet->fabric, GAMMA, IB_ATTR_NODE_INFO, 0, 1, expected + SMP_DATA));
	memcpy(expected + 128, (const uint8_t[]){0, 1, 4, 1}, 4);
	memcpy(expected + 192, (const uint8_t[]){0, 1, 4, 1}, 4);
	assert_memory_equal(subnet->response->data, expected, MAD_BYTES);
}

SUBNET_TEST(a_directed_request_arrives_with_its_pointer_behind_the_path)
{
	uint8_t expected[MAD_BYTES];

	hear_at(subnet, port_of(subnet, FAR, 0), CLASS_DIRECTED_SMP, METHOD_TRAP);
	begin(subnet, CLASS_DIRECTED_SMP, METHOD_TRAP, 2, 0);
	direct(subnet, PATH(1, 3));
	assert_int_equal(send_by(subnet, &subnet->smps, 0), 0);
	settle(&subnet->fabric);
	assert_int_equal(subnet->heard.count, 1);
	memcpy(expected, subnet->mad, MAD_BYTES);
	put32(expected + 8, subnet->smps.agent->tid_high);
	expected[6] = 3;
	expected[192 + 1] = 1;
	expected[192 + 2] = 3;
	assert_memory_equal(subnet->heard.first->data, expected, MAD_BYTES);
}

SUBNET_TEST(a_path_of_0_hops_leads_to_oneself)
{
	assert_true(ask_along(subnet, subnet->mad, 0));
	assert_true(guid_of_response(subnet) == 0x1000);
	assert_int_equal(subnet->response->data[6], 1); /* no way back */
	assert_int_equal(subnet->response->data[192 + 1], 0);
}

SUBNET_TEST(a_path_ends_at_a_port_that_is_down)
{
	start_trace(subnet);
	rule(subnet, "link down on far/4");
	settle(&subnet->fabric);
	assert_false(ask_along(subnet, PATH(1, 4, 1)));
	assert_true(traced(subnet, "link down at near/4"));
	assert_true(ask_along(subnet, PATH(1, 3, 1)));
	assert_false(ask_along(subnet, PATH(1, 5)));
	assert_true(traced(subnet, "link down at near/5"));
}

SUBNET_TEST(a_path_ends_at_a_port_that_does_not_exist)
{
	start_trace(subnet);
	assert_false(ask_along(subnet, PATH(1, 7)));
	assert_true(traced(subnet, "no such port at near/1"));
	assert_false(ask_along(subnet, PATH(1, 4, 255)));
	assert_true(traced(subnet, "no such port at far/4"));
	assert_false(ask_along(subnet, PATH(1, 0)));
}

SUBNET_TEST(no_path_leads_through_a_ca)
{
	start_trace(subnet);
	assert_true(ask_along(subnet, PATH(1, 2)));
	assert_false(ask_along(subnet, PATH(1, 2, 2)));
	assert_true(traced(subnet, "no switch at beta/1"));
	assert_false(ask_along(subnet, PATH(1, 2, 1)));
}

SUBNET_TEST(a_path_may_visit_a_switch_more_than_once)
{
	assert_true(ask_along(subnet, PATH(1, 4, 3, 4, 3, 1)));
	assert_true(guid_of_response(subnet) == 0x1000);
	assert_memory_equal(subnet->response->data + 193, ((const uint8_t[]){1, 4, 3, 4, 3, 1}),
			    6);
}

SUBNET_TEST(a_path_has_up_to_63_hops)
{
	uint8_t path[64] = {1};

	for (unsigned int hop = 1; hop < 64; hop++)
		path[hop] = hop % 2 ? 4 : 3;
	assert_true(ask_along(subnet, path, 63));
	assert_true(guid_of_response(subnet) == 0x100);
	assert_int_equal(subnet->response->data[192 + 63], 3);
	assert_true(ask_along(subnet, path, 62));
	assert_true(guid_of_response(subnet) == 0x200);
	begin(subnet, CLASS_DIRECTED_SMP, METHOD_GET, IB_ATTR_NODE_INFO, 0);
	direct(subnet, path, 63);
	subnet->mad[7] = 64;
	assert_false(asked(subnet));
}

SUBNET_TEST(a_hop_pointer_that_is_not_at_the_beginning_is_bad)
{
	start_trace(subnet);
	begin(subnet, CLASS_DIRECTED_SMP, METHOD_GET, IB_ATTR_NODE_INFO, 0);
	direct(subnet, PATH(1, 4));
	subnet->mad[6] = 1;
	assert_false(asked(subnet));
	assert_true(traced(subnet, "bad hop pointer at alpha/1"));
}

SUBNET_TEST(a_response_whose_pointer_is_not_at_the_end_is_bad)
{
	start_trace(subnet);
	begin(subnet, CLASS_DIRECTED_SMP, METHOD_GET | METHOD_RESPONSE, IB_ATTR_NODE_INFO, 0);
	direct(subnet, PATH(1, 4));
	put16(subnet->mad + 4, 0x8000);
	subnet->mad[6] = 2;
	assert_int_equal(send_by(subnet, &subnet->smps, 0), 0);
	assert_true(traced(subnet, "bad hop pointer at alpha/1"));
}

/* --- a part by LID, a part along a path ----------------------------------------- */

SUBNET_TEST(a_path_may_begin_behind_a_part_by_lid)
{
	hear_at(subnet, port_of(subnet, NEAR, 0), CLASS_SMP, 0);
	begin(subnet, CLASS_DIRECTED_SMP, METHOD_GET, IB_ATTR_NODE_INFO, 0);
	direct(subnet, PATH(1));
	put16(subnet->mad + 32, lid_of(subnet, NEAR));
	subnet->dlid = lid_of(subnet, FAR);
	assert_int_equal(send_by(subnet, &subnet->heard, UINT32_MAX), 0);
	settle(&subnet->fabric);
	subnet->response = take(&subnet->heard);
	assert_true(guid_of_response(subnet) == 0x3000);
	assert_int_equal(subnet->response->data[6], 0);
	assert_int_equal(subnet->response->data[193], 1); /* GAMMA's port */
	assert_int_equal(subnet->response->data[194], 0); /* and no other port */
}

SUBNET_TEST(a_ca_begins_such_a_path_by_any_port_of_the_switch_that_it_names)
{
	begin(subnet, CLASS_DIRECTED_SMP, METHOD_GET, IB_ATTR_NODE_INFO, 0);
	direct(subnet, PATH(4, 1));
	put16(subnet->mad + 32, lid_of(subnet, ALPHA));
	subnet->dlid = lid_of(subnet, NEAR);
	/* the path begins here only if the part by LID is empty (IBA 14.2.2.1) */
	assert_int_equal(send_by(subnet, &subnet->smps, UINT32_MAX), 0);
	settle(&subnet->fabric);
	subnet->response = take(&subnet->smps);
	assert_true(guid_of_response(subnet) == 0x3000);
}

SUBNET_TEST(a_path_may_end_before_a_part_by_lid)
{
	begin(subnet, CLASS_DIRECTED_SMP, METHOD_GET, IB_ATTR_NODE_INFO, 0);
	direct(subnet, PATH(1));
	put16(subnet->mad + 34, lid_of(subnet, GAMMA));
	assert_true(asked(subnet));
	assert_true(guid_of_response(subnet) == 0x3000);
	assert_int_equal(subnet->response->data[6], 0);
	assert_int_equal(subnet->response->data[193], 1);
	assert_int_equal(subnet->response->data[194], 0);
}

SUBNET_TEST(a_part_by_lid_that_leads_nowhere_loses_the_packet)
{
	start_trace(subnet);
	begin(subnet, CLASS_DIRECTED_SMP, METHOD_GET, IB_ATTR_NODE_INFO, 0);
	direct(subnet, PATH(1));
	put16(subnet->mad + 34, 0x1234);
	assert_false(asked(subnet));
	assert_true(traced(subnet, "no route at near/1"));
	put16(subnet->mad + 34, PERMISSIVE_LID);
	put16(subnet->mad + 32, lid_of(subnet, ALPHA));
	put32(subnet->mad + 12, ++subnet->tid);
	subnet->dlid = 0x1234;
	assert_false(asked(subnet));
	assert_true(traced(subnet, "no route at alpha/1"));
}

/* --- by LID --------------------------------------------------------------------- */

SUBNET_TEST(a_lid_that_nobody_has_leads_nowhere)
{
	uint64_t before = counter_get(&subnet->fabric, port_of(subnet, NEAR, 1),
				      COUNT_RCV_SWITCH_RELAY_ERRORS);

	start_trace(subnet);
	ask_for_guid(subnet, 0x1234);
	assert_false(asked(subnet));
	assert_true(traced(subnet, "no route at near/1"));
	assert_true(counter_get(&subnet->fabric, port_of(subnet, NEAR, 1),
				COUNT_RCV_SWITCH_RELAY_ERRORS) == before + 1);
}

/* Sets the port by which a switch forwards to a LID. */
static void forward(struct subnet *subnet, const uint8_t *path, unsigned int count,
		    uint16_t lid, uint8_t port)
{
	uint8_t block[64];

	begin(subnet, CLASS_DIRECTED_SMP, METHOD_GET, IB_ATTR_LINEARFORWTBL, lid / 64);
	direct(subnet, path, count);
	assert_true(asked(subnet));
	memcpy(block, data_of_response(subnet), 64);
	block[lid % 64] = port;
	begin(subnet, CLASS_DIRECTED_SMP, METHOD_SET, IB_ATTR_LINEARFORWTBL, lid / 64);
	direct(subnet, path, count);
	memcpy(subnet->mad + SMP_DATA, block, 64);
	assert_true(asked(subnet));
	assert_int_equal(status_of_response(subnet), 0);
	assert_memory_equal(data_of_response(subnet), block, 64);
}

SUBNET_TEST(packets_follow_a_table_that_was_set)
{
	start_trace(subnet);
	rule(subnet, "link down on near/4");
	settle(&subnet->fabric);
	forward(subnet, PATH(1), lid_of(subnet, FAR), 4);
	ask_for_guid(subnet, lid_of(subnet, FAR));
	assert_false(asked(subnet));
	assert_true(traced(subnet, "link down at near/4"));
	forward(subnet, PATH(1), lid_of(subnet, FAR), 3);
	forward(subnet, PATH(1, 3), lid_of(subnet, ALPHA), 3);
	assert_true(reaches(subnet, FAR));
}

SUBNET_TEST(a_loop_in_tables_is_given_up)
{
	start_trace(subnet);
	forward(subnet, PATH(1), lid_of(subnet, GAMMA), 4);
	forward(subnet, PATH(1, 4), lid_of(subnet, GAMMA), 3);
	ask_for_guid(subnet, lid_of(subnet, GAMMA));
	assert_false(asked(subnet));
	assert_true(traced(subnet, "went in circles"));
	/* also as the part of a directed route */
	begin(subnet, CLASS_DIRECTED_SMP, METHOD_GET, IB_ATTR_NODE_INFO, 0);
	direct(subnet, PATH(1));
	put16(subnet->mad + 34, lid_of(subnet, GAMMA));
	assert_false(asked(subnet));
}

SUBNET_TEST(a_table_that_leads_to_the_wrong_ca_loses_the_packet)
{
	start_trace(subnet);
	forward(subnet, PATH(1), lid_of(subnet, GAMMA), 2);
	ask_for_guid(subnet, lid_of(subnet, GAMMA));
	assert_false(asked(subnet));
	assert_true(traced(subnet, "not its LID at beta/1"));
}

SUBNET_TEST(a_lid_above_linear_fdb_top_is_not_forwarded)
{
	assert_true(reaches(subnet, GAMMA));
	subnet->fabric.nodes[NEAR].linear_top = (uint16_t)(lid_of(subnet, GAMMA) - 1);
	assert_false(reaches(subnet, GAMMA)); /* IBA 14.2.5.4 */
}

BARE_TEST(a_bare_fabric_forwards_nothing_until_it_is_told_to)
{
	set_lid(&subnet->fabric, port_of(subnet, ALPHA, 1), 1, 0);
	set_lid(&subnet->fabric, port_of(subnet, BETA, 1), 2, 0);
	assert_false(reaches(subnet, BETA));
	subnet->fabric.nodes[NEAR].linear_top = 2;
	forward(subnet, PATH(1), 2, 2);
	assert_false(reaches(subnet, BETA)); /* the response has no route */
	forward(subnet, PATH(1), 1, 1);
	assert_true(reaches(subnet, BETA));
}

SUBNET_TEST(smps_pass_links_from_init_on_and_others_active_ones)
{
	hear_at(subnet, port_of(subnet, BETA, 1), VENDOR_CLASS, METHOD_SEND);
	for (unsigned int i = PORT_INIT; i <= PORT_ACTIVE; i++) {
		state_of(subnet, NEAR, 2)->state = (uint8_t)i;
		assert_true(reaches(subnet, BETA));
		send_note(subnet, lid_of(subnet, BETA));
		settle(&subnet->fabric);
		assert_int_equal(subnet->heard.count, i == PORT_ACTIVE ? 1 : 0);
	}
	state_of(subnet, NEAR, 2)->state = PORT_DOWN;
	assert_false(reaches(subnet, BETA));
}

/* --- queue pairs ---------------------------------------------------------------- */

static void send_to_qp(struct subnet *subnet, uint8_t class, uint32_t qp, uint32_t qkey)
{
	struct packet packet = {.from = port_of(subnet, ALPHA, 1),
				.qp = qp,
				.source_qp = qp,
				.qkey = qkey,
				.pkey = DEFAULT_PKEY,
				.slid = lid_of(subnet, ALPHA),
				.dlid = lid_of(subnet, GAMMA)};

	begin(subnet, class, METHOD_GET, 1, 0);
	memcpy(packet.mad, subnet->mad, MAD_BYTES);
	wire_send(&subnet->fabric, &packet);
	settle(&subnet->fabric);
}

SUBNET_TEST(a_packet_for_another_queue_pair_is_dropped)
{
	start_trace(subnet);
	send_to_qp(subnet, CLASS_SMP, 1, WELL_KNOWN_QKEY);
	send_to_qp(subnet, VENDOR_CLASS, 0, WELL_KNOWN_QKEY);
	send_to_qp(subnet, VENDOR_CLASS, 2, WELL_KNOWN_QKEY);
	assert_false(traced(subnet, "received"));
	assert_true(traced(subnet, "3 wrong QP or Q_Key at gamma/1"));
	send_to_qp(subnet, VENDOR_CLASS, 1, WELL_KNOWN_QKEY);
	assert_true(traced(subnet, "4 received at gamma/1"));
}

SUBNET_TEST(a_wrong_q_key_is_counted)
{
	send_to_qp(subnet, VENDOR_CLASS, 1, 0);
	send_to_qp(subnet, VENDOR_CLASS, 1, 0x80010001);
	begin(subnet, CLASS_SMP, METHOD_GET, IB_ATTR_PORT_INFO, 0);
	subnet->dlid = lid_of(subnet, GAMMA);
	assert_true(asked(subnet));
	assert_int_equal(mad_get_field(data_of_response(subnet), 0, IB_PORT_QKEY_VIOL_F), 2);
}
