/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Reads the ports of a fabric on an engine. The ports of a node are read one after the other by
 * a struct walk, and several nodes at once: the queue of the engine has a request of each. The
 * reading is complete when the last walk has ended.
 *
 * After an error that concerns all requests, the walks go on without requests, so that each
 * wanted port that was not read has the error.
 */

#include "counters/fabric_counters.h"

#include "base/export.h"
#include "base/report.h"
#include "calls/operation_limits.h"
#include "port/timers.h"

#include <infiniband/mad_fields.h>
#include <errno.h>
#include <stdlib.h>

/* Nodes that are read at once: more than the window of a port. */
#define WALKS       4096
/* A node that does not respond so often in succession is given up, at first after once. */
#define SILENT_MOST 2
#define LEAVE_OUT   15u

/* A node whose ports are being read. */
struct walk {
	struct list entry; /* in the reading, or among those that are free */
	struct fabric_reading *reading;
	struct counted_node *node;
	struct mad_counters_node *memory;     /* ClassPortInfo; NULL: it is not needed */
	struct mad_counters_reading *pending; /* or NULL */
	uint64_t id;                          /* of the request for NodeInfo; 0: none */
	unsigned number;                      /* of the port that is read, or was read last */
	unsigned silent;                      /* ports without a response in succession */
	int error;       /* the ports that are left are not requested; or 0 */
	bool responds;   /* the node has responded */
	bool is_changed; /* ClassPortInfo is to be read again */
};

struct fabric_reading {
	struct mad_fabric_counters *counters;
	struct mad_async *async;
	struct mad_fabric_counters_options options;
	mad_fabric_counters_fn *done;
	void *arg;
	int error;     /* the reading ends with this error; its requests are cancelled */
	bool starting; /* the walks are not to complete the reading */
	size_t next;   /* the next node */
	unsigned active;
	struct list walks; /* that have a request */
	struct list free;
	struct limits limits;
};

static void next_port(struct walk *walk);

/* --- the end ---------------------------------------------------------------------- */

static void free_reading(struct fabric_reading *reading)
{
	struct list *entry;

	while ((entry = list_pop(&reading->free)))
		free(list_entry(entry, struct walk, entry));
	reading->counters->reading = NULL;
	free(reading);
}

static void complete(struct fabric_reading *reading)
{
	struct mad_fabric_counters *counters = reading->counters;
	struct mad_async *async = reading->async;
	mad_fabric_counters_fn *done = reading->done;
	void *arg = reading->arg;
	int error = reading->error;
	bool is_freed;

	counters->summary.error = error;
	counters->summary.end_us = (uint64_t)clock_us();
	is_freed = counters->is_freed;
	free_reading(reading);
	done(async, error, counters, arg);
	if (is_freed)
		fabric_counters_destroy(counters);
}

static void limits_finished(struct limits *limits)
{
	complete(list_entry(limits, struct fabric_reading, limits));
}

static void cancel_requests(struct fabric_reading *reading)
{
	list_for_each (entry, &reading->walks) {
		struct walk *walk = list_entry(entry, struct walk, entry);

		if (walk->pending)
			mad_counters_cancel(walk->pending);
		else
			mad_async_cancel(reading->async, walk->id);
	}
}

static void end_with(struct fabric_reading *reading, int error)
{
	if (reading->error)
		return;
	reading->error = error;
	cancel_requests(reading);
}

static void limit_reached(struct limits *limits, int error)
{
	end_with(list_entry(limits, struct fabric_reading, limits), error);
}

/* The error with which a request ends the reading, because further requests would fail; or 0.
 */
static int ends_all(int error)
{
	return error == -ENOMEM || error == -EPROTONOSUPPORT ? error : limits_ends_all(error);
}

/* --- ports ------------------------------------------------------------------------ */

static bool is_wanted(const struct fabric_reading *reading, const struct mad_fabric_port *port)
{
	const struct mad_fabric_counters_options *options = &reading->options;
	bool is_switch = port->node->type == IB_NODE_SWITCH;

	if (is_switch && !port->number &&
	    (!port->node->enhanced_port0 || options->leave_out & MAD_FABRIC_COUNTERS_NO_PORT0))
		return false;
	if (options->leave_out &
	    (is_switch ? MAD_FABRIC_COUNTERS_NO_SWITCHES : MAD_FABRIC_COUNTERS_NO_OTHERS))
		return false;
	if (options->leave_out & MAD_FABRIC_COUNTERS_NO_DOWN && port->state == MAD_PORT_DOWN)
		return false;
	if (!mad_fabric_port_lid(reading->counters->fabric, port))
		return false;
	return !options->filter || options->filter(port, options->filter_arg);
}

/* The next wanted port of a node from a number on; NULL after the last one. */
static const struct mad_fabric_port *find_port(const struct fabric_reading *reading,
					       const struct counted_node *node, unsigned number)
{
	for (; number <= node->in_fabric->port_count; number++) {
		const struct mad_fabric_port *port = mad_fabric_port(node->in_fabric, number);

		if (port && is_wanted(reading, port))
			return port;
	}
	return NULL;
}

/* Stores the result of the present port. */
static void store(struct walk *walk, int error, const struct mad_counters *counters)
{
	struct fabric_reading *reading = walk->reading;
	struct mad_fabric_counters_summary *summary = &reading->counters->summary;
	int ret = record_store(reading->counters, walk->node, walk->number, error, counters);

	summary->wanted++;
	if (error || ret)
		summary->failed++;
	else
		summary->read++;
	if (ret)
		end_with(reading, ret);
	else if (walk->node->records[walk->number]->events &
		 (MAD_COUNTERS_RESTARTED | MAD_COUNTERS_REPLACED))
		walk->is_changed = true;
}

static void counters_came(struct mad_async *async, int error,
			  const struct mad_counters *counters, void *arg)
{
	struct walk *walk = arg;
	struct fabric_reading *reading = walk->reading;

	(void)async;
	walk->pending = NULL;
	list_leave(&walk->entry);
	reading->counters->summary.requests += counters->requests;
	if (ends_all(error))
		end_with(reading, ends_all(error));
	if (error == -ETIMEDOUT) {
		walk->silent++;
		if (!walk->responds || walk->silent == SILENT_MOST)
			walk->error = error;
	} else {
		walk->silent = 0;
		walk->responds = true;
	}
	store(walk, ends_all(error) ? reading->error : error, counters);
	walk->number++;
	next_port(walk);
}

static int submit_port(struct walk *walk, const struct mad_fabric_port *port)
{
	struct fabric_reading *reading = walk->reading;
	const struct mad_counters_options options = {
		.counters = reading->options.counters,
		.node = walk->memory,
		.timeout_ms = reading->options.timeout_ms,
		.basic = reading->options.basic,
	};
	const ib_portid_t to = {.lid = mad_fabric_port_lid(reading->counters->fabric, port)};

	return mad_counters_submit(reading->async, &to, port->number, &options, counters_came,
				   walk, &walk->pending);
}

/* --- NodeInfo --------------------------------------------------------------------- */

static void node_info_came(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	struct walk *walk = arg;
	int error = reply->error;

	(void)async;
	walk->id = 0;
	list_leave(&walk->entry);
	if (!error && reply->data_size < IB_SMP_DATA_SIZE)
		error = -EBADMSG;
	if (!error && mad_read_field64(reply->data, 0, IB_NODE_GUID_F) != walk->node->guid)
		error = -ESTALE;
	if (ends_all(error))
		end_with(walk->reading, ends_all(error));
	walk->error = error;
	walk->responds = !error;
	next_port(walk);
}

static int submit_node_info(struct walk *walk, const struct mad_fabric_port *port)
{
	struct fabric_reading *reading = walk->reading;
	const ib_rpc_t rpc = {
		.mgtclass = IB_SMI_CLASS,
		.method = IB_MAD_METHOD_GET,
		.attr = {.id = IB_ATTR_NODE_INFO},
		.dataoffs = IB_SMP_DATA_OFFS,
		.mkey = reading->options.m_key,
		.timeout = reading->options.timeout_ms,
	};
	const ib_portid_t to = {.lid = mad_fabric_port_lid(reading->counters->fabric, port)};
	int error = mad_async_submit(reading->async, &rpc, &to, NULL, 0, node_info_came, walk,
				     &walk->id);

	reading->counters->summary.requests += !error;
	return error;
}

/* --- nodes ------------------------------------------------------------------------ */

/* What is known of the node's attributes. The ClassPortInfo of a port is that of its node. */
static int begin_memory(struct walk *walk)
{
	struct abilities *abilities = &walk->node->abilities;

	if (!walk->node->known && walk->reading->options.basic)
		return 0;
	walk->memory = mad_counters_node_create();
	if (!walk->memory)
		return -ENOMEM;
	if (!walk->node->known)
		return 0;
	node_learn(walk->memory, abilities);
	for (unsigned source = 0; source < COUNTER_SOURCES; source++)
		if (abilities->refused >> source & 1)
			node_note_refusal(walk->memory, (enum counter_source)source);
	return 0;
}

static void end_memory(struct walk *walk)
{
	struct counted_node *node = walk->node;

	if (!walk->memory)
		return;
	node->known = node_recall(walk->memory, &node->abilities) && !walk->is_changed;
	mad_counters_node_free(walk->memory);
}

/* Requests the port, or NodeInfo before the first port of its node. */
static int submit(struct walk *walk, const struct mad_fabric_port *port)
{
	int error;

	if (walk->reading->options.check_guid && !walk->responds)
		error = submit_node_info(walk, port);
	else
		error = submit_port(walk, port);
	if (!error)
		list_add_last(&walk->reading->walks, &walk->entry);
	return error;
}

static bool request_next(struct walk *walk)
{
	struct fabric_reading *reading = walk->reading;
	const struct mad_fabric_port *port;

	while ((port = find_port(reading, walk->node, walk->number))) {
		int error = reading->error ? reading->error : walk->error;

		walk->number = port->number;
		if (!error)
			error = submit(walk, port);
		if (!error)
			return true;
		if (ends_all(error))
			end_with(reading, ends_all(error));
		store(walk, reading->error ? reading->error : error, NULL);
		walk->number++;
	}
	return false;
}

static struct walk *get_walk(struct fabric_reading *reading)
{
	struct list *entry = list_pop(&reading->free);

	return entry ? list_entry(entry, struct walk, entry) : malloc(sizeof(struct walk));
}

/* Begins to read a node. False: it has no port to request. */
static bool begin_node(struct fabric_reading *reading, struct counted_node *node)
{
	struct walk unsent, *walk = NULL;
	int error = reading->error;

	if (!node->in_fabric || !find_port(reading, node, 0))
		return false;
	if (!error)
		walk = get_walk(reading);
	if (!walk)
		walk = &unsent;
	*walk = (struct walk){.reading = reading, .node = node};
	list_init(&walk->entry);
	if (!error && (walk == &unsent || begin_memory(walk) < 0))
		end_with(reading, -ENOMEM);
	if (request_next(walk))
		return true;
	end_memory(walk);
	if (walk != &unsent)
		list_add_first(&reading->free, &walk->entry);
	return false;
}

/* Begins to read further nodes. Completes the reading if none is left. */
static void begin_nodes(struct fabric_reading *reading)
{
	const struct mad_fabric_counters *counters = reading->counters;

	while (reading->active < WALKS && reading->next < counters->node_count)
		reading->active += begin_node(reading, counters->nodes[reading->next++]);
	if (!reading->active && !reading->starting && limits_end(&reading->limits))
		complete(reading);
}

static void next_port(struct walk *walk)
{
	struct fabric_reading *reading = walk->reading;

	if (request_next(walk))
		return;
	end_memory(walk);
	list_add_first(&reading->free, &walk->entry);
	reading->active--;
	begin_nodes(reading);
}

/* --- the calls -------------------------------------------------------------------- */

static bool are_options(const struct mad_fabric_counters_options *options)
{
	for (size_t i = 0; i < sizeof(options->reserved) / sizeof(options->reserved[0]); i++)
		if (options->reserved[i])
			return false;
	return !(options->leave_out & ~LEAVE_OUT) && options->timeout_ms >= 0 &&
	       (!options->counters || options->counters & MAD_COUNTERS_ALL);
}

static struct fabric_reading *create_reading(struct mad_async *async,
					     struct mad_fabric_counters *counters,
					     const struct mad_fabric_counters_options *options)
{
	struct fabric_reading *reading = calloc(1, sizeof(*reading));

	if (!reading)
		return NULL;
	reading->async = async;
	reading->counters = counters;
	if (options)
		reading->options = *options;
	if (!reading->options.m_key)
		reading->options.m_key = smp_mkey_get(async->port);
	reading->limits.reached = limit_reached;
	reading->limits.finished = limits_finished;
	list_init(&reading->walks);
	list_init(&reading->free);
	return reading;
}

/* The result of a reading without a request in flight. */
static int end_at_once(struct fabric_reading *reading)
{
	struct mad_fabric_counters *counters = reading->counters;
	int error = reading->error;

	if (!error) {
		if (limits_end(&reading->limits))
			complete(reading);
		return 0;
	}
	limits_end(&reading->limits);
	counters->summary.error = error;
	counters->summary.end_us = (uint64_t)clock_us();
	free_reading(reading);
	return error;
}

EXPORT int mad_fabric_counters_start(struct mad_async *async,
				     struct mad_fabric_counters *counters,
				     const struct mad_fabric_counters_options *options,
				     mad_fabric_counters_fn *done, void *arg)
{
	struct fabric_reading *reading;
	int error;

	if (!async || !counters || !done || (options && !are_options(options)))
		return -EINVAL;
	if (counters->reading)
		return -EBUSY;
	reading = create_reading(async, counters, options);
	if (!reading)
		return -ENOMEM;
	reading->done = done;
	reading->arg = arg;
	error = limits_begin(&reading->limits, async, reading->options.time_limit_ms,
			     reading->options.cancel, reading->options.m_key);
	counters->reading = reading;
	if (error) {
		free_reading(reading);
		return error;
	}
	counters->readings++;
	counters->summary =
		(struct mad_fabric_counters_summary){.begin_us = (uint64_t)clock_us()};
	reading->starting = true;
	begin_nodes(reading);
	reading->starting = false;
	return reading->active ? 0 : end_at_once(reading);
}

EXPORT void mad_fabric_counters_cancel(struct mad_fabric_counters *counters)
{
	if (counters && counters->reading)
		end_with(counters->reading, -ECANCELED);
}

static void keep_error(struct mad_async *async, int error, struct mad_fabric_counters *counters,
		       void *arg)
{
	int *result = arg;

	(void)async, (void)counters;
	*result = error;
}

/* Stores the error, and returns it. */
static int fail(int error)
{
	const struct mad_failure failure = {
		.error = error,
		.mgmt_class = IB_PERFORMANCE_CLASS,
		.kind = error == -EPROTONOSUPPORT ? MAD_FAILURE_REQUEST : MAD_FAILURE_OTHER};

	failure_store(&failure);
	return error;
}

EXPORT int mad_fabric_counters_read(struct ibmad_port *port,
				    struct mad_fabric_counters *counters,
				    const struct mad_fabric_counters_options *options)
{
	struct mad_async *async;
	int error, result = 0;

	if (!port || !counters)
		return fail(-EINVAL);
	async = mad_async_create(port);
	if (!async)
		return -errno;
	error = mad_fabric_counters_start(async, counters, options, keep_error, &result);
	if (!error)
		mad_async_run(async);
	mad_async_destroy(async); /* calls back the requests in flight if the device is gone */
	if (!error)
		error = result;
	return error ? fail(error) : 0;
}
