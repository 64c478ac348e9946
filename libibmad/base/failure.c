/* SPDX-License-Identifier: BSD-2-Clause */

#include "base/failure.h"

#include "base/export.h"

#include <errno.h>

static _Thread_local struct mad_failure last;

void failure_store(const struct mad_failure *failure)
{
	last = *failure;
}

void failure_refuse(int mgmt_class, int error)
{
	last = (struct mad_failure){.error = -error, .mgmt_class = mgmt_class & 0xff};
	errno = error;
}

EXPORT const struct mad_failure *mad_last_failure(void)
{
	return &last;
}
