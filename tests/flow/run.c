/* SPDX-License-Identifier: BSD-2-Clause */

/* Runs the library on the device, through its public calls, and watches it. */

#include "port_state.h"
#include "run.h"

#include "device.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* No run takes so long. */
#define LONGEST     (4000 * INT64_C(1000) * MS)
/* The library is watched so long after the end. */
#define AFTERWARDS  (5000 * MS)
/* The statistics are checked at each so many polls. */
#define CHECK_EVERY 16
/* Turns of all hosts without time passing. */
#define MOST_TURNS  1000000

static struct {
	struct fabric fabric;
	struct run_options options;
	unsigned hosts;
	struct ibmad_port *ports[MOST_HOSTS];
	struct mad_async *engines[MOST_HOSTS];
	ib_rpc_t rpc;
	ib_portid_t to;
	unsigned polls, dropped;
	int64_t sample_at;
	bool stopped, aborted, stuck;
} state;

static mad_async_fn completed;

/* --- the end of a run ----------------------------------------------------------- */

static void stop(void)
{
	if (state.stopped)
		return;
	state.stopped = true;
	for (unsigned i = 0; i < state.hosts; i++)
		mad_async_stop(state.engines[i]);
}

static bool is_beyond(void)
{
	const struct run_options *options = &state.options;

	return (options->abort_at && model_now() > options->abort_at) ||
	       (options->most_dropped && state.dropped > options->most_dropped);
}

/* Stops the run if it is to be aborted or something was violated. */
static bool watch(void)
{
	if (model_now() > LONGEST)
		account_violation("requests are open after %lld s",
				  (long long)(LONGEST / MS / 1000));
	if (is_beyond())
		state.aborted = true;
	if (state.aborted || account_broken() ||
	    (state.options.quick && account_living_are_complete()))
		stop();
	return state.stopped;
}

/* --- statistics ----------------------------------------------------------------- */

struct mad_async_stats run_stats(unsigned host)
{
	struct mad_async_stats stats = {0};

	if (state.engines[host])
		mad_async_get_stats(state.engines[host], &stats, sizeof(stats));
	return stats;
}

unsigned run_window(void)
{
	struct mad_async_stats stats = run_stats(0);

	return state.fabric.kind == SMP ? stats.smp.window : stats.gmp.window;
}

static void check_stats(unsigned host)
{
	struct mad_async_stats stats = run_stats(host);
	unsigned open = account_open(host);

	if (stats.in_flight > open || stats.queued > open)
		account_violation("%u in flight and %u queued, but %u open", stats.in_flight,
				  stats.queued, open);
	if (stats.smp.in_flight > open || stats.gmp.in_flight > open)
		account_violation("the windows have %u SMPs and %u GMPs in flight, but %u "
				  "requests are open",
				  stats.smp.in_flight, stats.gmp.in_flight, open);
}

static void sample(void)
{
	struct mad_async_stats stats;
	const struct mad_flow_stats *flow;

	if (!state.options.samples || model_now() < state.sample_at || account_is_finished())
		return;
	stats = run_stats(0);
	flow = state.fabric.kind == SMP ? &stats.smp : &stats.gmp;
	fprintf(state.options.samples, "%.6f %u %u %u %u\n", (double)model_now() * 1e-9,
		flow->window, flow->in_flight, stats.queued, state.dropped);
	state.sample_at = model_now() + state.options.sample_every;
}

/* --- hooks of the device -------------------------------------------------------- */

static bool polled(void)
{
	if (++state.polls % CHECK_EVERY == 0 && !state.stopped)
		for (unsigned i = 0; i < state.hosts; i++)
			check_stats(i);
	sample();
	return watch();
}

static void stuck(void)
{
	account_violation("nothing will ever happen, but requests are open");
	state.stuck = true;
	stop();
}

static void lost(const struct packet *packet, enum fate fate)
{
	if (fate == DROPPED_BY_QUEUE || fate == DROPPED_BY_NODE)
		state.dropped++;
	account_lost(packet, fate);
}

/* --- requests ------------------------------------------------------------------- */

static void prepare_request(void)
{
	static const ib_rpc_t requests[] = {
		[SMP] = {.mgtclass = IB_SMI_CLASS,
			 .attr.id = IB_ATTR_NODE_INFO,
			 .dataoffs = IB_SMP_DATA_OFFS,
			 .datasz = IB_SMP_DATA_SIZE},
		[GMP] = {.mgtclass = IB_PERFORMANCE_CLASS,
			 .attr.id = IB_GSI_PORT_COUNTERS,
			 .dataoffs = IB_PC_DATA_OFFS,
			 .datasz = IB_PC_DATA_SZ},
		[SA] = {.mgtclass = IB_SA_CLASS,
			.attr.id = IB_SA_ATTR_PATHRECORD,
			.dataoffs = IB_SA_DATA_OFFS,
			.datasz = IB_SA_DATA_SIZE},
	};

	state.rpc = requests[state.fabric.kind];
	state.rpc.method = IB_MAD_METHOD_GET;
	if (state.fabric.kind != SMP) {
		state.to.qp = 1;
		state.to.qkey = IB_DEFAULT_QP1_QKEY;
	}
}

static void submit_next(unsigned host)
{
	ib_rpc_t rpc = state.rpc;
	ib_portid_t to = state.to;
	unsigned node;
	int err;

	rpc.attr.mod = account_submit(host, &node);
	to.lid = (int)node + 1;
	err = mad_async_submit(state.engines[host], &rpc, &to, NULL, 0, completed,
			       (void *)(uintptr_t)rpc.attr.mod, NULL);
	if (err)
		account_violation("mad_async_submit: %s", strerror(-err));
}

static void completed(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	uint32_t request = (uint32_t)(uintptr_t)arg;
	unsigned host = request / state.fabric.requests;

	(void)async;
	if (state.stopped)
		return;
	if (reply->error && reply->error != -ETIMEDOUT && reply->status != IB_MAD_STS_BUSY)
		account_violation("request %u: %s", request, strerror(-reply->error));
	account_complete(request, !reply->error);
	if (state.fabric.work == CHAINS && account_can_submit(host))
		submit_next(host);
	sample();
	watch();
}

void run_submit(unsigned count)
{
	for (unsigned host = 0; host < state.hosts; host++)
		for (unsigned i = 0; i < count && account_can_submit(host); i++)
			submit_next(host);
}

/* --- the loop of several hosts -------------------------------------------------- */

static unsigned open_requests(void)
{
	unsigned open = 0;

	for (unsigned i = 0; i < state.hosts; i++)
		open += account_open(i);
	return open;
}

/* Processes until no engine has work. Returns the milliseconds until one has some, or -1. */
static int process_all(void)
{
	int64_t started = model_now();
	unsigned turns = 0;
	int least, ms;

	do {
		least = INT_MAX;
		for (unsigned i = 0; i < state.hosts; i++) {
			mad_async_process(state.engines[i]);
			ms = timeout_ms_of(state.engines[i]);
			if (ms >= 0 && ms < least)
				least = ms;
		}
		if (model_now() == started && ++turns > MOST_TURNS)
			stuck();
	} while (!watch() && (!least || device_has_message()));
	return least == INT_MAX ? -1 : least;
}

static void run_all(int64_t until, bool to_the_end)
{
	int64_t next;
	int ms;

	while (!state.stopped && (to_the_end || open_requests())) {
		ms = process_all();
		polled();
		next = ms < 0 ? until : model_now() + ms * MS;
		if (to_the_end && model_now() >= until)
			return;
		if (next > until)
			next = until;
		if (next == NO_TIME && model_next() == NO_TIME && open_requests())
			stuck();
		else if (open_requests() || to_the_end)
			device_wait(next);
	}
}

/* --- the loop of one host ------------------------------------------------------- */

static void run_one(int64_t until)
{
	int64_t ms;
	int ret;

	if (until == NO_TIME) {
		ret = mad_async_wait(state.engines[0], -1);
	} else {
		ms = (until - model_now() + MS - 1) / MS;
		ret = mad_async_wait(state.engines[0], ms > 0 ? (int)ms : 0);
	}
	if (ret < 0 && ret != -ETIMEDOUT && !state.stopped)
		account_violation("mad_async_run: %s", strerror(-ret));
}

void run_until(int64_t until)
{
	if (state.stopped)
		return;
	if (state.hosts > 1)
		run_all(until, false);
	else
		run_one(until);
	while (until != NO_TIME && model_now() < until && !state.stopped)
		device_wait(until);
}

/* --- kinds of work -------------------------------------------------------------- */

static void run_bursts(void)
{
	int64_t next = model_now();

	while (account_can_submit(0) && !state.stopped) {
		run_submit(state.fabric.open);
		next += (int64_t)(state.fabric.every_ms * MS);
		run_until(next);
	}
	run_until(NO_TIME);
}

static void run_blocking(void)
{
	uint8_t data[IB_SMP_DATA_SIZE];
	ib_portid_t to = state.to;
	unsigned node;
	uint32_t request;

	while (account_can_submit(0) && !watch()) {
		request = account_submit(0, &node);
		to.lid = (int)node + 1;
		account_complete(request, smp_query_via(data, &to, IB_ATTR_NODE_INFO, request,
							0, state.ports[0]) != NULL);
	}
}

static void run_work(void)
{
	switch (state.fabric.work) {
	case AT_ONCE:
		run_submit(state.fabric.requests);
		run_until(NO_TIME);
		break;
	case CHAINS:
		run_submit(state.fabric.open);
		run_until(NO_TIME);
		break;
	case BURSTS:
		run_bursts();
		break;
	case BLOCKING:
		run_blocking();
		break;
	}
}

/* --- start and end -------------------------------------------------------------- */

static void set_options(struct ibmad_port *port)
{
	mad_rpc_set_timeout(port, (int)state.fabric.timeout_ms);
	mad_rpc_set_retries(port, (int)state.fabric.attempts);
	mad_port_set(port, MAD_PORT_SMP_WINDOW, state.options.window);
	mad_port_set(port, MAD_PORT_GMP_WINDOW, state.options.window);
	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, state.options.limit);
}

static void open_host(unsigned host)
{
	int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS, IB_SA_CLASS, IB_PERFORMANCE_CLASS};

	state.ports[host] = mad_rpc_open_port(NULL, 0, classes, 4);
	if (!state.ports[host]) {
		perror("mad_rpc_open_port");
		exit(2);
	}
	set_options(state.ports[host]);
	if (state.fabric.work == BLOCKING)
		return;
	state.engines[host] = mad_async_create(state.ports[host]);
	if (!state.engines[host]) {
		perror("mad_async_create");
		exit(2);
	}
}

void run_start(const struct fabric *fabric, const struct run_options *options)
{
	static const struct device_hooks hooks = {
		.written = account_written,
		.read = account_read,
		.lost = lost,
		.arrived = account_arrived,
		.polled = polled,
		.stuck = stuck,
	};

	memset(&state, 0, sizeof(state));
	state.fabric = *fabric;
	state.options = *options;
	state.hosts = fabric->hosts ? fabric->hosts : 1;
	account_start(fabric);
	device_start(fabric, &hooks);
	prepare_request();
	for (unsigned i = 0; i < state.hosts; i++)
		open_host(i);
}

/* After the last completion, nothing is in flight, and no MAD is written. */
static void watch_afterwards(void)
{
	if (state.stopped || state.fabric.work == BLOCKING)
		return;
	for (unsigned i = 0; i < state.hosts; i++) {
		struct mad_async_stats stats = run_stats(i);

		check_stats(i);
		if (stats.smp.in_flight || stats.gmp.in_flight)
			account_violation("after the end, %u SMPs and %u GMPs are in flight",
					  stats.smp.in_flight, stats.gmp.in_flight);
	}
	account_close();
	run_all(model_now() + AFTERWARDS, true);
}

void run_end(struct result *result)
{
	if (!state.stopped && !account_is_finished())
		account_violation("the run ended, but requests are open");
	watch_afterwards();
	account_figures(result);
	result->aborted = state.aborted;
	state.stopped = true;
	for (unsigned i = 0; i < state.hosts; i++) {
		mad_async_free(state.engines[i]);
		mad_rpc_close_port(state.ports[i]);
	}
	account_end();
	device_end();
}

void run(const struct fabric *fabric, const struct run_options *options, struct result *result)
{
	run_start(fabric, options);
	run_work();
	run_end(result);
}
