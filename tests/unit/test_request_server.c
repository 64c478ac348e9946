/* SPDX-License-Identifier: BSD-2-Clause */

/* Servers on an engine: the callback's requests, and the responses to them. */

#include "request_server_fixture.h"
#include "test.h"

FIXTURE(server_setup, async_teardown);

/* --- requests and responses ------------------------------------------------------ */

TEST(a_request_is_handed_out_with_what_it_says)
{
	come(ping_request(7));
	process();
	assert_int_equal(count, 1);
	assert_ptr_equal(held[0]->server, server);
	assert_int_equal(held[0]->mgmt_class, PING_CLASS);
	assert_int_equal(held[0]->method, IB_MAD_METHOD_GET);
	assert_int_equal(held[0]->attribute, 0x42);
	assert_int_equal(held[0]->modifier, 0x17);
	assert_int_equal(held[0]->tid, 7);
	assert_int_equal(held[0]->from.lid, 9);
	assert_int_equal(held[0]->from.qp, 1);
	assert_int_equal(held[0]->from.sl, 4);
	assert_int_equal(held[0]->from.pkey_idx, 1);
	assert_int_equal(held[0]->length, IB_MAD_SIZE);
	assert_int_equal(held[0]->data_size, IB_VENDOR_RANGE2_DATA_SIZE);
	assert_ptr_equal(held[0]->data, held[0]->mad + IB_VENDOR_RANGE2_DATA_OFFS);
	assert_int_equal(held[0]->mad[255], 0x77);
	mad_request_free(held[0]);
	assert_int_equal(device_written(), 0);
}

TEST(a_request_from_another_subnet_says_from_where)
{
	const ib_mad_addr_t from = {.lid = htobe16(0x1234),
				    .qpn = htobe32(0x123456),
				    .sl = 3,
				    .grh_present = 1,
				    .gid = {0xfe, 0x80, [15] = 9},
				    .gid_index = 2,
				    .pkey_index = 5};
	struct coming coming = ping_request(0x89abcdef);
	const uint8_t none[16] = {0};

	come(coming);
	coming.from = &from;
	coming.changed = 8; /* the upper half of the TID */
	come(coming);
	process();
	assert_int_equal(held[0]->from.grh_present, 0);
	assert_memory_equal(held[0]->from.gid, none, sizeof(none));
	assert_int_equal(held[1]->from.lid, 0x1234);
	assert_int_equal(held[1]->from.qp, 0x123456);
	assert_int_equal(held[1]->from.qkey, IB_DEFAULT_QP1_QKEY);
	assert_int_equal(held[1]->from.sl, 3);
	assert_int_equal(held[1]->from.pkey_idx, 5);
	assert_int_equal(held[1]->from.grh_present, 1);
	assert_memory_equal(held[1]->from.gid, from.gid, sizeof(from.gid));
	assert_true(held[1]->tid == UINT64_C(0x5500000089abcdef));

	assert_int_equal(mad_request_respond(held[1], 0, "x", 1), 0);
	assert_int_equal(be16toh(device_packet(0)->header.addr.lid), 0x1234);
	assert_int_equal(be32toh(device_packet(0)->header.addr.qpn), 0x123456);
	assert_int_equal(be32toh(device_packet(0)->header.addr.qkey), IB_DEFAULT_QP1_QKEY);
	assert_int_equal(device_packet(0)->header.addr.grh_present, 1);
	assert_memory_equal(device_packet(0)->header.addr.gid, from.gid, sizeof(from.gid));
	assert_int_equal(device_packet(0)->header.addr.gid_index, 2);
	assert_int_equal(device_packet(0)->header.addr.pkey_index, 5);
	mad_request_free(held[0]);
}

/* QP0 has no Q_Key. */
TEST(a_request_by_smp_has_no_q_key)
{
	struct mad_server_options options = {
		.mgmt_class = IB_SMI_CLASS,
		.methods = {MAD_SERVER_METHOD(IB_MAD_METHOD_GET)},
	};

	start(options, hold, NULL);
	come(request_of(IB_SMI_CLASS, IB_MAD_METHOD_GET));
	process();
	assert_int_equal(held[0]->from.qkey, 0);
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), 0);
	assert_int_equal(device_packet(0)->header.addr.qkey, 0);
}

TEST(a_response_has_the_request_s_header_the_status_and_the_data)
{
	const uint8_t *mad;

	come(ping_request(7));
	process();
	assert_int_equal(mad_request_respond(held[0], 0x1234, "hello", 5), 0);
	assert_int_equal(device_written(), 1);
	mad = last_written();
	assert_int_equal(mad[1], PING_CLASS);
	assert_int_equal(mad[3], IB_MAD_METHOD_GET_RESPONSE);
	assert_int_equal(mad[4] << 8 | mad[5], 0x1234);
	assert_int_equal(mad[15], 7);
	assert_int_equal(mad[17], 0x42);
	assert_memory_equal(mad + IB_VENDOR_RANGE2_DATA_OFFS, "hello", 6);
	assert_int_equal(mad[255], 0); /* not the data of the request */
	assert_int_equal(device_packet(0)->length, IB_MAD_SIZE);
	assert_int_equal(be16toh(device_packet(0)->header.addr.lid), 9);
	assert_int_equal(device_packet(0)->header.addr.sl, 4);
	assert_int_equal(device_packet(0)->header.addr.pkey_index, 1);
	assert_int_equal(device_packet(0)->header.agent_id,
			 agent_of(PING_CLASS, PING_OUI, IB_MAD_METHOD_GET));
	assert_int_equal(device_packet(0)->header.timeout_ms, 0);
	assert_int_equal(server_stats().responded, 1);
	assert_int_equal(server_stats().held, 0);
}

TEST(without_data_the_request_s_own_go_back)
{
	come(ping_request(7));
	process();
	assert_int_equal(mad_request_respond(held[0], 4, NULL, 0), 0);
	assert_int_equal(last_written()[255], 0x77);
	assert_int_equal(last_written()[5], 4);
}

/* A pointer to no bytes is data, too. */
TEST(with_empty_data_the_response_has_zeros)
{
	const uint8_t zeros[IB_VENDOR_RANGE2_DATA_SIZE] = {0};

	come(ping_request(7));
	process();
	assert_int_equal(mad_request_respond(held[0], 0, "", 0), 0);
	assert_memory_equal(last_written() + IB_VENDOR_RANGE2_DATA_OFFS, zeros, sizeof(zeros));
}

TEST(a_status_has_sixteen_bits)
{
	come(ping_request(7));
	process();
	assert_int_equal(mad_request_respond(held[0], 0x10000, NULL, 0), -EINVAL);
	assert_int_equal(mad_request_respond(held[0], 0xffff, NULL, 0), 0);
	assert_int_equal(last_written()[4], 0xff);
	assert_int_equal(last_written()[5], 0xff);
}

TEST(a_response_of_one_mad_needs_no_memory)
{
	static uint8_t data[IB_VENDOR_RANGE2_DATA_SIZE];
	unsigned before;

	come(ping_request(7));
	process();
	before = device_allocations();
	assert_int_equal(mad_request_respond(held[0], 0, data, sizeof(data)), 0);
	assert_int_equal(device_allocations(), before);
}

TEST(an_rmpp_header_does_not_go_back)
{
	come(ping_request(7));
	come(ping_request(8));
	process();
	assert_int_equal(mad_request_respond(held[0], 4, NULL, 0), 0);
	expect_no_rmpp_header(last_written());
	assert_int_equal(mad_request_respond(held[1], 0, "x", 1), 0);
	expect_no_rmpp_header(last_written());
}

TEST(a_long_response_is_sent_by_rmpp)
{
	static uint8_t data[100000];
	const struct device_packet *packet;

	memset(data, 0x33, sizeof(data));
	come(ping_request(7));
	process();
	assert_int_equal(mad_request_respond(held[0], 0, data, sizeof(data)), 0);
	packet = device_packet(0);
	assert_int_equal(packet->length, IB_VENDOR_RANGE2_DATA_OFFS + sizeof(data));
	assert_int_equal(packet->mad[24], 1);
	assert_int_equal(packet->mad[25], IB_RMPP_TYPE_DATA);
	/* active, and no response time (IBA 13.6.2.1) */
	assert_int_equal(packet->mad[26], 31 << 3 | IB_RMPP_FLAG_ACTIVE);
	assert_memory_equal(packet->mad + IB_VENDOR_RANGE2_DATA_OFFS, data, sizeof(data));
	/* a lost segment is retransmitted, and no response is expected */
	assert_true(packet->header.retries > 0);
	assert_int_equal(packet->header.timeout_ms, 0);
}

/* The response of the greatest size that fits into a MAD, and the next one. */
TEST(data_that_fit_into_a_mad_need_no_rmpp)
{
	static uint8_t data[IB_VENDOR_RANGE2_DATA_SIZE + 1];

	memset(data, 0x33, sizeof(data));
	come_many(1, 2);
	process();
	assert_int_equal(mad_request_respond(held[0], 0, data, sizeof(data) - 1), 0);
	assert_int_equal(device_packet(0)->length, IB_MAD_SIZE);
	assert_int_equal(device_packet(0)->header.retries, 0);
	assert_int_equal(device_packet(0)->mad[24], 0);
	assert_int_equal(device_packet(0)->mad[255], 0x33);
	assert_int_equal(mad_request_respond(held[1], 0, data, sizeof(data)), 0);
	assert_int_equal(device_packet(1)->length, IB_MAD_SIZE + 1);
	assert_true(device_packet(1)->header.retries > 0);
	assert_int_equal(device_packet(1)->mad[24], 1);
	assert_int_equal(device_packet(1)->mad[256], 0x33);
}

/* The kernel's lengths are numbers of 31 bits. */
TEST(a_response_has_less_than_two_gigabytes)
{
	size_t most = INT32_MAX - 2 * (64 + IB_MAD_SIZE);
	struct mad_server_stats stats;

	come(ping_request(7));
	process();
	assert_int_equal(mad_request_respond(held[0], 0, "x", most + 1), -EMSGSIZE);
	device_fail_malloc(1);
	assert_int_equal(mad_request_respond(held[0], 0, "x", most), -ENOMEM);
	device_fail_malloc(0);
	stats = server_stats();
	assert_int_equal(stats.failed, 0); /* nothing was sent */
	assert_int_equal(stats.held, 1);
	mad_request_free(held[0]);
}

TEST(a_table_of_one_segment_is_sent_again_if_it_is_lost)
{
	const uint8_t methods[] = {IB_MAD_METHOD_GET_TABLE, IB_MAD_METHOD_GET_TRACE_TABLE,
				   IB_MAD_METHOD_GETMULTI};
	struct mad_server_options options = ping_options();

	options.mgmt_class = IB_SA_CLASS;
	options.oui = 0;
	options.methods[0] = MAD_SERVER_METHOD(IB_MAD_METHOD_GET) |
			     MAD_SERVER_METHOD(IB_MAD_METHOD_GET_TABLE) |
			     MAD_SERVER_METHOD(IB_MAD_METHOD_GET_TRACE_TABLE) |
			     MAD_SERVER_METHOD(IB_MAD_METHOD_GETMULTI);
	start(options, hold, NULL);
	for (unsigned i = 0; i < 3; i++) {
		come(request_of(IB_SA_CLASS, methods[i]));
		process();
		assert_int_equal(mad_request_respond(held[i], 0, "x", 1), 0);
		assert_int_equal(device_packet(i)->mad[26] & 7, IB_RMPP_FLAG_ACTIVE);
		assert_true(device_packet(i)->header.retries > 0);
	}
	come(request_of(IB_SA_CLASS, IB_MAD_METHOD_GET));
	process();
	assert_int_equal(mad_request_respond(held[3], 0, "x", 1), 0);
	assert_int_equal(device_packet(3)->mad[26] & 7, 0);
	assert_int_equal(device_packet(3)->header.retries, 0);
}

TEST(data_may_begin_behind_the_common_header)
{
	struct mad_server_options options = ping_options();
	struct coming coming = request_of(IB_PERFORMANCE_CLASS, IB_MAD_METHOD_GET);

	options.mgmt_class = IB_PERFORMANCE_CLASS;
	options.oui = 0;
	options.rmpp_version = 0;
	options.data_offset = 24;
	start(options, hold, NULL);
	come(coming);
	process();
	assert_int_equal(mad_request_respond(held[0], 0, "0123456789", 10), 0);
	assert_memory_equal(last_written() + 24, "0123456789", 11);
}

TEST(a_long_request_comes_whole)
{
	struct coming coming = ping_request(7);

	coming.length = 5000;
	come(coming);
	process();
	assert_int_equal(held[0]->length, 5000);
	assert_int_equal(held[0]->data_size, 5000 - IB_VENDOR_RANGE2_DATA_OFFS);
	assert_int_equal(held[0]->mad[4999], 0x77);
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), 0);
	assert_int_equal(device_packet(0)->length, IB_MAD_SIZE);
}

/* 2 segments of 216 bytes, each with 4 bytes of header. */
TEST(a_request_that_lost_segments_is_dropped)
{
	struct coming coming = ping_request(1);

	coming.announced = 440;
	coming.length = 40 + 432;
	come(coming);
	process();
	assert_int_equal(count, 1);
	assert_int_equal(held[0]->length, 40 + 432);
	coming.tid = 2;
	coming.length = 40 + 216;
	come(coming);
	process();
	assert_int_equal(count, 1);
	assert_int_equal(server_stats().dropped, 1);
	assert_int_equal(mad_request_respond(held[0], 0, NULL, 0), 0);
}

/* 36 bytes: the common header and the RMPP header. */
TEST(a_short_request_has_a_whole_response)
{
	struct coming coming = ping_request(0);
	const uint8_t zeros[IB_MAD_SIZE - 40] = {0};

	restart_with_limit(2);
	coming.length = 35;
	come(coming);
	process();
	assert_int_equal(count, 0);
	assert_int_equal(server_stats().dropped, 1);
	coming.length = 36;
	for (coming.tid = 1; coming.tid <= 3; coming.tid++)
		come(coming);
	process();
	assert_int_equal(count, 2);
	assert_int_equal(held[0]->length, 36);
	assert_null(held[0]->data);
	assert_int_equal(held[0]->data_size, 0);
	assert_int_equal(mad_request_respond(held[0], 0, NULL, 0), 0);
	assert_int_equal(mad_request_respond(held[1], 0, "x", 1), 0);
	assert_int_equal(device_written(), 3);
	assert_int_equal(device_packet(0)->mad[5], IB_MAD_STS_BUSY);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(device_packet(i)->length, IB_MAD_SIZE);
		assert_memory_equal(device_packet(i)->mad + 41, zeros, sizeof(zeros) - 1);
	}
}

/* One byte of data, and none. */
TEST(a_request_may_end_with_its_header)
{
	struct coming coming = ping_request(1);

	coming.length = IB_VENDOR_RANGE2_DATA_OFFS;
	come(coming);
	coming.tid = 2;
	coming.length++;
	come(coming);
	process();
	assert_null(held[0]->data);
	assert_int_equal(held[0]->data_size, 0);
	assert_ptr_equal(held[1]->data, held[1]->mad + IB_VENDOR_RANGE2_DATA_OFFS);
	assert_int_equal(held[1]->data_size, 1);
	mad_request_free(held[0]);
	mad_request_free(held[1]);
}

TEST(a_request_that_cannot_be_responded_to_stays_the_program_s)
{
	static uint8_t data[IB_VENDOR_RANGE2_DATA_SIZE + 1];
	struct mad_server_options options = ping_options();
	struct coming coming = ping_request(1);

	come(coming);
	process();
	device_fail(DEVICE_WRITE, 1, ENOMEM);
	assert_int_equal(mad_request_respond(held[0], 0, data, 8), -ENOMEM);
	device_fail_malloc(1);
	assert_int_equal(mad_request_respond(held[0], 0, data, sizeof(data)), -ENOMEM);
	device_fail_malloc(0);
	assert_int_equal(mad_request_respond(held[0], 0x10000, data, 1), -EINVAL);
	assert_int_equal(mad_request_respond(held[0], 0, NULL, 1), -EINVAL);
	assert_int_equal(mad_request_respond(NULL, 0, data, 1), -EINVAL);
	assert_int_equal(mad_request_respond(held[0], 0, data, SIZE_MAX), -EMSGSIZE);
	assert_int_equal(mad_request_respond(held[0], 0, data, sizeof(data)), 0);
	assert_int_equal(server_stats().failed, 1);

	coming.method = IB_MAD_METHOD_SEND;
	come(coming);
	process();
	assert_int_equal(mad_request_respond(held[1], 0, data, 1), -EINVAL);
	mad_request_free(held[1]);
	mad_server_stop(server);

	options.rmpp_version = 0;
	server = start(options, hold, NULL);
	come(ping_request(2));
	process();
	assert_int_equal(mad_request_respond(held[2], 0, data, sizeof(data)), -EMSGSIZE);
	assert_int_equal(mad_request_respond(held[2], 0, data, sizeof(data) - 1), 0);
	mad_request_free(NULL);
}

TEST(a_response_that_did_not_arrive_is_counted)
{
	static uint8_t data[1000];

	come(ping_request(7));
	process();
	assert_int_equal(mad_request_respond(held[0], 0, data, sizeof(data)), 0);
	device_time_out(device_packet(0));
	process();
	assert_int_equal(server_stats().failed, 1);
	assert_int_equal(server_stats().received, 1);
}

/* The library's responses BUSY are counted like the program's responses. */
TEST(busy_that_cannot_be_sent_is_counted)
{
	restart_with_limit(1);
	come_many(1, 4);
	device_fail(DEVICE_WRITE, 1, ENOMEM);
	process();
	assert_int_equal(device_written(), 2);
	assert_int_equal(server_stats().failed, 1);
	assert_int_equal(server_stats().busy, 2);
	mad_request_free(held[0]);
}

/* A program that was compiled with another version knows fewer or more members. */
TEST(statistics_have_the_size_that_the_caller_knows)
{
	struct {
		struct mad_server_stats stats;
		uint8_t more[8], behind;
	} buffer;

	come(ping_request(1));
	process();
	memset(&buffer, 0x99, sizeof(buffer));
	assert_int_equal(mad_server_get_stats(server, &buffer.stats,
					      offsetof(struct mad_server_stats, responded)),
			 0);
	assert_int_equal(buffer.stats.received, 1);
	assert_int_equal(buffer.stats.responded, UINT64_C(0x9999999999999999));
	assert_int_equal(mad_server_get_stats(server, &buffer.stats, sizeof(buffer.stats)), 0);
	assert_int_equal(buffer.stats.held, 1);
	assert_int_equal(buffer.more[0], 0x99);
	assert_int_equal(mad_server_get_stats(server, &buffer.stats, sizeof(buffer.stats) + 8),
			 0);
	assert_int_equal(buffer.stats.received, 1);
	assert_int_equal(buffer.more[0], 0);
	assert_int_equal(buffer.more[7], 0);
	assert_int_equal(buffer.behind, 0x99);
	assert_int_equal(mad_server_get_stats(NULL, &buffer.stats, sizeof(buffer.stats)),
			 -EINVAL);
	assert_int_equal(mad_server_get_stats(server, NULL, sizeof(buffer.stats)), -EINVAL);
	mad_request_free(held[0]);
}

TEST(queued_and_held_requests_are_counted_apart)
{
	struct mad_async *other = mad_async_create(port);
	struct mad_server_stats stats;

	come_many(1, 2);
	process();
	come_many(3, 3);
	mad_async_process(other);
	stats = server_stats();
	assert_int_equal(stats.received, 5);
	assert_int_equal(stats.held, 2);
	assert_int_equal(stats.queued, 3);
	process();
	stats = server_stats();
	assert_int_equal(stats.held, 5);
	assert_int_equal(stats.queued, 0);
	for (unsigned i = 0; i < 5; i++)
		mad_request_free(held[i]);
	stats = server_stats();
	assert_int_equal(stats.held, 0);
	assert_int_equal(stats.responded, 0);
	assert_int_equal(stats.dropped, 0);
	mad_async_free(other);
}

/* --- several servers --- */

TEST(servers_of_one_engine_get_their_own_requests)
{
	struct mad_server_options options = ping_options();
	struct mad_server *second, *third;
	struct coming coming = ping_request(1);
	void *umad;

	options.oui = 0x123456;
	second = start(options, hold, NULL);
	options.oui = 0;
	options.rmpp_version = 0;
	options.mgmt_class = VENDOR_CLASS;
	third = start(options, hold, NULL); /* the client of this class stays */
	come(coming);
	coming.oui = 0x123456;
	come(coming);
	coming.mgmt_class = VENDOR_CLASS;
	coming.oui = 0;
	come(coming);
	process();
	assert_int_equal(count, 3);
	assert_ptr_equal(held[0]->server, server);
	assert_ptr_equal(held[1]->server, second);
	assert_ptr_equal(held[2]->server, third);
	assert_ptr_equal(held[2]->data, held[2]->mad + IB_VENDOR_RANGE1_DATA_OFFS);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(mad_request_respond(held[i], 0, "x", 1), 0);
	umad = mad_receive_via(NULL, 0, port);
	assert_null(umad);
	mad_server_stop(second);
}

/* IBA 16.2.2: bit 0 of the attribute modifier. */
TEST(a_response_of_board_management_is_no_request)
{
	struct mad_server_options options = {
		.mgmt_class = IB_BOARD_MGMT_CLASS,
		.methods = {MAD_SERVER_METHOD(IB_MAD_METHOD_SEND)},
	};
	struct coming coming = request_of(IB_BOARD_MGMT_CLASS, IB_MAD_METHOD_SEND);

	start(options, hold, NULL);
	come(coming); /* the modifier is 0x17 */
	coming.changed = 23;
	come(coming);
	process();
	assert_int_equal(count, 1);
	assert_int_equal(held[0]->modifier, 0x42);
	mad_request_free(held[0]);
	assert_null(mad_receive_via(NULL, 0, port));
}

TEST(a_client_of_the_class_works_beside_its_server)
{
	struct mad_server_options options = ping_options();
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(3);
	struct coming coming = request_of(VENDOR_CLASS, IB_MAD_METHOD_GET);
	int client = mad_rpc_class_agent(port, VENDOR_CLASS);
	uint8_t data[IB_SMP_DATA_SIZE] = {0};

	options.mgmt_class = rpc.mgtclass = VENDOR_CLASS;
	options.oui = 0;
	options.rmpp_version = 0;
	start(options, hold, NULL);
	assert_int_equal(mad_rpc_class_agent(port, VENDOR_CLASS), client);
	device_on_write(echo, NULL);
	come(coming);
	assert_ptr_equal(mad_rpc(port, &rpc, &to, data, data), data);
	assert_int_equal(device_packet(0)->header.agent_id, client);
	process();
	assert_int_equal(count, 1);
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), 0);
	assert_int_not_equal(device_packet(1)->header.agent_id, client);
}

/* The loop would read and poll without end. */
TEST(a_wait_for_the_requests_of_others_sleeps)
{
	unsigned before = device_calls(DEVICE_READ) + device_calls(DEVICE_POLL);

	assert_int_equal(mad_async_wait(async, 50), -ETIMEDOUT);
	assert_in_range(device_calls(DEVICE_READ) + device_calls(DEVICE_POLL) - before, 1, 10);
}
