/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Threads that wait for messages of a port, and when they are woken; event loops that look at
 * the port; and the port in a child of fork() while threads of the parent wait.
 */

#define MANY 4
#include "port_state.h"
#include "gate.h"
#include "test.h"

#include "async_fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>

FIXTURE(async_gate_setup, async_gate_teardown);

/* --- descriptors ---------------------------------------------------------------- */

#define FDS 256

TEST(the_descriptors_of_a_port_end_at_exec)
{
	int class = IB_SMI_CLASS, opened = 0;
	bool before[FDS];
	struct ibmad_port *other;

	for (int fd = 0; fd < FDS; fd++)
		before[fd] = fcntl(fd, F_GETFD) >= 0;
	other = mad_rpc_open_port(NULL, 0, &class, 1);
	assert_non_null(other);
	for (int fd = 0; fd < FDS; fd++) {
		if (before[fd] || fcntl(fd, F_GETFD) < 0 || fd == mad_rpc_portid(other))
			continue;
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
		opened++;
	}
	assert_int_equal(opened, 1);
	mad_rpc_close_port(other);
}

static bool is_eventfd(int fd)
{
	char path[32], target[32] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, target, sizeof(target) - 1) > 0 &&
	       !strcmp(target, "anon_inode:[eventfd]");
}

/* A stop cannot write then. */
TEST(a_stop_leaves_errno_alone_though_the_descriptor_is_full)
{
	int full = 0;

	for (int fd = 0; fd < FDS; fd++)
		if (is_eventfd(fd))
			full += !eventfd_write(fd, UINT64_MAX - 1);
	assert_int_equal(full, 1);
	errno = EXDEV;
	mad_async_stop(async);
	assert_int_equal(errno, EXDEV);
}

/* --- reading -------------------------------------------------------------------- */

/* Its response is read, and nothing else: the other request has none. */
TEST(a_blocking_call_reads_no_longer_than_until_its_response)
{
	submit(async, set_request(), 2, &outcomes[0], NULL);
	device_on_write(echo, NULL);
	assert_int_equal(call_lid(3), 0);
	assert_int_equal(device_calls(DEVICE_READ), 1);
}

/* Nothing is read for that. */
TEST(a_poll_that_times_out_shows_that_nothing_is_queued)
{
	mad_rpc_set_retries(port, 1);
	mad_rpc_set_timeout(port, 20);
	assert_int_equal(call_lid(3), ETIMEDOUT);
	assert_int_equal(device_calls(DEVICE_READ), 0);
}

/* --- receivers ------------------------------------------------------------------ */

static void *receive_one(void *arg)
{
	void *message = mad_receive_via(NULL, LONG_MS, port);
	uint8_t number = message ? ((uint8_t *)umad_get_mad(message))[15] : 0;

	(void)arg;
	mad_free(message);
	sem_post(&gate.entered);
	return (void *)(intptr_t)number;
}

static void queue_message(uint8_t number)
{
	struct ib_user_mad header = {.agent_id = 0};
	uint8_t mad[IB_MAD_SIZE] = {1, IB_SMI_CLASS, 1, IB_MAD_METHOD_GET};

	mad[15] = number;
	device_queue(device_fd(), &header, mad, sizeof(mad));
}

/* Each gets one, whether a message comes alone or with others. */
TEST(each_message_wakes_a_receiver)
{
	pthread_t threads[4];
	unsigned seen = 0;
	void *number;

	for (int at_once = 0; at_once < 2; at_once++) {
		for (int i = 0; i < 4; i++)
			threads[i] = start_thread(receive_one, NULL);
		for (uint8_t i = 1; i <= 4; i++) {
			queue_message(i);
			if (!at_once)
				wait_for(&gate.entered);
		}
		for (int i = 0; i < 4; i++) {
			pthread_join(threads[i], &number);
			seen |= 1u << (intptr_t)number;
		}
		assert_int_equal(seen, 0x1e);
		while (!sem_trywait(&gate.entered))
			;
	}
}

/* The messages are those of other calls. */
TEST(a_leader_looks_at_its_own_request_after_32_messages)
{
	for (int i = 0; i < 64; i++)
		queue_message(1);
	device_on_write(echo, NULL);
	assert_int_equal(call_lid(3), 0);
	assert_int_equal(device_calls(DEVICE_READ), 65);
	assert_int_equal(device_calls(DEVICE_POLL), 3);
}

/* The thread that receives does not send. */
TEST(a_receiver_is_not_woken_for_requests_that_wait_for_the_rate)
{
	unsigned polls = device_calls(DEVICE_POLL);
	pthread_t thread;

	assert_int_equal(mad_port_set(port, MAD_PORT_RATE, 1), 0);
	thread = start_thread(receive_one, NULL);
	wait_for_poll(polls);
	for (int i = 0; i < 3; i++)
		submit(async, set_request(), 1, &outcomes[i], NULL);
	assert_true(stats_of(async).queued > 0);
	sleep_ms(50);
	assert_int_equal(device_calls(DEVICE_POLL), polls + 1);
	queue_message(1);
	pthread_join(thread, NULL);
}

/* --- event loops ---------------------------------------------------------------- */

static bool is_woken(int fd, int timeout_ms)
{
	struct pollfd loop = {.fd = fd, .events = POLLIN};

	return poll(&loop, 1, timeout_ms) == 1;
}

/* The loop of the other engine is told of messages, and does not run. */
TEST(a_loop_that_is_not_told_of_messages_looks_every_20_ms)
{
	struct mad_async *told = mad_async_create(port);
	int told_fd = mad_async_poll_fd(told), fd = mad_async_poll_fd(async);
	int64_t start;

	/* without requests it waits for nothing */
	queue_message(1);
	assert_true(is_woken(told_fd, LONG_MS));
	assert_false(is_woken(fd, 60));
	assert_int_equal(mad_async_process(told), 0);
	submit(async, set_request(), 1, &outcomes[0], NULL);
	for (int i = 0; i < 3; i++) {
		start = now_ms();
		assert_true(is_woken(fd, LONG_MS));
		/* submit() and process() were some time before; the clock's start is rounded */
		assert_true(i == 0 || now_ms() - start >= 15);
		assert_int_equal(mad_async_process(async), 0);
	}
	device_respond(device_packet(0), 0, 0, NULL, 0);
	assert_true(is_woken(told_fd, LONG_MS));
	assert_true(is_woken(fd, LONG_MS));
	assert_int_equal(mad_async_process(async), 1);
	/* it has found messages: it is told of them from now on */
	queue_message(2);
	assert_true(is_woken(fd, LONG_MS));
	assert_int_equal(mad_async_process(async), 0);
	mad_async_free(told);
}

/* --- children ------------------------------------------------------------------- */

#ifndef NO_CHILDREN

/* Returns the line of the first call that is not as expected; 0: none. */
static int calls_fail_with_ecanceled(void)
{
	uint8_t data[IB_PC_DATA_SZ] = {0}, umad[1024] = {0};
	struct mad_async_stats stats;
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(1);
	eventfd_t count;
	int fd;

	if (mad_async_submit(async, &rpc, &to, data, 1, note, NULL, NULL) != -ECANCELED)
		return __LINE__;
	/* a descriptor of the child has the number that the port's had */
	fd = eventfd(0, EFD_NONBLOCK);
	mad_async_stop(async);
	if (!eventfd_read(fd, &count))
		return __LINE__;
	if (mad_async_process(async) != -ECANCELED || timeout_ms_of(async) != -ECANCELED)
		return __LINE__;
	if (mad_async_wait(async, 0) != -ECANCELED || mad_async_wait(async, -1) != -ECANCELED)
		return __LINE__;
	if (mad_async_cancel(async, 1) != -ECANCELED ||
	    mad_async_cancel(async, MAD_ASYNC_ALL) != -ECANCELED)
		return __LINE__;
	if (mad_async_get_stats(async, &stats, sizeof(stats)) != -ECANCELED)
		return __LINE__;
	if (mad_async_poll_fd(async) != -ECANCELED || mad_async_poll_fd(async) != -ECANCELED)
		return __LINE__;
	if (mad_port_set(port, MAD_PORT_SMP_WINDOW, 1) != -ECANCELED ||
	    mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, 1) != -ECANCELED ||
	    mad_port_set(port, MAD_PORT_RATE, 1) != -ECANCELED)
		return __LINE__;
	if (call_lid(3) != ECANCELED)
		return __LINE__;
	if (mad_send_via(&rpc, &to, NULL, data, port) != -1 || errno != ECANCELED)
		return __LINE__;
	if (mad_receive_via(umad, 0, port) || errno != ECANCELED)
		return __LINE__;
	if (mad_async_create(port) || errno != ECANCELED)
		return __LINE__;
	mad_async_stop(async);
	mad_async_free(async);
	mad_rpc_close_port(port);
	return fcntl(fd, F_GETFD) < 0 ? __LINE__ : 0;
}

static void *wait_in_run(void *arg)
{
	(void)arg;
	return mad_async_wait(async, -1) >= 0 ? NULL : arg;
}

static void *wait_in_rpc(void *arg)
{
	return call_lid(3) ? arg : NULL;
}

static void *wait_in_receive(void *arg)
{
	void *message = mad_receive_via(NULL, LONG_MS, port);

	mad_free(message);
	return message ? NULL : arg;
}

static void *wait_in_callback(void *arg)
{
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(1);

	if (mad_async_submit(async, &rpc, &to, NULL, 0, call_back_at_gate, &outcomes[1], NULL))
		return arg;
	device_respond(device_packet(device_written() - 1), 0, 0, NULL, 0);
	return mad_async_process(async) < 0 ? arg : NULL;
}

static int write_at_gate(const struct device_packet *packet, void *arg)
{
	(void)arg;
	if (be16toh(packet->header.addr.lid) != 3)
		return 0;
	device_respond(packet, 0, 0, NULL, 0);
	wait_at_gate();
	return 0;
}

/* Whatever the thread of the parent does in a call; the parent goes on. */
TEST(while_threads_are_in_calls_the_port_is_lost_in_a_child)
{
	void *(*const waits[])(void *) = {wait_in_run, wait_in_rpc, wait_in_receive,
					  wait_in_callback, wait_in_rpc};
	unsigned writes;
	pthread_t thread;

	for (int i = 0; i < 5; i++) {
		memset(outcomes, 0, sizeof(outcomes));
		if (i == 0)
			submit(async, set_request(), 1, &outcomes[0], NULL);
		device_on_write(i == 4 ? write_at_gate : NULL, NULL);
		writes = device_calls(DEVICE_POLL);
		thread = start_thread(waits[i], &outcomes);
		if (i >= 3)
			wait_for(&gate.entered);
		while (i < 3 && device_calls(DEVICE_POLL) == writes)
			sleep_ms(1);
		print_message("call %d\n", i);
		run_in_child(calls_fail_with_ecanceled);
		if (i < 2)
			device_respond(device_packet(device_written() - 1), 0, 0, NULL, 0);
		if (i == 2)
			queue_message(1);
		if (i >= 3)
			sem_post(&gate.leave);
		assert_null(join_thread(thread));
	}
}

static pid_t forked;

static void fork_in_callback(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	note(engine, reply, arg);
	forked = fork();
	if (forked)
		return;
	device_on_write(echo, NULL);
	submit(engine, set_request(), 9, &outcomes[2], NULL);
}

/* The thread that forks is in a call itself; the child goes on in that call. */
TEST(a_callback_may_fork)
{
	int count;

	submit_with(async, set_request(), 1, fork_in_callback, &outcomes[0]);
	submit(async, set_request(), 2, &outcomes[1], NULL);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	count = mad_async_process(async);
	if (!forked) {
		count += mad_async_wait(async, -1);
		if (count != 3 || outcomes[1].error != -ECANCELED || outcomes[2].calls != 1 ||
		    outcomes[2].error || call_lid(3))
			_exit(1);
		end_child();
	}
	expect_end_of_child(forked);
	assert_int_equal(count, 1);
	device_respond(device_packet(1), 0, 0, NULL, 0);
	assert_int_equal(mad_async_wait(async, -1), 1);
	assert_int_equal(outcomes[1].error, 0);
}

static void fork_beside_a_call(struct mad_async *engine, const struct mad_reply *reply,
			       void *arg)
{
	note(engine, reply, arg);
	forked = fork();
	if (forked)
		return;
	alarm(LONG_MS / 1000);
	if (call_lid(3) != ECANCELED)
		_exit(1);
	end_child();
}

TEST(a_callback_may_not_fork_a_port_that_others_use)
{
	unsigned polls = device_calls(DEVICE_POLL);
	pthread_t thread;

	thread = start_thread(wait_in_receive, &outcomes);
	wait_for_poll(polls);
	submit_with(async, set_request(), 1, fork_beside_a_call, &outcomes[0]);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	while (!outcomes[0].calls)
		assert_true(mad_async_process(async) >= 0);
	expect_end_of_child(forked);
	queue_message(1);
	assert_null(join_thread(thread));
}

static void *run(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)mad_async_wait(async, -1);
}

/* The state of a process with a closed standard input: the child's own descriptor has number 0.
 */
static int child_with_number_0(void)
{
	pthread_t thread;
	void *ret;

	close(0);
	if (mad_async_process(async) || fcntl(0, F_GETFD) < 0)
		return __LINE__;
	submit(async, set_request(), 1, &outcomes[0], NULL);
	for (int i = 0; i < 2; i++) {
		unsigned polls = device_calls(DEVICE_POLL);

		if (pthread_create(&thread, NULL, run, NULL))
			return __LINE__;
		wait_for_poll(polls);
		/* others read beside the thread, and wake it */
		if (i == 1) {
			device_on_write(echo, NULL);
			if (call_lid(3))
				return __LINE__;
		}
		mad_async_stop(async);
		ret = join_thread(thread);
		if ((intptr_t)ret != -EINTR)
			return __LINE__;
	}
	mad_async_free(async);
	mad_rpc_close_port(port);
	return fcntl(0, F_GETFD) >= 0 ? __LINE__ : 0;
}

TEST(the_descriptor_of_a_port_may_have_number_0)
{
	run_in_child(child_with_number_0);
}

/* The first that is woken in the child. */
static int child_that_wakes_its_thread(void)
{
	unsigned polls;
	pthread_t thread;
	void *ret;

	alarm(LONG_MS / 6000);
	if (mad_async_process(async))
		return __LINE__;
	submit(async, set_request(), 1, &outcomes[0], NULL);
	polls = device_calls(DEVICE_POLL);
	if (pthread_create(&thread, NULL, run, NULL))
		return __LINE__;
	wait_for_poll(polls);
	if (mad_async_cancel(async, MAD_ASYNC_ALL))
		return __LINE__;
	ret = join_thread(thread);
	return (intptr_t)ret == 1 ? 0 : __LINE__;
}

TEST(a_thread_that_waits_in_a_child_is_woken)
{
	run_in_child(child_that_wakes_its_thread);
}

#endif
