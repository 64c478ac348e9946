/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * An engine, as its port knows it. The port tells the engine's listener, which is a thread in
 * mad_async_wait() or an event loop, when there is work. The engine's own work is its completed
 * requests and the requests for its servers. The work of the port is reading, sending and
 * timers.
 *
 * An event loop polls an eventfd, which is readable while there is work, and a timerfd. Both
 * are set by listener_update() from the state of the port, not from events: no event loop
 * misses work.
 */
#ifndef LIBIBMAD_LOOP_FDS_H
#define LIBIBMAD_LOOP_FDS_H

#include "base/list.h"
#include "port/waiters.h"

#include <stdatomic.h>
#include <stdint.h>

/* The descriptors that an event loop polls. */
struct alarm {
	int poll_fd;    /* an epoll descriptor of the others; -1: not open */
	int work_fd;    /* an eventfd: there is work */
	int timer_fd;   /* a timerfd */
	bool watching;  /* poll_fd has the handle */
	bool signalled; /* work_fd is readable */
	int64_t armed;  /* the time that timer_fd is set to; NEVER */
};

/* The first member of an engine. */
struct listener {
	struct list all;       /* first: in the port's listeners, or in its retired engines */
	struct list completed; /* requests that are to be called back */
	struct list arrived;   /* requests of others that no callback got yet */
	struct list refused;   /* requests of others that get BUSY */
	struct list ended;     /* servers whose last callback is to come */
	bool calls;            /* operations of the engine have functions to be called */
	unsigned open;         /* requests that were not called back */
	unsigned servers;      /* servers that had no last callback */
	unsigned serving;      /* threads that do the work of the port */
	bool processing;       /* a thread calls back, or waits in mad_async_wait() */
	pthread_t processor;   /* processing: the thread */
	bool waiting;          /* the thread is in mad_async_wait() */
	struct waiter waiter;  /* waiting: the thread on the port */
	atomic_uint stops;     /* the number of mad_async_stop() calls */
	unsigned stops_before; /* waiting: the value of "stops" that ends no wait */
	int64_t timer_at;      /* the next of the engine's own timers; NEVER */
	int64_t look_at; /* when the event loop looks for messages that no descriptor tells */
	bool blind;      /* no descriptor of the kernel tells messages: a simulator */
	struct alarm alarm;
};

/* The listener of an entry in the port's list. */
static inline struct listener *listener_at(struct list *entry)
{
	return list_entry(entry, struct listener, all);
}

/* The work of the port. */
struct port_work {
	bool now;     /* a request may be sent */
	int64_t next; /* when the next timer is due, or a request may be sent; NEVER */
	bool gone;    /* the port has failed */
};

void listener_init(struct listener *listener);
void listener_close(struct listener *listener);

static inline bool listener_has_alarm(const struct listener *listener)
{
	return listener->alarm.poll_fd >= 0;
}

/* Whether all requests and operations were called back, and all servers for the last time. */
static inline bool listener_is_empty(const struct listener *listener)
{
	return !listener->open && !listener->servers && !listener->calls;
}

/* Whether mad_async_wait() is to return. */
static inline bool listener_is_stopped(const struct listener *listener)
{
	return listener->waiting && listener->stops != listener->stops_before;
}

/*
 * poll_fd, which is opened if it is not open; or a negative errno. It is readable for messages,
 * too, if the listener watches the handle.
 */
int listener_poll_fd(struct listener *listener);
/* Begins or ends watching the handle: poll_fd is readable for messages while it does. */
void listener_watch(struct listener *listener, int handle, bool watch);

/* Whether the event loop does the work of the port. */
static inline bool listener_serves_port(const struct listener *listener)
{
	return listener->alarm.poll_fd < 0 || listener->alarm.watching || listener->blind;
}

/* The event loop has looked at the port, or has its first request or server. */
void listener_begin(struct listener *listener);

/* Whether the engine has work of its own; "gone": the port has failed. */
bool listener_has_own_work(const struct listener *listener, bool gone);
/* Whether there is something to do for one more thread that processes the engine. */
bool listener_has_work(const struct listener *listener, const struct port_work *work);
/* When there is something to do without an event before; NEVER. */
int64_t listener_next(const struct listener *listener, const struct port_work *work);
/* The engine may have work of its own: wakes the thread in mad_async_wait(). */
void listener_wake(struct listener *listener, struct waiters *waiters, bool gone);
/*
 * Sets the descriptors by the present state, and wakes the thread in mad_async_wait(). "due": a
 * thread of the event loop has done the work, so that the timer may be set to a later time.
 */
void listener_update(struct listener *listener, struct waiters *waiters,
		     const struct port_work *work, bool due);

#endif
