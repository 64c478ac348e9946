/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/defaults.h"

#include "base/export.h"

#include <infiniband/mad.h>
#include <stdatomic.h>

static atomic_int timeout_ms = MAD_DEF_TIMEOUT_MS;
static atomic_int retries = MAD_DEF_RETRIES;
static atomic_bool show_errors;

int default_timeout_ms(void)
{
	return timeout_ms;
}

int default_retries(void)
{
	return retries;
}

bool default_show_errors(void)
{
	return show_errors;
}

EXPORT void madrpc_show_errors(int set)
{
	show_errors = set != 0;
}

EXPORT int madrpc_set_retries(int count)
{
	if (count > 0)
		retries = count;
	return retries;
}

EXPORT int madrpc_set_timeout(int timeout)
{
	timeout_ms = timeout;
	return 0;
}
