/* SPDX-License-Identifier: BSD-2-Clause */

/* Servers on an engine, and mad_receive_via() with its responses: requests of other nodes. */

#include "arrivals.h"

#include <infiniband/mad_errors.h>
#include <infiniband/mad_server.h>
#include <infiniband/umad.h>
#include <endian.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#define PING_CLASS   IB_VENDOR_OPENIB_PING_CLASS
#define VENDOR_CLASS 0x0a
#define BASE         IB_VENDOR_RANGE2_DATA_OFFS
#define ROOM         IB_VENDOR_RANGE2_DATA_SIZE
#define OTHER_OUI    0x123456
#define HELD_MAX     2100
#define BUSY         IB_MAD_STS_BUSY

static struct ibmad_port *port;
static struct mad_async *async;
static struct mad_server *server;
/* Requests that hold() got, and last callbacks. */
static struct mad_request *held[HELD_MAX];
static atomic_uint count, ends;
static atomic_int end_error;

static void hold(struct mad_server *from, struct mad_request *request, int error, void *arg)
{
	(void)from;
	(void)arg;
	if (!request) {
		end_error = error;
		ends++;
		return;
	}
	assert_int_equal(error, 0);
	assert_true(count < HELD_MAX);
	held[count] = request;
	count++;
}

static struct mad_server_options ping_options(void)
{
	return (struct mad_server_options){
		.mgmt_class = PING_CLASS,
		.oui = IB_OPENIB_OUI,
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

static int begin_on(const char *nodes)
{
	char host[] = "mlx5_0";
	int classes[] = {IB_SMI_CLASS, IB_SA_CLASS, VENDOR_CLASS};

	machine_start("star:8", nodes);
	arrivals_begin();
	count = ends = 0;
	port = mad_rpc_open_port(host, 1, classes, 3);
	async = mad_async_create(port);
	if (!async)
		return -1;
	server = start(ping_options(), hold, NULL);
	return 0;
}

static int setup(void)
{
	return begin_on(NULL);
}

static int teardown(void)
{
	mad_async_free(async);
	mad_rpc_close_port(port);
	return machine_teardown();
}

FIXTURE(setup, teardown);

/* Processes the engine until all that came is handled. */
static void process(void)
{
	machine_pass(1);
	for (unsigned i = 0; i < 60; i++)
		assert_true(mad_async_process(async) >= 0);
	machine_pass(1);
}

/* Another engine's thread reads what came. */
static void read_by(struct mad_async *other)
{
	machine_pass(1);
	for (unsigned i = 0; i < 60; i++)
		mad_async_process(other);
}

/* Stops the server, whose callback is hold(), and waits for its last callback. */
static void end_server(void)
{
	unsigned before = ends;

	mad_server_stop(server);
	while (ends == before)
		assert_true(mad_async_process(async) >= 0);
}

static void restart_with_limit(unsigned limit)
{
	struct mad_server_options options = ping_options();

	end_server();
	options.limit = limit;
	server = start(options, hold, NULL);
}

/* --- requests ------------------------------------------------------------------- */

/* A request; valid until the next one. */
static uint8_t *make(unsigned mgmt_class, unsigned method, uint32_t tid)
{
	static uint8_t mad[MACHINE_MAD];
	const uint8_t start_of[] = {1, (uint8_t)mgmt_class, mgmt_class == IB_SA_CLASS ? 2 : 1,
				    (uint8_t)method};

	memset(mad, 0, sizeof(mad));
	memcpy(mad, start_of, sizeof(start_of));
	tid = htobe32(tid);
	memcpy(mad + 12, &tid, sizeof(tid));
	mad[17] = 0x42;
	mad[23] = 0x17;
	if (mgmt_class >= 0x30 && mgmt_class <= 0x4f) {
		mad[32] = 0x99; /* of an RMPP header */
		mad[36] = 0x99;
		memcpy(mad + 37, (const uint8_t[]){0x00, 0x14, 0x05}, 3);
	}
	mad[255] = 0x77;
	return mad;
}

static uint8_t *ping(uint32_t tid)
{
	return make(PING_CLASS, IB_MAD_METHOD_GET, tid);
}

static uint8_t *ping_other(uint32_t tid)
{
	uint8_t *mad = ping(tid);

	memcpy(mad + 37, (const uint8_t[]){0x12, 0x34, 0x56}, 3);
	return mad;
}

/* Requests with TIDs from "first" on come from n1. */
static void come_many(uint32_t first, uint32_t number)
{
	for (uint32_t i = 0; i < number; i++)
		machine_send("n1", ping(first + i), 0);
}

static struct mad_server_stats server_stats(void)
{
	struct mad_server_stats stats;

	assert_int_equal(mad_server_get_stats(server, &stats, sizeof(stats)), 0);
	return stats;
}

static void free_held(unsigned first)
{
	for (; first < count; first++)
		mad_request_free(held[first]);
}

static int respond(struct mad_request *request)
{
	return mad_request_respond(request, 0, "x", 1);
}

/* --- what requests and responses say -------------------------------------------- */

TEST(a_request_is_handed_out_and_its_response_goes_back)
{
	uint8_t *mad = ping(0x89abcdef);

	mad[8] = 0x55; /* the upper half of the TID */
	machine_send("n4", mad, 0);
	process();
	assert_int_equal(count, 1);
	assert_ptr_equal(held[0]->server, server);
	assert_memory_equal(held[0]->mad, mad, MACHINE_MAD);
	assert_int_equal(held[0]->mgmt_class, PING_CLASS);
	assert_int_equal(held[0]->method, IB_MAD_METHOD_GET);
	assert_int_equal(held[0]->attribute, 0x42);
	assert_int_equal(held[0]->modifier, 0x17);
	assert_true(held[0]->tid == UINT64_C(0x5500000089abcdef));
	assert_int_equal(held[0]->from.lid, machine_lid("n4"));
	assert_int_equal(held[0]->from.qp, 1);
	assert_int_equal(held[0]->from.qkey, IB_DEFAULT_QP1_QKEY);
	assert_int_equal(held[0]->from.grh_present, 0);
	assert_int_equal(held[0]->length, IB_MAD_SIZE);
	assert_int_equal(held[0]->data_size, ROOM);
	assert_ptr_equal(held[0]->data, held[0]->mad + BASE);
	assert_int_equal(arrival_count, 0);
	assert_int_equal(mad_request_respond(held[0], 0x1234, "hello", 5), 0);
	machine_pass(1);
	assert_int_equal(arrival_count, 1);
	assert_string_equal(arrivals[0].node, "n4");
	assert_int_equal(arrivals[0].qp, 1);
	expect_mad(arrivals[0].mad, "0:01320181 4:1234 17:42 23:17 36:99001405 40:68656c6c6f");
	assert_memory_equal(arrivals[0].mad + 8, mad + 8, 8);
	assert_int_equal(server_stats().responded, 1);
	assert_int_equal(server_stats().held, 0);
}

/* QP0 has no Q_Key. */
TEST(a_request_by_smp_has_no_q_key)
{
	struct mad_server_options options = {
		.mgmt_class = IB_SMI_CLASS,
		.methods = {MAD_SERVER_METHOD(IB_MAD_METHOD_TRAP)},
	};

	start(options, hold, NULL);
	machine_send("n1", make(IB_SMI_CLASS, IB_MAD_METHOD_TRAP, 1), 0);
	process();
	assert_int_equal(held[0]->from.qkey, 0);
	assert_int_equal(held[0]->from.qp, 0);
	assert_int_equal(mad_request_respond(held[0], 0, NULL, 0), 0);
	machine_pass(1);
	assert_int_equal(last_arrival()->mad[3], IB_MAD_METHOD_TRAP_REPRESS);
	assert_int_equal(last_arrival()->qp, 0);
}

static uint8_t big[2 * ROOM];

static const struct response_row {
	const char *behaviour;
	unsigned status, status_after;
	const void *data;
	size_t size;
	int error;
	unsigned rmpp; /* flags of the response */
	int last;      /* its last byte */
} responses[] = {
	{"without_data_the_request_s_own_go_back", 4, 4, NULL, 0, 0, 0, 0x77},
	{"with_empty_data_the_response_has_zeros", 0, 0, "", 0, 0, 0, 0},
	{"a_status_has_sixteen_bits", 0xffff, 0xffff, NULL, 0, 0, 0, 0x77},
	{"a_longer_status_is_refused", 0x10000, 0, NULL, 0, -EINVAL, 0, 0},
	{"data_that_fit_into_a_mad_need_no_rmpp", 0, 0, big, ROOM, 0, 0, 0x33},
	{"longer_data_are_sent_by_rmpp", 0, 0, big, ROOM + 1, 0, IB_RMPP_FLAG_ACTIVE, 0x33},
	{"data_without_a_pointer_are_refused", 0, 0, NULL, 1, -EINVAL, 0, 0},
	{"more_than_two_gigabytes_are_refused", 0, 0, big,
	 INT32_MAX - 2 * (64 + IB_MAD_SIZE) + 1UL, -EMSGSIZE, 0, 0},
	{"more_than_all_memory_is_refused", 0, 0, big, SIZE_MAX, -EMSGSIZE, 0, 0},
};

static void try_response(const struct response_row *row)
{
	const uint8_t no_rmpp[12] = {0};
	unsigned before;

	memset(big, 0x33, sizeof(big));
	come_many(7, 1);
	process();
	before = machine_calls(MACHINE_MALLOC);
	assert_int_equal(mad_request_respond(held[0], row->status, row->data, row->size),
			 row->error);
	if (!row->rmpp)
		assert_int_equal(machine_calls(MACHINE_MALLOC), before);
	machine_pass(1);
	if (row->error) {
		assert_int_equal(arrival_count, 0);
		assert_int_equal(server_stats().held, 1);
		assert_int_equal(server_stats().failed, 0);
		mad_request_free(held[0]);
		return;
	}
	assert_int_equal(arrival_count, 1);
	assert_int_equal(arrivals[0].mad[4] << 8 | arrivals[0].mad[5], row->status_after);
	assert_int_equal(arrivals[0].mad[255], row->last);
	assert_int_equal(arrivals[0].mad[26] & 1, row->rmpp);
	if (!row->rmpp)
		assert_memory_equal(arrivals[0].mad + 24, no_rmpp, sizeof(no_rmpp));
}

TEST_ROWS(try_response, responses);

TEST(a_request_that_cannot_be_responded_to_stays_the_program_s)
{
	static uint8_t data[ROOM + 1];
	struct mad_server_options options = ping_options();

	come_many(1, 1);
	process();
	assert_int_equal(mad_request_respond(NULL, 0, data, 1), -EINVAL);
	machine_fail(MACHINE_WRITE, 1, ENOMEM);
	assert_int_equal(mad_request_respond(held[0], 0, data, 8), -ENOMEM);
	machine_fail(MACHINE_MALLOC, 1, ENOMEM);
	assert_int_equal(mad_request_respond(held[0], 0, data, sizeof(data)), -ENOMEM);
	assert_int_equal(mad_request_respond(held[0], 0, data, sizeof(data)), 0);
	assert_int_equal(server_stats().failed, 1);
	machine_send("n1", make(PING_CLASS, IB_MAD_METHOD_SEND, 2), 0);
	process();
	assert_int_equal(mad_request_respond(held[1], 0, data, 1), -EINVAL);
	mad_request_free(held[1]);
	mad_request_free(NULL);
	end_server();
	options.rmpp_version = 0;
	server = start(options, hold, NULL);
	come_many(2, 1);
	process();
	assert_int_equal(mad_request_respond(held[2], 0, data, sizeof(data)), -EMSGSIZE);
	assert_int_equal(mad_request_respond(held[2], 0, data, sizeof(data) - 1), 0);
}

TEST(a_table_of_one_segment_is_sent_again_if_it_is_lost)
{
	const uint8_t methods[] = {IB_MAD_METHOD_GET, IB_MAD_METHOD_GET_TABLE,
				   IB_MAD_METHOD_GET_TRACE_TABLE, IB_MAD_METHOD_GETMULTI};
	struct mad_server_options options = ping_options();

	options.mgmt_class = IB_SA_CLASS;
	options.oui = 0;
	for (unsigned i = 0; i < 4; i++)
		options.methods[0] |= MAD_SERVER_METHOD(methods[i]);
	server = start(options, hold, NULL);
	for (unsigned i = 0; i < 4; i++) {
		machine_send("n2", make(IB_SA_CLASS, methods[i], i + 1), 0);
		process();
		arrival_count = 0;
		assert_int_equal(respond(held[i]), 0);
		for (unsigned s = 0; s < 200; s++) { /* n2 does not acknowledge it */
			machine_pass(1000000);
			process();
		}
		assert_int_equal(arrivals[0].mad[26] & 1, i > 0);
		assert_int_equal(arrival_count > 1, i > 0);
		assert_int_equal(server_stats().failed, i);
	}
}

/* --- long messages, from a program on n1 ---------------------------------------- */

static struct {
	int fd, agent;
} client;

static int setup_client(void)
{
	uint8_t oui[3] = {0x00, 0x14, 0x05};

	if (begin_on("host,n1"))
		return -1;
	client.fd = umad_open_port("mlx5_1", 1);
	client.agent = umad_register_oui(client.fd, PING_CLASS, 1, oui, NULL);
	return client.agent < 0 ? -1 : 0;
}

static int teardown_client(void)
{
	umad_close_port(client.fd);
	return teardown();
}

/* Without a timeout, the kernel of the client lets it send the same request again. */
static void send_by_client(size_t length, bool grh, int timeout_ms)
{
	uint8_t *umad = umad_alloc(1, umad_size() + length), *mad = umad_get_mad(umad);

	memcpy(mad, ping(7), MACHINE_MAD);
	mad[24] = 1;
	mad[26] = length > IB_MAD_SIZE ? IB_RMPP_FLAG_ACTIVE : 0;
	mad[length - 1] = 0x77;
	umad_set_addr(umad, machine_lid("host"), 1, 4, (int)IB_DEFAULT_QP1_QKEY);
	if (grh)
		umad_set_grh(umad,
			     &(ib_mad_addr_t){.gid = {0xfe, 0x80, [15] = 0}, .hop_limit = 9});
	assert_int_equal(umad_send(client.fd, client.agent, umad, (int)length, timeout_ms,
				   timeout_ms ? 5 : 0),
			 0);
	umad_free(umad);
}

TEST_WITH(long_messages_come_whole_although_packets_are_lost, setup_client, teardown_client)
{
	static uint8_t data[100000];
	size_t room = umad_size() + BASE + sizeof(data);
	uint8_t *umad = calloc(1, room), *mad = umad_get_mad(umad);
	const ib_mad_addr_t *from = umad_get_mad_addr(umad);
	int length = (int)room;

	memset(data, 0x33, sizeof(data));
	machine_rule("loss 5%%");
	send_by_client(5000, true, 60000);
	while (!count)
		mad_async_wait(async, 100);
	assert_true(held[0]->length >= 5000);
	assert_int_equal(held[0]->data_size, held[0]->length - BASE);
	assert_int_equal(held[0]->mad[4999], 0x77);
	assert_int_equal(held[0]->from.sl, 4);
	assert_int_equal(held[0]->from.grh_present, 1);
	assert_int_equal(held[0]->from.gid[0], 0xfe);
	assert_int_equal(mad_request_respond(held[0], 0, data, sizeof(data)), 0);
	assert_true(umad_recv(client.fd, umad, &length, 60000) >= 0);
	assert_true(length >= (int)(BASE + sizeof(data)));
	assert_int_equal(umad_status(umad), 0);
	assert_memory_equal(mad + BASE, data, sizeof(data));
	assert_int_equal(from->grh_present, 1); /* the response has one, too */
	assert_int_equal(from->sl, 4);
	free(umad);
	process();
	assert_int_equal(server_stats().failed, 0);
}

TEST_WITH(a_request_by_another_route_is_another_one, setup_client, teardown_client)
{
	uint8_t info[IB_SMP_DATA_SIZE] = {0};
	ib_portid_t to = {.lid = machine_lid("n1")};

	for (unsigned i = 0; i < 4; i++)
		send_by_client(IB_MAD_SIZE, i % 2, 0);
	process();
	assert_int_equal(count, 2);
	assert_int_equal(server_stats().duplicates, 2);
	/* from another GID */
	assert_non_null(smp_query_via(info, &to, IB_ATTR_PORT_INFO, 0, 0, port));
	mad_set_field64(info, 0, IB_PORT_GID_PREFIX_F, UINT64_C(0xfec0) << 48);
	mad_set_field(info, 0, IB_PORT_PHYS_STATE_F, 0); /* no change */
	assert_non_null(smp_set_via(info, &to, IB_ATTR_PORT_INFO, 0, 0, port));
	send_by_client(IB_MAD_SIZE, true, 0);
	process();
	assert_int_equal(count, 3);
	free_held(0);
}

TEST_WITH(a_long_response_that_does_not_arrive_is_counted, setup_client, teardown_client)
{
	static uint8_t data[1000];

	send_by_client(IB_MAD_SIZE, false, 60000);
	process();
	umad_unregister(client.fd, client.agent);
	assert_int_equal(mad_request_respond(held[0], 0, data, sizeof(data)), 0);
	assert_int_equal(server_stats().failed, 0);
	for (unsigned s = 0; s < 600 && !server_stats().failed; s++) {
		machine_pass(1000000);
		process();
	}
	assert_int_equal(server_stats().failed, 1);
	assert_int_equal(server_stats().received, 1);
}

/* --- messages of odd lengths ----------------------------------------------------- */

/* The next request is read with this length and status. */
static void come_deformed(uint32_t tid, size_t length, unsigned status)
{
	machine_send("n1", ping(tid), 0);
	machine_pass(1);
	machine_deform(length, status);
	process();
}

TEST(short_messages_are_dropped_or_get_a_whole_response)
{
	const uint8_t zeros[IB_MAD_SIZE - 41] = {0};

	restart_with_limit(2);
	come_deformed(1, 20, 0);
	come_deformed(1, 30, 0);
	come_deformed(1, 35, 0); /* less than its headers */
	assert_int_equal(count, 0);
	assert_int_equal(server_stats().dropped, 3);
	for (uint32_t tid = 1; tid <= 3; tid++)
		come_deformed(tid, tid == 2 ? BASE : 36, 0);
	assert_int_equal(count, 2);
	assert_int_equal(held[0]->length, 36);
	for (unsigned i = 0; i < 2; i++) {
		assert_null(held[i]->data);
		assert_int_equal(held[i]->data_size, 0);
		assert_int_equal(mad_request_respond(held[i], 0, i ? "x" : NULL, i), 0);
	}
	machine_pass(1);
	assert_int_equal(arrival_count, 3);
	assert_int_equal(arrivals[0].mad[5], BUSY);
	for (unsigned i = 0; i < 3; i++)
		assert_memory_equal(arrivals[i].mad + 41, zeros, sizeof(zeros));
	come_deformed(4, BASE + 1, 0);
	assert_ptr_equal(held[2]->data, held[2]->mad + BASE);
	assert_int_equal(held[2]->data_size, 1);
	come_many(5, 1);
	machine_pass(1);
	machine_fail(MACHINE_MALLOC, 1, ENOMEM);
	process();
	assert_int_equal(server_stats().dropped, 4);
	free_held(2);
}

/* 2 segments of 216 bytes, each with 4 bytes of header. */
TEST(a_request_that_lost_segments_is_dropped)
{
	const uint8_t rmpp[] = {1, IB_RMPP_TYPE_DATA,
				IB_RMPP_FLAG_ACTIVE | IB_RMPP_FLAG_FIRST | IB_RMPP_FLAG_LAST};
	uint8_t *mad;

	for (uint32_t tid = 1; tid <= 2; tid++) {
		mad = ping(tid);
		memcpy(mad + 24, rmpp, sizeof(rmpp));
		mad[31] = 1;
		mad[32] = 0;
		mad[35] = 220;
		machine_send("n1", mad, 0);
		machine_pass(1);
		machine_deform(tid == 1 ? 256 : 200, 0);
		process();
	}
	assert_int_equal(count, 1);
	assert_int_equal(server_stats().dropped, 1);
	mad_request_free(held[0]);
}

TEST(what_the_kernel_returns_and_responses_are_no_requests)
{
	struct mad_server_options options = {
		.mgmt_class = IB_BOARD_MGMT_CLASS,
		.methods = {MAD_SERVER_METHOD(IB_MAD_METHOD_SEND)},
	};
	uint8_t *mad;

	come_deformed(1, IB_MAD_SIZE, ETIMEDOUT); /* the kernel could not send it */
	come_deformed(1, 23, ETIMEDOUT);
	assert_int_equal(server_stats().dropped, 2);
	assert_int_equal(server_stats().failed, 0); /* it is no response */
	/* IBA 16.2.2: bit 0 of the attribute modifier */
	start(options, hold, NULL);
	mad = make(IB_BOARD_MGMT_CLASS, IB_MAD_METHOD_SEND, 1);
	machine_send("n1", mad, 0);
	mad[23] = 0x42;
	machine_send("n1", mad, 0);
	process();
	assert_int_equal(count, 1);
	assert_int_equal(held[0]->modifier, 0x42);
	mad_request_free(held[0]);
}

/* --- options ---------------------------------------------------------------------- */

static struct mad_server_options options_of(int mgmt_class)
{
	return (struct mad_server_options){
		.mgmt_class = mgmt_class,
		.oui = mgmt_class >= 0x30 && mgmt_class <= 0x4f ? OTHER_OUI : 0,
		.methods = {MAD_SERVER_METHOD(IB_MAD_METHOD_SET)},
	};
}

/* The result of a start; the server is stopped again. */
static int try(struct mad_server_options options)
{
	struct mad_server *started = NULL;
	int ret = mad_server_start(async, &options, hold, NULL, &started);

	assert_int_equal(!started, ret != 0);
	mad_server_stop(started);
	return ret;
}

static const struct class_row {
	const char *behaviour;
	int mgmt_class;
	size_t offset;     /* of the data, by default */
	unsigned least[2]; /* without and with RMPP; 0: not with RMPP */
} classes[] = {
	{"class_sa", IB_SA_CLASS, 56, {24, 36}},
	{"class_0x30", 0x30, 40, {40, 40}},
	{"class_0x4f", 0x4f, 40, {40, 40}},
	{"class_0x09", 0x09, 24, {24, 0}},
	{"class_0x0f", 0x0f, 24, {24, 0}},
	{"class_device_management", IB_DEVICE_MGMT_CLASS, 64, {24, 36}},
	{"class_0x10", 0x10, 64, {24, 36}},
	{"class_0x11", 0x11, 64, {24, 0}},
	{"class_0x12", 0x12, 64, {24, 36}},
	{"class_0x13", 0x13, 64, {24, 0}},
	{"class_0x08", 0x08, 64, {24, 0}},
	{"class_smi", IB_SMI_CLASS, 64, {24, 0}},
	{"class_performance", IB_PERFORMANCE_CLASS, 64, {24, 0}},
};

static void try_class(const struct class_row *row)
{
	struct mad_server_options options = options_of(row->mgmt_class);
	uint8_t *mad;

	for (unsigned rmpp = 0; rmpp <= 1; rmpp++) {
		bool may = row->least[rmpp] > 0;

		options.rmpp_version = rmpp;
		options.data_offset = 0;
		assert_int_equal(try(options), may ? 0 : -EINVAL);
		if (!may)
			continue;
		options.data_offset = row->least[rmpp] - 1;
		assert_int_equal(try(options), -EINVAL);
		options.data_offset = row->least[rmpp];
		assert_int_equal(try(options), 0);
		options.data_offset = 192;
		assert_int_equal(try(options), 0);
		options.data_offset = 193;
		assert_int_equal(try(options), -EINVAL);
	}
	options.data_offset = 0;
	options.rmpp_version = 2;
	assert_int_equal(try(options), -EINVAL);
	if (row->mgmt_class == IB_SMI_CLASS || row->mgmt_class == IB_PERFORMANCE_CLASS)
		return; /* the node responds itself */
	for (unsigned own = 0; own <= 1; own++) {
		options.rmpp_version = 0;
		options.data_offset = own ? 100 : 0;
		server = start(options, hold, NULL);
		mad = make((unsigned)row->mgmt_class, IB_MAD_METHOD_SET, 1);
		if (options.oui)
			memcpy(mad + 37, (const uint8_t[]){0x12, 0x34, 0x56}, 3);
		machine_send("n1", mad, 0);
		process();
		assert_int_equal(count, own + 1);
		assert_int_equal(held[own]->data - held[own]->mad, own ? 100 : row->offset);
		assert_int_equal(held[own]->data_size + (own ? 100 : row->offset), IB_MAD_SIZE);
		assert_int_equal(mad_request_respond(held[own], 0, "0123456789", 10), 0);
		machine_pass(1);
		assert_memory_equal(last_arrival()->mad + (own ? 100 : row->offset),
				    "0123456789", 11);
		end_server();
	}
}

TEST_ROWS(try_class, classes);

TEST(a_server_gets_the_methods_for_which_it_is_registered)
{
	const unsigned methods[] = {0, 63, 64, 100, 127};
	struct mad_server_options options = options_of(VENDOR_CLASS);

	for (unsigned i = 0; i < 5; i++) {
		memset(options.methods, 0, sizeof(options.methods));
		options.methods[methods[i] / 64] = UINT64_C(1) << methods[i] % 64;
		server = start(options, hold, NULL);
		count = 0;
		for (unsigned j = 0; j < 5; j++)
			machine_send("n1", make(VENDOR_CLASS, methods[j], j + 1), 0);
		process();
		assert_int_equal(count, 1);
		assert_int_equal(held[0]->method, methods[i]);
		mad_request_free(held[0]);
		end_server();
	}
}

TEST(options_out_of_range_fail_with_einval)
{
	const struct mad_server_options good = options_of(VENDOR_CLASS);
	struct mad_server_options options;
	struct mad_server *none;

#define REFUSED(change)                                  \
	do {                                             \
		options = good;                          \
		change;                                  \
		assert_int_equal(try(options), -EINVAL); \
	} while (0)
	REFUSED(options.limit = 65537);
	REFUSED(options.methods[0] = 0);
	for (unsigned i = 0; i < 4; i++)
		REFUSED(options.reserved[i] = 1);
	REFUSED(options.oui = OTHER_OUI); /* of vendor range 2 alone */
	REFUSED(options = options_of(0x33); options.oui = 0x1000000);
	REFUSED(options = options_of(0x33); options.oui = 0);
	REFUSED(options = options_of(0));
	REFUSED(options = options_of(0x50));
	REFUSED(options = options_of(256));
	REFUSED(options = options_of(-1));
	options = good;
	options.limit = 65536;
	assert_int_equal(try(options), 0);
	options.limit = 1;
	assert_int_equal(try(options), 0);
	options = options_of(0x33);
	options.oui = 0xffffff;
	assert_int_equal(try(options), 0);
	assert_int_equal(mad_server_start(NULL, &good, hold, NULL, &none), -EINVAL);
	assert_int_equal(mad_server_start(async, NULL, hold, NULL, &none), -EINVAL);
	assert_int_equal(mad_server_start(async, &good, NULL, NULL, &none), -EINVAL);
	assert_int_equal(mad_server_start(async, &good, hold, NULL, NULL), -EINVAL);
}

TEST(a_server_that_is_not_started_says_why)
{
	const struct {
		int of_kernel, of_call;
	} errors[] = {{EINVAL, -EADDRINUSE},
		      {EPIPE, -ENODEV},
		      {ENOMEM, -ENOMEM},
		      {EPROTONOSUPPORT, -EPROTONOSUPPORT}};
	struct mad_server_options options = ping_options();
	char text[MAD_ERROR_TEXT_SIZE];

	for (unsigned i = 0; i < 4; i++) {
		machine_fail(MACHINE_IOCTL, 1, errors[i].of_kernel);
		assert_int_equal(try(options_of(VENDOR_CLASS)), errors[i].of_call);
		machine_fail(MACHINE_IOCTL, 1, errors[i].of_kernel);
		assert_int_equal(try(options_of(0x33)), errors[i].of_call);
	}
	machine_fail(MACHINE_MALLOC, 1, ENOMEM);
	assert_int_equal(try(options_of(VENDOR_CLASS)), -ENOMEM);
	assert_int_equal(try(options_of(VENDOR_CLASS)), 0);
	assert_int_equal(try(options), -EADDRINUSE);
	assert_string_equal(
		mad_failure_text(NULL, text, sizeof(text)),
		"vendor class 0x32: the class cannot be registered: another agent on "
		"the port has it");
	options.reserved[3] = 1;
	assert_int_equal(try(options), -EINVAL);
	assert_string_equal(mad_failure_text(NULL, text, sizeof(text)), "an argument is wrong");
	machine_rule("remove on host");
	while (mad_async_process(async) >= 0)
		;
	assert_int_equal(try(options_of(VENDOR_CLASS)), -ENODEV);
}

/* A program that was compiled with another version knows fewer or more members. */
TEST(statistics_have_the_size_that_the_caller_knows)
{
	struct {
		struct mad_server_stats stats;
		uint8_t more[8], behind;
	} buffer;

	come_many(1, 1);
	process();
	memset(&buffer, 0x99, sizeof(buffer));
	assert_int_equal(mad_server_get_stats(server, &buffer.stats,
					      offsetof(struct mad_server_stats, responded)),
			 0);
	assert_int_equal(buffer.stats.received, 1);
	assert_true(buffer.stats.responded == UINT64_C(0x9999999999999999));
	assert_int_equal(mad_server_get_stats(server, &buffer.stats, sizeof(buffer.stats) + 8),
			 0);
	assert_int_equal(buffer.stats.held, 1);
	assert_int_equal(buffer.more[0] | buffer.more[7], 0);
	assert_int_equal(buffer.behind, 0x99);
	assert_int_equal(mad_server_get_stats(NULL, &buffer.stats, 8), -EINVAL);
	assert_int_equal(mad_server_get_stats(server, NULL, 8), -EINVAL);
	mad_request_free(held[0]);
}

/* --- several servers ---------------------------------------------------------------- */

static struct mad_server *start_second(mad_server_fn *callback)
{
	struct mad_server_options options = ping_options();

	options.oui = OTHER_OUI;
	return start(options, callback, NULL);
}

TEST(servers_and_a_client_of_one_class_get_their_own_messages)
{
	struct mad_server *second = start_second(hold), *third;
	struct mad_server_options options = options_of(VENDOR_CLASS);
	ib_rpc_t rpc = {.mgtclass = VENDOR_CLASS, .method = IB_MAD_METHOD_SET, .datasz = 64};
	ib_portid_t to = {.lid = machine_lid("host"), .qp = 1, .qkey = IB_DEFAULT_QP1_QKEY};
	int own = mad_rpc_class_agent(port, VENDOR_CLASS);

	third = start(options, hold, NULL);
	assert_int_equal(mad_rpc_class_agent(port, VENDOR_CLASS), own);
	come_many(1, 1);
	machine_send("n1", ping_other(1), 0);
	machine_send("n1", make(VENDOR_CLASS, IB_MAD_METHOD_SET, 1), 0);
	process();
	assert_int_equal(count, 3);
	assert_ptr_equal(held[0]->server, server);
	assert_ptr_equal(held[1]->server, second);
	assert_ptr_equal(held[2]->server, third);
	assert_ptr_equal(held[2]->data, held[2]->mad + IB_VENDOR_RANGE1_DATA_OFFS);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(respond(held[i]), 0);
	assert_fails_null(mad_receive_via(NULL, 0, port), EAGAIN);
	/* the client asks its own server */
	rpc.dataoffs = IB_VENDOR_RANGE1_DATA_OFFS;
	assert_int_equal(mad_send_via(&rpc, &to, NULL, NULL, port), 0);
	process();
	assert_int_equal(count, 4);
	assert_int_equal(respond(held[3]), 0);
	mad_free(mad_receive_via(NULL, 1000, port));
}

TEST(queued_and_held_requests_are_counted_apart)
{
	struct mad_async *other = mad_async_create(port);

	come_many(1, 2);
	process();
	come_many(3, 3);
	read_by(other);
	assert_int_equal(server_stats().received, 5);
	assert_int_equal(server_stats().held, 2);
	assert_int_equal(server_stats().queued, 3);
	process();
	assert_int_equal(server_stats().held, 5);
	assert_int_equal(server_stats().queued, 0);
	free_held(0);
	assert_int_equal(server_stats().held, 0);
	assert_int_equal(server_stats().responded, 0);
	assert_int_equal(server_stats().dropped, 0);
	mad_async_free(other);
}

/* The loop would read and poll without end. */
TEST(a_wait_for_the_requests_of_others_sleeps)
{
	unsigned before = machine_calls(MACHINE_READ) + machine_calls(MACHINE_POLL);

	assert_int_equal(mad_async_wait(async, 50), -ETIMEDOUT);
	assert_in_range(machine_calls(MACHINE_READ) + machine_calls(MACHINE_POLL) - before, 1,
			10);
}

/* --- limits --------------------------------------------------------------------------- */

TEST(a_thousand_requests_are_held_and_get_responses_in_any_order)
{
	come_many(1, 1000);
	process();
	assert_int_equal(count, 1000);
	assert_int_equal(server_stats().held, 1000);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(respond(held[i * 7 % 1000]), 0);
	machine_pass(1);
	assert_int_equal(arrival_count, 1000);
	assert_int_equal(arrivals[1].mad[15], 8);
}

TEST(requests_beyond_the_limit_get_busy)
{
	restart_with_limit(10);
	come_many(1, 30);
	process();
	assert_int_equal(count, 10);
	assert_int_equal(arrival_count, 20);
	for (unsigned i = 0; i < 20; i++) {
		expect_mad(arrivals[i].mad, "0:01320181 5:01 17:42 23:17 36:99001405 255:77");
		assert_int_equal(arrivals[i].mad[15], 11 + i);
	}
	mad_request_free(held[0]);
	come_many(50, 1);
	process();
	assert_int_equal(count, 11);
	machine_fail(MACHINE_WRITE, 1, ENOMEM);
	come_many(60, 1);
	/* BUSY would confirm a report; a Send has no response */
	machine_send("n1", make(PING_CLASS, IB_MAD_METHOD_SEND, 61), 0);
	machine_send("n1", make(PING_CLASS, IB_MAD_METHOD_REPORT, 62), 0);
	process();
	assert_int_equal(server_stats().failed, 1);
	assert_int_equal(server_stats().busy, 20);
	assert_int_equal(server_stats().dropped, 2);
	assert_int_equal(arrival_count, 20);
	free_held(1);
}

TEST(busy_leaves_the_data_of_a_class_without_rmpp)
{
	struct mad_server_options options = options_of(VENDOR_CLASS);
	uint8_t *mad = make(VENDOR_CLASS, IB_MAD_METHOD_SET, 1);

	options.limit = 1;
	start(options, hold, NULL);
	mad[24] = mad[35] = mad[39] = 0x99;
	machine_send("n1", mad, 0);
	mad[15]++;
	machine_send("n1", mad, 0);
	process();
	assert_int_equal(count, 1);
	expect_mad(last_arrival()->mad, "0:010a0181 5:01 17:42 23:17 24:99 35:99 39:99 255:77");
	mad_request_free(held[0]);
}

/* No thread processes the engine: another engine's thread reads. */
TEST(a_storm_takes_a_bounded_amount_of_memory)
{
	struct mad_async *other = mad_async_create(port);
	unsigned before;

	come_many(1, 1024);
	read_by(other);
	assert_int_equal(server_stats().queued, 1024);
	come_many(5000, 200);
	read_by(other);
	assert_int_equal(server_stats().dropped, 200 - 64);
	come_many(9000, 100);
	machine_pass(1);
	before = machine_calls(MACHINE_MALLOC);
	read_by(other);
	assert_int_equal(machine_calls(MACHINE_MALLOC), before);
	/* a call hands out and refuses a part of them, in their order */
	assert_int_equal(mad_async_process(async), 64);
	assert_int_equal(count, 64);
	machine_pass(1);
	assert_int_equal(arrival_count, 64);
	process();
	assert_int_equal(count, 1024);
	for (unsigned i = 0; i < 1024; i++)
		assert_int_equal(held[i]->tid, i + 1);
	assert_int_equal(server_stats().busy, 64);
	/* after the responses BUSY are sent, 64 more requests may wait */
	come_many(12000, 66);
	read_by(other);
	assert_int_equal(server_stats().dropped, 200 - 64 + 100 + 2);
	process();
	assert_int_equal(server_stats().busy, 128);
	free_held(0);
	mad_async_free(other);
}

TEST(a_round_refuses_a_part_of_the_requests_of_two_servers)
{
	struct mad_async *other = mad_async_create(port);
	struct mad_server_options options = ping_options();

	restart_with_limit(1);
	options.limit = 1;
	options.oui = OTHER_OUI;
	start(options, hold, NULL);
	for (uint32_t tid = 1; tid <= 51; tid++) {
		machine_send("n1", ping(tid), 0);
		machine_send("n1", ping_other(tid), 0);
	}
	read_by(other);
	assert_int_equal(mad_async_process(async), 2);
	machine_pass(1);
	assert_int_equal(arrival_count, 64);
	assert_int_equal(mad_async_process(async), 0);
	machine_pass(1);
	assert_int_equal(arrival_count, 100);
	assert_int_equal(server_stats().busy, 50);
	free_held(0);
	mad_async_free(other);
}

/* The limit of 64 MiB is for all requests that a server keeps together. */
TEST(a_server_keeps_64_mib_of_requests)
{
	come_deformed(1, (64u << 20) - IB_MAD_SIZE, 0);
	come_many(2, 1);
	process();
	assert_int_equal(count, 2);
	come_many(3, 1);
	process();
	come_deformed(4, 5000, 0);
	assert_int_equal(count, 2);
	assert_int_equal(arrival_count, 2);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(arrivals[i].mad[5], BUSY);
	mad_request_free(held[1]);
	come_deformed(5, IB_MAD_SIZE + 1, 0);
	assert_int_equal(count, 2);
	mad_request_free(held[0]);
	come_deformed(6, IB_MAD_SIZE + 1, 0);
	assert_int_equal(count, 3);
	mad_request_free(held[2]);
}

/* The sender, the method, the TID, the attribute and its modifier make a request. */
TEST(a_request_that_comes_again_is_handed_out_once)
{
	const unsigned different[] = {8, 11, 12, 16, 17, 20, 23}, same[] = {4, 24, 41, 64};
	uint8_t *mad;

	come_many(7, 2);
	come_many(7, 1);
	process();
	come_many(7, 1);
	process();
	assert_int_equal(count, 2);
	assert_int_equal(server_stats().duplicates, 2);
	machine_send("n2", ping(7), 0);
	machine_send("n1", make(PING_CLASS, IB_MAD_METHOD_SET, 7), 0);
	for (unsigned i = 0; i < 7; i++) {
		mad = ping(7);
		mad[different[i]] ^= 0x55;
		machine_send("n1", mad, 0);
	}
	process();
	assert_int_equal(count, 2 + 2 + 7);
	for (unsigned i = 0; i < 4; i++) {
		mad = ping(7);
		mad[same[i]] ^= 0x54;
		machine_send("n1", mad, 0);
	}
	process();
	assert_int_equal(count, 2 + 2 + 7);
	assert_int_equal(server_stats().duplicates, 6);
	assert_int_equal(respond(held[0]), 0);
	come_many(7, 1); /* the response was lost */
	process();
	assert_int_equal(count, 2 + 2 + 7 + 1);
	free_held(1);
}

/* --- event loops and threads ---------------------------------------------------------- */

static int readable(void)
{
	struct pollfd wake = {.fd = mad_async_poll_fd(async), .events = POLLIN};

	return poll(&wake, 1, 0);
}

/* The thread that reads is another engine's: it sends no BUSY for this engine's server. */
TEST(a_loop_is_woken_for_requests_busy_and_the_end)
{
	struct mad_async *other = mad_async_create(port);

	restart_with_limit(1);
	assert_true(mad_async_poll_fd(async) >= 0);
	process();
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(readable(), 0);
		if (i < 2) {
			come_many(1 + i, 1);
			read_by(other);
		} else {
			mad_server_stop(server);
		}
		assert_int_equal(readable(), 1);
		assert_int_equal(mad_async_process(async), i != 1);
		process();
	}
	assert_int_equal(arrival_count, 1);
	assert_int_equal(last_arrival()->mad[5], BUSY);
	assert_int_equal(ends, 2);
	mad_request_free(held[0]);
	mad_async_free(other);
}

static void *run_engine(void *arg)
{
	return (void *)(intptr_t)mad_async_wait(arg, -1);
}

static pthread_t start_thread(void *(*function)(void *), void *arg)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, function, arg), 0);
	return thread;
}

static int join(pthread_t thread)
{
	void *result;

	assert_int_equal(pthread_join(thread, &result), 0);
	return (int)(intptr_t)result;
}

static void *receive_one(void *arg)
{
	mad_free(mad_receive_via(NULL, 1000, port));
	return arg;
}

/* A thread in mad_receive_via() may lead. */
TEST(a_thread_that_runs_the_engine_sends_busy_while_another_reads)
{
	pthread_t receiver = start_thread(receive_one, NULL), runner;

	restart_with_limit(1);
	machine_pass(1000);
	runner = start_thread(run_engine, async);
	machine_pass(1000);
	come_many(1, 2);
	machine_pass(1000);
	assert_int_equal(count, 1);
	assert_int_equal(last_arrival()->mad[5], BUSY);
	mad_server_stop(server);
	assert_int_equal(join(runner), 2);
	join(receiver);
	mad_request_free(held[0]);
}

/* The gate at which a callback waits. */
static struct {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool entered, open;
} gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false};

static void set_gate(bool *member)
{
	pthread_mutex_lock(&gate.mutex);
	*member = true;
	pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.mutex);
}

static void wait_gate(bool *member)
{
	pthread_mutex_lock(&gate.mutex);
	while (!*member)
		pthread_cond_wait(&gate.changed, &gate.mutex);
	*member = false;
	pthread_mutex_unlock(&gate.mutex);
}

static void hold_at_gate(struct mad_server *from, struct mad_request *request, int error,
			 void *arg)
{
	hold(from, request, error, arg);
	if (request) {
		set_gate(&gate.entered);
		wait_gate(&gate.open);
	}
}

/* A thread runs the engine, and its callback for a request waits at the gate. */
static pthread_t run_to_gate(void)
{
	pthread_t runner;

	end_server();
	count = 0;
	server = start(ping_options(), hold_at_gate, NULL);
	runner = start_thread(run_engine, async);
	come_many(1, 1);
	wait_gate(&gate.entered);
	return runner;
}

static void *ask(void *arg)
{
	uint8_t info[IB_SMP_DATA_SIZE];
	ib_portid_t to = {.lid = machine_lid("n1")};

	return smp_query_via(info, &to, IB_ATTR_NODE_INFO, 0, 0, port) ? NULL : arg;
}

TEST(a_stop_and_others_calls_do_not_wait_for_a_callback)
{
	pthread_t runner = run_to_gate();

	assert_int_equal(join(start_thread(ask, port)), 0);
	mad_server_stop(server);
	machine_pass(1000);
	assert_int_equal(ends, 1);
	set_gate(&gate.open);
	assert_int_equal(join(runner), 2);
	assert_int_equal(ends, 2);
	mad_request_free(held[0]);
}

static void *stop_it(void *arg)
{
	mad_server_stop(arg);
	return NULL;
}

static void *destroy(void *arg)
{
	mad_async_free(arg);
	return NULL;
}

/* The threads that stop, destroy and run the engine end in any order. */
TEST(an_engine_may_be_destroyed_while_a_server_is_stopped)
{
	for (unsigned i = 0; i < 20; i++) {
		pthread_t runner = run_to_gate();
		pthread_t stopper = start_thread(stop_it, server);
		pthread_t destroyer = start_thread(destroy, async);

		machine_pass(i % 3);
		set_gate(&gate.open);
		join(runner);
		join(stopper);
		join(destroyer);
		mad_request_free(held[0]);
		async = mad_async_create(port);
		server = start(ping_options(), hold, NULL);
	}
}

TEST(a_run_lasts_until_the_last_server_has_ended)
{
	struct mad_server *second = start_second(hold);
	pthread_t runner = start_thread(run_engine, async);

	machine_pass(1000);
	machine_send("n1", ping_other(1), 0);
	machine_pass(1000);
	mad_server_stop(second);
	machine_pass(1000);
	assert_int_equal(ends, 1);
	come_many(2, 1);
	machine_pass(1000);
	assert_int_equal(count, 2);
	mad_async_free(async);
	async = NULL;
	assert_int_equal(join(runner), 3);
	assert_int_equal(ends, 2);
	assert_int_equal(end_error, -ECANCELED);
	assert_int_equal(respond(held[1]), -ECANCELED);
	free_held(0);
}

#define RESPONDERS 4

static void *respond_some(void *arg)
{
	for (unsigned i = (unsigned)(uintptr_t)arg; i < 1000; i += RESPONDERS) {
		while (count <= i)
			machine_pass(100);
		if (respond(held[i]))
			return (void *)1;
	}
	return NULL;
}

TEST(any_thread_may_respond)
{
	pthread_t responders[RESPONDERS], runner = start_thread(run_engine, async);

	for (uintptr_t i = 0; i < RESPONDERS; i++)
		responders[i] = start_thread(respond_some, (void *)i);
	for (uint32_t i = 0; i < 1000; i++)
		machine_send("n1", ping(i + 1), i * INT64_C(10));
	for (unsigned i = 0; i < RESPONDERS; i++)
		assert_int_equal(join(responders[i]), 0);
	machine_pass(1);
	assert_int_equal(arrival_count, 1000);
	mad_server_stop(server);
	assert_int_equal(join(runner), 1001);
}

/* --- the end ---------------------------------------------------------------------------- */

TEST(a_stop_drops_what_is_queued_and_keeps_what_is_held)
{
	struct mad_async *other = mad_async_create(port);
	struct mad_server *old = server;

	come_many(1, 3);
	process();
	mad_request_free(held[2]);
	come_many(4, 1);
	read_by(other);
	assert_int_equal(server_stats().queued, 1);
	mad_server_stop(old);
	mad_server_stop(NULL);
	/* the kernel may give the new server the agent of the old one */
	server = start(ping_options(), hold, NULL);
	assert_int_equal(ends, 0); /* no callback within the call */
	process();
	assert_int_equal(ends, 1);
	assert_int_equal(end_error, 0);
	assert_int_equal(count, 3);
	come_many(5, 1);
	process();
	assert_ptr_equal(held[3]->server, server);
	assert_int_equal(respond(held[0]), -ECANCELED);
	mad_request_free(held[0]);
	assert_int_equal(respond(held[3]), 0);
	machine_pass(1);
	assert_int_equal(arrival_count, 1);
	mad_async_free(other);
	mad_async_free(async);
	async = NULL;
	mad_request_free(held[1]);
}

TEST(a_stop_leaves_the_requests_of_other_servers)
{
	struct mad_async *other = mad_async_create(port);
	struct mad_server *second = start_second(hold);

	restart_with_limit(3);
	come_many(1, 5); /* three are queued, and two get BUSY */
	read_by(other);
	for (uint32_t i = 1; i <= 1024 + 2; i++)
		machine_send("n1", ping_other(100 + i), 0);
	read_by(other);
	come_many(6, 1);
	read_by(other);
	mad_server_stop(server);
	process();
	assert_int_equal(count, 1024);
	assert_int_equal(arrival_count, 2);
	assert_int_equal(arrivals[0].mad[39] & arrivals[1].mad[39], 0x56); /* the second's */
	server = second;
	assert_int_equal(server_stats().held, 1024);
	free_held(0);
	mad_async_free(other);
}

TEST(the_first_agent_of_a_port_may_be_a_server_s)
{
	mad_async_free(async);
	mad_rpc_close_port(port);
	port = mad_rpc_open_port(NULL, 0, NULL, 0);
	async = mad_async_create(port);
	for (unsigned i = 0; i < 2; i++) {
		server = start(ping_options(), hold, NULL);
		come_many(1, 1);
		process();
		assert_int_equal(respond(held[i]), 0);
		end_server();
	}
}

static void stop_and_respond(struct mad_server *from, struct mad_request *request, int error,
			     void *arg)
{
	assert_int_equal(error, 0);
	*(int *)arg += request ? 1 : 10;
	if (!request)
		return;
	mad_server_stop(from);
	mad_server_stop(from);
	assert_int_equal(respond(request), -ECANCELED);
	mad_request_free(request);
}

/* The last callback of a server, which starts the next one. */
static void start_again(struct mad_server *from, struct mad_request *request, int error,
			void *arg)
{
	assert_null(request);
	assert_int_equal(error, 0);
	mad_server_stop(from); /* is a no-op */
	assert_int_equal(mad_async_wait(async, 0), -EDEADLK);
	*(struct mad_server **)arg = start(ping_options(), hold, NULL);
}

static void stop_run(struct mad_server *from, struct mad_request *request, int error, void *arg)
{
	(void)from;
	(void)error;
	if (!request)
		return;
	mad_request_free(request);
	++*(int *)arg;
	mad_async_stop(async);
}

TEST(callbacks_may_stop_and_start_servers)
{
	struct mad_server *next = NULL;
	int calls = 0;

	end_server();
	start(ping_options(), stop_and_respond, &calls);
	come_many(1, 3);
	process();
	assert_int_equal(calls, 11);
	server = start(ping_options(), start_again, &next);
	mad_server_stop(server);
	assert_null(next);
	assert_int_equal(mad_async_wait(async, 0), -ETIMEDOUT);
	assert_non_null(next);
	server = next;
	come_many(1, 1);
	process();
	assert_int_equal(respond(held[0]), 0);
	end_server();
	calls = 0;
	server = start(ping_options(), stop_run, &calls);
	come_many(1, 3);
	for (int i = 1; i <= 3; i++) { /* after mad_async_stop() no callback begins */
		assert_int_equal(mad_async_wait(async, -1), -EINTR);
		assert_int_equal(calls, i);
	}
	mad_server_stop(server);
	assert_int_equal(mad_async_wait(async, -1), 1);
}

static void start_at_the_end(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	struct mad_server_options options = options_of(0x33);
	struct mad_server *none = server;

	assert_int_equal(reply->error, -ECANCELED);
	*(int *)arg = mad_server_start(engine, &options, hold, NULL, &none);
	assert_null(none);
}

TEST(requests_outlive_the_engine_and_the_port)
{
	struct mad_server_options options = ping_options();
	struct mad_async *other = mad_async_create(port), *first = async;
	ib_portid_t to = {.lid = machine_lid("n2")};
	int ret = 0;

	come_many(1, 3);
	process();
	async = other;
	options.oui = OTHER_OUI;
	server = start(options, hold, NULL);
	async = first;
	assert_int_equal(
		mad_async_get(first, &to, MAD_NODE_INFO, 0, start_at_the_end, &ret, NULL), 0);
	mad_async_free(first); /* ends its own servers */
	assert_int_equal(ret, -ECANCELED);
	assert_int_equal(ends, 1);
	assert_int_equal(end_error, -ECANCELED);
	assert_int_equal(respond(held[0]), -ECANCELED);
	async = other;
	machine_send("n1", ping_other(1), 0);
	process();
	assert_int_equal(respond(held[3]), 0);
	machine_send("n1", ping_other(2), 0);
	process();
	/* the port is closed before the engine is freed */
	mad_rpc_close_port(port);
	port = NULL;
	assert_int_equal(respond(held[4]), -ECANCELED);
	assert_int_equal(mad_async_process(async), 1);
	assert_int_equal(ends, 2);
	assert_int_equal(mad_async_process(async), -ECANCELED);
	assert_int_equal(try(options), -ECANCELED);
	assert_int_equal(mad_async_wait(async, -1), 0);
	mad_async_free(async);
	async = NULL;
	assert_int_equal(held[1]->tid, 2);
	free_held(4);
	for (unsigned i = 0; i < 3; i++)
		mad_request_free(held[i]);
}

static void keep_failure(struct mad_server *from, struct mad_request *request, int error,
			 void *arg)
{
	hold(from, request, error, NULL);
	assert_int_equal(mad_last_failure()->error, error);
	mad_failure_text(NULL, arg, MAD_ERROR_TEXT_SIZE);
}

TEST(a_device_that_is_gone_ends_servers)
{
	struct mad_async *other = mad_async_create(port);
	struct mad_server_options options = options_of(0x33);
	char text[MAD_ERROR_TEXT_SIZE] = "";

	restart_with_limit(4);
	start(options, keep_failure, text);
	mad_server_stop(start_second(hold));
	come_many(1, 3);
	process();
	machine_fail(MACHINE_WRITE, 1, EIO);
	assert_int_equal(respond(held[0]), -EIO);
	assert_int_equal(respond(held[1]), 0);
	come_many(4, 4); /* two are queued, and two get BUSY */
	read_by(other);
	assert_int_equal(server_stats().queued, 2);
	machine_rule("remove on host");
	assert_int_equal(respond(held[2]), -ENODEV);
	while (mad_async_process(other) >= 0)
		;
	assert_int_equal(server_stats().queued, 0);
	assert_int_equal(server_stats().dropped, 2);
	assert_int_equal(server_stats().received, 5);
	assert_int_equal(mad_async_process(async), 2); /* the last callbacks */
	assert_int_equal(end_error, -ENODEV);
	assert_string_equal(text, "the device is gone");
	assert_int_equal(mad_async_process(async), -ENODEV);
	assert_int_equal(mad_async_wait(async, -1), 0);
	assert_int_equal(count, 3);
	mad_request_free(held[0]);
	mad_request_free(held[2]);
	mad_async_free(other);
}

static void *drop_it(void *arg)
{
	mad_request_free(arg);
	return NULL;
}

TEST(requests_are_dropped_and_servers_stopped_while_responses_are_sent)
{
	pthread_t thread;

	for (unsigned i = 0; i < 50; i++) {
		count = 0;
		come_many(1, 2);
		process();
		thread = i % 2 ? start_thread(drop_it, held[1]) : start_thread(stop_it, server);
		if (respond(held[0]))
			mad_request_free(held[0]);
		join(thread);
		if (i % 2)
			continue;
		mad_request_free(held[1]);
		process();
		server = start(ping_options(), hold, NULL);
	}
}

/* --- children of fork(2) ------------------------------------------------------------------ */

static int end_all(void)
{
	mad_async_free(async);
	mad_rpc_close_port(port);
	return 0;
}

static int respond_in_child(void)
{
	struct mad_server_options options = ping_options();
	struct mad_server *none = server;
	struct mad_server_stats stats = server_stats();
	unsigned calls = machine_calls(MACHINE_IOCTL);

	EXPECT(stats.held == 1 && stats.queued == 0 && stats.received == 3);
	EXPECT(respond(held[0]) == -ECANCELED);
	mad_request_free(held[0]);
	options.oui = OTHER_OUI;
	EXPECT(mad_server_start(async, &options, hold, NULL, &none) == -ECANCELED && !none);
	mad_server_stop(server);
	EXPECT(mad_async_wait(async, -1) == 1); /* the last callback */
	EXPECT(ends == 1 && end_error == -ECANCELED);
	EXPECT(mad_async_wait(async, -1) == 0);
	end_all();
	EXPECT(machine_calls(MACHINE_IOCTL) == calls); /* the agents are the parent's */
	return 0;
}

static int close_without_stop(void)
{
	EXPECT(mad_async_process(async) == 1);
	EXPECT(ends == 1 && end_error == -ECANCELED);
	mad_rpc_close_port(port);
	EXPECT(respond(held[0]) == -ECANCELED);
	mad_request_free(held[0]);
	mad_async_free(async);
	return 0;
}

TEST(a_child_has_no_servers_and_the_parent_keeps_its_own)
{
	struct mad_async *other = mad_async_create(port);

	come_many(1, 1);
	process();
	come_many(2, 2);
	read_by(other);
	mad_async_free(other);
	run_in_child(respond_in_child);
	run_in_child(close_without_stop);
	process();
	assert_int_equal(count, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(respond(held[i]), 0);
}

static int stop_in_child(void)
{
	EXPECT(respond(held[0]) == -ECANCELED);
	mad_server_stop(server);
	mad_request_free(held[0]);
	return end_all();
}

static void *use_port(void *arg)
{
	struct mad_server_stats stats;

	while (!*(atomic_bool *)arg)
		mad_server_get_stats(server, &stats, sizeof(stats));
	return NULL;
}

/* The thread that calls back, or is changing the server, is not in the child. */
TEST(a_child_does_not_wait_for_a_thread_of_the_parent)
{
	atomic_bool end = false;
	pthread_t runner = run_to_gate(), user = start_thread(use_port, &end);

	for (unsigned i = 0; i < 50; i++)
		run_in_child(stop_in_child);
	end = true;
	join(user);
	set_gate(&gate.open);
	mad_server_stop(server);
	join(runner);
	server = NULL;
	run_in_child(stop_in_child);
	mad_request_free(held[0]);
}

/* --- mad_receive_via(), mad_respond_via(), mad_send_via() --------------------------------- */

/* The port registers a server of VENDOR_CLASS, instead of an engine. */
static int setup_receiver(void)
{
	int classes_of_port[] = {IB_SMI_CLASS, IB_PERFORMANCE_CLASS};
	long mask[16 / sizeof(long)] = {0};

	machine_setup();
	arrivals_begin();
	port = mad_rpc_open_port(NULL, 0, classes_of_port, 2);
	async = mad_async_create(port);
	mask[0] = 1 << IB_MAD_METHOD_GET | 1 << IB_MAD_METHOD_SET | 1 << IB_MAD_METHOD_SEND |
		  1 << IB_MAD_METHOD_TRAP | 1 << IB_MAD_METHOD_GET_TABLE;
	return mad_register_server_via(VENDOR_CLASS, 0, mask, 0, port) < 0 ? -1 : 0;
}

static uint32_t tid_of(void *umad)
{
	uint32_t tid;

	assert_non_null(umad);
	memcpy(&tid, (uint8_t *)umad_get_mad(umad) + 12, sizeof(tid));
	return be32toh(tid);
}

static void come_to_port(uint32_t tid)
{
	machine_send("n3", make(VENDOR_CLASS, IB_MAD_METHOD_GET, tid), 0);
}

/* The kernel keeps 200,000 messages for a handle, and the library 64 MiB of them. */
TEST_WITH(requests_are_kept_in_their_order_while_others_read, setup_receiver, teardown)
{
	uint8_t info[IB_SMP_DATA_SIZE];
	ib_portid_t to = {.lid = machine_lid("n1")};
	struct mad_async_stats stats;
	void *umad;

	for (uint32_t tid = 1; tid <= 20000; tid++)
		come_to_port(tid);
	for (unsigned i = 0; i < 10; i++)
		assert_non_null(smp_query_via(info, &to, IB_ATTR_NODE_INFO, 0, 0, port));
	for (unsigned i = 0; i < 20000; i++)
		assert_int_equal(mad_async_process(async), 0);
	assert_int_equal(mad_async_get_stats(async, &stats, sizeof(stats)), 0);
	assert_int_equal(stats.dropped, 0);
	for (uint32_t tid = 1; tid <= 20000; tid++) {
		umad = mad_receive_via(NULL, 0, port);
		assert_int_equal(tid_of(umad), tid);
		assert_int_equal(((uint8_t *)umad_get_mad(umad))[255], 0x77);
		mad_free(umad);
	}
	assert_fails_null(mad_receive_via(NULL, 0, port), EAGAIN);
}

TEST_WITH(each_method_has_its_response_at_the_sender, setup_receiver, teardown)
{
	const struct {
		uint8_t method, response;
	} methods[] = {{IB_MAD_METHOD_GET, IB_MAD_METHOD_GET_RESPONSE},
		       {IB_MAD_METHOD_SET, IB_MAD_METHOD_GET_RESPONSE},
		       {IB_MAD_METHOD_SEND, IB_MAD_METHOD_SEND},
		       {IB_MAD_METHOD_TRAP, IB_MAD_METHOD_TRAP_REPRESS},
		       {IB_MAD_METHOD_GET_TABLE, IB_MAD_METHOD_GET_TABLE_RESPONSE}};
	ib_portid_t elsewhere = {.lid = machine_lid("n7"), .qp = 1, .sl = 2};
	void *umad;

	for (unsigned i = 0; i < 5; i++) {
		machine_send("n3", make(VENDOR_CLASS, methods[i].method, 7), 0);
		umad = mad_receive_via(NULL, 1000, port);
		assert_int_equal(tid_of(umad), 7);
		assert_int_equal(mad_respond_via(umad, i ? NULL : &elsewhere, 0x1c, port), 0);
		machine_pass(1);
		assert_int_equal(last_arrival()->mad[3], methods[i].response);
		assert_int_equal(last_arrival()->mad[5], 0x1c);
		assert_int_equal(last_arrival()->mad[255], 0x77);
		assert_string_equal(last_arrival()->node, i ? "n3" : "n7");
		mad_free(umad);
	}
	assert_int_equal(arrivals[0].sl, 2);
}

TEST_WITH(a_buffer_of_the_program_holds_one_mad, setup_receiver, teardown)
{
	uint8_t *own = mad_alloc(), *umad, *mad = umad_get_mad(own);
	int64_t before;

	come_to_port(7);
	machine_deform(5000, 0);
	assert_fails_null(mad_receive_via(own, 0, port), EMSGSIZE);
	umad = mad_receive_via(NULL, 0, port);
	assert_int_equal(((uint8_t *)umad_get_mad(umad))[255], 0x77);
	assert_int_equal(((uint8_t *)umad_get_mad(umad))[4999], 0);
	mad_free(umad);
	/* a short message leaves nothing of an older one */
	memset(mad, 0x99, IB_MAD_SIZE);
	come_to_port(8);
	machine_deform(60, 0);
	assert_ptr_equal(mad_receive_via(own, 1000, port), own);
	assert_int_equal(tid_of(own), 8);
	for (int i = 60; i < IB_MAD_SIZE; i++)
		assert_int_equal(mad[i], 0);
	come_to_port(9);
	machine_pass(1);
	machine_fail(MACHINE_MALLOC, 1, ENOMEM);
	assert_int_equal(mad_async_process(async), 0); /* dropped */
	come_to_port(10);
	machine_pass(1);
	assert_int_equal(mad_async_process(async), 0);
	machine_fail(MACHINE_MALLOC, 1, ENOMEM);
	assert_fails_null(mad_receive_via(NULL, 0, port), ENOMEM);
	umad = mad_receive_via(NULL, 0, port); /* it is still queued */
	assert_int_equal(tid_of(umad), 10);
	mad_free(umad);
	mad_free(own);
	before = machine_us();
	assert_fails_null(mad_receive_via(NULL, 50, port), ETIMEDOUT);
	assert_int_equal(machine_us() - before, 50000);
	assert_fails_null(mad_receive_via(NULL, 0, NULL), EINVAL);
	machine_fail(MACHINE_POLL, 1, EINTR); /* a signal */
	assert_fails_null(mad_receive_via(NULL, -1, port), EINTR);
}

TEST_WITH(requests_that_cannot_be_sent_or_have_no_response_are_rejected, setup_receiver,
	  teardown)
{
	ib_rpc_t rpc = {.mgtclass = VENDOR_CLASS, .method = IB_MAD_METHOD_GET};
	ib_portid_t to = {.lid = machine_lid("n3")};
	void *umad = mad_alloc();
	uint8_t *mad = umad_get_mad(umad);

	mad[1] = IB_DEVICE_MGMT_CLASS;
	assert_fails_minus_1(mad_respond_via(umad, NULL, 0, port), EINVAL);
	assert_fails_minus_1(mad_respond_via(NULL, NULL, 0, port), EINVAL);
	assert_fails_minus_1(mad_respond_via(umad, NULL, 0, NULL), EINVAL);
	mad[1] = VENDOR_CLASS;
	machine_fail(MACHINE_WRITE, 1, ENOMEM);
	assert_fails_minus_1(mad_respond_via(umad, NULL, 0, port), ENOMEM);
	mad_free(umad);
	assert_int_equal(mad_send_via(NULL, &to, NULL, NULL, port), -1);
	assert_int_equal(mad_send_via(&rpc, NULL, NULL, NULL, port), -1);
	assert_int_equal(mad_send_via(&rpc, &to, NULL, NULL, NULL), -1);
	rpc.mgtclass = IB_DEVICE_MGMT_CLASS;
	assert_fails_minus_1(mad_send_via(&rpc, &to, NULL, NULL, port), EINVAL);
	assert_int_equal(arrival_count, 0);
}

TEST_WITH(a_request_sent_without_waiting_has_its_response_or_times_out, setup_receiver,
	  teardown)
{
	ib_rpc_t rpc = {.mgtclass = IB_PERFORMANCE_CLASS,
			.method = IB_MAD_METHOD_GET,
			.attr.id = CLASS_PORT_INFO,
			.dataoffs = IB_PC_DATA_OFFS,
			.datasz = IB_PC_DATA_SZ};
	ib_portid_t to = {.lid = machine_lid("n3"), .qp = 1, .qkey = IB_DEFAULT_QP1_QKEY};
	int64_t before;
	void *umad;

	machine_rule("duplicate 100%%"); /* once is enough */
	for (unsigned i = 0; i < 1000; i++) {
		rpc.trid = 0;
		assert_int_equal(mad_send_via(&rpc, &to, NULL, NULL, port), 0);
	}
	for (unsigned i = 0; i < 1000; i++) {
		umad = mad_receive_via(NULL, 1000, port);
		assert_non_null(umad);
		assert_int_equal(((uint8_t *)umad_get_mad(umad))[3],
				 IB_MAD_METHOD_GET_RESPONSE);
		mad_free(umad);
	}
	assert_null(mad_receive_via(NULL, 0, port));
	machine_rule("clear");
	machine_rule("silent on n3");
	mad_rpc_set_timeout(port, 321);
	for (unsigned i = 0; i < 2; i++) { /* nothing is retransmitted */
		before = machine_us();
		arrival_count = 0;
		rpc.trid = 0;
		rpc.timeout = i ? 654 : 0;
		assert_int_equal(mad_send_via(&rpc, &to, NULL, NULL, port), 0);
		umad = mad_receive_via(NULL, 10000, port);
		assert_non_null(umad);
		assert_int_equal(umad_status(umad), ETIMEDOUT);
		assert_in_range(machine_us() - before, i ? 654000 : 321000,
				i ? 690000 : 345000);
		assert_int_equal(arrival_count, 1);
		mad_free(umad);
	}
}

/* What is sent is shown, byte by byte. */
TEST_WITH(responses_and_requests_without_waiting_are_shown_with_ibdebug_2, setup_receiver,
	  teardown)
{
	ib_rpc_t rpc = {.mgtclass = IB_PERFORMANCE_CLASS, .method = IB_MAD_METHOD_GET};
	ib_portid_t to = {.lid = machine_lid("n3")};
	FILE *file = tmpfile();
	int saved = dup(STDERR_FILENO);
	void *umad = mad_alloc();
	uint8_t *mad = umad_get_mad(umad);
	char text[8192], *respond_at, *send_at;

	mad[1] = VENDOR_CLASS;
	mad[3] = IB_MAD_METHOD_GET;
	mad[252] = 0xab;
	dup2(fileno(file), STDERR_FILENO);
	for (ibdebug = 1; ibdebug <= 2; ibdebug++) {
		mad_respond_via(umad, NULL, 0, port);
		mad_send_via(&rpc, &to, NULL, NULL, port);
		rpc.trid = 0;
	}
	ibdebug = 0;
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	mad_free(umad);
	respond_at = strstr(text, "respond\n");
	send_at = strstr(text, "send\n");
	assert_true(respond_at && send_at && respond_at < send_at);
	assert_null(strstr(respond_at + 1, "respond\n")); /* nothing at level 1 */
	assert_null(strstr(send_at + 1, "send\n"));
	assert_non_null(strstr(respond_at, "ab00"));
}
