/* SPDX-License-Identifier: BSD-2-Clause */

#include "packet_hook.h"
#include "export.h"
#include "hook.h"

#include <time.h>

atomic_bool packet_hook_set;

static struct hook hook;

EXPORT void umad_set_packet_hook(umad_packet_fn *new_hook, void *user)
{
	hook_set(&hook, (struct hook){(void (*)(void))new_hook, user});
	atomic_store(&packet_hook_set, new_hook != NULL);
}

int64_t packet_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

void packet_report(const struct umad_packet_info *packet)
{
	int saved_errno = errno;
	struct hook call = hook_get(&hook);

	if (call.function)
		((umad_packet_fn *)call.function)(packet, call.user);
	errno = saved_errno;
}
