/* SPDX-License-Identifier: BSD-2-Clause */

/* The options of a port, and what holds in their place: madrpc_set_timeout() and _retries(). */

#include "engine/options.h"

#include "base/export.h"

#include <infiniband/mad.h>

#define MAX_REPLY (64u << 20)

static atomic_int process_timeout_ms = MAD_DEF_TIMEOUT_MS;
static atomic_int process_retries = MAD_DEF_RETRIES;

void options_init(struct options *options)
{
	*options = (struct options){.max_reply = MAX_REPLY};
}

int options_timeout_ms(const struct options *options)
{
	int timeout_ms = options ? options->timeout_ms : 0;

	return timeout_ms ? timeout_ms : process_timeout_ms;
}

int options_attempts(const struct options *options)
{
	int retries = options ? options->retries : 0;

	return retries > 0 ? retries : process_retries;
}

EXPORT int madrpc_set_retries(int count)
{
	if (count > 0)
		process_retries = count;
	return process_retries;
}

EXPORT int madrpc_set_timeout(int timeout)
{
	process_timeout_ms = timeout;
	return 0;
}
