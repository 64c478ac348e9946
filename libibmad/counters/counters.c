/* SPDX-License-Identifier: BSD-2-Clause */

/* Reads and resets a port's counters: blocking calls and on an engine. */

#include "base/export.h"
#include "base/report.h"
#include "counters/reading.h"
#include "engine/async.h"

#include <errno.h>
#include <stdlib.h>

/* --- blocking ------------------------------------------------------------------- */

/*
 * Sends a reading's requests one by one. On success, restores the previous failure, which
 * refused requests have overwritten.
 */
static int run_reading(struct ibmad_port *port, const ib_portid_t *dport,
		       struct reading *reading)
{
	const struct mad_failure before = *mad_last_failure();
	enum counter_source source;
	int error;

	while ((source = reading_next(reading, &error)) != SOURCE_NONE) {
		struct mad_message response = {0};
		uint8_t data[IB_PC_DATA_SZ];
		ib_rpc_t rpc = reading_request(reading, source, data);
		ib_portid_t to = *dport;
		size_t size = 0;

		if (mad_rpc_message(port, &rpc, &to, data, sizeof(data), &response))
			error = mad_last_failure()->error;
		else if (response.length > IB_PC_DATA_OFFS)
			size = response.length - IB_PC_DATA_OFFS;
		reading->counters.requests++;
		error = reading_take(reading, source, error,
				     size ? response.mad + IB_PC_DATA_OFFS : NULL, size);
		mad_message_free(&response);
		if (error)
			break;
	}
	if (error)
		return reading_fail(reading, error);
	failure_store(&before);
	return 0;
}

EXPORT int mad_counters_read(struct ibmad_port *port, const ib_portid_t *dport,
			     unsigned port_number, const struct mad_counters_options *options,
			     struct mad_counters *counters, size_t size)
{
	struct reading reading;
	int error = -EINVAL;

	reading_init(&reading, port_number, options, false);
	if (port && (counters || reading.options.details) &&
	    reading_is_valid(dport, port_number, options))
		error = run_reading(port, dport, &reading);
	else
		counters_fail(error);
	reading_complete(&reading);
	if (counters) {
		if (size < reading.counters.size)
			reading.counters.size = (uint32_t)size;
		memset(counters, 0, size);
		memcpy(counters, &reading.counters, reading.counters.size);
	}
	return error;
}

EXPORT int mad_counters_reset(struct ibmad_port *port, const ib_portid_t *dport,
			      unsigned port_number, const struct mad_counters_options *options)
{
	struct reading reading;

	if (!port || !reading_is_valid(dport, port_number, options))
		return counters_fail(-EINVAL);
	reading_init(&reading, port_number, options, true);
	return run_reading(port, dport, &reading);
}

/* --- on an engine --------------------------------------------------------------- */

/* Once begun, belongs to the processing thread. */
struct engine_reading {
	struct engine_operation operation;
	struct mad_async *engine;
	ib_portid_t dport;
	mad_counters_fn *callback;
	void *arg;
	enum counter_source source; /* of the request in flight */
	uint64_t id;
	struct inquiry *inquiry; /* waits for its response; or NULL */
	struct list waiting;     /* in the inquiry's */
	struct reading reading;
};

/*
 * A ClassPortInfo request shared by an engine's readings of a node. Belongs to the processing
 * thread. If another engine already asks for the node, each reading has its own.
 */
struct inquiry {
	struct mad_async *engine;
	struct mad_counters_node *node; /* while a reading waits */
	struct list waiting;            /* readings; empty: cancelled */
	uint64_t id;                    /* of the request */
};

static void free_engine_reading(struct engine_reading *pending)
{
	node_release(pending->reading.options.node);
	free(pending);
}

static void finish_reading(struct engine_reading *pending, int error)
{
	struct reading *reading = &pending->reading;

	if (engine_operation_end(pending->engine, &pending->operation)) {
		error = -ECANCELED;
		reading->counters.status = 0;
	}
	reading_complete(reading);
	reading_fail(reading, error);
	pending->callback(pending->engine, error, &reading->counters, pending->arg);
	free_engine_reading(pending);
}

static void proceed_reading(struct engine_reading *pending, int error);

static int take_reply(struct engine_reading *pending, const struct mad_reply *reply)
{
	failure_of_reply(reply, IB_PERFORMANCE_CLASS, IB_MAD_METHOD_GET,
			 counter_source_attribute(pending->source));
	return reading_take(&pending->reading, pending->source, reply->error, reply->data,
			    reply->data_size);
}

static void response_came(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	struct engine_reading *pending = arg;

	(void)engine;
	proceed_reading(pending, take_reply(pending, reply));
}

static int send_request(struct engine_reading *pending, mad_async_fn *callback, void *arg,
			uint64_t *id)
{
	uint8_t data[IB_PC_DATA_SZ];
	ib_rpc_t rpc = reading_request(&pending->reading, pending->source, data);
	int error = mad_async_submit(pending->engine, &rpc, &pending->dport, data, sizeof(data),
				     callback, arg, id);

	pending->reading.counters.requests += !error;
	return error;
}

/* No more readings may wait for it. */
static void end_inquiry(const struct inquiry *inquiry)
{
	struct mad_counters_node *node = inquiry->node;

	if (node->asker == inquiry->engine && node->inquiry == inquiry)
		node->asker = NULL;
}

static void class_port_info_came(struct mad_async *engine, const struct mad_reply *reply,
				 void *arg)
{
	struct inquiry *inquiry = arg;
	struct list *entry;

	(void)engine;
	if (!list_is_empty(&inquiry->waiting))
		end_inquiry(inquiry);
	while ((entry = list_pop(&inquiry->waiting))) {
		struct engine_reading *pending =
			list_entry(entry, struct engine_reading, waiting);

		pending->inquiry = NULL;
		/* after MAD_ASYNC_ALL, readings begun since then ask again */
		proceed_reading(pending,
				reply->error == -ECANCELED ? 0 : take_reply(pending, reply));
	}
	free(inquiry);
}

/* Requests ClassPortInfo, or joins a request of the engine's already in flight. */
static int inquire(struct engine_reading *pending)
{
	struct mad_counters_node *node = pending->reading.options.node;
	struct inquiry *inquiry = node->asker == pending->engine ? node->inquiry : NULL;
	struct mad_async *none = NULL;
	int error;

	if (!inquiry) {
		inquiry = malloc(sizeof(*inquiry));
		if (!inquiry)
			return -ENOMEM;
		inquiry->engine = pending->engine;
		inquiry->node = node;
		list_init(&inquiry->waiting);
		error = send_request(pending, class_port_info_came, inquiry, &inquiry->id);
		if (error) {
			free(inquiry);
			return error;
		}
		if (atomic_compare_exchange_strong(&node->asker, &none, pending->engine))
			node->inquiry = inquiry;
	}
	pending->inquiry = inquiry;
	list_add_last(&inquiry->waiting, &pending->waiting);
	return 0;
}

static void proceed_reading(struct engine_reading *pending, int error)
{
	if (engine_operation_is_cancelled(pending->engine, &pending->operation))
		error = -ECANCELED;
	pending->source = error ? SOURCE_NONE : reading_next(&pending->reading, &error);
	if (pending->source == SOURCE_CLASS_PORT_INFO && pending->reading.options.node)
		error = inquire(pending);
	else if (pending->source != SOURCE_NONE)
		error = send_request(pending, response_came, pending, &pending->id);
	if (error || pending->source == SOURCE_NONE)
		finish_reading(pending, error);
}

static void begin_reading(struct engine_operation *operation)
{
	proceed_reading(list_entry(operation, struct engine_reading, operation), 0);
}

static void cancel_reading(struct engine_operation *operation)
{
	struct engine_reading *pending =
		list_entry(operation, struct engine_reading, operation);
	struct inquiry *inquiry = pending->inquiry;
	uint64_t id = inquiry ? inquiry->id : pending->id;

	if (inquiry) {
		list_remove(&pending->waiting);
		if (list_is_empty(&inquiry->waiting))
			end_inquiry(inquiry);
	}
	if (!inquiry || list_is_empty(&inquiry->waiting)) {
		engine_enter_again(pending->engine);
		engine_cancel(pending->engine, id);
		engine_leave(pending->engine);
	}
	if (inquiry)
		finish_reading(pending, -ECANCELED);
}

static int begin_on_engine_unlocking(struct engine_reading *pending, uint64_t *id)
{
	struct mad_async *engine = pending->engine;
	int error = engine_why_ended(engine);

	if (!error && handle_agent(&engine->port->handle, IB_PERFORMANCE_CLASS) < 0) {
		engine_report_class_unlocking(engine, "mad_counters_submit",
					      IB_PERFORMANCE_CLASS);
		return -EPROTONOSUPPORT;
	}
	if (!error && reading_next(&pending->reading, &error) != SOURCE_NONE)
		error = operation_begin(engine, &pending->operation, id);
	if (!error)
		operation_later(engine, &pending->operation, begin_reading);
	return error;
}

EXPORT int mad_counters_submit(struct mad_async *async, const ib_portid_t *dport,
			       unsigned port_number, const struct mad_counters_options *options,
			       mad_counters_fn *callback, void *arg, uint64_t *id)
{
	struct engine_reading *pending;
	int error;

	if (!async || !callback || !reading_is_valid(dport, port_number, options))
		return counters_fail(-EINVAL);
	pending = calloc(1, sizeof(*pending));
	if (!pending)
		return counters_fail(-ENOMEM);
	pending->operation.cancel = cancel_reading;
	pending->engine = async;
	pending->dport = *dport;
	pending->callback = callback;
	pending->arg = arg;
	reading_init(&pending->reading, port_number, options, false);
	node_hold(pending->reading.options.node);
	error = engine_enter(async);
	if (!error) {
		error = begin_on_engine_unlocking(pending, id);
		engine_leave(async);
	}
	if (error)
		free_engine_reading(pending);
	return counters_fail(error);
}
