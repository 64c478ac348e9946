/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Cancelled threads (pthread_cancel). A thread in a call that waits, sends or calls back is
 * cancelled after the call. In these tests a cancellation is pending when the call begins, so
 * that the first cancellation point ends the thread.
 */

#include "engine_fixture.h"
#include "test.h"

#include <infiniband/umad_ext.h>
#include <pthread.h>

#define OTHER_CLASS 0x0b /* not registered */

static struct mad_async *async;
static atomic_bool returned;

static int setup(void)
{
	if (port_setup())
		return -1;
	returned = false;
	async = mad_async_create(port);
	return async ? 0 : -1;
}

/* The first transaction ID of the process is random, and getrandom(2) is a cancellation point.
 */
static int setup_with_id(void)
{
	mad_trid();
	return setup();
}

static int teardown(void)
{
	umad_set_log_hook(NULL, NULL);
	mad_async_free(async);
	return port_teardown();
}

FIXTURE(setup_with_id, teardown);

/* The thread of a test: makes the call that the test is about. */
static void *thread(void *arg)
{
	void (*const *call)(void) = arg;

	pthread_cancel(pthread_self());
	(*call)();
	returned = true;
	pthread_testcancel();
	return NULL;
}

static void expect_to_return(void (*call)(void))
{
	pthread_t id;
	void *result;

	assert_int_equal(pthread_create(&id, NULL, thread, &call), 0);
	assert_int_equal(pthread_join(id, &result), 0);
	assert_true(returned);
	assert_ptr_equal(result, PTHREAD_CANCELED);
}

/* write(2) is a cancellation point, and so is fprintf(3). */

static int write_cancellably(const struct device_packet *packet, void *arg)
{
	pthread_testcancel();
	return echo(packet, arg);
}

static void log_cancellably(enum umad_log_level level, const char *text, void *user)
{
	(void)level;
	(void)text;
	(void)user;
	pthread_testcancel();
}

static void show_errors(void)
{
	madrpc_show_errors(1);
	umad_set_log_hook(log_cancellably, NULL);
}

/* --- sending -------------------------------------------------------------------- */

static void query(void)
{
	uint8_t data[IB_SMP_DATA_SIZE] = {0};
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(1);

	mad_rpc(port, &rpc, &to, data, data);
}

/* The first test: no transaction ID was needed before. */
TEST_WITH(mad_rpc_chooses_an_id_although_its_thread_is_cancelled, setup, teardown)
{
	device_on_write(echo, NULL);
	expect_to_return(query);
}

TEST(mad_rpc_sends_although_its_thread_is_cancelled)
{
	device_on_write(write_cancellably, NULL);
	expect_to_return(query);
}

static void send_one(void)
{
	uint8_t data[IB_SMP_DATA_SIZE] = {0};
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(1);

	rpc.trid = 5;
	mad_send_via(&rpc, &to, NULL, data, port);
}

TEST(mad_send_via_sends_although_its_thread_is_cancelled)
{
	device_on_write(write_cancellably, NULL);
	expect_to_return(send_one);
}

static void respond(void)
{
	_Alignas(8) uint8_t umad[sizeof(struct ib_user_mad) + IB_MAD_SIZE] = {0};
	uint8_t *mad = umad_get_mad(umad);
	ib_portid_t to = to_lid(1);

	mad[0] = 1;
	mad[1] = VENDOR_CLASS;
	mad[2] = 1;
	mad[3] = IB_MAD_METHOD_GET;
	mad_respond_via(umad, &to, 0, port);
}

TEST(mad_respond_via_sends_although_its_thread_is_cancelled)
{
	device_on_write(write_cancellably, NULL);
	expect_to_return(respond);
}

/* --- reports -------------------------------------------------------------------- */

TEST(mad_rpc_reports_a_failure_although_its_thread_is_cancelled)
{
	show_errors();
	device_fail(DEVICE_WRITE, 1, ENOMEM);
	expect_to_return(query);
}

static int respond_with_status(const struct device_packet *packet, void *arg)
{
	(void)arg;
	device_respond(packet, 0x001c, 0, NULL, 0);
	return 0;
}

TEST(mad_rpc_reports_a_status_although_its_thread_is_cancelled)
{
	show_errors();
	device_on_write(respond_with_status, NULL);
	expect_to_return(query);
}

static void query_other_class(void)
{
	uint8_t data[IB_SMP_DATA_SIZE] = {0};
	ib_portid_t to = to_lid(1);
	ib_rpc_t rpc = get_request();

	rpc.mgtclass = OTHER_CLASS;
	mad_rpc(port, &rpc, &to, data, data);
}

TEST(mad_rpc_reports_a_wrong_class_although_its_thread_is_cancelled)
{
	show_errors();
	expect_to_return(query_other_class);
}

static void query_message_of_other_class(void)
{
	struct mad_message message;
	ib_portid_t to = to_lid(1);
	ib_rpc_t rpc = get_request();

	rpc.mgtclass = OTHER_CLASS;
	mad_rpc_message(port, &rpc, &to, NULL, 0, &message);
}

TEST(mad_rpc_message_reports_although_its_thread_is_cancelled)
{
	show_errors();
	expect_to_return(query_message_of_other_class);
}

TEST(mad_send_via_reports_although_its_thread_is_cancelled)
{
	show_errors();
	device_fail(DEVICE_WRITE, 1, ENOMEM);
	expect_to_return(send_one);
}

static void submit_other_class(void)
{
	ib_portid_t to = to_lid(1);
	ib_rpc_t rpc = get_request();
	struct outcome outcome;

	rpc.mgtclass = OTHER_CLASS;
	mad_async_submit(async, &rpc, &to, NULL, 0, note, &outcome, NULL);
}

TEST(mad_async_submit_reports_although_its_thread_is_cancelled)
{
	show_errors();
	expect_to_return(submit_other_class);
}

/* --- callbacks ------------------------------------------------------------------ */

static void call_back_cancellably(struct mad_async *engine, const struct mad_reply *reply,
				  void *arg)
{
	note(engine, reply, arg);
	pthread_testcancel();
}

static void submit_and_run(void)
{
	struct outcome outcome = {0};
	ib_portid_t to = to_lid(1);
	ib_rpc_t rpc = get_request();

	mad_async_submit(async, &rpc, &to, NULL, 0, call_back_cancellably, &outcome, NULL);
	mad_async_wait(async, -1);
}

TEST(mad_async_run_calls_back_although_its_thread_is_cancelled)
{
	device_on_write(write_cancellably, NULL);
	expect_to_return(submit_and_run);
}
