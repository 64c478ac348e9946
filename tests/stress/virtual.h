/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Virtual time for many threads: the clock stands still while a thread runs, and moves to the
 * next event when all threads wait. The program is linked with --wrap=clock_us, sys_poll,
 * sys_poll_both, clock_cond_wait, pthread_cond_signal and pthread_cond_broadcast.
 */
#ifndef TESTS_STRESS_VIRTUAL_H
#define TESTS_STRESS_VIRTUAL_H

#include <poll.h>
#include <pthread.h>
#include <stdint.h>

/* Something that happens at a time. */
struct event {
	int64_t at;
	uint64_t order; /* events of one time happen in their order */
	void (*happen)(struct event *event);
};

/* The present time in microseconds. */
int64_t virtual_now(void);
/* Since the beginning. */
int64_t virtual_elapsed(void);

/* The lock of the clock, which is held while an event happens. */
void virtual_lock(void);
void virtual_unlock(void);
/* With the lock: an event at a time. */
void virtual_at(struct event *event, int64_t at);
/* With the lock: no event happens any more. */
void virtual_forget(void);
/* With the lock: a descriptor has become readable. */
void virtual_look(void);

/* A thread that the clock waits for. The others do not wait by the library. */
pthread_t virtual_thread(void *(*run)(void *), void *arg);
/* poll(2), by virtual time. */
int virtual_poll(struct pollfd *fds, unsigned count, int timeout_ms);
/* Joins a thread, while the clock goes on. */
void virtual_join(pthread_t thread);

#endif
