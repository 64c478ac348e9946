/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Many engines on one port, each with its own event loop: a message wakes few loops, a loop
 * that does not run stops no other loop, and engines without requests cost nothing.
 */

#include "port_state.h"
#include "event_loop.h"
#include "gate.h"
#include "test.h"

#define LOOPS       16
#define IDLE        20000
#define MEASURED    2000
#define RUNS        3
/* The processor time of a request may grow by this factor with IDLE engines. */
#define COSTS_MORE  5
/* A message for one engine may wake this many loops: its own, and the one that reads. */
#define LOOPS_WOKEN 2
#define TRIES       10

static struct mad_async *engines[LOOPS], *idle[IDLE];
static struct outcome outcomes[LOOPS];

static int setup(void)
{
	gate_init();
	if (port_setup())
		return -1;
	memset(outcomes, 0, sizeof(outcomes));
	memset(idle, 0, sizeof(idle));
	for (int i = 0; i < LOOPS; i++)
		if (!(engines[i] = mad_async_create(port)))
			return -1;
	return 0;
}

static int teardown(void)
{
	for (int i = 0; i < LOOPS; i++)
		mad_async_free(engines[i]);
	for (int i = 0; i < IDLE; i++)
		mad_async_free(idle[i]);
	return gate_teardown();
}

FIXTURE(setup, teardown);

/* --- loops that are woken -------------------------------------------------------- */

/* The latest packet of each engine. */
static unsigned packets[LOOPS];

static void submit_for(int engine)
{
	outcomes[engine].calls = 0;
	packets[engine] = device_written();
	submit(engines[engine], set_request(), engine + 1, &outcomes[engine], NULL);
	assert_int_equal(device_written(), packets[engine] + 1);
}

/* Each engine has a loop and a request in flight. */
static void submit_one_each(void)
{
	for (int i = 0; i < LOOPS; i++) {
		assert_true(mad_async_poll_fd(engines[i]) >= 0);
		submit_for(i);
	}
}

static void respond_to(int engine)
{
	device_respond(device_packet(packets[engine]), 0, 0, NULL, 0);
}

static void process_all(void)
{
	for (int i = 0; i < LOOPS; i++)
		assert_true(mad_async_process(engines[i]) >= 0);
}

static void fill_fds(struct pollfd fds[LOOPS])
{
	for (int i = 0; i < LOOPS; i++) {
		fds[i].fd = mad_async_poll_fd(engines[i]);
		fds[i].events = POLLIN;
	}
}

/* The number of loops that a message wakes, which was just queued. */
static int count_awake(void)
{
	struct pollfd fds[LOOPS];

	fill_fds(fds);
	/* the device needs a moment */
	assert_int_not_equal(poll(fds, LOOPS, LONG_MS), 0);
	return poll(fds, LOOPS, 0);
}

static int count_for_response(int engine)
{
	int count;

	process_all();
	respond_to(engine);
	count = count_awake();
	while (!outcomes[engine].calls)
		process_all();
	submit_for(engine);
	return count;
}

static int count_for_request(int arg)
{
	const struct ib_user_mad header = {.agent_id = 0};
	const uint8_t mad[IB_MAD_SIZE] = {1, VENDOR_CLASS, 1, IB_MAD_METHOD_GET};
	int count;

	(void)arg;
	process_all();
	device_queue(device_fd(), &header, mad, sizeof(mad));
	count = count_awake();
	process_all();
	return count;
}

/*
 * The least of some counts: if this thread does not run for a while, the library may rightly
 * wake another loop.
 */
static void expect_few(int (*count)(int arg), int arg)
{
	int least = LOOPS, awake;

	for (int i = 0; i < TRIES && least > LOOPS_WOKEN; i++) {
		awake = count(arg);
		if (awake < least)
			least = awake;
	}
	assert_in_range(least, 1, LOOPS_WOKEN);
}

TEST(a_response_wakes_few_event_loops)
{
	submit_one_each();
	for (int i = 0; i < LOOPS; i++)
		expect_few(count_for_response, i);
}

TEST(a_request_of_another_node_wakes_few_event_loops)
{
	submit_one_each();
	expect_few(count_for_request, 0);
}

/* --- loops that do not run ------------------------------------------------------- */

/* Runs the loops of all engines but one in this thread, until their requests are complete. */
static void run_all_but(int stuck, bool single)
{
	struct pollfd fds[2 * LOOPS];
	int left = LOOPS - 1, timeout, engine_timeout, count;

	while (left) {
		timeout = LONG_MS;
		for (int i = 0; i < LOOPS; i++) {
			struct pollfd *both = &fds[2 * i];

			both[0] = both[1] = (struct pollfd){.fd = -1, .events = POLLIN};
			if (i == stuck)
				continue;
			both[0].fd =
				single ? mad_async_poll_fd(engines[i]) : mad_rpc_portid(port);
			both[1].fd = single ? -1 : mad_async_poll_fd(engines[i]);
			engine_timeout = single ? -1 : timeout_ms_of(engines[i]);
			if (engine_timeout >= 0 && engine_timeout < timeout)
				timeout = engine_timeout;
		}
		if (!poll(fds, 2 * LOOPS, timeout))
			assert_int_not_equal(timeout, LONG_MS);
		for (int i = 0; i < LOOPS; i++) {
			if (i == stuck || (single && !fds[2 * i].revents))
				continue;
			count = mad_async_process(engines[i]);
			assert_true(count >= 0);
			left -= count;
		}
	}
}

/* In its first attempt. */
static void expect_response(int engine)
{
	assert_int_equal(outcomes[engine].calls, 1);
	assert_int_equal(outcomes[engine].error, 0);
	assert_int_equal(outcomes[engine].transmissions, 1);
}

static void expect_others_to_complete(bool single)
{
	mad_rpc_set_timeout(port, LONG_MS / 3);
	for (int stuck = 0; stuck < LOOPS; stuck++) {
		submit_one_each();
		for (int i = 0; i < LOOPS; i++)
			respond_to(i);
		run_all_but(stuck, single);
		assert_int_equal(outcomes[stuck].calls, 0);
		/* the loop runs again */
		while (!outcomes[stuck].calls)
			assert_true(mad_async_process(engines[stuck]) >= 0);
		for (int i = 0; i < LOOPS; i++)
			expect_response(i);
	}
}

TEST(a_loop_that_never_runs_stops_no_other_loop_of_a_single_descriptor)
{
	expect_others_to_complete(true);
}

TEST(a_loop_that_never_runs_stops_no_other_loop_of_two_descriptors)
{
	expect_others_to_complete(false);
}

/* The loop that the first message woke never runs. */
TEST(a_loop_that_was_woken_and_does_not_run_stops_no_other_loop)
{
	struct pollfd fds[LOOPS];
	int woken = -1;

	mad_rpc_set_timeout(port, LONG_MS / 3);
	submit_one_each();
	respond_to(0);
	fill_fds(fds);
	assert_int_not_equal(poll(fds, LOOPS, LONG_MS), 0);
	for (int i = LOOPS - 1; i >= 0; i--)
		if (fds[i].revents)
			woken = i;
	for (int i = 1; i < LOOPS; i++)
		respond_to(i);
	run_all_but(woken, true);
	for (int i = 0; i < LOOPS; i++)
		if (i != woken)
			expect_response(i);
}

/* Each loop in a thread: the thread of one engine never returns from a callback. */
TEST(a_callback_that_never_returns_stops_no_other_loop)
{
	uint8_t data[IB_SMP_DATA_SIZE] = {0};
	struct loop loops[LOOPS];
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(1);

	mad_rpc_set_timeout(port, LONG_MS / 3);
	assert_int_equal(mad_async_submit(engines[0], &rpc, &to, data, sizeof(data),
					  call_back_at_gate, &outcomes[0], NULL),
			 0);
	packets[0] = 0;
	for (int i = 1; i < LOOPS; i++)
		submit_for(i);
	for (int i = 0; i < LOOPS; i++) {
		loop_init(&loops[i], engines[i]);
		loop_start(&loops[i]);
	}
	respond_to(0);
	wait_for(&gate.entered);
	for (int i = 1; i < LOOPS; i++)
		respond_to(i);
	for (int i = 1; i < LOOPS; i++)
		while (!outcomes[i].calls)
			sleep_ms(1);
	sem_post(&gate.leave);
	device_remove();
	for (int i = 0; i < LOOPS; i++) {
		loop_join(&loops[i]);
		expect_response(i);
	}
}

static void submit_at_gate(int engine, int lid)
{
	uint8_t data[IB_SMP_DATA_SIZE] = {0};
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(lid);

	assert_int_equal(mad_async_submit(engines[engine], &rpc, &to, data, sizeof(data),
					  call_back_at_gate, &outcomes[engine], NULL),
			 0);
}

/* The first loop is in a callback when the second one becomes the watcher, which then is. */
TEST(a_loop_that_was_replaced_in_a_callback_replaces_the_other_one)
{
	struct loop loops[2];
	int64_t end;

	mad_rpc_set_retries(port, 1);
	for (int i = 0; i < 2; i++)
		loop_init(&loops[i], engines[i]);
	submit_at_gate(0, 1);
	submit(engines[0], set_request(), 2, &outcomes[2], NULL);
	submit(engines[1], set_request(), 3, &outcomes[3], NULL);
	submit_at_gate(1, 4);
	for (int i = 0; i < 2; i++)
		loop_start(&loops[i]);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	wait_for(&gate.entered);
	device_respond(device_packet(2), 0, 0, NULL, 0);
	while (!outcomes[3].calls)
		sleep_ms(1);
	sem_post(&gate.leave);
	sleep_ms(100);
	device_respond(device_packet(3), 0, 0, NULL, 0);
	wait_for(&gate.entered);
	device_respond(device_packet(1), 0, 0, NULL, 0);
	for (end = now_ms() + LONG_MS / 3; !outcomes[2].calls && now_ms() < end;)
		sleep_ms(1);
	assert_int_equal(outcomes[2].calls, 1);
	sem_post(&gate.leave);
	device_remove();
	for (int i = 0; i < 2; i++)
		loop_join(&loops[i]);
}

/* --- engines without requests ---------------------------------------------------- */

static int64_t processor_us(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return time.tv_sec * INT64_C(1000000) + time.tv_nsec / 1000;
}

static void make_by_engine(void)
{
	for (int i = 0; i < MEASURED; i++) {
		submit(engines[0], set_request(), 1, &outcomes[0], NULL);
		assert_int_equal(mad_async_process(engines[0]), 1);
	}
}

static void make_by_blocking_call(void)
{
	uint8_t data[IB_PC_DATA_SZ] = {0};
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(1);

	for (int i = 0; i < MEASURED; i++) {
		rpc.trid = 0;
		assert_non_null(mad_rpc(port, &rpc, &to, data, data));
	}
}

/* The least processor time of some runs. */
static int64_t measure(void (*make)(void))
{
	int64_t least = INT64_MAX, before, spent;

	for (int i = 0; i < RUNS; i++) {
		before = processor_us();
		make();
		spent = processor_us() - before;
		if (spent < least)
			least = spent;
	}
	return least;
}

static void expect_similar_costs(void (*make)(void))
{
	int64_t few, many;

	device_on_write(echo, NULL);
	device_forget_packets();
	few = measure(make);
	for (int i = 0; i < IDLE; i++)
		assert_non_null(idle[i] = mad_async_create(port));
	many = measure(make);
	print_message("%d requests: %d us, with %d idle engines %d us\n", MEASURED, (int)few,
		      IDLE, (int)many);
	assert_true(many < COSTS_MORE * few);
}

TEST(a_request_costs_the_same_with_many_idle_engines)
{
	expect_similar_costs(make_by_engine);
}

TEST(a_blocking_call_costs_the_same_with_many_idle_engines)
{
	expect_similar_costs(make_by_blocking_call);
}
