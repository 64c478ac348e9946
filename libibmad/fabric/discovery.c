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
#include "calls/engine.h"
#include "fabric/discovery.h"
#include "fabric/graph.h"

#include <errno.h>

#define MAX_NODES    200000
#define READ_ALLOWED 31u

static void free_discovery(struct mad_fabric_discovery *discovery)
{
	requests_free(discovery);
	mad_fabric_free(discovery->fabric);
	free(discovery->previous_failures);
	free(discovery);
}

/* Hands over the result, and frees the discovery. */
static void complete(struct mad_fabric_discovery *discovery)
{
	struct mad_async *async = discovery->async;
	mad_fabric_fn *done = discovery->done;
	void *arg = discovery->arg;
	struct mad_fabric *fabric = NULL;
	int error;

	if (!discovery->error)
		requests_tell_progress(discovery); /* which may cancel the discovery */
	error = discovery->error;
	if (!error ||
	    (discovery_keeps_part(discovery) && mad_fabric_node_count(discovery->fabric))) {
		int err = graph_finish(discovery->fabric);

		if (!err) {
			fabric = discovery->fabric;
			discovery->fabric = NULL;
		} else if (!error) {
			error = err;
		}
	}
	if (discovery->failed) {
		*discovery->failed = discovery->failure;
		discovery->failed->error = error;
	}
	free_discovery(discovery);
	done(async, error, fabric, arg);
}

void discovery_complete(struct mad_fabric_discovery *discovery)
{
	if (limits_end(&discovery->limits))
		complete(discovery);
}

static void limits_finished(struct limits *limits)
{
	complete(list_entry(limits, struct mad_fabric_discovery, limits));
}

/* Before "begun", another thread may add the first request to the list. */
static void limit_reached(struct limits *limits, int error)
{
	struct mad_fabric_discovery *discovery =
		list_entry(limits, struct mad_fabric_discovery, limits);

	if (!discovery->begun)
		return;
	if (discovery->error)
		requests_cancel(discovery); /* a request may have had no id then */
	else
		discovery_abort(discovery, error);
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
	for (size_t i = 0; i < sizeof(options->reserved) / sizeof(options->reserved[0]); i++)
		if (options->reserved[i])
			return false;
	return !(options->read & ~READ_ALLOWED) && options->timeout_ms >= 0 &&
	       (!options->from || is_begin(options->from));
}

static struct mad_fabric_discovery *create_discovery(const struct mad_fabric_options *options)
{
	struct mad_fabric_discovery *discovery = calloc(1, sizeof(*discovery));

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
	discovery->limits.finished = limits_finished;
	list_init(&discovery->requests);
	list_init(&discovery->free);
	return discovery;
}

/* Starts a discovery. At the end, *failed becomes the failure, unless failed is NULL. */
static int start(struct mad_async *async, const struct mad_fabric_options *options,
		 mad_fabric_fn *done, void *arg, struct mad_fabric_discovery **discovery,
		 struct mad_failure *failed)
{
	const struct mad_fabric_options defaults = {0};
	struct mad_fabric_discovery *created;
	int error;

	if (!async || !done || (options && !are_options(options)))
		return -EINVAL;
	created = create_discovery(options ? options : &defaults);
	if (!created)
		return -ENOMEM;
	created->async = async;
	if (!created->options.m_key)
		created->options.m_key = smp_mkey_get(async->port);
	created->done = done;
	created->arg = arg;
	created->failed = failed;
	error = limits_begin(&created->limits, async, created->options.time_limit_ms,
			     created->options.cancel, created->options.m_key);
	if (error) {
		free_discovery(created);
		return error;
	}
	if (discovery)
		*discovery = created;
	if (neighbours_begin(created))
		return 0; /* the discovery may have been freed from here on */
	if (discovery)
		*discovery = NULL;
	error = created->error;
	limits_end(&created->limits);
	free_discovery(created);
	return error;
}

EXPORT int mad_fabric_submit(struct mad_async *async, const struct mad_fabric_options *options,
			     mad_fabric_fn *done, void *arg,
			     struct mad_fabric_discovery **discovery)
{
	return start(async, options, done, arg, discovery, NULL);
}

EXPORT void mad_fabric_discovery_cancel(struct mad_fabric_discovery *discovery)
{
	if (discovery)
		discovery_abort(discovery, -ECANCELED);
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
}

/* Stores the error, and returns it. */
static int fail(int error)
{
	const struct mad_failure failure = {
		.error = error,
		.mgmt_class = IB_SMI_DIRECT_CLASS,
		.kind = error == -EPROTONOSUPPORT ? MAD_FAILURE_REQUEST : MAD_FAILURE_OTHER};

	failure_store(&failure);
	return error;
}

EXPORT int mad_fabric_discover(struct ibmad_port *port,
			       const struct mad_fabric_options *options,
			       struct mad_fabric **fabric)
{
	struct result result = {0};
	struct mad_async *async;
	int error;

	if (!fabric)
		return fail(-EINVAL);
	*fabric = NULL;
	async = mad_async_create(port);
	if (!async)
		return -errno;
	error = start(async, options, keep_result, &result, NULL, &result.failure);
	if (!error)
		mad_async_wait(async, -1);
	mad_async_free(async); /* calls back the requests in flight if the device is gone */
	if (error)
		return fail(error);
	if (result.error)
		failure_store(&result.failure);
	*fabric = result.fabric;
	return result.error;
}
