/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A port whose descriptor is 1024 or more, because the process has many: it is a descriptor of
 * the kernel like any other one, not a handle of a simulator, which begins at 1024, too.
 */

#define MANY 1

#include "event_loop.h"
#include "test.h"

/* after event_loop.h, whose functions have parameters with the engine's name */
#include "async_fixture.h"

#include <fcntl.h>
#include <sys/resource.h>

#define OPEN         1100
/* If it cannot be woken, a waiting thread polls for a shorter time. */
#define LONG_POLL_MS 1000

static int files[OPEN], file_count;
static bool enough;
static struct rlimit limit_before;

/* Opens descriptors until the next one is high: whether the process may have so many. */
static bool open_many(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit_before);
	limit = limit_before;
	if (limit.rlim_cur < OPEN + 100)
		limit.rlim_cur = OPEN + 100;
	if (limit.rlim_cur > limit.rlim_max || setrlimit(RLIMIT_NOFILE, &limit))
		return false;
	for (file_count = 0; file_count < OPEN; file_count++)
		if ((files[file_count] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0)
			return false;
	return true;
}

static int setup(void)
{
	enough = open_many();
	return async_setup();
}

static int teardown(void)
{
	int ret = async_teardown();

	while (file_count)
		close(files[--file_count]);
	setrlimit(RLIMIT_NOFILE, &limit_before);
	return ret;
}

FIXTURE(setup, teardown);

static void expect_high(void)
{
	if (!enough) {
		print_message("the process cannot have %d descriptors\n", OPEN + 100);
		skip();
	}
	assert_true(mad_rpc_portid(port) >= OPEN);
	assert_int_not_equal(fcntl(mad_rpc_portid(port), F_GETFD), -1);
}

TEST(an_event_loop_polls_a_single_descriptor)
{
	struct pollfd fd = {.events = POLLIN};

	expect_high();
	fd.fd = mad_async_poll_fd(async);
	assert_true(fd.fd >= 0);
	submit(async, set_request(), 1, &outcomes[0], NULL);
	assert_int_equal(poll(&fd, 1, 0), 0);
	device_respond(device_packet(0), 0, 0, NULL, 0);
	assert_int_equal(poll(&fd, 1, LONG_MS), 1);
	assert_int_equal(mad_async_process(async), 1);
	expect_all(1, 0);
}

/* Whether the thread that waits polls without a limit that is shorter than its request's. */
static bool polls_for_long(void)
{
	int timeout;

	wait_for_poll(0);
	timeout = device_poll_timeout();
	return timeout < 0 || timeout > LONG_POLL_MS;
}

TEST(a_thread_that_waits_is_woken)
{
	pthread_t thread;
	bool for_long;

	expect_high();
	submit(async, set_request(), 1, &outcomes[0], NULL);
	thread = start_running(async);
	for_long = polls_for_long();
	assert_int_equal(mad_async_cancel(async, MAD_ASYNC_ALL), 0);
	assert_int_equal(joined_count(thread), 1);
	expect_all(1, -ECANCELED);
	assert_true(for_long);
}

static void *query(void *arg)
{
	uint8_t data[IB_PC_DATA_SZ] = {0};
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(1);

	(void)arg;
	return mad_rpc(port, &rpc, &to, data, data) ? async : NULL;
}

TEST(a_thread_in_a_blocking_call_waits_without_looking_up)
{
	pthread_t thread;
	bool for_long;
	void *result;

	expect_high();
	assert_int_equal(pthread_create(&thread, NULL, query, NULL), 0);
	for_long = polls_for_long();
	device_respond(device_packet(0), 0, 0, NULL, 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_non_null(result);
	assert_true(for_long);
}
