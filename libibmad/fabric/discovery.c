/* SPDX-License-Identifier: BSD-2-Clause */

/* Discovery: calls, requests on the engine, completion. */

#include "fabric/discovery.h"

#include "base/export.h"
#include "base/report.h"
#include "base/reserved.h"
#include "engine/timers.h"

#include <errno.h>

#define MAX_NODES            200000
#define READ_ALLOWED         31u
#define PROGRESS_INTERVAL_US 100000

/* --- problems and progress -------------------------------------------------------- */

void discovery_note(struct discovery *discovery, const struct mad_fabric_problem *problem,
		    size_t *index)
{
	if (graph_add_problem(discovery->fabric, problem, index))
		discovery_abort(discovery, -ENOMEM);
}

const uint8_t *discovery_store(struct discovery *discovery, const uint8_t *attribute)
{
	const uint8_t *copy = graph_copy(discovery->fabric, attribute, IB_SMP_DATA_SIZE);

	if (!copy)
		discovery_abort(discovery, -ENOMEM);
	return copy;
}

/* Before the end, only reports news, at most ten times a second. */
static void report_progress(struct discovery *discovery, bool is_end)
{
	struct mad_fabric_progress *progress = &discovery->progress;
	int64_t now;

	if (!discovery->options.progress)
		return;
	now = clock_us();
	if (!is_end && (!discovery->has_news || now < discovery->next_progress_us))
		return;
	discovery->next_progress_us = now + PROGRESS_INTERVAL_US;
	discovery->has_news = false;
	progress->nodes = discovery->fabric->node_count;
	progress->ports = discovery->fabric->port_count;
	progress->problems = discovery->fabric->problem_count;
	discovery->options.progress(progress, discovery->options.progress_arg);
}

/* --- the end ------------------------------------------------------------------------ */

void discovery_abort(struct discovery *discovery, int error)
{
	discovery->no_memory |= error == -ENOMEM;
	if (discovery->error)
		return;
	discovery->error = error;
	list_for_each (entry, &discovery->requests)
		mad_async_cancel(discovery->async,
				 list_entry(entry, struct discovery_request, entry)->id);
}

static void discovery_free(struct discovery *discovery)
{
	mad_fabric_free(discovery->fabric);
	free(discovery->previous_failures);
	free(discovery);
}

/* After the last request: delivers the result and frees the discovery. */
static void discovery_complete(struct discovery *discovery)
{
	struct mad_async *async = discovery->async;
	mad_fabric_fn *done = discovery->done;
	void *arg = discovery->arg;
	struct mad_fabric *fabric = NULL;
	int error;

	limits_end(&discovery->limits);
	if (!discovery->error)
		report_progress(discovery, true); /* may cancel the discovery */
	error = discovery->error;
	if (!error || (discovery_keeps_part(discovery) && discovery->fabric->node_count)) {
		int err = graph_finish(discovery->fabric);

		if (!err) {
			fabric = discovery->fabric;
			discovery->fabric = NULL;
		} else if (!error) {
			error = err;
		}
	}
	if (engine_operation_end(async, &discovery->operation)) {
		error = -ECANCELED;
		discovery->failure = (struct mad_failure){.kind = MAD_FAILURE_OTHER};
		if (!discovery->options.partial) {
			mad_fabric_free(fabric);
			fabric = NULL;
		}
	}
	if (error) {
		discovery->failure.error = error;
		failure_store(&discovery->failure);
	}
	discovery_free(discovery);
	done(async, error, fabric, arg);
}

/* --- requests ----------------------------------------------------------------------- */

static void request_came(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	struct discovery_request *request = arg;
	struct discovery *discovery = request->discovery;
	int error = reply->error;

	(void)async;
	if (!error && reply->data_size < IB_SMP_DATA_SIZE)
		error = -EBADMSG;
	request->reply = reply;
	request->error = error;
	request->status = error == -EIO ? reply->status : 0;
	list_remove(&request->entry);
	list_remove(&request->group);
	if (limits_ends_all(error) && !request->given_up)
		discovery_abort(discovery, limits_ends_all(error));
	request->came(request);
	free(request);
	discovery->has_news = true;
	if (--discovery->progress.in_flight == 0)
		discovery_complete(discovery);
	else
		report_progress(discovery, false);
}

bool discovery_submit(struct discovery *discovery, struct list *group,
		      const ib_dr_path_t *route, unsigned attribute, unsigned modifier,
		      void (*came)(struct discovery_request *request), void *subject)
{
	const ib_rpc_t rpc = {
		.mgtclass = IB_SMI_DIRECT_CLASS,
		.method = IB_MAD_METHOD_GET,
		.attr = {.id = attribute, .mod = modifier},
		.dataoffs = IB_SMP_DATA_OFFS,
		.mkey = discovery->options.m_key,
		.timeout = discovery->options.timeout_ms,
	};
	ib_portid_t to = discovery->base;
	struct discovery_request *request;
	int err;

	if (discovery->error)
		return false;
	request = malloc(sizeof(*request));
	if (!request) {
		discovery_abort(discovery, -ENOMEM);
		return false;
	}
	*request = (struct discovery_request){.discovery = discovery,
					      .came = came,
					      .subject = subject,
					      .attribute = (uint16_t)attribute,
					      .modifier = (uint8_t)modifier};
	to.drpath = *route;
	if (to.lid || to.drpath.cnt)
		discovery->limits.is_local = false;
	err = mad_async_submit(discovery->async, &rpc, &to, NULL, 0, request_came, request,
			       &request->id);
	if (err) {
		free(request);
		discovery_abort(discovery, limits_ends_all(err) ? limits_ends_all(err) : err);
		return false;
	}
	list_add_last(&discovery->requests, &request->entry);
	if (group)
		list_add_last(group, &request->group);
	else
		list_init(&request->group);
	discovery->progress.requests++;
	discovery->progress.in_flight++;
	return true;
}

/* --- the begin ---------------------------------------------------------------------- */

/* Reports news held back because the latest call was less than 100 ms ago. */
static void limits_tick(struct limits *limits)
{
	report_progress(list_entry(limits, struct discovery, limits), false);
}

static void limit_reached(struct limits *limits, int error)
{
	discovery_abort(list_entry(limits, struct discovery, limits), error);
}

static void discovery_cancel(struct engine_operation *operation)
{
	discovery_abort(list_entry(operation, struct discovery, operation), -ECANCELED);
}

/* The processing thread submits all requests. */
static void discovery_begin(struct engine_operation *operation)
{
	struct discovery *discovery = list_entry(operation, struct discovery, operation);

	if (engine_operation_is_cancelled(discovery->async, operation))
		discovery_abort(discovery, -ECANCELED);
	if (!discovery->error)
		neighbours_begin(discovery);
	if (discovery->error && !discovery->progress.in_flight)
		discovery_complete(discovery);
}

static bool are_options(const struct mad_fabric_options *options)
{
	const ib_portid_t *from = options->from;

	if (!is_reserved(options->reserved) || !cancel_is_valid(options->cancel) ||
	    options->read & ~READ_ALLOWED || options->timeout_ms < 0)
		return false;
	if (!from)
		return true;
	/* with a LID part, responses return to the LID where the request began (IBA 14.2.2) */
	return from->drpath.cnt >= 0 && from->drpath.cnt < IB_SUBNET_PATH_HOPS_MAX &&
	       (!from->lid || (IB_LID_VALID(from->lid) && IB_LID_VALID(from->drpath.drslid)));
}

/* options NULL: defaults. */
static void fill_in_options(struct discovery *discovery,
			    const struct mad_fabric_options *options)
{
	struct mad_fabric_options *filled = &discovery->options;

	if (options)
		*filled = *options;
	if (filled->from)
		discovery->base = *filled->from;
	if (!filled->read)
		filled->read = MAD_FABRIC_READ_DEFAULT;
	/* PortInfo says whether a port may have one */
	if (filled->read & MAD_FABRIC_READ_MLNX_EXT_PORTS)
		filled->read |= MAD_FABRIC_READ_PORTS;
	if (!filled->max_nodes)
		filled->max_nodes = MAX_NODES;
	if (!filled->m_key)
		filled->m_key = smp_mkey_get(discovery->async->port);
}

/* Stores and returns the error. */
static int failure_of_discovery(int error)
{
	return failure_of_call(error == -EPROTONOSUPPORT ? IB_SMI_DIRECT_CLASS : 0, error);
}

/* Keeps the lock throughout, so that the engine cannot be freed halfway. */
static int discovery_enlist(struct discovery *discovery, uint64_t *id)
{
	const struct mad_fabric_options *options = &discovery->options;
	struct mad_async *async = discovery->async;
	int error = engine_enter(async);

	if (error)
		return error;
	if (handle_agent(&async->port->handle, IB_SMI_DIRECT_CLASS) < 0)
		error = -EPROTONOSUPPORT;
	else
		error = operation_begin(async, &discovery->operation, id);
	if (!error) {
		limits_begin(&discovery->limits, async, options->time_limit_ms, options->cancel,
			     options->m_key);
		operation_later(async, &discovery->operation, discovery_begin);
	}
	engine_leave(async);
	return error;
}

static int discovery_start(struct mad_async *async, const char *call,
			   const struct mad_fabric_options *options, mad_fabric_fn *done,
			   void *arg, uint64_t *id)
{
	struct discovery *discovery;
	int error;

	if (!async || !done || (options && !are_options(options)))
		return -EINVAL;
	discovery = calloc(1, sizeof(*discovery));
	if (!discovery)
		return -ENOMEM;
	discovery->operation.cancel = discovery_cancel;
	discovery->async = async;
	discovery->done = done;
	discovery->arg = arg;
	discovery->failure.kind = MAD_FAILURE_OTHER;
	discovery->limits.reached = limit_reached;
	discovery->limits.tick = limits_tick;
	discovery->limits.is_local = true;
	list_init(&discovery->requests);
	fill_in_options(discovery, options);
	discovery->fabric = graph_create();
	error = discovery->fabric ? discovery_enlist(discovery, id) : -ENOMEM;
	if (error)
		discovery_free(discovery);
	if (error == -EPROTONOSUPPORT)
		report_class(call, IB_SMI_DIRECT_CLASS);
	return error;
}

EXPORT int mad_fabric_submit(struct mad_async *async, const struct mad_fabric_options *options,
			     mad_fabric_fn *done, void *arg, uint64_t *id)
{
	int error = -EINVAL;

	if (!options || !options->cancel)
		error = discovery_start(async, "mad_fabric_submit", options, done, arg, id);
	return failure_of_discovery(error);
}

/* --- blocking ----------------------------------------------------------------------- */

struct result {
	int error;
	struct mad_failure failure;
	struct mad_fabric *fabric;
};

static void keep_result(struct mad_async *async, int error, struct mad_fabric *fabric,
			void *arg)
{
	struct result *result = arg;

	(void)async;
	result->error = error;
	result->fabric = fabric;
	if (error)
		result->failure = *mad_last_failure();
}

EXPORT int mad_fabric_discover(struct ibmad_port *port,
			       const struct mad_fabric_options *options,
			       struct mad_fabric **fabric)
{
	const struct mad_failure before = *mad_last_failure();
	struct result result = {0};
	struct mad_async *async;
	int error;

	if (!fabric)
		return failure_of_discovery(-EINVAL);
	*fabric = NULL;
	async = mad_async_create(port);
	if (!async)
		return -errno;
	error = discovery_start(async, "mad_fabric_discover", options, keep_result, &result,
				NULL);
	if (!error)
		mad_async_wait(async, -1);
	mad_async_free(async); /* calls back requests in flight if the device is gone */
	if (error)
		return failure_of_discovery(error);
	failure_store(result.error ? &result.failure : &before);
	*fabric = result.fabric;
	return result.error;
}
