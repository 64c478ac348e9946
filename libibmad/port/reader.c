/* SPDX-License-Identifier: BSD-2-Clause */

#include "port/reader.h"

#include "base/export.h"
#include "mad/layout.h"
#include "mad/probe.h"

#include <infiniband/umad_ext.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/eventfd.h>

/* A leader that cannot be woken returns from poll(2) after this time. */
#define LOOK_UP_MS   100
/* A leader reads this number of messages at most before its own request is looked at. */
#define READ_AT_ONCE 32
/* If there is no memory for a message, it is read again after this time. */
#define BLOCKED_US   10000
/* The kernel queues this number of messages for a handle at most. */
#define QUEUED_MAX   200000

/* --- tracing -------------------------------------------------------------------- */

/* Tells those who trace of the size of a window, if it has changed. */
static INLINE void trace_window(struct ibmad_port *port, unsigned window)
{
	unsigned size;

	if (!HAS_PROBES)
		return;
	size = port->requests.flow.windows[window].size;
	if (size == port->traced_sizes[window])
		return;
	probe_window_changed(port->handle.fd, window, port->traced_sizes[window], size);
	port->traced_sizes[window] = size;
}

void port_trace_windows(struct ibmad_port *port)
{
	for (unsigned i = 0; i < FLOW_WINDOWS; i++)
		trace_window(port, i);
}

/* --- messages ------------------------------------------------------------------- */

/* A message that is for no request: the agent says whether it is a server's. */
static RARE void take_unclaimed(struct ibmad_port *port, const uint8_t *umad, int length)
{
	const struct ib_user_mad *header = (const struct ib_user_mad *)(const void *)umad;
	struct mad_server *server = server_find(&port->servers, header->agent_id);

	if (server && server_receive(server, umad, length)) {
		if (server->listener)
			port_tell_engine(port, server->listener, false);
		return;
	}
	if (inbox_add(&port->inbox, umad, length))
		waiters_wake_receiver(&port->waiters);
	else
		/* the report of a timeout is not counted: it is no MAD from the wire */
		port->dropped += !header->status;
}

/*
 * Handles a message: length bytes of MAD in umad. "allocated": the port may keep umad. Returns
 * whether the port keeps it.
 */
static INLINE bool receive(struct ibmad_port *port, uint8_t *umad, int length, bool allocated)
{
	const struct ib_user_mad *header = (const struct ib_user_mad *)(const void *)umad;
	const uint8_t *mad = umad + port->handle.header_size;
	struct request_event event = {.umad = umad, .length = length, .allocated = allocated};
	struct port_request *request;
	enum mad_window window;

	if (length >= 24)
		event.transmission =
			tids_find(&port->requests.tids, get32(mad, TID_OFFS), mad[1]);
	if (event.transmission && !header->status && length >= 36 && is_response(mad))
		event.kind = EVENT_RESPONSE;
	else if (event.transmission && header->status && !is_response(mad))
		event.kind = EVENT_REPORT;
	if (!event.kind) {
		take_unclaimed(port, umad, length);
		return false;
	}
	event.now = clock_us();
	request = port_request_of(request_of(event.transmission));
	window = flow_window_of(&request->request.account);
	if (event.kind == EVENT_RESPONSE)
		queue_remove(&port->queue, request);
	port_carry_out(port, request,
		       request_handle(&port->requests, &request->request, &event));
	trace_window(port, window);
	return allocated && !event.allocated;
}

/* Only the first MAD of a message could be read: its request completes with this errno. */
static void receive_failed(struct ibmad_port *port, const uint8_t *umad, int error)
{
	const uint8_t *mad = packet_mad(umad);
	struct transmission *transmission =
		tids_find(&port->requests.tids, get32(mad, TID_OFFS), mad[1]);

	if (transmission && is_response(mad))
		port_handle(port, port_request_of(request_of(transmission)), EVENT_CANCEL,
			    error, clock_us());
	else
		port->dropped++;
}

/* --- reading -------------------------------------------------------------------- */

/*
 * Reads a message of more than one MAD, whose first MAD is in the buffer. If the message is not
 * queued any more, another process that shares the handle has read it. Takes the lock.
 */
static RARE void read_long(struct ibmad_port *port, int length)
{
	enum handle_result result;
	uint8_t *umad = NULL;
	int error = 0;

	if ((size_t)length > port->options.max_reply)
		error = EMSGSIZE;
	else if (!(umad = malloc(umad_size() + (size_t)length)))
		error = ENOMEM;
	result = umad ? handle_receive(&port->handle, umad, &length)
		      : handle_drain(&port->handle, length);
	port_lock(port);

	/* while a message blocks the queue, its request completes once */
	if (!umad && !port->blocked_until)
		receive_failed(port, port->buffer, error);
	port->blocked_until = !umad && result == HANDLE_TOO_LONG ? clock_us() + BLOCKED_US : 0;
	if (result == HANDLE_GONE)
		port_fail(port, ENODEV);
	if (!umad || result != HANDLE_MESSAGE ||
	    !receive(port, umad, length, length > IB_MAD_SIZE))
		free(umad);
}

/* All messages that came before a time were handled. */
static void note_empty(struct ibmad_port *port, int64_t time)
{
	port->emptied = time;
	port->read_since = 0;
}

/*
 * Notes the time even if the queue is never empty: after "reading_since", the kernel's queue
 * had QUEUED_MAX messages at most that came before.
 */
static void count_message(struct ibmad_port *port)
{
	if (!port->read_since)
		port->reading_since = clock_us();
	if (++port->read_since > QUEUED_MAX)
		note_empty(port, port->reading_since);
}

/* Reads a message and handles it. This thread has set "reading". Takes the lock. */
static enum handle_result read_message(struct ibmad_port *port)
{
	enum handle_result result;

	port->length = IB_MAD_SIZE;
	result = handle_receive(&port->handle, port->buffer, &port->length);
	if (result == HANDLE_TOO_LONG) {
		read_long(port, port->length);
		count_message(port);
		return result;
	}
	port_lock(port);
	port->blocked_until = 0;
	if (result == HANDLE_MESSAGE) {
		receive(port, port->buffer, port->length, false);
		count_message(port);
	} else if (result == HANDLE_GONE) {
		port_fail(port, ENODEV);
	}
	return result;
}

/*
 * Whether the thread stops reading, because its waiter is woken. A patient waiter reads until
 * no response is expected: the responses to other requests are often queued already. NULL: no
 * waiter.
 */
static bool has_enough(const struct ibmad_port *port, const struct waiter *waiter)
{
	return waiter && waiter->woken && !(waiter->patient && port->requests.tids.count);
}

/* Reads until nothing is queued, "most" messages are read, or the waiter has enough. */
static unsigned read_unlocking(struct ibmad_port *port, unsigned most,
			       const struct waiter *waiter, int64_t now)
{
	enum handle_result result;
	unsigned count = 0;

	while (count < most && !has_enough(port, waiter) && !port->gone &&
	       port->blocked_until <= now) {
		port_unlock(port);
		result = read_message(port);
		if (result == HANDLE_NONE)
			note_empty(port, now);
		if (result == HANDLE_NONE || result == HANDLE_GONE)
			break;
		count++;
	}
	return count;
}

unsigned port_read_unlocking(struct ibmad_port *port, unsigned most, int64_t now)
{
	unsigned count;

	if (atomic_exchange(&port->waiters.reading, true))
		return 0;
	count = read_unlocking(port, most, NULL, now);
	port->waiters.reading = false;
	waiters_pass(&port->waiters);
	return count;
}

/* --- waiting -------------------------------------------------------------------- */

static NOINLINE void follow_unlocking(struct ibmad_port *port, struct waiter *waiter,
				      int64_t until)
{
	clock_cond_init(&waiter->changed);
	waiter->following = true;
	clock_cond_wait(&waiter->changed, &port->lock, until);
	waiter->following = false;
	pthread_cond_destroy(&waiter->changed);
}

/* Handles the result of a poll until the time "end". Takes the lock. */
static void handle_poll(struct ibmad_port *port, struct waiter *waiter, int ret, int error,
			int64_t end)
{
	struct waiters *waiters = &port->waiters;

	if (ret == 0 && (waiters->wake_fd < 0 || !atomic_exchange(&waiters->reading, true))) {
		read_message(port);
		if (!has_enough(port, waiter))
			read_unlocking(port, READ_AT_ONCE - 1, waiter, clock_us());
		waiters->reading = false;
		return;
	}
	port_lock(port);
	if (ret == -ETIMEDOUT)
		note_empty(port, end);
	else if (ret == -EIO && error == EINTR)
		waiter->interrupted = true;
	else if (ret < 0)
		port_fail(port, ENODEV);
}

/* The eventfd is not readable any more. */
static RARE void drain_wake_fd(struct waiters *waiters)
{
	eventfd_t count;

	waiters->signalled = false;
	eventfd_read(waiters->wake_fd, &count);
}

static void lead_unlocking(struct ibmad_port *port, struct waiter *waiter, int64_t until,
			   int64_t now)
{
	struct waiters *waiters = &port->waiters;
	/* a simulator's handle is polled or read by one thread at a time */
	bool alone = waiters->wake_fd < 0;
	int ms = ms_until(until, now, alone ? LOOK_UP_MS : INT_MAX), ret;

	waiters->leader = waiter;
	if (alone)
		waiters->reading = true;
	waiters->polling = true;
	port_unlock(port);
	ret = alone ? umad_poll(port->handle.fd, ms)
		    : umad_poll_with(port->handle.fd, waiters->wake_fd, ms);
	waiters->polling = false;
	handle_poll(port, waiter, ret, ret < 0 ? errno : 0, now + ms * INT64_C(1000));
	if (alone)
		waiters->reading = false;
	waiters->leader = NULL;
	if (waiters->signalled || ret == 1)
		drain_wake_fd(waiters);
	/* last: waiters_alert() sets "alerted" before it writes to wake_fd */
	if (waiters->alerted && atomic_exchange(&waiters->alerted, false))
		port_tell_all_engines(port);
}

void port_wait_unlocking(struct ibmad_port *port, struct waiter *waiter, int64_t until,
			 int64_t now)
{
	struct waiters *waiters = &port->waiters;
	bool can_read = waiters->polling && waiters->wake_fd >= 0 && !waiters->reading;
	int64_t blocked = port->blocked_until;

	waiter->woken = false;
	waiter->until = until;
	/* the leader may not have run since a message came */
	if (until <= now && can_read)
		port_read_unlocking(port, READ_AT_ONCE, now);
	else if (waiters->leader || waiters->reading)
		follow_unlocking(port, waiter, until);
	else if (blocked > now)
		follow_unlocking(port, waiter, until < blocked ? until : blocked);
	else
		lead_unlocking(port, waiter, until, now);
}
