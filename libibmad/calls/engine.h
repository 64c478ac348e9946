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

struct mad_async {
	struct owner owner;
	struct source source;
	struct port_client client;
	struct ibmad_port *port;
	struct pool pool;      /* of its requests */
	struct list completed; /* requests that are to be called back */
	unsigned open;         /* requests that were not called back */
	unsigned queued;       /* of those, requests that were never sent */
	unsigned users;        /* calls that have not returned */
	unsigned serving;      /* of those, calls that send what can be sent */
	bool processing;       /* a thread calls back, or waits in mad_async_run() */
	bool ending;
	pthread_t processor;
	pthread_cond_t changed; /* processing, users, or, while ending, completed */
	bool running;           /* a thread is in mad_async_run(), */
	struct waiter runner;   /* and waits as this one */
	struct alarm alarm;
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

/* Whether the port is gone or closed, and all requests were called back. */
bool engine_is_over(const struct mad_async *engine);
/* Whether mad_async_process() would do something that no timer and no message announces. */
bool engine_has_work(const struct mad_async *engine);
/* The same for one more thread. What other threads do need not be announced. */
bool engine_needs_thread(const struct mad_async *engine);
/*
 * Keeps up with the state of the port: whoever polls the alarm's descriptors, or waits in
 * mad_async_run(), is woken. "due" is as for alarm_set().
 */
void engine_update(struct mad_async *engine, bool due);

/* Calls back completed requests, "most" at most; the lock is dropped meanwhile. Returns how
 * many. */
int engine_call_back(struct mad_async *engine, unsigned most);

/* One thread at a time calls back. Whether this thread does: */
bool engine_is_processor(const struct mad_async *engine);
void engine_begin_processing(struct mad_async *engine);
void engine_end_processing(struct mad_async *engine);

#endif
