/* SPDX-License-Identifier: BSD-2-Clause */

#include "flow/flow.h"

#include "late_responses.h"

#include <stdatomic.h>

static atomic_uint late_after_us;

uint32_t __real_flow_late_after(const struct flow_control *flow,
				const struct flow_account *account);
uint32_t __wrap_flow_late_after(const struct flow_control *flow,
				const struct flow_account *account);
bool __real_flow_looks_again(const struct flow_control *flow,
			     const struct flow_account *account);
bool __wrap_flow_looks_again(const struct flow_control *flow,
			     const struct flow_account *account);

uint32_t __wrap_flow_late_after(const struct flow_control *flow,
				const struct flow_account *account)
{
	uint32_t us = late_after_us;

	return us ? us : __real_flow_late_after(flow, account);
}

/* The time does not become shorter. */
bool __wrap_flow_looks_again(const struct flow_control *flow,
			     const struct flow_account *account)
{
	return !late_after_us && __real_flow_looks_again(flow, account);
}

void set_late_after(uint32_t microseconds)
{
	late_after_us = microseconds;
}
