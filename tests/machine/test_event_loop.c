/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Event loops: they are woken for all work and for nothing else, end with the port, do a
 * limited part of the work in each round, and share a port with other loops and threads.
 */

#include "async.h"

#include <infiniband/mad_errors.h>
#include <infiniband/mad_notice.h>
#include <infiniband/mad_server.h>
#include <infiniband/umad_ext.h>
#include <stdatomic.h>
#include <sys/resource.h>

#define MANY   200
#define BATCH  64 /* the limit of one mad_async_process() */
#define VENDOR 0x0a
/* How long a loop may take to see what concerns it. */
#define LOOK   (20 * MS)

static struct outcome outcomes[MANY];

static int set_up(bool high)
{
	memset(outcomes, 0, sizeof(outcomes));
	return open_engine_on("star:8", high);
}

static int setup(void)
{
	return set_up(false);
}

FIXTURE(setup, close_engine);

/* --- loops ---------------------------------------------------------------------- */

struct loop {
	pthread_t thread;
	struct mad_async *engine;
	struct pollfd fd;
	unsigned rounds;
	int result; /* of the last mad_async_process() */
};

static struct loop loop_of(struct mad_async *engine)
{
	return (struct loop){.engine = engine,
			     .fd = {.fd = mad_async_poll_fd(engine), .events = POLLIN}};
}

static void *run_loop(void *arg)
{
	struct loop *loop = arg;

	do {
		loop->rounds++;
		poll(&loop->fd, 1, -1);
		loop->result = mad_async_process(loop->engine);
	} while (loop->result >= 0);
	return NULL;
}

/* Rounds until so many callbacks. */
static unsigned rounds_until(struct mad_async *engine, int count)
{
	unsigned rounds = 0;
	int ret;

	for (; count > 0; rounds++) {
		assert_true(loop_is_awake(engine, 100000));
		ret = mad_async_process(engine);
		assert_in_range(ret, 0, BATCH);
		count -= ret;
	}
	return rounds;
}

/* After its last work a loop may look once more at the port. */
static void expect_sleep(struct mad_async *engine)
{
	for (int i = 0; i < 4 && loop_is_awake(engine, 0); i++)
		mad_async_process(engine);
	assert_false(loop_is_awake(engine, 0));
}

/* A message wakes the loop at once, not only when the loop looks at the port again. */
static void expect_to_wake_at_once(struct mad_async *engine, int fd)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};
	struct outcome outcome = {0};
	int64_t before = machine_us();

	machine_rule("slow 3ms");
	submit_with(engine, rpc_of(SMP_SET), leaf(1), note, &outcome);
	assert_int_equal(poll(&pollfd, 1, 0), 0);
	assert_int_equal(poll(&pollfd, 1, -1), 1);
	assert_int_equal(mad_async_process(engine), 1);
	assert_in_range(outcome.at - before, 3 * MS, 3100);
	expect_sleep(engine);
}

static void wake_for_work(bool high)
{
	int64_t before;

	assert_int_equal(set_up(high), 0);
	assert_in_range(mad_async_poll_fd(async), 3, 1023);
	expect_sleep(async);
	machine_rule("slow 5ms");
	machine_rule("silent on n8");
	mad_rpc_set_retries(port, 1);
	for (unsigned i = 0; i < MANY; i++)
		submit(i & 1 ? PMA_SET : SMP_SET, leaf(1 + i % 7), &outcomes[i]);
	assert_in_range(rounds_until(async, MANY), 1, high ? 2 * MANY : MANY + 20);
	for (int i = 0; i < MANY; i++)
		expect_outcome(&outcomes[i], 0);
	for (int i = 0; i < 10 && loop_is_awake(async, 100); i++)
		assert_int_equal(mad_async_process(async), 0);
	assert_false(loop_is_awake(async, 10000));
	before = machine_us();
	submit(PMA_SET, leaf(8), &outcomes[0]);
	rounds_until(async, 1);
	assert_int_equal(outcomes[0].error, -ETIMEDOUT);
	assert_in_range(outcomes[0].at - before, 1000 * MS, 1050 * MS);
	close_engine();
}

/* A simulator's handle is no descriptor: the loop looks at the port by a timer. */
PLAIN_TEST(a_loop_is_woken_for_work_and_for_time_and_for_nothing_else)
{
	wake_for_work(false);
	wake_for_work(true);
}

static int64_t time_out(int timeout_ms, bool by_loop)
{
	ib_rpc_t rpc = rpc_of(PMA_SET);
	int64_t before = machine_us();

	rpc.timeout = timeout_ms;
	submit_with(async, rpc, leaf(1), note, &outcomes[0]);
	if (by_loop) {
		struct pollfd fd = {.fd = mad_async_poll_fd(async), .events = POLLIN};
		unsigned rounds = 0;

		for (; mad_async_process(async) == 0; rounds++)
			assert_int_equal(poll(&fd, 1, -1), 1);
		assert_in_range(rounds, 1, 10);
	} else {
		assert_int_equal(mad_async_wait(async, -1), 1);
	}
	assert_int_equal(outcomes[0].error, -ETIMEDOUT);
	assert_true(outcomes[0].at - before >= timeout_ms * MS);
	return outcomes[0].at - before;
}

/* As a thread that waits is, to the microsecond, for times of any length. */
TEST(a_loop_is_woken_when_a_timer_is_due)
{
	static const int ms[] = {1, 7, 1000, 3600000, 2000000000};

	silence();
	mad_rpc_set_retries(port, 1);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(time_out(ms[i], true), time_out(ms[i], false));
}

/* --- beside other threads ------------------------------------------------------- */

static unsigned notices_ended;

static void count_end(struct mad_notices *notices, const struct mad_notice *notice, void *arg)
{
	(void)notices, (void)arg;
	notices_ended += notice->kind == MAD_NOTICE_END;
}

static void sleep_in_callback(struct mad_async *engine, const struct mad_reply *reply,
			      void *arg)
{
	note(engine, reply, arg);
	machine_pass(200 * MS);
}

static unsigned rounds_within(int64_t us, int timeout_ms)
{
	unsigned rounds = 0;

	for (int64_t end = machine_us() + us; machine_us() < end;) {
		rounds += loop_is_awake(async, timeout_ms);
		mad_async_process(async);
	}
	return rounds;
}

/* The timer of the notices, which is due meanwhile, is for the thread in the callback. */
TEST(a_loop_does_not_spin_while_another_thread_calls_back)
{
	const struct mad_notices_options options = {.poll_ms = 20};
	struct mad_notices *notices;
	pthread_t thread;

	(void)mad_async_poll_fd(async);
	assert_int_equal(mad_notices_start(async, &options, count_end, NULL, &notices), 0);
	submit_with(async, rpc_of(PMA_SET), leaf(1), sleep_in_callback, &outcomes[0]);
	thread = start(wait_in_thread, async);
	machine_pass(MS);
	assert_int_equal(outcomes[0].calls, 1);
	assert_in_range(rounds_within(150 * MS, 10), 0, 50);
	mad_notices_stop(notices);
	assert_in_range(join(thread), 1, 10);
	/* a loop runs the notices' timer, too */
	notices_ended = 0;
	assert_int_equal(mad_notices_start(async, &options, count_end, NULL, &notices), 0);
	assert_in_range(rounds_within(200 * MS, 30), 9, 100);
	mad_notices_stop(notices);
	while (!notices_ended) {
		assert_true(loop_is_awake(async, 1000));
		mad_async_process(async);
	}
}

static atomic_uint open_requests;
static uint64_t ids[20];

static void count_one(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	note(engine, reply, arg);
	open_requests--;
}

enum helper {
	PROCESSES,
	RUNS,
	CANCELS,
	RECEIVES,
	ASKS,
	HELPERS
};

static void *help(void *helper)
{
	switch ((enum helper)(intptr_t)helper) {
	case PROCESSES:
		for (int i = 0; i < 3; i++) {
			mad_async_process(async);
			machine_pass(700);
		}
		break;
	case RUNS:
		mad_async_wait(async, 3);
		break;
	case CANCELS:
		for (int i = 0; i < 20; i += 4) {
			mad_async_cancel(async, ids[i]);
			machine_pass(100);
		}
		break;
	case RECEIVES:
		mad_free(mad_receive_via(NULL, 3, port));
		break;
	default:
		assert_int_equal(ask(rpc_of(SMP_GET), leaf(5)), 0);
	}
	return NULL;
}

/*
 * A thread that took over the work of a loop and then stops must wake the loop. A loop that is
 * not woken would call back only when it looks at the port again.
 */
static void help_loops(unsigned kinds, struct mad_async *engines[2], uint32_t *state)
{
	int64_t begun = machine_us();
	pthread_t threads[HELPERS];

	open_requests = 20;
	memset(outcomes, 0, sizeof(outcomes));
	for (unsigned i = 0; i < 20; i++) {
		ib_rpc_t rpc = rpc_of(i & 1 ? PMA_SET : SMP_SET);

		rpc.timeout = i % 3 ? 60000 : 1 + (int)(i % 4);
		ids[i] = submit_with(engines[i / 2 % 2], rpc,
				     leaf(i % 3 ? 1 + next_random(state, 5) : 8), count_one,
				     &outcomes[i]);
	}
	for (int i = 0; i < HELPERS; i++)
		if (kinds & 1 << i)
			threads[i] = start(help, (void *)(intptr_t)i);
	for (int i = 0; i < HELPERS; i++)
		if (kinds & 1 << i)
			join(threads[i]);
	while (open_requests)
		machine_pass(100);
	for (int i = 0; i < 20; i++) {
		if (outcomes[i].error != -ECANCELED)
			expect_outcome(&outcomes[i], i % 3 ? 0 : -ETIMEDOUT);
		assert_in_range(outcomes[i].at - begun, 0, LOOK);
	}
}

TEST(loops_are_woken_whatever_others_do)
{
	struct mad_async *engines[] = {async, mad_async_create(port)};
	uint32_t state = test_seed();
	struct loop loops[2];

	machine_rule("slow 1ms");
	machine_rule("silent on n8");
	mad_rpc_set_retries(port, 1);
	for (int i = 0; i < 2; i++) {
		loops[i] = loop_of(engines[i]);
		loops[i].thread = start(run_loop, &loops[i]);
	}
	for (unsigned i = 0; i < 4u << HELPERS; i++) {
		mad_port_set(port, MAD_PORT_SMP_WINDOW, i % 4 ? 0 : 3);
		help_loops(i / 4, engines, &state);
	}
	mad_rpc_close_port(port);
	port = NULL;
	for (int i = 0; i < 2; i++) {
		join(loops[i].thread);
		assert_int_equal(loops[i].result, -ECANCELED);
	}
	mad_async_free(engines[1]);
}

/*
 * The request of one engine times out, and its thread sends the other engine's request instead.
 * The other loop must know its timer while the first thread is in its callback.
 */
TEST(a_loop_knows_the_timers_of_requests_that_another_engine_sent)
{
	struct mad_async *slow = mad_async_create(port);
	ib_rpc_t rpc = rpc_of(PMA_SET);
	pthread_t runner;

	(void)mad_async_poll_fd(async);
	silence();
	mad_rpc_set_retries(port, 1);
	mad_port_set(port, MAD_PORT_GMP_WINDOW, 1);
	rpc.timeout = 20;
	submit_with(slow, rpc, leaf(1), sleep_in_callback, &outcomes[0]);
	submit_with(async, rpc, leaf(2), note, &outcomes[1]);
	runner = start(wait_in_thread, slow);
	rounds_until(async, 1);
	assert_int_equal(outcomes[1].error, -ETIMEDOUT);
	assert_in_range(outcomes[1].at, 40 * MS, 60 * MS);
	assert_int_equal(join(runner), 1);
	mad_async_free(slow);
}

/* Any thread may send requests; only an engine's own thread calls back. */
TEST(a_loop_sends_while_another_thread_calls_back)
{
	pthread_t runner;
	unsigned requests;

	machine_rule("silent on n2");
	mad_port_set(port, MAD_PORT_SMP_WINDOW, 2);
	submit_with(async, rpc_of(PMA_SET), leaf(1), sleep_in_callback, &outcomes[0]);
	for (unsigned i = 1; i <= 4; i++)
		submit(SMP_SET, leaf(1 + i % 2), &outcomes[i]);
	runner = start(wait_in_thread, async);
	machine_pass(MS);
	assert_int_equal(outcomes[0].calls, 1);
	requests = machine_requests(NULL);
	for (unsigned i = 5; i <= 8; i++)
		submit(SMP_SET, leaf(3), &outcomes[i]);
	for (int i = 0; i < 8; i++)
		if (loop_is_awake(async, 10))
			assert_int_equal(mad_async_process(async), 0);
	assert_true(machine_requests(NULL) > requests);
	/* the remaining work is the other thread's */
	assert_false(loop_is_awake(async, 0));
	/* a stop ends waits at once; the thread that calls back stops after its callback */
	mad_async_stop(async);
	assert_int_equal(mad_async_wait(async, 60000), -EINTR);
	assert_int_equal(mad_async_wait(async, 5), -ETIMEDOUT);
	assert_int_equal(outcomes[5].calls, 0);
	assert_in_range(machine_us(), MS, 199 * MS);
	assert_int_equal(join(runner), -EINTR);
	mad_async_cancel(async, MAD_ASYNC_ALL);
	assert_true(mad_async_wait(async, -1) > 0);
	assert_int_equal(outcomes[5].error, 0);
}

static void process_while_it_ends(struct mad_async *engine, const struct mad_reply *reply,
				  void *arg)
{
	ib_portid_t to = {.lid = (int)leaf(1)};

	note(engine, reply, arg);
	assert_int_equal(mad_async_process(engine), -ECANCELED);
	assert_int_equal(mad_async_poll_fd(engine), -ECANCELED);
	assert_int_equal(mad_async_get(engine, &to, MAD_NODE_INFO, 0, note, arg, NULL),
			 -ECANCELED);
	machine_pass(10 * MS);
}

/* Others return from their calls first. */
TEST(an_engine_that_is_being_destroyed_processes_nothing)
{
	pthread_t threads[2];

	silence();
	submit_with(async, rpc_of(PMA_SET), leaf(1), process_while_it_ends, &outcomes[0]);
	for (int i = 0; i < 2; i++)
		threads[i] = start(wait_in_thread, async);
	machine_pass(MS);
	mad_async_free(async);
	async = NULL;
	assert_in_range(join(threads[0]), 0, 1);
	assert_in_range(join(threads[1]), 0, 1);
	assert_int_equal(outcomes[0].calls, 1);
}

/* --- the end of the port --------------------------------------------------------- */

static void end_loop(bool removed, bool own_thread, unsigned requests)
{
	int error = removed ? -ENODEV : -ECANCELED;
	ib_portid_t to = {.lid = 1};
	struct loop loop = loop_of(async);

	silence();
	for (unsigned i = 0; i < requests; i++)
		submit(i & 1 ? PMA_SET : SMP_GET, leaf(1 + i % 8), &outcomes[i]);
	if (own_thread)
		loop.thread = start(run_loop, &loop);
	if (removed) {
		machine_rule("remove on host");
	} else {
		mad_rpc_close_port(port);
		port = NULL;
	}
	if (own_thread)
		join(loop.thread);
	else
		run_loop(&loop);
	assert_int_equal(loop.result, error);
	assert_in_range(loop.rounds, 1, 10);
	if (removed)
		assert_true(loop_is_awake(async, 0));
	else
		assert_int_equal(mad_async_poll_fd(async), -ECANCELED);
	assert_int_equal(mad_async_get(async, &to, MAD_NODE_INFO, 0, note, outcomes, NULL),
			 error);
	assert_int_equal(mad_async_wait(async, -1), 0);
	for (unsigned i = 0; i < requests; i++)
		expect_outcome(&outcomes[i], error);
}

PLAIN_TEST(a_loop_ends_with_its_port)
{
	static const unsigned requests[] = {0, 5, BATCH + 2};

	for (unsigned i = 0; i < 12; i++) {
		assert_int_equal(setup(), 0);
		end_loop(i & 1, i & 2, requests[i / 4]);
		close_engine();
	}
}

TEST(a_device_that_is_gone_ends_later_loops_and_is_not_read_again)
{
	struct mad_async *other = mad_async_create(port);
	struct loop loop;
	unsigned reads;

	submit(SMP_GET, leaf(1), &outcomes[0]);
	machine_rule("remove on host");
	assert_int_equal(mad_async_process(other), -ENODEV);
	assert_int_equal(outcomes[0].calls, 0);
	reads = machine_calls(MACHINE_READ);
	loop = loop_of(async);
	run_loop(&loop);
	assert_int_equal(loop.result, -ENODEV);
	assert_in_range(loop.rounds, 1, 10);
	assert_int_equal(outcomes[0].error, -ENODEV);
	assert_int_equal(mad_async_process(other), -ENODEV);
	assert_int_equal(mad_async_wait(other, -1), 0);
	assert_int_equal(machine_calls(MACHINE_READ), reads);
	mad_async_free(other);
}

/* --- one round ------------------------------------------------------------------- */

/* Messages, timers, requests to send, and callbacks, 64 at most of each. */
TEST(a_round_does_a_part_of_the_work)
{
	enum {
		MESSAGES,
		TIMERS,
		CALLBACKS,
		REQUESTS,
		WORKS
	};
	static struct outcome any;
	const unsigned count = 1000;

	(void)mad_async_poll_fd(async);
	mad_rpc_set_retries(port, 1);
	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 10000);
	for (int work = 0; work < WORKS; work++) {
		ib_rpc_t rpc = rpc_of(PMA_SET);
		unsigned rounds = 0;

		machine_rule("clear");
		if (work == TIMERS)
			silence();
		any.calls = 0;
		mad_port_set(port, MAD_PORT_GMP_WINDOW, work == REQUESTS ? 1 : 10000);
		rpc.timeout = work == TIMERS ? 1 : 60000;
		for (unsigned i = 0; i < count; i++)
			submit_with(async, rpc, leaf(1 + i % 8), note, &any);
		if (work == CALLBACKS) /* the messages are read */
			mad_free(mad_receive_via(NULL, 1000, port));
		machine_pass(50 * MS);
		for (; any.calls < count; rounds++) {
			unsigned reads = machine_calls(MACHINE_READ);
			unsigned writes = machine_calls(MACHINE_WRITE);
			uint64_t timeouts = stats_of(async).timed_out;

			assert_true(loop_is_awake(async, work == REQUESTS ? 1000 : 0));
			assert_in_range(mad_async_process(async), 0, BATCH);
			assert_in_range(machine_calls(MACHINE_READ) - reads, 0, BATCH);
			assert_in_range(machine_calls(MACHINE_WRITE) - writes, 0, BATCH);
			assert_in_range(stats_of(async).timed_out - timeouts, 0, BATCH);
		}
		assert_in_range(rounds, count / BATCH,
				work == CALLBACKS ? count / BATCH + 2 : UINT_MAX);
		expect_sleep(async);
	}
}

/* --- descriptors ----------------------------------------------------------------- */

TEST(an_engine_works_on_if_a_descriptor_cannot_be_opened_or_watched)
{
	static const struct {
		enum machine_call call;
		unsigned n;
	} rows[] = {{MACHINE_EVENTFD, 1},
		    {MACHINE_TIMERFD, 1},
		    {MACHINE_EPOLL, 1},
		    {MACHINE_EPOLL, 2},
		    {MACHINE_EPOLL, 3}};

	for (size_t i = 0; i < 5; i++) {
		struct mad_async *engine = mad_async_create(port);

		for (int twice = 0; twice < 2; twice++) {
			machine_fail(rows[i].call, rows[i].n, EMFILE);
			assert_int_equal(mad_async_poll_fd(engine), -EMFILE);
		}
		expect_to_wake_at_once(engine, mad_async_poll_fd(engine));
		mad_async_free(engine);
	}
}

static void note_request(struct mad_server *server, struct mad_request *request, int error,
			 void *arg)
{
	(void)server, (void)error;
	*(int64_t *)arg = machine_us();
	mad_request_free(request);
}

/* mad_async_poll_fd() would watch it again. */
static void loop_until(int fd, const int64_t *at)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};

	while (!*at) {
		poll(&pollfd, 1, 100000);
		assert_true(mad_async_process(async) >= 0);
	}
}

/* For responses, and for requests of others, which no timer announces. */
TEST(a_loop_looks_at_a_handle_that_cannot_be_watched)
{
	static const uint8_t request[MACHINE_MAD] = {1, VENDOR, 1, IB_MAD_METHOD_GET};
	const struct mad_server_options options = {
		.mgmt_class = VENDOR, .methods = {MAD_SERVER_METHOD(IB_MAD_METHOD_GET)}};
	struct mad_server *server;
	int64_t before, at = 0;
	int fd;

	machine_fail(MACHINE_EPOLL, 4, ENOMEM);
	fd = mad_async_poll_fd(async);
	assert_true(fd >= 0);
	machine_rule("slow 300ms on n1");
	before = machine_us();
	submit(SMP_SET, leaf(1), &outcomes[0]);
	loop_until(fd, &outcomes[0].at);
	expect_outcome(&outcomes[0], 0);
	assert_in_range(outcomes[0].at - before, 300 * MS, 300 * MS + LOOK);

	assert_int_equal(mad_server_start(async, &options, note_request, &at, &server), 0);
	before = machine_us();
	machine_send("n2", request, 30 * MS);
	loop_until(fd, &at);
	assert_in_range(at - before, 30 * MS, 30 * MS + LOOK);
	at = 0;
	mad_server_stop(server);
	loop_until(fd, &at);
}

TEST(when_a_loop_ends_another_loop_is_told_of_messages)
{
	struct mad_async *first = mad_async_create(port);
	int fd;

	assert_true(mad_async_poll_fd(first) >= 0);
	fd = mad_async_poll_fd(async);
	mad_async_free(first);
	/* mad_async_poll_fd() would let the loop be told again */
	expect_to_wake_at_once(async, fd);
}

/* And no thread waits in reading one. */
TEST(the_descriptors_end_at_exec)
{
	unsigned sources = 0;

	assert_true(mad_async_poll_fd(async) >= 0);
	assert_true(fcntl(mad_async_poll_fd(async), F_GETFD) & FD_CLOEXEC);
	for (int fd = 3; fd < 64; fd++)
		if (is_eventfd(fd)) {
			assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
			assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
			sources++;
		}
	assert_in_range(sources, 3, 60);
}

/* As with a closed standard input: the port's handle, then a descriptor of the engine. */
PLAIN_TEST(a_descriptor_may_have_number_0)
{
	for (int of_engine = 0; of_engine < 2; of_engine++) {
		int copy = -1;

		machine_start("star:8", NULL);
		if (!of_engine)
			copy = free_descriptor_0();
		assert_int_equal(mad_port_open(NULL, 0, &port), 0);
		async = mad_async_create(port);
		if (of_engine)
			copy = free_descriptor_0();
		else
			assert_int_equal(mad_rpc_portid(port), 0);
		assert_true(mad_async_poll_fd(async) > 0);
		assert_true(fcntl(0, F_GETFD) >= 0);
		expect_to_wake_at_once(async, mad_async_poll_fd(async));
		mad_async_free(async);
		mad_rpc_close_port(port);
		take_descriptor_0(copy);
		machine_stop();
	}
	async = NULL;
	port = NULL;
}

/* It may be a descriptor of the kernel, not of a simulator: threads wait without looking up. */
PLAIN_TEST(a_handle_may_have_a_number_above_1024)
{
	enum {
		OPEN = 1100
	};
	static int files[OPEN];
	struct rlimit before, limit;
	unsigned polls;
	pthread_t thread;

	getrlimit(RLIMIT_NOFILE, &before);
	limit = before;
	limit.rlim_cur = limit.rlim_cur < OPEN + 100 ? OPEN + 100 : limit.rlim_cur;
	if (limit.rlim_cur > limit.rlim_max || setrlimit(RLIMIT_NOFILE, &limit)) {
		print_message("the process cannot have %d descriptors\n", OPEN + 100);
		skip();
	}
	for (int i = 0; i < OPEN; i++)
		files[i] = dup(0);
	assert_int_equal(setup(), 0);
	assert_in_range(mad_rpc_portid(port), OPEN, OPEN + 100);
	expect_to_wake_at_once(async, mad_async_poll_fd(async));
	machine_rule("slow 3s");
	polls = machine_calls(MACHINE_POLL);
	mad_rpc_set_timeout(port, 60000);
	submit(PMA_SET, leaf(1), &outcomes[0]);
	thread = start(wait_in_thread, async);
	machine_pass(SECOND);
	assert_int_equal(mad_async_cancel(async, MAD_ASYNC_ALL), 0);
	assert_int_equal(join(thread), 1);
	assert_in_range(machine_us(), 0, 2 * SECOND);
	assert_int_equal(ask(rpc_of(SMP_GET), leaf(5)), 0);
	assert_in_range(machine_calls(MACHINE_POLL) - polls, 1, 20);
	close_engine();
	for (int i = 0; i < OPEN; i++)
		close(files[i]);
	setrlimit(RLIMIT_NOFILE, &before);
}

static void ignore(enum umad_log_level level, const char *text, void *user)
{
	(void)level, (void)text, (void)user;
}

/* Whichever system call has no descriptor. */
PLAIN_TEST(a_port_that_is_not_opened_says_that_descriptors_are_missing)
{
	static const int causes[] = {EMFILE, ENFILE, ENOMEM};
	static const enum machine_call calls[] = {MACHINE_OPEN, MACHINE_FILES, MACHINE_IOCTL};
	int classes[] = {IB_SMI_CLASS, IB_SA_CLASS};

	machine_start("star:8", NULL);
	umad_set_log_hook(ignore, NULL);
	for (unsigned i = 0; i < 9; i++) {
		unsigned failures = 0;

		for (unsigned n = 1; n < 30; n++) {
			machine_fail(calls[i / 3], n, causes[i % 3]);
			errno = 0;
			port = mad_rpc_open_port(NULL, 0, classes, 2);
			machine_fail(calls[i / 3], 0, 0);
			if (port) { /* it does not need what failed */
				mad_rpc_close_port(port);
				continue;
			}
			failures++;
			assert_int_equal(errno, causes[i % 3]);
			assert_int_equal(mad_last_failure()->error, -causes[i % 3]);
		}
		assert_in_range(failures, 1, 28);
	}
	port = NULL;
	umad_set_log_hook(NULL, NULL);
	machine_stop();
}

/* A thread that nothing can wake looks up every 100 ms. The port opens its eventfd later. */
PLAIN_TEST(a_port_gets_the_descriptor_that_it_had_to_do_without)
{
	machine_start("star:8", NULL);
	machine_fail(MACHINE_EVENTFD, 1, EMFILE);
	assert_int_equal(mad_port_open(NULL, 0, &port), 0);
	for (int missing = 1; missing >= 0; missing--) {
		unsigned polls = machine_calls(MACHINE_POLL);

		machine_fail(MACHINE_EVENTFD, (unsigned)missing, EMFILE);
		assert_null(mad_receive_via(NULL, 1000, port));
		polls = machine_calls(MACHINE_POLL) - polls;
		assert_in_range(polls, missing ? 2 : 1, missing ? 15 : 2);
	}
	close_engine();
}

/* --- many engines ----------------------------------------------------------------- */

#define LOOPS 16

static struct mad_async *engines[LOOPS];

static int many_setup(void)
{
	if (setup())
		return -1;
	machine_rule("slow 1ms");
	mad_rpc_set_timeout(port, 60000);
	for (int i = 0; i < LOOPS; i++) {
		engines[i] = mad_async_create(port);
		if (!engines[i] || mad_async_poll_fd(engines[i]) < 0)
			return -1;
	}
	return 0;
}

static int many_teardown(void)
{
	for (int i = 0; i < LOOPS; i++)
		mad_async_free(engines[i]);
	return close_engine();
}

#define MANY_TEST(name) TEST_WITH(name, many_setup, many_teardown)

/* One round of all loops but one; -1: of all. Returns how many were woken. */
static unsigned process_loops(int but, int *callbacks)
{
	struct pollfd fds[LOOPS];
	unsigned woken = 0;

	for (int i = 0; i < LOOPS; i++)
		fds[i] = (struct pollfd){.fd = i == but ? -1 : mad_async_poll_fd(engines[i]),
					 .events = POLLIN};
	assert_true(poll(fds, LOOPS, 60000) > 0);
	for (int i = 0; i < LOOPS; i++)
		if (i != but && fds[i].revents) {
			woken++;
			*callbacks += mad_async_process(engines[i]);
		}
	return woken;
}

/* Each polls the handle: whoever comes first reads for all, and then no loop is awake. */
MANY_TEST(a_message_wakes_each_event_loop_once_at_most)
{
	const uint8_t request[MACHINE_MAD] = {1, 0x0b, 1, IB_MAD_METHOD_GET};
	unsigned woken = 0;

	for (int i = 0; i < LOOPS; i++) {
		int callbacks = 0;

		/* so that all have something to wait for */
		submit_with(engines[i], rpc_of(SMP_SET), leaf(1), note, &outcomes[i]);
		for (woken = 0; !callbacks;)
			woken += process_loops(-1, &callbacks);
		assert_in_range(woken, 1, 2 * LOOPS);
	}
	mad_register_server_via(0x0b, 0, NULL, 0, port);
	machine_send("n1", request, 0);
	machine_pass(10 * MS);
	for (int i = 0; i < LOOPS; i++) {
		assert_int_equal(loop_is_awake(engines[i], 0), i == 0);
		assert_int_equal(mad_async_process(engines[i]), 0);
	}
}

MANY_TEST(a_loop_that_never_runs_stops_no_other_loop)
{
	for (int stuck = 0; stuck < LOOPS; stuck++) {
		struct mad_async *again = engines[(stuck + 1) % LOOPS];
		struct outcome second = {0};
		int64_t before = machine_us(), after;
		int callbacks = 0;

		memset(outcomes, 0, sizeof(outcomes));
		for (int i = 0; i < LOOPS; i++)
			submit_with(engines[i], rpc_of(PMA_SET), leaf(1 + (unsigned)i % 8),
				    note, &outcomes[i]);
		while (callbacks < LOOPS - 1)
			process_loops(stuck, &callbacks);
		/* by now another loop watches the handle: its message wakes it at once */
		after = machine_us();
		submit_with(again, rpc_of(PMA_SET), leaf(1), note, &second);
		while (callbacks < LOOPS)
			process_loops(stuck, &callbacks);
		assert_in_range(second.at - after, MS, MS + 200);
		assert_int_equal(outcomes[stuck].calls, 0);
		/* the loop runs again */
		rounds_until(engines[stuck], 1);
		for (int i = 0; i < LOOPS; i++) {
			expect_outcome(&outcomes[i], 0);
			assert_int_equal(outcomes[i].transmissions, 1);
			assert_in_range(outcomes[i].at - before, MS, 4 * LOOK);
		}
	}
}

/* --- children --------------------------------------------------------------------- */

/* The parent's requests: one is open, one is cancelled. */
static int child_with_a_loop(void)
{
	struct pollfd fd = {.fd = mad_async_poll_fd(async), .events = POLLIN};
	ib_rpc_t rpc = rpc_of(SMP_SET);

	EXPECT(fd.fd >= 0);
	EXPECT(poll(&fd, 1, 0) == 1 && mad_async_process(async) == 2);
	EXPECT(poll(&fd, 1, 0) == 0);
	for (int silent = 0; silent < 2; silent++) {
		struct outcome outcome = {0};
		int64_t before = machine_us();

		if (silent)
			machine_rule("silent on n2");
		rpc.timeout = 1000; /* longer than the parent's */
		submit_with(async, rpc, leaf(2), note, &outcome);
		while (!outcome.calls) {
			EXPECT(poll(&fd, 1, 60000) == 1);
			EXPECT(mad_async_process(async) >= 0);
		}
		EXPECT(outcome.error == (silent ? -ETIMEDOUT : 0));
		EXPECT(machine_us() - before <= (silent ? 1050 * MS : 10 * MS));
	}
	return 0;
}

TEST(a_child_s_loop_is_woken_for_its_own_work_and_time)
{
	mad_rpc_set_retries(port, 1);
	mad_rpc_set_timeout(port, 500);
	assert_true(mad_async_poll_fd(async) >= 0);
	submit(PMA_SET, leaf(1), &outcomes[0]);
	mad_async_cancel(async, submit(PMA_SET, leaf(1), &outcomes[1]));
	run_in_child(child_with_a_loop);
	/* the child's actions do not affect the parent */
	rounds_until(async, 2);
	expect_outcome(&outcomes[0], 0);
	expect_outcome(&outcomes[1], -ECANCELED);
	expect_sleep(async);
}
