/* SPDX-License-Identifier: BSD-2-Clause */

/* An engine on a port, and requests of several kinds. */
#ifndef TESTS_MACHINE_ASYNC_H
#define TESTS_MACHINE_ASYNC_H

#include "children.h"
#include "outcome.h"

#include <fcntl.h>
#include <infiniband/umad.h>
#include <poll.h>
#include <pthread.h>

#define MS     INT64_C(1000)
#define SECOND INT64_C(1000000)

enum kind {
	SMP_GET,
	PMA_GET,
	SA_GET,
	SMP_SET,
	PMA_SET,
	SA_TABLE,
	KINDS
};

static struct mad_async *async __attribute__((unused));

/* high: the handle's number is no descriptor of the kernel */
static inline int open_engine_on(const char *topology, bool high)
{
	machine_start(topology, NULL);
	if (high)
		machine_high_handles();
	if (mad_port_open(NULL, 0, &port))
		return -1;
	async = mad_async_create(port);
	return async ? 0 : -1;
}

static inline int open_engine(const char *topology)
{
	return open_engine_on(topology, false);
}

static inline int close_engine(void)
{
	mad_async_free(async);
	async = NULL;
	mad_rpc_close_port(port);
	port = NULL;
	machine_stop();
	return 0;
}

static inline ib_rpc_t rpc_of(enum kind kind)
{
	static const ib_rpc_t rpcs[KINDS] = {
		[SMP_GET] = {.mgtclass = IB_SMI_CLASS,
			     .method = IB_MAD_METHOD_GET,
			     .attr.id = IB_ATTR_NODE_INFO,
			     .dataoffs = IB_SMP_DATA_OFFS,
			     .datasz = IB_SMP_DATA_SIZE},
		[PMA_GET] = {.mgtclass = IB_PERFORMANCE_CLASS,
			     .method = IB_MAD_METHOD_GET,
			     .attr.id = CLASS_PORT_INFO,
			     .dataoffs = IB_PC_DATA_OFFS,
			     .datasz = IB_PC_DATA_SZ},
		[SA_GET] = {.mgtclass = IB_SA_CLASS,
			    .method = IB_MAD_METHOD_GET,
			    .attr.id = CLASS_PORT_INFO,
			    .dataoffs = IB_SA_DATA_OFFS,
			    .datasz = IB_SA_DATA_SIZE},
		[SMP_SET] = {.mgtclass = IB_SMI_CLASS,
			     .method = IB_MAD_METHOD_SET,
			     .attr.id = IB_ATTR_GUID_INFO,
			     .dataoffs = IB_SMP_DATA_OFFS,
			     .datasz = IB_SMP_DATA_SIZE},
		[PMA_SET] = {.mgtclass = IB_PERFORMANCE_CLASS,
			     .method = IB_MAD_METHOD_SET,
			     .attr.id = IB_GSI_PORT_COUNTERS,
			     .dataoffs = IB_PC_DATA_OFFS,
			     .datasz = IB_PC_DATA_SZ},
		[SA_TABLE] = {.mgtclass = IB_SA_CLASS,
			      .method = IB_MAD_METHOD_GET_TABLE,
			      .attr.id = IB_SA_ATTR_NODERECORD,
			      .dataoffs = IB_SA_DATA_OFFS,
			      .datasz = IB_SA_DATA_SIZE},
	};

	return rpcs[kind];
}

static inline uint64_t submit_with(struct mad_async *engine, ib_rpc_t rpc, unsigned lid,
				   mad_async_fn *callback, void *arg)
{
	static const uint8_t zeros[IB_PC_DATA_SZ] = {0, 1};
	bool set = rpc.mgtclass == IB_PERFORMANCE_CLASS;
	ib_portid_t to = {.lid = (int)lid};
	uint64_t id;

	assert_int_equal(mad_async_submit(engine, &rpc, &to, set ? zeros : NULL,
					  set ? sizeof(zeros) : 0, callback, arg, &id),
			 0);
	return id;
}

static inline uint64_t submit(enum kind kind, unsigned lid, struct outcome *outcome)
{
	return submit_with(async, rpc_of(kind), lid, note, outcome);
}

/* The leaf "n<number>" of a star. */
static inline unsigned leaf(unsigned number)
{
	return 10 + number;
}

/* All leaves of a star are silent. */
static inline void silence(void)
{
	for (int i = 1; i <= 8; i++)
		machine_rule("silent on n%d", i);
}

static inline bool loop_is_awake(struct mad_async *engine, int timeout_ms)
{
	struct pollfd fd = {.fd = mad_async_poll_fd(engine), .events = POLLIN};

	return poll(&fd, 1, timeout_ms) == 1;
}

static inline void *wait_in_thread(void *engine)
{
	return (void *)(intptr_t)mad_async_wait(engine, -1);
}

static inline pthread_t start(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run, arg), 0);
	return thread;
}

static inline int join(pthread_t thread)
{
	void *result;

	assert_int_equal(pthread_join(thread, &result), 0);
	return (int)(intptr_t)result;
}

/* A blocking call. Returns 0 or a negative errno. */
static inline int ask(ib_rpc_t rpc, unsigned lid)
{
	bool gmp = rpc.mgtclass != IB_SMI_CLASS;
	ib_portid_t to = {.lid = (int)lid, .qp = gmp, .qkey = gmp ? IB_DEFAULT_QP1_QKEY : 0};
	uint8_t data[MACHINE_MAD] = {0, 1};

	return mad_rpc(port, &rpc, &to, data, data) ? 0 : -errno;
}

static inline void expect_outcome(const struct outcome *outcome, int error)
{
	assert_int_equal(outcome->calls, 1);
	assert_int_equal(outcome->error, error);
}

static inline bool is_eventfd(int fd)
{
	char path[32], target[32] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, target, sizeof(target) - 1) > 0 &&
	       !strcmp(target, "anon_inode:[eventfd]");
}

/* The next descriptor has number 0. Returns a copy of the one that had it. */
static inline int free_descriptor_0(void)
{
	int copy = dup(0);

	close(0);
	return copy;
}

/* By now what had number 0 must be closed. */
static inline void take_descriptor_0(int copy)
{
	assert_int_equal(fcntl(0, F_GETFD), -1);
	assert_int_equal(dup2(copy, 0), 0);
	close(copy);
}

static inline uint32_t next_random(uint32_t *state, uint32_t below)
{
	*state = *state * 1664525 + 1013904223;
	return (*state >> 8) % below;
}

#endif
