/* SPDX-License-Identifier: BSD-2-Clause */

/* Delays and faults on links, and routes in large fabrics. */
#include "subnet_fixture.h"
#include "test.h"

#include "topology.h"

#define NOTES 40

/* Registers an agent at GAMMA that receives the MADs of send_note(). */
static void listen_for_notes(struct subnet *subnet)
{
	hear_at(subnet, port_of(subnet, GAMMA, 1), VENDOR_CLASS, METHOD_SEND);
}

/* Sends notes at once; each has its number in its transaction ID. */
static void send_notes(struct subnet *subnet, unsigned int count)
{
	while (count-- > 0)
		send_note(subnet, lid_of(subnet, GAMMA));
	settle(&subnet->fabric);
}

static uint32_t number_of(const struct message *message)
{
	return get32(message->data + 12);
}

/* --- time ----------------------------------------------------------------------- */

SUBNET_TEST(without_latency_a_packet_arrives_at_once_but_not_from_within)
{
	listen_for_notes(subnet);
	send_note(subnet, lid_of(subnet, GAMMA));
	assert_int_equal(subnet->heard.count, 0);
	assert_int_equal(timers_next(&subnet->fabric), 0);
	settle(&subnet->fabric);
	assert_int_equal(subnet->heard.count, 1);
}

SUBNET_TEST(each_hop_takes_its_latency)
{
	listen_for_notes(subnet);
	rule(subnet, "hop-latency 500ns");
	pass(&subnet->fabric, SECOND);
	send_notes(subnet, 1);
	assert_int_equal(timers_next(&subnet->fabric), SECOND + 1500);
	pass(&subnet->fabric, 1499);
	assert_int_equal(subnet->heard.count, 0);
	pass(&subnet->fabric, 1);
	assert_int_equal(subnet->heard.count, 1);
}

SUBNET_TEST(the_delays_of_request_and_response_add_up)
{
	rules(subnet, "hop-latency 500ns", "hop-latency 1us on gamma");
	begin(subnet, CLASS_SMP, METHOD_GET, IB_ATTR_NODE_INFO, 0);
	subnet->dlid = lid_of(subnet, GAMMA);
	assert_false(asked(subnet));
	pass(&subnet->fabric, 3999);
	assert_int_equal(subnet->smps.count, 0);
	pass(&subnet->fabric, 1);
	assert_int_equal(subnet->smps.count, 1);
}

SUBNET_TEST(packets_of_one_way_arrive_in_the_order_sent)
{
	listen_for_notes(subnet);
	rule(subnet, "hop-latency 3us");
	for (unsigned int i = 0; i < NOTES; i++) {
		send_notes(subnet, 1);
		pass(&subnet->fabric, i % 3 * MICROSECOND);
	}
	pass(&subnet->fabric, SECOND);
	assert_int_equal(subnet->heard.count, NOTES);
	for (uint32_t last = 0; subnet->heard.first; last++) {
		assert_int_equal(number_of(subnet->heard.first), last + 1);
		free(take(&subnet->heard));
	}
}

/* --- faults --------------------------------------------------------------------- */

SUBNET_TEST(at_100_percent_loss_nothing_arrives_and_receivers_count_it)
{
	listen_for_notes(subnet);
	start_trace(subnet);
	rule(subnet, "loss 100% on far/1");
	send_notes(subnet, NOTES);
	assert_int_equal(subnet->heard.count, 0);
	assert_true(traced(subnet, "lost at far/1"));
	assert_true(counter_get(&subnet->fabric, port_of(subnet, GAMMA, 1), COUNT_RCV_ERRORS) ==
		    NOTES);
}

SUBNET_TEST(at_100_percent_duplication_each_arrives_twice)
{
	listen_for_notes(subnet);
	rule(subnet, "duplicate 100%");
	send_notes(subnet, NOTES);
	assert_int_equal(subnet->heard.count, 2 * NOTES);
}

SUBNET_TEST(at_100_percent_corruption_each_arrives_with_one_byte_changed)
{
	uint8_t sent[MAD_BYTES];

	listen_for_notes(subnet);
	rule(subnet, "corrupt 100% on near/1");
	send_notes(subnet, NOTES);
	assert_in_range(subnet->heard.count, NOTES / 2,
			NOTES); /* the corrupted byte may be the class */
	begin(subnet, VENDOR_CLASS, METHOD_SEND, 0x10, 0);
	memcpy(sent, subnet->mad, MAD_BYTES);
	put32(sent + 8, subnet->gmps.agent->tid_high);
	while (subnet->heard.first) {
		struct message *message = take(&subnet->heard);
		unsigned int changed = 0;

		put32(sent + 12, number_of(message));
		for (unsigned int i = 0; i < MAD_BYTES; i++)
			changed += message->data[i] != sent[i];
		assert_in_range(number_of(message) <= NOTES ? changed : 1, 1, 1);
		free(message);
	}
}

SUBNET_TEST(what_is_held_back_is_overtaken_by_others)
{
	unsigned int overtaken = 0;

	listen_for_notes(subnet);
	rule(subnet, "reorder 50% 2ms on near/1");
	send_notes(subnet, NOTES);
	assert_in_range(subnet->heard.count, NOTES / 4, NOTES * 3 / 4);
	pass(&subnet->fabric, 2 * MILLISECOND - 1);
	assert_in_range(subnet->heard.count, NOTES / 4, NOTES * 3 / 4);
	pass(&subnet->fabric, 1);
	assert_int_equal(subnet->heard.count, NOTES);
	while (subnet->heard.first) {
		struct message *message = take(&subnet->heard);

		overtaken += subnet->heard.first &&
			     number_of(subnet->heard.first) < number_of(message);
		free(message);
	}
	assert_int_equal(overtaken, 1); /* each of the two halves is in order */
}

SUBNET_TEST(at_0_percent_nothing_happens)
{
	listen_for_notes(subnet);
	rules(subnet, "loss 0%", "duplicate 0%", "corrupt 0%", "reorder 0% 1s");
	send_notes(subnet, NOTES);
	assert_int_equal(subnet->heard.count, NOTES);
}

SUBNET_TEST(a_chance_comes_true_about_as_often_as_it_says)
{
	listen_for_notes(subnet);
	rule(subnet, "loss 10% on alpha");
	send_notes(subnet, 4000);
	assert_in_range(subnet->heard.count, 3500, 3700); /* 5 sigma are 95 */
}

/* The trace of a few requests with many faults; freed by the caller. */
static char *trace_of_a_run(uint64_t seed)
{
	static const char *const rules[] = {"loss 10%", "duplicate 20%", "corrupt 20%",
					    "reorder 30% 1ms", "busy 20%"};
	struct subnet *subnet = new_subnet(false, seed);
	char *text;

	start_trace(subnet);
	for (unsigned int i = 0; i < COUNT_OF(rules); i++)
		rule(subnet, rules[i]);
	for (uint32_t i = 0; i < NOTES; i++) {
		begin(subnet, CLASS_SMP, METHOD_GET, IB_ATTR_NODE_INFO, 0);
		subnet->dlid = lid_of(subnet, i % (GAMMA + 1));
		assert_int_equal(send_by(subnet, &subnet->smps, 20), 0);
		pass(&subnet->fabric, MILLISECOND);
	}
	pass(&subnet->fabric, SECOND);
	fflush(subnet->out);
	text = strdup(subnet->text);
	assert_non_null(text);
	free_subnet(subnet);
	return text;
}

TEST(the_same_seed_gives_the_same_trace)
{
	char *first = trace_of_a_run(1);
	char *second = trace_of_a_run(1);

	assert_true(strstr(first, "lost at ") && strstr(first, "duplicated at ") &&
		    strstr(first, "corrupted at ") && strstr(first, "held back at ") &&
		    strstr(first, "busy at "));
	assert_string_equal(first, second);
	free(first);
	free(second);
}

TEST(another_seed_gives_another_trace)
{
	char *first = trace_of_a_run(1);
	char *second = trace_of_a_run(2);

	assert_string_not_equal(first, second);
	free(first);
	free(second);
}

/* --- large fabrics -------------------------------------------------------------- */

static void start_shape(struct fabric *fabric, const char *shape)
{
	struct topology_error error;
	struct graph graph;

	graph_init(&graph);
	if (topology_load(&graph, shape, &error))
		fail_msg("%s", error.text);
	start_fabric(fabric, &graph, 1, true);
	assert_int_equal(bring_up(fabric, fabric->graph.nodes[0].first_port + 1), 0);
}

/* Whether a node responds to an SMP to its LID with its own GUID. */
static bool responds(struct fabric *fabric, struct inbox *inbox, uint32_t port, uint32_t tid)
{
	struct ib_user_mad_hdr header = {.timeout_ms = 1000,
					 .lid = htobe16(fabric->ports[port].lid)};
	uint8_t mad[MAD_BYTES] = {1, CLASS_SMP, 1, METHOD_GET, [17] = IB_ATTR_NODE_INFO};
	struct message *response;
	bool right;

	put32(mad + 12, tid);
	assert_int_equal(host_send(fabric, inbox->agent, &header, mad, MAD_BYTES), 0);
	settle(fabric);
	response = take(inbox);
	right = response && mad_get_field64(response->data, SMP_DATA, IB_NODE_GUID_F) ==
				    hardware(fabric, cable(fabric, port)->node)->guid;
	free(response);
	return right;
}

/* Every CA reaches every end port, with at most `longest` hops. */
static void assert_connected(const char *shape, int longest)
{
	uint32_t hops[64];
	struct fabric fabric;
	uint32_t tid = 0;

	start_shape(&fabric, shape);
	for (uint32_t from = 0; from < fabric.graph.port_count; from++) {
		struct inbox inbox;

		if (hardware(&fabric, cable(&fabric, from)->node)->type != NODE_CA ||
		    !fabric.ports[from].lid)
			continue;
		listen_at(&fabric, &inbox, from, CLASS_SMP, 0);
		for (uint32_t to = 0; to < fabric.graph.port_count; to++) {
			if (!fabric.ports[to].lid)
				continue;
			assert_true(responds(&fabric, &inbox, to, ++tid));
			assert_in_range(
				route_trace(&fabric, from, fabric.ports[to].lid, hops, 64), 0,
				longest);
		}
	}
	assert_in_range(tid, 1, UINT32_MAX);
	stop_fabric(&fabric);
}

TEST(topologies_are_connected_by_shortest_ways)
{
	assert_connected("pair", 1);
	assert_connected("fat-tree:4,2", 4);
	assert_connected("fat-tree:4,3", 6);
	assert_connected("torus:3,3,3", 5);
	assert_connected("torus:4,4,2,2", 7);
	assert_connected("dragonfly:5,4,2", 5);
}

/* All hosts of a leaf, and the ports by which it forwards to other leaves. */
TEST(several_destinations_share_several_ways)
{
	struct fabric fabric;
	uint32_t leaf;
	unsigned int used = 0;

	start_shape(&fabric, "fat-tree:8,2");
	leaf = graph_find(&fabric.graph, "leaf-1");
	for (uint32_t to = 0; to < fabric.graph.port_count; to++) {
		uint8_t out = fabric.ports[to].lid
				      ? route_port(&fabric, leaf, fabric.ports[to].lid)
				      : 0;

		if (out > 4)
			used |= 1U << out;
	}
	assert_in_range(__builtin_popcount(used), 3, 4);
	stop_fabric(&fabric);
}
