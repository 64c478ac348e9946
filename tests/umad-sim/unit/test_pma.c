/* SPDX-License-Identifier: BSD-2-Clause */

/* The performance management agent, and the traffic in its counters. */

#include "pma_fixture.h"
#include "test.h"

STAR_TEST(without_load_and_errors_nothing_is_counted)
{
	static const uint8_t zeroes[MAD_BYTES];

	star->fabric.now = 1000 * SECOND;
	assert_int_equal(ask(star, ALPHA, METHOD_GET, IB_GSI_PORT_COUNTERS_EXT, 1), STATUS_OK);
	assert_memory_equal(star->mad + DATA + 4, zeroes, MAD_BYTES - DATA - 4);
}

STAR_TEST(counters_grow_with_time_and_never_beyond_the_rate)
{
	uint64_t before = 0;

	star->fabric.load = 0.5;
	for (unsigned int second = 1; second < 10; second++) {
		uint64_t now;

		star->fabric.now = second * SECOND;
		now = extended(star, ALPHA, 1, IB_PC_EXT_XMT_BYTES_F);
		assert_true(now > before);
		/* a load of 0.5 is 25 to 75 Gbit/s of 100 */
		assert_in_range(now - before, 3125000000U / 4 - 1, 3125000000U / 4 * 3 + 1);
		before = now;
	}
	star->fabric.load = 1e9;
	assert_true(extended(star, ALPHA, 1, IB_PC_EXT_XMT_BYTES_F) == 9 * 3125000000ULL);
}

STAR_TEST(both_ends_of_a_cable_agree)
{
	static const enum MAD_FIELDS ends[][2] = {
		{IB_PC_EXT_XMT_BYTES_F, IB_PC_EXT_RCV_BYTES_F},
		{IB_PC_EXT_XMT_PKTS_F, IB_PC_EXT_RCV_PKTS_F},
		{IB_PC_EXT_XMT_UPKTS_F, IB_PC_EXT_RCV_UPKTS_F},
		{IB_PC_EXT_XMT_MPKTS_F, IB_PC_EXT_RCV_MPKTS_F},
	};

	star->fabric.load = 0.3;
	for (uint64_t now = 1; now < 5000 * SECOND; now = now * 7 + 3) {
		star->fabric.now = now;
		for (unsigned int i = 0; i < COUNT_OF(ends); i++) {
			assert_true(extended(star, SWITCH, 2, ends[i][0]) ==
				    extended(star, BETA, 1, ends[i][1]));
			assert_true(extended(star, BETA, 1, ends[i][0]) ==
				    extended(star, SWITCH, 2, ends[i][1]));
		}
		/* settling one of the ports at that time changes nothing */
		counters_settle(&star->fabric, port_of(star, BETA, 1));
	}
}

STAR_TEST(unicast_and_multicast_are_all_packets)
{
	star->fabric.load = 1;
	star->fabric.now = 123456789;
	assert_int_equal(ask(star, SWITCH, METHOD_GET, IB_GSI_PORT_COUNTERS_EXT, 1), STATUS_OK);
	assert_true(field(star, IB_PC_EXT_XMT_MPKTS_F) > 0);
	assert_true(field(star, IB_PC_EXT_XMT_UPKTS_F) + field(star, IB_PC_EXT_XMT_MPKTS_F) ==
		    field(star, IB_PC_EXT_XMT_PKTS_F));
	assert_true(field(star, IB_PC_EXT_RCV_UPKTS_F) + field(star, IB_PC_EXT_RCV_MPKTS_F) ==
		    field(star, IB_PC_EXT_RCV_PKTS_F));
}

STAR_TEST(the_same_seed_gives_the_same_counters_and_another_one_others)
{
	uint64_t once, again, other;

	star->fabric.load = 0.5;
	star->fabric.now = SECOND;
	once = extended(star, ALPHA, 1, IB_PC_EXT_XMT_BYTES_F);
	again = extended(star, ALPHA, 1, IB_PC_EXT_XMT_BYTES_F);
	star->fabric.seed++;
	other = extended(star, ALPHA, 1, IB_PC_EXT_XMT_BYTES_F);
	assert_true(once == again);
	assert_true(once != other);
}

STAR_TEST(a_port_without_a_cable_counts_nothing)
{
	star->fabric.load = 1;
	star->fabric.errors = 10;
	star->fabric.now = 100 * SECOND;
	assert_true(extended(star, ALPHA, 2, IB_PC_EXT_XMT_BYTES_F) == 0);
	assert_true(extended(star, ALPHA, 2, IB_PC_EXT_RCV_BYTES_F) == 0);
	assert_true(extended(star, ALPHA, 2, IB_PC_EXT_ERR_SYM_F) == 0);
	assert_true(extended(star, SWITCH, 0, IB_PC_EXT_RCV_PKTS_F) == 0);
}

STAR_TEST(counters_stop_while_a_link_is_down_and_then_continue)
{
	uint32_t port = port_of(star, BETA, 1);
	uint64_t before;

	star->fabric.load = 1;
	star->fabric.now = 10 * SECOND;
	before = extended(star, BETA, 1, IB_PC_EXT_XMT_BYTES_F);
	counters_settle(&star->fabric, port);
	star->fabric.ports[port].phys_state = PHYS_POLLING;
	star->fabric.now = 20 * SECOND;
	assert_true(extended(star, BETA, 1, IB_PC_EXT_XMT_BYTES_F) == before);
	counters_settle(&star->fabric, port);
	star->fabric.ports[port].phys_state = PHYS_LINK_UP;
	star->fabric.now = 30 * SECOND;
	assert_true(extended(star, BETA, 1, IB_PC_EXT_XMT_BYTES_F) == 2 * before);
	counters_restart(&star->fabric, port);
	assert_true(extended(star, BETA, 1, IB_PC_EXT_XMT_BYTES_F) == 0);
}

STAR_TEST(xmit_wait_grows_faster_than_the_load)
{
	uint64_t little, much;

	star->fabric.now = 10 * SECOND;
	star->fabric.load = 0.2;
	little = extended(star, ALPHA, 1, IB_PC_EXT_XMT_WAIT_F);
	star->fabric.load = 0.4;
	much = extended(star, ALPHA, 1, IB_PC_EXT_XMT_WAIT_F);
	assert_true(little > 0);
	assert_true(much > 2 * little);
}

STAR_TEST(symbol_errors_come_at_the_rate_of_the_fabric)
{
	star->fabric.errors = 2.5;
	star->fabric.now = 100 * SECOND;
	assert_int_equal(read_field(star, ALPHA, IB_GSI_PORT_COUNTERS, 1, IB_PC_ERR_SYM_F),
			 250);
}

STAR_TEST(a_set_clears_the_selected_counters_and_no_others)
{
	uint64_t received;

	star->fabric.load = 0.1;
	star->fabric.now = MILLISECOND;
	received = read_field(star, ALPHA, IB_GSI_PORT_COUNTERS, 1, IB_PC_RCV_BYTES_F);
	assert_int_equal(set(star, ALPHA, IB_GSI_PORT_COUNTERS, 1, IB_PC_COUNTER_SELECT_F,
			     1 << 12 | 1 << 14, 0),
			 STATUS_OK);
	assert_int_equal(field(star, IB_PC_COUNTER_SELECT_F), 1 << 12 | 1 << 14);
	assert_int_equal(field(star, IB_PC_XMT_BYTES_F), 0);
	assert_int_equal(field(star, IB_PC_XMT_PKTS_F), 0);
	assert_int_equal(field(star, IB_PC_RCV_BYTES_F), received);
	star->fabric.now += MILLISECOND;
	assert_in_range(read_field(star, ALPHA, IB_GSI_PORT_COUNTERS, 1, IB_PC_XMT_BYTES_F), 1,
			1 + (uint32_t)extended(star, SWITCH, 1, IB_PC_EXT_RCV_BYTES_F) / 2);
}

STAR_TEST(a_set_can_give_a_counter_any_value)
{
	assert_int_equal(
		set(star, BETA, IB_GSI_PORT_COUNTERS, 1, IB_PC_COUNTER_SELECT_F, 0xffff, 0x11),
		STATUS_OK);
	assert_int_equal(field(star, IB_PC_ERR_SYM_F), 0x1111);
	assert_int_equal(field(star, IB_PC_LINK_DOWNED_F), 0x11);
	assert_int_equal(field(star, IB_PC_ERR_LOCALINTEG_F), 1);
	assert_int_equal(field(star, IB_PC_VL15_DROPPED_F), 0x1111);
	assert_int_equal(field(star, IB_PC_RCV_PKTS_F), 0x11111111);
	assert_int_equal(field(star, IB_PC_XMT_WAIT_F), 0);
	assert_int_equal(get16(star->mad + DATA + 20), 0); /* another bit selects QP1Dropped */
	assert_int_equal(set(star, BETA, IB_GSI_PORT_COUNTERS_EXT, 1,
			     IB_PC_EXT_COUNTER_SELECT2_F, 0x3fff, 0x22),
			 STATUS_OK);
	assert_true(field(star, IB_PC_EXT_QP1_DROP_F) == 0x2222222222222222);
	assert_true(field(star, IB_PC_EXT_XMT_WAIT_F) == 0x2222222222222222);
}

STAR_TEST(counters_stop_at_their_highest_value)
{
	uint32_t port = port_of(star, ALPHA, 1);

	counter_add(&star->fabric, port, COUNT_LINK_DOWNED, 300);
	counter_add(&star->fabric, port, COUNT_BUFFER_OVERRUN_ERRORS, 16);
	counter_add(&star->fabric, port, COUNT_QP1_DROPPED, 1 << 16);
	star->fabric.load = 1;
	star->fabric.now = 1000 * SECOND;
	assert_int_equal(ask(star, ALPHA, METHOD_GET, IB_GSI_PORT_COUNTERS, 1), STATUS_OK);
	assert_int_equal(field(star, IB_PC_LINK_DOWNED_F), 0xff);
	assert_int_equal(field(star, IB_PC_ERR_EXCESS_OVR_F), 0xf);
	assert_int_equal(field(star, IB_PC_XMT_BYTES_F), UINT32_MAX);
	assert_int_equal(get16(star->mad + DATA + 20), 0xffff);
	assert_int_equal(field(star, IB_PC_VL15_DROPPED_F), 0);
	assert_true(extended(star, ALPHA, 1, IB_PC_EXT_LINK_DOWNED_F) == 300);
}

STAR_TEST(all_ports_of_a_switch_are_read_as_a_sum_and_set_together)
{
	uint64_t sum = 0;

	star->fabric.load = 0.5;
	star->fabric.now = SECOND;
	for (unsigned int port = 0; port <= 4; port++)
		sum += extended(star, SWITCH, port, IB_PC_EXT_XMT_BYTES_F);
	assert_true(sum > 0);
	assert_true(extended(star, SWITCH, 0xff, IB_PC_EXT_XMT_BYTES_F) == sum);
	assert_int_equal(set(star, SWITCH, IB_GSI_PORT_COUNTERS, 0xff, IB_PC_COUNTER_SELECT_F,
			     1 << 12, 0),
			 STATUS_OK);
	for (unsigned int port = 0; port <= 4; port++)
		assert_true(extended(star, SWITCH, port, IB_PC_EXT_XMT_BYTES_F) == 0);
	assert_true(extended(star, SWITCH, 0xff, IB_PC_EXT_RCV_BYTES_F) > 0);
	assert_int_equal(set(star, SWITCH, IB_GSI_PORT_COUNTERS_EXT, 0xff,
			     IB_PC_EXT_COUNTER_SELECT_F, 0xff, 0xff),
			 STATUS_OK);
	assert_true(field(star, IB_PC_EXT_XMT_BYTES_F) == UINT64_MAX);
}

STAR_TEST(a_port_that_the_node_does_not_have_is_a_bad_value)
{
	static const uint16_t attributes[] = {
		IB_GSI_PORT_SAMPLES_CONTROL, IB_GSI_PORT_COUNTERS, IB_GSI_PORT_COUNTERS_EXT,
		IB_GSI_PORT_XMIT_DATA_SL, IB_GSI_PORT_EXT_SPEEDS_COUNTERS};

	for (unsigned int i = 0; i < COUNT_OF(attributes); i++) {
		assert_int_equal(ask(star, ALPHA, METHOD_GET, attributes[i], 0),
				 STATUS_BAD_VALUE);
		assert_int_equal(ask(star, ALPHA, METHOD_GET, attributes[i], 2), STATUS_OK);
		assert_int_equal(ask(star, ALPHA, METHOD_SET, attributes[i], 3),
				 STATUS_BAD_VALUE);
		assert_int_equal(ask(star, ALPHA, METHOD_GET, attributes[i], 0xff),
				 STATUS_BAD_VALUE);
		assert_int_equal(ask(star, SWITCH, METHOD_GET, attributes[i], 0), STATUS_OK);
		assert_int_equal(ask(star, SWITCH, METHOD_GET, attributes[i], 5),
				 STATUS_BAD_VALUE);
	}
}

STAR_TEST(other_versions_methods_and_attributes_have_their_status)
{
	struct query query = query_of(star, ALPHA);

	assert_int_equal(ask(star, ALPHA, METHOD_GET, 0x13, 1), STATUS_BAD_ATTRIBUTE);
	assert_int_equal(ask(star, ALPHA, METHOD_GET, 0xffff, 1), STATUS_BAD_ATTRIBUTE);
	assert_int_equal(ask(star, ALPHA, METHOD_GET, IB_GSI_SW_PORT_VL_CONGESTION, 1),
			 STATUS_BAD_ATTRIBUTE);
	assert_int_equal(ask(star, SWITCH, METHOD_GET, IB_GSI_SW_PORT_VL_CONGESTION, 1),
			 STATUS_OK);
	assert_int_equal(ask(star, ALPHA, METHOD_DELETE, IB_GSI_PORT_COUNTERS, 1),
			 STATUS_BAD_METHOD);
	request(star, IB_PERFORMANCE_CLASS, 2, METHOD_GET, IB_GSI_PORT_COUNTERS, 0);
	assert_true(pma_respond(&query));
	assert_int_equal(status_of_response(star), STATUS_BAD_VERSION);
}

STAR_TEST(a_response_gets_no_response)
{
	struct query query = query_of(star, ALPHA);

	request(star, IB_PERFORMANCE_CLASS, 1, 0x81, IB_GSI_PORT_COUNTERS, 0);
	assert_false(pma_respond(&query));
	request(star, IB_PERFORMANCE_CLASS, 1, METHOD_TRAP_REPRESS, NOTICE, 0);
	assert_false(pma_respond(&query));
}

STAR_TEST(class_port_info_has_the_agent_s_capabilities)
{
	assert_int_equal(ask(star, ALPHA, METHOD_GET, CLASS_PORT_INFO, 0), STATUS_OK);
	assert_int_equal(field(star, IB_CPI_BASEVER_F), 1);
	assert_int_equal(field(star, IB_CPI_CLASSVER_F), 1);
	assert_int_equal(field(star, IB_CPI_CAPMASK_F), 1 << 9 | 1 << 12 | 1 << 15);
	assert_int_equal(field(star, IB_CPI_CAPMASK2_F), 1 << 1);
	assert_int_equal(ask(star, SWITCH, METHOD_GET, CLASS_PORT_INFO, 0), STATUS_OK);
	assert_int_equal(field(star, IB_CPI_CAPMASK_F), 1 << 8 | 1 << 9 | 1 << 12 | 1 << 15);
}

STAR_TEST(older_agents_have_fewer_counters)
{
	star->fabric.load = 1;
	star->fabric.now = SECOND;
	rule(star, "counters 64");
	assert_int_equal(ask(star, ALPHA, METHOD_GET, CLASS_PORT_INFO, 0), STATUS_OK);
	assert_int_equal(field(star, IB_CPI_CAPMASK_F), 1 << 9 | 1 << 12 | 1 << 15);
	assert_int_equal(field(star, IB_CPI_CAPMASK2_F), 0);
	assert_true(extended(star, ALPHA, 1, IB_PC_EXT_XMT_MPKTS_F) > 0);
	assert_true(extended(star, ALPHA, 1, IB_PC_EXT_XMT_WAIT_F) == 0);
	assert_true(read_field(star, ALPHA, IB_GSI_PORT_COUNTERS, 1, IB_PC_XMT_WAIT_F) > 0);
	assert_int_equal(ask(star, ALPHA, METHOD_GET, IB_GSI_PORT_RCV_ERROR_DETAILS, 1),
			 STATUS_OK);
	rule(star, "counters 32");
	assert_int_equal(ask(star, ALPHA, METHOD_GET, CLASS_PORT_INFO, 0), STATUS_OK);
	assert_int_equal(field(star, IB_CPI_CAPMASK_F), 0);
	assert_int_equal(ask(star, SWITCH, METHOD_GET, CLASS_PORT_INFO, 0), STATUS_OK);
	assert_int_equal(field(star, IB_CPI_CAPMASK_F), 1 << 8);
	assert_true(read_field(star, ALPHA, IB_GSI_PORT_COUNTERS, 1, IB_PC_XMT_PKTS_F) > 0);
	assert_true(read_field(star, ALPHA, IB_GSI_PORT_COUNTERS, 1, IB_PC_XMT_WAIT_F) == 0);
	assert_int_equal(ask(star, ALPHA, METHOD_GET, IB_GSI_PORT_COUNTERS_EXT, 1),
			 STATUS_BAD_ATTRIBUTE);
	assert_int_equal(ask(star, ALPHA, METHOD_GET, IB_GSI_PORT_RCV_ERROR_DETAILS, 1),
			 STATUS_BAD_ATTRIBUTE);
}

/* Both ends have them, whichever the rule names; what was counted before stays. */
STAR_TEST(a_rule_for_a_link_sets_its_symbol_errors)
{
	star->fabric.errors = 2;
	star->fabric.now = 10 * SECOND;
	rule(star, "errors 5 on beta/1");
	assert_int_equal(extended(star, BETA, 1, IB_PC_EXT_ERR_SYM_F), 20);
	star->fabric.now = 20 * SECOND;
	assert_int_equal(extended(star, BETA, 1, IB_PC_EXT_ERR_SYM_F), 20 + 50);
	assert_int_equal(extended(star, SWITCH, 2, IB_PC_EXT_ERR_SYM_F), 20 + 50);
	assert_int_equal(extended(star, ALPHA, 1, IB_PC_EXT_ERR_SYM_F), 40);
	rule(star, "errors 0 on beta");
	star->fabric.now = 30 * SECOND;
	assert_int_equal(extended(star, SWITCH, 2, IB_PC_EXT_ERR_SYM_F), 20 + 50);
	rule(star, "clear");
	star->fabric.now = 40 * SECOND;
	assert_int_equal(extended(star, BETA, 1, IB_PC_EXT_ERR_SYM_F), 20 + 50 + 20);
	assert_int_equal(extended(star, ALPHA, 1, IB_PC_EXT_ERR_SYM_F), 80);
}

STAR_TEST(every_request_is_safe)
{
	star->fabric.load = 0.7;
	star->fabric.errors = 3;
	ask_at_random(star, IB_PERFORMANCE_CLASS, 1, pma_respond);
}
