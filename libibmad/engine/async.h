/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * An engine (struct mad_async) owns requests and calls back when they complete. It is guarded
 * by its port's lock; functions that temporarily release the lock end in _unlocking.
 */
#ifndef LIBIBMAD_ASYNC_H
#define LIBIBMAD_ASYNC_H

#include "base/reserved.h"
#include "engine/port.h"

#include <infiniband/mad_async.h>
#include <infiniband/mad_server.h>

struct engine_timer {
	struct list all; /* in the engine's */
	int64_t at;      /* NEVER: not set */
	/*
	 * Called without the lock by the processing thread when the timer expires or the port
	 * fails. The timer is no longer set by then.
	 */
	void (*due)(struct engine_timer *timer);
	/* NULL, or called without the lock when a freed engine drops the timer. */
	void (*ended)(struct engine_timer *timer);
};

/*
 * Anything in flight on an engine that is not a single request: an SA request, a counter
 * reading, a discovery. Has an ID for mad_async_cancel(). Its functions are called without the
 * lock by the processing thread, one at a time.
 */
struct engine_operation {
	struct list all;  /* in the engine's */
	struct list call; /* in the engine's calls, or alone */
	uint64_t id;
	bool cancelled;
	/* Called at most once, after mad_async_cancel(); must end the operation soon. */
	void (*cancel)(struct engine_operation *operation);
	void (*later)(struct engine_operation *operation); /* NULL: nothing to call */
};

/*
 * The descriptor an event loop polls: readable when the port's handle is, when there is other
 * work, and when a timer expires.
 */
struct alarm {
	int poll_fd;    /* epoll descriptor over the other two and the handle; -1: not open */
	int work_fd;    /* eventfd: there is work */
	int timer_fd;   /* timerfd */
	bool watching;  /* the handle is in poll_fd */
	bool signalled; /* work_fd is readable */
	int64_t armed;  /* expiry of timer_fd; NEVER */
};

/* Which thread calls back; one at a time. */
enum engine_thread {
	ENGINE_FREE,      /* none */
	ENGINE_PROCESSED, /* in mad_async_process() or mad_async_free() */
	ENGINE_WAITED,    /* in mad_async_wait() */
};

struct mad_async {
	struct list all; /* first; in the port's engines or retired engines */
	struct ibmad_port *port;
	struct source source;
	unsigned forks; /* port->forks when the engine was last used */
	unsigned users; /* calls in progress */
	bool ending;    /* mad_async_free() was called */

	/* what it owns */
	struct pool pool;         /* its requests */
	uint32_t begun;           /* operations begun since creation */
	struct list operations;   /* not ended yet */
	struct list timers;       /* struct engine_timer */
	unsigned queued;          /* requests neither sent nor called back */
	unsigned servers;         /* servers before their last callback */
	unsigned registrations;   /* SA registrations not ended yet */
	struct sa_client *sa;     /* sa/sa_request.c's; NULL: no SA request so far */
	struct sa_keeper *keeper; /* NULL: no SA registration so far */

	/* callbacks to make */
	struct list completed; /* requests */
	struct list arrived;   /* incoming requests, for its servers */
	struct list refused;   /* incoming requests to refuse with BUSY */
	struct list ended;     /* servers due for their last callback */
	struct list calls;     /* operations with a function to call */

	/* the processing thread */
	enum engine_thread thread;
	pthread_t processor;    /* unless ENGINE_FREE */
	struct waiter waiter;   /* ENGINE_WAITED */
	unsigned calling;       /* callbacks in progress; more than 1 only after fork() */
	pthread_cond_t changed; /* thread or users; while ending, also completed requests */
	atomic_uint stops;      /* mad_async_stop() calls */
	unsigned stops_before;  /* ENGINE_WAITED: value of "stops" that does not end it */
	unsigned stops_heeded;  /* "stops" when mad_async_wait() last returned -EINTR */
	struct alarm alarm;
	struct list loop; /* in the port's, while the alarm is open */

	struct mad_async_stats stats;
	uint64_t rtt_sum_us;
	uint64_t rtt_count;
	uint64_t dropped_before; /* the port's, when the engine was created */
	uint64_t mismatched_before;
};

/* Whether any request is not called back yet. */
static inline bool engine_has_requests(const struct mad_async *engine)
{
	return engine->stats.submitted != engine->stats.completed;
}

/* Returns NULL for a blocking call's request. */
static inline struct mad_async *engine_of(const struct ibmad_port *port,
					  const struct request *request)
{
	return request->source == &port->blocking
		       ? NULL
		       : list_entry(request->source, struct mad_async, source);
}

/* Whether this thread does the engine's callbacks. */
bool engine_is_processor(const struct mad_async *engine);
/*
 * Whether no callback is left to make. While the engine is being freed, servers and
 * registrations don't count: they end after the requests.
 */
bool engine_is_idle(const struct mad_async *engine);
/* Whether mad_async_wait() must return without making further callbacks. */
bool engine_is_stopped(const struct mad_async *engine);
/* Whether there is something to call back or to refuse. */
bool engine_has_work(const struct mad_async *engine);

/* Wakes the thread in mad_async_wait() or mad_async_free() if there is work. */
void engine_wake(struct mad_async *engine);

/* As port_enter() and port_leave(), and keeps the engine from being freed. NULL: -EINVAL. */
int engine_enter(struct mad_async *engine);
/* As engine_enter(), in a callback: cannot fail. */
void engine_enter_again(struct mad_async *engine);
void engine_leave(struct mad_async *engine);

/* The following need the lock. */

/* In a fork()ed child, after port_inherit(): cancels what the parent had begun. */
void engine_inherit(struct mad_async *engine);
/* Why nothing can be started any more: -ECANCELED or the port's error; otherwise 0. */
int engine_why_ended(const struct mad_async *engine);
void engine_report_class_unlocking(struct mad_async *engine, const char *call, int mgmt_class);

/*
 * mad_async_submit(), for a public call. *id is set before the request is sent; by the time
 * this returns, another thread may already have called it back.
 */
int engine_submit_unlocking(struct mad_async *engine, enum public_call call,
			    const ib_rpc_t *rpc, const ib_portid_t *dport, const void *payload,
			    size_t size, mad_async_fn *callback, void *arg, uint64_t *id);
/*
 * As engine_submit_unlocking(), for an SMP Get to the local port. Jumps the queue: without a
 * link, other requests fill the window. timeout_ms 0: the port's.
 */
int engine_read_port_unlocking(struct mad_async *engine, enum public_call call,
			       unsigned attribute, uint64_t m_key, int timeout_ms,
			       mad_async_fn *callback, void *arg, uint64_t *id);
/*
 * mad_async_cancel(): returns 0 or -ENOENT. For requests, id comes from
 * engine_submit_unlocking().
 */
int engine_cancel(struct mad_async *engine, uint64_t id);

/*
 * Begins an operation, whose "cancel" is set. Stores its ID unless id is NULL. Returns 0,
 * -ECANCELED, or the error of a port that is gone.
 */
int operation_begin(struct mad_async *engine, struct engine_operation *operation, uint64_t *id);
/*
 * Defers a function, so that a public call never calls back before it returns. The engine is
 * not idle until then.
 */
void operation_later(struct mad_async *engine, struct engine_operation *operation,
		     void (*later)(struct engine_operation *operation));
/*
 * Call before the callback. Returns true if it was cancelled: the callback then reports
 * -ECANCELED.
 */
bool operation_end(struct mad_async *engine, struct engine_operation *operation);
/* As operation_end(), for callers without the lock. */
bool engine_operation_end(struct mad_async *engine, struct engine_operation *operation);
bool engine_operation_is_cancelled(struct mad_async *engine,
				   const struct engine_operation *operation);

void engine_timer_add(struct mad_async *engine, struct engine_timer *timer);
void engine_timer_set(struct mad_async *engine, struct engine_timer *timer, int64_t at);
/* Returns when the next timer is due, or NEVER. */
int64_t engine_timer_at(const struct mad_async *engine);

/* --- limits of operations: async.c ------------------------------------------------ */

/* Validates a call's options.cancel. */
static inline bool cancel_is_valid(const struct mad_cancel *cancel)
{
	return !cancel || is_reserved(cancel->reserved);
}

/*
 * Limits of an operation with many requests: a time, a struct mad_cancel, and the local port's
 * state. Except for limits_begin(), only the processing thread calls these.
 */
struct limits {
	struct engine_timer timer;
	struct mad_async *engine;
	const struct mad_cancel *cancel; /* NULL: none */
	int64_t end;                     /* time limit; NEVER: none */
	int64_t read_at;                 /* next reading of the local port; NEVER: none */
	uint64_t read_id;                /* the request that reads it; 0: none */
	uint64_t m_key;                  /* for this SMP */
	bool is_local;                   /* no request has needed a link so far */
	int error;                       /* of the limit reached; 0: none */
	/*
	 * Called when a limit is reached, and at each later tick: -ETIME, -ECANCELED or
	 * -ENETDOWN.
	 */
	void (*reached)(struct limits *limits, int error);
	/* Called every 50 ms until a limit is reached; or NULL. */
	void (*tick)(struct limits *limits);
};

/*
 * Starts checking. time_limit_ms counts from now, 0: none. Reads the local port if
 * IB_SMI_DIRECT_CLASS is registered. The caller holds the lock.
 */
void limits_begin(struct limits *limits, struct mad_async *engine, unsigned time_limit_ms,
		  const struct mad_cancel *cancel, uint64_t m_key);
/* Stops all calls. Must be called without the lock. */
void limits_end(struct limits *limits);
/*
 * Returns the error with which a request's failure must end the whole operation, since further
 * requests would fail, too: device gone, engine freed, or link down. Otherwise 0.
 */
int limits_ends_all(int error);

/* --- event_loop.c ----------------------------------------------------------------- */

/* Surround each callback, with the lock released. */
void engine_callback_begin_unlocking(struct mad_async *engine);
void engine_callback_end(struct mad_async *engine);
/* Calls back requests and operations, at most BATCH of each. Returns the number of requests. */
int engine_call_requests_unlocking(struct mad_async *engine);
int engine_call_operations_unlocking(struct mad_async *engine);
void engine_begin_processing(struct mad_async *engine, enum engine_thread thread);
void engine_end_processing(struct mad_async *engine);

void alarm_init(struct alarm *alarm);
void alarm_close(struct alarm *alarm);
/* Makes poll_fd readable for messages or not. */
void alarm_watch(struct alarm *alarm, int handle, bool watch);
/*
 * Updates it: whether there is work, and when there will be more. A later expiry is only set
 * once the earlier one has passed, so the loop may wake once in vain.
 */
void alarm_set(struct alarm *alarm, bool work, int64_t next);

/* --- server.c --------------------------------------------------------------------- */

struct mad_server_stats server_stats(const struct mad_server *server);
/* Passes requests to their servers' callbacks, at most BATCH. Returns their number. */
int servers_call_unlocking(struct mad_async *engine);
/* Sends BUSY for requests beyond a server's limit, at most BATCH. */
void servers_refuse_unlocking(struct mad_async *engine);
/* Stops the servers of an engine being freed. */
void servers_end_unlocking(struct mad_async *engine);

#endif
