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
	char name[65] = "";

	(void)engine;
	ends.failed += reply->error != 0;
	if (reply->data_size < 64)
		return;
	memcpy(name, reply->data, 64);
	if (sscanf(name, "host-%u", &number) == 1 && number <= MOST_NODES)
		host_lids[number] = (int)(intptr_t)arg;
}

static ib_rpc_t counters_rpc(void)
{
	return (ib_rpc_t){.mgtclass = IB_PERFORMANCE_CLASS,
			  .method = IB_MAD_METHOD_GET,
			  .attr.id = IB_GSI_PORT_COUNTERS,
			  .dataoffs = IB_PC_DATA_OFFS,
			  .datasz = IB_PC_DATA_SZ};
}

static void fill_counters(uint8_t data[IB_PC_DATA_SZ])
{
	memset(data, 0, IB_PC_DATA_SZ);
	mad_set_field(data, 0, IB_PC_PORT_SELECT_F, 1);
}

static ib_portid_t gsi_of(int lid)
{
	return (ib_portid_t){.lid = lid, .qp = 1, .qkey = IB_DEFAULT_QP1_QKEY};
}

static void submit(const ib_rpc_t *rpc, const ib_portid_t *to, const uint8_t *data, size_t size,
		   mad_async_fn *fn, void *arg)
{
	if (mad_async_submit(async, rpc, to, data, size, fn, arg, NULL) < 0)
		ends.failed++;
}

static void ask_counters(int lid, mad_async_fn *fn)
{
	const ib_portid_t to = gsi_of(lid);
	const ib_rpc_t rpc = counters_rpc();
	uint8_t data[IB_PC_DATA_SZ];

	fill_counters(data);
	submit(&rpc, &to, data, sizeof(data), fn, NULL);
}

/* The path from here to the SA. */
static ib_rpc_t path_rpc(uint8_t data[IB_SA_DATA_SIZE])
{
	memset(data, 0, IB_SA_DATA_SIZE);
	mad_set_field(data, 0, IB_SA_PR_DLID_F, (uint32_t)sa.lid);
	mad_set_field(data, 0, IB_SA_PR_SLID_F, (uint32_t)self.lid);
	return (ib_rpc_t){.mgtclass = IB_SA_CLASS,
			  .method = IB_MAD_METHOD_GET,
			  .attr.id = IB_SA_ATTR_PATHRECORD,
			  .mask = PATH_DLID | PATH_SLID,
			  .dataoffs = IB_SA_DATA_OFFS,
			  .datasz = IB_SA_DATA_SIZE};
}

static void ask_smp(intptr_t lid, unsigned attribute, mad_async_fn *fn)
{
	const ib_rpc_t rpc = {.mgtclass = IB_SMI_CLASS,
			      .method = IB_MAD_METHOD_GET,
			      .attr.id = attribute,
			      .dataoffs = IB_SMP_DATA_OFFS};
	const ib_portid_t to = {.lid = (int)lid};

	submit(&rpc, &to, NULL, 0, fn, (void *)lid);
}

static void find_hosts(void)
{
	for (int lid = 1; lid <= node_count; lid++)
		ask_smp(lid, IB_ATTR_NODE_DESC, name_came);
	mad_async_wait(async, -1);
}

/* Processes until so many wanted requests are complete. */
static void process_until(unsigned wanted)
{
	struct pollfd fd = {.fd = mad_async_poll_fd(async), .events = POLLIN};

	while (ends.wanted < wanted && !ends.failed) {
		poll(&fd, 1, -1);
		mad_async_process(async);
	}
}

/* --- measurements --------------------------------------------------------------- */

static void print_wait(double start)
{
	printf("%.6f %u\n", ends.latest - start, (unsigned)ends.others);
}

static void ask(bool smp, int lid, mad_async_fn *fn)
{
	if (smp)
		ask_smp(lid, IB_ATTR_NODE_INFO, fn);
	else
		ask_counters(lid, fn);
}

static void measure_quick(bool smp, int slow)
{
	double start;

	for (int host = 3; host < 3 + slow; host++)
		for (int i = 0; i < EACH; i++)
			ask(smp, host_lids[host], other_came);
	start = now();
	for (int i = 0; i < QUICK; i++)
		ask(smp, host_lids[3 + slow], wanted_came);
	process_until(QUICK);
	print_wait(start);
}

static void queue_many(const char *where)
{
	for (int i = 0; i < MANY; i++)
		ask_counters(strcmp(where, "one") ? 1 + i % node_count : sa.lid, other_came);
}

static void measure_sa(const char *where)
{
	uint8_t data[IB_SA_DATA_SIZE];
	const ib_rpc_t rpc = path_rpc(data);
	double start;

	queue_many(where);
	start = now();
	submit(&rpc, &sa, data, sizeof(data), wanted_came, NULL);
	process_until(1);
	print_wait(start);
}

static void *run_engine(void *arg)
{
	(void)arg;
	mad_async_wait(async, -1);
	return NULL;
}

/* Calls in parallel with a running engine: the completions during the longest call. */
static int measure_call(const char *where)
{
	double longest = 0, start;
	unsigned others = 0;
	pthread_t runner;

	queue_many(where);
	if (pthread_create(&runner, NULL, run_engine, NULL))
		return -1;
	while (!ends.others)
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	for (int i = 0; i < SA_CALLS; i++) {
		uint8_t data[IB_SA_DATA_SIZE];
		ib_rpc_t rpc = path_rpc(data);
		unsigned before = ends.others;
		ib_portid_t to = sa;

		start = now();
		if (!mad_rpc(port, &rpc, &to, data, data))
			ends.failed++;
		if (now() - start < longest)
			continue;
		longest = now() - start;
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
	ib_portid_t to = gsi_of((int)(intptr_t)arg);
	uint8_t data[IB_PC_DATA_SZ];

	while (!end_callers) {
		ib_rpc_t rpc = counters_rpc();

		fill_counters(data);
		if (mad_rpc(port, &rpc, &to, data, data))
			calls++;
		else
			ends.failed++;
	}
	return NULL;
}

static int measure_rate(int threads)
{
	pthread_t callers[MOST_CALLER];
	unsigned before;
	double start;
	int count = 0;

	while (count < threads && count < MOST_CALLER) {
		void *lid = (void *)(intptr_t)(1 + count % node_count);

		if (pthread_create(&callers[count], NULL, call_on, lid))
			return -1;
		count++;
	}
	while (count && !calls)
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	start = now();
	before = calls;
	for (int i = 0; i < RATE_COUNT; i++)
		ask_counters(1 + i % node_count, other_came);
	mad_async_wait(async, -1);
	printf("%.0f %.0f\n", RATE_COUNT / (now() - start), (calls - before) / (now() - start));
	end_callers = true;
	while (count)
		pthread_join(callers[--count], NULL);
	return 0;
}

static int measure(const char *what, const char *where)
{
	if (!strcmp(what, "quick") || !strcmp(what, "quick-smp"))
		measure_quick(!strcmp(what, "quick-smp"), atoi(where));
	else if (!strcmp(what, "sa"))
		measure_sa(where);
	else if (!strcmp(what, "call"))
		return measure_call(where);
	else if (!strcmp(what, "rate"))
		return measure_rate(atoi(where));
	else
		return -1;
	return 0;
}

static int fix_windows(unsigned size)
{
	return mad_port_set(port, MAD_PORT_SMP_WINDOW, size) ||
	       mad_port_set(port, MAD_PORT_GMP_WINDOW, size);
}

int main(int argc, char **argv)
{
	int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS, IB_SA_CLASS, IB_PERFORMANCE_CLASS};
	int ret;

	node_count = argc > 3 ? atoi(argv[2]) : 0;
	port = mad_rpc_open_port(NULL, 0, classes, 4);
	async = port ? mad_async_create(port) : NULL;
	if (node_count < 1 || node_count > MOST_NODES || !async ||
	    ib_resolve_smlid_via(&sa, 1000, port) ||
	    ib_resolve_self_via(&self, NULL, NULL, port) ||
	    (argc > 4 && fix_windows((unsigned)atoi(argv[4])))) {
		fprintf(stderr, "no nodes, no port or no SA\n");
		return 1;
	}
	sa.qp = 1;
	sa.qkey = IB_DEFAULT_QP1_QKEY;
	find_hosts();
	ret = measure(argv[1], argv[3]);
	mad_async_free(async);
	mad_rpc_close_port(port);
	if (ret || ends.failed)
		fprintf(stderr, "%u failed\n", (unsigned)ends.failed);
	return ret || ends.failed ? 1 : 0;
}
