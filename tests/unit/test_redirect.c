/* SPDX-License-Identifier: BSD-2-Clause */

/* Redirection: by LID, by GID, in circles, to an unknown destination. */

#include "engine_fixture.h"
#include "gate.h"
#include "test.h"

#define TARGET_LID 77
#define PATH_SL    5

static const uint8_t target_gid[16] = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 9, 8, 7, 6, 5, 4, 3, 2};
static uint8_t data[IB_PC_DATA_SZ];

static struct {
	int lid; /* the LID that responses redirect to; 0: the GID */
	unsigned redirections;
	int path_lid;
	unsigned path_requests; /* requests for a path */
} plan;

static int setup(void)
{
	memset(&plan, 0, sizeof(plan));
	memset(data, 0, sizeof(data));
	data[0] = 0x42;
	return port_setup();
}

FIXTURE(setup, port_teardown);

static void respond_with_redirection(const struct device_packet *packet)
{
	uint8_t info[72] = {0}, gid[16];

	memcpy(gid, target_gid, sizeof(gid));
	if (plan.lid) {
		mad_set_field(info, 0, IB_CPI_REDIRECT_LID_F, (uint32_t)plan.lid);
		mad_set_field(info, 0, IB_CPI_REDIRECT_QP_F, 1234);
		mad_set_field(info, 0, IB_CPI_REDIRECT_QKEY_F, 0x80015678);
		mad_set_field(info, 0, IB_CPI_REDIRECT_SL_F, 6);
	}
	if (!plan.lid)
		mad_set_array(info, 0, IB_CPI_REDIRECT_GID_F, gid);
	device_respond(packet, IB_MAD_STS_REDIRECT,
		       packet->mad[1] == IB_SA_CLASS ? IB_SA_DATA_OFFS : IB_PC_DATA_OFFS, info,
		       sizeof(info));
}

static void respond_path(const struct device_packet *packet)
{
	uint8_t record[64] = {0};

	plan.path_requests++;
	memcpy(record, packet->mad + IB_SA_DATA_OFFS, sizeof(record));
	mad_set_field(record, 0, IB_SA_PR_DLID_F, (uint32_t)plan.path_lid);
	mad_set_field(record, 0, IB_SA_PR_SL_F, PATH_SL);
	device_respond(packet, 0, IB_SA_DATA_OFFS, record, sizeof(record));
}

static int follow_plan(const struct device_packet *packet, void *arg)
{
	if (packet->mad[1] == IB_SA_CLASS && packet->mad[3] == IB_MAD_METHOD_GET)
		respond_path(packet);
	else if (plan.redirections && plan.redirections--)
		respond_with_redirection(packet);
	else
		echo(packet, arg);
	return 0;
}

static ib_rpc_t counters_request(int method)
{
	ib_rpc_t rpc = set_request();

	rpc.method = method;
	return rpc;
}

/* 0 or the errno. */
static int ask(int method, ib_portid_t *to)
{
	ib_rpc_t rpc = counters_request(method);

	*to = to_lid(5);
	if (!mad_rpc(port, &rpc, to, data, data))
		return errno;
	assert_int_equal(data[0], 0x42);
	return 0;
}

static const int methods[] = {IB_MAD_METHOD_GET, IB_MAD_METHOD_SET};

TEST(a_lid_is_followed)
{
	const ib_mad_addr_t *address;
	ib_portid_t to;

	device_on_write(follow_plan, NULL);
	plan.lid = TARGET_LID;
	for (unsigned i = 0; i < 2; i++) {
		plan.redirections = 1;
		assert_int_equal(ask(methods[i], &to), 0);
		assert_int_equal(device_written(), 2 * i + 2);
		address = &device_packet(2 * i + 1)->header.addr;
		assert_int_equal(be16toh(address->lid), TARGET_LID);
		assert_int_equal(be32toh(address->qpn), 1234);
		assert_int_equal(be32toh(address->qkey), 0x80015678);
		assert_int_equal(address->sl, 6);
		assert_int_equal(to.lid, TARGET_LID);
		assert_int_equal(to.qp, 1234);
		assert_int_equal(to.qkey, 0x80015678);
		assert_int_equal(to.sl, 6);
		/* the request is unchanged */
		assert_memory_equal(device_packet(2 * i)->mad, device_packet(2 * i + 1)->mad,
				    256);
	}
}

TEST(a_request_for_a_message_is_redirected_too)
{
	ib_rpc_t rpc = counters_request(IB_MAD_METHOD_GET);
	ib_portid_t to = to_lid(5);
	struct mad_message message;

	device_on_write(follow_plan, NULL);
	plan.lid = TARGET_LID;
	plan.redirections = 1;
	assert_int_equal(mad_rpc_message(port, &rpc, &to, data, sizeof(data), &message), 0);
	assert_int_equal(device_written(), 2);
	assert_int_equal(to.lid, TARGET_LID);
	assert_int_equal(to.qp, 1234);
	assert_int_equal(to.qkey, 0x80015678);
	assert_int_equal(message.mad[IB_PC_DATA_OFFS], 0x42);
	mad_message_free(&message);
}

TEST(a_redirected_request_keeps_its_partition)
{
	ib_rpc_t rpc = counters_request(IB_MAD_METHOD_GET);
	ib_portid_t to = to_lid(5);

	device_on_write(follow_plan, NULL);
	plan.lid = TARGET_LID;
	plan.redirections = 1;
	to.pkey_idx = 3;
	assert_non_null(mad_rpc(port, &rpc, &to, data, data));
	assert_int_equal(be16toh(device_packet(1)->header.addr.lid), TARGET_LID);
	assert_int_equal(device_packet(1)->header.addr.pkey_index, 3);
}

static int redirect_to_the_target(const struct device_packet *packet, void *arg)
{
	if (be16toh(packet->header.addr.lid) == TARGET_LID)
		return echo(packet, arg);
	respond_with_redirection(packet);
	return 0;
}

/* The request has a response nevertheless. */
TEST(a_redirection_is_no_loss)
{
	struct mad_async *async = mad_async_create(port);
	static struct outcome outcomes[600];
	unsigned before;

	device_on_write(redirect_to_the_target, NULL);
	plan.lid = TARGET_LID;
	mad_port_set(port, MAD_PORT_GMP_WINDOW, 0);
	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 600);
	before = stats_of(async).gmp.window;
	for (int i = 0; i < 600; i++)
		submit(async, set_request(), 1 + i % 90, &outcomes[i], NULL);
	mad_async_wait(async, -1);
	for (int i = 0; i < 600; i++)
		assert_int_equal(outcomes[i].error, 0);
	assert_int_equal(stats_of(async).gmp.queue_losses, 0);
	assert_int_equal(stats_of(async).gmp.link_losses, 0);
	assert_true(stats_of(async).gmp.window >= before);
	mad_async_free(async);
}

TEST(the_path_to_a_gid_is_requested_from_the_sa)
{
	const uint8_t sgid[16] = {0xfe, 0x80, 0,    0, 0, 0,    0,   0,
				  0,    2,    0xc9, 3, 0, 0xa0, 0xb, 0x11};
	static const uint8_t nothing[24];
	const struct device_packet *packet;
	uint8_t record[64];
	ib_portid_t to;

	device_on_write(follow_plan, NULL);
	plan.path_lid = TARGET_LID;
	for (unsigned i = 0; i < 2; i++) {
		plan.redirections = 1;
		assert_int_equal(ask(methods[i], &to), 0);
		assert_int_equal(device_written(), 3 * i + 3);
		packet = device_packet(3 * i + 1);
		assert_int_equal(packet->mad[1], IB_SA_CLASS);
		assert_int_equal(packet->mad[17], IB_SA_ATTR_PATHRECORD);
		assert_int_equal(be16toh(packet->header.addr.lid), 1);
		assert_int_equal(be32toh(packet->header.addr.qpn), 1);
		assert_int_equal(packet->header.addr.sl, 3);
		assert_int_equal(packet->header.agent_id,
				 mad_rpc_class_agent(port, IB_SA_CLASS));
		assert_memory_equal(packet->mad + IB_SA_DATA_OFFS + 8, target_gid, 16);
		assert_memory_equal(packet->mad + IB_SA_DATA_OFFS + 24, sgid, 16);
		/* one path is requested, and no other component is set */
		memcpy(record, packet->mad + IB_SA_DATA_OFFS, sizeof(record));
		assert_int_equal(mad_get_field(record, 0, IB_SA_PR_NPATH_F), 1);
		assert_memory_equal(packet->mad + 24, nothing, 24);
		assert_memory_equal(record, nothing, 8);

		packet = device_packet(3 * i + 2);
		assert_int_equal(be16toh(packet->header.addr.lid), TARGET_LID);
		assert_int_equal(be32toh(packet->header.addr.qpn), 1);
		assert_int_equal(be32toh(packet->header.addr.qkey), IB_DEFAULT_QP1_QKEY);
		assert_int_equal(packet->header.addr.sl, PATH_SL);
		assert_int_equal(packet->header.addr.grh_present, 1);
		assert_memory_equal(packet->header.addr.gid, target_gid, 16);
		assert_memory_equal(packet->mad, device_packet(3 * i)->mad, 256);
		assert_memory_not_equal(device_packet(3 * i + 1)->mad + 12, packet->mad + 12,
					4);
		assert_int_equal(to.lid, TARGET_LID);
		assert_int_equal(to.grh_present, 1);
		assert_memory_equal(to.gid, target_gid, 16);
	}
}

TEST(asynchronous_requests_are_redirected_too)
{
	struct mad_async *async = mad_async_create(port);
	struct outcome outcomes[4] = {0};

	device_on_write(follow_plan, NULL);
	plan.path_lid = TARGET_LID;
	for (int i = 0; i < 4; i++) {
		plan.lid = i & 1 ? TARGET_LID : 0;
		plan.redirections = 1;
		submit(async, counters_request(methods[i / 2]), 5, &outcomes[i], NULL);
		assert_int_equal(mad_async_wait(async, -1), 1);
		assert_int_equal(outcomes[i].error, 0);
		assert_int_equal(outcomes[i].lid_byte, 5);
		assert_int_equal(outcomes[i].transmissions, i & 1 ? 2 : 3);
		assert_int_equal(stats_of(async).in_flight, 0);
	}
	mad_async_free(async);
}

TEST(a_redirected_request_is_sent_before_those_that_wait)
{
	struct mad_async *async = mad_async_create(port);
	struct outcome outcomes[3] = {0};

	mad_port_set(port, MAD_PORT_GMP_WINDOW, 2);
	plan.lid = TARGET_LID;
	submit(async, set_request(), 1, &outcomes[0], NULL);
	submit(async, set_request(), TARGET_LID, &outcomes[1], NULL);
	submit(async, set_request(), 5, &outcomes[2], NULL);
	assert_int_equal(device_written(), 2);
	respond_with_redirection(device_packet(0));
	assert_int_equal(mad_async_process(async), 0);
	assert_int_equal(device_written(), 3);
	assert_int_equal(be16toh(device_packet(2)->header.addr.lid), TARGET_LID);
	device_on_write(echo, NULL);
	device_respond(device_packet(1), 0, 0, NULL, 0);
	device_respond(device_packet(2), 0, 0, NULL, 0);
	assert_int_equal(mad_async_wait(async, -1), 3);
	mad_async_free(async);
}

TEST(without_an_sa_there_is_no_path)
{
	int classes[] = {IB_PERFORMANCE_CLASS};
	ib_portid_t to;

	device_on_write(follow_plan, NULL);
	plan.redirections = 1;
	device_file("/sys/class/infiniband/mlx5_0/ports/1/sm_lid", "0x0\n");
	assert_int_equal(ask(IB_MAD_METHOD_SET, &to), EHOSTUNREACH);
	device_file("/sys/class/infiniband/mlx5_0/ports/1/sm_lid", NULL);
	plan.redirections = 1;
	assert_int_equal(ask(IB_MAD_METHOD_SET, &to), EHOSTUNREACH);
	device_file("/sys/class/infiniband/mlx5_0/ports/1/sm_lid", "0x1\n");
	mad_rpc_close_port(port);
	port = mad_rpc_open_port(NULL, 0, classes, 1);
	plan.redirections = 1;
	assert_int_equal(ask(IB_MAD_METHOD_SET, &to), EHOSTUNREACH); /* no such agent */
	assert_int_equal(plan.path_requests, 0);
}

/* A response sends the request anywhere, and the next one as well. */
static int redirect_anywhere(const struct device_packet *packet, void *arg)
{
	static const int lids[] = {0, 1, TARGET_LID, 0xbfff, 0xc000, 0xfffe, 0xffff};
	unsigned *state = arg;

	*state = *state * 1664525 + 1013904223;
	plan.lid = lids[(*state >> 8) % 7];
	plan.path_lid = lids[(*state >> 16) % 7];
	plan.redirections = 1;
	return follow_plan(packet, NULL);
}

/* Never to a group of ports, or to the port that a permissive LID reaches. */
TEST(redirections_end_whatever_they_say)
{
	const char *seed = getenv("TEST_SEED");
	unsigned state = seed ? (unsigned)strtoul(seed, NULL, 0) : (unsigned)now_us(), before;
	unsigned loops = 0, refused = 0, lid;
	ib_portid_t to;
	int error;

	print_message("TEST_SEED=%u\n", state);
	device_on_write(redirect_anywhere, &state);
	device_file("/sys/class/infiniband/mlx5_0/ports/1/sm_lid", "0x1\n");
	for (unsigned i = 0; i < 300; i++) {
		before = device_written();
		error = ask(methods[i % 2], &to);
		loops += error == ELOOP;
		refused += error == EHOSTUNREACH;
		/* the request, 4 redirections, and a request for the path of each */
		assert_in_range(device_written() - before, 1, 9);
		for (; before < device_written(); before++) {
			lid = be16toh(device_packet(before)->header.addr.lid);
			assert_in_range(lid, 1, 0xbfff);
		}
	}
	assert_int_equal(loops + refused, 300);
	assert_true(loops && refused);
}

static int local_port_error; /* with which the local port cannot be read; 0: it can */

TEST(without_descriptors_or_memory_for_the_path_the_request_says_so)
{
	static const int errors[] = {EMFILE, ENFILE, ENOMEM};
	ib_portid_t to;

	device_on_write(follow_plan, NULL);
	for (unsigned i = 0; i < 3; i++) {
		plan.redirections = 1;
		local_port_error = errors[i];
		assert_int_equal(ask(IB_MAD_METHOD_SET, &to), errors[i]);
	}
	local_port_error = EIO;
	plan.redirections = 1;
	assert_int_equal(ask(IB_MAD_METHOD_SET, &to), EHOSTUNREACH);
	local_port_error = 0;
	assert_int_equal(plan.path_requests, 0);
}

TEST(the_agent_that_asks_for_a_path_may_be_the_first_one)
{
	int classes[] = {IB_SA_CLASS, IB_PERFORMANCE_CLASS};
	ib_portid_t to;

	device_on_write(follow_plan, NULL);
	mad_rpc_close_port(port);
	port = mad_rpc_open_port(NULL, 0, classes, 2);
	assert_int_equal(mad_rpc_class_agent(port, IB_SA_CLASS), 0);
	plan.redirections = 1;
	plan.path_lid = TARGET_LID;
	assert_int_equal(ask(IB_MAD_METHOD_SET, &to), 0);
	assert_int_equal(to.lid, TARGET_LID);
}

/* --- a port that is closed while a thread asks for a path ------------------------ */

static bool stops_at_gate;

int __real_umad_get_port(const char *ca_name, int portnum, umad_port_t *attributes);
int __wrap_umad_get_port(const char *ca_name, int portnum, umad_port_t *attributes);

int __wrap_umad_get_port(const char *ca_name, int portnum, umad_port_t *attributes)
{
	if (stops_at_gate)
		wait_at_gate();
	stops_at_gate = false;
	if (local_port_error) {
		errno = local_port_error;
		return local_port_error == ENOMEM ? -ENOMEM : -EIO;
	}
	return __real_umad_get_port(ca_name, portnum, attributes);
}

static void *close_port(void *arg)
{
	mad_rpc_close_port(arg);
	return NULL;
}

static void *run_engine(void *arg)
{
	return (void *)(intptr_t)mad_async_wait(arg, -1);
}

static int redirect_all(const struct device_packet *packet, void *arg)
{
	(void)arg;
	if (packet->mad[1] != IB_SA_CLASS)
		respond_with_redirection(packet);
	return 0;
}

TEST(a_request_for_a_path_ends_with_its_port)
{
	struct mad_async *engine = mad_async_create(port);
	struct outcome outcome = {0};
	pthread_t runner, closer;

	gate_init();
	stops_at_gate = true;
	device_on_write(redirect_all, NULL);
	submit(engine, set_request(), 3, &outcome, NULL);
	assert_int_equal(pthread_create(&runner, NULL, run_engine, engine), 0);
	wait_for(&gate.entered);
	assert_int_equal(pthread_create(&closer, NULL, close_port, port), 0);
	while (mad_async_poll_fd(engine) != -ECANCELED)
		sleep_ms(1);
	sem_post(&gate.leave);
	for (int i = 0; i < LONG_MS / 3 && !outcome.calls; i++)
		sleep_ms(1);
	assert_int_equal(outcome.calls, 1);
	assert_int_equal(outcome.error, -ECANCELED);
	assert_int_equal(device_written(), 1);
	pthread_join(runner, NULL);
	pthread_join(closer, NULL);
	mad_async_free(engine);
	gate_destroy();
	port = NULL; /* for the tear-down */
}
