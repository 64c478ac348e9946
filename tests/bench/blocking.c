/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * blocking COUNT [NODES [THREADS]]: sends Get(NodeInfo) to the LIDs 1 .. NODES (2), one after
 * another, from THREADS threads (1) that share a port. Prints the calls a second, and the
 * microseconds of the processor for each. The program uses only functions that every
 * libibmad.so.5 has, so that it runs with any of them.
 */
#include <infiniband/mad.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MOST_THREADS 64

static struct ibmad_port *port;
static unsigned each, nodes;
static atomic_uint next_lid, failed;

static double now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void *call(void *arg)
{
	uint8_t info[IB_SMP_DATA_SIZE];

	(void)arg;
	for (unsigned i = 0; i < each; i++) {
		ib_portid_t to = {.lid = 1 + (int)(next_lid++ % nodes)};

		failed += !smp_query_via(info, &to, IB_ATTR_NODE_INFO, 0, 0, port);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	unsigned threads = argc > 3 ? (unsigned)atoi(argv[3]) : 1;
	pthread_t others[MOST_THREADS];
	int classes[] = {IB_SMI_CLASS};
	double start, processor;

	port = mad_rpc_open_port(NULL, 0, classes, 1);
	nodes = argc > 2 ? (unsigned)atoi(argv[2]) : 2;
	if (!port || !count || !nodes || !threads || threads > MOST_THREADS) {
		fprintf(stderr, "no port, or not that many requests or threads\n");
		return 1;
	}
	each = count / threads;
	start = now(CLOCK_MONOTONIC);
	processor = now(CLOCK_PROCESS_CPUTIME_ID);
	for (unsigned i = 1; i < threads; i++)
		if (pthread_create(&others[i], NULL, call, NULL))
			abort();
	call(NULL);
	for (unsigned i = 1; i < threads; i++)
		pthread_join(others[i], NULL);
	printf("%.0f %.3f\n", count / (now(CLOCK_MONOTONIC) - start),
	       (now(CLOCK_PROCESS_CPUTIME_ID) - processor) * 1e6 / count);
	mad_rpc_close_port(port);
	if (failed)
		fprintf(stderr, "%u calls failed\n", (unsigned)failed);
	return failed != 0;
}
