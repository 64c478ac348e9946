/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Reads a fabric's ports on an engine. A struct walk reads a node's ports one after the other,
 * then those of the next node without a walk, so each walk has one request in the engine's
 * queue. The reading is complete when the last walk ends.
 *
 * After an error that concerns all requests, the walks continue without requests, so that every
 * wanted port not read has the error.
 */

#include "counters/fabric_counters.h"

#include "base/export.h"
#include "base/report.h"
#include "base/reserved.h"
#include "engine/async.h"
#include "engine/timers.h"

#include <infiniband/mad_fields.h>
#include <errno.h>
#include <stdlib.h>

/* Nodes read at once, hence the maximum of requests queued or in flight. */
#define WALKS       1024
/*
 * A node is given up after this many consecutive ports without a response, or after one if it
 * never responded.
 */
#define SILENT_MOST 2
#define LEAVE_OUT   15u

struct walk {
	struct fabric_reading *reading;
	struct counted_node *node;        /* being read; or NULL */
	struct mad_counters_node *memory; /* its ClassPortInfo; NULL: not requested yet */
	uint64_t id;                      /* of the reading or the NodeInfo request */
	unsigned number;                  /* port being read, or read last */
	unsigned silent;                  /* consecutive ports without a response */
	int error;                        /* remaining ports are not requested; 0: they are */
	unsigned status;                  /* MAD status if error is NodeInfo's -EIO */
	bool responds;
	bool is_changed; /* read ClassPortInfo again */
};

struct fabric_reading {
	struct engine_operation operation;
	struct fabric_counters *counters;
	struct mad_async *async;
	struct mad_fabric_counters_options options;
	mad_fabric_counters_fn *done;
	void *arg;
	int error;       /* why the reading ends; its requests are cancelled */
	size_t next;     /* next node */
	unsigned active; /* walks not ended */
	struct limits limits;
	unsigned walk_count;
	struct walk walks[];
};

/* --- the end ---------------------------------------------------------------------- */

static void complete_reading(struct fabric_reading *reading)
{
	struct fabric_counters *counters = reading->counters;
	struct mad_async *async = reading->async;
	mad_fabric_counters_fn *done = reading->done;
	void *arg = reading->arg;
	int error = reading->error;
	bool is_freed = counters->is_freed;

	limits_end(&reading->limits);
	if (engine_operation_end(async, &reading->operation))
		error = -ECANCELED;
	counters->summary.error = error;
	counters->summary.end_us = (uint64_t)clock_us();
	counters->reading = NULL;
	free(reading);
	counters_fail(error);
	done(async, error, &counters->shown, arg);
	if (is_freed)
		fabric_counters_destroy(counters);
}

/* Ends the reading with an error and cancels its requests. */
static void end_reading(struct fabric_reading *reading, int error)
{
	if (reading->error)
		return;
	reading->error = error;
	engine_enter_again(reading->async);
	for (unsigned i = 0; i < reading->walk_count; i++)
		engine_cancel(reading->async, reading->walks[i].id);
	engine_leave(reading->async);
}

static void limit_reached(struct limits *limits, int error)
{
	end_reading(list_entry(limits, struct fabric_reading, limits), error);
}

static void cancel_fabric_reading(struct engine_operation *operation)
{
	end_reading(list_entry(operation, struct fabric_reading, operation), -ECANCELED);
}

/* Returns the port's error. One that would fail further requests, too, ends the reading. */
static int judge_error(struct fabric_reading *reading, int error)
{
	int final =
		error == -ENOMEM || error == -EPROTONOSUPPORT ? error : limits_ends_all(error);

	if (!final)
		return error;
	end_reading(reading, final);
	return reading->error;
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
	if (!port->gmp_lid)
		return false;
	return !options->filter || options->filter(port, options->filter_arg);
}

/* Next wanted port from a number on, or NULL. */
static const struct mad_fabric_port *find_port(const struct fabric_reading *reading,
					       const struct counted_node *node, unsigned number)
{
	for (; number <= node->in_fabric->port_count; number++) {
		const struct mad_fabric_port *port =
			mad_fabric_get_port(node->in_fabric, number);

		if (port && is_wanted(reading, port))
			return port;
	}
	return NULL;
}

/* Stores the current port's result. */
static void store_port(struct walk *walk, int error, const struct mad_counters *counters)
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
		end_reading(reading, ret);
	else if (walk->node->records[walk->number]->events &
		 (MAD_COUNTERS_RESET | MAD_COUNTERS_RESTARTED | MAD_COUNTERS_REPLACED))
		walk->is_changed = true;
}

/* --- requests --------------------------------------------------------------------- */

static void continue_walk(struct walk *walk);

static void counters_came(struct mad_async *async, int error,
			  const struct mad_counters *counters, void *arg)
{
	struct walk *walk = arg;
	struct fabric_reading *reading = walk->reading;
	struct counted_node *node = walk->node;
	int port_error = judge_error(reading, error);

	(void)async;
	reading->counters->summary.requests += counters->requests;
	if (error == -ETIMEDOUT) {
		walk->silent++;
		if (!walk->responds || walk->silent == SILENT_MOST)
			walk->error = error;
	} else {
		walk->silent = 0;
		walk->responds = true;
	}
	if (!error && node->known && counters->odd & MAD_COUNTERS_ODD_CAPABILITY &&
	    !(node->abilities.refused & 1U << SOURCE_EXTENDED)) {
		/*
		 * The node refuses what it used to have, according to a ClassPortInfo from an
		 * earlier reading: read that again, and the port.
		 */
		node->known = false;
		mad_counters_node_free(walk->memory);
		walk->memory = NULL;
	} else {
		store_port(walk, port_error, counters);
		walk->number++;
	}
	continue_walk(walk);
}

static int submit_port(struct walk *walk, const struct mad_fabric_port *port)
{
	struct fabric_reading *reading = walk->reading;
	struct mad_counters_options options = {
		.counters = reading->options.counters,
		.timeout_ms = reading->options.timeout_ms,
		.basic = reading->options.basic,
	};
	const ib_portid_t to = {.lid = port->gmp_lid};

	if (!walk->memory && (walk->node->known || !options.basic)) {
		walk->memory = mad_counters_node_create();
		if (!walk->memory)
			return -ENOMEM;
		if (walk->node->known)
			node_learn(walk->memory, &walk->node->abilities);
	}
	options.node = walk->memory;
	return mad_counters_submit(reading->async, &to, port->number, &options, counters_came,
				   walk, &walk->id);
}

static void node_info_came(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	struct walk *walk = arg;
	int error = reply->error;

	(void)async;
	if (!error && reply->data_size < IB_SMP_DATA_SIZE)
		error = -EBADMSG;
	if (!error && mad_read_field(reply->data, 0, IB_NODE_GUID_F) != walk->node->guid)
		error = -ESTALE;
	walk->error = judge_error(walk->reading, error);
	walk->status = error == -EIO ? reply->status : 0;
	walk->responds = !error;
	continue_walk(walk);
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
	const ib_portid_t to = {.lid = port->gmp_lid};
	int error = mad_async_submit(reading->async, &rpc, &to, NULL, 0, node_info_came, walk,
				     &walk->id);

	reading->counters->summary.requests += !error;
	return error;
}

/*
 * Requests the node's next port, or NodeInfo before its first. Returns false if none is left.
 */
static bool request_next_port(struct walk *walk)
{
	struct fabric_reading *reading = walk->reading;
	const struct mad_fabric_port *port;

	while ((port = find_port(reading, walk->node, walk->number))) {
		int error = reading->error ? reading->error : walk->error;

		walk->number = port->number;
		if (!error && reading->options.check_guid && !walk->responds)
			error = submit_node_info(walk, port);
		else if (!error)
			error = submit_port(walk, port);
		if (!error)
			return true;
		store_port(walk, judge_error(reading, error),
			   &(struct mad_counters){.status = walk->status});
		walk->number++;
	}
	return false;
}

/* Continues with the node's next port or another node; the last walk ends the reading. */
static void continue_walk(struct walk *walk)
{
	struct fabric_reading *reading = walk->reading;
	struct fabric_counters *counters = reading->counters;

	while (!walk->node || !walk->node->in_fabric || !request_next_port(walk)) {
		if (walk->node && walk->memory) {
			walk->node->known = node_recall(walk->memory, &walk->node->abilities) &&
					    !walk->is_changed;
			mad_counters_node_free(walk->memory);
		}
		*walk = (struct walk){.reading = reading};
		if (reading->next == counters->node_count) {
			if (!--reading->active)
				complete_reading(reading);
			return;
		}
		walk->node = counters->nodes[reading->next++];
	}
}

/* First call in the processing thread. */
static void begin_walks(struct engine_operation *operation)
{
	struct fabric_reading *reading =
		list_entry(operation, struct fabric_reading, operation);

	if (engine_operation_is_cancelled(reading->async, operation))
		reading->error = -ECANCELED;
	/* the last one may free the reading */
	for (unsigned i = 0, count = reading->walk_count; i < count; i++)
		continue_walk(&reading->walks[i]);
}

/* --- the calls -------------------------------------------------------------------- */

static bool are_options(const struct mad_fabric_counters_options *options)
{
	if (!is_reserved(options->reserved) || !cancel_is_valid(options->cancel))
		return false;
	return !(options->leave_out & ~LEAVE_OUT) && options->timeout_ms >= 0 &&
	       (!options->counters || options->counters & MAD_COUNTERS_ALL);
}

static int begin_reading(struct mad_async *async, struct mad_fabric_counters *shown,
			 const struct mad_fabric_counters_options *options,
			 mad_fabric_counters_fn *done, void *arg, uint64_t *id)
{
	struct fabric_counters *counters = fabric_counters_of(shown);
	const struct handle *handle;
	struct fabric_reading *reading;
	int error;
	size_t walks;

	if (!async || !counters || !done || (options && !are_options(options)))
		return counters_fail(-EINVAL);
	if (counters->reading)
		return counters_fail(-EBUSY);
	walks = counters->node_count < WALKS ? counters->node_count + 1 : WALKS;
	reading = calloc(1, sizeof(*reading) + walks * sizeof(struct walk));
	if (!reading)
		return counters_fail(-ENOMEM);
	reading->async = async;
	reading->counters = counters;
	if (options)
		reading->options = *options;
	if (!reading->options.m_key)
		reading->options.m_key = smp_mkey_get(async->port);
	reading->done = done;
	reading->arg = arg;
	reading->operation.cancel = cancel_fabric_reading;
	reading->limits.reached = limit_reached;
	reading->walk_count = reading->active = (unsigned)walks;
	for (size_t i = 0; i < walks; i++)
		reading->walks[i].reading = reading;

	handle = &async->port->handle;
	error = engine_enter(async);
	if (error)
		goto out;
	if (handle_agent(handle, IB_PERFORMANCE_CLASS) < 0 ||
	    (reading->options.check_guid && handle_agent(handle, IB_SMI_CLASS) < 0))
		error = -EPROTONOSUPPORT;
	else
		error = operation_begin(async, &reading->operation, id);
	if (!error) {
		counters->reading = reading;
		counters->engine = async;
		counters->id = reading->operation.id;
		counters->readings++;
		counters->summary =
			(struct mad_fabric_counters_summary){.begin_us = (uint64_t)clock_us()};
		limits_begin(&reading->limits, async, reading->options.time_limit_ms,
			     reading->options.cancel, reading->options.m_key);
		operation_later(async, &reading->operation, begin_walks);
	}
	engine_leave(async);
out:
	if (error)
		free(reading);
	return counters_fail(error);
}

EXPORT int mad_fabric_counters_submit(struct mad_async *async,
				      struct mad_fabric_counters *counters,
				      const struct mad_fabric_counters_options *options,
				      mad_fabric_counters_fn *done, void *arg, uint64_t *id)
{
	if (options && options->cancel)
		return counters_fail(-EINVAL);
	return begin_reading(async, counters, options, done, arg, id);
}

static void keep_error(struct mad_async *async, int error, struct mad_fabric_counters *counters,
		       void *arg)
{
	int *result = arg;

	(void)async, (void)counters;
	*result = error;
}

EXPORT int mad_fabric_counters_read(struct ibmad_port *port,
				    struct mad_fabric_counters *counters,
				    const struct mad_fabric_counters_options *options)
{
	const struct mad_failure before = *mad_last_failure();
	struct mad_async *async;
	int error, result = 0;

	if (!port || !counters)
		return counters_fail(-EINVAL);
	async = mad_async_create(port);
	if (!async)
		return -errno;
	error = begin_reading(async, counters, options, keep_error, &result, NULL);
	if (!error)
		mad_async_wait(async, -1);
	mad_async_free(async); /* calls back requests in flight if the device is gone */
	if (!error && !result)
		failure_store(&before);
	return counters_fail(error ? error : result);
}
