/* SPDX-License-Identifier: BSD-2-Clause */

/* Nodes that can be overrun: processors that handle one request after the other, full buffers,
 * hosts with too many requests in flight; and their statistics. */
#include "subnet_fixture.h"
#include "test.h"

#include "timers.h"
#include "workload.h"

static void make_request(struct subnet *subnet, uint32_t node, bool smp)
{
	begin(subnet, smp ? CLASS_SMP : VENDOR_CLASS, METHOD_GET, smp ? IB_ATTR_NODE_INFO : 1,
	      0);
	subnet->dlid = lid_of(subnet, node);
}

static void ask(struct subnet *subnet, uint32_t node, bool smp, unsigned int count)
{
	struct inbox *inbox = smp ? &subnet->smps : &subnet->gmps;

	while (count-- > 0) {
		make_request(subnet, node, smp);
		assert_int_equal(send_by(subnet, inbox, UINT32_MAX), 0);
	}
	settle(&subnet->fabric);
}

static void ask_smps(struct subnet *subnet, uint32_t node, unsigned int count)
{
	ask(subnet, node, true, count);
}

static uint64_t counted(struct subnet *subnet, uint32_t node, unsigned int port,
			enum counter counter)
{
	return counter_get(&subnet->fabric, port_of(subnet, node, port), counter);
}

/* --- service -------------------------------------------------------------------- */

SUBNET_TEST(requests_are_processed_one_after_the_other)
{
	rule(subnet, "service 10us on gamma");
	ask_smps(subnet, GAMMA, 3);
	for (unsigned int i = 0; i < 3; i++) {
		pass(&subnet->fabric, 10 * MICROSECOND - 1);
		assert_int_equal(subnet->smps.count, i);
		pass(&subnet->fabric, 1);
		assert_int_equal(subnet->smps.count, i + 1);
	}
	ask_smps(subnet, BETA, 1);
	assert_int_equal(subnet->smps.count, 4); /* another node is not slower */
}

SUBNET_TEST(smps_and_gmps_have_a_processor_each)
{
	rule(subnet, "service 10us");
	ask(subnet, GAMMA, true, 1);
	ask(subnet, GAMMA, false, 2);
	pass(&subnet->fabric, 10 * MICROSECOND);
	assert_int_equal(subnet->smps.count, 1);
	assert_int_equal(subnet->gmps.count, 1);
	pass(&subnet->fabric, 10 * MICROSECOND);
	assert_int_equal(subnet->gmps.count, 2);
}

SUBNET_TEST(a_request_that_a_program_serves_takes_the_processor_too)
{
	hear_at(subnet, port_of(subnet, GAMMA, 1), VENDOR_CLASS, METHOD_GET);
	rule(subnet, "service 10us on gamma");
	ask(subnet, GAMMA, false, 2);
	pass(&subnet->fabric, 10 * MICROSECOND);
	assert_int_equal(subnet->heard.count, 1);
	pass(&subnet->fabric, 10 * MICROSECOND);
	assert_int_equal(subnet->heard.count, 2);
}

SUBNET_TEST(a_switch_forwards_without_its_processor)
{
	rules(subnet, "service 10ms on near", "service 10ms on far", "buffer 0");
	ask_smps(subnet, NEAR, 1);
	ask_smps(subnet, GAMMA, 5);
	assert_int_equal(subnet->smps.count, 5);
}

SUBNET_TEST(responses_do_not_take_the_processor)
{
	rules(subnet, "service 10ms on alpha", "buffer 0 on alpha");
	ask_smps(subnet, GAMMA, 5);
	assert_int_equal(subnet->smps.count, 5);
}

SUBNET_TEST(a_slow_node_is_slow_besides)
{
	rules(subnet, "service 10us on gamma", "slow 1ms on gamma");
	ask_smps(subnet, GAMMA, 2);
	pass(&subnet->fabric, MILLISECOND + 10 * MICROSECOND);
	assert_int_equal(subnet->smps.count, 1);
	pass(&subnet->fabric, 10 * MICROSECOND);
	assert_int_equal(subnet->smps.count, 2);
}

SUBNET_TEST(of_service_and_smp_time_the_later_counts)
{
	rules(subnet, "service 10us", "smp-time 30us");
	ask(subnet, GAMMA, true, 1);
	ask(subnet, GAMMA, false, 1);
	pass(&subnet->fabric, 10 * MICROSECOND);
	assert_int_equal(subnet->gmps.count, 1);
	assert_int_equal(subnet->smps.count, 0);
	pass(&subnet->fabric, 20 * MICROSECOND);
	assert_int_equal(subnet->smps.count, 1);
	rule(subnet, "service 0us");
	ask_smps(subnet, GAMMA, 1);
	assert_int_equal(subnet->smps.count, 2);
}

/* The longest possible times, whose sum does not fit in 64 bits. */
SUBNET_TEST(a_processor_that_is_busy_for_ever_drops)
{
	rule(subnet, "service 999999999s on gamma");
	ask_smps(subnet, GAMMA, 40);
	pass(&subnet->fabric, SECOND);
	assert_int_equal(subnet->smps.count, 0);
	assert_in_range(counted(subnet, GAMMA, 1, COUNT_VL15_DROPPED), 1, 39);
	rule(subnet, "clear");
	ask_smps(subnet, GAMMA, 1);
	assert_int_equal(subnet->smps.count, 1);
}

/* --- buffer --------------------------------------------------------------------- */

SUBNET_TEST(a_full_buffer_drops)
{
	start_trace(subnet);
	rules(subnet, "service 10us on gamma", "buffer 2 on gamma");
	ask_smps(subnet, GAMMA, 3);
	assert_false(traced(subnet, "dropped"));
	ask_smps(subnet, GAMMA, 2);
	assert_true(traced(subnet, "dropped: buffer full at gamma/1"));
	pass(&subnet->fabric, SECOND);
	assert_int_equal(subnet->smps.count, 3); /* one is processed, two wait */
}

SUBNET_TEST(a_buffer_of_none_takes_one_at_a_time)
{
	rules(subnet, "service 10us", "buffer 0");
	ask_smps(subnet, GAMMA, 2);
	pass(&subnet->fabric, 10 * MICROSECOND);
	assert_int_equal(subnet->smps.count, 1);
	ask_smps(subnet, GAMMA, 1);
	pass(&subnet->fabric, 10 * MICROSECOND);
	assert_int_equal(subnet->smps.count, 2);
}

SUBNET_TEST(without_service_a_buffer_never_fills)
{
	rule(subnet, "buffer 0");
	ask_smps(subnet, GAMMA, 5);
	assert_int_equal(subnet->smps.count, 5);
}

SUBNET_TEST(of_buffer_and_smp_queue_the_later_counts)
{
	rules(subnet, "service 10us", "smp-queue 3", "buffer 0");
	ask_smps(subnet, GAMMA, 5);
	rule(subnet, "smp-queue 3");
	ask_smps(subnet, BETA, 5);
	ask(subnet, GAMMA, false, 5);
	pass(&subnet->fabric, SECOND);
	assert_int_equal(subnet->smps.count, 1 + 4);
	assert_int_equal(subnet->gmps.count, 1);
}

SUBNET_TEST(a_dropped_request_counts_at_the_port_it_came_in_by)
{
	rules(subnet, "service 10us", "buffer 1");
	ask_smps(subnet, BETA, 6);
	assert_true(counted(subnet, BETA, 1, COUNT_VL15_DROPPED) == 4);
	assert_true(counted(subnet, BETA, 2, COUNT_VL15_DROPPED) == 0);
	assert_true(counted(subnet, BETA, 1, COUNT_QP1_DROPPED) == 0);
	ask_smps(subnet, NEAR, 6);
	assert_true(counted(subnet, NEAR, 1, COUNT_VL15_DROPPED) == 4);
	assert_true(counted(subnet, NEAR, 0, COUNT_VL15_DROPPED) == 0);
	ask(subnet, GAMMA, false, 6); /* GMPs are not of VL 15 */
	assert_true(counted(subnet, GAMMA, 1, COUNT_VL15_DROPPED) == 0);
	assert_true(counted(subnet, GAMMA, 1, COUNT_QP1_DROPPED) == 4);
}

/* Timers that run late must not make bursts. */
SUBNET_TEST(packets_that_were_apart_stay_apart_when_the_fabric_runs_late)
{
	rules(subnet, "hop-latency 10us", "service 10us on gamma", "buffer 0 on gamma");
	for (unsigned int i = 0; i < 3; i++) {
		make_request(subnet, GAMMA, true);
		assert_int_equal(send_by(subnet, &subnet->smps, UINT32_MAX), 0);
		subnet->fabric.now += 20 * MICROSECOND;
	}
	subnet->fabric.now += MILLISECOND;
	pass(&subnet->fabric, MILLISECOND);
	assert_int_equal(subnet->smps.count, 3);
	assert_true(counted(subnet, GAMMA, 1, COUNT_VL15_DROPPED) == 0);
}

SUBNET_TEST(late_packets_are_processed_in_the_order_they_are_seen)
{
	struct processor processor = {0};
	uint64_t delay = 0;

	assert_true(processor_take(&processor, 1000, 10, 0, &delay));
	assert_true(delay == 10);
	/* a request that should have come long before: it is queued */
	assert_false(processor_take(&processor, 500, 10, 0, &delay));
	assert_true(processor_take(&processor, 500, 10, 1, &delay));
	assert_true(delay == 520);
	assert_int_equal(processor.longest, 1);
}

/* --- path-limit ----------------------------------------------------------------- */

SUBNET_TEST(a_host_has_so_many_requests_in_flight)
{
	start_trace(subnet);
	rules(subnet, "path-limit 3 on alpha", "slow 1ms on gamma");
	ask_smps(subnet, GAMMA, 3);
	assert_false(traced(subnet, "dropped"));
	ask(subnet, BETA, false, 1);
	assert_true(traced(subnet, "dropped: path limit at alpha/1"));
	assert_int_equal(subnet->gmps.count, 0);
	pass(&subnet->fabric, MILLISECOND);
	assert_int_equal(subnet->smps.count, 3);
	ask(subnet, BETA, false, 9); /* at the same time */
	assert_int_equal(subnet->gmps.count, 3);
	ask(subnet, BETA, false, 1);
	assert_int_equal(subnet->gmps.count, 4);
}

SUBNET_TEST(the_limit_is_the_named_hosts_alone)
{
	rule(subnet, "path-limit 0 on beta");
	ask_smps(subnet, BETA, 5);
	assert_int_equal(subnet->smps.count, 5);
	rule(subnet, "path-limit 0");
	ask_smps(subnet, BETA, 5);
	assert_int_equal(subnet->smps.count, 5);
}

SUBNET_TEST(lost_packets_are_no_longer_in_flight)
{
	static const char *const losses[] = {"loss 100% on gamma/1", "silent on gamma",
					     "link down on near/1", "link down on gamma/1"};

	for (size_t i = 0; i < COUNT_OF(losses); i++) {
		rule(subnet, "path-limit 2");
		rule(subnet, losses[i]);
		for (unsigned int n = 0; n < 5; n++)
			ask_smps(subnet, GAMMA, 1);
		rules(subnet, "clear", "path-limit 1");
		subnet->smps.count = 0;
		ask_smps(subnet, BETA, 1);
		assert_int_equal(subnet->smps.count, 1);
	}
}

SUBNET_TEST(a_response_that_was_lost_ends_its_request)
{
	rules(subnet, "path-limit 1", "slow 1ms on gamma");
	ask_smps(subnet, GAMMA, 1);
	rule(subnet, "loss 100% on gamma/1");
	ask_smps(subnet, BETA, 1);
	assert_int_equal(subnet->smps.count, 0);
	pass(&subnet->fabric, MILLISECOND);
	ask_smps(subnet, BETA, 1);
	assert_int_equal(subnet->smps.count, 1);
}

SUBNET_TEST(a_request_dropped_by_a_buffer_is_no_longer_in_flight)
{
	rules(subnet, "path-limit 2", "service 1ms on gamma", "buffer 0 on gamma");
	ask_smps(subnet, GAMMA, 2);
	ask_smps(subnet, BETA, 1);
	assert_int_equal(subnet->smps.count, 1);
}

/* A request to a program that does not respond. */
SUBNET_TEST(a_request_is_in_flight_until_the_kernel_gives_it_up)
{
	hear_at(subnet, port_of(subnet, GAMMA, 1), VENDOR_CLASS, METHOD_GET);
	rule(subnet, "path-limit 1 on alpha");
	make_request(subnet, GAMMA, false);
	assert_int_equal(send_by(subnet, &subnet->gmps, 100), 0);
	settle(&subnet->fabric);
	ask_smps(subnet, BETA, 1);
	assert_int_equal(subnet->smps.count, 0);
	pass(&subnet->fabric, 200 * MILLISECOND);
	assert_int_equal(subnet->gmps.count, 1); /* the request, timed out */
	ask_smps(subnet, BETA, 1);
	assert_int_equal(subnet->smps.count, 1);
}

SUBNET_TEST(an_agent_takes_its_requests_with_it)
{
	hear_at(subnet, port_of(subnet, ALPHA, 1), CLASS_SMP, 0);
	rules(subnet, "path-limit 1 on alpha", "slow 1s on gamma");
	make_request(subnet, GAMMA, true);
	assert_int_equal(send_by(subnet, &subnet->heard, UINT32_MAX), 0);
	settle(&subnet->fabric);
	agent_unregister(&subnet->fabric, subnet->heard.agent);
	ask_smps(subnet, BETA, 1);
	assert_int_equal(subnet->smps.count, 1);
}

SUBNET_TEST(messages_without_a_response_are_not_limited)
{
	hear_at(subnet, port_of(subnet, BETA, 1), VENDOR_CLASS, METHOD_SEND);
	rule(subnet, "path-limit 0 on alpha");
	send_note(subnet, lid_of(subnet, BETA));
	settle(&subnet->fabric);
	assert_int_equal(subnet->heard.count, 1);
}

/* The rule is set and cleared while requests are in flight. */
SUBNET_TEST(only_requests_sent_under_the_limit_count)
{
	rule(subnet, "slow 1ms on gamma");
	ask_smps(subnet, GAMMA, 5);
	rule(subnet, "path-limit 1 on alpha");
	ask_smps(subnet, GAMMA, 1);
	rule(subnet, "clear");
	pass(&subnet->fabric, MILLISECOND);
	assert_int_equal(subnet->smps.count, 6);
	rule(subnet, "path-limit 1 on alpha");
	ask_smps(subnet, BETA, 1);
	assert_int_equal(subnet->smps.count, 7);
}

/* --- statistics ----------------------------------------------------------------- */

#define COLUMNS                                                                      \
	"node\tguid\tsent\tpath_dropped\tsmp_received\tsmp_processed\tsmp_dropped\t" \
	"smp_longest\tgmp_received\tgmp_processed\tgmp_dropped\tgmp_longest\n"

static void assert_statistics(struct subnet *subnet, const char *expected)
{
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);

	assert_non_null(out);
	workload_print(&subnet->fabric, out);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, expected);
	free(text);
}

SUBNET_TEST(statistics_have_the_load_of_each_node)
{
	rules(subnet, "service 10us", "buffer 2", "path-limit 9");
	ask_smps(subnet, GAMMA, 5);
	ask(subnet, BETA, false, 2);
	ask(subnet, GAMMA, false, 5);
	assert_statistics(subnet,
			  COLUMNS "alpha\t0x0000000000001000\t12\t1\t0\t0\t0\t0\t0\t0\t0\t0\n"
				  "beta\t0x0000000000002000\t0\t0\t0\t0\t0\t0\t2\t0\t0\t1\n"
				  "gamma\t0x0000000000003000\t0\t0\t5\t0\t2\t2\t4\t0\t1\t2\n"
				  "total\t-\t12\t1\t5\t0\t2\t2\t6\t0\t1\t2\n");
	pass(&subnet->fabric, 10 * MICROSECOND);
	assert_statistics(subnet,
			  COLUMNS "alpha\t0x0000000000001000\t12\t1\t0\t0\t0\t0\t0\t0\t0\t0\n"
				  "beta\t0x0000000000002000\t0\t0\t0\t0\t0\t0\t2\t1\t0\t1\n"
				  "gamma\t0x0000000000003000\t0\t0\t5\t1\t2\t2\t4\t1\t1\t2\n"
				  "total\t-\t12\t1\t5\t1\t2\t2\t6\t2\t1\t2\n");
	pass(&subnet->fabric, SECOND);
	assert_statistics(subnet,
			  COLUMNS "alpha\t0x0000000000001000\t12\t1\t0\t0\t0\t0\t0\t0\t0\t0\n"
				  "beta\t0x0000000000002000\t0\t0\t0\t0\t0\t0\t2\t2\t0\t1\n"
				  "gamma\t0x0000000000003000\t0\t0\t5\t3\t2\t2\t4\t3\t1\t2\n"
				  "total\t-\t12\t1\t5\t3\t2\t2\t6\t5\t1\t2\n");
}

SUBNET_TEST(requests_to_a_silent_node_are_neither_processed_nor_dropped)
{
	rule(subnet, "silent on gamma");
	ask_smps(subnet, GAMMA, 3);
	assert_statistics(subnet,
			  COLUMNS "alpha\t0x0000000000001000\t3\t0\t0\t0\t0\t0\t0\t0\t0\t0\n"
				  "gamma\t0x0000000000003000\t0\t0\t3\t0\t0\t0\t0\t0\t0\t0\n"
				  "total\t-\t3\t0\t3\t0\t0\t0\t0\t0\t0\t0\n");
}

SUBNET_TEST(retransmissions_of_the_kernel_are_sent_and_received_again)
{
	uint8_t *bytes = subnet->mad;
	struct ib_user_mad_hdr header = {.timeout_ms = 10, .retries = 2};

	rule(subnet, "silent on gamma");
	make_request(subnet, GAMMA, true);
	header.lid = htobe16(subnet->dlid);
	assert_int_equal(
		host_send(&subnet->fabric, subnet->smps.agent, &header, bytes, MAD_BYTES), 0);
	pass(&subnet->fabric, SECOND);
	assert_true(workload_of(&subnet->fabric, ALPHA)->sent == 3);
	assert_true(processor_of(&subnet->fabric, GAMMA, true)->received == 3);
	assert_true(processor_of(&subnet->fabric, GAMMA, false)->received == 0);
}

SUBNET_TEST(a_name_is_one_column_whatever_is_in_it)
{
	memcpy(hardware(&subnet->fabric, GAMMA)->name, "g\tm\nx", 5);
	assert_int_equal(processor_of(&subnet->fabric, GAMMA, true)->received, 0);
	assert_statistics(subnet,
			  COLUMNS "g?m?x\t0x0000000000003000\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\n"
				  "total\t-\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\n");
}
