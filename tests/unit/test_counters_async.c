/* SPDX-License-Identifier: BSD-2-Clause */

/* Readings of counters on an engine: they share ClassPortInfo, and are cancelled. */

#include "counters_fixture.h"
#include "test.h"

#include <pthread.h>

#define PORTS 64
#define FEW   4

/* Readings on an engine, by one node. */
static struct mad_counters_options options;
static struct mad_async *async;
static struct result results[PORTS];
static uint64_t readings[PORTS];

static void end(void)
{
	mad_async_free(async);
	mad_counters_node_free(options.node);
}

static void begin(void)
{
	options = (struct mad_counters_options){.node = mad_counters_node_create()};
	async = mad_async_create(fixture.port);
	memset(results, 0, sizeof(results));
}

static int async_setup(void)
{
	int ret = setup();

	begin();
	return ret;
}

static int async_teardown(void)
{
	end();
	return fixture_teardown();
}

FIXTURE(async_setup, async_teardown);

static void without_node(void)
{
	mad_counters_node_free(options.node);
	options.node = NULL;
}

/* The first ports of a switch at once. */
static void submit(unsigned count)
{
	memset(results, 0, sizeof(results));
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(mad_counters_submit(async, &to, i + 1, &options, came,
						     &results[i], &readings[i]),
				 0);
}

static void expect(unsigned first, unsigned last, int error)
{
	for (; first <= last; first++) {
		assert_int_equal(results[first].calls, 1);
		assert_int_equal(results[first].error, error);
	}
}

/* All ports of a switch. */
static void read_all(int error)
{
	submit(PORTS);
	mad_async_wait(async, -1);
	expect(0, PORTS - 1, error);
}

TEST(a_switch_of_64_ports_takes_65_requests)
{
	node.capabilities = MAD_PMA_EXTENDED_WIDTH | MAD_PMA_XMIT_WAIT;
	node.capabilities2 = MAD_PMA2_ADDITIONAL_EXTENDED;
	put(EXTENDED, IB_PC_EXT_RCV_PKTS_F, 5);
	submit(PORTS);
	/* the creator may free the node while readings use it */
	without_node();
	assert_int_equal(mad_async_wait(async, -1), 1 + PORTS);
	assert_int_equal(device_written(), 1 + PORTS);
	expect(0, PORTS - 1, 0);
	for (unsigned i = 0; i < PORTS; i++) {
		assert_int_equal(results[i].counters.rcv_packets, 5);
		assert_int_equal(results[i].counters.port, i + 1);
		assert_int_equal(results[i].counters.odd, 0);
		assert_int_equal(results[i].counters.requests, i ? 1 : 2);
	}
}

TEST(readings_without_a_node_ask_for_class_port_info_each)
{
	without_node();
	read_all(0);
	assert_int_equal(device_written(), 2 * PORTS);
	assert_int_equal(results[PORTS - 1].counters.present, BASIC_COUNTERS);
}

TEST(a_dead_switch_costs_one_request_for_all_ports)
{
	node.silent = CLASS_PORT_INFO;
	options.timeout_ms = 5;
	mad_rpc_set_retries(fixture.port, 1);
	read_all(-ETIMEDOUT);
	assert_int_equal(device_written(), 1);
	/* the next reading sends a request again: all get the status */
	node.silent = 0;
	node.status[CLASS_PORT_INFO] = 0x001c;
	options.timeout_ms = 0;
	read_all(-EIO);
	assert_int_equal(device_written(), 2);
	for (unsigned i = 0; i < PORTS; i++)
		assert_int_equal(results[i].counters.status, 0x1c);
	node.status[CLASS_PORT_INFO] = 0;
	read_all(0);
	assert_int_equal(device_written(), 3 + PORTS);
}

/* A node that rejected an attribute before its ClassPortInfo was read. */
TEST(an_engine_does_not_ask_for_what_was_refused_before)
{
	options.counters = MAD_COUNTERS_ALL;
	options.basic = true;
	node.status[RCV_DETAILS] = 0x000c;
	read_with(&options, 4);
	assert_int_equal(node.count[RCV_DETAILS], 1);
	options.basic = false;
	read_all(0);
	assert_int_equal(node.count[CLASS_PORT_INFO], 1);
	assert_int_equal(node.count[RCV_DETAILS], 1);
}

TEST(readings_do_not_wait_for_a_request_that_was_not_submitted)
{
	struct result refused = {0};

	device_fail_malloc(2);
	assert_int_equal(mad_counters_submit(async, &to, 1, &options, came, &refused, NULL),
			 -ENOMEM);
	device_fail_malloc(0);
	read_all(0);
	assert_int_equal(device_written(), 1 + PORTS);
	assert_int_equal(refused.calls, 0);
}

static int free_node_and_respond(const struct device_packet *packet, void *arg)
{
	struct mad_counters_node **freed = arg;

	mad_counters_node_free(*freed);
	*freed = NULL;
	return on_write(packet, NULL);
}

/* A lock on the node while a request is written would block the writer. */
TEST(a_node_is_not_locked_while_a_request_is_written)
{
	struct mad_counters_node *freed = options.node;

	device_on_write(free_node_and_respond, &freed);
	submit(1);
	options.node = NULL;
	mad_async_wait(async, -1);
	assert_null(freed);
	expect(0, 0, 0);
}

TEST(the_end_of_an_engine_ends_readings_that_wait)
{
	node.hold = true;
	submit(PORTS);
	mad_async_free(async);
	expect(0, PORTS - 1, -ECANCELED);
	/* and the node serves the next engine */
	node.hold = false;
	async = mad_async_create(fixture.port);
	read_all(0);
}

TEST(two_engines_and_a_blocking_call_share_a_node)
{
	struct mad_async *second = mad_async_create(fixture.port);

	node.hold = true;
	mad_port_set(fixture.port, MAD_PORT_DESTINATION_LIMIT, 8);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(mad_counters_submit(i % 2 ? second : async, &to, i + 1,
						     &options, came, &results[i], NULL),
				 0);
	/* an engine does not wait for another engine, whose callbacks run in its own thread */
	while (node.held_count < 3)
		mad_async_process(async);
	release_held();
	mad_async_wait(second, -1);
	assert_int_equal(results[1].calls, 1);
	assert_int_equal(results[3].calls, 1);
	read_with(&options, 1);
	mad_async_wait(async, -1);
	expect(0, 3, 0);
	mad_async_free(second);
}

#define THREADS 6
#define ROUNDS  30

static int respond_at_once(const struct device_packet *packet, void *arg)
{
	(void)arg;
	respond(packet);
	return 0;
}

/* Each thread has an engine, and makes blocking calls, too. */
static void *read_often(void *arg)
{
	struct mad_async *own = mad_async_create(fixture.port);
	struct result *four = arg;
	struct mad_counters counters;

	for (int i = 0; i < ROUNDS; i++) {
		for (unsigned k = 0; k < 4; k++)
			mad_counters_submit(own, &to, k + 1, &options, came, &four[k], NULL);
		if (mad_counters_read(fixture.port, &to, PORT, &options, &counters,
				      sizeof(counters)))
			four[0].error = -EPROTO;
		mad_async_wait(own, -1);
	}
	mad_async_free(own);
	for (unsigned k = 0; k < 4; k++)
		if (four[k].calls != ROUNDS || four[k].error)
			return NULL;
	return arg;
}

TEST(threads_share_a_node)
{
	pthread_t threads[THREADS];
	void *result;

	node.capabilities = MAD_PMA_EXTENDED_WIDTH;
	device_on_write(respond_at_once, NULL);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_often, &results[4 * i]),
				 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &result);
		assert_non_null(result);
	}
}

/* Submits readings on the shared engine. */
static void *submit_four(void *arg)
{
	struct result *four = arg;
	int error = 0;

	for (unsigned k = 0; k < 4; k++)
		error |= mad_counters_submit(async, &to, k + 1, &options, came, &four[k], NULL);
	return error ? NULL : arg;
}

TEST(threads_share_an_engine_and_a_node)
{
	pthread_t threads[THREADS];
	void *result;

	device_on_write(respond_at_once, NULL);
	for (int round = 0; round < ROUNDS; round++) {
		mad_counters_node_free(options.node);
		options.node = mad_counters_node_create();
		memset(results, 0, sizeof(results));
		for (int i = 0; i < THREADS; i++)
			assert_int_equal(
				pthread_create(&threads[i], NULL, submit_four, &results[4 * i]),
				0);
		mad_async_wait(async, -1);
		for (int i = 0; i < THREADS; i++) {
			pthread_join(threads[i], &result);
			assert_non_null(result);
		}
		mad_async_wait(async, -1);
		expect(0, 4 * THREADS - 1, 0);
	}
}

/* A new node; the first reading asks for ClassPortInfo, the others wait. */
static void begin_few(void)
{
	end();
	begin();
	node.hold = true;
	node.count[CLASS_PORT_INFO] = 0;
	submit(FEW);
	assert_int_equal(node.count[CLASS_PORT_INFO], 1);
}

static void process_until_called(unsigned reading)
{
	while (!results[reading].calls)
		assert_true(mad_async_process(async) >= 0);
}

TEST(a_reading_can_be_cancelled)
{
	const unsigned silent[] = {CLASS_PORT_INFO, EXTENDED, BASIC};

	without_node();
	node.capabilities = MAD_PMA_EXTENDED_WIDTH;
	for (unsigned i = 0; i < 3; i++) {
		node.silent = silent[i];
		node.count[silent[i]] = 0;
		submit(1);
		while (!node.count[silent[i]])
			assert_true(mad_async_process(async) >= 0);
		assert_int_equal(mad_async_cancel(async, readings[0]), 0);
		assert_int_equal(mad_async_cancel(async, readings[0]), -ENOENT);
		assert_int_equal(results[0].calls, 0);
		assert_int_equal(mad_async_wait(async, -1), 1);
		expect(0, 0, -ECANCELED);
		/* what was read before */
		assert_true(results[0].counters.present == (i == 2 ? 0xff : 0));
	}
}

/* Its response is there, but was not handled. */
TEST(a_cancelled_reading_reports_no_status)
{
	without_node();
	node.status[CLASS_PORT_INFO] = 0x001c;
	submit(1);
	mad_async_cancel(async, readings[0]);
	mad_async_wait(async, -1);
	expect(0, 0, -ECANCELED);
	assert_int_equal(results[0].counters.status, 0);
}

TEST(a_reading_that_waits_is_cancelled_alone)
{
	begin_few();
	mad_async_cancel(async, readings[2]);
	process_until_called(2);
	assert_int_equal(results[0].calls + results[1].calls + results[3].calls, 0);
	release_held();
	mad_async_wait(async, -1);
	expect(0, 1, 0);
	expect(2, 2, -ECANCELED);
	expect(3, 3, 0);
}

TEST(readings_do_not_end_with_the_one_that_asks)
{
	begin_few();
	mad_async_cancel(async, readings[0]);
	process_until_called(0);
	release_held();
	mad_async_wait(async, -1);
	expect(0, 0, -ECANCELED);
	expect(1, FEW - 1, 0);
	/* the next one asked, for the others, too */
	assert_int_equal(node.count[CLASS_PORT_INFO], 2);
}

TEST(all_readings_of_a_node_can_be_cancelled_one_by_one)
{
	begin_few();
	for (unsigned i = 0; i < FEW; i++)
		mad_async_cancel(async, readings[i]);
	mad_async_wait(async, -1);
	expect(0, FEW - 1, -ECANCELED);
	/* nothing waits for a request that was cancelled */
	begin_few();
	mad_async_cancel(async, readings[0]);
	mad_async_cancel(async, MAD_ASYNC_ALL);
	mad_async_wait(async, -1);
	expect(0, FEW - 1, -ECANCELED);
	node.hold = false;
	node.held_count = 0;
	read_with(NULL, 2);
}

/* The request that is cancelled is that of a reading that is, too, and others wait for it. */
TEST(a_reading_that_begins_after_all_were_cancelled_has_its_counters)
{
	begin_few();
	mad_async_cancel(async, MAD_ASYNC_ALL);
	node.hold = false;
	for (unsigned i = FEW; i < FEW + 2; i++)
		assert_int_equal(mad_counters_submit(async, &to, i + 1, &options, came,
						     &results[i], &readings[i]),
				 0);
	mad_async_wait(async, -1);
	expect(0, FEW - 1, -ECANCELED);
	expect(FEW, FEW + 1, 0);
	/* none for the readings that were cancelled */
	assert_int_equal(node.count[CLASS_PORT_INFO], 2);
	node.held_count = 0;
}

static unsigned again, refused;

static void read_again(struct mad_async *engine, int error, const struct mad_counters *counters,
		       void *arg)
{
	(void)error, (void)counters;
	if (again++ < 100 &&
	    mad_counters_submit(engine, &to, 1, &options, read_again, arg, NULL))
		refused++;
}

TEST(a_reading_on_a_closed_port_is_refused)
{
	again = refused = 0;
	node.hold = true;
	for (int i = 0; i < 3; i++)
		assert_int_equal(
			mad_counters_submit(async, &to, 1, &options, read_again, NULL, NULL),
			0);
	mad_rpc_close_port(fixture.port);
	fixture.port = NULL;
	mad_async_process(async);
	assert_int_equal(again, 3);
	assert_int_equal(refused, 3);
	node.held_count = 0;
}

static void cancel_others(struct mad_async *engine, int error,
			  const struct mad_counters *counters, void *arg)
{
	struct result *result = arg;

	came(engine, error, counters, result);
	for (unsigned i = 0; i < FEW; i++)
		if (result != &results[i] && !results[i].calls)
			mad_async_cancel(engine, readings[i]);
}

/* Those that have the response, but were not called back, and the one that asked. */
TEST(a_callback_can_cancel_readings_that_waited)
{
	node.silent = CLASS_PORT_INFO;
	options.timeout_ms = 5;
	mad_rpc_set_retries(fixture.port, 1);
	for (unsigned i = 0; i < FEW; i++)
		assert_int_equal(mad_counters_submit(async, &to, i + 1, &options, cancel_others,
						     &results[i], &readings[i]),
				 0);
	mad_async_wait(async, -1);
	/* the first that waited */
	expect(1, 1, -ETIMEDOUT);
	expect(0, 0, -ECANCELED);
	expect(2, 3, -ECANCELED);
}

/* Submits readings until the next request needs memory, which it does not get. */
static void use_up_requests(struct result *result)
{
	const struct mad_counters_options basic = {.basic = true};
	int error;

	do {
		device_fail_malloc(2);
		error = mad_counters_submit(async, &to, PORT, &basic, came, result, NULL);
	} while (!error);
	assert_int_equal(error, -ENOMEM);
	device_fail_malloc(1);
}

/* Such a reading ends with the response that it waits for. */
TEST(a_reading_is_cancelled_without_memory)
{
	for (unsigned cancel = 0; cancel < 2; cancel++) {
		struct result result = {0};

		begin_few();
		use_up_requests(&result);
		mad_async_cancel(async, readings[cancel]);
		device_fail_malloc(0);
		assert_int_equal(node.count[CLASS_PORT_INFO], 1);
		release_held();
		mad_async_wait(async, -1);
		for (unsigned i = 0; i < FEW; i++)
			expect(i, i, i == cancel ? -ECANCELED : 0);
		assert_true(result.calls > 0);
	}
}

TEST(what_cannot_be_begun_is_not_called_back)
{
	uint64_t reading;
	struct result result = {0};

	assert_int_equal(mad_counters_submit(NULL, &to, 1, NULL, came, &result, NULL), -EINVAL);
	assert_int_equal(mad_counters_submit(async, &to, 1, NULL, NULL, &result, NULL),
			 -EINVAL);
	assert_int_equal(mad_counters_submit(async, NULL, 1, NULL, came, &result, NULL),
			 -EINVAL);
	assert_int_equal(mad_counters_submit(async, &to, 300, NULL, came, &result, NULL),
			 -EINVAL);
	read_with(&options, 2);
	assert_int_equal(mad_counters_submit(async, &to, MAD_COUNTERS_ALL_PORTS, &options, came,
					     &result, NULL),
			 -EOPNOTSUPP);
	for (unsigned n = 1; n < 3; n++) {
		device_fail_malloc(n);
		assert_int_equal(
			mad_counters_submit(async, &to, 1, NULL, came, &result, &reading),
			-ENOMEM);
	}
	/* the counters of a second response need memory */
	device_fail_malloc(0);
	node.capabilities = MAD_PMA_EXTENDED_WIDTH;
	assert_int_equal(mad_counters_submit(async, &to, 1, NULL, came, &result, NULL), 0);
	while (!node.count[EXTENDED])
		mad_async_process(async);
	device_fail_malloc(1);
	mad_async_wait(async, -1);
	assert_int_equal(result.calls, 1);
	assert_int_equal(result.error, -ENOMEM);
	assert_true(result.counters.present == 0xff);
	device_fail_malloc(1);
	assert_null(mad_counters_node_create());
	device_fail_malloc(0);
	end();
	assert_int_equal(result.calls, 1);
	begin();
}

/* --- numbers of readings ---------------------------------------------------------- */

static void *cancel_from_a_thread(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < FEW; i++)
		assert_int_equal(mad_async_cancel(async, readings[i]), 0);
	return NULL;
}

/* The first reading asks, the others wait: no thread processes the engine meanwhile. */
TEST(another_thread_cancels_readings)
{
	pthread_t thread;

	begin_few();
	assert_int_equal(pthread_create(&thread, NULL, cancel_from_a_thread, NULL), 0);
	pthread_join(thread, NULL);
	for (unsigned i = 0; i < FEW; i++)
		assert_int_equal(results[i].calls, 0);
	mad_async_wait(async, -1);
	expect(0, FEW - 1, -ECANCELED);
	for (unsigned i = 0; i < FEW; i++)
		assert_int_equal(mad_async_cancel(async, readings[i]), -ENOENT);
}

TEST(a_reading_is_cancelled_before_its_request_is_sent)
{
	without_node();
	mad_port_set(fixture.port, MAD_PORT_DESTINATION_LIMIT, 1);
	node.hold = true;
	submit(2);
	assert_int_equal(device_written(), 1);
	assert_int_equal(mad_async_cancel(async, readings[1]), 0);
	process_until_called(1);
	expect(1, 1, -ECANCELED);
	assert_int_equal(device_written(), 1);
	release_held();
	mad_async_wait(async, -1);
	expect(0, 0, 0);
	assert_int_equal(node.count[CLASS_PORT_INFO], 1);
}

static void cancel_itself(struct mad_async *engine, int error,
			  const struct mad_counters *counters, void *arg)
{
	came(engine, error, counters, arg);
	assert_int_equal(mad_async_cancel(engine, readings[0]), -ENOENT);
}

TEST(a_reading_is_complete_in_its_callback)
{
	assert_int_equal(mad_counters_submit(async, &to, PORT, &options, cancel_itself,
					     &results[0], &readings[0]),
			 0);
	mad_async_wait(async, -1);
	expect(0, 0, 0);
}

/* The response is there before the call returns. */
TEST(no_callback_comes_within_the_call)
{
	device_on_write(respond_at_once, NULL);
	submit(1);
	assert_int_equal(results[0].calls, 0);
	mad_async_wait(async, -1);
	expect(0, 0, 0);
	submit(2);
	assert_int_equal(results[0].calls + results[1].calls, 0);
	mad_async_wait(async, -1);
	expect(0, 1, 0);
}

static void *cancel_all_often(void *arg)
{
	const int *stop = arg;

	while (!__atomic_load_n(stop, __ATOMIC_ACQUIRE))
		mad_async_cancel(async, MAD_ASYNC_ALL);
	return NULL;
}

TEST(readings_begin_while_another_thread_cancels_all)
{
	pthread_t canceller, submitter;
	int stop = 0;

	device_on_write(respond_at_once, NULL);
	assert_int_equal(pthread_create(&canceller, NULL, cancel_all_often, &stop), 0);
	for (int round = 0; round < ROUNDS; round++) {
		memset(results, 0, sizeof(results));
		assert_int_equal(pthread_create(&submitter, NULL, submit_four, results), 0);
		mad_async_wait(async, -1);
		pthread_join(submitter, NULL);
		mad_async_wait(async, -1);
		for (unsigned i = 0; i < 4; i++) {
			assert_int_equal(results[i].calls, 1);
			assert_true(!results[i].error || results[i].error == -ECANCELED);
		}
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(canceller, NULL);
}
