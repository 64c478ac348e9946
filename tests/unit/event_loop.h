/* SPDX-License-Identifier: BSD-2-Clause */

/* Event loops as mad_async.h describes them, each in a thread. */
#ifndef TESTS_UNIT_EVENT_LOOP_H
#define TESTS_UNIT_EVENT_LOOP_H

#include "engine_fixture.h"

#include <pthread.h>

struct loop {
	pthread_t thread;
	struct mad_async *async;
	struct pollfd fd;
	unsigned rounds;
	unsigned most; /* the number of rounds; 0: unlimited */
	int result;    /* of the last mad_async_process() */
};

/* Requests the descriptor once. */
static inline void loop_init(struct loop *loop, struct mad_async *async)
{
	*loop = (struct loop){.async = async,
			      .fd = {.fd = mad_async_poll_fd(async), .events = POLLIN}};
}

static inline void *loop_run(void *arg)
{
	struct loop *loop = arg;

	do {
		if (loop->most && loop->rounds == loop->most)
			break;
		loop->rounds++;
		poll(&loop->fd, 1, -1);
		loop->result = mad_async_process(loop->async);
	} while (loop->result >= 0);
	return NULL;
}

static inline void loop_start(struct loop *loop)
{
	assert_int_equal(pthread_create(&loop->thread, NULL, loop_run, loop), 0);
}

static inline void loop_join(struct loop *loop)
{
	assert_int_equal(pthread_join(loop->thread, NULL), 0);
}

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
