/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The asynchronous requests of a port that are queued, and their timers. Requests are sent
 * first in, first out, as far as the window of their kind and the limit of their destination
 * let them. If there are more of one kind than may be sent at once, the kinds take turns.
 */
#ifndef LIBIBMAD_SCHEDULER_H
#define LIBIBMAD_SCHEDULER_H

#include "engine/core.h"
#include "engine/destination.h"

struct scheduler {
	struct core *core;
	struct list ready[WINDOWS]; /* to be sent as the window allows */
	unsigned turn;              /* the window whose requests are sent first */
	struct list again;          /* to be retransmitted */
	struct deadlines deadlines; /* of those in flight */
	struct destinations destinations;
	unsigned destination_limit;
	unsigned open; /* requests of all engines that were not called back */
};

void scheduler_init(struct scheduler *scheduler, struct core *core);
/* In a child of fork(): nothing is queued, no timer is set. */
void scheduler_reset(struct scheduler *scheduler);
void scheduler_free(struct scheduler *scheduler);

/* All below: the core is locked. */

/* Memory for one more request. 0 or -ENOMEM. */
int scheduler_reserve(struct scheduler *scheduler);
/* Queues a request for its first transmission. */
void scheduler_add(struct scheduler *scheduler, struct transaction *transaction);

/* Whether scheduler_send() would send anything. */
bool scheduler_can_send(const struct scheduler *scheduler);
/*
 * Sends what may be sent. It looks at so many requests at most, those included that the limit
 * of their destination holds back. The lock is dropped meanwhile.
 */
void scheduler_send(struct scheduler *scheduler, unsigned most);
/* Handles the timers that are due, "most" at most; the lock is dropped meanwhile. */
void scheduler_expire(struct scheduler *scheduler, int64_t now, unsigned most);
/* When the next timer is due; NEVER if none is set. */
int64_t scheduler_next(const struct scheduler *scheduler);

/* At most so many requests are in flight to a destination, those that are queued included. */
void scheduler_set_limit(struct scheduler *scheduler, unsigned limit);

/* The core has failed: each request that is queued or has a timer completes with its errno. */
void scheduler_fail(struct scheduler *scheduler);
/* A request was called back: frees memory if it was the last one. */
void scheduler_shrink(struct scheduler *scheduler);

/* For the owners of requests: see struct owner_ops. */
void scheduler_again(struct scheduler *scheduler, struct transaction *transaction);
void scheduler_set_timer(struct scheduler *scheduler, struct transaction *transaction);
void scheduler_withdraw(struct scheduler *scheduler, struct transaction *transaction);
/* It is complete: another request to its destination may be sent. */
void scheduler_leave(struct scheduler *scheduler, struct transaction *transaction);

#endif
