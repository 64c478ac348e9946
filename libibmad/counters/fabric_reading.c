/* SPDX-License-Identifier: BSD-2-Clause */

/* Starts and completes a reading of the ports of a fabric. */

#include "counters/fabric_reading.h"

#include "base/export.h"
#include "base/report.h"
#include "port/timers.h"

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

static void begin_walks(struct fabric_reading *reading)
{
	const struct mad_fabric_counters *counters = reading->counters;

	while (reading->active < WALKS && reading->next < counters->node_count)
		reading->active += walk_begin(reading, counters->nodes[reading->next++]);
}

void reading_proceed(struct fabric_reading *reading)
{
	begin_walks(reading);
	if (!reading->active && !reading->starting && limits_end(&reading->limits))
		complete(reading);
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
	bool is_freed;

	if (!error) {
		if (mad_cancel_is_set(reading->options.cancel))
			reading->error = -ECANCELED;
		if (limits_end(&reading->limits))
			complete(reading);
		return 0;
	}
	limits_end(&reading->limits);
	counters->summary.error = error;
	counters->summary.end_us = (uint64_t)clock_us();
	is_freed = counters->is_freed; /* by the program's filter */
	free_reading(reading);
	if (is_freed)
		fabric_counters_destroy(counters);
	return error;
}

EXPORT int mad_fabric_counters_submit(struct mad_async *async,
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
	begin_walks(reading);
	reading->starting = false;
	return reading->active ? 0 : end_at_once(reading);
}

EXPORT void mad_fabric_counters_cancel(struct mad_fabric_counters *counters)
{
	if (counters && counters->reading)
		reading_end(counters->reading, -ECANCELED);
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
	error = mad_fabric_counters_submit(async, counters, options, keep_error, &result);
	if (!error)
		mad_async_wait(async, -1);
	mad_async_free(async); /* calls back the requests in flight if the device is gone */
	if (!error)
		error = result;
	return error ? fail(error) : 0;
}
