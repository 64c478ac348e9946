/* SPDX-License-Identifier: BSD-2-Clause */

/* What an event loop, as mad_async.h describes it, would see; mad_async_wait() in a thread. */
#ifndef TESTS_UNIT_EVENT_LOOP_H
#define TESTS_UNIT_EVENT_LOOP_H

#include "engine_fixture.h"

#include <pthread.h>

static inline bool loop_polls(struct mad_async *async, int timeout_ms)
{
	struct pollfd fd = {.fd = mad_async_poll_fd(async), .events = POLLIN};

	return poll(&fd, 1, timeout_ms) == 1;
}

/* Whether an event loop would call mad_async_process() now. */
static inline bool loop_is_awake(struct mad_async *async)
{
	return loop_polls(async, 0);
}

/* Whether it does so soon: the kernel may need a moment for a timer that is due. */
static inline bool loop_wakes(struct mad_async *async)
{
	return loop_polls(async, LONG_MS);
}

/* --- mad_async_wait() in a thread ------------------------------------------------- */

static inline void *run(void *arg)
{
	return (void *)(intptr_t)mad_async_wait(arg, -1);
}

static inline pthread_t start_running(struct mad_async *async)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run, async), 0);
	return thread;
}

static inline int joined_count(pthread_t thread)
{
	void *count;

	assert_int_equal(pthread_join(thread, &count), 0);
	return (int)(intptr_t)count;
}

#endif
