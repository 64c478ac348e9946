/* SPDX-License-Identifier: BSD-2-Clause */

/* Starts and completes a reading of the ports of a fabric. */

#include "counters/fabric_reading.h"

#include "base/export.h"
#include "base/report.h"
#include "base/reserved.h"
#include "engine/timers.h"

#include <errno.h>
#include <stdlib.h>

/* Nodes that are read at once: the most requests that are queued or in flight. */
#define WALKS     1024
#define LEAVE_OUT 15u

/* --- nodes and the end ---------------------------------------------------------- */

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
	free_reading(reading);
	counters_fail(error);
	done(async, error, &counters->shown, arg);
	if (is_freed)
		fabric_counters_destroy(counters);
}

static void cancel_requests(struct fabric_reading *reading)
{
	int cancel_state = engine_enter_again(reading->async);

	list_for_each (entry, &reading->walks)
		engine_cancel(reading->async, list_entry(entry, struct walk, entry)->id);
	engine_leave(reading->async, cancel_state);
}

void reading_end(struct fabric_reading *reading, int error)
{
	if (reading->error)
		return;
	reading->error = error;
	cancel_requests(reading);
}

static void limit_reached(struct limits *limits, int error)
{
	reading_end(list_entry(limits, struct fabric_reading, limits), error);
}

static void cancelled(struct engine_operation *operation)
{
	reading_end(list_entry(operation, struct fabric_reading, operation), -ECANCELED);
}

void reading_proceed(struct fabric_reading *reading)
{
	const struct fabric_counters *counters = reading->counters;

	while (reading->active < WALKS && reading->next < counters->node_count)
		reading->active += walk_begin(reading, counters->nodes[reading->next++]);
	if (!reading->active)
		complete(reading);
}

/* The first call of the thread that processes the engine. */
static void start(struct engine_operation *operation)
{
	struct fabric_reading *reading =
		list_entry(operation, struct fabric_reading, operation);

	if (engine_operation_is_cancelled(reading->async, operation))
		reading->error = -ECANCELED;
	reading_proceed(reading);
}

/* --- the calls -------------------------------------------------------------------- */

static bool are_options(const struct mad_fabric_counters_options *options)
{
	if (!is_reserved(options->reserved) || !is_cancel(options->cancel))
		return false;
	return !(options->leave_out & ~LEAVE_OUT) && options->timeout_ms >= 0 &&
	       (!options->counters || options->counters & MAD_COUNTERS_ALL);
}

static struct fabric_reading *create_reading(struct mad_async *async,
					     struct fabric_counters *counters,
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
	reading->operation.cancel = cancelled;
	reading->limits.reached = limit_reached;
	list_init(&reading->walks);
	list_init(&reading->free);
	return reading;
}

/* Whether the classes of the requests are registered. The lock is held. */
static bool has_classes(const struct fabric_reading *reading)
{
	const struct handle *handle = &reading->async->port->handle;

	return handle_agent(handle, IB_PERFORMANCE_CLASS) >= 0 &&
	       (!reading->options.check_guid || handle_agent(handle, IB_SMI_CLASS) >= 0);
}

static int begin(struct fabric_reading *reading, uint64_t *id)
{
	struct fabric_counters *counters = reading->counters;
	int cancel_state, error = engine_enter(reading->async, &cancel_state);

	if (error)
		return error;
	if (!has_classes(reading))
		error = -EPROTONOSUPPORT;
	else
		error = operation_begin(reading->async, &reading->operation, id);
	if (!error) {
		counters->reading = reading;
		counters->engine = reading->async;
		counters->id = reading->operation.id;
		counters->readings++;
		counters->summary =
			(struct mad_fabric_counters_summary){.begin_us = (uint64_t)clock_us()};
		limits_begin(&reading->limits, reading->async, reading->options.time_limit_ms,
			     reading->options.cancel, reading->options.m_key);
		operation_later(reading->async, &reading->operation, start);
	}
	engine_leave(reading->async, cancel_state);
	return error;
}

static int submit(struct mad_async *async, struct mad_fabric_counters *shown,
		  const struct mad_fabric_counters_options *options,
		  mad_fabric_counters_fn *done, void *arg, uint64_t *id)
{
	struct fabric_counters *counters = fabric_counters_of(shown);
	struct fabric_reading *reading;
	int error;

	if (!async || !counters || !done || (options && !are_options(options)))
		return counters_fail(-EINVAL);
	if (counters->reading)
		return counters_fail(-EBUSY);
	reading = create_reading(async, counters, options);
	if (!reading)
		return counters_fail(-ENOMEM);
	reading->done = done;
	reading->arg = arg;
	error = begin(reading, id);
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
	return submit(async, counters, options, done, arg, id);
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
	error = submit(async, counters, options, keep_error, &result, NULL);
	if (!error)
		mad_async_wait(async, -1);
	mad_async_free(async); /* calls back the requests in flight if the device is gone */
	if (!error && !result)
		failure_store(&before);
	return counters_fail(error ? error : result);
}
