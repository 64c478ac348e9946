/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Which thread reads messages, and when. A thread that is alone writes, polls and reads once
 * for each request.
 *
 * Any thread may read while the leader polls, unless the handle is a simulator's. Then one
 * thread at a time polls or reads, and the leader looks up every 100 ms. Otherwise the leader
 * also polls an eventfd, by which others wake it at once.
 *
 * The lock is held in each call.
 */
#ifndef LIBIBMAD_POLL_H
#define LIBIBMAD_POLL_H

#include "port/port.h"

/*
 * Waits until messages were handled, until the waiter is woken, or until the time "until";
 * "now" is the present time. It may return early. If that time is over, it handles what is
 * queued, as far as this thread may read now.
 */
void port_wait_unlocking(struct ibmad_port *port, struct waiter *waiter, int64_t until,
			 int64_t now);

/*
 * Reads what is queued, "most" messages at most, without waiting, unless another thread reads.
 * Returns how many.
 */
unsigned port_read_unlocking(struct ibmad_port *port, unsigned most, int64_t now);

/* The time that timers are compared with: all messages that came before it were handled. */
static inline int64_t port_time(const struct ibmad_port *port, int64_t now)
{
	const struct flow_window *windows = port->requests.flow.windows;
	int64_t time = port->emptied;

	/* no message can be read without memory; and while the leader polls, no other thread
	 * can read: the leader is taken to be quick */
	if (port->blocked_until || (port->waiters.polling && port->waiters.wake_fd < 0))
		return now;
	/* a response is read after all that came before its request was sent */
	for (unsigned i = 0; i < FLOW_WINDOWS; i++)
		if (windows[i].newest > time)
			time = windows[i].newest;
	return time;
}

#endif
