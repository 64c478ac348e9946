/* SPDX-License-Identifier: BSD-2-Clause */

/* Servers on an engine, on the simulated fabric: run by umad-sim on host-1 and host-2, as
 * mlx5_0 and mlx5_1. Threads serve on the second port; the first port is the client's. */
#include "test.h"

#include <infiniband/mad_server.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CLASS     0x33
#define OUI       0x123456
#define OTHER_OUI 0x654321
#define MANY      1000
#define LARGE     (1 << 20)

static char first_port[] = "mlx5_0", second_port[] = "mlx5_1";
static char texts[] = "123";
static struct ibmad_port *asking, *serving;
static struct mad_async *client, *engine;
static ib_portid_t to;
static atomic_bool end;
static pthread_t loop;

static void sleep_ms(long ms)
{
	struct timespec time = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&time, NULL);
}

static void *process(void *arg)
{
	(void)arg;
	while (!end)
		if (mad_async_process(engine) <= 0)
			sleep_ms(1);
	return NULL;
}

static int setup(void)
{
	ib_portid_t self = {0};
	int classes[] = {IB_SMI_DIRECT_CLASS}, smi = IB_SMI_DIRECT_CLASS;
	uint8_t info[IB_SMP_DATA_SIZE];

	asking = mad_rpc_open_port(first_port, 1, classes, 1);
	serving = mad_rpc_open_port(second_port, 1, &smi, 1);
	assert_non_null(asking);
	assert_non_null(serving);
	assert_int_equal(mad_register_client_via(CLASS, 1, asking), 0);
	mad_rpc_set_timeout(asking, 20000);
	self.drpath.cnt = 0;
	assert_non_null(smp_query_via(info, &self, IB_ATTR_PORT_INFO, 0, 0, serving));
	to = (ib_portid_t){.lid = (int)mad_get_field(info, 0, IB_PORT_LID_F)};
	client = mad_async_create(asking);
	engine = mad_async_create(serving);
	end = false;
	return pthread_create(&loop, NULL, process, NULL);
}

static int teardown(void)
{
	end = true;
	pthread_join(loop, NULL);
	mad_async_free(client);
	mad_async_free(engine);
	mad_rpc_close_port(asking);
	mad_rpc_close_port(serving);
	return 0;
}

FIXTURE(setup, teardown);

static struct mad_server *start(uint32_t oui, unsigned limit, mad_server_fn *callback,
				void *arg)
{
	const struct mad_server_options options = {
		.mgmt_class = CLASS,
		.oui = oui,
		.rmpp_version = 1,
		.limit = limit,
		.methods = {MAD_SERVER_METHOD(IB_MAD_METHOD_GET)},
	};
	struct mad_server *server;

	assert_int_equal(mad_server_start(engine, &options, callback, arg, &server), 0);
	return server;
}

static ib_rpc_t request(uint32_t oui, unsigned modifier)
{
	return (ib_rpc_t){
		.mgtclass = CLASS,
		.method = IB_MAD_METHOD_GET,
		.attr = {.id = 0x10, .mod = modifier},
		.oui = oui,
		.dataoffs = IB_VENDOR_RANGE2_DATA_OFFS,
		.datasz = IB_VENDOR_RANGE2_DATA_SIZE,
	};
}

static void fill(uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		data[i] = (uint8_t)(i * 31 + i / 251 + size);
}

/* Responds with as many bytes as the attribute modifier says. */
static void respond_with_size(struct mad_server *server, struct mad_request *request, int error,
			      void *arg)
{
	uint8_t *data;

	(void)server;
	if (!request)
		return;
	assert_int_equal(error, 0);
	data = malloc(request->modifier);
	fill(data, request->modifier);
	if (mad_request_respond(request, 0, data, request->modifier)) {
		++*(atomic_int *)arg;
		mad_request_free(request);
	}
	free(data);
}

TEST(a_response_may_have_any_size)
{
	static const unsigned sizes[] = {1,   215,  216,  217,   431,    432,
					 433, 1000, 4096, 65536, 100001, LARGE};
	uint8_t *expected = malloc(LARGE);
	atomic_int failed = 0;
	struct mad_message message;
	struct mad_server *server = start(IB_OPENIB_OUI, 0, respond_with_size, &failed);
	struct mad_server_stats stats;

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		ib_rpc_t rpc = request(IB_OPENIB_OUI, sizes[i]);
		ib_portid_t where = to;

		assert_int_equal(mad_rpc_message(asking, &rpc, &where, NULL, 0, &message), 0);
		fill(expected, sizes[i]);
		if (sizes[i] > IB_VENDOR_RANGE2_DATA_SIZE)
			assert_int_equal(message.length, IB_VENDOR_RANGE2_DATA_OFFS + sizes[i]);
		else
			assert_int_equal(message.length, IB_MAD_SIZE);
		assert_memory_equal(message.mad + IB_VENDOR_RANGE2_DATA_OFFS, expected,
				    sizes[i]);
		mad_message_free(&message);
	}
	assert_int_equal(failed, 0);
	mad_server_get_stats(server, &stats, sizeof(stats));
	assert_int_equal(stats.failed, 0);
	free(expected);
}

/* --- many requests at once ---------------------------------------------------------- */

static struct mad_request *held[MANY];
static atomic_uint count;

static void hold(struct mad_server *server, struct mad_request *request, int error, void *arg)
{
	(void)server;
	(void)arg;
	(void)error;
	if (request)
		held[count++] = request;
}

struct outcomes {
	unsigned right, busy, other;
};

/* The response repeats the data of the request. */
static void came(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	struct outcomes *outcomes = arg;

	(void)async;
	if (!reply->error && reply->data && !memcmp(reply->data, reply->mad + 20, 4))
		outcomes->right++;
	else if (reply->error == -ETIMEDOUT || reply->status == IB_MAD_STS_BUSY)
		outcomes->busy++;
	else
		outcomes->other++;
}

static void *respond_to_all(void *arg)
{
	unsigned failed = 0;

	(void)arg;
	while (count < MANY)
		sleep_ms(1);
	for (unsigned i = 0; i < MANY; i++) /* the last one first */
		failed += mad_request_respond(held[MANY - 1 - i], 0,
					      held[MANY - 1 - i]->mad + 20, 4) != 0;
	return (void *)(uintptr_t)failed;
}

static void submit_many(uint32_t oui, unsigned number, struct outcomes *outcomes)
{
	mad_port_set(asking, MAD_PORT_GMP_WINDOW, number);
	mad_port_set(asking, MAD_PORT_DESTINATION_LIMIT, number);
	for (unsigned i = 0; i < number; i++) {
		ib_rpc_t rpc = request(oui, i + 1);

		assert_int_equal(
			mad_async_submit(client, &rpc, &to, NULL, 0, came, outcomes, NULL), 0);
	}
}

TEST(a_thousand_requests_are_held_and_another_thread_responds)
{
	struct mad_server *server = start(IB_OPENIB_OUI, MANY, hold, NULL);
	struct outcomes outcomes = {0};
	struct mad_server_stats stats;
	pthread_t responder;
	void *failed;

	count = 0;
	mad_rpc_set_retries(asking, 1); /* no retransmission: the server would take it for a
					 * new request */
	assert_int_equal(pthread_create(&responder, NULL, respond_to_all, NULL), 0);
	submit_many(IB_OPENIB_OUI, MANY, &outcomes);
	mad_async_wait(client, -1);
	pthread_join(responder, &failed);
	mad_server_get_stats(server, &stats, sizeof(stats));
	printf("%u requests held: %u right, %u busy, %u other; %u retransmissions seen\n", MANY,
	       outcomes.right, outcomes.busy, outcomes.other, (unsigned)stats.duplicates);
	assert_null(failed);
	assert_int_equal(outcomes.right, MANY);
	assert_int_equal(stats.received, MANY);
	assert_int_equal(stats.held, 0);
}

TEST(beyond_the_limit_there_is_busy)
{
	struct mad_server *server = start(IB_OPENIB_OUI, 10, hold, NULL);
	struct outcomes outcomes = {0};
	struct mad_server_stats stats;

	count = 0;
	mad_rpc_set_timeout(asking, 300);
	mad_rpc_set_retries(asking, 1);
	submit_many(IB_OPENIB_OUI, 50, &outcomes);
	mad_async_wait(client, -1);
	mad_server_get_stats(server, &stats, sizeof(stats));
	printf("50 requests, a limit of 10: %u held, %u BUSY responses\n", (unsigned)count,
	       (unsigned)stats.busy);
	assert_int_equal(count, 10);
	assert_int_equal(stats.held, 10);
	assert_true(stats.busy >= 40);
	assert_int_equal(outcomes.busy, 50);
	mad_server_stop(server);
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(mad_request_respond(held[i], 0, "x", 1), -ECANCELED);
		mad_request_free(held[i]);
	}
}

/* --- several servers on a port ------------------------------------------------------- */

static void say(struct mad_server *server, struct mad_request *request, int error, void *arg)
{
	(void)server;
	(void)error;
	if (request && mad_request_respond(request, 0, arg, 1))
		mad_request_free(request);
}

static uint8_t first_byte(struct ibmad_port *port, uint32_t oui)
{
	ib_rpc_t rpc = request(oui, 0);
	uint8_t data[IB_VENDOR_RANGE2_DATA_SIZE] = {0};
	ib_portid_t where = {.lid = to.lid, .qp = 1, .qkey = IB_DEFAULT_QP1_QKEY};

	assert_non_null(mad_rpc(port, &rpc, &where, data, data));
	return data[0];
}

TEST(servers_and_clients_of_one_class_share_a_port)
{
	struct mad_server *one = start(OUI, 0, say, texts);
	struct mad_server *other = start(OTHER_OUI, 0, say, texts + 1);

	assert_int_equal(mad_register_client_via(CLASS, 1, serving), 0);
	assert_int_equal(first_byte(asking, OUI), '1');
	assert_int_equal(first_byte(asking, OTHER_OUI), '2');
	assert_int_equal(first_byte(serving, OUI), '1'); /* the port itself */
	assert_int_equal(first_byte(serving, OTHER_OUI), '2');
	mad_server_stop(one);
	one = start(OUI, 0, say, texts + 2);
	assert_int_equal(first_byte(asking, OUI), '3');
	mad_server_stop(one);
	mad_server_stop(other);
}

TEST(a_method_has_one_agent)
{
	const struct mad_server_options options = {
		.mgmt_class = CLASS,
		.oui = OUI,
		.methods = {MAD_SERVER_METHOD(IB_MAD_METHOD_GET)},
	};
	struct ibmad_port *second = mad_rpc_open_port(second_port, 1, NULL, 0);
	struct mad_async *others = mad_async_create(second);
	struct mad_server *server = start(OUI, 0, say, texts), *none;

	assert_int_equal(mad_server_start(others, &options, say, NULL, &none), -EADDRINUSE);
	mad_server_stop(server);
	assert_int_equal(mad_server_start(others, &options, say, NULL, &none), 0);
	mad_async_free(others);
	mad_rpc_close_port(second);
}
