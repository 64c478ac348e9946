/* SPDX-License-Identifier: BSD-2-Clause */

/* Blocking requests to the SA: requests on an engine of their own. */

#include "sa/sa.h"

#include "base/export.h"
#include "base/report.h"
#include "engine/async.h"

#include <errno.h>

struct blocking {
	struct limits limits; /* first */
	uint64_t id;
	int reached; /* the error of the limit that ended the request; 0: none */
	struct mad_sa_table *table;
	struct mad_failure failure;
};

static void limit_reached(struct limits *limits, int error)
{
	struct blocking *blocking = list_entry(limits, struct blocking, limits);

	if (!blocking->reached && !mad_async_cancel(limits->engine, blocking->id))
		blocking->reached = error;
}

static void done(struct mad_async *engine, const struct mad_sa_response *response, void *arg)
{
	struct blocking *blocking = arg;

	(void)engine;
	if (blocking->limits.engine)
		limits_end(&blocking->limits);
	blocking->table = response->table;
	if (response->error)
		blocking->failure = *mad_last_failure();
	if (response->error && blocking->reached) {
		blocking->failure.error = blocking->reached;
		blocking->failure.kind = MAD_FAILURE_OTHER;
	}
}

/* Returns 0 or the error, which mad_last_failure() has, too. */
static int run(struct mad_async *engine, const struct mad_sa_query *query,
	       struct blocking *blocking)
{
	const uint64_t m_key = smp_mkey_get(engine->port);
	struct mad_sa_query own = *query;
	int cancel_state, error;

	own.time_limit_ms = 0;
	own.cancel = NULL;
	error = mad_sa_submit(engine, &own, done, blocking, &blocking->id);
	if (error)
		return error;
	/* no other thread processes the engine: the request is not called back yet */
	cancel_state = engine_enter_again(engine);
	limits_begin(&blocking->limits, engine, query->time_limit_ms, query->cancel, m_key);
	engine_leave(engine, cancel_state);
	mad_async_wait(engine, -1);
	return blocking->failure.error;
}

EXPORT int mad_sa_request(struct ibmad_port *port, const struct mad_sa_query *query,
			  struct mad_sa_table **table)
{
	const struct mad_failure before = *mad_last_failure();
	struct blocking blocking = {.limits.reached = limit_reached};
	struct mad_async *engine;
	int error;

	if (table)
		*table = NULL;
	if (!port || !sa_query_is_valid(query))
		return sa_query_fail(query, -EINVAL);
	engine = mad_async_create(port);
	if (!engine)
		return sa_query_fail(query, -errno);
	error = run(engine, query, &blocking);
	mad_async_free(engine);
	if (blocking.failure.error)
		failure_store(&blocking.failure);
	else if (!error)
		failure_store(&before);
	if (table)
		*table = blocking.table;
	else
		mad_sa_table_free(blocking.table);
	return error;
}
