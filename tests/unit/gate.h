/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A gate that stops a thread: the thread reports that it is there, and waits until the test
 * opens the gate.
 */
#ifndef TESTS_UNIT_GATE_H
#define TESTS_UNIT_GATE_H

#include "engine_fixture.h"

#include <semaphore.h>

static struct {
	sem_t entered, leave;
} gate;

static inline void gate_init(void)
{
	sem_init(&gate.entered, 0, 0);
	sem_init(&gate.leave, 0, 0);
}

static inline void gate_destroy(void)
{
	sem_destroy(&gate.entered);
	sem_destroy(&gate.leave);
}

static inline void wait_for(sem_t *semaphore)
{
	while (sem_wait(semaphore))
		;
}

static inline void wait_at_gate(void)
{
	sem_post(&gate.entered);
	wait_for(&gate.leave);
}

/* A callback for an outcome. */
static inline void call_back_at_gate(struct mad_async *async, const struct mad_reply *reply,
				     void *arg)
{
	note(async, reply, arg);
	wait_at_gate();
}

/* Tear-down, also after a failure while a thread waits at the gate. */
static inline int gate_teardown(void)
{
	int ret;

	sem_post(&gate.leave);
	ret = port_teardown();
	gate_destroy();
	return ret;
}

#endif
