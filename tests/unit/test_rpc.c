/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Blocking requests: what is sent, when it is retransmitted, and which response completes it.
 */

#include "port_state.h"
#include "engine_fixture.h"
#include "test.h"

#include <infiniband/mad_errors.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

static uint8_t data[IB_MAD_SIZE];

static int setup(void)
{
	memset(data, 0, sizeof(data));
	return port_setup();
}

FIXTURE(setup, port_teardown);

/* Sends a request to the LID that the data begins with; returns 0 or the errno. */
static int ask(ib_rpc_t *rpc, int lid)
{
	ib_portid_t to = to_lid(lid);

	data[0] = (uint8_t)lid;
	if (!mad_rpc(port, rpc, &to, data, data)) {
		assert_int_not_equal(errno, 0);
		return errno;
	}
	assert_int_equal(errno, 0);
	assert_int_equal(data[0], lid);
	return 0;
}

static int get(int lid)
{
	ib_rpc_t rpc = get_request();

	return ask(&rpc, lid);
}

static int set(int lid)
{
	ib_rpc_t rpc = set_request();

	return ask(&rpc, lid);
}

static void expect_same_id(unsigned a, unsigned b)
{
	assert_memory_equal(device_packet(a)->mad + 12, device_packet(b)->mad + 12, 4);
}

static void expect_another_id(unsigned a, unsigned b)
{
	assert_memory_not_equal(device_packet(a)->mad + 12, device_packet(b)->mad + 12, 4);
}

/* --- the basics ----------------------------------------------------------------- */

TEST(a_request_writes_polls_and_reads_once_and_allocates_nothing)
{
	unsigned writes, polls, reads, allocations;

	device_on_write(echo, NULL);
	/* the entry of a destination is a separate allocation */
	assert_int_equal(get(8), 0);
	assert_int_equal(set(8), 0);
	for (int i = 0; i < 3; i++) {
		writes = device_calls(DEVICE_WRITE);
		polls = device_calls(DEVICE_POLL);
		reads = device_calls(DEVICE_READ);
		allocations = device_allocations();
		assert_int_equal(i & 1 ? get(8) : set(8), 0);
		assert_int_equal(device_calls(DEVICE_WRITE) - writes, 1);
		assert_int_equal(device_calls(DEVICE_POLL) - polls, 1);
		assert_int_equal(device_calls(DEVICE_READ) - reads, 1);
		assert_int_equal(device_allocations() - allocations, 0);
	}
}

TEST(the_response_s_data_comes_back)
{
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(9);
	uint8_t response[IB_SMP_DATA_SIZE + 1] = {0};

	device_on_write(echo, NULL);
	memset(data, 0x5a, sizeof(data));
	assert_ptr_equal(mad_rpc(port, &rpc, &to, data, response), response);
	assert_memory_equal(response, data, IB_SMP_DATA_SIZE);
	assert_int_equal(response[IB_SMP_DATA_SIZE], 0);
	assert_int_equal(rpc.rstatus, 0);
	assert_int_not_equal(rpc.trid, 0);
}

static int respond_shortly(const struct device_packet *packet, void *arg)
{
	uint8_t mad[IB_MAD_SIZE];

	(void)arg;
	device_copy_mad(packet, mad);
	mad[3] |= IB_MAD_RESPONSE;
	device_reply(packet, mad, 40);
	return 0;
}

TEST(a_response_that_ends_before_its_data_has_zeros)
{
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(9);
	uint8_t response[IB_SMP_DATA_SIZE], zeros[IB_SMP_DATA_SIZE] = {0};

	device_on_write(respond_shortly, NULL);
	memset(data, 0x5a, sizeof(data));
	memset(response, 0x5a, sizeof(response));
	assert_ptr_equal(mad_rpc(port, &rpc, &to, data, response), response);
	assert_memory_equal(response, zeros, sizeof(zeros));
}

/* What is behind the buffer of the response does not come back. */
TEST(data_at_the_end_of_a_mad_are_zeros)
{
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(9);
	uint8_t response[] = {0x5a, 0x5a};

	rpc.dataoffs = IB_MAD_SIZE;
	rpc.datasz = 1;
	for (int i = 0; i < 2; i++) {
		device_on_write(i ? respond_shortly : echo, NULL);
		response[0] = 0x5a;
		assert_ptr_equal(mad_rpc_rmpp(port, &rpc, &to, NULL, response), response);
		assert_int_equal(response[0], 0);
		assert_int_equal(response[1], 0x5a);
	}
}

TEST(without_a_buffer_errno_tells_success)
{
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(9);

	device_on_write(echo, NULL);
	errno = EPERM;
	assert_null(mad_rpc(port, &rpc, &to, NULL, NULL));
	assert_int_equal(errno, 0);
}

static int refuse(const struct device_packet *packet, void *arg)
{
	device_respond(packet, *(uint16_t *)arg, 0, NULL, 0);
	return 0;
}

TEST(a_response_s_status_is_an_error_and_reported)
{
	uint16_t status = 0x001c;
	ib_portid_t to = to_lid(0);
	ib_rpc_t rpc = set_request();

	device_on_write(refuse, &status);
	assert_int_equal(ask(&rpc, 3), EIO);
	assert_int_equal(rpc.rstatus, status);

	rpc = get_request();
	rpc.mgtclass = IB_SMI_DIRECT_CLASS;
	assert_fails_null(mad_rpc(port, &rpc, &to, data, data), EIO);
	assert_int_equal(rpc.rstatus, status); /* without the direction bit */
}

TEST(a_request_of_version_1_holds_its_error)
{
	ib_rpc_v1_t rpc = {.mgtclass = IB_SMI_CLASS | IB_MAD_RPC_VERSION1,
			   .method = IB_MAD_METHOD_GET,
			   .dataoffs = IB_SMP_DATA_OFFS,
			   .datasz = IB_SMP_DATA_SIZE,
			   .error = -1};
	ib_portid_t to = to_lid(3);
	uint16_t status = 0x000c;

	device_on_write(echo, NULL);
	assert_non_null(mad_rpc(port, (ib_rpc_t *)(void *)&rpc, &to, data, data));
	assert_int_equal(rpc.error, 0);
	device_on_write(refuse, &status);
	assert_null(mad_rpc(port, (ib_rpc_t *)(void *)&rpc, &to, data, data));
	assert_int_equal(rpc.error, EIO);
}

TEST(what_makes_no_sense_is_refused_and_not_sent)
{
	ib_rpc_t good = get_request(), bad;
	ib_portid_t to = to_lid(3);

	bad = good;
	bad.mgtclass = IB_DEVICE_MGMT_CLASS; /* not registered */
	assert_int_equal(ask(&bad, 3), EINVAL);
	bad = good;
	bad.datasz = -1;
	assert_int_equal(ask(&bad, 3), EINVAL);
	bad = good;
	bad.dataoffs = -1;
	assert_int_equal(ask(&bad, 3), EINVAL);
	bad = good;
	bad.dataoffs = IB_MAD_SIZE + 1;
	assert_int_equal(ask(&bad, 3), EINVAL);
	bad = good;
	bad.datasz = 1000; /* no RMPP in this class */
	assert_int_equal(ask(&bad, 3), EMSGSIZE);
	for (int i = 0; i < 2; i++) {
		bad = good;
		bad.dataoffs = i ? IB_MAD_SIZE + 1 : -1;
		assert_fails_null(mad_rpc_rmpp(port, &bad, &to, NULL, NULL), EINVAL);
	}
	assert_fails_null(mad_rpc(port, &good, NULL, data, data), EINVAL);
	assert_fails_null(mad_rpc(NULL, &good, &to, data, data), EINVAL);
	assert_fails_null(mad_rpc(port, NULL, &to, data, data), EINVAL);
	assert_int_equal(device_written(), 0);
}

/* --- which message is the response ---------------------------------------------- */

/*
 * Messages that are no response to the request: of another transaction, another class, and a
 * request.
 */
static int respond_wrongly_first(const struct device_packet *packet, void *arg)
{
	uint8_t mad[IB_MAD_SIZE];

	(void)arg;
	device_copy_mad(packet, mad);
	mad[3] |= IB_MAD_RESPONSE;
	memset(mad + IB_SMP_DATA_OFFS, 0xee, IB_SMP_DATA_SIZE);
	mad[15] ^= 1;
	device_reply(packet, mad, sizeof(mad));
	mad[15] ^= 1;
	mad[1] = IB_PERFORMANCE_CLASS;
	device_reply(packet, mad, sizeof(mad));
	mad[1] = packet->mad[1];
	mad[3] &= 0x7f;
	device_reply(packet, mad, sizeof(mad));
	device_respond(packet, 0, 0, NULL, 0);
	return 0;
}

TEST(only_a_response_to_the_request_is_taken)
{
	device_on_write(respond_wrongly_first, NULL);
	assert_int_equal(get(5), 0);
	assert_int_equal(device_written(), 1);
}

static int respond_twice(const struct device_packet *packet, void *arg)
{
	echo(packet, arg);
	return echo(packet, arg);
}

TEST(what_comes_twice_or_late_disturbs_no_later_request)
{
	device_on_write(respond_twice, NULL);
	for (int lid = 1; lid < 50; lid++)
		assert_int_equal(lid & 1 ? get(lid) : set(lid), 0);
	assert_int_equal(device_written(), 49);
}

TEST(a_transaction_id_can_be_given)
{
	const uint8_t tid[] = {0x12, 0x34, 0x56, 0x78};
	ib_rpc_t rpc = get_request();

	device_on_write(echo, NULL);
	rpc.trid = 0x9abcdef012345678;
	assert_int_equal(ask(&rpc, 3), 0);
	assert_int_equal(rpc.trid, 0x9abcdef012345678);
	assert_memory_equal(device_packet(0)->mad + 12, tid, sizeof(tid));
}

TEST(a_request_has_an_id_of_its_own_although_its_rpc_was_used_before)
{
	ib_rpc_t rpc = get_request();
	uint64_t first;

	device_on_write(echo, NULL);
	assert_int_equal(ask(&rpc, 3), 0);
	first = rpc.trid;
	for (unsigned i = 1; i < 100; i++) {
		assert_int_equal(ask(&rpc, 3), 0);
		for (unsigned j = 0; j < i; j++)
			expect_another_id(j, i);
	}
	assert_int_equal(rpc.trid, first);
}

TEST(an_id_that_was_given_is_used_once)
{
	ib_rpc_t rpc = get_request();

	device_on_write(echo, NULL);
	rpc.trid = 77;
	assert_int_equal(ask(&rpc, 3), 0);
	assert_int_equal(ask(&rpc, 3), 0);
	assert_int_equal(device_packet(0)->mad[15], 77);
	expect_another_id(0, 1);
	assert_int_equal(rpc.trid, 77);
}

static int respond_to_all_so_far(const struct device_packet *packet, void *arg)
{
	uint8_t number;

	(void)packet;
	(void)arg;
	for (unsigned i = 0; i < device_written() && device_written() == 2; i++) {
		number = (uint8_t)i;
		device_respond(device_packet(i), 0, IB_SMP_DATA_OFFS, &number, 1);
	}
	return 0;
}

TEST(a_response_to_mad_send_via_is_not_that_of_mad_rpc_with_the_same_rpc)
{
	const uint64_t trids[] = {0, 77, UINT64_C(5) << 32};
	ib_portid_t to = to_lid(3);
	ib_rpc_t rpc;
	void *umad;

	for (unsigned i = 0; i < 3; i++) {
		rpc = get_request();
		rpc.trid = trids[i];
		device_on_write(respond_to_all_so_far, NULL);
		assert_int_equal(mad_send_via(&rpc, &to, NULL, NULL, port), 0);
		assert_non_null(mad_rpc(port, &rpc, &to, NULL, data));
		assert_int_equal(data[0], 1);
		umad = mad_receive_via(NULL, 0, port);
		assert_non_null(umad);
		assert_int_equal(umad_get_mad_addr(umad)->lid, htobe16(3));
		assert_int_equal(((uint8_t *)umad_get_mad(umad))[IB_SMP_DATA_OFFS], 0);
		mad_free(umad);
		assert_int_equal(port_teardown() + setup(), 0);
	}
}

static int echo_after_the_first(const struct device_packet *packet, void *arg)
{
	return device_written() > 1 ? echo(packet, arg) : 0;
}

/* The kernel rejects an ID for which it still waits. */
TEST(an_id_is_used_again_while_a_response_to_it_is_late)
{
	ib_rpc_t rpc = get_request();

	set_late_after(QUICK);
	device_hold_tids(true);
	device_on_write(echo_after_the_first, NULL);
	rpc.trid = 77;
	assert_int_equal(ask(&rpc, 3), 0);
	assert_int_equal(ask(&rpc, 4), 0);
}

/* A late response to the first request, while the second is written. */
static int respond_to_the_first_late(const struct device_packet *packet, void *arg)
{
	(void)packet;
	(void)arg;
	if (device_written() == 2)
		device_respond(device_packet(0), 0, 0, NULL, 0);
	return 0;
}

TEST(a_late_response_is_not_the_next_request_s_that_has_its_id)
{
	ib_rpc_t rpc = get_request();

	device_hold_tids(true);
	device_on_write(respond_to_the_first_late, NULL);
	mad_rpc_set_retries(port, 1);
	mad_rpc_set_timeout(port, 50);
	assert_int_equal(ask(&rpc, 3), ETIMEDOUT);
	assert_int_not_equal(rpc.trid, 0);
	assert_int_equal(ask(&rpc, 4), ETIMEDOUT);
	assert_int_equal(rpc.rstatus, 0);
}

static void *ask_with_id_5(void *arg)
{
	uint8_t response[IB_SMP_DATA_SIZE] = {0};
	ib_portid_t to = to_lid(*(int *)arg);
	ib_rpc_t rpc = get_request();

	rpc.trid = 5;
	response[0] = (uint8_t)to.lid;
	*(int *)arg = mad_rpc(port, &rpc, &to, response, response) ? response[0] : -errno;
	return NULL;
}

TEST(threads_with_the_same_id_each_get_their_own_response)
{
	int lids[] = {1, 2, 3};
	pthread_t threads[3];

	device_hold_tids(true);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, ask_with_id_5, &lids[i]), 0);
		assert_true(device_wait_written(i + 1, LONG_MS));
	}
	for (unsigned i = 0; i < 3; i++)
		device_respond(device_packet(i), 0, 0, NULL, 0);
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(lids[i], i + 1);
	}
	assert_int_equal(device_written(), 3);
}

static bool nothing_is_expected(void)
{
	return !responses_expected(port);
}

/*
 * A response to another request, with the ID of the first transmission, which the kernel then
 * rejects.
 */
static int respond_and_refuse(const struct device_packet *packet, void *arg)
{
	const uint8_t strange = 0x99;

	if (device_written() != 1)
		return echo(packet, NULL);
	device_respond(packet, *(uint16_t *)arg, IB_SMP_DATA_OFFS, &strange, 1);
	while (!nothing_is_expected())
		sleep_ms(1);
	return -EINVAL;
}

TEST(a_message_for_a_rejected_request_is_not_its_response)
{
	uint16_t statuses[] = {0, IB_MAD_STS_REDIRECT, 0x1c};
	pthread_t leader;

	for (unsigned i = 0; i < 3; i++) {
		leader = start_receiver();
		device_on_write(respond_and_refuse, &statuses[i]);
		assert_int_equal(get(4), 0);
		assert_int_equal(device_written(), 2);
		device_remove();
		pthread_join(leader, NULL);
		port_teardown();
		assert_int_equal(setup(), 0);
	}
}

/* Also if there is none, or after it was freed: a program may always free it. */
TEST(a_message_that_was_freed_is_empty)
{
	struct mad_message message;
	ib_rpc_t rpc = table_request();
	ib_portid_t to = to_lid(1);

	device_on_write(echo, NULL);
	assert_int_equal(mad_rpc_message(port, &rpc, &to, NULL, 0, &message), 0);
	assert_non_null(message.mad);
	mad_message_free(&message);
	assert_null(message.mad);
	assert_int_equal(message.length, 0);
	mad_message_free(&message);
	mad_message_free(NULL);
}

/* --- timeouts ------------------------------------------------------------------- */

/* As in the kernel: after the packet's own timeout, and a little later. */
static int time_out_like_the_kernel(const struct device_packet *packet, void *arg)
{
	(void)arg;
	device_delay((packet->header.timeout_ms + 5) * 1000);
	device_time_out(packet);
	return 0;
}

/* The second attempt begins, and the first one has a response. */
static int respond_to_the_first_attempt_late(const struct device_packet *packet, void *arg)
{
	unsigned first = *(unsigned *)arg;

	if (device_written() == first + 1)
		return time_out_like_the_kernel(packet, NULL);
	device_delay(0);
	device_respond(device_packet(first), 0, 0, NULL, 0);
	return 0;
}

/* The next request with this ID would get the response to the second attempt. */
TEST(an_id_that_may_get_another_response_is_not_the_next_request_s)
{
	ib_rpc_t rpcs[] = {get_request(), set_request()};
	unsigned first;

	device_hold_tids(true);
	device_on_write(respond_to_the_first_attempt_late, &first);
	mad_rpc_set_retries(port, 2);
	mad_rpc_set_timeout(port, 100);
	for (unsigned i = 0; i < 2; i++) {
		first = device_written();
		rpcs[i].trid = 1000 + i;
		assert_int_equal(ask(&rpcs[i], 5), 0);
		expect_same_id(first, first + 1);
		device_on_write(echo, NULL);
		assert_int_equal(ask(&rpcs[i], 6), 0);
		expect_another_id(first, first + 2);
		assert_int_equal(rpcs[i].trid, 1000 + i);
		device_on_write(respond_to_the_first_attempt_late, &first);
	}
}

/* The library's IDs are not to be used up, which would make late responses ambiguous. */
TEST(ids_that_callers_choose_cost_few_of_the_library_s)
{
	ib_rpc_t rpc = get_request();
	uint32_t before = (uint32_t)mad_trid();

	device_on_write(echo, NULL);
	for (unsigned i = 0; i < 10000; i++) {
		rpc.trid = before + (1u << 31) + i;
		assert_int_equal(ask(&rpc, 5), 0);
	}
	for (unsigned i = 0; i < 10000; i++)
		assert_int_equal(get(5), 0);
	assert_in_range((uint32_t)mad_trid() - before, 1, 20001);
}

static int time_out_twice(const struct device_packet *packet, void *arg)
{
	return device_written() <= 2 ? time_out(packet, arg) : echo(packet, arg);
}

TEST(a_timeout_of_0_times_out)
{
	ib_rpc_t rpc = get_request();

	madrpc_set_timeout(0);
	mad_rpc_set_timeout(port, 0);
	assert_int_equal(ask(&rpc, 5), ETIMEDOUT);
	assert_int_equal(set(5), ETIMEDOUT);
	madrpc_set_timeout(MAD_DEF_TIMEOUT_MS);
}

/* No thread serves the engine: the blocking call judges the engine's timer itself. */
TEST(a_late_request_of_an_engine_gives_its_place_to_a_blocking_call)
{
	struct mad_async *async = mad_async_create(port);
	struct outcome outcome = {0};
	ib_rpc_t rpc = set_request();

	mad_rpc_set_retries(port, 1);
	mad_port_set(port, MAD_PORT_GMP_WINDOW, 1);
	rpc.timeout = 20;
	submit(async, rpc, 2, &outcome, NULL);
	device_on_write(echo, NULL);
	assert_int_equal(set(5), 0);
	assert_int_equal(outcome.calls, 0);
	assert_int_equal(mad_async_wait(async, -1), 1);
	assert_int_equal(outcome.error, -ETIMEDOUT);
	mad_async_free(async);
}

/* --- signals, faults ------------------------------------------------------------ */

static volatile sig_atomic_t signals;

static void on_signal(int number)
{
	(void)number;
	signals++;
}

TEST(signals_neither_shorten_nor_lengthen_the_time)
{
	const struct itimerval often = {{0, 3000}, {0, 3000}}, never = {{0, 0}, {0, 0}};
	struct sigaction action = {.sa_handler = on_signal};
	int64_t start, took;
	ib_rpc_t rpc;

	set_late_after(QUICK);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	mad_rpc_set_retries(port, 2);
	for (int i = 0; i < 2; i++) {
		rpc = i ? set_request() : get_request();
		rpc.timeout = 150;
		start = now_ms();
		assert_int_equal(ask(&rpc, 5), ETIMEDOUT);
		took = now_ms() - start;
		assert_true(took >= 300 && took < 300 + 5000);
	}
	/* The handler stays: a last signal may arrive late. */
	setitimer(ITIMER_REAL, &never, NULL);
	assert_true(signals > 10);
}

TEST(a_call_that_is_interrupted_is_made_again)
{
	const enum device_call calls[] = {DEVICE_WRITE, DEVICE_POLL, DEVICE_READ};

	device_on_write(echo, NULL);
	for (unsigned i = 0; i < 3; i++) {
		device_fail(calls[i], 1, EINTR);
		assert_int_equal(get(5), 0);
		device_fail(calls[i], 1, EINTR);
		assert_int_equal(set(5), 0);
	}
	assert_int_equal(device_written(), 6);
}

TEST(what_the_kernel_refuses_to_send_fails_with_its_errno)
{
	device_on_write(echo, NULL);
	device_fail(DEVICE_WRITE, 1, ENOMEM);
	assert_int_equal(get(5), ENOMEM);
	device_fail(DEVICE_WRITE, 1, EIO);
	assert_int_equal(set(5), EIO); /* the device still exists */
	assert_int_equal(get(5), 0);
}

TEST(without_memory_requests_go_on)
{
	device_on_write(echo, NULL);
	device_fail_malloc(1);
	assert_int_equal(get(5), 0);
	device_fail_malloc(0);
}

static int remove_now(const struct device_packet *packet, void *arg)
{
	(void)packet;
	(void)arg;
	device_remove();
	return 0;
}

TEST(a_device_that_goes_fails_what_waits_and_all_after_that)
{
	device_on_write(remove_now, NULL);
	assert_int_equal(get(5), ENODEV);
	assert_int_equal(get(5), ENODEV);
	assert_int_equal(set(5), ENODEV);
	assert_int_equal(device_written(), 1);
	assert_fails_null(mad_receive_via(NULL, 10, port), ENODEV);
}

TEST(a_device_that_has_gone_cannot_be_written_to)
{
	device_remove();
	assert_int_equal(get(5), ENODEV);
}

/* The rate does not allow the request yet, and the device will never be written to. */
TEST(a_device_that_has_gone_makes_no_request_wait_for_its_time)
{
	assert_int_equal(mad_port_set(port, MAD_PORT_RATE, 1), 0);
	device_on_write(echo, NULL);
	assert_int_equal(get(5), 0);
	device_remove();
	for (int i = 0; i < 3; i++)
		assert_int_equal(get(5), ENODEV);
	assert_int_equal(device_written(), 1);
}

/* --- RMPP, and responses of any size -------------------------------------------- */

static int respond_with_records(const struct device_packet *packet, void *arg)
{
	uint8_t mad[700];

	(void)arg;
	memset(mad, 0x77, sizeof(mad));
	device_copy_mad(packet, mad);
	memset(mad + IB_MAD_SIZE, 0x77, sizeof(mad) - IB_MAD_SIZE);
	mad[3] = IB_MAD_METHOD_GET_TABLE_RESPONSE;
	mad[24] = 1;
	mad[25] = IB_RMPP_TYPE_DATA;
	mad[26] = 31 << 3 | 3;
	mad[27] = 5;
	mad[31] = 1;
	mad[34] = 2;
	mad[35] = 0x88;
	mad[45] = 14; /* AttributeOffset */
	device_reply(packet, mad, sizeof(mad));
	return 0;
}

TEST(a_long_response_comes_with_its_rmpp_header)
{
	uint8_t records[800];
	ib_rmpp_hdr_t rmpp = {0};
	ib_rpc_t rpc = table_request();
	ib_portid_t to = to_lid(1);

	device_on_write(respond_with_records, NULL);
	memset(records, 0, sizeof(records));
	rpc.datasz = sizeof(records);
	assert_ptr_equal(mad_rpc_rmpp(port, &rpc, &to, &rmpp, records), records);
	assert_int_equal(rmpp.type, IB_RMPP_TYPE_DATA);
	assert_int_equal(rmpp.flags, 3);
	assert_int_equal(rmpp.status, 5);
	assert_int_equal(rmpp.d1.segnum, 1);
	assert_int_equal(rmpp.d2.len, 0x288);
	assert_int_equal(rpc.recsz, 14);
	assert_int_equal(records[700 - IB_SA_DATA_OFFS - 1], 0x77);
	assert_int_equal(records[700 - IB_SA_DATA_OFFS], 0);
	/* the request was one MAD, whatever the size of the buffer */
	assert_int_equal(device_packet(0)->length, IB_MAD_SIZE);
}

#define LONGEST 70000

/* Without an allocation, whose memory might become that of the message. */
static int echo_whole(const struct device_packet *packet, void *arg)
{
	static uint8_t mad[IB_SA_DATA_OFFS + LONGEST];

	(void)arg;
	memcpy(mad, packet->mad, packet->length);
	mad[3] |= IB_MAD_RESPONSE;
	device_reply(packet, mad, packet->length);
	return 0;
}

TEST(a_message_of_any_size_goes_and_comes)
{
	const size_t sizes[] = {0, 1, 199, 200, 201, 1000, LONGEST};
	static uint8_t payload[LONGEST];
	ib_portid_t to = to_lid(1);
	struct mad_message message;
	ib_rpc_t rpc;
	size_t length;

	device_on_write(echo_whole, NULL);
	for (size_t i = 0; i < LONGEST; i++)
		payload[i] = (uint8_t)(i * 7);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		length = IB_SA_DATA_OFFS + sizes[i];
		if (length < IB_MAD_SIZE)
			length = IB_MAD_SIZE;
		rpc = table_request();
		rpc.method = IB_MAD_METHOD_SET;
		assert_int_equal(mad_rpc_message(port, &rpc, &to, payload, sizes[i], &message),
				 0);
		assert_int_equal(message.length, length);
		assert_int_equal(message.status, 0);
		assert_int_equal(message.mad[1], IB_SA_CLASS);
		assert_int_equal(message.mad[3], IB_MAD_METHOD_SET | IB_MAD_RESPONSE);
		assert_memory_equal(message.mad + IB_SA_DATA_OFFS, payload, sizes[i]);
		assert_int_equal(device_packet(i)->length, length);
		/* the kernel requires the RMPP active flag in a message that it segments */
		assert_int_equal(device_packet(i)->mad[26] & 1, length > IB_MAD_SIZE);
		mad_message_free(&message);
		assert_null(message.mad);
	}
}

TEST(a_long_request_that_times_out_is_sent_again_whole)
{
	uint8_t payload[1000] = {1};
	ib_portid_t to = to_lid(1);
	struct mad_message message;
	ib_rpc_t rpc = table_request();

	device_on_write(time_out_twice, NULL);
	assert_int_equal(mad_rpc_message(port, &rpc, &to, payload, sizeof(payload), &message),
			 0);
	assert_int_equal(device_written(), 3);
	assert_int_equal(device_packet(2)->length, 1056);
	assert_memory_equal(device_packet(2)->mad + IB_SA_DATA_OFFS, payload, sizeof(payload));
	mad_message_free(&message);
}

TEST(a_message_that_cannot_be_is_refused)
{
	static uint8_t payload[1000];
	ib_portid_t to = to_lid(1);
	struct mad_message message;
	ib_rpc_t rpc = get_request();

	assert_int_equal(mad_rpc_message(port, &rpc, &to, payload, 1000, &message), -EMSGSIZE);
	assert_null(message.mad);
	assert_fails(mad_rpc_message(port, &rpc, &to, payload, 1, NULL), EINVAL);
	assert_int_equal(mad_rpc_message(NULL, &rpc, &to, payload, 1, &message), -EINVAL);
	assert_int_equal(mad_rpc_message(port, NULL, &to, payload, 1, &message), -EINVAL);
	assert_int_equal(mad_rpc_message(port, &rpc, NULL, payload, 1, &message), -EINVAL);
	rpc = table_request();
	assert_int_equal(mad_rpc_message(port, &rpc, &to, payload, SIZE_MAX, &message),
			 -EMSGSIZE);
	device_fail_malloc(1);
	assert_int_equal(mad_rpc_message(port, &rpc, &to, payload, 1000, &message), -ENOMEM);
	assert_int_equal(device_written(), 0);
}

TEST(a_message_without_memory_is_an_error)
{
	ib_portid_t to = to_lid(1);
	struct mad_message message;
	ib_rpc_t rpc = get_request();

	device_on_write(echo, NULL);
	assert_int_equal(get(1), 0); /* the destination is known */
	device_fail_malloc(1);
	assert_fails(mad_rpc_message(port, &rpc, &to, NULL, 0, &message), ENOMEM);
	assert_int_equal(mad_last_failure()->error, -ENOMEM);
	assert_int_equal(mad_last_failure()->mgmt_class, IB_SMI_CLASS);
	assert_null(message.mad);
	assert_int_equal(mad_rpc_message(port, &rpc, &to, NULL, 0, &message), 0);
	mad_message_free(&message);
}

TEST(a_request_may_have_no_data)
{
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(1);
	uint8_t untouched = 0x5a;

	device_on_write(echo, NULL);
	rpc.datasz = 0;
	assert_ptr_equal(mad_rpc(port, &rpc, &to, &untouched, &untouched), &untouched);
	assert_ptr_equal(mad_rpc_rmpp(port, &rpc, &to, NULL, &untouched), &untouched);
	rpc.dataoffs = 0;
	assert_ptr_equal(mad_rpc_rmpp(port, &rpc, &to, NULL, &untouched), &untouched);
	assert_int_equal(untouched, 0x5a);
	assert_int_equal(device_written(), 3);
}

TEST(a_message_s_error_status_is_told)
{
	uint16_t status = 0x0300;
	ib_portid_t to = to_lid(1);
	struct mad_message message;
	ib_rpc_t rpc = table_request();

	device_on_write(refuse, &status);
	assert_int_equal(mad_rpc_message(port, &rpc, &to, NULL, 0, &message), -EIO);
	assert_int_equal(message.status, 0x300);
	assert_int_equal(rpc.rstatus, 0x300);
	assert_null(message.mad);
}
