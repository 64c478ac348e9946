/* SPDX-License-Identifier: BSD-2-Clause */

/* Blocking requests to the SA with a time limit or a struct mad_cancel. */

#include "sa/sa.h"

#include "base/export.h"
#include "base/report.h"
#include "calls/operation_limits.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct result {
	void *record; /* becomes size bytes of the record; NULL: none */
	size_t size;
	struct mad_sa_table *table; /* of a method with a table, after success */
	int error;
};

struct limited {
	struct limits limits; /* first */
	struct mad_async *engine;
	uint64_t id;
	int reached; /* the error of the limit that ended the request; 0: none */
	struct result *result;
	struct mad_sa_query *query;
	int method;
};

static void limit_reached(struct limits *limits, int error)
{
	struct limited *limited = list_entry(limits, struct limited, limits);

	if (!limited->reached && !mad_sa_cancel(limited->engine, limited->id))
		limited->reached = error;
}

/* mad_async_wait() waits for the request of the limits. */
static void limits_finished(struct limits *limits)
{
	(void)limits;
}

static void store(const struct limited *limited, const struct mad_sa_response *response,
		  int error)
{
	const struct mad_failure failure = {
		.error = error,
		.mgmt_class = IB_SA_CLASS,
		.method = (unsigned)limited->method,
		.attribute = limited->query->attribute,
		.status = error == -EIO ? response->status : 0,
		.transmissions = response->reply->transmissions,
		.elapsed_ms = response->reply->elapsed_ms,
		.kind = limited->reached ? MAD_FAILURE_OTHER : MAD_FAILURE_REQUEST,
	};

	failure_store(&failure);
}

static void done(struct mad_async *engine, const struct mad_sa_response *response, void *arg)
{
	struct limited *limited = arg;
	struct result *result = limited->result;
	int error = limited->reached ? limited->reached : response->error;

	(void)engine;
	if (limited->limits.engine)
		limits_end(&limited->limits);
	limited->query->status = response->status;
	if (!error && result->record && response->record_size < result->size)
		error = -EBADMSG;
	else if (!error && result->record)
		memcpy(result->record, response->record, result->size);
	result->table = response->table;
	result->error = error;
	if (error)
		store(limited, response, error);
}

static int run(const struct ibmad_port *port, struct mad_sa_query *query, int method,
	       const struct mad_sa_limits *limits, struct result *result)
{
	struct limited limited = {.limits.reached = limit_reached,
				  .limits.finished = limits_finished,
				  .engine = mad_async_create(port_of(port)),
				  .result = result,
				  .query = query,
				  .method = method};
	int error;

	if (!limited.engine)
		return sa_query_fail(query, method, -errno);
	error = mad_sa_submit(limited.engine, method, query, done, &limited, &limited.id);
	if (!error) {
		/* no other thread processes the engine, so that the request is not called back
		 * yet */
		error = limits_begin(&limited.limits, limited.engine, limits->time_limit_ms,
				     limits->cancel, smp_mkey_get(port));
		if (error)
			mad_sa_cancel(limited.engine, limited.id);
		mad_async_wait(limited.engine, -1);
	} else {
		sa_query_fail(query, method, error);
	}
	mad_async_free(limited.engine);
	return error ? error : result->error;
}

static bool are_arguments(const struct ibmad_port *port, int method,
			  const struct mad_sa_query *query, const struct mad_sa_limits *limits,
			  const void *record, size_t size, struct mad_sa_table **table)
{
	if (!port || !query || !limits || limits->reserved[0] || limits->reserved[1] ||
	    !sa_query_is_valid(query, method))
		return false;
	if (sa_query_is_for_table(method))
		return table != NULL;
	return size <= IB_SA_DATA_SIZE && (record || !size);
}

EXPORT int mad_sa_request(const struct ibmad_port *port, int method, struct mad_sa_query *query,
			  const struct mad_sa_limits *limits, void *record, size_t size,
			  struct mad_sa_table **table)
{
	struct result result = {.record = size ? record : NULL, .size = size};
	int error;

	if (table)
		*table = NULL;
	if (!are_arguments(port, method, query, limits, record, size, table))
		return sa_query_fail(query, method, -EINVAL);
	query->status = 0;
	if (sa_query_is_for_table(method))
		result.record = NULL;
	error = run(port, query, method, limits, &result);
	if (table)
		*table = result.table;
	return error;
}
