/* SPDX-License-Identifier: BSD-2-Clause */

/* An engine on the port, and the outcomes of MANY requests: define MANY before this header. */
#ifndef TESTS_UNIT_ASYNC_FIXTURE_H
#define TESTS_UNIT_ASYNC_FIXTURE_H

#include "engine_fixture.h"

static struct mad_async *async;
static struct outcome outcomes[MANY];

static inline int create_async(void)
{
	memset(outcomes, 0, sizeof(outcomes));
	async = mad_async_create(port);
	return async ? 0 : -1;
}

static inline int async_setup(void)
{
	return port_setup() ? -1 : create_async();
}

static inline int async_high_setup(void)
{
	return high_setup() ? -1 : create_async();
}

static inline int async_teardown(void)
{
	mad_async_free(async);
	return port_teardown();
}

#ifdef TESTS_UNIT_GATE_H /* gate.h is included before */

static inline int async_gate_setup(void)
{
	gate_init();
	return async_setup();
}

static inline int async_gate_teardown(void)
{
	int ret;

	sem_post(&gate.leave);
	ret = async_teardown();
	gate_destroy();
	return ret;
}

#endif

/* The first requests were each called back once, with this error. */
static inline void expect_all(int count, int error)
{
	for (int i = 0; i < count; i++) {
		assert_int_equal(outcomes[i].calls, 1);
		assert_int_equal(outcomes[i].error, error);
	}
}

#endif
