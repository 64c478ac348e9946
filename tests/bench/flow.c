/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * flow [--samples FILE] WORK ATTEMPTS [WINDOW LIMIT]: sends requests, with so many attempts of
 * 1,000 ms. WORK is
 *
 *   NODES        reads NodeInfo of LIDs 1 .. NODES, then PortInfo and
 *                PortCounters of each port, all by LID
 *   discovery    discovers the fabric by directed routes: NodeInfo, PortInfo of each port, and
 *                NodeInfo of the node behind it
 *   paths:COUNT  requests COUNT paths from this port from the SA, all at once
 *
 * WINDOW requests are in flight by each queue pair and LIMIT to each node; without them the
 * engine decides. Prints the seconds, the requests, the MADs sent and the requests without a
 * response.
 *
 * With --samples, a line is written to FILE every millisecond: the time of day in seconds; the
 * window, the requests in flight, 1 if the fabric is silent, the shortest and the smoothed
 * round trip in microseconds, the responses a second, and the late MADs judged lost by a full
 * queue and by links, of SMPs; the same of GMPs.
 */
#define _GNU_SOURCE /* tdestroy() */

#include <infiniband/mad_async.h>

#include <errno.h>
#include <poll.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct {
	unsigned unanswered;
	unsigned failed;
} results;

static double now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
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

static void ask_nodes(struct mad_async *async, unsigned nodes)
{
	for (unsigned lid = 1; lid <= nodes; lid++)
		ask_smp(async, lid, IB_ATTR_NODE_INFO, 0, node_came);
}

/* --- discovery ------------------------------------------------------------------ */

/* The purpose of a request by a directed route. */
struct visit {
	uint64_t guid;
	ib_dr_path_t route;
	unsigned type, ports;
	unsigned entry; /* the port by which the route enters the node */
	unsigned port;  /* the port whose PortInfo is read */
};

static void *guids; /* GUIDs of the discovered nodes, a tree */

static mad_async_fn found, port_came;

static void *or_exit(void *memory)
{
	if (memory)
		return memory;
	perror("flow");
	exit(1);
}

static int compare(const void *a, const void *b)
{
	uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

	return one < other ? -1 : one > other;
}

static void ask_directed(struct mad_async *async, const struct visit *visit, unsigned attribute,
			 unsigned modifier, mad_async_fn *fn)
{
	const ib_rpc_t rpc = {.mgtclass = IB_SMI_DIRECT_CLASS,
			      .method = IB_MAD_METHOD_GET,
			      .attr = {.id = attribute, .mod = modifier},
			      .dataoffs = IB_SMP_DATA_OFFS};
	const ib_portid_t to = {.drpath = visit->route};
	struct visit *copy = or_exit(malloc(sizeof(*copy)));

	*copy = *visit;
	submit(async, &rpc, &to, NULL, 0, fn, copy);
}

static void found(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	struct visit visit = *(struct visit *)arg;
	void *info = (void *)(uintptr_t)reply->data;
	uint64_t *guid;

	free(arg);
	note(reply);
	if (reply->error)
		return;
	guid = or_exit(malloc(sizeof(*guid)));
	*guid = mad_get_field64(info, 0, IB_NODE_GUID_F);
	if (*(uint64_t **)or_exit(tsearch(guid, &guids, compare)) != guid) {
		free(guid);
		return;
	}
	visit.type = mad_get_field(info, 0, IB_NODE_TYPE_F);
	visit.ports = mad_get_field(info, 0, IB_NODE_NPORTS_F);
	visit.entry = mad_get_field(info, 0, IB_NODE_LOCAL_PORT_F);
	for (visit.port = 1; visit.port <= visit.ports; visit.port++)
		ask_directed(async, &visit, IB_ATTR_PORT_INFO, visit.port, port_came);
}

/* Continues through the port. CAs forward nothing (IBA 14.2.2), except the local CA. */
static void port_came(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	struct visit visit = *(struct visit *)arg;
	const unsigned link_up = 5;

	free(arg);
	note(reply);
	if (reply->error ||
	    mad_get_field((void *)(uintptr_t)reply->data, 0, IB_PORT_PHYS_STATE_F) != link_up ||
	    (visit.route.cnt && (visit.type != IB_NODE_SWITCH || visit.port == visit.entry)) ||
	    visit.route.cnt + 1 >= IB_SUBNET_PATH_HOPS_MAX)
		return;
	visit.route.p[++visit.route.cnt] = (uint8_t)visit.port;
	ask_directed(async, &visit, IB_ATTR_NODE_INFO, 0, found);
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

/* --- samples -------------------------------------------------------------------- */

static void print_flow(FILE *file, const struct mad_flow_stats *flow)
{
	fprintf(file, "\t%u\t%u\t%u\t%u\t%u\t%u\t%" PRIu64 "\t%" PRIu64, flow->window,
		flow->in_flight, flow->silent, flow->rtt_shortest_us, flow->rtt_smoothed_us,
		flow->delivery_rate, flow->queue_losses, flow->link_losses);
}

static void sample(FILE *file, struct mad_async *async)
{
	struct mad_async_stats stats;

	mad_async_get_stats(async, &stats, sizeof(stats));
	fprintf(file, "%.6f", now(CLOCK_REALTIME));
	print_flow(file, &stats.smp);
	print_flow(file, &stats.gmp);
	fprintf(file, "\n");
}

/* As mad_async_run(). */
static void run_with_samples(struct mad_async *async, FILE *file)
{
	struct pollfd pollfd = {.fd = mad_async_poll_fd(async), .events = POLLIN};
	const double interval = 0.001;
	struct mad_async_stats stats;
	double due = 0;

	do {
		if (now(CLOCK_MONOTONIC) >= due) {
			sample(file, async);
			due = now(CLOCK_MONOTONIC) + interval;
		}
		poll(&pollfd, 1, 1);
		mad_async_process(async);
		mad_async_get_stats(async, &stats, sizeof(stats));
	} while (stats.completed < stats.submitted);
	sample(file, async);
}

/* --- the program ---------------------------------------------------------------- */

static int fix(struct ibmad_port *port, unsigned window, unsigned limit)
{
	return mad_port_set_window(port, MAD_WINDOW_SMP, window) ||
	       mad_port_set_window(port, MAD_WINDOW_GMP, window) ||
	       mad_port_set_destination_limit(port, limit);
}

int main(int argc, char **argv)
{
	int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS, IB_PERFORMANCE_CLASS, IB_SA_CLASS};
	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, classes, 4);
	struct mad_async *async = port ? mad_async_create(port) : NULL;
	const struct visit self = {0};
	FILE *samples = NULL;
	unsigned nodes = 0, paths = 0;
	struct mad_async_stats stats;
	ib_portid_t sa;
	ibmad_gid_t gid;
	double start;

	if (argc > 2 && strcmp(argv[1], "--samples") == 0) {
		samples = or_exit(fopen(argv[2], "w"));
		argc -= 2;
		argv += 2;
	}
	if (argc < 3 ||
	    (strcmp(argv[1], "discovery") != 0 && sscanf(argv[1], "paths:%u", &paths) != 1 &&
	     sscanf(argv[1], "%u", &nodes) != 1)) {
		fprintf(stderr,
			"usage: flow [--samples FILE] NODES|discovery|paths:COUNT ATTEMPTS "
			"[WINDOW LIMIT]\n");
		return 2;
	}
	if (!async || mad_port_set_timeout(port, 1000) ||
	    mad_port_set_retries(port, atoi(argv[2])) ||
	    (argc > 4 && fix(port, (unsigned)atoi(argv[3]), (unsigned)atoi(argv[4]))) ||
	    (paths && (ib_resolve_smlid_via(&sa, 0, port) < 0 ||
		       ib_resolve_self_via(NULL, NULL, &gid, port) < 0))) {
		fprintf(stderr, "no port, or no SA\n");
		return 1;
	}
	start = now(CLOCK_MONOTONIC);
	if (nodes)
		ask_nodes(async, nodes);
	else if (paths)
		ask_paths(async, &sa, gid, paths);
	else
		ask_directed(async, &self, IB_ATTR_NODE_INFO, 0, found);
	if (samples)
		run_with_samples(async, samples);
	else
		mad_async_run(async);
	mad_async_get_stats(async, &stats, sizeof(stats));
	printf("%.6f %" PRIu64 " %" PRIu64 " %u\n", now(CLOCK_MONOTONIC) - start,
	       stats.submitted, stats.sent, results.unanswered);
	mad_async_destroy(async);
	mad_rpc_close_port(port);
	tdestroy(guids, free);
	if (samples && fclose(samples))
		results.failed++;
	if (results.failed)
		fprintf(stderr, "%u failed\n", results.failed);
	return results.failed ? 1 : 0;
}
