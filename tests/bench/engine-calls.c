/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * engine-calls COUNT [THREADS]: prints the number of blocking calls of mad_rpc() a second, and
 * the microseconds of the processor for each. A call is Get(NodeInfo) along a directed route of
 * engine-routes.h. THREADS threads share a port. The program uses only functions that every
 * libibmad.so.5 has, so that it runs with any of them.
 */
#include "engine-routes.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#define THREADS_MAX 64
#define WARM_UP     50

struct caller {
	pthread_t thread;
	struct ibmad_port *port;
	unsigned first, count;
	unsigned failed; /* failed, but did not time out */
};

static double now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void *call(void *arg)
{
	struct caller *caller = arg;
	uint8_t info[IB_SMP_DATA_SIZE];

	for (unsigned i = 0; i < caller->count; i++) {
		ib_rpc_t rpc = node_info_request();
		ib_portid_t to = route_to(caller->first + i);

		if (!mad_rpc(caller->port, &rpc, &to, NULL, info) && errno != ETIMEDOUT)
			caller->failed++;
	}
	return NULL;
}

/* Runs the callers, in parallel if there are several. Returns how many failed. */
static unsigned run(struct caller *callers, unsigned count)
{
	unsigned failed = 0;

	if (count == 1)
		call(&callers[0]);
	else
		for (unsigned i = 0; i < count; i++)
			if (pthread_create(&callers[i].thread, NULL, call, &callers[i]))
				abort();
	for (unsigned i = 0; i < count; i++) {
		if (count > 1)
			pthread_join(callers[i].thread, NULL);
		failed += callers[i].failed;
	}
	return failed;
}

int main(int argc, char **argv)
{
	unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 0, failed;
	unsigned threads = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
	struct caller callers[THREADS_MAX] = {0};
	int class = IB_SMI_DIRECT_CLASS;
	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, &class, 1);
	double start, processor;

	if (!port || !threads || threads > THREADS_MAX) {
		fprintf(stderr, "no port, or not that many threads\n");
		return 1;
	}
	for (unsigned i = 0; i < threads; i++)
		callers[i] = (struct caller){
			.port = port,
			.first = i * (NODES / threads),
			.count = count / threads,
		};
	call(&(struct caller){.port = port, .count = count ? WARM_UP : 0});
	start = now(CLOCK_MONOTONIC);
	processor = now(CLOCK_PROCESS_CPUTIME_ID);
	failed = run(callers, threads);
	printf("%.0f %.3f\n", count / (now(CLOCK_MONOTONIC) - start),
	       (now(CLOCK_PROCESS_CPUTIME_ID) - processor) * 1e6 / (count ? count : 1));
	mad_rpc_close_port(port);
	if (failed)
		fprintf(stderr, "%u calls failed\n", failed);
	return failed != 0;
}
