/* SPDX-License-Identifier: BSD-2-Clause */

/* RMPP as the kernel does it for programs: segmentation, reassembly, and unreliable links. */
#include "device_fixture.h"
#include "sa_agent.h"
#include "test.h"

#define MEGABYTE (1024UL * 1024)

#define RMPP_FLAGS 26
#define SEGMENT    28
#define PAYLOAD    32

/* A request from ALPHA to GAMMA and its response, each with this many bytes of data. */
struct exchange {
	uint8_t class;
	size_t size;
	uint8_t *mad;
	size_t length;
	uint32_t timeout;
	uint32_t retries;
};

static void register_both(struct machines *machines, uint8_t class)
{
	assert_int_equal(agent(machines->alpha, class, 1, 0), 0);
	assert_int_equal(agent(machines->gamma, class, 1, METHOD_GET_TABLE), 0);
}

static struct exchange exchange_of(uint8_t class, size_t size)
{
	size_t offset = class_data_offset(class);
	struct exchange exchange = {.class = class,
				    .size = size,
				    .length = offset + size,
				    .timeout = 3600000,
				    .retries = 100};
	uint64_t number = size;

	exchange.mad = (uint8_t *)malloc(offset + size);
	assert_non_null(exchange.mad);
	make_mad(exchange.mad, offset, class, METHOD_GET_TABLE, 17);
	exchange.mad[RMPP_FLAGS] = ACTIVE;
	exchange.mad[24] = 1;
	exchange.mad[25] = 1;
	for (size_t i = 0; i < size; i++) {
		number = number * 6364136223846793005ULL + 1442695040888963407ULL;
		exchange.mad[offset + i] = (uint8_t)(number >> 56);
	}
	return exchange;
}

static void send_request(struct machines *machines, const struct exchange *exchange)
{
	struct destination to = {.lid = lid_of(machines->subnet, GAMMA),
				 .timeout = exchange->timeout,
				 .retries = exchange->retries};

	assert_int_equal(write_mad(machines->alpha, &to, exchange->mad, exchange->length), 0);
}

/* Sends the server's message back to the requester. */
static void send_response(struct machines *machines, struct message *message)
{
	struct destination to = {.lid = be16toh(message->header.lid), .retries = 100};

	message->data[3] |= METHOD_RESPONSE;
	message->data[RMPP_FLAGS] = ACTIVE;
	assert_int_equal(write_mad(machines->gamma, &to, message->data, message->length), 0);
}

static void assert_whole(const struct exchange *exchange, const struct message *message)
{
	size_t offset = class_data_offset(exchange->class);

	assert_non_null(message);
	assert_int_equal(message->header.status, 0);
	assert_int_equal(message->header.length, OLD_HEADER_BYTES + exchange->length);
	assert_int_equal(message->length, exchange->length);
	assert_memory_equal(message->data + offset, exchange->mad + offset, exchange->size);
	assert_memory_equal(message->data + 12, exchange->mad + 12, 12);
	if (offset > RMPP_HEADER)
		assert_memory_equal(message->data + RMPP_HEADER, exchange->mad + RMPP_HEADER,
				    offset - RMPP_HEADER);
}

static void assert_header(const struct exchange *exchange, const struct message *message)
{
	size_t offset = class_data_offset(exchange->class);
	size_t room = MAD_BYTES - offset;
	size_t segments = exchange->size ? (exchange->size + room - 1) / room : 1;

	assert_int_equal(message->data[24], 1);
	assert_int_equal(message->data[25], 1);
	assert_int_equal(message->data[RMPP_FLAGS] & 7, segments == 1 ? 7 : 3);
	assert_int_equal(get32(message->data + SEGMENT), 1);
	assert_int_equal(get32(message->data + PAYLOAD),
			 exchange->size + (offset - RMPP_HEADER) * segments);
}

/* Runs the exchange until it is complete. */
static void go(struct machines *machines, const struct exchange *exchange)
{
	struct message *message;
	unsigned int before = machines->gamma->readable;

	send_request(machines, exchange);
	for (unsigned int i = 0; i < 100000 && machines->gamma->readable == before; i++)
		pass(fabric_of(machines), 10 * MILLISECOND);
	message = read_message(machines->gamma);
	assert_whole(exchange, message);
	assert_header(exchange, message);
	assert_null(read_message(machines->gamma));
	before = machines->alpha->readable;
	send_response(machines, message);
	free(message);
	for (unsigned int i = 0; i < 100000 && machines->alpha->readable == before; i++)
		pass(fabric_of(machines), 10 * MILLISECOND);
	message = read_message(machines->alpha);
	assert_whole(exchange, message);
	assert_header(exchange, message);
	assert_int_equal(message->data[3], METHOD_GET_TABLE | METHOD_RESPONSE);
	assert_null(read_message(machines->alpha));
	free(message);
}

/* Messages of all sizes at which the segments differ. */
static void go_all_sizes(struct machines *machines, uint8_t class)
{
	size_t room = MAD_BYTES - class_data_offset(class);
	const size_t sizes[] = {0,        1,         room - 1,      room,      room + 1,
				2 * room, 64 * room, 64 * room + 1, 65 * room, 66 * room - 1};

	register_both(machines, class);
	for (unsigned int i = 0; i < COUNT_OF(sizes); i++) {
		struct exchange exchange = exchange_of(class, sizes[i]);

		put32(exchange.mad + 12, 100 + i);
		go(machines, &exchange);
		free(exchange.mad);
	}
}

static void go_one(struct machines *machines, uint8_t class, size_t size)
{
	struct exchange exchange = exchange_of(class, size);

	register_both(machines, class);
	go(machines, &exchange);
	free(exchange.mad);
}

/* --- reliable links ------------------------------------------------------------- */

MACHINES_TEST(a_vendor_s_messages_of_all_sizes_go_forth_and_back)
{
	go_all_sizes(machines, PING_CLASS);
}

MACHINES_TEST(messages_of_class_sa_are_exchanged)
{
	go_all_sizes(machines, CLASS_SA);
}

MACHINES_TEST(device_management_s_messages_go_forth_and_back)
{
	go_all_sizes(machines, 0x06);
}

MACHINES_TEST(a_megabyte_goes_forth_and_back)
{
	go_one(machines, PING_CLASS, MEGABYTE);
}

MACHINES_TEST(a_message_takes_its_time_on_slow_links)
{
	struct exchange exchange = exchange_of(PING_CLASS, 216);

	register_both(machines, PING_CLASS);
	rule(machines->subnet, "hop-latency 1ms");
	send_request(machines, &exchange);
	pass(fabric_of(machines), 3 * MILLISECOND - 1);
	assert_int_equal(machines->gamma->readable, 0);
	pass(fabric_of(machines), 1);
	assert_int_equal(machines->gamma->readable, 1);
	free(exchange.mad);
}

MACHINES_TEST(several_messages_are_in_flight_at_once)
{
	struct exchange exchange = exchange_of(PING_CLASS, 10000);

	register_both(machines, PING_CLASS);
	rule(machines->subnet, "hop-latency 1ms");
	for (uint32_t i = 0; i < 10; i++) {
		put32(exchange.mad + 12, i);
		send_request(machines, &exchange);
	}
	pass(fabric_of(machines), SECOND);
	assert_int_equal(machines->gamma->readable, 10);
	for (uint32_t i = 0; i < 10; i++) {
		struct message *message = read_message(machines->gamma);

		put32(exchange.mad + 12, i);
		assert_whole(&exchange, message);
		free(message);
	}
	free(exchange.mad);
}

MACHINES_TEST(two_programs_of_a_host_talk_to_each_other)
{
	struct exchange exchange = exchange_of(PING_CLASS, 1000);
	struct destination to = {.lid = lid_of(machines->subnet, ALPHA)};
	struct device *other = open_device(machines->subnet, ALPHA);
	struct message *message;

	assert_int_equal(agent(machines->alpha, PING_CLASS, 1, 0), 0);
	assert_int_equal(agent(other, PING_CLASS, 1, METHOD_GET_TABLE), 0);
	to.timeout = 1000;
	assert_int_equal(write_mad(machines->alpha, &to, exchange.mad, exchange.length), 0);
	settle(fabric_of(machines));
	message = read_message(other);
	assert_whole(&exchange, message);
	message->data[3] |= METHOD_RESPONSE;
	to.timeout = 0;
	assert_int_equal(write_mad(other, &to, message->data, message->length), 0);
	free(message);
	settle(fabric_of(machines));
	message = read_message(machines->alpha);
	assert_whole(&exchange, message);
	free(message);
	close_device(other);
	free(exchange.mad);
}

MACHINES_TEST(the_trace_tells_segments_and_acknowledgements)
{
	struct exchange exchange = exchange_of(PING_CLASS, 500); /* three segments */
	struct subnet *subnet = machines->subnet;

	register_both(machines, PING_CLASS);
	start_trace(subnet);
	send_request(machines, &exchange);
	settle(fabric_of(machines));
	fflush(subnet->out);
	assert_true(traced(subnet, "1 sent at alpha/1: class 0x32 method 0x12 attribute 0x0010 "
				   "modifier 0x0 QP1 segment 1\n"));
	assert_true(traced(subnet, "received at gamma/1: class 0x32 method 0x12 attribute "
				   "0x0010 modifier 0x0 QP1 segment 3\n"));
	assert_true(traced(subnet, "modifier 0x0 QP1 ACK 1 window 65\n"));
	assert_true(traced(subnet, "modifier 0x0 QP1 ACK 3 window 65\n"));
	free(exchange.mad);
}

/* --- unreliable links ----------------------------------------------------------- */

MACHINES_TEST(lost_segments_and_acks_are_made_up_for)
{
	rules(machines->subnet, "loss 20% on near/4", "loss 20% on near/3");
	go_one(machines, PING_CLASS, 100000);
}

MACHINES_TEST(duplicate_segments_are_kept_once)
{
	rule(machines->subnet, "duplicate 100%");
	go_one(machines, PING_CLASS, 100000);
	pass(fabric_of(machines), 100 * SECOND);
	assert_null(read_message(machines->alpha));
	assert_null(read_message(machines->gamma));
}

MACHINES_TEST(segments_out_of_order_are_put_in_order)
{
	rule(machines->subnet, "reorder 30% 3ms");
	go_one(machines, PING_CLASS, 100000);
}

MACHINES_TEST(all_at_once_is_survived)
{
	rules(machines->subnet, "loss 5%", "duplicate 10%", "reorder 10% 7ms",
	      "hop-latency 300us");
	go_one(machines, CLASS_SA, 50000);
}

MACHINES_TEST(busy_nodes_do_not_respond_to_acknowledgements)
{
	struct exchange exchange = exchange_of(PING_CLASS, 100000);
	struct message *message;

	register_both(machines, PING_CLASS);
	send_request(machines, &exchange);
	settle(fabric_of(machines));
	message = read_message(machines->gamma);
	assert_whole(&exchange, message);
	rule(machines->subnet, "busy 100% on gamma"); /* applies to requests, and an ACK is
						       * none */
	send_response(machines, message);
	free(message);
	pass(fabric_of(machines), SECOND);
	message = read_message(machines->alpha);
	assert_whole(&exchange, message);
	free(message);
	free(exchange.mad);
}

/* Sends requests of several segments. Each must be delivered whole, or be responded to with
 * this status and without RMPP. Returns the number of such responses. */
static unsigned int turned_away(struct machines *machines, const char *text,
				unsigned int status)
{
	unsigned int count = 0;

	register_both(machines, PING_CLASS);
	rule(machines->subnet, text);
	for (unsigned int i = 0; i < 100; i++) {
		struct exchange exchange = exchange_of(PING_CLASS, 3160);
		struct message *request, *response;

		put32(exchange.mad + 12, 100 + i);
		send_request(machines, &exchange);
		pass(fabric_of(machines), SECOND);
		request = read_message(machines->gamma);
		response = read_message(machines->alpha);
		assert_int_not_equal(!request, !response);
		if (request) {
			assert_whole(&exchange, request);
			send_response(machines, request);
			pass(fabric_of(machines), SECOND);
			free(read_message(machines->alpha));
		} else {
			assert_int_equal(response->header.status, 0);
			assert_int_equal(response->length, MAD_BYTES);
			assert_int_equal(get16(response->data + 4), status);
			assert_int_equal(response->data[3], METHOD_GET_TABLE | METHOD_RESPONSE);
			assert_int_equal(response->data[RMPP_FLAGS] & ACTIVE, 0);
			assert_int_equal(get32(response->data + 12), 100 + i);
			count++;
		}
		free(request);
		free(response);
		free(exchange.mad);
	}
	return count;
}

MACHINES_TEST(a_busy_node_responds_to_messages_not_to_segments)
{
	assert_in_range(turned_away(machines, "busy 50% on gamma", 1), 25, 75);
}

MACHINES_TEST(a_node_redirects_messages_not_segments)
{
	assert_int_equal(turned_away(machines, "redirect beta on gamma", 2), 100);
}

MACHINES_TEST(a_second_response_is_refused_while_the_first_is_sent)
{
	struct exchange exchange = exchange_of(CLASS_SA, 50000);
	struct destination to = {.lid = lid_of(machines->subnet, ALPHA)};
	struct message *message;

	register_both(machines, CLASS_SA);
	send_request(machines, &exchange);
	pass(fabric_of(machines), SECOND);
	message = receive(machines->gamma);
	rule(machines->subnet, "hop-latency 1ms");
	send_response(machines, message);
	pass(fabric_of(machines), 5 * MILLISECOND);
	assert_int_equal(write_mad(machines->gamma, &to, message->data, message->length),
			 -EINVAL);
	to.lid = lid_of(machines->subnet, BETA);
	assert_int_equal(write_mad(machines->gamma, &to, message->data, message->length), 0);
	free(message);
	pass(fabric_of(machines), SECOND);
	message = read_message(machines->alpha);
	assert_whole(&exchange, message);
	free(message);
	assert_null(read_message(machines->alpha));
	free(exchange.mad);
}

/* --- tables of the SA ----------------------------------------------------------- */

/* Requests all PortInfoRecords from ALPHA, where the SA is: seven segments. For that time, the
 * links lose what is sent after the first segment. */
static struct sa_agent *ask_for_a_table(struct machines *machines, uint64_t lossy)
{
	struct sa_agent *sa_agent = sa_agent_start(fabric_of(machines));
	struct destination to = {.lid = lid_of(machines->subnet, ALPHA), .timeout = 3600000};
	uint8_t mad[MAD_BYTES];

	assert_non_null(sa_agent);
	assert_int_equal(agent(machines->gamma, CLASS_SA, 1, 0), 0);
	rule(machines->subnet, "hop-latency 1ms");
	make_mad(mad, sizeof(mad), CLASS_SA, METHOD_GET_TABLE, 17);
	put16(mad + 16, IB_SA_ATTR_PORTINFORECORD);
	assert_int_equal(write_mad(machines->gamma, &to, mad, sizeof(mad)), 0);
	pass(fabric_of(machines), 7 * MILLISECOND); /* three links for the request, three for
						     * the response */
	assert_int_equal(machines->gamma->readable, 0);
	rule(machines->subnet, "loss 100%");
	pass(fabric_of(machines), lossy);
	rule(machines->subnet, "loss 0%");
	return sa_agent;
}

MACHINES_TEST(lost_segments_of_the_sa_s_tables_are_retransmitted)
{
	/* two retries fail, after 2 s each; the third one succeeds */
	struct sa_agent *sa_agent = ask_for_a_table(machines, 5 * SECOND);
	struct message *message;

	assert_int_equal(machines->gamma->readable, 0);
	pass(fabric_of(machines), 2 * SECOND);
	message = receive(machines->gamma);
	assert_int_equal(message->header.status, 0);
	assert_true(message->length > 6UL * (MAD_BYTES - 56));
	free(message);
	sa_agent_stop(sa_agent);
}

MACHINES_TEST(the_sa_gives_a_table_up_after_three_retries)
{
	struct sa_agent *sa_agent = ask_for_a_table(machines, 7 * SECOND);

	pass(fabric_of(machines), 100 * SECOND);
	assert_int_equal(machines->gamma->readable, 0);
	sa_agent_stop(sa_agent);
}

MACHINES_TEST(a_port_with_several_lids_gets_tables_at_any_of_them)
{
	struct fabric *fabric = fabric_of(machines);
	struct sa_agent *sa_agent = sa_agent_start(fabric);
	struct destination to = {
		.lid = lid_of(machines->subnet, ALPHA), .timeout = 3600000, .path_bits = 1};
	struct message *message;
	uint8_t mad[MAD_BYTES];

	assert_non_null(sa_agent);
	set_lid(fabric, port_of(machines->subnet, GAMMA, 1), 64, 1);
	fabric->nodes[NEAR].linear_top = fabric->nodes[FAR].linear_top = 66;
	assert_int_equal(agent(machines->gamma, CLASS_SA, 1, 0), 0);
	make_mad(mad, sizeof(mad), CLASS_SA, METHOD_GET_TABLE, 17);
	put16(mad + 16, IB_SA_ATTR_PORTINFORECORD);
	assert_int_equal(write_mad(machines->gamma, &to, mad, sizeof(mad)), 0);
	settle(fabric);
	message = receive(machines->gamma);
	assert_int_equal(message->header.status, 0);
	assert_int_equal(message->header.path_bits, 1);
	free(message);
	sa_agent_stop(sa_agent);
}

/* --- timeouts ------------------------------------------------------------------- */

MACHINES_TEST(a_message_that_nobody_acknowledges_times_out)
{
	struct exchange exchange = exchange_of(CLASS_SA, 1000);
	struct message *message;

	assert_int_equal(agent(machines->alpha, CLASS_SA, 1, 0), 0);
	exchange.timeout = 100;
	exchange.retries = 2;
	send_request(machines, &exchange);
	pass(fabric_of(machines), 300 * MILLISECOND);
	assert_int_equal(machines->alpha->readable, 0);
	pass(fabric_of(machines), 40 * MILLISECOND);
	message = receive(machines->alpha);
	assert_int_equal(message->header.status, 110);
	assert_int_equal(message->header.length, exchange.length);
	assert_int_equal(message->length, 24);
	free(message);
	free(exchange.mad);
}

static void time_out_a_get(struct machines *machines, uint8_t class, size_t size)
{
	struct exchange exchange = exchange_of(class, size);
	struct message *message;

	assert_int_equal(agent(machines->alpha, class, 1, 0), 0);
	exchange.mad[3] = METHOD_GET;
	exchange.timeout = 100;
	exchange.retries = 0;
	send_request(machines, &exchange);
	pass(fabric_of(machines), SECOND);
	assert_int_equal(machines->alpha->readable, 1);
	message = receive(machines->alpha);
	assert_int_equal(message->header.status, 110);
	free(message);
	free(exchange.mad);
}

MACHINES_TEST(a_get_by_rmpp_that_nobody_serves_times_out)
{
	time_out_a_get(machines, CLASS_SA, 100);
}

MACHINES_TEST(a_vendor_s_get_by_rmpp_that_nobody_serves_times_out)
{
	time_out_a_get(machines, PING_CLASS, 1000);
}

MACHINES_TEST(once_it_is_acknowledged_its_retries_are_not_used)
{
	struct exchange exchange = exchange_of(PING_CLASS, 1000);

	register_both(machines, PING_CLASS);
	exchange.timeout = 200;
	exchange.retries = 9;
	send_request(machines, &exchange);
	pass(fabric_of(machines), 200 * MILLISECOND);
	assert_int_equal(machines->alpha->readable, 0);
	pass(fabric_of(machines), 20 * MILLISECOND);
	assert_int_equal(machines->alpha->readable, 1);
	pass(fabric_of(machines), 100 * SECOND);
	assert_int_equal(machines->gamma->readable, 1);
	free(exchange.mad);
}

MACHINES_TEST(a_response_without_a_request_is_dropped)
{
	struct exchange exchange = exchange_of(PING_CLASS, 1000);
	struct message *message;

	register_both(machines, PING_CLASS);
	exchange.timeout = 100;
	send_request(machines, &exchange);
	pass(fabric_of(machines), SECOND);
	assert_int_equal(machines->alpha->readable, 1); /* the request, timed out */
	message = receive(machines->gamma);
	send_response(machines, message);
	free(message);
	pass(fabric_of(machines), SECOND);
	assert_int_equal(machines->alpha->readable, 1);
	free(exchange.mad);
}

MACHINES_TEST(an_agent_that_goes_takes_half_a_message_with_it)
{
	struct exchange exchange = exchange_of(PING_CLASS, 100000);

	register_both(machines, PING_CLASS);
	rule(machines->subnet, "hop-latency 1ms");
	send_request(machines, &exchange);
	pass(fabric_of(machines), 10 * MILLISECOND);
	assert_int_equal(machines->gamma->readable, 0);
	assert_int_equal(unregister(machines->gamma, 0), 0);
	assert_int_equal(unregister(machines->alpha, 0), 0);
	pass(fabric_of(machines), SECOND);
	assert_int_equal(timers_next(fabric_of(machines)), UINT64_MAX);
	free(exchange.mad);
}

/* --- limits --------------------------------------------------------------------- */

/* One segment of a new message, as a hostile or broken sender would send it. */
static void send_segment(struct machines *machines, uint32_t transaction, uint32_t segment)
{
	struct packet packet = {.from = port_of(machines->subnet, ALPHA, 1),
				.slid = lid_of(machines->subnet, ALPHA),
				.dlid = lid_of(machines->subnet, GAMMA),
				.source_qp = 1,
				.qp = 1,
				.qkey = WELL_KNOWN_QKEY,
				.pkey = 0xffff};

	make_mad(packet.mad, class_data_offset(PING_CLASS), PING_CLASS, METHOD_GET_TABLE, 17);
	put32(packet.mad + 12, transaction);
	packet.mad[24] = 1;
	packet.mad[25] = 1;
	packet.mad[RMPP_FLAGS] = ACTIVE | (segment == 1 ? 2 : 0);
	put32(packet.mad + SEGMENT, segment);
	wire_send(fabric_of(machines), &packet);
	settle(fabric_of(machines));
}

MACHINES_TEST(messages_that_never_end_take_a_bounded_room)
{
	size_t most = 2 * LONGEST_MESSAGE, before = 0;
	uint32_t transaction = 1;

	register_both(machines, PING_CLASS);
	/* each message is incomplete; their total size is limited */
	while (transaction < 20000 &&
	       (!before || machines->gamma->handle->reassembled > before)) {
		before = machines->gamma->handle->reassembled;
		for (unsigned int i = 0; i < 100; i++)
			send_segment(machines, transaction++, 1);
	}
	assert_true(transaction < 20000);
	assert_in_range(machines->gamma->handle->reassembled, most / 2, most);
	/* after they have expired, new messages are accepted */
	pass(fabric_of(machines), 100 * SECOND);
	assert_int_equal(machines->gamma->handle->reassembled, 0);
	send_segment(machines, 1, 1);
	assert_true(machines->gamma->handle->reassembled > 0);
}

/* --- RMPP of the program -------------------------------------------------------- */

MACHINES_TEST(who_does_rmpp_itself_gets_segments)
{
	struct ib_user_mad_reg_req2 rules = {.qpn = 1,
					     .mgmt_class = PING_CLASS,
					     .mgmt_class_version = 1,
					     .method_mask = {1 << METHOD_GET_TABLE, 0},
					     .oui = OUI,
					     .rmpp_version = 1,
					     .flags = IB_USER_MAD_USER_RMPP};
	struct destination to = {.lid = lid_of(machines->subnet, ALPHA)};
	struct exchange exchange = exchange_of(PING_CLASS, 500);
	struct message *message;

	assert_int_equal(agent(machines->alpha, PING_CLASS, 1, 0), 0);
	assert_int_equal(agent2(machines->gamma, &rules), 0);
	send_request(machines, &exchange);
	settle(fabric_of(machines));
	message = receive(machines->gamma);
	assert_int_equal(message->length, MAD_BYTES);
	assert_int_equal(message->data[RMPP_FLAGS] & 7, 3);
	assert_int_equal(get32(message->data + SEGMENT), 1);
	assert_int_equal(get32(message->data + PAYLOAD), 500 + 3 * 4);
	assert_memory_equal(message->data + 40, exchange.mad + 40, 216);
	assert_null(read_message(machines->gamma));
	message->data[3] |= METHOD_RESPONSE; /* its ACK: up to 64 segments */
	message->data[25] = 2;
	message->data[RMPP_FLAGS] = ACTIVE;
	put32(message->data + PAYLOAD, 64);
	assert_int_equal(write_mad(machines->gamma, &to, message->data, MAD_BYTES), 0);
	free(message);
	settle(fabric_of(machines));
	for (uint32_t segment = 2; segment <= 3; segment++) {
		message = receive(machines->gamma);
		assert_int_equal(get32(message->data + SEGMENT), segment);
		assert_int_equal(message->data[RMPP_FLAGS] & 7, segment == 3 ? 5 : 1);
		if (segment == 3)
			assert_int_equal(get32(message->data + PAYLOAD), 500 - 2 * 216 + 4);
		free(message);
	}
	free(exchange.mad);
}
