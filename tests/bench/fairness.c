/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * How long a request waits behind others on one port, from its submission to its callback.
 *
 *   fairness quick NODES SLOW [WINDOW]
 *      400 PMA Gets to each of the SLOW hosts from host-3 on, then 20 to the next host.
 *      Prints the longest wait of those 20.
 *
 *   fairness sa NODES all|one [WINDOW]
 *      100,000 PMA Gets to all nodes, or to the node of the SA, then an SA Get.
 *      Prints the wait of the SA Get.
 *
 *   fairness call NODES all|one [WINDOW]
 *      The same, but the SA Gets are 10 blocking calls in another thread.
 *      Prints the longest wait.
 *
 *   fairness rate NODES THREADS
 *      20,000 PMA Gets to all nodes, and THREADS threads with blocking calls.
 *      Prints the requests a second of the engine and of the threads.
 *
 * Nodes have the LIDs 1 .. NODES. At most WINDOW requests are in flight by each queue pair;
 * without WINDOW the window adapts. The waits are in seconds; the next number is the number of
 * other requests that were called back meanwhile.
 */
#include <infiniband/mad_async.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EACH        400
#define QUICK       20
#define MANY        100000
#define SA_CALLS    10
#define RATE_COUNT  20000
#define MOST_NODES  1000
#define MOST_CALLER 64

/* Components of a PathRecord (IBA 15.2.5.16). */
#define PATH_DLID (UINT64_C(1) << 4)
#define PATH_SLID (UINT64_C(1) << 5)

static struct ibmad_port *port;
static struct mad_async *async;
static ib_portid_t sa, self;
static int node_count, host_lids[MOST_NODES + 1];

/* The completions so far. */
static struct {
	atomic_uint others, wanted, failed;
	double latest; /* the time of the last wanted completion */
} ends;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* --- requests ------------------------------------------------------------------- */

static void other_came(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	(void)engine;
	(void)arg;
	if (reply->error == -ECANCELED)
		return;
	ends.others++;
	ends.failed += reply->error != 0;
}

static void wanted_came(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	(void)engine;
	(void)arg;
	ends.wanted++;
	ends.failed += reply->error != 0;
	ends.latest = now();
}

/* A node's name: the program stores the number of host-N. */
static void name_came(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	unsigned number;

	(void)engine;
	ends.failed += reply->error != 0;
	if (!reply->error && sscanf((const char *)reply->data, "host-%u", &number) == 1 &&
	    number <= MOST_NODES)
		host_lids[number] = (int)(intptr_t)arg;
}

/* An SMP; or PortCounters of port 1, or the path from here to the SA, with its data. */
static ib_rpc_t request(int mgmt_class, unsigned attribute, uint8_t data[IB_SA_DATA_SIZE])
{
	ib_rpc_t rpc = {.mgtclass = mgmt_class,
			.method = IB_MAD_METHOD_GET,
			.attr.id = attribute,
			.dataoffs = IB_SMP_DATA_OFFS,
			.datasz = IB_SMP_DATA_SIZE};

	memset(data, 0, IB_SA_DATA_SIZE);
	if (mgmt_class == IB_PERFORMANCE_CLASS) {
		rpc.dataoffs = IB_PC_DATA_OFFS;
		rpc.datasz = IB_PC_DATA_SZ;
		mad_set_field(data, 0, IB_PC_PORT_SELECT_F, 1);
	} else if (mgmt_class == IB_SA_CLASS) {
		rpc.dataoffs = IB_SA_DATA_OFFS;
		rpc.datasz = IB_SA_DATA_SIZE;
		rpc.mask = PATH_DLID | PATH_SLID;
		mad_set_field(data, 0, IB_SA_PR_DLID_F, (uint32_t)sa.lid);
		mad_set_field(data, 0, IB_SA_PR_SLID_F, (uint32_t)self.lid);
	}
	return rpc;
}

static void submit(int mgmt_class, unsigned attribute, int lid, mad_async_fn *fn)
{
	const ib_portid_t to = {.lid = lid, .qp = 1, .qkey = IB_DEFAULT_QP1_QKEY};
	const ib_portid_t to_sma = {.lid = lid};
	bool smp = mgmt_class == IB_SMI_CLASS;
	uint8_t data[IB_SA_DATA_SIZE];
	const ib_rpc_t rpc = request(mgmt_class, attribute, data);

	if (mad_async_submit(async, &rpc, smp ? &to_sma : &to, smp ? NULL : data,
			     smp ? 0 : (size_t)rpc.datasz, fn, (void *)(intptr_t)lid, NULL) < 0)
		ends.failed++;
}

static void ask_counters(int lid, mad_async_fn *fn)
{
	submit(IB_PERFORMANCE_CLASS, IB_GSI_PORT_COUNTERS, lid, fn);
}

/* A blocking call. */
static void call(int mgmt_class, unsigned attribute, int lid)
{
	ib_portid_t to = {.lid = lid, .qp = 1, .qkey = IB_DEFAULT_QP1_QKEY};
	uint8_t data[IB_SA_DATA_SIZE];
	ib_rpc_t rpc = request(mgmt_class, attribute, data);

	ends.failed += !mad_rpc(port, &rpc, &to, data, data);
}

/* Processes until so many wanted requests are complete. */
static void process_until(unsigned wanted, double start)
{
	struct pollfd fd = {.fd = mad_async_poll_fd(async), .events = POLLIN};

	while (ends.wanted < wanted && !ends.failed) {
		poll(&fd, 1, -1);
		mad_async_process(async);
	}
	printf("%.6f %u\n", ends.latest - start, (unsigned)ends.others);
}

/* --- measurements --------------------------------------------------------------- */

static void measure_quick(bool smp, int slow)
{
	int mgmt_class = smp ? IB_SMI_CLASS : IB_PERFORMANCE_CLASS;
	unsigned attribute = smp ? IB_ATTR_NODE_INFO : IB_GSI_PORT_COUNTERS;
	double start;

	for (int lid = 1; lid <= node_count; lid++)
		submit(IB_SMI_CLASS, IB_ATTR_NODE_DESC, lid, name_came);
	mad_async_wait(async, -1);
	for (int i = 0; i < slow * EACH; i++)
		submit(mgmt_class, attribute, host_lids[3 + i / EACH], other_came);
	start = now();
	for (int i = 0; i < QUICK; i++)
		submit(mgmt_class, attribute, host_lids[3 + slow], wanted_came);
	process_until(QUICK, start);
}

static void queue_many(const char *where)
{
	for (int i = 0; i < MANY; i++)
		ask_counters(strcmp(where, "one") ? 1 + i % node_count : sa.lid, other_came);
}

static void measure_sa(const char *where)
{
	double start;

	queue_many(where);
	start = now();
	submit(IB_SA_CLASS, IB_SA_ATTR_PATHRECORD, sa.lid, wanted_came);
	process_until(1, start);
}

static void *run_engine(void *arg)
{
	(void)arg;
	mad_async_wait(async, -1);
	return NULL;
}

static void sleep_until(atomic_uint *count)
{
	while (!*count)
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

/* Calls in parallel with a running engine: the completions during the longest call. */
static int measure_call(const char *where)
{
	double longest = 0, start, took;
	unsigned others = 0, before;
	pthread_t runner;

	queue_many(where);
	if (pthread_create(&runner, NULL, run_engine, NULL))
		return -1;
	sleep_until(&ends.others);
	for (int i = 0; i < SA_CALLS; i++) {
		before = ends.others;
		start = now();
		call(IB_SA_CLASS, IB_SA_ATTR_PATHRECORD, sa.lid);
		took = now() - start;
		if (took < longest)
			continue;
		longest = took;
		others = ends.others - before;
	}
	printf("%.6f %u\n", longest, others);
	mad_async_free(async);
	async = NULL;
	return pthread_join(runner, NULL);
}

static atomic_bool end_callers;
static atomic_uint calls;

static void *call_on(void *arg)
{
	while (!end_callers) {
		call(IB_PERFORMANCE_CLASS, IB_GSI_PORT_COUNTERS, (int)(intptr_t)arg);
		calls++;
	}
	return NULL;
}

static int measure_rate(int threads)
{
	pthread_t callers[MOST_CALLER];
	unsigned before;
	double start;

	if (threads > MOST_CALLER)
		return -1;
	for (int i = 0; i < threads; i++)
		if (pthread_create(&callers[i], NULL, call_on,
				   (void *)(intptr_t)(1 + i % node_count)))
			return -1;
	if (threads)
		sleep_until(&calls);
	start = now();
	before = calls;
	for (int i = 0; i < RATE_COUNT; i++)
		ask_counters(1 + i % node_count, other_came);
	mad_async_wait(async, -1);
	printf("%.0f %.0f\n", RATE_COUNT / (now() - start), (calls - before) / (now() - start));
	end_callers = true;
	while (threads)
		pthread_join(callers[--threads], NULL);
	return 0;
}

int main(int argc, char **argv)
{
	int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS, IB_SA_CLASS, IB_PERFORMANCE_CLASS};
	unsigned window = argc > 4 ? (unsigned)atoi(argv[4]) : 0;
	const char *what = argc > 3 ? argv[1] : "";
	int ret = 0;

	node_count = argc > 3 ? atoi(argv[2]) : 0;
	port = mad_rpc_open_port(NULL, 0, classes, 4);
	async = port ? mad_async_create(port) : NULL;
	if (node_count < 1 || node_count > MOST_NODES || !async ||
	    ib_resolve_smlid_via(&sa, 1000, port) ||
	    ib_resolve_self_via(&self, NULL, NULL, port) ||
	    mad_port_set(port, MAD_PORT_SMP_WINDOW, window) ||
	    mad_port_set(port, MAD_PORT_GMP_WINDOW, window)) {
		fprintf(stderr, "no nodes, no port or no SA\n");
		return 1;
	}
	if (!strncmp(what, "quick", 5))
		measure_quick(what[5] != '\0', atoi(argv[3]));
	else if (!strcmp(what, "sa"))
		measure_sa(argv[3]);
	else if (!strcmp(what, "call"))
		ret = measure_call(argv[3]);
	else
		ret = measure_rate(atoi(argv[3]));
	mad_async_free(async);
	mad_rpc_close_port(port);
	if (ret || ends.failed)
		fprintf(stderr, "%u failed\n", (unsigned)ends.failed);
	return ret || ends.failed;
}
