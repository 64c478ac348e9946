/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * loops COUNT LOOPS: reads the counters of 16 LIDs, COUNT times in all, from so many event
 * loops with an engine each on one port. Each loop has 16 requests in flight. Prints the
 * responses a second.
 */

#include <infiniband/mad_async.h>

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LOOPS_MAX 64
#define IN_FLIGHT 16

struct loop {
	pthread_t thread;
	struct mad_async *async;
	unsigned left, ended, failed;
};

static void submit_next(struct loop *loop);

static void count_reply(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	struct loop *loop = arg;

	(void)async;
	loop->ended++;
	loop->failed += reply->error != 0;
	submit_next(loop);
}

static void submit_next(struct loop *loop)
{
	ib_rpc_t rpc = {.mgtclass = IB_PERFORMANCE_CLASS,
			.method = IB_MAD_METHOD_GET,
			.attr = {.id = IB_GSI_PORT_COUNTERS},
			.dataoffs = IB_PC_DATA_OFFS,
			.datasz = IB_PC_DATA_SZ};
	ib_portid_t to = {
		.lid = (int)(1 + loop->left % 16), .qp = 1, .qkey = IB_DEFAULT_QP1_QKEY};
	uint8_t data[IB_PC_DATA_SZ] = {0};

	if (!loop->left)
		return;
	loop->left--;
	mad_set_field(data, 0, IB_PC_PORT_SELECT_F, 1);
	mad_async_submit(loop->async, &rpc, &to, data, sizeof(data), count_reply, loop, NULL);
}

static void *run_loop(void *arg)
{
	struct loop *loop = arg;
	struct pollfd handle = {.fd = mad_async_poll_fd(loop->async), .events = POLLIN};
	unsigned count = loop->left;

	for (unsigned i = 0; i < IN_FLIGHT; i++)
		submit_next(loop);
	while (loop->ended < count && poll(&handle, 1, -1) > 0)
		mad_async_process(loop->async);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned count = argc == 3 ? (unsigned)atoi(argv[1]) : 0, failed = 0;
	unsigned loop_count = count ? (unsigned)atoi(argv[2]) : 0;
	static struct loop loops[LOOPS_MAX];
	int classes[] = {IB_PERFORMANCE_CLASS};
	struct timespec before, after;
	struct ibmad_port *port;

	if (!loop_count || loop_count > LOOPS_MAX)
		return 2;
	port = mad_rpc_open_port(NULL, 0, classes, 1);
	for (unsigned i = 0; i < loop_count; i++) {
		loops[i].left = count / loop_count;
		loops[i].async = port ? mad_async_create(port) : NULL;
		if (!loops[i].async)
			return 1;
	}
	clock_gettime(CLOCK_MONOTONIC, &before);
	for (unsigned i = 0; i < loop_count; i++)
		if (pthread_create(&loops[i].thread, NULL, run_loop, &loops[i]))
			return 1;
	for (unsigned i = 0; i < loop_count; i++) {
		pthread_join(loops[i].thread, NULL);
		failed += loops[i].failed;
		mad_async_free(loops[i].async);
	}
	clock_gettime(CLOCK_MONOTONIC, &after);
	mad_rpc_close_port(port);
	printf("%.0f\n", count / ((double)(after.tv_sec - before.tv_sec) +
				  (double)(after.tv_nsec - before.tv_nsec) / 1e9));
	return failed ? 1 : 0;
}
