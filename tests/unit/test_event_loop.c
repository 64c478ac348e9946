/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Event loops: other threads always wake a loop that has work, a loop ends with the port, and
 * each round has a limit of work.
 */

#include "calls/engine.h"
#include "port_state.h"
#include "event_loop.h"
#include "gate.h"
#include "test.h"

#define MANY 5000
#include "async_fixture.h"

#include <infiniband/mad_notice.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

FIXTURE(async_setup, async_teardown);

/* The epoll_ctl() that fails: the descriptor is one too many. 0: none. The linker wraps it. */
static unsigned fail_watch;

int __real_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);

int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
	if (!fail_watch || --fail_watch)
		return __real_epoll_ctl(epoll, operation, fd, event);
	errno = ENOSPC;
	return -1;
}

/* The limit of one mad_async_process(). */
#define BATCH 64

/* Whether the semaphore is posted within a minute. */
static bool is_posted(sem_t *semaphore)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += LONG_MS / 1000;
	while (sem_timedwait(semaphore, &end))
		if (errno != EINTR)
			return false;
	return true;
}

static atomic_int calling;

static void call_for_long(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	(void)engine, (void)reply, (void)arg;
	calling = 1;
	sleep_ms(200);
	calling = 2;
}

static void *process_until_called(void *arg)
{
	while (calling != 2)
		mad_async_process(arg);
	return NULL;
}

static void ignore_notice(struct mad_notices *notices, const struct mad_notice *notice,
			  void *arg)
{
	(void)notices, (void)notice, (void)arg;
}

/* The timer of the notices, which is due meanwhile, is for the thread in the callback. */
TEST(a_loop_does_not_spin_while_another_thread_calls_back)
{
	const struct mad_notices_options options = {.poll_ms = 20};
	struct pollfd fd = {.fd = mad_async_poll_fd(async), .events = POLLIN};
	struct mad_notices *notices;
	ib_portid_t to = to_lid(1);
	ib_rpc_t rpc = set_request();
	pthread_t thread;
	int rounds = 0;

	calling = 0;
	device_on_write(echo, NULL);
	assert_int_equal(mad_notices_start(async, &options, ignore_notice, NULL, &notices), 0);
	assert_int_equal(mad_async_submit(async, &rpc, &to, NULL, 0, call_for_long, NULL, NULL),
			 0);
	thread = start_thread(process_until_called, async);
	while (!calling)
		sleep_ms(1);
	for (; calling == 1; mad_async_process(async))
		rounds += poll(&fd, 1, 10) == 1;
	join_thread(thread);
	assert_in_range(rounds, 0, 50);
	mad_notices_stop(notices);
}

static atomic_uint rings;

/* --- other threads do the work that the loop waits for --------------------------- */

/* The action of the threads beside the loop, once in a burst of requests. */
enum {
	PROCESS = 1 << 0,
	RUN = 1 << 1,
	CANCEL = 1 << 2,
	RECEIVE = 1 << 3,
	ASK = 1 << 4,
	COMBINATIONS = 1 << 5,
};

#define BURSTS  8
#define BURST   20
#define SILENT  200 /* a LID that does not respond */
#define HELPERS 5

static struct {
	struct mad_async *async;
	sem_t called_back;
	sem_t go[HELPERS], done;
	atomic_bool end;
	_Atomic uint64_t ids[BURST];
	atomic_uint wrong;
	int kinds;
} burst;

static void count_one(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	int expected = arg ? -ETIMEDOUT : 0;

	(void)engine;
	if (reply->error != expected && !(burst.kinds & CANCEL && reply->error == -ECANCELED))
		burst.wrong++;
	sem_post(&burst.called_back);
}

/* Every third one has no response. */
static void submit_part(int first, int last)
{
	uint64_t id;

	for (int i = first; i < last; i++) {
		ib_portid_t to = to_lid(i % 3 ? 1 + i : SILENT);
		ib_rpc_t rpc = get_request();

		if (i % 3 == 0)
			rpc.timeout = 1 + i % 4;
		if (mad_async_submit(burst.async, &rpc, &to, NULL, 0, count_one,
				     i % 3 ? NULL : &burst, &id))
			abort();
		burst.ids[i] = id;
	}
}

static void ask_once(void)
{
	ib_portid_t to = to_lid(99);
	ib_rpc_t rpc = set_request();
	uint8_t data[IB_MAD_SIZE] = {0};

	if (!mad_rpc(port, &rpc, &to, data, data))
		burst.wrong++;
}

static void help(int kind)
{
	switch (kind) {
	case PROCESS:
		for (int i = 0; i < 3; i++)
			mad_async_process(burst.async);
		return;
	case RUN:
		mad_async_wait(burst.async, -1);
		return;
	case CANCEL:
		for (int i = 0; i < BURST; i += 4)
			mad_async_cancel(burst.async, burst.ids[i]);
		return;
	case RECEIVE:
		mad_free(mad_receive_via(NULL, 1, port));
		return;
	default:
		ask_once();
	}
}

static void *help_in_bursts(void *arg)
{
	int number = (int)(intptr_t)arg;

	for (;;) {
		wait_for(&burst.go[number]);
		if (burst.end)
			return NULL;
		help(1 << number);
		sem_post(&burst.done);
	}
}

static void start_helpers(pthread_t threads[HELPERS])
{
	burst.end = false;
	sem_init(&burst.done, 0, 0);
	sem_init(&burst.called_back, 0, 0);
	for (intptr_t i = 0; i < HELPERS; i++) {
		sem_init(&burst.go[i], 0, 0);
		threads[i] = start_thread(help_in_bursts, (void *)i);
	}
}

static void stop_helpers(pthread_t threads[HELPERS])
{
	burst.end = true;
	for (int i = 0; i < HELPERS; i++) {
		sem_post(&burst.go[i]);
		join_thread(threads[i]);
		sem_destroy(&burst.go[i]);
	}
	sem_destroy(&burst.done);
	sem_destroy(&burst.called_back);
}

/* The helpers start while requests are open. Returns how many were not called back. */
static int do_burst(int kinds)
{
	int helpers = 0;

	submit_part(0, BURST / 2);
	for (int i = 0; i < HELPERS; i++)
		if (kinds & 1 << i) {
			sem_post(&burst.go[i]);
			helpers++;
		}
	submit_part(BURST / 2, BURST);
	for (; helpers; helpers--)
		wait_for(&burst.done);
	for (int i = 0; i < BURST; i++)
		if (!is_posted(&burst.called_back))
			return BURST - i;
	return 0;
}

static void do_all_combinations(void)
{
	pthread_t threads[HELPERS];
	struct loop loop;
	int silent = SILENT;

	device_forget_packets();
	device_on_write(echo_but_for, &silent);
	mad_rpc_set_retries(port, 1);
	set_late_after(1000);
	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, BURST);
	burst.async = mad_async_create(port);
	burst.wrong = 0;
	start_helpers(threads);
	loop_init(&loop, burst.async);
	loop_start(&loop);
	for (burst.kinds = 0; burst.kinds < COMBINATIONS; burst.kinds++)
		for (int i = 0; i < BURSTS; i++)
			assert_int_equal(do_burst(burst.kinds), 0);
	stop_helpers(threads);
	mad_rpc_close_port(port);
	loop_join(&loop);
	assert_int_equal(loop.result, -ECANCELED);
	assert_int_equal(burst.wrong, 0);
	mad_async_free(burst.async);
	port = NULL;
}

/* A thread that took over the work of the loop and then stops must wake the loop. */
PORT_TEST(a_loop_is_woken_whatever_others_do)
{
	do_all_combinations();
}

/* Each loop reads, sends and handles timers for both. */
PORT_TEST(the_loops_of_two_engines_are_woken_whatever_the_other_does)
{
	static struct outcome both[2][BURST];
	struct mad_async *engines[2];
	struct loop loops[2];
	int silent = SILENT;

	device_forget_packets();
	device_on_write(echo_but_for, &silent);
	mad_rpc_set_retries(port, 1);
	mad_port_set(port, MAD_PORT_SMP_WINDOW, 3);
	for (int i = 0; i < 2; i++) {
		engines[i] = mad_async_create(port);
		loop_init(&loops[i], engines[i]);
		loop_start(&loops[i]);
	}
	for (int round = 0; round < 50; round++) {
		memset(both, 0, sizeof(both));
		for (int i = 0; i < 2 * BURST; i++) {
			ib_rpc_t rpc = get_request();

			rpc.timeout = i / 2 % 5 ? LONG_MS : 1;
			submit(engines[i % 2], rpc, i / 2 % 5 ? 1 + i : SILENT,
			       &both[i % 2][i / 2], NULL);
		}
		for (int i = 0; i < 2 * BURST; i++)
			while (!both[i % 2][i / 2].calls)
				sched_yield();
		for (int i = 0; i < 2 * BURST; i++)
			assert_int_equal(both[i % 2][i / 2].error, i / 2 % 5 ? 0 : -ETIMEDOUT);
	}
	mad_rpc_close_port(port);
	for (int i = 0; i < 2; i++) {
		loop_join(&loops[i]);
		assert_int_equal(loops[i].result, -ECANCELED);
		mad_async_free(engines[i]);
	}
	port = NULL;
}

/* --- two engines, and slow callbacks ---------------------------------------------- */

#define GATE_TEST(name) TEST_WITH(name, async_gate_setup, async_gate_teardown)

/*
 * The request of one engine times out, and its thread sends the other engine's request instead.
 * The other engine's loop must know the timer of this request while the first thread is in its
 * callback.
 */
GATE_TEST(a_loop_knows_the_timers_of_requests_that_another_engine_sent)
{
	struct mad_async *slow = mad_async_create(port), *engine = mad_async_create(port);
	ib_rpc_t rpc = get_request();
	struct pollfd single = {.fd = mad_async_poll_fd(engine), .events = POLLIN};
	pthread_t runner;

	mad_rpc_set_retries(port, 1);
	mad_port_set(port, MAD_PORT_SMP_WINDOW, 1);
	rpc.timeout = 20;
	submit_with(slow, rpc, 1, call_back_at_gate, &outcomes[0]);
	/* it is sent when the other request has timed out */
	submit(engine, rpc, 2, &outcomes[1], NULL);
	assert_int_equal(device_written(), 1);
	runner = start_running(slow);
	wait_for(&gate.entered);
	while (!outcomes[1].calls) {
		assert_int_equal(poll(&single, 1, LONG_MS), 1);
		mad_async_process(engine);
	}
	assert_int_equal(outcomes[1].error, -ETIMEDOUT);
	sem_post(&gate.leave);
	assert_int_equal(joined_count(runner), 1);
	mad_async_free(slow);
	mad_async_free(engine);
}

/* Any thread may send requests; only an engine's own thread calls back. */
GATE_TEST(a_loop_sends_while_another_thread_calls_back)
{
	static struct outcome slow;
	uint64_t ids[2 * BATCH];
	pthread_t runner;

	mad_port_set(port, MAD_PORT_SMP_WINDOW, 2 * BATCH);
	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 4 * BATCH);
	for (int i = 0; i < 4 * BATCH; i++)
		submit(async, get_request(), 2, &outcomes[i], i < 2 * BATCH ? &ids[i] : NULL);
	submit_with(async, set_request(), 1, call_back_at_gate, &slow);
	device_respond(device_packet(2 * BATCH), 0, 0, NULL, 0);
	runner = start_running(async);
	wait_for(&gate.entered);
	assert_int_equal(device_written(), 2 * BATCH + 1);
	for (int i = 0; i < 2 * BATCH; i++)
		assert_int_equal(mad_async_cancel(async, ids[i]), 0);
	for (int i = 0; i < 2; i++) {
		assert_true(loop_wakes(async));
		assert_int_equal(mad_async_process(async), 0);
	}
	assert_int_equal(device_written(), 4 * BATCH + 1);
	/* the remaining work is the other thread's */
	assert_false(loop_is_awake(async));
	device_on_write(echo, NULL);
	for (int i = 2 * BATCH + 1; i < 4 * BATCH + 1; i++)
		device_respond(device_packet((unsigned)i), 0, 0, NULL, 0);
	sem_post(&gate.leave);
	assert_int_equal(joined_count(runner), 4 * BATCH + 1);
}

/* A stop ends waits at once. The thread that calls back stops after its callback. */
GATE_TEST(a_stopped_wait_leaves_callbacks_to_the_thread_that_calls_back)
{
	pthread_t runner;
	unsigned reads;

	device_on_write(echo, NULL);
	submit_with(async, get_request(), 1, call_back_at_gate, &outcomes[0]);
	runner = start_running(async);
	wait_for(&gate.entered);
	mad_async_stop(async);
	assert_int_equal(mad_async_wait(async, LONG_MS), -EINTR);
	/* this thread reads the response, and leaves the rest to the other one */
	submit(async, get_request(), 2, &outcomes[1], NULL);
	reads = device_calls(DEVICE_READ);
	assert_int_equal(mad_async_process(async), 0);
	assert_true(device_calls(DEVICE_READ) > reads);
	assert_int_equal(outcomes[1].calls, 0);
	sem_post(&gate.leave);
	assert_int_equal(joined_count(runner), -EINTR);
	assert_int_equal(mad_async_wait(async, -1), 1);
	assert_int_equal(outcomes[1].error, 0);
}

/* --- closing the port ------------------------------------------------------------- */

enum ending {
	REMOVED,
	CLOSED,
	ENDINGS
};

static void end_by(enum ending ending)
{
	if (ending == REMOVED)
		device_remove();
	else
		mad_rpc_close_port(port);
}

/* In a separate thread, or in the thread that closes the port itself. */
static void end_loop(enum ending ending, bool own_thread, int requests)
{
	struct mad_async *engine = mad_async_create(port);
	struct outcome ends[BATCH + 2] = {0};
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(1);
	struct loop loop;

	for (int i = 0; i < requests; i++)
		submit(engine, i & 1 ? set_request() : get_request(), 1 + i % 40, &ends[i],
		       NULL);
	loop_init(&loop, engine);
	loop.most = 1000;
	if (own_thread)
		loop_start(&loop);
	end_by(ending);
	if (own_thread)
		loop_join(&loop);
	else
		loop_run(&loop);
	assert_int_equal(loop.result, ending == REMOVED ? -ENODEV : -ECANCELED);
	assert_int_equal(timeout_ms_of(engine), loop.result);
	if (ending == REMOVED) {
		assert_true(loop_is_awake(engine));
	} else {
		assert_int_equal(mad_async_poll_fd(engine), -ECANCELED);
	}
	assert_int_equal(mad_async_submit(engine, &rpc, &to, NULL, 0, note, ends, NULL),
			 loop.result);
	assert_int_equal(mad_async_wait(engine, -1), 0);
	assert_true(loop.rounds < 10);
	for (int i = 0; i < requests; i++) {
		assert_int_equal(ends[i].calls, 1);
		assert_int_equal(ends[i].error, loop.result);
	}
	mad_async_free(engine);
}

PORT_TEST(a_loop_ends_with_its_port)
{
	static const int requests[] = {0, 5, BATCH + 2};

	for (int i = 0; i < ENDINGS * 2 * 3; i++) {
		end_loop(i & 1 ? CLOSED : REMOVED, i & 2, requests[i / 4]);
		if (!(i & 1))
			mad_rpc_close_port(port);
		assert_int_equal(device_teardown(), 0);
		assert_int_equal(port_setup(), 0);
	}
}

TEST(a_loop_may_begin_when_its_device_is_gone)
{
	struct mad_async *other = mad_async_create(port);
	struct loop loop;

	submit(async, get_request(), 1, &outcomes[0], NULL);
	device_remove();
	assert_int_equal(mad_async_process(other), -ENODEV);
	assert_int_equal(outcomes[0].calls, 0);
	loop_init(&loop, async);
	loop.most = 10;
	loop_run(&loop);
	assert_int_equal(loop.result, -ENODEV);
	assert_int_equal(outcomes[0].error, -ENODEV);
	mad_async_free(other);
}

/* A program with one thread needs only the port's handle and the time. */
TEST(a_loop_of_one_thread_ends_with_its_device)
{
	struct pollfd handle = {.fd = mad_rpc_portid(port), .events = POLLIN};
	int rounds = 0, ret;

	submit(async, get_request(), 1, &outcomes[0], NULL);
	device_remove();
	do {
		poll(&handle, 1, timeout_ms_of(async));
		ret = mad_async_process(async);
	} while (ret >= 0 && ++rounds < 1000);
	assert_int_equal(ret, -ENODEV);
	assert_true(rounds < 10);
	assert_int_equal(outcomes[0].error, -ENODEV);
}

TEST(a_device_that_is_gone_is_not_read_again)
{
	unsigned reads;

	device_remove();
	assert_int_equal(mad_async_process(async), -ENODEV);
	reads = device_calls(DEVICE_READ);
	assert_int_equal(mad_async_process(async), -ENODEV);
	assert_int_equal(mad_async_wait(async, -1), 0);
	assert_int_equal(device_calls(DEVICE_READ), reads);
}

/* The first read finds nothing, and the second one reads the response. */
TEST(a_run_reads_a_response_that_it_waits_for_once)
{
	device_delay(20000);
	device_on_write(echo, NULL);
	submit(async, get_request(), 1, &outcomes[0], NULL);
	assert_int_equal(mad_async_wait(async, -1), 1);
	assert_int_equal(outcomes[0].error, 0);
	assert_in_range(device_calls(DEVICE_READ), 1, 2);
}

/* --- one round ---------------------------------------------------------------------- */

static int many_setup(void)
{
	if (async_setup())
		return -1;
	mad_rpc_set_retries(port, 1);
	mad_port_set(port, MAD_PORT_SMP_WINDOW, 2 * MANY);
	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 2 * MANY);
	return 0;
}

#define MANY_TEST(name) TEST_WITH(name, many_setup, async_teardown)

static void submit_many(ib_rpc_t rpc)
{
	for (int i = 0; i < MANY; i++)
		submit(async, rpc, 1 + i % 50, &outcomes[i], NULL);
	(void)mad_async_poll_fd(async);
}

/* One round, which was announced, as all rounds must be. */
static int do_round(void)
{
	unsigned reads = device_calls(DEVICE_READ), writes = device_calls(DEVICE_WRITE);
	uint64_t timeouts = stats_of(async).timed_out;
	int count;

	assert_true(loop_wakes(async));
	count = mad_async_process(async);
	assert_in_range(count, 0, BATCH);
	assert_in_range(device_calls(DEVICE_READ) - reads, 0, BATCH);
	assert_in_range(device_calls(DEVICE_WRITE) - writes, 0, BATCH);
	assert_in_range(stats_of(async).timed_out - timeouts, 0, BATCH);
	return count;
}

static void expect_rest(void)
{
	/* the queue may be empty, which only a read shows */
	while (mad_async_process(async))
		;
	assert_false(loop_is_awake(async));
	assert_int_equal(timeout_ms_of(async), -1);
}

MANY_TEST(a_round_reads_a_part_of_the_messages)
{
	int count = 0;

	submit_many(get_request());
	for (unsigned i = 0; i < MANY; i++)
		device_respond(device_packet(i), 0, 0, NULL, 0);
	while (count < MANY)
		count += do_round();
	expect_all(MANY, 0);
	expect_rest();
}

MANY_TEST(a_round_handles_a_part_of_the_timers)
{
	ib_rpc_t rpc = get_request();
	int count = 0;

	rpc.timeout = 1;
	submit_many(rpc);
	sleep_ms(2);
	while (count < MANY)
		count += do_round();
	expect_all(MANY, -ETIMEDOUT);
	expect_rest();
}

MANY_TEST(a_round_sends_a_part_of_the_requests)
{
	int rounds = 0;

	mad_port_set(port, MAD_PORT_SMP_WINDOW, 1);
	submit_many(get_request());
	assert_int_equal(device_written(), 1);
	/* mad_port_set() would send all of them */
	fix_window_only(port, MAD_WINDOW_SMP, MANY);
	for (; device_written() < MANY; rounds++)
		assert_int_equal(do_round(), 0);
	assert_true(rounds > MANY / BATCH);
	assert_false(loop_is_awake(async));
}

static void *receive_none(void *arg)
{
	(void)arg;
	assert_null(mad_receive_via(NULL, -1, port));
	return NULL;
}

/* Another thread has read all messages. */
MANY_TEST(a_round_calls_a_part_of_the_requests_back)
{
	pthread_t receiver;
	int count;

	submit_many(get_request());
	for (unsigned i = 0; i < MANY; i++)
		device_respond(device_packet(i), 0, 0, NULL, 0);
	receiver = start_thread(receive_none, NULL);
	/* the read that finds no message comes after all are handled */
	while (device_calls(DEVICE_READ) <= MANY)
		sleep_ms(1);
	for (count = 0; count < MANY; count += BATCH)
		assert_int_equal(do_round(), count + BATCH > MANY ? MANY % BATCH : BATCH);
	expect_all(MANY, 0);
	mad_rpc_close_port(port);
	port = NULL;
	join_thread(receiver);
	assert_int_equal(async_teardown(), 0);
	assert_int_equal(many_setup(), 0);
}

/*
 * A request that the limit of its destination holds back counts in the limit of a round, too.
 */
MANY_TEST(a_round_passes_a_part_of_the_requests_to_their_destination)
{
	unsigned before, after = MANY - 1;

	mad_port_set(port, MAD_PORT_SMP_WINDOW, 1);
	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 1);
	for (int i = 0; i < MANY; i++)
		submit(async, get_request(), 1, &outcomes[i], NULL);
	assert_int_equal(new_smps(async), MANY - 1);
	/* the window has a free place, the destination has none */
	fix_window_only(port, MAD_WINDOW_SMP, 2);
	do {
		before = after;
		assert_true(loop_wakes(async));
		assert_int_equal(mad_async_process(async), 0);
		after = new_smps(async);
		assert_in_range(before - after, 1, 16 * BATCH);
	} while (after);
	assert_false(loop_is_awake(async));
}

/* --- the descriptors ---------------------------------------------------------------- */

static int open_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = -3; /* the folder, and its entries for itself and its parent */

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

/* The limit that allows so many more. */
static rlim_t limit_for(int left)
{
	int fd;

	for (fd = 0; left || fcntl(fd, F_GETFD) >= 0; fd++)
		left -= fcntl(fd, F_GETFD) < 0;
	return (rlim_t)fd;
}

static void limit_descriptors(rlim_t most)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = most;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* So many descriptors are free. */
static void ask_with_few(int left, int (*ask)(struct mad_async *), int needed)
{
	int before = open_descriptors(), fd;
	struct mad_async *engine = mad_async_create(port);
	struct outcome outcome = {0};
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit_descriptors(limit_for(left));
	fd = ask(engine);
	limit_descriptors(limit.rlim_cur);
	if (left < needed)
		assert_int_equal(fd, -EMFILE);
	else
		assert_true(fd >= 0);
	/* the engine works as before */
	submit(engine, get_request(), 1, &outcome, NULL);
	device_respond(device_packet(device_written() - 1), 0, 0, NULL, 0);
	assert_true(loop_wakes(engine));
	assert_int_equal(mad_async_process(engine), 1);
	assert_true(ask(engine) >= 0);
	mad_async_free(engine);
	assert_int_equal(open_descriptors(), before);
}

PORT_TEST(without_descriptors_an_engine_works_on)
{
	if (access("/proc/self/fd", R_OK)) {
		print_message("/proc is not there to count descriptors\n");
		skip();
	}
	for (int left = 0; left <= 3; left++) {
		ask_with_few(left, mad_async_poll_fd, 3);
		ask_with_few(left, mad_async_poll_fd, 3);
	}
}

static void expect_loop_to_work(struct mad_async *engine)
{
	struct outcome outcome = {0};

	assert_false(loop_is_awake(engine));
	submit(engine, get_request(), 1, &outcome, NULL);
	device_respond(device_packet(device_written() - 1), 0, 0, NULL, 0);
	assert_true(loop_wakes(engine));
	assert_int_equal(mad_async_process(engine), 1);
	assert_false(loop_is_awake(engine));
}

PORT_TEST(a_port_leaves_no_descriptor)
{
	int before = open_descriptors(), class = IB_SMI_CLASS;

	mad_rpc_close_port(mad_rpc_open_port(NULL, 0, &class, 1));
	assert_int_equal(open_descriptors(), before);
}

/* A Set is not retransmitted as soon as its response is late. */
static ib_rpc_t set_smp_request(void)
{
	ib_rpc_t rpc = get_request();

	rpc.method = IB_MAD_METHOD_SET;
	return rpc;
}

/* Not only when the loop looks at the port again. */
static void expect_message_to_wake_at_once(struct mad_async *engine, int poll_fd)
{
	struct pollfd fd = {.fd = poll_fd, .events = POLLIN};
	struct outcome outcome = {0};

	submit(engine, set_smp_request(), 1, &outcome, NULL);
	assert_int_equal(poll(&fd, 1, 0), 0);
	device_respond(device_packet(device_written() - 1), 0, 0, NULL, 0);
	assert_int_equal(poll(&fd, 1, 0), 1);
	assert_int_equal(mad_async_process(engine), 1);
}

/* The state of a process with a closed standard input. */
PORT_TEST(a_descriptor_may_have_number_0)
{
	int before = open_descriptors(), copy = dup(0);

	struct mad_async *engine = mad_async_create(port);

	close(0); /* the next descriptor is the alarm's work_fd */
	assert_true(mad_async_poll_fd(engine) > 0);
	assert_true(fcntl(0, F_GETFD) >= 0);
	expect_loop_to_work(engine);
	expect_message_to_wake_at_once(engine, mad_async_poll_fd(engine));
	mad_async_free(engine);
	assert_int_equal(fcntl(0, F_GETFD), -1);
	assert_int_equal(dup2(copy, 0), 0);
	close(copy);
	assert_int_equal(open_descriptors(), before);
}

static void expect_to_end_at_exec(int fd)
{
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

/* The descriptors that a port and its engine open, as the kernel names them. */
TEST(the_descriptors_end_at_exec)
{
	char path[32], name[64];
	unsigned sources = 0;
	ssize_t length;

	assert_true(mad_async_poll_fd(async) >= 0);
	for (int fd = 3; fd < 64; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		length = readlink(path, name, sizeof(name) - 1);
		if (length < 0 || strncmp(name, "anon_inode:", 11))
			continue;
		name[length] = '\0';
		expect_to_end_at_exec(fd);
		if (strcmp(name, "anon_inode:[eventfd]") &&
		    strcmp(name, "anon_inode:[timerfd]"))
			continue;
		/* no thread waits in a read, whatever the state is */
		assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
		sources++;
	}
	assert_in_range(sources, 2, 60);
}

/* A port whose handle is 0. */
PORT_TEST(a_loop_s_handle_may_have_number_0)
{
	int class = IB_SMI_CLASS, copy = dup(0);
	struct outcome outcome = {0};
	struct ibmad_port *other;
	struct mad_async *engine;

	close(0);
	other = mad_rpc_open_port(NULL, 0, &class, 1);
	assert_non_null(other);
	assert_int_equal(mad_rpc_portid(other), 0);
	mad_rpc_set_timeout(other, LONG_MS);
	engine = mad_async_create(other);
	assert_false(loop_is_awake(engine));
	submit(engine, set_smp_request(), 1, &outcome, NULL);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	assert_true(loop_wakes(engine));
	assert_int_equal(mad_async_process(engine), 1);
	assert_false(loop_is_awake(engine));
	mad_async_free(engine);
	mad_rpc_close_port(other);
	assert_int_equal(dup2(copy, 0), 0);
	close(copy);
}

#define HIGH_TEST(name) TEST_WITH(name, async_high_setup, async_teardown)

/* No descriptor tells a message: the descriptor is a timer's while a message may come. */
HIGH_TEST(a_simulator_s_handle_has_a_descriptor_too)
{
	struct pollfd wake = {.fd = mad_async_poll_fd(async), .events = POLLIN};

	assert_true(mad_rpc_portid(port) >= 1024);
	assert_true(wake.fd >= 0 && wake.fd < 1024);
	assert_int_equal(poll(&wake, 1, 50), 0);
	submit(async, set_smp_request(), 2, &outcomes[1], NULL);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	for (int i = 0; i < 100 && !outcomes[1].calls; i++) {
		assert_int_equal(poll(&wake, 1, LONG_MS), 1);
		mad_async_process(async);
	}
	assert_int_equal(outcomes[1].error, 0);
	/* the timer was set for the next looks */
	for (int i = 0; i < 5 && poll(&wake, 1, 50); i++)
		assert_int_equal(mad_async_process(async), 0);
	assert_int_equal(poll(&wake, 1, 50), 0);
}

HIGH_TEST(the_descriptor_of_a_simulator_s_handle_tells_timers_too)
{
	struct pollfd wake = {.fd = mad_async_poll_fd(async), .events = POLLIN};

	set_late_after(QUICK);
	submit(async, get_request(), 1, &outcomes[0], NULL);
	/* first the response is late, then the request is sent again */
	while (device_written() < 2) {
		assert_int_equal(poll(&wake, 1, LONG_MS), 1);
		assert_int_equal(mad_async_process(async), 0);
	}
}

static int enter_port(void)
{
	int cancel_state;

	assert_int_equal(port_enter(port, &cancel_state), 0);
	return cancel_state;
}

static void ring(struct engine_timer *timer)
{
	(void)timer;
	rings++;
}

/* A timer is set, and then set for an earlier time. */
TEST(a_timer_of_the_engine_wakes_the_loop)
{
	struct pollfd wake = {.fd = mad_async_poll_fd(async), .events = POLLIN};
	struct engine_timer timer = {.due = ring, .ended = ring};
	int cancel_state = enter_port();

	rings = 0;
	engine_timer_add(async, &timer);
	port_leave(port, cancel_state);
	assert_int_equal(mad_async_process(async), 0);
	assert_int_equal(poll(&wake, 1, 0), 0);
	for (unsigned i = 1; i <= 2; i++) {
		cancel_state = enter_port();
		engine_timer_set(async, &timer, clock_us() + LONG_MS * INT64_C(1000));
		engine_timer_set(async, &timer, clock_us() + 1000);
		port_leave(port, cancel_state);
		while (rings < i) {
			assert_int_equal(poll(&wake, 1, LONG_MS), 1);
			assert_int_equal(mad_async_process(async), 0);
		}
	}
	assert_int_equal(poll(&wake, 1, 0), 0);
	mad_async_free(async);
	async = NULL;
	assert_int_equal(rings, 3);
}

/* A thread that polls until a later time than the timer's. */
TEST(a_timer_of_the_engine_wakes_a_run)
{
	struct engine_timer timer = {.due = ring, .ended = ring};
	pthread_t runner;
	int cancel_state;
	unsigned polls;

	rings = 0;
	submit(async, get_request(), 1, &outcomes[0], NULL);
	cancel_state = enter_port();
	engine_timer_add(async, &timer);
	port_leave(port, cancel_state);
	runner = start_running(async);
	wait_for_poll(0);
	assert_true(device_poll_timeout() > LONG_MS / 2);
	/* a timer that is not set any more wakes nobody */
	polls = device_calls(DEVICE_POLL);
	cancel_state = enter_port();
	engine_timer_set(async, &timer, NEVER);
	port_leave(port, cancel_state);
	sleep_ms(20);
	assert_int_equal(device_calls(DEVICE_POLL), polls);
	cancel_state = enter_port();
	engine_timer_set(async, &timer, clock_us() + 1000);
	port_leave(port, cancel_state);
	while (!rings)
		sleep_ms(1);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	assert_int_equal(joined_count(runner), 1);
	mad_async_free(async);
	async = NULL;
	assert_int_equal(rings, 2);
}

TEST(a_timer_that_is_not_due_yet_is_not_called)
{
	struct engine_timer timer = {.due = ring, .ended = ring};
	int cancel_state = enter_port();

	rings = 0;
	engine_timer_add(async, &timer);
	engine_timer_set(async, &timer, clock_us() + LONG_MS * INT64_C(1000));
	port_leave(port, cancel_state);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(mad_async_process(async), 0);
	assert_int_equal(rings, 0);
	cancel_state = enter_port();
	engine_timer_remove(async, &timer);
	port_leave(port, cancel_state);
	mad_async_free(async);
	async = NULL;
	assert_int_equal(rings, 0);
}

/* A thread that has the port's lock for a while, from a time that the test chooses. */
static struct {
	pthread_t thread;
	sem_t go, locked;
	atomic_bool unlocked;
} holder;

static void *hold_lock(void *arg)
{
	(void)arg;
	wait_for(&holder.go);
	port_lock(port);
	sem_post(&holder.locked);
	sleep_ms(20);
	holder.unlocked = true;
	port_unlock(port);
	return NULL;
}

static void start_holder(void)
{
	sem_init(&holder.go, 0, 0);
	sem_init(&holder.locked, 0, 0);
	holder.unlocked = false;
	holder.thread = start_thread(hold_lock, NULL);
}

static void let_holder_lock(void)
{
	sem_post(&holder.go);
	wait_for(&holder.locked);
}

static void end_holder(void)
{
	assert_true(holder.unlocked);
	join_thread(holder.thread);
	sem_destroy(&holder.go);
	sem_destroy(&holder.locked);
}

static void ring_and_lock(struct engine_timer *timer)
{
	(void)timer;
	let_holder_lock();
}

static void call_back_and_lock(struct mad_async *engine, const struct mad_reply *reply,
			       void *arg)
{
	note(engine, reply, arg);
	let_holder_lock();
}

/* The lock is dropped for a callback, and taken again before the engine continues. */
TEST(after_a_callback_an_engine_waits_for_the_lock)
{
	struct engine_timer timer = {.due = ring_and_lock, .ended = ring_and_lock};
	int cancel_state;

	start_holder();
	device_on_write(echo, NULL);
	submit_with(async, get_request(), 1, call_back_and_lock, &outcomes[0]);
	assert_int_equal(mad_async_process(async), 1);
	end_holder();

	start_holder();
	cancel_state = enter_port();
	engine_timer_add(async, &timer);
	engine_timer_set(async, &timer, clock_us());
	port_leave(port, cancel_state);
	assert_int_equal(mad_async_process(async), 0);
	end_holder();

	start_holder();
	mad_async_free(async);
	async = NULL;
	end_holder();
}

TEST(a_round_calls_a_part_of_the_timers)
{
	struct engine_timer timers[BATCH + 2];
	int cancel_state = enter_port();

	rings = 0;
	for (int i = 0; i < BATCH + 2; i++) {
		timers[i] = (struct engine_timer){.due = ring, .ended = ring};
		engine_timer_add(async, &timers[i]);
		engine_timer_set(async, &timers[i], clock_us());
	}
	port_leave(port, cancel_state);
	assert_int_equal(mad_async_process(async), 0);
	assert_int_equal(rings, BATCH);
	assert_true(loop_wakes(async));
	assert_int_equal(mad_async_process(async), 0);
	assert_int_equal(rings, BATCH + 2);
	assert_false(loop_is_awake(async));
	mad_async_free(async); /* while the timers exist */
	async = NULL;
}

/* The number of microseconds until the alarm's timer is due. */
static int64_t left_of(const struct alarm *alarm)
{
	struct itimerspec time;

	assert_int_equal(timerfd_gettime(alarm->timer_fd, &time), 0);
	return time.it_value.tv_sec * INT64_C(1000000) + time.it_value.tv_nsec / 1000;
}

static void set_alarm(struct listener *listener, struct waiters *waiters, int64_t at)
{
	const struct port_work work = {.next = at};

	listener_update(listener, waiters, &work, false);
}

PORT_TEST(an_alarm_is_set_to_the_microsecond)
{
	const int64_t in[] = {5000000000000, 4000000999999, 3000000000001};
	struct pollfd wake = {.events = POLLIN};
	struct waiters waiters;
	struct listener listener;
	int64_t before, at, left;

	waiters_init(&waiters);
	listener_init(&listener);
	assert_true(listener_poll_fd(&listener) >= 0);
	listener.alarm.watching = true;
	for (unsigned i = 0; i < 3; i++) {
		before = clock_us();
		at = before + in[i];
		set_alarm(&listener, &waiters, at);
		left = left_of(&listener.alarm);
		/* the timer's clock has parts of a microsecond */
		assert_true(left <= at - before + 1 && left >= at - clock_us() - 1);
	}
	listener_close(&listener);
	/* the time when the clock began is over */
	for (int64_t early = -1; early <= 1; early++) {
		listener_init(&listener);
		wake.fd = listener_poll_fd(&listener);
		listener.alarm.watching = true;
		assert_int_equal(poll(&wake, 1, 0), 0);
		set_alarm(&listener, &waiters, early);
		assert_int_equal(poll(&wake, 1, LONG_MS), 1);
		listener_close(&listener);
	}
}

/* Otherwise each response would cost a system call. */
PORT_TEST(an_alarm_that_is_not_due_is_not_set_to_a_later_time)
{
	const int64_t second = 1000000, now = clock_us();
	struct port_work work = {.next = now + 3000 * second};
	struct waiters waiters;
	struct listener listener;

	waiters_init(&waiters);
	listener_init(&listener);
	assert_true(listener_poll_fd(&listener) >= 0);
	listener.alarm.watching = true;
	listener_update(&listener, &waiters, &work, true);
	work.next = now + 6000 * second;
	listener_update(&listener, &waiters, &work, true);
	assert_true(left_of(&listener.alarm) <= 3000 * second);
	/* an alarm that is due stays so until the loop has done the work */
	set_alarm(&listener, &waiters, now);
	assert_int_equal(left_of(&listener.alarm), 0);
	listener_update(&listener, &waiters, &work, false);
	assert_int_equal(left_of(&listener.alarm), 0);
	listener_update(&listener, &waiters, &work, true);
	assert_true(left_of(&listener.alarm) > 3000 * second);
	listener_close(&listener);
}

PORT_TEST(an_engine_works_on_if_its_descriptors_cannot_be_watched)
{
	for (unsigned n = 1; n <= 2; n++) {
		int before = open_descriptors();
		struct mad_async *engine = mad_async_create(port);

		fail_watch = n;
		assert_int_equal(mad_async_poll_fd(engine), -ENOSPC);
		assert_int_equal(fail_watch, 0);
		expect_loop_to_work(engine);
		mad_async_free(engine);
		assert_int_equal(open_descriptors(), before);
	}
}

PORT_TEST(when_a_loop_ends_another_loop_is_told_of_messages)
{
	struct mad_async *first = mad_async_create(port), *second = mad_async_create(port);
	int fd;

	assert_true(mad_async_poll_fd(first) >= 0);
	fd = mad_async_poll_fd(second);
	mad_async_free(first);
	/* mad_async_poll_fd() would let the loop be told again */
	expect_message_to_wake_at_once(second, fd);
	mad_async_free(second);
}

static void process_while_it_ends(struct mad_async *engine, const struct mad_reply *reply,
				  void *arg)
{
	(void)reply;
	*(int *)arg = mad_async_process(engine);
}

TEST(an_engine_that_is_being_destroyed_processes_nothing)
{
	int result = 1;

	submit_with(async, get_request(), 1, process_while_it_ends, &result);
	mad_async_free(async);
	async = NULL;
	assert_int_equal(result, -ECANCELED);
}

#ifndef NO_CHILDREN

/* The outcome of the child's own requests. */
static int child_with_a_loop(void)
{
	struct pollfd single = {.events = POLLIN};
	struct outcome outcome = {0};
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(2);

	single.fd = mad_async_poll_fd(async);
	if (single.fd < 0)
		return __LINE__;
	/* the parent's request is cancelled */
	if (poll(&single, 1, LONG_MS) != 1 || mad_async_process(async) != 1)
		return __LINE__;
	device_on_write(echo, NULL);
	if (poll(&single, 1, 0))
		return __LINE__;
	mad_async_submit(async, &rpc, &to, NULL, 0, note, &outcome, NULL);
	while (!outcome.calls)
		if (poll(&single, 1, LONG_MS) != 1 || mad_async_process(async) < 0)
			return __LINE__;
	return outcome.error ? __LINE__ : 0;
}

static void fork_in_callback(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	struct outcome *outcome = arg;
	pid_t pid;

	note(engine, reply, arg);
	if (outcome->calls > 1)
		return;
	pid = fork();
	if (!pid)
		_exit(mad_async_process(engine) != 1 || outcome->calls != 1);
	expect_end_of_child(pid);
}

/* The child calls back the other open request. */
TEST(what_is_being_called_back_is_not_called_back_again_in_a_child)
{
	submit_with(async, get_request(), 1, fork_in_callback, &outcomes[0]);
	submit(async, get_request(), 2, &outcomes[1], NULL);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	assert_int_equal(mad_async_process(async), 1);
	assert_int_equal(outcomes[0].calls, 1);
}

static void destroy_in_child(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	pid_t pid;

	note(engine, reply, arg);
	pid = fork();
	if (!pid) {
		alarm(LONG_MS / 2000);
		mad_async_free(engine);
		_exit(timeout_ms_of(engine) == -ECANCELED);
	}
	expect_end_of_child(pid);
}

TEST(a_callback_cannot_destroy_its_engine_in_a_child)
{
	submit_with(async, get_request(), 1, destroy_in_child, &outcomes[0]);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	assert_int_equal(mad_async_process(async), 1);
}

TEST(a_child_has_a_descriptor_of_its_own)
{
	struct pollfd single = {.fd = mad_async_poll_fd(async), .events = POLLIN};

	submit(async, get_request(), 1, &outcomes[0], NULL);
	assert_int_equal(poll(&single, 1, 0), 0);
	run_in_child(child_with_a_loop);
	/* the child's actions do not affect the parent */
	device_respond(device_packet(0), 0, 0, NULL, 0);
	while (!outcomes[0].calls) {
		assert_int_equal(poll(&single, 1, LONG_MS), 1);
		mad_async_process(async);
	}
	assert_int_equal(outcomes[0].error, 0);
	assert_int_equal(poll(&single, 1, 0), 0);
}

/* A loop of the child whose request times out after that of the parent would. */
static int child_with_a_later_timer(void)
{
	struct pollfd single = {.fd = mad_async_poll_fd(async), .events = POLLIN};
	struct outcome outcome = {0};
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(2);

	/* the parent's requests: one is complete, one is cancelled */
	if (poll(&single, 1, 0) != 1 || mad_async_process(async) != 2)
		return __LINE__;
	rpc.timeout = 1000;
	mad_async_submit(async, &rpc, &to, NULL, 0, note, &outcome, NULL);
	while (!outcome.calls)
		if (poll(&single, 1, LONG_MS) != 1 || mad_async_process(async) < 0)
			return __LINE__;
	return outcome.error == -ETIMEDOUT ? 0 : __LINE__;
}

/* The child has descriptors of its own. */
TEST(a_child_s_loop_is_woken_for_its_own_work_and_time)
{
	ib_rpc_t rpc = set_request();
	uint64_t id;

	mad_rpc_set_retries(port, 1);
	assert_true(mad_async_poll_fd(async) >= 0);
	rpc.timeout = 500;
	submit(async, rpc, 1, &outcomes[0], NULL);
	submit(async, set_request(), 1, &outcomes[1], &id);
	assert_int_equal(mad_async_cancel(async, id), 0);
	assert_true(loop_wakes(async));
	run_in_child(child_with_a_later_timer);
}

static atomic_bool busy;

/* Submits and waits, in a loop. */
static void *keep_busy(void *arg)
{
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(1);
	struct outcome outcome = {0};
	int submitted = 0;

	while (busy) {
		for (int i = 0; i < BURST; i++, submitted++)
			if (mad_async_submit(arg, &rpc, &to, NULL, 0, note, &outcome, NULL))
				abort();
		while (outcome.calls < submitted)
			mad_async_wait(arg, -1);
	}
	return NULL;
}

/*
 * If a thread of the parent was in a call, all calls fail; otherwise open requests are called
 * back, and the engines work as new ones.
 */
static int child_in_the_midst(struct mad_async *engines[2])
{
	struct outcome outcome = {0};
	ib_rpc_t rpc = get_request();
	ib_portid_t to = to_lid(2);
	int ret;

	/* cmocka would continue with the parent's test */
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	alarm(LONG_MS / 1000);
	for (int i = 0; i < 2; i++) {
		ret = mad_async_wait(engines[i], -1);
		if (ret == -ECANCELED && mad_async_submit(engines[i], &rpc, &to, NULL, 0, note,
							  &outcome, NULL) == -ECANCELED)
			continue;
		if (ret < 0)
			return 1;
		mad_async_submit(engines[i], &rpc, &to, NULL, 0, note, &outcome, NULL);
		mad_async_wait(engines[i], -1);
		if (outcome.calls != i + 1 || outcome.error)
			return 2;
		mad_async_free(engines[i]);
	}
	mad_rpc_close_port(port);
	return 0;
}

PORT_TEST(a_child_that_is_forked_in_the_midst_goes_on)
{
	struct mad_async *engines[2];
	pthread_t threads[2];
	int status;
	pid_t pid;

	device_forget_packets();
	device_on_write(echo, NULL);
	busy = true;
	for (int i = 0; i < 2; i++) {
		engines[i] = mad_async_create(port);
		threads[i] = start_thread(keep_busy, engines[i]);
	}
	for (int i = 0; i < 50; i++) {
		pid = fork();
		if (!pid)
			end_without_leak_check(child_in_the_midst(engines));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGKILL);
	}
	busy = false;
	for (int i = 0; i < 2; i++) {
		join_thread(threads[i]);
		mad_async_free(engines[i]);
	}
}

#endif
