/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Which thread reads messages, and when. If one thread uses the port, it writes, polls and
 * reads once for each request.
 *
 * The leader polls the handle, and an eventfd by which other threads wake it. Other threads may
 * read meanwhile. A simulator's handle is polled alone, and by one thread at a time: no other
 * thread reads meanwhile, and the leader returns from poll(2) every 100 ms.
 *
 * The lock is held in each call.
 */
#ifndef LIBIBMAD_READER_H
#define LIBIBMAD_READER_H

#include "port/port.h"

/*
 * Waits until messages were handled, until the waiter is woken, or until the time "until".
 * "now" is the present time. It may return early. If "until" is over, it only handles queued
 * messages, if no other thread reads.
 */
void port_wait_unlocking(struct ibmad_port *port, struct waiter *waiter, int64_t until,
			 int64_t now);

/*
 * Reads and handles queued messages, "most" at most, without waiting; none if another thread
 * reads. Returns the number of messages.
 */
unsigned port_read_unlocking(struct ibmad_port *port, unsigned most, int64_t now);

/* The time up to which timers are judged: all messages that came before it were handled. */
static inline int64_t port_time(const struct ibmad_port *port, int64_t now)
{
	const struct flow_window *windows = port->requests.flow.windows;
	int64_t time = port->emptied;

	/*
	 * Without memory no message can be read. While a simulator's handle is polled, no other
	 * thread can read, but the leader reads a message as soon as it comes.
	 */
	if (port->blocked_until || (port->waiters.polling && port->waiters.wake_fd < 0))
		return now;
	/* messages that came before a request was sent are read before its response */
	for (unsigned i = 0; i < FLOW_WINDOWS; i++)
		if (windows[i].newest > time)
			time = windows[i].newest;
	return time;
}

#endif
