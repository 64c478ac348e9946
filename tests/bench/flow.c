/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * flow WORK ATTEMPTS: sends requests, with so many attempts of 1,000 ms. WORK is
 *
 *   NODES             reads NodeInfo of LIDs 1 .. NODES, then PortInfo and
 *                     PortCounters of each port, all by LID
 *   each:NODES:COUNT  reads NodeInfo of LIDs 1 .. NODES, COUNT times, all at once
 *   paths:COUNT       requests COUNT paths from this port from the SA, all at once
 *
 * Prints the seconds, the requests, the MADs sent, the requests without a response, the seconds
 * until 99 % of "each" and "paths" have a response, and the bytes of the heap for each request
 * of "each" while all are open.
 */

#include "../heap_in_use.h"

#include <infiniband/mad_async.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct {
	unsigned unanswered;
	unsigned failed;
	unsigned responses;
	unsigned awaited; /* 99 % of the requests; 0: not known */
	double at_99;     /* when they have a response */
} results;

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
		results.unanswered++;
	else if (reply->error)
		results.failed++;
	else if (++results.responses == results.awaited)
		results.at_99 = now();
}

static void submit(struct mad_async *async, const ib_rpc_t *rpc, const ib_portid_t *to,
		   const uint8_t *data, size_t size, mad_async_fn *fn, void *arg)
{
	if (mad_async_submit(async, rpc, to, data, size, fn, arg, NULL) < 0)
		results.failed++;
}

static ib_rpc_t get(int mgmt_class, unsigned attribute, unsigned modifier, unsigned offset)
{
	return (ib_rpc_t){.mgtclass = mgmt_class,
			  .method = IB_MAD_METHOD_GET,
			  .attr = {.id = attribute, .mod = modifier},
			  .dataoffs = (int)offset};
}

static void ask_smp(struct mad_async *async, uintptr_t lid, unsigned attribute,
		    unsigned modifier, mad_async_fn *fn)
{
	const ib_rpc_t rpc = get(IB_SMI_CLASS, attribute, modifier, IB_SMP_DATA_OFFS);
	const ib_portid_t to = {.lid = (int)lid};

	submit(async, &rpc, &to, NULL, 0, fn, (void *)lid);
}

static void node_came(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	const ib_rpc_t rpc =
		get(IB_PERFORMANCE_CLASS, IB_GSI_PORT_COUNTERS, 0, IB_PC_DATA_OFFS);
	const ib_portid_t to = {
		.lid = (int)(uintptr_t)arg, .qp = 1, .qkey = IB_DEFAULT_QP1_QKEY};
	uint8_t data[IB_PC_DATA_SZ] = {0};
	unsigned ports;

	came(async, reply, NULL);
	if (reply->error)
		return;
	ports = mad_get_field((void *)(uintptr_t)reply->data, 0, IB_NODE_NPORTS_F);
	for (unsigned port = 1; port <= ports; port++) {
		ask_smp(async, (uintptr_t)arg, IB_ATTR_PORT_INFO, port, came);
		mad_set_field(data, 0, IB_PC_PORT_SELECT_F, port);
		submit(async, &rpc, &to, data, sizeof(data), came, NULL);
	}
}

static void ask_paths(struct mad_async *async, const ib_portid_t *sa, uint8_t *gid,
		      unsigned count)
{
	ib_rpc_t rpc = get(IB_SA_CLASS, IB_SA_ATTR_PATHRECORD, 0, IB_SA_DATA_OFFS);
	uint8_t path[IB_SA_DATA_SIZE] = {0};

	rpc.mask = 1 << 2 | 1 << 3; /* DGID, SGID */
	mad_set_array(path, 0, IB_SA_PR_DGID_F, gid);
	mad_set_array(path, 0, IB_SA_PR_SGID_F, gid);
	while (count--)
		submit(async, &rpc, sa, path, sizeof(path), came, NULL);
}

int main(int argc, char **argv)
{
	int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS, IB_PERFORMANCE_CLASS, IB_SA_CLASS};
	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, classes, 4);
	struct mad_async *async = port ? mad_async_create(port) : NULL;
	unsigned nodes = 0, each = 0, paths = 0;
	size_t heap = heap_in_use();
	struct mad_async_stats stats;
	ib_portid_t sa;
	ibmad_gid_t gid;
	double start;

	if (argc < 3 ||
	    (sscanf(argv[1], "each:%u:%u", &nodes, &each) != 2 &&
	     sscanf(argv[1], "paths:%u", &paths) != 1 && sscanf(argv[1], "%u", &nodes) != 1)) {
		fprintf(stderr, "usage: flow NODES|each:NODES:COUNT|paths:COUNT ATTEMPTS\n");
		return 2;
	}
	mad_rpc_set_timeout(port, 1000);
	mad_rpc_set_retries(port, atoi(argv[2]));
	if (!async || (paths && (ib_resolve_smlid_via(&sa, 0, port) < 0 ||
				 ib_resolve_self_via(NULL, NULL, &gid, port) < 0))) {
		fprintf(stderr, "no port, or no SA\n");
		return 1;
	}
	results.awaited = (nodes * each + paths) * 99 / 100;
	start = results.at_99 = now();
	if (paths)
		ask_paths(async, &sa, gid, paths);
	for (unsigned i = 0; i < (each ? each : 1); i++)
		for (unsigned lid = 1; lid <= nodes; lid++)
			ask_smp(async, lid, IB_ATTR_NODE_INFO, 0, each ? came : node_came);
	heap = each ? (heap_in_use() - heap) / (nodes * each) : 0;
	mad_async_wait(async, -1);
	mad_async_get_stats(async, &stats, sizeof(stats));
	printf("%.6f %" PRIu64 " %" PRIu64 " %u %.6f %zu\n", now() - start, stats.submitted,
	       stats.sent, results.unanswered, results.at_99 - start, heap);
	mad_async_free(async);
	mad_rpc_close_port(port);
	if (results.failed)
		fprintf(stderr, "%u failed\n", results.failed);
	return results.failed ? 1 : 0;
}
