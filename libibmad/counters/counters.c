/* SPDX-License-Identifier: BSD-2-Clause */

/* Reads the counters of a port, by blocking calls and on an engine, and resets them. */

#include "base/export.h"
#include "base/report.h"
#include "engine/async.h"
#include "counters/reading.h"

#include <errno.h>
#include <stdlib.h>

/* --- blocking ------------------------------------------------------------------- */

/*
 * Sends a request. mad_rpc_message() has stored its failure. The caller frees the response in
 * message.
 */
static struct mad_outcome ask(struct ibmad_port *port, const ib_portid_t *dport, ib_rpc_t *rpc,
			      const uint8_t *data, struct mad_message *message)
{
	ib_portid_t to = *dport;
	struct mad_outcome outcome = {0};

	if (mad_rpc_message(port, rpc, &to, data, IB_PC_DATA_SZ, message)) {
		outcome.failure = *mad_last_failure();
	} else if (message->length > IB_PC_DATA_OFFS) {
		outcome.data = message->mad + IB_PC_DATA_OFFS;
		outcome.size = message->length - IB_PC_DATA_OFFS;
	}
	return outcome;
}

/*
 * The result of a blocking call. A call that succeeds restores the failure before it, because
 * requests that a node refused have changed it.
 */
static int end(const struct reading *reading, const struct mad_failure *before, int error)
{
	if (error)
		return reading_fail(reading, error);
	failure_store(before);
	return 0;
}

/* Reads ClassPortInfo, unless the node is known. */
static int learn_abilities(struct ibmad_port *port, const ib_portid_t *dport,
			   struct reading *reading)
{
	struct mad_message message = {0};
	uint8_t data[IB_PC_DATA_SZ];
	struct mad_outcome outcome;
	ib_rpc_t rpc;
	int error;

	if (node_recall(reading->options.node, &reading->abilities) ||
	    !reading_needs_class_port_info(reading))
		return 0;
	rpc = reading_request(reading, CLASS_PORT_INFO, data);
	outcome = ask(port, dport, &rpc, data, &message);
	error = reading_take_class_port_info(reading, &outcome);
	mad_message_free(&message);
	if (!error)
		node_learn(reading->options.node, &reading->abilities);
	return error;
}

static int read_all(struct ibmad_port *port, const ib_portid_t *dport, struct reading *reading)
{
	int error = learn_abilities(port, dport, reading), source;

	if (error)
		return error;
	while ((source = reading_next(reading, &error)) >= 0) {
		struct mad_message message = {0};
		uint8_t data[IB_PC_DATA_SZ];
		ib_rpc_t rpc = reading_request(
			reading, counter_source_attribute((enum counter_source)source), data);
		struct mad_outcome outcome = ask(port, dport, &rpc, data, &message);

		error = reading_take(reading, (enum counter_source)source, &outcome);
		mad_message_free(&message);
		if (error)
			break;
	}
	return error;
}

EXPORT int mad_counters_read(struct ibmad_port *port, const ib_portid_t *dport,
			     unsigned port_number, const struct mad_counters_options *options,
			     struct mad_counters *counters, size_t size)
{
	const struct mad_failure before = *mad_last_failure();
	struct mad_counters_details details = {0};
	struct mad_counters read = {0};
	struct reading reading;
	int error = -EINVAL;

	reading_init(&reading, port_number, options);
	reading.counters = &read;
	if (reading.groups && options->details_to)
		reading.details = &details;
	if (port && (counters || reading.groups) &&
	    reading_is_valid(dport, port_number, options))
		error = read_all(port, dport, &reading);
	reading_complete(&reading);
	if (counters) {
		if (size < sizeof(read))
			read.size = (uint32_t)size;
		memset(counters, 0, size);
		memcpy(counters, &read, read.size);
	}
	return end(&reading, &before, error);
}

/* --- reset ---------------------------------------------------------------------- */

static void set_select(uint8_t *data, enum counter_source source, uint64_t select)
{
	if (source == SOURCE_SPEEDS) {
		mad_set_field64(data, 0, IB_PESC_COUNTER_SELECT_F, select);
		return;
	}
	mad_set_field(data, 0, IB_PC_COUNTER_SELECT_F, select & UINT16_MAX);
	if (source == SOURCE_EXTENDED)
		mad_set_field(data, 0, IB_PC_EXT_COUNTER_SELECT2_F, (uint32_t)(select >> 16));
	else if (source == SOURCE_BASIC)
		mad_set_field(data, 0, IB_PC_COUNTER_SELECT2_F, (uint32_t)(select >> 16));
}

static int reset_source(struct ibmad_port *port, const ib_portid_t *dport,
			struct reading *reading, enum counter_source source)
{
	uint64_t wanted = reading_wanted(reading, source);
	uint64_t select = counter_source_select(source, wanted);
	struct mad_message message = {0};
	uint8_t data[IB_PC_DATA_SZ];
	ib_rpc_t rpc = reading_request(reading, counter_source_attribute(source), data);
	struct mad_outcome outcome;

	rpc.method = IB_MAD_METHOD_SET;
	set_select(data, source, select);
	outcome = ask(port, dport, &rpc, data, &message);
	mad_message_free(&message);
	reading->failure = outcome.failure;
	reading->asked |= (uint16_t)(1U << source);
	if (reading_note_refusal(reading, source, &outcome))
		return 0;
	if (!outcome.failure.error)
		reading->present |= wanted;
	return outcome.failure.error;
}

EXPORT int mad_counters_reset(struct ibmad_port *port, const ib_portid_t *dport,
			      unsigned port_number, const struct mad_counters_options *options)
{
	const struct mad_failure before = *mad_last_failure();
	struct reading reading;
	int error, source;

	reading_init(&reading, port_number, options);
	reading.groups = 0;
	if (!port || !reading_is_valid(dport, port_number, options))
		return counters_fail(-EINVAL);
	error = learn_abilities(port, dport, &reading);
	while (!error && (source = reading_next(&reading, &error)) >= 0)
		error = reset_source(port, dport, &reading, (enum counter_source)source);
	return end(&reading, &before, error);
}

/* --- on an engine --------------------------------------------------------------- */

/* The members below "submit" belong to the thread that processes the engine. */
struct pending {
	struct engine_operation operation;
	struct mad_async *engine;
	ib_portid_t dport;
	mad_counters_fn *callback;
	void *arg;
	uint64_t id; /* of its request, unless it waits */
	struct reading reading;
	struct list waiting; /* in the list of the node */
	bool waits;          /* for the ClassPortInfo that another reading has requested */
	bool asks;           /* has requested ClassPortInfo, for which others may wait */
	bool cancelled;
	uint8_t source;            /* enum counter_source: of the request */
	struct mad_counters *kept; /* the counters, if they need more than one response */
	struct mad_counters_details details[];
};

static void release(struct pending *pending)
{
	node_release(pending->reading.options.node);
	free(pending->kept);
	free(pending);
}

static void finish(struct pending *pending, int error)
{
	struct reading *reading = &pending->reading;
	struct mad_counters none = {0};

	if (engine_operation_end(pending->engine, &pending->operation)) {
		error = -ECANCELED;
		reading->status = 0;
	}
	if (!reading->counters)
		reading->counters = &none;
	reading_complete(reading);
	reading_fail(reading, error);
	pending->callback(pending->engine, error, reading->counters, pending->arg);
	release(pending);
}

/* A request of a callback, which the thread that processes the engine calls. */
static int submit(struct pending *pending, unsigned attribute, mad_async_fn *callback)
{
	uint8_t data[IB_PC_DATA_SZ];
	ib_rpc_t rpc = reading_request(&pending->reading, attribute, data);

	return mad_async_submit(pending->engine, &rpc, &pending->dport, data, sizeof(data),
				callback, pending, &pending->id);
}

static struct mad_outcome outcome_of(const struct mad_reply *reply, unsigned attribute)
{
	struct mad_outcome outcome = {.data = reply->data, .size = reply->data_size};

	if (reply->error)
		outcome.failure = (struct mad_failure){.error = reply->error,
						       .mgmt_class = IB_PERFORMANCE_CLASS,
						       .method = IB_MAD_METHOD_GET,
						       .attribute = attribute,
						       .status = reply->status,
						       .transmissions = reply->transmissions,
						       .elapsed_ms = reply->elapsed_ms};
	return outcome;
}

static void response_came(struct mad_async *engine, const struct mad_reply *reply, void *arg);

/* Requests the next attribute, or ends the reading. */
static void proceed(struct pending *pending, int error)
{
	int source = -1;

	if (pending->cancelled)
		error = -ECANCELED;
	if (!error)
		source = reading_next(&pending->reading, &error);
	if (source >= 0) {
		pending->source = (uint8_t)source;
		error = submit(pending, counter_source_attribute((enum counter_source)source),
			       response_came);
	}
	if (error || source < 0)
		finish(pending, error);
}

/*
 * Copies the counters, so that they exist after the callback, if the reading is not complete.
 */
static int keep(struct pending *pending)
{
	int error;

	if (pending->kept || reading_next(&pending->reading, &error) < 0)
		return 0;
	pending->kept = malloc(sizeof(*pending->kept));
	if (!pending->kept)
		return -ENOMEM;
	*pending->kept = *pending->reading.counters;
	pending->reading.counters = pending->kept;
	return 0;
}

static void response_came(struct mad_async *engine, const struct mad_reply *reply, void *arg)
{
	struct pending *pending = arg;
	enum counter_source source = pending->source;
	struct mad_outcome outcome = outcome_of(reply, counter_source_attribute(source));
	struct mad_counters counters = {0};
	int error;

	(void)engine;
	if (!pending->reading.counters)
		pending->reading.counters = &counters;
	error = reading_take(&pending->reading, source, &outcome);
	if (!error)
		error = keep(pending);
	proceed(pending, error);
}

/* --- ClassPortInfo, which several readings of a node may wait for ------------------ */

static void class_port_info_came(struct mad_async *engine, const struct mad_reply *reply,
				 void *arg);

/*
 * Removes readings that wait for the ClassPortInfo of this one: all, or those that come before
 * the first one that is not cancelled, which is returned. Without one, NULL: this one is not
 * waited for any more.
 */
static struct pending *take_waiting(struct pending *pending, bool all, struct list *taken)
{
	struct mad_counters_node *node = pending->reading.options.node;
	int cancel_state = engine_enter_again(pending->engine);
	struct pending *other = NULL;
	struct list *entry;

	list_init(taken);
	pthread_mutex_lock(&node->lock);
	while ((entry = list_pop(&node->waiting))) {
		other = list_entry(entry, struct pending, waiting);
		other->waits = false;
		if (!all && !other->operation.cancelled)
			break;
		list_add_last(taken, entry);
	}
	pending->asks = false;
	if (entry)
		other->asks = true;
	else
		node->asker = NULL;
	pthread_mutex_unlock(&node->lock);
	engine_leave(pending->engine, cancel_state);
	return entry ? other : NULL;
}

/* Continues readings that were taken, or ends them. */
static void continue_taken(struct list *taken, const struct pending *source, int error)
{
	struct pending *other;
	struct list *entry;

	while ((entry = list_pop(taken))) {
		other = list_entry(entry, struct pending, waiting);
		other->reading.abilities = source->reading.abilities;
		other->reading.status = source->reading.status;
		other->reading.failure = source->reading.failure;
		proceed(other, error);
	}
}

/*
 * The request of this reading was cancelled, or is to be: the first reading that waits for its
 * response makes the request anew. If it cannot, all that wait end.
 */
static void hand_over(struct pending *pending)
{
	struct list taken;
	struct pending *next = take_waiting(pending, false, &taken);
	int error;

	continue_taken(&taken, pending, -ECANCELED);
	if (!next)
		return;
	error = submit(next, CLASS_PORT_INFO, class_port_info_came);
	if (!error)
		return;
	take_waiting(next, true, &taken);
	continue_taken(&taken, next, error);
	finish(next, error);
}

static void class_port_info_came(struct mad_async *engine, const struct mad_reply *reply,
				 void *arg)
{
	struct mad_outcome outcome = outcome_of(reply, CLASS_PORT_INFO);
	struct pending *pending = arg;
	struct list taken;
	int error = reading_take_class_port_info(&pending->reading, &outcome);

	(void)engine;
	if (!error)
		node_learn(pending->reading.options.node, &pending->reading.abilities);
	if (pending->asks && error == -ECANCELED) {
		hand_over(pending);
	} else if (pending->asks) {
		take_waiting(pending, true, &taken);
		continue_taken(&taken, pending, error);
	}
	proceed(pending, error);
}

/* --- cancel --------------------------------------------------------------------- */

static void cancel(struct engine_operation *operation)
{
	struct pending *pending = list_entry(operation, struct pending, operation);
	struct mad_counters_node *node = pending->reading.options.node;
	int cancel_state;

	pending->cancelled = true;
	if (pending->waits) {
		pthread_mutex_lock(&node->lock);
		list_remove(&pending->waiting);
		pthread_mutex_unlock(&node->lock);
		finish(pending, -ECANCELED);
		return;
	}
	if (pending->asks)
		hand_over(pending);
	cancel_state = engine_enter_again(pending->engine);
	engine_cancel(pending->engine, pending->id);
	engine_leave(pending->engine, cancel_state);
}

/* --- begin ---------------------------------------------------------------------- */

/* The first request. The lock is held, and not released if this fails. */
static int submit_unlocking(struct pending *pending, unsigned attribute, mad_async_fn *callback)
{
	uint8_t data[IB_PC_DATA_SZ];
	ib_rpc_t rpc = reading_request(&pending->reading, attribute, data);

	return engine_submit_unlocking(pending->engine, CALL_ASYNC_SUBMIT, &rpc,
				       &pending->dport, data, sizeof(data), callback, pending,
				       &pending->id);
}

/* The first attribute if ClassPortInfo is known, or not needed. */
static int begin_unlocking(struct pending *pending)
{
	int error, source = reading_next(&pending->reading, &error);

	if (source < 0)
		return error;
	pending->source = (uint8_t)source;
	return submit_unlocking(pending, counter_source_attribute((enum counter_source)source),
				response_came);
}

/*
 * Requests ClassPortInfo, or waits for the one that the engine has requested. The thread that
 * processes the engine changes the reading once the node is unlocked, or the request written.
 */
static int learn_unlocking(struct pending *pending)
{
	struct mad_counters_node *node = pending->reading.options.node;
	bool known, waits, asks;
	int error;

	pthread_mutex_lock(&node->lock);
	pending->reading.abilities = node->abilities;
	known = node->known;
	waits = pending->waits = !known && node->asker == pending->engine;
	asks = pending->asks = !known && !node->asker;
	if (waits)
		list_add_last(&node->waiting, &pending->waiting);
	if (asks)
		node->asker = pending->engine;
	pthread_mutex_unlock(&node->lock);
	if (known)
		return begin_unlocking(pending);
	if (waits)
		return 0;
	error = submit_unlocking(pending, CLASS_PORT_INFO, class_port_info_came);
	if (error && asks) {
		pthread_mutex_lock(&node->lock);
		node->asker = NULL;
		pthread_mutex_unlock(&node->lock);
	}
	return error;
}

static int start_unlocking(struct pending *pending, uint64_t *id)
{
	struct mad_counters_node *node = pending->reading.options.node;
	struct mad_async *engine = pending->engine;
	int error = operation_begin(engine, &pending->operation, id);

	if (error)
		return error;
	if (!reading_needs_class_port_info(&pending->reading)) {
		node_recall(node, &pending->reading.abilities);
		error = begin_unlocking(pending);
	} else if (node) {
		error = learn_unlocking(pending);
	} else {
		error = submit_unlocking(pending, CLASS_PORT_INFO, class_port_info_came);
	}
	if (!error)
		return 0;
	operation_end(engine, &pending->operation);
	if (error == -EPROTONOSUPPORT)
		engine_report_class_unlocking(engine, "mad_counters_submit",
					      IB_PERFORMANCE_CLASS);
	return error;
}

EXPORT int mad_counters_submit(struct mad_async *async, const ib_portid_t *dport,
			       unsigned port_number, const struct mad_counters_options *options,
			       mad_counters_fn *callback, void *arg, uint64_t *id)
{
	struct pending *pending;
	int error, cancel_state;

	if (!async || !callback || !reading_is_valid(dport, port_number, options))
		return counters_fail(-EINVAL);
	pending = calloc(1,
			 sizeof(*pending) +
				 (options && options->details ? sizeof(*pending->details) : 0));
	if (!pending)
		return counters_fail(-ENOMEM);
	reading_init(&pending->reading, port_number, options);
	if (pending->reading.groups)
		pending->reading.details = pending->details;
	pending->operation.cancel = cancel;
	pending->engine = async;
	pending->dport = *dport;
	pending->callback = callback;
	pending->arg = arg;
	node_hold(pending->reading.options.node);
	error = engine_enter(async, &cancel_state);
	if (!error) {
		error = start_unlocking(pending, id);
		engine_leave(async, cancel_state);
	}
	if (error)
		release(pending);
	return counters_fail(error);
}
