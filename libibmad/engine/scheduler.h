/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Which request is sent next. A port's requests come from sources: each engine is one, and the
 * blocking calls are one. A source has a flow for SMPs, for the SA, for PerfMgt and for other
 * classes. The flows of a window take turns, so that a request does not wait for all those of
 * others that were queued before. In its turn, an engine sends some requests, and the blocking
 * calls send one: a thread that waits for a single response costs far more processor time than
 * a request of an engine.
 *
 * Within a flow, retransmissions come first. A request whose destination has no place for it
 * waits there, in a lane of its flow, and the lanes of a destination take turns. When there is
 * a place, the request is resumed: it waits in its flow again. A request whose destination has
 * had its turn since the request was queued waits there, too. Requests that are resumed, those
 * of them whose node is far quicker than others, and those that were not looked at yet take
 * turns: many requests to a slow node delay no request to another node for long.
 *
 * A request is sent only when its window lets it, whether it is sent first or again.
 */
#ifndef LIBIBMAD_SCHEDULER_H
#define LIBIBMAD_SCHEDULER_H

#include "engine/core.h"

/* The flows of a source. */
enum flow_kind {
	FLOW_SMP,
	FLOW_SA,
	FLOW_PERF,
	FLOW_OTHER,
	FLOWS
};

/* The queues of a flow. */
enum flow_queue {
	QUEUE_FRESH,         /* requests that were not looked at yet */
	QUEUE_RESUMED,       /* their destination has a place for them */
	QUEUE_QUICK,         /* the same, and it is quick */
	TURNS,               /* the queues above take turns */
	QUEUE_AGAIN = TURNS, /* requests to be sent again: they come first */
	QUEUES
};

struct flow {
	struct list turn; /* in the ring of its window, if a request is queued below */
	struct list queues[QUEUES];
	unsigned next; /* of the queues that take turns */
	unsigned left; /* requests that it may still send in this turn */
};

struct source {
	struct flow flows[FLOWS];
	unsigned turn; /* so many requests are sent in a turn of a flow */
};

struct scheduler {
	struct core *core;
	struct list rings[FLOW_WINDOWS]; /* of flows in whose turn a request is sent */
	unsigned turn;                   /* the window whose requests are sent first */
	struct deadlines deadlines;      /* of those in flight */
	struct destinations destinations;
	struct list spare_lanes; /* not in use */
	uint32_t queued;         /* counts the requests that were queued */
	unsigned open;           /* requests of all engines that were not called back */
};

void scheduler_init(struct scheduler *scheduler, struct core *core);
/* In a child of fork(): nothing is queued, no timer is set. */
void scheduler_reset(struct scheduler *scheduler);
void scheduler_free(struct scheduler *scheduler);

void source_init(struct source *source, unsigned turn);

/* All below: the core is locked. */

/* Memory for one more timer. 0 or -ENOMEM. */
int scheduler_reserve(struct scheduler *scheduler);
/* Sends a request that is READY, or queues it. The lock is dropped meanwhile. */
void scheduler_submit(struct scheduler *scheduler, struct transaction *transaction);

/* Whether scheduler_send() would send anything. */
bool scheduler_can_send(const struct scheduler *scheduler);
/* When scheduler_send() could send something without any event before; NEVER: not at all. */
int64_t scheduler_opens(const struct scheduler *scheduler);
/*
 * Sends what may be sent, so many requests at most. It also queues requests for their
 * destination, but not without end. The lock is dropped meanwhile.
 */
void scheduler_send(struct scheduler *scheduler, unsigned most);
/* Handles the timers that are due, "most" at most; the lock is dropped meanwhile. */
void scheduler_expire(struct scheduler *scheduler, int64_t now, unsigned most);
/* When the next timer is due, or something may be sent; NEVER. */
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
/* For the core: its news concern its destination. */
void scheduler_news(struct scheduler *scheduler, struct transaction *transaction);

#endif
