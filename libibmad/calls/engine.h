/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * An engine (struct mad_async): it owns requests, and calls back when they are complete. A
 * function that releases the lock of the port for a time has a name that ends with _unlocking.
 */
#ifndef LIBIBMAD_ENGINE_H
#define LIBIBMAD_ENGINE_H

#include "port/pool.h"
#include "port/port.h"

/*
 * What one mad_async_process() does at most: this number of messages is read, timers handled,
 * requests sent and callbacks called.
 */
#define BATCH 64

/* A clock for what a program does on an engine in regular intervals. */
struct engine_timer {
	struct list all; /* in the engine's */
	int64_t at;      /* NEVER: it is not set */
	/*
	 * Called by the thread that processes the engine, not locked, when the time is over or
	 * the port has failed. The timer is not set then.
	 */
	void (*due)(struct engine_timer *timer);
	/* Likewise, when the engine is destroyed: the timer is not the engine's any more. */
	void (*ended)(struct engine_timer *timer);
};

/* The requests to the SA of an engine (sa/sa_submit.c). The lock is held in each call. */
struct engine_part {
	/*
	 * All requests of the engine are to be cancelled. Cancels those to the SA, and returns
	 * how many of them are not requests of the engine.
	 */
	int (*cancel_all)(struct engine_part *part, struct mad_async *engine);
	/* The engine has no request any more. */
	void (*free)(struct engine_part *part);
};

struct mad_async {
	struct listener listener; /* first */
	struct owner owner;
	struct source source;
	struct ibmad_port *port;
	struct pool pool; /* of its requests */
	struct list timers;
	unsigned queued; /* requests that were never sent and not called back */
	unsigned users;  /* calls that have not returned */
	bool ending;
	pthread_cond_t changed; /* processing, users, or, while ending, completed */
	unsigned stops_heeded;  /* by a mad_async_wait() that has returned */
	unsigned forks;         /* as of the last use of the engine */
	struct engine_part *sa; /* NULL: it has not sent a request to the SA */
	struct mad_async_stats stats;
	uint64_t rtt_sum_us;
	uint64_t rtt_count;
	uint64_t dropped_before;
};

/* An engine on a port; the lock is held. */
void engine_init(struct mad_async *engine, struct ibmad_port *port);

/* As port_enter() and port_leave(): the engine is not destroyed between. */
int engine_enter(struct mad_async *engine, int *cancel_state);
/* The same in a callback, that is within a call: returns the state for engine_leave(). */
int engine_reenter(struct mad_async *engine);
void engine_leave(struct mad_async *engine, int cancel_state);

/* All below: the lock is held. */

/* Reports that a class is not registered; the thread cannot be cancelled meanwhile. */
void engine_report_class_unlocking(struct mad_async *engine, const char *call, int mgmt_class);

/*
 * mad_async_submit(). *id is written before the request is sent. When it returns, another
 * thread may already have called the request back.
 */
int engine_submit_unlocking(struct mad_async *engine, const ib_rpc_t *rpc,
			    const ib_portid_t *dport, const void *payload, size_t size,
			    mad_async_fn *callback, void *arg, uint64_t *id);
/* mad_async_cancel(): 0 or -ENOENT. */
int engine_cancel(struct mad_async *engine, uint64_t id);
/* mad_async_cancel_all(): how many requests were cancelled. */
int engine_cancel_all(struct mad_async *engine);

/* Calls back completed requests, "most" at most. Returns how many. */
int engine_call_back_unlocking(struct mad_async *engine, unsigned most);
/* Whether a callback may begin: in mad_async_wait() that is stopped none does. */
static inline bool engine_may_call(const struct mad_async *engine)
{
	return !listener_is_stopped(&engine->listener);
}

void engine_timer_add(struct mad_async *engine, struct engine_timer *timer);
void engine_timer_remove(struct mad_async *engine, struct engine_timer *timer);
/* Wakes the thread in mad_async_run(). engine_leave() updates what event loops poll. */
void engine_timer_set(struct mad_async *engine, struct engine_timer *timer, int64_t at);
/* Calls timers that are due. */
void engine_run_timers_unlocking(struct mad_async *engine);
/* The engine is destroyed. */
void engine_end_timers_unlocking(struct mad_async *engine);

/* One thread at a time calls back. Whether this thread does: */
bool engine_is_processor(const struct mad_async *engine);
void engine_begin_processing(struct mad_async *engine);
void engine_end_processing(struct mad_async *engine);

/* responder.c: the servers of an engine.
 *
 * Hands requests to their servers' callbacks, "most" at most. Returns how many.
 */
int servers_call_unlocking(struct mad_async *engine, unsigned most);
/* Sends BUSY to those that asked too much, "most" at most. */
void servers_refuse_unlocking(struct mad_async *engine, unsigned most);
/* The engine is destroyed: stops its servers. */
void servers_end_unlocking(struct mad_async *engine);

#endif
