/* SPDX-License-Identifier: BSD-2-Clause */

/* Runs the library on the device, through its public calls, and watches it. */

#include "judge.h"
#include "port_state.h"

#include <errno.h>
#include <infiniband/mad_async.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* No run takes so long. */
#define LONGEST     (4000 * SECOND)
/* The library is watched so long after the end. */
#define AFTERWARDS  (5 * SECOND)
/* The statistics are checked at each so many polls. */
#define CHECK_EVERY 16

const struct run_options defaults;

static struct {
	struct fabric fabric;
	struct run_options options;
	unsigned hosts;
	struct ibmad_port *ports[MOST_HOSTS];
	struct mad_async *engines[MOST_HOSTS];
	ib_rpc_t rpc;
	ib_portid_t to;
	unsigned polls;
	bool stopped, aborted;
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

/* Stops the run if it is to be aborted or something was violated. */
static bool watch(void)
{
	const struct run_options *options = &state.options;

	if (model_now() > LONGEST)
		account_violation("requests are open after %lld s",
				  (long long)(LONGEST / SECOND));
	if ((options->abort_at && model_now() > options->abort_at) ||
	    (options->most_dropped && tally.result.dropped > options->most_dropped))
		state.aborted = true;
	if (state.aborted || *tally.result.broken || (options->quick && !tally.living_left))
		stop();
	return state.stopped;
}

/* --- statistics ----------------------------------------------------------------- */

static struct mad_async_stats stats_of(unsigned host)
{
	struct mad_async_stats stats = {0};

	mad_async_get_stats(state.engines[host], &stats, sizeof(stats));
	return stats;
}

unsigned run_window(void)
{
	struct mad_async_stats stats = stats_of(0);

	return state.fabric.kind == SMP ? stats.smp.window : stats.gmp.window;
}

static void check_stats(unsigned host)
{
	struct mad_async_stats stats = stats_of(host);
	unsigned open = account_open(host);

	if (stats.in_flight > open || stats.queued > open)
		account_violation("%u in flight and %u queued, but %u open", stats.in_flight,
				  stats.queued, open);
	if (stats.smp.in_flight > open || stats.gmp.in_flight > open)
		account_violation("the windows have %u SMPs and %u GMPs in flight, but %u "
				  "requests are open",
				  stats.smp.in_flight, stats.gmp.in_flight, open);
}

bool run_polled(void)
{
	if (++state.polls % CHECK_EVERY == 0 && !state.stopped)
		for (unsigned i = 0; i < state.hosts; i++)
			check_stats(i);
	return watch();
}

void run_stuck(void)
{
	account_violation("nothing will ever happen, but requests are open");
	stop();
}

/* --- requests ------------------------------------------------------------------- */

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
	watch();
}

void run_submit(unsigned count)
{
	for (unsigned host = 0; host < state.hosts; host++)
		for (unsigned i = 0; i < count && account_can_submit(host); i++)
			submit_next(host);
}

/* --- the loop of several hosts -------------------------------------------------- */

/* Moves the clock to the next event, but not beyond that time. */
static void wait_for_event(int64_t until)
{
	model_advance(model_next() < until ? model_next() : until);
}

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
	int least, ms;

	do {
		least = INT_MAX;
		for (unsigned i = 0; i < state.hosts; i++) {
			mad_async_process(state.engines[i]);
			ms = timeout_ms_of(state.engines[i]);
			if (ms >= 0 && ms < least)
				least = ms;
		}
	} while (!watch() && (!least || device_has_message()));
	return least == INT_MAX ? -1 : least;
}

static void run_all(int64_t until, bool to_the_end)
{
	int64_t next;
	int ms;

	while (!state.stopped && (to_the_end || open_requests())) {
		ms = process_all();
		run_polled();
		next = ms < 0 ? until : model_now() + ms * MS;
		if (to_the_end && model_now() >= until)
			return;
		if (next > until)
			next = until;
		if (next == NO_TIME && model_next() == NO_TIME && open_requests())
			run_stuck();
		else if (open_requests() || to_the_end)
			wait_for_event(next);
	}
}

void run_until(int64_t until)
{
	if (state.stopped)
		return;
	if (state.hosts > 1) {
		run_all(until, false);
	} else {
		int64_t left = until > model_now() ? until - model_now() : 0;
		int ms = until == NO_TIME ? -1 : (int)((left + MS - 1) / MS);
		int ret = mad_async_wait(state.engines[0], ms);

		if (ret < 0 && ret != -ETIMEDOUT && !state.stopped)
			account_violation("mad_async_wait: %s", strerror(-ret));
	}
	while (until != NO_TIME && model_now() < until && !state.stopped)
		wait_for_event(until);
}

/* --- kinds of work -------------------------------------------------------------- */

static void run_work(void)
{
	int64_t next = model_now();

	switch (state.fabric.work) {
	case AT_ONCE:
		run_submit(state.fabric.requests);
		break;
	case CHAINS:
		run_submit(state.fabric.open);
		break;
	case BURSTS:
		while (account_can_submit(0) && !state.stopped) {
			run_submit(state.fabric.open);
			next += (int64_t)(state.fabric.every_ms * MS);
			run_until(next);
		}
		break;
	}
	run_until(NO_TIME);
}

/* --- start and end -------------------------------------------------------------- */

static void open_host(unsigned host)
{
	int classes[] = {IB_SMI_CLASS, IB_SMI_DIRECT_CLASS, IB_SA_CLASS, IB_PERFORMANCE_CLASS};
	struct ibmad_port *port = mad_rpc_open_port(NULL, 0, classes, 4);

	if (!port || !(state.engines[host] = mad_async_create(port))) {
		perror("the port cannot be opened");
		exit(2);
	}
	state.ports[host] = port;
	mad_rpc_set_timeout(port, (int)state.fabric.timeout_ms);
	mad_rpc_set_retries(port, (int)state.fabric.attempts);
	mad_port_set(port, MAD_PORT_SMP_WINDOW, state.options.window);
	mad_port_set(port, MAD_PORT_GMP_WINDOW, state.options.window);
	mad_port_set(port, MAD_PORT_DESTINATION_LIMIT, state.options.limit);
}

void run_start(const struct fabric *fabric, const struct run_options *options)
{
	static const struct {
		int mgmt_class, attribute, offset, size;
	} requests[] = {
		[SMP] = {IB_SMI_CLASS, IB_ATTR_NODE_INFO, IB_SMP_DATA_OFFS, IB_SMP_DATA_SIZE},
		[GMP] = {IB_PERFORMANCE_CLASS, IB_GSI_PORT_COUNTERS, IB_PC_DATA_OFFS,
			 IB_PC_DATA_SZ},
		[SA] = {IB_SA_CLASS, IB_SA_ATTR_PATHRECORD, IB_SA_DATA_OFFS, IB_SA_DATA_SIZE},
	};

	memset(&state, 0, sizeof(state));
	state.fabric = *fabric;
	state.options = *options;
	state.hosts = host_count(fabric);
	state.rpc.mgtclass = requests[fabric->kind].mgmt_class;
	state.rpc.method = IB_MAD_METHOD_GET;
	state.rpc.attr.id = (unsigned)requests[fabric->kind].attribute;
	state.rpc.dataoffs = requests[fabric->kind].offset;
	state.rpc.datasz = requests[fabric->kind].size;
	if (fabric->kind != SMP) {
		state.to.qp = 1;
		state.to.qkey = IB_DEFAULT_QP1_QKEY;
	}
	account_start(fabric);
	device_start(fabric);
	for (unsigned i = 0; i < state.hosts; i++)
		open_host(i);
}

/* After the last completion, nothing is in flight, and no MAD is written. */
static void watch_afterwards(void)
{
	if (state.stopped)
		return;
	for (unsigned i = 0; i < state.hosts; i++) {
		struct mad_async_stats stats = stats_of(i);

		check_stats(i);
		if (stats.smp.in_flight || stats.gmp.in_flight)
			account_violation("after the end, %u SMPs and %u GMPs are in flight",
					  stats.smp.in_flight, stats.gmp.in_flight);
	}
	tally.closed = true;
	run_all(model_now() + AFTERWARDS, true);
}

void run_end(struct result *result)
{
	if (!state.stopped && !account_is_finished())
		account_violation("the run ended, but requests are open");
	watch_afterwards();
	state.stopped = true;
	for (unsigned i = 0; i < state.hosts; i++) {
		mad_async_free(state.engines[i]);
		mad_rpc_close_port(state.ports[i]);
	}
	account_end(result);
	result->aborted = state.aborted;
	model_end();
}

void run(const struct fabric *fabric, const struct run_options *options, struct result *result)
{
	run_start(fabric, options);
	run_work();
	run_end(result);
}
