/* SPDX-License-Identifier: BSD-2-Clause */

/* An asynchronous engine: it owns transactions, and calls back when they are complete. */
#ifndef LIBIBMAD_ENGINE_H
#define LIBIBMAD_ENGINE_H

#include "calls/alarm.h"
#include "calls/port.h"
#include "engine/pool.h"

/*
 * What one mad_async_process() does at most: so many messages are read, timers handled,
 * requests sent and callbacks called.
 */
#define BATCH 64
/* So many requests are sent before others have their turn. */
#define TURN  4

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

/* What a class keeps for an engine. The core is locked in each call. */
struct engine_part {
	/* This is a child of fork(); the requests of the parent will be called back. */
	void (*forked)(struct engine_part *part);
	/*
	 * All requests of the engine are to be cancelled. Cancels those that the class has a
	 * hand in, and returns how many of its own requests it cancelled.
	 */
	int (*cancel_all)(struct engine_part *part, struct mad_async *engine);
	/* The engine has no request any more. */
	void (*free)(struct engine_part *part);
};

struct mad_async {
	struct owner owner;
	struct source source;
	struct port_client client;
	struct ibmad_port *port;
	struct pool pool;      /* of its requests */
	struct list completed; /* requests that are to be called back */
	struct list arrived;   /* requests of others that servers have not seen */
	struct list refused;   /* requests of others that get BUSY */
	struct list timers;
	unsigned servers; /* that were not stopped */
	unsigned open;    /* requests that were not called back */
	unsigned queued;  /* of those, requests that were never sent */
	unsigned users;   /* calls that have not returned */
	unsigned serving; /* of those, calls that send what can be sent */
	bool processing;  /* a thread calls back, or waits in mad_async_wait() */
	bool ending;
	pthread_t processor;
	pthread_cond_t changed; /* processing, users, or, while ending, completed */
	bool running;           /* a thread is in mad_async_wait(), */
	struct waiter runner;   /* and waits as this one */
	atomic_uint stops;      /* counts mad_async_stop() */
	unsigned stops_heeded;  /* by a mad_async_wait() that has returned */
	unsigned stops_before;  /* running: what it began with */
	struct alarm alarm;
	struct engine_part *sa; /* NULL: it has not sent a request to the SA */
	struct mad_async_stats stats;
	uint64_t rtt_sum_us;
	uint64_t rtt_count;
	uint64_t dropped_before;
};

struct async_request {
	struct pool_entry entry;
	struct transaction transaction;
	mad_async_fn *callback;
	void *arg;
};

/* Whether mad_async_run() has nothing more to wait for. */
static inline bool engine_is_idle(const struct mad_async *engine)
{
	return !engine->open && (!engine->servers || engine->port->core.gone || engine->ending);
}

static inline struct async_request *async_request_of(struct transaction *transaction)
{
	return list_entry(transaction, struct async_request, transaction);
}

/* An engine on a port, made of memory that has been an engine or not; locked. */
void engine_init(struct mad_async *engine, struct ibmad_port *port);
/*
 * The memory of an engine that was destroyed, or NULL; locked. A thread may still be on its way
 * into a call for that engine, so the memory is not freed before the port is.
 */
struct mad_async *engine_reuse(struct ibmad_port *port);

/* As port_enter() and port_leave(): the engine is not destroyed between. */
int engine_enter(struct mad_async *engine);
void engine_leave(struct mad_async *engine, int cancel_state);

/* All below: the core is locked. */

/* Running: whether mad_async_wait() is to return. */
static inline bool engine_is_stopped(const struct mad_async *engine)
{
	return engine->stops != engine->stops_before;
}

/* Whether a callback may begin: in mad_async_wait() that is stopped none does. */
static inline bool engine_may_call(const struct mad_async *engine)
{
	return !(engine->running && engine_is_stopped(engine));
}

/* Whether the port is gone or closed, and all requests were called back. */
bool engine_is_over(const struct mad_async *engine);
/* Running: whether there is something to do that no timer and no message announces. */
bool engine_has_work(const struct mad_async *engine);
/* The same for one more thread. What other threads do need not be announced. */
bool engine_needs_thread(const struct mad_async *engine);
/*
 * Keeps up with the state of the port: whoever polls the alarm's descriptors, or waits in
 * mad_async_wait(), is woken. "due" is as for alarm_set().
 */
void engine_update(struct mad_async *engine, bool due);

/*
 * Calls back completed requests, "most" at most; the lock is dropped meanwhile. Returns how
 * many. A mad_async_wait() that is stopped calls back no more.
 */
int engine_call_back(struct mad_async *engine, unsigned most);

void engine_timer_add(struct mad_async *engine, struct engine_timer *timer);
void engine_timer_remove(struct engine_timer *timer);
/* Wakes the thread in mad_async_run(). engine_leave() updates what event loops poll. */
void engine_timer_set(struct mad_async *engine, struct engine_timer *timer, int64_t at);
/* Calls timers that are due; the lock is dropped meanwhile. */
void engine_run_timers(struct mad_async *engine);
/* The engine is destroyed. */
void engine_end_timers(struct mad_async *engine);
/* When the next timer is due, of the engine or of the port, or something may be sent. */
int64_t engine_next(const struct mad_async *engine);

/* One thread at a time calls back. Whether this thread does: */
bool engine_is_processor(const struct mad_async *engine);
void engine_begin_processing(struct mad_async *engine);
void engine_end_processing(struct mad_async *engine);

#endif
