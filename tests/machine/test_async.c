/* SPDX-License-Identifier: BSD-2-Clause */

/* Engines: requests, callbacks, cancelling, statistics, ends, and children. */

#include "async.h"

#include <infiniband/mad_errors.h>
#include <infiniband/umad_ext.h>
#include <limits.h>

#define MANY   100
#define LEAVES 8

static struct outcome outcomes[MANY];
/* The latest requests that arrived at nodes. */
static uint8_t sent[8][MACHINE_MAD];
static uint32_t sent_qp[8];
static unsigned sent_count, busy_first;

static enum machine_verdict record(struct machine_mad *mad, void *arg)
{
	(void)arg;
	if (mad->at_host || mad->bytes[3] & IB_MAD_RESPONSE)
		return MACHINE_PASS;
	memcpy(sent[sent_count % 8], mad->bytes, MACHINE_MAD);
	sent_qp[sent_count % 8] = mad->qp;
	sent_count++;
	if (!busy_first)
		return MACHINE_PASS;
	busy_first--;
	return machine_reply(mad, IB_MAD_STS_BUSY, 0, NULL, 0);
}

static int setup(void)
{
	memset(outcomes, 0, sizeof(outcomes));
	sent_count = busy_first = 0;
	if (open_engine("star:8"))
		return -1;
	machine_on_arrival(record, NULL);
	return 0;
}

FIXTURE(setup, close_engine);

/* The engine calls back so many requests, which end with this error. */
static void run(unsigned count, int error)
{
	assert_int_equal(mad_async_wait(async, -1), count);
	for (unsigned i = 0; i < count; i++)
		expect_outcome(&outcomes[i], error);
}

static void submit_many(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		submit(i & 1 ? PMA_GET : SMP_GET, leaf(1 + i / 2 % LEAVES), &outcomes[i]);
}

/* The request that was sent before so many others. */
static const uint8_t *sent_before(unsigned others)
{
	machine_pass(0);
	return sent[(sent_count - 1 - others) % 8];
}

/* --- submitting ----------------------------------------------------------------- */

/* In any order. */
TEST(each_request_gets_its_own_response)
{
	char name[8];

	for (int i = 1; i <= LEAVES; i++)
		machine_rule("slow %dus on n%d", 100 + i * 37 % 50, i);
	submit_many(MANY);
	run(MANY, 0);
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "n%d", 1 + i / 2 % LEAVES);
		assert_true(i & 1 || outcomes[i].guid == machine_guid(name));
		assert_int_equal(outcomes[i].length, MACHINE_MAD);
		assert_int_equal(outcomes[i].data_size, MACHINE_MAD - 64);
		assert_int_equal(outcomes[i].transmissions, 1);
	}
	assert_int_equal(stats_of(async).sent, MANY);
	assert_int_equal(mad_async_wait(async, -1), 0);
}

TEST(a_submission_calls_nothing_back_and_leaves_the_caller_s_structures_alone)
{
	ib_rpc_t rpc = rpc_of(SMP_GET), rpc_before;
	ib_portid_t to = {.lid = (int)leaf(3)}, to_before = to;
	uint64_t id = 0;

	rpc.trid = 5;
	rpc_before = rpc;
	assert_int_equal(mad_async_submit(async, &rpc, &to, NULL, 0, note, outcomes, &id), 0);
	machine_pass(MS);
	assert_int_equal(outcomes[0].calls, 0);
	assert_int_not_equal(id, 0);
	assert_memory_equal(&rpc, &rpc_before, sizeof(rpc));
	assert_memory_equal(&to, &to_before, sizeof(to));
	assert_memory_not_equal(sent_before(0) + 12, ((uint8_t[4]){0, 0, 0, 5}), 4);
	assert_int_equal(mad_async_process(async), 1);
	expect_outcome(&outcomes[0], 0);
}

/* Not with mad_rpc(), as in rdma-core. */
TEST(a_gmp_by_lid_alone_goes_to_qp_1)
{
	static const uint32_t qps[] = {1, 0, 9, 1, 0, 0};
	ib_portid_t lid = {.lid = (int)leaf(3)}, other = {.lid = (int)leaf(3), .qp = 9};
	ib_rpc_t smp = rpc_of(SMP_GET), gmp = rpc_of(PMA_GET);
	uint8_t data[IB_PC_DATA_SZ] = {0};
	struct mad_message message;

	mad_rpc_set_retries(port, 1);
	mad_rpc_set_timeout(port, 10);
	submit(PMA_GET, leaf(3), &outcomes[0]);
	submit(SMP_GET, leaf(3), &outcomes[1]);
	mad_async_submit(async, &gmp, &other, NULL, 0, note, &outcomes[2], NULL);
	assert_int_equal(mad_async_wait(async, -1), 3);
	expect_outcome(&outcomes[0], 0);
	expect_outcome(&outcomes[1], 0);
	expect_outcome(&outcomes[2], -ETIMEDOUT); /* no such QP */
	assert_int_equal(mad_rpc_message(port, &gmp, &lid, NULL, 0, &message), 0);
	mad_message_free(&message);
	assert_int_equal(mad_rpc_message(port, &smp, &lid, NULL, 0, &message), 0);
	mad_message_free(&message);
	assert_int_equal(lid.qp, 0);
	assert_null(mad_rpc(port, &gmp, &lid, NULL, data));
	machine_pass(0);
	assert_int_equal(sent_count, 6);
	assert_memory_equal(sent_qp, qps, sizeof(qps));
}

TEST(congestion_control_requests_have_their_key)
{
	ib_rpc_cc_t rpc = {.mgtclass = IB_CC_CLASS,
			   .method = IB_MAD_METHOD_GET,
			   .attr.id = CLASS_PORT_INFO,
			   .dataoffs = IB_CC_DATA_OFFS,
			   .cckey = 0x0102030405060708};
	ib_portid_t to = {.lid = (int)leaf(3)};

	assert_int_equal(mad_async_submit(async, (ib_rpc_t *)(void *)&rpc, &to, NULL, 0, note,
					  outcomes, NULL),
			 0);
	assert_memory_equal(sent_before(0) + 24, ((uint8_t[8]){1, 2, 3, 4, 5, 6, 7, 8}), 8);
}

TEST(what_makes_no_sense_is_refused)
{
	static const uint8_t payload[1000];
	ib_rpc_t smp = rpc_of(SMP_GET), directed = smp, unknown = smp;
	ib_portid_t to = {.lid = (int)leaf(3)}, far = {.drpath.cnt = 64};
	struct mad_async_stats stats;

	directed.mgtclass = IB_SMI_DIRECT_CLASS;
	unknown.mgtclass = 0x10;
	const struct {
		struct mad_async *engine;
		const ib_rpc_t *rpc;
		const ib_portid_t *to;
		size_t size;
		mad_async_fn *callback;
		int error;
	} rows[] = {
		{NULL, &smp, &to, 1, note, -EINVAL},
		{async, NULL, &to, 1, note, -EINVAL},
		{async, &smp, NULL, 1, note, -EINVAL},
		{async, &smp, &to, 1, NULL, -EINVAL},
		{async, &smp, &to, 1000, note, -EMSGSIZE},
		{async, &unknown, &to, 1, note, -EPROTONOSUPPORT},
		{async, &directed, &far, 1, note, -EINVAL},
	};
	/* Gets of another class, or too large a modifier */
	const struct {
		struct mad_async *engine;
		const ib_portid_t *to;
		unsigned attribute, modifier;
		mad_async_fn *callback;
	} gets[] = {
		{async, &to, IB_ATTR_PORT_INFO, 0, note},
		{async, &to, MAD_ATTRIBUTE(IB_SA_CLASS, 0x11), 0, note},
		{async, &to, MAD_PORT_COUNTERS, 256, note},
		{async, NULL, MAD_PORT_INFO, 0, note},
		{NULL, &to, MAD_PORT_INFO, 0, note},
		{async, &to, MAD_PORT_INFO, 0, NULL},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_int_equal(mad_async_submit(rows[i].engine, rows[i].rpc, rows[i].to,
						  payload, rows[i].size, rows[i].callback,
						  outcomes, NULL),
				 rows[i].error);
	for (size_t i = 0; i < sizeof(gets) / sizeof(*gets); i++)
		assert_int_equal(mad_async_get(gets[i].engine, gets[i].to, gets[i].attribute,
					       gets[i].modifier, gets[i].callback, NULL, NULL),
				 -EINVAL);
	machine_pass(MS);
	assert_int_equal(sent_count, 0);
	assert_int_equal(stats_of(async).submitted, 0);
	assert_int_equal(mad_async_wait(async, -1), 0);
	assert_fails_null(mad_async_create(NULL), EINVAL);
	assert_int_equal(mad_async_process(NULL), -EINVAL);
	assert_int_equal(mad_async_wait(NULL, -1), -EINVAL);
	assert_int_equal(mad_async_poll_fd(NULL), -EINVAL);
	assert_int_equal(mad_async_cancel(NULL, 1), -EINVAL);
	assert_int_equal(mad_async_cancel(NULL, MAD_ASYNC_ALL), -EINVAL);
	assert_int_equal(mad_async_get_stats(NULL, &stats, sizeof(stats)), -EINVAL);
	assert_int_equal(mad_async_get_stats(async, NULL, sizeof(stats)), -EINVAL);
	mad_async_stop(NULL);
	mad_async_free(NULL);
}

TEST(each_allocation_of_a_submission_may_fail)
{
	static const uint8_t payload[1000];
	ib_rpc_t rpc = rpc_of(SA_GET);
	ib_portid_t to = {.lid = (int)machine_lid("sm")};
	unsigned failed = 0, allocations = 0;

	for (int i = 0; i < 2; i++) {
		int ret = -ENOMEM;

		for (unsigned n = 1; ret; n++) {
			machine_fail(MACHINE_MALLOC, n, ENOMEM);
			ret = mad_async_submit(async, &rpc, &to, payload, sizeof(payload), note,
					       &outcomes[i], NULL);
			machine_fail(MACHINE_MALLOC, 0, 0);
			assert_true(ret == 0 || ret == -ENOMEM);
			failed += ret != 0;
		}
	}
	assert_in_range(failed, 2, 100);
	assert_int_equal(stats_of(async).submitted, 2);
	run(2, 0);
	machine_fail(MACHINE_MALLOC, 1, ENOMEM);
	assert_fails_null(mad_async_create(port), ENOMEM);
	/* what is refused takes no memory */
	rpc = rpc_of(SMP_GET);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(mad_async_submit(async, &rpc, &to, payload, sizeof(payload),
						  note, outcomes, NULL),
				 -EMSGSIZE);
		if (!i)
			allocations = machine_calls(MACHINE_MALLOC);
	}
	assert_int_equal(machine_calls(MACHINE_MALLOC), allocations);
}

TEST(a_get_needs_an_attribute_alone)
{
	static const uint8_t m_key[8] = {[6] = 0x12, 0x34};
	ib_portid_t lid = {.lid = (int)leaf(7), .sl = 3, .qp = 5};
	ib_portid_t gmp = {.lid = (int)leaf(7)}, beside = {.drpath = {.cnt = 1, .p = {0, 1}}};
	const struct {
		const ib_portid_t *to;
		unsigned attribute, modifier;
		int mgmt_class, id, sent_modifier, select;
	} rows[] = {
		{&lid, MAD_PORT_INFO, 1, IB_SMI_CLASS, IB_ATTR_PORT_INFO, 1, 0},
		{&beside, MAD_NODE_INFO, 0, IB_SMI_DIRECT_CLASS, IB_ATTR_NODE_INFO, 0, 0},
		{&gmp, MAD_PORT_COUNTERS, 9, IB_PERFORMANCE_CLASS, IB_GSI_PORT_COUNTERS, 0, 9},
	};

	smp_mkey_set(port, 0x1234);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t id = 0;
		const uint8_t *mad;

		assert_int_equal(mad_async_get(async, rows[i].to, rows[i].attribute,
					       rows[i].modifier, note, &outcomes[i], &id),
				 0);
		assert_int_not_equal(id, 0);
		mad = sent_before(0);
		assert_int_equal(mad[1], rows[i].mgmt_class);
		assert_int_equal(mad[3], IB_MAD_METHOD_GET);
		assert_int_equal(mad[16] << 8 | mad[17], rows[i].id);
		assert_int_equal(mad[23], rows[i].sent_modifier);
		if (rows[i].select)
			assert_int_equal(mad[65], rows[i].select);
		else
			assert_memory_equal(mad + 24, m_key, 8);
	}
	assert_int_equal(mad_async_wait(async, -1), 3);
	expect_outcome(&outcomes[0], 0);
	expect_outcome(&outcomes[1], 0);
}

/* --- long messages -------------------------------------------------------------- */

/* What the segments of a response announce as their payload; -1: what they have. */
static struct announced {
	int first, last;
} announced;

static enum machine_verdict announce(struct machine_mad *mad, void *arg)
{
	uint8_t *b = mad->bytes;
	int size = -1;

	(void)arg;
	if (!mad->at_host || b[1] != IB_SA_CLASS || b[25] != 1)
		return MACHINE_PASS;
	if (b[26] & 2)
		size = announced.first;
	if (b[26] & 4 && announced.last >= 0)
		size = announced.last;
	for (int i = 0; size >= 0 && i < 4; i++)
		b[32 + i] = (uint8_t)(size >> (24 - 8 * i));
	return MACHINE_PASS;
}

/* 11 records of 112 bytes: 1,232 bytes of data in 7 segments with 20 bytes of header each. */
#define TABLE (11 * 112)

TEST(a_message_that_is_shorter_than_announced_is_an_error)
{
	static const struct {
		struct announced announced;
		int error;
	} rows[] = {
		{{-1, -1}, 0},
		{{TABLE + 7 * 20, -1}, 0},
		{{TABLE + 7 * 20 + 1, -1}, EBADMSG},
		{{INT_MAX, -1}, EBADMSG},
		/* the length was not known, or does not count headers */
		{{0, -1}, 0},
		{{TABLE, -1}, 0},
		{{TABLE + 7 * 20, TABLE % 200 + 20 - 1}, EBADMSG},
	};
	ib_portid_t to = {.lid = (int)machine_lid("sm"), .qp = 1, .qkey = IB_DEFAULT_QP1_QKEY};
	ib_rpc_t rpc = rpc_of(SA_TABLE);
	uint8_t data[4096];
	struct mad_message message;

	machine_on_arrival(announce, NULL);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		size_t size = rows[i].error ? 0 : TABLE;

		announced = rows[i].announced;
		submit(SA_TABLE, machine_lid("sm"), &outcomes[i]);
		assert_int_equal(mad_async_wait(async, -1), 1);
		expect_outcome(&outcomes[i], -rows[i].error);
		assert_int_equal(outcomes[i].length, size ? IB_SA_DATA_OFFS + size : 0);
		assert_int_equal(outcomes[i].data_size, size);
	}
	assert_fails_null(mad_rpc_rmpp(port, &rpc, &to, NULL, data), EBADMSG);
	assert_fails_null(mad_rpc(port, &rpc, &to, NULL, data), EBADMSG);
	assert_int_equal(mad_rpc_message(port, &rpc, &to, NULL, 0, &message), -EBADMSG);
	assert_null(message.mad);
}

/* --- time and errors ------------------------------------------------------------ */

TEST(a_status_is_an_error_with_a_response)
{
	ib_rpc_t rpc = rpc_of(SMP_GET);

	rpc.attr.id = 0x7fff;
	submit_with(async, rpc, leaf(1), note, &outcomes[0]);
	run(1, -EIO);
	assert_int_equal(outcomes[0].status, 0x0c);
	assert_int_equal(outcomes[0].length, MACHINE_MAD);
}

TEST(a_request_without_a_response_times_out_once_and_keeps_its_id)
{
	uint8_t id[4];

	silence();
	mad_rpc_set_retries(port, 3);
	mad_rpc_set_timeout(port, 40);
	submit_many(20);
	run(20, -ETIMEDOUT);
	assert_int_equal(stats_of(async).timed_out, 20);
	assert_in_range(stats_of(async).retried, 40, 100);
	for (int i = 0; i < 20; i++) {
		assert_in_range(outcomes[i].transmissions, 3, 6);
		assert_in_range(outcomes[i].elapsed_ms, 120, 160);
		assert_int_equal(outcomes[i].data_size, 0);
	}
	submit(PMA_SET, leaf(1), &outcomes[20]);
	memcpy(id, sent_before(0) + 12, 4);
	assert_int_equal(mad_async_wait(async, -1), 1);
	assert_int_equal(outcomes[20].transmissions, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_memory_equal(sent_before(i) + 12, id, 4);
	assert_memory_not_equal(sent_before(3) + 12, id, 4);
}

TEST(huge_and_negative_times_are_for_ever)
{
	static const int values[] = {INT_MAX, -1, INT_MIN};

	machine_rule("slow 10000s");
	mad_rpc_set_retries(port, INT_MAX);
	for (unsigned i = 0; i < 6; i++) {
		ib_rpc_t rpc = rpc_of(i & 1 ? PMA_SET : SMP_SET);

		rpc.timeout = values[i / 2];
		submit_with(async, rpc, leaf(1 + i), note, &outcomes[i]);
	}
	assert_int_equal(mad_async_wait(async, -1), 6);
	for (int i = 0; i < 6; i++) {
		assert_int_not_equal(outcomes[i].error, -ETIMEDOUT);
		assert_int_equal(outcomes[i].transmissions, 1);
	}
}

TEST(a_busy_node_is_asked_again_until_the_end)
{
	busy_first = 1;
	submit(SMP_GET, leaf(1), &outcomes[0]);
	run(1, 0);
	assert_in_range(outcomes[0].at, 10 * MS, 1000 * MS);
	assert_int_equal(outcomes[0].transmissions, 2);
	assert_int_equal(stats_of(async).busy, 1);
	busy_first = 100;
	submit(SMP_GET, leaf(1), &outcomes[1]);
	assert_int_equal(mad_async_wait(async, -1), 1);
	expect_outcome(&outcomes[1], -EIO);
	assert_int_equal(outcomes[1].status, IB_MAD_STS_BUSY);
	assert_int_equal(stats_of(async).busy, 1 + outcomes[1].transmissions);
}

TEST(calls_of_the_device_fail_for_their_request_alone)
{
	/* one that a signal interrupts is repeated; a refused ID is no retransmission */
	static const struct {
		enum machine_call call;
		int error, result;
		unsigned transmissions;
	} rows[] = {
		{MACHINE_READ, EINTR, 0, 1},      {MACHINE_WRITE, EINTR, 0, 1},
		{MACHINE_WRITE, EINVAL, 0, 1},    {MACHINE_WRITE, ENOMEM, -ENOMEM, 0},
		{MACHINE_WRITE, ETIMEDOUT, 0, 2}, /* RoCE: the GID was not resolved */
	};

	mad_rpc_set_retries(port, 2);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t retried = stats_of(async).retried;

		machine_fail(rows[i].call, 1, rows[i].error);
		submit(PMA_SET, leaf(1), &outcomes[0]);
		submit(PMA_SET, leaf(2), &outcomes[1]);
		assert_int_equal(mad_async_wait(async, -1), 2);
		assert_int_equal(outcomes[0].error, rows[i].result);
		assert_int_equal(outcomes[1].error, 0);
		if (rows[i].transmissions)
			assert_int_equal(outcomes[0].transmissions, rows[i].transmissions);
		assert_int_equal(stats_of(async).retried - retried, rows[i].transmissions == 2);
	}
}

/* --- callbacks and cancelling --------------------------------------------------- */

static int again;
static uint64_t victim;

static void submit_again(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	note(engine, reply, arg);
	if (again && again--)
		submit_with(engine, rpc_of(SMP_GET), leaf(7), submit_again, arg);
}

static void cancel_victim(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	bool itself = arg == &outcomes[3];

	note(engine, reply, arg);
	assert_int_equal(mad_async_cancel(engine, victim), itself ? -ENOENT : 0);
	assert_int_equal(mad_async_cancel(engine, victim), -ENOENT);
}

static void block(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	note(engine, reply, arg);
	assert_int_equal(ask(rpc_of(SMP_GET), leaf(5)), 0);
	assert_int_equal(mad_async_process(engine), 0);
	assert_int_equal(mad_async_wait(engine, -1), -EDEADLK);
	assert_int_equal(mad_async_wait(engine, 0), -EDEADLK);
	mad_async_free(engine); /* no-op */
}

static void run_another(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	struct mad_async *other = mad_async_create(port);

	note(engine, reply, arg);
	submit_with(other, rpc_of(SMP_GET), leaf(3), note, &outcomes[8]);
	assert_int_equal(mad_async_wait(other, -1), 1);
	submit_with(other, rpc_of(SMP_GET), leaf(3), note, &outcomes[9]);
	mad_async_free(other);
}

TEST(callbacks_may_make_any_call)
{
	again = 500;
	submit_with(async, rpc_of(SMP_GET), leaf(7), submit_again, &outcomes[0]);
	assert_int_equal(mad_async_wait(async, -1), 501);
	assert_int_equal(outcomes[0].calls, 501);
	assert_int_equal(stats_of(async).completed, 501);

	machine_rule("silent on n3");
	submit_with(async, rpc_of(SMP_GET), leaf(7), cancel_victim, &outcomes[1]);
	victim = submit(PMA_SET, leaf(3), &outcomes[2]);
	assert_int_equal(mad_async_wait(async, -1), 2);
	expect_outcome(&outcomes[1], 0);
	expect_outcome(&outcomes[2], -ECANCELED);
	machine_rule("clear");

	victim = submit_with(async, rpc_of(SMP_GET), leaf(7), cancel_victim, &outcomes[3]);
	for (int i = 0; i < 50; i++)
		submit_with(async, rpc_of(PMA_SET), leaf(7), block, &outcomes[4]);
	submit_with(async, rpc_of(PMA_SET), leaf(7), run_another, &outcomes[5]);
	assert_int_equal(mad_async_wait(async, -1), 52);
	assert_int_equal(outcomes[3].calls, 1);
	assert_int_equal(outcomes[4].calls, 50);
	expect_outcome(&outcomes[8], 0);
	expect_outcome(&outcomes[9], -ECANCELED);
}

TEST(requests_can_be_cancelled_in_every_state)
{
	static const int cancelled[] = {0, 3,
					5}; /* in flight, queued for a node, for the window */
	uint64_t ids[6];

	machine_rule("slow 10ms");
	mad_port_set(port, MAD_PORT_GMP_WINDOW, 2);
	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 1);
	for (unsigned i = 0; i < 6; i++)
		ids[i] = submit(PMA_SET, leaf(1 + i / 2), &outcomes[i]);
	assert_int_equal(mad_async_cancel(async, 0), -ENOENT);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(mad_async_cancel(async, ids[cancelled[i]]), 0);
		assert_int_equal(mad_async_cancel(async, ids[cancelled[i]]), -ENOENT);
	}
	assert_int_equal(outcomes[0].calls, 0);
	assert_int_equal(stats_of(async).in_flight, 2);
	assert_int_equal(mad_async_process(async), 3);
	assert_int_equal(mad_async_wait(async, -1), 3);
	assert_int_equal(mad_async_cancel(async, ids[2]), -ENOENT); /* complete */
	for (int i = 0; i < 6; i++)
		expect_outcome(&outcomes[i], i % 3 == 0 || i == 5 ? -ECANCELED : 0);
	/* the response of the cancelled request */
	assert_int_equal(stats_of(async).dropped, 1);
	/* IDs are not used again */
	assert_int_not_equal(submit(PMA_SET, leaf(1), &outcomes[6]), ids[0]);
	assert_int_equal(mad_async_cancel(async, ids[0]), -ENOENT);
	mad_async_wait(async, -1);
	expect_outcome(&outcomes[6], 0);
}

static void *call_silent(void *arg)
{
	return ask(rpc_of(SMP_GET), leaf(7)) ? NULL : arg;
}

/* However much time the call has left. */
TEST(a_late_blocking_call_gives_its_place_to_an_engine)
{
	machine_rule("silent on n7");
	mad_rpc_set_retries(port, 1);
	mad_rpc_set_timeout(port, 60000);
	mad_port_set(port, MAD_PORT_SMP_WINDOW, 1);
	/* in mad_async_wait(), and by an event loop */
	for (unsigned loops = 0; loops < 2; loops++) {
		pthread_t caller;

		mad_port_set(port, MAD_PORT_RATE, loops ? 5 : 0);
		caller = start(call_silent, NULL);
		machine_pass(MS);
		submit(SMP_GET, leaf(1), &outcomes[loops]);
		assert_int_equal(stats_of(async).queued, 1);
		while (loops && !outcomes[1].calls) {
			assert_true(loop_is_awake(async, 20000));
			mad_async_process(async);
		}
		assert_int_equal(mad_async_wait(async, 20000), !loops);
		expect_outcome(&outcomes[loops], 0);
		join(caller);
	}
}

/* --- statistics ----------------------------------------------------------------- */

TEST(statistics_have_the_shortest_the_longest_and_the_mean_round_trip)
{
	static const unsigned slow_us[] = {5000, 30000, 1000, 1100000000};
	uint64_t sum = 0;
	uint32_t least = UINT32_MAX, most = 0;

	assert_int_equal(stats_of(async).rtt_min_us + stats_of(async).rtt_max_us, 0);
	mad_rpc_set_timeout(port, 2000 * 1000);
	mad_rpc_set_retries(port, 1);
	for (unsigned i = 0; i < 4; i++) {
		uint32_t rtt;

		machine_rule("slow %uus", slow_us[i]);
		submit(PMA_SET, leaf(1), &outcomes[i]);
		assert_int_equal(mad_async_wait(async, -1), 1);
		rtt = outcomes[i].rtt_us;
		assert_in_range(rtt, slow_us[i], slow_us[i] + 100);
		sum += rtt;
		least = rtt < least ? rtt : least;
		most = rtt > most ? rtt : most;
		assert_int_equal(stats_of(async).rtt_min_us, least);
		assert_int_equal(stats_of(async).rtt_max_us, most);
		assert_int_equal(stats_of(async).rtt_mean_us, sum / (i + 1));
		if (!i)
			assert_int_equal(stats_of(async).gmp.rtt_smoothed_us, rtt);
	}
}

/* Since the engine exists: responses that no request waits for, or to another attribute. */
TEST(statistics_count_what_was_dropped)
{
	uint8_t stray[MACHINE_MAD] = {1, IB_PERFORMANCE_CLASS, 1, IB_MAD_METHOD_GET_RESPONSE};
	struct mad_async *other;

	machine_rule("slow 100ms");
	submit(PMA_SET, leaf(1), &outcomes[0]);
	memcpy(stray + 4, sent_before(0) + 4, 20);
	stray[17] ^= 1;
	machine_send("n1", stray, 0);
	machine_pass(MS);
	assert_int_equal(mad_async_process(async), 0);
	assert_int_equal(stats_of(async).mismatched, 1);
	assert_int_equal(stats_of(async).dropped, 1);
	other = mad_async_create(port);
	assert_int_equal(stats_of(other).mismatched + stats_of(other).dropped, 0);
	mad_async_free(other);
	run(1, 0);
}

TEST(statistics_may_be_shorter_or_longer_than_the_library_s)
{
	struct {
		struct mad_async_stats known;
		uint8_t unknown[40];
	} stats;
	const uint8_t zeros[sizeof(stats.unknown)] = {0};

	submit_many(3);
	memset(&stats, 0xff, sizeof(stats));
	assert_int_equal(mad_async_get_stats(async, &stats.known, 8), 0);
	assert_int_equal(stats.known.submitted, 3);
	assert_int_equal(stats.known.completed, UINT64_MAX);
	assert_int_equal(mad_async_get_stats(async, &stats.known, sizeof(stats)), 0);
	assert_memory_equal(stats.unknown, zeros, sizeof(zeros));
}

/* --- children ------------------------------------------------------------------- */

static int child_of_many_requests(void)
{
	struct outcome outcome = {0};
	struct mad_async_stats stats;

	EXPECT(mad_async_get_stats(async, &stats, sizeof(stats)) == 0);
	EXPECT(stats.gmp.window == 3);
	EXPECT(loop_is_awake(async, 0));
	EXPECT(mad_async_wait(async, -1) == MANY);
	EXPECT(mad_async_process(async) == 0); /* reads what came for the parent */
	EXPECT(!loop_is_awake(async, 0));
	for (int i = 0; i < MANY; i++)
		EXPECT(outcomes[i].calls == 1 && outcomes[i].error == -ECANCELED);
	submit(SMP_GET, leaf(5), &outcome);
	EXPECT(mad_async_wait(async, -1) == 1 && outcome.error == 0);
	EXPECT(mad_async_get_stats(async, &stats, sizeof(stats)) == 0);
	EXPECT(stats.submitted == MANY + 1 && stats.completed == MANY + 1);
	EXPECT(stats.queued == 0 && stats.in_flight == 0);
	mad_async_free(async);
	mad_rpc_close_port(port);
	return 0;
}

static int child_that_closes(void)
{
	unsigned before = machine_calls(MACHINE_IOCTL);

	mad_async_free(async);
	mad_rpc_close_port(port);
	/* the agents belong to the handle, which both processes have */
	EXPECT(machine_calls(MACHINE_IOCTL) == before);
	return 0;
}

TEST(a_child_gets_its_parent_s_requests_back_and_can_go_on)
{
	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 1);
	mad_port_set(port, MAD_PORT_GMP_WINDOW, 3);
	(void)mad_async_poll_fd(async);
	submit_many(MANY);
	run_in_child(child_of_many_requests);
	run_in_child(child_that_closes);
	/* and the parent is not affected */
	assert_int_equal(stats_of(async).completed, 0);
	run(MANY, 0);
}
