/* SPDX-License-Identifier: BSD-2-Clause */

/* Servers on an engine: the callback's requests, and the responses to them. */

#define MANY 4
#include "async_fixture.h"

#include <infiniband/mad_server.h>
#include <pthread.h>
#include <sys/wait.h>

#define PING_CLASS 0x32
#define PING_OUI   IB_OPENIB_OUI
#define HELD_MAX   2000

static struct mad_server *server;

/* Requests that the callback received. */
static struct mad_request *held[HELD_MAX];
static atomic_uint count;

static void hold(struct mad_server *from, struct mad_request *request, void *arg)
{
	(void)from;
	(void)arg;
	assert_true(count < HELD_MAX);
	held[count] = request;
	count++; /* a thread that sees the new count may read the request */
}

static struct mad_server_options ping_options(void)
{
	return (struct mad_server_options){
		.mgmt_class = PING_CLASS,
		.oui = PING_OUI,
		.rmpp_version = 1,
		.methods = {MAD_SERVER_METHOD(IB_MAD_METHOD_GET) |
			    MAD_SERVER_METHOD(IB_MAD_METHOD_SET) |
			    MAD_SERVER_METHOD(IB_MAD_METHOD_SEND) |
			    MAD_SERVER_METHOD(IB_MAD_METHOD_REPORT)},
	};
}

static struct mad_server *start(struct mad_server_options options, mad_server_fn *callback,
				void *arg)
{
	struct mad_server *started = NULL;

	assert_int_equal(mad_server_start(async, &options, callback, arg, &started), 0);
	assert_non_null(started);
	return started;
}

static int setup(void **state)
{
	if (async_setup(state))
		return -1;
	count = 0;
	server = start(ping_options(), hold, NULL);
	return 0;
}

#define SERVER_TEST(name) cmocka_unit_test_setup_teardown(name, setup, async_teardown)

/* The agent that has the method of a class, and of a vendor. */
static uint32_t agent_of(uint8_t mgmt_class, uint32_t oui, uint8_t method)
{
	for (unsigned id = 0; id < 32; id++) {
		struct device_agent agent = device_agent(device_fd(), id);

		if (agent.registered && agent.mgmt_class == mgmt_class &&
		    (!oui || agent.oui == oui) && agent.methods[0] >> method & 1)
			return id;
	}
	fail_msg("no agent has class 0x%x method 0x%x", mgmt_class, method);
	return 0;
}

struct coming {
	uint8_t mgmt_class;
	uint32_t oui;
	uint8_t method;
	uint32_t tid;
	size_t length;
	uint16_t lid;
};

static struct coming ping_request(uint32_t tid)
{
	return (struct coming){PING_CLASS, PING_OUI, IB_MAD_METHOD_GET, tid, IB_MAD_SIZE, 9};
}

static void come(struct coming coming)
{
	struct ib_user_mad header = {
		.agent_id = agent_of(coming.mgmt_class, coming.oui,
				     coming.method & ~IB_MAD_RESPONSE & 0xff),
	};
	uint8_t *mad = __real_calloc(1, coming.length + IB_MAD_SIZE);
	const uint8_t start_of[] = {1, coming.mgmt_class, 1, coming.method};

	memcpy(mad, start_of, sizeof(start_of));
	coming.tid = htobe32(coming.tid);
	memcpy(mad + 12, &coming.tid, sizeof(coming.tid));
	mad[17] = 0x42;
	mad[23] = 0x17;
	/* the end of an RMPP header, and what is behind it */
	memset(mad + 32, 0x99, 5);
	mad[37] = (uint8_t)(coming.oui >> 16);
	mad[38] = (uint8_t)(coming.oui >> 8);
	mad[39] = (uint8_t)coming.oui;
	mad[coming.length - 1] = 0x77;
	header.addr.lid = htobe16(coming.lid);
	header.addr.qpn = htobe32(1);
	header.addr.sl = 4;
	header.addr.pkey_index = 1;
	device_queue(device_fd(), &header, mad, coming.length);
	free(mad);
}

static void come_many(uint32_t first, uint32_t number)
{
	for (uint32_t i = 0; i < number; i++)
		come(ping_request(first + i));
}

static void process(void)
{
	for (unsigned i = 0; i < 100; i++)
		assert_true(mad_async_process(async) >= 0);
}

static struct mad_server_stats server_stats(void)
{
	struct mad_server_stats stats;

	assert_int_equal(mad_server_get_stats(server, &stats, sizeof(stats)), 0);
	return stats;
}

static const uint8_t *last_written(void)
{
	return device_packet(device_written() - 1)->mad;
}

/* --- requests and responses ------------------------------------------------------ */

static void a_request_is_handed_out_with_what_it_says(void **state)
{
	(void)state;
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
	mad_request_drop(held[0]);
	assert_int_equal(device_written(), 0);
}

static void a_response_has_the_request_s_header_the_status_and_the_data(void **state)
{
	const uint8_t *mad;

	(void)state;
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

static void without_data_the_request_s_own_go_back(void **state)
{
	(void)state;
	come(ping_request(7));
	process();
	assert_int_equal(mad_request_respond(held[0], 4, NULL, 0), 0);
	assert_int_equal(last_written()[255], 0x77);
	assert_int_equal(last_written()[5], 4);
}

/* All of the request behind its RMPP header, and nothing of that. */
static void expect_no_rmpp_header(const uint8_t *mad)
{
	const uint8_t zeros[12] = {0}, behind[] = {0x99, 0x00, 0x14, 0x05};

	assert_memory_equal(mad + 24, zeros, sizeof(zeros));
	assert_memory_equal(mad + 36, behind, sizeof(behind));
}

static void an_rmpp_header_does_not_go_back(void **state)
{
	(void)state;
	come(ping_request(7));
	come(ping_request(8));
	process();
	assert_int_equal(mad_request_respond(held[0], 4, NULL, 0), 0);
	expect_no_rmpp_header(last_written());
	assert_int_equal(mad_request_respond(held[1], 0, "x", 1), 0);
	expect_no_rmpp_header(last_written());
}

static void a_long_response_is_sent_by_rmpp(void **state)
{
	static uint8_t data[100000];
	const struct device_packet *packet;

	(void)state;
	memset(data, 0x33, sizeof(data));
	come(ping_request(7));
	process();
	assert_int_equal(mad_request_respond(held[0], 0, data, sizeof(data)), 0);
	packet = device_packet(0);
	assert_int_equal(packet->length, IB_VENDOR_RANGE2_DATA_OFFS + sizeof(data));
	assert_int_equal(packet->mad[24], 1);
	assert_int_equal(packet->mad[25], IB_RMPP_TYPE_DATA);
	assert_int_equal(packet->mad[26] & 7, IB_RMPP_FLAG_ACTIVE);
	assert_memory_equal(packet->mad + IB_VENDOR_RANGE2_DATA_OFFS, data, sizeof(data));
	/* a lost segment is retransmitted, and no response is expected */
	assert_true(packet->header.retries > 0);
	assert_int_equal(packet->header.timeout_ms, 0);
}

static void a_table_of_one_segment_is_sent_again_if_it_is_lost(void **state)
{
	const uint8_t methods[] = {IB_MAD_METHOD_GET_TABLE, IB_MAD_METHOD_GET_TRACE_TABLE,
				   IB_MAD_METHOD_GETMULTI};
	struct mad_server_options options = ping_options();

	(void)state;
	options.mgmt_class = IB_SA_CLASS;
	options.oui = 0;
	options.methods[0] = MAD_SERVER_METHOD(IB_MAD_METHOD_GET) |
			     MAD_SERVER_METHOD(IB_MAD_METHOD_GET_TABLE) |
			     MAD_SERVER_METHOD(IB_MAD_METHOD_GET_TRACE_TABLE) |
			     MAD_SERVER_METHOD(IB_MAD_METHOD_GETMULTI);
	start(options, hold, NULL);
	for (unsigned i = 0; i < 3; i++) {
		come((struct coming){IB_SA_CLASS, 0, methods[i], 1, IB_MAD_SIZE, 9});
		process();
		assert_int_equal(mad_request_respond(held[i], 0, "x", 1), 0);
		assert_int_equal(device_packet(i)->mad[26] & 7, IB_RMPP_FLAG_ACTIVE);
		assert_true(device_packet(i)->header.retries > 0);
	}
	come((struct coming){IB_SA_CLASS, 0, IB_MAD_METHOD_GET, 1, IB_MAD_SIZE, 9});
	process();
	assert_int_equal(mad_request_respond(held[3], 0, "x", 1), 0);
	assert_int_equal(device_packet(3)->mad[26] & 7, 0);
	assert_int_equal(device_packet(3)->header.retries, 0);
}

static void data_may_begin_behind_the_common_header(void **state)
{
	struct mad_server_options options = ping_options();
	struct coming coming = {IB_PERFORMANCE_CLASS, 0, IB_MAD_METHOD_GET, 1, IB_MAD_SIZE, 9};

	(void)state;
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

static void a_long_request_comes_whole(void **state)
{
	struct coming coming = ping_request(7);

	(void)state;
	coming.length = 5000;
	come(coming);
	process();
	assert_int_equal(held[0]->length, 5000);
	assert_int_equal(held[0]->data_size, 5000 - IB_VENDOR_RANGE2_DATA_OFFS);
	assert_int_equal(held[0]->mad[4999], 0x77);
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), 0);
	assert_int_equal(device_packet(0)->length, IB_MAD_SIZE);
}

static void a_request_that_cannot_be_responded_to_stays_the_program_s(void **state)
{
	static uint8_t data[IB_VENDOR_RANGE2_DATA_SIZE + 1];
	struct mad_server_options options = ping_options();
	struct coming coming = ping_request(1);

	(void)state;
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
	mad_request_drop(held[1]);
	mad_server_stop(server);

	options.rmpp_version = 0;
	server = start(options, hold, NULL);
	come(ping_request(2));
	process();
	assert_int_equal(mad_request_respond(held[2], 0, data, sizeof(data)), -EMSGSIZE);
	assert_int_equal(mad_request_respond(held[2], 0, data, sizeof(data) - 1), 0);
	mad_request_drop(NULL);
}

static void a_response_that_did_not_arrive_is_counted(void **state)
{
	static uint8_t data[1000];

	(void)state;
	come(ping_request(7));
	process();
	assert_int_equal(mad_request_respond(held[0], 0, data, sizeof(data)), 0);
	device_time_out(device_packet(0));
	process();
	assert_int_equal(server_stats().failed, 1);
	assert_int_equal(server_stats().received, 1);
}

/* --- limits ---------------------------------------------------------------------- */

static void a_thousand_requests_are_held_at_once(void **state)
{
	(void)state;
	come_many(1, 1000);
	process();
	assert_int_equal(count, 1000);
	assert_int_equal(server_stats().held, 1000);
	/* in any order */
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(mad_request_respond(held[i * 7 % 1000], 0, "x", 1), 0);
	assert_int_equal(device_written(), 1000);
	assert_int_equal(server_stats().held, 0);
}

static void requests_beyond_the_limit_get_busy(void **state)
{
	struct mad_server_options options = ping_options();

	(void)state;
	mad_server_stop(server);
	options.limit = 10;
	server = start(options, hold, NULL);
	come_many(1, 30);
	process();
	assert_int_equal(count, 10);
	assert_int_equal(device_written(), 20);
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(device_packet(i)->mad[3], IB_MAD_METHOD_GET_RESPONSE);
		assert_int_equal(device_packet(i)->mad[5], IB_MAD_STS_BUSY);
		assert_int_equal(device_packet(i)->mad[15], 11 + i);
		expect_no_rmpp_header(device_packet(i)->mad);
	}
	assert_int_equal(server_stats().busy, 20);
	mad_request_drop(held[0]);
	come(ping_request(50));
	process();
	assert_int_equal(count, 11);
	for (unsigned i = 1; i < 11; i++)
		mad_request_drop(held[i]);
}

static void busy_leaves_the_data_of_a_class_without_rmpp(void **state)
{
	struct coming coming = {IB_PERFORMANCE_CLASS, 0, IB_MAD_METHOD_GET, 1, IB_MAD_SIZE, 9};
	const uint8_t sent[] = {0x99, 0x99, 0x99, 0x99, 0x99};
	struct mad_server_options options = ping_options();

	(void)state;
	options.mgmt_class = IB_PERFORMANCE_CLASS;
	options.oui = 0;
	options.rmpp_version = 0;
	options.limit = 1;
	start(options, hold, NULL);
	come(coming);
	coming.tid++;
	come(coming);
	process();
	assert_int_equal(count, 1);
	assert_int_equal(last_written()[5], IB_MAD_STS_BUSY);
	assert_memory_equal(last_written() + 32, sent, sizeof(sent));
	mad_request_drop(held[0]);
}

/* BUSY would confirm a report; a Send has no response. */
static void sends_and_reports_beyond_the_limit_are_dropped(void **state)
{
	struct mad_server_options options = ping_options();
	struct coming coming = ping_request(2);

	(void)state;
	mad_server_stop(server);
	options.limit = 1;
	server = start(options, hold, NULL);
	come(ping_request(1));
	coming.method = IB_MAD_METHOD_SEND;
	come(coming);
	coming.method = IB_MAD_METHOD_REPORT;
	come(coming);
	process();
	assert_int_equal(device_written(), 0);
	assert_int_equal(server_stats().dropped, 2);
	mad_request_drop(held[0]);
}

/* No thread processes the engine: another engine's thread reads. */
static void a_storm_takes_a_bounded_amount_of_memory(void **state)
{
	struct mad_async *other = mad_async_create(port);
	unsigned before;

	(void)state;
	come_many(1, 1024);
	for (unsigned i = 0; i < 100; i++)
		mad_async_process(other);
	assert_int_equal(server_stats().queued, 1024);
	come_many(5000, 200);
	for (unsigned i = 0; i < 20; i++)
		mad_async_process(other);
	assert_int_equal(server_stats().dropped, 200 - 64);
	come_many(9000, 100);
	before = device_allocations();
	for (unsigned i = 0; i < 20; i++)
		mad_async_process(other);
	assert_int_equal(device_allocations(), before);
	mad_async_destroy(other);
	process();
	assert_int_equal(count, 1024);
	assert_int_equal(server_stats().busy, 64);
	for (unsigned i = 0; i < count; i++)
		mad_request_drop(held[i]);
}

static void a_request_that_comes_again_is_handed_out_once(void **state)
{
	struct coming coming = ping_request(7);

	(void)state;
	come(coming);
	come(coming);
	process();
	come(coming);
	process();
	assert_int_equal(count, 1);
	assert_int_equal(server_stats().duplicates, 2);
	coming.lid = 10; /* another sender's */
	come(coming);
	process();
	assert_int_equal(count, 2);
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), 0);
	come(ping_request(7)); /* the response was lost */
	process();
	assert_int_equal(count, 3);
	mad_request_drop(held[1]);
	mad_request_drop(held[2]);
}

/* As long as the common header, which has the method. */
static void a_response_is_not_the_server_s(void **state)
{
	struct coming coming = ping_request(7);

	(void)state;
	coming.method |= IB_MAD_RESPONSE;
	coming.length = 24;
	come(coming);
	process();
	assert_int_equal(server_stats().dropped, 0);
	coming.length = 23;
	come(coming);
	process();
	assert_int_equal(server_stats().dropped, 1);
	assert_int_equal(count, 0);
}

static void malformed_messages_and_lack_of_memory_are_counted(void **state)
{
	struct coming coming = ping_request(7);

	(void)state;
	coming.length = 20;
	come(coming);
	coming.length = 30;
	come(coming);
	process();
	come(ping_request(8));
	device_fail_malloc(1);
	process();
	assert_int_equal(count, 0);
	assert_int_equal(server_stats().dropped, 3);
	coming.length = IB_VENDOR_RANGE2_DATA_OFFS; /* no data */
	come(coming);
	process();
	assert_null(held[0]->data);
	assert_int_equal(held[0]->data_size, 0);
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), 0);
}

/* --- several servers, and stopping them ------------------------------------------- */

static void servers_of_one_engine_get_their_own_requests(void **state)
{
	struct mad_server_options options = ping_options();
	struct mad_server *second, *third;
	struct coming coming = ping_request(1);
	void *umad;

	(void)state;
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

static void a_client_of_the_class_works_beside_its_server(void **state)
{
	struct mad_server_options options = ping_options();
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(3);
	struct coming coming = {VENDOR_CLASS, 0, IB_MAD_METHOD_GET, 1, IB_MAD_SIZE, 9};
	int client = mad_rpc_class_agent(port, VENDOR_CLASS);
	uint8_t data[IB_SMP_DATA_SIZE] = {0};

	(void)state;
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

static void data_may_begin_192_bytes_behind_the_start_at_most(void **state)
{
	struct mad_server_options options = ping_options();
	struct mad_server *none = NULL;

	(void)state;
	mad_server_stop(server);
	options.data_offset = 192;
	server = start(options, hold, NULL);
	mad_server_stop(server);
	options.data_offset = 193;
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -EINVAL);
	server = NULL;
}

static void a_server_that_cannot_be_started_says_why(void **state)
{
	struct mad_server_options options = ping_options();
	struct mad_server *none = server;

	(void)state;
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -EADDRINUSE);
	assert_null(none);
	options.oui = 0x123456;
	assert_int_equal(mad_server_start(NULL, &options, hold, NULL, &none), -EINVAL);
	assert_int_equal(mad_server_start(async, NULL, hold, NULL, &none), -EINVAL);
	assert_int_equal(mad_server_start(async, &options, NULL, NULL, &none), -EINVAL);
	assert_int_equal(mad_server_start(async, &options, hold, NULL, NULL), -EINVAL);
	device_fail_malloc(1);
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -ENOMEM);
	device_fail_malloc(0);
	device_fail(DEVICE_IOCTL, 1, ENOMEM);
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -ENOMEM);
	device_fail(DEVICE_IOCTL, 0, 0);
	options.limit = 65537;
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -EINVAL);
	options.limit = 0;
	options.oui = 0;
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -EINVAL);
	options.oui = 0x1234567;
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -EINVAL);
	options.oui = 0x123456;
	options.data_offset = 39; /* the OUI is there */
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -EINVAL);
	options.data_offset = 0;
	options.reserved[3] = 1;
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -EINVAL);
	options.reserved[3] = 0;
	options.methods[0] = 0;
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -EINVAL);
	options.methods[0] = 2;
	options.mgmt_class = 0x50;
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -EINVAL);
	options.mgmt_class = IB_PERFORMANCE_CLASS;
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -EINVAL);
	options.oui = 0;
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -EINVAL);
	options.rmpp_version = 0;
	options.data_offset = 23;
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -EINVAL);
	options.data_offset = 0;
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), 0);
	options.mgmt_class = IB_DEVICE_MGMT_CLASS;
	options.rmpp_version = 1;
	options.data_offset = 35; /* the RMPP header is there */
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -EINVAL);
	options.data_offset = 0;
	device_remove();
	while (mad_async_process(async) >= 0)
		;
	assert_int_equal(mad_server_start(async, &options, hold, NULL, &none), -ENODEV);
}

static void a_stop_drops_what_is_queued_and_keeps_what_is_held(void **state)
{
	struct mad_async *other = mad_async_create(port);

	(void)state;
	come(ping_request(1));
	process();
	come(ping_request(2));
	mad_async_process(other);
	assert_int_equal(server_stats().queued, 1);
	mad_server_stop(server);
	process();
	assert_int_equal(count, 1);
	assert_int_equal(held[0]->tid, 1);
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), -ECANCELED);
	mad_request_drop(held[0]);
	assert_int_equal(device_written(), 0);
	mad_server_stop(NULL);
	/* the method is free again */
	server = start(ping_options(), hold, NULL);
	mad_async_destroy(other);
}

static void stop_and_respond(struct mad_server *from, struct mad_request *request, void *arg)
{
	mad_server_stop(from);
	assert_int_equal(mad_request_respond(request, 0, "x", 1), -ECANCELED);
	mad_request_drop(request);
	++*(int *)arg;
}

static void a_callback_may_stop_its_server(void **state)
{
	int calls = 0;

	(void)state;
	mad_server_stop(server);
	start(ping_options(), stop_and_respond, &calls);
	come_many(1, 3);
	process();
	assert_int_equal(calls, 1);
}

static void held_requests_outlive_the_engine_and_the_port(void **state)
{
	(void)state;
	come_many(1, 3);
	process();
	mad_async_destroy(async);
	async = NULL;
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), -ECANCELED);
	mad_request_drop(held[0]);
	mad_rpc_close_port(port);
	port = NULL;
	assert_int_equal(mad_request_respond(held[1], 0, "x", 1), -ECANCELED);
	assert_int_equal(held[1]->tid, 2);
	mad_request_drop(held[1]);
	mad_request_drop(held[2]);
}

static void the_port_may_be_closed_before_the_engine_is_destroyed(void **state)
{
	(void)state;
	come(ping_request(1));
	process();
	mad_rpc_close_port(port);
	port = NULL;
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), -ECANCELED);
	assert_int_equal(mad_async_process(async), -ECANCELED);
	mad_async_destroy(async);
	async = NULL;
	mad_request_drop(held[0]);
}

static void a_device_that_is_gone_ends_it(void **state)
{
	int ret;

	(void)state;
	come(ping_request(1));
	process();
	device_remove();
	do
		ret = mad_async_process(async);
	while (ret >= 0);
	assert_int_equal(ret, -ENODEV);
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), -ENODEV);
	mad_request_drop(held[0]);
	assert_int_equal(mad_async_run(async), 0);
}

/* --- threads ---------------------------------------------------------------------- */

static void stop_third(struct mad_server *from, struct mad_request *request, void *arg)
{
	assert_int_equal(mad_request_respond(request, 0, "x", 1), 0);
	if (++*(int *)arg == 3)
		mad_server_stop(from);
}

static void run_serves_until_the_server_is_stopped(void **state)
{
	int calls = 0;

	(void)state;
	mad_server_stop(server);
	start(ping_options(), stop_third, &calls);
	come_many(1, 3);
	assert_int_equal(mad_async_run(async), 3);
	assert_int_equal(device_written(), 3);
}

static void stop_run(struct mad_server *from, struct mad_request *request, void *arg)
{
	(void)from;
	mad_request_drop(request);
	++*(int *)arg;
	mad_async_stop(async);
}

static void after_a_stop_no_callback_begins(void **state)
{
	int calls = 0;

	(void)state;
	mad_server_stop(server);
	server = start(ping_options(), stop_run, &calls);
	come_many(1, 3);
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(mad_async_run(async), -EINTR);
		assert_int_equal(calls, i);
	}
	mad_server_stop(server);
	assert_int_equal(mad_async_run(async), 0);
}

#define RESPONDERS 4

static void *respond_all(void *arg)
{
	unsigned first = (unsigned)(uintptr_t)arg;

	for (unsigned i = first; i < 1000; i += RESPONDERS) {
		while (count <= i)
			sleep_ms(1);
		if (mad_request_respond(held[i], 0, "x", 1))
			return arg ? arg : (void *)1;
	}
	return NULL;
}

static void *serve(void *arg)
{
	atomic_bool *end = arg;

	while (!*end)
		if (!mad_async_process(async))
			sleep_ms(1);
	return NULL;
}

static void any_thread_may_respond(void **state)
{
	pthread_t responders[RESPONDERS], loop;
	atomic_bool end = false;
	void *result;

	(void)state;
	assert_int_equal(pthread_create(&loop, NULL, serve, &end), 0);
	for (uintptr_t i = 0; i < RESPONDERS; i++)
		pthread_create(&responders[i], NULL, respond_all, (void *)i);
	come_many(1, 1000);
	for (unsigned i = 0; i < RESPONDERS; i++) {
		pthread_join(responders[i], &result);
		assert_null(result);
	}
	assert_int_equal(device_written(), 1000);
	mad_server_stop(server);
	end = true;
	pthread_join(loop, NULL);
}

static atomic_int in_callback;

static void linger(struct mad_server *from, struct mad_request *request, void *arg)
{
	(void)from;
	(void)arg;
	in_callback = 1;
	sleep_ms(50);
	mad_request_drop(request);
	in_callback = 2;
}

static void a_stop_waits_for_the_callback(void **state)
{
	atomic_bool end = false;
	pthread_t loop;

	(void)state;
	in_callback = 0;
	mad_server_stop(server);
	server = start(ping_options(), linger, NULL);
	assert_int_equal(pthread_create(&loop, NULL, serve, &end), 0);
	come(ping_request(1));
	while (!in_callback)
		sleep_ms(1);
	mad_server_stop(server);
	assert_int_equal(in_callback, 2);
	end = true;
	pthread_join(loop, NULL);
}

static void *run(void *arg)
{
	return (void *)(intptr_t)mad_async_run(arg);
}

static void destroying_an_engine_ends_the_run_of_its_servers(void **state)
{
	pthread_t runner;
	void *result;

	(void)state;
	assert_int_equal(pthread_create(&runner, NULL, run, async), 0);
	come(ping_request(1));
	while (!count)
		sleep_ms(1);
	sleep_ms(20); /* probably it waits for messages */
	mad_async_destroy(async);
	async = NULL;
	pthread_join(runner, &result);
	assert_int_equal((intptr_t)result, 1);
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), -ECANCELED);
	mad_request_drop(held[0]);
}

static void the_run_of_another_thread_ends_with_the_last_server(void **state)
{
	pthread_t runner;
	void *result;

	(void)state;
	assert_int_equal(pthread_create(&runner, NULL, run, async), 0);
	come(ping_request(1));
	while (!count)
		sleep_ms(1);
	sleep_ms(20); /* probably it waits for messages */
	mad_server_stop(server);
	pthread_join(runner, &result);
	assert_int_equal((intptr_t)result, 1);
	mad_request_drop(held[0]);
}

static void a_child_has_no_servers(void **state)
{
#ifdef NO_CHILDREN
	(void)state;
	skip();
#else
	int status;
	pid_t child;

	(void)state;
	come_many(1, 2);
	process();
	child = fork();
	if (!child) {
		if (server_stats().held != 2 || server_stats().queued)
			_exit(2);
		if (mad_request_respond(held[0], 0, "x", 1) != -ECANCELED)
			_exit(1);
		mad_request_drop(held[0]);
		mad_request_drop(held[1]);
		mad_server_stop(server);
		mad_async_destroy(async);
		mad_rpc_close_port(port);
		end_child();
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(mad_request_respond(held[0], 0, "x", 1), 0);
	mad_request_drop(held[1]);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SERVER_TEST(a_request_is_handed_out_with_what_it_says),
		SERVER_TEST(a_response_has_the_request_s_header_the_status_and_the_data),
		SERVER_TEST(without_data_the_request_s_own_go_back),
		SERVER_TEST(an_rmpp_header_does_not_go_back),
		SERVER_TEST(a_long_response_is_sent_by_rmpp),
		SERVER_TEST(a_table_of_one_segment_is_sent_again_if_it_is_lost),
		SERVER_TEST(data_may_begin_behind_the_common_header),
		SERVER_TEST(a_long_request_comes_whole),
		SERVER_TEST(a_request_that_cannot_be_responded_to_stays_the_program_s),
		SERVER_TEST(a_response_that_did_not_arrive_is_counted),
		SERVER_TEST(a_thousand_requests_are_held_at_once),
		SERVER_TEST(requests_beyond_the_limit_get_busy),
		SERVER_TEST(busy_leaves_the_data_of_a_class_without_rmpp),
		SERVER_TEST(sends_and_reports_beyond_the_limit_are_dropped),
		SERVER_TEST(a_storm_takes_a_bounded_amount_of_memory),
		SERVER_TEST(a_request_that_comes_again_is_handed_out_once),
		SERVER_TEST(a_response_is_not_the_server_s),
		SERVER_TEST(malformed_messages_and_lack_of_memory_are_counted),
		SERVER_TEST(servers_of_one_engine_get_their_own_requests),
		SERVER_TEST(a_client_of_the_class_works_beside_its_server),
		SERVER_TEST(data_may_begin_192_bytes_behind_the_start_at_most),
		SERVER_TEST(a_server_that_cannot_be_started_says_why),
		SERVER_TEST(a_stop_drops_what_is_queued_and_keeps_what_is_held),
		SERVER_TEST(a_callback_may_stop_its_server),
		SERVER_TEST(held_requests_outlive_the_engine_and_the_port),
		SERVER_TEST(the_port_may_be_closed_before_the_engine_is_destroyed),
		SERVER_TEST(a_device_that_is_gone_ends_it),
		SERVER_TEST(run_serves_until_the_server_is_stopped),
		SERVER_TEST(after_a_stop_no_callback_begins),
		SERVER_TEST(any_thread_may_respond),
		SERVER_TEST(a_stop_waits_for_the_callback),
		SERVER_TEST(destroying_an_engine_ends_the_run_of_its_servers),
		SERVER_TEST(the_run_of_another_thread_ends_with_the_last_server),
		SERVER_TEST(a_child_has_no_servers),
	};

	return cmocka_run_group_tests_name("request_server", tests, NULL, NULL);
}
