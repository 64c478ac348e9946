/* SPDX-License-Identifier: BSD-2-Clause */

#include "notices/notices_state.h"

void notices_tell(struct mad_notices *notices, const struct mad_notice *notice)
{
	notices->callback(notices, notice, notices->arg);
}

void notices_set_timer(struct mad_notices *notices, int64_t at)
{
	int cancel_state = engine_enter(notices->engine);

	engine_timer_set(notices->engine, &notices->timer, at);
	engine_leave(notices->engine, cancel_state);
}
