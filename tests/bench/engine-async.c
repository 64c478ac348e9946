/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * engine-async COUNT [DEAD]: sends as many Get(NodeInfo) by the asynchronous engine as
 * engine-calls sends by blocking calls. DEAD of the nodes are dead; each request then has one
 * attempt of 1,000 ms. Prints the seconds, the requests without a response, the
 * retransmissions, the microseconds of the shortest round trip, and the bytes of the heap for
 * each request while all requests are open.
 */
#include "engine-routes.h"
#include "../heap_in_use.h"

#include <infiniband/mad_async.h>
#include <errno.h>
#include <time.h>

static unsigned unanswered, failed;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void came(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	(void)async;
	(void)arg;
	if (reply->error == -ETIMEDOUT)
		unanswered++;
	else if (reply->error)
		failed++;
}

static int submit_all(struct mad_async *async, unsigned count)
{
	const ib_rpc_t rpc = node_info_request();

	for (unsigned i = 0; i < count; i++) {
		const ib_portid_t to = route_to(i);
		int ret = mad_async_submit(async, &rpc, &to, NULL, 0, came, NULL, NULL);

		if (ret < 0)
			return ret;
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	unsigned dead = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
	int class = IB_SMI_DIRECT_CLASS;
	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, &class, 1);
	struct mad_async *async = port ? mad_async_create(port) : NULL;
	struct mad_async_stats stats;
	size_t heap = heap_in_use();
	double start = now();

	if (!count || !async) {
		fprintf(stderr, "no count, or no port\n");
		return 1;
	}
	if (dead) {
		mad_rpc_set_timeout(port, 1000);
		mad_rpc_set_retries(port, 1);
	}
	if (submit_all(async, count) < 0) {
		fprintf(stderr, "a request was not taken\n");
		return 1;
	}
	heap = heap_in_use() - heap;
	mad_async_wait(async, -1);
	mad_async_get_stats(async, &stats, sizeof(stats));
	printf("%.6f %u %" PRIu64 " %u %zu\n", now() - start, unanswered, stats.retried,
	       stats.rtt_min_us, heap / count);
	mad_async_free(async);
	mad_rpc_close_port(port);
	if (failed || unanswered < dead) {
		fprintf(stderr, "%u failed, %u unanswered\n", failed, unanswered);
		return 1;
	}
	return 0;
}
