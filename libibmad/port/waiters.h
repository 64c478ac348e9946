/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The threads that wait on a port. One of them, the leader, polls the handle, and reads
 * messages for all; the others, the followers, sleep on a condition variable each. When the
 * leader leaves, another thread leads. So the library needs no thread of its own.
 *
 * The lock of the port is held in each call except waiters_alert().
 */
#ifndef LIBIBMAD_WAITERS_H
#define LIBIBMAD_WAITERS_H

#include "base/list.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct waiter {
	pthread_cond_t changed; /* while following */
	struct list all;        /* in the list of the port's waiters */
	bool following;         /* the thread sleeps until another thread wakes it */
	bool woken;
	bool interrupted; /* by a signal, while the thread led */
	bool patient;     /* as the leader the thread reads for others, even if it is woken */
	bool receiving;   /* the thread waits for messages in the inbox */
	bool sending;     /* when woken, the thread sends what may be sent */
	int64_t until;    /* the thread waits until this time at the longest */
};

struct waiters {
	struct list all;
	struct waiter *leader; /* NULL: no thread leads */
	atomic_bool polling;   /* the leader polls */
	atomic_bool reading;   /* a thread reads messages */
	atomic_int wake_fd;    /* an eventfd that the leader polls, too; -1: none */
	bool signalled;        /* wake_fd is readable */
	atomic_bool alerted;   /* the leader is to look at the engines: waiters_alert() */
};

void waiters_init(struct waiters *waiters);
void waiters_free(struct waiters *waiters);
/* After waiters_free(), in a child of fork(): the calls that the thread forked in wait on. */
void waiters_inherit(struct waiters *waiters);

/* Opens wake_fd. Without it, the leader returns from poll(2) every 100 ms. */
void waiters_open(struct waiters *waiters);

/* If no thread leads, makes one of the followers lead. */
void waiters_pass(struct waiters *waiters);

static inline void waiter_begin(struct waiters *waiters, struct waiter *waiter)
{
	waiter->following = waiter->woken = false;
	waiter->interrupted = waiter->patient = false;
	waiter->receiving = waiter->sending = false;
	waiter->until = 0;
	list_add_first(&waiters->all, &waiter->all);
}

static inline void waiter_end(struct waiters *waiters, struct waiter *waiter)
{
	list_remove(&waiter->all);
	if (!list_is_empty(&waiters->all))
		waiters_pass(waiters);
}

/* Ends the sleep or the poll of a waiter. */
void waiter_signal(struct waiters *waiters, struct waiter *waiter);

/* Wakes a thread. A thread that neither sleeps nor polls sees "woken" before it does. */
static inline void waiter_wake(struct waiters *waiters, struct waiter *waiter)
{
	waiter->woken = true;
	if (waiter->following || waiters->polling)
		waiter_signal(waiters, waiter);
}

void waiters_wake_all(struct waiters *waiters);
/* Wakes a thread that waits for the inbox. */
void waiters_wake_receiver(struct waiters *waiters);
/* Wakes a thread that sends when it is woken, if there is one. */
void waiters_wake_sender(struct waiters *waiters);
/* There is work at a time: wakes the threads with "sending" that would wait longer. */
void waiters_wake_for(struct waiters *waiters, int64_t at);

/* Callable in signal handlers: the leader, or the next one, looks at the engines. */
void waiters_alert(struct waiters *waiters);

#endif
