/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * An engine (struct mad_async): it owns requests, and calls back when they are complete. The
 * lock of its port guards it. A function that releases the lock for a time has a name that ends
 * with _unlocking.
 */
#ifndef LIBIBMAD_ASYNC_H
#define LIBIBMAD_ASYNC_H

#include "base/reserved.h"
#include "engine/port.h"

#include <infiniband/mad_async.h>
#include <infiniband/mad_server.h>

/* A timer for code on top of an engine. */
struct engine_timer {
	struct list all; /* in the engine's */
	int64_t at;      /* NEVER: it is not set */
	/*
	 * Called with the lock released by the thread that processes the engine, when the time
	 * is over or the port has failed. The timer is not set any more.
	 */
	void (*due)(struct engine_timer *timer);
	/* NULL, or called with the lock released, after a freed engine has removed the timer.
	 */
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

/*
 * What an event loop polls: one descriptor, which is readable while the port's handle is, while
 * there is other work, and when a time has come.
 */
struct alarm {
	int poll_fd;    /* an epoll descriptor of the others; -1: not open */
	int work_fd;    /* an eventfd: there is work */
	int timer_fd;   /* a timerfd */
	bool watching;  /* poll_fd has the handle */
	bool signalled; /* work_fd is readable */
	int64_t armed;  /* the time that timer_fd is set to; NEVER */
};

/* The thread that calls back: one at a time. */
enum engine_thread {
	ENGINE_FREE,      /* none */
	ENGINE_PROCESSED, /* in mad_async_process() or mad_async_free() */
	ENGINE_WAITED,    /* in mad_async_wait() */
};

struct mad_async {
	struct list all; /* first: in the port's engines, or in its retired ones */
	struct ibmad_port *port;
	struct source source;
	unsigned forks; /* port->forks at the latest use of the engine */
	unsigned users; /* calls that have not returned */
	bool ending;    /* mad_async_free() was called */

	/* what it owns */
	struct pool pool;       /* of its requests */
	uint32_t begun;         /* operations since the engine was made */
	struct list operations; /* that have not ended */
	struct list timers;     /* struct engine_timer */
	unsigned queued;        /* requests that were neither sent nor called back */
	unsigned servers;       /* servers that had no last callback */
	unsigned registrations; /* at the SA, that have not ended */
	struct sa_client *sa;   /* of sa/sa_request.c; NULL: it has sent no request to the SA */
	struct sa_keeper *keeper; /* NULL: it has had no registration at the SA */

	/* what is to be called back */
	struct list completed; /* requests */
	struct list arrived;   /* requests of others, for its servers */
	struct list refused;   /* requests of others that get BUSY */
	struct list ended;     /* servers whose last callback is to come */
	struct list calls;     /* operations that have a function to be called */

	/* who calls back */
	enum engine_thread thread;
	pthread_t processor;  /* unless ENGINE_FREE */
	struct waiter waiter; /* ENGINE_WAITED */
	unsigned calling; /* callbacks that have not returned; more than 1 only after fork() */
	pthread_cond_t changed; /* thread or users; while ending, also completed requests */
	atomic_uint stops;      /* the number of mad_async_stop() calls */
	unsigned stops_before;  /* ENGINE_WAITED: the value of "stops" that ends no wait */
	unsigned stops_heeded;  /* "stops" when mad_async_wait() last returned -EINTR */
	struct alarm alarm;
	struct list loop; /* in the port's, while the alarm is open */

	struct mad_async_stats stats;
	uint64_t rtt_sum_us;
	uint64_t rtt_count;
	uint64_t dropped_before; /* of the port, when the engine was created */
	uint64_t mismatched_before;
};

/* Whether requests were not called back. */
static inline bool engine_has_requests(const struct mad_async *engine)
{
	return engine->stats.submitted != engine->stats.completed;
}

/* The engine of a request; NULL: it is a blocking call's. */
static inline struct mad_async *engine_of(const struct ibmad_port *port,
					  const struct request *request)
{
	return request->source == &port->blocking
		       ? NULL
		       : list_entry(request->source, struct mad_async, source);
}

/* Whether this thread calls back for the engine. */
bool engine_is_processor(const struct mad_async *engine);
/*
 * Whether no callback is to come. Servers and registrations of an engine that is freed do not
 * count: they end after the requests.
 */
bool engine_is_idle(const struct mad_async *engine);
/* Whether mad_async_wait() is to return. No callback begins then. */
bool engine_is_stopped(const struct mad_async *engine);
/* Whether something is to be called back, or a request is to be refused. */
bool engine_has_work(const struct mad_async *engine);

/* It has work: wakes the thread in mad_async_wait(), or the one that frees it. */
void engine_wake(struct mad_async *engine);

/* As port_enter() and port_leave(); NULL: -EINVAL. The engine is not freed in between. */
int engine_enter(struct mad_async *engine);
/* The same in a callback, which cannot fail. */
void engine_enter_again(struct mad_async *engine);
void engine_leave(struct mad_async *engine);

/* All below: the lock is held. */

/* In a child of fork(), after port_inherit(): cancels what the parent has begun. */
void engine_inherit(struct mad_async *engine);
/* Why nothing begins on the engine any more: -ECANCELED, or the error of its port; or 0. */
int engine_why_ended(const struct mad_async *engine);
/* Reports that a class is not registered. */
void engine_report_class_unlocking(struct mad_async *engine, const char *call, int mgmt_class);

/*
 * mad_async_submit(), for a public call. *id is written before the request is sent. When it
 * returns, another thread may already have called the request back.
 */
int engine_submit_unlocking(struct mad_async *engine, enum public_call call,
			    const ib_rpc_t *rpc, const ib_portid_t *dport, const void *payload,
			    size_t size, mad_async_fn *callback, void *arg, uint64_t *id);
/*
 * The same for a Get of an attribute of the local port by SMP. It is sent before all that are
 * queued: without a link, the other requests fill the window. timeout_ms 0: the port's.
 */
int engine_read_port_unlocking(struct mad_async *engine, enum public_call call,
			       unsigned attribute, uint64_t m_key, int timeout_ms,
			       mad_async_fn *callback, void *arg, uint64_t *id);
/* mad_async_cancel(): 0 or -ENOENT. A request's number is engine_submit_unlocking()'s. */
int engine_cancel(struct mad_async *engine, uint64_t id);

/*
 * Begins an operation, whose "cancel" is set. *id becomes its number, unless id is NULL. 0,
 * -ECANCELED, or the error of a port that is gone.
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

void engine_timer_add(struct mad_async *engine, struct engine_timer *timer);
void engine_timer_set(struct mad_async *engine, struct engine_timer *timer, int64_t at);
/* When the next of them is due; NEVER. */
int64_t engine_timer_at(const struct mad_async *engine);

/* --- limits of operations: async.c ------------------------------------------------ */

/* Whether the options of a call may have it. */
static inline bool is_cancel(const struct mad_cancel *cancel)
{
	return !cancel || is_reserved(cancel->reserved);
}

/*
 * The limits of an operation of many requests: a time, a struct mad_cancel, and the state of
 * the local port. All calls come from the thread that processes the engine, except
 * limits_begin().
 */
struct limits {
	struct engine_timer timer;
	struct mad_async *engine;
	const struct mad_cancel *cancel; /* NULL: none */
	int64_t end;                     /* the time limit; NEVER: none */
	int64_t read_at;                 /* when the local port is read next; NEVER: not */
	uint64_t read_id;                /* of the request that reads it; 0: none is open */
	uint64_t m_key;                  /* of this SMP */
	bool is_local;                   /* so far no request has needed a link */
	int error;                       /* of the limit that was reached; 0: none */
	/*
	 * Called when a limit is reached, and again at each later tick: -ETIME, -ECANCELED or
	 * -ENETDOWN.
	 */
	void (*reached)(struct limits *limits, int error);
	/* Called every 50 ms while no limit is reached; or NULL. */
	void (*tick)(struct limits *limits);
};

/*
 * Begins to look at the limits. time_limit_ms is 0, or the number of milliseconds from now on.
 * The local port is read if IB_SMI_DIRECT_CLASS is registered. The lock is held.
 */
void limits_begin(struct limits *limits, struct mad_async *engine, unsigned time_limit_ms,
		  const struct mad_cancel *cancel, uint64_t m_key);
/* Nothing is called from now on. The lock is not held. */
void limits_end(struct limits *limits);
/*
 * The error with which a request ends the operation, because further requests would fail: the
 * device is gone, the engine is freed, or the kernel does not send while the link is down.
 * Otherwise 0.
 */
int limits_ends_all(int error);

/* --- event_loop.c ----------------------------------------------------------------- */

/* Around each callback: the lock is released. */
void engine_callback_begin_unlocking(struct mad_async *engine);
void engine_callback_end(struct mad_async *engine);
/* Calls back requests and operations, BATCH of each at most. Returns the number of requests. */
int engine_call_requests_unlocking(struct mad_async *engine);
int engine_call_operations_unlocking(struct mad_async *engine);
void engine_begin_processing(struct mad_async *engine, enum engine_thread thread);
void engine_end_processing(struct mad_async *engine);

void alarm_init(struct alarm *alarm);
void alarm_close(struct alarm *alarm);
/* Whether poll_fd is readable for messages. */
void alarm_watch(struct alarm *alarm, int handle, bool watch);
/*
 * Sets it by the present state: whether there is work, and when there is more. A later time
 * than before is set only after the earlier one has come: the loop may wake once in vain.
 */
void alarm_set(struct alarm *alarm, bool work, int64_t next);

/* --- server.c --------------------------------------------------------------------- */

/* The result of mad_server_get_stats(). */
struct mad_server_stats server_stats(const struct mad_server *server);
/* Hands requests to the callbacks of their servers, BATCH at most. Returns their number. */
int servers_call_unlocking(struct mad_async *engine);
/* Responds with BUSY to requests beyond a server's limit, BATCH at most. */
void servers_refuse_unlocking(struct mad_async *engine);
/* Stops the servers of an engine that is freed. */
void servers_end_unlocking(struct mad_async *engine);

#endif
