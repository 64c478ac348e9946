/* SPDX-License-Identifier: BSD-2-Clause */

/* A port on the fake device, requests for it, and their outcomes. */
#ifndef TESTS_UNIT_ENGINE_FIXTURE_H
#define TESTS_UNIT_ENGINE_FIXTURE_H

#include "fake_device.h"
#include "late_responses.h"
#include "test.h"

#include <infiniband/mad.h>
#include <infiniband/mad_async.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ThreadSanitizer does not support threads in a child of fork(). */
#ifdef __SANITIZE_THREAD__
#define NO_CHILDREN
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NO_CHILDREN
#endif
#endif

/* Longer than any test takes. */
#define LONG_MS      60000
#define VENDOR_CLASS 0x0a

static struct ibmad_port *port;

/*
 * A short time after which a response is late. Set-up makes that time endless, so that a slow
 * machine retransmits nothing; a test of retransmissions makes it short.
 */
#define QUICK 4000

/*
 * So many requests are in flight by each queue pair and to each destination; 0: the limits
 * adapt. Set-up fixes them, so that flow control does not affect other tests.
 */
static inline void fix_flow(unsigned requests)
{
	mad_port_set(port, MAD_PORT_SMP_WINDOW, requests);
	mad_port_set(port, MAD_PORT_GMP_WINDOW, requests);
	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, requests);
}

static inline int open_port(void)
{
	int classes[] = {IB_SMI_CLASS,         IB_SMI_DIRECT_CLASS, IB_SA_CLASS,
			 IB_PERFORMANCE_CLASS, VENDOR_CLASS,        IB_CC_CLASS};

	port = mad_rpc_open_port(NULL, 0, classes, 6);
	if (!port)
		return -1;
	mad_rpc_set_timeout(port, LONG_MS);
	set_late_after(LONG_MS * 1000);
	fix_flow(16);
	return 0;
}

static inline int port_setup(void)
{
	return device_setup() ? -1 : open_port();
}

/* A port whose handle is no descriptor, as those of a simulator. */
static inline int high_setup(void)
{
	if (device_setup())
		return -1;
	device_high_handles();
	return open_port();
}

static inline int port_teardown(void)
{
	mad_rpc_close_port(port);
	return device_teardown();
}

#define PORT_TEST(name) TEST_WITH(name, port_setup, port_teardown)

/* --- requests ------------------------------------------------------------------- */

/* Retransmitted as soon as its response is late. */
static inline ib_rpc_t get_request(void)
{
	return (ib_rpc_t){.mgtclass = IB_SMI_CLASS,
			  .method = IB_MAD_METHOD_GET,
			  .attr.id = IB_ATTR_NODE_INFO,
			  .dataoffs = IB_SMP_DATA_OFFS,
			  .datasz = IB_SMP_DATA_SIZE};
}

/* Retransmitted at the end of an attempt. */
static inline ib_rpc_t set_request(void)
{
	return (ib_rpc_t){.mgtclass = IB_PERFORMANCE_CLASS,
			  .method = IB_MAD_METHOD_SET,
			  .attr.id = IB_GSI_PORT_COUNTERS,
			  .dataoffs = IB_PC_DATA_OFFS,
			  .datasz = IB_PC_DATA_SZ};
}

/* Its response may have any length. */
static inline ib_rpc_t table_request(void)
{
	return (ib_rpc_t){.mgtclass = IB_SA_CLASS,
			  .method = IB_MAD_METHOD_GET_TABLE,
			  .attr.id = IB_SA_ATTR_NODERECORD,
			  .dataoffs = IB_SA_DATA_OFFS,
			  .datasz = IB_SA_DATA_SIZE};
}

static inline ib_portid_t to_lid(int lid)
{
	return (ib_portid_t){.lid = lid, .qp = 1, .qkey = IB_DEFAULT_QP1_QKEY};
}

/* --- responses ------------------------------------------------------------------ */

/* Hooks for device_on_write(). */

static inline int echo(const struct device_packet *packet, void *arg)
{
	(void)arg;
	device_respond(packet, 0, 0, NULL, 0);
	return 0;
}

static inline int time_out(const struct device_packet *packet, void *arg)
{
	(void)arg;
	device_time_out(packet);
	return 0;
}

/* Without the faults of device_fail_malloc(). */
void *__real_calloc(size_t count, size_t size);

/*
 * A GetTable's response of so many bytes, whose first segment announces a payload; the last
 * byte is a mark.
 */
static inline void respond_announced(const struct device_packet *packet, size_t length,
				     uint32_t announced, uint8_t mark)
{
	uint8_t *mad = __real_calloc(1, length < IB_MAD_SIZE ? IB_MAD_SIZE : length);

	device_copy_mad(packet, mad);
	mad[3] |= IB_MAD_RESPONSE;
	mad[24] = 1;
	mad[25] = IB_RMPP_TYPE_DATA;
	mad[26] = 3;
	announced = htobe32(announced);
	memcpy(mad + 32, &announced, sizeof(announced));
	mad[length - 1] = mark;
	device_reply(packet, mad, length);
	free(mad);
}

/* The same from a sender that does not know the length when it begins. */
static inline void respond_long(const struct device_packet *packet, size_t length, uint8_t mark)
{
	respond_announced(packet, length, 0, mark);
}

/* --- the outcome of a request --------------------------------------------------- */

struct outcome {
	atomic_int calls;
	int error;
	unsigned status, transmissions, rtt_us;
	size_t length, data_size;
	uint8_t lid_byte; /* the data's first byte */
};

/* A callback for an outcome. */
static inline void note(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	struct outcome *outcome = arg;

	(void)async;
	outcome->error = reply->error;
	outcome->status = reply->status;
	outcome->transmissions = reply->transmissions;
	outcome->rtt_us = reply->rtt_us;
	outcome->length = reply->length;
	outcome->data_size = reply->data_size;
	outcome->lid_byte = reply->data_size ? reply->data[0] : 0;
	outcome->calls++;
}

/* Submits a request whose data begins with the LID. */
static inline void submit(struct mad_async *async, ib_rpc_t rpc, int lid,
			  struct outcome *outcome, uint64_t *id)
{
	uint8_t data[IB_SMP_DATA_SIZE] = {(uint8_t)lid};
	ib_portid_t to = to_lid(lid);

	assert_int_equal(
		mad_async_submit(async, &rpc, &to, data, sizeof(data), note, outcome, id), 0);
}

/* Submits a request without data, for a callback of the test. */
static inline void submit_with(struct mad_async *async, ib_rpc_t rpc, int lid,
			       mad_async_fn *callback, void *arg)
{
	ib_portid_t to = to_lid(lid);

	assert_int_equal(mad_async_submit(async, &rpc, &to, NULL, 0, callback, arg, NULL), 0);
}

static inline struct mad_async_stats stats_of(struct mad_async *async)
{
	struct mad_async_stats stats;

	assert_int_equal(mad_async_get_stats(async, &stats, sizeof(stats)), 0);
	assert_int_equal(stats.submitted, stats.completed + stats.in_flight + stats.queued);
	return stats;
}

/* --- threads, children ---------------------------------------------------------- */

static inline pthread_t start_thread(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run, arg), 0);
	return thread;
}

static inline void *join_thread(pthread_t thread)
{
	void *result;

	assert_int_equal(pthread_join(thread, &result), 0);
	return result;
}

static inline void sleep_ms(long ms)
{
	struct timespec time = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&time, NULL);
}

/* Until a thread has called poll more often than that. */
static inline void wait_for_poll(unsigned polls)
{
	while (device_calls(DEVICE_POLL) == polls)
		sleep_ms(1);
}

/* A Set by a blocking call: 0 or an errno. */
static inline int call_lid(int lid)
{
	uint8_t data[IB_PC_DATA_SZ] = {0};
	ib_rpc_t rpc = set_request();
	ib_portid_t to = to_lid(lid);

	return mad_rpc(port, &rpc, &to, data, data) ? 0 : errno;
}

/* The same in a thread. */
static inline void *call_number(void *lid)
{
	return (void *)(intptr_t)call_lid((int)(intptr_t)lid);
}

static inline pthread_t start_call(int lid)
{
	return start_thread(call_number, (void *)(intptr_t)lid);
}

static inline void *receive_message(void *arg)
{
	(void)arg;
	mad_free(mad_receive_via(NULL, -1, port));
	return NULL;
}

/* A thread that waits for a request and polls. */
static inline pthread_t start_receiver(void)
{
	unsigned polls = device_calls(DEVICE_POLL);
	pthread_t thread = start_thread(receive_message, NULL);

	wait_for_poll(polls);
	return thread;
}

static inline void expect_end_of_child(pid_t child)
{
	int status = -1;

	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* A function that exists in builds with coverage. */
void __gcov_dump(void) __attribute__((weak));

/* Ends a child without an error, and writes its coverage. */
static inline void end_child(void)
{
	if (__gcov_dump)
		__gcov_dump();
	_exit(0);
}

/* In such a function, where an assertion would continue with the parent's tests. */
#define EXPECT(condition)                \
	do {                             \
		if (!(condition))        \
			return __LINE__; \
	} while (0)

/* A child calls the function, which returns 0 or the line of the first error. */
static inline void run_in_child(int (*function)(void))
{
	pid_t child = fork();

	if (!child) {
		int line;

		signal(SIGSEGV, SIG_DFL);
		signal(SIGABRT, SIG_DFL);
		alarm(LONG_MS / 1000);
		line = function();
		if (!line)
			end_child();
		print_error("child: line %d\n", line);
		_exit(1);
	}
	expect_end_of_child(child);
}

/*
 * The same for a child that leaks: it has the memory that threads of the parent used, and their
 * stacks. valgrind would report that. The parent sees SIGKILL.
 */
static inline void end_without_leak_check(int error)
{
	if (error)
		_exit(error);
	if (__gcov_dump)
		__gcov_dump();
	raise(SIGKILL);
}

/* --- time ----------------------------------------------------------------------- */

static inline int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

static inline int64_t now_ms(void)
{
	return now_us() / 1000;
}

#endif
