/* SPDX-License-Identifier: BSD-2-Clause */

/* Asynchronous requests in one thread: submitting, callbacks, event loops, the end. */

#define MANY 100
#include "port_state.h"
#include "async_fixture.h"
#include "test.h"

#include <infiniband/mad_fields.h>
#include <pthread.h>

#include <limits.h>
#include <unistd.h>

FIXTURE(async_setup, async_teardown);

/* Requests without a response to so many LIDs. */
static void submit_many(int count)
{
	for (int i = 0; i < count; i++)
		submit(async, i & 1 ? set_request() : get_request(), i + 1, &outcomes[i], NULL);
}

/* --- submitting ----------------------------------------------------------------- */

TEST(each_request_gets_its_own_response)
{
	device_on_write(echo, NULL);
	submit_many(MANY);
	assert_int_equal(mad_async_wait(async, -1), MANY);
	expect_all(MANY, 0);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(outcomes[i].lid_byte, i + 1);
		assert_int_equal(outcomes[i].length, IB_MAD_SIZE);
		assert_int_equal(outcomes[i].data_size, IB_MAD_SIZE - 64);
		assert_int_equal(outcomes[i].transmissions, 1);
	}
	assert_int_equal(stats_of(async).sent, MANY);
	assert_int_equal(mad_async_wait(async, -1), 0);
}

TEST(responses_may_come_in_any_order)
{
	mad_port_set(port, MAD_PORT_SMP_WINDOW, MANY);
	mad_port_set(port, MAD_PORT_GMP_WINDOW, MANY);
	submit_many(MANY);
	assert_int_equal(device_written(), MANY);
	for (unsigned i = 0; i < MANY; i++)
		device_respond(device_packet(i * 37 % MANY), 0, 0, NULL, 0);
	assert_int_equal(mad_async_wait(async, -1), MANY);
	expect_all(MANY, 0);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(outcomes[i].lid_byte, i + 1);
}

TEST(nothing_is_called_back_in_submit)
{
	device_on_write(echo, NULL);
	submit_many(1);
	assert_int_equal(outcomes[0].calls, 0);
	assert_int_equal(mad_async_process(async), 1);
	assert_int_equal(outcomes[0].calls, 1);
}

TEST(the_caller_s_structures_stay_as_they_are)
{
	const uint8_t five[] = {0, 0, 0, 5};
	ib_rpc_t rpc = get_request(), rpc_before = rpc;
	ib_portid_t to = to_lid(3), to_before = to;

	rpc.trid = rpc_before.trid = 5;
	assert_int_equal(mad_async_submit(async, &rpc, &to, NULL, 0, note, outcomes, NULL), 0);
	assert_memory_equal(&rpc, &rpc_before, sizeof(rpc));
	assert_memory_equal(&to, &to_before, sizeof(to));
	assert_memory_not_equal(device_packet(0)->mad + 12, five, sizeof(five)); /* its own */
}

/* The QP and the Q_Key of the n-th packet. */
static void expect_sent_to(unsigned n, uint32_t qp, uint32_t qkey)
{
	assert_int_equal(be32toh(device_packet(n)->header.addr.qpn), qp);
	assert_int_equal(be32toh(device_packet(n)->header.addr.qkey), qkey);
}

TEST(a_gmp_by_lid_alone_goes_to_qp_1)
{
	ib_rpc_t smp = get_request(), gmp = set_request();
	ib_portid_t lid_alone = {.lid = 3}, other = {.lid = 3, .qp = 9, .qkey = 7};
	struct mad_message message;

	assert_int_equal(
		mad_async_submit(async, &gmp, &lid_alone, NULL, 0, note, outcomes, NULL), 0);
	expect_sent_to(0, 1, IB_DEFAULT_QP1_QKEY);
	assert_int_equal(mad_async_submit(async, &gmp, &other, NULL, 0, note, outcomes, NULL),
			 0);
	expect_sent_to(1, 9, 7);
	assert_int_equal(
		mad_async_submit(async, &smp, &lid_alone, NULL, 0, note, outcomes, NULL), 0);
	expect_sent_to(2, 0, 0);
	device_on_write(echo, NULL);
	assert_int_equal(mad_rpc_message(port, &gmp, &lid_alone, NULL, 0, &message), 0);
	mad_message_free(&message);
	expect_sent_to(3, 1, IB_DEFAULT_QP1_QKEY);
	assert_int_equal(lid_alone.qp, 0);
	assert_int_equal(mad_rpc_message(port, &smp, &lid_alone, NULL, 0, &message), 0);
	mad_message_free(&message);
	expect_sent_to(4, 0, 0);
	/* the same values as in rdma-core */
	assert_null(mad_rpc(port, &gmp, &lid_alone, NULL, NULL));
	expect_sent_to(5, 0, 0);
}

TEST(congestion_control_requests_have_their_key)
{
	const uint8_t key[] = {1, 2, 3, 4, 5, 6, 7, 8};
	ib_rpc_cc_t rpc = {.mgtclass = IB_CC_CLASS,
			   .method = IB_MAD_METHOD_GET,
			   .dataoffs = IB_CC_DATA_OFFS,
			   .cckey = 0x0102030405060708};
	ib_portid_t to = to_lid(3);

	assert_int_equal(mad_async_submit(async, (ib_rpc_t *)(void *)&rpc, &to, NULL, 0, note,
					  outcomes, NULL),
			 0);
	assert_memory_equal(device_packet(0)->mad + 24, key, 8);
}

TEST(what_makes_no_sense_is_refused)
{
	static uint8_t payload[1000];
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(3);
	struct mad_async_stats stats;

#define SUBMIT(engine, rpc, to, size, callback) \
	mad_async_submit(engine, rpc, to, payload, size, callback, outcomes, NULL)
	assert_int_equal(SUBMIT(NULL, &rpc, &to, 1, note), -EINVAL);
	assert_int_equal(SUBMIT(async, NULL, &to, 1, note), -EINVAL);
	assert_int_equal(SUBMIT(async, &rpc, NULL, 1, note), -EINVAL);
	assert_int_equal(SUBMIT(async, &rpc, &to, 1, NULL), -EINVAL);
	assert_int_equal(SUBMIT(async, &rpc, &to, 1000, note), -EMSGSIZE);
	rpc.mgtclass = IB_DEVICE_MGMT_CLASS;
	assert_int_equal(SUBMIT(async, &rpc, &to, 1, note), -EPROTONOSUPPORT);
	rpc = get_request();
	rpc.mgtclass = IB_SMI_DIRECT_CLASS;
	to.lid = 0;
	to.drpath.cnt = 64;
	assert_int_equal(SUBMIT(async, &rpc, &to, 1, note), -EINVAL);
	assert_int_equal(device_written(), 0);
	assert_int_equal(stats_of(async).submitted, 0);
	assert_int_equal(mad_async_wait(async, -1), 0);

	assert_fails_null(mad_async_create(NULL), EINVAL);
	assert_int_equal(mad_async_process(NULL), -EINVAL);
	assert_int_equal(mad_async_wait(NULL, -1), -EINVAL);
	assert_int_equal(mad_async_poll_fd(NULL), -EINVAL);
	assert_int_equal(mad_async_get_stats(NULL, &stats, sizeof(stats)), -EINVAL);
	assert_int_equal(mad_async_get_stats(async, NULL, sizeof(stats)), -EINVAL);
	mad_async_free(NULL);
}

TEST(a_request_that_is_refused_takes_no_memory)
{
	static uint8_t payload[1000];
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(3);
	unsigned before = 0;

	for (int i = 0; i < 100; i++) {
		assert_int_equal(mad_async_submit(async, &rpc, &to, payload, sizeof(payload),
						  note, outcomes, NULL),
				 -EMSGSIZE);
		if (!i)
			before = device_allocations();
	}
	assert_int_equal(device_allocations(), before);
}

TEST(each_allocation_of_a_submission_may_fail)
{
	static const uint8_t payload[1000];
	ib_rpc_t rpc = table_request();
	ib_portid_t to = to_lid(3);
	unsigned failed = 0;
	int ret;

	for (int i = 0; i < 2; i++) {
		ret = -ENOMEM;
		for (unsigned n = 1; ret; n++) {
			device_fail_malloc(n);
			ret = mad_async_submit(async, &rpc, &to, payload, sizeof(payload), note,
					       outcomes, NULL);
			device_fail_malloc(0);
			assert_true(ret == 0 || ret == -ENOMEM);
			failed += ret != 0;
		}
	}
	assert_true(failed >= 4); /* two of the pool, the timers, the packet */
	assert_int_equal(stats_of(async).submitted, 2);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	device_respond(device_packet(1), 0, 0, NULL, 0);
	assert_int_equal(mad_async_wait(async, -1), 2);
	assert_int_equal(outcomes[0].error, 0);
	device_fail_malloc(1);
	assert_null(mad_async_create(port));
}

#define VENDOR_RMPP_CLASS 0x36

static int respond_cut(const struct device_packet *packet, void *arg)
{
	(void)arg;
	respond_announced(packet, 421, 3424, 1);
	return 0;
}

TEST(long_requests_and_responses_go_by_rmpp)
{
	static const uint8_t payload[1000] = {42};
	ib_rpc_t rpc = table_request();
	ib_portid_t to = to_lid(3);

	assert_int_equal(
		mad_async_submit(async, &rpc, &to, payload, 1000, note, outcomes, NULL), 0);
	assert_int_equal(device_packet(0)->length, 1056);
	respond_long(device_packet(0), 5000, 9);
	assert_int_equal(mad_async_wait(async, -1), 1);
	assert_int_equal(outcomes[0].error, 0);
	assert_int_equal(outcomes[0].length, 5000);
	assert_int_equal(outcomes[0].data_size, 5000 - IB_SA_DATA_OFFS);
}

/* --- messages that lost segments ---------------------------------------------------- */

/* A message, the payload that its first segment announces, and the result. */
struct cut_row {
	int mgmt_class;
	size_t length;
	uint32_t announced;
	int error;
};

static void expect_cut(const struct cut_row *row)
{
	ib_rpc_t rpc = table_request();
	unsigned number = device_written();

	rpc.mgtclass = row->mgmt_class;
	memset(&outcomes[0], 0, sizeof(outcomes[0]));
	submit(async, rpc, 3, &outcomes[0], NULL);
	respond_announced(device_packet(number), row->length, row->announced, 9);
	assert_int_equal(mad_async_wait(async, -1), 1);
	if (outcomes[0].error != row->error ||
	    outcomes[0].length != (row->error ? 0 : row->length))
		fail_msg("class 0x%02x, %zu bytes, %u announced: %d", row->mgmt_class,
			 row->length, row->announced, outcomes[0].error);
}

TEST(a_message_that_is_shorter_than_announced_is_an_error)
{
	static const struct cut_row rows[] = {
		/* 3,104 bytes of data in 16 segments, each with 20 bytes of header */
		{IB_SA_CLASS, 3160, 3424, 0},
		{IB_SA_CLASS, 3159, 3424, -EBADMSG},
		{IB_SA_CLASS, 421, 3424, -EBADMSG},
		{IB_SA_CLASS, 256, 3424, -EBADMSG},
		{IB_SA_CLASS, 40, 3424, -EBADMSG},
		{IB_SA_CLASS, 3160, UINT32_MAX, -EBADMSG},
		/* the length was not known, or does not count headers */
		{IB_SA_CLASS, 3160, 0, 0},
		{IB_SA_CLASS, 3160, 3104, 0},
		/* one segment */
		{IB_SA_CLASS, 256, 220, 0},
		{IB_SA_CLASS, 256, 221, -EBADMSG},
		{IB_SA_CLASS, 100, 64, 0},
		{IB_SA_CLASS, 100, 65, -EBADMSG},
		/* 4 bytes of header in each segment */
		{VENDOR_RMPP_CLASS, 256 + 216, 440, 0},
		{VENDOR_RMPP_CLASS, 256 + 215, 440, -EBADMSG},
		/* the agent has no RMPP: these bytes are data */
		{IB_PERFORMANCE_CLASS, 256, 3424, 0},
	};

	assert_int_equal(mad_register_client_via(VENDOR_RMPP_CLASS, 1, port), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		expect_cut(&rows[i]);
}

/* Any byte that is missing. */
TEST(whatever_is_missing_a_message_is_an_error)
{
	const char *seed = getenv("TEST_SEED");
	unsigned state = seed ? (unsigned)strtoul(seed, NULL, 0) : (unsigned)now_us();
	size_t length, missing;
	uint32_t announced;

	print_message("TEST_SEED=%u\n", state);
	for (int i = 0; i < 500; i++) {
		state = state * 1664525 + 1013904223;
		length = IB_SA_DATA_OFFS + 1 + (state >> 8) % 5000;
		announced = (uint32_t)(length - IB_SA_DATA_OFFS +
				       (length - IB_SA_DATA_OFFS + 199) / 200 * 20);
		state = state * 1664525 + 1013904223;
		missing = 1 + (state >> 8) % (length - 36);
		expect_cut(&(struct cut_row){IB_SA_CLASS, length, announced, 0});
		expect_cut(
			&(struct cut_row){IB_SA_CLASS, length - missing, announced, -EBADMSG});
	}
}

TEST(blocking_calls_report_a_message_that_is_cut)
{
	uint8_t data[IB_SA_DATA_SIZE];
	ib_rpc_t rpc = table_request();
	ib_portid_t to = to_lid(3);
	struct mad_message message;

	device_on_write(respond_cut, NULL);
	assert_fails_null(mad_rpc_rmpp(port, &rpc, &to, NULL, data), EBADMSG);
	assert_fails_null(mad_rpc(port, &rpc, &to, data, data), EBADMSG);
	assert_int_equal(mad_rpc_message(port, &rpc, &to, NULL, 0, &message), -EBADMSG);
	assert_null(message.mad);
}

TEST(a_request_is_as_long_as_its_payload_makes_it)
{
	static const uint8_t payload[1000] = {42};
	static const struct {
		const uint8_t *payload;
		size_t size, length;
	} requests[] = {{payload, 200, 256}, {payload, 201, 257}, {NULL, 1000, 256}};
	ib_rpc_t rpc = table_request();
	ib_portid_t to = to_lid(3);

	device_on_write(echo, NULL);
	for (unsigned i = 0; i < sizeof(requests) / sizeof(*requests); i++) {
		assert_int_equal(mad_async_submit(async, &rpc, &to, requests[i].payload,
						  requests[i].size, note, outcomes, NULL),
				 0);
		assert_int_equal(device_packet(i)->length, requests[i].length);
		assert_int_equal(mad_async_wait(async, -1), 1);
	}
}

TEST(lost_segments_of_a_request_are_sent_again_until_its_timeout)
{
	static const struct {
		int timeout_ms;
		unsigned retries;
	} requests[] = {{1, 0}, {2000, 0}, {2001, 1}, {20000, 9}};
	static const uint8_t payload[1000] = {42};
	ib_rpc_t rpc = table_request();
	ib_portid_t to = to_lid(3);

	for (unsigned i = 0; i < sizeof(requests) / sizeof(*requests); i++) {
		rpc.timeout = requests[i].timeout_ms;
		device_on_write(echo, NULL);
		assert_int_equal(
			mad_async_submit(async, &rpc, &to, payload, 1000, note, outcomes, NULL),
			0);
		assert_int_equal(mad_async_wait(async, -1), 1);
		assert_int_equal(device_packet(i)->header.timeout_ms, requests[i].timeout_ms);
		assert_int_equal(device_packet(i)->header.retries, requests[i].retries);
	}
	/* the library retransmits a request of one MAD */
	assert_int_equal(mad_async_submit(async, &rpc, &to, payload, 100, note, outcomes, NULL),
			 0);
	assert_int_equal(mad_async_wait(async, -1), 1);
	assert_int_equal(device_packet(4)->header.retries, 0);
}

static void expect_no_data(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	note(engine, reply, arg);
	assert_null(reply->data);
	assert_int_equal(reply->data_size, 0);
}

/* Just up to where the data would begin, and without a response. */
TEST(a_reply_without_data_has_no_data)
{
	for (int i = 0; i < 3; i++)
		submit_with(async, table_request(), 3, expect_no_data, &outcomes[i]);
	respond_long(device_packet(0), IB_SA_DATA_OFFS, 1);
	respond_long(device_packet(1), IB_SA_DATA_OFFS - 1, 1);
	device_time_out(device_packet(2));
	mad_rpc_set_retries(port, 1);
	device_on_write(time_out, NULL);
	assert_int_equal(mad_async_wait(async, -1), 3);
	assert_int_equal(outcomes[0].length, IB_SA_DATA_OFFS);
	assert_int_equal(outcomes[1].length, IB_SA_DATA_OFFS - 1);
	assert_int_equal(outcomes[2].error, -ETIMEDOUT);
}

TEST(a_status_is_an_error_with_a_response)
{
	submit_many(2);
	device_respond(device_packet(0), 0x1c, 0, NULL, 0);
	device_respond(device_packet(1), 0x0c, 0, NULL, 0);
	assert_int_equal(mad_async_wait(async, -1), 2);
	expect_all(2, -EIO);
	assert_int_equal(outcomes[0].status, 0x1c);
	assert_int_equal(outcomes[1].status, 0x0c);
	assert_int_equal(outcomes[1].length, IB_MAD_SIZE);
}

/* --- time ----------------------------------------------------------------------- */

TEST(a_request_without_a_response_times_out_once)
{
	int64_t start = now_ms();
	ib_rpc_t rpc;

	set_late_after(QUICK);
	mad_rpc_set_retries(port, 2);
	for (int i = 0; i < 20; i++) {
		rpc = i & 1 ? set_request() : get_request();
		rpc.timeout = 40;
		submit(async, rpc, i + 1, &outcomes[i], NULL);
	}
	assert_int_equal(mad_async_wait(async, -1), 20);
	assert_true(now_ms() - start >= 80);
	expect_all(20, -ETIMEDOUT);
	for (int i = 0; i < 20; i++)
		assert_true(outcomes[i].transmissions >= (i & 1 ? 2 : 1));
	assert_int_equal(stats_of(async).timed_out, 20);
	assert_true(stats_of(async).retried >= 10);
}

TEST(the_kernel_s_report_leads_to_the_next_attempt)
{
	mad_rpc_set_retries(port, 4);
	device_on_write(time_out, NULL);
	submit(async, set_request(), 5, &outcomes[0], NULL);
	assert_int_equal(mad_async_wait(async, -1), 1);
	expect_all(1, -ETIMEDOUT);
	assert_int_equal(outcomes[0].transmissions, 4);
	assert_int_equal(device_written(), 4);
}

TEST(a_request_keeps_its_id_in_every_attempt)
{
	ib_rpc_t rpcs[] = {get_request(), set_request()};

	device_hold_tids(true);
	device_on_write(time_out, NULL);
	mad_rpc_set_retries(port, 3);
	for (unsigned i = 0; i < 2; i++) {
		rpcs[i].timeout = 20;
		submit(async, rpcs[i], 5, &outcomes[i], NULL);
		assert_int_equal(mad_async_wait(async, -1), 1);
		assert_int_equal(outcomes[i].error, -ETIMEDOUT);
		assert_int_equal(device_written(), 3 * i + 3);
		for (unsigned j = 1; j < 3; j++)
			assert_memory_equal(device_packet(3 * i)->mad + 12,
					    device_packet(3 * i + j)->mad + 12, 4);
	}
	assert_memory_not_equal(device_packet(0)->mad + 12, device_packet(3)->mad + 12, 4);
}

TEST(huge_and_negative_times_are_for_ever)
{
	const int values[] = {INT_MAX, -1, INT_MIN};

	mad_rpc_set_retries(port, INT_MAX);
	for (int i = 0; i < 6; i++) {
		ib_rpc_t rpc = i & 1 ? set_request() : get_request();

		rpc.timeout = values[i / 2];
		submit(async, rpc, i + 1, &outcomes[i], NULL);
	}
	assert_true(timeout_ms_of(async) > 0);
	for (unsigned i = 0; i < 6; i++)
		device_respond(device_packet(i), 0, 0, NULL, 0);
	assert_int_equal(mad_async_wait(async, -1), 6);
	expect_all(6, 0);
}

static int echo_and_note_time(const struct device_packet *packet, void *arg)
{
	*(int64_t *)arg = now_us();
	return echo(packet, NULL);
}

TEST(a_busy_node_is_asked_again_later)
{
	int64_t before, written = 0;

	set_late_after(QUICK);
	submit(async, get_request(), 1, &outcomes[0], NULL);
	device_respond(device_packet(0), IB_MAD_STS_BUSY, 0, NULL, 0);
	device_on_write(echo_and_note_time, &written);
	before = now_us();
	assert_int_equal(mad_async_wait(async, -1), 1);
	assert_true(written - before >= 10000);
	expect_all(1, 0);
	assert_int_equal(outcomes[0].transmissions, 2);
	assert_int_equal(stats_of(async).busy, 1);
}

/* --- callbacks ------------------------------------------------------------------ */

static int again;

static void submit_again(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	note(engine, reply, arg);
	if (!again)
		return;
	again--;
	submit_with(engine, get_request(), 7, submit_again, arg);
}

TEST(callbacks_may_submit)
{
	device_on_write(echo, NULL);
	again = 500;
	submit_with(async, get_request(), 7, submit_again, &outcomes[0]);
	assert_int_equal(mad_async_wait(async, -1), 501);
	assert_int_equal(outcomes[0].calls, 501);
	assert_int_equal(stats_of(async).completed, 501);
}

static uint64_t victim;

static void cancel_another(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	note(engine, reply, arg);
	assert_int_equal(mad_async_cancel(engine, victim), 0);
	assert_int_equal(mad_async_cancel(engine, victim), -ENOENT);
}

TEST(callbacks_may_cancel)
{
	submit_with(async, get_request(), 7, cancel_another, &outcomes[0]);
	submit(async, set_request(), 3, &outcomes[1], &victim);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	assert_int_equal(mad_async_wait(async, -1), 2);
	assert_int_equal(outcomes[0].error, 0);
	assert_int_equal(outcomes[1].error, -ECANCELED);
}

static void cancel_itself(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	note(engine, reply, arg);
	assert_int_equal(mad_async_cancel(engine, victim), -ENOENT);
}

TEST(a_request_in_its_callback_is_done)
{
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(7);

	device_on_write(echo, NULL);
	mad_async_submit(async, &rpc, &to, NULL, 0, cancel_itself, &outcomes[0], &victim);
	assert_int_equal(mad_async_wait(async, -1), 1);
	expect_all(1, 0);
}

static void block(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	uint8_t data[IB_SMP_DATA_SIZE] = {0x11};
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(9);

	note(engine, reply, arg);
	assert_ptr_equal(mad_rpc(port, &rpc, &to, data, data), data);
	assert_int_equal(data[0], 0x11);
	assert_int_equal(mad_async_process(engine), 0);
	assert_int_equal(mad_async_wait(engine, -1), -EDEADLK);
	mad_async_free(engine); /* a callback must not call this */
}

TEST(callbacks_may_make_blocking_calls)
{
	device_on_write(echo, NULL);
	for (int i = 0; i < 50; i++)
		submit_with(async, set_request(), 7, block, &outcomes[0]);
	assert_int_equal(mad_async_wait(async, -1), 50);
	assert_int_equal(outcomes[0].calls, 50);
}

static void run_another(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	struct mad_async *other = mad_async_create(port);

	note(engine, reply, arg);
	submit(other, get_request(), 3, &outcomes[1], NULL);
	assert_int_equal(mad_async_wait(other, -1), 1);
	submit(other, get_request(), 3, &outcomes[2], NULL);
	mad_async_free(other);
}

TEST(callbacks_may_run_other_engines)
{
	device_on_write(echo, NULL);
	submit_with(async, set_request(), 7, run_another, &outcomes[0]);
	assert_int_equal(mad_async_wait(async, -1), 1);
	assert_int_equal(outcomes[1].error, 0);
	assert_int_equal(outcomes[2].error, -ECANCELED);
}

/* --- event loops ---------------------------------------------------------------- */

/* An event loop of a program; returns the number of completions. */
static int loop(int wanted)
{
	struct pollfd fds[] = {{.fd = mad_rpc_portid(port), .events = POLLIN},
			       {.fd = mad_async_poll_fd(async), .events = POLLIN}};
	int count = 0, ret;

	while (count < wanted) {
		assert_int_not_equal(poll(fds, 2, timeout_ms_of(async)), -1);
		ret = mad_async_process(async);
		assert_true(ret >= 0);
		count += ret;
	}
	return count;
}

TEST(an_event_loop_needs_a_descriptor_and_a_time)
{
	assert_int_equal(timeout_ms_of(async), -1);
	device_delay(2000);
	device_on_write(echo, NULL);
	submit_many(MANY);
	assert_true(timeout_ms_of(async) > 0);
	assert_int_equal(loop(MANY), MANY);
	expect_all(MANY, 0);
	assert_int_equal(timeout_ms_of(async), -1);
}

/* The event loop of an idle engine sleeps. */
TEST(an_event_loop_is_not_woken_for_nothing)
{
	struct pollfd fds[] = {{.fd = mad_rpc_portid(port), .events = POLLIN},
			       {.fd = mad_async_poll_fd(async), .events = POLLIN}};

	assert_int_equal(poll(fds, 2, 0), 0);
	submit_many(2);
	timeout_ms_of(async);
	mad_async_process(async);
	for (int i = 0; i < 3; i++) {
		assert_true(timeout_ms_of(async) > 0);
		assert_int_equal(poll(fds, 2, 0), 0);
		assert_int_equal(mad_async_process(async), 0);
	}
}

TEST(a_cancelled_request_is_there_at_once)
{
	uint64_t id;

	submit(async, set_request(), 1, &outcomes[0], &id);
	assert_true(timeout_ms_of(async) > 0);
	/* a program may use 0 for "no request" */
	assert_int_not_equal(id, 0);
	assert_int_equal(mad_async_cancel(async, 0), -ENOENT);
	assert_int_equal(mad_async_cancel(async, id), 0);
	assert_int_equal(timeout_ms_of(async), 0);
	assert_int_equal(loop(1), 1);
}

/* --- mad_async_get() ------------------------------------------------------------ */

static uint64_t sent(enum MAD_FIELDS field, int offset)
{
	return mad_read_field(device_packet(device_written() - 1)->mad, offset, field);
}

TEST(a_get_needs_an_attribute_alone)
{
	ib_portid_t switch_ = {.lid = 7, .sl = 3, .qp = 5}, beside = {.drpath.cnt = 1};
	uint64_t id = 0;

	smp_mkey_set(port, 0x1234);
	assert_int_equal(
		mad_async_get(async, &switch_, MAD_PORT_INFO, 3, note, &outcomes[0], &id), 0);
	assert_int_not_equal(id, 0);
	assert_int_equal(sent(IB_MAD_MGMTCLASS_F, 0), IB_SMI_CLASS);
	assert_int_equal(sent(IB_MAD_METHOD_F, 0), IB_MAD_METHOD_GET);
	assert_int_equal(sent(IB_MAD_ATTRID_F, 0), IB_ATTR_PORT_INFO);
	assert_int_equal(sent(IB_MAD_ATTRMOD_F, 0), 3);
	assert_true(sent(IB_MAD_MKEY_F, 0) == 0x1234);
	assert_int_equal(mad_async_cancel(async, id), 0);
	assert_int_equal(
		mad_async_get(async, &beside, MAD_NODE_INFO, 0, note, &outcomes[1], NULL), 0);
	assert_int_equal(sent(IB_MAD_MGMTCLASS_F, 0), IB_SMI_DIRECT_CLASS);
	assert_int_equal(sent(IB_MAD_ATTRID_F, 0), IB_ATTR_NODE_INFO);
	switch_.qp = 0;
	assert_int_equal(
		mad_async_get(async, &switch_, MAD_PORT_COUNTERS, 9, note, &outcomes[2], NULL),
		0);
	assert_int_equal(sent(IB_MAD_MGMTCLASS_F, 0), IB_PERFORMANCE_CLASS);
	assert_int_equal(sent(IB_MAD_ATTRID_F, 0), IB_GSI_PORT_COUNTERS);
	assert_int_equal(sent(IB_MAD_ATTRMOD_F, 0), 0);
	assert_int_equal(sent(IB_PC_PORT_SELECT_F, IB_PC_DATA_OFFS), 9);
	mad_async_cancel(async, MAD_ASYNC_ALL);
	assert_int_equal(mad_async_wait(async, -1), 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(outcomes[i].error, -ECANCELED);
}

TEST(a_get_of_another_class_is_refused)
{
	ib_portid_t to = {.lid = 7};
	unsigned packets = device_written();

	assert_int_equal(mad_async_get(async, &to, IB_ATTR_PORT_INFO, 0, note, NULL, NULL),
			 -EINVAL);
	assert_int_equal(mad_async_get(async, &to, MAD_ATTRIBUTE(IB_SA_CLASS, 0x11), 0, note,
				       NULL, NULL),
			 -EINVAL);
	assert_int_equal(mad_async_get(async, &to, MAD_PORT_COUNTERS, 256, note, NULL, NULL),
			 -EINVAL);
	assert_int_equal(mad_async_get(async, NULL, MAD_PORT_INFO, 0, note, NULL, NULL),
			 -EINVAL);
	assert_int_equal(mad_async_get(NULL, &to, MAD_PORT_INFO, 0, note, NULL, NULL), -EINVAL);
	assert_int_equal(mad_async_get(async, &to, MAD_PORT_INFO, 0, NULL, NULL, NULL),
			 -EINVAL);
	assert_int_equal(device_written(), packets);
}

/* --- several engines ------------------------------------------------------------ */

TEST(engines_on_a_port_share_it)
{
	struct mad_async *engines[5];

	device_on_write(echo, NULL);
	for (int i = 0; i < 5; i++) {
		engines[i] = mad_async_create(port);
		for (int j = 0; j < 20; j++)
			submit(engines[i], j & 1 ? set_request() : get_request(),
			       i * 20 + j + 1, &outcomes[i * 20 + j], NULL);
	}
	/*
	 * the thread that reads does so for all engines; each engine calls back its own
	 * requests
	 */
	while (stats_of(engines[0]).completed < 20)
		mad_async_process(engines[0]);
	for (int i = 20; i < MANY; i++)
		assert_int_equal(outcomes[i].calls, 0);
	for (int i = 1; i < 5; i++)
		assert_int_equal(mad_async_wait(engines[i], -1), 20);
	expect_all(MANY, 0);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(outcomes[i].lid_byte, i + 1);
	for (int i = 0; i < 5; i++)
		mad_async_free(engines[i]);
}

/* A request that an ended engine held back can be sent, and its loop is woken. */
TEST(an_engine_s_end_makes_way_for_another_one)
{
	struct mad_async *other = mad_async_create(port);
	struct pollfd wake = {.fd = mad_async_poll_fd(async), .events = POLLIN};

	mad_port_set(port, MAD_PORT_GMP_WINDOW, 1);
	submit(other, set_request(), 1, &outcomes[0], NULL);
	submit(async, set_request(), 2, &outcomes[1], NULL);
	assert_int_equal(mad_async_process(async), 0);
	assert_int_equal(device_written(), 1);
	mad_async_free(other);
	assert_int_equal(outcomes[0].error, -ECANCELED);
	assert_int_equal(poll(&wake, 1, 0), 1);
	assert_int_equal(mad_async_process(async), 0);
	assert_int_equal(device_written(), 2);
}

static int submit_once(const struct device_packet *packet, void *arg)
{
	(void)packet;
	(void)arg;
	if (device_written() > 1)
		return 0;
	submit(async, set_request(), 4, &outcomes[0], NULL);
	mad_async_process(async);
	timeout_ms_of(async);
	return 0;
}

/*
 * A blocking call whose response is late gives up its place, too: it sends what others have
 * queued.
 */
TEST(a_blocking_call_that_times_out_wakes_an_engine)
{
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(1);

	mad_rpc_set_retries(port, 1);
	mad_port_set(port, MAD_PORT_GMP_WINDOW, 1);
	device_on_write(submit_once, NULL);
	rpc.timeout = 1;
	assert_null(mad_rpc(port, &rpc, &to, NULL, NULL));
	assert_int_equal(stats_of(async).queued, 0);
	assert_int_equal(stats_of(async).in_flight, 1);
	assert_int_equal(device_written(), 2);
}

static int submit_and_echo(const struct device_packet *packet, void *arg)
{
	submit_once(packet, arg);
	return echo(packet, arg);
}

/* A blocking call with its response wakes the threads that send queued requests. */
TEST(a_blocking_call_with_its_response_wakes_an_engine)
{
	struct pollfd wake = {.fd = mad_async_poll_fd(async), .events = POLLIN};
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(1);
	uint8_t data[IB_PC_DATA_SZ] = {0};

	mad_port_set(port, MAD_PORT_GMP_WINDOW, 1);
	device_on_write(submit_and_echo, NULL);
	assert_non_null(mad_rpc(port, &rpc, &to, data, data));
	assert_int_equal(stats_of(async).queued, 1);
	assert_int_equal(poll(&wake, 1, 0), 1);
	assert_int_equal(mad_async_wait(async, -1), 1);
}

static void *run_engine(void *arg)
{
	mad_async_wait(arg, -1);
	return NULL;
}

/* However much time it has left, and whichever thread reads. */
TEST(a_late_request_of_a_blocking_call_gives_its_place_to_a_run)
{
	pthread_t receiver, caller, runner;
	int dead = 7;

	set_late_after(50000);
	mad_rpc_set_retries(port, 1);
	mad_port_set(port, MAD_PORT_GMP_WINDOW, 1);
	device_on_write(echo_but_for, &dead);
	receiver = start_receiver();
	caller = start_call(dead);
	assert_true(device_wait_written(1, LONG_MS));
	submit(async, set_request(), 1, &outcomes[0], NULL);
	runner = start_thread(run_engine, async);
	pthread_join(runner, NULL);
	assert_int_equal(outcomes[0].error, 0);
	/* the call has not returned yet: it has a minute */
	device_time_out(device_packet(0));
	pthread_join(caller, NULL);
	device_remove();
	pthread_join(receiver, NULL);
}

static int fail_but_for(const struct device_packet *packet, void *arg)
{
	return be16toh(packet->header.addr.lid) == *(int *)arg ? 0 : -ENOMEM;
}

/* The window has room for the first request once the request to the dead node is late. */
static pthread_t submit_behind_a_call(device_write_fn *on_write, int *dead)
{
	pthread_t caller;

	set_late_after(20000);
	mad_rpc_set_retries(port, 1);
	mad_port_set(port, MAD_PORT_GMP_WINDOW, 1);
	device_on_write(on_write, dead);
	caller = start_call(*dead);
	assert_true(device_wait_written(1, LONG_MS));
	submit(async, set_request(), 1, &outcomes[0], NULL);
	return caller;
}

/* The call sends it when its own request is late, and then waits for a minute. */
TEST(a_loop_knows_at_once_that_a_blocking_call_could_not_send_a_request)
{
	struct pollfd single = {.fd = mad_async_poll_fd(async), .events = POLLIN};
	pthread_t caller;
	int dead = 7;

	caller = submit_behind_a_call(fail_but_for, &dead);
	do
		assert_int_equal(poll(&single, 1, LONG_MS / 2), 1);
	while (!mad_async_process(async));
	assert_int_equal(outcomes[0].error, -ENOMEM);
	device_time_out(device_packet(0));
	pthread_join(caller, NULL);
}

/* The call waits for a minute, and does not send what may be sent in a fifth of a second. */
TEST(a_loop_is_told_when_a_late_blocking_call_and_the_rate_let_it_send)
{
	struct pollfd wake = {.fd = mad_async_poll_fd(async), .events = POLLIN};
	pthread_t caller;
	int dead = 7;

	assert_int_equal(mad_port_set(port, MAD_PORT_RATE, 5), 0);
	caller = submit_behind_a_call(echo_but_for, &dead);
	while (device_written() < 2) {
		assert_int_equal(poll(&wake, 1, LONG_MS / 2), 1);
		mad_async_process(async);
	}
	device_time_out(device_packet(0));
	pthread_join(caller, NULL);
	assert_true(mad_async_wait(async, -1) >= 0);
	assert_int_equal(outcomes[0].error, 0);
}

/* --- destroying an engine ------------------------------------------------------- */

TEST(an_engine_s_requests_in_flight_are_cancelled_with_it)
{
	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 1);
	for (int i = 0; i < MANY; i++)
		submit(async, i & 1 ? set_request() : get_request(), 1 + i / 3, &outcomes[i],
		       NULL);
	device_respond(device_packet(0), 0, 0, NULL, 0); /* it is not read yet */
	mad_async_free(async);
	async = NULL;
	expect_all(MANY, -ECANCELED);
}

static void submit_in_vain(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(7);

	note(engine, reply, arg);
	assert_int_equal(mad_async_submit(engine, &rpc, &to, NULL, 0, note, arg, NULL),
			 -ECANCELED);
}

TEST(an_engine_that_ends_takes_no_more)
{
	for (int i = 0; i < 30; i++)
		submit_with(async, get_request(), 7, submit_in_vain, &outcomes[0]);
	mad_async_free(async);
	async = NULL;
	assert_int_equal(outcomes[0].calls, 30);
}

/* By a signal, which may also have come before. */
TEST(a_call_of_the_device_that_is_interrupted_is_made_again)
{
	const enum device_call calls[] = {DEVICE_READ, DEVICE_WRITE};
	unsigned reads, polls;

	device_on_write(echo, NULL);
	for (int i = 0; i < 2; i++) {
		device_fail(calls[i], 1, EINTR);
		submit(async, set_request(), 1, &outcomes[i], NULL);
		assert_int_equal(mad_async_wait(async, -1), 1);
		assert_int_equal(outcomes[i].error, 0);
		assert_int_equal(device_written(), i + 1);
	}
	reads = device_calls(DEVICE_READ);
	polls = device_calls(DEVICE_POLL);
	errno = EINTR;
	assert_int_equal(mad_async_process(async), 0);
	assert_int_equal(device_calls(DEVICE_READ), reads + 1);
	assert_int_equal(device_calls(DEVICE_POLL), polls);
	errno = EINTR;
	submit(async, set_request(), 1, &outcomes[2], NULL);
	assert_int_equal(device_written(), 3);
}

TEST(what_cannot_be_sent_fails_alone)
{
	device_on_write(echo, NULL);
	device_fail(DEVICE_WRITE, 2, ENOMEM);
	submit_many(3);
	assert_int_equal(mad_async_wait(async, -1), 3);
	assert_int_equal(outcomes[0].error, 0);
	assert_int_equal(outcomes[1].error, -ENOMEM);
	assert_int_equal(outcomes[2].error, 0);
}

/* On RoCE the kernel resolves the GID in write(), and fails after a second. */
TEST(a_node_that_is_not_found_at_first_is_asked_in_the_next_attempt)
{
	ib_rpc_t set = set_request();

	set.timeout = 1000; /* both attempts end with the time of all attempts */
	mad_rpc_set_retries(port, 2);
	device_on_write(echo, NULL);
	device_fail(DEVICE_WRITE, 1, ETIMEDOUT);
	submit(async, set, 1, &outcomes[0], NULL);
	assert_int_equal(mad_async_wait(async, -1), 1);
	assert_int_equal(outcomes[0].error, 0);
	assert_int_equal(outcomes[0].transmissions, 2);
}

/* Three requests, of which the second one has the longest round trip. */
TEST(statistics_have_the_shortest_the_longest_and_the_mean_round_trip)
{
	const unsigned delays[] = {5000, 30000, 0};
	struct mad_async_stats stats;
	uint32_t sum = 0;

	stats = stats_of(async);
	assert_int_equal(stats.rtt_min_us + stats.rtt_mean_us + stats.rtt_max_us, 0);
	device_on_write(echo, NULL);
	for (unsigned i = 0; i < 3; i++) {
		uint32_t least = UINT32_MAX, most = 0;

		device_delay(delays[i]);
		submit(async, set_request(), 1, &outcomes[i], NULL);
		assert_int_equal(mad_async_wait(async, -1), 1);
		assert_true(outcomes[i].rtt_us >= delays[i]);
		sum += outcomes[i].rtt_us;
		for (unsigned j = 0; j <= i; j++) {
			if (outcomes[j].rtt_us < least)
				least = outcomes[j].rtt_us;
			if (outcomes[j].rtt_us > most)
				most = outcomes[j].rtt_us;
		}
		stats = stats_of(async);
		assert_int_equal(stats.rtt_min_us, least);
		assert_int_equal(stats.rtt_max_us, most);
		assert_int_equal(stats.rtt_mean_us, sum / (i + 1));
		if (!i)
			assert_int_equal(stats.gmp.rtt_smoothed_us, outcomes[i].rtt_us);
	}
}

/* A response that no request is waiting for. */
TEST(statistics_count_what_was_dropped_since_the_engine_exists)
{
	struct ib_user_mad header = {.agent_id = 0};
	uint8_t mad[IB_MAD_SIZE] = {1, IB_SMI_CLASS, 1, IB_MAD_METHOD_GET_RESPONSE};
	struct mad_async *other;

	device_queue(device_fd(), &header, mad, sizeof(mad));
	assert_int_equal(mad_async_process(async), 0);
	assert_int_equal(stats_of(async).dropped, 1);
	other = mad_async_create(port);
	assert_int_equal(stats_of(other).dropped, 0);
	device_queue(device_fd(), &header, mad, sizeof(mad));
	assert_int_equal(mad_async_process(async), 0);
	assert_int_equal(stats_of(async).dropped, 2);
	assert_int_equal(stats_of(other).dropped, 1);
	mad_async_free(other);
}

TEST(statistics_may_be_read_by_older_programs)
{
	struct mad_async_stats stats;

	submit_many(3);
	memset(&stats, 0xff, sizeof(stats));
	assert_int_equal(mad_async_get_stats(async, &stats, 8), 0);
	assert_int_equal(stats.submitted, 3);
	assert_int_equal(stats.completed, UINT64_MAX);
}

TEST(statistics_that_the_library_does_not_have_are_0)
{
	struct {
		struct mad_async_stats known;
		uint8_t unknown[40];
	} stats;
	const uint8_t zeros[sizeof(stats.unknown)] = {0};

	submit_many(3);
	memset(&stats, 0xff, sizeof(stats));
	assert_int_equal(mad_async_get_stats(async, &stats.known, sizeof(stats)), 0);
	assert_int_equal(stats.known.submitted, 3);
	assert_memory_equal(stats.unknown, zeros, sizeof(zeros));
}

/* --- fork -------------------------------------------------------------------- */

#ifndef NO_CHILDREN

static int child_of_many_requests(void)
{
	uint8_t data[IB_SMP_DATA_SIZE] = {0x11};
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(9);
	struct mad_async_stats stats;

	device_on_write(echo, NULL);
	EXPECT(timeout_ms_of(async) == 0);
	EXPECT(mad_async_wait(async, -1) == MANY);
	for (int i = 0; i < MANY; i++) {
		EXPECT(outcomes[i].calls == 1);
		EXPECT(outcomes[i].error == -ECANCELED);
	}
	EXPECT(mad_rpc(port, &rpc, &to, data, data) == data);
	EXPECT(data[0] == 0x11);
	EXPECT(mad_async_submit(async, &rpc, &to, NULL, 0, note, &outcomes[0], NULL) == 0);
	EXPECT(mad_async_wait(async, -1) == 1);
	EXPECT(outcomes[0].error == 0);
	EXPECT(mad_async_get_stats(async, &stats, sizeof(stats)) == 0);
	EXPECT(stats.submitted == MANY + 1 && stats.completed == MANY + 1);
	EXPECT(stats.queued == 0 && stats.in_flight == 0);
	mad_async_free(async);
	mad_rpc_close_port(port);
	return 0;
}

TEST(a_child_gets_its_parent_s_requests_back_and_can_go_on)
{
	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 1);
	for (int i = 0; i < MANY; i++)
		submit(async, i & 1 ? set_request() : get_request(), 1 + i / 3, &outcomes[i],
		       NULL);
	run_in_child(child_of_many_requests);
	/* and the parent is not affected */
	assert_int_equal(stats_of(async).completed, 0);
	device_on_write(echo, NULL);
	for (unsigned i = 0, written = device_written(); i < written; i++)
		device_respond(device_packet(i), 0, 0, NULL, 0);
	assert_int_equal(mad_async_wait(async, -1), MANY);
	expect_all(MANY, 0);
}

static int child_that_closes(void)
{
	unsigned before = device_calls(DEVICE_IOCTL);

	mad_async_free(async);
	mad_rpc_close_port(port);
	EXPECT(device_calls(DEVICE_IOCTL) == before);
	return 0;
}

/* The agents belong to the handle, which both processes have. */
TEST(a_child_that_closes_leaves_its_parent_s_agents_alone)
{
	run_in_child(child_that_closes);
}

static int child_with_a_window(void)
{
	struct mad_async_stats stats;

	EXPECT(mad_async_get_stats(async, &stats, sizeof(stats)) == 0);
	EXPECT(stats.gmp.window == 3);
	return 0;
}

TEST(a_child_s_window_is_its_parent_s)
{
	mad_port_set(port, MAD_PORT_GMP_WINDOW, 3);
	run_in_child(child_with_a_window);
}

static int child_that_is_woken(void)
{
	struct pollfd wake = {.fd = mad_async_poll_fd(async), .events = POLLIN};

	EXPECT(poll(&wake, 1, 0) == 1);
	EXPECT(mad_async_process(async) == 5);
	EXPECT(poll(&wake, 1, 0) == 0);
	return 0;
}

TEST(a_child_has_a_wake_descriptor_of_its_own)
{
	struct pollfd wake = {.fd = mad_async_poll_fd(async), .events = POLLIN};

	submit_many(5);
	mad_async_process(async);
	run_in_child(child_that_is_woken);
	assert_int_equal(poll(&wake, 1, 0), 0);
}

#endif
