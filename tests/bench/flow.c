/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * flow WORK ATTEMPTS [WINDOW LIMIT]: sends requests, with so many attempts of 1,000 ms. WORK is
 *
 *   NODES             reads NodeInfo of LIDs 1 .. NODES, then PortInfo and
 *                     PortCounters of each port, all by LID
 *   each:NODES:COUNT  reads NodeInfo of LIDs 1 .. NODES, COUNT times, all at once
 *   paths:COUNT       requests COUNT paths from this port from the SA, all at once
 *
 * WINDOW requests are in flight by each queue pair and LIMIT to each node; without them the
 * engine decides. Prints the seconds, the requests, the MADs sent, the requests without a
 * response, and the seconds until 99 % of "each" and "paths" have a response.
 */

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

static void note(const struct mad_reply *reply)
{
	if (reply->error == -ETIMEDOUT)
		results.unanswered++;
	else if (reply->error)
		results.failed++;
	else if (++results.responses == results.awaited)
		results.at_99 = now();
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

static void ask_nodes(struct mad_async *async, unsigned nodes)
{
	for (unsigned lid = 1; lid <= nodes; lid++)
		ask_smp(async, lid, IB_ATTR_NODE_INFO, 0, node_came);
}

static void ask_each(struct mad_async *async, unsigned nodes, unsigned count)
{
	while (count--)
		for (unsigned lid = 1; lid <= nodes; lid++)
			ask_smp(async, lid, IB_ATTR_NODE_INFO, 0, came);
}

/* --- paths ---------------------------------------------------------------------- */

static void ask_paths(struct mad_async *async, const ib_portid_t *sa, uint8_t *gid,
		      unsigned count)
{
	const ib_rpc_t rpc = {.mgtclass = IB_SA_CLASS,
			      .method = IB_MAD_METHOD_GET,
			      .attr = {.id = IB_SA_ATTR_PATHRECORD},
			      .mask = 1 << 2 | 1 << 3, /* DGID, SGID */
			      .dataoffs = IB_SA_DATA_OFFS};
	uint8_t path[IB_SA_DATA_SIZE] = {0};

	mad_set_array(path, 0, IB_SA_PR_DGID_F, gid);
	mad_set_array(path, 0, IB_SA_PR_SGID_F, gid);
	while (count--)
		submit(async, &rpc, sa, path, sizeof(path), came, NULL);
}

/* --- the program ---------------------------------------------------------------- */

static int fix(struct ibmad_port *port, unsigned window, unsigned limit)
{
	return mad_port_set(port, MAD_PORT_SMP_WINDOW, window) ||
	       mad_port_set(port, MAD_PORT_GMP_WINDOW, window) ||
	       mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, limit);
}

int main(int argc, char **argv)
{
	int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS, IB_PERFORMANCE_CLASS, IB_SA_CLASS};
	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, classes, 4);
	struct mad_async *async = port ? mad_async_create(port) : NULL;
	unsigned nodes = 0, each = 0, paths = 0;
	struct mad_async_stats stats;
	ib_portid_t sa;
	ibmad_gid_t gid;
	double start;

	if (argc < 3 ||
	    (sscanf(argv[1], "each:%u:%u", &nodes, &each) != 2 &&
	     sscanf(argv[1], "paths:%u", &paths) != 1 && sscanf(argv[1], "%u", &nodes) != 1)) {
		fprintf(stderr, "usage: flow NODES|each:NODES:COUNT|paths:COUNT ATTEMPTS "
				"[WINDOW LIMIT]\n");
		return 2;
	}
	mad_rpc_set_timeout(port, 1000);
	mad_rpc_set_retries(port, atoi(argv[2]));
	if (!async ||
	    (argc > 4 && fix(port, (unsigned)atoi(argv[3]), (unsigned)atoi(argv[4]))) ||
	    (paths && (ib_resolve_smlid_via(&sa, 0, port) < 0 ||
		       ib_resolve_self_via(NULL, NULL, &gid, port) < 0))) {
		fprintf(stderr, "no port, or no SA\n");
		return 1;
	}
	results.awaited = (nodes * each + paths) * 99 / 100;
	start = results.at_99 = now();
	if (each)
		ask_each(async, nodes, each);
	else if (nodes)
		ask_nodes(async, nodes);
	else
		ask_paths(async, &sa, gid, paths);
	mad_async_wait(async, -1);
	mad_async_get_stats(async, &stats, sizeof(stats));
	printf("%.6f %" PRIu64 " %" PRIu64 " %u %.6f\n", now() - start, stats.submitted,
	       stats.sent, results.unanswered, results.at_99 - start);
	mad_async_free(async);
	mad_rpc_close_port(port);
	if (results.failed)
		fprintf(stderr, "%u failed\n", results.failed);
	return results.failed ? 1 : 0;
}
