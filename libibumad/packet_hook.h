/* SPDX-License-Identifier: BSD-2-Clause */

/* The packet hook, for the calls that send and receive. */
#ifndef LIBIBUMAD_PACKET_HOOK_H
#define LIBIBUMAD_PACKET_HOOK_H

#include <infiniband/umad_ext.h>

#include <stdatomic.h>
#include <stdbool.h>

extern __attribute__((visibility("hidden"))) atomic_bool packet_hook_set;

/* Whether a program wants to know; asked first, so that no hook costs a load and a branch. */
static inline bool packet_wanted(void)
{
	return __builtin_expect(atomic_load_explicit(&packet_hook_set, memory_order_relaxed),
				false);
}

/* CLOCK_REALTIME in ns. errno stays as it is. */
int64_t packet_time(void);

/* Calls the hook, if it is still set. errno stays as it is. */
void packet_report(const struct umad_packet_info *packet);

#endif
