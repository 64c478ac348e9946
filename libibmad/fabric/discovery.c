/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Discovery. A response leads to further requests, and the engine sends as many at once as flow
 * control permits.
 *
 * neighbours.c: NodeInfo of the first node, and of the node behind each port with a link.
 *
 * visit.c: the attributes and ports of a new node. Follows each port with a link.
 *
 * requests.c: the requests on the engine.
 *
 * The discovery is complete when no request is in flight.
 */

#include "base/export.h"
#include "base/report.h"
#include "base/reserved.h"
#include "engine/async.h"
#include "fabric/discovery.h"
#include "fabric/graph.h"

#include <errno.h>

#define MAX_NODES    200000
#define READ_ALLOWED 31u

static void free_discovery(struct discovery *discovery)
{
	requests_free(discovery);
	mad_fabric_free(discovery->fabric);
	free(discovery->previous_failures);
	free(discovery);
}

void discovery_complete(struct discovery *discovery)
{
	struct mad_async *async = discovery->async;
	mad_fabric_fn *done = discovery->done;
	void *arg = discovery->arg;
	struct mad_fabric *fabric = NULL;
	int error;

	limits_end(&discovery->limits);
	if (!discovery->error)
		requests_tell_progress(discovery); /* which may cancel the discovery */
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
	free_discovery(discovery);
	done(async, error, fabric, arg);
}

/* What was new when the latest call was less than 100 ms ago. */
static void limits_tick(struct limits *limits)
{
	requests_tell_news(list_entry(limits, struct discovery, limits));
}

static void limit_reached(struct limits *limits, int error)
{
	struct discovery *discovery = list_entry(limits, struct discovery, limits);

	/* before begin() there is no request whose end ends the discovery */
	if (list_is_empty(&discovery->requests))
		discovery->error = error;
	else
		discovery_abort(discovery, error);
}

static void cancel(struct engine_operation *operation)
{
	discovery_abort(list_entry(operation, struct discovery, operation), -ECANCELED);
}

/* All requests are submitted by the thread that processes the engine. */
static void begin(struct engine_operation *operation)
{
	struct discovery *discovery = list_entry(operation, struct discovery, operation);

	if (engine_operation_is_cancelled(discovery->async, operation))
		discovery_abort(discovery, -ECANCELED);
	if (!discovery->error)
		neighbours_begin(discovery);
	if (discovery->error && !discovery->progress.in_flight)
		discovery_complete(discovery);
}

/*
 * Behind a LID, the response to a directed route returns to the LID where the request began
 * (IBA 14.2.2).
 */
static bool is_begin(const ib_portid_t *from)
{
	if (from->drpath.cnt < 0 || from->drpath.cnt >= IB_SUBNET_PATH_HOPS_MAX)
		return false;
	return !from->lid || (IB_LID_VALID(from->lid) && IB_LID_VALID(from->drpath.drslid));
}

static bool are_options(const struct mad_fabric_options *options)
{
	if (!is_reserved(options->reserved) || !is_cancel(options->cancel))
		return false;
	return !(options->read & ~READ_ALLOWED) && options->timeout_ms >= 0 &&
	       (!options->from || is_begin(options->from));
}

static struct discovery *create_discovery(const struct mad_fabric_options *options)
{
	struct discovery *discovery = calloc(1, sizeof(*discovery));

	if (!discovery)
		return NULL;
	discovery->fabric = graph_create();
	if (!discovery->fabric) {
		free(discovery);
		return NULL;
	}
	discovery->options = *options;
	if (!options->read)
		discovery->options.read = MAD_FABRIC_READ_DEFAULT;
	/* PortInfo tells whether a port may have one */
	if (options->read & MAD_FABRIC_READ_MLNX_EXT_PORTS)
		discovery->options.read |= MAD_FABRIC_READ_PORTS;
	if (!options->max_nodes)
		discovery->options.max_nodes = MAX_NODES;
	if (options->from)
		discovery->base = *options->from;
	discovery->failure = (struct mad_failure){.kind = MAD_FAILURE_OTHER};
	discovery->limits.reached = limit_reached;
	discovery->limits.tick = limits_tick;
	discovery->limits.is_local = true;
	list_init(&discovery->requests);
	list_init(&discovery->free);
	return discovery;
}

/* Stores the error, and returns it. */
static int fail(int error)
{
	return failure_of_call(error == -EPROTONOSUPPORT ? IB_SMI_DIRECT_CLASS : 0, error);
}

/* The lock is held throughout, so that the engine cannot be freed when only a part is done. */
static int enlist(struct discovery *discovery, uint64_t *id)
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
		operation_later(async, &discovery->operation, begin);
	}
	engine_leave(async);
	return error;
}

static int start(struct mad_async *async, const char *call,
		 const struct mad_fabric_options *options, mad_fabric_fn *done, void *arg,
		 uint64_t *id)
{
	const struct mad_fabric_options defaults = {0};
	struct discovery *discovery;
	int error;

	if (!async || !done || (options && !are_options(options)))
		return -EINVAL;
	discovery = create_discovery(options ? options : &defaults);
	if (!discovery)
		return -ENOMEM;
	discovery->async = async;
	if (!discovery->options.m_key)
		discovery->options.m_key = smp_mkey_get(async->port);
	discovery->done = done;
	discovery->arg = arg;
	discovery->operation.cancel = cancel;
	error = enlist(discovery, id);
	if (error)
		free_discovery(discovery);
	if (error == -EPROTONOSUPPORT)
		report_class(call, IB_SMI_DIRECT_CLASS);
	return error;
}

EXPORT int mad_fabric_submit(struct mad_async *async, const struct mad_fabric_options *options,
			     mad_fabric_fn *done, void *arg, uint64_t *id)
{
	int error = -EINVAL;

	if (!options || !options->cancel)
		error = start(async, "mad_fabric_submit", options, done, arg, id);
	return fail(error);
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
		return fail(-EINVAL);
	*fabric = NULL;
	async = mad_async_create(port);
	if (!async)
		return -errno;
	error = start(async, "mad_fabric_discover", options, keep_result, &result, NULL);
	if (!error)
		mad_async_wait(async, -1);
	mad_async_free(async); /* calls back the requests in flight if the device is gone */
	if (error)
		return fail(error);
	failure_store(result.error ? &result.failure : &before);
	*fabric = result.fabric;
	return result.error;
}
