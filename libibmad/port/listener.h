/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * An engine, as its port knows it: a thread in mad_async_wait() or an event loop, which is told
 * when there is something to do. The engine's own work is its completed requests and the
 * requests for its servers. The work of the port is reading, sending and timers.
 *
 * An event loop polls an eventfd, which is readable while there is work, and a timerfd. Both
 * follow from the latest listener_update() alone: no work can be missed because another thread
 * did it.
 */
#ifndef LIBIBMAD_LISTENER_H
#define LIBIBMAD_LISTENER_H

#include "base/list.h"
#include "port/waiters.h"

#include <stdatomic.h>
#include <stdint.h>

/* What an event loop polls. */
struct alarm {
	int work_fd;    /* an eventfd: there is work; -1: the alarm is not open */
	int timer_fd;   /* a timerfd */
	int wake_fd;    /* an epoll descriptor of both; -1: not asked for */
	int poll_fd;    /* an epoll descriptor of both, and of the handle; -1: not asked for */
	bool watching;  /* poll_fd has the handle */
	bool signalled; /* work_fd is readable */
	int64_t armed;  /* when timer_fd becomes, or became, readable */
};

/* The first member of an engine. */
struct listener {
	struct list all; /* first: in the port's list of all, or of retired ones */
	struct list
		loops; /* in the port's list of event loops that poll the handle themselves */
	struct list completed; /* requests that are to be called back */
	struct list arrived;   /* requests of others that servers have not seen */
	struct list refused;   /* requests of others that get BUSY */
	unsigned open;         /* requests that were not called back */
	unsigned servers;      /* that were not stopped */
	unsigned serving;      /* threads that do the work of the port */
	bool processing;       /* a thread calls back, or waits in mad_async_wait(): */
	pthread_t processor;   /* this one */
	bool waiting;          /* a thread is in mad_async_wait(), */
	struct waiter waiter;  /* and waits as this one */
	atomic_uint stops;     /* counts mad_async_stop() */
	unsigned stops_before; /* waiting: what the thread began with */
	int64_t timer_at;      /* the engine's own timers; NEVER */
	int64_t look_at; /* when the event loop looks at the port, although another does */
	struct alarm alarm;
};

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
	return listener->alarm.work_fd >= 0;
}

/* Whether mad_async_wait() is to return. */
static inline bool listener_is_stopped(const struct listener *listener)
{
	return listener->waiting && listener->stops != listener->stops_before;
}

/*
 * The descriptors, which are opened if they are not open; a negative errno. The second one also
 * tells of messages, if the event loop is the one that watches the handle.
 */
int listener_wake_fd(struct listener *listener);
int listener_poll_fd(struct listener *listener);
/* From now on the event loop is told of messages on the handle, or no longer. */
void listener_watch(struct listener *listener, int handle, bool watch);

/* Whether the event loop does the work of the port. */
static inline bool listener_serves_port(const struct listener *listener)
{
	return listener->alarm.poll_fd < 0 || listener->alarm.watching;
}

/* The event loop has looked at the port, or has begun to wait for something. */
void listener_begin(struct listener *listener);

/* Whether there is something to do for one more thread that processes the engine. */
bool listener_has_work(const struct listener *listener, const struct port_work *work);
/* When there is something to do without any event; NEVER. */
int64_t listener_next(const struct listener *listener, const struct port_work *work);
/* The engine may have work of its own: wakes the thread in mad_async_wait(). */
void listener_wake(struct listener *listener, struct waiters *waiters, bool gone);
/*
 * There may be something to do. "due": a thread of the event loop has looked, so that the timer
 * may be set for a later time.
 */
void listener_update(struct listener *listener, struct waiters *waiters,
		     const struct port_work *work, bool due);

#endif
