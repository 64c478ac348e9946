/* SPDX-License-Identifier: BSD-2-Clause */

/* Semaphores of the static probes. */

#include "mad/probe.h"

#ifdef IBUMAD_PROBES
#define DEFINE_SEMAPHORE(name) \
	__attribute__((section(".probes"))) volatile unsigned short SEMAPHORE(name)

DEFINE_SEMAPHORE(request_submitted);
DEFINE_SEMAPHORE(request_transmitted);
DEFINE_SEMAPHORE(response_received);
DEFINE_SEMAPHORE(response_mismatched);
DEFINE_SEMAPHORE(attempt_timed_out);
DEFINE_SEMAPHORE(request_completed);
DEFINE_SEMAPHORE(window_changed);
#endif
