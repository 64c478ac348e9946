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
 * The most that one mad_async_process() does of each: messages read, timers handled, requests
 * sent, callbacks called.
 */
#define BATCH 64

/* A timer for code on top of an engine. */
struct engine_timer {
	struct list all; /* in the engine's */
	int64_t at;      /* NEVER: it is not set */
	/*
	 * Called with the lock released by the thread that processes the engine, when the time
	 * is over or the port has failed. The timer is not set any more.
	 */
	void (*due)(struct engine_timer *timer);
	/* Called with the lock released, after a destroyed engine has removed the timer. */
	void (*ended)(struct engine_timer *timer);
};

/*
 * What is in flight on an engine and is no single request: a request to the SA, a reading of
 * counters, a discovery. It has a number for mad_async_cancel(). Its functions are called with
 * the lock released by the thread that processes the engine, one at a time.
 */
struct engine_operation {
	struct list all;  /* in the engine's */
	struct list call; /* in the engine's list of calls to make; or alone */
	uint64_t id;
	bool cancelled;
	/* mad_async_cancel() was called: ends the operation soon. Called once at most. */
	void (*cancel)(struct engine_operation *operation);
	void (*later)(struct engine_operation *operation); /* NULL: none is to be called */
};

struct mad_async {
	struct listener listener; /* first */
	struct owner owner;
	struct source source;
	struct ibmad_port *port;
	struct pool pool;       /* of its requests */
	struct pool numbers;    /* of its operations */
	struct list operations; /* that have not ended */
	struct list calls;      /* operations that have a function to be called */
	struct list timers;
	unsigned queued;  /* requests that were neither sent nor called back */
	unsigned users;   /* calls that have not returned */
	unsigned calling; /* callbacks that have not returned; more than 1 only after fork() */
	bool ending;
	pthread_cond_t changed; /* processing or users; while ending, also completed requests */
	unsigned stops_heeded;  /* listener.stops when mad_async_wait() last returned -EINTR */
	unsigned forks;         /* port->forks at the latest use of the engine */
	struct sa_client *sa;   /* of sa/sa_submit.c; NULL: it has sent no request to the SA */
	struct sa_keeper *keeper; /* NULL: it has had no registration at the SA */
	unsigned registrations;   /* that have not ended */
	struct mad_async_stats stats;
	uint64_t rtt_sum_us;
	uint64_t rtt_count;
	uint64_t dropped_before; /* of the port, when the engine was created */
	uint64_t mismatched_before;
};

/* Makes an engine of a port; the lock is held. */
void engine_init(struct mad_async *engine, struct ibmad_port *port);

/* As port_enter() and port_leave(). The engine is not destroyed in between. */
int engine_enter(struct mad_async *engine, int *cancel_state);
/* The same in a callback, which cannot fail. Returns cancel_state for engine_leave(). */
int engine_reenter(struct mad_async *engine);
void engine_leave(struct mad_async *engine, int cancel_state);

/* All below: the lock is held. */

/* Reports that a class is not registered. */
void engine_report_class_unlocking(struct mad_async *engine, const char *call, int mgmt_class);

/*
 * mad_async_submit(), for a public call. *id is written before the request is sent. When it
 * returns, another thread may already have called the request back.
 */
int engine_submit_unlocking(struct mad_async *engine, enum public_call call,
			    const ib_rpc_t *rpc, const ib_portid_t *dport, const void *payload,
			    size_t size, mad_async_fn *callback, void *arg, uint64_t *id);
/* The same for a request to the local port, which is sent before all that are queued. */
int engine_submit_urgent_unlocking(struct mad_async *engine, const ib_rpc_t *rpc,
				   const ib_portid_t *dport, mad_async_fn *callback, void *arg,
				   uint64_t *id);
/* mad_async_cancel(): 0 or -ENOENT. A request's number is engine_submit_unlocking()'s. */
int engine_cancel(struct mad_async *engine, uint64_t id);
/* MAD_ASYNC_ALL: returns the number of requests that were cancelled. */
int engine_cancel_all(struct mad_async *engine);

/*
 * Begins an operation, whose "cancel" is set. *id becomes its number, unless id is NULL. 0,
 * -ENOMEM, -ECANCELED, or the error of a port that is gone.
 */
int operation_begin(struct mad_async *engine, struct engine_operation *operation, uint64_t *id);
/*
 * Has a function called soon, and not within this call: so a public call does not call back
 * before it returns. The engine is not idle until then.
 */
void operation_later(struct mad_async *engine, struct engine_operation *operation,
		     void (*later)(struct engine_operation *operation));
/* Ends it, before its callback. True: it was cancelled, so the callback gets -ECANCELED. */
bool operation_end(struct mad_async *engine, struct engine_operation *operation);
/* The same, and whether it was cancelled, in a function that does not hold the lock. */
bool engine_operation_end(struct mad_async *engine, struct engine_operation *operation);
bool engine_operation_is_cancelled(struct mad_async *engine,
				   const struct engine_operation *operation);
/* Calls the functions of operations, "most" at most. */
void engine_run_operations_unlocking(struct mad_async *engine, unsigned most);

/* Calls back completed requests, "most" at most. Returns their number. */
int engine_call_back_unlocking(struct mad_async *engine, unsigned most);
/* Whether a callback may begin: none does after mad_async_stop() in mad_async_wait(). */
static inline bool engine_may_call(const struct mad_async *engine)
{
	return !listener_is_stopped(&engine->listener);
}

void engine_timer_add(struct mad_async *engine, struct engine_timer *timer);
void engine_timer_remove(struct mad_async *engine, struct engine_timer *timer);
/* Wakes the thread in mad_async_wait(). Event loops are told by engine_leave(). */
void engine_timer_set(struct mad_async *engine, struct engine_timer *timer, int64_t at);
/* Calls timers that are due. */
void engine_run_timers_unlocking(struct mad_async *engine);
/* Removes all timers of an engine that is destroyed. */
void engine_end_timers_unlocking(struct mad_async *engine);

/* Whether this thread calls back. One thread at a time does. */
bool engine_is_processor(const struct mad_async *engine);
void engine_begin_processing(struct mad_async *engine);
void engine_end_processing(struct mad_async *engine);

/* The next three are in responder.c. */

/* Hands requests to the callbacks of their servers, "most" at most. Returns their number. */
int servers_call_unlocking(struct mad_async *engine, unsigned most);
/* Responds with BUSY to requests beyond a server's limit, "most" at most. */
void servers_refuse_unlocking(struct mad_async *engine, unsigned most);
/* Stops the servers of an engine that is destroyed. */
void servers_end_unlocking(struct mad_async *engine);

#endif
