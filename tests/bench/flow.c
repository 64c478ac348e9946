/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * flow NODES ATTEMPTS [WINDOW LIMIT]: asks the nodes of LIDs 1 .. NODES for NodeInfo, then for
 * PortInfo and PortCounters of each port, all by LID, with so many attempts of 1,000 ms. WINDOW
 * requests are in flight by each queue pair and LIMIT to each node; without them the engine
 * decides. Prints the seconds, the requests, the MADs sent and the requests without a response.
 */
#include <infiniband/mad_async.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct {
	unsigned unanswered;
	unsigned failed;
} results;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void note(const struct mad_reply *reply)
{
	if (reply->error == -ETIMEDOUT)
		results.unanswered++;
	else if (reply->error)
		results.failed++;
}

static void came(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	(void)async;
	(void)arg;
	note(reply);
}

static void submit(struct mad_async *async, const ib_rpc_t *rpc, const ib_portid_t *to,
		   const uint8_t *data, size_t size, mad_async_fn *fn, void *arg)
{
	if (mad_async_submit(async, rpc, to, data, size, fn, arg, NULL) < 0)
		results.failed++;
}

static void ask_smp(struct mad_async *async, uintptr_t lid, unsigned attribute,
		    unsigned modifier, mad_async_fn *fn)
{
	const ib_rpc_t rpc = {.mgtclass = IB_SMI_CLASS,
			      .method = IB_MAD_METHOD_GET,
			      .attr = {.id = attribute, .mod = modifier},
			      .dataoffs = IB_SMP_DATA_OFFS};
	const ib_portid_t to = {.lid = (int)lid};

	submit(async, &rpc, &to, NULL, 0, fn, (void *)lid);
}

static void ask_counters(struct mad_async *async, uintptr_t lid, unsigned port)
{
	const ib_rpc_t rpc = {.mgtclass = IB_PERFORMANCE_CLASS,
			      .method = IB_MAD_METHOD_GET,
			      .attr = {.id = IB_GSI_PORT_COUNTERS},
			      .dataoffs = IB_PC_DATA_OFFS};
	const ib_portid_t to = {.lid = (int)lid, .qp = 1, .qkey = IB_DEFAULT_QP1_QKEY};
	uint8_t data[IB_PC_DATA_SZ] = {0};

	mad_set_field(data, 0, IB_PC_PORT_SELECT_F, port);
	submit(async, &rpc, &to, data, sizeof(data), came, NULL);
}

static void node_came(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	unsigned ports;

	note(reply);
	if (reply->error)
		return;
	ports = mad_get_field((void *)(uintptr_t)reply->data, 0, IB_NODE_NPORTS_F);
	for (unsigned port = 1; port <= ports; port++) {
		ask_smp(async, (uintptr_t)arg, IB_ATTR_PORT_INFO, port, came);
		ask_counters(async, (uintptr_t)arg, port);
	}
}

static int fix(struct ibmad_port *port, unsigned window, unsigned limit)
{
	return mad_port_set_window(port, MAD_WINDOW_SMP, window) ||
	       mad_port_set_window(port, MAD_WINDOW_GMP, window) ||
	       mad_port_set_destination_limit(port, limit);
}

int main(int argc, char **argv)
{
	unsigned nodes = argc > 2 ? (unsigned)atoi(argv[1]) : 0;
	int classes[] = {IB_SMI_CLASS, IB_PERFORMANCE_CLASS};
	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, classes, 2);
	struct mad_async *async = port ? mad_async_create(port) : NULL;
	struct mad_async_stats stats;
	double start;

	if (!nodes || !async || mad_port_set_timeout(port, 1000) ||
	    mad_port_set_retries(port, atoi(argv[2])) ||
	    (argc > 4 && fix(port, (unsigned)atoi(argv[3]), (unsigned)atoi(argv[4])))) {
		fprintf(stderr, "no count, or no port\n");
		return 1;
	}
	start = now();
	for (unsigned lid = 1; lid <= nodes; lid++)
		ask_smp(async, lid, IB_ATTR_NODE_INFO, 0, node_came);
	mad_async_run(async);
	mad_async_get_stats(async, &stats, sizeof(stats));
	printf("%.6f %" PRIu64 " %" PRIu64 " %u\n", now() - start, stats.submitted, stats.sent,
	       results.unanswered);
	mad_async_destroy(async);
	mad_rpc_close_port(port);
	if (results.failed)
		fprintf(stderr, "%u failed\n", results.failed);
	return results.failed ? 1 : 0;
}
