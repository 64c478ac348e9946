/* SPDX-License-Identifier: BSD-2-Clause */

/* Reads the counters of a port, by blocking calls and on an engine, and resets them. */

#include "base/export.h"
#include "base/report.h"
#include "counters/reading.h"

#include <errno.h>
#include <stdlib.h>

/* --- blocking ------------------------------------------------------------------- */

/*
 * Sends a request, and notes its error, which mad_rpc_message() has stored. The caller frees
 * the response in message.
 */
static struct mad_outcome ask(const struct ibmad_port *port, const ib_portid_t *dport,
			      struct reading *reading, ib_rpc_t *rpc, const uint8_t *data,
			      struct mad_message *message)
{
	ib_portid_t to = *dport;
	struct mad_outcome outcome = {0};

	outcome.error = mad_rpc_message(port, rpc, &to, data, IB_PC_DATA_SZ, message);
	reading->failed = outcome.error;
	outcome.status = (unsigned)rpc->rstatus;
	if (!outcome.error && message->length > IB_PC_DATA_OFFS) {
		outcome.data = message->mad + IB_PC_DATA_OFFS;
		outcome.size = message->length - IB_PC_DATA_OFFS;
	}
	return outcome;
}

/*
 * Stores the error of a blocking call, unless it is that of a request. A call that succeeds
 * restores the failure before it, because requests that a node refused have changed it. Returns
 * the error.
 */
static int store_failure(const struct reading *reading, const struct mad_failure *before,
			 unsigned method, int error)
{
	const struct mad_failure failure = {.error = error,
					    .mgmt_class = IB_PERFORMANCE_CLASS,
					    .method = method,
					    .kind = MAD_FAILURE_OTHER};

	if (!error)
		failure_store(before);
	else if (error != reading->failed)
		failure_store(&failure);
	return error;
}

/* Reads ClassPortInfo, unless the node is known. */
static int learn_abilities(const struct ibmad_port *port, const ib_portid_t *dport,
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
	outcome = ask(port, dport, reading, &rpc, data, &message);
	error = reading_take_class_port_info(reading, &outcome);
	mad_message_free(&message);
	if (!error)
		node_learn(reading->options.node, &reading->abilities);
	return error;
}

static int read_all(const struct ibmad_port *port, const ib_portid_t *dport,
		    struct reading *reading)
{
	int error = learn_abilities(port, dport, reading), source;

	if (error)
		return error;
	while ((source = reading_next(reading, &error)) >= 0) {
		struct mad_message message = {0};
		uint8_t data[IB_PC_DATA_SZ];
		ib_rpc_t rpc = reading_request(
			reading, counter_source_attribute((enum counter_source)source), data);
		struct mad_outcome outcome = ask(port, dport, reading, &rpc, data, &message);

		error = reading_take(reading, (enum counter_source)source, &outcome);
		mad_message_free(&message);
		if (error)
			break;
	}
	return error;
}

EXPORT int mad_counters_read(const struct ibmad_port *port, const ib_portid_t *dport,
			     unsigned port_number, const struct mad_counters_options *options,
			     struct mad_counters *counters)
{
	const struct mad_failure before = *mad_last_failure();
	struct reading reading;
	int error = -EINVAL;

	reading_init(&reading, port_number, options);
	if (!counters)
		return store_failure(&reading, &before, IB_MAD_METHOD_GET, -EINVAL);
	memset(counters, 0, sizeof(*counters));
	reading.counters = counters;
	if (port && reading_is_valid(dport, port_number, options))
		error = read_all(port, dport, &reading);
	reading_complete(&reading);
	return store_failure(&reading, &before, IB_MAD_METHOD_GET, error);
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

static int reset_source(const struct ibmad_port *port, const ib_portid_t *dport,
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
	outcome = ask(port, dport, reading, &rpc, data, &message);
	mad_message_free(&message);
	reading->asked |= (uint8_t)(1U << source);
	if (reading_note_refusal(reading, source, &outcome))
		return 0;
	if (!outcome.error)
		reading->present |= wanted;
	return outcome.error;
}

EXPORT int mad_counters_reset(const struct ibmad_port *port, const ib_portid_t *dport,
			      unsigned port_number, const struct mad_counters_options *options)
{
	const struct mad_failure before = *mad_last_failure();
	struct reading reading;
	int error, source;

	reading_init(&reading, port_number, options);
	if (!port || !reading_is_valid(dport, port_number, options))
		return store_failure(&reading, &before, IB_MAD_METHOD_SET, -EINVAL);
	error = learn_abilities(port, dport, &reading);
	while (!error && (source = reading_next(&reading, &error)) >= 0)
		error = reset_source(port, dport, &reading, (enum counter_source)source);
	return store_failure(&reading, &before, IB_MAD_METHOD_SET, error);
}

/* --- on an engine --------------------------------------------------------------- */

struct mad_counters_reading {
	struct reading reading;
	struct mad_async *async;
	uint64_t id;         /* of its request, unless it waits */
	struct list waiting; /* in the list of the node */
	bool waits;          /* for the ClassPortInfo that another reading has requested */
	bool asks;           /* has requested ClassPortInfo, for which others may wait */
	bool cancelled;
	enum counter_source source;
	struct mad_counters *kept; /* the counters, if they need more than one response */
	ib_portid_t dport;
	mad_counters_fn *callback;
	void *arg;
};

static void release(struct mad_counters_reading *pending)
{
	node_release(pending->reading.options.node);
	free(pending->kept);
	free(pending);
}

static void finish(struct mad_async *async, struct mad_counters_reading *pending, int error)
{
	struct mad_counters none = {0};

	if (!pending->reading.counters)
		pending->reading.counters = &none;
	reading_complete(&pending->reading);
	pending->callback(async, error, pending->reading.counters, pending->arg);
	release(pending);
}

static int submit(struct mad_async *async, struct mad_counters_reading *pending,
		  unsigned attribute, mad_async_fn *callback)
{
	uint8_t data[IB_PC_DATA_SZ];
	ib_rpc_t rpc = reading_request(&pending->reading, attribute, data);

	return mad_async_submit(async, &rpc, &pending->dport, data, sizeof(data), callback,
				pending, &pending->id);
}

static void counters_came(struct mad_async *async, const struct mad_reply *reply, void *arg);

/* Requests the next attribute. If there is none, sets *is_complete, and returns the result. */
static int proceed(struct mad_async *async, struct mad_counters_reading *pending,
		   bool *is_complete)
{
	int error, source = reading_next(&pending->reading, &error);

	*is_complete = source < 0;
	if (source < 0)
		return error;
	pending->source = (enum counter_source)source;
	error = submit(async, pending, counter_source_attribute(pending->source),
		       counters_came);
	*is_complete = error != 0;
	return error;
}

static void continue_reading(struct mad_async *async, struct mad_counters_reading *pending,
			     int error)
{
	bool is_complete = true;

	if (pending->cancelled) {
		error = -ECANCELED;
		pending->reading.status = 0;
	}
	if (!error)
		error = proceed(async, pending, &is_complete);
	if (is_complete)
		finish(async, pending, error);
}

/*
 * Copies the counters, so that they exist after the callback, if the reading is not complete.
 */
static int keep(struct mad_counters_reading *pending)
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

static void counters_came(struct mad_async *async, const struct mad_reply *reply, void *arg)
{
	struct mad_outcome outcome = outcome_of(reply);
	struct mad_counters counters = {0};
	struct mad_counters_reading *pending = arg;
	struct reading *reading = &pending->reading;
	int error;

	if (!reading->counters)
		reading->counters = &counters;
	error = reading_take(reading, pending->source, &outcome);
	if (!error)
		error = keep(pending);
	continue_reading(async, pending, error);
}

/* Removes the readings that wait for the ClassPortInfo of this one. */
static void take_waiting(struct mad_counters_reading *pending, struct list *taken)
{
	struct mad_counters_node *node = pending->reading.options.node;
	struct list *entry;

	list_init(taken);
	if (!pending->asks)
		return;
	pthread_mutex_lock(&node->lock);
	pending->asks = false;
	node->asker = NULL;
	while ((entry = list_pop(&node->waiting))) {
		list_entry(entry, struct mad_counters_reading, waiting)->waits = false;
		list_add_last(taken, entry);
	}
	pthread_mutex_unlock(&node->lock);
}

static void class_port_info_came(struct mad_async *async, const struct mad_reply *reply,
				 void *arg)
{
	struct mad_outcome outcome = outcome_of(reply);
	struct mad_counters_reading *pending = arg, *other;
	struct list taken, *entry;
	int error = reading_take_class_port_info(&pending->reading, &outcome);

	if (!error)
		node_learn(pending->reading.options.node, &pending->reading.abilities);
	take_waiting(pending, &taken);
	while ((entry = list_pop(&taken))) {
		other = list_entry(entry, struct mad_counters_reading, waiting);
		other->reading.abilities = pending->reading.abilities;
		other->reading.status = pending->reading.status;
		continue_reading(async, other, error);
	}
	continue_reading(async, pending, error);
}

/*
 * Requests ClassPortInfo. The node is not locked meanwhile, because the callback locks the
 * node, and may come before this function returns. "turn" is that of the asker, or 0.
 */
static int ask_class_port_info(struct mad_async *async, struct mad_counters_reading *pending,
			       uint64_t turn)
{
	struct mad_counters_node *node = pending->reading.options.node;
	int error = submit(async, pending, CLASS_PORT_INFO, class_port_info_came);

	pthread_mutex_lock(&node->lock);
	if (node->asked == turn) {
		node->is_submitted = !error;
		if (error)
			node->asker = NULL;
	}
	pthread_mutex_unlock(&node->lock);
	node_release(node);
	return error;
}

/*
 * Waits for the ClassPortInfo that the engine has requested, or requests it. A reading waits
 * only after the request is submitted, so that no reading waits if the submission fails. False
 * if the node is known.
 */
static bool ask_or_wait(struct mad_async *async, struct mad_counters_reading *pending,
			int *error)
{
	struct mad_counters_node *node = pending->reading.options.node;
	bool known, waits;
	uint64_t turn = 0;

	*error = 0;
	pthread_mutex_lock(&node->lock);
	pending->reading.abilities = node->abilities;
	known = node->known;
	waits = !known && node->asker == async && node->is_submitted;
	if (waits) {
		pending->waits = true;
		list_add_last(&node->waiting, &pending->waiting);
	} else if (!known) {
		/* the callback may free the reading, and release the node */
		node->users++;
		if (!node->asker) {
			pending->asks = true;
			node->asker = async;
			node->is_submitted = false;
			turn = ++node->asked;
		}
	}
	pthread_mutex_unlock(&node->lock);
	if (!known && !waits)
		*error = ask_class_port_info(async, pending, turn);
	return !known;
}

static int begin(struct mad_async *async, struct mad_counters_reading *pending)
{
	bool is_complete;
	int error;

	if (!reading_needs_class_port_info(&pending->reading)) {
		node_recall(pending->reading.options.node, &pending->reading.abilities);
		return proceed(async, pending, &is_complete);
	}
	if (!pending->reading.options.node)
		return submit(async, pending, CLASS_PORT_INFO, class_port_info_came);
	if (ask_or_wait(async, pending, &error))
		return error;
	/* without a request, a reading completes only with an error */
	return proceed(async, pending, &is_complete);
}

EXPORT int mad_counters_submit(struct mad_async *async, const ib_portid_t *dport,
			       unsigned port_number, const struct mad_counters_options *options,
			       mad_counters_fn *callback, void *arg,
			       struct mad_counters_reading **reading)
{
	struct mad_counters_reading *pending;
	int error;

	if (!async || !callback || !reading_is_valid(dport, port_number, options))
		return -EINVAL;
	pending = calloc(1, sizeof(*pending));
	if (!pending)
		return -ENOMEM;
	reading_init(&pending->reading, port_number, options);
	pending->async = async;
	pending->dport = *dport;
	pending->callback = callback;
	pending->arg = arg;
	node_hold(pending->reading.options.node);
	if (reading)
		*reading = pending; /* the callback may come from here on */
	error = begin(async, pending);
	if (!error)
		return 0;
	if (reading)
		*reading = NULL;
	release(pending);
	return error;
}

/* --- cancel --------------------------------------------------------------------- */

/* The first reading that waits for the ClassPortInfo of this one requests it. */
static int hand_over(struct mad_counters_reading *pending)
{
	struct mad_counters_node *node = pending->reading.options.node;
	struct mad_counters_reading *other;
	struct list *entry;
	int error;

	pthread_mutex_lock(&node->lock);
	entry = list_pop(&node->waiting);
	if (!entry) {
		node->asker = NULL;
		pending->asks = false;
	}
	pthread_mutex_unlock(&node->lock);
	if (!entry)
		return 0;
	other = list_entry(entry, struct mad_counters_reading, waiting);
	error = submit(other->async, other, CLASS_PORT_INFO, class_port_info_came);
	pthread_mutex_lock(&node->lock);
	if (error) {
		list_add_first(&node->waiting, entry);
	} else {
		pending->asks = other->waits = false;
		other->asks = true;
	}
	pthread_mutex_unlock(&node->lock);
	return error;
}

/* Calls back a reading that waits: submits a request, and cancels it. */
static int stop_waiting(struct mad_counters_reading *pending)
{
	struct mad_counters_node *node = pending->reading.options.node;
	int error = submit(pending->async, pending, CLASS_PORT_INFO, class_port_info_came);

	if (error)
		return error;
	pthread_mutex_lock(&node->lock);
	list_remove(&pending->waiting);
	pending->waits = false;
	pthread_mutex_unlock(&node->lock);
	return 0;
}

/* Without memory, the reading completes with the request for which it waits. */
EXPORT void mad_counters_cancel(struct mad_counters_reading *reading)
{
	int error = 0;

	if (!reading || reading->cancelled)
		return;
	reading->cancelled = true;
	if (reading->asks)
		error = hand_over(reading);
	else if (reading->waits)
		error = stop_waiting(reading);
	if (!error)
		mad_async_cancel(reading->async, reading->id);
}
