/* SPDX-License-Identifier: BSD-2-Clause */

/* Reads the counters of a port, by blocking calls and on an engine, and resets them. */

#include "base/export.h"
#include "base/report.h"
#include "counters/reading.h"
#include "engine/async.h"

#include <errno.h>
#include <stdlib.h>

/* --- blocking ------------------------------------------------------------------- */

/*
 * Sends the requests of a reading one after the other. If it succeeds, it restores the failure
 * before it, because requests that a node refused have changed it.
 */
static int carry_out(struct ibmad_port *port, const ib_portid_t *dport, struct reading *reading)
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
		error = carry_out(port, dport, &reading);
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
	return carry_out(port, dport, &reading);
}

/* --- on an engine --------------------------------------------------------------- */

/* A reading on an engine. Once begun, it belongs to the thread that processes the engine. */
struct engine_reading {
	struct engine_operation operation;
	struct mad_async *engine;
	ib_portid_t dport;
	mad_counters_fn *callback;
	void *arg;
	enum counter_source source; /* of its request in flight */
	uint64_t id;                /* of this request */
	struct inquiry *inquiry;    /* whose response it waits for; or NULL */
	struct list waiting;        /* in the inquiry's */
	struct reading reading;
};

/*
 * A request for ClassPortInfo, whose response is for all readings of an engine that use a node.
 * It belongs to the thread that processes the engine. The node's lock guards node->inquiry,
 * since other engines may use the node; their readings ask themselves.
 */
struct inquiry {
	struct mad_async *engine;
	struct list
		waiting; /* the readings; empty: they were cancelled, and so is the request */
	uint64_t id;
};

static void free_engine_reading(struct engine_reading *own)
{
	node_release(own->reading.options.node);
	free(own);
}

static void finish_reading(struct engine_reading *own, int error)
{
	struct reading *reading = &own->reading;

	if (engine_operation_end(own->engine, &own->operation)) {
		error = -ECANCELED;
		reading->counters.status = 0;
	}
	reading_complete(reading);
	reading_fail(reading, error);
	own->callback(own->engine, error, &reading->counters, own->arg);
	free_engine_reading(own);
}

static void proceed_reading(struct engine_reading *own, int error);

static int take_reply(struct engine_reading *own, const struct mad_reply *reply)
{
	failure_of_reply(reply, IB_PERFORMANCE_CLASS, IB_MAD_METHOD_GET,
			 counter_source_attribute(own->source));
	return reading_take(&own->reading, own->source, reply->error, reply->data,
			    reply->data_size);
}

static void response_came(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	struct engine_reading *own = arg;

	(void)engine;
	proceed_reading(own, take_reply(own, reply));
}

static int send_request(struct engine_reading *own, mad_async_fn *callback, void *arg,
			uint64_t *id)
{
	uint8_t data[IB_PC_DATA_SZ];
	ib_rpc_t rpc = reading_request(&own->reading, own->source, data);
	int error = mad_async_submit(own->engine, &rpc, &own->dport, data, sizeof(data),
				     callback, arg, id);

	own->reading.counters.requests += !error;
	return error;
}

static void end_inquiry(struct mad_counters_node *node, const struct inquiry *inquiry)
{
	pthread_mutex_lock(&node->lock);
	if (node->inquiry == inquiry)
		node->inquiry = NULL;
	pthread_mutex_unlock(&node->lock);
}

static void class_port_info_came(struct mad_async *engine, const struct mad_reply *reply,
				 void *arg)
{
	struct inquiry *inquiry = arg;
	struct list *entry = list_first(&inquiry->waiting);

	(void)engine;
	if (entry)
		end_inquiry(
			list_entry(entry, struct engine_reading, waiting)->reading.options.node,
			inquiry);
	while ((entry = list_pop(&inquiry->waiting))) {
		struct engine_reading *own = list_entry(entry, struct engine_reading, waiting);

		own->inquiry = NULL;
		/* after MAD_ASYNC_ALL, readings that have begun since ask again */
		proceed_reading(own, reply->error == -ECANCELED ? 0 : take_reply(own, reply));
	}
	free(inquiry);
}

/* Waits for the response to a request of another reading of the engine, or sends the request.
 */
static int inquire(struct engine_reading *own)
{
	struct mad_counters_node *node = own->reading.options.node;
	struct inquiry *inquiry;
	int error;

	pthread_mutex_lock(&node->lock);
	inquiry = node->inquiry;
	if (inquiry && inquiry->engine != own->engine)
		inquiry = NULL;
	pthread_mutex_unlock(&node->lock);
	if (!inquiry) {
		inquiry = malloc(sizeof(*inquiry));
		if (!inquiry)
			return -ENOMEM;
		inquiry->engine = own->engine;
		list_init(&inquiry->waiting);
		error = send_request(own, class_port_info_came, inquiry, &inquiry->id);
		if (error) {
			free(inquiry);
			return error;
		}
		pthread_mutex_lock(&node->lock);
		if (!node->inquiry)
			node->inquiry = inquiry;
		pthread_mutex_unlock(&node->lock);
	}
	own->inquiry = inquiry;
	list_add_last(&inquiry->waiting, &own->waiting);
	return 0;
}

/* Requests the next attribute, or ends the reading. */
static void proceed_reading(struct engine_reading *own, int error)
{
	if (engine_operation_is_cancelled(own->engine, &own->operation))
		error = -ECANCELED;
	own->source = error ? SOURCE_NONE : reading_next(&own->reading, &error);
	if (own->source == SOURCE_CLASS_PORT_INFO && own->reading.options.node)
		error = inquire(own);
	else if (own->source != SOURCE_NONE)
		error = send_request(own, response_came, own, &own->id);
	if (error || own->source == SOURCE_NONE)
		finish_reading(own, error);
}

static void begin_reading(struct engine_operation *operation)
{
	proceed_reading(list_entry(operation, struct engine_reading, operation), 0);
}

static void cancel_reading(struct engine_operation *operation)
{
	struct engine_reading *own = list_entry(operation, struct engine_reading, operation);
	struct inquiry *inquiry = own->inquiry;
	uint64_t id = inquiry ? inquiry->id : own->id;
	int cancel_state;

	if (inquiry) {
		list_remove(&own->waiting);
		if (list_is_empty(&inquiry->waiting))
			end_inquiry(own->reading.options.node, inquiry);
	}
	if (!inquiry || list_is_empty(&inquiry->waiting)) {
		cancel_state = engine_enter_again(own->engine);
		engine_cancel(own->engine, id);
		engine_leave(own->engine, cancel_state);
	}
	if (inquiry)
		finish_reading(own, -ECANCELED);
}

static int begin_on_engine_unlocking(struct engine_reading *own, uint64_t *id)
{
	struct mad_async *engine = own->engine;
	int error = engine_why_ended(engine);

	if (!error && handle_agent(&engine->port->handle, IB_PERFORMANCE_CLASS) < 0) {
		engine_report_class_unlocking(engine, "mad_counters_submit",
					      IB_PERFORMANCE_CLASS);
		return -EPROTONOSUPPORT;
	}
	if (!error && reading_next(&own->reading, &error) != SOURCE_NONE)
		error = operation_begin(engine, &own->operation, id);
	if (!error)
		operation_later(engine, &own->operation, begin_reading);
	return error;
}

EXPORT int mad_counters_submit(struct mad_async *async, const ib_portid_t *dport,
			       unsigned port_number, const struct mad_counters_options *options,
			       mad_counters_fn *callback, void *arg, uint64_t *id)
{
	struct engine_reading *own;
	int error, cancel_state;

	if (!async || !callback || !reading_is_valid(dport, port_number, options))
		return counters_fail(-EINVAL);
	own = calloc(1, sizeof(*own));
	if (!own)
		return counters_fail(-ENOMEM);
	own->operation.cancel = cancel_reading;
	own->engine = async;
	own->dport = *dport;
	own->callback = callback;
	own->arg = arg;
	reading_init(&own->reading, port_number, options, false);
	node_hold(own->reading.options.node);
	error = engine_enter(async, &cancel_state);
	if (!error) {
		error = begin_on_engine_unlocking(own, id);
		engine_leave(async, cancel_state);
	}
	if (error)
		free_engine_reading(own);
	return counters_fail(error);
}
