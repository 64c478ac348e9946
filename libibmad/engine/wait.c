/* SPDX-License-Identifier: BSD-2-Clause */

#include "engine/wait.h"

#include "calls/async.h"
#include "engine/receive.h"

#include <errno.h>
#include <time.h>

/* A leader looks up so often: the port may be closing, another thread's timer due. */
#define LOOK_UP_MS 100
/* It reads so many messages before it looks at the clock: they may be others', and many. */
#define BATCH      32

void wait_begin(struct ibmad_port *port, struct waiter *waiter)
{
	waiter->following = waiter->woken = false;
	waiter->interrupted = waiter->receiving = false;
	waiter->next = port->waiters;
	waiter->link = &port->waiters;
	if (waiter->next)
		waiter->next->link = &waiter->next;
	port->waiters = waiter;
}

void wait_end(struct ibmad_port *port, struct waiter *waiter)
{
	*waiter->link = waiter->next;
	if (waiter->next)
		waiter->next->link = waiter->link;
	wait_pass(port);
}

void wait_pass(struct ibmad_port *port)
{
	struct waiter *waiter = port->waiters;

	if (port->being_read)
		return;
	while (waiter && !waiter->following)
		waiter = waiter->next;
	waiter_wake(waiter);
}

void waiter_wake(struct waiter *waiter)
{
	if (!waiter)
		return;
	waiter->woken = true;
	if (waiter->following)
		pthread_cond_signal(&waiter->changed);
}

/* Reads what is there without waiting, till enough has come. */
static void read_messages(struct ibmad_port *port, const bool *enough)
{
	port->being_read = true;
	for (int i = 0; i < BATCH && !*enough && !port->gone && receive_message(port); i++)
		engines_wake_for_work(port);
	port->being_read = false;
}

static void follow(struct ibmad_port *port, struct waiter *waiter, int64_t until)
{
	struct timespec then = {
		.tv_sec = (time_t)(until / 1000000),
		.tv_nsec = (long)(until % 1000000 * 1000),
	};
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&waiter->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	waiter->following = true;
	if (until == NEVER)
		pthread_cond_wait(&waiter->changed, &port->lock);
	else
		pthread_cond_timedwait(&waiter->changed, &port->lock, &then);
	waiter->following = false;
	pthread_cond_destroy(&waiter->changed);
}

static void lead(struct ibmad_port *port, struct waiter *waiter, int64_t until, int64_t now)
{
	int ret, error;
	bool more;

	port->being_read = true;
	port_unlock(port);
	ret = umad_poll(port->fd, ms_until(until, now, LOOK_UP_MS));
	if (!ret) {
		more = receive_unlocked(port);
		engines_wake_for_work(port);
		if (more)
			read_messages(port, &waiter->woken);
		port->being_read = false;
		return;
	}
	error = errno;
	port_lock(port);
	port->being_read = false;
	if (ret == -EIO && error == EINTR)
		waiter->interrupted = true;
	else if (ret != -ETIMEDOUT)
		port_fail(port, ENODEV);
}

void wait_step(struct ibmad_port *port, struct waiter *waiter, int64_t until, int64_t now)
{
	waiter->woken = false;
	if (port->being_read)
		follow(port, waiter, until);
	else
		lead(port, waiter, until, now);
}
