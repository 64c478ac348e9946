/* SPDX-License-Identifier: BSD-2-Clause */

/* Readings of counters on an engine: they share ClassPortInfo, and are cancelled. */

#include "counters_fixture.h"
#include "test.h"

#include <pthread.h>

FIXTURE(setup, fixture_teardown);

#define PORTS 64

/* All ports of a switch at once. */
static void submit_all(struct mad_async *async, const struct mad_counters_options *options,
		       struct result *results)
{
	memset(results, 0, PORTS * sizeof(*results));
	for (unsigned i = 0; i < PORTS; i++)
		assert_int_equal(mad_counters_submit(async, &to, i + 1, options, came,
						     &results[i], NULL),
				 0);
}

TEST(a_switch_of_64_ports_takes_65_requests)
{
	struct mad_counters_options options = {.node = mad_counters_node_create()};
	struct mad_async *async = mad_async_create(fixture.port);
	struct result results[PORTS];

	node.capabilities = MAD_PMA_EXTENDED_WIDTH | MAD_PMA_XMIT_WAIT;
	node.capabilities2 = MAD_PMA2_ADDITIONAL_EXTENDED;
	put(EXTENDED, IB_PC_EXT_RCV_PKTS_F, 5);
	submit_all(async, &options, results);
	/* the creator may free the node while readings use it */
	mad_counters_node_free(options.node);
	assert_int_equal(mad_async_run(async), 1 + PORTS);
	assert_int_equal(device_written(), 1 + PORTS);
	for (unsigned i = 0; i < PORTS; i++) {
		assert_int_equal(results[i].calls, 1);
		assert_int_equal(results[i].error, 0);
		assert_int_equal(results[i].counters.rcv_packets, 5);
		assert_int_equal(results[i].counters.port, i + 1);
		assert_int_equal(results[i].counters.odd, 0);
		assert_int_equal(results[i].counters.requests, i ? 1 : 2);
	}
	mad_async_destroy(async);
}

TEST(readings_without_a_node_ask_for_class_port_info_each)
{
	struct mad_async *async = mad_async_create(fixture.port);
	struct result results[PORTS];

	submit_all(async, NULL, results);
	mad_async_run(async);
	assert_int_equal(device_written(), 2 * PORTS);
	assert_int_equal(results[PORTS - 1].counters.present, BASIC_COUNTERS);
	mad_async_destroy(async);
}

TEST(a_dead_switch_costs_one_request_for_all_ports)
{
	struct mad_counters_options options = {.node = mad_counters_node_create()};
	struct mad_async *async = mad_async_create(fixture.port);
	struct result results[PORTS];

	node.silent = CLASS_PORT_INFO;
	options.timeout_ms = 5;
	mad_rpc_set_retries(fixture.port, 1);
	submit_all(async, &options, results);
	mad_async_run(async);
	assert_int_equal(device_written(), 1);
	for (unsigned i = 0; i < PORTS; i++) {
		assert_int_equal(results[i].calls, 1);
		assert_int_equal(results[i].error, -ETIMEDOUT);
	}
	/* the next reading sends a request again: all get the status */
	node.silent = 0;
	node.status[CLASS_PORT_INFO] = 0x001c;
	options.timeout_ms = 0;
	submit_all(async, &options, results);
	mad_async_run(async);
	assert_int_equal(device_written(), 2);
	for (unsigned i = 0; i < PORTS; i++) {
		assert_int_equal(results[i].error, -EIO);
		assert_int_equal(results[i].counters.status, 0x1c);
	}
	node.status[CLASS_PORT_INFO] = 0;
	submit_all(async, &options, results);
	mad_async_run(async);
	assert_int_equal(device_written(), 3 + PORTS);
	assert_int_equal(results[0].error, 0);
	mad_async_destroy(async);
	mad_counters_node_free(options.node);
}

/* A node that rejected an attribute before its ClassPortInfo was read. */
TEST(an_engine_does_not_ask_for_what_was_refused_before)
{
	struct mad_counters_options options = {.counters = MAD_COUNTERS_ALL,
					       .node = mad_counters_node_create(),
					       .basic = true};
	struct mad_async *async = mad_async_create(fixture.port);
	struct result results[PORTS];

	node.status[RCV_DETAILS] = 0x000c;
	read_with(&options, 3);
	assert_int_equal(node.count[RCV_DETAILS], 1);
	options.basic = false;
	submit_all(async, &options, results);
	mad_async_run(async);
	assert_int_equal(results[PORTS - 1].error, 0);
	assert_int_equal(node.count[CLASS_PORT_INFO], 1);
	assert_int_equal(node.count[RCV_DETAILS], 1);
	mad_async_destroy(async);
	mad_counters_node_free(options.node);
}

TEST(readings_do_not_wait_for_a_request_that_was_not_submitted)
{
	struct mad_counters_options options = {.node = mad_counters_node_create()};
	struct mad_async *async = mad_async_create(fixture.port);
	struct result results[PORTS], refused = {0};

	device_fail_malloc(2);
	assert_int_equal(mad_counters_submit(async, &to, 1, &options, came, &refused, NULL),
			 -ENOMEM);
	device_fail_malloc(0);
	submit_all(async, &options, results);
	mad_async_run(async);
	assert_int_equal(device_written(), 1 + PORTS);
	assert_int_equal(results[0].error, 0);
	assert_int_equal(results[PORTS - 1].calls, 1);
	assert_int_equal(refused.calls, 0);
	mad_async_destroy(async);
	mad_counters_node_free(options.node);
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
	struct mad_counters_options options = {.node = mad_counters_node_create()};
	struct mad_counters_node *freed = options.node;
	struct mad_async *async = mad_async_create(fixture.port);
	struct result result = {0};

	device_on_write(free_node_and_respond, &freed);
	assert_int_equal(mad_counters_submit(async, &to, PORT, &options, came, &result, NULL),
			 0);
	mad_async_run(async);
	assert_null(freed);
	assert_int_equal(result.calls, 1);
	assert_int_equal(result.error, 0);
	mad_async_destroy(async);
}

TEST(the_end_of_an_engine_ends_readings_that_wait)
{
	struct mad_counters_options options = {.node = mad_counters_node_create()};
	struct mad_async *async = mad_async_create(fixture.port);
	struct result results[PORTS];

	node.hold = true;
	submit_all(async, &options, results);
	mad_async_destroy(async);
	for (unsigned i = 0; i < PORTS; i++) {
		assert_int_equal(results[i].calls, 1);
		assert_int_equal(results[i].error, -ECANCELED);
	}
	/* and the node serves the next engine */
	node.hold = false;
	async = mad_async_create(fixture.port);
	submit_all(async, &options, results);
	mad_async_run(async);
	assert_int_equal(results[PORTS - 1].error, 0);
	mad_async_destroy(async);
	mad_counters_node_free(options.node);
}

TEST(two_engines_and_a_blocking_call_share_a_node)
{
	struct mad_counters_options options = {.node = mad_counters_node_create()};
	struct mad_async *first = mad_async_create(fixture.port);
	struct mad_async *second = mad_async_create(fixture.port);
	struct result results[4] = {0};

	node.hold = true;
	mad_port_set_destination_limit(fixture.port, 8);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(mad_counters_submit(i % 2 ? second : first, &to, i + 1,
						     &options, came, &results[i], NULL),
				 0);
	/* an engine does not wait for another engine, whose callbacks run in its own thread */
	while (node.held_count < 3)
		mad_async_process(first);
	release_held();
	mad_async_run(second);
	assert_int_equal(results[1].calls, 1);
	assert_int_equal(results[3].calls, 1);
	read_with(&options, 1);
	mad_async_run(first);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(results[i].calls, 1);
		assert_int_equal(results[i].error, 0);
	}
	mad_async_destroy(first);
	mad_async_destroy(second);
	mad_counters_node_free(options.node);
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
	struct mad_counters_options options = {.node = arg};
	struct mad_async *async = mad_async_create(fixture.port);
	struct result results[4] = {0};
	struct mad_counters counters;

	for (int i = 0; i < ROUNDS; i++) {
		for (unsigned k = 0; k < 4; k++)
			mad_counters_submit(async, &to, k + 1, &options, came, &results[k],
					    NULL);
		if (mad_counters_read(fixture.port, &to, PORT, &options, &counters))
			results[0].error = -EPROTO;
		mad_async_run(async);
	}
	mad_async_destroy(async);
	for (unsigned k = 0; k < 4; k++)
		if (results[k].calls != ROUNDS || results[k].error)
			return NULL;
	return arg;
}

TEST(threads_share_a_node)
{
	struct mad_counters_node *shared = mad_counters_node_create();
	pthread_t threads[THREADS];
	void *result;

	node.capabilities = MAD_PMA_EXTENDED_WIDTH;
	device_on_write(respond_at_once, NULL);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_often, shared), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &result);
		assert_non_null(result);
	}
	mad_counters_node_free(shared);
}

/* A thread that submits readings on a shared engine. */
struct submitter {
	struct mad_async *async;
	struct mad_counters_node *node;
	struct result results[4];
	int error;
};

static void *submit_four(void *arg)
{
	struct submitter *submitter = arg;
	struct mad_counters_options options = {.node = submitter->node};

	for (unsigned k = 0; k < 4; k++)
		submitter->error |= mad_counters_submit(submitter->async, &to, k + 1, &options,
							came, &submitter->results[k], NULL);
	return NULL;
}

TEST(threads_share_an_engine_and_a_node)
{
	struct mad_async *async = mad_async_create(fixture.port);
	struct submitter submitters[THREADS];
	pthread_t threads[THREADS];

	device_on_write(respond_at_once, NULL);
	for (int round = 0; round < ROUNDS; round++) {
		struct mad_counters_node *shared = mad_counters_node_create();

		for (int i = 0; i < THREADS; i++) {
			submitters[i] = (struct submitter){.async = async, .node = shared};
			assert_int_equal(
				pthread_create(&threads[i], NULL, submit_four, &submitters[i]),
				0);
		}
		mad_async_run(async);
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		mad_async_run(async);
		for (int i = 0; i < THREADS; i++) {
			assert_int_equal(submitters[i].error, 0);
			for (unsigned k = 0; k < 4; k++) {
				assert_int_equal(submitters[i].results[k].calls, 1);
				assert_int_equal(submitters[i].results[k].error, 0);
			}
		}
		mad_counters_node_free(shared);
	}
	mad_async_destroy(async);
}

/* Some readings of a node; the first one asks for ClassPortInfo, the others wait. */
#define FEW 4

struct few {
	struct mad_counters_options options;
	struct mad_async *async;
	struct result results[FEW];
	struct mad_counters_reading *readings[FEW];
};

static void begin_few(struct few *few)
{
	*few = (struct few){.options.node = mad_counters_node_create(),
			    .async = mad_async_create(fixture.port)};
	node.hold = true;
	node.count[CLASS_PORT_INFO] = 0;
	for (unsigned i = 0; i < FEW; i++)
		assert_int_equal(mad_counters_submit(few->async, &to, i + 1, &few->options,
						     came, &few->results[i], &few->readings[i]),
				 0);
	assert_int_equal(node.count[CLASS_PORT_INFO], 1);
}

static void end_few(struct few *few)
{
	mad_async_run(few->async);
	for (unsigned i = 0; i < FEW; i++)
		assert_int_equal(few->results[i].calls, 1);
	mad_async_destroy(few->async);
	mad_counters_node_free(few->options.node);
}

static void process_until(const struct few *few, const struct result *result)
{
	while (!result->calls)
		assert_true(mad_async_process(few->async) >= 0);
}

TEST(a_reading_can_be_cancelled)
{
	struct mad_counters_options options = {0};
	struct mad_async *async = mad_async_create(fixture.port);
	const unsigned silent[] = {CLASS_PORT_INFO, EXTENDED, BASIC};
	struct mad_counters_reading *reading;

	node.capabilities = MAD_PMA_EXTENDED_WIDTH;
	for (unsigned i = 0; i < 3; i++) {
		struct result result = {0};

		node.silent = silent[i];
		node.count[silent[i]] = 0;
		assert_int_equal(mad_counters_submit(async, &to, PORT, &options, came, &result,
						     &reading),
				 0);
		while (!node.count[silent[i]])
			assert_true(mad_async_process(async) >= 0);
		mad_counters_cancel(reading);
		mad_counters_cancel(reading);
		assert_int_equal(result.calls, 0);
		assert_int_equal(mad_async_run(async), 1);
		assert_int_equal(result.calls, 1);
		assert_int_equal(result.error, -ECANCELED);
		/* what was read before */
		assert_true(result.counters.present == (i == 2 ? 0xff : 0));
	}
	mad_counters_cancel(NULL);
	mad_async_destroy(async);
}

/* Its response is there, but was not handled. */
TEST(a_cancelled_reading_reports_no_status)
{
	struct mad_async *async = mad_async_create(fixture.port);
	struct mad_counters_reading *reading;
	struct result result = {0};

	node.status[CLASS_PORT_INFO] = 0x001c;
	assert_int_equal(mad_counters_submit(async, &to, PORT, NULL, came, &result, &reading),
			 0);
	mad_counters_cancel(reading);
	mad_async_run(async);
	assert_int_equal(result.error, -ECANCELED);
	assert_int_equal(result.counters.status, 0);
	mad_async_destroy(async);
}

TEST(a_reading_that_waits_is_cancelled_alone)
{
	struct few few;

	begin_few(&few);
	mad_counters_cancel(few.readings[2]);
	process_until(&few, &few.results[2]);
	assert_int_equal(few.results[2].error, -ECANCELED);
	assert_int_equal(few.results[0].calls + few.results[1].calls + few.results[3].calls, 0);
	release_held();
	end_few(&few);
	assert_int_equal(few.results[0].error, 0);
	assert_int_equal(few.results[1].error, 0);
	assert_int_equal(few.results[3].error, 0);
}

TEST(readings_do_not_end_with_the_one_that_asks)
{
	struct few few;

	begin_few(&few);
	mad_counters_cancel(few.readings[0]);
	process_until(&few, &few.results[0]);
	assert_int_equal(few.results[0].error, -ECANCELED);
	release_held();
	end_few(&few);
	for (unsigned i = 1; i < FEW; i++)
		assert_int_equal(few.results[i].error, 0);
	/* the next one asked, for the others, too */
	assert_int_equal(node.count[CLASS_PORT_INFO], 2);
}

TEST(all_readings_of_a_node_can_be_cancelled_one_by_one)
{
	struct few few;

	begin_few(&few);
	for (unsigned i = 0; i < FEW; i++)
		mad_counters_cancel(few.readings[i]);
	end_few(&few);
	for (unsigned i = 0; i < FEW; i++)
		assert_int_equal(few.results[i].error, -ECANCELED);
	/* nothing waits for a request that was cancelled */
	begin_few(&few);
	mad_counters_cancel(few.readings[0]);
	mad_async_cancel_all(few.async);
	end_few(&few);
	for (unsigned i = 0; i < FEW; i++)
		assert_int_equal(few.results[i].error, -ECANCELED);
	node.hold = false;
	node.held_count = 0;
	read_with(NULL, 2);
}

static struct few *cancelled;

static void cancel_others(struct mad_async *async, int error,
			  const struct mad_counters *counters, void *arg)
{
	struct result *result = arg;

	came(async, error, counters, result);
	for (unsigned i = 0; i < FEW; i++)
		if (result != &cancelled->results[i] && !cancelled->results[i].calls)
			mad_counters_cancel(cancelled->readings[i]);
}

/* Those that have the response, but were not called back, and the one that asked. */
TEST(a_callback_can_cancel_readings_that_waited)
{
	struct few few = {.options.node = mad_counters_node_create(),
			  .async = mad_async_create(fixture.port)};

	cancelled = &few;
	node.silent = CLASS_PORT_INFO;
	few.options.timeout_ms = 5;
	mad_rpc_set_retries(fixture.port, 1);
	for (unsigned i = 0; i < FEW; i++)
		assert_int_equal(mad_counters_submit(few.async, &to, i + 1, &few.options,
						     cancel_others, &few.results[i],
						     &few.readings[i]),
				 0);
	mad_async_run(few.async);
	/* the first that waited */
	assert_int_equal(few.results[1].error, -ETIMEDOUT);
	assert_int_equal(few.results[0].error, -ECANCELED);
	assert_int_equal(few.results[2].error, -ECANCELED);
	assert_int_equal(few.results[3].error, -ECANCELED);
	end_few(&few);
}

/* Submits readings until the next request needs memory, which it does not get. */
static void use_up_requests(struct mad_async *async, struct result *result)
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
		struct few few;

		begin_few(&few);
		use_up_requests(few.async, &result);
		mad_counters_cancel(few.readings[cancel]);
		device_fail_malloc(0);
		assert_int_equal(node.count[CLASS_PORT_INFO], 1);
		release_held();
		end_few(&few);
		for (unsigned i = 0; i < FEW; i++)
			assert_int_equal(few.results[i].error, i == cancel ? -ECANCELED : 0);
		assert_true(result.calls > 0);
	}
}

TEST(what_cannot_be_begun_is_not_called_back)
{
	struct mad_counters_options options = {.node = mad_counters_node_create()};
	struct mad_async *async = mad_async_create(fixture.port);
	struct mad_counters_reading *reading = NULL;
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
		assert_null(reading);
	}
	/* the counters of a second response need memory */
	device_fail_malloc(0);
	node.capabilities = MAD_PMA_EXTENDED_WIDTH;
	assert_int_equal(mad_counters_submit(async, &to, 1, NULL, came, &result, NULL), 0);
	while (!node.count[EXTENDED])
		mad_async_process(async);
	device_fail_malloc(1);
	mad_async_run(async);
	assert_int_equal(result.calls, 1);
	assert_int_equal(result.error, -ENOMEM);
	assert_true(result.counters.present == 0xff);
	device_fail_malloc(1);
	assert_null(mad_counters_node_create());
	device_fail_malloc(0);
	mad_async_destroy(async);
	assert_int_equal(result.calls, 1);
	mad_counters_node_free(options.node);
}
